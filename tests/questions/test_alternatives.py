"""Several ways, against all choices of features that may change."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

import counterlvq as clvq
from tests.support.quick import seeds
from tests.support.shell import called

LABELS = np.array(["granted", "refused", "unsure"])


def drawn_model(rng: np.random.Generator, d: int) -> clvq.PrototypeModel:
    """Prototypes of three labels, two each, under a shared metric."""
    omega = rng.normal(size=(d, d))
    return clvq.PrototypeModel(rng.normal(size=(6, d)), np.repeat(LABELS, 2), omega)


def least_on(model: clvq.PrototypeModel, x: np.ndarray, target: str, at: tuple[int, ...]) -> float:
    """Least sum of changes of the features `at` alone that leads to a label."""
    P, M, best = model.prototypes, model.omegas.T @ model.omegas, np.inf
    for i in np.flatnonzero(model.labels == target):
        rivals = np.flatnonzero(model.labels != target)
        normals = 2.0 * (P[rivals] - P[i]) @ M
        rights = np.einsum("ij,jk,ik->i", P[rivals], M, P[rivals]) - P[i] @ M @ P[i] - normals @ x
        rows = normals[:, list(at)]
        found = linprog(
            np.ones(2 * len(at)), A_ub=np.hstack([rows, -rows]), b_ub=rights, method="highs"
        )
        best = min(best, float(found.fun) if found.status == 0 else np.inf)
    return best


@pytest.mark.parametrize("seed", seeds(4, quick=2))
def test_each_way_is_the_cheapest_that_differs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model, x = drawn_model(rng, 4), rng.normal(size=4)
    explainer = clvq.Explainer(model)
    supports = list(chain.from_iterable(combinations(range(4), k) for k in range(1, 5)))
    for target in LABELS:
        ways = explainer.alternatives(x, target=target, count=20)
        if ways[0].cost == 0.0:
            assert len(ways) == 1
            continue
        costs = {at: least_on(model, x, target, at) for at in supports}
        earlier: list[set[int]] = []
        for asked, cf in zip(ways.asked, ways, strict=False):
            assert cf.status == "optimal"
            left = [at for at in supports if not any(old <= set(at) for old in earlier)]
            assert cf.cost == pytest.approx(min(costs[at] for at in left), rel=1e-6)
            assert asked.verify(cf) == cf.lower_bound
            earlier.append(set(np.flatnonzero(cf.delta).tolist()))
        left = [at for at in supports if not any(old <= set(at) for old in earlier)]
        assert all(costs[at] == np.inf for at in left)
        assert ways.is_complete
        assert ways.asked[-1].verify(ways.end) == np.inf


def test_a_count_is_an_end_and_costs_rise() -> None:
    rng = np.random.default_rng(9)
    model, x = drawn_model(rng, 5), rng.normal(size=5)
    ways = clvq.Explainer(model).alternatives(x, count=3)
    assert len(ways) == 3
    assert ways.end is None
    assert not ways.is_complete
    assert sorted(cf.cost for cf in ways) == [cf.cost for cf in ways]
    assert len(str(ways).splitlines()) >= 4


def test_squared_costs_need_a_limit() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 3.0]], ["no", "yes"], None, ["pay", "age"])
    with pytest.raises(clvq.InvalidInputError, match="AtMost"):
        clvq.Explainer(model, clvq.Euclidean()).alternatives([0.0, 0.0])
    limited = clvq.Explainer(model, clvq.Euclidean(), [clvq.AtMost(1)])
    ways = limited.alternatives([0.0, 0.0])
    assert [[change.feature for change in cf.changes] for cf in ways] == [["pay"], ["age"]]
    assert ways.is_complete


def test_no_way_at_all() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], None, ["pay"])
    ways = clvq.Explainer(model, constraints=[clvq.Freeze("pay")]).alternatives([0.0], "yes")
    assert len(ways) == 0
    assert ways.is_complete
    assert ways.end is not None
    assert str(ways) == ways.end.text()
    assert "There is no counterfactual for " in str(ways)


def test_a_row_that_has_the_target_says_so() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], None, ["pay"])
    ways = clvq.Explainer(model).alternatives([4.0], "yes")
    assert len(ways) == 1
    assert str(ways) == "The answer is yes already; nothing needs to change."


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "3"])
def test_what_is_no_count_is_refused(count: object) -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
    with pytest.raises(clvq.InvalidInputError, match="how many ways"):
        clvq.Explainer(model).alternatives([0.0], count=count)


def test_shell_limits_changes_and_lists_ways(tmp_path: Path) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 3.0]], ["no", "yes"], None, ["pay", "age"])
    clvq.save(model, tmp_path / "m.clvq")
    pd.DataFrame({"pay": [0.0], "age": [0.0]}).to_csv(tmp_path / "rows.csv", index=False)
    asked = ("explain", "m.clvq", "rows.csv", "--cost", "euclidean", "--format")
    told = json.loads(called(*asked, "json", "--at-most", "1", cwd=tmp_path).stdout)
    assert [change["feature"] for change in told[0]["changes"]] == ["pay"]
    few = ("--at-most", "1", "--alternatives", "5")
    (row,) = json.loads(called(*asked, "json", *few, cwd=tmp_path).stdout)
    changed = [[change["feature"] for change in way["changes"]] for way in row["ways"]]
    assert (changed, row["is_complete"]) == ([["pay"], ["age"]], True)
    said = called(*asked, "text", *few, cwd=tmp_path)
    assert said.stdout.decode().splitlines()[-1] == "There is no further way."
    assert said.returncode == 0
    none = called(*asked, "json", "--at-most", "0", cwd=tmp_path)
    assert none.returncode == 3
    for words in (("csv", *few), ("json", *few, "--ranges"), ("json", "--at-most", "-1")):
        assert called(*asked, *words, cwd=tmp_path).returncode == 2
    refused = called(*asked, "json", "--alternatives", "2", cwd=tmp_path)
    assert b"--at-most" in refused.stderr


def test_printed_costs_are_in_order() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 3.0]], ["no", "yes"], None, ["pay", "age"])
    ways = clvq.Explainer(model).alternatives([1.0, 1.0], target="yes")
    costs = [26.0141, 26.205, 26.2114]

    def upset(shown: list[float]) -> list[str]:
        # Rounding a way for people may make it dearer than the next one.
        some = [replace(ways[0], cost=cost) for cost in costs]
        for cf, cost in zip(some, shown, strict=True):
            cf.__dict__["shown"] = replace(ways[0].shown, cost=cost)
        told = str(clvq.Alternatives(tuple(some), (), None)).splitlines()[-2]
        return told.split()

    assert upset([26.02, 26.21, 26.22]) == ["cost", "26.02", "26.21", "26.22"]
    mended = upset([26.0141, 26.3066, 26.2114])
    assert mended == ["cost", "before", "rounding", "26.0141", "26.205", "26.2114"]


def test_table_names_features_with_their_units() -> None:
    pay, age = clvq.Feature("pay", unit="EUR", label="monthly pay"), clvq.Feature("age")
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 3.0]], ["no", "yes"], None, ["pay", "age"])
    asked = clvq.Explainer(model, features=clvq.Features([pay, age]))
    lines = str(asked.alternatives([1.0, 1.0], target="yes")).splitlines()
    assert lines[2].startswith("monthly pay (EUR)   1  ")
    assert lines[3].startswith("age                 1  ")


def test_table_says_what_was_wished_for_and_what_is_proved() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 3.0]], ["no", "yes"], None, ["pay", "age"])
    ways = clvq.Explainer(model).alternatives([1.0, 1.0], target="yes")
    lines = str(ways).splitlines()
    assert lines[1].split() == ["class", "no", "yes", "yes"]
    assert lines[5].split() == ["status", "optimal", "optimal"]
    open_ways = replace(ways, ways=tuple(replace(cf, status=clvq.Status.FEASIBLE) for cf in ways))
    assert str(open_ways).splitlines()[5].split() == ["status", "feasible", "feasible"]
    clusters = replace(ways, ways=tuple(replace(cf, part="cluster") for cf in ways))
    assert str(clusters).splitlines()[1].startswith("cluster")


@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_frame_has_a_row_for_each_way(kind: str) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 3.0]], ["no", "yes"], None, ["pay", "age"])
    x = {"pay": [1.0], "age": [1.0]}
    given = {
        "array": lambda: [1.0, 1.0],
        "pandas": lambda: pd.DataFrame(x, index=[7]),
        "polars": lambda: pytest.importorskip("polars").DataFrame(x),
    }[kind]()
    ways = clvq.Explainer(model).alternatives(given, target="yes")
    frame = pickle.loads(pickle.dumps(ways)).to_frame()
    assert type(frame).__module__.split(".")[0] == ("polars" if kind == "polars" else "pandas")
    batch = clvq.Explainer(model).explain_batch([[1.0, 1.0]], target="yes").to_frame()
    assert list(frame.columns) == list(batch.columns)
    assert len(frame) == len(ways) == 2
    for k, cf in enumerate(ways):
        row = {name: frame[name].to_list()[k] for name in frame.columns}
        assert [row["pay_after"], row["age_after"]] == cf.x.tolist()
        assert [row["pay_before"], row["age_before"]] == [1.0, 1.0]
        assert [row["pay_change"], row["age_change"]] == cf.delta.tolist()
        assert (row["cost"], row["lower_bound"]) == (cf.cost, cf.lower_bound)
        assert (row["status"], row["prediction"]) == ("optimal", "yes")
        assert row["prototype"] == cf.prototype
    if kind != "polars":
        assert list(frame.index) == [0, 1]
    stuck = clvq.Explainer(model, constraints=[clvq.Freeze("pay", "age")])
    assert len(stuck.alternatives(given, target="yes").to_frame()) == 0
