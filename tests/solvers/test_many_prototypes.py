"""A whole training set as prototypes (1-NN): exact answers, and memory that grows with it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

import counterlvq as clvq
from counterlvq.cells import SharedCells
from counterlvq.certificates.questions import Question
from counterlvq.programs import kernel_data
from counterlvq.programs.template import ProgramTemplate
from counterlvq.solvers import Outcome, conic, highs

RELATIVE = 1e-6
COSTS = {"l1": clvq.Manhattan(), "l2": clvq.Euclidean()}
each_cost = pytest.mark.parametrize("cost", COSTS)

# --- an oracle that takes in rivals one by one --------------------------------------------------


def cell_cost(question: Question, target: int, enough: float = np.inf) -> float:
    """Cheapest change into one cell, or a bound of at least `enough` on it.

    Solve with one rival, find the one that is overtaken least, take it in, repeat: what few rivals
    cost, all of them cost at least.
    """
    cell = question.cells.halfspaces(target, question.x)
    lengths = np.linalg.norm(cell.normals, axis=1)
    chosen = [int((-cell.leads / lengths).argmax())]
    while True:
        program = question.program(target, question.cells.rivals[chosen])
        solution = (conic if program.L.shape[0] else highs).solve(program)
        assert solution.outcome is Outcome.SOLVED
        cost = program.cost(solution.delta)
        over = (cell.normals @ solution.delta - cell.leads) / lengths
        worst = int(over.argmax())
        if cost >= enough or over[worst] <= 1e-9 * np.linalg.norm(solution.delta):
            return cost
        assert worst not in chosen
        chosen.append(worst)


def check_exact(model: clvq.PrototypeModel, cost: str, x: np.ndarray, target: object) -> None:
    """No cell of the target is cheaper than the answer."""
    cf = clvq.Explainer(model, COSTS[cost]).explain(x, target=target)
    assert cf.status == "optimal"
    assert cf.reason == "compiled kernel"
    assert model.predict(cf.x[None, :])[0] == target
    assert cf.cost == pytest.approx(COSTS[cost].value(cf.x - x), rel=1e-12)
    template = ProgramTemplate.of(COSTS[cost].l1_weights(x.size), COSTS[cost].l2_factor(x.size), [])
    cells = SharedCells.of(model, model.labels == target, ties_count=False)
    question = Question(template, cells, x)
    assert cell_cost(question, cf.prototype) == pytest.approx(cf.cost, rel=RELATIVE)
    enough = cf.cost * (1 - RELATIVE)
    for prototype in cells.targets:
        assert cell_cost(question, int(prototype), enough) >= enough


# --- exact --------------------------------------------------------------------------------------


@cache
def digits() -> tuple[clvq.PrototypeModel, np.ndarray]:
    """The first 1,500 images as prototypes; the others as inputs."""
    images, labels = load_digits(return_X_y=True)
    return clvq.PrototypeModel(images[:1500], labels[:1500]), images[1500:]


@cache
def noise() -> tuple[clvq.PrototypeModel, np.ndarray]:
    """Points without any structure, ten classes, no two alike."""
    rng = np.random.default_rng(8)
    W, X = rng.normal(size=(1500, 64)), rng.normal(size=(20, 64))
    return clvq.PrototypeModel(W, np.arange(1500) % 10), X


@cache
def valley() -> tuple[clvq.PrototypeModel, np.ndarray]:
    """Points close to a space of six dimensions: dozens of rivals bound each cell."""
    rng = np.random.default_rng(10)
    ways = rng.normal(size=(6, 64))
    W, X = (rng.normal(size=(n, 6)) @ ways + 0.02 * rng.normal(size=(n, 64)) for n in (1500, 20))
    return clvq.PrototypeModel(W, np.arange(1500) % 10), X


def questions(
    model: clvq.PrototypeModel, X: np.ndarray, count: int
) -> Iterator[tuple[np.ndarray, int]]:
    for i in range(count):
        yield X[i], int((model.predict(X[i : i + 1])[0] + 3) % 10)


@each_cost
def test_answer_among_1500_images_is_exact(cost: str) -> None:
    model, X = digits()
    for x, target in questions(model, X, 1):
        check_exact(model, cost, x, target)


@pytest.mark.slow
@each_cost
@pytest.mark.parametrize("source", [digits, noise, valley])
def test_answers_among_1500_prototypes_are_exact(
    source: Callable[[], tuple[clvq.PrototypeModel, np.ndarray]], cost: str
) -> None:
    model, X = source()
    for x, target in questions(model, X, 3):
        check_exact(model, cost, x, target)


def test_nearest_neighbour_classifier_agrees() -> None:
    """The prototypes of a 1-NN classifier are its training set."""
    model, X = digits()
    neighbour = KNeighborsClassifier(n_neighbors=1).fit(model.prototypes, model.labels)
    batch = clvq.Explainer(model, clvq.Euclidean()).explain_batch(X[:40])
    assert (batch.status == "optimal").all()
    assert batch.fallbacks == 0
    assert np.array_equal(neighbour.predict(X[:40]), batch.original_prediction)
    # An answer lies next to the boundary: only its rounding is left to disagree about.
    changed = np.mean(neighbour.predict(batch.X) == batch.prediction)
    assert changed >= 0.9
    assert (batch.prediction != batch.original_prediction).all()


# --- with the row lengths at hand, and without --------------------------------------------------


@each_cost
def test_answers_do_not_depend_on_what_is_kept(cost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths of all rows are kept if they are few enough; without them the way is another."""
    model, X = noise()
    monkeypatch.setattr(kernel_data, "_MOST_SCALES", 1 << 22)
    with_lengths = clvq.Explainer(model, COSTS[cost]).explain_batch(X[:6], 3)
    monkeypatch.setattr(kernel_data, "_MOST_SCALES", 0)
    explainer = clvq.Explainer(model, COSTS[cost])
    without = explainer.explain_batch(X[:6], 3)
    assert without.fallbacks == with_lengths.fallbacks == 0
    assert without.cost == pytest.approx(with_lengths.cost, rel=1e-9)
    assert (without.status == "optimal").all()
    assert explainer.explain(X[0], 3).cost == without.cost[0]


