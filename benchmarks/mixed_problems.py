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

    @property
    def has_milp(self) -> bool:
        """Whether plain MILPs can state it: drawn, absolute costs, one metric."""
        return self.name == "drawn" and self.cost == "L1" and self.metric == "shared"

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
        "drawn", cost, metric, width, discrete, model, features, price, (), list(X), targets
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
        [cheap.iloc[i] for i in range(len(cheap))], ["160k or more"] * len(cheap),
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
