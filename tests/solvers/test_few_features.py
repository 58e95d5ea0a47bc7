"""Relaxations that begin with a few features, against those that lift them all."""

from __future__ import annotations

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.certificate_files.lines import Writer, exact
from counterlvq.programs.nonconvex import FormSides
from counterlvq.search import seen_space
from counterlvq.solvers import low_rank
from counterlvq.solvers.absolute_dual import AbsoluteDual, Shares
from counterlvq.solvers.few_features import over_few
from counterlvq.solvers.interior_point import solved
from counterlvq.solvers.metric_space import Cuts, MetricSpace, side_products
from tests.support.local_questions import draw

WIDTH = 14


def drawn(seed: int, n: int = WIDTH, rivals: int = 3) -> Shares:
    """Conditions that zero does not meet, and that single features or two of them can."""
    rng = np.random.default_rng(seed)
    F = np.zeros((rivals, n + 1, n + 1))
    part = rng.normal(size=(rivals, n, n)) / np.sqrt(n)
    F[:, 1:, 1:] = 0.3 * (part + part.transpose(0, 2, 1))
    F[:, 0, 1:] = F[:, 1:, 0] = rng.normal(size=(rivals, n))
    c = np.full(rivals, 0.5)
    nothing = np.zeros(n)
    both = np.ones((2, n))
    return Shares(np.eye(n), nothing, nothing, both, F, c, np.zeros((n, 0)), np.zeros(0), 0)


def with_sides(shares: Shares, seed: int) -> Shares:
    """No feature may go far up, and some not at all."""
    n = shares.sign.size
    most = np.where(np.random.default_rng(seed).random(n) < 0.3, 0.0, 0.6)
    return shares._replace(slopes=np.eye(n), b=most)


@pytest.mark.parametrize("sided", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_it_comes_to_the_same_bound_with_feasible_multipliers(seed: int, sided: bool) -> None:
    shares = with_sides(drawn(seed), seed) if sided else drawn(seed)
    whole = AbsoluteDual(shares)
    goal = 0.9
    all_of_them = solved(whole, whole.start(), goal, 1e-6, 0.0, np.inf)
    assert all_of_them is not None
    few = over_few(whole, np.zeros(WIDTH, dtype=bool), goal, 1e-6, 0.0, np.inf)
    if few is None:
        return  # more features matter than are worth holding back
    assert min(few.value, goal) == pytest.approx(min(all_of_them.value, goal), abs=2e-5)
    Z = np.zeros((WIDTH, WIDTH))
    Z[np.triu_indices(WIDTH, 1)] = 0.5 * few.pairs
    Z = Z + Z.T
    limit = 0.5 * (few.shares[:, None] + few.shares[None, :])
    assert (np.abs(Z) <= limit + 1e-12).all()
    assert (few.charges >= 0).all()
    assert (few.shares >= 0).all()
    assert (few.rows >= 0).all()


def test_most_questions_need_few_features() -> None:
    """Else the test above would show nothing."""
    found = [
        over_few(AbsoluteDual(drawn(seed)), np.zeros(WIDTH, dtype=bool), 0.9, 1e-6, 0.0, np.inf)
        for seed in range(8)
    ]
    assert sum(each is not None for each in found) >= 2


def test_a_search_that_begins_with_few_proves_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_space, "_LEAST_WIDTH", 1)
    monkeypatch.setattr(seen_space, "_LEAST_PLAIN", 1)
    used, watched = [], low_rank.over_few
    monkeypatch.setattr(low_rank, "over_few", lambda *told: used.append(watched(*told)) or used[-1])
    for seed in range(6):
        question = draw("per prototype", "l1", seed, d=6)
        answers = []
        for least in (1, 99):
            monkeypatch.setattr(low_rank, "LEAST_WIDTH", least)
            explainer = question.explainer("global")
            cf = explainer.explain(question.x, question.target)
            assert explainer.verify(cf) == cf.lower_bound
            answers.append(cf)
        one, other = answers
        assert one.status == other.status
        if one.status == "optimal":
            assert one.lower_bound <= other.cost * (1 + 1e-9)
            assert other.lower_bound <= one.cost * (1 + 1e-9)
    assert used  # not by each: some are settled by a coarse bound


def test_its_proofs_pass_the_exact_checker() -> None:
    rng = np.random.default_rng(3)
    d = 20
    prototypes = rng.normal(size=(4, d))
    omegas = [np.eye(d) + 0.3 * rng.normal(size=(d, d)) for _ in prototypes]
    model = clvq.PrototypeModel(prototypes, [0, 0, 1, 1], omegas)
    explainer = clvq.Explainer(model, clvq.Manhattan())
    cf = explainer.explain(prototypes[0], target=1)
    writer = Writer.of(explainer)
    line = writer.line(cf)
    assert cf.status == "optimal"
    assert not writer.lowered
    assert writer.checker.shown(exact(line)).is_closed


@pytest.mark.parametrize("d", [10, 40])
def test_bounds_on_all_features_do_not_multiply_each_two_of_many(d: int) -> None:
    nothing = np.zeros((0, d))
    space = MetricSpace(np.eye(d), np.eye(d), True)
    sides = FormSides(np.eye(d), np.full(d, -1.0), np.ones(d))
    none = FormSides(nothing, np.zeros(0), np.zeros(0))
    cuts = Cuts.of(space, none, np.zeros((0, 0), dtype=bool), sides)
    products = side_products(cuts, np.arange(d))
    pairs = sum(i != j for _, i, j in products.kind)
    assert len(products.kind) - pairs == d
    assert pairs == (2 * d * (d - 1) if d == 10 else 0)
