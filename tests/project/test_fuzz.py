"""The judges of the fuzzer: they must be right themselves, and able to fail."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, islice

import numpy as np
import pytest
from scipy.optimize import linprog

from fuzz import rays, truth
from fuzz.__main__ import FILES, TARGETS, main
from fuzz.answers import Answer
from fuzz.cases import Case
from fuzz.enumeration import grid_of
from fuzz.files import Readers
from fuzz.fitted import scores_of
from fuzz.judging import Court
from fuzz.outcomes import Outcome
from fuzz.plain import Column, Plain, Price, Row, Scores, form
from fuzz.rational import (
    ONE,
    cheapest_shift,
    dot,
    exact,
    exact_matrix,
    independent,
    solve,
    widest_slack,
)
from fuzz.regions import Cell, cheapest_square
from fuzz.running import run
from fuzz.sandbox import read_apart
from tests.support.quick import some

# --- rational arithmetic --------------------------------------------------------------------------


def drawn_program(seed):
    """A few rows in a few unknowns, of small integers or of doubles on unequal scales."""
    rng = np.random.default_rng(seed)
    d, m, q = (int(rng.integers(low, high)) for low, high in ((1, 6), (1, 10), (0, 2)))
    A = rng.integers(-3, 4, size=(m, d)).astype(float)
    b = rng.integers(-3, 4, size=m).astype(float)
    if seed % 2:
        A, b = rng.normal(size=(m, d)) * 10.0 ** rng.integers(-2, 3, size=d), rng.normal(size=m)
    E, e = rng.integers(-2, 3, size=(q, d)).astype(float), rng.integers(-2, 3, size=q).astype(float)
    return rng, A, b, E, e


@pytest.mark.parametrize("seed", range(60))
def test_rational_programs_agree_with_highs(seed):
    rng, A, b, E, e = drawn_program(seed)
    w = rng.uniform(0.5, 2.0, size=A.shape[1])
    found = cheapest_shift(exact(w), exact_matrix(A), exact(b), exact_matrix(E), exact(e))
    equal = {"A_eq": np.hstack([E, -E]), "b_eq": e} if len(e) else {}
    reference = linprog(np.r_[w, w], A_ub=np.hstack([A, -A]), b_ub=b, **equal, bounds=(0, None))
    assert (found is None) == (reference.status == 2)
    if found is not None:
        assert float(found.value) == pytest.approx(reference.fun, rel=1e-6, abs=1e-8)
        assert all(dot(a, found.point) <= c for a, c in zip(exact_matrix(A), exact(b), strict=True))
        assert all(dot(a, found.point) == c for a, c in zip(exact_matrix(E), exact(e), strict=True))
        assert sum(p * abs(u) for p, u in zip(exact(w), found.point, strict=True)) == found.value


@pytest.mark.parametrize("seed", range(60))
def test_widest_slack_agrees_with_highs(seed):
    rng, A, b, E, e = drawn_program(seed)
    strict = rng.random(len(b)) < 0.6
    rows = exact_matrix(A), exact(b)
    found = widest_slack(*rows, strict.tolist(), exact_matrix(E), exact(e))
    d = A.shape[1]
    equal = {"A_eq": np.hstack([E, np.zeros((len(e), 1))]), "b_eq": e} if len(e) else {}
    reference = linprog(
        np.append(np.zeros(d), -1.0), A_ub=np.column_stack([A, strict.astype(float)]), b_ub=b,
        **equal, bounds=[(None, None)] * d + [(None, 1)],
    )  # fmt: skip
    assert (found is None) == (reference.status == 2)
    if found is not None:
        assert float(found.value) == pytest.approx(-reference.fun, rel=1e-6, abs=1e-7)
        for a, c, tight in zip(*rows, strict.tolist(), strict=True):
            assert dot(a, found.point) + (found.value if tight else 0) <= c


def test_rational_programs_of_one_unknown():
    third = Fraction(1, 3)
    assert cheapest_shift([ONE], [[Fraction(-3)]], [Fraction(-1)]).value == third
    assert cheapest_shift([ONE], [[-ONE], [ONE]], [-ONE, Fraction(99, 100)]) is None
    # No room but for one point: u <= 1/3 and u >= 1/3.
    tight = [[Fraction(3)], [Fraction(-3)]], [ONE, -ONE]
    assert cheapest_shift([ONE], *tight).point == [third]
    assert widest_slack(*tight, [True, True]).value == 0
    assert widest_slack([[-ONE], [ONE]], [-ONE, Fraction(99, 100)], [False, False]) is None


def test_systems_are_solved_or_refused():
    assert solve([[Fraction(2), ONE], [ONE, ONE]], [Fraction(3), Fraction(2)]) == [1, 1]
    assert solve([[ONE, ONE], [Fraction(2), Fraction(2)]], [ONE, Fraction(2)]) is None
    assert solve([[ONE], [ONE]], [ONE, Fraction(2)]) is None
    rows = exact_matrix([[1, 2, 0], [2, 4, 0], [0, 0, 1], [1, 2, 1]])
    assert independent(rows, 3) == [0, 2]


def least_square_by_faces(M, A, b):
    """The least u'M u over A u <= b, every set of active rows tried in rational numbers."""
    best, d = None, len(M)
    for size in range(d + 1):
        for chosen in combinations(range(len(A)), size):
            system = [[*(2 * v for v in M[j]), *(A[k][j] for k in chosen)] for j in range(d)] + [
                [*A[k], *([Fraction(0)] * size)] for k in chosen
            ]
            found = solve(system, [Fraction(0)] * d + [b[k] for k in chosen])
            if found is None:
                continue
            u = found[:d]
            if all(dot(a, u) <= c for a, c in zip(A, b, strict=True)):
                value = form(M, u)
                best = value if best is None or value < best else best
    return best


