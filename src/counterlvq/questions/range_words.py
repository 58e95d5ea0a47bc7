"""Ranges in words: ends rounded inwards, and never past the answer that they belong to."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from math import floor, inf
from typing import Any

from counterlvq.presentation.wording import Wording
from counterlvq.safe_text import shown_text
from counterlvq.tables.feature import Feature
from counterlvq.types import Kind

__all__ = ["range_words", "value_range"]

# Significant digits that are tried for an end that is shown.
_DIGITS = range(4, 18)


def range_words(feature: Feature, found: Any, wording: Wording, shown: float | None) -> str:
    """Say in which values a feature may be; ends are rounded inwards, and not past `shown`.

    Examples
    --------
    >>> range_words(Feature("income", unit="EUR"), (2983.0299, 5032.4), Wording(), 2983.03)
    'income from 2,983.03 to 5,032 EUR'
    >>> range_words(Feature("income", decimals=0), (3855.555555557041, inf), Wording(), 3856.0)
    'income of at least 3,856'
    >>> range_words(Feature("hue"), (1.28, 1.2800000000000002), Wording(), 1.28)
    'hue at 1.28'
    >>> range_words(Feature("term", "whole", step=12), frozenset({12, 24, 36}), Wording(), 12.0)
    'term from 12 to 36 in steps of 12'
    """
    return f"{shown_text(feature.spoken)} {value_range(feature, found, wording, shown)}"


def value_range(feature: Feature, found: Any, wording: Wording, shown: float | None) -> str:
    """Say the same without the name of the feature."""
    unit = f" {shown_text(feature.unit)}" if feature.unit else ""
    if not isinstance(found, tuple):
        values = sorted(found) if feature.is_number else sorted(found, key=feature.code)
        is_whole = feature.is_number and not feature.is_real
        last = (len(values) - 1) * (feature.grid or 1.0)
        if is_whole and len(values) > 2 and values[-1] - values[0] == last:
            found = values[0], values[-1]
        else:
            parts = [_value(feature, value, wording) for value in values]
            return f"{' or '.join(parts)}{unit if feature.is_number else ''}"
    low, high = (_shown_end(feature, found, side, wording, shown) for side in (0, 1))
    unit = "" if feature.kind is Kind.DATE else unit
    if found[0] == found[1]:
        return f"at {low}{unit}"
    if feature.is_real and shown is not None and _is_hair(*found) and found[0] <= shown <= found[1]:
        return f"at {_value(feature, shown, wording)}{unit}"
    if feature.kind is Kind.WHOLE and feature.grid not in (None, 1.0):
        unit += f" in steps of {wording.value(feature, feature.grid)}"
    if low is None:
        return "anywhere" if high is None else f"up to {high}{unit}"
    return f"of at least {low}{unit}" if high is None else f"from {low} to {high}{unit}"


def _is_hair(low: float, high: float) -> bool:
    """Whether the ends of a range differ in their last digits at most: one value for a reader."""
    return f"{low:.14g}" == f"{high:.14g}"


def _value(feature: Feature, value: Any, wording: Wording) -> str:
    if feature.is_number:
        return wording.value(feature, value)
    words = feature.words(value)
    if feature.kind is Kind.BOOLEAN and words == str(value):
        return "yes" if value else "no"
    return shown_text(words)


def _shown_end(
    feature: Feature, ends: tuple[Any, Any], side: int, wording: Wording, shown: float | None
) -> str | None:
    end = ends[side]
    if isinstance(end, float) and abs(end) == inf:
        return None
    low, high = ends
    if feature.is_real and low != high:
        number = Decimal(repr(float(end)))  # what leads back to the end, typed in again
        for digits in _DIGITS:
            place = Decimal(1).scaleb(number.adjusted() - digits + 1) if number else Decimal(1)
            rounded = float(number.quantize(place, ROUND_FLOOR if side else ROUND_CEILING))
            is_past = shown is not None and (shown > rounded if side else shown < rounded)
            apart = abs(Decimal(rounded) - number)
            if rounded == end or (not is_past and apart * 50 <= Decimal(min(high - low, 1e300))):
                end = rounded
                break
    elif feature.kind is Kind.REAL and shown is not None and low <= shown <= high:
        end = _on_grid(feature, float(end), shown)
    return _value(feature, end, wording)


def _on_grid(feature: Feature, end: float, shown: float) -> float:
    """Take the last value of a grid that lies between an answer on it and an end."""
    if feature.lattice is None:
        return end  # the one value of its range
    step, start = Fraction(*feature.lattice), Fraction(repr(shown))
    count = floor(abs(Fraction(repr(end)) - start) / step)
    return float(start + (count if end > shown else -count) * step)
