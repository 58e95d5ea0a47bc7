"""`counterlvq report`: a model and some rows of a table in, one page in HTML out."""

from __future__ import annotations

import sys
from typing import Any

import click

import counterlvq as clvq
from counterlvq.cli.conventions import NO_ANSWER, Count, debug_option
from counterlvq.cli.csv_cells import with_typed_cells
from counterlvq.cli.inputs import STDIN, read_model, read_table, table_options
from counterlvq.cli.options import (
    bad_rows_option,
    explainer_from,
    question_options,
    targets_from,
)
from counterlvq.cli.outputs import check_writable, is_terminal, write_whole
from counterlvq.cli.terminal import say
from counterlvq.cli.wording import wording_from, wording_options
from counterlvq.presentation.progress import working

__all__ = ["report"]

# As many rows as somebody reads about; more are asked for by name or number.
_USUAL = 20

# What a page has in it that holds certificates: the first words of a file of them.
_CERTIFICATE = "counterlvq certificate"


def _positions(text: str) -> tuple[int, ...]:
    """Read the positions of rows, as in 0,3,7."""
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 0 or len(set(found)) < len(found):
        raise click.BadParameter(
            f"{text!r} is no list of rows; expected positions from 0 on, each once, such as 0,3,7."
        )
    return found


@click.command(short_help="Write a page about some rows, to read offline.")
@click.argument("model")
@click.argument("table")
@question_options
@wording_options
@table_options
@click.option(
    "--rows", type=_positions, metavar="LIST", help="Which rows, counted from 0, such as 0,3,7."
)
@click.option(
    "--limit",
    type=Count(1),
    metavar="N",
    help=f"The first N rows; {_USUAL} by default.",
)
@click.option(
    "--names",
    metavar="COLUMN",
    help="What to call the rows by; a column such as id or name by default.",
)
@click.option("--title", default="What would have to change", metavar="TEXT", help="Of the page.")
@click.option(
    "--pictures/--no-pictures", default=True, help="Draw the planes of the proofs (the default)."
)
@click.option(
    "--certificates/--no-certificates",
    default=True,
    help="Let the browser check the proofs; the page then holds the model (the default).",
)
@click.option("--jobs", type=int, metavar="N", help="Threads or processes; -1 for every core.")
@bad_rows_option
@click.option(
    "--output", "-o", default="-", metavar="FILE", help="Where to write; stdout by default."
)
@debug_option
def report(
    model: str,
    table: str,
    target: tuple[str, ...],
    rows: tuple[int, ...] | None,
    limit: int | None,
    names: str | None,
    title: str,
    pictures: bool,
    certificates: bool,
    jobs: int | None,
    bad_rows: str,
    output: str,
    **question: Any,
) -> int:
    """Write a page in HTML about some rows of TABLE (CSV, JSON or Parquet).

    MODEL and TABLE are as for `counterlvq explain`. For each row there are the values before and
    after, the changes as bars, a picture of the proof, and the certificate in plain words,
    with a button that checks it; for a row without an answer, why. The page is one file that loads
    nothing. Exit code 3 says that some
    rows have no answer.
    """
    from counterlvq.report import report_html

    if model == table == STDIN:
        raise click.UsageError("MODEL and TABLE are both -; only one can come from stdin.")
    if rows is not None and limit is not None:
        raise click.UsageError("--rows and --limit both choose rows; expected one of them.")
    if is_terminal(output):
        raise click.UsageError("HTML is nothing to read on a terminal; name a file with --output.")
    check_writable(output)
    loaded = read_model(model)
    whole = with_typed_cells(read_table(table), loaded.features)
    chosen = _chosen(len(whole), rows, limit)
    explainer = explainer_from(loaded, whole, **question)
    wish, wording = targets_from(loaded, target), wording_from(loaded, explainer)
    # A file of columns may have other labels.
    some = with_typed_cells(whole.iloc[list(chosen)], explainer.features)
    batch = explainer.explain_batch(
        some, wish, n_jobs=jobs, progress=sys.stderr.isatty(), on_bad_rows=bad_rows
    )
    with working("writing the page"):
        page = report_html(
            explainer,
            batch,
            title=title,
            names=names,
            pictures=pictures,
            limit=len(chosen),
            certificates=certificates,
            text=vars(wording),
        )
    write_whole(output, page.encode())
    if certificates and _CERTIFICATE not in page:
        say("counterlvq: certificate files have no kind for what was asked, so that the page holds "
            "no proofs to check.", aside=True)  # fmt: skip
    elif certificates:
        has_rows = explainer.model.meaning.part == "prototype"
        warning = "; the prototypes of a nearest neighbour are training rows" if has_rows else ""
        say(f"counterlvq: the page holds the model{warning} "
            f"(--no-certificates leaves it out).", aside=True)  # fmt: skip
    return 0 if all(clvq.Status(status).has_answer for status in batch.status) else NO_ANSWER


def _chosen(count: int, rows: tuple[int, ...] | None, limit: int | None) -> tuple[int, ...]:
    """Say which rows the page is about; that others were left out unasked is told."""
    if rows is not None:
        if max(rows) >= count:
            raise clvq.InvalidInputError(
                f"--rows names row {max(rows)}; expected positions from 0 to {count - 1}, for "
                f"{count:,} rows."
            )
        return rows
    if limit is None and count > _USUAL:
        say(
            f"counterlvq: the page is about the first {_USUAL} of {count:,} rows; choose others "
            f"with --rows or --limit.",
            aside=True,
        )
    return tuple(range(min(count, _USUAL if limit is None else limit)))
