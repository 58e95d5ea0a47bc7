"""Random models, costs, constraints and rows with all that is known to hurt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzz.cases import Case, listed
from fuzz.plain import Column, Floats, Plain, Price, Round, Row, Scores
from fuzz.rational import exact, exact_matrix

Rng = np.random.Generator

FILLS = (9999.0, 1e9, 1e14, 1e20)
_SHARED_GAP = 1e-6


@dataclass
class Model:
    """Prototypes in numbers, with the units in which their columns are of size 1."""

    W: Floats
    labels: Floats
    units: Floats  # (d,)
    center: Floats  # (d,)
    omegas: Any = None  # None, one matrix, or a list
    offsets: Floats | None = None
    is_integer: bool = False

    @property
    def width(self) -> int:
        return self.W.shape[1]

    def code(self) -> str:
        parts = [listed(self.W), listed(self.labels)]
        if isinstance(self.omegas, list):
            inner = ", ".join(listed(part) for part in self.omegas)
            parts.append(f"omegas=[{inner}]")
        elif self.omegas is not None:
            parts.append(f"omegas={listed(self.omegas)}")
        if self.offsets is not None:
            parts.append(f"offsets={listed(self.offsets)}")
        return f"model = clvq.PrototypeModel({', '.join(parts)})\n"

    def scores(self) -> Scores:
        return Scores.of_prototypes(self.W, self.labels.tolist(), self.omegas, self.offsets)


@dataclass
class Conditions:
    """Constraints as text and in numbers."""

    code: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    no_room: bool = False

    def add(self, code: str, *rows: Row) -> None:
        self.code.append(code)
        self.rows += rows


def chance(rng: Rng, share: float) -> bool:
    return bool(rng.random() < share)


def draw_width(rng: Rng) -> int:
    return int(rng.integers(5, 9)) if chance(rng, 0.68) else int(rng.integers(1, 5))


def draw_model(rng: Rng, width: int | None = None, ugly: float = 1.0) -> Model:
    """Draw prototypes; `ugly` is how likely each kind of trouble is, relative to the usual."""
    d = draw_width(rng) if width is None else width
    p, classes = int(rng.integers(2, 8)), int(rng.integers(2, 4))
    labels = rng.permutation(np.arange(max(p, classes)) % classes)
    p = labels.size
    is_integer = chance(rng, 0.25)
    W = rng.integers(-3, 4, size=(p, d)).astype(float) if is_integer else rng.normal(size=(p, d))
    if not is_integer and chance(rng, 0.5):
        W = np.round(W, 2)
    units = np.ones(d)
    if chance(rng, 0.4 * ugly) and not is_integer:
        units = 10.0 ** rng.integers(-6, 7, size=d)
    center = np.zeros(d)
    if chance(rng, 0.25 * ugly):
        center = np.where(rng.random(d) < 0.6, 1e6 * units, 0.0)
    W = W * units + center
    W, labels = _near_copies(rng, W, labels, units, 0.2 * ugly)
    W, labels = _far_rows(rng, W, labels, 0.3 * ugly)
    model = Model(W, labels, units, center, is_integer=is_integer)
    model.omegas = _shared_omega(rng, model)
    if chance(rng, 0.08 * ugly):
        model.offsets = np.round(rng.uniform(0, 2, size=len(labels)), 2)
    return model


def _near_copies(rng: Rng, W: Floats, labels: Any, units: Floats, share: float) -> Any:
    if not chance(rng, share):
        return W, labels
    k = int(rng.integers(len(W)))
    step = 10.0 ** -float(rng.integers(9, 16)) * rng.normal(size=W.shape[1]) * units
    if chance(rng, 0.5):
        step *= rng.random(W.shape[1]) < 0.5
    other = (labels[k] + 1) % (labels.max() + 1)
    at = int(rng.integers(len(W) + 1))
    return np.insert(W, at, W[k] + step, axis=0), np.insert(labels, at, other)


def _far_rows(rng: Rng, W: Floats, labels: Any, share: float) -> Any:
    if not chance(rng, share):
        return W, labels
    fill = float(rng.choice(FILLS))
    far = W[int(rng.integers(len(W)))].copy()
    where = rng.random(W.shape[1]) < 0.5
    where[int(rng.integers(W.shape[1]))] = True
    far[where | chance(rng, 0.4)] = fill
    at = int(rng.integers(len(W) + 1))
    return np.insert(W, at, far, axis=0), np.insert(labels, at, int(rng.integers(labels.max() + 1)))


def _shared_omega(rng: Rng, model: Model) -> Any:
    d = model.width
    kind = rng.choice(["none", "scaled", "full", "low"], p=[0.45, 0.25, 0.2, 0.1])
    if kind == "none":
        return None
    if kind == "scaled":
        return np.diag(1 / model.units)
    rank = d if kind == "full" else max(1, d - 1)
    if model.is_integer:
        omega = rng.integers(-1, 3, size=(rank, d)).astype(float)
        return omega if omega.any() else np.eye(d)
    return np.round(rng.normal(size=(rank, d)), 3) / model.units


def draw_cost(rng: Rng, model: Model, kinds: str = "lwemfu") -> tuple[str, Price]:
    """Draw plain or weighted L1, L2, a Mahalanobis matrix: definite, flat or nearly singular."""
    d, kind = model.width, str(rng.choice(list(kinds)))
    at = tuple(range(d))
    if kind == "l":
        return "clvq.Manhattan()", Price(weights=exact(np.ones(d)), at=at)
    if kind == "w":
        weights = rng.choice([0.5, 1.0, 3.0], size=d) / model.units
        return f"clvq.Manhattan({listed(weights)})", Price(weights=exact(weights), at=at)
    if kind == "e":
        return "clvq.Euclidean()", Price(matrix=exact_matrix(np.eye(d)), at=at)
    if kind == "m":
        root = np.tril(rng.integers(-1, 2, size=(d, d))) + 2.0 * np.eye(d)
        M = (root @ root.T) / np.outer(model.units, model.units)
        M = (M + M.T) / 2
    elif kind == "f":
        M = np.diag(np.where(rng.random(d) < 0.5, 0.0, 1.0) / model.units**2)
    else:
        M = np.eye(d) + 0.0
        if d > 1:
            M[0, 1] = M[1, 0] = 1 - 10.0 ** -float(rng.integers(3, 12))
        M = M / np.outer(model.units, model.units)
        M = (M + M.T) / 2
    return f"clvq.Mahalanobis({listed(M)})", Price(matrix=exact_matrix(M), at=at)


def draw_points(rng: Rng, model: Model, n: int) -> Floats:
    """Rows near, at and between prototypes, and some far off; never beyond a fill value."""
    near = model.W[np.abs(model.W - model.center).max(axis=1) <= 100 * model.units.max()]
    base = near if len(near) else model.W
    out = []
    for _ in range(n):
        kind = rng.choice(["near", "at", "between", "wide"], p=[0.5, 0.15, 0.2, 0.15])
        w = base[int(rng.integers(len(base)))]
        if kind == "near":
            w = w + np.round(rng.normal(size=model.width), 2) * model.units
        elif kind == "between":
            w = (w + base[int(rng.integers(len(base)))]) / 2
        elif kind == "wide":
            w = w + np.round(rng.normal(size=model.width), 1) * 50 * model.units
        out.append(np.rint(w) if model.is_integer and kind != "between" else w)
    return np.array(out)


def axis(d: int, j: int, value: float = 1.0) -> Floats:
    out = np.zeros(d)
    out[j] = value
    return out


def draw_conditions(rng: Rng, model: Model, hold: Floats, most: int = 3) -> Conditions:
    """Constraints that the point `hold` meets, so that most questions have an answer."""
    found = Conditions()
    d = model.width
    for _ in range(int(rng.integers(0, most + 1))):
        j = int(rng.integers(d))
        room = float(rng.choice([0.0, 0.1, 1.0, 30.0])) * model.units[j]
        kind = rng.choice(["freeze", "bounds", "change", "way", "linear", "text"])
        if kind == "freeze" and d > 1:
            freeze(found, d, j)
        elif kind == "bounds":
            lower, upper = float(hold[j] - room), float(hold[j] + room)
            found.add(
                f"clvq.Bounds({j}, {lower!r}, {upper!r})",
                Row.of(axis(d, j), np.zeros(d), upper),
                Row.of(axis(d, j, -1), np.zeros(d), -lower),
            )
        elif kind == "change":
            max_change(found, d, j, float(10.0 ** rng.integers(-2, 3) * model.units[j]))
        elif kind == "way":
            up = chance(rng, 0.5)
            sign = -1.0 if up else 1.0
            name = "Increase" if up else "Decrease"
            found.add(f"clvq.{name}({j})", Row.of(axis(d, j, sign), axis(d, j, -sign), 0.0))
        elif kind == "linear":
            a = np.round(rng.normal(size=d), 2) / model.units
            linear(found, rng, a, float(a @ hold) + float(rng.choice([0.0, 0.1, 5.0])))
        else:
            text(found, rng, model, hold)
    return found


def freeze(found: Conditions, d: int, *features: int) -> None:
    rows = [Row.of(axis(d, j), axis(d, j, -1), 0.0, equality=True) for j in features]
    found.add(f"clvq.Freeze({', '.join(map(str, features))})", *rows)


def max_change(found: Conditions, d: int, j: int, by: float) -> None:
    found.add(
        f"clvq.MaxChange({j}, {by!r})",
        Row.of(axis(d, j), axis(d, j, -1), by),
        Row.of(axis(d, j, -1), axis(d, j), by),
    )


def linear(found: Conditions, rng: Rng, a: Floats, value: float, sense: str = "<=") -> None:
    d = a.size
    if sense == "<=" and chance(rng, 0.3):
        code, shown = f"clvq.Linear({listed(-a)}, '>=', {-value!r})", a
    else:
        code, shown = f"clvq.Linear({listed(a)}, {sense!r}, {value!r})", a
    found.add(code, Row.of(shown, np.zeros(d), value, equality=sense == "=="))


def text(found: Conditions, rng: Rng, model: Model, hold: Floats) -> None:
    """``c * xj <= s * xk + v`` or against the factual value."""
    d = model.width
    j, k = (int(v) for v in rng.integers(d, size=2))
    c, s = float(rng.choice([1.0, 0.1, 2.5])), float(np.round(rng.normal(), 2))
    if j == k:
        v = float(abs(np.round(rng.normal(), 2)) * model.units[j])
        code = f"x{j} <= original(x{j}) + {v!r}"
        found.add(repr(code), Row.of(axis(d, j), axis(d, j, -1), v))
        return
    v = float(c * hold[j] - s * hold[k])
    code = f"{c!r} * x{j} - {s!r} * x{k} <= {v!r}"
    if s < 0:
        code = f"{c!r} * x{j} + {-s!r} * x{k} <= {v!r}"
    found.add(
        repr(code.replace("<= -", "<= 0 - ")), Row.of(axis(d, j, c) - axis(d, k, s), np.zeros(d), v)
    )


def draw_round(rng: Rng, model: Model, hold: Floats, found: Conditions) -> None:
    """An ellipsoid around a point near `hold`, possibly flat or nearly so."""
    d = model.width
    root = np.diag(1 / model.units)
    kind = rng.choice(["ball", "flat", "thin"])
    if kind == "flat" and d > 1:
        root = root[: max(1, d - 1)]
    M = root.T @ root
    if kind == "thin" and d > 1:
        M = np.eye(d) + 0.0
        M[0, 1] = M[1, 0] = 1 - 5 * 10.0 ** -float(rng.integers(5, 15))
        M = M / np.outer(model.units, model.units)
        M = (M + M.T) / 2
    center = hold + np.round(rng.normal(size=d), 1) * model.units
    away = hold - center
    value = float(
        away @ M @ away * rng.choice([1.0, 1.5, 4.0]) + 10.0 ** -float(rng.integers(0, 4))
    )
    found.code.append(f"clvq.Quadratic({listed(M)}, {value!r}, center={listed(center)})")
    found.rounds.append(Round.of(M, center, np.zeros(d), value))


def draw_targets(rng: Rng, model: Model, n: int) -> list[Any]:
    labels = np.unique(model.labels).tolist()
    if chance(rng, 0.25):
        return [None] * n
    if chance(rng, 0.4):
        return [rng.choice(labels).item()] * n
    return [rng.choice(labels).item() for _ in range(n)]


def assembled(
    kind: str,
    model: Model,
    cost: tuple[str, Price],
    conditions: Conditions,
    X: Floats,
    targets: list[Any],
    *,
    margin: float | None = None,
    tags: tuple[str, ...] = (),
    columns: tuple[Column, ...] | None = None,
    features: str = "",
    gap: float = _SHARED_GAP,
    more: str = "",
) -> Case:
    """Put the parts together."""
    said = [f"constraints=[{', '.join(conditions.code)}]"]
    if margin is not None:
        said.append(f"margin={margin!r}")
    if features:
        said.append(f"features={features}")
    code = f"{model.code()}explainer = clvq.Explainer(model, {cost[0]}, {', '.join(said)}{more})\n"
    plain = Plain(
        model.scores(),
        cost[1],
        tuple(conditions.rows),
        tuple(conditions.rounds),
        columns or (Column(),) * model.width,
        margin,
        gap,
        conditions.no_room,
    )
    return Case(kind, code, X, targets, lambda _: plain, tags=frozenset(tags))


def draw_margin(rng: Rng, model: Model) -> float | None:
    if not chance(rng, 0.15):
        return None
    i, k = rng.integers(len(model.W), size=2)
    scores = model.scores()
    apart = scores.at(exact(model.W[i]))[k]
    return float(apart) * float(rng.choice([1e-6, 0.1, 1.0, 2.5]))


def shared(rng: Rng) -> Case:
    """Anything with a shared metric and linear constraints."""
    model = draw_model(rng)
    X = draw_points(rng, model, int(rng.integers(6, 13)))
    hold = model.W[int(rng.integers(len(model.W)))]
    conditions = draw_conditions(rng, model, hold)
    margin = draw_margin(rng, model)
    return assembled(
        "shared", model, draw_cost(rng, model), conditions, X, draw_targets(rng, model, len(X)),
        margin=margin,
    )  # fmt: skip


def rounded(rng: Rng) -> Case:
    """With quadratic constraints."""
    model = draw_model(rng, ugly=0.7)
    X = draw_points(rng, model, 4)
    hold = model.W[int(rng.integers(len(model.W)))]
    conditions = draw_conditions(rng, model, hold, most=1)
    draw_round(rng, model, hold, conditions)
    return assembled(
        "rounded", model, draw_cost(rng, model, "lwem"), conditions, X,
        draw_targets(rng, model, len(X)),
    )  # fmt: skip


def infeasible(rng: Rng) -> Case:
    """Mostly without an answer: boxes around x, opposed rows, rows along the cells' own."""
    model = draw_model(rng, ugly=0.8)
    X = draw_points(rng, model, int(rng.integers(6, 13)))
    targets: list[Any] = [None] * len(X)
    found = Conditions()
    d = model.width
    kind = rng.choice(
        ["frozen", "box", "opposed", "parallel", "ramp"], p=[0.1, 0.25, 0.15, 0.4, 0.1]
    )
    if kind == "frozen":
        freeze(found, d, *range(d))
    elif kind == "box":
        share = 10.0 ** -float(rng.integers(1, 6))
        for j in range(d):
            max_change(found, d, j, float(share * model.units[j]))
    elif kind == "opposed":
        a = np.round(rng.normal(size=d), 2) / model.units
        v = float(a @ X[0])
        linear(found, rng, a, v)
        apart = float(rng.choice([0.0, 1e-12, 1e-6, 1.0])) * max(abs(v), 1.0)
        tilt = a * (1 + float(rng.choice([0.0, 1e-12, 1e-9])) * rng.normal(size=d))
        linear(found, rng, -tilt, -(v + apart))
        found.no_room = apart == 0.0
    elif kind == "parallel":
        targets = _opposed_to_cells(rng, model, found, len(X))
    else:
        targets = _ramp(rng, model, found, len(X))
    if chance(rng, 0.3):
        freeze(found, d, int(rng.integers(d)))
    return assembled(
        "infeasible", model, draw_cost(rng, model, "llwem"), found, X, targets,
        tags=(f"infeasible-{kind}",),
    )  # fmt: skip


