"""How an answer is worded: whom it is about, what labels are called, how numbers are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from string import Formatter
from typing import Any, NoReturn, Protocol, final

from counterlvq.errors import InvalidInputError, UnknownLabelError
from counterlvq.numeric.arrays import told
from counterlvq.presentation.numbers import exact_text
from counterlvq.safe_text import shown_repr, shown_text
from counterlvq.tables.feature import Feature
from counterlvq.tables.values import closest

__all__ = [
    "DATES",
    "NUMBERS",
    "PLACES",
    "PLAIN",
    "Spoken",
    "Wording",
    "listed",
    "plural",
    "refuse_response",
    "refuse_unspoken",
]

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
# How dates may be written, by example.
DATES: Mapping[str, str] = {
    "2024-05-31": "{year:04}-{month:02}-{day:02}",
    "31.05.2024": "{day:02}.{month:02}.{year:04}",
    "31/05/2024": "{day:02}/{month:02}/{year:04}",
    "05/31/2024": "{month:02}/{day:02}/{year:04}",
    "31 May 2024": "{day} {name} {year}",
    "May 31, 2024": "{name} {day}, {year}",
}
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
# What a template may have between braces.
PLACES = (
    "subject", "outcome", "now", "changes", "list", "others", "missing", "broken", "cost",
    "response",
)  # fmt: skip
# And one of texts that name no change for the outcome.
OTHER_PLACES = ("text", "subject", "now")


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
    >>> Wording(dates="31 May 2024").date(date(2026, 3, 2))
    '2 March 2026'
    """

    subject: str = "The answer"
    outcome: Mapping[Any, str] = field(default_factory=dict)
    most: int | None = None
    numbers: str = "1,234.5"
    template: str | None = None
    dates: str = "2024-05-31"
    rules: Mapping[Any, str] = field(default_factory=dict)  # words for constraints
    response: bool | None = None  # whether to say the number behind the decision
    otherwise: str | None = None  # the template of texts that name no change for the outcome

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
        if not isinstance(self.rules, Mapping):
            raise InvalidInputError(
                f"rules is {told(self.rules)}; expected a mapping from constraint to text, such as "
                f"{{'income <= 3500': 'incomes above 3,500 EUR are not insured'}}."
            )
        if self.dates not in DATES:
            raise InvalidInputError(
                f"dates is {told(self.dates)}; expected one of: {', '.join(map(repr, DATES))}."
            )
        if self.template is not None:
            self._parts()
        if self.otherwise is not None:
            self._other_parts()

    def checked(self, labels: Sequence[Any]) -> Wording:
        """Refuse words for a label that the model does not have."""
        strange = [label for label in self.outcome if label not in labels]
        if strange and labels:
            known = ", ".join(map(shown_repr, labels))
            close = closest(str(strange[0]), [str(label) for label in labels])
            hint = f" Did you mean {close!r}?" if close is not None else ""
            raise UnknownLabelError(
                f"outcome has words for {shown_repr(strange[0])}, which the model never says; "
                f"expected some of: {known}.{hint}"
            )
        return self

    def value(self, feature: Feature, value: Any) -> str:
        """Write a number or a date of a feature."""
        if isinstance(value, date):
            return self.date(value)
        return self.number(exact_text(value, feature), grouped=feature.groups(value))

    def rule(self, constraint: Any) -> str | None:
        """Return the words for a constraint, if there are some."""
        return next((words for key, words in self.rules.items() if key == constraint), None)

    def called(self, label: Any) -> str:
        """Return the word for a label."""
        return shown_text(self.outcome.get(label, label))

    def number(self, text: str, *, grouped: bool = True) -> str:
        """Write a number, which comes as 1,234.5, as it was asked for; years are not grouped."""
        thousands, decimal = NUMBERS[self.numbers]
        return text.translate({ord(","): thousands if grouped else "", ord("."): decimal})

    def date(self, value: date) -> str:
        """Write a date as it was asked for; of one with a time of day that too, to the minute."""
        name = _MONTHS[value.month - 1]
        hour = f" {value:%H:%M}" if isinstance(value, datetime) else ""
        day = DATES[self.dates].format(year=value.year, month=value.month, day=value.day, name=name)
        return day + hour

    @property
    def opening(self) -> str:
        """The subject at the head of a sentence; what is written like iPhone stays as it is.

        Examples
        --------
        >>> Wording("your application").opening, Wording("iPhone 4").opening
        ('Your application', 'iPhone 4')
        """
        subject = shown_text(self.subject)
        is_plain = subject.split()[0].islower()
        return subject[0].upper() + subject[1:] if is_plain else subject

    def has_place(self, place: str) -> bool:
        """Whether something has a place of its own; without a template everything has."""
        return self.template is None or any(name == place for _, name in self._parts())

    def filled(self, places: Mapping[str, str]) -> str:
        """Fill the template; what stays empty takes its space, or its line, along.

        Examples
        --------
        >>> Wording(template="{changes}. {missing}").filled({"changes": "a", "missing": ""})
        'a.'
        """
        return _filled(self._parts(), places)

    def framed(self, places: Mapping[str, str]) -> str:
        """Put a text that names no change for the outcome into its own template, if it has one.

        Examples
        --------
        >>> Wording(otherwise="Dear Ann: {text}").framed({"text": "It is good already."})
        'Dear Ann: It is good already.'
        """
        if self.otherwise is None:
            return places["text"]
        return _filled(self._other_parts(), places)

    def _parts(self) -> Sequence[tuple[str, str]]:
        return _parts_of("template", self.template, PLACES)

    def _other_parts(self) -> Sequence[tuple[str, str]]:
        return _parts_of("text for other rows (otherwise)", self.otherwise, OTHER_PLACES)


