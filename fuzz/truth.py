"""The target `truth`: is any claim about a counterfactual false?"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz import drawing, meanings, tables
from fuzz.answers import Answer
from fuzz.cases import Case
from fuzz.judging import Court
from fuzz.outcomes import Failure, Outcome

# How often each kind is drawn, by cases.
KINDS: dict[str, tuple[Callable[[np.random.Generator], Case], float]] = {
    "shared": (drawing.shared, 0.36),
    "infeasible": (drawing.infeasible, 0.12),
    "rounded": (drawing.rounded, 0.02),
    "local": (drawing.local, 0.15),
    "pipeline": (tables.pipeline, 0.12),
    "mixed": (tables.mixed, 0.14),
    "levels": (tables.mixed_pipeline, 0.07),
    "unbounded": (tables.unbounded, 0.02),
    "meanings": (meanings.meanings, 0.08),
}
WIDE = 5
# One row in so many is asked alone too.
_ALONE = 3


def draw(seed: int, number: int, only: str | None = None) -> Case:
    """Draw a case: the same one for the same seed and number."""
    rng = np.random.default_rng([seed, number])
    names = list(KINDS)
    weights = np.array([KINDS[name][1] for name in names])
    kind = str(rng.choice(names, p=weights / weights.sum()))
    return KINDS[only or kind][0](rng)


def run_case(seed: int, number: int, only: str | None = None) -> Outcome:
    """Draw a case, ask the package, and judge every answer."""
    case = draw(seed, number, only)
    out = Outcome()
    out.counts["cases"] += 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _run(case, number, out)
    return out


def _run(case: Case, number: int, out: Outcome) -> None:
    from counterlvq.errors import CounterlvqError

    def fail(fault: str, row: int, words: str, y: Any = None) -> None:
        out.failures.append(Failure(fault, case.kind, number, row, words, case.script(row, y)))

    try:
        names = case.names()
        batch = names["explainer"].explain_batch(case.table(case.X), target=case.wish())
        alone = {
            i: names["explainer"].explain(case.row(x), target=case.targets[i])
            for i, x in enumerate(case.X)
            if i % _ALONE == number % _ALONE
        }
    except CounterlvqError as error:
        out.counts[f"refused {case.kind}"] += 1
        words = f"{type(error).__name__}: {error}"
        out.remarks.append(Failure("refused", case.kind, number, 0, words, case.script(0, None)))
        return
    except Exception as error:  # noqa: BLE001 - whatever escapes is what is looked for
        place = traceback.extract_tb(error.__traceback__)[-1]
        words = (
            f"{type(error).__name__}: {error} ({place.filename.rsplit('/', 1)[-1]}:{place.lineno})"
        )
        fail("foreign exception", 0, words)
        return
    court = Court(case, names, case.plain(names))
    answers = Answer.batch(batch, case)
    singles = {i: Answer.single(cf, case) for i, cf in alone.items()}
    together = _said_together(court, answers)
    for i, in_batch in enumerate(answers):
        answer = singles.get(i, in_batch)
        _count(case, court, answer, out)
        for words in answer.differences(in_batch):
            fail("batch differs from single", i, words)
        verdict = court.judge(i, answer, together.get(i))
        for (fault, words), y in verdict.faults:
            fail(fault, i, words, y)
        for (fault, words), y in verdict.remarks:
            remark = Failure(fault, case.kind, number, i, words, case.script(i, y))
            out.remarks.append(remark)
        if verdict.truth:
            out.counts[verdict.truth] += 1
            out.counts[f"{verdict.truth} {case.kind} {answer.status}"] += 1
        elif answer.status == "unknown":
            out.counts[f"unknown though possible {case.kind}"] += 1


def _said_together(court: Court, answers: list[Answer]) -> dict[int, Any]:
    """Ask `predict` about all answers at once."""
    at = [i for i, a in enumerate(answers) if a.has_point and np.isfinite(a.values).all()]
    if not at:
        return {}
    labels = court.says(np.array([answers[i].values for i in at]))
    return dict(zip(at, labels, strict=True))


def _count(case: Case, court: Court, answer: Answer, out: Outcome) -> None:
    counts = out.counts
    counts["questions"] += 1
    counts[f"status {case.kind} {answer.status}"] += 1
    counts["mixed"] += court.plain.is_mixed
    counts["local"] += court.plain.scores.is_local
    counts["behind pipelines"] += "pipeline" in case.tags
    counts["with five features or more"] += case.X.shape[1] >= WIDE
    if answer.status == "optimal" and answer.gap > court.plain.gap:
        counts[f"optimal by resolution alone, {case.kind}"] += 1
