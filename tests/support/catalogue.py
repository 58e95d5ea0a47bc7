"""One catalogue of problems, each as the package's own objects and as plain arrays.

`Rule` and `Price` pair what a user would write with what the oracles understand; a `Problem` holds
both sides, so a test can pose one question to the package and to an oracle. Optima solved by hand
carry their derivation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import counterlvq as clvq
from tests.support import oracles
from tests.support.oracles import (
    Absolute,
    Array,
    Ellipsoid,
    Interval,
    Mixed,
    Question,
    Row,
    Squared,
)

# --- both sides of a cost, of a constraint, of a problem ----------------------------------------


@dataclass(frozen=True, eq=False)
class Price:
    public: Any
    plain: oracles.Cost


@dataclass(frozen=True, eq=False)
class Rule:
    public: Any
    plain: tuple[oracles.Constraint, ...]


@dataclass(frozen=True, eq=False)
class Problem:
    name: str
    prototypes: Array
    labels: Sequence[Any]
    x: Array
    target: Any
    price: Price
    rules: tuple[Rule, ...] = ()
    omega: Array | None = None
    feature_names: Sequence[str] | None = None
    optimum: float | None = None  # where it was solved by hand
    conflict: tuple[int, ...] | None = None  # positions in rules; () where several sets would do

    def explainer(self) -> clvq.Explainer:
        model = clvq.PrototypeModel(
            self.prototypes, self.labels, omegas=self.omega, feature_names=self.feature_names
        )
        constraints = [rule.public for rule in self.rules]
        return clvq.Explainer(model, cost=self.price.public, constraints=constraints)

    @property
    def targets(self) -> list[Any]:
        """The wished-for labels, spelled out."""
        if isinstance(self.target, list | tuple | set | frozenset):
            return list(self.target)
        if self.target is not None:
            return [self.target]
        own = oracles.predict(self.prototypes, self.labels, self.omega, self.x)[0]
        return [label for label in dict.fromkeys(self.labels) if label != own]

    def question(self, keep: Sequence[int] | None = None) -> Question:
        """The plain question, under all rules or under those at the given positions."""
        rules = self.rules if keep is None else [self.rules[k] for k in keep]
        plain = tuple(constraint for rule in rules for constraint in rule.plain)
        return Question(
            self.prototypes, self.labels, self.omega, self.x, self.targets, self.price.plain, plain
        )


# --- costs --------------------------------------------------------------------------------------


def manhattan(d: int, weights: ArrayLike | None = None) -> Price:
    if weights is None:
        return Price(clvq.Manhattan(), Absolute(np.ones(d)))
    return Price(clvq.Manhattan(weights=weights), Absolute(np.asarray(weights, dtype=float)))


def euclidean(d: int) -> Price:
    return Price(clvq.Euclidean(), Squared(np.eye(d)))


def mahalanobis(matrix: ArrayLike) -> Price:
    return Price(clvq.Mahalanobis(matrix), Squared(np.asarray(matrix, dtype=float)))


@dataclass(frozen=True, eq=False)
class OwnCost(clvq.Cost):
    """What a user would write: an absolute part and a quadratic one."""

    weights: Array
    factor: Array

    def l1_weights(self, width: int) -> Array:
        return self.weights

    def l2_factor(self, width: int) -> Array:
        return self.factor


def mixed(weights: ArrayLike, factor: ArrayLike) -> Price:
    w, L = np.asarray(weights, dtype=float), np.asarray(factor, dtype=float)
    return Price(OwnCost(w, L), Mixed(w, L.T @ L))


# --- constraints; features by position, or by name when names are given -------------------------

Names = Sequence[str] | None


def _keys(positions: Sequence[int], names: Names) -> list[Any]:
    return [j if names is None else names[j] for j in positions]


def freeze(x: Array, *positions: int, names: Names = None) -> Rule:
    plain = tuple(Interval(j, x[j], x[j]) for j in positions)
    return Rule(clvq.Freeze(*_keys(positions, names)), plain)


def bounds(j: int, lower: float = -np.inf, upper: float = np.inf, names: Names = None) -> Rule:
    public = clvq.Bounds(_keys([j], names)[0], lower=lower, upper=upper)
    return Rule(public, (Interval(j, lower, upper),))


def increase(x: Array, *positions: int, names: Names = None) -> Rule:
    plain = tuple(Interval(j, lower=x[j]) for j in positions)
    return Rule(clvq.Increase(*_keys(positions, names)), plain)


def decrease(x: Array, *positions: int, names: Names = None) -> Rule:
    plain = tuple(Interval(j, upper=x[j]) for j in positions)
    return Rule(clvq.Decrease(*_keys(positions, names)), plain)


def max_change(x: Array, j: int, by: float, names: Names = None) -> Rule:
    up = np.eye(len(x))[j]
    plain = (Row(up, "<=", x[j] + by), Row(-up, "<=", by - x[j]))
    return Rule(clvq.MaxChange(_keys([j], names)[0], by), plain)


def linear(
    d: int, coefficients: Mapping[int, float], sense: str, value: float, names: Names = None
) -> Rule:
    keyed = dict(zip(_keys(list(coefficients), names), coefficients.values(), strict=True))
    return Rule(clvq.Linear(keyed, sense, value), (row(d, coefficients, sense, value),))


def row(d: int, coefficients: Mapping[int, float], sense: str, value: float) -> Row:
    vector = np.zeros(d)
    vector[list(coefficients)] = list(coefficients.values())
    return Row(-vector, "<=", -value) if sense == ">=" else Row(vector, sense, value)


def ellipsoid(
    d: int,
    matrix: ArrayLike,
    value: float,
    center: ArrayLike | None = None,
    positions: Sequence[int] | None = None,
    names: Names = None,
) -> Rule:
    """A quadratic constraint; without a center it is centred on the origin."""
    features = None if positions is None else _keys(positions, names)
    public = clvq.Quadratic(matrix, value, center=center, features=features)
    where = list(range(d)) if positions is None else list(positions)
    full, middle = np.zeros((d, d)), np.zeros(d)
    full[np.ix_(where, where)] = matrix
    middle[where] = 0.0 if center is None else center
    return Rule(public, (Ellipsoid(full, middle, value),))


def text(sentence: str, *plain: oracles.Constraint) -> Rule:
    return Rule(sentence, plain)


# --- solved by hand: one line -------------------------------------------------------------------

Pair = tuple[str, Callable[[int], Price]]
L1: Pair = ("l1", manhattan)
L2: Pair = ("l2", euclidean)


def _array(*values: Any) -> Array:
    return np.array(values, dtype=float)


def on_a_line() -> Iterator[Problem]:
    """Two prototypes at 0 and 4 change hands at 2."""
    W, labels = _array([0], [4]), ["a", "b"]
    for (cost, price), (start, target) in product([L1, L2], [(1, "b"), (0, "b"), (10, "a")]):
        distance = abs(start - 2)
        yield Problem(
            f"line-{cost}-from-{start}",
            W,
            labels,
            _array(start),
            target,
            price(1),
            optimum=distance if cost == "l1" else distance**2,
        )
    yield Problem("line-x-on-the-boundary", W, labels, _array(2), "b", manhattan(1), optimum=0.0)
    yield Problem("line-already-there", W, labels, _array(3), "b", manhattan(1), optimum=0.0)
    yield Problem(
        "line-already-one-of-several", W, labels, _array(3), ["a", "b"], euclidean(1), optimum=0.0
    )
    yield Problem(
        "line-bounds-far-beyond-the-boundary",
        W,
        labels,
        _array(1),
        "b",
        manhattan(1),
        (bounds(0, lower=7, upper=9),),
        optimum=6.0,
    )


def on_a_line_both_ways() -> Iterator[Problem]:
    """Rivals at 0 and 7, targets at 6 and -8: from 0 the region begins at 3 and at -4."""
    W, labels, x = _array([0], [6], [7], [-8]), [5, 2, 5, 2], _array(0)
    yield Problem("both-ways-right", W, labels, x, 2, manhattan(1), optimum=3.0)
    yield Problem(
        "both-ways-left", W, labels, x, 2, manhattan(1), (bounds(0, upper=2),), optimum=4.0
    )
    # Right of 6.5 the rival at 7 rules, so the window above 3 closes there.
    yield Problem(
        "both-ways-window", W, labels, x, 2, euclidean(1), (bounds(0, lower=5),), optimum=25.0
    )


def tied_with_a_rival() -> Iterator[Problem]:
    """A target prototype that a rival sits on never wins; the other target, at 4, does from 2."""
    W, labels = _array([0], [10], [10], [4]), ["a", "a", "b", "b"]
    yield Problem("tied-with-a-rival", W, labels, _array(0), "b", manhattan(1), optimum=2.0)


# --- solved by hand: one plane ------------------------------------------------------------------
# Prototypes a at (0, 0) and b at (4, 2), x at the origin. With change (u, v) the label is b where
# 4u + 2v >= (16 + 4) / 2 = 10.

PLANE, PLANE_LABELS, ORIGIN = _array([0, 0], [4, 2]), ["a", "b"], _array(0, 0)
ALL_ONES = np.ones((2, 2))


def _plane_rules() -> list[tuple[str, tuple[Rule, ...], float, float]]:
    """Name, rules, optimum for L1, optimum for squared L2."""
    x, names = ORIGIN, ["x0", "x1"]
    return [
        # L1 moves u alone, 10/4; L2 goes straight, 10^2 / (4^2 + 2^2).
        ("free", (), 2.5, 5.0),
        # u = 0 leaves v = 5.
        ("freeze", (freeze(x, 0, names=names),), 5.0, 25.0),
        ("decrease", (decrease(x, 0),), 5.0, 25.0),
        ("decrease-and-increase", (decrease(x, 0, names=names), increase(x, 1)), 5.0, 25.0),
        # No rule binds: both features go up anyway.
        ("increase", (increase(x, 0, 1),), 2.5, 5.0),
        # u = 1 leaves v = 3.
        ("upper-bound", (bounds(0, upper=1.0),), 4.0, 10.0),
        ("named-bound", (bounds(0, -7.0, 1.0, names=names),), 4.0, 10.0),
        ("ellipsoid-of-one-feature", (ellipsoid(2, [[1.0]], 1.0, [0.0], [0]),), 4.0, 10.0),
        # x itself breaks v >= 4; then u = 0.5.
        ("lower-bound-above-x", (bounds(1, lower=4.0),), 4.5, 16.25),
        # u = 0.5 leaves v = 4.
        ("max-change", (max_change(x, 0, 0.5),), 4.5, 16.25),
        # u + v <= 2 and 4u + 2v >= 10 meet at (3, -1), and nothing admissible has a smaller u.
        ("linear-less", (linear(2, {0: 1, 1: 1}, "<=", 2),), 4.0, 10.0),
        # v >= u + 1 and 4u + 2v >= 10 meet at (4/3, 7/3).
        ("linear-greater", (linear(2, {1: 1, 0: -1}, ">=", 1, names=names),), 11 / 3, 65 / 9),
        ("text-greater", (text("x1 - x0 >= 1", row(2, {1: 1, 0: -1}, ">=", 1)),), 11 / 3, 65 / 9),
        # u = v = 10/6.
        ("linear-equal", (linear(2, {0: 1, 1: -1}, "==", 0),), 10 / 3, 50 / 9),
        ("text-equal", (text("x0 == x1", row(2, {0: 1, 1: -1}, "==", 0)),), 10 / 3, 50 / 9),
        # On 4u + 2v = 10 the circle gives 5u^2 - 8u = 0, so (1.6, 1.8): for L2 the gradient
        # (3.2, 3.6) is 1.2 (4, 2) - 0.5 (3.2, -2.4), for L1 (1, 1) is 0.35 (4, 2) - 0.125 (...).
        ("ball", (ellipsoid(2, np.eye(2), 4.0, [0, 3]),), 3.4, 5.8),
        # u^2 + 4 v^2 <= 6.25: the tip (2.5, 0) lies on the boundary line and is L1's answer; the
        # line meets the ellipse again at 17u^2 - 80u + 93.75 = 0, u = 75/34 = 2.205.., still
        # beyond L2's free answer u = 2, so L2 stops there at v = 10/17.
        ("ellipse", (ellipsoid(2, [[1, 0], [0, 4]], 6.25),), 2.5, (75 / 34) ** 2 + (10 / 17) ** 2),
    ]


def in_a_plane() -> Iterator[Problem]:
    for name, rules, l1, l2 in _plane_rules():
        for (cost, price), optimum in zip([L1, L2], [l1, l2], strict=True):
            yield Problem(
                f"plane-{cost}-{name}",
                PLANE,
                PLANE_LABELS,
                ORIGIN,
                "b",
                price(2),
                rules,
                optimum=optimum,
            )


def in_a_plane_other_costs() -> Iterator[Problem]:
    x = ORIGIN
    cases = [
        # Per unit of cost, u gains 4/3 and v gains 2.
        ("weights", manhattan(2, [3.0, 1.0]), (), 5.0),
        # 10^2 / (4^2 / 4 + 2^2 / 1).
        ("definite", mahalanobis(np.diag([4.0, 1.0])), (), 12.5),
        # On the line 1 + 2u = 4t and 1 + 2v = 2t: t = 1.3, u = 2.1, v = 0.8.
        ("both-parts", mixed([1.0, 1.0], np.eye(2)), (), 7.95),
        # Singular: v is free of charge, so is u = v, so is u = -v.
        ("singular-axis", mahalanobis(np.diag([1.0, 0.0])), (), 0.0),
        ("singular-difference", mahalanobis([[1.0, -1.0], [-1.0, 1.0]]), (), 0.0),
        ("singular-sum", mahalanobis(ALL_ONES), (), 0.0),
        # Only v costs, u is frozen, v = 5.
        ("singular-frozen", mahalanobis(np.diag([0.0, 1.0])), (freeze(x, 0),), 25.0),
        # On the line u + v = 5/2 + v/2, smallest at v = -1, where it is 2.
        ("singular-bounded", mahalanobis(ALL_ONES), (bounds(1, lower=-1.0),), 4.0),
    ]
    for name, price, rules, optimum in cases:
        yield Problem(f"plane-{name}", PLANE, PLANE_LABELS, x, "b", price, rules, optimum=optimum)


# What is tried in words: names, prototypes, input, rule, labels, and the optimum in either cost.
_IN_WORDS: dict[str, tuple[list[str], Array, Array, Rule, list[str], tuple[float, float]]] = {
    # Change (u, v) from (100, 80) is 'high' where 40u + 80v >= 4000; v <= u + 10 as well gives
    # u = 80/3 and v = 110/3.
    "floors": (
        ["first_floor", "second_floor"],
        _array([100, 80], [140, 160]),
        _array(100, 80),
        text("second_floor <= first_floor - 10", row(2, {1: 1, 0: -1}, "<=", -10)),
        ["low", "high"],
        (190 / 3, 18500 / 9),
    ),
    # u + v >= 60 and u + 2v = 100: both costs fall as v grows until v = 40, u = 20.
    "garage": (
        ["1st floor", "garage"],
        _array([100, 50], [160, 110]),
        _array(100, 50),
        text("`1st floor` + 2 * garage == 300", row(2, {0: 1, 1: 2}, "==", 300)),
        ["low", "high"],
        (60.0, 2000.0),
    ),
    # Change (u, v) from (25, 12) is granted where 20u - 5v >= 122.5; u <= 5 leaves v = -4.5.
    "income": (
        ["income", "debt"],
        _array([20, 10], [40, 5]),
        _array(25, 12),
        text("income <= 1.2 * original(income)", Row(_array(1, 0), "<=", 30.0)),
        ["deny", "grant"],
        (9.5, 45.25),
    ),
}


def in_words() -> Iterator[Problem]:
    """Rules as sentences over named features."""
    for name, (names, W, x, rule, labels, optima) in _IN_WORDS.items():
        for (cost, price), optimum in zip([L1, L2], optima, strict=True):
            full, rules = f"words-{name}-{cost}", (rule,)
            yield Problem(full, W, labels, x, labels[1], price(2), rules, None, names, optimum)


# --- costs x constraints x kinds of label, on one model of three classes ------------------------

TRIO_CLASSES = [2, 0, 1, 1, 2, 0, 2, 1]  # every class away from the front at least once
_rng = np.random.default_rng(20)
TRIO = np.round(_rng.normal(size=(8, 3)) * 2, 3)
TRIO_X = np.round(TRIO[5] + 0.3 * _rng.normal(size=3), 3)  # of class 0
TRIO_OMEGA = np.round(_rng.normal(size=(3, 3)), 3)

ALPHABETS: dict[str, list[Any]] = {
    "int": [0, 1, 2],
    "str": ["red", "green", "a longer name"],
    "bool": [False, True, True],
    "negative": [-1, -7, 3],
    "gaps": [10, 1000, 7],
    "float": [0.5, -1.5, 2.25],
}


def trio_prices() -> dict[str, Price]:
    factor = np.array([[1.0, 0.4, 0.0], [0.0, 0.8, -0.5], [0.3, 0.0, 1.2]])
    return {
        "l1": manhattan(3),
        "weighted": manhattan(3, [0.5, 2.0, 1.25]),
        "l2": euclidean(3),
        "definite": mahalanobis(factor.T @ factor),
        "singular": Price(
            clvq.Mahalanobis.from_factor(factor[:2]), Squared(factor[:2].T @ factor[:2])
        ),
        "both-parts": mixed([0.5, 2.0, 1.25], factor),
    }


def trio_rules() -> dict[str, tuple[Rule, ...]]:
    x, names = TRIO_X, ["x0", "x1", "x2"]
    tilted = np.array([[1.0, 0.2, 0.1], [0.2, 0.6, 0.0], [0.1, 0.0, 0.9]])
    return {
        "none": (),
        "freeze": (freeze(x, 1, names=names),),
        "bounds": (bounds(0, x[0] - 0.6, x[0] + 0.5), bounds(2, upper=x[2] + 0.2, names=names)),
        "increase": (increase(x, 0),),
        "decrease": (decrease(x, 0, 2, names=names),),
        "max-change": (max_change(x, 0, 0.4), max_change(x, 2, 0.9, names=names)),
        "less": (linear(3, {0: 1.0, 1: -0.5}, "<=", x[0] - 0.5 * x[1] - 0.1),),
        "greater": (linear(3, {1: 1.0, 2: 2.0}, ">=", x[1] + 2 * x[2] + 0.3, names=names),),
        "equal": (linear(3, {0: 1.0, 1: 1.0, 2: 1.0}, "==", x.sum() + 0.25),),
        "ellipsoid": (ellipsoid(3, tilted, 6.0, x + _array(0.2, -0.1, 0.3)),),
        "words": (
            text("x0 - 0.9 * x1 <= x2 + 2", row(3, {0: 1, 1: -0.9, 2: -1}, "<=", 2)),
            text("x1 >= original(x1) - 1.5", row(3, {1: 1}, ">=", x[1] - 1.5)),
        ),
        "several": (
            freeze(x, 2),
            max_change(x, 0, 2.5),
            text("x1 >= original(x1) - 3", row(3, {1: 1}, ">=", x[1] - 3)),
        ),
    }


def _wishes(alphabet: list[Any]) -> list[Any]:
    """Targets to rotate through; the first label is the input's own."""
    others = list(dict.fromkeys(alphabet[1:]))
    return [*others, None, others, tuple(others[-1:])]


