"""Fits of another library, in its own environment, on folds that were prepared elsewhere.

    python fits_there.py LIBRARY FOLDS.npz RESULT.json PATIENCE

Every model gets at least the first fold, and further ones until PATIENCE seconds are spent.
Runs on the Python of that environment, with nothing of counterlvq.
"""

import json
import sys
import warnings
from time import perf_counter

import numpy as np

PROTOTYPES = 3


def sklearn_lvq_models():
    import sklearn_lvq as lib

    same = {"prototypes_per_class": PROTOTYPES, "random_state": 0}
    return {
        "GLVQ": lambda: lib.GlvqModel(**same),
        "GMLVQ": lambda: lib.GmlvqModel(**same),
        "LGMLVQ": lambda: lib.LgmlvqModel(**same),
    }


def sklvq_models():
    import sklvq as lib

    same = {"prototype_n_per_class": PROTOTYPES, "random_state": 0}
    return {
        "GLVQ": lambda: lib.GLVQ(**same),
        "GMLVQ": lambda: lib.GMLVQ(**same),
        "LGMLVQ": lambda: lib.LGMLVQ(**same),
    }


LIBRARIES = {"sklearn-lvq": sklearn_lvq_models, "sklvq": sklvq_models}


def measure(make, folds, patience):
    """Fit fold after fold until the patience is spent; what each fit took and gave."""
    seconds, accuracies, steps = [], [], []
    for X, y, X_test, y_test in folds:
        if seconds and sum(seconds) >= patience:
            break
        start = perf_counter()
        model = make().fit(X, y)
        seconds.append(perf_counter() - start)
        accuracies.append(float(np.mean(model.predict(X_test) == y_test)))
        made, limit = steps_of(model)
        steps.append(made)
    return {"seconds": seconds, "accuracies": accuracies, "steps": steps, "limit": limit}


def steps_of(model):
    """Steps that the optimiser made, and the most that its default settings allow."""
    if hasattr(model, "n_iter_"):  # sklearn-lvq
        return int(model.n_iter_), int(model.max_iter)
    runs = int(model._solver.max_runs)  # sklvq makes all of them
    return runs, runs


def read(path):
    with np.load(path) as file:
        count = len(file.files) // 4
        parts = ("X", "y", "X_test", "y_test")
        return [tuple(file[f"{part}_{k}"] for part in parts) for k in range(count)]


def main(library, source, target, patience):
    warnings.simplefilter("ignore")
    folds = read(source)
    models = LIBRARIES[library]()
    found = {name: measure(make, folds, float(patience)) for name, make in models.items()}
    with open(target, "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
