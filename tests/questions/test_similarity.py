"""Relative similarity under local metrics and with levels: grids, and trying all inputs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq
from tests.support.quick import seeds, some
from tests.support.shell import called

LABELS = np.array(["granted", "refused", "unsure"])


def similarity(model: clvq.PrototypeModel, far: np.ndarray, label: str) -> np.ndarray:
    """By the definition: of the nearest prototype of the label and the nearest of any other."""
    own, other = far[:, model.labels == label].min(1), far[:, model.labels != label].min(1)
    return (other - own) / (other + own)


def keeps(model: clvq.PrototypeModel, theta: float, y: np.ndarray, label: str) -> bool:
    """The same, in rational numbers."""
    scores = [model.exact_distance(y, k) for k in range(model.n_prototypes)]
    pairs = list(zip(scores, model.labels, strict=True))
    own = min(score for score, other in pairs if other == label)
    others = [score for score, other in pairs if other != label]
    return all(far - own >= Fraction(theta) * (far + own) for far in others)


def local(seed: int, scale: float = 1.0) -> tuple[clvq.PrototypeModel, np.ndarray]:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(6, 2)) * 2.0
    omegas = [rng.normal(size=(2, 2)) / scale for _ in points]
    return clvq.PrototypeModel(points * scale, np.repeat(LABELS, 2), omegas), rng.normal(size=2)


@pytest.mark.parametrize("seed", seeds(8, quick=1))
@pytest.mark.parametrize("scale", some([1.0, 1e-8, 1e8], quick=1))
def test_local_metrics_by_a_grid(scale: float, seed: int) -> None:
    model, x = local(seed, scale)
    steps = np.linspace(-8.0, 8.0, 801)
    places = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    far = model.distances(places * scale)
    for theta, target in product((0.0, 0.2, 0.6), LABELS):
        rule = clvq.RelativeSimilarity(theta)
        explainer = clvq.Explainer(model, clvq.Manhattan([1 / scale] * 2), confidence=rule)
        cf = explainer.explain(x * scale, target=target)
        good = similarity(model, far, target) >= theta
        # A point of the grid that keeps the rule is no closer, and one is not far.
        least = np.abs(places[good] - x).sum(axis=1).min()
        assert cf.status == "optimal"
        assert least - 0.08 <= cf.cost <= least
        assert model.predict([cf.x])[0] == target
        assert keeps(model, theta, cf.x, target)
        assert keeps(model, theta, np.asarray(cf.shown.values), target)
        assert explainer.verify(cf) == cf.lower_bound


def test_squared_costs_and_rules_by_a_grid() -> None:
    model, x = local(2)
    steps = np.linspace(-8.0, 8.0, 801)
    places = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    rule = clvq.RelativeSimilarity(0.3)
    explainer = clvq.Explainer(model, clvq.Euclidean(), ["x0 <= x1"], confidence=rule)
    allowed, far = places[:, 0] <= places[:, 1], model.distances(places)
    for target in LABELS:
        cf = explainer.explain(x, target=target)
        good = allowed & (similarity(model, far, target) >= 0.3)
        least = np.sqrt(((places[good] - x) ** 2).sum(axis=1).min())
        assert cf.status == "optimal"
        assert least - 0.04 <= np.sqrt(cf.cost) <= least


def credit(is_local: bool) -> tuple[object, pd.DataFrame, clvq.Features]:
    """A pipeline of two whole numbers and levels, every row there can be, and what columns are."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "pay": rng.integers(0, 9, 120),
            "age": rng.integers(0, 7, 120),
            "job": rng.choice(["clerk", "nurse", "smith"], 120),
        }
    )
    score = table["pay"] - table["age"] + 2 * (table["job"] == "clerk") + rng.normal(size=120)
    y = np.where(score > 1, "granted", np.where(table["pay"] > 3, "unsure", "refused"))
    steps = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["pay", "age"]),
            ("levels", OneHotEncoder(sparse_output=False), ["job"]),
        ]
    )
    kind = clvq.LGMLVQ if is_local else clvq.GMLVQ
    pipeline = make_pipeline(steps, kind(random_state=0, tol=1e-2)).fit(table, y)
    jobs = ["clerk", "nurse", "smith"]
    rows = list(product(range(10), range(8), jobs))
    features = clvq.Features(
        [
            clvq.Feature("pay", "whole", lower=0, upper=9),
            clvq.Feature("age", "whole", lower=0, upper=7),
            clvq.Feature("job", levels=jobs),
        ]
    )
    return pipeline, pd.DataFrame(rows, columns=["pay", "age", "job"]), features


