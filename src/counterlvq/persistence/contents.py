"""Which arrays and which document a model is.

======================  ==============  ========================================================
``prototypes``          (p, d) doubles
``labels``              (p,) whole      position of each label among the values in the document
``omega.0``, ...        (r, d) doubles  each distinct factor of the metric once; (d,) for the
                                        diagonal of one, from version 2 on
``offsets``             (p,) doubles    if the model has any; what they are says the document
``table.constant``      (k,) doubles    c in ``z = B (x - base) + c``; k is d, the columns of the
                                        model
``table.numbers``       (m, k) doubles  B', a row for each column of numbers, if there is one;
                                        (k,) for its diagonal, from version 2 on
``table.base``          (m,) doubles    what to take off each column of numbers, if any
``table.units``         (m,) doubles    units in which changes of them count alike, if known
``table.levels.0``, ..  (l, k) doubles  what each level of a column of levels adds
======================  ==============  ========================================================

A column of numbers that is seen through a function, from version 4 on, names it in the document.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.files import MOST_BYTES, allowed_bytes
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, finite_matrix, finite_vector
from counterlvq.persistence.column_descriptions import (
    described,
    features_from,
    reference_document,
    reference_from,
    says_more,
    scalars,
)
from counterlvq.persistence.container import Contents
from counterlvq.persistence.json_reading import Fields, Scalar, digits
from counterlvq.persistence.refusals import Refusal
from counterlvq.persistence.score_kinds import (
    link_document,
    link_from,
    meaning_document,
    meaning_from,
)
from counterlvq.pipelines import LevelsPart, NumericPart, TableMap, TableModel
from counterlvq.tables.features import Feature, Features
from counterlvq.tables.frames import as_frame, settled
from counterlvq.tables.missing import Fills
from counterlvq.tables.reference import Reference
from counterlvq.types import Kind, Meaning

__all__ = ["VERSION", "contents_of", "model_from"]

# A file has the lowest version that can say it: versions before 2 had no diagonals, versions before
# 3 no summary of the training table, nothing in the place of missing values, and less to say of
# columns, and versions before 4 knew prototypes with distances only, and no functions of columns.
VERSION = 4
_BEFORE_DIAGONALS = 1
_BEFORE_SUMMARIES = 2
_BEFORE_MEANINGS = 3
# Columns up to which the diagonal of a map is written as a matrix.
_NARROW = 1 << 10
# How often labels stand in memory while a model is made of them: sorting takes copies.
_LABEL_COPIES = 4

# Truth values, whole numbers, floats, text, and objects of those kinds.
_LABEL_TYPES = re.compile(r"\|b1|\|[iu]1|[<>][iu][248]|[<>]f[248]|[<>]U[1-9][0-9]{0,7}|\|O")
_VALUES: Mapping[str, tuple[type, ...]] = {
    "b": (bool,),
    "i": (int,),
    "u": (int,),
    "f": (float,),
    "U": (str,),
    "O": (str, int, float, bool, type(None)),
}


# --- from a model to contents ---------------------------------------------------------------------


def contents_of(
    model: PrototypeModel | TableModel,
    made_by: str,
    features: Features | None = None,
    reference: Any = None,
) -> Contents:
    """Say which arrays and which document a model is, its columns as described by `features`.

    `reference` is a table to summarise; without one, a summary that the model has is kept.
    """
    inner = model.model if isinstance(model, TableModel) else model
    _refuse_levels(inner.features)
    arrays: dict[str, NDArray[Any]] = {"prototypes": inner.prototypes}
    document: dict[str, Any] = {
        "version": _BEFORE_DIAGONALS,
        "made_by": made_by,
        "model": {
            "labels": _put_labels(inner, arrays),
            "omegas": _put_omegas(inner, arrays),
            "features": described(inner.features),
        },
        "table": None,
    }
    known = model.features
    if features is None and reference is not None:
        features = _as_in(reference, model)
    if isinstance(model, TableModel):
        told = model if features is None else TableModel(model.table_map, inner, features)
        document["table"], known = _put_table(told, arrays), told.features
    elif features is not None:
        known = _fitting(features, inner)
        document["model"]["features"] = described(known)
    if inner.offsets is not None:
        arrays["offsets"] = inner.offsets
    if any(name in arrays and arrays[name].ndim == 1 for name in ("omega.0", "table.numbers")):
        document["version"] = _BEFORE_SUMMARIES
    summary = model.reference if reference is None else Reference.of(reference, known)
    if summary is not None:
        document["reference"] = reference_document(summary)
    imputes = document["table"] is not None and "imputed" in document["table"]
    if summary is not None or imputes or says_more(known):
        document["version"] = _BEFORE_MEANINGS
    if isinstance(model, TableModel) and any(model.table_map.links):
        document["version"] = VERSION
    if inner.meaning != Meaning():
        document["version"] = VERSION
        document["model"]["meaning"] = meaning_document(inner.meaning)
    return Contents(document, arrays)


def _as_in(reference: Any, model: PrototypeModel | TableModel) -> Features | None:
    """Take from a table what nobody has said of columns of numbers: which are whole, or dates.

    Decimals stay open: a model that is loaded in Python may be asked without least changes.
    """
    frame = as_frame(settled(reference))
    if frame is None:
        return None
    links = model.table_map.links if isinstance(model, TableModel) else ()
    # What is seen through a function has no steps of its own.
    through = {f.name for f, link in zip(model.features, links, strict=False) if link is not None}
    plain = [f.name for f in model.features if f == Feature(f.name) and f.name in frame.names]
    names = [name for name in plain if name not in through]
    found = Features.from_frame(frame, names, ranges=None, decimals="seen")
    stepped = {f.name: f for f in found if f.kind in (Kind.WHOLE, Kind.DATE)}
    return Features(stepped.get(feature.name, feature) for feature in model.features)


def _fitting(features: Features, model: PrototypeModel) -> Features:
    """Let described columns take the place of a model's, if they are the same ones."""
    nameless = model.features == Features.numbered(model.n_features)
    if len(features) != model.n_features or not (
        nameless or features.names == model.features.names
    ):
        raise InvalidInputError(
            f"features are {len(features)} columns: {', '.join(features.names[:8])}; expected the "
            f"{model.n_features} of the model: {', '.join(model.features.names[:8])}. Choose them "
            f"with Features.from_frame(frame, only=[...])."
        )
    _refuse_levels(features)
    return features


