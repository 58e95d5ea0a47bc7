"""What a change costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import (
    Floats,
    finite_matrix,
    finite_vector,
    read_only,
    real_number,
    told,
)
from counterlvq.numeric.error_free import rounded_dot
from counterlvq.numeric.quadratic_forms import QuadraticForm
from counterlvq.numeric.tolerances import OWN_COST_ROUNDING
from counterlvq.problem.weights import (
    Weights,
    checked_weights,
    in_order,
    is_positive,
    shown_weights,
)
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features

__all__ = [
    "Cost",
    "Default",
    "Euclidean",
    "Mahalanobis",
    "Manhattan",
    "Switches",
    "set_switches",
    "shown_switches",
    "stated_form",
    "stated_weights",
]

# Prices of switches: by feature, one for all pairs of levels or one for each pair.
Switches = Mapping[str, float | Mapping[tuple[Any, Any], float]]
# The price of pairs that are not listed: for all features, or by feature.
Default = float | Mapping[str, float] | None


class Cost:
    """A convex cost ``sum_j weights_j |delta_j| + |L delta|^2`` of a change `delta`.

    Of the costs here, `Manhattan` alone can have other weights upwards than downwards.

    A cost states its two parts; everything else is derived from them: values, bounds, proofs.
    Another level of a categorical feature has a price of its own, see `switches`. It is added to
    the rest; under `Chebyshev`, where the largest change counts, it is one change among the others.
    An `Explainer` takes prices from 1e-60 to 1e60.

    A cost of your own is a subclass with two methods, and nothing else is needed:

    - ``l1_weights(width)``: the weights, an array (width,) of finite numbers of at least 0;
    - ``l2_factor(width)``: the factor L, an array (r, width) of finite numbers, with no rows where
      the cost has no such part.

    The weights are asked for as many features as the table has, and the factor for those of them
    that are numbers; the weight of a category is the price of a switch unless `switches` names
    it. Both have to say the same each time. `value` follows from them and is not yours to
    replace: an `Explainer` compares it with the parts on a few changes and refuses a cost that
    contradicts itself.

    Attributes
    ----------
    switches : mapping from feature to price
        What another level costs: one price for the feature, or a mapping from pairs of levels,
        ``{("rent", "own"): 3.0}``. A pair holds for both directions unless the other is given
        too. Pairs that are not given cost `default`; without one, an `Explainer` lists the pairs
        that lack a price and could come up. Features that are not named cost their weight, or 1
        where the cost has none: per switch, per step along the list where the levels are
        ordered (one price for such a feature is one per step too), and times the difference
        where the levels are numbers. Empty unless a subclass sets it.
    default : float or mapping from feature to price, optional
        The price of pairs that `switches` does not list. None unless a subclass sets it.

    Examples
    --------
    >>> import numpy as np
    >>> import counterlvq as clvq
    >>> class Together(clvq.Cost):  # absolute changes, and the square of what parts the first two
    ...     def l1_weights(self, width):
    ...         return np.ones(width)
    ...
    ...     def l2_factor(self, width):
    ...         L = np.zeros((1, width))
    ...         L[0, :2] = 1.0, -1.0
    ...         return L
    >>> Together().value([3.0, 1.0, 0.0])
    8.0
    >>> model = clvq.PrototypeModel([[0.0, 0.0, 0.0], [4.0, 4.0, 1.0]], ["no", "yes"])
    >>> cf = clvq.Explainer(model, Together()).explain([0.0, 0.0, 0.0], target="yes")
    >>> print(f"{cf.status}, {cf.cost:.4f}")
    optimal, 4.1250
    """

    switches: Switches
    default: Default

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Give each cost its own prices of switches, none unless it says so."""
        made = super().__new__(cls)
        object.__setattr__(made, "switches", {})
        object.__setattr__(made, "default", None)
        return made

    def l1_weights(self, width: int) -> Floats:
        """Weights of the absolute changes, (d,); zeros where the cost has no such part."""
        raise InvalidInputError(_missing(self, "l1_weights", "np.zeros(width)"))

    def l1_ways(self, width: int) -> tuple[Floats, Floats]:
        """Weights of changes upwards and of changes downwards, (d,) each."""
        weights = self.l1_weights(width)
        return weights, weights

    def l2_factor(self, width: int) -> Floats:
        """Factor L (r, d) of the quadratic part; no rows where the cost has no such part."""
        raise InvalidInputError(_missing(self, "l2_factor", "np.zeros((0, width))"))

    def quadratic_form(self, width: int) -> QuadraticForm:
        """Quadratic part as a form: its exact values, and a factor that is verified."""
        name = f"{type(self).__name__}.l2_factor({width})"
        return QuadraticForm.of_factor(name, self.l2_factor(width), width)

    @property
    def takes_largest(self) -> bool:
        """Whether the largest of the weighted changes counts, and not their sum; see `Chebyshev`.

        It stays as it is in costs of your own.
        """
        return False

    @final
    def value(self, delta: ArrayLike) -> float:
        """Cost of the change `delta`: its two parts, each exact and rounded once.

        Parameters
        ----------
        delta : array-like of shape (d,)
        """
        return _value_of_parts(self, finite_vector("delta", delta))


