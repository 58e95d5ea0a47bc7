"""What a question may ask of an explainer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from counterlvq.certificates.judged import Verdict
from counterlvq.errors import InvalidInputError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.pipelines.source import ExplainedModel
from counterlvq.prepared import Prepared
from counterlvq.problem.confidence import Confidence
from counterlvq.problem.constraints import Constraint
from counterlvq.problem.cost_terms import Prices
from counterlvq.programs.at_most import CountLimit
from counterlvq.results import Counterfactual
from counterlvq.safe_text import shown_repr
from counterlvq.search.deadline import Deadline
from counterlvq.tables.features import Features

__all__ = ["WHOLE", "Asks", "Terms", "read_whole_row", "refuse_rows"]


class Terms(NamedTuple):
    """What is wanted of a search that may be one of several."""

    # Name the constraints that clash where there is no answer; else all are said to clash.
    find_clash: bool = True
    meets_rules: bool = True  # say what it takes to meet constraints that the input breaks
    # Cost of an answer that another search has found. Dearer ones are left out; there is a
    # certificate that nothing is cheaper, and no status that says so.
    below: float = np.inf
    # What the user's own model says of the input, where another search has asked it.
    now: Verdict | None = None
    # When the time is over for all searches together; None where the limit of the explainer
    # begins with this one.
    deadline: Deadline | None = None

    def until(self, asked: Asks) -> Deadline:
        """When the time for an answer is over; the clock starts here, if nobody started it."""
        return self.deadline or Deadline.after(asked.time_limit)


WHOLE = Terms()  # of a search by itself


class Asks(Protocol):
    """The part of an `Explainer` that questions are built on."""

    @property
    def model(self) -> PrototypeModel:
        """The model that is explained, in the coordinates of the columns."""

    @property
    def features(self) -> Features:
        """The columns of the user's table."""

    @property
    def constraints(self) -> tuple[Constraint | str, ...]:
        """As the user stated them."""

    @property
    def margin(self) -> float | None:
        """The user's margin."""

    @property
    def confidence(self) -> Confidence | None:
        """What answers have to be sure of, besides their label."""

    @property
    def is_sure(self) -> bool:
        """Whether answers have a confidence."""

    @property
    def gap(self) -> float:
        """What counts as closed under local metrics."""

    @property
    def time_limit(self) -> float | None:
        """Seconds per answer."""

    @property
    def _source(self) -> ExplainedModel: ...

    @property
    def prices(self) -> Prices:
        """What changes of features cost."""

    def explain(self, x: Any, target: Any = None) -> Counterfactual:
        """Find the closest counterfactual of one input."""

    def explain_batch(self, X: Any, target: Any = None, n_jobs: int | None = None) -> Any:
        """Answer for each row of a table."""

    def verify(self, counterfactual: Counterfactual) -> float:
        """Recompute the lower bound of an answer."""

    def prepared_for(self, row: Floats | None = None) -> Prepared:
        """Everything that does not depend on a row beyond its levels."""

    def asking_for(self, **changes: Any) -> Self:
        """Return an explainer that asks something else."""

    @property
    def limits(self) -> tuple[CountLimit, ...]:
        """How many features may change."""

    def holding(self, held: frozenset[int]) -> Asks:
        """Return an explainer without limits on how many features change, but with some held."""

    def question_for(self, row: Floats, target: tuple[Any, ...]) -> Any:
        """State what is asked about a row, for whoever checks its answer."""

    def parts_for(self, labels: Sequence[Any]) -> list[Any]:
        """Divide a question with a confidence into ordinary ones."""

    def _check(
        self, row: Floats, target: tuple[Any, ...], shown: Floats, most: float
    ) -> tuple[bool, float]: ...

    def answered(self, row: Floats, target: Any, *, terms: Terms = WHOLE) -> Counterfactual:
        """Answer for a row that has been read."""


def refuse_rows(x: Any, method: str, what: str) -> None:
    """Refuse several rows, each of which has answers of its own."""
    is_nested = isinstance(x, list | tuple) and all(isinstance(row, list | tuple) for row in x)
    count = len(x) if is_nested or len(getattr(x, "shape", ())) == 2 else 1
    if count > 1:
        raise InvalidInputError(
            f"x has {count} rows; expected one. Ask for the {what} of each row by itself: those of "
            f"the first are explainer.{method}(X[0]), or of X.iloc[0] in a DataFrame."
        )


def read_whole_row(asked: Asks, x: Any, what: str) -> Floats:
    """Read one input of which no value is missing; `what` names the question in an error."""
    reading = asked._source.read_one(x)
    row: Floats = reading.values[0]
    if reading.missing is not None and reading.missing[0].any():
        at = int(reading.missing[0].argmax())
        raise InvalidInputError(
            f"there is no value in column {shown_repr(asked.features.names[at])}; expected one in "
            f"each column for {what}. Fill it in first."
        )
    return row
