"""Row groups of far more rows than a part are divided, and read the same from anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import counterlvq as clvq
from counterlvq.streaming.parquet_source import ParquetSource
from tests.streaming.test_batches import plain_explainer, plain_table
from tests.streaming.test_dataset import answers, contents, explained, manifest


def in_parts(path: Path, part_rows: int) -> tuple[ParquetSource, list[tuple[str, int]]]:
    source = ParquetSource.of(path.parent, [path.name])
    return source, [(part.name, part.rows) for part in source.parts(part_rows)]


def written(path: Path, groups: list[int]) -> pa.Table:
    """Write row groups of so many rows."""
    table, begin = plain_table(sum(groups)), 0
    with pq.ParquetWriter(path, table.schema) as writer:
        for rows in groups:
            writer.write_table(table.slice(begin, rows), row_group_size=max(rows, 1))
            begin += rows
    return table


def test_only_large_row_groups_are_divided(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    written(path, [3, 4, 90, 2, 40, 1])
    assert in_parts(path, 10)[1] == [
        ("part-00000-00000.parquet", 7),
        *((f"part-00000-00002-00000000{k}0.parquet", 10) for k in range(9)),
        ("part-00000-00003.parquet", 42),
        ("part-00000-00005.parquet", 1),
    ]
    source, _ = in_parts(path, 10)
    begins = [source.rows_before(part) for part in source.parts(10)]
    assert begins == [0, *range(7, 97, 10), 97, 139]


def test_pieces_are_at_most_64_and_take_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    written(path, [130])
    sizes = [rows for _, rows in in_parts(path, 1)[1]]
    assert sizes == [3] * 43 + [1]
    assert [rows for _, rows in in_parts(path, 32)[1]] == [32] * 4 + [2]
    assert [rows for _, rows in in_parts(path, 33)[1]] == [130]


@pytest.mark.parametrize("batch_rows", [1, 4, 7, 1000])
def test_a_piece_is_read_alone_as_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_rows: int
) -> None:
    monkeypatch.setattr("counterlvq.streaming.parquet_source.BATCH_ROWS", batch_rows)
    path = tmp_path / "t.parquet"
    table = written(path, [2, 61, 5, 30])
    source, _ = in_parts(path, 6)
    parts = source.parts(6)
    with source.in_turn() as read:
        in_turn = [[batch for batch, _ in read(part)] for part in parts]
    with source.in_turn() as read:  # as a run that goes on does: some parts are finished
        jumping = {part: [batch for batch, _ in read(part)] for part in parts[::3]}
    for part, found in zip(parts, in_turn, strict=True):
        alone = [batch for batch, _ in source.batches(part)]
        assert [len(batch) for batch in alone] == [len(batch) for batch in found]
        assert alone == found == jumping.get(part, found)
        assert sum(map(len, alone)) == part.rows
    assert pa.Table.from_batches([b for found in in_turn for b in found]).equals(table)


def test_part_left_in_the_middle_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    written(path, [50])
    source, _ = in_parts(path, 10)
    first, second, *_ = source.parts(10)
    with source.in_turn() as read:
        next(read(first))  # answering raised, say
        again = [batch for batch, _ in read(first)]
        assert again == [batch for batch, _ in source.batches(first)]
        assert [batch for batch, _ in read(second)] == [b for b, _ in source.batches(second)]


def test_answers_and_bytes_do_not_depend_on_what_was_finished(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = written(path, [100, 8])
    explained(path, tmp_path / "whole", part_rows=9)
    names = [part["name"] for part in manifest(tmp_path / "whole")["parts"]]
    assert len(names) == 13
    whole = plain_explainer().map_batches(table.to_batches(), "c").read_all()
    assert answers(tmp_path / "whole").equals(whole)  # in the order of their names
    rng = np.random.default_rng(0)
    for k in range(4):
        folder = tmp_path / f"again{k}"
        explained(path, folder, part_rows=9)
        for name in rng.choice(names, size=4, replace=False):
            (folder / name).unlink()
        told = explained(path, folder, part_rows=9)
        assert told.resumed == 9
        assert contents(folder) == contents(tmp_path / "whole")


def test_bad_row_of_a_piece_is_told_with_its_place_in_the_file(tmp_path: Path) -> None:
    numbers: list[Any] = [None if i == 37 else float(i) for i in range(60)]
    table = plain_table(60).set_column(1, "u", pa.array(numbers, pa.float64()))
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(clvq.InvalidInputError, match=r"row 37 of the file, counted from 0"):
        explained(tmp_path / "t.parquet", tmp_path / "out", on_bad_rows="raise", part_rows=5)


def test_pending_pieces_are_deleted(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    written(path, [50])
    explained(path, tmp_path / "out", part_rows=10)
    left = tmp_path / "out" / ".part-00000-00000-0000000010.parquet.0123456789abcdef.pending"
    left.write_bytes(b"half")
    explained(path, tmp_path / "out", part_rows=10)
    assert not left.exists()
