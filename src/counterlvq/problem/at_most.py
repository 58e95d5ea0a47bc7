"""How many features may change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import SupportsIndex, final

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import told
from counterlvq.problem.constraints import Condition, Constraint, shown_call
from counterlvq.programs.at_most import CountLimit
from counterlvq.tables.features import FeatureKey, Features

__all__ = ["AtMost", "limits_of"]


@final
@dataclass(frozen=True, init=False, repr=False)
class AtMost(Constraint):
    """At most so many features change, of those that are named or of all.

    A feature with levels is one feature. No program says so by itself: it is asked by branching
    into a feature that stays as it is, and one that counts as changed, and proved alike.

    Parameters
    ----------
    count : int
        At least 0.
    *features : str or int
        Names or positions; all features by default. A count of as many as are named, or more,
        limits nothing, and is no error: lists of features may be of any length.

    Examples
    --------
    >>> AtMost(2), AtMost(1, "age", "income")
    (AtMost(2), AtMost(1, 'age', 'income'))
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [2.0, 1.0]], ["no", "yes"])
    >>> asked = clvq.Explainer(model, clvq.Euclidean(), [AtMost(1)])
    >>> asked.explain([0.0, 0.0], target="yes").text()
    'The answer would have been yes if x0 were 1.251 higher (1.251 instead of 0).'
    """

    count: int
    features: tuple[FeatureKey, ...]

    def __init__(self, count: SupportsIndex, *features: FeatureKey) -> None:
        if isinstance(count, bool) or not hasattr(type(count), "__index__") or index(count) < 0:
            raise InvalidInputError(
                f"AtMost: count is {told(count)}; expected a whole number of at least 0, and the "
                f"features behind it."
            )
        for key in features:
            if isinstance(key, Sequence) and not isinstance(key, str):
                raise InvalidInputError(
                    f"AtMost got a {type(key).__name__}; expected features one by one. "
                    f"Write AtMost({index(count)}, *features)."
                )
        object.__setattr__(self, "count", index(count))
        object.__setattr__(self, "features", features)

    def __repr__(self) -> str:
        return shown_call("AtMost", self.count, *self.features)

    @property
    def is_stated(self) -> bool:
        """Whether `conditions` says all that it asks for: it says nothing of counts."""
        return False

    def conditions(self, features: Features) -> tuple[Condition, ...]:
        """State what holds of every change: nothing; see `limit`."""
        self.limit(features)  # says what is wrong with it
        return ()

    def limit(self, features: Features) -> CountLimit:
        """State the limit for the given columns."""
        if not self.features:
            return CountLimit(self.count, frozenset(range(len(features))))
        # What the model does not see stays as it is in every answer.
        kept = [key for key in self.features if features.sees(key)]
        columns = [features.position(key) for key in kept]
        if len(set(columns)) < len(columns):
            twice = next(key for key in kept if columns.count(features.position(key)) > 1)
            raise InvalidInputError(
                f"AtMost names {told(twice)} twice; expected each feature once, for it counts once."
            )
        return CountLimit(self.count, frozenset(columns))


def limits_of(
    constraints: Sequence[Constraint | str], features: Features
) -> tuple[CountLimit, ...]:
    """Gather the limits on how many features change."""
    return tuple(item.limit(features) for item in constraints if isinstance(item, AtMost))
