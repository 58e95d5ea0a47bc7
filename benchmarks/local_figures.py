"""All figures of one run about local metrics, and what was to be reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

import numpy as np

from benchmarks.figures import Goal
from benchmarks.local_growth import LocalCurve
from benchmarks.local_methods import BATCH, CLOSE, GAP, PLAIN, Loop, Run
from benchmarks.local_problems import DIGITS
from benchmarks.local_profile import Profile

# The given numbers are good to about this share (one `best` lies below its own bound by 1e-6), and
# hold for a margin that ours do not ask for.
GIVEN = 1e-5
PRINTED = 1e-6  # one unit of the last decimal that is given
ROUNDING = 1e-9  # between costs and bounds of the same run
SHARE, MEDIAN, LONGEST, FASTER = 0.95, 0.1, 1.0, 10.0
LATE, LATE_SECONDS = 0.1, 0.2  # by how much an answer may miss its time limit
EQUAL = 1e-6  # mean costs this close, as a share, are equal


@dataclass(frozen=True)
class LocalSizes:
    """How much is measured."""

    known: int  # rows of each set with known optima
    digits: int
    time_limit: float  # seconds of `global` for one row of digits
    repeats: int  # of `ccp` beside the plain loop; the fastest counts
    features: tuple[int, ...]
    rivals: tuple[int, ...]
    growth: int  # rows per point
    profile: int  # rows per problem


FULL = LocalSizes(
    known=1000,
    digits=30,
    time_limit=20.0,
    repeats=3,
    features=(2, 4, 8, 12, 16, 22, 30),
    rivals=(1, 3, 10, 30, 100),
    growth=7,
    profile=8,
)
QUICK = LocalSizes(
    known=4,
    digits=4,
    time_limit=20.0,
    repeats=1,
    features=(2, 4, 8, 16),
    rivals=(1, 10, 100),
    growth=2,
    profile=2,
)


@dataclass(frozen=True)
class LocalResults:
    """One run."""

    environment: dict[str, Any]
    sizes: LocalSizes
    runs: list[Run]
    loops: list[Loop]
    growth: list[LocalCurve]
    profiles: list[Profile]
    seconds: float

    def of(self, method: str) -> list[Run]:
        return [run for run in self.runs if run.method == method]


@dataclass(frozen=True)
class Beside:
    """One method beside `global` on the same rows."""

    mean_cost: float
    excess: float  # that mean over the one of `global`
    optimal: float  # share of rows within reach of the cost of `global`
    proved: float
    valid: float


def beside_global(results: LocalResults, run: Run) -> Beside:
    """Compare row by row, over the rows that both solved."""
    best = next(
        other for other in results.of("global") if (other.problem, other.cost) == _name(run)
    )
    both = np.logical_and(run.valid, best.valid)
    mine, theirs = np.array(run.costs)[both], np.array(best.costs)[both]
    mean = float(mine.mean()) if both.any() else float("nan")
    return Beside(
        mean_cost=mean,
        excess=mean / float(theirs.mean()) if both.any() else float("nan"),
        optimal=float((mine <= (1.0 + CLOSE) * theirs).sum() / both.size),
        proved=fmean(run.proved),
        valid=fmean(run.valid),
    )


def below_the_bound(run: Run) -> int:
    """Rows whose cost undercuts a bound that is given, beyond the digits of that bound."""
    pairs = zip(run.costs, run.known_bound or (), strict=False)
    return sum(cost < (1.0 - GIVEN) * bound - PRINTED for cost, bound in pairs)


def above_the_best(run: Run) -> int:
    """Rows whose cost is above the best that is given, beyond its printed digits."""
    return sum(cost > best + PRINTED for cost, best in zip(run.costs, run.best or (), strict=False))


def as_dict(results: LocalResults) -> dict[str, Any]:
    """Everything, with the verdicts, as JSON can hold it."""
    content = asdict(results)
    for entry, run in zip(content["runs"], results.runs, strict=True):
        entry["beside_global"] = asdict(beside_global(results, run))
        entry["below_the_bound"] = below_the_bound(run)
        entry["above_the_best"] = above_the_best(run)
    content["goals"] = [asdict(goal) for goal in goals(results)]
    content["complaints"] = complaints(results)
    return content


def goals(results: LocalResults) -> list[Goal]:
    """What was to be reached, and what this run found."""
    return [*_known_goals(results), *_digit_goals(results), *_loop_goals(results)]


def complaints(results: LocalResults) -> list[str]:
    """What must never happen: an answer below a bound, a bound above an answer."""
    found = [
        f"{run.problem} {run.cost}: {count} answers of `{run.method}` lie below the given bound"
        for run in results.runs
        if (count := below_the_bound(run))
    ]
    found += [
        f"{run.problem} {run.cost}: {len(run.valid) - sum(run.valid)} answers of `{run.method}` "
        "are not valid"
        for run in results.runs
        if not all(run.valid)
    ]
    for run in results.runs:
        for other in results.runs:
            wrong = _undercut(run, other) if _name(run) == _name(other) else 0
            if wrong:
                found.append(
                    f"{run.problem} {run.cost}: {wrong} bounds of `{run.method}` lie above an "
                    f"answer of `{other.method}`"
                )
        wrong = sum(
            bound > (1.0 + GIVEN) * best + PRINTED
            for bound, best in zip(run.bounds, run.best or (), strict=False)
        )
        if wrong:
            found.append(
                f"{run.problem} {run.cost}: {wrong} bounds of `{run.method}` lie above the best "
                "cost that is given"
            )
    return found


def _undercut(run: Run, other: Run) -> int:
    """How many bounds of one run lie above a valid answer of the other."""
    rows = zip(run.bounds, other.costs, other.valid, strict=True)
    return sum(valid and bound > (1.0 + ROUNDING) * cost for bound, cost, valid in rows)


def _name(run: Run) -> tuple[str, str]:
    return run.problem, run.cost


def _known_goals(results: LocalResults) -> Iterator[Goal]:
    auto = [run for run in results.of("auto") if run.best is not None]
    best = [run for run in results.of("global") if run.best is not None]
    yield _share_goal("known optima, `auto`: valid", auto, lambda run: run.valid, 1.0)
    yield _share_goal("known optima, `auto`: OPTIMAL", auto, lambda run: run.proved, SHARE)
    yield _share_goal("known optima, `global`: OPTIMAL", best, lambda run: run.proved, 1.0)
    slow = max(best, key=lambda run: median(run.seconds))
    seconds = median(slow.seconds)
    shown = f"{1e3 * seconds:.0f} ms in the slowest set ({slow.problem} {slow.cost})"
    what, wanted = "known optima, `global`: median", f"at most {1e3 * MEDIAN:g} ms in each set"
    yield Goal(what, wanted, shown, seconds <= MEDIAN)
    known = [run for run in results.runs if run.known_bound is not None]
    below = sum(below_the_bound(run) for run in known)
    least = min(
        cost / bound - 1.0
        for run in known
        for cost, bound in zip(run.costs, run.known_bound or (), strict=True)
    )
    shown = f"{below}; the lowest is {least:+.1e} of the bound"
    what = f"known optima, all methods: costs below the given bound (good to {GIVEN:.0e})"
    yield Goal(what, "none", shown, below == 0)


def _share_goal(
    what: str, runs: Sequence[Run], flags: Callable[[Run], list[bool]], least: float
) -> Goal:
    """The worst set counts."""
    worst = min(runs, key=lambda run: fmean(flags(run)))
    share = fmean(flags(worst))
    shown = f"{sum(map(sum, map(flags, runs)))} of {sum(len(flags(run)) for run in runs)} rows"
    if share < 1:
        shown += f"; {share:.1%} in the worst set ({worst.problem} {worst.cost})"
    wanted = f"{least:.0%} of each set" if least == 1 else f"at least {least:.0%} of each set"
    return Goal(what, wanted, shown, share >= least)


def _digit_goals(results: LocalResults) -> Iterator[Goal]:
    for run in results.of("global"):
        if run.problem != DIGITS:
            continue
        what, limit = f"digits, `global`, {run.cost}", results.sizes.time_limit
        shown = f"{sum(run.proved)} of {len(run.proved)} rows, the longest {max(run.seconds):.1f} s"
        wanted = f"at least {SHARE:.0%} within {limit:g} s each"
        yield Goal(f"{what}: gap {GAP:g} proved", wanted, shown, fmean(run.proved) >= SHARE)
        seconds = median(run.seconds)
        wanted = f"at most {LONGEST:g} s"
        yield Goal(f"{what}: median", wanted, f"{seconds:.2f} s", seconds <= LONGEST)
        over, wanted = max(run.seconds), f"within {LATE:.0%} plus {LATE_SECONDS:g} s"
        reached = over <= (1.0 + LATE) * limit + LATE_SECONDS
        yield Goal(f"{what}: limit of {limit:g} s kept", wanted, f"at most {over:.1f} s", reached)


def _loop_goals(results: LocalResults) -> Iterator[Goal]:
    for loop in results.loops:
        what = f"digits, `ccp` beside the plain loop, {loop.cost}"
        shown = f"{loop.ratio:.1f} times by `explain_batch`, {loop.single_ratio:.1f} by `explain`"
        wanted = f"at least {FASTER:g} times faster"
        yield Goal(f"{what}: time", wanted, shown, loop.ratio >= FASTER)
        mine, plain = loop.mean_costs[BATCH], loop.mean_costs[PLAIN]
        shown = f"{mine:.6g}, the loop {plain:.6g}"
        reached = mine <= (1.0 + EQUAL) * plain
        yield Goal(f"{what}: mean cost", "equal or lower", shown, reached)