# --- memory -------------------------------------------------------------------------------------

P, D = 5000, 100


def peak_of(cost: str, labels: np.ndarray, target: int) -> int:
    """Most bytes held at once while a model is prepared and three rows are answered."""
    rng = np.random.default_rng(9)
    W = rng.normal(size=(P, D))
    X = W[:3] + 0.1 * rng.normal(size=(3, D))
    tracemalloc.start()
    explainer = clvq.Explainer(clvq.PrototypeModel(W, labels), COSTS[cost])
    batch = explainer.explain_batch(X, target)
    single = explainer.explain(X[0], target)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (batch.status == "optimal").all()
    assert single.cost == batch.cost[0]
    assert batch.fallbacks == 0
    return peak


@pytest.mark.machine
@pytest.mark.covering
@each_cost
@pytest.mark.parametrize("most", [0, 1 << 22], ids=["without lengths", "with lengths"])
def test_memory_grows_with_the_prototypes_and_not_with_their_pairs(
    cost: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prototypes some fifteen times over (anchors, rows, prices and their like).

    The lengths of all pairs, and what it takes to invert them, come on top only where there are
    few enough to be kept.
    """
    small, _ = digits()
    clvq.Explainer(small, COSTS[cost]).explain(small.prototypes[0])  # compiled before we look
    assert kernel_data._MOST_SCALES <= 1 << 22
    monkeypatch.setattr(kernel_data, "_MOST_SCALES", most)
    peak = peak_of(cost, np.arange(P) % 5, target=1)
    pairs = (P // 5) * (P - P // 5)
    table = 8 * pairs if pairs <= most else 0
    assert table <= 8 * most
    assert peak < 15 * 8 * P * D + 3 * table
    assert peak < 0.8 * 8 * P * P


@each_cost
def test_what_other_rows_found_out_changes_no_answer(cost: str) -> None:
    """Gains of targets on rivals are kept from row to row; a row that finds them says the same."""
    X, y = load_digits(return_X_y=True)
    model = clvq.PrototypeModel(X[:300], y[:300])
    warm = clvq.Explainer(model, COSTS[cost])
    warm.explain_batch(X[300:330])
    for x in X[300:306]:
        first, later = clvq.Explainer(model, COSTS[cost]).explain(x), warm.explain(x)
        assert first.values.tobytes() == later.values.tobytes()
        assert (first.cost, first.lower_bound) == (later.cost, later.lower_bound)
        assert warm.verify(later) == later.lower_bound
