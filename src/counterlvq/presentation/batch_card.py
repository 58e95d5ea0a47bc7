"""Many answers as notebooks show them: figures, small charts, and the first rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from counterlvq.markup.counts import FeatureCount, count_table
from counterlvq.markup.parts import (
    STATUS_WORDS,
    Fact,
    badge,
    card,
    class_change,
    columns_chart,
    fact_list,
    table,
)
from counterlvq.markup.tags import Safe, tag
from counterlvq.numeric.arrays import Floats
from counterlvq.presentation.numbers import ShownRow, rough_text, shown_row
from counterlvq.presentation.rows import value_words
from counterlvq.presentation.values import value_of
from counterlvq.safe_text import shown_repr, shown_text
from counterlvq.tables.features import Features
from counterlvq.types import Status

__all__ = ["batch_card"]

_BINS = 20
# Rows that are shown, columns of theirs, and features that are counted.
_ROWS, _COLUMNS, _FEATURES = 5, 6, 6


class CardBatch(Protocol):
    """What is asked of a batch to show it."""

    @property
    def features(self) -> Features:
        """What the columns are."""

    @property
    def values(self) -> Floats:
        """Counterfactuals, (n, d)."""

    @property
    def original_values(self) -> Floats:
        """Inputs, (n, d)."""

    @property
    def cost(self) -> Floats:
        """Costs, (n,)."""

    @property
    def status(self) -> NDArray[np.str_]:
        """How rows were answered, (n,)."""

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Where inputs have no value, (n, d)."""

    @property
    def rows(self) -> NDArray[np.int64]:
        """Positions of the rows, (n,)."""

    @property
    def prediction(self) -> NDArray[Any]:
        """Labels of counterfactuals, (n,)."""

    @property
    def original_prediction(self) -> NDArray[Any]:
        """Labels of inputs, (n,)."""

    @property
    def moved(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which rows needed a change and got one, (n,), and what changes in those, (m, d)."""

    @property
    def check(self) -> Callable[[Floats, tuple[Any, ...], Floats, float], Any] | None:
        """Whether a rounded row is an answer too."""


def batch_card(batch: CardBatch, more: list[Fact]) -> str:
    """Set a batch; `more` are figures that are known of it."""
    answered, changed = batch.moved
    counts = _counts(batch, answered, changed)
    costs = batch.cost[answered]
    charts = [
        count_table(counts, len(costs), _FEATURES) if counts else None,
        _spread(costs) if len(costs) > 1 and costs.max() > costs.min() else None,
    ]
    ends = [
        Fact(words, f"{int((batch.status == status).sum()):,}")
        for status, words in STATUS_WORDS.items()
        if (batch.status == status).any()
    ]
    return card(
        tag("p", tag("strong", "Counterfactuals of a batch"), class_="top"),
        fact_list([Fact("rows", f"{len(batch.cost):,}"), *ends, *more], "figures"),
        tag("div", *charts, class_="charts") if any(charts) else None,
        _first_rows(batch),
    )


def _counts(
    batch: CardBatch, answered: NDArray[np.bool_], changed: NDArray[np.bool_]
) -> list[FeatureCount]:
    """Count in how many answers each feature goes up and down; those that never do are left out."""
    rises = batch.values[answered] > batch.original_values[answered]
    out = []
    for j, feature in enumerate(batch.features):
        up, all_of = int((changed[:, j] & rises[:, j]).sum()), int(changed[:, j].sum())
        parts = (up, all_of - up, 0) if feature.is_number else (0, 0, all_of)
        out.append(FeatureCount(shown_text(feature.spoken), *parts))
    return sorted((use for use in out if use.changed), key=lambda use: -use.changed)


def _spread(costs: Floats) -> Safe:
    heights, edges = np.histogram(costs, bins=min(_BINS, len(costs)))
    low, high = rough_text(float(edges[0])), rough_text(float(edges[-1]))
    words = f"How many answers cost how much, from {low} to {high}"
    return tag(
        "figure",
        tag("figcaption", "What answers cost"),
        columns_chart(heights.tolist(), words),
        tag("div", tag("span", low), tag("span", high), class_="ends note"),
    )


def _first_rows(batch: CardBatch) -> Safe | None:
    """Set the first rows, changed values bold; columns that change come first."""
    count = min(_ROWS, len(batch.cost))
    if not count:
        return None
    shown = [_shown(batch, i) for i in range(count)]
    before = batch.original_values[:count]
    moves = np.array([row.values for row in shown]) != before
    moves &= np.array([Status(end).has_answer for end in batch.status[:count]])[:, None]
    order = np.argsort(-moves.sum(axis=0), kind="stable")[:_COLUMNS].tolist()
    heads = [shown_text(batch.features.columns[j].spoken) for j in order]
    lines = [_line(batch, i, shown[i], order) for i in range(count)]
    more = len(batch.features) - len(order)
    words = "The rows" if count == len(batch.cost) else f"The first {count} rows"
    words += ", with what changes in bold"
    words += f"; {more} more feature{' is' if more == 1 else 's are'} not shown" if more else ""
    return table(words, ("row", "class", "proof", *heads), lines, "rows")


def _shown(batch: CardBatch, i: int) -> ShownRow:
    """Round an answer as its texts do: as far as what is shown is an answer too."""
    check = None
    if batch.check is not None and np.isfinite(batch.cost[i]):
        check = partial(batch.check, batch.original_values[i], (batch.prediction.tolist()[i],))
    return shown_row(
        batch.features, batch.original_values[i], batch.values[i], float(batch.cost[i]), check
    )


def _line(batch: CardBatch, i: int, shown: ShownRow, order: list[int]) -> Safe:
    status = Status(batch.status[i])
    labels: tuple[str, ...] = ("–",)
    if status is not Status.INVALID:
        now = shown_repr(batch.original_prediction.tolist()[i])
        then = shown_repr(batch.prediction.tolist()[i]) if status.has_answer else "–"
        labels = class_change(now, then)
    return tag(
        "tr",
        tag("th", str(int(batch.rows[i])), scope="row"),
        tag("td", *labels),
        tag("td", badge(status)),
        *(_cell(batch, i, j, shown, status) for j in order),
    )


def _cell(batch: CardBatch, i: int, j: int, shown: ShownRow, status: Status) -> Safe:
    feature, before = batch.features.columns[j], float(batch.original_values[i, j])
    moved = status.has_answer and float(shown.values[j]) != before
    if np.isnan(before) or (batch.missing[i, j] and not moved):
        return tag("td", "–", class_="num")
    if not moved:
        return tag("td", value_words(feature, value_of(before, feature)), class_="num")
    unit = f" {shown_text(feature.unit)}" if feature.unit else ""
    digits = shown.changes.get(j)
    after = value_words(feature, value_of(float(shown.values[j]), feature))
    return tag("td", tag("b", after if digits is None else digits.after + unit), class_="num")
