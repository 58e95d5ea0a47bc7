#!/usr/bin/env python3
"""Check certificates of counterfactuals in exact arithmetic: `check_certificate.py FILE`.

This program stands alone. It needs Python 3.11 and its standard library, imports nothing of the
package that wrote the file, and believes nothing that stands in it: from prototypes, metrics,
map, cost, constraints and cuts it derives every half-space, quadratic form and box anew, in
rational numbers. It prints one line for each answer,

    VERIFIED <line> cost <decimal> bound <decimal, rounded down> gap <decimal, rounded up>
    REFUTED <line> <why>

and ends with status 0 only if every line is verified. What is printed is a theorem about the
numbers in the file: the answer has a wished-for label, meets the constraints up to the rounding
stated below, and no input that does so costs less than the bound. `--model FILE` names the
model where it is kept apart; `--seconds N` limits the time for one answer.

Four layers: 1. reading and rational numbers; 2. the question, seen from an input; 3. the least
value of a sum over a box, with positive semidefiniteness shown by an integer LDL'; 4. proofs:
shared metrics, trees of boxes on grids, and local metrics differ in the terms of the sum only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import struct
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction as Q
from itertools import permutations, product
from math import gcd, isfinite, isqrt, lcm, sqrt
from operator import itemgetter
from typing import Any, NamedTuple

__all__ = ["Certificate", "Refused", "Verdict", "main", "verdicts"]

FORMAT, VERSION = "counterlvq certificate", 1
# What an answer may miss: an equality or a margin, an inequality, a value on a grid or the end of
# an interval, each as a share of the numbers that meet; and a cost that was added up in doubles.
EQUALITY, INEQUALITY, GRID, COST = Q(1, 2**40), Q(1, 2**50), Q(1, 2**44), Q(1, 2**40)
# How near a value counts as a listed one, or in any case; and the most that is of a step.
POINT, LEAST_NEAR, SHARE_OF_STEP, SHARE_OF_SUM = Q(1, 2**51), Q(1, 2**960), Q(1, 2**8), Q(1, 4)
# Distances that differ by less than this share may be decided by the rounding of a foreign model.
CLOSE = Q(1, 2**30)
ZERO, ONE, HALF, INF = Q(0), Q(1), Q(1, 2), float("inf")
NONE: Any = {}  # terms of a linear function
TINY = Q(1, 2**1100)  # less than any difference of doubles
# Digits, in base two, to which matrices and sides of boxes are rounded, always to the safe side.
BITS = 64
LONGEST_LINE, PIECE, MOST_PIECES = 1 << 28, 1 << 20, 1 << 20
Vector = list[Q]
End = Q | float  # a rational number, or one of the two infinities: no other float is ever used
Box = tuple[list[End], list[End]]  # smallest and largest change of each coordinate
Terms = dict[tuple[int, int], Q]  # coefficients of delta_i delta_j, i <= j
Form = dict[int, Q]  # slopes of a linear form, by coordinate
Told = dict[str, Any]  # an object of the file, once it is read


# --- 1. Reading, and rational numbers -----------------------------------------------------------


class Refused(Exception):  # noqa: N818 - it is the verdict, not a mishap
    """What is wrong with a line, in words."""


class Clock:
    """The time that one answer may take."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.end = seconds, time.monotonic() + seconds

    def look(self) -> None:
        """Refuse to go on after the end."""
        if time.monotonic() > self.end:
            raise Refused(f"checking it takes more than {self.seconds:g} seconds; see --seconds")


def _double(text: str) -> Q:
    value = float(text)
    if not isfinite(value):
        raise Refused(f"{text[:20]} is no finite double")
    return Q(value)


def _whole(text: str) -> int:
    if len(text) > 20 or abs(int(text)) > 2**53:
        raise Refused(f"the whole number {text[:20]} is beyond 2^53; write it with an exponent")
    return int(text)


def _no_number(text: str) -> Any:
    raise Refused(f"{text} is no number")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        raise Refused("a key stands twice in one object")
    return out


