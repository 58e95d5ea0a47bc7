"""What is asked of a model: the options that say it, and the explainer they make."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from difflib import get_close_matches
from math import inf, nan
from typing import Any, TypeVar

import click
import numpy as np
from numpy.typing import NDArray

import counterlvq as clvq
from counterlvq.cli.columns_file import read_columns
from counterlvq.cli.confidence import confidence_option
from counterlvq.cli.conventions import Share
from counterlvq.cli.csv_cells import with_typed_cells
from counterlvq.cli.inputs import Model, read_table
from counterlvq.cli.terminal import say
from counterlvq.safe_text import shown_text
from counterlvq.service.questions import DEVIATIONS, as_measured, with_stated_ranges

__all__ = [
    "bad_rows_option", "cost_unit", "defaults_told", "explainer_from", "label_from",
    "question_options", "range_options", "targets_from", "tell_notes",
]  # fmt: skip

COSTS = ("manhattan", "mad", "euclidean")
METHODS = ("auto", "ccp", "global")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
# Least changes that are listed below a table.
_TOLD_LEAST = 3

F = TypeVar("F", bound=Callable[..., Any])


def _range(text: str) -> clvq.Bounds:
    """Read a feature and its range, as in income=0:5000."""
    feature, _, ends = text.rpartition("=")
    lower, colon, upper = ends.partition(":")
    if not feature or not colon or not (lower.strip() or upper.strip()):
        raise click.BadParameter(
            f"{text!r} is no range; expected FEATURE=LOW:HIGH with one end or both, such as "
            f"income=0:5000, income=0: or income=:5000, and of dates paid=2024-01-01:."
        )
    try:
        return clvq.Bounds(feature, _end(lower, -inf), _end(upper, inf))
    except ValueError as error:
        raise click.BadParameter(f"{text!r}: {error}") from None


def _end(text: str, open_end: float) -> float | date:
    if not text.strip():
        return open_end
    try:
        is_date = _DATE.fullmatch(text.strip())
        return date.fromisoformat(text.strip()) if is_date else float(text)
    except ValueError:
        raise ValueError(
            f"{text.strip()!r} is no number, and no date such as 2024-05-31."
        ) from None


def _switch(text: str) -> tuple[str, float]:
    """Read a feature and what another level of it costs, as in kitchen=2."""
    feature, _, price = text.rpartition("=")
    try:
        number = float(price)
    except ValueError:
        number = nan
    if not feature or not 0 < number < inf:
        raise click.BadParameter(
            f"{text!r} is no price of a switch; expected FEATURE=PRICE with a positive number, "
            f"such as kitchen=2."
        )
    return feature, number


_TARGET = click.option(
    "--target", multiple=True, metavar="LABEL", help="Wished-for class; repeat for any of some."
)
_FREEZE = click.option(
    "--freeze", multiple=True, metavar="FEATURE", help="Keep it as it is; repeatable."
)
_AT_MOST = click.option(
    "--at-most", type=click.IntRange(0), metavar="N", help="Change no more than N features."
)
_PLAUSIBLE = click.option(
    "--plausible", metavar="TABLE", help="Answer within what these rows of a class look like."
)
_LEAST = click.option(
    "--least",
    type=click.FloatRange(0),
    metavar="SHARE",
    help="Leave out changes below this share of a typical deviation; 0.1 by default, 0 for none.",
)
_COSTS_AND_COLUMNS = (
    click.option(
        "--cost",
        type=click.Choice(COSTS),
        help="mad: in typical deviations, the default if the model knows them.",
    ),
    click.option(
        "--reference", metavar="TABLE", help="Rows to measure them by, if not the training table."
    ),
    click.option(
        "--anywhere",
        is_flag=True,
        help="Lift ranges and least changes taken from training.",
    ),
    click.option("--columns", metavar="FILE", help="What the columns are, in TOML."),
    click.option(
        "--switch",
        multiple=True,
        type=_switch,
        metavar="FEATURE=PRICE",
        help="What another level costs; 2 typical deviations by default.",
    ),
)
_RULES_AND_LIMITS = (
    click.option(
        "--bounds",
        multiple=True,
        type=_range,
        metavar="FEATURE=LOW:HIGH",
        help="Keep it in a range, either end open; repeatable.",
    ),
    click.option("--within", metavar="TABLE", help="Keep numbers to the ranges of these rows."),
    click.option(
        "--constraint", multiple=True, metavar="TEXT", help='Such as "a <= 2 * b"; repeatable.'
    ),
    click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True),
    click.option("--time-limit", type=Share(0), metavar="SECONDS", help="For each row."),
)


bad_rows_option = click.option(
    "--bad-rows",
    type=click.Choice(("report", "raise")),
    default="report",
    show_default=True,
    help="Rows that cannot be read: call them invalid, or stop.",
)


def question_options(command: F) -> F:
    """Add the options by which a question is asked."""
    for option in reversed(
        (
            _TARGET,
            confidence_option,
            *_COSTS_AND_COLUMNS,
            _LEAST,
            _FREEZE,
            _AT_MOST,
            _PLAUSIBLE,
            *_RULES_AND_LIMITS,
        )
    ):
        command = option(command)
    return command


def range_options(command: F) -> F:
    """Add those of the options that are about inputs as such, not about changes to a target."""
    for option in reversed((*_COSTS_AND_COLUMNS, *_RULES_AND_LIMITS)):
        command = option(command)
    return command


def explainer_from(
    model: Model,
    table: Any,
    *,
    cost: str | None,
    reference: str | None,
    anywhere: bool,
    columns: str | None,
    switch: tuple[tuple[str, float], ...],
    bounds: tuple[clvq.Bounds, ...],
    within: str | None,
    constraint: tuple[str, ...],
    method: str,
    time_limit: float | None,
    freeze: tuple[str, ...] = (),
    at_most: int | None = None,
    confidence: clvq.Confidence | float | None = None,
    least: float | None = 0.0,
    plausible: str | None = None,
) -> clvq.Explainer:
    """Make the explainer that the options describe."""
    if reference is not None and cost not in (None, "mad"):
        raise click.UsageError("--reference says what --cost mad is measured by; expected both.")
    features = model.features if columns is None else _described(model, columns)
    if least is None and (anywhere or model.reference is None):
        least = 0.0
    trifles = _least_changes(model, features, least)
    by_deviations = cost == "mad" or (
        cost is None and (reference is not None or model.reference is not None)
    )
    weights = _typical(model, features, reference, table) if by_deviations else None
    # Behind what may be refused, so that an error is not preceded by what it contradicts.
    if model.reference is None and cost in (None, "mad"):
        _say_what_is_missing(cost, reference, has_ranges=anywhere or within is not None)
    if model.reference is not None and not anywhere:
        features = with_stated_ranges(model.reference.described(features), bounds)
    if model.reference is not None and trifles:
        free = {item.feature for item in trifles if features[item.feature].is_real}
        digits = model.reference.with_digits(clvq.Features(features[name] for name in free))
        features = clvq.Features(digits[f.name] if f.name in free else f for f in features)
    seen = [] if within is None else clvq.within_data(_known(read_table(within), features))
    likely = [] if plausible is None else [_likely(plausible, model, features)]
    few = [] if at_most is None else [clvq.AtMost(at_most)]
    prices = dict(switch)
    if len(prices) < len(switch):
        raise click.UsageError("--switch prices a feature twice; expected each feature once.")
    unit = DEVIATIONS if by_deviations else ""
    stated: list[clvq.Constraint | str] = [
        *map(clvq.Freeze, freeze), *bounds, *seen, *constraint,
    ]  # fmt: skip
    measure: clvq.Cost = clvq.Manhattan(weights, prices, unit=unit)
    if cost == "euclidean":
        measure = clvq.Euclidean(prices)
    if isinstance(confidence, clvq.Noise):
        confidence = as_measured(confidence, measure)
    return clvq.Explainer(
        model,
        cost=measure,
        constraints=[*stated, *few, *trifles, *likely],
        method=method,
        time_limit=time_limit,
        features=features,
        margin=confidence if isinstance(confidence, float) else None,
        confidence=None if isinstance(confidence, float) else confidence,
    )


# Ways to a file with a summary: a model that was imported or made elsewhere is not trained here.
_KEPT = (
    "`counterlvq train`, `counterlvq import --reference` and `save(..., reference=)` in Python "
    "keep a summary in the file"
)


def _say_what_is_missing(cost: str | None, reference: str | None, *, has_ranges: bool) -> None:
    """Say what the summary of a training table would have been taken for."""
    missing = []
    if cost is None and reference is None:
        missing.append("costs are plain sums of changes")
    elif reference is None:
        missing.append("typical deviations are those of the rows that are explained")
    if not has_ranges:
        missing.append("numbers may go anywhere, by any bit")
    if missing:
        say(
            "counterlvq: the model file has no summary of its training table: "
            f"{', and '.join(missing)}. --reference TABLE and --within TABLE take them from rows; "
            f"{_KEPT}.",
            aside=True,
        )


def _likely(path: str, model: Model, features: clvq.Features) -> clvq.Plausible:
    """Fit where rows of each class lie, by what the model says of them."""
    table = with_typed_cells(read_table(path), model.features)
    labels = np.asarray(model.predict(table))
    numbers = [feature.name for feature in features if feature.is_number]
    known = [name for name in numbers if name in table.columns]
    return clvq.Plausible.fit(table[known], labels)


def _least_changes(
    model: Model, features: clvq.Features, share: float | None
) -> list[clvq.MinChange]:
    """Leave trifles out; the explainer drops what the user says otherwise."""
    if share == 0:
        return []
    if model.reference is None:
        raise click.UsageError(
            "--least is a share of typical deviations, and the model file has no summary of its "
            "training table. Say --constraint 'if a changes then by at least 5', or have one: "
            f"{_KEPT}."
        )
    found = model.reference.least_changes(features, *([] if share is None else [share]))
    # Columns that the model sees through a function are changed as it sees them.
    links = model.table_map.links if isinstance(model, clvq.TableModel) else ()
    through = {f.name for f, link in zip(features, links, strict=False) if link is not None}
    return [
        clvq.MinChange(name, max(by, _half_step(features[name])), is_default=True)
        for name, by in found.items()
        if name not in through and features[name].change != "freeze"
    ]


def _half_step(feature: clvq.Feature) -> float:
    """How far a value is from a stated step at the most: who counts in fives reads 116 as 115."""
    return feature.step / 2 if feature.step != 1 and feature.may_stray else 0.0


def _known(table: Any, features: clvq.Features) -> Any:
    """Leave out the columns that the model does not know, such as the label."""
    names = [name for name in table.columns if name in features.names]
    if not names:
        raise clvq.InvalidInputError(
            "the table of --within has no column of the model; expected some of its features."
        )
    return table[names]


def _described(model: Model, path: str) -> clvq.Features:
    """Say of the columns that the model sees what a file says of them."""
    known = model.features.names
    if isinstance(model, clvq.TableModel):
        known = model.table_map.columns
    return read_columns(path).checked(known).of(model.features)


def defaults_told(explainer: clvq.Explainer) -> list[str]:
    """Say what was taken from the training table, where nobody asked for something else."""
    out = []
    cost = explainer.cost
    if isinstance(cost, clvq.Manhattan) and cost.unit:
        out.append(
            f"costs are in {cost.unit} of each number; {_levels_told(explainer)}"
            f"--cost manhattan counts plain changes"
        )
    # Where somebody has stated both ends, or that there are none, nothing that was seen counts.
    if any(
        (f.lower == -inf < f.seen[0]) or (f.upper == inf > f.seen[1])
        for f in explainer.features
        if f.seen is not None
    ):
        out.append("numbers stay in the usual ranges of the data; --anywhere lifts that")
    least = [
        f"{_amount(item)} ({shown_text(explainer.features[item.feature].spoken)})"
        for item in explainer.constraints
        if isinstance(item, clvq.MinChange) and item.is_default
    ]
    if least:
        more = f" and {len(least) - _TOLD_LEAST} more" if len(least) > _TOLD_LEAST else ""
        shown = ", ".join(least[:_TOLD_LEAST])
        out.append(f"changes of less than {shown}{more} are left out; --least 0 lifts that")
    return out


def tell_notes(notes: list[str]) -> None:
    """Say what was taken from the training table, where the output has no room for it."""
    for note in notes:
        say(f"counterlvq: {note}", aside=True)


def cost_unit(explainer: clvq.Explainer) -> str:
    """Say what costs count, as programs read it."""
    if isinstance(explainer.cost, clvq.Euclidean):
        return "squared plain changes"
    return getattr(explainer.cost, "unit", "") or "plain changes"


def _levels_told(explainer: clvq.Explainer) -> str:
    """Say what another level costs where nobody has said so."""
    cost = explainer.cost
    open_ones = [
        f for f in explainer.features
        if not f.is_number and not f.has_numbers and f.price is None and f.name not in cost.switches
    ]  # fmt: skip
    if not open_ones:
        return ""
    steps = ", or each step of ordered ones," if any(f.ordered for f in open_ones) else ""
    return (
        f"another level{steps} costs 2, as much as a number from its lower to its upper quarter, "
        "unless --switch or --columns price it; "
    )


def _amount(item: clvq.MinChange) -> str:
    return f"{item.by:,}".removesuffix(".0")


def _typical(
    model: Model, features: clvq.Features, reference: str | None, table: Any
) -> NDArray[np.float64]:
    """Weights by typical deviations: of a table that is named, of training, or of the rows."""
    if reference is None and model.reference is not None:
        return model.reference.weights(features)
    if reference is None and table is None:
        raise click.UsageError(
            "--cost mad has nothing to measure by: the model file has no summary of its training "
            "table, and a dataset is not read twice. Name a table with --reference."
        )
    return _measured(features, table if reference is None else read_table(reference))


def _measured(features: clvq.Features, table: Any) -> NDArray[np.float64]:
    names = list(features.names)
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise clvq.InvalidInputError(
            f"the table that --cost mad is measured by lacks the column {missing[0]!r}; expected "
            f"one for each feature of the model."
        )
    summary = clvq.Reference.of(table, features)
    for column in summary.columns:
        if column.is_number and not column.unit:
            raise clvq.InvalidInputError(
                f"column {column.name!r} never varies in the table that --cost mad is measured by; "
                f"expected columns that do. Name a table with more rows by --reference."
            )
    return summary.weights(features)


def targets_from(model: Model, texts: tuple[str, ...]) -> Any:
    """Turn words into labels of the model: None, one of them, or a set."""
    if not texts:
        return None
    found = [label_from(model, text) for text in texts]
    return found[0] if len(found) == 1 else set(found)


def label_from(model: Model, text: str) -> Any:
    """Find the label of the model that a word stands for, in capitals or not."""
    labels = model.classes.tolist()
    exactly = [label for label in labels if str(label) == text]
    nearly = [label for label in labels if str(label).casefold() == text.casefold()]
    for found in (exactly, nearly):
        if len(found) == 1:
            return found[0]
    by_fold = {str(label).casefold(): label for label in labels}
    close = get_close_matches(text.casefold(), by_fold, n=1)
    hint = f" Did you mean {shown_text(by_fold[close[0]])!r}?" if close and not nearly else ""
    raise clvq.UnknownLabelError(
        f"no class is called {text!r}; expected one of: {', '.join(map(shown_text, labels))}.{hint}"
    )
