"""From the words of a command line to an exit code; errors take one line."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

import click
from click.shell_completion import shell_complete

import counterlvq as clvq
from counterlvq.cli.ending import ENDING
from counterlvq.cli.telling import say, write_whatever_comes
from counterlvq.visible import visible

__all__ = ["COMPLETE", "ERROR", "NO_ANSWER", "debug_option", "run"]

COMPLETE = "_COUNTERLVQ_COMPLETE"  # the variable by which a shell asks for completions

# Letters of one line about an error; foreign errors may quote a whole file.
_LONGEST = 2500

DONE, ERROR, USAGE, NO_ANSWER, BUG, BROKEN_PIPE = 0, 1, 2, 3, 70, 141


@dataclass
class _Settings:
    debug: bool = False
    hint: str = ""  # what to try if a table lacks columns


def _remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(_Settings).debug = True


# Before the command or behind it: whoever has just met an error adds it at the end.
debug_option = click.option(
    "--debug",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_remember,
    help="Show the traceback of an error.",
)


def run(words: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    from counterlvq.cli.app import app

    write_whatever_comes()
    if asked := os.environ.get(COMPLETE):
        return shell_complete(app, {}, "counterlvq", COMPLETE, asked)
    settings = _Settings()
    color = False if os.environ.get("NO_COLOR") else None
    ENDING.work_begins()
    try:
        with app.make_context("counterlvq", list(words), obj=settings, color=color) as ctx:
            found = app.invoke(ctx)
        sys.stdout.flush()
        code = found if isinstance(found, int) else DONE
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.UsageError as error:
        told = error.format_message().rstrip(".")
        path = error.ctx.command_path if error.ctx else "counterlvq"
        code = _tell(settings, f"usage: {told}. See {path} --help.", USAGE)
    except BrokenPipeError:
        # Whoever read the output has had enough. Python would complain once more at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort):
        code = _tell(settings, ENDING.line(), ENDING.code)
    except (clvq.CounterlvqError, OSError) as error:
        code = _tell(settings, f"error: {_words_of(error)}{_hint(error, settings)}", ERROR)
    except Exception as error:  # noqa: BLE001 - the rim: nobody else is left to tell
        told = f"unexpected {type(error).__name__}: {error}."
        code = _tell(settings, f"{told} Run it again with --debug and report what it shows.", BUG)
    if ENDING.came is not None:
        # Whatever the interrupt has turned into on its way here, or even if it was lost.
        ENDING.tell()
        return ENDING.code
    return code


def _hint(error: BaseException, settings: _Settings) -> str:
    """Say what to try where a column is missing that may have been cut at the wrong signs."""
    is_missing = isinstance(error, clvq.UnknownFeatureError) or "lacks the column" in str(error)
    return f" {settings.hint}" if is_missing and settings.hint else ""


def _words_of(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _tell(settings: _Settings, text: str, code: int) -> int:
    if settings.debug:
        say(traceback.format_exc().rstrip("\n"), aside=True)
    if ENDING.came is not None:
        return code
    line = " ".join(text.split())
    say(f"counterlvq: {visible(line, _LONGEST)}", aside=True)
    return code
