"""Many rows at once: the same answers as one by one, told as arrays, tables and a few numbers."""

from __future__ import annotations

import builtins
import dataclasses
import pickle
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import counterlvq as clvq
from counterlvq.batch import engine
from counterlvq.numeric.interpreting import compile_from_now_on
from counterlvq.programs.kernel_data import KernelData
from counterlvq.programs.proof_data import ProofData
from counterlvq.solvers import compiled
from counterlvq.solvers.compiled import Answers, Code, Scratch
from tests.support import oracles
from tests.support.oracles import Absolute, Question
from tests.support.quick import seeds, some

NAMES = ("age", "income", "debt", "rooms")
LABELS = ["low", "middle", "high"] * 4


def sample() -> tuple[clvq.PrototypeModel, np.ndarray]:
    """A model of three classes, and rows near and far, on prototypes, on boundaries, repeated."""
    rng = np.random.default_rng(31)
    W = rng.normal(size=(12, 4)) * 2
    near = W[rng.integers(12, size=14)] + 0.5 * rng.normal(size=(14, 4))
    far = 30 * rng.normal(size=(4, 4))
    between = (W[[0, 1, 2, 3]] + W[[1, 2, 3, 4]]) / 2
    X = np.vstack([near, far, between, W[:4], near[:3]])
    return clvq.PrototypeModel(W, LABELS, feature_names=NAMES), X


MODEL, X = sample()
SHARED = clvq.PrototypeModel(
    MODEL.prototypes,
    LABELS,
    omegas=np.random.default_rng(32).normal(size=(3, 4)),
    feature_names=NAMES,
)
FACTOR = np.random.default_rng(33).normal(size=(5, 4))

Settings = dict[str, Any]
SETTINGS: dict[str, Settings] = {
    "l1": {},
    "weights": {"cost": clvq.Manhattan([0.3, 1.0, 2.0, 5.0])},
    "l2": {"cost": clvq.Euclidean()},
    "mahalanobis": {"cost": clvq.Mahalanobis(FACTOR.T @ FACTOR)},
    "flat mahalanobis": {"cost": clvq.Mahalanobis.from_factor(FACTOR[:2])},
    "omega l1": {"model": SHARED},
    "omega l2": {"model": SHARED, "cost": clvq.Euclidean()},
    "frozen": {"constraints": [clvq.Freeze("age", "debt")]},
    "all frozen": {"constraints": [clvq.Freeze(*NAMES)]},
    "increase": {"constraints": [clvq.Increase("age", "rooms")]},
    "decrease": {"constraints": [clvq.Decrease("income")], "cost": clvq.Euclidean()},
    "bounds": {"constraints": [clvq.Bounds("age", -2, 2), clvq.Bounds("debt", upper=3)]},
    "steps": {"constraints": [clvq.MaxChange(name, 0.8) for name in NAMES]},
    "steps l2": {
        "constraints": [clvq.MaxChange(name, 0.8) for name in NAMES],
        "cost": clvq.Euclidean(),
    },
    "at most": {"constraints": [clvq.Linear({"age": 1, "debt": -0.5}, "<=", 0.3)]},
    "at least": {
        "constraints": [clvq.Linear({"age": 1, "rooms": 2}, ">=", -1)],
        "cost": clvq.Mahalanobis(FACTOR.T @ FACTOR),
    },
    "equal": {"constraints": [clvq.Linear({"age": 1, "income": 1}, "==", 0.4)]},
    "fixed": {"constraints": ["age == 0.7"], "cost": clvq.Euclidean()},
    "words": {"constraints": ["income - debt <= original(income) - original(debt) + 0.3"]},
    "ball": {"constraints": [clvq.Quadratic(np.eye(4), 9.0)]},
    "ball l2": {"constraints": [clvq.Quadratic(np.eye(4), 9.0)], "cost": clvq.Euclidean()},
    "margin": {"margin": 0.25},
    "margin l2": {"margin": 0.25, "cost": clvq.Euclidean()},
    "margin out of reach": {"margin": 3.0, "constraints": [clvq.MaxChange(n, 0.8) for n in NAMES]},
    "no margin": {"margin": 0.0},
    "ample time": {"time_limit": 60.0},
    "no time": {"time_limit": 0.0},
}
# Answered row by row by other engines, or with a conflict to be looked for in each.
SLOW = {"flat mahalanobis", "all frozen", "ball", "ball l2", "margin out of reach"}
# Rows that the kernels hand on take long; the other seeds are for `make test-slow`.
some_seeds = pytest.mark.parametrize("seed", seeds(12, quick=1))
each_setting = pytest.mark.parametrize("setting", SETTINGS)
# One of each kind of cost, constraint and engine.
few_settings = pytest.mark.parametrize(
    "setting",
    some(
        SETTINGS,
        quick={"l1", "flat mahalanobis", "omega l2", "steps", "words", "ball l2", "margin"},
    ),
)