PLAIN = Wording()


def _filled(parts: Sequence[tuple[str, str]], places: Mapping[str, str]) -> str:
    """Fill a template; what stays empty takes its space, or its line, along."""
    out, was_empty = "", False
    for text, name in parts:
        stood_alone = was_empty and out.endswith("\n") and text.startswith("\n")
        out += text[1:] if stood_alone else text
        filling = places[name] if name else ""
        was_empty = bool(name) and not filling
        out = out.removesuffix(" ") if was_empty else out + filling
    return out


def _parts_of(called: str, template: Any, known: Sequence[str]) -> Sequence[tuple[str, str]]:
    """Text, and the place behind it, "" for none; nothing in a template is run."""
    if not isinstance(template, str):
        raise InvalidInputError(f"the {called} is {told(template)}; expected a text.")
    try:
        parsed = list(Formatter().parse(template))
    except ValueError as error:
        raise InvalidInputError(
            f"the {called} cannot be read ({error}); expected places such as {{{known[-1]}}}, and "
            f"{{{{ or }}}} for a brace."
        ) from None
    for _, name, spec, conversion in parsed:
        if name is not None and (name not in known or spec or conversion):
            asked = name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            raise InvalidInputError(
                f"the {called} has the place {told('{' + asked + '}')}; expected one of: "
                f"{', '.join('{' + place + '}' for place in known)}."
            )
    return [(text, name or "") for text, name, _, _ in parsed]


class Spoken(Protocol):
    """What has a sentence of its own, such as `Ranges`."""

    def sentence(self, wording: Wording) -> str:
        """Say it, worded like an answer."""

    def why_not_of(self, answer: Any) -> str:
        """Say why it is not about an answer; empty where it is."""


def listed(parts: Sequence[str]) -> str:
    """Join phrases: with commas, and the last one by "and".

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def refuse_response() -> NoReturn:
    """Refuse to say the number behind a decision of a model that has none."""
    raise InvalidInputError(
        "the model says neither a score nor a probability with its decisions; expected one that "
        "does, or no wish for a response (response=, --response)."
    )


def refuse_unspoken(ranges: Any, answer: Any) -> None:
    """Refuse ranges that cannot be said of an answer: a mere wish, or those of another answer."""
    if ranges is None:
        return
    why = f"ranges is {told(ranges)}"
    if hasattr(ranges, "why_not_of"):
        why = ranges.why_not_of(answer)
    if why:
        raise InvalidInputError(
            f"{why}; expected what `Explainer.ranges` says of this answer. Write "
            f"cf.text(ranges=explainer.ranges(cf)), with the explainer that gave it."
        )


def plural(word: str, count: int) -> str:
    """End a noun as its number asks for.

    Examples
    --------
    >>> [f"class{plural('class', count)}" for count in (1, 2)]
    ['class', 'classes']
    """
    return "" if count == 1 else "es" if word.endswith("s") else "s"
