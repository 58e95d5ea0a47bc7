"""Run the compiled kernels over rows. Numba is imported when the first answer is needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.arrays import Floats
from counterlvq.families import Family

__all__ = ["Answers", "Code", "Priced", "Scratch", "priced_cells", "run", "scratch_for"]


class Code(IntEnum):
    """How a row ended; the numbers are those of `kernels`."""

    SOLVED = 0
    INFEASIBLE = 1
    FAILED = 2


_SKIPPED, _EMPTY = -1, -2  # as in `kernels`


class Scratch(NamedTuple):
    """Memory of one thread; after a run it holds the prices of the last row."""

    u: Floats
    z: Floats
    z0: Floats
    normal: Floats
    row: Floats
    D: Floats
    T: Floats
    K: Floats
    nonbasic: NDArray[np.int64]
    at: Floats
    basic: NDArray[np.int64]
    slope: Floats
    sign: Floats
    lower: Floats
    upper: Floats
    lo: Floats
    hi: Floats
    spread: Floats
    reach: Floats
    change: Floats
    h: Floats
    tight: Floats
    score: Floats
    quick: Floats
    rows: NDArray[np.int64]  # (targets, d + 2) conditions that are charged for
    prices: Floats  # (targets, d + 2)
    signs: Floats  # (targets, d + 2)
    used: NDArray[np.int64]  # (targets,) how many; negative: skipped or empty
    points: Floats  # (targets, d)


def scratch_for(family: Family) -> Scratch:
    """Set memory aside for one thread."""
    d, r = family.Ft.shape
    c, pt = family.equality.size, family.targets.size

    def reals(*shape: int) -> Floats:
        return np.zeros(shape)

    def whole(*shape: int) -> NDArray[np.int64]:
        return np.zeros(shape, dtype=np.int64)

    return Scratch(
        u=reals(d), z=reals(r), z0=reals(r), normal=reals(d), row=reals(d + 1), D=reals(d + 1),
        T=reals(d + 1, d), K=reals(d + 1, d + 1), nonbasic=whole(d), at=reals(d),
        basic=whole(d + 1), slope=reals(d + 1), sign=reals(d + 2), lower=reals(d),
        upper=reals(d), lo=reals(d), hi=reals(d), spread=reals(d), reach=reals(d),
        change=reals(d), h=reals(c), tight=reals(c), score=reals(pt), quick=reals(pt),
        rows=whole(pt, d + 2), prices=reals(pt, d + 2), signs=reals(pt, d + 2),
        used=whole(pt), points=reals(pt, d),
    )  # fmt: skip


@final
@dataclass(frozen=True, eq=False)
class Answers:
    """What the kernels say of each row; not yet judged by the user's model."""

    Y: Floats  # (n, all features)
    cost: Floats  # (n,)
    bound: Floats  # (n,)
    code: NDArray[np.int64]  # (n,) a code of `kernels`


def run(family: Family, X: Floats, margin: float | None, scratch: Scratch) -> Answers:
    """Answer each row of X; `margin` None for the default one."""
    kernels = _kernels()
    n = X.shape[0]
    answers = Answers(np.empty(X.shape), np.empty(n), np.empty(n), np.empty(n, dtype=np.int64))
    asked = np.nan if margin is None else float(margin)
    kernels.answer_rows(
        family, X, asked, scratch, answers.Y, answers.cost, answers.bound, answers.code
    )
    return answers


class Priced(NamedTuple):
    """What a kernel charges for in one cell. An empty cell is charged by a contradiction."""

    prototype: int
    skipped: bool
    empty: bool
    rivals: NDArray[np.int64]  # indices of prototypes
    rival_prices: Floats
    constraint_prices: Floats  # (c,)
    delta: Floats  # (all features,) where the kernel left off


def priced_cells(family: Family, scratch: Scratch) -> Iterator[Priced]:
    """Read the prices of the last row, one target prototype after another."""
    m, c = family.rivals.size, family.equality.size
    unit = 2.0 if family.quadratic else 1.0
    for t, prototype in enumerate(family.targets):
        count = int(scratch.used[t])
        empty = count <= _EMPTY
        used = _EMPTY - count if empty else max(count, 0)
        rows = scratch.rows[t, :used]
        prices = unit * scratch.prices[t, :used]
        if family.quadratic:
            prices = prices * scratch.signs[t, :used]
        on_constraints = np.zeros(c)
        linear = (rows >= m) & (rows < m + c)
        on_constraints[rows[linear] - m] = prices[linear]
        delta = np.zeros(family.center.size)
        if count > 0:
            delta[family.columns] = family.B @ scratch.points[t]
        yield Priced(
            int(prototype),
            count == _SKIPPED,
            empty,
            family.rivals[rows[rows < m]],
            prices[rows < m],
            on_constraints,
            delta,
        )


def _kernels() -> Any:
    from counterlvq.solvers import kernels

    return kernels
