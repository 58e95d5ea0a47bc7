"""How far a search is, as it tells whoever waits for it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Progress"]


class Progress(NamedTuple):
    """How far a search is: what `Explainer.explain` hands to a function given as `progress`.

    Attributes
    ----------
    cost : float
        Cost of the best answer so far; inf without one.
    lower_bound : float
        No counterfactual costs less.
    gap : float
        Relative, ``(cost - lower_bound) / cost``.
    nodes : int
        Relaxations solved so far.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel(
    ...     [[1, 0], [7, 3], [3, 5], [5, 8]],
    ...     ["no", "no", "no", "yes"],
    ...     omegas=[[[2, 0], [0, 3]], [[2, 0], [0, 1]], [[1, 0], [0, 3]], [[2, 0], [0, 1]]],
    ... )
    >>> seen: list[clvq.Progress] = []
    >>> cf = clvq.Explainer(model).explain([1, 0], target="yes", progress=seen.append)
    >>> seen[-1].lower_bound <= cf.cost
    True
    """

    cost: float
    lower_bound: float
    gap: float
    nodes: int
