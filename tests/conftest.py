"""Settings of every run: threads that wait do not spin, and draws are the same each time."""

from __future__ import annotations

import os

# Workers and their threads share few cores. A thread of OpenMP that spins while it waits takes the
# time of the one that it waits for: calls of scikit-learn then take a hundred times as long. This
# has to be said before OpenMP is loaded, and is passed on to processes that tests start.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import pytest
from hypothesis import settings

# By default the same examples on every run, so that nothing fails by chance, and no file left
# behind. `make test-slow` draws others each time, and keeps those that fail.
settings.register_profile("same", deadline=None, derandomize=True, database=None)
settings.register_profile("drawn", deadline=None, print_blob=True)
settings.load_profile("same")

# Files whose tests start processes or threads of their own, wait, and share nothing: handed out
# one by one when the others are done, so that no worker is left with a long file in the end.
APART = {
    "test_child_processes.py",
    "test_cold_start.py",
    "test_environments.py",
    "test_many_threads.py",
    "test_processes.py",
    "test_signals.py",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the quick tests of a file on one worker, which prepares once what they share."""
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        is_long = any(item.get_closest_marker(name) for name in ("slow", "docs", "xdist_group"))
        if not is_long and item.path.name not in APART:
            item.add_marker(pytest.mark.xdist_group(item.location[0]))
