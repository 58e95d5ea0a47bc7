"""A first look at an installed counterlvq: `make release-check` runs it where nothing else is.

It needs Python and the installed package, and neither this repository nor a development tool. It
asks one question of each kind that the package answers, and ends with an error where one fails.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import counterlvq as clvq

# Extras and tools that an empty environment does not have. Where one is found after all, the
# environment is not empty, and what works here proves nothing.
ABSENT = ("click", "pandas", "polars", "matplotlib", "pyarrow", "pytest", "cvxpy", "ruff")


def check_environment() -> None:
    found = [name for name in ABSENT if importlib.util.find_spec(name) is not None]
    assert not found, f"the environment is not empty: it has {', '.join(found)}"
    home = Path(clvq.__file__).resolve()
    assert Path(sys.prefix).resolve() in home.parents, f"{home} is not what was installed"
    assert importlib.metadata.version("counterlvq") == clvq.__version__
    assert home.with_name("py.typed").is_file(), "type checkers are not told about the types"
    for name in clvq.__all__:
        getattr(clvq, name)


def check_answers() -> clvq.Explainer:
    model = clvq.PrototypeModel(
        [[2400, 3, 1], [1500, 1, 4], [4200, 2, 0], [3900, 1, 1]],
        ["rejected", "rejected", "accepted", "accepted"],
        omegas=[[0.001, 0, 0], [0, 1, 0], [0, 0, 1]],
        feature_names=["income", "cards", "late payments"],
    )
    cost = clvq.Manhattan(weights=[0.001, 1, 1])
    explainer = clvq.Explainer(model, cost, [clvq.Freeze("late payments"), "cards >= 1"])
    cf = explainer.explain([2400, 3, 1], target="accepted")
    assert cf.status == "optimal", cf
    assert cf.prediction == "accepted"
    assert explainer.verify(cf) == cf.lower_bound

    batch = explainer.explain_batch([[2400, 3, 1], [1500, 1, 4]], target="accepted", n_jobs=2)
    assert np.array_equal(batch.X[0], cf.x)
    assert [str(status) for status in batch.status] == ["optimal", "optimal"]

    stuck = clvq.Explainer(model, cost, [clvq.Freeze("income", "cards", "late payments")])
    assert stuck.explain([2400, 3, 1], target="accepted").status == "infeasible"
    return explainer


def check_local_metrics() -> None:
    """Branch and bound, which needs Clarabel, and an estimator, which needs scikit-learn."""
    X = [[0.0, 0.0], [1.0, 0.5], [0.5, 1.0], [4.0, 3.0], [5.0, 4.0], [4.5, 3.0]]
    fitted = clvq.LGMLVQ(random_state=0).fit(X, ["no"] * 3 + ["yes"] * 3)
    cf = clvq.Explainer(fitted, clvq.Euclidean()).explain(X[0], target="yes")
    assert cf.status == "optimal", cf


def check_files(explainer: clvq.Explainer) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "loans.clvq"
        clvq.save(explainer.model, path)
        loaded = clvq.load(path)
    rows = np.array([[2400.0, 3.0, 1.0], [4000.0, 1.0, 0.0]])
    assert (loaded.predict(rows) == explainer.model.predict(rows)).all()


def check_shell() -> None:
    """Without the extra `cli` the command is there, and says what it needs."""
    command = Path(sys.executable).with_name("counterlvq")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done
    assert "pip install click" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr, done.stderr


def main() -> None:
    check_environment()
    explainer = check_answers()
    check_local_metrics()
    check_files(explainer)
    check_shell()
    print(f"counterlvq {clvq.__version__} works in an empty environment.")


if __name__ == "__main__":
    main()
