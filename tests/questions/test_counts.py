"""At most so many changes, against all choices of features that may change."""

from __future__ import annotations

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from counterlvq.certificates import check_certificate
from counterlvq.search.strategies import BranchAndBound
from tests.support.certificate_corpus import told
from tests.support.oracles import Question as Asked
from tests.support.oracles import Squared, optimal_cost

LABELS = np.array(["granted", "refused", "unsure"])


def drawn_model(rng: np.random.Generator, d: int, metric: str) -> clvq.PrototypeModel:
    """Prototypes of three labels, two each."""
    omegas = None
    if metric == "shared":
        omegas = rng.normal(size=(d, d))
    elif metric == "local":
        omegas = [rng.normal(size=(d, d)) for _ in range(6)]
    return clvq.PrototypeModel(rng.normal(size=(6, d)), np.repeat(LABELS, 2), omegas)


def least_over_supports(
    model: clvq.PrototypeModel, x: np.ndarray, target: str, cost: str, most: int
) -> float:
    """Try every choice of features that may change: a program of its own for each cell."""
    P, best = model.prototypes, np.inf
    M = np.eye(x.size) if model.omegas is None else model.omegas.T @ model.omegas
    for support in combinations(range(x.size), most):
        at = list(support)
        for i in np.flatnonzero(model.labels == target):
            rivals = np.flatnonzero(model.labels != target)
            normals = 2.0 * (P[rivals] - P[i]) @ M
            rights = np.einsum("ij,jk,ik->i", P[rivals], M, P[rivals]) - P[i] @ M @ P[i]
            rights = rights - normals @ x
            rows = normals[:, at]
            if cost == "absolute":
                found = linprog(
                    np.ones(2 * most), A_ub=np.hstack([rows, -rows]), b_ub=rights, method="highs"
                )
                best = min(best, float(found.fun) if found.status == 0 else np.inf)
            else:
                best = min(best, least_square(rows, rights))
    return best


def least_square(rows: np.ndarray, rights: np.ndarray) -> float:
    """Least |u|^2 with rows u <= rights, over all sets of rows that may be tight."""
    best = np.inf
    for count in range(rows.shape[1] + 1):
        for tight in combinations(range(len(rows)), count):
            A, b = rows[list(tight)], rights[list(tight)]
            u = np.linalg.lstsq(A, b, rcond=None)[0] if count else np.zeros(rows.shape[1])
            if (rows @ u <= rights + 1e-9 * (1.0 + np.abs(rights))).all():
                best = min(best, float(u @ u))
    return best


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("cost", ["absolute", "squared"])
@pytest.mark.parametrize("metric", ["plain", "shared"])
def test_answers_are_the_cheapest_of_all_supports(metric: str, cost: str, most: int) -> None:
    rng = np.random.default_rng([most, len(cost), len(metric)])
    model = drawn_model(rng, 4, metric)
    price = clvq.Manhattan() if cost == "absolute" else clvq.Euclidean()
    explainer = clvq.Explainer(model, price, [clvq.AtMost(most)])
    X = rng.normal(size=(2, 4))
    for target in LABELS:
        batch = explainer.explain_batch(X, target=target)
        for n, x in enumerate(X):
            cf = explainer.explain(x, target=target)
            assert (cf.cost, str(cf.status)) == (batch.cost[n], str(batch.status[n]))
            least = 0.0
            if cf.original_prediction != target:
                least = least_over_supports(model, x, target, cost, most)
            if least == np.inf:
                assert cf.status == "infeasible"
                assert explainer.verify(cf) == np.inf
                continue
            assert cf.status == "optimal"
            assert np.count_nonzero(cf.delta) <= most
            assert cf.cost == pytest.approx(least, rel=1e-6, abs=1e-12)
            assert explainer.verify(cf) == cf.lower_bound or cf.cost == 0.0


