"""Sums over whole numbers, stated by the values that they can have.

``2 a + 2 b`` is even for whole a and b: it is at most 4 where it is at most 5. The difference of
two scores is such a sum as well, and where it is below 0 it is so by a step. Boxes show that only
once they are cut to single points. The sums are exact, and what a condition gives way by counts
for it.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, reduce
from math import floor, inf, isfinite

import numpy as np
from numpy.typing import NDArray

from counterlvq.cells import SharedCells
from counterlvq.certificates.divisibility import common_divisor, has_whole_steps
from counterlvq.certificates.duality import exact_rivals
from counterlvq.certificates.exact_duality import rounded_down
from counterlvq.numeric.arrays import Floats, read_only
from counterlvq.numeric.tolerances import LEAST_LEAD, SHARE_OF_STEP, WHOLE_DOUBLES
from counterlvq.programs.conditions import LinearConditions
from counterlvq.programs.template import ProgramTemplate

__all__ = ["counts_in_steps", "lead_of_steps", "tightened"]

# Sums whose largest values are kept.
_MOST_SUMS = 4096
# Numbers of a model, over all pairs of prototypes, of which the common divisors are looked for.
_MOST_NUMBERS = 4096


def tightened(template: ProgramTemplate) -> ProgramTemplate:
    """State inequalities on whole numbers alone by the largest value that their sums can have.

    It says the same of inputs that count in steps (`counts_in_steps`). The template itself comes
    back where that is nothing new.
    """
    is_whole = has_whole_steps(template.grid)
    if not is_whole.any():
        return template
    asked = template.inequalities, *(item.rows for item in template.conditionals)
    rows = [_tightened(part, template, is_whole) for part in asked]
    if all(one is other for one, other in zip(rows, asked, strict=True)):
        return template
    pairs = zip(template.conditionals, rows[1:], strict=True)
    conditionals = tuple(replace(item, rows=part) for item, part in pairs)
    return replace(template, inequalities=rows[0], conditionals=conditionals)


def counts_in_steps(template: ProgramTemplate, X: Floats) -> NDArray[np.bool_]:
    """Whether all columns of inputs (n, d) that have whole steps are multiples of these, (n,)."""
    at = np.flatnonzero(has_whole_steps(template.grid))
    return np.asarray((np.fmod(X[:, at], template.grid.step[at]) == 0.0).all(axis=1))


def lead_of_steps(template: ProgramTemplate, cells: SharedCells) -> float:
    """Lead over each rival that every point of the cells has, from inputs that count in steps.

    The difference of two scores is a sum over whole numbers, which has to be below 0 where the
    rival comes first, and else at most 0. It is that of the model as it is stated: for a foreign
    `predict` nothing follows. 0 where that is too little to tell from rounding.
    """
    count = cells.targets.size * cells.rivals.size * template.w.size
    if not 0 < count <= _MOST_NUMBERS or not has_whole_steps(template.grid).all():
        return 0.0
    model, x = cells.model, np.zeros(template.w.size)
    if model.blur is not None or model.is_refereed:
        return 0.0
    rivals, step = [(int(k), 1.0) for k in cells.rivals], _sure_steps(template)
    least = inf
    for i in cells.targets.tolist():
        for charged in exact_rivals(model, x, i, rivals, Fraction(0)):
            apart = [abs(a) * int(s) for a, s in zip(charged.row, step.tolist(), strict=True) if a]
            divisor = reduce(common_divisor, apart) if apart else Fraction(0)
            if divisor <= LEAST_LEAD * sum(apart, Fraction(0)):
                return 0.0
            below = -charged.right % divisor
            lead = divisor - below if below or charged.rival < i else Fraction(0)
            if lead <= LEAST_LEAD * sum(apart, Fraction(0)):
                return 0.0
            least = min(least, rounded_down(lead))
    return least


def _sure_steps(template: ProgramTemplate) -> Floats:
    """Return what all values are multiples of, (d,): far away doubles round those of a step."""
    rows, far = template.bounds, np.full((2, template.w.size), inf)
    A, v = rows.A, rows.v
    if rows.R.any():
        fixed = ~rows.R.any(axis=1)
        A, v = A[fixed], v[fixed]
    of, j = A.nonzero()  # one column each
    factor = A[of, j]
    np.minimum.at(far, ((factor > 0).astype(np.intp), j), np.abs(v[of] / factor))
    return np.where((far < WHOLE_DOUBLES).all(axis=0), template.grid.step, 1.0)


def _tightened(
    rows: LinearConditions, template: ProgramTemplate, is_whole: NDArray[np.bool_]
) -> LinearConditions:
    """Lower right-hand sides to values that sums over whole numbers have."""
    v, step = rows.v.copy(), template.grid.step
    sure: Floats | None = None
    for n, (row, old, value) in enumerate(zip(rows.A, rows.R, rows.v.tolist(), strict=True)):
        at = row.nonzero()[0]
        if not at.size or old.any() or not is_whole[at].all() or not isfinite(value):
            continue
        sure = _sure_steps(template) if sure is None else sure
        terms = tuple(row[at].tolist()), tuple(step[at].tolist()), tuple(sure[at].tolist())
        v[n] = min(value, _largest(*terms, value))
    return rows if (v == rows.v).all() else replace(rows, v=read_only(v))


# Tables ask the same of each combination of levels.
@lru_cache(maxsize=_MOST_SUMS)
def _largest(
    row: tuple[float, ...], step: tuple[float, ...], sure: tuple[float, ...], value: float
) -> float:
    """Return the largest value of a sum over whole numbers that counts as at most `value`."""
    sizes = [abs(Fraction(a)) for a in row]
    apart = [a * int(s) for a, s in zip(sizes, step, strict=True)]
    # What the condition may be missed by, and what values may be off by, count as met.
    give = Fraction(SHARE_OF_STEP) * (min(apart) + sum(apart))
    divisor = reduce(common_divisor, (a * int(s) for a, s in zip(sizes, sure, strict=True)))
    largest = divisor * floor((Fraction(value) + give) / divisor)
    return -rounded_down(-largest)
