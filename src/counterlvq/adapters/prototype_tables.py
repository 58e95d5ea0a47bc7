"""Prototypes as any tool writes them down: one row each, with its label in a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters.angles import angle_model
from counterlvq.errors import InvalidInputError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, finite_matrix, told
from counterlvq.tables.features import Features
from counterlvq.tables.frames import as_frame, settled

__all__ = ["import_prototypes"]


def import_prototypes(
    table: Any,
    label: str,
    omegas: Any = None,
    drop: Sequence[str] = (),
    angles: bool = False,
) -> PrototypeModel:
    """Build a model from a table of prototypes.

    R's ``class::lvq*``, MATLAB and the appendix of a paper end in such a table.

    Parameters
    ----------
    table : DataFrame, Arrow table or mapping of columns
        One row per prototype: numbers, and a column with the labels.
    label : str
        The column with the labels.
    omegas : array-like, table, or sequence of these, optional
        Factor of the metric, ``distance = |omega (x - prototype)|^2``: one for all prototypes, or
        one for each of them, in their order. (r, d) with a column for each feature, in their
        order or, in a table, by name.
    drop : sequence of str
        Columns to leave out.
    angles : bool, default False
        Whether the smallest angle decides, and not the smallest distance.

    Returns
    -------
    PrototypeModel

    Examples
    --------
    >>> table = {"income": [1.0, 4.0], "debts": [3.0, 1.0], "granted": ["no", "yes"]}
    >>> import_prototypes(table, label="granted").predict([[4.0, 2.0]]).tolist()
    ['yes']
    """
    frame = as_frame(settled(table))
    if frame is None and isinstance(table, dict):
        columns = {str(name): np.asarray(values) for name, values in table.items()}
    elif frame is not None:
        columns = {name: np.asarray(frame.values(name)) for name in frame.names}
    else:
        raise InvalidInputError(
            f"table is a {type(table).__name__}; expected a DataFrame, an Arrow table or a mapping "
            f"of columns, with a row for each prototype."
        )
    known = Features(list(columns))
    for name in (label, *drop):
        known.position(name)  # says which names there are
    kept = [name for name in columns if name != label and name not in drop]
    if not kept:
        raise InvalidInputError(
            f"the table has no column beside {label!r}; expected one for each feature."
        )
    points = np.column_stack([_numbers(name, columns[name]) for name in kept])
    factors = _factors(omegas, kept)
    labels = columns[label]
    if angles:
        return angle_model(points, labels, factors, kept)
    return PrototypeModel(points, labels, factors, kept)


def _numbers(name: str, values: NDArray[Any]) -> Floats:
    try:
        return finite_matrix(f"column {name!r}", np.asarray(values, dtype=np.float64)[:, None])[
            :, 0
        ]
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            f"column {name!r} of the table holds {told(values[0])}; expected numbers. Leave a "
            f"column that is no feature out with `drop`."
        ) from None


def _factors(omegas: Any, names: list[str]) -> Any:
    if omegas is None:
        return None
    if isinstance(omegas, list | tuple) and omegas and _is_table(omegas[0]):
        read = [_matrix(part, names) for part in omegas]
        return read[0] if len(read) == 1 else read
    if _is_table(omegas):
        return _matrix(omegas, names)
    return omegas


def _is_table(part: Any) -> bool:
    return as_frame(part) is not None


def _matrix(table: Any, names: list[str]) -> Floats:
    """Read a factor whose columns have names, in the order of the features."""
    frame = as_frame(table)
    assert frame is not None
    if sorted(frame.names) != sorted(names):
        missing = [name for name in names if name not in frame.names]
        extra = [name for name in frame.names if name not in names]
        raise InvalidInputError(
            f"an omega has the columns {', '.join(map(repr, frame.names[:8]))}; expected those of "
            f"the prototypes (missing: {', '.join(map(repr, missing[:5])) or 'none'}, too many: "
            f"{', '.join(map(repr, extra[:5])) or 'none'})."
        )
    return np.column_stack([_numbers(name, np.asarray(frame.values(name))) for name in names])
