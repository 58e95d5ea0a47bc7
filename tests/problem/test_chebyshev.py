"""The largest weighted change as a cost, against plain programs, grids and enumeration."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.compose import ColumnTransformer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import counterlvq as clvq
from counterlvq import solvers
from tests.support.quick import seeds

LABELS = np.array(["granted", "refused", "unsure"])


def drawn(seed: int, metric: str, d: int = 4) -> tuple[clvq.PrototypeModel, np.ndarray, Any]:
    """Prototypes of three labels around a far point, at ugly scales; rows; weights."""
    rng = np.random.default_rng([seed, len(metric)])
    scale = 10.0 ** rng.integers(-3, 4, size=d)
    omegas = {
        "diagonal": rng.normal(size=d) / scale,
        "shared": rng.normal(size=(d, d)) / scale,
        "low rank": rng.normal(size=(1, d)) / scale,
    }
    points = (rng.normal(size=(6, d)) + 3.0) * scale
    model = clvq.PrototypeModel(points, np.repeat(LABELS, 2), omegas.get(metric))
    return model, (rng.normal(size=(2, d)) + 3.0) * scale, rng.uniform(0.2, 3.0, d) / scale


def least_height(
    model: clvq.PrototypeModel, x: np.ndarray, target: str, w: np.ndarray, upper: np.ndarray,
    lower: float | np.ndarray = -np.inf,
) -> float:  # fmt: skip
    """One linear program for each cell: the variables are the row, and the largest change."""
    P, d, best = model.prototypes, x.size, np.inf
    F = np.eye(d) if model.omegas is None else np.asarray(model.omegas)
    F = np.diag(F) if F.ndim == 1 else F
    Z = P @ F.T
    rivals = np.flatnonzero(model.labels != target)
    for i in np.flatnonzero(model.labels == target):
        normals = 2.0 * (Z[rivals] - Z[i]) @ F / w  # in units of one over the weights
        rights = (Z[rivals] ** 2).sum(1) - (Z[i] ** 2).sum() - normals @ (w * x)
        sizes = np.abs(normals).max(axis=1)
        rows = [np.c_[normals / sizes[:, None], np.zeros(len(rivals))]]
        rows += [np.c_[sign * np.eye(d), -np.ones(d)] for sign in (1.0, -1.0)]
        rights = np.r_[rights / sizes, np.zeros(2 * d)]
        ends = [(low, high) for low, high in zip(w * (lower - x), w * (upper - x), strict=True)]
        found = linprog(np.eye(d + 1)[d], np.vstack(rows), rights, bounds=[*ends, (0, None)])
        best = min(best, float(found.fun) if found.status == 0 else np.inf)
    return best


@pytest.mark.parametrize("metric", ["plain", "diagonal", "shared", "low rank"])
@pytest.mark.parametrize("seed", seeds(5, 1))
def test_answers_are_those_of_plain_programs(metric: str, seed: int) -> None:
    model, rows, w = drawn(seed, metric)
    upper = rows.max(axis=0)
    bounds = [clvq.Bounds(j, upper=upper[j]) for j in range(rows.shape[1])]
    explainer = clvq.Explainer(model, clvq.Chebyshev(w), bounds)
    for target in LABELS:
        batch = explainer.explain_batch(rows, target=target)
        for n, x in enumerate(rows):
            cf = explainer.explain(x, target=target)
            least = 0.0
            if cf.original_prediction != target:
                least = least_height(model, x, target, w, upper)
            assert (cf.cost, cf.status) == (batch.cost[n], batch.status[n])
            if least == np.inf:
                assert cf.status == "infeasible"
                assert explainer.verify(cf) == np.inf
                assert set(cf.conflict) <= set(bounds)
                continue
            assert cf.status == "optimal"
            assert model.predict([cf.x])[0] == target
            assert (cf.x <= upper).all()
            assert cf.cost == explainer.cost.value(cf.delta)
            assert cf.cost == pytest.approx(least, rel=1e-6)
            assert cf.lower_bound <= least * (1 + 1e-9)
            assert explainer.verify(cf) == cf.lower_bound


@pytest.mark.parametrize("held", [False, True], ids=["free", "held"])
def test_far_cells_are_left_out_with_a_proof(held: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 40 prototypes is a cell; few of them are worth a linear program."""
    rng = np.random.default_rng(3)
    model = clvq.PrototypeModel(rng.normal(size=(40, 3)), np.resize(LABELS, 40))
    w, upper = np.array([1.0, 0.2, 3.0]), np.full(3, 2.0)
    rules: list[Any] = [clvq.Bounds(j, upper=2.0) for j in range(3)]
    rules += [clvq.Freeze(1)] if held else []
    asked = clvq.Explainer(model, clvq.Chebyshev(w), rules)
    programs: list[Any] = []
    real = solvers.select
    monkeypatch.setattr(solvers, "select", lambda program: programs.append(0) or real(program))
    cells = 0
    for x in rng.normal(size=(6, 3)).clip(max=1.5):
        is_held = np.array([False, held, False])
        low, high = np.where(is_held, x, -np.inf), np.where(is_held, x, upper)
        for target in set(LABELS.tolist()) - set(model.predict([x]).tolist()):
            cf = asked.explain(x, target=target)
            cells += np.count_nonzero(model.labels == target)
            expected = least_height(model, x, target, w, high, low)
            assert cf.cost == pytest.approx(expected, rel=1e-6)
            assert cf.status == "optimal"
            assert asked.verify(cf) == cf.lower_bound
    # Where a feature is held many cells are out of reach, which one rival does not show.
    assert held or 0 < len(programs) < cells / 2


