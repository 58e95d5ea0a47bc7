"""From the exporter's file to a model: the same model, or an error that says what is wrong."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import counterlvq as clvq
from counterlvq.adapters import as_prototype_model, load_exported
from tests.support.fakes import Tensor, fake, files, fitted, stored, torch_model
from tests.support.quick import examples

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "export_lvq.py"
PROTOTYPES = np.array([[0.0, 0.0], [4.0, 0.0]])
OMEGA = np.array([[2.0], [1.0]])


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("export_lvq", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


exporter = script()


def written(**changes: Any) -> io.BytesIO:
    """Return a good file, with some arrays changed, or left out where None."""
    arrays = {
        "format": "counterlvq-prototypes",
        "version": 1,
        "library": "sklearn-lvq",
        "kind": "GlvqModel",
        "prototypes": PROTOTYPES,
        "labels": np.array(["no", "yes"]),
    } | changes
    file = io.BytesIO()
    np.savez(file, **{key: value for key, value in arrays.items() if value is not None})
    file.seek(0)
    return file


def same(one: clvq.PrototypeModel, other: clvq.PrototypeModel, rows: np.ndarray) -> None:
    assert np.array_equal(one.prototypes, other.prototypes)
    assert one.labels.tolist() == other.labels.tolist()
    assert one.features == other.features
    assert one.is_local == other.is_local
    assert np.allclose(one.distances(rows), other.distances(rows), rtol=1e-13, atol=0)


# --- there and back -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", files())
def test_export_and_load_give_what_the_adapter_reads(name: str, tmp_path: Path) -> None:
    arrays = stored(name)
    foreign = fitted(name)
    known = {x.tobytes(): y for x, y in zip(arrays["X_test"], arrays["predict_test"], strict=True)}
    foreign.predict = lambda rows: np.array([known[x.tobytes()] for x in rows])
    exporter.export(foreign, tmp_path / "model.npz", probe=arrays["X_test"])
    loaded = load_exported(tmp_path / "model.npz")
    same(loaded, as_prototype_model(foreign), arrays["X_test"])
    assert np.array_equal(loaded.predict(arrays["X_test"]), arrays["predict_test"])
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


def of_sklearn_lvq(name: str, **attributes: Any) -> Any:
    labels = np.array(["b", "a"])
    given = {"w_": PROTOTYPES, "c_w_": labels, "classes_": np.array(["a", "b"])}
    return fake("sklearn_lvq.glvq", name, **(given | attributes))


def of_sklvq(name: str, distance: str, **attributes: Any) -> Any:
    given = {
        "prototypes_": PROTOTYPES,
        "prototypes_labels_": np.array([1, 0]),
        "classes_": np.array(["no", "yes"]),
        "distance_type": distance,
        "force_all_finite": True,
    }
    return fake("sklvq.models", name, **(given | attributes))


def of_torch(name: str, distance: str = "euclidean_distance", **attributes: Any) -> Any:
    return torch_model(name, PROTOTYPES, [1, 0], distance, **attributes)


LOCAL = [np.array([[1.0, 2.0]]), np.array([[1.0, 0.0], [3.0, 4.0]])]
STACK = Tensor(np.stack([OMEGA, 3 * OMEGA]))
LINEAR = type("LinearTransform", (), {"weights": Tensor(OMEGA)})()
MORE = {
    "relevances and matrix": of_sklearn_lvq(
        "GrmlvqModel", lambda_=np.array([0.5, 2.0]), omega_=np.array([[1.0, 2.0], [0.0, 1.0]])
    ),
    "ranks differ": of_sklearn_lvq("LgmlvqModel", omegas_=LOCAL),
    "shared coordinate": of_sklearn_lvq("LmrslvqModel", omegas_=LOCAL),
    "names": of_sklearn_lvq("GlvqModel", feature_names_in_=np.array(["a", "b"], dtype=object)),
    "object labels": of_sklearn_lvq("GlvqModel", c_w_=np.array(["x", "y"], dtype=object)),
    "truth values": of_sklearn_lvq("GlvqModel", c_w_=np.array([True, False])),
    "ordered by class": of_sklvq(
        "LGMLVQ",
        "local-adaptive-squared-euclidean",
        omega_=np.stack([np.eye(2), 3 * np.eye(2)]),
        relevance_localization="prototypes",
    ),
    "for gaps": of_sklvq("GLVQ", "euclidean", force_all_finite="allow-nan"),
    "tensors": of_torch("GLVQ"),
    "tensor relevances": of_torch("GRLVQ", _relevances=Tensor([2.0, 0.5])),
    "tensor matrix": of_torch("GMLVQ", "omega_distance", _omega=Tensor(OMEGA)),
    "tensor backbone": of_torch("SiameseGMLVQ", backbone=LINEAR),
    "linear layer": of_torch(
        "SiameseGLVQ", backbone=type("Linear", (), {"weight": Tensor(OMEGA.T)})()
    ),
    "no backbone": of_torch("SiameseGLVQ", backbone=type("Identity", (), {})()),
    "local tensors": of_torch("LGMLVQ", "lomega_distance", _omega=STACK),
    "tangents": of_torch("GTLVQ", "ltangent_distance", _omega=STACK),
}


@pytest.mark.parametrize("name", MORE)
def test_the_script_reads_as_the_adapters_do(name: str, tmp_path: Path) -> None:
    exporter.export(MORE[name], tmp_path / "model.npz")
    rows = np.random.default_rng(0).normal(size=(20, 2))
    same(load_exported(tmp_path / "model.npz"), as_prototype_model(MORE[name]), rows)


def test_a_path_may_be_text_and_an_existing_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(b"old")
    exporter.export(MORE["names"], str(path))
    assert load_exported(str(path)).features.names == ("a", "b")


def test_nothing_is_left_behind_when_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any, **kwargs: Any) -> None:
        args[0].write(b"half")
        raise OSError("disk full")

    path = tmp_path / "model.npz"
    path.write_bytes(b"old")
    monkeypatch.setattr(exporter.np, "savez_compressed", fails)
    with pytest.raises(OSError, match="disk full"):
        exporter.export(MORE["names"], path)
    assert [(found.name, found.read_bytes()) for found in tmp_path.iterdir()] == [
        ("model.npz", b"old")
    ]


# --- what the script refuses --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (object(), "a object (from builtins) cannot be exported; expected a fitted model of"),
        (fake("sklearn_lvq.glvq", "GlvqModel"), "this GlvqModel is not fitted yet ("),
        (of_sklvq("GLVQ", "cosine"), "GLVQ has the distance_type 'cosine'; expected 'squared-eu"),
        (of_torch("RSLVQ"), "RSLVQ of prototorch-models cannot be exported; expected one of GLVQ"),
        (of_torch("GLVQ", "lpnorm_distance"), "GLVQ has the distance 'lpnorm_distance'; expected"),
        (of_torch("SiameseGLVQ", backbone=object()), "has a backbone of type object; expected a"),
        (
            of_torch("KNN", competition_layer=type("KNNC", (), {"k": 3})()),
            "this KNN lets several neighbours vote; expected k=1.",
        ),
        (
            of_sklearn_lvq("GrlvqModel", lambda_=np.array([1.0, -1.0])),
            "this GrlvqModel has a relevance below 0; fit it again.",
        ),
        (
            of_sklearn_lvq("GlvqModel", w_=PROTOTYPES * np.nan),
            "prototypes holds values that are not finite.",
        ),
        (
            of_sklearn_lvq("GlvqModel", c_w_=np.array(["x", 1], dtype=object)),
            "the labels mix text with other types; expected one type.",
        ),
        (
            of_sklearn_lvq("GlvqModel", c_w_=np.array([b"x", b"y"])),
            "the labels have the type |S1; expected numbers, text or truth values.",
        ),
    ],
)
def test_the_script_says_what_is_wrong(model: Any, text: str, tmp_path: Path) -> None:
    with pytest.raises(exporter.ExportError) as raised:
        exporter.export(model, tmp_path / "model.npz")
    assert text in str(raised.value)
    assert not list(tmp_path.iterdir())


def test_a_predict_that_fails_is_reported_by_the_script(tmp_path: Path) -> None:
    with pytest.raises(exporter.ExportError, match=r"cannot predict the probe rows \(AttributeErr"):
        exporter.export(MORE["names"], tmp_path / "model.npz", probe=[[1.0, 2.0]])


def test_the_script_stores_labels_in_full(tmp_path: Path) -> None:
    foreign = of_sklearn_lvq("RslvqModel", c_w_=np.array(["no", "perhaps"]))

    def predict(rows: Any) -> Any:
        found = foreign.c_w_[((rows[:, None] - PROTOTYPES) ** 2).sum(axis=2).argmin(axis=1)]
        return found.astype(f"U{len(found[0])}")

    foreign.predict = predict
    exporter.export(foreign, tmp_path / "model.npz", probe=PROTOTYPES)
    with np.load(tmp_path / "model.npz", allow_pickle=False) as arrays:
        assert arrays["told"].tolist() == ["no", "perhaps"]
    load_exported(tmp_path / "model.npz")


# --- the command --------------------------------------------------------------------------------

LIBRARY = """
import numpy as np
class GlvqModel:
    def __init__(self):
        self.w_ = np.array([[0.0, 0.0], [4.0, 0.0]])
        self.c_w_ = np.array(["no", "yes"])
    def predict(self, rows):
        return self.c_w_[((np.asarray(rows)[:, None] - self.w_) ** 2).sum(axis=2).argmin(axis=1)]
