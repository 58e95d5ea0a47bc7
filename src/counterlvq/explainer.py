"""The one thing most people use: ask a model what would change its mind."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.batch.bad_rows import OnBadRows, WithBadRows, checked_on_bad_rows, spread
from counterlvq.batch.confirmation import confirm_table, confirmed, withdrawn
from counterlvq.batch.engine import BatchRun, Table
from counterlvq.batch.processes import answer_rows
from counterlvq.batch.result import CounterfactualBatch, GivenTable
from counterlvq.batch.threads import workers
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.boxes import BoxCertificate, plain_copy
from counterlvq.certificates.cellwise import CellCertificate
from counterlvq.certificates.questions import Question
from counterlvq.certified.saving import save_lines
from counterlvq.errors import InvalidInputError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, finite_scalar, plain, read_only, told
from counterlvq.numeric.memory import Kept, told_if_too_large
from counterlvq.pipelines.source import ExplainedModel, source_of
from counterlvq.prepared import Prepared
from counterlvq.presentation.numbers import cost_text
from counterlvq.presentation.progress import reporter
from counterlvq.problem.constraints import Constraint
from counterlvq.problem.coordinates import Prices
from counterlvq.problem.costs import Cost, Manhattan
from counterlvq.problem.expressions import as_constraint
from counterlvq.problem.level_prices import refuse_unpriced
from counterlvq.problem.seen import constraints_of, outside_of, rows_outside
from counterlvq.problem.targets import RowTargets, labels_of, targets_per_row, wished_prototypes
from counterlvq.programs.kernel_data import KernelData
from counterlvq.results import Counterfactual
from counterlvq.search.branch_and_bound import Progress
from counterlvq.search.conflicts import Reason
from counterlvq.search.result import SearchContext, SearchResult
from counterlvq.search.strategies import Exact, conflict
from counterlvq.streaming.answers import BatchQuestion, answer_batches
from counterlvq.tables.features import Features
from counterlvq.tables.frames import TableView
from counterlvq.types import Method, Status

__all__ = ["Explainer"]

# Combinations of levels for which everything is kept prepared.
_MOST_VIEWS = 256


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class Explainer:
    """Closest counterfactuals of a prototype model, each with a proof.

    Parameters
    ----------
    model : PrototypeModel, fitted estimator or fitted Pipeline
        With one metric for all prototypes, or one for each. An estimator is read by
        `as_prototype_model`, and its own `predict` has the last word on every counterfactual.
        A scikit-learn pipeline that ends in one, of steps that are affine (scalers, PCA,
        column selection, ...) or encode categories, is explained in the columns and units of
        the table that it takes: cost, constraints and answers are stated there.
    cost : Cost, default Manhattan()
        What a change costs; plain sums of changes by default. ``Manhattan(mad_weights(table))``
        measures each feature by how much it usually varies.
    constraints : sequence of Constraint or str
        What every counterfactual must respect. A string is a linear comparison such as
        ``"second_floor <= first_floor"``; ``original(f)`` in it is the factual value.
    margin : float, optional
        By how much the nearest wished-for prototype has to be nearer than any rival, in
        squared distance. By default as little as rounding in `predict` allows.
    method : {"auto", "ccp", "global"}
        For shared metrics all three are the one exact method; with whole numbers or levels it
        ends after 5,000 boxes unless it is "global". For local metrics "ccp" is
        the paper's convex-concave search from the target prototypes, which proves nothing;
        "global" goes on by branch and bound until `gap` or `time_limit` is reached; "auto"
        does the same with a small budget, so that most answers are proved and every answer
        has an honest gap.
    time_limit : float, optional
        Seconds per answer, proof and conflict included. An iteration of a cone program that is
        running is waited for. What is not shown by then is not claimed.
    gap : float, default 1e-4
        Relative gap at which an answer counts as OPTIMAL under local metrics; below about
        1e-8 a search cannot go. Shared metrics reach 1e-6 in any case.
    features : Features or DataFrame, optional
        What the columns are: whole numbers, decimals, levels, units, allowed ranges; or a table,
        typically the training table, whose dtypes say so and whose values say in which ranges
        numbers may change (``Features.from_frame(table, ranges=None)`` for anywhere). Without it,
        columns that a pipeline encodes have the levels that the encoder knows, and all others
        are real numbers.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel(
    ...     [[1.0, 1.0], [3.0, 2.0]], ["rejected", "accepted"], feature_names=["income", "savings"]
    ... )
    >>> table = [[1.0, 1.0], [2.0, 1.5], [3.0, 2.0]]
    >>> explainer = clvq.Explainer(
    ...     model,
    ...     cost=clvq.Manhattan(clvq.mad_weights(table)),
    ...     constraints=["savings <= original(savings)"],
    ... )
    >>> cf = explainer.explain([1.0, 1.0], target="accepted")
    >>> print(cf)
    Counterfactual (optimal)
      class   'rejected' -> 'accepted'
      feature  before  after  change
      income        1   2.26   +1.26
      1 feature unchanged
      cost    1.26 (1.25 before rounding)
      proof   no counterfactual costs less than 1.24999 (gap ...)
    """

    model: PrototypeModel
    cost: Cost
    constraints: tuple[Constraint | str, ...]
    margin: float | None
    method: Method
    time_limit: float | None
    gap: float
    features: Features
    _source: ExplainedModel
    prices: Prices  # the cost, column by column of `features`
    _views: Kept[Hashable, Prepared]

    def __init__(
        self,
        model: Any,
        cost: Cost | None = None,
        constraints: Sequence[Constraint | str] = (),
        margin: float | None = None,
        method: str = "auto",
        time_limit: float | None = None,
        gap: float = 1e-4,
        features: Any = None,
    ) -> None:
        with told_if_too_large("the question was prepared"), np.errstate(all="ignore"):
            self._prepare(model, cost, constraints, margin, method, time_limit, gap, features)

    def _prepare(
        self,
        model: Any,
        cost: Cost | None,
        constraints: Sequence[Constraint | str],
        margin: float | None,
        method: str,
        time_limit: float | None,
        gap: float,
        features: Any,
    ) -> None:
        put = partial(object.__setattr__, self)
        put("cost", _checked_cost(cost))
        put("_source", source_of(model, features, self.cost))
        if isinstance(self.cost, Manhattan):
            put("cost", self.cost.for_columns(self._source.columns))
        put("model", self._source.model)
        put("features", self._source.features)
        put("constraints", _with_those_of(self.features, _checked_constraints(constraints)))
        put("margin", None if margin is None else _at_least_zero("margin", margin))
        put("method", _checked_method(method))
        put("time_limit", None if time_limit is None else _at_least_zero("time_limit", time_limit))
        put("gap", _at_least_zero("gap", gap))
        put("prices", Prices.of(self.cost, self.features, self._source.columns))
        put("_views", Kept(_MOST_VIEWS))
        _ = self._view().template  # what is wrong with the constraints is said at once
        self._refuse_unpriced()

    def _refuse_unpriced(self) -> None:
        """Refuse changes of level that could come up and have no price."""
        stated = (as_constraint(item).conditions(self.features) for item in self.constraints)
        parts = [part for conditions in stated for part in conditions]
        refuse_unpriced(self.prices.missing, self.features, parts)

    def __repr__(self) -> str:
        return (
            f"Explainer({self.model!r}, cost={self.cost!r}, constraints={list(self.constraints)!r})"
        )

    def explain(
        self,
        x: ArrayLike | Mapping[str, float],
        target: Any = None,
        progress: bool | Callable[[Progress], None] = False,
    ) -> Counterfactual:
        """Find the closest counterfactual of one input.

        Parameters
        ----------
        x : array-like of shape (d,), mapping from feature name to value, or row of a table
            The factual input. What has names is read by name: a row of a frame or of an Arrow
            table, a named tuple, a row of a structured array.
        target : label, collection of labels, or None
            What the model should say instead; None for anything but what it says now. An
            input that has a wished-for label already, and meets the constraints, comes
            back unchanged at cost 0.
        progress : bool or callable, default False
            For the long searches of local metrics: show cost, bound and gap as they close,
            or hand them to a function, as a `Progress`.

        Returns
        -------
        Counterfactual

        Examples
        --------
        >>> import counterlvq as clvq
        >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"])
        >>> cf = clvq.Explainer(model, cost=clvq.Euclidean()).explain([1.0, 0.0], target="yes")
        >>> print(cf.text())
        The answer would have been yes if x0 were 1.001 higher (2.001 instead of 1).
        """
        with told_if_too_large("a row was explained"):
            given = self._source.seen(x, is_row=True)
            reading = self._source.read_one(given)
            answer = self._answer(reading.values[0], target, progress=progress)
            if reading.missing is not None:
                answer = answer.lacking(reading.missing[0])
                stays, labels = answer.stays_missing[None, :], np.array([answer.prediction])
                named = given if isinstance(given, TableView) else None
                if self._rejected(named, answer.values[None, :], stays, labels):
                    answer = withdrawn(answer)
            answered = self._source.like(given, answer.values_with_gaps[None, :])
            return replace(
                answer, as_given=answered, check=self._check, respond=self._source.responds
            )

    def _answer(
        self,
        row: Floats,
        target: Any,
        push: float = 1.0,
        progress: bool | Callable[[Progress], None] = False,
    ) -> Counterfactual:
        """Answer for one input that has been read.

        `push` multiplies the lead that the user's own `predict` is taken to need, where it
        has rejected an answer among others.
        """
        with np.errstate(all="ignore"):  # what overflows proves nothing, and is not accepted
            return self._searched(row, target, push, progress)

    def _searched(
        self, row: Floats, target: Any, push: float, progress: bool | Callable[[Progress], None]
    ) -> Counterfactual:
        view = self._view(row)
        factual = view.inner(row)
        now = view.rules.verdict(factual[None, :])
        nearest = int(now.prototype[0])
        target_mask = wished_prototypes(view.model, target, nearest)
        view.answers.get_ready()
        context = SearchContext.begun(view.rules, factual, target_mask, self.time_limit)
        if target_mask[nearest] and now.steady[0] and push == 1.0 and view.holds(factual):
            return self._unchanged(row, nearest, target_mask)
        question = view.answers.question(factual, target_mask)
        with reporter(progress) as report:
            find, prototype = confirmed(
                question, context, lambda asked: view.find(question, asked, report), push
            )
        return self._result(row, view, question, context, find, prototype, nearest)

    def explain_batch(
        self,
        X: ArrayLike,
        target: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
        on_bad_rows: str = "raise",
    ) -> CounterfactualBatch:
        """Find the closest counterfactual of each row.

        Row i is what `explain` gives for it. Work is shared by threads, for local metrics by
        processes; without a `time_limit` the answers do not depend on how many.

        Parameters
        ----------
        X : array-like of shape (n, d), or table with named columns
            The factual inputs. Columns that have names are found by name, and the answers come
            back in a table of the same kind: pandas, polars, Arrow (for other tables that it
            can read too), structured arrays, lists of mappings, mappings of columns.
        target : label, set of labels, sequence of n labels, or None
            One wish for all rows (a label, or a set of labels of which any will do), or one
            label per row (None in it for any other class).
        n_jobs : int, optional
            Number of threads or processes, as in scikit-learn: None is 1, -1 is every core.
            Processes are started for the batch and end with it.
        progress : bool, default False
            Show a progress bar (needs tqdm).
        on_bad_rows : {"raise", "report"}
            What to do about rows that cannot be read: a missing value that the pipeline puts
            nothing in the place of, an unknown level, text among numbers, an infinite number.
            "report" gives such a row the status INVALID, with the reason, and answers the others
            as if it was not there.

        Returns
        -------
        CounterfactualBatch

        Raises
        ------
        WorkerLostError
            If a process was ended from outside, with the rows that it had in hand.
        TooLargeError
            If the question needs more memory than there is.

        Examples
        --------
        >>> import counterlvq as clvq
        >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"])
        >>> batch = clvq.Explainer(model).explain_batch([[1.0, 0.0], [9.0, 1.0]], target="yes")
        >>> batch.cost
        array([1., 0.])
        >>> rows = [[1.0, 0.0], [float("nan"), 1.0]]
        >>> clvq.Explainer(model).explain_batch(rows, on_bad_rows="report").status.tolist()
        ['optimal', 'invalid']
        """
        bad = checked_on_bad_rows(on_bad_rows)
        with told_if_too_large("a batch was explained"), np.errstate(all="ignore"):
            return self._explain_rows(X, target, workers(n_jobs), progress, bad)

    def _explain_rows(
        self, X: ArrayLike, target: Any, jobs: int, progress: bool, on_bad_rows: OnBadRows
    ) -> CounterfactualBatch:
        given = self._source.seen(X)
        reading = self._source.read(given, report=on_bad_rows is OnBadRows.REPORT)
        rows, gaps, good = reading.values, reading.missing, reading.good
        count = len(rows)
        wishes = targets_per_row(self.model, target, count)
        if wishes is None:
            wished_prototypes(self.model, target, 0)  # an unknown label is refused at once
        whole = _Asker(self, rows, target, wishes, gaps=gaps)
        ask: Callable[[int], Counterfactual] = whole
        if len(good) == count:
            named = given if isinstance(given, TableView) else None
            table = self._answered(whole, named, jobs, progress)
        else:
            # The others are answered as if the bad rows were not there.
            asker = whole.taking(good)
            found = Table.blank(0, rows.shape[1])
            if good.size:
                named = given.taking(good) if isinstance(given, TableView) else None
                found = self._answered(asker, named, jobs, progress)
            table = spread(found, good, *rows.shape)
            places = {int(row): k for k, row in enumerate(good)}
            ask = WithBadRows(
                asker, places, reading.problems, rows, whole.wish, self.model, self.features
            )
        breaks = np.zeros(count, dtype=bool)
        if good.size:
            breaks[good] = self._breaks_rules(rows if len(good) == count else rows[good])
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
            labels=self.model.labels,
            features=self.features,
            rows=np.arange(count),
            has_target=self._has_target(table.nearest, target, wishes) & (table.nearest >= 0),
            breaks_rules=breaks,
            ask=ask,
            given=GivenTable(given if isinstance(given, TableView) else None, self._source.like),
            check=self._check,
            certify=partial(save_lines, explainer=self),
            respond=self._source.responds,
            gaps=gaps,
        )

    def _answered(self, asker: _Asker, given: TableView | None, jobs: int, progress: bool) -> Table:
        """Answer rows that have been read, by kernels or one by one."""
        rows, view = asker.rows, self._view()
        if isinstance(view.answers, Exact) and not self._source.coordinates.links:
            stated = view.answers.stated
            bulk = BatchRun(
                view.model, view.rules, stated, rows, asker.wish, self._family_for, asker
            )
            table = bulk.run(asker.wishes, jobs, progress)
            for i in rows_outside(self.constraints, self.features, rows).tolist():
                table.put(i, asker.again(i, 1.0))
        else:
            kept = answer_rows(asker, rows.shape[0], jobs, progress)
            table = Table.of(rows, kept, self._nearest(rows))
            asker.known.update(enumerate(kept))
        if self._source.says is not None:
            confirm_table(table, self._source.says, self.model, asker)
        if asker.gaps is not None:
            stays = asker.gaps & (rows == table.X) & (table.prototype >= 0)[:, None]
            labels = self.model.labels[table.prototype]
            for i in self._rejected(given, table.X, stays, labels):
                asker.known[i] = asker(i)
                table.put(i, asker.withdraw(i))
        return table

    def _rejected(
        self, given: TableView | None, values: Floats, gaps: NDArray[np.bool_], labels: NDArray[Any]
    ) -> list[int]:
        """Rows that the user's own `predict` does not label so where values are missing."""
        at = np.flatnonzero(gaps.any(axis=1))
        if not at.size or self._source.with_gaps is None:
            return []
        table = None if given is None else given.taking(at)
        found = self._source.with_gaps.disagrees(table, values[at], gaps[at], labels[at])
        return [int(at[k]) for k in found]

    def map_batches(
        self,
        batches: Iterable[Any],
        target: Any = None,
        *,
        schema: Any = None,
        columns: Sequence[str] | None = None,
        prefix: str = "",
        on_bad_rows: str = "report",
        n_jobs: int | None = None,
    ) -> Any:
        """Answer Arrow record batches as they come, a batch of answers for each.

        For tables that do not fit into memory, and for engines that hand out batches: it has the
        shape of Spark's ``mapInArrow``. Rows are answered as by `explain_batch`, to the last bit.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
            Columns are found by name; others may stand beside them, of any type.
        target : label, collection of labels, name of a column, or None
            One wish for all rows, or the column that holds one for each (empty for any other
            class). Of a label that is the name of a column too, write a set: ``{"yes"}``.
        schema : pyarrow.Schema, optional
            Of the batches; by default their own `schema`, or that of the first of them.
        columns : sequence of str, optional
            The columns to give back; all of them by default.
        prefix : str, optional
            Put before the names of the columns that are added.
        on_bad_rows : {"report", "raise"}
            What to do about rows that cannot be read: "report" gives them the status "invalid"
            and says why in the column `reason`.
        n_jobs : int, optional
            Number of threads or processes, as for `explain_batch`.

        Returns
        -------
        pyarrow.RecordBatchReader
            An iterator of record batches, whose `schema` is known at once. Behind the columns
            that are given back: for each feature f a column ``f_after``; `cost`, `lower_bound`,
            `gap` and `status` as `explain_batch` has them; `prediction`, `original_prediction`
            and `prototype`; `changed`, the names of the features that change; `reason`.
            Integers, decimals on a grid, dates and levels keep their type if it has room for
            every answer; other numbers are doubles, as they were proved.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import counterlvq as clvq
        >>> model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["income"])
        >>> batch = pa.record_batch({"id": ["a", "b", "c"], "income": [1.0, 3.0, None]})
        >>> answers = clvq.Explainer(model).map_batches([batch], target="yes")
        >>> answers.schema.names[:4]
        ['id', 'income', 'income_after', 'cost']
        >>> told = answers.read_all()
        >>> told["income_after"].to_pylist(), told["status"].to_pylist()
        ([2.0..., 3.0, None], ['optimal', 'optimal', 'invalid'])
        """
        return answer_batches(
            self,
            batches,
            target,
            schema=schema,
            columns=columns,
            prefix=prefix,
            on_bad_rows=on_bad_rows,
            n_jobs=n_jobs,
        )

    def output_schema(
        self,
        schema: Any,
        target: Any = None,
        *,
        columns: Sequence[str] | None = None,
        prefix: str = "",
    ) -> Any:
        """Say which schema `map_batches` gives back for batches of a schema.

        Parameters
        ----------
        schema : pyarrow.Schema
        target, columns, prefix
            As for `map_batches`.

        Returns
        -------
        pyarrow.Schema

        Examples
        --------
        >>> import pyarrow as pa
        >>> import counterlvq as clvq
        >>> model = clvq.PrototypeModel([[0.0], [4.0]], [0, 1], feature_names=["income"])
        >>> schema = pa.schema([("income", pa.float32())])
        >>> clvq.Explainer(model).output_schema(schema).field("income_after").type
        DataType(double)
        """
        question = BatchQuestion.of(self, schema, target, columns=columns, prefix=prefix)
        return question.output_schema

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that the model takes, whether it sees them or not."""
        return self._source.columns

    @property
    def scales(self) -> tuple[str, ...]:
        """The scales on which the cost measures some columns, such as ``log1p(income)``."""
        return self._source.scales

    def verify(self, counterfactual: Counterfactual) -> float:
        """Recompute the lower bound of an answer from its certificate, without any solver.

        Parameters
        ----------
        counterfactual : Counterfactual
            An answer of this explainer, or of one with the same model, cost and constraints.

        Returns
        -------
        float
            The cost that no counterfactual undercuts, as `counterfactual.lower_bound`.

        Examples
        --------
        >>> import counterlvq as clvq
        >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"])
        >>> explainer = clvq.Explainer(model)
        >>> cf = explainer.explain([1.0, 0.0])
        >>> explainer.verify(cf) == cf.lower_bound
        True
        """
        if not isinstance(counterfactual, Counterfactual):
            raise InvalidInputError(
                f"counterfactual is {told(counterfactual)}; expected a Counterfactual as "
                f"`explain` returns it."
            )
        if counterfactual.status is Status.INVALID:
            return 0.0
        target_mask = wished_prototypes(self.model, counterfactual.target, -1)
        row = counterfactual.original_values
        if not self._source.coordinates.holds(row):
            return 0.0
        view = self._view(row)
        question = view.answers.question(view.inner(row), target_mask)
        certificate, cost = counterfactual.certificate, counterfactual.cost
        # Only what this package wrote is asked: an object that looks alike could say anything.
        if type(certificate) not in (CellCertificate, BoxCertificate) or not isinstance(
            cost, float
        ):
            return 0.0
        with np.errstate(all="ignore"):
            return float(plain_copy(certificate).lower_bound(question, cost, self.margin or 0.0))

    def without(self, constraint: int, time_limit: float | None = None) -> Explainer:
        """Return an explainer that asks the same but for one constraint, to see what it costs.

        Parameters
        ----------
        constraint : int
            Its position in `constraints`.
        time_limit : float, optional
            Seconds per answer; as here by default.

        Examples
        --------
        >>> import counterlvq as clvq
        >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
        >>> explainer = clvq.Explainer(model, constraints=["x0 <= 1"])
        >>> freed = explainer.without(0)
        >>> [round(asked.explain([1.0, 0.0]).cost, 6) for asked in (explainer, freed)]
        [3.0, 1.5]
        """
        if not 0 <= constraint < len(self.constraints):
            raise InvalidInputError(
                f"constraint is {constraint!r}; expected a position in the list of "
                f"{len(self.constraints)} constraints."
            )
        changes: dict[str, Any] = {
            "constraints": self.constraints[:constraint] + self.constraints[constraint + 1 :]
        }
        if time_limit is not None:
            changes["time_limit"] = _at_least_zero("time_limit", time_limit)
        other = self._asking(**changes)
        other._refuse_unpriced()
        return other

    def _asking(self, **changes: Any) -> Explainer:
        """Return an explainer that asks something else."""
        other = copy(self)
        for name, value in {**changes, "_views": Kept(_MOST_VIEWS)}.items():
            object.__setattr__(other, name, value)
        return other

    def _check(
        self, row: Floats, target: tuple[Any, ...], shown: Floats, most: float
    ) -> tuple[bool, float]:
        """Whether `shown` is an answer for `row` that costs at most `most`, and what it costs.

        The constraints have to hold to the last digit, and the user's own model is asked.
        """
        with np.errstate(all="ignore"):
            view = self._view(row)
            x, y = view.inner(row), view.inner(shown)
            judged = view.rules.judged(y[None, :], x[None, :])
            cost = float(judged.cost[0])
            if not cost <= most:
                return False, cost
            target_mask = wished_prototypes(view.model, target, -1)
            answer = view.rules.accepts(y, x, target_mask, judged=judged)
            confirms = view.rules.confirms
            return answer is not None and confirms(answer, target_mask) is not None, cost

    def prepared_for(self, row: Floats | None = None) -> Prepared:
        """Everything that does not depend on a row beyond its levels; for writers of proofs."""
        return self._view(row)

    def _view(self, row: Floats | None = None) -> Prepared:
        """Everything seen from rows with the levels of this one, prepared once."""
        source, coordinates = self._source, self._source.coordinates
        if row is None:
            return self._views.get((coordinates.levels, ()), lambda: (Prepared(self, source), 1))
        outside = outside_of(self.constraints, self.features, row)
        return self._views.get(
            (coordinates.seen_from(row).levels, outside),
            lambda: (Prepared(self, source.seen_from(row), dict(outside)), 1),
        )

    def _nearest(self, rows: Floats) -> NDArray[np.intp]:
        """Nearest prototype of each input, (n,)."""
        if not self._source.coordinates.has_levels and not self._source.coordinates.links:
            return self._view().rules.verdict(rows).prototype
        views = ((self._view(row), row) for row in rows)
        told = [view.rules.verdict(view.inner(row)[None]).prototype[0] for view, row in views]
        return np.array(told)

    def _has_target(
        self, nearest: NDArray[np.int64], target: Any, wishes: RowTargets | None
    ) -> NDArray[np.bool_]:
        """Which rows have a wished-for label as they are, (n,)."""
        out = np.zeros(len(nearest), dtype=bool)
        listed = (target,) if wishes is None else wishes.wishes
        codes = np.zeros(len(nearest), dtype=np.int64) if wishes is None else wishes.codes
        for code, wish in enumerate(listed):
            if wish is not None:  # any other label than the present one
                mine = codes == code
                out[mine] = wished_prototypes(self.model, wish, -1)[nearest[mine]]
        return out

    def _breaks_rules(self, rows: Floats) -> NDArray[np.bool_]:
        """Which rows break the constraints, or the ranges of features, as they are, (n,)."""
        if not self.constraints and not self._view().source.coordinates.own_conditions:
            return np.zeros(len(rows), dtype=bool)
        if not isinstance(self._view().answers, Exact):
            views = ((row, self._view(row)) for row in rows)
            return np.array([bool(view.broken_by(view.inner(row))) for row, view in views])
        out = ~self._view().rules.judged(rows, rows).good
        for i in rows_outside(self.constraints, self.features, rows).tolist():
            view = self._view(rows[i])
            out[i] = not view.holds(view.inner(rows[i]))
        return out

    def _family_for(self, target_mask: NDArray[np.bool_]) -> KernelData | None:
        """Prepare a target for the kernels; without any time nothing is solved."""
        answers = self._view().answers
        if self.time_limit == 0 or not isinstance(answers, Exact):
            return None
        return answers.prepared(target_mask)[1]

    def _without_margin(
        self, row: Floats, reason: str, context: SearchContext
    ) -> tuple[float, str]:
        """Say what there is without the margin that cannot be had: a bound, and words.

        In the time that is left.
        """
        limit = None if self.time_limit is None else max(0.0, context.seconds_left())
        other = self._asking(margin=None, time_limit=limit)
        found = other._answer(row, list(labels_of(self.model, context.target_mask)))
        if found.status is Status.INFEASIBLE:
            return np.inf, reason
        cost = f"; without it one costs {cost_text(found.cost)}" if found.status.has_answer else ""
        return found.lower_bound, f"none keeps the margin of {self.margin:g}{cost}"

    def _within_rules(self, row: Floats, context: SearchContext) -> Counterfactual | None:
        """Find the closest row that meets the constraints, whatever the model says of it."""
        if context.target_mask.all():
            return None
        limit = None if self.time_limit is None else max(0.0, context.seconds_left())
        other = self._asking(margin=None, time_limit=limit)
        return replace(other._answer(row, self.model.classes.tolist()), check=other._check)

    def _unchanged(
        self, row: Floats, nearest: int, target_mask: NDArray[np.bool_]
    ) -> Counterfactual:
        label = plain(self.model.labels[nearest])
        return Counterfactual(
            values=row,
            original_values=row,
            status=Status.OPTIMAL,
            cost=0.0,
            lower_bound=0.0,
            gap=0.0,
            resolution=0.0,
            prediction=label,
            original_prediction=label,
            target=labels_of(self.model, target_mask),
            prototype=nearest,
            features=self.features,
            reason="the input has a wished-for label already",
            bound_with_margin=0.0,
            part=self.model.meaning.part,
        )

    def _result(
        self,
        row: Floats,
        view: Prepared,
        question: Question | BoxQuestion,
        context: SearchContext,
        find: SearchResult,
        prototype: int,
        nearest: int,
    ) -> Counterfactual:
        verdict = view.verdict(question, find, context)
        status = verdict.status
        values = np.full(row.shape, np.nan)
        if find.answer is not None:
            values = view.outer(find.answer.y, row)
        read_only(values)
        steps = list(find.engines)
        if status in (Status.FEASIBLE, Status.UNKNOWN) and context.out_of_time():
            steps.append("the time limit was reached")
        why = Reason((), True, "; ".join(steps))
        bound, reason = verdict.bound, why.words
        if status is Status.INFEASIBLE:
            count = len(self.constraints)
            why = conflict(view.answers, question, context, find, count, view.template_with)
            reason = why.words
            if self.margin:
                bound, reason = self._without_margin(row, reason, context)
        broken = view.broken_by(question.x)
        return Counterfactual(
            values=values,
            original_values=row,
            status=status,
            cost=find.cost,
            lower_bound=bound,
            gap=verdict.gap,
            resolution=verdict.resolution,
            margin=self.margin or 0.0,
            broken=broken,
            within_rules=self._within_rules(row, context) if broken else None,
            prediction=None if prototype < 0 else plain(self.model.labels[prototype]),
            original_prediction=plain(self.model.labels[nearest]),
            target=labels_of(self.model, context.target_mask),
            prototype=prototype,
            features=self.features,
            reason=reason,
            bound_with_margin=bound,
            conflict=tuple(self.constraints[k] for k in why.clashing),
            conflict_is_irreducible=why.is_irreducible,
            certificate=find.certificate,
            part=self.model.meaning.part,
            scales=self._source.scales,
        )


@final
@dataclass(frozen=True, eq=False)
class _Asker:
    """Asks again about one row of a batch, now with certificate and conflict."""

    explainer: Explainer
    rows: Floats
    target: Any
    wishes: RowTargets | None
    known: dict[int, Counterfactual] = field(default_factory=dict)  # answers that are kept
    gaps: NDArray[np.bool_] | None = None  # where values are missing

    def wish(self, i: int) -> Any:
        return self.target if self.wishes is None else self.wishes.of(i)

    def taking(self, at: NDArray[np.int64]) -> _Asker:
        """Ask about the listed rows alone."""
        wishes = None if self.wishes is None else self.wishes._replace(codes=self.wishes.codes[at])
        gaps = None if self.gaps is None else self.gaps[at]
        return _Asker(self.explainer, self.rows[at], self.target, wishes, gaps=gaps)

    def __call__(self, i: int) -> Counterfactual:
        known = self.known.get(i)
        return self._answer(i) if known is None else known

    def again(self, i: int, push: float) -> Counterfactual:
        """Answer a row further in, and keep that answer."""
        self.known[i] = self._answer(i, push)
        return self.known[i]

    def _answer(self, i: int, push: float = 1.0) -> Counterfactual:
        answer = self.explainer._answer(self.rows[i], self.wish(i), push)
        if self.gaps is None or not self.gaps[i].any():
            return answer
        return answer.lacking(self.gaps[i])

    def withdraw(self, i: int) -> Counterfactual:
        """Take back an answer that the user's model does not confirm."""
        self.known[i] = withdrawn(self.known[i])
        return self.known[i]


