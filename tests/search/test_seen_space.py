"""Relaxations of what the metrics see, with cuts across linear forms, against all that is known."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import counterlvq as clvq
from counterlvq.certificate_files.lines import Writer, exact
from counterlvq.certificates import check_certificate as exactly
from counterlvq.certificates.boxes import BoxCertificate, BoxTree
from counterlvq.search import seen_space, strategies
from tests.search.test_local_optima import assert_solved
from tests.support.catalogue import Price
from tests.support.local_questions import LocalQuestion, draw
from tests.support.quick import some

GAP = 1e-4


@pytest.fixture(autouse=True)
def any_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lift what the metrics see also where there are few features."""
    monkeypatch.setattr(seen_space, "_LEAST_WIDTH", 1)
    monkeypatch.setattr(seen_space, "_LEAST_PLAIN", 1)


def behind_projection(cost: str, seed: int, d: int = 5, seen: int = 2) -> LocalQuestion:
    """Metrics that see `seen` directions of `d` features."""
    question = draw("per prototype", cost, seed, d=d)
    rng = np.random.default_rng(seed)
    turn = rng.normal(size=(seen, d))
    omegas = [rng.normal(size=(seen, seen)) @ turn for _ in question.omegas]
    return replace(question, name=f"projected, {cost}, {seed}", omegas=omegas)


def trees(cf: clvq.Counterfactual) -> tuple[BoxTree, ...]:
    assert isinstance(cf.certificate, BoxCertificate)
    return cf.certificate.trees


each_cost = pytest.mark.parametrize("cost", ["l1", "l2", "mahalanobis"])


@each_cost
@pytest.mark.parametrize("seed", some(range(12), 1))
def test_scip_agrees_behind_a_projection(cost: str, seed: int) -> None:
    question = behind_projection(cost, seed)
    explainer = question.explainer("auto")
    cf = explainer.explain(question.x, question.target)
    assert_solved(question, cf)
    assert explainer.verify(cf) == cf.lower_bound
    for tree in trees(cf):
        seen = np.concatenate([tree.forms.reshape(-1, 5), *question.omegas])
        assert np.linalg.matrix_rank(seen, tol=1e-9) == 2  # cuts go across what metrics see


@each_cost
@pytest.mark.parametrize("seed", some(range(12), 2))
def test_scip_agrees_where_metrics_see_everything(cost: str, seed: int) -> None:
    question = draw("per prototype", cost, seed, d=3)
    cf = question.explain("auto")
    assert_solved(question, cf)


@each_cost
@pytest.mark.parametrize("seed", some(range(20, 40), 3))
def test_lifting_all_features_finds_the_same(
    cost: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = behind_projection(cost, seed, d=4)
    seen = question.explain("auto")
    monkeypatch.setattr(seen_space, "_LEAST_WIDTH", 100)
    whole = question.explain("auto")
    assert seen.status == "optimal"
    assert seen.cost <= whole.cost * (1 + 1.01 * GAP)
    assert max(seen.lower_bound, whole.lower_bound) <= min(seen.cost, whole.cost) * (1 + 1e-9)


@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_no_sampled_point_beats_a_bound(cost: str) -> None:
    question = behind_projection(cost, 3, d=6, seen=3)
    cf = question.explain("auto")
    rng = np.random.default_rng(0)
    points = np.concatenate([
        question.x + cf.cost * rng.normal(size=(4000, 6)) * rng.random((4000, 1)),
        cf.x + 0.1 * cf.cost * rng.normal(size=(4000, 6)),
    ])  # fmt: skip
    good = np.isin(question.model().predict(points), list(question.targets))
    assert good.any()
    costs = np.array([float(question.cost(point)) for point in points[good]])
    assert costs.min() >= cf.lower_bound * (1 - 1e-9)


@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_order_and_units_of_columns_do_not_matter(cost: str) -> None:
    question = behind_projection(cost, 5)
    cf = question.explain("auto")
    order, unit = np.array([3, 0, 4, 1, 2]), 2.0 ** np.array([10, -7, 0, 3, -20])
    changed = replace(
        question,
        prototypes=(question.prototypes * unit)[:, order],
        omegas=[(omega / unit)[:, order] for omega in question.omegas],
        x=(question.x * unit)[order],
        price=_repriced(question, cost, unit, order),
    )
    other = changed.explain("auto")
    assert other.status == cf.status == "optimal"
    assert other.cost == pytest.approx(cf.cost, rel=1.01 * GAP)


def _repriced(question: LocalQuestion, cost: str, unit: Any, order: Any) -> Price:
    model, price = question.model(), question.price
    eye = np.eye(model.n_features)
    whole = [float(price.public.value(row)) for row in eye]
    if cost == "l1":
        weights = (np.array(whole) / unit)[order]
        return replace(price, public=clvq.Manhattan(weights=weights))
    weights = (np.array(whole) / unit**2)[order]
    return replace(price, public=clvq.Mahalanobis(np.diag(weights)))


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()])
def test_columns_that_nothing_sees_change_nothing(cost: Any) -> None:
    """A constant column that no metric sees, and one that is there twice."""
    question = behind_projection("l1", 8)
    plain = clvq.Explainer(question.model(), cost).explain(question.x)
    unseen = [np.column_stack([omega, np.zeros(len(omega))]) for omega in question.omegas]
    wider = clvq.PrototypeModel(
        np.column_stack([question.prototypes, np.full(len(question.prototypes), 7.0)]),
        question.labels, omegas=unseen,
    )  # fmt: skip
    cf = clvq.Explainer(wider, cost).explain(np.append(question.x, 7.0))
    assert cf.status == plain.status == "optimal"
    assert cf.cost == pytest.approx(plain.cost, rel=1.01 * GAP)
    twice = [np.column_stack([omega, omega[:, 0]]) for omega in question.omegas]
    doubled = clvq.PrototypeModel(
        np.column_stack([question.prototypes, question.prototypes[:, 0]]),
        question.labels, omegas=twice,
    )  # fmt: skip
    frozen = clvq.Explainer(doubled, cost, [clvq.Freeze(5)])
    cf = frozen.explain(np.append(question.x, question.x[0]), target=plain.prediction)
    assert cf.status.has_answer


