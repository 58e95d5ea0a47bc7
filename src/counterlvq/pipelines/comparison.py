"""Check that a map was read rightly: compare it with `transform` on the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from counterlvq.adapters.exclusive_calls import in_turn
from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import PROBE_ROUNDING, PROBE_ROUNDING_ON_THE_WAY
from counterlvq.pipelines.table_map import LevelsPart, NumericPart, TableMap
from counterlvq.tables.encoding import rows_of
from counterlvq.tables.frames import new_frame

__all__ = ["as_fitted", "made_rows", "probe_columns", "prove", "transformed"]

_PROBES = 32
# How far from the middle numbers are drawn, in units that move z by one.
_REACH = 3.0


def prove(table_map: TableMap, steps: list[Any], unseen: Mapping[str, Any], probe: Any) -> None:
    """Refuse a map that `transform` does not confirm.

    Columns that do not matter hold the value that `unseen` has for them, or zero.
    """
    made = made_rows(table_map)
    try:
        told = transformed(steps, _table(table_map, made, unseen))
    except InvalidInputError:
        # A step that is particular about columns that do not matter; rows of the user will do.
        if probe is None:
            raise
    else:
        _compare(table_map, made, told)
    if probe is not None:
        rows = rows_of(probe, table_map.features, table_map.columns)
        _compare(table_map, rows, transformed(steps, probe))


def _compare(table_map: TableMap, rows: Floats, told: Floats) -> None:
    said = table_map.image(rows)
    if told.shape != said.shape:
        raise NotSupportedError(
            f"the pipeline turns {len(rows)} row(s) into an array of shape {told.shape}; expected "
            f"{said.shape} from its attributes. A step does something else than its class says; "
            f"apply it to the table before the pipeline."
        )
    wrong = ~(np.abs(told - said) <= _allowed(table_map, rows))
    if wrong.any():
        i, k = (int(at) for at in np.argwhere(wrong)[0])
        raise NotSupportedError(
            f"the pipeline and its attributes disagree on {int(wrong.any(axis=1).sum())} of "
            f"{len(rows)} probe row(s), first in row {i}, output {k}: `transform` gives "
            f"{told[i, k]:.10g}, the attributes {said[i, k]:.10g}. A step does something else than "
            f"its class says; apply it to the table before the pipeline."
        )


def transformed(steps: list[Any], table: Any) -> Floats:
    """Run a table through the steps, each by its own `transform`."""
    with in_turn(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on names of columns, and on columns without a value
        for step in steps:
            if step is None or isinstance(step, str):
                continue
            try:
                table = step.transform(table)
            except (ValueError, TypeError, KeyError) as error:
                reason = str(error).partition("\n")[0]
                raise InvalidInputError(
                    f"{type(step).__name__} could not transform the probe rows "
                    f"({type(error).__name__}: {reason}); expected rows like those it was fitted "
                    f"on. Pass some as `probe`."
                ) from error
    dense = table.toarray() if hasattr(table, "toarray") else table
    return np.asarray(dense, dtype=np.float64)


def _allowed(table_map: TableMap, rows: Floats) -> Floats:
    """Say how far each output may be off by rounding: a share of the absolute values behind it."""
    sizes = np.tile(np.abs(table_map.offset), (len(rows), 1))
    rows = table_map.seen(rows)
    along = table_map.diagonal
    if along is not None:
        sizes += (np.abs(rows) + np.abs(along.base)) * np.abs(along.slopes)
    else:
        for j, part in enumerate(table_map.parts):
            if isinstance(part, NumericPart):
                sizes += (np.abs(rows[:, j, None]) + abs(part.base)) * np.abs(part.weights)
            else:
                sizes += np.abs(part.weights[rows[:, j].astype(np.intp)])
    largest = sizes.max(axis=1, initial=0.0, keepdims=True)
    return np.asarray(PROBE_ROUNDING * sizes + PROBE_ROUNDING_ON_THE_WAY * largest)


def made_rows(table_map: TableMap) -> Floats:
    """Rows around the middle of what the steps were fitted on, with each level at least once.

    Steps that centre and scale put the middle at z = 0 and give all numbers one unit there.
    """
    return table_map.given(_seen_rows(table_map))


def _seen_rows(table_map: TableMap) -> Floats:
    """As `made_rows`, with columns that are seen through a function on its scale."""
    parts = table_map.parts
    counts = [len(part.levels) for part in parts if isinstance(part, LevelsPart)]
    count = max([_PROBES, *counts])
    draws = np.random.default_rng(0).uniform(-_REACH, _REACH, (count, len(parts)))
    along = table_map.diagonal
    if along is not None:
        lengths = np.abs(along.slopes)
        middle = -table_map.offset * np.sign(along.slopes)
        return np.asarray(along.base + (middle + draws) / lengths)
    rows = np.empty((count, len(parts)))
    numbers = {j: part for j, part in enumerate(parts) if isinstance(part, NumericPart)}
    if numbers:
        numeric = list(numbers)
        B = np.stack([part.weights for part in numbers.values()], axis=1)
        lengths = np.linalg.norm(B, axis=0)
        middle = np.linalg.lstsq(B / lengths, -table_map.offset, rcond=None)[0]
        base = np.array([part.base for part in numbers.values()])
        rows[:, numeric] = base + (middle + draws[:, numeric]) / lengths
    for j, part in enumerate(parts):
        if isinstance(part, LevelsPart):
            rows[:, j] = draws[:, j].argsort() % len(part.levels)
    return rows


def _table(table_map: TableMap, rows: Floats, unseen: Mapping[str, Any]) -> Any:
    """Write rows as a table of the kind that the pipeline was fitted on."""
    if table_map.diagonal is not None and not table_map.named:
        return rows
    return as_fitted(table_map, probe_columns(table_map, rows, unseen))


def probe_columns(
    table_map: TableMap, rows: Floats, unseen: Mapping[str, Any]
) -> dict[str, list[Any]]:
    """List the values of all columns, those that do not matter too."""
    columns: dict[str, list[Any]] = {
        name: [unseen.get(name, 0.0)] * len(rows) for name in table_map.columns
    }
    for j, part in enumerate(table_map.parts):
        if isinstance(part, NumericPart):
            columns[part.column] = rows[:, j].tolist()
        else:
            columns[part.column] = [part.levels[int(code)] for code in rows[:, j]]
    return columns


def as_fitted(table_map: TableMap, columns: Mapping[str, list[Any]]) -> Any:
    """Put columns into a table of the kind that the pipeline was fitted on."""
    if table_map.named:
        return new_frame(columns, table_map.objects)
    is_text = any(isinstance(value, str) for column in columns.values() for value in column)
    is_mixed = is_text or len(table_map.objects) > 0
    return np.array(list(columns.values()), dtype=object if is_mixed else np.float64).T
