"""`counterlvq explain --alternatives`: several ways for each row."""

from __future__ import annotations

import json
from typing import Any

import counterlvq as clvq
from counterlvq.cli.conventions import NO_ANSWER
from counterlvq.cli.outputs import is_terminal, write_whole
from counterlvq.cli.terminal import say
from counterlvq.presentation.progress import working
from counterlvq.presentation.wording import Wording

__all__ = ["tell_ways"]


def tell_ways(
    explainer: clvq.Explainer,
    rows: Any,
    target: Any,
    count: int,
    kind: str,
    output: str,
    wording: Wording,
) -> int:
    """Find ways for each row of a table, write them, and return the exit code."""
    with working("looking for ways"):
        found = [
            explainer.alternatives(rows.iloc[[i]], target, count=count) for i in range(len(rows))
        ]
    if kind == "json":
        told = [{"row": i, **ways.to_dict()} for i, ways in enumerate(found)]
        text = json.dumps(told, indent=1, allow_nan=False)
    else:
        text = "\n\n".join(_paragraph(ways, wording) for ways in found)
    if is_terminal(output):
        say(text)
    else:
        write_whole(output, f"{text}\n".encode())
    return 0 if all(found) else NO_ANSWER


def _paragraph(ways: clvq.Alternatives, wording: Wording) -> str:
    """Say the ways one by one, and whether there are more."""
    said = [f"{k}. {cf.text(**vars(wording))}" for k, cf in enumerate(ways, 1)]
    if not ways and ways.end is not None:
        return ways.end.text(**vars(wording))
    if ways.is_complete:
        said.append("There is no further way.")
    return "\n".join(said)
