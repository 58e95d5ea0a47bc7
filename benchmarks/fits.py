"""Accuracy and fit time of the six estimators: `python -m benchmarks.fits`, with `--peers` beside
sklvq and sklearn-lvq in environments of their own, which are built when they are missing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import counterlvq
from benchmarks.figures import environment
from benchmarks.fits_report import SOURCE_LIBRARY, write
from benchmarks.fits_results import (
    ESTIMATORS,
    FOLDS,
    OTHER_SEEDS,
    PATIENCE,
    SEED,
    Fits,
    PeerFits,
)
from benchmarks.fits_there import PROTOTYPES

HERE = Path(__file__).resolve().parent
LOADERS = {"iris": load_iris, "cancer": load_breast_cancer, "digits": load_digits}
COMPONENTS = {"cancer": 5, "digits": 10}
PEERS = ("sklvq", "sklearn-lvq")


@dataclass(frozen=True)
class Fold:
    """Prepared rows: everything is learnt from the training part."""

    X: NDArray[np.float64]
    y: NDArray[np.intp]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.intp]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fits", description=__doc__)
    parser.add_argument("--peers", action="store_true", help="also fit with sklvq and sklearn-lvq")
    parser.add_argument("--quick", action="store_true", help="leave out the digits")
    parser.add_argument(
        "--output", type=Path, default=HERE / "results", help="folder for fits.json and fits.md"
    )
    options = parser.parse_args()
    where = environment() | {"peers": pins(PEERS if options.peers else ())}
    names = [name for name in LOADERS if not (options.quick and name == "digits")]
    with threadpool_limits(1):  # one thread for every library
        found = [fits for name in names for fits in measure_all(name, options.peers)]
    print(write(found, where, options.output))
    return 0


def pins(peers: Sequence[str]) -> dict[str, list[str]]:
    """Versions in the environments of the peers."""
    from tests.peers import environments

    return {peer: list(environments.PEERS[peer].pins) for peer in peers}


def measure_all(name: str, with_peers: bool) -> list[Fits]:
    """The folds of the figures beside all peers, then others beside the source of the figures."""
    found = measure(name, SEED, PEERS if with_peers else ())
    for seed in OTHER_SEEDS:
        found += measure(name, seed, (SOURCE_LIBRARY,) if with_peers else ())
    return found


def measure(name: str, seed: int, peers: Sequence[str]) -> list[Fits]:
    """Fit every estimator on the folds of one data set, then the peers on the same folds."""
    parts = folds(name, seed)
    _say(f"{name}, seed {seed}: counterlvq")
    _fit("GLVQ", parts[0])  # loads what the first fit would load
    found = [own_fits(name, estimator, seed, parts) for estimator in ESTIMATORS]
    for peer in peers:
        _say(f"{name}, seed {seed}: {peer}")
        there = peer_fits(peer, parts)
        for fits in found:
            if fits.estimator in there:
                fits.peers[peer] = beside(fits, there[fits.estimator])
    return found


def folds(name: str, seed: int) -> list[Fold]:
    """Shuffled folds, standardised and projected as the figures ask."""
    X, y = LOADERS[name](return_X_y=True)
    split = KFold(FOLDS, shuffle=True, random_state=seed).split(X)
    return [_prepared(name, X[train], y[train], X[test], y[test]) for train, test in split]


def _prepared(name: str, X: Any, y: Any, X_test: Any, y_test: Any) -> Fold:
    steps = [StandardScaler()]
    if name in COMPONENTS:
        steps.append(PCA(COMPONENTS[name], random_state=SEED))
    prepare = make_pipeline(*steps).fit(X)
    return Fold(prepare.transform(X), y, prepare.transform(X_test), y_test)


def own_fits(name: str, estimator: str, seed: int, parts: Sequence[Fold]) -> Fits:
    """Fit one estimator on every fold."""
    accuracies, seconds, settled = zip(*(_fit(estimator, fold) for fold in parts), strict=True)
    return Fits(name, estimator, seed, list(accuracies), list(seconds), settled.count(False))


def _fit(estimator: str, fold: Fold) -> tuple[float, float, bool]:
    """Accuracy, seconds, and whether the fit settled."""
    model = getattr(counterlvq, estimator)(PROTOTYPES, random_state=SEED)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = perf_counter()
        model.fit(fold.X, fold.y)
        seconds = perf_counter() - start
    settled = not any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return float(model.score(fold.X_test, fold.y_test)), seconds, settled


def peer_fits(peer: str, parts: Sequence[Fold]) -> dict[str, dict[str, Any]]:
    """Fit the models of a peer in its environment: what `fits_there` measured, by estimator."""
    from tests.peers import environments

    python = environments.ready(environments.PEERS[peer])
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "folds.npz"), Path(folder, "fits.json")
        arrays = {f"{key}_{k}": a for k, fold in enumerate(parts) for key, a in vars(fold).items()}
        np.savez(source, **arrays)
        script = HERE / "fits_there.py"
        _run([str(part) for part in (python, script, peer, source, target, PATIENCE)])
        found: dict[str, dict[str, Any]] = json.loads(target.read_text("utf-8"))
    return found


def beside(fits: Fits, there: dict[str, Any]) -> PeerFits:
    """What a peer measured, with its time relative to ours on the same folds."""
    seconds = there["seconds"]
    return PeerFits(**there, ratio=median(seconds) / median(fits.seconds[: len(seconds)]))


def _run(command: list[str]) -> None:
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    alone = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=alone | one_thread
    )
    if done.returncode:
        raise RuntimeError(f"the fits of {command[2]} failed:\n{done.stderr}")


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
