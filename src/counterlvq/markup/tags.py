"""Elements of HTML, in which text is escaped unless it is finished markup.

That goes for what HTML would read as markup, and for what nobody would see or no file could hold.
"""

from __future__ import annotations

from html import escape
from typing import final

from counterlvq.safe_text import visible

__all__ = ["Safe", "tag"]

_VOID = frozenset({"br", "hr", "img", "link", "meta"})


@final
class Safe(str):
    """Finished markup."""

    __slots__ = ()


def tag(
    name: str, *children: str | None, attributes: dict[str, str] | None = None, **more: str
) -> Safe:
    """Build one element; None among the children is left out.

    Attributes with other letters than Python's go into `attributes`; a trailing underscore
    keeps ``class_`` from being a keyword.

    Examples
    --------
    >>> tag("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    given = {key.rstrip("_"): value for key, value in more.items()} | (attributes or {})
    opened = "".join(
        f' {key}="{escape(visible(value), quote=True)}"' for key, value in given.items()
    )
    if name in _VOID:
        return Safe(f"<{name}{opened}>")
    inside = "".join(
        child if isinstance(child, Safe) else escape(visible(child), quote=False)
        for child in children
        if child is not None
    )
    return Safe(f"<{name}{opened}>{inside}</{name}>")
