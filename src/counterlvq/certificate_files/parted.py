"""Proofs in parts: of questions whose answers are a union, by labels, prototypes and ellipsoids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from counterlvq.certificate_files.header import numbering_of
from counterlvq.certificates.files import proof_values
from counterlvq.certificates.unions import StatedPart
from counterlvq.numeric.arrays import Floats, key_of, plain

__all__ = ["parted_values"]

Values = dict[str, Any]


def parted_values(
    parts: Iterable[StatedPart], classes: list[Any], row: Floats, cap: float, goal: float
) -> Values:
    """Write out of the certificates of parts what shows `goal`, in terms of the whole model."""
    places = {key_of(plain(label)): c for c, label in enumerate(classes)}
    return {"parts": [_stated(part, places, row, cap, goal) for part in parts]}


def _stated(
    part: StatedPart, places: Mapping[Any, int], row: Floats, cap: float, goal: float
) -> Values:
    asked = part.asked
    question = asked.question_for(row, (part.label,))
    numbering = numbering_of(asked.prepared_for(row))
    margin = asked.margin or 0.0
    told = proof_values(part.certificate, question, numbering, cap, goal, margin)
    at = {} if part.ellipsoid is None else {"ellipsoid": part.ellipsoid}
    return {
        "class": places[key_of(plain(part.label))],
        "prototypes": list(part.prototypes),
        **at,
        "proof": _restated(told, part),
    }


def _restated(proof: Values, part: StatedPart) -> Values:
    """State a proof about the model of a part as one about the whole model."""
    if "counted" in proof:
        nodes = [_restated(n, part) if "cells" in n else n for n in proof["counted"]]
        return {**proof, "counted": nodes}
    cells = [part.restated(cell) for cell in proof["cells"]]
    for cell in cells:
        if "nodes" in cell:
            cell["nodes"] = [_charged(node, part) for node in cell["nodes"]]
    return {**proof, "cells": [cell for cell in cells if cell]}


def _charged(node: Values, part: StatedPart) -> Values:
    if "charges" not in node:
        return node
    return {**node, "charges": part.restated(node["charges"])}
