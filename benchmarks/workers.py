"""Two workers of Dask beside one, and what two plain processes gain in the same run.

The same files are answered by one worker and by two, and by one plain process and by two, in turn;
each is given its best time. All of them are started, and have compiled what they need, before the
clock runs. Times are those of the wall: they are good for ratios within a run and nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import counterlvq as clvq
from benchmarks.datasets import explainer, write_source
from benchmarks.figures import environment
from benchmarks.report import plain, row, write_atomically

RESULTS = Path(__file__).resolve().parent / "results"
# Files enough that the last one, which a worker may answer alone, weighs little.
ROWS, FILES, REPEATS = 4_000_000, 32, 3
GOAL = 1.5

Run = Callable[[Path, Path], None]


@dataclass(frozen=True)
class Gain:
    """Best seconds of one worker and of two."""

    name: str
    one: float
    two: float

    @property
    def times(self) -> float:
        """How many times as fast two are."""
        return self.one / self.two


@contextmanager
def dask_workers(count: int) -> Iterator[Run]:
    import distributed

    import counterlvq.dask

    with (
        distributed.LocalCluster(
            n_workers=count, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def run(source: Path, folder: Path) -> None:
            counterlvq.dask.explain(source, explainer(), {0}, destination=folder, client=client)

        yield run


@contextmanager
def plain_processes(count: int) -> Iterator[Run]:
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:

        def run(source: Path, folder: Path) -> None:
            share_files(pool, source, folder)

        yield run


def share_files(pool: Executor, source: Path, folder: Path) -> None:
    jobs = [(path, folder / path.stem) for path in sorted(source.iterdir())]
    folder.mkdir()
    list(pool.map(answer_file, jobs))


def answer_file(job: tuple[Path, Path]) -> None:
    clvq.explain_dataset(explainer(), *job, {0})


KINDS = {"Dask": dask_workers, "plain processes": plain_processes}


def measured(rows: int, files: int, repeats: int) -> list[Gain]:
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name, count in (("source", rows), ("small", 100 * files)):
            (place / name).mkdir()
            for k in range(files):
                write_source(place / name / f"{k:03d}.parquet", count // files)
        best: dict[tuple[str, int], float] = {}
        for k in range(repeats):
            for name, kind in KINDS.items():
                for count in (1, 2):
                    # Started anew each time, so that those who wait take nothing of the machine.
                    with kind(count) as run:
                        run(place / "small", place / f"small-{k}-{name}-{count}")
                        start = perf_counter()
                        run(place / "source", place / f"{k}-{name}-{count}")
                        seconds = perf_counter() - start
                    best[name, count] = min(seconds, best.get((name, count), seconds))
                    print(f"{name}, {count}: {seconds:.1f} s", file=sys.stderr, flush=True)
    return [Gain(name, best[name, 1], best[name, 2]) for name in KINDS]


def markdown(where: dict[str, Any], rows: int, repeats: int, found: list[Gain]) -> str:
    """The whole run as a table, with the verdict."""
    lines = [
        "# Workers\n",
        f"`python -m benchmarks.workers`, {where['date']}. Python {where['python']} on "
        f"{where['platform']}, {where['cores']} cores, load average before "
        f"{where['load_before'][0]:.1f}. {rows:,} rows in files of Parquet into a folder, best "
        f"wall time of {repeats} that were taken in turn. Plain processes answer a file at a time, "
        f"each into a folder of its own.\n",
        row(["who", "one, s", "two, s", "times as fast"]),
        row(["---"] + ["---:"] * 3),
    ]
    lines += [row([g.name, f"{g.one:.1f}", f"{g.two:.1f}", f"{g.times:.2f}"]) for g in found]
    dask, processes = found
    verdict = "reached" if dask.times >= GOAL else "not reached"
    lines.append(
        f"\nTwo workers of Dask are to be {GOAL} times as fast as one on two cores: {verdict}, "
        f"with {dask.times:.2f}, beside {processes.times:.2f} of plain processes in the same run."
    )
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write `results/workers.json` and `results/workers.md`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, written nowhere")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    chosen = parser.parse_args(arguments)
    rows, files, repeats = (400, 2, 1) if chosen.quick else (chosen.rows, FILES, chosen.repeats)
    where = environment()
    found = measured(rows, files, repeats)
    text = markdown(where, rows, repeats, found)
    print(text)
    if not chosen.quick:
        told = {"environment": where, "rows": rows, "measured": [asdict(gain) for gain in found]}
        content = json.dumps(plain(told), indent=1) + "\n"
        write_atomically(RESULTS / "workers.json", lambda path: path.write_text(content, "utf-8"))
        write_atomically(RESULTS / "workers.md", lambda path: path.write_text(text, "utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
