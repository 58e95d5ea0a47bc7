"""`counterlvq` at the shell.

Commands use the public surface of the package only, one module each. They import what takes long
where they need it, so that help and completion come at once.
"""

import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process, or say what is missing for that."""
    try:
        from counterlvq.cli.signals import ENDING

        ENDING.install()
    except KeyboardInterrupt:
        os.write(2, b"counterlvq: interrupted; nothing was written\n")
        os._exit(130)
    try:
        from counterlvq.cli.app import run
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit(
            "counterlvq: error: the command line needs click, which is not installed; install it "
            "and what else it uses with pip install click pandas pyarrow tqdm."
        )
    except (ImportError, OSError) as error:  # too few files may be open, or too little memory
        sys.exit(f"counterlvq: error: the command cannot be loaded: {error}")
    code = run(sys.argv[1:])
    ENDING.work_is_over()
    sys.exit(code)
