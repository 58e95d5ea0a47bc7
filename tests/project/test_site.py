"""The site: every page is on it, every link leads somewhere, and it builds without a warning."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.project.test_docs import DOCS, PAGES, ROOT

_FENCED = re.compile(r"^(`{3,}).*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
_TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INCLUDE = re.compile(r"^```\{include\} (\S+)$", re.MULTILINE)
_LINK = re.compile(r"\[(?:[^\]]*)\]\(([^)\s]+)\)")
_PUBLIC = (
    "counterlvq", "counterlvq.plots", "counterlvq.report", "counterlvq.datasets", "counterlvq.dask"
)  # fmt: skip


def prose(page: Path) -> str:
    """A page without its code."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    return re.sub(r"`[^`\n]+`", "", text)


def listed(page: Path) -> list[Path]:
    """What the tables of contents on a page lead to."""
    entries: list[Path] = []
    for block in _TOCTREE.findall(page.read_text(encoding="utf-8")):
        lines = [line for line in block.splitlines() if line and not line.startswith(":")]
        names = [re.sub(r"^.*<(.*)>$", r"\1", line) for line in lines]
        entries += [page.parent / f"{name}.md" for name in names]
    return entries


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    titles = re.findall(r"^#+ (.+)$", _FENCED.sub("", page.read_text(encoding="utf-8")), re.M)
    plain = [re.sub(r"[^\w\- ]", "", title.strip().lower()) for title in titles]
    return {title.replace(" ", "-") for title in plain}


def test_every_page_is_in_one_table_of_contents() -> None:
    pages = [page for page in PAGES if page.is_relative_to(DOCS)]
    entries = [entry for page in pages for entry in listed(page)]
    gallery = DOCS / "gallery" / "index.md"  # made from the examples when the site is built
    assert sorted(entries) == sorted([gallery, *(page for page in pages if page.stem != "index"),
                                      DOCS / "measured" / "index.md"])  # fmt: skip


@pytest.mark.parametrize(
    "page",
    [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(prose(page)):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), f"{page.name} links to {link}, which is not there"
        assert not anchor or anchor in anchors(found), f"{page.name}: no heading {link}"
    for path in _INCLUDE.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / path).is_file(), f"{page.name} includes {path}, which is not there"


def test_reference_holds_every_public_name() -> None:
    pages = "".join(
        page.read_text(encoding="utf-8") for page in sorted((DOCS / "reference").glob("*.md"))
    )
    shown = re.findall(r"^\.\. auto(?:class|function):: (\S+)$", pages, re.MULTILINE)
    public = [
        f"{module}.{name}"
        for module in _PUBLIC
        for name in importlib.import_module(module).__all__
        if name != "__version__"
    ]
    assert sorted(shown) == sorted(public)


# --- the built site -----------------------------------------------------------------------------


class Requests(HTMLParser):
    """Addresses that a browser fetches to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        fetched = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
        address = dict(attrs).get(fetched.get(tag, ""))
        if address:
            self.found.append(address)


@pytest.mark.slow
def test_site_builds_without_warnings_and_asks_no_other_server(tmp_path: Path) -> None:
    # A copy, because the gallery writes its pages beside the others.
    for part in ("docs", "examples", "benchmarks/results", "experiments", "scripts"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("gallery"))
    for name in ("CHANGELOG.md", "SECURITY.md"):
        shutil.copy(ROOT / name, tmp_path)
    site = tmp_path / "site"
    command = ["-W", "--keep-going", "-n", "-q", "-d", "doctrees", "docs", "site"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert (done.returncode, done.stderr) == (0, "")

    for name in ("index", "tutorial", "mathematics", "gallery/million_rows", "measured/local"):
        assert (site / f"{name}.html").is_file()
    assert "--freeze" in (site / "reference" / "shell.html").read_text(encoding="utf-8")
    assert 'href="measured/local.html"' in (site / "local_metrics.html").read_text(encoding="utf-8")
    assert "<math" in (site / "mathematics.html").read_text(encoding="utf-8")
    for page in site.rglob("*.html"):
        seen = Requests()
        seen.feed(page.read_text(encoding="utf-8"))
        foreign = [address for address in seen.found if "//" in address.partition("?")[0]]
        assert not foreign, f"{page.name} asks {foreign}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", sheet.read_text(encoding="utf-8"))
