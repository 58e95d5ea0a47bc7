"""What another library answers is judged as ours is, and nothing that it got wrong is hidden.

The real ceml is asked by `make test-peers`; here its part is played.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from counterlvq.errors import NotSupportedError
from counterlvq_paper import peers
from counterlvq_paper.journal import journal_at
from counterlvq_paper.methods import answer
from counterlvq_paper.protocol import QUICK, case_of, fit, fold_of
from counterlvq_paper.tables import answers_of

SETTINGS = replace(QUICK, compared=5, peer_rows=5)


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Lines about answers that are made up; one data set and one model are enough."""
    monkeypatch.setattr(peers, "DATA_SETS", ("Ames",))
    monkeypatch.setattr(peers, "MODELS", ("GLVQ",))
    monkeypatch.setattr(peers, "PEER_METHODS", ("mp",))
    journal = journal_at(tmp_path, SETTINGS, {})
    fold = fold_of("Ames", 0)
    fitted = fit(fold, "GLVQ")
    journal.keep_fit("Ames", "GLVQ", 0, fitted)
    case = case_of(fold, "GLVQ", fitted, SETTINGS)
    record = answer(case, "auto", 0, 5, 1.0)
    ours = answers_of(case, np.arange(5), record.points, record)
    found = {("Ames", "GLVQ"): {"auto": ours, "global": ours}}

    def lines(points):
        told = {"points": points, "raised": [None] * 5, "seconds": [0.5] * 5}
        journal.keep("ceml-Ames-GLVQ-0-mp", told)
        return peers.peer_lines(journal, SETTINGS, found)

    return case, np.array(record.points), lines, journal, found


def test_exceptions_and_wrong_answers_are_counted(played) -> None:
    case, optima, lines, _, _ = played
    points = optima.tolist()
    points[0] = None  # it raised
    points[1] = case.rows[1].tolist()  # has no other class
    points[2][-1] += 0.01  # moves what is frozen
    points[3][-1] += 1e-5  # so little is forgiven
    (line,) = lines(points)
    assert (line.rows, line.raised, line.wrong, line.solved) == (5, 1, 2, 2)
    expected = np.abs(optima - case.rows[:5]).sum(axis=1)[3:].mean()
    assert line.mean == pytest.approx(expected)
    assert line.mean_auto == pytest.approx(expected)
    assert line.seconds == 0.5
    assert [verdict.holds for verdict in peers.peer_verdicts([line])] == [True]


def test_answer_below_the_optimum_would_be_noticed(played) -> None:
    _, optima, lines, _, found = played
    ours = found["Ames", "GLVQ"]["auto"]
    dearer = replace(ours, cost=ours.cost * 1.1)
    found["Ames", "GLVQ"]["auto"] = dearer
    (line,) = lines(optima.tolist())
    assert line.dearer_auto == 5
    assert not peers.peer_verdicts([line])[0].holds
    found["Ames", "GLVQ"]["auto"] = replace(ours, lower_bound=ours.lower_bound * 1.1)
    (line,) = lines(optima.tolist())
    assert (line.below, line.dearer_auto) == (5, 0)
    assert not peers.peer_verdicts([line])[0].holds


def test_library_that_was_not_asked_has_no_lines_and_no_verdict(played) -> None:
    _, _, _, journal, found = played
    assert peers.peer_lines(journal, SETTINGS, found) == []
    assert peers.peer_verdicts([]) == []


def test_missing_python_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_PYTHON", "3.2")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PYTHON311", raising=False)
    with pytest.raises(NotSupportedError, match=r"no python3\.2 on the path.*leave out --peers"):
        peers.environment(tmp_path)
