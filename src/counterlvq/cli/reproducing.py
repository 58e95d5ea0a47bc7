"""`counterlvq reproduce`: the paper's experiments again, and whether all that is claimed holds."""

from __future__ import annotations

from pathlib import Path

import click

from counterlvq.cli.conventions import ERROR, Count, debug_option
from counterlvq.cli.signals import ENDING
from counterlvq.cli.terminal import say

__all__ = ["reproduce"]

_FOLDER = "reproduction"


@click.command(hidden=True, short_help="Run the experiments of the paper again.")
@click.option("--quick", is_flag=True, help="A few rows of one fold, in about a minute.")
@click.option("--peers", is_flag=True, help="Also ask ceml 0.7, in an environment of its own.")
@click.option("--fresh", is_flag=True, help="Start over instead of going on where a run stopped.")
@click.option(
    "--output",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help=f"For the tables; {_FOLDER} or {_FOLDER}-quick by default.",
)
@click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="For finished work; in the user's cache folder by default.",
)
@click.option("--jobs", type=Count(1), metavar="N", help="Processes; one per core by default.")
@debug_option
def reproduce(
    quick: bool,
    peers: bool,
    fresh: bool,
    output: Path | None,
    cache: Path | None,
    jobs: int | None,
) -> int:
    """Run the experiments of the paper again, and check row by row what is claimed.

    Writes Tables 1 and 2 and a picture, with the paper's own figures beside ours. A full run takes
    less than an hour on two cores, and goes on where it was stopped. Exit code 1 says that
    something does not hold.
    """
    import counterlvq_paper as paper

    # A quick run does not write over what a full one has written.
    folder = output or Path(f"{_FOLDER}-quick" if quick else _FOLDER)
    ENDING.remark = "the same command goes on from the last finished block."
    results = paper.reproduce(folder, cache=cache, quick=quick, peers=peers, fresh=fresh, jobs=jobs)
    ENDING.remark = None
    for line in paper.verdict_lines(results):
        say(line)
    say(f"Tables and picture: {folder}")
    return 0 if results.holds else ERROR
