"""From arrays and a document back to a model, or to what does not fit together in them."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from counterlvq.files import MOST_BYTES, allowed_bytes
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, finite_matrix, finite_vector
from counterlvq.persistence.column_descriptions import (
    features_from,
    reference_from,
)
from counterlvq.persistence.container import Contents
from counterlvq.persistence.contents import (
    BEFORE_DIAGONALS,
    BEFORE_MEANINGS,
    BEFORE_SUMMARIES,
    LABEL_TYPES,
    VERSION,
)
from counterlvq.persistence.json_reading import Fields, Scalar, digits
from counterlvq.persistence.refusals import Refusal
from counterlvq.persistence.score_kinds import (
    link_from,
    meaning_from,
)
from counterlvq.pipelines import LevelsPart, NumericPart, TableMap, TableModel
from counterlvq.tables.features import Features
from counterlvq.tables.missing import Fills

__all__ = ["model_from"]

# How often labels stand in memory while a model is made of them: sorting takes copies.
_LABEL_COPIES = 4

_VALUES: Mapping[str, tuple[type, ...]] = {
    "b": (bool,),
    "i": (int,),
    "u": (int,),
    "f": (float,),
    "U": (str,),
    "O": (str, int, float, bool, type(None)),
}


def model_from(contents: Contents, max_bytes: int | None) -> PrototypeModel | TableModel:
    """Build the model, or say what does not fit together."""
    document = Fields(contents.document, "the document")
    version: int = document.take("version", int)
    _check_version(version)
    document.take("made_by", str)
    told = Fields(document.take("model", dict), "model")
    table = document.take("table", dict, type(None))
    later = version > BEFORE_SUMMARIES
    summary = document.take_list_if_there("reference", dict) if later else None
    document.done()
    arrays = _Arrays(contents.arrays)
    room = _Room(allowed_bytes(contents.size, max_bytes), max_bytes or MOST_BYTES)
    model = _model(told, arrays, room, version)
    if table is None:
        arrays.done()
        return (
            model
            if summary is None
            else model.with_reference(reference_from(summary, model.features))
        )
    fields = Fields(table, "table")
    table_map = _table_map(fields, arrays, model.n_features, version)
    features = features_from(fields.items("features", dict), "table.features", says_more=later)
    imputed = fields.take_list_if_there("imputed", dict) if later else None
    fields.done()
    arrays.done()
    if imputed is not None:
        table_map = replace(table_map, fills=_fills(imputed, table_map))
    out = TableModel(table_map, model, features)
    return out if summary is None else out.with_reference(reference_from(summary, out.features))


class _Room(NamedTuple):
    """How much memory may be taken: at once, and by all that is made of a model later on."""

    now: int
    later: int


def _check_version(version: int) -> None:
    if version > VERSION:
        raise Refusal(
            f"it has version {digits(version)} of the format, and this counterlvq reads up to "
            f"{VERSION}.",
            "Update counterlvq.",
        )
    if version < 1:
        raise Refusal(f"it has version {digits(version)} of the format; expected 1 to {VERSION}.")


class _Arrays:
    """The arrays of a file; whatever is left over in the end is an error."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._left = dict(arrays)

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def is_vector(self, name: str) -> bool:
        return name in self._left and self._left[name].ndim == 1

    def doubles(self, name: str) -> NDArray[Any]:
        return self._take(name, "f")

    def whole(self, name: str) -> NDArray[Any]:
        return self._take(name, "i")

    def _take(self, name: str, kind: str) -> NDArray[Any]:
        if name not in self._left:
            raise Refusal(f"the array {name!r} is missing.")
        array = self._left.pop(name)
        if array.dtype.kind != kind:
            wanted = {"f": "doubles", "i": "whole numbers"}[kind]
            raise Refusal(f"the array {name!r} has the type {array.dtype}; wanted {wanted}.")
        return array

    def count(self, begin: str) -> int:
        return sum(name.startswith(begin) for name in self._left)

    def done(self) -> None:
        if self._left:
            names = ", ".join(repr(name[:80]) for name in sorted(self._left)[:5])
            raise Refusal(f"it holds the arrays {names}, which this format does not have.")


