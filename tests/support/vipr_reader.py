"""A strict reader of version 1.0 of the format of VIPR, written from its description.

Every derivation is recomputed with fractions; whatever does not follow is refused. It reads what
the format allows and nothing else: tokens in their order, indices in their ranges.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

NUMBER = re.compile(r"-?\d+(/[1-9]\d*|\.\d+)?")
SIGNS = {"G": 1, "E": 0, "L": -1}


class RefusedError(Exception):
    """The file is not a proof of what it claims."""


@dataclass(frozen=True)
class Constraint:
    sense: str
    right: Fraction
    terms: dict[int, Fraction]
    assumptions: frozenset[int] = frozenset()

    @property
    def is_absurd(self) -> bool:
        if self.terms:
            return False
        sign = SIGNS[self.sense]
        return (sign >= 0 and self.right > 0) or (sign <= 0 and self.right < 0)

    def dominates(self, other: Constraint) -> bool:
        if self.is_absurd:
            return True
        if self.terms != other.terms:
            return False
        if other.sense == "G":
            return self.sense in "GE" and self.right >= other.right
        if other.sense == "L":
            return self.sense in "LE" and self.right <= other.right
        return self.sense == "E" and self.right == other.right


@dataclass(frozen=True)
class Proved:
    """What a file proves: a bound of the objective from below, or None for infeasibility."""

    lower: Fraction | None
    objective: dict[int, Fraction]
    whole: frozenset[int]
    constraints: list[Constraint]
    names: list[str]


class Reader:
    def __init__(self, text: str) -> None:
        lines = text.splitlines()
        while lines and lines[0].startswith("%"):
            lines.pop(0)
        self.tokens = " ".join(lines).split()[::-1]

    def word(self, *allowed: str) -> str:
        if not self.tokens:
            raise RefusedError("the file ends too early")
        found = self.tokens.pop()
        if allowed and found not in allowed:
            raise RefusedError(f"{found!r} stands where {allowed} should")
        return found

    def number(self) -> Fraction:
        found = self.word()
        if not NUMBER.fullmatch(found):
            raise RefusedError(f"{found!r} is no number")
        return Fraction(found)

    def whole(self, low: int, high: int) -> int:
        found = self.word()
        if not re.fullmatch(r"-?\d+", found) or not low <= int(found) < high:
            raise RefusedError(f"{found!r} is no index from {low} to {high - 1}")
        return int(found)

    def terms(self, count: int, width: int) -> dict[int, Fraction]:
        out: dict[int, Fraction] = {}
        for _ in range(count):
            at = self.whole(0, width)
            if at in out:
                raise RefusedError("a variable stands twice")
            out[at] = self.number()
        return {at: value for at, value in out.items() if value}

    def constraint(self, objective: dict[int, Fraction], width: int) -> Constraint:
        self.word()
        sense = self.word("G", "L", "E")
        right = self.number()
        if self.tokens and self.tokens[-1] == "OBJ":
            self.word()
            return Constraint(sense, right, objective)
        return Constraint(sense, right, self.terms(self.whole(0, width + 1), width))

    def read(self) -> Proved:
        self.word("VER")
        self.word("1.0")
        self.word("VAR")
        width = self.whole(0, 10**6)
        names = [self.word() for _ in range(width)]
        if len(set(names)) < width:
            raise RefusedError("two variables have one name")
        self.word("INT")
        whole = frozenset(self.whole(0, width) for _ in range(self.whole(0, width + 1)))
        self.word("OBJ")
        self.word("min")
        objective = self.terms(self.whole(0, width + 1), width)
        self.word("CON")
        count, bounds = self.whole(0, 10**6), self.whole(0, 10**6)
        known = [self.constraint(objective, width) for _ in range(count)]
        if bounds > count or any(len(item.terms) != 1 for item in known[:bounds]):
            raise RefusedError("what is counted as a bound is none")
        self.word("RTP")
        lower: Fraction | None = None
        if self.word("infeas", "range") == "range":
            lower = self.number()
            self.word("inf")
        self.word("SOL")
        self.word("0")
        self.word("DER")
        for _ in range(self.whole(0, 10**6)):
            known.append(self.derived(known, objective, width, whole))
        if self.tokens:
            raise RefusedError("something stands behind the end")
        self._conclude(known, lower, objective)
        return Proved(lower, objective, whole, known[:count], names)

    def _conclude(
        self, known: list[Constraint], lower: Fraction | None, objective: dict[int, Fraction]
    ) -> None:
        if not known or known[-1].assumptions:
            raise RefusedError("the last constraint rests on assumptions")
        if lower is None:
            if not known[-1].is_absurd:
                raise RefusedError("the last constraint is no absurdity")
        elif not known[-1].dominates(Constraint("G", lower, objective)):
            raise RefusedError("the last constraint does not show the bound")

    def derived(
        self, known: list[Constraint], objective: dict[int, Fraction], width: int,
        whole: frozenset[int],
    ) -> Constraint:  # fmt: skip
        claim = self.constraint(objective, width)
        self.word("{")
        kind = self.word("asm", "lin", "rnd", "uns")
        here = len(known)
        if kind == "asm":
            assumptions = frozenset({here})
        elif kind == "uns":
            assumptions = self._unsplit(known, claim, whole)
        else:
            found = self._combined(known)
            if kind == "rnd":
                found = _rounded(found, whole)
            if not found.dominates(claim):
                raise RefusedError("a combination does not show what is claimed")
            assumptions = found.assumptions
        self.word("}")
        self.whole(-1, 10**6)
        return Constraint(claim.sense, claim.right, claim.terms, assumptions)

    def _combined(self, known: list[Constraint]) -> Constraint:
        factors: dict[int, Fraction] = {}
        for _ in range(self.whole(0, len(known) + 1)):
            at = self.whole(0, len(known))
            if at in factors:
                raise RefusedError("a constraint is combined twice")
            factors[at] = self.number()
        signs = {SIGNS[known[at].sense] * (1 if y > 0 else -1) for at, y in factors.items() if y}
        signs.discard(0)
        if len(signs) > 1:
            raise RefusedError("a combination mixes directions")
        terms: dict[int, Fraction] = {}
        right, assumptions = Fraction(0), frozenset[int]()
        for at, y in factors.items():
            right += y * known[at].right
            assumptions |= known[at].assumptions
            for var, value in known[at].terms.items():
                terms[var] = terms.get(var, Fraction(0)) + y * value
        sense = "E" if not signs else "G" if signs == {1} else "L"
        kept = {var: value for var, value in terms.items() if value}
        return Constraint(sense, right, kept, assumptions)

    def _unsplit(
        self, known: list[Constraint], claim: Constraint, whole: frozenset[int]
    ) -> frozenset[int]:
        i1, l1, i2, l2 = (self.whole(0, len(known)) for _ in range(4))
        if not known[i1].dominates(claim) or not known[i2].dominates(claim):
            raise RefusedError("a part of a cut does not show what is claimed")
        below, above = known[l1], known[l2]
        if below.sense == "G":
            below, above = above, below
        is_split = (
            below.sense == "L" and above.sense == "G" and below.terms == above.terms
            and above.right == below.right + 1 and below.right.denominator == 1
            and all(v in whole and a.denominator == 1 for v, a in below.terms.items())
        )  # fmt: skip
        if not is_split:
            raise RefusedError("two assumptions are no cut between whole numbers")
        return (known[i1].assumptions - {l1}) | (known[i2].assumptions - {l2})


def _rounded(found: Constraint, whole: frozenset[int]) -> Constraint:
    if found.sense == "E" or any(
        at not in whole or value.denominator != 1 for at, value in found.terms.items()
    ):
        raise RefusedError("a combination cannot be rounded")
    right = found.right.__floor__() if found.sense == "L" else found.right.__ceil__()
    return Constraint(found.sense, Fraction(right), found.terms, found.assumptions)


def proved(text: str) -> Proved:
    """Check a file, and return what it proves."""
    return Reader(text).read()
