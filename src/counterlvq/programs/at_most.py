"""Limits on how many columns change, and what stays once enough of them do."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CountLimit", "held_for_good", "within_limits"]


class CountLimit(NamedTuple):
    """At most so many of some columns change."""

    most: int
    columns: frozenset[int]


def within_limits(changed: frozenset[int], limits: tuple[CountLimit, ...]) -> bool:
    """Whether no more columns change than may."""
    return all(len(changed & limit.columns) <= limit.most for limit in limits)


def held_for_good(
    held: frozenset[int], changed: frozenset[int], limits: tuple[CountLimit, ...]
) -> frozenset[int] | None:
    """Add the columns that stay because enough others count as changed; None if too many do.

    Examples
    --------
    >>> limits = (CountLimit(1, frozenset({0, 1, 2})),)
    >>> sorted(held_for_good(frozenset(), frozenset({1}), limits))
    [0, 2]
    >>> held_for_good(frozenset(), frozenset({0, 1}), limits) is None
    True
    """
    for limit in limits:
        counted = len(changed & limit.columns)
        if counted > limit.most:
            return None
        if counted == limit.most:
            held = held | (limit.columns - changed)
    return held
