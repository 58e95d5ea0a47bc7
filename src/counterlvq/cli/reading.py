"""Tables and models from files or standard input."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import counterlvq as clvq
from counterlvq.cli.formulas import restored

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["STDIN", "Model", "needed", "read_model", "read_table"]

STDIN = "-"
Model = clvq.PrototypeModel | clvq.TableModel

_PARQUET = b"PAR1"


def read_model(path: str) -> Model:
    """Load a model file; `-` is standard input."""
    return clvq.load(sys.stdin.buffer if path == STDIN else path)


def read_table(path: str) -> pd.DataFrame:
    """Read a table in CSV or Parquet, told apart by how it begins; `-` is standard input."""
    name = "standard input" if path == STDIN else path
    whole = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    table: pd.DataFrame = _parquet(whole, name) if whole.startswith(_PARQUET) else _csv(whole, name)
    if table.shape[0] == 0 or table.shape[1] == 0:
        raise clvq.InvalidInputError(
            f"{name} has {table.shape[0]} rows and {table.shape[1]} columns; expected a line with "
            f"the names of the columns, and at least one row."
        )
    return table


def needed(library: str) -> Any:
    """Import what only the command line needs, or say how to get it."""
    try:
        return import_module(library)
    except ImportError:
        raise clvq.NotSupportedError(
            f"tables at the command line need {library}, which is not installed; install it with "
            f"pip install {library}."
        ) from None


def _csv(whole: bytes, name: str) -> Any:
    pandas = needed("pandas")
    damage = (pandas.errors.ParserError, pandas.errors.EmptyDataError, UnicodeDecodeError)
    try:
        return restored(pandas.read_csv(io.BytesIO(whole), encoding="utf-8-sig"))
    except damage as error:
        raise clvq.InvalidInputError(
            f"{name} cannot be read as CSV ({error}); expected UTF-8 text with commas between "
            f"columns and their names in the first line, or a Parquet file."
        ) from None


def _parquet(whole: bytes, name: str) -> Any:
    pandas, pyarrow = needed("pandas"), needed("pyarrow")
    try:
        return pandas.read_parquet(io.BytesIO(whole))
    except (pyarrow.ArrowException, OSError) as error:
        raise clvq.InvalidInputError(
            f"{name} cannot be read as Parquet ({error}); expected a whole file. Write it again."
        ) from None
