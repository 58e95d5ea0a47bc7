"""The paper's tables, into the folder beside this file: `python -m experiments.paper`."""

import sys
from pathlib import Path

from counterlvq_paper import main

if __name__ == "__main__":
    results = Path(__file__).with_name("results")
    sys.exit(main(program="python -m experiments.paper", output=results))
