"""Tables of prototypes, as other tools write them, in Python and at the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import counterlvq as clvq
from tests.support.shell import called

POINTS = np.array([[1.0, 3.0, 0.5], [4.0, 1.0, 2.0], [2.0, 2.0, -1.0]])
NAMES = ["income", "debts", "age"]
LABELS = ["no", "yes", "no"]
OMEGA = np.array([[1.0, 0.5, 0.0], [0.0, 2.0, -1.0]])
TABLE = pd.DataFrame(POINTS, columns=NAMES).assign(granted=LABELS)


@pytest.mark.parametrize(
    "table", [TABLE, pl.from_pandas(TABLE), TABLE.to_dict("list")], ids=["pandas", "polars", "dict"]
)
@pytest.mark.parametrize("omega", [None, OMEGA, pd.DataFrame(OMEGA, columns=NAMES)[NAMES[::-1]]])
def test_a_table_is_a_model(table: Any, omega: Any) -> None:
    model = clvq.import_prototypes(table, "granted", omega)
    plain = clvq.PrototypeModel(POINTS, LABELS, None if omega is None else OMEGA, NAMES)
    rows = np.random.default_rng(0).normal(size=(50, 3)) * 3
    assert np.array_equal(model.distances(rows), plain.distances(rows))
    assert model.predict(rows).tolist() == plain.predict(rows).tolist()
    assert model.features.names == tuple(NAMES)


def test_a_metric_for_each_and_angles() -> None:
    each = [k * pd.DataFrame(OMEGA, columns=NAMES) for k in (1, 2, 3)]
    assert clvq.import_prototypes(TABLE, "granted", each).is_local
    angles = clvq.import_prototypes(TABLE, "granted", OMEGA, angles=True)
    assert angles.meaning.scores == "angle"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"label": "grant"}, "feature 'grant' does not exist"),
        ({"label": "granted", "drop": ["x"]}, "feature 'x' does not exist"),
        ({"label": "granted", "drop": NAMES}, "no column beside 'granted'"),
        ({"label": "income"}, "column 'granted' of the table holds 'no'"),
        ({"label": "granted", "omegas": OMEGA[:, :2]}, "omegas has"),
        ({"label": "granted", "omegas": [OMEGA, OMEGA]}, "omegas holds 2 matrices"),
        ({"label": "granted", "omegas": TABLE}, "too many: 'granted'"),
    ],
)
def test_what_does_not_fit_is_refused(told: dict[str, Any], words: str) -> None:
    with pytest.raises(clvq.InvalidInputError, match=words):
        clvq.import_prototypes(TABLE, **told)


def test_a_list_is_no_table() -> None:
    with pytest.raises(clvq.InvalidInputError, match="expected a DataFrame"):
        clvq.import_prototypes([[1.0, 2.0]], "granted")


# --- at the command line ------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    TABLE.to_csv(tmp_path / "prototypes.csv", index=False)
    np.savetxt(tmp_path / "bare.csv", OMEGA, delimiter=",")  # as MATLAB writes a matrix
    pd.DataFrame(OMEGA, columns=NAMES)[NAMES[::-1]].to_csv(tmp_path / "named.csv", index=False)
    (tmp_path / "rows.csv").write_text("income,debts,age\n1,3,0.5\n")
    (tmp_path / "words.csv").write_text("a,b,c\n1,2,3\n")
    (tmp_path / "empty.csv").write_text("\n")
    return tmp_path


def imported(folder: Path, *words: str) -> clvq.PrototypeModel:
    done = called(
        "import", "prototypes.csv", "--label", "granted", *words, "-o", "m.clvq", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    loaded = clvq.load(folder / "m.clvq")
    assert isinstance(loaded, clvq.PrototypeModel)
    return loaded


@pytest.mark.parametrize("name", ["bare.csv", "named.csv"])
def test_prototypes_and_metric_from_files(folder: Path, name: str) -> None:
    model = imported(folder, "--omega", name)
    assert np.allclose(model.shared_factor, OMEGA)
    assert np.array_equal(model.prototypes, POINTS)
    done = called("explain", "m.clvq", "rows.csv", "--target", "yes", cwd=folder)
    assert done.returncode == 0, done.stderr


def test_other_options(folder: Path) -> None:
    assert imported(folder).omegas is None
    assert imported(folder, "--angles").meaning.scores == "angle"
    assert imported(folder, "--drop", "age").n_features == 2
    local = imported(folder, *(["--omega", "bare.csv"] * 2), "--omega", "named.csv")
    assert not local.is_local  # three times the same
    (folder / "third.csv").write_text("1,0,0\n")
    words = ["--omega", "bare.csv", "--omega", "named.csv", "--omega", "third.csv"]
    assert imported(folder, *words).is_local


def test_a_summary_of_rows_lifts_what_a_table_of_prototypes_lacks(folder: Path) -> None:
    imported(folder)
    bare = called("explain", "m.clvq", "rows.csv", "--target", "yes", cwd=folder).stderr
    assert b"no summary" in bare
    assert b"import --reference" in bare
    assert b"Train" not in bare  # nobody can: there are no rows to train on
    rng = np.random.default_rng(0)
    seen = pd.DataFrame(rng.normal(2.0, 1.0, (40, 3)).round(1), columns=NAMES).assign(name="x")
    seen[["name", *NAMES[::-1]]].to_csv(folder / "seen.csv", index=False)
    summary = imported(folder, "--reference", "seen.csv").reference
    assert summary is not None
    medians = {column.name: column.median for column in summary.columns}
    assert medians == {name: float(seen[name].median()) for name in NAMES}
    done = called("explain", "m.clvq", "rows.csv", "--target", "yes", cwd=folder)
    assert b"no summary" not in done.stderr


def test_standard_input_and_output(folder: Path) -> None:
    whole = (folder / "prototypes.csv").read_bytes()
    done = called("import", "-", "--label", "granted", "-o", "-", cwd=folder, stdin=whole)
    assert done.returncode == 0
    (folder / "out.clvq").write_bytes(done.stdout)
    assert clvq.load(folder / "out.clvq").n_prototypes == 3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--omega", "words.csv"], "words.csv holds 'a' in row 1; expected numbers, or a first"),
        (["--omega", "empty.csv"], "empty.csv is empty"),
        (["--omega", "rows.csv", "--drop", "age"], "3 values in row 1; expected 2"),
        (["--drop", "nothing"], "feature 'nothing' does not exist"),
        (["--omega", "bare.csv", "--omega", "bare.csv"], "omegas holds 2 matrices"),
        (["--reference", "words.csv"], "words.csv has no column 'income'"),
    ],
)
def test_errors_are_one_line(folder: Path, words: list[str], told: str) -> None:
    done = called(
        "import", "prototypes.csv", "--label", "granted", *words, "-o", "m.clvq", cwd=folder
    )
    assert done.returncode == 1
    assert told in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert not (folder / "m.clvq").exists()