@pytest.mark.parametrize("seed", range(40))
def test_least_squares_are_those_of_all_faces(seed):
    rng = np.random.default_rng(seed)
    d, m = int(rng.integers(1, 4)), int(rng.integers(1, 6))
    root = np.tril(rng.integers(-1, 2, size=(d, d))) + 2.0 * np.eye(d)
    M = exact_matrix(root @ root.T)
    A, b = exact_matrix(rng.integers(-3, 4, size=(m, d))), exact(rng.integers(-4, 3, size=m))
    found = cheapest_square(M, Cell(A, b, [False] * m, [], []))
    reference = least_square_by_faces(M, A, b)
    assert (None if found is None else found.value) == reference


def test_least_squares_between_nearly_parallel_rows():
    """Rows that doubles cannot tell from parallel: the optimum is still found, and is near."""
    A = exact_matrix([[-10.000000000001666, -3.999999999998485], [10.0, 4.0]])
    found = cheapest_square(
        exact_matrix(np.eye(2)), Cell(A, exact([1.0, -1.0]), [False] * 2, [], [])
    )
    assert found is not None
    assert float(found.value) < 0.02


# --- rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("local", [False, True])
def test_scores_are_distances(local):
    rng = np.random.default_rng(0)
    W, omegas = rng.normal(size=(4, 3)), [rng.normal(size=(2, 3)) for _ in range(4)]
    scores = Scores.of_prototypes(W, [0, 1, 0, 1], omegas if local else omegas[0], [0, 1, 2, 3])
    y = rng.normal(size=3)
    for k, score in enumerate(scores.at(exact(y))):
        away = (omegas[k] if local else omegas[0]) @ (y - W[k])
        assert float(score) == pytest.approx(away @ away + k)


@pytest.mark.parametrize("priors", ["uniform", "empirical"])
def test_scores_of_pipelines_are_those_of_their_predict(priors):
    from sklearn.decomposition import PCA
    from sklearn.feature_selection import VarianceThreshold
    from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(40, 3)), np.full(40, 5.0)])
    y = np.where(X[:, 0] > 0.4, "a", "b")
    for steps in (
        (StandardScaler(), PCA(2), NearestCentroid(priors=priors)),
        (VarianceThreshold(), MinMaxScaler(), NearestCentroid(priors=priors)),
        (MinMaxScaler(), KNeighborsClassifier(1)),
    ):
        pipeline = make_pipeline(*steps).fit(X, y)
        scores = scores_of(pipeline)
        rows = rng.normal(size=(50, 4))
        said = [
            scores.labels[int(np.argmin([float(s) for s in scores.at(exact(row))]))] for row in rows
        ]
        assert said == pipeline.predict(rows).tolist()


