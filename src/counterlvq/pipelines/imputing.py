"""What the imputers of a pipeline put in the place of missing values, shown by its `transform`.

An imputer of constants says what it puts there. That is believed of a column if rows with a
missing value and rows with that value become the same to the last digit. They do not if another
step sees the missing value as well, or if the imputer marks it in a column of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.pipelines.comparison import as_fitted, made_rows, probe_columns, transformed
from counterlvq.pipelines.flow import Fill
from counterlvq.pipelines.table_map import LevelsPart, TableMap
from counterlvq.tables.missing import Fills, NoFill
from counterlvq.tables.monotone import Link

__all__ = ["proved_fills"]


def proved_fills(
    table_map: TableMap,
    steps: list[Any],
    unseen: Mapping[str, Any],
    found: Mapping[int, Sequence[Fill]],
) -> Fills:
    """Try what imputers say of the columns, and keep what `transform` confirms.

    `found` has what they put into the columns, by position; `unseen` is as for `prove`.
    """
    if not found:
        return Fills()
    said = {table_map.columns[j]: fills for j, fills in found.items()}
    texts = {part.column for part in table_map.parts if isinstance(part, LevelsPart)}
    probes = _Probes(table_map, steps, unseen)
    values: dict[str, Any] = {name: fills[0].value for name, fills in said.items()}
    signs: dict[str, Any] = dict.fromkeys(values, np.nan)
    if not probes.confirm(values, signs):
        confirmed = {
            name: found_pair
            for name, fills in said.items()
            if (found_pair := _alone(probes, name, fills, name in texts)) is not None
        }
        values = {name: value for name, (value, _) in confirmed.items()}
        signs = {name: sign for name, (_, sign) in confirmed.items()}
        if not probes.confirm(values, signs):
            values, signs = {}, {}
    links = {part.column: link for part, link in zip(table_map.parts, table_map.links, strict=True)}
    reasons = {
        name: _reason(name, fills, links.get(name))
        for name, fills in said.items()
        if name not in values
    }
    return Fills(values, reasons, signs)


def _alone(
    probes: _Probes, name: str, fills: Sequence[Fill], is_text: bool
) -> tuple[Any, Any] | None:
    """Find what stands for a missing value of one column, and what it looks for there."""
    for fill in fills:
        for sign in (np.nan, None) if is_text else (np.nan,):
            if probes.confirm({name: fill.value}, {name: sign}):
                return fill.value, sign
    return None


def _reason(name: str, fills: Sequence[Fill], link: Link | None) -> NoFill:
    if any(fill.marked for fill in fills):
        return NoFill(
            "the pipeline marks a missing value in a column of its own (add_indicator=True), which "
            "no number in its place does",
            "fit the imputer with add_indicator=False",
        )
    if len(fills) > 1:
        listed = " and ".join(repr(fill.value) for fill in fills)
        return NoFill(
            f"the pipeline puts different values in its place ({listed})",
            "fit the pipeline with one imputer for the column",
        )
    if link is not None and not link.takes(np.array(fills[0].value, dtype=np.float64)):
        return NoFill(
            f"the pipeline puts {fills[0].value!r} in its place, where {link.words(name)} is no "
            f"number",
            "fit the imputer with a value at which it is one",
        )
    return NoFill(
        f"the pipeline puts {fills[0].value!r} in its place and also takes it as it is, or as "
        f"something else, in another step",
        "have no step but the imputer take the column",
    )


class _Probes:
    """Rows of which some values are missing, in a pattern that leaves no two columns alike."""

    def __init__(self, table_map: TableMap, steps: list[Any], unseen: Mapping[str, Any]) -> None:
        self.table_map, self.steps = table_map, steps
        rows = made_rows(table_map)
        self.columns = probe_columns(table_map, rows, unseen)
        draws = np.random.default_rng(0).random((len(rows), len(table_map.columns)))
        self.gaps: NDArray[np.bool_] = draws < 0.5
        self.gaps[0] = True

    def confirm(self, values: Mapping[str, Any], signs: Mapping[str, Any]) -> bool:
        """Whether missing values and what stands for them become the same, to the last digit."""
        try:
            with_gaps, with_fills = (
                transformed(self.steps, as_fitted(self.table_map, self._holding(put)))
                for put in (signs, values)
            )
        except InvalidInputError:  # a step that takes no missing values
            return False
        # A function of a column may be infinite at what is put there.
        return bool(np.isfinite(with_fills).all()) and np.array_equal(with_gaps, with_fills)

    def _holding(self, put: Mapping[str, Any]) -> dict[str, list[Any]]:
        out = dict(self.columns)
        for j, name in enumerate(self.table_map.columns):
            if name in put:
                out[name] = [
                    put[name] if gap else value
                    for value, gap in zip(out[name], self.gaps[:, j], strict=True)
                ]
        return out
