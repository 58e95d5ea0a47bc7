"""Why there is no answer: a smallest set of the user's constraints that cannot hold together.

QuickXplain (Junker 2004): divide the constraints, and look for what is needed of one half
given the other. The result is irreducible: without any one of its members there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["smallest_conflict"]


def smallest_conflict(count: int, clash: Callable[[Sequence[int]], bool]) -> tuple[int, ...]:
    """Find an irreducible subset of ``range(count)`` that clashes.

    Parameters
    ----------
    count : int
        How many constraints there are; together they clash.
    clash : callable
        Whether the listed constraints, sorted, are proved to leave no room.

    Examples
    --------
    >>> smallest_conflict(5, lambda kept: {1, 3} <= set(kept))
    (1, 3)
    """

    def explain(background: list[int], grown: bool, suspects: list[int]) -> list[int]:
        if grown and clash(sorted(background)):
            return []
        if len(suspects) == 1:
            return suspects
        half = len(suspects) // 2
        left, right = suspects[:half], suspects[half:]
        needed_right = explain(background + left, bool(left), right)
        needed_left = explain(background + needed_right, bool(needed_right), left)
        return needed_left + needed_right

    everything = list(range(count))
    if not everything or clash([]):
        return ()
    return tuple(sorted(explain([], False, everything)))
