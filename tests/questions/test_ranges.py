"""Ranges around answers: Monte Carlo with corners, a program from the definition, enumeration."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from tests.support.shell import called

SCALES = np.array([1e-6, 1.0, 1e5])
NAMES = ["a", "b", "c"]


def drawn(seed: int, *, full: bool = True) -> tuple[clvq.PrototypeModel, np.ndarray]:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(6, 3)) * SCALES
    omegas = rng.normal(size=(3, 3)) / SCALES if full else 1 / SCALES
    labels = ["red", "green", "blue", "blue", "red", "green"]
    return clvq.PrototypeModel(points, labels, omegas, NAMES), rng.normal(size=(4, 3)) * SCALES


def inside(ranges: clvq.Ranges, cf: clvq.Counterfactual, count: int = 400) -> np.ndarray:
    """Rows in the ranges, at their corners too; open sides are followed a long way."""
    rng = np.random.default_rng(3)
    rows = np.tile(cf.x.astype(float), (count, 1))
    for name, found in ranges.items():
        j = cf.feature_names.index(name)
        low, high = found if isinstance(found, tuple) else (min(found), max(found))
        far = 1e6 * max(abs(cf.x[j]), abs(cf.original[j]), 1e-9)
        low, high = max(low, -far), min(high, far)
        values = rng.uniform(low, high, count)
        rows[:, j] = np.where(rng.random(count) < 0.6, rng.choice([low, high], count), values)
    return rows


@pytest.mark.covering
@pytest.mark.parametrize("cost", [clvq.Manhattan(1 / SCALES), clvq.Euclidean()])
@pytest.mark.parametrize("margin", [None, 0.2])
@pytest.mark.parametrize("seed", range(4))
def test_every_combination_is_an_answer(seed: int, margin: float | None, cost: clvq.Cost) -> None:
    model, rows = drawn(seed, full=seed % 2 == 0)
    explainer = clvq.Explainer(model, cost, ["b <= 3", "a / 1e-6 + c / 1e5 <= 40"], margin)
    for row, target in product(rows, ["red", "green", "blue"]):
        cf = explainer.explain(row, target=target)
        if not cf.status.has_answer or not cf.changes:
            continue
        for side in ("both", "away"):
            ranges = explainer.ranges(cf, side=side)
            assert set(ranges) == {change.feature for change in cf.changes}
            points = inside(ranges, cf)
            assert (model.predict(points) == target).all()
            assert (points[:, 1] <= 3).all()
            assert (points[:, 0] / 1e-6 + points[:, 2] / 1e5 <= 40 + 1e-9).all()
            if margin:
                scores = model.distances(points)
                own = scores[:, model.labels == target].min(1)
                lead = scores[:, model.labels != target].min(1) - own
                assert (lead >= margin * (1 - 1e-9) - 1e-12 * scores.max(1)).all()
            for change in cf.changes:
                low, high = ranges[change.feature]
                room = 1e-6 * max(abs(change.after), abs(change.before))
                assert low - room <= change.after <= high + room
                if side == "away":
                    end = low if change.after > change.before else high
                    assert end == pytest.approx(change.after, abs=room)


@pytest.mark.parametrize("seed", range(6))
def test_box_is_the_widest_of_its_cell(seed: int) -> None:
    model, rows = drawn(20 + seed)
    weights = 1 / SCALES
    explainer = clvq.Explainer(model, clvq.Manhattan(weights), margin=0.5)
    cf = explainer.explain(rows[0])
    moved = np.flatnonzero(cf.delta)
    ranges = explainer.ranges(cf)
    F, i = model.omegas, cf.prototype
    rivals = np.flatnonzero(~np.isin(model.labels, cf.target))
    Z = model.prototypes @ F.T
    A = 2 * (Z[rivals] - Z[i]) @ F / weights
    room = (Z[rivals] ** 2).sum(1) - (Z[i] ** 2).sum() - A @ (cf.x * weights) - 0.5
    A, room = A[:, moved], np.maximum(room, 0.0)
    best = linprog(-np.ones(2 * moved.size), np.c_[np.maximum(A, 0), np.maximum(-A, 0)], room)
    ends = [ranges[NAMES[j]] for j in moved]
    is_open = [not np.isfinite(end) for pair in ends for end in pair]
    assert (best.status == 3) == any(is_open)
    if not any(is_open):
        widths = sum((high - low) * weights[j] for (low, high), j in zip(ends, moved, strict=True))
        assert widths == pytest.approx(-best.fun, abs=1e-5)


def test_printed_numbers_are_inside() -> None:
    model, rows = drawn(4)
    explainer = clvq.Explainer(model, clvq.Manhattan(1 / SCALES), margin=0.3)
    cf = explainer.explain(rows[1])
    ranges = explainer.ranges(cf)
    told = str(ranges)
    assert told.startswith(f"It stays {cf.prediction} with ")
    for name, (low, high) in ranges.items():
        words = told.partition(f"{name} ")[2].partition(" and")[0].rstrip(".")
        numbers = [float(w.replace(",", "")) for w in words.split() if w[-1].isdigit()]
        assert numbers
        assert all(low <= number <= high for number in numbers)
    assert cf.text(ranges=ranges) == f"{cf.text()} {told}"
    assert "income" not in cf.text()


def ends_in(told: str, name: str) -> tuple[float, float]:
    """Read the ends of a range off the sentence; infinite where a side is open."""
    words = re.split(r"(?:,| and) [abc] ", told.partition(f" {name} ")[2])[0].rstrip(".")
    numbers = [float(word.replace(",", "")) for word in words.split() if word[-1].isdigit()]
    if "anywhere" in words:
        return -np.inf, np.inf
    if "of at least" in words:
        return numbers[0], np.inf
    return (-np.inf, numbers[0]) if "up to" in words else (numbers[0], numbers[-1])


@pytest.mark.parametrize("side", ["both", "away"])
@pytest.mark.parametrize("kinds", [{}, {"a": "whole", "b": "whole"}, {"b": "whole"}])
def test_what_is_said_holds_the_row_that_is_shown(kinds: dict[str, str], side: str) -> None:
    """Wide ranges at a boundary, where few digits would pass the answer by."""
    rng = np.random.default_rng(5)
    names = ["a", "b", "c"]
    model = clvq.PrototypeModel(
        rng.uniform(0, 30_000, (4, 3)), ["no", "no", "yes", "yes"], None, names
    )
    features = clvq.Features(names).refined(kinds=kinds)
    limits = [clvq.Bounds(name, -5000, 40_000) for name in names]
    explainer = clvq.Explainer(model, constraints=limits, features=features)
    told_of = 0
    for row in rng.uniform(0, 30_000, (12, 3)).round():
        cf = explainer.explain(row)
        told = str(explainer.ranges(cf, side=side))
        corners = []
        for j, name in enumerate(names):
            shown = cf.shown.values[j]
            low = high = shown
            if cf.values[j] != cf.original_values[j]:
                low, high = ends_in(told, name)
                told_of += 1
            assert low <= shown <= high, (told, cf.text())
            corners.append((max(low, -5000.0), min(high, 40_000.0)))
        assert (model.predict(np.array([*product(*corners)])) == cf.prediction).all(), told
    assert told_of > 12


def test_whole_numbers_and_levels_by_enumeration() -> None:
    features = clvq.Features(
        [
            clvq.Feature("cards", "whole", lower=0, upper=9),
            clvq.Feature("job", levels=["none", "clerk", "smith", "nurse"]),
            clvq.Feature("home", "boolean"),
        ]
    )
    table = pd.DataFrame(
        [[c, j, h] for c in range(10) for j in features["job"].levels for h in (False, True)],
        columns=["cards", "job", "home"],
    )
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    good = (table["cards"] < 5) & (table["job"] != "none") | table["home"] & (table["cards"] < 7)
    encoder = make_column_transformer((OneHotEncoder(), ["job", "home"]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression()).fit(table, np.where(good, "yes", "no"))
    explainer = clvq.Explainer(model, features=features)
    seen = 0
    for i in range(0, len(table), 7):
        row = table.iloc[[i]]
        cf = explainer.explain(row, target="yes")
        if not cf.status.has_answer or not cf.changes:
            continue
        ranges, seen = explainer.ranges(cf), seen + 1
        answer = dict(zip(table.columns, cf.x, strict=True))
        choices = [sorted(ranges.get(n, {answer[n]}), key=str) for n in table.columns]
        points = pd.DataFrame(list(product(*choices)), columns=table.columns)
        points = points.astype(table.dtypes.to_dict())
        assert (model.predict(points) == "yes").all()
        # No value more would do for all: each one that was left out fails with some others.
        for k, (name, every) in enumerate(
            zip(table.columns, (range(10), features["job"].levels, (False, True)), strict=True)
        ):
            for value in set(every) - set(choices[k]) if name in ranges else ():
                more = pd.DataFrame(
                    list(product(*(choices[:k] + [[value]] + choices[k + 1 :]))),
                    columns=table.columns,
                ).astype(table.dtypes.to_dict())
                assert (model.predict(more) == "no").any()
    assert seen > 3


def test_own_predict_of_a_pipeline_agrees_at_the_ends() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) * [1e-3, 1.0, 1e4] + [0, 5, 1e5]
    y = np.where(X @ [1e3, 1.0, 1e-4] > 15, "up", "down")
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    explainer = clvq.Explainer(model, clvq.Manhattan(1 / X.std(0)))
    for row in X[:6]:
        cf = explainer.explain(row)
        points = inside(explainer.ranges(cf), cf)
        assert (model.predict(points) == cf.prediction).all()


def test_features_under_other_conditions_keep_their_values() -> None:
    model, rows = drawn(1)
    explainer = clvq.Explainer(
        model,
        clvq.Manhattan(1 / SCALES),
        ["a / 1e-6 + b == original(a) / 1e-6 + original(b) + 0.1"],
    )
    cf = explainer.explain(rows[0])
    ranges = explainer.ranges(cf)
    assert ranges["a"] == (cf.x[0], cf.x[0])
    assert ranges["c"][0] < ranges["c"][1]


def test_what_cannot_be_had_is_said() -> None:
    model, rows = drawn(1)
    explainer = clvq.Explainer(model)
    cf = explainer.explain(rows[0])
    with pytest.raises(clvq.InvalidInputError, match="side is 'left'; expected one of"):
        explainer.ranges(cf, side="left")
    with pytest.raises(clvq.InvalidInputError, match="units is 3; expected a mapping"):
        explainer.ranges(cf, units=3)
    with pytest.raises(clvq.InvalidInputError, match="expected a positive number"):
        explainer.ranges(cf, units={"a": 0.0})
    none = clvq.Explainer(model, constraints=[clvq.Freeze(*NAMES)]).explain(rows[0])
    with pytest.raises(clvq.InvalidInputError, match="is infeasible: there is no answer to widen"):
        explainer.ranges(none)
    local = clvq.PrototypeModel([[0.0], [1.0]], [0, 1], omegas=[[[1.0]], [[2.0]]])
    asked = clvq.Explainer(local)
    with pytest.raises(clvq.NotSupportedError, match="ranges are for shared metrics"):
        asked.ranges(asked.explain([0.0]))
    same = explainer.explain(rows[0], target=model.predict([rows[0]])[0])
    assert dict(explainer.ranges(same)) == {}


def test_shell_tells_ranges(tmp_path: Path) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["no", "yes"], None, ["a", "b"])
    clvq.save(model, tmp_path / "m.clvq")
    pd.DataFrame({"a": [1.0], "b": [1.0]}).to_csv(tmp_path / "rows.csv", index=False)
    asked = ("explain", "m.clvq", "rows.csv", "--bounds", "a=0:5", "--ranges", "--format")
    done = called(*asked, "text", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().splitlines()[0].endswith("It stays yes with a from 1.876 to 5.")
    told = json.loads(called(*asked, "json", cwd=tmp_path).stdout)
    assert told[0]["ranges"]["a"]["upper"] == 5.0
    assert called(*asked, "csv", cwd=tmp_path).returncode == 2


def test_ranges_hold_an_answer_that_keeps_its_margin_but_for_rounding() -> None:
    rng = np.random.default_rng(99)
    for _ in range(12):
        points, labels = rng.normal(size=(6, 3)) * 2.0, ["a", "b"] * 3
        model = clvq.PrototypeModel(points, labels, rng.normal(size=(3, 3)))
        explainer = clvq.Explainer(model, margin=float(rng.uniform(0.1, 1.0)))
        cf = explainer.explain(rng.normal(size=3), target="b")
        for name, (low, high) in explainer.ranges(cf).items():
            assert low <= cf.x[model.features.position(name)] <= high


def test_an_end_that_was_typed_in_is_told_as_it_was() -> None:
    # The double next to 4.6 lies below it, and typed in again 4.6 is that double.
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["income"])
    explainer = clvq.Explainer(model, constraints=["income <= 4.6"])
    ranges = explainer.ranges(explainer.explain([0.5], target="yes"))
    assert ranges.text().endswith(" to 4.6.")


@pytest.mark.parametrize("by", [0.1, 1.0])
@pytest.mark.parametrize("kind", ["real", "whole"])
def test_least_changes_leave_a_range_on_the_side_of_the_answer(by: float, kind: str) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.5, 0.0]], ["no", "yes"], None, ["a", "b"])
    features = clvq.Features([clvq.Feature("a", kind), "b"])
    rules = [clvq.MinChange("a", by), clvq.Bounds("a", -3.0, 9.0), clvq.Freeze("b")]
    asked = clvq.Explainer(model, clvq.Manhattan(), rules, features=features)
    beyond, before = (3.0, 2.0) if kind == "whole" else (2.25, 2.25)
    for start, target in ((1.0, "yes"), (3.0, "no"), (2.0, "yes")):
        ranges = asked.ranges(asked.explain([start, 0.3], target=target))["a"]
        if target == "yes":
            assert min(ranges) == pytest.approx(max(beyond, start + by), abs=1e-6)
            assert max(ranges) == 9.0
        else:
            assert max(ranges) == pytest.approx(min(before, start - by), abs=1e-6)
            assert min(ranges) == -3.0


@pytest.mark.parametrize(("decimals", "step"), [(0, None), (2, None), (None, 12.5)])
def test_ends_have_the_decimals_of_their_feature(decimals: int | None, step: float | None) -> None:
    income = clvq.Feature("income", decimals=decimals, step=step, unit="EUR")
    points = [[0.0], [7711.11111], [14321.7654]]
    model = clvq.PrototypeModel(points, ["no", "yes", "no"], feature_names=["income"])
    explainer = clvq.Explainer(model, features=clvq.Features([income]))
    ranges = explainer.ranges(explainer.explain([1000.0], target="yes"))
    said = re.findall(r"[\d,.]*\d", str(ranges))
    assert len(said) == 2
    for text, exact, sign in zip(said, ranges["income"], (1, -1), strict=True):
        end = float(text.replace(",", ""))
        grid = step or 10.0 ** -(decimals or 0)
        assert end == pytest.approx(round(end / grid) * grid, rel=1e-14)
        assert len(text.partition(".")[2]) <= (decimals or 0) + (step is not None)
        assert 0 <= sign * (end - exact) < grid
        assert model.predict([[end]])[0] == "yes"


def test_answers_that_break_the_constraints_are_refused() -> None:
    names = ["cards", "income"]
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["no", "yes"], feature_names=names)
    cf = clvq.Explainer(model, constraints=["cards <= 3"]).explain([0.5, 0.0], target="yes")
    for constraints, words in (
        (["cards >= 4"], "breaks 'cards >= 4' of this explainer"),
        ([clvq.Freeze("cards")], r"breaks Freeze\('cards'\) of this explainer"),
    ):
        other = clvq.Explainer(model, constraints=["income <= 9", *constraints])
        with pytest.raises(clvq.InvalidInputError, match=words):
            other.ranges(cf)
    narrow = clvq.Features([clvq.Feature("cards", lower=4), clvq.Feature("income")])
    with pytest.raises(clvq.InvalidInputError, match=r"breaks Bounds\('cards', lower=4\)"):
        clvq.Explainer(model, features=narrow).ranges(cf)
    assert "cards" in clvq.Explainer(model, constraints=["cards <= 2.5"]).ranges(cf)


@pytest.mark.parametrize("step", [1, 5])
def test_whole_numbers_are_two_ends_in_json(step: int) -> None:
    names = ["cards", "home"]
    features = clvq.Features(
        [clvq.Feature("cards", "whole", lower=0, upper=400, step=step), clvq.Feature("home")]
    )
    model = clvq.PrototypeModel([[0, 0], [16, 0]], ["no", "yes"], feature_names=names)
    explainer = clvq.Explainer(model, features=features)
    ranges = explainer.ranges(explainer.explain([0, 0], target="yes"))
    assert ranges["cards"] == set(range(9 if step == 1 else 10, 401, step))
    told = json.loads(json.dumps(ranges.to_dict()["cards"]))
    stepped = {} if step == 1 else {"step": 5}
    assert told == {"lower": min(ranges["cards"]), "upper": 400, **stepped}


def test_a_row_of_the_user_limits_a_range_at_its_plane() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["a", "b"])
    rng = np.random.default_rng(0)
    for _ in range(40):
        a, e, held = rng.random() + 0.1, rng.random() + 0.1, rng.normal()
        limit = a * 6.0 + e * held
        explainer = clvq.Explainer(
            model, clvq.Manhattan([1.0, 50.0]), [clvq.Linear({0: a, 1: e}, "<=", limit)]
        )
        cf = explainer.explain([0.0, held], target="b")
        low, high = explainer.ranges(cf)["x0"]
        assert low <= cf.x[0] <= high
        assert high == pytest.approx(6.0, rel=1e-12)
        # The row holds at the end in rational numbers, not only as floats see it.
        exact = Fraction(a) * Fraction(high) + Fraction(e) * Fraction(float(cf.x[1]))
        assert exact <= Fraction(limit)


@pytest.mark.parametrize("seed", [*range(12), 113])  # an end of 113 was 1e-9 beyond its answer
def test_ranges_hold_the_answer_they_are_around(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-6, 7, size=3) if seed % 2 == 0 else np.ones(3)
    points = rng.normal(size=(4, 3)) * 2 * scale
    model = clvq.PrototypeModel(points, ["a", "b", "a", "b"], rng.normal(size=(3, 3)) / scale)
    x, a = rng.normal(size=3) * 2 * scale, rng.normal(size=3) / scale
    right = float(a @ x - abs(rng.normal()))  # the input breaks it, and the answer lies on it
    row = clvq.Linear(dict(enumerate(a)), "<=", right)
    explainer = clvq.Explainer(model, clvq.Chebyshev(1 / scale), [clvq.AtMost(2), row])
    cf = explainer.explain(x)
    for side in ("both", "away") if cf.status.has_answer else ():
        for name, (low, high) in explainer.ranges(cf, side=side).items():
            assert low <= cf.x[model.features.position(name)] <= high


@pytest.mark.parametrize("kind", ["real", "whole"])
def test_listed_values_are_a_set(kind: str) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["a", "b"], None, ["a", "b"])
    features = clvq.Features([clvq.Feature("a", kind), "b"])
    listed = [1, 3, 4, 5, 9] if kind == "whole" else [1.0, 2.2, 2.7, 4.2, 9.0]
    rules = [clvq.OneOf("a", listed), "a <= 7", clvq.Freeze("b")]
    explainer = clvq.Explainer(model, clvq.Manhattan(), rules, features=features)
    cf = explainer.explain([0, 0.0], target="b")
    ranges = explainer.ranges(cf)
    # By trying all of them.
    good = {v for v in listed if v <= 7 and model.predict([[v, 0.0]])[0] == "b"}
    assert ranges["a"] == good
    words = "a from 3 to 5" if kind == "whole" else "a 2.2 or 2.7 or 4.2"
    assert ranges.text() == f"It stays b with {words}."


@pytest.mark.parametrize(
    "rule", [clvq.Quadratic(np.eye(2), 100.0), clvq.If("x0 > 3", then="x1 >= 2"), "x0 + x1 == 3"]
)
def test_what_is_held_is_said(rule: clvq.Constraint | str) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["a", "b"])
    explainer = clvq.Explainer(model, constraints=[rule])
    ranges = explainer.ranges(explainer.explain([0.0, 0.0], target="b"))
    assert ranges.held == tuple(ranges)
    assert all(low == high for low, high in ranges.values())
    assert " were not looked at: constraints are about " in ranges.text()
    free = clvq.Explainer(model, constraints=["x0 <= 9"])
    assert free.ranges(free.explain([0.0, 0.0], target="b")).held == ()


@pytest.mark.parametrize("seed", [3, 10, 25, 61, 67, 85, 106, 163, 205, 229, 268, 289, 367, 463])
def test_ranges_away_begin_at_the_answer_and_sentences_at_what_is_shown(seed: int) -> None:
    """On ugly scales some changes cost next to nothing, and what is shown does without them."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    scale = 10.0 ** rng.integers(-7, 8, size=d)
    offset = rng.choice([0, 1, 1e3], size=d) * scale
    points, omega = rng.normal(size=(4, d)) * scale + offset, None
    if seed % 2 == 0:
        omega = rng.normal(size=(d, d)) / scale
    model = clvq.PrototypeModel(points, ["no", "yes", "no", "yes"], omega, NAMES[:d])
    x = rng.normal(size=d) * scale + offset
    cost = [clvq.Manhattan(1 / scale), clvq.Euclidean(), clvq.Chebyshev(1 / scale)][seed % 3]
    room = scale[:, None] * rng.random((d, 2))
    low, high = x - room[:, 0], x + 2.0 * room[:, 1]
    rules = [clvq.Bounds(j, low[j], high[j]) for j in range(d)] if seed % 5 == 0 else []
    explainer = clvq.Explainer(model, cost, rules, None if seed % 4 else 0.1)
    cf = explainer.explain(x)
    for side in ("both", "away") if cf.changes else ():
        found = explainer.ranges(cf, side=side)
        told = found.text()
        for name, (bottom, top) in found.items():
            j = cf.feature_names.index(name)
            assert bottom <= cf.x[j] <= top
            if side == "away":
                assert cf.x[j] == (bottom if cf.x[j] > x[j] else top)
            ends = ends_in(told, name)
            assert ends[0] <= cf.shown.values[j] <= ends[1], (told, cf.text())


