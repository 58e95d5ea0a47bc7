"""What was to be reached in the user's own columns, and the tables of what was measured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median

from benchmarks.figures import Goal, environment
from benchmarks.local_before import Before
from benchmarks.local_columns import (
    CANCER,
    CANCER_5,
    COLUMNS,
    COMPONENTS,
    DIGITS,
    DIGITS_10,
    LIMIT,
    MIXED,
    NAMES,
    OFFSETS,
    PER_CLASS,
    ColumnRun,
)
from benchmarks.local_columns_growth import ColumnCurve, draw
from benchmarks.report import duration, plain, row, write_atomically

FILE, PICTURE = "local_columns.json", "local_columns.png"
# Least shares of proved rows, by problem, space, cost and method.
SHARES = {
    (CANCER_5, COLUMNS, "L1", "auto"): 0.97,
    (CANCER_5, COLUMNS, "L2", "auto"): 0.97,
    (DIGITS_10, COLUMNS, "L1", "auto"): 0.8,
    (DIGITS_10, COLUMNS, "L1", "global"): 0.95,
    (DIGITS_10, COLUMNS, "L2", "auto"): 0.95,
    (CANCER, COLUMNS, "L1", "auto"): 0.95,
    (CANCER, COLUMNS, "L2", "auto"): 0.95,
    (DIGITS, COLUMNS, "L2", "auto"): 0.5,
    (DIGITS_10, COMPONENTS, "L1", "auto"): 0.95,
    (DIGITS_10, COMPONENTS, "L1", "global"): 1.0,
    (DIGITS_10, COMPONENTS, "L2", "auto"): 1.0,
    (MIXED, COLUMNS, "L1", "auto"): 0.9,
    (MIXED, COLUMNS, "L2", "auto"): 0.9,
    (OFFSETS, COLUMNS, "L1", "auto"): 0.95,
    (OFFSETS, COLUMNS, "L2", "auto"): 0.95,
}
# Most times the median in the space of the components.
RATIOS = {(CANCER_5, "L1"): 5.0, (CANCER_5, "L2"): 5.0, (DIGITS_10, "L1"): 10.0}
# Most of the median gap of `global`, where proofs are out of reach.
GAPS = {(DIGITS, "L1"): 0.15}
# Times faster than before, by cost.
FASTER = {"L1": 3.0, "L2": 5.0}
# By how much an answer may miss its time limit: a share, and seconds.
LATE, LATE_SECONDS = 0.1, 0.2


@dataclass(frozen=True)
class ColumnResults:
    """All that has been measured."""

    runs: list[ColumnRun] = field(default_factory=list)
    before: list[Before] = field(default_factory=list)
    growth: list[ColumnCurve] = field(default_factory=list)

    @classmethod
    def stored(cls, folder: Path) -> ColumnResults:
        """Read what was measured before; nothing if there is no file."""
        path = folder / FILE
        if not path.exists():
            return cls()
        content = json.loads(path.read_text("utf-8"))
        return cls(
            [ColumnRun(**each) for each in content["runs"]],
            [Before(**each) for each in content.get("before", [])],
            [ColumnCurve(**each) for each in content.get("growth", [])],
        )

    def with_run(self, found: ColumnRun) -> ColumnResults:
        """Put a run in the place of the one before it, in the order of the problems."""
        runs = [each for each in self.runs if _key(each) != _key(found)]
        runs = sorted([*runs, found], key=lambda each: NAMES.index(each.problem))
        return replace(self, runs=runs)

    def with_pair(self, found: Before) -> ColumnResults:
        """Put a comparison in the place of the one before it."""
        before = [each for each in self.before if each.cost != found.cost]
        return replace(self, before=[*before, found])


def goals(results: ColumnResults) -> Iterator[Goal]:
    """Say what was to be reached, and what was measured."""
    runs, before = results.runs, results.before
    by_key = {_key(each): each for each in runs}
    for key, least in SHARES.items():
        if key in by_key:
            yield _share(by_key[key], least)
    for (name, cost), most in RATIOS.items():
        own = by_key.get((name, COLUMNS, cost, "auto"))
        inner = by_key.get((name, COMPONENTS, cost, "auto"))
        if own is not None and inner is not None:
            ratio = median(own.seconds) / median(inner.seconds)
            yield Goal(
                f"{name}, {cost}, `auto`: median over that in the components",
                f"at most {most:g}", f"{ratio:.1f}", ratio <= most,
            )  # fmt: skip
    for (name, cost), most in GAPS.items():
        found = by_key.get((name, COLUMNS, cost, "global"))
        if found is not None:
            gap, worst = median(found.gaps), max(found.gaps)
            yield Goal(
                f"{name}, {cost}, `global` with {LIMIT:g} s: median gap, and a gap on every row",
                f"at most {most:.0%}", f"{gap:.2%}; the widest {worst:.1%}",
                gap <= most and worst < 1.0,
            )  # fmt: skip
    for each in runs:
        if each.method == "global":
            longest = max(each.seconds)
            yield Goal(
                f"{each.problem}, {each.space}, {each.cost}: limit of {LIMIT:g} s kept",
                f"within {LATE:.0%} plus {LATE_SECONDS:g} s", f"at most {longest:.1f} s",
                longest <= (1.0 + LATE) * LIMIT + LATE_SECONDS,
            )  # fmt: skip
    for pair in before:
        wanted = FASTER[pair.cost]
        yield Goal(
            f"{pair.problem}, {pair.cost}, `auto`: median of {len(pair.now)} rows beside that at "
            f"{pair.commit}",
            f"at least {wanted:g} times faster", f"{pair.ratio:.1f} times", pair.ratio >= wanted,
        )  # fmt: skip
    checked, confirmed = (sum(getattr(each, name) for each in runs)
                          for name in ("checked", "confirmed"))  # fmt: skip
    if checked:
        yield Goal(
            "proofs that the exact checker reads", "all confirmed", f"{confirmed} of {checked}",
            confirmed == checked,
        )  # fmt: skip


def _key(each: ColumnRun) -> tuple[str, str, str, str]:
    return each.problem, each.space, each.cost, each.method


def _share(each: ColumnRun, least: float) -> Goal:
    shown, rows = sum(each.proved), len(each.proved)
    limit = f" with {LIMIT:g} s" if each.method == "global" else ""
    return Goal(
        f"{each.problem}, {each.space}, {each.cost}: `{each.method}`{limit} proves",
        f"at least {least:.0%}" if least < 1 else "100%",
        f"{shown} of {rows}", shown >= least * rows,
    )  # fmt: skip


def markdown(results: ColumnResults) -> str:
    """Tables of one run."""
    parts = (_head, _runs, _before, _growth)
    return "\n".join(line for part in parts for line in part(results))


def _head(results: ColumnResults) -> Iterator[str]:
    yield "# Local metrics in the user's own columns\n"
    yield (
        f"`python -m benchmarks.local --columns`: LGMLVQ with {PER_CLASS} prototypes per class "
        "behind `StandardScaler` and, where it says so, `PCA`; rows that were not fitted, random "
        f"targets. {OFFSETS}: scikit-learn's QDA behind `StandardScaler`. {MIXED}: ten columns of "
        "whole numbers and levels, two of them held. `auto`, or `global` with "
        f"{LIMIT:g} s; all seconds are those of the processor.\n"
    )
    yield "## Figures to reach\n"
    yield row(("figure", "wanted", "this run", ""))
    yield row(["---"] * 4)
    for goal in goals(results):
        verdict = "reached" if goal.reached else "**not reached**"
        yield row((goal.what, goal.wanted, goal.found, verdict))
    yield ""


def _runs(results: ColumnResults) -> Iterator[str]:
    runs = results.runs
    yield "## Every run\n"
    yield (
        "The ratio is to the space of the components, in this run. Checked: proofs that the exact "
        "checker confirms, of those that it was given.\n"
    )
    yield row(
        ("problem", "space", "cost", "method", "columns", "rows", "proved", "median gap")
        + ("widest gap", "median s", "longest s", "ratio", "boxes, median", "checked")
    )
    yield row(["---"] * 4 + ["---:"] * 10)
    base = {(each.problem, each.cost, each.method): median(each.seconds) for each in runs
            if each.space == COMPONENTS}  # fmt: skip
    for each in runs:
        own, inner = median(each.seconds), base.get((each.problem, each.cost, each.method))
        ratio = f"{own / inner:.1f}" if inner and each.space == COLUMNS else "-"
        yield row(
            (
                each.problem, each.space, each.cost, f"`{each.method}`", each.width,
                len(each.proved), f"{sum(each.proved) / len(each.proved):.0%}",
                f"{median(each.gaps):.2%}", f"{max(each.gaps):.2%}", f"{own:.3f}",
                f"{max(each.seconds):.2f}", ratio, f"{median(each.boxes):g}",
                f"{each.confirmed} of {each.checked}",
            )
        )  # fmt: skip
    yield ""


def _before(results: ColumnResults) -> Iterator[str]:
    if not results.before:
        return
    yield "## Beside an earlier state\n"
    yield (
        "The same models, rows and targets in standardised columns, each state in a process of its "
        "own.\n"
    )
    yield row(("problem", "cost", "rows", "commit", "median then", "median now", "proved then",
               "proved now"))  # fmt: skip
    yield row(["---"] * 2 + ["---:"] * 6)
    for pair in results.before:
        yield row(
            (
                pair.problem, pair.cost, len(pair.now), pair.commit,
                f"{median(pair.then):.3f} s", f"{median(pair.now):.3f} s",
                sum(pair.proved_then), sum(pair.proved_now),
            )
        )  # fmt: skip
    yield ""


def _growth(results: ColumnResults) -> Iterator[str]:
    if not results.growth:
        return
    yield "## Growth\n"
    yield (
        "`auto` on random models whose metrics all see the same few directions of the columns. "
        "Exponents of the power laws through the medians.\n"
    )
    yield f"![Growth with columns and with what metrics see]({PICTURE})\n"
    yield row(("quantity", "fixed", "cost", "size", "median", "worst", "boxes", "proved",
               "exponent"))  # fmt: skip
    yield row(["---"] * 3 + ["---:"] * 6)
    for curve in results.growth:
        first = (f"{curve.letter}, {curve.meaning}", curve.fixed, curve.cost)
        last = f"{curve.exponent:.2f}"
        points = zip(
            curve.sizes, curve.seconds, curve.worst, curve.boxes, curve.proved, strict=True
        )
        for size, seconds, worst, boxes, proved in points:
            times = (duration(seconds), duration(worst))
            yield row((*first, size, *times, f"{boxes:.1f}", f"{proved:.0%}", last))
            first, last = ("", "", ""), ""
    yield ""


def write(results: ColumnResults, folder: Path) -> None:
    """Write local_columns.json, local_columns.md and, where growth was measured, the picture."""
    folder.mkdir(parents=True, exist_ok=True)
    values = plain(
        {
            "environment": environment(),
            **asdict(results),
            "goals": [asdict(goal) for goal in goals(results)],
        }
    )
    content = json.dumps(values, indent=1, allow_nan=False) + "\n"
    for name, told in ((FILE, content), ("local_columns.md", markdown(results))):
        write_atomically(folder / name, lambda path, told=told: path.write_text(told, "utf-8"))
    if results.growth:
        write_atomically(folder / PICTURE, lambda path: draw(results.growth, path))
