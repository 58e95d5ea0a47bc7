"""Models with many features: what treats features one by one takes no factorisation."""

from __future__ import annotations

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.problem.targets import wished_prototypes
from counterlvq.programs import kernel_data as families
from counterlvq.programs.kernel_data import KernelData
from counterlvq.search.strategies import Exact


def family(model: clvq.PrototypeModel, cost: clvq.Cost, rules: list[clvq.Constraint]) -> KernelData:
    answers = clvq.Explainer(model, cost, rules).prepared_for().answers
    assert isinstance(answers, Exact)
    found = answers.prepared(wished_prototypes(model, 1, -1))[1]
    assert found is not None
    return found


@pytest.mark.parametrize("kind", ["absolute", "diagonal", "full"])
def test_rows_are_those_of_the_definition(kind: str) -> None:
    """A cell is ``2 (f_k - f_i)' F B u <= lead`` with ``delta = B u`` and a plain cost in u."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 6))
        prices, S = rng.uniform(0.3, 3.0, d), rng.normal(size=(d, d))
        matrix = {
            "absolute": np.diag(prices**2),
            "diagonal": np.diag(prices),
            "full": S @ S.T + np.eye(d),
        }[kind]
        cost = clvq.Manhattan(prices) if kind == "absolute" else clvq.Mahalanobis(matrix)
        omegas = [None, rng.normal(size=(d, d)), np.diag(rng.uniform(0.5, 2.0, d))][seed % 3]
        model = clvq.PrototypeModel(rng.normal(size=(5, d)), [0, 1, 0, 1, 1], omegas=omegas)
        rules: list[clvq.Constraint] = [clvq.Freeze(0)] if seed % 2 else []
        rules.append(clvq.Linear(rng.normal(size=d), "<=", 9.0))
        got = family(model, cost, rules)
        kept, B = got.columns, got.B if got.B.size else np.diag(got.B_diagonal)
        assert bool(got.B.size) == (kind == "full")
        plain = B.T @ matrix[np.ix_(kept, kept)] @ B
        assert np.allclose(plain, np.eye(kept.size), atol=1e-12)
        F = np.eye(d) if omegas is None else omegas
        steps = 2.0 * F[:, kept] @ B
        assert np.allclose(got.TN, model.anchors[got.targets] @ steps, atol=1e-12)
        assert np.allclose(got.RN, model.anchors[got.rivals] @ steps, atol=1e-12)
        assert np.array_equal(got.RNT, got.RN.T)
        assert np.allclose(got.C, got.A[:, kept] @ B, atol=1e-12)
        assert np.allclose(got.B_lengths, np.linalg.norm(B, axis=1), rtol=1e-14)


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=repr)
def test_wide_plain_model_is_answered_without_a_factorisation(
    cost: clvq.Cost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand: the way to the bisector of two prototypes, straight or along one feature."""

    def refused(*given: object) -> None:
        raise AssertionError("a cost that treats features one by one was factorised")

    monkeypatch.setattr(families, "root_of", refused)
    monkeypatch.setattr(families.np.linalg, "inv", refused)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        W = rng.normal(size=(2, 300))
        apart = W[1] - W[0]
        behind, normal = float(apart @ apart), 2.0 * apart
        by_hand = behind / np.abs(normal).max()
        if isinstance(cost, clvq.Euclidean):
            by_hand = behind**2 / float(normal @ normal)
        model = clvq.PrototypeModel(W, [0, 1])
        cf = clvq.Explainer(model, cost).explain(W[0], target=1)
        assert cf.status == "optimal"
        assert cf.lower_bound <= by_hand * (1 + 1e-12)
        assert cf.cost == pytest.approx(by_hand, rel=1e-6)


def test_costs_of_single_features_take_vectors_and_no_matrices() -> None:
    d = 3000
    model = clvq.PrototypeModel(np.random.default_rng(0).normal(size=(2, d)), [0, 1])
    explainer = clvq.Explainer(model, clvq.Euclidean())
    explainer.explain(model.prototypes[0], target=1)
    assert family(model, clvq.Euclidean(), []).nbytes < 64 * 8 * d
    assert not isinstance(explainer.prepared_for().template.L, np.ndarray)
