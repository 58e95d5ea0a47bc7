"""`counterlvq explain --alternatives`: several ways for each row."""

from __future__ import annotations

import json
from typing import Any

import counterlvq as clvq
from counterlvq.cli.conventions import NO_ANSWER
from counterlvq.cli.options import cost_unit
from counterlvq.cli.outputs import is_terminal, write_whole
from counterlvq.cli.terminal import say, tell_unanswered
from counterlvq.presentation.progress import working
from counterlvq.presentation.wording import Wording

__all__ = ["tell_ways"]


def tell_ways(
    explainer: clvq.Explainer,
    rows: Any,
    target: Any,
    count: int,
    bad_rows: str,
    kind: str,
    output: str,
    wording: Wording,
) -> int:
    """Find ways for each row of a table, write them, and return the exit code."""
    with working("looking for ways"):
        found = [
            _ways(explainer, rows.iloc[[i]], target, count, bad_rows) for i in range(len(rows))
        ]
    if kind == "json":
        told = [{"row": i, **_values(ways, explainer)} for i, ways in enumerate(found)]
        text = json.dumps(told, indent=1, allow_nan=False)
    else:
        text = "\n\n".join(_paragraph(ways, wording) for ways in found)
    if is_terminal(output):
        say(text)
    else:
        write_whole(output, f"{text}\n".encode())
    statuses = [_status(ways) for ways in found]
    tell_unanswered(statuses)
    return 0 if all(status.has_answer for status in statuses) else NO_ANSWER


def _status(ways: clvq.Alternatives | clvq.Counterfactual) -> clvq.Status:
    """Say of a row what is said of its first way, or of why there is none."""
    if isinstance(ways, clvq.Counterfactual):
        return ways.status
    told = ways[0] if ways else ways.end
    return clvq.Status.UNKNOWN if told is None else told.status


def _ways(
    explainer: clvq.Explainer, row: Any, target: Any, count: int, bad_rows: str
) -> clvq.Alternatives | clvq.Counterfactual:
    """Find the ways of a row; of one that cannot be read, say why."""
    try:
        return explainer.alternatives(row, target, count=count)
    except clvq.InvalidInputError:
        if bad_rows == "raise":
            raise
        told = explainer.explain_batch(row, target, on_bad_rows=bad_rows)[0]
        if told.status is not clvq.Status.INVALID:
            raise
        return told


def _values(
    ways: clvq.Alternatives | clvq.Counterfactual, explainer: clvq.Explainer
) -> dict[str, Any]:
    unit = {"cost_unit": cost_unit(explainer)}
    if isinstance(ways, clvq.Alternatives):
        return {**ways.to_dict(), "reason": "", **unit}
    return {"ways": [], "is_complete": False, "reason": ways.reason, **unit}


def _paragraph(ways: clvq.Alternatives | clvq.Counterfactual, wording: Wording) -> str:
    """Say the ways one by one, and whether there are more."""
    if isinstance(ways, clvq.Counterfactual):
        return ways.text(**vars(wording))
    said = [f"{k}. {cf.text(**vars(wording))}" for k, cf in enumerate(ways, 1)]
    if not ways and ways.end is not None:
        return ways.end.text(**vars(wording))
    if ways.is_complete:
        said.append("There is no further way.")
    return "\n".join(said)
