"""The benchmark of the estimators: folds as the figures ask, honest verdicts, one report.

Nothing here looks at a clock.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from benchmarks import fits as bench
from benchmarks import fits_there
from benchmarks.fits_report import as_dict, markdown, write
from benchmarks.fits_results import ESTIMATORS, LIMIT, WANTED, Fits, PeerFits

pytestmark = pytest.mark.docs

RESULTS = Path(bench.__file__).parent / "results"
WHERE = {
    "date": "2020-02-02T20:20:02+00:00",
    "python": "3.11.0",
    "platform": "Somewhere",
    "cores": 2,
    "load_before": [1.25, 1.0, 1.0],
    "peers": {},
    "packages": dict.fromkeys(("counterlvq", "numpy", "scipy", "scikit-learn"), "1.0"),
}


# --- measuring ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("name", "size", "width"), [("iris", 150, 4), ("cancer", 569, 5)])
def test_folds_are_those_of_the_figures(name: str, size: int, width: int, seed: int) -> None:
    parts = bench.folds(name, seed)

    assert len(parts) == 4
    assert sum(len(fold.y_test) for fold in parts) == size
    y = bench.LOADERS[name](return_X_y=True)[1]
    for fold, (train, test) in zip(
        parts, KFold(4, shuffle=True, random_state=seed).split(y), strict=True
    ):
        assert fold.X.shape == (len(train), width)
        assert fold.X_test.shape == (len(test), width)
        assert np.array_equal(fold.y, y[train])
        assert np.array_equal(fold.y_test, y[test])
        # Learnt from the training rows alone: these are centred, the others are not.
        np.testing.assert_allclose(fold.X.mean(axis=0), 0.0, atol=1e-12)
        assert np.abs(fold.X_test.mean(axis=0)).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "estimator"), [*(("iris", name) for name in ESTIMATORS), ("cancer", "GMLVQ")]
)
def test_accuracies_are_those_of_a_plain_cross_validation(name: str, estimator: str) -> None:
    found = bench.own_fits(name, estimator, 1, bench.folds(name, 1))

    X, y = {"iris": load_iris, "cancer": load_breast_cancer}[name](return_X_y=True)
    steps = [StandardScaler(), *([PCA(5, random_state=0)] if name == "cancer" else [])]
    plain = make_pipeline(*steps, getattr(clvq, estimator)(3, random_state=0))
    expected = cross_val_score(plain, X, y, cv=KFold(4, shuffle=True, random_state=1))
    assert found.accuracies == expected.tolist()
    assert found.unsettled == 0
    assert len(found.seconds) == 4
    assert min(found.seconds) > 0


def test_fits_that_end_at_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(count: int, random_state: int) -> Any:
        return clvq.lvq.GLVQ(count, random_state=random_state, max_iter=1, tol=0.0)

    monkeypatch.setattr(clvq, "GLVQ", short, raising=False)

    assert bench.own_fits("iris", "GLVQ", 0, bench.folds("iris", 0)).unsettled == 4


class Slow:
    """A model of another library that says 1 and takes a second by the clock it is given."""

    max_iter = 2500

    def __init__(self, clock: list[float]) -> None:
        self.clock = clock

    def fit(self, X: np.ndarray, y: np.ndarray) -> Slow:
        self.clock[0] += 1.0
        self.n_iter_ = 10 * int(self.clock[0])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.ones(len(X))


@pytest.mark.parametrize(("patience", "count"), [(0.0, 1), (1.5, 2), (100.0, 3)])
def test_a_peer_gets_folds_until_the_patience_is_spent(
    patience: float, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(fits_there, "perf_counter", lambda: clock[0])
    X, truth = np.zeros((4, 1)), np.array([1, 1, 1, 0])

    found = fits_there.measure(lambda: Slow(clock), [(X, truth, X, truth)] * 3, patience)

    assert found == {
        "seconds": [1.0] * count,
        "accuracies": [0.75] * count,
        "steps": [10, 20, 30][:count],
        "limit": 2500,
    }


def test_folds_reach_the_peer_unchanged(tmp_path: Path) -> None:
    parts = bench.folds("iris", 0)
    arrays = {f"{key}_{k}": a for k, fold in enumerate(parts) for key, a in vars(fold).items()}
    np.savez(tmp_path / "folds.npz", **arrays)

    read = fits_there.read(tmp_path / "folds.npz")

    assert len(read) == 4
    for fold, there in zip(parts, read, strict=True):
        for mine, theirs in zip(vars(fold).values(), there, strict=True):
            assert np.array_equal(mine, theirs)


def test_the_ratio_is_taken_on_the_same_folds() -> None:
    ours = made("iris", "GLVQ", seconds=[1.0, 3.0, 100.0, 100.0])
    there = {"seconds": [10.0, 30.0], "accuracies": [1.0, 1.0], "steps": [5, 7], "limit": 9}

    assert bench.beside(ours, there).ratio == 10.0


# --- verdicts and words -------------------------------------------------------------------------


def made(data: str, estimator: str, mean: float = 0.95, seed: int = 0, **changes: Any) -> Fits:
    seconds = changes.pop("seconds", [0.02, 0.03, 0.04, 0.05])
    return Fits(data, estimator, seed, [mean] * 4, seconds, 0, **changes)


def run(**changes: Any) -> list[Fits]:
    """A run on two data sets with made-up numbers, every figure reached to the last digit."""
    found = []
    for seed in (0, 1, 2):
        for data in ("iris", "digits"):
            for name in ESTIMATORS:
                wanted = WANTED[data].get(name, 0.9)
                found.append(made(data, name, mean=wanted, seed=seed, **changes))
    return found


@pytest.mark.parametrize(
    ("mean", "verdict"), [(0.975, "reached"), (0.9641, "reached"), (0.9639, "not reached")]
)
def test_a_figure_is_reached_within_one_percentage_point(mean: float, verdict: str) -> None:
    assert made("iris", "GLVQ", mean).verdict == verdict


def test_what_has_no_figure_has_no_verdict() -> None:
    assert made("digits", "RSLVQ", 0.0).verdict == ""


def test_the_figures_are_those_of_the_field() -> None:
    assert sorted(WANTED) == ["cancer", "digits", "iris"]
    assert [len(WANTED[name]) for name in ("iris", "cancer", "digits")] == [6, 6, 3]
    assert WANTED["cancer"]["LMRSLVQ"] == 0.909


def test_a_missed_figure_is_shown_in_bold() -> None:
    found = run()
    assert "not reached" not in markdown(found, WHERE)
    found[0] = replace(found[0], accuracies=[0.9] * 4)
    text = markdown(found, WHERE)
    assert "| iris | GLVQ | 0.900 | 0.900 | 0.974 | **not reached** |" in text
    assert text.count("**not reached**") == 1


def test_other_folds_are_judged_by_the_same_figures() -> None:
    found = run()
    assert ": 0 of 18 means, in bold," in markdown(found, WHERE)
    found[12] = replace(found[12], accuracies=[0.9] * 4)  # iris GLVQ of seed 1
    text = markdown(found, WHERE)
    assert ": 1 of 18 means, in bold," in text
    assert "| iris | GLVQ | 0.974 | **0.900** |  |  | 0.974 |  |  |" in text


def test_a_slow_fit_is_said_to_be_slow() -> None:
    assert "took 50 ms; wanted was every fit within seconds, taken as 5 s: reached" in markdown(
        run(), WHERE
    )
    assert "taken as 5 s: **not reached**" in markdown(run(seconds=[LIMIT + 1] * 4), WHERE)


def test_peers_are_shown_with_their_folds_steps_and_ratio() -> None:
    found = run()
    assert "Beside other libraries" not in markdown(found, WHERE)
    slow = PeerFits([88.0], [0.947], [1234], 2500, ratio=162.3)
    quick = PeerFits([0.2] * 4, [0.9] * 4, [10] * 4, 10, ratio=4.0)
    found[2] = replace(found[2], peers={"sklvq": quick, "sklearn-lvq": slow})
    found[14] = replace(found[14], peers={"sklearn-lvq": slow})  # the same of seed 1
    text = markdown(found, WHERE | {"peers": bench.pins(bench.PEERS)})
    assert "`python -m benchmarks.fits --peers`" in text
    assert "| iris | LGMLVQ | sklvq | 4 | 10 of 10 runs | 200 ms | 4.0 | 0.900 | 0.947 |" in text
    assert (
        "| iris | LGMLVQ | sklearn-lvq | 1 | 1,234 of 2,500 iterations | 88 s | 162 | 0.947 | "
        "0.947 |"
    ) in text
    assert "| iris | LGMLVQ | 0.947 | 0.947 | 0.947 | 0.947 | 0.947 |  |  |" in text
    assert "sklearn-lvq 1.1.1, numpy 1.23.5" in text


def test_the_report_says_how_busy_the_machine_was() -> None:
    assert "Load average before: 1.2;" in markdown(run(), WHERE)
    assert "Load average" not in markdown(run(), WHERE | {"load_before": None})


def test_a_run_is_written_as_json_and_text(tmp_path: Path) -> None:
    found = run()
    text = write(found, WHERE, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fits.json", "fits.md"]
    assert (tmp_path / "fits.md").read_text("utf-8") == text
    content = json.loads((tmp_path / "fits.json").read_text("utf-8"))
    assert content == json.loads(json.dumps(as_dict(found, WHERE)))
    assert {row["verdict"] for row in content["fits"]} == {"reached", ""}


def test_the_stored_text_says_what_the_stored_numbers_say() -> None:
    content = json.loads((RESULTS / "fits.json").read_text("utf-8"))
    names = {each.name for each in fields(Fits)}
    found = [Fits(**{k: v for k, v in row.items() if k in names}) for row in content["fits"]]
    for fits in found:
        fits.peers = {peer: PeerFits(**there) for peer, there in fits.peers.items()}
    where = content["environment"]
    assert (RESULTS / "fits.md").read_text("utf-8") == markdown(found, where)
    assert {fits.verdict for fits in found if fits.seed == 0} <= {"reached", ""}
