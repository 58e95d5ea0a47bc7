"""DiCE on rows with missing values, in an environment of its own: JSON in, JSON out.

Run by `benchmarks.missing`. It imports nothing of this package: the model is stated again as its
prototypes and the factor of its metric behind the same steps of scikit-learn.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version
from typing import Any

import dice_ml
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

OUTCOME = "wished for"


class Nearest(ClassifierMixin, BaseEstimator):  # type: ignore[misc, unused-ignore]
    """Prototypes with one metric; the label is that of the nearest one."""

    def __init__(self, prototypes: Any = None, labels: Any = None, omega: Any = None) -> None:
        self.prototypes, self.labels, self.omega = prototypes, labels, omega

    def fit(self, X: Any, y: Any) -> Nearest:
        """Take the prototypes as they are."""
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Compare the nearest prototypes of the two classes."""
        W, omega = np.array(self.prototypes), np.array(self.omega)
        away = (np.asarray(X)[:, None, :] - W[None, :, :]) @ omega.T
        distances, labels = (away**2).sum(axis=2), np.array(self.labels)
        nearest = np.stack([distances[:, labels == c].min(axis=1) for c in self.classes_], axis=1)
        odds = np.exp(nearest.min(axis=1, keepdims=True) - nearest)
        return odds / odds.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """Label of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def main() -> None:
    """Answer the question on standard input."""
    asked = json.load(sys.stdin)
    table = pd.DataFrame(asked["table"]).astype(dict.fromkeys(asked["numbers"], float))
    table = table.where(table.notna(), np.nan)
    numbers, levels = asked["numbers"], asked["levels"]
    steps = ColumnTransformer(
        [
            ("n", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
            (
                "l",
                make_pipeline(
                    SimpleImputer(strategy="most_frequent"), OneHotEncoder(sparse_output=False)
                ),
                levels,
            ),
        ]
    )
    model = Nearest(asked["prototypes"], asked["labels"], asked["omega"])
    pipeline = make_pipeline(steps, model).fit(table, asked["y"])
    found = {
        method: {way: _valid(pipeline, table, asked, method, way) for way in ("as is", "imputed")}
        for method in ("random", "genetic")
    }
    json.dump({"version": version("dice-ml"), "valid": found}, sys.stdout)


def _valid(pipeline: Any, table: Any, asked: Any, method: str, way: str) -> list[bool]:
    """Whether DiCE gives each row an answer that the pipeline confirms."""
    shown = table.copy()
    if way == "imputed":
        for name, part in (("n", asked["numbers"]), ("l", asked["levels"])):
            imputer = pipeline[0].named_transformers_[name][0]
            shown[part] = imputer.transform(table[part])
        shown = shown.astype(dict.fromkeys(asked["numbers"], float))
    whole = shown.assign(**{OUTCOME: asked["y"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            data = dice_ml.Data(
                dataframe=whole, continuous_features=asked["numbers"], outcome_name=OUTCOME
            )
            asks = dice_ml.Dice(
                data, dice_ml.Model(model=pipeline, backend="sklearn"), method=method
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no answer
            print(f"{method}, {way}: {type(error).__name__}: {error}", file=sys.stderr)
            return [False] * len(asked["rows"])
        return [_answered(asks, pipeline, shown.iloc[[i]], method) for i in asked["rows"]]


def _answered(asks: Any, pipeline: Any, row: Any, method: str) -> bool:
    extra = {"random_seed": 0} if method == "random" else {}
    try:
        found = asks.generate_counterfactuals(
            row, total_CFs=1, desired_class=1, verbose=False, **extra
        )
        answer = found.cf_examples_list[0].final_cfs_df
    except Exception as error:  # noqa: BLE001 - whatever it is, there is no answer
        print(f"{method}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
        return False
    if answer is None or not len(answer):
        return False
    answer = answer[list(row.columns)].infer_objects()
    answer = answer.where(answer.notna(), np.nan)
    for name in row.columns:
        if row[name].dtype.kind == "f":
            answer[name] = answer[name].astype(float)
    return bool(pipeline.predict(answer)[0] == 1)


if __name__ == "__main__":
    main()
