"""The lender's letters: what is printed is parsed again, typed in, and held against the table."""

from __future__ import annotations

import importlib.util
import re
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import counterlvq as clvq

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "lender.py"
PAGE = ROOT / "docs" / "howto" / "lender.md"

LEAST = {"income": 100, "savings": 500, "amount": 1000, "car_year": 3, "payout": 14}
STEPS_OF_VALUE = {"income": 50, "savings": 100, "amount": 500}
STEPS_OF_CHANGE = {"employed": 6, "payout": 7}
FROZEN = ("age", "late", "job")
STANDS_IN = re.compile(
    r", which stands in for a missing value| \(which stands in for a missing value\)"
)


def lender() -> Any:
    spec = importlib.util.spec_from_file_location("lender", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Read(NamedTuple):
    """One change, as somebody reads it in a letter."""

    name: str
    after: Any
    before: Any
    by: float | None
    stood_in: bool


# --- a reader of letters, which knows labels and English, and nothing of the library -------------


def read_letter(text: str, features: clvq.Features) -> tuple[list[Read], list[str]]:
    """The changes that a letter names, and what may stay missing by it."""
    body = text.partition("It would have been accepted if ")[2].partition(".\n")[0]
    labels = "|".join(re.escape(feature.label) for feature in features if feature.label)
    pieces = re.split(rf"(?:, | and )(?=(?:{labels}|it) were )", body)
    changes = [read_change(piece, labels, features) for piece in pieces]
    gaps = re.search(r"The (?:entry|entries) for (.*) may stay missing\.", text)
    named = [] if gaps is None else re.split(r", | and ", gaps[1])
    by_label = {feature.label: feature.name for feature in features}
    return changes, [by_label[label] for label in named]


def read_change(piece: str, labels: str, features: clvq.Features) -> Read:
    match = re.fullmatch(rf"({labels}|it) were (.*)", piece)
    assert match is not None, piece
    stood_in = STANDS_IN.search(match[2]) is not None
    rest = STANDS_IN.sub("", match[2])
    if match[1] == "it":
        assert rest == "with a guarantor"
        return Read("guarantor", True, False, None, stood_in)
    feature = next(feature for feature in features if feature.label == match[1])
    if feature.kind == "date":
        found = re.fullmatch(r"(\d+) days? (later|earlier) \((.+) instead of (.+)\)", rest)
        assert found is not None, rest
        after, before = (datetime.strptime(found[k], "%d %B %Y") for k in (3, 4))
        return Read(feature.name, after, before, signed(found[1], found[2]), stood_in)
    if feature.kind == "categorical":
        after, before = rest.removesuffix(" months").split(" instead of ")
        return Read(feature.name, level(after, feature), level(before, feature), None, stood_in)
    if not feature.unit:  # a year
        after, before = rest.split(" instead of ")
        assert re.fullmatch(r"\d{4}", after), "a year has no separator"
        return Read(feature.name, float(after), float(before), None, stood_in)
    found = re.fullmatch(r"([\d,.]+) (higher|lower) \(([\d,.]+) instead of ([\d,.]+) (\w+)\)", rest)
    assert found is not None, rest
    assert found[5] == feature.unit
    return Read(
        feature.name, number(found[3]), number(found[4]), signed(*found.group(1, 2)), stood_in
    )


def number(text: str) -> float:
    assert re.fullmatch(r"\d{1,3}(,\d{3})*(\.\d+)?", text), f"{text} has no separators of thousands"
    return float(text.replace(",", ""))


def signed(text: str, way: str) -> float:
    return number(text) * (1 if way in ("higher", "later") else -1)


def level(text: str, feature: clvq.Feature) -> Any:
    return next(level for level in feature.levels if feature.words(level) == text)


# --- what has to hold of each --------------------------------------------------------------------


def days(value: Any) -> float:
    return (value - pd.Timestamp("1970-01-01")).days


def check_letters(example: Any, model: Any, count: int, rows: int) -> list[str]:
    pipeline, explainer, batch, _ = example.explained(model, count, rows)
    table, _ = example.applicants(rows)
    cut = 3 * rows // 4
    train = table[:cut]
    refused = table[cut:][pipeline.predict(example.in_days(table[cut:])) == "bad"][:count]
    assert len(batch) == len(refused) == count
    assert set(batch.status.tolist()) <= {"optimal", "infeasible"}
    texts, typed = [], []
    for (_, row), cf in zip(refused.iterrows(), batch, strict=True):
        text = example.letter(cf)
        texts.append(text)
        if not cf.status.has_answer:
            continue
        changes, gaps = read_letter(text, explainer.features)
        assert changes
        typed.append(type_in(row, changes))
        check_changes(row, changes, gaps, train)
        check_rules(typed[-1].fillna(fills(train)))
        assert cf.shown.cost == pytest.approx(price(example, train, row, changes), rel=1e-9)
    answers = pd.DataFrame(typed).astype(refused.dtypes)
    assert set(pipeline.predict(example.in_days(answers))) == {"good"}
    assert refused.isna().any(axis=None)
    return texts


def type_in(row: pd.Series[Any], changes: list[Read]) -> pd.Series[Any]:
    out = row.copy()
    for change in changes:
        out[change.name] = change.after
    return out


def check_changes(
    row: pd.Series[Any], changes: list[Read], gaps: list[str], train: pd.DataFrame
) -> None:
    """What a letter says of each change: the value before, the difference, steps and ranges."""
    for name, after, before, by, stood_in in changes:
        assert name not in FROZEN
        assert stood_in == bool(pd.isna(row[name])), name
        assert before == (fills(train)[name] if stood_in else row[name])
        if name == "car_year":
            assert after - before >= LEAST[name]
        if by is not None:
            difference = days(after) - days(before) if name == "payout" else after - before
            assert difference == by
            assert abs(by) >= LEAST.get(name, 0)
            assert by % STEPS_OF_CHANGE.get(name, 1) == 0
            assert name == "payout" or after % STEPS_OF_VALUE.get(name, 1) == 0
        if name in ("car_year", "employed", "payout"):
            assert after > before
        if name not in ("housing", "rating", "guarantor"):
            assert train[name].min() <= after <= train[name].max()
        assert after in set(train[name]) or name in ("income", "savings", "employed", "payout")
    missing = {name for name in row.index if pd.isna(row[name])}
    assert missing == {change.name for change in changes if change.stood_in} | set(gaps)


def fills(train: pd.DataFrame) -> dict[str, Any]:
    """What the imputers of the example put in the place of missing values."""
    medians = {name: train[name].median() for name in ("savings", "employed")}
    return medians | {name: train[name].mode()[0] for name in ("housing", "job")}


def check_rules(row: pd.Series[Any]) -> None:
    assert row["employed"] <= 12 * (row["age"] - 16)
    assert row["amount"] < 29000 or row["guarantor"]
    assert row["months"] <= 60 or row["amount"] >= 8000


def price(example: Any, train: pd.DataFrame, row: pd.Series[Any], changes: list[Read]) -> float:
    """Cost of the printed changes, from the table and the listed prices."""
    total = 0.0
    for name, after, before, _, _ in changes:
        if name in ("guarantor", "rating"):
            steps = (
                1
                if name == "guarantor"
                else abs(example.RATINGS.index(after) - example.RATINGS.index(before))
            )
            total += steps * example.SWITCHES[name]
        elif name == "housing":
            pairs = example.SWITCHES["housing"]
            total += pairs.get((before, after), pairs.get((after, before), 12.0))
        else:
            values = train[name].dropna()
            numbers = values.map(days) if name == "payout" else values.astype(float)
            mad = (numbers - numbers.median()).abs().median()
            by = days(after) - days(before) if name == "payout" else after - before
            total += abs(by) / mad
    return total


# --- short, and in full --------------------------------------------------------------------------


def test_letters_of_a_small_table_hold_when_they_are_typed_in() -> None:
    texts = check_letters(lender(), clvq.GLVQ(random_state=0), count=5, rows=400)
    assert all(text.startswith("Dear applicant,") for text in texts)


@pytest.mark.docs
@pytest.mark.parametrize("name", ["GMLVQ", "MRSLVQ"])
def test_thirty_letters_hold_when_they_are_typed_in(name: str) -> None:
    texts = check_letters(lender(), getattr(clvq, name)(2, random_state=0), count=30, rows=2000)
    assert len(set(texts)) > 20
    whole = "\n".join(texts)
    for words in ("instead of", "EUR", "months", "days later", "may stay missing"):
        assert words in whole
    assert not re.search(r"[A-Z][A-Za-z]+\('", whole), "code in a letter"
    assert np.all([len(text) < 1500 for text in texts])


@pytest.mark.docs
def test_the_page_shows_the_code_of_the_example() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    code = EXAMPLE.read_text(encoding="utf-8")
    assert len(blocks) > 3
    for block in blocks[:-1]:
        assert block.strip() in code
