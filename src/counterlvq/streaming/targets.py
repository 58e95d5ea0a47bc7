"""Targets of a stream: one wish for all rows, or a column that holds one for each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, final

from counterlvq.errors import InvalidInputError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import key_of, plain, told
from counterlvq.problem.targets import labels_of, wished_prototypes
from counterlvq.safe_text import shown_repr
from counterlvq.streaming.arrow import arrow
from counterlvq.tables.arrow_types import usual_column, usual_type
from counterlvq.tables.values import is_missing

__all__ = ["ColumnTarget", "RowWishes", "one_wish", "read_target", "wishes_of"]

_SHOWN_LABELS = 20


@final
@dataclass(frozen=True)
class ColumnTarget:
    """The name of a column that holds a label per row."""

    name: str


@final
@dataclass(frozen=True)
class RowWishes:
    """Labels wished for row by row, and rows whose wish is no label."""

    labels: list[Any]  # None for any other class
    problems: Mapping[int, str] = field(default_factory=dict)


def one_wish(target: Any, target_column: str | None) -> Any:
    """Read which of both is given: labels, or the column that holds them."""
    if target_column is None:
        return target
    if target is not None:
        raise InvalidInputError(
            f"target is {told(target)} and target_column is {told(target_column)}; expected one of "
            f"both."
        )
    return ColumnTarget(target_column)


def read_target(target: Any, schema: Any, model: PrototypeModel) -> Any:
    """Read what is wished for: None, a label, a set of labels, or a `ColumnTarget`.

    Parameters
    ----------
    target : label, collection of labels, name of a column, or None
    schema : pyarrow.Schema
        Of the table.
    model : PrototypeModel

    Raises
    ------
    InvalidInputError
        For what is neither a label nor a column, for what is both, and for columns of lists or
        other things that no label can be.
    """
    if target is None:
        return None
    if isinstance(target, ColumnTarget):
        if target.name not in schema.names:
            shown = ", ".join(map(told, schema.names[:_SHOWN_LABELS]))
            more = ", ..." if len(schema.names) > _SHOWN_LABELS else ""
            raise InvalidInputError(
                f"the target names the column {told(target.name)}, which the table has not; "
                f"expected one of: {shown}{more}."
            )
        _refuse_nested(target.name, schema.field(target.name).type)
        return target
    known = {key_of(label) for label in model.classes}
    if isinstance(target, str) and target in schema.names:
        if target in known:
            raise InvalidInputError(
                f"target is {told(target)}, which is a label of the model and a column of the "
                f"table; expected one of both. Write {{{target!r}}} for the label, or rename the "
                f"column."
            )
        _refuse_nested(target, schema.field(target).type)
        return ColumnTarget(target)
    wish = target
    if _is_several(target):
        if len(target) > len(model.classes):
            raise InvalidInputError(
                f"target holds {len(target):,} labels, and the model has {len(model.classes)}; "
                f"expected the labels that every row may get. For a label of its own for each row, "
                f"put them into a column and name that: target_column=."
            )
        try:
            wish = frozenset(plain(label) for label in target)
        except TypeError:
            raise InvalidInputError(
                f"target is {told(target)}, which holds something that can be no label; expected a "
                f"label, several of them, or the name of a column."
            ) from None
    # An unknown label is refused at once. However a wish is written, it is one value and has one
    # hash: the labels as the model has them, and one of them by itself.
    found = labels_of(model, wished_prototypes(model, wish, 0))
    return found[0] if len(found) == 1 else frozenset(found)


def _is_several(target: Any) -> bool:
    return isinstance(target, Collection) and not isinstance(target, str | bytes)


def _refuse_nested(name: str, dtype: Any) -> None:
    """Refuse a column in whose values Arrow cannot tell one from another."""
    pa = arrow()
    known = usual_type(dtype)
    known = known.value_type if pa.types.is_dictionary(known) else known
    try:
        pa.array([], known).dictionary_encode()
    except pa.ArrowException:
        raise InvalidInputError(
            f"target is the column {told(name)} of type {dtype}; expected a column of labels, such "
            f"as text, numbers or truth values."
        ) from None


def wishes_of(column: Any, name: str, model: PrototypeModel) -> RowWishes:
    """Read a column of Arrow that holds a label per row; what is no label is told of."""
    column = usual_column(column)
    encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    known = {key_of(label): plain(label) for label in model.classes}
    found: list[Any] = []
    words: list[str] = []
    for value in encoded.dictionary.to_pylist():
        is_gap = is_missing(value)
        is_known = is_gap or _key(value) in known
        found.append(None if is_gap or not is_known else known[_key(value)])
        words.append("" if is_known else _unknown_words(name, value, model))
    labels: list[Any] = []
    problems: dict[int, str] = {}
    for i, code in enumerate(encoded.indices.to_pylist()):
        labels.append(None if code is None else found[code])
        if code is not None and words[code]:
            problems[i] = words[code]
    return RowWishes(labels, problems)


def _key(value: Any) -> Any:
    try:
        return key_of(value)
    except TypeError:  # not hashable, so no label
        return None


def _unknown_words(name: str, value: Any, model: PrototypeModel) -> str:
    shown = ", ".join(shown_repr(plain(label)) for label in model.classes[:_SHOWN_LABELS])
    more = ", ..." if len(model.classes) > _SHOWN_LABELS else ""
    return (
        f"column {told(name)} wishes for {told(value)}, which is no label of the model; expected "
        f"one of: {shown}{more}."
    )
