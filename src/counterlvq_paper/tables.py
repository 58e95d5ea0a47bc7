"""From the journal to figures: costs and validity are worked out anew from the stored points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq_paper.journal import Journal
from counterlvq_paper.methods import METHODS
from counterlvq_paper.protocol import DATA_SETS, MODELS, Case, Settings
from counterlvq_paper.published import TABLE_1
from counterlvq_paper.runner import case_at, plan

__all__ = ["Answers", "Line", "answers_of", "collect", "lines_of", "point_matrix"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Answers:
    """All that one method said about one data set and model, over the folds."""

    ids: NDArray[np.int64]  # (n,)
    compared: Mask  # rows that every method was asked about
    valid: Mask
    impossible: Mask  # proved that there is no counterfactual
    optimal: Mask
    cost: Array  # NaN where there is no valid answer
    lower_bound: Array
    seconds: Array
    alone: Array  # NaN where it was not measured

    def at(self, ids: NDArray[np.int64]) -> NDArray[np.intp]:
        """Positions of these rows."""
        order = np.argsort(self.ids)
        found: NDArray[np.intp] = order[np.searchsorted(self.ids, ids, sorter=order)]
        return found


Collected = dict[tuple[str, str], dict[str, Answers]]


@dataclass(frozen=True)
class Line:
    """One method on one data set and model, as in Table 1."""

    data: str
    model: str
    method: str
    rows: int  # that the method was asked about
    solved: float  # share with a valid answer, of rows not proved to have none
    impossible: int  # rows proved to have none
    proved: float  # share of rows with a closed gap, or proved to have none
    mean: float | None  # distance, over all rows that the method solved
    compared: int  # rows that every method was asked about
    solved_compared: float  # share of these that the method solved
    common: int  # of these, rows that every method solved
    mean_common: float | None  # distance, over the latter
    seconds: float  # per row, one at a time, on the compared rows
    seconds_batch: float  # per row, in a batch on one thread, where there is such a thing
    faster_ccp: float  # how many times faster "ccp" is, one at a time
    faster_auto: float  # how many times faster "auto" is, one at a time
    paper: float | None  # mean distance that the paper prints


def collect(journal: Journal, settings: Settings) -> Collected:
    """Read every block and judge its points."""
    parts: dict[tuple[str, str, str], list[Answers]] = {}
    cases: dict[tuple[str, str, int], Case] = {}
    for block in plan(settings):
        key = (block.data, block.model, block.fold)
        if key not in cases:
            cases[key] = case_at(journal, *key, settings)
        record = journal.record(block)
        at = np.arange(block.start, block.stop)
        answers = answers_of(cases[key], at, record.points, record)
        parts.setdefault((block.data, block.model, block.method), []).append(answers)
    return {
        (data, model): {method: _joined(parts[data, model, method]) for method in METHODS}
        for data in DATA_SETS
        for model in MODELS
    }


def point_matrix(points: Sequence[Sequence[float] | None], width: int) -> Array:
    """Points as rows, NaN for those that are missing."""
    nothing = [np.nan] * width
    return np.array([nothing if y is None else y for y in points], dtype=np.float64)


def answers_of(
    case: Case, at: NDArray[np.int64], points: Sequence[Sequence[float] | None], record: Any
) -> Answers:
    """Judge points by the model itself."""
    matrix = point_matrix(points, case.rows.shape[1])
    valid = case.valid(at, matrix)
    status = np.array(record.status)
    return Answers(
        ids=case.ids[at],
        compared=at < case.n_compared,
        valid=valid,
        impossible=status == "infeasible",
        optimal=(status == "optimal") & valid,
        cost=np.where(valid, case.costs(at, matrix), np.nan),
        lower_bound=np.array(record.lower_bound, dtype=np.float64),
        seconds=np.array(record.seconds, dtype=np.float64),
        alone=np.array(record.alone, dtype=np.float64),  # None becomes NaN
    )


def _joined(parts: Sequence[Answers]) -> Answers:
    names = Answers.__dataclass_fields__
    return Answers(**{n: np.concatenate([getattr(part, n) for part in parts]) for n in names})


def lines_of(collected: Collected) -> list[Line]:
    """Table 1, line by line."""
    return [
        line for (data, model), found in collected.items() for line in _lines(data, model, found)
    ]


def _lines(data: str, model: str, found: dict[str, Answers]) -> list[Line]:
    ids = np.sort(found["auto"].ids[found["auto"].compared])
    places = {method: answers.at(ids) for method, answers in found.items()}
    common = np.logical_and.reduce([a.valid[places[m]] for m, a in found.items()])
    times = {m: float(np.mean(a.alone[places[m]])) for m, a in found.items()}
    paper = dict(zip(("Nelder-Mead", "CMA-ES", "ccp"), TABLE_1[data, model], strict=True))
    lines = []
    for method, answers in found.items():
        here = places[method]
        asked = len(answers.ids) - int(answers.impossible.sum())
        line = Line(
            data=data,
            model=model,
            method=method,
            rows=len(answers.ids),
            solved=float(answers.valid.sum() / max(asked, 1)),
            impossible=int(answers.impossible.sum()),
            proved=float((answers.optimal | answers.impossible).mean()),
            mean=_mean(answers.cost[answers.valid]),
            compared=len(ids),
            solved_compared=float(answers.valid[here].mean()),
            common=int(common.sum()),
            mean_common=_mean(answers.cost[here][common]),
            seconds=times[method],
            seconds_batch=float(np.mean(answers.seconds)),
            faster_ccp=times[method] / times["ccp"],
            faster_auto=times[method] / times["auto"],
            paper=paper.get(method),
        )
        lines.append(line)
    return lines


def _mean(values: Array) -> float | None:
    return float(values.mean()) if values.size else None
