"""Columns of answers: the type of the column that was given, where that holds what was proved.

Types are settled before any row is seen, so that all batches of a stream have the same. A number
is proved as a double; no other type is written unless it gives that very double back.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import NotSupportedError
from counterlvq.numeric.arrays import Floats, plain, told
from counterlvq.safe_text import encodable, shown_repr
from counterlvq.streaming.arrow import arrow, arrow_part
from counterlvq.tables.arrow_types import usual_column, usual_type
from counterlvq.tables.feature import Feature
from counterlvq.tables.feature_checks import MOST_DECIMALS, STEPS
from counterlvq.types import Kind

__all__ = ["AnswerColumn", "label_array"]

# Digits of a decimal of 128 bits, and of the largest whole number that floats hold exactly.
_MOST_DIGITS, _EXACT_DIGITS = 38, 16
# Powers of ten that floats hold exactly: a quotient by one is rounded once.
_MOST_SCALE = 22


@final
@dataclass(frozen=True, eq=False)
class AnswerColumn:
    """How the answers for one feature are written beside a column of Arrow.

    Examples
    --------
    >>> import pyarrow as pa
    >>> AnswerColumn.of(Feature("age", "whole", lower=0, upper=120), pa.int8()).type
    DataType(int8)
    >>> AnswerColumn.of(Feature("age", "whole"), pa.int8()).type
    DataType(int64)
    >>> AnswerColumn.of(Feature("income"), pa.float32()).type
    DataType(double)
    """

    feature: Feature
    type: Any  # pyarrow.DataType
    levels: Any = None  # pyarrow.Array of them, of the type or of the values of a dictionary

    @classmethod
    def of(cls, feature: Feature, given: Any) -> AnswerColumn:
        """Settle the type beside a column of type `given`; None where there is no such column."""
        pa = arrow()
        known = _natural(feature) if given is None or pa.types.is_null(given) else given
        # In views Arrow looks nothing up; few levels need no long offsets.
        known = pa.string() if str(known) == "string_view" else usual_type(known)
        if not feature.is_number:
            return cls(feature, *_levels(feature, known))
        if feature.kind is Kind.DATE and _holds_dates(known):
            return cls(feature, known)
        return cls(feature, _number_type(feature, known))

    def array(self, values: Floats, before: Floats, given: Any) -> Any:
        """Write the values of answers, NaN as nulls; what did not change is taken as it was given.

        Parameters
        ----------
        values, before : ndarray of shape (n,)
            As `CounterfactualBatch` has them.
        given : pyarrow.Array
            The column that was given.
        """
        pa = arrow()
        gaps = np.isnan(values)
        if not self.feature.is_number:
            return self._levels_at(values, gaps)
        if pa.types.is_float64(self.type):
            return pa.array(values, mask=gaps) if gaps.any() else pa.array(values)
        if pa.types.is_decimal(self.type):
            return self._decimals(values, gaps, before, given)
        if pa.types.is_integer(self.type):
            return pa.array(_whole(values, gaps), mask=gaps).cast(self.type)
        days = pa.array(_whole(values, gaps).astype(np.int32), mask=gaps).cast(pa.date32())
        return days.cast(self.type)

    def _levels_at(self, values: Floats, gaps: NDArray[np.bool_]) -> Any:
        pa = arrow()
        codes = pa.array(_whole(values, gaps), mask=gaps)
        if not pa.types.is_dictionary(self.type):
            return self.levels.take(codes)
        return pa.DictionaryArray.from_arrays(
            codes.cast(self.type.index_type), self.levels, ordered=self.type.ordered
        )

    def _decimals(self, values: Floats, gaps: NDArray[np.bool_], before: Floats, given: Any) -> Any:
        pa, compute = arrow(), arrow_part("compute")
        stays = values == before
        # What changes lies on the grid of the feature, of which Arrow moves the point exactly.
        digits = _digits(self.feature) or 0
        changed = np.where(gaps | stays, 0.0, values)
        words = _words(changed, digits)
        has_room = np.abs(changed) < 10.0 ** (_MOST_DIGITS - digits)
        wrong = ~has_room | (_moved(words, digits) != changed)
        if wrong.any():
            value = float(changed[wrong][0])
            raise NotSupportedError(
                f"column {told(self.feature.name)}: the answer {value!r} has no equal of type "
                f"{self.type}. Give the column as double."
            )
        grid = pa.decimal128(_MOST_DIGITS, digits)
        new = pa.Array.from_buffers(grid, len(values), [None, pa.py_buffer(words)])
        new = compute.if_else(pa.array(~gaps), new, pa.scalar(None, grid)).cast(self.type)
        if pa.types.is_null(given.type):
            return new
        return compute.if_else(pa.array(stays & ~gaps), usual_column(given).cast(self.type), new)


def label_array(labels: list[Any]) -> Any:
    """Hold the labels of a model in an array; as text where they are of several types."""
    pa = arrow()
    listed = [plain(label) for label in labels]
    try:
        out = pa.array(listed)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        out = None
    is_same = out is not None and out.to_pylist() == listed
    return out if is_same else pa.array([encodable(str(label)) for label in listed])


def _words(values: Floats, digits: int) -> NDArray[np.int64]:
    """Write numbers as decimals of 128 bits with so many digits after the point, low word first."""
    moved = np.rint(values * 10.0**digits)
    short = np.abs(moved) < 2.0**62
    words = np.zeros((len(values), 2), dtype=np.int64)
    words[:, 0] = np.where(short, moved, 0.0)
    words[:, 1] = words[:, 0] >> 63  # the sign, carried on
    for i in np.flatnonzero(~short):
        whole = round(Fraction(values[i]) * 10**digits) % 2**128
        words[i].view(np.uint64)[:] = whole % 2**64, whole >> 64
    return words


def _moved(words: NDArray[np.int64], digits: int) -> Floats:
    """Read decimals as the nearest floats."""
    low, high = words[:, 0], words[:, 1]
    out = low / 10.0**digits
    for i in np.flatnonzero((low >> 63) != high):  # longer than one word
        out[i] = ((int(high[i]) << 64) + int(low[i]) % 2**64) / 10**digits
    return out


def _whole(values: Floats, gaps: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.where(gaps, 0.0, values).astype(np.int64)


def _natural(feature: Feature) -> Any:
    """Type of a feature of which no column is known."""
    pa = arrow()
    if feature.kind is Kind.CATEGORICAL:
        return label_array(list(feature.levels)).type
    known = {Kind.BOOLEAN: pa.bool_(), Kind.WHOLE: pa.int64(), Kind.DATE: pa.date32()}
    return known.get(feature.kind, pa.float64())


def _holds_dates(given: Any) -> bool:
    types = arrow().types
    is_time = types.is_timestamp(given) and given.tz is None
    return bool(types.is_date(given) or is_time or _is_text(given))


def _is_text(given: Any) -> bool:
    return str(given) in ("string", "large_string", "string_view")


def _number_type(feature: Feature, given: Any) -> Any:
    pa = arrow()
    is_whole = feature.lattice is not None and feature.lattice[1] == 1
    if pa.types.is_integer(given):
        if not is_whole:
            return pa.float64()
        ends = np.iinfo(given.to_pandas_dtype())
        lower, upper = _ends(feature)
        return given if ends.min <= lower and upper <= ends.max else pa.int64()
    if pa.types.is_decimal(given):
        return _decimal_type(feature, given)
    if pa.types.is_floating(given) or pa.types.is_boolean(given):
        return pa.int64() if is_whole and pa.types.is_boolean(given) else pa.float64()
    raise NotSupportedError(
        f"column {told(feature.name)} is of type {given}; expected numbers"
        f"{' or dates' if feature.kind is Kind.DATE else ''}, because the feature is "
        f"{feature.kind}. Cast the column first."
    )


def _ends(feature: Feature) -> tuple[float, float]:
    """Between which numbers an answer lies that is not the input itself."""
    lower, upper = feature.range
    seen = feature.seen or (-inf, inf)
    return (lower if lower > -inf else seen[0]), (upper if upper < inf else seen[1])


def _digits(feature: Feature) -> int | None:
    """Digits after the point of the values on the grid of a feature; None without a grid."""
    if feature.lattice is None:
        return None
    step, parts = feature.lattice
    rest = Fraction(step, parts).denominator
    return next(digits for digits in range(MOST_DECIMALS + 1) if 10**digits % rest == 0)


def _decimal_type(feature: Feature, given: Any) -> Any:
    """Keep decimals on a grid that their scale has room for; answers elsewhere are doubles."""
    pa = arrow()
    digits = _digits(feature)
    steady = feature.steps == STEPS[0] or feature.kind is not Kind.REAL
    scale = given.scale
    if digits is None or not steady or not digits <= scale <= _MOST_SCALE:
        return pa.float64()
    if max(map(abs, _ends(feature))) < 10.0 ** (given.precision - scale):
        return given
    has_room = given.precision <= _MOST_DIGITS and scale + _EXACT_DIGITS < _MOST_DIGITS
    return pa.decimal128(_MOST_DIGITS, scale) if has_room else pa.float64()


def _levels(feature: Feature, given: Any) -> tuple[Any, Any]:
    """Type of a column of levels, and the levels in it."""
    pa = arrow()
    is_dictionary = pa.types.is_dictionary(given)
    value = given.value_type if is_dictionary else given
    held = _held(list(feature.levels), value)
    if held is None:
        raise NotSupportedError(
            f"column {told(feature.name)} is of type {given}, which cannot hold its levels "
            f"{', '.join(map(shown_repr, feature.levels[:8]))}; expected a type that can. Cast the "
            f"column first."
        )
    if not is_dictionary:
        return held.type, held
    index = given.index_type
    if len(held) > np.iinfo(index.to_pandas_dtype()).max:
        index = pa.int32()
    return pa.dictionary(index, held.type, given.ordered), held


def _held(levels: list[Any], given: Any) -> Any:
    """Levels in an array of the given type, or of a wider one of its kind; None if none does."""
    pa = arrow()
    wider = [pa.int64()] if pa.types.is_integer(given) else []
    narrow = pa.types.is_floating(given) and not pa.types.is_float64(given)
    wider += [pa.float64()] if pa.types.is_integer(given) or narrow else []
    values = [plain(level) for level in levels]
    for kind in [given, *wider]:
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        listed = [v + 0 if is_number and isinstance(v, bool) else v for v in values]
        try:
            held = pa.array(listed, kind)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            continue
        if held.to_pylist() == listed:
            return held
    return None