def crossed() -> Iterator[Problem]:
    prices, rules = trio_prices(), trio_rules()
    combinations = product(ALPHABETS, prices, rules)
    for count, (kind, cost, rule) in enumerate(combinations):
        alphabet = ALPHABETS[kind]
        wishes = _wishes(alphabet)
        yield Problem(
            f"{kind}-{cost}-{rule}",
            TRIO,
            [alphabet[c] for c in TRIO_CLASSES],
            TRIO_X,
            wishes[count % len(wishes)],
            prices[cost],
            rules[rule],
            omega=TRIO_OMEGA if count % 2 else None,
        )


# --- every class as target ----------------------------------------------------------------------


def every_class() -> Iterator[Problem]:
    rng = np.random.default_rng(3)
    models = {"three": (3, 3, 4), "ten": (10, 2, 6), "ten-singles": (10, 1, 3)}
    for name, (classes, each, d) in models.items():
        W = rng.normal(size=(classes * each, d))
        labels = [f"class {c}" for c in rng.permutation(np.arange(classes).repeat(each))]
        omega, inputs = rng.normal(size=(d, d)), rng.normal(size=(20, d))
        for target, (cost, price) in product(sorted(set(labels)), [L1, L2]):
            metric = omega if target[-1] in "13579" else None
            x = inputs[np.argmax(oracles.predict(W, labels, metric, inputs) != target)]
            yield Problem(f"{name}-{cost}-{target}", W, labels, x, target, price(d), omega=metric)


