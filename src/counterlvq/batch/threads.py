"""Blocks of work for threads, with progress and a way to stop.

The kernels release the interpreter, so threads share the work without copying it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event, Lock
from typing import TypeVar

import numpy as np

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.interrupts import GivenUpError, given_up_with
from counterlvq.presentation.progress import Counts, progress_bar

__all__ = ["run_blocks", "workers"]

# Seconds between two looks: a signal that comes just before a wait without an end is not heard.
_LOOK = 0.1

Block = TypeVar("Block", bound=Sized)


def workers(n_jobs: int | None) -> int:
    """Turn `n_jobs` into a number of threads: None is 1, -1 every core, -2 all but one."""
    if n_jobs is None:
        return 1
    if not _is_whole(n_jobs) or n_jobs == 0:
        raise InvalidInputError(
            f"n_jobs is {n_jobs!r}; expected a positive number of threads, a negative one to "
            f"count down from all cores (-1: all of them), or None for one."
        )
    if n_jobs > 0:
        return int(n_jobs)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) + 1 + int(n_jobs))


def run_blocks(
    blocks: Iterable[Block],
    work: Callable[[Block], int | None],
    jobs: int,
    total: int,
    progress: Counts,
) -> None:
    """Call `work` for every block, in `jobs` threads; `total` is how many rows they hold.

    `work` may return how many rows of its block it leaves to others: these do not count as done.

    Blocks are made as they are needed. An interrupt, or an error in a block, stops the run
    after the blocks that are under way; those that wait for a compiler or a solver are given up.
    """
    turn = Lock()
    with progress_bar(total, progress) as count:

        def done(block: Block) -> None:
            left = work(block) or 0
            with turn:
                count(len(block) - left)

        if jobs > 1:
            return _run_threads(iter(blocks), done, jobs)
        for block in blocks:
            done(block)


def _run_threads(blocks: Iterator[Block], work: Callable[[Block], None], jobs: int) -> None:
    turn, stop = Lock(), Event()

    def serve() -> None:
        """Take one block after another: a thread that hands them out would only be in the way."""
        try:
            with given_up_with(stop):
                while not stop.is_set():
                    with turn:
                        block = next(blocks, None)
                    if block is None:
                        return
                    work(block)
        except GivenUpError:
            return  # for a reason that another thread tells
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(jobs) as pool:
        try:  # from the first thread on: an interrupt may come before the last one is there
            running = [pool.submit(serve) for _ in range(jobs)]
            while wait(running, _LOOK).not_done:
                pass
            for future in running:
                future.result()
        finally:
            stop.set()


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
