"""What is shown holds: numbers that are printed are typed back in and asked about."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq
from counterlvq.cli.text_table import listing
from counterlvq.datasets import load_ames
from counterlvq.presentation.bounds import proved
from counterlvq.presentation.numbers import bound_text, gap_text, shown_row
from counterlvq.report import report_html
from tests.support.shown_numbers import (
    assert_holds,
    cost_and_bound,
    page_rows,
    read_number,
    read_table,
    read_text,
    typed,
)

Row = dict[str, Any]


class Case(NamedTuple):
    """A table with a model behind a pipeline, and questions about it."""

    pipeline: Pipeline
    table: pd.DataFrame
    features: clvq.Features | None
    weights: dict[str, float]
    switches: dict[str, float]
    constraints: list[clvq.Constraint | str]
    meets: Callable[[Row, Row], bool]  # the same constraints, by hand

    def explainer(self, constrained: bool) -> clvq.Explainer:
        weights = [self.weights.get(name, 1.0) for name in self.table]  # none are of levels
        cost = clvq.Manhattan(weights, switches=self.switches)
        rules = self.constraints if constrained else ()
        return clvq.Explainer(self.pipeline, cost, rules, features=self.features)

    def price(self, new: Row, old: Row) -> float:
        flat = sum(w * abs(new[name] - old[name]) for name, w in self.weights.items())
        return flat + sum(p for name, p in self.switches.items() if new[name] != old[name])

    def says(self, row: Row) -> Any:
        """The user's own model, asked about this row alone."""
        return self.pipeline.predict(pd.DataFrame([row])[list(self.table)])[0]


def weights_of(table: pd.DataFrame) -> dict[str, float]:
    return dict(zip(table, clvq.mad_weights(table).tolist(), strict=True))


def exact(row: Row, *names: str) -> list[Fraction]:
    return [Fraction(repr(row[name])) for name in names]


@cache
def ames() -> Case:
    houses = load_ames()
    table = pd.DataFrame(houses.X, columns=houses.feature_names)
    pipeline = make_pipeline(StandardScaler(), clvq.GMLVQ(prototypes_per_class=3, random_state=0))
    pipeline.fit(table, houses.target)
    kept = ["wood_deck", "open_porch", "three_season_porch", "screen_porch", "pool_area"]
    grows = ["total_basement", "first_floor", "second_floor"]
    both = ["living_area", "first_floor", "second_floor"]
    added = "first_floor + second_floor - original(first_floor) - original(second_floor)"

    def meets(new: Row, old: Row) -> bool:
        area, first, second = exact(new, *both)
        before = exact(old, *both)
        sums = area - before[0] == first + second - before[1] - before[2]
        # At full precision a sum of three doubles is one to the last digits only.
        near = abs(area - before[0] - first - second + before[1] + before[2]) < 1e-9
        return (
            all(new[name] == old[name] for name in kept)
            and all(new[name] >= old[name] for name in grows)
            and second <= first
            and (sums or (near and len(repr(new["living_area"])) > 12))
        )

    rules = [
        clvq.Freeze(*kept),
        clvq.Increase(*grows),
        "second_floor <= first_floor",
        f"living_area - original(living_area) == {added}",
    ]
    return Case(pipeline, table, None, weights_of(table), {}, rules, meets)


def of_sklearn(load: Callable[..., Any], rules: list[Any], meets: Callable[[Row, Row], bool]):
    data = load(as_frame=True)
    table = data.data.rename(columns=lambda name: name.replace(" ", "_").replace("/", "_"))
    model = clvq.GMLVQ(prototypes_per_class=2, random_state=0)
    pipeline = make_pipeline(StandardScaler(), model).fit(table, data.target)
    return Case(pipeline, table, None, weights_of(table), {}, rules, meets)


@cache
def wine() -> Case:
    def meets(new: Row, old: Row) -> bool:
        ash, acid = exact(new, "ash", "malic_acid")
        alcohol, was = exact(new, "alcohol")[0], exact(old, "alcohol")[0]
        return (
            new["proline"] == old["proline"]
            and new["hue"] == old["hue"]
            and abs(alcohol - was) <= Fraction("1.05")
            and ash <= 1 + Fraction("0.9") * acid
        )

    rules = [
        clvq.Freeze("proline", "hue"),
        clvq.MaxChange("alcohol", 1.05),
        "ash <= 1 + 0.9 * malic_acid",
    ]
    return of_sklearn(load_wine, rules, meets)


