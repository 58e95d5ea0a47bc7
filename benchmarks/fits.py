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
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, median
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
from benchmarks.fits_there import PROTOTYPES
from benchmarks.report import duration, write_atomically

HERE = Path(__file__).resolve().parent
ESTIMATORS = ("GLVQ", "GMLVQ", "LGMLVQ", "RSLVQ", "MRSLVQ", "LMRSLVQ")
PEERS = ("sklvq", "sklearn-lvq")
LOADERS = {"iris": load_iris, "cancer": load_breast_cancer, "digits": load_digits}
COMPONENTS = {"cancer": 5, "digits": 10}
FOLDS = 4
SEED = 0
PATIENCE = 20.0  # seconds for one model of a peer, after which no further fold is begun
MARGIN = 0.01  # a mean this far below the published figure still reaches it

# Test accuracy of sklearn-lvq 1.1.1 on the first fold, same preparation and prototypes. It gave
# no figure for the soft models on the digits: RSLVQ was stopped after four minutes.
SOURCE = "sklearn-lvq 1.1.1, first fold"
WANTED = {
    "iris": dict(zip(ESTIMATORS, (0.974, 0.921, 0.947, 0.974, 0.921, 0.974), strict=True)),
    "cancer": dict(zip(ESTIMATORS, (0.937, 0.958, 0.951, 0.937, 0.930, 0.909), strict=True)),
    "digits": dict(zip(ESTIMATORS[:3], (0.907, 0.922, 0.951), strict=True)),
}


@dataclass(frozen=True)
class Fold:
    """Prepared rows: everything is learnt from the training part."""

    X: NDArray[np.float64]
    y: NDArray[np.intp]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.intp]


@dataclass(frozen=True)
class PeerFits:
    """The same model of another library, on the first folds or on all."""

    seconds: list[float]
    accuracies: list[float]
    ratio: float  # its median time over ours on the same folds


@dataclass
class Fits:
    """One estimator on the folds of one data set."""

    data: str
    estimator: str
    accuracies: list[float]
    seconds: list[float]
    unsettled: int  # fits that ended at max_iter
    peers: dict[str, PeerFits] = field(default_factory=dict)

    @property
    def wanted(self) -> float | None:
        return WANTED[self.data].get(self.estimator)

    @property
    def verdict(self) -> str:
        if self.wanted is None:
            return ""
        return "reached" if fmean(self.accuracies) >= self.wanted - MARGIN else "not reached"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fits", description=__doc__)
    parser.add_argument("--peers", action="store_true", help="also fit with sklvq and sklearn-lvq")
    parser.add_argument("--quick", action="store_true", help="leave out the digits")
    parser.add_argument(
        "--output", type=Path, default=HERE / "results", help="folder for fits.json and fits.md"
    )
    options = parser.parse_args()
    where = environment()
    names = [name for name in LOADERS if not (options.quick and name == "digits")]
    with threadpool_limits(1):  # one thread for every library
        found = [fits for name in names for fits in measure(name, options.peers)]
    text = markdown(found, where)
    write(found, where, text, options.output)
    print(text)
    return 0


def measure(name: str, with_peers: bool) -> list[Fits]:
    """Fit every estimator on one data set, then the peers on the same folds."""
    parts = folds(name)
    _say(f"{name}: counterlvq")
    _fit("GLVQ", parts[0])  # loads what the first fit would load
    found = [own_fits(name, estimator, parts) for estimator in ESTIMATORS]
    for peer in PEERS if with_peers else ():
        _say(f"{name}: {peer}")
        there = peer_fits(peer, parts)
        for fits in found:
            if fits.estimator in there:
                fits.peers[peer] = _beside(fits, **there[fits.estimator])
    return found


def folds(name: str) -> list[Fold]:
    """Shuffled folds, standardised and projected as the figures ask."""
    X, y = LOADERS[name](return_X_y=True)
    split = KFold(FOLDS, shuffle=True, random_state=SEED).split(X)
    return [_prepared(name, X[train], y[train], X[test], y[test]) for train, test in split]


def _prepared(name: str, X: Any, y: Any, X_test: Any, y_test: Any) -> Fold:
    steps = [StandardScaler()]
    if name in COMPONENTS:
        steps.append(PCA(COMPONENTS[name], random_state=SEED))
    prepare = make_pipeline(*steps).fit(X)
    return Fold(prepare.transform(X), y, prepare.transform(X_test), y_test)


def own_fits(name: str, estimator: str, parts: Sequence[Fold]) -> Fits:
    """Fit one estimator on every fold."""
    accuracies, seconds, settled = zip(*(_fit(estimator, fold) for fold in parts), strict=True)
    return Fits(name, estimator, list(accuracies), list(seconds), settled.count(False))


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


def peer_fits(peer: str, parts: Sequence[Fold]) -> dict[str, dict[str, list[float]]]:
    """Fit the models of a peer in its environment: seconds and accuracies by estimator."""
    from tests.peers import environments

    python = environments.ready(environments.PEERS[peer])
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "folds.npz"), Path(folder, "fits.json")
        arrays = {f"{key}_{k}": a for k, fold in enumerate(parts) for key, a in vars(fold).items()}
        np.savez(source, **arrays)
        script = HERE / "fits_there.py"
        _run([str(part) for part in (python, script, peer, source, target, PATIENCE)])
        found: dict[str, dict[str, list[float]]] = json.loads(target.read_text("utf-8"))
    return found


