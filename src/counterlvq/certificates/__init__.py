"""All that is believed: bounds recomputed from multipliers, and what a finished point must meet.

No solver and no search is reached from here, not even through another module.
"""
