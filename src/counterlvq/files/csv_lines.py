"""The first lines of a CSV file, cut into cells as pandas cuts them.

How many columns a table gets is decided by its first two lines that are not blank, and by nothing
before them: pandas skips blank lines, lets names hold line ends between quotes, and takes what a
row has beyond the names for an index. So they are cut here by the same rules, before pandas makes
room for anything.
"""

from __future__ import annotations

import re

__all__ = ["first_lines"]


def first_lines(text: str, delimiter: str, count: int = 2) -> list[list[str]]:
    r"""Cut the first lines that are not blank into cells.

    Examples
    --------
    >>> first_lines('\n  \n"a, b",c\n1,2\n', ",")
    [['a, b', 'c'], ['1', '2']]
    """
    sign = re.escape(delimiter)
    blanks = "".join({" ", "\t"} - {delimiter})
    blank = re.compile(rf"(?:[\r\n]|[{blanks}]++(?:[\r\n]|\Z))*+")
    # Between quotes all is text, two quotes are one, and what follows the last belongs to the cell.
    cell = re.compile(rf'(?:"((?:[^"]++|"")*+)(?:"|\Z))?+([^{sign}\r\n]*+)')
    lines: list[list[str]] = []
    at = blank.match(text, 0).end()  # type: ignore[union-attr]
    while len(lines) < count and at < len(text):
        cells = []
        while True:
            found = cell.match(text, at)
            assert found is not None
            quoted, plain = found.groups()
            cells.append((quoted or "").replace('""', '"') + plain)
            at = found.end()
            if not text.startswith(delimiter, at):
                break
            at += len(delimiter)
        lines.append(cells)
        at = blank.match(text, at).end()  # type: ignore[union-attr]
    return lines