def test_rays_find_the_boundary_of_a_parabola():
    """|y - 0|^2 against |2 (y - 3)|^2: the boundary nearest to 0 is at 2."""
    scores = Scores.of_prototypes([[0.0], [3.0]], ["no", "yes"], [np.eye(1), 2 * np.eye(1)])
    plain = Plain(scores, Price(weights=exact([1.0]), at=(0,)), (), (), (Column(),), None, 1e-4)
    found = [float(y[0]) for y in rays.cheapest(plain, np.zeros(1), np.array([False, True]))]
    assert min(found) == pytest.approx(2.0, rel=1e-8)


def test_grids_are_listed_between_their_bounds():
    rows = (Row.of([1, 0], [0, 0], 0.3), Row.of([-1, 0], [0, 0], 0.0))
    columns = (Column(decimals=1), Column(levels=("a", "b")))
    plain = Plain(
        _line().scores, Price(weights=exact([1, 1]), at=(0,)), rows, (), columns, None, 1e-6
    )
    case = Case("grid", "", np.zeros((1, 2)), [None], lambda _: plain)
    grid = grid_of(case, plain, lambda Y: [0] * len(Y))
    assert grid.points.tolist() == [[k / 10, level] for k in range(4) for level in (0, 1)]


# --- verdicts -------------------------------------------------------------------------------------


def _line(margin=None, rows=()):
    """Prototypes at 0, 4 and 12 on a line: the middle one is "yes", between 2 and 8."""
    scores = Scores.of_prototypes([[0.0], [4.0], [12.0]], ["no", "yes", "no"])
    return Plain(
        scores, Price(weights=exact([1.0]), at=(0,)), tuple(rows), (), (Column(),), margin, 1e-6
    )


class Line:
    """The same rule, as a model with a `predict`."""

    def predict(self, X):
        return np.where((np.asarray(X)[:, 0] > 2) & (np.asarray(X)[:, 0] <= 8), "yes", "no")


def judged(answer, plain=None, label="yes"):
    plain = plain or _line()
    case = Case("line", "", np.array([[0.0]]), ["yes"], lambda _: plain)
    verdict = Court(case, {"model": Line()}, plain).judge(0, answer, label)
    return [fault for (fault, _), _ in verdict.faults], verdict


def said(x=2.0000000001, status="optimal", cost=None, bound=2.0, gap=None, resolution=0.0, text=""):
    cost = float(abs(Fraction(x))) if cost is None else cost
    gap = (cost - bound) / cost if gap is None else gap
    values = np.array([x if status in ("optimal", "feasible") else np.nan])
    return Answer(values, status, cost, bound, gap, resolution, "yes", 1, text)


def test_a_true_answer_has_no_fault():
    assert judged(said())[0] == []
    assert judged(said(x=5.0, status="feasible", bound=1.0))[0] == []


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (said(bound=2.0 * (1 + 1e-10), x=2.1, status="feasible"), "bound above a point"),
        (said(x=5.0, bound=5.0 * (1 - 1e-8)), "false optimal"),
        (said(bound=np.inf), "bound above the answer"),
        (said(x=2.1), "open gap called optimal"),
        (said(gap=0.0, x=2.1, status="feasible"), "gap"),
        (said(cost=2.1), "cost"),
        (said(x=1.9, bound=1.9), "rejected alone"),
        (said(x=9.0, bound=2.0, status="feasible"), "rejected alone"),
        (said(x=9.0, bound=2.0, status="feasible"), "predict is wrong"),
        (said(status="infeasible", cost=np.inf, bound=np.inf, gap=0.0), "false infeasible"),
        (said(status="unknown", cost=np.inf, bound=3.0, gap=np.inf), "bound above a point"),
        (said(bound=np.nan), "bound"),
        (said(x=np.nan, cost=2.0), "point"),
        (said(status="maybe"), "status"),
    ],
)
def test_each_false_claim_is_found(answer, fault):
    assert fault in judged(answer)[0]


def test_a_batch_that_says_otherwise_is_found():
    assert "rejected in a batch" in judged(said(), label="no")[0]
    assert said().differences(said()) == []
    assert said().differences(said(bound=1.9999999999999998, gap=said().gap)) != []


def test_resolution_excuses_an_open_gap_and_no_false_bound():
    assert judged(said(x=2.1, resolution=0.2))[0] == []
    assert "bound above a point" in judged(said(x=2.1, bound=2.05, resolution=0.2))[0]


