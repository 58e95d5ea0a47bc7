"""Linear algebra on numbers that may be too large for it.

LAPACK writes to standard error, and does not come back with an error in all versions, when it is
given numbers that are not finite. Whoever can do without a result asks here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats

__all__ = ["eigenvectors", "independent_rows", "least_squares", "singular_vectors"]


def independent_rows(A: Floats, share: float) -> NDArray[np.bool_]:
    """Say which rows are no sum of rows before them, but for a share of their length.

    Examples
    --------
    >>> import numpy as np
    >>> independent_rows(np.array([[1.0, 1.0], [0.0, 0.0], [2.0, 2.0], [0.0, 3.0]]), 1e-9)
    array([ True, False, False,  True])
    """
    kept, basis = np.zeros(len(A), dtype=bool), np.zeros((0, A.shape[1]))
    for n, row in enumerate(A):
        size = np.abs(row).max(initial=0.0)
        if not 0.0 < size < np.inf:
            continue
        rest = row / size
        for _ in range(2):  # once more, for what rounding has left
            rest = rest - (basis @ rest) @ basis
        length = float(np.sqrt(rest @ rest))
        if length > share:
            kept[n], basis = True, np.concatenate([basis, rest[None] / length])
    return kept


def least_squares(A: Floats, b: Floats, rcond: float | None) -> Floats | None:
    """Solve ``min |A x - b|``; None where the numbers are beyond that.

    Examples
    --------
    >>> import numpy as np
    >>> least_squares(np.array([[2.0]]), np.array([4.0]), None)
    array([2.])
    >>> least_squares(np.array([[np.inf]]), np.array([4.0]), None) is None
    True
    """
    if not (np.isfinite(A).all() and np.isfinite(b).all()):
        return None
    try:
        return np.asarray(np.linalg.lstsq(A, b, rcond=rcond)[0], dtype=np.float64)
    except np.linalg.LinAlgError:
        return None


def eigenvectors(Q: Floats) -> Floats | None:
    """Return eigenvectors of a symmetric matrix, one a column; None where numbers are beyond that.

    Examples
    --------
    >>> import numpy as np
    >>> abs(eigenvectors(np.diag([1.0, 2.0])))
    array([[1., 0.],
           [0., 1.]])
    """
    if not np.isfinite(Q).all():
        return None
    try:
        return np.asarray(np.linalg.eigh(Q)[1], dtype=np.float64)
    except np.linalg.LinAlgError:
        return None


def singular_vectors(A: Floats) -> tuple[Floats, Floats] | None:
    """Return singular values, and the directions that rows of A span; None as above.

    Examples
    --------
    >>> import numpy as np
    >>> values, directions = singular_vectors(np.array([[2.0, 0.0], [2.0, 0.0]]))
    >>> bool(values[1] < 1e-12), abs(directions[0])
    (True, array([1., 0.]))
    """
    if not np.isfinite(A).all():
        return None
    try:
        _, values, directions = np.linalg.svd(A, full_matrices=False)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(values, dtype=np.float64), np.asarray(directions, dtype=np.float64)
