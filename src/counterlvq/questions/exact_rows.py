"""The planes around an answer, in floats for a solver and in rational numbers for proofs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import FIRST_PULL, INEQUALITY_ROUNDING, SAFE
from counterlvq.programs.conditions import LinearConditions
from counterlvq.programs.grids import Slacks
from counterlvq.programs.template import ProgramTemplate

__all__ = ["ExactRows", "Levels", "held_columns", "listed_values", "required_levels", "rows_around"]

Exact = list[Fraction]
# Slices of coordinates of which one may be 1, and which ones that are; None for none of them.
Levels = Sequence[tuple[slice, Sequence[int | None]]]
# What a point may miss of the numbers that meet in a row. It is a little less than what counts of
# an answer, whose sizes are summed in floats.
_SHARE = Fraction(INEQUALITY_ROUNDING) / Fraction(SAFE)
# By how much more ends are pulled in each time that a row does not hold.
_PULL_GROWTH = 8.0


class Leeway(NamedTuple):
    """By how much points may miss a constraint that they keep but for rounding."""

    missed: Fraction = Fraction(0)  # by the answer, which is one
    share: Fraction = Fraction(0)  # of what meets there, and at least what may be of any point
    given: Fraction = Fraction(0)  # size of what meets beside the values of a point
    most: Fraction | None = Fraction(0)  # where sides have a least difference; see `Slacks`
    least: Fraction = Fraction(0)

    def of_answer(self, size: Fraction) -> Fraction:
        """Return what the answer misses, in all or as a share of values of this size."""
        return min(self.missed, self.share * (size + self.given))

    def of_any(self, size: Fraction) -> Fraction:
        """Return what any point with values of this size may miss."""
        whole = size + self.given
        own = _SHARE * whole
        return own if self.most is None else min(own, max(self.most, self.least * whole))


@final
@dataclass(frozen=True, eq=False)
class ExactRows:
    """Rows ``A y <= b``: a cell first, which is to be kept with a lead, then the constraints."""

    A: Floats  # (m, d) rounded
    exact: tuple[tuple[Exact, Fraction], ...]  # the rows themselves
    loses_ties: NDArray[np.bool_]  # (cells,) rows of a cell in which the rival wins a tie
    needs: tuple[Fraction, ...]  # what has to be left in rows of a cell
    is_strict: tuple[bool, ...]  # or whether anything has
    leeways: tuple[Leeway, ...]  # what constraints give way by
    reach: Floats  # (d,) how large a value counts in that
    held: NDArray[np.bool_]  # (d,) coordinates that other conditions than these are about
    barred: NDArray[np.bool_]  # (d,) coordinates that have to be 0
    lower: Floats  # (d,) bounds of single coordinates
    upper: Floats

    def asking(self, lead: float, y: Floats) -> ExactRows:
        """Ask the cell for a lead, or for what an answer has of it; no row breaks at the answer."""
        rooms = [self.room(k, y, y) for k in range(self.loses_ties.size)]
        return replace(
            self,
            needs=tuple(min(Fraction(lead), room) for room in rooms),
            is_strict=tuple(
                bool(loses and not lead and room > 0)
                for loses, room in zip(self.loses_ties, rooms, strict=True)
            ),
        )

    def room(self, k: int, low: Floats, high: Floats) -> Fraction:
        """Return what the corner of a box that is worst for a row leaves of it; finite ends."""
        return self.exact[k][1] - self._most(k, low, high, ())[0]

    def hold(self, low: Floats, high: Floats, levels: Levels = ()) -> bool:
        """Whether every row holds at every point of a box; decided in rational numbers.

        Coordinates in a slice of `levels` are 0 but for the listed one of which each is 1 in turn,
        None for none of them.
        """
        rows = range(len(self.exact))
        return bool((low <= high).all()) and all(self.holds(k, low, high, levels) for k in rows)

    def holds(
        self, k: int, low: Floats, high: Floats, levels: Levels = (), *, is_strict: bool = False
    ) -> bool:
        """Whether one row does.

        A constraint may be missed by rounding, as a share of the numbers that meet in it; if
        `is_strict`, by no more than the answer misses it, as a share and in all. The worst corner
        decides that too: on the way from it a row gains more than the share loses.
        """
        row, right = self.exact[k]
        if any(
            value and not isfinite(low[j] if value < 0 else high[j]) for j, value in row_of(row)
        ):
            return False
        most, size = self._most(k, low, high, levels)
        room = right - most
        if k < self.loses_ties.size:
            return room > 0 if self.is_strict[k] else room >= self.needs[k]
        leeway = self.leeways[k]
        return room >= -leeway.of_answer(size) or (not is_strict and room >= -leeway.of_any(size))

    def _most(self, k: int, low: Floats, high: Floats, levels: Levels) -> tuple[Fraction, Fraction]:
        """Return the largest value of a row in a box, and the size of what meets in it there."""
        row = self.exact[k][0]
        apart = {j for span, _ in levels for j in range(span.start, span.stop)}
        most, size = Fraction(0), Fraction(0)
        for j, value in row_of(row):
            if j not in apart:
                end = float(high[j] if value > 0 else low[j])
                most += value * Fraction(end)
                size += abs(value) * Fraction(min(abs(end), float(self.reach[j])))
        for _, points in levels:
            part = max(Fraction(0) if p is None else row[p] for p in points)
            most, size = most + part, size + abs(part)
        return most, size

    @cached_property
    def signs(self) -> NDArray[np.int8]:
        """Signs of the entries of the rows themselves, (m, d)."""
        signs = [[(value > 0) - (value < 0) for value in row] for row, _ in self.exact]
        return np.array(signs, dtype=np.int8).reshape(self.A.shape)

    def rooms(self, low: Floats, high: Floats) -> Floats:
        """Return what a box leaves of each row beyond what is asked of it, (m,)."""
        cells = self.loses_ties.size
        asked = (*self.needs, *(Fraction(0),) * (len(self.exact) - cells))
        return np.array([float(self.room(k, low, high) - need) for k, need in enumerate(asked)])

    def tightened(
        self, low: Floats, high: Floats, middle: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """Pull ends towards a smaller box in which every row holds, until each holds in all.

        Row by row, and only the ends that count in it: a smaller box never breaks a row. Where any
        number will do there is one that keeps a row to the last digit.
        """
        low, high = low.copy(), high.copy()
        for k, signs in enumerate(self.signs):
            share = FIRST_PULL
            while not self.holds(k, low, high, is_strict=True) and share <= 1.0:
                for ends, own, way in ((high, middle[1], 1), (low, middle[0], -1)):
                    counts = (signs == way) & (ends != own)
                    width = ends[counts] - own[counts]
                    ends[counts] = own[counts] + ((1.0 - share) * width if share < 1.0 else 0.0)
                share *= _PULL_GROWTH
        return low, high


def row_of(row: Exact) -> Iterator[tuple[int, Fraction]]:
    """Entries of a row that are not 0, with their columns."""
    return ((j, value) for j, value in enumerate(row) if value)


def rows_around(
    model: PrototypeModel,
    template: ProgramTemplate,
    rivals: NDArray[np.intp],
    prototype: int,
    x: Floats,
    y: Floats,
    reach: Floats,
    *,
    is_exact: bool,
) -> ExactRows:
    """State the cell of a prototype and the constraints on the way from x to y, exactly.

    A model that decides ties itself (`is_exact`) gives them to the prototype that stands first.
    No value counts for more than its `reach` in what constraints give way by.
    """
    exact = [*_cell(model, rivals, prototype)]
    loses_ties = rivals < prototype if is_exact else np.ones(len(exact), dtype=bool)
    leeways = [Leeway()] * len(exact)
    for rows in (template.inequalities, template.bounds):
        exact += _stated(rows, x)
        leeways += _leeways(exact[len(leeways) :], rows, template.grid.slacks(rows.A), x, y, reach)
    exact += _least_changes(template, x, y)
    leeways += [Leeway()] * (len(exact) - len(leeways))
    fixed = template.fixed
    at_zero = (fixed.v == 0) & ~fixed.R.any(axis=1)
    barred = (fixed.A[at_zero] != 0).any(axis=0)
    held = held_columns(template)
    A = np.array([[float(value) for value in row] for row, _ in exact]).reshape(len(exact), x.size)
    lower, upper = template.box(x)
    return ExactRows(
        A,
        tuple(exact),
        loses_ties,
        (Fraction(0),) * loses_ties.size,
        (False,) * loses_ties.size,
        tuple(leeways),
        reach,
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
    equalities = template.equalities.A[~_totals(template).any(axis=1)]
    held: NDArray[np.bool_] = (equalities != 0).any(axis=0)
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


def required_levels(template: ProgramTemplate, spans: Mapping[int, slice]) -> frozenset[int]:
    """Features of levels, by their coordinates, that have to take up another than the input's."""
    is_asked = np.asarray(_totals(template).any(axis=0))
    taken = {template.grid.groups[g].start for g in np.flatnonzero(is_asked)}
    return frozenset(j for j, span in spans.items() if span.start in taken)


