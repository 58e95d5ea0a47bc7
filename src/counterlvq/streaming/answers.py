"""Answers for record batches: what goes in, what comes out, and the schema of it beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.batch.bad_rows import OnBadRows, checked_on_bad_rows
from counterlvq.batch.result import CounterfactualBatch
from counterlvq.batch.threads import workers
from counterlvq.batch.ways import BatchWay
from counterlvq.errors import InvalidInputError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, plain, told
from counterlvq.prepared import Prepared
from counterlvq.presentation.progress import Counts
from counterlvq.problem.confidence import Confidence
from counterlvq.problem.constraints import Constraint
from counterlvq.problem.costs import Cost
from counterlvq.streaming.arrow import arrow
from counterlvq.streaming.checks import checked_prefix, kept_columns, named_kind, refuse_no_list
from counterlvq.streaming.columns import AnswerColumn, label_array
from counterlvq.streaming.tally import Tally
from counterlvq.streaming.targets import ColumnTarget, RowWishes, one_wish, read_target, wishes_of
from counterlvq.tables.arrow_types import usual_columns
from counterlvq.tables.features import Features
from counterlvq.tables.reading import refuse_missing_columns
from counterlvq.tables.values import checked_names
from counterlvq.types import Method, Status

__all__ = ["ADDED", "Answered", "BatchQuestion", "Explains", "answer_batches"]

# What is said of each row, behind the columns that were given and those of the counterfactual.
ADDED = (
    "cost",
    "lower_bound",
    "gap",
    "status",
    "prediction",
    "original_prediction",
    "prototype",
    "changed",
    "reason",
)
_AFTER = "_after"


class Explains(Protocol):
    """What a stream asks of an explainer."""

    @property
    def model(self) -> PrototypeModel:
        """The model in the columns of the table."""

    @property
    def features(self) -> Features:
        """The columns that the model sees."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the model takes, whether it sees them or not."""

    @property
    def cost(self) -> Cost:
        """What a change costs."""

    @property
    def constraints(self) -> tuple[Constraint | str, ...]:
        """What answers have to meet."""

    @property
    def confidence(self) -> Confidence | None:
        """How sure the model has to be."""

    @property
    def margin(self) -> float | None:
        """By how much the wished-for label has to lead."""

    @property
    def method(self) -> Method:
        """How to search."""

    @property
    def time_limit(self) -> float | None:
        """Seconds for each row."""

    @property
    def gap(self) -> float:
        """The gap at which an answer counts as the closest."""

    def prepared_for(self, row: Floats | None = None) -> Prepared:
        """Everything that does not depend on a row."""

    def explain_batch(
        self,
        X: Any,
        target: Any = None,
        n_jobs: int | None = None,
        progress: Counts = False,
        on_bad_rows: str = "raise",
    ) -> CounterfactualBatch:
        """Answer many rows."""

    @property
    def batch_way(self) -> BatchWay:
        """How it does that."""


class Answered(NamedTuple):
    """A record batch of answers, and what is counted of its rows."""

    batch: Any  # pyarrow.RecordBatch
    tally: Tally


