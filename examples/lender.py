"""
Thirty letters of a lender
==========================

From a table of two thousand applicants to a letter for each of thirty whom the model refuses.

The applicants are made up; the work is that of a lender: thirteen columns of numbers, levels, a
year and a date, missing values, and a model behind imputers, scalers and encoders. What the
columns are called, in which steps they change, what a change of housing costs and which changes
nobody would ask for is said once. The letters follow, and every number in them holds when it is
typed in.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq

MONTHS = [12, 24, 36, 48, 60, 72]
HOUSING = ["owner", "tenant", "parents"]
JOBS = ["clerk", "nurse", "trade", "own business", "none"]
RATINGS = ["poor", "fair", "good", "excellent"]
NUMBERS = ["age", "income", "savings", "amount", "car_year", "employed", "late", "payout"]
LEVELS = ["months", "housing", "job", "rating", "guarantor"]
# Of forms that were not filled in.
MISSING = {"savings": 0.12, "employed": 0.08, "housing": 0.06, "job": 0.05}


def applicants(count=2000, seed=0):
    """Make up a table of applicants, and whether they paid back."""
    rng = np.random.default_rng(seed)
    age = rng.integers(19, 72, count)
    first = pd.Timestamp("2026-03-02")
    table = pd.DataFrame(
        {
            "age": age,
            "income": np.exp(rng.normal(7.6, 0.35, count)).clip(900, 9000).round(),
            "savings": (rng.gamma(0.9, 7000, count) + 20 * (age - 19)).round(),
            "amount": rng.integers(6, 61, count) * 500.0,
            "months": rng.choice(MONTHS, count),
            "car_year": rng.integers(2008, 2027, count),
            "employed": np.minimum(rng.gamma(1.2, 60, count), 12 * (age - 17)).round(),
            "late": rng.poisson(0.7, count),
            "housing": rng.choice(HOUSING, count, p=[0.35, 0.5, 0.15]).astype(object),
            "job": rng.choice(JOBS, count, p=[0.35, 0.2, 0.25, 0.13, 0.07]).astype(object),
            "rating": rng.choice(RATINGS, count, p=[0.15, 0.35, 0.35, 0.15]),
            "guarantor": rng.random(count) < 0.2,
            "payout": first + pd.to_timedelta(rng.integers(0, 120, count), unit="D"),
        }
    )
    score = (
        1.2 * np.log(table.income / 2000)
        + 0.08 * np.minimum(table.savings, 20000) / 1000
        - 2.0 * table.amount / table.months / table.income
        - 0.03 * table.amount / 1000
        + 0.05 * (table.car_year - 2017)
        + 0.006 * np.minimum(table.employed, 120)
        - 0.5 * table.late
        + 0.4 * (table.housing == "owner")
        - 0.8 * (table.job == "none")
        + 0.45 * table.rating.map({name: k for k, name in enumerate(RATINGS)})
        + 1.2 * table.guarantor
        + 0.015 * (table.payout - first).dt.days
    )
    paid = np.where(score + rng.normal(0, 0.4, count) > 1.5, "good", "bad")
    for name, share in MISSING.items():
        table.loc[rng.random(count) < share, name] = np.nan
    return table, paid


def in_days(table):
    """Put days in the place of the date, as models take it."""
    return table.assign(payout=(table.payout - pd.Timestamp("1970-01-01")).dt.days)


def fitted(model, table, paid):
    """Fit a model behind imputers, a scaler and an encoder."""
    numbers = Pipeline([("fill", SimpleImputer(strategy="median")), ("scale", StandardScaler())])
    encoder = OneHotEncoder(drop="if_binary", sparse_output=False)
    levels = Pipeline([("fill", SimpleImputer(strategy="most_frequent")), ("encode", encoder)])
    columns = ColumnTransformer([("numbers", numbers, NUMBERS), ("levels", levels, LEVELS)])
    return Pipeline([("columns", columns), ("model", model)]).fit(in_days(table), paid)


def described(table):
    """Say what a table cannot know of its columns; the ranges that were seen it does know."""
    said = [
        clvq.Feature("age", "whole", unit="years", label="your age", change="freeze"),
        clvq.Feature("income", step=50, unit="EUR", label="your net monthly income"),
        clvq.Feature("savings", step=100, unit="EUR", label="your savings", lower=0),
        clvq.Feature("amount", step=500, unit="EUR", label="the amount of the loan"),
        clvq.Feature("months", levels=MONTHS, unit="months", label="the term of the loan"),
        clvq.Feature(
            "car_year", "whole", label="the year in which the car was built", change="increase"
        ),
        clvq.Feature(
            "employed",
            step=6,
            steps="of change",
            unit="months",
            label="your time with your employer",
            change="increase",
        ),
        clvq.Feature("late", "whole", label="your late payments", change="freeze"),
        clvq.Feature(
            "housing",
            levels=HOUSING,
            label="your housing",
            level_labels={
                "owner": "a home of your own",
                "tenant": "a rented home",
                "parents": "the home of your parents",
            },
        ),
        clvq.Feature("job", levels=JOBS, label="your occupation", change="freeze"),
        clvq.Feature("rating", levels=RATINGS, ordered=True, label="your credit rating"),
        clvq.Feature("guarantor", "boolean", true="with a guarantor", false="without a guarantor"),
        clvq.Feature(
            "payout",
            "date",
            step=7,
            steps="of change",
            label="the day of payment",
            change="increase",
        ),
    ]
    seen = clvq.Features.from_frame(table, levels={"months": MONTHS})
    return clvq.Features(said).refined(seen={f.name: f.seen for f in seen if f.seen is not None})


# What another level costs, in typical deviations of numbers. What is not listed costs 12.
SWITCHES = {
    "housing": {("parents", "tenant"): 1.5, ("tenant", "owner"): 4.0},
    "guarantor": 1.5,
    "rating": 1.0,
}
RULES = [
    # Nobody applies again for a trifle, or earns twice as much.
    clvq.MinChange("income", by=100),
    clvq.MinChange("savings", by=500),
    clvq.MinChange("amount", by=1000),
    clvq.MinChange("car_year", by=3),
    clvq.MinChange("payout", by=14),
    "income <= 1.5 * original(income)",
    # What the model does not know of people, and of the house.
    "employed <= 12 * (age - 16)",
    "if amount >= 29000 then guarantor == True",
    "if months > 60 then amount >= 8000",
]
WORDS = {
    "subject": "Your application",
    "outcome": {"good": "accepted", "bad": "declined"},
    "dates": "31 May 2024",
    "rules": {
        "income <= 1.5 * original(income)": "your net monthly income may rise by half at most",
        "if amount >= 29000 then guarantor == True": "loans of 29,000 EUR or more need a guarantor",
        "if months > 60 then amount >= 8000": "terms above 60 months are for 8,000 EUR or more",
    },
}
LETTER = """Dear applicant,

