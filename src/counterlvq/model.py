"""The classifier that is explained: the label of the nearest prototype wins."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.markup.columns import features_card
from counterlvq.markup.parts import Fact
from counterlvq.numeric.arrays import (
    Floats,
    finite_matrix,
    key_of,
    plain,
    read_only,
    told,
)
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.metrics import checked_offsets, checked_omegas, with_blank_row
from counterlvq.numeric.prototype_metric import FEW_ROWS, PrototypeMetric
from counterlvq.numeric.restatement_error import Blur
from counterlvq.numeric.tolerances import CLOSE_CALL, COARSEST_UNIT, EPSILON, TINY_SQUARE, UNIT
from counterlvq.safe_text import shown_repr
from counterlvq.tables.encoding import plain_rows
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features
from counterlvq.tables.labels import checked_labels, distinct_labels
from counterlvq.tables.reference import Reference
from counterlvq.types import Meaning, Response, Scores

__all__ = ["PrototypeModel"]

# Classes that a notebook names.
_SHOWN_CLASSES = 20
# Rows x prototypes looked at together by `predict`; bounds its memory, not its result.
_BLOCK_ENTRIES = 1 << 22
# The same for the look at their rounding: in the cache, and below what allocators map anew each
# time, from 128 KiB on, where they are told to give memory back (workers of Dask).
_CHECKED_ENTRIES = 1 << 14
# Multiplications in one product with a shared factor, if that leaves rows enough: for more, BLAS
# starts threads of its own, which cost more than they gain and stand in the way of a batch's.
_PRODUCT = 1 << 18
_ROWS_ENOUGH = 256


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class PrototypeModel(PrototypeMetric):
    """Labelled prototypes with a quadratic metric; the nearest prototype decides.

    The distance of `x` to prototype k is ``|omega_k (x - prototype_k)|^2``; for a diagonal
    metric, whose omega is a vector, the product is taken feature by feature. Between
    equally near prototypes the one that stands first wins. Which one is nearest is decided
    exactly: where rounding could decide, the distances are compared in exact arithmetic.

    Parameters
    ----------
    prototypes : array-like of shape (p, d)
        One row per prototype.
    labels : array-like of shape (p,)
        The class of each prototype, of any type NumPy can hold.
    omegas : None, array-like of shape (d,) or (r, d), or p arrays of shape (r_k, d)
        Factor of the metric: none (plain Euclidean), one shared by all prototypes, or
        one for each. Any rank and any number of rows. One number per feature is a diagonal
        metric: the same as the matrix with them on its diagonal, in memory that grows with d
        and not with its square.
    feature_names : sequence of str, optional
        One name per column; x0, x1, ... by default.
    offsets : array-like of shape (p,), optional
        Added to the squared distance of each prototype, at least 0: how far off the prototype
        lies in directions that no input moves in, or a score, see `meaning`. None by default.
    meaning : Meaning, optional
        What the prototypes stand for, and whether distances are genuine ones or scores of which
        only differences count. Prototypes and distances by default.

    Attributes
    ----------
    classes : ndarray
        The distinct labels, sorted where they can be.
    features : Features
        The names of the columns.
    blur : Blur or None
        For a model that states another one in other coordinates: how far its distances may be
        from that one's.
    reference : Reference or None
        A summary of the training table, where one was saved with the model.

    Examples
    --------
    >>> model = PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"])
    >>> model.distances([[1.0, 0.0]])
    array([[1., 9.]])
    >>> model.predict([[1.0, 0.0], [3.0, 1.0]])
    array(['no', 'yes'], dtype='<U3')
    """

    prototypes: Floats  # (p, d)
    labels: NDArray[Any]  # (p,)
    omegas: Floats | tuple[Floats, ...] | None  # None, (d,), (r, d), or p of (r_k, d)
    features: Features
    classes: NDArray[Any]
    offsets: Floats | None  # (p,)
    meaning: Meaning
    blur: Blur | None
    reference: Reference | None
    _referee: Callable[[Floats], NDArray[np.intp]] | None

    def __init__(
        self,
        prototypes: ArrayLike,
        labels: ArrayLike,
        omegas: ArrayLike | Sequence[ArrayLike] | None = None,
        feature_names: Sequence[str | Feature] | None = None,
        offsets: ArrayLike | None = None,
        meaning: Meaning | None = None,
    ) -> None:
        points = finite_matrix("prototypes", prototypes)
        count, width = points.shape
        checked = checked_labels(labels, count)
        features = _checked_features(feature_names, width)
        object.__setattr__(self, "prototypes", points)
        object.__setattr__(self, "labels", checked)
        factors = checked_omegas(omegas, count, width)
        if offsets is not None and not isinstance(factors, tuple):
            factors = with_blank_row(factors, width)
        object.__setattr__(self, "omegas", factors)
        object.__setattr__(self, "offsets", checked_offsets(offsets, count))
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "classes", read_only(distinct_labels(checked)))
        object.__setattr__(self, "meaning", _checked_meaning(meaning, len(self.classes)))
        object.__setattr__(self, "blur", None)
        object.__setattr__(self, "reference", None)
        object.__setattr__(self, "_referee", None)

    def elsewhere_each(
        self, points: Floats, omegas: Floats, features: Sequence[Features]
    ) -> list[PrototypeModel]:
        """Return models with the same labels, but other prototypes and other shared factors.

        For models of which many are made: `points` (n, p, d) and `omegas` (n, r, d) are known to
        be finite. What a model works out from them is worked out for all at once, to the same
        last bit. There are no offsets.

        Examples
        --------
        >>> model = PrototypeModel([[0.0], [3.0]], ["no", "yes"], [[1.0]])
        >>> points, omegas = np.array([[[2.0], [6.0]]]), np.array([[[0.5]]])
        >>> (there,) = model.elsewhere_each(points, omegas, [model.features])
        >>> there.distances([[2.0]]), there.labels.tolist()
        (array([[0., 4.]]), ['no', 'yes'])
        """
        kept = {name: getattr(self, name) for name in ("labels", "classes", "meaning")}
        kept |= dict.fromkeys(("offsets", "blur", "reference", "_referee"))
        kept["class_index"] = self.class_index
        worked_out = {
            "prototypes": np.array(points, order="C"),
            "omegas": np.array(omegas, order="C"),
            **self.worked_out_each(points, omegas),
        }
        found = list[PrototypeModel]()
        for k, listed in enumerate(features):
            out = object.__new__(PrototypeModel)
            out.__dict__.update(kept)
            out.__dict__["features"] = listed
            for name, values in worked_out.items():
                out.__dict__[name] = read_only(values[k])
            found.append(out)
        return found

    def __repr__(self) -> str:
        kind = "local" if self.is_local else "shared"
        return (
            f"PrototypeModel({self.n_prototypes} prototypes, {self.n_features} features, "
            f"{len(self.classes)} classes, {kind} metric)"
        )

    def _repr_html_(self) -> str:
        """Show the model in a notebook."""
        counts = np.bincount(self.class_index, minlength=len(self.classes))
        named = zip(map(shown_repr, self.classes[:_SHOWN_CLASSES].tolist()), counts, strict=False)
        more = ", …" if len(self.classes) > _SHOWN_CLASSES else ""
        facts = (
            Fact(f"{self.meaning.part}s".capitalize(), f"{self.n_prototypes:,}"),
            Fact("Classes", ", ".join(f"{label} ({count:,})" for label, count in named) + more),
            Fact("Metric", "one for each" if self.is_local else "one for all"),
        )
        return features_card("PrototypeModel", facts, self.features)

    @cached_property
    def class_index(self) -> NDArray[np.intp]:
        """Position of each prototype's label in `classes`, (p,)."""
        if self.labels.dtype != object:
            return read_only(np.searchsorted(self.classes, self.labels))
        positions = {key_of(label): c for c, label in enumerate(self.classes.tolist())}
        return read_only(np.array([positions[key_of(label)] for label in self.labels.tolist()]))

    @cached_property
    def class_keys(self) -> frozenset[Hashable]:
        """What stands for the labels in a set."""
        return frozenset(map(key_of, self.classes))

    def distances(self, X: ArrayLike) -> Floats:
        """Squared distance of each row to each prototype.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n, p)

        Examples
        --------
        >>> PrototypeModel([[0.0], [3.0]], [0, 1], omegas=[[2.0]]).distances([[1.0]])
        array([[ 4., 16.]])
        """
        return self.distances_of_checked(plain_rows("X", X, self.features))

    def nearest(self, X: ArrayLike) -> NDArray[np.intp]:
        """Index of the nearest prototype of each row, (n,)."""
        return self.nearest_of_checked(plain_rows("X", X, self.features))

    def nearest_of_checked(self, rows: Floats) -> NDArray[np.intp]:
        """As `nearest`, for rows that are known to be finite and of the right width."""
        if not len(rows):
            return np.zeros(0, dtype=np.intp)
        with np.errstate(over="ignore", invalid="ignore"):  # which is decided without rounding
            found = [self._nearest(block) for block in self._blocks(rows)]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _copied(self) -> PrototypeModel:
        """As `copy.copy`, in a fifth of the time: of some models many are made."""
        out = object.__new__(PrototypeModel)
        out.__dict__.update(self.__dict__)
        return out

    def refereed(self, by: Callable[[Floats], NDArray[np.intp]]) -> PrototypeModel:
        """Return a model that asks `by` for the nearest prototype wherever two are equally near.

        A model that is another one in other coordinates has its distances but for rounding,
        and on a grid ties are common: there the other one has the last word.
        """
        out = self._copied()
        object.__setattr__(out, "_referee", by)
        return out

    def widened(self, name: str) -> PrototypeModel:
        """Put a column behind all others that no distance depends on."""
        blank = np.zeros((self.n_prototypes, 1))
        omegas: Any = np.ones(self.n_features) if self.omegas is None else self.omegas
        if isinstance(omegas, tuple):
            omegas = [np.hstack([F, np.zeros((len(F), 1))]) for F in omegas]
        elif omegas.ndim == 1:
            omegas = np.append(omegas, 0.0)
        else:
            omegas = np.hstack([omegas, np.zeros((len(omegas), 1))])
        names = (*self.features.names, name)
        out = PrototypeModel(
            np.hstack([self.prototypes, blank]), self.labels, omegas, names, self.offsets,
            self.meaning,
        )  # fmt: skip
        return out if self.blur is None else out.blurred(self.blur.widened())

    def with_reference(self, reference: Reference | None) -> PrototypeModel:
        """Return the same model with a summary of its training table."""
        out = self._copied()
        object.__setattr__(out, "reference", reference)
        return out

    def blurred(self, by: Blur) -> PrototypeModel:
        """Return a model that says how far its distances may be from those that are meant."""
        out = self._copied()
        object.__setattr__(out, "blur", by)
        return out

    def responding(
        self, response: Response | None, labels: NDArray[Any] | None = None
    ) -> PrototypeModel:
        """Return a model with a response, whose `label` is a position in `labels`.

        In `classes` by default.
        """
        if response is not None and labels is not None:
            keys = [key_of(label) for label in self.classes.tolist()]
            at = keys.index(key_of(plain(labels[response.label])))
            response = replace(response, label=at)
        return self._meaning(replace(self.meaning, response=response))

    def rounded_by(self, unit: float | None) -> PrototypeModel:
        """Return a model that remembers the unit of rounding of another `predict`."""
        return self._meaning(replace(self.meaning, unit=unit))

    def _meaning(self, meaning: Meaning) -> PrototypeModel:
        out = self._copied()
        object.__setattr__(out, "meaning", _checked_meaning(meaning, len(self.classes)))
        return out

    def require_distances(self, what: str) -> None:
        """Refuse `what`, which needs squared distances, if the scores of this model are none.

        Examples
        --------
        >>> from counterlvq.types import Meaning, Response, Scores
        >>> scores = Meaning("class", Scores.SHIFTED)
        >>> model = PrototypeModel([[0.0], [4.0]], ["no", "yes"], meaning=scores)
        >>> model.require_distances("relative similarity")
        Traceback (most recent call last):
        counterlvq.errors.NotSupportedError: relative similarity needs squared distances, ...
        """
        if self.meaning.scores is Scores.ANGLE:
            raise NotSupportedError(
                f"{what} needs squared distances, and this model compares angles; expected a "
                f"model of prototypes with distances. Ask for a margin instead."
            )
        if self.meaning.scores is Scores.SHIFTED:
            raise NotSupportedError(
                f"{what} needs squared distances, and the scores of this model are known up to a "
                f"common shift only, so that their differences mean something and their sizes do "
                f"not; expected a model of prototypes. Ask for a margin between scores instead."
            )

    @property
    def is_refereed(self) -> bool:
        """Whether another model has the last word where two prototypes are equally near."""
        return self._referee is not None

    def _nearest(self, rows: Floats) -> NDArray[np.intp]:
        scores = self._distances(rows)
        nearest: NDArray[np.intp] = scores.argmin(axis=1)
        if self._referee is not None:
            close = self.about_as_near(rows, scores, nearest).sum(axis=1) > 1
            if close.any():
                nearest[close] = self._referee(rows[close])
            return nearest
        if self.is_local or self.n_prototypes < 2:
            unclear: NDArray[np.intp] | slice = slice(None)
        elif rows.shape[0] <= FEW_ROWS:
            if self._are_clear(rows, scores):
                return nearest
            unclear = slice(None)
        else:
            unclear = np.flatnonzero(~self._clear(rows, scores, nearest))
        nearest[unclear] = self._decided(rows[unclear], scores[unclear], nearest[unclear])
        return nearest

    def _are_clear(self, rows: Floats, scores: Floats) -> bool:
        """As `_clear` for all of a few rows, in a fraction of the time."""
        e, share = [0.0] * rows.shape[0], self.share_of_error
        if self.omegas is not None:
            e = (self.projection_errors(rows) + self.largest_anchor_error).tolist()
        pairs = np.partition(scores, 1, axis=1)[:, :2].tolist()
        return all(_is_clear(a, b, most, share) for (a, b), most in zip(pairs, e, strict=True))

    def _clear(self, rows: Floats, scores: Floats, nearest: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which rows no rounding could have decided, (n,).

        A quick look at the two nearest prototypes, with the largest of all errors. `scores` are
        changed for the time being.
        """
        at = np.arange(rows.shape[0])
        first = scores[at, nearest]
        scores[at, nearest] = np.inf
        second = scores[at, scores.argmin(axis=1)]  # a fourth of the time of `min`
        scores[at, nearest] = first
        e: Floats | float = 0.0
        if self.omegas is not None:
            e = self.projection_errors(rows) + self.largest_anchor_error
        return np.asarray(_is_clear(first, second, e, self.share_of_error))

    @property
    def share_of_error(self) -> float:
        """What a sum of squares may be off by, as a share of itself."""
        width = 0 if self.omegas is None else self.anchors.shape[1]
        return (max(self.n_features, width) + 8) * UNIT

    @cached_property
    def largest_anchor_error(self) -> float:
        """The largest of the `anchor_errors`."""
        return float(self.anchor_errors.max())

    def about_as_near(
        self, rows: Floats, scores: Floats, nearest: NDArray[np.intp]
    ) -> NDArray[np.bool_]:
        """Which prototypes may be as near as the nearest ones to whoever decides, (n, p).

        By a share of the distances, and by what these are off by: next to nothing is no share.
        """
        errors, at = self.distance_errors(rows, scores), np.arange(rows.shape[0])
        if self.blur is not None:
            errors = errors + self.blur.of_scores(rows)
        least, most = scores[at, nearest], scores[at, nearest] + errors[at, nearest]
        # Written so that distances that are no numbers, after an overflow, are close.
        is_clear = (scores - errors > most[:, None]) & (
            scores - least[:, None] > CLOSE_CALL * scores
        )
        return np.asarray(~is_clear)

    def _decided(self, rows: Floats, scores: Floats, nearest: NDArray[np.intp]) -> NDArray[np.intp]:
        """Put right what rounding could have decided."""
        out, size = nearest.copy(), max(1, _CHECKED_ENTRIES // self.n_prototypes)
        for start in range(0, rows.shape[0], size):
            part = slice(start, start + size)
            errors, at = self.distance_errors(rows[part], scores[part]), np.arange(len(out[part]))
            most = (scores[part][at, nearest[part]] + errors[at, nearest[part]])[:, None]
            # Written so that a distance that is no number, after an overflow, may be the least.
            near = ~(np.subtract(scores[part], errors, out=errors) > most)
            for i in np.flatnonzero(near.sum(axis=1) > 1):
                out[start + i] = self._nearest_exactly(rows[start + i], np.flatnonzero(near[i]))
        return out

    def _nearest_exactly(self, x: Floats, among: NDArray[np.intp]) -> int:
        """Return the first of the listed prototypes that no other is nearer than."""
        # A copy of an earlier prototype ties with it and comes second.
        among = np.unique(self.first_copies[among])
        if among.size == 1:
            return int(among[0])
        return int(min(among.tolist(), key=lambda k: (self.exact_distance(x, k), k)))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label of the nearest prototype of each row.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)

        Examples
        --------
        >>> PrototypeModel([[0.0], [3.0]], [False, True]).predict([[1.0], [2.0]])
        array([False,  True])
        """
        labels: NDArray[Any] = self.labels[self.nearest(X)]
        return labels

    def _blocks(self, rows: Floats) -> Iterator[Floats]:
        size = max(1, _BLOCK_ENTRIES // max(self.n_prototypes, self.n_features))
        if isinstance(self.omegas, np.ndarray):
            size = min(size, max(_ROWS_ENOUGH, _PRODUCT // self.omegas.size))
        for start in range(0, rows.shape[0], size):
            yield rows[start : start + size]


def _is_clear(first: Any, second: Any, e: Any, share: float) -> Any:
    """Whether the nearest prototype is it for sure, by the scores of the two nearest.

    With an error e before squaring, ``s - 2 sqrt(s) e - e^2`` grows with s from ``sqrt(s) = e``
    on: whatever is farther away than the second is clear if that is. Of numbers or of arrays.
    """
    root = second**0.5
    error = 2.0 * root * e + e * e + share * second + TINY_SQUARE
    # Twice that: once for the nearest, whose own error is less, and once for the second.
    return (second < np.inf) & (root > 2.0 * e) & (second - first > 2.0 * error)


def _checked_features(names: Sequence[str | Feature] | None, width: int) -> Features:
    if names is None:
        return Features.numbered(width)
    if isinstance(names, str):
        raise InvalidInputError(
            f"feature_names is the string {names!r}; expected a list of names, one per feature."
        )
    features = Features(names)
    if len(features) != width:
        raise InvalidInputError(
            f"feature_names has {len(features)} names; expected {width}, one per column of "
            f"prototypes."
        )
    return features


def _checked_meaning(meaning: Meaning | None, classes: int) -> Meaning:
    if meaning is None:
        return Meaning()
    if not isinstance(meaning, Meaning):
        raise InvalidInputError(
            f"meaning is {told(meaning)}; expected a Meaning of counterlvq.types, or None."
        )
    if meaning.response is not None and (classes != 2 or meaning.response.label not in (0, 1)):
        raise InvalidInputError(
            f"meaning has a response for label {meaning.response.label} of {classes} classes; "
            f"expected 0 or 1 of two classes. With more, no single number decides."
        )
    if meaning.odds is not None and not 0 < meaning.odds < np.inf:
        raise InvalidInputError(
            f"meaning has the odds {meaning.odds!r}; expected a finite number above 0, or None."
        )
    if meaning.unit is not None and not EPSILON <= meaning.unit < COARSEST_UNIT:
        raise InvalidInputError(
            f"meaning has the unit of rounding {meaning.unit!r}; expected a number from "
            f"{EPSILON:g} to below {COARSEST_UNIT:g}, or None."
        )
    return meaning
