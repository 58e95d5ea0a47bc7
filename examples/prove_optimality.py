"""
A proof that one can see
========================

A metric for each prototype: the cells are curved, and the answer is proved all the same.

The paper's search stops at a point that no small step improves; here that point costs more than
twice as much as it has to. Branch and bound goes on until nothing closer is left, and the picture
shows why: the shape of all cheaper changes touches the curved cell and does not enter it. Needs
matplotlib; the picture goes to the folder named on the command line, or to the one for temporary
files.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_iris

import counterlvq as clvq
from counterlvq.plots import plot_plane


def main():
    iris = load_iris()
    X, y = iris.data[:, 2:], iris.target_names[iris.target]
    fitted = clvq.LGMLVQ(prototypes_per_class=2, random_state=0).fit(X, y)
    local = clvq.as_prototype_model(fitted)
    model = clvq.PrototypeModel(
        local.prototypes, local.labels, local.omegas, ["petal length", "petal width"]
    )
    print(f"{np.mean(model.predict(X) == y):.0%} of {len(X)} flowers right, by {model!r}.\n")

    for method in ("ccp", "global"):
        explainer = clvq.Explainer(model, method=method)
        cf = explainer.explain(X[21], target="virginica")
        print(f'method="{method}"')
        print(cf, "\n")

    boxes = sum(len(tree.prices) for tree in cf.certificate.trees)
    print(f"The proof cuts all cheaper changes into boxes, {boxes} in all, with prices for each.")
    print(f"Checked again without a solver it gives {explainer.verify(cf):.6g}.\n")

    mpl.use("Agg")
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.gettempdir())
    picture = folder / "counterlvq_proof.png"
    plot_plane(explainer, cf).figure.savefig(picture, dpi=150)
    print(f"The picture of it: {picture}")


if __name__ == "__main__":
    main()
