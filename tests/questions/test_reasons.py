"""Sufficient reasons: by sampling what the other features may do, by witnesses, by enumeration."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.cluster import KMeans

import counterlvq as clvq
from counterlvq.questions import reasons
from tests.support.quick import seeds
from tests.support.shell import called

SCALES = np.array([1e-6, 1.0, 1e5, 3.0])
NAMES = ["a", "b", "c", "d"]


def drawn(seed: int, omegas: str = "none") -> tuple[clvq.PrototypeModel, np.ndarray]:
    rng = np.random.default_rng(seed)
    points, d = rng.normal(size=(6, 4)) * SCALES, len(SCALES)
    labels = ["red", "green", "blue", "red", "green", "blue"]
    factors = {
        "none": np.diag(1 / SCALES),
        "full": rng.normal(size=(3, d)) / SCALES,
        "local": rng.normal(size=(6, 2, d)) / SCALES,
    }
    table = rng.normal(size=(9, d)) * SCALES * 0.8
    return clvq.PrototypeModel(points, labels, factors[omegas], NAMES), table


def samples(why: clvq.Reasons, row: np.ndarray, table: np.ndarray, count: int) -> np.ndarray:
    """Rows that agree with `row` in the features of a reason, corners of the ranges among them."""
    rng = np.random.default_rng(1)
    low, high = np.minimum(table.min(0), row), np.maximum(table.max(0), row)
    rows = rng.uniform(low, high, size=(count, row.size))
    ends = rng.random(rows.shape)
    rows[: count // 2] = np.where(ends < 0.5, low, high)[: count // 2]
    held = [NAMES.index(name) for name in why.features]
    rows[:, held] = row[held]
    return rows


def settles(model: clvq.PrototypeModel, row: np.ndarray, held: set[int], box: tuple) -> bool:
    """Whether no other label wins anywhere: a linear program for each pair, from the definition."""
    F = np.atleast_2d(model.omegas if model.omegas is not None else np.eye(row.size))
    F = np.diag(F[0]) if F.shape[0] == 1 and row.size > 1 else F
    W, now = model.prototypes, model.predict([row])[0]
    unit = SCALES
    bounds = [(row[j] / unit[j],) * 2 if j in held else (box[0][j] / unit[j], box[1][j] / unit[j])
              for j in range(row.size)]  # fmt: skip
    Z = W @ F.T
    for i in np.flatnonzero(model.labels != now):
        rivals = np.flatnonzero(model.labels == now)
        A = 2 * (Z[rivals] - Z[i]) @ F * unit
        b = (Z[rivals] ** 2).sum(1) - (Z[i] ** 2).sum()
        lead = np.append(np.zeros(row.size), -1.0)
        found = linprog(lead, np.c_[A, np.ones(len(rivals))], b, bounds=[*bounds, (None, 1)])
        if found.status == 0 and -found.fun > 1e-9:
            return False
    return True


@pytest.mark.parametrize("omegas", ["none", "full"])
@pytest.mark.parametrize("seed", seeds(4, quick=1))
def test_reasons_are_among_those_of_enumeration(seed: int, omegas: str) -> None:
    model, table = drawn(seed, omegas)
    explainer = clvq.Explainer(model, constraints=clvq.within_data(table))
    box = table.min(0), table.max(0)
    for row in table[:3]:
        every = chain.from_iterable(combinations(range(4), size) for size in range(5))
        enough = [set(held) for held in every if settles(model, row, set(held), box)]
        minimal = [held for held in enough if not any(other < held for other in enough)]
        for order in (None, ["d", "b"]):
            why = explainer.reasons(row, order=order)
            assert why.status == "optimal"
            assert {NAMES.index(name) for name in why.features} in minimal


@pytest.mark.parametrize("omegas", ["none", "full", "local"])
@pytest.mark.parametrize("seed", seeds(3, quick=1))
def test_nothing_that_is_sampled_breaks_a_reason(seed: int, omegas: str) -> None:
    model, table = drawn(10 + seed, omegas)
    explainer = clvq.Explainer(
        model, clvq.Manhattan(1 / SCALES), constraints=clvq.within_data(table), margin=1e-3
    )
    for row in table[: 1 if omegas == "local" else 4]:
        why = explainer.reasons(row)
        assert why.status in ("optimal", "feasible")
        assert why.prediction == model.predict([row])[0]
        rows = samples(why, row, table, 10_000)
        assert (model.predict(rows) == why.prediction).all()
        assert why.proof.status == "infeasible"
        assert why.asked.verify(why.proof) == np.inf
        if why.status == "optimal":
            assert tuple(why.witnesses) == why.features
        for name, witness in why.witnesses.items():
            assert model.predict([witness.x])[0] != why.prediction
            free = set(NAMES) - set(why.features) | {name}
            assert {change.feature for change in witness.changes} <= free
            assert name in {change.feature for change in witness.changes}
            assert (witness.x >= np.minimum(table.min(0), row)).all()
            assert (witness.x <= np.maximum(table.max(0), row)).all()


def test_preferred_features_come_first() -> None:
    model = clvq.PrototypeModel([[0.0] * 3, [2.0] * 3], ["no", "yes"], None, ["a", "b", "c"])
    explainer = clvq.Explainer(model, constraints=[clvq.Bounds(k, 0, 2) for k in "abc"])
    # At the origin two of three equal features that stay 0 leave at most 2 of the 3 needed.
    assert explainer.reasons([0.0, 0.0, 0.0]).features == ("a", "b")
    assert explainer.reasons([0.0, 0.0, 0.0], order=["c"]).features == ("c", "a")
    assert explainer.reasons([0.0, 0.0, 0.0], order=[2, "b"]).features == ("c", "b")


def test_a_decision_that_nothing_changes_needs_no_feature() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [9.0, 0.0]], [1, 2], feature_names=["a", "b"])
    why = clvq.Explainer(model, constraints=[clvq.Bounds("a", 0, 4)]).reasons([1.0, 1e9])
    assert (why.features, why.status, dict(why.witnesses)) == ((), "optimal", {})
    said = "The answer is 1 whatever the features are within their ranges."
    assert str(why).splitlines() == [said, "  a from 0 to 4", "  b anywhere"]
    assert (why.text(), dict(why.ranges)) == (said, {"a": (0.0, 4.0), "b": (-np.inf, np.inf)})
    assert why.to_dict()["ranges"]["b"] == {"lower": None, "upper": None}


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (clvq.Feature("rate", decimals=4), (0.03, 0.18)),
        (clvq.Feature("rate", decimals=1), (0.1, 0.1)),
        (clvq.Feature("rate", step=0.02), (0.04, 0.18)),
        (clvq.Feature("rate", step=0.02, steps="of change"), (0.03, 0.18)),
        (clvq.Feature("rate"), (0.03, 0.18)),
    ],
    ids=str,
)
def test_ranges_end_on_the_grid_of_a_feature(
    feature: clvq.Feature, expected: tuple[float, float]
) -> None:
    model = clvq.PrototypeModel(
        [[2400, 0.1], [4200, 0.05]], ["n", "y"], [[0.001, 0], [0, 1]], ["income", "rate"]
    )
    ranges = clvq.within_data([[2000, 0.03], [5000, 0.18]])
    explainer = clvq.Explainer(
        model, constraints=ranges, features=clvq.Features(["income", feature])
    )
    why = explainer.reasons({"income": 4500, "rate": 0.1})
    assert why.features == ("income",)
    assert dict(why.ranges) == {"rate": expected}


def test_levels_and_whole_numbers_by_enumeration() -> None:
    features = clvq.Features(
        [
            clvq.Feature("cards", "whole", lower=0, upper=4),
            clvq.Feature("job", levels=[0, 3, 5], level_labels={3: "a clerk"}),
            clvq.Feature("home", "boolean", true="with a home", false="without a home"),
        ]
    )
    model = clvq.PrototypeModel(
        [[1, 0, 0], [3, 4, 1]], ["no", "yes"], None, ["cards", "job", "home"]
    )
    explainer = clvq.Explainer(model, features=features)
    every = [[c, j, h] for c in range(5) for j in (0, 3, 5) for h in (0, 1)]
    says = dict(zip(map(tuple, every), model.predict(np.array(every, dtype=float)), strict=True))
    for cards, job, home in every[::3]:
        now = says[cards, job, home]
        why = explainer.reasons({"cards": cards, "job": job, "home": bool(home)})
        held = [["cards", "job", "home"].index(name) for name in why.features]
        row = (cards, job, home)

        def agree(at: list[int], row: tuple = row) -> set:
            return {says[o] for o in says if all(o[j] == row[j] for j in at)}

        assert why.status == "optimal"
        assert agree(held) == {now}
        assert all(agree([j for j in held if j != k]) == {"no", "yes"} for k in held)
    why = explainer.reasons({"cards": 0, "job": 3, "home": True}, order=["home", "job"])
    assert "it is with a home" in str(why) or "job is a clerk" in str(why)


def test_ranges_are_those_of_the_free_features() -> None:
    features = clvq.Features(
        [
            clvq.Feature("cards", "whole", lower=0, upper=4),
            clvq.Feature("job", levels=[0, 3, 5], level_labels={3: "a clerk"}),
            clvq.Feature("income", unit="EUR", lower=0),
        ]
    )
    model = clvq.PrototypeModel(
        [[1, 0, 0], [3, 4, 1]], ["no", "yes"], None, ["cards", "job", "income"]
    )
    rules = ["job != 5", "cards <= 3.5", "income <= 2", "cards <= original(cards) + 1"]
    asked = clvq.Explainer(model, features=features, constraints=rules)
    row = {"cards": 0, "job": 0, "income": 0.0}
    by_number = asked.reasons(row, order=["cards", "income"])
    assert by_number.features == ("cards", "income")
    assert dict(by_number.ranges) == {"job": frozenset({0, 3})}
    assert str(by_number).splitlines()[1:] == ["  job 0 or a clerk"]
    by_level = asked.reasons(row, order=["job"])
    assert by_level.features == ("job",)
    assert dict(by_level.ranges) == {"cards": (0, 3), "income": (0.0, 2.0)}
    assert [type(end) for end in by_level.ranges["cards"]] == [int, int]
    assert str(by_level).splitlines()[1:] == ["  cards from 0 to 3", "  income from 0 to 2 EUR"]
    told = by_level.to_dict()["ranges"]
    assert json.loads(json.dumps(told))["cards"] == {"lower": 0, "upper": 3}
    assert set(by_level.features) | set(by_level.ranges) == set(asked.features.names)


@pytest.mark.parametrize("own", [3.5, -2.0, 1.0])
@pytest.mark.parametrize("kind", ["real", "whole"])
def test_ranges_as_seen_end_at_an_input_outside_of_them(own: float, kind: str) -> None:
    own = float(round(own)) if kind == "whole" else own
    model = clvq.PrototypeModel([[0.0, 0.0], [5.0, 5.0]], ["no", "yes"], None, ["a", "b"])
    asked = clvq.Explainer(
        model,
        constraints=clvq.within_data([[0, 0], [1, 1], [2, 2], [3, 3]]),
        features=clvq.Features([clvq.Feature(name, kind) for name in "ab"]),
    )
    why = asked.reasons([0.0, own])
    low, high = min(own, 0.0), max(own, 3.0)
    assert why.features == ("a",)
    assert dict(why.ranges) == {"b": (low, high)}
    assert why.to_dict()["ranges"] == {"b": {"lower": low, "upper": high}}
    assert str(why).splitlines()[1:] == [f"  b from {low:g} to {high:g}"]
    assert (model.predict([[0.0, low], [0.0, high]]) == "no").all()
    # Beyond what was proved the decision is another one.
    assert model.predict([[0.0, 5.0 + 1e-9]])[0] == "yes"


def test_listed_values_are_what_a_reason_says() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 4.0]], ["no", "yes"], None, ["a", "b"])
    asked = clvq.Explainer(model, constraints=["0 <= a", "a <= 5", clvq.OneOf("b", [0, 1, 3])])
    why = asked.reasons([0.0, 1.0])
    assert why.features == ("a",)
    assert dict(why.ranges) == {"b": frozenset({0.0, 1.0, 3.0})}
    assert why.to_dict()["ranges"] == {"b": {"values": [0.0, 1.0, 3.0]}}
    assert str(why).splitlines()[1:] == ["  b 0 or 1 or 3"]
    assert why.constraints == ()
    below = clvq.Explainer(model, constraints=[*asked.constraints, "3 * b <= 4"])
    assert dict(below.reasons([0.0, 1.0]).ranges) == {"b": frozenset({0.0, 1.0})}


@pytest.mark.parametrize(
    ("rule", "keeps"),
    [
        ("a + b <= 1.5", lambda a, b: a + b <= 1.5),
        (clvq.Linear({"a": 1, "b": 1}, "<=", 1.5), lambda a, b: a + b <= 1.5),
        ("if a <= 1 then b <= 1", lambda a, b: (a > 1) | (b <= 1)),
        (
            clvq.If(clvq.Bounds("a", upper=1), clvq.Bounds("b", upper=1)),
            lambda a, b: (a > 1) | (b <= 1),
        ),
        (
            clvq.Quadratic([[1, 0], [0, 1]], 1.5, features=["a", "b"]),
            lambda a, b: a**2 + b**2 <= 1.5,
        ),
        (clvq.Quadratic([[1]], 0.75, features=["b"]), lambda a, b: b**2 <= 0.75),
        ("b not in [2]", lambda a, b: b != 2),
    ],
    ids=["sum", "linear", "rule", "if", "quadratic", "square", "value left out"],
)
def test_what_limits_the_others_beyond_their_ranges_is_named(
    rule: str | clvq.Constraint, keeps: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [1.0, 3.0]], ["no", "yes"], None, ["a", "b"])
    columns = clvq.Features([clvq.Feature("a"), clvq.Feature("b", "whole")])
    bounds = [clvq.Bounds("a", 0, 2), clvq.Bounds("b", 0, 2)]
    asked = clvq.Explainer(model, constraints=[*bounds, rule], features=columns)
    why = asked.reasons([0.0, 0.0], order=["a"])
    assert why.constraints == (rule,)
    words = asked.spoken_constraints[2]
    assert why.to_dict()["constraints"] == [words]
    assert why.text().endswith(f'within their ranges, as long as they keep "{words}".')
    assert why.asked.verify(why.proof) == np.inf
    a, b = np.meshgrid(np.linspace(0, 2, 9), [0.0, 1.0, 2.0])
    assert why.features in (("a",), ())
    a = np.zeros_like(a) if why.features else a
    says = model.predict(np.stack([a.ravel(), b.ravel()], axis=1))
    assert (says[keeps(a, b).ravel()] == "no").all()
    assert (says == "yes").any()  # which the ranges alone would allow
    free = clvq.Explainer(model, constraints=bounds, features=columns)
    assert free.reasons([0.0, 0.0], order=["a"]).features == ("b",)


def test_only_constraints_that_a_reason_needs_are_named() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [1.0, 1.0]], ["no", "yes"], None, ["a", "b"])
    bounds = ["0 <= a", "a <= 2", "0 <= b", "b <= 2"]
    why = clvq.Explainer(model, constraints=[*bounds, "2*a + b <= 1.5"]).reasons([0.2, 0.2])
    assert why.text() == (
        "The answer is no because b is 0.2: it stays so whatever the other features do within "
        'their ranges, as long as they keep "2*a + b <= 1.5".'
    )
    # What is not needed, or is about features that the reason holds alone, is not named.
    loose = clvq.Explainer(model, constraints=[*bounds, "a + b <= 3"]).reasons([0.2, 0.2])
    assert (loose.features, loose.constraints) == (("a", "b"), ())
    alone = clvq.Explainer(model, constraints=[*bounds, "a + b <= 2.5"]).reasons([0.2, 0.2])
    assert (alone.features, alone.constraints) == (("a", "b"), ())
    # Conditions on changes leave more inputs out than are asked about.
    freer = [*bounds, clvq.AtMost(1), clvq.MaxChange("a", 0.1), "if a > original(a) then b <= 1"]
    why = clvq.Explainer(model, constraints=freer).reasons([0.2, 0.2])
    assert (why.features, why.constraints) == (("a", "b"), ())


def test_constraints_on_changes_play_no_part() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 4.0]], ["no", "yes"], None, ["a", "b"])
    ranges = [clvq.Bounds("a", 0, 4), clvq.Bounds("b", 0, 4)]
    on_changes = [clvq.Freeze("a"), clvq.MaxChange("b", 1), "b <= original(b)"]
    free = clvq.Explainer(model, constraints=ranges).reasons([1.0, 0.0])
    bound = clvq.Explainer(model, constraints=ranges + on_changes).reasons([1.0, 0.0])
    assert free.features == bound.features == ("a", "b")
    # A relation between features is one of inputs: "b" cannot go up alone.
    tied = clvq.Explainer(model, constraints=[*ranges, "b <= a"]).reasons([1.0, 0.0])
    assert tied.features == ("a",)


def test_what_is_wrong_is_said() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 4.0]], ["no", "yes"], None, ["a", "b"])
    half = clvq.Explainer(model, constraints=[clvq.Bounds("a", 0, 4), clvq.Bounds("b", 0)])
    with pytest.raises(clvq.InvalidInputError, match="feature 'b' has no range"):
        half.reasons([1.0, 1.0])
    both = clvq.Explainer(model, constraints=[clvq.Bounds("a", 0, 4), clvq.Bounds("b", 0, 4)])
    with pytest.raises(clvq.InvalidInputError, match='the input breaks "b from 0 to 4" as'):
        both.reasons([1.0, 5.0])
    tied = clvq.Explainer(model, constraints=[*both.constraints, "a <= b"])
    with pytest.raises(clvq.InvalidInputError, match="Widen the range, or leave the constraint"):
        tied.reasons([2.0, 1.0])
    with pytest.raises(clvq.InvalidInputError, match="order names 'a' twice"):
        both.reasons([1.0, 1.0], order=["a", 0])
    with pytest.raises(clvq.InvalidInputError, match="expected a list of features"):
        both.reasons([1.0, 1.0], order="a")
    with pytest.raises(clvq.InvalidInputError, match="order is 5; expected a list of features"):
        both.reasons([1.0, 1.0], order=5)  # type: ignore[arg-type]
    with pytest.raises(clvq.UnknownFeatureError, match="'z' does not exist"):
        both.reasons([1.0, 1.0], order=["z"])
    for rows in ([[1.0, 1.0], [2.0, 2.0]], pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]})):
        with pytest.raises(clvq.InvalidInputError, match=r"first are explainer\.reasons\(X\[0\]\)"):
            both.reasons(rows)


def test_witnesses_come_as_the_input_was_given() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["no", "yes"], None, ["a", "b"])
    asked = clvq.Explainer(model, constraints=["0 <= a", "a <= 5", "0 <= b", "b <= 2"])
    given = pd.Series({"name": "Ada", "a": 1.0, "b": 1.0})
    witness = asked.reasons(given).witnesses["a"]
    assert isinstance(witness.row, pd.Series)
    assert dict(witness.row) == {"name": "Ada", "a": witness.x[0], "b": witness.x[1]}
    witness = asked.reasons({"b": 1.0, "a": 1.0}).witnesses["a"]
    assert type(witness.row) is type(asked.explain({"b": 1.0, "a": 1.0}).row)
    assert asked.reasons([1.0, 1.0]).witnesses["a"].row.tolist() == witness.x.tolist()


def test_without_time_nothing_is_claimed() -> None:
    model, table = drawn(2)
    asked = clvq.Explainer(model, constraints=clvq.within_data(table), time_limit=0.0)
    why = asked.reasons(table[0])
    assert (why.status, why.proof, why.features) == ("unknown", None, tuple(NAMES))
    assert "was not found out" in str(why)


def test_shell_tells_reasons(tmp_path: Path) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["no", "yes"], None, ["a", "b"])
    clvq.save(model, tmp_path / "m.clvq")
    rows = pd.DataFrame({"a": [1.0, 3.5], "b": [1.0, 0.0], "other": ["x", "y"]})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    pd.DataFrame({"a": [0.0, 5.0], "b": [0.0, 2.0]}).to_csv(tmp_path / "seen.csv", index=False)
    asked = ("reasons", "m.clvq", "rows.csv", "--within", "seen.csv")
    done = called(*asked, "--outcome", "no=refused", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().splitlines() == [
        "The answer is refused because a is 1: it stays so whatever the other features do within "
        "their ranges. Ranges: b from 0 to 2.",
        "The answer is yes because a is 3.5: it stays so whatever the other features do within "
        "their ranges. Ranges: b from 0 to 2.",
    ]
    # A row above what was seen, and a rule between features.
    pd.DataFrame({"a": [0.0], "b": [2.5]}).to_csv(tmp_path / "out.csv", index=False)
    beyond = ("reasons", "m.clvq", "out.csv", "--within", "seen.csv", "--first", "b")
    done = called(*beyond, "--constraint", "a <= b - 1.5", cwd=tmp_path)
    assert done.stdout.decode().splitlines() == [
        "The answer is no whatever the features are within their ranges, as long as they keep "
        '"a <= b - 1.5". Ranges: a from 0 to 5; b from 0 to 2.5.'
    ]
    done = called(*beyond, "--constraint", "a <= 1 + b", "--format", "json", cwd=tmp_path)
    told = json.loads(done.stdout)[0]
    assert (told["features"], told["constraints"]) == (["a"], [])
    assert told["ranges"] == {"b": {"lower": 0.0, "upper": 2.5}}
    done = called(*asked, "--format", "json", "--first", "b", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert [why["features"] for why in told] == [["a"], ["a"]]
    assert told[0]["witnesses"]["a"]["prediction"] == "yes"
    done = called("reasons", "m.clvq", "rows.csv", cwd=tmp_path)
    assert done.returncode == 1
    assert b"row 0: feature 'a' has no range" in done.stderr


def test_reasons_of_clusters_speak_of_clusters() -> None:
    rows = np.array([[0.0, 0.0], [0.0, 1.0], [6.0, 0.0], [6.0, 1.0]])
    clusters = KMeans(2, n_init=1, random_state=0).fit(rows)
    why = clvq.Explainer(clusters, constraints=clvq.within_data(rows)).reasons([1.0, 0.0])
    assert why.features == ("x0",)
    assert why.text().startswith(f"The cluster is {why.prediction} because x0 is 1: ")
    assert why.witnesses["x0"].text().startswith("The cluster would have been ")
    assert why.text(subject="this row").startswith("This row is ")


def test_ranges_are_said_in_a_sentence_of_their_own() -> None:
    columns = [clvq.Feature("a"), clvq.Feature("owner", "boolean"), clvq.Feature("c", unit="EUR")]
    scales, names = np.diag([1, 0.01, 1e-9]), ["a", "owner", "c"]
    model = clvq.PrototypeModel([[0, 0, 0], [9, 1, 1]], ["no", "yes"], scales, names)
    rules = ["0 <= a", "a <= 9", "0 <= c", "c <= 1234.5"]
    asked = clvq.Explainer(model, constraints=rules, features=clvq.Features(columns))
    why = asked.reasons({"a": 1.0, "owner": True, "c": 0.0})
    assert why.features == ("a",)
    assert why.text(ranges=True, numbers="1.234,5") == (
        f"{why.text()} Ranges: owner no or yes; c from 0 to 1.234 EUR."
    )


def test_reasons_travel_to_other_processes() -> None:
    model = clvq.PrototypeModel([[1, 1], [5, 2]], ["no", "yes"], None, ["pay", "age"])
    seen = clvq.within_data([[1.0, 1.0], [2.0, 0.0], [6.0, 3.0], [5.0, 2.0]])
    why = clvq.Explainer(model, constraints=seen).reasons([1.0, 1.0])
    again = pickle.loads(pickle.dumps(why))
    assert (str(again), again.to_dict()) == (str(why), why.to_dict())
    with pytest.raises(TypeError):
        again.ranges["age"] = (0, 1)


def test_inputs_with_another_label_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that changes nothing of what is to be kept shows that this does not settle anything.

    Nor is it asked whether all features together do, which took a proof for each prototype.
    """
    W = np.zeros((8, 6))
    W[:, 0] = np.arange(8)
    model = clvq.PrototypeModel(W, np.arange(8) // 4)
    ranges = [clvq.Bounds(j, 0.0, 8.0) for j in range(6)]
    honest, looked = reasons.found_room, []

    def found_room(answers: Any, question: Any, context: Any, budget: int) -> Any:
        box = context.rules.template.box(question.x)
        looked.append(frozenset(np.flatnonzero(box[0] == box[1]).tolist()))
        return honest(answers, question, context, budget)

    monkeypatch.setattr(reasons, "found_room", found_room)
    why = clvq.Explainer(model, constraints=ranges).reasons([1.0] * 6, order=[5, 4, 3, 2, 1, 0])
    assert why.status == "optimal"
    assert why.features == ("x0",)
    assert frozenset(range(6)) not in looked
    assert looked[0] == frozenset()
    assert all(0 in kept for kept in looked[1:])  # the first one found changes x0 alone
