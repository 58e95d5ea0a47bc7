"""Comparisons of one number with listed values or a threshold, as sets of its values."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import Floats, told
from counterlvq.programs.intervals import Interval, ValueRule, complement, points
from counterlvq.tables.feature import Feature
from counterlvq.types import Kind

__all__ = ["number_in", "number_test", "value_rule"]

_TURNED = {"<=": ">=", ">=": "<=", "<": ">", ">": "<"}


def value_rule(
    feature: Feature, at: int, values: Sequence[Any], *, negated: bool, asked: str
) -> ValueRule:
    """Restrict a number to listed values, or to all others."""
    listed = points(number_in(feature, value, asked) for value in values)
    return ValueRule(at, complement(listed) if negated else listed)


def number_in(feature: Feature, value: Any, asked: str) -> float:
    """Read a value that a number or a date is compared with."""
    number = feature.number(value)
    if number is None:
        wanted = "a date such as '2024-05-31'" if feature.kind is Kind.DATE else "a finite number"
        raise InvalidInputError(
            f"{asked}: {told(value)} is compared with {feature.name!r}, which is {feature.kind}; "
            f"expected {wanted}."
        )
    return number


def number_test(at: int, factor: float, old: Floats, constant: float, sense: str) -> ValueRule:
    """State ``factor * y_at + old'x + constant  sense  0`` as values of one number."""
    end = -constant / factor
    start = None if not old.any() else np.asarray(-old / factor)
    if factor < 0:
        sense = _TURNED.get(sense, sense)
    parts = {
        "<=": Interval(-inf, end),
        "<": Interval(-inf, end, is_below=True),
        ">=": Interval(end, inf),
        ">": Interval(end, inf, is_above=True),
        "==": Interval(end, end),
    }
    return ValueRule(at, (parts[sense],), start)
