"""The corpus of certificate files and their mutations, in one run: `make test-certificates`.

Where `CERTIFICATE_CORPUS` names a file, a run of everything in which nothing is wrong is stored
there as a table.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import pytest

from tests.support.certificate_corpus import (
    MUTATIONS,
    ROWS,
    SEEDS,
    Found,
    answers_of_kind,
    mutations_of_tenth,
    table,
)
from tests.support.certificate_questions import KINDS

Ledger = tuple[list[Found], Counter[str]]


@pytest.fixture(scope="module")
def ledger() -> Iterator[Ledger]:
    found, seen, start = list[Found](), Counter[str](), process_time()
    yield found, seen
    path = os.environ.get("CERTIFICATE_CORPUS")
    is_whole = [each.kind for each in found] == [*KINDS] and seen.total() == 10 * MUTATIONS
    if path and is_whole and not any(each.wrong for each in found):
        Path(path).write_text(table(found, seen, process_time() - start), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_corpus_is_verified_exactly(kind: str, tmp_path: Path, ledger: Ledger) -> None:
    """Every answer that floating point calls OPTIMAL or INFEASIBLE, in rational numbers too."""
    found = answers_of_kind(kind, tmp_path)
    ledger[0].append(found)
    print(found.row())
    assert not found.wrong
    assert found.answers == SEEDS * ROWS


@pytest.mark.slow
@pytest.mark.parametrize("tenth", range(10))
def test_five_thousand_mutated_files(tenth: int, tmp_path: Path, ledger: Ledger) -> None:
    seen = mutations_of_tenth(tenth, tmp_path)
    ledger[1].update(seen)
    print(dict(seen))
    assert seen.total() == MUTATIONS
