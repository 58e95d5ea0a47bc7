"""`counterlvq import`: a table of prototypes of any tool in, a model file out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

import counterlvq as clvq
from counterlvq.cli.conventions import debug_option
from counterlvq.cli.inputs import STDIN, read_matrix, read_table, table_options
from counterlvq.cli.outputs import STDOUT, check_writable, standard_output
from counterlvq.cli.terminal import say

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["import_"]


@click.command("import", short_help="Make a model of a table of prototypes.")
@click.argument("table", metavar="PROTOTYPES")
@click.option("--label", required=True, metavar="COLUMN", help="The column with the classes.")
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out; repeatable.")
@click.option(
    "--omega",
    "omegas",
    multiple=True,
    metavar="FILE",
    help="Factor of the metric, in CSV; once, or once for each prototype.",
)
@click.option("--angles", is_flag=True, help="The smallest angle decides, not the distance.")
@click.option(
    "--reference",
    metavar="TABLE",
    help="Rows, such as the training table, of which a summary goes into the model file.",
)
@table_options
@click.option(
    "--output", "-o", required=True, metavar="FILE",
    help="Where the model goes, say model.clvq; - for stdout.",
)  # fmt: skip
@debug_option
def import_(
    table: str,
    label: str,
    drop: tuple[str, ...],
    omegas: tuple[str, ...],
    angles: bool,
    reference: str | None,
    output: str,
) -> None:
    """Make a model of PROTOTYPES, a table with one row each (- for stdin).

    From R, MATLAB or a paper. A row belongs to the prototype with the least
    |omega (x - prototype)|^2. The columns of omega follow those of the table, or have their names
    in the first line.
    """
    if table == reference == STDIN:
        raise click.UsageError("PROTOTYPES and --reference are both -; only one can be stdin.")
    check_writable(output)
    prototypes = read_table(table)
    features = [str(name) for name in prototypes.columns if name != label and name not in drop]
    factors = [read_matrix(path, features) for path in omegas]
    model = clvq.import_prototypes(
        prototypes,
        label,
        None if not factors else factors[0] if len(factors) == 1 else factors,
        drop,
        angles=angles,
    )
    aside = output == STDOUT
    rows = None if reference is None else _rows(reference, features)
    if aside:
        with standard_output() as stream:
            clvq.save(model, stream, reference=rows)
    else:
        clvq.save(model, output, reference=rows)
    where = "standard output" if aside else os.fspath(output)
    kind = "one metric for each" if model.is_local else "one metric for all"
    say(
        f"saved     {where}: {model.n_prototypes} prototypes, {len(model.classes)} classes, "
        f"{model.n_features} columns, {kind}",
        aside=aside,
    )


def _rows(path: str, features: list[str]) -> pd.DataFrame:
    """Read the columns of the model from a table of rows."""
    rows = read_table(path)
    missing = [name for name in features if name not in rows.columns]
    if missing:
        raise clvq.InvalidInputError(
            f"{path} has no column {missing[0]!r}; expected one for each column of the prototypes."
        )
    return rows[features]
