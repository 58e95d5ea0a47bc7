"""Local metrics in the user's own columns: problems, and how each is measured.

`python -m benchmarks.local --columns`, with `--rows N`, `--problem NAME` and `--cost COST`. Times
are those of the processor, limits of `global` too, so that other work on the machine does not
count.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from benchmarks.problems import Array
from counterlvq.certificate_files.lines import Writer, exact
from counterlvq.datasets import load_ames_mixed

SEED, PER_CLASS = 23, 3
COLUMNS, COMPONENTS = "columns", "components"
CANCER_5, DIGITS_10, CANCER, DIGITS = "cancer, PCA 5", "digits, PCA 10", "cancer", "digits"
MIXED, OFFSETS = "Ames, mixed columns", "wine, QDA"
NAMES = (CANCER_5, DIGITS_10, CANCER, DIGITS, MIXED, OFFSETS)
# Components of PCA, where there are any.
COMPONENTS_OF = {CANCER_5: 5, DIGITS_10: 10}
# Seconds of `global`, the problems and costs that it is asked about, and those where `auto` is not.
LIMIT = 20.0
GLOBAL = ((DIGITS_10, "L1"), (DIGITS, "L1"))
ONLY_GLOBAL = (DIGITS, "L1")
# Certificates that the exact checker reads, of each run: it takes seconds for the large ones.
CHECKED = 3


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
    checked: int = 0  # certificates that the exact checker has read
    confirmed: int = 0  # and those of which it says the same


def mixed_problem(cost: str, n: int) -> ColumnProblem:
    """Ten columns of whole numbers and levels, rows of either class."""
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    table, label = load_ames_mixed()
    numbers = [name for name in table.columns if table[name].dtype.kind == "i"]
    levels = [name for name in table.columns if name not in numbers]
    train, test, labels, _ = train_test_split(table, label, random_state=SEED, stratify=label)
    steps = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), levels)
    )
    last = clvq.LGMLVQ(prototypes_per_class=PER_CLASS, random_state=SEED)
    fitted = make_pipeline(steps, last).fit(train, labels)
    cost_of = clvq.Manhattan(clvq.mad_weights(train))
    if cost == "L2":
        cost_of = clvq.Mahalanobis(np.diag(clvq.mad_weights(train[numbers]) ** 2))
    rng = np.random.default_rng(SEED)
    rows = test.iloc[rng.choice(len(test), n, replace=False)]
    targets = [next(c for c in fitted.classes_ if c != now) for now in fitted.predict(rows)]
    return ColumnProblem(
        MIXED, fitted, np.zeros((0, table.shape[1])), [rows.iloc[i] for i in range(n)], targets,
        train, ("year_built == original(year_built)", "lot_area == original(lot_area)"), cost_of,
    )  # fmt: skip


def problem(name: str, cost: str, n: int) -> ColumnProblem:
    """Fit a pipeline, and draw rows and targets, all with a fixed seed."""
    if name == MIXED:
        return mixed_problem(cost, n)
    load = {"cancer": load_breast_cancer, "digits": load_digits, "wine": load_wine}
    X, y = load[name.partition(",")[0]](return_X_y=True)
    train, test, labels, _ = train_test_split(X, y, random_state=SEED, stratify=y)
    steps = [StandardScaler(), *([PCA(COMPONENTS_OF[name])] if name in COMPONENTS_OF else [])]
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
    """Answer every row; the exact checker reads the first proofs."""
    _, train, rows = asked.seen(space)
    explainer = asked.explainer(space, cost, method)
    if method == "auto":
        explainer.explain(rows[0], target=asked.targets[0])  # loads what is compiled
    found = ColumnRun(asked.name, space, cost, method, train.shape[1], [], [], [], [])
    answers = []
    for row, target in zip(rows, asked.targets, strict=True):
        begun = time.process_time()
        with limits_by_processor():
            cf = explainer.explain(row, target=target)
        found.seconds.append(time.process_time() - begun)
        found.proved.append(bool(cf.status == "optimal"))
        found.gaps.append(float(cf.gap))
        found.boxes.append(sum(len(tree.prices) for tree in cf.certificate.trees))
        answers.append(cf)
    shown = [cf for cf, flag in zip(answers, found.proved, strict=True) if flag][:CHECKED]
    confirmed = sum(is_confirmed(explainer, cf) for cf in shown)
    return ColumnRun(**{**vars(found), "checked": len(shown), "confirmed": confirmed})


@contextmanager
def limits_by_processor() -> Iterator[None]:
    """Let searches look at the time of the processor instead of the clock."""
    with patch.object(time, "monotonic", time.process_time):
        yield


def is_confirmed(explainer: clvq.Explainer, cf: clvq.Counterfactual) -> bool:
    """Whether the exact checker closes a proof by rational arithmetic, from its file alone."""
    writer = Writer.of(explainer)
    line = writer.line(cf)
    return bool(not writer.lowered and writer.checker.shown(exact(line)).is_closed)


def methods(name: str, cost: str) -> Iterator[str]:
    """Methods that a problem is measured with."""
    if (name, cost) != ONLY_GLOBAL:
        yield "auto"
    if (name, cost) in GLOBAL:
        yield "global"


def measure(chosen: Sequence[str], costs: Sequence[str], n: int) -> Iterator[ColumnRun]:
    """Run problems, in the columns and, where there are components, in these."""
    for name in chosen:
        spaces = (COMPONENTS, COLUMNS) if name in COMPONENTS_OF else (COLUMNS,)
        for cost in costs:
            asked = problem(name, cost, n)
            for space in spaces:
                for method in methods(name, cost):
                    yield run(asked, space, cost, method)
