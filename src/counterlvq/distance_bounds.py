"""How near and how far prototypes can be at any row in the vicinity of another."""

from __future__ import annotations

import numpy as np

from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import SAFE
from counterlvq.row_models import RowModels

__all__ = ["competing", "lengths_within", "score_limits"]


def lengths_within(model: PrototypeModel | RowModels, reach: Floats) -> Floats:
    """Bound ``|omega delta|`` of changes within `reach` (n, d), (n, p); (n, 1) if it is shared."""
    if isinstance(model, RowModels):
        return model.lengths_within(reach)
    if model.omegas is None:
        return np.asarray(SAFE * np.sqrt(np.einsum("ij,ij->i", reach, reach)))[:, None]
    if model.diagonal is not None:
        return np.asarray(SAFE * np.linalg.norm(reach * np.abs(model.diagonal), axis=1))[:, None]
    if not model.is_local:
        return np.asarray(SAFE * np.linalg.norm(reach @ model.factor_sizes.T, axis=1))[:, None]
    each = [np.linalg.norm(reach @ np.abs(F).T, axis=1) for F in model.factors]
    return np.asarray(SAFE * np.stack(each, axis=1))


def score_limits(
    model: PrototypeModel | RowModels, rows: Floats, reach: Floats, scores: Floats | None = None
) -> tuple[Floats, Floats]:
    """Least and largest scores at rows that differ by at most `reach` from these, (n, p) each.

    `scores` are those of the rows themselves, if they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from counterlvq import PrototypeModel
    >>> model = PrototypeModel([[0.0], [3.0]], ["no", "yes"])
    >>> least, most = score_limits(model, np.array([[1.0]]), np.array([[0.5]]))
    >>> least.round(2).tolist(), most.round(2).tolist()
    ([[0.25, 2.25]], [[2.25, 6.25]])
    """
    constant = 0.0 if model.offsets is None else model.offsets
    here = model.distances_of_checked(rows) if scores is None else scores
    away = np.sqrt(np.maximum(here - constant, 0.0))
    moved = lengths_within(model, reach)
    least = np.maximum(away / SAFE - moved, 0.0) ** 2
    return least + constant, SAFE * (away + moved) ** 2 + constant


def competing(
    model: PrototypeModel | RowModels,
    rows: Floats,
    reach: Floats,
    errors: Floats,
    scores: Floats | None = None,
) -> Floats:
    """Largest error of a prototype that may win at a row within `reach`, (n,).

    `errors` (n, p) bound how far the scores by which a winner is found are from those of the
    model. What is behind by more than that at every such row never wins, nor does anybody win who
    does not beat it, whatever its errors are. `scores` are those of the rows, if they are known.
    """
    least, most = score_limits(model, rows, reach, scores)
    competes = least - errors <= (most + errors).min(axis=1, keepdims=True)
    return np.asarray(np.where(competes, errors, 0.0).max(axis=1))
