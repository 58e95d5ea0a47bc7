"""Listed numbers, least changes of reals and conditions on numbers in compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import counterlvq as clvq
from counterlvq import Feature, Features
from counterlvq.certificates import check_certificate
from counterlvq.search import strategies
from counterlvq.solvers.kernels import branching as kernels
from tests.search.test_compiled_boxes import KERNEL, failing
from tests.support.quick import some

WHOLE = range(-4, 5)
LEVELS = (-1.0, 0.5, 2.0)
FEATURES = Features([
    Feature("p", "whole", lower=-4, upper=4), Feature("q"), Feature("r"),
    Feature("s", levels=LEVELS),
])  # fmt: skip
NAMES = ("least", "listed reals", "listed whole", "if real", "if whole")
Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Drawn:
    """A question with some of the rules, and what an enumeration needs of them."""

    W: Any
    labels: Any
    omega: Any
    weights: Any
    x: Any
    by: float | None
    listed: list[float] | None
    whole: list[int] | None
    if_real: tuple[float, float] | None  # where q >= the first, r <= the second
    if_whole: tuple[int, float] | None  # where p > the first, q >= the second

    @classmethod
    def of(cls, seed: int, unit: float = 1.0) -> Drawn:
        rng = np.random.default_rng([seed, 18])
        chosen = set(rng.permutation(NAMES)[: rng.integers(1, 4)].tolist())
        x = rng.normal(size=4) * 2.0
        x[0], x[3] = np.clip(np.rint(x[0]), -4, 4), rng.choice(LEVELS)
        values = [float(value) for value in np.round(rng.normal(size=3) * 2.0, 2)]
        by, t, u = (float(value) for value in np.round(rng.normal(size=3), 2))
        return cls(
            rng.normal(size=(6, 4)) * 2.0,
            np.array(["a", "b", "c"] * 2),
            rng.normal(size=(4, 4)) if seed % 2 else np.eye(4),
            unit * np.round(rng.uniform(0.5, 2.0, 4), 2),
            x,
            abs(by) + 0.1 if "least" in chosen else None,
            sorted(set(values)) if "listed reals" in chosen else None,
            sorted(set(rng.integers(-4, 5, 3).tolist())) if "listed whole" in chosen else None,
            (t, u) if "if real" in chosen else None,
            (int(rng.integers(-3, 4)), u) if "if whole" in chosen else None,
        )

    @property
    def rules(self) -> list[Any]:
        found: list[Any] = []
        if self.by is not None:
            found.append(clvq.MinChange("q", self.by))
        if self.listed is not None:
            found.append(clvq.OneOf("r", self.listed))
        if self.whole is not None:
            found.append(clvq.OneOf("p", self.whole))
        if self.if_real is not None:
            found.append(f"if q >= {self.if_real[0]!r} then r <= {self.if_real[1]!r}")
        if self.if_whole is not None:
            found.append(f"if p > {self.if_whole[0]} then q >= {self.if_whole[1]!r}")
        return found

    def explainer(self, cost: str = "absolute") -> clvq.Explainer:
        model = clvq.PrototypeModel(self.W, self.labels, self.omega, list("pqrs"))
        price: clvq.Cost = clvq.Manhattan(self.weights)
        if cost == "squared":
            price = clvq.Mahalanobis(np.diag(self.weights[:3] ** 2))
        return clvq.Explainer(model, price, self.rules, features=FEATURES)

    def ranges(self, p: int) -> list[tuple[Range, Range]]:
        """Ranges of q and r, one pair after another, in which nothing but cells is left to meet."""
        inf, here = np.inf, float(self.x[1])
        of_q = [(-inf, inf)]
        if self.by is not None:
            of_q = [(-inf, here - self.by), (here, here), (here + self.by, inf)]
        of_r = [(-inf, inf)] if self.listed is None else [(value, value) for value in self.listed]
        found = []
        for (low, high), r in product(of_q, of_r):
            if self.if_whole is not None and p > self.if_whole[0]:
                low = max(low, self.if_whole[1])  # noqa: PLW2901
            if self.if_real is None:
                found.append(((low, high), r))
                continue
            t, u = self.if_real
            found += [((low, min(high, t)), r), ((max(low, t), high), (r[0], min(r[1], u)))]
        return [(q, r) for q, r in found if q[0] <= q[1] and r[0] <= r[1]]

    def optimum(self, target: str) -> float:
        """Least cost by trying every whole number, level and piece, with a linear program each."""
        M, best, x, w = self.omega.T @ self.omega, np.inf, self.x, self.weights
        rivals = self.W[self.labels != target]
        for p, s in product(WHOLE if self.whole is None else self.whole, LEVELS):
            paid = w[0] * abs(p - x[0]) + w[3] * abs(s - x[3])
            for own, (q, r) in product(self.W[self.labels == target], self.ranges(p)):
                if paid >= best:
                    continue
                normals = 2.0 * (rivals - own) @ M
                ends = np.einsum("ij,jk,ik->i", rivals, M, rivals) - own @ M @ own
                A = np.zeros((len(rivals) + 4, 4))
                A[: len(rivals), :2] = normals[:, 1:3]
                A[len(rivals) :] = [[1, 0, -1, 0], [-1, 0, -1, 0], [0, 1, 0, -1], [0, -1, 0, -1]]
                right = np.r_[ends - normals[:, [0, 3]] @ [p, s], x[1], -x[1], x[2], -x[2]]
                found = linprog(
                    [0, 0, w[1] / w[1], w[2] / w[1]], A, right, bounds=[q, r, (0, None), (0, None)]
                )
                if found.status == 0:
                    best = min(best, paid + w[1] * found.fun)
        return float(best)


def assert_least(drawn: Drawn, cost: str = "absolute") -> tuple[int, int]:
    """Every class a target; returns how often the compiled search answered, and how often not."""
    explainer, by_kernel, otherwise = drawn.explainer(cost), 0, 0
    for target in "abc":
        cf = explainer.explain(drawn.x, target)
        by_kernel += cf.reason.startswith(KERNEL)
        otherwise += not cf.reason.startswith((KERNEL, "the input"))
        assert explainer.verify(cf) == cf.lower_bound or cf.status == "infeasible"
        if cost == "absolute":
            optimum = drawn.optimum(target)
            if optimum == np.inf:
                assert cf.status == "infeasible"
            else:
                assert cf.status == "optimal"
                assert cf.cost == pytest.approx(optimum, rel=1e-6, abs=1e-7 * drawn.weights[1])
    return by_kernel, otherwise


SEEDS = [range(3), *(range(k, k + 50) for k in range(3, 1003, 50))]


@pytest.mark.parametrize("seeds", some(SEEDS, quick=1), ids=str)
def test_random_questions_against_enumeration(seeds: range) -> None:
    found = np.array([assert_least(Drawn.of(seed)) for seed in seeds]).sum(axis=0)
    assert found[0] > 4 * found[1]


@pytest.mark.parametrize("unit", [1e-7, 1e7])
def test_ugly_scales(unit: float) -> None:
    assert_least(Drawn.of(1, unit))


@pytest.mark.parametrize("seeds", some([range(1), range(1, 40)], quick=1), ids=str)
def test_squares_against_the_search_that_is_not_compiled(
    monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    for seed in seeds:
        drawn = Drawn.of(seed)
        found = [drawn.explainer("squared").explain(drawn.x, target) for target in "abc"]
        with monkeypatch.context() as patch:
            patch.setattr(strategies, "compiled_boxes_find", lambda *_: None)
            others = [drawn.explainer("squared").explain(drawn.x, target) for target in "abc"]
        for cf, other in zip(found, others, strict=True):
            # The other one may run out of boxes before its proof ends; neither's bound is false.
            assert cf.status == other.status or (cf.status, other.status) == ("optimal", "feasible")
            assert cf.cost == pytest.approx(other.cost, rel=1e-6)
            assert max(cf.lower_bound, other.lower_bound) <= cf.cost


RULES = [
    clvq.MinChange("q", 0.6), clvq.OneOf("r", [-1.5, 0.25, 1.75]), "if q >= 0.5 then r <= 1",
    "if p > 1 then q >= -0.5",
]  # fmt: skip


def table(count: int) -> Any:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(count, 4)) * 2.0
    X[:, 0], X[:, 3] = np.clip(np.rint(X[:, 0]), -4, 4), rng.choice(LEVELS, count)
    return X


def asked(rules: list[Any] = RULES) -> clvq.Explainer:
    rng = np.random.default_rng(6)
    model = clvq.PrototypeModel(
        rng.normal(size=(6, 4)) * 2.0, ["a", "b", "c"] * 2, rng.normal(size=(4, 4)), list("pqrs")
    )
    return clvq.Explainer(model, clvq.Manhattan(), rules, features=FEATURES)


def test_batch_equals_single_on_any_number_of_threads() -> None:
    X, explainer = table(70), asked()
    one, two = (asked().explain_batch(X, "a", n_jobs=jobs) for jobs in (1, 2))
    assert one.second_engine.mean() < 0.2
    for name in ("cost", "lower_bound", "gap", "prototype", "status", "values", "second_engine"):
        assert np.array_equal(getattr(one, name), getattr(two, name), equal_nan=name == "values")
    for i in range(0, len(X), 10):
        cf = explainer.explain(X[i], "a")
        assert (cf.cost, cf.lower_bound, str(cf.status)) == (
            one.cost[i], one.lower_bound[i], one.status[i],
        )  # fmt: skip
        assert cf.status == "infeasible" or cf.values.tolist() == one.values[i].tolist()


def test_a_kernel_that_fails_falls_back_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    X = table(1)
    before = asked(RULES[:1]).explain_batch(X, "b")
    assert before.cost[0] > 0
    assert not before.second_engine.any()
    for name in kernels.__all__:
        monkeypatch.setattr(kernels, name, failing)
    after = asked(RULES[:1]).explain_batch(X, "b")
    assert after.second_engine.all()
    assert after.cost == pytest.approx(before.cost, rel=1e-6)


def test_the_exact_checker_agrees(tmp_path: Path) -> None:
    batch, path, said = asked().explain_batch(table(6), "a"), tmp_path / "all.jsonl", list[str]()
    batch.save_certificates(path)
    assert all(line.verified for line in clvq.verify_certificates(path))
    assert check_certificate.main([str(path)], say=said.append) == 0


def test_excluded_whole_numbers_are_left_to_the_other_search() -> None:
    """Only listed values of a lattice have pieces that can be counted."""
    model = clvq.PrototypeModel([[0.0], [8.0]], ["no", "yes"], feature_names=["a"])
    features = Features([Feature("a", "whole")])
    cf = clvq.Explainer(model, constraints=["a != 5"], features=features).explain([0], "yes")
    assert (cf.x.tolist(), str(cf.status)) == ([6], "optimal")
    assert not cf.reason.startswith(KERNEL)
