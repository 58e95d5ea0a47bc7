"""The pictures of the documentation, drawn anew: `make pictures`.

Takes the folder to write to; by default the one that the pages show.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import question_pictures
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from counterlvq.datasets import load_ames
from counterlvq.plots import plot_batch, plot_changes, plot_image, plot_plane

WIDE = 800 / 7.2  # dots per inch that make a picture 800 dots wide


def proof():
    """Curved cells, a Manhattan ball, and where a local search stops."""
    iris = load_iris()
    X, y = iris.data[:, 2:], iris.target_names[iris.target]
    local = clvq.as_prototype_model(clvq.LGMLVQ(prototypes_per_class=2, random_state=0).fit(X, y))
    model = clvq.PrototypeModel(
        local.prototypes, local.labels, local.omegas, ["petal length (cm)", "petal width (cm)"]
    )
    explainer = clvq.Explainer(model, method="global")
    flower = X[21]
    ax = plot_plane(explainer, explainer.explain(flower, target="virginica"))
    stuck = clvq.Explainer(model, method="ccp").explain(flower, target="virginica")
    ax.plot(*stuck.x, marker="X", markersize=10, color="#1f2328", markeredgecolor="white", zorder=7)
    ax.annotate(
        f"where a local search stops,\nat cost {stuck.cost:.4g}", stuck.x, (14, 6),
        textcoords="offset points", fontsize=9, color="#1f2328", zorder=8,
    )  # fmt: skip
    return ax


def house():
    """The house of the demo, with a rule on its floors."""
    houses = load_ames()
    deviation = houses.X.std(axis=0)
    fitted = clvq.GMLVQ(prototypes_per_class=3, random_state=0)
    fitted.fit(houses.X / deviation, houses.target)
    omega = np.asarray(clvq.as_prototype_model(fitted).omegas) / deviation
    model = clvq.PrototypeModel(
        fitted.prototypes_ * deviation,
        fitted.prototype_labels_,
        omega,
        [clvq.Feature(name, unit="sq ft") for name in houses.feature_names],
    )
    rules = [
        clvq.Freeze(*houses.feature_names[4:]),
        "second_floor <= first_floor",
        "living_area <= original(living_area) + 50",
    ]
    cost = clvq.Manhattan(clvq.mad_weights(houses.X))
    explainer = clvq.Explainer(model, cost=cost, constraints=rules)
    rows = houses.X[model.predict(houses.X) == "below 160k"]
    batch = explainer.explain_batch(rows, target="160k or more")
    # Of the houses that need three changes, the one that needs least.
    three = np.where((batch.delta != 0).sum(axis=1) == 3, batch.cost, np.inf)
    return explainer, batch[int(three.argmin())]


def tumours():
    """A pipeline on thirty measurements, and all that it calls malignant."""
    cancer = load_breast_cancer(as_frame=True)
    labels = cancer.target_names[cancer.target]
    pipeline = make_pipeline(StandardScaler(), clvq.GMLVQ(prototypes_per_class=2, random_state=0))
    pipeline.fit(cancer.data, labels)
    cost = clvq.Manhattan(clvq.mad_weights(cancer.data))
    seen = [
        clvq.Bounds(name, float(column.min()), float(column.max()))
        for name, column in cancer.data.items()
    ]
    explainer = clvq.Explainer(pipeline, cost=cost, constraints=seen)
    rows = cancer.data[pipeline.predict(cancer.data) == "malignant"]
    return explainer.explain_batch(rows, target="benign")


def digit():
    """A nought that is nearly an eight."""
    digits = load_digits()
    used = digits.data.std(axis=0) > 0
    found = NearestCentroid().fit(digits.data[:, used], digits.target)
    prototypes = np.zeros((10, 64))
    prototypes[:, used] = found.centroids_
    shades = [clvq.Bounds(j, 0, 16) for j in range(64)]
    explainer = clvq.Explainer(
        clvq.PrototypeModel(prototypes, found.classes_), cost=clvq.Euclidean(), constraints=shades
    )
    return explainer.explain(digits.data[10], target=8)


def main():
    mpl.use("Agg")
    here = Path(__file__).resolve().parent / "pictures"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else here
    folder.mkdir(parents=True, exist_ok=True)
    explainer, cf = house()
    drawn = {
        "proof": proof(),
        "plane": plot_plane(explainer, cf),
        "changes": plot_changes(cf, explainer),
        "batch": plot_batch(tumours(), most=12),
        "image": plot_image(digit(), (8, 8))[0],
        **question_pictures.drawn(),
    }
    for name, ax in drawn.items():
        ax.figure.savefig(folder / f"{name}.png", dpi=WIDE, metadata={"Software": None})
        print(f"{folder.name}/{name}.png")


if __name__ == "__main__":
    main()
