"""Words for people at a terminal, in which nothing acts that came from a file or an argument."""

from __future__ import annotations

import io
import sys

import click

from counterlvq.cli.signals import ENDING
from counterlvq.safe_text import visible

__all__ = ["readable", "say", "write_whatever_comes"]


def say(text: str, *, aside: bool = False) -> None:
    """Print a text, on standard error if `aside`."""
    ENDING.stdout_begun = ENDING.stdout_begun or not aside
    click.echo(readable(text), err=aside)


def readable(text: str) -> str:
    """Write out all that cannot be seen but the line breaks."""
    return "\n".join(map(visible, text.split("\n")))


def write_whatever_comes() -> None:
    """Let letters that a terminal or a pipe cannot take be written out, rather than end a command.

    Once the work is done, an arrow or an accent is no reason to fail.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
