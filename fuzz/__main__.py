"""Fuzz a target: ``python -m fuzz truth --cases 2000 --seed 1 --jobs 2``."""

from __future__ import annotations

import argparse
import sys

from fuzz import (
    constraint_texts,
    exports,
    folders,
    model_files,
    table_files,
    truth,
    written_texts,
)
from fuzz.files import Draw, Readers
from fuzz.running import Target, report, run

# Files that one process reads: it takes seconds to start, and ends with the first that hangs.
_TOGETHER = 1000


# What is read: what it is called, and how one is drawn.
FILES: dict[str, tuple[str, Draw]] = {
    "model-files": ("model files (.clvq), read or refused in words", model_files.draw),
    "exports": ("exported models (.npz), read or refused in words", exports.draw),
    "tables": ("CSV, JSON, Parquet and Excel as the shell reads them", table_files.draw),
    "constraints": ("constraint strings, read or refused in words", constraint_texts.draw),
    "folders": ("datasets, and runs that go on: all rows, or words", folders.draw),
    "texts": ("files of columns, and certificates", written_texts.draw),
}


def _reading(name: str, words: str, draw: Draw) -> Target:
    readers = Readers(draw)
    return Target(name, words, readers.run_case, readers.run_many, _TOGETHER)


TARGETS = {
    "truth": Target(
        "truth", "claims about counterfactuals, judged in rational numbers", truth.run_case
    ),
    **{name: _reading(name, words, draw) for name, (words, draw) in FILES.items()},
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--cases", type=int, default=500, help="how many to draw")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", type=int, help="run this case alone and show all its faults")
    parser.add_argument("--kind", help="draw questions of this kind alone")
    parser.add_argument("--shown", type=int, default=1, help="scripts to show for each fault")
    options = parser.parse_args(arguments)
    target = TARGETS[options.target]
    numbers = range(options.first, options.first + options.cases)
    shown = options.shown
    if options.only is not None:
        numbers, shown = range(options.only, options.only + 1), 100
    outcome = run(target, numbers, options.seed, options.jobs, options.kind, say=True)
    print(report(target, outcome, options.seed, shown))
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
