"""Answers that the model is sure of: the closest in a union of parts, each an ordinary question.

The rivals of a prototype are those of any other label, wished for or not. So each wished-for label
is asked about alone (`Probability`), or each prototype (`Noise`, and `RelativeSimilarity` where it
leaves something that is not convex), and the cheapest answer counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, key_of, plain
from counterlvq.pipelines.source import ExplainedModel
from counterlvq.presentation.responses import Favour, Respond
from counterlvq.problem.confidence import Confidence, Noise, Probability
from counterlvq.problem.similarity import KeptApart, RelativeSimilarity
from counterlvq.questions.implied_rivals import (
    apart_answer,
    apart_verified,
    is_apart,
)
from counterlvq.questions.noise import has_room, noise_parts
from counterlvq.questions.protocol import WHOLE, Asks, Terms
from counterlvq.questions.unions import Part, bounded, taken_back, united, verified, wish_of
from counterlvq.results import Counterfactual
from counterlvq.safe_text import shown_repr
from counterlvq.types import Status

__all__ = [
    "confident_answer",
    "confident_verified",
    "is_cut",
    "margin_of",
    "parts_of",
    "responds_of",
]


def margin_of(confidence: Confidence, source: ExplainedModel) -> float | None:
    """Lead over all rivals that a confidence asks for; None if it is another for each pair.

    Refuses models that the confidence means nothing to.
    """
    if isinstance(confidence, Noise):
        confidence.refuse(source.model, source.coordinates)
        return None
    if isinstance(confidence, KeptApart):
        confidence.refuse(source.model, source.coordinates.other_columns(with_steps=False))
        return None
    assert isinstance(confidence, Probability)
    return confidence.lead(_log_odds_per_score(source))


def _has_numbers_only(source: ExplainedModel) -> bool:
    return not (source.coordinates.has_levels or source.coordinates.links)


def is_cut(asked: Asks, confidence: Confidence) -> bool:
    """Whether answers are found by cutting, see `counterlvq.questions.implied_rivals`."""
    return isinstance(confidence, KeptApart) and confidence.is_convex(
        asked.model, _has_numbers_only(asked._source)
    )


def _log_odds_per_score(source: ExplainedModel) -> float:
    """How the log odds of two classes grow with the difference of their scores."""
    classes = len(source.model.classes)
    if classes != 2:
        raise NotSupportedError(
            f"Probability is for two classes, and this model has {classes}: among more, the "
            f"probability of one depends on the scores of all others, and no single difference "
            f"decides. Ask for a margin instead, or put the other classes into one."
        )
    responds = source.responds
    for model in (source.model, *([] if responds is None else [responds.model])):
        response = model.meaning.response
        if response is None or not response.is_probability:
            continue
        if response.threshold == 0.5:
            return response.slope
        label = shown_repr(plain(source.model.classes[response.label]))
        raise NotSupportedError(
            f"Probability needs a model that says the likelier class, and this one has a threshold "
            f"of its own: it says {label} from a probability of {response.threshold!r} on. Take "
            f"the model behind the threshold. Ask for a margin instead if the threshold is to stay."
        )
    fitted: Any = None if responds is None else responds.fitted
    is_bare = fitted is None or isinstance(fitted, PrototypeModel)
    older = " (RSLVQ and its kin of older model files have lost theirs: save them again)"
    raise NotSupportedError(
        "Probability needs a model whose probabilities follow from differences of its scores, and "
        "this one has none; expected logistic regression, discriminant analysis, RSLVQ or its kin"
        f"{older if is_bare else ''}. Ask for a margin instead."
    )


def parts_of(
    asked: Asks, confidence: Confidence, labels: Sequence[Any], *, is_strict: bool = False
) -> list[Part]:
    """Divide a question into ordinary ones.

    Leads are rounded down, so that bounds hold; or up (`is_strict`), so that answers have them.
    """
    bare = asked.asking_for(confidence=None)
    if isinstance(confidence, RelativeSimilarity):
        return [_sure_part(asked, confidence, label, is_strict) for label in labels]
    if not isinstance(confidence, Noise):
        return [Part(bare, label) for label in labels]
    out = noise_parts(asked, confidence, labels, is_strict=is_strict)
    # Labels of which all prototypes are copies are never said, as the ordinary question shows.
    return out or [Part(bare, label) for label in labels]


def _sure_part(asked: Asks, rule: RelativeSimilarity, label: Any, is_strict: bool) -> Part:
    """Ask about one label under metrics that have the rule in them."""
    keys = [key_of(plain(other)) for other in asked.model.classes]
    at = keys.index(key_of(label))
    weighed = _Weighed(_eased(asked, rule, is_strict=is_strict), at)
    source = asked._source.taking(weighed, _Keeps(asked, rule, at))
    return Part(asked.asking_for(confidence=None, model=source.model, _source=source), label)


def _eased(asked: Asks, rule: RelativeSimilarity, *, is_strict: bool) -> RelativeSimilarity:
    """Ask for a very little more, if answers are to keep the rule; on a grid for less.

    There the border holds points of the grid, and rounding is not to leave them out.
    """
    if is_strict:
        return rule.asking(1.0)
    return rule if asked.prepared_for().template.is_continuous else rule.asking(-1.0)


@final
@dataclass(frozen=True, eq=False)
class _Weighed:
    """What a rule leaves of the cells of a label, as those of a model with other metrics."""

    rule: RelativeSimilarity
    label: int

    def __call__(self, model: PrototypeModel) -> PrototypeModel:
        return self.rule.weighed(model, self.label)


@final
@dataclass(frozen=True, eq=False)
class _Keeps:
    """Says a label of rows that keep a rule with it, and another one of all others."""

    asked: Asks
    rule: KeptApart
    label: int

    def __call__(self, rows: Floats) -> NDArray[Any]:
        other = 1 if self.label == 0 and len(self.asked.model.classes) > 1 else 0
        at = [self.label if self._is_kept(row) else other for row in rows]
        return np.asarray(self.asked.model.classes[at])

    def _is_kept(self, row: Floats) -> bool:
        view = self.asked.prepared_for(row)
        y, mine = view.inner(row), np.flatnonzero(view.model.class_index == self.label)
        nearest = int(mine[view.model.distances(y[None, :])[0, mine].argmin()])
        return is_apart(self.rule, view.model, nearest, y)


@final
@dataclass(frozen=True, eq=False)
class Similarity:
    """Says how similar rows are to a label beside all others: what answers are to be sure of."""

    asked: Asks
    rule: RelativeSimilarity

    def __call__(self, row: Floats, label: Any) -> tuple[str, float, float | None]:
        """Name and value at a row, and what was asked for."""
        view = self.asked.prepared_for(row)
        scores = view.model.distances(view.inner(row)[None, :])[0]
        own = np.array([key_of(known) == key_of(label) for known in view.model.labels.tolist()])
        mine, other = float(scores[own].min()), float(scores[~own].min(initial=np.inf))
        share = 1.0 if other == np.inf else (other - mine) / ((other + mine) or 1.0)
        return "relative similarity", share, self.rule.theta

    def favoured(self, row: Floats, label: Any) -> Favour | None:
        """As the model's own."""
        own = self.asked._source.responds
        return None if own is None else own.favoured(row, label)


