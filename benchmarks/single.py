"""One row at a time, beside a warm solver that is handed the same programs.

`python -m benchmarks.single`. A bare model, an estimator, and a pipeline of a scaler and an
estimator are asked about one row after another by `explain` and by `explain_batch` of one row.
Beside them stand HiGHS (L1) and daqp (L2) with one model per target prototype that is built once: a
row changes right-hand sides only, and the cheapest solution is taken. They prove nothing, check
nothing and ask no `predict`. Times are those of the processor: of each row the least of several
repeats that are taken in turn, and of these the median. The time inside the pipeline's own
`predict` is taken off.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import counterlvq as clvq
from benchmarks.baselines.cells import LEAST_MARGIN, MARGIN_SHARE, Array, Cell, cells_of
from benchmarks.baselines.warm import Warm, WarmDaqp, WarmHighs
from benchmarks.figures import environment
from benchmarks.report import plain, row, write_atomically
from benchmarks.timing import in_the_long_run
from counterlvq.lvq import GMLVQ

RESULTS = Path(__file__).resolve().parent / "results"
ROWS, REPEATS = 60, 9
GOAL = 5.0
FEATURES, PROTOTYPES = 10, 3
COSTS: dict[str, tuple[clvq.Cost, type[Warm]]] = {
    "L1": (clvq.Manhattan(), WarmHighs),
    "L2": (clvq.Euclidean(), WarmDaqp),
}
# The second feature may not rise, and the sum of the next two by so much at the most.
RISE = 1.0
RULES = ("x1 <= original(x1)", f"x2 + x3 <= original(x2) + original(x3) + {RISE:g}")


@dataclass
class Stopwatch:
    """Seconds of the processor inside a function, and how often it was called."""

    seconds: float = 0.0
    calls: int = 0

    def around(self, work: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def timed(given: Any) -> Any:
            begun = process_time()
            found = work(given)
            self.seconds += process_time() - begun
            self.calls += 1
            return found

        return timed


@dataclass(frozen=True, eq=False)
class Asked:
    """One kind of model, with rows of its own and a watch on its `predict`."""

    name: str
    model: Any
    rows: Array
    targets: list[Any]
    predicts: Stopwatch = field(default_factory=Stopwatch)


@dataclass(frozen=True)
class Figures:
    """One model, one cost, with constraints or without; microseconds per row."""

    model: str
    cost: str
    constraints: int
    explain: float
    batch: float
    predict: float  # in the model's own `predict`, taken off the two before
    calls: float  # of it, per row
    warm: float
    solver: float  # the calls of the warm solver alone, of those
    optimal: int
    rows: int
    difference: float  # largest relative difference of the two costs


def models(rows: int) -> Iterator[Asked]:
    """Breast cancer, ten measurements, three prototypes per class under one matrix."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :FEATURES]
    steps = make_pipeline(StandardScaler(), GMLVQ(PROTOTYPES, random_state=0)).fit(X, y)
    scaled = steps[0].transform(X)
    wishes = (1 - steps.predict(X[:rows])).tolist()
    bare = clvq.as_prototype_model(steps[-1])
    yield Asked("PrototypeModel", bare, scaled[:rows], wishes)
    yield Asked("estimator", steps[-1], scaled[:rows], wishes)
    asked = Asked("pipeline", steps, X[:rows], wishes)
    steps.predict = asked.predicts.around(steps.predict)
    yield asked


class WarmRow:
    """The programs of a model, each with a solver that is ready."""

    def __init__(self, model: clvq.PrototypeModel, kind: type[Warm], has_rules: bool) -> None:
        C = np.zeros((2, model.n_features))
        C[0, 1], C[1, 2:4] = 1.0, 1.0
        limits = np.array([0.0, RISE])
        self._rules, self._limits = (C, limits) if has_rules else (C[:0], limits[:0])
        self._cells: dict[Any, list[tuple[Cell, Warm]]] = {
            label: [(cell, kind(np.vstack([cell.left, self._rules]))) for cell in cells]
            for label, cells in ((c, cells_of(model, c)) for c in model.classes.tolist())
        }
        self.inside = Stopwatch()

    def answer(self, x: Array, target: Any) -> tuple[float, Array]:
        """The least cost and the point that has it."""
        return self._answered(x, target, _solved)

    def watched(self, x: Array, target: Any) -> tuple[float, Array]:
        """As `answer`, with a watch on the calls of the solver, which takes time itself."""
        return self._answered(x, target, self._timed)

    def _timed(self, solver: Warm, right: Array) -> float:
        begun = process_time()
        cost = solver.solve(right)
        self.inside.seconds += process_time() - begun
        return cost

    def _answered(
        self, x: Array, target: Any, solve: Callable[[Warm, Array], float]
    ) -> tuple[float, Array]:
        least, point = np.inf, x
        for cell, solver in self._cells[target]:
            right = cell.right - cell.left @ x
            right -= max(LEAST_MARGIN, -MARGIN_SHARE * right.min())  # as `Cell.tightened`
            if self._limits.size:
                right = np.concatenate([right, self._limits])
            cost = solve(solver, right)
            if cost < least:
                least, point = cost, x + solver.change()
        return least, point


def _solved(solver: Warm, right: Array) -> float:
    return solver.solve(right)


