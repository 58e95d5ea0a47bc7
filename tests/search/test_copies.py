"""Prototypes that a metric cannot tell apart: the first of them wins everywhere, others nowhere.

Answers are compared with linear programs over all cells. Which cells there are is decided by whole
numbers, in which the drawn prototypes and metrics are.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import linprog

import counterlvq as clvq
from counterlvq.certificate_files.lines import Writer, text_of
from counterlvq.certificates import check_certificate as checker
from counterlvq.numeric.alike import alike


def drawn(case: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Prototypes, labels, metric and input, all whole numbers, with copies and projected ones."""
    rng = np.random.default_rng(case)
    d, p = int(rng.integers(2, 5)), int(rng.integers(3, 8))
    W = rng.integers(-3, 4, (p, d)).astype(float)
    unseen = rng.integers(-2, 3, d).astype(float)
    unseen[0] = unseen[0] or 1.0
    omega, i = np.zeros((int(rng.integers(1, d + 1)), d)), np.arange(d)
    for row in omega:  # at right angles to what is not seen
        i = rng.permutation(i)
        row[i[0]], row[i[1]] = unseen[i[1]], -unseen[i[0]]
    if case % 3 == 1:
        unseen, omega = np.where(i == 0, 1.0, 0.0), np.diag((i > 0) * rng.integers(1, 3, d)) * 1.0
    for _ in range(int(rng.integers(1, 4))):
        a, b = rng.choice(p, 2, replace=False)
        W[b] = W[a] + float(rng.integers(-2, 3)) * unseen
    labels = rng.integers(0, 3, p)
    labels[0] = (labels[1] + 1) % 3
    return W, labels, omega, rng.integers(-3, 4, d).astype(float)


def least_cost(W, labels, omega, x, target, *, largest: bool) -> float:
    """The least cost by a linear program for each cell that is one; infinite without any."""
    d, best = x.size, np.inf
    for i in np.flatnonzero(labels == target):
        ahead = (W - W[i]) @ omega.T
        if not ahead[:i].any(axis=1).all():
            continue  # as near as an earlier one, everywhere
        rivals = np.flatnonzero((labels != target) & ahead.any(axis=1))
        normals = 2.0 * ahead[rivals] @ omega
        leads = np.einsum("ij,ij->i", normals, (W[rivals] + W[i]) / 2 - x)
        # Where nothing but ties with earlier ones is left, it never wins.
        room = np.hstack([normals, (rivals < i)[:, None]])
        most = linprog([*np.zeros(d), -1.0], room, leads, bounds=[(-1e3, 1e3)] * d + [(-1, 1)])
        if most.status == 2 or -most.fun <= 1e-9:
            continue
        rows = np.hstack([normals, -normals, np.zeros((rivals.size, 1))])
        price, caps = np.ones(2 * d + 1), np.zeros((0, 2 * d + 1))
        if largest:
            price = np.array([*np.zeros(2 * d), 1.0])
            caps = np.hstack([np.eye(d), np.eye(d), -np.ones((d, 1))])
        found = linprog(price, np.vstack([rows, caps]), [*leads, *np.zeros(len(caps))])
        best = min(best, found.fun) if found.status == 0 else best
    return best


def verified(explainer: clvq.Explainer, cf: clvq.Counterfactual) -> checker.Verdict:
    """What the standalone checker verifies of an answer."""
    writer = Writer(explainer.for_files(), "a test")
    parts = (writer.header(apart=False), writer.line(explainer.as_filed(cf)))
    ((_, found),) = checker.verdicts(iter([text_of(part).encode() for part in parts]))
    assert not isinstance(found, str), found
    return found


@pytest.mark.parametrize("case", range(60))
def test_answers_are_those_of_linear_programs(case: int) -> None:
    W, labels, omega, x = drawn(case)
    model = clvq.PrototypeModel(W, labels, omega)
    largest = case % 2 == 1
    explainer = clvq.Explainer(model, cost=clvq.Chebyshev() if largest else clvq.Manhattan())
    for target in sorted({*labels.tolist()} - {model.predict(x[None, :])[0]}):
        least = least_cost(W, labels, omega, x, target, largest=largest)
        cf = explainer.explain(x, target=target)
        if 0.0 <= least <= 1e-12:  # a tie that is lost: what is next to it costs next to nothing
            assert cf.cost <= 1e-9
            continue
        assert cf.status == ("optimal" if least < np.inf else "infeasible"), (case, target)
        if least < np.inf:
            assert cf.lower_bound <= least * (1 + 1e-9) + 1e-12
            assert least <= cf.cost * (1 + 1e-9) + 1e-12
        assert verified(explainer, cf).bound >= cf.lower_bound * (1 - 1e-9)