@pytest.mark.parametrize("is_local", [False, True])
def test_levels_and_whole_numbers_by_trying_all(is_local: bool) -> None:
    pipeline, rows, features = credit(is_local)
    model = clvq.as_prototype_model(pipeline[-1])
    images = pipeline[:-1].transform(rows)
    cost = clvq.Manhattan({"pay": 1, "age": 1, "job": 2})
    x = {"pay": 2, "age": 4, "job": "nurse"}
    spent = (rows["pay"] - 2).abs() + (rows["age"] - 4).abs() + 2 * (rows["job"] != "nurse")
    for theta, target in ((0.1, "granted"), (0.5, "refused"), (0.3, "unsure")):
        rule = clvq.RelativeSimilarity(theta)
        explainer = clvq.Explainer(pipeline, cost, features=features, confidence=rule)
        cf = explainer.explain(x, target=target)
        good = similarity(model, model.distances(images), target) >= theta
        least = spent[good].min() if good.any() else np.inf
        assert cf.cost == least
        assert cf.status == ("optimal" if good.any() else "infeasible")
        assert explainer.verify(cf) == cf.lower_bound
        if good.any():
            found = pd.DataFrame([cf.x], columns=rows.columns)
            assert pipeline.predict(found)[0] == target
            assert model.nearest(pipeline[:-1].transform(found))[0] == cf.prototype


def test_the_prototype_of_a_sure_answer_is_its_nearest_whatever_its_levels() -> None:
    pipeline, rows, features = credit(is_local=False)
    model, images = clvq.as_prototype_model(pipeline[-1]), pipeline[:-1].transform(rows)
    explainer = clvq.Explainer(
        pipeline, clvq.Manhattan({"pay": 1, "age": 1, "job": 2}), features=features,
        confidence=clvq.RelativeSimilarity(0.2),
    )  # fmt: skip
    batch = explainer.explain_batch(rows.iloc[::40], target="granted")
    assert set(batch.status) <= {"optimal", "infeasible"}
    good = batch.status == "optimal"
    there = pipeline[:-1].transform(batch.X[good])
    assert good.any()
    assert (model.nearest(there) == batch.prototype[good]).all()
    assert images.shape[1] == there.shape[1]


def test_offsets_count_as_part_of_distances() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], offsets=[0.0, 1.0])
    explainer = clvq.Explainer(model, confidence=clvq.RelativeSimilarity(0.5))
    cf = explainer.explain([0.0], target="yes")
    # 3 ((y - 4)^2 + 1) = y^2, the first time from below
    assert cf.cost == pytest.approx((24 - np.sqrt(24**2 - 8 * 51)) / 4, rel=1e-4)
    assert cf.status == "optimal"


def test_where_nothing_is_similar_enough_that_is_proved() -> None:
    model, x = local(1)
    box = [clvq.Bounds(j, float(value) - 1e-3, float(value) + 1e-3) for j, value in enumerate(x)]
    explainer = clvq.Explainer(model, constraints=box, confidence=clvq.RelativeSimilarity(0.9))
    target = next(label for label in LABELS if label != model.predict([x])[0])
    cf = explainer.explain(x, target=target)
    assert cf.status == "infeasible"
    assert explainer.verify(cf) == np.inf
    assert set(cf.conflict) <= set(box)