_choices = np.random.default_rng(34).choice(np.array(["low", "middle", "high", None]), len(X))
TARGETS: dict[str, Any] = {
    "any other": None,
    "one": "high",
    "a set": {"low", "high"},
    "a frozen set": frozenset(["middle"]),
    "a list": _choices.tolist(),
    "an array": np.array([wish or "low" for wish in _choices]),
    "objects": _choices,
    "a column": pd.Series([wish or "low" for wish in _choices]),
    "a single column": _choices[:, None],
    "an array of one": np.array("middle"),
}
each_target = pytest.mark.parametrize("target", TARGETS)


@cache
def explainer(setting: str) -> clvq.Explainer:
    chosen = dict(SETTINGS[setting])
    return clvq.Explainer(chosen.pop("model", MODEL), **chosen)


def is_per_row(target: str) -> bool:
    return np.ndim(np.asarray(TARGETS[target], dtype=object)) > 0


def wish(target: str, i: int) -> Any:
    """What row i wishes for."""
    given = TARGETS[target]
    return np.asarray(given, dtype=object).ravel()[i] if is_per_row(target) else given


def posed(setting: str, target: str) -> tuple[np.ndarray, Any, list[int]]:
    """Rows, what they wish for, and their numbers: fewer where each takes long."""
    step = 9 if setting in SLOW else 1
    given = TARGETS[target]
    return X[::step], given[::step] if is_per_row(target) else given, [*range(0, len(X), step)]


@cache
def single(setting: str, i: int, wished: Any) -> clvq.Counterfactual:
    """What `explain` says of row i alone."""
    return explainer(setting).explain(X[i], wished)


@cache
def together(setting: str) -> clvq.CounterfactualBatch:
    """The rows of a setting, each with its own wish, answered by one thread."""
    rows, target, _ = posed(setting, "a list")
    return explainer(setting).explain_batch(rows, target)


@cache
def all_high(setting: str) -> clvq.CounterfactualBatch:
    """Every row, wished to be "high"."""
    return explainer(setting).explain_batch(X, "high")


def assert_rows_equal(batch: clvq.CounterfactualBatch, singles: list[clvq.Counterfactual]) -> None:
    assert len(batch) == len(singles)
    for i, cf in enumerate(singles):
        assert np.array_equal(batch.X[i], cf.x, equal_nan=True), i
        assert batch.cost[i] == cf.cost, i
        assert batch.prototype[i] == cf.prototype, i
        assert batch.status[i] == cf.status, i
        assert batch.prediction[i] == cf.prediction, i
        assert batch.original_prediction[i] == cf.original_prediction, i
        assert batch.lower_bound[i] == pytest.approx(cf.lower_bound, rel=1e-9, abs=1e-12), i
        assert batch.gap[i] == pytest.approx(cf.gap, abs=1e-9), i
        assert np.array_equal(batch.original[i], cf.original), i


def assert_batches_equal(batch: clvq.CounterfactualBatch, other: clvq.CounterfactualBatch) -> None:
    for name in ("X", "original", "cost", "lower_bound"):
        assert np.array_equal(getattr(batch, name), getattr(other, name), equal_nan=True), name
    for name in ("prototype", "status", "original_prototype", "second_engine", "rows"):
        assert np.array_equal(getattr(batch, name), getattr(other, name)), name
    assert batch.gap == pytest.approx(other.gap, abs=1e-12)


# --- row by row ---------------------------------------------------------------------------------


# Steps at a squared cost look for the conflict of each row, as steps at an absolute one do.
@pytest.mark.parametrize("setting", some(SETTINGS, quick=SETTINGS.keys() - {"steps l2"}))
def test_batch_answers_as_one_by_one(setting: str) -> None:
    _, _, at = posed(setting, "a list")
    singles = [single(setting, i, wish("a list", i)) for i in at]
    assert_rows_equal(together(setting), singles)


@pytest.mark.covering
@each_target
@pytest.mark.parametrize("setting", ["l1", "steps l2", "ball"])
def test_target_in_any_form(setting: str, target: str) -> None:
    asked, (rows, given, at) = explainer(setting), posed(setting, target)
    if is_per_row(target):
        singles = [single(setting, i, wish(target, i)) for i in at]
    else:
        singles = [asked.explain(row, given) for row in rows]
    assert_rows_equal(asked.explain_batch(rows, given), singles)


