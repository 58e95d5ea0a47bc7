"""The readers of the package, and what each may do with a file: read it, or refuse it in words."""

from __future__ import annotations

import contextlib
import io
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import counterlvq as clvq
from fuzz import folders, written_texts

# An error is a line or two for a person, whatever the file quotes.
_LONGEST_ERROR = 4000
# What is said where a limit of the sandbox was met: a reader that stays within its own never does.
_NO_MEMORY = "more memory than there is"


@dataclass(frozen=True)
class Reader:
    """A way into the package for bytes of strangers."""

    use: Callable[[bytes], Any]  # read them, and use what came out a little
    errors: tuple[type[Exception], ...]  # of ours

    def outcome(self, content: bytes) -> tuple[str, str]:
        """Whether the bytes are read, refused, or raise what they must not."""
        try:
            self.use(content)
        except self.errors as error:
            words = str(error)
            if _NO_MEMORY in words:
                return "foreign", f"MemoryError, in other words: {words[:300]}"
            if len(words) > _LONGEST_ERROR or not words:
                return "foreign", f"an error of {len(words)} characters: {words[:300]}"
            return "refused", words[:300]
        except BaseException as error:  # noqa: BLE001 - whatever escapes is what is looked for
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{place.filename.rsplit('/', 1)[-1]}:{place.lineno}"
            return "foreign", f"{type(error).__name__}: {str(error)[:300]} ({where})"
        return "read", ""


def _load(content: bytes) -> None:
    model = clvq.load(io.BytesIO(content))
    again = io.BytesIO()
    clvq.save(model, again)
    clvq.load(io.BytesIO(again.getvalue()))
    if isinstance(model, clvq.PrototypeModel) and model.n_features <= 100:
        with np.errstate(all="ignore"):
            model.predict(np.zeros((1, model.n_features)))
    repr(model)


def _load_exported(content: bytes) -> None:
    model = clvq.load_exported(io.BytesIO(content))
    if model.n_features <= 100 and model.n_prototypes <= 100:
        with np.errstate(all="ignore"):
            model.predict(np.zeros((1, model.n_features)))
    repr(model)


def _read_table(content: bytes) -> None:
    from counterlvq.cli.tables import Reading, table_from

    _use_table(table_from(content, "the table", Reading()))


def _read_foreign_table(content: bytes) -> None:
    from counterlvq.cli.tables import Reading, table_from

    _use_table(table_from(content, "the table", Reading(";", ",", "cp1252")))


def _use_table(table: Any) -> None:
    """As the commands do: describe the columns, and have rows labelled."""
    if table.shape[1] > 200:
        return
    with contextlib.suppress(clvq.CounterlvqError), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Features.from_frame passes over missing values")
        clvq.Features.from_frame(table)
    _TABLES.predict(table)


_TABLES = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"], feature_names=["a", "b"])
_WORDS = clvq.Features(
    [
        "a",
        "b",
        "c d",
        clvq.Feature("job", levels=["clerk", "nurse", 3]),
        clvq.Feature("o", "boolean"),
    ]
)


def _read_constraint(content: bytes) -> None:
    from counterlvq.problem.expressions import Expression

    text = content.decode("utf-8", "surrogatepass")
    for condition in Expression(text).conditions(_WORDS):
        repr(condition)


READERS = {
    "model file": Reader(_load, (clvq.ModelFileError,)),
    "exported model": Reader(_load_exported, (clvq.ModelFileError, clvq.NotSupportedError)),
    "table": Reader(_read_table, (clvq.CounterlvqError,)),
    "table with options": Reader(_read_foreign_table, (clvq.CounterlvqError,)),
    "constraint": Reader(_read_constraint, (clvq.InvalidInputError,)),
    folders.READER: Reader(folders.use, (clvq.CounterlvqError,)),
    written_texts.COLUMNS: Reader(written_texts.use_columns, (clvq.CounterlvqError,)),
    written_texts.CERTIFICATES: Reader(written_texts.use_certificate, ()),
}

# What each reader takes without complaint, so that all it imports is there before limits are set.
_GOOD = {
    "table": b"a,b\n1,2\n",
    "table with options": b"a;b\n1;2\n",
    "constraint": b"a + 2 * b <= 3",
}


def warm_up() -> None:
    """Read one good file by each reader, in all formats."""
    from fuzz import exports, model_files, table_files

    good = [("model file", model_files.good()[0]), ("exported model", exports.good())]
    good += [(folders.READER, folders.good()), *written_texts.good()]
    good += [*_GOOD.items(), *(("table", table) for table in table_files.good())]
    for reader, content in good:
        what, words = READERS[reader].outcome(content)
        if what == "foreign":
            raise RuntimeError(f"a good {reader} is not read: {words}")
