"""Linear algebra and linear programs in rational numbers: slow, and free of rounding.

A tableau holds integers: each equation may be multiplied by any positive number, so the
denominators go first, and the common divisor goes after every pivot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, lcm

Vector = list[Fraction]
Matrix = list[Vector]

ZERO, ONE = Fraction(0), Fraction(1)
# Pivots by steepest slope; after so many, Bland's rule, which cannot cycle.
_PIVOTS_BEFORE_BLAND = 60


def exact(values: Iterable[float]) -> Vector:
    """Take numbers as what they are: every finite double is a fraction."""
    return [Fraction(float(value)) for value in values]


def exact_matrix(rows: Iterable[Iterable[float]]) -> Matrix:
    return [exact(row) for row in rows]


def dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((u * v for u, v in zip(a, b, strict=True) if u and v), ZERO)


def solve(A: Matrix, b: Vector) -> Vector | None:
    """Solve a square or tall system; None if it has no solution or more than one."""
    width = len(A[0]) if A else 0
    rows = [_integers([*row, value]) for row, value in zip(A, b, strict=True)]
    at = 0
    for j in range(width):
        pivot = next((i for i in range(at, len(rows)) if rows[i][j]), None)
        if pivot is None:
            return None
        rows[at], rows[pivot] = rows[pivot], rows[at]
        for i in range(len(rows)):
            if i != at and rows[i][j]:
                rows[i] = _combined(rows[i], rows[at], j)
        at += 1
    if any(row[-1] for row in rows[at:]):
        return None
    return [Fraction(rows[j][-1], rows[j][j]) for j in range(width)]


def independent(A: Matrix, most: int) -> list[int]:
    """List the first rows that are linearly independent, `most` of them at the most."""
    kept: list[int] = []
    reduced: list[tuple[int, list[int]]] = []
    for at, row in enumerate(A):
        if len(kept) == most:
            break
        left = _integers(row)
        for j, other in reduced:
            if left[j]:
                left = _combined(left, other, j)
        lead = next((j for j, entry in enumerate(left) if entry), None)
        if lead is not None:
            reduced.append((lead, left))
            kept.append(at)
    return kept


@dataclass(frozen=True)
class Optimum:
    """A cheapest point of a linear program and what it costs."""

    value: Fraction
    point: Vector


@dataclass
class Tableau:
    """``min cost'z, rows z = values, z >= 0`` with a basis to start from."""

    rows: list[list[int]]  # the last entry of each is the value; never negative
    cost: list[int]  # reduced; the last entry is minus the objective times `cost_scale`
    basis: list[int]
    pivots: int = field(default=0)

    def run(self) -> bool:
        """Pivot to the optimum; False if the objective is unbounded."""
        while True:
            enter = self._entering()
            if enter is None:
                return True
            leave = self._leaving(enter)
            if leave is None:
                return False
            self.pivot(leave, enter)

    def pivot(self, leave: int, enter: int) -> None:
        chosen = self.rows[leave]
        for i, row in enumerate(self.rows):
            if i != leave and row[enter]:
                self.rows[i] = _combined(row, chosen, enter)
        if self.cost[enter]:
            self.cost = _combined(self.cost, chosen, enter)
        self.basis[leave] = enter
        self.pivots += 1

    def _entering(self) -> int | None:
        # The last two entries are the scale of the row and the objective.
        slopes = self.cost[:-2]
        if self.pivots > _PIVOTS_BEFORE_BLAND:
            return next((j for j, slope in enumerate(slopes) if slope < 0), None)
        j = min(range(len(slopes)), key=slopes.__getitem__)
        return j if slopes[j] < 0 else None

    def _leaving(self, enter: int) -> int | None:
        best: int | None = None
        for i, row in enumerate(self.rows):
            if row[enter] <= 0:
                continue
            if best is None:
                best = i
                continue
            other = self.rows[best]
            ahead = row[-1] * other[enter] - other[-1] * row[enter]
            if ahead < 0 or (ahead == 0 and self.basis[i] < self.basis[best]):
                best = i
        return best


