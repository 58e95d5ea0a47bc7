"""Equalities solved for the changes that they determine, in exact arithmetic.

One condition limits a change only by what limits the others in it. As many equalities as changes
leave one point, though none of them limits anything by itself: solved together they do. What each
gives way by is counted with the share that it has in a solution.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from counterlvq.certificates.enclosures import rounded_up
from counterlvq.numeric.exact import scaled
from counterlvq.programs.nonconvex import Box
from counterlvq.programs.program import Program

__all__ = ["SolvedEquality", "solved_equalities", "within_solved"]

# Products of whole numbers that solving may take; as many as in `check_certificate`.
_MOST_PRODUCTS = 1 << 16


class SolvedEquality(NamedTuple):
    """``sum_c form_c delta_c`` lies between two numbers, with 1 as the factor of one change."""

    form: dict[int, Fraction]
    least: Fraction
    most: Fraction


def solved_equalities(program: Program) -> list[SolvedEquality]:
    """Solve the equalities for changes that have no end by themselves, then for others."""
    open_by = program.blur[program.b.size :]
    usable = np.flatnonzero(np.isfinite(program.e) & np.isfinite(open_by))
    count, width = usable.size, program.width
    if count < 2 or count**2 * (width + count) > _MOST_PRODUCTS:
        return []
    is_endless = ~(np.isfinite(program.lower) & np.isfinite(program.upper))
    is_held = program.lower >= program.upper
    order = np.argsort(np.where(is_endless, 0, np.where(is_held, 2, 1)), kind="stable")
    rows = np.concatenate([program.E[usable][:, order], np.eye(count)], axis=1)
    A = [scaled(row).units.tolist() for row in rows]
    used, pivot = _eliminated(A, width)
    sides = [(Fraction(float(program.e[k])), Fraction(float(open_by[k]))) for k in usable]
    out = []
    for row in A[: len(used)]:
        shares = [Fraction(share, pivot) for share in row[width:]]
        middle = sum((s * e for s, (e, _) in zip(shares, sides, strict=True)), Fraction(0))
        room = sum((abs(s) * o for s, (_, o) in zip(shares, sides, strict=True)), Fraction(0))
        pairs = zip(order.tolist(), row, strict=False)
        form = {c: Fraction(a, pivot) for c, a in pairs if a}
        out.append(SolvedEquality(form, middle - room, middle + room))
    return out


def within_solved(rows: list[SolvedEquality], box: Box) -> Box:
    """Keep of a box what each solved equality leaves of each change, given the others."""
    lower, upper = box.lower.copy(), box.upper.copy()
    for form, least, most in rows:
        for factor, end in ((1, most), (-1, -least)):
            ends = {c: float(lower[c] if factor * a > 0 else upper[c]) for c, a in form.items()}
            parts = {c: factor * form[c] * Fraction(v) for c, v in ends.items() if np.isfinite(v)}
            total = sum(parts.values(), Fraction(0))
            for c, a in form.items():
                if len(form) - len(parts) > (c not in parts):
                    continue
                side = (end - total + parts.get(c, 0)) / (factor * a)
                if factor * a > 0:
                    upper[c] = min(upper[c], rounded_up(side))
                else:
                    lower[c] = max(lower[c], -rounded_up(-side))
    return Box(lower, upper)


def _eliminated(A: list[list[int]], count: int) -> tuple[list[int], int]:
    """Solve for the first unknowns that will do, of `count`: their places, and what they times.

    Gauss and Jordan without fractions (Bareiss), in place: all divisions are exact.
    """
    used, before = list[int](), 1
    for column in range(count):
        here = len(used)
        at = next((n for n in range(here, len(A)) if A[n][column]), None)
        if at is None:
            continue
        A[here], A[at] = A[at], A[here]
        top, pivot = A[here], A[here][column]
        for n, row in enumerate(A):
            if n != here:
                share = row[column]
                A[n] = [(a * pivot - share * b) // before for a, b in zip(row, top, strict=True)]
        before = pivot
        used.append(column)
    return used, before
