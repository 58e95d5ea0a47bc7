"""Where rows come from: files of Parquet or CSV, cut into parts before any row is read.

How a source is cut depends on the files alone, so that every run cuts it in the same way and a
part can be read without those before it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, final

from counterlvq.errors import InvalidInputError
from counterlvq.files.parquet_room import refuse_large_parquet, table_room
from counterlvq.files.parquet_sizes import sizes_of
from counterlvq.files.random_access import FileBytes
from counterlvq.numeric.arrays import told
from counterlvq.streaming.arrow import arrow, arrow_part, foreign_errors
from counterlvq.streaming.one_schema import as_type, refuse_other_columns

__all__ = [
    "BATCH_ROWS",
    "RAISED_BY",
    "ParquetSource",
    "Part",
    "Source",
    "SourceFile",
    "named",
]

# Rows that are in memory at a time.
BATCH_ROWS = 1 << 16
# What allows a file to take more memory than its size does.
RAISED_BY = "max_bytes (--max-memory)"
_WHOLE = "a whole file. Write it again"
_BUFFER = 1 << 20


class Part(NamedTuple):
    """A piece of a source: row groups of a file, or bytes of one."""

    name: str
    file: int
    begin: int
    end: int  # behind the last row group, or the last byte
    rows: int  # of CSV as far as lines tell


class SourceFile(NamedTuple):
    """A file, and by what it is told that it is still the same."""

    path: str  # from the folder of the source
    size: int
    modified: int  # nanoseconds
    hash: str  # of the contents of CSV, of the footer of Parquet

    @classmethod
    def of(cls, root: Path, path: str, content_hash: str) -> SourceFile:
        """Look at a file."""
        found = os.stat(root / path)
        return cls(path, found.st_size, found.st_mtime_ns, content_hash)


class Source(ABC):
    """Rows in files; picklable, so that workers can read parts of it."""

    kind: ClassVar[str]
    root: Path
    files: tuple[SourceFile, ...]
    schema: Any  # pyarrow.Schema of all rows

    @abstractmethod
    def parts(self, part_rows: int) -> tuple[Part, ...]:
        """Cut the source; each file has one part at least."""

    @abstractmethod
    def batches(self, part: Part) -> Iterator[tuple[Any, Mapping[int, str]]]:
        """Read a part: record batches, and what is wrong with rows that cannot be read."""

    @abstractmethod
    def rows_before(self, part: Part) -> int:
        """Count the rows of the same file that come before a part."""

    def row_name(self, part: Part, before: int, row: int) -> str:
        """Name a row by its place in the file; `before` are those of the part that were read."""
        return f"row {self.rows_before(part) + before + row:,} of the file, counted from 0"

    def document(self) -> dict[str, Any]:
        """Describe the files, for the manifest."""
        return {"kind": self.kind, "files": [file._asdict() for file in self.files]}

    def refuse_changed(self, part: Part) -> None:
        """Refuse a file that was written to while it was read."""
        known = self.files[part.file]
        found = os.stat(self.root / known.path)
        if (found.st_size, found.st_mtime_ns) != (known.size, known.modified):
            raise InvalidInputError(
                f"{told(known.path)} has changed while it was read; expected a source that stays "
                f"as it is. What is finished is from before; begin again in another folder."
            )


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
        with foreign_errors(told(str(root)), "Parquet", "whole files of one schema"):
            dataset = datasets.dataset(
                full, format="parquet", partitioning="hive", partition_base_dir=root.as_posix()
            )
            keys = {
                fragment.path: datasets.get_partition_keys(fragment.partition_expression)
                for fragment in dataset.get_fragments()
            }
            known = tuple(keys[path] for path in full)
        schema = dataset.schema.remove_metadata()
        for path, found, in_path in zip(paths, schemas, known, strict=True):
            refuse_other_columns(found, path, schema, paths[0], in_path)
        return cls(root, tuple(files), schema, known, tuple(counts))

    def parts(self, part_rows: int) -> tuple[Part, ...]:
        """Take row groups together until they have so many rows; none is divided."""
        out = []
        for k, counts in enumerate(self.group_rows):
            begin, rows = 0, 0
            for end, count in enumerate(counts, start=1):
                rows += count
                if rows >= part_rows or end == len(counts):
                    out.append(Part(named(k, begin), k, begin, end, rows))
                    begin, rows = end, 0
            if not counts:
                out.append(Part(named(k, 0), k, 0, 0, 0))
        return tuple(out)

    def batches(self, part: Part) -> Iterator[tuple[Any, Mapping[int, str]]]:
        """Read row groups, a few thousand rows at a time."""
        path = self.files[part.file].path
        last = max(part.begin, part.end - 1)
        place, rows = f"{told(path)}, row groups {part.begin} to {last},", 0
        with foreign_errors(place, "Parquet", _WHOLE):
            for batch in self._read(part):
                rows += len(batch)
                yield batch, {}
        if rows != part.rows:
            raise InvalidInputError(
                f"{place} holds {rows:,} rows, and its footer announces {part.rows:,}; expected "
                f"{_WHOLE}."
            )

    def rows_before(self, part: Part) -> int:
        """Count the rows of the same file that come before a part, by its footer."""
        return sum(self.group_rows[part.file][: part.begin])

    def _read(self, part: Part) -> Iterator[Any]:
        pa, parquet = arrow(), arrow_part("parquet")
        known, path = self.partitions[part.file], self.files[part.file].path
        names = [name for name in self.schema.names if name not in known]
        with parquet.ParquetFile(
            self.root / path, pre_buffer=False, buffer_size=_BUFFER, memory_map=False
        ) as file:
            groups = list(range(part.begin, part.end))
            for batch in file.iter_batches(BATCH_ROWS, groups, names, use_threads=False):
                columns = {
                    name: pa.repeat(pa.scalar(value, self.schema.field(name).type), len(batch))
                    for name, value in known.items()
                }
                columns |= {name: batch.column(name) for name in names}
                arrays = [self._cast(columns[field.name], field, path) for field in self.schema]
                yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    @staticmethod
    def _cast(column: Any, field: Any, path: str) -> Any:
        try:
            return as_type(column, field.type)
        except arrow().ArrowException as error:
            raise InvalidInputError(
                f"column {told(field.name)} of {told(path)} is of type {column.type}, but of type "
                f"{field.type} in the first file ({error}); expected one type in all files."
            ) from None


def named(file: int, begin: int) -> str:
    """Name a part by the file and the row group, or the piece, that it begins with."""
    return f"part-{file:05d}-{begin:05d}.parquet"


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
