"""Run the paper's experiments: `python -m counterlvq.reproduce`."""

import sys

from counterlvq.reproduce.command import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main(program="python -m counterlvq.reproduce"))
