"""All figures of one run, and what was to be reached."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks import problems
from benchmarks.baselines import blackbox
from benchmarks.coldstart import ColdStart
from benchmarks.compare import AGREEMENT, ENGINE, PAPER, TWO_JOBS, WARM_DAQP, WARM_HIGHS, Measured
from benchmarks.growth import Curve
from benchmarks.memory import MemoryFigures
from benchmarks.neighbours import NeighbourFigures
from benchmarks.sizes import Sizes

PACKAGES = (
    "counterlvq", "numpy", "scipy", "numba", "highspy", "clarabel", "cvxpy", "daqp", "cma",
    "scikit-learn",
)  # fmt: skip
GIGABYTE = 10**9
SAME_ORDER = 10.0


@dataclass(frozen=True)
class Results:
    """One run."""

    environment: dict[str, Any]
    sizes: Sizes
    comparison: list[Measured]
    ceiling: float  # what two threads gain that only compute
    neighbours: list[NeighbourFigures]
    growth: list[Curve]
    memory: MemoryFigures
    cold_start: ColdStart
    seconds: float


@dataclass(frozen=True)
class Goal:
    """A figure to reach, judged by this run."""

    what: str
    wanted: str
    found: str
    reached: bool


def environment() -> dict[str, Any]:
    """Where and when the figures were taken."""
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cores": len(affinity(0)) if affinity else os.cpu_count(),
        "load_before": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "seeds": {"problems": problems.SEED, "cma": blackbox.SEED},
    }


def as_dict(results: Results) -> dict[str, Any]:
    """Everything, with the verdicts, as JSON can hold it."""
    content = asdict(results)
    content["goals"] = [asdict(goal) for goal in goals(results)]
    content["complaints"] = complaints(results)
    return content


def goals(results: Results) -> list[Goal]:
    """What was to be reached, and what this run found."""
    found = [
        *(_ratio_goal(results, data, WARM_HIGHS, 100) for data in ("cancer", "digits")),
        *(_ratio_goal(results, data, PAPER, 5000) for data in ("cancer", "digits")),
        _same_order(results),
        _two_jobs(results),
    ]
    limits = {"L2": 0.010, "L1": 0.050}
    for figures in results.neighbours:
        limit = limits[figures.cost]
        for way, seconds in (
            ("explain_batch", figures.batch_median),
            ("explain", figures.explain_median),
        ):
            what = f"digits 1-NN, {figures.cost}, median per row by `{way}`"
            wanted, shown = f"at most {1e3 * limit:g} ms", f"{1e3 * seconds:.2f} ms"
            found.append(Goal(what, wanted, shown, seconds <= limit))
    memory = results.memory
    what = f"memory on top of input and output, {memory.rows:,} x {memory.features}"
    shown = f"{memory.extra / 1e6:.0f} MB"
    found.append(Goal(what, "under 1 GB", shown, memory.extra < GIGABYTE))
    return [*found, *_exactness(results)]


def complaints(results: Results) -> list[str]:
    """What must never happen: answers that are invalid, or differ from an exact method's."""
    found = [
        f"{m.data} {m.model} {m.cost}: {m.method} differs from the engine by {m.difference:.1e}"
        for m in results.comparison
        if not m.agrees
    ]
    found += [
        f"{m.data} {m.model} {m.cost}: {1 - m.valid:.2%} of the engine's answers are not valid"
        for m in results.comparison
        if m.method == ENGINE and m.valid < 1
    ]
    return found + [
        f"1-NN {n.cost}: the oracle differs from the engine by {n.check.difference:.1e}"
        for n in results.neighbours
        if not n.check.difference <= AGREEMENT
    ]


def _ratio_goal(results: Results, data: str, method: str, least: float) -> Goal:
    """The smaller ratio of the two models counts."""
    ratios = [
        m.ratio for m in results.comparison if (m.data, m.method, m.cost) == (data, method, "L1")
    ]
    what = f"L1 on {data}, one job, against {method}"
    shown = f"{min(ratios):,.0f} to {max(ratios):,.0f} times"
    return Goal(what, f"at least {least:,.0f} times faster", shown, min(ratios) >= least)


def _same_order(results: Results) -> Goal:
    seconds = {
        (m.data, m.model, m.cost): m.seconds for m in results.comparison if m.method == ENGINE
    }
    ratios = [
        seconds[data, model, "L2"] / seconds[data, model, "L1"]
        for data, model, cost in seconds
        if cost == "L1"
    ]
    shown = f"{min(ratios):.2f} to {max(ratios):.2f} times the time of L1"
    for method in (WARM_DAQP, PAPER):
        peers = [m.ratio for m in results.comparison if (m.method, m.cost) == (method, "L2")]
        if peers:
            shown += f"; {min(peers):,.0f} to {max(peers):,.0f} times faster than {method}"
    wanted = f"of the same order (below {SAME_ORDER:g} times)"
    return Goal("L2 beside L1, one job", wanted, shown, max(ratios) < SAME_ORDER)


def _two_jobs(results: Results) -> Goal:
    ratios = [1 / m.ratio for m in results.comparison if m.method == TWO_JOBS]
    shown = f"{min(ratios):.2f} to {max(ratios):.2f} times"
    shown += f"; two threads that only compute: {results.ceiling:.2f} times"
    what = f"2 jobs beside 1 job, {results.sizes.rows:,} rows"
    return Goal(what, "at least 1.7 times faster", shown, min(ratios) >= 1.7)


def _exactness(results: Results) -> Iterable[Goal]:
    worst = max(m.difference for m in results.comparison if m.difference is not None)
    wanted = f"at most {AGREEMENT:.0e}"
    yield Goal(
        "largest relative difference from exact peers", wanted, f"{worst:.1e}", worst <= AGREEMENT
    )
    for figures in results.neighbours:
        check = figures.check
        what = (
            f"digits 1-NN, {figures.cost}, difference from the oracle ({check.rows} rows: "
            f"{check.solved} full programs solved, {check.skipped} above the answer by one rival)"
        )
        shown = f"{check.difference:.1e}"
        yield Goal(what, wanted, shown, check.difference <= AGREEMENT)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
