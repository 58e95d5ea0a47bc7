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
``omegas``      numbers, (d,), (r, d) or (p, r, d)    left out for plain distances
``names``       text, (d,)                            names of the features, where there are any
``probe``       numbers, (n, d)                       rows to compare predictions on, if any
``told``        like ``labels``, (n,)                 what the foreign `predict` said about them
==============  ====================================  =========================================

Local metrics of different rank are filled up with rows of zeros, which change no distance.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from typing import Any, BinaryIO

from numpy.typing import NDArray

from counterlvq.adapters.archives import Archive, Damage
from counterlvq.adapters.arithmetic import Arithmetic
from counterlvq.adapters.probing import refuse_disagreement
from counterlvq.errors import InvalidInputError, ModelFileError
from counterlvq.files import MOST_BYTES, allowed_bytes, read_at_most
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import finite_matrix, told
from counterlvq.numeric.tolerances import EPSILON, SINGLE_EPSILON

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
_EPSILON = {"prototorch-models": SINGLE_EPSILON}

# What a feature takes in memory, beside its numbers.
_FEATURE_BYTES = 512
# Multiplications that the comparison with the probe rows may take, and what a row beside a
# prototype takes at the least, however few features there are.
_COMPARED = 1 << 27
_OF_A_PAIR = 16


