"""The table of `counterlvq explain` shows the score or probability behind each decision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier

import counterlvq as clvq
from tests.support.shell import called

X, Y = load_iris(return_X_y=True, as_frame=True)
X.columns = ["a", "b", "c", "d"]
NAMES = np.array(["setosa", "versicolor", "virginica"])


def lines(folder: Path, model: object, rows: pd.DataFrame, *words: str) -> list[str]:
    clvq.save(model, folder / "m.clvq")
    rows.to_csv(folder / "rows.csv", index=False)
    done = called("explain", "m.clvq", "rows.csv", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


def cell(line: str, head: str, name: str) -> list[float]:
    """Read two numbers from under the name of a column."""
    at = head.index(name)
    return [float(part) for part in line[at:].split("  ", maxsplit=1)[0].split(" -> ")]


def test_a_threshold_on_a_probability(tmp_path: Path) -> None:
    labels = np.where(Y == 2, "no", "yes")
    inner = LogisticRegression(max_iter=1000).fit(X, labels)
    model = FixedThresholdClassifier(inner, threshold=0.7, pos_label="yes").fit(X, labels)
    head, there, stays, *_ = lines(tmp_path, model, X.iloc[[140, 0]], "--target", "yes")
    before, after = cell(there, head, "probability of yes")
    assert before == pytest.approx(model.predict_proba(X.iloc[[140]])[0, 1], rel=1e-3)
    assert before < 0.7 <= after < 0.75
    assert stays.endswith("none needed")
    assert stays.count("->") == 0


def test_probabilities_of_several_classes(tmp_path: Path) -> None:
    model = LogisticRegression(max_iter=1000).fit(X, NAMES[Y])
    rows = X.iloc[[0, 60, 140]]
    head, *told = lines(tmp_path, model, rows)
    assert "probability: of the class that a row would have" in told
    known = model.classes_.tolist()
    for i, line in enumerate(told[:3]):
        wished = line.split(" -> ")[1].split()[0]
        before, after = cell(line, head, "probability")
        own = model.predict_proba(rows.iloc[[i]])[0, known.index(wished)]
        assert before == pytest.approx(own, rel=1e-3)
        assert after > before
    assert "probability" not in lines(tmp_path, model, rows, "--no-response")[0]


def test_models_without_any_have_no_such_column(tmp_path: Path) -> None:
    model = clvq.PrototypeModel(X.iloc[[0, 60, 140]].to_numpy(), NAMES, None, list(X.columns))
    head, *_ = lines(tmp_path, model, X.iloc[[0]])
    assert head.split() == ["row", "status", "class", "cost", "bound", "gap", "changes"]
