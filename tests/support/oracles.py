"""Reference answers, written from the nearest-prototype rule and sharing no code with the package.

A `Question` is plain arrays only. The decision region of the wished-for labels is the union of the
cells of their prototypes; in a cell, prototype `i` is at least as near as every rival `k`:

    |O (x' - w_i)|^2 <= |O (x' - w_k)|^2   <=>   (O (w_k - w_i)) . O (x' - (w_i + w_k) / 2) <= 0

which is a half-space, because the metric is shared. Every oracle minimises over each cell and keeps
the smallest value. Four of them are exact and built on different mathematics:

* `linear_program`: weighted L1 by `scipy.optimize.linprog`, accepted only with a matching dual;
* `least_distance`: squared distances under a definite matrix by Lawson and Hanson's reduction to
  non-negative least squares, accepted only with a matching dual;
* `conic_program`: everything, quadratic constraints included, by cvxpy and Clarabel;
* `enumeration`: both linear cases in rational arithmetic, every face tried; slow, free of rounding.

Two give upper bounds by trying points: `grid_bound` and `sampled_bound`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog, lsq_linear, nnls

Array = NDArray[np.float64]


class OracleError(AssertionError):
    """An oracle cannot vouch for its own answer: the test must stop, not guess."""


# --- plain descriptions -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Absolute:
    """sum_j weights_j |delta_j|."""

    weights: Array

    def value(self, delta: ArrayLike) -> Array:
        return np.abs(np.asarray(delta)) @ self.weights


@dataclass(frozen=True, eq=False)
class Squared:
    """delta' matrix delta."""

    matrix: Array

    def value(self, delta: ArrayLike) -> Array:
        delta = np.asarray(delta)
        return np.einsum("...i,ij,...j->...", delta, self.matrix, delta)

    @property
    def definite(self) -> bool:
        sizes = np.sqrt(np.diag(self.matrix))
        if np.any(sizes == 0):
            return False
        return bool(np.linalg.eigvalsh(self.matrix / np.outer(sizes, sizes))[0] > 1e-9)


@dataclass(frozen=True, eq=False)
class Mixed:
    """sum_j weights_j |delta_j| + delta' matrix delta."""

    weights: Array
    matrix: Array

    def value(self, delta: ArrayLike) -> Array:
        return Absolute(self.weights).value(delta) + Squared(self.matrix).value(delta)


@dataclass(frozen=True, eq=False)
class Interval:
    """lower <= x'_feature <= upper, to the last bit: a bound can always be met exactly."""

    feature: int
    lower: float = -np.inf
    upper: float = np.inf

    def holds(self, X: Array, tolerance: float) -> NDArray[np.bool_]:
        column = X[..., self.feature]
        return (column >= self.lower) & (column <= self.upper)


@dataclass(frozen=True, eq=False)
class Row:
    """coefficients . x' <= value, or == value."""

    coefficients: Array
    sense: str
    value: float

    def holds(self, X: Array, tolerance: float) -> NDArray[np.bool_]:
        excess = X @ self.coefficients - self.value
        allowed = tolerance * (np.abs(X) @ np.abs(self.coefficients) + abs(self.value))
        return (np.abs(excess) if self.sense == "==" else excess) <= allowed


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """(x' - center)' matrix (x' - center) <= value."""

    matrix: Array
    center: Array
    value: float

    def holds(self, X: Array, tolerance: float) -> NDArray[np.bool_]:
        return Squared(self.matrix).value(X - self.center) <= self.value * (1 + tolerance)


Cost = Absolute | Squared | Mixed
Constraint = Interval | Row | Ellipsoid


@dataclass(frozen=True, eq=False)
class Question:
    """What is the cheapest change of `x` that makes the rule answer one of `targets`?"""

    prototypes: Array  # (p, d)
    labels: Sequence[Hashable]  # (p,)
    omega: Array | None  # (r, d)
    x: Array  # (d,)
    targets: Sequence[Hashable]
    cost: Cost
    constraints: Sequence[Constraint] = ()
    inset: float = 0.0  # how far inside its cell a point must lie, relative to the model's span

    @cached_property
    def is_target(self) -> NDArray[np.bool_]:
        return np.array([label in self.targets for label in self.labels])

    @cached_property
    def floor(self) -> float:
        """What counts as zero: far below the cost of crossing the whole model."""
        return 1e-9 * float(self.cost.value(np.ptp(self.prototypes, axis=0)))

    @cached_property
    def span(self) -> Array:
        return np.ptp(np.vstack([self.prototypes, self.x]), axis=0)

    @cached_property
    def span_cost(self) -> float:
        return float(self.cost.value(self.span))


