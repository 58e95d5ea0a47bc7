"""Names that nobody would choose, and what must hold wherever they are shown."""

from __future__ import annotations

import unicodedata

import numpy as np

# One of each kind that was seen to do harm, or could.
ODD = (
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "a\x00b",
    "a\x01b\x7f\x9b31m",
    "tab\there",
    "line\nbreak",
    "carriage\rreturn",
    "form\x0cfeed\x0bfs\x1cgs\x1d",
    "half \ud800 pair",
    "\udfff\ud800",
    "\udcff.csv",
    "right \u202eto left\u202c",
    "isolate \u2066x\u2069 mark\u200f",
    "zero\u200bwidth\u200d\ufeff",
    "separators\u2028\u2029\x85",
    "tags\U000e0041\U000e007f",
    "not a letter \ufffe\uffff",
    "private \ue000\U0010ffff",
    "<script>alert(1)</script>",
    "</title><img src=x onerror=alert(1)>",
    "&amp;&#x1b;]]>-->",
    "a 'quoted' \"name\" `tick`",
    "$\\frac{1$ \\$ $x^",
    "=cmd|'/c calc'!A1",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "'=1+1",
    "%s %d {0} {name}",
    "e" + "\u0301" * 300,
    "",
    " ",
    "\u00a0",
    "W" * 10_000,
    "\x1b" * 10_000,
    "\ud800" * 3_000,
    "שכר",
    "السعر",
    "年収",
    "👩\u200d👧 🎉",
)
_BLOCKS = ((0, 0x20), (0x20, 0x7F), (0x7F, 0xA1), (0x200B, 0x2070), (0xD800, 0xE000),
           (0xFE00, 0x10000), (0x300, 0x370), (0x590, 0x700), (0x1F300, 0x1F600),
           (0xE0000, 0xE0080), (0, 0x110000))  # fmt: skip


def drawn(rng: np.random.Generator, most: int = 30) -> str:
    """One name: of the list, or of letters that are mostly no letters."""
    if rng.random() < 0.3:
        return ODD[rng.integers(len(ODD))]
    text = "".join(
        chr(rng.integers(*_BLOCKS[rng.integers(len(_BLOCKS))]))
        for _ in range(rng.integers(1, most))
    )
    # Two halves that stand side by side are one letter to JSON, and so to a model file.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def several(rng: np.random.Generator, count: int) -> list[str]:
    """Different names."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[drawn(rng)] = None
    return list(found)


def harm(text: str, allowed: str = "") -> list[str]:
    """What acts, or is not seen, or cannot be written, in a text that is shown."""
    return [
        ascii(letter)
        for letter in text
        if letter not in allowed
        and (unicodedata.category(letter)[0] == "C" or unicodedata.category(letter) in ("Zl", "Zp"))
    ]
