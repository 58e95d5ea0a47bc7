"""Questions about tables of mixed columns, and their answers by enumeration.

The oracle tries every level and every value of a grid. What is left to choose, the real numbers,
is a small program for each wished-for prototype: linear costs go to SciPy, squared ones are
projections by non-negative least squares. The cells are written down from the definition of
`predict`, in the space of the model, and the map into it is what the pipeline's own `transform`
makes of the columns. Nothing of the package is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import linprog

import counterlvq as clvq
from tests.support.oracles import nonnegative_least_squares

Array = np.ndarray
Row = dict[str, Any]
# Conditions on the real columns, given the rest of a row: A u <= b.
Rows = Callable[[Row], tuple[Array, Array]]
# The price of pairs of levels that are not listed.
OTHER_PAIRS = 0.75


@dataclass(frozen=True, eq=False)
class Prices:
    """What a change costs, said once more: by weights or by a matrix, and by switch."""

    weights: Mapping[str, float] = field(default_factory=dict)  # of absolute changes; 1 unless said
    matrix: Array | None = None  # over the columns of numbers, in their order
    switches: Mapping[str, Any] = field(default_factory=dict)

    def switch(self, name: str, before: Any, after: Any) -> float:
        if before == after:
            return 0.0
        said = self.switches.get(name)
        if said is None:
            is_number = isinstance(before, int | float) and not isinstance(before, bool)
            return float(self.weights.get(name, 1.0) * (abs(after - before) if is_number else 1))
        if not isinstance(said, Mapping):
            return float(said)
        return float(said.get((before, after), said.get((after, before), OTHER_PAIRS)))

    def cost(self, columns: Sequence[clvq.Feature]) -> clvq.Cost:
        if self.matrix is not None:
            if (self.matrix == np.eye(len(self.matrix))).all():
                return clvq.Euclidean(switches=self.switches, default=OTHER_PAIRS)
            return clvq.Mahalanobis(self.matrix, switches=self.switches, default=OTHER_PAIRS)
        each = [self.weights.get(column.name, 1.0) for column in columns]
        return clvq.Manhattan(each, switches=self.switches, default=OTHER_PAIRS)

    def of(self, columns: Sequence[clvq.Feature], x: Row, y: Row) -> float:
        """Cost of the change from `x` to `y`."""
        total = sum(self.switch(c.name, x[c.name], y[c.name]) for c in columns if not c.is_number)
        change = np.array([y[c.name] - x[c.name] for c in columns if c.is_number], dtype=float)
        if self.matrix is not None:
            return float(total + change @ self.matrix @ change)
        each = np.array([self.weights.get(c.name, 1.0) for c in columns if c.is_number])
        return float(total + each @ np.abs(change))


@dataclass(frozen=True, eq=False)
class Mixed:
    """A model of mixed columns."""

    model: Any  # what the explainer gets
    features: clvq.Features | None  # with it
    columns: tuple[clvq.Feature, ...]  # what the oracle knows of them; grids have ranges
    image: Callable[[list[Row]], Array]  # rows to the space of the prototypes
    says: Callable[[list[Row]], Array]  # the user's own predict
    W: Array
    labels: Array
    omegas: Array | Sequence[Array]  # one, or one per prototype
    # Values of the input that are off their grid, and may stay, or that changes count from.
    starts: Mapping[str, Any] = field(default_factory=dict)

    def explainer(self, prices: Prices, rules: Sequence[Any] = (), **settings: Any) -> Any:
        cost = prices.cost(self.columns)
        return clvq.Explainer(self.model, cost, rules, features=self.features, **settings)

    @property
    def real(self) -> list[clvq.Feature]:
        return [column for column in self.columns if column.is_real]

    @property
    def discrete(self) -> list[clvq.Feature]:
        return [column for column in self.columns if not column.is_real]

    def choices(self) -> Iterator[Row]:
        """Every row, its real columns left at 0."""
        real = {column.name: 0.0 for column in self.real}
        for values in product(*(self.values_of(column) for column in self.discrete)):
            named = dict(zip((column.name for column in self.discrete), values, strict=True))
            yield {column.name: {**real, **named}[column.name] for column in self.columns}

    def values_of(self, column: clvq.Feature) -> list[Any]:
        """Every value that a column may have in an answer."""
        start = self.starts.get(column.name)
        if start is None:
            return possible(column)
        if column.steps != "of change":
            return [*possible(column), start]
        unit = column.step / 10 ** (column.decimals or 0)
        down, up = (int((end - start) / unit) for end in (column.lower, column.upper))
        return [start + k * unit for k in range(down, up + 1)]

    def optimum(
        self,
        prices: Prices,
        x: Row,
        targets: set[Any],
        allowed: Callable[[Row], bool] = lambda row: True,
        rows: Rows | None = None,
    ) -> float:
        """Least cost of a row with a wished-for label, by trying everything."""
        choices = [row for row in self.choices() if allowed(row)]
        if not choices:
            return np.inf
        if not self.real:
            won = np.isin(self.says(choices), list(targets))
            paid = [prices.of(self.columns, x, y) for y, is_won in zip(choices, won) if is_won]  # noqa: B905
            return min(paid, default=np.inf)
        return self._least(prices, x, targets, choices, rows)

    def _least(
        self, prices: Prices, x: Row, targets: set[Any], choices: list[Row], rows: Rows | None
    ) -> float:
        start = {column.name: x[column.name] for column in self.real}
        # With the real columns as they are, the cost of the rest is a bound under absolute costs.
        fixed = np.array([prices.of(self.columns, x, {**row, **start}) for row in choices])
        bases = self.image(choices)
        steps = [{**choices[0], column.name: 1.0} for column in self.real]
        B = (self.image(steps) - bases[0]).T
        wished = [i for i, label in enumerate(self.labels.tolist()) if label in targets]
        rivals = [i for i in range(len(self.labels)) if i not in wished]
        omega = np.asarray(self.omegas)
        M, best = omega.T @ omega, np.inf
        for at in np.argsort(fixed, kind="stable"):
            if prices.matrix is None and fixed[at] >= best:
                break
            more = self._limits(choices[at], rows)
            for i in wished:
                normals = 2.0 * (self.W[rivals] - self.W[i]) @ M
                ends = np.einsum("ij,jk,ik->i", self.W[rivals], M, self.W[rivals])
                ends = ends - self.W[i] @ M @ self.W[i] - normals @ bases[at]
                A, b = np.vstack([normals @ B, more[0]]), np.concatenate([ends, more[1]])
                best = min(best, self._cheapest(prices, x, choices[at], A, b))
        return best

    def _limits(self, row: Row, rows: Rows | None) -> tuple[Array, Array]:
        eye, real = np.eye(len(self.real)), self.real
        parts = [(eye[j : j + 1], [f.upper]) for j, f in enumerate(real) if f.upper < np.inf]
        parts += [(-eye[j : j + 1], [-f.lower]) for j, f in enumerate(real) if f.lower > -np.inf]
        parts += [(np.zeros((0, len(real))), [])]
        if rows is not None:
            A, b = rows(row)
            parts.append((A, list(b)))
        return np.vstack([A for A, _ in parts]), np.concatenate([b for _, b in parts])

    def _cheapest(self, prices: Prices, x: Row, row: Row, A: Array, b: Array) -> float:
        """Least cost over ``A u <= b`` with everything but the real columns as in `row`."""
        u = np.array([x[column.name] for column in self.real])
        rest = {column.name: x[column.name] for column in self.real}
        fixed = prices.of(self.columns, x, {**row, **rest})
        right = b - A @ u
        if prices.matrix is None:
            w = np.array([prices.weights.get(column.name, 1.0) for column in self.real])
            found = linprog(np.r_[w, w], np.hstack([A, -A]), right, bounds=(0, None))
            return float(fixed + found.fun) if found.status == 0 else np.inf
        numbers = [column for column in self.columns if column.is_number]
        moved = np.array([{**row, **rest}[c.name] - x[c.name] for c in numbers], dtype=float)
        free = [c.is_real for c in numbers]
        L = np.linalg.cholesky(prices.matrix).T
        switched = fixed - float(moved @ prices.matrix @ moved)
        return switched + least_square(L[:, free], L @ moved, A, right)


def possible(column: clvq.Feature) -> list[Any]:
    """Every value of a column that has a grid or levels."""
    if not column.is_number:
        return list(column.levels)
    size = 10 ** (column.decimals or 0)
    first = -((-round(column.lower * size)) // column.step) * column.step
    ticks = range(first, round(column.upper * size) + 1, column.step)
    return [k if column.decimals is None else k / size for k in ticks]


def least_square(F: Array, f: Array, A: Array, b: Array) -> float:
    """Least ``|F v + f|^2`` over ``A v <= b``: a distance, by Lawson and Hanson's LDP."""
    Q, R = np.linalg.qr(F)
    t = Q.T @ f
    G = -np.linalg.solve(R.T, A.T).T
    h = -(b + A @ np.linalg.solve(R, t))
    size = np.linalg.norm(G, axis=1)
    G, h = G / size[:, None], h / size
    # The distance to the farthest half-space is about that to all: in its units digits are kept.
    unit = max(float(h.max()), 0.0) or 1.0
    E = np.vstack([G.T, h / unit])
    weights = nonnegative_least_squares(E, np.r_[np.zeros(len(t)), 1.0])
    residual = E @ weights - np.r_[np.zeros(len(t)), 1.0]
    if abs(residual[-1]) < 1e-10:
        return np.inf
    y = -unit * residual[:-1] / residual[-1]
    return float(y @ y + f @ f - t @ t)


