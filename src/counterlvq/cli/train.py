"""`counterlvq train`: a table in, a model file and its accuracy out."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

import counterlvq as clvq
from counterlvq.cli.columns_file import MOST_LEVELS, read_columns, text_dates
from counterlvq.cli.conventions import Count, Share, debug_option
from counterlvq.cli.inputs import read_table, table_options
from counterlvq.cli.outputs import STDOUT, check_writable, standard_output
from counterlvq.cli.terminal import say
from counterlvq.presentation.progress import working
from counterlvq.safe_text import shown_repr

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.pipeline import Pipeline

__all__ = ["train"]

MODELS = ("glvq", "gmlvq", "lgmlvq", "rslvq", "mrslvq", "lmrslvq")


@click.command(short_help="Fit a model to a table, and measure it.")
@click.argument("table", metavar="INPUT")
@click.option("--label", required=True, metavar="COLUMN", help="The column with the classes.")
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out; repeatable.")
@click.option("--model", type=click.Choice(MODELS), default="gmlvq", show_default=True)
@click.option("--prototypes", type=Count(1), default=1, show_default=True, help="For each class.")
@click.option("--scale/--no-scale", default=True, help="Standardise numbers first (the default).")
@click.option("--pca", type=Count(1), metavar="N", help="Then keep N components.")
@click.option(
    "--test-share",
    type=Share(0, 1, max_open=True),
    default=0.25,
    show_default=True,
    help="Rows held out to measure accuracy; 0 for none.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--columns", metavar="FILE", help="What the columns are, as `counterlvq columns` writes it."
)
@click.option(
    "--impute-all",
    is_flag=True,
    help="Also let columns that are complete here lack values later.",
)
@click.option(
    "--summary/--no-summary",
    default=True,
    help="Keep a summary of the table in the model file (the default).",
)
@table_options
@click.option(
    "--output", "-o", metavar="FILE", help="Where the model goes, say model.clvq; - for stdout."
)
@debug_option
def train(
    table: str,
    label: str,
    drop: tuple[str, ...],
    model: str,
    prototypes: int,
    scale: bool,
    pca: int | None,
    test_share: float,
    seed: int,
    columns: str | None,
    impute_all: bool,
    summary: bool,
    output: str | None,
) -> None:
    """Fit a model to the rows of INPUT, in CSV, JSON or Parquet (- for stdin).

    Columns of text become categories, one indicator per level, or days where all are dates such as
    2024-05-31. The accuracy is measured on rows that the model has not seen; the model that is
    saved is the one that was measured. The file also holds a summary of the table, by which
    `explain` measures changes and keeps numbers in their usual ranges: medians, deviations,
    quantiles and shares, but no row.

    Rows without a class are left out. Where other values are missing, the model takes the median of
    the column, or its most frequent level, then and later. A column without gaps here may have none
    later, unless --impute-all says so.
    """
    if output is not None:
        check_writable(output)
    aside = output == STDOUT  # a model that goes there is not to be mixed with words
    frame = _with_labels(read_table(table), label, aside)
    X, y = _split_off(frame, label, drop)
    features = _features(frame, X, columns, aside)
    days = _in_days(X, features)
    gaps = _gaps(X, aside)
    X = _as_imputers_know(X, gaps)
    filled = set(map(str, X.columns)) if impute_all else gaps
    days = _as_imputers_know(days, filled)
    steps = _steps(features, filled, scale, pca, seed)
    estimator = getattr(clvq, model.upper())(prototypes, random_state=seed)
    chosen = _held_out(y, test_share, seed)
    with working(f"training {model} on {int((~chosen).sum()):,} rows"):
        fitted = _fitted(steps, estimator, days[~chosen], y[~chosen])
        told = _table_model(fitted, features)
        right = told.predict(X) == y
    for name, rows in (("training", ~chosen), ("held out", chosen)):
        if rows.any():
            share = f"{right[rows].mean():6.1%} of {int(rows.sum()):,} rows right"
            say(f"{name}  {share}", aside=aside)
    if output is None:
        say("the model was not saved; name a file with --output.", aside=True)
        return
    if aside:
        with standard_output() as stream:
            clvq.save(told, stream, reference=X if summary else None)
    else:
        clvq.save(told, output, reference=X if summary else None)
    where = "standard output" if aside else os.fspath(output)
    say(f"saved     {where}: {_described(model, told)}", aside=aside)


def _described(kind: str, model: clvq.TableModel) -> str:
    return (
        f"{kind}, {len(model.classes)} classes, {model.model.n_prototypes} prototypes, "
        f"{len(model.features)} columns"
    )


def _split_off(
    frame: pd.DataFrame, label: str, drop: tuple[str, ...]
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Part the table into the columns that the model sees, and the classes."""
    columns = clvq.Features([str(name) for name in frame.columns])
    for name in (label, *drop):
        columns.position(name)  # says which names there are
    described = clvq.Features.from_frame(frame, only=[label], ranges=None)[label]
    if described.kind == "real":
        raise clvq.InvalidInputError(
            f"the label column {label!r} holds real numbers; expected classes: text, whole numbers "
            f"or booleans. Cut it into classes first."
        )
    X = frame.drop(columns=[label, *drop])
    if X.shape[1] == 0:
        raise clvq.InvalidInputError("no column is left to learn from; expected at least one.")
    for name in X.columns:
        if frame[name].isna().all():
            raise clvq.InvalidInputError(
                f"column {name!r} has no value in any row; expected some. Leave the column out "
                f"with --drop."
            )
    is_text = described.kind == "categorical"
    return X, np.array(frame[label].tolist(), dtype=np.str_ if is_text else None)


