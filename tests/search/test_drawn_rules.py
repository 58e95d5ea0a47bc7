"""Mixed tables under constraints that are drawn too: against enumeration, MILPs and the checker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

import counterlvq as clvq
from counterlvq import Feature
from counterlvq.certificates import check_certificate
from tests.search.test_mixed_integer import drawn
from tests.support.mixed_milps import PlainMilp, Side, least_by_milp, unit_of
from tests.support.mixed_questions import Array, Mixed, Prices, Row, assert_exact, possible
from tests.support.quick import some

# Coefficients of the real columns and a limit, given the rest of a row; None: no condition.
Limit = Callable[[Row], tuple[Array, float] | None]


@dataclass(eq=False)
class Rules:
    """Constraints as the package gets them, and as the oracle does."""

    question: Mixed
    x: Row
    given: list[Any] = field(default_factory=list)
    tests: list[Callable[[Row], bool]] = field(default_factory=list)  # on what is not real
    limits: list[Limit] = field(default_factory=list)
    either: list[list[list[Limit]]] = field(default_factory=list)  # of each, one list has to hold
    branches: list[list[Side]] = field(default_factory=list)  # all of that once more, for MILPs

    def keep(self, given: Any, *sides: Side) -> None:
        """Take down a constraint, and how a MILP states it: one side of these holds."""
        self.given.append(given)
        self.branches.append(list(sides))

    def allowed(self, row: Row) -> bool:
        return all(test(row) for test in self.tests)

    def optimum(self, prices: Prices, target: Any) -> float:
        """Least cost by enumeration."""
        return min(
            self.question.optimum(
                prices, self.x, {target}, self.allowed, partial(self.rows, [*chain(*chosen)])
            )
            for chosen in product(*self.either)
        )

    def rows(self, more: list[Limit], row: Row) -> tuple[Array, Array]:
        found = [part for part in (limit(row) for limit in [*self.limits, *more]) if part]
        A = np.array([a for a, _ in found]).reshape(-1, len(self.question.real))
        return A, np.array([b for _, b in found])

    def unit(self, column: Feature) -> Array:
        return np.array([float(c.name == column.name) for c in self.question.real])


def on_values(rules: Rules, given: Any, name: str, test: Callable[[Any], bool]) -> None:
    """A constraint on one column that is not real."""
    rules.keep(given, lambda program: program.only(name, test))
    rules.tests.append(lambda row: test(row[name]))


def on_levels(rng: Generator, rules: Rules, column: Feature) -> None:
    """A level that stays, one that is left, or a few that are open."""
    name, own = column.name, rules.x[column.name]
    kind = rng.integers(3)
    if kind == 0:
        on_values(rules, clvq.Freeze(name), name, lambda value: value == own)
        return
    open_to = [level for level in column.levels if rng.random() < 0.6] or [column.levels[0]]
    if kind == 1 and len(column.levels) > 1:
        open_to = [level for level in column.levels if level != own]
    on_values(rules, clvq.OneOf(name, open_to), name, lambda value: value in open_to)


def on_grid(rng: Generator, rules: Rules, column: Feature) -> None:
    """A direction, a largest or a least change, a bound, or values that are listed."""
    name, own, kind = column.name, rules.x[column.name], rng.integers(5)
    if kind == 0:
        on_values(rules, clvq.Increase(name), name, lambda value: value >= own)
    elif kind == 1:
        most = float(rng.uniform(0.0, column.upper - column.lower))
        on_values(rules, clvq.MaxChange(name, most), name, lambda value: abs(value - own) <= most)
    elif kind == 2:
        end = float(rng.uniform(column.lower, column.upper))
        on_values(rules, clvq.Bounds(name, upper=end), name, lambda value: value <= end)
    elif kind == 3:
        least = float(rng.uniform(0.0, 0.6) * (column.upper - column.lower))
        test = lambda value: value == own or abs(value - own) >= least  # noqa: E731
        on_values(rules, clvq.MinChange(name, least), name, test)
    else:
        values = possible(column)
        listed = [value for value in values if rng.random() < 0.5] or values[:1]
        on_values(rules, clvq.OneOf(name, listed), name, lambda value: value in listed)


def on_real(rng: Generator, rules: Rules, column: Feature) -> None:
    """A direction, a largest or a least change, or a sum with a number on a grid."""
    name, own, unit = column.name, rules.x[column.name], rules.unit(column)
    grids = [c.name for c in rules.question.discrete if c.is_number]
    if grids and rng.random() < 0.5:
        other, room = str(rng.choice(grids)), round(float(rng.uniform(-1.0, 2.0)), 3)
        total = own + rules.x[other] + room
        words = f"{name} + {other} <= original({name}) + original({other}) + {room}"
        rules.keep(words, lambda program: program.below({name: 1.0, other: 1.0}, total))
        rules.limits.append(lambda row: (unit, total - row[other]))
        return
    kind, size = rng.integers(3), float(rng.uniform(0.1, 3.0))

    def up_to(end: float) -> tuple[Limit, Side]:
        return (lambda row: (unit, end)), (lambda program: program.below({name: 1.0}, end))

    def from_on(end: float) -> tuple[Limit, Side]:
        return (lambda row: (-unit, -end)), (lambda program: program.below({name: -1.0}, -end))

    (below, at_most), (above, at_least) = up_to(own), from_on(own)
    (lower, far_down), (higher, far_up) = up_to(own - size), from_on(own + size)
    if kind == 0:
        rules.keep(clvq.Decrease(name), at_most)
        rules.limits.append(below)
    elif kind == 1:
        (top, at_top), (end, at_end) = up_to(own + size), from_on(own - size)
        rules.keep(clvq.MaxChange(name, size), both(at_top, at_end))
        rules.limits += [top, end]
    else:
        rules.keep(clvq.MinChange(name, size), both(at_most, at_least), far_down, far_up)
        rules.either.append([[below, above], [lower], [higher]])


def both(*sides: Side) -> Side:
    def hold(program: PlainMilp) -> None:
        for side in sides:
            side(program)

    return hold


def if_then(rng: Generator, rules: Rules) -> None:
    """A condition that holds only where a level is taken up."""
    columns = [c for c in rules.question.discrete if c.name.startswith("c")]
    others = [c for c in rules.question.columns if c.is_number]
    if not columns or not others:
        return
    column, other = rng.choice(columns), rng.choice(others)
    name, level = column.name, column.levels[int(rng.integers(len(column.levels)))]
    end = round(float(rng.uniform(-2.0, 2.0)), 3)

    def not_there(program: PlainMilp) -> None:
        program.only(name, lambda value: value != level)

    def there(program: PlainMilp) -> None:
        program.below({other.name: 1.0}, end)

    rules.keep(f"if {name} == {level} then {other.name} <= {end}", not_there, there)
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


def loosened(seed: int, question: Mixed, x: Row) -> tuple[Mixed, Row]:
    """In every other question with steps or decimals, an input that is off its grid.

    It may stay there; or changes count from there, by whole steps.
    """
    rng = np.random.default_rng([seed, 19])
    columns = [c for c in question.discrete if c.name[0] in "sd"]
    if not columns or rng.random() < 0.5:
        return question, x
    column = columns[int(rng.integers(len(columns)))]
    off = x[column.name] + (2 if column.decimals is None else 0.03)
    if off > column.upper:
        return question, x
    found = column if rng.random() < 0.5 else by_steps(column)
    each = tuple(found if c.name == column.name else c for c in question.columns)
    start = {column.name: off}
    return replace(question, columns=each, features=clvq.Features(each), starts=start), {
        **x,
        **start,
    }


def by_steps(column: Feature) -> Feature:
    """The same column, whose changes are whole steps."""
    ends = {"lower": column.lower, "upper": column.upper}
    if column.decimals is None:
        return Feature(column.name, step=column.step, steps="of change", **ends)
    return Feature(column.name, decimals=column.decimals, steps="of change", **ends)


def asked(seed: int) -> tuple[Mixed, Prices, Row, Rules]:
    question, prices, x = drawn(seed, seed % 3)
    question, x = loosened(seed, question, x)
    factor = (1.0, 1e-5, 3e4)[seed // 3 % 3]
    return question, scaled(prices, factor), x, drawn_rules(seed, question, x)


PARTS = [range(5000, 5006), *(range(5006 + 100 * k, 5106 + 100 * k) for k in range(10))]


@pytest.mark.parametrize("seeds", some(PARTS, quick=1), ids=str)
def test_drawn_constraints_against_enumeration_and_the_checker(
    seeds: range, tmp_path: Path
) -> None:
    """Every class a target, some out of reach, prices in units far apart; files are checked.

    Three thousand questions in all.
    """
    seen = {"optimal": 0, "infeasible": 0, "unknown": 0}
    for seed in seeds:
        question, prices, x, rules = asked(seed)
        explainer = question.explainer(prices, rules.given)
        for target in sorted(set(question.labels.tolist())):
            cf, optimum = explainer.explain(x, target), rules.optimum(prices, target)
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


MILP_PARTS = [range(8000, 8012), *(range(8012 + 200 * k, 8212 + 200 * k) for k in range(10))]


@pytest.mark.parametrize("seeds", some(MILP_PARTS, quick=1), ids=str)
def test_drawn_constraints_against_plain_milps(seeds: range) -> None:
    """Those of absolute costs, three thousand in all: the same optimum, or the same lack of one.

    Without real columns prototypes tie, and a MILP takes every tie for won: its optimum is a
    bound there.
    """
    compared = 0
    for seed in seeds:
        question, prices, x, rules = asked(seed)
        if prices.matrix is not None:
            continue
        explainer = question.explainer(prices, rules.given)
        for target in sorted(set(question.labels.tolist())):
            cf = explainer.explain(x, target)
            unit = unit_of(cf.cost, question, prices, x)
            least = least_by_milp(question, prices, x, target, unit, rules.branches)
            compared += 1
            assert cf.cost >= least * (1 - 1e-5) - 1e-9 * unit, (seed, target)
            if question.real:
                assert cf.cost <= least * (1 + 1e-5) + 1e-9 * unit, (seed, target)
    assert compared > len(seeds)


@pytest.mark.parametrize("column", [Feature("a"), Feature("a", decimals=1)], ids=["real", "grid"])
@pytest.mark.parametrize("metric", ["shared", "local"])
def test_rivals_that_never_win_leave_nothing_out_of_a_file(
    column: Feature, metric: str, tmp_path: Path
) -> None:
    """The only rival is a copy of an earlier prototype, and an input breaks a constraint."""
    omegas = None if metric == "shared" else [[[1.0]], [[1.0]], [[2.0]]]
    model = clvq.PrototypeModel([[0.0], [0.0], [-1.0]], ["no", "yes", "no"], omegas, ["a"])
    features = clvq.Features([column])
    explainer = clvq.Explainer(model, constraints=["a >= 1"], features=features)
    cf = explainer.explain([0.53], "no")
    assert cf.status == "optimal"
    assert cf.cost == pytest.approx(0.47)
    path, said = tmp_path / "answer.jsonl", list[str]()
    clvq.save_certificate(cf, path, explainer)  # it warns of what it does not claim
    assert check_certificate.main([str(path)], say=said.append) == 0, said
