"""Measurements, as ratios within one run. `python -m benchmarks` runs them all."""
