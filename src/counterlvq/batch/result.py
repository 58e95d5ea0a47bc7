"""Answers for many inputs, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from typing import Any, final, overload

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.markup.parts import Fact
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import COUNTED_CHANGE
from counterlvq.presentation.batch_card import batch_card
from counterlvq.presentation.numbers import cost_text, gap_text, rough_text
from counterlvq.presentation.responses import Respond
from counterlvq.presentation.values import answer_columns, difference, holdable
from counterlvq.results import Counterfactual, RowCheck
from counterlvq.safe_text import shown_text
from counterlvq.tables.features import Features
from counterlvq.tables.frames import new_frame
from counterlvq.tables.views import FrameView, TableView
from counterlvq.types import Status

__all__ = ["BatchSummary", "CounterfactualBatch", "FeatureUse", "GivenTable"]

_SHOWN_FEATURES = 10
# Smaller percentages are said to be below it, and larger ones above what is left of 100.
_LEAST_PERCENT = 0.1


@final
@dataclass(frozen=True, eq=False)
class GivenTable:
    """The table that a batch was asked for, to write answers into tables like it."""

    table: TableView | None  # None for an array of numbers
    fill: Callable[[TableView, Floats], Any]  # puts rows of numbers into a table of as many rows

    def holding(self, rows: NDArray[np.int64], values: Floats) -> Any:
        """Write values into the listed rows of the table."""
        return values if self.table is None else self.fill(self.table.taking(rows), values)

    @property
    def named(self) -> TableView | None:
        """The table, if its columns have names."""
        return self.table if self.table is not None and self.table.is_named else None

    def new(self, rows: NDArray[np.int64], columns: dict[str, Any]) -> Any:
        """Make a frame of other columns for the listed rows, in the library of the table."""
        if isinstance(self.table, FrameView):
            return self.table.taking(rows).beside(columns)
        made = new_frame(columns)
        return made.set_index(rows) if hasattr(made, "set_index") else made


@final
@dataclass(frozen=True, eq=False, repr=False)
class CounterfactualBatch:
    """The answers to many questions, row by row.

    Indexing with a number gives the `Counterfactual` of that row, with its certificate and,
    if there is no answer, its conflict; with a slice, a mask or positions, a smaller batch.

    Attributes
    ----------
    X : table of n rows
        Counterfactuals, as the inputs were given: a frame of the same kind with types and other
        columns kept, or an array of shape (n, d); NaN or a gap where there is none.
    values, original_values : ndarray of shape (n, d)
        Counterfactuals and inputs as numbers, levels by their positions.
    cost, lower_bound, gap, resolution : ndarray of shape (n,)
        As in `Counterfactual`.
    status : ndarray of str, shape (n,)
        One of "optimal", "feasible", "infeasible", "unknown", "invalid".
    missing : ndarray of bool, shape (n, d)
        Where an input has no value and something stands in for it, as in `Counterfactual`.
    prototype : ndarray of int, shape (n,)
        Nearest prototype of each counterfactual; -1 without an answer.
    prediction, original_prediction : ndarray of shape (n,)
        Labels of counterfactuals (None without an answer) and inputs (None for invalid ones).
    second_engine : ndarray of bool, shape (n,)
        Rows whose first answer did not stand up, or that the kernels cannot take: they were
        solved by HiGHS or Clarabel.
    has_target : ndarray of bool, shape (n,)
        Rows that the model gives a wished-for label as they are.
    breaks_rules : ndarray of bool, shape (n,)
        Rows that break the constraints, or the ranges of features, as they are; `broken` of the
        answer of a row says which.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"])
    >>> batch = clvq.Explainer(model).explain_batch([[1.0, 0.0], [0.0, 5.0], [3.0, 0.0]])
    >>> batch.cost
    array([1., 2., 1.])
    >>> batch.prediction.tolist()
    ['yes', 'yes', 'no']
    >>> batch[1].changes
    (Change(feature='x0', before=0.0, after=2.0...),)
    """

    values: Floats
    original_values: Floats
    cost: Floats
    lower_bound: Floats
    gap: Floats
    resolution: Floats
    status: NDArray[np.str_]
    prototype: NDArray[np.int64]
    original_prototype: NDArray[np.int64]
    second_engine: NDArray[np.bool_]
    labels: NDArray[Any]  # of all prototypes
    features: Features
    rows: NDArray[np.int64]  # positions in the batch that was asked for
    has_target: NDArray[np.bool_]
    breaks_rules: NDArray[np.bool_]
    ask: Callable[[int], Counterfactual] = field(compare=False)
    given: GivenTable = field(compare=False)
    check: RowCheck | None = field(default=None, compare=False)
    certify: Callable[..., None] | None = field(default=None, compare=False)
    respond: Respond | None = field(default=None, compare=False)
    gaps: NDArray[np.bool_] | None = None  # `missing`; None where nothing is

    def __post_init__(self) -> None:
        for part in vars(self).values():
            if type(part) is np.ndarray:
                part.setflags(write=False)

    def __len__(self) -> int:
        return int(self.cost.shape[0])

    def __iter__(self) -> Iterator[Counterfactual]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Counterfactual: ...
    @overload
    def __getitem__(
        self, index: slice | NDArray[Any] | list[int] | list[bool]
    ) -> CounterfactualBatch: ...
    def __getitem__(
        self, index: int | slice | NDArray[Any] | list[int] | list[bool]
    ) -> Counterfactual | CounterfactualBatch:
        if isinstance(index, int | np.integer):
            return self._one(int(self.rows[index]))
        at = index if isinstance(index, slice) else np.asarray(index)
        return CounterfactualBatch(
            self.values[at],
            self.original_values[at],
            self.cost[at],
            self.lower_bound[at],
            self.gap[at],
            self.resolution[at],
            self.status[at],
            self.prototype[at],
            self.original_prototype[at],
            self.second_engine[at],
            self.labels,
            self.features,
            self.rows[at],
            self.has_target[at],
            self.breaks_rules[at],
            self.ask,
            self.given,
            self.check,
            self.certify,
            self.respond,
            None if self.gaps is None else self.gaps[at],
        )

    def _one(self, row: int) -> Counterfactual:
        """Answer of one row; of a table with names, with a row of the same kind."""
        answer = replace(self.ask(row), check=self.check, respond=self.respond)
        if self.given.named is None:
            return answer
        fill = partial(self._held, row)
        return replace(answer, find_row=partial(fill, answer.values_with_gaps), fill=fill)

    def _held(self, row: int, values: Floats) -> Any:
        held = self.given.holding(np.array([row]), values[None, :])
        return held[0] if isinstance(held, list) else held

    def sketch(self, index: int) -> Counterfactual:
        """Answer of one row without its proof, as it was found: nothing is searched anew.

        For texts and tables about many rows. Rows that break constraints, and such without an
        answer, come as by ``batch[index]``, which says why.
        """
        status = Status(self.status[index])
        outline = getattr(self.ask, "outline", None)
        is_plain = status.has_answer and not self.breaks_rules[index] and self.gaps is None
        if outline is None or not is_plain or self.given.named is None:
            return self[index]
        row = int(self.rows[index])
        answer: Counterfactual | None = outline(
            row,
            values=self.values[index],
            original_values=self.original_values[index],
            status=status,
            cost=float(self.cost[index]),
            lower_bound=float(self.lower_bound[index]),
            gap=float(self.gap[index]),
            resolution=float(self.resolution[index]),
            prototype=int(self.prototype[index]),
            nearest=int(self.original_prototype[index]),
        )
        if answer is None:
            return self[index]
        fill = partial(self._held, row)
        held = partial(fill, answer.values_with_gaps)
        return replace(answer, check=self.check, respond=self.respond, find_row=held, fill=fill)

    def save_certificates(
        self, path: str | PathLike[str], *, model_apart: bool | str | PathLike[str] = False
    ) -> None:
        """Write all answers and their proofs to a file that others can check.

        As `counterlvq.save_certificate`, which says what is in it.

        Parameters
        ----------
        path : str or path
            Where to write; the file appears whole or not at all.
        model_apart : bool or path, default False
            Write the model to a file of its own.
        """
        if self.certify is None:
            raise InvalidInputError(
                "this batch does not know its explainer; expected one that `explain_batch` "
                "returned. Ask again, or save single answers with save_certificate."
            )
        self.certify(iter(self), path, model_apart=model_apart)

    def save_vipr(self, folder: str | PathLike[str]) -> None:
        """Write the proofs in the format of VIPR, which `viprchk` checks.

        For absolute costs under shared metrics, without or with whole numbers; see
        `docs/certificates.md`. An existing folder is refused.

        Parameters
        ----------
        folder : str or path
            Made anew: one file for each row and target prototype, and an index.
        """
        if self.certify is None:
            raise InvalidInputError(
                "this batch does not know its explainer; expected one that `explain_batch` "
                "returned."
            )
        self.certify(iter(self), folder, vipr=True)

    @cached_property
    def X(self) -> Any:  # noqa: N802 - as everywhere, a table of inputs is an X
        """Counterfactuals as the inputs were given; a gap or NaN where there is none."""
        return self.given.holding(self.rows, self.values_with_gaps)

    @property
    def original(self) -> Any:
        """The inputs as they were given."""
        if self.given.table is not None and (self.status == Status.INVALID).any():
            return self.given.table.taking(self.rows).with_columns({})
        return self.given.holding(self.rows, _emptied(self.original_values, self.gaps))

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Where an input has no value and something stands in for it, (n, d)."""
        return np.zeros(self.values.shape, dtype=bool) if self.gaps is None else self.gaps

    @property
    def values_with_gaps(self) -> Floats:
        """Counterfactuals as numbers, NaN where a value stays missing, (n, d)."""
        if self.gaps is None:
            return self.values
        return _emptied(self.values, self.gaps & (self.values == self.original_values))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features, d of them."""
        return self.features.names

    @property
    def delta(self) -> Floats:
        """The changes, (n, d).

        NaN where there is no answer, and for levels that change: they have no distance.
        """
        return difference(self.values, self.original_values, self.features)

    @property
    def prediction(self) -> NDArray[Any]:
        """Labels of the counterfactuals, (n,); an object array with None where there is none."""
        return _labels_at(self.labels, self.prototype)

    @property
    def original_prediction(self) -> NDArray[Any]:
        """Labels of the inputs, (n,); an object array with None where some are invalid."""
        return _labels_at(self.labels, self.original_prototype)

    @property
    def fallbacks(self) -> int:
        """How many rows were solved by a second engine."""
        return int(self.second_engine.sum())

    def to_frame(self) -> Any:
        """Put everything in a DataFrame, one row per input.

        For each feature f there are the columns f_before, f_after and, for numbers, f_change;
        then cost, lower_bound, gap, status, prediction, original_prediction and prototype. It
        is a frame of the library that the inputs came in, of pandas for arrays. A change from a
        missing value is counted from what stands in for it.
        """
        before, after = _emptied(self.original_values, self.gaps), self.values_with_gaps
        columns = answer_columns(self.features, before, after, self.delta)
        for name in ("cost", "lower_bound", "gap", "status"):
            columns[name] = getattr(self, name)
        columns["prediction"] = holdable(self.prediction)
        columns["original_prediction"] = holdable(self.original_prediction)
        columns["prototype"] = self.prototype
        return self.given.new(self.rows, columns)

    def summary(self) -> BatchSummary:
        """Say how the batch went, and which features change most."""
        answered, changed = self.moved
        before, after = self.original_values[answered], self.values[answered]
        uses = []
        for j, feature in enumerate(self.features):
            moved = (after[:, j] - before[:, j])[changed[:, j]]
            share = moved.size / max(int(answered.sum()), 1)
            size = float(np.abs(moved).mean()) if moved.size else 0.0
            uses.append(FeatureUse(feature.name, share, size if feature.is_number else np.nan))
        return BatchSummary(
            rows=len(self),
            shares={s: float((self.status == s).mean()) if len(self) else 0.0 for s in Status},
            mean_cost=float(self.cost[answered].mean()) if answered.any() else float("nan"),
            already=int(self.has_target.sum()),
            demanded=int(self.moved[0][self.has_target].sum()),
            breaking=int(self.breaks_rules.sum()),
            mean_changes=float(changed.sum(axis=1).mean()) if answered.any() else 0.0,
            worst_gap=float(self.gap[answered].max()) if answered.any() else 0.0,
            fallbacks=self.fallbacks,
            features=tuple(sorted(uses, key=lambda use: -use.share)),
        )

    @cached_property
    def moved(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which rows needed a change and got one, (n,), and what changes in those m, (m, d)."""
        # A row that stays as it is says nothing about what the others need. One that has the target
        # may need a change all the same: for the constraints, for a confidence, for steps.
        changes = (self.values != self.original_values).any(axis=1)
        answered = np.isfinite(self.cost) & (~self.has_target | changes)
        before, after = self.original_values[answered], self.values[answered]
        # Whether a digit beyond the last that matters has changed depends on the processor.
        return answered, ~np.isclose(after, before, COUNTED_CHANGE, 0.0)

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        """Show the batch in a notebook."""
        summary = self.summary()
        figures = [Fact("have the target already", f"{summary.already:,}")]
        figures += [Fact("change though they have it", f"{summary.demanded:,}")]
        figures += [Fact("break the constraints as they are", f"{summary.breaking:,}")]
        figures = [fact for fact in figures if fact.value != "0"]
        if np.isfinite(summary.mean_cost):
            figures.append(Fact("mean cost", rough_text(summary.mean_cost)))
            figures.append(Fact("features changed per answer", f"{summary.mean_changes:.2f}"))
        return batch_card(self, figures)


