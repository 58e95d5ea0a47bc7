"""The paper's experiments in one command: `python -m counterlvq.reproduce`.

Tables 1 and 2 of *Efficient computation of counterfactual explanations of LVQ models* (Artelt &
Hammer), with the paper's own figures beside them, and a check of what has to hold.
"""

from counterlvq.reproduce.command import main, reproduce
from counterlvq.reproduce.report import verdict_lines

__all__ = ["main", "reproduce", "verdict_lines"]
