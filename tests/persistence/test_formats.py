"""Files of every version of the format, written once and kept: each stays readable for good.

`docs/compatibility.md` promises it. A new version of the format adds files here and replaces none.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import counterlvq as clvq

FORMATS = Path(__file__).parents[1] / "data" / "formats"
MODELS = sorted(FORMATS.glob("model_*.clvq"))
TABLES = sorted(FORMATS.glob("table_*.clvq"))


def version(path: Path) -> int:
    whole = path.read_bytes()
    header = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])
    return int(json.loads(header["__metadata__"]["counterlvq"])["version"])


def test_there_is_a_file_of_each_version_up_to_the_present_one(tmp_path: Path) -> None:
    clvq.save(clvq.PrototypeModel([[0.0], [1.0]], ["no", "yes"]), tmp_path / "now.clvq")
    for kept in (MODELS, TABLES):
        assert [version(path) for path in kept] == [*range(1, version(tmp_path / "now.clvq") + 1)]


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_stored_model_is_the_one_that_was_saved(path: Path) -> None:
    model = clvq.load(path)
    assert isinstance(model, clvq.PrototypeModel)
    assert model.prototypes.tolist() == [[0.0, 0.5], [4.0, -1.0], [8.0, 2.25]]
    assert model.labels.tolist() == ["no", "yes", "yes"]
    first = [[1.0, 0.5], [0.0, 2.0]]
    assert [np.asarray(omega).tolist() for omega in model.omegas] == [first, first, [[3.0, 0.0]]]
    assert model.offsets.tolist() == [0.0, 0.0, 0.25]
    assert model.predict([[0.0, 0.0], [4.0, -1.0]]).tolist() == ["no", "yes"]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_stored_pipeline_still_reads_its_table(path: Path) -> None:
    pd = pytest.importorskip("pandas")
    table = clvq.load(path)
    assert isinstance(table, clvq.TableModel)
    assert table.features["size"].unit == "sqm"
    rows = pd.DataFrame({"size": [11.0, 33.0], "heating": ["coal", "gas"]})
    assert table.predict(rows).tolist() == ["cheap", "dear"]
    assert clvq.Explainer(table).explain(rows.iloc[0], target="dear").status == "optimal"


def test_stored_summary_is_the_one_that_was_saved() -> None:
    pd = pytest.importorskip("pandas")
    path = FORMATS / "summary_3.clvq"
    table = clvq.load(path)
    assert version(path) == 3
    size = np.linspace(10.0, 39.0, 30)
    assert table.reference["size"].median == np.median(size)
    assert table.reference["size"].seen == (size[9], size[-10])
    assert table.reference["heating"].shares == (("coal", 0.5), ("gas", 0.5))
    assert table.features["size"].change == "increase"
    assert table.features["heating"].words("gas") == "heated by gas"
    assert table.features["heating"].switches == {("coal", "gas"): 0.5}
    rows = pd.DataFrame({"size": [11.0], "heating": ["coal"]})
    assert clvq.Explainer(table).explain(rows.iloc[0], target="dear").status == "optimal"
