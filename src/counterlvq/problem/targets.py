"""From what the user wishes for to the prototypes that carry it."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError, UnknownLabelError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import key_of, plain, told
from counterlvq.tables.values import is_missing

__all__ = ["RowTargets", "labels_of", "targets_per_row", "wished_prototypes"]

_SHOWN_ROWS = 5
_SHOWN_LABELS = 20
# Wishes that are what they look like: nothing has to be found out about a single one of these.
_PLAIN = (str, int, bool, float)


def wished_prototypes(model: PrototypeModel, target: Any, nearest: int) -> NDArray[np.bool_]:
    """Which prototypes carry a wished-for label, (p,).

    `target` is a label, several labels, or None for any but the label of `nearest`.
    """
    if target is None:
        return np.asarray(model.class_index != model.class_index[nearest])
    target_mask = np.zeros(model.n_prototypes, dtype=bool)
    for wish in _listed(target):
        target_mask |= model.class_index == _class_of(model, wish)
    return target_mask


def labels_of(model: PrototypeModel, target_mask: NDArray[np.bool_]) -> tuple[Any, ...]:
    """List the labels that the wished-for prototypes carry."""
    return tuple(plain(model.classes[c]) for c in np.unique(model.class_index[target_mask]))


class RowTargets(NamedTuple):
    """One wish per row: the distinct ones, and which of them each row has."""

    wishes: tuple[Any, ...]
    codes: NDArray[np.int64]  # (n,)

    def of(self, row: int) -> Any:
        """Return the wish of a row."""
        return self.wishes[self.codes[row]]


def targets_per_row(model: PrototypeModel, target: Any, n: int) -> RowTargets | None:
    """Labels wished for row by row, or None if one wish stands for all rows.

    A list, a tuple, an array or a column of n labels is one per row. A set of labels, like a
    single label, is wished for in every row.
    """
    if target is None or isinstance(target, str | bytes | set | frozenset):
        return None
    if type(target) is not list and np.ndim(target) == 0:
        return None
    if isinstance(target, np.ndarray):
        target = target.ravel()
    if len(target) != n:
        entries = "1 entry" if len(target) == 1 else f"{len(target)} entries"
        raise InvalidInputError(
            f"target has {entries} for {n} row{'s' * (n != 1)}; expected one label per row, one "
            f"label for all, or a set such as {{'a', 'b'}} for any of several labels."
        )
    found = _numbered(target)
    known = model.class_keys
    strangers = [k for k, wish in enumerate(found.wishes) if not _is_known(wish, known)]
    if strangers:
        bad = np.flatnonzero(np.isin(found.codes, strangers))
        rows = ", ".join(str(i) for i in bad[:_SHOWN_ROWS])
        more = ", ..." if bad.size > _SHOWN_ROWS else ""
        raise UnknownLabelError(
            f"target names {told(found.of(int(bad[0])))} in row {bad[0]}, which is no label of the "
            f"model; expected {_shown(model)}. {bad.size} row(s) in all: {rows}{more}."
        )
    return found


def _numbered(target: Any) -> RowTargets:
    """Give each distinct wish a number; arrays of one type without a step per row."""
    if isinstance(target, np.ndarray) and target.dtype != object:
        wishes, codes = np.unique(target, return_inverse=True)
        return RowTargets(tuple(plain(wish) for wish in wishes), codes.astype(np.int64))
    listed = [plain(wish) for wish in target]
    if len(listed) == 1 and type(listed[0]) in _PLAIN:
        return RowTargets((listed[0],), np.zeros(1, dtype=np.int64))
    keys = [wish if isinstance(wish, Hashable) else repr(wish) for wish in listed]
    first: dict[Any, int] = {}
    codes = np.array([first.setdefault(key, len(first)) for key in keys], dtype=np.int64)
    return RowTargets(tuple(first), codes)


def _is_known(wish: Any, known: frozenset[Hashable]) -> bool:
    try:
        return wish is None or key_of(wish) in known
    except TypeError:  # not hashable, so no label
        return False


def _listed(target: Any) -> list[Any]:
    if isinstance(target, np.ndarray):
        target = target.tolist()
    if isinstance(target, Collection) and not isinstance(target, str | bytes):
        wishes = [plain(wish) for wish in target]
        if not wishes:
            raise UnknownLabelError(
                "target is empty; expected a label, several labels, or None for any other class."
            )
        return wishes
    return [plain(target)]


def _class_of(model: PrototypeModel, wish: Any) -> int:
    for c, label in enumerate(model.classes):
        # What stands for no value, such as NA, is equal to nothing and says so by raising.
        if (wish is None or not is_missing(wish)) and wish == plain(label):
            return c
    raise UnknownLabelError(
        f"target {told(wish)} is no label of the model; expected {_shown(model)}."
    )


def _shown(model: PrototypeModel) -> str:
    shown = ", ".join(told(plain(label)) for label in model.classes[:_SHOWN_LABELS])
    return f"one of: {shown}" + (", ..." if len(model.classes) > _SHOWN_LABELS else "")
