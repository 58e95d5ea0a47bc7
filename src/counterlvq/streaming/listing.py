"""Which files a source is made of: each once, and a reason for all that is left out.

Links are followed. A file that two paths lead to is read under one of them, so that a link to a
folder above, or one named after the latest files, repeats no row.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import NamedTuple, final

from counterlvq.errors import InvalidInputError
from counterlvq.files.kinds import PARQUET
from counterlvq.numeric.arrays import told

__all__ = ["LeftOut", "Listing", "listed_files", "told_of"]

_PARQUET = (".parquet", ".parq", ".pq")
_CSV = (".csv",)
# Names that programs use for what is no table, such as _SUCCESS.
_HIDDEN = (".", "_")
_HIDDEN_NAME = "its name begins with a dot or an underscore"
_CSV_VALUES = "values in paths are columns of Parquet only; the files in it are read"
_OTHER_ENDING = "it ends in neither .parquet nor .csv"
# How many are named in a sentence.
_MOST_NAMED = 5


class LeftOut(NamedTuple):
    """A file or folder that is not read, by its path from the folder of the source."""

    path: str
    why: str


class Listing(NamedTuple):
    """The files of a source."""

    root: Path
    paths: tuple[str, ...]  # from there
    is_csv: bool
    left_out: tuple[LeftOut, ...] = ()
    folders: tuple[Path, ...] = ()  # all that are read, where they really are


def listed_files(source: str | os.PathLike[str]) -> Listing:
    """List the files of a source, which is one of them or a folder."""
    place = Path(source)
    if place.is_file():
        with open(place, "rb") as file:
            is_csv = file.read(len(PARQUET)) != PARQUET
        return Listing(place.parent, (place.name,), is_csv)
    if not place.is_dir():
        what = "which is neither" if place.exists() else "and there is no such file or folder"
        raise InvalidInputError(
            f"source is {told(str(place))}, {what}; expected files of Parquet or CSV, or a folder "
            f"of them."
        )
    walk = _Walk(place)
    walk.run()
    found = sorted(walk.files)
    by_kind = [
        [path.as_posix() for path in found if path.suffix.lower() in kinds]
        for kinds in (_PARQUET, _CSV)
    ]
    left_out = tuple(sorted(walk.left_out))
    if not any(by_kind) or all(by_kind):
        what = "files of both Parquet and CSV" if all(by_kind) else "no file of Parquet or CSV"
        raise InvalidInputError(
            f"{told(str(place))} holds {what}{told_of(left_out)}; expected files of one kind, "
            f"which end in .parquet or in .csv."
        )
    paths, is_csv = tuple(by_kind[0] or by_kind[1]), bool(by_kind[1])
    if is_csv:
        holding = sorted({path.parent.as_posix() for path in found if _values(path, False)})
        left_out += tuple(LeftOut(path, _CSV_VALUES) for path in holding)
    return Listing(place, paths, is_csv, left_out, tuple(Path(real) for real in walk.folders))


def told_of(left_out: tuple[LeftOut, ...]) -> str:
    """Say what was left out, and why; nothing if all was read.

    Examples
    --------
    >>> told_of((LeftOut("a.tsv", "it is none"), LeftOut("b.tsv", "it is none")))
    "; left out: 'a.tsv', 'b.tsv' (it is none)"
    """
    by_reason = dict[str, list[str]]()
    for path, why in left_out:
        by_reason.setdefault(why, []).append(told(path))
    words = []
    for why, paths in by_reason.items():
        more = len(paths) - _MOST_NAMED
        named = ", ".join(paths[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
        words.append(f"{named} ({why})")
    return f"; left out: {', '.join(words)}" if words else ""


@final
@dataclass(eq=False)
class _Walk:
    """A walk through a folder: first all that lies in it, then where links lead."""

    root: Path
    files: list[PurePath] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    folders: dict[str, PurePath] = field(default_factory=dict)  # where they really are
    _known: dict[str, PurePath] = field(default_factory=dict)  # files, the same
    _links: list[PurePath] = field(default_factory=list)

    def run(self) -> None:
        """List all files."""
        self._look_into(PurePath())
        while self._links:
            links, self._links = sorted(self._links), []
            for path in links:
                self._follow(path)

    def _look_into(self, folder: PurePath) -> None:
        """List a folder and those in it; links wait."""
        waiting = [folder]
        while waiting:
            at = waiting.pop()
            real = os.path.realpath(self.root / at)
            if real in self.folders:
                self._leave_out_again(at, self.folders[real])
                continue
            self.folders[real] = at
            with os.scandir(self.root / at) as entries:
                for entry in self._shown(at, entries):
                    if entry.is_symlink():
                        self._links.append(at / entry.name)
                    elif entry.is_dir():
                        waiting.append(at / entry.name)
                    else:
                        self._take(at / entry.name)

    def _shown(
        self, folder: PurePath, entries: Iterator[os.DirEntry[str]]
    ) -> Iterator[os.DirEntry[str]]:
        for entry in entries:
            path = folder / entry.name
            if not entry.name.startswith(_HIDDEN):
                yield entry
            elif entry.is_dir() or _is_table(path):
                self.left_out.append(LeftOut(path.as_posix(), _HIDDEN_NAME))

    def _follow(self, path: PurePath) -> None:
        place = self.root / path
        if not place.is_dir():
            self._take(path)
            return
        # A folder that the link lies in, or the whole source lies in, leads back to itself.
        real, here = Path(os.path.realpath(place)), Path(os.path.realpath(place.parent))
        if any(inner.is_relative_to(real) for inner in (here, Path(os.path.realpath(self.root)))):
            why = "it leads back to a folder that it lies in"
            self.left_out.append(LeftOut(path.as_posix(), why))
        else:
            self._look_into(path)

    def _take(self, path: PurePath) -> None:
        """Take a file, or say why not."""
        place = self.root / path
        if not _is_table(path) and (path.suffix or place.exists()):
            self.left_out.append(LeftOut(path.as_posix(), _OTHER_ENDING))
        elif not place.is_file():
            what = "is no file" if place.exists() else "is a link that leads nowhere"
            raise InvalidInputError(
                f"{told(path.as_posix())} in {told(str(self.root))} {what}; expected files that "
                f"can be read, so that no row is missing. Delete it, or move it elsewhere."
            )
        else:
            real = os.path.realpath(place)
            first = self._known.setdefault(real, path)
            if first is path:
                self.files.append(path)
            else:
                self._leave_out_again(path, first)

    def _leave_out_again(self, path: PurePath, first: PurePath) -> None:
        """Leave out what is read already; under other values of columns it would be other rows."""
        is_folder = (self.root / path).is_dir()
        if _values(path, is_folder) != _values(first, is_folder):
            raise InvalidInputError(
                f"{told(path.as_posix())} in {told(str(self.root))} leads to "
                f"{told(first.as_posix())}, under other values of columns; expected each file "
                f"under one path. Copy it."
            )
        why = f"it leads to {told(first.as_posix())}, which is read"
        self.left_out.append(LeftOut(path.as_posix(), why))


def _is_table(path: PurePath) -> bool:
    return path.suffix.lower() in (*_PARQUET, *_CSV)


def _values(path: PurePath, is_folder: bool) -> list[str]:
    """Folders on a path that hold values of columns, such as ``country=DE``."""
    return [part for part in (path if is_folder else path.parent).parts if "=" in part]
