"""
A million rows
==============

Every answer comes with its own lower bound, on all cores.

There are 178 wines in the table; each is measured again and again, with a little noise, until
there are a million of them. What would make each of them a Barolo?
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.datasets import load_wine

import counterlvq as clvq

ROWS = 1_000_000
COLUMNS = ["alcohol", "malic_acid", "total_phenols", "flavanoids", "color_intensity", "proline"]


def main():
    wine = load_wine(as_frame=True)
    measured = wine.data[COLUMNS].to_numpy()
    labels = np.array(["Barolo", "Grignolino", "Barbera"])[wine.target]
    deviation = measured.std(axis=0)
    scaled = clvq.GMLVQ(prototypes_per_class=2, random_state=0).fit(measured / deviation, labels)
    # In the units of the table: a metric for x / deviation is another one for x.
    omega = np.asarray(clvq.as_prototype_model(scaled).omegas) / deviation
    model = clvq.PrototypeModel(
        scaled.prototypes_ * deviation, scaled.prototype_labels_, omega, COLUMNS
    )

    rng = np.random.default_rng(0)
    rows = measured[rng.integers(len(measured), size=ROWS)]
    rows = rows + rng.normal(scale=0.2 * deviation, size=rows.shape)

    explainer = clvq.Explainer(
        model,
        cost=clvq.Manhattan(1 / deviation),
        constraints=[clvq.Bounds(name, lower=0) for name in COLUMNS] + ["flavanoids <= 6"],
    )
    explainer.explain_batch(rows[:100], target="Barolo", n_jobs=-1)  # compiles, once
    start = time.perf_counter()
    batch = explainer.explain_batch(rows, target="Barolo", n_jobs=-1)
    spent = time.perf_counter() - start

    print(batch.summary())
    print(f"\n{ROWS:,} answers in {spent:.1f} s, {1e6 * spent / ROWS:.2f} microseconds each.")
    print("Cost less lower bound, relative to the cost, at worst: ", end="")
    print(f"{batch.gap[np.isfinite(batch.cost)].max():.0e}.\n")
    print("The dearest of them, with the certificate made anew:\n")
    print(batch[int(np.where(np.isfinite(batch.cost), batch.cost, 0).argmax())])


if __name__ == "__main__":
    main()

# sphinx_gallery_thumbnail_path = 'pictures/plane.png'
