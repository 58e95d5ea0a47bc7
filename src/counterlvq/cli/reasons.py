"""`counterlvq reasons`: which features settle the decision about each row."""

from __future__ import annotations

import json
from typing import Any

import click

import counterlvq as clvq
from counterlvq.cli.conventions import NO_ANSWER, debug_option
from counterlvq.cli.csv_cells import with_typed_cells
from counterlvq.cli.inputs import STDIN, read_model, read_table, table_options
from counterlvq.cli.options import explainer_from, range_options
from counterlvq.cli.outputs import check_writable, is_terminal, kind_by_ending, write_whole
from counterlvq.cli.terminal import say, tell_unanswered
from counterlvq.cli.wording import sentence_options, wording_from
from counterlvq.presentation.wording import Wording
from counterlvq.safe_text import visible

__all__ = ["reasons"]


@click.command(short_help="Find the features that settle each decision.")
@click.argument("model")
@click.argument("table")
@click.option(
    "--first", multiple=True, metavar="FEATURE", help="Rather this one than others; repeatable."
)
@range_options
@sentence_options
@table_options
@click.option(
    "--format",
    "kind",
    type=click.Choice(("text", "json")),
    help="By default, as --output ends; else text.",
)
@click.option(
    "--output", "-o", default="-", metavar="FILE", help="Where to write; stdout by default."
)
@debug_option
def reasons(
    model: str, table: str, first: tuple[str, ...], kind: str | None, output: str, **question: Any
) -> int:
    """Find features that settle what the model says of each row of TABLE.

    As long as they keep their values the decision stays the same, whatever the others do within
    their ranges, and none of them can be left out. Ranges are those of the training table, or of
    --within and --bounds. Exit code 3 says that some rows have no proved reason; of a row
    that cannot be asked about, one with a missing value say, the output says why.
    """
    if model == table == STDIN:
        raise click.UsageError("MODEL and TABLE are both -; only one can come from stdin.")
    kind = kind or kind_by_ending(output, {".json": "json"}, "text")
    check_writable(output)
    loaded = read_model(model)
    rows = with_typed_cells(read_table(table), loaded.features)
    explainer, wording = explainer_from(loaded, rows, **question), wording_from(loaded)
    rows = with_typed_cells(rows, explainer.features)  # a file of columns may have other labels
    _check_first(explainer, first)
    found = [_found(explainer, rows.iloc[[i]], first, i) for i in range(len(rows))]
    _put(found, wording, kind, output)
    statuses = [
        why.status if isinstance(why, clvq.Reasons) else clvq.Status.INVALID for why in found
    ]
    tell_unanswered(statuses)
    return 0 if all(status.has_answer for status in statuses) else NO_ANSWER


def _check_first(explainer: clvq.Explainer, first: tuple[str, ...]) -> None:
    """Refuse names that no row has before any of them is looked at."""
    for name in first:
        try:
            explainer.features.position(name)
        except clvq.UnknownFeatureError as error:
            raise clvq.UnknownFeatureError(f"--first: {error}") from None
    repeated = [name for k, name in enumerate(first) if name in first[:k]]
    if repeated:
        raise clvq.InvalidInputError(
            f"--first names {repeated[0]!r} twice; expected each feature once."
        )


def _found(
    explainer: clvq.Explainer, row: Any, first: tuple[str, ...], i: int
) -> clvq.Reasons | clvq.InvalidInputError:
    """Find the reason of one row, or why it cannot be asked about; other rows go on."""
    try:
        return explainer.reasons(row, order=first or None)
    except clvq.InvalidInputError as error:
        is_of_question = isinstance(error, clvq.UnknownFeatureError)
        found = None if is_of_question else _fault_of(row, explainer, error)
        if found is None:
            raise clvq.InvalidInputError(f"row {i}: {error}") from None
        return found


def _fault_of(
    row: Any, explainer: clvq.Explainer, error: clvq.InvalidInputError
) -> clvq.InvalidInputError | None:
    """Say what is wrong with a row that lacks a value, cannot be read or lies out of range."""
    known = [name for name in row.columns if name in explainer.features]
    if len(known) < len(explainer.features):
        return None  # which is wrong with all rows
    told = explainer.explain_batch(row, on_bad_rows="report")
    if told.status[0] == clvq.Status.INVALID:
        return clvq.InvalidInputError(told[0].reason)
    return error if told.missing.any() or told.breaks_rules[0] else None


def _put(
    found: list[clvq.Reasons | clvq.InvalidInputError], wording: Wording, kind: str, output: str
) -> None:
    if kind == "json":
        told = [{"row": i, **_values(why)} for i, why in enumerate(found)]
        text = json.dumps(told, indent=1, allow_nan=False)
    else:
        said = vars(wording)
        words = {name: said[name] for name in ("subject", "outcome", "numbers", "dates")}
        text = "\n".join(
            why.text(**words, ranges=True) if isinstance(why, clvq.Reasons) else _refusal(why)
            for why in found
        )
    if is_terminal(output):
        say(text)
    else:
        write_whole(output, f"{text}\n".encode())


def _values(why: clvq.Reasons | clvq.InvalidInputError) -> dict[str, Any]:
    if isinstance(why, clvq.Reasons):
        return {**why.to_dict(), "reason": ""}
    nothing: dict[str, Any] = {"prediction": None, "features": [], "values": {}}
    nothing |= {"ranges": {}, "constraints": [], "witnesses": {}}
    status = str(clvq.Status.INVALID)
    return {"status": status, **nothing, "text": _refusal(why), "reason": str(why)}


def _refusal(error: clvq.InvalidInputError) -> str:
    """Say why nothing was looked for, in one line as all others."""
    return f"No reason was looked for: {visible(str(error))}"
