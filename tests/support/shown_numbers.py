"""Reads what is printed about an answer, as somebody does who types the numbers back in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any, NamedTuple

import numpy as np

import counterlvq as clvq

__all__ = [
    "Shown",
    "assert_holds",
    "cost_and_bound",
    "page_rows",
    "read_number",
    "read_table",
    "read_text",
    "typed",
]

_DIGITS = r"[-−]?[\d,]+(?:\.\d+)?(?:e[-+]?\d+)?"


class Shown(NamedTuple):
    """One change as it is read: texts of levels, fractions of numbers."""

    before: Any
    after: Any
    change: Any  # None where none is shown


def read_number(text: str) -> Fraction:
    assert re.fullmatch(rf"\+?{_DIGITS}", text), text
    assert "," not in text or re.match(r"[-+−]?\d{1,3}(,\d{3})+(?![\d,])", text), text
    return Fraction(text.replace(",", "").replace("−", "-").removeprefix("+"))


def read_text(text: str, features: clvq.Features) -> dict[str, Shown]:
    """Read the sentence; every feature of it has to be understood.

    What it says before about constraints that the row breaks is left out.
    """
    said = re.fullmatch(
        r"(?:This row breaks .+ as it is(?:; it would not if .+?)?\. )?"
        r"(?:The answer would have been .+?|It would not, and the answer would have been .+?,) "
        r"if (?P<changes>.+)\.", text,
    )  # fmt: skip
    assert said, text
    rest, found = said["changes"], {}
    while rest:
        feature = max(
            (f for f in features if rest.startswith(f"{f.name} were ")), key=lambda f: len(f.name)
        )
        rest = rest.removeprefix(f"{feature.name} were ")
        unit = re.escape(f" {feature.unit}") if feature.unit else ""
        ways = (
            rf"(?P<by>{_DIGITS}) (?P<way>higher|lower) "
            rf"\((?P<after>{_DIGITS}) instead of (?P<before>{_DIGITS}){unit}\)",
            r"(?P<after>\S+) instead of (?P<before>[^\s,]+(?:,\d{3})*)",
        )
        part = next(filter(None, (re.match(way, rest) for way in ways)))
        if not feature.is_number:
            found[feature.name] = Shown(part["before"], part["after"], None)
        else:
            before, after = read_number(part["before"]), read_number(part["after"])
            by = read_number(part["by"]) if "way" in part.groupdict() else abs(after - before)
            up = part["way"] == "higher" if "way" in part.groupdict() else after > before
            found[feature.name] = Shown(before, after, by if up else -by)
        rest = re.sub(r"^(, | and )", "", rest[part.end() :])
    return found


def read_table(text: str, features: clvq.Features) -> dict[str, Shown]:
    """Read the printed table; a line about constraints that the row breaks is left out."""
    lines = [line for line in text.splitlines() if not line.startswith("  breaks  ")]
    assert re.fullmatch(r"  feature +before +after +change", lines[2]), text
    found = {}
    for line in lines[3:]:
        if re.match(r"  (and )?\d+ .*features?\b|  cost ", line):
            break
        cells = re.split(r" {2,}", line.strip())
        feature = max(
            (f for f in features if cells[0] in (f.name, f"{f.name} ({f.unit})")),
            key=lambda f: len(f.name),
        )
        if feature.is_number:
            found[feature.name] = Shown(*map(read_number, cells[1:]))
        else:
            found[feature.name] = Shown(cells[1], cells[2], None)
    return found


def cost_and_bound(text: str) -> tuple[float, float]:
    cost = re.search(r"^  cost    (\S+)", text, re.MULTILINE)
    bound = re.search(r"no counterfactual costs less than ([\d.e+-]+)", text)
    assert cost, text
    assert bound, text
    return float(cost[1]), float(bound[1])


def typed(cf: clvq.Counterfactual, shown: Mapping[str, Shown]) -> dict[str, Any]:
    """The input with the new values typed in, in the types of the features."""
    row = dict(zip(cf.feature_names, cf.original.tolist(), strict=True))
    for name, item in shown.items():
        feature = cf.features[name]
        if feature.is_number:
            row[name] = float(item.after)
            if feature.kind == "whole":
                assert item.after.denominator == 1
                row[name] = int(item.after)
        else:
            row[name] = next(level for level in feature.levels if str(level) == item.after)
    return row


class _Cells(HTMLParser):
    """The rows of the tables of a page, as texts."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.inside = True

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.rows[-1][-1] += data


def page_rows(page: str, features: clvq.Features) -> tuple[dict[str, Shown], dict[str, Any]]:
    """Read the changes on a page about one answer, and the values that stay."""
    reader = _Cells()
    reader.feed(page)
    changed, same = {}, {}
    for cells in reader.rows:
        if cells[0] not in features.names or len(cells) not in (2, 5):
            continue
        feature = features[cells[0]]
        texts = [cell.removesuffix(f" {feature.unit}") for cell in cells[1:4]]
        if len(cells) == 2:
            same[cells[0]] = read_number(texts[0]) if feature.is_number else texts[0]
        elif feature.is_number:
            changed[cells[0]] = Shown(*map(read_number, texts))
        else:
            changed[cells[0]] = Shown(texts[0], texts[1], None)
    return changed, same


def place_of(number: Fraction) -> Fraction:
    """The place of the last digit that is not 0, as 1/100 in 1.25 and 10 in 120."""
    place = Fraction(10) ** 18
    while (number / place).denominator != 1:
        place /= 10
    return place


def assert_holds(
    cf: clvq.Counterfactual,
    shown: Mapping[str, Shown],
    says: Callable[[dict[str, Any]], Any],
    meets: Callable[[dict[str, Any], dict[str, Any]], bool],
    price: Callable[[dict[str, Any], dict[str, Any]], float],
    printed: tuple[float, float],
) -> None:
    """What was read is an answer: by the model alone, the constraints and the cost."""
    old = dict(zip(cf.feature_names, cf.original.tolist(), strict=True))
    new = typed(cf, shown)
    changed = {change.feature: change.after for change in cf.changes}
    assert set(shown) <= set(changed)
    # What is left out is what rounding has left of 0: it cannot be seen in the cost.
    rest = {name: after for name, after in changed.items() if name not in shown}
    assert price({**old, **rest}, old) <= 1e-8 * cf.cost
    assert says(new) in cf.target, cf
    assert meets(new, old), cf
    cost, (told, bound) = price(new, old), printed
    assert cost <= 1.01 * cf.cost * (1 + 1e-12), cf
    assert np.isclose(told, cost, rtol=1e-5), cf
    assert bound <= cf.lower_bound
    for change in cf.changes:
        if change.feature in rest:
            continue
        item = shown[change.feature]
        if not change.is_number:
            assert (str(change.before), str(change.after)) == (item.before, item.after)
            continue
        assert item.change == item.after - item.before, cf
        before, after = Fraction(repr(change.before)), Fraction(repr(change.after))
        # Away from the input, unless that is not allowed; and never a change that looks like none.
        assert item.change
        if abs(item.after - before) < abs(after - before):
            unit = place_of(item.after) * (1 if after > before else -1)
            assert not meets({**new, change.feature: float(item.after + unit)}, old), cf
        assert abs(float(item.before) - change.before) <= abs(float(item.change))
