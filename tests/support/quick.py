"""Which cases of a test run by default, and which wait for `make test-slow`.

A test that draws or combines a lot says here what stays: a few draws, named cases, or as many
combinations as show each value of each parameter. The others get the mark `slow`; none is dropped.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Sequence, Set
from typing import Any

import pytest
from hypothesis import settings

Param = Any  # what parametrize takes: a value, or what pytest.param makes of several


def some(cases: Iterable[Any], quick: int | Container[Any]) -> list[Param]:
    """All cases, slow but for the first few, or but for those that are listed."""
    return [
        case if (k < quick if isinstance(quick, int) else case in quick) else slow(case)
        for k, case in enumerate(cases)
    ]


def seeds(count: int, quick: int | Container[int]) -> list[Param]:
    """So many seeds, slow but for the first few, or but for those that are listed."""
    return some(range(count), quick)


def slow(case: Any) -> Param:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)


def examples(count: int) -> int:
    """How many examples Hypothesis draws: a quarter where they are the same on every run."""
    return count // 4 if settings().derandomize else count


# --- combinations -------------------------------------------------------------------------------


def mark_combinations(items: Iterable[pytest.Item]) -> None:
    """Of tests marked `covering`, mark as slow what the chosen combinations do not need.

    Called when tests are collected, because only then the decorators of a test have met.
    """
    tests: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if isinstance(item, pytest.Function) and "covering" in marks and "slow" not in marks:
            tests[item.nodeid.partition("[")[0]].append(item)
    for combinations in tests.values():
        # Values need not be equal to themselves, nor have a hash, but they are the same objects.
        values = [
            {(name, id(value)) for name, value in item.callspec.params.items()}
            for item in combinations
        ]
        kept = covering(values)
        for k, item in enumerate(combinations):
            if k not in kept:
                item.add_marker(pytest.mark.slow)


def covering(combinations: Sequence[Set[Hashable]]) -> set[int]:
    """Numbers of a few combinations in which every value occurs.

    The next one has the most values that are still missing, and the others as rarely as can be.
    """
    missing = {value for combination in combinations for value in combination}
    seen: Counter[Hashable] = Counter()
    kept: set[int] = set()
    while missing:
        best = max(
            range(len(combinations)),
            key=lambda k: (
                len(combinations[k] & missing),
                -sum(seen[value] for value in combinations[k]),
            ),
        )
        kept.add(best)
        seen.update(combinations[best])
        missing -= combinations[best]
    return kept
