"""Random questions by kind, as the package's own objects; a kind, a cost and a seed fix one.

Each question has one prototype of the wished-for label, "yes", and up to a hundred that say "no",
in up to twenty features. The kinds are what a kernel has to cope with: limits of every sort, ties,
rows that say nothing new, cells that nothing reaches, features and prices of very unequal size,
metrics that do not see all features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

import counterlvq as clvq
from counterlvq.cells import SharedCells
from counterlvq.certificates.questions import Question
from counterlvq.problem.expressions import as_constraint
from counterlvq.programs.template import ProgramTemplate

Array = np.ndarray
Rules = list[clvq.Constraint | str]


@dataclass(frozen=True, eq=False)
class Draw:
    """From `x` to the label "yes"."""

    name: str
    prototypes: Array  # (p, d)
    labels: Sequence[str]
    omega: Array | None
    x: Array  # (d,)
    cost: clvq.Cost
    rules: Rules

    @property
    def wished(self) -> Array:
        return np.array([label == "yes" for label in self.labels])

    def explainer(self, **settings: float) -> clvq.Explainer:
        model = clvq.PrototypeModel(self.prototypes, self.labels, omegas=self.omega)
        return clvq.Explainer(model, self.cost, self.rules, **settings)

    def question(self) -> Question:
        """The question in numbers, built from the same parts as the explainer builds it."""
        explainer = self.explainer()
        features = explainer.model.features
        stated = [as_constraint(rule) for rule in self.rules]
        conditions = [part for rule in stated for part in rule.conditions(features)]
        template = ProgramTemplate.of(
            self.cost.l1_weights(self.x.size), self.cost.l2_factor(self.x.size), conditions
        )
        cells = SharedCells.of(explainer.model, self.wished, ties_count=False)
        return Question(template, cells, self.x)


# --- costs --------------------------------------------------------------------------------------


def absolute(rng: Generator, unit: Array) -> clvq.Cost:
    if rng.random() < 0.5 and (unit == 1).all():
        return clvq.Manhattan()
    return clvq.Manhattan(rng.uniform(0.2, 5.0, unit.size) / unit)


def squared(rng: Generator, unit: Array) -> clvq.Cost:
    if (unit == 1).all():
        return clvq.Euclidean()
    return clvq.Mahalanobis(np.diag(unit**-2.0))


def correlated(rng: Generator, unit: Array) -> clvq.Cost:
    factor = rng.normal(size=(unit.size, unit.size)) / np.sqrt(unit.size) + np.eye(unit.size)
    factor = (factor + 0.1 * np.eye(unit.size)) / unit
    return clvq.Mahalanobis(factor.T @ factor)


COSTS: dict[str, Callable[[Generator, Array], clvq.Cost]] = {
    "absolute": absolute,
    "squared": squared,
    "correlated": correlated,
}

# --- the bare question --------------------------------------------------------------------------


def sizes(rng: Generator) -> tuple[int, int]:
    """Features and rivals, few more often than many."""
    return int(rng.integers(1, 21)), int(np.exp(rng.uniform(0, np.log(101))))


def bare(rng: Generator, cost: str, unit: Array | None = None) -> Draw:
    """One prototype against the others, and no rules; in units if these are given."""
    d, m = sizes(rng)
    unit = np.ones(d) if unit is None else unit
    labels = ["no"] * m
    labels.insert(int(rng.integers(m + 1)), "yes")
    W = rng.normal(size=(m + 1, unit.size)) * rng.choice([0.3, 1.0, 4.0])
    start = W[labels.index("no")] if rng.random() < 0.7 else np.zeros(unit.size)
    x = start + rng.choice([0.1, 1.0, 10.0], p=[0.4, 0.5, 0.1]) * rng.normal(size=unit.size)
    return Draw("", W * unit, labels, None, x * unit, COSTS[cost](rng, unit), [])


def some(rng: Generator, d: int, share: float = 0.5) -> list[int]:
    """A few features, at least one."""
    count = max(1, int(rng.binomial(d, share)))
    return [int(j) for j in rng.choice(d, size=count, replace=False)]


# --- limits, in units of the features -----------------------------------------------------------


def boxes(rng: Generator, x: Array, unit: Array) -> Rules:
    out: Rules = []
    for j in some(rng, x.size):
        low, high = unit[j] * rng.exponential(1.5, size=2)
        side = rng.integers(5)
        if side == 0:
            out.append(clvq.MaxChange(j, float(high)))
        elif side == 1:
            out.append(clvq.Bounds(j, lower=x[j] - low))
        elif side == 2:
            out.append(clvq.Bounds(j, upper=x[j] + high))
        elif side == 3:  # the input itself is outside
            out.append(clvq.Bounds(j, lower=x[j] + low, upper=x[j] + low + high))
        else:
            out.append(clvq.Bounds(j, lower=x[j] - low, upper=x[j] + high))
    return out


def directions(rng: Generator, x: Array, unit: Array) -> Rules:
    ways = (clvq.Increase, clvq.Decrease)
    return [ways[rng.integers(2)](j) for j in some(rng, x.size, 0.6)]


def frozen(rng: Generator, x: Array, unit: Array) -> Rules:
    chosen = some(rng, x.size, 0.4)
    if len(chosen) == x.size and x.size > 1:
        chosen = chosen[1:]
    still = [j for j in chosen if rng.random() < 0.6]
    out: Rules = [clvq.Freeze(*still)] if still else []
    for j in set(chosen) - set(still):
        out.append(clvq.Linear({j: 1.0}, "==", x[j] + unit[j] * rng.normal()))
    return out


def rows(rng: Generator, x: Array, unit: Array, sense: str = "<=", count: int = 0) -> Rules:
    out: Rules = []
    for _ in range(count or int(rng.integers(1, 7))):
        a = rng.normal(size=x.size) * (rng.random(x.size) < 0.6)
        a[rng.integers(x.size)] = 1.0
        a /= unit
        room = rng.choice([0.0, 1.0, -1.0], p=[0.1, 0.6, 0.3]) * rng.exponential()
        if rng.random() < 0.3 and x.size > 1:
            out.append(_sentence(a, x, sense, float(room)))
        else:
            out.append(clvq.Linear(a, sense, float(a @ x + room)))
    return out


def _sentence(a: Array, x: Array, sense: str, room: float) -> str:
    """The same in words, relative to the factual values."""
    terms = " + ".join(f"{value!r} * x{j}" for j, value in enumerate(a.tolist()) if value)
    olds = " + ".join(f"{value!r} * original(x{j})" for j, value in enumerate(a.tolist()) if value)
    return f"{terms} {sense} {olds} + {room!r}"


def equalities(rng: Generator, x: Array, unit: Array) -> Rules:
    count = int(rng.integers(1, max(2, min(4, x.size))))
    return rows(rng, x, unit, "==", count)


# --- kinds --------------------------------------------------------------------------------------


def plain(rng: Generator, cost: str) -> Draw:
    return bare(rng, cost)


def limited(*limits: Callable[[Generator, Array, Array], Rules]) -> Callable[..., Draw]:
    def kind(rng: Generator, cost: str) -> Draw:
        draw = bare(rng, cost)
        unit = np.ones(draw.x.size)
        return replace(draw, rules=[rule for limit in limits for rule in limit(rng, draw.x, unit)])

    return kind


def everything(rng: Generator, cost: str) -> Draw:
    """Limits of several sorts and any metric."""
    draw = metric(rng, cost)
    unit, x = np.ones(draw.x.size), draw.x
    chosen = [limit for limit in (boxes, directions, frozen, rows) if rng.random() < 0.6]
    rules = [rule for limit in chosen for rule in limit(rng, x, unit)]
    if rng.random() < 0.3:
        rules += rows(rng, x, unit, "==", 1)
    return replace(draw, rules=rules)


def metric(rng: Generator, cost: str) -> Draw:
    """A shared omega: square, of less rank than features, with repeated rows or blind columns."""
    draw = bare(rng, cost)
    d = draw.x.size
    omega = rng.normal(size=(int(rng.integers(1, d + 2)), d))
    way = rng.integers(4)
    if way == 1:
        omega = np.vstack([omega, 2 * omega[:1], -omega[-1:]])
    elif way == 2 and d > 1:
        omega[:, some(rng, d - 1, 0.3)] = 0.0
    elif way == 3:
        omega = np.outer(rng.normal(size=2), omega[0])
    return replace(draw, omega=omega)


def ties(rng: Generator, cost: str) -> Draw:
    """Whole numbers, repeated prototypes, rows that repeat each other, x where things meet."""
    d, m = int(rng.integers(1, 9)), int(rng.integers(1, 30))
    target = rng.integers(-3, 4, size=d)
    pool = np.unique(rng.integers(-3, 4, size=(m, d)), axis=0)
    pool = pool[(pool != target).any(axis=1)]
    if not len(pool):
        pool = target[None, :] + 1
    rivals = pool[rng.integers(len(pool), size=m)]  # with repeats
    at = int(rng.integers(m + 1))
    W = np.insert(rivals, at, target, axis=0).astype(float)
    labels = ["no"] * at + ["yes"] + ["no"] * (m - at)
    if rng.random() < 0.3:
        W, labels = np.vstack([W, target]), [*labels, "yes"]
    nearest = rivals[np.argmin(((rivals - target) ** 2).sum(axis=1))]
    starts = [rivals[0], (nearest + target) / 2, rng.integers(-4, 5, size=d), rivals[-1] + 0.5]
    x = np.asarray(starts[rng.integers(4)], dtype=float)
    # Weights that tie as well.
    even = {"absolute": clvq.Manhattan(rng.integers(1, 3, size=d)), "squared": clvq.Euclidean()}
    price = even.get(cost) or clvq.Mahalanobis(
        np.diag(rng.integers(1, 4, size=d)) + np.ones((d, d))
    )
    return Draw("", W, labels, None, x, price, _tied_rules(rng, x, target.astype(float)))


def _tied_rules(rng: Generator, x: Array, target: Array) -> Rules:
    """Limits that the target prototype itself keeps, so that most cells are reached."""
    d, out = x.size, []
    for j in range(d):
        way = rng.integers(8)
        if way == 0:
            out.append(clvq.Bounds(j, upper=max(target[j] + 1, x[j])))
        elif way == 1:
            out.append(clvq.Bounds(j, lower=min(target[j] - 1, x[j])))
        elif way == 2:
            out.append((clvq.Increase if target[j] >= x[j] else clvq.Decrease)(j))
    for _ in range(int(rng.integers(3))):
        a = rng.integers(-1, 2, size=d).astype(float)
        if not a.any():
            continue
        level = max(float(a @ target), float(a @ x)) + float(rng.integers(2))
        out += [clvq.Linear(a, "<=", level)] * int(rng.integers(1, 3))
        out.append(clvq.Linear(2 * a, "<=", 2 * level + 1))  # says nothing new
    if d > 2 and rng.random() < 0.3:
        b = np.zeros(d)
        b[:2] = 1.0, -1.0
        out += [clvq.Linear(b, "==", b @ target)] * 2  # the second says it again
    return out


def few_digits(values: np.ndarray) -> np.ndarray:
    return np.round(values * 1024) / 1024


def clashing(rng: Generator, cost: str) -> Draw:
    """Rules that leave no answer, by one of several ways."""
    draw = bare(rng, cost)
    # Few digits, so that what cancels on paper cancels exactly: otherwise there is room far out.
    draw = replace(draw, prototypes=few_digits(draw.prototypes), x=few_digits(draw.x))
    x, d, unit = draw.x, draw.x.size, np.ones(draw.x.size)
    target = draw.prototypes[list(draw.labels).index("yes")]
    rival = draw.prototypes[list(draw.labels).index("no")]
    normal, middle = rival - target, (rival + target) / 2
    behind = float(normal @ (x - middle))
    a, room = few_digits(rng.normal(size=d)), 0.05 + rng.exponential()
    out = [boxes, directions, rows][rng.integers(3)](rng, x, unit) if rng.random() < 0.4 else []
    way = rng.integers(6)
    if way == 0 and behind > 0:  # steps too short to get across
        step = rng.uniform(0.05, 0.95) * behind / np.abs(normal).sum()
        out += [clvq.MaxChange(j, step) for j in range(d)]
    elif way == 1:  # kept on the rival's side by a row
        out.append(clvq.Linear(normal, ">=", float(normal @ middle) + room))
    elif way == 2:  # two rows against each other
        v = float(a @ x)
        out += [clvq.Linear(a, "<=", v), clvq.Linear(3 * a, ">=", 3 * (v + room))]
    elif way == 3:  # three equalities of which two say the third otherwise
        b = few_digits(rng.normal(size=d))
        out += [clvq.Linear(a, "==", float(a @ x)), clvq.Linear(b, "==", float(b @ x) + 0.1)]
        out.append(clvq.Linear(a + b, "==", float((a + b) @ x) - room))
    elif way == 4 and behind > 0:  # only the wrong way
        out += [(clvq.Increase if normal[j] > 0 else clvq.Decrease)(j) for j in range(d)]
    else:  # a box that a row does not reach
        out += [clvq.MaxChange(j, 1.0) for j in range(d)]
        out.append(clvq.Linear(a, ">=", float(a @ x) + np.abs(a).sum() + room))
    return replace(draw, rules=out)


def uneven(rng: Generator, cost: str) -> Draw:
    """Features from a millionth to a million, each in a unit of its own; the cost follows."""
    unit = 10.0 ** rng.uniform(-6, 6, size=sizes(rng)[0])
    draw = bare(rng, cost, unit)
    if rng.random() < 0.7:  # a metric in those units too, else the largest features rule
        draw = replace(draw, omega=rng.normal(size=(unit.size,) * 2) / unit)
    chosen = [limit for limit in (boxes, directions, frozen, rows) if rng.random() < 0.4]
    return replace(draw, rules=[rule for limit in chosen for rule in limit(rng, draw.x, unit)])


def mispriced(rng: Generator, cost: str) -> Draw:
    """Prices from a millionth to a million that have nothing to do with the features' sizes."""
    draw = bare(rng, cost)
    reach = 6 if cost == "absolute" else 3  # a quadratic cost squares the units
    unit = 10.0 ** rng.uniform(-reach, reach, size=draw.x.size)
    ones = np.ones(draw.x.size)
    chosen = [limit for limit in (boxes, directions, rows) if rng.random() < 0.4]
    rules = [rule for limit in chosen for rule in limit(rng, draw.x, ones)]
    return replace(draw, cost=COSTS[cost](rng, unit), rules=rules)


KINDS: dict[str, Callable[[Generator, str], Draw]] = {
    "plain": plain,
    "boxes": limited(boxes),
    "directions": limited(directions),
    "frozen": limited(frozen),
    "rows": limited(rows),
    "equalities": limited(equalities),
    "everything": everything,
    "metric": metric,
    "ties": ties,
    "clashing": clashing,
    "uneven": uneven,
    "mispriced": mispriced,
}


def drawn(kind: str, cost: str, seed: int) -> Draw:
    key = [list(KINDS).index(kind), list(COSTS).index(cost), seed]
    draw = KINDS[kind](np.random.default_rng(key), cost)
    return replace(draw, name=f"{kind}-{cost}-{seed}")