@cache
def cancer() -> Case:
    def meets(new: Row, old: Row) -> bool:
        worst, mean = exact(new, "worst_radius", "mean_radius")
        return (
            worst >= mean
            and new["worst_texture"] == old["worst_texture"]
            and new["mean_area"] <= old["mean_area"]
            and 0 <= new["worst_concave_points"] <= 0.3
        )

    rules = [
        clvq.Freeze("worst_texture"),
        clvq.Decrease("mean_area"),
        "worst_radius >= mean_radius",
        clvq.Bounds("worst_concave_points", 0, 0.3),
    ]
    return of_sklearn(load_breast_cancer, rules, meets)


@cache
def credit() -> Case:
    """Applicants: money in cents, a noisy ratio, whole numbers, levels, and a pipeline."""
    rng = np.random.default_rng(0)
    n = 240
    table = pd.DataFrame(
        {
            "income": np.round(rng.lognormal(7.8, 0.4, n), 2),
            "debt": rng.lognormal(8.5, 0.9, n),  # as a calculation leaves it: 16 digits
            "cards": rng.integers(0, 6, n),
            "years": rng.integers(0, 30, n),
            "job": rng.choice(["clerk", "nurse", "driver", "none"], n),
            "owner": rng.choice([False, True], n),
        }
    )
    score = (
        table["income"] / 900
        - table["debt"] / 5000
        - 0.4 * table["cards"]
        + 0.08 * table["years"]
        + 0.8 * table["owner"]
        - 0.9 * (table["job"] == "none")
        + rng.normal(0, 0.4, n)
    )
    label = np.where(score > np.median(score), "accepted", "rejected")
    numbers = ["income", "debt", "cards", "years"]
    steps = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(drop="first"), ["job", "owner"])
    )
    pipeline = make_pipeline(steps, clvq.GMLVQ(prototypes_per_class=2, random_state=0))
    pipeline.fit(table, label)
    features = clvq.Features.from_frame(
        table,
        units={"income": "EUR", "debt": "EUR", "years": "a"},
        decimals={"income": 2},
        ranges={"income": (0, np.inf), "debt": (0, np.inf), "cards": (0, 10), "years": (0, 60)},
    )

    def meets(new: Row, old: Row) -> bool:
        debt, income = exact(new, "debt", "income")
        return (
            new["owner"] == old["owner"]
            and new["years"] == old["years"]
            and debt <= 10 * income
            and new["cards"] >= 1
            and new["income"] <= 2 * old["income"]
        )

    rules = [
        clvq.Freeze("owner", "years"),
        "debt <= 10 * income",
        "cards >= 1",
        "income <= 2 * original(income)",
    ]
    return Case(
        pipeline,
        table,
        features,
        weights_of(table[numbers]),
        {"job": 1.0, "owner": 2.0},
        rules,
        meets,
    )


CASES = {"ames": ames, "wine": wine, "cancer": cancer, "credit": credit}
each_case = pytest.mark.parametrize("constrained", [False, True], ids=["free", "constrained"])


def assert_all_hold(case: Case, constrained: bool, rows: pd.DataFrame) -> int:
    """Type back the sentence and the table of each row; say how many answers there were."""
    explainer = case.explainer(constrained)
    meets = case.meets if constrained else lambda new, old: True
    answers = 0
    for cf in explainer.explain_batch(rows):
        if not cf.changes:
            continue
        answers += 1
        printed = cost_and_bound(str(cf))
        sentence, table = (
            read_text(cf.text(), cf.features),
            read_table(str(cf), cf.features),
        )
        assert sentence == table
        assert_holds(cf, sentence, case.says, meets, case.price, printed)
    return answers


def least_answered(constrained: bool) -> float:
    """Which share of the rows has an answer: houses that may only grow cannot all get cheaper."""
    return 0.5 if constrained else 1.0


@pytest.mark.covering
@each_case
@pytest.mark.parametrize(("name", "step"), [("ames", 540), ("wine", 12), ("cancer", 38)])
def test_printed_numbers_hold(name: str, step: int, constrained: bool) -> None:
    case = CASES[name]()
    rows = case.table.iloc[::step]
    assert assert_all_hold(case, constrained, rows) >= least_answered(constrained) * len(rows)


