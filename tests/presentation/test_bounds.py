"""Cost, bound and gap as they are printed: what is read fits, and claims no more than is true."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import counterlvq as clvq
from counterlvq.cli.text_table import listing
from counterlvq.presentation.bounds import proved


def read(text: str) -> Fraction:
    told = text.removeprefix("<")
    return Fraction(told[:-1]) / 100 if told.endswith("%") else Fraction(told)


def check_fit(cost: str, bound: str, gap: str) -> None:
    """The gap is that of the digits, rounded up; a gap too small for them may be told too."""
    share = (read(cost) - read(bound)) / read(cost)
    if share == 0:
        assert read(gap) <= Fraction(1, 10**6)
        return
    if gap.startswith("<"):
        assert share < read(gap) == Fraction("1e-06")
        return
    unit = Fraction(1, 10_000) if gap.endswith("%") else Fraction(10) ** int(gap.partition("e")[2])
    assert 0 <= read(gap) - share < unit, (cost, bound, gap)


@pytest.mark.parametrize("seed", range(3))
def test_printed_numbers_fit_and_claim_no_more_than_is_true(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for k in range(2000):
        cost = float(10 ** rng.uniform(-8, 8))
        cost = float(f"{cost:.3g}") if k % 3 == 0 else cost
        bound = cost * (1 - float(10 ** rng.uniform(-16, 0))) if k % 5 else cost
        told = proved(cost, bound)
        check_fit(*told[:3])
        assert float(told.bound) <= bound
        true = (Fraction(cost) - Fraction(bound)) / Fraction(cost)
        assert read(told.gap) >= true * (1 - Fraction(1, 10**9)), (cost, bound, told)


def test_what_people_read_of_an_answer_fits() -> None:
    rng = np.random.default_rng(1)
    names = ["a", "b", "c"]
    model = clvq.PrototypeModel(rng.normal(size=(4, 3)), ["no", "no", "yes", "yes"], None, names)
    rows = pd.DataFrame(rng.normal(size=(8, 3)), columns=names)
    explainer = clvq.Explainer(model, clvq.Manhattan([0.3, 1.7, 1 / 7]))
    batch = explainer.explain_batch(rows, target="yes")
    for cf, line in zip(batch, listing(batch).splitlines()[1:], strict=False):
        if not cf.changes:
            continue
        check_fit(*line.split()[5:8])
        told = str(cf)
        cost = re.search(r"cost +(\S+)(?: \((\S+) before rounding\))?", told)
        proof = re.search(r"costs less than (\S+) \(gap (\S+?)( before rounding)?\)", told)
        assert cost
        assert proof
        assert (cost[2] is None) == (proof[3] is None)
        check_fit(cost[2] or cost[1], proof[1], proof[2])
