"""Values in pieces and conditions on numbers, stated for compiled searches and compiled proofs.

What is allowed is read off the same `Ticks` and `BoxTest` by which proofs in Python go. No solver
is imported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.box_tests import BoxTest
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import UNIT
from counterlvq.programs.box_trees import Pieces, piece_columns
from counterlvq.programs.template import ProgramTemplate

__all__ = ["PieceGrounds", "piece_grounds"]


class _Piece(NamedTuple):
    """Changes from `low` to `high`, and the values that a search may use of them."""

    low: float
    high: float
    least: float
    most: float


class _Column(NamedTuple):
    """A column of pieces, seen from one row."""

    pieces: list[_Piece]
    between: list[float]  # the change where each piece but the last ends
    size: float  # least width of a gap
    spans: list[tuple[float, float]]  # all allowed changes, rounded outwards


class _Row(NamedTuple):
    columns: list[_Column]
    tests: tuple[BoxTest, ...]


@final
@dataclass(frozen=True, eq=False)
class PieceGrounds:
    """Where allowed values lie in pieces and conditions on numbers apply, for any row."""

    template: ProgramTemplate
    columns: NDArray[np.int64]  # (s,) among all features

    def at(self, X: Floats, branched: NDArray[np.int64] | None = None, first: int = 0) -> Pieces:
        """State them for rows (n, d), which a search counts from `first`.

        `branched` are the columns that it branches on; a proof alone needs none.
        """
        rows = [self._row(x) for x in X]
        items, on = self.template.conditionals, np.zeros(0, dtype=np.int64)
        on = on if branched is None else branched
        place = {int(j): q for q, j in enumerate(on.tolist())}
        tested = [-1 if item.test is None else item.test.column for item in items]
        columns = [
            [(s, place[j]) for s, j in enumerate(self.columns.tolist()) if j in place]
        ] * len(X)
        listed = [
            [row.columns[s] for s, _ in mine] for row, mine in zip(rows, columns, strict=True)
        ]
        at = [q for _, q in columns[0]] if columns else []
        shape = len(X), on.size
        low = _filled(shape, at, [[[p.least for p in c.pieces] for c in row] for row in listed])
        high = _filled(shape, at, [[[p.most for p in c.pieces] for c in row] for row in listed])
        between = _filled(shape, at, [[c.between for c in row] for row in listed])
        counts, size = np.zeros(shape, dtype=np.int64), np.ones(shape)
        counts[:, at] = np.array([[len(c.pieces) for c in row] for row in listed]).reshape(
            len(X), -1
        )
        size[:, at] = np.array([[c.size for c in row] for row in listed]).reshape(len(X), -1)
        is_piece = np.zeros(on.size, dtype=bool)
        is_piece[at] = True
        every, tests = range(len(items)), (len(X), len(items))
        parts = [[test.parts for test in row.tests] for row in rows]
        cuts = [[[cut.at for cut in test.cuts] for test in row.tests] for row in rows]
        spans, shown = [[c.spans for c in row.columns] for row in rows], (len(X), self.columns.size)
        return Pieces(
            first=np.array([first], dtype=np.int64),
            is_piece=is_piece,
            low=low,
            high=high,
            between=between,
            counts=counts,
            size=size,
            is_number_test=np.array([item.test is not None for item in items], dtype=bool),
            test_column=np.array(tested, dtype=np.int64),
            test_place=np.array([place.get(j, -1) for j in tested], dtype=np.int64),
            applies=_filled(tests, every, [self._applying(row) for row in rows]) > 0,
            part_low=_filled(tests, every, [[[a for a, _ in p] for p in row] for row in parts]),
            part_high=_filled(tests, every, [[[b for _, b in p] for p in row] for row in parts]),
            part_count=_counts(tests, parts),
            cut=_filled(tests, every, cuts),
            cut_count=_counts(tests, cuts),
            column=self.columns,
            span_low=_filled(
                shown, range(shown[1]), [[[a for a, _ in c] for c in row] for row in spans]
            ),
            span_high=_filled(
                shown, range(shown[1]), [[[b for _, b in c] for c in row] for row in spans]
            ),
            span_count=_counts(shown, spans),
        )

    def _row(self, x: Floats) -> _Row:
        ticks = self.template.grid.seen_from(x)
        tests = tuple(BoxTest.of(item.test, ticks, x) for item in self.template.conditionals)
        columns = []
        for j in self.columns.tolist():
            spans = ticks.spans_of(j)
            most = float(self.template.grid.most_near[j])
            cuts = sorted(cut for test in tests if test.column == j for cut in test.cuts)
            pieces = [_Piece(*span[:4]) for span in spans]
            between = [0.5 * (a.high + b.low) for a, b in pairwise(pieces)]
            for cut in cuts:
                for k, piece in enumerate(pieces):
                    if piece.low < cut.at < piece.high:
                        below = _Piece(piece.low, cut.at, piece.least, min(piece.most, cut.below))
                        above = _Piece(cut.at, piece.high, max(piece.least, cut.above), piece.most)
                        pieces[k : k + 1], between[k:k] = [below, above], [cut.at]
                        break
            gaps = [b.least - a.most for a, b in pairwise(pieces)]
            wide = []
            for span in spans:
                rooms = span.rooms(float(x[j]), most)
                ends = (float(end) for end in (span.low, span.high))
                low, high = (
                    end + sign * (room + 4.0 * UNIT * (abs(end) + abs(float(x[j]))))
                    if np.isfinite(end)
                    else end
                    for end, sign, room in zip(ends, (-1.0, 1.0), rooms, strict=True)
                )
                wide.append((low, high))
            size = min((gap for gap in gaps if gap > 0), default=1.0)
            columns.append(_Column(pieces, between, size, wide))
        return _Row(columns, tests)

    def _applying(self, row: _Row) -> list[list[float]]:
        """Say of each test, and of each piece of its column, whether it applies throughout."""
        place = {int(j): s for s, j in enumerate(self.columns.tolist())}
        out: list[list[float]] = []
        for test in row.tests:
            pieces = row.columns[place[test.column]].pieces if test.column in place else []
            out.append([
                float(any(low <= p.low and p.high <= high for low, high in test.parts))
                for p in pieces
            ])  # fmt: skip
        return out


def piece_grounds(template: ProgramTemplate) -> PieceGrounds | None:
    """State them for a template; None where any value will do, and conditions are on levels."""
    columns = piece_columns(template)
    has_tests = any(item.test is not None for item in template.conditionals)
    if columns is None or not (columns.size or has_tests):
        return None
    return PieceGrounds(template, columns)


def _filled(
    shape: tuple[int, int], at: Sequence[int], values: Sequence[Sequence[Sequence[float]]]
) -> Floats:
    """Write lists of different lengths into an array, (*shape, longest)."""
    longest = max((len(part) for row in values for part in row), default=0)
    out = np.zeros((*shape, max(longest, 1)))
    for n, row in enumerate(values):
        for q, part in zip(at, row, strict=True):
            out[n, q, : len(part)] = part
    return out


def _counts(
    shape: tuple[int, int], values: Sequence[Sequence[Sequence[object]]]
) -> NDArray[np.int64]:
    found = [[len(part) for part in row] for row in values]
    return np.array(found, dtype=np.int64).reshape(shape)
