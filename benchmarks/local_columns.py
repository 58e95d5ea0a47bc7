"""Local metrics in the user's own columns, beside the space of the components that they see.

`python -m benchmarks.local --columns`, with `--rows N` and `--problem NAME`. Times are those of the
processor, so that other work on the machine does not count; shares and ratios are of one run.
Limits of `global` are those of the clock.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from benchmarks.figures import environment
from benchmarks.mixed_problems import ames_problem
from benchmarks.problems import Array
from benchmarks.report import plain, write_atomically

SEED, PER_CLASS = 23, 3
COLUMNS, COMPONENTS = "columns", "components"
MIXED, OFFSETS = "Ames, mixed columns", "wine, QDA"
# Seconds of `global`, and the problems and costs that it is asked about.
LIMIT = 20.0
GLOBAL = (("digits, PCA 10", "L1"), ("digits", "L1"))


@dataclass(frozen=True, eq=False)
class ColumnProblem:
    """A fitted pipeline, and rows that it was not fitted to."""

    name: str
    model: Any
    train: Array
    rows: Any  # an array, or a list of rows of a table
    targets: Sequence[Any]
    features: Any = None
    constraints: Sequence[str] = ()
    price: clvq.Cost | None = None  # where it is not one for each standard deviation

    def explainer(self, space: str, cost: str, method: str) -> clvq.Explainer:
        """The question as a user would put it."""
        model, train, _ = self.seen(space)
        return clvq.Explainer(
            model,
            cost=self.price or price(cost, train),
            constraints=self.constraints,
            features=self.features,
            method=method,
            time_limit=LIMIT if method == "global" else None,
        )

    def seen(self, space: str) -> tuple[Any, Array, Any]:
        """Model, training table and rows: in the user's columns, or as its last step sees them."""
        if space == COLUMNS:
            return self.model, self.train, self.rows
        steps = self.model[:-1]
        return self.model[-1], steps.transform(self.train), steps.transform(self.rows)


@dataclass(frozen=True)
class ColumnRun:
    """One problem under one cost, row by row."""

    problem: str
    space: str
    cost: str
    method: str
    width: int
    seconds: list[float]  # of the processor
    proved: list[bool]
    gaps: list[float]
    boxes: list[int]


def names() -> dict[str, tuple[str, int]]:
    """Problems by name: table and components, 0 for none."""
    return {
        "cancer, PCA 5": ("cancer", 5),
        "digits, PCA 10": ("digits", 10),
        "cancer": ("cancer", 0),
        "digits": ("digits", 0),
        MIXED: ("Ames", 0),
        OFFSETS: ("wine", 0),
    }


def mixed_problem(cost: str, n: int) -> ColumnProblem:
    """Ten columns of whole numbers and levels."""
    asked = ames_problem(cost, "local", n)
    return ColumnProblem(
        MIXED, asked.model, np.zeros((0, asked.width)), asked.inputs, asked.targets,
        asked.features, asked.constraints, asked.price,
    )  # fmt: skip


def problem(name: str, n: int) -> ColumnProblem:
    """Fit a pipeline, and draw rows and targets, all with a fixed seed."""
    table, components = names()[name]
    load = {"cancer": load_breast_cancer, "digits": load_digits, "wine": load_wine}[table]
    X, y = load(return_X_y=True)
    train, test, labels, _ = train_test_split(X, y, random_state=SEED, stratify=y)
    steps = [StandardScaler(), *([PCA(components)] if components else [])]
    model = clvq.LGMLVQ(prototypes_per_class=PER_CLASS, random_state=SEED)
    if name == OFFSETS:
        model = QuadraticDiscriminantAnalysis(reg_param=0.1)
    fitted = make_pipeline(*steps, model).fit(train, labels)
    rng = np.random.default_rng(SEED)
    rows = test[rng.choice(len(test), n, replace=False)]
    now = fitted.predict(rows)
    targets = [rng.choice([c for c in fitted.classes_ if c != label]) for label in now]
    return ColumnProblem(name, fitted, train, rows, targets)


