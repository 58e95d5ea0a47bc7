"""Files of Parquet, cut into row groups or into rows of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, final

from counterlvq.errors import InvalidInputError
from counterlvq.files.parquet_room import refuse_large_parquet, table_room
from counterlvq.files.parquet_sizes import sizes_of
from counterlvq.files.random_access import FileBytes
from counterlvq.numeric.arrays import told
from counterlvq.streaming.arrow import arrow, arrow_part, foreign_errors
from counterlvq.streaming.one_schema import as_type, refuse_other_columns, refuse_values_twice
from counterlvq.streaming.sources import (
    BATCH_ROWS,
    RAISED_BY,
    Part,
    PartBatches,
    Source,
    SourceFile,
    named,
)

__all__ = ["ParquetSource"]

_WHOLE = "a whole file. Write it again"
_BUFFER = 1 << 20
# A row group is divided if it has more than so many times the rows of a part, into so many pieces
# at most: Parquet cannot be read from the middle of a row group, so that a worker that reads one
# piece decodes all rows before it.
_FAR_MORE = 4
_MOST_PIECES = 64


@final
@dataclass(frozen=True, eq=False)
class ParquetSource(Source):
    """Files of Parquet, whose folders may hold values of columns (``country=DE``)."""

    kind = "parquet"
    root: Path
    files: tuple[SourceFile, ...]
    schema: Any
    partitions: tuple[Mapping[str, Any], ...]  # values of columns that stand in paths, per file
    group_rows: tuple[tuple[int, ...], ...]  # of each file

    @classmethod
    def of(cls, root: Path, paths: Sequence[str], max_bytes: int | None = None) -> ParquetSource:
        """Read the footers, and nothing else; text that is stored once is measured."""
        parquet, datasets = arrow_part("parquet"), arrow_part("dataset")
        full = [_encodable(root / path) for path in paths]
        files, counts, schemas = list[SourceFile](), list[tuple[int, ...]](), list[Any]()
        for path in paths:
            with foreign_errors(told(path), "Parquet", _WHOLE):
                _refuse_large(root / path, path, max_bytes)
                footer = parquet.read_metadata(root / path)
                groups = [footer.row_group(k).num_rows for k in range(footer.num_row_groups)]
                files.append(SourceFile.of(root, path, _footer_hash(root / path)))
                counts.append(tuple(groups))
                schemas.append(footer.schema.to_arrow_schema())
        for path, found in zip(paths, schemas, strict=True):
            refuse_values_twice(found.names, path)
        with foreign_errors(told(str(root)), "Parquet", "whole files of one schema"):
            dataset = datasets.dataset(
                full, format="parquet", partitioning="hive", partition_base_dir=root.as_posix()
            )
            keys = {
                fragment.path: datasets.get_partition_keys(fragment.partition_expression)
                for fragment in dataset.get_fragments()
            }
            known = tuple(keys[path] for path in full)
        # A later file may have gaps where the first one says that it has none.
        schema = arrow().schema([field.with_nullable(True) for field in dataset.schema])
        for path, found, in_path in zip(paths, schemas, known, strict=True):
            refuse_other_columns(found, path, schema, paths[0], in_path)
        return cls(root, tuple(files), schema, known, tuple(counts))

    def parts(self, part_rows: int) -> tuple[Part, ...]:
        """Take row groups together until they have so many rows; divide those of far more."""
        each = (_parts(k, counts, part_rows) for k, counts in enumerate(self.group_rows))
        return tuple(chain.from_iterable(each))

    def batches(self, part: Part) -> PartBatches:
        """Read row groups, or rows of one, a few thousand at a time."""
        with self.in_turn() as read:
            yield from read(part)

    @contextmanager
    def in_turn(self) -> Iterator[Callable[[Part], PartBatches]]:
        """Read parts one behind the other: a divided row group is decoded once, not once a part."""
        with ExitStack() as left_open:
            yield partial(self._checked, _GroupsInTurn(self._raw, left_open))

    def rows_before(self, part: Part) -> int:
        """Count the rows of the same file that come before a part, by its footer."""
        return sum(self.group_rows[part.file][: part.begin]) + part.skipped

    def _checked(self, groups: _GroupsInTurn, part: Part) -> PartBatches:
        """Read a part, and refuse a file that holds other rows than its footer says."""
        path = self.files[part.file].path
        last = max(part.begin, part.end - 1)
        place, rows = f"{told(path)}, row groups {part.begin} to {last},", 0
        with foreign_errors(place, "Parquet", _WHOLE):
            for batch in groups.rows_of(part, self.group_rows[part.file]):
                rows += len(batch)
                yield self._typed(batch, part.file), {}
        if rows != part.rows:
            raise InvalidInputError(
                f"{place} holds {rows:,} rows, and its footer announces {part.rows:,}; expected "
                f"{_WHOLE}."
            )

    def _raw(self, file: int, groups: Sequence[int]) -> Generator[Any, None, None]:
        """Decode row groups as they are in the file."""
        names = [name for name in self.schema.names if name not in self.partitions[file]]
        with arrow_part("parquet").ParquetFile(
            self.root / self.files[file].path,
            pre_buffer=False,
            buffer_size=_BUFFER,
            memory_map=False,
        ) as opened:
            yield from opened.iter_batches(BATCH_ROWS, groups, names, use_threads=False)

    def _typed(self, batch: Any, file: int) -> Any:
        """Add the columns that stand in the path, and give all of them the types of the source."""
        pa, path = arrow(), self.files[file].path
        columns = {
            name: pa.repeat(pa.scalar(value, self.schema.field(name).type), len(batch))
            for name, value in self.partitions[file].items()
        }
        columns |= {name: batch.column(name) for name in batch.schema.names}
        arrays = [self._cast(columns[field.name], field, path) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    @staticmethod
    def _cast(column: Any, field: Any, path: str) -> Any:
        try:
            return as_type(column, field.type)
        except arrow().ArrowException as error:
            raise InvalidInputError(
                f"column {told(field.name)} of {told(path)} is of type {column.type}, but of type "
                f"{field.type} in the first file ({error}); expected one type in all files."
            ) from None


@final
class _GroupsInTurn:
    """Rows of parts, where the next part of a divided row group goes on with its batches.

    Batches begin at multiples of `BATCH_ROWS` in a row group, and at the beginnings of parts,
    whether a part is read alone or behind another one: the bytes that are written depend on them.
    """

    def __init__(
        self, read: Callable[[int, Sequence[int]], Generator[Any, None, None]], left_open: ExitStack
    ) -> None:
        self._read, self._left_open = read, left_open
        self._batches: Iterator[Any] = iter(())
        self._rest: Any = None  # of the batch at hand
        self._at = (-1, -1, -1)  # file, row group, rows of it that are read

    def rows_of(self, part: Part, group_rows: Sequence[int]) -> Iterator[Any]:
        """Read the rows of a part."""
        if part.end - part.begin != 1 or part.rows == group_rows[part.begin]:
            groups = list(range(part.begin, part.end))
            with closing(self._read(part.file, groups)) as batches:
                yield from batches
            return
        if self._at != (part.file, part.begin, part.skipped):
            self._begin(part)
            for _ in self._next_rows(part.skipped):
                pass
        yield from self._next_rows(part.rows)

    def _begin(self, part: Part) -> None:
        self._left_open.close()
        self._batches = self._left_open.enter_context(closing(self._read(part.file, [part.begin])))
        self._rest, self._at = None, (part.file, part.begin, 0)

    def _next_rows(self, count: int) -> Iterator[Any]:
        while count > 0:
            if self._rest is None or not len(self._rest):
                self._rest = next(self._batches, None)
                if self._rest is None:  # the file is shorter than its footer says
                    return
            piece, self._rest = self._rest.slice(0, count), self._rest.slice(count)
            count -= len(piece)
            file, group, read = self._at
            self._at = file, group, read + len(piece)
            yield piece


def _parts(file: int, group_rows: Sequence[int], part_rows: int) -> Iterator[Part]:
    """Cut a file; one without rows has one part."""
    begin, rows = 0, 0
    for k, count in enumerate(group_rows):
        if count > _FAR_MORE * part_rows:
            if begin < k:
                yield Part(named(file, begin), file, begin, k, rows)
            size = max(part_rows, -(-count // _MOST_PIECES))
            for skipped in range(0, count, size):
                name = named(file, k, skipped)
                yield Part(name, file, k, k + 1, min(size, count - skipped), skipped)
            begin, rows = k + 1, 0
            continue
        rows += count
        if rows >= part_rows:
            yield Part(named(file, begin), file, begin, k + 1, rows)
            begin, rows = k + 1, 0
    if begin < len(group_rows) or not group_rows:
        yield Part(named(file, begin), file, begin, len(group_rows), rows)


def _encodable(place: Path) -> str:
    """Refuse names that Arrow cannot open."""
    name = place.as_posix()
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(
            f"{told(name)} has a name that is no UTF-8, which Arrow cannot open as Parquet; "
            f"expected one that is. Rename the file or its folder, or make a link to it."
        ) from None
    return name


def _refuse_large(place: Path, path: str, max_bytes: int | None) -> None:
    """Refuse a file that unpacks to far more than it is, before a library reads it."""
    with open(place, "rb") as file:
        whole = FileBytes(file)
        room = table_room(len(whole), max_bytes)
        refuse_large_parquet(sizes_of(whole), whole, told(path), room, RAISED_BY)


def _footer_hash(path: Path) -> str:
    """Hash the footer of a Parquet file, which says where everything is and how it was written."""
    with open(path, "rb") as file:
        size = file.seek(-8, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(0, size - length))
        return sha256(file.read(length)).hexdigest()
