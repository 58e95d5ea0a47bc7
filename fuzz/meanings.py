"""Questions about what columns mean: kept values, steps of change, least changes, conditions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from fuzz.cases import Case, Names, listed
from fuzz.drawing import Conditions, Rng, assembled, chance, draw_cost, draw_model, draw_targets
from fuzz.fitted import IMPORTS
from fuzz.plain import Column, Floats, Plain, Price, Row, Rule, Scores
from fuzz.rational import ZERO, exact
from fuzz.tables import range_rows

_SHARED_GAP = 1e-6
_MONTHS = (12, 24, 36, 60)
_RATINGS = ("low", "mid", "high", "top")


def meanings(rng: Rng) -> Case:
    """Grids that start at the own value, values off the grid, least changes, conditions."""
    return _numbers(rng) if chance(rng, 0.6) else _levels(rng)


def _drawn_columns(rng: Rng, d: int) -> tuple[list[Column], list[tuple[float, float]], list[str]]:
    columns, ends, said = [], [], []
    for j in range(d):
        step, of_change = int(rng.integers(1, 4)), chance(rng, 0.4)
        lower = float(rng.integers(-3, 2))
        upper = lower + float(rng.integers(4, 8))
        columns.append(Column(decimals=0, step=step, of_change=of_change))
        ends.append((lower, upper))
        way = ", steps='of change'" if of_change else ""
        grid = f"step={step}" if step > 1 else "decimals=0"
        said.append(f"clvq.Feature('x{j}', {grid}, lower={lower!r}, upper={upper!r}{way})")
    return columns, ends, said


def _rows_between(
    rng: Rng, columns: list[Column], ends: list[tuple[float, float]], n: int
) -> Floats:
    """Numbers between the ends, on the grid or off it; quarters where columns may hold some."""
    low, high = (np.array(part) for part in zip(*ends, strict=True))
    whole = rng.integers(low.astype(int), high.astype(int) + 1, size=(n, len(ends))).astype(float)
    quarters = rng.choice([0.0, 0.25, 0.5], p=[0.6, 0.2, 0.2], size=whole.shape)
    quarters *= [column.step == 1 for column in columns]
    return np.where(whole + quarters <= high, whole + quarters, whole)


def _draw_rules(rng: Rng, at: list[int], found: Conditions) -> list[Rule]:
    """Draw constraints that are no rows, as text and as functions of a point and the input."""
    rules: list[Rule] = []
    j, k = (int(i) for i in rng.choice(at, 2, replace=len(at) < 2))
    if chance(rng, 0.5):
        by = float(rng.integers(1, 5)) / 2
        found.code.append(f"clvq.MinChange('x{j}', {by!r})")
        rules.append(lambda y, x: y[j] == x[j] or abs(y[j] - x[j]) >= by)
    if chance(rng, 0.35):
        values = np.unique(rng.integers(-3, 9, size=int(rng.integers(1, 5)))).tolist()
        found.code.append(f"clvq.OneOf('x{k}', {values!r})")
        rules.append(lambda y, x: y[k] in values)
    if chance(rng, 0.5):
        end, limit = float(rng.integers(-2, 6)), float(rng.integers(-2, 6))
        if chance(rng, 0.5):
            found.code.append(f"'if x{j} > {end!r} then x{k} <= {limit!r}'")
            rules.append(lambda y, x: y[j] <= end or y[k] <= limit)
        else:
            found.code.append(
                f"clvq.If(clvq.Bounds('x{j}', upper={end!r}), then='x{k} >= {limit!r}')"
            )
            rules.append(lambda y, x: y[j] > end or y[k] >= limit)
    return rules


def _numbers(rng: Rng) -> Case:
    """Whole numbers of a plain model."""
    d = int(rng.integers(2, 4))
    columns, ends, said = _drawn_columns(rng, d)
    model = draw_model(rng, width=d, ugly=0.0)
    model.W = np.rint(model.W * 2) / 2
    found = Conditions(rows=range_rows(ends))
    rules = _draw_rules(rng, list(range(d)), found)
    X = _rows_between(rng, columns, ends, 4)
    case = assembled(
        "meanings", model, draw_cost(rng, model, "llwe"), found, X, draw_targets(rng, model, 4),
        columns=tuple(columns), features=f"clvq.Features([{', '.join(said)}])",
    )  # fmt: skip
    numbers = case.plain

    def plain(names: Names) -> Plain:
        return replace(numbers(names), rules=tuple(rules))

    return replace(case, plain=plain)


def _levels(rng: Rng) -> Case:
    """Levels that are numbers, and levels in order, beside a number, behind an encoder."""
    columns, ends, said = _drawn_columns(rng, 1)
    months = [Fraction(level) for level in _MONTHS]
    weights = rng.choice([0.25, 0.5, 1.0, 2.0], size=3)
    by_step, by_month = Fraction(float(weights[2])), Fraction(float(weights[1]))
    tables = {
        1: [[by_month * abs(a - b) for b in months] for a in months],
        2: [[by_step * abs(a - b) for b in range(4)] for a in range(4)],
    }
    price = Price(weights=exact(weights), at=(0,), tables=tables)
    levels = ((), _MONTHS, _RATINGS)
    columns += [Column(levels=part) for part in levels[1:]]
    found = Conditions(rows=[Row.of([s, 0, 0], np.zeros(3), v) for s, v in _ends(ends[0])])
    rules = _draw_rules(rng, [0], found)
    if chance(rng, 0.5):
        least = int(rng.choice(_MONTHS))
        found.code.append(f"'months >= {least}'")
        rules.append(lambda y, x: _MONTHS[int(y[1])] >= least)
    T = np.stack(
        [_rows_between(rng, columns[:1], ends, 16)[:, 0], *(rng.integers(4, size=(2, 16)))], axis=1
    )
    T[:4, 1:] = np.arange(4)[:, None]
    labels = np.arange(16) % 2
    code = f"{IMPORTS}{_table_code(T, labels)}" + (
        f"features = clvq.Features([{said[0]}, clvq.Feature('x1', levels={list(_MONTHS)!r}), "
        f"clvq.Feature('x2', levels={list(_RATINGS)!r}, ordered=True)])\n"
        f"explainer = clvq.Explainer(model, clvq.Manhattan({listed(weights)}), "
        f"constraints=[{', '.join(found.code).replace('months', 'x1')}], features=features)\n"
    )
    X = np.stack(
        [_rows_between(rng, columns[:1], ends, 4)[:, 0], *(rng.integers(4, size=(2, 4)))], axis=1
    )
    scores = Scores([[[ZERO] * 3]] * 2, [[ZERO]] * 2, [ZERO] * 2, [0, 1], is_local=False)
    plain = Plain(
        scores, price, tuple(found.rows), (), tuple(columns), None, _SHARED_GAP, rules=tuple(rules)
    )
    targets = [int(rng.integers(2)) for _ in range(4)]
    tags = frozenset({"pipeline", "fitted"})
    return Case("meanings", code, X, targets, lambda _: plain, levels=levels, tags=tags)


def _ends(ends: tuple[float, float]) -> list[tuple[float, float]]:
    return [(1.0, ends[1]), (-1.0, -ends[0])]


def _table_code(T: Floats, labels: Any) -> str:
    months = [_MONTHS[int(v)] for v in T[:, 1]]
    ratings = [_RATINGS[int(v)] for v in T[:, 2]]
    encoder = f"OneHotEncoder(categories={[list(_MONTHS), list(_RATINGS)]!r}, sparse_output=False)"
    return (
        f"import pandas as pd\nT = pd.DataFrame({{'x0': {listed(T[:, 0])}, 'x1': {months!r}, "
        f"'x2': {ratings!r}}})\nt = {listed(labels)}\n"
        f"steps = make_column_transformer((StandardScaler(), ['x0']), ({encoder}, ['x1', 'x2']))\n"
        f"model = make_pipeline(steps, GLVQ(max_iter=15, random_state=0)).fit(T, t)\n"
    )
