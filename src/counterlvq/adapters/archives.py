"""Archives of plain arrays (``.npz``) from strangers: bytes in, arrays out, nothing is run.

An archive is a zip file, and each entry an array with a line of text before it that says its type
and shape. Whatever the archive announces is compared with the bytes that are there before room is
made for it, and no line of text is evaluated.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Collection, Mapping
from io import BytesIO
from math import prod
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Archive", "Damage"]

_MAGIC = b"\x93NUMPY"
# Bytes of the number that says how long the line of text is, by version of the format.
_SIZES = {(1, 0): 2, (2, 0): 4}
_LONGEST_LINE = 10_000
_LINE = re.compile(
    r"\{'descr': '(?P<type>[^']{1,40})', 'fortran_order': (?P<columns>True|False), "
    r"'shape': \((?P<shape>[0-9, ]{0,200})\),? ?\}\s*"
)
_TYPE = re.compile(
    r"\|b1|\|[iu]1|[<>][iu][248]|[<>]f[248]|[<>]c(8|16)|[<>]U[1-9]\d{0,7}|\|S\d{1,7}"
)
_MOST_DIMENSIONS = 4
_LAST_LETTER = 0x10FFFF
# What `numpy.savez` and `numpy.savez_compressed` write, and no more: other ways of packing unpack
# without a limit.
_PACKED = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


class Damage(Exception):  # noqa: N818 - it becomes a ModelFileError with the name of the file
    """What is wrong with the bytes of an archive."""


@final
class Archive:
    """The arrays of an archive, by name.

    None is read before it is asked for.
    """

    def __init__(self, whole: bytes) -> None:
        self._zip = _opened(whole)
        entries = self._zip.infolist()
        names = [entry.filename.removesuffix(".npy") for entry in entries]
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise Damage(f"it holds {twice[0][:80]!r} twice")
        self._entries = dict(zip(names, entries, strict=True))

    @property
    def names(self) -> Collection[str]:
        """The names of all arrays."""
        return self._entries.keys()

    def size(self, names: Collection[str]) -> int:
        """How many bytes some arrays announce to have, once unpacked."""
        return sum(self._entries[name].file_size for name in names)

    def read(self, names: Collection[str]) -> Mapping[str, NDArray[Any]]:
        """Read some arrays."""
        return {name: _array(name, self._unpacked(self._entries[name])) for name in names}

    def _unpacked(self, entry: zipfile.ZipInfo) -> bytes:
        if entry.compress_type not in _PACKED:
            raise Damage(
                f"{entry.filename[:80]} is packed by method {entry.compress_type}, and only arrays "
                f"that are stored or deflated are read, as numpy.savez_compressed writes them"
            )
        try:
            with self._zip.open(entry) as stream:
                content = stream.read(entry.file_size)
        except Exception as error:  # noqa: BLE001 - zipfile does not say what it raises
            raise Damage(f"{entry.filename[:80]}: {_words(error)}") from None
        if len(content) != entry.file_size:
            raise Damage(
                f"{entry.filename[:80]} announces {entry.file_size} bytes and has {len(content)}"
            )
        return content


def _opened(whole: bytes) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(BytesIO(whole))
    except Exception as error:  # noqa: BLE001 - zipfile does not say what it raises
        raise Damage(_words(error)) from None


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def _array(name: str, content: bytes) -> NDArray[Any]:
    """See the array in the bytes of an entry, if they are exactly its own."""
    file = f"{name[:80]}.npy"
    start, line = _line(file, content)
    told = _LINE.fullmatch(line)
    if told is None:
        raise Damage(f"{file} begins with {line[:80]!r}, which describes no plain array")
    dtype = _dtype(file, told["type"])
    lengths = [int(length) for length in told["shape"].replace(" ", "").split(",") if length]
    if len(lengths) > _MOST_DIMENSIONS:
        raise Damage(f"{file} has {len(lengths)} dimensions")
    if not all(1 <= length < 1 << 48 for length in lengths):
        raise Damage(f"{file} has the shape {tuple(lengths)}, and an array without values is none")
    left = len(content) - start
    if prod(lengths) * dtype.itemsize != left:
        raise Damage(f"{file} has {left} bytes for an array of shape {tuple(lengths)}")
    flat: NDArray[Any] = np.frombuffer(content, dtype, offset=start)
    _check_values(file, flat)
    if told["columns"] == "True":
        return flat.reshape(lengths[::-1]).T
    return flat.reshape(lengths)


def _line(file: str, content: bytes) -> tuple[int, str]:
    """Find the line of text that describes an array, and where its numbers start."""
    width = _SIZES.get((content[6], content[7])) if len(content) > 7 else None
    if not content.startswith(_MAGIC) or width is None:
        raise Damage(f"{file} is no array of NumPy in version 1.0 or 2.0 of the format")
    start = 8 + width
    end = start + int.from_bytes(content[8:start], "little")
    if end > len(content) or end - start > _LONGEST_LINE:
        raise Damage(f"{file} announces a description of {end - start} bytes")
    return end, content[start:end].decode("latin-1")


def _dtype(file: str, text: str) -> np.dtype[Any]:
    if text.startswith("|O"):
        raise Damage(f"{file} holds pickled objects, which are never read")
    if not _TYPE.fullmatch(text) or text == "|S0":
        raise Damage(f"{file} has the type {text!r}; expected numbers, text or truth values")
    return np.dtype(text)


def _check_values(file: str, flat: NDArray[Any]) -> None:
    """Refuse bytes that are no value of their type: NumPy would stumble over them later."""
    if flat.dtype.kind == "U":
        letters = flat.view(np.dtype(np.uint32).newbyteorder(flat.dtype.byteorder))
        if letters.max() > _LAST_LETTER:
            raise Damage(f"{file} holds the letter {int(letters.max()):#x}, which does not exist")
    if flat.dtype.kind == "b" and flat.view(np.uint8).max() > 1:
        raise Damage(f"{file} holds a truth value that is neither true nor false")
