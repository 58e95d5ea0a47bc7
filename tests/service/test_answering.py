"""Who answers what, and how much is written: without a service, in this process."""

from __future__ import annotations

import pytest

import counterlvq as clvq
from counterlvq.certificate_files import lines
from counterlvq.service.answering import Answering, Effort, answered
from tests.service.test_service import ROW, loan_model

RULES = [f"income + {k} * savings <= 1000000" for k in range(1, 1_001)]


def test_only_little_questions_are_answered_between_others() -> None:
    effort = Answering(loan_model()).effort
    few, many = {"rows": [ROW], "certificate": True}, {"rows": [ROW] * 1_000}
    assert effort({"rows": [ROW], "freeze": ["age"]}) is Effort.PROMPT
    assert effort(few) is Effort.QUICK
    assert effort({**few, "constraints": RULES[:5], "freeze": ["age"]}) is Effort.QUICK
    for asked in (
        many,
        {"rows": [ROW] * 20, "constraints": RULES},
        {"rows": [ROW] * 20, "freeze": ["age"] * 1_000},
        {**few, "constraints": ["income\t<= 1\tif\tage >= 3"]},
        {"rows": [ROW], "alternatives": 1},
    ):
        assert effort(asked) is Effort.SEARCH


def test_certificates_of_many_rows_read_the_rules_once(monkeypatch) -> None:
    read = []
    known = lines.numbering_of
    monkeypatch.setattr(lines, "numbering_of", lambda view: read.append(view) or known(view))
    asked = {"rows": [{**ROW, "age": 40.0 + k} for k in range(3)], "target": "accepted"}
    asked |= {"certificate": True, "constraints": RULES[:3]}
    told = Answering(loan_model()).explain(asked, 60.0)["answers"]
    assert len({answer["certificate"].splitlines()[0] for answer in told}) == 1
    assert len({answer["certificate"] for answer in told}) == 3
    assert len(read) == 1


def test_too_many_certificates_are_refused(monkeypatch) -> None:
    monkeypatch.setattr("counterlvq.service.answering._MOST_TEXT", 2_000)
    asked = {"rows": [ROW] * 3, "target": "accepted", "certificate": True}
    problem = answered(Answering(loan_model()), "explain", asked, 60.0)["problem"]
    assert (problem["status"], problem["field"]) == (413, "certificate")


def test_all_that_questions_need_is_loaded_before_the_first(monkeypatch) -> None:
    """Kernels of a cost compile for a minute, once: beyond any limit of a request."""
    asked = []
    monkeypatch.setattr(Answering, "explain", lambda _, request, *__: asked.append(request["cost"]))
    Answering(loan_model()).warm_up()
    assert asked == [None, "euclidean"]


def test_rules_are_written_as_in_python() -> None:
    asked = {"rows": [ROW], "target": "accepted", "bounds": {"income": [1200.0, 4000.5]}}
    (answer,) = Answering(loan_model()).explain(asked, 60.0)["answers"]
    rule = clvq.Bounds("income", 1200, 4000.5)
    cf = clvq.Explainer(loan_model(), constraints=[rule]).explain(ROW, "accepted")
    assert cf.broken
    assert answer == cf.to_dict()


@pytest.mark.parametrize("seconds", [1e308, 0.0])
def test_any_time_limit_is_a_time(seconds) -> None:
    asked = {"rows": [ROW], "target": "accepted", "time_limit": seconds}
    (answer,) = Answering(loan_model()).explain(asked, 60.0)["answers"]
    assert answer["status"] in ("optimal", "feasible", "unknown")


def test_ranges_are_refused_before_anything_is_answered(monkeypatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a row was answered")

    for name in ("explain", "explain_batch"):
        monkeypatch.setattr(clvq.Explainer, name, never)
    names = ["income", "savings"]
    metrics = [[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.0]]]
    local = clvq.PrototypeModel([[0.0, 0.0], [4.0, 4.0]], ["no", "yes"], metrics, names)
    shared = clvq.PrototypeModel([[0.0, 0.0], [4.0, 4.0]], ["no", "yes"], None, names)
    asked = {"rows": [{"income": 1.0, "savings": 1.0}] * 3, "target": "yes", "ranges": True}
    sure = {**asked, "confidence": {"noise": 0.1}}
    for model, request in ((local, asked), (shared, sure)):
        problem = answered(Answering(model), "explain", request, 60.0)["problem"]
        assert (problem["status"], problem["field"]) == (422, "ranges")
        assert problem["detail"].startswith("ranges ")
