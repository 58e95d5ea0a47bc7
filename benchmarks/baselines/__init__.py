"""Other ways to the same answers, each written as well as its method allows.

They share nothing with the package but the model: the half-spaces of a cell are derived here
from the rule of the nearest prototype.
"""
