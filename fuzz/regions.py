"""Where a target may be reached under shared metrics, in rational numbers, and what is cheapest."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from daqp import solve as daqp_solve

from fuzz.plain import Floats, Plain, form
from fuzz.rational import (
    ONE,
    ZERO,
    Matrix,
    Optimum,
    Vector,
    cheapest_shift,
    dot,
    independent,
    solve,
    widest_slack,
)

_ACTIVE = 1e-7
_FLAT = Fraction(1, 10**14)
_MOST_STEPS = 60


@dataclass(frozen=True, eq=False)
class Cell:
    """Changes u of x for which one wished-for prototype beats every rival, within linear rows.

    ``A u <= b`` and ``E u = e``; where `strict`, a tie is lost.
    """

    A: Matrix
    b: Vector
    strict: list[bool]
    E: Matrix
    e: Vector

    def holds(self, u: Vector) -> bool:
        """Whether a change is in the cell, ties included."""
        if any(dot(a, u) > c for a, c in zip(self.A, self.b, strict=True)):
            return False
        return all(dot(a, u) == c for a, c in zip(self.E, self.e, strict=True))

    @cached_property
    def inside(self) -> Optimum | None:
        """The point with the widest slack in all rows that depend on the point.

        The slack is negative, or there is None, if there is no point at all.
        """
        return self._widest([any(a) for a in self.A])

    @cached_property
    def is_empty(self) -> bool:
        """Whether no point is in the cell, lost ties left out."""
        rows = zip(self.A, self.b, self.strict, strict=True)
        if any(tight and c <= 0 and not any(a) for a, c, tight in rows):
            return True
        if self.inside is None or self.inside.value < 0:
            return True
        if self.inside.value > 0 or not any(self.strict):
            return False
        slack = self._widest(self.strict)
        return slack is None or slack.value <= 0

    def _widest(self, strict: list[bool]) -> Optimum | None:
        scaled = [_unit(a, c) for a, c in zip(self.A, self.b, strict=True)]
        return widest_slack([a for a, _ in scaled], [c for _, c in scaled], strict, self.E, self.e)

    def cheapest(self, plain: Plain) -> Optimum | None:
        """The cheapest change in the closed cell, or as cheap a one as was found."""
        if plain.price.weights is not None:
            return cheapest_shift(list(plain.price.weights), self.A, self.b, self.E, self.e)
        return cheapest_square(plain.price.matrix or [], self)


def cells(plain: Plain, x: Vector, wished: list[bool], margin: float | None = None) -> list[Cell]:
    """The cells of a target; `margin` is the plain one's unless given."""
    kept = Fraction(plain.margin or 0.0) if margin is None else Fraction(margin)
    own = [(row.new, -row.excess(x, x), row.equality) for row in plain.rows]
    A0 = [(a, c) for a, c, equality in own if not equality]
    E0 = [(a, c) for a, c, equality in own if equality]
    out = []
    for i, is_target in enumerate(wished):
        if not is_target:
            continue
        A, b, strict = [a for a, _ in A0], [c for _, c in A0], [False] * len(A0)
        for k, other in enumerate(wished):
            if not other:
                normal, value = plain.scores.half_space(i, k, kept)
                A.append(normal)
                b.append(value - dot(normal, x))
                strict.append(k < i and not kept)
        out.append(Cell(A, b, strict, [a for a, _ in E0], [c for _, c in E0]))
    return out


def cheapest_square(M: Matrix, cell: Cell) -> Optimum | None:
    """The change of least ``u'M u`` in a cell, or a cheap one where M is singular.

    A solver in doubles guesses the active rows. Where its guess does not stand up in rational
    numbers, an active-set method in these finds the optimum from the nearest vertex. Whatever is
    returned is in the cell, so its cost is true even where it is not the least.
    """
    if all(c >= 0 for c in cell.b) and all(c == 0 for c in cell.e):
        return Optimum(ZERO, [ZERO] * len(M))
    u, active = _active_set(M, cell)
    if u is not None:
        found = _stationary(M, cell, active)
        if found is not None and min(found[1].values(), default=ZERO) >= 0:
            point = found[0]
            if cell.holds(point):
                return Optimum(form(M, point), point)
    return _by_active_sets(M, cell)


