"""What a program has for every input: rows are fixed, right-hand sides are filled in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.cells import Halfspaces
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.quadratic_forms import Factor, QuadraticForm
from counterlvq.numeric.tolerances import CROSSING, UNIT
from counterlvq.programs.conditions import Conditional, LinearConditions, QuadraticCondition
from counterlvq.programs.grids import Choice, Grid
from counterlvq.programs.intervals import LeastChange, ValueRule
from counterlvq.programs.program import Program

__all__ = ["ProgramTemplate", "Stated"]

Value = TypeVar("Value")
Stated = LinearConditions | QuadraticCondition | Conditional | LeastChange | ValueRule

# How far a search looks, as a multiple of what data and constraints suggest, where neither they nor
# the cost limit a change. What it does not find there is not denied.
_REACH = 2.0**16


@final
@dataclass(frozen=True, eq=False)
class ProgramTemplate:
    """Cost and constraints, prepared once: rows are fixed, `at` fills in right-hand sides."""

    w: Floats
    L: Factor  # (s, d)
    inequalities: LinearConditions  # several features each
    equalities: LinearConditions  # several features each
    bounds: LinearConditions  # one feature each, y_j <= or >= something
    fixed: LinearConditions  # one feature each, y_j == something
    quadrics: tuple[QuadraticCondition, ...]
    conditionals: tuple[Conditional, ...]
    grid: Grid
    form: QuadraticForm | None = None  # what L stands for, where that is not L itself
    ways: Floats | None = None  # (2, d) prices up and down, where they are not w both ways
    # (2, d) what a unit makes the whole cost at the least, where conditions say more than w
    least_ways: Floats | None = None
    _derived: dict[Callable[..., Any], Any] = field(init=False, default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        w: Floats,
        L: Factor,
        conditions: Sequence[Stated],
        grid: Grid | None = None,
        form: QuadraticForm | None = None,
        ways: Floats | None = None,
        least_ways: Floats | None = None,
    ) -> ProgramTemplate:
        """Sort the conditions of all constraints by what a solver does with them."""
        width = w.size
        linear = [item for item in conditions if isinstance(item, LinearConditions)]
        least = [item for item in conditions if isinstance(item, LeastChange)]
        rules = [item for item in conditions if isinstance(item, ValueRule)]
        free = Grid.none(width) if grid is None else grid
        asked = [item for item in conditions if isinstance(item, Conditional)]
        return cls(
            w,
            L,
            _gathered(linear, width, equality=False, single=False),
            _gathered(linear, width, equality=True, single=False),
            _gathered(linear, width, equality=False, single=True),
            _gathered(linear, width, equality=True, single=True),
            tuple(item for item in conditions if isinstance(item, QuadraticCondition)),
            tuple(
                replace(item, test=free.apart(item.test)) if item.test else item for item in asked
            ),
            free.ruled(least, map(free.apart, rules)) if least or rules else free,
            form,
            ways,
            least_ways,
        )

    def derived(self, make: Callable[[ProgramTemplate], Value]) -> Value:
        """Return what `make` makes of this template, made once: models may share a template."""
        if make not in self._derived:
            self._derived[make] = make(self)
        found: Value = self._derived[make]
        return found

    @property
    def both_ways(self) -> Floats:
        """Price of one unit up, and of one unit down, (2, d)."""
        return np.stack([self.w, self.w]) if self.ways is None else self.ways

    @property
    def limiting_ways(self) -> Floats:
        """What one unit up, and one down, makes the whole cost at the least, (2, d)."""
        return self.both_ways if self.least_ways is None else self.least_ways

    @property
    def height(self) -> int | None:
        """The column of the largest change, which alone has a price; None where others count."""
        priced = np.flatnonzero(self.w > 0)
        return int(priced[0]) if self.least_ways is not None and priced.size == 1 else None

    @cached_property
    def cost_entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows and columns of the entries of L, row by row: a wide one is mostly blank."""
        rows, columns = self.L.nonzero()
        return rows.astype(np.int64), columns.astype(np.int64)

    @cached_property
    def cost_values(self) -> Floats:
        """The entries of L, in the order of `cost_entries`."""
        L = self.L
        return np.asarray(L[self.cost_entries] if isinstance(L, np.ndarray) else L.data)

    @cached_property
    def proof_factor(self) -> Factor:
        """A factor whose square is below the quadratic cost for sure, (s, d).

        Where the cost was given by a matrix, L stands for it up to rounding only.
        """
        if self.form is None or self.form.share == 1.0:
            return self.L
        # Rounded down, so that the cost that bounds are about is below the one that was given.
        return np.asarray(self.L * (np.sqrt(self.form.share) * (1.0 - 4.0 * UNIT)))

    @cached_property
    def frozen(self) -> NDArray[np.bool_]:
        """Features tied to their factual value, (d,)."""
        rows = self.fixed
        tied = (rows.v == 0) & (rows.A == -rows.R).all(axis=1)
        return np.asarray((rows.A[tied] != 0).any(axis=0))

    @property
    def is_continuous(self) -> bool:
        """Whether any number will do for each feature, and the same holds of all of them."""
        return self.grid.is_trivial and not self.conditionals

    @cached_property
    def holds_unchanged(self) -> bool:
        """Whether every input keeps all conditions as it is: they are about changes alone."""
        parts = (self.inequalities, self.bounds, self.equalities, self.fixed)
        about_changes = all((part.A == -part.R).all() for part in parts)
        allows_none = all(
            (part.v == 0).all() if part.equality else (part.v >= 0).all() for part in parts
        )
        return self.is_continuous and not self.quadrics and about_changes and allows_none

    @property
    def is_plain_lattice(self) -> bool:
        """Whether a lattice is all that is asked beyond linear and quadratic conditions."""
        return not (self.conditionals or self.grid.least or self.grid.rules)

    @cached_property
    def unconditional(self) -> ProgramTemplate:
        """Conditional rows among the inequalities, as if they held everywhere."""
        if not self.conditionals:
            return self
        rows = self.rows_holding((True,) * len(self.conditionals))
        return replace(self, inequalities=rows, conditionals=())

    def decided(self, choice: Choice, x: Floats) -> ProgramTemplate:
        """Hold everything that lies on a lattice, and the rest in pieces: these are convex."""
        y, at = choice.y, self.grid.lattice
        held = LinearConditions(
            np.eye(y.size)[at], np.zeros((at.size, y.size)), y[at], equality=True
        )
        real = np.setdiff1d(np.arange(y.size), at)
        sides = [
            LinearConditions.on_features([int(j)], y.size, new=sign, old=0.0, value=sign * end[j])
            for sign, end in ((-1.0, choice.lower), (1.0, choice.upper))
            for j in real[np.isfinite(end[real])]
        ]
        applying = [item.rows for item in self.conditionals if item.applies_at(y, x)]
        # A row that is left with one feature becomes a bound of it, which holds to the last digit.
        put_in = [
            rows.holding(at, y).among(~_met_but_for_rounding(rows, at, y, x))
            for rows in (self.inequalities, self.equalities, *applying)
        ]
        rest: list[Stated] = [*put_in, self.bounds, self.fixed, held, *sides, *self.quadrics]
        return ProgramTemplate.of(
            self.w, self.L, rest, form=self.form, ways=self.ways, least_ways=self.least_ways
        )

    def rows_holding(self, applying: tuple[bool, ...] | None) -> LinearConditions:
        """Inequalities on several features, with the conditional ones that apply."""
        if not self.conditionals:
            return self.inequalities
        holds = applying or (False,) * len(self.conditionals)
        pairs = zip(self.conditionals, holds, strict=True)
        return _stacked([self.inequalities, *(item.rows.times(held) for item, held in pairs)])

    def box(self, x: Floats) -> tuple[Floats, Floats]:
        """Smallest and largest allowed value of each feature, (d,) each."""
        lower = np.full(x.shape[0], -np.inf)
        upper = np.full(x.shape[0], np.inf)
        for rows in (self.bounds, self.fixed):
            columns, ends, rising = _ends(rows, x)
            above = rising if not rows.equality else np.ones_like(rising)
            below = ~rising if not rows.equality else above
            np.minimum.at(upper, columns[above], ends[above])
            np.maximum.at(lower, columns[below], ends[below])
        size = np.maximum(np.abs(lower), np.abs(upper))
        touching = (lower > upper) & (lower - upper <= CROSSING * size)
        lower[touching] = upper[touching]
        return lower, upper

    @cached_property
    def limits(self) -> tuple[Floats, Floats]:
        """Limits of each feature that were given as numbers, whatever the input, (d,) each."""
        given = (np.abs(self.bounds.A).sum(axis=1) == 1.0) & ~self.bounds.R.any(axis=1)
        no_input, rows = np.zeros(self.w.size), self.bounds.among(given)
        columns, ends, rising = _ends(rows, no_input)
        lower, upper = np.full((2, self.w.size), [[-np.inf], [np.inf]])
        np.minimum.at(upper, columns[rising], ends[rising])
        np.maximum.at(lower, columns[~rising], ends[~rising])
        return lower, upper

    def passes_limits(self, y: Floats, x: Floats) -> bool:
        """Whether a number that changes, and has no steps, lies beyond a limit, if by a digit."""
        lower, upper = self.limits
        is_beyond = (y < lower) | (y > upper)
        return bool((is_beyond & (y != x) & (self.grid.step == 0)).any())

    @cached_property
    def is_bounded(self) -> NDArray[np.bool_]:
        """Which features have a smallest and a largest allowed value, (d,)."""
        A, steady = self.bounds.A, (self.fixed.A != 0).any(axis=0)
        return np.asarray(((A > 0).any(axis=0) & (A < 0).any(axis=0)) | steady)

    def at(
        self,
        x: Floats,
        cell: Halfspaces,
        spread: Floats,
        applying: tuple[bool, ...] | None = None,
    ) -> Program:
        """Program of one cell at `x`: the half-spaces of the cell first, then the constraints.

        `spread` (d,) says how far the data reaches from `x`, and `applying` which of the
        conditional rows hold, none by default; the others are left as rows that say nothing.
        """
        lower, upper = self.box(x)
        ineq, eq = self.rows_holding(applying), self.equalities
        far = [spread, np.abs(_finite(lower - x)), np.abs(_finite(upper - x))]
        far += [_forced(rows.A, rows.v - (rows.A + rows.R) @ x) for rows in (ineq, eq)]
        far += [_forced(q.G, q.g - q.G @ x) for q in self.quadrics]
        far += [_forced(q.h[None, :], np.array([q.c - q.h @ x])) for q in self.quadrics]
        reach = _REACH * np.max(far, axis=0)
        reach = np.where(reach > 0, reach, _REACH * max(float(spread.max()), 1.0))
        if self.height is not None:
            # Its column alone says nothing of it: it is as large as what the others may cost.
            costs = self.limiting_ways.max(axis=0) * reach
            reach[self.height] = np.delete(costs, self.height).max(initial=0.0) or 1.0
        return Program(
            w=self.w,
            L=self.proof_factor,
            A=np.concatenate([cell.normals, ineq.A]),
            b=np.concatenate([cell.leads, ineq.v - (ineq.A + ineq.R) @ x]),
            E=eq.A,
            e=eq.v - (eq.A + eq.R) @ x,
            lower=lower - x,
            upper=upper - x,
            quadrics=tuple(quadric.moved(x) for quadric in self.quadrics),
            reach=reach,
            blur=CROSSING
            * np.concatenate([np.zeros(cell.leads.size), *(r.magnitude(x, x) for r in (ineq, eq))]),
            ways=self.ways,
            least_ways=self.least_ways,
        )


