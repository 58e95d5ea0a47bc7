"""Models of prosemble, read from their attributes; `make test-peers` fits real ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.adapters import as_prototype_model, prosemble
from tests.support.score_models import Array

F = np.float32
RNG = np.random.default_rng(3)
P = RNG.normal(size=(6, 4)).astype(F)
LABELS = np.array([0, 0, 1, 1, 2, 2])
OMEGA = RNG.normal(size=(4, 2)).astype(F)
OMEGAS = RNG.normal(size=(6, 4, 3)).astype(F)
BASES = np.stack([np.linalg.qr(part)[0][:, :2] for part in OMEGAS]).astype(F)
SIGMAS = RNG.uniform(1.0, 3.0, 6).astype(F)
RELEVANCES = RNG.normal(size=4).astype(F)
VARIANCES = RNG.uniform(0.0, 0.5, (6, 4)).astype(F)


def squared_euclidean_distance_matrix(X: Array, W: Array) -> Array:
    products = (X * X).sum(1)[:, None] + (W * W).sum(1) - 2 * X @ W.T
    return np.maximum(products, 0)


def manhattan_distance_matrix(X: Array, W: Array) -> Array:
    return np.abs(X[:, None] - W).sum(axis=2)


def differences(X: Array) -> Array:
    return X[:, None, :] - P[None]


def shares(values: Array) -> Array:
    powers = np.exp(values - values.max())
    return (powers / powers.sum()).astype(F)


def kernel(X: Array, weights: Array | None = None) -> Array:
    squares = differences(X) ** 2
    if weights is not None:
        squares = squares * weights
    return F(2) * (F(1) - np.exp(-squares.sum(axis=2) / (F(2) * SIGMAS**2)))


def tangent(X: Array) -> Array:
    away = differences(X)
    seen = np.einsum("npd,pds->nps", away, BASES)
    return ((away - np.einsum("nps,pds->npd", seen, BASES)) ** 2).sum(axis=2)


# What `predict` of each class compares, as prosemble 2.4.0 has it, and what `fit` leaves behind.
KINDS: dict[str, tuple[Callable[[Array], Array], dict[str, Any]]] = {
    "GLVQ": (
        lambda X: squared_euclidean_distance_matrix(X, P),
        {"distance_fn": squared_euclidean_distance_matrix},
    ),
    "GRLVQ": (
        lambda X: squared_euclidean_distance_matrix(X, P),
        {"distance_fn": squared_euclidean_distance_matrix, "relevances_": RELEVANCES},
    ),
    "GMLVQ": (
        lambda X: (np.einsum("npd,dl->npl", differences(X), OMEGA) ** 2).sum(axis=2),
        {"omega_": OMEGA},
    ),
    "LGMLVQ": (
        lambda X: (np.einsum("npd,pdl->npl", differences(X), OMEGAS) ** 2).sum(axis=2),
        {"omegas_": OMEGAS},
    ),
    "SCMNG": (
        lambda X: (np.einsum("npd,pdl->npl", differences(X), OMEGAS[LABELS]) ** 2).sum(axis=2),
        {"omegas_": OMEGAS[:3]},
    ),
    "GTLVQ": (tangent, {"omegas_": BASES}),
    "DKGLVQ": (kernel, {"sigmas_": SIGMAS, "sigma_min": 0.1}),
    "DKGRLVQ": (
        lambda X: kernel(X, shares(RELEVANCES)),
        {"sigmas_": SIGMAS, "sigma_min": 0.1, "relevances_": RELEVANCES},
    ),
    "WGLVQ": (
        lambda X: (
            squared_euclidean_distance_matrix(X, P)
            + np.exp(np.log(np.maximum(VARIANCES, F(1e-6)))).sum(axis=1)
        ),
        {"prototype_variances_": VARIANCES},
    ),
    "WGMLVQ": (
        lambda X: squared_euclidean_distance_matrix(X @ OMEGA, P @ OMEGA) + VARIANCES.sum(axis=1),
        {"prototype_variances_": VARIANCES, "omega_": OMEGA},
    ),
    "WGRLVQ": (
        lambda X: (differences(X) ** 2 * shares(RELEVANCES)).sum(axis=2) + VARIANCES.sum(axis=1),
        {"prototype_variances_": VARIANCES, "_raw_relevances_": RELEVANCES},
    ),
}


def fake(kind: str, scores: Callable[[Array], Array] | None = None, **attributes: Any) -> Any:
    def predict(self: Any, X: Any) -> Array:
        assert scores is not None
        return LABELS[scores(np.asarray(X, dtype=F)).argmin(axis=1)]

    made = type(kind, (), {"__module__": "prosemble.models.there", "predict": predict})()
    vars(made).update({"prototypes_": P, "prototype_labels_": LABELS, **attributes})
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_predict_agrees_and_confirms(kind: str) -> None:
    scores, attributes = KINDS[kind]
    fitted = fake(kind, scores, **attributes)
    rows = RNG.normal(size=(2569, 4)) * 1.5
    read = as_prototype_model(fitted, probe=rows)
    assert (read.predict(rows) == fitted.predict(rows)).mean() > 0.999
    assert read.is_local == (kind in ("LGMLVQ", "SCMNG", "GTLVQ", "DKGLVQ", "DKGRLVQ"))
    assert read.meaning.scores == "distance"
    # Kernels cannot tell far rows apart, and proofs about them take long.
    method = "ccp" if kind.startswith("DK") else "auto"
    explainer = clvq.Explainer(fitted, gap=1e-2, method=method)
    for target in (0, 1, 2):
        batch = explainer.explain_batch(rows[:6], target=target)
        found = batch.status != "unknown"
        assert found.mean() > 0.8
        for x in batch.X[found]:
            assert fitted.predict(x[None])[0] == target
            assert (fitted.predict(np.repeat(x[None], 7, axis=0)) == target).all()


def test_margins_of_single_precision_cost_little() -> None:
    scores, attributes = KINDS["GLVQ"]
    fitted = fake("GLVQ", scores, **attributes)
    rows = RNG.normal(size=(100, 4))
    told = clvq.Explainer(fitted).explain_batch(rows)
    best = clvq.Explainer(as_prototype_model(fitted)).explain_batch(rows)
    # What a lead costs beside the way to the boundary; next to it any lead is dear.
    assert (told.cost - best.cost <= 1e-4 * np.maximum(best.cost, 0.2)).all()
    assert np.mean(told.cost <= 1.0001 * best.cost) > 0.85
    assert (fitted.predict(told.X) == told.prediction).all()
    # What rounding in double precision would ask for is not enough.
    flipped = fitted.predict(best.X) == best.prediction
    assert 0.2 < flipped.mean() < 0.9


def test_relevances_that_predict_ignores_are_ignored() -> None:
    scores, attributes = KINDS["GRLVQ"]
    assert as_prototype_model(fake("GRLVQ", scores, **attributes)).omegas is None


@pytest.mark.parametrize("kind", prosemble.REFUSED)
def test_other_rules_are_refused_with_the_reason(kind: str) -> None:
    with pytest.raises(clvq.NotSupportedError) as raised:
        as_prototype_model(fake(kind))
    assert str(raised.value) == (
        f"{kind} of prosemble {prosemble.REFUSED[kind]}; only winner-takes-all models with a "
        f"quadratic distance can be read."
    )


def test_another_distance_is_refused() -> None:
    with pytest.raises(clvq.NotSupportedError, match="distance 'manhattan_distance_matrix'"):
        as_prototype_model(fake("GLVQ", distance_fn=manhattan_distance_matrix))


def test_a_subclass_of_the_user_is_read_like_its_base() -> None:
    scores, attributes = KINDS["GMLVQ"]
    base = type(fake("GMLVQ", scores, **attributes))
    mine = type("Mine", (base,), {"__module__": "elsewhere"})()
    vars(mine).update({"prototypes_": P, "prototype_labels_": LABELS, **attributes})
    assert as_prototype_model(mine).n_prototypes == 6


def test_matrices_of_the_wrong_shape_are_refused() -> None:
    with pytest.raises(clvq.InvalidInputError, match=r"expected \(prototypes, features, rank\)"):
        as_prototype_model(fake("LGMLVQ", omegas_=OMEGA))
    with pytest.raises(clvq.InvalidInputError, match="call its `fit` first"):
        as_prototype_model(fake("GMLVQ"))