def _by_active_sets(M: Matrix, cell: Cell) -> Optimum | None:
    """Walk from a vertex, with the active rows as equations, until no multiplier is negative."""
    size = [M[j][j] or ONE for j in range(len(M))]
    weights = [Fraction(float(v) ** 0.5) for v in size]
    start = cheapest_shift(weights, cell.A, cell.b, cell.E, cell.e)
    if start is None:
        return None
    # Flat directions get a price that is too small to matter and keeps the system regular.
    H = [
        [v + (_FLAT * size[j] if i == j else 0) for j, v in enumerate(M[i])] for i in range(len(M))
    ]
    u, active = start.point, []
    for _ in range(_MOST_STEPS):
        found = _stationary(H, cell, active)
        if found is None:
            break
        goal, prices = found
        if goal == u:
            worst = min(prices, key=prices.__getitem__, default=None)
            if worst is None or prices[worst] >= 0:
                break
            active.remove(worst)
            continue
        share, blocking = _first_hit(cell, u, goal, active)
        u = [p + share * (q - p) for p, q in zip(u, goal, strict=True)]
        if blocking is not None:
            active.append(blocking)
    return Optimum(form(M, u), u)


def _first_hit(
    cell: Cell, u: Vector, goal: Vector, active: list[int]
) -> tuple[Fraction, int | None]:
    """How far one may go, as a share of the way, and the row that ends it."""
    share, blocking = ONE, None
    step = [q - p for p, q in zip(u, goal, strict=True)]
    for k, (a, c) in enumerate(zip(cell.A, cell.b, strict=True)):
        slope = dot(a, step)
        if slope > 0 and k not in active:
            room = (c - dot(a, u)) / slope
            if room < share:
                share, blocking = room, k
    return share, blocking


def _active_set(M: Matrix, cell: Cell) -> tuple[Floats | None, list[int]]:
    """Solve in doubles, in units in which rows and the diagonal of M are about 1."""
    size = np.array([float(row[j]) for j, row in enumerate(M)])
    typical = size[size > 0].max(initial=0.0) or 1.0
    units = 1 / np.sqrt(np.where(size > 0, size, typical))
    H = np.array([[float(v) for v in row] for row in M]) * np.outer(units, units)
    lines = [*zip(cell.A, cell.b, strict=True), *zip(cell.E, cell.e, strict=True)]
    A = np.array([[float(v) for v in a] for a, _ in lines]) * units
    b = np.array([float(c) for _, c in lines])
    norm = np.linalg.norm(A, axis=1)
    kept = norm > 0
    A, b = A[kept] / norm[kept, None], b[kept] / norm[kept]
    unit = max(np.abs(np.minimum(b[: kept[: len(cell.A)].sum()], 0)).max(initial=0.0), 1e-300)
    unit = max(unit, np.abs(b[kept[: len(cell.A)].sum() :]).max(initial=0.0))
    sense = np.zeros(len(b), dtype=np.int32)
    sense[kept[: len(cell.A)].sum() :] = 5
    upper = np.clip(b / unit, -1e29, 1e29)
    lower = np.where(sense == 5, upper, -1e30)
    lowest = np.linalg.eigvalsh(H)[0]
    prox = 1e-9 if lowest < 1e-9 else 0.0
    u, _, flag, info = daqp_solve(
        2 * H + 1e-14 * np.eye(len(H)), np.zeros(len(H)), A, upper, lower, sense, eps_prox=prox
    )
    if flag < 1 or not np.isfinite(u).all():
        return None, []
    price = np.abs(info["lam"]) * (sense != 5)
    numbered = np.flatnonzero(kept)
    at = [int(k) for k in np.argsort(-price) if price[k] > _ACTIVE * max(price.max(), 1e-300)]
    return u * unit * units, [int(numbered[k]) for k in at]


def _stationary(
    M: Matrix, cell: Cell, active: list[int]
) -> tuple[Vector, dict[int, Fraction]] | None:
    """Solve ``2 M u + A'l = 0`` with the active rows as equations: the point, and l by row."""
    lines = [(None, a, c) for a, c in zip(cell.E, cell.e, strict=True)]
    lines += [(k, cell.A[k], cell.b[k]) for k in active]
    kept = independent([a for _, a, _ in lines], len(M))
    rows = [lines[at] for at in kept]
    n, m = len(M), len(rows)
    system = [[*(2 * v for v in M[j]), *(row[1][j] for row in rows)] for j in range(n)]
    system += [[*row[1], *([ZERO] * m)] for row in rows]
    found = solve(system, [*([ZERO] * n), *(row[2] for row in rows)])
    if found is None:
        return None
    prices = {row[0]: price for row, price in zip(rows, found[n:], strict=True)}
    return found[:n], {k: price for k, price in prices.items() if k is not None}


def _unit(a: Vector, c: Fraction) -> tuple[Vector, Fraction]:
    size = max((abs(v) for v in a), default=ZERO) or ONE
    return [v / size for v in a], c / size