"""


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script as a user does, next to a library of that name."""
    (folder / "sklearn_lvq").mkdir(exist_ok=True)
    (folder / "sklearn_lvq" / "__init__.py").write_text(LIBRARY)
    make = "import pickle, sklearn_lvq; pickle.dump(sklearn_lvq.GlvqModel(), open('m.pkl', 'wb'))"
    subprocess.run([sys.executable, "-c", make], cwd=folder, check=True)
    run = "import runpy, sys; sys.path.insert(0, '.'); sys.argv = sys.argv[1:]; "
    run += "runpy.run_path(sys.argv[0], run_name='__main__')"
    return subprocess.run(
        [sys.executable, "-c", run, str(SCRIPT), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_exports_a_pickle(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", [[1.0, 0.0], [3.0, 0.0]])
    done = command(tmp_path, "m.pkl", "model.npz", "--probe", "rows.npy")
    assert (done.returncode, done.stdout, done.stderr) == (0, "wrote model.npz\n", "")
    loaded = load_exported(tmp_path / "model.npz")
    assert loaded.predict([[1.0, 0.0], [3.0, 0.0]]).tolist() == ["no", "yes"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "No such file or directory: 'other.pkl'"),
        (b"junk", "other.pkl cannot be loaded here"),
    ],
)
def test_the_command_says_what_is_wrong(tmp_path: Path, content: Any, text: str) -> None:
    if content is not None:
        (tmp_path / "other.pkl").write_bytes(content)
    done = command(tmp_path, "other.pkl", "model.npz")
    assert done.returncode == 1
    assert done.stderr.startswith("export_lvq.py: ")
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "model.npz").exists()


