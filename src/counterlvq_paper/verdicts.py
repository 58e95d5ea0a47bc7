"""What has to hold, row by row, for the reproduction to count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from counterlvq_paper.methods import OURS, SEARCHES
from counterlvq_paper.tables import Answers

__all__ = ["GAP", "ROUNDING", "Verdict", "verdicts"]

# Both say what the experiments call as good as another method; answers know of neither.
#
# The relative gap at which an answer under local metrics counts as optimal.
GAP: Final = 1e-4
# The margin that keeps an answer off the boundary and the last digits, relative.
ROUNDING: Final = 1e-6

Found = Mapping[tuple[str, str], Mapping[str, Answers]]


@dataclass(frozen=True)
class Verdict:
    """One thing that has to hold, and whether it does."""

    claim: str
    holds: bool
    evidence: str


def verdicts(found: Found) -> list[Verdict]:
    """Check everything that is expected of a run.

    "ccp" is the paper's search, which may end above what another search finds; so it is held to
    validity and to its place in the order, and not to beating the searches row by row.
    """
    return [
        _all_valid(found),
        *(_not_dearer(found, "auto", search) for search in SEARCHES),
        *(_not_dearer(found, "global", search) for search in SEARCHES),
        _not_dearer(found, "global", "auto", GAP),
        _not_dearer(found, "auto", "ccp", GAP),
        _bounds_hold(found),
        _exact(found),
    ]


def _all_valid(found: Found) -> Verdict:
    asked = failed = impossible = 0
    for methods in found.values():
        for name in OURS:
            answers = methods[name]
            asked += len(answers.ids)
            impossible += int(answers.impossible.sum())
            failed += int((~answers.valid & ~answers.impossible).sum())
    proved = f", {impossible} proved to have none" if impossible else ""
    return Verdict(
        "every answer of ccp, auto and global is valid by the model's own predict",
        failed == 0,
        f"{asked - failed - impossible:,} of {asked:,} answers{proved}",
    )


def _pairs(one: Answers, other: Answers) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of the rows that both solved."""
    ids = np.intersect1d(one.ids[one.valid], other.ids[other.valid])
    return one.at(ids), other.at(ids)


def _not_dearer(found: Found, ours: str, theirs: str, allowed: float = ROUNDING) -> Verdict:
    """`ours` costs no more than `theirs` on every row that both solve."""
    rows, worse, most = 0, 0, -np.inf
    for (_, model), methods in found.items():
        mine, other = _pairs(methods[ours], methods[theirs])
        excess = _excess(methods[ours].cost[mine], methods[theirs].cost[other])
        limit = allowed if model == "LGMLVQ" else ROUNDING
        rows += len(mine)
        worse += int((excess > limit).sum())
        most = max(most, float(excess.max(initial=-np.inf)))
    within = "up to the gap of 1e-4 under local metrics" if allowed == GAP else "up to rounding"
    return Verdict(
        f"{ours} <= {theirs} on every row that both solve, {within}",
        worse == 0 and rows > 0,
        f"{rows - worse:,} of {rows:,} rows; largest excess {most:.1e}",
    )


def _excess(cost: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much dearer, relative to the other; costs of zero do not occur."""
    ratio: NDArray[np.float64] = (cost - other) / np.maximum(other, 1e-12)
    return ratio


def _bounds_hold(found: Found) -> Verdict:
    """No method finds less than what was certified, nor anything where nothing can be."""
    rows = broken = 0
    for methods in found.values():
        for name in ("auto", "global"):
            certified = methods[name]
            for other in methods.values():
                ids = np.intersect1d(certified.ids, other.ids[other.valid])
                mine, theirs = certified.at(ids), other.at(ids)
                below = _excess(certified.lower_bound[mine], other.cost[theirs]) > ROUNDING
                rows += len(ids)
                broken += int((below | certified.impossible[mine]).sum())
    return Verdict(
        "no answer of any method is below a certified lower bound of auto or global",
        broken == 0 and rows > 0,
        f"{rows - broken:,} of {rows:,} comparisons",
    )


def _exact(found: Found) -> Verdict:
    """Shared metrics: every row is proved optimal, or proved to have no answer."""
    rows = open_rows = 0
    for (_, model), methods in found.items():
        if model != "LGMLVQ":
            auto = methods["auto"]
            rows += len(auto.ids)
            open_rows += int((~auto.optimal & ~auto.impossible).sum())
    return Verdict(
        "GLVQ and GMLVQ: every answer of auto is certified optimal",
        open_rows == 0 and rows > 0,
        f"{rows - open_rows:,} of {rows:,} rows",
    )
