"""Where the records of a large CSV file end, found without reading any cell.

A line ends in a line feed, a carriage return, or both; one between quotes belongs to its cell. A
quote opens a cell only where the cell begins, and is a letter like others within it, as it is to
Arrow, which reads the cells.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import told

__all__ = ["Cut", "blocks_of", "cuts_of", "decoded", "header_of"]

_CHUNK = 8 << 20
# A part of fewer rows than asked for ends here, and no record is longer.
_MOST_BYTES = 64 << 20
_MARK = b"\xef\xbb\xbf"
_FEED, _RETURN, _QUOTE = b'\n\r"'
_BLANK = b" \t\r\n\v\f"


class Cut(NamedTuple):
    """Records of a file: where they begin and end, and how many there are as far as lines tell."""

    begin: int
    end: int
    rows: int


def header_of(path: Path, delimiter: str) -> tuple[bytes, bytes, int]:
    """Read the first record that is not blank, what the file begins with, and where rows begin."""
    with open(path, "rb") as file:
        first = file.read(_CHUNK)
        is_all = not file.read(1)
    at = len(_MARK) if first.startswith(_MARK) else 0
    records, blank = _Records(delimiter), _BLANK.replace(delimiter.encode(), b"")
    starts = records.starts(first[at:]) + at
    for end in [*starts.tolist(), *([len(first)] if is_all else [])]:
        if first[at:end].strip(blank):
            if end == len(first):
                _refuse_open(path, records, at)
            return first[at:end], first, end
        at = end
    if not is_all:
        raise InvalidInputError(
            f"{told(path.name)} has no first line within its first {_CHUNK:,} bytes; expected the "
            f"names of the columns there, in CSV, or a whole file of Parquet."
        )
    return b"", first, at


def cuts_of(
    path: Path, delimiter: str, part_rows: int, encoding: str = "utf-8"
) -> tuple[tuple[Cut, ...], str]:
    """Cut a file at ends of records, and refuse bytes that are no text; with the hash of it."""
    known, cuts, text = sha256(), list[Cut](), _Text(path, encoding)
    _, _, begin = header_of(path, delimiter)
    records, rows, last = _Records(delimiter), 0, begin
    with open(path, "rb") as file:
        known.update(file.read(begin))
        at = begin
        while chunk := file.read(_CHUNK):
            known.update(chunk)
            text.check(chunk, at)
            starts = records.starts(chunk) + at
            at += len(chunk)
            _refuse_long(path, np.concatenate([[last], starts, [at]]))
            while starts.size:
                enough = int(np.searchsorted(starts, begin + _MOST_BYTES))
                taken = min(part_rows - rows, enough + 1, starts.size)
                rows, last = rows + taken, int(starts[taken - 1])
                if rows >= part_rows or last - begin >= _MOST_BYTES:
                    cuts.append(Cut(begin, last, rows))
                    begin, rows = last, 0
                starts = starts[taken:]
    text.check(b"", at)
    _refuse_open(path, records, last)
    if at > begin or not cuts:
        cuts.append(Cut(begin, at, rows + (at > last)))
    return tuple(cuts), known.hexdigest()


def blocks_of(
    file: BinaryIO, begin: int, end: int, delimiter: str, rows: int
) -> Iterator[tuple[int, bytes]]:
    r"""Read the records of a part, so many at a time; gives where they begin, and their bytes.

    Examples
    --------
    >>> from io import BytesIO
    >>> list(blocks_of(BytesIO(b'x,y\n1,2\n3,"4\n"\n5,6'), 4, 18, ",", 2))
    [(4, b'1,2\n3,"4\n"\n'), (15, b'5,6')]
    """
    records, pieces, at, count = _Records(delimiter), list[bytes](), begin, 0
    file.seek(begin)
    while chunk := file.read(min(_CHUNK, end - at)):
        at += len(chunk)
        starts, last = records.starts(chunk), 0
        for start in starts[rows - 1 - count % rows :: rows].tolist():
            pieces.append(chunk[last:start])
            yield begin, b"".join(pieces)
            begin, last, pieces = at - len(chunk) + start, start, []
        pieces.append(chunk[last:])
        count += len(starts)
    if at > begin:
        yield begin, b"".join(pieces)


def decoded(content: bytes, encoding: str, name: str, begin: int) -> str:
    """Read text, or say which byte is none; `begin` is where it stands in its file."""
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise _no_text(name, encoding, begin + error.start, content[error.start]) from None


def _no_text(name: str, encoding: str, at: int, byte: int) -> InvalidInputError:
    return InvalidInputError(
        f"{told(name)} is no text in {encoding} (byte {at:,} is {byte:#04x}); expected the "
        f"encoding of the file, such as encoding='cp1252' (--encoding cp1252)."
    )


class _Text:
    """Looks for bytes that are no text, chunk by chunk."""

    def __init__(self, path: Path, encoding: str) -> None:
        self._name, self._encoding = path.name, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def check(self, chunk: bytes, begin: int) -> None:
        """Refuse a chunk that is no text; an empty one is the end of the file."""
        kept = self._decoder.getstate()[0]  # of a letter that the chunk before has begun
        try:
            self._decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            byte = (kept + chunk)[error.start]
            at = begin - len(kept) + error.start
            raise _no_text(self._name, self._encoding, at, byte) from None


def _refuse_long(path: Path, ends: NDArray[np.int64]) -> None:
    """Refuse a record that no part can hold."""
    lengths = np.diff(ends)
    longest = int(np.argmax(lengths))
    if lengths[longest] > _MOST_BYTES:
        raise InvalidInputError(
            f"{told(path.name)} has no end of a line in the {lengths[longest]:,} bytes from byte "
            f"{ends[longest]:,} on; expected lines of at most {_MOST_BYTES:,}. Look for a quote "
            f"that opens a cell there and does not close it."
        )


def _refuse_open(path: Path, records: _Records, begin: int) -> None:
    """Refuse a file whose last record has no end, and may hold many lines for that."""
    if records.is_open:
        raise InvalidInputError(
            f"{told(path.name)} ends between quotes; expected each quote that opens a cell to be "
            f"closed. Look for one in the line that begins at byte {begin:,}, or for lines that "
            f"are missing at the end."
        )


class _Records:
    """Finds where records begin, chunk by chunk; the first one begins with the first byte."""

    def __init__(self, delimiter: str) -> None:
        self._opening = np.zeros(256, dtype=bool)
        self._opening[[_FEED, _RETURN, ord(delimiter)]] = True
        self._before = _FEED  # the byte before a chunk
        self._is_first = True
        self._is_quoted = self._has_closed = False  # whether that byte is in quotes, or closes some

    @property
    def is_open(self) -> bool:
        """Whether a cell has been opened by a quote, and not been closed."""
        return self._is_quoted

    def starts(self, chunk: bytes) -> NDArray[np.int64]:
        """Return where records begin within a chunk, behind the end of another one."""
        if not chunk:
            return np.empty(0, dtype=np.int64)
        signs = np.frombuffer(chunk, dtype=np.uint8)
        before = np.concatenate([[np.uint8(self._before)], signs[:-1]])
        quotes = self._quotes(signs, before)
        is_start = (before == _FEED) | ((before == _RETURN) & (signs != _FEED))
        if self._is_first:
            is_start[0] = False
        starts = np.flatnonzero(is_start)
        if quotes.size or self._is_quoted:
            starts = starts[(np.searchsorted(quotes, starts) + self._is_quoted) % 2 == 0]
        self._is_quoted = bool((quotes.size + self._is_quoted) % 2)
        self._before = chunk[-1]
        last = int(quotes[-1]) if quotes.size else -1
        self._has_closed = last == signs.size - 1 and not self._is_quoted
        self._is_first = False
        return starts

    def _quotes(self, signs: NDArray[np.uint8], before: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return where quotes open and close cells."""
        found = np.flatnonzero(signs == _QUOTE)
        opens = found[int(self._is_quoted) :: 2]
        # Two quotes in quotes are a letter: the one closes, and the other opens again.
        fits = self._opening[before[opens]] | (before[opens] == _QUOTE)
        if opens.size and opens[0] == 0 and self._before == _QUOTE:
            fits[0] = self._has_closed
        return found if fits.all() else self._one_by_one(found, before)

    def _one_by_one(self, found: NDArray[np.int64], before: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Leave out quotes that stand within cells which did not begin with one."""
        kept, is_quoted, closed = list[int](), self._is_quoted, -1 if self._has_closed else -2
        opens = self._opening[before[found]].tolist()
        for at, may_open in zip(found.tolist(), opens, strict=True):
            if is_quoted:
                closed = at
            elif not may_open and at - 1 != closed:
                continue
            kept.append(at)
            is_quoted = not is_quoted
        return np.array(kept, dtype=np.int64)