# --- metrics ------------------------------------------------------------------------------------


def metrics() -> Iterator[Problem]:
    rng = np.random.default_rng(4)
    W, x = rng.normal(size=(7, 4)), rng.normal(size=4)
    labels = [1, 0, 0, 2, 1, 2, 0]
    correlated = 0.99 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    omegas = {
        "one-row": rng.normal(size=(1, 4)),
        "two-rows": rng.normal(size=(2, 4)),
        "repeated-rows": rng.normal(size=(1, 4)) * _array([1], [2], [-1]),
        "a-feature-ignored": np.diag([1.0, 0.0, 2.0, 0.5]),
        "more-rows-than-features": rng.normal(size=(7, 4)),
        "correlated": np.linalg.cholesky(np.linalg.inv(correlated)).T,
        "large": 1e5 * rng.normal(size=(4, 4)),
        "small": 1e-5 * rng.normal(size=(4, 4)),
    }
    for (name, omega), (cost, price) in product(omegas.items(), [L1, L2]):
        yield Problem(f"omega-{name}-{cost}", W, labels, x, None, price(4), omega=omega)
        yield Problem(
            f"omega-{name}-{cost}-frozen",
            W,
            labels,
            x,
            None,
            price(4),
            (freeze(x, 1), max_change(x, 3, 3.0)),
            omega=omega,
        )


