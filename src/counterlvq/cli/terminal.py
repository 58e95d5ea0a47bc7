"""Words for people at a terminal, in which nothing acts that came from a file or an argument."""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Sequence

import click

import counterlvq as clvq
from counterlvq.cli.signals import ENDING
from counterlvq.safe_text import visible

__all__ = ["readable", "say", "tell_unanswered", "write_whatever_comes"]


def say(text: str, *, aside: bool = False) -> None:
    """Print a text, on standard error if `aside`."""
    ENDING.stdout_begun = ENDING.stdout_begun or not aside
    click.echo(readable(text), err=aside)


def tell_unanswered(statuses: Sequence[clvq.Status]) -> None:
    """Say how many rows have no answer, and why, if there are any."""
    counts = Counter(statuses)
    without = {status: counts[status] for status in clvq.Status if not status.has_answer}
    total = sum(without.values())
    if not total:
        return
    told = ", ".join(f"{count:,} {status}" for status, count in without.items() if count)
    rows = f"{total:,} of {len(statuses):,} row{'s' if len(statuses) != 1 else ''}"
    verb = "has" if total == 1 else "have"
    say(f"counterlvq: {rows} {verb} no answer: {told}.", aside=True)


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