def stated_weights(cost: Cost, width: int) -> Floats:
    """Weights upwards and downwards that a cost states, (2, d), or say what is wrong with them."""
    if _stating(cost, "l1_ways") is Cost:
        name = f"{type(cost).__name__}.l1_weights({width})"
        weights = finite_vector(name, cost.l1_weights(width), width)
        ways = np.stack([weights, weights])
    else:
        name = f"{type(cost).__name__}.l1_ways({width})"
        ways = np.stack([finite_vector(name, way, width) for way in cost.l1_ways(width)])
    if (ways < 0).any():
        j = int((ways < 0).any(axis=0).argmax())
        raise InvalidInputError(
            f"{name}[{j}] is {ways[:, j].min():g}; expected weights of at least 0. A change that "
            f"earns something has no least cost."
        )
    lopsided = (ways == 0).any(axis=0) & (ways != 0).any(axis=0)
    if lopsided.any():
        j = int(lopsided.argmax())
        raise InvalidInputError(
            f"{name} has {ways[0, j]:g} up and {ways[1, j]:g} down for feature {j}; expected both "
            f"above 0, or both 0. A change that is free in one direction has no least cost."
        )
    return ways


def stated_form(cost: Cost, width: int) -> QuadraticForm:
    """Quadratic part that a cost states; refuse a cost whose parts contradict each other."""
    form = _form_of(cost, width)
    if type(cost).value is not Cost.value:
        for probe in _probes(width):
            _refuse_contradiction(cost, probe)
    return form


def _form_of(cost: Cost, width: int) -> QuadraticForm:
    """Quadratic part by what a class states last; refuse a form and a factor that disagree."""
    by_form, by_factor = (_stating(cost, name) for name in ("quadratic_form", "l2_factor"))
    if by_factor is not by_form and issubclass(by_factor, by_form):
        return Cost.quadratic_form(cost, width)
    form = cost.quadratic_form(width)
    if by_form.__module__ != __name__:
        _refuse_other_factor(cost, form, width)
    return form


def _stating(cost: Cost, part: str) -> type:
    """Return the class that states a part of a cost."""
    return next(base for base in type(cost).__mro__ if part in vars(base))


def _refuse_other_factor(cost: Cost, form: QuadraticForm, width: int) -> None:
    name, factor = type(cost).__name__, Cost.quadratic_form(cost, width)
    for probe in _probes(width):
        stated, other = form.value(probe), factor.value(probe)
        if not abs(stated - other) <= OWN_COST_ROUNDING * abs(stated):
            raise InvalidInputError(
                f"{name}.quadratic_form({width}) and {name}.l2_factor({width}) disagree about the "
                f"change {probe.tolist()}: {stated:g} and {other:g}; expected the same. State "
                f"l2_factor alone."
            )


def _value_of_parts(cost: Cost, change: Floats) -> float:
    width = change.shape[0]
    up, down = stated_weights(cost, width)
    if cost.takes_largest:
        return float((up * np.abs(change)).max(initial=0.0))
    flat = rounded_dot(np.where(change > 0, up, down), np.abs(change))
    return flat + _form_of(cost, width).value(change)


def _refuse_contradiction(cost: Cost, probe: Floats) -> None:
    name = type(cost).__name__
    stated = real_number(f"{name}.value({probe.tolist()})", cost.value(probe))
    parts = _value_of_parts(cost, probe)
    if not abs(stated - parts) <= OWN_COST_ROUNDING * abs(parts):
        raise InvalidInputError(
            f"{name}.value({probe.tolist()}) is {stated:g}, but its parts say {parts:g}: "
            f"l1_weights @ |delta| + |l2_factor @ delta|^2; expected the same. Leave `value` to "
            f"Cost, which derives it from the parts."
        )


