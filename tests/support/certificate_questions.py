"""Questions for certificate files: every class of model, cost and constraint, at ugly scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import counterlvq as clvq
from counterlvq import Feature, Features

KINDS = (
    "shared absolute", "shared squared", "shared mahalanobis", "shared quadratic constraint",
    "shared infeasible", "shared flat cost", "shared margin", "grid absolute", "grid squared",
    "grid mahalanobis", "grid infeasible", "levels", "levels implied", "local absolute",
    "local squared", "local mahalanobis", "local infeasible", "local grid", "pipeline numbers",
    "pipeline projection", "pipeline levels", "foreign", "pipeline ties", "kept values",
    "steps of change", "dates", "least changes", "listed values", "conditions on numbers",
    "ranges as seen", "local steps of change", "local least changes", "local listed values",
    "local conditions on numbers", "local ranges as seen", "priced levels", "missing values",
    "local quadratic", "local listed quadratic", "shared nearly singular", "few changes",
    "largest change",
)  # fmt: skip
MEANINGS = KINDS[KINDS.index("kept values") : KINDS.index("priced levels")]
# Seconds for one answer.
TIME_LIMIT = 5.0


@dataclass(frozen=True)
class Drawn:
    """Some rows to be explained by one explainer."""

    kind: str
    explainer: clvq.Explainer
    rows: Any
    target: Any = None


def draw(kind: str, seed: int, rows: int = 6) -> Drawn:
    """Draw a question of one kind, the same for the same seed."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    word = kind.split(maxsplit=1)[0]
    if word in ("pipeline", "foreign"):
        return _fitted(kind, rng, rows)
    if word == "levels":
        return _levels(kind, rng, rows)
    if kind in MEANINGS:
        return _meanings(kind, rng, rows)
    if kind in ("priced levels", "missing values"):
        return _priced_levels(kind, rng, rows) if "levels" in kind else _gaps(kind, rng, rows)
    return _numbers(kind, rng, rows)


def _scales(rng: np.random.Generator, d: int) -> np.ndarray:
    """Units of the columns: one in three questions has them from 1e-8 to 1e8."""
    if rng.random() < 1 / 3:
        return 10.0 ** rng.uniform(-8, 8, size=d)
    return np.ones(d)


def _cost(kind: str, rng: np.random.Generator, units: np.ndarray) -> clvq.Cost:
    d = units.size
    if "nearly singular" in kind:
        return _nearly_singular(rng, units)
    if "mahalanobis" in kind:
        A = rng.normal(size=(d + 2, d)) / units
        return clvq.Mahalanobis(A.T @ A)
    if "squared" in kind:
        return clvq.Mahalanobis(np.diag(1.0 / units**2)) if rng.random() < 0.5 else clvq.Euclidean()
    weights = rng.uniform(0.5, 2.0, size=d) / units
    if kind == "largest change":
        return clvq.Chebyshev(weights)
    if kind == "shared flat cost":
        weights[rng.integers(d)] = 0.0
        return PartlyFree(weights)
    return clvq.Manhattan(weights)


def _nearly_singular(rng: np.random.Generator, units: np.ndarray) -> clvq.Cost:
    """A matrix that prices one direction next to nothing; some of them are not semidefinite."""
    while True:
        A = rng.normal(size=(units.size, units.size)) / units
        A[-1] = A[0] * rng.normal() + 10.0 ** rng.uniform(-8, -3) * A[-1]
        try:
            return clvq.Mahalanobis(A.T @ A)
        except clvq.InvalidInputError:
            continue


class PartlyFree(clvq.Cost):
    """Absolute changes, of which some cost nothing."""

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights

    def l1_weights(self, width: int) -> np.ndarray:
        return self.weights

    def l2_factor(self, width: int) -> np.ndarray:
        return np.zeros((0, width))