# --- the rule -----------------------------------------------------------------------------------


def squared_distances(prototypes: Array, omega: Array | None, X: ArrayLike) -> Array:
    X = np.atleast_2d(np.asarray(X, dtype=float))
    columns = []
    for prototype in prototypes:
        # Differences first: expanding the square loses every digit when values share an offset.
        gap = X - prototype
        columns.append(np.sum((gap if omega is None else gap @ omega.T) ** 2, axis=1))
    return np.stack(columns, axis=1)


def nearest(prototypes: Array, omega: Array | None, X: ArrayLike) -> NDArray[np.intp]:
    """The first of the nearest prototypes, in fractions where rounding could decide."""
    X = np.atleast_2d(np.asarray(X, dtype=float))
    scores = squared_distances(prototypes, omega, X)
    found = np.argmin(scores, axis=1)
    if scores.shape[1] == 1:
        return found
    two = np.partition(scores, 1, axis=1)[:, :2]
    close = np.flatnonzero(~(two[:, 1] - two[:, 0] > 1e-9 * two[:, 1]))
    off = score_errors(prototypes, omega, X[close])
    best = np.take_along_axis(scores[close] + off, found[close, None], axis=1)
    rivals = scores[close] - off
    np.put_along_axis(rivals, found[close, None], np.inf, axis=1)
    for i in close[~(rivals.min(axis=1) > best[:, 0])]:
        exact = [exact_distance(prototype, omega, X[i]) for prototype in prototypes]
        found[i] = exact.index(min(exact))
    return found


def score_errors(prototypes: Array, omega: Array | None, X: Array) -> Array:
    """How far rounding can have moved each score: twice what the usual analysis allows for."""
    unit = 2 * np.finfo(float).eps * (X.shape[1] + (0 if omega is None else len(omega)) + 4)
    columns = []
    for prototype in prototypes:
        gap = np.abs(X - prototype)
        size = gap if omega is None else gap @ np.abs(omega).T
        columns.append(unit * np.sum(size**2, axis=1) + np.finfo(float).tiny)
    return np.stack(columns, axis=1)


def exact_distance(prototype: Array, omega: Array | None, x: Array) -> Fraction:
    away = [Fraction(float(a)) - Fraction(float(b)) for a, b in zip(x, prototype, strict=True)]
    if omega is not None:
        away = [
            sum((Fraction(float(f)) * v for f, v in zip(row, away, strict=True)), Fraction(0))
            for row in omega
        ]
    return sum((v * v for v in away), Fraction(0))


def predict(prototypes: Array, labels: Sequence, omega: Array | None, X: ArrayLike) -> NDArray:
    return np.asarray(labels)[nearest(prototypes, omega, X)]


def reaches_target(question: Question, X: ArrayLike) -> NDArray[np.bool_]:
    return question.is_target[nearest(question.prototypes, question.omega, X)]


def violated(
    constraints: Sequence[Constraint], x: ArrayLike, tolerance: float = 1e-9
) -> list[Constraint]:
    """The constraints that a point breaks, intervals to the last bit."""
    point = np.asarray(x, dtype=float)
    return [constraint for constraint in constraints if not constraint.holds(point, tolerance)]


def admissible(question: Question, X: ArrayLike, tolerance: float = 1e-12) -> NDArray[np.bool_]:
    """Which rows are counterfactuals: the target's label, and every constraint."""
    X = np.atleast_2d(np.asarray(X, dtype=float))
    keep = reaches_target(question, X)
    for constraint in question.constraints:
        keep &= constraint.holds(X, tolerance)
    return keep


# --- one cell as a polyhedron in delta ----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Polyhedron:
    """A delta <= b, E delta == e."""

    A: Array
    b: Array
    E: Array
    e: Array


def cell_rows(question: Question, i: int) -> tuple[Array, Array] | None:
    """Half-spaces where prototype i beats every rival, or None where a rival always ties."""
    omega = np.eye(question.x.size) if question.omega is None else question.omega
    here = question.prototypes - question.x  # as seen from x, so that offsets cancel first
    rivals = here[~question.is_target]
    difference = (rivals - here[i]) @ omega.T
    if np.any(np.linalg.norm(difference, axis=1) <= 1e-13 * np.abs(here @ omega.T).max()):
        return None
    middle = (rivals + here[i]) / 2 @ omega.T
    G, h = difference @ omega, np.sum(difference * middle, axis=1)
    return G, h - question.inset * question.span.max() * np.linalg.norm(G, axis=1)


