"""Damage: to bytes, and to nested values as JSON has them."""

from __future__ import annotations

import copy
import random
from functools import cache
from typing import Any

import numpy as np

# Whole numbers at which counts, widths and offsets overflow, and a few that hash alike.
NUMBERS = (
    0, 1, -1, 2, 3, 7, 8, 64, 255, 256, 2**15, 2**16, 10**6, 10**8, 2**31 - 1, 2**31, 2**32, 10**10,
    2**53 + 1, 2**61 - 1, 2**62, 2**63 - 1, 2**63, 2**64, 10**25, 10**400, -(2**63), -(10**400),
)  # fmt: skip
FLOATS = (0.0, -0.0, 0.5, 1e-300, 1e300, 1.7e308, -1.7e308, 5e-324, 1e16)
TEXTS = (
    "", "a", "real", "whole", "categorical", "boolean", "F64", "I64", "F32", "<U1", "<U99999999",
    "|O", "<i8", "<f8", "\x00", "\ud800", "\u202e", "x" * 3000, "=1+1", "omega.0",
    "__metadata__", "None",
)  # fmt: skip


def mutated_bytes(rng: random.Random, whole: bytes, most: int = 4) -> bytes:
    """Flip, set, cut, insert, repeat and swap a few bytes."""
    out = bytearray(whole)
    for _ in range(rng.randint(1, most)):
        if not out:
            break
        at, size = rng.randrange(len(out)), rng.choice((1, 2, 4, 8, 40))
        way = rng.randrange(7)
        if way == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            out[at] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        elif way == 2:
            del out[at : at + size]
        elif way == 3:
            out[at:at] = rng.randbytes(size)
        elif way == 4:
            out[at:at] = out[at : at + size]
        elif way == 5:
            number = rng.choice(NUMBERS) % (1 << (8 * min(size, 8)))
            out[at : at + min(size, 8)] = number.to_bytes(min(size, 8), "little")
        else:
            del out[rng.randrange(len(out)) :]
    return bytes(out)


def mutated_value(rng: random.Random, value: Any, most: int = 3) -> Any:
    """Replace, remove, double or add values anywhere in a nested value."""
    out = {"": copy.deepcopy(value)}
    for _ in range(rng.randint(1, most)):
        paths = list(_paths(out))
        *before, last = rng.choice(paths)
        at: Any = out
        for key in before:
            at = at[key]
        way = rng.randrange(5)
        if way == 0 and len(paths) > 1 and before:
            del at[last]
        elif way == 1 and isinstance(at, list):
            at.extend([at[last]] * rng.choice((1, 2, 50)))
        elif way == 2 and isinstance(at, dict) and before:
            at[rng.choice(TEXTS)] = at[last]
        elif way == 3 and isinstance(at[last], int) and not isinstance(at[last], bool):
            at[last] += rng.choice((-8, -1, 1, 8))
        else:
            at[last] = any_value(rng)
    return out[""]


def any_value(rng: random.Random, depth: int = 2) -> Any:
    """Draw a value that JSON can hold."""
    way = rng.randrange(8 if depth else 5)
    if way <= 1:
        return rng.choice(NUMBERS)
    if way == 2:
        return rng.choice(FLOATS)
    if way == 3:
        return rng.choice(TEXTS)
    if way == 4:
        return rng.choice((None, True, False))
    if way == 5:
        return {rng.choice(TEXTS): any_value(rng, depth - 1) for _ in range(rng.randrange(3))}
    return [any_value(rng, depth - 1) for _ in range(rng.randrange(4))]


def colliding(rng: random.Random, count: int) -> list[int]:
    """Whole numbers that all have the same hash."""
    start = rng.randrange(1000)
    return [start + k * (2**61 - 1) for k in range(count)]


@cache
def chained(bits: int) -> tuple[int, ...]:
    """Whole numbers within 64 bits that get into each other's way in a dict of `2**bits` slots.

    The first ones fill the slots that Python tries one after another; the others begin early among
    those, and so each tries most of them.
    """
    slots = 1 << bits
    usable = 2 * slots // 3 - 10
    count = usable // 2
    place = np.full(slots, -1)
    chain, at = [], 1
    for k in range(count):
        chain.append(at)
        place[at] = k
        at = (5 * at + 1) % slots
    others, start = list[int](), slots
    while len(others) < usable - count:
        numbers = np.arange(start, start + (1 << 22), 37)
        slot, rest = numbers % slots, numbers.copy()
        fits = place[slot] >= 0
        while rest.any():
            rest >>= 5
            slot = (5 * slot + rest + 1) % slots
            fits &= place[slot] >= 0
        others += numbers[fits & (place[slot] < count // 4)].tolist()
        start = int(numbers[-1]) + 37
    return tuple([*chain, *others][:usable])


def _paths(value: Any, before: tuple[Any, ...] = ()) -> Any:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inner:
        yield (*before, key)
        if isinstance(item, dict | list):
            yield from _paths(item, (*before, key))
