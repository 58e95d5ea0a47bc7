"""Compile the kernels before workers start, each once: two workers would compile the same.

`python tests/support/kernels.py NAME ...` asks the questions of these names, which makes Numba
compile what they need and keep it on disk.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import counterlvq as clvq
from counterlvq.numeric.interpreting import compile_from_now_on

# What is asked in each of two processes, so that both are busy for about as long.
SHARES = (
    ("absolute", "absolute mixed", "absolute pieces"),
    ("squared", "squared mixed", "squared pieces", "local"),
)

_X = [0.2, 0.3]


def _model(local: bool = False) -> clvq.PrototypeModel:
    omegas = np.array([np.eye(2), [[1.0, 0.5], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.0]]])
    prototypes = [[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]]
    return clvq.PrototypeModel(prototypes, ["a", "b", "c"], omegas if local else None)


def _ask(cost: clvq.Cost, rules: Sequence[Any] = (), **options: Any) -> None:
    explainer = clvq.Explainer(_model(options.pop("local", False)), cost, rules, **options)
    explainer.explain(_X, "b")
    explainer.explain_batch([_X], "b")


def _mixed(cost: clvq.Cost, rules: Sequence[Any] = ()) -> None:
    _ask(cost, rules, features=clvq.Features([clvq.Feature("x0", decimals=1), clvq.Feature("x1")]))


QUESTIONS: dict[str, Callable[[], None]] = {
    "absolute": lambda: _ask(clvq.Manhattan()),
    "absolute mixed": lambda: _mixed(clvq.Manhattan()),
    "absolute pieces": lambda: _mixed(clvq.Manhattan(), [clvq.MinChange("x1", 0.1)]),
    "squared": lambda: _ask(clvq.Euclidean()),
    "squared mixed": lambda: _mixed(clvq.Euclidean()),
    "squared pieces": lambda: _mixed(clvq.Euclidean(), [clvq.MinChange("x1", 0.1)]),
    "local": lambda: _ask(clvq.Euclidean(), local=True),
}


def compile_all() -> None:
    """Ask all questions, in two processes; a few seconds where compiled code is on disk."""
    started = [subprocess.Popen([sys.executable, __file__, *names]) for names in SHARES]
    codes = [process.wait() for process in started]
    if any(codes):
        raise RuntimeError(f"the kernels were not compiled: exit codes {codes}")


if __name__ == "__main__":
    compile_from_now_on()
    for name in sys.argv[1:]:
        QUESTIONS[name]()
