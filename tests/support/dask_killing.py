"""Kill workers of a Dask cluster at random moments of runs over a dataset, and look at the result.

Run as ``python tests/support/dask_killing.py KILLS SEED ROWS``. Scheduler, workers and client are
forked from this process, which has imported everything and has no threads, so that another worker
takes the place of a killed one at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import distributed
import pyarrow.parquet as pq

import counterlvq as clvq
import counterlvq.dask

WORKERS = 2


def forked(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - told, and an exit code of its own
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os._exit(0)


def schedule(port: int) -> None:
    async def run() -> None:
        async with distributed.Scheduler(host="127.0.0.1", port=port, dashboard=False) as made:
            await made.finished()

    asyncio.run(run())


def work(address: str, folder: Path) -> None:
    async def run() -> None:
        async with distributed.Worker(
            address, nthreads=1, memory_limit=0, dashboard=False, local_directory=str(folder)
        ) as made:
            await made.finished()

    asyncio.run(run())


def ask(address: str, source: Path, folder: Path) -> None:
    """Have a dataset answered; a run that too many losses have ended is called again."""
    from streams import plain_explainer  # beside this script

    with distributed.Client(address, timeout=120) as client:
        for _ in range(20):
            try:
                told = clvq.dask.explain(
                    source, plain_explainer(), "c", destination=folder, part_rows=100, client=client
                )
            except distributed.KilledWorker:
                os.write(2, b"called again\n")
            else:
                os.write(2, f"{told}\n".encode())
                return
    raise RuntimeError("twenty calls were ended by lost workers")


def is_over(child: int) -> bool:
    found, status = os.waitpid(child, os.WNOHANG)
    assert not found or os.WEXITSTATUS(status) == 0, "the run ended with an error"
    return bool(found)


def main(kills: int, seed: int, rows: int) -> dict[str, int]:
    from stream_killing import answer, contents, written  # beside this script

    draw, done = random.Random(seed), {"kills": 0, "runs": 0}
    with tempfile.TemporaryDirectory() as name, socket.socket() as held:
        place = Path(name)
        source = written(place, "parquet", rows)
        answer(source, place / "warm")
        begun = time.monotonic()
        answer(source, place / "whole")
        length = time.monotonic() - begun
        expected = contents(place / "whole")
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        held.close()
        address = f"tcp://127.0.0.1:{port}"
        scheduler = forked(lambda: schedule(port))
        workers = [forked(lambda: work(address, place)) for _ in range(WORKERS)]
        try:
            while done["kills"] < kills:
                folder = place / f"run-{done['runs']}"
                client, latest = forked(lambda folder=folder: ask(address, source, folder)), length
                while True:
                    time.sleep(draw.uniform(0.0, latest))
                    if is_over(client):
                        break
                    # Later kills come later, so that each run comes to its end.
                    latest += length / 4
                    k = draw.randrange(WORKERS)
                    os.kill(workers[k], signal.SIGKILL)
                    os.waitpid(workers[k], 0)
                    workers[k] = forked(lambda: work(address, place))
                    done["kills"] += 1
                done["runs"] += 1
                assert contents(folder) == expected, "the result is another one"
                ids = pq.read_table(folder, columns=["id"], use_threads=False)["id"].to_pylist()
                assert sorted(map(int, ids)) == list(range(rows)), "rows are lost or doubled"
                print(json.dumps(done), file=sys.stderr, flush=True)
        finally:
            for child in (*workers, scheduler):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
    return done


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:]))))
