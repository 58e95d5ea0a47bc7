"""What the package said of one row, as plain values, and what of it can be judged by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fuzz.cases import Case
from fuzz.plain import Floats, Plain
from fuzz.rational import Vector, exact

# Reported numbers are doubles: how far one may be from what it stands for.
DIGITS = Fraction(1, 10**12)
# What no float can tell from 0: a cost below it is rounded to 0.
LEAST_FLOAT = Fraction(1, 2**1074)
# What an inequality may give way by where the conditions leave next to no room between them.
NO_ROOM = Fraction(1, 2**45)
_MARGIN_ROUNDING = Fraction(1, 10**9)


@dataclass(frozen=True, eq=False)
class Answer:
    """One answer; `values` is NaN without a point."""

    values: Floats
    status: str
    cost: float
    bound: float
    gap: float
    resolution: float
    prediction: Any
    prototype: int
    text: str

    @classmethod
    def single(cls, cf: Any, case: Case) -> Answer:
        return cls(
            case.numbers(cf.row)[0], str(cf.status), float(cf.cost), float(cf.lower_bound),
            float(cf.gap), float(getattr(cf, "resolution", 0.0)), cf.prediction,
            int(cf.prototype), cf.text() if str(cf.status) == "infeasible" else "",
        )  # fmt: skip

    @classmethod
    def batch(cls, batch: Any, case: Case) -> list[Answer]:
        values, predictions = case.numbers(batch.X), batch.prediction.tolist()
        resolution = getattr(batch, "resolution", np.zeros(len(batch)))
        return [
            cls(
                values[i], str(batch.status[i]), float(batch.cost[i]),
                float(batch.lower_bound[i]), float(batch.gap[i]), float(resolution[i]),
                predictions[i], int(batch.prototype[i]), "",
            )
            for i in range(len(batch))
        ]  # fmt: skip

    @property
    def has_point(self) -> bool:
        return self.status in ("optimal", "feasible")

    def differences(self, other: Answer) -> list[str]:
        """In what the same row of a batch differs from this answer, to the last bit."""
        names = ("status", "cost", "bound", "gap", "resolution", "prediction", "prototype")
        found = [
            f"{name}: {getattr(self, name)!r} alone, {getattr(other, name)!r} in the batch"
            for name in names
            if not _same(getattr(self, name), getattr(other, name))
        ]
        if self.has_point and not np.array_equal(self.values, other.values, equal_nan=True):
            found.append(f"x: {self.values.tolist()} alone, {other.values.tolist()} in the batch")
        return found


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float) and np.isnan([one, two]).all():
        return True
    return bool(one == two)


Fault = tuple[str, str]


def faults_of_numbers(answer: Answer, tolerance: float) -> Iterator[Fault]:
    """Whether status, cost, bound and gap fit together."""
    if answer.status not in ("optimal", "feasible", "infeasible", "unknown"):
        yield "status", f"status {answer.status}"
    if np.isnan(answer.bound) or answer.bound < 0:
        yield "bound", f"lower_bound is {answer.bound}"
    if not answer.has_point or np.isnan(answer.bound):
        return
    if not (0 <= answer.cost < np.inf):
        yield "cost", f"{answer.status} with the cost {answer.cost}"
        return
    cost, bound = Fraction(answer.cost), _fraction(answer.bound)
    if bound is None or bound > cost * (1 + DIGITS):
        yield "bound above the answer", f"bound {answer.bound!r}, cost {answer.cost!r}"
        return
    gap = float((cost - bound) / cost) if cost else 0.0
    if not abs(answer.gap - max(gap, 0.0)) <= 1e-12 * gap + 1e-15:
        yield "gap", f"gap {answer.gap!r}, but (cost - lower_bound) / cost is {gap!r}"
    within = gap <= tolerance or float(cost - bound) <= answer.resolution
    if answer.status == "optimal" and not within:
        yield (
            "open gap called optimal",
            f"cost {answer.cost!r}, bound {answer.bound!r}, resolution {answer.resolution!r}",
        )


def faults_of_point(answer: Answer, plain: Plain, x: Vector) -> Iterator[Fault]:
    """Whether the point keeps the constraints and costs what is said, in rational numbers."""
    if not np.isfinite(answer.values).all():
        yield "point", f"{answer.status} at {answer.values.tolist()}"
        return
    y = exact(answer.values)
    for row in plain.rows:
        yield from _faults_of_row(row, y, x, plain.no_room)
    for part in plain.rounds:
        if part.excess(y) > DIGITS * abs(part.value):
            share = float(part.excess(y) / part.value) if part.value else np.inf
            yield "quadratic broken", f"beyond its value by {share:.3g} of it"
    for j, column in enumerate(plain.columns):
        if not column.holds(float(answer.values[j]), float(x[j])):
            yield "grid", f"column {j} has {answer.values[j]!r}"
    for number, rule in enumerate(plain.rules):
        if not rule(y, x):
            yield "rule broken", f"rule {number} at {answer.values.tolist()}"
    cost = plain.price.of(y, x)
    if abs(Fraction(answer.cost) - cost) > DIGITS * abs(cost) + LEAST_FLOAT:
        yield "cost", f"cost {answer.cost!r}, but the point costs {float(cost)!r}"


def _faults_of_row(row: Any, y: Vector, x: Vector, no_room: bool) -> Iterator[Fault]:
    excess, size = row.excess(y, x), row.magnitude(y, x)
    if row.equality:
        if abs(excess) > DIGITS * size:
            yield "equality broken", f"by {float(excess):.3g} among {float(size):.3g}"
        return
    if excess <= 0:
        return
    if excess > DIGITS * size:
        yield "inequality broken", f"by {float(excess):.3g} among {float(size):.3g}"
    elif not no_room and excess > NO_ROOM * size:
        yield "inequality broken by rounding", f"by {float(excess):.3g} among {float(size):.3g}"


def faults_of_margin(
    answer: Answer, plain: Plain, x: Vector, wished: list[bool]
) -> Iterator[Fault]:
    """Whether a margin of the user's is kept; a row that is returned as it is needs none."""
    y = exact(answer.values)
    if not plain.margin or y == x:
        return
    lead, size = lead_of(plain, y, wished)
    if lead < Fraction(plain.margin) - _MARGIN_ROUNDING * size:
        yield "margin", f"margin {plain.margin!r} asked for, {float(lead)!r} kept"


def lead_of(plain: Plain, y: Vector, wished: list[bool]) -> tuple[Fraction, Fraction]:
    """By how much the target is ahead at a point, and the size of the two scores."""
    scores = plain.scores.at(y)
    own = min(s for s, is_target in zip(scores, wished, strict=True) if is_target)
    other = min(s for s, is_target in zip(scores, wished, strict=True) if not is_target)
    return other - own, max(abs(own), abs(other))


def _fraction(value: float) -> Fraction | None:
    return Fraction(value) if np.isfinite(value) else None
