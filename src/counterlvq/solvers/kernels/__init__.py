"""Compiled kernels: the closest point of a cell, a few microseconds each.

Both kernels are dual methods. They start at the best point without any condition, which is
dual feasible, and take in violated conditions one at a time; the cost only rises, so a cell
is abandoned as soon as it passes the best answer so far. Conditions are priced afresh at
each step and kept only while they bind, so that thousands of rivals need no more memory than
a few.

Changes are measured in the units of `families.Family`, in which the cost is ``sum |u|`` or
``|u|^2``. A cell is bounded by ``(RN_k - TN_i) u <= lead_k`` for each rival k, and by the
linear constraints ``C u <= h``. Every answer leaves with prices on the conditions that bind,
and with a bound that is computed from these multipliers alone, by code that shares nothing with
the search for them but the rows themselves.
"""
