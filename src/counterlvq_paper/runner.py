"""Do what is not done yet, in as many processes as there are cores to use."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import lru_cache
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from counterlvq.presentation.progress import PieceCount
from counterlvq_paper.houses import house_answers
from counterlvq_paper.journal import Block, Journal
from counterlvq_paper.methods import METHODS, OURS, answer
from counterlvq_paper.protocol import (
    DATA_SETS,
    MODELS,
    Case,
    Settings,
    case_of,
    fit,
    fold_of,
    fold_of_house,
)

__all__ = ["case_at", "finish", "house_name", "plan"]

# Rows per block, so that a block takes seconds.
_SIZES = {"Nelder-Mead": 10, "CMA-ES": 5, "ccp": 150, "auto": 15, "global": 5}
# Roughly how long a row takes, to tell how long the rest will.
_SECONDS = {
    ("Nelder-Mead", "digits"): 0.15, ("Nelder-Mead", ""): 0.04,
    ("CMA-ES", "digits"): 1.9, ("CMA-ES", ""): 0.5,
    ("ccp", "digits"): 0.009, ("ccp", ""): 0.01,
    ("auto", "digits"): 0.8, ("auto", ""): 0.07,
    ("global", "digits"): 1.5, ("global", ""): 0.1,
}  # fmt: skip
_HOUSE_LIMIT = 60.0


def plan(settings: Settings) -> list[Block]:
    """All blocks: those of the compared rows first, so that a part of a run says something."""
    first: list[Block] = []
    later: list[Block] = []
    for data in DATA_SETS:
        for model in MODELS:
            for fold in settings.folds:
                for block in _blocks(data, model, fold, settings):
                    (first if block.start < settings.compared else later).append(block)
    return first + later


def _blocks(data: str, model: str, fold: int, settings: Settings) -> Iterator[Block]:
    count = len(fold_of(data, fold).ids)
    count = count if settings.rows is None else min(count, settings.rows)
    compared = min(count, settings.compared)
    for method in METHODS:
        if method in OURS and model != "LGMLVQ":
            yield Block(data, model, fold, method, 0, count)
            continue
        size, end = _SIZES[method], compared
        yield from _cut(Block(data, model, fold, method, 0, end), size)
        if method in ("ccp", "auto"):
            yield from _cut(Block(data, model, fold, method, compared, count), size)


def _cut(whole: Block, size: int) -> Iterator[Block]:
    for start in range(whole.start, whole.stop, size):
        stop = min(start + size, whole.stop)
        yield Block(whole.data, whole.model, whole.fold, whole.method, start, stop)


def house_name(model: str) -> str:
    """Name the answers about the paper's house, for the journal."""
    return f"house-{model}"


def finish(journal: Journal, settings: Settings, jobs: int) -> None:
    """Fit what is not fitted, answer what is not answered."""
    house = fold_of_house()
    needed = [(d, m, f) for d in DATA_SETS for m in MODELS for f in settings.folds]
    needed += [("Ames", m, house.number) for m in MODELS if house.number not in settings.folds]
    fits = [key for key in needed if not journal.has_fit(*key)]
    blocks = plan(settings)
    missing = [block for block in blocks if not journal.has(block.name)]
    houses = [model for model in MODELS if not journal.has(house_name(model))]
    done = sum(_weight(b) for b in blocks) - sum(_weight(b) for b in missing)
    if done and missing:
        finished = len(blocks) - len(missing)
        there = f"{finished} of {len(blocks)} blocks are there"
        sys.stderr.write(f"Going on from {journal.folder}: {there}.\n")
    folder = str(journal.folder)
    with _Workers(jobs) as workers:
        workers.run([(_fit, (folder, *key), 0.2, " ".join(map(str, key))) for key in fits], "fits")
        work: list[Work] = [
            (_answer_house, (folder, model, house.number), 1.0, f"house {model}")
            for model in houses
        ]
        work += [
            (_answer_block, (folder, block, settings), _weight(block), block.name)
            for block in missing
        ]
        workers.run(work, "blocks")


def _weight(block: Block) -> float:
    if block.method in OURS and block.model != "LGMLVQ":
        return 0.2
    data = "digits" if block.data == "digits" else ""
    return (block.stop - block.start) * _SECONDS[block.method, data]


def case_at(journal: Journal, data: str, model: str, fold: int, settings: Settings) -> Case:
    """Put a case together with the model that the journal holds."""
    return case_of(fold_of(data, fold), model, journal.fitted(data, model, fold), settings)


# --- in the processes -----------------------------------------------------------------------------


def _fit(folder: str, data: str, model: str, fold: int) -> None:
    Journal(Path(folder)).keep_fit(data, model, fold, fit(fold_of(data, fold), model))


@lru_cache(maxsize=4)
def _case(folder: str, data: str, model: str, fold: int, settings: Settings) -> Case:
    return case_at(Journal(Path(folder)), data, model, fold, settings)


def _answer_block(folder: str, block: Block, settings: Settings) -> None:
    case = _case(folder, block.data, block.model, block.fold, settings)
    record = answer(case, block.method, block.start, block.stop, settings.limit)
    Journal(Path(folder)).keep(block.name, record)


def _answer_house(folder: str, model: str, fold: int) -> None:
    journal = Journal(Path(folder))
    fitted = journal.fitted("Ames", model, fold)
    found = house_answers(fold_of("Ames", fold), model, fitted, _HOUSE_LIMIT)
    journal.keep(house_name(model), found)


def _settle_in() -> None:
    """One thread per process, and no process that outlives the one that started it."""
    threadpool_limits(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that started it ends it
    parent = multiprocessing.parent_process()
    if parent is not None:

        def leave() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=leave, daemon=True).start()


# --- and around them ------------------------------------------------------------------------------

Work = tuple[Any, tuple[Any, ...], float, str]  # what to call, with what, seconds, name


class _Workers:
    """A pool of processes, or this one alone; either way work is started in the order given."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool: ProcessPoolExecutor | None = None
        self._others: set[BaseProcess] = set()

    def __enter__(self) -> _Workers:
        if self._jobs > 1:
            self._others = set(multiprocessing.active_children())
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._jobs, context, _settle_in)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._pool is None:
            return
        self._pool.shutdown(wait=kind is None, cancel_futures=True)
        if kind is not None:  # whoever stops the run does not wait for the blocks under way
            for process in set(multiprocessing.active_children()) - self._others:
                process.terminate()

    def run(self, work: Sequence[Work], what: str) -> None:
        progress = PieceCount([weight for *_, weight, _ in work], what)
        if self._pool is None:
            with threadpool_limits(1):
                for call, arguments, weight, name in work:
                    call(*arguments)
                    progress.step(weight, name)
            return
        waiting: dict[Future[None], Work] = {}
        ahead = iter(work)
        while True:
            # A few at a time, so that an interrupt leaves nothing in a queue.
            for item in ahead:
                waiting[self._pool.submit(item[0], *item[1])] = item
                if len(waiting) > self._jobs:
                    break
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                future.result()
                _, _, weight, name = waiting.pop(future)
                progress.step(weight, name)
