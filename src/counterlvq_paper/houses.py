"""The paper's Table 2: one house, without and with "2nd floor <= 1st floor", in square feet."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import counterlvq as clvq
from counterlvq.datasets import load_ames
from counterlvq_paper.protocol import HOUSE, Fitted, Fold
from counterlvq_paper.published import TABLE_2_COLUMNS

__all__ = ["RULE", "HouseAnswer", "house_answers", "houses_of"]

RULE = "second_floor <= first_floor"


@dataclass(frozen=True)
class HouseAnswer:
    """The paper's house as one model sees it."""

    model: str
    constrained: bool
    areas: dict[str, float]  # of the counterfactual, in square feet
    before: str  # what the model says of the house
    after: str
    cost: float  # in standard deviations, as the model sees the house
    lower_bound: float
    status: str


def house_answers(fold: Fold, name: str, fitted: Fitted, limit: float) -> list[dict[str, Any]]:
    """Both questions to one model, as plain values.

    Distances compare differences only, so a model of standardised features is one of square feet
    whose omegas are divided by the deviations: questions and answers are stated there.
    """
    houses = load_ames()
    house = houses.X[HOUSE]
    shown = fold.test[fold.ids == HOUSE][0]
    omegas = np.eye(len(house)) if fitted.omegas is None else fitted.omegas
    matrices = omegas / fold.scale
    model = clvq.PrototypeModel(
        house + (fitted.prototypes - shown) * fold.scale,
        fitted.labels,
        list(matrices) if matrices.ndim == 3 else matrices,
        houses.feature_names,
    )
    cost = clvq.Manhattan(weights=1.0 / fold.scale)
    found = []
    for constrained in (False, True):
        constraints: list[clvq.Constraint | str] = [clvq.Freeze(*fold.frozen)]
        constraints += [RULE] if constrained else []
        explainer = clvq.Explainer(model, cost, constraints, method="global", time_limit=limit)
        cf = explainer.explain(house)
        after = dict(zip(houses.feature_names, np.asarray(cf.x).tolist(), strict=True))
        answer = HouseAnswer(
            model=name,
            constrained=constrained,
            areas={column: after[column] for column in TABLE_2_COLUMNS},
            before=str(model.predict(house[None, :])[0]),
            after=str(cf.prediction),
            cost=float(cf.cost),
            lower_bound=float(cf.lower_bound),
            status=str(cf.status),
        )
        found.append(asdict(answer))
    return found


def houses_of(plain: list[dict[str, Any]]) -> list[HouseAnswer]:
    """Read back what was kept."""
    return [HouseAnswer(**answer) for answer in plain]
