"""Answer one row by the compiled kernel at once, where nothing more has to be looked into.

Rows of plain numbers under a shared metric, without a margin or a limit of time, are answered
here as a batch answers them: by one run of the kernel, one look at the constraints and one call of
the user's own `predict`. Whatever is not settled by that (an input that breaks constraints or has
its wish, no answer, a gap that stays open, a label that rounding could decide) is left to the
search that looks at everything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.row_doubt import RowDoubt
from counterlvq.numeric.arrays import Floats, plain
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.memory import Kept
from counterlvq.numeric.tolerances import CLOSED_GAP, EXACT_GAP
from counterlvq.prepared import Prepared
from counterlvq.problem.data_ranges import AsSeen, outside_of
from counterlvq.problem.targets import labels_of, wished_prototypes
from counterlvq.results import Counterfactual, later
from counterlvq.search.exact import COMPILED
from counterlvq.search.kernel_row import KernelRow, RowFound
from counterlvq.search.strategies import Exact
from counterlvq.types import Status

__all__ = ["AnswerAtOnce", "AtOnce", "at_once"]

# Bytes that prepared targets may take before the oldest are forgotten.
_MOST_READY = 1 << 27
# Labels that are the same whenever they are equal, and can be looked up.
_LABELS = (str, int, bool, float, type(None))


class AnswerAtOnce(NamedTuple):
    """An answer, and the prototype that is nearest to the input."""

    answer: Counterfactual
    nearest: int


class _Ready(NamedTuple):
    """One wish, prepared."""

    target_mask: NDArray[np.bool_]  # (p,)
    labels: tuple[Any, ...]
    kernel: KernelRow | None  # None for programs that the kernels do not take


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
    _ready: Kept[Any, _Ready] = field(init=False, default_factory=lambda: Kept(_MOST_READY))

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
        both = self._labelled(found, ready.target_mask, doubt)
        if both is None:
            return None
        answer = self._stated(row, ready, found, *both, given)
        return AnswerAtOnce(answer, both[0])

    def _labelled(
        self, found: RowFound, mask: NDArray[np.bool_], doubt: RowDoubt | None
    ) -> tuple[int, int] | None:
        """Nearest prototypes of input and answer; None unless they are settled for certain."""
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
        if rules.says is not None:
            told = np.asarray(rules.says(found.pair))
            if not (told == rules.model.labels[[nearest, prototype]]).all():
                return None
        return nearest, prototype

    def _prepared(self, target: Any, nearest: int) -> _Ready | None:
        """Look up a wish; None for one that has to be looked into."""
        wish = plain(target)
        if type(wish) not in _LABELS:
            return None
        model = self.view.model
        key = (wish, int(model.class_index[nearest]) if wish is None else -1)

        def made() -> tuple[_Ready, int]:
            mask = wished_prototypes(model, wish, nearest)
            family = self.exact.prepared(mask)[1]
            labels = labels_of(self.asked.model, mask)
            if family is None:
                return _Ready(mask, labels, None), mask.nbytes
            kernel = KernelRow(self.view.rules, self.exact.stated, family)
            return _Ready(mask, labels, kernel), mask.nbytes + kernel.nbytes

        return self._ready.get(key, made)

    def _stated(
        self,
        row: Floats,
        ready: _Ready,
        found: RowFound,
        nearest: int,
        prototype: int,
        given: Any,
    ) -> Counterfactual:
        asked, source, labels = self.asked, self.asked._source, self._labels
        is_closed = found.gap <= EXACT_GAP or found.cost - found.bound <= found.resolution
        values = found.y
        assert ready.kernel is not None
        return Counterfactual(
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
            features=asked.features,
            reason=COMPILED,
            bound_with_margin=found.bound,
            certificate=later(ready.kernel.certifying(found)),
            as_given=None if given is None else source.like(given, values[None, :]),
            check=asked._check,
            part=asked.model.meaning.part,
            scales=source.scales,
            respond=source.responds,
            labels=self._classes,
            constraints=asked.constraints,
        )

    @cached_property
    def _labels(self) -> list[Any]:
        """The label of each prototype."""
        return [plain(label) for label in self.asked.model.labels]

    @cached_property
    def _classes(self) -> tuple[Any, ...]:
        return tuple(self.asked.model.classes.tolist())
