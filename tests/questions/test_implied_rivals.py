"""Relative similarity and room for drift: plain cone programs, grids and Monte Carlo."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import counterlvq as clvq
from counterlvq.certificates.unions import JoinedCertificate
from tests.support.quick import seeds
from tests.support.shell import called

LABELS = np.array(["granted", "refused", "unsure"])
RULES = [clvq.RelativeSimilarity(0.3), clvq.RelativeSimilarity(0.005), clvq.Drift(0.15)]


def drawn(seed: int, metric: str, scale: np.ndarray) -> tuple[clvq.PrototypeModel, np.ndarray]:
    rng = np.random.default_rng([seed, len(metric)])
    d = scale.size
    omegas = {"diagonal": rng.uniform(0.5, 2.0, d) / scale, "full": rng.normal(size=(d, d)) / scale}
    points = rng.normal(size=(6, d)) * 2.0 * scale
    model = clvq.PrototypeModel(points, np.repeat(LABELS, 2), omegas[metric])
    return model, rng.normal(size=(2, d)) * scale


def least_cost(
    model: clvq.PrototypeModel, rule: Any, x: np.ndarray, target: str, cost: str, scale: np.ndarray
) -> float:
    """One plain cone program for each prototype, written from the definition."""
    F = np.asarray(model.omegas)
    F = (np.diag(F) if F.ndim == 1 else F) * scale
    P, best = model.prototypes / scale, np.inf
    for i in np.flatnonzero(model.labels == target):
        y = cp.Variable(x.size)
        rules = []
        for k in np.flatnonzero(model.labels != target):
            a, u = F @ (P[k] - P[i]), F @ (y - P[i])
            if isinstance(rule, clvq.Drift):
                r = rule.radius
                rules.append(4 * r * cp.norm(u) + 4 * r**2 <= a @ a - 2 * a @ u)
            else:
                t = rule.theta
                rules.append(2 * t * cp.sum_squares(u) + 2 * (1 - t) * a @ u <= (1 - t) * (a @ a))
        change = y - x / scale
        spent = cp.norm1(change) if cost == "absolute" else cp.sum_squares(change)
        problem = cp.Problem(cp.Minimize(spent), rules)
        problem.solve(solver=cp.CLARABEL)
        if problem.status == "optimal":
            best = min(best, float(problem.value))
    return best


def is_kept(model: clvq.PrototypeModel, rule: Any, y: np.ndarray, label: str) -> bool:
    """By the definition, in rational numbers."""
    scores = [model.exact_distance(y, k) for k in range(model.n_prototypes)]
    own = min(score for score, other in zip(scores, model.labels, strict=True) if other == label)
    others = [score for score, other in zip(scores, model.labels, strict=True) if other != label]
    if isinstance(rule, clvq.RelativeSimilarity):
        return all((d - own) >= Fraction(rule.theta) * (d + own) for d in others)
    r = Fraction(rule.radius)
    return all(d - own >= 4 * r**2 and (d - own - 4 * r**2) ** 2 >= 16 * r**2 * own for d in others)


@pytest.mark.covering
@pytest.mark.parametrize("seed", seeds(6, 1))
@pytest.mark.parametrize("metric", ["diagonal", "full"])
@pytest.mark.parametrize("cost", ["absolute", "squared"])
def test_answers_are_those_of_plain_cone_programs(metric: str, cost: str, seed: int) -> None:
    scale = np.array([1e-3, 1.0, 1e4])
    model, rows = drawn(seed, metric, scale)
    for rule in RULES:
        spent = clvq.Manhattan(1 / scale)
        if cost == "squared":
            spent = clvq.Mahalanobis(np.diag(1 / scale**2))
        explainer = clvq.Explainer(model, spent, confidence=rule)
        for x, target in product(rows, LABELS):
            cf = explainer.explain(x, target=target)
            least = least_cost(model, rule, x, target, cost, scale)
            if least == np.inf:
                assert cf.status == "infeasible"
                assert explainer.verify(cf) == np.inf
                continue
            assert cf.status == "optimal"
            assert model.predict([cf.x])[0] == target
            assert is_kept(model, rule, cf.x, target)
            assert cf.cost == pytest.approx(least, rel=1e-5, abs=1e-6)
            assert cf.lower_bound <= least * (1 + 1e-5) + 1e-6
            assert explainer.verify(cf) == cf.lower_bound or cf.cost == 0.0
            shown = np.asarray(cf.shown.values)
            assert is_kept(model, rule, shown, target)


def test_no_drift_within_the_radius_changes_the_answer() -> None:
    model, rows = drawn(3, "full", np.ones(3))
    F = np.asarray(model.omegas)
    cf = clvq.Explainer(model, confidence=clvq.Drift(0.15)).explain(rows[0], target="granted")
    rng = np.random.default_rng(0)
    back = np.linalg.inv(F)
    for n in range(2000):
        moves = rng.normal(size=model.prototypes.shape)
        if n == 0:  # the worst: rivals come nearer, own prototypes go away
            signs = np.where(model.labels == "granted", -1.0, 1.0)
            moves = signs[:, None] * (cf.x - model.prototypes) @ F.T
        moves *= 0.15 * (1 - 1e-9) / np.linalg.norm(moves, axis=1, keepdims=True)
        drifted = clvq.PrototypeModel(model.prototypes + moves @ back.T, model.labels, F)
        assert drifted.predict([cf.x])[0] == "granted"


def test_whole_numbers_and_rules_by_trying_all() -> None:
    model, _ = drawn(1, "full", np.ones(2))
    grid = np.array(list(product(range(-8, 9), repeat=2)), dtype=float)
    whole = clvq.Features([clvq.Feature("x0", "whole"), clvq.Feature("x1", "whole")])
    for rule in (clvq.RelativeSimilarity(0.2), clvq.Drift(0.1)):
        explainer = clvq.Explainer(model, constraints=["x0 <= 2"], features=whole, confidence=rule)
        for target in LABELS:
            good = [y for y in grid if y[0] <= 2 and is_kept(model, rule, y, target)]
            cf = explainer.explain([0.0, 0.0], target=target)
            least = min((np.abs(y).sum() for y in good), default=np.inf)
            if least < np.inf:
                assert (cf.status, cf.cost) == ("optimal", least)
            else:
                assert not cf.status.has_answer or cf.cost > 8


def test_the_reject_option_is_answered() -> None:
    model = clvq.PrototypeModel([[0, 0], [4, 1], [1, 5]], ["a", "b", "c"])
    explainer = clvq.Explainer(model, confidence=clvq.RelativeSimilarity(0.5))
    unsure = explainer.explain([2.0, 0.4], target=["a", "b", "c"])
    assert unsure.cost > 0
    assert is_kept(model, explainer.confidence, unsure.x, unsure.prediction)
    sure = explainer.explain([0.2, 0.1], target=["a", "b", "c"])
    assert (sure.cost, sure.status) == (0.0, "optimal")


def test_rivals_that_are_not_implied_prove_nothing() -> None:
    model, rows = drawn(0, "full", np.ones(3))
    for rule in RULES:
        explainer = clvq.Explainer(model, confidence=rule)
        cf = explainer.explain(rows[0], target="unsure")
        first, *others = cf.certificate.parts
        # A rival nearer than the rule allows would prove too much.
        nearer = np.vstack([first.points, model.prototypes[first.prototype] + 1e-3])
        forged = replace(first, points=nearer, rivals=(*first.rivals, first.rivals[0]))
        claimed = replace(cf, certificate=JoinedCertificate((forged, *others)))
        assert explainer.verify(claimed) == 0.0
        own = replace(first, rivals=(first.prototype,) * len(first.rivals))
        assert explainer.verify(replace(cf, certificate=JoinedCertificate((own, *others)))) == 0.0


def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    for theta in (-0.1, 1.0, np.nan):
        with pytest.raises(clvq.InvalidInputError, match="RelativeSimilarity: theta"):
            clvq.RelativeSimilarity(theta)
    with pytest.raises(clvq.InvalidInputError, match="Drift: radius is 0; expected a positive"):
        clvq.Drift(0)
    local = clvq.PrototypeModel(np.eye(2), ["a", "b"], [np.eye(2), 2 * np.eye(2)])
    model = clvq.PrototypeModel(np.eye(2), ["a", "b"])
    levels = clvq.Features([clvq.Feature("x0", levels=[0, 1]), "x1"])
    with pytest.raises(clvq.NotSupportedError, match="Drift is for shared metrics"):
        clvq.Explainer(local, confidence=clvq.Drift(0.1))
    with pytest.raises(clvq.NotSupportedError, match="Drift is for columns of numbers"):
        clvq.Explainer(model, features=levels, confidence=clvq.Drift(0.1))
    for rule in RULES[1:]:
        explainer = clvq.Explainer(model, confidence=rule)
        clvq.save_certificate(explainer.explain([0.0, 1.0]), tmp_path / "a.jsonl", explainer)
        assert clvq.verify_certificates(tmp_path / "a.jsonl")[0].verified
    none = clvq.Explainer(model, constraints=["x0 == 0.5"], confidence=clvq.Drift(3.0))
    assert none.explain([0.5, 0.0]).status == "infeasible"


def test_a_rival_that_drifts_over_the_prototype_leaves_nothing() -> None:
    # |y - w_k| is at most |y - w_i| + 1 everywhere, by the triangle inequality.
    model = clvq.PrototypeModel([[0.0, 0.0], [1.0, 0.0], [9.0, 0.0]], ["a", "b", "b"])
    explainer = clvq.Explainer(model, confidence=clvq.Drift(0.51))
    none = explainer.explain([0.0, 0.0], target="a")
    assert none.status == "infeasible"
    assert explainer.verify(none) == np.inf
    one = explainer.explain([0.0, 0.0], target="b")
    assert one.status == "optimal"
    assert one.x == pytest.approx([5.01 + 4e-8, 0.0], abs=1e-6)  # |x| = |x - 9| + 1.02
    room = clvq.Explainer(model, confidence=clvq.Drift(0.5)).explain([0.5, 0.0], target="a")
    assert room.cost == pytest.approx(0.5, abs=1e-6)  # on the ray behind the prototype


def test_the_shell_asks_for_both(tmp_path: Path) -> None:
    model, rows = drawn(0, "full", np.ones(2))
    clvq.save(model, tmp_path / "model.clvq")
    pd.DataFrame(rows, columns=["x0", "x1"]).to_csv(tmp_path / "rows.csv", index=False)
    for text, rule in (
        ("similarity=0.2", clvq.RelativeSimilarity(0.2)),
        ("drift=0.05", clvq.Drift(0.05)),
    ):
        asked = ("explain", "model.clvq", "rows.csv", "--format", "json", "--confidence", text)
        done = called(*asked, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        batch = clvq.Explainer(model, confidence=rule).explain_batch(rows)
        assert [row["cost"] for row in told] == pytest.approx(batch.cost.tolist(), rel=1e-9)


def test_without_time_nothing_is_claimed() -> None:
    model, rows = drawn(0, "full", np.ones(3))
    for rule in RULES:
        asked = clvq.Explainer(model, confidence=rule, time_limit=0.0)
        for x, target in product(rows, LABELS):
            cf = asked.explain(x, target=target)
            if cf.status.has_answer:
                assert is_kept(model, rule, cf.x, target)
            assert cf.lower_bound <= clvq.Explainer(model, confidence=rule).explain(x, target).cost


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Chebyshev()], ids=repr)
def test_files_show_what_planes_beyond_the_cell_prove(cost: clvq.Cost, tmp_path: Path) -> None:
    """Where a plane does not touch the rule, a tangent with the same normal says as much.

    Such planes came from answers far behind a rival, and had no words in a file, which then
    claimed less than the answer, and said so in a warning.
    """
    path, beyond = tmp_path / "proof.jsonl", 0
    for seed in range(48, 58):
        rng = np.random.default_rng(seed)
        W = 2.0 * rng.normal(size=(3, 2))
        model, x = clvq.PrototypeModel(W, np.arange(3) % 2), 2.0 * rng.normal(size=2)
        rule = clvq.Drift(float(rng.choice([0.3, 0.6])))
        explainer = clvq.Explainer(model, cost, confidence=rule)
        cf = explainer.explain(x, target=1 - int(model.predict(x[None])[0]))
        if not cf.status.has_answer:
            continue
        clvq.save_certificate(cf, path, explainer)  # a warning is an error here
        (verdict,) = clvq.verify_certificates(path)
        assert verdict.verified
        assert verdict.bound == pytest.approx(cf.lower_bound, rel=1e-6)
        assert isinstance(cf.certificate, JoinedCertificate)
        beyond += sum(
            bool(_towards(W[k], point, W[i]) > 0)
            for part in cf.certificate.parts
            for i, k, point in zip(
                [part.prototype] * 9, part.rivals, part.points[:, :2], strict=False
            )
        )
    assert beyond  # the planes are there that this is about


def _towards(rival: np.ndarray, point: np.ndarray, own: np.ndarray) -> float:
    """Positive where a rival has drifted so that its plane does not touch the rule."""
    step = point - rival
    return float((rival - own) @ step + step @ step)


@pytest.mark.parametrize("cost", [clvq.Manhattan([2, 10]), clvq.Chebyshev([2, 10])])
def test_a_rival_that_rounding_parts_from_the_prototype_leaves_no_value_of_a_grid(
    cost: clvq.Cost, tmp_path: Path
) -> None:
    """The metric maps both to 8.5 but for a last digit, and whole numbers to whole numbers."""
    points, metric = [[3.5, 0.25], [2.5, 0.1 * 3]], [[1, 20], [2, 40]]
    model = clvq.PrototypeModel(points, ["a", "b"], metric, ["n", "v"])
    columns = [
        clvq.Feature("n", "whole", lower=-1, upper=3),
        clvq.Feature("v", lower=0, upper=0.4, decimals=1),
    ]
    rule, path = clvq.RelativeSimilarity(0.5), tmp_path / "proof.jsonl"
    explainer = clvq.Explainer(model, cost, features=clvq.Features(columns), confidence=rule)
    own, other = model.distances(np.array(list(product(range(-1, 4), np.arange(5) / 10)))).T
    assert not (1.5 * own <= 0.5 * other).any()
    cf = explainer.explain([3.0, 0.4], target="a")
    assert cf.status is clvq.Status.INFEASIBLE
    assert explainer.verify(cf) == np.inf
    clvq.save_certificate(cf, path, explainer)  # a warning is an error here
    assert clvq.verify_certificates(path)[0].verified


@pytest.mark.parametrize("gap", [2.0**-42, 2.0**-24])
@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()])
def test_a_rival_next_to_the_prototype_leaves_room_there_alone(
    cost: clvq.Cost, gap: float, tmp_path: Path
) -> None:
    points = [[0.7, 0.25], [0.7 + gap, 0.25 + 3 * gap], [3, 2]]
    model = clvq.PrototypeModel(points, ["a", "b", "b"], feature_names=["u", "v"])
    for theta in (0.05, 0.5, 0.9):
        rule, path = clvq.RelativeSimilarity(theta), tmp_path / "proof.jsonl"
        there = clvq.Explainer(model, cost, confidence=rule).explain([2.0, 1.0], target="a")
        assert there.status.has_answer
        # The ball lies within some 60 times the gap of the prototype.
        np.testing.assert_allclose(there.x, points[0], rtol=0, atol=100 * gap)
        beside = clvq.Explainer(model, cost, ["u >= 1"], confidence=rule)
        cf = beside.explain([2.0, 1.0], target="a")
        assert cf.status is clvq.Status.INFEASIBLE
        clvq.save_certificate(cf, path, beside)
        assert clvq.verify_certificates(path)[0].verified
