"""What happens in ceml's environment: put our prototypes into its models, and ask it.

    python ceml_there.py MODEL OPTIMIZER QUESTION.npz ANSWER.json

Runs on the Python of that environment, with nothing of counterlvq. Every exception that ceml
raises is an answer that it did not give; its text is kept.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from time import process_time
from typing import Any

import numpy as np

__all__ = ["main"]


def rebuilt(name: str, arrays: dict[str, Any]) -> Any:
    """Make a model of sklearn-lvq that has our prototypes and predicts by them."""
    import sklearn_lvq

    kinds = {"GLVQ": "GlvqModel", "GMLVQ": "GmlvqModel", "LGMLVQ": "LgmlvqModel"}
    model = getattr(sklearn_lvq, kinds[name])()
    model.w_, model.c_w_ = arrays["prototypes"], arrays["labels"]
    model.classes_ = np.unique(arrays["labels"])
    if name == "GMLVQ":
        model.omega_ = arrays["omegas"]
    if name == "LGMLVQ":
        model.omegas_, model.classwise = list(arrays["omegas"]), False
    return model


def main(name: str, optimizer: str, question: str, answer: str) -> None:
    """Answer each row, or tell what was raised."""
    from ceml.sklearn.lvq import lvq_generate_counterfactual

    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    with np.load(question, allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    model = rebuilt(name, arrays)
    free = arrays["free"].tolist()
    allowed = None if len(free) == arrays["rows"].shape[1] else free
    points: list[list[float] | None] = []
    raised: list[str | None] = []
    seconds: list[float] = []
    for x, target in zip(arrays["rows"], arrays["targets"].tolist(), strict=True):
        start = process_time()
        try:
            y, _, _ = lvq_generate_counterfactual(
                model, x, target, features_whitelist=allowed, regularization="l1",
                C=arrays["strengths"].tolist(), optimizer=optimizer, return_as_dict=False,
            )  # fmt: skip
        except Exception as problem:  # noqa: BLE001 - ceml raises nothing narrower
            points.append(None)
            raised.append(f"{type(problem).__name__}: {problem}"[:200])
        else:
            points.append(np.asarray(y, dtype=np.float64).tolist())
            raised.append(None)
        seconds.append(process_time() - start)
    with open(answer, "w", encoding="utf-8") as target_file:
        json.dump({"points": points, "raised": raised, "seconds": seconds}, target_file)


if __name__ == "__main__":
    main(*sys.argv[1:])
