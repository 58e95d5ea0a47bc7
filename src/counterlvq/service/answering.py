"""Answers to requests, as plain values: the same in a thread and in a worker process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from math import inf
from threading import Lock
from time import monotonic
from typing import Any, TypeVar, final

import counterlvq as clvq
from counterlvq.certificate_files.lines import Writer
from counterlvq.certificate_files.verifying import verify_texts
from counterlvq.numeric.interpreting import compile_from_now_on
from counterlvq.numeric.lazy import cached_property
from counterlvq.presentation.bounds import shown_proof
from counterlvq.presentation.changes import said_level
from counterlvq.presentation.question import words_of
from counterlvq.problem.data_ranges import AsSeen
from counterlvq.service.guard import failure_of
from counterlvq.service.model_description import Model, described
from counterlvq.service.problems import Problem, problem_of
from counterlvq.service.questions import Question, explainer_for, target_for

__all__ = ["Answering", "Effort", "answered"]

# Explainers that are kept, for people who go on asking.
_KEPT = 32
# What takes a search of its own.
_SLOW = ("confidence", "reasons", "ranges", "alternatives")
# Numbers of model and rules that are looked at for all rows of a question: fewer are a matter of
# milliseconds, or of a second where a clash of rules is found in each row. Beyond it, a question
# is for workers, which can be ended.
_AT_ONCE = 8_000
_PROMPT = 2_000
_PER_ROW = 200  # what a row takes besides
# Seconds of an answer that is asked for to load what is needed, and how often it is.
_PASS, _PASSES = 1.0, 12
# Characters of all certificates of a request, of which each holds the model and the rules.
_MOST_TEXT = 50_000_000

Values = dict[str, Any]
_T = TypeVar("_T")


@final
class Effort(Enum):
    """How much an answer takes: nobody looks at a clock, a thread, or a worker."""

    PROMPT = auto()
    QUICK = auto()
    SEARCH = auto()


@final
@dataclass(eq=False)
class Answering:
    """Answers requests about one model.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["income"])
    >>> told = Answering(model).explain({"rows": [{"income": 1.0}], "target": "yes"}, seconds=5.0)
    >>> told["answers"][0]["status"]
    'optimal'
    """

    model: Model
    features: clvq.Features | None = None  # as the model says by default
    _explainers: OrderedDict[Question, clvq.Explainer] = field(default_factory=OrderedDict)
    _lock: Any = field(default_factory=Lock)

    def describe(self) -> Values:
        """Say what the model takes and says."""
        return described(self.model, self._features)

    @property
    def _features(self) -> clvq.Features:
        return self.model.features if self.features is None else self.features

    def warm_up(self) -> None:
        """Answer something, so that the first to ask does not wait for what is loaded once.

        Where kernels are compiled, which no limit of time ends, what is left of an answer runs out
        of time: it is asked for again until it takes as long as answers do.
        """
        compile_from_now_on()
        row = {
            told["name"]: told["levels"][0] if "levels" in told else told.get("typical", 0.0)
            for told in self.describe()["features"]
        }
        # Squared costs have kernels of their own. Where workers answer, these have their limits.
        squared = (("euclidean", _PASS / 10),) if self._is_plain else ()
        for cost, seconds in ((None, _PASS), *squared):
            asked = {"rows": [row], "text": True, "certificate": True, "cost": cost}
            for _ in range(_PASSES):
                begun = monotonic()
                with suppress(clvq.CounterlvqError, Problem):  # a row that nobody has asked for
                    self.explain(asked, seconds)
                if monotonic() - begun < 2 * _PASS:
                    break

    def effort(self, request: Mapping[str, Any]) -> Effort:
        """Say how soon answers come: at once with one metric for all, real numbers, plain rules."""
        if not self._is_plain or _wants_more(request):
            return Effort.SEARCH
        size = self.size(request)
        if size <= _PROMPT and not request.get("certificate"):
            return Effort.PROMPT
        return Effort.QUICK if size <= _AT_ONCE else Effort.SEARCH

    def size(self, request: Mapping[str, Any]) -> int:
        """How much is looked at: numbers of the model and of the rules, in each row."""
        rules = sum(len(request.get(key) or ()) for key in ("constraints", "freeze", "bounds"))
        width, prototypes = self._extent
        return (1 + len(request["rows"])) * (_PER_ROW + width * (prototypes + rules))

    @property
    def _inner(self) -> clvq.PrototypeModel:
        return self.model.model if isinstance(self.model, clvq.TableModel) else self.model

    @cached_property
    def _extent(self) -> tuple[int, int]:
        return len(self._features), self._inner.n_prototypes

    @cached_property
    def _is_plain(self) -> bool:
        return not self._inner.is_local and all(feature.is_real for feature in self._features)

    def is_prepared(self, request: Mapping[str, Any]) -> bool:
        """Whether somebody has asked the same of other rows."""
        return _question(request) in self._explainers

    def explain(self, request: Mapping[str, Any], seconds: float, most_text: float = inf) -> Values:
        """Answer the rows of a request, in their order, within so many seconds.

        Certificates that have more than `most_text` characters together are refused.
        """
        rows, question = request["rows"], _question(request)
        self._refuse_truths(rows)
        begun, limit = monotonic(), seconds / max(len(rows), 1)
        if self.effort(request) is not Effort.PROMPT:
            limit /= 2 if request.get("alternatives") else 1
            asked = question.time_limit
            limit = limit if asked is None else min(limit, asked)
            question = replace(question, time_limit=limit)
        explainer = self._explainer(question)
        target = target_for(self.model, request.get("target"))
        if request.get("ranges"):  # before any row is answered, which may take long
            _asked_for("ranges", explainer.require_ranges)
        answers = self._answered(explainer, rows, target, request.get("bad_rows", "raise"))
        told = _all_told(explainer, answers, request, most_text)
        if request.get("alternatives"):
            # Each way is a search, and all of them share what is left of the time.
            left = max(seconds - (monotonic() - begun), 0.0)
            each = min(left / (len(rows) * request["alternatives"]), limit)
            other = explainer_for(self.model, self._features, replace(question, time_limit=each))
            for cf, answer in zip(answers, told, strict=True):
                if cf.status is not clvq.Status.INVALID:
                    answer["alternatives"] = _ways(other, cf, request)
        return {"answers": told}

    def _refuse_truths(self, rows: list[Any]) -> None:
        """Refuse true and false where a number belongs: Python would take them for 1 and 0."""
        numbers = self._numbers
        for k, row in enumerate(rows):
            for name, value in row.items():
                if (value is True or value is False) and name in numbers:
                    words = f"{name!r} is {str(value).lower()}; expected a number."
                    raise Problem(422, "invalid input", words, f"rows[{k}]")

    @cached_property
    def _numbers(self) -> frozenset[str]:
        return frozenset(feature.name for feature in self._features if feature.is_number)

    def _answered(
        self, explainer: clvq.Explainer, rows: list[Any], target: Any, bad_rows: str
    ) -> list[clvq.Counterfactual]:
        try:
            if bad_rows == "raise" and len(rows) == 1:
                return [explainer.explain(rows[0], target)]
            return list(explainer.explain_batch(rows, target, on_bad_rows=bad_rows))
        except clvq.InvalidInputError as error:
            raise problem_of(error, _bad_row(explainer, rows, target)) from None
        except clvq.CounterlvqError as error:
            raise problem_of(error, "rows") from None

    def _explainer(self, question: Question) -> clvq.Explainer:
        with self._lock:
            if question in self._explainers:
                self._explainers.move_to_end(question)
                return self._explainers[question]
        made = explainer_for(self.model, self._features, question)
        with self._lock:
            self._explainers[question] = made
            while len(self._explainers) > _KEPT:
                self._explainers.popitem(last=False)
        return made

    def verify(self, request: Mapping[str, Any]) -> Values:
        """Check the lines of a certificate file."""
        apart = request.get("model")
        verdicts = verify_texts(
            request["certificate"].encode(), None if apart is None else apart.encode()
        )
        lines = [
            {
                "line": verdict.line,
                "verified": verdict.verified,
                "cost": _finite(verdict.cost),
                "lower_bound": _finite(verdict.bound),
                "reason": verdict.reason,
            }
            for verdict in verdicts
        ]
        return {"verified": all(line["verified"] for line in lines), "lines": lines}


def _wants_more(request: Mapping[str, Any]) -> bool:
    """Whether a request asks for what takes a search of its own."""
    rules = request.get("constraints") or ()
    if any(request.get(key) for key in _SLOW):
        return True
    return bool(rules) and any("if" in rule.split() for rule in rules)


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


def _bad_row(explainer: clvq.Explainer, rows: list[Any], target: Any) -> str:
    """Find the first row that cannot be read by itself."""
    for k, row in enumerate(rows):
        try:
            explainer.explain_batch([row], target)
        except clvq.CounterlvqError:
            return f"rows[{k}]"
    return "rows"


def _question(request: Mapping[str, Any]) -> Question:
    confidence = request.get("confidence") or {}
    return Question(
        cost=request.get("cost"),
        constraints=tuple(request.get("constraints") or ()),
        freeze=tuple(request.get("freeze") or ()),
        bounds=tuple((name, *ends) for name, ends in (request.get("bounds") or {}).items()),
        switches=tuple((request.get("switches") or {}).items()),
        anywhere=bool(request.get("anywhere")),
        method=request.get("method") or "auto",
        time_limit=request.get("time_limit"),
        probability=confidence.get("probability"),
        noise=confidence.get("noise"),
        norm=confidence.get("norm") or "l2",
    )


def _all_told(
    explainer: clvq.Explainer,
    answers: list[clvq.Counterfactual],
    request: Mapping[str, Any],
    most_text: float,
) -> list[Values]:
    out: list[Values] = []
    writer, written = Writer.of(explainer), 0
    for cf in answers:
        out.append(_told(explainer, writer, cf, request))
        written += len(out[-1].get("certificate") or "")
        if written > most_text:
            raise Problem(
                413,
                "too large",
                f"the certificates of {len(out):,} of {len(answers):,} rows have more than "
                f"{most_text:,} characters; expected fewer. Ask about fewer rows at a time.",
                "certificate",
            )
    return out


def _told(
    explainer: clvq.Explainer,
    writer: Writer,
    cf: clvq.Counterfactual,
    request: Mapping[str, Any],
) -> Values:
    """Say an answer as `to_dict` does, and what else was asked for."""
    told = cf.to_dict()
    is_read = cf.status is not clvq.Status.INVALID
    if request.get("text"):
        told |= _worded(cf) | {"conflict_fields": _fields(explainer, cf, request)}
    if request.get("ranges") and cf.status.has_answer and cf.changes:
        told["ranges"] = _asked_for("ranges", lambda: explainer.ranges(cf).to_dict())
    if request.get("reasons") and is_read:
        given = dict(told["original"])
        told["reasons"] = _asked_for("reasons", lambda: explainer.reasons(given).to_dict())
    if request.get("certificate") and is_read:
        told["certificate"] = _certificate(writer, cf)
    return told


def _asked_for(field: str, answer: Callable[[], _T]) -> _T:
    """Answer what a field of the request asks for besides; what cannot be had names that field."""
    try:
        return answer()
    except clvq.CounterlvqError as error:
        raise problem_of(error, field) from None


def _ways(explainer: clvq.Explainer, cf: clvq.Counterfactual, request: Mapping[str, Any]) -> Values:
    """Find ways that differ, the answer first, and say whether it is proved that these are all."""
    row, count = cf.to_dict()["original"], request["alternatives"]
    try:
        found = explainer.alternatives(row, set(cf.target), count)
    except clvq.InvalidInputError as error:
        raise problem_of(error, "alternatives") from None
    told = found.to_dict()
    if request.get("text"):
        told["ways"] = [way | _worded(one) for way, one in zip(told["ways"], found, strict=True)]
    return told


def _worded(cf: clvq.Counterfactual) -> Values:
    """Say an answer for people: the sentence, and the row whose numbers it names."""
    changes = [
        {
            "feature": change.feature,
            "label": change.spoken,
            "text": change.brief(),
            "before": said_level(change.cells()[1], change.after),
            "after": said_level(change.cells()[2], change.after),
            "by": change.cells()[3],
            "saves": cf.savings.get(change.feature),
        }
        for change in cf.shown_changes
    ]
    proof = None
    if cf.status.has_answer:
        printed = shown_proof(cf.shown.cost, cf.cost, cf.lower_bound)
        proof = {"cost": printed.cost, "bound": printed.bound, "gap": printed.gap}
    shown = cf.to_dict(shown=True)["shown"] | {"changes": changes, "proof": proof}
    return {"text": cf.text(), "shown": shown}


def _fields(
    explainer: clvq.Explainer, cf: clvq.Counterfactual, request: Mapping[str, Any]
) -> list[Values]:
    """Say of each constraint that clashes where in the request, or in the model, it stands."""
    places = [f"freeze:{name}" for name in request.get("freeze") or ()]
    places += [f"bounds:{name}" for name in request.get("bounds") or {}]
    places += [f"rule:{k}" for k in range(len(request.get("constraints") or ()))]
    own = explainer.constraints[len(places) :]
    places += [f"seen:{item.feature}" if isinstance(item, AsSeen) else "own:" for item in own]
    out = []
    for item in cf.conflict:
        at = next(k for k, known in enumerate(explainer.constraints) if known is item)
        out.append({"field": places[at], "rule": words_of(item, cf.features)})
    ranges = [{"field": "own:", "rule": words_of(item, cf.features)} for item in cf.conflict_ranges]
    return out + ranges


def _certificate(writer: Writer, cf: clvq.Counterfactual) -> str | None:
    """Write the proof as a certificate file of two lines; None where there is no format for it."""
    line = writer.text(cf)
    return None if line is None else f"{writer.header_text}\n{line}\n"


def answered(answering: Answering, kind: str, request: Values, seconds: float) -> Values:
    """Answer a request of one kind; what is wrong comes back as a value too."""
    try:
        if kind == "verify":
            return {"told": answering.verify(request)}
        return {"told": answering.explain(request, seconds, _MOST_TEXT)}
    except Problem as problem:
        return {"problem": problem.to_dict()}
    except clvq.CounterlvqError as error:
        return {"problem": problem_of(error).to_dict()}
    except Exception as error:  # noqa: BLE001 - told to whoever asked, and to the log
        words = "something failed that should not; the log of the service says where."
        told = Problem(500, "failed", words).to_dict()
        return {"problem": told, "failure": failure_of(error)}
