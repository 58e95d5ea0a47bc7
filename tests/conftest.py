"""Settings of every run: threads that wait do not spin, and draws are the same each time."""

from __future__ import annotations

import os
import sys
from pathlib import Path, PurePosixPath
from typing import Any

# Workers and their threads share few cores. A thread of OpenMP that spins while it waits takes the
# time of the one that it waits for: calls of scikit-learn then take a hundred times as long. This
# has to be said before OpenMP is loaded, and is passed on to processes that tests start.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Threads of OpenBLAS spin in any case: as many as there are cores for this worker, no more.
if "PYTEST_XDIST_WORKER_COUNT" in os.environ:
    os.environ.setdefault(
        "OPENBLAS_NUM_THREADS",
        str(max(1, (os.cpu_count() or 1) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))),
    )

# The tests start hundreds of processes. Without bytecode each of them compiles the text of the
# package for half a second, so it is kept even where the environment says otherwise: the folders
# of a checkout hold compiled kernels anyway.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests.support import kernels, quick

sys.dont_write_bytecode = False  # nor are the assertions of tests rewritten anew by each worker

# By default the same examples on every run, so that nothing fails by chance, and no file left
# behind. `make test-slow` draws others each time, and keeps those that fail.
settings.register_profile("same", deadline=None, derandomize=True, database=None, max_examples=25)
settings.register_profile("drawn", deadline=None, print_blob=True)
settings.load_profile("same")

TESTS = Path(__file__).parent

# Files whose tests share nothing and are long: processes or threads of their own, pages, benches.
# They are handed out one by one after the others, so that no worker is left with a whole file.
APART = {
    "test_benchmark_fits.py",
    "test_benchmarks.py",
    "test_benchmarks_mixed.py",
    "test_child_processes.py",
    "test_cold_start.py",
    "test_docs.py",
    "test_environments.py",
    "test_examples.py",
    "test_many_threads.py",
    "test_page.py",
    "test_pictures.py",
    "test_processes.py",
    "test_signals.py",
}


# What people look at, pictures, reports, the page and the service behind it, and the reproduction
# of the paper. It is tested with the pages of the documentation, by `make test-docs`.
PAGES = {"page", "paper", "plots", "report", "service"}

# What is about processes, signals, memory, clocks and compiled code on disk rather than about
# answers: it takes time by the clock, and is tested by `make test-machine`. Single tests of other
# files carry the mark `machine` themselves.
MACHINE = {
    "batch/test_child_processes.py",
    "batch/test_many_threads.py",
    "batch/test_threads.py",
    "cli/test_odd_names.py",
    "cli/test_signals.py",
    "cli/test_strangers.py",
    "explainer/test_environments.py",
    "numeric/test_cold_start.py",
    "numeric/test_interrupts.py",
    "numeric/test_processes.py",
    "numeric/test_size.py",
    "project/test_fuzz.py",
    "streaming/test_identity.py",
    "streaming/test_strangers.py",
}


class ByFile(LoadScopeScheduling):
    """Keeps the tests of a file on one worker, which prepares once what they share."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.split("::", 1)[0]
        return nodeid if PurePosixPath(path).name in APART else path


def pytest_configure(config: pytest.Config) -> None:
    # The process that hands tests out, before any worker starts.
    if not hasattr(config, "workerinput") and (config.getoption("numprocesses", None) or 0) > 1:
        kernels.compile_all()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)  # before those that are marked slow are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    quick.mark_combinations(items)
    for item in items:
        if item.path.parent.name in PAGES and item.path.parents[1] == TESTS:
            item.add_marker(pytest.mark.docs)
        if item.path.is_relative_to(TESTS) and item.path.relative_to(TESTS).as_posix() in MACHINE:
            item.add_marker(pytest.mark.machine)
