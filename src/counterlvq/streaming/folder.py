"""A folder of answers: a manifest, and parts that are there whole or not at all.

A part is written under a pending name, flushed to the disk and renamed. So a part that has its
name is finished, whatever happened, and everything that is pending may be deleted. The manifest
says what is asked, and is otherwise for people: how the source is cut is found out anew by every
run. Of the state of a part the file itself is the witness. It says of which question and rows it
is, and holds the hash of all its other bytes, which is compared before a run goes on.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from io import BufferedIOBase
from pathlib import Path
from typing import Any, final

from counterlvq.errors import InvalidInputError
from counterlvq.files import naming_full_disks, read_at_most, sync_folder, whole_file
from counterlvq.files.parquet_sizes import sizes_of
from counterlvq.files.random_access import FileBytes
from counterlvq.numeric.arrays import told
from counterlvq.streaming.answers import Answered
from counterlvq.streaming.arrow import arrow_part, foreign_errors
from counterlvq.streaming.asked import difference, words_apart
from counterlvq.streaming.tally import Tally

__all__ = ["MANIFEST", "AnswerFolder"]

# Whoever reads folders of Parquet passes over names that begin so.
MANIFEST = "_manifest.json"
_LOCK = ".lock"
_PENDING = ".pending"
# What a run that was ended leaves behind; other hidden files are the user's.
_LEFT = re.compile(
    r"\.(part-\d{5,}-\d{5,}(-\d{10,})?\.parquet\.[0-9a-f]{16}\.pending"
    r"|_manifest\.json\.[0-9a-f]{16}\.part)",
    re.ASCII,
)
# Where a part keeps what became of its rows, the seal of what it answers, and the
# hash of its bytes with this blank in the place of the hash.
_COUNTS, _SEAL, _HASH = b"counterlvq.rows", b"counterlvq.part", b"counterlvq.hash"
_BLANK = b"0" * 64
_BLOCK = 1 << 20
_MOST_MANIFEST = 1 << 30
_PARQUET = ".parquet"
# What two runs have to have in common, and what it is called.
_SAME = {
    "format": "another format of folders",
    "version": "another version of counterlvq",
    "model": "another model",
    "question": "another question",
    "part_rows": "parts of another size",
    "source": "another source",
}
_NO_MANIFEST = "expected the manifest of a run. Name another folder."
_WHOLE = "the part as this run would write it. Delete it, and it is written again"


@final
@dataclass(frozen=True)
class AnswerFolder:
    """Where the parts of a run go."""

    path: Path

    def refuse_file(self) -> None:
        """Refuse something that is no folder."""
        if self.path.exists() and not self.path.is_dir():
            raise InvalidInputError(
                f"destination {told(str(self.path))} is a file; expected a new folder, an empty "
                f"one, or one that a run has begun."
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out; the system opens the lock when a process ends, however it does."""
        self.refuse_file()
        self.path.mkdir(parents=True, exist_ok=True)
        place = self.path / _LOCK
        _refuse_other_lock(place)
        while True:
            handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                _take_lock(handle)
            except OSError:
                os.close(handle)
                raise InvalidInputError(
                    f"another run is writing into {told(str(self.path))}; expected one at a time. "
                    f"Wait for it to end, or name another folder."
                ) from None
            # The run before may have removed the file between the two steps.
            if _is_at(handle, place):
                break
            os.close(handle)
        try:
            yield
        finally:
            with suppress(FileNotFoundError):
                os.unlink(place)
            os.close(handle)

    def manifest(self) -> dict[str, Any] | None:
        """Read what the folder was begun with; None if it is empty."""
        place = self.path / MANIFEST
        try:
            with open(place, "rb") as file:
                found = json.loads(read_at_most(file, _MOST_MANIFEST).decode("utf-8"))
        except FileNotFoundError:
            self._refuse_strangers()
            return None
        except (ValueError, RecursionError, MemoryError) as error:
            reason = str(error) or type(error).__name__
            raise InvalidInputError(
                f"{told(str(place))} cannot be read ({reason}); {_NO_MANIFEST}"
            ) from None
        if not isinstance(found, dict):
            raise InvalidInputError(
                f"{told(str(place))} holds JSON that is no object; {_NO_MANIFEST}"
            )
        return found

    def _refuse_strangers(self) -> None:
        others = sorted(p.name for p in self.path.iterdir() if not p.name.startswith("."))
        if others:
            raise InvalidInputError(
                f"{told(str(self.path))} holds {told(others[0])} and no manifest; expected an "
                f"empty folder, a new one, or one that a run has begun."
            )

    def refuse_another(self, begun: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
        """Refuse to go on with something else than the folder was begun with."""
        for name, what in _SAME.items():
            if begun.get(name) != asked[name]:
                detail = _detail(name, begun, asked)
                raise InvalidInputError(
                    f"{told(str(self.path))} was begun with {what}{detail}; expected the same, so "
                    f"that all parts belong together. Name another folder."
                )

    def has_parts(self) -> bool:
        """Whether anything was answered here."""
        return self.path.is_dir() and any(_is_part(place.name) for place in self.path.iterdir())

    def begun_part_rows(self) -> int | None:
        """Rows of a part that the folder was begun with; None if nobody has begun it."""
        if not (self.path / MANIFEST).is_file():
            return None
        found = (self.manifest() or {}).get("part_rows")
        return found if type(found) is int and found > 0 else None

    def write_manifest(self, content: Mapping[str, Any]) -> None:
        """Write the manifest, whole or not at all."""
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        with whole_file(self.path / MANIFEST) as file:
            file.write(f"{text}\n".encode("utf-8", "backslashreplace"))

    def clear_pending(self) -> None:
        """Delete what runs left behind that were ended."""
        for place in self.path.iterdir():
            if _LEFT.fullmatch(place.name) and not place.is_dir():
                with suppress(FileNotFoundError):
                    place.unlink()

    def finished(self, seals: Mapping[str, str]) -> dict[str, Tally]:
        """Parts that are finished, with what became of their rows.

        `seals` are those of all parts of the run by their names; parts of others are refused.
        """
        there = sorted(place.name for place in self.path.iterdir())
        for name in there:
            if _is_part(name) and name not in seals:
                raise InvalidInputError(
                    f"{told(str(self.path))} holds {told(name)}, which is none of the "
                    f"{len(seals):,} parts of this run; expected these alone. Move it elsewhere."
                )
        return {name: self._tally(name, seals[name]) for name in there if name in seals}

    def _tally(self, name: str, seal: str) -> Tally:
        """Check a part, and read what became of its rows."""
        place = self.path / name
        with foreign_errors(told(str(place)), "Parquet", _WHOLE):
            with open(place, "rb") as file:
                sizes_of(FileBytes(file))  # which ends no process, whatever is damaged
                at, found = _hash(file)
                file.seek(at)
                if file.read(len(found)) != found:
                    raise ValueError("its bytes are not those that were written")
            footer = arrow_part("parquet").read_metadata(place)
            noted, rows = footer.metadata or {}, footer.num_rows
            counts = json.loads(noted.get(_COUNTS, b"null"))
        if noted.get(_SEAL) != seal.encode():
            raise InvalidInputError(
                f"{told(str(place))} answers other rows than the run that is asked for, or another "
                f"question; expected {_WHOLE}."
            )
        tally = Tally.read(counts)
        if tally is None or tally.rows != rows:
            raise InvalidInputError(
                f"{told(str(place))} holds {rows:,} rows and says that these are "
                f"{told(counts)}; expected {_WHOLE}."
            )
        return tally

    def write_part(self, name: str, seal: str, schema: Any, answers: Iterator[Answered]) -> Tally:
        """Write a part; it takes its name when it is complete and on the disk."""
        parquet = arrow_part("parquet")
        pending = self.path / f".{name}.{secrets.token_hex(8)}{_PENDING}"
        tally = Tally()
        try:
            with naming_full_disks(self.path / name), open(pending, "x+b") as file:
                with parquet.ParquetWriter(file, schema) as writer:
                    for batch, counted in answers:
                        writer.write_batch(batch)
                        tally = tally.then(counted)
                    noted = {_COUNTS: json.dumps(tally.stated()), _SEAL: seal, _HASH: _BLANK}
                    writer.add_key_value_metadata(noted)
                at, found = _hash(file)
                file.seek(at)
                file.write(found)
                file.flush()
                os.fsync(file.fileno())
            os.replace(pending, self.path / name)
        except BaseException:
            with suppress(OSError):
                pending.unlink()
            raise
        sync_folder(self.path)
        return tally


def _hash(file: BufferedIOBase) -> tuple[int, bytes]:
    """Find where a part keeps its hash, and what it is for all other bytes."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    begin = max(0, size - 8 - int.from_bytes(file.read(4), "little"))
    file.seek(begin)
    # As a text of 64 bytes stands in the footer behind another one.
    head = _HASH + b"\x18" + bytes([len(_BLANK)])
    at = begin + file.read().rfind(head) + len(head)
    if at < begin + len(head):
        raise ValueError("it has no hash")
    known, block = sha256(), memoryview(bytearray(_BLOCK))
    file.seek(0)
    for end in (at, size):
        while count := file.readinto(block[: min(_BLOCK, end - file.tell())]):
            known.update(block[:count])
        if end == at:
            known.update(_BLANK)
            file.seek(at + len(_BLANK))
    return at, known.hexdigest().encode()


def _is_part(name: str) -> bool:
    """Whether a file counts as one of the answers, for those who read the folder too."""
    return name.endswith(_PARQUET) and name[0] not in "._"


def _detail(name: str, begun: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """Say what it is that differs, where a manifest can tell."""
    if name == "source":
        return _source_words(begun.get(name), asked[name])
    if name == "question":
        return difference(begun, asked)
    if name == "model":  # which is stated anew where its columns are said to hold other levels
        words = words_apart(begun, asked, ["features"])
        return f", or with other columns of it: {words}" if words else ""
    if name == "part_rows" and name in begun:
        return f": {told(begun[name])} rows, and now {asked[name]}"
    return ""


def _source_words(begun: Any, asked: Any) -> str:
    """Say which file is another one, as far as a manifest can be believed."""
    files = begun.get("files") if isinstance(begun, dict) else None
    listed = files if isinstance(files, list) else []
    old = {f["path"]: f for f in listed if isinstance(f, dict) and isinstance(f.get("path"), str)}
    new = {f["path"]: f for f in asked["files"]}
    if old and not {*old} & {*new}:
        return f": {_first(old)}; now it is {_first(new)}"
    for path in sorted({*old, *new}):
        if path not in new:
            return f": {told(path)} is not there any more"
        if path not in old:
            return f": {told(path)} was not there"
        if old[path] != new[path]:
            return f": {told(path)} has changed since"
    return ""


def _refuse_other_lock(place: Path) -> None:
    """Refuse what is in the place of a lock and none of ours, which are empty files."""
    with suppress(FileNotFoundError):
        if place.is_dir() or place.stat().st_size:
            raise InvalidInputError(
                f"{told(str(place))} is in the place of the lock of a run; expected nothing there, "
                f"or an empty file. Move it elsewhere, or name another folder."
            )


def _first(files: Mapping[str, Any]) -> str:
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    return f"{told(min(files))}{more}"


def _is_at(handle: int, place: Path) -> bool:
    try:
        there = os.stat(place)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(handle), there)


def _take_lock(handle: int) -> None:
    """Lock a file, or raise OSError if another process has."""
    try:
        import fcntl
    except ImportError:  # on Windows
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