def test_constraints_are_judged_in_rational_numbers():
    most = Row.of([1.0], [0.0], 2.5)
    assert judged(said(), _line(rows=[most]))[0] == []
    assert "inequality broken" in judged(said(x=3.0, status="feasible"), _line(rows=[most]))[0]
    nearly = said(x=2.5 * (1 + 2.0**-42), status="feasible")
    assert "inequality broken by rounding" in judged(nearly, _line(rows=[most]))[0]
    touching = said(x=float(np.nextafter(2.5, 3)), status="feasible")
    assert judged(touching, _line(rows=[most]))[0] == []
    fixed = Row.of([1.0], [0.0], 2.5, equality=True)
    assert "equality broken" in judged(said(x=2.6, status="feasible"), _line(rows=[fixed]))[0]


def test_a_proof_of_infeasibility_is_confirmed():
    nothing = said(status="infeasible", cost=np.inf, bound=np.inf, gap=0.0)
    faults, verdict = judged(nothing, _line(rows=[Row.of([1.0], [0.0], 1.0)]))
    assert (faults, verdict.truth) == ([], "infeasible")
    # At 2 there is a tie, which the prototype that stands first wins.
    faults, verdict = judged(nothing, _line(rows=[Row.of([1.0], [0.0], 2.0)]))
    assert (faults, verdict.truth) == ([], "infeasible")
    faults, _ = judged(nothing, _line(rows=[Row.of([1.0], [0.0], 2.0000000000000004)]))
    assert [fault.startswith("false infeasible") for fault in faults] == [True]


def test_margins_count():
    """With a margin of 8 the answer is at 3: score 9 against 1."""
    assert judged(said(x=3.0000000001, bound=3.0), _line(margin=8.0))[0] == []
    assert "margin" in judged(said(x=2.5, bound=2.0, status="feasible"), _line(margin=8.0))[0]
    words = "the model never says so"
    nothing = said(status="infeasible", cost=np.inf, bound=np.inf, gap=0.0, text=words)
    assert "margin called impossible class" in judged(nothing, _line(margin=100.0))[0]


# --- runs -----------------------------------------------------------------------------------------


def test_cases_are_the_same_again():
    for number in range(20):
        one, two = truth.draw(3, number), truth.draw(3, number)
        assert (one.kind, one.code, one.targets) == (two.kind, two.code, two.targets)
        assert one.X.tobytes() == two.X.tobytes()


@pytest.mark.filterwarnings("ignore::UserWarning")  # constant columns, of scikit-learn
def test_scripts_stand_alone(capsys):
    for number in range(4):
        exec(truth.draw(5, number).script(0, None), {})
        assert "cost" in capsys.readouterr().out


@pytest.mark.parametrize("numbers", some([range(1), range(1, 6)], quick=1), ids=str)
@pytest.mark.parametrize("kind", sorted(truth.KINDS))
def test_a_short_run_finds_nothing_false(kind, numbers):
    outcome = run(TARGETS["truth"], numbers, seed=11, jobs=1, kind=kind, say=False)
    assert outcome.counts["questions"] > 0
    assert [failure.text("truth", 11) for failure in outcome.failures] == []


@pytest.fixture(scope="module")
def read_together() -> dict[str, Outcome]:
    """A few files of each kind, read by one process: it takes seconds to start."""
    numbers = range(6)
    readers = {name: Readers(draw) for name, (_, draw) in FILES.items()}
    files = {name: reader.drawn(12, numbers) for name, reader in readers.items()}
    told = iter(read_apart([file for drawn in files.values() for file in drawn]))
    return {
        name: reader.judged(numbers, files[name], list(islice(told, len(numbers))))
        for name, reader in readers.items()
    }


@pytest.mark.parametrize("target", sorted(FILES))
def test_a_short_run_finds_no_file_that_does_harm(target, read_together):
    assert read_together[target].counts["cases"] == 6
    assert [failure.text(target, 12) for failure in read_together[target].failures] == []


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(FILES))
def test_a_longer_run_finds_no_file_that_does_harm(target):
    outcome = run(TARGETS[target], range(6, 40), seed=12, jobs=1, kind=None, say=False)
    assert outcome.counts["cases"] == 34
    assert [failure.text(target, 12) for failure in outcome.failures] == []


def test_the_command_counts(capsys):
    main(["truth", "--cases", "1", "--kind", "shared", "--shown", "0"])
    shown = capsys.readouterr().out
    assert "questions" in shown
    assert "with five features or more" in shown
