"""What is kept of a run, and what is not mixed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from counterlvq.errors import InvalidInputError
from counterlvq_paper.journal import Block, Record, journal_at, write_atomically
from counterlvq_paper.protocol import QUICK, Fitted

VERSIONS = {"python": "3.11", "counterlvq": "0.1.0"}
BLOCK = Block("cancer", "GLVQ", 0, "auto", 0, 2)
RECORD = Record([3, 8], [[0.1, 1 / 3], None], [0.5, 0.0], ["optimal", "unknown"], [1e-6, 2e-6],
                [0.001, None], 0.25)  # fmt: skip


def test_what_is_kept_comes_back_to_the_last_digit(tmp_path: Path) -> None:
    journal = journal_at(tmp_path, QUICK, VERSIONS)
    assert not journal.has(BLOCK.name)
    journal.keep(BLOCK.name, RECORD)
    assert journal.has(BLOCK.name)
    assert journal_at(tmp_path, QUICK, VERSIONS).record(BLOCK) == RECORD


@pytest.mark.parametrize("omegas", [None, np.eye(2) / 3, np.ones((2, 2, 2)) / 7])
def test_fitted_models_come_back(tmp_path: Path, omegas) -> None:
    journal = journal_at(tmp_path, QUICK, VERSIONS)
    fitted = Fitted(np.array([[0.1, 0.2], [0.3, 0.4]]), np.array(["a", "b"]), omegas, 0.9, 0.1)
    journal.keep_fit("cancer", "GLVQ", 0, fitted)
    again = journal.fitted("cancer", "GLVQ", 0)
    assert np.array_equal(again.prototypes, fitted.prototypes)
    assert again.labels.tolist() == ["a", "b"]
    assert again.accuracy == 0.9
    assert (again.omegas is None) if omegas is None else np.array_equal(again.omegas, omegas)


def test_other_settings_and_versions_have_a_folder_of_their_own(tmp_path: Path) -> None:
    one = journal_at(tmp_path, QUICK, VERSIONS)
    assert journal_at(tmp_path, QUICK, VERSIONS) == one
    others = [
        journal_at(tmp_path, replace(QUICK, compared=1), VERSIONS),
        journal_at(tmp_path, QUICK, VERSIONS | {"counterlvq": "0.1.1"}),
    ]
    assert len({one.folder, *(other.folder for other in others)}) == 3
    assert json.loads((one.folder / "run.json").read_text())["seed"] == 0


def test_clearing_forgets_this_run_only(tmp_path: Path) -> None:
    one = journal_at(tmp_path, QUICK, VERSIONS)
    other = journal_at(tmp_path, replace(QUICK, compared=1), VERSIONS)
    for journal in (one, other):
        journal.keep(BLOCK.name, RECORD)
    one.clear()
    assert not one.has(BLOCK.name)
    assert other.has(BLOCK.name)


def test_failed_writing_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "kept.txt"
    write_atomically(path, lambda place: place.write_text("whole"))

    def half(place: Path) -> None:
        place.write_text("ha")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        write_atomically(path, half)
    assert path.read_text() == "whole"
    assert [p.name for p in tmp_path.iterdir()] == ["kept.txt"]


def test_broken_block_is_named_with_the_way_out(tmp_path: Path) -> None:
    journal = journal_at(tmp_path, QUICK, VERSIONS)
    journal.keep(BLOCK.name, RECORD)
    journal.path(BLOCK.name).write_text('{"ids": [3,')
    with pytest.raises(InvalidInputError, match=r"auto-0000-0002\.json is not JSON .*--fresh"):
        journal.record(BLOCK)
