"""Settings of every run: threads that wait do not spin, and draws are the same each time."""

from __future__ import annotations

import os

# Workers and their threads share few cores. A thread of OpenMP that spins while it waits takes the
# time of the one that it waits for: calls of scikit-learn then take a hundred times as long. This
# has to be said before OpenMP is loaded, and is passed on to processes that tests start.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from hypothesis import settings

# By default the same examples on every run, so that nothing fails by chance, and no file left
# behind. `make test-slow` draws others each time, and keeps those that fail.
settings.register_profile("same", deadline=None, derandomize=True, database=None)
settings.register_profile("drawn", deadline=None, print_blob=True)
settings.load_profile("same")
