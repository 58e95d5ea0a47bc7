"""PyArrow, imported when it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from counterlvq.errors import NotSupportedError

__all__ = ["arrow", "arrow_part"]


def arrow() -> Any:
    """Import pyarrow, or say how to get it."""
    return arrow_part("")


def arrow_part(name: str) -> Any:
    """Import a module of pyarrow, such as ``parquet``, or say how to get it."""
    try:
        return import_module(f"pyarrow.{name}" if name else "pyarrow")
    except ImportError:
        raise NotSupportedError(
            "record batches and datasets need pyarrow, which is not installed; install it with "
            "pip install pyarrow."
        ) from None