def _model(fields: Fields, arrays: _Arrays, room: _Room, version: int) -> PrototypeModel:
    prototypes = finite_matrix("prototypes", arrays.doubles("prototypes"))
    count = len(prototypes)
    labels = _labels(Fields(fields.take("labels", dict), "labels"), arrays, count, room.now)
    has_diagonals, later = version > BEFORE_DIAGONALS, version > BEFORE_SUMMARIES
    omegas = _omegas(fields, arrays, count, room.later, has_diagonals)
    offsets = arrays.doubles("offsets") if "offsets" in arrays else None
    if offsets is not None and omegas is None:
        raise Refusal("it has offsets and no omegas; expected both.")
    entries = fields.items("features", dict)
    features = features_from(entries, "model.features", says_more=later)
    meaning = meaning_from(fields) if version > BEFORE_MEANINGS else None
    fields.done()
    if not all(feature.is_number for feature in features):
        raise Refusal("a column of the model itself has levels; expected numbers.")
    # A model takes fields columns where it takes names.
    names = cast(Sequence[str], features.columns)
    return PrototypeModel(prototypes, labels, omegas, names, offsets, meaning)


def _labels(fields: Fields, arrays: _Arrays, count: int, room: int) -> NDArray[Any]:
    told = fields.take("type", str)
    if not LABEL_TYPES.fullmatch(told):
        raise Refusal(f"labels have the type {told[:80]!r}, which this format does not have.")
    dtype = np.dtype(told)
    values = fields.scalars("values", *_VALUES[dtype.kind])
    fields.done()
    needed = _LABEL_COPIES * dtype.itemsize * max(count, len(values))
    if needed > room:
        raise Refusal.too_large(f"labels of the type {told!r} need", needed, room)
    places = arrays.whole("labels")
    if places.shape != (count,):
        raise Refusal(
            f"the array 'labels' has shape {places.shape}; expected ({count},), one per prototype."
        )
    if not values or places.min() < 0 or places.max() >= len(values):
        raise Refusal("a prototype has a label that is none of those in the document.")
    return np.asarray(_typed_values(values, dtype)[places])


def _typed_values(values: list[Scalar], dtype: np.dtype[Any]) -> NDArray[Any]:
    out = np.empty(len(values), dtype=dtype)
    try:
        with np.errstate(over="ignore"):
            out[:] = values
    except OverflowError:
        raise Refusal(f"a label is too large for the type {dtype}.") from None
    if out.tolist() != values:
        raise Refusal(f"a label has more to it than the type {dtype} can hold.")
    return out


def _omegas(
    fields: Fields, arrays: _Arrays, count: int, most: int, has_diagonals: bool
) -> Floats | list[Floats] | None:
    if fields.is_null("omegas"):
        return None
    places: list[int] = fields.items("omegas", int)
    stored = range(arrays.count("omega."))
    for k, place in enumerate(places):
        if place < 0 or place >= max(len(stored), 1):
            raise Refusal(
                f"model.omegas[{k}] is {digits(place)}, and {len(stored)} arrays 'omega.0', ... "
                f"are stored; expected one of them."
            )
    if len(places) not in (1, count) or len(set(places)) < len(stored):
        raise Refusal(
            f"omegas are listed for {len(places)} prototypes, with {len(stored)} of them stored; "
            f"expected one for all, or one for each of {count} and none unused."
        )
    at = range(max(len(stored), 1))  # where there is none, that is said of the first
    if has_diagonals and len(places) == 1 and arrays.is_vector("omega.0"):
        return finite_vector("omega.0", arrays.doubles("omega.0"))
    omegas = [finite_matrix(f"omega.{k}", arrays.doubles(f"omega.{k}")) for k in at]
    if len(places) == 1:
        return omegas[0]
    needed = sum(omegas[k].nbytes for k in places)
    if needed > most:
        raise Refusal.too_large(f"a metric for each of {count} prototypes needs", needed, most)
    return [omegas[k] for k in places]