@final
@dataclass(frozen=True, eq=False)
class BatchQuestion:
    """What is asked of record batches of one schema; picklable, so that workers get it once."""

    explainer: Explains
    schema: Any  # pyarrow.Schema of what is given
    target: Any  # None, a label, a set of labels, or a ColumnTarget
    kept: tuple[str, ...]  # columns that are given back
    prefix: str
    on_bad_rows: OnBadRows
    n_jobs: int | None
    written: tuple[AnswerColumn, ...]  # one for each feature
    classes: Any  # pyarrow.Array of the labels

    @classmethod
    def of(
        cls,
        explainer: Explains,
        schema: Any,
        target: Any = None,
        *,
        columns: Sequence[str] | None = None,
        prefix: str = "",
        on_bad_rows: str = "report",
        n_jobs: int | None = None,
    ) -> BatchQuestion:
        """Check what is asked against the schema, before any row is read."""
        if not isinstance(schema, arrow().Schema):
            raise InvalidInputError(
                f"schema is {told(schema)}; expected a schema of pyarrow, such as that of a batch."
            )
        names = checked_names(schema.names)
        refuse_missing_columns(names, explainer.features)
        workers(n_jobs)
        question = cls(
            explainer,
            schema,
            read_target(target, schema, explainer.model),
            kept_columns(columns, names),
            checked_prefix(prefix),
            checked_on_bad_rows(on_bad_rows),
            n_jobs,
            tuple(AnswerColumn.of(f, schema.field(f.name).type) for f in explainer.features),
            label_array(explainer.model.classes.tolist()),
        )
        question._refuse_taken_names()
        return question

    def _refuse_taken_names(self) -> None:
        added = self._added_names()
        taken = sorted(set(added) & set(self.kept)) or _twice(added)
        if taken:
            raise InvalidInputError(
                f"the table has a column {told(taken[0])}, and so have the answers; expected "
                f"different names. Put something before those of the answers, such as "
                f"prefix='cf_' (--prefix cf_), or leave the column out with columns=[...]."
            )

    def _added_names(self) -> list[str]:
        after = [f"{self.prefix}{f.name}{_AFTER}" for f in self.explainer.features]
        return after + [f"{self.prefix}{name}" for name in ADDED]

    @property
    def output_schema(self) -> Any:
        """The schema of every batch of answers."""
        pa = arrow()
        label = self.classes.type
        told_types = [
            *[pa.float64()] * 3,
            pa.string(),
            label,
            label,
            pa.int64(),
            pa.list_(pa.string()),
            pa.string(),
        ]
        types = [column.type for column in self.written] + told_types
        fields = [self.schema.field(name) for name in self.kept]
        fields += map(pa.field, self._added_names(), types)
        return pa.schema(fields)

    def answer(
        self,
        batch: Any,
        problems: Mapping[int, str] | None = None,
        row_name: Callable[[int], str] = "row {}".format,
        count: Callable[[int], object] | None = None,
    ) -> Any:
        """Answer a record batch; see `answered`."""
        return self.answered(batch, problems, row_name, count).batch

    def answered(
        self,
        batch: Any,
        problems: Mapping[int, str] | None = None,
        row_name: Callable[[int], str] = "row {}".format,
        count: Callable[[int], object] | None = None,
    ) -> Answered:
        """Answer a record batch, and count how its rows ended.

        `problems` are rows of which it is known that they are bad; `row_name` says how the user
        knows a row of the batch. `count` is told of rows as they are answered, of all of them in
        the end.
        """
        if not batch.schema.equals(self.schema):
            batch = _as_stated(batch, self.schema)
        table = _Answers.blank(batch.num_rows, len(self.written))
        counted = _Counted(count)
        if batch.num_rows:
            self._fill(table, batch, dict(problems or {}), counted)
        if table.reasons and self.on_bad_rows is OnBadRows.RAISE:
            first = min(table.reasons)
            raise InvalidInputError(f"{row_name(first)}: {table.reasons[first]}")
        counted(batch.num_rows - counted.rows)
        written = self._written(table, batch)
        status, reason = (
            written.column(len(self.kept) + len(self.written) + ADDED.index(name))
            for name in ("status", "reason")
        )
        return Answered(written, Tally.of(status, reason, int(table.has_target.sum())))

    def _fill(
        self, table: _Answers, batch: Any, problems: dict[int, str], counted: _Counted
    ) -> None:
        pa, wish = arrow(), self.target
        labels: list[Any] | None = None
        if isinstance(wish, ColumnTarget):
            wishes: RowWishes = wishes_of(batch.column(wish.name), wish.name, self.explainer.model)
            labels = wishes.labels
            for i, words in wishes.problems.items():
                problems[i] = f"{problems[i]} {words}" if i in problems else words
        table.reasons.update(problems)
        taken = [name for name in self.explainer.columns if name in self.schema.names]
        seen = usual_columns(batch.select(taken))
        at = np.delete(np.arange(batch.num_rows), sorted(problems))
        if not at.size:
            return
        if problems:
            seen = seen.take(pa.array(at))
            labels = None if labels is None else [labels[i] for i in at.tolist()]
        given = pa.Table.from_batches([seen])
        found = self.explainer.explain_batch(
            given,
            wish if labels is None else labels,
            n_jobs=self.n_jobs,
            progress=counted,
            on_bad_rows=str(OnBadRows.REPORT),  # the first of them is told as it is known outside
        )
        table.take(found, at)

    def _written(self, table: _Answers, batch: Any) -> Any:
        pa = arrow()
        arrays = [batch.column(name) for name in self.kept]
        for j, column in enumerate(self.written):
            given = batch.column(column.feature.name)
            arrays.append(column.array(table.shown[:, j], table.before[:, j], given))
        answered = table.prototype >= 0
        index = self.explainer.model.class_index
        arrays += [
            pa.array(table.cost),
            pa.array(table.lower_bound),
            pa.array(table.gap),
            pa.array(table.status, pa.string()),
            *(
                self.classes.take(pa.array(index[at], mask=at < 0))
                for at in (table.prototype, table.original_prototype)
            ),
            pa.array(table.prototype, mask=~answered),
            self._changed(table, answered),
            _sparse_text(table.reasons, batch.num_rows),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.output_schema)

    def _changed(self, table: _Answers, answered: NDArray[np.bool_]) -> Any:
        """Names of the features that change, row by row."""
        pa = arrow()
        moved = (table.values != table.before) & answered[:, None]
        ends = np.concatenate([[0], np.cumsum(moved.sum(axis=1))]).astype(np.int32)
        names = pa.array([f.name for f in self.explainer.features], pa.string())
        listed = names.take(pa.array(np.nonzero(moved)[1]))
        return pa.ListArray.from_arrays(pa.array(ends), listed, mask=pa.array(~answered))


