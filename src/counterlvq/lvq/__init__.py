"""Six learning vector quantisation classifiers for scikit-learn.

=============  ==========================  =====================================
metric         relative distance (GLVQ)    likelihood ratio (RSLVQ)
=============  ==========================  =====================================
Euclidean      `GLVQ`                      `RSLVQ`
one matrix     `GMLVQ`                     `MRSLVQ`
local          `LGMLVQ`                    `LMRSLVQ`
=============  ==========================  =====================================

All of them predict the label of the nearest prototype.
"""

from counterlvq.lvq.glvq import GLVQ, GMLVQ, LGMLVQ
from counterlvq.lvq.rslvq import LMRSLVQ, MRSLVQ, RSLVQ

__all__ = ["GLVQ", "GMLVQ", "LGMLVQ", "LMRSLVQ", "MRSLVQ", "RSLVQ"]