def cheapest_shift(
    weights: Vector, A: Matrix, b: Vector, E: Matrix | None = None, e: Vector | None = None
) -> Optimum | None:
    """``min sum_j weights_j |u_j|`` with ``A u <= b`` and ``E u = e``; None if there is no u.

    The dual has a basis to start from: ``max -b'l - e'm`` with ``|A'l + E'm|_j <= weights_j``. It
    is unbounded exactly if the primal has no point.
    """
    E, e = E or [], e or []
    width = len(weights)
    columns = [*A, *E, *([-entry for entry in row] for row in E)]
    prices = [*b, *e, *(-value for value in e)]
    n = len(columns)
    # Slack columns before the scale of the row and its value.
    rows = []
    for sign in (1, -1):
        for j in range(width):
            slack = [ZERO] * (2 * width)
            slack[j if sign > 0 else width + j] = ONE
            rows.append(
                _integers([*(sign * column[j] for column in columns), *slack, ZERO, weights[j]])
            )
    # An objective row keeps its own scale in the last but one entry, to be undone at the end.
    cost = _integers([*prices, *([ZERO] * (2 * width)), ONE, ZERO])
    tableau = Tableau(rows, cost, [n + k for k in range(2 * width)])
    if not tableau.run():
        return None
    scale = tableau.cost[-2]
    slopes = [Fraction(entry, scale) for entry in tableau.cost[n : n + 2 * width]]
    point = [slopes[width + j] - slopes[j] for j in range(width)]
    return Optimum(Fraction(tableau.cost[-1], scale), point)


def widest_slack(
    A: Matrix, b: Vector, strict: Sequence[bool], E: Matrix | None = None, e: Vector | None = None
) -> Optimum | None:
    """``max s <= 1`` with ``A u + s <= b`` in the strict rows, ``A u <= b`` in the others.

    None without any point. The value is the largest s, which may be negative; the point is u. How
    large s is depends on the scale of the rows, its sign does not.
    """
    E, e = E or [], e or []
    width = len(A[0]) if A else len(E[0])
    # With s = 1 - r, r >= 0: u free as u1 - u2, slacks to each inequality, values made positive.
    lines = [
        ([*row, -ONE if tight else ZERO], value - (ONE if tight else ZERO), True)
        for row, value, tight in zip(A, b, strict, strict=True)
    ]
    lines += [([*row, ZERO], value, False) for row, value in zip(E, e, strict=True)]
    slacks = len(A)
    plain = 2 * width + 1 + slacks
    rows: list[list[int]] = []
    basis: list[int] = []
    artificial = [ZERO] * plain
    for i, (row, value, has_slack) in enumerate(lines):
        full = [*row[:-1], *(-entry for entry in row[:-1]), row[-1], *([ZERO] * slacks)]
        if has_slack:
            full[2 * width + 1 + i] = ONE
        full += [*([ZERO] * len(lines)), ZERO, value]
        if value < 0:
            full = [-entry for entry in full]
        if has_slack and value >= 0:
            basis.append(2 * width + 1 + i)
        else:
            full[plain + i] = ONE
            basis.append(plain + i)
            artificial = [u - v for u, v in zip(artificial, full[:plain], strict=True)]
        rows.append(_integers(full))
    sunk = [Fraction(-row[-1], row[at]) for row, at in zip(rows, basis, strict=True) if at >= plain]
    extra = [ZERO] * len(lines)
    first = Tableau(rows, _integers([*artificial, *extra, ONE, sum(sunk, ZERO)]), basis)
    first.run()
    if first.cost[-1] != 0:
        return None
    _drop_artificials(first, plain)
    second = Tableau([[*row[:plain], 0, row[-1]] for row in first.rows], [], first.basis)
    goal = [ZERO] * (plain + 2)
    goal[2 * width], goal[plain] = ONE, ONE
    second.cost = _integers(goal)
    for i, at in enumerate(second.basis):
        if second.cost[at]:
            second.cost = _combined(second.cost, second.rows[i], at)
    second.run()
    z = [ZERO] * plain
    for row, at in zip(second.rows, second.basis, strict=True):
        z[at] = Fraction(row[-1], row[at])
    return Optimum(ONE - z[2 * width], [z[j] - z[width + j] for j in range(width)])


def _drop_artificials(tableau: Tableau, plain: int) -> None:
    """Pivot artificial variables out of the basis, or drop their rows, which say 0 = 0."""
    for i in reversed(range(len(tableau.rows))):
        if tableau.basis[i] < plain:
            continue
        row = tableau.rows[i]
        j = next((j for j in range(plain) if row[j]), None)
        if j is None:
            del tableau.rows[i], tableau.basis[i]
            continue
        if row[j] < 0:
            tableau.rows[i] = [-entry for entry in row]
        tableau.pivot(i, j)


def _integers(row: Sequence[Fraction]) -> list[int]:
    common = lcm(*(entry.denominator for entry in row)) if row else 1
    return _reduced([entry.numerator * (common // entry.denominator) for entry in row])


def _combined(row: list[int], other: list[int], j: int) -> list[int]:
    """Clear entry j of a row by another one, multiplying the row by a positive number only."""
    p, a = other[j], row[j]
    if p < 0:
        p, a = -p, -a
    return _reduced([p * u - a * v for u, v in zip(row, other, strict=True)])


def _reduced(row: list[int]) -> list[int]:
    shared = gcd(*row)
    return [entry // shared for entry in row] if shared > 1 else row
