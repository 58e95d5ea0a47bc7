"""Read a fitted pipeline as a map from the table to the space of the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from counterlvq.adapters.attributes import feature_names, thawed
from counterlvq.adapters.thresholds import rewrapped, wrapped
from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.numeric.arrays import Floats
from counterlvq.pipelines.comparison import prove
from counterlvq.pipelines.flow import Contributions, Flow
from counterlvq.pipelines.imputing import proved_fills
from counterlvq.pipelines.steps import is_kind, passed
from counterlvq.pipelines.table_map import LevelsPart, NumericPart, TableMap, levels_of_numbers
from counterlvq.tables.features import Features

__all__ = ["is_pipeline", "read_pipeline", "read_transformer", "split"]


def read_pipeline(pipeline: Any, probe: Any = None) -> tuple[TableMap, Any]:
    """Split a fitted pipeline into the map of its steps and its last step.

    Parameters
    ----------
    pipeline : Pipeline of scikit-learn
        Fitted. All steps but the last are affine in numbers or encode categories; the last
        one is the model, which is not looked at.
    probe : DataFrame or array-like of shape (n, d), optional
        Complete rows of the user's table on which `transform` and the map are compared. Rows
        made from what the steps were fitted on are compared in any case.

    Returns
    -------
    table_map : TableMap
    model : estimator
        The last step.

    Raises
    ------
    NotSupportedError
        If a step is not one that can be read, or does something else than its attributes say.
    InvalidInputError
        If the pipeline is not fitted.

    Examples
    --------
    >>> from sklearn.neighbors import NearestCentroid
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = [[10.0], [12.0], [28.0], [30.0]], ["no", "no", "yes", "yes"]
    >>> pipeline = make_pipeline(StandardScaler(), NearestCentroid()).fit(X, y)
    >>> read_pipeline(pipeline)
    (TableMap(1 columns, 0 of them unseen, to 1 dimensions), NearestCentroid())
    """
    if not is_pipeline(pipeline):
        raise NotSupportedError(_no_pipeline(pipeline))
    steps, model = split(pipeline)
    return _read(steps, model, probe), model


def read_transformer(transformer: Any, probe: Any = None) -> TableMap:
    """Read a fitted transformer, or a pipeline of transformers alone, as a map.

    Parameters
    ----------
    transformer : transformer of scikit-learn
        Fitted.
    probe : DataFrame or array-like of shape (n, d), optional
        As for `read_pipeline`.

    Returns
    -------
    TableMap

    Examples
    --------
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> table_map = read_transformer(OneHotEncoder(drop="first").fit([["no"], ["yes"]]))
    >>> table_map.parts[0].levels
    ('no', 'yes')
    """
    return _read([transformer], None, probe)


def _no_pipeline(given: Any) -> str:
    name = type(given).__name__
    best = getattr(given, "best_estimator_", None)
    if best is not None:
        return f"a {name} is no pipeline; expected its `best_estimator_`."
    return (
        f"a {name} (from {type(given).__module__}) is no pipeline; expected a fitted Pipeline of "
        f"scikit-learn that ends in a model."
    )


def is_pipeline(model: Any) -> bool:
    """Whether a model is a pipeline, or a threshold on what one says."""
    model = thawed(model)
    inner = wrapped(model)
    return is_kind(model, "Pipeline") or (inner is not None and is_pipeline(inner))


def split(pipeline: Any) -> tuple[list[Any], Any]:
    """Take the last step off, also where it is the last one of a pipeline within."""
    pipeline = thawed(pipeline)
    inside = wrapped(pipeline)
    if inside is not None:
        steps, model = split(inside)
        return steps, rewrapped(pipeline, model)
    *before, (name, last) = pipeline.steps
    steps = [step for _, step in before]
    if last is None or isinstance(last, str):
        raise NotSupportedError(
            f"the last step {name!r} of the pipeline is {last!r}; expected a model. Read a "
            f"pipeline of transformers alone with `read_transformer`."
        )
    if not is_pipeline(last):
        return steps, thawed(last)
    inner, model = split(last)
    return [*steps, *inner], model


def _read(steps: list[Any], model: Any, probe: Any) -> TableMap:
    columns, named = _columns([*steps, model])
    flow = Flow.start(len(columns))
    for step in steps:
        flow = passed(step, flow)
    units = flow.own_units
    parts = [_part(flow, j, name, units) for j, name in enumerate(columns)]
    # Columns that came to nothing may still have to be valid on the way.
    fillers = {columns[j]: part.levels[0] for j, part in flow.encoded.items() if part.levels}
    seen = tuple(part for part in parts if part is not None)
    table_map = TableMap(columns, seen, flow.offset, named, fillers, offset_blur=flow.offset_blur)
    table_map = _proved(table_map, steps, probe)
    return replace(table_map, fills=proved_fills(table_map, steps, fillers, flow.fills))


def _proved(table_map: TableMap, steps: list[Any], probe: Any) -> TableMap:
    """Compare the map with `transform`.

    Encoders that were fitted on objects refuse columns of floats: where they do, levels that are
    numbers are written as objects.
    """
    fillers = table_map.fillers
    objects = frozenset(name for name, level in fillers.items() if not isinstance(level, str))
    try:
        prove(table_map, steps, fillers, probe)
    except InvalidInputError:
        if not objects:
            raise
        table_map = replace(table_map, objects=objects)
        prove(table_map, steps, fillers, probe)
    return table_map


def _columns(steps: list[Any]) -> tuple[tuple[str, ...], bool]:
    """Find the names of the user's columns on the first step that knows them."""
    for step in _leaves(steps):
        names = feature_names(step)
        if names is not None:
            return Features(names).names, True
        count = getattr(step, "n_features_in_", None)
        if count is not None:
            return Features.numbered(int(count)).names, False
    raise InvalidInputError(
        "no step of the pipeline says how many columns it was fitted on, so it is not fitted yet; "
        "call its `fit` first."
    )