def test_local_metrics_by_one_line_per_feature() -> None:
    rng = np.random.default_rng(7)
    model = drawn_model(rng, 3, "local")
    explainer = clvq.Explainer(model, constraints=[clvq.AtMost(1)], method="global")
    x = rng.normal(size=3)
    steps = np.linspace(-20.0, 20.0, 80_001)
    for target in LABELS:
        reached = np.inf
        for j in range(3):
            points = np.tile(x, (steps.size, 1))
            points[:, j] += steps
            said = model.predict(points) == target
            reached = min(reached, np.abs(steps[said]).min(initial=np.inf))
        cf = explainer.explain(x, target=target)
        if reached == np.inf:
            assert not cf.status.has_answer or cf.cost > 20.0
            continue
        assert cf.status == "optimal"
        assert cf.cost == pytest.approx(reached, abs=1e-3)
        assert explainer.verify(cf) == cf.lower_bound or cf.cost == 0.0


def test_named_features_count_and_others_do_not() -> None:
    model = clvq.PrototypeModel(
        [[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]], ["no", "yes"], None, ["a", "b", "c"]
    )
    x = [0.0, 0.0, 0.0]
    limited = clvq.Explainer(model, clvq.Euclidean(), [clvq.AtMost(1, "a", "b")]).explain(x)
    changed = {change.feature for change in limited.changes}
    assert "c" in changed
    assert len(changed & {"a", "b"}) == 1
    # With two features that move, 3 / 2 each: two squares.
    assert limited.cost == pytest.approx(2 * 1.5**2, rel=1e-6)


def test_levels_and_whole_numbers_are_one_feature_each() -> None:
    features = clvq.Features(
        [
            clvq.Feature("cards", kind="whole", lower=0, upper=9),
            clvq.Feature("age", lower=0, upper=9),
        ]
    )
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 3.0]], ["no", "yes"], None, ["cards", "age"])
    explainer = clvq.Explainer(
        model, clvq.Euclidean(), [clvq.AtMost(1), "age <= 4"], features=features
    )
    cf = explainer.explain([0.0, 0.0], target="yes")
    # 8 cards + 6 age >= 25: four cards at a cost of 16, or an age that is not allowed.
    assert cf.status == "optimal"
    assert cf.values.tolist() == [4.0, 0.0]


def test_no_answer_names_what_clashes() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [2.0, 2.0]], ["no", "yes"], None, ["a", "b"])
    rules = [clvq.Bounds("a", 0, 1.5), clvq.AtMost(1), clvq.Bounds("b", 0, 1.5), "a >= 0"]
    explainer = clvq.Explainer(model, constraints=rules)
    cf = explainer.explain([0.0, 0.0], target="yes")
    assert cf.status == "infeasible"
    assert cf.conflict_is_irreducible
    assert set(map(str, cf.conflict)) == {str(rules[0]), str(rules[1]), str(rules[2])}
    assert explainer.verify(cf) == np.inf


def test_nothing_may_change() -> None:
    model = clvq.PrototypeModel([[0.0], [2.0]], [0, 1])
    explainer = clvq.Explainer(model, constraints=[clvq.AtMost(0)])
    assert explainer.explain([0.0], target=1).status == "infeasible"
    assert explainer.explain([0.0], target=0).cost == 0.0


