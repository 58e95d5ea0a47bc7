"""Fit in the environment of another library, explain here, confirm there.

Not part of the default suite: `make test-peers` builds the environments (some minutes and, for
prototorch, some gigabytes) and runs this.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.adapters import load_exported
from tests.peers.environments import PEERS, ROOT, NoSuchPython, ready

EXPORTER = ROOT / "scripts" / "export_lvq.py"
THERE = Path(__file__).with_name("there.py")

SKLEARN_LVQ = ["glvq", "grlvq", "gmlvq", "gmlvq-rank2", "grmlvq", "lgmlvq", "lgmlvq-class", "rslvq"]
SKLVQ = ["glvq", "glvq-root", "glvq-gaps", "gmlvq", "gmlvq-rank2", "lgmlvq", "lgmlvq-class"]
PROTOTORCH = ["glvq", "grlvq", "gmlvq", "siamesegmlvq", "lgmlvq", "gtlvq", "celvq", "lvq21"]
MODELS = {
    "sklearn-lvq": [f"{data}-{kind}" for data in ("iris", "cancer") for kind in SKLEARN_LVQ]
    + ["iris-mrslvq", "iris-lmrslvq"],
    "sklvq": [f"{data}-{kind}" for data in ("iris", "cancer") for kind in SKLVQ],
    "prototorch": [f"{data}-{kind}" for data in ("iris", "cancer") for kind in PROTOTORCH],
}
LOCAL = {"lgmlvq", "lgmlvq-class", "lmrslvq", "gtlvq"}
# prototorch computes in single precision: counterfactuals lead by more than its last digits, which
# leaves gaps.
SINGLE = {"prototorch"}
LOCAL_ROWS = 5
TIMEOUT = 3600  # a first run downloads and installs


@pytest.fixture(scope="module", params=list(MODELS))
def fitted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple:
    """Models of one library, fitted and exported in its own environment."""
    library = request.param
    folder = tmp_path_factory.mktemp(library)
    there(library, "fit", library, str(folder), str(EXPORTER))
    return library, folder


def there(library: str, *arguments: str) -> None:
    python = ready(PEERS[library])
    alone = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(python), str(THERE), *arguments],
        env=alone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def is_local(name: str) -> bool:
    return name.split("-", 1)[1] in LOCAL


@pytest.mark.timeout(TIMEOUT)
def test_every_model_predicts_here_as_there(fitted: tuple[str, Path]) -> None:
    library, folder = fitted
    found = sorted(path.stem for path in folder.glob("*.npz"))
    assert found == sorted(MODELS[library])
    for name in found:
        model = load_exported(folder / f"{name}.npz")  # compares the probe rows as well
        rows, told = np.load(folder / f"{name}.rows.npy"), np.load(folder / f"{name}.told.npy")
        assert model.is_local == is_local(name), name
        assert np.array_equal(model.predict(rows), told), name
        assert set(told.tolist()) <= set(model.classes.tolist())


def questions(model: clvq.PrototypeModel, rows: np.ndarray) -> Iterator[tuple[object, np.ndarray]]:
    """Every class, with the rows that do not have it yet, if there are any."""
    for target in model.classes.tolist():
        others = rows[model.predict(rows) != target]
        if len(others):
            yield target, others


@pytest.mark.timeout(TIMEOUT)
def test_every_counterfactual_is_confirmed_there(fitted: tuple[str, Path]) -> None:
    library, folder = fitted
    targets: dict[str, list[object]] = {}
    for name in MODELS[library]:
        model = load_exported(folder / f"{name}.npz")
        table = np.load(folder / f"{name}.rows.npy")
        explainer = clvq.Explainer(model)
        wanted, targets[name] = [], []
        for target, others in questions(model, table):
            # Proofs for local metrics take their time, and "auto" may leave a gap open.
            rows = others[:LOCAL_ROWS] if model.is_local else others
            batch = explainer.explain_batch(rows, target=target)
            open_gaps = library in SINGLE or model.is_local
            expected = {"optimal", "feasible"} if open_gaps else {"optimal"}
            assert set(batch.status.tolist()) <= expected, name
            wanted.append(batch.X)
            targets[name] += [target] * len(rows)
        np.save(folder / f"{name}.wanted.npy", np.concatenate(wanted))
    there(library, "confirm", library, str(folder))
    for name, wished in targets.items():
        confirmed = np.load(folder / f"{name}.confirmed.npy").tolist()
        wrong = [i for i, label in enumerate(confirmed) if label != wished[i]]
        assert len(confirmed) == len(wished) > 0
        assert not wrong, f"{name}: {len(wrong)} of {len(wished)} not confirmed, first {wrong[0]}"
        print(f"{library} {name}: {len(wished)} counterfactuals confirmed")


@pytest.mark.timeout(TIMEOUT)
def test_the_exporter_runs_on_the_oldest_versions_it_promises(tmp_path: Path) -> None:
    library = (
        "import numpy as np\n"
        "class LgmlvqModel:\n"
        "    w_ = np.array([[0.0, 0.0], [4.0, 0.0]])\n"
        "    c_w_ = np.array(['no', 'yes'])\n"
        "    omegas_ = [np.array([[1.0, 2.0]]), np.eye(2)]\n"
    )
    (tmp_path / "sklearn_lvq.py").write_text(library)
    code = (
        "import pickle, sys; sys.path[:0] = ['.', sys.argv[1]]; import sklearn_lvq, export_lvq;"
        "model = sklearn_lvq.LgmlvqModel(); pickle.dump(model, open('m.pkl', 'wb'));"
        "sys.exit(export_lvq.main(['m.pkl', 'model.npz']))"
    )
    try:
        python = ready(PEERS["oldest"])
    except NoSuchPython as error:
        pytest.skip(str(error))
    subprocess.run([str(python), "-c", code, str(EXPORTER.parent)], cwd=tmp_path, check=True)
    model = load_exported(tmp_path / "model.npz")
    assert model.is_local
    assert model.distances([[1.0, 1.0]]).tolist() == [[9.0, 10.0]]
