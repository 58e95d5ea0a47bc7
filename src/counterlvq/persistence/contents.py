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

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.persistence.column_descriptions import (
    described,
    reference_document,
    says_more,
    scalars,
)
from counterlvq.persistence.container import Contents
from counterlvq.persistence.score_kinds import (
    link_document,
    meaning_document,
)
from counterlvq.pipelines import NumericPart, TableModel
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features
from counterlvq.tables.frames import as_frame, settled
from counterlvq.tables.reference import Reference
from counterlvq.types import Kind, Meaning

__all__ = [
    "BEFORE_DIAGONALS",
    "BEFORE_MEANINGS",
    "BEFORE_SUMMARIES",
    "LABEL_TYPES",
    "VERSION",
    "contents_of",
]

# A file has the lowest version that can say it: versions before 2 had no diagonals, versions before
# 3 no summary of the training table, nothing in the place of missing values, and less to say of
# columns, and versions before 4 knew prototypes with distances only, and no functions of columns.
VERSION = 4
BEFORE_DIAGONALS = 1
BEFORE_SUMMARIES = 2
BEFORE_MEANINGS = 3
# Columns up to which the diagonal of a map is written as a matrix.
_NARROW = 1 << 10

# Truth values, whole numbers, floats, text, and objects of those kinds.
LABEL_TYPES = re.compile(r"\|b1|\|[iu]1|[<>][iu][248]|[<>]f[248]|[<>]U[1-9][0-9]{0,7}|\|O")


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
        "version": BEFORE_DIAGONALS,
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
        document["version"] = BEFORE_SUMMARIES
    summary = model.reference if reference is None else Reference.of(reference, known)
    if summary is not None:
        document["reference"] = reference_document(summary)
    imputes = document["table"] is not None and "imputed" in document["table"]
    if summary is not None or imputes or says_more(known):
        document["version"] = BEFORE_MEANINGS
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
    if not LABEL_TYPES.fullmatch(dtype.str):
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
