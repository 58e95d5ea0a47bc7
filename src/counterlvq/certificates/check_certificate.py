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

Four layers: 1. reading and rational numbers; 2. the question; 3. the least value of a sum over a
box, with positive semidefiniteness shown by an integer LDL'; 4. proofs: shared metrics, trees of
boxes on grids, and local metrics, which differ in nothing but the terms of the sum.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction as Q
from math import isfinite, isqrt, sqrt
from typing import Any

__all__ = ["Certificate", "Refused", "Verdict", "main", "verdicts"]

FORMAT, VERSION = "counterlvq certificate", 1
# What an answer may miss: an equality or a margin, an inequality, a value on a grid, each as a
# share of the numbers that meet in it; and a cost that was added up in doubles.
EQUALITY, INEQUALITY, GRID, COST = Q(1, 2**40), Q(1, 2**46), Q(1, 2**44), Q(1, 2**40)
# Distances that differ by less than this share may be decided by the rounding of a foreign model.
CLOSE = Q(1, 2**30)
ZERO, ONE, HALF = Q(0), Q(1), Q(1, 2)
# Digits, in base two, to which matrices and sides of boxes are rounded, always to the safe side.
BITS = 64
LONGEST_LINE = 1 << 28
Vector = list[Q]
Box = tuple[list[Q | None], list[Q | None]]  # smallest and largest change; None without an end
Terms = dict[tuple[int, int], Q]  # coefficients of delta_i delta_j, i <= j


# --- 1. Reading, and rational numbers -----------------------------------------------------------


class Refused(Exception):  # noqa: N818 - it is the verdict, not a mishap
    """What is wrong with a line, in words."""


def lesser(side: Q | None, other: Q) -> Q:
    """Return the lesser of an upper side, None for no limit, and another number."""
    return other if side is None else min(side, other)


def larger(side: Q | None, other: Q) -> Q:
    """Return the larger of a lower side, None for no limit, and another number."""
    return other if side is None else max(side, other)


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


def parsed(text: str) -> Any:
    """Read one line of JSON; every number becomes the rational number that its double is."""
    try:
        return json.loads(
            text, parse_float=_double, parse_int=_whole, parse_constant=_no_number,
            object_pairs_hook=_no_repeats,
        )  # fmt: skip
    except RecursionError:
        raise Refused("it is nested too deeply") from None
    except ValueError as error:
        raise Refused(f"it is no JSON: {error}") from None


def fields(item: Any, what: str, needed: str, optional: str = "") -> dict[str, Any]:
    """Take an object with these keys; a key that is not known is refused, not passed over."""
    if not isinstance(item, dict):
        raise Refused(f"{what} is no object")
    for key in needed.split():
        if key not in item:
            raise Refused(f"{what} has no {key!r}")
    for key in item:
        if key not in needed.split() and key not in optional.split():
            raise Refused(f"{what} has {key[:40]!r}, which this checker does not know")
    return item


def listed(item: Any, what: str, count: int | None = None) -> list[Any]:
    """Take a list, of a length that is known."""
    if not isinstance(item, list) or (count is not None and len(item) != count):
        raise Refused(f"{what} is no list" + ("" if count is None else f" of {count} items"))
    return item


def number(item: Any, what: str, least: Q | None = None) -> Q:
    """Take a number, of at least some size."""
    if isinstance(item, bool) or not isinstance(item, int | Q):
        raise Refused(f"{what} is no number")
    if least is not None and item < least:
        raise Refused(f"{what} is below {least}")
    return Q(item)


def numbers(item: Any, what: str, count: int | None = None) -> Vector:
    """Take a list of numbers."""
    return [number(value, what) for value in listed(item, what, count)]


def index(item: Any, what: str, count: int) -> int:
    """Take a whole number below `count`."""
    if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < count:
        raise Refused(f"{what} is no whole number from 0 to {count - 1}")
    return item


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
            text = value.encode("utf-8", "surrogatepass")
            digest.update(b"s%d:%s" % (len(text), text))
        elif value is None or isinstance(value, bool):
            digest.update({None: b"n", True: b"t", False: b"f"}[value])
        else:
            digest.update(b"d" + struct.pack(">d", float(value) + 0.0).hex().encode())
    return digest.hexdigest()


def dot(a: Sequence[Q], b: Sequence[Q]) -> Q:
    """Sum of products; terms of zero are skipped."""
    return sum([s * t for s, t in zip(a, b, strict=True) if s and t], ZERO)