def _opposed_to_cells(rng: Rng, model: Model, found: Conditions, n: int) -> list[Any]:
    """Rows that exclude each cell of a target, or nearly so, along its own half-spaces."""
    labels = model.labels.tolist()
    target = int(rng.integers(model.labels.max() + 1))
    scores = model.scores()
    tilt = float(rng.choice([0.0, 1e-13, 1e-12, 1e-10, 1e-8, 1e-4]))
    for i, label in enumerate(labels):
        rivals = [k for k, other in enumerate(labels) if other != target]
        if label != target or not rivals:
            continue
        k = min(rivals, key=lambda k: float(scores.at(exact(model.W[i]))[k]))
        normal, value = (np.array([float(v) for v in part]) for part in _half_space(scores, i, k))
        size = np.abs(normal).max() or 1.0
        a = -normal / size * (1 + tilt * rng.normal(size=normal.size))
        beyond = float(rng.choice([-1.0, 0.0, 1e-9, 1e-3, 1.0])) * tilt
        beyond += float(rng.choice([0.0, 1e-12, 1e-3])) * max(abs(value[0] / size), 1e-3)
        linear(found, rng, a, float(-value[0] / size - beyond))
    return [target] * n


def _half_space(scores: Scores, i: int, k: int) -> Any:
    normal, value = scores.half_space(i, k, exact([0.0])[0])
    return normal, [value]


