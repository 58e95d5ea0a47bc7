"""Tables and explainers for streams: plain numbers, and everything at once."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.compose import make_column_transformer
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq

LEVELS = ["clerk", "nurse", "pilot"]
SIZE = "größe in cm"


def plain_table(rows: int, seed: int = 0) -> pa.Table:
    """Four real columns, and a number for each row."""
    rng = np.random.default_rng(seed)
    columns = {name: rng.normal(size=rows) for name in "uvwx"}
    return pa.table({"id": np.arange(rows), **columns})


@cache
def plain_explainer() -> clvq.Explainer:
    rng = np.random.default_rng(5)
    model = clvq.PrototypeModel(
        rng.normal(size=(9, 4)),
        ["a", "b", "c"] * 3,
        omegas=rng.normal(size=(3, 4)),
        feature_names=list("uvwx"),
    )
    return clvq.Explainer(model)


@cache
def mixed_explainer() -> clvq.Explainer:
    """Explain a pipeline that sees numbers, whole numbers, decimals, levels and truth values."""
    rng = np.random.default_rng(3)
    count = 120
    frame = pd.DataFrame(
        {
            SIZE: rng.normal(170.0, 10.0, size=count),
            "cards": rng.integers(0, 9, size=count),
            "rate": np.round(rng.normal(3.0, 1.0, size=count), 2),
            "job": rng.choice(LEVELS, size=count),
            "owner": rng.choice([False, True], size=count),
        }
    )
    says = np.where(frame["cards"] + 3 * (frame["job"] == "pilot") + frame["rate"] > 7, "yes", "no")
    steps = make_column_transformer(
        (StandardScaler(), [SIZE, "cards", "rate"]),
        (OneHotEncoder(categories=[LEVELS, [False, True]]), ["job", "owner"]),
    )
    features = clvq.Features(
        [
            clvq.Feature(SIZE),
            clvq.Feature("cards", "whole", lower=0, upper=20),
            clvq.Feature("rate", decimals=2, lower=-50, upper=50),
            clvq.Feature("job", levels=LEVELS),
            clvq.Feature("owner", "boolean"),
        ]
    )
    return clvq.Explainer(
        make_pipeline(steps, NearestCentroid()).fit(frame, says), features=features
    )


def mixed_batch(rows: int, seed: int = 1) -> pa.RecordBatch:
    """Rows of all kinds; each seventh has a gap or a level that nobody knows."""
    rng = np.random.default_rng(seed)
    sizes = [None if i % 7 == 3 else float(rng.normal(170, 10)) for i in range(rows)]
    jobs = ["astronaut" if i % 7 == 5 else LEVELS[rng.integers(3)] for i in range(rows)]
    rates = [Decimal(int(k)) / 100 for k in rng.integers(0, 600, size=rows)]
    begin = dt.datetime(2024, 5, 31, 12, 30)
    return pa.record_batch(
        {
            "id": pa.array([f"ß{i}" for i in range(rows)], pa.string()),
            SIZE: pa.array(sizes, pa.float64()),
            "cards": pa.array(rng.integers(0, 9, size=rows), pa.int16()),
            "rate": pa.array(rates, pa.decimal128(8, 2)),
            "job": pa.array(jobs, pa.string()).dictionary_encode(),
            "owner": pa.array(rng.choice([False, True], size=rows), pa.bool_()),
            "when": pa.array(
                [begin + dt.timedelta(hours=i) for i in range(rows)], pa.timestamp("us", "UTC")
            ),
            "deep": pa.array(
                [[{"k": i}] * (i % 3) for i in range(rows)],
                pa.list_(pa.struct([("k", pa.int64())])),
            ),
        }
    )
