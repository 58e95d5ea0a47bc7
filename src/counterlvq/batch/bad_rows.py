"""Rows of a batch that cannot be read: told apart, and all others answered without them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.batch.engine import Table
from counterlvq.errors import InvalidInputError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, told
from counterlvq.problem.constraints import Constraint
from counterlvq.problem.targets import labels_of, wished_prototypes
from counterlvq.results import Counterfactual
from counterlvq.tables.features import Features
from counterlvq.types import Status

__all__ = ["OnBadRows", "WithBadRows", "checked_on_bad_rows", "spread"]


class OnBadRows(StrEnum):
    """What to do about rows that cannot be read; members equal their lower-case names."""

    RAISE = "raise"
    REPORT = "report"


def checked_on_bad_rows(given: Any) -> OnBadRows:
    """Read what the user says."""
    try:
        return OnBadRows(given)
    except ValueError:
        known = ", ".join(repr(str(item)) for item in OnBadRows)
        raise InvalidInputError(
            f"on_bad_rows is {told(given)}; expected one of: {known}."
        ) from None


def spread(table: Table, good: NDArray[np.int64], count: int, width: int) -> Table:
    """Put the answers of good rows among others, which are invalid."""
    out = Table.blank(count, width)
    out.clear(slice(None))
    out.mark(np.arange(count), Status.INVALID)
    for name, part in vars(table).items():
        getattr(out, name)[good] = part
    return out


class Asks(Protocol):
    """Asks about one row of a batch."""

    def __call__(self, i: int) -> Counterfactual:
        """Answer a row."""

    def outline(
        self, i: int, *, nearest: int, prototype: int, **found: Any
    ) -> Counterfactual | None:
        """Say what the batch has found for it."""


@final
@dataclass(frozen=True, eq=False)
class WithBadRows:
    """Asks about one row of a batch in which some rows cannot be read."""

    ask: Asks  # of good rows, by their position among these
    places: Mapping[int, int]  # of good rows, from their position in the batch
    problems: Mapping[int, str]  # of all others
    rows: Floats  # of the batch, with NaN where nothing can be read
    wish: Callable[[int], Any]
    model: PrototypeModel
    features: Features
    constraints: tuple[Constraint | str, ...]

    def outline(self, i: int, **found: Any) -> Counterfactual | None:
        """Say what a batch has found for a row; None where more has to be known for that."""
        return self.ask.outline(self.places[i], **found) if i in self.places else None

    def __call__(self, i: int) -> Counterfactual:
        """Answer a row, or say why it cannot be."""
        if i in self.places:
            return self.ask(self.places[i])
        wish = self.wish(i)
        target: tuple[Any, ...] = ()
        if wish is not None:  # what another label is, is not known of such a row
            target = labels_of(self.model, wished_prototypes(self.model, wish, -1))
        return Counterfactual(
            values=np.full(len(self.features), np.nan),
            original_values=self.rows[i],
            status=Status.INVALID,
            cost=np.inf,
            lower_bound=0.0,
            gap=np.inf,
            prediction=None,
            original_prediction=None,
            target=target,
            prototype=-1,
            features=self.features,
            reason=self.problems[i],
            bound_with_margin=0.0,
            part=self.model.meaning.part,
            labels=tuple(self.model.classes.tolist()),
            constraints=self.constraints,
        )
