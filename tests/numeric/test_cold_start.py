"""Fresh processes: compiled code is kept on disk, wherever that is possible, and found again."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import counterlvq
from tests.support.quick import some

PACKAGE = Path(counterlvq.__file__).parent

# One small kernel, which compiles in a moment.
SMALL = """
import json
import counterlvq
from counterlvq.certificates.acceptance_kernel import relative_gap

gap = relative_gap(4.0, 3.0)
stats = relative_gap.dispatcher.stats
print(json.dumps({
    "answer": gap,
    "from": counterlvq.__file__,
    "hits": sum(stats.cache_hits.values()),
    "misses": sum(stats.cache_misses.values()),
}))
"""

# All of them, as a user meets them.
WHOLE = """
import json
import counterlvq as clvq
from counterlvq.numeric.interpreting import compile_from_now_on

compile_from_now_on()
model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["a", "b"])
costs = [clvq.Manhattan(), clvq.Euclidean()]
found = [clvq.Explainer(model, cost).explain([0.0, 0.0], target="b") for cost in costs]
from counterlvq.solvers.kernels.rows import answer_absolute, answer_quadratic
stats = [kernel.dispatcher.stats for kernel in (answer_absolute, answer_quadratic)]
print(json.dumps({
    "answer": [round(cf.cost, 6) for cf in found],
    "reason": sorted({cf.reason for cf in found}),
    "from": clvq.__file__,
    "hits": sum(sum(s.cache_hits.values()) for s in stats),
    "misses": sum(sum(s.cache_misses.values()) for s in stats),
}))
"""
# Those of local metrics, which search and prove in other files. The class boundary is where
# 2 y = 4 - y: the second metric doubles every distance.
LOCAL = """
import json
import counterlvq as clvq
from counterlvq.numeric.interpreting import compile_from_now_on

compile_from_now_on()
model = clvq.PrototypeModel([[0.0], [4.0]], ["a", "b"], omegas=[[[1.0]], [[2.0]]])
costs = [clvq.Manhattan(), clvq.Euclidean()]
found = [clvq.Explainer(model, cost).explain([0.0], target="b") for cost in costs]
from counterlvq.certificates.lifted_kernel import lowest_point
from counterlvq.certificates.acceptance_kernel import judge_rows
from counterlvq.solvers.kernels.descent import descend
stats = [kernel.dispatcher.stats for kernel in (descend, judge_rows, lowest_point)]
print(json.dumps({
    "answer": [round(cf.cost, 4) for cf in found],
    "reason": ["compiled kernel"] if descend.dispatcher.signatures else ["never called"],
    "from": clvq.__file__,
    "hits": sum(sum(s.cache_hits.values()) for s in stats),
    "misses": sum(sum(s.cache_misses.values()) for s in stats),
}))
"""
ANSWERS = {SMALL: 0.25, WHOLE: [2.5, 5.0], LOCAL: [2.6667, 7.1111]}

# The small kernel shows how it goes; all of them take the better part of a minute.
each_size = pytest.mark.parametrize(
    "code",
    some([SMALL, WHOLE, LOCAL], quick=1),
    ids=["one", "all", "local"],
)


def fresh(code: str, *, answer: Any = None, **environment: str) -> dict[str, Any]:
    """Run code in a process of its own, with nothing known about caches but what is given."""
    known = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**known, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["answer"] == (ANSWERS[code] if answer is None else answer)
    return told


def kept(folder: Path) -> dict[str, int]:
    """Files of compiled code below a folder, with the time of their last change."""
    files = [path for path in folder.rglob("*") if path.suffix in (".nbi", ".nbc")]
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in files}


def copied(folder: Path) -> Path:
    """The package as an installer would put it there, with bytecode and without kernels."""
    ignored = shutil.ignore_patterns("*.nbi", "*.nbc")
    shutil.copytree(PACKAGE, folder / "counterlvq", ignore=ignored)
    return folder


def without_room(place: Path) -> None:
    """Leave no folder in which compiled code could be kept beside its source."""
    for folder in sorted({path.parent for path in place.rglob("*.py")}):
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)
        blocked(folder / "__pycache__")


def blocked(path: Path) -> Path:
    """A file where a folder is looked for: nobody, whatever their rights, can write below it."""
    path.write_text("not a folder")
    return path


@each_size
def test_second_process_finds_what_the_first_compiled(code: str, tmp_path: Path) -> None:
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert not kept(tmp_path)
    first = fresh(code, **cache)
    assert first["hits"] == 0
    assert first["misses"] > 0
    files = kept(tmp_path)
    assert {Path(name).suffix for name in files} == {".nbi", ".nbc"}
    second = fresh(code, **cache)
    assert second["misses"] == 0
    assert second["hits"] == first["misses"]
    assert kept(tmp_path) == files


@pytest.mark.slow  # by default a damaged cache shows the same
@each_size
def test_compiled_code_is_kept_beside_the_source(code: str, tmp_path: Path) -> None:
    place = copied(tmp_path / "site")
    first = fresh(code, PYTHONPATH=str(place), HOME=str(blocked(tmp_path / "home")))
    assert Path(first["from"]).is_relative_to(place)
    assert first["misses"] > 0
    assert any(kept(path) for path in (place / "counterlvq").rglob("__pycache__"))


@each_size
def test_read_only_package_keeps_compiled_code_with_the_user(code: str, tmp_path: Path) -> None:
    place, home = copied(tmp_path / "site"), tmp_path / "home"
    home.mkdir()
    without_room(place)
    around = {"PYTHONPATH": str(place), "HOME": str(home), "XDG_CACHE_HOME": str(home)}
    first = fresh(code, **around)
    assert not kept(place)
    assert kept(home)
    second = fresh(code, **around)
    assert (second["hits"], second["misses"]) == (first["misses"], 0)


@pytest.mark.slow  # by default the surroundings that cannot be written to show the same
@each_size
def test_kernels_work_where_nothing_can_be_kept(code: str, tmp_path: Path) -> None:
    place, home = copied(tmp_path / "site"), blocked(tmp_path / "home")
    without_room(place)
    below = str(home / "below")
    told = fresh(
        code, PYTHONPATH=str(place), HOME=str(home), XDG_CACHE_HOME=below, NUMBA_CACHE_DIR=below
    )
    assert Path(told["from"]).is_relative_to(place)
    assert told["hits"] == 0
    assert told.get("reason", ["compiled kernel"]) == ["compiled kernel"]
    assert not kept(tmp_path)


# --- what is compiled is found again, and only while nothing has changed ------------------------

# Of no more than a line each, in two files, because Numba alone looks at one.
INNER = """
from counterlvq.numeric.jit import jit

