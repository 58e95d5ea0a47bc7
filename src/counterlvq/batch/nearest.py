"""Nearest prototypes of many rows at once, each as the model says of the row by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.nearest_kernel import nearest_rows

__all__ = ["nearest_of_many"]

# Anchors that stay in the fast memory of a core while rows pass by. Beyond that it is the memory
# that takes the time, and prototypes are many.
_AT_HAND = 1 << 14
# Rows from which on a compiled pass is worth its call.
_MANY = 64


def nearest_of_many(model: PrototypeModel, rows: Floats) -> NDArray[np.intp]:
    """As `model.nearest_of_checked`, to which whatever rounding could decide is left.

    Examples
    --------
    >>> model = PrototypeModel([[0.0], [4.0]], ["no", "yes"])
    >>> rows = np.linspace(0.0, 4.0, 65)[:, None]
    >>> np.bincount(nearest_of_many(model, rows))
    array([33, 32])
    """
    known = _at_hand(model) if len(rows) >= _MANY else None
    if known is None:
        return model.nearest_of_checked(rows)
    X = np.require(rows, requirements=["C", "W"])  # read-only arrays would be compiled for anew
    nearest, clear = np.empty(len(rows), dtype=np.intp), np.empty(len(rows), dtype=bool)
    nearest_rows(X, *known, nearest, clear)
    if not clear.all():
        nearest[~clear] = model.nearest_of_checked(rows[~clear])
    return nearest


def _at_hand(model: PrototypeModel) -> tuple[Any, ...] | None:
    """Gather what the kernel has to know of a model; None of those that it is not made for."""
    p, d = model.prototypes.shape
    if p < 2 or p * d > _AT_HAND or model.is_local or model.is_refereed:
        return None
    center, lengths, factor, diagonal = np.zeros(0), np.zeros(0), np.zeros((0, 0)), np.zeros(0)
    anchors, off = model.prototypes, 0.0
    if model.omegas is not None:
        anchors, off = model.anchors, model.largest_anchor_error
        center, lengths = model.center.copy(), model.column_lengths.copy()
        if model.diagonal is None:
            factor = np.array(model.shared_factor, order="C")
        else:
            diagonal = model.diagonal.copy()
    return (
        center,
        factor,
        diagonal,
        lengths,
        np.array(anchors, order="C"),
        model.share_of_error,
        off,
    )
