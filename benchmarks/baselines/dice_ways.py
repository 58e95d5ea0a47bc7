"""DiCE asked for several ways, in an environment of its own: JSON in, JSON out.

Run by `benchmarks.questions`. It imports nothing of this package: the model is stated again as its
prototypes and the factor of its metric.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version
from time import process_time
from typing import Any

import dice_ml
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin

OUTCOME = "wished for"


class Nearest(ClassifierMixin, BaseEstimator):  # type: ignore[misc, unused-ignore]
    """Prototypes with one metric; the label, 0 or 1, is that of the nearest one."""

    def __init__(self, prototypes: Any = None, labels: Any = None, omega: Any = None) -> None:
        self.prototypes, self.labels, self.omega = prototypes, labels, omega

    def fit(self, X: Any, y: Any) -> Nearest:
        """Take the prototypes as they are."""
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Compare the nearest prototypes of the two classes."""
        W, omega = np.array(self.prototypes), np.array(self.omega)
        away = (np.asarray(X, dtype=float)[:, None, :] - W[None, :, :]) @ omega.T
        distances, labels = (away**2).sum(axis=2), np.array(self.labels)
        nearest = np.stack([distances[:, labels == c].min(axis=1) for c in (0, 1)], axis=1)
        odds = np.exp(nearest.min(axis=1, keepdims=True) - nearest)
        return odds / odds.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """Label of each row."""
        return self.predict_proba(X).argmax(axis=1)


def main() -> None:
    """Answer the question on standard input."""
    asked = json.load(sys.stdin)
    table = pd.DataFrame(asked["table"], columns=asked["columns"], dtype=float)
    model = Nearest(asked["prototypes"], asked["labels"], asked["omega"]).fit(table, asked["y"])
    data = dice_ml.Data(
        dataframe=table.assign(**{OUTCOME: asked["y"]}), outcome_name=OUTCOME,
        continuous_features=asked["columns"],
        continuous_features_precision=dict.fromkeys(asked["columns"], 6),
    )  # fmt: skip
    found = {}
    for method in asked["methods"]:
        asks = dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"), method=method)
        found[method] = [_ways(asks, table.iloc[[i]], asked, method) for i in asked["rows"]]
    json.dump({"version": version("dice-ml"), "found": found}, sys.stdout)


def _ways(asks: Any, row: Any, asked: Any, method: str) -> dict[str, Any]:
    """The rows that DiCE gives for one input, and what that took."""
    extra = {"random_seed": 0} if method == "random" else {}
    begun, ways = process_time(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = asks.generate_counterfactuals(
                row, total_CFs=asked["count"], desired_class=1, verbose=False,
                features_to_vary="all", permitted_range=asked["ranges"], **extra,
            )  # fmt: skip
            table = answer.cf_examples_list[0].final_cfs_df
            if table is not None and len(table):
                ways = table[asked["columns"]].astype(float).to_numpy().tolist()
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no answer
            print(f"{method}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
    return {"seconds": process_time() - begun, "ways": ways}


if __name__ == "__main__":
    main()
