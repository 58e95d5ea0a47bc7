"""Tables with whole numbers and levels, drawn and real."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import counterlvq as clvq
from counterlvq.datasets import load_ames_mixed

COSTS = ("L1", "L2")
_LEVELS = (-1.0, 0.5, 2.0)
_WHOLE = 12  # largest whole number, either way


@dataclass(frozen=True)
class LevelLimit:
    """A number has a limit where a category has a certain level."""

    category: str
    level: str
    number: str
    limit: float

    def __str__(self) -> str:
        return f"if {self.category} == '{self.level}' then {self.number} <= {self.limit:g}"


@dataclass(frozen=True, eq=False)
class MixedProblem:
    """A model, what its columns are, and rows with what is wished for them."""

    name: str
    cost: str
    metric: str
    width: int
    discrete: int
    model: Any
    features: Any
    price: clvq.Cost
    constraints: Sequence[str]
    inputs: Sequence[Any]
    targets: Sequence[Any]
    table: Any = None  # the same rows, all of them, as a batch takes them
    rule: LevelLimit | None = None  # among the constraints, as plain MILPs state it

    @property
    def has_milp(self) -> bool:
        """Whether plain MILPs can state it: absolute costs, one metric."""
        return self.cost == "L1" and self.metric == "shared"

    @property
    def is_pipeline(self) -> bool:
        """Whether a pipeline comes before the model."""
        return hasattr(self.model, "named_steps")

    def image(self, rows: Sequence[dict[str, Any]]) -> NDArray[Any]:
        """Take rows of the table to the space of the prototypes, by the pipeline's own steps."""
        if not self.is_pipeline:
            return np.array([[row[f.name] for f in self.features] for row in rows], dtype=float)
        import pandas as pd

        frame = pd.DataFrame(rows, columns=list(self.features.columns))
        return np.asarray(self.model[:-1].transform(frame.astype(self.features.dtypes)))

    def explainer(self) -> clvq.Explainer:
        """The question as a user would put it."""
        return clvq.Explainer(self.model, self.price, self.constraints, features=self.features)


def drawn_problem(width: int, discrete: int, cost: str, metric: str, rows: int) -> MixedProblem:
    """Draw a model of three classes with three prototypes each."""
    rng = np.random.default_rng([width, discrete])
    prototypes = rng.normal(size=(9, width))
    labels = np.repeat(["low", "middle", "high"], 3)
    omega = rng.normal(size=(width, width)) / np.sqrt(width)
    model = clvq.PrototypeModel(prototypes, labels, omega)
    whole = discrete // 2
    columns = [clvq.Feature(f"x{j}", "whole", lower=-_WHOLE, upper=_WHOLE) for j in range(whole)]
    columns += [clvq.Feature(f"x{j}", levels=_LEVELS) for j in range(whole, discrete)]
    columns += [clvq.Feature(f"x{j}") for j in range(discrete, width)]
    X = rng.normal(size=(rows, width))
    X[:, :whole] = np.rint(X[:, :whole])
    X[:, whole:discrete] = rng.choice(_LEVELS, size=(rows, discrete - whole))
    nearest = model.predict(X)
    targets = [
        rng.choice([label for label in sorted(set(labels)) if label != near]) for near in nearest
    ]
    price = clvq.Manhattan() if cost == "L1" else clvq.Euclidean()
    features = clvq.Features(columns)
    return MixedProblem(
        "drawn", cost, metric, width, discrete, model, features, price, (), list(X), targets, X
    )