def polyhedron(question: Question, i: int) -> Polyhedron | None:
    cell = cell_rows(question, i)
    if cell is None:
        return None
    d = question.x.size
    less, equal = [(g, h) for g, h in zip(*cell, strict=True)], []
    for constraint in question.constraints:
        if isinstance(constraint, Interval):
            j, axis = constraint.feature, np.eye(d)[constraint.feature]
            if constraint.lower == constraint.upper:
                equal.append((axis, constraint.lower - question.x[j]))
                continue
            less.append((axis, constraint.upper - question.x[j]))
            less.append((-axis, question.x[j] - constraint.lower))
        elif isinstance(constraint, Row):
            row = (constraint.coefficients, constraint.value - constraint.coefficients @ question.x)
            (equal if constraint.sense == "==" else less).append(row)
    less = [(g, h) for g, h in less if np.isfinite(h)]
    return Polyhedron(*_stack(less, d), *_stack(equal, d))


def _stack(rows: list[tuple[Array, float]], d: int) -> tuple[Array, Array]:
    if not rows:
        return np.zeros((0, d)), np.zeros(0)
    return np.array([g for g, _ in rows], dtype=float), np.array([h for _, h in rows], dtype=float)


def _in_units(A: Array, b: Array, units: Array) -> tuple[Array, Array]:
    """The rows for u = delta / units, each with its largest entry at one."""
    scaled = A * units
    size = np.abs(scaled).max(axis=1, initial=0.0)
    size[size == 0] = 1.0
    return scaled / size[:, None], b / size


def _first_guess(question: Question, i: int) -> float:
    """A cost to measure in: going to the prototype, or across the model when x is there."""
    to_prototype = float(question.cost.value(question.prototypes[i] - question.x))
    return to_prototype if to_prototype > 1e-9 * question.span_cost else question.span_cost


def _settle(solve: Callable[[float], float], scale: float, smallest: float) -> float:
    """Solve again in units of the answer until the answer is about one unit.

    A solver's tolerances are absolute, so an answer far below the unit is not to be trusted: the
    unit shrinks step by step until the answer shows, or until it is `smallest`.
    """
    for _ in range(30):
        value = solve(scale)
        if value == np.inf or 0.2 * scale <= value <= 5 * scale or scale <= smallest:
            return value
        scale = max(value, 1e-4 * scale, smallest)
    raise OracleError(f"no unit fits the answer {value}")


def _contains_origin(region: Polyhedron) -> bool:
    return bool(np.all(region.b >= 0) and np.all(region.e == 0))


# --- exact oracles, one cell each ---------------------------------------------------------------

_TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def linear_program(question: Question, i: int) -> float:
    """Cheapest weighted L1 change into cell i."""
    region = polyhedron(question, i)
    if region is None:
        return np.inf
    if _contains_origin(region):
        return 0.0
    weights = question.cost.weights
    return _settle(
        lambda scale: scale * _unit_linear_program(region, scale / weights),
        _first_guess(question, i),
        smallest=1e-15 * question.span_cost,
    )


def _unit_linear_program(region: Polyhedron, units: Array) -> float:
    A, b = _in_units(region.A, region.b, units)
    E, e = _in_units(region.E, region.e, units)
    split = {"A_ub": np.hstack([A, -A]), "b_ub": b, "A_eq": np.hstack([E, -E]), "b_eq": e}
    costs = np.ones(2 * units.size)
    result = linprog(costs, **split, bounds=(0, None), method="highs", options=_TIGHT)
    if result.status == 2:
        return np.inf
    if result.status != 0:
        raise OracleError(f"linprog: {result.message}")
    below, equal = result.ineqlin.marginals, result.eqlin.marginals
    slack = costs - split["A_ub"].T @ below - split["A_eq"].T @ equal
    bound = b @ below + e @ equal
    if slack.min() < -1e-9 or below.max(initial=0) > 1e-9 or result.fun - bound > 1e-9:
        raise OracleError(f"linprog: primal {result.fun} and dual {bound} disagree")
    return max(float(result.fun), 0.0)


