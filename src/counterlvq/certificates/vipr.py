"""Proofs in version 1.0 of the format of VIPR, which programs of other people check.

Cheung, Gleixner, Steffy: Verifying integer programming results (2017). One problem for each target
prototype: the least absolute cost of a change into its closed cell, in rational numbers, with a
derivation of its bound. A sum of conditions is a step `lin`; a cut between two whole numbers is a
step `uns` over two assumptions; a side that follows from a row and other sides, rounded to a whole
number, is a step `rnd`, and so is a row over whole numbers that have a common divisor. Ties and
equalities need no point of solution: a bound from below is all that is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, lcm
from typing import Any, NamedTuple, final

from counterlvq.certificates import check_certificate as checker
from counterlvq.certificates.exact_duality import rounded_down

__all__ = ["CellFile", "NotExpressible", "cell_files"]

_ZERO = Fraction(0)
# Whole numbers up to here are doubles.
_EXACT = 2**53
# How often rows narrow the sides of a box.
_SWEEPS = 4
# Constraints that part what is allowed, and what they do.
_PARTING = {"values": "allows some values only", "implies": "holds under a condition",
            "at most": "counts changes"}  # fmt: skip
# A side of a real number that moves by less than this share of its size is not worth a step.
_WORTH = Fraction(1, 2**20)


class NotExpressible(Exception):  # noqa: N818 - it says what a question is, not what went wrong
    """A question that the format has no words for: why, and the column that it is about."""

    def __init__(self, why: str, column: int | None = None) -> None:
        super().__init__(why)
        self.column = column


@final
@dataclass(frozen=True)
class CellFile:
    """The file of one cell."""

    prototype: int
    bound: Fraction | None  # None: nothing meets its conditions
    text: str


def cell_files(certificate: checker.Certificate, line: Any) -> Iterator[CellFile]:
    """Write the file of each target prototype; copies of earlier ones have none."""
    _refuse_others(certificate.question)
    told, asked = certificate.read(line)
    cap, entries = told["answer"]["cost"], asked.cells(told["proof"])
    _refuse_strays(asked, cap)
    for i in asked.targets if asked.rivals else asked.targets[:1]:
        if i not in entries and any(asked.model.is_copy(i, k) for k in range(i)):
            continue
        found = [_Derivation(_Problem(asked, i), cap).of(item) for item in entries.get(i, [])]
        found = found or [_Derivation(_Problem(asked, i), cap).of({"kind": "bound"})]
        yield max(found, key=lambda file: (file.bound is None, file.bound or _ZERO))


def _refuse_others(question: checker.Question) -> None:
    """Refuse what is not linear in real and whole numbers."""
    if question.model.is_local:
        raise NotExpressible("the model has local metrics")
    if question.curves:
        raise NotExpressible("the cost has squares")
    if question.weights != question.decrease:
        raise NotExpressible("the cost has other prices upwards than downwards")
    if question.rule is not None:
        raise NotExpressible("the question asks for a confidence")
    if question.forms or question.plausible is not None:
        raise NotExpressible("a constraint is quadratic")
    for kind, words in _PARTING.items():
        if any(item["kind"] == kind for item in question.constraints):
            raise NotExpressible(f"a constraint {words}")
    for j, column in enumerate(question.columns):
        if column.levels:
            raise NotExpressible("has levels", j)
        if column.from_input:
            raise NotExpressible("has steps of change", j)
        if column.step.denominator != 1:
            raise NotExpressible("has decimals", j)


def _refuse_strays(asked: checker.Asked, cap: Fraction | None) -> None:
    """Refuse values that are no multiples of their step, by however little.

    An input off its grid may stay there. Beyond 2^53 a value is the double next to a multiple.
    """
    for c, allowed in enumerate(asked.seen.allowed):
        if allowed is None:
            continue
        if (allowed.start / allowed.step).denominator > 1:
            raise NotExpressible("of the input is off its grid", c)
        weight = asked.seen.w[c]
        far = cap / weight if cap is not None and weight else _ZERO
        if abs(allowed.start) + far > _EXACT:
            raise NotExpressible("has values beyond 2^53, which doubles round", c)


class _Row(NamedTuple):
    name: str
    sense: str  # L, G or E
    right: Fraction
    terms: dict[int, Fraction]


class _Side(NamedTuple):
    """One end of a variable, and the constraint that says so."""

    value: Fraction
    at: int
    factor: Fraction  # of the variable in that constraint


Sides = dict[tuple[int, bool], _Side]  # by variable, and whether it is the upper end


@final
class _Problem:
    """The program of one cell: values first, then the costs of their changes."""

    def __init__(self, asked: checker.Asked, i: int) -> None:
        self.asked, self.i = asked, i
        question, seen = asked.question, asked.seen
        self.width = seen.width
        self.unit = [column.step or Fraction(1) for column in question.columns]
        self.whole = [bool(column.step) for column in question.columns]
        priced = [c for c in range(self.width) if seen.w[c]]
        self.cost_at = {c: self.width + n for n, c in enumerate(priced)}
        self.rows: list[_Row] = []
        self.sides: Sides = {}
        self.at_row: dict[int, int] = {}  # of the conditions as a file numbers them
        self.at_rival: dict[int, int] = {}
        self.above: dict[int, int] = {}  # u >= y - x
        self.below: dict[int, int] = {}  # u >= x - y
        self._state()

    def _state(self) -> None:
        seen = self.asked.seen
        order = sorted(range(len(seen.rows)), key=lambda n: len(seen.rows[n].new) != 1)
        for n in order:
            row = seen.rows[n]
            if not row.new:
                continue
            self.at_row[n] = len(self.rows)
            sense = "E" if row.equality else "L"
            terms = {c: a * self.unit[c] for c, a in row.new.items()}
            self.rows.append(_Row(f"r{n}", sense, row.value, terms))
            if len(row.new) == 1:
                self._take_side(len(self.rows) - 1)
        self.bounds = sum(len(row.terms) == 1 for row in self.rows)
        for c, u in self.cost_at.items():
            self.above[c], self.below[c] = len(self.rows), len(self.rows) + 1
            x, one = seen.start[c], Fraction(1)
            self.rows.append(_Row(f"p{c}", "G", -x, {u: one, c: -self.unit[c]}))
            self.rows.append(_Row(f"n{c}", "G", x, {u: one, c: self.unit[c]}))
        for k in self.asked.rivals:
            slope = seen.slope(self.i, k)
            lead = seen.scores[k] - seen.scores[self.i] - self.asked.margin
            right = lead + sum((a * b for a, b in zip(slope, seen.start, strict=True)), _ZERO)
            self.at_rival[k] = len(self.rows)
            terms = {c: a * self.unit[c] for c, a in enumerate(slope) if a}
            self.rows.append(_Row(f"k{k}", "L", right, terms))

    def _take_side(self, at: int) -> None:
        row = self.rows[at]
        ((c, a),) = row.terms.items()
        for upper in (True, False):
            if row.sense == "E" or (row.sense == "L") == ((a > 0) == upper):
                keep(self.sides, c, upper, _Side(row.right / a, at, a))

    def text(self, bound: Fraction | None, steps: list[str]) -> str:
        """Write the whole file."""
        names = [f"y{c}" for c in range(self.width)] + [f"u{c}" for c in self.cost_at]
        whole = [c for c in range(self.width) if self.whole[c]]
        objective = [f"{u} {self.asked.seen.w[c]}" for c, u in self.cost_at.items()]
        lines = [
            "VER 1.0",
            f"VAR {len(names)}",
            " ".join(names),
            f"INT {len(whole)}",
            " ".join(map(str, whole)),
            "OBJ min",
            f"{len(objective)} {' '.join(objective)}",
            f"CON {len(self.rows)} {self.bounds}",
            *(_written(row) for row in self.rows),
            "RTP infeas" if bound is None else f"RTP range {bound} inf",
            "SOL 0",
            f"DER {len(steps)}",
            *steps,
        ]
        return "\n".join(lines) + "\n"


def keep(sides: Sides, c: int, upper: bool, side: _Side) -> bool:
    """Keep the narrower of two sides; says whether it is the new one."""
    known = sides.get((c, upper))
    if known is not None and (side.value >= known.value if upper else side.value <= known.value):
        return False
    sides[c, upper] = side
    return True


def _written(row: _Row) -> str:
    terms = "  ".join(f"{c} {a}" for c, a in row.terms.items())
    return f"{row.name} {row.sense} {row.right} {len(row.terms)}  {terms}"


def _common_divisor(terms: Iterable[Fraction]) -> Fraction:
    over = lcm(*(a.denominator for a in terms))
    return Fraction(gcd(*(int(a * over) for a in terms)), over)


class _Shown(NamedTuple):
    """What a part has been shown to cost at least, and by which constraint."""

    bound: Fraction | None  # None: nothing is in it
    at: int


@final
@dataclass(eq=False)
class _Derivation:
    """The steps that show the bound of one cell."""

    problem: _Problem
    cap: Fraction | None
    steps: list[str] = field(default_factory=list)
    # Rows over whole numbers, divided by their common divisor: where that is, by what, and what
    # it says.
    divided: dict[int, tuple[int, Fraction]] = field(default_factory=dict)
    stated: dict[int, _Row] = field(default_factory=dict)

    def of(self, item: dict[str, Any]) -> CellFile:
        """Derive what one proof of the cell shows."""
        problem = self.problem
        sides = dict(problem.sides)
        self._divide_rows()
        self._round_sides(sides)
        absurd = self._crossed(sides)
        if absurd is not None:
            shown = absurd
        elif item["kind"] == "tree":
            shown = self._around(item["nodes"], sides)
        elif item["kind"] == "single":
            shown = self._leaf({"rivals": {item["rival"]: self._price(item["rival"])}}, sides)
        else:
            shown = self._leaf(item, sides, is_empty=item["kind"] == "empty")
        bound = shown.bound
        if bound is not None:
            # The last step says what is claimed: a double, from below.
            bound = max(_ZERO, Fraction(rounded_down(bound)))
        if shown.at != len(problem.rows) + len(self.steps) - 1 or bound != shown.bound:
            self._add("end", bound, f"{{ lin 1  {shown.at} 1 }}")
        return CellFile(problem.i, bound, problem.text(bound, self.steps))

    def _divide_rows(self) -> None:
        """Round right-hand sides of rows over whole numbers that have a common divisor."""
        problem = self.problem
        for at in (*problem.at_row.values(), *problem.at_rival.values()):
            row = problem.rows[at]
            if (
                row.sense == "E"
                or len(row.terms) < 2
                or not all(problem.whole[c] for c in row.terms)
            ):
                continue
            sizes = [abs(a) for a in row.terms.values()]
            divisor, largest = _common_divisor(sizes), max(sizes)
            value = Fraction((row.right / divisor).__floor__())
            if divisor < _WORTH * largest or value * divisor == row.right:
                continue
            here = len(problem.rows) + len(self.steps)
            terms = {c: a / divisor for c, a in row.terms.items()}
            divided = _Row(f"w{here}", "L", value, terms)
            self.steps.append(f"{_written(divided)}  {{ rnd 1  {at} {1 / divisor} }} -1")
            self.divided[at], self.stated[here] = (here, divisor), divided

    def _charge(self, at: int, y: Fraction) -> tuple[int, Fraction]:
        """Charge for a row where it says most."""
        if at not in self.divided:
            return at, y
        here, divisor = self.divided[at]
        return here, y * divisor

    def _row(self, at: int) -> _Row:
        rows = self.problem.rows
        return rows[at] if at < len(rows) else self.stated[at]

    def _price(self, k: int) -> Fraction:
        """Multiplier of a rival that charges for it alone: as much as the dearest slope bears."""
        problem, seen = self.problem, self.problem.asked.seen
        sides = problem.asked.sides
        slopes = [
            abs(a) / seen.w[c] for c, a in enumerate(seen.slope(problem.i, k))
            if a and seen.w[c] and not sides[0][c] == sides[1][c] == 0
        ]  # fmt: skip
        return 1 / max(slopes) if slopes else Fraction(1)

    def _add(self, name: str, bound: Fraction | None, reason: str) -> int:
        at = len(self.problem.rows) + len(self.steps)
        claim = "G 1 0" if bound is None else f"G {bound} OBJ"
        self.steps.append(f"{name}{at} {claim}  {reason} -1")
        return at

    def _add_side(self, c: int, upper: bool, value: Fraction, reason: str) -> _Side:
        at = len(self.problem.rows) + len(self.steps)
        self.steps.append(f"s{at} {'L' if upper else 'G'} {value} 1  {c} 1  {reason} -1")
        return _Side(value, at, Fraction(1))

    # Sides.

    def _round_sides(self, sides: Sides) -> None:
        """Round sides of whole numbers to whole numbers."""
        for (c, upper), side in list(sides.items()):
            if self.problem.whole[c] and side.value.denominator > 1:
                value = Fraction(side.value.__floor__() if upper else side.value.__ceil__())
                reason = f"{{ rnd 1  {side.at} {1 / side.factor} }}"
                sides[c, upper] = self._add_side(c, upper, value, reason)

    def _narrow(self, sides: Sides) -> _Shown | None:
        """Narrow sides by the rows of the user; an absurdity if two of them cross."""
        problem = self.problem
        every = [at for at in problem.at_row.values() if len(problem.rows[at].terms) > 1]
        rows = [self._charge(at, _ZERO)[0] for at in every]
        for _ in range(_SWEEPS):
            has_moved = False
            for at in rows:
                row = self._row(at)
                for sign in (1, -1) if row.sense == "E" else (1,):
                    for c in row.terms:
                        has_moved = self._narrow_one(at, row, sign, c, sides) or has_moved
            if not has_moved:
                break
        return self._crossed(sides)

    def _crossed(self, sides: Sides) -> _Shown | None:
        """Derive an absurdity from two sides that have crossed, if there are any."""
        problem = self.problem
        for c in range(problem.width):
            low, high = sides.get((c, False)), sides.get((c, True))
            if low is not None and high is not None and low.value > high.value:
                parts = f"{low.at} {1 / low.factor}  {high.at} {-1 / high.factor}"
                if low.at == high.at:
                    continue
                gap = low.value - high.value
                name = len(problem.rows) + len(self.steps)
                self.steps.append(f"x{name} G {gap} 0  {{ lin 2  {parts} }} -1")
                return _Shown(None, name)
        return None

    def _narrow_one(self, at: int, row: _Row, sign: int, c: int, sides: Sides) -> bool:
        a = sign * row.terms[c]
        value, parts = sign * row.right / a, [(at, sign / a)]
        for other, b in row.terms.items():
            if other == c:
                continue
            side = sides.get((other, sign * b < 0))
            if side is None:
                return False
            share = sign * b / a
            value -= share * side.value
            parts.append((side.at, -share / side.factor))
        if len({part for part, _ in parts}) < len(parts):
            return False
        upper = a > 0
        known = sides.get((c, upper))
        word = "lin"
        if self.problem.whole[c]:
            word, value = "rnd", Fraction(value.__floor__() if upper else value.__ceil__())
        if known is not None:
            gain = known.value - value if upper else value - known.value
            if gain <= (0 if self.problem.whole[c] else _WORTH * abs(known.value)):
                return False
        listed = "  ".join(f"{part} {share}" for part, share in parts)
        reason = f"{{ {word} {len(parts)}  {listed} }}"
        sides[c, upper] = self._add_side(c, upper, value, reason)
        return True

    # Bounds.

    def _leaf(self, told: dict[str, Any], sides: Sides, *, is_empty: bool = False) -> _Shown:
        """Add up what is charged for, corrected so that it is exactly dual feasible."""
        told = self._corrected(told, sides, is_empty)
        charges: dict[int, Fraction] = {}
        for k, y in told.get("rivals", {}).items():
            charges.update([self._charge(self.problem.at_rival[k], y)])
        for n, y in told.get("rows", {}).items():
            if n in self.problem.at_row:
                charges.update([self._charge(self.problem.at_row[n], y)])
        if is_empty:
            shown = self._added(charges, sides, priced=False)
            if shown is not None:
                return shown
        for scale in self._scales(charges, sides, is_empty):
            shown = self._added({at: scale * y for at, y in charges.items()}, sides, priced=True)
            if shown is not None:
                return shown
        raise AssertionError("without any charges the sum is always dual feasible")

    def _lost(self, sides: Sides) -> _Shown:
        """Show that a rival is nearer throughout a box; in a tie, what the box costs is all."""
        for at in self.problem.at_rival.values():
            shown = self._added(dict([self._charge(at, Fraction(1))]), sides, priced=False)
            if shown is not None:
                return shown
        return self._leaf({}, sides)

    def _corrected(self, told: dict[str, Any], sides: Sides, is_empty: bool) -> dict[str, Any]:
        """Multipliers that cancel exactly where neither cost nor sides limit a change.

        Under an absolute cost that is where a change is free, or without the cost everywhere.
        """
        problem, asked = self.problem, self.problem.asked
        if not told.get("rivals") and not told.get("rows"):
            return told
        cap = checker.INF if is_empty or self.cap is None else self.cap
        low: list[checker.End] = []
        high: list[checker.End] = []
        for c in range(problem.width):
            x, unit, weight = asked.seen.start[c], problem.unit[c], asked.seen.w[c]
            far = cap / weight if weight else checker.INF
            first, last = sides.get((c, False)), sides.get((c, True))
            low.append(-far if first is None else max(unit * first.value - x, -far))
            high.append(far if last is None else min(unit * last.value - x, far))
            if low[-1] > high[-1]:
                return told
        box = (low, high)
        return asked.bound(problem.i, told, box, cap, with_cost=not is_empty)[1]

    def _scales(
        self, charges: dict[int, Fraction], sides: Sides, is_empty: bool
    ) -> Iterator[Fraction]:
        """Shares of the charges that slopes without a side can bear: the largest, then none."""
        largest: Fraction | None = None if is_empty else Fraction(1)
        for c, slope in self._slopes(charges).items():
            if slope and (c, slope < 0) not in sides:
                weight = self.problem.asked.seen.w[c] * self.problem.unit[c]
                share = weight / abs(slope)
                largest = share if largest is None else min(largest, share)
        yield Fraction(1) if largest is None else largest
        yield _ZERO

    def _slopes(self, charges: dict[int, Fraction]) -> dict[int, Fraction]:
        slopes = dict.fromkeys(range(self.problem.width), _ZERO)
        for at, y in charges.items():
            for c, a in self._row(at).terms.items():
                slopes[c] += y * a
        return slopes

    def _added(self, charges: dict[int, Fraction], sides: Sides, *, priced: bool) -> _Shown | None:
        """One step `lin`; None if a slope has no side to rest on."""
        problem, seen = self.problem, self.problem.asked.seen
        parts: dict[int, Fraction] = {}
        for at, y in charges.items():
            parts[at] = parts.get(at, _ZERO) - y
        for c, slope in self._slopes(charges).items():
            unit, x = problem.unit[c], seen.start[c]
            weight = seen.w[c] if priced else _ZERO
            low, high = sides.get((c, False)), sides.get((c, True))
            s, up, down = slope / unit, (weight - slope / unit) / 2, (weight + slope / unit) / 2
            rest: tuple[_Side | None, Fraction] | None = None
            if low is not None and unit * low.value > x and weight + s > 0:
                up, down, rest = weight, _ZERO, (low, weight + s)
            elif high is not None and unit * high.value < x and weight - s > 0:
                up, down, rest = _ZERO, weight, (high, s - weight)
            elif s > weight:
                up, down, rest = _ZERO, weight, (low, s - weight)
            elif s < -weight:
                up, down, rest = weight, _ZERO, (high, s + weight)
            if c in problem.cost_at and priced:
                parts[problem.above[c]], parts[problem.below[c]] = up, down
            if rest is not None:
                side, amount = rest
                if side is None:
                    return None
                share = amount * unit / side.factor
                parts[side.at] = parts.get(side.at, _ZERO) + share
        bound = sum((y * self._right(at) for at, y in parts.items()), _ZERO)
        if not priced and bound <= 0:
            return None
        used = {at: y for at, y in parts.items() if y}
        listed = "  ".join(f"{at} {y}" for at, y in sorted(used.items()))
        reason = f"{{ lin {len(used)}  {listed} }}"
        if priced:
            return _Shown(bound, self._add("b", bound, reason))
        at = len(problem.rows) + len(self.steps)
        self.steps.append(f"x{at} G {bound} 0  {reason} -1")
        return _Shown(None, at)

    def _right(self, at: int) -> Fraction:
        if at < len(self.problem.rows):
            return self.problem.rows[at].right
        return Fraction(self.steps[at - len(self.problem.rows)].split()[2])

    # Trees.

    def _around(self, nodes: list[Any], sides: Sides) -> _Shown:
        """Part off what costs more than the answer for one whole number alone, then walk down."""
        problem, seen = self.problem, self.problem.asked.seen
        outside: list[tuple[int, int, int]] = []  # assumption inside, assumption outside, its bound
        for c in range(problem.width) if self.cap is not None else ():
            if not problem.whole[c] or not seen.w[c]:
                continue
            far = self.cap / seen.w[c] if self.cap is not None else _ZERO
            for upper in (True, False):
                end = (seen.start[c] + (far if upper else -far)) / problem.unit[c]
                value = end.__floor__() if upper else end.__ceil__()
                known = sides.get((c, upper))
                if known is not None and (known.value <= value if upper else known.value >= value):
                    continue
                inner = self._assume(c, upper, Fraction(value))
                outer = self._assume(c, not upper, Fraction(value + (1 if upper else -1)))
                beyond = self._leaf({}, {**sides, (c, not upper): outer})
                outside.append((inner.at, outer.at, beyond.at))
                sides = {**sides, (c, upper): inner}
        shown = self._walk(nodes, sides)
        for inner_at, outer_at, bound_at in reversed(outside):
            beyond = _Shown(self._right(bound_at), bound_at)
            shown = self._together(shown, inner_at, beyond, outer_at)
        return shown

    def _assume(self, c: int, upper: bool, value: Fraction) -> _Side:
        return self._add_side(c, upper, value, "{ asm }")

    def _together(self, one: _Shown, first: int, other: _Shown, second: int) -> _Shown:
        """Step `uns`: what holds of both parts of a cut holds of the whole."""
        bounds = [part.bound for part in (one, other) if part.bound is not None]
        bound = min(bounds) if bounds else None
        reason = f"{{ uns {one.at} {first}  {other.at} {second} }}"
        return _Shown(bound, self._add("t", bound, reason))

    def _walk(self, nodes: list[Any], sides: Sides) -> _Shown:
        """Show the bound of a tree, from its parts upwards."""
        done: dict[int, _Shown] = {}
        cuts: dict[int, tuple[_Side, _Side]] = {}
        waiting: list[tuple[int, Sides, bool]] = [(0, dict(sides), False)]
        while waiting:
            at, here, is_back = waiting.pop()
            node = nodes[at]
            if is_back:
                below, above = cuts[at]
                low, high = done[node["low"]], done[node["high"]]
                done[at] = self._together(low, below.at, high, above.at)
                continue
            absurd = self._narrow(here)
            if absurd is not None:
                done[at] = absurd
            elif node["kind"] == "lost":
                done[at] = self._lost(here)
            elif node["kind"] != "cut":
                told = node.get("charges", {})
                done[at] = self._leaf(told, here, is_empty=node["kind"] == "empty")
            else:
                c = node["coordinate"]
                if not self.problem.whole[c]:
                    raise NotExpressible("a tree cuts across a column of real numbers")
                x = self.problem.asked.seen.start[c]
                value = Fraction(((x + node["at"]) / self.problem.unit[c]).__floor__())
                below, above = self._assume(c, True, value), self._assume(c, False, value + 1)
                cuts[at] = below, above
                waiting.append((at, here, True))
                for child, upper, side in (
                    (node["low"], True, below),
                    (node["high"], False, above),
                ):
                    part = dict(here)
                    keep(part, c, upper, side)
                    waiting.append((child, part, False))
        return done[0]
