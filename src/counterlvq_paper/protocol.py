"""The paper's protocol: data sets, folds, models, and what is asked of each test row.

Everything follows from the settings and one seed, so that a run can be cut into pieces, stopped
and taken up again, and every piece sees the same rows, models and wishes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from time import process_time
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import counterlvq as clvq
from counterlvq.datasets import load_ames

__all__ = [
    "DATA_SETS",
    "FOLDS",
    "FULL",
    "HOUSE",
    "MODELS",
    "QUICK",
    "SEED",
    "Case",
    "Fitted",
    "Fold",
    "Settings",
    "case_of",
    "fit",
    "fold_of",
    "fold_of_house",
]

Array = NDArray[np.float64]

SEED: Final = 0
FOLDS: Final = 4
PROTOTYPES_PER_CLASS: Final = 3
DATA_SETS: Final = ("cancer", "digits", "Ames")
MODELS: Final = ("GLVQ", "GMLVQ", "LGMLVQ")
COMPONENTS: Final = {"cancer": 5, "digits": 10}
FROZEN: Final = ("wood_deck", "open_porch", "three_season_porch", "screen_porch", "pool_area")
# The house of the paper's Table 2 in the table that ships with the package: no basement,
# 1120 square feet on the first floor and 468 on the second, as printed there.
HOUSE: Final = 1374


@dataclass(frozen=True)
class Settings:
    """How much of the protocol is run."""

    name: str
    folds: tuple[int, ...]  # which of the four
    rows: int | None  # test rows per fold for the methods that take every row; None: all
    compared: int  # rows per fold that every method answers
    limit: float  # seconds per row that "global" has under local metrics
    peer_rows: int  # rows per data set and model for another library


FULL: Final = Settings("full", (0, 1, 2, 3), None, 25, 30.0, 12)
QUICK: Final = Settings("quick", (0,), 6, 2, 30.0, 1)


@dataclass(frozen=True, eq=False)
class Fold:
    """One cut of a data set, in the space that the models live in."""

    data: str
    number: int
    train: Array
    train_labels: NDArray[Any]
    test: Array
    test_labels: NDArray[Any]
    ids: NDArray[np.int64]  # row numbers of the test rows in the data set
    scale: Array  # deviations by which the columns were divided
    feature_names: tuple[str, ...] | None
    frozen: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit leaves behind."""

    prototypes: Array  # (p, d)
    labels: NDArray[Any]  # (p,)
    omegas: Array | None  # (r, d), (p, r, d), or None for plain distances
    accuracy: float  # on the test rows
    seconds: float  # of the processor

    def model(self, feature_names: tuple[str, ...] | None) -> clvq.PrototypeModel:
        """Make a model of it that can be asked."""
        omegas = self.omegas
        matrices = list(omegas) if omegas is not None and omegas.ndim == 3 else omegas
        return clvq.PrototypeModel(self.prototypes, self.labels, matrices, feature_names)


