"""The command: run what is missing, write the tables, say whether all holds."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from counterlvq.errors import CounterlvqError
from counterlvq.safe_text import visible
from counterlvq_paper.journal import journal_at
from counterlvq_paper.peers import ask_peers, environment
from counterlvq_paper.protocol import FULL, QUICK
from counterlvq_paper.report import verdict_lines, write_all
from counterlvq_paper.results import Results, results_of, versions
from counterlvq_paper.runner import finish

__all__ = ["main", "reproduce"]

_INTERRUPTED = 130


def reproduce(
    output: Path,
    *,
    cache: Path | None = None,
    quick: bool = False,
    peers: bool = False,
    fresh: bool = False,
    jobs: int | None = None,
) -> Results:
    """Reproduce the paper's tables.

    Parameters
    ----------
    output : Path
        Folder for the tables and the picture.
    cache : Path, optional
        Folder for what is finished; by default in the user's cache folder. A run that was
        stopped goes on from there.
    quick : bool
        A few rows of one fold only.
    peers : bool
        Also ask ceml 0.7, in an environment of its own that is built in `cache`.
    fresh : bool
        Forget what is finished and start over.
    jobs : int, optional
        Processes; by default one per core.

    Returns
    -------
    Results
        Everything that was written, with the verdicts.

    Examples
    --------
    >>> from pathlib import Path
    >>> from counterlvq_paper import reproduce
    >>> results = reproduce(Path("tables"), quick=True)  # doctest: +SKIP
    >>> results.holds  # doctest: +SKIP
    True
    """
    settings = QUICK if quick else FULL
    place = _default_cache() if cache is None else cache
    workers = _cores() if jobs is None else jobs
    stamp = versions()
    journal = journal_at(place, settings, stamp)
    if fresh:
        journal.clear()
        journal = journal_at(place, settings, stamp)
    finish(journal, settings, workers)
    if peers:
        ask_peers(journal, settings, environment(place), workers)
    results = results_of(journal, settings, stamp, workers)
    write_all(results, output)
    return results


def _default_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "counterlvq" / "reproduce"


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _parser(program: str, output: Path) -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(
        program, description="Run the experiments of the paper again and check what is claimed."
    )
    add = arguments.add_argument
    add("--quick", action="store_true", help="a few rows of one fold, in about a minute")
    add("--peers", action="store_true", help="also ask ceml 0.7, in an environment of its own")
    add("--fresh", action="store_true", help="start over instead of going on where a run stopped")
    add("--output", type=Path, help=f"folder for the tables ({output}, or {output}-quick)")
    add("--cache", type=Path, help="folder for finished work (in the user's cache folder)")
    add("--jobs", type=int, help="processes (one per core)")
    return arguments


def main(
    argv: Sequence[str] | None = None,
    *,
    program: str = "counterlvq reproduce",
    output: Path = Path("reproduction"),
) -> int:
    """Run the command; 0 if all holds, 1 if something does not, 2 for a mistake in the call."""
    options = _parser(program, output).parse_args(argv)
    # A quick run does not write over what a full one has written.
    folder = options.output or (Path(f"{output}-quick") if options.quick else output)
    if options.jobs is not None and options.jobs < 1:
        sys.stderr.write(f"--jobs is {options.jobs}; expected a positive number of processes.\n")
        return 2
    try:
        results = reproduce(
            folder, cache=options.cache, quick=options.quick, peers=options.peers,
            fresh=options.fresh, jobs=options.jobs,
        )  # fmt: skip
    except CounterlvqError as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped. The same command goes on from the last finished block.\n")
        return _INTERRUPTED
    sys.stdout.write("\n".join(verdict_lines(results)) + "\n")
    sys.stdout.write(f"Tables and picture: {visible(str(folder))}\n")
    return 0 if results.holds else 1
