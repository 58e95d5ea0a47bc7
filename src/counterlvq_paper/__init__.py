"""The paper's experiments in one command: `python -m counterlvq_paper`.

Tables 1 and 2 of *Efficient computation of counterfactual explanations of LVQ models* (Artelt &
Hammer), with the paper's own figures beside them, and a check of what has to hold.
"""

from counterlvq_paper.command import main, reproduce
from counterlvq_paper.report import verdict_lines

__all__ = ["main", "reproduce", "verdict_lines"]