@pytest.mark.covering
@pytest.mark.parametrize(
    ("largest", "work", "jobs"),
    [
        (None, None, 2), (None, None, -1),
        (1, 1 << 24, 1), (3, 1 << 24, 3), (4096, 1, 2), (7, 2000, 1),
    ],
)  # fmt: skip
@each_setting
def test_answers_do_not_depend_on_threads_or_blocks(
    setting: str,
    largest: int | None,
    work: int | None,
    jobs: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, (rows, target, _) = explainer(setting), posed(setting, "a list")
    alone = together(setting)
    if largest is not None:
        monkeypatch.setattr(engine, "_LARGEST_BLOCK", largest)
        monkeypatch.setattr(engine, "_LAST_BLOCK", max(1, largest // 8))
        monkeypatch.setattr(engine, "_BLOCK_WORK", work)
    assert_batches_equal(asked.explain_batch(rows, target, n_jobs=jobs), alone)


@pytest.mark.parametrize("setting", ["l1", "l2", "steps", "omega l1"])
def test_row_does_not_depend_on_its_neighbours(setting: str) -> None:
    asked = explainer(setting)
    whole = asked.explain_batch(X)
    order = np.random.default_rng(2).permutation(len(X))
    shuffled = asked.explain_batch(X[order])
    back = np.argsort(order)
    assert np.array_equal(shuffled.X[back], whole.X, equal_nan=True)
    assert np.array_equal(shuffled.cost[back], whole.cost)
    assert np.array_equal(shuffled.lower_bound[back], whole.lower_bound)


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=["l1", "l2"])
@some_seeds
def test_row_on_the_edge_of_a_constraint_is_judged_alike_in_any_company(
    seed: int, cost: clvq.Cost
) -> None:
    """The sum of a constraint must not be rounded differently for one row and for several."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 21))
    a, x = rng.normal(size=(2, d))
    model = clvq.PrototypeModel(rng.normal(size=(4, d)), list("abab"))
    asked = clvq.Explainer(model, cost, [clvq.Linear(a, "<=", float(a @ x))])
    for target in "ab":
        one = asked.explain(x, target)
        for count in (1, 2, 3, 8, 24):
            batch = asked.explain_batch(np.tile(x, (count, 1)), target)
            assert_rows_equal(batch, [one] * count)


@some_seeds
def test_row_on_a_boundary_is_classified_alike_in_any_company(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 21))
    W = rng.normal(size=(2, d))
    model = clvq.PrototypeModel(W, ["a", "b"], omegas=rng.normal(size=(d, d)))
    asked, x = clvq.Explainer(model), W.mean(axis=0)
    one = asked.explain(x)
    for count in (1, 2, 5, 24):
        assert_rows_equal(asked.explain_batch(np.tile(x, (count, 1))), [one] * count)


def test_batch_is_optimal_by_the_rule_itself() -> None:
    """Against an oracle, not only against `explain`."""
    batch = explainer("l1").explain_batch(X)
    for i in range(0, len(X), 3):
        own = MODEL.predict(X[i : i + 1])[0]
        others = [label for label in ("low", "middle", "high") if label != own]
        question = Question(MODEL.prototypes, LABELS, None, X[i], others, Absolute(np.ones(4)))
        best = oracles.optimal_cost(question)
        assert batch.cost[i] == pytest.approx(best, rel=1e-6, abs=question.floor)


@pytest.mark.parametrize(
    ("labels", "wishes"),
    [
        ([True, False] * 6, [True, False, None]),
        ([1, 0] * 6, [np.int64(1), 0, None]),
        ([1.5, -2.0] * 6, [1.5, np.float64(-2.0), None]),
        (["yes", "no"] * 6, [np.str_("yes"), "no", None]),
        (np.array(["yes", "no"] * 6, dtype=object), ["yes", "no", None]),
    ],
    ids=["bool", "int", "float", "str", "object"],
)
def test_labels_of_any_type_row_by_row(labels: Any, wishes: list[Any]) -> None:
    asked = clvq.Explainer(clvq.PrototypeModel(MODEL.prototypes, labels))
    target = [wishes[i % 3] for i in range(len(X))]
    batch = asked.explain_batch(X, target)
    assert_rows_equal(batch, [asked.explain(x, w) for x, w in zip(X, target, strict=True)])
    for i, wished in enumerate(target):
        if wished is not None:
            assert batch.prediction[i] == wished
        else:
            assert batch.prediction[i] != batch.original_prediction[i]


# --- rows with nothing to do, and rows with nothing to find -------------------------------------


@pytest.mark.parametrize("setting", ["l1", "mahalanobis", "margin", "ball", "no time"])
def test_rows_that_have_the_target_come_back_unchanged(setting: str) -> None:
    asked = explainer(setting)
    X_inside = 0.1 * X[:14]
    batch = asked.explain_batch(X_inside, MODEL.predict(X_inside))
    assert np.array_equal(batch.X, X_inside)
    assert not batch.cost.any()
    assert not batch.lower_bound.any()
    assert not batch.gap.any()
    assert (batch.status == "optimal").all()
    assert batch.fallbacks == 0
    assert np.array_equal(batch.prototype, MODEL.nearest(X_inside))


@pytest.mark.parametrize("setting", some(["steps", "all frozen", "steps l2"], quick=2))
def test_infeasible_rows(setting: str) -> None:
    asked = explainer(setting)
    batch = all_high(setting)
    none = batch.status == "infeasible"
    assert none.any()
    assert not none.all()  # those that are "high" already
    assert np.isnan(batch.X[none]).all()
    assert np.isnan(batch.delta[none]).all()
    assert (batch.cost[none] == np.inf).all()
    assert (batch.lower_bound[none] == np.inf).all()
    assert (batch.gap[none] == 0).all()
    assert (batch.prototype[none] == -1).all()
    assert [batch.prediction[i] for i in np.flatnonzero(none)] == [None] * none.sum()
    assert all(label == "high" for label in batch.prediction[~none])
    for i in np.flatnonzero(none)[:3]:
        cf = batch[int(i)]
        assert cf.status == "infeasible"
        assert cf.conflict
        assert set(cf.conflict) <= set(asked.constraints)


def test_rows_without_time_are_open() -> None:
    batch = all_high("no time")
    unchanged = MODEL.predict(X) == "high"
    assert (batch.status[~unchanged] == "unknown").all()
    assert (batch.status[unchanged] == "optimal").all()
    assert np.isnan(batch.X[~unchanged]).all()
    assert (batch.lower_bound <= all_high("l1").cost).all()


def test_time_limit_leaves_the_kernel_at_work() -> None:
    at_leisure = explainer("l1").explain_batch(X).fallbacks
    assert explainer("ample time").explain_batch(X).fallbacks == at_leisure < len(X) / 4


# --- a kernel that fails ------------------------------------------------------------------------

honest_run = compiled.run
Lie = Callable[[Answers, Scratch, np.ndarray], None]


def fails(answers: Answers, scratch: Scratch, at: np.ndarray) -> None:
    answers.code[at] = Code.FAILED


def stays(answers: Answers, scratch: Scratch, at: np.ndarray) -> None:
    answers.Y[at] = X[0]  # "low", and nobody wished for that


def runs_away(answers: Answers, scratch: Scratch, at: np.ndarray) -> None:
    answers.Y[at] += 1e3


def says_nothing(answers: Answers, scratch: Scratch, at: np.ndarray) -> None:
    answers.Y[at] = np.nan


def leaves_a_gap(answers: Answers, scratch: Scratch, at: np.ndarray) -> None:
    answers.bound[at] *= 1 - 1e-5
    scratch.prices[:] *= 1 - 1e-5


def proves_nothing(answers: Answers, scratch: Scratch, at: np.ndarray) -> None:
    answers.bound[at] = 0.0
    scratch.prices[:] = 0.0


def goes_a_little_further(answers: Answers, scratch: Scratch, at: np.ndarray) -> None:
    answers.Y[at] += 1e-4 * (answers.Y[at] - X[0])


LIES = [fails, stays, runs_away, says_nothing, leaves_a_gap, proves_nothing, goes_a_little_further]


@pytest.mark.covering
@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("setting", ["l1", "l2", "bounds", "at least"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_failure_of_the_kernel_is_mended_and_counted(
    jobs: int, setting: str, lie: Lie, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, honest = explainer(setting), all_high(setting)
    assert honest.fallbacks == 0
    solved = np.flatnonzero((honest.status == "optimal") & (honest.cost > 0))
    hit = solved[::3]
    assert 0 < hit.size < solved.size

    def run(
        family: KernelData,
        stated: ProofData,
        rows: np.ndarray,
        margin: float | None,
        scratch: Scratch,
        *rest: object,
    ) -> Answers:
        answers = honest_run(family, stated, rows, margin, scratch, *rest)
        is_hit = (rows[:, None, :] == X[hit][None]).all(axis=2).any(axis=1)
        if is_hit.any():
            lie(answers, scratch, np.flatnonzero(is_hit))
        return answers

    monkeypatch.setattr(compiled, "run", run)
    batch = asked.explain_batch(X, "high", n_jobs=jobs)
    struck = (X[:, None, :] == X[hit][None]).all(axis=2).any(axis=1)
    assert np.array_equal(batch.second_engine, struck)
    assert batch.fallbacks == struck.sum()
    assert batch.summary().fallbacks == struck.sum()
    assert np.array_equal(batch.X[~struck], honest.X[~struck], equal_nan=True)
    assert np.array_equal(batch.status, honest.status)
    assert batch.cost == pytest.approx(honest.cost, rel=1e-6)
    assert (MODEL.predict(batch.X[struck]) == "high").all()


def test_rows_that_the_kernels_cannot_take_are_counted() -> None:
    batch = all_high("ball")
    unchanged = (batch.cost == 0) & (batch.status == "optimal")
    assert np.array_equal(batch.second_engine, ~unchanged)
    assert all_high("l1").fallbacks == 0


# --- refused before any work --------------------------------------------------------------------


def refused(monkeypatch: pytest.MonkeyPatch, error: type[Exception], *args: Any, **how: Any) -> str:
    """The words in which a batch is refused, with nothing done before them."""

    def never(*args: object, **kwargs: object) -> None:
        pytest.fail("work was begun")

    monkeypatch.setattr(engine, "run_blocks", never)
    monkeypatch.setattr(compiled, "run", never)
    with pytest.raises(error) as caught:
        explainer("l1").explain_batch(*args, **how)
    return str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_missing_value_is_refused_by_place(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = X.copy()
    rows[7, 2] = rows[11, 0] = value
    words = refused(monkeypatch, clvq.InvalidInputError, rows)
    assert words.startswith(f"X[7, 2] is {value} (2 such value(s) in all); expected finite")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (X[:, :3], "X has 3 columns; expected 4, one per feature."),
        (X[0], "X has 1 dimension(s) and shape (4,); expected a two-dimensional array"),
        (X[:0], "X is empty (shape (0, 4)); expected at least one row and one column."),
        ([], "X has 1 dimension(s) and shape (0,)"),
        ([["a", 1, 2, 3]], "X cannot be read as an array of numbers"),
    ],
    ids=["narrow", "one row", "no rows", "nothing", "text"],
)
def test_rows_of_another_shape_are_refused(
    rows: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refused(monkeypatch, clvq.InvalidInputError, rows).startswith(words)


def test_unknown_label_in_a_row_is_refused_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    target = ["low"] * len(X)
    target[3] = "nobody"
    words = refused(monkeypatch, clvq.UnknownLabelError, X, target)
    assert words == (
        "target names 'nobody' in row 3, which is no label of the model; expected one of: 'high', "
        "'low', 'middle'. 1 row(s) in all: 3."
    )


def test_unknown_labels_in_many_rows_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    target = np.array(["low"] * len(X), dtype=object)
    target[[2, 5, 6, 9, 12, 20, 21]] = ["x", 3.5, ["low"], np.nan, "Low", b"low", {"low"}]
    words = refused(monkeypatch, clvq.UnknownLabelError, X, target)
    assert words.startswith("target names 'x' in row 2,")
    assert words.endswith("7 row(s) in all: 2, 5, 6, 9, 12, ....")


@pytest.mark.parametrize("target", ["nobody", 7, {"low", "nobody"}, np.array("nobody")])
def test_unknown_label_for_all_rows_is_refused(
    target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = refused(monkeypatch, clvq.UnknownLabelError, X, target)
    assert "is no label of the model; expected one of: 'high', 'low', 'middle'." in words


def test_empty_set_of_labels_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    words = refused(monkeypatch, clvq.UnknownLabelError, X, set())
    assert words.startswith("target is empty; expected a label")


@pytest.mark.parametrize("count", [1, 5, len(X) - 1, len(X) + 1])
def test_target_of_another_length_is_refused(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    words = refused(monkeypatch, clvq.InvalidInputError, X, ["low"] * count)
    entries = "1 entry" if count == 1 else f"{count} entries"
    assert words == (
        f"target has {entries} for {len(X)} rows; expected one label per row, one label for "
        f"all, or a set such as {{'a', 'b'}} for any of several labels."
    )


@pytest.mark.parametrize("jobs", [0, 1.5, True, "all"])
def test_bad_number_of_jobs_is_refused(jobs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    words = refused(monkeypatch, clvq.InvalidInputError, X, n_jobs=jobs)
    assert words.startswith(f"n_jobs is {jobs!r}; expected a positive number of threads")


def test_given_rows_are_left_alone() -> None:
    rows = X.copy()
    batch = explainer("l1").explain_batch(rows)
    assert np.array_equal(rows, X)
    rows[:] = 0.0
    assert np.array_equal(batch.original, X)
    assert np.array_equal(batch[3].original, X[3])


def test_arrays_of_a_batch_are_read_only() -> None:
    batch = explainer("steps").explain_batch(X)
    for part in (batch, batch[:5], batch[batch.cost < 1]):
        for name in ("X", "original", "cost", "lower_bound", "gap", "status", "prototype"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(part, name)[0] = 0


# --- progress -----------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_is_shown_on_request(jobs: int, capfd: pytest.CaptureFixture[str]) -> None:
    asked = explainer("l1")
    asked.explain_batch(X, n_jobs=jobs)
    assert capfd.readouterr() == ("", "")
    asked.explain_batch(X, n_jobs=jobs, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "100%" in err
    assert f"{len(X)}.0/{len(X)}.0" in err
    assert "row/s" in err


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Make believe that a package is not installed."""
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    true_import = builtins.__import__

    def importing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == package:
            raise ImportError(f"No module named {package!r}")
        return true_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", importing)


def test_progress_without_tqdm_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "tqdm")
    with pytest.raises(clvq.NotSupportedError) as caught:
        explainer("l1").explain_batch(X, progress=True)
    assert str(caught.value) == (
        "progress=True needs tqdm, which is not installed; install it with "
        "pip install tqdm, or leave progress out."
    )
    assert len(explainer("l1").explain_batch(X)) == len(X)


# --- a batch as a sequence ----------------------------------------------------------------------


def test_length_iteration_and_index() -> None:
    asked = explainer("steps")
    batch = asked.explain_batch(X[:6])
    assert len(batch) == 6
    answers = list(batch)
    assert all(isinstance(cf, clvq.Counterfactual) for cf in answers)
    assert_rows_equal(batch, answers)
    assert np.array_equal(batch[-1].original, X[5])
    assert np.array_equal(batch[np.int64(2)].original, X[2])
    for beyond in (6, -7):
        with pytest.raises(IndexError):
            batch[beyond]


def test_single_answer_comes_with_its_proof() -> None:
    asked = explainer("bounds")
    batch = asked.explain_batch(X, "high")
    i = int(np.flatnonzero(batch.cost > 0)[0])
    cf = batch[i]
    assert cf.certificate.proofs
    assert asked.verify(cf) == cf.lower_bound == pytest.approx(batch.lower_bound[i], rel=1e-9)


SLICES: dict[str, tuple[Any, list[int]]] = {
    "slice": (slice(2, 9), list(range(2, 9))),
    "step": (slice(None, None, 4), list(range(0, len(X), 4))),
    "backwards": (slice(5, None, -1), [5, 4, 3, 2, 1, 0]),
    "nothing": (slice(0, 0), []),
    "list": ([3, 0, 3], [3, 0, 3]),
    "negative": ([-1, 2], [len(X) - 1, 2]),
    "positions": (np.array([4, 8]), [4, 8]),
    "mask": (np.arange(len(X)) % 5 == 0, list(range(0, len(X), 5))),
    "list of bools": ([i < 3 for i in range(len(X))], [0, 1, 2]),
}


@pytest.mark.parametrize("kind", SLICES)
def test_part_of_a_batch_is_a_batch(kind: str) -> None:
    index, at = SLICES[kind]
    batch = all_high("steps")
    part = batch[index]
    assert isinstance(part, clvq.CounterfactualBatch)
    assert len(part) == len(at)
    whole = (batch.X, batch.original, batch.cost, batch.lower_bound, batch.gap, batch.delta)
    parts = (part.X, part.original, part.cost, part.lower_bound, part.gap, part.delta)
    for mine, all_of_it in zip(parts, whole, strict=True):
        assert np.array_equal(mine, all_of_it[at], equal_nan=True)
    assert part.status.tolist() == batch.status[at].tolist()
    assert part.prediction.tolist() == batch.prediction[at].tolist()
    assert part.original_prediction.tolist() == batch.original_prediction[at].tolist()
    assert part.second_engine.tolist() == batch.second_engine[at].tolist()
    for k, i in enumerate(at[:3]):
        assert np.array_equal(part[k].original, X[i])
    if at:
        assert np.array_equal(part[1:][-1].original, X[at[-1]]) or len(at) == 1
    assert part.summary().rows == len(at)


def test_rows_keep_their_own_wish_when_sliced() -> None:
    target = TARGETS["a list"]
    batch = explainer("l1").explain_batch(X, target)
    part = batch[10:20][::-1][np.array([0, 4, 9])]
    for k, i in enumerate((19, 15, 10)):
        assert part[k].cost == batch.cost[i]
        assert np.array_equal(part[k].original, X[i])


# --- tables and summaries -----------------------------------------------------------------------


def test_frame_holds_what_the_batch_holds() -> None:
    batch = all_high("steps")
    frame = batch.to_frame()
    expected = [f"{name}_{part}" for name in NAMES for part in ("before", "after", "change")]
    expected += ["cost", "lower_bound", "gap", "status", "prediction", "original_prediction"]
    assert list(frame.columns) == [*expected, "prototype"]
    assert frame.index.tolist() == list(range(len(X)))
    for j, name in enumerate(NAMES):
        assert np.array_equal(frame[f"{name}_before"], X[:, j])
        assert np.array_equal(frame[f"{name}_after"], batch.X[:, j], equal_nan=True)
        change = frame[f"{name}_after"] - frame[f"{name}_before"]
        assert np.array_equal(frame[f"{name}_change"], change, equal_nan=True)
    for name in ("cost", "lower_bound", "gap", "prototype"):
        assert np.array_equal(frame[name], getattr(batch, name))
    assert frame["status"].tolist() == batch.status.tolist()
    assert frame["original_prediction"].tolist() == batch.original_prediction.tolist()
    floats = [*expected[:12], "cost", "lower_bound", "gap"]
    assert (frame[floats].dtypes == np.float64).all()
    assert frame["prototype"].dtype == np.int64


def test_frame_shows_where_there_is_no_answer() -> None:
    batch = all_high("steps")
    frame = batch.to_frame()
    none = frame["status"] == "infeasible"
    assert 0 < none.sum() < len(X)
    assert frame.loc[none, [f"{name}_after" for name in NAMES]].isna().all(axis=None)
    assert frame.loc[none, "prediction"].isna().all()
    assert (frame.loc[none, "cost"] == np.inf).all()
    assert (frame.loc[~none, "prediction"] == "high").all()
    assert frame.loc[~none, [f"{name}_after" for name in NAMES]].notna().all(axis=None)


def test_frame_of_a_part_keeps_the_row_numbers() -> None:
    batch = explainer("l1").explain_batch(X)
    assert batch[[7, 2]].to_frame().index.tolist() == [7, 2]
    assert len(batch[:0].to_frame()) == 0


@pytest.mark.parametrize(("labels", "kind"), [([0, 1], "i"), ([True, False], "b")])
def test_frame_keeps_the_type_of_labels(labels: list[Any], kind: str) -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], labels)
    frame = clvq.Explainer(model).explain_batch([[0.0], [3.0]]).to_frame()
    assert frame["prediction"].dtype.kind == kind
    assert frame["original_prediction"].dtype.kind == kind


