"""Ask a model what would change its mind, about one row or many."""

from counterlvq.explainer.explainer import Explainer

__all__ = ["Explainer"]
