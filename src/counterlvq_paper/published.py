"""The figures that the paper prints, to be shown beside ours."""

from __future__ import annotations

from typing import Final

__all__ = ["SPEED_UP", "TABLE_1", "TABLE_2", "TABLE_2_COLUMNS", "UNSOLVED"]

# Mean Manhattan distance: Downhill-Simplex (Nelder-Mead), CMA-ES, the paper's method.
TABLE_1: Final[dict[tuple[str, str], tuple[float, float, float]]] = {
    ("cancer", "GLVQ"): (3.26, 3.28, 1.96),
    ("cancer", "GMLVQ"): (2.71, 6.49, 2.46),
    ("cancer", "LGMLVQ"): (2.00, 1.61, 1.57),
    ("digits", "GLVQ"): (6.51, 6.53, 3.99),
    ("digits", "GMLVQ"): (21.34, 11.63, 4.40),
    ("digits", "LGMLVQ"): (8.12, 7.88, 7.53),
    ("Ames", "GLVQ"): (3.81, 3.85, 3.32),
    ("Ames", "GMLVQ"): (5.06, 8.63, 3.78),
    ("Ames", "LGMLVQ"): (12.74, 12.59, 8.20),
}
# Share of rows for which the searches found nothing, LGMLVQ only: from, to.
UNSOLVED: Final = (0.05, 0.60)
# How many times faster than the searches the paper's method was: from, to.
SPEED_UP: Final = (1.5, 158.0)

TABLE_2_COLUMNS: Final = ("total_basement", "first_floor", "second_floor", "living_area")
# The house itself, its counterfactual, and the one with "2nd floor <= 1st floor".
TABLE_2: Final[dict[str, tuple[int, int, int, int]]] = {
    "original": (0, 1120, 468, 1588),
    "counterfactual": (0, 366, 1824, 2225),
    "constrained": (373, 1454, 1454, 3125),
}