@each_case
def test_printed_numbers_of_mixed_tables_hold(constrained: bool) -> None:
    case = credit()
    assert assert_all_hold(case, constrained, case.table.iloc[::30]) >= 6


@pytest.mark.slow
@each_case
@pytest.mark.parametrize(
    ("name", "part", "parts"),
    [*(("ames", k, 10) for k in range(10)), ("wine", 0, 1), ("cancer", 0, 1), ("credit", 0, 1)],
)
def test_all_printed_numbers_hold(name: str, part: int, parts: int, constrained: bool) -> None:
    case = CASES[name]()
    rows = case.table.iloc[part::parts]
    assert assert_all_hold(case, constrained, rows) >= least_answered(constrained) * len(rows)


# --- pages, lists and pictures ------------------------------------------------------------------


@pytest.mark.docs
@pytest.mark.parametrize("name", CASES)
def test_numbers_of_pages_lists_and_pictures_are_the_same(name: str) -> None:
    case = CASES[name]()
    explainer = case.explainer(True)
    batch = explainer.explain_batch(case.table.iloc[[0, 40, 80]])
    lines = listing(batch).splitlines()[1:]
    for line, cf in zip(lines, batch, strict=False):
        shown = read_text(cf.text(), cf.features)
        changed, same = page_rows(report_html(explainer, cf, pictures=False), cf.features)
        assert changed == shown
        for feature, value in zip(cf.features, cf.original.tolist(), strict=True):
            if feature.name not in shown:
                is_number = feature.is_number
                kept = same[feature.name]
                assert (float(kept) == value) if is_number else (kept == str(value))
        for feature, item in shown.items():
            if not cf.features[feature].is_number:
                assert f"{feature} {item.before} -> {item.after}" in line
                continue
            told = line.split(f"{feature} ", 1)[1].split(" -> ", 1)
            after = told[1].split(", ")[0].split()[0]
            assert (read_number(told[0]), read_number(after)) == (item.before, item.after)
        printed = proved(cf.shown.cost, cf.lower_bound)
        assert f"  {printed.cost}  " in line
        assert re.search(rf" {re.escape(printed.bound)} +{re.escape(printed.gap)}  ", line)


def test_numbers_in_a_picture_of_changes_are_the_same() -> None:
    plots = pytest.importorskip("counterlvq.plots")
    pytest.importorskip("matplotlib")
    case = credit()
    explainer = case.explainer(True)
    for cf in explainer.explain_batch(case.table.iloc[:60:20]):
        ax = plots.plot_changes(cf, explainer)
        texts = " | ".join(text.get_text() for text in ax.texts)
        for change in cf.shown_changes:
            after = change.shown.after if change.is_number else change.after
            assert f"→ {after}" in texts
        assert f"at cost {cf.shown.cost:.6g}" in ax.get_title(loc="left")


# --- numbers of any size ------------------------------------------------------------------------


def drawn(rng: np.random.Generator) -> tuple[clvq.PrototypeModel, np.ndarray]:
    """A model and an input at some scale and some way off zero, of either sign."""
    width = int(rng.integers(1, 6))
    scale = 10.0 ** rng.integers(-9, 13, size=width).astype(float)
    offset = np.where(rng.random(width) < 0.5, 0.0, rng.normal(size=width) * 1e3) * scale
    prototypes = rng.normal(size=(6, width)) * scale + offset
    labels = ["a", "a", "a", "b", "b", "b"]
    x = rng.normal(size=width) * scale + offset
    if rng.random() < 0.5:
        x = np.array([float(f"{value:.3g}") for value in x])
    return clvq.PrototypeModel(prototypes, labels, np.diag(1 / scale)), x


@pytest.mark.parametrize("seed", range(60))
def test_numbers_of_any_size_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model, x = drawn(rng)
    weights = np.diag(model.shared_factor)
    cost = [clvq.Manhattan(weights), clvq.Mahalanobis(np.diag(weights**2))][seed % 2]
    cf = clvq.Explainer(model, cost).explain(x)
    shown = read_text(cf.text(), cf.features)
    assert shown == read_table(str(cf), cf.features)

    def says(row: Row) -> Any:
        return model.predict([list(row.values())])[0]

    def price(new: Row, old: Row) -> float:
        change = (np.array(list(new.values())) - list(old.values())) * weights
        return float(np.abs(change).sum() if seed % 2 == 0 else change @ change)

    assert_holds(cf, shown, says, lambda new, old: True, price, cost_and_bound(str(cf)))
    # Adding the changes to the input is another way to read them.
    added = typed(cf, shown)
    for name, item in shown.items():
        added[name] = float(Fraction(float(x[cf.features.position(name)])) + item.change)
    assert says(added) in cf.target