def test_local_metrics_by_a_grid() -> None:
    rng = np.random.default_rng(4)
    omegas = rng.normal(size=(6, 2, 2))
    model = clvq.PrototypeModel(rng.normal(size=(6, 2)), np.repeat(LABELS, 2), list(omegas))
    explainer = clvq.Explainer(model, clvq.Chebyshev([1.0, 2.0]))
    x = rng.normal(size=2)
    steps = np.linspace(-3.0, 3.0, 1201)
    moves = np.stack(np.meshgrid(steps, steps / 2.0), axis=-1).reshape(-1, 2)
    costs, said = np.abs(moves * [1.0, 2.0]).max(axis=1), model.predict(x + moves)
    for target in LABELS:
        cf = explainer.explain(x, target=target)
        least = costs[said == target].min(initial=np.inf)
        assert cf.status == "optimal"
        assert least - 0.005 <= cf.cost <= least
        assert explainer.verify(cf) == cf.lower_bound or cf.cost == 0.0


def test_whole_numbers_and_levels_by_trying_all() -> None:
    rng = np.random.default_rng(2)
    model = clvq.PrototypeModel(
        rng.normal(size=(4, 3)) * 3, [0, 1, 0, 1], None, ["age", "job", "pay"]
    )
    numbers = clvq.Features(
        [
            clvq.Feature("age", "whole"),
            clvq.Feature("job", levels=[0, 1, 2]),
            clvq.Feature("pay", decimals=1),
        ]
    )
    cost = clvq.Chebyshev(
        [1.0, 0.7, 0.9], switches={"job": {(0, 1): 0.4, (0, 2): 2.5, (1, 2): 1.0}}
    )
    explainer = clvq.Explainer(model, cost, features=numbers)
    price = {(0, 1): 0.4, (0, 2): 2.5, (1, 2): 1.0}
    for x in ([1, 0, 0.5], [-2, 2, 1.1]):
        now, best = model.predict([x])[0], np.inf
        for age, job, pay in product(range(-8, 9), range(3), np.arange(-80, 81) / 10.0):
            switch = 0.0 if job == x[1] else price[min(job, x[1]), max(job, x[1])]
            cost_of = max(abs(age - x[0]), switch, 0.9 * abs(pay - x[2]))
            if cost_of < best and model.predict([[age, job, pay]])[0] != now:
                best = cost_of
        cf = explainer.explain(x)
        assert cf.status == "optimal"
        assert cf.cost == pytest.approx(best, abs=1e-9)
        assert explainer.verify(cf) == cf.lower_bound


@pytest.mark.slow
def test_grids_under_local_metrics_are_proved_by_trying_all() -> None:
    rng = np.random.default_rng(1)
    prototypes = rng.uniform(-1, 7, size=(4, 3))
    metrics = rng.normal(size=(4, 3, 3)) + np.eye(3)
    model = clvq.PrototypeModel(prototypes, ["a", "b", "c", "c"], metrics, ["age", "job", "pay"])
    numbers = clvq.Features(
        [
            clvq.Feature("age", "whole", lower=0, upper=6),
            clvq.Feature("job", levels=[0, 1, 2]),
            clvq.Feature("pay", "whole", lower=0, upper=5),
        ]
    )
    price = {(0, 1): 0.97, (0, 2): 0.22, (1, 2): 2.01}
    explainer = clvq.Explainer(
        model, clvq.Chebyshev([2.61, 1.0, 1.52], switches={"job": price}), features=numbers
    )
    rows = np.array(list(product(range(7), range(3), range(6))), dtype=float)
    told = model.predict(rows)
    for target, x in product("abc", rows[[45, 79, 100, 118]]):
        jobs = [0.0 if job == x[1] else price[min(job, x[1]), max(job, x[1])] for job in rows[:, 1]]
        moves = np.abs(rows - x) * [2.61, 0.0, 1.52]
        costs = np.maximum(moves.max(axis=1), jobs)[told == target]
        cf = explainer.explain(x, target=target)
        assert cf.status == ("optimal" if costs.size else "infeasible")
        assert cf.cost == pytest.approx(costs.min(initial=np.inf), abs=1e-9)


