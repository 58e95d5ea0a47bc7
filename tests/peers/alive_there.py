"""What happens in the environment of a library beside which counterlvq runs.

    python alive_there.py LIBRARY OUTPUT [CLASS ...]

Fits each class on iris, reads it, compares labels on 2,569 rows, explains rows for every class and
asks the library's own `predict`, alone and in company. Rows next to a boundary follow, where a
margin costs more than the change itself. Writes a line of JSON for each class.
"""

import json
import sys
import time
import warnings

import numpy as np

warnings.simplefilter("ignore")

from sklearn.datasets import load_iris  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

import counterlvq as clvq  # noqa: E402
from counterlvq.adapters import predictor_of, prosemble  # noqa: E402

X, Y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)
RNG = np.random.default_rng(0)
ROWS = np.vstack([X, RNG.uniform(X.min(axis=0) - 0.5, X.max(axis=0) + 0.5, (2569 - len(X), 4))])
EXPLAINED = 12
# Shares of the way to the boundary that are left to go.
LEFT = (1e-2, 1e-4, 1e-6)


def fitted_by_prosemble(name):
    import prosemble.models as lib

    return getattr(lib, name)(n_prototypes_per_class=2, max_iter=40).fit(X, Y)


def fitted_by_prototorch(name):
    from there import let_prototorch_import, tensors, train_with_lightning

    let_prototorch_import()
    import prototorch as pt
    import torch
    from prototorch import models as lib

    torch.manual_seed(0)
    shape = {"distribution": {"num_classes": 3, "per_class": 2}, "input_dim": 4, "latent_dim": 2}
    start = pt.initializers.SMCI(tensors(X, Y), noise=0.3)
    model = getattr(lib, name)(shape, prototypes_initializer=start)
    train_with_lightning(model, X, Y)
    return model


def line(fit, name):
    model = fit(name)
    read, says = clvq.as_prototype_model(model), predictor_of(model)
    agree = float((read.predict(ROWS) == says(ROWS)).mean())
    # Ties within the rounding of single precision are forgiven here.
    clvq.as_prototype_model(model, probe=ROWS)
    method = "ccp" if read.is_local else "auto"  # whether proofs close is not asked here
    explainer = clvq.Explainer(model, gap=1e-2, method=method)
    exact = clvq.Explainer(read, gap=1e-2, method=method)
    rows = X[:: len(X) // EXPLAINED][:EXPLAINED]
    asked, confirmed, alone, ratio = 0, 0, 0, 1.0
    for target in (0, 1, 2):
        batch = explainer.explain_batch(rows, target=target)
        found = batch.status != "unknown"
        asked += len(rows)
        confirmed += int((says(batch.X[found]) == target).sum())
        alone += sum(int(says(x[None])[0]) == target for x in batch.X[found])
        best = exact.explain_batch(rows, target=target)
        changed = best.cost > 0
        ratio = max(ratio, float((batch.cost[changed] / best.cost[changed]).max()))
    return {
        "class": name, "agree": agree, "asked": asked, "confirmed": confirmed,
        "alone": alone, "ratio": ratio, **near_boundaries(explainer, exact, says, rows),
    }  # fmt: skip


def near_boundaries(explainer, exact, says, rows):
    """Explain rows from which little is left to go; `extra` is what the margin adds to a cost."""
    far = exact.explain_batch(rows)
    near = np.vstack([far.X - left * (far.X - rows) for left in LEFT])
    batch, best = explainer.explain_batch(near), exact.explain_batch(near)
    found = batch.status != "unknown"
    flipped = says(batch.X[found]) == batch.prediction[found]
    pairs = zip(batch.X, batch.prediction, strict=True)
    alone = np.array([says(x[None])[0] == label for x, label in pairs])
    same = found & (batch.original_prediction == best.original_prediction)
    return {
        "near": len(near), "near_confirmed": int(flipped.sum()),
        "near_alone": int(alone[found].sum()),
        "extra": float((batch.cost - best.cost)[same].max()),
    }  # fmt: skip


LIBRARIES = {
    "prosemble": (
        fitted_by_prosemble,
        [kind for kind in prosemble.KINDS if kind not in prosemble.REFUSED],
    ),
    "prototorch": (
        fitted_by_prototorch,
        ["GLVQ", "GRLVQ", "GMLVQ", "SiameseGMLVQ", "LGMLVQ", "GTLVQ", "CELVQ", "LVQ21"],
    ),
}


def main():
    library, output, *names = sys.argv[1:]
    fit, known = LIBRARIES[library]
    with open(output, "w") as file:
        for name in names or known:
            start = time.perf_counter()
            try:
                told = line(fit, name)
            except Exception as error:  # noqa: BLE001 - the test reads what it was
                told = {"class": name, "error": f"{type(error).__name__}: {error}"[:400]}
            told["seconds"] = round(time.perf_counter() - start, 1)
            file.write(json.dumps(told) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