def whole(values: Sequence[Q]) -> tuple[list[int], int]:
    """Numerators of doubles over one denominator, a power of two: sums of integers are fast."""
    unit = max((value.denominator for value in values), default=1)
    return [value.numerator * (unit // value.denominator) for value in values], unit


def outwards(value: Q, up: bool) -> Q:
    """Round to `BITS` digits, up or down; numbers with fewer digits stay as they are."""
    return rounded(value, up, BITS)


def rounded(value: Q, up: bool, bits: int) -> Q:
    """Round to so many binary digits, up or down."""
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


def decimal(value: Q, up: bool) -> str:
    """Write with 12 digits, rounded down or up."""
    if not value:
        return "0"
    sign, size = ("-", -value) if value < 0 else ("", value)
    power = (size.numerator.bit_length() - size.denominator.bit_length()) * 30103 // 100000
    while Q(10) ** (power + 1) <= size:
        power += 1
    while Q(10) ** power > size:
        power -= 1
    scaled = size / Q(10) ** (power - 11)
    digits = scaled.numerator // scaled.denominator
    digits += 1 if scaled != digits and up == (value > 0) else 0
    if digits == 10**12:
        digits, power = 10**11, power + 1
    text = f"{digits:012d}"
    if -5 <= power < 12:
        text = "0" * max(0, -power) + text
        point = max(power, 0) + 1
        return sign + (text[:point] + "." + text[point:]).rstrip("0").rstrip(".")
    return f"{sign}{text[0]}.{text[1:]}".rstrip("0").rstrip(".") + f"e{power:+03d}"


# --- 2. The question ----------------------------------------------------------------------------


class Model:
    """Prototypes, labels, metrics, offsets and the map in front: who is nearest, exactly."""

    def __init__(self, item: Any) -> None:
        part = fields(item, "model", "classes labels prototypes metric offsets map")
        self.classes = listed(part["classes"], "classes")
        labels = listed(part["labels"], "labels")
        self.count = len(labels)
        self.labels = [index(label, "a label", len(self.classes)) for label in labels]
        rows = listed(part["prototypes"], "prototypes", self.count)
        if not rows or not listed(rows[0], "a prototype"):
            raise Refused("there are no prototypes")
        self.depth = len(rows[0])
        self.prototypes = [numbers(row, "a prototype", self.depth) for row in rows]
        self.points = [whole(row) for row in self.prototypes]
        self.offsets = self._offsets(part["offsets"])
        self.is_local, self.factors = self._factors(part["metric"])
        self.map = part["map"]

    def _offsets(self, item: Any) -> Vector:
        if item is None:
            return [ZERO] * self.count
        part = fields(item, "offsets", "kind values")
        # Both are added to squared distances; of the second kind only differences mean something.
        if part["kind"] not in ("added to the squared distance", "score up to a common shift"):
            raise Refused(f"offsets of the kind {str(part['kind'])[:40]!r} are not known")
        return numbers(part["values"], "offsets", self.count)

    def _factors(self, item: Any) -> tuple[bool, list[tuple[list[list[int]] | None, int]]]:
        """Factors of the metrics in integers over one denominator; None for the plain one."""
        part = fields(item, "metric", "kind", "factor factors")
        kind = part["kind"]
        if kind == "plain":
            return False, [(None, 1)] * self.count
        if kind == "diagonal":
            entries, unit = whole(numbers(part.get("factor"), "the metric", self.depth))
            rows = [[0] * j + [a] + [0] * (self.depth - 1 - j) for j, a in enumerate(entries)]
            return False, [(rows, unit)] * self.count
        if kind == "shared":
            return False, [self._matrix(part.get("factor"))] * self.count
        if kind == "local":
            each = listed(part.get("factors"), "the metrics", self.count)
            return True, [self._matrix(factor) for factor in each]
        raise Refused(f"a metric of the kind {str(kind)[:40]!r} is not known")

    def _matrix(self, item: Any) -> tuple[list[list[int]], int]:
        rows = [numbers(row, "a metric", self.depth) for row in listed(item, "a metric")]
        flat, unit = whole([value for row in rows for value in row])
        return [flat[k * self.depth : (k + 1) * self.depth] for k in range(len(rows))], unit

    def lifted(self, k: int, away: Vector) -> Vector:
        """``factor_k away``."""
        rows, unit = self.factors[k]
        if rows is None:
            return away
        entries, scale = whole(away)
        return [Q(sum(a * b for a, b in zip(row, entries, strict=True) if a and b), unit * scale)
                for row in rows]  # fmt: skip

    def lowered(self, k: int, image: Vector) -> Vector:
        """``factor_k' image``."""
        rows, unit = self.factors[k]
        if rows is None:
            return image
        entries, scale = whole(image)
        out = [0] * self.depth
        for row, t in zip(rows, entries, strict=True):
            if t:
                out = [s + a * t if a else s for s, a in zip(out, row, strict=True)]
        return [Q(s, unit * scale) for s in out]

    def distance(self, k: int, z: tuple[list[int], int]) -> Q:
        """Squared distance of prototype k, with its offset."""
        (point, own), (values, unit) = self.points[k], z
        scale = max(own, unit)
        a, b = scale // unit, scale // own
        away = [s * a - t * b for s, t in zip(values, point, strict=True)]
        rows, over = self.factors[k]
        if rows is not None:
            away = [sum(s * t for s, t in zip(row, away, strict=True) if s and t) for row in rows]
        return Q(sum(s * s for s in away), (scale * over) ** 2) + self.offsets[k]

    def distances(self, z: Vector) -> Vector:
        """All squared distances."""
        at = whole(z)
        return [self.distance(k, at) for k in range(self.count)]

    def is_copy(self, k: int, of: int) -> bool:
        """Whether two prototypes are as far from everything."""
        same = self.prototypes[k] == self.prototypes[of] and self.offsets[k] == self.offsets[of]
        return same and (not self.is_local or self.factors[k] == self.factors[of])


class Column:
    """One column of the user's table: a real number, a number on a grid, or levels."""

    def __init__(self, item: Any) -> None:
        part = fields(item, "a column", "name kind lower upper", "step parts levels")
        self.levels, self.step = 0, ZERO
        self.lower, self.upper = (
            None if part[key] is None else number(part[key], key) for key in ("lower", "upper")
        )
        if part["kind"] == "levels":
            self.levels = len(listed(part.get("levels"), "levels"))
            if not self.levels:
                raise Refused("a column has no levels")
        elif part["kind"] == "grid":
            parts = number(part.get("parts"), "parts", ONE)
            self.step = number(part.get("step"), "step", ONE) / parts
        elif part["kind"] != "real":
            raise Refused(f"a column of the kind {str(part['kind'])[:40]!r} is not known")

    def value(self, k: int) -> Q:
        """Return the k-th value of the grid: the double next to it."""
        try:
            return Q(float(k * self.step))
        except OverflowError:
            return k * self.step

    def nearest(self, value: Q) -> int | None:
        """Return the number of the grid value that a value counts as, if it does."""
        k = round(value / self.step)
        return k if abs(self.value(k) - value) <= GRID * max(abs(value), self.step) else None


class Form:
    """``(z - center)' matrix (z - center) + linear'z <= value`` on some columns of numbers."""

    def __init__(self, item: Any, width: int, clock: Clock, centred: bool = True) -> None:
        more = "columns center linear value" if centred else ""
        part = fields(item, "a quadratic form", f"kind values {more}", "kind")
        self.columns = list(range(width))
        if centred:
            self.columns = [index(j, "a column", width) for j in listed(part["columns"], "columns")]
        n = len(self.columns)
        if len(set(self.columns)) < n:
            raise Refused("a quadratic form names a column twice")
        self.center = numbers(part["center"], "center", n) if centred else [ZERO] * n
        self.linear = numbers(part["linear"], "linear", n) if centred else [ZERO] * n
        self.value = number(part["value"], "value") if centred else ZERO
        self.matrix: Terms = {}
        self._read(part, n, clock)

    def _read(self, part: dict[str, Any], n: int, clock: Clock) -> None:
        kind, values = part["kind"], listed(part["values"], "values")
        if kind == "diagonal":
            for j, value in enumerate(numbers(values, "values", n)):
                if number(value, "a diagonal entry", ZERO):
                    self.matrix[j, j] = value
            return
        rows = [numbers(row, "values", n) for row in values]
        if kind == "factor":
            for i in range(n):
                for j in range(i, n):
                    entry = dot([row[i] for row in rows], [row[j] for row in rows])
                    if entry:
                        self.matrix[i, j] = entry * (1 if i == j else 2)
            return
        if kind != "matrix" or len(rows) != n:
            raise Refused(f"a quadratic form of the kind {str(kind)[:40]!r} is not known")
        for i in range(n):
            for j in range(i, n):
                if rows[i][j] != rows[j][i]:
                    raise Refused("a matrix is not symmetric")
                if rows[i][j]:
                    self.matrix[i, j] = rows[i][j] * (1 if i == j else 2)
        if not is_semidefinite(whole_matrix(self.matrix, list(range(n)))[0], clock):
            raise Refused("a matrix is not positive semidefinite")

    def at(self, row: Vector) -> Q:
        """Left-hand side less right-hand side."""
        z = [row[j] for j in self.columns]
        away = [a - b for a, b in zip(z, self.center, strict=True)]
        return quadratic(self.matrix, away) + dot(self.linear, z) - self.value


def quadratic(terms: Terms, v: Vector) -> Q:
    """Value of a quadratic form."""
    return sum([a * v[i] * v[j] for (i, j), a in terms.items() if v[i] and v[j]], ZERO)


class Row:
    """``new'y + old'x <= value`` (or ``==``), in coordinates or in columns."""

    def __init__(self, new: dict[int, Q], old: dict[int, Q], value: Q, equality: bool) -> None:
        self.new = {j: a for j, a in new.items() if a}
        self.old = {j: a for j, a in old.items() if a}
        self.value, self.equality = value, equality
        self.when: Rule | None = None  # else it holds everywhere

    def excess(self, y: Vector, x: Vector) -> tuple[Q, Q]:
        """Left-hand side less right-hand side, and the size of the numbers that meet."""
        parts = [a * y[j] for j, a in self.new.items()] + [a * x[j] for j, a in self.old.items()]
        return sum(parts, -self.value), sum(map(abs, parts), abs(self.value))

    def size(self, sizes: Vector) -> Q:
        """Size of the numbers that meet, for values of these sizes."""
        parts = [abs(a) * sizes[j] for side in (self.new, self.old) for j, a in side.items()]
        return sum(parts, abs(self.value))

    def negated(self) -> Row:
        """Return the other half of an equality."""
        new, old = ({j: -a for j, a in part.items()} for part in (self.new, self.old))
        return Row(new, old, -self.value, False)


class Rule:
    """A column has one of some levels."""

    def __init__(self, column: int, levels: frozenset[int]) -> None:
        self.column, self.levels = column, levels


class Question:
    """Cost, constraints and grid, in the columns of the user's table."""

    def __init__(self, model: Model, item: Any, clock: Clock) -> None:
        part = fields(item, "question", "columns cost constraints margin tolerance")
        self.model = model
        self.columns = [Column(each) for each in listed(part["columns"], "columns")]
        self.margin = number(part["margin"], "margin", ZERO)
        self.tolerance = number(part["tolerance"], "tolerance", ZERO)
        self.at_numbers = [j for j, column in enumerate(self.columns) if not column.levels]
        self._read_cost(part["cost"], clock)
        self.constraints: list[Any] = []
        for each in listed(part["constraints"], "constraints"):
            self.constraints.append(self._constraint(each, clock))
        self._read_map(model.map)
        self.has_grid = any(column.levels or column.step for column in self.columns)
        # Where a proof is a tree, bounds are about all inputs that count as answers.
        self.is_loosened = self.has_grid or model.is_local
        self.inverse = Inverse(self.form.matrix, len(self.at_numbers))
        self.metrics: dict[tuple[tuple[int, ...], int], Terms] = {}
        self.normals: dict[tuple[tuple[int, ...], int, int], Vector] = {}

    def _read_cost(self, item: Any, clock: Clock) -> None:
        part = fields(item, "cost", "weights switches quadratic")
        self.weights = [number(w, "a weight", ZERO)
                        for w in listed(part["weights"], "weights", len(self.columns))]  # fmt: skip
        self.switches: dict[int, list[Vector]] = {}
        for each in listed(part["switches"], "switches"):
            told = fields(each, "switches", "column prices")
            j = index(told["column"], "a column", len(self.columns))
            n = self.columns[j].levels
            if j in self.switches:
                raise Refused("a column has prices twice")
            rows = [numbers(row, "prices", n) for row in listed(told["prices"], "prices", n)]
            if any(price < 0 for row in rows for price in row):
                raise Refused("a price is negative")
            self.switches[j] = rows
        for j, column in enumerate(self.columns):
            if column.levels and j not in self.switches:
                raise Refused("a column of levels has no prices")
        nothing = {"kind": "diagonal", "values": [0] * len(self.at_numbers)}
        stated = nothing if part["quadratic"] is None else part["quadratic"]
        self.form = Form(stated, len(self.at_numbers), clock, centred=False)

    def _constraint(self, item: Any, clock: Clock) -> Any:
        kind = item.get("kind") if isinstance(item, dict) else None
        if kind == "linear":
            return self._row(item)
        if kind in ("levels", "stays"):
            return self._rule(item)
        if kind == "quadratic":
            part = fields(item, "a quadratic", "kind form")
            form = Form(part["form"], len(self.columns), clock)
            if any(self.columns[j].levels for j in form.columns):
                raise Refused("a quadratic form is about levels")
            return form
        if kind == "implies":
            part = fields(item, "an implication", "kind when then")
            then = [self._constraint(each, clock) for each in listed(part["then"], "then")]
            rows = [each for each in then if isinstance(each, Row)]
            if then != rows and (len(then) > 1 or not isinstance(then[0], Rule)):
                raise Refused("an implication leads to something that is not known")
            if len({row.equality for row in rows}) > 1:
                raise Refused("an implication mixes equalities and inequalities")
            return self._rule(part["when"]), then
        raise Refused(f"a constraint of the kind {str(kind)[:40]!r} is not known")

    def _row(self, item: Any) -> Row:
        part = fields(item, "a linear constraint", "kind new old value sense")
        sides: list[dict[int, Q]] = []
        for key in ("new", "old"):
            side: dict[int, Q] = {}
            for pair in listed(part[key], key):
                j, a = listed(pair, key, 2)
                if index(j, "a column", len(self.columns)) in side:
                    raise Refused("a linear constraint names a column twice")
                side[j] = number(a, key)
            if any(self.columns[j].levels for j in side):
                raise Refused("a linear constraint is about levels")
            sides.append(side)
        if part["sense"] not in ("<=", "=="):
            raise Refused("a linear constraint is neither <= nor ==")
        return Row(sides[0], sides[1], number(part["value"], "value"), part["sense"] == "==")

    def _rule(self, item: Any) -> Rule:
        part = fields(item, "a rule", "kind column", "allowed")
        j = index(part["column"], "a column", len(self.columns))
        if not self.columns[j].levels:
            raise Refused("a rule about levels names a column of numbers")
        if part["kind"] == "stays":
            return Rule(j, frozenset())
        allowed = [index(code, "a level", self.columns[j].levels)
                   for code in listed(part.get("allowed"), "allowed")]  # fmt: skip
        if part["kind"] != "levels" or not allowed:
            raise Refused("a rule about levels allows none")
        return Rule(j, frozenset(allowed))

    def _read_map(self, item: Any) -> None:
        """Read ``z = offset + sum of parts``: a slope times (y - base), or a vector per level."""
        depth, self.offset = self.model.depth, [ZERO] * self.model.depth
        self.parts: list[tuple[Q, Any]] = []
        if item is None:
            if len(self.columns) != depth or any(column.levels for column in self.columns):
                raise Refused("the columns are not those of the model, and there is no map")
            self.parts = [(ZERO, {j: ONE}) for j in range(depth)]
            return
        told = fields(item, "map", "offset parts")
        self.offset = numbers(told["offset"], "offset", depth)
        for column, each in zip(self.columns, listed(told["parts"], "parts", len(self.columns)),
                                strict=True):  # fmt: skip
            part = fields(each, "a part of the map", "kind weights", "base at")
            if part["kind"] == "levels" and column.levels:
                rows = listed(part["weights"], "weights", column.levels)
                self.parts.append((ZERO, [numbers(row, "weights", depth) for row in rows]))
            elif part["kind"] == "number" and not column.levels:
                base = number(part.get("base"), "base")
                if part.get("at") is not None:
                    slopes = numbers(part["weights"], "weights", 1)
                    self.parts.append((base, {index(part["at"], "at", depth): slopes[0]}))
                else:
                    slopes = numbers(part["weights"], "weights", depth)
                    self.parts.append((base, {j: a for j, a in enumerate(slopes) if a}))
            else:
                raise Refused("a part of the map does not fit its column")

    def row(self, item: Any, what: str) -> Vector:
        """Take a row of the table: numbers, and positions of levels."""
        values = listed(item, what, len(self.columns))
        return [
            Q(index(value, what, column.levels)) if column.levels else number(value, what)
            for value, column in zip(values, self.columns, strict=True)
        ]

    def image(self, y: Vector) -> Vector:
        """Take a row to the space of the model."""
        z = list(self.offset)
        for (base, part), value in zip(self.parts, y, strict=True):
            if isinstance(part, dict):
                for c, slope in part.items():
                    z[c] += slope * (value - base)
            else:
                z = [s + t for s, t in zip(z, part[int(value)], strict=True)]
        return z

    def cost(self, y: Vector, x: Vector) -> Q:
        """Price a change."""
        total = ZERO
        for j, column in enumerate(self.columns):
            if column.levels:
                total += self.switches[j][int(x[j])][int(y[j])] if x[j] != y[j] else ZERO
            else:
                total += self.weights[j] * abs(y[j] - x[j])
        return total + quadratic(self.form.matrix, [y[j] - x[j] for j in self.at_numbers])

    def resolution(self, y: Vector, x: Vector) -> Q:
        """Price eight units of rounding of each value that changes."""
        blur = [Q(1, 2**50) * (abs(y[j]) + abs(x[j])) if y[j] != x[j] else ZERO
                for j in range(len(y))]  # fmt: skip
        flat = sum([self.weights[j] * blur[j] for j in self.at_numbers], ZERO)
        moved = [y[j] - x[j] for j in self.at_numbers]
        blurs = [blur[j] for j in self.at_numbers]
        slope, curve = [ZERO] * len(moved), ZERO
        for (i, j), a in self.form.matrix.items():
            slope[i] += a * moved[j]
            slope[j] += a * moved[i]
            curve += abs(a) * blurs[i] * blurs[j]
        return flat + dot([abs(s) for s in slope], blurs) + curve

    def complaint(self, y: Vector, x: Vector) -> str | None:
        """Say which condition a row breaks by more than rounding, if any."""
        for j, column in enumerate(self.columns):
            for end, sign in ((column.lower, -1), (column.upper, 1)):
                if end is not None and sign * (y[j] - end) > INEQUALITY * (abs(y[j]) + abs(end)):
                    return f"column {j} leaves its range"
            if column.step and y[j] != x[j] and column.nearest(y[j]) is None:
                return f"column {j} is off its grid"
        for n, item in enumerate(self.constraints):
            if self._is_broken(item, y, x):
                return f"constraint {n} does not hold"
        return None

    def _is_broken(self, item: Any, y: Vector, x: Vector) -> bool:
        if isinstance(item, Row):
            excess, size = item.excess(y, x)
            return abs(excess) > EQUALITY * size if item.equality else excess > INEQUALITY * size
        if isinstance(item, Form):
            return item.at(y) > 0
        if isinstance(item, Rule):
            here = int(y[item.column])
            return here not in item.levels if item.levels else here != x[item.column]
        when, then = item
        if int(y[when.column]) not in when.levels:
            return False
        return any(self._is_broken(each, y, x) for each in then)


class Seen:
    """The question seen from one input: coordinates, and what holds of a change in them.

    A number has one coordinate, its value. A column of levels has one for each level but its own,
    which is 1 if the column takes it up and 0 otherwise. `delta` is the change of coordinates.
    """

    def __init__(self, question: Question, x: Vector) -> None:
        self.question, self.model, self.x = question, question.model, x
        self.own = tuple(int(v) if c.levels else -1
                         for v, c in zip(x, question.columns, strict=True))  # fmt: skip
        self.spans: list[range] = []
        self.codes: list[list[int]] = []  # the other levels of each column
        self.start: Vector = []
        for value, column, own in zip(x, question.columns, self.own, strict=True):
            others = [code for code in range(column.levels) if code != own]
            size = len(others) if column.levels else 1
            self.spans.append(range(len(self.start), len(self.start) + size))
            self.codes.append(others)
            self.start += [ZERO] * size if column.levels else [value]
        self.width = len(self.start)
        self.place = {j: self.spans[j][0] for j in question.at_numbers}
        self.grids: list[Column | None] = [None] * self.width
        for j, column in enumerate(question.columns):
            for c in self.spans[j]:
                self.grids[c] = column if column.step else None
        self.is_level = [False] * self.width
        for j, column in enumerate(question.columns):
            for c in self.spans[j] if column.levels else ():
                self.is_level[c] = True
        self.rows = list(self._all_rows())
        self.forms = [item for item in question.constraints if isinstance(item, Form)]
        self._state_cost()
        self.z = question.image(x)
        self.slopes = self._slopes()
        self.distances = self.model.distances(self.z)
        self.pulls: dict[int, Vector] = {}

    def _state_cost(self) -> None:
        question = self.question
        self.w = [ZERO] * self.width
        for j, column in enumerate(question.columns):
            for c, code in zip(self.spans[j], self.codes[j], strict=False):
                self.w[c] = question.switches[j][self.own[j]][code]
            if not column.levels:
                self.w[self.place[j]] = question.weights[j]
        at = [self.place[j] for j in question.at_numbers]
        self.M: Terms = {(at[i], at[j]): a for (i, j), a in question.form.matrix.items()}
        self.at = at

    def _slopes(self) -> list[dict[int, Q]]:
        """Say what a unit of each coordinate adds to the image."""
        out: list[dict[int, Q]] = []
        for j, (_, part) in enumerate(self.question.parts):
            if isinstance(part, dict):
                out.append(part)
                continue
            here = part[self.own[j]]
            for code in self.codes[j]:
                step = [a - b for a, b in zip(part[code], here, strict=True)]
                out.append({c: a for c, a in enumerate(step) if a})
        return out

    def drawn(self, v: Vector) -> Vector:
        """Slopes in coordinates of ``v'z``."""
        return [sum([a * v[c] for c, a in slope.items() if v[c]], ZERO) for slope in self.slopes]

    # Linear conditions, numbered in this order: those of the constraints, then of the columns.

    def _all_rows(self) -> Iterator[Row]:
        for item in self.question.constraints:
            if isinstance(item, Row | Rule):
                yield from self._spread(item)
            elif isinstance(item, tuple):
                when, then = item
                rows = [row for each in then for row in self._spread(each)]
                halves = [Row(row.new, row.old, row.value, False) for row in rows]
                if rows and rows[0].equality:
                    halves += [row.negated() for row in rows]
                for row in halves:
                    row.when = when
                    yield row
        for j, column in enumerate(self.question.columns):
            span = self.spans[j]
            if column.levels:
                yield from (Row({c: -ONE}, {}, ZERO, False) for c in span)
                yield from (Row({c: ONE}, {}, ONE, False) for c in span)
            if len(span) > 1:
                yield Row(dict.fromkeys(span, ONE), {}, ONE, False)
            if column.lower is not None:
                yield Row({span[0]: -ONE}, {}, -column.lower, False)
            if column.upper is not None:
                yield Row({span[0]: ONE}, {}, column.upper, False)

    def _spread(self, item: Row | Rule) -> Iterator[Row]:
        if isinstance(item, Row):
            new, old = ({self.spans[j][0]: a for j, a in part.items()}
                        for part in (item.new, item.old))  # fmt: skip
            yield Row(new, old, item.value, item.equality)
            return
        pairs = [*zip(self.spans[item.column], self.codes[item.column], strict=True)]
        yield from (Row({c: ONE}, {}, ZERO, True) for c, code in pairs if code not in item.levels)
        if item.levels and self.own[item.column] not in item.levels:
            yield Row(dict.fromkeys(self.spans[item.column], ONE), {}, ONE, True)

    def right(self, row: Row) -> Q:
        """Right-hand side of ``new'delta <= right``."""
        return -row.excess(self.start, self.start)[0]

    def holds_in(self, row: Row, box: Box) -> bool:
        """Whether a condition has to hold throughout a box."""
        if row.when is None:
            return True
        column, (low, high) = row.when.column, box
        pairs = [*zip(self.spans[column], self.codes[column], strict=True)]
        if any(code in row.when.levels and _above(low[c]) for c, code in pairs):
            return True
        if self.own[column] not in row.when.levels:
            return False
        return all(_below(high[c]) for c, code in pairs if code not in row.when.levels)

    # The cell of a prototype: its distance less that of a rival is at most -margin.

    def pull(self, k: int) -> Vector:
        """Half the slope of the distance of prototype k, in coordinates."""
        if k not in self.pulls:
            away = [a - b for a, b in zip(self.z, self.model.prototypes[k], strict=True)]
            lifted = self.model.lifted(k, away)
            self.pulls[k] = self.drawn(self.model.lowered(k, lifted))
        return self.pulls[k]

    def slope(self, i: int, k: int) -> Vector:
        """Slope of the distance of i less that of k."""
        if self.model.is_local:
            return [2 * (a - b) for a, b in zip(self.pull(i), self.pull(k), strict=True)]
        known = self.question.normals.get((self.own, i, k))
        if known is None:
            pair = self.model.prototypes[k], self.model.prototypes[i]
            ahead = [a - b for a, b in zip(*pair, strict=True)]
            drawn = self.drawn(self.model.lowered(i, self.model.lifted(i, ahead)))
            if len(self.question.normals) > 100_000:
                self.question.normals.clear()
            known = self.question.normals[self.own, i, k] = [2 * a for a in drawn]
        return known

    def metric(self, k: int) -> Terms:
        """State the quadratic terms of the distance of prototype k, in coordinates."""
        known = self.question.metrics.get((self.own, k))
        if known is not None:
            return known
        depth = self.model.depth
        columns = []
        for slope in self.slopes:
            image = self.model.lifted(k, [slope.get(c, ZERO) for c in range(depth)])
            columns.append(whole(image))
        known = {}
        for i, (a, s) in enumerate(columns):
            for j, (b, t) in enumerate(columns[i:], i):
                entry = sum(p * q for p, q in zip(a, b, strict=True) if p and q)
                if entry:
                    known[i, j] = Q(entry * (1 if i == j else 2), s * t)
        if len(self.question.metrics) > 1000:
            self.question.metrics.clear()
        self.question.metrics[self.own, k] = known
        return known


def _above(low: Q | None) -> bool:
    return low is not None and low > HALF


def _below(high: Q | None) -> bool:
    return high is not None and high < HALF


# --- 3. The least value of a sum over a box -----------------------------------------------------


def is_semidefinite(K: list[list[int]], clock: Clock) -> bool:
    """Whether a symmetric matrix of integers is positive semidefinite.

    LDL' without fractions (Bareiss), the largest pivot first: every number is a minor of K, all
    divisions are exact, and the signs of the pivots decide.
    """
    left, before = list(range(len(K))), 1
    K = [list(row) for row in K]
    while left:
        clock.look()
        if min(K[i][i] for i in left) < 0:
            return False
        p = max(left, key=lambda i: K[i][i])
        pivot = K[p][p]
        left.remove(p)
        if not pivot:
            return not any(K[i][j] for i in [p, *left] for j in [p, *left])
        for n, i in enumerate(left):
            share, row, top = K[i][p], K[i], K[p]
            for j in left[n:]:
                row[j] = K[j][i] = (row[j] * pivot - share * top[j]) // before
        before = pivot
    return True


def whole_matrix(terms: Terms, at: list[int], bits: int = 0) -> tuple[list[list[int]], Q]:
    """Write a form as a matrix of integers over one unit: exact, or rounded to so many bits."""
    place = {j: n for n, j in enumerate(at)}
    kept = {(place[i], place[j]): a / (1 if i == j else 2)
            for (i, j), a in terms.items() if i in place and j in place}  # fmt: skip
    if bits:
        top = max(map(abs, kept.values()), default=ONE)
        size = top.numerator.bit_length() - top.denominator.bit_length()
        unit = Q(2) ** (size + 1 - bits)
    else:
        denominators = [a.denominator for a in kept.values()]
        unit = ONE
        for denominator in denominators:
            unit = min(unit, Q(1, denominator))  # all of them are powers of two
    K = [[0] * len(at) for _ in at]
    for (i, j), a in kept.items():
        entry = a / unit
        K[i][j] = K[j][i] = entry.numerator // entry.denominator
    return K, unit


def _has_root(K: list[list[float]]) -> bool:
    """Whether a Cholesky factorisation in floats comes to an end: a guess, never a proof."""
    n, L = len(K), [list(row) for row in K]
    for p in range(n):
        row = L[p]
        pivot = row[p] - sum([a * a for a in row[:p]])
        if not pivot > 0:
            return False
        length = sqrt(pivot)
        row[p] = length
        for i in range(p + 1, n):
            other = L[i]
            other[p] = other[p] - sum([a * b for a, b in zip(row[:p], other[:p], strict=True)])
            other[p] /= length
    return True


def _guess(K: list[list[int]], on: list[bool], less: float) -> float:
    """About the least shift of some diagonal entries that makes K definite, the others less."""
    top = float(max([abs(a) for row in K for a in row], default=1) or 1)
    scaled = [[a / top for a in row] for row in K]

    def works(t: float) -> bool:
        return _has_root([[a + (t if on[i] else -less) * (i == j) for j, a in enumerate(row)]
                          for i, row in enumerate(scaled)])  # fmt: skip

    low, high = 0.0, 1e-15 * len(K)
    while not works(high) and high < 1e6:
        low, high = high, 16.0 * high
    for _ in range(14 if low else 4):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if works(middle) else (middle, high)
    return high * top


def shift_of(K: list[list[int]], on: list[bool], rest: int, clock: Clock) -> int | None:
    """Integers t with which ``K + t`` (along `on`) and ``- rest`` (elsewhere) is semidefinite.

    K is rounded down by less than one in each entry, so that n more pay for the rounding.
    """
    n, top = len(K), max([abs(a) for row in K for a in row], default=0)
    t = int(_guess(K, on, rest / top if top else 0.0))
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


def least_along(a: Q, b: Q, w: Q, low: Q | None, high: Q | None) -> Q | None:
    """Least value of ``a t^2 + b t + w |t|`` between two ends; None if it has none."""
    least: Q | None = None
    for sign in (1, -1):
        first, last = (low, high) if sign > 0 else (
            None if high is None else -high, None if low is None else -low)  # fmt: skip
        first = ZERO if first is None else max(first, ZERO)
        if last is not None and last < first:
            continue
        slope = sign * b + w
        if last is None and (a < 0 or (a == 0 and slope < 0)):
            return None
        at = [first] if last is None else [first, last]
        if a > 0:
            top = -slope / (2 * a)
            if top > first and (last is None or top < last):
                at.append(top)
        for t in at:
            value = (a * t + slope) * t
            least = value if least is None or value < least else least
    return least


class Sum:
    """``delta'H delta + h'delta + constant + sum_j w_j |delta_j|``."""

    def __init__(self, width: int) -> None:
        self.H: Terms = {}
        self.h, self.w, self.constant = [ZERO] * width, [ZERO] * width, ZERO
        self.is_convex = True  # by its parts; else that has to be shown

    def add(self, share: Q, terms: Terms, slope: Vector | None = None) -> None:
        """Add a share of a quadratic function."""
        for at, a in terms.items():
            self.H[at] = self.H.get(at, ZERO) + share * a
        if slope is not None:
            self.h = [s + share * a if a else s for s, a in zip(self.h, slope, strict=True)]

    def product(self, i: int, a: Q, j: int, b: Q, share: Q) -> None:
        """Add ``share (delta_i - a)(delta_j - b)``."""
        self.is_convex = False
        at = (i, j) if i <= j else (j, i)
        self.H[at] = self.H.get(at, ZERO) + share
        self.h[i] -= share * b
        self.h[j] -= share * a
        self.constant += share * a * b

    def least(self, box: Box, point: Vector, clock: Clock) -> Q | None:
        """Bound the sum from below over a box that is not empty; None where that cannot be done.

        Features that the box holds in place are put in. If nothing ties the others to each
        other, the bound is the least value. Otherwise H is made convex along limited features
        by ``t ((delta_j - center_j) / half_j)^2``, which is at most t, and replaced by its tangent
        at `point`. Along features without a limit some curvature is kept against the slope.
        """
        low, high = box
        free = [j for j in range(len(low)) if low[j] is None or low[j] != high[j]]
        is_free = [False] * len(low)
        for j in free:
            is_free[j] = True
        constant, h, own = self.constant, list(self.h), [ZERO] * len(low)
        ties: Terms = {}
        for (i, j), a in self.H.items():
            if not a:
                continue
            v, u = low[i], low[j]
            if is_free[i] and is_free[j]:
                if i == j:
                    own[i] = a
                ties[i, j] = a
            elif not is_free[i] and not is_free[j]:
                constant += a * (v or ZERO) * (u or ZERO)
            elif is_free[i]:
                h[i] += a * (u or ZERO)
            else:
                h[j] += a * (v or ZERO)
        for j in range(len(low)):
            if not is_free[j]:
                v = low[j] or ZERO
                constant += h[j] * v + self.w[j] * abs(v)
        core = sorted({j for pair in ties if pair[0] != pair[1] for j in pair})
        for j in free:
            if j in core:
                continue
            part = least_along(own[j], h[j], self.w[j], low[j], high[j])
            if part is None:
                return None
            constant += part
        if not core:
            return constant
        ties = {pair: a for pair, a in ties.items() if pair[0] in core}
        part = self._curved(box, point, core, ties, h, clock)
        return None if part is None else constant + part

    def _curved(
        self, box: Box, point: Vector, core: list[int], ties: Terms, h: Vector, clock: Clock
    ) -> Q | None:
        """Bound the part of features that are tied to each other."""
        low, high = box
        if self.is_convex:
            return self._tangent(box, point, core, ties, h)
        p, unit, center, on = {}, {}, {}, []
        for j in core:
            a, b = low[j], high[j]
            on.append(a is not None and b is not None)
            p[j] = point[j] if a is None else max(point[j], a)
            p[j] = p[j] if b is None else min(p[j], b)
            if a is not None and b is not None:
                center[j], unit[j] = (a + b) / 2, outwards((b - a) / 2, True)
            else:
                curve = ties.get((j, j), ZERO)
                if curve <= 0:
                    return None
                unit[j] = outwards(1 / root(curve), False)
        K, scale = whole_matrix({(i, j): a * unit[i] * unit[j] for (i, j), a in ties.items()},
                                core, BITS)  # fmt: skip
        t, kept = _convexity(K, on, clock)
        if t is None:
            return None
        shift, constant = t * scale, ZERO
        slope = dict.fromkeys(core, ZERO)
        for (i, j), a in ties.items():
            constant -= a * p[i] * p[j]
            slope[i] += a * p[j]
            slope[j] += a * p[i]
        for n, j in enumerate(core):
            curve = ZERO
            if on[n]:
                u = (p[j] - center[j]) / unit[j]
                slope[j] += 2 * shift * u / unit[j]
                constant += shift * (u * u - 1) - 2 * shift * u * p[j] / unit[j]
            else:
                curve = kept * scale / unit[j] ** 2
                constant += curve * p[j] ** 2
            along = h[j] + slope[j] - 2 * curve * p[j]
            part = least_along(curve, along, self.w[j], low[j], high[j])
            if part is None:
                return None
            constant += part
        return constant

    def _tangent(self, box: Box, p: Vector, core: list[int], ties: Terms, h: Vector) -> Q | None:
        """Bound the same where H is a sum of squares: any point will do."""
        (low, high), constant, slope = box, ZERO, {j: h[j] for j in core}
        for (i, j), a in ties.items():
            constant -= a * p[i] * p[j]
            slope[i] += a * p[j]
            slope[j] += a * p[i]
        for j in core:
            part = least_along(ZERO, slope[j], self.w[j], low[j], high[j])
            if part is None:
                return None
            constant += part
        return constant


def _convexity(K: list[list[int]], on: list[bool], clock: Clock) -> tuple[int | None, int]:
    """Find a shift along limited features, and the curvature left along the others."""
    if all(on):
        return shift_of(K, on, 0, clock), 0
    top = max([abs(a) for row in K for a in row])
    for power in (2, 6, 12, 20, 30, 40):
        t = shift_of(K, on, top >> power, clock)
        if t is not None and t < 64 * top:
            return t, top >> power
    return None, 0


class Inverse:
    """An upper bound of the inverse of the matrix of the cost, on the columns that it sees."""

    def __init__(self, terms: Terms, width: int) -> None:
        self.terms, self.width = terms, width
        self._bound: tuple[list[int], list[Vector]] | None = None
        self.is_done = False

    def of(self, v: Vector, clock: Clock) -> Q | None:
        """At least ``v' M^-1 v``; None where the cost limits no change along v."""
        bound = self._found(clock)
        if bound is None:
            return None
        at, N = bound
        if any(v[j] for j in range(self.width) if j not in at):
            return None
        part = [v[j] for j in at]
        return sum([a * dot(row, part) for a, row in zip(part, N, strict=True) if a], ZERO)

    def _found(self, clock: Clock) -> tuple[list[int], list[Vector]] | None:
        if not self.is_done:
            at = sorted({j for pair, a in self.terms.items() if a for j in pair})
            diagonal = all(i == j for i, j in self.terms)
            if diagonal:
                N = [[1 / self.terms[i, i] if i == j else ZERO for j in at] for i in at]
                self._bound = at, N
            else:
                found = _inverted(*whole_matrix(self.terms, at), clock)
                self._bound = None if found is None else (at, found)
            self.is_done = True
        return self._bound


def _inverted(K: list[list[int]], unit: Q, clock: Clock) -> list[Vector] | None:
    """Upper bound of the inverse of a definite matrix, whose numbers are short; None without."""
    n, before = len(K), 1
    A = [[*row, *(int(i == j) for j in range(n))] for i, row in enumerate(K)]
    for p in range(n):
        clock.look()
        pivot = A[p][p]
        if pivot <= 0:
            return None  # in this order all leading minors of a definite matrix are positive
        for i in range(n):
            if i != p:
                share = A[i][p]
                A[i] = [(a * pivot - share * b) // before for a, b in zip(A[i], A[p], strict=True)]
        before = pivot
    inverse = [[Q(A[i][n + j], before) / unit for j in range(n)] for i in range(n)]
    sizes = [root(inverse[i][i]) for i in range(n)]
    sizes = [outwards(size, True) for size in sizes]
    digits = 2**BITS
    # With rows and columns of unit size, entries are rounded by less than 1 / digits, and n of
    # these on the diagonal are more than all of them.
    out = []
    for i in range(n):
        row = []
        for j in range(n):
            entry = inverse[i][j] / (sizes[i] * sizes[j]) * digits
            rounded = entry.numerator // entry.denominator + (n + 1 if i == j else 0)
            row.append(Q(rounded, digits) * sizes[i] * sizes[j])
        out.append(row)
    return out


# --- 4. Proofs ----------------------------------------------------------------------------------

CHARGES = "rivals rows quadratics low high cross share signs from_low from_high grid point"


class Asked:
    """One line: an input, a target, an answer, and what its proof may rest on."""

    def __init__(self, question: Question, x: Vector, target: set[int], clock: Clock) -> None:
        self.question, self.model, self.x, self.clock = question, question.model, x, clock
        self.seen = Seen(question, x)
        labels = question.model.labels
        self.targets = [k for k, label in enumerate(labels) if label in target]
        self.rivals = [k for k, label in enumerate(labels) if label not in target]
        self.is_rival = [label not in target for label in labels]
        self.margin, self.is_told = question.margin, False
        self.sides = self._sides()
        self.slacks = self._slacks()
        self.roots: dict[Q | None, Box | None] = {}

    # The answer.

    def check_answer(self, y: Vector, cost: Q) -> Q:
        """Return the exact cost of an answer that is one."""
        question = self.question
        broken = question.complaint(y, self.x)
        if broken:
            raise Refused(f"the answer is none: {broken}")
        exact = question.cost(y, self.x)
        if abs(exact - cost) > COST * exact + question.resolution(y, self.x):
            raise Refused(f"the answer costs {decimal(exact, False)}, not what is claimed")
        scores = self.model.distances(question.image(y))
        own = min(scores[k] for k in self.targets)
        other = min([scores[k] for k in self.rivals], default=None)
        if other is None:
            return exact
        if self.winner(scores) in self.targets:
            slack = EQUALITY * (own + self.margin)
            if self.margin and y != self.x and other - own < self.margin - slack:
                raise Refused("the answer does not keep the margin")
            return exact
        if not self.is_told or own - other > CLOSE * own:
            raise Refused("the answer does not have a wished-for label")
        return exact

    def winner(self, scores: Vector) -> int:
        """Return the first of the nearest prototypes."""
        return min(range(len(scores)), key=lambda k: (scores[k], k))

    # Boxes of changes.

    def _sides(self) -> Box:
        """Keep what conditions on one coordinate leave."""
        seen = self.seen
        low: list[Q | None] = [None] * seen.width
        high: list[Q | None] = [None] * seen.width
        for row in seen.rows:
            if len(row.new) != 1 or row.when is not None:
                continue
            ((c, a),) = row.new.items()
            end = seen.right(row) / a
            if row.equality or a > 0:
                high[c] = lesser(high[c], end)
            if row.equality or a < 0:
                low[c] = larger(low[c], end)
        for c, (first, last) in enumerate(zip(list(low), list(high), strict=True)):
            if not self.question.is_loosened or first is None or last is None:
                continue
            if first > last:
                x = seen.start[c]
                size = max(abs(first + x), abs(last + x)) + abs(x)
                if first - last <= INEQUALITY * size:  # they touch, but for rounding
                    low[c], high[c] = last, first
        return low, high

    def _slacks(self) -> list[Q]:
        """By how much each linear condition gives way: nothing, or what an answer may miss.

        The size of a value is the largest that conditions on it alone leave, or the input's.
        """
        seen = self.seen
        if not self.question.is_loosened:
            return [ZERO] * len(seen.rows)
        sizes = []
        for value, a, b in zip(seen.start, *self.sides, strict=True):
            ends = [] if a is None or b is None else [abs(value + a), abs(value + b)]
            sizes.append(max([abs(value), *ends]))
        return [(EQUALITY if row.equality else INEQUALITY) * row.size(sizes)
                for row in seen.rows]  # fmt: skip

    def root_box(self, cap: Q | None) -> Box | None:
        """Box of all changes that cost at most `cap`; None if it is empty."""
        if cap not in self.roots:
            low, high = list(self.sides[0]), list(self.sides[1])
            for c in range(self.seen.width):
                far = self._reach(c, cap)
                if far is not None:
                    _narrow(low, high, c, -far, far)
            for form in self.seen.forms if self.question.is_loosened else ():
                self._around(form, low, high)
            box = (low, high)
            self.roots[cap] = self.narrowed(box) if self.question.is_loosened else _checked(box)
        return self.roots[cap]

    def _reach(self, c: int, cap: Q | None) -> Q | None:
        """How far a change of cost at most `cap` can go along one coordinate."""
        if cap is None:
            return None
        # Rounded up to 16 digits of two: points of tangency are those of the box for that cost.
        seen, far, cap = self.seen, None, rounded(cap, True, 16)
        if seen.w[c] > 0:
            far = outwards(cap / seen.w[c], True)
        if any(c in pair for pair in seen.M) or c in seen.at:
            unit = [ONE if seen.at[n] == c else ZERO for n in range(len(seen.at))]
            stretch = self.question.inverse.of(unit, self.clock) if any(unit) else None
            if stretch is not None:
                wide = outwards(root(cap * stretch), True)
                far = wide if far is None else min(far, wide)
        return far

    def _around(self, form: Form, low: list[Q | None], high: list[Q | None]) -> None:
        """Keep the box around an ellipsoid; what has slopes beside the square has none here."""
        if any(form.linear) or not form.matrix:
            return
        inverse = Inverse(form.matrix, len(form.columns))
        for n, j in enumerate(form.columns):
            stretch = inverse.of([ONE if m == n else ZERO for m in range(len(form.columns))],
                                 self.clock)  # fmt: skip
            if stretch is not None:
                far = outwards(root(max(form.value, ZERO) * stretch), True)
                away = form.center[n] - self.x[j]
                _narrow(low, high, self.seen.place[j], away - far, away + far)

    def narrowed(self, box: Box) -> Box | None:
        """Keep of a box what linear conditions and the grid leave; None if that is nothing."""
        seen = self.seen
        low, high = list(box[0]), list(box[1])
        for _ in range(12):
            before = list(low), list(high)
            self._on_grid(low, high)
            for row, slack in zip(seen.rows, self.slacks, strict=True):
                if len(row.new) < 2 and row.when is None:
                    continue
                if not seen.holds_in(row, (low, high)):
                    continue
                right = seen.right(row)
                _propagate(row.new, right + slack, low, high)
                if row.equality:
                    _propagate({c: -a for c, a in row.new.items()}, slack - right, low, high)
            self._on_grid(low, high)
            if _checked((low, high)) is None:
                return None
            if (low, high) == before:
                break
        return low, high

    def _on_grid(self, low: list[Q | None], high: list[Q | None]) -> None:
        """Move sides inwards to values of the grid, or to the input's own."""
        for c in range(self.seen.width):
            if self.seen.grids[c] is None and not self.seen.is_level[c]:
                continue
            first, last = low[c], high[c]
            low[c] = None if first is None else self._tick(c, first, 1)
            high[c] = None if last is None else self._tick(c, last, -1)

    def _tick(self, c: int, delta: Q, way: int) -> Q:
        """Find the first change from `delta` on, up or down, that ends on the grid."""
        column, start = self.seen.grids[c], self.seen.start[c]
        if column is None:  # a level: 0 or 1
            return Q(-((-delta).__floor__()) if way > 0 else delta.__floor__())
        ends = [delta + start]
        k = round(ends[0] / column.step)
        near = sorted({column.value(k + n) for n in (-2, -1, 0, 1, 2)} | self._own(c))
        beyond = [v for v in near if (v >= ends[0] if way > 0 else v <= ends[0])]
        return (min(beyond) if way > 0 else max(beyond)) - start

    def _own(self, c: int) -> set[Q]:
        """Return the value of the input, which may stay wherever it lies."""
        return set() if self.seen.grids[c] is None else {self.seen.start[c]}

    def cut(self, box: Box, c: int, at: Q) -> tuple[Box, Box]:
        """Cut across one coordinate; between two values of a grid there is nothing."""
        below = above = at
        if self.seen.grids[c] is not None or self.seen.is_level[c]:
            below = self._tick(c, at, -1)
            above = self._tick(c, below + Q(1, 2**1100), 1)
        low, high = box
        first, last = low[:], high[:]
        last[c] = lesser(last[c], below)
        first[c] = larger(first[c], above)
        return (low, last), (first, high)

    # Bounds.

    def charged(self, i: int, told: dict[str, Any], box: Box, cap: Q | None) -> Sum:
        """Sum what is charged for: each part is at most 0 for every change of the cell."""
        seen, out = self.seen, Sum(self.seen.width)
        for k, y in self._rivals(told):
            out.add(y, {}, seen.slope(i, k))
            if self.model.is_local:
                out.is_convex = False
                out.add(y, seen.metric(i))
                out.add(-y, seen.metric(k))
            lead = seen.distances[k] - seen.distances[i]
            out.constant -= y * (lead - self.margin)
        for n, y in _pairs(told, "rows", len(seen.rows)):
            row = seen.rows[n]
            if (y < 0 and not row.equality) or not seen.holds_in(row, box):
                continue
            for c, a in row.new.items():
                out.h[c] += y * a
            out.constant -= y * seen.right(row) + abs(y) * self.slacks[n]
        for n, y in _pairs(told, "quadratics", len(seen.forms)):
            if y > 0:
                self._add_form(out, seen.forms[n], y)
        self._add_products(out, told, box)
        self._add_grid(out, told, box)
        if cap is not None:
            self._add_cost_products(out, told, box, cap)
            self._add_ball_products(out, told, box, cap)
        return out

    def _rivals(self, told: dict[str, Any]) -> list[tuple[int, Q]]:
        pairs = _pairs(told, "rivals", self.model.count)
        if not all(self.is_rival[k] for k, _ in pairs):
            raise Refused("a prototype of a wished-for label is charged for as a rival")
        return [(k, y) for k, y in pairs if y > 0]

    def _add_form(self, out: Sum, form: Form, y: Q) -> None:
        at = [self.seen.place[j] for j in form.columns]
        here = [self.x[j] - b for j, b in zip(form.columns, form.center, strict=True)]
        terms: Terms = {}
        for (i, j), a in form.matrix.items():
            pair = (at[i], at[j]) if at[i] <= at[j] else (at[j], at[i])
            terms[pair] = terms.get(pair, ZERO) + a
            out.h[at[i]] += y * a * here[j]
            out.h[at[j]] += y * a * here[i]
        for n, c in enumerate(at):
            out.h[c] += y * form.linear[n]
        out.add(y, terms)
        out.constant += y * form.at(self.x)

    def _add_products(self, out: Sum, told: dict[str, Any], box: Box) -> None:
        """Take off products of distances to sides of the box, which are not negative."""
        low, high = box
        for key, first, second, sign in (
            ("low", low, low, -1), ("high", high, high, -1), ("cross", low, high, 1),
        ):  # fmt: skip
            for i, j, y in _triples(told, key, self.seen.width):
                a, b = first[i], second[j]
                if y > 0 and a is not None and b is not None:
                    out.product(i, a, j, b, sign * y)

    def _add_cost_products(self, out: Sum, told: dict[str, Any], box: Box, cap: Q) -> None:
        """Take off ``(cap - sum_l w_l |delta_l|) (|delta_j| - least_j)`` times a share."""
        seen, width = self.seen, self.seen.width
        share = dict(_pairs(told, "share", width))
        share = {j: s for j, s in share.items() if s > 0}
        if not share:
            return
        signs = {(i, j): s for i, j, s in _triples(told, "signs", width)}
        least, sign = _least_sizes(box)
        spent = sum([s * least[j] for j, s in share.items()], ZERO)
        weighed = [c for c in range(width) if seen.w[c]]
        out.is_convex = False
        pairs: Terms = {}
        for j, s in share.items():
            for c in weighed:
                at = (j, c) if j <= c else (c, j)
                pairs[at] = pairs.get(at, ZERO) + s * seen.w[c]
        for (i, j), size in pairs.items():
            known = 1 if i == j else sign[i] * sign[j]
            given = signs.get((i, j), ZERO)
            value = known * size if known else max(-size, min(size, given))
            out.H[i, j] = out.H.get((i, j), ZERO) + value
        for j, s in share.items():
            out.w[j] -= cap * s
        for c in weighed:
            out.w[c] -= seen.w[c] * spent
        out.constant += cap * spent

    def _add_ball_products(self, out: Sum, told: dict[str, Any], box: Box, cap: Q) -> None:
        """Take off ``(r + a'delta)`` times the distance to a side, for vectors a.

        With r at least the root of ``left * a' M^-1 a`` neither factor is negative, where `left` is
        what absolute changes leave of the cost.
        """
        if "from_low" not in told and "from_high" not in told:
            return
        seen = self.seen
        least, _ = _least_sizes(box)
        left = cap - dot(seen.w, least)
        if left <= 0:
            return
        for key, side, sign in (("from_low", box[0], 1), ("from_high", box[1], -1)):
            for pair in listed(told.get(key, []), key):
                j, given = listed(pair, key, 2)
                c, end = index(j, key, seen.width), side[index(j, key, seen.width)]
                a = numbers(given, key, len(seen.at))
                stretch = self.question.inverse.of(a, self.clock)
                if end is None or stretch is None:
                    continue
                r = outwards(root(left * stretch), True)
                for n, d in enumerate(seen.at):
                    if a[n]:
                        out.product(d, ZERO, c, end, -sign * a[n])
                out.h[c] -= sign * r
                out.constant += sign * r * end

    def _add_grid(self, out: Sum, told: dict[str, Any], box: Box) -> None:
        """Take off ``(delta - a)(delta - b)`` for neighbours on a grid, and products of levels.

        The neighbours are those around no change, or those at an end of the box.
        """
        low, high = box
        for item in listed(told.get("grid", []), "grid"):
            kind, *rest = listed(item, "grid")
            if kind == "pair":
                i, j = (
                    index(value, "grid", self.seen.width) for value in listed(rest, "grid", 3)[:2]
                )
                y = number(rest[2], "grid")
                if y > 0 and i != j and any(i in span and j in span and self.seen.is_level[i]
                                            for span in self.seen.spans):  # fmt: skip
                    out.product(min(i, j), ZERO, max(i, j), ZERO, y)
                continue
            c, y = (
                index(listed(rest, "grid", 2)[0], "grid", self.seen.width),
                number(rest[1], "grid"),
            )
            if kind not in ("first", "last"):
                raise Refused("a product on a grid is of a kind that is not known")
            if self.seen.grids[c] is None and not self.seen.is_level[c]:
                raise Refused("a product on a grid names a coordinate without one")
            ends = self._neighbours(c, kind == "first", low[c], high[c])
            if y > 0 and ends is not None:
                out.product(c, ends[0], c, ends[1], -y)

    def _neighbours(self, c: int, first: bool, low: Q | None, high: Q | None) -> list[Q] | None:
        tiny = Q(1, 2**1100)
        inside = low is not None and high is not None and low < 0 < high
        inside = inside or (low is None and (high is None or high > 0)) or (
            high is None and low is not None and low < 0)  # fmt: skip
        if inside:
            here = self._tick(c, ZERO, -1 if first else 1)
        else:
            side = low if first else high
            if side is None:
                return None
            here = side
        other = self._tick(c, here + tiny, 1) if first else self._tick(c, here - tiny, -1)
        # The input's own value and the one next to it stand for the same.
        return sorted([here, other]) if here != other else None

    def bound(
        self, i: int, told: dict[str, Any], box: Box, cap: Q | None, with_cost: bool
    ) -> tuple[Q | None, dict[str, Any]]:
        """Least of what is charged, with the cost or without, over a box; and the multipliers.

        These are the ones that were given, or corrected ones where a box has no end.
        """
        seen = self.seen
        total = self.charged(i, told, box, cap)
        if with_cost:
            total.add(ONE, seen.M)
            total.w = [a + b for a, b in zip(total.w, seen.w, strict=True)]
        point = self._point(told)
        least = total.least(box, point, self.clock)
        if least is None and total.is_convex:
            corrected = self._corrected(i, told, total, point, box)
            if corrected is not None:
                return self.bound(i, corrected, box, cap, with_cost)
        return least, told

    def _point(self, told: dict[str, Any]) -> Vector:
        given = told.get("point")
        return [ZERO] * self.seen.width if given is None else numbers(given, "point",
                                                                      self.seen.width)  # fmt: skip

    def _corrected(
        self, i: int, told: dict[str, Any], total: Sum, p: Vector, box: Box
    ) -> dict[str, Any] | None:
        """Correct multipliers and point so that nothing falls where a box has no end.

        There the charged conditions have to cancel exactly, which numbers of a solver never do.
        Those that may have either sign take the correction first, then the largest.
        """
        if told.get("corrected", 0) >= 4:
            return None
        seen, (low, high) = self.seen, box
        # What is held in place is put in: there the point is where it is held.
        p = [a if a is not None and a == b else v for v, a, b in zip(p, low, high, strict=True)]
        slope = list(total.h)
        for (c, d), a in total.H.items():
            slope[c] += a * p[d]
            slope[d] += a * p[c]
        loose = [c for c, s in enumerate(slope) if (low[c] is None and s > total.w[c])
                 or (high[c] is None and -s > total.w[c])]  # fmt: skip
        loose = sorted({*loose, *told.get("loose", ())})
        if not loose or len(loose) > 60:
            return None
        unknowns: list[tuple[bool, Q, str, int, Vector]] = []
        for c in range(seen.width):
            if low[c] is not None and low[c] == high[c]:
                continue
            column = [ZERO] * seen.width
            for (d, e), a in total.H.items():
                if c in (d, e):
                    column[d if e == c else e] += a * (2 if d == e else 1)
            if any(column):
                unknowns.append((True, ONE, "point", c, column))
        for k, y in self._rivals(told):
            unknowns.append((False, y, "rivals", k, seen.slope(i, k)))
        for n, y in _pairs(told, "rows", len(seen.rows)):
            row = seen.rows[n]
            if y > 0 or (y < 0 and row.equality):
                column = [row.new.get(c, ZERO) for c in range(seen.width)]
                unknowns.append((row.equality, abs(y), "rows", n, column))
        unknowns.sort(key=lambda item: (not item[0], -item[1]))
        goal = [(total.w[c] if slope[c] > 0 else -total.w[c]) - slope[c] for c in loose]
        goal = [ZERO if abs(slope[c]) <= total.w[c] else g
                for c, g in zip(loose, goal, strict=True)]  # fmt: skip
        lines = [[item[4][c] for item in unknowns] + [g] for c, g in zip(loose, goal, strict=True)]
        step = _solved(lines, self.clock)
        if step is None:
            return None
        out = {**told, "point": list(p), "loose": loose, "corrected": told.get("corrected", 0) + 1}
        for key in ("rivals", "rows"):
            out[key] = [list(pair) for pair in told.get(key, [])]
        for (_, _, key, at, _), by in zip(unknowns, step, strict=True):
            if key == "point":
                out["point"][at] += by
                continue
            for pair in out[key]:
                if pair[0] == at:
                    pair[1] += by
                    if pair[1] < 0 and not (key == "rows" and seen.rows[at].equality):
                        return None
        return out

    def is_lost(self, i: int, box: Box) -> bool:
        """Whether a prototype wins nowhere in a box: an earlier rival is as near, or one is nearer.

        Under a shared metric; or the box is one row, and the model decides.
        """
        if not self.margin and not self.model.is_local:
            for k in self.rivals:
                total = Sum(self.seen.width)
                total.add(ONE, {}, self.seen.slope(i, k))
                total.constant = self.seen.distances[i] - self.seen.distances[k]
                least = total.least(box, [], self.clock)
                if least is not None and (least > 0 or (least == 0 and k < i and not self.is_told)):
                    return True
        rows = self._rows_of(box)
        return bool(rows) and all(self._says_otherwise(y) for y in rows)

    def _rows_of(self, box: Box) -> list[Vector]:
        """All rows of the table that a box of one point stands for; none if it is wider."""
        low, high = box
        choices: list[list[Q]] = []
        for c in range(self.seen.width):
            a, b = low[c], high[c]
            if a is None or b is None:
                return []
            values = [a + self.seen.start[c]]
            if a != b:
                column = self.seen.grids[c]
                ends = [v + self.seen.start[c] for v in (a, b)]
                if column is None or column.nearest(ends[0]) != column.nearest(ends[1]):
                    return []
                values = ends
            choices.append(values)
        if sum(len(values) > 1 for values in choices) > 4:
            return []
        points: list[Vector] = [[]]
        for values in choices:
            points = [[*point, value] for point in points for value in values]
        return [self._outer(point) for point in points]

    def _outer(self, point: Vector) -> Vector:
        row = []
        for j, column in enumerate(self.question.columns):
            if not column.levels:
                row.append(point[self.seen.place[j]])
                continue
            taken = [code for c, code in zip(self.seen.spans[j], self.seen.codes[j], strict=True)
                     if point[c] == 1]  # fmt: skip
            row.append(Q(taken[0] if taken else self.seen.own[j]))
        return row

    def _says_otherwise(self, y: Vector) -> bool:
        """Whether the model gives a row no wished-for label, or a foreign one is said not to."""
        scores = self.model.distances(self.question.image(y))
        own = min([scores[k] for k in self.targets])
        other = min([scores[k] for k in self.rivals], default=None)
        if other is None:
            return False
        if self.margin and other - own < self.margin:
            return True
        return self.winner(scores) not in self.targets or (
            self.is_told and other - own <= CLOSE * other)  # fmt: skip

    # Cells.

    def least(self, proof: Any, cap: Q | None, empty: bool) -> Q | None:
        """Cost that no answer undercuts, or None if there is none (at a cost up to `cap`).

        With `empty`, only what shows that there is none counts.
        """
        entries: dict[int, list[dict[str, Any]]] = {}
        for item in listed(fields(proof, "proof", "cells")["cells"], "cells"):
            if not isinstance(item, dict):
                raise Refused("a cell is no object")
            i = index(item.get("prototype"), "a prototype", self.model.count)
            if self.is_rival[i]:
                raise Refused("a cell is that of a prototype without a wished-for label")
            entries.setdefault(i, []).append(item)
        found: Q | None = None
        for i in self.targets if self.rivals else list(entries)[:1] or self.targets[:1]:
            if i not in entries and self._never_wins(i):
                continue
            own: Q | None = ZERO
            for item in entries.get(i, []):
                self.clock.look()
                value = self._cell(i, item, cap, empty)
                own = None if value is None or own is None else max(own, value)
            if own is not None:
                found = own if found is None else min(found, own)
        return found

    def _never_wins(self, i: int) -> bool:
        """Whether an earlier prototype is as near everywhere; its own cell is looked at."""
        if self.margin or self.is_told:
            return False
        return any(self.model.is_copy(i, k) for k in range(i))

    def _cell(self, i: int, item: dict[str, Any], cap: Q | None, empty: bool) -> Q | None:
        kind = item.get("kind")
        if kind == "single":
            fields(item, "a cell", "prototype kind rival")
            k = index(item["rival"], "a rival", self.model.count)
            if not self.is_rival[k]:
                raise Refused("a prototype of a wished-for label is named as a rival")
            if self.model.is_local:
                raise Refused("a cell of a local metric cannot be ruled out by one slope")
            value = self._single(i, k)
            return ZERO if empty and value is not None else value
        if kind in ("bound", "empty"):
            fields(item, "a cell", "prototype kind", CHARGES)
            box = self.root_box(cap)
            if box is None:
                return None
            return self._leaf(i, kind, item, box, cap, empty)
        if kind == "tree":
            fields(item, "a cell", "prototype kind nodes")
            return self._tree(i, listed(item["nodes"], "nodes"), cap, empty)
        raise Refused(f"a cell of the kind {str(kind)[:40]!r} is not known")

    def _leaf(
        self, i: int, kind: str, told: dict[str, Any], box: Box, cap: Q | None, empty: bool
    ) -> Q | None:
        if kind == "bound":
            if empty:
                return ZERO
            value, _ = self.bound(i, told, box, cap, with_cost=True)
            value = ZERO if value is None else max(ZERO, value)
            return None if cap is not None and value > cap else value
        value, _ = self.bound(i, told, box, cap, with_cost=False)
        if value is None or value < 0:
            return ZERO
        # Where an earlier rival is charged for, it has to be beaten, and not only tied with.
        strict = not self.margin and not self.is_told and any(k < i for k, _ in self._rivals(told))
        return None if value > 0 or strict else ZERO

    def _single(self, i: int, k: int) -> Q | None:
        """Cost of overtaking one rival: what is missing over what a unit of cost can gain."""
        seen = self.seen
        behind = seen.distances[i] - seen.distances[k] + self.margin
        if behind <= 0:
            return ZERO
        low, high = self.sides
        n = [ZERO if low[c] == high[c] == 0 else s for c, s in enumerate(seen.slope(i, k))]
        if not any(n):
            return None  # nothing that may change gains on the rival: the cell is empty
        if seen.M:
            if any(n[c] for c in range(seen.width) if c not in seen.at):
                return ZERO
            gain = self.question.inverse.of([n[c] for c in seen.at], self.clock)
            return ZERO if not gain else behind * behind / gain
        if any(s and not w for s, w in zip(n, seen.w, strict=True)):
            return ZERO
        return behind / max(abs(s) / w for s, w in zip(n, seen.w, strict=True) if s)

    # Trees.

    def _tree(self, i: int, nodes: list[Any], cap: Q | None, empty: bool) -> Q | None:
        """Least bound over the parts that are left whole: they hold all cheaper changes."""
        self._check_tree(nodes)
        whole_box: Box = ([None] * self.seen.width, [None] * self.seen.width)
        least = cap
        waiting: list[tuple[int, Box, Q]] = [(0, whole_box, ZERO)]
        while waiting:
            self.clock.look()
            at, outer, floor = waiting.pop()
            node = nodes[at]
            own = self._node_cap(node, cap)
            box = self._inside(outer, own)
            if box is None:
                continue
            kind, told = node["kind"], node.get("charges", {})
            if kind == "lost":
                if self.is_lost(i, box):
                    continue
            elif kind in ("bound", "empty") or told:
                value = self._leaf(i, "bound" if kind == "cut" else kind, told, box, own, empty)
                if value is None or (cap is not None and value >= cap):
                    continue
                floor = max(floor, value)
            if least is not None and floor >= least:
                continue
            if kind != "cut":
                least = floor
                continue
            below, above = self.cut(box, node["coordinate"], number(node["at"], "at"))
            waiting += [(node["low"], below, floor), (node["high"], above, floor)]
        return least

    def _check_tree(self, nodes: list[Any]) -> None:
        """Refuse what is no tree: children stand behind their parents, and have one each."""
        count, seen = len(nodes), set()
        for at, item in enumerate(nodes):
            kind = item.get("kind") if isinstance(item, dict) else None
            if kind == "cut":
                node = fields(item, "a node", "kind coordinate at low high", "cap charges")
                index(node["coordinate"], "a coordinate", self.seen.width)
                for child in (index(node[key], "a node", count) for key in ("low", "high")):
                    if child <= at or child in seen:
                        raise Refused("the nodes are no tree: a part stands before what it is of")
                    seen.add(child)
            elif kind in ("bound", "empty", "lost", "open"):
                node = fields(item, "a node", "kind", "cap charges")
            else:
                raise Refused(f"a node of the kind {str(kind)[:40]!r} is not known")
            fields(node.get("charges", {}), "charges", "", CHARGES)
        if not count or len(seen) != count - 1:
            raise Refused("the nodes are no tree: some are parts of nothing")

    def _node_cap(self, node: dict[str, Any], cap: Q | None) -> Q | None:
        """Return the cost that a node reckons with: that of the answer, or more."""
        if cap is None or ("cap" in node and node["cap"] is None):
            return None
        return max(cap, number(node.get("cap", ZERO), "cap"))

    def _inside(self, outer: Box, cap: Q | None) -> Box | None:
        inner = self.root_box(cap)
        if inner is None:
            return None
        low, high = list(inner[0]), list(inner[1])
        for c in range(self.seen.width):
            _narrow(low, high, c, outer[0][c], outer[1][c])
        box = _checked((low, high))
        return box if box is None or not self.question.has_grid else self.narrowed(box)


def _least_sizes(box: Box) -> tuple[Vector, list[int]]:
    """Least absolute change of each coordinate, and its sign where the box tells it."""
    least, sign = [], []
    for a, b in zip(*box, strict=True):
        sign.append(1 if a is not None and a >= 0 else -1 if b is not None and b <= 0 else 0)
        least.append(max(ZERO, ZERO if a is None else a, ZERO if b is None else -b))
    return least, sign


def _pairs(told: dict[str, Any], key: str, count: int) -> list[tuple[int, Q]]:
    """Read multipliers by position; each position stands once."""
    out = {}
    for pair in listed(told.get(key, []), key):
        n, y = listed(pair, key, 2)
        if index(n, key, count) in out:
            raise Refused(f"{key} names a position twice")
        out[n] = number(y, key)
    return list(out.items())


def _triples(told: dict[str, Any], key: str, count: int) -> Iterator[tuple[int, int, Q]]:
    for triple in listed(told.get(key, []), key):
        i, j, y = listed(triple, key, 3)
        yield index(i, key, count), index(j, key, count), number(y, key)


def _narrow(low: list[Q | None], high: list[Q | None], c: int, a: Q | None, b: Q | None) -> None:
    """Keep what lies between two ends."""
    mine, yours = low[c], high[c]
    if a is not None:
        low[c] = a if mine is None else max(mine, a)
    if b is not None:
        high[c] = b if yours is None else min(yours, b)


def _checked(box: Box) -> Box | None:
    """Return the box, or None if two sides have crossed."""
    for a, b in zip(*box, strict=True):
        if a is not None and b is not None and a > b:
            return None
    return box


def _propagate(row: dict[int, Q], right: Q, low: list[Q | None], high: list[Q | None]) -> None:
    """Narrow each side by ``row'delta <= right``, given the others."""
    least = {c: low[c] if a > 0 else high[c] for c, a in row.items()}
    missing = [c for c, end in least.items() if end is None]
    total = sum([row[c] * end for c, end in least.items() if end is not None], ZERO)
    for c, a in row.items():
        if missing and missing != [c]:
            continue
        end = least[c]
        side = (right - total + (ZERO if end is None else a * end)) / a
        side = outwards(side, a > 0)
        _narrow(low, high, c, None if a > 0 else side, side if a > 0 else None)


def _solved(rows: list[Vector], clock: Clock) -> Vector | None:
    """Solve linear equations, right-hand sides last, in the first unknowns that will do."""
    count = len(rows[0]) - 1
    pivots: list[int] = []
    for column in range(count):
        here = len(pivots)
        if here == len(rows):
            break
        clock.look()
        at = next((n for n in range(here, len(rows)) if rows[n][column]), None)
        if at is None:
            continue
        rows[here], rows[at] = rows[at], rows[here]
        pivot = rows[here][column]
        rows[here] = [value / pivot for value in rows[here]]
        for n, row in enumerate(rows):
            if n != here and row[column]:
                share = row[column]
                rows[n] = [a - share * b if b else a for a, b in zip(row, rows[here], strict=True)]
        pivots.append(column)
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    out = [ZERO] * count
    for here, column in enumerate(pivots):
        out[column] = rows[here][-1]
    return out


# --- Lines and files ----------------------------------------------------------------------------


class Verdict:
    """What has been verified of one line; None stands for infinity."""

    def __init__(self, cost: Q | None, bound: Q | None, is_told: bool = False) -> None:
        self.cost, self.bound, self.is_told = cost, bound, is_told
        self.gap: Q | None = None
        self.is_closed = False  # to the tolerance of the question, or to the last digits
        if cost is None:
            self.gap = ZERO if bound is None else None
        elif bound is not None:
            self.gap = (cost - bound) / cost if cost > bound else ZERO

    def __str__(self) -> str:
        parts = [
            "inf" if value is None else decimal(value, up)
            for value, up in ((self.cost, True), (self.bound, False), (self.gap, True))
        ]
        told = " as told" if self.is_told else ""
        return f"cost {parts[0]} bound {parts[1]} gap {parts[2]}{told}"


class Certificate:
    """The header of a file, and what every line is checked against."""

    def __init__(self, header: Any, apart: Any = None, seconds: float = 600.0) -> None:
        self.seconds = seconds
        clock = Clock(seconds)
        if isinstance(header, dict) and header.get("format") != FORMAT:
            raise Refused(f"the first line is not that of a {FORMAT}")
        part = fields(header, "the first line", "format version model question", "note")
        if part["version"] != VERSION:
            raise Refused(f"version {str(part['version'])[:20]} is not known; this is {VERSION}")
        stated = part["model"]
        if isinstance(stated, dict) and "apart" in stated:
            named = fields(stated, "model", "apart")["apart"]
            if apart is None:
                raise Refused("the model is kept apart; name its file with --model")
            told = fields(apart, "the model's file", "format version model")
            if told["format"] != FORMAT + " model" or told["version"] != VERSION:
                raise Refused("the model's file is of another format or version")
            stated = told["model"]
            if fingerprint(stated) != named:
                raise Refused("the model's file holds another model: its hash is another")
        self.hashes = {"model": fingerprint(stated), "question": fingerprint(part["question"])}
        self.question = Question(Model(stated), part["question"], clock)

    def shown(self, item: Any) -> Verdict:
        """Say what one line proves, whatever it claims of its bound."""
        part = fields(item, "the line", "input target answer proof hashes made_by", "told")
        if part["hashes"] != self.hashes:
            raise Refused("it belongs to another model or question: a hash is another")
        question, clock = self.question, Clock(self.seconds)
        classes = len(question.model.classes)
        target = {index(c, "a target", classes) for c in listed(part["target"], "target")}
        asked = Asked(question, question.row(part["input"], "input"), target, clock)
        if not asked.targets:
            raise Refused("no prototype has a wished-for label")
        asked.is_told = part.get("told", False) is True
        answer = fields(part["answer"], "answer", "row cost lower_bound status")
        if answer["status"] in ("infeasible", "unknown"):
            if answer["row"] is not None or answer["cost"] is not None:
                raise Refused("there is a row or a cost without an answer")
            empty = answer["status"] == "infeasible"
            bound = asked.least(part["proof"], None, empty)
            if empty and bound is not None:
                raise Refused("the proof does not show that there is no answer")
            return Verdict(None, bound, asked.is_told)
        if answer["status"] not in ("optimal", "feasible"):
            raise Refused(f"the status {str(answer['status'])[:40]!r} is not known")
        y, cost = question.row(answer["row"], "row"), number(answer["cost"], "cost", ZERO)
        exact = asked.check_answer(y, cost)
        bound = asked.least(part["proof"], cost, empty=False)
        verdict = Verdict(exact, cost if bound is None else min(bound, cost), asked.is_told)
        open_part = exact - (verdict.bound or ZERO)
        enough = max(question.tolerance * exact, question.resolution(y, asked.x))
        verdict.is_closed = open_part <= enough and not (question.margin and exact)
        return verdict

    def check(self, item: Any) -> Verdict:
        """Check one line: what it proves, and that it claims no more."""
        verdict, answer = self.shown(item), item["answer"]
        if answer["status"] == "infeasible":
            return verdict
        claimed = number(answer["lower_bound"], "lower_bound", ZERO)
        if verdict.bound is not None and claimed > verdict.bound:
            shown = decimal(verdict.bound, False)
            raise Refused(f"the lower bound does not follow from the proof, which shows {shown}")
        if answer["status"] == "optimal" and not verdict.is_closed:
            open_gap = decimal(verdict.gap or ZERO, True)
            raise Refused(f"it is not shown to be optimal: gap {open_gap}, or there is a margin")
        return verdict


TROUBLE = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, MemoryError,
           RecursionError)  # fmt: skip


def verdicts(
    lines: Iterator[str], apart: Any = None, seconds: float = 600.0
) -> Iterator[tuple[int, Verdict | str]]:
    """Check a file line by line: the number of a line, and what is verified or why it is not."""
    certificate: Certificate | None = None
    empty = True
    for at, text in enumerate(lines, 1):
        if not text.strip():
            continue
        empty = False
        try:
            if len(text) > LONGEST_LINE:
                raise Refused(f"it is longer than {LONGEST_LINE} letters")
            item = parsed(text)
            if certificate is None:
                certificate = Certificate(item, apart, seconds)
                continue
            yield at, certificate.check(item)
        except Refused as error:
            yield at, str(error)
        except TROUBLE as error:
            yield at, f"it cannot be read: {type(error).__name__}"
        if certificate is None:
            return
    if empty:
        yield 1, "the file is empty"


def short_lines(file: Any) -> Iterator[str]:
    """Read lines without making room for more than one of the longest."""
    while text := file.readline(LONGEST_LINE + 1):
        yield text
        if len(text) > LONGEST_LINE:
            return


def main(words: list[str], say: Callable[[str], None] = print) -> int:
    """Check the files that are named; 0 only if every line of them is verified."""
    options, names = {"--model": "", "--seconds": "600"}, []
    rest = iter(words)
    for word in rest:
        if word in options:
            options[word] = next(rest, "")
        else:
            names.append(word)
    try:
        seconds = float(options["--seconds"])
    except ValueError:
        seconds = 0.0
    if len(names) != 1 or names[0].startswith("-") or not seconds > 0:
        say("usage: check_certificate.py FILE [--model FILE] [--seconds N]")
        return 2
    is_good = True
    try:
        apart = None
        if options["--model"]:
            with open(options["--model"], encoding="utf-8") as file:
                apart = parsed(file.read(LONGEST_LINE))
        with open(names[0], encoding="utf-8") as file:
            for at, found in verdicts(short_lines(file), apart, seconds):
                is_good = is_good and isinstance(found, Verdict)
                word = "VERIFIED" if isinstance(found, Verdict) else "REFUTED"
                say(f"{word} {at} " + " ".join(str(found).split())[:500])
    except (OSError, UnicodeDecodeError, Refused) as error:
        say(f"REFUTED 1 the file cannot be read: {error}")
        return 1
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
