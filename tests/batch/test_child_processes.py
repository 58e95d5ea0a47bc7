"""Children made by others: fork, the pools of multiprocessing, of joblib, of concurrent.futures.

A child answers like its parent, threads and processes of its own included, and then ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.quick import some

pytestmark = pytest.mark.skipif(os.name != "posix", reason="fork")

SCRIPT = '''
import multiprocessing as mp, os, sys, threading, time
from concurrent.futures import ProcessPoolExecutor
import numpy as np, pandas as pd
import counterlvq as clvq

rng = np.random.default_rng(2)
X = rng.normal(size=(4, 2))
POINTS = rng.normal(size=(4, 2))
LOCAL = clvq.PrototypeModel(POINTS, [0, 0, 1, 1], omegas=rng.normal(size=(4, 2, 2)))
ROWS = np.random.default_rng(3).normal(size=(700, 2))


def models():
    from sklearn.neighbors import KNeighborsClassifier

    shared = clvq.Explainer(clvq.PrototypeModel(POINTS, [0, 0, 1, 1]))
    foreign = clvq.Explainer(KNeighborsClassifier(1).fit(ROWS, ROWS[:, 0] > 0))
    return shared, foreign, clvq.Explainer(LOCAL, method="ccp"), clvq.Explainer(LOCAL)


def ask(explainers, jobs):
    """Threads, a model of scikit-learn, cones, branch and bound, processes."""
    shared, foreign, ccp, local = explainers
    costs = [*shared.explain_batch(ROWS[:600], n_jobs=2).cost[:5]]
    costs += [*foreign.explain_batch(ROWS[300:620], n_jobs=2).cost[:5]]
    costs += [local.explain(x).cost for x in X[:2]]
    costs += [*ccp.explain_batch(X, n_jobs=jobs).cost]
    return [round(float(cost), 9) for cost in costs]


EXPLAINERS = models() if __name__ == "__main__" or {made_on_import} else None


def child(jobs):
    return ask(EXPLAINERS or models(), jobs)


def into(queue, jobs):
    queue.put(child(jobs))


def process(context, jobs):
    context = mp.get_context(context)
    queue = context.Queue()
    made = context.Process(target=into, args=(queue, jobs))
    made.start()
    found = queue.get(timeout=200)
    made.join(30)
    assert made.exitcode == 0, made.exitcode
    return [found]


def pool(context, jobs):
    with mp.get_context(context).Pool(2) as made:
        found = made.map(child, [jobs, jobs])
        made.close()
        made.join()
    return found


def futures(context, jobs):
    with ProcessPoolExecutor(2, mp.get_context(context)) as made:
        return list(made.map(child, [jobs, jobs]))


def joblib(backend, jobs):
    from joblib import Parallel, delayed

    return Parallel(n_jobs=2, backend=backend)(delayed(child)(jobs) for _ in range(2))


def sent(backend, jobs):
    """The explainers themselves go to the other process."""
    from joblib import Parallel, delayed

    return Parallel(n_jobs=2, backend=backend)(delayed(ask)(EXPLAINERS, jobs) for _ in range(2))


def fork(_, jobs):
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(write, repr(child(jobs)).encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as told:
        found = eval(told.read())
    assert os.waitpid(pid, 0)[1] == 0
    return [found]


def fork_among_threads(_, jobs):
    """Other threads are in the middle of answers when the process is forked."""
    done = threading.Event()

    def work():
        while not done.is_set():
            EXPLAINERS[1].explain(X[0])
            EXPLAINERS[3].explain(X[0])

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        found = []
        for _ in range(3):
            time.sleep(0.05)
            found += fork(None, jobs)
    finally:
        done.set()
    for thread in threads:
        thread.join()
    return found


if __name__ == "__main__":
    how, what, jobs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    expected = ask(EXPLAINERS, 1)
    for found in globals()[how](what, jobs):
        assert found == expected, (found, expected)
    print("same")
'''
WAYS = [
    ("process", "fork", 2),
    ("fork", "-", 1),
    ("fork", "-", 2),
    ("fork_among_threads", "-", 1),
    *((how, what, 2) for how in ("process", "pool", "futures") for what in ("spawn", "forkserver")),
    ("pool", "fork", 2),
    ("futures", "fork", 2),
    *((how, what, 2) for how in ("joblib", "sent") for what in ("loky", "multiprocessing")),
    ("sent", "threading", 2),
]


@pytest.mark.parametrize(("how", "what", "jobs"), some(WAYS, quick=1))
def test_child_answers_like_its_parent_and_ends(
    how: str, what: str, jobs: int, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("{made_on_import}", str(how == "sent")))
    done = subprocess.run(
        [sys.executable, str(script), how, what, str(jobs)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.stdout == "same\n", done.stderr
    assert done.returncode == 0
