"""How long things take, and how that grows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar

import numba
import numpy as np

Result = TypeVar("Result")
Key = TypeVar("Key", bound=Hashable)


def in_the_long_run() -> None:
    """Have kernels compiled by their first call, as in a process that has answered for a while.

    Earlier checkouts compile them then in any case.
    """
    with suppress(ImportError):
        from counterlvq.numeric.interpreting import compile_from_now_on

        compile_from_now_on()


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds of one call, and what it gave."""
    start = perf_counter()
    result = work()
    return perf_counter() - start, result


def best_of(repeats: int, work: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds of the fastest of several calls, and what it gave."""
    return min((timed(work) for _ in range(repeats)), key=lambda pair: pair[0])


def interleaved(repeats: int, works: dict[Key, Callable[[], object]]) -> dict[Key, float]:
    """Fastest of several calls each, in turns: what disturbs one disturbs all."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for key, work in works.items():
            best[key] = min(best[key], timed(work)[0])
    return best


def ceiling_of_two_threads(repeats: int) -> float:
    """How much two threads gain on this machine if they compute and nothing else."""
    amount = 5_000_000
    _compute(1)
    with ThreadPoolExecutor(2) as pool:
        best = interleaved(
            repeats,
            {
                1: lambda: [_compute(amount) for _ in range(2)],
                2: lambda: list(pool.map(_compute, [amount] * 2)),
            },
        )
    return best[1] / best[2]


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def _compute(amount: int) -> float:
    total = 0.0
    for i in range(amount):
        total += np.sin(i)
    return total


@dataclass(frozen=True)
class PowerLaw:
    """``y = factor * x**exponent``."""

    factor: float
    exponent: float


def fit_power_law(x: Sequence[float], y: Sequence[float]) -> PowerLaw:
    """Least squares through the logarithms."""
    exponent, level = np.polyfit(np.log(x), np.log(y), 1)
    return PowerLaw(float(np.exp(level)), float(exponent))
