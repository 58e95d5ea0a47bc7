"""The table of models that can be read, generated from the adapters themselves."""

from __future__ import annotations

from typing import NamedTuple

from counterlvq.adapters import linear, prosemble, prototorch
from counterlvq.adapters.dispatch import LIBRARIES

__all__ = ["Line", "adapter_lines", "adapter_table"]

_LINEAR = "linear scores"
_DISTANCES = "prototypes with a metric"
# How a class is read, where it is not as prototypes with a metric, and under which condition.
_READ_AS = {
    **dict.fromkeys(linear.KINDS, _LINEAR),
    "SVC": "linear scores; `kernel='linear'` and two classes",
    "NuSVC": "linear scores; `kernel='linear'` and two classes",
    "BernoulliNB": "linear scores; `binarize=None`",
    "OneVsRestClassifier": "linear scores, of linear classifiers",
    "NearestCentroid": "centroids; with priors where moving the centroids says exactly the same",
    "KNeighborsClassifier": "training rows; `n_neighbors=1`, a quadratic distance or the cosine",
    "QuadraticDiscriminantAnalysis": "Gaussians, one metric per class",
    "GaussianNB": "Gaussians, one metric per class",
    "GaussianMixture": "Gaussians, components as labels; all covariance types",
    "BayesianGaussianMixture": "Gaussians, components as labels; all covariance types",
    **dict.fromkeys(
        ("KMeans", "MiniBatchKMeans", "Birch", "MeanShift", "AffinityPropagation"),
        "centres, clusters as labels",
    ),
    **dict.fromkeys(
        ("FixedThresholdClassifier", "TunedThresholdClassifierCV"),
        "a threshold on a linear or Gaussian score",
    ),
    "Thresholded": "a threshold on a score, a probability, points or a predicted number",
}
_REFUSED = {
    "prosemble": prosemble.REFUSED,
    "prototorch-models": prototorch.REFUSED,
}


class Line(NamedTuple):
    """One line of the table: classes of a library that are read alike."""

    library: str
    kinds: tuple[str, ...]
    read_as: str


def adapter_lines() -> list[Line]:
    """List what can be read, library by library."""
    lines: dict[tuple[str, str], list[str]] = {}
    for library in LIBRARIES:
        for kind in library.kinds:
            if kind in _REFUSED.get(library.name, {}):
                continue
            known = library.name in ("scikit-learn", "counterlvq")
            words = _READ_AS.get(kind, _DISTANCES) if known else _DISTANCES
            lines.setdefault((library.name, words), []).append(kind)
    regressors = "linear predictions, behind a threshold (`Thresholded`)"
    lines["scikit-learn", regressors] = list(linear.REGRESSORS)
    order = [*dict.fromkeys(library.name for library in LIBRARIES)]
    found = [Line(name, tuple(kinds), words) for (name, words), kinds in lines.items()]
    return sorted(found, key=lambda line: order.index(line.library))


def adapter_table() -> str:
    """Write the table in Markdown.

    Examples
    --------
    >>> print(adapter_table().splitlines()[2][:40])
    | counterlvq | `GLVQ`, `GMLVQ`, `LGMLVQ`
    """
    head = ["| library | models | read as |", "|---|---|---|"]
    rows = [
        f"| {line.library} | {', '.join(f'`{kind}`' for kind in line.kinds)} | {line.read_as} |"
        for line in adapter_lines()
    ]
    return "\n".join([*head, *rows])
