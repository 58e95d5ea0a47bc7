"""Model files: what is loaded is what was saved, and nothing else ever comes out."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.numpy import load as load_tensors
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

import counterlvq as clvq
from fuzz.mutations import chained
from tests.support.quick import examples

POINTS = [[0.0, 0.5], [4.0, -0.0], [1.0, 5e-324], [2.0, 1e300]]


def saved(model: Any, **more: Any) -> bytes:
    file = io.BytesIO()
    clvq.save(model, file, **more)
    return file.getvalue()


def again(model: Any, **more: Any) -> Any:
    return clvq.load(io.BytesIO(saved(model, **more)))


def bits(array: Any) -> Any:
    if array is None:
        return None
    if isinstance(array, tuple):
        return tuple(bits(part) for part in array)
    if array.dtype == object:
        return [(type(value), repr(value)) for value in array.tolist()]
    return array.dtype, array.shape, array.tobytes()


def assert_same_model(one: clvq.PrototypeModel, other: clvq.PrototypeModel) -> None:
    for name in ("prototypes", "labels", "omegas", "offsets", "classes"):
        assert bits(getattr(one, name)) == bits(getattr(other, name)), name
    assert one.features == other.features
    assert not other.prototypes.flags.writeable


def assert_same_table_model(one: clvq.TableModel, other: clvq.TableModel) -> None:
    assert_same_model(one.model, other.model)
    assert one.features == other.features
    mine, theirs = one.table_map, other.table_map
    assert (mine.columns, mine.named) == (theirs.columns, theirs.named)
    assert bits(mine.offset) == bits(theirs.offset)
    assert len(mine.parts) == len(theirs.parts)
    for a, b in zip(mine.parts, theirs.parts, strict=True):
        assert type(a) is type(b)
        assert a.column == b.column
        assert bits(a.weights) == bits(b.weights)
        levels = getattr(a, "levels", ())
        assert [(type(v), v) for v in levels] == [(type(v), v) for v in getattr(b, "levels", ())]


# --- what is saved comes back ---------------------------------------------------------------------

LABELS = {
    "text": ["no", "yes", "no", "maybe"],
    "wide text": np.array(["no", "yes", "no", "é"], dtype="<U40"),
    "odd text": ["", "\ud800", "a\x00b", '"{'],
    "whole": [1, 2, 2, -(2**63)],
    "small": np.array([1, 2, 2, 255], dtype=np.uint8),
    "other byte order": np.array([1, 2, 2, 7], dtype=">i4"),
    "float": [0.1, -0.0, 0.0, 1e-300],
    "half": np.array([0.1, 2.5, 2.5, 6e4], dtype=np.float16),
    "boolean": [True, False, False, True],
    "mixture": np.array([1, True, "1", None], dtype=object),
    "long": np.array([2**100, 1, 0.5, "x"], dtype=object),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
def test_labels_keep_their_type(labels: Any) -> None:
    model = clvq.PrototypeModel(POINTS, labels)
    assert_same_model(model, again(model))


OMEGAS = {
    "none": None,
    "diagonal": [1 / 3, -2.0],
    "shared": [[1.0, 1 / 3], [-0.0, 2.0], [0.0, 0.0]],
    "each its own": [[[1.0, 2.0]], [[1.0, 0.0], [0.0, 3.0]], [[0.1, 0.0]], [[0.0, 0.1]]],
    "equal but for a sign": [[[1.0, 0.0]], [[1.0, -0.0]], [[2.0, 0.0]], [[1.0, 0.0]]],
}


@pytest.mark.parametrize("omegas", OMEGAS.values(), ids=OMEGAS.keys())
@pytest.mark.parametrize("offsets", [None, [0.0, 0.25, 0.0, 1 / 3]], ids=["", "offsets"])
def test_metrics_come_back_to_the_bit(omegas: Any, offsets: Any) -> None:
    model = clvq.PrototypeModel(POINTS, [0, 1, 0, 1], omegas, ["a", "ü b"], offsets)
    assert_same_model(model, again(model))


def test_a_metric_is_stored_once() -> None:
    omega, other = np.eye(50), np.eye(50)[:25] * 2
    rng = np.random.default_rng(0)
    prototypes, labels = rng.normal(size=(60, 50)), np.arange(60) % 2
    shared = load_tensors(saved(clvq.PrototypeModel(prototypes, labels, omega)))
    assert [name for name in shared if name.startswith("omega")] == ["omega.0"]
    per_class = clvq.PrototypeModel(
        prototypes, labels, [(omega, other)[label] for label in labels.tolist()]
    )
    tensors = load_tensors(saved(per_class))
    assert sorted(name for name in tensors if name.startswith("omega")) == ["omega.0", "omega.1"]
    assert_same_model(per_class, again(per_class))


@pytest.fixture(scope="module")
def iris() -> tuple[pd.DataFrame, np.ndarray]:
    data = load_iris(as_frame=True)
    return data.data, data.target_names[data.target]


@pytest.mark.parametrize(
    "estimator",
    [
        clvq.GLVQ(2, random_state=0),
        clvq.GMLVQ(random_state=0),
        clvq.LGMLVQ(2, localization="class", random_state=0),
        clvq.RSLVQ(random_state=0),
        clvq.MRSLVQ(random_state=0),
        clvq.LMRSLVQ(random_state=0),
        NearestCentroid(),
        KNeighborsClassifier(n_neighbors=1),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimators_and_their_pipelines(estimator: Any, iris: Any) -> None:
    X, y = iris
    alone = clvq.as_prototype_model(estimator.fit(X, y))
    assert_same_model(alone, again(estimator))
    pipeline = make_pipeline(StandardScaler(), PCA(3), estimator).fit(X, y)
    loaded = again(pipeline)
    assert_same_table_model(clvq.TableModel.from_pipeline(pipeline), loaded)
    assert_array_equal(loaded.predict(X), pipeline.predict(X))
    assert_array_equal(loaded.predict(X.iloc[:, ::-1]), pipeline.predict(X))
    assert_array_equal(loaded.predict(X.to_numpy()), pipeline.predict(X))


def test_explanations_of_a_loaded_pipeline_are_those_of_the_pipeline(iris: Any) -> None:
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), PCA(3), clvq.GMLVQ(2, random_state=0)).fit(X, y)
    rules = [clvq.Freeze("petal width (cm)")]
    told = clvq.Explainer(pipeline, constraints=rules).explain_batch(X[:20], "virginica")
    found = clvq.Explainer(again(pipeline), constraints=rules).explain_batch(X[:20], "virginica")
    for name in ("status", "prediction"):
        assert_array_equal(getattr(found, name), getattr(told, name))
    # The map in the file is exact by itself, and that of a pipeline stands for its steps.
    for name in ("X", "cost", "lower_bound"):
        assert_allclose(getattr(found, name), getattr(told, name), rtol=1e-9)


def test_map_that_reaches_not_all_of_the_space(iris: Any) -> None:
    """Two scalers side by side: prototypes keep a distance that no row of the table closes."""
    X, y = iris
    both = FeatureUnion([("a", StandardScaler()), ("b", MinMaxScaler())])
    pipeline = make_pipeline(both, clvq.LGMLVQ(random_state=0, max_iter=20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # twenty iterations are not enough, and need not be
        pipeline.fit(X, y)
    assert_same_table_model(clvq.TableModel.from_pipeline(pipeline), again(pipeline))
    one, other = (clvq.Explainer(model).explain(X.iloc[0]) for model in (pipeline, again(pipeline)))
    assert_array_equal(one.x, other.x)


LOANS = pd.DataFrame(
    {
        "id": np.arange(8),
        "pay": [1.0, 2.0, 1.5, 3.0, 1.0, 2.5, 0.5, 4.0],
        "job": ["clerk", "nurse"] * 4,
        "cards": [1, 2, 3, 1, 2, 3, 1, 2],
        "owner": [True, False, False, True] * 2,
    }
)


def loans_pipeline(model: Any) -> Any:
    steps = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["pay", "cards"]),
            ("levels", OneHotEncoder(), ["job", "owner"]),
        ]
    )
    return make_pipeline(steps, model).fit(LOANS, [0, 1, 1, 1, 0, 0, 1, 1])


def test_categories_come_back(tmp_path: Path) -> None:
    pipeline = loans_pipeline(clvq.GMLVQ(random_state=0))
    loaded = again(pipeline)
    assert_same_table_model(clvq.TableModel.from_pipeline(pipeline), loaded)
    assert_array_equal(loaded.predict(LOANS), pipeline.predict(LOANS))
    assert loaded.features["job"].levels == ("clerk", "nurse")
    assert loaded.features["owner"].kind == "boolean"


def test_features_are_kept() -> None:
    described = clvq.Features(
        [
            clvq.Feature("pay", unit="EUR", lower=0, upper=1e4 / 3, decimals=2),
            clvq.Feature("job", levels=["clerk", "nurse"]),
            clvq.Feature("cards", step=2, lower=-4),
            clvq.Feature("owner", "boolean"),
        ]
    )
    assert again(loans_pipeline(NearestCentroid()), features=described).features == described
    some = clvq.Features(["id", clvq.Feature("cards", "whole"), clvq.Feature("pay", unit="EUR")])
    found = again(loans_pipeline(NearestCentroid()), features=some).features
    assert found.names == ("pay", "job", "cards", "owner")
    assert (found["pay"], found["cards"]) == (some["pay"], some["cards"])
    assert found["job"].levels == ("clerk", "nurse")
    mixed = clvq.Features([clvq.Feature("a", "whole"), clvq.Feature("b", unit="m", decimals=1)])
    model = clvq.PrototypeModel(POINTS, [0, 1, 0, 1])
    assert again(model, features=mixed).features == mixed
    assert again(again(model, features=mixed)).features == mixed


def test_steps_of_change_order_and_dates_are_kept_in_a_version_of_their_own() -> None:
    model = clvq.PrototypeModel(POINTS, [0, 1, 0, 1])
    ordered = clvq.Features([clvq.Feature("job", levels=["nurse", "clerk"], ordered=True)])
    steps = clvq.Features([clvq.Feature("a", step=5, steps="of change"), "b"])
    dates = clvq.Features([clvq.Feature("a", "date", lower="2020-01-31"), "b"])
    pipeline = loans_pipeline(NearestCentroid())
    for made, features in ((model, steps), (model, dates), (pipeline, ordered)):
        found = again(made, features=features).features
        for feature in features:
            assert found[feature.name] == feature
        whole = saved(made, features=features)
        header = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])
        assert json.loads(header["__metadata__"]["counterlvq"])["version"] == 3


def test_features_of_other_columns_are_refused() -> None:
    pipeline = loans_pipeline(NearestCentroid())
    with pytest.raises(clvq.UnknownFeatureError, match="'age' does not exist"):
        saved(pipeline, features=clvq.Features(["pay", "age"]))
    for wrong in ("job", clvq.Feature("job", levels=["judge"]), clvq.Feature("pay", levels=["x"])):
        with pytest.raises(clvq.InvalidInputError, match="as the pipeline has it; expected levels"):
            saved(pipeline, features=clvq.Features([wrong]))
    model = clvq.PrototypeModel(POINTS, [0, 1, 0, 1], feature_names=["a", "b"])
    with pytest.raises(clvq.InvalidInputError, match="expected the 2 of the model: a, b"):
        saved(model, features=clvq.Features(["b", "a"]))
    with pytest.raises(clvq.NotSupportedError, match="feature 'b' is boolean"):
        saved(model, features=clvq.Features(["a", clvq.Feature("b", "boolean")]))


def test_same_model_same_bytes(iris: Any) -> None:
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), clvq.LGMLVQ(random_state=0)).fit(X, y)
    first = saved(pipeline)
    assert saved(pipeline) == first == saved(again(pipeline))
    code = (
        "import sys, counterlvq as clvq;"
        "clvq.save(clvq.load(sys.stdin.buffer), sys.stdout.buffer);"
        "assert not {'sklearn', 'pickle5'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=first, capture_output=True, check=True
    )
    assert done.stdout == first  # in another process, without scikit-learn


def test_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "model.clvq"
    for labels in (["no", "yes"], ["a", "b"]):
        clvq.save(clvq.PrototypeModel(POINTS[:2], labels), path)
        assert clvq.load(str(path)).labels.tolist() == labels
    assert [item.name for item in tmp_path.iterdir()] == ["model.clvq"]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"), "labels of the type datetime64"),
        (np.array([b"a", b"b"]), "labels of the type"),
        (np.array([1j, 2j]), "labels of the type complex128"),
        (np.array([("a", 1), "b"], dtype=object), "a label is .* of type tuple"),
        ([0.0, np.inf], "a label is inf"),
    ],
)
def test_what_cannot_be_saved_is_named(labels: Any, words: str) -> None:
    with pytest.raises(clvq.NotSupportedError, match=words):
        saved(clvq.PrototypeModel(POINTS[:2], labels))


# --- what must not come out -----------------------------------------------------------------------

SHARED = clvq.PrototypeModel(POINTS, [0, 1, 0, 1], np.eye(2), ["a", "b"])
LOCAL = clvq.PrototypeModel(
    POINTS, ["x", "y", "x", "y"], [np.eye(2), 2 * np.eye(2)] * 2, offsets=[0.0, 1, 2, 3]
)
FILES = [saved(SHARED), saved(LOCAL), saved(loans_pipeline(NearestCentroid()))]


def parts(whole: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    size = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + size])
    document = json.loads(header["__metadata__"]["counterlvq"])
    return header, document, whole[8 + size :]


def built(header: dict[str, Any], document: Any, numbers: bytes) -> bytes:
    text = document if isinstance(document, str) else json.dumps(document)
    header = {**header, "__metadata__": {"counterlvq": text}}
    return framed(json.dumps(header).encode(), numbers)


def framed(header: bytes, numbers: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + numbers


def refusal(whole: bytes, **more: Any) -> str:
    with pytest.raises(clvq.ModelFileError) as raised:
        clvq.load(io.BytesIO(whole), **more)
    text = str(raised.value)
    assert text.startswith("the file cannot be loaded: ")
    assert text.endswith(
        ("with counterlvq.save.", "Update counterlvq.", "if you trust the file.")
    ), text
    return text


def changed(path: str, value: Any, whole: bytes = FILES[2]) -> bytes:
    """A file whose document has another value at a dotted path; `...` removes it."""
    header, document, numbers = parts(whole)
    *before, last = path.split(".")
    at = document
    for key in before:
        at = at[int(key)] if isinstance(at, list) else at[key]
    if value is ...:
        del at[last]
    elif isinstance(at, list):
        at[int(last)] = value
    else:
        at[last] = value
    return built(header, document, numbers)


def test_the_tools_of_these_tests_change_nothing_by_themselves() -> None:
    for whole in FILES:
        rebuilt = built(*parts(whole))
        assert saved(clvq.load(io.BytesIO(rebuilt))) == whole


@pytest.mark.parametrize(
    ("whole", "words"),
    [
        (b"", "no safetensors file"),
        (b"1234567", "no safetensors file"),
        (b"PK\x03\x04 something else entirely", "no safetensors file"),
        (b"\xff" * 64, "no safetensors file"),
        (framed(b"[]"), "the header is no object"),
        (framed(b"{}"), "of another program"),
        (framed(b'{"a": 1'), "the header is no JSON"),
        (framed(b"\xff\xfe\x00\x00"), "the header is no JSON"),
        (framed(b"[" * 200_000), "nested too deeply"),
        (framed(b'{"__metadata__": {"format": "pt"}}'), "lacks 'counterlvq'"),
        (framed(b'{"__metadata__": {"counterlvq": "[]"}}'), "the document is no object"),
        (framed(b'{"__metadata__": {"counterlvq": 3}}'), "is a whole number; expected text"),
        (framed(b'{"__metadata__": {}, "__metadata__": {}}'), "'__metadata__' twice"),
        (framed(b'{"__metadata__": {"counterlvq": "{}", "b": "c"}}'), "holds 'b'"),
        (FILES[0][:-1], "cut off"),
        (FILES[0][:40], "within its header"),
        (FILES[0] + b"x", "has been added to"),
    ],
)
def test_other_bytes_are_refused(whole: bytes, words: str) -> None:
    assert words in refusal(whole)


def test_no_room_is_made_for_what_is_only_announced(tmp_path: Path) -> None:
    header, document, numbers = parts(FILES[0])
    last = max((name for name in header if name != "__metadata__"),
               key=lambda name: header[name]["data_offsets"])  # fmt: skip
    start, _ = header[last]["data_offsets"]
    told = {"dtype": "F64", "shape": [2**50, 2], "data_offsets": [start, start + 2**54]}
    huge = built({**header, last: told}, document, numbers)
    announced = len(huge) - len(numbers) + start + 2**54
    assert f"of {announced} bytes; expected at most" in refusal(huge)
    assert "bytes of numbers and" in refusal(
        huge, max_bytes=2**60
    )  # a stream is read piece by piece
    path = tmp_path / "huge.clvq"
    path.write_bytes(huge)
    with pytest.raises(clvq.ModelFileError, match=rf"huge\.clvq .* there are {len(huge)}"):
        clvq.load(path, max_bytes=2**60)
    assert "expected at most 100" in refusal(FILES[0], max_bytes=100)


def test_small_files_that_ask_for_much_memory() -> None:
    wide = changed("model.labels.type", "<U99999999", FILES[1])
    assert "need 6399999936 bytes" in refusal(wide)
    rows, width = 1000, 100
    prototypes = np.zeros((rows, width))
    prototypes[0] = 1.0
    labels = np.arange(rows) % 2
    omegas = [np.eye(width) * (1 + (k == 0)) for k in range(rows)]
    whole = saved(clvq.PrototypeModel(prototypes, labels, omegas))
    assert len(whole) < 10**6  # two metrics are stored, a thousand would be made of them
    assert "needs 80000000 bytes" in refusal(whole, max_bytes=10**7)


def seconds(ask: Any) -> float:
    start = process_time()
    ask()
    return process_time() - start


def takes_less(ask: Any, most: float) -> bool:
    """Once in three times: what else the machine does counts for little then."""
    return any(seconds(ask) < most for _ in range(3))


@pytest.mark.machine
@pytest.mark.covering
@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("twice", [False, True])
def test_numbers_that_get_into_each_others_way_in_a_dict(kind: type, twice: bool) -> None:
    """A file of them is read in less time than a dict of these numbers takes to make."""
    values = [kind(number) for number in chained(15)]
    most = 0.2 + min(seconds(lambda: dict.fromkeys(values)) for _ in range(2)) / 2
    assert most > 0.25, "the values are no test any more"
    if twice:
        values[-1] = values[0]
    words = "twice; expected each level once" if twice else "the model itself has levels"
    own = changed("model.features.0", {"name": "x0", "kind": "categorical", "levels": values})
    assert words in refusal(own)
    assert takes_less(lambda: refusal(own), most)
    whole = changed("table.parts.1.levels", values)
    assert takes_less(lambda: refusal(whole), most)
    count = len(values)
    labels = np.empty(count, dtype=object)
    labels[:] = values
    rows = np.arange(float(count))[:, None]
    assert takes_less(lambda: clvq.PrototypeModel(rows, labels).class_index, most)


def test_levels_in_other_numbers_are_the_same_levels() -> None:
    feature = clvq.Feature("f", levels=[1, 0.5, "1", 2**70, False])
    same = [True, np.float32(1), Decimal(1), Fraction(1), 1 + 0j, np.True_]
    assert [feature.code(value) for value in same] == [0] * len(same)
    halves = [0.5, np.float64(0.5), Decimal("0.5"), Fraction(1, 2)]
    assert [feature.code(value) for value in halves] == [1] * len(halves)
    assert [feature.code(v) for v in ("1", np.str_("1"), 2.0**70, 0, -0.0)] == [2, 2, 3, 4, 4]
    strangers = [b"1", 2, 1j, float("nan"), float("inf"), None, (1,), [1], Fraction(1, 3), "0x1"]
    assert [feature.code(value) for value in strangers] == [-1] * len(strangers)
    for pair in ([1, True], [0.5, Fraction(1, 2)], [0, -0.0], [2**70, 2.0**70]):
        with pytest.raises(clvq.InvalidInputError, match="twice"):
            clvq.Feature("f", levels=pair)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("version", 5, "version 5 of the format, and this counterlvq reads up to 4. Update"),
        ("version", 10**30, "Update counterlvq"),
        ("version", 0, "expected 1 to 4"),
        ("version", True, "version is true or false; expected a whole number"),
        ("version", "1", "version is text"),
        ("version", ..., "lacks 'version'"),
        ("more", 1, "holds 'more'"),
        ("model.labels.type", "|V8", "'|V8'"),
        ("model.labels.type", "<i8 ", "'<i8 '"),
        ("model.labels.type", "<U3", "labels.values[0] is a whole number; expected text"),
        ("model.labels.values", [0, 1.5], "labels.values[1] is a number; expected a whole number"),
        ("model.labels.values", [0], "none of those in the document"),
        ("model.labels.values", [], "none of those in the document"),
        ("model.labels.values", [1, 1], "expected at least two classes"),
        ("model.omegas", [0, 0, 0], "expected one for all"),
        ("model.omegas", "shared", "omegas is text; expected a list"),
        ("model.omegas", [0], "the array 'omega.0' is missing"),
        ("model.features", [], "feature_names has 0 names"),
        ("model.features.0.kind", "complex", "expected one of: 'real', 'whole'"),
        ("model.features.0.lower", 5, "lower is a whole number; expected a number"),
        ("model.features.0.name", None, "name is null; expected text"),
        ("model.features.0.kind", "boolean", "a column of the model itself has levels"),
        ("table", 3, "table is a whole number; expected an object or null"),
        ("table", None, "'table.constant', 'table.levels.0', 'table.levels.1', 'table.numbers'"),
        ("table.named", 1, "expected true or false"),
        ("table.columns", ["pay", "pay"], "repeats 'pay'"),
        ("table.columns", ["pay", "job"], "the part 'cards' is no column"),
        ("table.parts.0.column", "owner", "'job' is no column of the table, or not in its order"),
        ("table.parts.1.levels", ["clerk"], "2 rows for 1 levels"),
        ("table.parts.1.levels", ["clerk", "clerk"], "'clerk' twice"),
        ("table.parts.1.levels", ["clerk", ["nurse"]], "levels[1] is a list"),
        ("table.parts.1.levels", ..., "table.numbers has 2 rows for 3 columns"),
        ("table.features.1.levels", ["clerk", "judge"], "expected levels that the pipeline knows"),
        ("table.features.0.name", "income", "feature 'income' does not exist"),
    ],
)
def test_documents_that_make_no_model(path: str, value: Any, words: str) -> None:
    # NearestCentroid has plain distances: labels are whole numbers here, and omegas null.
    assert words in refusal(changed(path, value))


def test_labels_that_their_type_cannot_hold() -> None:
    for kind, values, words in (
        ("|i1", [0, 300], "too large for the type int8"),
        ("<U2", ["yes", "no"], "more to it than the type <U2"),
        ("<f4", [0.1, 1e300], "more to it than the type float32"),
    ):
        whole = changed("model.labels.type", kind)
        assert words in refusal(changed("model.labels.values", values, whole))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"version": 1, "version": 1}', "'version' twice"),
        ('{"version": NaN}', "NaN"),
        ('{"version": 1e999}', "1e999"),
        ('{"version": ' + "9" * 5000 + "}", "no JSON"),
        ("{" * 5, "no JSON"),
        ('{"a": ' * 100_000, "nested too deeply"),
    ],
)
def test_documents_that_are_no_json(text: str, words: str) -> None:
    header, _, numbers = parts(FILES[0])
    assert words in refusal(built(header, text, numbers))


@pytest.mark.parametrize("name", sorted(parts(FILES[2])[0].keys() - {"__metadata__"}))
def test_numbers_that_are_none(name: str) -> None:
    header, document, numbers = parts(FILES[2])
    start, _ = header[name]["data_offsets"]
    for bad in (np.nan, np.inf):
        broken = bytearray(numbers)
        broken[start : start + 8] = struct.pack("<d", bad)
        text = refusal(built(header, document, bytes(broken)))
        assert "none of those" in text if name == "labels" else f"{name}[" in text
    other = {**header, name: {**header[name], "dtype": {"F64": "I64", "I64": "F64"}[
        header[name]["dtype"]]}}  # fmt: skip
    assert f"the array {name!r} has the type" in refusal(built(other, document, numbers))
    single = {**header, name: {**header[name], "dtype": "F32"}}
    assert "'F32'" in refusal(built(single, document, numbers))
    gone = {key: value for key, value in header.items() if key != name}
    refusal(built(gone, document, numbers))


def test_path_is_named(tmp_path: Path) -> None:
    path = tmp_path / "note.clvq"
    path.write_text("a note, and a long one at that")
    with pytest.raises(clvq.ModelFileError, match=r"note\.clvq cannot be loaded: this is no safe"):
        clvq.load(path)
    with pytest.raises(FileNotFoundError, match="nothing"):
        clvq.load(tmp_path / "nothing.clvq")


# --- fuzzing --------------------------------------------------------------------------------------

FUZZ = settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])


def assert_refused_or_whole(whole: bytes) -> None:
    """Only the package's own error may come out, or a model that can be saved and used."""
    try:
        model = clvq.load(io.BytesIO(whole), max_bytes=1 << 20)
    except clvq.ModelFileError:
        return
    restored = again(model)
    if isinstance(model, clvq.TableModel):
        assert_same_table_model(model, restored)
    else:
        assert_same_model(model, restored)
        model.predict(np.zeros((1, model.n_features)))


