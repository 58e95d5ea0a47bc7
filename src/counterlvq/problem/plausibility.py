"""Answers that look like the data: inside an ellipsoid that holds a share of their class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, NamedTuple, SupportsIndex, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import Floats, finite_matrix, finite_scalar, key_of, plain, told
from counterlvq.numeric.tolerances import FLAT_DIRECTION
from counterlvq.problem.constraints import Condition, Constraint, Freeze, Linear
from counterlvq.problem.quadratic import Quadratic
from counterlvq.safe_text import shown_repr
from counterlvq.tables.features import FeatureKey, Features
from counterlvq.tables.frames import as_frame, numbers_or_days, settled
from counterlvq.tables.views import FrameView
from counterlvq.types import Kind

__all__ = ["Ellipsoid", "Plausible"]

# Added to the variance of each column of a component, in units of the label's own variances.
_THINNEST = 1e-3
# Columns that it shows of itself.
_MOST_NAMED = 8
# What seeds the generators of NumPy.
_MOST_STATES = 1 << 32


class Ellipsoid(NamedTuple):
    """``|factor (y - center)|^2 <= value`` and ``flat y == level``, for answers of one label."""

    label: Any
    factor: Floats  # (r, k)
    center: Floats  # (k,)
    value: float
    flat: Floats  # (k - r, k) directions in which the rows of the label do not vary
    level: Floats  # (k - r,)
    rows: int  # rows of the table that the component is made of

    @property
    def reach(self) -> Floats:
        """How far it extends from its center along each axis, as far as floats tell, (k,)."""
        both = np.concatenate([self.factor, self.flat])
        size = np.abs(both).max(axis=0, initial=0.0)
        unit = np.where(size > 0, size, 1.0)
        turned = np.linalg.pinv(both / unit) / unit[:, None]
        far = np.linalg.norm(turned[:, : len(self.factor)], axis=1)
        return np.asarray(np.sqrt(self.value) * far)


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class Plausible(Constraint):
    """The answer lies where rows of its label lie (Artelt and Hammer, 2020).

    A mixture of Gaussians is fitted to the rows of each label, with as many components as the
    Bayesian information criterion favours; the answer has to lie in the ellipsoid of at least one
    component of its own label. An ellipsoid is as large as it has to be to hold a share of the
    rows that belong to its component. Columns are those that are numbers, in the user's units;
    features with levels stay as they are. Made by `fit`.

    Each label and component is a convex program under a shared metric, and the cheapest answer of
    all counts: it is the closest in the union, with a proof for every part of it.

    Attributes
    ----------
    ellipsoids : tuple of Ellipsoid
        By label and component: `label`, `factor`, `center`, `value`, `flat`, `level`, `rows`.
    features : tuple of str or int
        The columns that they are about.
    share : float
        Of the rows of a component that its ellipsoid holds.

    Examples
    --------
    >>> import numpy as np
    >>> import counterlvq as clvq
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(size=(50, 2)), rng.normal(size=(50, 2)) + [6.0, 0.0]]
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [6.0, 0.0]], ["no", "yes"])
    >>> likely = clvq.Plausible.fit(X, model=model, share=0.5)
    >>> cf = clvq.Explainer(model, constraints=[likely]).explain([1.0, 0.0], target="yes")
    >>> print(cf.status, bool(cf.x[0] > 4.5))
    optimal True
    """

    ellipsoids: tuple[Ellipsoid, ...]
    features: tuple[FeatureKey, ...]
    share: float

    def __init__(
        self, ellipsoids: Sequence[Ellipsoid], features: Sequence[FeatureKey], share: float
    ) -> None:
        object.__setattr__(self, "ellipsoids", tuple(ellipsoids))
        object.__setattr__(self, "features", tuple(features))
        object.__setattr__(self, "share", share)

    @classmethod
    def fit(
        cls,
        X: Any,
        y: ArrayLike | None = None,
        *,
        model: Any = None,
        share: float = 0.9,
        components: SupportsIndex = 4,
        random_state: int = 0,
    ) -> Plausible:
        """Fit mixtures to a table, one for each label.

        Parameters
        ----------
        X : array-like of shape (n, d), or DataFrame
            Typically the training table. Columns of a frame that are no numbers are left out.
        y : array-like of shape (n,), optional
            The labels of the rows.
        model : object with `predict`, optional
            Labels the rows in the place of `y`: an answer's label is the model's, too. One of the
            two is needed, and both are an error.
        share : float, default 0.9
            Of the rows of a component that its ellipsoid has to hold, above 0 and at most 1.
        components : int, default 4
            How many a label may have at the most.
        random_state : int, default 0
            Of the fit; see `sklearn.mixture.GaussianMixture`.

        Returns
        -------
        Plausible
        """
        if not 0 < finite_scalar("share", share) <= 1:
            raise InvalidInputError(f"share is {share:g}; expected a number above 0, at most 1.")
        if not hasattr(type(components), "__index__") or index(components) < 1:
            raise InvalidInputError(
                f"components is {told(components)}; expected a whole number of at least 1."
            )
        state = index(random_state) if hasattr(type(random_state), "__index__") else -1
        if not 0 <= state < _MOST_STATES:
            raise InvalidInputError(
                f"random_state is {told(random_state)}; expected a whole number from 0 to "
                f"{_MOST_STATES - 1:,}, so that the same table gives the same ellipsoids."
            )
        rows, keys = _numbers(X)
        labels = _labels(X, y, model, len(rows))
        found: list[Ellipsoid] = []
        for label in dict.fromkeys(labels.tolist()):
            mine = rows[labels == label]
            if len(mine) < rows.shape[1] + 2:
                count = f"{len(mine)} row{'s' * (len(mine) != 1)}"
                raise InvalidInputError(
                    f"label {told(label)} has {count}; expected at least "
                    f"{rows.shape[1] + 2}, two more than there are columns. Leave out columns, "
                    f"or take a larger table."
                )
            found += _ellipsoids(mine, label, share, index(components), state)
        return cls(found, keys, float(share))

    def __repr__(self) -> str:
        labels = len({key_of(plain(item.label)) for item in self.ellipsoids})
        count = len(self.ellipsoids)
        names = [shown_repr(key) for key in self.features if isinstance(key, str)]
        more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
        about = f"features=[{', '.join(names[:_MOST_NAMED] + more)}], " if names else ""
        return (
            f"Plausible({count} ellipsoid{'s' * (count != 1)} of {labels} "
            f"label{'s' * (labels != 1)}, {about}share={self.share:g})"
        )

    @property
    def is_stated(self) -> bool:
        """Whether `conditions` says all that it asks for: it says nothing of unions."""
        return False

    def conditions(self, features: Features) -> tuple[Condition, ...]:
        """State what holds of every answer: features with levels stay; see `parts`."""
        for key in self.features:
            features.number(key, "Plausible")
        return tuple(part for item in self._held(features) for part in item.conditions(features))

    def _held(self, features: Features) -> list[Constraint]:
        levels = [feature.name for feature in features if not feature.is_number]
        return [Freeze(*levels)] if levels else []

    def of(self, label: Any) -> list[Ellipsoid]:
        """List the components of a label."""
        key = key_of(plain(label))
        return [item for item in self.ellipsoids if key_of(plain(item.label)) == key]

    def parts(self, label: Any, features: Features) -> list[tuple[Constraint, ...]]:
        """State for each component of a label what an answer in it has to respect."""
        held = self._held(features)
        at = [features.number(key, "Plausible") for key in self.features]
        out: list[tuple[Constraint, ...]] = []
        for item in self.of(label):
            stated: list[Constraint] = [*held]
            if len(item.factor):
                stated.append(
                    Quadratic.from_factor(item.factor, item.value, item.center, features=at)
                )
            for row, level in zip(item.flat, item.level.tolist(), strict=True):
                coefficients: dict[FeatureKey, float] = {
                    at[c]: float(row[c]) for c in np.flatnonzero(row).tolist()
                }
                stated.append(Linear(coefficients, "==", level))
            out.append(tuple(stated))
        return out


def _numbers(X: Any) -> tuple[Floats, list[FeatureKey]]:
    """Read the columns of a table that are numbers, and what they are called."""
    frame = as_frame(settled(X))
    if frame is None:
        rows = finite_matrix("X", X)
        return rows, list(range(rows.shape[1]))
    numeric = [
        name for name in frame.names if frame.kind(name) in (Kind.REAL, Kind.WHOLE, Kind.DATE)
    ]
    if not numeric:
        raise InvalidInputError("X has no column of numbers; expected at least one.")
    columns = [_finite_column(frame, name) for name in numeric]
    return finite_matrix("X", np.stack(columns, axis=1)), list(numeric)


def _finite_column(frame: FrameView, name: str) -> Floats:
    """Read a column of numbers, and name the first cell that is none."""
    values = numbers_or_days(frame, name, frame.kind(name))
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        at, count = int(bad[0]), f"{bad.size} such value{'s' * (bad.size != 1)}"
        what = "missing" if np.isnan(values[at]) else f"{values[at]:g}"
        raise InvalidInputError(
            f"Plausible.fit: column {shown_repr(name)}, {frame.row(at)} is {what} ({count} in that "
            f"column); expected a finite number in each row. Fill it in, or leave out the row or "
            f"the column."
        )
    return values


def _labels(X: Any, y: ArrayLike | None, model: Any, count: int) -> NDArray[Any]:
    if y is None and not hasattr(model, "predict"):
        raise InvalidInputError(
            "Plausible.fit has neither labels nor a model that predicts them; expected y=..., or "
            "model=... whose `predict` labels the rows of X."
        )
    if y is not None and model is not None:
        raise InvalidInputError(
            "Plausible.fit has both y and model, and rows are labelled by one of them; expected y "
            "for their own labels, or model for what it predicts, as the labels of answers are."
        )
    labels = np.asarray(model.predict(X) if y is None else y)
    if labels.shape != (count,):
        raise InvalidInputError(
            f"y has shape {labels.shape}; expected ({count},), one label for each row of X."
        )
    return labels


def _ellipsoids(
    rows: Floats, label: Any, share: float, most: int, random_state: int
) -> list[Ellipsoid]:
    """Fit a mixture to the rows of one label, in the directions in which they vary."""
    middle, size = rows.mean(axis=0), rows.std(axis=0)
    varies = size > FLAT_DIRECTION * np.abs(middle)
    unit = np.where(varies, size, 1.0)
    seen = np.where(varies, (rows - middle) / unit, 0.0)
    _, spread, turned = np.linalg.svd(seen, full_matrices=True)
    rank = int((spread > FLAT_DIRECTION * np.sqrt(len(rows)) * max(seen.shape)).sum())
    along, across = turned[:rank], turned[rank:]
    flat = _cleaned(across) / unit
    level = np.array([float(row @ middle) for row in flat])
    if not rank:
        blank = np.zeros((0, rows.shape[1]))
        return [Ellipsoid(label, blank, middle, 0.0, flat, level, len(rows))]
    mixture, points = _mixture(seen @ along.T, most, random_state), seen @ along.T
    own = mixture.predict(points)
    out = []
    for c in range(mixture.n_components):
        mine = points[own == c]
        if not len(mine):
            continue
        root = np.asarray(mixture.precisions_cholesky_[c]).T
        far = (((mine - mixture.means_[c]) @ root.T) ** 2).sum(axis=1)
        value = float(np.quantile(far, share, method="inverted_cdf"))
        center = middle + unit * (mixture.means_[c] @ along)
        out.append(Ellipsoid(label, root @ along / unit, center, value, flat, level, len(mine)))
    return out


def _cleaned(rows: Floats) -> Floats:
    """Directions as a reduced echelon form has them: a column that never varies stands alone."""
    out = np.array(rows)
    used = 0
    for column in range(out.shape[1]):
        if used == len(out):
            break
        pivot = used + int(np.abs(out[used:, column]).argmax())
        if abs(out[pivot, column]) <= FLAT_DIRECTION:
            continue
        out[[used, pivot]] = out[[pivot, used]]
        out[used] /= out[used, column]
        for other in range(len(out)):
            if other != used:
                out[other] -= out[other, column] * out[used]
        used += 1
    out[np.abs(out) <= FLAT_DIRECTION] = 0.0
    return out


def _mixture(points: Floats, most: int, random_state: int) -> Any:
    """Fit with as many components as the Bayesian information criterion favours."""
    from sklearn.mixture import GaussianMixture

    best: Any = None
    least = np.inf
    for count in range(1, most + 1):
        if count > 1 and len(points) < count * (points.shape[1] + 2):
            break
        fitted = GaussianMixture(count, reg_covar=_THINNEST, random_state=random_state).fit(points)
        # A heap of fewer rows than it takes to have a shape is a needle that holds little else.
        sizes = np.bincount(fitted.predict(points), minlength=count)
        score = float(fitted.bic(points))
        if score < least and (count == 1 or sizes.min() >= points.shape[1] + 2):
            best, least = fitted, score
    return best
