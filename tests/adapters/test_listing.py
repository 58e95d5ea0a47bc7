"""The table of the page: what the adapters say, and every line of it tried."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.adapters import as_prototype_model
from counterlvq.adapters.linear import REGRESSORS
from counterlvq.adapters.listing import adapter_lines, adapter_table
from tests.adapters import test_prosemble as jax
from tests.adapters.test_all_estimators import READ
from tests.support.fakes import Tensor, fake, torch_model

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adapters.md"
START, END = "<!-- generated from the adapters -->", "<!-- end -->"


def test_the_page_has_the_table_of_the_adapters() -> None:
    """Write it anew with LISTING=write."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(START)
    shown, _, after = rest.partition(END)
    if os.environ.get("LISTING") == "write":
        PAGE.write_text(f"{before}{START}\n{adapter_table()}\n{END}{after}", encoding="utf-8")
        shown = f"\n{adapter_table()}\n"
    assert shown.strip() == adapter_table()


RNG = np.random.default_rng(0)
P, LABELS = RNG.normal(size=(4, 3)), np.array([0, 0, 1, 1])
OMEGA, OMEGAS = RNG.normal(size=(2, 3)), RNG.normal(size=(4, 2, 3))


def of_sklearn_lvq(kind: str) -> Any:
    return fake(
        "sklearn_lvq.models", kind, w_=P, c_w_=LABELS, classes_=np.array([0, 1]),
        lambda_=np.array([0.2, 0.3, 0.5]), omega_=OMEGA, omegas_=list(OMEGAS),
    )  # fmt: skip


def of_sklvq(kind: str) -> Any:
    omega = OMEGAS if kind == "LGMLVQ" else OMEGA
    return fake(
        "sklvq.models", kind, prototypes_=P, prototypes_labels_=LABELS,
        classes_=np.array([0, 1]), omega_=omega,
    )  # fmt: skip


def of_prototorch(kind: str) -> Any:
    distance = {
        "GMLVQ": "omega_distance",
        "ImageGMLVQ": "omega_distance",
        "LGMLVQ": "lomega_distance",
        "GTLVQ": "ltangent_distance",
        "ImageGTLVQ": "ltangent_distance",
    }.get(kind, "euclidean_distance")
    local = kind in ("LGMLVQ", "GTLVQ", "ImageGTLVQ")
    backbone = type("LinearTransform", (SimpleNamespace,), {})(weights=Tensor(OMEGA.T))
    return torch_model(
        kind, P, LABELS, distance, backbone=backbone, _relevances=Tensor(np.ones(3)),
        _omega=Tensor(OMEGAS.transpose(0, 2, 1) if local else OMEGA.T),
    )  # fmt: skip


def of_prosemble(kind: str) -> Any:
    alike = {
        "omega_": jax.OMEGA,
        "omegas_": jax.OMEGAS,
        "sigmas_": jax.SIGMAS,
        "sigma_min": 0.1,
        "relevances_": jax.RELEVANCES,
        "_raw_relevances_": jax.RELEVANCES,
        "prototype_variances_": jax.VARIANCES,
        "distance_fn": jax.squared_euclidean_distance_matrix,
    }
    return jax.fake(kind, **alike)


FAKES = {
    "sklearn-lvq": of_sklearn_lvq,
    "sklvq": of_sklvq,
    "prototorch-models": of_prototorch,
    "prosemble": of_prosemble,
}


@pytest.mark.parametrize(
    "line", adapter_lines(), ids=lambda line: f"{line.library} {line.kinds[0]}"
)
def test_every_class_of_a_line_is_read(line: Any) -> None:
    """Those of scikit-learn are fitted and explained in `test_all_estimators`."""
    for kind in line.kinds:
        if line.library in FAKES:
            assert as_prototype_model(FAKES[line.library](kind)).n_prototypes > 1, kind
        elif line.library == "scikit-learn":
            assert kind in READ or kind in REGRESSORS, kind
        elif kind == "Thresholded":
            continue  # with everything that it takes in `test_thresholds`
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = getattr(clvq, kind)(random_state=0).fit(P, LABELS)
            assert np.array_equal(as_prototype_model(fitted).predict(P), fitted.predict(P))


def test_no_class_is_listed_twice() -> None:
    listed = [(line.library, kind) for line in adapter_lines() for kind in line.kinds]
    assert len(listed) == len(set(listed))