def test_the_script_needs_numpy_only_and_old_syntax() -> None:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 7))
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in top for alias in node.names}
    assert names == {"argparse", "os", "sys", "numpy"}


# --- what the loader refuses --------------------------------------------------------------------


def test_a_good_file_is_loaded() -> None:
    model = load_exported(written(names=np.array(["a", "b"]), omegas=np.eye(2)[None].repeat(2, 0)))
    assert model.features.names == ("a", "b")
    assert model.labels.tolist() == ["no", "yes"]


BAD = {
    "no format": ({"format": None}, "the file lacks 'format'; expected a .npz file written by"),
    "no arrays": (
        {"prototypes": None, "labels": None},
        "the file lacks 'prototypes', 'labels'; expected a .npz file written by export_lvq.py.",
    ),
    "other format": ({"format": "x"}, "the file has the format 'x'; expected 'counterlvq-proto"),
    "newer": (
        {"version": 2, "prototypes": None},
        "the file has version 2 of the format; expected 1. Update counterlvq, or export the model "
        "with the export_lvq.py that came with it.",
    ),
    "version as text": ({"version": "1"}, "'version' in the file has the type <U1; expected whole"),
    "two versions": (
        {"version": [1, 1]},
        "'version' in the file has shape (2,); expected a single",
    ),
    "two kinds": ({"kind": ["a", "b"]}, "'kind' in the file has shape (2,); expected a single val"),
    "unknown": ({"extra": 1}, "the file holds 'extra', which this version of the format does not"),
    "text as numbers": (
        {"prototypes": np.array([["a"]])},
        "'prototypes' in the file has the type <U1; expected numbers. Export the model again.",
    ),
    "bytes as labels": (
        {"labels": np.array([b"a", b"b"])},
        "'labels' in the file has the type |S1; expected numbers, text or truth values.",
    ),
    "complex": ({"omegas": np.eye(2) * 1j}, "'omegas' in the file has the type complex128; expe"),
    "flat": ({"prototypes": np.ones(2)}, "prototypes has 1 dimension(s) and shape (2,); expected"),
    "infinite": ({"prototypes": PROTOTYPES + np.inf}, "prototypes[0, 0] is inf"),
    "labels": ({"labels": ["a", "b", "c"]}, "labels has shape (3,); expected (2,), one label per"),
    "columns": ({"omegas": np.eye(3)}, "omegas has 3 columns; expected 2, one per feature."),
    "matrices": (
        {"omegas": np.ones((3, 2, 2))},
        "omegas holds 3 matrices; expected 2, one per pro",
    ),
    "dimensions": ({"omegas": np.ones((1, 1, 2, 2))}, "omegas has 4 dimension(s)"),
    "names": ({"names": ["a"]}, "feature_names has 1 names; expected 2"),
    "name": ({"names": "a"}, "'names' in the file has shape (); expected one name per feature."),
    "probe only": ({"probe": PROTOTYPES}, "holds only one of 'probe' and 'told'; expected both"),
    "told": (
        {"probe": PROTOTYPES, "told": ["no"]},
        "told has shape (1,); expected (2,), one label per probe row. Export the model again.",
    ),
    "probe columns": ({"probe": np.ones((1, 3)), "told": ["no"]}, "probe has 3 columns; expected"),
    "objects": (
        {"labels": np.array(["a", {}], dtype=object)},
        "the file cannot be read as an exported model (labels.npy holds pickled objects, which",
    ),
}


