"""CSV is written as it was read: by the same options it can be read again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from counterlvq.cli.outputs import CsvSigns, bytes_of_table
from counterlvq.cli.tables import Reading, table_from
from tests.support.shell import called

TABLE = pd.DataFrame(
    {
        "Größe": [1.5, np.nan, -2.0],
        "Zahl": [3, 4, 5],
        "gemischt": np.array([1.25, "drei;vier", None], dtype=object),
        "wahr": [True, False, True],
        "Text": ["1,5", "=a", "x"],
    }
)


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
@pytest.mark.parametrize(
    ("delimiter", "decimal"), [(";", ","), ("\t", ","), (",", "."), ("|", ".")]
)
def test_what_is_written_is_read_again(delimiter: str, decimal: str, encoding: str) -> None:
    signs = CsvSigns(delimiter, decimal, encoding)
    table = TABLE.drop(columns="Text") if decimal == "," else TABLE
    whole = bytes_of_table(table, "csv", signs=signs)
    how = Reading(delimiter=delimiter, decimal=decimal, encoding=encoding)
    back = table_from(whole, "table", how)
    assert CsvSigns.of(back) == signs
    assert back["Größe"].tolist()[::2] == [1.5, -2.0]
    assert back["Zahl"].tolist() == [3, 4, 5]
    assert back["gemischt"].tolist()[:2] == [f"1{decimal}25", "drei;vier"]
    if decimal == ".":
        assert back["Text"].tolist() == TABLE["Text"].tolist()


def test_letters_that_an_encoding_lacks_lose_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    table = pd.DataFrame({"name": ["Łódź"]})
    whole = bytes_of_table(table, "csv", signs=CsvSigns(";", ",", "cp1252"))
    assert whole.decode() == "name\nŁódź\n"
    assert "cp1252 has no 'Ł'; the result is written in UTF-8." in capsys.readouterr().err


def test_answers_come_back_as_the_table_came(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"Größe": rng.normal(0, 1, 60).round(2), "n": rng.integers(0, 9, 60)})
    table["Klasse"] = np.where(table["Größe"] > 0, "groß", "klein")
    how = {"index": False, "sep": ";", "decimal": ",", "encoding": "cp1252"}
    table.to_csv(tmp_path / "all.csv", **how)
    table[table.Klasse == "klein"].head(3).drop(columns="Klasse").to_csv(
        tmp_path / "some.csv", **how
    )
    options = ["--delimiter", ";", "--decimal", ",", "--encoding", "cp1252"]
    done = called("train", "all.csv", "--label", "Klasse", "-o", "m.clvq", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    words = ["explain", "m.clvq", "some.csv", "--target", "groß", "-o", "out.csv", *options]
    done = called(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    how.pop("index")
    found = pd.read_csv(tmp_path / "out.csv", **how)
    assert found["Größe"].dtype == found["cost"].dtype == float
    assert (found["prediction"] == "groß").all()
    rest = found.drop(columns=[c for c in found if c not in ("Größe", "n")])
    rest.to_csv(tmp_path / "again.csv", index=False, **how)
    rest.to_csv(tmp_path / "commas.csv", index=False, encoding="cp1252")
    words = ["explain", "m.clvq", "commas.csv", "--target", "groß", *options]
    told = called(*words, cwd=tmp_path).stderr.decode()
    assert "if these stand between columns, read it without --delimiter." in told
    words = ["explain", "m.clvq", "again.csv", "--target", "groß", *options]
    done = called(*words, cwd=tmp_path)
    assert done.stdout.decode().count("none needed") == 3
