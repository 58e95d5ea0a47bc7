"""`counterlvq explain` into a folder: datasets that need not fit into memory."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from errno import ENOTDIR
from pathlib import Path
from typing import Any, final

import click

import counterlvq as clvq
from counterlvq.cli.conventions import NO_ANSWER
from counterlvq.cli.inputs import STDIN, Model, needed, read_model, reading
from counterlvq.cli.options import defaults_told, explainer_from, targets_from, tell_notes
from counterlvq.cli.signals import ENDING
from counterlvq.cli.terminal import say
from counterlvq.presentation.wording import plural

__all__ = ["Writing", "check_folder", "explain_into_folder", "names_folder"]

# Said of a run that is ended: whatever is finished stays.
_REMARK = "parts that are finished stay, and the same command goes on with the others"
_SLASHES = ("/", os.sep)
# Endings by which files are called.
_FILES = (".parquet", ".pq", ".parq", ".csv", ".json", ".txt")


@final
@dataclass(frozen=True)
class Writing:
    """Where the answers of a dataset go, and how they are made."""

    output: str
    jobs: int | None
    bad_rows: str
    prefix: str
    part_rows: int | None


def names_folder(table: str, output: str) -> bool:
    """Whether a dataset is asked for: a folder comes in, or is named to go out."""
    if table != STDIN and Path(table).is_dir():
        return True
    return output != STDIN and (output.endswith(_SLASHES) or Path(output).is_dir())


def check_folder(source: str, output: str) -> None:
    """Refuse what is no dataset, and what is no folder for one, before anything is worked on."""
    if source == STDIN:
        raise click.UsageError(
            f"--output {output} is a folder, and TABLE is -: a dataset cannot be read from "
            f"standard input, because it is read twice. Name a file or a folder as TABLE, or give "
            f"--output a file."
        )
    if output == STDIN:
        raise click.UsageError(
            f"{source} is a folder of tables, and the answers go into a folder, part by part; "
            f"expected --output FOLDER/"
        )
    place = Path(output)
    if place.is_file():
        raise NotADirectoryError(ENOTDIR, "is a file; expected a folder for the parts", output)
    if place.suffix.lower() in _FILES and not place.is_dir() and not output.endswith(_SLASHES):
        raise click.UsageError(
            f"{source} is a folder, and the answers go into one, part by part; --output {output} "
            f"names a file. Expected a folder, such as --output {place.with_suffix('')}/"
        )


def explain_into_folder(
    model: str, source: str, target: tuple[str, ...], writing: Writing, question: dict[str, Any]
) -> int:
    """Explain a dataset, and say how it went."""
    needed("pyarrow")
    loaded = read_model(model)
    explainer = explainer_from(loaded, None, **question)
    how = reading()
    ENDING.remark = _REMARK
    wish = _wish(loaded, target, source)
    notes = defaults_told(explainer)

    def tell(parts: int, all_parts: int, rows: int, all_rows: int) -> None:
        """Say what was not asked for before hours are spent on it; know how far the run is."""
        tell_notes(notes)
        notes.clear()
        ENDING.remark = _remark(parts, all_parts, rows, all_rows)

    told = clvq.explain_dataset(
        explainer,
        source,
        writing.output,
        **wish,
        prefix=writing.prefix,
        on_bad_rows=writing.bad_rows,
        n_jobs=writing.jobs,
        part_rows=writing.part_rows,
        progress=sys.stderr.isatty(),
        on_part=tell,
        delimiter=how.delimiter or ",",
        decimal=how.decimal,
        encoding=how.encoding,
        max_bytes=how.memory,
    )
    ENDING.remark = None
    say(f"{writing.output}: {told}", aside=True)
    answered = sum(n for status, n in told.statuses.items() if clvq.Status(status).has_answer)
    return 0 if answered == told.rows else NO_ANSWER


def _remark(parts: int, all_parts: int, rows: int, all_rows: int) -> str:
    """Say of a run that is ended how far it was."""
    verb = "is" if parts == 1 else "are"
    return (
        f"{parts:,} of {all_parts:,} part{plural('part', all_parts)} ({rows:,} of {all_rows:,} "
        f"rows) {verb} finished; the same command goes on with the others"
    )


def _wish(model: Model, target: tuple[str, ...], source: str) -> dict[str, Any]:
    """Read the target: labels, or a column in a word such as column:wish."""
    columns = [text.removeprefix("column:") for text in target if text.startswith("column:")]
    if not columns:
        found = targets_from(model, target)
        return {"target": {found} if isinstance(found, str) else found}
    if len(target) > 1:
        raise click.UsageError(
            f"--target names the column {columns[0]!r} and something else; expected the column "
            f"of {source} alone."
        )
    return {"target_column": columns[0]}