# --- sizes and offsets --------------------------------------------------------------------------


def sizes() -> Iterator[Problem]:
    units = {
        "huge": (np.full(3, 1e6), 0.0),
        "tiny": (np.full(3, 1e-6), 0.0),
        "mixed": (_array(1e6, 1e-6, 1), 0.0),
        "offset": (np.ones(3), 1e4),
        "offset-mixed": (_array(1e3, 1e-3, 1), 1e4),
    }
    for name, (unit, offset) in units.items():
        prices = {
            "l1": manhattan(3),
            "weighted": manhattan(3, 1 / unit),
            "l2": euclidean(3),
            "scaled": mahalanobis(np.diag(unit**-2.0)),
        }
        for (cost, price), metric in product(prices.items(), ["plain", "own-units"]):
            omega = None if metric == "plain" else TRIO_OMEGA / unit
            yield from _sized(f"{name}-{cost}-{metric}", unit, offset, price, omega)


def _sized(
    name: str, unit: Array, offset: float, price: Price, omega: Array | None
) -> Iterator[Problem]:
    W, x = (TRIO + offset) * unit, (TRIO_X + offset) * unit
    shared = {"labels": TRIO_CLASSES, "price": price, "omega": omega}
    own = oracles.predict(W, TRIO_CLASSES, omega, x)[0]
    first, second = (c for c in (1, 2, 0) if c != own)
    yield Problem(name, W, x=x, target=first, **shared)
    yield Problem(f"{name}-frozen", W, x=x, target=second, rules=(freeze(x, 2),), **shared)
    limits = (max_change(x, 0, 0.8 * unit[0]), bounds(1, x[1] - 5 * unit[1], x[1] + 5 * unit[1]))
    yield Problem(f"{name}-limited", W, x=x, target=None, rules=limits, **shared)


