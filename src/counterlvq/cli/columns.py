"""`counterlvq columns`: a table in, a file about its columns out, for people to edit."""

from __future__ import annotations

import click

import counterlvq as clvq
from counterlvq.cli.columns_file import columns_text
from counterlvq.cli.conventions import debug_option
from counterlvq.cli.inputs import read_table, table_options
from counterlvq.cli.outputs import check_writable, write_whole

__all__ = ["columns"]


@click.command(short_help="Write a file about the columns of a table, to edit.")
@click.argument("table")
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out; repeatable.")
@table_options
@click.option(
    "--output", "-o", default="-", metavar="FILE", help="Where to write; stdout by default."
)
@debug_option
def columns(table: str, drop: tuple[str, ...], output: str) -> None:
    """Write what can be said about the columns of TABLE (CSV, JSON or Parquet).

    The file is in TOML, with comments: kinds, labels, units, ranges, levels in order, prices of
    switches, and which way a column may change. Edit it, and hand it to `counterlvq train` with
    --columns.
    """
    check_writable(output)
    frame = read_table(table)
    known = clvq.Features([str(name) for name in frame.columns])
    for name in drop:
        known.position(name)  # says which names there are
    write_whole(output, columns_text(frame.drop(columns=list(drop))).encode())