def _features(
    frame: pd.DataFrame, X: pd.DataFrame, columns: str | None, aside: bool
) -> clvq.Features:
    """Describe the columns by the table, and by a file that says more."""
    written = text_dates(X)
    if columns is None:
        _tell_dates(written, aside)
        return clvq.Features.from_frame(
            X, ranges=None, decimals="seen", kinds=dict.fromkeys(written, "date")
        )
    said = read_columns(columns).checked([str(name) for name in frame.columns])
    kinds, levels = (said.arguments.get(key, {}) for key in ("kinds", "levels"))
    known = {name: kind for name, kind in kinds.items() if name in X and name not in levels}
    written = [name for name in written if name not in known and name not in levels]
    _tell_dates(written, aside)
    known |= dict.fromkeys(written, "date")
    features = said.of(clvq.Features.from_frame(X, ranges=None, decimals="seen", kinds=known))
    _refuse_other_values(X, features, columns)
    return features


def _refuse_other_values(X: pd.DataFrame, features: clvq.Features, columns: str) -> None:
    """Say at once which value of the table is none of its column."""
    try:
        clvq.Reference.of(X, features)
    except clvq.InvalidInputError as error:
        words = str(error).removeprefix("reference: ")
        advice = "Add it to the levels, or leave its rows out of the table."
        texts = [f.name for f in features if f.kind == "boolean" and X[f.name].dtype.kind != "b"]
        if any(f"column {name!r}" in words for name in texts):
            advice = (
                'Say kind = "categorical", with labels = { ... } for the two levels, and phrases = '
                'true if these are phrases such as "with a guarantor".'
            )
        raise clvq.InvalidInputError(f"{columns}: {words} {advice}") from None
    for feature in features:
        if feature.kind not in ("real", "whole"):
            continue
        for value in X[feature.name].dropna().unique().tolist():
            number = feature.number(value)
            if number is None and not isinstance(value, bool):
                raise clvq.InvalidInputError(
                    f"{columns}: column {feature.name!r} is to be {feature.kind} and holds "
                    f"{shown_repr(value)}; expected finite numbers. Mend the table, or say "
                    f'kind = "categorical".'
                )
            if feature.kind == "whole" and number is not None and number % 1:
                raise clvq.InvalidInputError(
                    f"{columns}: column {feature.name!r} is to be whole and holds {value}; "
                    f'expected whole numbers. Say kind = "real", with a step where changes are to '
                    f"have one."
                )


def _tell_dates(names: list[str], aside: bool) -> None:
    if names:
        shown = ", ".join(names)
        say(f"dates     {shown}; for levels say so in a file of columns", aside=aside)


def _with_labels(frame: pd.DataFrame, label: str, aside: bool) -> pd.DataFrame:
    """Leave rows out that have no class, and say how many."""
    clvq.Features([str(name) for name in frame.columns]).position(label)
    there = frame[label].notna().to_numpy()
    if there.all():
        return frame
    if not there.any():
        raise clvq.InvalidInputError(
            f"the label column {label!r} has no value in any row; expected a class in each."
        )
    count = int((~there).sum())
    rows = f"{count:,} of {len(frame):,} rows left out, which have no {label}"
    say(f"missing   {rows}", aside=aside)
    return frame[there].reset_index(drop=True)


def _gaps(X: pd.DataFrame, aside: bool) -> set[str]:
    """Find the columns with missing values, and say how many."""
    counts = {str(name): int(X[name].isna().sum()) for name in X.columns}
    found = {name: count for name, count in counts.items() if count}
    if found:
        shown = ", ".join(f"{count:,} of {name}" for name, count in found.items())
        say(f"missing   {shown}; median or most frequent level instead", aside=aside)
    return set(found)