def test_proofs_of_other_labels_prove_nothing() -> None:
    model, x = local(0)
    explainer = clvq.Explainer(model, confidence=clvq.RelativeSimilarity(0.4))
    cf = explainer.explain(x, target=["granted", "refused"])
    first, second = cf.certificate.parts
    swapped = replace(cf.certificate, parts=(second, first))
    assert explainer.verify(cf) == cf.lower_bound
    assert explainer.verify(replace(cf, certificate=swapped)) <= cf.lower_bound
    assert explainer.verify(replace(cf, certificate=first)) == 0.0


def test_time_is_shared_by_all_parts() -> None:
    model, x = local(3)
    explainer = clvq.Explainer(model, confidence=clvq.RelativeSimilarity(0.5), time_limit=0.0)
    for target in LABELS:
        cf = explainer.explain(x, target=target)
        assert cf.lower_bound <= cf.cost
        if cf.status.has_answer:
            assert keeps(model, 0.5, cf.x, target)


def test_cents_next_to_the_nearest_are_tried_where_those_miss_the_rule(tmp_path: Path) -> None:
    """Debt alone, cent by cent, is one way to an answer; none that is found costs more."""
    model, row = Path(__file__).parents[1] / "data" / "loans.clvq", tmp_path / "row.csv"
    row.write_text("income,age,cards,debt,job\n2487.0,39,4,2238.82,clerk\n")
    words = ["explain", str(model), str(row), "--target", "yes", "--confidence", "similarity=0.3"]
    free, frozen = (
        called(*words, *more, "--output", name, cwd=tmp_path)
        for name, more in (("free.csv", []), ("frozen.csv", ["--freeze", "age"]))
    )
    assert free.returncode == frozen.returncode == 0
    costs = [pd.read_csv(tmp_path / name) for name in ("free.csv", "frozen.csv")]
    assert costs[0]["status"][0] == "optimal"
    assert costs[0]["cost"][0] <= costs[1]["cost"][0] + 1e-9


@pytest.mark.parametrize("apart", [1e-6, 1e-8, 1e-10, 1e-12])
@pytest.mark.parametrize("theta", [0.1, 0.5, 0.9])
def test_rivals_next_to_a_prototype_leave_the_prototype(apart: float, theta: float) -> None:
    """What is left of the cell is a ball as small as the rivals are near: by hand."""
    prototypes = [[0.0, 0.0], [4.0, 0.0], [4.0 + apart, 0.0]]
    model = clvq.PrototypeModel(prototypes, ["a", "b", "c"])
    explainer = clvq.Explainer(model, confidence=clvq.RelativeSimilarity(theta))
    for target, own, other in (("b", 1, 2), ("c", 2, 1)):
        cf = explainer.explain([0.0, 1.0], target=target)
        assert cf.status in ("optimal", "feasible")
        assert (cf.prediction, cf.prototype) == (target, own)
        # The ball lies around w - s (other - w), and has this radius in units of what is between.
        reach = apart * ((1 - theta) / (2 * theta) + np.sqrt(1 - theta**2) / (2 * theta))
        least = 5.0 - 2.0 * reach - apart
        assert cf.lower_bound <= 5.0 + apart
        assert least <= cf.cost <= 5.0 + apart + 1e-9
        squares = [
            sum((Fraction(float(a)) - Fraction(b)) ** 2 for a, b in zip(cf.x, w, strict=True))
            for w in (prototypes[own], prototypes[other])
        ]
        exact = Fraction(theta)
        assert (1 + exact) * squares[0] <= (1 - exact) * squares[1]
        assert explainer.verify(cf) == cf.lower_bound
        held = clvq.Explainer(model, constraints=["x0 <= 3.5"], confidence=explainer.confidence)
        assert held.explain([0.0, 1.0], target=target).status in ("infeasible", "unknown")
