"""Run the compiled kernels over rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.records import Record
from counterlvq.programs.kernel_data import KernelData
from counterlvq.programs.proof_data import ProofData
from counterlvq.solvers.kernels.rows import answer_absolute, answer_quadratic

__all__ = [
    "Answers",
    "Code",
    "Priced",
    "Scratch",
    "Skipped",
    "Trace",
    "kernel_for",
    "priced_cells",
    "run",
    "scratch_for",
    "skipped_cells",
    "trace_of",
]


class Code(IntEnum):
    """How a row ended; the numbers are those of `kernels`."""

    SOLVED = 0
    INFEASIBLE = 1
    FAILED = 2


_SKIPPED, _EMPTY = -1, -2  # as in `kernels.rows`
# Targets up to which copying what a row has left of all of them is quicker than choosing.
_FEW_TARGETS = 16


@final
@dataclass(frozen=True, eq=False)
class Scratch(Record):
    """Memory of one thread; after a run it holds the multipliers of the last row."""

    u: Floats
    g: Floats
    listed: NDArray[np.int64]  # how many rivals, then which
    z0: Floats
    normal: Floats
    row: Floats
    D: Floats
    T: Floats
    K: Floats
    rights: Floats
    nonbasic: NDArray[np.int64]
    at: Floats
    basic: NDArray[np.int64]
    slope: Floats
    lower: Floats
    upper: Floats
    lo: Floats
    hi: Floats
    spread: Floats
    far: Floats
    change: Floats  # (all features,)
    h: Floats
    tight: Floats
    score: Floats
    scores: Floats
    quick: Floats
    rival: NDArray[np.int64]  # (targets,) the one that `quick` charges for
    rough: NDArray[np.int64]  # (targets,) 1 where `quick` is known by scores alone
    rows: NDArray[np.int64]  # (targets, d + 2) conditions that are charged for
    prices: Floats  # (targets, d + 2)
    signs: Floats  # (targets, d + 2)
    used: NDArray[np.int64]  # (targets,) how many; negative: skipped or empty
    points: Floats  # (targets, d)
    deltas: Floats  # (targets, all features) the same in the user's units
    z: Floats  # of the proof, as all that follows
    low: Floats
    high: Floats
    inner_low: Floats
    inner_high: Floats
    g1: Floats
    g2: Floats
    c_slope: Floats
    c_error: Floats
    nothing: Floats  # (all features,) zeros
    no_price: Floats  # (2, all features) zeros
    no_diagonal: Floats
    no_factor: Floats
    charged_rivals: NDArray[np.int64]
    charged: Floats
    on_constraints: Floats
    stop: NDArray[np.int64]  # (1,) not 0 once the kernel is told to give what it has


def scratch_for(family: KernelData) -> Scratch:
    """Set memory aside for one thread."""
    d, m = family.RNT.shape
    (pt, r), c, width = family.TA.shape, family.equality.size, family.center.size

    def reals(*shape: int) -> Floats:
        return np.zeros(shape)

    def whole(*shape: int) -> NDArray[np.int64]:
        return np.zeros(shape, dtype=np.int64)

    return Scratch(
        u=reals(d), g=reals(m), listed=whole(65), z0=reals(r), normal=reals(d),
        row=reals(d + 1), D=reals(d + 1),
        T=reals(d + 1, d), K=reals(d + 1, d + 1), rights=reals(d + 1), nonbasic=whole(d),
        at=reals(d), basic=whole(d + 1), slope=reals(d + 1), lower=reals(d), upper=reals(d),
        lo=reals(d), hi=reals(d), spread=reals(d), far=reals(d), change=reals(width),
        h=reals(c), tight=reals(c), score=reals(pt), scores=reals(m), quick=reals(pt),
        rival=whole(pt), rough=whole(pt),
        rows=whole(pt, d + 2), prices=reals(pt, d + 2), signs=reals(pt, d + 2),
        used=whole(pt), points=reals(pt, d), deltas=reals(pt, width),
        z=reals(r), low=reals(width), high=reals(width), inner_low=reals(width),
        inner_high=reals(width), g1=reals(r), g2=reals(r), c_slope=reals(width),
        c_error=reals(width), nothing=reals(width), no_price=reals(2, width),
        no_diagonal=reals(0), no_factor=reals(0, width),
        charged_rivals=whole(d + 2), charged=reals(d + 2), on_constraints=reals(c),
        stop=whole(1),
    )  # fmt: skip


@final
@dataclass(frozen=True, eq=False)
class Answers:
    """What the kernels say of each row; not yet judged by the user's model."""

    Y: Floats  # (n, all features)
    cost: Floats  # (n,)
    bound: Floats  # (n,)
    code: NDArray[np.int64]  # (n,) a code of `kernels`