def _as_imputers_know(X: pd.DataFrame, names: set[str]) -> pd.DataFrame:
    """Write missing values of some columns as imputers know them."""
    plain = {}
    for name in sorted(names):
        is_number = X[name].dtype.kind in "iuf"
        whole = X[name].astype("float64" if is_number else object)
        plain[name] = whole.where(X[name].notna(), np.nan)
    return X.assign(**plain) if plain else X


def _steps(
    features: clvq.Features, gaps: set[str], scale: bool, pca: int | None, seed: int
) -> list[Any]:
    from sklearn.compose import ColumnTransformer
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    numbers = [feature.name for feature in features if feature.is_number]
    encoded = [feature for feature in features if not feature.is_number]
    for feature in encoded:
        if len(feature.levels) > MOST_LEVELS:
            raise clvq.InvalidInputError(
                f"column {feature.name!r} is text with {len(feature.levels)} different values; "
                f"expected at most {MOST_LEVELS}. Leave it out with --drop {feature.name!r}; dates "
                f"are read where all are written as 2024-05-31."
            )
    parts: list[Any] = []
    for name, with_gaps in (("", False), ("filled ", True)):
        some = [column for column in numbers if (column in gaps) == with_gaps]
        if some:
            last = StandardScaler() if scale else "passthrough"
            parts.append((f"{name}numbers", _after_imputer("median", with_gaps, last), some))
        levels = [feature for feature in encoded if (feature.name in gaps) == with_gaps]
        if levels:
            step = _after_imputer("most_frequent", with_gaps, _encoder(levels))
            parts.append((f"{name}levels", step, [feature.name for feature in levels]))
    steps: list[Any] = [("columns", ColumnTransformer(parts))]
    if pca is not None:
        steps.append(("pca", PCA(pca, random_state=seed)))
    return steps


def _in_days(X: pd.DataFrame, features: clvq.Features) -> pd.DataFrame:
    """Turn dates into days, as a model takes them."""
    dates = [feature.name for feature in features if feature.kind == "date"]
    if not dates:
        return X
    days = {name: [features[name].number(value) for value in X[name]] for name in dates}
    for name, numbers in days.items():
        wrong = [number is None for number in numbers] & X[name].notna().to_numpy()
        if wrong.any():
            row = int(wrong.argmax())
            raise clvq.InvalidInputError(
                f"column {name!r}, row {row} is {X[name].iloc[row]}; expected a date without a "
                f"time of day, such as 2024-05-31. Cut it to days, or leave it out with --drop."
            )
    return X.assign(**days)


def _encoder(features: list[clvq.Feature]) -> Any:
    """Encode the levels of all rows, so that one that only rows held out have is known too."""
    from sklearn.preprocessing import OneHotEncoder

    return OneHotEncoder(
        categories=[list(feature.levels) for feature in features],
        drop="if_binary",
        sparse_output=False,
    )


def _after_imputer(strategy: str, with_gaps: bool, last: Any) -> Any:
    """Put an imputer before a step where values are missing."""
    if not with_gaps:
        return last
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline

    return Pipeline([("imputed", SimpleImputer(strategy=strategy)), ("step", last)])


def _held_out(y: NDArray[Any], share: float, seed: int) -> NDArray[np.bool_]:
    chosen = np.zeros(len(y), dtype=np.bool_)
    if share == 0:
        return chosen
    from sklearn.model_selection import train_test_split

    try:
        _, at = train_test_split(np.arange(len(y)), test_size=share, stratify=y, random_state=seed)
    except ValueError as error:
        raise clvq.InvalidInputError(
            f"no rows can be held out ({error}); expected at least two rows of each class. Use all "
            f"rows for training with --test-share 0."
        ) from None
    chosen[at] = True
    return chosen


def _fitted(steps: list[Any], estimator: Any, X: pd.DataFrame, y: NDArray[Any]) -> Pipeline:
    from sklearn.pipeline import Pipeline

    pipeline = Pipeline([*steps, ("model", estimator)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            pipeline.fit(X, y)
        except ValueError as error:
            if isinstance(error, clvq.CounterlvqError):
                raise _in_options(error) from None
            raise clvq.InvalidInputError(f"the model cannot be trained: {error}") from None
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        say(f"counterlvq: warning: {' '.join(text.split())}", aside=True)
    return pipeline


def _in_options(error: clvq.CounterlvqError) -> clvq.CounterlvqError:
    """Give advice by the options of the command."""
    advice = "Lower prototypes_per_class, or pass a mapping from label to number."
    text = str(error)
    return type(error)(text.replace(advice, "Lower --prototypes.")) if advice in text else error


def _table_model(pipeline: Pipeline, features: clvq.Features) -> clvq.TableModel:
    """Read the pipeline, and add what is known of its columns."""
    read = clvq.TableModel.from_pipeline(pipeline)
    return clvq.TableModel(read.table_map, read.model, features)
