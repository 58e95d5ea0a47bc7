"""Tables and models from files or standard input."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from errno import ENOENT
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import numpy as np
from numpy.typing import NDArray

import counterlvq as clvq
from counterlvq.cli.conventions import Count
from counterlvq.cli.csv_cells import with_point
from counterlvq.cli.streams import standard_input
from counterlvq.cli.tables import RAISED_BY, Reading, cells_of, needed, table_from
from counterlvq.files import MOST_BYTES, read_within

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "STDIN",
    "Model",
    "needed",
    "read_matrix",
    "read_model",
    "read_table",
    "reading",
    "table_options",
]

STDIN = "-"
Model = clvq.PrototypeModel | clvq.TableModel

F = TypeVar("F", bound=Callable[..., Any])

_KEY = f"{__name__}.reading"
# Bytes at the beginning of a file that tell what it is.
_BEGIN = 64
_NAMED = {"tab": "\t", "\\t": "\t", "space": " "}


def _sign(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    sign = _NAMED.get(value, value)
    is_sign = sign == "\t" or (sign.isprintable() and not sign.isalnum() and sign not in "\"'\\")
    if len(sign) != 1 or not is_sign:
        raise click.BadParameter(
            f"{value!r} is no {parameter.human_readable_name}; expected one sign, such as ; , | or "
            f"tab."
        )
    return sign


def _encoding(_: click.Context, __: click.Parameter, value: str) -> str:
    try:
        "".encode(value)  # some codecs are of bytes, not of text
        return codecs.lookup(value).name
    except (LookupError, ValueError, TypeError):
        raise click.BadParameter(
            f"{value!r} is no encoding of text; expected one such as utf-8, cp1252, latin-1 or "
            f"utf-16."
        ) from None


def _kept(check: Callable[[click.Context, click.Parameter, Any], Any]) -> Any:
    """Check an option, and keep it for whoever reads a table."""

    def keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        ctx.meta.setdefault(_KEY, {})[parameter.name] = check(ctx, parameter, value)

    return keep


def _bytes(_: click.Context, __: click.Parameter, value: int | None) -> int | None:
    return None if value is None else value << 20


_OPTIONS = (
    click.option(
        "--delimiter",
        metavar="SIGN",
        callback=_kept(_sign),
        expose_value=False,
        help="Between columns of CSV: ; or tab, say; a comma by default.",
    ),
    click.option(
        "--decimal",
        metavar="SIGN",
        default=".",
        callback=_kept(_sign),
        expose_value=False,
        help="In numbers of CSV, before their decimals; a point by default.",
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        default="utf-8",
        callback=_kept(_encoding),
        expose_value=False,
        help="Of text in CSV: cp1252 or latin-1, say; utf-8 by default.",
    ),
    click.option(
        "--max-memory",
        "memory",
        type=Count(1),
        metavar="MB",
        callback=_kept(_bytes),
        expose_value=False,
        help="For the cells of a table; by default as its size allows.",
    ),
)


def table_options(command: F) -> F:
    """Add the options that say how tables are read."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def reading() -> Reading:
    """Say how tables are to be read, as the options have it."""
    context = click.get_current_context(silent=True)
    return Reading(**context.meta.get(_KEY, {})) if context else Reading()


def read_model(path: str) -> Model:
    """Load a model file; `-` is standard input."""
    if path == STDIN:
        return clvq.load(standard_input())
    try:
        return clvq.load(path)
    except FileNotFoundError:
        words = "there is no such file; expected a model of `counterlvq train` or counterlvq.save"
        raise FileNotFoundError(ENOENT, words, path) from None
    except clvq.CounterlvqError as error:
        if _begins_like_a_table(Path(path)):
            raise type(error)(
                f"{error} It looks like a table: the model comes first, the table second."
            ) from None
        raise


def _begins_like_a_table(path: Path) -> bool:
    """Whether a file begins like Parquet, or like text, which no model file does."""
    with path.open("rb") as file:
        begin = file.read(_BEGIN)
    if begin.startswith(b"PAR1"):
        return True
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(begin)
    except UnicodeDecodeError:
        return False
    return len(text) > 0 and all(letter.isprintable() or letter.isspace() for letter in text)


def read_matrix(path: str, names: Sequence[str]) -> NDArray[np.float64]:
    """Read rows of numbers in CSV, with a column for each of `names`.

    Their names may stand in the first line, in any order; tools that write matrices leave it out.
    """
    how = reading()
    name, whole = _bytes_of(path)
    rows = cells_of(whole, name, how)
    if not rows:
        raise clvq.InvalidInputError(f"{name} is empty; expected rows of numbers.")
    order = list(range(len(names)))
    if sorted(rows[0]) == sorted(names):
        order, rows = [rows[0].index(column) for column in names], rows[1:]
    matrix = np.empty((len(rows), len(names)))
    for i, row in enumerate(rows):
        if len(row) != len(names):
            raise clvq.InvalidInputError(
                f"{name} has {len(row)} values in row {i + 1}; expected {len(names)}, one for each "
                f"column of the prototypes."
            )
        for j, k in enumerate(order):
            try:
                matrix[i, j] = float(with_point(row[k], how.decimal))
            except ValueError:
                raise clvq.InvalidInputError(
                    f"{name} holds {row[k][:60]!r} in row {i + 1}; expected numbers, or a first "
                    f"line with the names of the columns: {', '.join(names[:8])}."
                ) from None
    return matrix


def _bytes_of(path: str) -> tuple[str, bytes]:
    most = max(MOST_BYTES, reading().memory or 0)
    instead = f"Explain a dataset into a folder (--output FOLDER/), or allow more with {RAISED_BY}"
    if path == STDIN:
        name = "standard input"
        return name, read_within(standard_input(), most, name, instead)
    with open(path, "rb") as file:
        return path, read_within(file, most, path, instead)


def read_table(path: str) -> pd.DataFrame:
    """Read a table in CSV, JSON or Parquet, told apart by how it begins; `-` is standard input."""
    name, whole = _bytes_of(path)
    context = click.get_current_context(silent=True)
    table: pd.DataFrame = table_from(whole, name, reading())
    if table.shape[0] == 0 or table.shape[1] == 0:
        rows, columns = (
            f"{count} {word}{'s' * (count != 1)}"
            for count, word in zip(table.shape, ("row", "column"), strict=True)
        )
        raise clvq.InvalidInputError(
            f"{name} has {rows} and {columns}; expected a line with "
            f"the names of the columns, and at least one row."
        )
    if context and any(sign in str(known) for known in table.columns for sign in ";\t|"):
        context.find_root().obj.hint = (
            f"Names of columns in {name} hold ; or | or tabs: if these stand between columns, read "
            f"it with --delimiter (and --decimal , if numbers are written 1,5)."
        )
    elif context and len(table.columns) == 1 and "," in str(table.columns[0]):
        context.find_root().obj.hint = (
            f"The only column of {name} has commas in its name: if these stand between columns, "
            f"read it without --delimiter."
        )
    return table
