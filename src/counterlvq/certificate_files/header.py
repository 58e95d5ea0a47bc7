"""The header of a certificate file: what the model computes, and what was asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from counterlvq.certificates.files import Numbering
from counterlvq.errors import NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, key_of, plain
from counterlvq.numeric.quadratic_forms import QuadraticForm
from counterlvq.pipelines import LevelsPart, NumericPart, TableMap
from counterlvq.prepared import Prepared
from counterlvq.problem.at_most import AtMost
from counterlvq.problem.confidence import Confidence, Noise
from counterlvq.problem.constraints import Condition, Constraint
from counterlvq.problem.data_ranges import AsSeen
from counterlvq.problem.expressions import as_constraint
from counterlvq.problem.plausibility import Plausible
from counterlvq.problem.similarity import Drift, RelativeSimilarity
from counterlvq.programs.conditions import (
    Conditional,
    Implication,
    LargestChange,
    LevelRule,
    LevelWay,
    LinearConditions,
    QuadraticCondition,
)
from counterlvq.programs.intervals import Interval, LeastChange, ValueRule
from counterlvq.tables.feature import Feature
from counterlvq.tables.feature_checks import STEPS
from counterlvq.tables.features import Features
from counterlvq.tables.missing import Fills
from counterlvq.types import Kind, Scores

__all__ = ["model_values", "numbering_of", "question_values"]

Values = dict[str, Any]


def model_values(view: Prepared) -> Values:
    """Say what the model computes: prototypes, labels, metrics, offsets, and the map in front."""
    if view.source.scales:
        raise NotSupportedError(
            f"the pipeline sees columns through {', '.join(view.source.scales)}, so that costs are "
            f"differences of numbers that are not rational, and no file states them exactly. "
            f"Verify such answers with `explainer.verify`."
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
            parts.append({"kind": "levels", "weights": [_entries(row) for row in part.weights]})
        elif isinstance(part, NumericPart):
            weights = _entries(part.weights)
            if part.at is not None:
                weights = [[part.at, slope] for _, slope in weights]
            parts.append({"kind": "number", "base": float(part.base), "weights": weights})
    return {"offset": table_map.offset.tolist(), "parts": parts}


def question_values(
    view: Prepared, confidence: Confidence | None = None, tolerance: float | None = None
) -> Values:
    """Say what was asked: columns and their grids, cost, constraints, margin and tolerance.

    That of a confidence is the gap of its parts, where these are searched in another way.
    """
    asked = view.asked
    prices, features = asked.prices, asked.features
    lead = float(asked.margin or 0.0)
    return {
        "columns": [_column(feature, view.source.fills) for feature in features],
        "cost": {
            **_weights(prices.weights),
            "switches": [
                {"column": j, "prices": table.tolist()} for j, table in prices.switches.items()
            ],
            "quadratic": None if prices.form.is_flat else _form(prices.form),
        },
        "constraints": [
            part
            for item in asked.constraints
            for part in _constraint(as_constraint(item), features, view.model.classes.tolist())
        ],
        "margin": lead if confidence is None else 0.0,
        "tolerance": float(view.answers.closing_gap if tolerance is None else tolerance),
        **({} if confidence is None else {"confidence": _sure(confidence, lead, len(features))}),
    }


def _sure(confidence: Confidence, lead: float, width: int) -> Values:
    """State a confidence as a rule about scores; a probability is a lead, rounded down."""
    if isinstance(confidence, RelativeSimilarity):
        return {"kind": "similarity", "theta": float(confidence.theta)}
    if isinstance(confidence, Drift):
        return {"kind": "drift", "radius": float(confidence.radius)}
    if isinstance(confidence, Noise):
        given = confidence.by_position
        weights = np.ones(width) if given is None else given
        known = [None if weight == np.inf else weight for weight in weights.tolist()]
        told = {"norm": confidence.norm, "weights": known}
        return {"kind": "noise", "radius": float(confidence.radius), **told}
    return {"kind": "lead", "value": lead}


def _weights(ways: Floats) -> Values:
    """Weights upwards, and those downwards where they differ."""
    up, down = ways.tolist()
    return {"weights": up} if up == down else {"weights": up, "decrease": down}


def _column(feature: Feature, fills: Fills) -> Values:
    if not feature.is_number:
        levels = [_word(level) for level in feature.levels]
        return {"name": feature.name, "kind": "levels", "levels": levels}
    out = {"name": feature.name, "kind": "real", **_ends(*feature.range)}
    kind = "grid" if feature.steps == STEPS[0] else "steps"
    if feature.lattice is None:
        return out
    step, parts = map(float, feature.lattice)
    out |= {"kind": kind, "step": step, "parts": parts}
    # What stands in for a missing value may be no whole number, and steps do not count from it.
    is_whole = feature.kind in (Kind.WHOLE, Kind.DATE) and kind == "steps"
    fill = float(fills.values.get(feature.name, 0.0)) if is_whole else 0.0
    return out if fill.is_integer() else {**out, "whole": True}


def _ends(lower: float, upper: float) -> Values:
    ends = {"lower": float(lower), "upper": float(upper)}
    return {key: end if np.isfinite(end) else None for key, end in ends.items()}


def _form(form: QuadraticForm) -> Values:
    """State a quadratic form as it was given: by a matrix, a diagonal or a factor."""
    if form.matrix is not None:
        return {"kind": "matrix", "values": form.matrix.tolist()}
    if form.diagonal is not None:
        return {"kind": "diagonal", "values": form.diagonal.tolist()}
    return {"kind": "factor", "values": form.root.tolist()}


def _constraint(item: Constraint, features: Features, classes: list[Any]) -> list[Values]:
    """State a constraint; ranges as usual in the data stretch to the inputs outside of them."""
    if isinstance(item, AsSeen):
        at = features.number(item.feature, "AsSeen")
        return [{"kind": "seen", "column": at, **_ends(item.lower, item.upper)}]
    if isinstance(item, AtMost):
        limit = item.limit(features)
        return [{"kind": "at most", "count": limit.most, "columns": sorted(limit.columns)}]
    if isinstance(item, Plausible):
        return [_plausible(item, features, classes)]
    if not item.is_stated:
        raise NotSupportedError(
            f"certificate files have no kind for {item!r}. Verify such answers with "
            f"`explainer.verify`."
        )
    parts = item.conditions(features)
    return [stated for part in parts for stated in _conditions(part, features)]


def _plausible(item: Plausible, features: Features, classes: list[Any]) -> Values:
    """State ellipsoids of labels of the model, each with the directions in which it is flat."""
    places = {key_of(plain(label)): c for c, label in enumerate(classes)}
    known = [each for each in item.ellipsoids if key_of(plain(each.label)) in places]
    return {
        "kind": "plausible",
        "columns": [features.number(key, "Plausible") for key in item.features],
        "ellipsoids": [
            {
                "class": places[key_of(plain(each.label))],
                "square": {"kind": "factor", "values": each.factor.tolist()},
                "center": each.center.tolist(),
                "value": float(each.value),
                "flat": [
                    [row, float(level)]
                    for row, level in zip(each.flat.tolist(), each.level.tolist(), strict=True)
                ],
            }
            for each in known
        ],
    }


def _conditions(condition: Condition, features: Features) -> list[Values]:
    if isinstance(condition, LinearConditions):
        return _rows(condition, features)
    if isinstance(condition, LevelRule | LevelWay | ValueRule):
        return [_rule(condition)]
    if isinstance(condition, Implication):
        then = condition.then
        stated = [_rule(then)] if isinstance(then, LevelRule) else _rows(then, features)
        return [{"kind": "implies", "when": _rule(condition.when), "then": stated}]
    if isinstance(condition, QuadraticCondition):
        return [_quadratic(condition)]
    if isinstance(condition, LargestChange):
        return _heights(condition, features)
    return _least(condition, features)


def _heights(condition: LargestChange, features: Features) -> list[Values]:
    if condition.switches:
        raise NotSupportedError(
            "certificate files have no kind for the largest change where features have levels. "
            "Verify such answers with `explainer.verify`."
        )
    width = len(features)
    others = (j for j in range(width) if j != condition.column)
    return _rows(condition.as_rows(width, others), features)


def _least(condition: LeastChange, features: Features) -> list[Values]:
    if condition.by == 0:
        return []
    # Changes are values counted from the input: by so much less, by nothing, or by so much more.
    parts = [Interval(-np.inf, -condition.by), Interval(0.0, 0.0), Interval(condition.by, np.inf)]
    own = np.zeros(len(features))
    own[condition.column] = 1.0
    return [_rule(ValueRule(condition.column, tuple(parts), own))]


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


def _rule(rule: LevelRule | LevelWay | ValueRule) -> Values:
    column = int(rule.column)
    if isinstance(rule, LevelWay):
        allowed = [sorted(map(int, codes)) for codes in rule.codes]
        return {"kind": "ways", "column": column, "allowed": allowed}
    if isinstance(rule, LevelRule):
        return {"kind": "levels", "column": column, "allowed": sorted(map(int, rule.codes))}
    parts = []
    for part in rule.parts:
        flags = {"above": part.is_above, "below": part.is_below}
        is_left_out = {key: True for key, flag in flags.items() if flag}
        parts.append({**_ends(part.lower, part.upper), **is_left_out})
    old = [] if rule.old is None else _entries(rule.old)
    return {"kind": "values", "column": column, "parts": parts, "old": old}


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
        "columns": [int(j) for j in columns],
        "square": form,
        "center": center.tolist(),
        "linear": linear.tolist(),
        "value": float(value),
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
