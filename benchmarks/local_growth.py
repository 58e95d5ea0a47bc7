"""How `auto` grows with the number of features and with the number of rivals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from benchmarks.local_methods import Run, run
from benchmarks.local_problems import LocalProblem, random_problem
from benchmarks.problems import COSTS
from benchmarks.timing import fit_power_law

# What stays put while something else grows.
FEATURES, RIVALS, TARGETS = 8, 9, 3


@dataclass(frozen=True)
class LocalCurve:
    """Time per row, proofs and boxes against one quantity."""

    letter: str
    meaning: str
    fixed: str
    cost: str
    rows: int  # per point
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]  # median
    worst: tuple[float, ...]
    boxes: tuple[float, ...]  # mean
    proved: tuple[float, ...]  # share
    exponent: float  # of the power law through all points
    factor: float
    last_exponent: float  # through the last three: where fixed costs no longer show


def measure(features: Sequence[int], rivals: Sequence[int], rows: int) -> list[LocalCurve]:
    """Both quantities, both costs."""
    targets = f"{TARGETS} target prototypes"
    return [
        curve
        for cost in COSTS
        for curve in (
            _curve(
                ("d", "features", f"{RIVALS} rivals, {targets}"), features, cost, rows,
                lambda size, cost=cost: random_problem(size, RIVALS, cost, rows, TARGETS),
            ),
            _curve(
                ("m", "rivals", f"d = {FEATURES}, {targets}"), rivals, cost, rows,
                lambda size, cost=cost: random_problem(FEATURES, size, cost, rows, TARGETS),
            ),
        )
    ]  # fmt: skip


def _curve(
    words: tuple[str, str, str],
    sizes: Sequence[int],
    cost: str,
    rows: int,
    problem: Callable[[int], LocalProblem],
) -> LocalCurve:
    found: list[Run] = [run(problem(size), "auto") for size in sizes]
    seconds = [median(item.seconds) for item in found]
    law = fit_power_law(sizes, seconds)
    return LocalCurve(
        *words,
        cost=cost,
        rows=rows,
        sizes=tuple(sizes),
        seconds=tuple(seconds),
        worst=tuple(max(item.seconds) for item in found),
        boxes=tuple(fmean(item.boxes) for item in found),
        proved=tuple(fmean(item.proved) for item in found),
        exponent=law.exponent,
        factor=law.factor,
        last_exponent=fit_power_law(sizes[-3:], seconds[-3:]).exponent,
    )