# --- certificates -------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_the_exact_checker_confirms_cuts_where_metrics_see_everything(cost: str) -> None:
    """Cuts go across mixtures there too, and not along features."""
    found = 0
    for seed in range(12):
        question = draw("per prototype", cost, seed, d=4)
        explainer = question.explainer("auto")
        cf = explainer.explain(question.x, question.target)
        cut = [tree for tree in trees(cf) if len(tree.forms)]
        if cf.status != "optimal" or not cut:
            continue
        found += 1
        assert explainer.verify(cf) == cf.lower_bound
        for tree in cut:
            shapes = {prices.form_cross.shape for prices in tree.prices}
            assert shapes == {(len(tree.forms), len(tree.forms))}
            assert (tree.feature[tree.feature >= 0] >= 4).all()
        writer = Writer.of(explainer)
        line = writer.line(cf)
        assert not writer.lowered
        assert writer.checker.shown(exact(line)).is_closed
    assert found


def cut_across_forms() -> tuple[LocalQuestion, clvq.Explainer, clvq.Counterfactual]:
    """Find a proof that needs cuts across forms."""
    for seed in range(40):
        question = behind_projection("l1", seed, d=5, seen=3)
        explainer = question.explainer("auto")
        cf = explainer.explain(question.x, question.target)
        if cf.status == "optimal" and any((tree.feature >= 5).any() for tree in trees(cf)):
            return question, explainer, cf
    raise AssertionError("no proof cuts across a form")


def test_the_exact_checker_confirms_cuts_across_forms() -> None:
    _, explainer, cf = cut_across_forms()
    writer = Writer.of(explainer)
    line = writer.line(cf)
    kinds = {cell["kind"] for cell in line["proof"]["cells"]}
    nodes = [node["kind"] for cell in line["proof"]["cells"] for node in cell["nodes"]]
    assert "form tree" in kinds
    assert "form cut" in nodes
    assert not writer.lowered
    verdict = writer.checker.shown(exact(line))
    assert verdict.is_closed
    assert verdict.bound >= Fraction(line["answer"]["lower_bound"])


def _mutants(tree: BoxTree, rng: np.random.Generator) -> list[BoxTree]:
    """Other forms, other cuts, other multipliers: all of them proofs of something else."""
    forms = tree.forms * rng.uniform(0.2, 3.0, size=tree.forms.shape)
    moved = np.where(tree.feature >= 0, tree.at * rng.uniform(-2, 2), tree.at)
    louder = tuple(
        replace(
            prices, form_low=7.0 * prices.form_low, form_cross=rng.random(prices.form_cross.shape)
        )
        for prices in tree.prices
    )
    return [
        replace(tree, forms=forms), replace(tree, forms=-tree.forms), replace(tree, at=moved),
        replace(tree, prices=louder), replace(tree, forms=forms, prices=louder, at=moved),
    ]  # fmt: skip


