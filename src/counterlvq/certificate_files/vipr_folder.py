"""Write proofs for VIPR: a folder with one file for each row and target prototype."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from typing import Any

from counterlvq.certificate_files.lines import Writer, exact
from counterlvq.certificates.vipr import NotExpressible, cell_files
from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.results import Counterfactual

__all__ = ["save_folder"]

INDEX = "index.jsonl"


def save_folder(
    writer: Writer, answers: Iterable[Counterfactual], folder: str | os.PathLike[str]
) -> None:
    """Write a folder that appears whole or not at all.

    Its index has one line for each answer: all cells of the target with their files and bounds,
    and the least of them, which no answer undercuts.
    """
    target = os.path.realpath(folder)
    if os.path.exists(target):
        raise InvalidInputError(
            f"the folder {os.fspath(folder)!r} is there already; expected a name that is free."
        )
    parent = os.path.dirname(target)
    if not os.path.isdir(parent):
        raise InvalidInputError(f"there is no folder {parent!r}; make it first.")
    part = tempfile.mkdtemp(prefix=".vipr-", suffix=".part", dir=parent)
    try:
        with open(os.path.join(part, INDEX), "w", encoding="ascii") as index:
            for n, answer in enumerate(answers):
                index.write(f"{json.dumps(_row(writer, n, answer, part))}\n")
        os.chmod(part, 0o755)
        os.replace(part, target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _row(writer: Writer, n: int, answer: Counterfactual, folder: str) -> dict[str, Any]:
    line = writer.line(answer)
    cells: list[dict[str, Any]] = []
    least = None
    try:
        for cell in cell_files(writer.checker, exact(line)):
            name = f"row{n}_prototype{cell.prototype}.vipr"
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(cell.text)
            bound = "infeasible" if cell.bound is None else float(cell.bound)
            cells.append({"prototype": cell.prototype, "file": name, "bound": bound})
            if cell.bound is not None:
                least = cell.bound if least is None else min(least, cell.bound)
    except NotExpressible as refusal:
        at = refusal.column
        why = f"{refusal}" if at is None else (
            f"the column {writer.question['columns'][at]['name']!r} {refusal}")  # fmt: skip
        raise NotSupportedError(
            f"row {n} cannot be written for VIPR: {why}. The format knows absolute costs under "
            f"shared metrics, of real and whole numbers; write the others with --certificates. "
            f"Least changes and ranges that a model has of its training table are lifted by "
            f"--anywhere, decimals by training with a file of --columns that states none."
        ) from None
    return {
        "row": n,
        "target": line["target"],
        "cost": line["answer"]["cost"],
        "cells": cells,
        "minimum": "infeasible" if least is None else float(least),
    }
