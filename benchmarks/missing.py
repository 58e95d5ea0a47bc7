"""Rows with missing values: how many get an answer that the model confirms, ours and DiCE's.

`python -m benchmarks.missing`, with `--quick` on a few rows. DiCE is asked in an environment of its
own, whose Python is named by `--dice`; without it, only our own answers are counted.

A share of the cells of the Ames houses is taken away at random. The pipeline imputes the median or
the most frequent level, and is fitted on the table with its gaps. An answer counts as valid if the
pipeline's own `predict` gives the wished-for label to the row as it comes back, gaps included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq
from benchmarks.figures import environment
from benchmarks.report import row, write_atomically
from counterlvq.datasets import load_ames_mixed

SHARES = (0.0, 0.1, 0.3)
PEER = Path(__file__).parent / "baselines" / "dice_missing.py"
RESULTS = Path(__file__).parent / "results"


def holed(table: pd.DataFrame, share: float) -> pd.DataFrame:
    """Take a share of the cells away, at random."""
    plain = table.astype({name: float for name in table if table[name].dtype.kind in "iu"})
    # DiCE writes booleans as text, so text they are.
    plain = plain.astype({name: str for name in plain if plain[name].dtype.kind != "f"})
    plain = plain.astype({name: object for name in plain if plain[name].dtype.kind != "f"})
    return plain.mask(np.random.default_rng(7).random(plain.shape) < share, np.nan)


def fitted(table: pd.DataFrame, y: Any) -> tuple[Pipeline, list[str], list[str]]:
    """Fit a pipeline that imputes; say which columns are numbers and which levels."""
    numbers = [name for name in table if table[name].dtype.kind == "f"]
    levels = [name for name in table if name not in numbers]
    median = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    frequent = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(sparse_output=False)
    )
    steps = ColumnTransformer([("n", median, numbers), ("l", frequent, levels)])
    return make_pipeline(steps, clvq.GMLVQ(random_state=0)).fit(table, y), numbers, levels


def measured(share: float, rows: int, dice: str | None) -> dict[str, Any]:
    """Count valid answers at one share of missing values."""
    houses, price = load_ames_mixed()
    table, y = holed(houses, share), np.asarray(price == "160k or more").astype(int)
    pipeline, numbers, levels = fitted(table, y)
    below = np.flatnonzero(pipeline.predict(table) == 0)[:rows]
    explainer = clvq.Explainer(pipeline, cost=clvq.Manhattan(_weights(table)))
    batch = explainer.explain_batch(table.iloc[below], target=1)
    answered = np.isfinite(batch.cost)
    valid = np.zeros(len(below), dtype=bool)
    if answered.any():
        valid[answered] = pipeline.predict(batch.X[answered]) == 1
    out: dict[str, Any] = {
        "share": share,
        "rows": len(below),
        "rows_with_gaps": int(batch.missing.any(axis=1).sum()),
        "ours": float(valid.mean()),
        "proved": float((batch.status == "optimal").mean()),
        "left_missing": _left(batch),
    }
    if dice is not None:
        out["dice"] = _dice(dice, table, y, pipeline, numbers, levels, below)
    return out


def _weights(table: pd.DataFrame) -> Any:
    summary = clvq.Reference.of(table)
    return summary.weights(clvq.Features.from_frame(table, ranges=None))


def _left(batch: clvq.CounterfactualBatch) -> float:
    """Share of the missing values of answered rows that may stay missing."""
    there = batch.missing[np.isfinite(batch.cost)]
    stays = there & (batch.values == batch.original_values)[np.isfinite(batch.cost)]
    return float(stays.sum() / max(int(there.sum()), 1))


def _dice(
    python: str,
    table: pd.DataFrame,
    y: Any,
    pipeline: Pipeline,
    numbers: list[str],
    levels: list[str],
    rows: Any,
) -> dict[str, Any]:
    model = clvq.as_prototype_model(pipeline[-1])
    cells = table.astype(object).where(table.notna(), None)
    asked = {
        "table": cells.to_dict("list"),
        "numbers": numbers,
        "levels": levels,
        "y": y.tolist(),
        "prototypes": model.prototypes.tolist(),
        "labels": model.labels.tolist(),
        "omega": np.asarray(model.omegas).tolist(),
        "rows": rows.tolist(),
    }
    done = subprocess.run(
        [python, "-W", "ignore", str(PEER)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
        env={"OMP_NUM_THREADS": "1"},
    )
    told = json.loads(done.stdout.splitlines()[-1])
    shares = {
        method: {way: float(np.mean(valid)) for way, valid in ways.items()}
        for method, ways in told["valid"].items()
    }
    return {"version": told["version"], "valid": shares}


def table_of(found: list[dict[str, Any]]) -> str:
    """Write the figures as a table."""
    has_peer = any("dice" in part for part in found)
    head = ["missing", "rows", "rows with gaps", "ours: valid", "proved closest", "gaps left"]
    ways = [(method, way) for method in ("random", "genetic") for way in ("as is", "imputed")]
    if has_peer:
        head += [f"DiCE {method}, {way}" for method, way in ways]
    lines = [row(head), row(["---:"] * len(head))]
    for part in found:
        cells = [f"{part['share']:.0%}", str(part["rows"]), str(part["rows_with_gaps"])]
        cells += [f"{part[key]:.1%}" for key in ("ours", "proved", "left_missing")]
        if has_peer:
            cells += [f"{part['dice']['valid'][method][way]:.1%}" for method, way in ways]
        lines.append(row(cells))
    return "\n".join(lines)


def _write(path: Path, text: str) -> None:
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write `results/missing.json` and `results/missing.md`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.missing", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few rows, written nowhere")
    parser.add_argument("--dice", metavar="PYTHON", help="of an environment with dice-ml")
    chosen = parser.parse_args(arguments)
    rows = 8 if chosen.quick else 60
    found = [measured(share, rows, chosen.dice) for share in SHARES]
    told = table_of(found)
    print(told)
    if not chosen.quick:
        content = {"environment": environment(), "measured": found}
        _write(RESULTS / "missing.json", json.dumps(content, indent=1) + "\n")
        _write(RESULTS / "missing.md", f"# Missing values\n\n{told}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
