"""DiCE asked for several ways, in an environment of its own: JSON in, JSON out.

Run by `benchmarks.questions`. It imports nothing of this package: the model is stated again as its
prototypes and the factor of its metric, or as the weights of a linear score, behind what the steps
before it make of each column.
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


class Restated(ClassifierMixin, BaseEstimator):  # type: ignore[misc, unused-ignore]
    """Columns scaled or turned into indicators, then prototypes with one metric, or a linear score.

    The label is 0 or 1.
    """

    def __init__(self, asked: Any = None) -> None:
        self.asked = asked

    def fit(self, X: Any, y: Any) -> Restated:
        """Take the model as it is."""
        self.classes_ = np.unique(y)
        return self

    def _image(self, X: Any) -> Any:
        parts = []
        for name, step in self.asked["columns"].items():
            column = X[name].to_numpy()
            if "levels" in step:
                parts += [(column == level).astype(float) for level in step["levels"]]
            else:
                parts.append((column.astype(float) - step["mean"]) / step["scale"])
        return np.column_stack(parts)

    def predict_proba(self, X: Any) -> Any:
        """Compare the nearest prototypes of the two classes, or take the odds of the score."""
        image = self._image(X)
        if "coef" in self.asked:
            score = image @ np.array(self.asked["coef"]) + self.asked["intercept"]
            losses = np.stack([np.maximum(score, 0), np.maximum(-score, 0)], axis=1)
        else:
            W, omega = np.array(self.asked["prototypes"]), np.array(self.asked["omega"])
            away = (image[:, None, :] - W[None, :, :]) @ omega.T
            distances, labels = (away**2).sum(axis=2), np.array(self.asked["labels"])
            losses = np.stack([distances[:, labels == c].min(axis=1) for c in (0, 1)], axis=1)
        odds = np.exp(losses.min(axis=1, keepdims=True) - losses)
        return odds / odds.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """Label of each row."""
        return self.predict_proba(X).argmax(axis=1)


def main() -> None:
    """Answer the question on standard input."""
    asked = json.load(sys.stdin)
    columns = asked["columns"]
    table = pd.DataFrame(asked["table"], columns=list(columns))
    numbers = {name: step for name, step in columns.items() if "levels" not in step}
    table = table.astype(
        {name: float if step["precision"] else int for name, step in numbers.items()}
    )
    model = Restated(asked).fit(table, asked["y"])
    data = dice_ml.Data(
        dataframe=table.assign(**{OUTCOME: asked["y"]}), outcome_name=OUTCOME,
        continuous_features=list(numbers),
        continuous_features_precision={n: step["precision"] for n, step in numbers.items()},
    )  # fmt: skip
    found = {}
    for method in asked["methods"]:
        asks = dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"), method=method)
        found[method] = [_ways(asks, table.iloc[[i]], asked, method) for i in asked["rows"]]
    json.dump({"version": version("dice-ml"), "found": found}, sys.stdout)


def _ways(asks: Any, row: Any, asked: Any, method: str) -> dict[str, Any]:
    """The rows that DiCE gives for one input, and what that took."""
    extra = {"random_seed": 0} if method == "random" else {}
    begun, ways, failed = process_time(), [], ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = asks.generate_counterfactuals(
                row, total_CFs=asked["count"], desired_class=1, verbose=False,
                features_to_vary="all", permitted_range=asked["ranges"], **extra,
            )  # fmt: skip
            table = answer.cf_examples_list[0].final_cfs_df
            if table is not None and len(table):
                columns = asked["columns"]
                kinds = {name: str if "levels" in columns[name] else float for name in columns}
                ways = table[list(columns)].astype(kinds).astype(object).to_numpy().tolist()
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no answer
            failed = f"{type(error).__name__}: {str(error)[:200]}"
    return {"seconds": process_time() - begun, "ways": ways, "failed": failed}


if __name__ == "__main__":
    main()
