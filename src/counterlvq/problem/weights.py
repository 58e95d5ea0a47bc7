"""Weights that make features of different units comparable, from how much each one varies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import Floats, finite_vector, has_names, read_only, told
from counterlvq.tables.features import Features
from counterlvq.tables.frames import as_frame, numbers_or_days, settled
from counterlvq.tables.reference import LEVEL_WEIGHT, typical_deviation
from counterlvq.tables.values import is_missing, matrix_with_gaps, warn_of_gaps
from counterlvq.tables.views import FrameView
from counterlvq.types import Kind

__all__ = [
    "Weights",
    "checked_weights",
    "in_order",
    "is_positive",
    "mad_weights",
    "shown_weights",
    "with_names",
]

# Weights in the order of the features, (d,), or by name.
Weights = Floats | Mapping[str, float]


def mad_weights(X: ArrayLike, constant: float | None = None) -> Floats:
    """Weights for `Manhattan`: one over the median absolute deviation of each feature.

    A change then counts in units of how much the feature usually varies, so that euros and
    years can be compared.

    Where more than half of the values are equal (a pool area that is mostly 0), the median
    absolute deviation is 0 and its inverse is of no use. Such a feature takes the standard
    deviation instead, as the shell does, and the range where floats cannot hold that. A feature
    that never varies has no natural unit: it gets the weight `constant` if that is given, else
    an error.

    Missing values are passed over, column by column; a warning says how many.

    Parameters
    ----------
    X : array-like of shape (n, d), or DataFrame
        Typically the training rows. Columns of a frame that are no numbers get the weight 2:
        another level costs as much as a number that goes from the lower quarter of its column to
        the upper one, where both halves spread alike.
    constant : float, optional
        Positive weight of features that never vary.

    Returns
    -------
    ndarray of shape (d,)

    Examples
    --------
    >>> mad_weights([[1.0, 0.0], [2.0, 10.0], [3.0, 40.0]])
    array([1. , 0.1])
    """
    frame = as_frame(settled(X))
    if frame is not None:
        weights, counts = _frame_weights(frame, constant)
        warn_of_gaps("mad_weights", counts, len(frame))
        return weights
    rows = matrix_with_gaps("X", X)
    called = [f"column {j} of X" for j in range(rows.shape[1])]
    gaps = dict(zip(called, np.isnan(rows).sum(axis=0).tolist(), strict=True))
    warn_of_gaps("mad_weights", gaps, len(rows))
    return read_only(_weights(rows, called, constant))


def _weights(rows: Floats, called: Sequence[str], constant: float | None) -> Floats:
    if constant is not None and not is_positive(constant):
        raise InvalidInputError(f"constant is {constant!r}; expected a positive weight or None.")
    gaps = np.isnan(rows)
    unit = np.array([typical_deviation(rows[~gaps[:, j], j]) for j in range(rows.shape[1])])
    still = np.flatnonzero(unit == 0)
    if still.size and constant is None:
        first = rows[~gaps[:, still[0]], still[0]]
        value = f"is {first[0]:g} in every row" if first.size else "has no value"
        raise InvalidInputError(
            f"{called[still[0]]} {value} ({still.size} such column(s) in all), so it has no "
            f"deviation to weigh by; expected features that vary. Freeze or drop it, or "
            f"pass constant=1.0 to give it a weight of its own."
        )
    weights = np.full(unit.shape, 1.0 if constant is None else float(constant))
    np.divide(1.0, unit, out=weights, where=unit > 0)
    return weights


def _frame_weights(frame: FrameView, constant: float | None) -> tuple[Floats, dict[str, int]]:
    """Weights of the columns of a frame, and how many values each lacks."""
    weights = np.full(len(frame.names), LEVEL_WEIGHT)
    numeric = [frame.kind(name) in (Kind.REAL, Kind.WHOLE, Kind.DATE) for name in frame.names]
    columns = {
        name: _column(frame, name)
        for name, is_number in zip(frame.names, numeric, strict=True)
        if is_number
    }
    if columns:
        called = [f"column {name!r}" for name in columns]
        weights[numeric] = _weights(np.stack([*columns.values()], axis=1), called, constant)
    gaps = {
        f"column {name!r}": int(np.isnan(columns[name]).sum())
        if name in columns
        else sum(map(is_missing, frame.values(name)))
        for name in frame.names
    }
    return read_only(weights), gaps


def _column(frame: FrameView, name: str) -> Floats:
    """Read a column of numbers; NaN where values are missing, and nowhere else."""
    numbers = numbers_or_days(frame, name, frame.kind(name))
    bad = np.flatnonzero(~np.isfinite(numbers))
    cells = frame.values(name) if bad.size else []
    for i in map(int, bad):
        if not is_missing(cells[i]):
            raise InvalidInputError(
                f"column {name!r}, {frame.row(i)} is {cells[i]!r}; expected a finite number in "
                f"each row that has one. Fill in or remove such rows first."
            )
    return numbers


def is_positive(value: object) -> bool:
    """Whether a weight or a price is a finite number above 0."""
    return isinstance(value, Real) and 0 < float(value) < np.inf


def with_names(called: str, given: Any) -> Any:
    """Turn a pandas Series whose entries have names into a mapping; return all else as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> with_names("weights", pd.Series({"income": 2.0, "age": 1.0}))
    {'income': 2.0, 'age': 1.0}
    """
    kind = type(given)
    if not hasattr(kind, "iloc") or hasattr(kind, "columns") or not has_names(given):
        return given
    names = list(given.index)
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise InvalidInputError(
            f"{called} names {told(twice[0])} twice; expected one number for each feature."
        )
    return dict(zip(names, given.tolist(), strict=True))


def checked_weights(called: str, given: ArrayLike | Mapping[str, float] | None) -> Weights | None:
    """Check weights in the order of the features, or by name."""
    given = with_names(called, given)
    if given is None:
        return None
    if isinstance(given, Mapping):
        return _checked_by_name(called, given)
    if isinstance(given, Real):
        raise InvalidInputError(
            f"{called} is {told(given)}; expected a price for each feature, as a list in the order "
            f"of the columns or by name, such as {called}={{'income': 2}}."
        )
    checked = finite_vector(called, given)
    if not (checked > 0).all():
        j = int((checked <= 0).argmax())
        raise InvalidInputError(
            f"{called}[{j}] is {checked[j]:g}; expected a positive weight for each feature. "
            f"Use Freeze to keep a feature as it is; a free feature would make any "
            f"change of it cost nothing."
        )
    return checked


def _checked_by_name(called: str, weights: Mapping[str, float]) -> Mapping[str, float]:
    for name, weight in weights.items():
        if not isinstance(name, str):
            raise InvalidInputError(
                f"{called} has the key {name!r} of type {type(name).__name__}; expected names of "
                f"features. Weights by position are an array."
            )
        if not is_positive(weight):
            raise InvalidInputError(
                f"{called}[{name!r}] is {weight!r}; expected a positive weight. Use Freeze to keep "
                f"a feature as it is."
            )
    return {name: float(weight) for name, weight in weights.items()}


def in_order(weights: Weights | None, names: Features, base: Floats) -> Floats:
    """Weights in the order of the columns; those of `base` for columns without a name."""
    if not isinstance(weights, Mapping):
        return base if weights is None else weights
    out = np.array(base)
    for name, weight in weights.items():
        out[names.position(name)] = weight
    return out


def shown_weights(weights: Weights) -> str:
    """Write weights as they were given."""
    return str(weights.tolist() if isinstance(weights, np.ndarray) else weights)