def test_frame_without_pandas_is_one_of_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = explainer("l1").explain_batch(X[:2])
    without(monkeypatch, "pandas")
    frame = batch.to_frame()
    assert isinstance(frame, pl.DataFrame)
    np.testing.assert_array_equal(frame["cost"], batch.cost)


def test_frame_without_either_library_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = explainer("l1").explain_batch(X[:2])
    without(monkeypatch, "pandas")
    without(monkeypatch, "polars")
    with pytest.raises(clvq.NotSupportedError, match="neither is installed"):
        batch.to_frame()


@pytest.mark.parametrize("setting", ["l1", "steps", "ball", "no time", "all frozen", "margin"])
def test_summary_counts_what_is_there(setting: str) -> None:
    batch = all_high(setting)
    summary = batch.summary()
    rows = range(len(X))
    assert [i for i in rows if batch.status[i] in ("optimal", "feasible")]
    already = [i for i in rows if MODEL.predict(X[i : i + 1])[0] == "high"]
    stays = [i for i in already if np.array_equal(batch.X[i], X[i])]
    answered = [i for i in rows if batch.status[i] in ("optimal", "feasible") and i not in stays]
    moved = {
        name: [abs(batch.delta[i, j]) for i in answered if batch.X[i, j] != X[i, j]]
        for j, name in enumerate(NAMES)
    }
    assert summary.rows == len(X)
    assert summary.already == len(already) == batch.has_target.sum()
    assert summary.demanded == len(set(already) & set(answered))
    assert list(summary.shares) == list(clvq.Status)
    for status, share in summary.shares.items():
        assert share == pytest.approx(sum(s == status for s in batch.status) / len(X))
    many = max(len(answered), 1)
    mean = sum(batch.cost[i] for i in answered) / many if answered else np.nan
    assert summary.mean_cost == pytest.approx(mean, nan_ok=True)
    count = sum(len(steps) for steps in moved.values())
    assert summary.mean_changes == pytest.approx(count / many)
    assert summary.worst_gap == max((batch.gap[i] for i in answered), default=0.0)
    assert summary.fallbacks == batch.fallbacks == sum(batch.second_engine)
    assert sorted(use.feature for use in summary.features) == sorted(NAMES)
    shares = [use.share for use in summary.features]
    assert shares == sorted(shares, reverse=True)
    for use in summary.features:
        steps = moved[use.feature]
        assert use.share == pytest.approx(len(steps) / many)
        assert use.mean_change == pytest.approx(sum(steps) / len(steps) if steps else 0.0)