def test_tampered_cuts_prove_nothing_false() -> None:
    question, explainer, cf = cut_across_forms()
    asked = explainer.question_for(question.x, cf.target)
    rng = np.random.default_rng(1)
    for _ in range(6):
        for n, tree in enumerate(trees(cf)):
            for mutant in _mutants(tree, rng):
                told = BoxCertificate((*trees(cf)[:n], mutant, *trees(cf)[n + 1 :]))
                # A cost above that of the answer leaves room for claims that are false.
                assert told.lower_bound(asked, 3.0 * cf.cost) <= cf.cost * (1 + 1e-9)


def test_forms_that_are_none_prove_nothing() -> None:
    question, explainer, cf = cut_across_forms()
    asked = explainer.question_for(question.x, cf.target)
    broken = [
        np.full_like(trees(cf)[0].forms, np.nan), trees(cf)[0].forms[:, :2], trees(cf)[0].forms[:1],
        trees(cf)[0].forms.tolist(),
    ]  # fmt: skip
    for forms in broken:
        told = BoxCertificate(tuple(replace(tree, forms=forms) for tree in trees(cf)))
        assert told.lower_bound(asked, cf.cost) == 0.0


def test_a_file_with_tampered_forms_is_refuted_or_true() -> None:
    _, explainer, cf = cut_across_forms()
    writer = Writer.of(explainer)
    line = writer.line(cf)
    cell = next(cell for cell in line["proof"]["cells"] if cell["kind"] == "form tree")
    for change in ("forms", "form", "unknown"):
        told: Any = exact(line)
        at = line["proof"]["cells"].index(cell)
        mutant = told["proof"]["cells"][at]
        node = next(each for each in mutant["nodes"] if each["kind"] == "form cut")
        if change == "forms":
            mutant["forms"][node["form"]] = [[0, Fraction(1)]]
        elif change == "form":
            node["form"] = len(mutant["forms"])
        else:
            mutant["kind"] = "tree"
        # A bound that is asked for above the cost would be false.
        told["answer"]["lower_bound"] = told["answer"]["cost"] * 2
        with pytest.raises(exactly.Refused):
            writer.checker.check(told)


def test_absolute_costs_under_metrics_that_see_all_agree_with_the_lifting_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Above a width the same relaxation is solved on its dual side: same costs, both proved."""
    rng, d = np.random.default_rng(4), 13
    omegas = rng.normal(size=(6, d, d)) / np.sqrt(d) + np.eye(d)
    model = clvq.PrototypeModel(rng.normal(size=(6, d)), [0, 0, 0, 1, 1, 1], omegas=omegas)
    found = {}
    for width in (d, d + 1):
        monkeypatch.setattr("counterlvq.search.seen_space._LEAST_PLAIN", width)
        explainer = clvq.Explainer(model)
        for target in (0, 1):
            cf = explainer.explain(model.prototypes[3 * (1 - target)], target)
            assert cf.status == "optimal"
            assert explainer.verify(cf) == cf.lower_bound
            found[width, target] = cf
    for target in (0, 1):
        here, there = found[d, target], found[d + 1, target]
        assert here.lower_bound <= there.cost * (1.0 + 1e-9)
        assert there.lower_bound <= here.cost * (1.0 + 1e-9)


def wide(seed: int, d: int) -> tuple[clvq.PrototypeModel, np.ndarray, int]:
    """Six prototypes of two classes, whose metrics see three directions of d columns."""
    rng = np.random.default_rng(seed)
    P, W = rng.normal(size=(3, d)), rng.normal(size=(6, d)) * 1.5
    omegas = [rng.normal(size=(3, 3)) @ P for _ in range(6)]
    model = clvq.PrototypeModel(W, [0, 1] * 3, omegas=omegas)
    x = W[0] + 0.5 * rng.normal(size=d)
    return model, x, 1 - int(model.predict([x])[0])


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=["absolute", "squared"])
@pytest.mark.parametrize("seed", some(range(6), 1))
def test_a_ball_that_binds_nothing_changes_nothing(
    seed: int, cost: clvq.Cost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no relaxation lifts all columns for its sake; one that binds is obeyed, and costs."""
    model, x, target = wide(seed, 16)
    free = clvq.Explainer(model, cost).explain(x, target)
    far = float(((np.asarray(free.x) - x) ** 2).sum())
    nearer = clvq.Quadratic(np.eye(16), 0.99 * far, center=x)
    held = clvq.Explainer(model, cost, [nearer]).explain(x, target)
    if held.status.has_answer:
        assert ((np.asarray(held.x) - x) ** 2).sum() <= 0.99 * far * (1.0 + 1e-9)
        assert held.cost >= free.lower_bound
        assert held.lower_bound >= free.lower_bound * (1.0 - GAP)
    else:
        assert held.status == "infeasible"

    def refuse(*_: Any) -> None:
        raise AssertionError("all columns were lifted")

    monkeypatch.setattr(seen_space.SeenBranching, "_relaxed_whole", refuse)
    loose = clvq.Explainer(model, cost, [clvq.Quadratic(np.eye(16), 4.0 * far, center=x)])
    cf = loose.explain(x, target)
    assert cf.status == free.status == "optimal"
    assert cf.cost == pytest.approx(free.cost, rel=2 * GAP)
    assert loose.verify(cf) == cf.lower_bound