def run(
    family: KernelData,
    stated: ProofData,
    X: Floats,
    margin: float | None,
    scratch: Scratch,
    least: Floats | None = None,
    blur: Floats | None = None,
) -> Answers:
    """Answer each row of X; `margin` None for the default one.

    `least` is the smallest default margin of each row, `blur` what the user's own `predict` may
    overlook there; 0 by default.
    """
    answer_rows = kernel_for(family)
    n = X.shape[0]
    answers = Answers(np.empty(X.shape), np.empty(n), np.empty(n), np.empty(n, dtype=np.int64))
    asked = np.nan if margin is None else float(margin)
    # Compiled code tells read-only arrays apart and would be compiled twice.
    writable = np.require(X, requirements=["C", "W"])
    answer_rows(
        family, stated, writable, asked, _per_row(least, n), _per_row(blur, n), scratch,
        answers.Y, answers.cost, answers.bound, answers.code,
    )  # fmt: skip
    return answers


def kernel_for(family: KernelData) -> Callable[..., None]:
    """Return the kernel that takes programs of this kind, see `kernels.rows`."""
    return answer_quadratic if family.is_quadratic else answer_absolute


def _per_row(values: Floats | None, n: int) -> Floats:
    return np.zeros(n) if values is None else np.array(values, dtype=np.float64)


class Trace(NamedTuple):
    """What a kernel has left behind for the last row; nothing of it is shared with the scratch."""

    used: NDArray[np.int64]  # (targets,) as in `Scratch`
    rival: NDArray[np.int64]  # (targets,)
    visited: NDArray[np.intp]  # (n,) positions of the targets that the others are about
    rows: NDArray[np.int64]  # (n, d + 2)
    prices: Floats  # (n, d + 2)
    deltas: Floats  # (n, all features)


def trace_of(scratch: Scratch) -> Trace:
    """Copy what the last row has left behind; of many targets, without those that were skipped."""
    used = scratch.used.copy()
    if used.size <= _FEW_TARGETS:
        return Trace(
            used,
            scratch.rival.copy(),
            np.arange(used.size),
            scratch.rows.copy(),
            scratch.prices.copy(),
            scratch.deltas.copy(),
        )
    visited = np.flatnonzero(used != _SKIPPED)
    return Trace(
        used,
        scratch.rival.copy(),
        visited,
        scratch.rows[visited],
        scratch.prices[visited],
        scratch.deltas[visited],
    )


class Priced(NamedTuple):
    """What a kernel charges for in one cell. An empty cell is charged by a contradiction."""

    prototype: int
    empty: bool
    rivals: NDArray[np.int64]  # indices of prototypes
    rival_prices: Floats
    constraint_prices: Floats  # (c,)
    delta: Floats  # (all features,) where the kernel left off


def priced_cells(family: KernelData, trace: Trace) -> Iterator[Priced]:
    """Read the multipliers of a row for the cells that were visited."""
    m, c = family.RN.shape[0], family.equality.size
    unit = 2.0 if family.is_quadratic else 1.0
    for n, t in enumerate(trace.visited):
        count = int(trace.used[t])
        if count == _SKIPPED:
            continue
        used = _EMPTY - count if count <= _EMPTY else count
        rows = trace.rows[n, :used]
        prices = unit * trace.prices[n, :used]
        on_constraints = np.zeros(c)
        linear = (rows >= m) & (rows < m + c)
        on_constraints[rows[linear] - m] = prices[linear]
        yield Priced(
            int(family.targets[t]),
            count <= _EMPTY,
            family.rivals[rows[rows < m]],
            prices[rows < m],
            on_constraints,
            trace.deltas[n].copy(),
        )


class Skipped(NamedTuple):
    """Cells that were not visited, and the one rival that is too dear to overtake."""

    prototypes: NDArray[np.int64]
    rivals: NDArray[np.int64]


def skipped_cells(family: KernelData, trace: Trace) -> Skipped:
    """Read the cells that a row did not visit because one rival is too dear."""
    at = np.flatnonzero((trace.used == _SKIPPED) & (trace.rival >= 0))
    return Skipped(family.targets[at], family.rivals[trace.rival[at]])
