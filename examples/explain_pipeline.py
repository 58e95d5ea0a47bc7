"""
A pipeline in its own units
===========================

A scikit-learn pipeline, explained in the columns and units of the table that it takes.

The model sees five principal components of thirty standardised measurements of a tumour. Nobody
can read a change of the third component; the answer is in the measurements all the same.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq


def main():
    cancer = load_breast_cancer(as_frame=True)
    labels = cancer.target_names[cancer.target]
    train, test, y_train, y_test = train_test_split(cancer.data, labels, random_state=0)
    pipeline = make_pipeline(
        StandardScaler(), PCA(5), clvq.GMLVQ(prototypes_per_class=2, random_state=0)
    )
    pipeline.fit(train, y_train)
    print(f"{pipeline.score(test, y_test):.0%} of {len(test)} tumours right.\n")

    # Changes in units of how much each measurement varies; only values that occur in the data.
    cost = clvq.Manhattan(clvq.mad_weights(train))
    seen = [clvq.Bounds(name, float(train[name].min()), float(train[name].max())) for name in train]
    explainer = clvq.Explainer(pipeline, cost=cost, constraints=seen)
    malignant = test[pipeline.predict(test) == "malignant"]

    print("One tumour, and the smallest change that would have made it benign:\n")
    cf = explainer.explain(malignant.iloc[[0]], target="benign")
    print(cf, "\n")

    batch = explainer.explain_batch(malignant, target="benign")
    print(f"All {len(batch)} that the pipeline calls malignant:\n")
    print(batch.summary())

    assert np.all(pipeline.predict(batch.X) == "benign")
    print("\nThe pipeline itself calls every one of these answers benign.")


if __name__ == "__main__":
    main()

# sphinx_gallery_thumbnail_path = 'pictures/batch.png'
