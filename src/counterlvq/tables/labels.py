"""Which labels a model may have, and which classes they make."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import (
    once,
    plain,
    read_only,
    refuse_masked,
    told,
)
from counterlvq.tables.values import is_missing

__all__ = ["checked_labels", "distinct_labels"]

# Python writes no whole number of more than 4,300 digits, and nobody reads one of a thousand.
_LABEL_BITS = 1 << 12


def checked_labels(labels: ArrayLike, count: int) -> NDArray[Any]:
    """Read one label per prototype, of at least two classes."""
    refuse_masked("labels", labels)
    try:
        array = np.array(labels)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"labels cannot be read as an array ({error}); expected one label per prototype."
        ) from None
    if array.shape != (count,):
        raise InvalidInputError(
            f"labels has shape {array.shape}; expected ({count},), one label per prototype."
        )
    if array.dtype.kind in "Mm" and np.isnat(array).any():
        k = int(np.isnat(array).argmax())
        raise InvalidInputError(f"labels[{k}] is NaT; expected a label for each prototype.")
    if array.dtype.kind in "fO":
        _refuse_unusable_labels(array.tolist())
    if len(distinct_labels(array)) < 2:
        raise InvalidInputError(
            f"every prototype carries the label {told(plain(array[0]))}; expected at least two "
            f"classes. With one class no decision can change."
        )
    return read_only(array)


def _refuse_unusable_labels(labels: list[Any]) -> None:
    for k, label in enumerate(labels):
        if not _hashes(label):
            raise InvalidInputError(
                f"labels[{k}] is {told(label)} of type {type(label).__name__}; expected labels "
                f"that hash, such as numbers or strings."
            )
        if isinstance(label, float) and np.isnan(label):
            raise InvalidInputError(f"labels[{k}] is NaN; expected a label for each prototype.")
        if label is not None and (is_missing(label) or label != label):  # noqa: PLR0124
            raise InvalidInputError(
                f"labels[{k}] is {told(label)}, which stands for none; expected a label for each "
                f"prototype."
            )
        if isinstance(label, int) and label.bit_length() > _LABEL_BITS:
            raise InvalidInputError(
                f"labels[{k}] is {told(label)}; expected labels that can be written out. Convert "
                f"them to text that is shorter."
            )


def _hashes(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:  # a tuple may hold a list
        return False
    return True


def distinct_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """List the classes: sorted, or objects in the order in which they first appear."""
    if labels.dtype != object:
        return np.unique(labels)
    seen = once(labels.tolist())
    out = np.empty(len(seen), dtype=object)
    out[:] = seen
    return out