@dataclass(frozen=True, eq=False)
class Case:
    """A fitted model with the test rows of its fold and what is wished for each.

    The wish is always a class other than the one the model gives the row, so that no row has it
    already.
    """

    fold: Fold
    name: str  # of the model
    fitted: Fitted
    rows: Array  # (n, d), the compared ones first
    ids: NDArray[np.int64]  # (n,)
    targets: NDArray[Any]  # (n,)
    n_compared: int

    @cached_property
    def model(self) -> clvq.PrototypeModel:
        """The model of this case."""
        return self.fitted.model(self.fold.feature_names)

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Features that may change, (d,)."""
        return ~np.isin(self.model.features.names, self.fold.frozen)

    def explainer(self, method: str, limit: float | None = None) -> clvq.Explainer:
        """Manhattan cost; what is frozen stays."""
        constraints = [clvq.Freeze(*self.fold.frozen)] if self.fold.frozen else []
        return clvq.Explainer(
            self.model, clvq.Manhattan(), constraints, method=method, time_limit=limit
        )

    def valid(self, at: NDArray[np.int64], answers: Array) -> NDArray[np.bool_]:
        """Which answers to the rows at these places have the target and keep what is frozen."""
        rows = self.rows[at]
        found: NDArray[np.bool_] = np.asarray(np.isfinite(answers).all(axis=1))
        safe = np.where(found[:, None], answers, rows)
        kept = np.all(safe[:, ~self.free] == rows[:, ~self.free], axis=1)
        labelled = self.model.predict(safe) == self.targets[at]
        return np.asarray(found & kept & labelled)

    def costs(self, at: NDArray[np.int64], answers: Array) -> Array:
        """Manhattan distances of answers to the rows at these places, (n,)."""
        total: Array = np.abs(answers - self.rows[at]).sum(axis=1)
        return total


@cache
def fold_of(data: str, number: int) -> Fold:
    """Cut a data set; scaler and principal components see the training rows only.

    On one thread: with several, the last digits of the components depend on their number.
    """
    with threadpool_limits(1):
        return _cut(data, number)


def _cut(data: str, number: int) -> Fold:
    from sklearn.decomposition import PCA
    from sklearn.model_selection import KFold
    from sklearn.preprocessing import StandardScaler

    X, y, names = _raw(data)
    train, test = list(KFold(FOLDS, shuffle=True, random_state=SEED).split(X))[number]
    scaler = StandardScaler().fit(X[train])
    change: Callable[[Array], Array] = scaler.transform
    if data in COMPONENTS:
        pca = PCA(COMPONENTS[data], random_state=SEED).fit(scaler.transform(X[train]))

        def change(rows: Array) -> Array:
            projected: Array = pca.transform(scaler.transform(rows))
            return projected

    frozen = FROZEN if data == "Ames" else ()
    return Fold(
        data, number, change(X[train]), y[train], change(X[test]), y[test],
        test.astype(np.int64), np.asarray(scaler.scale_), names, frozen,
    )  # fmt: skip


def fold_of_house() -> Fold:
    """Find the fold of the houses that has the paper's house among its test rows."""
    folds = (fold_of("Ames", number) for number in range(FOLDS))
    return next(fold for fold in folds if HOUSE in fold.ids)


def _raw(data: str) -> tuple[Array, NDArray[Any], tuple[str, ...] | None]:
    if data == "Ames":
        houses = load_ames()
        return houses.X, houses.target, houses.feature_names
    from sklearn.datasets import load_breast_cancer, load_digits

    X, y = (load_breast_cancer if data == "cancer" else load_digits)(return_X_y=True)
    return np.asarray(X, dtype=np.float64), np.asarray(y), None


def fit(fold: Fold, name: str) -> Fitted:
    """Train one of the three models with its default settings."""
    kinds = {"GLVQ": clvq.GLVQ, "GMLVQ": clvq.GMLVQ, "LGMLVQ": clvq.LGMLVQ}
    start = process_time()
    estimator = kinds[name](prototypes_per_class=PROTOTYPES_PER_CLASS, random_state=SEED)
    estimator.fit(fold.train, fold.train_labels)
    seconds = process_time() - start
    omegas = None if name == "GLVQ" else np.asarray(estimator.omegas_, dtype=np.float64)
    accuracy = float((estimator.predict(fold.test) == fold.test_labels).mean())
    return Fitted(estimator.prototypes_, estimator.prototype_labels_, omegas, accuracy, seconds)


def case_of(fold: Fold, name: str, fitted: Fitted, settings: Settings) -> Case:
    """Choose the rows to ask about and what is wished for each."""
    order = np.random.default_rng([SEED, fold.number]).permutation(len(fold.ids))
    compared, others = order[: settings.compared], order[settings.compared : settings.rows]
    chosen = np.concatenate([np.sort(compared), np.sort(others)])
    rows, ids = fold.test[chosen], fold.ids[chosen]
    model = fitted.model(fold.feature_names)
    draws = np.random.default_rng([SEED, FOLDS]).integers(
        1, len(model.classes), size=len(fold.train) + len(fold.test)
    )
    targets = _other_labels(model.predict(rows), model.classes, draws[ids])
    return Case(fold, name, fitted, rows, ids, targets, len(compared))


def _other_labels(
    now: NDArray[Any], classes: NDArray[Any], draws: NDArray[np.int64]
) -> NDArray[Any]:
    """For each label the one that follows so many classes later; a draw belongs to a row."""
    other: NDArray[Any] = classes[(np.searchsorted(classes, now) + draws) % len(classes)]
    return other
