"""Models of other libraries, read as prototype models.

An adapter reads fitted attributes and imports nothing of the library they come from. One file
per library; `counterlvq.adapters.dispatch` finds the right one by the name of the class.
"""

from counterlvq.adapters.angles import angle_model
from counterlvq.adapters.arithmetic import Arithmetic
from counterlvq.adapters.dispatch import as_prototype_model
from counterlvq.adapters.exported import load_exported
from counterlvq.adapters.foreign_predict import arithmetic_of, predictor_of, with_rounding
from counterlvq.adapters.prototype_tables import import_prototypes
from counterlvq.adapters.thresholds import Thresholded

__all__ = [
    "Arithmetic",
    "Thresholded",
    "angle_model",
    "arithmetic_of",
    "as_prototype_model",
    "import_prototypes",
    "load_exported",
    "predictor_of",
    "with_rounding",
]
