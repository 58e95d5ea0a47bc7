"""Room for noise where tables have levels: all levels times linear programs, fractions, attacks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq
from counterlvq.certificates import check_certificate as exactly
from tests.support.quick import seeds

JOBS, HOMES = ["clerk", "nurse", "smith"], ["own", "rent"]
ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
DUALS = {"l1": np.inf, "l2": 2, "linf": 1}
LABELS = ["granted", "refused", "unsure"]


def loans(seed: int) -> tuple[Any, pd.DataFrame]:
    """A pipeline of two numbers of ugly scales and two columns of levels, and its table."""
    rng = np.random.default_rng([5, seed])
    table = pd.DataFrame(
        {
            "pay": rng.normal(size=150) * 1e4 + 3e4,
            "job": rng.choice(JOBS, 150),
            "rate": rng.normal(size=150) * 1e-3,
            "home": rng.choice(HOMES, 150),
        }
    )
    score = (table["pay"] - 3e4) / 1e4 - 1e3 * table["rate"] + 2 * (table["job"] == "clerk")
    score += (table["home"] == "own") + rng.normal(size=150)
    y = np.where(score > 1, "granted", np.where(table["pay"] > 3e4, "unsure", "refused"))
    steps = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["pay", "rate"]),
            ("levels", OneHotEncoder(sparse_output=False), ["job", "home"]),
        ]
    )
    last = clvq.GMLVQ(prototypes_per_class=2, random_state=seed, tol=1e-2, max_iter=20)
    return make_pipeline(steps, last).fit(table, y), table


UNITS = np.array([1e4, 1e-3])
NOISE = {"pay": 1e-4, "rate": 1e3}
PRICES = {"pay": 1e-4, "job": 0.7, "rate": 1e3, "home": 0.4}


def least_cost(
    pipeline: Any, row: pd.Series, target: str, noise: clvq.Noise, held: bool = False
) -> float:
    """Cost of the closest answer: one linear program for each prototype and all levels."""
    model = clvq.as_prototype_model(pipeline[-1])
    F, start = model.shared_factor, np.array([row["pay"], row["rate"]])
    Z = model.prototypes @ F.T

    def seen(pay: float, rate: float, job: str, home: str) -> np.ndarray:
        one = pd.DataFrame([[pay, job, rate, home]], columns=list(PRICES))
        return np.asarray(F @ pipeline[:-1].transform(one)[0])

    best = np.inf
    for job, home in product(JOBS, HOMES):
        price = PRICES["job"] * (job != row["job"]) + PRICES["home"] * (home != row["home"])
        if held and price:
            continue
        here = seen(*start, job, home)
        steps = [seen(*(start + d), job, home) - here for d in np.diag(UNITS)]
        for i in np.flatnonzero(model.labels == target):
            rivals = np.flatnonzero(model.labels != target)
            A = 2 * (Z[rivals] - Z[i]) @ np.array(steps).T
            b = (Z[rivals] ** 2).sum(1) - (Z[i] ** 2).sum() - 2 * (Z[rivals] - Z[i]) @ here
            b -= noise.radius * np.linalg.norm(A, ord=DUALS[noise.norm], axis=1)
            found = linprog(np.ones(4), np.c_[A, -A], b)
            if found.status == 0:
                best = min(best, price + found.fun)
    return best


def attacked(pipeline: Any, values: Sequence[Any], noise: clvq.Noise) -> np.ndarray:
    """Labels around a row: at random, and at the corners and ends of the ball."""
    rng = np.random.default_rng(3)
    moves = np.r_[rng.normal(size=(2000, 2)), np.eye(2), -np.eye(2),
                  list(product([-1.0, 1.0], repeat=2))]  # fmt: skip
    moves *= noise.radius / np.linalg.norm(moves, ord=ORDERS[noise.norm], axis=1, keepdims=True)
    around = pd.DataFrame([list(values)] * len(moves), columns=list(PRICES))
    around["pay"] += moves[:, 0] * UNITS[0] * (1 - 1e-10)
    around["rate"] += moves[:, 1] * UNITS[1] * (1 - 1e-10)
    return np.asarray(pipeline.predict(around))


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("seed", seeds(3, quick=1))
def test_levels_are_tried_and_noise_leaves_them(seed: int, norm: str) -> None:
    pipeline, table = loans(seed)
    noise = clvq.Noise(0.2, norm, weights=[1e-4, 1.0, 1e3, 1.0])
    explainer = clvq.Explainer(pipeline, clvq.Manhattan(PRICES), confidence=noise)
    found = 0
    for at, target in product((0, 7, 40), LABELS):
        row = table.iloc[at]
        cf = explainer.explain(row, target=target)
        least = least_cost(pipeline, row, target, noise)
        assert explainer.verify(cf) == cf.lower_bound <= cf.cost
        if np.isinf(least):
            assert cf.status == "infeasible"
            continue
        found += 1
        assert (cf.status, cf.cost) == ("optimal", pytest.approx(least, rel=1e-6, abs=1e-7))
        shown = list(cf.x)
        shown[0], shown[2] = cf.shown.values[[0, 2]]
        for values in (cf.x, shown):
            assert (attacked(pipeline, values, noise) == target).all()
    assert found


def test_frozen_levels_stay() -> None:
    pipeline, table = loans(1)
    noise = clvq.Noise(0.3, "linf", weights=[1e-4, 1.0, 1e3, 1.0])
    held = [clvq.Freeze("job", "home")]
    explainer = clvq.Explainer(pipeline, clvq.Manhattan(PRICES), held, confidence=noise)
    row = table.iloc[3]
    for target in LABELS:
        cf, least = explainer.explain(row, target=target), least_cost(
            pipeline, row, target, noise, held=True
        )  # fmt: skip
        assert cf.cost == pytest.approx(least, rel=1e-6, abs=1e-7)
        assert cf.status == ("optimal" if np.isfinite(least) else "infeasible")


def test_batches_say_the_same() -> None:
    pipeline, table = loans(0)
    noise = clvq.Noise(0.2, weights=[1e-4, 1.0, 1e3, 1.0])
    explainer = clvq.Explainer(pipeline, clvq.Manhattan(PRICES), confidence=noise)
    batch = explainer.explain_batch(table.iloc[:5], target="granted")
    for i in range(5):
        cf = explainer.explain(table.iloc[i], target="granted")
        assert (batch[i].status, batch[i].cost) == (cf.status, cf.cost)
        assert explainer.verify(batch[i]) == cf.lower_bound


# --- all numbers whole: decided by fractions ------------------------------------------------------


def drawn(seed: int) -> tuple[clvq.PrototypeModel, clvq.Features, clvq.Noise, np.ndarray]:
    """A model of two whole numbers and a column whose three numbers are levels; ties abound."""
    rng = np.random.default_rng([17, seed])
    every = [[a, b, c] for a in range(-3, 4) for b in range(-3, 4) for c in range(3)]
    points = rng.permutation(every)[:4].astype(float)
    model = clvq.PrototypeModel(points, [0, 1, 0, 1], [1.0, 1.0, 2.0], ["a", "b", "c"])
    features = clvq.Features(
        [clvq.Feature(name, "whole", lower=-5, upper=5) for name in "ab"]
        + [clvq.Feature("c", levels=[0.0, 1.0, 2.0])]
    )
    noise = clvq.Noise(float(rng.choice([0.5, 1.0, 1.5])), str(rng.choice(list(DUALS))))
    return model, features, noise, points


def keeps(model: clvq.PrototypeModel, y: Sequence[float], i: int, noise: clvq.Noise) -> bool:
    """By the definition: noise moves the first two numbers, and every lead survives it."""
    point = np.array(y, dtype=float)
    for k in np.flatnonzero(model.labels != model.labels[i]).tolist():
        lead = model.exact_distance(point, k) - model.exact_distance(point, i)
        slopes = [2 * abs(Fraction(v)) for v in model.prototypes[k, :2] - model.prototypes[i, :2]]
        radius = Fraction(noise.radius)
        if noise.norm == "l2":
            enough = lead >= 0 and lead**2 >= radius**2 * sum(slope**2 for slope in slopes)
        else:
            enough = lead >= radius * (max(slopes) if noise.norm == "l1" else sum(slopes))
        if not enough:
            return False
    return True


@pytest.mark.parametrize("seed", seeds(60, quick=10))
def test_room_for_noise_by_trying_all(seed: int) -> None:
    model, features, noise, points = drawn(seed)
    explainer = clvq.Explainer(
        model, clvq.Manhattan([1.0, 1.0, 1.5]), features=features, confidence=noise
    )
    x = points[0]
    cf = explainer.explain(x, target=1)
    able = [
        abs(a - x[0]) + abs(b - x[1]) + 1.5 * abs(c - x[2])  # levels that are numbers
        for a, b, c in product(range(-5, 6), range(-5, 6), range(3))
        if model.predict([[a, b, c]])[0] == 1
        and any(keeps(model, [a, b, c], i, noise) for i in (1, 3))
    ]
    assert cf.status == ("optimal" if able else "infeasible")
    assert cf.cost == min(able, default=np.inf)
    assert explainer.verify(cf) == cf.lower_bound <= cf.cost


# --- files ----------------------------------------------------------------------------------------


def judged(path: Path) -> str:
    out: list[str] = []
    exactly.main([str(path)], out.append)
    return out[0]


@pytest.mark.parametrize("seed", seeds(20, quick=4))
def test_the_exact_checker_accepts_noise_with_levels(seed: int, tmp_path: Path) -> None:
    model, features, noise, points = drawn(seed)
    explainer = clvq.Explainer(model, features=features, confidence=noise)
    cf = explainer.explain(points[0], target=1)
    path = tmp_path / "noise.jsonl"
    clvq.save_certificate(cf, path, explainer)
    assert judged(path).startswith("VERIFIED"), judged(path)
    told = json.loads(path.read_text().splitlines()[1])["answer"]
    assert told["status"] == cf.status


def test_files_of_pipelines_are_accepted_and_lies_are_not(tmp_path: Path) -> None:
    pipeline, table = loans(0)
    noise = clvq.Noise(0.2, "l2", weights=[1e-4, 1.0, 1e3, 1.0])
    explainer = clvq.Explainer(pipeline, clvq.Manhattan(PRICES), confidence=noise)
    cf = next(
        cf
        for _, row in table.iterrows()
        if (cf := explainer.explain(row, target="granted")).cost > 0
    )
    path = tmp_path / "noise.jsonl"
    clvq.save_certificate(cf, path, explainer)
    assert judged(path).startswith("VERIFIED"), judged(path)
    header, line = map(json.loads, path.read_text().splitlines())
    header["question"]["confidence"]["radius"] *= 1.01
    stated = (exactly.parsed(json.dumps(header[key])) for key in ("model", "question"))
    pairs = zip(("model", "question"), stated, strict=True)
    line["hashes"] = {key: exactly.fingerprint(value) for key, value in pairs}
    path.write_text("\n".join(map(json.dumps, (header, line))))
    assert "does not have the confidence" in judged(path)


def test_other_costs_and_few_changes() -> None:
    model, features, noise, points = drawn(2)
    every = list(product(range(-5, 6), range(-5, 6), range(3)))
    good = np.array([
        y for y in every
        if model.predict([y])[0] == 1 and any(keeps(model, y, i, noise) for i in (1, 3))
    ], dtype=float)  # fmt: skip
    x = points[0]
    away = np.abs(good - x)
    least = {
        clvq.Chebyshev(): (away.max(axis=1).min(), ()),
        clvq.Manhattan(): (
            away[(away > 0).sum(axis=1) <= 2].sum(axis=1).min(initial=np.inf),
            (clvq.AtMost(2),),
        ),
    }
    for cost, (expected, rules) in least.items():
        explainer = clvq.Explainer(model, cost, rules, features=features, confidence=noise)
        assert explainer.explain(x, target=1).cost == expected


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("by_name", [False, True])
def test_columns_that_are_known_exactly_are_left_alone(norm, by_name, tmp_path: Path) -> None:
    """Beside a linear program in which the worst point of the ball of the other two is written."""
    rng, radius, sizes = np.random.default_rng(8), 0.7, np.array([2.0, 0.5])
    prototypes, labels = rng.normal(size=(5, 3)) * 3.0, [0, 1, 0, 1, 2]
    model = clvq.PrototypeModel(prototypes, labels)
    weights = {"x0": 2.0, "x1": np.inf, "x2": 0.5} if by_name else [2.0, np.inf, 0.5]
    explainer = clvq.Explainer(model, confidence=clvq.Noise(radius, norm, weights))
    x = prototypes[0] + 0.1
    cf = explainer.explain(x, target=1)
    costs = []
    for i in (1, 3):
        rows, right = [], []
        for k in (0, 2, 4):
            normal = 2.0 * (prototypes[k] - prototypes[i])
            acting = np.abs(normal[[0, 2]]) / sizes
            worst = {"l1": acting.max(), "l2": np.linalg.norm(acting), "linf": acting.sum()}[norm]
            rows.append(np.concatenate([normal, -normal]))
            ends = prototypes[k] @ prototypes[k] - prototypes[i] @ prototypes[i]
            right.append(ends - radius * worst - normal @ x)
        found = linprog(np.ones(6), np.array(rows), right, bounds=[(0, None)] * 6)
        costs.append(found.fun if found.status == 0 else np.inf)
    assert (cf.status, cf.cost) == ("optimal", pytest.approx(min(costs), rel=1e-6))
    path = tmp_path / "known.jsonl"
    clvq.save_certificate(cf, path, explainer)
    assert judged(path).startswith("VERIFIED"), judged(path)
    assert explainer.verify(cf) == cf.lower_bound
    header, line = map(json.loads, path.read_text().splitlines())
    assert header["question"]["confidence"]["weights"] == [2.0, None, 0.5]
    header["question"]["confidence"]["weights"][1] = 0.01  # off by 70 in that column, too
    stated = (exactly.parsed(json.dumps(header[key])) for key in ("model", "question"))
    pairs = zip(("model", "question"), stated, strict=True)
    line["hashes"] = {key: exactly.fingerprint(value) for key, value in pairs}
    path.write_text("\n".join(map(json.dumps, (header, line))))
    assert "does not have the confidence" in judged(path)


def test_a_known_column_beside_levels() -> None:
    """As of a model of rows in which that column is moved by nothing: corners of the box."""
    rng = np.random.default_rng(4)
    model = clvq.PrototypeModel(rng.normal(size=(4, 3)), [0, 1, 0, 1])
    features = clvq.Features(["x0", "x1", clvq.Feature("x2", levels=[0.0, 1.0])])
    noise = clvq.Noise(0.3, "linf", {"x1": float("inf")})
    explainer = clvq.Explainer(model, features=features, confidence=noise)
    for x in rng.normal(size=(6, 3)):
        x[2] = 0.0
        cf = explainer.explain(x, target=1)
        assert cf.status == "optimal"
        off = [[0.3 * (1 - 1e-9), 0, 0], [-0.3 * (1 - 1e-9), 0, 0]]
        assert (model.predict(np.asarray(cf.x, dtype=float) + off) == 1).all()


def test_what_noise_cannot_act_on_is_said() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [1.0, 1.0]], [0, 1])
    levels = [clvq.Feature(f"x{j}", levels=[0.0, 1.0]) for j in range(2)]
    with pytest.raises(clvq.NotSupportedError, match=r"Noise is for columns of numbers"):
        clvq.Explainer(model, features=clvq.Features(levels), confidence=clvq.Noise(0.1))
    mixed = clvq.Features(["x0", levels[1]])
    with pytest.raises(clvq.InvalidInputError, match=r"weights has 1 entries; expected 2"):
        clvq.Explainer(model, features=mixed, confidence=clvq.Noise(0.1, weights=[1.0]))
    with pytest.raises(clvq.InvalidInputError, match=r"weights has 'x1', which has levels"):
        clvq.Explainer(model, features=mixed, confidence=clvq.Noise(0.1, weights={"x1": 2.0}))
    for weights in ({"x0": np.inf}, [np.inf, 1.0]):
        with pytest.raises(clvq.InvalidInputError, match=r"infinite for every column of numbers"):
            clvq.Explainer(model, features=mixed, confidence=clvq.Noise(0.1, weights=weights))
    for bad in ({"x0": -np.inf}, {"x0": np.nan}, [np.nan, 1.0], [-np.inf, 1.0], [0.0, 1.0], ["a"]):
        with pytest.raises(clvq.InvalidInputError, match="Noise: weights"):
            clvq.Noise(0.1, weights=bad)


def test_unit_of_noise_is_text() -> None:
    with pytest.raises(clvq.InvalidInputError, match=r"unit is 3; expected text, such as 'euros'"):
        clvq.Noise(0.5, unit=3)
