"""Pictures of answers, drawn with matplotlib (`pip install matplotlib`).

`plot_changes` shows what changes, `plot_plane` the proof that no smaller change would do,
`plot_batch` which features change in many answers, `plot_image` an image before and after,
`plot_robustness` how many rows stay right within a radius. Each draws into the axes that it is
handed, or into a new figure, and returns the axes.
"""

from counterlvq.plots.batches import plot_batch
from counterlvq.plots.changes import plot_changes
from counterlvq.plots.images import plot_image
from counterlvq.plots.plane import plot_plane
from counterlvq.plots.robust import plot_robustness

__all__ = ["plot_batch", "plot_changes", "plot_image", "plot_plane", "plot_robustness"]
