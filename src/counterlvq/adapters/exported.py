"""Models exported from another environment, as files of plain arrays.

`scripts/export_lvq.py` writes such a file where the foreign library works; it is a NumPy archive
(``.npz``) without pickled objects that holds

==============  ====================================  =========================================
``format``      ``"counterlvq-prototypes"``
``version``     1
``library``     text                                  what the model comes from
``kind``        text                                  the name of its class
``prototypes``  numbers, (p, d)
``labels``      numbers, text or truth values, (p,)
``omegas``      numbers, (r, d) or (p, r, d)          left out for plain distances
``names``       text, (d,)                            names of the features, where there are any
``probe``       numbers, (n, d)                       rows to compare predictions on, if any
``told``        like ``labels``, (n,)                 what the foreign `predict` said about them
==============  ====================================  =========================================

Local metrics of different rank are filled up with rows of zeros, which change no distance.
"""

from __future__ import annotations

import math
import os
import struct
import tokenize
import zipfile
import zlib
from contextlib import ExitStack
from io import BytesIO
from typing import Any, BinaryIO

from numpy.lib import format as npy
from numpy.typing import NDArray

from counterlvq.adapters.probing import refuse_disagreement
from counterlvq.arrays import finite_matrix
from counterlvq.errors import InvalidInputError
from counterlvq.model import PrototypeModel

__all__ = ["load_exported"]

_FORMAT = "counterlvq-prototypes"
_VERSION = 1
_HEAD = ("format", "version")
_REQUIRED = (*_HEAD, "library", "kind", "prototypes", "labels")
_OPTIONAL = ("omegas", "names", "probe", "told")
# Kinds of NumPy types that each may have; labels may be of any that needs no pickle.
_TEXT, _WHOLE, _NUMBERS, _LABELS = "U", "iu", "iuf", "biufU"
_KINDS = {
    "format": _TEXT,
    "version": _WHOLE,
    "library": _TEXT,
    "kind": _TEXT,
    "prototypes": _NUMBERS,
    "labels": _LABELS,
    "omegas": _NUMBERS,
    "names": _TEXT,
    "probe": _NUMBERS,
    "told": _LABELS,
}
# The unit of rounding that the foreign predictions were computed with, where it is not double. It
# decides which probe rows are too close to a boundary to tell, and so whether a file is refused.
_EPSILON = {"prototorch-models": 2.0**-24}

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
# What damaged bytes make the readers of archives and arrays raise.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    tokenize.TokenError,
    ValueError,
    TypeError,
    SyntaxError,
    EOFError,
    KeyError,
    IndexError,
    OverflowError,
    RecursionError,
    NotImplementedError,
    RuntimeError,
    UserWarning,  # where the caller has turned warnings into errors
)


def load_exported(
    path: str | os.PathLike[str] | BinaryIO, max_bytes: int = 1 << 30
) -> PrototypeModel:
    """Load a model that `export_lvq.py` wrote in the environment of another library.

    Nothing in the file is run: it holds plain arrays, and each is checked. Where the file holds
    probe rows, the model is compared with what the foreign `predict` said about them.

    Parameters
    ----------
    path : str, path or binary file
        The ``.npz`` file.
    max_bytes : int, default 1 GiB
        Files whose arrays need more memory are refused.

    Returns
    -------
    PrototypeModel

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> np.savez(
    ...     file,
    ...     format="counterlvq-prototypes",
    ...     version=1,
    ...     library="sklearn-lvq",
    ...     kind="GlvqModel",
    ...     prototypes=[[0.0, 0.0], [4.0, 0.0]],
    ...     labels=["no", "yes"],
    ... )
    >>> load_exported(file)
    PrototypeModel(2 prototypes, 2 features, 2 classes, shared metric)
    """
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else "the file"
    with ExitStack() as stack:
        file = (
            stack.enter_context(open(path, "rb")) if isinstance(path, str | os.PathLike) else path
        )
        arrays = _read(file, str(name), max_bytes)
    names = arrays.get("names")
    model = PrototypeModel(
        arrays["prototypes"],
        arrays["labels"],
        arrays.get("omegas"),
        None if names is None else [str(feature) for feature in names.tolist()],
    )
    _compare(arrays, model)
    return model


def _read(file: BinaryIO, name: str, max_bytes: int) -> dict[str, NDArray[Any]]:
    try:
        with zipfile.ZipFile(file) as archive:
            entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
            # The version comes first: it says which of the other arrays to expect.
            for keys, check in ((_HEAD, _check_head), (tuple(entries), _check_body)):
                _check_entries(entries, keys, name, max_bytes)
                arrays = {key: _array(archive, entries[key]) for key in keys}
                check(arrays, name)
            return arrays
    except InvalidInputError:
        raise
    except _DAMAGE as error:
        raise InvalidInputError(
            f"{name} cannot be read as an exported model ({type(error).__name__}: {error}); "
            f"expected a .npz file written by export_lvq.py. Export the model again."
        ) from None


