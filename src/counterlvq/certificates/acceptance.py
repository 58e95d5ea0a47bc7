"""Whether a finished point is what was asked for, by `predict` and by every constraint."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.acceptance_kernel import judge_rows
from counterlvq.certificates.judged import Accepted, Judged, Verdict
from counterlvq.certificates.leads import Around, Leads, LeadsAt, blur_around, blur_within
from counterlvq.certificates.regions import Region, Regions
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.records import Record
from counterlvq.numeric.tolerances import (
    CONFIDENT_CUSHION,
    INEQUALITY_ROUNDING,
    MARGIN_ROUNDING,
    NEGLIGIBLE_LEAD,
)
from counterlvq.programs.proof_data import entries_of, starts_of
from counterlvq.programs.template import ProgramTemplate
from counterlvq.types import Scores

__all__ = [
    "MOST_PUSHES",
    "Acceptance",
]


# In how much company a row is asked about where its label may depend on it: routines treat the
# last rows of a block differently.
_COMPANIES = (2, 3, 5, 9, 17)
# What is asked for beyond the lead that makes the label of the input certain: the answer lies
# elsewhere, usually not far away. It moves the answer, never a bound. Where rounding is so coarse
# that a lead costs something, less is asked for, at the price of looking again more often.
_AMPLE = 1.5
_SCARCE = 1.0625


# How often an answer that the user's own `predict` may not confirm is pushed further in.
MOST_PUSHES = 4
# How many times its share of the lead that has to be gained a further lead may cost.
_OPEN = 8.0


@final
@dataclass(frozen=True, eq=False)
class Acceptance:
    """What a counterfactual has to satisfy; it knows nothing of how one is found."""

    model: PrototypeModel
    template: ProgramTemplate
    margin: float | None
    says: Callable[[Floats], NDArray[Any]] | None = None  # the user's own `predict`, if another
    doubt: Leads | None = None  # what its rounding leaves open
    # Whether the margin is a confidence: inputs have to have it too, and no digit may lack.
    is_sure: bool = False

    @property
    def ties_count(self) -> bool:
        """Whether copies of rivals matter: a margin is wished for, or a foreign model decides."""
        return bool(self.margin) or self.says is not None

    def hearing(self, says: Callable[[Floats], NDArray[Any]]) -> Acceptance:
        """Return the same rules, which ask `says`."""
        out = copy(self)  # with what was worked out already
        object.__setattr__(out, "says", says)
        return out

    def accepts(
        self,
        y: Floats,
        x: Floats,
        target_mask: NDArray[np.bool_],
        *,
        strict: bool = True,
        judged: Judged | None = None,
    ) -> Accepted | None:
        """Take `y` for an answer if it has a wished-for label and meets every constraint.

        Inequalities have to hold to the last digit if `strict`, as searches ask for first, or but
        for rounding, which is what counts. On a grid there may be no room for
        a margin: there the user's own `predict` is asked about every point. `judged` is what is
        known of the point already.
        """
        Y, X = y[None, :], x[None, :]
        if judged is None:
            judged = self.judged(Y, X, strict=strict)
        if not judged.good[0]:
            return None
        assured = None
        if self.doubt is not None and self.model.is_refereed:
            assured = self.is_assured(Y, target_mask)
        if assured is not None and assured[0]:
            # Nobody else need say which of all is the nearest: a pipeline takes its time for that.
            nearest = self.nearest_wished(Y, target_mask)
        else:
            nearest = self.model.nearest_of_checked(Y)
        if not self.wins(Y, X, nearest, target_mask)[0]:
            nearest = self._tied(Y, nearest, target_mask)
            if not nearest.size:
                return None
        cost, resolution = float(judged.cost[0]), float(judged.resolution[0])
        found = Accepted(y, cost, resolution, int(nearest[0]), self.says is None)
        if self.template.is_continuous or found.is_confirmed:
            return found
        prototype = self.confirms(found, target_mask, assured)
        return None if prototype is None else found._replace(prototype=prototype, is_confirmed=True)

    def _tied(
        self, Y: Floats, nearest: NDArray[np.intp], target_mask: NDArray[np.bool_]
    ) -> NDArray[np.intp]:
        """Nearest wished-for prototype of a point, where a foreign model may say that it wins.

        Of a tie on a grid it has the last word, in an order of its own: it is asked next. None
        elsewhere, (0,): where there is no grid, points that win lie next to a tie.
        """
        if self.template.is_continuous or self.says is None or self.margin:
            return nearest[:0]
        near = self.model.about_as_near(Y, self.model.distances_of_checked(Y), nearest)
        return self.nearest_wished(Y, target_mask) if near[0, target_mask].any() else nearest[:0]

    def keeps(self, X: Floats) -> NDArray[np.bool_]:
        """Say which inputs meet every constraint as they are, (n,).

        They are where they are: what they miss by rounding alone they keep.
        """
        if self.template.holds_unchanged:
            return np.ones(len(X), dtype=bool)
        return self.judged(X, X, strict=False).good

    def judged(
        self, Y: Floats, X: Floats, bound: Floats | float = 0.0, *, strict: bool = True
    ) -> Judged:
        """Judge each row of `Y` as the counterfactual of that row of `X`, with its bound."""
        n = Y.shape[0]
        out = Judged(np.empty(n, dtype=bool), np.empty(n), np.empty(n), np.empty(n))
        give = 0.0 if strict else INEQUALITY_ROUNDING
        bounds = np.full(n, bound) if isinstance(bound, float) else bound
        reach, squares = self.reach(X), self._squares(Y, X)
        judge_rows(self._checks, _writable(X), _writable(Y), bounds, give, reach, squares, *out)
        template = self.template
        for quadric in template.quadrics:
            for i in np.flatnonzero(out.good):
                out.good[i] = quadric.holds(Y[i])
        if template.is_continuous:
            return out
        out.good[out.good] = template.grid.on_lattice(Y[out.good], X[out.good])
        if not template.is_plain_lattice and out.good.any():
            at = np.flatnonzero(out.good)
            out.good[at] = self._keep_what_applies(Y[at], X[at], give, reach[at])
        return out

    def reach(self, X: Floats) -> Floats:
        """How large a value counts in what gives way by rounding, (n, d); (n, 0) without a grid.

        Proofs over boxes spare what is off by rounding of numbers as large as the box or, where a
        side of it is open, as the data. Beyond that nothing more may be off than they spare.
        """
        if self.template.is_continuous:
            return np.empty((X.shape[0], 0))
        first, last = self._extent
        reach = np.abs(X) + np.maximum(np.abs(first - X), np.abs(last - X))
        reach[:, self.template.is_bounded] = np.inf
        return reach

    @cached_property
    def _extent(self) -> tuple[Floats, Floats]:
        prototypes = self.model.prototypes
        return prototypes.min(axis=0), prototypes.max(axis=0)

    def _squares(self, Y: Floats, X: Floats) -> Floats:
        """Quadratic part of each cost by what the user gave, where its factor only comes near."""
        form = self.template.form
        if form is None or form.diagonal is not None:
            unknown = np.empty(Y.shape[0])
            unknown.fill(np.nan)  # a tenth of the time of `np.full`, in a row that takes little
            return unknown
        with np.errstate(invalid="ignore"):  # points that are not finite are refused later
            return form.values(Y - X)

    def _keep_what_applies(
        self, Y: Floats, X: Floats, give: float, reach: Floats
    ) -> NDArray[np.bool_]:
        """Whether points on the lattice meet what depends on where they lie, (n,)."""
        template, out = self.template, np.ones(len(Y), dtype=bool)
        counted = np.minimum(np.abs(Y), reach)
        for item in template.conditionals:
            at = np.flatnonzero(item.applies_to(Y, X))
            excess, size = item.rows.excesses(Y[at], X[at], counted[at])
            slacks = template.grid.slacks(item.rows.A)
            out[at] &= (excess <= slacks.within(give, size)).all(axis=1)
        if template.grid.rules or template.grid.least:
            for i in np.flatnonzero(out):
                out[i] = template.grid.keeps_rules(Y[i], X[i])
        return out

    def wins(
        self, Y: Floats, X: Floats, nearest: NDArray[np.intp], target_mask: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Which rows have a wished-for label, by the margin unless they are unchanged, (n,)."""
        won = target_mask[nearest]
        if self.margin and won.any():
            scores = self.model.distances_of_checked(Y)
            rival = scores[:, ~target_mask].min(axis=1, initial=np.inf)
            own = scores[:, target_mask].min(axis=1)
            slack = MARGIN_ROUNDING * (own + self.margin)
            if self.is_sure:
                sure = won & (rival - own >= self.margin + slack)
                for i in np.flatnonzero(won & ~sure & (rival - own >= self.margin - slack)):
                    sure[i] = self._leads_exactly(Y[i : i + 1], target_mask)
                return np.asarray(sure)
            won = won & ((rival - own >= self.margin - slack) | (Y == X).all(axis=1))
        return won

    def _leads_exactly(self, Y: Floats, target_mask: NDArray[np.bool_]) -> bool:
        """Whether a row has the margin in rational numbers, and what a foreign model may hide."""
        y, exact = Y[0], self.model.exact_distance
        own = min(exact(y, int(i)) for i in np.flatnonzero(target_mask))
        rivals = (exact(y, int(k)) for k in np.flatnonzero(~target_mask))
        asked = Fraction(self.margin or 0.0) + Fraction(float(self.blur(Y)[0]))
        return all(rival - own >= asked for rival in rivals)

    def nearest_wished(self, rows: Floats, target_mask: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Nearest prototype of rows whose label is wished for, as `is_assured` says, (n,).

        The model has the last word only where two of the wished-for ones are about as near.
        """
        if not len(rows):
            return np.zeros(0, dtype=np.intp)
        scores = self.model.distances_of_checked(rows)
        nearest: NDArray[np.intp] = np.where(target_mask, scores, np.inf).argmin(axis=1)
        if target_mask.sum() == 1:
            return nearest
        near = self.model.about_as_near(rows, scores, nearest)
        close = (near & target_mask).sum(axis=1) > 1
        nearest[close] = self.model.nearest_of_checked(rows[close])
        return nearest

    def nearest_at(self, rows: Floats, at: LeadsAt | None) -> NDArray[np.intp]:
        """Nearest prototype of rows, (n,), by what `doubt` says there if no rounding matters.

        The model is asked where some may: behind a pipeline that takes its time.
        """
        if at is None or at.scores.shape[1] < 2:
            return self.model.nearest_of_checked(rows)
        nearest: NDArray[np.intp] = at.scores.argmin(axis=1)
        ends = np.partition(at.scores, 1, axis=1)
        unclear = np.flatnonzero(~(ends[:, 1] - ends[:, 0] >= at.least_margin))
        if unclear.size:
            nearest[unclear] = self.model.nearest_of_checked(rows[unclear])
        return nearest

    def verdict(
        self,
        rows: Floats,
        target_mask: NDArray[np.bool_] | None = None,
        nearest: NDArray[np.intp] | None = None,
        assured: NDArray[np.bool_] | None = None,
        told: NDArray[Any] | None = None,
    ) -> Verdict:
        """Ask the user's model about rows, all at once.

        It is asked again, about one row alone and in company, where rounding in its `predict`
        may decide: between labels, or between what is wished for and what is not. The last three
        are the nearest prototypes, what `is_assured` says and what the model said of the rows
        among others, where they are known already.
        """
        nearest = self.model.nearest_of_checked(rows) if nearest is None else nearest.copy()
        steady = np.ones(len(rows), dtype=bool)
        if self.says is None:
            return Verdict(nearest, steady, steady)
        told = np.array(self.says(rows) if told is None else told)
        assured = self.is_assured(rows, target_mask) if assured is None else assured
        for i in np.flatnonzero(~assured):
            alone = self.says(rows[i : i + 1])[0]
            crowds = (np.repeat(rows[i : i + 1], size, axis=0) for size in _COMPANIES)
            told[i] = alone
            steady[i] = all((self.says(crowd) == alone).all() for crowd in crowds)
        for i in np.flatnonzero(told != self.model.labels[nearest]):
            same = np.flatnonzero(self.model.labels == told[i])
            scores = self.model.distances_of_checked(rows[i : i + 1])[0, same]
            nearest[i] = same[scores.argmin()] if same.size else nearest[i]
            steady[i] &= same.size > 0
        return Verdict(nearest, assured, steady)

    def confirms(
        self,
        answer: Accepted,
        target_mask: NDArray[np.bool_],
        assured: NDArray[np.bool_] | None = None,
    ) -> int | None:
        """Prototype whose label the user's own `predict` gives a point.

        None unless it is a wished-for one in any company. `assured` is as for `verdict`.
        """
        if answer.is_confirmed:
            return answer.prototype
        told = self.verdict(answer.y[None, :], target_mask, np.array([answer.prototype]), assured)
        prototype = int(told.prototype[0])
        return prototype if target_mask[prototype] and told.steady[0] else None

    def is_assured(
        self,
        rows: Floats,
        target_mask: NDArray[np.bool_] | None = None,
        at: LeadsAt | None = None,
    ) -> NDArray[np.bool_]:
        """Whether rounding in the user's own `predict` cannot decide the label of rows, (n,).

        Or, if `target_mask` is given, whether it cannot decide that the label is a wished-for one.
        `at` is what `doubt` says at the rows, where it was asked already.
        """
        if self.doubt is None:
            return np.ones(len(rows), dtype=bool)
        there = self.doubt.at(rows) if at is None else at
        leads = there.leads_of_nearest if target_mask is None else there.leads(target_mask)
        if self.regions is None:
            return np.asarray(leads >= there.least_margin)
        certain = self.regions.at(rows)[0]
        out = np.asarray(leads >= certain)
        if not out.all():
            left = ~out
            exactly = there if left.all() else self.doubt.at(rows[left])
            out[left] = leads[left] >= exactly.least_margin
        return out

    def around(self, rows: Floats, at: LeadsAt | None = None) -> Around:
        """Say what the user's own `predict` may overlook at rows and around them.

        By regions, where that is next to nothing beside the lead of the nearest prototype; row by
        row elsewhere. `at` is what `doubt` says at the rows, where it was asked already.
        """
        if self.doubt is None:
            certain = np.zeros(len(rows))
            return Around(certain, self._blur_by(rows, certain))
        there = self.doubt.at(rows) if at is None else at
        if self.regions is None:
            certain = there.least_margin
            return Around(certain, self._blur_by(rows, certain))
        certain, blur = self.regions.at(rows)
        left = ~(np.maximum(certain, blur) <= NEGLIGIBLE_LEAD * there.leads_of_nearest)
        if left.any():
            exactly = there if left.all() else self.doubt.at(rows[left])
            certain[left] = exactly.least_margin
            blur[left] = self._blur_by(rows[left], certain[left])
        return Around(certain, blur)

    def least_margin(self, rows: Floats, around: Around | None = None) -> Floats:
        """Lead to ask for so that the label is certain at rows and around them, (n,).

        `around` is what `around` says of the rows, where it is known.
        """
        least = np.zeros(len(rows))
        if self.doubt is not None:
            least = self.ample * (self.least_leads(rows) if around is None else around.certain)
        if self.is_sure:
            margin, scores = self.margin or 0.0, self.model.distances_of_checked(rows)
            least = np.maximum(least, margin + CONFIDENT_CUSHION * (margin + scores.max(axis=1)))
        return np.where(np.isfinite(least), least, 0.0)

    def missing_lead(self, y: Floats, target_mask: NDArray[np.bool_]) -> float:
        """Lead to ask for where a point misses a confidence by rounding alone; inf elsewhere.

        What is asked for at an input is too little where an answer lies much farther from the
        prototypes: more digits are lost there.
        """
        if not self.is_sure:
            return np.inf
        missed = self.lead_at(y, target_mask) - (self.margin or 0.0)
        least = float(self.least_margin(y[None, :])[0])
        return least if abs(missed) <= least - (self.margin or 0.0) else np.inf

    def lead_at(self, y: Floats, target_mask: NDArray[np.bool_]) -> float:
        """By how much the nearest wished-for prototype is nearer than any other, in floats."""
        scores = self.model.distances_of_checked(y[None, :])[0]
        return float(scores[~target_mask].min(initial=np.inf) - scores[target_mask].min())

    @cached_property
    def ample(self) -> float:
        """How many times the lead that makes the label of an input certain is asked for."""
        return _SCARCE if self.doubt is not None and self.doubt.is_coarse else _AMPLE

    def blur(self, rows: Floats) -> Floats:
        """Lead of a rival that the user's own `predict` may overlook at rows and around, (n,).

        What its rounding can be in the region of the row, or twice what it can be at the row
        itself, and what restating it in the user's columns got wrong: the points that a bound is
        about lie elsewhere, usually not far away.
        """
        return np.zeros(len(rows)) if self.says is None else self.around(rows).blur

    def _blur_by(self, rows: Floats, certain: Floats) -> Floats:
        if self.says is None:
            return np.zeros(len(rows))
        return blur_around(self.model, rows, certain)

    def blur_within(
        self,
        rows: Floats,
        reach: Floats,
        around: Floats | None = None,
        at: LeadsAt | None = None,
    ) -> Floats:
        """Lead of a rival that `predict` may overlook at any row within `reach` (n, d), (n,).

        At least `blur`, so that bounds about small vicinities agree. Infinite where a column that
        matters has no limit. `around` is `blur` of the rows, and `at` is as for `around`, where
        they are known.
        """
        if self.says is None:
            return np.zeros(len(rows))
        around = self.blur(rows) if around is None else around
        if self.doubt is None:
            return blur_within(self.model, rows, reach, around, None)
        there = self.doubt.at(rows) if at is None else at
        if self.regions is None:
            return blur_within(self.model, rows, reach, around, there.overlooked(reach))
        found = np.maximum(around, self.regions.at(rows, reach)[1])
        left = ~(found <= NEGLIGIBLE_LEAD * there.leads_of_nearest)
        if left.any():
            exactly = there if left.all() else self.doubt.at(rows[left])
            overlooked = exactly.overlooked(reach[left])
            found[left] = blur_within(self.model, rows[left], reach[left], around[left], overlooked)
        return found

    def least_leads(self, rows: Floats) -> Floats:
        """Lead with which the label is certain at rows, (n,)."""
        if self.regions is not None:
            return self.around(rows).certain
        return np.zeros(len(rows)) if self.doubt is None else self.doubt.least_margin(rows)

    @cached_property
    def regions(self) -> Regions | None:
        """Regions of rows of plain numbers; None where bounds have to be found row by row."""
        model: Any = self.model  # or as much of one as is asked about rows
        doubt = self.doubt
        if doubt is None or doubt.is_coarse or not doubt.is_direct or self.says is None:
            return None
        if not isinstance(model, PrototypeModel) or model.is_local or self.is_sure:
            return None
        # Linear scores may be next to 0 at few rows of a region, and need next to no lead there.
        if not self.template.is_continuous or model.meaning.scores is Scores.SHIFTED:
            return None
        return Regions(model.prototypes, _reach_unit(self.template), self._overlooked_in)

    def _overlooked_in(self, rows: Floats, reach: Floats) -> Region:
        """Say what holds at every row that differs by at most `reach` (1, d) from a row."""
        assert self.doubt is not None
        overlooked = self.doubt.overlooked(rows, reach)
        blur = blur_within(self.model, rows, reach, np.zeros(1), overlooked)
        # Twice, because the leads that it is compared with are computed ones.
        return Region(2.0 * float(overlooked[0]), float(blur[0]))

    def pushed(self, least: Floats, Y: Floats) -> Floats:
        """Lead to ask for next, where the points that `least` led to are in doubt, (n,)."""
        there = self.least_margin(Y)
        return np.where(there > least, there, 2.0 * least)

    def open_share(self, X: Floats, target_mask: NDArray[np.bool_], least: Floats) -> Floats:
        """Share of the cost that asking for a lead may leave open, about, (n,).

        Where more is open, an engine has done badly: the cost of a lead grows no faster than the
        square of what has to be gained, unless constraints are in the way. An input that leads
        already, or that has no rivals, has the less to gain the further it leads.
        """
        out = np.zeros(len(X))
        asked = least > 0
        if asked.any():
            scores = self.model.distances_of_checked(X[asked])
            behind = scores[:, target_mask].min(axis=1) - scores[:, ~target_mask].min(
                axis=1, initial=np.inf
            )
            share = np.full(behind.shape, np.inf)
            np.divide(_OPEN * least[asked], np.abs(behind), out=share, where=behind != 0)
            out[asked] = share
        return out

    @cached_property
    def _checks(self) -> _Checks:
        return self.template.derived(_checks_of)


@final
@dataclass(frozen=True, eq=False)
class _Checks(Record):
    """Plain arrays for `acceptance_kernel`; row k of a matrix has the entries from start_k on."""

    start: NDArray[np.int64]  # (k + 1,)
    feature: NDArray[np.int64]  # (entries,)
    new: Floats  # (entries,) factor of the counterfactual value
    old: Floats  # (entries,) factor of the factual value
    value: Floats  # (k,)
    equality: NDArray[np.bool_]  # (k,)
    most: Floats  # (k,) as in `Slacks`
    least: Floats  # (k,)
    is_exact: NDArray[np.bool_]  # (d,) columns on a grid
    ways: Floats  # (2, d) price of one unit up and down
    L_start: NDArray[np.int64]  # (s + 1,)
    L_feature: NDArray[np.int64]
    L_factor: Floats


def _checks_of(template: ProgramTemplate) -> _Checks:
    parts = (template.inequalities, template.bounds, template.equalities, template.fixed)
    A, R, v = (np.concatenate([getattr(rows, name) for rows in parts]) for name in "ARv")
    k, j, start = entries_of((A != 0) | (R != 0))
    r, c = template.cost_entries
    slacks = template.grid.slacks(A)
    return _Checks(
        start=start,
        feature=j,
        new=A[k, j],
        old=R[k, j],
        value=v,
        equality=np.repeat([rows.equality for rows in parts], [rows.v.size for rows in parts]),
        most=slacks.most,
        least=slacks.least,
        is_exact=template.grid.step > 0,
        ways=np.array(template.both_ways),  # a copy that can be written to; see `_writable`
        L_start=starts_of(r, template.L.shape[0]),
        L_feature=c,
        L_factor=template.cost_values,
    )


def _reach_unit(template: ProgramTemplate) -> Floats:
    """Say in about which proportion changes of one cost reach along the columns, (d,)."""
    squares = np.zeros(template.w.size)
    np.add.at(squares, template.cost_entries[1], template.cost_values**2)
    prices = template.limiting_ways.min(axis=0) + np.sqrt(squares)
    is_priced = (prices > 0) & np.isfinite(prices)
    return np.asarray(np.where(is_priced, 1.0 / np.where(is_priced, prices, 1.0), 1.0))


def _writable(rows: Floats) -> Floats:
    """Compiled code tells read-only arrays apart and would be compiled twice."""
    flags = rows.flags
    if flags.c_contiguous and flags.writeable:
        return rows
    return np.require(rows, requirements=["C", "W"])