@pytest.mark.parametrize("metric", ["shared", "local"])
def test_files_hold_the_tree_and_the_checker_counts(metric: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    model = drawn_model(rng, 3, metric)
    explainer = clvq.Explainer(model, clvq.Euclidean(), [clvq.AtMost(1)])
    batch = explainer.explain_batch(rng.normal(size=(4, 3)), target=None)
    path = tmp_path / "proofs.jsonl"
    batch.save_certificates(path)
    assert all(verdict.verified for verdict in clvq.verify_certificates(path))
    header, *lines = path.read_text().splitlines()
    assert any('"counted"' in line for line in lines)
    told = json.loads(header)

    def checks(change: int) -> int:
        """Check the file with another limit; hashes are those of the changed question."""
        (rule,) = (item for item in told["question"]["constraints"] if item["kind"] == "at most")
        rule["count"] = change
        mark = check_certificate.fingerprint(check_certificate.parsed(json.dumps(told["question"])))
        out = [json.loads(line) for line in lines]
        for line in out:
            line["hashes"]["question"] = mark
        path.write_text("\n".join(map(json.dumps, [told, *out])))
        return check_certificate.main([str(path)])

    assert checks(1) == 0
    # With a larger count the tree leaves out answers, with a smaller one the answer is none.
    assert checks(2) != 0
    assert checks(0) != 0


def test_a_tree_that_leaves_a_part_out_proves_nothing() -> None:
    rng = np.random.default_rng(4)
    model = drawn_model(rng, 4, "shared")
    explainer = clvq.Explainer(model, clvq.Euclidean(), [clvq.AtMost(1)])
    x = rng.normal(size=4)
    cf = next(cf for cf in (explainer.explain(x, target=label) for label in LABELS) if cf.cost > 0)
    tree = cf.certificate
    assert len(tree.column) > 1
    leaf = next(n for n, j in enumerate(tree.column) if j < 0)
    parts = tuple(None if n == leaf else part for n, part in enumerate(tree.parts))
    assert explainer.verify(replace(cf, certificate=replace(tree, parts=parts))) == 0.0
    # The certificate of one part for the whole says less than is claimed.
    whole = replace(tree, column=(-1,), held=(-1,), changed=(-1,), parts=(tree.parts[-1],))
    assert explainer.verify(replace(cf, certificate=whole)) < cf.lower_bound
    loop = replace(tree, held=(0, *tree.held[1:]))
    assert explainer.verify(replace(cf, certificate=loop)) == 0.0


def test_reasons_take_no_notice_of_it() -> None:
    table = [[1.0, 1.0], [2.0, 0.0], [6.0, 3.0], [5.0, 2.0]]
    model = clvq.PrototypeModel([[1, 1], [5, 2]], ["no", "yes"], None, ["pay", "age"])
    rules = [*clvq.within_data(table), clvq.AtMost(0)]
    assert clvq.Explainer(model, constraints=rules).reasons([1.0, 1.0]).features == ("pay",)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: clvq.AtMost(-1), "count is -1"),
        (lambda: clvq.AtMost(1.5), "count is 1.5"),
        (lambda: clvq.AtMost("age"), "count is 'age'"),
        (lambda: clvq.AtMost(1, ["a", "b"]), "one by one"),
        (lambda: clvq.If("a >= 1", clvq.AtMost(1)), "how many features change"),
    ],
)
def test_what_is_no_limit_is_refused(made: object, words: str) -> None:
    with pytest.raises(clvq.InvalidInputError, match=words.replace("(", ".")):
        made()


def test_unknown_and_repeated_features_are_named() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [2.0, 2.0]], [0, 1], None, ["a", "b"])
    for rule, words in ((clvq.AtMost(1, "c"), "'c'"), (clvq.AtMost(1, "a", 0), "twice")):
        with pytest.raises(clvq.InvalidInputError, match=words):
            clvq.Explainer(model, constraints=[rule])


def test_a_reference_of_another_kind_agrees_without_a_limit() -> None:
    rng = np.random.default_rng(0)
    model = drawn_model(rng, 3, "plain")
    x = rng.normal(size=3)
    explainer = clvq.Explainer(model, clvq.Euclidean(), [clvq.AtMost(3)])
    for target in LABELS:
        cf = explainer.explain(x, target=target)
        asked = Asked(model.prototypes, model.labels, None, x, {target}, Squared(np.eye(3)))
        assert cf.cost == pytest.approx(optimal_cost(asked), rel=1e-6, abs=1e-12)


