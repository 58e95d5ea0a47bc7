"""The parts of a union as certificate files state them, in terms of the whole model.

A part asks about a model of its own: shifted, weighed, or with implied rivals. A file states the
whole model and the rule, and a charge for a rival of the part becomes one for what the rule says
of a prototype: for its lead, for the rule itself, or for its tangent where the implied rival
touches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from counterlvq.certificates.at_most import CountedCertificate
from counterlvq.certificates.cellwise import CellCertificate, Singles
from counterlvq.certificates.implied_rivals import ImpliedCertificate
from counterlvq.certificates.unions import JoinedCertificate, StatedPart
from counterlvq.numeric.arrays import Floats, key_of, plain
from counterlvq.problem.confidence import Confidence, Noise
from counterlvq.problem.similarity import KeptApart, RelativeSimilarity
from counterlvq.questions.confidence import is_cut
from counterlvq.questions.implied_rivals import against, wished_firsts
from counterlvq.questions.noise import noise_prototypes
from counterlvq.questions.plausibility import components_of, plausible_in
from counterlvq.questions.protocol import Asks
from counterlvq.results import Counterfactual

__all__ = ["filed_parts"]

Values = dict[str, Any]


def filed_parts(
    asked: Asks, confidence: Confidence | None, cf: Counterfactual
) -> Iterator[StatedPart]:
    """State the parts of the question that an answer has certificates of."""
    model, joined = asked.model, cf.certificate
    if confidence is None:
        proofs = joined.parts if isinstance(joined, JoinedCertificate) else ()
        parts = [(label, part) for label in cf.target for part in _components(asked, label)]
        for (label, (number, part)), proof in zip(parts, proofs, strict=False):
            yield StatedPart(label, _of(asked, label), number, part, proof, dict)
        return
    if not isinstance(joined, JoinedCertificate):
        return
    if is_cut(asked, confidence):
        assert isinstance(confidence, KeptApart)
        for i, proof in zip(wished_firsts(model, cf.target), joined.parts, strict=False):
            if isinstance(proof, ImpliedCertificate):
                part = against(asked, i, proof.points, proof.rivals)
                turned = _Touched(asked, confidence, i, proof, cf.original_values)
                yield from _spread(part, plain(model.labels[i]), (i,), _whole(proof.inner), turned)
        return
    parts_of = asked.parts_for(cf.target)
    at: Sequence[tuple[int, ...]] = [_of(asked, part.label) for part in parts_of]
    if isinstance(confidence, Noise):
        at = [(i,) for i in noise_prototypes(asked, cf.target)]
    for part, prototypes, proof in zip(parts_of, at, joined.parts, strict=False):
        told: Callable[[Values], Values] = dict
        if isinstance(confidence, Noise):
            told = _Renamed(prototypes, asked)
        elif isinstance(confidence, RelativeSimilarity):
            told = _as_rules
        yield from _spread(part.asked, part.label, prototypes, proof, told)


def _whole(certificate: Any) -> Any:
    """Leave out what one rival shows by itself, which has no words where it is implied."""
    is_cells = isinstance(certificate, CellCertificate)
    if is_cells and (certificate.proofs or certificate.exclusions):
        return replace(certificate, singles=Singles.none())
    if isinstance(certificate, CountedCertificate | JoinedCertificate):
        return replace(certificate, parts=tuple(_whole(part) for part in certificate.parts))
    return certificate


def _of(asked: Asks, label: Any) -> tuple[int, ...]:
    """Prototypes of a label; copies of earlier ones need no proof."""
    return tuple(i for i in wished_firsts(asked.model, (label,)))


def _components(asked: Asks, label: Any) -> Iterator[tuple[int, Asks]]:
    plausible = plausible_in(asked.constraints)
    assert plausible is not None
    parts = components_of(asked, plausible, (label,))
    key = key_of(plain(label))
    known = {key_of(plain(other)) for other in asked.model.classes.tolist()}
    labels = [key_of(plain(each.label)) for each in plausible.ellipsoids]
    # A file has no ellipsoids of labels that the model never says.
    numbers = [n for n, at in enumerate([at for at in labels if at in known]) if at == key]
    for number, part in zip(numbers, parts, strict=True):
        yield number, part.asked


def _spread(
    asked: Asks, label: Any, prototypes: tuple[int, ...], proof: Any, turned: Any
) -> Iterator[StatedPart]:
    """State a part by itself, or by the ellipsoids of its label."""
    if plausible_in(asked.constraints) is None:
        yield StatedPart(label, prototypes, None, asked, proof, turned)
        return
    proofs = proof.parts if isinstance(proof, JoinedCertificate) else ()
    for (number, part), each in zip(_components(asked, label), proofs, strict=False):
        yield StatedPart(label, prototypes, number, part, each, turned)


def _as_rules(charges: Values) -> Values:
    """Charge for the rule itself: the part's metrics have it in them."""
    rules = {"rules": charges["rivals"]} if "rivals" in charges else {}
    return {**{key: value for key, value in charges.items() if key != "rivals"}, **rules}


@final
@dataclass(frozen=True, eq=False)
class _Renamed:
    """Charges for rivals of a model of one prototype and those of all other labels."""

    prototypes: tuple[int, ...]
    asked: Asks

    def __call__(self, charges: Values) -> Values:
        model, (i,) = self.asked.model, self.prototypes
        rivals = np.flatnonzero(model.class_index != model.class_index[i]).tolist()
        out = dict(charges)
        if "prototype" in out:
            out["prototype"] = i
        if "rivals" in out:
            out["rivals"] = [[rivals[r - 1], y] for r, y in out["rivals"]]
        if "rival" in out:
            out["rival"] = rivals[out["rival"] - 1]
        return out


@final
@dataclass(frozen=True, eq=False)
class _Touched:
    """Charges for implied rivals: for tangents of the rule, where their planes touch it."""

    asked: Asks
    rule: KeptApart
    prototype: int
    proof: ImpliedCertificate
    row: Floats

    def __call__(self, charges: Values) -> Values:
        out = {key: value for key, value in charges.items() if key != "rivals"}
        if "prototype" in out:
            out["prototype"] = self.prototype
        if "rival" in out:
            k = self.proof.rivals[out["rival"] - 1]
            # A plane of the rule's own is no rival of the file: nothing is shown by it alone.
            return {**out, "rival": k} if self._is_own(out["rival"] - 1) else {}
        rivals: dict[int, float] = {}
        tangents: list[list[Any]] = []
        view = self.asked.prepared_for(self.row)
        x = view.inner(self.row)
        for r, y in charges.get("rivals", ()):
            k, point = self.proof.rivals[r - 1], self.proof.points[r - 1]
            if self._is_own(r - 1):
                rivals[k] = rivals.get(k, 0.0) + y
                continue
            touching = self.rule.touching(self.asked.model, self.prototype, k, point)
            if touching is not None:
                at, share = touching
                tangents.append([k, y * share, (at - x).tolist()])
        if rivals:
            out["rivals"] = [[k, y] for k, y in rivals.items()]
        if tangents:
            out["tangents"] = tangents
        return out

    def _is_own(self, at: int) -> bool:
        k = self.proof.rivals[at]
        return bool((self.proof.points[at] == self.asked.model.prototypes[k]).all())
