"""Cost, bound and gap side by side: whoever subtracts what is printed finds the gap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import NamedTuple

import numpy as np

from counterlvq.numeric.tolerances import EXACT_GAP
from counterlvq.presentation.numbers import DIGITS, bound_text, cost_text, gap_text
from counterlvq.safe_text import shown_text
from counterlvq.types import Status

__all__ = [
    "Proved",
    "ShownProof",
    "cost_words",
    "proof_words",
    "proved",
    "scale_words",
    "shown_proof",
]

# Of answers that are proved: rounding to so many digits leaves less open than they may.
_CLOSED_DIGITS = 8
# A double is told from all others by so many digits.
_ALL_DIGITS = 17
_DIVISION = Context(prec=40)
# Scales of columns that are named beside a cost.
_SHOWN_SCALES = 3


class Proved(NamedTuple):
    """What is printed of a cost, a bound below it, and the share of the cost between the two."""

    cost: str
    bound: str
    gap: str
    share: float  # that `gap` says
    digits: int  # of cost and bound

    def again(self, bound: float) -> str:
        """Write another bound with as many digits."""
        return bound_text(bound, self.digits)


def proved(cost: float, bound: float) -> Proved:
    """Write a cost and its lower bound with digits enough for the gap between them.

    The bound is rounded down. The gap is the one between the printed numbers, or the true one
    where these are the same; it is never below the true one.

    Parameters
    ----------
    cost, bound : float

    Examples
    --------
    >>> proved(1.0, 0.9999999999996)[:3]
    ('1', '0.99999999', '<1e-06')
    >>> proved(371.62681, 367.1)[:3]
    ('371.627', '367.1', '1.22%')
    """
    if not (0 < cost < np.inf and np.isfinite(bound)):
        gap = 0.0 if cost <= bound else np.inf
        told = "0" if cost <= bound else gap_text(gap)
        return Proved(cost_text(cost), bound_text(bound), told, gap, DIGITS)
    exact = _share(Decimal(cost), Decimal(bound))
    is_closed = exact <= EXACT_GAP
    for digits in range(_CLOSED_DIGITS if is_closed else DIGITS, _ALL_DIGITS + 1):
        texts = f"{cost:.{digits}g}", bound_text(bound, digits)
        share = _share(*map(Decimal, texts))
        if is_closed and texts[0] == texts[1]:
            share = exact
        if gap_text(share) == gap_text(exact) or (is_closed and share >= exact):
            return Proved(*texts, gap_text(share), share, digits)
    return Proved(repr(cost), repr(bound), gap_text(exact), exact, _ALL_DIGITS)


def _share(cost: Decimal, bound: Decimal) -> float:
    return max(0.0, float(_DIVISION.divide(_DIVISION.subtract(cost, bound), cost)))


def cost_words(shown: float, own: float, digits: int = DIGITS) -> str:
    """Show the cost of the shown row, and that of the answer itself where it looks different.

    Examples
    --------
    >>> cost_words(373.0, 371.6268)
    '373 (371.627 before rounding)'
    """
    texts = cost_text(shown, digits), cost_text(own, digits)
    return texts[0] if texts[0] == texts[1] else f"{texts[0]} ({texts[1]} before rounding)"


class ShownProof(NamedTuple):
    """What is printed about an answer whose shown row may cost a little more."""

    cost: str  # of the shown row, and of the answer where that is another one
    bound: str
    gap: str  # of the answer, and whether that is before rounding
    own: Proved


def shown_proof(shown: float, cost: float, bound: float) -> ShownProof:
    """Write the cost of the shown row, that of the answer, its bound and its gap.

    Examples
    --------
    >>> shown_proof(373.0, 371.6268135, 371.6268134)[:3]
    ('373 (371.62681 before rounding)', '371.62681', '<1e-06 before rounding')
    """
    own = proved(cost, bound)
    words = cost_words(shown, cost, own.digits)
    aside = "" if words == own.cost else " before rounding"
    return ShownProof(words, own.bound, f"{own.gap}{aside}", own)


def proof_words(
    status: Status,
    reason: str,
    kept: str,
    bound: float,
    gap: float,
    shown: Callable[[], ShownProof],
) -> str:
    """Say what is proved of an answer, or that there is none.

    `kept` says what the bound is about beyond labels and constraints, and `shown` writes the
    numbers of an answer.
    """
    if status is Status.INFEASIBLE:
        return f"proved: {reason}"
    if status is Status.UNKNOWN:
        tried = f" ({reason})" if reason else ""
        return f"a counterfactual{kept}, if any, costs at least {bound_text(bound)}{tried}"
    none = f"no counterfactual{kept} costs less than {shown().bound}"
    if status is Status.OPTIMAL:
        return f"{none} (gap {shown().gap})"
    if gap <= EXACT_GAP and bound > 0 and kept:
        return none
    if bound == 0:
        return "none: a closer one is not ruled out, at any cost above 0"
    return f"{none} (gap {shown().gap}): a closer one is not ruled out"


def scale_words(scales: Sequence[str]) -> str:
    """Say behind a cost on which scales changes were measured; nothing for the user's own.

    Examples
    --------
    >>> scale_words(["log1p(income)"])
    ', on the transformed scale (changes in log1p(income), before scaling)'
    """
    if not scales:
        return ""
    shown = ", ".join(shown_text(scale) for scale in scales[:_SHOWN_SCALES])
    more = ", ..." if len(scales) > _SHOWN_SCALES else ""
    return f", on the transformed scale (changes in {shown}{more}, before scaling)"