def drawn_table(seed: int, d: int = 5) -> tuple[clvq.PrototypeModel, np.ndarray]:
    """A model that mixes features, and rows within ranges that leave some of them no way."""
    rng = np.random.default_rng(seed)
    model = clvq.PrototypeModel(
        rng.normal(size=(6, d)) * 1.5, np.repeat(LABELS, 2), rng.normal(size=(d, d))
    )
    return model, rng.uniform(-1.0, 1.0, size=(6, d))


def has_room(
    model: clvq.PrototypeModel,
    x: np.ndarray,
    target: str,
    sides: dict[int, tuple[float, float]],
    most: int,
) -> bool:
    """Whether some choice of features that may change leaves an answer: a program for each."""
    P, M = model.prototypes, model.omegas.T @ model.omegas
    rivals = np.flatnonzero(model.labels != target)
    for support in combinations(range(x.size), most):
        for i in np.flatnonzero(model.labels == target):
            normals = 2.0 * (P[rivals] - P[i]) @ M
            rights = np.einsum("ij,jk,ik->i", P[rivals], M, P[rivals]) - P[i] @ M @ P[i]
            ends = [
                sides.get(j, (-np.inf, np.inf)) if j in support else (x[j], x[j])
                for j in range(x.size)
            ]
            if linprog(np.zeros(x.size), normals, rights - 1e-9, bounds=ends).status == 0:
                return True
    return False


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("cost", [clvq.Manhattan([1.0, 3.0, 0.5, 1.0, 2.0]), clvq.Euclidean()])
@pytest.mark.parametrize("seed", range(4))
def test_runs_of_the_kernel_and_whole_answers_say_the_same(
    seed: int, cost: clvq.Cost, most: int
) -> None:
    model, rows = drawn_table(seed)
    rules = [clvq.Bounds(j, -1.2, 1.2) for j in range(5)] + ["x0 + x1 <= 1.5"] * (seed == 3)
    quick = clvq.Explainer(model, cost, [clvq.AtMost(most), *rules])
    whole = clvq.Explainer(model, cost, [clvq.AtMost(most), *rules], time_limit=600)
    for x in rows:
        for target in LABELS:
            cf, other = (asked.explain(x, target=target) for asked in (quick, whole))
            assert cf.status == other.status
            assert cf.cost == pytest.approx(other.cost, rel=1e-9)
            assert quick.verify(cf) == pytest.approx(cf.lower_bound, rel=1e-9)
            assert whole.verify(replace(other, certificate=cf.certificate)) >= cf.lower_bound * (
                1 - 1e-9
            )
            assert (cf.x != x).sum() <= most or not cf.status.has_answer


def test_what_clashes_leaves_room_without_any_part_of_it() -> None:
    seen = 0
    for seed in range(6):
        model, rows = drawn_table(seed)
        rows = 0.5 * rows
        ends = {j: (-0.55, 0.55 + 0.05 * j) for j in range(5)}
        rules = [clvq.Bounds(j, *ends[j]) for j in ends]
        for most in (1, 2):
            explainer = clvq.Explainer(model, constraints=[*rules, clvq.AtMost(most)])
            for x in rows[:3]:
                for target in LABELS:
                    cf = explainer.explain(x, target=target)
                    assert cf.status.has_answer == has_room(model, x, target, ends, most)
                    if cf.status.has_answer:
                        continue
                    seen += 1
                    assert cf.status == "infeasible"
                    assert explainer.verify(cf) == np.inf
                    assert cf.conflict_is_irreducible
                    kept = {item.feature: ends[item.feature] for item in cf.conflict
                            if isinstance(item, clvq.Bounds)}  # fmt: skip
                    counts = any(isinstance(item, clvq.AtMost) for item in cf.conflict)
                    limit = most if counts else 5
                    assert not has_room(model, x, target, kept, limit)
                    for left_out in kept:
                        fewer = {j: side for j, side in kept.items() if j != left_out}
                        assert has_room(model, x, target, fewer, limit)
                    assert not counts or has_room(model, x, target, kept, 5)
    assert seen  # or nothing has been tried


