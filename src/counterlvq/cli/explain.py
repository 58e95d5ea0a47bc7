"""`counterlvq explain`: a model and a table in, a table of counterfactuals out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

import counterlvq as clvq
from counterlvq.cli.alternatives import tell_ways
from counterlvq.cli.conventions import NO_ANSWER, Count, debug_option
from counterlvq.cli.csv_cells import with_typed_cells
from counterlvq.cli.datasets import (
    Writing,
    check_folder,
    explain_into_folder,
    names_folder,
    refuse_column,
)
from counterlvq.cli.inputs import STDIN, read_model, read_table, table_options
from counterlvq.cli.options import (
    bad_rows_option,
    cost_unit,
    defaults_told,
    explainer_from,
    question_options,
    targets_from,
    tell_notes,
)
from counterlvq.cli.outputs import (
    CsvSigns,
    bytes_of_table,
    check_writable,
    is_terminal,
    kind_by_ending,
    write_whole,
)
from counterlvq.cli.terminal import say, tell_unanswered
from counterlvq.cli.text_table import listing
from counterlvq.cli.wording import wording_from, wording_options
from counterlvq.presentation.progress import working
from counterlvq.presentation.wording import Wording
from counterlvq.safe_text import encodable_cells

__all__ = ["explain"]

FORMATS = ("table", "text", "csv", "parquet", "json")
_ENDINGS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".json": "json"}
# Rows of which it is said why they cannot be read.
_TOLD_INVALID = 5
# Rows from which on it is said how answers need not be held in memory.
_MANY = 20_000
# How a table is told, which a dataset has no place for; and the other way round.
FOR_TABLES = (
    "--format", "--certificates", "--model-apart", "--vipr", "--ranges", "--alternatives",
    "--escape", "--subject", "--outcome", "--numbers", "--dates", "--most", "--template",
    "--otherwise", "--rule", "--response",
)  # fmt: skip
FOR_DATASETS = ("--keep", "--prefix", "--part-rows", "--progress")
# What is said of each row, beside the columns of the table.
_TOLD = ("status", "cost", "lower_bound", "gap", "prediction", "original_prediction")


@click.command(short_help="Find the closest counterfactual of each row.")
@click.argument("model")
@click.argument("table")
@question_options
@wording_options
@table_options
@click.option("--ranges", is_flag=True, help="In text and JSON, also say how far values may go on.")
@click.option(
    "--alternatives",
    type=click.IntRange(1),
    metavar="N",
    help="In text and JSON, up to N ways that differ.",
)
@click.option("--jobs", type=int, metavar="N", help="Threads or processes; -1 for every core.")
@bad_rows_option
@click.option(
    "--format", "kind", type=click.Choice(FORMATS), help="By default, as --output ends; else table."
)
@click.option(
    "--output",
    "-o",
    default="-",
    metavar="FILE",
    help="Where to write; stdout by default. FOLDER/ for a dataset.",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    help="Give this column of a dataset back; repeatable, all by default.",
)
@click.option(
    "--prefix", default="", metavar="TEXT", help="Before the columns that a dataset is given."
)
@click.option(
    "--part-rows",
    type=Count(1),
    metavar="N",
    help="Rows of a part of a dataset: what a kill may lose.",
)
@click.option(
    "--progress",
    is_flag=True,
    help="Of a dataset, say how far it is: a line a minute, in logs too.",
)
@click.option(
    "--escape/--no-escape",
    default=True,
    help="In CSV, put ' before text that a spreadsheet would run (the default).",
)
@click.option(
    "--certificates", metavar="FILE", help="Write the proofs, for `counterlvq verify` and others."
)
@click.option("--model-apart", metavar="FILE", help="With the model in a file of its own.")
@click.option("--vipr", metavar="DIR", help="Write the proofs for viprchk, cell by cell.")
@debug_option
def explain(
    model: str,
    table: str,
    target: tuple[str, ...],
    ranges: bool,
    alternatives: int | None,
    jobs: int | None,
    bad_rows: str,
    kind: str | None,
    output: str,
    keep: tuple[str, ...],
    prefix: str,
    part_rows: int | None,
    progress: bool,
    escape: bool,
    certificates: str | None,
    model_apart: str | None,
    vipr: str | None,
    **question: Any,
) -> int:
    """Find the closest counterfactual of each row of TABLE (CSV, JSON or Parquet).

    MODEL is a file of `counterlvq train` or `counterlvq.save`; either may be - for stdin. The rows
    come back with the columns that had to change, the cost, a lower bound for every other
    counterfactual, and the status. Exit code 3 says that some rows have no answer.

    Into a folder (--output FOLDER/) go datasets of any size, files or folders of Parquet or CSV,
    part by part; the same command goes on with a run that was ended. There
    --target column:NAME takes the wished-for class of each row from a column.
    """
    if model == table == STDIN:
        raise click.UsageError("MODEL and TABLE are both -; only one can come from stdin.")
    if names_folder(table, output):
        check_folder(table, output)
        _refuse_given(FOR_TABLES, "is for tables; a dataset is written as Parquet.")
        how = Writing(output, jobs, bad_rows, keep, prefix, part_rows, progress)
        return explain_into_folder(model, table, target, how, question)
    _refuse_given(FOR_DATASETS, "is for datasets, which go into a folder: --output FOLDER/")
    kind = kind or kind_by_ending(output, _ENDINGS, "table")
    if kind == "parquet" and is_terminal(output):
        raise click.UsageError("Parquet is no text for a terminal; name a file with --output.")
    _check_told(kind, ranges, alternatives, certificates or vipr)
    _check_proofs(output, certificates, model_apart)
    check_writable(output)
    if _looks_like_folder(kind, output):
        say(f"counterlvq: {output} is a file of text; --output {output}/ is a folder.", aside=True)
    loaded = read_model(model)
    refuse_column(loaded, target)
    rows = with_typed_cells(read_table(table), loaded.features)
    if len(rows) > _MANY and table != STDIN:
        folder = f"{output}/" if _looks_like_folder(kind, output) else "FOLDER/"
        say(
            f"counterlvq: {table} has {len(rows):,} rows, whose answers are all held in memory; "
            f"--output {folder} writes them as they come.",
            aside=True,
        )
    taken = [name for name in _TOLD if name in rows.columns]
    if taken and kind in ("csv", "parquet"):
        raise clvq.InvalidInputError(
            f"the table has a column {taken[0]!r}, which the result has a meaning of its own for; "
            f"rename the column first."
        )
    explainer = explainer_from(loaded, rows, **question)
    if ranges:  # before any row is answered, which may take long
        explainer.require_ranges()
    rows = with_typed_cells(rows, explainer.features)  # a file of columns may have other labels
    wish, wording = targets_from(loaded, target), wording_from(loaded, explainer)
    notes = defaults_told(explainer)
    tell_notes([] if kind == "table" else notes)  # a table has lines for them
    if alternatives is not None:
        return tell_ways(explainer, rows, wish, alternatives, bad_rows, kind, output, wording)
    batch = explainer.explain_batch(
        rows, wish, n_jobs=jobs, progress=sys.stderr.isatty(), on_bad_rows=bad_rows
    )
    if certificates is not None:
        _save(batch, certificates, model_apart, explainer.model.meaning.part)
    if vipr is not None:
        with working("writing proofs"):
            batch.save_vipr(vipr)
    if kind in ("csv", "parquet"):
        _tell_invalid(batch)
    with working("writing"):
        told = (
            listing(batch, notes, wording)
            if kind == "table"
            else _columns(batch, kind, escape, CsvSigns.of(rows, for_eyes=is_terminal(output)))
            if kind in ("csv", "parquet")
            else _told(batch, kind, wording, explainer, with_ranges=ranges)
        )
    _put(told, output)
    statuses = batch.status.tolist()
    if kind != "table":  # which counts them in its last line
        tell_unanswered(statuses)
    return 0 if all(clvq.Status(status).has_answer for status in statuses) else NO_ANSWER


def _looks_like_folder(kind: str, output: str) -> bool:
    """Whether somebody may have meant a folder by the name of a file."""
    return kind == "table" and output != STDIN and not Path(output).suffix


def _refuse_given(options: tuple[str, ...], why: str) -> None:
    """Refuse the first of some options that is given, be it with the value that it has anyway."""
    ctx = click.get_current_context()
    for parameter in ctx.command.params:
        name = parameter.name or ""
        is_given = ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
        # An empty text, as scripts hand it over, asks for nothing.
        if is_given and parameter.opts[0] in options and ctx.params.get(name) != "":
            called = "/".join([parameter.opts[0], *parameter.secondary_opts])
            raise click.UsageError(f"{called} {why}")


def _check_told(kind: str, ranges: bool, alternatives: int | None, proofs: str | None) -> None:
    """Refuse what a format has no room for, and what does not go together."""
    asked = {"--ranges": ranges, "--alternatives": alternatives is not None}
    for option, is_asked in asked.items():
        if is_asked and kind not in ("text", "json"):
            raise click.UsageError(
                f"{option} are told in text and JSON; add --format text or json."
            )
    if alternatives is not None and (ranges or proofs):
        raise click.UsageError(
            "--alternatives go without --ranges, --certificates and --vipr, which are about one "
            "answer for each row."
        )


def _check_proofs(output: str, certificates: str | None, model_apart: str | None) -> None:
    """Refuse what cannot be written before anything is worked on."""
    if model_apart is not None and certificates is None:
        raise click.UsageError("--model-apart goes with --certificates, which is missing.")
    for path in (certificates, model_apart):
        if path == STDIN:
            raise click.UsageError("certificates need a file; - is for the table.")
        if path is not None:
            if path == output:
                raise click.UsageError("--output and --certificates name the same file.")
            check_writable(path)


def _save(batch: clvq.CounterfactualBatch, path: str, model_apart: str | None, part: str) -> None:
    """Write the proofs, and say once what is in them."""
    with working("writing proofs"):
        batch.save_certificates(path, model_apart=model_apart or False)
    holder = path if model_apart is None else model_apart
    # Classes, clusters and components are no rows of anybody.
    rows = "; the prototypes of a nearest neighbour are training rows"
    say(f"{holder} holds the model{rows if part == 'prototype' else ''}.", aside=True)


def _tell_invalid(batch: clvq.CounterfactualBatch) -> None:
    """Say why rows cannot be read, where the output has no room for reasons."""
    at = np.flatnonzero(batch.status == clvq.Status.INVALID).tolist()
    for i in at[:_TOLD_INVALID]:
        say(f"counterlvq: row {i} is invalid: {batch[i].reason}", aside=True)
    if len(at) > _TOLD_INVALID:
        more = f"{len(at) - _TOLD_INVALID:,} more rows are invalid"
        say(f"counterlvq: {more}; --format json says why.", aside=True)


def _told(
    batch: clvq.CounterfactualBatch,
    kind: str,
    wording: Wording,
    explainer: clvq.Explainer,
    *,
    with_ranges: bool,
) -> bytes | str:
    """Put answers into JSON for programs, or into sentences for people."""
    # Ranges are about answers with their proofs; sentences need no proof made anew.
    answers = list(batch) if with_ranges else [batch.sketch(i) for i in range(len(batch))]
    found = [
        explainer.ranges(cf) if with_ranges and cf.status.has_answer else None for cf in answers
    ]
    if kind == "text":
        return _texts(answers, wording, found)
    return _json(answers, found, cost_unit(explainer))


def _put(told: bytes | str, output: str) -> None:
    """Write it; colours are for terminals, and data are for programs but may be looked at."""
    if isinstance(told, str) and is_terminal(output):
        click.echo(told)
    elif isinstance(told, str):
        write_whole(output, f"{click.unstyle(told)}\n".encode())
    elif is_terminal(output):
        say(told.decode().removesuffix("\n"))
    else:
        write_whole(output, told)


def _texts(
    answers: list[clvq.Counterfactual], wording: Wording, ranges: list[clvq.Ranges | None]
) -> str:
    """Write a line for each row, or a paragraph where a template has several lines."""
    pairs = zip(answers, ranges, strict=True)
    texts = [cf.text(**vars(wording), ranges=found).rstrip("\n") for cf, found in pairs]
    return ("\n\n" if any("\n" in text for text in texts) else "\n").join(texts)


def _json(answers: list[clvq.Counterfactual], ranges: list[clvq.Ranges | None], unit: str) -> bytes:
    told: list[dict[str, Any]] = [
        {"row": i, **cf.to_dict(), "cost_unit": unit} for i, cf in enumerate(answers)
    ]
    for row, found in zip(told, ranges, strict=True):
        if found is not None:
            row["ranges"] = found.to_dict()
    return f"{json.dumps(told, indent=1, allow_nan=False)}\n".encode()


def _columns(batch: clvq.CounterfactualBatch, kind: str, escape: bool, signs: CsvSigns) -> bytes:
    """Give the rows back as they came, changed where they had to be, and what is said of them."""
    told = {name: getattr(batch, name) for name in _TOLD}
    for name, cells in told.items():
        if cells.dtype.kind in "OU":  # of the model's labels, tables cannot hold all
            told[name] = encodable_cells(cells.tolist())
    return bytes_of_table(batch.X.assign(**told), kind, escape, signs)