@pytest.mark.filterwarnings("ignore:.*metadata.*:UserWarning")
@pytest.mark.parametrize("kind", BAD)
def test_the_loader_says_what_is_wrong(kind: str) -> None:
    changes, text = BAD[kind]
    with pytest.raises(clvq.InvalidInputError) as raised:
        load_exported(written(**changes))
    assert text in str(raised.value)


def test_the_file_is_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    path.write_bytes(written(version=7).getvalue())
    with pytest.raises(clvq.InvalidInputError, match=r"mine\.npz has version 7 of the format"):
        load_exported(path)


def test_a_missing_file_is_pythons_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        load_exported(tmp_path / "nothing.npz")


def test_other_predictions_there_than_here_are_refused() -> None:
    rows = np.array([[1.0, 0.0], [3.0, 0.0], [2.0, 0.0]])
    load_exported(written(probe=rows, told=["no", "yes", "yes"]))  # the last one is a tie
    with pytest.raises(clvq.NotSupportedError) as raised:
        load_exported(written(probe=rows, told=["no", "no", "no"]))
    assert "GlvqModel of sklearn-lvq and the prototypes read from it disagree on 1 of 3" in str(
        raised.value
    )


def test_a_file_that_needs_too_much_memory_is_refused() -> None:
    file = written(omegas=np.zeros((200, 2)))
    packed = io.BytesIO()
    np.savez_compressed(packed, **np.load(file))
    for most, words in ((800, "has more than 800 bytes"), (4000, "needs 4324 bytes of memory")):
        with pytest.raises(clvq.ModelFileError) as raised:
            load_exported(packed, max_bytes=most)
        assert words in str(raised.value)
        assert f"expected at most {most}. Pass a larger `max_bytes` if you trust" in str(
            raised.value
        )


def test_an_array_that_promises_more_than_it_has_makes_no_room_for_it() -> None:
    content = written().getvalue()
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w") as new:
        for entry in old.infolist():
            body = old.read(entry)
            if entry.filename == "prototypes.npy":
                body = body.replace(b"(2, 2), }        ", b"(2, 99999999999)}")
            new.writestr(entry.filename, body)
    with pytest.raises(clvq.InvalidInputError, match=r"32 bytes for an array of shape \(2, 9999"):
        load_exported(file)


class Attack:
    def __reduce__(self) -> Any:
        return (Path("attacked").touch, ())


def test_nothing_in_a_file_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for content in (
        written(labels=np.array([Attack(), Attack()], dtype=object)).getvalue(),
        pickle.dumps(Attack()),
    ):
        with pytest.raises(clvq.InvalidInputError, match="cannot be read as an exported model"):
            load_exported(io.BytesIO(content))
    assert not list(tmp_path.iterdir())


# --- damage -------------------------------------------------------------------------------------

GOOD = written(omegas=np.eye(2), names=np.array(["a", "b"])).getvalue()


def survives(content: bytes) -> None:
    """A file is loaded or refused with an error of this package; nothing else may happen."""
    with contextlib.suppress(clvq.CounterlvqError):
        load_exported(io.BytesIO(content))


@given(st.binary(max_size=400))
def test_random_bytes(content: bytes) -> None:
    survives(content)
    survives(b"PK\x03\x04" + content)


@pytest.mark.parametrize("step", range(7))
def test_truncated_files_are_refused(step: int) -> None:
    for length in range(step, len(GOOD), 7):
        with pytest.raises(clvq.InvalidInputError, match="cannot be read as an exported model"):
            load_exported(io.BytesIO(GOOD[:length]))


@settings(max_examples=examples(300))
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=6))
def test_changed_bytes(changes: list[tuple[int, int]]) -> None:
    content = bytearray(GOOD)
    for place, value in changes:
        content[place] = value
    survives(bytes(content))


HEADER = st.one_of(
    st.binary(max_size=80),
    st.text(
        st.sampled_from("{}()[]'\",:<f8descr shape fortran_order True 0123456789"), max_size=80
    ),
)


@settings(max_examples=examples(300))
@given(HEADER, st.binary(max_size=40), st.sampled_from([1, 2, 3]))
def test_arrays_with_any_header(header: bytes | str, rest: bytes, version: int) -> None:
    text = header.encode() if isinstance(header, str) else header
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for key in ("format", "version", "library", "kind", "prototypes", "labels"):
            archive.writestr(f"{key}.npy", b"\x93NUMPY" + bytes([version, 0]) + size + text + rest)
    survives(file.getvalue())
