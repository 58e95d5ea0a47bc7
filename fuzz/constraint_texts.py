"""Constraint strings as nobody writes them."""

from __future__ import annotations

import random

from fuzz.mutations import mutated_bytes
from fuzz.sandbox import File

READER = "constraint"
_GOOD = (
    "a <= b", "2 * a + 3 >= `c d` / 4", "job == 'clerk'", "job in ['clerk', 'nurse']",
    "if job != 'nurse' then a <= original(b)", "o == True", "-(a - b) == 1e3", "job not in [3]",
    "if o == False then job in ['clerk']",
)  # fmt: skip
_TOKENS = (
    "a", "b", "`c d`", "job", "o", "x", "original", "(", ")", "+", "-", "*", "/", "<=", ">=", "==",
    "!=", "<", "=", "if", "then", "in", "not", "[", "]", ",", "'clerk'", '"nurse"', "3", "0",
    "1e999", "1e308", "5e-324", ".5", "7.", "True", "False", "`", "'", "\u0663", "\u00b2",
    "\x00", "\ud800", "\u202e", "e", "_", ".", "1x", "if_", "\n", "\u3000",
)  # fmt: skip
_LONG = (
    "1", ".", " ", "(", "-", "a+", "a*", "1*", "9e99*", "/3", "`", "'", "x", "[", "[1,",
    "original(", "if ", "\u0663", "==", "a <= ", "+a1", "*1.5/1.5",
)  # fmt: skip


def draw(rng: random.Random) -> File:
    """Draw a string: any tokens, a good one with damage, or one that goes on and on."""
    way = rng.randrange(10)
    if way < 4:
        space = rng.choice(("", " "))
        text = space.join(rng.choice(_TOKENS) for _ in range(rng.randint(1, 14)))
        return _file("tokens", text)
    if way < 6:
        words = rng.choice(_GOOD).split(" ")
        for _ in range(rng.randint(1, 3)):
            words[rng.randrange(len(words))] = rng.choice(_TOKENS)
        return _file("words", " ".join(words))
    if way < 8:
        damaged = mutated_bytes(rng, rng.choice(_GOOD).encode()).decode("utf-8", "replace")
        return _file("bytes", damaged)
    count = rng.choice((100, 3000, 40_000, 150_000))
    piece = rng.choice(_LONG)
    text = rng.choice(("", "a", "a <= ", "job in [", "1")) + piece * (count // len(piece))
    if rng.random() < 0.3:
        names = "+".join(f"a{k}" for k in range(count // 12))
        text = f"({names}){piece * (count // 2 // len(piece))}"
    return _file("long", text + rng.choice(("", "x", " <= 1", ")", "'", ".x <= a")))


def _file(kind: str, text: str) -> File:
    return File(READER, kind, text.encode("utf-8", "surrogatepass"))
