"""What this package raises.

Exceptions are for the caller's mistakes; what a search finds, or does not find,
is data (see `counterlvq.Status`). ::

    CounterlvqError
    ├── InvalidInputError (ValueError)      a value that cannot be used as given
    │   ├── UnknownFeatureError             no feature of that name or position
    │   ├── UnknownLabelError               no prototype carries that label
    │   ├── ConstraintSyntaxError           a constraint string that cannot be read
    │   └── ModelFileError                  a file that holds no model, or a damaged one
    ├── NotSupportedError (TypeError)       a kind of model or request that is out of scope
    ├── TooLargeError (MemoryError)         a question that needs more memory than there is
    └── WorkerLostError (RuntimeError)      a process that worked on a batch was ended
"""

from __future__ import annotations

from counterlvq.safe_text import visible

__all__ = [
    "ConstraintSyntaxError",
    "CounterlvqError",
    "InvalidInputError",
    "ModelFileError",
    "NotSupportedError",
    "TooLargeError",
    "UnknownFeatureError",
    "UnknownLabelError",
    "WorkerLostError",
]


# Letters of a message; longer ones hold what nobody reads to the end, and are kept in `args`.
_LONGEST = 2000


class CounterlvqError(Exception):
    """Base class of every error this package raises on purpose.

    Its text is one line in which nothing acts upon a terminal, whatever names it quotes.
    """

    def __str__(self) -> str:
        lines = super().__str__().split("\n")
        return visible(" ".join(line.strip(" \t\r") for line in lines), _LONGEST)


class InvalidInputError(CounterlvqError, ValueError):
    """A value cannot be used as given; the text says what was expected instead."""


class UnknownFeatureError(InvalidInputError):
    """A feature is named that the model does not have."""


class UnknownLabelError(InvalidInputError):
    """A target label is asked for that no prototype carries."""


class ConstraintSyntaxError(InvalidInputError):
    """A constraint string is not a linear comparison over known features."""


class ModelFileError(InvalidInputError):
    """A file cannot be loaded as a model: damaged, too new, too large, or something else."""


class NotSupportedError(CounterlvqError, TypeError):
    """A kind of model or request lies outside what the package can answer."""


class TooLargeError(CounterlvqError, MemoryError):
    """A question needs more memory than the machine has; the text says how much."""


class WorkerLostError(CounterlvqError, RuntimeError):
    """A process that worked on a batch was ended from outside, and some rows were lost to it.

    Attributes
    ----------
    rows : tuple of int
        Positions in the batch of the rows that it had in hand.
    """

    def __init__(self, words: str, rows: tuple[int, ...] = ()) -> None:
        super().__init__(words)
        self.rows = rows