def _checked_cost(cost: Cost | None) -> Cost:
    if cost is None:
        return Manhattan()
    if not isinstance(cost, Cost):
        raise InvalidInputError(
            f"cost is {cost!r}; expected a cost such as Manhattan(), Euclidean() or "
            f"Mahalanobis(matrix)."
        )
    return cost


def _checked_constraints(
    constraints: Sequence[Constraint | str],
) -> tuple[Constraint | str, ...]:
    if isinstance(constraints, str | bytes | Constraint):
        raise InvalidInputError(
            f"constraints is a single {type(constraints).__name__}; expected a list. "
            f"Write constraints=[{told(constraints)}]."
        )
    try:
        return tuple(constraints)
    except TypeError:
        raise InvalidInputError(
            f"constraints is {constraints!r}; expected a list of constraints and strings."
        ) from None


def _with_those_of(
    features: Features, given: tuple[Constraint | str, ...]
) -> tuple[Constraint | str, ...]:
    """Add what the columns ask for, unless it has been said."""
    return given + tuple(item for item in constraints_of(features) if item not in given)


def _checked_method(method: str) -> Method:
    try:
        return Method(method)
    except ValueError:
        known = ", ".join(repr(str(item)) for item in Method)
        raise InvalidInputError(f"method is {method!r}; expected one of: {known}.") from None


def _at_least_zero(name: str, value: float) -> float:
    number = finite_scalar(name, value)
    if number < 0:
        raise InvalidInputError(f"{name} is {number:g}; expected a number of at least 0.")
    return number
