"""Columns in a document: what they are, and what a summary of the training table says of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, cast

import numpy as np

from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.files import MOST_WIDE, is_wide
from counterlvq.numeric.arrays import plain, told
from counterlvq.persistence.json_reading import Fields, Scalar
from counterlvq.persistence.refusals import Refusal
from counterlvq.tables.declarations import OPEN
from counterlvq.tables.feature import Feature
from counterlvq.tables.feature_checks import STEPS
from counterlvq.tables.features import Features
from counterlvq.tables.reference import PROBABILITIES, ColumnSummary, Reference
from counterlvq.types import Kind

__all__ = [
    "described",
    "features_from",
    "reference_document",
    "reference_from",
    "says_more",
    "scalars",
]

# Python reads no whole number of more than 4,300 digits.
_MOST_BITS = 1 << 12
# What is said of a feature from version 3 on, where it is not the default.
_LATER = (
    "label", "level_labels", "change", "price", "steps", "ordered", "thousands", "zeros", "phrases",
)  # fmt: skip
_FIGURES = ("median", "mad", "deviation")


def says_more(features: Features) -> bool:
    """Whether something is said of a column that versions before 3 did not know."""
    plain_one = Feature("")
    return any(
        feature.kind is Kind.DATE
        or (feature.kind is Kind.REAL and feature.step != 1)
        or any(getattr(feature, name) != getattr(plain_one, name) for name in _LATER)
        for feature in features
    )


def described(features: Features) -> list[dict[str, Any]]:
    """Describe columns; ranges that were seen stand in the summary of the table alone."""
    return [_description(feature) for feature in features]


def _description(feature: Feature) -> dict[str, Any]:
    out: dict[str, Any] = {"name": feature.name, "kind": str(feature.kind)}
    if feature.kind is Kind.CATEGORICAL:
        where = f"a level of feature {feature.name!r}"
        out["levels"] = scalars(feature.levels, where)
    if feature.step != 1:
        out["step"] = feature.step
    if feature.unit:
        out["unit"] = feature.unit
    for end in ("lower", "upper"):
        value = float(getattr(feature, end))
        if np.isfinite(value):
            out[end] = value
    if feature.decimals is not None:
        out["decimals"] = feature.decimals
    out |= _said(feature)
    if isinstance(feature.price, tuple):
        # By position, so that a level is written once.
        out["prices"] = [
            {"before": feature.code(before), "after": feature.code(after), "price": price}
            for before, after, price in feature.price
        ]
    elif feature.price is not None:
        out["price"] = feature.price
    return out


def _said(feature: Feature) -> dict[str, Any]:
    """List what versions before 3 did not know, where it is not the default; but for prices."""
    out: dict[str, Any] = {}
    if feature.steps != STEPS[0]:
        out["steps"] = feature.steps
    if feature.ordered:
        out["ordered"] = True
    if feature.label:
        out["label"] = feature.label
    if feature.level_labels:
        out["level_labels"] = list(feature.level_labels)
    if feature.change != "any":
        out["change"] = feature.change
    if feature.thousands is not None:
        out["thousands"] = feature.thousands
    if not feature.zeros:
        out["zeros"] = False
    if feature.phrases:
        out["phrases"] = True
    if feature.seen == OPEN:
        out["open"] = True
    return out


def scalars(values: Sequence[Any], what: str) -> list[Scalar]:
    """Take labels or levels that JSON can hold; refuse others."""
    found = [_scalar(value, what) for value in values]
    count = len({str(value) for value in found if is_wide(value)})
    if count > MOST_WIDE:
        raise NotSupportedError(
            f"{what} is a whole number beyond 64 bits, one of {count}; expected at most "
            f"{MOST_WIDE} of them in a model file. Convert them, with str() for example."
        )
    return found


def _scalar(value: Any, what: str) -> Scalar:
    found = plain(value)
    if isinstance(found, float) and not np.isfinite(found):
        raise NotSupportedError(f"{what} is {found}; expected finite numbers in a model file.")
    if isinstance(found, int) and found.bit_length() > _MOST_BITS:
        raise NotSupportedError(
            f"{what} is {told(found)}; expected at most {_MOST_BITS} bits in a model file."
        )
    if found is not None and type(found) not in (str, int, float, bool):
        raise NotSupportedError(
            f"{what} is {told(found)} of type {type(found).__name__}, which a model file cannot "
            f"hold; expected text, whole numbers, floats or booleans. Convert it, with str() for "
            f"example."
        )
    return cast(Scalar, found)


def reference_document(reference: Reference) -> list[dict[str, Any]]:
    """Describe the summary of a table; levels by their positions in the description of columns."""
    return [_summary(column) for column in reference.columns]


def _summary(column: ColumnSummary) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": column.name,
        "kind": str(column.kind),
        "count": column.count,
        "missing": column.missing,
    }
    if not column.is_number:
        levels = scalars([level for level, _ in column.shares], f"a level of {column.name!r}")
        return out | {"levels": levels, "shares": [share for _, share in column.shares]}
    if column.count:
        out |= {name: getattr(column, name) for name in _FIGURES}
    if column.quantiles:
        out["quantiles"] = list(column.quantiles)
    return out


# --- and back -------------------------------------------------------------------------------------


def features_from(entries: list[Any], where: str, *, says_more: bool) -> Features:
    """Read descriptions of columns; some of what they say came with version 3."""
    return Features(
        _feature(Fields(entry, f"{where}[{k}]"), says_more) for k, entry in enumerate(entries)
    )


def _feature(fields: Fields, says_more: bool) -> Feature:
    said = {
        "levels": fields.levels(),
        "step": fields.take_if_there("step", int, float),
        "unit": fields.take_if_there("unit", str),
        "lower": fields.take_if_there("lower", float),
        "upper": fields.take_if_there("upper", float),
        "decimals": fields.take_if_there("decimals", int),
    }
    name, kind = fields.take("name", str), fields.take("kind", str)
    if says_more:
        said |= _said_later(fields, said["levels"] or [False, True])
    fields.done()
    try:
        return Feature(name, kind, **{key: v for key, v in said.items() if v is not None})
    except InvalidInputError as error:
        raise Refusal(f"{fields.where}: {error}") from None


def _said_later(fields: Fields, levels: list[Any]) -> dict[str, Any]:
    said: dict[str, Any] = {
        "label": fields.take_if_there("label", str),
        "change": fields.take_if_there("change", str),
        "price": fields.take_if_there("price", float),
        "steps": fields.take_if_there("steps", str),
        "ordered": fields.take_if_there("ordered", bool),
        "thousands": fields.take_if_there("thousands", bool),
        "zeros": fields.take_if_there("zeros", bool),
        "phrases": fields.take_if_there("phrases", bool),
        "seen": OPEN if fields.take_if_there("open", bool) else None,
    }
    if "level_labels" in fields:
        texts = fields.items("level_labels", str)
        if len(texts) != len(levels):
            raise Refusal(
                f"{fields.where}.level_labels has {len(texts)} entries; expected {len(levels)}, "
                f"one for each level."
            )
        said["level_labels"] = dict(zip(levels, texts, strict=True))
    if "prices" in fields:
        listed = enumerate(fields.items("prices", dict))
        said["price"] = tuple(
            _pair(Fields(entry, f"{fields.where}.prices[{k}]"), levels) for k, entry in listed
        )
    return said


def _pair(fields: Fields, levels: list[Any]) -> tuple[Any, Any, float]:
    found = []
    for end in ("before", "after"):
        at = fields.take(end, int)
        if not 0 <= at < len(levels):
            raise Refusal(f"{fields.where}.{end} is no position of a level.")
        found.append(levels[at])
    price: float = fields.take("price", float)
    fields.done()
    return found[0], found[1], price


def reference_from(entries: list[Any], features: Features) -> Reference:
    """Read the summary of a table, which is about columns of the model and nothing else."""
    if len(entries) > len(features):
        raise Refusal(
            f"reference is about {len(entries)} columns; expected at most the {len(features)} of "
            f"the model."
        )
    columns = tuple(
        _column(Fields(entry, f"reference[{k}]"), features) for k, entry in enumerate(entries)
    )
    if len({column.name for column in columns}) < len(columns):
        raise Refusal("reference is about one column twice; expected each once.")
    return Reference(columns)


def _column(fields: Fields, features: Features) -> ColumnSummary:
    name: str = fields.take("name", str)
    if name not in features:
        raise Refusal(f"{fields.where} is about {name[:80]!r}, which is no column of the model.")
    kind = _kind(fields)
    count, missing = (_count(fields, key) for key in ("count", "missing"))
    figures: dict[str, float] = {}
    quantiles: tuple[float, ...] = ()
    shares: tuple[tuple[Any, float], ...] = ()
    if kind in (Kind.CATEGORICAL, Kind.BOOLEAN):
        shares = _shares(fields)
    elif count:
        figures = {key: fields.take(key, float) for key in _FIGURES}
        if min(figures["mad"], figures["deviation"]) < 0:
            raise Refusal(f"{fields.where} has a negative deviation; expected at least 0.")
        quantiles = _quantiles(fields)
    fields.done()
    return ColumnSummary(name, kind, count, missing, **figures, quantiles=quantiles, shares=shares)


def _kind(fields: Fields) -> Kind:
    text: str = fields.take("kind", str)
    try:
        return Kind(text)
    except ValueError:
        raise Refusal(f"{fields.where}.kind is {text[:80]!r}, which is no kind.") from None


def _count(fields: Fields, key: str) -> int:
    found: int = fields.take(key, int)
    if not 0 <= found < 1 << 63:
        raise Refusal(f"{fields.where}.{key} is no number of rows.")
    return found


def _shares(fields: Fields) -> tuple[tuple[Any, float], ...]:
    levels = fields.scalars("levels", str, int, float, bool)
    found = fields.items("shares", float)
    if len(found) != len(levels) or not all(0 <= share <= 1 for share in found):
        raise Refusal(
            f"{fields.where}.shares has {len(found)} entries for {len(levels)} levels; expected "
            f"one from 0 to 1 for each."
        )
    return tuple(zip(levels, found, strict=True))


def _quantiles(fields: Fields) -> tuple[float, ...]:
    if "quantiles" not in fields:
        return ()
    found = fields.items("quantiles", float)
    if len(found) != len(PROBABILITIES) or not all(map(isfinite, found)) or sorted(found) != found:
        raise Refusal(
            f"{fields.where}.quantiles has {len(found)} entries; expected {len(PROBABILITIES)} "
            f"finite numbers that rise."
        )
    return tuple(found)
