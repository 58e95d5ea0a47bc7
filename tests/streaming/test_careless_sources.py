"""What people have in their folders and write in their calls, told in words or simply done."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import counterlvq as clvq

MODEL = clvq.PrototypeModel([[0, 1], [4, 3]], ["no", "yes"], feature_names=["a", "k"])
EXPLAINER = clvq.Explainer(MODEL)


def written(place: Path, table: pa.Table) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, place)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64(), pa.float64(), pa.string()])
@pytest.mark.parametrize("column", ["k", "z"])
def test_values_in_path_and_file_are_refused(
    tmp_path: Path, kind: pa.DataType, column: str
) -> None:
    own = pa.array([1, 2]).cast(kind)
    table = pa.table({"a": [1.0, 2.5], "k": [1.0, 2.0]} | {column: own})
    for value in (7, 8):
        written(tmp_path / "s" / f"{column}={value}" / "f.parquet", table)
    with pytest.raises(clvq.InvalidInputError, match=rf"'{column}' in its path and in the file"):
        clvq.explain_dataset(EXPLAINER, tmp_path / "s", tmp_path / "out", "yes")
    assert not (tmp_path / "out").exists()


def test_values_twice_in_a_path_are_refused(tmp_path: Path) -> None:
    written(tmp_path / "s" / "p%20q=1" / "p q=2" / "f.parquet", pa.table({"a": [1.0], "k": [1.0]}))
    with pytest.raises(clvq.InvalidInputError, match=r"column 'p q' twice in its path"):
        clvq.explain_dataset(EXPLAINER, tmp_path / "s", tmp_path / "out", "yes")


def test_gaps_may_come_behind_a_file_that_has_none(tmp_path: Path) -> None:
    none = [
        pa.field("a", pa.float64(), False),
        pa.field("k", pa.float64()),
        pa.field("n", pa.string(), False),
    ]
    written(tmp_path / "s" / "0.parquet", pa.table([[1.0], [1.0], ["x"]], schema=pa.schema(none)))
    written(
        tmp_path / "s" / "1.parquet",
        pa.table({"a": [None, 2.0], "k": [1.0, 2.0], "n": ["y", None]}),
    )
    told = clvq.explain_dataset(EXPLAINER, tmp_path / "s", tmp_path / "out", "yes")
    assert told.statuses == {"invalid": 1, "optimal": 2}
    assert pq.read_table(tmp_path / "out")["n"].to_pylist() == ["x", "y", None]


def test_values_in_paths_of_csv_are_told_of(tmp_path: Path) -> None:
    for value in ("DE", "FR"):
        folder = tmp_path / "s" / f"country={value}"
        folder.mkdir(parents=True)
        (folder / "f.csv").write_text("a,k\n1,2\n")
    told = clvq.explain_dataset(EXPLAINER, tmp_path / "s", tmp_path / "out", "yes")
    assert [path for path, _ in told.left_out] == ["country=DE", "country=FR"]
    assert "values in paths are columns of Parquet only" in str(told)
    assert told.rows == 2


@pytest.mark.parametrize("address", ["s3://bucket/x", "file:///tmp/x", Path("s3://bucket/x")])
def test_addresses_are_refused(tmp_path: Path, address: str | Path) -> None:
    written(tmp_path / "t.parquet", pa.table({"a": [1.0], "k": [1.0]}))
    with pytest.raises(
        clvq.InvalidInputError, match=r"source is .*, an address; expected the path"
    ):
        clvq.explain_dataset(EXPLAINER, address, tmp_path / "out", "yes")
    with pytest.raises(clvq.InvalidInputError, match=r"destination is .*, an address"):
        clvq.explain_dataset(EXPLAINER, tmp_path / "t.parquet", address, "yes")


@pytest.mark.parametrize("given", [MODEL, "model.clvq", None])
def test_what_is_no_explainer_is_refused(tmp_path: Path, given: object) -> None:
    with pytest.raises(clvq.InvalidInputError, match=r"explainer is .*; expected an explainer"):
        clvq.explain_dataset(given, tmp_path, tmp_path / "out", "yes")  # type: ignore[arg-type]


def test_only_rules_that_differ_are_told(tmp_path: Path) -> None:
    written(tmp_path / "t.parquet", pa.table({"a": [1.0], "k": [1.0]}))
    same = [f"a <= {90 + i} + k" for i in range(30)]
    first, second = (clvq.Explainer(MODEL, constraints=[*same, f"k <= {b}", *same]) for b in (5, 6))
    clvq.explain_dataset(first, tmp_path / "t.parquet", tmp_path / "out", "yes")
    with pytest.raises(clvq.InvalidInputError, match=r"constraints was k <= 5, and now is k <= 6;"):
        clvq.explain_dataset(second, tmp_path / "t.parquet", tmp_path / "out", "yes")


def test_folder_without_a_finished_part_is_free(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,k\n,2\n")
    with pytest.raises(clvq.InvalidInputError, match=r"column 'a' is missing"):
        clvq.explain_dataset(
            EXPLAINER, tmp_path / "t.csv", tmp_path / "out", "yes", on_bad_rows="raise"
        )
    (tmp_path / "t.csv").write_text("a,k\n1,2\n")
    clvq.explain_dataset(EXPLAINER, tmp_path / "t.csv", tmp_path / "out", "yes")
    clvq.explain_dataset(EXPLAINER, tmp_path / "t.csv", tmp_path / "alone", "yes")
    for place in (tmp_path / "alone").iterdir():
        assert place.read_bytes() == (tmp_path / "out" / place.name).read_bytes()
    with pytest.raises(clvq.InvalidInputError, match=r"begun with another question"):
        clvq.explain_dataset(EXPLAINER, tmp_path / "t.csv", tmp_path / "out", "no")


def test_file_that_goes_away_is_told(tmp_path: Path) -> None:
    table = pa.table({"a": [1.0], "k": [1.0]})
    for name in ("0", "1"):
        written(tmp_path / "s" / f"{name}.parquet", table)

    def lose(parts: int, *_: int) -> None:
        if parts == 1:
            (tmp_path / "s" / "1.parquet").unlink()

    with pytest.raises(clvq.InvalidInputError, match=r"'1.parquet' is not there any more"):
        clvq.explain_dataset(EXPLAINER, tmp_path / "s", tmp_path / "out", "yes", on_part=lose)


def test_many_gaps_are_told_in_one_sentence() -> None:
    names = [f"v{i}" for i in range(60)]
    model = clvq.PrototypeModel([[0] * 60, [4] * 60], ["no", "yes"], feature_names=names)
    batch = pa.record_batch({name: pa.nulls(3, pa.float64()) for name in names})
    found = clvq.Explainer(model).map_batches([batch], "yes").read_all()["reason"].to_pylist()
    assert found[0].startswith(
        "each of the columns 'v0', 'v1', 'v2', 'v3', 'v4' and 55 more is missing; expected"
    )
    assert found[0].count("missing") == 1
    assert found == [found[0]] * 3
