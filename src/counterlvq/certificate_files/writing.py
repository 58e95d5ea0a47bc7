"""Write certificate files: whole or not at all."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from counterlvq.certificate_files.lines import Explains, Writer, text_of
from counterlvq.certificate_files.vipr_folder import save_folder
from counterlvq.errors import InvalidInputError
from counterlvq.files import whole_file
from counterlvq.numeric.arrays import told
from counterlvq.results import Counterfactual

__all__ = ["save_certificate", "save_lines"]

Path = str | os.PathLike[str]


class Verifies(Explains, Protocol):
    """An explainer that can check its own answers."""

    def verify(self, counterfactual: Counterfactual) -> float:
        """Recompute the bound that the proof of an answer shows."""


def save_certificate(
    counterfactual: Counterfactual,
    path: Path,
    explainer: Verifies,
    *,
    model_apart: bool | Path = False,
) -> None:
    """Write an answer and its proof to a file that others can check without this package.

    The file holds the model, and the prototypes of a nearest neighbour are training rows: hand it
    out as you would the model, or keep that apart.

    Parameters
    ----------
    counterfactual : Counterfactual
        An answer of `explainer`.
    path : str or path
        Where to write; the file appears whole or not at all.
    explainer : Explainer
        The one that gave the answer.
    model_apart : bool or path, default False
        Write the model to a file of its own, of that name or called like `path` with
        ``.model`` behind it, and leave its hash in the certificate.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import counterlvq as clvq
    >>> explainer = clvq.Explainer(clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "answer.jsonl"
    ...     clvq.save_certificate(explainer.explain([1.0]), file, explainer)
    ...     len(file.read_text().splitlines())
    2
    """
    _refuse_swapped(counterfactual, path, explainer)
    _refuse_foreign(counterfactual, explainer)
    save_lines([counterfactual], path, explainer, model_apart)


def _refuse_swapped(counterfactual: object, path: object, explainer: object) -> None:
    for name, given, fits, expected in (
        (
            "counterfactual",
            counterfactual,
            isinstance(counterfactual, Counterfactual),
            "a Counterfactual as `explain` returns it",
        ),
        ("path", path, isinstance(path, str | os.PathLike), "the name of a file"),
        ("explainer", explainer, hasattr(explainer, "prepared_for"), "the Explainer that gave it"),
    ):
        if not fits:
            raise InvalidInputError(
                f"{name} is {told(given)}; expected {expected}: "
                f"save_certificate(counterfactual, path, explainer)."
            )


def _refuse_foreign(answer: Counterfactual, explainer: Verifies) -> None:
    """Refuse an answer whose proof shows nothing here: its line would be refuted."""
    if explainer.verify(answer) <= 0.0 < answer.lower_bound:
        raise InvalidInputError(
            f"the answer has the lower bound {answer.lower_bound:g}, of which its proof shows "
            f"nothing in the question of this explainer; expected the Explainer that gave it "
            f"(of alternatives, `asked` has one for each)."
        )


def _filed(answers: Iterable[Any], explainer: Explains) -> Iterator[Counterfactual]:
    """Answers as answers to the question that a file states."""
    for answer in answers:
        if not isinstance(answer, Counterfactual):
            raise InvalidInputError(
                f"an answer is {told(answer)}; expected a Counterfactual as `explain` returns it."
            )
        yield explainer.as_filed(answer)


def save_lines(
    answers: Iterable[Counterfactual],
    path: Path,
    explainer: Explains,
    model_apart: bool | Path = False,
    *,
    vipr: bool = False,
) -> None:
    """Write many answers to one file, or to a folder in the format of VIPR."""
    writer = Writer.of(explainer.for_files())
    answers = _filed(answers, explainer)
    if vipr:
        save_folder(writer, answers, path)
        return
    aside = f"{os.fspath(path)}.model" if model_apart is True else model_apart
    if aside is not False:
        if os.path.realpath(aside) == os.path.realpath(path):
            raise InvalidInputError(
                f"model_apart is {os.fspath(aside)!r}, the certificate itself; expected the name "
                f"of another file."
            )
        with whole_file(aside) as file:
            file.write(f"{text_of(writer.model_file())}\n".encode())
    with whole_file(path) as file:
        file.write(f"{text_of(writer.header(apart=aside is not False))}\n".encode())
        for answer in answers:
            file.write(f"{text_of(writer.line(answer))}\n".encode())
    if writer.lowered:
        warnings.warn(
            f"{len(writer.lowered)} answers claim more than exact arithmetic shows of their proof; "
            f"the file claims what it shows.",
            stacklevel=3,
        )
