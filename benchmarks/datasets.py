"""Parquet to Parquet: throughput beside its ingredients, and peak memory.

Each figure comes from a fresh process, all of them in one run: reading and writing the same columns
with pyarrow alone, `explain_batch` in memory (of a million rows at most), and `explain_dataset`.
Times are those of the processor, of one process that uses one core: what else the machine does is
not in them.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import counterlvq as clvq
from benchmarks.figures import environment
from benchmarks.memory import CLASSES, FEATURES, PROTOTYPES
from benchmarks.problems import SEED
from benchmarks.report import write_atomically

RESULTS = Path(__file__).resolve().parent / "results"
SIZES = (100_000, 1_000_000, 10_000_000)
GROUP = 1 << 18
MOST_IN_MEMORY = 1_000_000
COLUMNS = [f"x{j}" for j in range(FEATURES)]


@dataclass(frozen=True)
class Measured:
    """Seconds of the processor and peak memory of one job in a process of its own."""

    seconds: float
    rows: int
    peak_mb: float


@dataclass(frozen=True)
class Figures:
    """What one size of a dataset takes; per million rows where the sizes differ."""

    rows: int
    copied: Measured
    in_memory: Measured
    dataset: Measured
    source_bytes: int
    answer_bytes: int

    @property
    def share(self) -> float:
        """Throughput, as a share of that of copying and answering one after the other."""
        parts = (self.copied, self.in_memory)
        return sum(m.seconds / m.rows for m in parts) / (self.dataset.seconds / self.rows)


def explainer() -> clvq.Explainer:
    rng = np.random.default_rng(SEED)
    model = clvq.PrototypeModel(
        rng.normal(size=(PROTOTYPES, FEATURES)),
        np.arange(PROTOTYPES) % CLASSES,
        omegas=rng.normal(size=(FEATURES, FEATURES)),
        feature_names=COLUMNS,
    )
    return clvq.Explainer(model)


def write_source(path: Path, rows: int) -> None:
    rng = np.random.default_rng(SEED)
    schema = pa.schema([(name, pa.float64()) for name in COLUMNS])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, GROUP):
            block = rng.normal(size=(FEATURES, min(GROUP, rows - start)))
            writer.write_table(pa.table(list(block), schema=schema))


def copy(source: Path, folder: Path) -> int:
    """Read the columns, and write them and as many others as answers have."""
    file, rows = pq.ParquetFile(source, pre_buffer=False, buffer_size=1 << 20), 0
    after = [f"{name}_after" for name in COLUMNS]
    schema = pa.schema([(name, pa.float64()) for name in COLUMNS + after])
    folder.mkdir()
    with pq.ParquetWriter(folder / "copy.parquet", schema) as writer:
        for batch in file.iter_batches(1 << 16, use_threads=False):
            writer.write_batch(pa.record_batch(batch.columns * 2, schema=schema))
            rows += len(batch)
    return rows


def in_memory(source: Path, _: Path) -> int:
    file = pq.ParquetFile(source)
    table = next(file.iter_batches(MOST_IN_MEMORY))
    rows = np.column_stack([table.column(name).to_numpy() for name in COLUMNS])
    asked = explainer()
    asked.explain_batch(rows[:100], 0)
    start = process_time()
    asked.explain_batch(rows, 0)
    print(json.dumps({"answered": process_time() - start}))
    return len(rows)


def dataset(source: Path, folder: Path) -> int:
    asked = explainer()
    asked.explain_batch(np.zeros((100, FEATURES)), 0)
    start = process_time()
    told = clvq.explain_dataset(asked, source, folder, {0})
    print(json.dumps({"answered": process_time() - start}))
    return told.rows


JOBS: dict[str, Callable[[Path, Path], int]] = {
    "copied": copy,
    "in_memory": in_memory,
    "dataset": dataset,
}


def work(job: str, source: str, folder: str) -> None:
    """Do one job here, and print what it took; what it prints of itself goes first."""
    start = process_time()
    rows = JOBS[job](Path(source), Path(folder))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": process_time() - start, "rows": rows, "peak_mb": peak}))


def measured(job: str, source: Path, folder: Path) -> Measured:
    command = [sys.executable, "-m", "benchmarks.datasets", "--job", job, str(source), str(folder)]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    told: dict[str, float] = {}
    for line in done.stdout.splitlines():
        told |= json.loads(line)
    return Measured(told.get("answered", told["seconds"]), int(told["rows"]), told["peak_mb"])


def figures(rows: int) -> Figures:
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "source.parquet"
        write_source(source, rows)
        found = {job: measured(job, source, Path(place) / job) for job in JOBS}
        parts = (Path(place) / "dataset").glob("part-*")
        written = sum(path.stat().st_size for path in parts)
        return Figures(rows, **found, source_bytes=source.stat().st_size, answer_bytes=written)


def table_of(found: list[Figures]) -> str:
    head = "| rows | copy, µs a row | answer, µs a row | dataset, µs a row | share | peak, MB |"
    head += " read, bytes a row | written, bytes a row |"
    lines = [head, "|" + " ---: |" * 8]
    for one in found:
        micro = [1e6 * m.seconds / m.rows for m in (one.copied, one.in_memory, one.dataset)]
        cells = [f"{one.rows:,}", *(f"{value:.2f}" for value in micro), f"{one.share:.2f}"]
        cells += [f"{one.dataset.peak_mb:.0f}"]
        cells += [f"{size / one.rows:.0f}" for size in (one.source_bytes, one.answer_bytes)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write `results/datasets.json` and `results/datasets.md`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.datasets", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, written nowhere")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="rows of the largest dataset")
    parser.add_argument("--job", nargs=3, metavar=("JOB", "SOURCE", "FOLDER"), help="one job, here")
    chosen = parser.parse_args(arguments)
    if chosen.job:
        work(*chosen.job)
        return 0
    sizes = (2000,) if chosen.quick else [size for size in SIZES if size <= chosen.most]
    found = [figures(size) for size in sizes]
    told = table_of(found)
    print(told)
    if not chosen.quick:
        content = {"environment": environment(), "measured": [asdict(one) for one in found]}
        for name, text in (
            ("datasets.json", json.dumps(content, indent=1) + "\n"),
            ("datasets.md", f"# Datasets\n\n{told}\n"),
        ):
            write_atomically(
                RESULTS / name, lambda file, text=text: file.write_text(text, encoding="utf-8")
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
