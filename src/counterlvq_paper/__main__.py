"""Run the paper's experiments: `python -m counterlvq_paper`."""

import sys

from counterlvq_paper.command import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main(program="python -m counterlvq_paper"))
