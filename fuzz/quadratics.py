"""Cheap points under quadratic constraints: tangents from outside, then a step inside."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from fuzz.plain import Plain, times
from fuzz.rational import Optimum, Vector, dot
from fuzz.regions import Cell

_CUTS = 10
_HALVINGS = 45


def cheapest(plain: Plain, cell: Cell, x: Vector) -> Optimum | None:
    """A cheap change in a cell that keeps the quadratic constraints, or None if none was found."""
    cut, u = cell, None
    for _ in range(_CUTS):
        optimum = cut.cheapest(plain)
        if optimum is None:
            return None
        u = [Fraction(float(v)) for v in optimum.point]
        if _keeps(plain, u, x) and cell.holds(u):
            return Optimum(plain.price.of(_moved(x, u), x), u)
        cut = _with_tangents(plain, cut, u, x)
    inside = cut.inside
    if u is None or inside is None:
        return None
    there = [Fraction(float(v)) for v in inside.point]
    if not (_keeps(plain, there, x) and cell.holds(there)):
        return None
    return _between(plain, cell, x, u, there)


def _between(plain: Plain, cell: Cell, x: Vector, u: Vector, there: Vector) -> Optimum:
    """Halve the way from a point that keeps all towards one that does not."""
    low, high = Fraction(0), Fraction(1)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        point = [p + middle * (q - p) for p, q in zip(u, there, strict=True)]
        if _keeps(plain, point, x) and cell.holds(point):
            high = middle
        else:
            low = middle
    point = [p + high * (q - p) for p, q in zip(u, there, strict=True)]
    return Optimum(plain.price.of(_moved(x, point), x), point)


def _keeps(plain: Plain, u: Vector, x: Vector) -> bool:
    y = _moved(x, u)
    return all(part.excess(y) <= 0 for part in plain.rounds)


def _moved(x: Vector, u: Vector) -> Vector:
    return [a + b for a, b in zip(x, u, strict=True)]


def _with_tangents(plain: Plain, cell: Cell, u: Vector, x: Vector) -> Cell:
    """Add the tangents at u of the conditions that it breaks; they cut off nothing allowed."""
    A, b, strict = list(cell.A), list(cell.b), list(cell.strict)
    y = _moved(x, u)
    for part in plain.rounds:
        excess = part.excess(y)
        if excess > 0:
            away = [p - q for p, q in zip(y, part.center, strict=True)]
            slope = [2 * p + q for p, q in zip(times(part.matrix, away), part.linear, strict=True)]
            A.append(slope)
            b.append(dot(slope, u) - excess)
            strict.append(True)
    return replace(cell, A=A, b=b, strict=strict)