def sized_ellipsoids() -> Iterator[Problem]:
    cases = [("huge", 1e6, 0.0), ("tiny", 1e-6, 0.0), ("offset", 1.0, 1e4)]
    for (name, unit, offset), (cost, price) in product(cases, [L1, L2]):
        W, x = (TRIO + offset) * unit, (TRIO_X + offset) * unit
        rule = ellipsoid(3, np.diag([1.0, 2.0, 0.5]) / unit**2, 5.0, x + 0.2 * unit)
        yield Problem(f"ellipsoid-{name}-{cost}", W, TRIO_CLASSES, x, 1, price(3), (rule,))


# --- where the input stands, and other shapes ---------------------------------------------------


def positions() -> Iterator[Problem]:
    starts = {
        "on-a-prototype": TRIO[5],
        "far-outside": TRIO[5] + _array(300, -200, 500),
        "very-far-outside": TRIO[5] + 1e5 * _array(-1, 2, 1),
        "just-before-the-boundary": _near_boundary(),
    }
    for (name, x), (cost, price) in product(starts.items(), [L1, L2]):
        yield Problem(f"x-{name}-{cost}", TRIO, TRIO_CLASSES, x, None, price(3))
        yield Problem(f"x-{name}-{cost}-bool", TRIO, _is_one(), x, None, price(3))


