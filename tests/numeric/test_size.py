"""Many features: memory that grows with their number, or words before it is asked for."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from counterlvq.numeric import memory
from tests.support.quick import some


def _wide(d: int, cost: clvq.Cost, rules: list[Any]) -> tuple[clvq.Counterfactual, float]:
    """Ask a plain model with two prototypes; the answer and its cost by hand."""
    rng = np.random.default_rng(d)
    W = rng.normal(size=(2, d))
    x = W[0] + 0.1 * rng.normal(size=d)
    normal = 2.0 * (W[1] - W[0])  # nearer to the second: normal @ y >= right
    behind = float(W[1] @ W[1] - W[0] @ W[0] - normal @ x)
    if rules:
        normal[:10] = 0.0  # these are frozen
    by_hand = behind / float(np.abs(normal).max())
    if isinstance(cost, clvq.Euclidean):
        by_hand = behind**2 / float(normal @ normal)
    explainer = clvq.Explainer(clvq.PrototypeModel(W, [0, 1]), cost, rules)
    return explainer.explain(x), by_hand


@pytest.mark.parametrize("cost", some([clvq.Euclidean(), clvq.Manhattan()], quick=1), ids=repr)
@pytest.mark.parametrize(
    "rules", some([[], [clvq.Freeze(*range(10))]], quick=1), ids=["free", "frozen"]
)
def test_memory_grows_with_the_number_of_features(cost: clvq.Cost, rules: list[Any]) -> None:
    _wide(5000, cost, rules)  # imports and compiles
    most = []
    for d in (5000, 15_000):
        tracemalloc.start()
        cf, by_hand = _wide(d, cost, rules)
        most.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert cf.status.has_answer
        assert cf.cost == pytest.approx(by_hand, rel=1e-4)
        assert cf.lower_bound <= by_hand * (1 + 1e-9)
        assert cf.lower_bound == pytest.approx(by_hand, rel=1e-5)
    assert most[1] < 5 * most[0]  # nine times as much for a matrix
    assert most[1] < 15_000 * 8 * 500


def test_wide_batch_is_answered_like_its_rows() -> None:
    rng = np.random.default_rng(0)
    model = clvq.PrototypeModel(rng.normal(size=(4, 5000)), [0, 0, 1, 1])
    X = rng.normal(size=(3, 5000))
    explainer = clvq.Explainer(model, clvq.Euclidean())
    batch = explainer.explain_batch(X, n_jobs=2)
    for i, x in enumerate(X):
        alone = explainer.explain(x)
        assert alone.cost == batch.cost[i]
        assert np.array_equal(alone.values, batch.values[i])
        assert explainer.verify(alone) == alone.lower_bound


# --- what is too large --------------------------------------------------------------------------

D = 40
POINTS = np.random.default_rng(1).normal(size=(20, D))
SIDES = POINTS[:, 0] > 0


def _local() -> Any:
    omegas = np.random.default_rng(2).normal(size=(2, D, D))
    return clvq.PrototypeModel(POINTS[:2], [0, 1], omegas=omegas)


def _bounded() -> None:
    model = clvq.PrototypeModel(POINTS, SIDES)
    clvq.Explainer(model, constraints=[clvq.Increase(*range(D))])


TOO_LARGE: dict[str, Callable[[], object]] = {
    "bounds on all": _bounded,
    "a pipeline that leaves out columns": lambda: clvq.Explainer(
        make_pipeline(SelectKBest(k=D - 1), clvq.GLVQ()).fit(POINTS, SIDES)
    ),
    "a described column of levels": lambda: clvq.Explainer(
        clvq.PrototypeModel(POINTS, SIDES),
        features=clvq.Features([clvq.Feature("x0", levels=[0.0, 1.0])]),
    ),
    "a matrix behind a scaler": lambda: clvq.Explainer(
        make_pipeline(StandardScaler(), clvq.GMLVQ(random_state=0)).fit(POINTS, SIDES)
    ),
    "local metrics": lambda: clvq.Explainer(_local(), method="ccp").explain(POINTS[3]),
}


@pytest.mark.parametrize("kind", TOO_LARGE)
def test_too_large_a_question_is_refused_before_it_is_tried(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine with hardly any memory; the same questions pass where there is some."""
    TOO_LARGE[kind]()
    monkeypatch.setattr(memory, "_SMALL", 0)
    monkeypatch.setattr(memory, "free_memory", lambda: 8 * D * D // 2)
    with pytest.raises(clvq.TooLargeError) as caught:
        TOO_LARGE[kind]()
    told = str(caught.value)
    assert re.search(r"needs about [\d,.]+ [MG]B of memory, and [\d,.]+ [MG]B are free; \w+", told)
    assert isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, clvq.CounterlvqError)


def test_proof_over_too_many_features_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number for each pair of pairs of 40 features is 20 MB, several times."""
    monkeypatch.setattr(memory, "_SMALL", 0)
    monkeypatch.setattr(memory, "free_memory", lambda: 10_000_000)
    with pytest.raises(clvq.TooLargeError, match=r'a proof over 40 features .* method="ccp"'):
        clvq.Explainer(_local(), method="global").explain(POINTS[3])


def test_memory_that_runs_out_all_the_same_is_told_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explainer = clvq.Explainer(clvq.PrototypeModel(POINTS, SIDES))

    def refuse(*given: object, **named: object) -> None:
        raise MemoryError("Unable to allocate 9 GiB")

    for way in ("_answer", "answered_at_once"):
        monkeypatch.setattr(clvq.Explainer, way, refuse)
        with pytest.raises(clvq.TooLargeError, match="a row was explained: Unable to allocate 9"):
            clvq.Explainer(explainer.model, margin=0.1 if way == "_answer" else None).explain(
                POINTS[0]
            )
        monkeypatch.undo()
    monkeypatch.setattr(clvq.PrototypeModel, "nearest_of_checked", refuse)
    with pytest.raises(clvq.TooLargeError, match="a batch was explained"):
        explainer.explain_batch(POINTS)


def test_free_memory_is_known_or_not_claimed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    free = memory.free_memory()
    assert free is None or free > 0
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "nothing")
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    monkeypatch.setattr(memory, "_of_process", lambda: None)
    assert memory.free_memory() is None
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("10\n")
    assert memory.free_memory() is None
    (tmp_path / "memory.max").write_text("100\n")
    assert memory.free_memory() == 90
    memory.refuse_too_large("a small question", 1e6, "do nothing")
    with pytest.raises(
        clvq.TooLargeError, match=r"^it needs about 75\.0 GB .* 0 MB are free; go\.$"
    ):
        memory.refuse_too_large("it", 75e9, "go")
