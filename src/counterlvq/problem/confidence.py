"""How sure the model has to be of an answer.

A confidence turns "the nearest prototype has the label" into more: a lead over every prototype of
another label. `Probability` is one lead for all, `Noise` one for each pair of prototypes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import inf, log, log1p, nextafter
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, finite_scalar, finite_vector, read_only, told
from counterlvq.numeric.exact import fraction, scaled
from counterlvq.numeric.tolerances import UNIT
from counterlvq.problem.coordinates import Coordinates
from counterlvq.problem.weights import Weights, in_order, is_positive, shown_weights, with_names
from counterlvq.safe_text import shown_text
from counterlvq.tables.features import Features

__all__ = ["Confidence", "Noise", "Probability", "no_numbers", "said_number", "shifted"]

NORMS = ("l1", "l2", "linf")
# Columns that an error names.
_MOST_NAMED = 8
# Digits of a number that is said as it is, and denominators of those said as a fraction.
_FEW_DIGITS, _SMALL = 12, 100


def no_numbers(called: str, others: Sequence[str]) -> str:
    """Say which columns keep a confidence from being asked for, and what may be asked instead."""
    more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    return (
        f"{called} is for columns of numbers that the model sees as they are, and here are others: "
        f"{', '.join(others[:_MOST_NAMED])}{more}. Ask for RelativeSimilarity or for a margin "
        f"instead, or a model of the numbers alone."
    )


def _checked_weights(given: ArrayLike | Mapping[str, float] | None) -> Weights | None:
    """Check weights, of which infinite ones are for columns that are known exactly."""
    given = with_names("Noise: weights", given)
    if given is None:
        return None
    if not isinstance(given, Mapping):
        array = np.array(given, dtype=object)
        known = array == inf
        kept = finite_vector("Noise: weights", np.where(known, 1.0, array).tolist())
        if not (kept > 0).all():
            raise InvalidInputError("Noise: weights are not all positive; expected positive ones.")
        return read_only(np.where(known, inf, kept))
    for name, weight in given.items():
        if not is_positive(weight) and weight != inf:
            raise InvalidInputError(
                f"Noise: weights has {told(name)}: {told(weight)}; expected names of features with "
                f"a positive number each, or float('inf') for one that is known exactly. Features "
                f"that are not named have 1."
            )
    return {name: float(weight) for name, weight in given.items()}


def said_number(value: float) -> str:
    """Write a number so that it reads back as the same, but for its last bit, in few digits.

    Examples
    --------
    >>> said_number(0.1 + 0.2), said_number(2 / 3), said_number(123456.789)
    ('0.3', '2/3', '123456.789')
    """
    short = f"{value:.{_FEW_DIGITS}g}"
    if abs(float(short) - value) <= float(np.spacing(value)):
        return short
    share = Fraction(value).limit_denominator(_SMALL)
    return str(share) if float(share) == value else repr(value)


class Confidence(ABC):
    """What an answer has to have beyond a wished-for label."""

    @property
    @abstractmethod
    def words(self) -> str:
        """Name it, as in "with a probability of at least 90 %"."""


@final
@dataclass(frozen=True)
class Probability(Confidence):
    """The model's own probability of the answer's label is at least `p`.

    For models of two classes whose log odds grow evenly with the difference of two scores: logistic
    regression, discriminant analysis, naive Bayes of Gaussians, RSLVQ and its kin, and pipelines
    that end in one.

    Parameters
    ----------
    p : float
        Above one half and below 1.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> model = LogisticRegression().fit(X, y)
    >>> cf = clvq.Explainer(model, confidence=clvq.Probability(0.9)).explain([0.0])
    >>> model.predict_proba([cf.x])[0, 1].round(6)
    np.float64(0.9)
    """

    p: float

    def __post_init__(self) -> None:
        number = finite_scalar("Probability: p", self.p)
        if not 0.5 < number < 1:
            step = "Any answer of two classes has one half."
            if number >= 1:
                percent = number if 50 < number < 100 else 80
                step = f"Write {percent / 100:g} for {percent:g} %."
            raise InvalidInputError(
                f"Probability: p is {number:g}; expected a number above 0.5 and below 1. {step}"
            )
        object.__setattr__(self, "p", number)

    @property
    def words(self) -> str:
        """Name it."""
        share = said_number(self.p)
        if "/" in share:
            return f"a probability of at least {share}"
        return f"a probability of at least {(Decimal(share) * 100).normalize():f} %"

    def lead(self, slope: float) -> float:
        """Difference of scores at which the log odds, `slope` times it, are those of `p`.

        Rounded down, so that no input with the probability is left out of a proof.
        """
        exact = (log(self.p) - log1p(-self.p)) / slope
        return max(exact - 8.0 * UNIT * (abs(log(self.p)) + abs(log1p(-self.p))) / slope, 0.0)


@final
@dataclass(frozen=True, init=False, eq=False)
class Noise(Confidence):
    """Every point within a radius of the answer lies in the cell of the same prototype.

    For shared metrics. Noise acts on columns of numbers alone, as any real number would, on whole
    numbers too; an answer's levels are looked for as always, and noise leaves them as they are. A
    ball across the cells of two prototypes of one class would do as well, and is not used: the
    answer may be farther than need be there.

    Parameters
    ----------
    radius : float
        Positive.
    norm : {"l1", "l2", "linf"}
        In which the radius is measured: sum, Euclidean length or largest of the changes.
    weights : mapping from feature to float, or array-like of shape (d,), optional
        Changes are multiplied by these first, positive ones; a column with an infinite weight is
        known exactly, and noise leaves it as it is. By name, 1 for columns that are not named; an
        array has one for each column, of which those of levels mean nothing.
    unit : str
        What a radius of 1 stands for, such as "typical deviations"; words alone.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"])
    >>> explainer = clvq.Explainer(model, confidence=clvq.Noise(0.5, "linf"))
    >>> explainer.explain([0.0, 0.0], target="yes").x.round(6)
    array([2.5, 0. ])
    >>> explainer = clvq.Explainer(model, confidence=clvq.Noise(0.5, "linf", {"x0": 0.5}))
    >>> explainer.explain([0.0, 0.0], target="yes").x.round(6)
    array([3., 0.])
    >>> explainer = clvq.Explainer(model, confidence=clvq.Noise(0.5, "linf", {"x0": float("inf")}))
    >>> explainer.explain([0.0, 0.0], target="yes").x.round(6)
    array([2., 0.])
    """

    radius: float
    norm: str
    weights: Weights | None
    unit: str

    def __init__(
        self,
        radius: float,
        norm: str = "l2",
        weights: ArrayLike | Mapping[str, float] | None = None,
        *,
        unit: str = "",
    ) -> None:
        if finite_scalar("Noise: radius", radius) <= 0:
            raise InvalidInputError(f"Noise: radius is {radius:g}; expected a positive number.")
        if norm not in NORMS:
            known = ", ".join(map(repr, NORMS))
            raise InvalidInputError(f"Noise: norm is {norm!r}; expected one of: {known}.")
        if not isinstance(unit, str):
            raise InvalidInputError(f"Noise: unit is {unit!r}; expected text, such as 'euros'.")
        kept = _checked_weights(weights)
        object.__setattr__(self, "radius", float(radius))
        object.__setattr__(self, "norm", norm)
        object.__setattr__(self, "weights", kept)
        object.__setattr__(self, "unit", unit)

    def __repr__(self) -> str:
        shown = "" if self.weights is None else f", weights={shown_weights(self.weights)}"
        unit = f", unit={self.unit!r}" if self.unit else ""
        return f"Noise({self.radius!r}, {self.norm!r}{shown}{unit})"

    @property
    def words(self) -> str:
        """Name it, as in "with room for each number to be off by 0.1"."""
        weighted = " (weighted)" if self.weights is not None else ""
        unit = f" {shown_text(self.unit)}" if self.unit else weighted
        off = f"off by {said_number(self.radius)}{unit}"
        return {
            "l1": f"room for all numbers together to be {off}",
            "l2": f"room for all numbers to be {off} in Euclidean length",
            "linf": f"room for each number to be {off}",
        }[self.norm]

    def for_columns(self, columns: Sequence[str], features: Features) -> Noise:
        """Put weights by name into the order of the columns of a table."""
        if not isinstance(self.weights, Mapping):
            return self
        ordered = in_order(self.weights, Features(columns), np.ones(len(columns)))
        for name in self.weights:
            if not features[name].is_number:
                raise InvalidInputError(
                    f"Noise: weights has {told(name)}, which has levels, and noise leaves levels "
                    f"as they are; expected weights of columns of numbers. Leave it out."
                )
        return Noise(self.radius, self.norm, ordered, unit=self.unit)

    @property
    def by_position(self) -> Floats | None:
        """Weights in the order of the columns, (d,), as explainers have them."""
        assert not isinstance(self.weights, Mapping)  # `for_columns` has put them in order
        return self.weights

    def refuse(self, model: PrototypeModel, coordinates: Coordinates) -> None:
        """Refuse models for which rows are not shifted by a constant, and nothing to act on."""
        if model.is_local:
            raise NotSupportedError(
                "Noise is for shared metrics, where cells have flat sides, and the metrics of this "
                "model differ from prototype to prototype. Ask for a margin instead."
            )
        others = coordinates.other_columns(with_steps=False)
        if others and (coordinates.links or not coordinates.numbers.size):
            raise NotSupportedError(no_numbers("Noise", others))
        width = len(coordinates.features)
        if self.by_position is not None and self.by_position.size != width:
            raise InvalidInputError(
                f"Noise: weights has {self.by_position.size} entries; expected {width}, one "
                f"for each feature."
            )
        if not np.isfinite(self.weights_over(coordinates)).any():
            raise InvalidInputError(
                "Noise: weights are infinite for every column of numbers, so that noise changes "
                "nothing; expected a finite one, or no confidence at all."
            )

    def weights_over(self, coordinates: Coordinates) -> Floats:
        """Weights of the changes of coordinates, (width,): infinite where noise changes nothing."""
        out = np.full(coordinates.width, inf)
        given = self.by_position
        own = 1.0 if given is None else given[coordinates.is_number]
        out[coordinates.numbers] = own
        return out

    def leads(
        self, model: PrototypeModel, prototype: int, rivals: Any, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Leads over rivals that the worst of the noise takes away: bounds from below and above.

        The radius times the dual norm of each normal, (m,) each. `weights` (d,) are those of the
        coordinates of the model, its own by default.
        """
        ahead = model.prototypes[rivals] - model.prototypes[prototype]
        if model.diagonal is not None:
            normals = 2.0 * ahead * model.diagonal**2
            sizes = np.abs(normals)
        elif model.omegas is not None:
            F = model.shared_factor
            normals = 2.0 * (ahead @ F.T) @ F
            sizes = 2.0 * (np.abs(ahead) @ np.abs(F).T) @ np.abs(F)
        else:
            normals, sizes = 2.0 * ahead, 2.0 * np.abs(ahead)
        steps = model.n_features + 2 * model.prototypes.shape[1] + 16
        off = 2.0 * steps * UNIT * sizes
        if model.blur is not None:
            off = off + model.blur.of_normals(prototype, rivals)
        weights = self.by_position if weights is None else weights
        if weights is not None:
            normals, off = normals / weights, off / weights
        with np.errstate(over="ignore"):
            found = self.radius * self._dual(normals)
            most = found + (1.0 + steps * UNIT) * self.radius * self._dual(off)
        if not np.isfinite(most).all():
            raise InvalidInputError(
                f"Noise: radius is {self.radius:g}, and what the scores change by within it is no "
                f"float; expected a smaller one."
            )
        return np.maximum(found - (most - found), 0.0), most

    def leaves(self, model: PrototypeModel, prototype: int, y: Floats) -> bool:
        """Whether a point stays in the cell of a prototype under all of the noise.

        Decided in exact arithmetic where rounding could decide otherwise.
        """
        unsure = self.undecided(model, prototype, y)
        if unsure is None or model.blur is not None:
            return unsure is not None and not unsure.size
        own = model.exact_distance(y, prototype) if unsure.size else Fraction(0)
        return all(
            self._takes_at_most(model.exact_distance(y, k) - own, model, prototype, k)
            for k in unsure.tolist()
        )

    def undecided(
        self, model: PrototypeModel, prototype: int, y: Floats, weights: Floats | None = None
    ) -> NDArray[np.intp] | None:
        """List the rivals that rounding keeps from telling whether noise leads to them.

        None if it surely leads to some rival. With `weights` as in `leads`.
        """
        rivals = np.flatnonzero(model.class_index != model.class_index[prototype])
        scores = model.distances(y[None, :])
        errors = model.distance_errors(y[None, :], scores)[0] + UNIT * scores[0]
        if model.blur is not None:
            errors = errors + model.blur.of_scores(y[None, :])[0]
        ahead = scores[0, rivals] - scores[0, prototype]
        off = 2.0 * (errors[rivals] + errors[prototype])
        least, most = self.leads(model, prototype, rivals, weights)
        if (ahead + off < least).any():
            return None
        return np.asarray(rivals[~(ahead - off >= most)])

    def _takes_at_most(
        self, lead: Fraction, model: PrototypeModel, prototype: int, rival: int
    ) -> bool:
        """Whether the worst of the noise takes no more than a lead over a rival, exactly."""
        both = scaled(model.prototypes[[rival, prototype]])
        normal, exponent = both.units[0] - both.units[1], both.exponent + 1
        factor = model.omegas
        if factor is not None:
            assert isinstance(factor, np.ndarray)  # shared, or refused
            rows = scaled(factor)
            is_diagonal = factor.ndim == 1
            lifted = rows.units * normal if is_diagonal else rows.units @ normal
            normal = rows.units * lifted if is_diagonal else rows.units.T @ lifted
            exponent += 2 * rows.exponent
        slopes = [fraction(int(unit), exponent) for unit in normal]
        given = self.by_position
        weights = np.ones(len(slopes)) if given is None else given
        return self.is_withstood(lead, slopes, weights)

    def is_withstood(self, lead: Fraction, slopes: Sequence[Fraction], weights: Floats) -> bool:
        """Whether the worst of the noise takes no more than a lead, exactly.

        `slopes` are those of the lead in the columns of numbers, which have `weights`.
        """
        sizes = [
            abs(slope) / Fraction(weight)
            for slope, weight in zip(slopes, weights.tolist(), strict=True)
            if weight < inf
        ]
        radius = Fraction(self.radius)
        if self.norm == "l2":
            squares = sum((size * size for size in sizes), Fraction(0))
            return lead >= 0 and lead * lead >= radius * radius * squares
        worst = max(sizes) if self.norm == "l1" else sum(sizes, Fraction(0))
        return lead >= radius * worst

    def _dual(self, normals: Floats) -> Floats:
        orders: dict[str, float] = {"l1": inf, "l2": 2, "linf": 1}
        return np.asarray(np.linalg.norm(normals, ord=orders[self.norm], axis=1))


def shifted(model: PrototypeModel, prototype: int, rivals: Any, leads: Floats) -> PrototypeModel:
    """Return a model of one prototype and its rivals, each nearer by its lead, or by less.

    Rounded so that the prototype wins wherever it has the leads. Its blur is that of the model.
    """
    base = np.zeros(model.n_prototypes) if model.offsets is None else model.offsets
    own = float(base[prototype]) + float(leads.max(initial=0.0))
    offsets = [own]
    for k, lead in zip(rivals, leads, strict=True):
        exact = Fraction(own) - Fraction(float(base[prototype])) + Fraction(float(base[k]))
        exact -= Fraction(float(lead))
        rounded = float(exact)
        offsets.append(max(rounded if Fraction(rounded) >= exact else nextafter(rounded, inf), 0.0))
    at = np.array([prototype, *rivals])
    out = PrototypeModel(
        model.prototypes[at], model.labels[at], model.omegas, model.features.names, offsets
    )
    return out if model.blur is None else out.blurred(model.blur.of_prototypes(at))
