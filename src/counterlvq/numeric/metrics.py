"""Which factors and offsets the metrics of a model may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import (
    Floats,
    finite_matrix,
    finite_vector,
    read_only,
)

__all__ = ["checked_offsets", "checked_omegas", "with_blank_row"]


def checked_omegas(
    omegas: ArrayLike | Sequence[ArrayLike] | None, count: int, width: int
) -> Floats | tuple[Floats, ...] | None:
    """Read the factor of a shared metric, or one per prototype, or the diagonal of a factor."""
    if omegas is None:
        return None
    if isinstance(omegas, np.ndarray) and omegas.ndim == 3:
        return _checked_stack(omegas, count, width)
    parts = list(omegas) if isinstance(omegas, Sequence) else None
    if parts is None or not parts or not _is_matrix(parts[0]):
        if _is_vector(omegas):
            return finite_vector("omegas", omegas, width)  # type: ignore[arg-type]
        return finite_matrix("omegas", omegas, width)  # type: ignore[arg-type]
    _check_count(len(parts), count)
    # A matrix that many prototypes share is looked at once, and shared here too.
    read: dict[int, Floats] = {}
    for k, part in enumerate(parts):
        if id(part) not in read:
            read[id(part)] = finite_matrix(f"omegas[{k}]", part, width)
    if all(np.array_equal(read[id(parts[0])], other) for other in read.values()):
        return read[id(parts[0])]
    return tuple(read[id(part)] for part in parts)


def _checked_stack(omegas: NDArray[Any], count: int, width: int) -> Floats | tuple[Floats, ...]:
    """As `checked_omegas`, for an array (p, r, d): as a whole, without a step per matrix."""
    _check_count(len(omegas), count)
    rank = omegas.shape[1]
    if rank == 0 or omegas.shape[2] != width:
        finite_matrix("omegas[0]", omegas[0], width)  # says what is wrong with its shape
    if omegas.dtype.kind == "f" and not np.isfinite(omegas).all():
        k = int(np.isfinite(omegas).all(axis=(1, 2)).argmin())
        finite_matrix(f"omegas[{k}]", omegas[k], width)  # says where
    matrix = finite_matrix("omegas", omegas.reshape(count * rank, width), width)
    stack = matrix.reshape(count, rank, width)
    return read_only(stack[0].copy()) if (stack == stack[0]).all() else tuple(stack)


def _check_count(found: int, count: int) -> None:
    if found != count:
        raise InvalidInputError(
            f"omegas holds {found} matrices; expected {count}, one per prototype, or a single "
            f"matrix shared by all. Repeat a matrix per class for each prototype of it."
        )


def with_blank_row(omega: Floats | None, width: int) -> Floats:
    """Add the direction in which prototypes have their offset and inputs do not move.

    Where features are seen one by one, it goes without saying.
    """
    if omega is None:
        return read_only(np.ones(width))
    return omega if omega.ndim == 1 else read_only(np.vstack([omega, np.zeros((1, width))]))


def checked_offsets(offsets: ArrayLike | None, count: int) -> Floats | None:
    """Read what is added to the squared distances of each prototype."""
    if offsets is None:
        return None
    values = finite_vector("offsets", offsets)
    if len(values) != count:
        raise InvalidInputError(
            f"offsets has {len(values)} values; expected {count}, one per prototype."
        )
    if values.min() < 0:
        k = int(values.argmin())
        raise InvalidInputError(
            f"offsets[{k}] is {values[k]:g}; expected numbers of at least 0. Add the same number "
            f"to all of them: only differences decide."
        )
    return values


def _is_matrix(part: ArrayLike) -> bool:
    try:
        return np.ndim(part) >= 2
    except ValueError:
        # Rows of unequal length: nested, and refused by name once it is read.
        return True


def _is_vector(omegas: Any) -> bool:
    try:
        return np.ndim(omegas) == 1 and len(omegas) > 0
    except ValueError:  # rows of unequal length
        return False