def _leaves(steps: list[Any]) -> list[Any]:
    """Unfold pipelines and unions, whose own word on columns hangs on their first part."""
    out = []
    for step in map(thawed, steps):
        if is_kind(step, "Pipeline"):
            out += _leaves([part for _, part in step.steps])
        elif is_kind(step, "FeatureUnion"):
            out += _leaves([part for _, part in step.transformer_list])
        else:
            out.append(step)
    return out


def _part(flow: Flow, j: int, name: str, units: Floats) -> NumericPart | LevelsPart | None:
    """Say what column j contributes; None if nothing, whatever it holds."""
    if flow.is_diagonal:
        here = slice(j, j + 1)
        own, blur = flow.linear[here].copy(), flow.linear_blur[here].copy()
        link = flow.links.get(j)
        alone = NumericPart(name, own, float(flow.base[j]), float(units[j]), blur, j, link)
        return alone if own.any() else None
    slope = NumericPart(
        name,
        flow.linear[:, j].copy(),
        float(flow.base[j]),
        float(units[j]),
        flow.linear_blur[:, j].copy(),
        link=flow.links.get(j),
    )
    encoded = flow.encoded.get(j)
    if encoded is None:
        return slope if slope.weights.any() else None
    if not slope.weights.any():
        return LevelsPart(name, *encoded) if encoded.added.any() else None
    # One column as a number and as a category: on its levels both are known.
    if not all(isinstance(level, int | float) for level in encoded.levels):
        raise NotSupportedError(
            f"column {name!r} is read as a number by one step and as text by another; expected "
            f"one of the two. Convert the column first."
        )
    as_number = Contributions(encoded.levels, *_weights(levels_of_numbers(slope, encoded.levels)))
    both = encoded.plus(as_number)
    return LevelsPart(name, *both) if both.added.any() else None


def _weights(part: LevelsPart) -> tuple[Floats, Floats]:
    return part.weights, np.zeros_like(part.weights) if part.blur is None else part.blur
