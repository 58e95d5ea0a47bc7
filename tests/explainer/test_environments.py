"""Odd surroundings: the same answers, and nothing on standard error."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from tests.numeric.test_cold_start import SMALL, blocked, copied, fresh, kept, without_room
from tests.support.quick import some

# Every way there is to an answer: kernels, programs, cones, branch and bound, a grid, processes.
QUESTIONS = r"""
import json
import numpy as np
import counterlvq as clvq

rng = np.random.default_rng(4)
points, x = rng.normal(size=(4, 2)), rng.normal(size=2)
plain = clvq.PrototypeModel(points, [0, 0, 1, 1], feature_names=["gr\xf6\xdfe", "x1"])
local = clvq.PrototypeModel(points, [0, 0, 1, 1], omegas=rng.normal(size=(4, 2, 2)))
ball = clvq.Quadratic(np.eye(2), value=9.0)
whole = clvq.Features([clvq.Feature("gr\xf6\xdfe", kind="whole"), clvq.Feature("x1")])
asked = [
    clvq.Explainer(plain), clvq.Explainer(plain, clvq.Euclidean(), ["gr\xf6\xdfe <= 1"]),
    clvq.Explainer(plain, constraints=[ball]), clvq.Explainer(local),
    clvq.Explainer(local, method="ccp"),
]
found = [explainer.explain(x) for explainer in asked]
found.append(clvq.Explainer(plain, features=whole).explain([1.0, x[1]]))
batch = asked[0].explain_batch(rng.normal(size=(5, 2)), n_jobs=2)
costs = [cf.cost for cf in found] + batch.cost.tolist()
if {jobs}:
    costs += asked[4].explain_batch([x, x + 0.1], n_jobs=2).cost.tolist()
print(json.dumps([[round(cost, 9) for cost in costs], [str(cf.status) for cf in found]]))
"""


def _run(*flags: str, jobs: bool = False, **around: str) -> Any:
    code = QUESTIONS.replace("{jobs}", str(jobs))
    done = subprocess.run(
        [sys.executable, *flags, "-c", code],
        env=os.environ | around,
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""
    assert done.returncode == 0
    return json.loads(done.stdout)


@cache
def _usual(jobs: bool) -> Any:
    return _run(jobs=jobs)


NO_LANGUAGE = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
NO_HOME = {"HOME": "/nonexistent/home", "XDG_CACHE_HOME": "/nonexistent/cache"}
ENVIRONMENTS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "not compiled, warnings are errors": (("-W", "error"), {"NUMBA_DISABLE_JIT": "1"}),
    "development without assertions, language or home, warnings are errors": (
        ("-X", "dev", "-O", "-W", "error", "-W", "ignore::ResourceWarning"),
        NO_LANGUAGE | NO_HOME,
    ),
}


RARE: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    # Code without docstrings is compiled and kept apart, which takes long the first time.
    "no docstrings": (("-OO",), {}),
    # What is shown with warnings as errors, too.
    "not compiled": ((), {"NUMBA_DISABLE_JIT": "1"}),
    # What is shown together, too.
    "no assertions": (("-O", "-W", "error"), {}),
    "no language": ((), NO_LANGUAGE),
    "no home": ((), NO_HOME),
    "development": (("-X", "dev", "-W", "ignore::ResourceWarning"), {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", RARE)
def test_answers_are_the_same_in_rare_cases(kind: str) -> None:
    flags, around = RARE[kind]
    assert _run(*flags, **around) == _usual(jobs=False)


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_answers_are_the_same(kind: str) -> None:
    flags, around = ENVIRONMENTS[kind]
    assert _run(*flags, **around) == _usual(jobs=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [*ENVIRONMENTS, *(kind for kind in RARE if kind != "no docstrings")]
)
def test_processes_work_as_well(kind: str) -> None:
    flags, around = (ENVIRONMENTS | RARE)[kind]
    assert _run(*flags, jobs=True, **around) == _usual(jobs=True)


# --- a cache that fails -------------------------------------------------------------------------


@pytest.mark.parametrize("damage", some([b"\x80\x04damaged", b""], quick=1))
def test_damaged_cache_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    place = copied(tmp_path / "site")
    around = {"PYTHONPATH": str(place), "HOME": str(blocked(tmp_path / "home"))}
    first = fresh(SMALL, **around)
    files = list(place.rglob("*.nb[ic]"))
    assert files
    for file in files:
        file.write_bytes(damage)
    again = fresh(SMALL, **around)
    assert again["answer"] == first["answer"]
    assert again["misses"] > 0
    found = fresh(SMALL, **around)
    assert (found["hits"], found["misses"]) == (again["misses"], 0)


def test_full_disk_costs_time_only(tmp_path: Path) -> None:
    """No file may be longer than a few bytes, which ends writing like a full disk."""
    place = copied(tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-B", "-c", SMALL],
        env=os.environ | {"PYTHONPATH": str(place), "HOME": str(blocked(tmp_path / "home"))},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (64, 64)),
    )
    assert done.stderr == ""
    assert json.loads(done.stdout)["answer"] == 0.25


def test_home_and_cache_that_cannot_be_written_are_no_reason_to_fail(tmp_path: Path) -> None:
    place, home = copied(tmp_path / "site"), blocked(tmp_path / "home")
    without_room(place)
    around = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "below")}
    done = subprocess.run(
        [sys.executable, "-c", SMALL],
        env=os.environ | around | {"PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(done.stdout)["answer"] == 0.25
    assert len(done.stderr.splitlines()) <= 1
    assert not kept(tmp_path)
