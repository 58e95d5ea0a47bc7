"""Whether a finished point is what was asked for, by `predict` and by every constraint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.arrays import Floats
from counterlvq.model import PrototypeModel
from counterlvq.programs import Blueprint
from counterlvq.stated import entries_of

__all__ = ["CLOSED_GAP", "EXACT_GAP", "Judged", "Rules"]

# What OPTIMAL means for shared metrics.
EXACT_GAP = 1e-6
# A kernel's answer is looked at again if more than this stays open: exact arithmetic or another
# engine may close it.
CLOSED_GAP = 1e-7

# How far an inequality of the user may be off, relative to the numbers that meet in it, when
# it leaves no room at all; and a margin, which like an equality rarely holds to the last digit.
# Points that are off by less count as answers; no bound and no exclusion rests on either.
_INEQUALITY_ROUNDING = 2.0**-46
_MARGIN_ROUNDING = 2.0**-40


class Judged(NamedTuple):
    """What is to be said of finished points, one entry each."""

    good: NDArray[np.bool_]  # finite, and meets every constraint
    cost: Floats
    gap: Floats  # share of the cost that its bound does not prove
    resolution: Floats  # cost that the last digits of the point itself are worth

    def closed(self, bound: Floats | float, tolerance: float) -> NDArray[np.bool_]:
        """Which are proved to a share of their cost, or to what their digits can tell."""
        return np.asarray((self.gap <= tolerance) | (self.cost - bound <= self.resolution))


@final
@dataclass(frozen=True, eq=False)
class Rules:
    """What a counterfactual has to satisfy; it knows nothing of how one is found."""

    model: PrototypeModel
    blueprint: Blueprint
    margin: float | None
    says: Callable[[Floats], NDArray[Any]] | None = None  # the user's own `predict`, if another

    def accepts(
        self, y: Floats, x: Floats, wished: NDArray[np.bool_], *, strict: bool = True
    ) -> bool:
        """Whether `y` has a wished-for label and meets every constraint.

        Inequalities have to hold to the last digit if `strict`.
        """
        Y, X = y[None, :], x[None, :]
        if not self.judged(Y, X, strict=strict).good[0]:
            return False
        return bool(self.wins(Y, X, self.model.nearest(Y), wished)[0])

    def judged(
        self, Y: Floats, X: Floats, bound: Floats | float = 0.0, *, strict: bool = True
    ) -> Judged:
        """Judge each row of `Y` as the counterfactual of that row of `X`, with its bound."""
        # Numba takes a second to import and is not needed before this point.
        from counterlvq.checks import judge_rows

        n = Y.shape[0]
        out = Judged(np.empty(n, dtype=bool), *(np.empty(n) for _ in range(3)))
        give = 0.0 if strict else _INEQUALITY_ROUNDING
        bounds = np.full(n, bound) if isinstance(bound, float) else bound
        squares = self._squares(Y, X)
        judge_rows(self._checks, _writable(X), _writable(Y), bounds, give, squares, *out)
        for quadric in self.blueprint.quadrics:
            for i in np.flatnonzero(out.good):
                out.good[i] = quadric.holds(Y[i], give * quadric.magnitude(Y[i]))
        if not self.blueprint.is_continuous:
            for i in np.flatnonzero(out.good):
                out.good[i] = self._is_on_grid(Y[i], X[i], give)
        return out

    def _squares(self, Y: Floats, X: Floats) -> Floats:
        """Quadratic part of each cost by what the user gave, where its factor only comes near."""
        form = self.blueprint.form
        if form is None or form.diagonal is not None:
            return np.full(Y.shape[0], np.nan)
        with np.errstate(invalid="ignore"):  # points that are not finite are refused later
            return form.values(Y - X)

    def _is_on_grid(self, y: Floats, x: Floats, give: float) -> bool:
        """Whether a point is on the grid, and meets the conditions that hold on its part of it."""
        for item in self.blueprint.conditionals:
            if item.applies(y, y):
                excess = item.rows.A @ y + item.rows.R @ x - item.rows.v
                if not (excess <= give * item.rows.magnitude(y, x)).all():
                    return False
        return self.blueprint.grid.holds(y)

    def wins(
        self, Y: Floats, X: Floats, nearest: NDArray[np.intp], wished: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Which rows have a wished-for label, by the margin unless they are unchanged, (n,)."""
        won = wished[nearest]
        if self.margin and won.any():
            scores = self.model.distances(Y)
            rival = scores[:, ~wished].min(axis=1, initial=np.inf)
            own = scores[:, wished].min(axis=1)
            kept = rival - own >= self.margin - _MARGIN_ROUNDING * (own + self.margin)
            won = won & (kept | (Y == X).all(axis=1))
        if self.says is not None and won.any():
            won[won] = np.isin(self.says(Y[won]), self.model.labels[wished])
        return won

    @cached_property
    def _checks(self) -> _Checks:
        return _checks_of(self.blueprint)


class _Checks(NamedTuple):
    """Plain arrays, as `checks` takes them; row k of a matrix has the entries from start_k on."""

    start: NDArray[np.int64]  # (k + 1,)
    feature: NDArray[np.int64]  # (entries,)
    new: Floats  # (entries,) factor of the counterfactual value
    old: Floats  # (entries,) factor of the factual value
    value: Floats  # (k,)
    equality: NDArray[np.bool_]  # (k,)
    w: Floats  # (d,)
    L_start: NDArray[np.int64]  # (s + 1,)
    L_feature: NDArray[np.int64]
    L_factor: Floats


def _checks_of(blueprint: Blueprint) -> _Checks:
    parts = (blueprint.inequalities, blueprint.bounds, blueprint.equalities, blueprint.fixed)
    A, R, v = (np.concatenate([getattr(rows, name) for rows in parts]) for name in "ARv")
    k, j, start = entries_of((A != 0) | (R != 0))
    r, c, L_start = entries_of(blueprint.L != 0)
    return _Checks(
        start=start,
        feature=j,
        new=A[k, j],
        old=R[k, j],
        value=v,
        equality=np.repeat([rows.equality for rows in parts], [rows.v.size for rows in parts]),
        w=np.array(blueprint.w),  # a copy that can be written to; see `_writable`
        L_start=L_start,
        L_feature=c,
        L_factor=blueprint.L[r, c],
    )


def _writable(rows: Floats) -> Floats:
    """Compiled code tells read-only arrays apart and would be compiled twice."""
    return np.require(rows, requirements=["C", "W"])
