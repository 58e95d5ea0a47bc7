"""Links that leave the folder of the pages, as they work for a reader of the repository.

An example leads to its page in the gallery, a page of measurements to its copy in the site, and any
other file is offered for download.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<path>\.\.?/[^)#\s]*)\)")


def here(page: str, target: str) -> str:
    """Where the site has what a page of the folder links to outside of it, seen from the page."""
    folder = posixpath.dirname(page)
    found = posixpath.normpath(posixpath.join("docs", folder, target))
    place = None
    if found.startswith("examples/") and found.endswith(".py"):
        place = f"gallery/{posixpath.basename(found).removesuffix('.py')}.rst"
    elif found.startswith("benchmarks/results/") and found.endswith(".md"):
        place = f"measured/{posixpath.basename(found)}"
    return target if place is None else posixpath.relpath(place, folder or ".")


def _rewrite(app: Any, page: str, source: list[str]) -> None:
    def seen(match: re.Match[str]) -> str:
        return f"[{match['text']}]({here(page, match['path'])})"

    source[0] = _LINK.sub(seen, source[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", _rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
