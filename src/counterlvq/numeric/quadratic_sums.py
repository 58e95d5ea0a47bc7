"""Values of quadratic forms to twice the digits of a float, compiled, for many rows.

Each function returns for every row a sum in two floats and a bound on its error, which the
caller uses to see whether rounding the sum is settled. A row is summed by itself, in one order.
"""

from __future__ import annotations

from counterlvq.numeric.jit import jit_unless_small, part
from counterlvq.numeric.tolerances import DOUBLED_UNIT, PRODUCT_UNDERFLOW, SPLITTER

__all__ = ["diagonal_sums", "factor_sums", "matrix_sums", "split_product", "split_sum"]


@part
def split_sum(a, b):
    """Sum and its rounding error, exactly."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


@part
def split_product(a, b):
    """Product and its rounding error, exactly unless it over- or underflows."""
    product = a * b
    spread_a, spread_b = SPLITTER * a, SPLITTER * b
    high_a, high_b = spread_a - (spread_a - a), spread_b - (spread_b - b)
    low_a, low_b = a - high_a, b - high_b
    rest = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return product, rest


@part
def _added(high, low, more, less):
    """Add two numbers of two floats each."""
    total, rest = split_sum(high, more)
    rest += low + less
    return split_sum(total, rest)


@part
def _dot(row, change):
    """``row @ change`` in two floats, and the sum of its absolute terms."""
    high, low, size = 0.0, 0.0, 0.0
    for j in range(change.size):
        if row[j] != 0.0:
            product, rest = split_product(row[j], change[j])
            high, low = _added(high, low, product, rest)
            size += abs(product)
    return high, low, size


def _steps(form, changes, *others):
    # Each product is split in two.
    return 20 * changes.shape[0] * form.size


@jit_unless_small(_steps)
def matrix_sums(matrix, changes, high, low, error):
    """Compute ``change' matrix change`` of each row into `high` + `low`; all scaled to 1."""
    d = matrix.shape[0]
    for n in range(changes.shape[0]):
        change, most = changes[n], 0.0
        high[n], low[n] = 0.0, 0.0
        for i in range(d):
            if change[i] == 0.0:
                continue
            upper, lower, size = _dot(matrix[i], change)
            product, rest = split_product(change[i], upper)
            high[n], low[n] = _added(high[n], low[n], product, rest + change[i] * lower)
            most += abs(change[i]) * size
        error[n] = 1.01 * (d + 4) * DOUBLED_UNIT * most + (d + 4) ** 2 * PRODUCT_UNDERFLOW


@jit_unless_small(_steps)
def factor_sums(factor, changes, high, low, error):
    """Compute ``|factor change|^2`` of each row into `high` + `low`; all scaled to 1."""
    r, d = factor.shape
    for n in range(changes.shape[0]):
        off = 0.0
        high[n], low[n] = 0.0, 0.0
        for k in range(r):
            upper, lower, size = _dot(factor[k], changes[n])
            product, rest = split_product(upper, upper)
            high[n], low[n] = _added(high[n], low[n], product, rest + 2.0 * upper * lower)
            miss = (d + 4) * DOUBLED_UNIT * size + (d + 4) * PRODUCT_UNDERFLOW
            # What lifted and squared terms are off by, and the square of the lower part.
            off += 2.0 * abs(upper) * miss + miss * miss + lower * lower
        error[n] = 1.01 * (off + (r + 4) * (DOUBLED_UNIT * high[n] + PRODUCT_UNDERFLOW))


@jit_unless_small(_steps)
def diagonal_sums(diagonal, changes, high, low, error):
    """Compute ``sum diagonal change^2`` of each row into `high` + `low`; all scaled to 1."""
    d = diagonal.size
    for n in range(changes.shape[0]):
        high[n], low[n] = 0.0, 0.0
        for j in range(d):
            upper, lower = split_product(changes[n, j], changes[n, j])
            product, rest = split_product(diagonal[j], upper)
            high[n], low[n] = _added(high[n], low[n], product, rest + diagonal[j] * lower)
        error[n] = 1.01 * (d + 4) * (DOUBLED_UNIT * high[n] + PRODUCT_UNDERFLOW)