def test_summary_reads_as_a_table() -> None:
    model = clvq.PrototypeModel(
        [[0.0, 0.0], [4.0, 2.0]], ["no", "yes"], feature_names=["income", "a longer name"]
    )
    asked = clvq.Explainer(model, constraints=[clvq.Bounds("income", upper=2.25)])
    batch = asked.explain_batch([[0, 0], [3, 9], [0, 1], [1, 1]], target="yes")
    assert str(batch.summary()) == repr(batch)
    lines = str(batch.summary()).splitlines()
    assert lines[0] == "4 rows: 100.0% optimal"
    # (0, 0): 4u + 2v >= 10 with u at most 2.25, so v = 0.5; (3, 9) has the target already, and
    # breaks the bound by 0.75; (0, 1): 4u >= 8; (1, 1): 4u >= 4.
    assert lines[1].startswith("  mean cost 1.625, largest gap ")
    assert lines[1].endswith(", 1.25 features changed per answer")
    assert lines[2:] == [
        "  have the target already: 1, of which 1 changes to meet what else is asked",
        "  break the constraints as they are: 1",
        "  solved by a second engine: 0",
        "  feature        changed  mean change",
        "  income          100.0%          1.5",
        "  a longer name    25.0%          0.5",
    ]


def test_summary_names_each_ending() -> None:
    batch = all_high("steps")
    first = str(batch.summary()).splitlines()[0]
    none = float((batch.status == "infeasible").mean())
    assert first == f"{len(X)} rows: {1 - none:.1%} optimal, {none:.1%} infeasible"


