"""What another level costs: by the pair, by the step along a list, or by the difference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import Floats
from counterlvq.problem.costs import Cost
from counterlvq.programs.conditions import LevelRule, LinearConditions
from counterlvq.safe_text import shown_repr
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features

__all__ = ["level_prices", "refuse_unpriced"]

# Pairs that an error lists.
_LISTED = 8


def level_prices(cost: Cost, feature: Feature, ways: tuple[float, float]) -> Floats:
    """Price of each switch, from the level of the row to that of the column; NaN without one.

    `ways` are the weights upwards and downwards, for levels that have an order. For others there
    is no up and down, and a switch costs the weight.
    """
    stated = cost.switches.get(feature.name, feature.switches)
    if isinstance(stated, Mapping):
        return _of_pairs(cost, feature, stated)
    count = len(feature.levels)
    if feature.ordered:
        places = np.arange(count, dtype=np.float64)
        up, down = ways if stated is None else (float(stated), float(stated))
        steps = places[None, :] - places[:, None]
        return np.asarray(np.where(steps > 0, up, down) * np.abs(steps))
    if stated is None and feature.has_numbers:
        exact = [Fraction(level) for level in feature.levels]
        rises = np.array([[after > before for after in exact] for before in exact])
        return np.asarray(np.where(rises, *ways) * _differences(feature))
    if stated is None and ways[0] != ways[1]:
        raise InvalidInputError(
            f"feature {feature.name!r} has levels without an order, and increase and decrease give "
            f"it {ways[0]:g} up and {ways[1]:g} down; expected features that can go up and down. "
            f"Price its pairs of levels with switches={{{feature.name!r}: ...}}."
        )
    return np.full((count, count), ways[0] if stated is None else float(stated))


def _differences(feature: Feature) -> Floats:
    """Differences of levels that are numbers, each rounded once."""
    exact = [Fraction(level) for level in feature.levels]
    try:
        out = np.array([[float(abs(a - b)) for b in exact] for a in exact])
    except OverflowError:
        out = np.full((len(exact), len(exact)), np.inf)
    apart = ~np.eye(len(exact), dtype=bool)
    if not (np.isfinite(out).all() and (out[apart] > 0).all()):
        raise InvalidInputError(
            f"feature {feature.name!r} has levels that are numbers, and their differences are no "
            f"finite numbers above 0; expected ones that a switch can cost. Name a price with "
            f"switches={{{feature.name!r}: ...}}."
        )
    return out


def _of_pairs(cost: Cost, feature: Feature, stated: Mapping[tuple[Any, Any], float]) -> Floats:
    count, default = len(feature.levels), cost.default
    if isinstance(default, Mapping):
        default = default.get(feature.name)
    pairs = {}
    for (before, after), price in stated.items():
        codes = feature.code(before), feature.code(after)
        if min(codes) < 0:
            bad = before if codes[0] < 0 else after
            shown = ", ".join(map(repr, feature.levels[:8]))
            raise InvalidInputError(
                f"switches[{feature.name!r}] names {bad!r}, which is no level; expected one of: "
                f"{shown}."
            )
        pairs[codes] = float(price)
    table = np.full((count, count), np.nan if default is None else float(default))
    np.fill_diagonal(table, 0.0)
    for (before, after), price in pairs.items():
        table[before, after] = price
        if (after, before) not in pairs:
            table[after, before] = price
    return table


def refuse_unpriced(
    missing: Mapping[int, NDArray[np.bool_]], features: Features, conditions: Iterable[Any]
) -> None:
    """Refuse pairs of levels without a price, unless the constraints keep an answer off them."""
    stated = list(conditions)
    for j, lacks in missing.items():
        feature, allowed = features.columns[j], set(range(len(features.columns[j].levels)))
        for item in stated:
            if isinstance(item, LevelRule) and item.column == j:
                allowed &= item.codes
            if isinstance(item, LinearConditions) and item.A[:, j].any():
                allowed = set()  # of a feature with levels it says that it stays as it is
        pairs = [
            (feature.levels[before], feature.levels[after])
            for before, after in product(range(len(feature.levels)), sorted(allowed))
            if lacks[before, after]
        ]
        if pairs:
            shown = ", ".join(shown_repr(pair) for pair in pairs[:_LISTED])
            more = f" and {len(pairs) - _LISTED} more" if len(pairs) > _LISTED else ""
            raise InvalidInputError(
                f"switches[{feature.name!r}] has no price for {shown}{more}; expected one for each "
                f"pair of levels that can come up. Add them, or give the others one price with "
                f"default=...{_or_exclude(feature, lacks, allowed)}"
            )


def _or_exclude(feature: Feature, lacks: NDArray[np.bool_], allowed: set[int]) -> str:
    """Name the levels to keep to, where all ways to these have a price; empty if there are none."""
    reachable = [feature.levels[k] for k in sorted(allowed) if not lacks[:, k].any()]
    shown = ", ".join(map(shown_repr, reachable[:_LISTED]))
    few = 0 < len(reachable) <= _LISTED
    return f", or keep to levels with OneOf({feature.name!r}, [{shown}])." if few else ""
