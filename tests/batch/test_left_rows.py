"""Rows that kernels leave are answered where they are, until processes are worth their start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.batch import processes
from counterlvq.batch.processes import answer_left, answer_rows


class Workshop:
    """Rows that take a second each by a clock of its own, and processes that are none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.here: list[int] = []
        self.there: list[list[int]] = []
        self._is_there = False
        monkeypatch.setattr(processes, "perf_counter", lambda: self.now)
        monkeypatch.setattr(processes, "ask_in_processes", self.in_processes)

    def ask(self, i: int) -> Any:
        self.now += 1.0
        (self.there[-1] if self._is_there else self.here).append(i)
        return f"answer {i}"

    def in_processes(
        self, ask: Callable[[int], Any], count: int, jobs: int, take: Callable[[int, Any], None]
    ) -> None:
        self.there.append([])
        self._is_there = True
        for k in reversed(range(count)):  # the last one may be the first to come back
            take(k, ask(k))


ROWS = [7, 3, 9, 4, 12, 5]


@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize("start", [0.0, 2.5, 4.0, 4.5, 100.0])
def test_rows_are_asked_here_as_long_as_a_start_takes(
    monkeypatch: pytest.MonkeyPatch, start: float, jobs: int
) -> None:
    """And the last one in any case: nobody would share it."""
    monkeypatch.setattr(processes, "_START", start)
    shop = Workshop(monkeypatch)
    counted: list[int] = []
    found = answer_left(shop.ask, ROWS, jobs, counted.append)
    assert list(found.items()) == [(i, f"answer {i}") for i in ROWS]
    first = len(ROWS) if jobs == 1 else next((k for k in range(5) if k >= start), len(ROWS))
    assert shop.here == ROWS[:first]
    assert shop.there == ([sorted(ROWS[first:], key=ROWS.index)[::-1]] if first < 6 else [])
    assert sum(counted) == len(ROWS)


def test_rows_that_all_go_one_by_one_are_shared_from_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = Workshop(monkeypatch)
    assert list(answer_rows(shop.ask, range(2), 2, progress=False)) == [0, 1]
    assert (shop.here, shop.there) == ([], [[1, 0]])
    assert answer_rows(shop.ask, [], 2, progress=False) == {}


def test_answers_are_the_same_wherever_rows_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a cost that is flat in one direction, which no kernel takes: alone, and in processes."""
    rng = np.random.default_rng(3)
    names = ["a", "b", "c"]
    model = clvq.PrototypeModel(3 * rng.normal(size=(4, 3)), [0, 0, 1, 1], feature_names=names)
    features = clvq.Features([clvq.Feature("a", "whole"), *map(clvq.Feature, "bc")])
    flat = clvq.Mahalanobis([[2.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    explainer = clvq.Explainer(model, flat, ["c <= 5", "c >= -5"], features=features)
    rows = np.column_stack([rng.integers(-3, 4, 6), rng.normal(size=(6, 2))])
    started: list[int] = []
    start = processes.ask_in_processes

    def counting(ask: Any, count: int, jobs: int, take: Any) -> None:
        started.append(count)
        start(ask, count, jobs, take)

    monkeypatch.setattr(processes, "ask_in_processes", counting)
    alone = explainer.explain_batch(rows)
    few = explainer.explain_batch(rows, n_jobs=2)
    assert not started
    monkeypatch.setattr(processes, "_START", 0.0)
    shared = explainer.explain_batch(rows, n_jobs=2)
    assert started
    assert alone.second_engine.sum() > 1
    for name in ("values", "cost", "lower_bound", "gap", "prototype", "status", "second_engine"):
        for other in (few, shared):
            assert np.array_equal(getattr(alone, name), getattr(other, name)), name