def _near_boundary() -> Array:
    """Half a thousandth of the way short of where the segment between two prototypes turns."""
    x = TRIO[5]
    reach = np.linspace(0, 1, 100_001)[:, None]
    path = x + reach * (TRIO[3] - x)
    classes = oracles.predict(TRIO, TRIO_CLASSES, None, path)
    return path[np.argmax(classes != classes[0]) - 50]


def _is_one() -> list[bool]:
    return [c == 1 for c in TRIO_CLASSES]


def shapes() -> Iterator[Problem]:
    rng = np.random.default_rng(6)
    twice = np.vstack([TRIO, TRIO, TRIO[2:4]])
    doubled = TRIO_CLASSES * 2 + TRIO_CLASSES[2:4]
    flat = TRIO * _array(1, 0, 1) + _array(0, 3, 0)
    many, wide = rng.normal(size=(200, 5)), rng.normal(size=(12, 20))
    thin = _array([0, 0], [1, 0], [1.001, 0], [0, 5])  # the middle cell is a sliver
    for cost, price in [L1, L2]:
        yield Problem(f"duplicates-{cost}", twice, doubled, TRIO_X, 1, price(3))
        yield Problem(f"constant-feature-{cost}", flat, TRIO_CLASSES, TRIO_X, 2, price(3))
        yield Problem(
            f"many-{cost}", many, list(rng.integers(4, size=200)), many[0] + 0.1, None, price(5)
        )
        yield Problem(f"wide-{cost}", wide, ["n", "y", "n"] * 4, wide[0], "y", price(20))
        yield Problem(f"sliver-{cost}", thin, list("abac"), _array(0.1, 0.2), "b", price(2))


