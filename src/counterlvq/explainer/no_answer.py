"""Why a row has no answer: constraints, ranges of features and steps that stand in the way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.questions import Question
from counterlvq.prepared import Prepared
from counterlvq.programs.template import ProgramTemplate
from counterlvq.search.result import SearchContext, SearchResult
from counterlvq.search.strategies import conflict, steps_in_the_way

__all__ = ["WhyNot", "everything", "why_not"]


class WhyNot(NamedTuple):
    """What leaves no room together, each by its position."""

    words: str
    constraints: tuple[int, ...] = ()
    ranges: tuple[int, ...] = ()  # features whose allowed ranges are part of it
    steps: tuple[int, ...] = ()  # features without whose steps there would be room
    is_irreducible: bool = True


def everything(view: Prepared, words: str) -> WhyNot:
    """Name all that was asked for, where nobody looks for less."""
    kept = tuple(range(len(view.asked.constraints)))
    return WhyNot(words, kept, view.source.coordinates.ranged, is_irreducible=False)


def why_not(
    view: Prepared, question: Question | BoxQuestion, context: SearchContext, find: SearchResult
) -> WhyNot:
    """Find few constraints and ranges that clash, and the steps that are part of the reason.

    Constraints are looked for first, as if ranges could not be lifted: what was asked for is
    more easily given up than what a column may hold.
    """
    look = partial(conflict, view.answers, question, context, find)
    found = look(len(view.asked.constraints), view.template_with)
    coordinates = view.source.coordinates
    ranged = coordinates.ranged

    def with_ranges(kept: Sequence[int]) -> ProgramTemplate:
        lifted = frozenset(ranged) - {ranged[k] for k in kept}
        return view.template_with(found.clashing, unranged=lifted)

    ranges = look(len(ranged), with_ranges)
    steps = steps_in_the_way(
        view.answers,
        question,
        context,
        find,
        coordinates.stepped,
        partial(view.template_with, found.clashing),
    )
    return WhyNot(
        found.words,
        found.clashing,
        tuple(ranged[k] for k in ranges.clashing),
        steps,
        found.is_irreducible and ranges.is_irreducible,
    )
