"""Counterfactuals as lines for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click

import counterlvq as clvq
from counterlvq.presentation.bounds import proved
from counterlvq.presentation.wording import PLAIN, Wording
from counterlvq.safe_text import shown_text

__all__ = ["listing"]

_COLORS = {
    "optimal": "green",
    "feasible": "yellow",
    "infeasible": "red",
    "unknown": "red",
    "invalid": "magenta",
}
_HEAD = ("row", "status", "class", "cost", "bound", "gap", "changes")
# A score or a probability stands there, where the model has one.
_BEFORE_CHANGES = len(_HEAD) - 1


def _called(answers: Sequence[clvq.Counterfactual]) -> str:
    """Say what the labels are: classes, unless they are numbers of clusters or components."""
    parts = {cf.part for cf in answers}
    return parts.pop() if len(parts) == 1 and parts <= {"cluster", "component"} else "class"


def listing(
    batch: clvq.CounterfactualBatch, notes: Sequence[str] = (), wording: Wording = PLAIN
) -> str:
    """List one line per row, notes, and a last line for all; colours are for terminals."""
    answers = [batch.sketch(i) for i in range(len(batch))]
    head = tuple(_called(answers) if name == "class" else name for name in _HEAD)
    lines = [head, *(_line(i, cf, wording) for i, cf in enumerate(answers))]
    replies, about = _replies(answers, wording)
    if replies:
        pairs = zip(lines, replies, strict=True)
        lines = [(*line[:_BEFORE_CHANGES], cell, line[-1]) for line, cell in pairs]
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]) - 1)]
    out = []
    for line in lines:
        cells = [
            cell.rjust(width) if k in (0, 3, 4, 5) else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=False))
        ]
        if line[1] in _COLORS:
            cells[1] = click.style(cells[1], fg=_COLORS[line[1]])
        out.append("  ".join([*cells, line[-1]]).rstrip())
    is_rounded = any(cf.status.has_answer and cf.shown.cost != cf.cost for cf in answers)
    rounded = ["cost and gap: of the rows as shown, with rounded numbers"] if is_rounded else []
    return "\n".join([*out, *rounded, *about, *notes, _last_line(batch)])


def _replies(
    answers: Sequence[clvq.Counterfactual], wording: Wording
) -> tuple[list[str], list[str]]:
    """Return a column with the numbers behind the decisions, and a note; nothing without any.

    Rows that stay as they are have no number of before and after.
    """
    if wording.response is False:
        return [], []
    found = [cf.reply if cf.shown_changes else None for cf in answers]
    names = {reply.name for reply in found if reply is not None}
    if not names:
        return [], []
    # Several names are probabilities of several classes, each of the class on its line.
    head = names.pop() if len(names) == 1 else "probability"
    cells = ["" if reply is None else reply.values_text(wording.number) for reply in found]
    about = [f"probability: of the {_called(answers)} that a row would have"] if names else []
    return [head, *cells], about


def _line(i: int, cf: clvq.Counterfactual, wording: Wording) -> tuple[str, ...]:
    before, now = cf.original_prediction, cf.prediction
    if not cf.status.has_answer:
        text = cf.text(**vars(replace(wording, otherwise=None)))  # one line, and no letter
        label = "" if cf.status is clvq.Status.INVALID else shown_text(before)
        return (str(i), str(cf.status), label, "", "", "", text)
    return (
        str(i),
        str(cf.status),
        shown_text(before) if now == before else f"{shown_text(before)} -> {shown_text(now)}",
        *(wording.number(text) for text in proved(cf.shown.cost, cf.lower_bound)[:3]),
        ", ".join(_change(change, wording) for change in cf.shown_changes) or "none needed",
    )


def _change(change: clvq.Change, wording: Wording) -> str:
    _, before, after, _ = change.cells(wording)
    return f"{change.spoken} {before} -> {after}"


def _last_line(batch: clvq.CounterfactualBatch) -> str:
    counts = {status: int((batch.status == status).sum()) for status in clvq.Status}
    told = ", ".join(f"{count:,} {status}" for status, count in counts.items() if count)
    right = int(batch.has_target.sum())
    already = f"; {right:,} {'has' if right == 1 else 'have'} the target already" if right else ""
    if changing := int(batch.moved[0][batch.has_target].sum()):
        already += f", of which {changing:,} change{'s' if changing == 1 else ''} all the same"
    rules = int(batch.breaks_rules.sum())
    verb, are = ("breaks", "it is") if rules == 1 else ("break", "they are")
    broken = f"; {rules:,} {verb} the constraints as {are}"
    return (
        f"{len(batch):,} row{'s' if len(batch) != 1 else ''}: {told}{already}"
        f"{broken if rules else ''}"
    )