# --- models -------------------------------------------------------------------------------------


def bare(
    columns: Sequence[clvq.Feature], W: Array, labels: Sequence[Any], omegas: Any = None
) -> Mixed:
    """A model whose columns are numbers, some of which are said to be levels."""
    model = clvq.PrototypeModel(W, labels, omegas, [column.name for column in columns])

    def image(rows: list[Row]) -> Array:
        return np.array([[float(row[c.name]) for c in columns] for row in rows])

    factors = np.eye(W.shape[1]) if omegas is None else omegas
    return Mixed(
        model, clvq.Features(columns), tuple(columns), image,
        lambda rows: model.predict(image(rows)), np.asarray(W, dtype=float), np.asarray(labels),
        factors,
    )  # fmt: skip


def assert_exact(
    mixed: Mixed, cf: clvq.Counterfactual, prices: Prices, x: Row, optimum: float, gap: float = 1e-6
) -> None:
    """An answer is what it says it is, and no worse than the best one."""
    room = gap * optimum + 1e-9
    if optimum == np.inf:
        assert cf.status == "infeasible", cf
        return
    assert cf.status == "optimal", cf
    y = dict(zip(cf.feature_names, cf.x, strict=True))
    assert mixed.says([y])[0] in cf.target
    assert cf.prediction == mixed.says([y])[0]
    for column in mixed.discrete:
        values, own = mixed.values_of(column), y[column.name]
        if column.steps == "of change":
            assert min(abs(own - value) for value in values) <= 1e-12 * max(1.0, abs(own))
        else:
            assert own in values, (column, y)
    assert (
        cf.cost == prices.of(mixed.columns, x, y)
        or abs(cf.cost - prices.of(mixed.columns, x, y)) <= 1e-12 * cf.cost
    )
    assert abs(cf.cost - optimum) <= room, (cf.cost, optimum)
    assert cf.lower_bound <= optimum + 1e-9 * abs(optimum) + 1e-12