def test_certificate_files_have_one_more_column(tmp_path: Path) -> None:
    model, rows, w = drawn(0, "shared", 3)
    explainer = clvq.Explainer(model, clvq.Chebyshev(w), [clvq.AtMost(2), clvq.Freeze(0)])
    plain = clvq.Explainer(model, clvq.Chebyshev(w))
    for asked in (explainer, plain):
        file = tmp_path / "answers.jsonl"
        batch = asked.explain_batch(rows)
        batch.save_certificates(file)
        found = clvq.verify_certificates(file)
        assert [verdict.verified for verdict in found] == [True, True]
        for n, verdict in enumerate(found):
            assert verdict.cost == pytest.approx(batch.cost[n], rel=1e-12)
            assert verdict.bound == pytest.approx(batch.lower_bound[n], rel=1e-9)
    jobs = clvq.Features(["x0", "x1", clvq.Feature("x2", levels=[0, 1])])
    asked = clvq.Explainer(model, clvq.Chebyshev(), features=jobs)
    with pytest.raises(clvq.NotSupportedError, match="no kind for the largest change"):
        clvq.save_certificate(asked.explain([3.0, 3.0, 0]), tmp_path / "levels.jsonl", asked)


def test_columns_behind_a_pipeline_and_through_a_function() -> None:
    rng = np.random.default_rng(5)
    X = np.exp(rng.normal(size=(80, 2))) * [900.0, 3.0]
    y = (np.log(X) @ [1.0, -1.0] > 5.5).astype(int)
    for first, seen in ((StandardScaler(), np.asarray), (FunctionTransformer(np.log1p), np.log1p)):
        model = make_pipeline(first, clvq.GLVQ(random_state=0)).fit(X, y)
        explainer = clvq.Explainer(model, clvq.Chebyshev([0.01, 1.0]))
        cf = explainer.explain(X[0])
        assert cf.status == "optimal"
        assert model.predict([cf.x])[0] != model.predict(X[:1])[0]
        moved = np.abs(seen(cf.x) - seen(X[0])) * [0.01, 1.0]
        assert cf.cost == pytest.approx(moved.max(), rel=1e-9)
        assert explainer.verify(cf) == cf.lower_bound
        corners = np.array(list(product([-1.0, 0.0, 1.0], repeat=2))) * 0.999 * cf.cost / [0.01, 1]
        near = seen(X[0]) + corners
        rows = near if seen is np.asarray else np.expm1(near)
        assert (model.predict(rows) == model.predict(X[:1])[0]).all()


def test_what_is_wrong_is_said() -> None:
    model, rows, _ = drawn(1, "plain", 2)
    with pytest.raises(clvq.InvalidInputError, match="Chebyshev has 3 weights; expected 2"):
        clvq.Explainer(model, clvq.Chebyshev([1.0, 1.0, 1.0]))
    with pytest.raises(clvq.InvalidInputError, match=r"weights\[1\] is 0; expected a positive"):
        clvq.Chebyshev([1.0, 0.0])
    with pytest.raises(clvq.InvalidInputError, match="with this cost nearly every feature moves"):
        clvq.Explainer(model, clvq.Chebyshev()).alternatives(rows[0])
    named = clvq.Chebyshev({"x1": 2.0}, unit="metres")
    assert repr(named) == "Chebyshev({'x1': 2.0}, unit='metres')"
    assert clvq.Explainer(model, named).cost.value([1.0, 1.0]) == 2.0


class _Own(clvq.Constraint):
    """A constraint of the user's that states a row of as many columns as there are."""

    def conditions(self, features: clvq.Features) -> Any:
        return clvq.Linear(np.ones(len(features)), "<=", 3.4).conditions(features)