def _check_entries(
    entries: dict[str, zipfile.ZipInfo], keys: tuple[str, ...], name: str, max_bytes: int
) -> None:
    missing = [key for key in (_HEAD if keys == _HEAD else _REQUIRED) if key not in entries]
    if missing:
        raise InvalidInputError(
            f"{name} lacks {', '.join(map(repr, missing))}; expected a .npz file written by "
            f"export_lvq.py."
        )
    size = sum(entries[key].file_size for key in keys)
    if size > max_bytes:
        raise InvalidInputError(
            f"{name} needs {size} bytes of memory; expected at most {max_bytes}. Pass a larger "
            f"`max_bytes` if you trust the file."
        )


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """Read one array, without making room for more numbers than the file holds."""
    with archive.open(entry) as stream:
        content = BytesIO(stream.read(entry.file_size))
    version = npy.read_magic(content)
    if version not in _HEADERS:
        raise ValueError(f"{entry.filename} has version {version} of the array format")
    shape, _, dtype = _HEADERS[version](content)
    if dtype.hasobject:
        raise ValueError(f"{entry.filename} holds pickled objects")
    left = len(content.getvalue()) - content.tell()
    if math.prod(shape) * dtype.itemsize != left:
        raise ValueError(f"{entry.filename} has {left} bytes for an array of shape {shape}")
    content.seek(0)
    array: NDArray[Any] = npy.read_array(content, allow_pickle=False)
    return array


def _check_head(arrays: dict[str, NDArray[Any]], name: str) -> None:
    for key in _HEAD:
        _check_single(arrays[key], name, key)
    if arrays["format"].item() != _FORMAT:
        raise InvalidInputError(
            f"{name} has the format {arrays['format'].item()!r}; expected {_FORMAT!r}, as written "
            f"by export_lvq.py."
        )
    if arrays["version"].item() != _VERSION:
        raise InvalidInputError(
            f"{name} has version {arrays['version'].item()} of the format; expected {_VERSION}. "
            f"Update counterlvq, or export the model with the export_lvq.py that came with it."
        )


def _check_body(arrays: dict[str, NDArray[Any]], name: str) -> None:
    unknown = sorted(set(arrays) - set(_REQUIRED) - set(_OPTIONAL))
    if unknown:
        raise InvalidInputError(
            f"{name} holds {', '.join(map(repr, unknown))}, which this version of the format does "
            f"not have. Export the model again."
        )
    for key, array in arrays.items():
        _check_kind(array, name, key)
    for key in ("library", "kind"):
        _check_single(arrays[key], name, key)
    if ("probe" in arrays) != ("told" in arrays):
        raise InvalidInputError(
            f"{name} holds only one of 'probe' and 'told'; expected both or neither. Export the "
            f"model again."
        )


def _check_single(array: NDArray[Any], name: str, key: str) -> None:
    _check_kind(array, name, key)
    if array.size != 1:
        raise InvalidInputError(
            f"{key!r} in {name} has shape {array.shape}; expected a single value."
        )


def _check_kind(array: NDArray[Any], name: str, key: str) -> None:
    if array.dtype.kind not in _KINDS[key]:
        words = {_TEXT: "text", _WHOLE: "whole numbers", _NUMBERS: "numbers"}
        raise InvalidInputError(
            f"{key!r} in {name} has the type {array.dtype}; expected "
            f"{words.get(_KINDS[key], 'numbers, text or truth values')}. Export the model again."
        )
    if key == "names" and array.ndim != 1:
        raise InvalidInputError(
            f"'names' in {name} has shape {array.shape}; expected one name per feature."
        )


def _compare(arrays: dict[str, NDArray[Any]], model: PrototypeModel) -> None:
    if "probe" not in arrays:
        return
    rows = finite_matrix("probe", arrays["probe"], model.n_features)
    told = arrays["told"]
    if told.shape != (rows.shape[0],):
        raise InvalidInputError(
            f"told has shape {told.shape}; expected ({rows.shape[0]},), one label per probe row. "
            f"Export the model again."
        )
    library = str(arrays["library"].item())
    source = f"{arrays['kind'].item()} of {library}"
    refuse_disagreement(source, model, rows, told, _EPSILON.get(library, 2.0**-53))