def load_exported(
    path: str | os.PathLike[str] | BinaryIO, max_bytes: int | None = None
) -> PrototypeModel:
    """Load a model that `export_lvq.py` wrote in the environment of another library.

    Nothing in the file is run: it holds plain arrays, and each is checked. Where the file holds
    probe rows, the model is compared with what the foreign `predict` said about them; of very many
    rows, with the first ones.

    Parameters
    ----------
    path : str, path or binary file
        The ``.npz`` file.
    max_bytes : int, optional
        Files whose arrays need more memory are refused. By default 16 MiB and 64 times the size
        of the file, and 1 GiB at most.

    Returns
    -------
    PrototypeModel

    Raises
    ------
    ModelFileError
        If the file is damaged, too large, or no exported model.
    NotSupportedError
        If the model does not say what the foreign one said about the probe rows.

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
        whole = _whole(file, str(name), max_bytes)
    try:
        return _model(whole, str(name), allowed_bytes(len(whole), max_bytes))
    except Damage as error:
        raise ModelFileError(
            f"{name} cannot be read as an exported model ({error}); expected a .npz file written "
            f"by export_lvq.py. Export the model again."
        ) from None
    except MemoryError:
        raise ModelFileError(
            f"{name} needs more memory than there is. Free some, or export a smaller model."
        ) from None


def _whole(file: BinaryIO, name: str, max_bytes: int | None) -> bytes:
    most = MOST_BYTES if max_bytes is None else max_bytes
    if not hasattr(file, "read"):
        raise InvalidInputError(
            f"path is {told(file)} of type {type(file).__name__}; expected the name of a file, or "
            f"a file that is open for reading bytes."
        )
    if hasattr(file, "seekable") and file.seekable():
        file.seek(0)  # an archive is read from its end, so that it never mattered where one stood
    whole = read_at_most(file, most + 1)
    if len(whole) > most:
        raise ModelFileError(
            f"{name} has more than {most} bytes; expected at most {most}. Pass a larger "
            f"`max_bytes` if you trust the file."
        )
    return whole


def _model(whole: bytes, name: str, room: int) -> PrototypeModel:
    arrays = _read(Archive(whole), name, room)
    names = arrays.get("names")
    try:
        model = PrototypeModel(
            arrays["prototypes"],
            arrays["labels"],
            arrays.get("omegas"),
            None if names is None else [str(feature) for feature in names.tolist()],
        )
    except InvalidInputError as error:
        raise ModelFileError(f"{name} holds no model: {error} Export the model again.") from None
    _compare(arrays, model, name, room)
    unit = _EPSILON.get(str(arrays["library"].item()))
    return model if unit is None else model.rounded_by(_blurred(model, unit))


def _blurred(model: PrototypeModel, unit: float) -> float | None:
    return Arithmetic(model, unit, casts=True).unit_of_products()


def _read(archive: Archive, name: str, room: int) -> Mapping[str, NDArray[Any]]:
    # The version comes first: it says which of the other arrays to expect.
    _check_entries(archive, _HEAD, name, room)
    _check_head(archive.read(_HEAD), name)
    unknown = sorted(set(archive.names) - set(_REQUIRED) - set(_OPTIONAL))
    if unknown:
        raise ModelFileError(
            f"{name} holds {', '.join(repr(key[:80]) for key in unknown[:5])}, which this version "
            f"of the format does not have. Export the model again."
        )
    _check_entries(archive, archive.names, name, room)
    arrays = archive.read(archive.names)
    _check_body(arrays, name, room)
    return arrays


def _check_entries(archive: Archive, keys: Collection[str], name: str, room: int) -> None:
    missing = [key for key in (_HEAD if keys == _HEAD else _REQUIRED) if key not in archive.names]
    if missing:
        raise ModelFileError(
            f"{name} lacks {', '.join(map(repr, missing))}; expected a .npz file written by "
            f"export_lvq.py."
        )
    _check_room(name, archive.size(keys), room)


def _check_room(name: str, needed: int, room: int) -> None:
    if needed > room:
        raise ModelFileError(
            f"{name} needs {needed} bytes of memory; expected at most {room}. Pass a larger "
            f"`max_bytes` if you trust the file."
        )


def _check_head(arrays: Mapping[str, NDArray[Any]], name: str) -> None:
    for key in _HEAD:
        _check_single(arrays[key], name, key)
    if arrays["format"].item() != _FORMAT:
        raise ModelFileError(
            f"{name} has the format {arrays['format'].item()!r}; expected {_FORMAT!r}, as written "
            f"by export_lvq.py."
        )
    if arrays["version"].item() != _VERSION:
        raise ModelFileError(
            f"{name} has version {arrays['version'].item()} of the format; expected {_VERSION}. "
            f"Update counterlvq, or export the model with the export_lvq.py that came with it."
        )


def _check_body(arrays: Mapping[str, NDArray[Any]], name: str, room: int) -> None:
    for key, array in arrays.items():
        _check_kind(array, name, key)
    for key in ("library", "kind"):
        _check_single(arrays[key], name, key)
    if ("probe" in arrays) != ("told" in arrays):
        raise ModelFileError(
            f"{name} holds only one of 'probe' and 'told'; expected both or neither. Export the "
            f"model again."
        )
    width = arrays["prototypes"].shape[-1:]
    _check_room(name, _FEATURE_BYTES * sum(width), room)
    if "names" in arrays and arrays["names"].shape != width:
        raise ModelFileError(
            f"{name}: feature_names has {len(arrays['names'])} names; expected {sum(width)}, one "
            f"per column of prototypes. Export the model again."
        )


def _check_single(array: NDArray[Any], name: str, key: str) -> None:
    _check_kind(array, name, key)
    if array.size != 1:
        raise ModelFileError(f"{key!r} in {name} has shape {array.shape}; expected a single value.")


def _check_kind(array: NDArray[Any], name: str, key: str) -> None:
    if array.dtype.kind not in _KINDS[key]:
        words = {_TEXT: "text", _WHOLE: "whole numbers", _NUMBERS: "numbers"}
        raise ModelFileError(
            f"{key!r} in {name} has the type {array.dtype}; expected "
            f"{words.get(_KINDS[key], 'numbers, text or truth values')}. Export the model again."
        )
    if key == "names" and array.ndim != 1:
        raise ModelFileError(
            f"'names' in {name} has shape {array.shape}; expected one name per feature."
        )


def _compare(
    arrays: Mapping[str, NDArray[Any]], model: PrototypeModel, name: str, room: int
) -> None:
    if "probe" not in arrays:
        return
    try:
        rows = finite_matrix("probe", arrays["probe"], model.n_features)
    except InvalidInputError as error:
        raise ModelFileError(f"{name}: {error} Export the model again.") from None
    said = arrays["told"]
    if said.shape != (rows.shape[0],):
        raise ModelFileError(
            f"{name}: told has shape {said.shape}; expected ({rows.shape[0]},), one label per "
            f"probe row. Export the model again."
        )
    # The work of a pair grows with the rank; features that are seen one by one are taken once.
    one_by_one = model.omegas is None or model.diagonal is not None
    rank = 1 if one_by_one else len(model.factors[0])
    # Prototypes are taken to the space of the metric, which may be wider than that of the inputs.
    _check_room(name, 8 * rank * model.n_prototypes, room)
    of_a_pair = max(_OF_A_PAIR, model.n_features * rank)
    enough = max(1, _COMPARED // (model.n_prototypes * of_a_pair))
    library = str(arrays["library"].item())
    source = f"{arrays['kind'].item()} of {library}"
    epsilon = _EPSILON.get(library, EPSILON)
    refuse_disagreement(source, model, rows[:enough], said[:enough], epsilon)
