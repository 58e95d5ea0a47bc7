"""What is one question, however it is written; and in what two of them differ, in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.compose import make_column_transformer
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq

MODEL = clvq.PrototypeModel([[0, 1], [4, 3], [2, 9]], ["no", "yes", "or"], feature_names=["a", "k"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"a": [1.0, 3.0], "k": [1.0, 2.0]}), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def refusal(explainer: clvq.Explainer, table: Path, folder: Path, **more: Any) -> str:
    with pytest.raises(clvq.InvalidInputError) as error:
        clvq.explain_dataset(explainer, table, folder, **{"target": "yes", **more})
    return str(error.value)


@pytest.mark.parametrize(
    ("begun", "again"),
    [
        ("yes", [{"yes"}, ["yes"], ("yes", "yes"), np.array(["yes"]), np.str_("yes")]),
        ({"yes", "or"}, [["or", "yes"], ["yes", "or", "or"], frozenset({"or", "yes"})]),
    ],
)
def test_wish_is_the_same_however_it_is_written(
    table: Path, tmp_path: Path, begun: Any, again: list[Any]
) -> None:
    explainer = clvq.Explainer(MODEL)
    clvq.explain_dataset(explainer, table, tmp_path / "out", begun)
    for target in again:
        assert clvq.explain_dataset(explainer, table, tmp_path / "out", target).resumed == 1
    assert "target was" in refusal(explainer, table, tmp_path / "out", target="no")


def test_labels_that_are_equal_are_one_wish(table: Path, tmp_path: Path) -> None:
    explainer = clvq.Explainer(
        clvq.PrototypeModel([[0, 1], [4, 3]], [0, 1], feature_names=["a", "k"])
    )
    clvq.explain_dataset(explainer, table, tmp_path / "out", 1)
    for target in (1.0, np.int8(1), True, {1.0}):
        assert clvq.explain_dataset(explainer, table, tmp_path / "out", target).resumed == 1


def test_model_is_the_same_whatever_is_said_of_its_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = pa.table({"a": rng.normal(size=40), "job": rng.choice(["clerk", "nurse"], size=40)})
    frame = rows.to_pandas()
    steps = make_column_transformer((StandardScaler(), ["a"]), (OneHotEncoder(), ["job"]))
    pipeline = make_pipeline(steps, NearestCentroid()).fit(
        frame, np.where(frame["a"] > 0, "y", "n")
    )
    pq.write_table(rows, tmp_path / "t.parquet")
    clvq.save(pipeline, tmp_path / "m.clvq")
    for model in (pipeline, clvq.load(tmp_path / "m.clvq")):
        folder = tmp_path / type(model).__name__
        clvq.explain_dataset(clvq.Explainer(model), tmp_path / "t.parquet", folder, "y")
        levels = clvq.Feature("job", levels=["clerk", "nurse"])
        for feature, words in {
            clvq.Feature("a", upper=9): "was Feature('a'), and now is Feature('a', upper=9)",
            clvq.Feature("a", seen=(-1, 2)): "now is one number stays in the range of its column",
        }.items():
            bounded = clvq.Explainer(model, features=clvq.Features([feature, levels]))
            told = refusal(bounded, tmp_path / "t.parquet", folder, target="y")
            assert "begun with another question" in told
            assert words in told
        one = clvq.Features(["a", clvq.Feature("job", levels=["clerk"])])
        told = refusal(
            clvq.Explainer(model, features=one), tmp_path / "t.parquet", folder, target="y"
        )
        assert "levels=['clerk', 'nurse']), and now is Feature('job', levels=['clerk'])" in told


def test_setting_that_no_words_tell_is_named(table: Path, tmp_path: Path) -> None:
    """Of many weights the words have the least and the largest."""
    model = clvq.PrototypeModel(
        [[0, 1, 2], [4, 3, 2]], ["no", "yes"], feature_names=["a", "k", "x"]
    )
    rows = pq.read_table(table).append_column("x", pa.array([1.0, 2.0]))
    pq.write_table(rows, table)

    def explainer(*weights: float) -> clvq.Explainer:
        return clvq.Explainer(model, clvq.Manhattan(list(weights)))

    folder = tmp_path / "out"
    clvq.explain_dataset(explainer(1, 2, 3), table, folder, "yes")
    told = refusal(explainer(1, 2.5, 3), table, folder)
    words = "something about its cost differs that no words of the manifest tell"
    assert f"begun with another question: {words}" in told
    manifest = json.loads((folder / "_manifest.json").read_text())
    for key in ("asked", "settings"):  # which people may have changed
        for other in (None, [], {"cost": 5}):
            (folder / "_manifest.json").write_text(json.dumps({**manifest, key: other}))
            told = refusal(explainer(1, 2.5, 3), table, folder)
            assert "begun with another question: " in told
    manifest["settings"] |= {"cost": "", "question": "x"}
    (folder / "_manifest.json").write_text(json.dumps({**manifest, "question": "x"}))
    assert f"another question: {words}" in refusal(explainer(1, 2, 3), table, folder)


@pytest.mark.parametrize(
    ("begun", "again"),
    [
        (clvq.Bounds("a", 0, 50), clvq.Bounds("a", 0.0, np.float64(50.0))),
        (clvq.MaxChange("a", 30), clvq.MaxChange("a", 30.0)),
        (clvq.OneOf("k", [1, 2, 9]), clvq.OneOf("k", [1.0, 2.0, 9.0])),
    ],
    ids=lambda item: type(item).__name__,
)
def test_numbers_are_the_same_however_they_are_held(
    table: Path, tmp_path: Path, begun: Any, again: Any
) -> None:
    explainer, folder = clvq.Explainer(MODEL, constraints=[begun]), tmp_path / "out"
    clvq.explain_dataset(explainer, table, folder, "yes")
    same = clvq.Explainer(MODEL, constraints=[again])
    assert clvq.explain_dataset(same, table, folder, "yes").resumed == 1


@pytest.mark.parametrize("held", [list, tuple, np.array, pd.Series], ids=lambda kind: kind.__name__)
def test_wish_of_each_row_is_no_set_of_labels(
    table: Path, tmp_path: Path, held: Callable[[list[str]], Any]
) -> None:
    explainer, wishes = clvq.Explainer(MODEL), held(["yes", "or"] * 2)
    told = refusal(explainer, table, tmp_path / "out", target=wishes)
    assert "target holds 4 labels, and the model has 3" in told
    assert "target_column=" in told
    with pytest.raises(clvq.InvalidInputError, match="target holds 4 labels"):
        explainer.map_batches(pq.read_table(table).to_batches(), wishes).read_all()


def test_rule_that_is_new_or_gone_is_told_alone(table: Path, tmp_path: Path) -> None:
    few = clvq.Explainer(MODEL, constraints=["a <= 9"])
    more = clvq.Explainer(MODEL, constraints=["a <= 9", clvq.Freeze("k")])
    clvq.explain_dataset(few, table, tmp_path / "few", "yes")
    told = refusal(more, table, tmp_path / "few")
    assert "another question: of the constraints, no change of k is new; expected" in told
    clvq.explain_dataset(more, table, tmp_path / "more", "yes")
    told = refusal(few, table, tmp_path / "more")
    assert "another question: of the constraints, no change of k is missing now; expected" in told
