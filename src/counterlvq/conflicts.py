"""Why there is no answer: a smallest set of the user's constraints that cannot hold together.

QuickXplain (Junker 2004): divide the constraints, and look for what is needed of one half
given the other. The result is irreducible: without any one of its members there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from counterlvq.arrays import Floats
from counterlvq.cells import Halfspaces
from counterlvq.programs import Blueprint
from counterlvq.proofs import Exclusion, Question, proof_of
from counterlvq.search import compiled_code, elastic_prices, refutation
from counterlvq.solvers.compiled import Code

__all__ = ["Reason", "cells_clash", "conflict_of", "smallest_conflict"]


class Reason(NamedTuple):
    """Which constraints clash, by position, and in what sense."""

    clashing: tuple[int, ...]
    words: str


def conflict_of(
    x: Floats,
    spread: Floats,
    count: int,
    prepared: Callable[[Sequence[int]], Blueprint],
    clash_with_target: Callable[[Sequence[int]], bool],
) -> Reason:
    """Find an irreducible set of the `count` constraints that leaves no room for the target.

    `prepared` states the listed constraints in numbers; `clash_with_target` says whether
    they are proved to leave no room for it. `spread` is how far the prototypes lie from `x`.
    """

    def clash_alone(kept: Sequence[int]) -> bool:
        blueprint = prepared(kept)
        bare = blueprint.at(x, Halfspaces.none(x.size), spread)
        return refutation(blueprint, x, bare) is not None

    if count and clash_alone(range(count)):
        words = "the constraints contradict each other at this input, whatever the class"
        return Reason(smallest_conflict(count, clash_alone), words)
    words = "each cell of the target is shown to be out of reach"
    return Reason(smallest_conflict(count, clash_with_target), words)


def cells_clash(
    question: Question, prepared: Callable[[Sequence[int]], Blueprint], margin: float | None
) -> Callable[[Sequence[int]], bool]:
    """Say of listed constraints whether they keep every cell of a shared metric out of reach."""

    def clash(kept: Sequence[int]) -> bool:
        reduced = replace(question, blueprint=prepared(kept), known=None)
        code = compiled_code(reduced, margin)
        if code is not Code.FAILED:
            return code is Code.INFEASIBLE
        return all(_is_out_of_reach(reduced, int(i), margin or 0.0) for i in reduced.cells.targets)

    return clash


def _is_out_of_reach(question: Question, prototype: int, margin: float) -> bool:
    """Whether the constraints are proved to keep one cell out of reach."""
    asked = margin - question.blur
    program = question.program(prototype).tightened(asked, question.cells.rivals.size)
    prices = elastic_prices(program)
    if prices is None:
        return False
    proof = proof_of(question, prototype, prices.multipliers, prices.point)
    return Exclusion(proof, asked).holds(question, asked)


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