def test_ranges_of_what_constraints_demand_are_said() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["no", "yes"], None, ["a", "b"])
    explainer = clvq.Explainer(model, constraints=[clvq.Bounds("a", 2.5, 6.0)])
    cf = explainer.explain([9.0, 1.0], target="yes")
    assert cf.has_target
    assert cf.changes
    ranges = explainer.ranges(cf)
    assert cf.text(ranges=ranges) == f"{cf.text()} {ranges}"
    assert "It stays yes with a from 2.5 to 6." in cf.text(ranges=ranges)


def test_ranges_of_another_answer_are_not_said_of_this_one() -> None:
    names = ["a", "b"]
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["no", "yes"], None, names)
    explainer = clvq.Explainer(model, constraints=["a <= 9", clvq.AtMost(1)])
    cf, other = (explainer.explain(row, target="yes") for row in ([0.0, 0.0], [0.0, 0.5]))
    for ranges, words in (
        (explainer.ranges(other), "these are the ranges of another answer; expected what"),
        (clvq.Explainer(model).ranges(cf), "of another explainer, without 'a <= 9'; expected"),
        (explainer.reasons, "ranges is .*; expected what `Explainer.ranges` says of this answer"),
    ):
        with pytest.raises(clvq.InvalidInputError, match=words):
            cf.text(ranges=ranges)
    more = clvq.Explainer(model, constraints=["b <= 9", "a <= 9"])
    for asked in (explainer, more):
        assert cf.text(ranges=asked.ranges(cf)).endswith(" to 9.")


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("digits", [1, 2, 4, 8])
@pytest.mark.parametrize("given", ["rule", "feature"])
def test_no_number_that_is_printed_passes_a_limit_by_its_last_digit(
    sign: int, digits: int, given: str
) -> None:
    """What was seen in a column has all digits, and may be all that the label leaves of it."""
    tie = 0.00138
    limit = sign * (tie + digits * float(np.spacing(tie)))
    ends = {"upper": limit} if sign > 0 else {"lower": limit}
    model = clvq.PrototypeModel([[0.0], [2.0 * sign * tie]], ["no", "yes"], None, ["a"])
    rules = [clvq.Bounds("a", **ends)] if given == "rule" else []
    features = clvq.Features([clvq.Feature("a", **(ends if given == "feature" else {}))])
    explainer = clvq.Explainer(model, clvq.Manhattan(), rules, features=features)
    cf = explainer.explain([0.0], target="yes")
    found = explainer.ranges(cf)
    low, high = found["a"]
    told = re.findall(r"-?\d[\d.e-]*\d", found.text())
    assert told
    for text in (*told, cf.shown.changes[0].after):
        assert low <= float(text) <= high
        assert abs(float(text)) <= abs(limit)
        assert model.predict([[float(text)]])[0] == "yes"