@final
class _Counted:
    """Rows that are answered, as they are told of; whoever waits for them is told too."""

    def __init__(self, tell: Callable[[int], object] | None) -> None:
        self.rows, self._tell = 0, tell

    def __call__(self, rows: int) -> None:
        self.rows += rows
        if rows and self._tell is not None:
            self._tell(rows)


@final
@dataclass(frozen=True, eq=False)
class _Answers:
    """Answers of all rows of a batch; invalid until something else is known."""

    values: Floats  # (n, d)
    shown: Floats  # with NaN where a value stays missing
    before: Floats
    cost: Floats
    lower_bound: Floats
    gap: Floats
    status: NDArray[np.str_]
    prototype: NDArray[np.int64]
    original_prototype: NDArray[np.int64]
    has_target: NDArray[np.bool_]
    reasons: dict[int, str]

    @classmethod
    def blank(cls, rows: int, width: int) -> _Answers:
        """Of each row nothing could be read."""
        nothing = np.full((rows, width), np.nan)
        longest = max(map(len, Status))
        return cls(
            nothing,
            nothing.copy(),
            nothing.copy(),
            np.full(rows, np.inf),
            np.zeros(rows),
            np.full(rows, np.inf),
            np.full(rows, str(Status.INVALID), dtype=f"<U{longest}"),
            np.full(rows, -1),
            np.full(rows, -1),
            np.zeros(rows, dtype=bool),
            {},
        )

    def take(self, found: CounterfactualBatch, at: NDArray[np.int64]) -> None:
        """Enter the answers of the listed rows."""
        self.values[at], self.shown[at] = found.values, found.values_with_gaps
        self.before[at] = found.original_values
        self.cost[at], self.lower_bound[at], self.gap[at] = found.cost, found.lower_bound, found.gap
        self.status[at] = found.status
        self.prototype[at], self.original_prototype[at] = found.prototype, found.original_prototype
        self.has_target[at] = found.has_target
        for k in np.flatnonzero(found.status == Status.INVALID).tolist():
            self.reasons[int(at[k])] = found.ask(k).reason


