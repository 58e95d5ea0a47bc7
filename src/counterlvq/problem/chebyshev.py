"""The largest of the weighted changes as a cost, and as a condition on one more column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import Floats, read_only
from counterlvq.problem.constraints import Condition, Constraint, stated_conditions
from counterlvq.problem.cost_terms import Prices
from counterlvq.problem.costs import Cost, Default, Switches, set_switches, shown_switches
from counterlvq.problem.weights import Weights, checked_weights, in_order, shown_weights
from counterlvq.programs.conditions import (
    Implication,
    LargestChange,
    LinearConditions,
    QuadraticCondition,
)
from counterlvq.programs.intervals import ValueRule
from counterlvq.tables.features import Features

__all__ = ["BeforeHeight", "Chebyshev", "Height"]


@final
@dataclass(frozen=True, eq=False)
class Chebyshev(Cost):
    """Largest weighted change, ``max_j weights_j |delta_j|``: the distance in the maximum norm.

    What counts is how far the feature goes that goes farthest, so that others may go as far for
    nothing: nearly all of them move. It is a linear program with one more variable, and answers
    are found row by row.

    Parameters
    ----------
    weights : array-like of shape (d,), or mapping from feature name to float, optional
        Positive price of one unit of change per feature, as for `Manhattan`; 1 by default.
    switches : mapping from feature to price, optional
        What another level costs, for the feature or for each pair of levels; see `Cost`. It is
        one of the changes of which the largest counts: another level for 2 costs nothing more
        where a number goes as far as 2.
    default : float or mapping from feature to price, optional
        What pairs of levels cost that `switches` does not list.
    unit : str, optional
        What costs are counted in, as texts say it, such as "typical deviations".

    Examples
    --------
    >>> Chebyshev([1.0, 10.0]).value([3.0, -0.5])
    5.0
    >>> Chebyshev({"income": 0.001})
    Chebyshev({'income': 0.001})
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
    >>> cf = clvq.Explainer(model, Chebyshev()).explain([0.0, 0.0], target="yes")
    >>> print(f"{cf.status}, {cf.cost:.4f}")
    optimal, 1.6667
    """

    weights: Weights | None
    switches: Switches
    default: Default
    unit: str

    def __init__(
        self,
        weights: ArrayLike | Mapping[str, float] | None = None,
        switches: Switches | None = None,
        default: Default = None,
        *,
        unit: str = "",
    ) -> None:
        set_switches(self, switches, default)
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "weights", checked_weights("weights", weights))

    def __repr__(self) -> str:
        shown = [] if self.weights is None else [shown_weights(self.weights)]
        shown += shown_switches(self)
        shown += [f"unit={self.unit!r}"] if self.unit else []
        return f"Chebyshev({', '.join(shown)})"

    @property
    def takes_largest(self) -> bool:
        """Whether the largest of the weighted changes counts, and not their sum."""
        return True

    def for_columns(self, columns: Sequence[str]) -> Chebyshev:
        """Put weights by name into the order of the columns of a table."""
        if not isinstance(self.weights, Mapping):
            return self
        base = in_order(self.weights, Features(columns), np.ones(len(columns)))
        return Chebyshev(base, self.switches, self.default, unit=self.unit)

    def l1_weights(self, width: int) -> Floats:
        """Weights of the absolute changes, of which the largest counts, (d,)."""
        if self.weights is None:
            return np.ones(width)
        if isinstance(self.weights, Mapping):
            raise InvalidInputError(
                f"{self!r} has weights by name, and changes came without names; expected weights "
                f"in the order of the features. An Explainer knows the names."
            )
        if self.weights.shape[0] != width:
            raise InvalidInputError(
                f"Chebyshev has {self.weights.shape[0]} weights; expected {width}, one per feature."
            )
        return self.weights

    def l2_factor(self, width: int) -> Floats:
        """No quadratic part, (0, d)."""
        return np.zeros((0, width))


@final
@dataclass(frozen=True, eq=False)
class Height(Constraint):
    """No weighted change is above the value of the last column.

    With a price of 1 on that column alone, the cheapest row has the least of largest changes.
    """

    prices: Prices  # of the columns before it

    def __repr__(self) -> str:
        return "Height()"

    def conditions(self, features: Features) -> tuple[LargestChange, ...]:
        """State the condition in numbers; it depends on the level that a row has."""
        last = len(features) - 1
        return (LargestChange(last, self.prices.weights, self.prices.switches),)


@final
@dataclass(frozen=True, eq=False)
class BeforeHeight(Constraint):
    """A constraint as it is on the columns before the last.

    Positions, and arrays with an entry for each column, mean the columns that there were when it
    was stated: the last of them by -1, and all of them by an array.
    """

    own: Constraint
    features: Features  # the columns before the last

    def __repr__(self) -> str:
        return repr(self.own)

    @property
    def is_stated(self) -> bool:
        """Whether `conditions` says all that it asks for."""
        return self.own.is_stated

    def conditions(self, features: Features) -> tuple[Condition, ...]:
        """State the condition in numbers, with nothing about the last column."""
        stated = stated_conditions(self.own, self.features)
        return tuple(_with_one_more(part, len(features)) for part in stated)


def _with_one_more(part: Condition, width: int) -> Condition:
    """State a condition of the first columns of a row of `width`."""
    if isinstance(part, LinearConditions):
        return _rows_with_one_more(part, width)
    if isinstance(part, QuadraticCondition):
        return part.over(np.arange(part.h.size), width)
    if isinstance(part, Implication):
        then = part.then
        if isinstance(then, LinearConditions):
            then = _rows_with_one_more(then, width)
        when = part.when
        return Implication(
            _test_with_one_more(when, width) if isinstance(when, ValueRule) else when, then
        )
    return _test_with_one_more(part, width) if isinstance(part, ValueRule) else part


def _rows_with_one_more(rows: LinearConditions, width: int) -> LinearConditions:
    A, R = (np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in (rows.A, rows.R))
    return replace(rows, A=read_only(A), R=read_only(R))


def _test_with_one_more(test: ValueRule, width: int) -> ValueRule:
    if test.old is None:
        return test
    return replace(test, old=read_only(np.pad(test.old, (0, width - test.old.size))))
