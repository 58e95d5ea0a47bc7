"""Links that leave the folder of the pages, as they work for a reader of the repository.

An example leads to its page in the gallery, a file that a page of the site includes leads to that
page, and any other file is offered for download.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

_LINK = re.compile(
    r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<path>(?:\.\./)+[^)#\s]*)(?P<anchor>#[^)\s]*)?\)"
)
_INCLUDE = re.compile(r"^```\{include\} (\S+)$", re.MULTILINE)


def resolved(page: str, target: str) -> str:
    """What a page links to, seen from the root of the repository."""
    return posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))


def included(folder: Path) -> dict[str, str]:
    """Files outside of the folder, and the pages that show them."""
    found = {}
    for path in sorted(folder.rglob("*.md")):
        page = path.relative_to(folder).as_posix()
        for target in _INCLUDE.findall(path.read_text(encoding="utf-8")):
            found[resolved(page, target)] = page
    return found


def place_of(path: str, pages: dict[str, str]) -> str | None:
    """Where the site shows a file of the repository, if it does."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.startswith("examples/") and path.endswith(".py"):
        return f"gallery/{posixpath.basename(path).removesuffix('.py')}.rst"
    return pages.get(path)


def _rewrite(app: Any, page: str, source: list[str]) -> None:
    pages = included(Path(app.srcdir))

    def seen(match: re.Match[str]) -> str:
        place = place_of(resolved(page, match["path"]), pages)
        if place is None:
            return f"{{download}}`{match['text'].replace('`', '')} <{match['path']}>`"
        here = posixpath.relpath(place, posixpath.dirname(page) or ".")
        return f"[{match['text']}]({here}{match['anchor'] or ''})"

    source[0] = _LINK.sub(seen, source[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", _rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
