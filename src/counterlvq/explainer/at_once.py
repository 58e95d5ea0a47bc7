"""Answer one row by the compiled kernel at once, where nothing more has to be looked into.

Rows of plain numbers under a shared metric, without a margin or a limit of time, are answered
here as a batch answers them: by one run of the kernel, one look at the constraints and one call of
the user's own `predict`. Whatever is not settled by that (an input that breaks constraints or has
its wish, no answer, a gap that stays open, a label that rounding could decide) is left to the
search that looks at everything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.cellwise import CellCertificate
from counterlvq.certificates.certificate import Certificate
from counterlvq.certificates.row_doubt import RowDoubt
from counterlvq.numeric.arrays import Floats, plain, read_only
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.memory import Kept
from counterlvq.numeric.tolerances import CLOSED_GAP, EXACT_GAP
from counterlvq.prepared import Prepared
from counterlvq.problem.data_ranges import AsSeen, outside_of
from counterlvq.problem.targets import labels_of, wished_prototypes
from counterlvq.results import Counterfactual, answer_like, later
from counterlvq.search.exact import COMPILED
from counterlvq.search.held_rows import HeldKernel
from counterlvq.search.kernel_row import KernelRow, RowFound
from counterlvq.search.strategies import Exact
from counterlvq.types import Status

__all__ = ["AnswerAtOnce", "AtOnce", "Begun", "Ready", "at_once"]

# Bytes that prepared targets may take before the oldest are forgotten.
_MOST_READY = 1 << 27
# Labels that are the same whenever they are equal, and can be looked up.
_LABELS = (str, int, bool, float, type(None))


class AnswerAtOnce(NamedTuple):
    """An answer, and the prototype that is nearest to the input."""

    answer: Counterfactual
    nearest: int


class Ready(NamedTuple):
    """One wish, prepared."""

    target_mask: NDArray[np.bool_]  # (p,)
    labels: tuple[Any, ...]
    kernel: KernelRow | None  # None for programs that the kernels do not take
    held: HeldKernel | None  # the same, for columns that are held in turn


class Begun(NamedTuple):
    """A row and a wish, looked up."""

    ready: Ready
    doubt: RowDoubt | None
    nearest: int  # prototype of the input


def at_once(asked: Any) -> AtOnce | None:
    """Prepare a `OneRow` for single rows; None where they need more than the kernel."""
    coordinates = asked._source.coordinates
    is_plain = asked.is_ordinary and not coordinates.has_levels and not coordinates.links
    has_limits = asked.margin is not None or asked.time_limit is not None
    if not is_plain or has_limits or asked.is_sure:
        return None
    view = asked.prepared_for()
    if not isinstance(view.answers, Exact):
        return None
    has_ranges = any(isinstance(item, AsSeen) for item in asked.constraints)
    has_rules = bool(asked.constraints or view.source.coordinates.own_conditions)
    return AtOnce(asked, view, view.answers, has_ranges, has_rules)


@final
@dataclass(frozen=True, eq=False)
class AtOnce:
    """Single rows of an explainer."""

    asked: Any  # a `OneRow`, which is made of this among others
    view: Prepared
    exact: Exact
    has_ranges: bool  # that rows may lie outside of
    has_rules: bool  # that an input may break
    _ready: Kept[Any, Ready] = field(init=False, default_factory=lambda: Kept(_MOST_READY))

    def __getstate__(self) -> dict[str, Any]:
        """Leave the outline behind: it is no answer, and is made again."""
        return {name: value for name, value in self.__dict__.items() if name != "_outline"}

    def answer(self, row: Floats, target: Any, given: Any = None) -> AnswerAtOnce | None:
        """Answer a row that has been read; None where more has to be looked into.

        `given` is what it was read from, if the answer is to be written like that.
        """
        asked, rules, model = self.asked, self.view.rules, self.view.model
        if self.has_ranges and outside_of(asked.constraints, asked.features, row):
            return None
        first = 0 if target is not None else int(model.nearest_of_checked(row[None, :])[0])
        ready = self._prepared(target, first)
        if ready is None or ready.kernel is None:
            return None
        doubt = None if rules.says is None else RowDoubt(rules, row[None, :])
        found = ready.kernel.find(row, doubt)
        if found is None or (self.has_rules and not found.is_input_good):
            return None
        both = self.labelled(found, ready.target_mask, doubt)
        if both is None:
            return None
        answer = self.stated(row, ready, found, *both, given)
        return AnswerAtOnce(answer, both[0])

    def begin(self, row: Floats, target: Any) -> Begun | None:
        """Look up a row that meets the constraints and lacks its wish; None for any other.

        What the user's own `predict` says of it is asked once there is something to ask about.
        """
        asked, rules, model = self.asked, self.view.rules, self.view.model
        if self.has_ranges and outside_of(asked.constraints, asked.features, row):
            return None
        X = row[None, :]
        first = 0 if target is not None else int(model.nearest_of_checked(X)[0])
        ready = self._prepared(target, first)
        if ready is None or (self.has_rules and not rules.keeps(X)[0]):
            return None
        doubt = None if rules.says is None else RowDoubt(rules, X)
        nearest = int(model.nearest_of_checked(X)[0]) if doubt is None else doubt.nearest
        if ready.target_mask[nearest]:
            return None
        if doubt is not None and not doubt.is_assured():
            return None
        return Begun(ready, doubt, nearest)

    def is_confirmed(self, row: Floats, begun: Begun) -> bool:
        """Whether the user's own `predict` says the label that was looked up."""
        return self._says(row[None, :], [begun.nearest])

    def _says(self, rows: Floats, prototypes: list[int]) -> bool:
        """Whether the user's own `predict` says the labels of prototypes."""
        says = self.view.rules.says
        if says is None:
            return True
        told: list[Any] = np.asarray(says(rows)).tolist()
        return told == [self._said[k] for k in prototypes]

    def labelled(
        self, found: RowFound, mask: NDArray[np.bool_], doubt: RowDoubt | None
    ) -> tuple[int, int] | None:
        """Name nearest prototypes of input and answer; None unless they are settled for certain."""
        rules = self.view.rules
        if doubt is None:
            nearest, prototype = rules.model.nearest_of_checked(found.pair).tolist()
            is_settled = found.gap <= CLOSED_GAP
        else:
            there = doubt.changed(found.pair[1:], found.cost, self.exact.stated)
            nearest, prototype = doubt.nearest, there.nearest
            is_settled = (
                (found.gap <= CLOSED_GAP or found.gap <= doubt.open_share(mask))
                and there.is_assured(mask)
                and doubt.is_assured()
            )
        if mask[nearest] or not mask[prototype] or not is_settled:
            return None
        return (nearest, prototype) if self._says(found.pair, [nearest, prototype]) else None

    def _prepared(self, target: Any, nearest: int) -> Ready | None:
        """Look up a wish; None for one that has to be looked into."""
        wish = plain(target)
        if type(wish) not in _LABELS:
            return None
        model = self.view.model
        key = (wish, int(model.class_index[nearest]) if wish is None else -1)

        def made() -> tuple[Ready, int]:
            mask = wished_prototypes(model, wish, nearest)
            family = self.exact.prepared(mask)[1]
            labels = labels_of(self.asked.model, mask)
            if family is None:
                return Ready(mask, labels, None, None), mask.nbytes
            kernel = KernelRow(self.view.rules, self.exact.stated, family)
            held = HeldKernel(self.exact.stated, family)
            return Ready(mask, labels, kernel, held), mask.nbytes + 2 * kernel.nbytes

        return self._ready.get(key, made)

    def stated(
        self,
        row: Floats,
        ready: Ready,
        found: RowFound,
        nearest: int,
        prototype: int,
        given: Any,
    ) -> Counterfactual:
        """State an answer, with its certificate once somebody asks for it."""
        labels = self._labels
        is_closed = found.gap <= EXACT_GAP or found.cost - found.bound <= found.resolution
        values = found.y
        assert ready.kernel is not None
        fill = None if given is None else partial(self.asked._source.like_one, given)
        proof = partial(CellCertificate, ())
        if found.trace is not None:
            proof = ready.kernel.certifying(found)
        answer: Counterfactual = answer_like(
            self._outline,
            proof,
            values=values,
            original_values=row,
            status=Status.OPTIMAL if is_closed else Status.FEASIBLE,
            cost=found.cost,
            lower_bound=found.bound,
            gap=found.gap,
            resolution=found.resolution,
            prediction=labels[prototype],
            original_prediction=labels[nearest],
            target=ready.labels,
            prototype=prototype,
            bound_with_margin=found.bound,
            as_given=None if fill is None else fill(values),
            fill=fill,
        )
        return answer

    @cached_property
    def _outline(self) -> Counterfactual:
        """What all answers have in common."""
        asked, source = self.asked, self.asked._source
        return Counterfactual(
            values=np.empty(0),
            original_values=np.empty(0),
            status=Status.UNKNOWN,
            cost=np.inf,
            lower_bound=0.0,
            gap=np.inf,
            prediction=None,
            original_prediction=None,
            target=(),
            prototype=-1,
            features=asked.features,
            reason=COMPILED,
            bound_with_margin=0.0,
            certificate=later(partial(CellCertificate, ())),
            check=asked._check,
            part=asked.model.meaning.part,
            scales=source.scales,
            respond=source.responds,
            labels=self._classes,
            constraints=asked.constraints,
        )

    def without_answer(
        self,
        begun: Begun,
        row: Floats,
        certificate: Certificate,
        conflict: tuple[Any, ...],
        is_irreducible: bool,
    ) -> Counterfactual:
        """State that there is no answer, which has been proved."""
        asked = self.asked
        return Counterfactual(
            values=read_only(np.full(row.shape, np.nan)),
            original_values=row,
            status=Status.INFEASIBLE,
            cost=np.inf,
            lower_bound=np.inf,
            gap=0.0,
            resolution=0.0,
            prediction=None,
            original_prediction=self._labels[begun.nearest],
            target=begun.ready.labels,
            prototype=-1,
            features=asked.features,
            reason=COMPILED,
            bound_with_margin=np.inf,
            conflict=conflict,
            conflict_is_irreducible=is_irreducible,
            certificate=certificate,
            part=asked.model.meaning.part,
            scales=asked._source.scales,
            labels=self._classes,
        )

    @cached_property
    def _labels(self) -> list[Any]:
        """The label of each prototype."""
        return [plain(label) for label in self.asked.model.labels]

    @cached_property
    def _said(self) -> list[Any]:
        """The same as an array of labels lists them."""
        found: list[Any] = self.view.rules.model.labels.tolist()
        return found

    @cached_property
    def _classes(self) -> tuple[Any, ...]:
        return tuple(self.asked.model.classes.tolist())