def _probes(width: int) -> list[Floats]:
    """Choose changes on which a cost is compared with its parts: none, one feature, all."""
    ramp = np.arange(1.0, width + 1.0)
    signs = np.where(np.arange(width) % 2, -1.0, 1.0)
    single = [sign * np.eye(1, width, j)[0] for j in range(min(width, 8)) for sign in (1.0, -2.0)]
    return [np.zeros(width), *single, np.ones(width), ramp, 0.375 * signs * ramp, -1e3 * ramp]


def _missing(cost: Cost, part: str, nothing: str) -> str:
    return (
        f"{type(cost).__name__} does not state {part}(width); expected a method that returns it. "
        f"Return {nothing} if the cost has no such part."
    )


def _where_ordered(
    way: Floats | None, base: Floats | None, columns: Features, features: Features | None
) -> Floats | None:
    """Take the weights of one way but for levels without an order, which have those of `base`."""
    if way is None or features is None:
        return way
    # Weights are for all columns of the table, or for those that the model sees.
    names = columns.names if way.size == len(columns) else features.names
    usual = np.ones(way.size) if base is None else base
    if not way.size == usual.size == len(names):
        return way  # which is refused where its entries are counted
    free = [name in features and _has_no_order(features[name]) for name in names]
    return np.where(free, usual, way)


def _has_no_order(feature: Feature) -> bool:
    return not feature.is_number and feature.ranks is None


@final
@dataclass(frozen=True, eq=False)
class Manhattan(Cost):
    """Weighted Manhattan distance, ``sum_j weights_j |delta_j|``; favours few changes.

    What goes up may have another price than what goes down: `increase` and `decrease` replace
    the weights in one direction.

    Parameters
    ----------
    weights : array-like of shape (d,), or mapping from feature name to float, optional
        Positive price of one unit of change per feature, in the order of the columns that the
        model or the pipeline was given; 1 for all by default, and for features that a mapping,
        or a pandas Series with names, does not name. That of a categorical feature is its
        price per switch. See `mad_weights` for weights that make features comparable.
    switches : mapping from feature to price, optional
        What another level costs, for the feature or for each pair of levels; see `Cost`.
    default : float or mapping from feature to price, optional
        What pairs of levels cost that `switches` does not list.
    unit : str, optional
        What costs are counted in, as texts say it, such as "typical deviations".
    increase : array-like of shape (d,), or mapping from feature name to float, optional
        Positive price of one unit upwards; that of `weights` where it is not given, or does not
        name a feature. Of levels that are ordered, or numbers, a step upwards costs it. Levels that
        are neither have no up and down: the entry of an array says nothing of them, and one by name
        is refused if it tells the two ways apart.
    decrease : array-like of shape (d,), or mapping from feature name to float, optional
        The same for one unit downwards.

    Examples
    --------
    >>> Manhattan(weights=[1.0, 10.0]).value([3.0, -0.5])
    8.0
    >>> Manhattan(increase=[4.0, 1.0]).value([3.0, -0.5])
    12.5
    >>> Manhattan({"income": 0.001}, increase={"income": 0.003}, decrease={"age": 9.0})
    Manhattan({'income': 0.001}, increase={'income': 0.003}, decrease={'age': 9.0})
    >>> Manhattan({"income": 0.001})
    Manhattan({'income': 0.001})
    >>> Manhattan(switches={"housing": {("rent", "own"): 3.0}, "job": 0.5}, default=2.0)
    Manhattan(switches={'housing': {('rent', 'own'): 3.0}, 'job': 0.5}, default=2.0)
    """

    weights: Weights | None
    switches: Switches
    default: Default
    unit: str
    increase: Weights | None
    decrease: Weights | None

    def __init__(
        self,
        weights: ArrayLike | Mapping[str, float] | None = None,
        switches: Switches | None = None,
        default: Default = None,
        *,
        unit: str = "",
        increase: ArrayLike | Mapping[str, float] | None = None,
        decrease: ArrayLike | Mapping[str, float] | None = None,
    ) -> None:
        set_switches(self, switches, default)
        object.__setattr__(self, "unit", unit)
        given = {"weights": weights, "increase": increase, "decrease": decrease}
        for name, values in given.items():
            object.__setattr__(self, name, checked_weights(name, values))

    def __repr__(self) -> str:
        shown = [] if self.weights is None else [shown_weights(self.weights)]
        shown += shown_switches(self)
        shown += [f"unit={self.unit!r}"] if self.unit else []
        ways = {"increase": self.increase, "decrease": self.decrease}
        shown += [f"{name}={shown_weights(way)}" for name, way in ways.items() if way is not None]
        return f"Manhattan({', '.join(shown)})"

    @property
    def has_ways(self) -> bool:
        """Whether up and down were given prices of their own."""
        return self.increase is not None or self.decrease is not None

    def for_columns(self, columns: Sequence[str], features: Features | None = None) -> Manhattan:
        """Put weights by name into the order of the columns of a table.

        Arrays of weights upwards and downwards give way to `weights` for those of the features
        that can go neither up nor down.
        """
        given = (self.weights, self.increase, self.decrease)
        if not (self.has_ways or isinstance(self.weights, Mapping)):
            return self
        names = Features(columns)
        is_named = any(isinstance(item, Mapping) for item in given)
        usual = in_order(self.weights, names, np.ones(len(columns)))
        base = usual if is_named or self.weights is not None else None
        increase, decrease = (
            in_order(way, names, usual)
            if isinstance(way, Mapping)
            else _where_ordered(way, base, names, features)
            for way in (self.increase, self.decrease)
        )
        return Manhattan(
            base, self.switches, self.default, unit=self.unit, increase=increase, decrease=decrease
        )

    def l1_weights(self, width: int) -> Floats:
        """Weights of the absolute changes, the lesser one where up and down differ, (d,)."""
        up, down = self.l1_ways(width)
        return up if up is down else np.minimum(up, down)

    def l1_ways(self, width: int) -> tuple[Floats, Floats]:
        """Weights of changes upwards and of changes downwards, (d,) each."""
        base = np.ones(width) if self.weights is None else self._of_width(self.weights, width)
        up, down = (
            base if way is None else self._of_width(way, width)
            for way in (self.increase, self.decrease)
        )
        return up, down

    def _of_width(self, weights: Weights, width: int) -> Floats:
        if isinstance(weights, Mapping):
            raise InvalidInputError(
                f"{self!r} has weights by name, and changes came without names; expected weights "
                f"in the order of the features. An Explainer knows the names."
            )
        if weights.shape[0] != width:
            raise InvalidInputError(
                f"Manhattan has {weights.shape[0]} weights; expected {width}, one per feature."
            )
        return weights

    def l2_factor(self, width: int) -> Floats:
        """No quadratic part, (0, d)."""
        return np.zeros((0, width))


