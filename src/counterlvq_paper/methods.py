"""The methods side by side, each answering a block of rows.

Times are those of the processor, on one thread: they do not depend on what else is running.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import counterlvq as clvq
from counterlvq_paper.equation import OPTIMISERS, search
from counterlvq_paper.journal import Record
from counterlvq_paper.protocol import SEED, Case

__all__ = ["METHODS", "OURS", "SEARCHES", "answer"]

Array = NDArray[np.float64]

SEARCHES: Final = tuple(OPTIMISERS)
OURS: Final = ("ccp", "auto", "global")
METHODS: Final = (*SEARCHES, *OURS)
_WARM_UP = 50  # rows: enough for every target of the digits


def answer(case: Case, method: str, start: int, stop: int, limit: float) -> Record:
    """Answer the rows of a case from `start` to `stop`."""
    begun = perf_counter()
    if method in SEARCHES:
        parts = _searched(case, method, start, stop)
    else:
        explainer = case.explainer(method, limit if method == "global" else None)
        ask = _one_by_one if case.model.is_local else _together
        parts = ask(case, explainer, start, stop)
    points, bounds, status, seconds, alone = parts
    return Record(
        ids=case.ids[start:stop].tolist(),
        points=[y.tolist() if np.isfinite(y).all() else None for y in points],
        lower_bound=[float(bound) for bound in bounds],
        status=[str(state) for state in status],
        seconds=[float(time) for time in seconds],
        alone=alone,
        took=perf_counter() - begun,
    )


Parts = tuple[Any, Any, Any, Any, list[float | None]]


def _timed(ask: Callable[[int], Any], start: int, stop: int) -> tuple[list[Any], list[float]]:
    found, seconds = [], []
    for i in range(start, stop):
        begun = process_time()
        found.append(ask(i))
        seconds.append(process_time() - begun)
    return found, seconds


def _searched(case: Case, method: str, start: int, stop: int) -> Parts:
    def ask(i: int) -> Array:
        seed = SEED + int(case.ids[i])
        x, target = case.rows[i], case.targets[i]
        return search(case.model, x, target, case.free, OPTIMISERS[method], seed)

    points, seconds = _timed(ask, start, stop)
    status = ["found" if np.isfinite(y).all() else "none" for y in points]
    return points, [0.0] * len(points), status, seconds, [*seconds]


def _one_by_one(case: Case, explainer: clvq.Explainer, start: int, stop: int) -> Parts:
    """Local metrics: every row is a search of its own."""
    case.explainer("ccp").explain(case.rows[0], case.targets[0])  # loads what is compiled
    found, seconds = _timed(lambda i: explainer.explain(case.rows[i], case.targets[i]), start, stop)
    nothing = np.full(case.rows.shape[1], np.nan)
    points = [nothing if cf.x is None else np.asarray(cf.x) for cf in found]
    bounds, status = [cf.lower_bound for cf in found], [cf.status for cf in found]
    return points, bounds, status, seconds, [*seconds]


def _together(case: Case, explainer: clvq.Explainer, start: int, stop: int) -> Parts:
    """Shared metrics: one batch on one thread; those that are compared also one at a time."""
    rows, targets = case.rows[start:stop], case.targets[start:stop]
    explainer.explain_batch(rows[:_WARM_UP], targets[:_WARM_UP])
    explainer.explain(rows[0], targets[0])
    begun = process_time()
    batch = explainer.explain_batch(rows, targets)
    share = (process_time() - begun) / len(rows)
    end = max(start, min(stop, case.n_compared))
    alone = _timed(lambda i: explainer.explain(case.rows[i], case.targets[i]), start, end)[1]
    rest: list[float | None] = [None] * (stop - end)
    return batch.X, batch.lower_bound, batch.status, [share] * len(rows), [*alone, *rest]
