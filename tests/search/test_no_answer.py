"""Local questions without an answer: claims are verified, and proofs need no bounds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.certificates.boxes import BoxCertificate, BoxTree
from tests.support.certificate_corpus import told


def never_nearer(seed: int, width: int = 2) -> tuple[clvq.PrototypeModel, np.ndarray]:
    """Two prototypes at one place: ``4 q + 0.5`` is nowhere below q, so that 1 is never said."""
    rng = np.random.default_rng(seed)
    P, place = rng.normal(size=(2, width)), rng.normal(size=width)
    model = clvq.PrototypeModel([place, place], [0, 1], omegas=[P, 2 * P], offsets=[0.0, 0.5])
    return model, place + rng.normal(size=width)


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=["absolute", "squared"])
@pytest.mark.parametrize(("seed", "width"), [(3, 2), (28, 2), (29, 2), (3, 3), (28, 5), (29, 12)])
def test_what_is_infeasible_is_verified_as_infeasible(
    seed: int, width: int, cost: clvq.Cost, tmp_path: Path
) -> None:
    """Also where metrics see two directions of many columns, and nothing limits the others."""
    model, x = never_nearer(seed, width)
    explainer = clvq.Explainer(model, cost)
    cf = explainer.explain(x, target=1)
    assert cf.status == "infeasible"
    assert explainer.verify(cf) == cf.lower_bound == np.inf
    clvq.save_certificate(cf, tmp_path / "one.jsonl", explainer)
    assert [line.split()[0] for line in told(tmp_path / "one.jsonl")] == ["VERIFIED"]


def test_a_contradiction_above_a_cut_holds_for_both_parts() -> None:
    """A box that is shown to be empty and cut all the same is empty to all who ask."""
    model, x = never_nearer(3)
    explainer = clvq.Explainer(model, clvq.Euclidean())
    cf = explainer.explain(x, target=1)
    assert isinstance(cf.certificate, BoxCertificate)
    (tree,) = cf.certificate.trees
    top = tree.prices[0]
    cut = BoxTree(
        tree.prototype, 0.0, np.array([0, -1, -1]), np.zeros(3), np.array([1, -1, -1]),
        np.array([2, -1, -1]), (top, top.times(0.0), top.times(0.0)), np.full(3, np.inf),
    )  # fmt: skip
    question = explainer.question_for(cf.original_values, cf.target)
    certificate = BoxCertificate((cut,))
    assert certificate.excludes_all(question)
    assert explainer.verify(replace(cf, certificate=certificate)) == np.inf


def test_where_nothing_is_known_no_conflict_is_called_irreducible() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["no", "yes"], omegas=[np.eye(2)] * 2)
    cf = clvq.Explainer(model, time_limit=0.0).explain([1.0, 0.0])
    assert cf.status == "unknown"
    assert cf.conflict == ()
    assert not cf.conflict_is_irreducible


@pytest.mark.parametrize("turn", [1e-3, 1e-9])
def test_an_answer_far_away_is_never_excluded(turn: float) -> None:
    """Metrics that see all but the same directions: where one sees nothing, the other loses."""
    model, x = never_nearer(3, 4)
    P = model.factors[0]
    omegas = [P, 2.0 * P + turn * np.eye(2, 4)]
    asked = clvq.PrototypeModel(model.prototypes, [0, 1], omegas=omegas, offsets=[0.0, 0.5])
    unseen = np.linalg.svd(omegas[1])[2][-2:]
    way = unseen[int(np.abs(P @ unseen.T).sum(axis=0).argmax())]
    far = asked.prototypes[0] + 1e3 / turn * way
    assert asked.predict([far])[0] == 1
    for cost in (clvq.Manhattan(), clvq.Euclidean()):
        assert clvq.Explainer(asked, cost).explain(x, target=1).status != "infeasible"


COSTS = pytest.mark.parametrize(
    "cost",
    [clvq.Manhattan(), clvq.Euclidean(), clvq.Chebyshev()],
    ids=lambda cost: type(cost).__name__,
)


@COSTS
@pytest.mark.parametrize("target", ["a", "b", "c"])
def test_equalities_that_leave_one_point_are_decided(
    cost: clvq.Cost, target: str, tmp_path: Path
) -> None:
    """No condition limits a column by itself; solved together they leave a point of class b."""
    rng = np.random.default_rng(0)
    model = clvq.PrototypeModel(
        rng.normal(size=(4, 3)), [*"abcb"], rng.normal(size=(4, 3, 3)), feature_names=[*"uvw"]
    )
    x, point, A = model.prototypes[0], np.array([0.3, -1.1, 0.7]), rng.normal(size=(3, 3)).round(2)
    assert model.predict([point])[0] == "b"
    rows = [
        " + ".join(f"{a!r} * {name}" for a, name in zip(row, "uvw", strict=True)) + f" == {right!r}"
        for row, right in zip(A.tolist(), (A @ point).tolist(), strict=True)
    ]
    explainer = clvq.Explainer(model, cost, constraints=[*rows, "u - v <= 40"])
    cf = explainer.explain(x + 0.5, target=target)
    assert cf.status == ("optimal" if target == "b" else "infeasible"), cf.reason
    assert explainer.verify(cf) == cf.lower_bound
    clvq.save_certificate(cf, tmp_path / "one.jsonl", explainer)
    assert [line.split()[0] for line in told(tmp_path / "one.jsonl")] == ["VERIFIED"]
    (quick,) = clvq.verify_certificates(tmp_path / "one.jsonl")
    assert quick.verified


@COSTS
@pytest.mark.parametrize("width", [2, 5])
def test_one_rival_that_is_always_nearer_rules_a_cell_out(
    width: int, cost: clvq.Cost, tmp_path: Path
) -> None:
    """Whatever other rivals there are, and also for the largest change."""
    near, x = never_nearer(3, width)
    rng = np.random.default_rng(3)
    model = clvq.PrototypeModel(
        np.concatenate([near.prototypes, rng.normal(size=(2, width))]), [0, 1, 2, 3],
        [*near.factors, *rng.normal(size=(2, width, width))], offsets=[0.0, 0.5, 0.0, 0.0],
    )  # fmt: skip
    explainer = clvq.Explainer(model, cost)
    cf = explainer.explain(x, target=1)
    assert cf.status == "infeasible", cf.reason
    assert explainer.verify(cf) == np.inf
    clvq.save_certificate(cf, tmp_path / "one.jsonl", explainer)
    assert [line.split()[0] for line in told(tmp_path / "one.jsonl")] == ["VERIFIED"]


def test_a_largest_change_is_no_feature_that_nothing_limits() -> None:
    """It has no end while no answer is known, which says nothing about the question."""
    rng = np.random.default_rng(1)
    model = clvq.PrototypeModel(rng.normal(size=(2, 2)), [0, 1], rng.normal(size=(2, 2, 2)))
    explainer = clvq.Explainer(model, clvq.Chebyshev(), time_limit=0.0)
    free = explainer.explain(model.prototypes[0], target=1)
    assert free.status == "unknown"
    assert "nothing limits x0, x1: " in free.reason
    assert "largest change" not in free.reason
    bounds = [clvq.Bounds(name, -9.0, 9.0) for name in ("x0", "x1")]
    held = clvq.Explainer(model, clvq.Chebyshev(), constraints=bounds, time_limit=0.0)
    assert "nothing limits" not in held.explain(model.prototypes[0], target=1).reason
