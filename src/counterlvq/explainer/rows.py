"""How the rows of a table are answered: by compiled kernels where those do, else one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.batch.bad_rows import OnBadRows, WithBadRows, spread
from counterlvq.batch.confirmation import confirm_table, withdrawn
from counterlvq.batch.engine import CODES, STATUSES, BatchRun, Table
from counterlvq.batch.mixed import MixedRun, alike
from counterlvq.batch.processes import answer_left, answer_rows
from counterlvq.batch.result import CounterfactualBatch, GivenTable
from counterlvq.batch.ways import BatchWay
from counterlvq.certificate_files.writing import save_lines
from counterlvq.explainer.one_row import OneRow
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, plain, read_only
from counterlvq.presentation.progress import Counts, progress_bar
from counterlvq.problem.data_ranges import rows_outside, sides_outside
from counterlvq.problem.targets import RowTargets, labels_of, targets_per_row, wished_prototypes
from counterlvq.programs.kernel_data import KernelData
from counterlvq.questions.protocol import WHOLE, Terms
from counterlvq.results import Counterfactual
from counterlvq.search.compiled_boxes import ENGINE
from counterlvq.search.strategies import Exact
from counterlvq.tables.views import TableView
from counterlvq.types import Status

__all__ = ["explain_rows"]


def _shared(values: NDArray[Any]) -> NDArray[Any]:
    """Make an array that all batches of one row may have: nobody can write to it."""
    return read_only(values)[:]  # a part of what is read-only cannot be made writable


# What batches of one row have in common.
_NO = _shared(np.zeros(1, dtype=bool))
_FIRST = _shared(np.arange(1))
_ALONE = {status: _shared(STATUSES[code : code + 1].copy()) for status, code in CODES.items()}


def explain_rows(
    asked: OneRow, X: ArrayLike, target: Any, jobs: int, progress: Counts, on_bad_rows: OnBadRows
) -> CounterfactualBatch:
    """Answer each row of a table, and put the answers together."""
    given = asked._source.seen(X)
    reading = asked._source.read(given, report=on_bad_rows is OnBadRows.REPORT)
    rows, gaps = reading.values, reading.missing
    count = len(rows)
    wishes = targets_per_row(asked.model, target, count)
    whole = RowAsker(asked, rows, target, wishes, gaps=gaps)
    if count == 1 and not reading.problems and gaps is None and progress is not True:
        alone = _answered_at_once(asked, whole, given)
        if alone is not None:
            return alone
    good = reading.good
    breaks = np.zeros(count, dtype=bool)
    ask: Callable[[int], Counterfactual] = whole
    if wishes is None:
        wished_prototypes(asked.model, target, 0)  # an unknown label is refused at once
    if len(good) == count:
        named = given if isinstance(given, TableView) else None
        table, breaks = _answered(asked, whole, named, jobs, progress)
    else:
        # The others are answered as if the bad rows were not there.
        asker = whole.taking(good)
        found = Table.blank(0, rows.shape[1])
        if good.size:
            named = given.taking(good) if isinstance(given, TableView) else None
            found, breaks[good] = _answered(asked, asker, named, jobs, progress)
        table = spread(found, good, *rows.shape)
        places = {int(row): k for k, row in enumerate(good)}
        ask = WithBadRows(
            asker,
            places,
            reading.problems,
            rows,
            whole.wish,
            asked.model,
            asked.features,
            asked.constraints,
        )
    return CounterfactualBatch(
        values=table.X,
        original_values=rows,
        cost=table.cost,
        lower_bound=table.bound,
        gap=table.gap,
        resolution=table.resolution,
        status=table.status,
        prototype=table.prototype,
        original_prototype=table.nearest,
        second_engine=table.second,
        labels=asked.model.labels,
        features=asked.features,
        rows=np.arange(count),
        has_target=_has_target(asked.model, table.nearest, target, wishes) & (table.nearest >= 0),
        breaks_rules=breaks,
        ask=ask,
        given=GivenTable(given if isinstance(given, TableView) else None, asked._source.like),
        check=asked._check,
        certify=partial(save_lines, explainer=asked),
        respond=asked.responds,
        gaps=gaps,
    )


def _answered_at_once(asked: OneRow, asker: RowAsker, given: Any) -> CounterfactualBatch | None:
    """Answer the only row of a table, if one run of the kernel settles it."""
    found = asked.answered_at_once(asker.rows[0], asker.wish(0))
    if found is None:
        return None
    answer, source = found.answer, asked._source
    asker.known[0] = answer
    told = np.array([answer.cost, answer.lower_bound, answer.gap, answer.resolution])
    places = np.array([answer.prototype, found.nearest])
    return CounterfactualBatch(
        values=answer.values[None, :],
        original_values=asker.rows,
        cost=told[:1],
        lower_bound=told[1:2],
        gap=told[2:3],
        resolution=told[3:],
        status=_ALONE[answer.status],
        prototype=places[:1],
        original_prototype=places[1:],
        second_engine=_NO,
        labels=asked.model.labels,
        features=asked.features,
        rows=_FIRST,
        # What is answered at once has another label than the wished-for one, and meets the rules.
        has_target=_NO,
        breaks_rules=_NO,
        ask=asker,
        given=GivenTable(given if isinstance(given, TableView) else None, source.like),
        check=asked._check,
        certify=partial(save_lines, explainer=asked),
        respond=source.responds,
    )


def _answered(
    asked: OneRow, asker: RowAsker, given: TableView | None, jobs: int, progress: Counts
) -> tuple[Table, NDArray[np.bool_]]:
    """Answer rows that have been read, by kernels or one by one, and say which break rules."""
    rows, view = asker.rows, asked.prepared_for()
    breaks = None
    way = asked.batch_way
    if way is BatchWay.KERNEL and isinstance(view.answers, Exact):
        stated = view.answers.stated
        bulk = BatchRun(
            view.model, view.rules, stated, rows, asker.wish, partial(_kernel_data, asked), asker
        )
        table = bulk.run(asker.wishes, jobs, progress)
        for i in rows_outside(asked.constraints, asked.features, rows).tolist():
            table.put(i, asker.again(i, 1.0))
    elif way is BatchWay.LATTICE and len(rows) == 1:
        table, breaks = _answered_alone(asked, asker)
    elif way is BatchWay.LATTICE:
        breaks = np.zeros(len(rows), dtype=bool)
        table = _answered_mixed(asked, asker, jobs, progress, breaks)
    else:
        kept = answer_rows(asker, range(len(rows)), jobs, progress)
        table = Table.of(rows, list(kept.values()), _nearest(asked, rows))
        asker.known.update(kept)
    # The only row of a table is confirmed as it is answered.
    is_confirmed = way is BatchWay.LATTICE and len(rows) == 1
    if asked._source.says is not None and asked.is_ordinary and not is_confirmed:
        confirm_table(table, asked._source.says, asked.model, asker)
    if asker.gaps is not None:
        stays = asker.gaps & (rows == table.X) & (table.prototype >= 0)[:, None]
        labels = asked.model.labels[table.prototype]
        for i, why in asked._source.rejected(given, table.X, stays, labels).items():
            asker.known[i] = asker(i)
            table.put(i, asker.withdraw(i, why))
    return table, _breaks_rules(asked, rows) if breaks is None else breaks


def _answered_mixed(
    asked: OneRow, asker: RowAsker, jobs: int, progress: Counts, breaks: NDArray[np.bool_]
) -> Table:
    """Answer rows on a lattice: rows with the same levels together, then what is left."""
    rows, says = asker.rows, asked._source.says
    told = None if says is None else np.asarray(says(rows))
    groups = alike(_view_keys(asked, rows))
    outer = asked.prepared_for().outer_rules
    run = MixedRun(rows, groups, asked.prepared_for_each, outer, asker.wish, told, breaks)
    with progress_bar(len(rows), progress) as count:
        table, left = run.run(jobs, count)
        kept = answer_left(asker, left.tolist(), jobs, count)
    for i, answer in kept.items():
        table.put(i, answer)
        table.second[i] = True
    asker.known.update(kept)
    return table


def _answered_alone(asked: OneRow, asker: RowAsker) -> tuple[Table, NDArray[np.bool_]]:
    """Answer the only row of a table on a lattice, and say whether it breaks rules.

    One search asks the user's own `predict` less often than a block of rows does.
    """
    view = asked.prepared_for(asker.rows[0])
    X = view.inner_rows(asker.rows)
    answer = asker.briefly(0)
    nearest = view.model.nearest_of_checked(X)
    if plain(asked.model.labels[nearest[0]]) != answer.original_prediction:
        nearest = view.rules.verdict(X).prototype
    table = Table.of(asker.rows, [answer], nearest)
    has_changed = bool((answer.values != answer.original_values).any())
    table.second[0] = has_changed and not answer.reason.startswith(ENGINE)
    return table, np.zeros(1, dtype=bool) if view.rules.keeps(X)[0] else view.breaks(X)


def _view_keys(asked: OneRow, rows: Floats) -> Floats:
    """State what the view of a row depends on, (n, k): coordinates, and ranges it is outside of."""
    own = asked._source.coordinates.keys_of(rows)
    return np.hstack([own, sides_outside(asked.constraints, asked.features, rows)])


def _kernel_data(asked: OneRow, target_mask: NDArray[np.bool_]) -> KernelData | None:
    """Prepare a target for the kernels; without any time nothing is solved."""
    answers = asked.prepared_for().answers
    if asked.time_limit == 0 or not isinstance(answers, Exact):
        return None
    return answers.prepared(target_mask)[1]


def _nearest(asked: OneRow, rows: Floats) -> NDArray[np.intp]:
    """Nearest prototype of each input, (n,)."""
    if not asked._source.coordinates.has_levels and not asked._source.coordinates.links:
        return asked.prepared_for().rules.verdict(rows).prototype
    views = ((asked.prepared_for(row), row) for row in rows)
    told = [view.rules.verdict(view.inner(row)[None]).prototype[0] for view, row in views]
    return np.array(told)


def _has_target(
    model: PrototypeModel, nearest: NDArray[np.int64], target: Any, wishes: RowTargets | None
) -> NDArray[np.bool_]:
    """Which rows have a wished-for label as they are, (n,)."""
    listed = (target,) if wishes is None else wishes.wishes
    wished = np.zeros((len(listed), len(model.labels)), dtype=bool)
    for code, wish in enumerate(listed):
        if wish is not None:  # any other label than the present one
            wished[code] = wished_prototypes(model, wish, -1)
    return wished[0][nearest] if wishes is None else wished[wishes.codes, nearest]


def _breaks_rules(asked: OneRow, rows: Floats) -> NDArray[np.bool_]:
    """Which rows break the constraints, or the ranges of features, as they are, (n,)."""
    if not asked.constraints and not asked.prepared_for().source.coordinates.own_conditions:
        return np.zeros(len(rows), dtype=bool)
    if not isinstance(asked.prepared_for().answers, Exact):
        views = ((row, asked.prepared_for(row)) for row in rows)
        return np.array([bool(view.broken_by(view.inner(row))) for row, view in views])
    out = ~asked.prepared_for().rules.keeps(rows)
    for i in rows_outside(asked.constraints, asked.features, rows).tolist():
        view = asked.prepared_for(rows[i])
        out[i] = not view.holds(view.inner(rows[i]))
    return out


@final
@dataclass(frozen=True, eq=False)
class RowAsker:
    """Asks again about one row of a batch, now with certificate and conflict."""

    asked: OneRow
    rows: Floats
    target: Any
    wishes: RowTargets | None
    known: dict[int, Counterfactual] = field(default_factory=dict)  # answers that are kept
    gaps: NDArray[np.bool_] | None = None  # where values are missing

    def wish(self, i: int) -> Any:
        """Return what is wished for a row."""
        return self.target if self.wishes is None else self.wishes.of(i)

    def taking(self, at: NDArray[np.int64]) -> RowAsker:
        """Ask about the listed rows alone."""
        wishes = None if self.wishes is None else self.wishes._replace(codes=self.wishes.codes[at])
        gaps = None if self.gaps is None else self.gaps[at]
        return RowAsker(self.asked, self.rows[at], self.target, wishes, gaps=gaps)

    def __call__(self, i: int) -> Counterfactual:
        known = self.known.get(i)
        return self._answer(i) if known is None else known

    def outline(
        self, i: int, *, nearest: int, prototype: int, **found: Any
    ) -> Counterfactual | None:
        """Say what a batch has found for a row; None where more has to be known for that."""
        model, asked = self.asked.model, self.asked
        if i in self.known or asked.is_sure or asked.margin or not prototype >= 0:
            return None
        mask = wished_prototypes(model, self.wish(i), nearest)
        return Counterfactual(
            **found,
            prediction=plain(model.labels[prototype]),
            original_prediction=plain(model.labels[nearest]),
            target=labels_of(model, mask),
            prototype=prototype,
            features=asked.features,
            reason="found in a batch",
            bound_with_margin=found["lower_bound"],
            part=model.meaning.part,
            scales=asked._source.scales,
            labels=tuple(model.classes.tolist()),
            constraints=asked.constraints,
        )

    def briefly(self, i: int) -> Counterfactual:
        """Answer a row; what else there is to say of it is looked for once somebody asks."""
        answer = self._answer(i, terms=WHOLE._replace(find_clash=False, meets_rules=False))
        if answer.status is not Status.INFEASIBLE and not answer.broken:
            self.known[i] = answer
        return answer

    def again(self, i: int, push: float) -> Counterfactual:
        """Answer a row further in, and keep that answer."""
        self.known[i] = self._answer(i, push)
        return self.known[i]

    def _answer(self, i: int, push: float = 1.0, *, terms: Terms = WHOLE) -> Counterfactual:
        answer = self.asked._answer(self.rows[i], self.wish(i), push, terms=terms)
        if self.gaps is None or not self.gaps[i].any():
            return answer
        return answer.lacking(self.gaps[i])

    def withdraw(self, i: int, why: str = "") -> Counterfactual:
        """Take back an answer that the user's model does not confirm."""
        self.known[i] = withdrawn(self.known[i], why)
        return self.known[i]
