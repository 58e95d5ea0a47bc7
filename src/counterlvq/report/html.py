"""The page: what `content` says, set in HTML, with the looks inside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, final

from counterlvq.markup.counts import count_table
from counterlvq.markup.parts import badge, class_change, fact_list, looks, table, value_tables
from counterlvq.markup.tags import Safe, tag
from counterlvq.page.offering import controls, report_script, stored
from counterlvq.report.content import Answer
from counterlvq.report.summary import Summary
from counterlvq.types import Status

__all__ = ["Picture", "Section", "page"]

# Nothing may be loaded, and nothing may run but our own script, whatever ends up on the page.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
# Rows from which on there is something to find among them.
_MANY = 8


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
    line: str | None  # of its certificate


def page(
    title: str, summary: Summary, sections: Sequence[Section], header: str | None = None
) -> str:
    """Set the whole page; with the header of certificates, their proofs can be checked on it."""
    script, policy = None, _POLICY
    if header or len(sections) >= _MANY:
        script, digest = report_script()
        policy = f"{_POLICY}; script-src '{digest}'"
    css = files("counterlvq.report").joinpath("page.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", content=policy, attributes={"http-equiv": "Content-Security-Policy"}),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", looks(), controls(), Safe(css)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the answers", class_="skip", href="#answers"),
        tag("header", tag("h1", title), fact_list(summary.facts, "figures")),
        tag(
            "main",
            _overview(summary, sections),
            tag("div", *(_section(k, part) for k, part in enumerate(sections)), id_="answers"),
        ),
        _footer(),
        stored({"header": header, "answers": _lines(sections) if header else []})
        if script
        else None,
        script,
        class_="clvq",
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _lines(sections: Sequence[Section]) -> list[dict[str, Any]]:
    return [
        {"row": k, "status": str(part.answer.status), "line": part.line}
        for k, part in enumerate(sections)
        if part.answer.proof
    ]


def _overview(summary: Summary, sections: Sequence[Section]) -> Safe:
    many = len(sections) > 1
    rows = int(summary.facts[0].value.replace(",", ""))
    left_out = rows - len(sections)
    return tag(
        "section",
        tag("h2", "What was asked", id_="asked"),
        fact_list(summary.setting, "setting"),
        count_table(summary.features, summary.answers) if many and summary.features else None,
        _contents(sections) if many else None,
        tag("p", f"{left_out:,} more rows are counted above and not shown below.", class_="note")
        if left_out
        else None,
        attributes={"aria-labelledby": "asked"},
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
                tag("td", badge(answer.status)),
            )
        )
    return table("The rows", ("row", "class", "cost", "changes", "proof"), lines, "contents")


def _labels(answer: Answer) -> Sequence[str]:
    if answer.status is Status.INVALID:
        return ("–",)
    return class_change(answer.before, answer.after)


def _section(k: int, part: Section) -> Safe:
    answer = part.answer
    return tag(
        "section",
        tag("h2", answer.name, " ", badge(answer.status), id_=f"row-{k}"),
        tag("p", answer.sentence, class_="sentence"),
        fact_list(answer.facts, "figures small"),
        _conflict(answer),
        value_tables(answer.values),
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
        return (
            "These constraints leave no room together. Without any one of them the others of this "
            "list would; constraints that are not on it may stand in the way then."
        )
    return "These constraints leave no room together; fewer of them may clash as well."


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
        rivals = table(
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