@jit
def inner(x):
    return x + 1.0
"""
OUTER = """
from counterlvq.numeric.jit import jit
from counterlvq.solvers.kernels.inner import inner

@jit
def outer(x):
    return 10.0 * inner(x)
"""
TWO_FILES = """
import json
import counterlvq
from counterlvq.solvers.kernels.outer import outer

print(json.dumps({
    "answer": outer(2.0),
    "from": counterlvq.__file__,
    "hits": sum(outer.dispatcher.stats.cache_hits.values()),
    "misses": sum(outer.dispatcher.stats.cache_misses.values()),
}))
"""


def test_change_of_a_compiled_function_is_noticed_in_another_file(tmp_path: Path) -> None:
    place = copied(tmp_path / "site")
    kernels = place / "counterlvq" / "solvers" / "kernels"
    (kernels / "inner.py").write_text(INNER)
    (kernels / "outer.py").write_text(OUTER)
    around = {"PYTHONPATH": str(place), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert fresh(TWO_FILES, answer=30.0, **around)["misses"] == 1
    assert fresh(TWO_FILES, answer=30.0, **around)["hits"] == 1
    files = kept(tmp_path / "cache").keys()

    (kernels / "inner.py").write_text(INNER.replace("+ 1.0", "+ 5.0"))
    assert fresh(TWO_FILES, answer=70.0, **around)["misses"] == 1
    assert kept(tmp_path / "cache").keys() == files  # the old code was written over

    # A file without compiled code changes nothing: what was compiled anew is found.
    with (place / "counterlvq" / "explainer" / "explainer.py").open("a") as file:
        file.write("# one more line\n")
    assert fresh(TWO_FILES, answer=70.0, **around)["hits"] == 1


def compiled_functions() -> dict[str, Any]:
    """Every compiled function of the package, by its full name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if "from counterlvq.numeric.jit import" in path.read_text(encoding="utf-8"):
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            for name, value in vars(importlib.import_module(".".join(parts))).items():
                if hasattr(value, "py_func"):
                    found[f"{value.py_func.__module__}.{name}"] = value
    return found


def test_every_compiled_function_has_a_place_on_disk_and_a_key_that_lasts() -> None:
    """What closes over another compiled function gets a new key in each process."""
    functions = compiled_functions()
    assert len(functions) > 40
    for name, function in functions.items():
        assert function.dispatcher.stats.cache_path, name
        for cell in function.py_func.__closure__ or ():
            assert isinstance(cell.cell_contents, bool | int | float), name