def answer_batches(
    explainer: Explains,
    batches: Iterable[Any],
    target: Any = None,
    *,
    target_column: str | None = None,
    schema: Any = None,
    columns: Sequence[str] | None = None,
    prefix: str = "",
    on_bad_rows: str = "report",
    n_jobs: int | None = None,
) -> Any:
    """Answer record batches as they come; see `Explainer.map_batches`."""
    pa, target = arrow(), one_wish(target, target_column)
    known = getattr(batches, "schema", None) if schema is None else schema
    if isinstance(batches, pa.RecordBatch | pa.Table):
        raise InvalidInputError(
            f"batches is a single {type(batches).__name__}; expected an iterable of record "
            f"batches. Write [batch], or table.to_batches()."
        )
    if not isinstance(batches, Iterable):
        raise InvalidInputError(
            f"batches is {named_kind(batches)}; expected an iterable of record batches of pyarrow, "
            f"such as dataset.to_batches()."
        )
    if hasattr(batches, "columns") and hasattr(batches, "shape"):  # it would iterate over names
        raise InvalidInputError(
            f"batches is {named_kind(batches)}; expected an iterable of record batches of pyarrow. "
            f"Use explain_batch for a table in memory."
        )
    refuse_no_list(columns)
    ahead = iter(_checked(batches))
    first: list[Any] = []
    if known is None:
        first = [*islice(ahead, 1)]
        known = first[0].schema if first else _schema_of_nothing(explainer, target, columns)
    question = BatchQuestion.of(
        explainer,
        known,
        target,
        columns=columns,
        prefix=prefix,
        on_bad_rows=on_bad_rows,
        n_jobs=n_jobs,
    )

    def answers() -> Iterable[Any]:
        before = 0
        for batch in chain(first, ahead):
            yield question.answer(batch, row_name=partial(_row_of_stream, before))
            before += batch.num_rows

    return pa.RecordBatchReader.from_batches(question.output_schema, answers())


def _row_of_stream(before: int, row: int) -> str:
    return f"row {before + row:,} of all batches, counted from 0"


def _checked(batches: Iterable[Any]) -> Iterable[Any]:
    for batch in batches:
        if not isinstance(batch, arrow().RecordBatch):
            raise InvalidInputError(
                f"batches holds {named_kind(batch)}; expected record batches of pyarrow."
            )
        yield batch


def _schema_of_nothing(explainer: Explains, target: Any, columns: Sequence[str] | None) -> Any:
    """Make the schema of a table of which nothing is known but that it has no rows.

    Engines hand out such partitions too. Columns that are asked for are taken to be there.
    """
    pa = arrow()
    types = {f.name: AnswerColumn.of(f, None).type for f in explainer.features}
    labels = [plain(label) for label in explainer.model.classes]
    wish = target.name if isinstance(target, ColumnTarget) else target
    asked = [wish] if isinstance(wish, str) and (wish is not target or wish not in labels) else []
    asked += columns or []
    return pa.schema({**dict.fromkeys(asked, pa.null()), **types})


def _as_stated(batch: Any, schema: Any) -> Any:
    """See a batch in the stated schema: what differs in metadata alone, or not at all."""
    pa = arrow()
    if batch.schema.names == schema.names and batch.schema.types == schema.types:
        return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
    for field in schema:
        found = batch.schema.field(field.name).type if field.name in batch.schema.names else None
        if found != field.type:
            came = "is not there" if found is None else f"is of type {found}"
            raise InvalidInputError(
                f"column {told(field.name)} of a batch {came}; expected {field.type}, as the "
                f"schema says. Cast the batches to one schema first."
            )
    return pa.RecordBatch.from_arrays(batch.select(schema.names).columns, schema=schema)


def _twice(names: Sequence[str]) -> list[str]:
    return [name for k, name in enumerate(names) if name in names[:k]]


def _sparse_text(texts: Mapping[int, str], count: int) -> Any:
    pa = arrow()
    if not texts:
        return pa.nulls(count, pa.string())
    return pa.array([texts.get(i) for i in range(count)], pa.string())