@st.composite
def mutated_bytes(draw: st.DrawFn) -> bytes:
    whole = bytearray(draw(st.sampled_from(FILES)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(whole) - 1))
        match draw(st.sampled_from(["flip", "set", "cut", "insert", "repeat"])):
            case "flip":
                whole[at] ^= 1 << draw(st.integers(0, 7))
            case "set":
                whole[at] = draw(st.integers(0, 255))
            case "cut":
                del whole[at : at + draw(st.integers(1, 40))]
            case "insert":
                whole[at:at] = draw(st.binary(min_size=1, max_size=20))
            case "repeat":
                whole[at:at] = whole[at : at + draw(st.integers(1, 60))]
        if not whole:
            break
    return bytes(whole)


@FUZZ
@given(whole=mutated_bytes())
def test_mutated_files(whole: bytes) -> None:
    assert_refused_or_whole(whole)


def test_every_truncation() -> None:
    for whole in FILES:
        for end in range(len(whole)):
            with pytest.raises(clvq.ModelFileError):
                clvq.load(io.BytesIO(whole[:end]))


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 5)
    | st.sampled_from([2**31, 2**63, 2**64, -(2**63), 10**25, 0.5, -0.0, 1e308])
    | st.sampled_from(["", "F64", "I64", "real", "whole", "<U1", "<i8", "|O", "pay", "a"])
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner,
                                                                max_size=3),
    max_leaves=6,
)  # fmt: skip


