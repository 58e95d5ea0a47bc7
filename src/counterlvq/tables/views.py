"""What every table can be asked: named columns of values, and with dtypes what they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.tables.values import checked_names, distinct
from counterlvq.types import Kind

__all__ = ["FrameView", "TableView"]


class TableView(ABC):
    """Named columns of values."""

    names: tuple[str, ...]
    is_named: ClassVar[bool] = True  # whether the names are the user's own

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def numbers(self, name: str) -> Floats:
        """Read a column of numbers; NaN where something else or nothing stands."""

    @abstractmethod
    def values(self, name: str) -> list[Any]:
        """List the values of a column, missing ones as None or NaN."""

    def times(self, name: str) -> NDArray[np.datetime64] | None:
        """Read a column whose dtype is one of times without a zone; None for any other."""
        return None

    @abstractmethod
    def with_columns(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        """Return the table as it came, with columns replaced but their types kept.

        Columns of numbers are arrays of floats or integers, all others arrays of objects; None
        or NaN leaves a gap.
        """

    @abstractmethod
    def taking(self, rows: NDArray[np.int64]) -> Self:
        """See the listed rows alone."""

    def _changed(self, **parts: Any) -> Self:
        """See other contents in the same way."""
        other = copy(self)
        vars(other).update(parts)
        return other

    def row(self, i: int) -> str:
        """Name a row as the user knows it."""
        return f"row {i}"


class FrameView(TableView):
    """A DataFrame, whose dtypes say what the columns are."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.names = checked_names(frame.columns)

    def __len__(self) -> int:
        return int(self.frame.shape[0])

    @abstractmethod
    def kind(self, name: str) -> Kind | None:
        """Say what the dtype of a column stands for; None for times and other things."""

    @abstractmethod
    def dtype(self, name: str) -> str:
        """Name the dtype of a column."""

    @abstractmethod
    def beside(self, columns: Mapping[str, Any]) -> Any:
        """Make a frame of the same library, and with the same index, of other columns."""

    @abstractmethod
    def declared_levels(self, name: str) -> list[Any] | None:
        """List the levels that a dtype carries, None where it carries none."""

    def declared_decimals(self, name: str) -> int | None:
        """Say how many decimals a dtype has; None for floats and what is no number."""
        return None

    def levels(self, name: str) -> list[Any]:
        """List what a column may hold: the levels of its dtype, else its distinct values."""
        declared = self.declared_levels(name)
        return distinct(self.values(name)) if declared is None else declared
