"""What is asked of a model: the options that say it, and the explainer they make."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any, TypeVar

import click
import numpy as np
from numpy.typing import NDArray

import counterlvq as clvq
from counterlvq.cli.inputs import Model, read_table
from counterlvq.visible import shown_text

__all__ = ["explainer_from", "question_options", "targets_from"]

COSTS = ("manhattan", "mad", "euclidean")
METHODS = ("auto", "ccp", "global")

F = TypeVar("F", bound=Callable[..., Any])


def _range(text: str) -> clvq.Bounds:
    """Read a feature and its range, as in income=0:5000."""
    feature, _, ends = text.rpartition("=")
    lower, colon, upper = ends.partition(":")
    if not feature or not colon or not (lower.strip() or upper.strip()):
        raise click.BadParameter(
            f"{text!r} is no range; expected FEATURE=LOW:HIGH with one end or both, such as "
            f"income=0:5000, income=0: or income=:5000."
        )
    try:
        return clvq.Bounds(feature, _end(lower, -inf), _end(upper, inf))
    except ValueError as error:
        raise click.BadParameter(f"{text!r}: {error}") from None


def _end(text: str, open_end: float) -> float:
    if not text.strip():
        return open_end
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text.strip()!r} is no number.") from None


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


_OPTIONS = (
    click.option(
        "--target", multiple=True, metavar="LABEL", help="Wished-for class; repeat for any of some."
    ),
    click.option(
        "--cost",
        type=click.Choice(COSTS),
        default="manhattan",
        show_default=True,
        help="mad weighs each feature by how much it varies.",
    ),
    click.option(
        "--reference", metavar="TABLE", help="Rows to measure that by; TABLE itself by default."
    ),
    click.option(
        "--switch",
        multiple=True,
        type=_switch,
        metavar="FEATURE=PRICE",
        help="What another level costs, 1 by default; repeatable.",
    ),
    click.option(
        "--freeze", multiple=True, metavar="FEATURE", help="Keep it as it is; repeatable."
    ),
    click.option(
        "--bounds",
        multiple=True,
        type=_range,
        metavar="FEATURE=LOW:HIGH",
        help="Keep it in a range, either end open; repeatable.",
    ),
    click.option(
        "--constraint", multiple=True, metavar="TEXT", help='Such as "a <= 2 * b"; repeatable.'
    ),
    click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True),
    click.option("--time-limit", type=click.FloatRange(0), metavar="SECONDS", help="For each row."),
)


def question_options(command: F) -> F:
    """Add the options by which a question is asked."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def explainer_from(
    model: Model,
    table: Any,
    *,
    cost: str,
    reference: str | None,
    switch: tuple[tuple[str, float], ...],
    freeze: tuple[str, ...],
    bounds: tuple[clvq.Bounds, ...],
    constraint: tuple[str, ...],
    method: str,
    time_limit: float | None,
) -> clvq.Explainer:
    """Make the explainer that the options describe."""
    if reference is not None and cost != "mad":
        raise click.UsageError("--reference says what --cost mad is measured by; expected both.")
    weights = None
    if cost == "mad":
        weights = _mad_weights(model, table if reference is None else read_table(reference))
    prices = dict(switch)
    if len(prices) < len(switch):
        raise click.UsageError("--switch prices a feature twice; expected each feature once.")
    return clvq.Explainer(
        model,
        cost=clvq.Euclidean(prices) if cost == "euclidean" else clvq.Manhattan(weights, prices),
        constraints=[*map(clvq.Freeze, freeze), *bounds, *constraint],
        method=method,
        time_limit=time_limit,
    )


def _mad_weights(model: Model, table: Any) -> NDArray[np.float64]:
    names = list(model.features.names)
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise clvq.InvalidInputError(
            f"the table that --cost mad is measured by lacks the column {missing[0]!r}; expected "
            f"one for each feature of the model."
        )
    weights = np.ones(len(names))
    numbers = [feature.name for feature in model.features if feature.is_number]
    for name in numbers:
        if table[name].nunique() == 1:
            raise clvq.InvalidInputError(
                f"column {name!r} never varies in the table that --cost mad is measured by; "
                f"expected columns that do. Name a table with more rows by --reference."
            )
    if numbers:
        weights[[feature.is_number for feature in model.features]] = clvq.mad_weights(
            table[numbers]
        )
    return weights


def targets_from(model: Model, texts: tuple[str, ...]) -> Any:
    """Turn words into labels of the model: None, one of them, or a set."""
    if not texts:
        return None
    found = [_label(model.classes.tolist(), text) for text in texts]
    return found[0] if len(found) == 1 else set(found)


def _label(labels: list[Any], text: str) -> Any:
    exactly = [label for label in labels if str(label) == text]
    nearly = [label for label in labels if str(label).lower() == text.lower()]
    for found in (exactly, nearly):
        if len(found) == 1:
            return found[0]
    raise clvq.UnknownLabelError(
        f"no class is called {text!r}; expected one of: {', '.join(map(shown_text, labels))}."
    )
