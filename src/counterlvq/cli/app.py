"""The command line: its commands, and the way from its words to an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import click
from click.shell_completion import shell_complete

import counterlvq as clvq
from counterlvq.cli.advice import at_shell
from counterlvq.cli.columns import columns
from counterlvq.cli.completion import completion
from counterlvq.cli.conventions import (
    BROKEN_PIPE,
    BUG,
    COMPLETE,
    DONE,
    ERROR,
    USAGE,
    Settings,
    _hint,
    debug_option,
)
from counterlvq.cli.demo import demo
from counterlvq.cli.explain import explain
from counterlvq.cli.importing import import_
from counterlvq.cli.inspecting import inspect
from counterlvq.cli.reasons import reasons
from counterlvq.cli.reporting import report
from counterlvq.cli.reproducing import reproduce
from counterlvq.cli.serving import page, serve
from counterlvq.cli.signals import ENDING
from counterlvq.cli.streams import replace_closed
from counterlvq.cli.terminal import say, write_whatever_comes
from counterlvq.cli.train import train
from counterlvq.cli.verify import verify
from counterlvq.safe_text import visible

__all__ = ["COMMANDS", "app", "run"]

# A new command is a module of its own and a place in this list. Those that few people need are
# hidden, so that the list fits a screen.
COMMANDS: tuple[click.Command, ...] = (
    columns, train, import_, explain, reasons, verify, report, page, serve, inspect, reproduce,
    demo, completion,
)  # fmt: skip


class _InOrder(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        """List commands in the order of `COMMANDS`, which is the order of work."""
        return [command.name or "" for command in COMMANDS]


@click.group(
    cls=_InOrder,
    commands=list(COMMANDS),
    invoke_without_command=True,
    # The control character keeps the lines apart.
    help="\b\nSmallest changes to an input that change the decision, with a proof.\n"
    "  counterlvq explain loans.clvq rejected.csv --target yes --freeze age",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="Exit codes: 0 done, 1 error, 2 usage, 3 unanswered rows, 130 interrupted.",
)
@click.version_option(clvq.__version__, message="counterlvq %(version)s")
@debug_option
@click.pass_context
def app(ctx: click.Context) -> None:
    """Run a command; without one, show what there is."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(2)


# Letters of one line about an error; foreign errors may quote a whole file.
_LONGEST = 2500


def run(words: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    replace_closed()
    write_whatever_comes()
    if asked := os.environ.get(COMPLETE):
        return shell_complete(app, {}, "counterlvq", COMPLETE, asked)
    settings = Settings()
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
        end = "" if told.endswith("?") else "."
        path = error.ctx.command_path if error.ctx else "counterlvq"
        code = _tell(settings, f"usage: {told}{end} See {path} --help.", USAGE)
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


def _words_of(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return at_shell(str(error))


def _tell(settings: Settings, text: str, code: int) -> int:
    if settings.debug:
        say(traceback.format_exc().rstrip("\n"), aside=True)
    if ENDING.came is not None:
        return code
    line = " ".join(text.split())
    say(f"counterlvq: {visible(line, _LONGEST)}", aside=True)
    return code
