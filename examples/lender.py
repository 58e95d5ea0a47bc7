"""
Thirty letters of a lender
==========================

From a table of two thousand applicants to a letter for each of thirty whom the model refuses.

The applicants are made up; the work is that of a lender: thirteen columns of numbers, levels, a year
and a date, missing values, and a model behind imputers, scalers and encoders. What the columns are
called, in which steps they change, what a change of housing costs and which changes nobody would ask
for is said once. The letters follow, and every number in them holds when it is typed in.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq

NUMBERS = ["age", "income", "savings", "amount", "car_year", "employed", "late", "payout"]
LEVELS = ["months", "housing", "job", "rating", "guarantor"]
HOUSING = ["owner", "tenant", "parents"]
JOBS = ["clerk", "nurse", "trade", "own business", "none"]
RATINGS = ["poor", "fair", "good", "excellent"]
FIRST_DAY = pd.Timestamp("2026-03-02")


def applicants(count=2000, seed=0):
    """Make up a table of applicants, and what became of their loans."""
    rng = np.random.default_rng(seed)
    age = rng.integers(19, 72, count)
    income = np.exp(rng.normal(7.6, 0.35, count) + 0.004 * (age - 40)).clip(900, 9000)
    table = pd.DataFrame(
        {
            "age": age,
            "income": income.round(),
            "savings": (rng.gamma(0.9, 7000, count) + 20 * (age - 19)).round(),
            "amount": (rng.integers(6, 61, count) * 500).astype(float),
            "months": rng.choice([12, 24, 36, 48, 60, 72], count),
            "car_year": rng.integers(2008, 2027, count),
            "employed": np.minimum(rng.gamma(1.2, 60, count), 12 * (age - 17)).round(),
            "late": rng.poisson(0.7, count),
            "housing": rng.choice(HOUSING, count, p=[0.35, 0.5, 0.15]),
            "job": rng.choice(JOBS, count, p=[0.35, 0.2, 0.25, 0.13, 0.07]),
            "rating": rng.choice(RATINGS, count, p=[0.15, 0.35, 0.35, 0.15]),
            "guarantor": rng.random(count) < 0.2,
            "payout": FIRST_DAY + pd.to_timedelta(rng.integers(0, 120, count), unit="D"),
        }
    )
    burden = table.amount / table.months.astype(float) / table.income
    score = (
        1.1 * np.log(table.income / 2000)
        + 0.35 * np.log1p(table.savings / 3000)
        - 2.5 * burden
        - 0.03 * table.amount / 1000
        + 0.05 * (table.car_year - 2017)
        + 0.006 * np.minimum(table.employed, 120)
        - 0.75 * table.late
        + 0.5 * (table.housing == "owner")
        - 0.9 * (table.job == "none")
        + 0.4 * table.rating.map({name: k for k, name in enumerate(RATINGS)})
        + 1.0 * table.guarantor
    )
    label = np.where(score + rng.normal(0, 0.5, count) > 0.45, "good", "bad")
    return with_gaps(table, rng), label


def with_gaps(table, rng):
    """Lose some values, as forms that were not filled in do."""
    holed = table.astype({"employed": float, "housing": object, "job": object})
    for name, share in {"savings": 0.12, "employed": 0.08, "housing": 0.06, "job": 0.05}.items():
        holed.loc[rng.random(len(holed)) < share, name] = np.nan
    return holed


def in_days(table):
    """Turn the date into days, as models take it."""
    return table.assign(payout=(table.payout - pd.Timestamp("1970-01-01")).dt.days)


def fitted(model, table, label):
    numbers = Pipeline([("filled", SimpleImputer(strategy="median")), ("scaled", StandardScaler())])
    levels = Pipeline(
        [
            ("filled", SimpleImputer(strategy="most_frequent")),
            ("encoded", OneHotEncoder(drop="if_binary", sparse_output=False)),
        ]
    )
    columns = ColumnTransformer([("numbers", numbers, NUMBERS), ("levels", levels, LEVELS)])
    return Pipeline([("columns", columns), ("model", model)]).fit(in_days(table), label)


def described(table):
    """Say what the columns are: what a table cannot know, and people have to be told."""
    F = clvq.Feature
    said = [
        F("age", "whole", unit="years", change="freeze"),
        F("income", step=50, unit="EUR", label="your net monthly income"),
        F("savings", step=100, unit="EUR", label="your savings", lower=0),
        F("amount", step=500, unit="EUR", label="the amount of the loan"),
        F("months", levels=[12, 24, 36, 48, 60, 72], unit="months", label="the term of the loan"),
        F("car_year", "whole", label="the year in which the car was built", change="increase"),
        F("employed", step=6, steps="of change", unit="months", label="your time with your employer",
          change="increase"),
        F("late", "whole", label="late payments in the last two years", change="decrease", lower=0),
        F("housing", levels=HOUSING, label="your housing",
          level_labels={"owner": "a home of your own", "tenant": "a rented home", "parents": "with your parents"}),
        F("job", levels=JOBS, label="your occupation", change="freeze"),
        F("rating", levels=RATINGS, ordered=True, label="your credit rating"),
        F("guarantor", "boolean", true="with a guarantor", false="without a guarantor"),
        F("payout", "date", step=7, steps="of change", label="the day of payment", change="increase"),
    ]  # fmt: skip
    seen = clvq.Features.from_frame(table, levels={"months": [12, 24, 36, 48, 60, 72]})
    return clvq.Features(said).refined(seen={f.name: f.seen for f in seen if f.seen is not None})


SWITCHES = {
    "housing": {("parents", "tenant"): 1.5, ("tenant", "owner"): 6.0},
    "guarantor": 1.5,
    "rating": 1.0,
}
RULES = [
    clvq.MinChange("income", by=100),
    clvq.MinChange("savings", by=500),
    clvq.MinChange("amount", by=500),
    clvq.MinChange("payout", by=14),
    "employed <= 12 * (age - 16)",
    "if amount >= 25000 then guarantor == True",
    clvq.If("months > 60", then="amount >= 10000"),
]
LETTER = """Dear applicant,

your application was {now}. It would have been {outcome} if {changes}. {others} {missing}
"""


def main():
    table, label = applicants()
    train, rest = table[:1500], table[1500:]
    features = described(train)
    for model in (clvq.GMLVQ(2, random_state=0), clvq.MRSLVQ(2, random_state=0)):
        pipeline = fitted(model, train, label[:1500])
        print(pipeline.score(in_days(rest), label[1500:]))
        cost = clvq.Manhattan(
            clvq.mad_weights(train), SWITCHES, default={"housing": 12.0}, unit="typical deviations"
        )
        explainer = clvq.Explainer(pipeline, cost, RULES, features=features)
        refused = rest[pipeline.predict(in_days(rest)) == "bad"][:30]
        batch = explainer.explain_batch(refused, target="good")
        print(batch.summary())
        for cf in batch:
            print(
                cf.text(subject="Your application", outcome={"good": "accepted", "bad": "declined"})
            )
            print()


if __name__ == "__main__":
    main()
