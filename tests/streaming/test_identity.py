"""Hashes of questions, and explainers on their way to other processes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from counterlvq.streaming.identity import digest, model_digest
from tests.support.streams import mixed_batch, mixed_explainer, plain_explainer, plain_table

ROWS = np.random.default_rng(7).normal(size=(60, 4))
LABELS = np.array(["a", "b", "c"])[np.arange(60) % 3]
TWO = np.array(["a", "c"])[np.arange(60) % 2]


class Colour(Enum):
    RED = 1


VALUES = [
    None, True, 1, 1.5, "1", b"1", (1,), [1], {1}, {"a": 1}, {"a": 2}, np.array([1.0]),
    np.array([1]), np.array([[1.0]]), np.float64(2.5), Colour.RED, 2**53 + 1,
    lambda x: 1, lambda x: 1.0, -0.0, 0.0, float("nan"),
    clvq.Feature("a"), clvq.Feature("a", unit="EUR"), clvq.Bounds("a", 1), clvq.Freeze("a"),
    partial(int, 1), partial(int, 2), lambda x: x, lambda x: x + 1, int, len,
    np.array(["a", None], dtype=object),
]  # fmt: skip


def test_values_have_hashes_of_their_own() -> None:
    found = [digest(value) for value in VALUES]
    assert found == [digest(value) for value in VALUES]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("value", [1.0, np.float64(1.0), np.int8(1), np.float32(1.0)], ids=repr)
def test_equal_numbers_have_one_hash(value: Any) -> None:
    assert digest({"a": value}) == digest({"a": 1})


def test_what_holds_itself_can_be_hashed() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    assert digest(ring) != digest([1])


def explainers() -> dict[str, clvq.Explainer]:
    made = {
        "prototypes": plain_explainer(),
        "pipeline with levels": mixed_explainer(),
        "constraints": clvq.Explainer(
            plain_explainer().model,
            cost=clvq.Manhattan([1.0, 2.0, 3.0, 4.0]),
            constraints=["u <= original(u)", clvq.Bounds("v", -1, 1), clvq.Freeze("x")],
        ),
        "GMLVQ": clvq.Explainer(clvq.GMLVQ(random_state=0, tol=0.1).fit(ROWS, LABELS)),
    }
    for estimator in (
        NearestCentroid(),
        KNeighborsClassifier(1),
        GaussianNB(),
        LogisticRegression(),
        LinearDiscriminantAnalysis(),
    ):
        labels = TWO if isinstance(estimator, LogisticRegression) else LABELS
        made[type(estimator).__name__] = clvq.Explainer(estimator.fit(ROWS, labels))
    scaled = make_pipeline(StandardScaler(), NearestCentroid()).fit(ROWS, LABELS)
    made["pipeline of numbers"] = clvq.Explainer(scaled)
    return made


def asked(explainer: clvq.Explainer) -> tuple[Any, Any]:
    """A batch and a target for an explainer."""
    if explainer.features.names == mixed_explainer().features.names:
        return mixed_batch(6), "yes"
    batch = plain_table(6).drop_columns("id").to_batches()[0]
    return batch.rename_columns(list(explainer.columns)), "c"


def answered(explainer: clvq.Explainer, batch: Any, target: Any) -> list[str]:
    told = explainer.map_batches([batch], target).read_all().combine_chunks()
    return [repr(told[name].to_pylist()) for name in told.schema.names]


def test_answers_in_another_process_are_the_same_to_the_last_bit(tmp_path: Path) -> None:
    made = {name: (e, *asked(e)) for name, e in explainers().items()}
    expected = {name: (answered(*job), model_digest(job[0])) for name, job in made.items()}
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        for name, (explainer, *_) in made.items():
            copy = pickle.loads(cloudpickle.dumps(explainer, protocol=protocol))
            assert model_digest(copy) == expected[name][1], name
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        (tmp_path / "job").write_bytes(cloudpickle.dumps((made, answered, model_digest)))
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    code = (
        "import sys, pickle; "
        "made, answered, known = pickle.load(open(sys.argv[1], 'rb')); "
        "out = {name: (answered(*job), known(job[0])) for name, job in made.items()}; "
        "pickle.dump(out, open(sys.argv[2], 'wb'))"
    )
    there = [sys.executable, "-c", code, str(tmp_path / "job"), str(tmp_path / "told")]
    subprocess.run(there, check=True)
    assert pickle.loads((tmp_path / "told").read_bytes()) == expected
