"""What a first user writes, and what the error says to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import counterlvq as clvq

MODEL = clvq.PrototypeModel([[0.0, 0.0], [4.0, 3.0]], ["no", "yes"], feature_names=["a", "b"])
ROWS = [[0.0, 1.0], [2.0, 3.0], [3.0, 3.0]]
EXPLAINER = clvq.Explainer(MODEL)


def asked(*constraints: Any) -> clvq.Explainer:
    return clvq.Explainer(MODEL, constraints=constraints)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (
            lambda: EXPLAINER.explain([1.0, 1.0]).text(ranges=True),
            r"ranges is True; expected .* Write cf\.text\(ranges=explainer\.ranges\(cf\)\)",
        ),
        (lambda: asked("a <= 3", clvq.within_data(ROWS)), r"a star before it, as in \[\*within_da"),
        (lambda: asked(clvq.Drift(0.1)), r"Explainer\(model, confidence=Drift\(radius=0\.1\)\)"),
        (lambda: asked(clvq.Plausible), r"Write Plausible\.fit\(X, model=model\)"),
        (lambda: asked(clvq.Freeze), r"Write Freeze\(\.\.\.\)"),
        (
            lambda: clvq.Manhattan(increase=2, decrease=1),
            "increase is 2; expected a price for each",
        ),
        (lambda: clvq.Manhattan(np.float64(2)), "weights is .*; expected a price for each feature"),
        (
            lambda: clvq.within_data("loans.csv"),
            "'loans.csv', the name of a file; .* Read it first",
        ),
        (lambda: EXPLAINER.alternatives(ROWS), r"x has 3 rows; expected one\. Ask for the ways of"),
        (lambda: EXPLAINER.alternatives(np.array(ROWS)), "x has 3 rows; expected one"),
        (
            lambda: EXPLAINER.alternatives(pd.DataFrame(ROWS, columns=["a", "b"])),
            r"x has 3 rows; .* X\.iloc\[0\]",
        ),
    ],
)
def test_errors_say_what_to_write(mistake: Callable[[], Any], words: str) -> None:
    with pytest.raises(clvq.InvalidInputError, match=words):
        mistake()


def test_one_row_may_come_as_a_table() -> None:
    one = pd.DataFrame(ROWS[:1], columns=["a", "b"])
    assert len(EXPLAINER.alternatives(one)) == len(EXPLAINER.alternatives(ROWS[0])) == 2
