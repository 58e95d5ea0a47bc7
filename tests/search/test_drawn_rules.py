"""Mixed tables under constraints that are drawn too: against enumeration and the exact checker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

import counterlvq as clvq
from counterlvq import Feature
from counterlvq.certificates import check_certificate
from tests.search.test_mixed_integer import drawn
from tests.support.mixed_questions import Array, Mixed, Prices, Row, assert_exact, possible
from tests.support.quick import some


@dataclass(eq=False)
class Rules:
    """Constraints as the package gets them, and as the oracle does."""

    question: Mixed
    x: Row
    given: list[Any] = field(default_factory=list)
    tests: list[Callable[[Row], bool]] = field(default_factory=list)  # on what is not real
    # Coefficients of the real columns and a limit, given the rest of a row; None: no condition.
    limits: list[Callable[[Row], tuple[Array, float] | None]] = field(default_factory=list)

    def allowed(self, row: Row) -> bool:
        return all(test(row) for test in self.tests)

    def rows(self, row: Row) -> tuple[Array, Array]:
        found = [part for part in (limit(row) for limit in self.limits) if part is not None]
        A = np.array([a for a, _ in found]).reshape(-1, len(self.question.real))
        return A, np.array([b for _, b in found])

    def unit(self, column: Feature) -> Array:
        return np.array([float(c.name == column.name) for c in self.question.real])


def on_levels(rng: Generator, rules: Rules, column: Feature) -> None:
    """A level that stays, one that is left, or a few that are open."""
    name, own = column.name, rules.x[column.name]
    kind = rng.integers(3)
    if kind == 0:
        rules.given.append(clvq.Freeze(name))
        rules.tests.append(lambda row: row[name] == own)
        return
    open_to = [level for level in column.levels if rng.random() < 0.6] or [column.levels[0]]
    if kind == 1 and len(column.levels) > 1:
        open_to = [level for level in column.levels if level != own]
    rules.given.append(clvq.OneOf(name, open_to))
    rules.tests.append(lambda row: row[name] in open_to)


def on_grid(rng: Generator, rules: Rules, column: Feature) -> None:
    """A direction, a largest change, a bound, or values that are listed."""
    name, own, kind = column.name, rules.x[column.name], rng.integers(4)
    if kind == 0:
        rules.given.append(clvq.Increase(name))
        rules.tests.append(lambda row: row[name] >= own)
    elif kind == 1:
        most = float(rng.uniform(0.0, column.upper - column.lower))
        rules.given.append(clvq.MaxChange(name, most))
        rules.tests.append(lambda row: abs(row[name] - own) <= most)
    elif kind == 2:
        end = float(rng.uniform(column.lower, column.upper))
        rules.given.append(clvq.Bounds(name, upper=end))
        rules.tests.append(lambda row: row[name] <= end)
    else:
        listed = [value for value in possible(column) if rng.random() < 0.5] or [own]
        rules.given.append(clvq.OneOf(name, listed))
        rules.tests.append(lambda row: row[name] in listed)


def on_real(rng: Generator, rules: Rules, column: Feature) -> None:
    """A direction, a largest change, or a sum with a number on a grid."""
    name, own, unit = column.name, rules.x[column.name], rules.unit(column)
    grids = [c.name for c in rules.question.discrete if c.is_number]
    if grids and rng.random() < 0.5:
        other, room = str(rng.choice(grids)), round(float(rng.uniform(-1.0, 2.0)), 3)
        total = own + rules.x[other] + room
        rules.given.append(f"{name} + {other} <= original({name}) + original({other}) + {room}")
        rules.limits.append(lambda row: (unit, total - row[other]))
    elif rng.random() < 0.5:
        rules.given.append(clvq.Decrease(name))
        rules.limits.append(lambda row: (unit, own))
    else:
        most = float(rng.uniform(0.1, 3.0))
        rules.given.append(clvq.MaxChange(name, most))
        rules.limits.append(lambda row: (unit, own + most))
        rules.limits.append(lambda row: (-unit, most - own))


def if_then(rng: Generator, rules: Rules) -> None:
    """A condition that holds only where a level is taken up."""
    columns = [c for c in rules.question.discrete if c.name.startswith("c")]
    others = [c for c in rules.question.columns if c.is_number]
    if not columns or not others:
        return
    column, other = rng.choice(columns), rng.choice(others)
    name, level = column.name, column.levels[int(rng.integers(len(column.levels)))]
    end = round(float(rng.uniform(-2.0, 2.0)), 3)
    rules.given.append(f"if {name} == {level} then {other.name} <= {end}")
    if other.is_real:
        unit = rules.unit(other)
        rules.limits.append(lambda row: (unit, end) if row[name] == level else None)
    else:
        rules.tests.append(lambda row: row[name] != level or row[other.name] <= end)


def drawn_rules(seed: int, question: Mixed, x: Row) -> Rules:
    """Up to two constraints on columns, and at times one that depends on a level."""
    rng, rules = np.random.default_rng([seed, 18]), Rules(question, x)
    count = min(len(question.columns), int(rng.integers(1, 3)))
    for at in rng.choice(len(question.columns), count, replace=False).tolist():
        column = question.columns[at]
        kind = on_real if column.is_real else on_grid if column.is_number else on_levels
        kind(rng, rules, column)
    if rng.random() < 0.6:
        if_then(rng, rules)
    return rules


def scaled(prices: Prices, factor: float) -> Prices:
    """What is said of numbers, in another unit; prices of switches stay, and look odd beside."""
    if prices.matrix is not None:
        return replace(prices, matrix=factor * prices.matrix)
    return replace(prices, weights={name: factor * w for name, w in prices.weights.items()})


PARTS = [range(5000, 5006), *(range(5006 + 34 * k, 5040 + 34 * k) for k in range(10))]


@pytest.mark.parametrize("seeds", some(PARTS, quick=1), ids=str)
def test_drawn_constraints_against_enumeration_and_the_checker(
    seeds: range, tmp_path: Path
) -> None:
    """Every class a target, some out of reach, prices in units far apart; files are checked."""
    seen = {"optimal": 0, "infeasible": 0, "unknown": 0}
    for seed in seeds:
        question, prices, x = drawn(seed, seed % 3)
        factor = (1.0, 1e-5, 3e4)[seed // 3 % 3]
        prices, rules = scaled(prices, factor), drawn_rules(seed, question, x)
        explainer = question.explainer(prices, rules.given)
        for target in sorted(set(question.labels.tolist())):
            cf = explainer.explain(x, target)
            optimum = question.optimum(prices, x, {target}, rules.allowed, rules.rows)
            seen[str(cf.status)] += 1
            if cf.status == "unknown":  # no end to the boxes, and nothing in them
                assert optimum == np.inf
                continue
            assert_exact(question, cf, prices, x, optimum, 1e-6)
            path = tmp_path / f"{seed}.jsonl"
            clvq.save_certificate(cf, path, explainer)
            said = list[str]()
            assert check_certificate.main([str(path)], say=said.append) == 0, (seed, said)
    assert seen["optimal"] > 0
    assert seen["infeasible"] > 0
