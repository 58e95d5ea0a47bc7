"""Points in doubles near a point in rational numbers, to be confirmed by `predict`."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fuzz.answers import DIGITS
from fuzz.plain import Floats, Plain
from fuzz.rational import Vector, exact
from fuzz.regions import Cell

_STEPS = [
    Fraction(0),
    *(Fraction(1, 10**k) for k in (15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2)),
]


def on_the_way_inside(cell: Cell, u: Vector, x: Vector) -> Floats:
    """Points between a change u and the inside of its cell, cheapest first, (n, d)."""
    inside = cell.inside
    goal = inside.point if inside is not None else u
    found = []
    for share in [*_STEPS, Fraction(1, 2), Fraction(1)]:
        point = [a + p + share * (q - p) for a, p, q in zip(x, u, goal, strict=True)]
        found.append([float(v) for v in point])
    return np.array(found)


def keeps_constraints(plain: Plain, y: Vector, x: Vector) -> bool:
    """Whether a point keeps every constraint: inequalities to the last bit, grids, rounds.

    An equality that no double meets is met within two units in the last place of its largest part.
    """
    for row in plain.rows:
        excess = row.excess(y, x)
        if row.equality:
            if abs(excess) > Fraction(1, 2**51) * row.magnitude(y, x):
                return False
        elif excess > 0:
            return False
    if any(part.excess(y) > 0 for part in plain.rounds):
        return False
    if not all(rule(y, x) for rule in plain.rules):
        return False
    cells = zip(plain.columns, y, x, strict=True)
    return all(column.holds(float(new), float(old)) for column, new, old in cells)


def is_cheaper(plain: Plain, y: Floats, x: Vector, than: float) -> bool:
    """Whether a point costs clearly less than a number."""
    if than == np.inf:
        return True
    return plain.price.of(exact(y), x) * (1 + DIGITS) < Fraction(than)
