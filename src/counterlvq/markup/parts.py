"""What report, notebooks and page are made of: figures, tables, bars, badges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import final

from counterlvq.markup.tags import Safe, tag
from counterlvq.types import Status

__all__ = [
    "STATUS_WORDS",
    "Fact",
    "FeatureValue",
    "badge",
    "bar",
    "card",
    "class_change",
    "columns_chart",
    "fact_list",
    "looks",
    "table",
    "value_tables",
]

STATUS_WORDS = {
    Status.OPTIMAL: "proved closest",
    Status.FEASIBLE: "valid, gap open",
    Status.INFEASIBLE: "proved: none exists",
    Status.UNKNOWN: "none found",
    Status.INVALID: "cannot be read",
}
# Letters of a value.
_ONE_LINE = 24


@final
@dataclass(frozen=True)
class Fact:
    """One figure with its name."""

    name: str
    value: str


@final
@dataclass(frozen=True)
class FeatureValue:
    """One feature before and after; `weight` is the change as a share of the largest one."""

    feature: str
    before: str
    after: str
    change: str
    weight: float
    changed: bool


@cache
def looks() -> Safe:
    """Return the style sheet of everything inside an element of the class ``clvq``."""
    return Safe(files("counterlvq.markup").joinpath("looks.css").read_text(encoding="utf-8"))


def card(*parts: str | None) -> str:
    """Set parts in a frame of their own, with their looks, for the output of a notebook."""
    return tag("div", tag("style", looks()), *parts, class_="clvq card")


def fact_list(facts: Sequence[Fact], kind: str) -> Safe | None:
    """List figures with their names."""
    if not facts:
        return None
    pairs = (tag("div", tag("dt", fact.name), tag("dd", fact.value)) for fact in facts)
    return tag("dl", *pairs, class_=kind)


def table(caption: str, heads: Sequence[str], rows: Sequence[Safe], kind: str) -> Safe:
    """Set a table that scrolls by itself where it is too wide."""
    top = tag("thead", tag("tr", *(tag("th", head, scope="col") for head in heads)))
    inside = tag("table", tag("caption", caption), top, tag("tbody", *rows), class_=kind)
    return tag("div", inside, class_="wide")


def badge(status: Status) -> Safe:
    """Say how a question was answered, in two or three words."""
    return tag("span", STATUS_WORDS[status], class_=f"badge {status}")


def class_change(before: str, after: str) -> tuple[str, ...]:
    """Name two labels; kept apart, so that those read from right to left do not change places."""
    return tag("bdi", before), " → ", tag("bdi", after)


def bar(low: float, high: float, ends: tuple[float, float]) -> Safe:
    """Draw bars from `low` to 0 and from 0 to `high`, in a cell that reaches from end to end."""
    span = (ends[1] - ends[0]) or 1.0

    def place(value: float) -> float:
        return 2.0 + 196.0 * (value - ends[0]) / span

    def rect(start: float, stop: float, kind: str) -> Safe | None:
        width = place(stop) - place(start)
        if width <= 0:
            return None
        x, size = f"{place(start):.2f}", f"{width:.2f}"
        return tag("rect", x=x, y="2", width=size, height="10", class_=kind)

    zero = f"{place(0.0):.2f}"
    return tag(
        "svg",
        rect(low, 0.0, "down"),
        rect(0.0, high, "up"),
        tag("line", x1=zero, x2=zero, y1="0", y2="14"),
        attributes={
            "viewBox": "0 0 200 14",
            "preserveAspectRatio": "none",
            "aria-hidden": "true",
            "focusable": "false",
        },
    )


def columns_chart(heights: Sequence[int], words: str) -> Safe:
    """Draw counts as columns side by side; `words` say what they are."""
    most = max(heights, default=0) or 1
    step = 200.0 / max(len(heights), 1)
    drawn = [
        tag(
            "rect",
            x=f"{k * step + 1:.2f}",
            y=f"{50.0 - 48.0 * count / most:.2f}",
            width=f"{max(step - 2, 1):.2f}",
            height=f"{48.0 * count / most:.2f}",
        )
        for k, count in enumerate(heights)
    ]
    return tag(
        "svg",
        *drawn,
        tag("line", x1="0", x2="200", y1="50", y2="50"),
        class_="columns",
        role="img",
        attributes={"viewBox": "0 0 200 51", "preserveAspectRatio": "none", "aria-label": words},
    )


def value_tables(values: Sequence[FeatureValue], *, weighed: bool = True) -> Safe:
    """Set what changes as a table with bars, and what does not behind a line to open."""
    changed = [value for value in values if value.changed]
    kept = [value for value in values if not value.changed]
    first = rest = None
    if changed:
        weights = [value.weight for value in changed]
        ends = min(0.0, *weights), max(0.0, *weights)
        heads = ("feature", "before", "after", "change")
        first = table(
            "Before and after",
            (*heads, "weight in the cost") if weighed else heads,
            [_value_row(value, ends if weighed else None) for value in changed],
            "values",
        )
    if kept:
        words = f"{len(kept)} feature{'s' if len(kept) != 1 else ''} unchanged"
        listed = table(
            "Unchanged",
            ("feature", "value"),
            [tag("tr", tag("th", v.feature, scope="row"), _cell(v.before)) for v in kept],
            "kept",
        )
        rest = tag("details", tag("summary", words), listed)
    return tag("div", first, rest)


def _value_row(value: FeatureValue, ends: tuple[float, float] | None) -> Safe:
    low, high = min(value.weight, 0.0), max(value.weight, 0.0)
    return tag(
        "tr",
        tag("th", value.feature, scope="row"),
        _cell(value.before),
        _cell(value.after),
        tag("td", value.change or "→ new level", class_="num"),
        None if ends is None else tag("td", bar(low, high, ends), class_="bar"),
    )


def _cell(text: str) -> Safe:
    """Set a value in one line, unless it is a level that takes more."""
    return tag("td", text, class_="num" if len(text) <= _ONE_LINE else "num long")
