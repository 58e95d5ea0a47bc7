"""The one thing most people use: ask a model what would change its mind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from counterlvq.batch.bad_rows import checked_on_bad_rows
from counterlvq.batch.confirmation import withdrawn
from counterlvq.batch.result import CounterfactualBatch
from counterlvq.batch.threads import workers
from counterlvq.certificates.at_most import plain_tree
from counterlvq.certificates.boxes import BoxCertificate, plain_copy
from counterlvq.certificates.cellwise import CellCertificate
from counterlvq.errors import InvalidInputError
from counterlvq.explainer.one_row import OneRow
from counterlvq.explainer.rows import explain_rows
from counterlvq.explainer.settings import at_least_zero
from counterlvq.markup.columns import features_card
from counterlvq.numeric.arrays import told
from counterlvq.numeric.memory import told_if_too_large
from counterlvq.presentation.progress import Counts
from counterlvq.presentation.question import setting_facts
from counterlvq.presentation.wording import PLAIN
from counterlvq.problem.confidence import Confidence
from counterlvq.problem.constraint_text import plain_words
from counterlvq.problem.constraints import Constraint
from counterlvq.problem.costs import Cost
from counterlvq.questions.alternatives import Alternatives, alternatives_of
from counterlvq.questions.confidence import confident_verified
from counterlvq.questions.plausibility import plausible_in
from counterlvq.questions.ranges import Ranges, ranges_of, refuse_ranges
from counterlvq.questions.reasons import Reasons, reasons_of
from counterlvq.questions.unions import verified
from counterlvq.results import Counterfactual, replaced
from counterlvq.search.progress import Progress
from counterlvq.streaming.answers import BatchQuestion, answer_batches
from counterlvq.streaming.targets import one_wish
from counterlvq.tables.features import FeatureKey
from counterlvq.tables.views import TableView
from counterlvq.types import Status

__all__ = ["Explainer"]


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class Explainer(OneRow):
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
        are real numbers: of a column of true and false, answers may lie between 0 and 1.
    threshold : float, optional
        The probability, score or predicted number from which a model for two classes says the
        second one, or a regressor the upper side: short for ``Thresholded(model, threshold)``,
        which takes the label, the names of the sides and the points of a scorecard as well.

    confidence : Confidence, optional
        How sure the model has to be of an answer: `Probability`, `Noise`,
        `RelativeSimilarity`, `Drift`. Rivals are then the
        prototypes of any other label, wished for or not, and an input that has a wished-for label
        without the confidence is not returned as it is. OPTIMAL means that no answer with the
        confidence is closer.

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
      proof   no counterfactual costs less than 1.24999... (gap ...)
    """

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
        threshold: float | None = None,
        confidence: Confidence | None = None,
    ) -> None:
        with told_if_too_large("the question was prepared"), np.errstate(all="ignore"):
            self._make_sure(confidence, margin)
            self._prepare(
                model, cost, constraints, margin, method, time_limit, gap, features, threshold
            )

    def __repr__(self) -> str:
        asked = {"cost": self.cost, "constraints": list(self.constraints)}
        sure = {"margin": self.margin, "confidence": self.confidence}
        asked |= {name: value for name, value in sure.items() if value is not None}
        shown = ", ".join(f"{name}={value!r}" for name, value in asked.items())
        return f"Explainer({self.model!r}, {shown})"

    def _repr_html_(self) -> str:
        """Show in a notebook what is asked of which model."""
        facts = setting_facts(
            self.model, self.features, self.cost, self.constraints, confidence=self.confidence
        )
        return features_card("Explainer", facts, self.features)

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
            if reading.missing is None and not progress:
                found = self.answered_at_once(reading.values[0], target, given)
                if found is not None:
                    return found.answer
            answer = self._answer(reading.values[0], target, progress=progress)
            if reading.missing is not None:
                answer = answer.lacking(reading.missing[0])
                stays, labels = answer.stays_missing[None, :], np.array([answer.prediction])
                named = given if isinstance(given, TableView) else None
                why = self._source.rejected(named, answer.values[None, :], stays, labels)
                answer = withdrawn(answer, why[0]) if why else answer
            fill = partial(self._source.like_one, given)
            return replaced(
                answer,
                as_given=fill(answer.values_with_gaps),
                fill=fill,
                check=self._check,
                respond=self.responds,
            )

    def explain_batch(
        self,
        X: ArrayLike,
        target: Any = None,
        n_jobs: int | None = None,
        progress: Counts = False,
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
        progress : bool or callable, default False
            Show a progress bar (needs tqdm), or call a function with how many more rows are
            answered, each time that some are.
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
            return explain_rows(self, X, target, workers(n_jobs), progress, bad)

    def map_batches(
        self,
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
        target_column : str, optional
            Instead of `target`: the column that holds a label for each row, whatever labels there
            are.
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
            target_column=target_column,
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
        target_column: str | None = None,
        columns: Sequence[str] | None = None,
        prefix: str = "",
    ) -> Any:
        """Say which schema `map_batches` gives back for batches of a schema.

        Parameters
        ----------
        schema : pyarrow.Schema
        target, target_column, columns, prefix
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
        wish = one_wish(target, target_column)
        question = BatchQuestion.of(self, schema, wish, columns=columns, prefix=prefix)
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
        union = self._verified_union(counterfactual)
        if union is not None:
            return union
        row = counterfactual.original_values
        certificate, cost = counterfactual.certificate, counterfactual.cost
        if not self._source.coordinates.holds(row) or not isinstance(cost, float):
            return 0.0
        question = self.question_for(row, counterfactual.target)
        tree = plain_tree(certificate)
        # Only what this package wrote is asked: an object that looks alike could say anything.
        if tree is None and type(certificate) not in (CellCertificate, BoxCertificate):
            return 0.0
        with np.errstate(all="ignore"):
            checked = plain_copy(certificate) if tree is None else tree
            return float(checked.lower_bound(question, cost, self.margin or 0.0))

    @property
    def spoken_constraints(self) -> tuple[str, ...]:
        """The constraints in words, as texts say them.

        Examples
        --------
        >>> import counterlvq as clvq
        >>> model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["age"])
        >>> clvq.Explainer(model, constraints=[clvq.Increase("age")]).spoken_constraints
        ('no decrease of age',)
        """
        return tuple(plain_words(c, self.features, PLAIN.value) for c in self.constraints)

    def _verified_union(self, cf: Counterfactual) -> float | None:
        """Recompute the bound over all parts of a union; None where there is one question."""
        if self.confidence is not None:
            return confident_verified(self, self.confidence, cf)
        plausible = plausible_in(self.constraints)
        if plausible is None:
            return None
        if not self._source.coordinates.holds(cf.original_values):
            return 0.0
        parts = self.components_for(plausible, cf.original_values, list(cf.target))
        return verified(parts, cf) if parts else np.inf

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
            changes["time_limit"] = at_least_zero("time_limit", time_limit)
        return self.asking_for(**changes)

    def alternatives(
        self, x: ArrayLike | Mapping[str, float], target: Any = None, count: int = 5
    ) -> Alternatives:
        """Find several ways to another label that really differ, in order of cost.

        The closest counterfactual, then the closest one in which at least one of the features
        changed in each earlier answer stays as it was, and so on. Each has a proof that nothing
        cheaper differs in this sense, and the list ends early with the proof that there is no
        further one. No random numbers. A `time_limit` is one for each of them.

        Parameters
        ----------
        x : array-like of shape (d,), mapping from feature name to value, or row of a table
            The factual input.
        target : label, collection of labels, or None
            As for `explain`.
        count : int, default 5
            How many ways at the most.

        Returns
        -------
        Alternatives
            A sequence of `Counterfactual` that prints as a table.

        Examples
        --------
        >>> import counterlvq as clvq
        >>> model = clvq.PrototypeModel([[0, 0, 0], [4, 3, 2]], ["no", "yes"])
        >>> ways = clvq.Explainer(model).alternatives([1.0, 1.0, 1.0], target="yes", count=2)
        >>> [[change.feature for change in cf.changes] for cf in ways]
        [['x0'], ['x1']]
        """
        with told_if_too_large("alternatives were looked for"):
            return alternatives_of(self, x, target, count)

    def reasons(
        self, x: ArrayLike | Mapping[str, float], order: Sequence[FeatureKey] | None = None
    ) -> Reasons:
        """Find features that settle the decision, whatever the others do within their ranges.

        A sufficient reason: as long as its features keep their values, every input within the
        ranges gets the same label, and none of the features can be left out. Ranges are those of
        the features and of constraints such as `Bounds`, `OneOf` or `within_data(X)`; constraints
        such as ``"a + b <= 3"``, which limit the others further, are named. Constraints on changes
        (`Freeze`, `Increase`, `AtMost`, ``original(f)``, ...), `Plausible`, the margin and the
        confidence play no part. A `time_limit` is one for the whole reason: what is not proved by
        then stays in it, or is said to be open by its status.

        Parameters
        ----------
        x : array-like of shape (d,), mapping from feature name to value, or row of a table
            The input, within the ranges.
        order : sequence of str or int, optional
            Features that are to be in the reason rather than others, the first ones first; then
            all others in the order of the columns.

        Returns
        -------
        Reasons

        Examples
        --------
        >>> import counterlvq as clvq
        >>> table = [[1.0, 1.0], [2.0, 0.0], [6.0, 3.0], [5.0, 2.0]]
        >>> model = clvq.PrototypeModel([[1, 1], [5, 2]], ["no", "yes"], None, ["pay", "age"])
        >>> explainer = clvq.Explainer(model, constraints=clvq.within_data(table))
        >>> why = explainer.reasons([1.0, 1.0])
        >>> why.features
        ('pay',)
        >>> why.witnesses["pay"].text()
        'The answer would have been yes if pay were 2.13 higher (3.13 instead of 1).'
        """
        with told_if_too_large("reasons were looked for"):
            return reasons_of(self, x, order)

    def ranges(
        self,
        counterfactual: Counterfactual,
        side: str = "both",
        units: Mapping[FeatureKey, float] | None = None,
    ) -> Ranges:
        """Widen an answer to ranges, in which every combination of values is an answer, too.

        For each feature that changes an interval, or a set of levels or whole numbers, which holds
        the answer's own value; all others stay as they are in the answer. Under a shared metric
        only. The closest answer lies at the edge of what will do, so that its ranges usually lead
        away from the input. That every combination keeps the label and the constraints is proved
        plane by plane in rational numbers, and with a lead that rounding in the model's own
        `predict` cannot undo. No further whole number, decimal or level could be added, unless
        such rounding may decide next to the answer: smaller ranges are tried there.

        Parameters
        ----------
        counterfactual : Counterfactual
            An answer of this explainer.
        side : {"both", "away"}
            Whether ranges may reach back towards the value of the input, or lead away from it.
        units : mapping from feature to float, optional
            A program makes the widths of all ranges of numbers together as large as can be,
            counted in these units; by default in what a cost of 1 buys. With whole numbers or
            decimals its search may end before it has found the widest ones.

        Returns
        -------
        Ranges

        Examples
        --------
        >>> import counterlvq as clvq
        >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 4.0]], ["no", "yes"], None, ["a", "b"])
        >>> explainer = clvq.Explainer(model, constraints=["a <= 3", "b <= 9"])
        >>> ranges = explainer.ranges(explainer.explain([0.0, 0.0], target="yes"))
        >>> print(ranges)
        It stays yes with a at 3 and b from 1.001 to 9.
        """
        with told_if_too_large("ranges were looked for"):
            return ranges_of(self, counterfactual, side, units)

    def require_ranges(self) -> None:
        """Refuse at once what `ranges` would refuse around any answer: no row is looked at.

        Examples
        --------
        >>> import counterlvq as clvq
        >>> model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], [[[1.0]], [[2.0]]])
        >>> clvq.Explainer(model).require_ranges()
        Traceback (most recent call last):
        counterlvq.errors.NotSupportedError: ranges are for shared metrics, ...
        """
        refuse_ranges(self)
