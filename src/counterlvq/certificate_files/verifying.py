"""Check certificate files by the checks of this package: quickly, in floating point."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

import numpy as np

from counterlvq.certificate_files.checker_walk import TROUBLE, QuickCertificate
from counterlvq.certificate_files.header import numbering_of
from counterlvq.certificate_files.reading import view_of
from counterlvq.certificates import check_certificate as checker
from counterlvq.certificates.exact_duality import rounded_down
from counterlvq.certificates.file_bounds import Told
from counterlvq.errors import CounterlvqError, InvalidInputError
from counterlvq.numeric.arrays import Floats, told
from counterlvq.prepared import Prepared
from counterlvq.problem.data_ranges import outside_of

__all__ = ["LineVerdict", "verify_certificates", "verify_texts"]

Values = dict[str, Any]


@final
@dataclass(frozen=True)
class LineVerdict:
    """What was found out about one line of a certificate file.

    Attributes
    ----------
    line : int
        Its number in the file; the header is line 1.
    verified : bool
    cost, bound, gap : float
        Recomputed; infinite or NaN where there is none.
    reason : str
        Why it is refuted; empty if it is not.
    is_told : bool
        Whether it rests on close calls of the user's own `predict`.
    numbers : str
        What is printed of cost, bound and gap, as the standalone checker does: the cost rounded up,
        the bound down, and the gap between the two as printed.

    Examples
    --------
    >>> print(LineVerdict(2, True, 1.5, 1.5, 0.0))
    VERIFIED 2 cost 1.5 bound 1.5 gap 0
    """

    line: int
    verified: bool
    cost: float = np.inf
    bound: float = 0.0
    gap: float = np.inf
    reason: str = ""
    is_told: bool = False
    numbers: str = ""

    def __str__(self) -> str:
        if not self.verified:
            return f"REFUTED {self.line} {self.reason}"
        shown = self.numbers or _numbers(_exact(self.cost), _exact(self.bound), self.is_told)
        return f"VERIFIED {self.line} {shown}"


def verify_certificates(
    path: str | os.PathLike[str],
    model: str | os.PathLike[str] | None = None,
    *,
    seconds: float = 600.0,
) -> list[LineVerdict]:
    """Check every line of a certificate file with the checks of this package.

    The proof is that of the file, part by part, as the standalone checker reads it. What a part
    charges for is added up in floating point, with its rounding accounted for; where that does not
    show what a line claims, and for what the answers are and cost, in rational numbers.
    `check_certificate.py`, which ``counterlvq verify --print-checker`` hands out, does it all in
    rational numbers and without this package.

    Parameters
    ----------
    path : str or path
        A file of `save_certificate`, `save_certificates` or ``counterlvq explain``.
    model : str or path, optional
        The file of the model, where it is kept apart.
    seconds : float, default 600
        The most time for one answer; one that takes more is refuted, and the reason says so.

    Returns
    -------
    list of LineVerdict

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import counterlvq as clvq
    >>> explainer = clvq.Explainer(clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "answer.jsonl"
    ...     clvq.save_certificate(explainer.explain([1.0]), file, explainer)
    ...     print(*clvq.verify_certificates(file))
    VERIFIED 2 cost 1... bound ... gap ...
    """
    apart = None
    if model is not None:
        with open(model, "rb") as file:
            apart = checker.beginning(file)
    with open(path, "rb") as file:
        return list(_verdicts(checker.short_lines(file), apart, _limit(seconds)))


def verify_texts(
    certificate: bytes, model: bytes | None = None, *, seconds: float = 600.0
) -> list[LineVerdict]:
    """Check the content of a certificate file, and of the model's, without files."""
    apart = None if model is None else checker.beginning(io.BytesIO(model))
    lines = checker.short_lines(io.BytesIO(certificate))
    return list(_verdicts(lines, apart, _limit(seconds)))


def _limit(seconds: float) -> float:
    if not seconds > 0:
        raise InvalidInputError(f"seconds is {told(seconds)}; expected a number above 0.")
    return seconds


def _verdicts(lines: Iterator[bytes], apart: bytes | None, seconds: float) -> Iterator[LineVerdict]:
    checked: _Checked | None = None
    at, is_bare = 0, True
    for at, text in enumerate(lines, 1):
        if checker.is_skipped(text):
            continue
        is_bare = is_bare and checked is None
        try:
            checker.refuse_long(text)
            if checked is None:
                checked = _Checked.of(text, apart, seconds)
                continue
            yield checked.verdict(at, text)
        except checker.Refused as error:
            is_other = checked is None and not text.lstrip().startswith(b"{")
            words = "this is no certificate file" if is_other else str(error)
            yield LineVerdict(at, False, reason=words)
        except TROUBLE as error:
            words = " ".join(str(error).split())[:200]
            yield LineVerdict(at, False, reason=f"it cannot be read: {words}")
        if checked is None:
            return
    if checked is None:
        yield LineVerdict(1, False, reason="the file is empty")
    elif is_bare:
        yield LineVerdict(at, False, reason="there is no answer in it")


@final
@dataclass(frozen=True, eq=False)
class _Checked:
    """The header of a file, prepared for checks in floating point and in rational numbers."""

    header: QuickCertificate
    view: Prepared | None  # None where the package has no words for the question
    views: dict[Any, Prepared] = field(default_factory=dict)

    @classmethod
    def of(cls, text: bytes, apart: bytes | None, seconds: float) -> _Checked:
        other = None if apart is None else checker.parsed(apart, checker.Clock(seconds))
        header = QuickCertificate(checker.parsed(text, checker.Clock(seconds)), other, seconds)
        stated = json.loads(text)
        model = stated["model"]
        if "apart" in model:
            model = json.loads(apart or b"")["model"]
        try:
            with np.errstate(all="ignore"):
                return cls(header, view_of(model, stated["question"]))
        except (CounterlvqError, MemoryError):
            return cls(header, None)

    def verdict(self, at: int, text: bytes) -> LineVerdict:
        """Check one line: the answer exactly, and the bound in floats if these are enough."""
        clock = checker.Clock(self.header.seconds)
        exact = checker.parsed(text, clock)
        line, asked = self.header.read(exact, clock)
        answer, paid = line["answer"], None
        if answer["row"] is not None:
            paid = asked.check_answer(answer["row"], answer["cost"])
        shown: checker.End = Fraction(0)
        if not asked.is_told:
            cap = np.inf if paid is None else answer["cost"]
            try:
                # Numbers of strangers may leave the range of floats, which then show nothing.
                with np.errstate(over="raise", invalid="raise", divide="raise"):
                    asked.aim(self._sums(line), answer["lower_bound"] or 0)
                    found = asked.least(line["proof"], cap, answer["status"] == "infeasible")
                shown = _exact(_float(min(found, cap)))
            except FloatingPointError:
                shown = Fraction(0)
        if asked.is_told or not self._is_enough(answer, paid, _float(shown)):
            shown = self.header.check(exact, clock).bound
        cost, bound = np.inf if paid is None else float(paid[0]), _float(shown)
        gap = 0.0 if cost <= bound else (cost - bound) / cost if paid else np.inf
        numbers = _numbers(paid[0] if paid else np.inf, shown, asked.is_told)
        return LineVerdict(at, True, cost, bound, gap, is_told=asked.is_told, numbers=numbers)

    def _is_enough(
        self, answer: Values, paid: tuple[Fraction, Fraction] | None, bound: float
    ) -> bool:
        """Whether a bound shows what a line claims, without any allowance."""
        if answer["status"] == "infeasible":
            return bound == np.inf
        if not answer["lower_bound"] <= bound:
            return False
        if answer["status"] != "optimal" or paid is None:
            return True
        (cost, blur), question = paid, self.header.question
        is_close = cost - Fraction(bound) <= max(question.tolerance * cost, blur)
        return is_close and not (question.margin and cost)

    def _sums(self, line: Values) -> Told | None:
        """State what floats can add up of a line; None where they cannot."""
        try:
            row = np.array([*map(float, line["input"])], dtype=np.float64)
            view = self._seen_from(row)
            if view is None:
                return None
            mask = np.isin(view.model.labels, line["target"])
            question = view.answers.question(view.inner(row), mask)
            return Told(question, numbering_of(view), view.asked.margin or 0.0)
        except TROUBLE:
            return None  # numbers that floats cannot hold: left to rational ones

    def _seen_from(self, row: Floats) -> Prepared | None:
        if self.view is None:
            return None
        asked, source = self.view.asked, self.view.source
        outside = outside_of(asked.constraints, asked.features, row)
        key = source.coordinates.seen_from(row).key, outside
        if key not in self.views:
            self.views[key] = Prepared(asked, source.seen_from(row), dict(outside))
        return self.views[key]


def _numbers(cost: checker.End, bound: checker.End, is_told: bool) -> str:
    return str(checker.Verdict(cost, bound, is_told))


def _exact(value: float) -> checker.End:
    return Fraction(value) if np.isfinite(value) else value


def _float(value: checker.End) -> float:
    return rounded_down(value) if isinstance(value, Fraction) else value