def least_distance(question: Question, i: int) -> float:
    """Smallest squared distance, under a definite matrix, into cell i."""
    region = polyhedron(question, i)
    if region is None:
        return np.inf
    # With matrix = L L' and y = L' delta the cost is |y|^2; features of unequal size meet in L.
    back = np.linalg.inv(np.linalg.cholesky(question.cost.matrix).T)
    A, b = _unit_rows(region.A @ back, region.b)
    E, e = _unit_rows(region.E @ back, region.e)
    fixed, A, b = _without_equalities(A, b, E, e)
    if fixed is None or np.any((np.abs(A).max(axis=1, initial=0) == 0) & (b < 0)):
        return np.inf
    return fixed + _settle(
        lambda scale: scale * _unit_least_distance(A, b / np.sqrt(scale)),
        _first_guess(question, i),
        smallest=1e-15 * question.span_cost,
    )


def _unit_rows(A: Array, b: Array) -> tuple[Array, Array]:
    size = np.linalg.norm(A, axis=1)
    size[size == 0] = 1.0
    return A / size[:, None], b / size


def _without_equalities(
    A: Array, b: Array, E: Array, e: Array
) -> tuple[float | None, Array, Array]:
    """Write y = y0 + Z v with y0 orthogonal to Z; returns |y0|^2 and the rows for v."""
    if not len(e):
        return 0.0, A, b
    left, sizes, right = np.linalg.svd(E)
    rank = int(np.sum(sizes > 1e-10 * sizes[0]))
    y0 = right[:rank].T @ ((left.T @ e)[:rank] / sizes[:rank])
    if np.abs(E @ y0 - e).max() > 1e-10 * (np.abs(e).max() + 1e-300):
        return None, A, b
    reduced = A @ right[rank:].T
    # A row without a part along Z says only whether y0 obeys it: keep it as 0 <= b or 0 <= -1.
    flat = np.linalg.norm(reduced, axis=1) <= 1e-12
    rest = b - A @ y0
    rest[flat & (np.abs(rest) <= 1e-12 * np.abs(b))] = 0.0
    reduced[flat] = 0.0
    reduced, rest = _unit_rows(reduced, rest)
    return float(y0 @ y0), reduced, rest


def nonnegative_least_squares(A: Array, b: Array) -> Array:
    """Least ``|A w - b|`` over w >= 0."""
    try:
        return nnls(A, b, maxiter=100 * A.shape[1])[0]
    except RuntimeError:  # the method of SciPy 1.12 to 1.14 can go round in circles
        return lsq_linear(A, b, (0.0, np.inf), method="bvls", tol=1e-15).x


def _unit_least_distance(A: Array, b: Array) -> float:
    """min |v|^2 subject to A v <= b, by non-negative least squares of [-A, -b]' u ~ (0, 1)."""
    if np.all(b >= 0):
        return 0.0
    system = np.vstack([-A.T, -b])
    goal = np.append(np.zeros(A.shape[1]), 1.0)
    multipliers = nonnegative_least_squares(system, goal)
    residual = system @ multipliers - goal
    if -residual[-1] <= 1e-8:  # this is 1 / (1 + |v|^2)
        return _when_multipliers_explode(A, b)
    point, dual = -residual[:-1] / residual[-1], multipliers / -residual[-1]
    value = float(point @ point)
    if value > 100:  # too many units away to be accurate: only good for choosing a larger unit
        return value
    if np.max(A @ point - b) > 1e-9 * (1 + np.sqrt(value)):
        raise OracleError(f"least_distance: a row is broken by {np.max(A @ point - b)}")
    if abs(value + dual @ b) > 1e-9 * (1 + value):
        raise OracleError(f"least_distance: primal {value} and dual {-dual @ b} disagree")
    return value


def _when_multipliers_explode(A: Array, b: Array) -> float:
    """Either nothing is feasible, or the answer is far larger than the unit: L1 tells which."""
    reach = _unit_linear_program(
        Polyhedron(A, b, np.zeros((0, A.shape[1])), np.zeros(0)),
        np.full(A.shape[1], np.abs(b).max()),
    )
    return np.inf if reach == np.inf else float((reach * np.abs(b).max()) ** 2)


def conic_program(question: Question, i: int) -> float:
    """Cheapest change into cell i for any cost and any constraint.

    Trustworthy while the features' sizes in the cost and in the model differ by a few powers of
    ten at most; beyond that only the other two oracles are.
    """
    region = polyhedron(question, i)
    if region is None:
        return np.inf
    return _settle(
        lambda scale: scale * _unit_conic_program(question, region, scale),
        _first_guess(question, i),
        smallest=1e-9 * question.span_cost,
    )