def test_a_small_necessary_change_is_shown() -> None:
    model = clvq.PrototypeModel([[107.0 - 3, 0.0], [107.07 + 3, 0.0]], ["no", "yes"])
    cf = clvq.Explainer(model).explain([107.0, 0.0], target="yes")
    item = read_text(cf.text(), cf.features)["x0"]
    assert item.before == 107
    assert 0 < item.after - 107 <= Fraction("0.0354")
    assert model.predict([[float(item.after), 0.0]])[0] == "yes"


def test_more_changes_than_a_table_holds_are_all_in_the_text() -> None:
    rng = np.random.default_rng(3)
    model = clvq.PrototypeModel(rng.normal(size=(4, 30)), ["a", "a", "b", "b"])
    cf = clvq.Explainer(model, clvq.Euclidean()).explain(rng.normal(size=30))
    assert len(cf.changes) == 30
    assert "  and 10 more changed features, which text() names" in str(cf).splitlines()
    sentence, table = read_text(cf.text(), cf.features), read_table(str(cf), cf.features)
    assert len(sentence) == 30
    assert table == {name: sentence[name] for name in list(sentence)[:20]}
    assert model.predict([list(typed(cf, sentence).values())])[0] in cf.target


def test_one_number_that_has_no_room_is_shown_inside_of_its_bound() -> None:
    """A third of a unit cannot be rounded away from the input: the other column makes up for it."""
    model = clvq.PrototypeModel([[0.0, 0.0], [2.0, 2.0]], ["no", "yes"])
    bound = 1.0 / 3.0
    explainer = clvq.Explainer(model, constraints=[clvq.Bounds("x0", upper=bound)])
    cf = explainer.explain([0.0, 0.0], target="yes")
    shown = read_text(cf.text(), cf.features)
    new = typed(cf, shown)
    assert new["x0"] <= bound
    assert model.predict([list(new.values())])[0] == "yes"
    assert cf.shown.cost <= 1.01 * cf.cost
    assert 0.32 <= shown["x0"].after <= Fraction(bound)
    assert all(len(str(float(shown[name].after))) <= 6 for name in ("x0", "x1"))


# --- full precision where programs read ---------------------------------------------------------


def test_data_keep_full_precision() -> None:
    case = ames()
    explainer = case.explainer(False)
    cf = next(cf for cf in explainer.explain_batch(case.table.iloc[:20]) if cf.changes)
    before = cf.to_dict()
    assert cf.shown.cost >= cf.cost
    assert (cf.shown.values != cf.x).any()
    assert cf.to_dict() == before
    told = {change["feature"]: change["after"] for change in before["changes"]}
    assert told == {change.feature: change.after for change in cf.changes}
    assert [before["x"][name] for name in cf.feature_names] == cf.x.tolist()


def test_nothing_is_computed_before_it_is_shown() -> None:
    case = wine()
    cf = case.explainer(False).explain(case.table.iloc[0])
    assert cf.changes
    assert cf.to_dict()
    assert "shown" not in vars(cf)
    assert cf.text()
    assert "shown" in vars(cf)


def test_pickled_answers_show_the_same_without_the_model() -> None:
    case = wine()
    cf = case.explainer(False).explain(case.table.iloc[0])
    again = pickle.loads(pickle.dumps(cf))
    assert again.check is None
    assert str(again) == str(cf)
    assert again.text() == cf.text()
    assert [change.text() for change in again.changes] == [c.text() for c in cf.changes]


def test_answers_that_nobody_checks_are_shown_in_full() -> None:
    case = ames()
    cf = case.explainer(False).explain(case.table.iloc[3])
    bare = replace(cf, check=None)
    assert typed(bare, read_text(bare.text(), bare.features)) == dict(
        zip(cf.feature_names, cf.x.tolist(), strict=True)
    )