def _numbers(kind: str, rng: np.random.Generator, n: int) -> Drawn:
    is_local, is_grid = kind.startswith("local"), "grid" in kind
    d = int(rng.integers(2, 5 if is_local else 8))
    p = int(rng.integers(2, 5 if is_local else 9))
    units = np.ones(d) if is_grid else _scales(rng, d)
    shift = rng.normal(size=d) * rng.choice([0.0, 1.0, 1e4])
    W = rng.normal(size=(p, d)) * (3.0 if is_grid else 1.0) + (0 if is_grid else shift)
    X = rng.normal(size=(n, d)) * (3.0 if is_grid else 1.0) + (0 if is_grid else shift)
    features = None
    if is_grid:
        features, W, X = _gridded(rng, W, X)
    labels = np.concatenate([[0, 1], rng.integers(0, 3, size=p - 2)])
    omegas: Any = None
    if is_local:
        omegas = [rng.normal(size=(int(rng.integers(1, d + 1)), d)) / units for _ in range(p)]
    elif rng.random() < 0.6:
        omegas = rng.normal(size=(int(rng.integers(1, d + 2)), d)) / units
        omegas = omegas if rng.random() < 0.7 else rng.uniform(0.5, 2, size=d) / units
    offsets = rng.uniform(0, 1, size=p) if rng.random() < 0.25 else None
    if p > 3 and rng.random() < 0.3:
        W[-1] = W[0]  # a copy of an earlier prototype, which never wins
    names = None if features is None else features.names
    model = clvq.PrototypeModel(W * units, labels, omegas, names, offsets)
    constraints = _constraints(kind, rng, [f"x{j}" for j in range(d)], units, shift * units)
    margin = float(rng.uniform(0.01, 0.2)) if kind == "shared margin" else None
    # A search that takes long is ended: what it has by then is to be written and checked as well.
    explainer = clvq.Explainer(
        model, _cost(kind, rng, units), constraints, margin=margin, features=features,
        time_limit=TIME_LIMIT,
    )  # fmt: skip
    return Drawn(kind, explainer, X * units)


def _gridded(
    rng: np.random.Generator, W: np.ndarray, X: np.ndarray
) -> tuple[Features, np.ndarray, np.ndarray]:
    """Put some columns of prototypes and inputs on a grid."""
    told: list[Any] = []
    for j in range(W.shape[1]):
        kind = rng.choice(["whole", "step", "decimal", "real"], p=[0.4, 0.15, 0.2, 0.25])
        name = f"x{j}"
        if j == 0 or kind == "whole":
            told.append(Feature(name, "whole", lower=-9, upper=9))
            X[:, j] = np.clip(np.rint(X[:, j]), -9, 9)
            W[:, j] = np.rint(W[:, j])
        elif kind == "step":
            told.append(Feature(name, "whole", step=2))
            X[:, j] = 2 * np.rint(X[:, j] / 2)
        elif kind == "decimal":
            told.append(Feature(name, decimals=1))
            X[:, j] = np.round(X[:, j], 1)
        else:
            told.append(Feature(name))
    return Features(told), W, X


def _constraints(
    kind: str, rng: np.random.Generator, names: list[str], units: np.ndarray, shift: np.ndarray
) -> list[Any]:
    d, out = len(names), []
    is_grid = "grid" in kind

    def number(value: float) -> float:
        return float(np.rint(value)) if is_grid else float(value)

    if rng.random() < 0.5:
        j = int(rng.integers(d))
        out.append(clvq.Bounds(names[j], lower=number(shift[j] - 2 * units[j])))
    if rng.random() < 0.4:
        out.append(clvq.Freeze(names[int(rng.integers(d))]))
    if rng.random() < 0.3:
        out.append(clvq.Increase(names[int(rng.integers(d))]))
    if rng.random() < 0.3:
        j = int(rng.integers(d))
        out.append(clvq.MaxChange(names[j], by=number(3.0 * units[j])))
    if rng.random() < 0.5 and d > 1:
        i, j = rng.choice(d, size=2, replace=False)
        a, b = (1.0, 1.0) if is_grid else (1 / units[i], 1 / units[j])
        value = a * shift[i] + b * shift[j] + (3 if is_grid else 1)
        out.append(clvq.Linear({names[i]: a, names[j]: b}, "<=", float(value)))
    if rng.random() < 0.2 and d > 2 and not is_grid:
        i, j = rng.choice(d, size=2, replace=False)
        share, one, other = float(units[i] / units[j]), names[i], names[j]
        out.append(f"{one} - original({one}) == {share!r} * ({other} - original({other}))")
    if "quadratic" in kind or (kind.startswith("local") and rng.random() < 0.3):
        A = rng.normal(size=(d, d)) / units
        center = shift if rng.random() < 0.5 else np.zeros(d)
        far = float(rng.uniform(2, 9)) + float((A @ (shift - center)) @ (A @ (shift - center)))
        out.append(clvq.Quadratic(A.T @ A, value=far, center=center))
    if kind == "few changes":
        out.append(clvq.AtMost(int(rng.integers(1, d))))
    if "listed" in kind:
        j = int(rng.integers(d))
        out.append(clvq.OneOf(names[j], (shift[j] + rng.normal(size=4) * units[j]).tolist()))
    if "infeasible" in kind:
        j = int(rng.integers(d))
        out += [
            clvq.MaxChange(name, by=number(0.4 * u)) for name, u in zip(names, units, strict=True)
        ]
        if rng.random() < 0.3:
            step = number(float(units[j])) or 1.0
            out.append(f"{names[j]} >= original({names[j]}) + {step!r}")
    return out