# --- found by the properties, kept as they were -------------------------------------------------


def kept() -> Iterator[Problem]:
    # w = -1 for the label, v = 0.37 as far as it may go, then u = 2.3 - 2.74 + 2 = 1.56.
    x = _array(0, 1, 0)
    rules = (linear(3, {0: 1, 1: 2, 2: 2}, ">=", 2.3), max_change(x, 1, 0.37))
    W = _array([0, 0, 0], [0, 0, -2])
    yield Problem("kept-row-against-step", W, ["a", "b"], x, "b", manhattan(3), rules, optimum=2.93)

    x = _array(1, 2, 0)
    rules = (linear(3, {0: 1, 1: 1, 2: 1}, ">=", 3.3), max_change(x, 1, 0.37))
    W, omega = _array([0, 0, 0], [0, 0, 1]), _array([0, 0, 1], [2, 0, 2])
    yield Problem("kept-row-and-metric", W, ["a", "b"], x, "a", manhattan(3), rules, omega)

    # The answer is a corner of its cell: stepping along one side keeps the tie with the other.
    W = _array([0, 1], [2, -6], [1, 1], [-1, -4], [-4, 3], [-4, 0])
    omega, x = _array([1, 0], [2, 2]), _array(-1, 0)
    yield Problem("kept-corner", W, list("bbaaba"), x, "a", manhattan(2), (), omega, optimum=1.5)


