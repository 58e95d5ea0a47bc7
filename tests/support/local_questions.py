"""Questions about models with local metrics, and their optima from SCIP.

A `LocalQuestion` holds plain arrays and shares no code with the package. In the cell of target
prototype `i` its score is at most that of every rival `k`; with a metric for each prototype both
sides of

    |O_i (x' - w_i)|^2 + o_i <= |O_k (x' - w_k)|^2 + o_k

are quadratic. SCIP gets these conditions as they stand, one cell at a time. It returns a cost that
was reached and a cost that is not undercut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyscipopt as scip
from numpy.random import Generator
from numpy.typing import ArrayLike

import counterlvq as clvq
from tests.support import catalogue
from tests.support.catalogue import Price, Rule
from tests.support.oracles import Absolute, Array, Constraint, Ellipsoid, Interval, OracleError

# SCIP's rounding, as a share of an optimum and of what it costs to cross the model.
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class LocalQuestion:
    """From `x` to one of `targets`; target None is any label that the model does not give `x`."""

    name: str
    prototypes: Array  # (p, d)
    labels: Sequence[Any]  # (p,)
    omegas: Sequence[Array]  # p of (r_k, d)
    x: Array  # (d,)
    target: Any
    price: Price
    rules: tuple[Rule, ...] = ()
    offsets: Array | None = None

    def model(self) -> clvq.PrototypeModel:
        return clvq.PrototypeModel(
            self.prototypes, self.labels, omegas=self.omegas, offsets=self.offsets
        )

    def explainer(self, method: str = "global", **settings: Any) -> clvq.Explainer:
        rules = [rule.public for rule in self.rules]
        return clvq.Explainer(self.model(), self.price.public, rules, method=method, **settings)

    def explain(self, method: str = "global", **settings: Any) -> clvq.Counterfactual:
        return self.explainer(method, **settings).explain(self.x, self.target)

    # --- by definition ---------------------------------------------------------------------------

    def scores(self, X: ArrayLike) -> Array:
        X = np.atleast_2d(np.asarray(X, dtype=float))
        pairs = zip(self.prototypes, self.omegas, strict=True)
        columns = [np.sum(((X - w) @ omega.T) ** 2, axis=1) for w, omega in pairs]
        return np.stack(columns, axis=1) + (0.0 if self.offsets is None else self.offsets)

    def predict(self, X: ArrayLike) -> Array:
        return np.asarray(self.labels)[np.argmin(self.scores(X), axis=1)]

    @cached_property
    def targets(self) -> list[Any]:
        if self.target is not None:
            return [self.target]
        return sorted(set(self.labels) - {self.predict(self.x)[0]})

    @property
    def constraints(self) -> list[Constraint]:
        return [part for rule in self.rules for part in rule.plain]

    def cost(self, X: ArrayLike) -> Array:
        return self.price.plain.value(np.asarray(X) - self.x)

    def admissible(self, X: ArrayLike, tolerance: float = 1e-9) -> Array:
        """Which rows have a wished-for label and obey every rule."""
        X = np.atleast_2d(np.asarray(X, dtype=float))
        keep = np.isin(self.predict(X), self.targets)
        for constraint in self.constraints:
            keep &= constraint.holds(X, tolerance)
        return keep

    @cached_property
    def floor(self) -> float:
        """What counts as zero: far below the cost of crossing the model."""
        span = np.ptp(np.vstack([self.prototypes, self.x]), axis=0)
        return ROUNDING * float(self.price.plain.value(span))

    def scaled(self, units: Array) -> LocalQuestion:
        """The same question with each feature in another unit; only without rules."""
        assert not self.rules
        plain = self.price.plain
        if isinstance(plain, Absolute):
            price = catalogue.manhattan(units.size, plain.weights / units)
        else:
            price = catalogue.mahalanobis(plain.matrix / np.outer(units, units))
        omegas = [omega / units for omega in self.omegas]
        return replace(
            self, prototypes=self.prototypes * units, omegas=omegas, x=self.x * units, price=price
        )


# --- SCIP ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Optimum:
    """Between these the least cost lies; both inf if there is no counterfactual."""

    undercut_by_none: float
    reached: float


def optimum(question: LocalQuestion, seconds: float = 20.0) -> Optimum:
    """Least cost over the cells of all target prototypes."""
    if question.admissible(question.x)[0]:
        return Optimum(0.0, 0.0)
    cells = [
        _cell_optimum(question, i, seconds)
        for i, label in enumerate(question.labels)
        if label in question.targets
    ]
    best = min(cell.reached for cell in cells)
    return Optimum(min(best, *(cell.undercut_by_none for cell in cells)), best)


def _cell_optimum(question: LocalQuestion, i: int, seconds: float) -> Optimum:
    near = _optimum_within(question, i, _reach(question, i), seconds)
    # Cells of deficient metrics can lie far away.
    return (
        near
        if near.reached < np.inf
        else _optimum_within(question, i, 100.0 * _reach(question, i), seconds)
    )


def _optimum_within(question: LocalQuestion, i: int, reach: Array, seconds: float) -> Optimum:
    model = scip.Model()
    model.hideOutput()
    model.setParam("limits/gap", 1e-6)
    model.setParam("limits/time", seconds)
    model.setParam("numerics/feastol", 1e-7)
    d = question.x.size
    delta = [model.addVar(lb=-float(reach[j]), ub=float(reach[j])) for j in range(d)]
    own = _score(question, i, delta)
    for k, label in enumerate(question.labels):
        if label not in question.targets:
            model.addCons(own - _score(question, k, delta) <= 0)
    for constraint in question.constraints:
        _add(model, question.x, delta, constraint)
    plain = question.price.plain
    if isinstance(plain, Absolute):
        sizes = [model.addVar(lb=0.0) for _ in range(d)]
        for size, change in zip(sizes, delta, strict=True):
            model.addCons(size >= change)
            model.addCons(size >= -change)
        model.setObjective(scip.quicksum(float(w) * s for w, s in zip(plain.weights, sizes)))  # noqa: B905
    else:
        least = model.addVar(lb=0.0)
        factor = np.linalg.cholesky(plain.matrix).T
        model.addCons(_square(factor, delta, np.zeros(d)) <= least)
        model.setObjective(least)
    model.optimize()
    status = model.getStatus()
    if status == "infeasible":
        return Optimum(np.inf, np.inf)
    if status not in ("optimal", "gaplimit", "timelimit") or not model.getNSols():
        raise OracleError(f"SCIP: {status} on {question.name}")
    return Optimum(float(model.getDualbound()), float(model.getObjVal()))


def _reach(question: LocalQuestion, i: int) -> Array:
    """How far each feature can change; a prototype that is an answer itself limits the cost."""
    start = question.prototypes[i]
    span = np.ptp(np.vstack([question.prototypes, question.x]), axis=0)
    if not question.admissible(start)[0]:
        return 20.0 * span
    cap, plain = float(question.cost(start)), question.price.plain
    if isinstance(plain, Absolute):
        return cap / plain.weights + 1e-6
    return np.sqrt(cap * np.diag(np.linalg.inv(plain.matrix))) + 1e-6


def _square(matrix: Array, delta: list[Any], shift: Array) -> Any:
    """|matrix delta + shift|^2."""
    lines = [
        scip.quicksum(float(a) * v for a, v in zip(row, delta, strict=True)) + float(b)
        for row, b in zip(matrix, shift, strict=True)
    ]
    return scip.quicksum(line * line for line in lines)


def _score(question: LocalQuestion, k: int, delta: list[Any]) -> Any:
    omega = question.omegas[k]
    offset = 0.0 if question.offsets is None else float(question.offsets[k])
    return _square(omega, delta, omega @ (question.x - question.prototypes[k])) + offset


def _add(model: Any, x: Array, delta: list[Any], constraint: Constraint) -> None:
    if isinstance(constraint, Interval):
        j = constraint.feature
        if constraint.lower > -np.inf:
            model.addCons(delta[j] >= constraint.lower - x[j])
        if constraint.upper < np.inf:
            model.addCons(delta[j] <= constraint.upper - x[j])
    elif isinstance(constraint, Ellipsoid):
        values, vectors = np.linalg.eigh(constraint.matrix)
        factor = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        shift = factor @ (x - constraint.center)
        model.addCons(_square(factor, delta, shift) <= constraint.value)
    else:
        row = constraint.coefficients
        total = scip.quicksum(float(a) * v for a, v in zip(row, delta, strict=True))
        right = float(constraint.value - row @ x)
        model.addCons(total == right if constraint.sense == "==" else total <= right)


# --- draws --------------------------------------------------------------------------------------

NAMES = np.array(["oak", "a birch", "elm"])


def _per_prototype(rng: Generator, labels: Array, d: int) -> list[Array]:
    return [rng.normal(size=(d, d)) for _ in labels]


def _per_class(rng: Generator, labels: Array, d: int) -> list[Array]:
    known = {label: rng.normal(size=(d, d)) for label in NAMES}
    return [known[label] for label in labels]


def _ranks(rng: Generator, labels: Array, d: int) -> list[Array]:
    return [rng.normal(size=(int(rng.integers(1, d + 2)), d)) for _ in labels]


def _deficient(rng: Generator, labels: Array, d: int) -> list[Array]:
    """Square, and blind in one direction if there are several."""
    out = []
    for _ in labels:
        left, values, right = np.linalg.svd(rng.normal(size=(d, d)))
        values[max(d - 1, 1) :] = 0.0
        out.append((left * values) @ right)
    return out


def _partly_shared(rng: Generator, labels: Array, d: int) -> list[Array]:
    common = rng.normal(size=(d, d))
    return [common if k % 2 else rng.normal(size=(d, d)) for k in range(len(labels))]


METRICS: dict[str, Callable[[Generator, Array, int], list[Array]]] = {
    "per prototype": _per_prototype,
    "per class": _per_class,
    "different ranks": _ranks,
    "rank deficient": _deficient,
    "partly shared": _partly_shared,
}


def _absolute(rng: Generator, d: int) -> Price:
    return catalogue.manhattan(d, rng.uniform(0.3, 3.0, d))


def _correlated(rng: Generator, d: int) -> Price:
    factor = rng.normal(size=(d, d)) / np.sqrt(d) + np.eye(d)
    return catalogue.mahalanobis(factor.T @ factor + 0.1 * np.eye(d))


COSTS: dict[str, Callable[[Generator, int], Price]] = {
    "l1": _absolute,
    "l2": lambda _, d: catalogue.euclidean(d),
    "mahalanobis": _correlated,
}


@cache  # so that an optimum can be kept, too
def draw(metric: str, cost: str, seed: int, d: int | None = None) -> LocalQuestion:
    """One question, for any other class than that of `x`."""
    rng = np.random.default_rng([seed, list(METRICS).index(metric), list(COSTS).index(cost)])
    width = int(rng.integers(2, 4)) if d is None else d
    labels = rng.permutation(np.concatenate([NAMES, rng.choice(NAMES, int(rng.integers(0, 4)))]))
    prototypes = 1.5 * rng.normal(size=(labels.size, width))
    omegas = METRICS[metric](rng, labels, width)
    x = prototypes[rng.integers(labels.size)] + 0.7 * rng.normal(size=width)
    price = COSTS[cost](rng, width)
    name = f"{metric}, {cost}, {seed}"
    return LocalQuestion(name, prototypes, labels.tolist(), omegas, x, None, price)


@cache
def wishes(question: LocalQuestion) -> list[LocalQuestion]:
    """The question for each class that `x` has not, and for any of them."""
    own = question.predict(question.x)[0]
    others = [label for label in NAMES.tolist() if label != own]
    return [replace(question, target=target) for target in (*others, None)]


def ruled(question: LocalQuestion, seed: int) -> LocalQuestion:
    """The question under one or two rules of any kind."""
    rng = np.random.default_rng(seed)
    x, d = question.x, question.x.size
    j, l = (int(k) for k in rng.permutation(d)[:2])  # noqa: E741
    step = rng.exponential(1.0, size=3)
    names = [f"x{k}" for k in range(d)]
    fence = np.eye(d)[j]
    kinds: list[Rule] = [
        catalogue.freeze(x, j),
        catalogue.bounds(j, x[j] - step[0], x[j] + step[1]),
        catalogue.bounds(j, lower=x[j] + 0.3 * step[0]),
        catalogue.increase(x, j),
        catalogue.decrease(x, j, names=names),
        catalogue.max_change(x, j, step[0]),
        catalogue.linear(d, {j: 1.0, l: -2.0}, "<=", x[j] - 2 * x[l] + 0.2 * step[0]),
        catalogue.linear(d, {j: 1.0, l: 1.0}, "==", x[j] + x[l] + 0.2 * step[0]),
        catalogue.text(
            f"x{j} <= original(x{j}) + 0.5",
            *catalogue.bounds(j, upper=x[j] + 0.5).plain,
        ),
        catalogue.text(f"x{j} + x{l} >= 0.25", catalogue.row(d, {j: 1.0, l: 1.0}, ">=", 0.25)),
        catalogue.ellipsoid(d, np.eye(d) + 0.5 * np.outer(fence, fence), 6.0, x + 0.3 * step[0]),
    ]
    count = int(rng.integers(1, 3))
    chosen = [kinds[k] for k in rng.permutation(len(kinds))[:count]]
    return replace(question, name=f"{question.name}, ruled {seed}", rules=tuple(chosen))
