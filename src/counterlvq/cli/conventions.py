"""What all commands share: exit codes, and the option that shows tracebacks."""

from __future__ import annotations

from dataclasses import dataclass

import click

import counterlvq as clvq

__all__ = [
    "BROKEN_PIPE",
    "BUG",
    "COMPLETE",
    "DONE",
    "ERROR",
    "NO_ANSWER",
    "USAGE",
    "Settings",
    "debug_option",
]

COMPLETE = "_COUNTERLVQ_COMPLETE"  # the variable by which a shell asks for completions


DONE, ERROR, USAGE, NO_ANSWER, BUG, BROKEN_PIPE = 0, 1, 2, 3, 70, 141


@dataclass
class Settings:
    """What the option leaves behind for whoever tells of an error."""

    debug: bool = False
    hint: str = ""  # what to try if a table lacks columns


def _remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(Settings).debug = True


# Before the command or behind it: whoever has just met an error adds it at the end.
debug_option = click.option(
    "--debug",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_remember,
    help="Show the traceback of an error.",
)


def _hint(error: BaseException, settings: Settings) -> str:
    """Say what to try where a column is missing that may have been cut at the wrong signs."""
    is_missing = isinstance(error, clvq.UnknownFeatureError) or "lacks the column" in str(error)
    return f" {settings.hint}" if is_missing and settings.hint else ""
