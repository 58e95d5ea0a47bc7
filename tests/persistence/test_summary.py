"""Summaries and words in model files: kept as they are, and believed in nothing."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "pay": RNG.lognormal(7, 1, 60),
        "job": RNG.choice(["clerk", "nurse"], 60),
        "term": RNG.choice([12, 24], 60),
    }
)
STEPS = make_column_transformer((StandardScaler(), ["pay"]), (OneHotEncoder(), ["job", "term"]))
PIPELINE = make_pipeline(STEPS, NearestCentroid()).fit(
    TABLE, np.where(TABLE["pay"] > 1100, "yes", "no")
)
FEATURES = clvq.Features(
    [
        clvq.Feature("pay", unit="EUR", label="net pay", change="increase", lower=0),
        clvq.Feature("job", levels=["nurse", "clerk"], level_labels={"clerk": "a clerk"}),
        clvq.Feature("term", levels=[12, 24], price={(12, 24): 2.5}),
    ]
)


def saved(model: Any = PIPELINE, **said: Any) -> bytes:
    file = io.BytesIO()
    clvq.save(model, file, **said)
    return file.getvalue()


WHOLE = saved(features=FEATURES, reference=TABLE)


def document(whole: bytes) -> dict[str, Any]:
    header = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])
    return json.loads(header["__metadata__"]["counterlvq"])


def changed(whole: bytes, change: Any) -> bytes:
    """The same file with another document."""
    size = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + size])
    told = json.loads(header["__metadata__"]["counterlvq"])
    change(told)
    header["__metadata__"]["counterlvq"] = json.dumps(told)
    packed = json.dumps(header).encode()
    packed += b" " * (-len(packed) % 8)
    return len(packed).to_bytes(8, "little") + packed + whole[8 + size :]


def test_all_of_it_comes_back() -> None:
    loaded = clvq.load(io.BytesIO(WHOLE))
    assert loaded.features == FEATURES
    assert loaded.reference == clvq.Reference.of(TABLE, FEATURES)
    assert saved(loaded) == WHOLE  # a summary that a model has is kept
    bare = clvq.PrototypeModel([[0.0], [1.0]], ["no", "yes"])
    rows = np.arange(40.0)[:, None]
    for reference in (rows, pd.DataFrame(rows, columns=["pay"])):
        again = clvq.load(io.BytesIO(saved(bare, reference=reference)))
        assert again.reference["x0"].seen == (9.0, 30.0)


def test_no_row_and_no_extreme_is_in_the_file() -> None:
    numbers = json.dumps(document(WHOLE)["reference"])
    ordered = sorted(TABLE["pay"])
    for value in (*ordered[:9], *ordered[-9:]):
        assert repr(float(value)) not in numbers
    kept = document(WHOLE)["reference"][0]["quantiles"]
    assert (kept[0], kept[-1]) == (ordered[9], ordered[-10])


def test_versions_are_as_low_as_can_be() -> None:
    assert document(saved())["version"] == 1
    assert document(saved(reference=TABLE))["version"] == 3
    assert document(saved(features=clvq.Features.from_frame(TABLE[["pay"]])))["version"] == 1
    assert document(saved(features=clvq.Features([clvq.Feature("pay", label="x")])))["version"] == 3


def put(*path: Any, value: Any) -> Any:
    def change(told: dict[str, Any]) -> None:
        at: Any = told
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    return change


PAY, JOB = ("reference", 0), ("reference", 1)
FIRST, SECOND, THIRD = (("table", "features", k) for k in range(3))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("version", value=2), "the document holds 'reference'"),
        (put("reference", value={}), "reference is an object; expected a list"),
        (put(*PAY, "name", value="pai"), "'pai', which is no column of the model"),
        (put(*JOB, "name", value="pay"), "one column twice"),
        (lambda told: told["reference"].extend(told["reference"]), "is about 6 columns; expected"),
        (put(*PAY, "kind", value="money"), "'money', which is no kind"),
        (put(*PAY, "count", value=-1), "count is no number of rows"),
        (put(*PAY, "count", value=1 << 70), "count is no number of rows"),
        (put(*PAY, "mad", value=-1.0), "negative deviation"),
        (put(*PAY, "mad", value=None), "mad is null; expected a number"),
        (put(*PAY, "quantiles", value=[1.0]), "has 1 entries; expected 11"),
        (put(*PAY, "quantiles", value=[float(-k) for k in range(11)]), "numbers that rise"),
        (put(*PAY, "rows", value=[]), "holds 'rows'"),
        (put(*JOB, "shares", value=[1.0]), "has 1 entries for 2 levels"),
        (put(*JOB, "shares", value=[2.0, -1.0]), "one from 0 to 1"),
        (put(*FIRST, "label", value=3), "label is a whole number; expected text"),
        (put(*FIRST, "change", value="up"), "change='up'"),
        (put(*FIRST, "level_labels", value=[]), "has 0 entries; expected"),
        (put(*SECOND, "level_labels", value=["a"]), "has 1 entries; expected 2"),
        (put(*THIRD, "prices", 0, "after", value=2), "after is no position of a level"),
        (put(*THIRD, "prices", 0, "price", value=-2.0), "expected a positive number"),
        (put(*THIRD, "price", value=True), "price is true or false; expected a number"),
        (put("table", "imputed", value=[{"column": "pai", "value": 1.0}]), "'pai', which is no"),
        (put("table", "imputed", value=[{"column": "pay", "value": 1.0}] * 2), "or twice"),
        (put("table", "imputed", value=[{"column": "pay", "value": "much"}]), "does not take"),
        (put("table", "imputed", value=[{"column": "pay", "value": 10**400}]), "does not take"),
        (put("table", "imputed", value=[{"column": "job", "value": "king"}]), "does not take"),
        (put("table", "imputed", value=[{"column": "pay"}]), "lacks 'value'"),
    ],
)
def test_documents_that_do_not_fit_are_refused(change: Any, words: str) -> None:
    with pytest.raises(clvq.ModelFileError, match=words):
        clvq.load(io.BytesIO(changed(WHOLE, change)))
    assert clvq.load(io.BytesIO(changed(WHOLE, lambda told: None))).features == FEATURES


def test_older_versions_know_no_words() -> None:
    def older(told: dict[str, Any]) -> None:
        told["version"] = 1
        del told["reference"]

    with pytest.raises(clvq.ModelFileError, match="holds 'change', 'label'"):
        clvq.load(io.BytesIO(changed(WHOLE, older)))


def test_a_frame_says_which_columns_of_a_saved_model_are_whole_or_dates(tmp_path: Path) -> None:
    k = np.arange(40)
    frame = pd.DataFrame(
        {
            "late": k % 4,
            "gaps": np.where(k % 9 == 0, np.nan, k % 5),
            "pay": 1000 + 3.25 * k,
            "since": pd.date_range("2020-01-01", periods=40),
        }
    )
    model = clvq.PrototypeModel([[0.0] * 4, [1.0] * 4], ["a", "b"], feature_names=list(frame))
    clvq.save(model, tmp_path / "a.clvq", reference=frame)
    kinds = {feature.name: str(feature.kind) for feature in clvq.load(tmp_path / "a.clvq").features}
    assert kinds == {"late": "whole", "gaps": "whole", "pay": "real", "since": "date"}
    said = clvq.Features([clvq.Feature("late", unit="times"), "gaps", "pay", "since"])
    clvq.save(model, tmp_path / "b.clvq", features=said, reference=frame.assign(since=k))
    assert clvq.load(tmp_path / "b.clvq").features == said
