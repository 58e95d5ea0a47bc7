"""Several ways to another label, in order of cost, that really differ.

Two ways differ if something that changes in the earlier one stays as it is in the later one. So
each question is the last one with one limit more: not all of the features that have just changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import index
from typing import Any, SupportsIndex, final, overload

import numpy as np

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import told
from counterlvq.presentation.numbers import DIGITS, cost_text
from counterlvq.presentation.question_cards import Listing, question_card
from counterlvq.presentation.sentences import noun_of
from counterlvq.presentation.values import answer_columns, holdable, with_gaps
from counterlvq.problem.at_most import AtMost
from counterlvq.questions.protocol import Asks, refuse_rows
from counterlvq.results import Counterfactual
from counterlvq.safe_text import shown_text
from counterlvq.search.few_changes import changed_columns
from counterlvq.tables.frames import new_frame
from counterlvq.tables.views import FrameView
from counterlvq.types import Status

__all__ = ["Alternatives", "alternatives_of"]

# A double is told from all others by so many digits.
_ALL_DIGITS = 17


@final
@dataclass(frozen=True, eq=False, repr=False)
class Alternatives(Sequence[Counterfactual]):
    """Ways to another label, the closest first; a sequence of counterfactuals.

    In each way at least one of the features stays as it was that change in each earlier way.

    Attributes
    ----------
    ways : tuple of Counterfactual
        Each proved by itself: nothing cheaper differs from all earlier ways in this sense.
    asked : tuple of Explainer
        Who was asked for each way: ``asked[k].verify(ways[k])`` recomputes its bound.
    end : Counterfactual or None
        Why there are no more of them, where fewer were found than asked for. Of status INFEASIBLE
        if it is proved that there is no further one, which ``asked[-1].verify(end)`` checks: it is
        inf then.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 3.0]], ["no", "yes"], None, ["pay", "age"])
    >>> ways = clvq.Explainer(model).alternatives([1.0, 1.0], target="yes")
    >>> [[change.feature for change in cf.changes] for cf in ways], ways.is_complete
    ([['pay'], ['age']], True)
    >>> print(ways)
                    1        2
    class   no      yes      yes
    pay      1     2.38        .
    age      1        .     2.84
    cost           1.38     1.84
    status      optimal  optimal
    There is no further way: it is proved that none differs from these.
    """

    ways: tuple[Counterfactual, ...]
    asked: tuple[Asks, ...]
    end: Counterfactual | None
    make_frame: Callable[[dict[str, Any]], Any] = field(default=new_frame, repr=False)

    @property
    def is_complete(self) -> bool:
        """Whether it is proved that there is no further way."""
        return self.end is not None and self.end.status is Status.INFEASIBLE

    @overload
    def __getitem__(self, at: SupportsIndex) -> Counterfactual: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Counterfactual, ...]: ...

    def __getitem__(self, at: SupportsIndex | slice) -> Counterfactual | tuple[Counterfactual, ...]:
        return self.ways[at]

    def __len__(self) -> int:
        return len(self.ways)

    def __iter__(self) -> Iterator[Counterfactual]:
        return iter(self.ways)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the proofs, as plain values that JSON can hold."""
        return {"ways": [cf.to_dict() for cf in self.ways], "is_complete": self.is_complete}

    def to_frame(self) -> Any:
        """Put the ways in a DataFrame, one row per way, the closest first.

        Its columns are those of `CounterfactualBatch.to_frame`: for each feature f there are
        f_before, f_after and, for numbers, f_change; then cost, lower_bound, gap, status,
        prediction, original_prediction and prototype. Numbers have full precision. It is a frame
        of the library that the input came in, of pandas for arrays, and row k is ``ways[k]``.

        Examples
        --------
        >>> import counterlvq as clvq
        >>> model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], None, ["pay"])
        >>> ways = clvq.Explainer(model, constraints=["pay >= 3"]).alternatives([1.0], "yes")
        >>> ways.to_frame()[["pay_before", "pay_after", "pay_change", "cost", "prediction"]]
           pay_before  pay_after  pay_change  cost prediction
        0         1.0        3.0         2.0   2.0        yes
        """
        features = self.asked[0].features
        shape = len(self), len(features)
        before, after, delta = (
            np.array(rows, dtype=np.float64).reshape(shape)
            for rows in (
                [with_gaps(cf.original_values, cf.missing) for cf in self],
                [cf.values_with_gaps for cf in self],
                [cf.delta for cf in self],
            )
        )
        columns = answer_columns(features, before, after, delta)
        for name in ("cost", "lower_bound", "gap"):
            columns[name] = np.array([getattr(cf, name) for cf in self], dtype=np.float64)
        columns["status"] = np.array([str(cf.status) for cf in self], dtype=np.str_)
        for name in ("prediction", "original_prediction"):
            labels = np.empty(len(self), dtype=self.asked[0].model.labels.dtype)
            for k, cf in enumerate(self):
                labels[k] = getattr(cf, name)
            columns[name] = holdable(labels)
        columns["prototype"] = np.array([cf.prototype for cf in self], dtype=np.int64)
        return self.make_frame(columns)

    def __str__(self) -> str:
        if self._is_empty:
            return "\n".join(self._notes())
        return "\n".join([*self._table(), *self._notes()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Show the ways in a notebook."""
        if self._is_empty:
            return question_card("Alternatives", self._notes(), [])
        heads, *rows = self._rows()
        heads = ["feature", "now", *(f"way {number}" for number in heads[2:])]
        listing = Listing("One column per way", heads, rows)
        return question_card("Alternatives", self._notes(), [listing])

    @property
    def _is_empty(self) -> bool:
        """Whether nothing has to change, or there is no way."""
        return not self.ways or not self.ways[0].changes

    def _notes(self) -> list[str]:
        """Say how the list ends, or why it is none."""
        if self.ways and not self.ways[0].changes:
            return [self.ways[0].text()]  # the input has the target already
        if not self.ways:
            return ["No way was found." if self.end is None else self.end.text()]
        if self.is_complete:
            return ["There is no further way: it is proved that none differs from these."]
        if self.end is not None:
            return ["No further way was found; that there is none is not proved."]
        return []

    def _table(self) -> list[str]:
        """Set the rows in columns as wide as their texts."""
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            "  ".join(
                cell.ljust(width) if k == 0 else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]

    def _rows(self) -> list[list[str]]:
        """One column for each way, one row for each feature that changes in some of them.

        Above them what the model says, and below them what the ways cost and what is proved.
        """
        shown = [{change.feature: change.cells() for change in cf.shown_changes} for cf in self]
        names = [
            name for name in self.ways[0].feature_names if any(name in changes for changes in shown)
        ]
        first, noun = self.ways[0], noun_of(self.ways[0].part)
        labels = (first.original_prediction, *(cf.prediction for cf in self))
        rows = [
            ["", "", *(str(k + 1) for k in range(len(self)))],
            ["class" if noun == "answer" else noun, *map(shown_text, labels)],
        ]
        for name in names:
            # As tables of one answer call it: with its unit, by its label.
            called, before = next(changes[name][:2] for changes in shown if name in changes)
            after = [changes[name][2] if name in changes else "." for changes in shown]
            rows.append([called, before, *after])
        name, costs = self._costs()
        return [
            *rows,
            [name, "", *costs],
            ["status", "", *(str(cf.status) for cf in self)],
        ]

    def _costs(self) -> tuple[str, list[str]]:
        """Costs of what is shown; those of the ways themselves where rounding upsets the order."""
        shown = [cf.shown.cost for cf in self]
        if shown == sorted(shown):
            return "cost", [cost_text(cost) for cost in shown]
        own = [cf.cost for cf in self]
        for digits in range(DIGITS, _ALL_DIGITS + 1):
            texts = [cost_text(cost, digits) for cost in own]
            if len(set(texts)) == len(set(own)):
                break
        return "cost before rounding", texts


def alternatives_of(explainer: Asks, x: Any, target: Any, count: SupportsIndex) -> Alternatives:
    """Find the closest answer, and then the closest that differ from those before."""
    if isinstance(count, bool) or not hasattr(type(count), "__index__") or index(count) < 1:
        raise InvalidInputError(
            f"count is {told(count)}; expected how many ways are wanted, a whole number of at "
            f"least 1."
        )
    _refuse_small_moves(explainer)
    refuse_rows(x, "alternatives", "ways")
    ways: list[Counterfactual] = []
    asked: list[Asks] = []
    now, end = explainer, None
    while len(ways) < index(count):
        found = now.explain(x, target)
        asked.append(now)
        if not found.status.has_answer:
            end = found
            break
        ways.append(found)
        changed = sorted(changed_columns(found.original_values, found.values))
        if not changed:
            break  # nothing has to change, and nothing can stay that does
        names = [explainer.features.names[j] for j in changed]
        limit = AtMost(len(names) - 1, *names)
        now = now.asking_for(constraints=(*now.constraints, limit))
    given = explainer._source.seen(x, is_row=True)
    make = partial(_frame_like, given) if isinstance(given, FrameView) else new_frame
    return Alternatives(tuple(ways), tuple(asked), end, make)


def _frame_like(given: FrameView, columns: dict[str, Any]) -> Any:
    """Make a frame in the library of a table, with rows that are counted from 0."""
    made = given.taking(np.zeros(len(columns["cost"]), dtype=np.int64)).beside(columns)
    return made.reset_index(drop=True) if hasattr(made, "reset_index") else made


def _refuse_small_moves(explainer: Asks) -> None:
    """Refuse costs without a limit under which nearly every feature moves a little."""
    is_spread = explainer.prices.takes_largest or not explainer.prices.form.is_flat
    if is_spread and not explainer.limits:
        raise InvalidInputError(
            "alternatives differ in which features change, and with this cost nearly every "
            "feature moves a little; expected an AtMost among the constraints, such as "
            "AtMost(2), or a Manhattan cost."
        )
