"""Ties on a grid that another model decides: against trying every row.

A nearest neighbour behind a scaler breaks ties of whole numbers by its rounding and in an order of
its own. A point that wins by a tie alone has no neighbour that wins.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

import counterlvq as clvq
from counterlvq.certificate_files.lines import Writer, text_of
from counterlvq.certificates import check_certificate as checker

LEVELS = ["p", "q", "r"]


def drawn(case: int):
    """A fitted pipeline over whole numbers and levels, its columns and all of its rows."""
    rng = np.random.default_rng(case)
    count, last = int(rng.integers(1, 4)), int(rng.integers(3, 7))
    numbers = [f"n{j}" for j in range(count)]
    columns = [clvq.Feature(name, kind="whole", lower=0, upper=last) for name in numbers]
    rows = pd.DataFrame(
        rng.integers(0, last + 1, (int(rng.integers(6, 13)), count)), columns=numbers
    )
    scaler = [StandardScaler(), MinMaxScaler()][case % 2]
    parts, values = [(scaler, numbers)], [range(last + 1)] * count
    if case % 3 == 0:
        rows["c"] = rng.choice(LEVELS, len(rows))
        columns.append(clvq.Feature("c", levels=LEVELS))
        parts.append((OneHotEncoder(categories=[LEVELS]), ["c"]))
        values.append(LEVELS)
    rows = rows.drop_duplicates(ignore_index=True)
    labels = np.arange(len(rows)) % 3
    pipeline = make_pipeline(make_column_transformer(*parts), KNeighborsClassifier(1))
    everything = pd.DataFrame(product(*values), columns=rows.columns)
    return pipeline.fit(rows, labels), clvq.Features(columns), everything


def costs(everything: pd.DataFrame, x: pd.DataFrame, *, largest: bool) -> np.ndarray:
    """What each row costs, seen from one of them."""
    each = [
        np.abs(everything[name] - x[name].iloc[0])
        if name != "c"
        else everything[name] != x[name].iloc[0]
        for name in everything
    ]
    table = np.column_stack(each).astype(float)
    return table.max(axis=1) if largest else table.sum(axis=1)


@pytest.mark.parametrize("case", [0, 1, 2, 3, 12, 34, 58, 85, 101])
def test_answers_are_the_cheapest_rows_that_predict_accepts(case: int) -> None:
    pipeline, columns, everything = drawn(case)
    largest, said = case % 4 != 3, pipeline.predict(everything)
    cost = clvq.Chebyshev() if largest else clvq.Manhattan()
    explainer = clvq.Explainer(pipeline, cost, features=columns)
    x = everything.iloc[[np.random.default_rng(case).integers(len(everything))]]
    for target in range(3):
        least = costs(everything, x, largest=largest)[said == target].min()
        cf = explainer.explain(x, target=target)
        assert cf.status == "optimal", (target, cf.cost, cf.lower_bound, least)
        assert cf.cost == pytest.approx(least, abs=1e-9)
        assert cf.lower_bound <= least
        assert explainer.verify(cf) >= cf.lower_bound * (1 - 1e-9)
        if "c" not in everything:  # files have no largest change beside levels
            assert verified(explainer, cf).bound >= cf.lower_bound * (1 - 1e-9)


def verified(explainer: clvq.Explainer, cf: clvq.Counterfactual) -> checker.Verdict:
    """What the standalone checker verifies of an answer."""
    writer = Writer(explainer.for_files(), "a test")
    parts = (writer.header(apart=False), writer.line(explainer.as_filed(cf)))
    ((_, found),) = checker.verdicts(iter([text_of(part).encode() for part in parts]))
    assert not isinstance(found, str), found
    return found
