"""The stored run: the report and the docs say what it says, and it is a whole one."""

from __future__ import annotations

import csv

import pytest

from counterlvq_paper.protocol import DATA_SETS, FULL, MODELS
from counterlvq_paper.report import markdown
from experiments.paper.quote import PAGE, STORED, quoted, stored

ROWS = {"cancer": 569, "digits": 1797, "Ames": 2930}


def test_stored_run_is_a_full_one_and_every_claim_holds() -> None:
    results = stored()
    assert results.settings == FULL
    assert all(verdict.holds for verdict in results.verdicts)
    every = [line for line in results.lines if line.method in ("ccp", "auto")]
    assert len(every) == 2 * len(DATA_SETS) * len(MODELS)
    assert all(line.rows == ROWS[line.data] for line in every)
    assert all(line.compared >= 100 for line in results.lines)


def test_report_and_tables_are_those_of_the_stored_run() -> None:
    results = stored()
    assert (STORED.parent / "reproduction.md").read_text("utf-8") == markdown(results)
    with (STORED.parent / "table1.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["mean"]) for row in rows] == [line.mean for line in results.lines]


def test_docs_quote_the_stored_run() -> None:
    page = PAGE.read_text("utf-8")
    assert page == quoted(page, stored()), "run: python -m experiments.paper.quote"


def test_other_figures_in_the_docs_would_be_noticed() -> None:
    page = PAGE.read_text("utf-8")
    figure = f"{stored().lines[0].mean_common:.3f}"
    assert figure in page
    changed = page.replace(figure, "0.001", 1)
    assert changed != quoted(changed, stored())


def test_page_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="0 places marked 'table 1'"):
        quoted(PAGE.read_text("utf-8").replace("<!-- table 1 -->", ""), stored())
