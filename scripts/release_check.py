"""Whether what would be released works: `make release-check`.

Builds the source archive and, from that, the wheel; looks at what is in them; renders the README as
a package index does; installs the wheel into an empty environment and runs `scripts/smoke.py`
there, first without any extra and then with the one for the shell. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import email
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

from readme_renderer import markdown

ROOT = Path(__file__).resolve().parents[1]
# Of what git keeps, all belongs into the source archive but how this repository is checked.
NOT_RELEASED = (".ci/",)
# Tests that read files of the repository, and so notice what the archive lacks.
READERS = ("tests/test_structure.py", "tests/project/test_site.py", "tests/project/test_habits.py")


def run(*command: object, cwd: Path, **variables: str) -> str:
    """Run a command and return what it prints; end with its messages if it fails."""
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=inherited | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        shown = " ".join(str(part) for part in command)
        raise SystemExit(f"{shown}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def built(folder: Path) -> tuple[Path, Path]:
    """Build both archives, the wheel from the source archive."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=ROOT)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def missing_from(sdist: Path) -> list[str]:
    """List files that git keeps and the source archive lacks."""
    kept = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    return [
        name for name in kept if name and not name.startswith(NOT_RELEASED) and name not in held
    ]


def tested(sdist: Path, folder: Path) -> str:
    """Collect all tests in the unpacked source archive, and run those that read its files."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    pytest = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    variables = {"PYTHONPATH": str(unpacked / "src")}
    run(*pytest, "--collect-only", cwd=unpacked, **variables)
    return run(*pytest, *READERS, cwd=unpacked, **variables).splitlines()[-1]


def rendered(wheel: Path) -> int:
    """Render the description that the wheel carries; return the length of the page."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    if metadata["Description-Content-Type"] != "text/markdown":
        raise SystemExit(f"the README is {metadata['Description-Content-Type']}, not text/markdown")
    text = metadata.get_payload(decode=True).decode("utf-8")
    if text.strip() != (ROOT / "README.md").read_text(encoding="utf-8").strip():
        raise SystemExit("the wheel carries another description than README.md")
    page = markdown.render(text)
    if page is None or "<h1" not in page or "<pre" not in page:
        raise SystemExit("README.md does not render")
    return len(page)


def only_the_package(wheel: Path) -> None:
    """Refuse a wheel that would install anything beside the package and its exporter."""
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    packages = {path.name for path in (ROOT / "src").iterdir() if (path / "__init__.py").is_file()}
    stem = "-".join(wheel.name.split("-")[:2])
    foreign = tops - packages - {f"{stem}.dist-info", f"{stem}.data"}
    if foreign or not packages <= tops:
        raise SystemExit(f"the wheel holds {sorted(tops)}; expected {sorted(packages)}")


def smoke(wheel: Path, folder: Path, newest: bool) -> None:
    """Install the wheel into an empty environment and use it, from a folder of its own."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    pins = [] if newest else ["-c", ROOT / "requirements.lock"]
    pip = (python, "-m", "pip", "install", "--quiet", *pins)
    run(*pip, wheel, cwd=folder)
    script = folder / "smoke.py"
    script.write_text((ROOT / "scripts" / "smoke.py").read_text(encoding="utf-8"), encoding="utf-8")
    print(run(python, "-I", "-W", "error", script, cwd=folder).strip())
    run(*pip, f"{wheel}[cli]", cwd=folder)
    print(run(folder / "venv" / "bin" / "counterlvq", "--version", cwd=folder).strip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--newest", action="store_true", help="install the newest dependencies, not the locked ones"
    )
    newest = parser.parse_args().newest
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("dist", "unpacked", "empty"):
            (folder / part).mkdir()
        sdist, wheel = built(folder / "dist")
        print(f"{sdist.name} and {wheel.name} are built.")
        lacking = missing_from(sdist)
        if lacking:
            raise SystemExit(f"{sdist.name} lacks {', '.join(lacking)}")
        only_the_package(wheel)
        print(f"README.md renders to {rendered(wheel):,} characters of HTML.")
        print(f"In the unpacked source archive: {tested(sdist, folder / 'unpacked')}")
        smoke(wheel, folder / "empty", newest)
    print("Ready to be released.")


if __name__ == "__main__":
    main()
