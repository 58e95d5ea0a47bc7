"""Probe rows: a disagreement is refused, a tie within rounding is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid

import counterlvq as clvq
from counterlvq.adapters import as_prototype_model
from tests.support.fakes import fake, files, fitted, stored, torch_model

W = np.array([[0.0, 0.0], [4.0, 0.0]])


def answering(labels: Any, **attributes: Any) -> Any:
    """Return a model that answers with fixed labels, whatever it is asked."""
    given = {"w_": W, "c_w_": np.array(["no", "yes"])} | attributes
    return fake("sklearn_lvq.glvq", "GlvqModel", predict=lambda rows: np.array(labels), **given)


@pytest.mark.parametrize("name", files())
def test_recorded_predictions_are_accepted(name: str) -> None:
    arrays = stored(name)
    foreign = fitted(name)
    foreign.predict = lambda rows: arrays["predict_test"]
    as_prototype_model(foreign, probe=arrays["X_test"])


@pytest.mark.parametrize("name", files())
def test_a_single_other_label_is_refused(name: str) -> None:
    arrays = stored(name)
    foreign = fitted(name)
    told = arrays["predict_test"].copy()
    told[5] = next(label for label in arrays["classes_"] if label != told[5])
    foreign.predict = lambda rows: told
    with pytest.raises(clvq.NotSupportedError, match=rf"on 1 of {len(told)} probe row\(s\), first"):
        as_prototype_model(foreign, probe=arrays["X_test"])


def test_the_disagreement_is_described() -> None:
    foreign = answering(["no", "no", "yes", "no", "yes"])
    rows = [[0.0, 0.0], [1.0, 0.0], [4.0, 1.0], [3.0, 0.0], [1.0, 1.0]]
    with pytest.raises(clvq.NotSupportedError) as raised:
        as_prototype_model(foreign, probe=rows)
    assert str(raised.value) == (
        "GlvqModel of sklearn-lvq and the prototypes read from it disagree on 2 of 5 probe row(s), "
        "first on row 3: it predicts 'no', its nearest prototype says 'yes'. So its rule is not "
        "the one that its attributes describe. If you know the rule, build a PrototypeModel "
        "yourself."
    )


@pytest.mark.parametrize("x", [2.0, np.nextafter(2.0, 3.0), np.nextafter(2.0, 1.0)])
@pytest.mark.parametrize("label", ["no", "yes"])
def test_ties_within_rounding_are_accepted(x: float, label: str) -> None:
    as_prototype_model(answering([label]), probe=[[x, 0.0]])


@pytest.mark.parametrize("x", [2.0 + 1e-12, 2.0 - 1e-12])
def test_a_lead_beyond_rounding_counts(x: float) -> None:
    wrong = "no" if x > 2 else "yes"
    with pytest.raises(clvq.NotSupportedError, match="disagree on 1 of 1"):
        as_prototype_model(answering([wrong]), probe=[[x, 0.0]])


def test_far_from_the_origin_rounding_is_larger() -> None:
    far = answering(["no"], w_=W + 1e6)
    as_prototype_model(far, probe=[[1e6 + 2 + 1e-9, 1e6]])
    with pytest.raises(clvq.NotSupportedError, match="disagree on 1 of 1"):
        as_prototype_model(far, probe=[[1e6 + 2.1, 1e6]])


def test_metrics_are_part_of_the_judgement() -> None:
    def matrix(omegas: Any) -> Any:
        return fake(
            "sklearn_lvq.lgmlvq",
            "LgmlvqModel",
            w_=W,
            c_w_=np.array(["no", "yes"]),
            omegas_=omegas,
            predict=lambda rows: np.array(["yes"]),
        )

    one, three = np.eye(2), 3 * np.eye(2)
    as_prototype_model(matrix([three, one]), probe=[[1.0, 0.0]])  # 9 and 9: a tie
    with pytest.raises(clvq.NotSupportedError, match="it predicts 'yes', its nearest prototype"):
        as_prototype_model(matrix([one, three]), probe=[[1.0, 0.0]])


def test_single_precision_gets_its_own_rounding() -> None:
    def tensors(x: float) -> None:
        model = torch_model("GLVQ", W, [0, 1])
        model.predict = lambda rows: model.prototype_labels.new_tensor([0.0])
        as_prototype_model(model, probe=[[x, 0.0]])

    tensors(2.0 + 1e-8)
    with pytest.raises(clvq.NotSupportedError, match="disagree"):
        tensors(2.0 + 1e-3)


@pytest.mark.parametrize("dtype", ["U7", object])
def test_text_that_comes_back_cut_is_asked_for_again(dtype: Any) -> None:
    labels = np.array(["no", "perhaps"], dtype=dtype)

    def predict(rows: np.ndarray) -> np.ndarray:
        found = labels[((np.asarray(rows)[:, None] - W) ** 2).sum(axis=2).argmin(axis=1)]
        return found.astype(f"U{len(found[0])}")  # as the RSLVQ family does

    assert predict(W).tolist() == ["no", "pe"]
    foreign = fake("sklearn_lvq.rslvq", "RslvqModel", w_=W, c_w_=labels, predict=predict)
    as_prototype_model(foreign, probe=W)
    as_prototype_model(foreign, probe=W.tolist())


def test_a_label_that_no_prototype_has_is_a_disagreement() -> None:
    with pytest.raises(clvq.NotSupportedError, match="it predicts 'maybe'"):
        as_prototype_model(answering(["maybe"]), probe=[[2.0, 0.0]])


def test_a_predict_that_fails_is_reported() -> None:
    def predict(rows: Any) -> Any:
        raise AttributeError("module 'numpy' has no attribute 'int'\nand more about it")

    foreign = answering([])
    foreign.predict = predict
    with pytest.raises(clvq.InvalidInputError) as raised:
        as_prototype_model(foreign, probe=[[2.0, 0.0]])
    assert str(raised.value) == (
        "GlvqModel of sklearn-lvq could not predict the probe rows (AttributeError: module 'numpy' "
        "has no attribute 'int'); leave `probe` out, or export the model from an environment in "
        "which it works (see `load_exported`)."
    )


def test_the_wrong_number_of_labels_is_reported() -> None:
    with pytest.raises(clvq.InvalidInputError, match=r"predicted 2 label\(s\) for 1 probe row"):
        as_prototype_model(answering(["no", "no"]), probe=[[1.0, 0.0]])


@pytest.mark.parametrize(
    ("probe", "text"),
    [
        ([[1.0]], "probe has 1 columns; expected 2"),
        ([[1.0, float("nan")]], r"probe\[0, 1\] is nan"),
        ([], "probe has 1 dimension"),
    ],
)
def test_probe_rows_are_checked(probe: Any, text: str) -> None:
    with pytest.raises(clvq.InvalidInputError, match=text):
        as_prototype_model(answering(["no"]), probe=probe)


@pytest.mark.parametrize("kind", [clvq.GLVQ, NearestCentroid])
def test_rows_get_the_names_that_the_model_was_fitted_with(kind: Any) -> None:
    frames = pytest.importorskip("pandas")
    table = frames.DataFrame([[0.0, 1.0], [1.0, 0.0], [4.0, 5.0], [5.0, 4.0]], columns=["a", "b"])
    named = kind().fit(table, ["no", "no", "yes", "yes"])
    for probe in (table, table.to_numpy(), table.to_numpy().tolist()):
        # Without names scikit-learn warns, and warnings are errors here.
        assert as_prototype_model(named, probe=probe).features.names == ("a", "b")
    with pytest.raises(clvq.InvalidInputError, match="feature names should match"):
        as_prototype_model(named, probe=table[["b", "a"]])


@pytest.mark.parametrize("lead", [0.01, 1000.0])
def test_what_scores_share_is_rounded_with_them(lead: float) -> None:
    # Scores near 1e15 are multiples of 0.125: a lead of 0.01 is none for `predict`.
    fitted = LogisticRegression()
    fitted.classes_ = np.array(["a", "b", "c"])
    fitted.coef_ = np.array([[1e15, 0.0], [1e15, 1.0], [1e15, -1.0]])
    fitted.intercept_ = np.zeros(3)
    fitted.predict = lambda rows: np.array(["a"])
    row = [[1.0, lead]]
    if lead < 1:
        as_prototype_model(fitted, probe=row)
        return
    with pytest.raises(clvq.NotSupportedError, match="disagree on 1 of 1"):
        as_prototype_model(fitted, probe=row)
