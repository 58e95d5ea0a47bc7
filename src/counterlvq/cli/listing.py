"""Counterfactuals as lines for people."""

from __future__ import annotations

from typing import Any

import click

import counterlvq as clvq

__all__ = ["listing"]

_COLORS = {"optimal": "green", "feasible": "yellow", "infeasible": "red", "unknown": "red"}
_HEAD = ("row", "status", "class", "cost", "gap", "changes")


def listing(batch: clvq.CounterfactualBatch) -> str:
    """List one line per row and a last one for all of them; colours are for terminals."""
    told = batch.to_frame().to_dict("records")
    lines = [_HEAD, *(_line(batch, i, row) for i, row in enumerate(told))]
    widths = [max(len(line[k]) for line in lines) for k in range(len(_HEAD) - 1)]
    out = []
    for line in lines:
        cells = [
            cell.rjust(width) if k in (0, 3, 4) else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=False))
        ]
        if line[1] in _COLORS:
            cells[1] = click.style(cells[1], fg=_COLORS[line[1]])
        out.append("  ".join([*cells, line[-1]]).rstrip())
    return "\n".join([*out, _last_line(batch)])


def _line(batch: clvq.CounterfactualBatch, i: int, told: dict[str, Any]) -> tuple[str, ...]:
    status, before, now = told["status"], told["original_prediction"], told["prediction"]
    if not clvq.Status(status).has_answer:
        return (str(i), status, str(before), "", "", batch[i].text())
    changes = [
        f"{name} {_shown(told[f'{name}_before'])} -> {_shown(told[f'{name}_after'])}"
        for name in batch.feature_names
        if told[f"{name}_before"] != told[f"{name}_after"]
    ]
    return (
        str(i),
        status,
        str(before) if now == before else f"{before} -> {now}",
        f"{told['cost']:.6g}",
        f"{told['gap']:.0e}" if told["gap"] else "0",
        ", ".join(changes) or "none needed",
    )


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _last_line(batch: clvq.CounterfactualBatch) -> str:
    counts = {status: int((batch.status == status).sum()) for status in clvq.Status}
    told = ", ".join(f"{count:,} {status}" for status, count in counts.items() if count)
    return f"{len(batch):,} row{'s' if len(batch) != 1 else ''}: {told}"
