"""What the multipliers of a file show in floating point, one cell or box at a time.

`check_certificate` says what a proof consists of, walks its trees and derives the boxes; here is
what its sums come to without rational numbers: no more than with them. Multipliers that floats
cannot hold, or that these sums do not know, are left to it.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from counterlvq.cells import SharedCells
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.cellwise import Singles
from counterlvq.certificates.check_certificate import BITS
from counterlvq.certificates.duality import Proof
from counterlvq.certificates.files import Numbering
from counterlvq.certificates.questions import Question
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import CLOSED_GAP, EQUALITY_ROUNDING, HUGE, NO_ROOM, UNIT
from counterlvq.programs.nonconvex import Box, FormSides, LiftedMultipliers
from counterlvq.programs.program import Multipliers

__all__ = ["Told"]

Charges = dict[str, Any]  # as `check_certificate` reads them: tables are dicts
_OF_CELLS = {"rivals", "rows", "quadratics", "point"}


@final
class Told:
    """Cells and boxes of one question, with what a file charges for in them."""

    def __init__(
        self, question: Question | BoxQuestion, numbering: Numbering, margin: float
    ) -> None:
        self.question, self.numbering, self.margin = question, numbering, margin

    def single(self, prototype: int, rival: int) -> float:
        """Cost of overtaking one rival."""
        if not isinstance(self.question, Question):
            return 0.0
        pair = (np.array([at], dtype=np.int64) for at in (prototype, rival))
        return float(Singles(*pair).lower_bounds(self.question, self.margin)[0])

    def least(
        self, prototype: int, charges: Charges, box: Box, cap: float,
        *, with_cost: bool, sides: FormSides | None = None,
    ) -> float:  # fmt: skip
        """Least of what is charged for, with the cost or without; -inf where that is not known.

        Without the cost it is any number above 0 that says so.
        """
        if not self._is_known(charges) or (isinstance(self.question, Question) and sides):
            return -np.inf
        if isinstance(self.question, Question):
            proof = self._proof(prototype, charges)
            grounds = self.question.grounds
            return grounds.value(proof, self.margin, cap, with_cost=with_cost).least
        if not box.is_finite:
            return -np.inf
        prices = self.prices(prototype, charges, box, sides)
        if prices is None or self._is_off(prices.point, box):
            return -np.inf
        told = (prototype, prices, box, cap, self.margin)
        if with_cost:
            return self.question.bound(*told, as_told=True, sides=sides)
        is_shown = self.question.contradicts(*told, as_told=True, sides=sides)
        return 1.0 if is_shown else -np.inf

    def least_by_matrix(self, prototype: int, charges: Charges, cap: float) -> float:
        """Least of cost and charges where the cost is replaced by the tangent of its matrix.

        Floats work with a factor L, whose square is nowhere above the matrix M. With ``E = M -
        L'L`` the tangents of the two at p differ by ``2 p'E delta - p'E p``. -inf where a box has
        no end, or hardly room, along some feature, and where the inverse that a checker rounds to
        64 digits could be off by more than a small share.
        """
        question, form = self.question, self.question.template.form
        if not isinstance(question, Question) or form is None or form.matrix is None:
            return -np.inf
        low, high = question.grounds.box(cap)
        # What a checker finds held in place it puts in: no other than the tangent at that place.
        most, point = np.maximum(np.abs(low), np.abs(high)), self._point(charges)
        is_wide = high - low > NO_ROOM * most
        is_held = (low == high) & (low == point)
        if not (np.isfinite(most) & (is_wide | is_held)).all():
            return -np.inf
        L, M = question.template.proof_factor, form.matrix
        spread = float(question.grounds.stated.stretch @ np.sqrt(M.diagonal()))
        if not (low.size + 1) * spread**2 <= CLOSED_GAP * 2.0**BITS:
            return -np.inf
        size = np.abs(L).T @ np.abs(L) + np.abs(M)
        miss = np.abs(M - L.T @ L) + (L.shape[0] + 8) * UNIT * size
        p = np.abs(point)
        drawn = miss @ p
        whole = Box(low, high)
        least = self.least(prototype, charges, whole, cap, with_cost=True)
        return float(least - 1.01 * (2.0 * drawn @ most + drawn @ p))

    def tangency(
        self, prototype: int, charges: Charges, box: Box, cap: float,
        *, with_cost: bool, sides: FormSides | None = None,
    ) -> Floats | None:  # fmt: skip
        """Where the tangents serve a box best; None where there are none, or it is not known."""
        if not isinstance(self.question, BoxQuestion) or not self._is_known(charges):
            return None
        prices = self.prices(prototype, charges, box, sides)
        if prices is None:
            return None
        told = (prototype, prices, box, cap, self.margin)
        return self.question.tangency(*told, with_cost=with_cost, sides=sides)

    def _is_known(self, charges: Charges) -> bool:
        """Whether floats hold all multipliers, and the sums of the question know them."""
        numbering = self.numbering
        rows = {*numbering.inequalities.tolist(), *numbering.equalities.tolist()}
        if not rows.issuperset(charges.get("rows", {})):
            return False
        if isinstance(self.question, Question) and any(
            charges[key] for key in charges.keys() - _OF_CELLS
        ):
            return False
        return all(_is_small(part) for part in charges.values())

    def _is_off(self, point: Floats, box: Box) -> bool:
        """Whether a point lies outside of a box where rational numbers would leave it there."""
        inside = np.clip(point, box.lower, box.upper)
        is_convex = isinstance(self.question.cells, SharedCells)
        return is_convex and bool((np.abs(point - inside) > NO_ROOM * box.most).any())

    def _proof(self, prototype: int, charges: Charges) -> Proof:
        rivals = charges.get("rivals", {})
        return Proof(
            prototype,
            np.array([*rivals], dtype=np.int64),
            np.array([*map(float, rivals.values())], dtype=np.float64),
            self._multipliers(charges),
            self._point(charges),
        )

    def _point(self, charges: Charges) -> Floats:
        given = charges.get("point") or [0.0] * self.question.x.size
        return np.array([*map(float, given)], dtype=np.float64)

    def _multipliers(self, charges: Charges) -> Multipliers:
        given, parts = charges.get("rows", {}), (
            self.numbering.inequalities, self.numbering.equalities,
        )  # fmt: skip
        y, z = (
            np.array([float(given.get(int(n), 0.0)) for n in part], dtype=np.float64)
            for part in parts
        )
        nu = np.zeros(len(self.question.template.quadrics))
        for n, price in charges.get("quadratics", {}).items():
            nu[n] = price
        return Multipliers(y, z, nu)

    def prices(
        self, prototype: int, charges: Charges, box: Box, sides: FormSides | None = None
    ) -> LiftedMultipliers | None:
        """Multipliers of a box; None where floats do not stand for those of the file."""
        question = self.question
        assert isinstance(question, BoxQuestion)
        problem = question.problem(prototype, box)
        d, L = question.x.size, problem.convex.L
        forms = np.zeros(problem.forms.r.size)
        place = {int(k): n for n, k in enumerate(question.cells.rivals)}
        for k, y in charges.get("rivals", {}).items():
            if k not in place:
                return None
            forms[place[k]] = y
        if not _put_grid(forms[problem.rivals :], charges, question):
            return None
        squares, pulls = {}, {}
        k = 0 if sides is None else len(sides.V)
        named = {"low": d, "high": d, "cross": d, "signs": d}
        named |= {"form_low": k, "form_high": k, "form_cross": k}
        for name, size in named.items():
            squares[name] = np.zeros((size, size))
            for i, j, y in charges.get(name, []):
                squares[name][i, j] += float(y)
        share = np.zeros(d)
        for j, y in charges.get("share", {}).items():
            share[j] = y
        for name in ("from_low", "from_high"):
            pulls[name] = np.zeros((d, L.shape[0]))
            for j, pull in charges.get(name, []):
                found = _before(L, self.numbering, pull)
                if found is None:
                    return None
                pulls[name][j] += found
        return LiftedMultipliers(
            forms, self._multipliers(charges), squares["low"], squares["high"], squares["cross"],
            share, squares["signs"], pulls["from_low"], pulls["from_high"], self._point(charges),
            squares["form_low"], squares["form_high"], squares["form_cross"],
        )  # fmt: skip


def _is_small(part: Any) -> bool:
    if isinstance(part, str):
        return True
    if isinstance(part, dict):
        part = [*part.values()]
    return all(map(_is_small, part)) if isinstance(part, list) else abs(part) < HUGE


def _before(L: Floats, numbering: Numbering, pull: list[Any]) -> Floats | None:
    """Return a vector before it was drawn back by the factor of the cost, if there is one."""
    whole = np.zeros(L.shape[1])
    whole[numbering.numbers] = [*map(float, pull)]
    found = np.asarray(np.linalg.lstsq(L.T, whole, rcond=None)[0])
    miss = np.abs(found @ L - whole).max(initial=0.0)
    return found if miss <= EQUALITY_ROUNDING * np.abs(whole).max(initial=0.0) else None


def _put_grid(forms: Floats, charges: Charges, question: BoxQuestion) -> bool:
    """Put the charges for products on a grid in their places; False if some have none."""
    at = question.ticks.columns.tolist()
    one, other = question.template.grid.together
    names: list[tuple[Any, int]] = [("first", c) for c in at] + [("last", c) for c in at]
    names += zip(one.tolist(), other.tolist(), strict=True)
    places: dict[tuple[Any, ...], int] = {name: n for n, name in enumerate(names)}
    for *name, y in charges.get("neighbours", []) + charges.get("pairs", []):
        here = places.get(tuple(name), forms.size)
        if here >= forms.size:
            return False
        forms[here] += float(y)
    return True
