"""Products of symmetric matrices that are written as vectors, in compiled code."""

from __future__ import annotations

import numpy as np

from counterlvq.numeric.jit import jit

__all__ = ["turned_both_ways", "warm_up"]


@jit
def turned_both_ways(X, W, out):
    """Fill `out` with the matrix of ``N -> (X N W + W N X) / 2`` on vectors of symmetric matrices.

    Vectors hold the upper triangle row by row, entries off the diagonal times the root of two.
    """
    n, first, root_two = X.shape[0], 0, np.sqrt(2.0)
    for i in range(n):
        for j in range(i, n):
            own = 0.25 if i == j else 0.25 * root_two
            second = 0
            for k in range(n):
                x_ik, x_jk, w_ik, w_jk = X[i, k], X[j, k], W[i, k], W[j, k]
                out[first, second] = own * 2.0 * (x_ik * w_jk + x_jk * w_ik)
                for m in range(1, n - k):
                    out[first, second + m] = (own * root_two) * (
                        x_ik * W[j, k + m]
                        + X[j, k + m] * w_ik
                        + X[i, k + m] * w_jk
                        + x_jk * W[i, k + m]
                    )
                second += n - k
            first += 1


def warm_up() -> None:
    """Load the compiled code: the first time after an installation it is compiled."""
    nothing = np.zeros((1, 1))
    turned_both_ways(nothing, nothing, np.zeros((1, 1)))
