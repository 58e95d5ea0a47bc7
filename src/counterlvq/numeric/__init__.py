"""Arithmetic and how it is run: checked arrays, exact sums, compiled code, memory, interrupts.

Nothing here knows a model. `interrupts` and `worker_processes` are here because solvers need
them for long calls, and solvers see no other room below `programs`.
"""
