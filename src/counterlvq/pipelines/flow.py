"""What the columns have become on the way through a pipeline, in terms of the user's columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import NotSupportedError
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.memory import FLOAT, refuse_too_large
from counterlvq.numeric.tolerances import EPSILON, SAFE, SUM_UNDERFLOW
from counterlvq.pipelines.rounding import (
    Doubled,
    difference,
    product_blur,
    product_plus,
    scaled_blur,
    summed,
)
from counterlvq.tables.monotone import Link
from counterlvq.tables.values import is_missing

__all__ = ["Contributions", "Fill", "Flow"]


class Contributions(NamedTuple):
    """What each level of one column adds to the columns on the way."""

    levels: tuple[Any, ...]
    added: Floats  # (levels, q)
    blur: Floats  # (levels, q)

    @classmethod
    def exactly(cls, levels: tuple[Any, ...], added: Floats) -> Contributions:
        """Contributions as an encoder states them."""
        return cls(levels, added, np.zeros_like(added))

    def plus(self, other: Contributions) -> Contributions:
        """Add up what two encoders make of one column, for the levels that both know."""
        theirs = {level: k for k, level in enumerate(other.levels)}
        both = [k for k, level in enumerate(self.levels) if level in theirs]
        levels = tuple(self.levels[k] for k in both)
        at = [theirs[level] for level in levels]
        mine, added = self.added[both], other.added[at]
        blur = self.blur[both] + other.blur[at] + _sum_blur(mine, added)
        return Contributions(levels, mine + added, SAFE * blur)


class Fill(NamedTuple):
    """What an imputer puts in the place of a missing value, and whether it marks that elsewhere."""

    value: Any
    marked: bool


@final
@dataclass(frozen=True, eq=False)
class Flow:
    """q columns on the way, each ``linear (x - base) + offset`` plus what levels contribute.

    The blurs bound how far `linear` and `offset` are from what the steps say in exact arithmetic.
    Steps that centre move the base and not the offset: where rows lie far from zero and close
    together, the large numbers are then taken off before anything is multiplied.
    """

    # (q, d), on the d columns of the user's table; (d,) as long as each has its own slope alone
    linear: Floats
    offset: Floats  # (q,)
    encoded: Mapping[int, Contributions]  # by column of the user's table
    untouched: tuple[int, ...]  # the column of the user's table that each still equals, or -1
    base: Floats  # (d,)
    linear_blur: Floats  # (q, d), or (d,)
    offset_blur: Floats  # (q,)
    units: Floats  # (d,) of the user's columns, those that the first step to mix them saw, or 0
    # Columns of the user's table that are seen through a function: x stands for its value.
    links: Mapping[int, Link] = field(default_factory=dict)
    # What imputers put in the place of missing values, by column of the user's table.
    fills: Mapping[int, tuple[Fill, ...]] = field(default_factory=dict)

    @classmethod
    def start(cls, width: int) -> Flow:
        """Begin with the user's table itself."""
        zeros = np.zeros(width)
        return cls(np.ones(width), zeros, {}, tuple(range(width)), zeros, zeros, zeros, zeros)

    @property
    def is_diagonal(self) -> bool:
        """Whether each column is still one of the user's, scaled and shifted, in their order."""
        return self.linear.ndim == 1

    def expanded(self) -> Flow:
        """Write the slopes as a matrix, as columns that are chosen or put together need it."""
        if not self.is_diagonal:
            return self
        refuse_too_large(
            f"a pipeline on {self.width:,} columns, followed column by column,",
            2 * FLOAT * self.width**2,
            "apply its steps to the table before, and explain the last one",
        )
        return replace(self, linear=np.diag(self.linear), linear_blur=np.diag(self.linear_blur))

    def _per_column(self, values: Floats) -> Floats:
        """Shape a number for each column so that it multiplies the slopes."""
        return values if self.is_diagonal else values[:, None]

    @property
    def width(self) -> int:
        """How many columns there are on the way."""
        return len(self.untouched)

    @property
    def own_units(self) -> Floats:
        """Units of the user's columns in which changes count alike, 0 where there are none.

        Scalers say what they are; once columns are mixed, a small slope may also be one that does
        not matter, and for PCA that of a constant column is rounding.
        """
        lengths = np.abs(self.linear) if self.is_diagonal else np.linalg.norm(self.linear, axis=0)
        known = (self.units > 0) | (lengths == 0)
        return np.where(known, self.units, 1.0 / np.where(lengths > 0, lengths, 1.0))

    def taking(self, at: NDArray[Any] | Sequence[int]) -> Flow:
        """Keep the listed columns only, in that order."""
        kept = np.asarray(at, dtype=np.intp)
        if self.is_diagonal:
            is_whole = np.array_equal(kept, np.arange(self.width))
            return self if is_whole else self.expanded().taking(kept)
        encoded = {
            j: Contributions(c.levels, c.added[:, kept], c.blur[:, kept])
            for j, c in self.encoded.items()
        }
        return Flow(
            self.linear[kept],
            self.offset[kept],
            encoded,
            tuple(self.untouched[k] for k in kept),
            self.base,
            self.linear_blur[kept],
            self.offset_blur[kept],
            self.units,
            self.links,
            self.fills,
        )

    def scaled(self, factor: NDArray[Any] | float) -> Flow:
        """Multiply each column by its factor."""
        factors = np.broadcast_to(np.asarray(factor, dtype=np.float64), (self.width,))
        encoded = {
            j: Contributions(c.levels, c.added * factors, scaled_blur(c.added, c.blur, factors))
            for j, c in self.encoded.items()
        }
        return Flow(
            self._per_column(factors) * self.linear,
            factors * self.offset,
            encoded,
            (-1,) * self.width,
            self.base,
            scaled_blur(self.linear, self.linear_blur, self._per_column(factors)),
            scaled_blur(self.offset, self.offset_blur, factors),
            self.units,
            self.links,
            self.fills,
        )

    def divided(self, by: NDArray[Any]) -> Flow:
        """Divide each column by its number, as scalers do: rounded once, unlike ``1 / by``."""
        divisors = np.asarray(by, dtype=np.float64)
        encoded = {
            j: Contributions(c.levels, c.added / divisors, _divided_blur(c.added, c.blur, divisors))
            for j, c in self.encoded.items()
        }
        return Flow(
            self.linear / self._per_column(divisors),
            self.offset / divisors,
            encoded,
            (-1,) * self.width,
            self.base,
            _divided_blur(self.linear, self.linear_blur, self._per_column(divisors)),
            _divided_blur(self.offset, self.offset_blur, divisors),
            self.units,
            self.links,
            self.fills,
        )

    def linked(self, links: Sequence[Link | None], what: str) -> Flow:
        """Take each column through its function, where it has one."""
        found, untouched = dict(self.links), list(self.untouched)
        for at, link in enumerate(links):
            if link is None:
                continue
            column = untouched[at]
            if column < 0:
                raise NotSupportedError(
                    f"{what} is applied to a column that an earlier step has changed; expected it "
                    f"to see columns of the table as they are. Apply it first."
                )
            found[column], untouched[at] = link, -1
        return replace(self, links=found, untouched=tuple(untouched))

    def shifted(self, by: NDArray[Any]) -> Flow:
        """Add a number to each column."""
        added = np.asarray(by, dtype=np.float64)
        centred = self._centred(added)
        if centred is not None:
            return centred
        blur = SAFE * (self.offset_blur + _sum_blur(self.offset, added))
        return replace(
            self, offset=self.offset + added, offset_blur=blur, untouched=(-1,) * self.width
        )

    def _centred(self, added: Floats) -> Flow | None:
        """Move the base, if each column hangs on one of the user's and no two on the same."""
        if self.encoded or self.base.any() or self.offset.any():
            return None
        used = self.linear != 0
        if self.is_diagonal:
            alone, at = used.all(), np.arange(self.width)
            slopes, slopes_blur = self.linear, self.linear_blur
        else:
            alone = (used.sum(axis=1) == 1).all() and (used.sum(axis=0) <= 1).all()
            at = used.argmax(axis=1) if alone else np.zeros(self.width, dtype=np.intp)
            entries = np.arange(self.width), at
            slopes, slopes_blur = self.linear[entries], self.linear_blur[entries]
        if not alone:
            return None
        base = self.base.copy()
        base[at] = -added / slopes
        if not np.isfinite(base).all():
            return None
        # What the rounded quotient leaves over stays as an offset: by + slope * base.
        rest, blur = product_plus(slopes, base[at], added)
        # The blur of a slope counts for the part of x that has become the base.
        moved = np.abs(slopes_blur * base[at])
        blurs = SAFE * (self.offset_blur + blur + moved)
        return replace(
            self, offset=rest, offset_blur=blurs, base=base, untouched=(-1,) * self.width
        )

    def mixed(self, matrix: NDArray[Any]) -> Flow:
        """Replace the columns by linear combinations of them, one per row of `matrix`."""
        M = np.asarray(matrix, dtype=np.float64)
        encoded = {
            j: Contributions(c.levels, c.added @ M.T, product_blur(c.added, c.blur, M.T, None))
            for j, c in self.encoded.items()
        }
        offset_blur = product_blur(M, None, self.offset[:, None], self.offset_blur[:, None])
        if self.is_diagonal:
            slopes, exact = M * self.linear, scaled_blur(M, np.zeros_like(M), self.linear)
            blur = SAFE * (exact + np.abs(M) * self.linear_blur)
        else:
            slopes, blur = M @ self.linear, product_blur(M, None, self.linear, self.linear_blur)
        return Flow(
            slopes,
            M @ self.offset,
            encoded,
            (-1,) * len(M),
            self.base,
            blur,
            offset_blur[:, 0],
            self.own_units,
            self.links,
            self.fills,
        )

    def constant(self, values: NDArray[Any]) -> Flow:
        """Make columns that depend on nothing."""
        count = len(values)
        blank, zeros = np.zeros((count, self.linear.shape[-1])), np.zeros(count)
        nowhere = (-1,) * count
        kept = self.links, self.fills
        return Flow(blank, values, {}, nowhere, self.base, blank, zeros, self.units, *kept)

    def filled(self, values: Sequence[Any], marked: Collection[int]) -> Flow:
        """Note what an imputer puts in the place of missing values, a value for each column.

        Nothing changes for complete rows. Only what is put into a column as the user has it is
        noted: once a step has changed the column, it stands for no value of the user's. The
        columns at `marked` have an indicator as well.
        """
        listed = enumerate(zip(self.untouched, values, strict=True))
        found = {
            j: (Fill(value, k in marked),)
            for k, (j, value) in listed
            if j >= 0 and not is_missing(value)
        }
        return replace(self, fills=_merged([self.fills, found]))

    def with_levels(self, column: int, levels: tuple[Any, ...], added: Floats) -> Flow:
        """Make columns that depend on the levels of one column of the user's table alone."""
        blank = self.constant(np.zeros(added.shape[1]))
        return replace(blank, encoded={column: Contributions.exactly(levels, added)})

    def beside(self, others: Sequence[Flow]) -> Flow:
        """Put columns side by side, these first."""
        given = [self, *others]
        some = [flow for flow in given if flow.width or flow.encoded]
        fills = _merged([flow.fills for flow in given])
        if len(some) == 1 and some[0].is_diagonal:
            # Nobody else sees a column.
            units = np.max([flow.units for flow in given], axis=0)
            return replace(some[0], units=units, fills=fills)
        flows = _on_one_base([flow.expanded() for flow in given])
        width = sum(flow.width for flow in flows)
        encoded: dict[int, Contributions] = {}
        start = 0
        for flow in flows:
            for j, part in flow.encoded.items():
                added, blur = np.zeros((2, len(part.levels), width))
                added[:, start : start + flow.width] = part.added
                blur[:, start : start + flow.width] = part.blur
                wide = Contributions(part.levels, added, blur)
                encoded[j] = encoded[j].plus(wide) if j in encoded else wide
            start += flow.width
        return Flow(
            np.vstack([flow.linear for flow in flows]),
            np.concatenate([flow.offset for flow in flows]),
            encoded,
            tuple(column for flow in flows for column in flow.untouched),
            flows[0].base,
            np.vstack([flow.linear_blur for flow in flows]),
            np.concatenate([flow.offset_blur for flow in flows]),
            np.max([flow.units for flow in flows], axis=0),
            _links_of(flows),
            fills,
        )

    def rebased(self, base: Floats) -> Flow:
        """State the same columns with another base."""
        moved = difference(base, self.base)
        if not (moved.high != 0)[self.linear.any(axis=0)].any():
            return replace(self, base=base)
        row = Doubled(moved.high[None, :], moved.low[None, :])
        found, blur = summed(self.linear, row, Doubled(self.offset, np.zeros(self.width)))
        blurs = self.offset_blur + blur[0] + np.abs(found.low[0])
        blurs = SAFE * (blurs + self.linear_blur @ np.abs(moved.high))
        return replace(self, offset=found.high[0], offset_blur=blurs, base=base)