def parsed(text: str | bytes, clock: Clock | None = None) -> Any:
    """Read one line of JSON; every number becomes the rational number that its double is."""

    def double(digits: str) -> Q:
        if clock is not None:
            clock.look()
        return _double(digits)

    try:
        return json.loads(
            text if isinstance(text, str) else text.decode("utf-8"), parse_float=double,
            parse_int=_whole, parse_constant=_no_number, object_pairs_hook=_no_repeats,
        )  # fmt: skip
    except RecursionError:
        raise Refused("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise Refused("it is no text in UTF-8") from None
    except ValueError as error:
        raise Refused(f"it is no JSON: {error}") from None


class Kinds(dict[str, Any]):
    """Shapes of an object by its `kind`."""


class Table(str):
    """The shape of a list of pairs: a position of this name, which stands once, and a number."""

    __slots__ = ()


# What stands where. A text names a shape, or positions of something that is known by then; behind
# `|` stands what null means. [a, "n"] is a list of one a for each n: the first one says how many n
# there are. (a, b) is a list of one a and one b. Keys with ? may be missing; there are no others.
_ENDS = {"lower": "number|-inf", "upper": "number|inf"}
_STEPS = {"name": "text", **_ENDS, "step": "count", "parts": "count"}
_LINEAR = {"new": Table("number column"), "old": Table("number column"), "sense": "sense",
           "value": "number"}  # fmt: skip
_STAYS = {"column": "level column"}
_LEVELS = {**_STAYS, "allowed": ["code"]}
_VALUES = {"column": "number column", "parts": ["interval"], "old": Table("number column")}
_PRODUCTS = [("coordinate", "coordinate", "number")]
_PULLS = [("coordinate", ["number", "number column"])]
_CHARGES = {
    "rivals?": Table("rival"), "rows?": Table("linear condition"),
    "quadratics?": Table("quadratic condition"), "low?": _PRODUCTS, "high?": _PRODUCTS,
    "cross?": _PRODUCTS, "share?": Table("coordinate"), "signs?": _PRODUCTS, "from_low?": _PULLS,
    "from_high?": _PULLS, "neighbours?": [("side", "stepped coordinate", "number")],
    "pairs?": _PRODUCTS, "point?": ["number", "coordinate"], "rest?": ["number", "coordinate"],
    "rules?": Table("rival"), "tangents?": [("rival", "number", ["number", "coordinate"])],
}  # fmt: skip
_CELL = {"prototype": "wished-for prototype"}
_PLACE = {"at": "number", "low": "node number", "high": "node number"}
_FORM_PRODUCTS = [("linear form", "linear form", "number")]
_FORM_CHARGES = {**_CHARGES, **dict.fromkeys(("form_low?", "form_high?", "form_cross?"),
                                             _FORM_PRODUCTS)}  # fmt: skip
_ADDED = {"values": ["number", "prototype"]}


def _nodes(charges: dict[str, Any], **more: Any) -> Kinds:
    """Nodes of a tree, of which all may be charged for."""
    kinds = {"cut": {"coordinate": "coordinate", **_PLACE}, **more, "bound": {}, "empty": {},
             "lost": {}, "open": {}}  # fmt: skip
    node = {"cap?": "number|inf", "charges?": charges}
    return Kinds({kind: {**shape, **node} for kind, shape in kinds.items()})


SHAPES: dict[str, Any] = {
    "header": {"format": "text", "version": "number", "model": "any", "question": "any",
               "note?": "text"},
    "model file": {"format": "text", "version": "number", "model": "any"},
    "model": {"classes": ["any", "class"], "labels": ["class", "prototype"],
              "prototypes": [["number", "dimension"], "prototype"], "metric": "metric",
              "offsets": "offsets|null", "map": "any"},
    "metric": Kinds({"plain": {}, "diagonal": {"factor": ["number", "dimension"]},
                     "shared": {"factor": [["number", "dimension"]]},
                     "local": {"factors": [[["number", "dimension"]], "prototype"]}}),
    "offsets": Kinds({"added to the squared distance": _ADDED,
                      "score up to a common shift": _ADDED}),
    "map": {"offset": ["number", "dimension"], "parts": ["part", "column"]},
    "part": Kinds({"number": {"base": "number", "weights": Table("dimension")},
                   "levels": {"weights": [Table("dimension"), "level"]}}),
    "question": {"columns": ["table column", "column"], "cost": "any", "constraints": "any",
                 "margin": "amount", "tolerance": "amount", "confidence?": "confidence"},
    "confidence": Kinds({"lead": {"value": "amount"}, "similarity": {"theta": "amount"},
                         "drift": {"radius": "amount"},
                         "noise": {"radius": "amount", "norm": "norm",
                                   "weights": ["amount|null", "column"]}}),
    "table column": Kinds({"real": {"name": "text", **_ENDS}, "grid": _STEPS,
                           "steps": {**_STEPS, "whole?": "flag"},
                           "levels": {"name": "text", "levels": ["any", "level"]}}),
    "cost": {"weights": ["amount", "column"], "decrease?": ["amount", "column"],
             "switches": ["switch", "level column"], "quadratic": "square|null"},
    "switch": {"column": "level column", "prices": [["amount", "level"], "level"]},
    "square": Kinds({"diagonal": {"values": ["amount", "variable"]},
                     "factor": {"values": [["number", "variable"]]},
                     "matrix": {"values": [["number", "variable"], "variable"]}}),
    "constraint": Kinds({
        "linear": _LINEAR, "stays": _STAYS, "levels": _LEVELS, "values": _VALUES,
        "seen": {"column": "number column", **_ENDS},
        "at most": {"count": "amount", "columns": ["column"]},
        "implies": {"when": Kinds({"levels": _LEVELS, "values": _VALUES}),
                    "then": [Kinds({"linear": _LINEAR, "stays": _STAYS, "levels": _LEVELS})]},
        "quadratic": {"columns": ["number column", "variable"], "square": "square",
                      "center": ["number", "variable"], "linear": ["number", "variable"],
                      "value": "number"},
        "plausible": {"columns": ["number column", "variable"], "ellipsoids": ["ellipsoid"]},
        "ways": {"column": "level column", "allowed": [["code"]]},
    }),
    "ellipsoid": {"class": "class", "square": "square", "center": ["number", "variable"],
                  "value": "number", "flat": [(["number", "variable"], "number")]},
    "interval": {**_ENDS, "above?": "flag", "below?": "flag"},
    "line": {"input": ["number", "column"], "target": ["class"], "answer": "answer", "proof": "any",
             "hashes": "any", "made_by": "text", "told?": "flag", "missing?": ["column"]},
    "answer": {"row": "row|null", "cost": "amount|null", "lower_bound": "amount|null",
               "status": "status"},
    "row": ["number", "column"],
    "proof": {"cells?": ["cell"], "counted?": ["counted", "counted number"],
              "parts?": [{"class": "class", "prototypes": ["wished-for prototype"],
                          "ellipsoid?": "number of an ellipsoid", "proof": "any"}]},
    "counted": Kinds({"count": {"column": "column", "held": "counted number",
                                "changed": "counted number"},
                      "cells": {"cells": ["cell"]}}),
    "cell": Kinds({"single": {**_CELL, "rival": "rival"}, "bound": {**_CELL, **_CHARGES},
                   "empty": {**_CELL, **_CHARGES},
                   "tree": {**_CELL, "nodes": ["node", "node number"]},
                   "form tree": {**_CELL, "forms": [Table("coordinate"), "linear form"],
                                 "nodes": ["form node", "node number"]}}),
    "node": _nodes(_CHARGES),
    "form node": _nodes(_FORM_CHARGES, **{"form cut": {"form": "linear form", **_PLACE}}),
}  # fmt: skip
WORDS = {"sense": ("<=", "=="), "status": ("optimal", "feasible", "infeasible", "unknown"),
         "side": ("first", "last"), "flag": (True, False),
         "norm": ("l1", "l2", "linf")}  # fmt: skip
LEAST = {"number": -INF, "amount": 0, "count": 1}
ABSENT = {"null": None, "inf": INF, "-inf": -INF}
Known = dict[str, Any]  # positions by the name of what they are of, and the clock


def read(shape: Any, item: Any, what: str, known: Known) -> Any:
    """Read a value of some shape, or refuse it in words."""
    if isinstance(shape, Table):
        pairs = read([(str(shape), "number")], item, what, known)
        out = dict(map(tuple, pairs))
        if len(out) < len(pairs):
            raise Refused(f"{what} names a position twice")
        return out
    if isinstance(shape, str):
        name, _, absent = shape.partition("|")
        if absent and item is None:
            return ABSENT[absent]
        return read(SHAPES[name], item, what, known) if name in SHAPES else _simple(
            name, item, what, known)  # fmt: skip
    if isinstance(shape, dict):
        return _object(shape, item, what, dict(known))
    known["clock"].look()
    count = len(shape) if isinstance(shape, tuple) else None
    if isinstance(shape, list) and shape[1:]:
        here = range(len(item)) if isinstance(item, list) else ()
        count = len(known.setdefault(shape[1], here))
    if not isinstance(item, list) or len(item) != (len(item) if count is None else count):
        raise Refused(f"{what} is no list" + ("" if count is None else f" of {count} items"))
    each = shape if isinstance(shape, tuple) else [shape[0]] * len(item)
    return [read(one, value, what, known) for one, value in zip(each, item, strict=True)]


def _simple(name: str, item: Any, what: str, known: Known) -> Any:
    is_number = isinstance(item, int | Q) and not isinstance(item, bool)
    if name in LEAST:
        if not is_number or item < LEAST[name]:
            raise Refused(f"{what} is no number of at least {LEAST[name]}")
        return Q(item)
    if name in WORDS:
        if not isinstance(item, str | bool) or item not in WORDS[name]:
            raise Refused(f"{what} is {str(item)[:40]!r}, which is not known")
    elif name == "text" and not isinstance(item, str):
        raise Refused(f"{what} is no text")
    elif name in known and not (isinstance(item, int) and is_number and item in known[name]):
        raise Refused(f"{what} is {str(item)[:40]!r}, which is no {name}")
    return item


def _object(shape: dict[str, Any], item: Any, what: str, known: Known) -> Told:
    known["clock"].look()
    if not isinstance(item, dict):
        raise Refused(f"{what} is no object")
    if isinstance(shape, Kinds):
        kind = item.get("kind")
        if not isinstance(kind, str) or kind not in shape:
            raise Refused(f"{what} of the kind {str(kind)[:40]!r} is not known")
        rest = {key: value for key, value in item.items() if key != "kind"}
        return {"kind": kind, **_object(shape[kind], rest, what, known)}
    names = {key.rstrip("?"): key for key in shape}
    for key in item:
        if key not in names:
            raise Refused(f"{what} has {key[:40]!r}, which this checker does not know")
    for name, key in names.items():
        if name == key and name not in item:
            raise Refused(f"{what} has no {name!r}")
    return {name: read(shape[key], item[name], f"{what}.{name}", known)
            for name, key in names.items() if name in item}  # fmt: skip


def fingerprint(item: Any) -> str:
    """SHA-256 of a value in a form in which every number is the 16 hex digits of its double."""
    digest, waiting = hashlib.sha256(), [item]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            digest.update(b"{%d" % len(value))
            for key in sorted(value, reverse=True):
                waiting += [value[key], key]
        elif isinstance(value, list):
            digest.update(b"[%d" % len(value))
            waiting += reversed(value)
        elif isinstance(value, str):
            data = value.encode("utf-8", "surrogatepass")
            digest.update(b"s%d:%s" % (len(data), data))
        elif value is None or isinstance(value, bool):
            digest.update({None: b"n", True: b"t", False: b"f"}[value])
        else:
            digest.update(b"d" + struct.pack(">d", float(value) + 0.0).hex().encode())
    return digest.hexdigest()


def dot(a: Sequence[Q], b: Sequence[Q]) -> Q:
    """Sum of products; terms of zero are skipped."""
    return sum([s * t for s, t in zip(a, b, strict=True) if s and t], ZERO)


def added(parts: Iterable[End], total: End, clock: Clock) -> End:
    """Add up numbers of different denominators, which multiply: each step takes longer."""
    for part in parts:
        clock.look()
        total += part
    return total


def less(a: Sequence[Q], b: Sequence[Q]) -> Vector:
    """Difference of two vectors."""
    return [s - t for s, t in zip(a, b, strict=True)]


def quadratic(terms: Terms, v: Sequence[Q]) -> Q:
    """Value of a quadratic form."""
    return sum([a * v[i] * v[j] for (i, j), a in terms.items() if v[i] and v[j]], ZERO)


def whole(values: Sequence[Q]) -> tuple[list[int], int]:
    """Numerators over one denominator: sums of integers are fast."""
    unit = lcm(*{value.denominator for value in values})
    return [value.numerator * (unit // value.denominator) for value in values], unit


def rounded(value: Q, up: bool, bits: int = BITS) -> Q:
    """Round to so many binary digits, up or down; numbers with fewer digits stay as they are."""
    if value < 0:
        return -rounded(-value, not up, bits)
    size = value.numerator.bit_length() - value.denominator.bit_length()
    unit = Q(2) ** (size - (value < Q(2) ** size) + 1 - bits)
    units = value / unit
    return (units.numerator // units.denominator + (up and units.denominator > 1)) * unit


def root(value: Q) -> Q:
    """Return a number whose square is not below `value`, about its root."""
    if value <= 0:
        return ZERO
    shift = max(0, 2 * BITS - value.numerator.bit_length() + value.denominator.bit_length())
    shift += shift % 2
    scaled = value.numerator * 2**shift // value.denominator + 1
    return Q(isqrt(scaled) + 1, 2 ** (shift // 2))


def decimal(value: End, up: bool) -> str:
    """Write with 12 digits, rounded down or up."""
    if not isinstance(value, Q):
        return str(value)
    context = Context(prec=12, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    shown = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    return f"{shown:f}" if -6 < shown.adjusted() < 12 else f"{shown:e}"


# --- 2. The question ----------------------------------------------------------------------------


class Model:
    """Prototypes, labels, metrics and offsets: who is nearest, exactly."""

    def __init__(self, item: Any, clock: Clock) -> None:
        told = read("model", item, "model", {"clock": clock})
        self.labels, self.prototypes, self.map = told["labels"], told["prototypes"], told["map"]
        self.classes, self.count = len(told["classes"]), len(self.labels)
        if not self.prototypes or not self.prototypes[0]:
            raise Refused("there are no prototypes")
        refuse_repeats("classes", told["classes"])
        self.depth = len(self.prototypes[0])
        # Both kinds are added to squared distances; of the second only differences mean something.
        stated, metric = told["offsets"], told["metric"]
        self.offsets = stated["values"] if stated else [ZERO] * self.count
        self.is_local, factor = metric["kind"] == "local", metric.get("factor", [])
        if metric["kind"] == "diagonal":
            factor = [{j: a} for j, a in enumerate(factor)]
        shared = None if metric["kind"] == "plain" else _integers(factor)
        self.factors = [shared] * self.count
        if self.is_local:
            self.factors = [_integers(factor) for factor in metric["factors"]]

    def lifted(self, k: int, away: Vector) -> tuple[list[int], int]:
        """``factor_k away``, in integers over one denominator."""
        entries, scale = whole(away)
        factor = self.factors[k]
        if factor is None:
            return entries, scale
        return [sum([a * entries[j] for j, a in row]) for row in factor[0]], factor[1] * scale

    def lowered(self, k: int, image: tuple[list[int], int]) -> Vector:
        """``factor_k' image``."""
        (entries, scale), factor = image, self.factors[k]
        if factor is None:
            return [Q(entry, scale) for entry in entries]
        out = [0] * self.depth
        for row, t in zip(factor[0], entries, strict=True):
            for j, a in row if t else ():
                out[j] += a * t
        return [Q(s, factor[1] * scale) for s in out]

    def distances(self, z: Vector, clock: Clock) -> Vector:
        """Squared distances of all prototypes, with their offsets."""
        out = []
        for k, (prototype, offset) in enumerate(zip(self.prototypes, self.offsets, strict=True)):
            clock.look()
            entries, unit = self.lifted(k, less(z, prototype))
            out.append(Q(sum([s * s for s in entries]), unit**2) + offset)
        return out

    def is_copy(self, k: int, of: int) -> bool:
        """Whether two prototypes are as far from everything: their difference is not seen."""
        if self.offsets[k] != self.offsets[of] or self.factors[k] != self.factors[of]:
            return False
        factor, (entries, _) = self.factors[k], whole(less(self.prototypes[k], self.prototypes[of]))
        if factor is None:
            return not any(entries)
        return not any(sum([a * entries[j] for j, a in row]) for row in factor[0])


def _integers(rows: list[Any]) -> tuple[list[list[tuple[int, int]]], int]:
    """Write a matrix as integers over one denominator, row by row without zeros."""
    pairs = [[*(row.items() if isinstance(row, dict) else enumerate(row))] for row in rows]
    unit = lcm(*{a.denominator for row in pairs for _, a in row})
    return [[(j, int(a * unit)) for j, a in row if a] for row in pairs], unit


def refuse_repeats(what: str, names: list[Any]) -> None:
    """Names of classes or levels are texts, numbers or truths, one of each at least."""
    kinds = [(type(name), name) for name in names if isinstance(name, str | int | Q)]
    if not names or len({*kinds}) < len(names):
        raise Refused(f"{what} are no names that can be told apart")


class Column(NamedTuple):
    """One column of the user's table: a real number, a number on a grid, or levels."""

    lower: End
    upper: End
    levels: int = 0
    step: Q = ZERO
    from_input: bool = False  # whether changes are multiples of the step, or values
    whole: bool = False  # values are, where the value of the input is no whole number

    @classmethod
    def of(cls, told: Told) -> Column:
        """Take what a file says of a column."""
        if told["kind"] == "levels":
            refuse_repeats("levels", told["levels"])
            return cls(-INF, INF, len(told["levels"]), ONE)
        step = told["step"] / told["parts"] if "step" in told else ZERO
        whole = bool(told.get("whole"))
        return cls(told["lower"], told["upper"], 0, step, told["kind"] == "steps", whole)

    def counts_from(self, x: Q) -> bool:
        """Whether steps count from this value of the input, or from 0."""
        return self.from_input and not (self.whole and x.denominator > 1)

    def near(self, x: Q, end: Q, share: Q) -> Q:
        """How far from an end of an interval a value counts as that end, seen from the input x."""
        found = max(share * max(abs(end), abs(x)), LEAST_NEAR)
        return min(found, self.most_near(x)) if self.step else found

    def most_near(self, x: Q) -> Q:
        """Part of a step that may be missed on a grid, at most."""
        return (SHARE_OF_SUM if self.counts_from(x) else SHARE_OF_STEP) * self.step


def square(told: Told, n: int, clock: Clock) -> Terms:
    """Coefficients of a quadratic form of n variables, which has to be convex."""
    values, is_matrix = told["values"], told["kind"] == "matrix"
    if told["kind"] == "diagonal":
        return {(j, j): a for j, a in enumerate(values) if a}
    columns, out = [*zip(*values, strict=True)] or [()] * n, {}
    for i in range(n):
        for j in range(i, n):
            clock.look()
            entry = values[i][j] if is_matrix else dot(columns[i], columns[j])
            if is_matrix and entry != values[j][i]:
                raise Refused("a matrix is not symmetric")
            if entry:
                out[i, j] = entry * (1 if i == j else 2)
    if is_matrix and not is_semidefinite(whole_matrix(out, [*range(n)])[0], clock):
        raise Refused("a matrix is not positive semidefinite")
    return out


class Curve(NamedTuple):
    """``(z - center)' matrix (z - center) + linear'z <= value`` on some columns of numbers."""

    matrix: Terms
    columns: list[int]
    center: Vector
    linear: Vector
    value: Q

    def at(self, row: Vector) -> Q:
        """Left-hand side less right-hand side."""
        z = [row[j] for j in self.columns]
        return quadratic(self.matrix, less(z, self.center)) + dot(self.linear, z) - self.value


class Question:
    """Cost, constraints and grid, in the columns of the user's table."""

    def __init__(self, model: Model, item: Any, clock: Clock) -> None:
        told = read("question", item, "question", {"clock": clock})
        self.model, self.tolerance = model, told["tolerance"]
        self.margin: Q = told["margin"]
        self.columns = [*map(Column.of, told["columns"])]
        self.at_numbers = [j for j, column in enumerate(self.columns) if not column.levels]
        self.known: Known = {
            "column": range(len(self.columns)), "number column": {*self.at_numbers},
            "level column": {j for j, column in enumerate(self.columns) if column.levels},
            "class": range(model.classes), "dimension": range(model.depth),
            "code": range(max([column.levels for column in self.columns], default=0)),
            "clock": clock,
        }  # fmt: skip
        self._read_cost(told["cost"], clock)
        self._read_map(model.map)
        stated = read(["constraint"], told["constraints"], "constraints", self.known)
        for each in stated:
            self._check(each)
        self.constraints = [
            each for each in stated if each["kind"] not in ("quadratic", "plausible")
        ]
        self.forms = [
            Curve(square(each["square"], len(each["columns"]), clock), each["columns"],
                 each["center"], each["linear"], each["value"])
            for each in stated if each["kind"] == "quadratic"
        ]  # fmt: skip
        self.has_grid = any(column.step for column in self.columns) or any(
            each["kind"] in ("implies", "values") for each in stated)  # fmt: skip
        self.limits = [each for each in stated if each["kind"] == "at most"]
        self.rule: Told | None = told.get("confidence")
        self._check_rule()
        # Where answers lie by their label: one of some ellipsoids, or anywhere.
        plausible = [each for each in stated if each["kind"] == "plausible"]
        if len(plausible) > 1:
            raise Refused("more than one constraint says what is plausible")
        self.plausible: Told | None = plausible[0] if plausible else None
        # Where a proof is a tree, bounds are about all inputs that count as answers.
        is_curved = self._is_about("similarity") and any(model.offsets)
        self.is_loosened = self.has_grid or model.is_local or is_curved
        self.inverse = Inverse(self.curves, len(self.at_numbers))
        self.kept: dict[Any, Any] = {}  # what depends on the levels of an input alone

    def _read_cost(self, item: Any, clock: Clock) -> None:
        told = read("cost", item, "cost", {**self.known, "variable": self.at_numbers})
        self.weights = told["weights"]  # of changes upwards
        self.decrease = told.get("decrease", self.weights)
        if any((not a) != (not b) for a, b in zip(self.weights, self.decrease, strict=True)):
            raise Refused("a change is free in one direction and has a price in the other")
        self.switches = {each["column"]: each["prices"] for each in told["switches"]}
        for j in self.known["level column"]:
            if len(self.switches.get(j, ())) != self.columns[j].levels:
                raise Refused("prices are not one for each pair of levels of a column")
        curves = told["quadratic"]
        self.curves = square(curves, len(self.at_numbers), clock) if curves else {}

    def _check(self, item: Told) -> None:
        """Refuse what a constraint cannot mean."""
        kind, parts = item["kind"], [item, item.get("when", {}), *item.get("then", ())]
        for rule in [part for part in parts if "allowed" in part]:
            lists = rule["allowed"] if kind == "ways" else [rule["allowed"]]
            most = max(max(codes, default=INF) for codes in lists) if lists else INF
            if most >= self.columns[rule["column"]].levels:
                raise Refused("a rule allows no level, or one that its column does not have")
        if kind == "ways" and len(item["allowed"]) != self.columns[item["column"]].levels:
            raise Refused("a rule about ways does not say where each level may go")
        if kind == "implies" and not item["then"]:
            raise Refused("an implication has nothing in its 'then'")
        if kind == "implies" and len({part.get("sense", "==") for part in item["then"]}) > 1:
            raise Refused("an implication mixes equalities and inequalities")
        with_columns = ("quadratic", "at most", "plausible")
        if kind in with_columns and len(set(item["columns"])) < len(item["columns"]):
            raise Refused("a constraint names a column twice")

    def _is_about(self, kind: str) -> bool:
        return self.rule is not None and self.rule["kind"] == kind

    def _check_rule(self) -> None:
        """Refuse a confidence that means nothing here."""
        if self.rule is None:
            return
        if self.margin:
            raise Refused("there is a margin and a confidence")
        is_flat = self._is_about("noise") or self._is_about("drift")
        if is_flat and self.model.is_local:
            raise Refused("such a confidence is for shared metrics")
        if self._is_about("drift") and self.known["level column"]:
            raise Refused("a drift is for columns of numbers")
        if self._is_about("noise") and 0 in self.rule["weights"]:
            raise Refused("the weights of noise are not all positive")
        if self._is_about("drift") and any(self.model.offsets):
            raise Refused("a drift is about distances, and there are offsets")
        if self._is_about("similarity") and self.rule["theta"] >= 1:
            raise Refused("a relative similarity of 1 or more is asked for")
        if self._is_about("similarity") and min(self.model.offsets) < 0:
            raise Refused("a relative similarity is of distances, and an offset is negative")

    def within(self, number: int, clock: Clock) -> Question:
        """Ask the same of inputs in one ellipsoid, in which columns of levels stay."""
        key, plausible = ("within", number), self.plausible or {}
        if key not in self.kept:
            told, at, out = plausible["ellipsoids"][number], plausible["columns"], copy(self)
            out.plausible, out.kept = None, {}
            stays = [{"kind": "stays", "column": j} for j in sorted(self.known["level column"])]
            flat = [{"kind": "linear", "new": dict(zip(at, row, strict=True)), "old": {},
                     "sense": "==", "value": value} for row, value in told["flat"]]  # fmt: skip
            out.constraints = [*self.constraints, *stays, *flat]
            matrix = square(told["square"], len(at), clock)
            if matrix:  # without directions in which rows vary, all of them are flat
                form = Curve(matrix, at, told["center"], [ZERO] * len(at), told["value"])
                out.forms = [*self.forms, form]
            self.kept[key] = out
        found: Question = self.kept[key]
        return found

    def _read_map(self, item: Any) -> None:
        """Read ``z = offset + sum of parts``: a slope times (y - base), or a vector per level."""
        count = len(self.columns)
        self.offset, self.bases = [ZERO] * self.model.depth, [ZERO] * count
        self.parts: list[list[dict[int, Q]]] = [[{j: ONE}] for j in range(count)]
        if item is None:
            if count != self.model.depth or len(self.at_numbers) < count:
                raise Refused("the columns are not those of the model, and there is no map")
            return
        told = read("map", item, "map", self.known)
        self.offset = told["offset"]
        for j, (column, part) in enumerate(zip(self.columns, told["parts"], strict=True)):
            has_levels = part["kind"] == "levels"
            rows = part["weights"] if has_levels else [part["weights"]]
            if has_levels != bool(column.levels) or len(rows) != (column.levels or 1):
                raise Refused("a part of the map does not fit its column")
            self.bases[j], self.parts[j] = part.get("base", ZERO), rows

    def row(self, values: Vector) -> Vector:
        """Take a row of the table: numbers, and positions of levels."""
        for value, column in zip(values, self.columns, strict=True):
            if column.levels and value not in range(column.levels):
                raise Refused(f"a row has {value}, which is no level of its column")
        return values


class Row(NamedTuple):
    """``new'y <= value`` or ``==`` in coordinates, the input being put in."""

    new: dict[int, Q]
    value: Q
    size: Q  # of the numbers that meet in it, beside those of `new`
    equality: bool = False
    give: Q = INEQUALITY  # what may be missed, as a share of the numbers that meet
    most: End = INF  # and at most, where all of `new` are on a grid, or
    least: Q = ZERO  # this share of the numbers
    when: Callable[[Box], bool] | None = None  # in which boxes it holds; None: everywhere

    def left(self, y: Vector) -> Q:
        """Left-hand side."""
        return sum([a * y[c] for c, a in self.new.items()], ZERO)

    def slack(self, sizes: Vector) -> Q:
        """Say what may be missed by values of these sizes."""
        size = sum([abs(a) * sizes[c] for c, a in self.new.items()], self.size)
        return Q(min(self.give * size, max(self.most, self.least * size)))


class Allowed:
    """The changes of one coordinate where not every number will do: pieces, or steps in them."""

    def __init__(self, start: Q, column: Column, clock: Clock) -> None:
        self.start, self.step, self.most_near = start, column.step, column.most_near(start)
        self.clock = clock
        self.is_from_input = column.counts_from(start)
        self.base = start if self.is_from_input else ZERO
        # What bounds are about; and the same with all that counts as an end: in order, apart.
        self.pieces: list[tuple[End, End]] = [(-INF, INF)]
        self.wide = self.pieces

    def meet(self, parts: list[tuple[End, End, Q, Q]]) -> None:
        """Keep what lies in one of some pieces; ends may give way by so much."""
        if len(parts) + len(self.wide) > MOST_PIECES:
            raise Refused(f"a column has more than {MOST_PIECES} pieces to be compared")
        exact = [(low, high) for low, high, _, _ in parts]
        loose = [(low - a, high + b) for low, high, a, b in parts]
        self.pieces, self.wide = _common(self.pieces, exact), _common(self.wide, loose)

    def value(self, k: int) -> Q:
        """Return the k-th value of the grid: the double next to it."""
        try:
            return Q(float(self.base + k * self.step))
        except OverflowError:
            return self.base + k * self.step

    def nearest(self, delta: Q) -> int | None:
        """Return the number of the grid value that a change ends at, if it counts as one."""
        y = self.start + delta
        k, size = round((y - self.base) / self.step), max(abs(y - self.base), abs(self.base))
        slack = min(GRID * max(size, self.step), self.most_near)
        return k if abs(self.value(k) - y) <= slack else None

    def takes(self, delta: Q) -> bool:
        """Whether an answer may change by so much."""
        if self.step and delta and self.nearest(delta) is None:
            return False
        return any(low <= delta <= high for low, high in self.wide)

    def snap(self, delta: End, way: int) -> End:
        """Find the first allowed change from `delta` on, up or down; infinite if there is none."""
        pieces = self.wide if self.step else self.pieces
        if way > 0:
            ahead = range(bisect_left(pieces, delta, key=itemgetter(1)), len(pieces))
        else:
            ahead = range(bisect_right(pieces, delta, key=itemgetter(0)))[::-1]
        for n in ahead:  # a piece may hold no value of the grid
            self.clock.look()
            low, high = pieces[n]
            at = max(delta, low) if way > 0 else min(delta, high)
            if self.step and isinstance(at, Q):
                at = self._tick(at, way)
            if at <= high if way > 0 else at >= low:
                return at
        return way * INF

    def _tick(self, delta: Q, way: int) -> Q:
        """Find the first change from `delta` on that ends on the grid, or none at all."""
        k = round((delta + self.start - self.base) / self.step)
        ticks = [self.value(k + n) - self.start for n in (-2, -1, 0, 1, 2)]
        # Where doubles lie further apart than the grid, nothing is rounded.
        behind = [t for t in ticks if way * t >= way * delta] or [delta]
        if way * delta <= 0:
            behind.append(ZERO)
        return min(behind, key=lambda t: way * t)

    def beyond(self, delta: Q, way: int) -> End:
        """Find the next allowed change behind one; itself where real numbers go on."""
        here: End = delta
        n = len(self.pieces) if self.step else bisect_left(self.pieces, here, key=itemgetter(1))
        for low, high in self.pieces[n : n + 1]:
            if low <= delta and delta != (high if way > 0 else low):
                return delta
        return self.snap(delta + way * TINY, way)


def _common(some: list[tuple[End, End]], others: list[tuple[End, End]]) -> list[tuple[End, End]]:
    """Keep what two lists of pieces have in common; those of one list may overlap."""
    out: list[tuple[End, End]] = []
    some, others = _joined(some), _joined(others)
    i = j = 0
    while i < len(some) and j < len(others):
        low, high = max(some[i][0], others[j][0]), min(some[i][1], others[j][1])
        if low <= high:
            out.append((low, high))
        if some[i][1] <= others[j][1]:
            i += 1
        else:
            j += 1
    return out


def _joined(pieces: list[tuple[End, End]]) -> list[tuple[End, End]]:
    out: list[tuple[End, End]] = []
    for low, high in sorted(piece for piece in pieces if piece[0] <= piece[1]):
        if out and low <= out[-1][1]:
            out[-1] = out[-1][0], max(high, out[-1][1])
        else:
            out.append((low, high))
    return out


class Seen:
    """The question seen from one input: coordinates, and what holds of a change in them.

    A number has one coordinate, its value. A column of levels has one for each level but its own,
    which is 1 if the column takes it up and 0 otherwise. `delta` is the change of coordinates.
    """

    def __init__(self, question: Question, x: Vector, clock: Clock) -> None:
        self.question, self.model, self.x, self.clock = question, question.model, x, clock
        self.own = tuple(int(v) if c.levels else -1
                         for v, c in zip(x, question.columns, strict=True))  # fmt: skip
        self.spans: list[range] = []  # the coordinates of each column
        self.codes: list[list[int]] = []  # and the levels that they stand for
        self.start: Vector = []
        self.w: Vector = []  # the cost is sum w |delta| + tilt delta + M(delta)
        self.tilt: Vector = []  # half of what a unit costs more upwards than downwards
        self.allowed: list[Allowed | None] = []
        for j, column in enumerate(question.columns):
            codes = [code for code in range(column.levels) if code != self.own[j]]
            size = len(codes) if column.levels else 1
            self.spans.append(range(len(self.start), len(self.start) + size))
            self.codes.append(codes)
            start = ZERO if column.levels else x[j]
            prices = [question.switches[j][self.own[j]][code] for code in codes]
            self.start += [start] * size
            up, down = question.weights[j], question.decrease[j]
            self.w += prices if column.levels else [(up + down) / 2]
            self.tilt += [ZERO] * size if column.levels else [(up - down) / 2]
            self.allowed += [Allowed(start, column, clock) if column.step else None
                             for _ in range(size)]  # fmt: skip
        self.column_of = [j for j, span in enumerate(self.spans) for _ in span]
        self.width = len(self.start)
        self.units: list[Form] = [{c: ONE} for c in range(self.width)]
        self.at = [self.spans[j][0] for j in question.at_numbers]
        self.places = {*self.at}
        self.M: Terms = {(self.at[i], self.at[j]): a for (i, j), a in question.curves.items()}
        self.rows = list[Row]()
        for item in question.constraints:
            self.rows += self._rows(item)
        self.rows += [row for j in range(len(self.spans)) for row in self._own_rows(j)]
        self.rows = [self._limited(row) for row in self.rows]
        self.heights = [*self._heights()]
        for item in [each for each in question.constraints if each["kind"] == "values"]:
            clock.look()
            c = self.spans[item["column"]][0]
            here = self.start[c]
            allowed = self.allowed[c] = self.allowed[c] or Allowed(here, Column(-INF, INF), clock)
            parts = self._parts(item, POINT)
            allowed.meet([(low - here, high - here, a, b) for low, high, a, b in parts])
        self.slopes: list[dict[int, Q]] = self.kept(("slopes",), self._slopes)
        self.z = list(question.offset)
        for part, base, value, own in zip(question.parts, question.bases, x, self.own, strict=True):
            for c, a in part[max(own, 0)].items():
                self.z[c] += a * (value - base) if own < 0 else a
        self.scores = self.model.distances(self.z, clock)
        self.pulls: dict[int, Vector] = {}

    # Linear conditions, numbered in this order: those of the constraints, then of the columns.

    def _rows(self, item: Told) -> Iterator[Row]:
        self.clock.look()
        kind = item["kind"]
        if kind == "linear":
            new = {self.spans[j][0]: a for j, a in item["new"].items() if a}
            old = [a * self.x[j] for j, a in item["old"].items()]
            size, is_equal = sum(map(abs, old), abs(item["value"])), item["sense"] == "=="
            give = EQUALITY if is_equal else INEQUALITY
            yield Row(new, item["value"] - sum(old, ZERO), size, is_equal, give)
        elif kind in ("stays", "levels", "ways"):
            span, listed = self.spans[item["column"]], item.get("allowed", ())
            allowed = {*(listed[self.own[item["column"]]] if kind == "ways" else listed)}
            pairs = zip(span, self.codes[item["column"]], strict=True)
            gone = [c for c, code in pairs if code not in allowed]
            yield from (Row({c: ONE}, ZERO, ZERO, True, EQUALITY) for c in gone)
            if kind != "stays" and self.own[item["column"]] not in allowed:
                yield Row(dict.fromkeys(span, ONE), ONE, ONE, True, EQUALITY)
        elif kind == "seen":
            x = self.x[item["column"]]
            yield from self._ends(item["column"], min(item["lower"], x), max(item["upper"], x))
        elif kind == "implies":
            test = self._test(item["when"])
            rows = [row for each in item["then"] for row in self._rows(each)]
            # An equality is two inequalities here, and gives way as these do.
            halves = [row._replace(equality=False, give=INEQUALITY, when=test) for row in rows]
            yield from halves
            for row, half in zip(rows, halves, strict=True):
                if row.equality:
                    yield half._replace(new={c: -a for c, a in row.new.items()}, value=-row.value)

    def _limited(self, row: Row) -> Row:
        """On a grid the sides of a condition have a least difference: a share of it is missed."""
        grid = [(abs(a), self.allowed[c]) for c, a in row.new.items()]
        apart = [a * allowed.step for a, allowed in grid if allowed is not None and allowed.step]
        if not apart or len(apart) < len(grid):
            return row
        is_rounded = any(g.step.denominator > 1 or g.is_from_input for _, g in grid if g)
        return row._replace(most=SHARE_OF_STEP * min(apart), least=INEQUALITY * is_rounded)

    def _own_rows(self, j: int) -> Iterator[Row]:
        column, span = self.question.columns[j], self.spans[j]
        if not column.levels:
            yield from self._ends(j, column.lower, column.upper)
            return
        yield from (Row({c: -ONE}, ZERO, ZERO) for c in span)
        yield from (Row({c: ONE}, ONE, ONE) for c in span)
        if len(span) > 1:
            yield Row(dict.fromkeys(span, ONE), ONE, ONE)

    def _ends(self, j: int, lower: End, upper: End) -> Iterator[Row]:
        for sign, end in ((-ONE, lower), (ONE, upper)):
            if isinstance(end, Q):
                yield Row({self.spans[j][0]: sign}, sign * end, abs(end))

    def _heights(self) -> Iterator[tuple[int, int, Q, Q]]:
        """Find ``a delta_c + b delta_t <= 0`` where t has a price and c has none: (c, t, a, b).

        The least of largest changes is asked for so; what t may cost limits c, which costs nothing.
        """
        squared = {c for pair in self.M for c in pair}
        for row in self.rows:
            is_bare = len(row.new) == 2 and row.when is None and not row.equality
            if is_bare and row.value == row.left(self.start):
                for c, t in permutations(row.new):
                    if self.w[t] and not self.w[c] and c not in squared:
                        yield c, t, row.new[c], row.new[t]

    def _parts(self, item: Told, point: Q = GRID) -> Iterator[tuple[End, End, Q, Q]]:
        """Intervals of values, and how far beyond their ends a value counts as one of them.

        That is the share `point` of a single value.

        An end that is left out takes with it what is nearer than a quarter of that; one that the
        input counts as is moved to the input.
        """
        x, column = self.x[item["column"]], self.question.columns[item["column"]]
        by = sum([a * self.x[j] for j, a in item["old"].items()], ZERO)
        for part in item["parts"]:
            ends: list[End] = []
            gives: Vector = []
            share = point if part["lower"] == part["upper"] else GRID
            for sign, key, flag in ((1, "lower", "above"), (-1, "upper", "below")):
                end, give = part[key], ZERO
                if isinstance(end, Q):
                    end += by
                    give = column.near(x, end, share)
                    if part.get(flag):
                        end, give = end + sign * give / 4, ZERO
                    elif 0 < sign * (end - x) <= give:
                        end, give = x, give - abs(end - x)
                ends.append(end)
                gives.append(give)
            yield ends[0], ends[1], gives[0], gives[1]

    def _test(self, item: Told) -> Callable[[Box], bool]:
        """Say in which boxes a column has one of some levels, or a value in some interval."""
        span, own = self.spans[item["column"]], self.own[item["column"]]
        if item["kind"] == "values":
            c, x, parts = span[0], self.x[item["column"]], [*self._parts(item)]
            ends = [(low - a - x, high + b - x) for low, high, a, b in parts]
            return lambda box: any(low <= box[0][c] and box[1][c] <= high for low, high in ends)
        pairs = [*zip(span, self.codes[item["column"]], strict=True)]
        allowed = {*item["allowed"]}
        taken = [c for c, code in pairs if code in allowed]
        others = [c for c, code in pairs if code not in allowed]
        return lambda box: any(box[0][c] > HALF for c in taken) or (
            own in allowed and all(box[1][c] < HALF for c in others))  # fmt: skip

    def change(self, row: Vector) -> Vector:
        """Take a row of the table to the change of coordinates that leads to it."""
        out: Vector = []
        for value, x, codes, own in zip(row, self.x, self.codes, self.own, strict=True):
            out += [value - x] if own < 0 else [Q(code == value) for code in codes]
        return out

    def cost(self, delta: Vector) -> Q:
        """Price a change."""
        flat = dot(self.w, [abs(t) for t in delta]) + dot(self.tilt, delta)
        return flat + quadratic(self.M, delta)

    def prices(self, signs: Sequence[Q | int]) -> Vector:
        """Price of one unit where the sign of a change is known, else the lesser one."""
        return [w + t if s > 0 else w - t if s < 0 else w - abs(t)
                for w, t, s in zip(self.w, self.tilt, signs, strict=True)]  # fmt: skip

    def resolution(self, delta: Vector) -> Q:
        """Price eight units of rounding of each real number that changes; a grid has none.

        What has no price of its own counts by what it raises.
        """
        blur = [Q(1, 2**50) * (abs(x + t) + abs(x)) if t and not (at and at.step) else ZERO
                for x, t, at in zip(self.start, delta, self.allowed, strict=True)]  # fmt: skip
        for c, t, a, b in self.heights:
            if a * delta[c] > 0:
                blur[t] = max(blur[t], abs(a / b) * blur[c])
        slopes, curve = [ZERO] * self.width, ZERO
        for (i, j), a in self.M.items():
            slopes[i] += a * delta[j]
            slopes[j] += a * delta[i]
            curve += abs(a) * blur[i] * blur[j]
        return dot(self.prices(delta), blur) + dot([abs(s) for s in slopes], blur) + curve

    # The space of the model, and the cell of a prototype: its distance less that of a rival is
    # at most -margin.

    def _slopes(self) -> list[dict[int, Q]]:
        """Say what a unit of each coordinate adds to the image."""
        out: list[dict[int, Q]] = []
        for part, codes, own in zip(self.question.parts, self.codes, self.own, strict=True):
            if own < 0:
                out += part
                continue
            for code in codes:
                self.clock.look()
                keys = {*part[code], *part[own]}
                out.append({c: part[code].get(c, ZERO) - part[own].get(c, ZERO) for c in keys})
        return out

    def is_unseen(self, c: int) -> bool:
        """Whether no distance depends on a coordinate, as on the largest change."""

        def made() -> bool:
            slope = [self.slopes[c].get(n, ZERO) for n in range(self.model.depth)]
            return not any(any(self.model.lifted(k, slope)[0]) for k in range(self.model.count))

        return bool(self.kept(("unseen", c), made))

    def image(self, delta: Vector) -> Vector:
        """Where a change leads in the space of the model."""
        z = list(self.z)
        for slope, t in zip(self.slopes, delta, strict=True):
            for c, a in slope.items() if t else ():
                z[c] += a * t
        return z

    def kept(self, key: tuple[Any, ...], made: Callable[[], Any]) -> Any:
        """Remember what rows with the same levels share."""
        known = self.question.kept
        if (self.own, key) not in known:
            if len(known) > 5_000:
                known.clear()
            known[self.own, key] = made()
        return known[self.own, key]

    def draw(self, k: int, away: Vector) -> Vector:
        """Slope in coordinates of half the squared length of ``factor_k`` times the image."""
        v = self.model.lowered(k, self.model.lifted(k, away))
        return [sum([a * v[c] for c, a in slope.items() if v[c]], ZERO) for slope in self.slopes]

    def slope(self, i: int, k: int) -> Vector:
        """Slope of the distance of i less that of k, at the input."""
        self.clock.look()
        W = self.model.prototypes
        if not self.model.is_local:
            made: Vector = self.kept(
                (i, k), lambda: [2 * a for a in self.draw(i, less(W[k], W[i]))]
            )
            return made
        return [2 * a for a in less(self.pull(i), self.pull(k))]

    def pull(self, k: int) -> Vector:
        """Slope of half the distance of k, at the input."""
        if k not in self.pulls:
            self.pulls[k] = self.draw(k, less(self.z, self.model.prototypes[k]))
        return self.pulls[k]

    def score(self, k: int) -> tuple[Iterable[tuple[int, Q]], Q, Terms]:
        """State the score of prototype k as a function of the change: slopes, constant, terms."""
        return [(c, 2 * a) for c, a in enumerate(self.pull(k))], self.scores[k], self.metric(k)

    def curve(self, form: Curve) -> tuple[Iterable[tuple[int, Q]], Q, Terms]:
        """State the left-hand side less the right-hand side of a quadratic condition likewise."""
        at = [self.spans[j][0] for j in form.columns]
        here = less([self.x[j] for j in form.columns], form.center)
        slope, terms = dict(zip(at, form.linear, strict=True)), {}
        for (i, j), a in form.matrix.items():
            terms[min(at[i], at[j]), max(at[i], at[j])] = a
            slope[at[i]] += a * here[j]
            slope[at[j]] += a * here[i]
        return slope.items(), form.at(self.x), terms

    def metric(self, k: int) -> Terms:
        """State the quadratic terms of the distance of prototype k, in coordinates."""

        def made() -> Terms:
            out, columns, depth = Terms(), list[tuple[list[int], int]](), range(self.model.depth)
            for i, slope in enumerate(self.slopes):
                self.clock.look()
                a, s = self.model.lifted(k, [slope.get(c, ZERO) for c in depth])
                columns.append((a, s))
                for j, (b, t) in enumerate(columns):
                    entry = sum([p * q for p, q in zip(a, b, strict=True)])
                    if entry:
                        out[j, i] = Q(entry * (1 if i == j else 2), s * t)
            return out

        found: Terms = self.kept((k,), made)
        return found


# --- 3. The least value of a sum over a box -----------------------------------------------------


def is_semidefinite(K: list[list[int]], clock: Clock) -> bool:
    """Whether a symmetric matrix of integers is positive semidefinite.

    LDL' without fractions (Bareiss), the largest pivot first: every number is a minor of K, all
    divisions are exact, and the signs of the pivots decide.
    """
    left, before = list(range(len(K))), 1
    K = [list(row) for row in K]
    while left:
        if min(K[i][i] for i in left) < 0:
            return False
        p = max(left, key=lambda i: K[i][i])
        pivot = K[p][p]
        left.remove(p)
        if not pivot:
            return not any(K[i][j] for i in [p, *left] for j in [p, *left])
        for n, i in enumerate(left):
            clock.look()
            share, row, top = K[i][p], K[i], K[p]
            for j in left[n:]:
                row[j] = K[j][i] = (row[j] * pivot - share * top[j]) // before
        before = pivot
    return True


def whole_matrix(terms: Terms, at: list[int], bits: int = 0) -> tuple[list[list[int]], Q]:
    """Write a form as a matrix of integers over one unit: exact, or rounded down to some bits."""
    place = {j: n for n, j in enumerate(at)}
    entries = {(place[i], place[j]): a / (1 if i == j else 2) for (i, j), a in terms.items()}
    unit = Q(1, lcm(*{a.denominator for a in entries.values()}))
    if bits:
        top = max(map(abs, entries.values()), default=ONE)
        unit = Q(2) ** (top.numerator.bit_length() - top.denominator.bit_length() + 1 - bits)
    K = [[0] * len(at) for _ in at]
    for (i, j), a in entries.items():
        K[i][j] = K[j][i] = (a / unit).__floor__()
    return K, unit


def _has_root(K: list[list[float]], clock: Clock) -> bool:
    """Whether a Cholesky factorisation in floats comes to an end: a guess, never a proof."""
    L: list[list[float]] = []
    for i, row in enumerate(K):
        clock.look()
        new: list[float] = []
        for j, other in enumerate(L):
            rest = row[j] - sum([a * b for a, b in zip(new, other, strict=False)])
            new.append(rest / other[j])
        pivot = row[i] - sum([a * a for a in new])
        if not pivot > 0:
            return False
        L.append([*new, sqrt(pivot)])
    return True


def _guess(K: list[list[int]], on: list[bool], less_by: float, clock: Clock) -> float:
    """About the least shift of some diagonal entries that makes K definite, the others less."""
    top = float(max([abs(a) for row in K for a in row], default=1) or 1)
    scaled = [[a / top for a in row] for row in K]

    def works(t: float) -> bool:
        tried = [[a + (t if on[i] else -less_by) * (i == j) for j, a in enumerate(row)]
                 for i, row in enumerate(scaled)]  # fmt: skip
        return _has_root(tried, clock)

    low, high = 0.0, 1e-15 * len(K)
    while not works(high) and high < 1e6:
        low, high = high, 16.0 * high
    for _ in range(14 if low else 4):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if works(middle) else (middle, high)
    return high * top


def _shift(K: list[list[int]], on: list[bool], rest: int, top: int, clock: Clock) -> int | None:
    """Find t with which ``K + t`` (along `on`) and ``- rest`` (elsewhere) is semidefinite.

    K is rounded down by less than one in each entry, so that n more pay for the rounding.
    """
    n, t = len(K), int(_guess(K, on, rest / top if top else 0.0, clock))
    for _ in range(24):
        tried = [[a + ((t if on[i] else -rest - n) if i == j else 0) for j, a in enumerate(row)]
                 for i, row in enumerate(K)]  # fmt: skip
        if is_semidefinite(tried, clock):
            return t + n
        if not any(on):
            return None
        t += max(t // 8, n)
        t *= 1 if t < 64 * top else 4
    return None


def _convexities(K: list[list[int]], on: list[bool], clock: Clock) -> Iterator[tuple[int, int]]:
    """Find shifts along limited coordinates, and the curvature that each leaves along the others.

    What is left carries slopes, and what is shifted is paid for: none is the best in all cases.
    """
    top = max([abs(a) for row in K for a in row])
    for rest in [0] if all(on) else [top >> power for power in (2, 6, 12, 20, 30, 40)]:
        t = _shift(K, on, rest, top, clock)
        if t is not None and (all(on) or t < 64 * top):
            yield t, rest


def least_along(a: Q, b: Q, w: Q, low: End, high: End) -> End:
    """Least value of ``a t^2 + b t + w |t|`` between two ends."""
    least: End = INF
    for sign, start, last in ((1, low, high), (-1, -high, -low)):
        first, slope = max(start, ZERO), sign * b + w
        if last < first:
            continue
        if not isinstance(last, Q) and (a < 0 or (a == 0 and slope < 0)):
            return -INF
        at = [first, last]
        if a > 0 and first < -slope / (2 * a) < last:
            at.append(-slope / (2 * a))
        least = min([least, *((a * t + slope) * t for t in at if isinstance(t, Q))])
    return least


class Sum:
    """``delta'H delta + h'delta + constant + sum_j w_j |delta_j|``."""

    def __init__(self, width: int) -> None:
        self.H: Terms = {}
        self.h, self.w, self.constant = [ZERO] * width, [ZERO] * width, ZERO
        self.is_convex = True  # by its parts; else that has to be shown

    def plus(
        self, share: Q, slope: Iterable[tuple[int, Q]], constant: Q = ZERO, terms: Terms = NONE
    ) -> None:
        """Add a share of a function: its slopes, its constant and its quadratic terms."""
        for c, a in slope:
            if a:
                self.h[c] += share * a
        for at, a in terms.items():
            self.H[at] = self.H.get(at, ZERO) + share * a
        self.constant += share * constant

    def products(self, pairs: Iterable[tuple[Form, End, Form, End, Q]], clock: Clock) -> None:
        """Add ``share (f'delta - a)(g'delta - b)`` for each (f, a, g, b, share) of finite ends.

        The second factors of one first factor are added up first: they may be long sums.
        """
        factors: dict[tuple[int, Q], tuple[Form, Form, list[Q]]] = {}
        for f, a, g, b, share in pairs:
            if isinstance(a, Q) and isinstance(b, Q):
                _, sums, ends = factors.setdefault((id(f), a), (f, {}, []))
                for c, slope in g.items():
                    sums[c] = sums.get(c, ZERO) + share * slope
                ends.append(share * b)
        for (_, a), (f, sums, ends) in factors.items():
            self.is_convex, end = False, sum(ends, ZERO)
            self.plus(-a, sums.items(), -end)
            self.plus(-end, f.items())
            for c, slope in f.items():
                clock.look()
                for e, other in sums.items():
                    at = (min(c, e), max(c, e))
                    self.H[at] = self.H.get(at, ZERO) + slope * other

    def least(self, box: Box, point: Vector, clock: Clock) -> End:
        """Bound the sum from below over a box that is not empty.

        Coordinates that the box holds in place are put in. If nothing ties the others to each
        other, the bound is the least value. Otherwise H is made convex along limited coordinates
        by ``t ((delta_j - center_j) / half_j)^2``, which is at most t, and replaced by its tangent
        at `point`. Along coordinates without a limit some curvature is kept against the slope.
        """
        low, high = box
        held = {j: a for j, a in enumerate(low) if isinstance(a, Q) and a == high[j]}
        total, h, ties = self.constant, list(self.h), {}
        for (i, j), a in self.H.items():
            if i in held and j in held:
                total += a * held[i] * held[j]
            elif i in held or j in held:
                h[j if i in held else i] += a * held[i if i in held else j]
            elif a:
                ties[i, j] = a
        for j, v in held.items():
            total += h[j] * v + self.w[j] * abs(v)
        tied = {j for pair in ties if pair[0] != pair[1] for j in pair}
        core = sorted(tied)
        own = {j: ties.pop((j, j), ZERO) for j in range(len(low)) if j not in tied}
        parts = [least_along(a, h[j], self.w[j], low[j], high[j])
                 for j, a in own.items() if j not in held]  # fmt: skip
        if core:
            parts.append(self._curved(box, point, core, ties, h, clock))
        return -INF if -INF in parts else added(parts, total, clock)

    def _curved(
        self, box: Box, point: Vector, core: list[int], ties: Terms, h: Vector, clock: Clock
    ) -> End:
        """Bound the part of coordinates that are tied to each other, by tangents at a point."""
        (low, high), p = box, {j: point[j] for j in core}
        ways = [(ZERO, ZERO)]  # what is shifted, and what curvature is left of it
        center, unit = dict.fromkeys(core, ZERO), dict.fromkeys(core, ONE)
        on = dict.fromkeys(core, False)
        if not self.is_convex:
            for j in core:
                a, b = low[j], high[j]
                inside = max(min(p[j], b), a)
                p[j] = inside if isinstance(inside, Q) else p[j]
                on[j] = isinstance(a, Q) and isinstance(b, Q)
                if isinstance(a, Q) and isinstance(b, Q):
                    center[j], unit[j] = (a + b) / 2, rounded((b - a) / 2, True)
                elif ties.get((j, j), ZERO) > 0:
                    unit[j] = rounded(1 / root(ties[j, j]), False)
                else:
                    return self._least_everywhere(core, ties, h, clock)
            scaled = {(i, j): a * unit[i] * unit[j] for (i, j), a in ties.items()}
            K, scale = whole_matrix(scaled, core, BITS)
            ways = [(t * scale, rest * scale) for t, rest in _convexities(K, [*on.values()], clock)]
        slope = {j: h[j] for j in core}
        touch = list[Q]()
        for (i, j), a in ties.items():
            touch.append(-a * p[i] * p[j])
            slope[i] += a * p[j]
            slope[j] += a * p[i]
        best: End = -INF
        for shift, kept in ways:
            parts: list[End] = [*touch]
            for j in core:
                u = (p[j] - center[j]) / unit[j]
                pull, curve = (2 * shift * u / unit[j], ZERO) if on[j] else (
                    ZERO, kept / unit[j] ** 2)  # fmt: skip
                if on[j]:
                    parts.append(shift * (u * u - 1) - pull * p[j])
                parts.append(curve * p[j] ** 2)
                along = slope[j] + pull - 2 * curve * p[j]
                parts.append(least_along(curve, along, self.w[j], low[j], high[j]))
            best = max(best, -INF if -INF in parts else added(parts, ZERO, clock))
        if best == -INF and not self.is_convex:
            return self._least_everywhere(core, ties, h, clock)
        return best

    def _least_everywhere(self, core: list[int], ties: Terms, h: Vector, clock: Clock) -> End:
        """Least value of the part of tied coordinates without any box, by completing squares."""
        if any(self.w[j] for j in core):
            return -INF
        H = {i: dict.fromkeys(core, ZERO) for i in core}
        for (i, j), a in ties.items():
            H[i][j] = H[j][i] = a if i == j else a / 2
        slope, left, value = {j: h[j] for j in core}, list(core), ZERO
        while left:
            p = max(left, key=lambda i: H[i][i])
            pivot = H[p][p]
            if pivot <= 0:
                is_flat = not any(slope[i] or any(H[i][j] for j in left) for i in left)
                return value if is_flat else -INF
            left.remove(p)
            value -= slope[p] ** 2 / (4 * pivot)
            for i in left:
                share = H[i][p] / pivot
                slope[i] -= share * slope[p]
                for j in left:
                    clock.look()
                    H[i][j] -= share * H[p][j]
        return value


class Inverse:
    """An upper bound of the inverse of a convex form, on independent coordinates that it sees."""

    def __init__(self, terms: Terms, width: int) -> None:
        self.terms, self.width = terms, width
        self.seen = sorted({j for pair in terms for j in pair})
        self.at = self.seen  # all of them, unless M is singular there
        self.bound: list[dict[int, Q]] | None = None  # rows without zeros, by coordinate

    def _times(self, v: Vector, clock: Clock) -> Vector:
        """Multiply by the inverse; nothing along other coordinates."""
        if self.bound is None:
            if all(i == j for i, j in self.terms):
                self.bound = [{j: 1 / self.terms[j, j]} for j in self.at]
            else:
                used, rows = _inverted(*whole_matrix(self.terms, self.seen), clock)
                self.at = [self.seen[n] for n in used]
                self.bound = [{j: a for j, a in zip(self.at, row, strict=True) if a}
                              for row in rows]  # fmt: skip
        out = [ZERO] * self.width
        for j, row in zip(self.at, self.bound, strict=True):
            clock.look()
            out[j] = sum([a * v[i] for i, a in row.items() if v[i]], ZERO)
        return out

    def of(self, v: Vector, clock: Clock) -> End:
        """At least ``v' M^-1 v``; infinite where M limits no change along v."""
        times = self._times(v, clock)
        if self.at != self.seen or any(v[j] for j in {*range(self.width)}.difference(self.at)):
            return INF
        return added([s * t for s, t in zip(v, times, strict=True) if s and t], ZERO, clock)

    def drawn(self, a: Vector, clock: Clock) -> tuple[Vector, Q]:
        """Return a vector that M limits, `a` if it can be, and at least its ``a' M^-1 a``.

        Where M is singular that is M v, which agrees with `a` along independent coordinates.
        """
        stretch = self.of(a, clock)
        if isinstance(stretch, Q):
            return a, stretch
        v, out = self._times(a, clock), [ZERO] * self.width
        for (i, j), entry in self.terms.items():
            out[i] += entry * v[j] / 2
            out[j] += entry * v[i] / 2
        return out, dot(v, out)

    def along(self, c: int, clock: Clock) -> End:
        """At least the entry of the inverse on the diagonal."""
        return self.of([Q(c == j) for j in range(self.width)], clock)


def eliminated(A: list[list[int]], count: int, clock: Clock) -> tuple[list[int], int]:
    """Solve for the first unknowns that will do, of `count`: their places, and what they times.

    Gauss and Jordan without fractions (Bareiss), in place: every number is a minor, all divisions
    are exact. Row n then states the unknown of the n-th place, times the number returned.
    """
    used, before = list[int](), 1
    for column in range(count):
        here = len(used)
        at = next((n for n in range(here, len(A)) if A[n][column]), None)
        if at is None:
            continue
        A[here], A[at] = A[at], A[here]
        top, pivot = A[here], A[here][column]
        for n, row in enumerate(A):
            clock.look()
            if n != here:
                share = row[column]
                A[n] = [(a * pivot - share * b) // before for a, b in zip(row, top, strict=True)]
        before = pivot
        used.append(column)
    return used, before


def _inverted(K: list[list[int]], unit: Q, clock: Clock) -> tuple[list[int], list[Vector]]:
    """Upper bound of the inverse of a semidefinite matrix, with short numbers, where it has one.

    Rows that depend on those before them are left out. With rows and columns of unit size, entries
    are rounded by less than 1 / digits, and n of these on the diagonal are more than all of them.
    """
    n, digits = len(K), 2**BITS
    A = [[*row, *(int(i == j) for j in range(n))] for i, row in enumerate(K)]
    used, scale = eliminated(A, n, clock)
    inverse = [[Q(A[i][n + j], scale) / unit for j in used] for i in range(len(used))]
    sizes = [rounded(root(inverse[i][i]), True) for i in range(len(used))]

    def entry(i: int, j: int) -> Q:
        clock.look()
        share = (inverse[i][j] / (sizes[i] * sizes[j]) * digits).__floor__()
        return Q(share + (n + 1 if i == j else 0), digits) * sizes[i] * sizes[j]

    return used, [[entry(i, j) for j in range(len(used))] for i in range(len(used))]


def solved(rows: list[Vector], clock: Clock) -> Vector | None:
    """Solve linear equations, right-hand sides last, in the first unknowns that will do."""
    A, out = [whole(row)[0] for row in rows], [ZERO] * (len(rows[0]) - 1)
    used, scale = eliminated(A, len(out), clock)
    if any(row[-1] for row in A[len(used) :]):
        return None
    for row, column in zip(A, used, strict=False):
        out[column] = Q(row[-1], scale)
    return out


# --- 4. Proofs ----------------------------------------------------------------------------------


def common_divisor(parts: list[Q]) -> Q:
    """Return the greatest number that all others are multiples of."""
    over = lcm(*[part.denominator for part in parts])
    return Q(gcd(*[int(part * over) for part in parts]), over)


def has_whole_solution(sums: list[tuple[dict[int, int], int]], clock: Clock) -> bool:
    """Whether there are whole numbers that give each of some sums its value.

    Columns are added to each other until each sum has at most one with an entry that sums before
    it have none of: the multiple of that one is what is left of its value.
    """
    at = sorted({c for parts, _ in sums for c in parts})
    columns = [[parts.get(c, 0) for parts, _ in sums] for c in at]
    left = [value for _, value in sums]
    for n in range(len(sums)):
        while True:
            clock.look()
            columns.sort(key=lambda column: (not column[n], abs(column[n])))
            if len(columns) < 2 or not columns[1][n]:
                break
            for other in columns[1:]:
                clock.look()
                share = other[n] // columns[0][n]
                other[:] = [a - share * b for a, b in zip(other, columns[0], strict=True)]
        if not columns or not columns[0][n]:
            if left[n]:
                return False
            continue
        pivot = columns.pop(0)
        if left[n] % pivot[n]:
            return False
        left = [a - left[n] // pivot[n] * b for a, b in zip(left, pivot, strict=True)]
    return True


class Sides(NamedTuple):
    """Linear forms of the change, and the ends of each."""

    forms: list[Form]
    ends: Box


class Asked:
    """One line: an input, a target, and what a proof about them may rest on."""

    def __init__(
        self, question: Question, x: Vector, target: set[int], is_told: bool, clock: Clock
    ) -> None:
        self.question, self.model, self.clock = question, question.model, clock
        self.seen, self.margin, self.is_told = Seen(question, x, clock), question.margin, is_told
        self.is_part = question.rule is None and question.plausible is None
        self.is_rival = [label not in target for label in self.model.labels]
        self.targets = [k for k, rival in enumerate(self.is_rival) if not rival]
        self.rivals = [k for k, rival in enumerate(self.is_rival) if rival]
        if not self.targets:
            raise Refused("no prototype has a wished-for label")
        self.sides = self._sides()
        self.slacks = self._slacks()
        self.rights = [self._right(row) for row in self.seen.rows]
        self.leads: dict[tuple[int, int], Q] = {}
        self.roots: dict[End, Box | None] = {}
        self.stays = frozenset[int]()  # coordinates of columns that stay as they are
        self.solved: list[tuple[Form, Q]] | None = None

    def proof(self, item: Any) -> Told:
        """Read a proof: cells, or a tree of columns that are held or counted as changed."""
        seen = self.seen
        known = {
            **self.question.known, "clock": self.clock, "rival": {*self.rivals},
            "wished-for prototype": {*self.targets},
            "coordinate": range(seen.width), "linear condition": range(len(seen.rows)),
            "quadratic condition": range(len(self.question.forms)),
            "number of an ellipsoid": range(len((self.question.plausible or {}).get(
                "ellipsoids", ()))),
            "stepped coordinate": {c for c, allowed in enumerate(seen.allowed) if allowed},
        }  # fmt: skip
        told: Told = read("proof", item, "proof", known)
        if len(told) != 1 or ("parts" in told) == self.is_part:
            raise Refused("a proof is either about cells or about what is counted, and in parts "
                          "where there is a confidence or a plausible answer")  # fmt: skip
        if "parts" in told:
            return told
        nodes = told.get("counted", [{"kind": "cells", **told}])
        _check_tree(nodes, ("count",), ("held", "changed"))
        for cell in [each for node in nodes for each in node.get("cells", ())]:
            if "nodes" in cell:
                _check_tree(cell["nodes"], ("cut", "form cut"), ("low", "high"))
            if cell["kind"] == "single" and self.model.is_local:
                raise Refused("a cell of a local metric cannot be ruled out by one slope")
        return told

    def cells(self, item: Any) -> dict[int, list[Told]]:
        """Read a proof about cells: what is said of that of each wished-for prototype."""
        if "cells" not in item:
            raise Refused("the proof is about what is counted, and not about cells alone")
        return _by_prototype(self.proof(item)["cells"])

    # The answer.

    def check_answer(self, row: Vector, cost: Q) -> tuple[Q, Q]:
        """Return the exact cost of an answer that is one, and what rounding leaves open of it."""
        seen, delta = self.seen, self.seen.change(row)
        self._check_conditions(row, delta)
        exact, blur = seen.cost(delta), seen.resolution(delta)
        if abs(exact - cost) > COST * exact + blur:
            raise Refused(f"the answer costs {decimal(exact, False)}, not what is claimed")
        own, other, wins = self._judged(delta)
        if not wins and not (self.is_told and own - other <= CLOSE * own):
            raise Refused("the answer does not have a wished-for label")
        slack = EQUALITY * (own + self.margin)
        if wins and self.margin and any(delta) and other - own < self.margin - slack:
            raise Refused("the answer does not keep the margin")
        if not self.is_part:
            self._check_surely(row, delta)
        return exact, blur

    def _check_conditions(self, row: Vector, delta: Vector) -> None:
        """Refuse a row that breaks a constraint."""
        seen = self.seen
        y = [a + b for a, b in zip(seen.start, delta, strict=True)]
        sizes, point = [abs(v) for v in y], (list[End](delta), list[End](delta))
        for n, each in enumerate(seen.rows):
            self.clock.look()
            over = each.left(y) - each.value
            if max(over, -over if each.equality else over) > each.slack(sizes) and (
                each.when is None or each.when(point)
            ):
                raise Refused(f"the answer is none: the linear condition {n} does not hold")
        for c, allowed in enumerate(seen.allowed):
            if allowed is not None and not allowed.takes(delta[c]):
                raise Refused(f"the answer is none: the value of coordinate {c} is not allowed")
        for n, form in enumerate(self.question.forms):
            if form.at(row) > 0:
                raise Refused(f"the answer is none: the quadratic condition {n} does not hold")
        for limit in self.question.limits:
            if sum(row[j] != seen.x[j] for j in limit["columns"]) > limit["count"]:
                raise Refused("the answer is none: more columns change than may")

    # A confidence, and what is plausible: both depend on the label of the answer.

    def _check_surely(self, row: Vector, delta: Vector) -> None:
        """Refuse an answer whose label is not sure, or not plausible there."""
        scores = self.model.distances(self.seen.image(delta), self.clock)
        nearest = min(self.targets, key=lambda k: (scores[k], k))
        label = self.model.labels[nearest]
        same = [i for i in self.targets if self.model.labels[i] == label]
        if not any(self._keeps(i, scores) for i in same):
            raise Refused("the answer does not have the confidence")
        for n in self._ellipsoids(label):
            try:
                return self.part(label, n)._check_conditions(row, delta)
            except Refused:
                continue
        raise Refused("the answer is in no ellipsoid of its label")

    def _ellipsoids(self, label: int) -> list[int | None]:
        """Numbers of the ellipsoids in which a label is plausible; None is everywhere."""
        if self.question.plausible is None:
            return [None]
        stated = enumerate(self.question.plausible["ellipsoids"])
        return [n for n, each in stated if each["class"] == label]

    def _keeps(self, i: int, scores: Vector) -> bool:
        """Whether scores give prototype i the confidence over each of another label."""
        rule, labels = self.question.rule or {}, self.model.labels
        others = [k for k in range(self.model.count) if labels[k] != labels[i]]
        for k in others if rule else ():
            self.clock.look()
            ahead = scores[k] - scores[i]
            if rule["kind"] == "similarity":
                theta = rule["theta"]
                is_kept = (1 + theta) * scores[i] <= (1 - theta) * scores[k]
                is_kept = is_kept and (scores[k] > 0 or theta == 0)
            elif rule["kind"] == "drift":
                room, r = ahead - 4 * rule["radius"] ** 2, rule["radius"]
                is_kept = room >= 0 and room**2 >= 16 * r**2 * scores[i]
            elif rule["kind"] == "noise" and rule["norm"] == "l2":
                is_kept = ahead >= 0 and ahead**2 >= rule["radius"] ** 2 * self._steepness(i, k)
            else:
                is_kept = ahead >= self.lead(i, k)
            if not is_kept:
                return False
        return True

    def _is_ruled_out(self, i: int) -> bool:
        """Whether a rival is too near prototype i for any answer to have the confidence.

        A rival can drift over it, so that no distances differ by enough; or lies on it, so that no
        similarity is above 0.
        """
        rule, labels = self.question.rule or {}, self.model.labels
        others = [k for k in range(self.model.count) if labels[k] != labels[i]]
        return any(self._is_too_near(i, k, rule) for k in (others if rule else []))

    def _is_too_near(self, i: int, k: int, rule: dict[str, Any]) -> bool:
        self.clock.look()
        model, W = self.model, self.model.prototypes
        if rule["kind"] == "drift":
            entries, unit = model.lifted(i, less(W[k], W[i]))
            return Q(sum([a * a for a in entries]), unit**2) < 4 * Q(rule["radius"]) ** 2
        if rule["kind"] != "similarity" or not rule["theta"] or model.offsets[k] > model.offsets[i]:
            return False
        if model.factors[i] != model.factors[k]:
            return False
        return not any(model.lifted(i, less(W[k], W[i]))[0])

    def _steepness(self, i: int, k: int) -> Q:
        """How much a unit of noise changes the difference of scores; squared for the norm l2.

        Noise moves numbers that have a weight; levels stay.
        """
        rule, slope, seen = self.question.rule or {}, self.seen.slope(i, k), self.seen
        columns = zip(seen.spans, seen.own, rule["weights"], strict=True)
        sizes = [abs(slope[span[0]]) / w for span, own, w in columns if own < 0 and w is not None]
        if rule["norm"] == "l2":
            return sum([n * n for n in sizes], ZERO)
        return max(sizes, default=ZERO) if rule["norm"] == "l1" else sum(sizes, ZERO)

    def lead(self, i: int, k: int) -> Q:
        """By how much score k exceeds score i wherever the confidence is kept, or by less."""
        rule = self.question.rule
        if rule is None or rule["kind"] == "similarity":
            return self.margin
        if rule["kind"] == "lead":
            return Q(rule["value"])
        if rule["kind"] == "drift":
            return 4 * Q(rule["radius"]) ** 2
        found = self._steepness(i, k)
        if rule["norm"] == "l2" and found:
            found = found / root(found)  # rounded down
        return Q(rule["radius"]) * found

    def stepped_lead(self, i: int, k: int) -> Q:
        """By how much score k exceeds score i wherever i wins: as above, or by steps of numbers.

        Over whole numbers the difference of two scores is that at the input and some multiple of a
        common divisor. It is at most minus the lead, and below 0 where k is the first of the two.
        """
        if (i, k) not in self.leads:
            lead = self.leads[i, k] = self.lead(i, k)
            slope = {c: a for c, a in enumerate(self.seen.slope(i, k)) if a}
            is_exact = not (self.margin or self.is_told or self.model.is_local)
            if is_exact and slope and all(map(self._is_whole, slope)):
                divisor, over = self._divisor(slope), self.seen.scores[i] - self.seen.scores[k]
                least = -over - divisor * ((-lead - over) // divisor)
                if least == 0 and k < i and self.question.rule is None:
                    least = divisor
                self.leads[i, k] = least
        return self.leads[i, k]

    def part(self, label: int, number: int | None, only: list[int] | None = None) -> Asked:
        """Ask about one label, and one ellipsoid of it; its rivals are those of any other label."""
        question = self.question
        if number is not None:
            question = question.within(number, self.clock)
        out = type(self)(question, self.seen.x, {label}, self.is_told, self.clock)
        out.is_part, out.targets = True, out.targets if only is None else only
        return out

    def _over_parts(self, parts: list[Told], cap: End, empty: bool) -> End:
        """Least over what an answer may be: of a prototype, in an ellipsoid of its label."""
        labels, best = self.model.labels, dict[tuple[int, int | None], End]()
        for i in self.targets:
            is_bare = any(self.model.is_copy(i, k) for k in range(i)) and not self.is_told
            if not is_bare and not self._is_ruled_out(i):
                best |= {(i, n): ZERO for n in self._ellipsoids(labels[i])}
        for told in parts:
            self.clock.look()
            label, number, only = told["class"], told.get("ellipsoid"), told["prototypes"]
            if any(labels[i] != label for i in only):
                raise Refused("a part is about prototypes of another label")
            if number not in self._ellipsoids(label):
                raise Refused("a part is about an ellipsoid of another label, or about none")
            value = self.part(label, number, only).least(told["proof"], cap, empty)
            for i in only:
                if (i, number) in best:
                    best[i, number] = max(best[i, number], value)
        return min(best.values(), default=INF)

    def _judged(self, delta: Vector) -> tuple[Q, End, bool]:
        """Least scores of wished-for labels and of others, and whether the first nearest is one."""
        scores = self.model.distances(self.seen.image(delta), self.clock)
        own = min([scores[k] for k in self.targets])
        other: End = min([scores[k] for k in self.rivals], default=INF)
        return own, other, not self.is_rival[scores.index(min(scores))]

    # Boxes of changes.

    def _sides(self) -> Box:
        """Keep what conditions on one coordinate leave."""
        seen = self.seen
        low: list[End] = [-INF] * seen.width
        high: list[End] = [INF] * seen.width
        for row in seen.rows:
            if len(row.new) != 1 or row.when is not None:
                continue
            ((c, a),) = row.new.items()
            end = row.value / a - seen.start[c]
            if row.equality or a > 0:
                high[c] = min(high[c], end)
            if row.equality or a < 0:
                low[c] = max(low[c], end)
        return self._touching(low, high)

    def _touching(self, low: list[End], high: list[End]) -> Box:
        """Swap ends that cross by rounding alone, where what an answer may miss is spared."""
        for c, (first, last) in enumerate(zip(low, high, strict=True)):
            if self.question.is_loosened and first > last:
                x = self.seen.start[c]
                if first - last <= INEQUALITY * (max(first + x, -last - x) + abs(x)):
                    low[c], high[c] = last, first
        return low, high

    def _slacks(self) -> Vector:
        """By how much each linear condition gives way: nothing, or what an answer may miss.

        The size of a value is the largest that conditions on it alone leave, or the input's.
        """
        sizes = []
        for x, a, b in zip(self.seen.start, *self.sides, strict=True):
            far = max(abs(x), x + a, x + b, -x - a, -x - b)
            sizes.append(far if isinstance(far, Q) else abs(x))
        return [row.slack(sizes) if self.question.is_loosened else ZERO for row in self.seen.rows]

    def _right(self, row: Row) -> Q:
        """Lower the right-hand side of an inequality to a value that its sum can have.

        What may be missed of it, and what values may be off their grid, counts as met.
        """
        if row.equality or not row.new or not all(map(self._is_whole, row.new)):
            return row.value
        parts = [abs(a) * allowed.most_near for c, a in row.new.items()
                 if (allowed := self.seen.allowed[c]) is not None]  # fmt: skip
        divisor = self._divisor(row.new)
        return min(row.value, divisor * ((row.value + min(parts) + sum(parts)) // divisor))

    def _divisor(self, form: Form) -> Q:
        """Find the greatest common divisor of what steps of some coordinates add to a sum."""
        divisor = ZERO
        for c, a in form.items():
            self.clock.look()
            allowed, start = self.seen.allowed[c], self.seen.start[c]
            assert allowed is not None  # it is whole
            # Where doubles lie further apart than 1, that next to a multiple of a step may be none.
            is_near = all(-(2**53) < start + side[c] < 2**53 for side in self.sides)
            part = abs(a) * (allowed.step if is_near else 1)
            over = divisor.denominator * part.denominator
            divisor = Q(gcd(int(divisor * over), int(part * over)), over)
        return divisor

    def root_box(self, cap: End) -> Box | None:
        """Box of all changes that cost at most `cap`; None if it is empty."""
        if cap not in self.roots:
            (low, high), loosened = map(list, self.sides), self.question.is_loosened
            for c in range(self.seen.width):
                down, up = self._reach({c: ONE}, cap)
                low[c], high[c] = max(low[c], -down), min(high[c], up)
            if not loosened:
                self._under_heights(low, high)
            for form in self.question.forms if loosened else ():
                self._around(form, low, high)
            for row, right in self._solved() if self.model.is_local else ():
                _propagate(row, right, low, high)
            self.roots[cap] = self.narrowed((low, high)) if loosened else _filled((low, high))
        return self.roots[cap]

    def _reach(self, form: Form, cap: End) -> tuple[End, End]:
        """How far a change of cost at most `cap` takes a linear form, down and up."""
        if not isinstance(cap, Q):
            return INF, INF
        # Rounded up to 16 digits of two: points of tangency are those of the box for that cost.
        seen, cap = self.seen, rounded(cap, True, 16)
        stretch: End = INF
        if all(c in seen.places for c in form):
            stretch = self.question.inverse.of([form.get(c, ZERO) for c in seen.at], self.clock)
        ways: list[End] = [
            rounded(root(cap * stretch), True) if isinstance(stretch, Q) else INF
        ] * 2
        for n, sign in enumerate((-1, 1)):
            gains = [(abs(a), seen.w[c] + (seen.tilt[c] if sign * a > 0 else -seen.tilt[c]))
                     for c, a in form.items()]  # fmt: skip
            if all(price for _, price in gains):
                most = max([ZERO, *(a / price for a, price in gains)])
                ways[n] = min(ways[n], rounded(cap * most, True))
        return ways[0], ways[1]

    def _under_heights(self, low: list[End], high: list[End]) -> None:
        """Narrow what has no price by the ends of what has one and is never less."""
        for c, t, a, b in self.seen.heights:
            end = high[t] if b < 0 else low[t]
            if isinstance(end, Q) and a > 0:
                high[c] = min(high[c], rounded(-b * end / a, True))
            elif isinstance(end, Q):
                low[c] = max(low[c], rounded(-b * end / a, False))

    def _around(self, form: Curve, low: list[End], high: list[End]) -> None:
        """Keep the box around an ellipsoid; what has slopes beside the square has none here."""
        inverse = Inverse(form.matrix, len(form.columns))
        for n, j in enumerate(form.columns if form.matrix and not any(form.linear) else ()):
            stretch = inverse.along(n, self.clock)
            if isinstance(stretch, Q):
                far = rounded(root(max(form.value, ZERO) * stretch), True)
                c, away = self.seen.spans[j][0], form.center[n] - self.seen.x[j]
                low[c], high[c] = max(low[c], away - far), min(high[c], away + far)

    def _solved(self) -> list[tuple[Form, Q]]:
        """Solve equalities for coordinates that they determine, those without an end first.

        As inequalities, both ways: what each gives way by counts with its share in the solution.
        """
        if self.solved is None:
            seen, (low, high), n = self.seen, self.sides, self.seen.width
            told = [(row, row.value - row.left(seen.start), slack)
                    for row, slack in zip(seen.rows, self.slacks, strict=True)
                    if row.equality and row.when is None and len(row.new) > 1]  # fmt: skip
            k, self.solved = len(told), []
            if k < 2 or k * k * (n + k) > 2**16:
                return self.solved
            ends = [*zip(low, high, strict=True)]
            places = [0 if a == -INF or b == INF else 1 + (a >= b) for a, b in ends]
            order = sorted(range(n), key=places.__getitem__)
            A = [whole([row.new.get(c, ZERO) for c in order] + [Q(i == m) for m in range(k)])[0]
                 for i, (row, _, _) in enumerate(told)]  # fmt: skip
            used, pivot = eliminated(A, n, self.clock)
            for row in A[: len(used)]:
                shares = [Q(a, pivot) for a in row[n:]]
                right = sum([s * e for s, (_, e, _) in zip(shares, told, strict=True)], ZERO)
                room = sum([abs(s) * o for s, (_, _, o) in zip(shares, told, strict=True)], ZERO)
                form = {c: Q(a, pivot) for c, a in zip(order, row, strict=False) if a}
                self.solved.append((form, right + room))
                self.solved.append(({c: -a for c, a in form.items()}, room - right))
        return self.solved

    def narrowed(self, box: Box) -> Box | None:
        """Keep of a box what linear conditions and the grid leave; None if that is nothing."""
        seen, found = self.seen, self._snapped(box)
        for _ in range(12):
            if found is None:
                return None
            before, (low, high) = found, (list(found[0]), list(found[1]))
            for row, right, slack in zip(seen.rows, self.rights, self.slacks, strict=True):
                self.clock.look()
                if (len(row.new) > 1 or row.when) and (row.when is None or row.when((low, high))):
                    value = right - row.left(seen.start)
                    _propagate(row.new, value + slack, low, high)
                    if row.equality:
                        other = {c: -a for c, a in row.new.items()}
                        _propagate(other, slack - value, low, high)
            found = self._snapped((low, high))
            if found == before:
                break
        return None if found is None or self._has_no_values(found) else found

    def _has_no_values(self, box: Box) -> bool:
        """Whether a sum over whole numbers has no value in its limits: ``6 a + 10 b`` is even."""
        seen, limits = self.seen, dict[tuple[tuple[int, Q], ...], tuple[End, End]]()
        for row, slack in zip(seen.rows, self.slacks, strict=True):
            self.clock.look()
            is_whole = bool(row.new) and all(map(self._is_whole, row.new))
            if not is_whole or (row.when is not None and not row.when(box)):
                continue
            value = row.value - row.left(seen.start)
            low, high = value - slack if row.equality else -INF, value + slack
            parts = sorted(row.new.items())
            if parts[0][1] < 0:
                low, high, parts = -high, -low, [(c, -a) for c, a in parts]
            before = limits.get(tuple(parts), (-INF, INF))
            limits[tuple(parts)] = max(low, before[0]), min(high, before[1])
        if any(self._lies_between(box, parts, *ends) for parts, ends in limits.items()):
            return True
        sums = [self._only_value(box, parts, *ends) for parts, ends in limits.items()]
        return not has_whole_solution([each for each in sums if each is not None], self.clock)

    def _is_whole(self, c: int) -> bool:
        """Whether all changes of a coordinate are multiples of a whole step."""
        allowed, start = self.seen.allowed[c], self.seen.start[c]
        if allowed is None or not allowed.step or allowed.is_from_input:
            return False
        return allowed.step.denominator == 1 and (start / allowed.step).denominator == 1

    def _values(
        self, box: Box, parts: tuple[tuple[int, Q], ...], low: End, high: End
    ) -> tuple[dict[int, Q], End, End]:
        """List what each open coordinate of a sum of whole changes adds, and its ends."""
        apart = dict[int, Q]()
        for c, a in parts:
            allowed, start = self.seen.allowed[c], self.seen.start[c]
            assert allowed is not None  # it is whole
            # A value may be off the grid by rounding, and still count as on it.
            low, high = low - abs(a) * allowed.most_near, high + abs(a) * allowed.most_near
            if box[0][c] == box[1][c]:
                low, high = low - a * Q(box[0][c]), high - a * Q(box[0][c])
                continue
            # Where doubles lie further apart than 1, that next to a multiple of a step may be none.
            is_near = all(-(2**53) < start + end[c] < 2**53 for end in box)
            apart[c] = a * (allowed.step if is_near else 1)
        return apart, low, high

    def _lies_between(
        self, box: Box, parts: tuple[tuple[int, Q], ...], low: End, high: End
    ) -> bool:
        """Whether no value of a sum of whole changes lies in an interval."""
        apart, low, high = self._values(box, parts, low, high)
        if not (isinstance(low, Q) and isinstance(high, Q)):
            return False
        if not apart:
            return not low <= 0 <= high
        divisor = common_divisor([*apart.values()])
        return divisor * (high // divisor) < low

    def _only_value(
        self, box: Box, parts: tuple[tuple[int, Q], ...], low: End, high: End
    ) -> tuple[dict[int, int], int] | None:
        """State a sum of whole changes in whole numbers, if one value of it lies in an interval."""
        apart, low, high = self._values(box, parts, low, high)
        if not apart or not (isinstance(low, Q) and isinstance(high, Q)):
            return None
        divisor = common_divisor([*apart.values()])
        value = high // divisor
        if -(-low // divisor) != value:
            return None
        return {c: int(part / divisor) for c, part in apart.items()}, int(value)

    def _snapped(self, box: Box) -> Box | None:
        """Move sides inwards to allowed changes."""
        low, high = list(box[0]), list(box[1])
        for c, allowed in enumerate(self.seen.allowed):
            if allowed is not None:
                low[c], high[c] = allowed.snap(low[c], 1), allowed.snap(high[c], -1)
        return _filled((low, high))

    def cut(self, c: int, at: Q) -> tuple[End, End]:
        """Last change up to a cut and first one from it on; none is between two allowed ones."""
        allowed = self.seen.allowed[c] if c < self.seen.width else None
        if allowed is None:
            return at, at
        below = allowed.snap(at, -1)
        return below, allowed.beyond(below, 1) if isinstance(below, Q) else allowed.snap(at, 1)

    # Bounds.

    def form_sides(self, forms: list[Form], within: Box, box: Box, cap: End) -> Sides | None:
        """Sides of linear forms in a box, of cost at most `cap`; None if they have crossed."""
        low, high = list(within[0]), list(within[1])
        for n, form in enumerate(forms):
            self.clock.look()
            down, up = self._reach(form, cap)
            least = [a * (box[0] if a > 0 else box[1])[c] for c, a in form.items()]
            most = [a * (box[1] if a > 0 else box[0])[c] for c, a in form.items()]
            low[n] = max(low[n], -down, -INF if -INF in least else added(least, ZERO, self.clock))
            high[n] = min(high[n], up, INF if INF in most else added(most, ZERO, self.clock))
        return None if _filled((low, high)) is None else Sides(forms, (low, high))

    def summed(
        self, i: int, told: Told, box: Box, cap: End, with_cost: bool, sides: Sides | None = None
    ) -> Sum:
        """Sum what is charged for, and the cost: each charge is at most 0 for every answer."""
        seen, out, scores = self.seen, Sum(self.seen.width), self.seen.scores
        if with_cost:
            out.plus(ONE, enumerate(seen.tilt), ZERO, seen.M)
            out.w = list(seen.w)
        for k, y in told.get("rivals", {}).items():
            self.clock.look()
            if y > 0 and self.model.is_local:
                out.is_convex = False
                out.plus(y, *seen.score(i))
                out.plus(-y, *seen.score(k))
                out.constant += y * self.lead(i, k)
            elif y > 0:
                slope = enumerate(seen.slope(i, k))
                out.plus(y, slope, scores[i] - scores[k] + self.stepped_lead(i, k))
        self._add_rules(out, i, told)
        for n, y in told.get("rows", {}).items():
            row = seen.rows[n]
            self.clock.look()
            if (y > 0 or row.equality) and (row.when is None or row.when(box)):
                out.plus(y, row.new.items(), row.left(seen.start) - self.rights[n])
                out.constant -= abs(y) * self.slacks[n]
        for n, y in told.get("quadratics", {}).items():
            if y > 0:
                out.plus(y, *seen.curve(self.question.forms[n]))
        out.products(self._products(told, box, cap, sides), self.clock)
        if isinstance(cap, Q):
            self._add_cost_products(out, told, box, cap)
        return out

    def _add_rules(self, out: Sum, i: int, told: Told) -> None:
        """Charge for the confidence where it is curved: as it is, or by its tangents."""
        seen, rule = self.seen, self.question.rule or {"kind": ""}
        own, other = 1 + rule.get("theta", ZERO), 1 - rule.get("theta", ZERO)
        for k, y in told.get("rules", {}).items():
            self.clock.look()
            if rule["kind"] != "similarity":
                raise Refused("rules are charged for, and none has a curve of its own")
            if y > 0:
                out.plus(y * own, *seen.score(i))
                out.plus(-y * other, *seen.score(k))
                out.is_convex = out.is_convex and not self.model.is_local
        for k, y, point in told.get("tangents", ()):
            self.clock.look()
            if rule["kind"] not in ("similarity", "drift") or self.model.is_local:
                raise Refused("tangents are charged for, and no rule is convex")
            if y <= 0:
                continue
            at, W = seen.image(point), self.model.prototypes
            pull, image = seen.draw(i, less(at, W[i])), self.model.lifted(i, less(at, W[i]))
            if rule["kind"] == "similarity":
                scores = self.model.distances(at, self.clock)
                away = seen.draw(k, less(at, W[k]))
                slope = [2 * (own * a - other * b) for a, b in zip(pull, away, strict=True)]
                value = own * scores[i] - other * scores[k]
                out.plus(y, enumerate(slope), value - dot(slope, point))
                continue
            # A length is at least the product with any direction of at most unit length.
            length = root(Q(sum([a * a for a in image[0]]), image[1] ** 2))
            share = 4 * rule["radius"] / length if length else ZERO
            here = self.model.lifted(i, less(seen.z, W[i]))
            met = sum([a * b for a, b in zip(image[0], here[0], strict=True)])
            ahead = seen.scores[k] - seen.scores[i]
            out.plus(y, enumerate(seen.slope(i, k)), self.lead(i, k) - ahead)
            out.plus(y * share, enumerate(pull), Q(met, image[1] * here[1]))

    def _products(
        self, told: Told, box: Box, cap: End, sides: Sides | None
    ) -> Iterator[tuple[Form, End, Form, End, Q]]:
        """Products that are not positive: of distances to sides, on a grid, and within a cost."""
        (low, high), seen, unit = box, self.seen, self.seen.units

        def each(key: str) -> Iterator[Any]:
            for item in told.get(key, ()):
                self.clock.look()
                yield item

        for word, forms, (a, b) in [("", unit, box), *([("form_", *sides)] if sides else [])]:
            for key, first, second, sign in (("low", a, a, -1), ("high", b, b, -1),
                                             ("cross", a, b, 1)):  # fmt: skip
                for i, j, y in each(word + key):
                    if y > 0:
                        yield forms[i], first[i], forms[j], second[j], sign * y
        for side, c, y in each("neighbours"):
            if y > 0:
                here, there = self._neighbours(c, side == "first", low[c], high[c])
                yield unit[c], here, unit[c], there, -y
        for i, j, y in each("pairs"):
            if y > 0 and i != j and seen.column_of[i] == seen.column_of[j]:
                yield unit[i], ZERO, unit[j], ZERO, y
        # With r at least the root of ``left * a' M^-1 a`` there is ``r + a'delta >= 0``, where
        # `left` is what absolute changes leave of the cost.
        least, signs = _least_sizes(box)
        left = cap - dot(seen.prices(signs), least) if isinstance(cap, Q) else ZERO
        for key, ends, way in (("from_low", low, -ONE), ("from_high", high, ONE)):
            for c, pull in each(key) if left > 0 else ():
                vector, stretch = self.question.inverse.drawn(pull, self.clock)
                form = {d: entry for d, entry in zip(seen.at, vector, strict=True) if entry}
                yield unit[c], ends[c], form, -rounded(root(left * stretch), True), way

    def _neighbours(self, c: int, first: bool, low: End, high: End) -> tuple[End, End]:
        """Find two allowed changes with none between them: around none, or at an end of a box."""
        allowed, here = self.seen.allowed[c], low if first else high
        if allowed is None:
            return INF, INF
        if low < 0 < high:
            here = allowed.snap(ZERO, -1 if first else 1)
        return here, allowed.beyond(here, 1 if first else -1) if isinstance(here, Q) else here

    def _add_cost_products(self, out: Sum, told: Told, box: Box, cap: Q) -> None:
        """Take off ``(cap - sum_l w_l |delta_l|) (|delta_j| - least_j)`` times a share."""
        share = {j: s for j, s in told.get("share", {}).items() if s > 0}
        signs = {(i, j): s for i, j, s in told.get("signs", ())}
        least, sign = _least_sizes(box)
        w = self.seen.prices(sign)
        spent = sum([s * least[j] for j, s in share.items()], ZERO)
        pairs: Terms = {}
        for j, s in share.items():
            self.clock.look()
            out.is_convex = False
            out.w[j] -= cap * s
            for c, a in enumerate(w):
                at = (min(j, c), max(j, c))
                pairs[at] = pairs.get(at, ZERO) + s * a
        for (i, j), size in pairs.items():
            self.clock.look()
            known = 1 if i == j else sign[i] * sign[j]
            value = known * size if known else max(-size, min(size, signs.get((i, j), ZERO)))
            out.plus(value, (), ZERO, {(i, j): ONE})
        out.w = [a - b * spent for a, b in zip(out.w, w, strict=True)]
        out.constant += cap * spent

    def bound(
        self, i: int, told: Told, box: Box, cap: End, with_cost: bool, sides: Sides | None = None
    ) -> tuple[End, Told]:
        """Least of what is charged, with the cost or without, over a box; and the multipliers.

        Where the box has no end, these are corrected: four times at most.
        """
        loose, origin = set[int](), [ZERO] * self.seen.width
        for _ in range(5):
            total = self.summed(i, told, box, cap, with_cost, sides)
            parts = zip(told.get("point", origin), told.get("rest", origin), strict=True)
            point = [a + b for a, b in parts]
            least = total.least(box, point, self.clock)
            corrected = None
            if least == -INF and total.is_convex:
                corrected = self._corrected(i, told, total, point, box, loose)
            if corrected is None:
                break
            told = corrected
        return least, told

    def _corrected(
        self, i: int, told: Told, total: Sum, point: Vector, box: Box, loose: set[int]
    ) -> Told | None:
        """Correct multipliers and point so that nothing falls where a box has no end.

        There the charged conditions have to cancel exactly, which numbers of a solver never do.
        Those that may have either sign take the correction first, then the largest.
        """
        seen, (low, high), width = self.seen, box, self.seen.width
        held = [a == b for a, b in zip(low, high, strict=True)]
        # What is held in place is put in: there the point is where it is held.
        p = [a if h and isinstance(a, Q) else v for v, a, h in zip(point, low, held, strict=True)]
        curves: list[dict[int, Q]] = [{} for _ in range(width)]
        for (c, d), a in total.H.items():
            curves[c][d] = curves[c].get(d, ZERO) + a
            curves[d][c] = curves[d].get(c, ZERO) + a
        slope = [s + sum([a * p[d] for d, a in row.items() if a and p[d]], ZERO)
                 for s, row in zip(total.h, curves, strict=True)]  # fmt: skip
        excess = [max(ZERO, abs(s) - w) * (1 if s > 0 else -1)
                  for s, w in zip(slope, total.w, strict=True)]  # fmt: skip
        loose.update(c for c, e in enumerate(excess)
                     if (e > 0 and low[c] == -INF) or (e < 0 and high[c] == INF))  # fmt: skip
        if not loose or len(loose) > 60:
            return None
        at = sorted(loose)
        unknowns: list[tuple[bool, Q, str, int, Vector]] = [
            (True, ONE, "point", c, [curve.get(d, ZERO) for d in at])
            for c, curve in enumerate(curves) if not held[c] and any(curve.values())
        ]  # fmt: skip
        for k, y in told.get("rivals", {}).items():
            if y > 0:
                slope = seen.slope(i, k)
                unknowns.append((False, y, "rivals", k, [slope[c] for c in at]))
        for n, y in told.get("rows", {}).items():
            row = seen.rows[n]
            if y > 0 or (y < 0 and row.equality):
                column = [row.new.get(c, ZERO) for c in at]
                unknowns.append((row.equality, abs(y), "rows", n, column))
        unknowns.sort(key=lambda item: (not item[0], -item[1]))
        lines = [[item[4][n] for item in unknowns] + [-excess[c]] for n, c in enumerate(at)]
        step = solved(lines, self.clock)
        if step is None:
            return None
        out = {**told, "point": p, "rest": [ZERO] * width}
        for key in ("rivals", "rows"):
            out[key] = dict(told.get(key, {}))
        for (either, _, key, n, _), by in zip(unknowns, step, strict=True):
            out[key][n] += by
            if out[key][n] < 0 and not either:
                return None
        return out

    def is_lost(self, i: int, box: Box) -> bool:
        """Whether a prototype wins nowhere in a box: an earlier rival is as near, or one is nearer.

        Under a shared metric; or the box is one row, and the model decides.
        """
        scores = self.seen.scores
        for k in self.rivals if not self.margin and not self.model.is_local else ():
            total, slope = Sum(self.seen.width), enumerate(self.seen.slope(i, k))
            total.plus(ONE, slope, scores[i] - scores[k] + self.lead(i, k))
            least = total.least(box, [], self.clock)
            is_plain = self.question.rule is None and not self.is_told
            if least > 0 or (least == 0 and k < i and is_plain):
                return True
        rows = self._rows_in(box)
        return bool(rows) and all(self._says_otherwise(delta) for delta in rows)

    def _rows_in(self, box: Box) -> list[Vector]:
        """All rows of the table that a box of one point stands for; none if it is wider.

        A value of a grid and an input that counts as it are two rows.
        """
        values, count = list[Vector](), 1
        for c, (a, b, allowed) in enumerate(zip(*box, self.seen.allowed, strict=True)):
            if a != b and self.seen.is_unseen(c):
                values.append([ZERO])  # for the model all of them are one row
                continue
            if not isinstance(a, Q) or not isinstance(b, Q) or count > 16:
                return []
            if a != b:
                at = allowed.nearest(a) if allowed and allowed.step else None
                if at is None or allowed is None or at != allowed.nearest(b):
                    return []  # wider; or doubles are too coarse to tell one value from the next
            values.append(sorted({a, b}))
            count *= len(values[-1])
        return [[*row] for row in product(*values)]

    def _says_otherwise(self, delta: Vector) -> bool:
        """Whether the model gives a row no wished-for label, or a foreign one is said not to."""
        own, other, wins = self._judged(delta)
        told = self.is_told and isinstance(other, Q) and other - own <= CLOSE * other
        if not wins or told or other - own < self.margin or self.question.rule is None:
            return not wins or told or other - own < self.margin
        scores = self.model.distances(self.seen.image(delta), self.clock)
        same = [k for k, is_rival in enumerate(self.is_rival) if not is_rival]
        return not any(self._keeps(k, scores) for k in same)

    # Cells and trees.

    def least(self, proof: Any, cap: End, empty: bool) -> End:
        """Cost that no answer undercuts; infinite if there is none at a cost up to `cap`.

        With `empty`, only what shows that there is none counts. It is the least over the parts
        left whole, in which each column is held, counts as changed, or neither. Once as many count
        as may change, all others of a limit are held. Cells by themselves are one such part.
        """
        found: End = INF
        told, nothing = self.proof(proof), frozenset[int]()
        if "parts" in told:
            return self._over_parts(told["parts"], cap, empty)
        nodes, waiting = told.get("counted", [{"kind": "cells", **told}]), [(0, nothing, nothing)]
        while waiting:
            self.clock.look()
            at, held, changed = waiting.pop()
            stays, node, too_many = held, nodes[at], False
            for limit in self.question.limits if "counted" in told else ():
                counted = len(changed & {*limit["columns"]})
                too_many = too_many or counted > limit["count"]
                if counted == limit["count"]:
                    stays = stays | ({*limit["columns"]} - changed)
            if too_many:
                continue
            if node["kind"] == "count":
                waiting.append((node["held"], held | {node["column"]}, changed))
                waiting.append((node["changed"], held, changed | {node["column"]}))
            else:
                part = self._holding(stays) if stays else self
                found = min(found, part._over_cells(node["cells"], cap, empty))
        return found

    def _holding(self, columns: frozenset[int]) -> Asked:
        """Ask the same with some columns as they are."""
        out = copy(self)
        out.stays = frozenset(c for j in columns for c in self.seen.spans[j])
        low, high = map(list, self.sides)
        for c in out.stays:
            low[c], high[c] = max(low[c], ZERO), min(high[c], ZERO)
        out.sides, out.roots = self._touching(low, high), {}
        out.slacks = out._slacks()
        return out

    def _over_cells(self, cells: list[Told], cap: End, empty: bool) -> End:
        found: End = INF
        entries = _by_prototype(cells)
        # Without rivals all cells are one.
        for i in self.targets if self.rivals else [*entries, *self.targets][:1]:
            self.clock.look()
            if i not in entries and self._never_wins(i):
                continue
            values: list[End] = [ZERO]
            for item in entries.get(i, []):
                self.clock.look()
                values.append(self._cell(i, item, cap, empty))
            found = min(found, max(values))
        return found

    def _never_wins(self, i: int) -> bool:
        """Whether an earlier prototype is as near everywhere; its own cell is looked at."""
        if self.margin or self.is_told or self.question.rule is not None:
            return False  # the whole question leaves them out
        for k in range(i):
            self.clock.look()
            if self.model.is_copy(i, k):
                return True
        return False

    def _cell(self, i: int, item: Told, cap: End, empty: bool) -> End:
        if item["kind"] == "single":
            value = self._single(i, item["rival"])
            return ZERO if empty and value < INF else value
        if "nodes" in item:
            return self._tree(i, item, cap, empty)
        box = self.root_box(cap)
        return INF if box is None else self._leaf(i, item["kind"], item, box, cap, empty)

    def _leaf(
        self, i: int, kind: str, told: Told, box: Box, cap: End, empty: bool,
        sides: Sides | None = None,
    ) -> End:  # fmt: skip
        if kind == "bound":
            value = ZERO if empty else max(ZERO, self.bound(i, told, box, cap, True, sides)[0])
            return INF if value > cap else value
        value, used = self.bound(i, told, box, cap, False, sides)
        # Where an earlier rival is charged for, it has to be beaten, and not only tied with.
        charged = [k for k, y in used.get("rivals", {}).items() if y > 0]
        is_plain = not self.margin and not self.is_told and self.question.rule is None
        strict = is_plain and any(k < i and not self.stepped_lead(i, k) for k in charged)
        return INF if value > 0 or (value == 0 and strict) else ZERO

    def _single(self, i: int, k: int) -> End:
        """Cost of overtaking one rival: what is missing over what a unit of cost can gain."""
        seen, (low, high) = self.seen, self.sides
        behind = seen.scores[i] - seen.scores[k] + self.stepped_lead(i, k)
        # What stays gains nothing. Where the input breaks a bound, the ends of that cross.
        n = [ZERO if c in self.stays or low[c] == high[c] == 0 else s
             for c, s in enumerate(seen.slope(i, k))]  # fmt: skip
        if behind <= 0:
            return ZERO
        if not any(n):
            return INF  # nothing that may change gains on the rival: the cell is empty
        # Either part of the cost alone is a bound. Where the slope rises, a change downwards gains.
        found, prices = ZERO, seen.prices([-s for s in n])
        if all(price for s, price in zip(n, prices, strict=True) if s):
            found = behind / max([abs(s) / price for s, price in zip(n, prices, strict=True) if s])
        if seen.M and not any(s for c, s in enumerate(n) if c not in seen.at):
            gain = self.question.inverse.of([n[c] for c in seen.at], self.clock)
            found = max(found, behind * behind / gain) if isinstance(gain, Q) else found
        return found

    def _tree(self, i: int, item: Told, cap: End, empty: bool) -> End:
        """Least bound over the parts that are left whole: they hold all cheaper changes."""
        least, nodes, width = cap, item["nodes"], self.seen.width
        forms = [{c: a for c, a in form.items() if a} for form in item.get("forms", ())]
        # The ends of linear forms stand behind those of the coordinates.
        count = width + len(forms)
        waiting: list[tuple[int, Box, Q]] = [(0, ([-INF] * count, [INF] * count), ZERO)]
        while waiting:
            self.clock.look()
            at, (low, high), floor = waiting.pop()
            node = nodes[at]
            own = max(cap, node.get("cap", cap))  # what a node reckons with: that cost, or more
            box = self._inside((low[:width], high[:width]), own)
            kind, told = node["kind"], node.get("charges", {})
            if box is None or (kind == "lost" and self.is_lost(i, box)):
                continue
            within = low[width:], high[width:]
            sides = self.form_sides(forms, within, box, own) if forms else None
            if forms and sides is None:
                continue
            if kind in ("bound", "empty") or told:
                shows = "empty" if kind == "empty" else "bound"
                value = self._leaf(i, shows, told, box, own, empty, sides)
                if not isinstance(value, Q) or value >= cap:
                    continue
                floor = max(floor, value)
            if floor >= least:
                continue
            if "at" not in node:
                least = floor
                continue
            c = node["coordinate"] if kind == "cut" else width + node["form"]
            below, above = self.cut(c, node["at"])
            low, high = box[0] + within[0], box[1] + within[1]
            first, last = list(low), list(high)
            first[c], last[c] = max(low[c], above), min(high[c], below)
            waiting += [(node["low"], (low, last), floor), (node["high"], (first, high), floor)]
        return least

    def _inside(self, outer: Box, cap: End) -> Box | None:
        inner = self.root_box(cap)
        if inner is None:
            return None
        low = [max(a, b) for a, b in zip(inner[0], outer[0], strict=True)]
        high = [min(a, b) for a, b in zip(inner[1], outer[1], strict=True)]
        box = _filled((low, high))
        return self.narrowed(box) if box and self.question.has_grid else box


def _by_prototype(cells: list[Told]) -> dict[int, list[Told]]:
    out: dict[int, list[Told]] = {}
    for item in cells:
        out.setdefault(item["prototype"], []).append(item)
    return out


def _check_tree(nodes: list[Told], parted: tuple[str, ...], keys: tuple[str, str]) -> None:
    """Refuse what is no tree: children stand behind their parents, and have one each."""
    children: set[int] = set()
    for at, node in enumerate(nodes):
        for key in keys if node["kind"] in parted else ():
            if node[key] <= at or node[key] in children:
                raise Refused("the nodes are no tree: a part stands before what it is of")
            children.add(node[key])
    if len(children) != len(nodes) - 1:
        raise Refused("the nodes are no tree: some are parts of nothing")


def _filled(box: Box) -> Box | None:
    """Return the box, or None if it holds nothing."""
    is_empty = any(a > b or a == INF or b == -INF for a, b in zip(*box, strict=True))
    return None if is_empty else box


def _least_sizes(box: Box) -> tuple[Vector, list[int]]:
    """Least absolute change of each coordinate, and its sign where the box tells it."""
    pairs = [*zip(*box, strict=True)]
    least = [Q(max(ZERO, a, -b)) for a, b in pairs]
    return least, [1 if a >= 0 else -1 if b <= 0 else 0 for a, b in pairs]


def _propagate(row: dict[int, Q], right: Q, low: list[End], high: list[End]) -> None:
    """Narrow each side by ``row'delta <= right``, given the others."""
    ends = {c: low[c] if a > 0 else high[c] for c, a in row.items()}
    parts = {c: row[c] * end for c, end in ends.items() if isinstance(end, Q)}
    total, endless = sum(parts.values(), ZERO), len(row) - len(parts)
    for c, a in row.items():
        if endless > (c not in parts):
            continue
        side = rounded((right - total + parts.get(c, ZERO)) / a, a > 0)
        low[c], high[c] = (low[c], min(high[c], side)) if a > 0 else (max(low[c], side), high[c])


# --- Lines and files ----------------------------------------------------------------------------


class Verdict:
    """What has been verified of one line."""

    def __init__(self, cost: End, bound: End, is_told: bool) -> None:
        self.cost, self.bound, self.is_told, self.gap = cost, bound, is_told, _gap(cost, bound)
        self.is_closed = False  # to the tolerance of the question, or to the last digits

    def __str__(self) -> str:
        cost, bound, gap = decimal(self.cost, True), decimal(self.bound, False), self.gap
        if isinstance(self.cost, Q) and isinstance(self.bound, Q):
            gap = _gap(Q(cost), Q(bound))  # that of the printed digits, which is never smaller
        told = " as told" if self.is_told else ""
        return f"cost {cost} bound {bound} gap {decimal(gap, True)}{told}"


def _gap(cost: End, bound: End) -> End:
    """Share of the cost by which a bound falls short of it."""
    if cost <= bound:
        return ZERO
    return (cost - bound) / cost if isinstance(cost, Q) and isinstance(bound, Q) else INF


class Certificate:
    """The header of a file, and what every line is checked against."""

    asks = Asked

    def __init__(self, header: Any, apart: Any = None, seconds: float = 600.0) -> None:
        self.seconds, clock = seconds, Clock(seconds)
        if isinstance(header, dict) and header.get("format") != FORMAT:
            raise Refused(f"the first line is not that of a {FORMAT}")
        told = read("header", header, "the first line", {"clock": clock})
        if told["version"] != VERSION:
            raise Refused(f"version {told['version']} is not known; this is {VERSION}")
        stated = told["model"]
        if isinstance(stated, dict) and "apart" in stated:
            if apart is None:
                raise Refused("the model is kept apart; name its file with --model")
            other = read("model file", apart, "the model's file", {"clock": clock})
            if other["format"] != FORMAT + " model" or other["version"] != VERSION:
                raise Refused("the model's file is of another format or version")
            stated = other["model"]
            if told["model"] != {"apart": fingerprint(stated)}:
                raise Refused("the model's file holds another model: its hash is another")
        self.hashes = {"model": fingerprint(stated), "question": fingerprint(told["question"])}
        self.question = Question(Model(stated, clock), told["question"], clock)

    def read(self, item: Any, clock: Clock | None = None) -> tuple[Told, Asked]:
        """Read one line, and prepare what is asked in it."""
        question, clock = self.question, clock or Clock(self.seconds)
        told: Told = read("line", item, "the line", {**question.known, "clock": clock})
        if told["hashes"] != self.hashes:
            raise Refused("it belongs to another model or question: a hash is another")
        answer, status = told["answer"], told["answer"]["status"]
        has_row = status in ("optimal", "feasible")
        has = {"row": has_row, "cost": has_row, "lower_bound": status != "infeasible"}
        for key, is_there in has.items():
            if (answer[key] is not None) != is_there:
                raise Refused(f"the answer's {key} does not go with its status")
        question.row(answer["row"] or told["input"])
        x, target = question.row(told["input"]), set(told["target"])
        return told, self.asks(question, x, target, told.get("told", False), clock)

    def shown(self, item: Any, clock: Clock | None = None) -> Verdict:
        """Say what one line proves, whatever it claims of its bound."""
        told, asked = self.read(item, clock)
        answer = told["answer"]
        if answer["row"] is None:
            empty = answer["status"] == "infeasible"
            bound = asked.least(told["proof"], INF, empty)
            if empty and bound < INF:
                raise Refused("the proof does not show that there is no answer")
            return Verdict(INF, bound, asked.is_told)
        exact, blur = asked.check_answer(answer["row"], answer["cost"])
        bound = asked.least(told["proof"], answer["cost"], empty=False)
        verdict = Verdict(exact, min(bound, answer["cost"]), asked.is_told)
        is_close = exact - verdict.bound <= max(self.question.tolerance * exact, blur)
        verdict.is_closed = is_close and not (self.question.margin and exact)
        return verdict

    def check(self, item: Any, clock: Clock | None = None) -> Verdict:
        """Check one line: what it proves, and that it claims no more."""
        verdict, answer = self.shown(item, clock), item["answer"]
        if answer["lower_bound"] is not None and answer["lower_bound"] > verdict.bound:
            known = decimal(verdict.bound, False)
            raise Refused(f"the lower bound does not follow from the proof, which shows {known}")
        if answer["status"] == "optimal" and not verdict.is_closed:
            gap = decimal(verdict.gap, True)
            raise Refused(f"it is not shown to be optimal: gap {gap}, or there is a margin")
        return verdict


TROUBLE = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, MemoryError,
           RecursionError)  # fmt: skip


def verdicts(
    lines: Iterator[bytes], apart: Any = None, seconds: float = 600.0
) -> Iterator[tuple[int, Verdict | str]]:
    """Check a file line by line: the number of a line, and what is verified or why it is not."""
    certificate: Certificate | None = None
    at, is_bare = 0, True
    for at, line in enumerate(lines, 1):
        if is_skipped(line):
            continue
        is_bare = is_bare and certificate is None
        try:
            refuse_long(line)
            clock = Clock(seconds)
            if certificate is None:
                certificate = Certificate(parsed(line, clock), apart, seconds)
            else:
                yield at, certificate.check(parsed(line, clock), clock)
        except Refused as error:
            is_other = certificate is None and line.lstrip()[:1] not in (b"{", "{")
            yield at, "this is no certificate file" if is_other else str(error)
        except TROUBLE as error:
            yield at, f"it cannot be read: {type(error).__name__}"
        if certificate is None:
            return
    if certificate is None:
        yield 1, "the file is empty"
    elif is_bare:
        yield at, "there is no answer in it"


def is_skipped(line: bytes) -> bool:
    """Whether a line is blank to its end, and says nothing."""
    return len(line) <= LONGEST_LINE and not line.strip()


def refuse_long(line: bytes) -> None:
    """Refuse a line that was not read to its end: neither is what follows it."""
    if len(line) > LONGEST_LINE:
        raise Refused(f"it is longer than {LONGEST_LINE} bytes")


def short_lines(file: Any) -> Iterator[bytes]:
    """Read lines without making room for more than one of the longest.

    Of a long line that is no object by how it begins, or holds a zero, no more is read.
    """
    while line := file.readline(PIECE):
        parts, size, is_object = [line], len(line), line.lstrip()[:1] in (b"", b"{")
        while line[-1:] != b"\n" and is_object and b"\0" not in line and size <= LONGEST_LINE:
            line = file.readline(PIECE)
            if not line:
                break
            parts.append(line)
            size += len(line)
        yield b"".join(parts)
        if size >= PIECE and line and line[-1:] != b"\n":
            return


def beginning(file: Any) -> bytes:
    """Read a file that is one object, up to its first zero."""
    parts, size = list[bytes](), 0
    while size <= LONGEST_LINE and (part := file.read(PIECE)):
        parts.append(part)
        size += len(part)
        if b"\0" in part:
            break
    return b"".join(parts)


def _limit(text: str) -> float:
    """Read how long one answer may take."""
    try:
        if (seconds := float(text)) > 0:
            return seconds
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"seconds is {text[:40]}; expected a number above 0.")


def main(words: list[str], say: Callable[[str], None] = print) -> int:
    """Check a file; 0 only if every line of it is verified."""
    parser = argparse.ArgumentParser(prog="check_certificate.py", allow_abbrev=False)
    parser.add_argument("file", help="the certificates")
    parser.add_argument("--model", help="the model, where it is kept apart")
    parser.add_argument("--seconds", type=_limit, default=600.0, help="the most for one answer")
    options, is_good = parser.parse_args(words), True
    what, apart = "the model's file", None
    try:
        if options.model:
            with open(options.model, "rb") as file:
                apart = parsed(beginning(file), Clock(options.seconds))
        what = "the file"
        with open(options.file, "rb") as file:
            for at, found in verdicts(short_lines(file), apart, options.seconds):
                is_good = is_good and isinstance(found, Verdict)
                word = "VERIFIED" if isinstance(found, Verdict) else "REFUTED"
                told = " ".join(str(found).split())[:500].encode("utf-8", "backslashreplace")
                say(f"{word} {at} {told.decode('utf-8')}")
    except (OSError, Refused) as error:
        say(f"REFUTED 1 {what} cannot be read: {error}")
        return 1
    return 0 if is_good else 1


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = 130
    except OSError as error:  # nobody reads on, or the disk is full: not all has been said
        status = 1
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"check_certificate.py: {error}\n")
    sys.exit(status)
