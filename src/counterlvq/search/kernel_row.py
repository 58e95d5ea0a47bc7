"""One row through the compiled kernel, in memory that is set aside once for each target.

A row that is asked for alone spends its time between calls rather than in the kernel. What does
not depend on it is made once, and of what the kernel leaves behind a copy is kept from which a
certificate is made when somebody asks for one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.acceptance import Acceptance
from counterlvq.certificates.cellwise import CellCertificate
from counterlvq.certificates.judged import gap_of
from counterlvq.certificates.row_doubt import RowDoubt
from counterlvq.numeric.arrays import Floats, read_only
from counterlvq.programs.kernel_data import KernelData
from counterlvq.programs.proof_data import ProofData, limits_at
from counterlvq.search.exact import certificate_of
from counterlvq.solvers import compiled

__all__ = ["KernelRow", "RowFound"]


_SOLVED = int(compiled.Code.SOLVED)


class _Memory(NamedTuple):
    """What one call works in. The second of two rows is the answer, the first the input itself."""

    scratch: compiled.Scratch
    X: Floats  # (2, d) the input, twice
    Y: Floats  # (2, d)
    least: Floats  # (1,)
    blur: Floats  # (1,)
    cost: Floats  # (1,)
    bounds: Floats  # (2,)
    code: NDArray[np.int64]  # (1,)


class RowFound(NamedTuple):
    """What the kernel found for a row, judged by the constraints but by no `predict` yet."""

    pair: Floats  # (2, d) the input and the answer
    is_input_good: bool  # whether the input meets the constraints as it is
    cost: float
    bound: float
    gap: float
    resolution: float
    trace: compiled.Trace | None = None  # what a certificate is made of, once all is known

    def is_at(self, y: Floats) -> bool:
        """Whether the answer is this point, to the last bit."""
        return bool(self.pair[1].tobytes() == y.tobytes())

    @property
    def y(self) -> Floats:
        """The answer, (d,)."""
        answer: Floats = read_only(self.pair[1])
        return answer


@final
@dataclass(frozen=True, eq=False)
class KernelRow:
    """Asks the kernel about single rows that wish for the same. Threads may share it."""

    rules: Acceptance
    stated: ProofData
    family: KernelData
    _spare: list[_Memory] = field(init=False, default_factory=list)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the memory behind: it holds nothing."""
        return {**self.__dict__, "_spare": []}

    @property
    def nbytes(self) -> int:
        """Bytes of the memory of one call."""
        d, targets = self.family.center.size, self.family.targets.size
        return 8 * (4 * d * d + 4 * targets * (d + 2) + 2 * self.family.rivals.size)

    def find(self, x: Floats, doubt: RowDoubt | None) -> RowFound | None:
        """Answer a row; None where there is no answer, or none that meets the constraints.

        `doubt` is what the user's own `predict` may overlook, if it is another than the model's.
        Where that is more at changes as large as the answer than around the row, the bound
        allows for it.
        """
        try:
            memory = self._spare.pop()
        except IndexError:
            memory = self._new_memory()
        memory.X[:] = x
        memory.least[0], memory.blur[0] = (0.0, 0.0) if doubt is None else (doubt.least, doubt.blur)
        found = self._asked(memory)
        if found and doubt and not doubt.covers(found.cost, self.stated):
            there = doubt.blur_within(limits_at(self.stated, np.array([found.cost])))
            if there == np.inf:
                found = None
            elif there > doubt.blur:
                memory.blur[0] = there
                found = self._asked(memory, found)
        if found is not None:
            found = found._replace(trace=compiled.trace_of(memory.scratch))
        self._spare.append(memory)
        return found

    def certificate(self, trace: compiled.Trace) -> CellCertificate:
        """State the multipliers of a row so that they can be checked."""
        return certificate_of(trace, self.family, self.rules.template.inequalities.v.size)

    def certifying(self, found: RowFound) -> partial[CellCertificate]:
        """Return what makes the certificate of an answer."""
        assert found.trace is not None
        return partial(self.certificate, found.trace)

    def _new_memory(self) -> _Memory:
        d = self.family.center.size
        return _Memory(
            scratch=compiled.scratch_for(self.family),
            X=np.zeros((2, d)),
            Y=np.zeros((2, d)),
            least=np.zeros(1),
            blur=np.zeros(1),
            cost=np.zeros(1),
            bounds=np.zeros(2),
            code=np.zeros(1, dtype=np.int64),
        )

    def _asked(self, memory: _Memory, known: RowFound | None = None) -> RowFound | None:
        """Run the kernel and judge what it finds; a point that is `known` was judged before."""
        scratch, X, Y, least, blur, cost, bounds, code = memory
        compiled.kernel_for(self.family)(
            self.family, self.stated, X[:1], np.nan, least, blur, scratch, Y[1:], cost, bounds[1:],
            code,
        )  # fmt: skip
        if code[0] != _SOLVED:
            return None
        if known is not None and known.is_at(Y[1]):
            bound = float(bounds[1])
            return known._replace(
                bound=min(bound, known.cost),
                gap=gap_of(known.cost, bound),
            )
        Y[0] = X[0]
        judged = self.rules.judged(Y, X, bounds)
        is_input_good, is_good = judged.good.tolist()
        if not is_good:
            return None
        total = float(judged.cost[1])
        return RowFound(
            Y.copy(),
            is_input_good,
            total,
            min(float(bounds[1]), total),
            float(judged.gap[1]),
            float(judged.resolution[1]),
        )