@final
@dataclass(frozen=True, init=False, eq=False)
class Euclidean(Cost):
    """Squared Euclidean distance, ``|delta|^2``; spreads a change over many features.

    Parameters
    ----------
    switches : mapping from feature to price, optional
        What another level costs, for the feature or for each pair of levels; see `Cost`.
    default : float or mapping from feature to price, optional
        What pairs of levels cost that `switches` does not list.

    Examples
    --------
    >>> Euclidean().value([3.0, 4.0])
    25.0
    """

    switches: Switches
    default: Default

    def __init__(self, switches: Switches | None = None, default: Default = None) -> None:
        set_switches(self, switches, default)

    def __repr__(self) -> str:
        return f"Euclidean({', '.join(shown_switches(self))})"

    def l1_weights(self, width: int) -> Floats:
        """No absolute part, (d,)."""
        return np.zeros(width)

    def l2_factor(self, width: int) -> Floats:
        """Factor of the quadratic part: the identity."""
        return np.eye(width)

    def quadratic_form(self, width: int) -> QuadraticForm:
        """Quadratic part as a form, in memory for a vector."""
        return QuadraticForm.of_diagonal("Euclidean", np.ones(width))


@final
@dataclass(frozen=True, eq=False)
class Mahalanobis(Cost):
    """Squared generalised distance, ``delta' matrix delta``.

    Parameters
    ----------
    matrix : array-like of shape (d, d)
        Symmetric positive semidefinite, for the d columns that are numbers, in the order of the
        table that the model or the pipeline was given. Columns that a pipeline drops never
        change and may be left out. Along directions that the matrix does not see, changes are
        free. It is used as it is: no eigenvalue is dropped or lifted, and a matrix that is
        indefinite, be it by rounding alone, is refused with the ridge that would mend it.
    switches : mapping from feature to price, optional
        What another level costs, for the feature or for each pair of levels; see `Cost`.
    default : float or mapping from feature to price, optional
        What pairs of levels cost that `switches` does not list.

    Examples
    --------
    >>> Mahalanobis([[2.0, 0.0], [0.0, 1.0]]).value([1.0, 3.0])
    11.0
    """

    form: QuadraticForm
    switches: Switches
    default: Default

    def __init__(
        self, matrix: ArrayLike, switches: Switches | None = None, default: Default = None
    ) -> None:
        object.__setattr__(self, "form", QuadraticForm.of_matrix("matrix", matrix))
        set_switches(self, switches, default)

    @classmethod
    def from_factor(
        cls, factor: ArrayLike, switches: Switches | None = None, default: Default = None
    ) -> Mahalanobis:
        """State ``|factor delta|^2``, which is semidefinite however it is rounded.

        Parameters
        ----------
        factor : array-like of shape (r, d)
            Such as the `omega` of a learned metric; ``factor' factor`` in floats may be
            indefinite in its last digits, the factor itself is never.
        switches : mapping from feature to price, optional
            What another level costs, for the feature or for each pair of levels; see `Cost`.
        default : float or mapping from feature to price, optional
            What pairs of levels cost that `switches` does not list.

        Examples
        --------
        >>> Mahalanobis.from_factor([[1.0, 2.0]]).value([1.0, 1.0])
        9.0
        """
        given = finite_matrix("factor", factor)
        made = cls.__new__(cls)
        form = QuadraticForm.of_factor("factor", given, given.shape[1])
        object.__setattr__(made, "form", form)
        set_switches(made, switches, default)
        return made

    @property
    def matrix(self) -> Floats:
        """The matrix as it was given, (d, d), or the rounded square of the factor."""
        if self.form.matrix is None:
            return read_only(self.form.root.T @ self.form.root)
        return self.form.matrix

    @property
    def root(self) -> Floats:
        """Its factor, (rank, d): ``root' root`` is the matrix as nearly as floats come."""
        return self.form.root

    def __repr__(self) -> str:
        by_factor = self.form.matrix is None
        given = self.form.root if by_factor else self.matrix
        shown = ", ".join([str(given.tolist()), *shown_switches(self)])
        return f"Mahalanobis{'.from_factor' * by_factor}({shown})"

    def l1_weights(self, width: int) -> Floats:
        """No absolute part, (d,)."""
        return np.zeros(width)

    def l2_factor(self, width: int) -> Floats:
        """Factor of the quadratic part, (rank, d), as near as floats come."""
        return self.quadratic_form(width).root

    def quadratic_form(self, width: int) -> QuadraticForm:
        """Quadratic part as a form."""
        own = self.form.width
        if own != width and self.form.matrix is None:
            raise InvalidInputError(
                f"Mahalanobis has a factor of shape {self.form.root.shape}; expected {width} "
                f"columns, for {width} features."
            )
        if own != width:
            raise InvalidInputError(
                f"Mahalanobis has a matrix of shape ({own}, {own}); expected "
                f"({width}, {width}), for {width} features."
            )
        return self.form


