"""Names of the columns, and the one way from a name or position to a column number."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import SupportsIndex, final

import numpy as np
from numpy.typing import ArrayLike

from counterlvq.arrays import Floats, finite_vector
from counterlvq.errors import InvalidInputError, UnknownFeatureError

__all__ = ["FeatureKey", "Features"]

FeatureKey = str | SupportsIndex


@final
@dataclass(frozen=True)
class Features:
    """The columns of the user's table, in order.

    Parameters
    ----------
    names : iterable of str
        One distinct name per column.

    Examples
    --------
    >>> features = Features(("age", "income"))
    >>> features.position("income"), features.position(0)
    (1, 0)
    """

    names: tuple[str, ...]

    def __init__(self, names: Iterable[str]) -> None:
        listed = tuple(names)
        for name in listed:
            if not isinstance(name, str):
                raise InvalidInputError(
                    f"feature_names holds {name!r} of type {type(name).__name__}; expected "
                    f"strings only. Convert column labels with str() first."
                )
        repeated = sorted({name for name in listed if listed.count(name) > 1})
        if repeated:
            raise InvalidInputError(
                f"feature_names repeats {repeated[0]!r}; expected one distinct name per feature."
            )
        object.__setattr__(self, "names", listed)

    @classmethod
    def numbered(cls, count: int) -> Features:
        """Name `count` columns x0, x1, ... as scikit-learn does."""
        return cls(f"x{j}" for j in range(count))

    def __len__(self) -> int:
        return len(self.names)

    def position(self, key: FeatureKey) -> int:
        """Turn a name or a position into a column number."""
        if isinstance(key, str):
            return self._position_of_name(key)
        try:
            position = operator.index(key)
        except TypeError:
            raise UnknownFeatureError(
                f"feature {key!r} has type {type(key).__name__}; expected a feature name or a "
                f"position (an integer)."
            ) from None
        if not -len(self) <= position < len(self):
            raise UnknownFeatureError(
                f"feature {position} does not exist; expected a position from 0 to "
                f"{len(self) - 1}, for {len(self)} features."
            )
        return position % len(self)

    def _position_of_name(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            pass
        close = difflib.get_close_matches(name, self.names, n=1)
        shown = ", ".join(self.names[:8]) + (", ..." if len(self) > 8 else "")
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UnknownFeatureError(
            f"feature {name!r} does not exist; expected one of: {shown}.{hint}"
        ) from None

    def vector(self, name: str, value: ArrayLike | Mapping[str, float]) -> Floats:
        """Read one row: an array in column order, or a mapping from name to value."""
        if isinstance(value, Mapping):
            for key in value:
                self.position(key)
            missing = [feature for feature in self.names if feature not in value]
            if missing:
                raise InvalidInputError(
                    f"{name} lacks the feature(s) {', '.join(map(repr, missing))}; expected a "
                    f"value for each of the {len(self)} features."
                )
            value = [value[feature] for feature in self.names]
        array = np.asarray(value)
        if array.ndim == 2 and array.shape[0] == 1:
            array = array[0]
        return finite_vector(name, array, len(self))