def _beside(fits: Fits, seconds: list[float], accuracies: list[float]) -> PeerFits:
    ratio = median(seconds) / median(fits.seconds[: len(seconds)])
    return PeerFits(seconds, accuracies, ratio)


def _run(command: list[str]) -> None:
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | one_thread
    )
    if done.returncode:
        raise RuntimeError(f"the fits of {command[2]} failed:\n{done.stderr}")


def write(found: Sequence[Fits], where: dict[str, Any], text: str, folder: Path) -> None:
    """Write fits.json and fits.md."""
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps(as_dict(found, where), indent=1, allow_nan=False) + "\n"
    write_atomically(folder / "fits.json", lambda path: path.write_text(content, "utf-8"))
    write_atomically(folder / "fits.md", lambda path: path.write_text(text, "utf-8"))


def as_dict(found: Sequence[Fits], where: dict[str, Any]) -> dict[str, Any]:
    """Everything, with the verdicts, as JSON can hold it."""
    rows = [
        asdict(fits)
        | {
            "mean_accuracy": fmean(fits.accuracies),
            "median_seconds": median(fits.seconds),
            "wanted": fits.wanted,
            "verdict": fits.verdict,
        }
        for fits in found
    ]
    settings = {"prototypes_per_class": PROTOTYPES, "folds": FOLDS, "seed": SEED}
    return {
        "environment": where | {"peers": _pins(found)},
        "settings": settings,
        "source": SOURCE,
        "margin": MARGIN,
        "fits": rows,
    }


def _pins(found: Sequence[Fits]) -> dict[str, list[str]]:
    """Versions in the environments that took part."""
    from tests.peers import environments

    used = [peer for peer in PEERS if any(peer in fits.peers for fits in found)]
    return {peer: list(environments.PEERS[peer].pins) for peer in used}


def markdown(found: Sequence[Fits], where: dict[str, Any]) -> str:
    """The whole report."""
    return "\n".join([*_head(found, where), *_table(found), *_peers(found)])


def _head(found: Sequence[Fits], where: dict[str, Any]) -> Iterator[str]:
    names = ("counterlvq", "numpy", "scipy", "scikit-learn")
    packages = ", ".join(f"{name} {where['packages'][name]}" for name in names)
    yield "# Fits of the estimators\n"
    command = "python -m benchmarks.fits" + (" --peers" if _pins(found) else "")
    yield f"`{command}`, {where['date']}."
    yield f"Python {where['python']} on {where['platform']}, {where['cores']} cores. {packages}.\n"
    yield (
        f"Test accuracy over {FOLDS} shuffled folds, {PROTOTYPES} prototypes per class, "
        "standardised; cancer then on 5 and digits on 10 principal components. Default settings, "
        "one thread. A figure counts as reached when the mean over the folds is at most "
        f"{100 * MARGIN:g} percentage point below that of {SOURCE}.\n"
    )


def _table(found: Sequence[Fits]) -> Iterator[str]:
    yield _row(("data", "estimator", "mean", "first fold", SOURCE, "", "median fit", "slowest fit"))
    yield _row(["---"] * 2 + ["---:"] * 3 + ["---"] + ["---:"] * 2)
    for fits in found:
        verdict = "**not reached**" if fits.verdict == "not reached" else fits.verdict
        told = "" if fits.wanted is None else f"{fits.wanted:.3f}"
        scores = (f"{fmean(fits.accuracies):.3f}", f"{fits.accuracies[0]:.3f}", told)
        times = (duration(median(fits.seconds)), duration(max(fits.seconds)))
        yield _row((fits.data, fits.estimator, *scores, verdict, *times))
    yield ""
    total = sum(len(fits.seconds) for fits in found)
    yield f"{sum(f.unsettled for f in found)} of {total} fits ended at the limit of iterations.\n"


def _peers(found: Sequence[Fits]) -> Iterator[str]:
    pins = _pins(found)
    if not pins:
        return
    yield "## Beside other libraries\n"
    versions = "; ".join(", ".join(peer).replace("==", " ") for peer in pins.values())
    yield (
        f"In environments of their own ({versions}), with their default settings. Ratio: the "
        "median fit time of the other library over that of counterlvq in this run, on the same "
        f"folds. A library gets no further fold after {PATIENCE:g} s with one model.\n"
    )
    yield _row(("data", "estimator", "library", "folds", "median fit", "ratio", "mean", "ours"))
    yield _row(["---"] * 3 + ["---:"] * 5)
    for fits in found:
        for peer, there in fits.peers.items():
            yield _row((fits.data, fits.estimator, peer, *_peer_cells(fits, there)))
    yield ""


def _peer_cells(fits: Fits, there: PeerFits) -> Iterator[str]:
    count = len(there.seconds)
    yield str(count)
    yield duration(median(there.seconds))
    yield f"{there.ratio:,.1f}" if there.ratio < 100 else f"{there.ratio:,.0f}"
    yield f"{fmean(there.accuracies):.3f}"
    yield f"{fmean(fits.accuracies[:count]):.3f}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