def _ramp(rng: Rng, model: Model, found: Conditions, n: int) -> list[Any]:
    """Each column may grow only as far as the next one has, by small slopes: far answers."""
    d = model.width
    for j in range(d):
        slope = 10.0 ** -float(rng.integers(1, 5))
        new = axis(d, j) - (
            axis(d, j + 1, slope * model.units[j] / model.units[j + 1]) if j + 1 < d else 0
        )
        linear(found, rng, new, float(new @ model.W[0]))
    labels = np.unique(model.labels).tolist()
    return [rng.choice(labels).item() for _ in range(n)]


def local(rng: Rng) -> Case:
    """Local metrics in few dimensions."""
    d = int(rng.integers(1, 4)) if chance(rng, 0.95) else 5
    model = draw_model(rng, width=d, ugly=0.5)
    count = min(len(model.W), int(rng.integers(2, 4)))
    model.W, model.labels = model.W[:count], model.labels[:count]
    if len(np.unique(model.labels)) < 2:
        model.labels = np.arange(count) % 2
    model.offsets = None
    model.omegas = []
    for _ in range(count):
        omega = np.eye(d) + 0.5 * np.round(rng.normal(size=(d, d)), 1)
        if chance(rng, 0.3):
            omega = np.eye(d) * (1 + float(rng.choice([0.0, 1e-10, 1e-4, 0.5])))
        if chance(rng, 0.15) and d > 1:
            omega = omega[: d - 1]
        model.omegas.append(omega / model.units)
    X = draw_points(rng, model, 3)
    hold = model.W[int(rng.integers(count))]
    conditions = draw_conditions(rng, model, hold, most=2)
    # A wide gap ends the search early: more questions for the same time.
    gap = float(rng.choice([1e-4, 1e-2, 0.1], p=[0.3, 0.4, 0.3]))
    more = f", gap={gap!r}" + (', method="ccp"' if chance(rng, 0.1) else "")
    return assembled(
        "local", model, draw_cost(rng, model, "lwemf"), conditions, X,
        draw_targets(rng, model, len(X)), gap=gap, more=more,
    )  # fmt: skip
