"""Constraints that hold where something else does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import told
from counterlvq.problem.constraints import Bounds, Constraint, OneOf, shown_call
from counterlvq.problem.expressions import Expression, as_constraint
from counterlvq.programs.conditions import Implication, LevelRule, LinearConditions
from counterlvq.programs.intervals import Interval, ValueRule
from counterlvq.tables.features import Features

__all__ = ["If"]


@final
@dataclass(frozen=True)
class If(Constraint):
    """Ask for a constraint only where a feature has some level or value.

    Parameters
    ----------
    when : OneOf, Bounds or str
        Levels or values of one feature: ``OneOf("job", ["clerk"])``, ``Bounds("amount",
        lower=5000)``, or text such as ``"amount > 5000"``.
    then : Constraint or str
        What has to hold there: linear, or about levels.

    Notes
    -----
    A real number that differs from the end of `when` by rounding alone, 2**-44 of its size,
    counts as that end.

    Examples
    --------
    >>> If(Bounds("amount", lower=5000), OneOf("guarantor", ["yes"]))
    If(Bounds('amount', lower=5000), OneOf('guarantor', ['yes']))
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 4.0]], ["no", "yes"])
    >>> promise = clvq.If("x0 > 3", then="x1 >= 2")
    >>> cf = clvq.Explainer(model, constraints=[promise]).explain([3.5, 0.0], target="yes")
    >>> cf.x.round(3).tolist()
    [3.0, 1.0]
    """

    when: Constraint | str
    then: Constraint | str

    def __post_init__(self) -> None:
        if not isinstance(self.when, OneOf | Bounds | Expression | str):
            raise InvalidInputError(
                f"If: when is {told(self.when)}; expected levels or values of one feature, such as "
                f"OneOf('job', ['clerk']), Bounds('amount', lower=5000) or 'amount > 5000'."
            )
        if not as_constraint(self.then).is_stated:
            raise InvalidInputError(
                f"If: then is {self.then!r}; expected a linear constraint, or levels of one "
                f"feature. A limit on how many features change cannot depend on one of them."
            )

    def __repr__(self) -> str:
        return shown_call("If", self.when, self.then)

    def conditions(self, features: Features) -> tuple[Implication, ...]:
        """State what holds where."""
        when, found = self._when(features), []
        for part in as_constraint(self.then).conditions(features):
            if not isinstance(part, LinearConditions | LevelRule):
                raise InvalidInputError(
                    f"If: then is {self.then!r}; expected a linear constraint, or levels of one "
                    f"feature."
                )
            found.append(Implication(when, part))
        return tuple(found)

    def _when(self, features: Features) -> LevelRule | ValueRule:
        if isinstance(self.when, Bounds):
            self.when.conditions(features)  # says what is wrong with it
            at = features.number(self.when.feature, "If")
            return ValueRule(at, (Interval(*self.when.ends),))
        if isinstance(self.when, OneOf):
            return self.when.conditions(features)[0]
        text = as_constraint(self.when)
        assert isinstance(text, Expression)  # nothing else is left
        return text.test(features)
