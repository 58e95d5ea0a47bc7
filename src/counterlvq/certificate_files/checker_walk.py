"""The standalone checker's own walk through a proof, with a look at its leaves in floating point.

Cells, trees and boxes are those that `check_certificate` derives; so nothing is shown here that it
does not come to, and what floats do not show is left to its rational numbers.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, isfinite
from typing import Any

import numpy as np

from counterlvq.certificate_files.exact_points import least_point, two_doubles
from counterlvq.certificates import check_certificate as exactly
from counterlvq.certificates.exact_duality import rounded_down
from counterlvq.certificates.file_bounds import Told
from counterlvq.errors import CounterlvqError
from counterlvq.programs.nonconvex import Box, FormSides

__all__ = ["TROUBLE", "AimedCertificate", "QuickCertificate"]

# What numbers that are no floats, and conditions that the package does not know, end in.
TROUBLE = (*exactly.TROUBLE, CounterlvqError)


class QuickWalk(exactly.Asked):
    """A walk that asks floats first."""

    sums: Told | None = None
    goal: exactly.End = inf  # what a leaf has to show

    def aim(self, sums: Told | None, goal: exactly.End) -> None:
        """Let floats show a leaf that comes to at least `goal` in them."""
        self.sums, self.goal = sums, goal

    def _leaf(
        self,
        i: int,
        kind: str,
        told: exactly.Told,
        box: exactly.Box,
        cap: exactly.End,
        empty: bool,
        sides: exactly.Sides | None = None,
    ) -> exactly.End:
        with_cost = kind == "bound"
        if self.sums is not None and not (with_cost and empty):
            try:
                value = self.sums.least(
                    i, told, outwards(box), _float(cap, up=True), with_cost=with_cost,
                    sides=form_sides(sides, self.seen.width),
                )  # fmt: skip
            except TROUBLE:
                value = -inf
            if not with_cost and value > 0.0:
                return inf
            if with_cost and isfinite(value) and value >= self.goal:
                return min(Fraction(value), cap)
        return super()._leaf(i, kind, told, box, cap, empty, sides)

    def _single(self, i: int, k: int) -> exactly.End:
        value = 0.0 if self.sums is None else self.sums.single(i, k)
        return Fraction(value) if isfinite(value) and value >= self.goal else super()._single(i, k)


class QuickCertificate(exactly.Certificate):
    """The header of a file, whose lines are asked quickly; exactly as long as nothing is aimed."""

    asks = QuickWalk

    def read(self, item: Any, clock: exactly.Clock | None = None) -> tuple[exactly.Told, QuickWalk]:
        """Read one line, and prepare what is asked in it."""
        told, asked = super().read(item, clock)
        assert isinstance(asked, QuickWalk)
        return told, asked


class AimedWalk(exactly.Asked):
    """A walk that moves the points of tangency to where they serve its own boxes.

    Floats and rational numbers narrow a box in steps of their own. In the narrower one the sums are
    nowhere less, but a tangent elsewhere may be. Where floats know no better point, and for costs
    that hardly price some direction, it is solved for in rational numbers.
    """

    sums: Told | None = None
    aimed: exactly.Told

    def proof(self, item: Any) -> exactly.Told:
        """Read a proof, and keep what is read."""
        self.aimed = super().proof(item)
        return self.aimed

    def _leaf(
        self,
        i: int,
        kind: str,
        told: exactly.Told,
        box: exactly.Box,
        cap: exactly.End,
        empty: bool,
        sides: exactly.Sides | None = None,
    ) -> exactly.End:
        if self.sums is not None and "point" in told:
            with_cost = kind == "bound"
            found = self.sums.tangency(
                i, told, outwards(box), _float(cap, up=True), with_cost=with_cost,
                sides=form_sides(sides, self.seen.width),
            )  # fmt: skip
            if found is not None:
                told["point"] = [Fraction(v) for v in found.tolist()]
        value = super()._leaf(i, kind, told, box, cap, empty, sides)
        if "point" not in told or value >= cap:
            return value
        total = self.summed(i, told, box, cap, kind == "bound", sides)
        point = least_point(total, box, told["point"], self.clock)
        if point is None:
            return value
        told["point"] = point
        return max(value, super()._leaf(i, kind, told, box, cap, empty, sides))


class AimedCertificate(exactly.Certificate):
    """The header of a file whose points of tangency are moved."""

    asks = AimedWalk

    def aimed(self, line: exactly.Told, item: Any, sums: Told) -> exactly.Told:
        """Return the proof of a line, which was read as `item`, with points that serve it best."""
        told, asked = self.read(item)
        assert isinstance(asked, AimedWalk)
        answer, asked.sums = told["answer"], sums
        cap = inf if answer["cost"] is None else answer["cost"]
        asked.least(told["proof"], cap, answer["status"] == "infeasible")
        out: exactly.Told = _with_points(line["proof"], asked.aimed)
        return out


def _with_points(values: Any, read: Any) -> Any:
    """Copy what JSON holds, with the points of what was read from it."""
    if isinstance(values, list) and isinstance(read, list):
        return [_with_points(a, b) for a, b in zip(values, read, strict=True)]
    if not isinstance(values, dict) or not isinstance(read, dict):
        return values
    out = {key: _with_points(part, read[key]) for key, part in values.items()}
    return out | two_doubles(read["point"]) if "point" in read else out


def outwards(box: exactly.Box) -> Box:
    """Round the sides of a box to floats, outwards."""
    low = [_float(end, up=False) for end in box[0]]
    high = [_float(end, up=True) for end in box[1]]
    return Box(np.array(low), np.array(high))


def form_sides(sides: exactly.Sides | None, width: int) -> FormSides | None:
    """Write linear forms as floats, which they are in a file, and their sides rounded outwards."""
    if sides is None:
        return None
    V = np.zeros((len(sides.forms), width))
    for row, form in zip(V, sides.forms, strict=True):
        for c, slope in form.items():
            row[c] = float(slope)
    return FormSides(V, *outwards(sides.ends))


def _float(value: exactly.End, *, up: bool) -> float:
    if not isinstance(value, Fraction):
        return value
    return -rounded_down(-value) if up else rounded_down(value)
