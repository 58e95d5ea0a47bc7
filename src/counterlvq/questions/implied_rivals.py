"""Answers kept apart from every rival, where that bends the border of a cell: by implied rivals.

What a rule such as `RelativeSimilarity` or `Drift` leaves of a cell is convex. It is found by
cutting: an ordinary question is asked, and where its answer breaks the rule, the plane that bounds
the rule there is added as one more rival prototype, which the rule implies. Each question has more
room than the rule leaves, so that its bound holds for the rule as well; the last one is the proof.
The answer itself is found in the same way under a rule that asks for a very little more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from counterlvq.certificates.cellwise import CellCertificate
from counterlvq.certificates.certificate import Stop, never
from counterlvq.certificates.implied_rivals import ImpliedCertificate
from counterlvq.certificates.unions import JoinedCertificate
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, key_of, plain, read_only
from counterlvq.numeric.tolerances import CLOSED_GAP, CUSHION_SHARES
from counterlvq.problem.similarity import KeptApart
from counterlvq.questions.protocol import WHOLE, Asks, Terms
from counterlvq.questions.unions import (
    Part,
    bounded,
    ranges_of,
    taken_back,
    united,
    verified,
    wish_of,
)
from counterlvq.results import Counterfactual
from counterlvq.search.deadline import Deadline
from counterlvq.types import Status

__all__ = ["against", "apart_answer", "apart_verified", "is_apart", "wished_firsts"]

# Ordinary questions about one prototype: several times what ten features need.
_MOST_ROUNDS = 200


def apart_answer(
    asked: Asks, rule: KeptApart, row: Floats, target: Any, terms: Terms = WHOLE
) -> Counterfactual:
    """Find the closest answer that is kept apart from every rival."""
    terms = terms._replace(deadline=terms.until(asked))
    wish = wish_of(asked, row, target)
    if not any(True for _ in wished_firsts(asked.model, wish.labels)):
        out = united(asked, _never_said(asked, wish.labels), row, wish, terms)
        return replace(out, margin=0.0, confidence=rule.words)
    deadline = terms.until(asked)
    cells = _asked_cells(asked, rule, row, wish.labels, deadline)
    best = _at_prototypes(cells, _searched(cells, deadline), deadline)
    proofs = JoinedCertificate(tuple(cell.certificate for cell in cells))
    least = min(cells, key=lambda cell: cell.bound).found
    out = replace(
        best or least,
        target=wish.labels,
        original_prediction=plain(asked.model.labels[wish.nearest]),
        certificate=proofs,
        margin=0.0,
        confidence=rule.words,
    )
    if best is None:
        return _without_answer(asked, rule, cells, out, row, terms)
    y = asked.prepared_for(row).inner(best.values)
    out = replace(out, prototype=int(asked.model.nearest_of_checked(y[None, :])[0]))
    told = asked.prepared_for(row).rules.verdict(y[None, :])
    if plain(asked.model.labels[told.prototype[0]]) != best.prediction or not told.steady[0]:
        doubt = "rounding leaves open whether what was found has the label"
        return taken_back(out, row, doubt, lambda cf: apart_verified(asked, rule, cf))
    stop = deadline.is_long_over
    proved = apart_verified(asked, rule, out, stop)
    # Too late to check all of them together, what was proved of each has to do.
    return bounded(asked, out, max(proved, least.lower_bound) if stop() else proved)


def _asked_cells(
    asked: Asks, rule: KeptApart, row: Floats, labels: Sequence[Any], deadline: Deadline
) -> list[_Cell]:
    """Ask the ordinary question about each cell, in the time there is."""
    cells = [_Cell(asked, rule, row, i, deadline) for i in wished_firsts(asked.model, labels)]
    for cell in cells:
        if cell is not cells[0] and deadline.is_over():
            cell.found = _unasked(cells[0].found)
        else:
            cell.ask()
    return cells


def _unasked(other: Counterfactual) -> Counterfactual:
    """Say of a cell what is known without any question; `other` tells the input."""
    return replace(
        other,
        values=np.full(other.original_values.shape, np.nan),
        status=Status.UNKNOWN,
        cost=np.inf,
        lower_bound=0.0,
        bound_with_margin=0.0,
        gap=np.inf,
        resolution=0.0,
        prediction=None,
        prototype=-1,
        conflict=(),
        conflict_ranges=(),
        reason="the time limit was reached",
        certificate=CellCertificate(()),
    )


def _is_enough(best: Counterfactual | None, deadline: Deadline) -> bool:
    """Whether no more is looked for: later than that only where there is nothing yet."""
    return deadline.is_long_over() if best is None else deadline.is_over()


def _searched(cells: Sequence[_Cell], deadline: Deadline) -> Counterfactual | None:
    """Cut until the closest answer in any cell keeps the rule."""
    best: Counterfactual | None = None
    for share in CUSHION_SHARES:
        for cell in sorted(cells, key=lambda cell: cell.bound):
            if _is_enough(best, deadline):
                return best
            most = np.inf if best is None else best.cost
            cell.cut(most, share)
            found = cell.answer(most, share)
            if found is not None and found.cost < most:
                best = found
        if best is None or min(cell.bound for cell in cells) >= (1.0 - CLOSED_GAP) * best.cost:
            break
    return best


def _at_prototypes(
    cells: Sequence[_Cell], best: Counterfactual | None, deadline: Deadline
) -> Counterfactual | None:
    """Look where what is left of a cell may be too small for floats, but for its prototype."""
    for cell in cells:
        if _is_enough(best, deadline):
            break
        most = np.inf if best is None else best.cost
        found = cell.at_prototype(most) if cell.bound < (1.0 - CLOSED_GAP) * most else None
        best = found if found is not None and found.cost < most else best
    return best


def wished_firsts(model: PrototypeModel, labels: Sequence[Any]) -> Iterator[int]:
    """Prototypes of wished-for labels; a copy of another one adds nothing."""
    keys = {key_of(plain(label)) for label in labels}
    for i in np.flatnonzero(model.first_copies == np.arange(model.n_prototypes)).tolist():
        if key_of(plain(model.labels[i])) in keys:
            yield i


def _never_said(asked: Asks, labels: Sequence[Any]) -> list[Part]:
    """Ordinary questions for labels of which all prototypes are copies: there is no answer."""
    bare = asked.asking_for(confidence=None, is_sure=False, margin=None)
    return [Part(bare, label) for label in labels]


def _rivals(model: PrototypeModel, i: int) -> list[int]:
    return np.flatnonzero(model.class_index != model.class_index[i]).tolist()


def _is_ruled_out(rule: KeptApart, model: PrototypeModel, i: int) -> bool:
    return any(rule.rules_out(model, i, k) for k in _rivals(model, i))


def is_apart(rule: KeptApart, model: PrototypeModel, i: int, y: Floats) -> bool:
    """Whether a point is kept apart from all rivals of a prototype, in rational numbers."""
    own = model.exact_distance(y, i)
    return all(rule.keeps(own, model.exact_distance(y, k)) for k in _rivals(model, i))


def _is_implied_by(rule: KeptApart, model: PrototypeModel, i: int, k: int, point: Floats) -> bool:
    """Whether a point is a rival that the rule implies; one on the prototype says nothing."""
    is_usable = bool(np.isfinite(point).all() and (point != model.prototypes[i]).any())
    return is_usable and rule.implies(model, i, k, point)


def against(asked: Asks, i: int, points: Floats, rivals: Sequence[int]) -> Asks:
    """Ask about one prototype against points in the place of its rivals."""
    model = asked.model
    part = PrototypeModel(
        np.concatenate([model.prototypes[i : i + 1], points]),
        model.labels[[i, *rivals]],
        model.omegas,
        model.features.names,
    )
    source = replace(
        asked._source, model=part, says=None, rounding=None, responds=None, with_gaps=None,
        behind=None,
    )  # fmt: skip
    return asked.asking_for(
        confidence=None, is_sure=False, margin=None, model=part, _source=source,
    )  # fmt: skip


@final
@dataclass(eq=False)
class _Cell:
    """What a rule leaves of the cell of one prototype, as far as cuts have shown it."""

    asked: Asks
    rule: KeptApart
    row: Floats
    prototype: int
    deadline: Deadline
    rivals: list[int] = field(init=False)
    points: Floats = field(init=False)
    found: Counterfactual = field(init=False)

    def __post_init__(self) -> None:
        self.rivals = _rivals(self.asked.model, self.prototype)
        self.points = self.asked.model.prototypes[self.rivals]

    @property
    def label(self) -> Any:
        return plain(self.asked.model.labels[self.prototype])

    @property
    def bound(self) -> float:
        """Cost that no answer in the cell undercuts, as far as was found out."""
        return self.found.lower_bound

    @property
    def certificate(self) -> ImpliedCertificate:
        return ImpliedCertificate(
            self.prototype, tuple(self.rivals), self.points, self.found.certificate
        )

    def ask(self, *, find_clash: bool = False) -> None:
        """Ask the ordinary question, against the rivals that are known."""
        asked = against(self.asked, self.prototype, self.points, self.rivals)
        terms = Terms(find_clash, deadline=self.deadline)
        found = asked.answered(self.row, self.label, terms=terms)
        if _is_ruled_out(self.rule, self.asked.model, self.prototype):
            found = taken_back(found, self.row, found.reason, lambda cf: np.inf)
            found = replace(found, status=Status.INFEASIBLE, gap=0.0, conflict=())
        self.found = found

    def find_clash(self) -> None:
        """Name fewer constraints that clash in a cell without an answer, if that can be shown."""
        before = self.found
        if not self.deadline.is_over():
            self.ask(find_clash=True)
        # In the time that was left the same may not have been shown again.
        if self.found.status is not Status.INFEASIBLE:
            self.found = before

    def cut(self, most: float, share: float) -> None:
        """Add implied rivals until an answer keeps the rule, but for a share of a very little."""
        loose = self.rule.asking(-share)
        for _ in range(_MOST_ROUNDS):
            far = self.bound >= (1.0 - CLOSED_GAP) * most
            if far or not self._cut_off(self.rule, loose):
                return
            self.ask()

    def answer(self, most: float, share: float) -> Counterfactual | None:
        """Look for an answer that keeps the rule; None if there is none that costs less."""
        inside = _Cell(self.asked, self.rule, self.row, self.prototype, self.deadline)
        inside.rivals, inside.points, inside.found = self.rivals, self.points, self.found
        tight = self.rule.asking(share)
        for _ in range(_MOST_ROUNDS):
            if not inside.found.status.has_answer or inside.bound >= most:
                return None
            y = self.asked.prepared_for(self.row).inner(inside.found.values)
            if is_apart(self.rule, self.asked.model, self.prototype, y):
                return inside.found
            if not inside._cut_off(tight, self.rule):
                return None  # out of time, or at the end of what floats can tell
            inside.ask()
        return None

    def at_prototype(self, most: float) -> Counterfactual | None:
        """Take the prototype itself for an answer, if it is one that costs at most `most`."""
        if self.found.status is Status.INFEASIBLE:
            return None
        view, i = self.asked.prepared_for(self.row), self.prototype
        values = read_only(view.outer(self.asked.model.prototypes[i], self.row))
        good, cost = self.asked._check(self.row, (self.label,), values, most)
        if not good:
            return None
        return replace(
            self.found,
            values=values,
            cost=cost,
            resolution=0.0,
            prediction=self.label,
            prototype=i,
            reason=f"{self.found.reason}; the prototype itself",
        )

    def _cut_off(self, rule: KeptApart, enough: KeptApart) -> bool:
        """Add rivals that `rule` implies where the answer breaks `enough`; whether any did."""
        found = self.found
        if not found.status.has_answer or self.deadline.is_over():
            return False
        model, i = self.asked.model, self.prototype
        y = self.asked.prepared_for(self.row).inner(found.values)
        own, more, whose = model.exact_distance(y, i), [], []
        for k in _rivals(model, i):
            if enough.keeps(own, model.exact_distance(y, k)):
                continue
            for find in (rule.implied_at, rule.looser_at):
                point = find(model, i, k, y)
                if point is not None and _is_implied_by(rule, model, i, k, point):
                    more.append(point)
                    whose.append(k)
                    break
        if not more:
            return False
        self.rivals = [*self.rivals, *whose]
        self.points = np.concatenate([self.points, more])
        return True


def _without_answer(
    asked: Asks,
    rule: KeptApart,
    cells: Sequence[_Cell],
    out: Counterfactual,
    row: Floats,
    terms: Terms,
) -> Counterfactual:
    is_shown = all(cell.found.status is Status.INFEASIBLE for cell in cells)
    if is_shown and terms.find_clash:
        for cell in cells:
            cell.find_clash()
    clashing = {id(item) for cell in cells for item in cell.found.conflict}
    # Bounds of cells were proved up to what was found there, which is no answer: again, without.
    stop = terms.until(asked).is_long_over
    known = min(cell.bound for cell in cells) if stop() else 0.0
    out = taken_back(
        out, row, out.reason,
        lambda cf: np.inf if is_shown else max(apart_verified(asked, rule, cf, stop), known),
    )  # fmt: skip
    return replace(
        out,
        status=Status.INFEASIBLE if is_shown else Status.UNKNOWN,
        gap=0.0 if is_shown else np.inf,
        conflict=tuple(item for item in asked.constraints if id(item) in clashing),
        conflict_ranges=ranges_of(cell.found for cell in cells),
        conflict_is_irreducible=is_shown
        and len(cells) == 1
        and cells[0].found.conflict_is_irreducible,
    )


def apart_verified(asked: Asks, rule: KeptApart, cf: Counterfactual, stop: Stop = never) -> float:
    """Recompute the bound of an answer: that rivals are implied, and what follows from them."""
    joined, model = cf.certificate, asked.model
    wished = list(wished_firsts(model, cf.target))
    if not wished:
        return verified(_never_said(asked, cf.target), cf)
    if type(joined) is not JoinedCertificate or len(joined.parts) != len(wished):
        return 0.0
    bounds = []
    for i, part in zip(wished, joined.parts, strict=True):
        if stop() or type(part) is not ImpliedCertificate or not _is_implied(rule, model, i, part):
            return 0.0
        if _is_ruled_out(rule, model, i):
            continue
        part_asked = against(asked, i, part.points, part.rivals)
        label = plain(model.labels[i])
        bounds.append(part_asked.verify(replace(cf, certificate=part.inner, target=(label,))))
    return min(bounds, default=np.inf)


def _is_implied(rule: KeptApart, model: PrototypeModel, i: int, part: ImpliedCertificate) -> bool:
    points, others = part.points, set(_rivals(model, i))
    if points.shape != (len(part.rivals), model.n_features) or not np.isfinite(points).all():
        return False
    if not set(part.rivals) <= others:
        return False
    return all(
        bool((point == model.prototypes[k]).all()) or rule.implies(model, i, k, point)
        for k, point in zip(part.rivals, points, strict=True)
    )