def _levels(kind: str, rng: np.random.Generator, n: int) -> Drawn:
    d = 4
    features = Features(
        [Feature("a", "whole", lower=0, upper=9), Feature("b", decimals=1),
         Feature("c", lower=-3, upper=3), Feature("d", levels=[0, 1, 2])]
    )  # fmt: skip
    p = int(rng.integers(3, 7))
    W = np.column_stack([rng.integers(0, 9, p), rng.uniform(0, 5, p), rng.normal(size=p),
                         rng.integers(0, 3, p)]).astype(float)  # fmt: skip
    X = np.column_stack([rng.integers(0, 9, n), np.round(rng.uniform(0, 5, n), 1),
                         rng.uniform(-3, 3, n), rng.integers(0, 3, n)])  # fmt: skip
    omegas = None if rng.random() < 0.5 else rng.normal(size=(d, d))
    model = clvq.PrototypeModel(W, [0, 1, *rng.integers(0, 2, p - 2)], omegas, list("abcd"))
    constraints: list[Any] = ["a + b <= 11"]
    if rng.random() < 0.4:
        constraints.append(clvq.Freeze("d") if rng.random() < 0.5 else clvq.OneOf("d", [0, 1]))
    if kind == "levels implied":
        constraints.append("if d == 1 then a <= 5")
        constraints.append("if d == 2 then b == original(b)")
    cost = [clvq.Manhattan(), clvq.Euclidean(), clvq.Manhattan([1.0, 0.5, 2.0, 0.7])]
    return Drawn(kind, clvq.Explainer(model, cost[int(rng.integers(3))], constraints,
                                      features=features, time_limit=TIME_LIMIT), X)  # fmt: skip


def _fitted(kind: str, rng: np.random.Generator, n: int) -> Drawn:
    from sklearn.compose import make_column_transformer
    from sklearn.decomposition import PCA
    from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

    d = int(rng.integers(2, 6))
    units = _scales(rng, d)
    T = (rng.normal(size=(30, d)) + rng.normal(size=d) * 5) * units
    y = (T @ (rng.normal(size=d) / units) > 0).astype(int)
    y[:2] = 0, 1
    last = KNeighborsClassifier(1) if rng.random() < 0.6 else NearestCentroid()
    cost = clvq.Manhattan(1 / units) if rng.random() < 0.5 else clvq.Mahalanobis(
        np.diag(units**-2.0))  # fmt: skip
    constraints = [clvq.Freeze("x0")] if rng.random() < 0.3 and d > 2 else []
    if kind == "pipeline ties":
        # Points of a small grid: its own rounding decides which of two neighbours is nearer.
        every = np.array([(i, j) for i in range(6) for j in range(6)], dtype=float)
        T = every[rng.permutation(36)[:12]]
        y = np.concatenate([[0, 1], rng.integers(0, 2, 10)])
        pipe = make_pipeline(StandardScaler(), KNeighborsClassifier(1)).fit(T, y)
        ranges = [Feature(f"x{j}", "whole", lower=0, upper=6) for j in range(2)]
        return Drawn(kind, clvq.Explainer(pipe, features=Features(ranges)), T[:n])
    if kind == "pipeline levels":
        import pandas as pd

        table = pd.DataFrame({"n": rng.integers(0, 9, 30), "r": rng.normal(size=30),
                              "job": rng.choice(["smith", "nurse", "clerk"], 30)})  # fmt: skip
        encode = make_column_transformer((StandardScaler(), ["n", "r"]), (OneHotEncoder(), ["job"]))
        pipe = make_pipeline(encode, last).fit(table, y)
        whole = Features([Feature("n", "whole", lower=0, upper=9), Feature("r"),
                          Feature("job", levels=["clerk", "nurse", "smith"])])  # fmt: skip
        return Drawn(kind, clvq.Explainer(pipe, features=whole), table.iloc[:n])
    steps = {
        "foreign": [],
        "pipeline numbers": [StandardScaler() if rng.random() < 0.5 else MinMaxScaler()],
        "pipeline projection": [StandardScaler(), PCA(max(1, d - 1))],
    }[kind]
    fitted = make_pipeline(*steps, last).fit(T, y) if steps else last.fit(T, y)
    return Drawn(kind, clvq.Explainer(fitted, cost, constraints), T[:n])


