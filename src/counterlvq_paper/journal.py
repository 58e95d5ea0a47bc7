"""What is finished, on disk: one file per fitted model and per block of rows.

A file appears whole or not at all, so that a run that was stopped, even by force, goes on from
the last block that was finished. Runs with other settings or other versions have a folder of
their own: results of different code are never mixed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from counterlvq.errors import InvalidInputError
from counterlvq_paper.protocol import SEED, Fitted, Settings

__all__ = ["Block", "Journal", "Record", "journal_at", "write_atomically"]


@dataclass(frozen=True)
class Block:
    """Some rows of one fold, to be answered by one method."""

    data: str
    model: str
    fold: int
    method: str
    start: int  # of the rows, in the order of the case
    stop: int

    @property
    def name(self) -> str:
        """A name for a file."""
        return f"{self.data}-{self.model}-{self.fold}-{self.method}-{self.start:04}-{self.stop:04}"


@dataclass(frozen=True)
class Record:
    """The answers to one block.

    Costs and validity are not here: they are worked out from the points when tables are made.
    """

    ids: list[int]
    points: list[list[float] | None]  # None where there is no answer
    lower_bound: list[float]
    status: list[str]
    seconds: list[float]  # of each row; for rows answered together, an even share
    alone: list[float | None]  # seconds of each row when asked alone, where that was measured
    took: float  # seconds of the whole block


@dataclass(frozen=True)
class Journal:
    """A folder of finished work."""

    folder: Path

    def fit_path(self, data: str, model: str, fold: int) -> Path:
        """Where a fitted model is kept."""
        return self.folder / "fits" / f"{data}-{model}-{fold}.npz"

    def has_fit(self, data: str, model: str, fold: int) -> bool:
        """Whether this model was fitted."""
        return self.fit_path(data, model, fold).exists()

    def keep_fit(self, data: str, model: str, fold: int, fitted: Fitted) -> None:
        """Keep a fitted model, as plain arrays."""
        arrays: dict[str, Any] = {
            "prototypes": fitted.prototypes,
            "labels": fitted.labels,
            "accuracy": fitted.accuracy,
            "seconds": fitted.seconds,
        }
        if fitted.omegas is not None:
            arrays["omegas"] = fitted.omegas
        path = self.fit_path(data, model, fold)
        write_atomically(path, lambda place: np.savez(place, **arrays))

    def fitted(self, data: str, model: str, fold: int) -> Fitted:
        """Read a fitted model."""
        with np.load(self.fit_path(data, model, fold), allow_pickle=False) as file:
            omegas = file["omegas"] if "omegas" in file.files else None
            return Fitted(
                file["prototypes"], file["labels"], omegas,
                float(file["accuracy"]), float(file["seconds"]),
            )  # fmt: skip

    def path(self, name: str) -> Path:
        """Where a block, or another piece of work of that name, is kept."""
        return self.folder / "blocks" / f"{name}.json"

    def has(self, name: str) -> bool:
        """Whether this piece is finished."""
        return self.path(name).exists()

    def keep(self, name: str, content: Any) -> None:
        """Keep what a piece of work gave."""
        text = json.dumps(asdict(content) if isinstance(content, Record) else content)
        write_atomically(self.path(name), lambda place: place.write_text(text, "utf-8"))

    def read(self, name: str) -> Any:
        """Read what a piece of work gave."""
        path = self.path(name)
        try:
            return json.loads(path.read_text("utf-8"))
        except json.JSONDecodeError as problem:
            raise InvalidInputError(
                f"{path} is not JSON ({problem}); expected what this command wrote there. "
                f"Delete that file to have its rows answered again, or start over with --fresh."
            ) from None

    def record(self, block: Block) -> Record:
        """Read the answers to a block."""
        return Record(**self.read(block.name))

    def clear(self) -> None:
        """Forget everything in this folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def journal_at(cache: Path, settings: Settings, versions: dict[str, str]) -> Journal:
    """Open the journal of runs with these settings and versions."""
    stamp = {"settings": asdict(settings), "seed": SEED, "versions": versions}
    text = json.dumps(stamp, indent=1, sort_keys=True) + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    journal = Journal(cache / f"{settings.name}-{digest}")
    for folder in ("fits", "blocks"):
        (journal.folder / folder).mkdir(parents=True, exist_ok=True)
    write_atomically(journal.folder / "run.json", lambda place: place.write_text(text, "utf-8"))
    return journal


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Write to a temporary file beside `path`, then put it in its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