def _totals(template: ProgramTemplate) -> NDArray[np.bool_]:
    """Which equalities ask that one of a group of levels is taken up, (k, groups)."""
    rows, groups = template.equalities, template.grid.groups
    out = np.zeros((rows.v.size, len(groups)), dtype=bool)
    for g, group in enumerate(groups):
        total = np.zeros(rows.A.shape[1])
        total[group] = 1.0
        out[:, g] = (total == rows.A).all(axis=1) & (rows.v == 1.0) & ~rows.R.any(axis=1)
    return out


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


def _leeways(
    stated: Sequence[tuple[Exact, Fraction]],
    rows: LinearConditions,
    slacks: Slacks,
    x: Floats,
    y: Floats,
    reach: Floats,
) -> list[Leeway]:
    """Say what rows may be missed by, as `Acceptance.judged` does of answers."""
    answer, counted = _fractions(y), _fractions(np.minimum(np.abs(y), reach))
    out = []
    for (row, right), given, most, least in zip(
        stated, _sizes(rows, x), slacks.most.tolist(), slacks.least.tolist(), strict=True
    ):
        missed = max(_dot(row, answer) - right, Fraction(0))
        whole = given + _dot([abs(value) for value in row], counted)
        share = max(_SHARE, missed / whole) if whole else _SHARE
        end = Fraction(most) / Fraction(SAFE) if isfinite(most) else None
        out.append(Leeway(missed, share, given, end, Fraction(least) / Fraction(SAFE)))
    return out


def _fractions(values: Floats) -> Exact:
    return [Fraction(value) for value in values.tolist()]


def _dot(a: Exact, b: Exact) -> Fraction:
    return sum((u * v for u, v in zip(a, b, strict=True) if u and v), Fraction(0))
