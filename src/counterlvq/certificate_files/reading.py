"""Read a certificate file back as a question that this package can check by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.memory import FLOAT
from counterlvq.numeric.quadratic_forms import QuadraticForm
from counterlvq.pipelines import LevelsPart, NumericPart, TableMap, TableModel
from counterlvq.pipelines.source import source_of
from counterlvq.prepared import Prepared
from counterlvq.problem.constraints import Condition, Constraint
from counterlvq.problem.cost_terms import Prices
from counterlvq.problem.data_ranges import AsSeen
from counterlvq.programs.conditions import (
    Implication,
    LevelRule,
    LevelWay,
    LinearConditions,
    QuadraticCondition,
    StatedQuadratic,
)
from counterlvq.programs.intervals import Interval, ValueRule
from counterlvq.tables.feature import Feature
from counterlvq.tables.feature_checks import STEPS
from counterlvq.tables.features import Features
from counterlvq.types import Kind, Method

__all__ = ["Stated", "view_of"]

Values = dict[str, Any]
# Bytes that a question may take in arrays; larger ones are left to rational numbers.
_MOST_WIDE = 1 << 28


@final
@dataclass(frozen=True, eq=False)
class Stated(Constraint):
    """A constraint that a file states in numbers."""

    parts: tuple[Condition, ...]

    def conditions(self, features: Features) -> tuple[Condition, ...]:
        """Return the conditions as they stand in the file."""
        return self.parts


@final
@dataclass(frozen=True, eq=False)
class _Asked:
    """What a file says was asked."""

    constraints: tuple[Constraint | str, ...]
    features: Features
    prices: Prices
    margin: float | None
    method: Method
    gap: float
    is_sure: bool = False  # questions with a confidence are left to rational numbers


def view_of(model: Values, question: Values) -> Prepared:
    """Prepare the question of a file, as an explainer prepares its own."""
    _refuse_wide(model, question)
    if "confidence" in question:
        raise NotSupportedError("what a confidence asks of answers is left to rational numbers")
    features = Features(_feature(column) for column in question["columns"])
    read = _model(model, features)
    source = source_of(read, features)
    asked = _Asked(
        tuple(_constraint(item, features) for item in question["constraints"]),
        source.features,
        _prices(question["cost"], features),
        question["margin"] or None,
        Method.AUTO,
        question["tolerance"],
    )
    return Prepared(asked, source)


def _refuse_wide(model: Values, question: Values) -> None:
    """Refuse what is short in a file, which leaves zeros out, and wide in arrays."""
    width = len(question["columns"])
    conditions = 0
    for item in question["constraints"]:
        conditions += len(item["then"]) + 1 if item["kind"] == "implies" else 1
    parts = [] if model["map"] is None else model["map"]["parts"]
    rows = sum(len(part["weights"]) if part["kind"] == "levels" else 1 for part in parts)
    size = FLOAT * (2 * width * conditions + rows * len(model["prototypes"][0]))
    if size > _MOST_WIDE:
        raise NotSupportedError(
            f"the question needs {size:,} bytes as arrays; expected at most {_MOST_WIDE:,}"
        )


def _feature(column: Values) -> Feature:
    name = column["name"]
    if column["kind"] == "levels":
        return Feature(name, levels=column["levels"])
    lower, upper = _ends(column)
    if column["kind"] == "real":
        return Feature(name, lower=lower, upper=upper)
    steps = STEPS[column["kind"] == "steps"]
    if column["parts"] == 1 and column["step"] == int(column["step"]):
        kind, step = Kind.WHOLE if column.get("whole") else Kind.REAL, int(column["step"])
        return Feature(name, kind, step=step, steps=steps, lower=lower, upper=upper)
    decimals = round(np.log10(column["parts"]))
    if column["step"] == 1 and column["parts"] == 10.0**decimals and not column.get("whole"):
        return Feature(name, decimals=decimals, steps=steps, lower=lower, upper=upper)
    return _with_parts(column, steps)


def _with_parts(column: Values, steps: str) -> Feature:
    """Describe a column with steps such as 0.5, or refuse steps that are no decimals."""
    name, (lower, upper) = column["name"], _ends(column)
    try:
        step = column["step"] / column["parts"]
        found = Feature(name, Kind.REAL, step=step, steps=steps, lower=lower, upper=upper)
    except InvalidInputError:
        found = None
    stated = (column["step"], column["parts"])
    if found is None or found.lattice != stated or column.get("whole"):
        raise NotSupportedError(f"column {name!r} has steps that are neither whole nor decimals")
    return found


def _ends(told: Values) -> tuple[float, float]:
    lower = -np.inf if told["lower"] is None else told["lower"]
    return lower, np.inf if told["upper"] is None else told["upper"]


def _model(values: Values, features: Features) -> PrototypeModel | TableModel:
    metric = values["metric"]
    omegas = metric.get("factor", metric.get("factors"))
    if metric["kind"] == "local":
        omegas = [np.array(omega) for omega in omegas]
    elif omegas is not None:
        omegas = np.array(omegas)
    offsets = None if values["offsets"] is None else values["offsets"]["values"]
    names = features.names if values["map"] is None else None
    model = PrototypeModel(values["prototypes"], values["labels"], omegas, names, offsets)
    if values["map"] is None:
        return model
    parts: list[NumericPart | LevelsPart] = []
    for feature, part in zip(features, values["map"]["parts"], strict=True):
        rows = part["weights"] if part["kind"] == "levels" else [part["weights"]]
        weights = np.zeros((len(rows), model.n_features))
        for row, entries in zip(weights, rows, strict=True):
            for c, slope in entries:
                row[c] = slope
        if part["kind"] == "levels":
            parts.append(LevelsPart(feature.name, feature.levels, weights))
        elif len(rows[0]) == 1:
            ((c, slope),) = rows[0]
            parts.append(NumericPart(feature.name, np.array([slope]), part["base"], at=c))
        else:
            parts.append(NumericPart(feature.name, weights[0], part["base"]))
    offset = np.array(values["map"]["offset"], dtype=np.float64)
    return TableModel(TableMap(features.names, tuple(parts), offset, named=True), model, features)


def _prices(cost: Values, features: Features) -> Prices:
    numbers = sum(feature.is_number for feature in features)
    stated = cost["quadratic"]
    if stated is None:
        form = QuadraticForm.of_diagonal("the cost", np.zeros(numbers))
    else:
        form = _form(stated, numbers)
    switches = {each["column"]: np.array(each["prices"]) for each in cost["switches"]}
    ways = [cost["weights"], cost.get("decrease", cost["weights"])]
    return Prices(np.array(ways, dtype=np.float64), form, switches, missing={})


def _form(stated: Values, width: int) -> QuadraticForm:
    values = np.array(stated["values"], dtype=np.float64)
    if stated["kind"] == "matrix":
        return QuadraticForm.of_matrix("a matrix", values, width)
    if stated["kind"] == "diagonal":
        return QuadraticForm.of_diagonal("a diagonal", values)
    return QuadraticForm.of_factor("a factor", values.reshape(-1, width), width)


def _constraint(item: Values, features: Features) -> Constraint:
    if item["kind"] == "at most":
        raise NotSupportedError("a limit on how many columns change is checked exactly alone")
    if item["kind"] == "plausible":
        raise NotSupportedError("a union of ellipsoids is checked exactly alone")
    if item["kind"] == "seen":
        return AsSeen(features.names[item["column"]], *_ends(item))
    return Stated((_condition(item, features),))


def _condition(item: Values, features: Features) -> Condition:
    width = len(features)
    if item["kind"] in ("linear", "stays"):
        return _rows([item], width)
    if item["kind"] in ("levels", "values"):
        return _rule(item, width)
    if item["kind"] == "ways":
        return LevelWay(item["column"], tuple(map(frozenset, item["allowed"])))
    if item["kind"] == "implies":
        then = item["then"]
        is_rule = then[0]["kind"] == "levels"
        if len(then) > 1 and any(each["kind"] == "levels" for each in then):
            raise NotSupportedError("an implication of several rules is checked exactly alone")
        stated = _level_rule(then[0]) if is_rule else _rows(then, width)
        return Implication(_rule(item["when"], width), stated)
    columns = np.array(item["columns"], dtype=np.intp)
    form = StatedQuadratic(
        _form(item["square"], columns.size),
        columns,
        np.array(item["center"], dtype=np.float64),
        np.array(item["linear"], dtype=np.float64),
        float(item["value"]),
    )
    return QuadraticCondition.of(form, width)


def _level_rule(item: Values) -> LevelRule:
    return LevelRule(item["column"], frozenset(item["allowed"]))


def _rule(item: Values, width: int) -> LevelRule | ValueRule:
    if item["kind"] == "levels":
        return _level_rule(item)
    parts = [
        Interval(*_ends(part), part.get("above", False), part.get("below", False))
        for part in item["parts"]
    ]
    old = np.zeros(width)
    for j, factor in item["old"]:
        old[j] = factor
    return ValueRule(item["column"], tuple(sorted(parts)), old if item["old"] else None)


def _rows(items: list[Values], width: int) -> LinearConditions:
    A, R = np.zeros((len(items), width)), np.zeros((len(items), width))
    for n, item in enumerate(items):
        if item["kind"] == "stays":
            A[n, item["column"]], R[n, item["column"]] = 1.0, -1.0
            continue
        for side, key in ((A, "new"), (R, "old")):
            for j, value in item[key]:
                side[n, j] = value
    v = np.array([item.get("value", 0.0) for item in items], dtype=np.float64)
    is_equality = items[0].get("sense", "==") == "=="
    return LinearConditions(A, R, v, is_equality)