def test_summary_of_a_thousand_rows_and_many_features() -> None:
    rng = np.random.default_rng(5)
    model = clvq.PrototypeModel(rng.normal(size=(6, 15)), ["a", "b"] * 3)
    batch = clvq.Explainer(model, clvq.Euclidean()).explain_batch(rng.normal(size=(1500, 15)))
    lines = str(batch.summary()).splitlines()
    assert lines[0] == "1,500 rows: 100.0% optimal"
    assert len(lines) == 4 + 10 + 1  # the ten features that change most
    changing = sum(use.share > 0 for use in batch.summary().features)
    assert changing > 10
    assert lines[-1] == f"  and {changing - 10} more"


def test_summary_rounds_no_share_to_none_or_to_all() -> None:
    batch = explainer("l1").explain_batch(X)
    shares = dict.fromkeys(batch.summary().shares, 0.0)
    shares[clvq.Status.OPTIMAL], shares[clvq.Status.INFEASIBLE] = 19_997 / 20_000, 3 / 20_000
    use = batch.summary().features[0]
    uses = (dataclasses.replace(use, share=0.9999), dataclasses.replace(use, share=0.0001))
    summary = dataclasses.replace(batch.summary(), rows=20_000, shares=shares, features=uses)
    lines = str(summary).splitlines()
    assert lines[0] == "20,000 rows: >99.9% optimal, <0.1% infeasible"
    assert [line.split()[1] for line in lines[-2:]] == [">99.9%", "<0.1%"]