def _refuse_levels(features: Features) -> None:
    for feature in features:
        if not feature.is_number:
            raise NotSupportedError(
                f"feature {feature.name!r} is {feature.kind}, and a model without a pipeline takes "
                f"numbers only; expected a number. Encode the column in a pipeline."
            )


def _put_labels(model: PrototypeModel, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    dtype = model.labels.dtype
    if not _LABEL_TYPES.fullmatch(dtype.str):
        raise NotSupportedError(
            f"labels of the type {dtype} cannot be saved; expected text, whole numbers, floats or "
            f"booleans. Convert them, with .astype(str) for example."
        )
    values = scalars(model.labels.tolist(), "a label")
    # By type and text: 1, 1.0 and True are equal in Python, and so are 0.0 and -0.0.
    keys = [(type(value), repr(value)) for value in values]
    distinct = dict(zip(keys, values, strict=True))
    places = {key: k for k, key in enumerate(distinct)}
    arrays["labels"] = np.array([places[key] for key in keys], dtype="<i8")
    return {"type": dtype.str, "values": list(distinct.values())}


def _put_omegas(model: PrototypeModel, arrays: dict[str, NDArray[Any]]) -> list[int] | None:
    """Store each distinct factor once; returns which one each prototype has."""
    if model.omegas is None:
        return None
    if not isinstance(model.omegas, tuple):
        # The model itself adds the row in which prototypes have their offsets.
        is_whole = model.offsets is None or model.diagonal is not None
        arrays["omega.0"] = model.omegas if is_whole else model.omegas[:-1]
        return [0]
    stored: dict[tuple[int, bytes], int] = {}
    places = []
    for omega in model.omegas:
        place = stored.setdefault((len(omega), omega.tobytes()), len(stored))
        arrays[f"omega.{place}"] = omega
        places.append(place)
    return places


def _put_table(model: TableModel, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    table_map, width = model.table_map, len(model.table_map.offset)
    # Narrow ones are written out, as versions before 2 read them.
    is_wide_diagonal = table_map.diagonal is not None and width > _NARROW
    arrays["table.constant"] = table_map.offset
    numbers: list[Floats] = []
    parts: list[dict[str, Any]] = []
    for part in table_map.parts:
        if isinstance(part, NumericPart):
            numbers.append(part.weights if is_wide_diagonal else part.whole(width).weights)
            parts.append({"column": part.column, **link_document(part.link)})
        else:
            arrays[f"table.levels.{len(parts) - len(numbers)}"] = part.weights
            levels = scalars(part.levels, f"a level of column {part.column!r}")
            parts.append({"column": part.column, "levels": levels})
    if numbers:
        arrays["table.numbers"] = (np.concatenate if is_wide_diagonal else np.stack)(numbers)
    for name, of in (("table.base", "base"), ("table.units", "unit")):
        numeric = [part for part in table_map.parts if isinstance(part, NumericPart)]
        said = np.array([getattr(part, of) for part in numeric], dtype=np.float64)
        if said.any():
            arrays[name] = said
    out: dict[str, Any] = {
        "columns": list(table_map.columns),
        "named": table_map.named,
        "parts": parts,
        "features": described(model.features),
    }
    known = table_map.fills.values
    if known:
        filled = scalars(list(known.values()), "what stands in for a missing value")
        out["imputed"] = [
            {"column": name, "value": value} for name, value in zip(known, filled, strict=True)
        ]
    return out


# --- from contents to a model ---------------------------------------------------------------------


def model_from(contents: Contents, max_bytes: int | None) -> PrototypeModel | TableModel:
    """Build the model, or say what does not fit together."""
    document = Fields(contents.document, "the document")
    version: int = document.take("version", int)
    _check_version(version)
    document.take("made_by", str)
    told = Fields(document.take("model", dict), "model")
    table = document.take("table", dict, type(None))
    later = version > _BEFORE_SUMMARIES
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
    has_diagonals, later = version > _BEFORE_DIAGONALS, version > _BEFORE_SUMMARIES
    omegas = _omegas(fields, arrays, count, room.later, has_diagonals)
    offsets = arrays.doubles("offsets") if "offsets" in arrays else None
    if offsets is not None and omegas is None:
        raise Refusal("it has offsets and no omegas; expected both.")
    entries = fields.items("features", dict)
    features = features_from(entries, "model.features", says_more=later)
    meaning = meaning_from(fields) if version > _BEFORE_MEANINGS else None
    fields.done()
    if not all(feature.is_number for feature in features):
        raise Refusal("a column of the model itself has levels; expected numbers.")
    # A model takes fields columns where it takes names.
    names = cast(Sequence[str], features.columns)
    return PrototypeModel(prototypes, labels, omegas, names, offsets, meaning)


def _labels(fields: Fields, arrays: _Arrays, count: int, room: int) -> NDArray[Any]:
    told = fields.take("type", str)
    if not _LABEL_TYPES.fullmatch(told):
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
    has_links, has_diagonals = version > _BEFORE_MEANINGS, version > _BEFORE_DIAGONALS
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
