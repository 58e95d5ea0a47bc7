"""Hashes of models and questions: the same for what gives the same answers, in any process."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import sha256
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from counterlvq.streaming.answers import BatchQuestion, Explains

__all__ = ["digest", "model_digest", "question_digest", "setting_digests"]

# Fields of an explainer that are no part of the question: the model has a hash of its own, and
# prices are the cost, column by column. Every other one is, also one that is yet to come.
_NOT_ASKED = ("model", "prices")
# Marks fields of a model in which there stands what is asked: it is hashed with the question.
_ASKED = "asked"


def model_digest(explainer: Explains) -> str:
    """Hash what the model computes: prototypes, metric, what stands in front, what fills gaps."""
    source = explainer.prepared_for().source
    says = None if source.says is None else type(source.says).__qualname__
    # Levels are columns of their own in a model that is stated anew for those that are looked for.
    model = source.behind if source.behind and source.coordinates.has_levels else source.model
    parts = (model, source.rounding, source.fills, source.columns, says)
    return digest(parts)


def question_digest(question: BatchQuestion) -> str:
    """Hash what is asked: cost, constraints, confidence, columns, target, what is to be written."""
    return digest(setting_digests(question))


def setting_digests(question: BatchQuestion) -> dict[str, str]:
    """Hash one by one what is asked, so that two questions can be told to differ in it."""
    asked = _public_fields(question.explainer)
    for name in _NOT_ASKED:
        del asked[name]
    asked |= {
        "target": question.target,
        "columns given back": question.kept,
        "prefix": question.prefix,
        "bad rows": question.on_bad_rows,
        "schema of the source": str(question.schema.remove_metadata()),
    }
    return {name.replace("_", " "): digest(value) for name, value in asked.items()}


def digest(value: Any) -> str:
    """Hash a value by its contents: numbers by their bits, objects by what they are made of.

    Unlike a pickle it does not depend on which parts are the same object, nor on the order of
    sets and mappings.

    Examples
    --------
    >>> digest({"a": 1.0, "b": (2, None)}) == digest({"b": (2, None), "a": 1.0})
    True
    >>> digest(1.0) == digest(1), digest(1) == digest(True)
    (True, False)
    """
    return _hash(value, ()).hex()


def _hash(value: Any, above: tuple[int, ...]) -> bytes:
    if id(value) in above:  # an object that holds itself
        return sha256(b"above" + str(above.index(id(value))).encode()).digest()
    if _is_object(value):
        above = (*above, id(value))
    out = sha256()
    for part in _parts(value, above):
        out.update(struct.pack("<q", len(part)))
        out.update(part)
    return out.digest()


def _is_object(value: Any) -> bool:
    return not isinstance(value, str | bytes | int | float | Enum | type(None))


def _parts(value: Any, above: tuple[int, ...]) -> Iterator[bytes]:
    """Say what a value is, and what it is made of; a number is the same however it is held."""
    if isinstance(value, np.integer | np.floating):
        value = value.item()
    if type(value) is int and abs(value) <= 2**53:
        value = float(value)
    kind = type(value)
    yield f"{kind.__module__}.{kind.__qualname__}".encode()
    if isinstance(value, np.ndarray):
        yield from _array_parts(value, above)
    elif isinstance(value, Enum):
        yield _hash(value.value, above)
    elif isinstance(value, float):
        yield struct.pack("<d", value)
    elif isinstance(value, str | bytes):
        yield value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
    elif value is None or isinstance(value, int | np.generic | complex):
        yield repr(value).encode()
    elif isinstance(value, Mapping):
        pairs = ((_hash(k, above), _hash(v, above)) for k, v in value.items())
        yield from (part for pair in sorted(pairs) for part in pair)
    elif isinstance(value, Set):
        yield from sorted(_hash(item, above) for item in value)
    elif isinstance(value, tuple | list):
        yield from (_hash(item, above) for item in value)
    else:
        yield from _object_parts(value, above)


def _array_parts(value: np.ndarray[Any, Any], above: tuple[int, ...]) -> Iterator[bytes]:
    yield f"{value.dtype.str}{value.shape}".encode()
    if value.dtype == object:
        yield from (_hash(item, above) for item in value.ravel().tolist())
    else:
        yield np.ascontiguousarray(value).tobytes()


def _object_parts(value: Any, above: tuple[int, ...]) -> Iterator[bytes]:
    if is_dataclass(value) and not isinstance(value, type):
        yield _hash(_public_fields(value), above)
    elif isinstance(value, functools.partial):
        yield _hash((value.func, value.args, value.keywords), above)
    elif isinstance(value, MethodType):
        yield _hash((value.__func__, value.__self__), above)
    elif isinstance(value, FunctionType):
        cells = tuple(cell.cell_contents for cell in value.__closure__ or ())
        yield _hash((value.__qualname__, value.__code__, value.__defaults__, cells), above)
    elif isinstance(value, CodeType):
        types = [type(item).__name__ for item in value.co_consts]  # 1 and 1.0 compute otherwise
        yield _hash((value.co_code, value.co_consts, types, value.co_names), above)
    elif isinstance(value, type | BuiltinFunctionType):
        yield f"{value.__module__}.{value.__qualname__}".encode()
    else:
        slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
        held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        yield _hash({**held, **getattr(value, "__dict__", {})}, above)


def _public_fields(value: Any) -> dict[str, Any]:
    """Fields of a dataclass; those that begin with an underscore are prepared from the others."""
    names = [f.name for f in fields(value) if not f.metadata.get(_ASKED)]
    return {name: getattr(value, name) for name in names if name[0] != "_"}