def _links_of(flows: list[Flow]) -> dict[int, Link]:
    """Put functions of columns together; a column is seen through one only."""
    out: dict[int, Link | None] = {}
    for flow in flows:
        sees = {int(j) for j in np.flatnonzero(flow.linear.any(axis=0))} | set(flow.encoded)
        for j in sees:
            link = flow.links.get(j)
            if out.setdefault(j, link) != link:
                raise NotSupportedError(
                    f"column {j} of the table is seen both as it is and through a function, or "
                    f"through two; expected one of the two. Drop the other."
                )
    return {j: link for j, link in out.items() if link is not None}


def _merged(parts: Sequence[Mapping[int, tuple[Fill, ...]]]) -> dict[int, tuple[Fill, ...]]:
    """Put lists of fills together, each once, in the order in which they came."""
    out: dict[int, tuple[Fill, ...]] = {}
    for part in parts:
        for j, values in part.items():
            out[j] = (*out.get(j, ()), *(v for v in values if v not in out.get(j, ())))
    return out


def _on_one_base(flows: list[Flow]) -> list[Flow]:
    """Give flows the base of the first that has one for a column."""
    base = np.zeros_like(flows[0].base)
    for flow in reversed(flows):
        sees = flow.linear.any(axis=0)
        base[sees] = flow.base[sees]
    return [flow.rebased(base) for flow in flows]


def _sum_blur(a: Floats, b: Floats) -> Floats:
    """Bound the rounding of ``a + b``; a sum with 0 is exact."""
    return np.where((a == 0) | (b == 0), 0.0, EPSILON * np.abs(a + b))


def _divided_blur(values: Floats, blur: Floats, by: Floats) -> Floats:
    """Bound on the error of ``values / by`` where `by` is exact."""
    exact = (np.abs(by) == 1) | (values == 0)
    rounding = np.where(exact, 0.0, EPSILON * np.abs(values / by) + SUM_UNDERFLOW)
    return np.asarray(SAFE * (blur / np.abs(by) + rounding))
