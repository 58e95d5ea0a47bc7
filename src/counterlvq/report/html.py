"""The page: what `content` says, set in HTML. The looks are in `page.css`, and go inside it.

Text is escaped unless it was made by `tag`. That goes for what HTML would read as markup, and
for what nobody would see or no file could hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import final

from counterlvq.report.content import Answer, Fact, Value
from counterlvq.report.summary import FeatureCount, Summary
from counterlvq.types import Status
from counterlvq.visible import visible

__all__ = ["Picture", "Safe", "Section", "page", "tag"]

# Nothing may be loaded and nothing may run, whatever ends up on the page.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STATUS_WORDS = {
    Status.OPTIMAL: "proved closest",
    Status.FEASIBLE: "valid, gap open",
    Status.INFEASIBLE: "proved: none exists",
    Status.UNKNOWN: "none found",
    Status.INVALID: "cannot be read",
}
_SHOWN_FEATURES = 12
# Letters of a value.
_ONE_LINE = 24


@final
@dataclass(frozen=True)
class Picture:
    """A drawing as base64 of an SVG file, and what it shows in words."""

    svg: str
    words: str


@final
@dataclass(frozen=True)
class Section:
    """One row of the page."""

    answer: Answer
    picture: Picture | None


def page(title: str, summary: Summary, sections: Sequence[Section]) -> str:
    """Set the whole page."""
    css = files("counterlvq.report").joinpath("page.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", content=_POLICY, attributes={"http-equiv": "Content-Security-Policy"}),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Safe(css)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the answers", class_="skip", href="#answers"),
        tag("header", tag("h1", title), _facts(summary.facts, "figures")),
        tag(
            "main",
            _overview(summary, sections),
            tag("div", *(_section(k, part) for k, part in enumerate(sections)), id_="answers"),
        ),
        _footer(),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _facts(facts: Sequence[Fact], kind: str) -> Safe | None:
    if not facts:
        return None
    pairs = (tag("div", tag("dt", fact.name), tag("dd", fact.value)) for fact in facts)
    return tag("dl", *pairs, class_=kind)


def _overview(summary: Summary, sections: Sequence[Section]) -> Safe:
    many = len(sections) > 1
    rows = int(summary.facts[0].value.replace(",", ""))
    left_out = rows - len(sections)
    return tag(
        "section",
        tag("h2", "What was asked", id_="asked"),
        _facts(summary.setting, "setting"),
        _feature_table(summary) if many and summary.features else None,
        _contents(sections) if many else None,
        tag("p", f"{left_out:,} more rows are counted above and not shown below.", class_="note")
        if left_out
        else None,
        attributes={"aria-labelledby": "asked"},
    )


def _feature_table(summary: Summary) -> Safe:
    shown = summary.features[:_SHOWN_FEATURES]
    rest = len(summary.features) - len(shown)
    caption = "How often each feature changes" + (f"; {rest} more change less often" * bool(rest))
    lowered = max(use.lowered for use in shown) / summary.answers
    raised = max(use.raised + use.other for use in shown) / summary.answers
    return _table(
        caption,
        ("feature", "lowered", "raised or new", "share of answers"),
        [_feature_row(use, summary.answers, (-lowered, raised)) for use in shown],
        "counts",
    )


def _feature_row(use: FeatureCount, answers: int, ends: tuple[float, float]) -> Safe:
    bar = _bar(-use.lowered / answers, (use.raised + use.other) / answers, ends)
    return tag(
        "tr",
        tag("th", use.feature, scope="row"),
        tag("td", f"{use.lowered:,}", class_="num"),
        tag("td", f"{use.raised + use.other:,}", class_="num"),
        tag("td", bar, class_="bar"),
    )


def _contents(sections: Sequence[Section]) -> Safe:
    lines = []
    for k, part in enumerate(sections):
        answer = part.answer
        cost = next((fact.value for fact in answer.facts if fact.name.split(",")[0] == "cost"), "–")
        changed = sum(value.changed for value in answer.values)
        lines.append(
            tag(
                "tr",
                tag("th", tag("a", answer.name, href=f"#row-{k}"), scope="row"),
                tag("td", *_labels(answer)),
                tag("td", cost, class_="num"),
                tag("td", str(changed) if answer.status.has_answer else "–", class_="num"),
                tag("td", _badge(answer.status)),
            )
        )
    return _table("The rows", ("row", "class", "cost", "changes", "proof"), lines, "contents")


def _labels(answer: Answer) -> Sequence[str]:
    """Both labels, kept apart: those that are read from right to left do not change places."""
    if answer.status is Status.INVALID:
        return ("–",)
    return tag("bdi", answer.before), " → ", tag("bdi", answer.after)


def _table(caption: str, heads: Sequence[str], rows: Sequence[Safe], kind: str) -> Safe:
    top = tag("thead", tag("tr", *(tag("th", head, scope="col") for head in heads)))
    inside = tag("table", tag("caption", caption), top, tag("tbody", *rows), class_=kind)
    return tag("div", inside, class_="wide")


def _badge(status: Status) -> Safe:
    return tag("span", _STATUS_WORDS[status], class_=f"badge {status}")


def _section(k: int, part: Section) -> Safe:
    answer = part.answer
    return tag(
        "section",
        tag("h2", answer.name, " ", _badge(answer.status), id_=f"row-{k}"),
        tag("p", answer.sentence, class_="sentence"),
        _facts(answer.facts, "figures small"),
        _conflict(answer),
        _values(answer),
        _figure(part.picture),
        _certificate(answer),
        class_="row",
        attributes={"aria-labelledby": f"row-{k}"},
    )


def _conflict(answer: Answer) -> Safe | None:
    if answer.status is not Status.INFEASIBLE:
        return None
    if not answer.conflict:
        return tag("p", "The model never says so, with or without constraints.")
    return tag(
        "div",
        tag("h3", "What stands in the way"),
        tag("p", _clash(answer)),
        tag("ul", *(tag("li", tag("code", item)) for item in answer.conflict)),
    )


def _clash(answer: Answer) -> str:
    if len(answer.conflict) == 1:
        return "This constraint alone leaves no room."
    if answer.conflict_is_irreducible:
        return "These constraints leave no room together; giving up any one of them would."
    return "These constraints leave no room together; fewer of them may clash as well."


def _values(answer: Answer) -> Safe | None:
    changed = [value for value in answer.values if value.changed]
    kept = [value for value in answer.values if not value.changed]
    table = None
    if changed:
        weights = [value.weight for value in changed]
        ends = min(0.0, *weights), max(0.0, *weights)
        table = _table(
            "Before and after",
            ("feature", "before", "after", "change", "weight in the cost"),
            [_value_row(value, ends) for value in changed],
            "values",
        )
    rest = None
    if kept:
        words = f"{len(kept)} feature{'s' if len(kept) != 1 else ''} unchanged"
        listed = _table(
            "Unchanged",
            ("feature", "value"),
            [tag("tr", tag("th", v.feature, scope="row"), _cell(v.before)) for v in kept],
            "kept",
        )
        rest = tag("details", tag("summary", words), listed)
    return tag("div", table, rest)


def _value_row(value: Value, ends: tuple[float, float]) -> Safe:
    low, high = min(value.weight, 0.0), max(value.weight, 0.0)
    return tag(
        "tr",
        tag("th", value.feature, scope="row"),
        _cell(value.before),
        _cell(value.after),
        tag("td", value.change or "→ new level", class_="num"),
        tag("td", _bar(low, high, ends), class_="bar"),
    )


def _cell(text: str) -> Safe:
    """Set a value in one line, unless it is a level that takes more."""
    return tag("td", text, class_="num" if len(text) <= _ONE_LINE else "num long")


def _bar(low: float, high: float, ends: tuple[float, float]) -> Safe:
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


def _figure(picture: Picture | None) -> Safe | None:
    if picture is None:
        return None
    source = f"data:image/svg+xml;base64,{picture.svg}"
    return tag(
        "figure",
        tag("img", src=source, alt=picture.words, width="720", height="660"),
        tag(
            "figcaption",
            "A slice through the model: colours are what it says, the bright shape is all that "
            "costs less than the bound.",
        ),
    )


def _certificate(answer: Answer) -> Safe | None:
    if not answer.proof:
        return None
    rivals = pressures = None
    if answer.rivals:
        near = "ahead at" if answer.part in ("class", "component") else "nearer to"
        rivals = _table(
            "Rivals that are charged for",
            (answer.part, f"{near} the input by", "price"),
            [
                tag(
                    "tr",
                    tag("th", rival.name, scope="row"),
                    tag("td", rival.lead, class_="num"),
                    tag("td", rival.price, class_="num"),
                )
                for rival in answer.rivals
            ],
            "rivals",
        )
    if answer.pressures:
        listed = (
            tag("li", tag("code", item.constraint), f": {item.words}.") for item in answer.pressures
        )
        pressures = tag(
            "div", tag("p", "What lifting a constraint would save:"), tag("ul", *listed)
        )
    return tag(
        "div",
        tag("h3", "Why no smaller change would do" if answer.status.has_answer else "The proof"),
        *(tag("p", words) for words in answer.proof),
        rivals,
        pressures,
        tag("p", answer.check, class_="note") if answer.check else None,
        class_="certificate",
    )


def _footer() -> Safe:
    return tag(
        "footer",
        tag(
            "p",
            "Check any answer yourself with the same model, cost and constraints: ",
            tag("code", "explainer.verify(cf) == cf.lower_bound"),
            ". Made by counterlvq; the page holds all it needs and loads nothing.",
        ),
    )


_VOID = frozenset({"br", "hr", "img", "link", "meta"})


@final
class Safe(str):
    """Finished markup."""

    __slots__ = ()


def tag(
    name: str, *children: str | None, attributes: dict[str, str] | None = None, **more: str
) -> Safe:
    """Build one element; None among the children is left out.

    Attributes with other letters than Python's go into `attributes`; a trailing underscore
    keeps ``class_`` from being a keyword.
    """
    given = {key.rstrip("_"): value for key, value in more.items()} | (attributes or {})
    opened = "".join(
        f' {key}="{escape(visible(value), quote=True)}"' for key, value in given.items()
    )
    if name in _VOID:
        return Safe(f"<{name}{opened}>")
    inside = "".join(
        child if isinstance(child, Safe) else escape(visible(child), quote=False)
        for child in children
        if child is not None
    )
    return Safe(f"<{name}{opened}>{inside}</{name}>")