def test_an_estimator_of_its_own_is_asked_as_well() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 6))
    y = np.where(X[:, 0] + X[:, 1] - X[:, 2] > 0, "yes", "no")
    fitted = clvq.GMLVQ(random_state=0, max_iter=20).fit(X, y)
    rules = clvq.within_data(X, quantiles=(0.2, 0.8))
    for most in (1, 2):
        quick = clvq.Explainer(fitted, constraints=[clvq.AtMost(most), *rules])
        whole = clvq.Explainer(fitted, constraints=[clvq.AtMost(most), *rules], time_limit=600)
        batch = quick.explain_batch(X[:12])
        for n, x in enumerate(X[:12]):
            cf, other = quick.explain(x), whole.explain(x)
            assert cf.status == other.status
            assert cf.cost == pytest.approx(other.cost, rel=1e-9)
            assert (cf.status, cf.cost) == (batch.status[n], batch.cost[n])
            assert set(map(repr, cf.conflict)) <= {repr(item) for item in quick.constraints}
            if cf.status.has_answer:
                assert fitted.predict([cf.x])[0] != fitted.predict([x])[0]


def test_threads_share_what_is_prepared() -> None:
    model, _ = drawn_table(1)
    rows = np.random.default_rng(0).uniform(-1.0, 1.0, size=(24, 5))
    rules = [clvq.Bounds(j, -1.2, 1.2) for j in range(5)]
    explainer = clvq.Explainer(model, constraints=[*rules, clvq.AtMost(2)])
    alone = [explainer.explain(x, target="granted") for x in rows]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: explainer.explain(x, target="granted"), rows))
    for cf, other in zip(found, alone, strict=True):
        assert (cf.status, cf.cost, cf.lower_bound) == (
            other.status, other.cost, other.lower_bound,
        )  # fmt: skip
        np.testing.assert_array_equal(cf.x, other.x)
        assert explainer.verify(cf) == explainer.verify(other)
    again = pickle.loads(pickle.dumps(found[0]))
    assert explainer.verify(again) == explainer.verify(found[0])


def test_least_changes_are_not_blamed_for_what_clashes_without_them() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 4.0]], ["no", "yes"])
    rules = [clvq.MinChange("x0", 0.5), clvq.MinChange("x1", 0.5)]
    bounds = [clvq.Bounds("x0", 0.0, 3.0), clvq.Bounds("x1", 0.0, 3.0)]
    explainer = clvq.Explainer(model, constraints=[*rules, *bounds, clvq.AtMost(1)])
    cf = explainer.explain([0.0, 0.0], target="yes")
    assert cf.status == "infeasible"
    assert cf.conflict == (*bounds, clvq.AtMost(1))
    assert cf.conflict_is_irreducible
    assert explainer.verify(cf) == np.inf
    # Here they are what leaves no room: 4.5 units of x1 alone would do.
    alone = [clvq.MinChange("x1", 6.0), clvq.Bounds("x1", 0.0, 5.0), clvq.Freeze("x0")]
    cf = clvq.Explainer(model, constraints=[*alone, clvq.AtMost(1)]).explain([0.0, 0.0])
    assert cf.status == "infeasible"
    assert alone[0] in cf.conflict


