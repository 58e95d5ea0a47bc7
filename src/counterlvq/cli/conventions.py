"""What all commands share: exit codes, and the option that shows tracebacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    "Count",
    "Settings",
    "Share",
    "debug_option",
]

COMPLETE = "_COUNTERLVQ_COMPLETE"  # the variable by which a shell asks for completions


DONE, ERROR, USAGE, NO_ANSWER, BUG, BROKEN_PIPE = 0, 1, 2, 3, 70, 141


class _Worded:
    """A number of click's that says in plain words what it expects."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a number, or say what is none."""
        try:
            return super().convert(value, param, ctx)  # type: ignore[misc]
        except click.BadParameter as error:
            words = error.message.replace("a valid float range", "a number")
            words = words.replace("a valid integer range", "a whole number")
            raise click.BadParameter(words, error.ctx, error.param) from None


class Count(_Worded, click.IntRange):
    """A whole number in a range."""


class Share(_Worded, click.FloatRange):
    """A number in a range."""


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