def price(cost: str, train: Array) -> clvq.Cost:
    """Absolute or squared changes in standard deviations."""
    deviations = train.std(axis=0)
    weights = 1.0 / np.where(deviations > 0, deviations, 1.0)
    if cost == "L1":
        return clvq.Manhattan(weights=weights)
    return clvq.Mahalanobis(np.diag(weights**2))


def run(asked: ColumnProblem, space: str, cost: str, method: str = "auto") -> ColumnRun:
    """Answer every row."""
    _, train, rows = asked.seen(space)
    explainer = asked.explainer(space, cost, method)
    explainer.explain(rows[0], target=asked.targets[0])  # loads what is compiled
    seconds, proved, gaps, boxes = [], [], [], []
    for row, target in zip(rows, asked.targets, strict=True):
        begun = time.process_time()
        cf = explainer.explain(row, target=target)
        seconds.append(time.process_time() - begun)
        proved.append(cf.status == "optimal")
        gaps.append(float(cf.gap))
        boxes.append(sum(len(tree.prices) for tree in cf.certificate.trees))
    width = train.shape[1]
    return ColumnRun(asked.name, space, cost, method, width, seconds, proved, gaps, boxes)


def measure(chosen: Sequence[str], n: int) -> Iterator[ColumnRun]:
    """Run problems, in the columns and, where there are components, in these."""
    for name in chosen:
        spaces = (COMPONENTS, COLUMNS) if names()[name][1] else (COLUMNS,)
        for cost in ("L1", "L2"):
            asked = mixed_problem(cost, n) if name == MIXED else problem(name, n)
            for space in spaces:
                yield run(asked, space, cost)
                if (name, cost) in GLOBAL:
                    yield run(asked, space, cost, "global")


def markdown(runs: Sequence[ColumnRun]) -> str:
    """Tables of one run."""
    lines = [
        "# Local metrics in the user's own columns",
        "",
        f"`python -m benchmarks.local --columns`: LGMLVQ with {PER_CLASS} prototypes per class "
        "behind `StandardScaler` and, where it says so, `PCA`; `auto`, or `global` with "
        f"{LIMIT:g} s; rows that were not fitted, random targets. {OFFSETS}: scikit-learn's QDA "
        f"behind `StandardScaler`. {MIXED}: those of `benchmarks.mixed`, with 2 prototypes per "
        "class, fitted rows and one target. Seconds are those of the processor. The ratio is to "
        "the space of the components, in this run.",
        "",
        "| problem | space | cost | method | columns | rows | proved | median gap of the others "
        "| median gap | median s | longest s | ratio |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    base = {(each.problem, each.cost, each.method): median(each.seconds) for each in runs
            if each.space == COMPONENTS}  # fmt: skip
    for each in runs:
        rest = [gap for gap, shown in zip(each.gaps, each.proved, strict=True) if not shown]
        gap = f"{median(rest):.1%}" if rest else "-"
        own, inner = median(each.seconds), base.get((each.problem, each.cost, each.method))
        ratio = f"{own / inner:.1f}" if inner and each.space == COLUMNS else "-"
        lines.append(
            f"| {each.problem} | {each.space} | {each.cost} | `{each.method}` | {each.width} | "
            f"{len(each.proved)} | {sum(each.proved) / len(each.proved):.0%} | {gap} | "
            f"{median(each.gaps):.1%} | {own:.3f} | "
            f"{max(each.seconds):.2f} | {ratio} |"
        )
    return "\n".join(lines) + "\n"


def write(runs: Sequence[ColumnRun], folder: Path) -> str:
    """Write local_columns.json and local_columns.md."""
    where = environment()
    folder.mkdir(parents=True, exist_ok=True)
    values = plain({"environment": where, "runs": [asdict(each) for each in runs]})
    content, text = json.dumps(values, indent=1, allow_nan=False) + "\n", markdown(runs)
    for name, told in (("local_columns.json", content), ("local_columns.md", text)):
        write_atomically(folder / name, lambda path, told=told: path.write_text(told, "utf-8"))
    return text
