r"""Text from elsewhere as it may be shown: nothing in it is unseen, and nothing in it acts.

Names of columns, levels and labels, units and paths are data, and are kept as they came. Where
they are shown, a control character could colour a terminal, a bidirectional mark could turn the
rest of a line around, half a surrogate pair cannot be written at all, and XML allows none of
them. They are shown as Python writes them, such as ``\x1b``, and what is very long is cut in its
middle.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from unicodedata import category

__all__ = ["LONGEST", "encodable", "encodable_cells", "shown_repr", "shown_text", "visible"]

# Letters of a name that are shown: the longest questions of surveys, which end up as names of
# columns, are about that long.
LONGEST = 100
# Marks upon one letter; more would be drawn over the lines above.
_MOST_MARKS = 6
_CUT = "…"


def visible(text: str, most: int | None = None) -> str:
    r"""Write out what cannot be seen, and cut the middle of what is longer than `most`.

    Spaces of every width stay as they are; line breaks and tabs are written out too. What has
    been through here comes back the same.

    Examples
    --------
    >>> print(visible("\x1b[31mred"), visible("a\u202eb"), visible("a\ud800"))
    \x1b[31mred a\u202eb a\ud800
    >>> visible("a long name", most=5)
    'a …me'
    """
    if text.isascii() and text.isprintable():
        parts: list[str] | str = text
    elif most is not None and len(text) > 2 * most:
        # Each letter takes one place at least, so that no more than these can be seen. The marks
        # before the last ones count with them.
        parts = [*_parts(text[:most]), *_parts(text[-most - _MOST_MARKS :])[-most:]]
    else:
        parts = _parts(text)
    if most is None or sum(map(len, parts)) <= most:
        return "".join(parts)
    head = (most - 1) // 2
    return f"{_ends(parts, head)}{_CUT}{_ends(parts, -(most - 1 - head))}"


def encodable(text: str) -> str:
    r"""Write out halves of surrogate pairs, which no file and no library of tables can hold.

    Examples
    --------
    >>> print(encodable("a\ud800"), encodable("é"))
    a\ud800 é
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def encodable_cells(cells: Iterable[Any]) -> list[Any]:
    """Do the same for whatever is text among some cells."""
    return [encodable(cell) if isinstance(cell, str) else cell for cell in cells]


def shown_text(value: object, most: int = LONGEST) -> str:
    r"""Show a name, a level or a label.

    Examples
    --------
    >>> print(shown_text("income"), shown_text(3.5), shown_text("a\tb"))
    income 3.5 a\tb
    """
    return visible(str(value), most)


def shown_repr(value: object, most: int = LONGEST) -> str:
    """Show a value as Python writes it, with quotes around text.

    Examples
    --------
    >>> shown_repr("yes"), shown_repr(1)
    ("'yes'", '1')
    """
    return visible(repr(value), most)


def _parts(text: str) -> list[str]:
    """Split into letters, each as it is shown."""
    out, marks = [], 0
    for letter in text:
        marks = marks + 1 if category(letter) in ("Mn", "Me") else 0
        seen = letter.isprintable() or category(letter) == "Zs"
        out.append(letter if seen and marks <= _MOST_MARKS else _escaped(letter))
    return out


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def _ends(parts: list[str] | str, most: int) -> str:
    """Take whole parts of `most` letters at most, from the end if `most` is negative."""
    taken, room = [], abs(most)
    for part in parts if most > 0 else reversed(parts):
        room -= len(part)
        if room < 0:
            break
        taken.append(part)
    return "".join(taken if most > 0 else reversed(taken))
