"""Numbers at the ends of what floats hold: an outcome or a refusal in words, and nothing else.

No error of NumPy or SciPy, no warning, no line of LAPACK on standard error; what is claimed is
true.
"""

from __future__ import annotations

import io
import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq
from tests.support.quick import slow, some

EXTREME = (
    0.0, -0.0, 1e308, -1e308, 1e300, 1e200, 1e155, 1e154, -1e150, 1e100, 1e16, 1e-20, 1e-160,
    1e-300, 1e-308, 5e-324,
)  # fmt: skip
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
TABLE = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "k": np.resize(["u", "v", "w"], 40)})
SAYS = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")


def _encoded() -> Pipeline:
    columns = ColumnTransformer(
        [("n", StandardScaler(), ["a", "b"]), ("c", OneHotEncoder(), ["k"])], sparse_threshold=0.0
    )
    return make_pipeline(columns, clvq.GMLVQ(random_state=0)).fit(TABLE, SAYS)


def _stored(model: Any) -> bytes:
    file = io.BytesIO()
    clvq.save(model, file)
    return file.getvalue()


PROTOTYPES, LABELS = X[:4], ["no", "no", "yes", "yes"]
FILES: dict[str, tuple[bytes, Any]] = {
    "plain": (_stored(clvq.PrototypeModel(PROTOTYPES, LABELS)), X[5]),
    "diagonal": (_stored(clvq.PrototypeModel(PROTOTYPES, LABELS, [1.0, 2.0, 3.0])), X[5]),
    "shared": (_stored(clvq.PrototypeModel(PROTOTYPES, LABELS, X[10:13])), X[5]),
    "local": (_stored(clvq.PrototypeModel(PROTOTYPES, LABELS, X[10:22].reshape(4, 3, 3))), X[5]),
    "scaled": (_stored(make_pipeline(StandardScaler(), clvq.GMLVQ(random_state=0)).fit(X, SAYS)),
               X[5]),
    "encoded": (_stored(_encoded()), TABLE.iloc[5]),
}  # fmt: skip


def _changed(whole: bytes, rng: np.random.Generator) -> bytes:
    """Put extreme numbers into one or two of the arrays of a model file: one, all, or a factor."""
    size = int.from_bytes(whole[:8], "little")
    header, body = json.loads(whole[8 : 8 + size]), bytearray(whole[8 + size :])
    names = [name for name in header if name not in ("__metadata__", "labels")]
    for name in rng.choice(names, size=rng.integers(1, 3)):
        start, end = header[name]["data_offsets"]
        numbers = np.frombuffer(bytes(body[start:end]), "<f8").copy()
        value, way = float(rng.choice(EXTREME)), rng.integers(3)
        if way == 0:
            numbers[rng.integers(numbers.size)] = value
        elif way == 1:
            numbers[:] = value
        else:
            with np.errstate(all="ignore"):
                numbers = np.clip(numbers * abs(value), -1e308, 1e308)
        body[start:end] = numbers.tobytes()
    return whole[: 8 + size] + bytes(body)


def _assert_sound(content: bytes, row: Any) -> bool:
    """Ask; True if an outcome came back."""
    try:
        model = clvq.load(io.BytesIO(content))
        explainer = clvq.Explainer(model, time_limit=2.0)
        cf = explainer.explain(row)
    except clvq.CounterlvqError:
        return False
    assert not np.isnan([cf.cost, cf.lower_bound]).any()
    assert str(cf)
    if cf.status.has_answer:
        assert 0 <= cf.lower_bound <= cf.cost < np.inf
        # What was not checked within the time limit was not claimed.
        assert cf.lower_bound <= explainer.verify(cf) <= cf.cost
        frame = isinstance(row, pd.Series)
        given = pd.DataFrame([cf.as_given]) if frame else cf.values[None, :]
        assert model.predict(given)[0] == cf.prediction
    return True


def _assert_all_sound(kind: str, draws: int, seed: int, err: Any) -> None:
    content, row = FILES[kind]
    assert _assert_sound(content, row)
    rng, came = np.random.default_rng(seed), 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(draws):
            came += _assert_sound(_changed(content, rng), row)
    assert came > 0  # what is refused alone would tell little
    assert "On entry to" not in err.readouterr().err  # as LAPACK begins


# A search under local metrics may use all the time that it is given.
@pytest.mark.parametrize(
    ("kind", "draws"),
    [("local", 2), *((kind, 3) for kind in FILES if kind != "local")]
    + [slow((kind, 6)) for kind in FILES],
)
def test_extreme_numbers_end_in_words(
    kind: str, draws: int, capfd: pytest.CaptureFixture[str]
) -> None:
    _assert_all_sound(kind, draws, 1, capfd)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", FILES)
def test_many_extreme_numbers_end_in_words(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    _assert_all_sound(kind, 250, 2, capfd)


@pytest.mark.parametrize("size", some([1e154, 1e150, 1e100], quick=1))
def test_huge_local_metrics_are_an_outcome(size: float, capfd: pytest.CaptureFixture[str]) -> None:
    omegas = [[[size, 2.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]]]
    model = clvq.PrototypeModel([[0.0, 1.0], [2.0, 3.0]], [0, 1], omegas)
    cf = clvq.Explainer(model).explain([0.5, 1.5])
    # At (0, 1.5) the first prototype is the nearer one, whatever the size.
    assert model.predict([[0.0, 1.5]]) == [0]
    assert cf.lower_bound <= 0.5
    assert cf.status is not clvq.Status.INFEASIBLE
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("kind", ["scaled", "encoded"])
def test_a_map_that_leads_nowhere_leaves_nothing_to_change(kind: str) -> None:
    """All numbers of the map are 0: every row has the same label, whatever is in it."""
    content, row = FILES[kind]
    size = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8 : 8 + size]), bytearray(content[8 + size :])
    for name in header:
        if name.startswith(("table.numbers", "table.levels", "table.slopes")):
            start, end = header[name]["data_offsets"]
            body[start:end] = bytes(end - start)
    model = clvq.load(io.BytesIO(content[: 8 + size] + bytes(body)))
    rows = TABLE if kind == "encoded" else X
    assert len(set(model.predict(rows).tolist())) == 1
    cf = clvq.Explainer(model).explain(row)
    assert cf.status is clvq.Status.INFEASIBLE
    assert cf.lower_bound == np.inf