def measured(asked: Asked, cost: str, has_rules: bool, repeats: int) -> Figures:
    """Ask about every row, in turn by each of the three."""
    stated, kind = COSTS[cost]
    explainer = clvq.Explainer(asked.model, stated, constraints=RULES if has_rules else ())
    warm = WarmRow(explainer.model, kind, has_rules)
    rows, targets = asked.rows, asked.targets
    found = [explainer.explain(x, t) for x, t in zip(rows, targets, strict=True)]
    costs = np.array([warm.answer(x, t)[0] for x, t in zip(rows, targets, strict=True)])
    own = np.array([cf.cost for cf in found])
    best = np.full((5, len(rows)), np.inf)
    asked.predicts.calls = 0
    for _ in range(repeats):
        for i, (x, target) in enumerate(zip(rows, targets, strict=True)):
            single, alone = x[None, :], [target]
            spent = (
                *_seconds(partial(explainer.explain, x, target), asked.predicts),
                _seconds(partial(explainer.explain_batch, single, alone), asked.predicts)[0],
                _seconds(partial(warm.answer, x, target), Stopwatch())[0],
                _seconds(partial(warm.watched, x, target), warm.inside)[1],
            )
            best[:, i] = np.minimum(best[:, i], spent)
    explain, predict, batch, whole, solver = (1e6 * median(part.tolist()) for part in best)
    return Figures(
        asked.name, cost, len(RULES) if has_rules else 0, explain, batch, predict,
        asked.predicts.calls / (2 * repeats * len(rows)), whole, solver,
        sum(cf.status == "optimal" for cf in found), len(rows),
        float((np.abs(costs - own) / own).max()),
    )  # fmt: skip


def _seconds(work: Callable[[], object], inside: Stopwatch) -> tuple[float, float]:
    """Seconds of a call, less those on the watch, and those on the watch."""
    inside.seconds, begun = 0.0, process_time()
    work()
    spent = process_time() - begun
    return spent - inside.seconds, inside.seconds


def run(rows: int, repeats: int) -> list[Figures]:
    """All twelve: three models, two costs, without constraints and with."""
    found = []
    for asked in models(rows):
        for cost in COSTS:
            for has_rules in (False, True):
                found.append(measured(asked, cost, has_rules, repeats))
                _say(found[-1])
    return found


def _say(item: Figures) -> None:
    words = f"{item.model}, {item.cost}, {item.constraints} constraints: {item.explain:.0f} us"
    print(f"{words}, warm {item.warm:.0f} us", file=sys.stderr, flush=True)


def markdown(where: dict[str, Any], rows: int, repeats: int, found: list[Figures]) -> str:
    """The whole run as a table, with the verdict."""
    lines = [
        "# One row at a time\n",
        f"`python -m benchmarks.single`, {where['date']}. Python {where['python']} on "
        f"{where['platform']}, {where['cores']} cores, load average before "
        f"{where['load_before'][0]:.1f}. Breast cancer, {FEATURES} measurements, GMLVQ with "
        f"{PROTOTYPES} prototypes per class, {rows} rows. Microseconds of the processor per row: "
        f"the least of {repeats} repeats that were taken in turn, median over rows. `explain` "
        f"gives point, cost, proved bound and status; certificate, texts and the like are made "
        f"when they are asked for. The time in the pipeline's own `predict`, which is asked about "
        f"input and answer in one call, is taken off and stands beside.\n",
        "Warm: HiGHS (L1) or daqp (L2), one model per target prototype, built once. A row is "
        "turned into right-hand sides, the models are solved from where they were left, and the "
        "cheapest solution is the answer; nothing is proved or checked. The calls of the solver "
        "alone stand beside.\n",
        row(["model", "cost", "constraints", "`explain`", "`explain_batch` of one",
             "own `predict`", "warm", "solver alone", "`explain` / warm", "batch / warm",
             "proved", "costs differ by"]),
        row(["---"] * 2 + ["---:"] * 10),
    ]  # fmt: skip
    lines += [
        row([
            f.model, f.cost, str(f.constraints), f"{f.explain:.0f}", f"{f.batch:.0f}",
            f"{f.predict:.0f}" if f.calls else "", f"{f.warm:.0f}", f"{f.solver:.0f}",
            f"{f.explain / f.warm:.1f}", f"{f.batch / f.warm:.1f}", f"{f.optimal} of {f.rows}",
            f"{f.difference:.0e}",
        ])
        for f in found
    ]  # fmt: skip
    lines.append(f"\n{_verdict(found)}")
    return "\n".join(lines) + "\n"


def _verdict(found: list[Figures]) -> str:
    beyond = [f for f in found if max(f.explain, f.batch) > GOAL * f.warm]
    goal = f"A single row is to take at most {GOAL:g} times as long as the warm solver: "
    if not beyond:
        return f"{goal}reached throughout."
    named = ", ".join(
        f"{f.model} {f.cost}{' with constraints' if f.constraints else ''} "
        f"({f.explain / f.warm:.1f}, a batch of one {f.batch / f.warm:.1f})"
        for f in beyond
    )
    return f"{goal}reached in {len(found) - len(beyond)} of {len(found)} settings; not by {named}."


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write `single.json` and `single.md`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.single", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    chosen = parser.parse_args(arguments)
    in_the_long_run()
    with threadpool_limits(1):
        where = environment()
        found = run(chosen.rows, chosen.repeats)
    text = markdown(where, chosen.rows, chosen.repeats, found)
    print(text)
    measurements = [asdict(item) for item in found]
    told = {"environment": where, "repeats": chosen.repeats, "measured": measurements}
    content = json.dumps(plain(told), indent=1, allow_nan=False) + "\n"
    chosen.output.mkdir(parents=True, exist_ok=True)
    out = chosen.output
    write_atomically(out / "single.json", lambda path: path.write_text(content, "utf-8"))
    write_atomically(out / "single.md", lambda path: path.write_text(text, "utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
