"""The header of a certificate file: what the model computes, and what was asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from counterlvq.certificates.files import Numbering
from counterlvq.errors import NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, plain
from counterlvq.numeric.quadratic_forms import QuadraticForm
from counterlvq.pipelines import LevelsPart, NumericPart, TableMap
from counterlvq.prepared import Prepared
from counterlvq.problem.expressions import as_constraint
from counterlvq.programs.conditions import (
    Conditional,
    Implication,
    LevelRule,
    LinearConditions,
    QuadraticCondition,
)
from counterlvq.tables.feature_checks import STEPS
from counterlvq.tables.features import Feature, Features
from counterlvq.types import Kind, Scores

__all__ = ["model_values", "numbering_of", "question_values"]

Values = dict[str, Any]


def model_values(view: Prepared) -> Values:
    """Say what the model computes: prototypes, labels, metrics, offsets, and the map in front."""
    if view.source.scales:
        raise NotSupportedError(
            f"the pipeline sees columns through {', '.join(view.source.scales)}, and certificate "
            f"files have no kind for that yet. Verify such answers with `explainer.verify`."
        )
    table_map, model = _behind(view)
    return {
        "classes": [_word(label) for label in model.classes.tolist()],
        "labels": model.class_index.tolist(),
        "prototypes": model.prototypes.tolist(),
        "metric": _metric(model),
        "offsets": _offsets(model),
        "map": None if table_map is None else _map(table_map),
    }


def _offsets(model: PrototypeModel) -> Values | None:
    if model.offsets is None:
        return None
    is_shifted = model.meaning.scores is Scores.SHIFTED
    kind = "score up to a common shift" if is_shifted else "added to the squared distance"
    return {"kind": kind, "values": model.offsets.tolist()}


def _behind(view: Prepared) -> tuple[TableMap | None, PrototypeModel]:
    """Find the model as it was read, and the map in front of it, if there is one."""
    source = view.source
    if source.behind is not None:
        return source.behind.table_map, source.behind.model
    doubt = source.rounding
    if doubt is not None and doubt.table_map is not None:
        return doubt.table_map, doubt.arithmetic.model
    return None, source.model


def _metric(model: PrototypeModel) -> Values:
    if model.omegas is None:
        return {"kind": "plain"}
    if isinstance(model.omegas, tuple):
        return {"kind": "local", "factors": [omega.tolist() for omega in model.omegas]}
    kind = "diagonal" if model.omegas.ndim == 1 else "shared"
    return {"kind": kind, "factor": model.omegas.tolist()}


def _map(table_map: TableMap) -> Values:
    parts: list[Values] = []
    for part in table_map.parts:
        if isinstance(part, LevelsPart):
            parts.append({"kind": "levels", "weights": part.weights.tolist()})
        elif isinstance(part, NumericPart):
            told = {"kind": "number", "base": float(part.base), "weights": part.weights.tolist()}
            parts.append(told if part.at is None else {**told, "at": part.at})
    return {"offset": table_map.offset.tolist(), "parts": parts}


def question_values(view: Prepared) -> Values:
    """Say what was asked: columns and their grids, cost, constraints, margin and tolerance."""
    asked = view.asked
    if asked.is_sure:
        raise NotSupportedError(
            "certificate files have no kind for a confidence. Verify such answers with "
            "`explainer.verify`."
        )
    prices, features = asked.prices, asked.features
    return {
        "columns": [_column(feature) for feature in features],
        "cost": {
            "weights": prices.weights.tolist(),
            "switches": [
                {"column": j, "prices": table.tolist()} for j, table in prices.switches.items()
            ],
            "quadratic": None if prices.form.is_flat else _form(prices.form),
        },
        "constraints": [
            part
            for item in asked.constraints
            for condition in as_constraint(item).conditions(features)
            for part in _conditions(condition, features)
        ],
        "margin": float(asked.margin or 0.0),
        "tolerance": float(view.answers.closing_gap),
    }


def _column(feature: Feature) -> Values:
    out: Values = {"name": feature.name, "kind": "real", "lower": None, "upper": None}
    lower, upper = feature.range
    if np.isfinite(lower):
        out["lower"] = float(lower)
    if np.isfinite(upper):
        out["upper"] = float(upper)
    if feature.steps != STEPS[0]:
        raise NotSupportedError(
            f"feature {feature.name!r} has steps of change, which certificate files have no kind "
            f"for. Verify such answers with `explainer.verify`."
        )
    if not feature.is_number:
        return {**out, "kind": "levels", "levels": [_word(level) for level in feature.levels]}
    if feature.kind in (Kind.WHOLE, Kind.DATE):
        return {**out, "kind": "grid", "step": float(feature.step), "parts": 1.0}
    if feature.decimals is not None:
        return {**out, "kind": "grid", "step": 1.0, "parts": 10.0**feature.decimals}
    return out


def _form(form: QuadraticForm) -> Values:
    """State a quadratic form as it was given: by a matrix, a diagonal or a factor."""
    if form.matrix is not None:
        return {"kind": "matrix", "values": form.matrix.tolist()}
    if form.diagonal is not None:
        return {"kind": "diagonal", "values": form.diagonal.tolist()}
    return {"kind": "factor", "values": form.root.tolist()}


def _conditions(condition: Any, features: Features) -> list[Values]:
    if isinstance(condition, LinearConditions):
        return _rows(condition, features)
    if isinstance(condition, LevelRule):
        return [_rule(condition)]
    if isinstance(condition, Implication) and isinstance(condition.when, LevelRule):
        then = condition.then
        stated = [_rule(then)] if isinstance(then, LevelRule) else _rows(then, features)
        return [{"kind": "implies", "when": _rule(condition.when), "then": stated}]
    if isinstance(condition, QuadraticCondition):
        return [_quadratic(condition)]
    what = condition.when if isinstance(condition, Implication) else condition
    raise NotSupportedError(
        f"a constraint states a {type(what).__name__}, which certificate files have no kind "
        f"for. Verify such answers with `explainer.verify`."
    )


def _rows(rows: LinearConditions, features: Features) -> list[Values]:
    is_number = np.array([feature.is_number for feature in features], dtype=bool)
    out: list[Values] = []
    for new, old, value in zip(rows.A, rows.R, rows.v, strict=True):
        about_levels = np.flatnonzero((new != 0) & ~is_number)
        if about_levels.size:
            out.append({"kind": "stays", "column": int(about_levels[0])})
            continue
        out.append(
            {
                "kind": "linear",
                "new": _entries(new),
                "old": _entries(old),
                "sense": "==" if rows.equality else "<=",
                "value": float(value),
            }
        )
    return out


def _entries(row: Floats) -> list[list[Any]]:
    return [[int(j), float(row[j])] for j in np.flatnonzero(row)]


def _rule(rule: LevelRule) -> Values:
    return {"kind": "levels", "column": int(rule.column), "allowed": sorted(map(int, rule.codes))}


def _quadratic(condition: QuadraticCondition) -> Values:
    stated = condition.stated
    if stated is None:
        columns = np.flatnonzero(condition.G.any(axis=0) | (condition.h != 0))
        G = condition.G[:, columns]
        if not condition.g.any():
            form: Values = {"kind": "factor", "values": G.tolist()}
            center = np.zeros(columns.size)
            linear, value = condition.h[columns], condition.c
            return _written(form, columns.tolist(), center, linear, value)
        raise NotSupportedError(
            "a constraint states a quadratic condition by a shifted factor, which certificate "
            "files have no kind for. State it with `Quadratic`."
        )
    columns = stated.columns
    return _written(
        _form(stated.form), columns.tolist(), stated.center, stated.linear, stated.value
    )


def _written(
    form: Values, columns: Sequence[int], center: Floats, linear: Floats, value: float
) -> Values:
    return {
        "kind": "quadratic",
        "form": {
            **form,
            "columns": [int(j) for j in columns],
            "center": center.tolist(),
            "linear": linear.tolist(),
            "value": float(value),
        },
    }


def numbering_of(view: Prepared) -> Numbering:
    """Count the linear conditions as a file does, and say which row of a program is which.

    In a file they come in the order of the constraints, then of the columns; a program sorts
    them by what a solver does with them.
    """
    asked, coordinates = view.asked, view.source.coordinates
    stated = [part for item in asked.constraints
              for part in as_constraint(item).conditions(asked.features)]  # fmt: skip
    conditions = [part for item in stated for part in coordinates.spread(item)]
    conditions += coordinates.own_conditions
    several: dict[bool, list[int]] = {False: [], True: []}
    conditional: list[int] = []
    at = 0
    for item in conditions:
        if isinstance(item, Conditional):
            conditional += range(at, at + item.rows.v.size)
            at += item.rows.v.size
        elif isinstance(item, LinearConditions):
            single = np.count_nonzero(item.A, axis=1) == 1
            several[item.equality] += (at + np.flatnonzero(~single)).tolist()
            at += item.v.size
    return Numbering(
        np.array(several[False] + conditional, dtype=np.int64),
        np.array(several[True], dtype=np.int64),
        np.asarray(coordinates.numbers, dtype=np.int64),
    )


def _word(value: Any) -> Any:
    """Write a label or a level: what JSON does not hold becomes text."""
    told = plain(value)
    return told if isinstance(told, str | bool) else str(told)
