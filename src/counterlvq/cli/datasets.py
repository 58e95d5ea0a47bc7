"""`counterlvq explain` into a folder: datasets that need not fit into memory."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

import counterlvq as clvq
from counterlvq.cli.conventions import NO_ANSWER
from counterlvq.cli.inputs import STDIN, Model, needed, read_model, reading
from counterlvq.cli.options import defaults_told, explainer_from, targets_from, tell_notes
from counterlvq.cli.signals import ENDING
from counterlvq.cli.terminal import say

__all__ = ["explain_into_folder", "names_folder"]

# Said of a run that is ended: whatever is finished stays.
_REMARK = "parts that are finished stay, and the same command goes on with the others"


def names_folder(table: str, output: str) -> bool:
    """Whether a dataset is asked for: a folder comes in, or is named to go out."""
    if STDIN in (table, output):
        return False
    return output.endswith(("/", os.sep)) or Path(output).is_dir() or Path(table).is_dir()


def explain_into_folder(
    model: str,
    source: str,
    output: str,
    target: tuple[str, ...],
    jobs: int | None,
    bad_rows: str,
    prefix: str,
    question: dict[str, Any],
) -> int:
    """Explain a dataset, and say how it went."""
    needed("pyarrow")
    loaded = read_model(model)
    explainer = explainer_from(loaded, None, **question)
    how = reading()
    ENDING.remark = _REMARK
    told = clvq.explain_dataset(
        explainer,
        source,
        output,
        _wish(loaded, target, source),
        prefix=prefix,
        on_bad_rows=bad_rows,
        n_jobs=jobs,
        progress=sys.stderr.isatty(),
        delimiter=how.delimiter or ",",
        decimal=how.decimal,
        encoding=how.encoding,
        max_bytes=how.memory,
    )
    ENDING.remark = None
    tell_notes(defaults_told(explainer))
    say(f"{output}: {told}", aside=True)
    answered = sum(n for status, n in told.statuses.items() if clvq.Status(status).has_answer)
    return 0 if answered == told.rows else NO_ANSWER


def _wish(model: Model, target: tuple[str, ...], source: str) -> Any:
    """Read the target: labels, or a column in a word such as column:wish."""
    columns = [text.removeprefix("column:") for text in target if text.startswith("column:")]
    if not columns:
        found = targets_from(model, target)
        return {found} if isinstance(found, str) else found
    if len(target) > 1:
        raise click.UsageError(
            f"--target names the column {columns[0]!r} and something else; expected the column "
            f"of {source} alone."
        )
    return columns[0]