@pytest.mark.parametrize(
    ("stated", "named"),
    [
        (clvq.Linear([1.0, 1.0, 1.0], "<=", 3.4), "x0 + x1 + x2 <= 3.4"),
        (_Own(), "x0 + x1 + x2 <= 3.4"),
        (clvq.Linear({-1: 1.0, 0: 1.0}, "<=", 1.7), "x2 + x0 <= 1.7"),
        (
            clvq.Quadratic(np.eye(3), 4.3, [0.0, 0.0, 2.0]),
            clvq.Quadratic(np.eye(3), 4.3, [0.0, 0.0, 2.0], features=["x0", "x1", "x2"]),
        ),
        (clvq.Freeze(-1), clvq.Freeze("x2")),
        (clvq.Bounds(-1, upper=0.1), "x2 <= 0.1"),
        (clvq.MinChange(-1, by=2.0), "if x2 changes then by at least 2"),
        (clvq.AtMost(1, -1, -2), clvq.AtMost(1, "x2", "x1")),
        (
            clvq.If(clvq.Bounds(-1, lower=0.5), clvq.Linear([1.0, 0.0, 0.0], ">=", 3.0)),
            "if x2 >= 0.5 then x0 >= 3",
        ),
    ],
)
def test_positions_and_arrays_mean_the_columns_of_the_table(
    stated: Any, named: Any, tmp_path: Path
) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0, 0.0], [4.0, 1.0, 1.0]], ["a", "b"])
    free = clvq.Explainer(model, clvq.Chebyshev()).explain([0.0, 0.0, 0.0], target="b")
    answers = []
    for item in (stated, named):
        asked = clvq.Explainer(model, clvq.Chebyshev(), [item])
        cf = asked.explain([0.0, 0.0, 0.0], target="b")
        assert cf.status == "optimal"
        assert asked.verify(cf) == cf.lower_bound
        clvq.save_certificate(cf, tmp_path / "answer.jsonl", asked)
        found = clvq.verify_certificates(tmp_path / "answer.jsonl")
        assert [verdict.verified for verdict in found] == [True]
        answers.append(cf)
    assert answers[0].cost == pytest.approx(answers[1].cost, rel=1e-9)
    assert answers[0].cost > 1.001 * free.cost  # the constraint had something to say


def test_arrays_clash_in_the_words_of_the_user() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["a", "b"])
    stated = clvq.Linear([1.0, 1.0], "<=", 0.5)
    bounds = clvq.Bounds(-1, lower=0.0)
    asked = clvq.Explainer(model, clvq.Chebyshev(), [stated, bounds])
    cf = asked.explain([0.0, 0.0], target="b")
    assert cf.status == "infeasible"
    assert set(cf.conflict) == {stated, bounds}
    with pytest.raises(clvq.InvalidInputError, match="3 values; expected 2, one per feature"):
        clvq.Explainer(model, clvq.Chebyshev(), [clvq.Linear([1.0, 1.0, 1.0], "<=", 0.5)])


def test_positions_count_columns_that_the_model_does_not_see() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3)) + np.where(np.arange(60)[:, None] % 2, 2.0, 0.0)
    chosen = ColumnTransformer([("seen", StandardScaler(), [1, 2])])
    model = make_pipeline(chosen, clvq.GLVQ(random_state=0)).fit(X, np.arange(60) % 2)
    for item in (clvq.Freeze(1), clvq.MaxChange(1, by=0.0), clvq.AtMost(0, 1)):
        cf = clvq.Explainer(model, clvq.Chebyshev(), [item]).explain(X[0])
        assert cf.status == "optimal"
        assert cf.x[1] == X[0, 1]
        assert cf.x[2] != X[0, 2]


@pytest.mark.parametrize("size", [1e-50, 1e-15, 1e15, 1e50])
def test_what_costs_are_counted_in_does_not_matter(size: float) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
    cf = clvq.Explainer(model, clvq.Chebyshev([size, size])).explain([0.0, 0.0], target="yes")
    assert cf.status == "optimal"
    assert cf.cost == pytest.approx(5.0 / 3.0 * size, rel=1e-6, abs=0.0)


def test_another_level_is_one_of_the_changes() -> None:
    """It costs nothing more where a number goes as far, and counts alone where none does."""
    table = [clvq.Feature("size"), clvq.Feature("kind", levels=["a", "b"])]
    encoder = ColumnTransformer([("n", "passthrough", [0]), ("k", OneHotEncoder(), [1])])
    rows = pd.DataFrame({"size": [0.0, 8.0], "kind": ["a", "b"]})
    pipeline = make_pipeline(encoder, KNeighborsClassifier(1)).fit(rows, ["no", "yes"])
    for price in (2.0, 5.0):
        cost = clvq.Chebyshev([1.0, 1.0], switches={"kind": price})
        cf = clvq.Explainer(pipeline, cost, features=clvq.Features(table)).explain(
            rows[:1].assign(size=1.0), target="yes"
        )
        # With the other level 3.875 is enough for the size, without it 4.125.
        assert cf.cost == pytest.approx(2.875 if price == 2.0 else 3.125, rel=1e-6)
