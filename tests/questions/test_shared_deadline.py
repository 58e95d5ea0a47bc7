"""A time limit is one for all searches of an answer, however many it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.search.deadline import Deadline

AMPLE = 600.0


def drawn(seed: int, prototypes: int = 6, width: int = 3, *, local: bool = False) -> Any:
    rng = np.random.default_rng(seed)
    W = 2.0 * rng.normal(size=(prototypes, width))
    omegas = [np.eye(width) + 0.3 * rng.normal(size=(width, width)) for _ in W] if local else None
    return clvq.PrototypeModel(W, np.arange(prototypes) % 2, omegas)


def plausible(model: Any) -> clvq.Plausible:
    X = np.random.default_rng(1).normal(size=(80, model.n_features))
    return clvq.Plausible.fit(X, model=model)


TIGHT = [clvq.MaxChange(j, 0.05) for j in range(3)]
BOUNDS = [clvq.Bounds(j, -3.0, 3.0) for j in range(3)]
ASKED: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "few changes": lambda: (drawn(0), {"constraints": [clvq.AtMost(1)]}),
    "few changes, no answer": lambda: (
        drawn(0, local=True), {"constraints": [clvq.AtMost(1), clvq.MinChange(0, 0.01), *TIGHT]},
    ),
    "similarity": lambda: (drawn(0), {"confidence": clvq.RelativeSimilarity(0.5)}),
    "similarity, local": lambda: (
        drawn(0, local=True), {"confidence": clvq.RelativeSimilarity(0.3), "constraints": BOUNDS},
    ),
    "similarity, no answer": lambda: (
        drawn(0), {"confidence": clvq.RelativeSimilarity(0.5), "constraints": TIGHT},
    ),
    "drift of few": lambda: (
        drawn(0), {"confidence": clvq.Drift(0.1), "constraints": [clvq.AtMost(2)]},
    ),
    "noise": lambda: (drawn(0), {"confidence": clvq.Noise(0.1)}),
    "plausible": lambda: (drawn(0), {"constraints": [plausible(drawn(0))]}),
    "plausible few": lambda: (drawn(0), {"constraints": [plausible(drawn(0)), clvq.AtMost(2)]}),
    "plausible, no answer": lambda: (drawn(0), {"constraints": [plausible(drawn(0)), *TIGHT]}),
    "broken rules": lambda: (drawn(0), {"constraints": [clvq.AtMost(2), "x0 >= 5"]}),
}  # fmt: skip


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the time is over of all clocks that are started."""
    ends: list[float] = []
    honest = Deadline.after.__func__  # type: ignore[attr-defined]

    def after(cls: type[Deadline], limit: float | None) -> Deadline:
        found: Deadline = honest(cls, limit)
        ends.append(found.ends)
        return found

    monkeypatch.setattr(Deadline, "after", classmethod(after))
    return ends


@pytest.mark.parametrize("name", ASKED)
def test_all_searches_of_an_answer_share_one_deadline(name: str, clocks: list[float]) -> None:
    """A clock that is started later, for all of the limit, would end later."""
    model, asked = ASKED[name]()
    explainer = clvq.Explainer(model, **asked, time_limit=AMPLE)
    x = np.array([0.3, -0.2, 0.1])
    cf = explainer.explain(x, target=1 - int(model.predict(x[None])[0]))
    assert cf.status in ("optimal", "feasible", "infeasible")
    assert clocks
    assert max(clocks) == clocks[0]


@pytest.mark.parametrize("local", [False, True])
def test_all_questions_of_a_reason_share_one_deadline(local: bool, clocks: list[float]) -> None:
    model = drawn(3, local=local)
    explainer = clvq.Explainer(model, constraints=BOUNDS, time_limit=AMPLE)
    why = explainer.reasons([0.3, -0.2, 0.1])
    assert why.status == "optimal"
    assert max(clocks) == clocks[0]


def test_cells_are_not_asked_about_once_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of hundreds of prototypes a question each took many times the limit."""
    model = drawn(2, prototypes=80)
    explainer = clvq.Explainer(model, confidence=clvq.RelativeSimilarity(0.4), time_limit=0.0)
    honest, asked = type(explainer).answered, []

    def answered(self: Any, *given: Any, **more: Any) -> Any:
        asked.append(given)
        return honest(self, *given, **more)

    monkeypatch.setattr(type(explainer), "answered", answered)
    x = np.array([0.3, -0.2, 0.1])
    cf = explainer.explain(x, target=1 - int(model.predict(x[None])[0]))
    assert len(asked) <= 2
    assert cf.lower_bound == 0.0
    assert explainer.verify(cf) == 0.0


def test_cells_that_were_not_asked_about_bound_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time that is over after some cells leaves an answer, if there is one, and no false bound."""
    model, x = drawn(2, prototypes=20), np.array([0.3, -0.2, 0.1])
    target = 1 - int(model.predict(x[None])[0])
    rule = clvq.RelativeSimilarity(0.4)
    free = clvq.Explainer(model, confidence=rule).explain(x, target)
    assert free.status == "optimal"
    limited = clvq.Explainer(model, confidence=rule, time_limit=AMPLE)
    for looks in range(0, 120, 7):
        left = iter(range(looks))
        over: Callable[[Any], bool] = lambda _, left=left: next(left, None) is None  # noqa: E731
        with monkeypatch.context() as patched:
            patched.setattr(Deadline, "is_over", over)
            patched.setattr(Deadline, "is_long_over", over)
            cf = limited.explain(x, target)
        assert cf.lower_bound <= free.cost * (1.0 + 1e-9)
        assert cf.cost >= free.lower_bound * (1.0 - 1e-9)
        assert limited.verify(cf) <= free.cost * (1.0 + 1e-9)


def test_reason_whose_proof_takes_too_long_is_one_of_all_features(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was shown of a few features may take too long to prove again: that all settle it is."""
    explainer = clvq.Explainer(drawn(3), constraints=BOUNDS, time_limit=AMPLE)
    x = [0.3, -0.2, 0.1]
    few = explainer.reasons(x)
    assert len(few.features) < 3
    honest = type(explainer).answered

    def answered(self: Any, *given: Any, **more: Any) -> Any:
        held = sum(isinstance(item, clvq.Freeze) for item in self.constraints)
        asked = self.asking_for(time_limit=0.0) if held < 3 else self
        late = {"terms": more["terms"]._replace(deadline=Deadline.after(0.0))} if held < 3 else more
        return honest(asked, *given, **late)

    monkeypatch.setattr(type(explainer), "answered", answered)
    why = explainer.reasons(x)
    assert why.status == "feasible"
    assert set(why.features) == set(explainer.features.names)
    assert why.proof is not None
    assert why.asked.verify(why.proof) == np.inf
    assert "fewer of these may do" in why.text()
