"""The planes around an answer, in floats for a solver and in rational numbers for proofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import FIRST_PULL, INEQUALITY_ROUNDING
from counterlvq.programs.conditions import LinearConditions
from counterlvq.programs.template import ProgramTemplate

__all__ = ["ExactRows", "held_columns", "listed_values", "rows_around"]

Exact = list[Fraction]
# How far an answer misses a row, and the size of what meets in it beside the values of a point.
Miss = tuple[Fraction, Fraction]
_NONE = (Fraction(0), Fraction(0))
# By how much more ends are pulled in each time that a row does not hold.
_PULL_GROWTH = 8.0


@final
@dataclass(frozen=True, eq=False)
class ExactRows:
    """Rows ``A y <= b``: a cell first, which is to be kept with a lead, then the constraints."""

    A: Floats  # (m, d) rounded
    b: Floats  # (m,) rounded
    exact: tuple[tuple[Exact, Fraction], ...]  # the rows themselves
    is_cell: NDArray[np.bool_]  # (m,)
    misses: tuple[Miss, ...]  # what rounding leaves of constraints that the answer misses by it
    held: NDArray[np.bool_]  # (d,) coordinates that other conditions than these are about
    barred: NDArray[np.bool_]  # (d,) coordinates that have to be 0
    lower: Floats  # (d,) bounds of single coordinates
    upper: Floats

    @property
    def leads(self) -> Floats:
        """Right-hand sides of the cell, the measure of what a lead is worth."""
        return self.b[self.is_cell]

    def hold(
        self,
        low: Floats,
        high: Floats,
        levels: Sequence[tuple[slice, Sequence[int | None]]],
        lead: float,
    ) -> bool:
        """Whether every row holds at every point of a box; decided in rational numbers.

        Coordinates in a slice of `levels` are 0 but for the listed one of which each is 1 in turn,
        None for none of them. Rows of a cell have to hold by more than `lead`, or strictly.
        """
        rows = range(len(self.exact))
        return bool((low <= high).all()) and all(
            self.holds(k, low, high, levels, lead) for k in rows
        )

    def holds(
        self,
        k: int,
        low: Floats,
        high: Floats,
        levels: Sequence[tuple[slice, Sequence[int | None]]],
        lead: float,
    ) -> bool:
        """Whether one row does.

        An answer may miss a constraint by rounding, as a share of the numbers that meet in it.
        What misses it no more, as a share and in all, is as good. The worst corner decides that
        too: on the way from it a row gains more than the share loses.
        """
        row, right = self.exact[k]
        apart = np.zeros(low.size, dtype=bool)
        for span, _ in levels:
            apart[span] = True
        most, (missed, size) = Fraction(0), self.misses[k]
        for j in np.flatnonzero(~apart):
            if row[j]:
                end = high[j] if row[j] > 0 else low[j]
                if not np.isfinite(end):
                    return False
                most += row[j] * Fraction(float(end))
                size += abs(row[j] * Fraction(float(end)))
        for _, points in levels:
            most += max(Fraction(0) if p is None else row[p] for p in points)
        room = right - most
        if self.is_cell[k]:
            return room > 0 and room > Fraction(lead)
        return room >= -min(missed, Fraction(INEQUALITY_ROUNDING) * size)

    def tightened(
        self, low: Floats, high: Floats, middle: Floats, lead: float
    ) -> tuple[Floats, Floats]:
        """Pull ends towards a point of the box at which every row holds, until each holds in all.

        Row by row, and only the ends that count in it: a smaller box never breaks a row.
        """
        low, high = low.copy(), high.copy()
        for k, (row, _) in enumerate(self.exact):
            signs = np.array([(value > 0) - (value < 0) for value in row])
            share = FIRST_PULL
            while not self.holds(k, low, high, (), lead) and share <= 1.0:
                for ends, counts in ((high, signs > 0), (low, signs < 0)):
                    width = (ends - middle)[counts]
                    kept = (1.0 - share) * width if share < 1.0 else 0.0
                    ends[counts] = middle[counts] + kept
                share *= _PULL_GROWTH
        return low, high


def rows_around(
    model: PrototypeModel,
    template: ProgramTemplate,
    rivals: NDArray[np.intp],
    prototype: int,
    x: Floats,
    y: Floats,
) -> ExactRows:
    """State the cell of a prototype and the constraints on the way from x to y, exactly."""
    exact = [*_cell(model, rivals, prototype)]
    cells = len(exact)
    misses = [_NONE] * cells
    for rows in (template.inequalities, template.bounds):
        exact += _stated(rows, x)
        misses += [
            _miss(*row, size, y)
            for row, size in zip(exact[len(misses) :], _sizes(rows, x), strict=True)
        ]
    exact += _least_changes(template, x, y)
    misses += [_NONE] * (len(exact) - len(misses))
    fixed = template.fixed
    at_zero = (fixed.v == 0) & ~fixed.R.any(axis=1)
    barred = (fixed.A[at_zero] != 0).any(axis=0)
    held = held_columns(template)
    A = np.array([[float(value) for value in row] for row, _ in exact]).reshape(len(exact), x.size)
    lower, upper = template.box(x)
    return ExactRows(
        A,
        np.array([float(right) for _, right in exact]),
        tuple(exact),
        np.arange(len(exact)) < cells,
        tuple(misses),
        held,
        barred,
        lower,
        upper,
    )


def held_columns(template: ProgramTemplate) -> NDArray[np.bool_]:
    """Coordinates with conditions that are not linear, or that no box with an inside meets, (d,).

    Values are kept there.
    """
    fixed = template.fixed
    at_zero = (fixed.v == 0) & ~fixed.R.any(axis=1)
    held: NDArray[np.bool_] = (template.equalities.A != 0).any(axis=0)
    held |= (fixed.A[~at_zero] != 0).any(axis=0)
    for quadric in template.quadrics:
        held |= (quadric.G != 0).any(axis=0) | (quadric.h != 0)
    for item in template.conditionals:
        held |= (item.rows.A != 0).any(axis=0)
        held[item.present] = True
        if item.absent is not None:
            held[item.absent] = True
        if item.test is not None:
            held[item.test.column] = True
    for rule in template.grid.rules:
        held[rule.column] |= listed_values(template, rule.column) is None
    return held


def listed_values(template: ProgramTemplate, column: int) -> list[float] | None:
    """Values that a column is kept to, one by one; None where it is not, or to intervals."""
    rules = [rule for rule in template.grid.rules if rule.column == column]
    if not rules or any(
        rule.old is not None or any(part.lower != part.upper for part in rule.parts)
        for rule in rules
    ):
        return None
    sets = [{part.lower for part in rule.parts} for rule in rules]
    return sorted(set.intersection(*sets))


def _least_changes(template: ProgramTemplate, x: Floats, y: Floats) -> list[tuple[Exact, Fraction]]:
    """Stay as far from an input as a least change asks for, on the side where an answer lies.

    An answer that counts as far enough but for rounding is, and so is all that is farther.
    """
    out = []
    for j, by in template.grid.least.items():
        here, there = Fraction(float(x[j])), Fraction(float(y[j]))
        if here == there:
            continue
        sign = 1 if there > here else -1
        row = [Fraction(0)] * x.size
        row[j] = Fraction(-sign)
        least = min(Fraction(by), abs(there - here))
        out.append((row, -(sign * here + least)))
    return out


def _cell(
    model: PrototypeModel, rivals: NDArray[np.intp], prototype: int
) -> list[tuple[Exact, Fraction]]:
    """``2 (w_k - w_i)'M y <= |w_k|^2 - |w_i|^2`` in the metric, for each rival."""
    own = _fractions(model.prototypes[prototype])
    offsets = None if model.offsets is None else _fractions(model.offsets)
    factor = None
    if model.diagonal is None and model.omegas is not None:
        factor = [_fractions(row) for row in model.shared_factor]
    scales = None if model.diagonal is None else [v * v for v in _fractions(model.diagonal)]
    out = []
    for k in rivals:
        other = _fractions(model.prototypes[k])
        ahead = [b - a for a, b in zip(own, other, strict=True)]
        if factor is not None:
            lifted = [_dot(row, ahead) for row in factor]
            normal = [
                sum((v * row[j] for v, row in zip(lifted, factor, strict=True)), Fraction(0))
                for j in range(len(own))
            ]
        elif scales is not None:
            normal = [s * a for s, a in zip(scales, ahead, strict=True)]
        else:
            normal = ahead
        right = _dot(normal, [a + b for a, b in zip(own, other, strict=True)])
        if offsets is not None:
            right += offsets[k] - offsets[prototype]
        out.append(([2 * value for value in normal], right))
    return out


def _stated(rows: LinearConditions, x: Floats) -> list[tuple[Exact, Fraction]]:
    given = _fractions(x)
    return [
        (_fractions(a), Fraction(float(v)) - _dot(_fractions(r), given))
        for a, r, v in zip(rows.A, rows.R, rows.v, strict=True)
    ]


def _sizes(rows: LinearConditions, x: Floats) -> list[Fraction]:
    """Size of the numbers that meet in each row, but for the values of a point."""
    given = _fractions(np.abs(x))
    return [
        abs(Fraction(float(v))) + _dot(_fractions(np.abs(r)), given)
        for r, v in zip(rows.R, rows.v, strict=True)
    ]


def _miss(row: Exact, right: Fraction, size: Fraction, y: Floats) -> Miss:
    return max(_dot(row, _fractions(y)) - right, Fraction(0)), size


def _fractions(values: Floats) -> Exact:
    return [Fraction(value) for value in values.tolist()]


def _dot(a: Exact, b: Exact) -> Fraction:
    return sum((u * v for u, v in zip(a, b, strict=True) if u and v), Fraction(0))
