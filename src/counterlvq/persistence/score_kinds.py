"""What prototypes and scores of a model are, in the document of its file."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.tolerances import COARSEST_UNIT, EPSILON
from counterlvq.persistence.json_reading import Fields
from counterlvq.persistence.refusals import Refusal
from counterlvq.tables.monotone import Link
from counterlvq.types import Meaning, Response, Scores

__all__ = ["link_document", "link_from", "meaning_document", "meaning_from"]

# Letters of what a prototype or a response is called.
_NAME_LETTERS = 80
# Powers that transform anything lie between -10 and 10.
_LARGEST_POWER = 1e3


def meaning_document(meaning: Meaning) -> dict[str, Any]:
    """Write a meaning as values that JSON can hold."""
    out: dict[str, Any] = {"part": meaning.part, "scores": str(meaning.scores)}
    if meaning.response is not None:
        out["response"] = asdict(meaning.response)
    if meaning.odds is not None:
        out["odds"] = meaning.odds
    if meaning.unit is not None:
        out["unit"] = meaning.unit
    return out


def meaning_from(described: Fields) -> Meaning | None:
    """Read what prototypes and scores are; prototypes and distances where nothing is said."""
    told = described.take_if_there("meaning", dict)
    if told is None:
        return None
    fields = Fields(told, "model.meaning")
    part, scores = _name(fields, "part"), fields.take("scores", str)
    if scores not in [str(kind) for kind in Scores]:
        known = " or ".join(repr(str(kind)) for kind in Scores)
        raise Refusal(f"model.meaning.scores is {scores[:80]!r}; expected {known}.")
    response = fields.take_if_there("response", dict)
    odds: float | None = fields.take_if_there("odds", float)
    unit: float | None = fields.take_if_there("unit", float)
    fields.done()
    if odds is not None and not odds > 0:
        raise Refusal(f"model.meaning.odds is {odds:g}; expected a number above 0.")
    if unit is not None and not EPSILON <= unit < COARSEST_UNIT:
        raise Refusal(
            f"model.meaning.unit is {unit:g}; expected a number from {EPSILON:g} to below "
            f"{COARSEST_UNIT:g}."
        )
    told_response = None if response is None else _response(response)
    return Meaning(part, Scores(scores), told_response, odds, unit)


def _response(told: dict[str, Any]) -> Response:
    fields = Fields(told, "model.meaning.response")
    name, label = _name(fields, "name"), fields.take("label", int)
    threshold: float = fields.take("threshold", float)
    slope: float = fields.take("slope", float)
    is_probability: bool = fields.take("is_probability", bool)
    fields.done()
    if not slope > 0 or (is_probability and not 0 < threshold < 1):
        raise Refusal(
            f"model.meaning.response has the slope {slope:g} and the threshold {threshold:g}; "
            f"expected a slope above 0, and a probability between 0 and 1."
        )
    return Response(name, label, threshold, slope, is_probability)


def _name(fields: Fields, key: str) -> str:
    name: str = fields.take(key, str)
    if not 0 < len(name) <= _NAME_LETTERS:
        raise Refusal(
            f"{fields.where}.{key} has {len(name)} letters; expected 1 to {_NAME_LETTERS}."
        )
    return name


def link_document(link: Link | None) -> dict[str, Any]:
    """Write the function that a column is seen through, where there is one."""
    return {} if link is None else {"link": {"name": link.name, "power": link.power}}


def link_from(part: Fields) -> Link | None:
    """Read the function that a column is seen through; None where there is none."""
    told = part.take_if_there("link", dict)
    if told is None:
        return None
    fields = Fields(told, f"{part.where}.link")
    name, power = _name(fields, "name"), fields.take("power", float)
    fields.done()
    if not -_LARGEST_POWER <= power <= _LARGEST_POWER:
        raise Refusal(f"{fields.where}.power is {power:g}; expected at most {_LARGEST_POWER:g}.")
    try:
        return Link(name, power)
    except InvalidInputError as error:
        raise Refusal(f"{fields.where}: {error}") from None
