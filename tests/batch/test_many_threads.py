"""One explainer, many threads: the answers of one thread, and nothing of the process touched."""

from __future__ import annotations

import locale
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_info

import counterlvq as clvq
from tests.support.quick import some

THREADS = 6


def _points(seed: int, n: int, d: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def _local(method: str, **how: Any) -> clvq.Explainer:
    omegas = np.random.default_rng(8).normal(size=(4, 3, 3))
    model = clvq.PrototypeModel(_points(7, 4, 3), [0, 0, 1, 2], omegas=omegas)
    return clvq.Explainer(model, method=method, **how)


def _table(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "income": rng.normal(30.0, 9.0, n),
            "job": np.resize(["clerk", "nurse", "cook"], n),
            "town": rng.choice(["A", "B", "C", "D"], n),
        }
    )


def _mixed() -> clvq.Explainer:
    table = _table(60)
    labels = np.where(table.age + 20 * (table.job == "cook") > 50, "yes", "no")
    columns = ColumnTransformer(
        [("n", StandardScaler(), ["age", "income"]), ("c", OneHotEncoder(), ["job", "town"])],
        sparse_threshold=0.0,
    )
    fitted = make_pipeline(columns, clvq.GMLVQ(random_state=0)).fit(table, labels)
    return clvq.Explainer(fitted)


def _foreign() -> clvq.Explainer:
    X = _points(1, 40, 3)
    return clvq.Explainer(NearestCentroid().fit(X, X[:, 0] > 0), clvq.Euclidean())


def _shared(cost: clvq.Cost, *constraints: Any) -> clvq.Explainer:
    model = clvq.PrototypeModel(_points(2, 8, 3), np.arange(8) % 4)
    return clvq.Explainer(model, cost, constraints)


QUESTIONS: dict[str, tuple[Callable[[], clvq.Explainer], Any, int]] = {
    "shared": (lambda: _shared(clvq.Manhattan(), "x0 <= x1 + 1"), _points(3, 40, 3), 40),
    "a cone": (
        lambda: _shared(clvq.Euclidean(), clvq.Quadratic(np.eye(3), value=2.0)),
        _points(3, 16, 3), 16,
    ),
    "foreign": (_foreign, _points(3, 40, 3), 40),
    "local": (lambda: _local("auto"), _points(4, 12, 3), 12),
    "local, cones": (
        lambda: _local("auto", cost=clvq.Mahalanobis(np.eye(3) + 0.5), gap=0.05),
        _points(4, 6, 3), 6,
    ),
    "levels": (_mixed, _table(6), 6),
}  # fmt: skip


def _told(cf: clvq.Counterfactual) -> tuple[Any, ...]:
    """Everything that is claimed, to the last bit."""
    numbers = np.array([cf.cost, cf.lower_bound, cf.gap, cf.resolution, cf.margin])
    return (
        cf.values.tobytes(), numbers.tobytes(), str(cf.status), cf.prototype, cf.prediction,
        cf.conflict, cf.reason, cf.target,
    )  # fmt: skip


def _row(rows: Any, i: int) -> Any:
    return rows.iloc[i] if hasattr(rows, "iloc") else rows[i]


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def _state() -> dict[str, Any]:
    """Whatever belongs to the whole process and an answer could be tempted to touch."""
    streams = [os.fstat(number) for number in (0, 1, 2)]
    return {
        "streams": [(file.st_dev, file.st_ino, file.st_rdev) for file in streams],
        "objects": (sys.stdin, sys.stdout, sys.stderr, sys.excepthook, threading.excepthook),
        "filters": list(warnings.filters),
        "warnings": (warnings.showwarning, warnings.warn),
        "floats": np.geterr(),
        "random": (str(np.random.get_state()), random.getstate()),  # noqa: NPY002 - not touched
        "signals": [signal.getsignal(k) for k in (signal.SIGINT, signal.SIGTERM)],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "words": locale.setlocale(locale.LC_ALL),
        "recursion": sys.getrecursionlimit(),
        "blas": [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()],
    }


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("most", some([4, THREADS, 40], quick=1))
def test_threads_get_the_answers_of_one_thread(kind: str, most: int, hurried: None) -> None:
    make, rows, count = QUESTIONS[kind]
    count = min(count, most)
    alone = make()
    expected = [_told(alone.explain(_row(rows, i))) for i in range(count)]
    shared, wrong, before = make(), list[Any](), _state()

    def work(start: int) -> None:
        for k in range(count):
            i = (k + start) % count
            try:
                if _told(shared.explain(_row(rows, i))) != expected[i]:
                    wrong.append((i, "another answer"))
            except Exception as error:  # noqa: BLE001 - a thread cannot raise to the test
                wrong.append((i, error))

    places = range(0, count, max(1, count // THREADS))
    threads = [threading.Thread(target=work, args=(start,)) for start in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert _state() == before


def test_standard_error_is_everybodys_while_threads_explain(
    hurried: None, capfd: pytest.CaptureFixture[str]
) -> None:
    """No line of another thread is lost, at any moment."""
    explainer, X = _local("auto"), _points(4, 5, 3)
    explainer.explain(X[0])
    done, written = threading.Event(), [0]

    def write() -> None:
        while not done.is_set():
            os.write(2, b"line\n")
            written[0] += 1
            time.sleep(1e-4)

    writer = threading.Thread(target=write)
    threads = [threading.Thread(target=lambda: [explainer.explain(x) for x in X]) for _ in range(4)]
    writer.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    writer.join()
    assert written[0] > 10
    assert capfd.readouterr().err.count("line\n") == written[0]


def test_many_views_in_many_threads(hurried: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept prepared is dropped again while others use it."""
    monkeypatch.setattr("counterlvq.explainer.asked._MOST_VIEWS", 2)
    monkeypatch.setattr("counterlvq.search.strategies._MOST_PREPARED", 1)
    explainer, table = _mixed(), _table(24)
    shared = _shared(clvq.Manhattan())
    wrong = list[BaseException]()

    def work() -> None:
        try:
            for i in range(24):
                explainer.prepared_for(explainer._source.read_one(table.iloc[i]).values[0])
                shared.explain(_points(9, 1, 3)[0], target=i % 4)
        except BaseException as error:  # noqa: BLE001 - a thread cannot raise to the test
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def _in_threads(work: Callable[[], object], count: int = 4) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_training_in_threads_leaves_the_limits_of_blas_as_they_were(hurried: None) -> None:
    X = _points(6, 40, 2)
    before = _state()["blas"]
    _in_threads(lambda: [clvq.GLVQ().fit(X, X[:, 0] > 0) for _ in range(3)])
    assert _state()["blas"] == before


def test_reading_pipelines_in_threads_leaves_the_filters_as_they_were(hurried: None) -> None:
    table = _table(60)[["age", "income"]]
    fitted = make_pipeline(StandardScaler(), clvq.GLVQ()).fit(table, table.age > 50)
    before = _state()["filters"]
    _in_threads(lambda: [clvq.Explainer(fitted) for _ in range(5)])
    assert _state()["filters"] == before
