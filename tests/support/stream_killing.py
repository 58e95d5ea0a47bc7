"""Kill runs over a dataset at random moments, go on with them, and look at what is left.

Run as ``python tests/support/stream_killing.py KILLS SEED ROWS``. Runs are forked from this
process, which has imported everything and has no threads, so that a kill costs no start of Python.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

import counterlvq as clvq


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def written(folder: Path, kind: str, rows: int) -> Path:
    """Write a dataset of three files and many row groups."""
    from streams import plain_table  # beside this script

    source = folder / f"source-{kind}"
    source.mkdir()
    table = plain_table(rows)
    for k in range(3):
        piece = table.slice(k * rows // 3, rows // 3)
        if kind == "csv":
            piece.to_pandas().to_csv(source / f"{k}.csv", index=False)
        else:
            pq.write_table(piece, source / f"{k}.parquet", row_group_size=100)
    return source


def answer(source: Path, folder: Path) -> None:
    from streams import plain_explainer  # beside this script

    clvq.explain_dataset(plain_explainer(), source, folder, "c", part_rows=100)


def killed(source: Path, folder: Path, delay: float) -> bool:
    """Start or go on with a run, and kill it; False if it was done by then."""
    child = os.fork()
    if child == 0:
        try:
            answer(source, folder)
        except Exception as error:  # noqa: BLE001 - told, and an exit code of its own
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
        os._exit(0)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0, "the run ended with an error"
    return False


def main(kills: int, seed: int, rows: int) -> dict[str, int]:
    draw, done = random.Random(seed), {"kills": 0, "runs": 0, "pending": 0}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for kind in ("parquet", "csv"):
            source = written(place, kind, rows)
            answer(source, place / f"warm-{kind}")
            start = time.monotonic()
            answer(source, place / f"whole-{kind}")
            length = time.monotonic() - start
            expected = contents(place / f"whole-{kind}")
            wanted = done["kills"] + kills // 2
            while done["kills"] < wanted:
                folder = place / f"run-{done['runs']}-{kind}"
                # Later kills come later, because each run reads and checks what there is first:
                # where that takes half of a whole run, none would ever come to its end.
                latest = length / 2
                while killed(source, folder, draw.uniform(0.0, latest)):
                    done["kills"] += 1
                    latest += length / 4
                    left = [*folder.iterdir()] if folder.is_dir() else []
                    done["pending"] += any(p.name.endswith(".pending") for p in left)
                done["runs"] += 1
                assert contents(folder) == expected, "the result is another one"
            ids = pq.read_table(place / f"whole-{kind}", columns=["id"])["id"].to_pylist()
            assert sorted(map(int, ids)) == list(range(rows))
    return done


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:]))))
