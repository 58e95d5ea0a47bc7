"""Constants of rounding, each with its reason."""

from __future__ import annotations

__all__ = ["EQUALITY_ROUNDING", "INEQUALITY_ROUNDING", "UNIT"]

# Twice the unit roundoff u. A sum of n products of floats, in any order, is off by at most
# gamma_n = n u / (1 - n u) of the sum of their sizes, and n UNIT is more than that for all n
# below 2^51. The slack also pays for the rounding of the error bounds themselves.
UNIT = 2.0**-52
# How far a condition of the user may be off, relative to the numbers that meet in it: an equality,
# which rarely holds to the last digit, and an inequality where it leaves no room at all. Points
# that are off by less count as answers, and no proof on a grid excludes one that is.
EQUALITY_ROUNDING = 2.0**-40
INEQUALITY_ROUNDING = 2.0**-46
