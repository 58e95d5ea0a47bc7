"""The commands, in the order in which `--help` lists them."""

from __future__ import annotations

import click

import counterlvq as clvq
from counterlvq.cli.completion import completion
from counterlvq.cli.demo import demo
from counterlvq.cli.explain import explain
from counterlvq.cli.inspecting import inspect
from counterlvq.cli.reporting import report
from counterlvq.cli.reproducing import reproduce
from counterlvq.cli.running import debug_option
from counterlvq.cli.train import train

__all__ = ["COMMANDS", "app"]

# A new command is a module of its own and a place in this list.
COMMANDS: tuple[click.Command, ...] = (
    train, explain, report, inspect, reproduce, demo, completion,
)  # fmt: skip


class _InOrder(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        """List commands in the order of `COMMANDS`, which is the order of work."""
        return [command.name or "" for command in COMMANDS]


@click.group(
    cls=_InOrder,
    commands=list(COMMANDS),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="Exit codes: 0 done, 1 error, 2 usage, 3 unanswered rows, 130 interrupted.",
)
@click.version_option(clvq.__version__, message="counterlvq %(version)s")
@debug_option
@click.pass_context
def app(ctx: click.Context) -> None:
    """Smallest changes to an input that change the decision, with a proof.

    Train a prototype model from a table, and explain rows with it:

    \b
      counterlvq train loans.csv --label granted --output loans.clvq
      counterlvq explain loans.clvq rejected.csv --target yes --freeze age
    """  # noqa: D301 - click reads the control character
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(2)
