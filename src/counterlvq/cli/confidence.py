"""`--confidence`: how sure the model has to be of an answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from math import isnan, nan

import click

import counterlvq as clvq

__all__ = ["confidence_option"]

# Each kind of confidence with a usual value.
_CONFIDENCES: dict[str, tuple[Callable[[float], clvq.Confidence | float], str]] = {
    "probability": (clvq.Probability, "0.9"),
    "similarity": (clvq.RelativeSimilarity, "0.3"),
    "drift": (clvq.Drift, "0.1"),
    "margin": (float, "0.5"),
}


def _confidence(text: str) -> clvq.Confidence | float:
    """Read how sure the model has to be, as in probability=0.9 or drift=0.1; or a margin."""
    kind, _, how = text.partition("=")
    number, colon, norm = how.partition(":")
    if kind == "noise":
        made: Callable[[float], clvq.Confidence | float] = partial(clvq.Noise, norm=norm or "l2")
        usual = "0.1:linf"
    elif kind in _CONFIDENCES and not colon:
        made, usual = _CONFIDENCES[kind]
    else:
        raise click.BadParameter(
            f"{text!r} is no confidence; expected probability=0.9, similarity=0.3, drift=RADIUS, "
            f"noise=RADIUS:NORM, such as noise=0.1:linf, or margin=0.5."
        )
    try:
        value = float(number)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} has {_no_number(number)}; expected one, such as {kind}={usual}."
            f"{_as_share(number)}"
        ) from None
    try:
        return made(value)
    except ValueError as error:
        # What an argument is called in Python is no word of the shell.
        said = re.sub(r"^[A-Z]\w+: ", "", str(error))
        raise click.BadParameter(f"{text!r}: {said}") from None


def _no_number(text: str) -> str:
    return f"{text!r} where a number belongs" if text.strip() else "no number"


def _as_share(text: str) -> str:
    """Say how somebody writes what came in percent, if that is what came."""
    try:
        share = float(text.strip().removesuffix("%")) / 100 if text.strip().endswith("%") else nan
    except ValueError:
        return ""
    return "" if isnan(share) else f" Write {share:g} for {text.strip()}."


def _only_one(
    ctx: click.Context, parameter: click.Parameter, given: tuple[clvq.Confidence | float, ...]
) -> clvq.Confidence | float | None:
    """Refuse several confidences: whoever states two wants both, and only one can be had."""
    if len(given) > 1:
        raise click.BadParameter(
            f"it came {len(given)} times; expected one confidence. Leave out all but the one that "
            f"matters most.",
            ctx,
            parameter,
        )
    return given[0] if given else None


confidence_option = click.option(
    "--confidence",
    multiple=True,
    type=_confidence,
    callback=_only_one,
    metavar="KIND=HOW",
    help="Be sure: probability=0.9, similarity=0.3, drift=0.1, noise=0.1:linf (measured as --cost "
    "measures: in typical deviations or plain units), margin=0.5.",
)
