"""What a file is by its first bytes, where it is often taken for a table."""

from __future__ import annotations

import re

__all__ = ["PARQUET", "is_json", "other_kind"]

PARQUET = b"PAR1"
_RECORDS = re.compile(rb"(\xef\xbb\xbf)?\s*\[\s*[\{\]]")
_BEGIN = 4096
# Behind eight bytes that say how long it is.
_MODEL = b'{"__metadata__"'
_OTHERS = {
    b"PK\x03\x04": "an Excel workbook or another zip file; save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
    b"\x1f\x8b": "compressed; unpack it first, with gunzip for example",
    b"BZh": "compressed; unpack it first, with bunzip2 for example",
    b"\xfd7zXZ\x00": "compressed; unpack it first, with unxz for example",
    b"\x28\xb5\x2f\xfd": "compressed; unpack it first, with unzstd for example",
    b"\x93NUMPY": "an array of NumPy; write it with numpy.savetxt and names for its columns",
    b"ARROW1": "an Arrow file; write it as Parquet",
    b"SQLite format 3\x00": "a database; write the table as CSV",
    b"%PDF": "a PDF",
}


def other_kind(whole: bytes) -> str | None:
    """Say what a file is that is no table, and what to do with it; None for all others.

    Examples
    --------
    >>> other_kind(b"%PDF-1.7"), other_kind(b"a,b")
    ('a PDF', None)
    """
    if whole.startswith(_MODEL, 8):
        return "a model file; the model comes first, the table second"
    return next((words for begin, words in _OTHERS.items() if whole.startswith(begin)), None)


def is_json(whole: bytes) -> bool:
    """Whether a file begins like rows in JSON.

    Examples
    --------
    >>> is_json(b' [{"a": 1}]'), is_json(b"[a],b")
    (True, False)
    """
    return _RECORDS.match(whole[:_BEGIN]) is not None