def test_summary_of_nothing() -> None:
    batch = explainer("l1").explain_batch(X)[:0]
    summary = batch.summary()
    assert (summary.rows, summary.mean_changes, summary.worst_gap) == (0, 0.0, 0.0)
    assert np.isnan(summary.mean_cost)
    assert set(summary.shares.values()) == {0.0}
    assert str(summary).startswith("0 rows")


def test_summary_without_any_answer() -> None:
    none = all_high("all frozen")[MODEL.predict(X) != "high"]
    assert none.summary().shares["infeasible"] == 1.0
    breaking = str(none.summary()).splitlines()[1:-1]  # rows outside of the bounds, if any
    assert all("break the constraints" in line for line in breaking)
    assert "features changed" not in str(none.summary())


# --- round trips --------------------------------------------------------------------------------


def signatures() -> int:
    """How many times the kernels have been compiled in this process, or read from disk."""
    from counterlvq.solvers.kernels import rows

    kernels = (rows.answer_absolute, rows.answer_quadratic)
    return sum(len(kernel.dispatcher.signatures) for kernel in kernels)


@few_settings
def test_pickled_explainer_answers_the_same(setting: str) -> None:
    asked, (rows, target, at) = explainer(setting), posed(setting, "a list")
    before = together(setting)
    again = pickle.loads(pickle.dumps(asked))
    assert_batches_equal(again.explain_batch(rows, target), before)
    assert_rows_equal(before[:2], [again.explain(X[i], wish("a list", i)) for i in at[:2]])


