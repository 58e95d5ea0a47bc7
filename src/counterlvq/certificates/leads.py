"""What a foreign `predict` may overlook around rows, and which leads make labels certain."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from counterlvq.distance_bounds import competing
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.restatement_error import Blur
from counterlvq.numeric.row_leads import RowLeads
from counterlvq.numeric.tolerances import SAFE
from counterlvq.row_models import RowModels

__all__ = ["Around", "Leads", "LeadsAt", "blur_around", "blur_within"]

# Prototypes up to so many times as far, squared, as the second nearest may decide around a row.
# Models behind a pipeline alone are concerned: a bound gives way by the blur of these at the row.
_AROUND = 16.0


class Leads(Protocol):
    """How much of a lead makes a label certain, see `counterlvq.pipelines.doubt`."""

    def least_margin(self, rows: Floats) -> Floats:
        """Lead over every prototype of another label with which the label is certain, (n,)."""

    @property
    def is_coarse(self) -> bool:
        """Whether that lead is large enough to be seen in the cost."""

    def overlooked(self, rows: Floats, reach: Floats) -> Floats:
        """Lead that `predict` may overlook at any row within `reach` (n, d) of these, (n,)."""

    def at(self, rows: Floats) -> LeadsAt:
        """Ask several things about the same rows."""

    @property
    def is_direct(self) -> bool:
        """Whether rows are those of the user's table, and not points in coordinates."""


class LeadsAt(Protocol):
    """The same at some rows: what several answers need is computed once."""

    @property
    def least_margin(self) -> Floats:
        """Lead over every prototype of another label with which the label is certain, (n,)."""

    def overlooked(self, reach: Floats) -> Floats:
        """Lead that `predict` may overlook at any row within `reach` (n, d) of these, (n,)."""

    @property
    def scores(self) -> Floats:
        """Scores by which the model decides, up to what they share, (n, p)."""

    def leads(self, target_mask: NDArray[np.bool_]) -> Floats:
        """By how much the nearest wished-for prototype is nearer than any other, (n,)."""

    @property
    def leads_of_nearest(self) -> Floats:
        """By how much the nearest prototype is nearer than any of another label, (n,)."""

    @property
    def alone(self) -> RowLeads | None:
        """Leads at a single row where prototypes are few; None for others."""


class Around(NamedTuple):
    """What a foreign `predict` may overlook at rows and around them, one entry each."""

    certain: Floats  # lead, computed in doubles, with which the label is certain
    blur: Floats  # lead of a rival that may be overlooked


def blur_around(model: PrototypeModel | RowModels, rows: Floats, leads: Floats) -> Floats:
    """As `Acceptance.blur` row by row, where `leads` (n,) make labels certain at rows."""
    own = 2.0 * leads
    if model.blur is not None:
        scores = model.distances_of_checked(rows)
        # Prototypes much farther away than the second nearest decide nothing around here.
        second = np.partition(scores, 1, axis=1)[:, 1:2]
        with np.errstate(over="ignore"):  # then all of them are counted
            blur = np.where(scores <= _AROUND * second, model.blur.of_scores(rows), 0.0)
        own = own + 4.0 * blur.max(axis=1)
    return np.where(np.isfinite(own), own, np.inf)


def blur_within(
    model: PrototypeModel | RowModels,
    rows: Floats,
    reach: Floats,
    around: Floats,
    overlooked: Floats | None,
) -> Floats:
    """As `Acceptance.blur_within`, with what is known `around` rows and `overlooked` there."""
    out = around if overlooked is None else np.maximum(around, overlooked)
    if model.blur is not None:
        out = out + _misstated(model, model.blur, rows, reach)
    return np.where(np.isfinite(out), out, np.inf)


def _misstated(
    model: PrototypeModel | RowModels, blur: Blur, rows: Floats, reach: Floats
) -> Floats:
    """Bound what restating a model got wrong at any row within `reach`, (n,)."""
    # Columns that the model ignores may change without limit.
    limits = np.where(blur.ignored, 0.0, reach)
    limited = np.asarray(np.isfinite(limits).all(axis=1))
    limits = np.where(limited[:, None], limits, 0.0)
    errors = blur.over_boxes(rows - limits, rows + limits)
    found = 2.0 * SAFE * competing(model, rows, limits, errors)
    return np.asarray(np.where(limited, found, np.inf))