def _table_map(fields: Fields, arrays: _Arrays, width: int, version: int) -> TableMap:
    columns = Features(fields.items("columns", str)).names
    named: bool = fields.take("named", bool)
    listed = [
        Fields(part, f"table.parts[{k}]") for k, part in enumerate(fields.items("parts", dict))
    ]
    constant = finite_vector("table.constant", arrays.doubles("table.constant"), width)
    has_links, has_diagonals = version > BEFORE_MEANINGS, version > BEFORE_DIAGONALS
    read = [(part.take("column", str), part.levels()) for part in listed]
    links = iter([link_from(part) if has_links else None for part in listed])
    for part in listed:
        part.done()
    _check_order([name for name, _ in read], columns)
    count = sum(levels is None for _, levels in read)
    is_diagonal = has_diagonals and arrays.is_vector("table.numbers")
    if is_diagonal and not count == len(read) == width:
        raise Refusal(
            f"table.numbers is a diagonal, and {count} of {len(read)} columns are numbers for a "
            f"model of {width}; expected one for each."
        )
    numbers = iter(_slopes(arrays, width) if is_diagonal else _numbers(arrays, count, width))
    base, units = (iter(_per_number(arrays, name, count)) for name in ("table.base", "table.units"))
    parts: list[NumericPart | LevelsPart] = []
    numbered = itertools.count()
    for name, levels in read:
        link = next(links)
        if levels is None:
            at = len(parts) if is_diagonal else None
            own = next(numbers), next(base), next(units)
            parts.append(NumericPart(name, *own, at=at, link=link))
            continue
        if link is not None:
            raise Refusal(f"the part {name[:80]!r} has levels and a link; expected one of them.")
        stored = f"table.levels.{next(numbered)}"
        weights = finite_matrix(stored, arrays.doubles(stored), width)
        if len(weights) != len(levels):
            raise Refusal(f"{stored} has {len(weights)} rows for {len(levels)} levels.")
        parts.append(LevelsPart(name, tuple(levels), weights))
    return TableMap(columns, tuple(parts), constant, named)


def _fills(entries: list[Any], table_map: TableMap) -> Fills:
    """Read what stands in for missing values: a number or a level, of columns that there are."""
    values: dict[str, Scalar] = {}
    levels = {part.column: part.levels for part in table_map.parts if isinstance(part, LevelsPart)}
    numbers = {part.column: part for part in table_map.parts if isinstance(part, NumericPart)}
    for k, entry in enumerate(entries):
        fields = Fields(entry, f"table.imputed[{k}]")
        name: str = fields.take("column", str)
        value: Scalar = fields.take("value", str, int, float, bool)
        fields.done()
        if name not in table_map.columns or name in values:
            raise Refusal(f"{fields.where} is about {name[:80]!r}, which is no column, or twice.")
        is_number = isinstance(value, int | float) and abs(value) <= sys.float_info.max
        fits = value in levels[name] if name in levels else is_number or name not in numbers
        link = numbers[name].link if name in numbers else None
        if not fits or (link is not None and not link.takes(np.array(value, dtype=np.float64))):
            raise Refusal(f"{fields.where} has a value that its column does not take.")
        values[name] = value
    return Fills(values)


def _slopes(arrays: _Arrays, width: int) -> list[Floats]:
    slopes = finite_vector("table.numbers", arrays.doubles("table.numbers"), width)
    return [slopes[j : j + 1] for j in range(width)]


def _numbers(arrays: _Arrays, count: int, width: int) -> list[Floats]:
    if count == 0:
        return []
    rows = finite_matrix("table.numbers", arrays.doubles("table.numbers"), width)
    if len(rows) != count:
        raise Refusal(f"table.numbers has {len(rows)} rows for {count} columns of numbers.")
    return list(rows)


def _per_number(arrays: _Arrays, name: str, count: int) -> list[float]:
    """Read a number for each column of numbers; zeros where the file has none."""
    if name not in arrays:
        return [0.0] * count
    found: list[float] = finite_vector(name, arrays.doubles(name), count).tolist()
    if name == "table.units" and min(found) < 0:
        raise Refusal(f"{name} holds {min(found):g}; expected numbers of at least 0.")
    return found


def _check_order(names: list[str], columns: tuple[str, ...]) -> None:
    """Parts follow the columns, each at most once."""
    ahead = iter(columns)
    for name in names:
        if name not in ahead:
            raise Refusal(f"the part {name[:80]!r} is no column of the table, or not in its order.")