def _feature_units(question: Question, scale: float) -> Array:
    """The change of each feature alone that costs `scale`; across the model where it is free."""
    if isinstance(question.cost, Absolute):
        return scale / question.cost.weights
    own = np.diag(question.cost.matrix)
    if isinstance(question.cost, Mixed):  # w u + q u^2 == scale
        w = question.cost.weights
        return 2 * scale / (w + np.sqrt(w**2 + 4 * own * scale))
    free = own <= 1e-12 * own.max()
    return np.where(free, question.span, np.sqrt(scale / np.where(free, 1.0, own)))


def _unit_conic_program(question: Question, region: Polyhedron, scale: float) -> float:
    units = _feature_units(question, scale)
    u = cp.Variable(units.size)
    A, b = _in_units(region.A, region.b, units)
    E, e = _in_units(region.E, region.e, units)
    limits = [A @ u <= b] + ([E @ u == e] if len(e) else [])
    for constraint in question.constraints:
        if isinstance(constraint, Ellipsoid):
            factor = _factor(constraint.matrix / constraint.value)
            center = factor @ (question.x - constraint.center)
            limits.append(cp.norm((factor * units) @ u + center) <= 1)
    if isinstance(question.cost, Absolute):
        objective = (question.cost.weights * units / scale) @ cp.abs(u)
    else:
        objective = cp.sum_squares((_factor(question.cost.matrix / scale) * units) @ u)
    if isinstance(question.cost, Mixed):
        objective += (question.cost.weights * units / scale) @ cp.abs(u)
    problem = cp.Problem(cp.Minimize(objective), limits)
    _run_clarabel(problem)
    if problem.status in {cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE}:
        return np.inf
    if problem.status not in {cp.OPTIMAL, cp.OPTIMAL_INACCURATE}:
        raise OracleError(f"clarabel: {problem.status}")
    return max(float(problem.value), 0.0)


def _run_clarabel(problem: cp.Problem) -> None:
    tight = {f"tol_{name}": 1e-12 for name in ("gap_abs", "gap_rel", "feas")}
    # Where 1e-12 is out of reach of rounding, 1e-9 still decides every comparison at 1e-6.
    enough = {f"reduced_tol_{name}": 1e-9 for name in ("gap_abs", "gap_rel", "feas")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver=cp.CLARABEL, **tight, **enough)
        except cp.SolverError as error:
            raise OracleError(f"clarabel: {error}") from error


def _factor(matrix: Array) -> Array:
    """R with R'R = matrix, for a matrix that may be singular."""
    values, vectors = np.linalg.eigh(matrix)
    keep = values > 1e-12 * values[-1]
    return np.sqrt(values[keep])[:, None] * vectors[:, keep].T


# --- the same without rounding ------------------------------------------------------------------

Rational = list[Fraction]


def enumeration(question: Question, i: int) -> float:
    """Cheapest change into cell i from all the faces it could lie on, for a few features.

    Every number is the float it was given as, taken exactly. A weighted L1 cost is smallest where
    d of the rows and axes meet; a definite squared cost where it is stationary on some rows.
    """
    if isinstance(question.cost, Mixed):
        raise OracleError("a cost with both parts is not among those that are enumerated")
    less, equal = _rational_rows(question, i)
    d = question.x.size
    if any(not any(g) for g, _ in less[: int(np.sum(~question.is_target))]):
        return np.inf
    if isinstance(question.cost, Absolute):
        axes = [([Fraction(int(j == k)) for k in range(d)], Fraction(0)) for j in range(d)]
        faces = _faces(equal, less + axes, d, d)
        points = (_meeting_point(face) for face in faces)
    else:
        inverse = _inverse(_rational(question.cost.matrix))
        faces = _faces(equal, less, 0, d)
        points = (_stationary_point(face, inverse, d) for face in faces)
    allowed = (y for y in points if y is not None and _obeys(y, less, equal))
    return min((float(_rational_cost(question.cost, y)) for y in allowed), default=np.inf)


def _faces(equal: list, rows: list, smallest: int, largest: int) -> Iterator[list]:
    for size in range(max(smallest - len(equal), 0), largest - len(equal) + 1):
        for chosen in combinations(rows, size):
            yield [*equal, *chosen]


