"""The same questions put to an earlier state of the package, beside today's.

`python -m benchmarks.local --columns --before FOLDER` takes the folder of a checkout. Either state
runs in a process of its own, with models as plain arrays.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

import counterlvq as clvq
from benchmarks.local_columns import problem

# What either state is asked: a model, rows and targets; seconds of the processor come back.
_ASKED = """
import json, sys, time
import numpy as np
import counterlvq as clvq

asked = np.load(sys.argv[1])
model = clvq.PrototypeModel(asked["prototypes"], asked["labels"], list(asked["omegas"]))
cost = clvq.Manhattan() if sys.argv[2] == "L1" else clvq.Euclidean()
explainer = clvq.Explainer(model, cost)
explainer.explain(asked["rows"][0], target=asked["targets"][0])  # loads what is compiled
for row, target in zip(asked["rows"], asked["targets"]):
    begun = time.process_time()
    cf = explainer.explain(row, target=target)
    told = time.process_time() - begun, bool(cf.status == "optimal"), cf.cost, cf.lower_bound
    print(json.dumps(told), flush=True)
"""


@dataclass(frozen=True)
class Before:
    """Seconds of the processor for the same rows, then and now."""

    problem: str
    cost: str
    commit: str
    then: list[float]
    now: list[float]
    proved_then: list[bool]
    proved_now: list[bool]

    @property
    def ratio(self) -> float:
        """How many times faster the median has become."""
        return median(self.then) / median(self.now)


def beside(name: str, cost: str, rows: int, folder: Path, commit: str) -> Before:
    """Put the first rows of a problem to both states, as its last step sees them."""
    asked = problem(name, cost, 30)
    before, model = asked.model[:-1], clvq.as_prototype_model(asked.model[-1])
    with TemporaryDirectory() as place:
        path = Path(place) / "asked.npz"
        np.savez(
            path,
            prototypes=model.prototypes,
            labels=model.labels,
            omegas=np.array(model.omegas),
            rows=before.transform(asked.rows[:rows]),
            targets=np.array(asked.targets[:rows]),
        )
        then, now = (_told(path, cost, source) for source in (folder / "src", _own_source()))
    for (_, _, cost_then, bound_then), (_, _, cost_now, bound_now) in zip(then, now, strict=True):
        if max(bound_then, bound_now) > (1.0 + 1e-9) * min(cost_then, cost_now):
            raise AssertionError(f"{name}, {cost}: a bound lies above an answer")
    return Before(
        name, cost, commit, [each[0] for each in then], [each[0] for each in now],
        [each[1] for each in then], [each[1] for each in now],
    )  # fmt: skip


def _own_source() -> Path:
    return Path(clvq.__file__).parents[1]


def _told(path: Path, cost: str, source: Path) -> list[tuple[float, bool, float, float]]:
    done = subprocess.run(
        [sys.executable, "-c", _ASKED, str(path), cost],
        env={**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]