def test_declared_decimals_are_always_shown() -> None:
    features = clvq.Features([clvq.Feature("income", unit="EUR", decimals=2)])
    row = shown_row(
        features, np.array([1400.0]), np.array([1500.3]), 100.3, lambda row, most: (True, 0.0)
    )
    assert (row.changes[0].before, row.changes[0].after) == ("1,400.00", "1,500.30")
    assert row.changes[0].by == "100.30"


@pytest.mark.parametrize("value", np.random.default_rng(1).lognormal(0, 30, 200).tolist())
def test_bounds_are_rounded_down_and_gaps_up(value: float) -> None:
    assert Fraction(bound_text(value)) <= Fraction(value)
    assert float(bound_text(value)) >= value * (1 - 1.1e-5)
    share = value % 1.0
    told = gap_text(share)
    read = Fraction(told.removesuffix("%").removeprefix("<")) / (100 if told.endswith("%") else 1)
    assert share <= read <= max(share * 2, share + 1e-4)
    assert told.startswith("<") == (share < 1e-6)


def test_what_rounding_has_left_of_zero_is_left_out_unless_it_is_needed() -> None:
    features = clvq.Features(["a", "b"])
    before, after = np.array([0.0, 0.0]), np.array([2.7182, 3e-14])

    def check(needed: float) -> Callable[[np.ndarray, float], tuple[bool, float]]:
        return lambda row, most: (row[0] > 2.7 and row[1] >= needed, float(row.sum()))

    assert list(shown_row(features, before, after, after.sum(), check(0.0)).changes) == [0]
    needed = shown_row(features, before, after, after.sum(), check(2e-14))
    assert list(needed.changes) == [0, 1]
    assert float(needed.changes[1].after) >= 2e-14


@pytest.mark.parametrize("limit", [0.0, None])
def test_nothing_is_shown_of_no_answer(limit: float | None) -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
    rules = [clvq.Freeze("x0")] if limit is None else []
    cf = clvq.Explainer(model, constraints=rules, time_limit=limit).explain([1.0], target="yes")
    assert not cf.status.has_answer
    assert cf.shown.changes == {}
    assert cf.shown_changes == ()
    assert str(pickle.loads(pickle.dumps(cf))) == str(cf)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("before", [1938.2300000000013, 1945.8290000000002, 1938.77123456789])
def test_inputs_are_rounded_to_the_nearest(before: float, sign: float) -> None:
    features, least = clvq.Features(["income"]), 1071.0
    original, values = np.array([sign * before]), np.array([sign * (before + least)])

    def check(row: np.ndarray, most: float) -> tuple[bool, float]:
        cost = sign * (float(row[0]) - float(original[0]))
        return least <= cost <= most, cost

    change = shown_row(features, original, values, least, check).changes[0]
    shown = read_number(change.before)
    if "." in change.before:
        last = 10.0 ** -len(change.before.partition(".")[2])
    else:
        last = 10.0 ** (len(change.before) - len(change.before.rstrip("0")))
    assert abs(shown - original[0]) <= last / 2
    assert check(np.array([read_number(change.after)]), np.inf)[0]
    assert check(original + sign * read_number(change.by), np.inf)[0]


def test_a_value_at_a_bound_of_the_data_does_not_show_all_its_digits() -> None:
    """The bound has sixteen digits, and an answer there has room in the other column."""
    upper = 3457.579415465634
    model = clvq.PrototypeModel(
        [[2000.0, 0.0], [6000.0, 4.0]], ["no", "yes"], np.diag([1e-3, 1.0]), ["income", "age"]
    )
    limit = clvq.Bounds("income", upper=upper)
    ask = clvq.Explainer(model, clvq.Manhattan({"income": 1e-4}), constraints=[limit])
    cf = ask.explain([2743.43, 0.66], target="yes")
    assert cf.x[0] == upper
    row = cf.shown.row
    assert model.predict([row])[0] == "yes"
    assert row[0] < upper
    assert abs(row - [2743.43, 0.66]) @ [1e-4, 1.0] <= 1.01 * cf.cost
    assert max(len(change.cells()[2]) for change in cf.shown_changes) <= 8
    rules = [limit, clvq.Freeze("age"), f"income >= {upper}"]
    alone = clvq.Explainer(model, constraints=rules)
    (change,) = alone.explain([2743.43, 3.66], target="yes").shown_changes
    assert change.after == pytest.approx(upper, rel=1e-14)
