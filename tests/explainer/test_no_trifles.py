"""Least changes, steps of real columns and what is found in tables, against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

import counterlvq as clvq
from counterlvq import Feature, Features
from counterlvq.explainer.rows import RowAsker

SIDES = {"a": ("real", {"decimals": 1}), "b": ("real", {"step": 5}), "c": ("whole", {})}
LEAST = {"a": 0.5, "b": 7.0, "c": 2.0}


def allowed(name: str, x: float, steps: str) -> list[float]:
    """Every value that a feature may take within [-20, 20], by its meaning."""
    size = {"a": 0.1, "b": 5.0, "c": 1.0}[name]
    count = round(60 / size)
    start = x if steps == "of change" else 0.0
    values = (start + k * size for k in range(-count, count + 1))
    return [x, *(v for v in values if abs(v - x) >= LEAST[name] - 1e-9 and abs(v) <= 20)]


@pytest.mark.covering
@pytest.mark.parametrize("steps", ["of value", "of change"])
@pytest.mark.parametrize("cost", ["manhattan", "euclidean"])
def test_least_changes_on_grids_against_enumeration(steps: str, cost: str) -> None:
    """Inputs lie off the grid; single answers and batches are the cheapest of all values."""
    rng = np.random.default_rng(7)
    names = list(SIDES)
    features = Features(
        Feature(n, kind, steps=steps if n != "c" else "of value", lower=-20, upper=20, **more)
        for n, (kind, more) in SIDES.items()
    )
    weights = np.array([1.0, 0.2, 0.7])
    asked = clvq.Manhattan(weights) if cost == "manhattan" else clvq.Euclidean()
    for _ in range(4):
        model = clvq.PrototypeModel(
            rng.normal(0, 6, (4, 3)), ["no", "yes", "no", "yes"], feature_names=names
        )
        rows = np.column_stack(
            [rng.normal(0, 4, 5).round(2), rng.normal(0, 4, 5).round(1), rng.integers(-6, 7, 5)]
        )
        stated = [clvq.MinChange(name, by) for name, by in LEAST.items()]
        explainer = clvq.Explainer(model, asked, stated, features=features)
        batch = explainer.explain_batch(rows, target="yes")
        assert not batch.second_engine.any()
        for x, cf in zip(rows, batch, strict=True):
            kinds = {name: steps if name != "c" else "of value" for name in names}
            points = np.array(
                list(product(*(allowed(n, x[j], kinds[n]) for j, n in enumerate(names))))
            )
            moved = points - x
            costs = np.abs(moved) @ weights if cost == "manhattan" else (moved**2).sum(axis=1)
            least = costs[model.predict(points) == "yes"].min()
            assert cf.status == "optimal"
            assert cf.cost == pytest.approx(least, rel=1e-9, abs=1e-12)
            assert explainer.verify(cf) <= cf.cost * (1 + 1e-12)
            assert explainer.explain(x, target="yes").cost == pytest.approx(cf.cost, rel=1e-9)


def test_money_with_cents_has_steps() -> None:
    income = Feature("income", "real", step=50)
    assert repr(income) == "Feature('income', 'real', step=50)"
    model = clvq.PrototypeModel([[9000.0], [11000.0]], ["no", "yes"], feature_names=["income"])
    explainer = clvq.Explainer(model, features=Features([income]))
    assert explainer.explain([9683.5], target="yes").x[0] == 10050
    assert explainer.explain([10683.5], target="yes").x[0] == 10683.5
    # A column of floats that is given a step stays real; a step of 1 leaves no decimals.
    assert Features(["income"]).refined(steps={"income": 50})["income"] == income
    assert Feature("income", "real", step=1) == Feature("income", decimals=0)


def table(rows: int = 40) -> pd.DataFrame:
    k = np.arange(rows)
    return pd.DataFrame(
        {
            "cents": (1000 + 37.31 * k).round(2),
            "free": np.sqrt(k + 2.0),
            "gaps": np.where(k % 7 == 0, np.nan, k % 5),
            "days": pd.date_range("2024-01-01", periods=rows),
        }
    )


@pytest.mark.filterwarnings("ignore:.*passes over missing values")
def test_a_frame_says_decimals_whole_numbers_and_what_ten_rows_reach() -> None:
    frame = table()
    found = Features.from_frame(frame, decimals="seen")
    assert (found["cents"].decimals, found["free"].decimals) == (2, None)
    assert [found[name].kind for name in ("gaps", "days")] == ["whole", "date"]
    assert found["cents"].seen == clvq.Reference.of(frame)["cents"].seen
    assert found["cents"].seen == (frame.cents.iloc[9], frame.cents.iloc[30])
    few = Features.from_frame(frame[:12], decimals="seen")
    assert few["cents"].decimals is None
    assert few["cents"].seen == (frame.cents.min(), frame.cents[:12].max())
    plain = Features.from_frame(frame)
    assert (plain["cents"].decimals, plain["gaps"].kind) == (None, "real")
    stated = Features.from_frame(frame, kinds={"cents": "real"}, steps={"gaps": 2}, decimals="seen")
    assert (stated["cents"].decimals, stated["gaps"].lattice) == (None, (2, 1))


def test_a_table_says_what_a_trifle_is() -> None:
    # Typical deviations of 1,500 and 1.
    frame = pd.DataFrame({"income": np.arange(0.0, 6000.0, 7.5), "cards": [1, 2, 3, 4] * 200})
    assert clvq.least_changes(frame) == [clvq.MinChange("income", 100)]
    assert clvq.least_changes(frame.to_numpy(), share=0.5)[0] == clvq.MinChange(0, 500)
    with pytest.raises(clvq.InvalidInputError, match="share is -1"):
        clvq.least_changes(frame, -1)


@pytest.mark.parametrize(
    ("feature", "is_kept"),
    [
        (Feature("pay", step=50), True),
        (Feature("pay", "whole", step=50), True),
        (Feature("pay", decimals=0), True),
        (Feature("pay", "whole"), True),  # with steps below the least change
        (Feature("pay", step=50, steps="of change"), False),
        (Feature("pay", "whole", step=50, steps="of change"), False),
    ],
    ids=repr,
)
def test_values_off_their_steps_do_not_change_by_trifles(feature: Feature, is_kept: bool) -> None:
    """A step of 50 is no trifle, but from 9,999.26 to the next multiple it is."""
    reference = clvq.Reference.of(pd.DataFrame({"pay": np.arange(9000.0, 10000.0, 2.5)}))
    assert reference["pay"].unit / 10 > 20
    found = reference.least_changes(Features([feature]))
    assert found == ({"pay": 20.0} if is_kept else {})
    model = clvq.PrototypeModel([[9000.0], [11000.0 - 1]], ["no", "yes"], feature_names=["pay"])
    rules = [clvq.MinChange(name, by) for name, by in found.items()]
    explainer = clvq.Explainer(model, constraints=rules, features=Features([feature]))
    cf = explainer.explain([9999.0], target="yes")
    assert abs(cf.values[0] - 9999) >= 20
    assert cf.status == "optimal"


def test_sentences_of_a_batch_are_those_of_its_answers() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.normal(0, 3, 12).round(2), "b": rng.integers(-5, 5, 12)})
    model = clvq.PrototypeModel([[-2.0, 0], [2, 1]], ["no", "yes"], feature_names=["a", "b"])
    features = Features([Feature("a", decimals=2), Feature("b", "whole")])
    explainer = clvq.Explainer(model, constraints=["b <= 3"], features=features)
    batch = explainer.explain_batch(frame, target="yes")
    for i in range(len(batch)):
        sketch, whole = batch.sketch(i), batch[i]
        assert sketch.text() == whole.text()
        assert sketch.row.equals(whole.row)
        told, full = sketch.to_dict(), whole.to_dict()
        for how in ("reason", "found_by"):
            assert (told.pop(how, None) is None) == (full.pop(how, None) is None)
        assert told == full


def test_rows_beside_one_that_cannot_be_read_are_not_searched_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A single gap in a table must not make its listing as slow as its answers one by one."""
    frame = pd.DataFrame({"a": [-2.0, np.nan, 3.0, -1.5], "b": [0.0, 0.0, 1.0, 2.0]})
    model = clvq.PrototypeModel([[-2.0, 0], [2, 1]], ["no", "yes"], feature_names=["a", "b"])
    explainer = clvq.Explainer(model)
    batch = explainer.explain_batch(frame, target="yes", on_bad_rows="report")
    whole = [batch[i] for i in range(len(batch))]

    def refuse(*_: object) -> None:
        raise AssertionError("a row is searched again")

    monkeypatch.setattr(RowAsker, "_answer", refuse)
    found = [batch.sketch(i) for i in range(len(batch))]
    assert [cf.text() for cf in found] == [cf.text() for cf in whole]
    assert [cf.cost for cf in found] == batch.cost.tolist()
    assert found[1].status == "invalid"
    assert found[1].reason == whole[1].reason
