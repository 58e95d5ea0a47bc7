"""Models that differ from row to row: one model, stated in the coordinates of many rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.restatement_error import Blur
from counterlvq.numeric.tolerances import SAFE

__all__ = ["RowModels"]


@final
@dataclass(frozen=True, eq=False)
class RowModels:
    """What rows need of models with shared metrics, each row of its own, all at once."""

    center: Floats  # (n, d)
    factor: Floats  # (n, r, d)
    anchors: Floats  # (n, p, r)
    offsets: Floats | None  # (n, p)
    blur: Blur | None

    @classmethod
    def of(cls, models: Sequence[PrototypeModel], at: NDArray[np.intp]) -> RowModels:
        """State the models of rows by position `at` (n,), all of one shape.

        Examples
        --------
        >>> first = PrototypeModel([[0.0], [3.0]], ["no", "yes"])
        >>> second = PrototypeModel([[1.0], [5.0]], ["no", "yes"])
        >>> both = RowModels.of([first, second], np.array([0, 1, 1]))
        >>> both.distances_of_checked(np.array([[1.0], [1.0], [2.0]]))
        array([[ 1.,  4.],
               [ 0., 16.],
               [ 1.,  9.]])
        """
        stacked = [np.stack([getattr(model, name) for model in models])[at] for name in _PARTS]
        offsets = [model.offsets for model in models if model.offsets is not None]
        center, factor, anchors = stacked
        blurs = [model.blur for model in models if model.blur is not None]
        blur = None
        if blurs:
            pairs = zip(blurs, models, strict=True)
            is_same = all(blur.factors[0] is model.shared_factor for blur, model in pairs)
            blur = Blur.of_rows(blurs, at, factor if is_same else None)
        return cls(center, factor, anchors, np.stack(offsets)[at] if offsets else None, blur)

    @staticmethod
    def shape_of(model: PrototypeModel) -> tuple[int | bool, ...]:
        """Tell models apart that cannot be stated at once."""
        return (*model.anchors.shape, model.offsets is None, model.blur is None)

    def distances_of_checked(self, rows: Floats) -> Floats:
        """Squared distance of each row to each prototype of its model, (n, p)."""
        images = np.matmul(self.factor, (rows - self.center)[:, :, None])[..., 0]
        away = images[:, None, :] - self.anchors
        return np.asarray(np.einsum("npr,npr->np", away, away))

    def lengths_within(self, reach: Floats) -> Floats:
        """Bound the lengths of changes within `reach` (n, d), (n, 1); see `vicinity`."""
        images = np.matmul(np.abs(self.factor), reach[:, :, None])[..., 0]
        return np.asarray(SAFE * np.linalg.norm(images, axis=1))[:, None]


_PARTS = ("center", "shared_factor", "anchors")
