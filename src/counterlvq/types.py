"""Small vocabulary shared by features, results, explainer and batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import final

__all__ = ["Kind", "Meaning", "Method", "Response", "Scores", "Status"]


class Status(StrEnum):
    """How a question was answered; members equal their lower-case names.

    Examples
    --------
    >>> Status.OPTIMAL == "optimal"
    True
    """

    OPTIMAL = "optimal"
    """A valid counterfactual, and the certificate shows that none is closer."""
    FEASIBLE = "feasible"
    """A valid counterfactual; a closer one is not ruled out, and `gap` says by how much."""
    INFEASIBLE = "infeasible"
    """Proved: no counterfactual exists under the constraints; `conflict` says why."""
    UNKNOWN = "unknown"
    """A limit was reached before a valid point was found; this is not a proof."""
    INVALID = "invalid"
    """The row cannot be read, so that nothing was asked; `reason` says why."""

    @property
    def has_answer(self) -> bool:
        """Whether a valid counterfactual came back."""
        return self in (Status.OPTIMAL, Status.FEASIBLE)


class Method(StrEnum):
    """How to search; for shared metrics every method is the exact one."""

    AUTO = "auto"
    CCP = "ccp"
    GLOBAL = "global"


class Kind(StrEnum):
    """What the values of a feature are; members equal their lower-case names."""

    REAL = "real"
    """Any number, or any number with so many decimals."""
    WHOLE = "whole"
    """Whole numbers, or every so many of them."""
    CATEGORICAL = "categorical"
    """One of several levels."""
    BOOLEAN = "boolean"
    """False or True."""
    DATE = "date"
    """Days, shown as dates; inside, whole numbers of days since 1970."""


class Scores(StrEnum):
    """What the numbers are by which a model compares its prototypes."""

    DISTANCE = "distance"
    """Squared distances; an offset is one too, in directions that no input moves in."""
    SHIFTED = "shifted"
    """Scores that are known up to a number that all of them share: only differences count."""
    ANGLE = "angle"
    """Squared distances from prototypes of length 1: their order is that of angles."""


@final
@dataclass(frozen=True)
class Response:
    """The number that a model with two classes compares with a threshold.

    Attributes
    ----------
    name : str
        What it is called: score, probability, prediction.
    label : int
        Position in `classes` of the label that it speaks for: the larger, the more.
    threshold : float
        Its value where the two classes meet.
    slope : float
        How much it grows with the lead of that label; of a probability, its log odds.
    is_probability : bool
        Whether it is one, so that its log odds are what grows evenly.

    Examples
    --------
    >>> Response("score", 1, threshold=640.0, slope=2.0).at(lead=-14.0)
    612.0
    >>> Response("probability", 1, threshold=0.5, is_probability=True).at(lead=0.0)
    0.5
    """

    name: str
    label: int
    threshold: float
    slope: float = 1.0
    is_probability: bool = False

    def at(self, lead: float) -> float:
        """Value where the label leads every other one by `lead`."""
        if not self.is_probability:
            return self.threshold + self.slope * lead
        odds = math.log(self.threshold) - math.log1p(-self.threshold) + self.slope * lead
        small = math.exp(-abs(odds))
        return (1.0 if odds >= 0 else small) / (1.0 + small)


@final
@dataclass(frozen=True)
class Meaning:
    """What the prototypes of a model stand for, and what its scores are.

    Attributes
    ----------
    part : str
        What one prototype is called: prototype, cluster, component, class.
    scores : Scores
        Squared distances, or scores up to a common shift.
    response : Response or None
        What a model with two classes compares with a threshold, if that is known.
    odds : float or None
        How much the log odds of two prototypes grow with the difference of their scores, where
        probabilities follow from scores alone: softmax of ``-odds * score``.
    unit : float or None
        Of a model from a file, the unit of rounding of the `predict` that it was saved from, where
        that rounds more than the model itself: answers lead by more than it can blur.
    """

    part: str = "prototype"
    scores: Scores = Scores.DISTANCE
    response: Response | None = None
    odds: float | None = None
    unit: float | None = None