@pytest.mark.parametrize("limit", [1, 2])
def test_predict_is_asked_about_the_input_and_the_answer_and_no_more(limit, monkeypatch) -> None:
    rng, names = np.random.default_rng(0), ["income", "amount", "cards"]
    drawn = rng.normal(size=(200, 3)) * [800.0, 3e3, 2.0] + [3e3, 9e3, 3.0]
    table = pd.DataFrame(drawn, columns=names)
    good = table["income"] - 0.2 * table["amount"] - 300 * table["cards"] > 0
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, good)
    explainer = clvq.Explainer(model, constraints=[clvq.AtMost(limit)])
    never = clvq.Explainer(model, constraints=[clvq.AtMost(limit), clvq.Freeze(*names)])
    rows = table[~model.predict(table)].iloc[:5]
    explainer.explain(rows.iloc[0], target=True)
    asked, own = [], Pipeline.predict
    monkeypatch.setattr(Pipeline, "predict", lambda self, X: asked.append(len(X)) or own(self, X))
    for k in range(len(rows)):
        before = len(asked)
        cf = explainer.explain(rows.iloc[[k]], target=True)
        assert (cf.status, len(cf.changes) <= limit) == ("optimal", True)
        assert len(asked) - before <= 2
    assert sum(asked) <= 3 * len(rows)
    # What the input is called is asked, too, where nothing is found.
    monkeypatch.setattr(Pipeline, "predict", lambda self, X: ~own(self, X))
    assert never.explain(rows.iloc[0], target=True).status != "infeasible"


@pytest.mark.parametrize(
    ("seed", "cost", "most", "target", "status"),
    [
        (26, clvq.Chebyshev(), 1, 1, "optimal"),
        (28, clvq.Euclidean(), 1, 2, "optimal"),
        (39, clvq.Manhattan(), 2, 2, "optimal"),
        (34, clvq.Euclidean(), 1, 0, "infeasible"),
    ],
)
def test_parts_without_an_answer_are_closed_under_local_metrics(
    seed: int, cost: clvq.Cost, most: int, target: int, status: str, tmp_path: Path
) -> None:
    """Nothing limits what is left free there, but for the cost of an answer in another part."""
    rng = np.random.default_rng(seed)
    d, p = int(rng.integers(3, 6)), int(rng.integers(3, 7))
    places, labels = rng.normal(size=(p, d)), rng.permutation(np.arange(p) % 3)
    model = clvq.PrototypeModel(places, labels, rng.normal(size=(p, d, d)))
    explainer = clvq.Explainer(model, cost, constraints=[clvq.AtMost(most)])
    cf = explainer.explain(rng.normal(size=d), target=target)
    assert cf.status == status
    assert explainer.verify(cf) == cf.lower_bound
    clvq.save_certificate(cf, tmp_path / "one.jsonl", explainer)
    assert [line.split()[0] for line in told(tmp_path / "one.jsonl")] == ["VERIFIED"]


@pytest.mark.parametrize("least", [(), (clvq.MinChange(0, 0.01),)], ids=["", "least change"])
def test_what_clashes_however_many_change_is_found_without_closest_answers(
    monkeypatch: pytest.MonkeyPatch, least: tuple[clvq.Constraint, ...]
) -> None:
    """Searches for the closest answer under each set of constraints took most of the time."""
    rng = np.random.default_rng(0)
    W = 2.0 * rng.normal(size=(6, 3))
    omegas = [np.eye(3) + 0.3 * rng.normal(size=(3, 3)) for _ in W]
    model = clvq.PrototypeModel(W, np.arange(6) % 2, omegas)
    tight = [clvq.MaxChange(j, 0.05) for j in range(3)]
    honest, closest = BranchAndBound.find, []

    def find(self: BranchAndBound, *given: Any) -> Any:
        closest.append(given)
        return honest(self, *given)

    monkeypatch.setattr(BranchAndBound, "find", find)
    x = [0.2, 0.2, 0.2]
    explainer = clvq.Explainer(model, constraints=[clvq.AtMost(1), *least, *tight])
    cf = explainer.explain(x, target=1 - int(model.predict([x])[0]))
    assert cf.status == "infeasible"
    assert explainer.verify(cf) == np.inf
    assert set(cf.conflict) <= set(tight)
    assert len(closest) <= 2  # of the whole, and of what was left of it
