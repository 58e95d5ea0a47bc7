"""How large a Parquet file is once it is read, from its own words, without a library.

pyarrow ends the process, rather than raising an error, when it is asked about the parts of some
damaged files, and it does not say how far the pages of a file unpack. So the footer and the head of
each page are read here: they are structs of Thrift in its compact form, of which a few fields are
looked at and all others are skipped. Pages are walked over once, however often a footer names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from counterlvq.files.random_access import FileBytes

__all__ = ["COPIES", "Bytes", "Sizes", "Text", "sizes_of"]

Bytes = bytes | FileBytes

_MAGIC = b"PAR1"
_TRUE, _FALSE, _BYTE, _WHOLE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = (
    1, 2, 3, (4, 5, 6), 7, 8, 9, 10, 11, 12,
)  # fmt: skip
_DEEPEST = 24
_LONGEST_NUMBER = 10
_LONGEST_NAME = 1 << 20

# Which fields are looked at, by their numbers: None for a value, the fields of a struct, or of each
# struct in a list.
_PAGES = {1: None, 2: None, 3: None, 5: {1: None}, 8: {1: None}}
_CHUNK = dict.fromkeys((1, 2, 3, 5, 6, 7, 9, 11))
_LOGICAL: Mapping[int, Any] = {kind: {} for kind in range(1, 32)}
_ELEMENT = {**dict.fromkeys((1, 2, 3, 4, 5, 6)), 10: _LOGICAL}
_FOOTER: Mapping[int, Any] = {2: _ELEMENT, 3: None, 4: {1: {3: _CHUNK}, 3: None}}

_BYTE_ARRAY, _FIXED = 6, 7
_REPEATED = 2
# What a number, or bytes, may stand for, as old files say it and as new ones do.
_TEXTS = {0, 4, 19}, {1, 4, 12}
_DECIMALS = {5}, {5}
_DATES = {6, 7, 8}, {6, 7}
# Ways of writing text in which a value may be longer than all bytes that stand for it: by number in
# a dictionary, or by what it has in common with the one before.
_NUMBERED, _CHAINED = {2, 8}, {7}
# Bytes that a cell takes while it goes from Arrow to pandas: a number in both, where text begins
# and ends, an object of Python (a decimal, and smaller ones). Letters of text are in both, too.
_NUMBER = 16
_TEXT = 24
_DECIMAL = 160
_OBJECT = 64
COPIES = 2
# Bytes that a column takes in both, whatever it holds.
_COLUMN = 12 << 10


class Text(NamedTuple):
    """A column of text whose values may be far longer than what stands for them."""

    path: str
    rows: int
    longest: int  # bytes that a value could have
    is_chained: bool  # whether values are written as differences

    @property
    def most(self) -> int:
        """Bytes that all values together could have."""
        return self.rows * self.longest


@dataclass(frozen=True)
class Sizes:
    """What a file announces, and what its pages unpack to."""

    columns: int
    rows: int
    memory: int  # bytes, without those of `texts`
    texts: tuple[Text, ...]
    nested: str | None = None  # a column whose cells hold lists or other columns


def sizes_of(whole: Bytes) -> Sizes:
    """Read the sizes of a file; a ValueError says what is damaged, and where."""
    if len(whole) < 12 or whole[-4:] != _MAGIC:
        raise ValueError("the file does not end as a Parquet file does")
    size = int.from_bytes(whole[-8:-4], "little")
    if size > len(whole) - 12:
        raise ValueError(f"the footer announces {size} bytes, and there are {len(whole) - 12}")
    footer = _Thrift(whole, len(whole) - 8 - size, len(whole) - 8).struct(_FOOTER)
    elements = footer.get(2, [])[1:]
    nested = [_name(part) for part in elements if _number(part, 5, 0) or part.get(3) == _REPEATED]
    widths = [_width(element) for element in elements if not _number(element, 5, 0)]
    memory, texts, walk = _COLUMN * len(widths), dict[str, Text](), _Walk(whole)
    for group in footer.get(4, []):
        chunks = [chunk.get(3, {}) for chunk in group.get(1, [])]
        own = 0
        if len(chunks) != len(widths):
            raise ValueError(f"{len(widths)} columns are described, and {len(chunks)} are there")
        for chunk, width in zip(chunks, widths, strict=True):
            values, (unpacked, longest) = _number(chunk, 5), walk.unpacked(chunk)
            own += max(values * width, unpacked)
            if chunk.get(1) == _BYTE_ARRAY:
                own += COPIES * unpacked
                _add_text(texts, chunk, values, longest)
        memory += max(own, _NUMBER * _number(group, 3) * len(chunks))
    told = nested[0] if nested else None
    return Sizes(len(widths), _number(footer, 3), memory, tuple(texts.values()), told)


def _add_text(texts: dict[str, Text], chunk: Mapping[int, Any], rows: int, longest: int) -> None:
    """Remember a column of text, if it is written in a way that makes little of much."""
    ways = {*chunk.get(2, [])}
    if not ways & (_NUMBERED | _CHAINED):
        return
    path = ".".join(part.decode("utf-8") for part in chunk.get(3, []))
    before = texts.get(path, Text(path, 0, 0, False))
    is_chained = before.is_chained or bool(ways & _CHAINED)
    texts[path] = Text(path, before.rows + rows, max(before.longest, longest), is_chained)


def _name(element: Mapping[int, Any]) -> str:
    name = element.get(4, b"")
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else ""


def _width(element: Mapping[int, Any]) -> int:
    def means(known: tuple[set[int], set[int]]) -> bool:
        return element.get(6) in known[0] or bool({*element.get(10, {})} & known[1])

    if means(_DECIMALS):
        return _DECIMAL
    if element.get(1) == _FIXED:
        return _OBJECT + _number(element, 2, 0)
    is_bytes = element.get(1) == _BYTE_ARRAY and not means(_TEXTS)
    if is_bytes or means(_DATES):
        return _OBJECT
    return _TEXT if element.get(1) == _BYTE_ARRAY else _NUMBER


def _number(fields: Mapping[int, Any], at: int, default: int | None = None) -> int:
    value = fields.get(at, default)
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"the footer has {value} where a count belongs")
    return value


class _Walk:
    """Walks over pages; those of all columns together are no longer than the file."""

    def __init__(self, whole: Bytes) -> None:
        self._whole, self._left = whole, len(whole)

    def unpacked(self, chunk: Mapping[int, Any]) -> tuple[int, int]:
        """Return what the pages of a column unpack to together, and the largest of them."""
        start = _number(chunk, 9)
        if _number(chunk, 11, 0) > 0:
            start = min(start, _number(chunk, 11))
        end = min(start + _number(chunk, 7), len(self._whole))
        left, size, longest = _number(chunk, 5), 0, 0
        while start < end and left > 0:
            reader = _Thrift(self._whole, start, len(self._whole))
            page = reader.struct(_PAGES)
            size += _number(page, 2)
            longest = max(longest, _number(page, 2))
            left -= max(_number(page.get(kind, {1: 0}), 1) for kind in (5, 8))
            before, start = start, reader.at + _number(page, 3)
            self._left -= min(start, end) - before
            if self._left < 0:
                raise ValueError(f"byte {before} has a page that belongs to several columns")
        return max(size, _number(chunk, 6)), longest


class _Thrift:
    """Reads structs of Thrift's compact protocol between two places of a file."""

    def __init__(self, whole: Bytes, start: int, end: int) -> None:
        self._whole, self.at, self._end = whole, start, end

    def struct(self, wanted: Mapping[int, Any] | None, depth: int = 0) -> dict[int, Any]:
        """Read the wanted fields, and skip the others; None skips them all."""
        if depth > _DEEPEST:
            raise ValueError(f"byte {self.at} is nested too deeply")
        out: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._whole_number()
            kind = head & 15
            if wanted is not None and field in wanted:
                out[field] = self._value(kind, wanted[field], depth)
            elif kind not in (_TRUE, _FALSE):  # which are all in their head
                self._skip(kind, depth)
        return out

    def _value(self, kind: int, wanted: Any, depth: int) -> Any:
        if kind in _WHOLE and wanted is None:
            return self._whole_number()
        if kind == _BINARY and wanted is None:
            return self._binary()
        if kind == _STRUCT and wanted is not None:
            return self.struct(wanted, depth + 1)
        if kind == _LIST:
            inner, count = self._list()
            return [self._value(inner, wanted, depth + 1) for _ in range(count)]
        raise ValueError(f"byte {self.at} has a value of another type than belongs there")

    def _skip(self, kind: int, depth: int) -> None:
        if kind in (_TRUE, _FALSE, _BYTE):  # truth values of lists take a byte
            self._pass(1)
        elif kind in _WHOLE:
            self._varint()
        elif kind == _DOUBLE:
            self._pass(8)
        elif kind == _BINARY:
            self._pass(self._varint())
        elif kind == _STRUCT:
            self.struct(None, depth + 1)
        elif kind in (_LIST, _SET):
            if depth > _DEEPEST:
                raise ValueError(f"byte {self.at} is nested too deeply")
            inner, count = self._list()
            for _ in range(count):
                self._skip(inner, depth + 1)
        else:
            raise ValueError(f"byte {self.at} has a value of an unknown type")

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        if count > self._end - self.at:  # each takes a byte at least
            raise ValueError(f"byte {self.at} announces {count} values, and fewer bytes follow")
        return head & 15, count

    def _binary(self) -> bytes:
        count = self._varint()
        if count > _LONGEST_NAME:
            raise ValueError(f"byte {self.at} announces a name of {count} bytes")
        return self._take(count)

    def _whole_number(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        number = 0
        for k in range(_LONGEST_NUMBER):
            byte = self._byte()
            number |= (byte & 127) << (7 * k)
            if byte < 128:
                return number
        raise ValueError(f"byte {self.at} has a number without an end")

    def _byte(self) -> int:
        return self._take(1)[0]

    def _pass(self, count: int) -> None:
        if count > self._end - self.at:
            raise ValueError(f"byte {self.at} announces {count} bytes, and fewer follow")
        self.at += count

    def _take(self, count: int) -> bytes:
        self._pass(count)
        found = self._whole[self.at - count : self.at]
        if len(found) < count:
            raise ValueError(f"byte {self.at} has gone while the file was read")
        return found
