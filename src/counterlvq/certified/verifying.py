"""Check certificate files by the checks of this package: quickly, in floating point."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates import check_certificate as checker
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.files import certificate_of
from counterlvq.certified.reading import view_of
from counterlvq.certified.statement import numbering_of
from counterlvq.errors import CounterlvqError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import HIDDEN_BOUND
from counterlvq.prepared import Prepared

__all__ = ["LineVerdict", "verify_certificates"]

Values = dict[str, Any]
_TROUBLE = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, CounterlvqError)


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

    def __str__(self) -> str:
        if not self.verified:
            return f"REFUTED {self.line} {self.reason}"
        return (
            f"VERIFIED {self.line} cost {self.cost:.12g} bound {self.bound:.12g} gap {self.gap:g}"
        )


def verify_certificates(
    path: str | os.PathLike[str], model: str | os.PathLike[str] | None = None
) -> list[LineVerdict]:
    """Check every line of a certificate file with the checks of this package.

    Quick, in floating point with its rounding accounted for. `check_certificate.py`, which
    ``counterlvq verify --print-checker`` hands out, does the same in exact arithmetic and without
    this package.

    Parameters
    ----------
    path : str or path
        A file of `save_certificate`, `save_certificates` or ``counterlvq explain``.
    model : str or path, optional
        The file of the model, where it is kept apart.

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
    VERIFIED 2 cost 1 bound 1 gap ...
    """
    apart = None
    if model is not None:
        with open(model, encoding="utf-8") as file:
            apart = file.read(checker.LONGEST_LINE)
    with open(path, encoding="utf-8") as file:
        return list(_verdicts(checker.short_lines(file), apart))


def _verdicts(lines: Iterator[str], apart: str | None) -> Iterator[LineVerdict]:
    checked: _Checked | None = None
    for at, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            if checked is None:
                checked = _Checked.of(text, apart)
                continue
            yield checked.verdict(at, text)
        except checker.Refused as error:
            yield LineVerdict(at, False, reason=str(error))
        except _TROUBLE as error:
            words = " ".join(str(error).split())[:200]
            yield LineVerdict(at, False, reason=f"it cannot be read: {words}")
        if checked is None:
            return
    if checked is None:
        yield LineVerdict(1, False, reason="the file is empty")


@final
@dataclass(frozen=True, eq=False)
class _Clearly:
    """Whether a row has a wished-for label by more than the rounding of a foreign model."""

    model: PrototypeModel
    target_mask: NDArray[np.bool_]

    def __call__(self, y: Floats) -> bool:
        scores = self.model.distances(y[None, :])[0]
        own = float(scores[self.target_mask].min())
        other = float(scores[~self.target_mask].min(initial=np.inf))
        return own < other * (1.0 - float(checker.CLOSE))


@final
@dataclass(frozen=True, eq=False)
class _Checked:
    """The header of a file, prepared."""

    header: checker.Certificate
    view: Prepared
    views: dict[tuple[float, ...], Prepared]
    tolerance: float

    @classmethod
    def of(cls, text: str, apart: str | None) -> _Checked:
        other = None if apart is None else checker.parsed(apart)
        header = checker.Certificate(checker.parsed(text), other)
        stated = json.loads(text)
        model = stated["model"]
        if "apart" in model:
            model = json.loads(apart or "")["model"]
        view = view_of(model, stated["question"])
        return cls(header, view, {}, stated["question"]["tolerance"])

    def verdict(self, at: int, text: str) -> LineVerdict:
        """Check one line; the checker's own reader says whether it is one."""
        exact = checker.parsed(text)
        part = checker.fields(
            exact, "the line", "input target answer proof hashes made_by", "told"
        )  # fmt: skip
        if part["hashes"] != self.header.hashes:
            raise checker.Refused("it belongs to another model or question: a hash is another")
        line = json.loads(text)
        for cell in line["proof"]["cells"]:
            if cell["kind"] not in ("single", "bound", "empty", "tree"):
                raise checker.Refused(f"a cell of the kind {cell['kind']!r} is not known")
        row = np.array(line["input"], dtype=np.float64)
        view = self._seen_from(row)
        mask = np.isin(view.model.labels, line["target"])
        if not mask.any():
            raise checker.Refused("no prototype has a wished-for label")
        x = view.inner(row)
        question = view.answers.question(x, mask)
        if line.get("told") is True and isinstance(question, BoxQuestion):
            question = replace(question, says=_Clearly(view.model, mask))
        certificate = certificate_of(line["proof"], question, numbering_of(view))
        margin, answer = view.asked.margin or 0.0, line["answer"]
        if answer["row"] is None:
            return self._without(at, answer, certificate, question, margin)
        y = view.inner(np.array(answer["row"], dtype=np.float64))
        cost = self._cost(view, y, x, mask, answer["cost"], told=line.get("told", False))
        bound = min(certificate.lower_bound(question, answer["cost"], margin), answer["cost"])
        judged = view.rules.judged(y[None, :], x[None, :], bound, strict=False)
        gap, resolution = float(judged.gap[0]), float(judged.resolution[0])
        if answer["lower_bound"] > bound + HIDDEN_BOUND * cost + resolution:
            raise checker.Refused(f"the lower bound does not follow: it comes to {bound:.12g}")
        is_closed = gap <= self.tolerance + HIDDEN_BOUND or cost - bound <= resolution
        if answer["status"] == "optimal" and (not is_closed or (margin and cost)):
            raise checker.Refused(f"it is not shown to be optimal: gap {gap:.3g}")
        if answer["status"] not in ("optimal", "feasible"):
            raise checker.Refused("the status does not go with an answer")
        return LineVerdict(at, True, cost, bound, gap)

    def _seen_from(self, row: Floats) -> Prepared:
        coordinates = self.view.source.coordinates
        if not coordinates.has_levels:
            return self.view
        key = coordinates.seen_from(row).levels
        if key not in self.views:
            self.views[key] = Prepared(self.view.asked, self.view.source.seen_from(row))
        return self.views[key]

    def _without(
        self, at: int, answer: Values, certificate: Any, question: Any, margin: float
    ) -> LineVerdict:
        if answer["status"] == "infeasible":
            if not certificate.excludes_all(question, margin):
                raise checker.Refused("the proof does not show that there is no answer")
            return LineVerdict(at, True, np.inf, np.inf, 0.0)
        bound = certificate.lower_bound(question, np.inf, margin)
        if answer["status"] != "unknown" or answer["lower_bound"] > bound * (1.0 + HIDDEN_BOUND):
            raise checker.Refused(f"the lower bound does not follow: it comes to {bound:.12g}")
        return LineVerdict(at, True, np.inf, bound, np.inf)

    def _cost(
        self, view: Prepared, y: Floats, x: Floats, mask: Any, claimed: float, *, told: bool
    ) -> float:
        """Say what an answer costs that is one."""
        judged = view.rules.judged(y[None, :], x[None, :], strict=False)
        if not judged.good[0]:
            raise checker.Refused("the answer breaks a constraint")
        cost = float(judged.cost[0])
        if abs(cost - claimed) > float(checker.COST) * cost + float(judged.resolution[0]):
            raise checker.Refused(f"the answer costs {cost:.12g}, not what is claimed")
        nearest = view.model.nearest(y[None, :])
        if told:
            scores = view.model.distances(y[None, :])[0]
            own = float(scores[mask].min())
            if own - float(scores[~mask].min(initial=np.inf)) > float(checker.CLOSE) * own:
                raise checker.Refused("the answer does not have a wished-for label")
        elif not view.rules.wins(y[None, :], x[None, :], nearest, mask)[0]:
            raise checker.Refused("the answer does not have a wished-for label")
        return cost