@pytest.mark.parametrize("seed", some(range(6), 1))
def test_prices_that_differ_by_direction_keep_bounds_true(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the same question with all columns lifted, which is closed."""
    model, x, target = wide(seed, 10)
    prices = clvq.Manhattan(increase=np.linspace(1.0, 1.5, 10), decrease=np.linspace(1.3, 1.0, 10))
    with monkeypatch.context() as patch:
        patch.setattr(strategies, "space_of", lambda _: None)
        closed = clvq.Explainer(model, prices).explain(x, target)
    assert closed.status == "optimal"
    monkeypatch.setattr(strategies, "_SEEN_BUDGET", 10)
    explainer = clvq.Explainer(model, prices)
    cf = explainer.explain(x, target)
    assert any(len(tree.forms) for tree in trees(cf)) or cf.status == "optimal"
    assert cf.lower_bound <= closed.cost
    assert cf.lower_bound > 0.5 * closed.cost
    assert explainer.verify(cf) == cf.lower_bound


@pytest.mark.parametrize("turn", [3.0, 1.0 / 3.0])
@pytest.mark.parametrize("width", [10, 20])
@pytest.mark.parametrize("is_plain", [False, True])
def test_multipliers_show_what_the_method_says_where_prices_differ_by_direction(
    width: int, turn: float, is_plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which of both ways the tangent may use up is no matter of taste."""
    model, x, target = wide(2, width)
    if is_plain:
        factors = np.random.default_rng(2).normal(size=(len(model.prototypes), width, width))
        model = clvq.PrototypeModel(model.prototypes, model.labels, omegas=factors)
        target = 1 - int(model.predict([x])[0])
    seen = list[tuple[float, float]]()
    relaxed = seen_space.SeenBranching._relaxed

    def spy(self: Any, node: Any, problem: Any, box: Any, cap: float) -> Any:
        found = relaxed(self, node, problem, box, cap)
        if self._last is not None and node.came_by < 0:
            bound = self._bound(node.prototype, found.prices, box, cap)
            seen.append((min(self._last.value, 1.0) * cap, bound))
        return found

    monkeypatch.setattr(seen_space.SeenBranching, "_relaxed", spy)
    prices = clvq.Manhattan(increase=np.ones(width), decrease=np.full(width, turn))
    clvq.Explainer(model, prices).explain(x, target)
    assert seen
    for value, bound in seen:
        assert bound >= 0.999 * value


def test_no_limit_of_time_leaves_no_less_of_a_bound_than_a_short_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is known of a cell without a relaxation is known where none is begun."""
    model, x, target = wide(3, 12)
    monkeypatch.setattr(seen_space.SeenBranching, "_is_over", lambda *_: True)
    limited = clvq.Explainer(model, time_limit=60.0).explain(x, target)
    free = clvq.Explainer(model).explain(x, target)
    assert free.cost == limited.cost
    assert free.lower_bound >= limited.lower_bound > 0.0


@each_cost
def test_short_steps_are_not_shared_by_threads_of_blas(
    monkeypatch: pytest.MonkeyPatch, cost: str
) -> None:
    """They wait by spinning, which takes ten times as long where processors are busy."""
    question, counts = behind_projection(cost, 3), list[int]()
    relax = seen_space.relax_seen

    def spy(*given: Any) -> Any:
        counts.extend(threads())
        return relax(*given)

    def threads() -> list[int]:
        return [
            lib["num_threads"] for lib in threadpool_info() if lib["internal_api"] == "openblas"
        ]

    monkeypatch.setattr(seen_space, "relax_seen", spy)
    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        question.explainer("auto").explain(question.x, question.target)
        assert threads() == before
    assert set(counts) == ({1} if before else set())
