"""Distances of a few pairs are those of SciPy, to the last bit, and need no SciPy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from counterlvq.numeric import distances as module
from counterlvq.numeric.distances import distances, squared_distances


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("few", [0, module._FEW])
def test_the_same_as_scipy(seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW", few)
    rng = np.random.default_rng(seed)
    n, p, d = rng.integers(1, 5), rng.integers(1, 12), rng.integers(1, 80)
    rows = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-8, 9)
    points = rng.normal(size=(p, d)) * 10.0 ** rng.integers(-8, 9, size=d)
    for found, metric in (
        (squared_distances(rows, points), "sqeuclidean"),
        (distances(rows, points), "euclidean"),
        (distances(rows, points, largest=True), "chebyshev"),
    ):
        assert found.tobytes() == cdist(rows, points, metric).tobytes()


def test_questions_are_prepared_without_scipy() -> None:
    """What takes long to import is imported where it is needed; Numba needs a part of it itself."""
    asks = """
import sys
import counterlvq as clvq
model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["a", "b"])
clvq.Explainer(model, constraints=["x0 <= 3"])
print(model.predict([[0.0, 0.0]]))
print([name for name in sys.modules if name.split(".")[0] in ("scipy", "sklearn", "pandas")])
"""
    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['a']", "[]"]