def _rational(values: ArrayLike) -> list:
    values = np.asarray(values)
    if values.ndim == 0:
        return Fraction(float(values))
    return [_rational(value) for value in values]


def _dot(a: Rational, b: Rational) -> Fraction:
    return sum((u * v for u, v in zip(a, b, strict=True)), Fraction(0))


def _rational_rows(question: Question, i: int) -> tuple[list, list]:
    """Rows (g, h) of g . delta <= h, rivals first, and of g . delta == h."""
    x, W = _rational(question.x), _rational(question.prototypes)
    omega = _rational(np.eye(len(x)) if question.omega is None else question.omega)
    less, equal = [], []
    for k in np.flatnonzero(~question.is_target):
        apart = [_dot(row, [r - t for r, t in zip(W[k], W[i], strict=True)]) for row in omega]
        middle = [(r + t) / 2 - v for r, t, v in zip(W[k], W[i], x, strict=True)]
        g = [_dot(apart, [row[j] for row in omega]) for j in range(len(x))]
        less.append((g, _dot(g, middle)))
    for constraint in question.constraints:
        rows = _constraint_rows(constraint, len(x))
        for a, sense, value in rows:
            g = _rational(a)
            (equal if sense == "==" else less).append((g, Fraction(float(value)) - _dot(g, x)))
    return less, equal


def _constraint_rows(constraint: Constraint, d: int) -> list[tuple[Array, str, float]]:
    if isinstance(constraint, Row):
        return [(constraint.coefficients, constraint.sense, constraint.value)]
    if not isinstance(constraint, Interval):
        raise OracleError("enumeration: linear constraints only")
    axis, low, high = np.eye(d)[constraint.feature], constraint.lower, constraint.upper
    if low == high:
        return [(axis, "==", low)]
    sides = [(axis, "<=", high), (-axis, "<=", -low)]
    return [side for side in sides if np.isfinite(side[2])]


def _solved(matrix: list[Rational], right: Rational) -> Rational | None:
    """Gauss and Jordan; None for a singular matrix."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for k in range(len(rows)):
        pivot = next((r for r in range(k, len(rows)) if rows[r][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for r in range(len(rows)):
            if r != k and rows[r][k]:
                rows[r] = [u - rows[r][k] * v for u, v in zip(rows[r], rows[k], strict=True)]
    return [row[-1] for row in rows]


def _inverse(matrix: list[Rational]) -> list[Rational]:
    size = range(len(matrix))
    columns = [_solved(matrix, [Fraction(int(j == k)) for k in size]) for j in size]
    return [[columns[j][k] for j in size] for k in size]


def _meeting_point(face: list) -> Rational | None:
    return _solved([g for g, _ in face], [h for _, h in face])


def _stationary_point(face: list, inverse: list[Rational], d: int) -> Rational | None:
    """delta = inverse G' t with G delta = h."""
    spread = [[_dot(row, g) for row in inverse] for g, _ in face]
    multipliers = _solved([[_dot(g, s) for s in spread] for g, _ in face], [h for _, h in face])
    if multipliers is None:
        return None
    return [
        sum((t * s[j] for t, s in zip(multipliers, spread, strict=True)), Fraction(0))
        for j in range(d)
    ]


def _obeys(delta: Rational, less: list, equal: list) -> bool:
    inside = all(_dot(g, delta) <= h for g, h in less)
    return inside and all(_dot(g, delta) == h for g, h in equal)


def _rational_cost(cost: Cost, delta: Rational) -> Fraction:
    if isinstance(cost, Absolute):
        return _dot(_rational(cost.weights), [abs(v) for v in delta])
    return _dot(delta, [_dot(row, delta) for row in _rational(cost.matrix)])


# --- the exact answer ---------------------------------------------------------------------------


def cell_costs(question: Question) -> dict[int, float]:
    """The cheapest change into the cell of each target prototype; inf where there is none."""
    return {int(i): _cell_cost(question, int(i)) for i in np.flatnonzero(question.is_target)}


def _cell_cost(question: Question, i: int) -> float:
    curved = any(isinstance(constraint, Ellipsoid) for constraint in question.constraints)
    mixed = isinstance(question.cost, Mixed)
    if curved or mixed or (isinstance(question.cost, Squared) and not question.cost.definite):
        return conic_program(question, i)
    if _uneven(question):
        return enumeration(question, i)
    return fast_oracle(question)(question, i)


