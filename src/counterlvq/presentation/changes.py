"""One feature that differs between an input and its counterfactual, and how that is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, final

from counterlvq.presentation.numbers import ShownChange, exact_text, shown_change
from counterlvq.presentation.values import plain_label
from counterlvq.presentation.wording import PLAIN, Wording
from counterlvq.safe_text import shown_text
from counterlvq.tables.dates import days_between
from counterlvq.tables.feature import Feature
from counterlvq.types import Kind

__all__ = ["Change", "plain_change", "said_level", "table_lines"]

_SHOWN_CHANGES = 20
_STANDS_IN = "which stands in for a missing value"


@final
@dataclass(frozen=True)
class Change:
    """One feature that differs between the input and its counterfactual.

    Attributes
    ----------
    feature : str
    before, after : float, int or level
    unit : str
        As it is read behind a number; empty without one.
    is_level : bool
        Whether these are levels, even if they look like numbers.
    described : Feature or None
        The feature, with the words that people read instead of its name and its levels.
    was_missing : bool
        Whether the input has no value here, and `before` is what stands in for it.

    The attributes have full precision. `text` and `cells` show the numbers of the row that is
    shown for the answer, see `Counterfactual.shown`; all digits if the change is of no answer.

    Examples
    --------
    >>> change = Change("income", before=2400.0, after=2900.0, unit="EUR")
    >>> change.difference
    500.0
    """

    feature: str
    before: Any
    after: Any
    unit: str = ""
    is_level: bool = field(default=False, repr=False)
    described: Feature | None = field(default=None, repr=False, compare=False)
    find_shown: Callable[[], ShownChange] | None = field(default=None, repr=False, compare=False)
    was_missing: bool = field(default=False, repr=False)

    @property
    def difference(self) -> Any:
        """New value less old value, in days for dates; None between levels, which have none."""
        if self.is_date:
            return days_between(self.before, self.after)
        return self.after - self.before if self.is_number else None

    @property
    def is_number(self) -> bool:
        """Whether a number changes, rather than a level or a date."""
        return not self.is_level and all(
            isinstance(value, int | float) and not isinstance(value, bool)
            for value in (self.before, self.after)
        )

    @property
    def is_date(self) -> bool:
        """Whether a date changes."""
        return not self.is_level and all(
            isinstance(value, date) for value in (self.before, self.after)
        )

    @property
    def spoken(self) -> str:
        """What people read instead of the name of the feature."""
        return shown_text(self.feature if self.described is None else self.described.spoken)

    def text(self, wording: Wording = PLAIN) -> str:
        """Say the change in words.

        Examples
        --------
        >>> Change("income", 2400.0, 2900.0, "EUR").text()
        'income were 500 higher (2,900 instead of 2,400 EUR)'
        >>> Change("cards", 2, 1).text()
        'cards were 1 instead of 2'
        >>> Change("paid", date(2026, 3, 2), date(2026, 3, 16)).text()
        'paid were 14 days later (2026-03-16 instead of 2026-03-02)'
        >>> Change("cards", 2, 1, was_missing=True).text()
        'cards were 1 instead of 2 (which stands in for a missing value)'
        """
        shown = self._said(wording)
        if not self.is_number and self._is_phrase:
            instead = f" instead of {shown.before}{self._gap_aside}" if self.was_missing else ""
            return f"it were {shown.after}{instead}"
        instead = f"{shown.after} instead of {shown.before}{self.unit_words}"
        whole = not self.unit_words and isinstance(self.before, int) and isinstance(self.after, int)
        # A time of day may stand in for a missing date: how many days that is, nobody counts.
        by_parts = self.is_date and self.difference != int(self.difference)
        if not (self.is_number or self.is_date) or whole or by_parts:
            return f"{self.spoken} were {instead}{self._gap_aside}"
        gap = f", {_STANDS_IN}" if self.was_missing else ""
        return f"{self.spoken} were {shown.by} {self._way(shown)} ({instead}{gap})"

    def brief(self, wording: Wording = PLAIN) -> str:
        """Name the change in the fewest words.

        Examples
        --------
        >>> Change("income", 2400.0, 2900.0, "EUR").brief()
        'income 2,900 instead of 2,400 EUR'
        """
        shown = self._said(wording)
        if not self.is_number and self._is_phrase:
            return shown.after
        instead = f"{shown.after} instead of {shown.before}"
        return f"{self.spoken} {instead}{self.unit_words}{self._gap_aside}"

    def _way(self, shown: ShownChange) -> str:
        if self.is_date:
            return "later" if shown.rises else "earlier"
        return "higher" if shown.rises else "lower"

    @property
    def unit_words(self) -> str:
        """What stands behind a number, or behind a level that is one and has no words."""
        has_digits = self.is_number or (
            self.described is not None
            and self.described.has_numbers
            and not self.described.level_labels
        )
        return f" {shown_text(self.unit)}" if self.unit and has_digits else ""

    @property
    def _gap_aside(self) -> str:
        """In parentheses: other changes may follow in the same sentence."""
        return f" ({_STANDS_IN})" if self.was_missing else ""

    @property
    def _is_phrase(self) -> bool:
        """Whether there is a phrase for what a feature becomes, such as "with a guarantor"."""
        feature = self.described
        if feature is None or not (feature.phrases or feature.kind is Kind.BOOLEAN):
            return False
        return feature.words(self.after) != str(self.after)

    def cells(self, wording: Wording = PLAIN) -> tuple[str, str, str, str]:
        """Name, old value, new value and difference, as a table shows them."""
        shown = self._digits(wording)
        if self.was_missing:
            shown = replace(shown, before=f"missing, as {shown.before}")
        name = f"{self.spoken} ({self.unit_words.lstrip()})" if self.unit_words else self.spoken
        by = ("+" if shown.rises else "-") + shown.by if shown.by else ""
        return name, shown.before, shown.after, by

    def _digits(self, wording: Wording) -> ShownChange:
        """Old and new value as they are read, be they numbers, dates or levels."""
        if self.is_number:
            shown = self.shown
            before, after = (
                wording.number(text, grouped=self._grouped(value))
                for text, value in ((shown.before, self.before), (shown.after, self.after))
            )
            return ShownChange(before, after, wording.number(shown.by), shown.rises)
        if self.is_date:
            days = abs(self.difference)
            before, after = wording.date(self.before), wording.date(self.after)
            by = f"{wording.number(exact_text(round(days, 1)))} day{'' if days == 1 else 's'}"
            return ShownChange(before, after, by, self.difference > 0)
        before, after = (self._level(value, wording) for value in (self.before, self.after))
        return ShownChange(before, after, "", True)

    def _said(self, wording: Wording) -> ShownChange:
        """As `_digits`, in a sentence: nobody says True or False there."""
        shown = self._digits(wording)
        before, after = (said_level(text, self.after) for text in (shown.before, shown.after))
        return replace(shown, before=before, after=after)

    def _level(self, level: Any, wording: Wording) -> str:
        feature = self.described
        if feature is None or not feature.has_numbers or feature.words(level) != str(level):
            return shown_text(level if feature is None else feature.words(level))
        return wording.number(exact_text(level), grouped=feature.groups(level))

    def _grouped(self, value: float) -> bool:
        return self.described is None or self.described.groups(value)

    @property
    def shown(self) -> ShownChange:
        """The digits that are shown of a number."""
        if self.find_shown is None:
            return shown_change(self.before, self.after)
        return self.find_shown()


def said_level(text: str, level: Any) -> str:
    """Say a level for people, of whom nobody says True or False.

    Examples
    --------
    >>> said_level("True", True), said_level("rent", "rent"), said_level("True", "True")
    ('yes', 'rent', 'True')
    """
    return {"True": "yes", "False": "no"}.get(text, text) if isinstance(level, bool) else text


def plain_change(change: Change) -> dict[str, Any]:
    """Turn a change into plain values that JSON can hold, in full precision."""
    return {
        "feature": change.feature,
        "before": plain_label(change.before),
        "after": plain_label(change.after),
        "difference": change.difference,
        "unit": change.unit,
        "was_missing": change.was_missing,
    }


def table_lines(changes: Sequence[Change], unchanged: int, missing: int) -> list[str]:
    """Show changes line by line, and how many features do not change or stay missing."""
    if not changes:
        return ["  nothing needs to change"]
    shown = changes[:_SHOWN_CHANGES]
    rows = [("feature", "before", "after", "change"), *(change.cells() for change in shown)]
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    lines = []
    for row in rows:
        numbers = "".join(f"  {row[k]:>{widths[k]}}" for k in (1, 2, 3))
        lines.append(f"  {row[0]:<{widths[0]}}{numbers}".rstrip())
    if more := len(changes) - len(shown):
        lines.append(f"  and {more} more changed features, which text() names")
    if unchanged:
        lacking = f", {missing} of them missing" if missing else ""
        lines.append(f"  {unchanged} feature{'s' if unchanged != 1 else ''} unchanged{lacking}")
    return lines
