"""The paper's house-price story: what would have to change for a house to sell for more.

A nearest-prototype model tells houses that sold for 160,000 dollars or more from the rest.
For one house below that line, find the smallest changes of its areas that would lift it
above, in square feet: first freely, then as a house that could be built: its second floor is no
larger than the first, and its living area is that of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import counterlvq as clvq
from counterlvq.datasets import AmesHouses, load_ames

__all__ = ["ABOVE", "RULES", "house_page", "tell"]

BELOW, ABOVE = "below 160k", "160k or more"
_HOUSES = 8
RULES = ("second_floor <= first_floor", "living_area == first_floor + second_floor")
FROZEN = ("wood_deck", "open_porch", "three_season_porch", "screen_porch", "pool_area")


def tell() -> Iterator[str]:
    """Tell the story, part by part as it is computed."""
    houses = load_ames()
    model = _nearest_prototype_model(houses)
    right = (model.predict(houses.X) == houses.target).mean()
    yield (
        f"{len(houses.X):,} houses in Ames, Iowa; {len(model.prototypes)} prototypes; "
        f"{right:.0%} of the price classes right.\n"
    )
    cost = clvq.Manhattan(weights=clvq.mad_weights(houses.X))
    explainer = clvq.Explainer(model, cost=cost, constraints=[clvq.Freeze(*FROZEN)])
    house, free = _first_top_heavy_answer(explainer, houses)
    yield "One house below 160,000 dollars, and the smallest change of its areas (in square"
    yield "feet; decks, porches and pool stay) that would lift it above:\n"
    yield f"{free}\n"

    yield "There is no such house: its second floor is larger than its first, and its living area"
    yield f'is not that of its floors. With "{RULES[0]}" and\n"{RULES[1]}":\n'
    constraints: list[clvq.Constraint | str] = [clvq.Freeze(*FROZEN), *RULES]
    answer = clvq.Explainer(model, cost=cost, constraints=constraints).explain(house, target=ABOVE)
    yield f"{answer}\n"
    yield f"{answer.text()}\n"

    yield "And if no area of the house itself may grow:\n"
    shrink = clvq.Decrease(*houses.feature_names[:4])
    stuck = clvq.Explainer(model, cost=cost, constraints=[*constraints, shrink])
    yield f"{stuck.explain(house, target=ABOVE)}\n"
    yield "To move the sliders yourself and watch the proof hold: make page"


def house_page() -> tuple[clvq.PrototypeModel, list[dict[str, float]], list[str]]:
    """Return the model of the story with words for its columns, some houses, and their names."""
    houses = load_ames()
    plain = _nearest_prototype_model(houses)
    named: Any = [  # names, and more about each column
        clvq.Feature(name, unit="sq ft", label=name.replace("_", " ").replace("three", "3"))
        for name in houses.feature_names
    ]
    model = clvq.PrototypeModel(plain.prototypes, plain.labels, plain.omegas, named)
    labels = model.predict(houses.X)
    below = np.flatnonzero((labels == BELOW) & (houses.target == BELOW))[:_HOUSES]
    rows = [
        dict(zip(houses.feature_names, houses.X[k].tolist(), strict=True)) for k in below.tolist()
    ]
    called = [f"a house with {row['living_area']:,.0f} sq ft of living area" for row in rows]
    return model.with_reference(clvq.Reference.of(houses.X, model.features)), rows, called


def _nearest_prototype_model(
    houses: AmesHouses, per_class: int = 3, rounds: int = 20, seed: int = 0
) -> clvq.PrototypeModel:
    """Three cluster centres per class in standardised features, as a prototype model.

    Standardising is a change of units: with omega = diag(1 / deviation) the model takes and
    gives square feet.
    """
    deviation = houses.X.std(axis=0)
    scaled = houses.X / deviation
    rng = np.random.default_rng(seed)
    prototypes, labels = [], []
    for label in np.unique(houses.target):
        rows = scaled[houses.target == label]
        centres = rows[rng.choice(len(rows), per_class, replace=False)]
        for _ in range(rounds):
            nearest = ((rows[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
            centres = np.array([rows[nearest == k].mean(axis=0) for k in range(per_class)])
        prototypes.extend(centres * deviation)
        labels.extend([label] * per_class)
    return clvq.PrototypeModel(
        np.array(prototypes), labels, np.diag(1 / deviation), houses.feature_names
    )


def _first_top_heavy_answer(
    explainer: clvq.Explainer, houses: AmesHouses
) -> tuple[NDArray[np.float64], clvq.Counterfactual]:
    """Find the first house below the line whose answer puts a large floor on a small one."""
    first, second = (houses.feature_names.index(f"{n}_floor") for n in ("first", "second"))
    labels = explainer.model.predict(houses.X)
    for house in houses.X[(labels == BELOW) & (houses.target == BELOW)]:
        answer = explainer.explain(house, target=ABOVE)
        if house[second] <= house[first] and answer.x[second] > answer.x[first]:
            return house, answer
    raise LookupError("every answer has a first floor at least as large as the second")
