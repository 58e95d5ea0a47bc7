"""PyArrow, imported when it is needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from counterlvq.errors import CounterlvqError, InvalidInputError, NotSupportedError

__all__ = ["arrow", "arrow_part", "foreign_errors"]

_LONGEST = 300


def arrow() -> Any:
    """Import pyarrow, or say how to get it."""
    return arrow_part("")


def arrow_part(name: str) -> Any:
    """Import a module of pyarrow, such as ``parquet``, or say how to get it."""
    try:
        return import_module(f"pyarrow.{name}" if name else "pyarrow")
    except ModuleNotFoundError:
        raise NotSupportedError(
            "record batches and datasets need pyarrow, which is not installed; install it with "
            "pip install pyarrow."
        ) from None
    except ImportError as error:
        raise NotSupportedError(
            f"record batches and datasets need pyarrow, which cannot be imported here ({error}); "
            f"look whether there is enough memory, or install it again."
        ) from error


@contextmanager
def foreign_errors(name: str, kind: str, expected: str) -> Iterator[None]:
    """Make one error of ours of whatever a library raises about a file, here and nowhere else.

    Errors of the system, which say by themselves what they are about, stay as they are.

    Examples
    --------
    >>> with foreign_errors("'t.parquet'", "Parquet", "a whole file"):
    ...     raise ValueError("Corrupt snappy data")
    Traceback (most recent call last):
    ...
    counterlvq.errors.InvalidInputError: 't.parquet' cannot be read as Parquet (ValueError: Corrupt
    snappy data); expected a whole file.
    """
    try:
        yield
    except CounterlvqError:
        raise
    except MemoryError:
        raise InvalidInputError(
            f"{name} needs more memory than there is; expected rows that fit into it a few "
            f"thousand at a time. Write it with smaller values, or leave columns out."
        ) from None
    except Exception as error:  # readers of tables do not say what they raise
        if isinstance(error, OSError) and error.errno is not None:
            raise
        words = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST]
        raise InvalidInputError(
            f"{name} cannot be read as {kind} ({words}); expected {expected}."
        ) from None
