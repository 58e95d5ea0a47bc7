"""Small vocabulary shared by features, results, explainer and batch."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Kind", "Method", "Status"]


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