def responds_of(asked: Asks) -> Respond | None:
    """Ask for the number behind a decision: that of the confidence, or the model's own."""
    if isinstance(asked.confidence, RelativeSimilarity):
        return Similarity(asked, asked.confidence)
    return asked._source.responds


def confident_verified(asked: Asks, confidence: Confidence, cf: Counterfactual) -> float:
    """Recompute the bound of an answer from the certificates of its parts."""
    if is_cut(asked, confidence):
        assert isinstance(confidence, KeptApart)
        return apart_verified(asked, confidence, cf)
    return verified(asked.parts_for(cf.target), cf)


def confident_answer(
    asked: Asks, confidence: Confidence, row: Floats, target: Any, terms: Terms = WHOLE
) -> Counterfactual:
    """Find the closest answer that the model is sure of, or say why there is none."""
    terms = terms._replace(deadline=terms.until(asked))
    out = _found(asked, confidence, row, target, terms)
    if out.status is not Status.INFEASIBLE or not (out.conflict or out.conflict_ranges):
        return out
    bare = asked.asking_for(constraints=out.conflict, confidence=None, is_sure=False, margin=None)
    found = bare.answered(
        row,
        list(out.target),
        terms=Terms(find_clash=False, meets_rules=False, deadline=terms.deadline),
    )
    return replace(out, conflict_has_confidence=found.status.has_answer)


def _found(
    asked: Asks, confidence: Confidence, row: Floats, target: Any, terms: Terms
) -> Counterfactual:
    """Answer by the kind of confidence."""
    if is_cut(asked, confidence):
        assert isinstance(confidence, KeptApart)
        return apart_answer(asked, confidence, row, target, terms)
    wish = wish_of(asked, row, target)
    parts: list[Part] = asked.parts_for(wish.labels)
    out = united(asked, parts, row, wish, terms)
    out = replace(out, margin=0.0, confidence=confidence.words)
    if not out.status.has_answer:
        return out
    if not _is_kept(asked, confidence, row, out):
        strict = parts_of(asked, confidence, wish.labels, is_strict=True)
        again = united(asked, strict, row, wish, terms)
        if not again.status.has_answer or not _is_kept(asked, confidence, row, again):
            doubt = "rounding leaves open whether what was found has the confidence"
            return taken_back(out, row, doubt, lambda cf: verified(parts, cf))
        # Found with a little more to spare; what bounds it are the proofs without.
        out = replace(
            out,
            values=again.values,
            cost=again.cost,
            prediction=again.prediction,
            prototype=again.prototype,
            resolution=again.resolution,
        )
    # What is cheap in one part bounds nothing in another: each has its own proof.
    closing = max(part.asked.prepared_for(row).answers.closing_gap for part in parts)
    return bounded(asked, out, verified(parts, out), closing)


def _is_kept(asked: Asks, confidence: Confidence, row: Floats, found: Counterfactual) -> bool:
    """Whether the user's own model gives what was found its label, with the confidence."""
    if isinstance(confidence, Probability):
        return True  # a lead, which was judged with all else
    view, label = asked.prepared_for(row), found.prediction
    y = view.inner(found.values)
    model, told = view.model, view.rules.verdict(y[None, :])
    if plain(model.labels[told.prototype[0]]) != label or not told.steady[0]:
        return False
    if isinstance(confidence, Noise):
        return has_room(asked, confidence, label, found.values)
    assert isinstance(confidence, KeptApart)
    same = np.flatnonzero(model.labels == label).tolist()
    return any(is_apart(confidence, model, i, y) for i in same)
