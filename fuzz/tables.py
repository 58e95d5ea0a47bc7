"""Questions about tables: models behind pipelines, whole numbers, decimals and levels."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from fuzz.cases import Case, Names, listed
from fuzz.drawing import (
    FILLS,
    Conditions,
    Model,
    Rng,
    assembled,
    axis,
    chance,
    draw_cost,
    draw_model,
    draw_targets,
    draw_width,
)
from fuzz.fitted import IMPORTS, scores_of
from fuzz.plain import Column, Floats, Plain, Price, Row, Scores
from fuzz.rational import ONE, ZERO, exact, exact_matrix

_LAST = {
    "NearestCentroid()": 0.25,
    "NearestCentroid(priors='empirical')": 0.2,
    "KNeighborsClassifier(1, algorithm='brute')": 0.15,
    "KNeighborsClassifier(1)": 0.1,
    "GLVQ(max_iter=15, random_state=0)": 0.2,
    "GMLVQ(max_iter=15, random_state=0)": 0.1,
}
_SHARED_GAP = 1e-6


def _training(rng: Rng, d: int) -> tuple[Floats, Any, Floats]:
    """Rows with labels: constant, copied and ugly columns, offsets, fill values."""
    n = int(rng.integers(8, 15))
    units = 10.0 ** rng.integers(-6, 7, size=d) if chance(rng, 0.35) else np.ones(d)
    T = np.round(rng.normal(size=(n, d)), 3) * units
    labels = rng.permutation(np.arange(n) % (2 if chance(rng, 0.7) else 3))
    T[:, 0] += labels * units[0]
    if chance(rng, 0.35):
        T = T + np.where(rng.random(d) < 0.6, 1e6 * units, 0.0)
    elif chance(rng, 0.3):
        T = T + float(rng.choice([100.0, 1e7])) * units
    if chance(rng, 0.35) and d > 1:
        T[:, int(rng.integers(1, d))] = float(rng.choice([0.0, 3.0, 1e6]))
    if chance(rng, 0.25) and d > 2:
        j, k = rng.choice(d, size=2, replace=False)
        T[:, j] = T[:, k]
        units[j] = units[k]
    if chance(rng, 0.12):
        T[int(rng.integers(n)), int(rng.integers(d))] = float(rng.choice(FILLS[:3]))
    return T, labels, units


def _steps(rng: Rng, d: int) -> list[str]:
    found = []
    if chance(rng, 0.3):
        return [_draw_last(rng)]
    if chance(rng, 0.25):
        found.append("VarianceThreshold()")
    if chance(rng, 0.85):
        found.append(str(rng.choice(["StandardScaler()", "MinMaxScaler()"])))
    if chance(rng, 0.3):
        found.append(f"PCA({max(1, min(d - 2, 3))})" if not found else "PCA()")
    return [*found, _draw_last(rng)]


def _draw_last(rng: Rng) -> str:
    weights = np.array(list(_LAST.values()))
    return str(rng.choice(list(_LAST), p=weights / weights.sum()))


def pipeline(rng: Rng) -> Case:
    """Models behind scalers, PCA and selection, in the columns of the table."""
    d = draw_width(rng)
    T, labels, units = _training(rng, d)
    steps = _steps(rng, d)
    if chance(rng, 0.2):
        # Models that expand the square lose digits to an offset, and to the size of a batch.
        T = np.round(rng.normal(size=T.shape), 3) + float(rng.choice([100.0, 1e6, 1e7]))
        units = np.ones(d)
        steps = [str(rng.choice(list(_LAST)[:4]))]
    made = f"make_pipeline({', '.join(steps)})" if len(steps) > 1 else steps[0]
    model = Model(T, labels, units, np.zeros(d))
    cost = draw_cost(rng, model, "llwwem")
    found = Conditions()
    hold = T[int(rng.integers(len(T)))]
    for _ in range(int(rng.integers(0, 3))):
        _named_condition(rng, found, d, hold, units)
    n = int(rng.integers(5, 10))
    X = T[rng.integers(len(T), size=n)].copy()
    moved = rng.random(n) < 0.6
    X[moved] += np.round(rng.normal(size=(int(moved.sum()), d)), 2) * units
    targets: list[Any] = [None] * n
    if chance(rng, 0.6):
        targets = draw_targets(rng, model, n)
    code = (
        f"{IMPORTS}T = np.array({listed(T)})\nt = np.array({listed(labels)})\n"
        f"model = {made}.fit(T, t)\n"
        f"explainer = clvq.Explainer(model, {cost[0]}, constraints=[{', '.join(found.code)}])\n"
    )
    plain = _plain_when_fitted(cost[1], found, (Column(),) * d)
    tags = frozenset({"pipeline", "fitted"})
    return Case("pipeline", code, X, targets, plain, tags=tags)


def _plain_when_fitted(
    price: Price, found: Conditions, columns: tuple[Column, ...]
) -> Callable[[Names], Plain]:
    def plain(names: Names) -> Plain:
        rows, rounds = tuple(found.rows), tuple(found.rounds)
        scores = scores_of(names["model"])
        return Plain(scores, price, rows, rounds, columns, None, _SHARED_GAP, found.no_room)

    return plain


def _named_condition(rng: Rng, found: Conditions, d: int, hold: Floats, units: Floats) -> None:
    """Constraints by name: behind a pipeline, positions of columns are not what they were."""
    j = int(rng.integers(d))
    kind = rng.choice(["freeze", "bounds", "change", "tight"])
    if kind == "freeze" and d > 1:
        found.add(f"clvq.Freeze('x{j}')", Row.of(axis(d, j), axis(d, j, -1), 0.0, equality=True))
    elif kind == "bounds":
        lower, upper = float(hold[j] - units[j]), float(hold[j] + units[j])
        found.add(
            f"clvq.Bounds('x{j}', {lower!r}, {upper!r})",
            Row.of(axis(d, j), np.zeros(d), upper),
            Row.of(axis(d, j, -1), np.zeros(d), -lower),
        )
    elif kind == "change":
        _named_change(found, d, j, float(units[j]))
    else:
        for k in range(d):
            if chance(rng, 0.8):
                _named_change(found, d, k, float(0.1 * units[k]))


def _named_change(found: Conditions, d: int, j: int, by: float) -> None:
    found.add(
        f"clvq.MaxChange('x{j}', {by!r})",
        Row.of(axis(d, j), axis(d, j, -1), by),
        Row.of(axis(d, j, -1), axis(d, j), by),
    )


# --- grids ----------------------------------------------------------------------------------------


def _grid_columns(rng: Rng, d: int, real: bool) -> tuple[list[Column], list[tuple[float, float]]]:
    """Columns on grids with ranges small enough to list every point; possibly one real one."""
    most = max(3, int(3000 ** (1 / d)))
    columns, ends = [], []
    for _ in range(d):
        decimals = 1 if chance(rng, 0.2) else 0
        lower = float(rng.integers(-3, 3))
        upper = lower + float(rng.integers(2, max(3, min(most, 7))))
        if decimals:
            upper = lower + 0.5
        columns.append(Column(decimals=decimals))
        ends.append((lower, upper))
    if real:
        j = int(rng.integers(d))
        columns[j], ends[j] = Column(), (-np.inf, np.inf)
    return columns, ends


def _feature(name: str, column: Column, ends: tuple[float, float]) -> str:
    if column.levels:
        return f"clvq.Feature({name!r}, levels={list(column.levels)!r})"
    said = "" if column.decimals else ", 'whole'"
    if column.decimals is None:
        return repr(name)
    if column.decimals:
        said = f", decimals={column.decimals}"
    return f"clvq.Feature({name!r}{said}, lower={ends[0]!r}, upper={ends[1]!r})"


def range_rows(ends: list[tuple[float, float]]) -> list[Row]:
    d, rows = len(ends), []
    for j, (lower, upper) in enumerate(ends):
        if np.isfinite(upper):
            rows.append(Row.of(axis(d, j), np.zeros(d), upper))
            rows.append(Row.of(axis(d, j, -1), np.zeros(d), -lower))
    return rows


def _on_grid(rng: Rng, columns: list[Column], ends: list[tuple[float, float]], n: int) -> Floats:
    out = np.empty((n, len(columns)))
    for j, (column, (lower, upper)) in enumerate(zip(columns, ends, strict=True)):
        if column.levels:
            out[:, j] = rng.integers(len(column.levels), size=n)
        elif column.decimals is None:
            out[:, j] = np.round(rng.normal(size=n), 2)
        else:
            scale = 10**column.decimals
            drawn = rng.integers(int(lower * scale), int(upper * scale) + 1, size=n) / scale
            out[:, j] = np.round(drawn, column.decimals)
    return out


def mixed(rng: Rng) -> Case:
    """Whole numbers and decimals of a plain model, all points of the grid listed."""
    d = int(rng.integers(5, 7)) if chance(rng, 0.55) else int(rng.integers(1, 4))
    columns, ends = _grid_columns(rng, d, real=chance(rng, 0.3))
    model = draw_model(rng, width=d, ugly=0.0)
    if chance(rng, 0.5):
        model.W, model.is_integer = np.rint(model.W * 1.5), True
    if chance(rng, 0.1):
        model.W[0] = float(rng.choice(FILLS))
    found = Conditions(rows=range_rows(ends))
    if chance(rng, 0.3):
        j = int(rng.integers(d))
        found.add(f"clvq.Freeze({j})", Row.of(axis(d, j), axis(d, j, -1), 0.0, equality=True))
    if chance(rng, 0.3):
        a = rng.integers(-2, 3, size=d).astype(float)
        if a.any():
            value = float(rng.integers(-4, 6))
            found.add(f"clvq.Linear({listed(a)}, '<=', {value!r})", Row.of(a, np.zeros(d), value))
    if chance(rng, 0.15):
        for j in range(d):
            _named_change(found, d, j, 1.0)
    names = [_feature(f"x{j}", c, e) for j, (c, e) in enumerate(zip(columns, ends, strict=True))]
    X = _on_grid(rng, columns, ends, 4)
    return assembled(
        "mixed", model, draw_cost(rng, model, "llwem"), found, X, draw_targets(rng, model, 4),
        columns=tuple(columns), features=f"clvq.Features([{', '.join(names)}])",
    )  # fmt: skip


def unbounded(rng: Rng) -> Case:
    """Whole numbers without ends, flat costs, answers that are far off or at no cost."""
    d = int(rng.integers(2, 4)) if chance(rng, 0.5) else 5
    model = draw_model(rng, width=d, ugly=0.0)
    columns = [Column(decimals=0) if chance(rng, 0.6) else Column() for _ in range(d)]
    columns[0] = Column(decimals=0)
    model.W = np.round(model.W * rng.choice([1.0, 1e-3], size=d), 4)
    found = Conditions()
    if chance(rng, 0.5):
        for j in range(d - 1):
            new = axis(d, j) - axis(d, j + 1, 10.0 ** -float(rng.integers(0, 4)))
            value = float(np.round(rng.uniform(0, 1), 1))
            found.add(
                f"clvq.Linear({listed(new)}, '<=', {value!r})", Row.of(new, np.zeros(d), value)
            )
    X = np.where([c.decimals is None for c in columns], np.round(rng.normal(size=(3, d)), 2), 0.0)
    names = [
        f"clvq.Feature('x{j}', 'whole')" if c.decimals == 0 else f"'x{j}'"
        for j, c in enumerate(columns)
    ]
    return assembled(
        "unbounded", model, draw_cost(rng, model, "lweff"), found, X, draw_targets(rng, model, 3),
        columns=tuple(columns), features=f"clvq.Features([{', '.join(names)}])",
    )  # fmt: skip


def mixed_pipeline(rng: Rng) -> Case:
    """Whole numbers and levels behind encoders and scalers, judged by `predict` at every point."""
    d = int(rng.choice([2, 2, 3, 5, 6]))
    columns, ends = _grid_columns(rng, d, real=False)
    has_levels = chance(rng, 0.45)
    if d == 2 and not has_levels:
        columns, ends = [Column(decimals=0)] * 2, [(0.0, 6.0)] * 2
    if has_levels:
        for j in range(1 if chance(rng, 0.6) or d < 3 else 2):
            columns[j] = Column(levels=("a", "b", "c")[: int(rng.integers(2, 4))])
            ends[j] = (-np.inf, np.inf)
    T = np.unique(_on_grid(rng, columns, ends, 24 if d < 4 else 16), axis=0)
    T = rng.permutation(T)
    labels = np.arange(len(T)) % 2
    scaler = str(rng.choice(["StandardScaler()", "MinMaxScaler()"]))
    last = str(rng.choice(list(_LAST)[:5]))
    if d == 2 and not has_levels and chance(rng, 0.7):
        scaler, last = "MinMaxScaler()", "KNeighborsClassifier(1, algorithm='brute')"
    weights = rng.choice([0.5, 1.0, 2.0], size=d)
    is_plain = chance(rng, 0.5)
    at = tuple(j for j, c in enumerate(columns) if not c.levels)
    prices = np.ones(d) if is_plain else weights
    switches = {j: Fraction(float(prices[j])) for j, c in enumerate(columns) if c.levels}
    price = Price(weights=exact(prices), at=at, switches=switches)
    cost = "clvq.Manhattan()" if is_plain else f"clvq.Manhattan({listed(weights)})"
    if chance(rng, 0.25):
        ones = dict.fromkeys(switches, ONE)
        price = Price(matrix=exact_matrix(np.eye(len(at))), at=at, switches=ones)
        cost = "clvq.Euclidean()"
    features = [_feature(f"x{j}", c, e) for j, (c, e) in enumerate(zip(columns, ends, strict=True))]
    found = Conditions(rows=range_rows(ends))
    if chance(rng, 0.35):
        j = int(rng.integers(d))
        found.add(f"clvq.Freeze('x{j}')", Row.of(axis(d, j), axis(d, j, -1), 0.0, equality=True))
    if chance(rng, 0.15):
        for j in at:
            _named_change(found, d, j, 1.0)
    levels = tuple(c.levels for c in columns) if has_levels else ()
    code = IMPORTS + _table_code(T, columns, labels, has_levels, scaler, last)
    code += (
        f"features = clvq.Features([{', '.join(features)}])\n"
        f"explainer = clvq.Explainer(model, {cost}, constraints=[{', '.join(found.code)}], "
        f"features=features)\n"
    )
    X = _on_grid(rng, columns, ends, 4)
    targets = [int(rng.integers(2)) for _ in range(4)]
    # Every point is asked about, so that the scores are needed for their labels only.
    scores = Scores([[[ZERO] * d]] * 2, [[ZERO]] * 2, [ZERO] * 2, [0, 1], is_local=False)
    plain = Plain(scores, price, tuple(found.rows), (), tuple(columns), None, _SHARED_GAP)
    tags = frozenset({"pipeline", "fitted"})
    return Case("levels", code, X, targets, lambda _: plain, levels=levels, tags=tags)


def _table_code(
    T: Floats, columns: list[Column], labels: Any, has_levels: bool, scaler: str, last: str
) -> str:
    said = f"t = {listed(labels)}\n"
    if not has_levels:
        return (
            f"T = np.array({listed(T)})\n{said}model = make_pipeline({scaler}, {last}).fit(T, t)\n"
        )
    parts = []
    for j, column in enumerate(columns):
        values = [column.levels[int(v)] for v in T[:, j]] if column.levels else T[:, j].tolist()
        parts.append(f"'x{j}': {values!r}")
    coded = [f"x{j}" for j, c in enumerate(columns) if c.levels]
    numbers = [f"x{j}" for j, c in enumerate(columns) if not c.levels]
    every = [list(c.levels) for c in columns if c.levels]
    encoder = f"OneHotEncoder(categories={every!r}, sparse_output=False)"
    steps = (
        f"({encoder}, {coded!r}), ({scaler}, {numbers!r})" if numbers else f"({encoder}, {coded!r})"
    )
    return (
        f"import pandas as pd\nT = pd.DataFrame({{{', '.join(parts)}}})\n{said}"
        f"model = make_pipeline(make_column_transformer({steps}), {last}).fit(T, t)\n"
    )
