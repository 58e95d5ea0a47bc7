"""How far rows are from another label: exact distances, beside a certificate that costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.certificates.acceptance import Acceptance
from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, finite_vector, key_of, plain, read_only, told
from counterlvq.numeric.tolerances import CLOSE_CALL, SAFE, UNIT
from counterlvq.presentation.question_cards import Listing, question_card
from counterlvq.problem.chebyshev import Chebyshev
from counterlvq.problem.cost_terms import Prices
from counterlvq.problem.costs import Cost, Euclidean, Manhattan
from counterlvq.questions.protocol import Asks
from counterlvq.tables.frames import new_frame
from counterlvq.types import Scores

__all__ = ["Robustness", "robustness"]

NORMS: Mapping[str, type[Manhattan] | type[Euclidean] | type[Chebyshev]] = {
    "l1": Manhattan, "l2": Euclidean, "linf": Chebyshev,
}  # fmt: skip
# Columns, or labels, that an error names.
_MOST_NAMED = 8


# Said where scores are no distances.
_NO_CERTIFICATE = "no quick certificate: the scores of this model are no distances"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Robustness:
    """Distances of rows to the nearest input with another label, by norm: "l1", "l2", "linf".

    Attributes
    ----------
    right : ndarray of bool, shape (n,)
        Rows that the model labels as they are labelled; all of them without labels.
    is_labelled : bool
        Whether labels were given. Without them `right` says nothing, and shares are about labels
        as the model says them.
    distance : mapping from str to ndarray of shape (n,)
        Of the closest input with another label that was found; inf if there is none.
    certified : mapping from str to ndarray of shape (n,)
        Within which it is proved that no input has another label. Under shared metrics this is
        `distance` but for rounding.
    hypothesis_margin : mapping from str to ndarray of shape (n,)
        A radius that is certain as well and takes no search: for each rival, how much farther it
        is than the nearest prototype of the row's label, divided by the sum of the factors by
        which their metrics stretch (for "linf" a bound on them, which is exact for diagonal
        metrics). Behind steps it is less by what rounding in them may hide. NaN where the scores
        of a model are no distances.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"])
    >>> found = clvq.robustness(clvq.Explainer(model), [[1.0, 0.0], [3.5, 2.0]], ["no", "yes"])
    >>> found.distance["l2"].round(4).tolist(), found.share(1.2)
    ([1.0, 1.5], 0.5)
    """

    right: NDArray[np.bool_]
    distance: Mapping[str, Floats]
    certified: Mapping[str, Floats]
    hypothesis_margin: Mapping[str, Floats]
    is_labelled: bool = True
    make_frame: Callable[[dict[str, Any]], Any] = field(default=new_frame, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Travel with the mappings themselves: views of them cannot be pickled."""
        return {
            name: dict(value) if isinstance(value, MappingProxyType) else value
            for name, value in self.__dict__.items()
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        kept = {n: MappingProxyType(v) if isinstance(v, dict) else v for n, v in state.items()}
        self.__dict__.update(kept)

    @property
    def headline(self) -> str:
        """How many rows there are, and what their labels are."""
        count = f"{len(self.right):,} row{'' if len(self.right) == 1 else 's'}"
        if not self.is_labelled:
            return f"{count}, labels as the model says"
        return f"{count}, {self.right.mean():.1%} right"

    def share(self, radius: float, norm: str = "l2") -> float:
        """Share of rows that are right, and proved to stay so within a radius."""
        return float(self.curve([radius], norm)[0])

    def curve(self, radii: ArrayLike, norm: str = "l2", by: str = "certified") -> Floats:
        """Share of rows that are right and farther than each radius from another label.

        Parameters
        ----------
        radii : array-like of shape (k,)
            At least 0.
        norm : {"l1", "l2", "linf"}
        by : {"certified", "distance", "hypothesis_margin"}
            What is proved, what was found, or what the quick certificate says.

        Returns
        -------
        ndarray of shape (k,)
        """
        if norm not in self.distance:
            raise InvalidInputError(
                f"norm is {norm!r}; expected one of: {', '.join(map(repr, self.distance))}."
            )
        if by not in ("certified", "distance", "hypothesis_margin"):
            raise InvalidInputError(
                f"by is {by!r}; expected 'certified', 'distance' or 'hypothesis_margin'."
            )
        far: Floats = getattr(self, by)[norm]
        if len(far) and np.isnan(far).all():
            raise NotSupportedError(
                "hypothesis margins need squared distances to prototypes, and the scores of this "
                "model are none; expected by='certified' or 'distance'."
            )
        given = finite_vector("radii", radii)
        if (given < 0).any():
            raise InvalidInputError(
                f"radii has {given[given < 0][0]:g}; expected numbers of at least 0."
            )
        return np.array([float((self.right & (far > radius)).mean()) for radius in given])

    def to_frame(self) -> Any:
        """Put everything in a DataFrame, one row per input.

        Columns are right, and for each norm distance_l2, certified_l2 and hypothesis_margin_l2.
        A frame of the library that the inputs came in, with their index, of pandas for arrays.

        Examples
        --------
        >>> import counterlvq as clvq
        >>> model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
        >>> found = clvq.robustness(clvq.Explainer(model), [[1.0], [3.5]], norms=["l2"])
        >>> found.to_frame().round(4)
           right  distance_l2  certified_l2  hypothesis_margin_l2
        0   True          1.0           1.0                   1.0
        1   True          1.5           1.5                   1.5
        """
        columns: dict[str, Any] = {"right": self.right}
        for norm in self.distance:
            columns[f"distance_{norm}"] = self.distance[norm]
            columns[f"certified_{norm}"] = self.certified[norm]
            columns[f"hypothesis_margin_{norm}"] = self.hypothesis_margin[norm]
        return self.make_frame(columns)

    def __str__(self) -> str:
        lines = [self.headline]
        for norm in self.distance:
            told = [f"{name} {radius}" for name, radius in self._medians(norm).items() if radius]
            if np.isnan(self.hypothesis_margin[norm]).all():
                told.append(_NO_CERTIFICATE)
            lines.append(f"  {norm}: median radius, {', '.join(told)}" if told else f"  {norm}")
        return "\n".join(lines)

    __repr__ = __str__

    def _medians(self, norm: str) -> dict[str, str]:
        """Write the median radius of rows that are right, by what says it; empty if none does."""
        parts = {"proved": self.certified[norm], "quick certificate": self.hypothesis_margin[norm]}
        return {
            name: f"{np.median(values[self.right]):.4g}"
            if self.right.any() and not np.isnan(values).all()
            else ""
            for name, values in parts.items()
        }

    def _repr_html_(self) -> str:
        """Show the medians in a notebook."""
        medians = {norm: self._medians(norm) for norm in self.distance}
        rows = [
            (norm, *(radius or "–" for radius in found.values())) for norm, found in medians.items()
        ]
        heads = ("norm", "proved", "quick certificate")
        notes = [_NO_CERTIFICATE] if np.isnan([*self.hypothesis_margin.values()]).all() else []
        said = [f"{words[0].upper()}{words[1:]}." for words in (self.headline, *notes)]
        return question_card("Robustness", said, [Listing("Median radius", heads, rows)])


def robustness(
    explainer: Asks,
    X: Any,
    y: ArrayLike | None = None,
    n_jobs: int | None = None,
    norms: Sequence[str] = tuple(NORMS),
) -> Robustness:
    """Measure how far each row is from another label, exactly and with a proof.

    Parameters
    ----------
    explainer : Explainer
        Of the model; its cost, constraints, margin and confidence play no part.
    X : array-like of shape (n, d), or table with named columns
    y : array-like of shape (n,), optional
        The labels that the rows have; those that the model gives them by default.
    n_jobs : int, optional
        As for `Explainer.explain_batch`.
    norms : sequence of {"l1", "l2", "linf"}
        In which to measure; all of them by default. Kernels answer the first two, and "linf" takes
        a linear program for each row.

    Returns
    -------
    Robustness

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [3.0, 4.0]], ["no", "yes"])
    >>> found = clvq.robustness(clvq.Explainer(model), [[0.0, 0.0]])
    >>> found.distance["l2"].round(4), found.hypothesis_margin["l2"].round(4)
    (array([2.5]), array([2.5]))
    """
    if not hasattr(explainer, "asking_for"):
        raise InvalidInputError(
            f"explainer is {told(explainer)}; expected an Explainer, such as Explainer(model)."
        )
    coordinates = explainer._source.coordinates
    if not coordinates.is_plain:
        others = coordinates.other_columns(with_steps=True)
        named = ", ".join(others[:_MOST_NAMED]) + (", ..." if len(others) > _MOST_NAMED else "")
        raise NotSupportedError(
            f"robustness is for columns of real numbers that the model sees as they are, and here "
            f"are others: {named}. For steps alone, ask an Explainer without `features`; else "
            f"explain the rows, where `cost` and `lower_bound` are distances of your own."
        )
    _check_norms(norms)
    _check_labels(explainer.model, y)
    distance: dict[str, Floats] = {}
    certified: dict[str, Floats] = {}
    for norm in norms:
        cost: Cost = NORMS[norm]()
        asked = explainer.asking_for(
            cost=cost,
            prices=Prices.of(cost, explainer.features, explainer._source.columns),
            constraints=(),
            margin=None,
            confidence=None,
            is_sure=False,
        )
        batch = asked.explain_batch(X, n_jobs=n_jobs)
        found, proved = np.asarray(batch.cost), np.asarray(batch.lower_bound)
        if norm == "l2":  # the cost is a square
            found, proved = np.sqrt(found), np.sqrt(proved) * (1.0 - 2.0 * UNIT)
        distance[norm], certified[norm] = read_only(found), read_only(proved)
    labels = np.asarray(batch.original_prediction)
    rows, rules = batch.original_values, explainer.prepared_for().rules
    return Robustness(
        read_only(_right(labels, y)),
        MappingProxyType(distance),
        MappingProxyType(certified),
        MappingProxyType({n: read_only(_quick(rules, rows, labels, n)) for n in norms}),
        is_labelled=y is not None,
        make_frame=partial(batch.given.new, batch.rows),
    )


def _check_norms(norms: Sequence[str]) -> None:
    known = ", ".join(map(repr, NORMS))
    if isinstance(norms, str) or not len(norms):
        raise InvalidInputError(f"norms is {norms!r}; expected a list of some of: {known}.")
    for norm in norms:
        if norm not in NORMS:
            raise InvalidInputError(f"norms has {norm!r}; expected some of: {known}.")


def _check_labels(model: PrototypeModel, y: ArrayLike | None) -> None:
    """Refuse labels that the model never says: rows that have them would all count as wrong."""
    classes = model.classes.tolist()
    known = {key_of(plain(label)) for label in classes}
    for label in [] if y is None else np.asarray(y).ravel().tolist():
        if key_of(plain(label)) not in known:
            more = ", ..." if len(classes) > _MOST_NAMED else ""
            raise InvalidInputError(
                f"y has the label {told(label)}, which the model never says; expected one of: "
                f"{', '.join(map(told, classes[:_MOST_NAMED]))}{more}."
            )


def _right(labels: NDArray[Any], y: ArrayLike | None) -> NDArray[np.bool_]:
    if y is None:
        return np.ones(len(labels), dtype=bool)
    given = np.asarray(y)
    if given.shape != labels.shape:
        raise InvalidInputError(
            f"y has shape {given.shape}; expected ({len(labels)},), one label for each row of X."
        )
    pairs = zip(given.tolist(), labels.tolist(), strict=True)
    return np.array([key_of(plain(a)) == key_of(plain(b)) for a, b in pairs], dtype=bool)


def _quick(rules: Acceptance, rows: Floats, labels: NDArray[Any], norm: str) -> Floats:
    """Radius within which no rival overtakes, by how fast distances can change; rounded down.

    A rival that is nearer than the own prototype by less than a blur T, squared, may be taken for
    the winner. Let g be the difference of the two distances a and b: ``a^2 - b^2 = g (a + b)`` is
    above T where g is above both ``sqrt(T)``, as ``a + b >= g``, or above ``T / (a + b)``.
    """
    model = rules.model
    if model.meaning.scores is not Scores.DISTANCE:
        return np.full(len(rows), np.nan)
    scores = model.distances(rows)
    errors = model.distance_errors(rows, scores)
    far, farthest = np.sqrt(np.maximum(scores - errors, 0.0)), np.sqrt(scores + errors)
    fast = _stretches(model, norm)
    own = model.labels[None, :] == labels[:, None]
    nearest = np.where(own, farthest, np.inf).argmin(axis=1)
    at = np.arange(len(rows)), nearest
    d_own = farthest[at][:, None]
    lead = far - d_own - CLOSE_CALL * (far + d_own)
    speed = (fast[None, :] + fast[nearest][:, None]) * (1.0 + CLOSE_CALL)
    most = np.maximum(np.where(own, np.inf, lead / speed).min(axis=1), 0.0)
    blur = rules.blur_within(rows, np.repeat(most[:, None], rows.shape[1], axis=1))
    # Distances shrink together by no more than the lead within `most`: twice the own one is left.
    with np.errstate(divide="ignore", invalid="ignore"):
        hidden = np.fmin(np.sqrt(blur), blur / (2.0 * far[at])) * SAFE
    radius = np.where(own, np.inf, (lead - hidden[:, None]) / speed)
    return np.asarray(np.maximum(radius.min(axis=1), 0.0))


def _stretches(model: PrototypeModel, norm: str) -> Floats:
    """By how much a distance changes at most for a change of size 1, for each prototype, (p,)."""
    if not model.is_local and (model.omegas is None or model.diagonal is not None):
        sizes = np.ones(model.n_features) if model.diagonal is None else np.abs(model.diagonal)
        one = float(np.linalg.norm(sizes) if norm == "linf" else sizes.max())
        return np.full(model.n_prototypes, one)
    factors = model.factors if model.is_local else (model.shared_factor,)
    found = [_stretch(F, norm) for F in factors]
    return np.array(found if model.is_local else found * model.n_prototypes)


def _stretch(F: Floats, norm: str) -> float:
    """Operator norm of a factor from a norm to Euclidean length; for "linf" a bound on it."""
    if norm == "l2":
        return float(np.linalg.norm(F, ord=2))
    columns = np.linalg.norm(F, axis=0)
    if norm == "l1":
        return float(columns.max())
    # The largest over all corners of a cube takes too long; each of these is above it.
    rows = np.linalg.norm(np.abs(F).sum(axis=1))
    return float(min(columns.sum(), rows, np.sqrt(F.shape[1]) * np.linalg.norm(F, ord=2)))