def _checked_switches(switches: Switches | None) -> Switches:
    if switches is None:
        return {}
    if not isinstance(switches, Mapping):
        raise InvalidInputError(
            f"switches is {told(switches)}; expected a mapping from feature to price, such as "
            f"{{'job': 2.0}} or {{'job': {{('clerk', 'nurse'): 2.0}}}}. Weights of numbers are for "
            f"Manhattan(weights), or Mahalanobis(np.diag(weights)) for squared changes."
        )
    pairs: Iterable[tuple[Any, Any]]
    for feature, price in switches.items():
        pairs = price.items() if isinstance(price, Mapping) else [(None, price)]
        for pair, one in pairs:
            where = f"switches[{feature!r}]" + ("" if pair is None else f"[{pair!r}]")
            if pair is not None and (not isinstance(pair, tuple) or len(pair) != 2):
                raise InvalidInputError(f"{where}: expected a pair of levels (before, after).")
            if not is_positive(one):
                raise InvalidInputError(f"{where} is {one!r}; expected a positive price.")
    return dict(switches)


def set_switches(cost: Cost, switches: Switches | None, default: Default) -> None:
    """Keep what other levels cost, once it is checked."""
    object.__setattr__(cost, "switches", _checked_switches(switches))
    prices = default.items() if isinstance(default, Mapping) else [(None, default)]
    for feature, price in prices if default is not None else []:
        where = "default" if feature is None else f"default[{feature!r}]"
        if not is_positive(price):
            raise InvalidInputError(f"{where} is {price!r}; expected a positive price.")
    object.__setattr__(cost, "default", default)


def shown_switches(cost: Cost) -> list[str]:
    """Write what other levels cost as it was given."""
    shown = [f"switches={dict(cost.switches)!r}"] if cost.switches else []
    return shown if cost.default is None else [*shown, f"default={cost.default!r}"]
