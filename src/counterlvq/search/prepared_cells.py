"""What branch and bound needs for one target, prepared once: for one model, or for many alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterlvq.cells import LocalCells, SharedCells
from counterlvq.certificates.packed_boxes import FlatGrounds
from counterlvq.programs.box_trees import with_squared_prices
from counterlvq.programs.kernel_data import families_of, family_of
from counterlvq.programs.template import ProgramTemplate
from counterlvq.search.compiled_boxes import CompiledBoxes
from counterlvq.solvers.ccp import Frames

__all__ = ["PreparedCells", "compiled_boxes", "compiled_boxes_of_each", "meet_alike"]


class PreparedCells(NamedTuple):
    """What branch and bound needs for one target."""

    cells: LocalCells | SharedCells
    frames: Frames | None  # of local metrics
    kernel: CompiledBoxes | None
    lead: float = 0.0  # over every rival that steps of whole numbers bring about

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        return self.cells.nbytes + (0 if self.kernel is None else self.kernel.nbytes)


def compiled_boxes(
    template: ProgramTemplate, cells: SharedCells, flat: FlatGrounds | None, lead: float
) -> CompiledBoxes | None:
    """Prepare the compiled branch and bound; None where it cannot take the question."""
    if flat is None or not cells.targets.size:
        return None
    asked = template.unconditional.derived(with_squared_prices)
    family = family_of(asked, cells, with_gains=False)
    return None if family is None else CompiledBoxes.of(family, flat, lead)


def compiled_boxes_of_each(
    template: ProgramTemplate,
    each: Sequence[SharedCells],
    flats: Sequence[FlatGrounds | None],
    leads: Sequence[float],
) -> list[CompiledBoxes | None]:
    """As `compiled_boxes` for cells that `meet_alike`."""
    asked = template.unconditional.derived(with_squared_prices)
    families = families_of(asked, each)
    return [
        None if family is None or flat is None else CompiledBoxes.of(family, flat, lead)
        for family, flat, lead in zip(families, flats, leads, strict=True)
    ]


def meet_alike(each: Sequence[SharedCells]) -> bool:
    """Whether the same prototypes are targets, and the same ones rivals."""
    first = each[0]
    return bool(first.targets.size) and all(
        _are_equal(cells.targets, first.targets) and _are_equal(cells.rivals, first.rivals)
        for cells in each
    )


def _are_equal(one: NDArray[np.intp], other: NDArray[np.intp]) -> bool:
    return one is other or np.array_equal(one, other)
