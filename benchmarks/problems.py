"""The paper's three data sets, with two models each and as many rows as are wanted.

No LVQ estimator is trained here, so that every run has the same models in seconds:

* GLVQ-type: three prototypes per class by k-means within the class, plain distances;
* GMLVQ-type: the same prototypes under one shared omega, the regularised inverse square root of
  the covariance within the classes, scaled so that ``trace(omega' omega) = 1`` as in GMLVQ.

The shapes of the programs (features, prototypes, rank of the metric) are those of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from counterlvq.datasets import load_ames

Array = NDArray[np.float64]

SEED = 0
FOLDS = 4
PROTOTYPES_PER_CLASS = 3
# Copies of a test row differ from it by so many standard deviations of its feature.
JITTER = 0.05
# Share of the mean variance that is added to a covariance before it is inverted.
RIDGE = 0.01

AMES_FROZEN = ("wood_deck", "open_porch", "three_season_porch", "screen_porch", "pool_area")
COSTS: dict[str, clvq.Cost] = {"L1": clvq.Manhattan(), "L2": clvq.Euclidean()}


@dataclass(frozen=True, eq=False)
class Split:
    """A data set, cut once: models see the training rows, questions are about test rows."""

    name: str
    train: Array
    train_labels: NDArray[Any]
    test: Array
    test_labels: NDArray[Any]
    feature_names: tuple[str, ...] | None = None
    frozen: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, rows to explain, and the label that each should get instead."""

    name: str
    kind: str
    model: clvq.PrototypeModel
    rows: Array  # (n, d); the untouched test rows first
    targets: NDArray[Any]  # (n,)
    frozen: tuple[str, ...]
    accuracy: float  # of the model on the test rows

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Features that may change, (d,)."""
        return np.array([name not in self.frozen for name in self.model.features.names])

    @property
    def wish(self) -> NDArray[Any] | None:
        """The targets as a user would state them: with two classes there is only one other."""
        return None if len(self.model.classes) == 2 else self.targets

    def head(self, n: int) -> Problem:
        """The same problem with the first n rows only."""
        rows, targets = self.rows[:n], self.targets[:n]
        return Problem(self.name, self.kind, self.model, rows, targets, self.frozen, self.accuracy)

    def explainer(self, cost: str) -> clvq.Explainer:
        return clvq.Explainer(
            self.model, COSTS[cost], constraints=[clvq.Freeze(name) for name in self.frozen]
        )

    def valid(self, answers: Array) -> NDArray[np.bool_]:
        """Which answers have their target, by `predict`, and leave frozen features alone."""
        rows, targets = self.rows[: len(answers)], self.targets[: len(answers)]
        found = np.isfinite(answers).all(axis=1)
        safe = np.where(found[:, None], answers, rows)
        kept = (safe[:, ~self.free] == rows[:, ~self.free]).all(axis=1)
        return found & kept & (self.model.predict(safe) == targets)

    def costs(self, answers: Array, cost: str) -> Array:
        """What each answer costs, (n,)."""
        delta = answers - self.rows[: len(answers)]
        return np.abs(delta).sum(axis=1) if cost == "L1" else (delta**2).sum(axis=1)


def problems(n_rows: int) -> Iterator[Problem]:
    """All six: three data sets, two models each."""
    for load in (cancer, digits, ames):
        split = load()
        prototypes, labels = _prototypes(split)
        for kind in ("GLVQ", "GMLVQ"):
            omega = None if kind == "GLVQ" else _within_class_omega(split)
            model = clvq.PrototypeModel(prototypes, labels, omega, split.feature_names)
            yield _problem(split, kind, model, n_rows)


def cancer() -> Split:
    X, y = load_breast_cancer(return_X_y=True)
    return _projected("cancer", X, y, 5)


def digits() -> Split:
    X, y = load_digits(return_X_y=True)
    return _projected("digits", X, y, 10)


def digit_images() -> Split:
    """The digits as they are: 64 pixels, each from 0 to 16."""
    return _split("digits 1-NN", *load_digits(return_X_y=True))


def ames() -> Split:
    houses = load_ames()
    return _split("Ames", houses.X, houses.target, _scaled, houses.feature_names, AMES_FROZEN)


def other_labels(now: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """For each label another one, drawn evenly with a fixed seed."""
    draw = np.random.default_rng(SEED).integers(1, len(classes), size=len(now))
    return classes[(np.searchsorted(classes, now) + draw) % len(classes)]


def _problem(split: Split, kind: str, model: clvq.PrototypeModel, n_rows: int) -> Problem:
    rows = _rows(split, n_rows)
    targets = other_labels(model.predict(rows), model.classes)
    accuracy = float((model.predict(split.test) == split.test_labels).mean())
    return Problem(split.name, kind, model, rows, targets, split.frozen, accuracy)


def _prototypes(split: Split) -> tuple[Array, list[Any]]:
    prototypes: list[Array] = []
    labels: list[Any] = []
    for label in np.unique(split.train_labels):
        members = split.train[split.train_labels == label]
        means = KMeans(PROTOTYPES_PER_CLASS, n_init=10, random_state=SEED).fit(members)
        prototypes.append(means.cluster_centers_)
        labels += [label] * PROTOTYPES_PER_CLASS
    return np.concatenate(prototypes), labels


def _within_class_omega(split: Split) -> Array:
    """Inverse square root of the covariance within the classes, with ``trace(M) = 1``."""
    centred = split.train.copy()
    for label in np.unique(split.train_labels):
        mine = split.train_labels == label
        centred[mine] -= centred[mine].mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(centred, rowvar=False))
    values = 1.0 / (values + RIDGE * values.mean())
    return vectors @ np.diag(np.sqrt(values / values.sum())) @ vectors.T


def _rows(split: Split, n_rows: int) -> Array:
    """Take the test rows first, then copies of them with a little noise."""
    copies = -(-n_rows // len(split.test))
    rows = np.tile(split.test, (copies, 1))[:n_rows]
    noise = np.random.default_rng(SEED).standard_normal(rows.shape) * split.train.std(axis=0)
    noise[: len(split.test)] = 0.0
    return rows + JITTER * noise


Fit = Callable[[Array], Callable[[Array], Array]]


def _projected(name: str, X: Array, y: NDArray[Any], components: int) -> Split:
    def fit(train: Array) -> Callable[[Array], Array]:
        scaler = StandardScaler().fit(train)
        pca = PCA(components, random_state=SEED).fit(scaler.transform(train))
        return lambda rows: pca.transform(scaler.transform(rows))

    return _split(name, X, y, fit)


def _scaled(train: Array) -> Callable[[Array], Array]:
    return StandardScaler().fit(train).transform


def _split(
    name: str,
    X: Array,
    y: NDArray[Any],
    fit: Fit | None = None,
    feature_names: tuple[str, ...] | None = None,
    frozen: tuple[str, ...] = (),
) -> Split:
    train, test = next(KFold(FOLDS, shuffle=True, random_state=SEED).split(X))
    change = fit(X[train]) if fit else np.asarray
    return Split(name, change(X[train]), y[train], change(X[test]), y[test], feature_names, frozen)
