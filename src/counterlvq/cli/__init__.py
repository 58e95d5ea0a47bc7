"""`counterlvq` at the shell.

Commands use the public surface of the package only, one module each. They import what takes long
where they need it, so that help and completion come at once.
"""

import signal
import sys
from types import FrameType
from typing import NoReturn

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process, or say what is missing for that."""
    signal.signal(signal.SIGTERM, _leave)
    try:
        from counterlvq.cli.running import run
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit(
            "counterlvq: error: the command line needs click, which is not installed; install it "
            "and what else it uses with pip install click pandas pyarrow tqdm."
        )
    sys.exit(run(sys.argv[1:]))


def _leave(number: int, _: FrameType | None) -> NoReturn:
    """End by an exception, so that what is half done is cleared away."""
    sys.exit(128 + number)