# --- nothing to be found ------------------------------------------------------------------------


def infeasible() -> Iterator[Problem]:
    """Rules that cannot hold together where 4u + 2v >= 10, and which of them is to blame."""
    for (name, (rules, conflict)), (cost, price) in product(_clashes().items(), [L1, L2]):
        yield Problem(
            f"infeasible-{name}-{cost}",
            PLANE,
            PLANE_LABELS,
            ORIGIN,
            "b",
            price(2),
            rules,
            conflict=conflict,
        )


def _clashes() -> dict[str, tuple[tuple[Rule, ...], tuple[int, ...]]]:
    x = ORIGIN
    small_sum = text("x0 + x1 <= 1", row(2, {0: 1, 1: 1}, "<=", 1))
    large = text("x0 >= 5", row(2, {0: 1}, ">=", 5))
    ball = np.eye(2)
    idle = max_change(x, 0, 50.0)
    return {
        "all-frozen": ((freeze(x, 0, 1),), (0,)),
        "each-frozen": ((freeze(x, 0), freeze(x, 1)), (0, 1)),
        "frozen-and-idle": ((idle, freeze(x, 0, 1), increase(x, 1)), (1,)),
        "only-down": ((decrease(x, 0), idle, decrease(x, 1)), (0, 2)),
        "small-steps": ((max_change(x, 1, 1.0), idle, max_change(x, 0, 1.0)), (0, 2)),
        "box": ((bounds(0, -1, 1), bounds(1, upper=2.5)), (0, 1)),
        "rules-alone": ((bounds(0, upper=1), idle, large), (0, 2)),
        "frozen-above-its-bound": ((freeze(x, 0), idle, bounds(0, upper=-0.7)), (0, 2)),
        "small-sum": ((increase(x, 1), small_sum, idle), (0, 1)),
        "equality": ((linear(2, {0: 1, 1: 1}, "==", 2), bounds(1, lower=0.5), idle), (0, 1)),
        "small-ball": ((idle, ellipsoid(2, ball, 1.0, [0, 0])), (1,)),
        "far-ball": ((ellipsoid(2, ball, 1.0, [-9, 3]), idle), (0,)),
        "ball-and-frozen": ((ellipsoid(2, ball, 9.0), freeze(x, 0)), (0, 1)),
        "several-reasons": ((freeze(x, 0, 1), bounds(0, -1, 1), bounds(1, upper=2.5)), ()),
    }


def infeasible_elsewhere() -> Iterator[Problem]:
    # Targets begin at 3 and at -4: each rule closes one side.
    W, labels, x = _array([0], [6], [7], [-8]), ["a", "b", "a", "b"], _array(0)
    sides = (bounds(0, upper=2.0), text("x0 >= original(x0) - 3", row(1, {0: 1}, ">=", -3)))
    # The changes must sum to 1.5, and each may be 0.4 only.
    corner, zero = _array([1, 1, 1], [0, 0, 0]), np.zeros(3)
    steps = tuple(max_change(zero, j, 0.4) for j in range(3))
    for cost, price in [L1, L2]:
        yield Problem(
            f"infeasible-both-ways-{cost}", W, labels, x, "b", price(1), sides, conflict=(0, 1)
        )
        yield Problem(
            f"infeasible-three-steps-{cost}",
            corner,
            [1, 0],
            zero,
            1,
            price(3),
            (increase(zero, 1), *steps),
            conflict=(1, 2, 3),
        )


# --- the whole ----------------------------------------------------------------------------------

_SOURCES = (
    on_a_line,
    on_a_line_both_ways,
    tied_with_a_rival,
    in_a_plane,
    in_a_plane_other_costs,
    in_words,
    crossed,
    every_class,
    metrics,
    sizes,
    sized_ellipsoids,
    positions,
    shapes,
    kept,
    infeasible,
    infeasible_elsewhere,
)

PROBLEMS: tuple[Problem, ...] = tuple(problem for source in _SOURCES for problem in source())
FEASIBLE = tuple(problem for problem in PROBLEMS if problem.conflict is None)
INFEASIBLE = tuple(problem for problem in PROBLEMS if problem.conflict is not None)
