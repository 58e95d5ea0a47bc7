"""Answers that the model is sure of: the closest in a union of parts, each an ordinary question.

The rivals of a prototype are those of any other label, wished for or not. So each wished-for label
is asked about alone (`Probability`), or each prototype (`Noise`), and the cheapest answer counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from counterlvq.errors import NotSupportedError
from counterlvq.numeric.arrays import Floats, key_of, plain
from counterlvq.pipelines.source import ExplainedModel
from counterlvq.problem.confidence import Confidence, Noise, Probability, shifted
from counterlvq.problem.similarity import KeptApart
from counterlvq.questions.apart import apart_answer
from counterlvq.questions.asking import Asks
from counterlvq.questions.unions import Part, bounded, taken_back, united, verified, wish_of
from counterlvq.results import Counterfactual

__all__ = ["confident_answer", "margin_of", "parts_of"]

_SOFT = ("RSLVQ", "MRSLVQ", "LMRSLVQ")


def margin_of(confidence: Confidence, source: ExplainedModel) -> float | None:
    """Lead over all rivals that a confidence asks for; None if it is another for each pair.

    Refuses models that the confidence means nothing to.
    """
    if isinstance(confidence, Noise):
        coordinates = source.coordinates
        confidence.refuse(source.model, not (coordinates.has_levels or coordinates.links))
        return None
    if isinstance(confidence, KeptApart):
        coordinates = source.coordinates
        confidence.refuse(source.model, not (coordinates.has_levels or coordinates.links))
        return None
    assert isinstance(confidence, Probability)
    return confidence.lead(_log_odds_per_score(source))


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
    fitted: Any = None if responds is None else responds.fitted
    last: Any = fitted.steps[-1][1] if type(fitted).__name__ == "Pipeline" else fitted
    if type(last).__name__ in _SOFT and hasattr(last, "sigma_"):
        return 0.5 / float(last.sigma_) ** 2
    for model in (source.model, *([] if responds is None else [responds.model])):
        response = model.meaning.response
        if response is not None and response.is_probability and response.threshold == 0.5:
            return response.slope
    raise NotSupportedError(
        "Probability needs a model whose probabilities follow from differences of its scores, and "
        "this one has none; expected logistic regression, discriminant analysis, RSLVQ or its kin. "
        "Ask for a margin instead."
    )


def parts_of(
    asked: Asks, confidence: Confidence, labels: Sequence[Any], *, is_strict: bool = False
) -> list[Part]:
    """Divide a question into ordinary ones.

    Leads are rounded down, so that bounds hold; or up (`is_strict`), so that answers have them.
    """
    bare = asked.asking_for(confidence=None)
    if not isinstance(confidence, Noise):
        return [Part(bare, label) for label in labels]
    model = asked.model
    # A copy of another prototype adds nothing to the union.
    firsts = np.flatnonzero(model.first_copies == np.arange(model.n_prototypes))
    wished = {key_of(plain(label)) for label in labels}
    out = []
    for i in firsts:
        label = plain(model.labels[i])
        if key_of(label) not in wished:
            continue
        rivals = np.flatnonzero(model.class_index != model.class_index[i])
        least, most = confidence.leads(model, int(i), rivals)
        part = shifted(model, int(i), rivals, most if is_strict else least)
        source = replace(
            asked._source,
            model=part,
            says=None,
            rounding=None,
            responds=None,
            with_gaps=None,
            behind=None,
        )
        out.append(Part(asked.asking_for(confidence=None, model=part, _source=source), label))
    # Labels of which all prototypes are copies are never said, as the ordinary question shows.
    return out or [Part(bare, label) for label in labels]


def confident_answer(
    asked: Asks, confidence: Confidence, row: Floats, target: Any
) -> Counterfactual:
    """Find the closest answer that the model is sure of."""
    if isinstance(confidence, KeptApart):
        return apart_answer(asked, confidence, row, target)
    wish = wish_of(asked, row, target)
    parts: list[Part] = asked.parts_for(wish.labels)
    out = united(asked, parts, row, wish)
    out = replace(out, margin=0.0, confidence=confidence.words)
    if not out.status.has_answer:
        return out
    if not _is_kept(asked, confidence, row, out):
        again = united(asked, parts_of(asked, confidence, wish.labels, is_strict=True), row, wish)
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
    return bounded(asked, out, verified(parts, out))


def _is_kept(asked: Asks, confidence: Confidence, row: Floats, found: Counterfactual) -> bool:
    """Whether the user's own model gives what was found its label, with the confidence."""
    if not isinstance(confidence, Noise):
        return True  # a lead, which was judged with all else
    y, label = asked.prepared_for(row).inner(found.values), found.prediction
    model, told = asked.model, asked.prepared_for().rules.verdict(y[None, :])
    if plain(model.labels[told.prototype[0]]) != label or not told.steady[0]:
        return False
    return any(confidence.leaves(model, int(i), y) for i in np.flatnonzero(model.labels == label))
