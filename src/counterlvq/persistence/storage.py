"""Save a model, load it again."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from typing import Any, BinaryIO

from counterlvq.adapters import as_prototype_model, with_rounding
from counterlvq.errors import InvalidInputError, ModelFileError
from counterlvq.files import whole_file
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import told
from counterlvq.persistence.container import pack, unpack
from counterlvq.persistence.contents import contents_of
from counterlvq.persistence.refusals import Refusal
from counterlvq.persistence.restoring import model_from
from counterlvq.pipelines import TableModel
from counterlvq.pipelines.reading import is_pipeline, read_pipeline
from counterlvq.tables.features import Features

__all__ = ["load", "save"]


def save(
    model: Any,
    path: str | os.PathLike[str] | BinaryIO,
    features: Features | None = None,
    reference: Any = None,
) -> None:
    """Save a model in one file, which holds numbers and names and nothing that could be run.

    The file is complete when it gets its name: whoever opens `path` sees the old file or the new
    one. The same model gives the same bytes.

    Parameters
    ----------
    model : PrototypeModel, fitted estimator or fitted Pipeline
        Anything that `Explainer` takes, and pipelines with encoded categories as well.
    path : str, path or binary file
        By custom with the ending ``.clvq``; a file of that name is replaced.
    features : Features, optional
        What the columns are, where the model itself does not know: units, ranges, whole numbers.
        For a pipeline, of all columns or some, in any order.
    reference : DataFrame or array-like of shape (n, d), optional
        The training table, of which a summary goes into the file: per column the median, the
        median absolute and the standard deviation, quantiles and the shares of levels. No row of
        it does, and the extreme quantiles are those of at least ten rows. The command
        `counterlvq explain` takes its cost, its ranges and its least changes from there. Of columns
        of numbers of which nothing is said, a DataFrame also says which are whole numbers or dates.

    Examples
    --------
    >>> import io
    >>> model = PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"])
    >>> file = io.BytesIO()
    >>> save(model, file)
    >>> load(io.BytesIO(file.getvalue())).predict([[3.0, 1.0]]).tolist()
    ['yes']
    """
    packed = pack(contents_of(_storable(model), _made_by(), features, reference))
    if isinstance(path, str | os.PathLike):
        with whole_file(path) as file:
            file.write(packed)
    else:
        path.write(packed)


def load(
    path: str | os.PathLike[str] | BinaryIO, max_bytes: int | None = None
) -> PrototypeModel | TableModel:
    """Load a model that `save` wrote.

    Nothing in the file is run or believed: lengths, types, shapes and values are checked against
    the bytes that are there before anything is made of them, and time and memory are bounded by
    a multiple of the size of the file.

    Parameters
    ----------
    path : str, path or binary file
    max_bytes : int, optional
        Files that need more memory are refused. By default 1 GiB, and no more than 16 MiB and
        64 times the size of the file for what the file only announces.

    Returns
    -------
    PrototypeModel or TableModel
        The latter where a pipeline was saved. Both predict, and `Explainer` takes both; all
        numbers are those of the model that was saved, to the last bit.

    Raises
    ------
    ModelFileError
        If the file is damaged, too new, too large, or no model at all; with the place in the
        file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.neighbors import NearestCentroid
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = [[10.0], [12.0], [28.0], [30.0]], ["no", "no", "yes", "yes"]
    >>> pipeline = make_pipeline(StandardScaler(), NearestCentroid()).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(pipeline, Path(folder) / "loans.clvq")
    ...     loaded = load(Path(folder) / "loans.clvq")
    >>> loaded.predict([[11.0], [29.0]]).tolist()
    ['no', 'yes']
    """
    if not isinstance(path, str | os.PathLike) and not hasattr(path, "read"):
        raise InvalidInputError(
            f"path is {told(path)} of type {type(path).__name__}; expected the name of a file, or "
            f"a file that is open for reading bytes."
        )
    if not isinstance(path, str | os.PathLike):
        return _loaded(path, str(getattr(path, "name", "the file")), max_bytes)
    with open(path, "rb") as file:
        return _loaded(file, str(os.fspath(path)), max_bytes)


def _loaded(file: BinaryIO, name: str, max_bytes: int | None) -> PrototypeModel | TableModel:
    try:
        return model_from(unpack(file, max_bytes), max_bytes)
    except Refusal as error:
        refusal = error
    except InvalidInputError as error:
        refusal = Refusal(str(error))
    except MemoryError:
        refusal = Refusal("it needs more memory than there is.", "Free some, or use less of it.")
    raise ModelFileError(f"{name} cannot be loaded: {refusal}")


def _storable(model: Any) -> PrototypeModel | TableModel:
    if isinstance(model, TableModel):
        return model
    if not is_pipeline(model):
        return with_rounding(model, as_prototype_model(model))
    table_map, last = read_pipeline(model)
    return TableModel(table_map, with_rounding(last, as_prototype_model(last)))


def _made_by() -> str:
    try:
        return f"counterlvq {version('counterlvq')}"
    except PackageNotFoundError:
        return "counterlvq"