@final
@dataclass(frozen=True)
class FeatureUse:
    """How often a feature changes, and by how much when it does; NaN for levels."""

    feature: str
    share: float
    mean_change: float


@final
@dataclass(frozen=True, repr=False)
class BatchSummary:
    """A batch in a few numbers, which it shows where it is printed or ends a cell.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"])
    >>> batch = clvq.Explainer(model).explain_batch([[1.0, 0.0], [0.0, 5.0], [3.0, 0.0]])
    >>> print(batch.summary())
    3 rows: 100.0% optimal
      mean cost 1.33333, largest gap ..., 1.00 features changed per answer
      solved by a second engine: 0
      feature  changed  mean change
      x0        100.0%        1.333
    """

    rows: int
    shares: dict[Status, float]
    mean_cost: float
    mean_changes: float
    worst_gap: float
    fallbacks: int
    features: tuple[FeatureUse, ...]
    already: int = 0  # rows that have the target as they are
    breaking: int = 0  # rows that break the constraints as they are
    demanded: int = 0  # rows that have the target and change: the others are in no mean

    def __str__(self) -> str:
        ends = ", ".join(f"{_percent(share)} {s}" for s, share in self.shares.items() if share)
        lines = [
            f"{self.rows:,} rows: {ends}",
            *([f"  {self._means()}"] if np.isfinite(self.mean_cost) else []),
            *([f"  have the target already: {self._already()}"] if self.already else []),
            *([f"  break the constraints as they are: {self.breaking:,}"] if self.breaking else []),
            f"  solved by a second engine: {self.fallbacks:,}",
        ]
        changing = [use for use in self.features if use.share > 0]
        if used := changing[:_SHOWN_FEATURES]:
            names = [shown_text(use.feature) for use in used]
            width = max(7, *map(len, names))
            lines.append(f"  {'feature':<{width}}  changed  mean change")
            lines += [
                f"  {name:<{width}}  {_percent(use.share):>7}  {_size(use):>11}"
                for name, use in zip(names, used, strict=True)
            ]
        if more := changing[_SHOWN_FEATURES:]:
            lines.append(f"  and {len(more):,} more")
        return "\n".join(lines)

    def _already(self) -> str:
        if not self.demanded:
            return f"{self.already:,}"
        verb = "changes" if self.demanded == 1 else "change"
        return f"{self.already:,}, of which {self.demanded:,} {verb} to meet what else is asked"

    def _means(self) -> str:
        return (
            f"mean cost {cost_text(self.mean_cost)}, largest gap {gap_text(self.worst_gap)}, "
            f"{self.mean_changes:.2f} features changed per answer"
        )

    __repr__ = __str__


def _labels_at(labels: NDArray[Any], prototypes: NDArray[np.int64]) -> NDArray[Any]:
    """Labels of prototypes; an object array with None if there are some at -1."""
    found: NDArray[Any] = labels[prototypes]
    if (prototypes >= 0).all():
        return found
    out = found.astype(object)
    out[prototypes < 0] = None
    return out


def _emptied(values: Floats, gaps: NDArray[np.bool_] | None) -> Floats:
    return values if gaps is None else np.where(gaps, np.nan, values)


def _percent(share: float) -> str:
    """Write a share in percent; it is not rounded to none or to all."""
    if 0 < 100 * share < _LEAST_PERCENT:
        return f"<{_LEAST_PERCENT}%"
    if 0 < 100 * (1 - share) < _LEAST_PERCENT:
        return f">{100 - _LEAST_PERCENT}%"
    return f"{share:.1%}"


def _size(use: FeatureUse) -> str:
    return "level" if np.isnan(use.mean_change) else f"{use.mean_change:.4g}"