def _stacked(parts: Sequence[LinearConditions]) -> LinearConditions:
    A, R, v = (np.concatenate([getattr(rows, name) for rows in parts]) for name in "ARv")
    return LinearConditions(A, R, v, parts[0].equality)


def _gathered(
    linear: Sequence[LinearConditions], width: int, *, equality: bool, single: bool
) -> LinearConditions:
    picked = [rows for rows in linear if rows.equality == equality]
    empty = np.zeros((0, width))
    A = np.concatenate([empty, *(rows.A for rows in picked)])
    R = np.concatenate([empty, *(rows.R for rows in picked)])
    v = np.concatenate([np.zeros(0), *(rows.v for rows in picked)])
    kept = (np.count_nonzero(A, axis=1) == 1) == single
    return LinearConditions(A[kept], R[kept], v[kept], equality)


def _met_but_for_rounding(
    rows: LinearConditions, held: NDArray[np.intp], y: Floats, x: Floats
) -> NDArray[np.bool_]:
    """Say which conditions are on held columns alone and miss by no more than rounding, (k,).

    Nothing could make up for that; whoever judges the answer decides about it.
    """
    rest = rows.A.copy()
    rest[:, held] = 0.0
    excess = rows.A[:, held] @ y[held] + rows.R @ x - rows.v
    size = np.abs(rows.A[:, held]) @ np.abs(y[held]) + np.abs(x) @ np.abs(rows.R).T + np.abs(rows.v)
    is_met = (np.abs(excess) if rows.equality else excess) <= CROSSING * size
    return np.asarray(~rest.any(axis=1) & is_met)


def _ends(rows: LinearConditions, x: Floats) -> tuple[NDArray[np.intp], Floats, NDArray[np.bool_]]:
    """Column, end value and direction (True: an upper end) of rows on one feature each."""
    columns = np.abs(rows.A).argmax(axis=1) if rows.A.shape[0] else np.zeros(0, dtype=np.intp)
    slope = rows.A[np.arange(columns.shape[0]), columns]
    given = rows.R @ x
    ends = (rows.v - given) / slope
    if not rows.equality:
        # "x_j + 0.3" is itself rounded; step inside where the row would show it.
        outside = slope * ends + given - rows.v > 0
        ends[outside] = np.nextafter(ends, np.where(slope > 0, -np.inf, np.inf))[outside]
    return columns, ends, slope > 0


def _forced(A: Floats, right: Floats) -> Floats:
    """How far rows ``A delta <= right`` could make each feature go on its own, (d,)."""
    steps = np.zeros_like(A)
    np.divide(np.abs(right)[:, None], np.abs(A), out=steps, where=A != 0)
    out: Floats = steps.max(axis=0, initial=0.0)
    return out


def _finite(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, 0.0)
