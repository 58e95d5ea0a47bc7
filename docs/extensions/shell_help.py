"""The help of every command, asked of the command itself when the site is built.

    ```{shell-help}
    ```

gives one section per command, in the order in which the command lists them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from counterlvq.cli.app import COMMANDS


def help_of(*words: str) -> str:
    """What `counterlvq WORDS --help` prints on a terminal of 80 columns."""
    done = subprocess.run(
        [sys.executable, "-m", "counterlvq", *words, "--help"],
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


class ShellHelp(SphinxDirective):
    """One section per command with the text of its `--help`."""

    def run(self) -> list[nodes.Node]:
        calls = [(), *((command.name,) for command in COMMANDS if command.name)]
        return [self._section(words) for words in calls]

    def _section(self, words: tuple[str, ...]) -> nodes.section:
        title = " ".join(["counterlvq", *words])
        section = nodes.section(ids=[nodes.make_id(title)], names=[title])
        section += nodes.title("", "", nodes.literal("", title))
        section += nodes.literal_block("", help_of(*words), language="text")
        return section


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("shell-help", ShellHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