def test_kernels_are_compiled_once_per_kind_of_cost() -> None:
    """Not again for one row, other settings, other shapes, or an explainer from a file."""
    compile_from_now_on()
    explainer("l1").explain_batch(X)
    explainer("l2").explain_batch(X)
    before = signatures()
    assert before == 2
    for setting in SETTINGS:
        asked = explainer(setting)
        asked.explain(X[0])
        asked.explain_batch(X[:2])
        again = pickle.loads(pickle.dumps(asked))
        again.explain(X[0])
        again.explain_batch(X[:2])
    asked = clvq.Explainer(clvq.PrototypeModel(np.asfortranarray(MODEL.prototypes), LABELS))
    asked.explain_batch(np.asfortranarray(X), n_jobs=2)
    asked.explain_batch(X[::2, ::-1])
    assert signatures() == before


def test_pickled_batch_reads_and_answers_the_same() -> None:
    batch = explainer("steps").explain_batch(X, TARGETS["a list"])
    again = pickle.loads(pickle.dumps(batch))
    assert_batches_equal(again, batch)
    assert repr(again) == repr(batch)
    assert again[3].cost == batch[3].cost


def test_features_without_a_price_that_are_frozen_make_no_difference() -> None:
    model = clvq.PrototypeModel([[0.0, 0, 0], [9.0, 9, 0], [3.0, 1, 0], [1e9, 0, 1]], list("abbb"))
    asked = clvq.Explainer(model, clvq.Mahalanobis(np.diag([1.0, 1.0, 0.0])), [clvq.Freeze(2)])
    rows = np.array([[0.5, 0.25, 0.0], [-1.0, 1.0, 0.0], [0.0, -2.0, 1.0]])
    singles = [asked.explain(x, "b") for x in rows]
    assert_rows_equal(asked.explain_batch(rows, "b"), singles)
    assert [cf.reason for cf in singles] == ["compiled kernel"] * 3
