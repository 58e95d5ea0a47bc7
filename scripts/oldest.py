"""Print the lowest versions that `pyproject.toml` allows, one pin per line: `make test-oldest`.

The lines are constraints for pip: `name>=version` becomes `name==version`, for the dependencies of
the package and of every extra. What these depend on themselves is left to pip.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FLOOR = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?>=(?P<version>[0-9][0-9A-Za-z.]*)")


def requirements(project: dict) -> list[str]:
    """Everything that the package or one of its extras asks for, its own extras aside."""
    own = project["name"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    return sorted({line for group in groups for line in group if not line.startswith(f"{own}[")})


def pins(project: dict) -> list[str]:
    """One pin for each requirement; refuse one that names no lowest version, or two of them."""
    found: dict[str, str] = {}
    for line in requirements(project):
        match = _FLOOR.fullmatch(line)
        if match is None:
            raise SystemExit(f"{line!r} in pyproject.toml: expected name>=version.")
        name, version = match["name"].lower(), match["version"]
        if found.setdefault(name, version) != version:
            raise SystemExit(
                f"pyproject.toml asks for {name} {found[name]} and {version}; expected one floor."
            )
    return [f"{name}=={version}" for name, version in found.items()]


def main() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        print("\n".join(pins(tomllib.load(file)["project"])))


if __name__ == "__main__":
    main()
