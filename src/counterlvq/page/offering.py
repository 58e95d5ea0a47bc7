"""The page as a service hands it out, file by file, and as one file that needs nothing else."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from math import isfinite
from typing import Any

from counterlvq.markup.parts import looks
from counterlvq.markup.tags import Safe, tag

__all__ = [
    "TITLE",
    "controls",
    "offline_page",
    "page_file",
    "report_script",
    "served_page",
    "stored",
]

TITLE = "What would have to change?"

# In the order in which one file has them: each needs only what stands before it.
_MODULES = (
    "texts.js", "dom.js", "rational.js", "json.js", "digest.js", "proof.js", "checker.js",
    "state.js", "form.js", "rules.js", "plane.js", "answer.js", "app.js",
)  # fmt: skip
_OF_A_REPORT = (
    "texts.js", "dom.js", "rational.js", "json.js", "digest.js", "proof.js", "checker.js",
    "report.js",
)  # fmt: skip
_IMPORT = re.compile(r"^import \{[^}]*\} from \"\./[a-z]+\.js\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const |function |class |async )", re.MULTILINE)


def page_file(name: str) -> tuple[str, str] | None:
    """Return a file of the page and its media type; None if there is no such file."""
    if name in _MODULES:
        return _read(name), "text/javascript; charset=utf-8"
    return (_css(), "text/css; charset=utf-8") if name == "page.css" else None


def served_page(
    rows: Sequence[Mapping[str, Any]],
    title: str,
    names: Sequence[str] = (),
    target: Any = None,
    suggested: Sequence[str] = (),
) -> tuple[str, str]:
    """Set the page of a service that it asks itself; and the policy that goes with it.

    Rules that are `suggested` are one click away.
    """
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    config: dict[str, Any] = {
        "rows": _offered(rows),
        "names": list(names),
        "suggested": list(suggested),
    }
    if target is not None:
        config["target"] = target
    head = (
        tag("link", rel="stylesheet", href="page/page.css"),
        tag("script", type_="module", src="page/app.js"),
    )
    return _page(title, config, head), policy


def offline_page(
    model: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    answers: Sequence[Mapping[str, Any]],
    title: str,
    names: Sequence[str] = (),
    target: Any = None,
) -> str:
    """Set a page that holds its answers, in one file that loads nothing and sends nothing.

    Parameters
    ----------
    model : mapping
        What the service says of a model.
    rows, answers : sequence of mapping
        Rows, and what the service answers about each, with texts.
    title : str
    names : sequence of str
        What rows are called; by their number by default.
    target : label, optional
        What was asked for.
    """
    script, digest = _one_script(_MODULES)
    policy = (
        f"default-src 'none'; script-src '{digest}'; style-src 'unsafe-inline'; "
        f"img-src data:; base-uri 'none'; form-action 'none'"
    )
    config = {
        "model": dict(model),
        "rows": _offered(rows),
        "answers": list(answers),
        "names": list(names),
        "target": target,
    }
    head = (
        tag("meta", content=policy, attributes={"http-equiv": "Content-Security-Policy"}),
        tag("style", Safe(_css())),
    )
    return _page(title, config, head, script)


def report_script() -> tuple[Safe, str]:
    """Return the script of a report, and the digest by which its policy lets it run.

    It reads what `stored` leaves on the page: the header of certificates and their lines.
    """
    return _one_script(_OF_A_REPORT)


def stored(values: Mapping[str, Any]) -> Safe:
    """Store values on a page, where its script finds them."""
    # The only letter by which text inside a script could end it.
    text = json.dumps(values, allow_nan=False).replace("<", "\\u003c")
    return tag("script", Safe(text), type_="application/json", id_="config")


def _offered(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Leave open what no form can hold: numbers that are infinite, or none."""
    return [
        {
            name: None if isinstance(value, float) and not isfinite(value) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def _one_script(names: Sequence[str]) -> tuple[Safe, str]:
    script = "".join(_EXPORT.sub("", _IMPORT.sub("", _read(name))) for name in names)
    digest = b64encode(sha256(script.encode()).digest()).decode("ascii")
    return tag("script", Safe(script), type_="module"), f"sha256-{digest}"


def _page(
    title: str, config: Mapping[str, Any], head: Sequence[Safe], last: Safe | None = None
) -> str:
    top = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("meta", name_="referrer", content="no-referrer"),
        tag("title", title),
        *head,
    )
    frame = files("counterlvq.page").joinpath("frame.html").read_text(encoding="utf-8")
    body = tag(
        "body",
        stored(config),
        Safe(frame.replace("<!--title-->", tag("h1", title))),
        last,
        class_="clvq",
    )
    return f"<!DOCTYPE html>\n{tag('html', top, body, lang='en')}\n"


def controls() -> Safe:
    """Return the looks of buttons, fields and verdicts, beside those of `markup`."""
    return Safe(_read("controls.css"))


def _css() -> str:
    return looks() + controls() + _read("page.css")


def _read(name: str) -> str:
    return files("counterlvq.page").joinpath(name).read_text(encoding="utf-8")
