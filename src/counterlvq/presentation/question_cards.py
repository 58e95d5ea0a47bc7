"""What questions find, as notebooks show it: sentences, and a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from counterlvq.markup.parts import card, table
from counterlvq.markup.tags import Safe, tag

__all__ = ["Listing", "question_card"]

# Rows of a table that are shown; more of them nobody reads.
_MOST_ROWS = 200


@final
@dataclass(frozen=True)
class Listing:
    """A table of texts; the first one of each row names it."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def question_card(name: str, said: Sequence[str], listings: Sequence[Listing]) -> str:
    """Set what was found: sentences, and tables below them; names and levels are text."""
    return card(
        tag("p", tag("strong", name), class_="top"),
        *(tag("p", line, class_="sentence") for line in said),
        *(_listed(listing) for listing in listings if listing.rows),
    )


def _listed(listing: Listing) -> Safe:
    rows = [
        tag("tr", tag("th", first, scope="row"), *(tag("td", cell, class_="num") for cell in rest))
        for first, *rest in listing.rows[:_MOST_ROWS]
    ]
    more = len(listing.rows) - len(rows)
    caption = listing.caption + (f"; {more:,} more are not listed" if more else "")
    return table(caption, listing.heads, rows, "rivals")
