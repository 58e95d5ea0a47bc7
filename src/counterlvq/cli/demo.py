"""`counterlvq demo`: the main job on real house prices."""

from __future__ import annotations

import click

from counterlvq.cli.conventions import debug_option
from counterlvq.cli.story import tell
from counterlvq.cli.telling import say
from counterlvq.presentation.progress import working

__all__ = ["demo"]


@click.command(short_help="Show the main job on real house prices.")
@debug_option
def demo() -> None:
    """Show what would have to change for a house to sell for more, and why no less would do."""
    lines = tell()
    while True:
        with working("thinking"):
            line = next(lines, None)
        if line is None:
            return
        say(line)
