"""How the tests reach the command line: as a process of its own, or called in this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "counterlvq"]
ENVIRONMENT = {**os.environ, "COLUMNS": "80"}


def counterlvq(
    *words: str, cwd: Path, stdin: bytes | None = None, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Run one command line in a process of its own."""
    return subprocess.run(
        [*COMMAND, *words],
        cwd=cwd,
        input=b"" if stdin is None else stdin,
        capture_output=True,
        env={**ENVIRONMENT, "PYTHONWARNINGS": "error", **environment},
        check=False,
        timeout=120,
    )


def started(*words: str, cwd: Path, **options: Any) -> subprocess.Popen[bytes]:
    """Start a command line without waiting for it."""
    return subprocess.Popen(
        [*COMMAND, *words],
        cwd=cwd,
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=options.pop("stderr", subprocess.PIPE),
        env=ENVIRONMENT,
        **options,
    )


def one_line(output: bytes | str) -> str:
    """The single line of an error, and nothing else."""
    text = output if isinstance(output, str) else output.decode()
    assert text.endswith("\n")
    assert text.count("\n") == 1, text
    assert text.startswith("counterlvq: ")
    return text.rstrip("\n")
