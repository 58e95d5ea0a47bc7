"""Steps that constraints leave no value of: what to say of rules that a grid makes impossible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil, inf

import numpy as np

from counterlvq.problem.constraints import Condition, Constraint
from counterlvq.problem.expressions import as_constraint
from counterlvq.programs.conditions import LinearConditions
from counterlvq.programs.intervals import Interval, ValueRule
from counterlvq.tables.feature import Feature
from counterlvq.tables.feature_checks import STEPS
from counterlvq.tables.features import Features

__all__ = ["steps_left_out"]


def steps_left_out(constraints: Sequence[Constraint | str], features: Features) -> list[Feature]:
    """List the features of which constraints allow some numbers, and none on the feature's grid.

    Constraints that compare a feature with its own value, or with others, are passed over.

    Examples
    --------
    >>> features = Features([Feature("income", step=50), "age"])
    >>> [feature.name for feature in steps_left_out(["income in [3010, 3060]"], features)]
    ['income']
    >>> steps_left_out(["income >= 3010", "income <= 3060"], features)
    []
    """
    allowed: dict[int, list[Interval]] = {}
    for item in constraints:
        for condition in as_constraint(item).conditions(features):
            for j, parts in _pieces(condition):
                allowed[j] = _common(allowed.get(j, [Interval(-inf, inf)]), parts)
    found = []
    for j, pieces in sorted(allowed.items()):
        feature = features.columns[j]
        is_counted = feature.grid is not None and feature.steps == STEPS[0]
        if is_counted and pieces and not any(_has_step(piece, feature) for piece in pieces):
            found.append(feature)
    return found


def _pieces(condition: Condition) -> Iterable[tuple[int, list[Interval]]]:
    """Say which values a condition on single features allows, by feature."""
    if isinstance(condition, ValueRule) and (condition.old is None or not condition.old.any()):
        yield condition.column, list(condition.parts)
    if not isinstance(condition, LinearConditions):
        return
    for new, old, value in zip(condition.A, condition.R, condition.v, strict=True):
        at = np.flatnonzero(new)
        if len(at) == 1 and not old.any():
            end = float(value / new[at[0]])
            low = end if condition.equality or new[at[0]] < 0 else -inf
            high = end if condition.equality or new[at[0]] > 0 else inf
            yield int(at[0]), [Interval(low, high)]


def _common(some: Iterable[Interval], others: Sequence[Interval]) -> list[Interval]:
    both = [Interval(max(a.lower, b.lower), min(a.upper, b.upper)) for a in some for b in others]
    return [piece for piece in both if piece.lower <= piece.upper]


def _has_step(piece: Interval, feature: Feature) -> bool:
    if abs(piece.lower) == inf or abs(piece.upper) == inf or feature.lattice is None:
        return True
    step, parts = feature.lattice
    tick = Fraction(step) / Fraction(parts)
    # In decimals as they are written: 0.3 is a multiple of 0.1.
    low, high = (Fraction(repr(float(end))) for end in piece[:2])
    return ceil(low / tick) * tick <= high
