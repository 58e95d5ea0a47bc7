"""What the user gets back, and how it reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from counterlvq.arrays import Floats, plain
from counterlvq.constraints import Constraint
from counterlvq.proofs import Certificate
from counterlvq.trees import Forest
from counterlvq.types import Status

__all__ = ["Change", "Counterfactual"]

_SHOWN_CHANGES = 20


@final
@dataclass(frozen=True)
class Change:
    """One feature that differs between the input and its counterfactual.

    Examples
    --------
    >>> change = Change("income", before=2400.0, after=2900.0)
    >>> change.difference
    500.0
    """

    feature: str
    before: float
    after: float

    @property
    def difference(self) -> float:
        """New value less old value."""
        return self.after - self.before

    def text(self) -> str:
        """Say the change in words.

        Examples
        --------
        >>> Change("income", 2400.0, 2900.0).text()
        'income were 500 higher (2,900 instead of 2,400)'
        """
        direction = "higher" if self.difference > 0 else "lower"
        before, after = _pair(self.before, self.after)
        by = _number(abs(self.difference))
        return f"{self.feature} were {by} {direction} ({after} instead of {before})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Counterfactual:
    """The answer to one question, with its proof.

    Attributes
    ----------
    x : ndarray of shape (d,)
        The counterfactual; NaN where there is none.
    original : ndarray of shape (d,)
        The factual input.
    status : Status
        OPTIMAL, FEASIBLE, INFEASIBLE or UNKNOWN.
    cost : float
        Cost of the change; inf without an answer.
    lower_bound : float
        Cost that no counterfactual under the same constraints undercuts, whatever the
        margin; inf if there is none.
    gap : float
        Share of the cost that is not proved.
    prediction, original_prediction : label
        What the model says of `x` (None without an answer) and of `original`.
    target : tuple of labels
        What was wished for.
    prototype : int
        The nearest prototype of `x`; -1 without an answer.
    conflict : tuple
        For INFEASIBLE: an irreducible set of the user's constraints, as they were given,
        that cannot hold together (empty if the target is out of reach without any).
    bound_with_margin : float
        As `lower_bound`, among points that keep the wished-for margin.
    reason : str
        How the answer was found, or why there is none.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["income"])
    >>> cf = clvq.Explainer(model).explain([0.5], target="yes")
    >>> cf.text()
    "The answer would have been 'yes' instead of 'no' if income were 1.5 higher (2 instead of 0.5)."
    """

    x: Floats
    original: Floats
    status: Status
    cost: float
    lower_bound: float
    gap: float
    prediction: Any
    original_prediction: Any
    target: tuple[Any, ...]
    prototype: int
    feature_names: tuple[str, ...]
    reason: str
    bound_with_margin: float
    conflict: tuple[Constraint | str, ...] = ()
    certificate: Certificate | Forest = field(default_factory=lambda: Certificate(()))

    @property
    def delta(self) -> Floats:
        """The change, counterfactual less input; NaN where there is no answer."""
        return self.x - self.original

    @property
    def changes(self) -> tuple[Change, ...]:
        """The features that change, in the order of the columns."""
        if not self.status.has_answer:
            return ()
        return tuple(
            Change(self.feature_names[j], float(self.original[j]), float(self.x[j]))
            for j in np.flatnonzero(self.x != self.original)
        )

    def text(self) -> str:
        """Say the answer in one sentence."""
        if self.status.has_answer and not self.changes:
            return f"The answer is {self.prediction!r} already; nothing needs to change."
        if self.status.has_answer:
            parts = [change.text() for change in self.changes]
            what = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
            return (
                f"The answer would have been {self.prediction!r} instead of "
                f"{self.original_prediction!r} if {what}."
            )
        wished = " or ".join(repr(label) for label in self.target)
        if self.status is Status.UNKNOWN:
            return f"No counterfactual for {wished} was found; that there is none is not proved."
        return f"There is no counterfactual for {wished}: {self._clash()}."

    def to_dict(self) -> dict[str, Any]:
        """Everything but the proof, as plain values that JSON can hold.

        Infinite and missing numbers become None; labels that JSON does not know, such as
        dates, become text.
        """
        return {
            "status": str(self.status),
            "prediction": _plain_label(self.prediction),
            "original_prediction": _plain_label(self.original_prediction),
            "target": [_plain_label(label) for label in self.target],
            "cost": _jsonable(self.cost),
            "lower_bound": _jsonable(self.lower_bound),
            "gap": _jsonable(self.gap),
            "prototype": self.prototype,
            "original": _named(self.feature_names, self.original),
            "x": _named(self.feature_names, self.x) if self.status.has_answer else None,
            "changes": [
                {
                    "feature": change.feature,
                    "before": change.before,
                    "after": change.after,
                    "difference": change.difference,
                }
                for change in self.changes
            ],
            "conflict": [_words(item) for item in self.conflict],
            "reason": self.reason,
        }

    def __str__(self) -> str:
        if not self.status.has_answer:
            return f"Counterfactual ({self.status})\n  {self.text()}\n  {self._proof_line()}"
        lines = [
            f"Counterfactual ({self.status})",
            f"  class   {self.original_prediction!r} -> {self.prediction!r}",
            *self._table(),
            f"  cost    {self.cost:.6g}",
            f"  proof   {self._proof_line()}",
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _table(self) -> list[str]:
        changes = self.changes
        if not changes:
            return ["  nothing needs to change"]
        shown = changes[:_SHOWN_CHANGES]
        rows = [("feature", "before", "after", "change")]
        rows += [(c.feature, *_pair(c.before, c.after), _signed(c.difference)) for c in shown]
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        lines = [
            "  " + row[0].ljust(widths[0]) + "".join(f"  {row[k]:>{widths[k]}}" for k in (1, 2, 3))
            for row in rows
        ]
        more = len(changes) - len(shown)
        same = len(self.feature_names) - len(changes)
        rest = [f"  and {more} more changed features"] if more else []
        rest += [f"  {same} feature{'s' if same != 1 else ''} unchanged"] if same else []
        return lines + rest

    def _proof_line(self) -> str:
        if self.status is Status.INFEASIBLE:
            return f"proved: {self.reason}"
        if self.status is Status.UNKNOWN:
            tried = f" ({self.reason})" if self.reason else ""
            return f"a counterfactual, if any, costs at least {self.lower_bound:.6g}{tried}"
        bound = f"no counterfactual costs less than {self.lower_bound:.6g}"
        if self.status is Status.OPTIMAL:
            return f"{bound} (gap {self.gap:.0e})"
        kept = self.bound_with_margin
        if kept > self.lower_bound and self.cost - kept <= 1e-4 * self.cost:
            return f"{bound}, and none with the wished-for margin less than {kept:.6g}"
        if self.lower_bound == 0:
            return "none: whether there is a closer one was not looked into"
        return f"{bound} (gap {self.gap:.2%}): a closer one is not ruled out"

    def _clash(self) -> str:
        if not self.conflict:
            return "the model never says so, with or without constraints"
        words = [_words(item) for item in self.conflict]
        if len(words) == 1:
            return f"{words[0]} leaves no room for it"
        return f"{', '.join(words[:-1])} and {words[-1]} leave no room for it together"


def _words(constraint: Constraint | str) -> str:
    return f'"{constraint}"' if isinstance(constraint, str) else repr(constraint)


def _plain_label(label: Any) -> Any:
    value = plain(label)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _named(names: tuple[str, ...], values: Floats) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def _jsonable(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _number(value: float) -> str:
    """Four significant digits, whole numbers in full, thousands set off by commas."""
    size = abs(value)
    if size != 0 and not 1e-4 <= size < 1e9:
        return f"{value:.4g}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _pair(before: float, after: float) -> tuple[str, str]:
    """Show two values so that the difference between them is seen, and at its size."""
    short = _number(before), _number(after)
    if before == after or _tells(short, after - before):
        return short
    for digits in range(5, 17):
        long = f"{before:,.{digits}g}", f"{after:,.{digits}g}"
        if _tells(long, after - before):
            return long
    return repr(before), repr(after)


def _tells(shown: tuple[str, str], difference: float) -> bool:
    before, after = (float(text.replace(",", "")) for text in shown)
    return abs(after - before - difference) <= 0.05 * abs(difference)


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + _number(value)