def ames_problem(cost: str, metric: str, rows: int) -> MixedProblem:
    """What would have brought a cheaper house over the limit."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    table, target = load_ames_mixed()
    numbers = [name for name in table.columns if table[name].dtype.kind == "i"]
    levels = [name for name in table.columns if name not in numbers]
    steps = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), levels))
    last = clvq.GMLVQ(prototypes_per_class=3, random_state=0)
    if metric == "local":
        last = clvq.LGMLVQ(prototypes_per_class=2, random_state=0)
    pipeline = make_pipeline(steps, last).fit(table, target)
    unit = clvq.mad_weights(table[numbers])
    price = clvq.Manhattan(clvq.mad_weights(table))
    if cost == "L2":
        price = clvq.Mahalanobis(np.diag(unit**2))
    cheap = table[pipeline.predict(table) == "below 160k"].iloc[:rows]
    return MixedProblem(
        "Ames", cost, metric, table.shape[1], table.shape[1], pipeline, table, price,
        ("year_built == original(year_built)", "lot_area == original(lot_area)"),
        [cheap.iloc[i] for i in range(len(cheap))], ["160k or more"] * len(cheap), cheap,
    )  # fmt: skip


def credit_problem(cost: str, rows: int) -> MixedProblem:
    """What would have brought a credit: nine numbers, five of them whole, and four categories."""
    rng, n = np.random.default_rng(13), max(1000, 4 * rows)
    numbers = _credit_numbers(rng, n)
    table = numbers.assign(
        purpose=rng.choice(["car", "house", "business", "study"], n),
        housing=rng.choice(["rent", "own", "free"], n),
        account=rng.choice(["none", "low", "high"], n),
        job=rng.choice(["unskilled", "skilled", "manager", "self"], n),
    )
    return _granted("credit", cost, table, rows, rng.normal(0, 0.4, n))


def many_levels_problem(cost: str, rows: int, *, is_ruled: bool) -> MixedProblem:
    """The same with categories of 3 to 10 levels, some of them rare: hundreds of combinations.

    With a rule, the savings of those who rent count up to a limit only.
    """
    rng, n = np.random.default_rng(19), max(1000, 4 * rows)
    numbers = _credit_numbers(rng, n)

    def drawn(levels: Sequence[str]) -> NDArray[Any]:
        share = 1.0 / np.arange(1.0, len(levels) + 1.0) ** 1.3
        return rng.choice(levels, n, p=share / share.sum())

    table = numbers.assign(
        purpose=drawn(["car", "furniture", "house", "radio", "business", "study", "repairs",
                       "appliances", "retraining", "other"]),
        housing=drawn(["own", "rent", "free"]),
        account=drawn(["none", "low", "high", "middle"]),
        job=drawn(["skilled", "unskilled", "manager", "self", "none"]),
    )  # fmt: skip
    rule = LevelLimit("housing", "rent", "savings", 4000.0) if is_ruled else None
    name = "credit, many levels" + (" and a rule" if is_ruled else "")
    return _granted(name, cost, table, rows, rng.normal(0, 0.4, n), rule)


def _credit_numbers(rng: np.random.Generator, n: int) -> Any:
    import pandas as pd

    return pd.DataFrame(
        {
            "age": rng.integers(19, 76, n),
            "months": 3 * rng.integers(2, 24, n),
            "credits": rng.integers(1, 5, n),
            "dependants": rng.integers(0, 4, n),
            "years_there": rng.integers(0, 11, n),
            "amount": rng.gamma(2.0, 1500.0, n).round(0).astype(float),
            "income": rng.gamma(4.0, 700.0, n),
            "share": rng.uniform(5.0, 40.0, n),
            "savings": rng.gamma(1.0, 2500.0, n),
        }
    )


def _granted(
    name: str, cost: str, table: Any, rows: int, noise: Any, rule: LevelLimit | None = None
) -> MixedProblem:
    """Train a model of who gets a credit, and ask for those who do not."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    scored = (
        0.0006 * table.income + 0.0002 * table.savings - 0.0002 * table.amount
        - 0.02 * table.months + 0.01 * table.age + 0.6 * (table.housing == "own")
        + 0.8 * (table.account == "high") + 0.4 * (table.job == "manager") + noise
    )  # fmt: skip
    label = np.where(scored > scored.median(), "granted", "refused")
    numbers, levels = list(table.columns[:9]), list(table.columns[9:])
    steps = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), levels))
    last = clvq.GMLVQ(prototypes_per_class=2, random_state=0)
    pipeline = make_pipeline(steps, last).fit(table, label)
    price = clvq.Manhattan(clvq.mad_weights(table))
    if cost == "L2":
        price = clvq.Mahalanobis(np.diag(clvq.mad_weights(table[numbers]) ** 2))
    refused = table[pipeline.predict(table) == "refused"].iloc[:rows]
    kept = ("age == original(age)", "dependants == original(dependants)")
    return MixedProblem(
        name, cost, "shared", table.shape[1], 9, pipeline, table, price,
        kept if rule is None else (*kept, str(rule)),
        [refused.iloc[i] for i in range(len(refused))], ["granted"] * len(refused), refused, rule,
    )  # fmt: skip


def lifted_from_pca(rows: int) -> dict[str, float]:
    """Exact answers in all columns beside answers in PCA's space, lifted back."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = load_breast_cancer(as_frame=True)
    X, y = data.data, data.target
    steps = make_pipeline(StandardScaler(), PCA(5, random_state=0))
    last = clvq.GMLVQ(random_state=0).fit(steps.fit_transform(X), y)
    pipeline = make_pipeline(*[step for _, step in steps.steps], last)
    unit = 1.0 / X.std().to_numpy()
    inputs = X.iloc[:rows]
    exact = clvq.Explainer(pipeline, clvq.Manhattan(unit)).explain_batch(inputs)
    inner = clvq.Explainer(last).explain_batch(steps.transform(inputs))
    lifted: NDArray[Any] = steps.inverse_transform(inner.X)
    # What PCA leaves out is not undone: only the change is lifted.
    lifted = inputs.to_numpy() + lifted - steps.inverse_transform(steps.transform(inputs))
    costs = (unit * np.abs(lifted - inputs.to_numpy())).sum(axis=1)
    flipped = pipeline.predict(X.iloc[:rows].assign(**dict(zip(X.columns, lifted.T, strict=True))))
    return {
        "rows": float(len(inputs)),
        "valid": float((flipped != pipeline.predict(inputs)).mean()),
        "exact": float(exact.cost.mean()),
        "lifted": float(costs.mean()),
        "cheaper": float((exact.cost < costs * (1 - 1e-9)).mean()),
        "dearer": float((exact.cost > costs * (1 + 1e-9)).mean()),
    }
