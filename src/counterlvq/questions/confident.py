"""Answers that the model is sure of: the closest in a union of parts, each an ordinary question.

The rivals of a prototype are those of any other label, wished for or not. So each wished-for label
is asked about alone (`Probability`), or each prototype (`Noise`), and the cheapest answer counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from counterlvq.certificates.joined import JoinedCertificate
from counterlvq.errors import NotSupportedError
from counterlvq.numeric.arrays import Floats, key_of, plain
from counterlvq.numeric.tolerances import EXACT_GAP
from counterlvq.pipelines.source import ExplainedModel
from counterlvq.problem.confidence import Confidence, Noise, Probability, shifted
from counterlvq.problem.targets import labels_of, wished_prototypes
from counterlvq.questions.asking import Asks
from counterlvq.results import Counterfactual
from counterlvq.types import Status

__all__ = ["Part", "confident_answer", "confirmed_by", "margin_of", "parts_of", "verified"]

_SOFT = ("RSLVQ", "MRSLVQ", "LMRSLVQ")


class Part(NamedTuple):
    """An ordinary question: the closest answer of one label, by one explainer."""

    asked: Asks
    label: Any


def margin_of(confidence: Confidence, source: ExplainedModel) -> float | None:
    """Lead over all rivals that a confidence asks for; None if it is another for each pair.

    Refuses models that the confidence means nothing to.
    """
    if isinstance(confidence, Noise):
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
            asked._source, model=part, says=None, rounding=None, responds=None, with_gaps=None
        )
        out.append(Part(asked.asking_for(confidence=None, model=part, _source=source), label))
    # Labels of which all prototypes are copies are never said, as the ordinary question shows.
    return out or [Part(bare, label) for label in labels]


def confident_answer(
    asked: Asks, confidence: Confidence, row: Floats, target: Any
) -> Counterfactual:
    """Find the closest answer that the model is sure of."""
    view = asked.prepared_for(row)
    nearest = int(view.rules.verdict(view.inner(row)[None, :]).prototype[0])
    labels = labels_of(asked.model, wished_prototypes(asked.model, target, nearest))
    parts: list[Part] = asked.parts_for(labels)
    found = [part.asked.answered(row, part.label, find_clash=False) for part in parts]
    if all(cf.status is Status.INFEASIBLE for cf in found):
        found = [part.asked.answered(row, part.label) for part in parts]
    best = min(found, key=lambda cf: cf.cost)
    joined = JoinedCertificate(tuple(cf.certificate for cf in found))
    out = replace(
        best,
        target=labels,
        original_prediction=plain(asked.model.labels[nearest]),
        certificate=joined,
        margin=0.0,
        confidence=confidence.words,
    )
    if not best.status.has_answer:
        is_shown = all(cf.status is Status.INFEASIBLE for cf in found)
        clashing = {id(item): item for cf in found for item in cf.conflict}
        return replace(
            out,
            status=Status.INFEASIBLE if is_shown else Status.UNKNOWN,
            lower_bound=np.inf if is_shown else min(cf.lower_bound for cf in found),
            conflict=tuple(item for item in asked.constraints if id(item) in clashing),
            conflict_is_irreducible=is_shown and len(found) == 1 and best.conflict_is_irreducible,
        )
    if not _is_kept(asked, confidence, view.inner(best.values), best.prediction):
        stricter = parts_of(asked, confidence, labels, is_strict=True)
        again = [part.asked.answered(row, part.label, find_clash=False) for part in stricter]
        best = min(again, key=lambda cf: cf.cost)
        if not best.status.has_answer or not _is_kept(
            asked, confidence, view.inner(best.values), best.prediction
        ):
            out = replace(
                out,
                values=np.full(row.shape, np.nan),
                status=Status.UNKNOWN,
                cost=np.inf,
                gap=np.inf,
                prediction=None,
                prototype=-1,
                reason="rounding leaves open whether what was found has the confidence",
            )
            bound = verified(parts, out)
            return replace(out, lower_bound=bound, bound_with_margin=bound)
        out = replace(
            out,
            values=best.values,
            cost=best.cost,
            prediction=best.prediction,
            resolution=best.resolution,
        )
    y = view.inner(out.values)
    out = replace(out, prototype=int(asked.model.nearest_of_checked(y[None, :])[0]))
    # What is cheap in one part bounds nothing in another: each has its own proof.
    bound = min(verified(parts, out), out.cost)
    gap = 0.0 if out.cost == 0 else (out.cost - bound) / out.cost
    tolerance = asked.gap if asked.model.is_local else EXACT_GAP
    closed = gap <= tolerance or out.cost - bound <= out.resolution
    return replace(
        out,
        status=Status.OPTIMAL if closed else Status.FEASIBLE,
        lower_bound=bound,
        bound_with_margin=bound,
        gap=gap,
    )


def verified(parts: Sequence[Part], cf: Counterfactual) -> float:
    """Recompute the bound of an answer from the certificates of its parts."""
    joined = cf.certificate
    if type(joined) is not JoinedCertificate or len(joined.parts) != len(parts) or not parts:
        return 0.0
    pairs = zip(parts, joined.parts, strict=True)
    return min(
        part.asked.verify(replace(cf, certificate=certificate, target=(part.label,)))
        for part, certificate in pairs
    )


def confirmed_by(
    parts: Sequence[Part], row: Floats, shown: Floats, most: float
) -> tuple[bool, float]:
    """Whether a row is an answer with the confidence that costs at most `most`; its cost."""
    cost = np.inf
    for part in parts:
        good, cost = part.asked._check(row, (part.label,), shown, most)
        if good:
            return True, cost
    return False, cost


def _is_kept(asked: Asks, confidence: Confidence, y: Floats, label: Any) -> bool:
    """Whether the user's own model gives a point a label, with the confidence as computed."""
    if not isinstance(confidence, Noise):
        return True  # a lead, which was judged with all else
    model, told = asked.model, asked.prepared_for().rules.verdict(y[None, :])
    if plain(model.labels[told.prototype[0]]) != label or not told.steady[0]:
        return False
    return any(confidence.leaves(model, int(i), y) for i in np.flatnonzero(model.labels == label))
