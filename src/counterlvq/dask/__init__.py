"""Explain Dask DataFrames, and datasets on a cluster of `distributed`.

Import it by itself: ``import counterlvq.dask``.
"""

from counterlvq.dask.explaining import explain

__all__ = ["explain"]