def _meanings(kind: str, rng: np.random.Generator, n: int) -> Drawn:
    """What columns and constraints mean beyond linear rules: see `docs/howto/constraints.md`."""
    names, word = ("u", "v", "w"), kind.removeprefix("local ")
    p = int(rng.integers(2, 5))
    is_grid = word in ("kept values", "steps of change", "dates") or rng.random() < 0.4
    W, X = rng.integers(0, 37, (p, 3)) / 4.0, rng.uniform(0, 9, (n, 3)).round(2)
    omegas: Any = None
    if kind.startswith("local"):
        omegas = [np.diag(rng.integers(2, 5, 3) / 3.0) for _ in range(p)]
    elif rng.random() < 0.5:
        omegas = rng.integers(-2, 3, (2, 3)) + np.eye(2, 3)
    model = clvq.PrototypeModel(W, ["a", "b", *rng.choice(["a", "b"], p - 2)], omegas, names)
    j, k = (int(i) for i in rng.choice(3, 2, replace=False))
    columns: list[dict[str, Any]] = [{"lower": -20, "upper": 20} for _ in names]
    if is_grid:
        X, least = np.rint(X), 2 if word == "kept values" else 1
        columns = [{"step": int(rng.integers(least, 4)), "lower": -4, "upper": 14} for _ in names]
    constraints: list[Any] = ["u + v <= 20"]
    if word == "steps of change":
        columns[j] |= {"steps": "of change"}
        columns[k] = {"decimals": 1, "steps": "of change", "lower": -4, "upper": 14}
        X[:, k] += rng.uniform(0, 1, n).round(3)
    elif word == "dates":
        columns[j] = {"kind": "date", "lower": "1969-12-20", "upper": "1970-01-30"}
    elif word == "least changes":
        constraints.append(clvq.MinChange(names[j], round(float(rng.uniform(0.5, 4)), 2)))
        constraints.append(f"if {names[k]} changes then by at least 2")
    elif word == "listed values":
        constraints.append(clvq.OneOf(names[j], rng.integers(-4, 14, 4).tolist()))
        constraints.append(f"{names[k]} != {int(rng.integers(0, 9))}")
    elif word == "conditions on numbers":
        sense = str(rng.choice([">=", "<=", ">", "<"]))
        constraints.append(f"if {names[j]} {sense} {rng.integers(0, 9)} then {names[k]} >= 4.5")
        constraints.append(f"if {names[k]} > original({names[k]}) then {names[j]} <= 6")
    elif word == "ranges as seen":
        for name, column in zip(names, columns, strict=True):
            column["seen"] = (2.0, 6.0)
            column.pop("lower" if rng.random() < 0.5 else "upper")
            del name
    features = Features(Feature(name, **told) for name, told in zip(names, columns, strict=True))
    cost = [clvq.Manhattan(), clvq.Manhattan([1, 2, 0.5]), clvq.Euclidean()][int(rng.integers(3))]
    explainer = clvq.Explainer(model, cost, constraints, features=features, time_limit=TIME_LIMIT)
    return Drawn(kind, explainer, X, "b")


def _priced_levels(kind: str, rng: np.random.Generator, n: int) -> Drawn:
    """Levels in order, levels that are numbers, and prices of pairs that nobody listed."""
    features = Features(
        [Feature("a", "whole", lower=0, upper=9), Feature("r", levels=[0, 1, 2], ordered=True),
         Feature("m", levels=[12.0, 24.0, 36.0]), Feature("g", levels=[0, 1, 2])]
    )  # fmt: skip
    p = int(rng.integers(3, 7))

    def rows(count: int) -> np.ndarray:
        return np.column_stack([rng.integers(0, 10, count), rng.integers(0, 3, count),
                                12.0 * rng.integers(1, 4, count), rng.integers(0, 3, count)]
                               )  # fmt: skip

    scales = np.array([1.0, 2.0, 0.1, 1.0]) * rng.uniform(0.5, 2, 4)
    model = clvq.PrototypeModel(rows(p), [0, 1, *rng.integers(0, 2, p - 2)], scales, list("armg"))
    cost = clvq.Manhattan([1.0, 0.5, 0.1, 0.7], switches={"g": {(0, 1): 0.3}}, default=2.0)
    constraints: list[Any] = ["if a >= 5 then r == 2"] if rng.random() < 0.5 else []
    return Drawn(kind, clvq.Explainer(model, cost, constraints, features=features,
                                      time_limit=TIME_LIMIT), rows(n))  # fmt: skip


def _gaps(kind: str, rng: np.random.Generator, n: int) -> Drawn:
    """Rows of which values are missing, behind an imputer; or columns seen by their logarithms."""
    import pandas as pd
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    T = rng.lognormal(size=(40, 3))
    y = np.where(T @ [1.0, -0.5, 0.7] + 0.2 * rng.normal(size=40) > 1.2, "yes", "no")
    y[:2] = "no", "yes"
    table = pd.DataFrame(T, columns=["pay", "age", "debt"])
    if kind == "scales":
        steps = [FunctionTransformer(np.log1p), StandardScaler()]
    else:
        table = table.mask(rng.random(T.shape) < 0.3)
        steps = [SimpleImputer(strategy="median"), StandardScaler()]
    pipe = make_pipeline(*steps, LogisticRegression()).fit(table, y)
    constraints = [clvq.Bounds("pay", upper=9.0)] if rng.random() < 0.5 else []
    return Drawn(kind, clvq.Explainer(pipe, constraints=constraints), table.iloc[:n])
