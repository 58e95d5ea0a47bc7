"""Parquet to Parquet: throughput beside its ingredients, and peak memory.

Each figure comes from a fresh process, all of them in one run: reading the columns with pyarrow
alone, reading and writing them, `explain_batch` in memory (of a million rows at most), and
`explain_dataset` from Parquet and from CSV (of a million rows at most). Times are those of the
processor, of one process that uses one core: what else the machine does is not in them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.csv import CSVWriter

import counterlvq as clvq
from benchmarks.figures import environment
from benchmarks.memory import CLASSES, FEATURES, PROTOTYPES, peak
from benchmarks.problems import SEED
from benchmarks.report import row, write_atomically

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SIZES = (100_000, 1_000_000, 10_000_000)
GROUP = 1 << 18
MOST_IN_MEMORY = 1_000_000
BILLION = 10**9
CORES = (1, 16, 64, 256)
COLUMNS = [f"x{j}" for j in range(FEATURES)]


@dataclass(frozen=True)
class Measured:
    """Seconds of the processor and peak memory of one job in a process of its own."""

    seconds: float
    rows: int
    peak_mb: float

    @property
    def each(self) -> float:
        """Seconds a row."""
        return self.seconds / self.rows


@dataclass(frozen=True)
class Figures:
    """What one size of a dataset takes; per million rows where the sizes differ."""

    rows: int
    decoded: Measured
    copied: Measured
    in_memory: Measured
    dataset: Measured
    from_csv: Measured
    source_bytes: int
    answer_bytes: int

    @property
    def share(self) -> float:
        """Throughput, as a share of that of copying and answering one after the other."""
        parts = (self.copied, self.in_memory)
        return sum(m.each for m in parts) / self.dataset.each

    @property
    def work(self) -> dict[str, float]:
        """Seconds a row of what a dataset takes, by what they are spent on."""
        known = {
            "decoding": self.decoded.each,
            "answering": self.in_memory.each,
            "encoding": max(0.0, self.copied.each - self.decoded.each),
        }
        return {**known, "the rest": max(0.0, self.dataset.each - sum(known.values()))}


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


def batches(source: Path) -> Iterator[Any]:
    file = pq.ParquetFile(source, pre_buffer=False, buffer_size=1 << 20)
    return file.iter_batches(1 << 16, use_threads=False)


def decode(source: Path, _: Path) -> int:
    return sum(len(batch) for batch in batches(source))


def copy(source: Path, folder: Path) -> int:
    """Read the columns, and write them and as many others as answers have."""
    rows = 0
    after = [f"{name}_after" for name in COLUMNS]
    schema = pa.schema([(name, pa.float64()) for name in COLUMNS + after])
    folder.mkdir()
    with pq.ParquetWriter(folder / "copy.parquet", schema) as writer:
        for batch in batches(source):
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


def from_csv(source: Path, folder: Path) -> int:
    return dataset(source.with_suffix(".csv"), folder)


def write_csv(source: Path, path: Path) -> None:
    left = MOST_IN_MEMORY
    schema = pa.schema([(name, pa.float64()) for name in COLUMNS])
    with CSVWriter(path, schema) as writer:
        for batch in batches(source):
            writer.write_batch(batch.slice(0, left))
            left -= min(left, len(batch))


JOBS: dict[str, Callable[[Path, Path], int]] = {
    "decoded": decode,
    "copied": copy,
    "in_memory": in_memory,
    "dataset": dataset,
    "from_csv": from_csv,
}


def work(job: str, source: str, folder: str) -> None:
    """Do one job here, and print what it took; what it prints of itself goes first."""
    start = process_time()
    rows = JOBS[job](Path(source), Path(folder))
    told = {"seconds": process_time() - start, "rows": rows, "peak_mb": peak() / 2**20}
    print(json.dumps(told))


def measured(job: str, source: Path, folder: Path) -> Measured:
    command = [sys.executable, "-m", "benchmarks.datasets", "--job", job, str(source), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    told: dict[str, float] = {}
    for line in done.stdout.splitlines():
        told |= json.loads(line)
    return Measured(told.get("answered", told["seconds"]), int(told["rows"]), told["peak_mb"])


def figures(rows: int) -> Figures:
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "source.parquet"
        write_source(source, rows)
        write_csv(source, source.with_suffix(".csv"))
        found = {job: measured(job, source, Path(place) / job) for job in JOBS}
        parts = (Path(place) / "dataset").glob("part-*")
        written = sum(path.stat().st_size for path in parts)
        return Figures(rows, **found, source_bytes=source.stat().st_size, answer_bytes=written)


def table_of(found: list[Figures]) -> str:
    head = ["rows", "decode, µs a row", "copy, µs a row", "answer, µs a row", "dataset, µs a row"]
    head += ["share", "peak, MB", "read, bytes a row", "written, bytes a row"]
    head += ["rows of CSV", "from CSV, µs a row", "peak, MB"]
    lines = [row(head), row(["---:"] * len(head))]
    for one in found:
        jobs = (one.decoded, one.copied, one.in_memory, one.dataset)
        cells = [f"{one.rows:,}", *(f"{1e6 * m.each:.2f}" for m in jobs), f"{one.share:.2f}"]
        cells += [f"{one.dataset.peak_mb:.0f}"]
        cells += [f"{size / one.rows:.0f}" for size in (one.source_bytes, one.answer_bytes)]
        cells += [f"{one.from_csv.rows:,}", f"{1e6 * one.from_csv.each:.2f}"]
        lines.append(row([*cells, f"{one.from_csv.peak_mb:.0f}"]))
    return "\n".join(lines) + "\n"


def billion(one: Figures) -> str:
    """Say what a billion rows would take, by the rates of the largest dataset."""
    hours = BILLION * one.dataset.each / 3600
    spent = ", ".join(f"{name} {part / one.dataset.each:.0%}" for name, part in one.work.items())
    sizes = [BILLION * size / one.rows / 1e9 for size in (one.source_bytes, one.answer_bytes)]
    rates = [size / one.dataset.seconds / 1e6 for size in (one.source_bytes, one.answer_bytes)]
    lines = [
        f"By the rates of {one.rows:,} rows, a billion rows take {hours:.1f} hours of one core "
        f"({spent}); {sizes[0]:.0f} GB are read and {sizes[1]:.0f} GB written. Rows have nothing "
        f"to do with each other, so that cores share the hours as long as storage keeps up:\n",
        row(["cores", "minutes", "read, MB/s", "written, MB/s"]),
        row(["---:"] * 4),
    ]
    for cores in CORES:
        cells = [f"{cores}", f"{60 * hours / cores:.1f}", *(f"{cores * r:,.0f}" for r in rates)]
        lines.append(row(cells))
    return "\n".join(lines) + "\n"


def markdown(where: dict[str, Any], found: list[Figures]) -> str:
    return "\n".join(
        [
            "# Datasets\n",
            f"`python -m benchmarks.datasets`, {where['date']}. Python {where['python']} on "
            f"{where['platform']}, {where['cores']} cores, load average before "
            f"{where['load_before'][0]:.1f}. Parquet to Parquet, {FEATURES} real columns, "
            f"{PROTOTYPES} prototypes, one process, time of the processor. Decode: reading with "
            f"pyarrow alone. Copy: reading, and writing as many columns as the answers have. "
            f"Answer: `explain_batch` in memory, of {MOST_IN_MEMORY:,} rows at most. Dataset: "
            f"`explain_dataset`. Share: its throughput, as a share of that of copying and "
            f"answering one after the other. Peak: of the process of `explain_dataset`. "
            f"From CSV: `explain_dataset` of the first {MOST_IN_MEMORY:,} rows as text.\n",
            table_of(found),
            "## A billion rows\n",
            billion(found[-1]),
        ]
    )


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
    where, found = environment(), []
    for size in sizes:
        found.append(figures(size))
        print(f"{size:,} rows", file=sys.stderr, flush=True)
    told = markdown(where, found)
    print(told)
    if not chosen.quick:
        content = {"environment": where, "measured": [asdict(one) for one in found]}
        for name, text in (
            ("datasets.json", json.dumps(content, indent=1) + "\n"),
            ("datasets.md", told),
        ):
            write_atomically(
                RESULTS / name, lambda file, text=text: file.write_text(text, encoding="utf-8")
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