def fast_oracle(question: Question) -> Callable[[Question, int], float]:
    """The floating-point oracle for linear constraints."""
    return linear_program if isinstance(question.cost, Absolute) else least_distance


def _uneven(question: Question) -> bool:
    """Features of very unequal size: entries that matter fall below the solvers' thresholds."""
    sizes = question.span[question.span > 0]
    return question.x.size <= 3 and sizes.max() > 1e4 * sizes.min()


def optimal_cost(question: Question) -> float:
    """The smallest cost of any counterfactual, margin 0; inf when there is none."""
    already = reaches_target(question, question.x)[0]
    if already and not violated(question.constraints, question.x):
        return 0.0
    return min(cell_costs(question).values())


def has_inside(question: Question) -> bool:
    """Whether the best of the closed region is near points that are no ties.

    Constraints may meet a cell in boundary points only, where rounding decides the label.
    """
    inner, outer = (
        min(cell_costs(replace(question, inset=inset)).values()) for inset in (1e-7, -1e-7)
    )
    return inner == outer or inner <= (1 + 1e-3) * outer + 1e3 * question.floor


# --- upper bounds by trying points --------------------------------------------------------------


def grid_bound(question: Question, budget: float, points: int = 201, zooms: int = 7) -> float:
    """Best admissible point of a dense grid over every change within budget (d <= 2).

    The grid is refined around its best point; equalities leave it empty and the bound infinite.
    """
    if question.x.size > 2:
        raise ValueError("a grid is dense enough in one or two dimensions only")
    center, radius, best = question.x, _reach(question.cost, budget), np.inf
    for _ in range(zooms):
        axes = [np.linspace(c - r, c + r, points) for c, r in zip(center, radius, strict=True)]
        X = _clipped(question, np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(axes)))
        X = X[admissible(question, X)]
        if len(X):
            costs = question.cost.value(X - question.x)
            best, center = min(best, float(costs.min())), X[np.argmin(costs)]
        radius = radius / 8
    return best


def _reach(cost: Cost, budget: float) -> Array:
    """How far each feature can go within budget."""
    if isinstance(cost, Absolute):
        return budget / cost.weights
    return np.sqrt(budget * np.diag(np.linalg.inv(cost.matrix)))


def sampled_bound(
    question: Question, seed: int, around: ArrayLike | None = None, draws: int = 400
) -> float:
    """Best admissible point found by chance, each pulled towards x as far as it stays admissible.

    `around` is a point to look near at many scales, such as an answer that claims to be optimal.
    """
    rng = np.random.default_rng(seed)
    X = _drawn(question, rng, draws, around)
    X = _clipped(question, _on_equalities(question, X))
    X = X[admissible(question, X)]
    if not len(X):
        return np.inf
    return float(question.cost.value(_pulled(question, X) - question.x).min())


def _drawn(
    question: Question, rng: np.random.Generator, draws: int, around: ArrayLike | None
) -> Array:
    anchors = np.vstack([question.prototypes[question.is_target], question.x])
    noise = rng.normal(size=(draws, question.x.size)) * question.span
    X = anchors[rng.integers(len(anchors), size=draws)] + noise
    if around is None:
        return X
    sizes = 10.0 ** rng.uniform(-7, 0, size=(draws, 1))
    near = np.asarray(around) + rng.normal(size=(draws, question.x.size)) * sizes * question.span
    return np.vstack([X, near])


def _clipped(question: Question, X: Array) -> Array:
    X = X.copy()
    for constraint in question.constraints:
        if isinstance(constraint, Interval):
            j = constraint.feature
            X[:, j] = np.clip(X[:, j], constraint.lower, constraint.upper)
    return X


def _on_equalities(question: Question, X: Array) -> Array:
    rows = [c for c in question.constraints if isinstance(c, Row) and c.sense == "=="]
    if not rows:
        return X
    E = np.array([row.coefficients for row in rows])
    return X - (X @ E.T - [row.value for row in rows]) @ np.linalg.pinv(E).T


def _pulled(question: Question, X: Array) -> Array:
    near, far = np.zeros((len(X), 1)), np.ones((len(X), 1))
    for _ in range(40):
        middle = (near + far) / 2
        inside = admissible(question, question.x + middle * (X - question.x))[:, None]
        near, far = np.where(inside, near, middle), np.where(inside, middle, far)
    return question.x + far * (X - question.x)
