"""Partitions of a Dask DataFrame, and parts of a dataset, answered by workers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, final

from counterlvq.dask.frames import frame_batch, frame_schema
from counterlvq.dask.views import without_views
from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.numeric.arrays import told
from counterlvq.streaming.answers import BatchQuestion, Explains
from counterlvq.streaming.arrow import arrow
from counterlvq.streaming.checks import named_kind
from counterlvq.streaming.csv_source import CsvStyle
from counterlvq.streaming.dataset import DatasetRun, DatasetSummary, checked_path, opened
from counterlvq.streaming.identity import digest, model_digest, question_digest
from counterlvq.streaming.sources import Part
from counterlvq.streaming.tally import Tally
from counterlvq.streaming.targets import one_wish

__all__ = ["explain"]


def explain(
    source: Any,
    explainer: Explains,
    target: Any = None,
    *,
    target_column: str | None = None,
    destination: str | os.PathLike[str] | None = None,
    columns: Sequence[str] | None = None,
    prefix: str = "",
    on_bad_rows: str = "report",
    part_rows: int | None = None,
    client: Any = None,
    delimiter: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
    max_bytes: int | None = None,
) -> Any:
    """Explain a Dask DataFrame, or a dataset, on the workers of a cluster.

    Answers are those of `Explainer.map_batches`, to the last bit.

    Parameters
    ----------
    source : dask.dataframe.DataFrame, str or path
        A DataFrame, or files as `explain_dataset` takes them.
    explainer : Explainer
        Each worker gets it once.
    target, columns, prefix, on_bad_rows
        As for `Explainer.map_batches`.
    target_column : str, optional
        Instead of `target`: the column that holds a label for each row, whatever labels there are.
    destination : str or path, optional
        A folder that all workers can write to. It is filled as by `explain_dataset`, byte for
        byte, and a run that was ended is gone on with; a part whose worker is lost is answered
        by another one.
    part_rows, delimiter, decimal, encoding, max_bytes
        As for `explain_dataset`.
    client : distributed.Client, optional
        For writing; by default the one that is current.

    Returns
    -------
    dask.dataframe.DataFrame or DatasetSummary
        Without `destination` nothing is computed yet. Columns that are added, and all that are
        read from a path, have types of Arrow; views of text and bytes come as large strings and
        large binaries, because Dask takes no rows of views.

    Examples
    --------
    >>> import pandas as pd
    >>> import dask.dataframe as dd
    >>> import counterlvq as clvq
    >>> import counterlvq.dask
    >>> model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["income"])
    >>> table = dd.from_pandas(pd.DataFrame({"income": [1.0, 3.0]}), npartitions=1)
    >>> answers = clvq.dask.explain(table, clvq.Explainer(model), "yes")
    >>> answers.compute(scheduler="synchronous")["prediction"].tolist()
    ['yes', 'yes']
    """
    frames = _needed("dask.dataframe")
    _refuse_other_client(client)
    target = one_wish(target, target_column)
    if isinstance(source, frames.DataFrame):
        if destination is not None:
            raise InvalidInputError(
                "destination is given with a DataFrame, of which nobody can say whether it is the "
                "same when a run goes on; expected a path as source. Or write the answers with "
                "their own to_parquet."
            )
        return _lazy_frame(source, explainer, target, columns, prefix, on_bad_rows)
    if not isinstance(source, str | os.PathLike):
        raise InvalidInputError(
            f"source is {named_kind(source)}; expected a Dask DataFrame or a path."
        )
    run = opened(
        explainer,
        # Workers may have another working directory.
        Path(source).absolute(),
        None if destination is None else checked_path("destination", destination).absolute(),
        target,
        columns=columns,
        prefix=prefix,
        on_bad_rows=on_bad_rows,
        n_jobs=None,
        part_rows=part_rows,
        style=CsvStyle(delimiter, decimal, encoding),
        max_bytes=max_bytes,
    )
    if destination is not None:
        return _write(run, client)
    sealed = _Sealed(run, digest(run.identity))
    return frames.from_map(_read_part, run.parts, sealed=sealed, meta=_typed(run.question, []))


def _refuse_other_client(client: Any) -> None:
    """Refuse what is no client before a source is read for it."""
    if client is not None and not isinstance(client, _needed("distributed").Client):
        raise InvalidInputError(
            f"client is {told(client)} of type {type(client).__name__}; expected a "
            f"distributed.Client, or None for the one that is current. Connect one to a cluster or "
            f"to the address of its scheduler: distributed.Client(address)."
        )


def _lazy_frame(
    source: Any,
    explainer: Explains,
    target: Any,
    columns: Sequence[str] | None,
    prefix: str,
    on_bad_rows: str,
) -> Any:
    delayed = _needed("dask").delayed
    question = BatchQuestion.of(
        explainer,
        frame_schema(source, explainer, target),
        target,
        columns=columns,
        prefix=prefix,
        on_bad_rows=on_bad_rows,
    )
    sealed = _Sealed(question, digest((model_digest(explainer), question_digest(question))))
    # As a value of its own in the graph, so that it travels to each worker once.
    once = delayed(sealed, pure=True, traverse=False)
    meta = _answer_frame(source._meta, sealed)
    return source.map_partitions(_answer_frame, once, meta=meta)


@final
class _Sealed:
    """Something that Dask carries and does not look into: it would take it to pieces."""

    def __init__(self, content: Any, key: str) -> None:
        self.content, self.key = content, key

    def __dask_tokenize__(self) -> str:
        return self.key


def _answer_frame(
    frame: Any, sealed: _Sealed, partition_info: Mapping[str, Any] | None = None
) -> Any:
    """Answer a partition: its columns as they are, and what is added in types of Arrow.

    Dask says in `partition_info` which partition it is.
    """
    question: BatchQuestion = sealed.content
    pandas = _needed("pandas")
    number = (partition_info or {}).get("number", 0)
    named = f"row {{:,}} of partition {number:,}, both counted from 0".format
    given = [frame_batch(frame, question.schema)] if len(frame) else []
    batches = [question.answer(batch, row_name=named) for batch in given]
    added = _typed(question, batches).drop(columns=list(question.kept)).set_index(frame.index)
    return pandas.concat([frame[list(question.kept)], added], axis=1)


def _typed(question: BatchQuestion, batches: Sequence[Any]) -> Any:
    """Make a pandas DataFrame whose types do not depend on the rows."""
    table = arrow().Table.from_batches(batches, schema=question.output_schema)
    return without_views(table).to_pandas(types_mapper=_needed("pandas").ArrowDtype)


def _read_part(part: Part, sealed: _Sealed) -> Any:
    run: DatasetRun = sealed.content
    return _typed(run.question, [found.batch for found in run.answers(part)])


def _write(run: DatasetRun, client: Any) -> DatasetSummary:
    """Have workers write the parts; the folder is held by this process."""
    distributed = _needed("distributed")
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError:
            raise InvalidInputError(
                "there is no cluster; expected a client of distributed. Start one first, such as "
                "distributed.Client(n_workers=2, threads_per_worker=1)."
            ) from None
    with run.begun() as done:
        resumed = len(done)
        left = [part for part in run.parts if part.name not in done]
        # The result of a task: a worker fetches it once, and lost copies are made again.
        sealed = _Sealed(run, digest(run.identity))
        once = client.submit(_itself, sealed, pure=False)
        # All at once: the scheduler then hands them out one by one, to whoever is free, where it
        # would give the first of them to the worker that made what they share.
        futures = client.map(_answer_part, left, sealed=once, pure=False)
        try:
            # By default it would wait in the loop of the current client, which may be another one
            # and does not wake up for these futures.
            finished = distributed.as_completed(futures, loop=client.loop, with_results=True)
            for _, (name, counts) in finished:
                done[name] = counts
        except BaseException:
            client.cancel(futures)
            raise
    return run.summary(done, resumed)


def _itself(sealed: _Sealed) -> _Sealed:
    return sealed


def _answer_part(part: Part, sealed: _Sealed) -> tuple[str, Tally]:
    run: DatasetRun = sealed.content
    return part.name, run.answer(part)


def _needed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        library = name.partition(".")[0]
        raise NotSupportedError(
            f"counterlvq.dask needs {library}, which is not installed; install it with "
            f"pip install 'counterlvq[dask]'."
        ) from None
