"""What happens in the environment of prosemble, where counterlvq runs as well.

    python prosemble_there.py OUTPUT [CLASS ...]

Fits each class on iris, reads it, compares labels on 2,569 rows, explains rows for every class and
asks prosemble's own `predict`, alone and in company. Writes a line of JSON for each class.
"""

import json
import sys
import time
import warnings

import numpy as np

warnings.simplefilter("ignore")

import prosemble.models as lib  # noqa: E402
from sklearn.datasets import load_iris  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

import counterlvq as clvq  # noqa: E402
from counterlvq.adapters import prosemble as adapter  # noqa: E402

X, Y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)
RNG = np.random.default_rng(0)
ROWS = np.vstack([X, RNG.uniform(X.min(axis=0) - 0.5, X.max(axis=0) + 0.5, (2569 - len(X), 4))])
EXPLAINED = 12


def fitted(name):
    settings = {"n_prototypes_per_class": 2, "max_iter": 40}
    return getattr(lib, name)(**settings).fit(X, Y)


def line(name):
    model = fitted(name)
    read = clvq.as_prototype_model(model)
    told = np.asarray(model.predict(ROWS))
    agree = float((read.predict(ROWS) == told).mean())
    # Ties within the rounding of single precision are forgiven here.
    clvq.as_prototype_model(model, probe=ROWS)
    method = "ccp" if read.is_local else "auto"  # whether proofs close is not asked here
    explainer = clvq.Explainer(model, gap=1e-2, method=method)
    exact = clvq.Explainer(read)
    rows = X[:: len(X) // EXPLAINED][:EXPLAINED]
    asked, confirmed, alone, ratio = 0, 0, 0, 1.0
    for target in (0, 1, 2):
        batch = explainer.explain_batch(rows, target=target)
        found = batch.status != "unknown"
        asked += len(rows)
        confirmed += int((np.asarray(model.predict(batch.X[found])) == target).sum())
        alone += sum(int(model.predict(x[None])[0]) == target for x in batch.X[found])
        if not read.is_local:
            best = exact.explain_batch(rows, target=target)
            changed = best.cost > 0
            ratio = max(ratio, float((batch.cost[changed] / best.cost[changed]).max()))
    return {
        "class": name, "agree": agree, "asked": asked, "confirmed": confirmed,
        "alone": alone, "ratio": ratio,
    }  # fmt: skip


def main():
    output, *names = sys.argv[1:]
    with open(output, "w") as file:
        for name in names or [kind for kind in adapter.KINDS if kind not in adapter.REFUSED]:
            start = time.perf_counter()
            try:
                told = line(name)
            except Exception as error:  # noqa: BLE001 - the test reads what it was
                told = {"class": name, "error": f"{type(error).__name__}: {error}"[:400]}
            told["seconds"] = round(time.perf_counter() - start, 1)
            file.write(json.dumps(told) + "\n")
            file.flush()


main()
