"""Boxes around answers of whole numbers and levels: corners in rational numbers, enumeration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq

Point = tuple[float, ...]
LOW, HIGH = -5, 6  # the range of every column


def exact(values: Sequence[float]) -> list[Fraction]:
    return [Fraction(float(value)) for value in values]


class Question:
    """A table of whole numbers and steps, written down once more in rational numbers.

    With a share of columns in which any number will do: their values are listed as none.
    """

    def __init__(self, seed: int, most: int = 3, *, real: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        self.d = int(rng.integers(1, most + 1))
        steps = np.where(rng.random(self.d) < real, 0, rng.choice([1, 1, 1, 2, 3], size=self.d))
        kinds = [{"kind": "whole", "step": step} if step else {} for step in steps.tolist()]
        self.features = clvq.Features(
            [clvq.Feature(f"c{j}", lower=LOW, upper=HIGH, **kind) for j, kind in enumerate(kinds)]
        )
        whole = range(LOW, HIGH + 1)
        self.values = [[v for v in whole if step and v % step == 0] for step in steps.tolist()]
        count = int(rng.integers(2, 5))
        points = rng.integers(LOW, HIGH + 1, size=(count, self.d)).astype(float)
        omega = None if seed % 2 else rng.integers(-2, 3, size=(self.d, self.d)) + 0.5
        self.model = clvq.PrototypeModel(points, ["a", "b", "a", "c"][:count], omega, list(
            self.features.names))  # fmt: skip
        self.weights = rng.choice([0.5, 1.0, 2.0], size=self.d)
        self.x = np.array(
            [rng.choice(values or [-2.25, 0.5, 3.0]) for values in self.values], dtype=float
        )
        row = rng.integers(-2, 3, size=self.d).astype(float)
        self.row = row, float(row @ self.x + rng.integers(-3, 6))
        rules = [clvq.Linear(dict(enumerate(row)), "<=", self.row[1])] if row.any() else []
        cost = clvq.Manhattan(self.weights) if seed % 3 else clvq.Chebyshev(self.weights)
        self.explainer = clvq.Explainer(self.model, cost, rules, features=self.features)

    def distance(self, k: int, point: Point) -> Fraction:
        away = [a - b for a, b in zip(exact(point), exact(self.model.prototypes[k]), strict=True)]
        if self.model.omegas is not None:
            rows = [exact(row) for row in np.asarray(self.model.omegas)]
            away = [sum(a * b for a, b in zip(row, away, strict=True)) for row in rows]
        return sum((a * a for a in away), Fraction(0))

    def label(self, point: Point) -> str:
        """Say what `predict` is defined to say: of equally near prototypes the first one wins."""
        each = [self.distance(k, point) for k in range(self.model.n_prototypes)]
        return str(self.model.labels[each.index(min(each))])

    def holds(self, point: Point) -> bool:
        row, limit = self.row
        left = sum(a * b for a, b in zip(exact(row), exact(point), strict=True))
        return not row.any() or left <= limit

    def in_cell(self, i: int, target: tuple[Any, ...], point: Point) -> bool:
        """Whether a prototype beats every rival, ties included, and the constraints hold."""
        own = self.distance(i, point)
        return self.holds(point) and all(
            own < other or (own == other and i < k)
            for k, label in enumerate(self.model.labels.tolist())
            if label not in target
            for other in [self.distance(k, point)]
        )


def sets_of(asked: Question, cf: clvq.Counterfactual, found: clvq.Ranges) -> list[list[float]]:
    return [
        sorted(found[name]) if name in found else [float(value)]
        for name, value in zip(cf.feature_names, cf.x, strict=True)
    ]


def larger_by_one(asked: Question, box: list[list[float]], moved: list[int]) -> Iterator[Any]:
    for j in (j for j in moved if asked.values[j]):
        for value in (box[j][0], box[j][-1]):
            at = asked.values[j].index(int(value))
            for near in {at - 1, at + 1} & set(range(len(asked.values[j]))):
                if asked.values[j][near] not in box[j]:
                    yield [*box[:j], [asked.values[j][near]], *box[j + 1 :]]


@pytest.mark.parametrize("real", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(30))
def test_whole_numbers_hold_the_answer_and_none_could_be_added(seed: int, real: float) -> None:
    """Answers of whole numbers win by an exact tie time and again."""
    asked = Question(seed, real=real)
    cf = asked.explainer.explain(asked.x)
    for side in ("both", "away") if cf.changes else ():
        found = asked.explainer.ranges(cf, side=side)
        box = sets_of(asked, cf, found)
        moved = [cf.feature_names.index(name) for name in found]
        assert {cf.feature_names[j] for j in moved} == {change.feature for change in cf.changes}
        for value, values, whole in zip(cf.x, box, asked.values, strict=True):
            assert value in values if whole else values[0] <= value <= values[-1]
        for point in product(*box):
            assert asked.label(point) in cf.target
            assert asked.holds(point)
        for more in larger_by_one(asked, box, moved):
            towards = any(
                (values[0] - cf.x[j]) * (cf.x[j] - asked.x[j]) < 0
                for j, values in enumerate(more)
                if len(values) == 1 and j in moved and values[0] not in box[j]
            )
            if side == "both" or not towards:
                kept = [asked.in_cell(cf.prototype, cf.target, point) for point in product(*more)]
                assert not all(kept), more
        assert set(found.to_dict()) == set(found)
        assert str(found).startswith("It stays")


@pytest.mark.parametrize("seed", range(40, 70))
def test_no_box_of_whole_numbers_is_wider(seed: int) -> None:
    """All boxes around an answer, tried one by one."""
    asked = Question(seed, 2)
    cf = asked.explainer.explain(asked.x)
    if not cf.changes:
        return
    units = dict(zip(cf.feature_names, 1.0 / asked.weights, strict=True))
    found = asked.explainer.ranges(cf, units=units)
    sides = []
    for name, value, values in zip(cf.feature_names, cf.x, asked.values, strict=True):
        at = values.index(int(value)) if name in found else 0
        ends = product(values[: at + 1], values[at:]) if name in found else [(value, value)]
        sides.append([*ends])

    def width(box: Sequence[Sequence[float]]) -> float:
        return float(sum(w * (v[-1] - v[0]) for w, v in zip(asked.weights, box, strict=True)))

    good = {
        point
        for point in product(*({end for pair in pairs for end in pair} for pairs in sides))
        if asked.in_cell(cf.prototype, cf.target, point)
    }
    widest = max(width(box) for box in product(*sides) if good.issuperset(product(*box)))
    assert width(sets_of(asked, cf, found)) == pytest.approx(widest, abs=1e-9)


@pytest.mark.parametrize("side", ["both", "away"])
@pytest.mark.parametrize(("points", "margin", "good"), [
    ([[4], [0]], None, [2, 3, 4, 5, 6]),
    ([[4], [0], [8]], None, [2, 3, 4, 5, 6]),
    ([[4], [0], [8]], 8.0, [3, 4, 5]),
    ([[4], [0], [8]], 16.0, [4]),
])  # fmt: skip
def test_a_tie_that_the_answer_wins_is_in_its_range(
    points: list[list[int]], margin: float | None, good: list[int], side: str
) -> None:
    features = clvq.Features([clvq.Feature("cards", "whole", lower=LOW, upper=HIGH)])
    labels = ["yes", "no", "no"][: len(points)]
    model = clvq.PrototypeModel(points, labels, None, ["cards"])
    explainer = clvq.Explainer(model, margin=margin, features=features)
    found = explainer.ranges(explainer.explain([0], target="yes"), side=side)
    assert found["cards"] == set(good)
    assert found.to_dict() == {"cards": {"lower": good[0], "upper": good[-1]}}


def table(seed: int) -> tuple[Any, pd.DataFrame, clvq.Features]:
    """Return a pipeline over numbers and levels, whose own predict decides."""
    rng, n = np.random.default_rng(seed), 120
    X = pd.DataFrame({"a": rng.integers(0, 30, n), "b": rng.normal(size=n) * 10.0 ** (seed % 5)})
    X["job"] = rng.choice(["u", "v", "w", "z"], n)
    good = X["a"] + 10.0 * X["b"] / X["b"].std() + 9.0 * (X["job"] == "u") > 16
    encoder = make_column_transformer((StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["job"]))
    last = LogisticRegression(max_iter=5000) if seed % 2 else NearestCentroid()
    model = make_pipeline(encoder, last).fit(X, np.where(good, "yes", "no"))
    kinds = ["real", "whole"][seed % 2], "real"
    numbers = [clvq.Feature(name, kind) for name, kind in zip("ab", kinds, strict=True)]
    job = clvq.Feature("job", levels=["u", "v", "w", "z"])
    return model, X, clvq.Features([*numbers, job])


@pytest.mark.parametrize("seed", range(6))
def test_ranges_hold_the_answer_where_a_foreign_predict_decides(seed: int) -> None:
    """Next to a boundary rounding decides, and an answer has little more of a lead than it."""
    model, X, features = table(seed)
    prices = clvq.Manhattan({"b": 1.0 / X["b"].std()}, switches={"job": 2.0})
    explainer = clvq.Explainer(model, prices, features=features)
    for i in range(6):
        cf = explainer.explain(X.iloc[[i]])
        found = explainer.ranges(cf, side=["both", "away"][i % 2])
        values = []
        for name, value in zip(cf.feature_names, cf.x, strict=True):
            each = found.get(name, {value})
            if isinstance(each, tuple):
                assert each[0] <= value <= each[1]
            else:
                assert value in each
            values.append(sorted({*each, value}) if features[name].is_number else sorted(each))
        points = pd.DataFrame(list(product(*values)), columns=X.columns)
        points = points.astype({"a": float, "b": float})
        assert (model.predict(points) == cf.prediction).all()


def test_levels_that_a_list_allows_are_in_the_range() -> None:
    """The input has none of the listed levels, so that an answer has to take up one of them."""
    model, X, features = table(1)
    rules = [clvq.OneOf("job", ["u", "w", "z"]), clvq.Freeze("a", "b")]
    explainer = clvq.Explainer(
        model, clvq.Manhattan(switches={"job": 2.0}), rules, features=features
    )
    seen = set()
    for i in np.flatnonzero(X["job"] == "v")[:12]:
        row = X.iloc[[i]]
        cf = explainer.explain(row, target="yes")
        if cf.status.has_answer:
            found = explainer.ranges(cf)
            others = [row.assign(job=level) for level in ("u", "w", "z")]
            good = {str(r["job"].iloc[0]) for r in others if model.predict(r)[0] == "yes"}
            assert found["job"] == good
            assert found.held == ()
            seen.add(len(good))
    assert max(seen) > 1


def test_listed_values_lie_on_the_steps_of_their_feature() -> None:
    features = clvq.Features([clvq.Feature("a", decimals=0)])
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], None, ["a"])
    rules = [clvq.OneOf("a", [0, 2.5, 3, 3.5, 5])]
    explainer = clvq.Explainer(model, constraints=rules, features=features)
    assert explainer.ranges(explainer.explain([0], target="yes"))["a"] == {3.0, 5.0}


def test_answers_of_other_explainers_are_refused_in_words() -> None:
    names = ["a", "b"]
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"], None, names)
    cf = clvq.Explainer(model).explain([0.0, 0.0], target="yes")
    far = clvq.PrototypeModel([[0.0, 0.0], [40.0, 0.0]], ["no", "yes"], None, names)
    other = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], None, ["a"])
    for explainer, words in (
        (clvq.Explainer(far), "the model of this explainer says 'no' of the answer; expected one"),
        (clvq.Explainer(model, margin=3.0), "does not keep the margin of 3 of this explainer"),
        (clvq.Explainer(other), r"is about other columns \(a and b\); expected one of this"),
    ):
        with pytest.raises(clvq.InvalidInputError, match=words):
            explainer.ranges(cf)
    assert clvq.Explainer(model, constraints=["b <= 9"]).ranges(cf)["a"][0] == pytest.approx(2.0)


def test_listed_values_are_said_as_the_answer_is() -> None:
    """Next to a listed value counts as it, so that what is shown may be shorter."""
    model = clvq.PrototypeModel([[-4e-5], [-7e-5]], ["no", "yes"], None, ["a"])
    listed = [-5.9999999999999995e-5, -8e-5, 2e-5]
    explainer = clvq.Explainer(model, constraints=[clvq.OneOf("a", listed)])
    cf = explainer.explain([-4e-5], target="yes")
    found = explainer.ranges(cf)
    assert found["a"] == set(listed[:2])
    shown = cf.shown.changes[0].after
    assert found.text() == f"It stays yes with a -8e-5 or {shown}."


@pytest.mark.parametrize("offset", [0.0, 1.0, 7.0])
def test_a_tie_that_a_foreign_predict_decides_is_a_range_of_its_own(offset: float) -> None:
    """Nothing proves how it decides elsewhere, so that the answer stands alone."""
    X = np.array([[-1.0], [1.0], [3.0], [5.0]]) + offset
    model = NearestCentroid().fit(X, ["no", "no", "yes", "yes"])
    features = clvq.Features([clvq.Feature("x0", "whole", lower=-9, upper=20)])
    explainer = clvq.Explainer(model, features=features)
    seen = []
    for start, target in ((0.0, "yes"), (4.0, "no")):
        cf = explainer.explain([start + offset], target=target)
        found = explainer.ranges(cf)
        assert cf.x[0] in found["x0"]
        points = np.array(sorted(found["x0"]), dtype=float)[:, None]
        assert (model.predict(points) == target).all()
        assert set(found.to_dict()["x0"]) == {"lower", "upper"}
        seen.append((cf.x[0] == 2.0 + offset, len(found["x0"]) == 1))
    assert seen[0] == (seen[0][0],) * 2
    assert seen[1] == (seen[1][0],) * 2


def missed(weights: Sequence[float], point: Point, limit: float) -> tuple[Fraction, Fraction]:
    """By how much a point misses a row, and the numbers that meet in it."""
    terms = [a * b for a, b in zip(exact(weights), exact(point), strict=True)]
    given = Fraction(float(limit))
    return sum(terms, -given), sum(map(abs, terms), abs(given))


@pytest.mark.parametrize("b_is_real", [False, True])
def test_decimals_that_meet_a_limit_but_for_rounding_are_in_the_range(b_is_real: bool) -> None:
    """0.1 + 0.2 keeps a limit of 0.3, as a corner of a box too, wherever the answer lies."""
    b = clvq.Feature("b") if b_is_real else clvq.Feature("b", decimals=1)
    features = clvq.Features([clvq.Feature("a", decimals=1), b])
    model = clvq.PrototypeModel([[0.0, 0.0], [0.29, 0.3]], ["no", "yes"], None, ["a", "b"])
    by_rounding = 0
    for weights, tenths in product([(1, 1), (3, 1), (1, 7), (0.7, 0.1)], range(3, 12)):
        limit = tenths / 10 * sum(weights) / 2
        row = clvq.Linear({"a": weights[0], "b": weights[1]}, "<=", limit)
        rules = [row, clvq.Bounds("a", 0.1, 1.0), clvq.Bounds("b", 0.1, 1.0)]
        explainer = clvq.Explainer(model, clvq.Manhattan([1, 3]), rules, features=features)
        cf = explainer.explain([0.0, 0.0], target="yes")
        if not cf.status.has_answer:
            continue
        (low, high), (bottom, top) = explainer.ranges(cf, units={"a": 0.01, "b": 1}).values()
        for point in product((low, high), (bottom, top)):
            over, size = missed(weights, point, limit)
            assert over <= size * Fraction(2) ** -50
            assert model.predict([point])[0] == "yes"
            assert min(point) >= 0.1 - 2.0**-53
            assert max(point) <= 1.0
            by_rounding += over > 0
        ends = [(round(high * 10 + 1) / 10, top)]
        if not b_is_real:
            ends.append((high, round(top * 10 + 1) / 10))
        for point in ends:
            over, size = missed(weights, point, limit)
            assert max(point) > 1.0 or over > size * Fraction(2) ** -50, (weights, limit)
    assert by_rounding


def test_what_meets_in_a_row_is_taken_where_a_range_ends() -> None:
    """The answer has a value of 0 where the range ends at 0.2, which misses the limit by more."""
    model = clvq.PrototypeModel(
        [[0, 0, 0.4], [0.25, 0.5, 0.45], [0.625, 4, 0.2], [-0.125, 4, 0.35]],
        ["0", "2", "0", "1"],
        np.diag([4.0, 1.0, 10.0]),
        ["a", "b", "c"],
    )
    features = clvq.Features(
        [
            clvq.Feature("a", step=0.25, lower=-0.5, upper=0.5),
            clvq.Feature("b", "whole", lower=0, upper=4),
            clvq.Feature("c", decimals=1, lower=0, upper=0.5),
        ]
    )
    rules = ["c >= 0.1", "10*c + 4*a <= 2"]
    explainer = clvq.Explainer(model, clvq.Manhattan([12, 1, 40]), rules, features=features)
    cf = explainer.explain([0.5, 1, 0])
    ends = {"a": (-0.5, 0.0), "b": {2, 3, 4}, "c": (0.1, 0.2)}
    assert cf.x.tolist() == [0.0, 2.0, 0.1]
    assert dict(explainer.ranges(cf)) == ends
    for a, b, c in product(*ends.values()):  # all of them keep the rules of the same explainer
        assert not explainer.explain([a, b, c]).broken
    # A value that is a step further breaks them.
    assert explainer.explain([0.0, 2, 0.3]).broken
