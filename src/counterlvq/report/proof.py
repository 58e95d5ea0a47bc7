"""What the certificate of an answer shows, in plain words: what it rules out, whom it charges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from counterlvq.certificates.boxes import BoxCertificate
from counterlvq.certificates.cellwise import CellCertificate
from counterlvq.explainer import Explainer
from counterlvq.numeric.tolerances import SHOWN_ALIKE
from counterlvq.presentation.bounds import Proved, proved
from counterlvq.presentation.numbers import bound_text, cost_text, rough_text
from counterlvq.presentation.wording import Wording, plural
from counterlvq.problem.costs import Manhattan
from counterlvq.results import Counterfactual
from counterlvq.safe_text import shown_repr
from counterlvq.types import Scores, Status

__all__ = ["Rival", "check_words", "proof_words"]


@final
@dataclass(frozen=True)
class Rival:
    """A prototype that stands against the answer, and what it charges."""

    name: str
    lead: str
    price: str


def proof_words(
    explainer: Explainer, cf: Counterfactual, wording: Wording
) -> tuple[tuple[str, ...], tuple[Rival, ...]]:
    """Say what the certificate shows, and whom it charges."""
    if cf.status.has_answer and not cf.changes:
        return ("The input has a wished-for label already, so that nothing is to be proved.",), ()
    if cf.status is Status.INFEASIBLE:
        return (
            f"That there is none is proved, not given up on: for every {cf.part} with a wished-for "
            "label there are prices at which the constraints and the rivals contradict each "
            "other, and adding them up again takes no solver.",
        ), ()
    text = bound_text(cf.lower_bound) if cf.status is Status.UNKNOWN else _printed(cf).bound
    bound = wording.number(text)
    if cf.lower_bound <= 0:
        return ("Nothing is proved about closer counterfactuals: the bound is 0.",), ()
    limits = " and keeps the constraints" if explainer.constraints else ""
    label = "still gets another label"
    if cf.margin:
        label = f"gets another label still, or a wished-for one by less than {cf.margin:g}"
    if cf.confidence:
        label = f"gets another label still, or a wished-for one without {cf.confidence}"
    meaning = (
        f"Every input that costs less than {bound} to reach{limits} {label}. "
        f"That is proved for all of them, not sampled."
    )
    rivals, words = _charges(explainer, cf, wording)
    return (meaning, _closing(cf, wording), *words), rivals


def _closing(cf: Counterfactual, wording: Wording) -> str:
    if cf.status is Status.UNKNOWN:
        return "No answer was found within the limits; there may be one above this bound."
    if cf.status is Status.OPTIMAL:
        return f"{_own_cost(cf, wording)}, so that no other can be noticeably closer."
    return (
        f"{_own_cost(cf, wording)}: a closer one, between the two, is not ruled out "
        f"({wording.number(_printed(cf).gap)} of the cost is open)."
    )


def _printed(cf: Counterfactual) -> Proved:
    return proved(cf.cost, cf.lower_bound)


def _own_cost(cf: Counterfactual, wording: Wording) -> str:
    digits = _printed(cf).digits
    own, shown = (wording.number(cost_text(cost, digits)) for cost in (cf.cost, cf.shown.cost))
    return f"The answer costs {own}" + ("" if own == shown else " before its numbers are rounded")


def _charges(
    explainer: Explainer, cf: Counterfactual, wording: Wording
) -> tuple[tuple[Rival, ...], tuple[str, ...]]:
    """Say whom the certificate charges, for the cell that the answer lies in."""
    certificate = cf.certificate
    if isinstance(certificate, BoxCertificate):
        return (), (_boxes(certificate, cf.part),)
    if not isinstance(certificate, CellCertificate):
        return (), ()
    proofs = certificate.proofs
    own = next((proof for proof in proofs if proof.prototype == cf.prototype), None)
    if own is None or not own.rivals.size:
        return (), ()
    is_score = explainer.model.meaning.scores is Scores.SHIFTED
    unit = "score" if is_score else "squared distance"
    view = explainer.prepared_for(cf.original_values)
    distance = view.model.distances(view.inner(cf.original_values)[None, :])[0]
    leads = distance[own.prototype] - distance[own.rivals]
    rivals = tuple(
        Rival(
            _named(explainer, k, ", {}"),
            *(wording.number(rough_text(float(number))) for number in (lead, price)),
        )
        for k, lead, price in zip(own.rivals.tolist(), leads, own.rival_prices, strict=True)
    )
    words = [
        f"The answer lies in the cell of {explainer.model.meaning.part} "
        f"{_named(explainer, own.prototype, ' ({})')}. "
        f"The rivals below stand in the way; a price says what one unit of {unit} less "
        f"between them would save."
    ]
    total = float(leads @ own.rival_prices)
    if isinstance(explainer.cost, Manhattan) and _close(total, cf.lower_bound):
        words.append("Leads times prices add up to the bound.")
    far = certificate.singles.prototypes.tolist()
    others = len({*far, *(proof.prototype for proof in proofs)} - {own.prototype})
    if others:
        words.append(f"{_count(others, 'other wished-for cell')} proved to be no closer alike.")
    return rivals, tuple(words)


def _named(explainer: Explainer, k: int, more: str) -> str:
    """Name a prototype: by its number and its label, or by the label alone where that is it."""
    label = shown_repr(explainer.model.labels.tolist()[k])
    if explainer.model.meaning.part in ("prototype", "training row"):
        return f"{k}{more.format(label)}"
    return label


def _boxes(forest: BoxCertificate, part: str) -> str:
    parts = sum(int((tree.feature < 0).sum()) for tree in forest.trees)
    return (
        f"The proof cuts all cheaper changes into {parts:,} box{'' if parts == 1 else 'es'} over "
        f"{len(forest.trees)} wished-for {part}{plural(part, len(forest.trees))}, with "
        f"prices for each."
    )


def _count(number_of: int, what: str) -> str:
    return f"{number_of} {what} is" if number_of == 1 else f"{number_of:,} {what}s are"


def _close(a: float, b: float) -> bool:
    """Whether two costs agree to the six digits that a page shows."""
    return abs(a - b) <= SHOWN_ALIKE * max(abs(a), abs(b))


def check_words(explainer: Explainer, cf: Counterfactual, wording: Wording) -> str:
    """Say what adding the certificate up again gave, while the page was written."""
    if not cf.status.has_answer or not cf.changes:
        return ""
    again = explainer.verify(cf)
    text, is_close = _printed(cf).again(again), _close(again, cf.lower_bound)
    same = "the same but for the last digits" if is_close else "not the bound above"
    same = "the same" if text == _printed(cf).bound else same
    return (
        f"Explainer.verify adds the prices up again without any solver; done while this page was "
        f"written, it gave {wording.number(text)}, {same}."
    )