def test_copy_under_another_label_is_left_out() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0], [4.0, 7.0], [9.0, 0.0]],
                                ["no", "no", "yes", "yes"], [[1.0, 0.0]])  # fmt: skip
    cf = clvq.Explainer(model).explain([1.0, 0.0], target="yes")
    assert cf.status == "optimal"
    assert cf.cost == pytest.approx(5.5, rel=1e-6)
    alone = clvq.PrototypeModel(model.prototypes[:3], model.labels[:3], model.omegas)
    assert clvq.Explainer(alone).explain([1.0, 0.0], target="yes").status == "infeasible"
    first = clvq.PrototypeModel(model.prototypes[[2, 1, 0]], ["yes", "no", "no"], model.omegas)
    cf = clvq.Explainer(first).explain([1.0, 0.0], target="yes")
    assert cf.status == "optimal"
    assert cf.cost == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("metric", [np.array([1.0, 0.0]), [[[1.0, 0.0]]] * 3])
def test_diagonal_and_local_metrics_know_copies_too(metric) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0], [4.0, 7.0]], [0, 1, 2], metric)
    assert model.first_alike.tolist() == [0, 1, 1]
    assert clvq.Explainer(model).explain([1.0, 0.0], target=2).status == "infeasible"


def test_offsets_tell_apart() -> None:
    W, labels = [[4.0, 0.0], [4.0, 7.0], [4.0, 9.0]], [0, 1, 1]
    model = clvq.PrototypeModel(W, labels, [[1.0, 0.0]], offsets=[1.0, 0.5, 1.0])
    assert model.first_alike.tolist() == [0, 1, 0]


def test_what_differs_by_rounding_is_no_copy() -> None:
    """0.1 + 0.2 is not 0.3, and models decide exactly."""
    points, omega = np.array([[0.3, 0.0], [0.1, 0.2]]), np.array([[1.0, 1.0]])
    model = clvq.PrototypeModel(points, [0, 1], omega)
    assert model.first_alike.tolist() == [0, 1]
    twin = clvq.PrototypeModel([[0.3, 0.5], [0.5, 0.3]], [0, 1], omega)
    assert twin.first_alike.tolist() == [0, 0]


@pytest.mark.parametrize("case", range(40))
def test_what_rounding_alone_tells_apart_is_decided_exactly(case: int) -> None:
    """Decimals that would cancel leave their last digits, which say who wins, and are proved."""
    W, labels, omega, x = drawn(case)
    W, omega, x = 0.1 * W, 0.3 * omega, 0.7 * x + 0.05
    model = clvq.PrototypeModel(W, labels, omega)
    cost = [clvq.Manhattan(), clvq.Euclidean(), clvq.Chebyshev()][case % 3]
    explainer = clvq.Explainer(model, cost)
    for target in sorted({*labels.tolist()} - {model.predict(x[None, :])[0]}):
        cf = explainer.explain(x, target=target)
        assert cf.status in ("optimal", "infeasible"), (target, cf.cost, cf.lower_bound)
        found = verified(explainer, cf)
        assert found.bound >= cf.lower_bound * (1 - 1e-9)
        if cf.status == "optimal":
            assert model.predict(cf.values[None, :])[0] == target


def test_many_points_close_together_take_little_time_and_count_as_different() -> None:
    points = 1e15 + np.arange(3000.0)[:, None] * np.array([1.0, 3.0])
    factor = np.array([[1.0, 1.0]])
    found = alike(points, factor, points @ factor.T, np.full(3000, 1e6)).first
    assert (found <= np.arange(3000)).all()
    assert (points[found].sum(axis=1) == points.sum(axis=1)).all()


def test_forged_copies_are_not_believed() -> None:
    """A cell may be left out where the metric sees no difference, and nowhere else."""
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 7.0]], ["no", "yes"], [[1.0, 0.0]])
    explainer = clvq.Explainer(model)
    writer = Writer(explainer.for_files(), "a test")
    header = writer.header(apart=False)
    line = writer.line(explainer.as_filed(explainer.explain([1.0, 0.0], target="yes")))
    line["proof"]["cells"] = []
    text = [json.dumps(part).encode() for part in (header, line)]
    ((_, found),) = checker.verdicts(iter(text))
    assert isinstance(found, str)
    assert "does not follow" in found
