"""Whole numbers, decimals and levels exactly: against enumeration, ties, lies and tampering."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import Generator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import counterlvq as clvq
from counterlvq import Feature, Features, solvers
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.boxes import BoxCertificate, BoxTree
from counterlvq.lvq import GLVQ
from counterlvq.programs.nonconvex import Box, LiftedMultipliers, NonconvexProgram
from counterlvq.programs.program import Multipliers, Program
from counterlvq.search import branch_and_bound, mixed_integer, strategies
from counterlvq.solvers import Outcome, Solution
from counterlvq.solvers.semidefinite import Relaxed
from tests.support.mixed_questions import Mixed, Prices, Row, assert_exact, bare, possible
from tests.support.quick import seeds, some

Array = np.ndarray

# --- random models ------------------------------------------------------------------------------


def levels_column(rng: Generator, k: int) -> Feature:
    if rng.random() < 0.3:
        return Feature(f"b{k}", "boolean")
    count = int(rng.integers(1, 4))
    return Feature(f"c{k}", levels=rng.choice([0, 1, 2, 3, 5, -1], count, replace=False).tolist())


def grid_column(rng: Generator, k: int) -> Feature:
    kinds = [
        Feature(f"n{k}", "whole", lower=-3, upper=3),
        Feature(f"s{k}", step=5, lower=-12, upper=11),
        Feature(f"d{k}", decimals=1, lower=-0.5, upper=0.5),
    ]
    return kinds[rng.choice(3, p=[0.5, 0.25, 0.25])]


def drawn_prices(rng: Generator, columns: list[Feature]) -> Prices:
    """Per feature, per pair of levels, in one direction only or dearer in one than in the other."""
    switches: dict[str, Any] = {}
    for column in columns:
        if len(column.levels) > 1 and rng.random() < 0.8:
            pairs = [(a, b) for a in column.levels for b in column.levels if a != b]
            each = {pair: float(rng.uniform(0.1, 4)) for pair in pairs if rng.random() < 0.6}
            switches[column.name] = each if rng.random() < 0.5 else float(rng.uniform(0.1, 4))
    count = sum(column.is_number for column in columns)
    kind = rng.choice(["absolute", "squared", "correlated"], p=[0.5, 0.25, 0.25])
    if kind == "absolute" or not count:
        return Prices({c.name: float(rng.uniform(0.2, 3)) for c in columns}, None, switches)
    F = rng.normal(size=(count, count)) + np.eye(count)
    matrix = np.eye(count) if kind == "squared" else F.T @ F + 0.1 * np.eye(count)
    return Prices({}, matrix, switches)


def drawn(seed: int, real: int, most: int = 2) -> tuple[Mixed, Prices, Row]:
    """A model with a shared metric; without real columns its numbers are whole, for ties."""
    rng = np.random.default_rng([seed, real])
    columns = [levels_column(rng, k) for k in range(rng.integers(0, most + 1))]
    is_stuck = all(len(column.levels) < 2 for column in columns) and not real
    columns += [grid_column(rng, k) for k in range(rng.integers(is_stuck, most + 1))]
    for k in range(real):
        ends = {"lower": -4.0, "upper": 4.0} if rng.random() < 0.3 else {}
        columns.append(Feature(f"u{k}", **ends))
    columns = [columns[k] for k in rng.permutation(len(columns))]
    count = int(rng.integers(3, 7))
    unit = [5.0 if c.step == 5 else 0.4 if c.decimals else 2.0 for c in columns]
    W = rng.normal(size=(count, len(columns))) * unit
    W = W if real else np.rint(W)
    labels = rng.permutation(["no", "yes", "maybe", *rng.choice(["no", "yes"], count - 3)])
    omegas = None
    if rng.random() < 0.5:
        shape = int(rng.integers(1, len(columns) + 1)), len(columns)
        omegas = rng.normal(size=shape) if real else rng.integers(-2, 3, shape).astype(float)
    x: Row = {c.name: float(2 * rng.normal()) for c in columns if c.is_real}
    x |= {c.name: possible(c)[rng.integers(len(possible(c)))] for c in columns if not c.is_real}
    return bare(columns, W, labels.tolist(), omegas), drawn_prices(rng, columns), x


def check(question: Mixed, prices: Prices, x: Row, gap: float = 1e-6, **settings: Any) -> None:
    """Every class a target."""
    explainer = question.explainer(prices, **settings)
    for target in sorted(set(question.labels.tolist())):
        cf = explainer.explain(x, target)
        assert_exact(question, cf, prices, x, question.optimum(prices, x, {target}), gap)
        assert explainer.verify(cf) == cf.lower_bound or cf.status == "infeasible"


@pytest.mark.parametrize("seed", seeds(8, quick=4))
def test_levels_grids_and_real_numbers_together(seed: int) -> None:
    check(*drawn(seed, real=1 + seed % 2))


@pytest.mark.parametrize("seed", seeds(25, quick=4))
def test_ties_are_what_predict_makes_of_them(seed: int) -> None:
    """Prototypes and metrics of whole numbers: rows lie exactly between prototypes, or on two."""
    check(*drawn(seed, real=0))


@pytest.mark.parametrize("seed", seeds(30, quick={0, 14, 23}))
def test_ties_at_no_distance_are_what_predict_makes_of_them(seed: int) -> None:
    """Metrics of rank one, under which prototypes are copies of each other and of rows.

    Levels that are not 0 and 1 are stated anew, with rounding, and there is nothing to compare it
    with: both distances are 0.
    """
    rng = np.random.default_rng([seed, 77])
    levels = rng.choice([-1, 2, 5, 6, 10], 2, replace=False).tolist()
    columns = [Feature("n", "whole", lower=-4, upper=4), Feature("c", levels=levels)]
    columns += [Feature("d", levels=[0, 7, 3])] * int(rng.integers(2))
    omega = rng.integers(1, 4, (1, len(columns))).astype(float)
    W = rng.integers(-3, 4, (4, len(columns))).astype(float)
    W[1:, 0] += (W[0] - W[1:]) @ omega[0] / omega[0, 0] * (rng.random(3) < 0.7)
    labels = rng.permutation(["no", "yes", "maybe", "no"]).tolist()
    x = {column.name: possible(column)[0] for column in columns}
    prices = Prices({"n": 1.0}, None, {"c": 2.5, "d": 0.3} if len(columns) > 2 else {"c": 2.5})
    check(bare(columns, W, labels, omega), prices, x)


@pytest.mark.parametrize(
    "rule",
    ["MinChange", *(pytest.param(k, marks=pytest.mark.slow) for k in ("plain", "OneOf", "if"))],
)
@pytest.mark.parametrize(
    ("start", "column"),
    [
        (1e15, Feature("a", "whole")),
        (2e13, Feature("a", "whole")),
        (1.7e9, Feature("a", decimals=6)),
        (1e12, Feature("a", decimals=2)),
        (0.0, Feature("a", "whole", steps="of change")),
        (0.25, Feature("a", decimals=1, steps="of change")),
    ],
    ids=["1e15", "2e13", "microseconds", "cents", "changes", "changes of tenths"],
)
def test_neighbours_on_a_grid_stay_apart(start: float, column: Feature, rule: str) -> None:
    """However large the numbers are, and in both directions: against all rows near the input."""
    rng = np.random.default_rng(11)
    size = 10.0 ** (column.decimals or 0)
    features = Features([column, Feature("b", "whole", lower=0, upper=3)])
    rules: dict[str, Any] = {
        "MinChange": clvq.MinChange("b", 2), "OneOf": clvq.OneOf("b", [0, 1, 3]),
        "if": "if b >= 2 then b >= 3",
    }  # fmt: skip
    allowed = [b for b in range(4) if rule == "plain" or b != (1 if rule == "MinChange" else 2)]
    for _ in range(3):
        way = rng.choice([-1.0, 1.0])
        far = [start + way * rng.integers(3, 9) / size, float(rng.integers(0, 3))]
        model = clvq.PrototypeModel([[start, 0.0], far], ["no", "yes"], feature_names=["a", "b"])
        cost = clvq.Manhattan(weights=[size, float(rng.choice([1.3, 40.0]))])
        given = [rules[rule]] if rule in rules else []
        cf = clvq.Explainer(model, cost, given, features=features).explain([start, 0.0], "yes")
        steps = np.arange(-60, 61)
        lattice = (np.rint(start * size) + steps) / size
        values = start + steps / size if column.steps == "of change" else lattice
        rows = np.array([[a, b] for a in values for b in allowed])
        won = rows[model.predict(rows) == "yes"]
        paid = [cost.value(row - np.array([start, 0.0])) for row in won]
        assert cf.status == "optimal"
        assert cf.cost == pytest.approx(min(paid), rel=1e-9)
        assert cf.lower_bound <= min(paid)


@pytest.mark.parametrize(
    ("rule", "at", "cost"),
    [
        ("a - b <= 0", 1e15, np.inf), ("a == b", 1e12, np.inf),
        ("a + b == 2000000000005", 1e12, 5.0), ("a <= b + 5", 1e15, 3.0),
    ],
)  # fmt: skip
def test_rows_of_whole_numbers_are_not_broken_by_steps(rule: str, at: float, cost: float) -> None:
    """From (at, at) to three more of the first, the second being frozen."""
    model = clvq.PrototypeModel([[at, at], [at + 5, at]], ["no", "yes"], feature_names=["a", "b"])
    features = Features([Feature(name, "whole", lower=at - 9, upper=at + 9) for name in "ab"])
    rules = [rule, clvq.Freeze("b")]
    cf = clvq.Explainer(model, constraints=rules, features=features).explain([at, at], "yes")
    assert cf.status == ("optimal" if cost < np.inf else "infeasible")
    assert cf.cost == cost


def test_listed_values_stay_apart() -> None:
    """Three hundredths at 1e12 are hundreds of floats: neither value counts as the input."""
    model = clvq.PrototypeModel([[1e12], [1e12 + 0.03]], ["no", "yes"], feature_names=["a"])
    either = clvq.OneOf("a", [1e12 + 0.03, 1e12 - 0.03])
    cf = clvq.Explainer(model, constraints=[either]).explain([1e12], "yes")
    assert cf.status == "optimal"
    assert cf.x == [1e12 + 0.03]
    assert clvq.Explainer(model, constraints=[either]).explain([1e12], "no").x == [1e12 - 0.03]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 400))
def test_many_random_models(seed: int) -> None:
    check(*drawn(seed, real=seed % 3, most=3 if seed % 3 == 0 else 2))


def test_a_target_of_several_labels() -> None:
    question, prices, x = drawn(3, real=1)
    targets = {"yes", "maybe"}
    cf = question.explainer(prices).explain(x, targets)
    assert_exact(question, cf, prices, x, question.optimum(prices, x, targets))


# --- ties ---------------------------------------------------------------------------------------

NUMBER = Features([Feature("n", "whole")])


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=repr)
@pytest.mark.parametrize(("labels", "x", "y"), [("ny", 0, 3), ("yn", 4, 2)], ids=["lost", "won"])
def test_a_tie_is_an_answer_only_if_it_wins(cost: clvq.Cost, labels: str, x: int, y: int) -> None:
    """Halfway between two prototypes the first one wins."""
    model = clvq.PrototypeModel([[0.0], [4.0]], list(labels), feature_names=["n"])
    explainer = clvq.Explainer(model, cost, features=NUMBER)
    cf = explainer.explain([x], "y")
    assert (cf.status, cf.x.tolist()) == ("optimal", [y])


@pytest.mark.parametrize("local", [False, True])
def test_a_copy_of_an_earlier_rival_never_wins(local: bool) -> None:
    omegas = [[[1.0]], [[1.0]], [[2.0]]] if local else None
    model = clvq.PrototypeModel(
        [[0.0], [0.0], [3.0]], ["no", "yes", "no"], omegas, feature_names=["n"]
    )
    cf = clvq.Explainer(model, features=NUMBER).explain([1], "yes")
    assert cf.status == "infeasible"


def test_an_input_on_a_tie_has_the_label_that_the_model_gives_it() -> None:
    """In other coordinates rounding would decide, and differently."""
    columns = [
        Feature("b", "boolean"),
        Feature("d", decimals=1, lower=-0.5, upper=0.5),
        Feature("c", levels=[1, 2]),
    ]
    W = [[-3.0, -1.0, -2.0], [3.0, 0.0, 0.0], [0.0, 0.0, 3.0], [-1.0, 0.0, -2.0]]
    model = clvq.PrototypeModel(W, ["b", "a", "c", "b"], feature_names=["b", "d", "c"])
    assert model.predict([[1.0, -0.5, 1.0]]) == ["a"]
    explainer = clvq.Explainer(model, features=Features(columns))
    cf = explainer.explain([True, -0.5, 1], "a")
    assert (cf.status, cf.cost, cf.original_prediction) == ("optimal", 0.0, "a")
    assert explainer.explain_batch([[True, -0.5, 1]], "a").original_prediction == ["a"]
    assert explainer.explain([True, -0.5, 1], "c").cost == 1.0


@pytest.mark.parametrize("room", [1e-3, 1e-6, 1e-8])
def test_a_cell_with_hardly_any_room_is_not_taken_for_a_tie(room: float) -> None:
    """For n = 1 the target wins only for u within `room` of 0."""
    W = [[-1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    offsets = [room, room, 0.0]
    model = clvq.PrototypeModel(W, ["no", "no", "yes"], None, ["u", "n"], offsets)
    features = Features(["u", Feature("n", "whole", lower=1, upper=1)])
    cf = clvq.Explainer(model, features=features).explain([5.0, 1], "yes")
    assert cf.status == "optimal"
    assert cf.cost == pytest.approx(5.0 - room / 2, abs=1e-9)


def test_a_side_that_runs_through_the_answer_does_not_keep_the_gap_open() -> None:
    W = [[-5.893253192030268, 2.7696161046176826, 0.7303034914274266],
         [-1.1787920177405289, 0.8396213750648623, 1.6833275521360591],
         [1.9715819484237618, 1.0228147292199419, 1.6859230338102247]]  # fmt: skip
    model = bare([Feature("u"), Feature("b", "boolean"), Feature("v")], np.array(W), list("abc"))
    prices = Prices({}, np.eye(2), {"b": {(True, False): 3.803254066134033}})
    check(model, prices, {"u": -1.0210003005322226, "b": False, "v": -2.287730948873942})


# --- pipelines ----------------------------------------------------------------------------------

PEOPLE = (  # in the order of the table, which weights and answers have
    Feature("size", levels=["s", "m", "l"]),
    Feature("age", "whole", lower=20, upper=26),
    Feature("job", levels=["clerk", "cook", "nurse"]),
    Feature("income"),
    Feature("owner", "boolean"),
)
SWITCHES = {"job": {("clerk", "nurse"): 0.4, ("nurse", "clerk"): 2.5}, "size": 0.3}
ABSOLUTE = Prices({"age": 0.3, "income": 1.5, "owner": 0.7}, None, SWITCHES)
CORRELATED = Prices({}, np.array([[0.5, 0.2], [0.2, 1.0]]), SWITCHES)


def people(rng: Generator, rows: int = 40) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "note": "kept",
            "size": rng.choice(["s", "m", "l"], rows),
            "age": rng.integers(20, 27, rows),
            "job": rng.choice(["clerk", "nurse", "cook"], rows),
            "income": rng.normal(3, 1, rows),
            "owner": rng.integers(0, 2, rows).astype(bool),
        }
    )


def estimator(W: Array, labels: Array, omegas: Array | None) -> GLVQ:
    """Fitted, as far as anybody can tell."""
    out = GLVQ()
    out.prototypes_, out.prototype_labels_, out.omegas_ = W, labels, omegas
    out.classes_, out.n_features_in_ = np.unique(labels), W.shape[1]
    return out


def behind_a_pipeline(
    seed: int, encoder: Any, *, pca: bool = False, local: bool = False, real: bool = True
) -> tuple[Mixed, Row]:
    rng = np.random.default_rng(seed)
    table = people(rng)
    parts = [
        ("numbers", StandardScaler(), ["age", "income"] if real else ["age"]),
        ("levels", encoder, ["job", "owner"]),
        ("order", OrdinalEncoder(categories=[["s", "m", "l"]]), ["size"]),
    ]
    steps = [("columns", ColumnTransformer(parts, sparse_threshold=0))]
    steps += [("pca", PCA(3))] if pca else []
    Z = np.asarray(Pipeline(steps).fit_transform(table))
    W = Z[rng.choice(len(Z), 5, replace=False)] + 0.3 * rng.normal(size=(5, Z.shape[1]))
    labels, eye = rng.permutation(["x", "y", "z", "x", "y"]), np.eye(Z.shape[1])
    omegas = 0.5 * rng.normal(size=(5, *eye.shape)) + eye if local else None
    pipeline = Pipeline([*steps, ("lvq", estimator(W, labels, omegas))])
    columns = tuple(column for column in PEOPLE if real or not column.is_real)

    def frame(rows: list[Row]) -> pd.DataFrame:
        return pd.DataFrame([{"note": "", "income": 3.0, **row} for row in rows])[[*table.columns]]

    def image(rows: list[Row]) -> Array:
        return np.asarray(pipeline[:-1].transform(frame(rows)))

    question = Mixed(
        pipeline, Features(columns), columns, image, lambda rows: pipeline.predict(frame(rows)), W,
        labels, eye if omegas is None else omegas,
    )  # fmt: skip
    return question, {column.name: table[column.name].iloc[seed] for column in columns}


@pytest.mark.covering
@pytest.mark.parametrize("prices", [ABSOLUTE, CORRELATED], ids=["absolute", "correlated"])
@pytest.mark.parametrize(
    ("encoder", "pca"),
    [
        (OneHotEncoder(), False),
        (OneHotEncoder(drop="first"), False),
        (OneHotEncoder(drop="if_binary"), True),
    ],
    ids=["all", "drop first", "pca"],
)
def test_through_a_pipeline(encoder: Any, pca: bool, prices: Prices) -> None:
    question, x = behind_a_pipeline(3 + pca, encoder, pca=pca)
    check(question, prices, {**x, "note": "unseen"})


# --- local metrics ------------------------------------------------------------------------------


@pytest.mark.parametrize("prices", [ABSOLUTE, Prices({}, np.eye(1), SWITCHES)], ids=["l1", "l2"])
def test_local_metrics_where_all_is_discrete(prices: Prices) -> None:
    question, x = behind_a_pipeline(1, OneHotEncoder(), local=True, real=False)
    check(question, prices, x, 1e-4, method="global")


def local_model(seed: int) -> tuple[Mixed, Row]:
    rng = np.random.default_rng([seed, 9])
    columns = [Feature("c", levels=[0, 1, 3]), Feature("u"), Feature("n", "whole", lower=-2,
                                                                     upper=2)]  # fmt: skip
    W = 1.5 * rng.normal(size=(4, 3))
    omegas = rng.normal(size=(4, 3, 3)) + np.eye(3)
    labels = rng.permutation(["no", "yes", "no", "yes"]).tolist()
    return bare(columns, W, labels, list(omegas)), {"c": 1, "u": float(rng.normal()), "n": 0}


def scanned(question: Mixed, prices: Prices, x: Row, target: str) -> float:
    """Least cost of a row that wins, with the real column on a fine grid."""
    grid = np.unique(np.r_[np.linspace(-8, 8, 1601), x["u"] + np.linspace(-0.5, 0.5, 401)])
    rows = [{**row, "u": float(u)} for row in question.choices() for u in grid]
    won = question.says(rows) == target
    paid = [
        prices.of(question.columns, x, row) for row, good in zip(rows, won, strict=True) if good
    ]
    return min(paid, default=np.inf)


@pytest.mark.parametrize(
    ("seed", "squared"),
    some([(0, True), (1, False), (2, True), *((k, bool(k % 2)) for k in range(3, 16))], quick=2),
)
def test_local_metrics_with_a_real_column(seed: int, squared: bool) -> None:
    question, x = local_model(seed)
    prices = Prices({}, np.array([[1.0, 0.3], [0.3, 0.8]]) if squared else None, {"c": 0.6})
    explainer = question.explainer(prices, method="global")
    for target in ("no", "yes"):
        cf, best = explainer.explain(x, target), scanned(question, prices, x, target)
        assert cf.status == "optimal"
        y = dict(zip(cf.feature_names, cf.x, strict=True))
        assert question.says([y])[0] == target
        assert cf.lower_bound <= best
        assert cf.cost <= best * (1 + 2e-4) + 1e-9
        assert explainer.verify(cf) == cf.lower_bound


def test_a_search_under_local_metrics_goes_on_where_features_are_held() -> None:
    """A coordinate in which no prototype differs from the input has no unit of its own."""
    question, x = behind_a_pipeline(2, OneHotEncoder(), local=True)
    prices = Prices({}, np.eye(2), SWITCHES)
    x = {**x, "owner": bool(x["owner"])}
    cf = question.explainer(prices, method="global", time_limit=60).explain(x, "y")
    assert cf.status == "optimal"


# --- decimals and steps -------------------------------------------------------------------------


def test_what_a_search_has_closed_its_certificate_closes_too() -> None:
    """Boxes narrow with the best answer; multipliers of a dearer one have a wider box."""
    rng, d = np.random.default_rng(0), 6
    prototypes = 4.0 * rng.normal(size=(6, d))
    omegas = np.eye(d) + rng.normal(size=(6, d, d)) / np.sqrt(d)
    model = clvq.PrototypeModel(prototypes, [0, 0, 0, 1, 1, 1], omegas=list(omegas))
    columns = [Feature(f"x{j}", "whole", lower=-12, upper=12) for j in range(d - 1)]
    x = np.rint(3.0 * rng.normal(size=d))
    explainer = clvq.Explainer(
        model, features=Features([*columns, Feature(f"x{d - 1}")]), method="global"
    )
    cf = explainer.explain(x, target=1 - int(model.predict(x[None])[0]))
    assert cf.status == "optimal"
    assert explainer.verify(cf) == cf.lower_bound


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=repr)
@pytest.mark.parametrize(
    ("feature", "x", "y"),
    [
        (Feature("n", decimals=2), 0.0, 1.24),  # the border is at 1.235
        (Feature("n", decimals=0), 0.0, 2.0),
        (Feature("n", decimals=1), 0.04, 1.3),
        (Feature("n", "whole"), 0, 2),
        (Feature("n", step=5), 0, 5),
        (Feature("n", step=5), 7, 7),  # off the grid, and has the label already
        (Feature("n", decimals=1), 1.26, 1.26),
        (Feature("n", step=5, steps="of change"), -3, 2),
        (Feature("n", decimals=1, steps="of change"), 0.04, 0.04 + 1.2),
        (Feature("n", decimals=2), 1.24, 1.24),
        (Feature("n", decimals=1), 0.1 + 1.2, 0.1 + 1.2),
    ],
)
def test_answers_lie_on_the_grid(feature: Feature, x: float, y: float, cost: clvq.Cost) -> None:
    """What changes lies on the grid; an input off the grid may stay there."""
    model = clvq.PrototypeModel([[0.0], [2.47]], ["no", "yes"], feature_names=["n"])
    explainer = clvq.Explainer(model, cost, features=Features([feature]))
    cf = explainer.explain([x], "yes")
    assert cf.status == "optimal"
    assert cf.x[0] == y
    assert cf.cost == pytest.approx(cost.value([y - x]), rel=1e-12)
    assert explainer.verify(cf) == cf.lower_bound


def test_decimals_stay_decimals_next_to_real_numbers() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [1.0, 1.0]], ["no", "yes"], feature_names=["p", "u"])
    features = Features([Feature("p", decimals=1), "u"])
    cost = clvq.Manhattan([1.0, 3.0])
    cf = clvq.Explainer(model, cost, features=features).explain([0.0, 0.05], "yes")
    # p alone would have to be 0.95; 0.9 and a little of u is cheaper than 1.0.
    assert cf.x[0] in (0.9, 1.0)
    assert cf.cost == pytest.approx(1.0, abs=1e-9)
    cheaper = clvq.Explainer(model, clvq.Manhattan([1.0, 1.5]), features=features)
    assert cheaper.explain([0.0, 0.05], "yes").cost == pytest.approx(0.975, abs=1e-9)


# --- constraints --------------------------------------------------------------------------------

HOUSEHOLD = [
    Feature("n", "whole", lower=-3, upper=3),
    Feature("job", levels=[0, 1, 2]),
    Feature("u", lower=-6.0, upper=6.0),
    Feature("home", levels=[0, 1]),
]
PAID = Prices({"n": 0.7, "u": 0.9, "job": 0.8, "home": 0.5}, None, {"job": {(0, 2): 0.3}})
FROM: Row = {"n": 1, "job": 0, "u": 0.4, "home": 0}


def household() -> Mixed:
    rng = np.random.default_rng(5)
    labels = ["no", "yes", "no", "yes", "no", "maybe"]
    return bare(HOUSEHOLD, 1.6 * rng.normal(size=(6, 4)), labels)


Limit = tuple[list[list[float]], list[float]]
NO_LIMIT: Limit = ([], [])
RULES: list[tuple[list[Any], Callable[[Row], bool], Callable[[Row], Limit]]] = [
    ([clvq.Freeze("job")], lambda r: r["job"] == 0, lambda r: NO_LIMIT),
    ([clvq.Freeze("job", "n", "home")],
     lambda r: (r["job"], r["n"], r["home"]) == (0, 1, 0), lambda r: NO_LIMIT),
    ([clvq.OneOf("job", [1, 2])], lambda r: r["job"] in (1, 2), lambda r: NO_LIMIT),
    (["job != 0"], lambda r: r["job"] != 0, lambda r: NO_LIMIT),
    (["job == 2"], lambda r: r["job"] == 2, lambda r: NO_LIMIT),
    (["job in [0, 1]"], lambda r: r["job"] in (0, 1), lambda r: NO_LIMIT),
    (["job not in [0, 1]", clvq.Freeze("u")], lambda r: r["job"] == 2,
     lambda r: ([[1.0], [-1.0]], [0.4, -0.4])),
    (["if job == 2 then n <= -1"], lambda r: r["job"] != 2 or r["n"] <= -1, lambda r: NO_LIMIT),
    (["if home == 1 then u <= 0.1"], lambda r: True,
     lambda r: ([[1.0]], [0.1]) if r["home"] == 1 else NO_LIMIT),
    (["if job == 0 then home == 1"], lambda r: r["job"] != 0 or r["home"] == 1,
     lambda r: NO_LIMIT),
    (["if job != 1 then u == 2 * n"], lambda r: True,
     lambda r: ([[1.0], [-1.0]], [2.0 * r["n"], -2.0 * r["n"]]) if r["job"] != 1 else NO_LIMIT),
    ([clvq.Bounds("n", upper=0.5)], lambda r: r["n"] <= 0, lambda r: NO_LIMIT),
    ([clvq.MaxChange("n", 1.5), clvq.MaxChange("u", 0.5)], lambda r: abs(r["n"] - 1) <= 1,
     lambda r: ([[1.0], [-1.0]], [0.9, 0.1])),
    ([clvq.Increase("n"), clvq.Decrease("u")], lambda r: r["n"] >= 1,
     lambda r: ([[1.0]], [0.4])),
    (["n + u <= 0.5"], lambda r: True, lambda r: ([[1.0]], [0.5 - r["n"]])),
    (["2 * n >= 3 * original(n)"], lambda r: 2 * r["n"] >= 3, lambda r: NO_LIMIT),
    (["u == n"], lambda r: True, lambda r: ([[1.0], [-1.0]], [float(r["n"]), -float(r["n"])])),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "allowed", "limits"), RULES, ids=[", ".join(map(str, rule[0])) for rule in RULES]
)
def test_constraints_against_enumeration(
    rules: list[Any], allowed: Callable[[Row], bool], limits: Callable[[Row], Limit]
) -> None:
    question = household()
    explainer = question.explainer(PAID, rules)

    def rows(row: Row) -> tuple[Array, Array]:
        A, b = limits(row)
        return np.array(A).reshape(-1, 1), np.array(b)

    for target in ("yes", "no", "maybe"):
        cf = explainer.explain(FROM, target)
        optimum = question.optimum(PAID, FROM, {target}, allowed, rows)
        assert_exact(question, cf, PAID, FROM, optimum)


def test_an_input_that_breaks_a_rule_has_to_change_even_with_the_label() -> None:
    question = household()
    label = question.says([FROM])[0]
    assert question.explainer(PAID).explain(FROM, label).cost == 0
    unchanged = question.explainer(PAID).explain(FROM, label)
    assert unchanged.changes == ()
    assert question.explainer(PAID, ["job != 0"]).explain(FROM, label).cost > 0


INFEASIBLE: list[tuple[list[Any], list[Any]]] = [
    (["2 * n == 7", "u <= 5"], ["2 * n == 7"]),
    ([clvq.Bounds("n", 0.2, 0.8), clvq.Freeze("job")], [clvq.Bounds("n", 0.2, 0.8)]),
    (["job == 1", clvq.Freeze("u"), clvq.OneOf("job", [0, 2])],
     ["job == 1", clvq.OneOf("job", [0, 2])]),
    ([clvq.Freeze("job"), "u <= 5", "job != 0"], [clvq.Freeze("job"), "job != 0"]),
    (["if job == 0 then n >= 3", "n <= 2", clvq.Freeze("job")],
     ["if job == 0 then n >= 3", "n <= 2", clvq.Freeze("job")]),
    (["n >= 4"], ["n >= 4"]),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "conflict"), INFEASIBLE, ids=str)
def test_rules_without_room_are_named(rules: list[Any], conflict: list[Any]) -> None:
    cf = household().explainer(PAID, rules).explain(FROM, "yes")
    assert cf.status == "infeasible"
    assert list(map(repr, cf.conflict)) == list(map(repr, conflict))
    assert np.isnan(cf.values).all()
    assert "yes already, but cannot meet what is asked and stay so: " in cf.text()


# --- proofs that were tampered with -------------------------------------------------------------


def scaled(tree: BoxTree, factor: float) -> BoxTree:
    def times(prices: LiftedMultipliers) -> LiftedMultipliers:
        linear = Multipliers(*(factor * part for part in (prices.linear.y, prices.linear.z,
                                                          prices.linear.nu)))  # fmt: skip
        return replace(prices, forms=factor * prices.forms, linear=linear)

    return replace(tree, prices=tuple(map(times, tree.prices)))


def jumbled(tree: BoxTree) -> BoxTree:
    rng = np.random.default_rng(0)
    noisy = [replace(p, forms=p.forms + rng.normal(size=p.forms.shape), point=rng.normal(
        size=p.point.shape)) for p in tree.prices]  # fmt: skip
    return replace(tree, prices=tuple(noisy))


TAMPERED: dict[str, Callable[[BoxTree], BoxTree]] = {
    "doubled": lambda tree: scaled(tree, 2.0),
    "huge": lambda tree: scaled(tree, 1e9),
    "negative": lambda tree: scaled(tree, -1.0),
    "not a number": lambda tree: scaled(tree, np.nan),
    "jumbled": jumbled,
    "cut elsewhere": lambda tree: replace(tree, at=tree.at + 0.7),
    "cut far away": lambda tree: replace(tree, at=tree.at - 1e6),
    "cut across another feature": lambda tree: replace(
        tree, feature=np.where(tree.feature >= 0, 0, -1)
    ),
    "one side twice": lambda tree: replace(tree, high=tree.low),
    "other caps": lambda tree: replace(tree, caps=np.full(tree.caps.size, 1e6)),
    "no caps": lambda tree: replace(tree, caps=np.full(tree.caps.size, np.inf)),
    "a large margin": lambda tree: replace(tree, margin=1e3),
}


@pytest.mark.covering
@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED)
@pytest.mark.parametrize("seed", [0, 3, 21])
def test_a_tampered_proof_shows_no_more_than_is_true(
    seed: int, tamper: Callable[[BoxTree], BoxTree]
) -> None:
    question, prices, x = drawn(seed, real=seed % 2)
    explainer = question.explainer(prices)
    for target in sorted(set(question.labels.tolist())):
        cf = explainer.explain(x, target)
        optimum = question.optimum(prices, x, {target})
        if not isinstance(cf.certificate, BoxCertificate):
            continue
        forged = BoxCertificate(tuple(tamper(tree) for tree in cf.certificate.trees))
        for cost in (cf.cost, 2.0 * cf.cost):
            bound = explainer.verify(replace(cf, certificate=forged, cost=cost))
            assert bound <= optimum * (1 + 1e-9) + 1e-12


def test_without_a_tree_for_every_prototype_nothing_is_proved() -> None:
    question, prices, x = drawn(5, real=1)
    explainer = question.explainer(prices)
    for target in sorted(set(question.labels.tolist())):
        cf = explainer.explain(x, target)
        if isinstance(cf.certificate, BoxCertificate) and cf.cost > 0:
            fewer = replace(cf, certificate=BoxCertificate(cf.certificate.trees[1:]))
            assert explainer.verify(fewer) == 0.0


# --- solvers that lie ---------------------------------------------------------------------------


def lies(problem: NonconvexProgram, box: Box, outcome: Outcome, size: float) -> Relaxed:
    rng = np.random.default_rng(1)
    nothing = LiftedMultipliers.none(problem)
    linear = Multipliers(*(size * rng.normal(size=part.shape) for part in (
        nothing.linear.y, nothing.linear.z, nothing.linear.nu)))  # fmt: skip
    prices = replace(
        nothing,
        forms=size * rng.normal(size=nothing.forms.shape),
        linear=linear,
        point=size * rng.normal(size=nothing.point.shape),
    )
    return Relaxed(outcome, prices, np.zeros((nothing.point.size,) * 2))


@pytest.mark.covering
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6, np.nan])
@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_relaxation_that_lies_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome, size: float
) -> None:
    monkeypatch.setattr(strategies, "compiled_boxes_find", lambda *_: None)
    monkeypatch.setattr(mixed_integer, "relax_flat", lambda p, box, _: lies(p, box, outcome, size))
    for seed, real in ((0, 1), (1, 0)):
        question, prices, x = drawn(seed, real)
        explainer = question.explainer(prices, time_limit=0.4)
        for target in sorted(set(question.labels.tolist())):
            assert_honest(question, explainer.explain(x, target), prices, x, target)


def assert_honest(
    question: Mixed, cf: clvq.Counterfactual, prices: Prices, x: Row, target: Any
) -> None:
    optimum = question.optimum(prices, x, {target})
    if cf.status == "infeasible":
        assert optimum == np.inf
        return
    assert cf.lower_bound <= optimum * (1 + 1e-9) + 1e-12
    if cf.status.has_answer:
        y = dict(zip(cf.feature_names, cf.x, strict=True))
        assert question.says([y])[0] == target
        assert cf.cost == pytest.approx(prices.of(question.columns, x, y), rel=1e-12)
        assert cf.status != "optimal" or cf.cost <= optimum * (1 + 1e-5) + 1e-9


def nowhere(program: Program) -> Solution:
    return Solution(Outcome.SOLVED, np.full(program.width, 1e9), Multipliers.none(program), "liar")


def never(program: Program) -> Solution:
    return Solution.without_point(program, Outcome.INFEASIBLE, "liar")


def cannot(program: Program) -> Solution:
    return Solution.without_point(program, Outcome.FAILED, "liar")


def stays(program: Program) -> Solution:
    prices = Multipliers(*(np.full(part.shape, 1e3) for part in (
        program.b, program.e, np.zeros(len(program.quadrics)))))  # fmt: skip
    return Solution(Outcome.SOLVED, np.zeros(program.width), prices, "liar")


@pytest.mark.parametrize("solver", [nowhere, never, cannot, stays])
def test_a_solver_that_lies_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, solver: Callable[[Program], Solution]
) -> None:
    """Neither about the rest of a point on the grid, nor about a box."""
    monkeypatch.setattr(strategies, "compiled_boxes_find", lambda *_: None)
    monkeypatch.setattr(solvers, "select", lambda program: solvers.Choice(solver, "a liar"))
    for seed, real in ((0, 1), (1, 0)):
        question, prices, x = drawn(seed, real)
        explainer = question.explainer(prices, time_limit=0.4)
        for target in sorted(set(question.labels.tolist())):
            assert_honest(question, explainer.explain(x, target), prices, x, target)


@pytest.mark.parametrize(
    ("metrics", "method", "budget"),
    [
        (None, "auto", "strategies._GRID_WORK"),
        (None, "global", "branch_and_bound._VAIN_NODES"),
        ([np.eye(3), np.diag([1.0, 0.8, 0.5])], "global", "branch_and_bound._VAIN_NODES"),
    ],
)
def test_conditions_that_no_whole_numbers_meet_come_to_an_end(
    monkeypatch: pytest.MonkeyPatch, metrics: list[np.ndarray] | None, method: str, budget: str
) -> None:
    """A real number beside them, too small to make up for what is missing, hides the reason."""
    monkeypatch.setattr(f"counterlvq.search.{budget}", 10)
    features = [clvq.Feature("a", "whole"), clvq.Feature("b", "whole"), clvq.Feature("c")]
    places = [[0.0, 0.0, 0.0], [9.0, 9.0, 0.5]]
    model = clvq.PrototypeModel(places, ["no", "yes"], omegas=metrics, feature_names=[*"abc"])
    explainer = clvq.Explainer(
        model,
        constraints=["6 * a + 10 * b + c == 15", clvq.Bounds("c", 0.0, 0.5)],
        features=clvq.Features(features),
        method=method,
    )
    for start, target in zip(places, ["yes", "no"], strict=True):
        answer = explainer.explain(start, target)
        assert answer.status == "unknown"
        assert answer.lower_bound < np.inf


@pytest.mark.covering
@pytest.mark.parametrize("tenths", some(range(1, 11), quick={1, 3, 7, 10}))
@pytest.mark.parametrize("rule", ["if s == 10 then j == 1", "s != 10"])
def test_rows_of_decimals_may_be_used_up(tenths: int, rule: str) -> None:
    """``n + 10 d <= 9`` holds at d = 0.9, whatever the double 0.9 is: constraints only add up."""
    d = tenths / 10
    features = Features(
        [
            Feature("n", "whole", lower=0, upper=7),
            Feature("d", decimals=1, lower=0, upper=1),
            Feature("s", levels=[10, 5, 7]),
            Feature("j", levels=[0, 1]),
        ]
    )
    model = clvq.PrototypeModel(
        [[0.0, 0.5, 0.0, 0.0], [0.0, 0.5, 6.0, 0.0]], ["no", "yes"], feature_names=list("ndsj")
    )
    x = pd.DataFrame({"n": [0], "d": [d], "s": [10], "j": [0]})
    rules = [f"n + 10*d <= {tenths}", rule]
    for more in ([], [f"d >= {d}"], [f"d >= {d}", "s == 5"], [f"n + 10*d == {tenths}"]):
        explainer = clvq.Explainer(
            model,
            clvq.Manhattan(switches={"s": 1.0, "j": 3.0}),
            features=features,
            constraints=[*rules, *more],
            method="global",
        )
        cf = explainer.explain(x, target="yes")
        assert cf.status == "optimal"
        assert cf.cost == pytest.approx(1.0)  # one switch of s, and nothing else


def test_a_share_of_a_ray_that_contradicts_nothing_closes_its_box(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else such boxes are cut down to their last points, thousands of them for some rows."""
    rng, d = np.random.default_rng(4), 5
    prototypes = rng.integers(-4, 5, size=(6, d)).astype(float)
    omegas = [np.eye(d) + rng.normal(size=(d, d)) for _ in prototypes]
    model = clvq.PrototypeModel(prototypes, [0, 0, 0, 1, 1, 1], omegas)
    features = Features([Feature(f"x{j}", "whole") for j in range(d)])
    explainer = clvq.Explainer(model, clvq.Manhattan(), features=features)
    plain = explainer.explain(prototypes[0], target=1)
    monkeypatch.setattr(BoxQuestion, "contradicts", lambda *told, **more: False)
    with_shares = explainer.explain(prototypes[0], target=1)
    monkeypatch.setattr(branch_and_bound, "_SHARES", ())
    without = explainer.explain(prototypes[0], target=1)
    assert plain.status == with_shares.status == "optimal"
    assert plain.cost == with_shares.cost
    assert boxes_of(with_shares) < boxes_of(without)


def boxes_of(cf: clvq.Counterfactual) -> int:
    assert isinstance(cf.certificate, BoxCertificate)
    return sum(len(tree.prices) for tree in cf.certificate.trees)
