"""One row that is answered at once is answered as by the search that looks at everything."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from counterlvq.certificates.cellwise import CellCertificate
from counterlvq.lvq import GLVQ

X, Y = load_iris(return_X_y=True)
ROWS = X[::10]
RULES = ["x2 <= original(x2) + 1", clvq.Bounds("x1", lower=1.0)]
COSTS = {
    "L1": clvq.Manhattan([1.0, 2.0, 0.5, 1.0]),
    "L2": clvq.Euclidean(),
    "M": clvq.Mahalanobis(np.eye(4) + 0.25),
}


def model_of(kind: str) -> Any:
    if kind == "bare":
        return clvq.PrototypeModel(X[::25], Y[::25], [[1.0, 0.5, 0.0, 0.2], [0.0, 1.0, 2.0, 0.1]])
    if kind == "estimator":
        return KNeighborsClassifier(1).fit(X[::5], Y[::5])
    return make_pipeline(StandardScaler(), GLVQ(random_state=0, max_iter=30)).fit(X, Y)


def bits(cf: clvq.Counterfactual) -> tuple[Any, ...]:
    numbers = np.array([cf.cost, cf.lower_bound, cf.gap, cf.resolution])
    proofs = [
        (part.prototype, part.rivals.tolist(), part.rival_prices.tobytes(), part.point.tobytes())
        for part in cf.certificate.proofs
    ]
    return (
        cf.values.tobytes(), numbers.tobytes(), cf.status, cf.prediction, cf.original_prediction,
        cf.target, cf.prototype, cf.reason, cf.broken, proofs,
    )  # fmt: skip


@pytest.mark.covering
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("kind", ["bare", "estimator", "pipeline"])
@pytest.mark.parametrize("rules", [[], RULES], ids=["free", "rules"])
def test_the_same_to_the_last_bit(kind: str, cost: str, rules: list[Any]) -> None:
    explainer = clvq.Explainer(model_of(kind), COSTS[cost], constraints=rules)
    at_once = 0
    nearest = explainer.explain_batch(ROWS).original_prototype
    for i, row in enumerate(ROWS):
        target = None if i % 4 == 3 else i % 3
        single = explainer.explain(row, target)
        assert bits(single) == bits(explainer._answer(row, target))
        alone = explainer.explain_batch(row[None, :], [target])
        assert alone.values[0].tobytes() == single.values.tobytes()
        assert alone.lower_bound[0] == single.lower_bound
        assert alone.status[0] == single.status
        assert alone.prediction[0] == single.prediction or not single.status.has_answer
        assert alone.original_prototype[0] == nearest[i]
        assert bits(alone[0]) == bits(single)
        assert explainer.verify(single) == single.lower_bound
        found = explainer.answered_at_once(row, target)
        at_once += found is not None
        assert found is None or found.answer.cost > 0
    assert at_once > len(ROWS) // 3  # the others have their wish, or break a rule


def test_certificates_are_made_when_they_are_asked_for() -> None:
    explainer = clvq.Explainer(model_of("bare"))
    cf = explainer.explain(ROWS[0], 1)
    assert "certificate" not in vars(cf)
    made = cf.certificate
    assert isinstance(made, CellCertificate)
    assert cf.certificate is made
    # A certificate that somebody puts in its place stays there.
    forged = replace(explainer.explain(ROWS[0], 1), certificate=CellCertificate(()))
    assert forged.certificate.proofs == ()
    assert explainer.verify(forged) == 0.0
    again = pickle.loads(pickle.dumps(explainer.explain(ROWS[0], 1)))
    assert bits(again) == bits(cf)
    with pytest.raises(AttributeError, match="has no attribute 'cerificate'"):
        _ = cf.cerificate  # type: ignore[attr-defined]


def test_what_a_kernel_has_left_is_not_overwritten_by_the_next_row() -> None:
    explainer = clvq.Explainer(model_of("bare"))
    kept = [explainer.explain(row, 1) for row in ROWS]
    assert [bits(cf) for cf in kept] == [bits(explainer._answer(row, 1)) for row in ROWS]


def test_predict_is_asked_once_about_input_and_answer() -> None:
    pipeline = model_of("pipeline")
    explainer = clvq.Explainer(pipeline)
    asked, own = [], pipeline.predict
    pipeline.predict = lambda table: asked.append(np.array(table)) or own(table)
    cf = explainer.explain(ROWS[0], 1)
    assert len(asked) == 1
    assert np.array_equal(asked[0], [ROWS[0], cf.values])


def test_predict_has_the_last_word() -> None:
    pipeline = model_of("pipeline")
    explainer = clvq.Explainer(pipeline)
    pipeline.predict = lambda table: np.zeros(len(table), dtype=int)
    cf = explainer.explain(ROWS[0], 1)
    assert cf.status == "unknown"
    assert cf.prediction is None


def test_threads_may_share_an_explainer() -> None:
    explainer = clvq.Explainer(model_of("bare"), clvq.Euclidean())
    questions = [(row, t) for row in ROWS for t in (0, 1, 2)] * 4
    alone = [bits(explainer.explain(*question)) for question in questions]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda q: bits(explainer.explain(*q)), questions)) == alone


def test_other_questions_are_looked_into() -> None:
    model, row = model_of("bare"), ROWS[0]
    for settings in ({"margin": 0.5}, {"time_limit": 60.0}, {"confidence": clvq.Noise(0.01)}):
        assert clvq.Explainer(model, clvq.Euclidean(), **settings).answered_at_once(row, 1) is None
    plain = clvq.Explainer(model)
    assert plain.answered_at_once(row, [1, 2]) is None
    assert plain.answered_at_once(row, int(model.predict([row])[0])) is None
    with pytest.raises(clvq.UnknownLabelError, match="expected one of"):
        plain.explain(row, "nobody")


def test_an_explainer_that_has_answered_goes_to_other_processes() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"])
    explainer = clvq.Explainer(model)
    before = explainer.explain([1.0, 0.0])
    other = pickle.loads(pickle.dumps(explainer))
    after = other.explain([1.0, 0.0])
    assert after.values.tobytes() == before.values.tobytes()
    assert (after.cost, after.lower_bound) == (before.cost, before.lower_bound)
    assert other.verify(after) == after.lower_bound


def test_what_batches_of_one_row_share_cannot_be_written_to() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"])
    batch = clvq.Explainer(model).explain_batch([[1.0, 0.0]])
    for name in ("status", "rows", "has_target", "breaks_rules", "second_engine"):
        shared = getattr(batch, name)
        assert not shared.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            shared.setflags(write=True)
