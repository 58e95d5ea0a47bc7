"""How an answer is worded: whom it is about, what labels are called, how numbers are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, final

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import told
from counterlvq.visible import shown_text

__all__ = ["NUMBERS", "PLACES", "PLAIN", "Wording", "listed", "plural"]

# How numbers may be written, by example: what stands between thousands, and before decimals. The
# space is narrow and does not let a number break in two.
NUMBERS: Mapping[str, tuple[str, str]] = {
    "1,234.5": (",", "."),
    "1.234,5": (".", ","),
    "1 234,5": ("\u202f", ","),
    "1 234.5": ("\u202f", "."),
    "1'234.5": ("'", "."),
    "1234.5": ("", "."),
    "1234,5": ("", ","),
}
# What a template may have between braces.
PLACES = ("subject", "outcome", "now", "changes", "others", "missing", "cost")


@final
@dataclass(frozen=True)
class Wording:
    """What the user has said about texts.

    Examples
    --------
    >>> wording = Wording(subject="Your application", outcome={"good": "accepted"})
    >>> wording.called("good"), wording.called("bad")
    ('accepted', 'bad')
    >>> Wording(numbers="1.234,5").number("2,931.5")
    '2.931,5'
    """

    subject: str = "The answer"
    outcome: Mapping[Any, str] = field(default_factory=dict)
    most: int | None = None
    numbers: str = "1,234.5"
    template: str | None = None

    def __post_init__(self) -> None:
        is_text = isinstance(self.subject, str)
        if not is_text or not self.subject.strip():
            raise InvalidInputError(
                f"subject is {told(self.subject)}; expected a text such as 'Your application'."
            )
        if not isinstance(self.outcome, Mapping):
            raise InvalidInputError(
                f"outcome is {told(self.outcome)}; expected a mapping from label to text, such as "
                f"{{'good': 'accepted'}}."
            )
        is_count = isinstance(self.most, int) and not isinstance(self.most, bool) and self.most > 0
        if self.most is not None and not is_count:
            raise InvalidInputError(
                f"most is {told(self.most)}; expected a number of changes of at least 1, or None."
            )
        if self.numbers not in NUMBERS:
            raise InvalidInputError(
                f"numbers is {told(self.numbers)}; expected one of: "
                f"{', '.join(map(repr, NUMBERS))}."
            )
        if self.template is not None:
            self._parts()

    def called(self, label: Any) -> str:
        """Return the word for a label."""
        return shown_text(self.outcome.get(label, label))

    def number(self, text: str) -> str:
        """Write a number, which comes as 1,234.5, as it was asked for."""
        thousands, decimal = NUMBERS[self.numbers]
        return text.translate({ord(","): thousands, ord("."): decimal})

    @property
    def parts_others(self) -> bool:
        """Whether changes beyond the first `most` have a place of their own."""
        return self.template is None or any(name == "others" for _, name in self._parts())

    def filled(self, places: Mapping[str, str]) -> str:
        """Fill the template."""
        return "".join(text + (places[name] if name else "") for text, name in self._parts())

    def _parts(self) -> Sequence[tuple[str, str]]:
        """Text, and the place behind it, "" for none; nothing in a template is run."""
        template: Any = self.template
        if not isinstance(template, str):
            raise InvalidInputError(f"template is {told(template)}; expected a text.")
        try:
            parsed = list(Formatter().parse(template))
        except ValueError as error:
            raise InvalidInputError(
                f"the template cannot be read ({error}); expected places such as {{changes}}, and "
                f"{{{{ or }}}} for a brace."
            ) from None
        for _, name, spec, conversion in parsed:
            if name is not None and (name not in PLACES or spec or conversion):
                raise InvalidInputError(
                    f"the template has the place {told('{' + name + '}')}; expected one of: "
                    f"{', '.join('{' + known + '}' for known in PLACES)}."
                )
        return [(text, name or "") for text, name, _, _ in parsed]


PLAIN = Wording()


def listed(parts: Sequence[str]) -> str:
    """Join phrases: with commas, and the last one by "and".

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def plural(word: str, count: int) -> str:
    """End a noun as its number asks for.

    Examples
    --------
    >>> [f"class{plural('class', count)}" for count in (1, 2)]
    ['class', 'classes']
    """
    return "" if count == 1 else "es" if word.endswith("s") else "s"
