"""One line of a certificate file: an input, its answer, and the proof."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, final

import numpy as np

from counterlvq.certificate_files.checker_walk import TROUBLE, AimedCertificate
from counterlvq.certificate_files.header import model_values, numbering_of, question_values
from counterlvq.certificate_files.parted import parted_values
from counterlvq.certificates import check_certificate as exactly
from counterlvq.certificates.at_most import CountedQuestion
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.exact_duality import rounded_down
from counterlvq.certificates.file_bounds import Told
from counterlvq.certificates.files import Numbering, proof_values
from counterlvq.certificates.questions import Question
from counterlvq.certificates.unions import StatedPart
from counterlvq.errors import NotSupportedError
from counterlvq.numeric.arrays import Floats, key_of, plain
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import CLOSED_GAP
from counterlvq.prepared import Prepared
from counterlvq.problem.confidence import Confidence
from counterlvq.results import Counterfactual
from counterlvq.types import Status

__all__ = ["Explains", "Writer", "exact", "text_of"]

Values = dict[str, Any]
# Features up to which the exact inverse of a matrix takes a fraction of a second.
QUICK_TO_INVERT = 24


class Explains(Protocol):
    """What a writer asks of an explainer."""

    def prepared_for(self, row: Floats | None = None) -> Prepared:
        """Everything seen from rows with the levels of this one."""

    def question_for(
        self, row: Floats, target: tuple[Any, ...]
    ) -> Question | BoxQuestion | CountedQuestion:
        """State what is asked about a row."""

    def for_files(self) -> Explains:
        """Return the explainer whose question a file can state."""

    @property
    def confidence(self) -> Confidence | None:
        """How sure the model has to be of an answer."""

    @property
    def is_union(self) -> bool:
        """Whether answers may lie in any of several parts."""

    @property
    def closing_gap(self) -> float:
        """Gap at which an answer counts as the closest."""

    def filed_parts(self, cf: Counterfactual) -> Iterable[StatedPart]:
        """State the parts of a union that an answer has certificates of."""

    def as_filed(self, cf: Counterfactual) -> Counterfactual:
        """Return an answer as an answer to that question."""


@final
@dataclass(eq=False)
class Writer:
    """Writes the header and the lines of one file.

    Trees, answers of foreign models, and costs for which floats work with other numbers than the
    file states, are checked in exact arithmetic before they are written: what is claimed in the
    file is what follows from the numbers in it.
    """

    explainer: Explains
    made_by: str
    lowered: list[int] = field(default_factory=list)  # lines that claim less than the answer did
    _written: int = 0
    _numbered: tuple[Prepared, Numbering] | None = None  # of the view that was asked for last

    @classmethod
    def of(cls, explainer: Explains) -> Writer:
        """Writer of this version of the package."""
        from counterlvq import __version__

        return cls(explainer, f"counterlvq {__version__}")

    @cached_property
    def model(self) -> Values:
        """What the model computes."""
        return model_values(self.explainer.prepared_for())

    @cached_property
    def question(self) -> Values:
        """What was asked."""
        view, explainer = self.explainer.prepared_for(), self.explainer
        return question_values(view, explainer.confidence, explainer.closing_gap)

    @cached_property
    def hashes(self) -> Values:
        """Fingerprints of model and question, which each line repeats."""
        return {
            "model": exactly.fingerprint(self.model),
            "question": exactly.fingerprint(self.question),
        }

    def header(self, *, apart: bool) -> Values:
        """First line of the file; with the model kept apart, its hash stands for it."""
        return {
            "format": exactly.FORMAT,
            "version": exactly.VERSION,
            "model": {"apart": self.hashes["model"]} if apart else self.model,
            "question": self.question,
        }

    def model_file(self) -> Values:
        """Content of the file of a model that is kept apart."""
        return {
            "format": exactly.FORMAT + " model", "version": exactly.VERSION, "model": self.model,
        }  # fmt: skip

    @cached_property
    def header_text(self) -> str:
        """The first line as it is written, with the model in it."""
        return text_of(self.header(apart=False))

    @cached_property
    def checker(self) -> exactly.Certificate:
        """The header as the standalone checker reads it."""
        return exactly.Certificate(exact(self.header(apart=False)))

    @cached_property
    def aiming(self) -> AimedCertificate:
        """The same, to move points of tangency with."""
        return AimedCertificate(exact(self.header(apart=False)))

    def line(self, cf: Counterfactual) -> Values:
        """Write one answer."""
        self._refuse_gaps(cf)
        view = self.explainer.prepared_for(cf.original_values)
        if self.explainer.is_union:
            out = self._claimed_in_parts(cf, view)
            self._written += 1
            return self._proved(out, view, None)
        out = self._claimed(cf, view)
        self._written += 1
        cells = out["proof"].get("cells", [{"kind": "tree"}])
        is_tree = any(cell["kind"] in ("tree", "form tree") for cell in cells)
        bound = out["answer"]["lower_bound"]
        is_more = (np.inf if bound is None else bound) > cf.lower_bound
        if not (is_tree or is_more or self._is_restated) and view.rules.says is None:
            return out
        sums = self._sums(cf, view)
        if not is_more and view.rules.says is None:
            quick = self._by_matrix(out, sums)
            if quick is not None:
                return quick
        return self._proved(out, view, sums)

    def _by_matrix(self, line: Values, sums: Told) -> Values | None:
        """Claim what floats show of tangents of the matrix; None unless that is all but its claim.

        The exact check inverts the matrix, which takes minutes for a hundred features.
        """
        answer, cells = line["answer"], line["proof"].get("cells", [])
        cap, goal = answer["cost"], answer["lower_bound"]
        kinds, template = {cell["kind"] for cell in cells}, sums.question.template
        is_plain = "bound" in kinds <= {"bound", "single"} and not template.quadrics
        is_once = len({cell["prototype"] for cell in cells}) == len(cells)
        is_wide = template.w.size > QUICK_TO_INVERT
        if not (is_wide and is_plain and is_once and cap is not None and goal):
            return None
        least = goal
        for cell in cells:
            i = cell["prototype"]
            if cell["kind"] == "single":
                if sums.single(i, cell["rival"]) < goal * (1.0 + 2.0 * CLOSED_GAP):
                    return None
                continue
            charges = {key: dict(cell.get(key, [])) for key in ("rivals", "rows")}
            told = {**charges, "point": cell.get("point", [])}
            least = min(least, sums.least_by_matrix(i, told, cap))
        is_open = cap - least > (1.0 - CLOSED_GAP) * self.question["tolerance"] * cap
        is_less = answer["status"] == "optimal" and (is_open or self.question["margin"])
        if is_less or least < goal * (1.0 - CLOSED_GAP):
            return None
        return {**line, "answer": {**answer, "lower_bound": float(least)}}

    @cached_property
    def _is_restated(self) -> bool:
        """Whether floats bound a cost by other numbers than those that a file states.

        They have a factor for a matrix, which they take tangents of, and know what the largest
        change limits from what it is, and not from rows about one more column.
        """
        cost, constraints = self.question["cost"], self.question["constraints"]
        squares = [cost["quadratic"], *(item.get("square") for item in constraints)]
        by_matrix = any(square and square["kind"] == "matrix" for square in squares)
        return by_matrix or (cost["quadratic"] is None and not all(cost["weights"]))

    def _sums(self, cf: Counterfactual, view: Prepared) -> Told:
        """State what the proof of an answer adds up."""
        question = self.explainer.question_for(cf.original_values, cf.target)
        if isinstance(question, CountedQuestion):
            question = question.holding(frozenset())
        return Told(question, numbering_of(view), view.asked.margin or 0.0)

    def text(self, cf: Counterfactual) -> str | None:
        """Write one answer as text; None where there is no format for it."""
        try:
            return text_of(self.line(cf))
        except NotSupportedError:
            return None

    def _refuse_gaps(self, cf: Counterfactual) -> None:
        """Refuse inputs of which nothing is claimed."""
        if cf.status is Status.INVALID:
            raise NotSupportedError(
                f"answer {self._written + 1} is about a row that cannot be read "
                f"({cf.reason.rstrip('.')}), so that nothing is claimed of it; expected rows that "
                f"were answered. Leave it out."
            )

    def _claimed_in_parts(self, cf: Counterfactual, view: Prepared) -> Values:
        self.explainer.for_files()  # refuses what has no kind, for those who have not asked it
        cap = cf.cost if cf.status.has_answer else np.inf
        goal = np.inf if cf.status is Status.INFEASIBLE else cf.lower_bound
        proof: Values = {"parts": []}
        if goal > 0.0:
            parts, row = self.explainer.filed_parts(cf), cf.original_values
            proof = parted_values(parts, view.model.classes.tolist(), row, cap, goal)
        return self._line(cf, view, goal, proof)

    def _claimed(self, cf: Counterfactual, view: Prepared) -> Values:
        question = self.explainer.question_for(cf.original_values, cf.target)
        margin, cap = view.asked.margin or 0.0, cf.cost if cf.status.has_answer else np.inf
        goal = np.inf if cf.status is Status.INFEASIBLE else cf.lower_bound
        if goal == 0.0 < cap:
            # A search that ran out of time has no time to add its proof up; a file has.
            goal = cf.certificate.lower_bound(question, cap, margin)
        proof: Values = {"cells": []}
        if goal > 0.0:
            numbering = self._numbering(view)
            proof = proof_values(cf.certificate, question, numbering, cap, goal, margin)
        return self._line(cf, view, goal, proof)

    def _line(self, cf: Counterfactual, view: Prepared, goal: float, proof: Values) -> Values:
        """Write an answer with a proof of a bound."""
        has_answer = cf.status.has_answer
        targets = {key_of(plain(label)) for label in cf.target}
        classes = view.model.classes.tolist()
        return {
            "input": self._row(cf.original_values, view),
            "target": [c for c, label in enumerate(classes) if key_of(plain(label)) in targets],
            "answer": {
                "row": self._row(cf.values, view) if has_answer else None,
                "cost": float(cf.cost) if has_answer else None,
                "lower_bound": float(goal) if np.isfinite(goal) else None,
                "status": str(cf.status if np.isfinite(goal) else Status.INFEASIBLE),
            },
            "proof": proof,
            "hashes": self.hashes,
            "made_by": self.made_by,
            **({"missing": np.flatnonzero(cf.missing).tolist()} if cf.missing.any() else {}),
        }

    def _numbering(self, view: Prepared) -> Numbering:
        """Return the numbers of the conditions; all rules are read for it, once for many rows."""
        if self._numbered is None or self._numbered[0] is not view:
            self._numbered = view, numbering_of(view)
        return self._numbered[1]

    def _row(self, row: Floats, view: Prepared) -> list[Any]:
        pairs = zip(row.tolist(), view.asked.features, strict=True)
        return [value if feature.is_number else int(value) for value, feature in pairs]

    def _proved(self, line: Values, view: Prepared, sums: Told | None) -> Values:
        """Claim what exact arithmetic shows; where it shows less than was claimed, less."""
        found, answer = self._shown(line), line["answer"]
        goal = (answer["lower_bound"] or 0.0) * (1.0 - CLOSED_GAP)
        if sums is not None and (found is None or found.bound < goal):
            line, found = self._aimed(line, found, sums)
        is_open = found is not None and answer["status"] == "optimal" and not found.is_closed
        if view.rules.says is not None and (found is None or is_open):
            # Its own rounding may have decided a tie, for the answer or against a cheaper row.
            told = self._shown({**line, "told": True})
            if told is not None and (found is None or told.is_closed):
                found, line = told, {**line, "told": True}
        if found is None:
            self.lowered.append(self._written)
            return self._less(line)
        if answer["status"] == "infeasible" or not isinstance(found.bound, Fraction):
            return line
        bound = min(answer["lower_bound"], rounded_down(found.bound))
        status = answer["status"]
        is_open = status == "optimal" and not found.is_closed
        if is_open or bound < answer["lower_bound"] * (1.0 - CLOSED_GAP):
            self.lowered.append(self._written)
        status = "feasible" if is_open else status
        return {**line, "answer": {**answer, "lower_bound": bound, "status": status}}

    def _aimed(
        self, line: Values, found: exactly.Verdict | None, sums: Told
    ) -> tuple[Values, exactly.Verdict | None]:
        """Move points of tangency to where they serve the checker's boxes, if that shows more."""
        try:
            aimed = {**line, "proof": self.aiming.aimed(line, exact(line), sums)}
        except (exactly.Refused, *TROUBLE):
            return line, found
        again = self._shown(aimed)
        if again is None or (found is not None and again.bound <= found.bound):
            return line, found
        return aimed, again

    def _less(self, line: Values) -> Values:
        """Claim an answer without a bound; or nothing, where it is none in exact arithmetic."""
        less = {**line["answer"], "status": "feasible", "lower_bound": 0.0}
        nothing = "parts" if self.explainer.is_union else "cells"
        out = {**line, "proof": {nothing: []}, "answer": less}
        if less["row"] is None or self._shown(out) is None:
            out["answer"] = {"row": None, "cost": None, "lower_bound": 0.0, "status": "unknown"}
        return out

    def _shown(self, line: Values) -> exactly.Verdict | None:
        try:
            return self.checker.shown(exact(line))
        except exactly.Refused:
            return None


def exact(values: Values) -> Any:
    """Read values as the checker reads the line that they are written as."""
    return exactly.parsed(text_of(values))


def text_of(values: Values) -> str:
    """One line of JSON; doubles in the fewest digits that lead back to them."""
    return json.dumps(values, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
