"""How answers are worded: the options that say it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import click

import counterlvq as clvq
from counterlvq.cli.conventions import Count
from counterlvq.cli.inputs import Model
from counterlvq.cli.options import label_from
from counterlvq.files import read_within
from counterlvq.presentation.rules import called_by
from counterlvq.presentation.wording import DATES, NUMBERS, Wording

__all__ = ["sentence_options", "wording_from", "wording_options"]

F = TypeVar("F", bound=Callable[..., Any])

_KEY = f"{__name__}.wording"
_MOST_TEMPLATE = 1 << 20


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    ctx.meta.setdefault(_KEY, {})[parameter.name] = value


def _pair(text: str) -> tuple[str, str]:
    label, equals, words = text.partition("=")
    if not equals or not label or not words:
        raise click.BadParameter(
            f"{text!r} is no name of a class; expected LABEL=WORDS, such as good=accepted."
        )
    return label, words


def _template(text: str) -> str:
    if not text.startswith("@"):
        return text
    path = text[1:]
    with open(path, "rb") as file:
        whole = read_within(file, _MOST_TEMPLATE, path, "Name a text with words such as {changes}")
    try:
        return whole.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise clvq.InvalidInputError(
            f"{path} is no text in UTF-8 (byte {error.start} is {whole[error.start]:#04x}); "
            f"expected a template. Save it as UTF-8."
        ) from None


_SENTENCE = (
    click.option(
        "--subject",
        metavar="TEXT",
        callback=_keep,
        expose_value=False,
        help='What sentences are about, such as "Your application".',
    ),
    click.option(
        "--outcome",
        multiple=True,
        type=_pair,
        metavar="LABEL=WORDS",
        callback=_keep,
        expose_value=False,
        help="What a class is called, such as good=accepted; repeatable.",
    ),
    click.option(
        "--numbers",
        type=click.Choice(list(NUMBERS)),
        metavar="SAMPLE",
        callback=_keep,
        expose_value=False,
        help="How numbers are written: 1,234.5 or 1.234,5 or 1 234,5 ...",
    ),
    click.option(
        "--dates",
        type=click.Choice(list(DATES)),
        metavar="SAMPLE",
        callback=_keep,
        expose_value=False,
        help="How dates are written: 2024-05-31 or 31.05.2024 or '31 May 2024' ...",
    ),
)
_LIST = (
    click.option(
        "--most",
        type=Count(1),
        metavar="N",
        callback=_keep,
        expose_value=False,
        help="Name so many changes first, the others behind them.",
    ),
    click.option(
        "--template",
        type=_template,
        metavar="TEXT",
        callback=_keep,
        expose_value=False,
        help="Such as 'To be {outcome}: {list}.'; @FILE for a file.",
    ),
    click.option(
        "--otherwise",
        type=_template,
        metavar="TEXT",
        callback=_keep,
        expose_value=False,
        help="For rows without such changes: 'Dear customer, {text}'; @FILE for a file.",
    ),
    click.option(
        "--rule",
        "rules",
        multiple=True,
        nargs=2,
        metavar="RULE WORDS",
        callback=_keep,
        expose_value=False,
        help="What a rule is called, as --constraint or a text says it; repeatable.",
    ),
    click.option(
        "--response/--no-response",
        default=None,
        callback=_keep,
        expose_value=False,
        help="Say the score or the probability, in percent.",
    ),
)


def wording_options(command: F) -> F:
    """Add the options that say how answers are worded."""
    for option in reversed((*_SENTENCE, *_LIST)):
        command = option(command)
    return command


def sentence_options(command: F) -> F:
    """Add those of the options that any sentence follows."""
    for option in reversed(_SENTENCE):
        command = option(command)
    return command


def wording_from(model: Model, explainer: clvq.Explainer | None = None) -> Wording:
    """Return the wording that the options ask for; rules are those of the explainer."""
    given: dict[str, Any] = click.get_current_context().meta.get(_KEY, {})
    said: dict[str, Any] = {name: value for name, value in given.items() if value not in (None, ())}
    if "outcome" in said:
        said["outcome"] = {label_from(model, text): words for text, words in said["outcome"]}
    rules = dict(said.pop("rules", ()))
    wording = Wording(**said)
    if not rules or explainer is None:
        return wording
    asked = replace(wording, rules=rules)
    try:
        return called_by(asked, explainer.constraints, explainer.features, "--rule")
    except clvq.InvalidInputError as error:
        raise click.UsageError(str(error)) from None
