"""`counterlvq explain` into a folder: datasets that need not fit into memory."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from errno import ENOTDIR
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import Any, final

import click

import counterlvq as clvq
from counterlvq.cli.conventions import NO_ANSWER
from counterlvq.cli.inputs import STDIN, Model, needed, read_model, reading
from counterlvq.cli.options import (
    defaults_told,
    explainer_from,
    label_from,
    targets_from,
    tell_notes,
)
from counterlvq.cli.signals import ENDING
from counterlvq.cli.terminal import say
from counterlvq.presentation.progress import ProgressLines
from counterlvq.presentation.wording import plural

__all__ = ["Writing", "check_folder", "explain_into_folder", "names_folder", "refuse_column"]

# Said of a run that is ended: whatever is finished stays.
_REMARK = "parts that are finished stay, and the same command goes on with the others"
_SLASHES = ("/", os.sep)
# Before the name of a column that holds a label for each row.
_COLUMN = "column:"
# Endings by which files are called.
_FILES = (".parquet", ".pq", ".parq", ".csv", ".json", ".txt")


@final
@dataclass(frozen=True)
class Writing:
    """Where the answers of a dataset go, and how they are made."""

    output: str
    jobs: int | None
    bad_rows: str
    kept: tuple[str, ...]  # all columns if empty
    prefix: str
    part_rows: int | None
    progress: bool  # also where nobody looks on


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
    lines = ProgressLines() if writing.progress and not sys.stderr.isatty() else None

    def tell(parts: int, all_parts: int, rows: int, all_rows: int) -> None:
        """Say what was not asked for before hours are spent on it; know how far the run is."""
        tell_notes(notes)
        notes.clear()
        ENDING.remark = _remark(parts, all_parts, rows, all_rows)
        if lines is not None:
            lines.tell(parts, all_parts, rows, all_rows)

    told = clvq.explain_dataset(
        explainer,
        source,
        writing.output,
        **wish,
        columns=writing.kept or None,
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


def refuse_column(model: Model, target: tuple[str, ...]) -> None:
    """Refuse a column of labels where a table is explained, unless a class is called so."""
    for text in target:
        if not text.startswith(_COLUMN):
            continue
        try:
            label_from(model, text)
        except clvq.UnknownLabelError:
            raise click.UsageError(
                f"--target {text} takes a label for each row from a column, which goes with a "
                f"folder as output only; expected a class of the model, or --output FOLDER/"
            ) from None


def _wish(model: Model, target: tuple[str, ...], source: str) -> dict[str, Any]:
    """Read the target: labels, or a column in a word such as column:wish."""
    columns = [text.removeprefix(_COLUMN) for text in target if text.startswith(_COLUMN)]
    if not columns:
        try:
            found = targets_from(model, target)
        except clvq.UnknownLabelError as error:
            hint = _column_hint(target, source)
            raise clvq.UnknownLabelError(f"{error}{hint}") from None
        return {"target": {found} if isinstance(found, str) else found}
    if len(target) > 1:
        raise click.UsageError(
            f"--target names the column {columns[0]!r} and something else; expected the column "
            f"of {source} alone."
        )
    return {"target_column": columns[0]}


def _column_hint(target: tuple[str, ...], source: str) -> str:
    """Say how a column is named, if the only word, which is no class, is one."""
    if len(target) != 1 or target[0] not in _columns_of(source):
        return ""
    option = quote(f"{_COLUMN}{target[0]}")
    return f" It is a column of {source}: --target {option} takes the label of each row from it."


def _columns_of(source: str) -> list[str]:
    """Read names of columns from the head of a file, for a hint; none where that fails."""
    arrow, csv, datasets = map(import_module, ("pyarrow", "pyarrow.csv", "pyarrow.dataset"))
    how = reading()
    text = datasets.CsvFileFormat(
        csv.ParseOptions(delimiter=how.delimiter or ","),
        read_options=csv.ReadOptions(encoding=how.encoding),
    )
    for kind, paths in (("parquet", "hive"), (text, None)):
        with suppress(OSError, arrow.ArrowException):
            head = datasets.dataset(source, format=kind, partitioning=paths)
            return list(head.schema.names)
    return []
