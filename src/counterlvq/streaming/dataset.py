"""Explain a dataset: files in, parts and a manifest out, each row exactly once."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from time import monotonic
from typing import Any, final

from counterlvq.batch.bad_rows import OnBadRows
from counterlvq.batch.ways import BatchWay
from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import told
from counterlvq.numeric.lazy import cached_property
from counterlvq.presentation.progress import progress_bar
from counterlvq.presentation.wording import plural
from counterlvq.streaming.answers import Answered, BatchQuestion, Explains
from counterlvq.streaming.asked import PART_ROWS, words_for
from counterlvq.streaming.checks import named_kind
from counterlvq.streaming.csv_source import CsvSource, CsvStyle
from counterlvq.streaming.folder import AnswerFolder
from counterlvq.streaming.identity import digest, model_digest, question_digest, setting_digests
from counterlvq.streaming.listing import LeftOut, Listing, listed_files, told_of
from counterlvq.streaming.parquet_source import ParquetSource
from counterlvq.streaming.sources import Part, PartBatches, Source
from counterlvq.streaming.tally import Tally
from counterlvq.streaming.targets import ColumnTarget, one_wish

__all__ = ["DatasetRun", "DatasetSummary", "checked_path", "explain_dataset", "opened"]

_FORMAT = 6
# A path object has one slash of two; a single letter is a drive.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
# Seconds between two manifests of a run.
_OFTEN = 5.0


@final
@dataclass(frozen=True)
class DatasetSummary:
    """How a dataset was explained.

    Attributes
    ----------
    folder : str
        Where the answers are: ``part-*.parquet`` and ``_manifest.json``.
    rows : int
        How many rows there are in it.
    statuses : dict from str to int
        How many of them have which status.
    parts : int
        How many parts there are.
    resumed : int
        How many of the parts were finished before.
    left_out : tuple of (path, why)
        Files and folders of the source that were not read, and the reason for each.
    has_target : int
        How many rows have a wished-for label as they are.
    first_invalid : str
        Where the first row is that cannot be read, in the parts of the answers, and why; empty
        without any.

    Examples
    --------
    >>> print(DatasetSummary("answers", 3, {"invalid": 1, "optimal": 2}, parts=1))
    3 rows in 1 part: 1 invalid, 2 optimal
    """

    folder: str
    rows: int
    statuses: dict[str, int]
    parts: int
    resumed: int = 0
    left_out: tuple[LeftOut, ...] = ()
    has_target: int = 0
    first_invalid: str = ""

    def __str__(self) -> str:
        ends = ", ".join(f"{count:,} {status}" for status, count in self.statuses.items())
        again = f", {self.resumed:,} of them from before" if self.resumed else ""
        rows = f"{self.rows:,} row{plural('row', self.rows)}"
        parts = f"{self.parts:,} part{plural('part', self.parts)}"
        head = f"{rows} in {parts}{again}: {ends or 'none'}"
        if self.has_target:
            verb = "has" if self.has_target == 1 else "have"
            head = f"{head}; {self.has_target:,} {verb} the target already"
        if self.first_invalid:
            head = f"{head}; the first that is invalid: {self.first_invalid.removesuffix('.')}"
        return head + told_of(self.left_out)


@final
@dataclass(frozen=True, eq=False)
class DatasetRun:
    """What is to be done; picklable, so that each part may be answered in another process."""

    question: BatchQuestion
    source: Source
    folder: AnswerFolder
    parts: tuple[Part, ...]
    identity: dict[str, Any]
    asked: dict[str, str]  # in words
    left_out: tuple[LeftOut, ...] = ()

    def answer(
        self,
        part: Part,
        count: Callable[[int], object] | None = None,
        read: Callable[[Part], PartBatches] | None = None,
    ) -> Tally:
        """Answer and write one part; returns what became of its rows."""
        schema, answers = self.question.output_schema, self.answers(part, count, read)
        return self.folder.write_part(part.name, self.seal(part), schema, answers)

    def seal(self, part: Part) -> str:
        """Hash what a part answers: the question, the model, and which rows of which files."""
        return digest((self._asked, tuple(part)))

    @cached_property
    def _asked(self) -> str:
        """Hash what all parts share, once: a source may have as many files as there are parts."""
        # Not by when files were written, so that a copy of the source gives the same bytes.
        files = [file._replace(modified=0)._asdict() for file in self.source.files]
        source = {**self.identity["source"], "files": files}
        return digest({**self.identity, "source": source})

    @property
    def _stated(self) -> dict[str, Any]:
        """State what is asked, for people and for those who ask something else."""
        settings = setting_digests(self.question)
        return {**self.identity, "asked": self.asked, "settings": settings}

    def answers(
        self,
        part: Part,
        count: Callable[[int], object] | None = None,
        read: Callable[[Part], PartBatches] | None = None,
    ) -> Iterator[Answered]:
        """Answer the rows of a part, a record batch at a time.

        `count` is told how many are answered as they come; `read` is that of a source whose parts
        are read in turn.
        """
        before = 0
        self.source.refuse_changed(part)
        for batch, problems in (read or self.source.batches)(part):
            try:
                found = self.question.answered(
                    batch, problems, partial(self.source.row_name, part, before), count
                )
            except InvalidInputError as error:
                path = self.source.files[part.file].path
                again = ""
                if self.question.on_bad_rows is OnBadRows.RAISE and self.folder.has_parts():
                    again = " For 'report' instead of 'raise' (--bad-rows), name another folder."
                raise InvalidInputError(f"{told(path)}, for {part.name}: {error}{again}") from error
            yield found
            before += len(batch)
        self.source.refuse_changed(part)

    def manifest(self, done: dict[str, Tally]) -> dict[str, Any]:
        """State what is asked, and how far it is."""
        whole = _total(done)
        return {
            **self._stated,
            "left_out": [place._asdict() for place in self.left_out],
            "rows": whole.rows,
            "statuses": whole.statuses,
            "has_target": whole.has_target,
            "parts": [
                {
                    **part._asdict(),
                    "state": "finished" if part.name in done else "to do",
                    **done.get(part.name, Tally()).stated(),
                }
                for part in self.parts
            ],
        }

    @contextmanager
    def begun(self) -> Iterator[dict[str, Tally]]:
        """Hold the folder while parts are written; gives those that are finished.

        Whoever writes parts enters them there; at the end the manifest says so.
        """
        with self.folder.locked():
            found = self.folder.manifest()
            if found is not None and self.folder.has_parts():
                self.folder.refuse_another(found, self._stated)
            self.folder.clear_pending()
            done = self.folder.finished({part.name: self.seal(part) for part in self.parts})
            if not done:  # whatever was asked before, nothing of it was answered
                self.folder.write_manifest(self.manifest(done))
            try:
                yield done
            except BaseException:
                with suppress(OSError):  # whatever ended the run is told, not this
                    self.folder.clear_pending()
                    self.folder.write_manifest(self.manifest(done))
                raise
            self.folder.clear_pending()
            self.folder.write_manifest(self.manifest(done))

    def summary(self, done: dict[str, Tally], resumed: int) -> DatasetSummary:
        """Say how it went."""
        whole = _total(done)
        return DatasetSummary(
            str(self.folder.path),
            whole.rows,
            dict(whole.statuses),
            len(self.parts),
            resumed,
            self.left_out,
            whole.has_target,
            _first_invalid(done),
        )


def explain_dataset(
    explainer: Explains,
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    target: Any = None,
    *,
    target_column: str | None = None,
    columns: Sequence[str] | None = None,
    prefix: str = "",
    on_bad_rows: str = "report",
    n_jobs: int | None = None,
    part_rows: int | None = None,
    progress: bool = False,
    on_part: Callable[[int, int, int, int], object] | None = None,
    delimiter: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
    max_bytes: int | None = None,
) -> DatasetSummary:
    r"""Explain all rows of a dataset that need not fit into memory, each exactly once.

    Answers are written part by part. A run that was ended, at whatever moment and in whatever
    way, is gone on with by calling it again: finished parts are checked and not computed again,
    and the result is byte for byte that of a run that nothing disturbed, unless the explainer has
    a `time_limit`. A part that is damaged, or of another run, is refused.

    Parameters
    ----------
    explainer : Explainer
    source : str or path
        A file of Parquet or CSV, or a folder of them. Folders in one of Parquet may hold values
        of columns (``country=DE``). Links are followed. What is left out is told with the reason.
        All files have the columns of the first one, in types whose values its types hold.
    destination : str or path
        A new folder, an empty one, one that the same run has begun, or one in which no part is
        finished.
    target, columns, prefix, on_bad_rows, n_jobs
        As for `Explainer.map_batches`, which says which columns come out.
    target_column : str, optional
        Instead of `target`: the column that holds a label for each row, whatever labels there are.
    part_rows : int, optional
        Rows of a part, which is what a run that is killed may lose. Row groups of Parquet are
        taken together until they have so many, and those of over four times as many are divided,
        into 64 pieces at most. By default as many as the run that has begun the folder
        has taken; in a new one 262,144, for whole numbers and levels 16,384, and 1,024 where
        rows are answered one by one: local metrics, a confidence, `AtMost`, columns that the
        model sees through a function, whole numbers with a `time_limit`.
    progress : bool, default False
        Show rows, rows per second and the time that is left (needs tqdm).
    on_part : callable, optional
        Called when the run has begun and behind each part, with how many parts are finished, how
        many there are, and the same of rows.
    delimiter, decimal, encoding : str
        Of CSV. Columns that are no features are given back as text.
    max_bytes : int, optional
        What a file may unpack to; by default 128 MiB and 64 times its size. Parquet and CSV that
        announce more are refused before they are read.

    Returns
    -------
    DatasetSummary

    Raises
    ------
    InvalidInputError
        If the folder belongs to another model, question, source or version, or if another run
        is writing into it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["income"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table, answers = Path(folder) / "table.csv", Path(folder) / "answers"
    ...     _ = table.write_text("id,income\na,1\nb,3\nc,none\n")
    ...     told = clvq.explain_dataset(clvq.Explainer(model), table, answers, target="yes")
    ...     sorted(path.name for path in answers.iterdir())
    ['_manifest.json', 'part-00000-00000.parquet']
    >>> told.rows, told.statuses, told.has_target
    (3, {'invalid': 1, 'optimal': 2}, 1)
    """
    target = one_wish(target, target_column)
    run = opened(
        explainer,
        checked_path("source", source),
        checked_path("destination", destination),
        target,
        columns=columns,
        prefix=prefix,
        on_bad_rows=on_bad_rows,
        n_jobs=n_jobs,
        part_rows=part_rows,
        style=CsvStyle(delimiter, decimal, encoding),
        max_bytes=max_bytes,
    )
    with run.begun() as done:
        resumed, rows = len(done), _total(done).rows
        left = [part for part in run.parts if part.name not in done]
        told_at = monotonic()
        total = sum(part.rows for part in run.parts)
        tell = on_part or (lambda *_: None)
        tell(len(done), len(run.parts), rows, total)
        shown = progress_bar(total, progress, rows)
        with shown as count, run.source.in_turn() as read:
            for part in left:
                done[part.name] = run.answer(part, count, read)
                rows += done[part.name].rows
                tell(len(done), len(run.parts), rows, total)
                if monotonic() - told_at > _OFTEN:
                    run.folder.write_manifest(run.manifest(done))
                    told_at = monotonic()
    return run.summary(done, resumed)


def checked_path(name: str, place: Any) -> Path:
    """Refuse what is no path."""
    if not isinstance(place, str | os.PathLike):
        shown = named_kind(place)
        instead = ""
        if name == "source" and isinstance(place, list | tuple):
            instead = " Name the folder of the files, or a new one with links to them."
        elif name == "source" and shown != told(place):
            instead = " Hand its record batches to map_batches, with dataset.to_batches() say."
        raise InvalidInputError(f"{name} is {shown}; expected a path.{instead}")
    if _SCHEME.match(os.fspath(place)):
        raise InvalidInputError(
            f"{name} is {told(os.fspath(place))}, an address; expected the path of a file or "
            f"folder on this machine. Mount what is elsewhere, or copy it."
        )
    return Path(place)


def _checked_explainer(explainer: Any) -> None:
    """Refuse a model, which is what one has after loading a file."""
    if not hasattr(explainer, "batch_way"):
        raise InvalidInputError(
            f"explainer is {named_kind(explainer)}; expected an explainer. Write Explainer(model), "
            f"with a loaded or fitted model."
        )


def opened(
    explainer: Explains,
    source: Path,
    destination: Path | None,
    target: Any,
    *,
    columns: Sequence[str] | None,
    prefix: str,
    on_bad_rows: str,
    n_jobs: int | None,
    part_rows: int | None,
    style: CsvStyle,
    max_bytes: int | None = None,
) -> DatasetRun:
    """Check what is asked, and cut the source; nothing is written yet, or nowhere for None."""
    from counterlvq import __version__

    _checked_explainer(explainer)
    folder = AnswerFolder(Path(os.devnull) if destination is None else destination)
    if destination is not None:
        folder.refuse_file()
    if part_rows is None:
        part_rows = folder.begun_part_rows() or PART_ROWS[explainer.batch_way]
    part_rows = _checked_rows(part_rows)
    listing = listed_files(source)
    found = _opened_source(explainer, listing, target, part_rows, style, max_bytes)
    _refuse_lacking(found, explainer)
    question = BatchQuestion.of(
        explainer,
        found.schema,
        target,
        columns=columns,
        prefix=prefix,
        on_bad_rows=on_bad_rows,
        n_jobs=n_jobs,
    )
    _refuse_inside(listing, folder.path)
    identity = {
        "format": _FORMAT,
        "version": __version__,
        "model": model_digest(explainer),
        "question": question_digest(question),
        "part_rows": int(part_rows),
        "source": found.document(),
    }
    parts = found.parts(part_rows)
    asked = words_for(question)
    return DatasetRun(question, found, folder, parts, identity, asked, listing.left_out)


def _checked_rows(part_rows: Any) -> int:
    try:
        rows = operator.index(part_rows)
    except TypeError:
        rows = 0
    if rows < 1:
        raise InvalidInputError(
            f"part_rows is {told(part_rows)}; expected a positive whole number, such as "
            f"{PART_ROWS[BatchWay.KERNEL]:,}."
        )
    return rows


def _opened_source(
    explainer: Explains,
    listing: Listing,
    target: Any,
    part_rows: int,
    style: CsvStyle,
    max_bytes: int | None,
) -> Source:
    root, paths = listing.root, listing.paths
    if not listing.is_csv:
        return ParquetSource.of(root, paths, max_bytes)
    name = target.name if isinstance(target, ColumnTarget) else target
    wish = name if isinstance(name, str) else None  # no label, if a column is called so
    found = CsvSource.of(
        root, paths, style.checked(), explainer.features, explainer.model, wish, max_bytes
    )
    # By every run anew, also one that goes on: what a manifest says of it may have been changed.
    return found.cut(part_rows)


def _refuse_lacking(source: Source, explainer: Explains) -> None:
    """Name the file that lacks columns of the model, where there are several."""
    missing = [name for name in explainer.features.names if name not in source.schema.names]
    if missing and len(source.files) > 1:
        raise InvalidInputError(
            f"{told(source.files[0].path)} lacks the column {told(missing[0])} of the model; "
            f"expected a column for each of its {len(explainer.features)} features in each of the "
            f"{len(source.files):,} files. Move what is another table out of the folder."
        )


def _refuse_inside(listing: Listing, folder: Path) -> None:
    """Refuse to write where the next run would read its own answers."""
    place = folder.resolve()
    if any(place.is_relative_to(real) for real in listing.folders):
        raise InvalidInputError(
            f"destination {told(str(folder))} lies in the source; expected a folder beside it."
        )


def _total(done: dict[str, Tally]) -> Tally:
    return reduce(Tally.then, done.values(), Tally())


def _first_invalid(done: dict[str, Tally]) -> str:
    """Say where the first row is that cannot be read, and why."""
    for name in sorted(done):
        if (first := done[name].first_invalid) is not None:
            return f"row {first[0]:,} of {name}, counted from 0: {first[1]}"
    return ""
