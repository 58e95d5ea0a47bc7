"""The real ceml 0.7 beside ours, in an environment of its own.

Its dependencies are pinned to versions that no current package runs on, so it is installed
without them into a virtual environment in the cache folder, with what its LVQ part needs.
Models go there as arrays, points come back; whatever it raises is counted.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import NotSupportedError
from counterlvq.presentation.progress import PieceCount
from counterlvq.safe_text import visible
from counterlvq_paper.equation import STRENGTHS
from counterlvq_paper.journal import Journal, write_atomically
from counterlvq_paper.protocol import DATA_SETS, MODELS, Case, Settings
from counterlvq_paper.runner import case_at
from counterlvq_paper.tables import Answers, point_matrix
from counterlvq_paper.verdicts import ROUNDING, Verdict

__all__ = ["PEER_METHODS", "PeerLine", "ask_peers", "environment", "peer_lines", "peer_verdicts"]

Array = NDArray[np.float64]

PEER_METHODS: Final = ("nelder-mead", "mp")
_PYTHON: Final = "3.11"
_FORGIVEN: Final = 1e-3  # standard deviations by which a frozen feature may move
_ALONE: Final = ("ceml==0.7",)  # installed without its dependencies
_PINS: Final = (
    "sklearn-lvq==1.1.1",
    "numpy==1.23.5",
    "scipy==1.10.1",
    "scikit-learn==1.3.1",
    "jax==0.4.13",
    "jaxlib==0.4.13",
    "cvxpy==1.3.2",
)


@dataclass(frozen=True)
class PeerLine:
    """One optimiser of ceml on one data set and model, beside "auto" on the same rows."""

    data: str
    model: str
    method: str
    rows: int
    raised: int  # rows on which it raised instead of answering
    wrong: int  # answers that the model does not give the target
    solved: int
    below: int  # of these, answers below a certified bound
    dearer_auto: int  # of these, rows on which "auto" is dearer
    mean: float | None  # distance over the rows that it solved
    mean_auto: float | None  # what "auto" needs on the same rows
    seconds: float  # per row


def environment(cache: Path) -> Path:
    """Return the interpreter of ceml's environment; build that if it is missing or another."""
    folder = cache / "ceml"
    executable = folder / "bin" / "python"
    stamp = folder / ".installed"
    wanted = hashlib.sha256("\n".join((_PYTHON, *_ALONE, *_PINS)).encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return executable
    sys.stderr.write(f"Building an environment for ceml 0.7 in {visible(str(folder))} ...\n")
    shutil.rmtree(folder, ignore_errors=True)
    _run([_python(), "-m", "venv", str(folder)])
    _run([str(executable), "-m", "pip", "install", "--quiet", *_PINS])
    _run([str(executable), "-m", "pip", "install", "--quiet", "--no-deps", *_ALONE])
    write_atomically(stamp, lambda place: place.write_text(wanted))
    return executable


def _python() -> str:
    if f"{sys.version_info.major}.{sys.version_info.minor}" == _PYTHON:
        return sys.executable
    found = os.environ.get("PYTHON311") or shutil.which(f"python{_PYTHON}")
    if found is None:
        raise NotSupportedError(
            f"ceml 0.7 needs Python {_PYTHON}, and there is no python{_PYTHON} on the path; "
            f"install it, name one in the variable PYTHON311, or leave out --peers."
        )
    return found


def _run(command: Sequence[str], quiet: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=quiet)
    if done.returncode:
        raise NotSupportedError(
            f"{' '.join(command[:4])} ... failed; leave out --peers to go on without ceml. "
            f"It said: {(done.stdout + done.stderr)[-2000:]}"
        )


def _name(data: str, model: str, fold: int, method: str) -> str:
    return f"ceml-{data}-{model}-{fold}-{method}"


def _pieces(settings: Settings) -> list[tuple[str, str, int, str]]:
    return [
        (data, model, fold, method)
        for data in DATA_SETS
        for model in MODELS
        for fold in settings.folds
        for method in PEER_METHODS
    ]


def ask_peers(journal: Journal, settings: Settings, python: Path, jobs: int) -> None:
    """Have ceml answer the first compared rows of every case, as far as it has not yet."""
    missing = [piece for piece in _pieces(settings) if not journal.has(_name(*piece))]
    progress = PieceCount([1.0] * len(missing), "pieces for ceml")

    def ask(piece: tuple[str, str, int, str]) -> None:
        data, model, fold, method = piece
        case = case_at(journal, data, model, fold, settings)
        count = -(-settings.peer_rows // len(settings.folds))
        journal.keep(_name(*piece), _ask(python, case, min(count, case.n_compared), method))

    with ThreadPoolExecutor(jobs) as pool:  # each thread waits for a process
        running = {pool.submit(ask, piece): piece for piece in missing}
        try:
            for future in as_completed(running):
                future.result()
                progress.step(1.0, _name(*running[future]))
        finally:
            pool.shutdown(cancel_futures=True)


def _ask(python: Path, case: Case, count: int, method: str) -> Any:
    classes = case.model.classes
    arrays: dict[str, Any] = {
        "prototypes": case.fitted.prototypes,
        "labels": np.searchsorted(classes, case.fitted.labels),
        "rows": case.rows[:count],
        "targets": np.searchsorted(classes, case.targets[:count]),
        "free": np.flatnonzero(case.free),
        "strengths": np.array(STRENGTHS),
    }
    if case.fitted.omegas is not None:
        arrays["omegas"] = case.fitted.omegas
    alone = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    alone |= {"OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    with tempfile.TemporaryDirectory() as name, as_file(files(__package__)) as here:
        question, answer = Path(name) / "question.npz", Path(name) / "answer.json"
        np.savez(question, allow_pickle=False, **arrays)
        script = str(here / "ceml_there.py")
        _run([str(python), script, case.name, method, str(question), str(answer)], alone)
        return json.loads(answer.read_text("utf-8"))


def peer_lines(
    journal: Journal, settings: Settings, found: Mapping[tuple[str, str], Mapping[str, Answers]]
) -> list[PeerLine]:
    """Judge what ceml answered as our own answers are; empty if it was not asked."""
    if not all(journal.has(_name(*piece)) for piece in _pieces(settings)):
        return []
    return [
        _line(journal, settings, data, model, method, found[data, model])
        for data in DATA_SETS
        for model in MODELS
        for method in PEER_METHODS
    ]


def _line(
    journal: Journal,
    settings: Settings,
    data: str,
    model: str,
    method: str,
    found: Mapping[str, Answers],
) -> PeerLine:
    costs: list[float] = []  # NaN where ceml did not solve the row
    ours: list[float] = []
    bounds: list[float] = []
    raised, seconds = 0, 0.0
    for fold in settings.folds:
        case = case_at(journal, data, model, fold, settings)
        told = journal.read(_name(data, model, fold, method))
        at = np.arange(len(told["points"]))
        points = point_matrix(told["points"], case.rows.shape[1])
        points = _put_back(case, at, points)
        raised += sum(y is None for y in told["points"])
        valid = case.valid(at, points)
        costs += np.where(valid, case.costs(at, points), np.nan).tolist()
        places = {name: found[name].at(case.ids[at]) for name in ("auto", "global")}
        ours += found["auto"].cost[places["auto"]].tolist()
        certified = [found[name].lower_bound[place] for name, place in places.items()]
        bounds += np.maximum(*certified).tolist()
        seconds += sum(told["seconds"])
    cost, mine, bound = np.array(costs), np.array(ours), np.array(bounds)
    solved = np.isfinite(cost)
    return PeerLine(
        data=data,
        model=model,
        method=method,
        rows=len(cost),
        raised=raised,
        wrong=len(cost) - raised - int(solved.sum()),
        solved=int(solved.sum()),
        below=int((bound[solved] > cost[solved] * (1 + ROUNDING)).sum()),
        dearer_auto=int((~(mine[solved] <= cost[solved] * (1 + ROUNDING))).sum()),
        mean=_mean(cost[solved]),
        mean_auto=_mean(mine[solved]),
        seconds=seconds / len(cost),
    )


def _mean(values: Array) -> float | None:
    return float(values.mean()) if values.size and np.isfinite(values).all() else None


def _put_back(case: Case, at: NDArray[np.int64], points: Array) -> Array:
    """Forgive frozen features that moved by a little: its solver keeps a few digits only."""
    rows = case.rows[at]
    little = np.abs(points - rows) <= _FORGIVEN
    return np.where(~case.free & little, rows, points)


def peer_verdicts(lines: Sequence[PeerLine]) -> list[Verdict]:
    """Hold "auto" against ceml itself, as it is held against the searches."""
    if not lines:
        return []
    solved, worse = sum(line.solved for line in lines), sum(line.dearer_auto for line in lines)
    below = sum(line.below for line in lines)
    return [
        Verdict(
            "auto <= ceml 0.7 on every row that it solves, and no answer below a certified bound",
            worse == 0 and below == 0,
            f"{solved - worse:,} of {solved:,} rows; {below} below a bound",
        )
    ]
