"""How often the user's own pipeline is asked: what it takes to be honest, and no more."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from tests.search.test_compiled_boxes import shop

RULES: list[Any] = ["if job == 'nurse' then income >= 2", "age >= original(age)"]


class Counted(NamedTuple):
    """How many rows a pipeline was asked about each time, and rows that it calls something else."""

    transformed: list[int]
    predicted: list[int]
    turned: list[pd.Series]

    def during(self, of: Any, *given: Any) -> tuple[Any, list[int], list[int]]:
        """What comes back, and the calls that it took."""
        self.transformed.clear()
        self.predicted.clear()
        found = of(*given)
        return found, self.transformed.copy(), self.predicted.copy()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Calls of the parts of any pipeline, in the scaler and in its `predict`."""
    out, transform, predict = Counted([], [], []), StandardScaler.transform, Pipeline.predict

    def counting_transform(scaler: Any, X: Any, copy: Any = None) -> Any:
        out.transformed.append(len(X))
        return transform(scaler, X, copy)

    def counting_predict(pipeline: Any, X: Any, **more: Any) -> Any:
        out.predicted.append(len(X))
        said = np.array(predict(pipeline, X, **more))
        for row in out.turned:
            here = (row == X).all(axis=1).to_numpy()
            said[here] = np.where(said[here] == "yes", "no", "yes")
        return said

    monkeypatch.setattr(StandardScaler, "transform", counting_transform)
    monkeypatch.setattr(Pipeline, "predict", counting_predict)
    return out


def asked(model: Pipeline, table: pd.DataFrame, rules: list[Any] = RULES) -> clvq.Explainer:
    price = clvq.Manhattan(clvq.mad_weights(table))
    return clvq.Explainer(model, price, rules, features=table)


def changed_rows(model: Pipeline, table: pd.DataFrame) -> pd.DataFrame:
    return table[model.predict(table) == "no"].iloc[:20]


@pytest.mark.parametrize("target", ["yes", None])
def test_one_call_hears_about_an_input_and_its_answer(counted: Counted, target: Any) -> None:
    model, table = shop()
    explainer = asked(model, table)
    for _, row in changed_rows(model, table).iterrows():
        cf, transformed, predicted = counted.during(explainer.explain, row, target)
        found = pd.DataFrame([cf.x], columns=table.columns).astype(table.dtypes)
        assert (cf.status, model.predict(found)[0]) == ("optimal", "yes")
        # Of an input that breaks a rule, what meets the rules is asked about as well.
        assert transformed == predicted == ([2, 1] if cf.broken else [2])


def test_a_table_of_one_row_is_asked_about_once_too(counted: Counted) -> None:
    model, table = shop()
    explainer = asked(model, table)
    rows = changed_rows(model, table)
    whole = explainer.explain_batch(rows, "yes")
    names = [
        "values", "cost", "lower_bound", "gap", "status", "prototype", "original_prototype",
        "second_engine", "breaks_rules", "has_target",
    ]  # fmt: skip
    for i in range(len(rows)):
        row = rows.iloc[i : i + 1]
        batch, transformed, predicted = counted.during(explainer.explain_batch, row, "yes")
        assert transformed == predicted == [2]
        for name in names:
            assert getattr(batch, name)[0].tolist() == getattr(whole, name)[i].tolist(), name


def test_an_input_without_an_answer_is_asked_about_once(counted: Counted) -> None:
    model, table = shop()
    explainer = asked(model, table, [clvq.Freeze(*table.columns)])
    row = changed_rows(model, table).iloc[:1]
    batch, transformed, predicted = counted.during(explainer.explain_batch, row, "yes")
    assert transformed == predicted == [1]
    assert batch.status.tolist() == ["infeasible"]
    assert batch[0].conflict == explainer.explain(row.iloc[0], "yes").conflict


def test_an_input_that_has_its_wish_is_asked_about_once(counted: Counted) -> None:
    model, table = shop()
    row = table[model.predict(table) == "yes"].iloc[0]
    cf, transformed, predicted = counted.during(asked(model, table, []).explain, row, "yes")
    assert transformed == predicted == [1]
    assert cf.cost == 0


def test_a_predict_that_says_otherwise_of_an_input_is_believed(counted: Counted) -> None:
    """Whatever its arithmetic says: the label of an input is that of the user's own `predict`."""
    model, table = shop()
    explainer, row = asked(model, table, []), changed_rows(model, table).iloc[0]
    counted.turned.append(row)
    cf = explainer.explain(row, "yes")
    assert (cf.original_prediction, cf.cost, str(cf.status)) == ("yes", 0.0, "optimal")
    other = explainer.explain(row)
    assert (other.original_prediction, other.prediction) == ("yes", "no")


def test_rows_of_a_table_are_asked_about_together_once_as_inputs_and_once_as_answers(
    counted: Counted,
) -> None:
    model, table = shop()
    explainer, rows = asked(model, table), changed_rows(model, table)
    batch, transformed, predicted = counted.during(explainer.explain_batch, rows, "yes")
    assert (batch.status == "optimal").all()
    assert transformed == predicted == [len(rows)] * 2