Your application was {now}. {broken} It would have been {outcome} if {changes}.
{missing}

Your bank"""
# For those of whom no change is told: accepted already, or not by any change.
OTHERWISE = """Dear applicant,

{text}

Your bank"""


def explained(model, count=30, rows=2000):
    """Train on three quarters of the table, and explain the first refused ones of the rest."""
    table, paid = applicants(rows)
    cut = 3 * rows // 4
    train, rest = table[:cut], table[cut:]
    pipeline = fitted(model, train, paid[:cut])
    with warnings.catch_warnings():
        # That values are missing is known.
        warnings.filterwarnings("ignore", ".* passes over missing values")
        weights, features = clvq.mad_weights(train), described(train)
    cost = clvq.Manhattan(weights, SWITCHES, default={"housing": 12.0}, unit="typical deviations")
    explainer = clvq.Explainer(pipeline, cost, RULES, features=features)
    says = pipeline.predict(in_days(rest))
    refused = rest[says == "bad"][:count]
    right = (says == paid[cut:]).mean()
    return pipeline, explainer, explainer.explain_batch(refused, target="good"), right


def letter(cf):
    """Write the letter of one applicant."""
    return cf.text(template=LETTER, otherwise=OTHERWISE, **WORDS)


def main():
    for model in (clvq.GMLVQ(2, random_state=0), clvq.MRSLVQ(2, random_state=0)):
        pipeline, _, batch, right = explained(model)
        print(f"{type(model).__name__}: {right:.0%} of 500 applicants right.\n")
        print(batch.summary(), "\n")
        assert np.all(pipeline.predict(in_days(batch.X)) == "good")
        shown = batch if isinstance(model, clvq.GMLVQ) else batch[:3]
        for number, cf in enumerate(shown, 1):
            print(f"--- {number}\n{letter(cf)}\n")


if __name__ == "__main__":
    main()
