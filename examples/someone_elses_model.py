"""
Someone else's model
====================

Models of other libraries: scikit-learn's nearest neighbour and nearest centroid on digits.

The question is the same for both: which pixels would have to be lighter or darker for this 0 to
be read as something else? Their own ``predict`` confirms each answer.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

import counterlvq as clvq

SHADES = " .:-=+*#%@"


def drawn(pixels, inked):
    """An 8 x 8 image in letters, twice as wide so that it looks square."""
    image = np.zeros(64)
    image[inked] = pixels
    levels = (image / 16 * (len(SHADES) - 1)).round().astype(int)
    return ["".join(2 * SHADES[level] for level in row) for row in levels.reshape(8, 8)]


def main():
    digits = load_digits()
    inked = digits.data.std(axis=0) > 0  # the other pixels are blank in every image
    X = digits.data[:, inked]
    fitted = {
        "the nearest of 1,797 neighbours": KNeighborsClassifier(n_neighbors=1).fit(
            X, digits.target
        ),
        "the nearest of 10 centroids": NearestCentroid().fit(X, digits.target),
    }
    for name, estimator in fitted.items():
        model = clvq.as_prototype_model(estimator)
        shades = [clvq.Bounds(j, 0, 16) for j in range(model.n_features)]
        cf = clvq.Explainer(estimator, constraints=shades).explain(X[10])
        print(f"Asking {name} ({model.n_prototypes:,} prototypes):")
        print(f"  {cf.original_prediction} becomes {cf.prediction} if {len(cf.changes)} ", end="")
        print(f"pixels change by {cf.cost:.4g} shades of grey in all; proved: no less will do.")
        assert estimator.predict(cf.x[None, :])[0] == cf.prediction
        for before, after in zip(drawn(X[10], inked), drawn(cf.x, inked), strict=True):
            print(f"    |{before}|   |{after}|")
        print()


if __name__ == "__main__":
    main()

# sphinx_gallery_thumbnail_path = 'pictures/image.png'
