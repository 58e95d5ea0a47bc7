"""The number behind a decision, before and after, with digits enough to tell its side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log10
from typing import Any, Protocol, final

from counterlvq.numeric.arrays import Floats
from counterlvq.presentation.values import finite_or_none, plain_label
from counterlvq.safe_text import shown_repr, shown_text

__all__ = ["Favour", "Reply", "Respond", "favour_lines", "plain_favour", "plain_reply", "reply_at"]

# Of a score or a probability, unless more are needed to tell its side.
_REPLY_DIGITS = 4

# Decimals of a percentage next to 100.
_PERCENT_DIGITS = 9

# Label that `predict_proba` favours, the probability of that, and the one of what `predict` says.
Favour = tuple[Any, float, float]


class Respond(Protocol):
    """What a model says at a row beside its label."""

    def __call__(self, row: Floats, label: Any) -> tuple[str, float, float | None] | None:
        """Name and value of the number behind a decision for a label, and its threshold."""

    def favoured(self, row: Floats, label: Any) -> Favour | None:
        """Say which label `predict_proba` favours over this one; None if it favours none."""


def favour_lines(prediction: Any, favour: Favour | None) -> list[str]:
    """Warn of a `predict_proba` that contradicts `predict`.

    Examples
    --------
    >>> favour_lines("good", ("bad", 0.66, 0.34))
    ["  warning predict says 'good', and predict_proba favours 'bad' with 0.66 over 0.34"]
    """
    if favour is None:
        return []
    label, most, own = favour
    says = f"predict says {shown_repr(prediction)}"
    favours = f"predict_proba favours {shown_repr(label)} with {most:.3g} over {own:.3g}"
    return [f"  warning {says}, and {favours}"]


def plain_favour(favour: Favour | None) -> dict[str, Any] | None:
    """Turn it into plain values that JSON can hold; None where there is none."""
    if favour is None:
        return None
    label, most, own = favour
    return {"label": plain_label(label), "probability": most, "probability_of_prediction": own}


def plain_reply(reply: Reply | None) -> dict[str, Any] | None:
    """Turn it into plain values that JSON can hold; None where the model has none."""
    if reply is None:
        return None
    numbers = (reply.before, reply.after, reply.threshold)
    before, after, threshold = (None if v is None else finite_or_none(v) for v in numbers)
    return {"name": reply.name, "before": before, "after": after, "threshold": threshold}


@final
@dataclass(frozen=True)
class Reply:
    """The number behind a decision, before and after: a score, a probability, a prediction.

    Attributes
    ----------
    name : str
    before, after : float
        At the input, and at the answer: `Counterfactual.reply` is about the row that is shown,
        `Counterfactual.exact_reply` about the answer in full precision.
    threshold : float or None
        From which the decision is another one, where there is one.

    Examples
    --------
    >>> Reply("score", 612.3, 640.0, threshold=640.0).text()
    'score 612.3 -> 640'
    """

    name: str
    before: float
    after: float
    threshold: float | None = None

    def text(self, number: Callable[[str], str] = str) -> str:
        """Write both values with digits enough to tell on which side of the threshold they are.

        `number` writes a number in another way.
        """
        return f"{self.name} {self.values_text(number)}"

    def values_text(self, number: Callable[[str], str] = str) -> str:
        """Write the values alone, for a column that is called by the name.

        Examples
        --------
        >>> Reply("score", 612.3, 640.0, threshold=640.0).values_text()
        '612.3 -> 640'
        """
        before, after = (number(self._digits(value)) for value in (self.before, self.after))
        return f"{before} -> {after}"

    def sentence(self, called: str = "", number: Callable[[str], str] = str) -> str:
        """Say it in a sentence: probabilities in percent, of what the decision is called.

        Examples
        --------
        >>> Reply("score", 612.3, 640.0, threshold=640.0).sentence()
        'The score would be 640 instead of 612.3.'
        >>> Reply("probability of good", 1.2e-5, 0.514).sentence("accepted")
        'The probability of accepted would be 51 % instead of below 1 %.'
        """
        if not self._is_chance:
            before, after = (number(self._digits(value)) for value in (self.before, self.after))
            return f"The {self.name} would be {after} instead of {before}."
        shares = [
            tuple(number(_percent(value, digits)) for value in (self.after, self.before))
            for digits in range(4)
        ]
        after, before = next((pair for pair in shares if pair[0] != pair[1]), shares[-1])
        name = f"probability of {called}" if called else self.name
        return f"The {name} would be {after} instead of {before}."

    @property
    def _is_chance(self) -> bool:
        """Whether these are probabilities without a threshold of their own."""
        return self.threshold is None and self.name.startswith("probability")

    def _digits(self, value: float) -> str:
        for digits in range(_REPLY_DIGITS, 17):
            text = f"{value:.{digits}g}"
            if self.threshold is None:
                near = abs(float(text) - value) <= abs(self.after - self.before) / 100
            else:
                near = (float(text) >= self.threshold) == (value >= self.threshold)
            # Where a probability is not certain, neither is what is shown of it.
            is_sure = self._is_chance and float(text) in (0.0, 1.0) and value not in (0.0, 1.0)
            if near and not is_sure:
                return text
        return repr(value)


def reply_at(
    respond: Respond, original: Floats, find: Callable[[], Floats], label: Any, known: str = ""
) -> Reply | None:
    """Ask for the number at the input and at the answer that `find` looks up; None without any."""
    before = respond(original, label)
    after = None if before is None else respond(find(), label)
    if before is None or after is None:
        return None
    name = before[0]
    if name == "probability" and before[2] is None:
        name = f"probability of {known}{shown_text(label)}"
    return Reply(shown_text(name), before[1], after[1], before[2])


def _percent(value: float, digits: int) -> str:
    """Write a probability in percent; none is said to be 0 or 100."""
    least = 10.0**-digits
    if 100 * value < least:
        return f"below {least:.{digits}f} %"
    if 100 * value > 100 - least:
        # A promise of 99.999 % is seen to hold by as many digits as the distance from 100 takes.
        needed = ceil(-log10(100 - 100 * value)) if value < 1 else digits
        if not digits < needed <= _PERCENT_DIGITS:
            return f"above {100 - least:.{digits}f} %"
        digits = needed
    return f"{100 * value:.{digits}f} %"
