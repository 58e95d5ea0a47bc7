"""Write certificate files: whole or not at all."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable

from counterlvq.certified.lines import Explains, Writer, text_of
from counterlvq.errors import InvalidInputError
from counterlvq.files import whole_file
from counterlvq.numeric.arrays import told
from counterlvq.results import Counterfactual

__all__ = ["PRIVACY", "save_lines"]

Path = str | os.PathLike[str]
# Said once for each file that holds a model.
PRIVACY = (
    "a certificate holds the model, and the prototypes of a nearest neighbour are training rows; "
    "keep it as you keep the model, or write the model to a file of its own (model_apart)."
)


def save_lines(
    answers: Iterable[Counterfactual],
    path: Path,
    explainer: Explains,
    *,
    model_apart: Path | None = None,
) -> list[int]:
    """Write answers to a certificate file; return the lines that claim less than their answer.

    With `model_apart` the model goes to a file of its own, and its hash stands for it.
    """
    from counterlvq import __version__

    writer = Writer(explainer, f"counterlvq {__version__}")
    if model_apart is not None:
        if os.path.realpath(model_apart) == os.path.realpath(path):
            raise InvalidInputError(
                f"model_apart is {os.fspath(model_apart)!r}, the certificate itself; expected the "
                f"name of another file."
            )
        with whole_file(model_apart) as file:
            file.write(f"{text_of(writer.model_file())}\n".encode())
    with whole_file(path) as file:
        file.write(f"{text_of(writer.header(apart=model_apart is not None))}\n".encode())
        for answer in answers:
            if not isinstance(answer, Counterfactual):
                raise InvalidInputError(
                    f"an answer is {told(answer)}; expected a Counterfactual as `explain` returns "
                    f"it."
                )
            file.write(f"{text_of(writer.line(answer))}\n".encode())
    if writer.lowered:
        warnings.warn(
            f"{len(writer.lowered)} answers claim more than exact arithmetic shows of their proof; "
            f"the file claims what it shows.",
            stacklevel=3,
        )
    return writer.lowered