def places(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All paths into a nested value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    out = []
    for key, item in inner:
        out.append((*before, key))
        if isinstance(item, dict | list):
            out += places(item, (*before, key))
    return out


@st.composite
def mutated_headers(draw: st.DrawFn) -> bytes:
    header, document, numbers = parts(draw(st.sampled_from(FILES)))
    both: dict[str, Any] = {"header": header, "document": document}
    header.pop("__metadata__")
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(both)[2:] or [("header",)]))
        at: Any = both
        for key in path[:-1]:
            at = at[key]
        if draw(st.booleans()) or path[-1] in ("header", "document"):
            at[path[-1]] = draw(JSON_VALUES)
        else:
            del at[path[-1]]
        if not isinstance(both["header"], dict) or not isinstance(both["document"], dict):
            break
    if not isinstance(both["header"], dict):
        return framed(json.dumps(both["header"]).encode(), numbers)
    return built(both["header"], both["document"], numbers)


@FUZZ
@given(whole=mutated_headers())
def test_mutated_headers(whole: bytes) -> None:
    assert_refused_or_whole(whole)


@FUZZ
@example(header=b"{}", numbers=b"")
@given(header=JSON_VALUES.map(lambda value: json.dumps(value).encode()), numbers=st.binary())
def test_random_headers(header: bytes, numbers: bytes) -> None:
    with pytest.raises(clvq.ModelFileError):
        clvq.load(io.BytesIO(framed(header, numbers)))


FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


@st.composite
def models(draw: st.DrawFn) -> clvq.PrototypeModel:
    count, width = draw(st.integers(2, 4)), draw(st.integers(1, 3))

    def matrix(rows: int) -> list[list[float]]:
        return [[draw(FINITE) for _ in range(width)] for _ in range(rows)]

    labels = draw(st.lists(st.text(max_size=3) | st.integers() | st.booleans(), min_size=count,
                           max_size=count).filter(lambda these: len(set(these)) > 1))  # fmt: skip
    objects = np.empty(count, dtype=object)
    objects[:] = labels
    omegas = draw(st.sampled_from(["none", "shared", "local"]))
    return clvq.PrototypeModel(
        matrix(count),
        objects,
        {
            "none": lambda: None,
            "shared": lambda: matrix(2),
            "local": lambda: [matrix(1 + k % 2) for k in range(count)],
        }[omegas](),
        draw(st.lists(st.text(max_size=4), min_size=width, max_size=width, unique=True)),
        draw(st.none() | st.lists(st.floats(0, 1e300), min_size=count, max_size=count)),
    )


@FUZZ
@given(model=models())
def test_any_model_comes_back(model: clvq.PrototypeModel) -> None:
    assert_same_model(model, again(model))
