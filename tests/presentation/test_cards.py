"""Answers in notebooks: they say what was answered, and nothing in them acts or loads."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import counterlvq as clvq
from counterlvq.markup.parts import looks
from tests.support.markup import Elements
from tests.support.odd_names import harm, several

EVIL = "<script>alert(1)</script>\" onload='x' & <b>"


@pytest.fixture(scope="module")
def loans():
    features = [clvq.Feature("income", unit="EUR"), clvq.Feature("savings", unit="EUR"), "age"]
    model = clvq.PrototypeModel(
        [[1000, 500, 30], [1500, 900, 50], [3000, 2000, 35], [2600, 3000, 60]],
        ["rejected", "rejected", "accepted", "accepted"],
        omegas=np.diag([1e-3, 1e-3, 1e-2]),
        feature_names=features,
    )
    cost = clvq.Manhattan([1e-3, 2e-3, 1.0])
    return clvq.Explainer(model, cost=cost, constraints=[clvq.Freeze("age")])


def shown(item) -> Elements:
    return Elements(item._repr_html_())


def test_answer_says_what_its_text_says(loans) -> None:
    cf = loans.explain([1100.0, 600.0, 40.0], target="accepted")
    card = shown(cf)
    assert cf.text() in card.text
    assert "'rejected' → 'accepted'" in " ".join(card.text.split())
    assert "proved closest" in card.text
    assert "no counterfactual costs less than" in card.text.lower()
    (change,) = cf.shown_changes
    assert change.cells()[2] in card.text
    assert card.text.count("EUR") >= 3
    assert "2 features unchanged" in card.text
    assert "Constraints: no change of age." in card.text
    assert "Constraints" not in shown(clvq.Explainer(loans.model).explain(cf.original)).text
    assert len([name for name, _ in card.elements if name == "rect"]) == 1


def test_bars_weigh_what_taking_a_change_back_would_save(loans) -> None:
    cost = clvq.Manhattan([1e-3, 2e-3, 1.0])
    asked = clvq.Explainer(loans.model, cost, ["income <= 1500", "age == original(age)"])
    cf = asked.explain([1100.0, 600.0, 40.0], target="accepted")
    by_hand = {change.feature: abs(change.difference) for change in cf.changes}
    weights = dict(zip(asked.features.names, (1e-3, 2e-3, 1.0), strict=True))
    assert cf.savings == pytest.approx({name: weights[name] * by for name, by in by_hand.items()})
    assert len(cf.savings) == 2
    rects = [found for name, found in shown(cf).elements if name == "rect"]
    widths = [float(found["width"]) for found in rects]
    assert widths[0] / widths[1] == pytest.approx(
        max(cf.savings.values()) / min(cf.savings.values()), rel=1e-2
    )
    again = pickle.loads(pickle.dumps(cf))
    assert again._repr_html_() == cf._repr_html_()


def test_answers_that_do_not_exist_say_why(loans) -> None:
    stuck = clvq.Explainer(
        loans.model, constraints=["income <= 1100", "savings <= 600", "age <= 60"]
    )
    cf = stuck.explain([1100.0, 600.0, 40.0], target="accepted")
    card = shown(cf)
    assert cf.text() in card.text
    assert "leave no room together" in card.text
    assert "proved: none exists" in card.text
    rows = pd.DataFrame({"income": [1100.0, None], "savings": 600.0, "age": 40.0})
    batch = loans.explain_batch(rows, target="accepted", on_bad_rows="report")
    assert batch[1].text() in shown(batch[1]).text
    assert "cannot be read" in shown(batch).text


def test_batch_shows_figures_charts_and_first_rows_with_changes_in_bold(loans) -> None:
    rng = np.random.default_rng(0)
    rows = np.array([1200.0, 700.0, 40.0]) + rng.uniform(-200, 200, (30, 3)) * [1, 1, 0.05]
    batch = loans.explain_batch(rows, target="accepted")
    card = shown(batch)
    assert "rows 30 proved closest 30" in card.text
    assert "The first 5 rows, with what changes in bold" in card.text
    digits = [change.cells()[2] for cf in batch[:5] for change in cf.shown_changes]
    assert sorted(text.removesuffix(" EUR") for text in card.bold) == sorted(digits)
    answered, changed = batch.moved
    heights = [name for name, found in card.elements if found.get("class") == "columns"]
    assert heights == ["svg"]
    assert f"{int(changed[:, 0].sum()):,}" in card.text
    assert answered.all()
    assert "rows 0" in shown(batch[:0]).text


def test_explainer_and_model_say_what_they_are(loans) -> None:
    asked = shown(loans)
    assert "4 prototypes of 2 classes, 3 features, one metric" in asked.text
    assert "Manhattan distance, weighted by feature" in asked.text
    assert "no change of age" in asked.text
    assert "in EUR" in asked.text
    model = shown(loans.model)
    assert "'accepted' (2), 'rejected' (2)" in model.text
    home = clvq.Feature("home", levels=["own", "rent"], level_labels={"rent": "a flat"})
    features = clvq.Features([home, clvq.Feature("n", lower=0, upper=9, change="increase")])
    text = "own, a flat", "from 0 to 9; may increase"
    from counterlvq.markup.columns import features_card

    assert all(words in Elements(features_card("x", (), features)).text for words in text)


def said_by(item) -> tuple[str, str]:
    """What a card says, and what is printed, in single spaces."""
    return " ".join(shown(item).text.split()), " ".join(str(item).split())


def test_questions_show_what_they_print() -> None:
    pay, age = clvq.Feature("pay", unit="EUR", label="monthly pay"), clvq.Feature("age")
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 3.0]], ["no", "yes"], None, ["pay", "age"])
    limits = [clvq.Bounds("pay", 0, 8), clvq.Bounds("age", 0, 1)]
    asked = clvq.Explainer(model, constraints=limits, features=clvq.Features([pay, age]))
    ways = asked.alternatives([1.0, 1.0], target="yes")
    card, printed = said_by(ways)
    assert "monthly pay (EUR) 1 2.38" in card
    assert "feature now way 1" in card
    assert ways[0].shown_changes[0].cells()[2] in card
    assert printed.endswith("proved that none differs from these.")
    assert printed[printed.index("There is") :] in card

    card, printed = said_by(asked.ranges(ways[0]))
    assert printed in card
    assert "monthly pay from 2.376 to 8 EUR" in card

    why = asked.reasons([1.0, 1.0])
    card, _ = said_by(why)
    assert why.text() in card
    assert "monthly pay 1 EUR yes" in card
    assert "age from 0 to 1" in card

    card, printed = said_by(clvq.robustness(clvq.Explainer(model), [[1.0, 1.0]]))
    assert printed.split(" l1:")[0] in card
    assert "l2 1.1 " in card
    same = asked.alternatives([5.0, 1.0], target="yes")
    assert same[0].text() in said_by(same)[0]
    stuck = clvq.Explainer(model, constraints=[clvq.Freeze("pay", "age")])
    card, printed = said_by(stuck.alternatives([1.0, 1.0], target="yes"))
    assert printed in card


def asked_with(names, labels, units, rules):
    features = [clvq.Feature(n, unit=u) for n, u in zip(names, units, strict=True)]
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], labels, feature_names=names)
    return clvq.Explainer(model, constraints=rules, features=clvq.Features(features))


@pytest.mark.parametrize("seed", range(8))
def test_nothing_from_outside_acts(seed) -> None:
    rng = np.random.default_rng(seed)
    names, labels, units = (several(rng, 2) for _ in range(3))
    rules = [clvq.Bounds(names[0], upper=9)]
    if seed == 0:
        names, labels, units = [EVIL, "b"], [EVIL, f"{EVIL}2"], [EVIL, "</style><img src=x>"]
        rules = [clvq.Bounds(EVIL, upper=9), f"`{EVIL}` <= 8"]
    explainer = asked_with(names, labels, units, rules)
    cf = explainer.explain([0.5, 0.0], target=labels[1])
    stuck = clvq.Explainer(explainer.model, constraints=[clvq.Freeze(*names)])
    none = stuck.explain([0.5, 0.0], target=labels[1])
    batch = explainer.explain_batch([[0.5, 0.0], [0.2, 0.1]], target=labels[1])
    limits = [clvq.Bounds(name, -9, 9) for name in names]
    asked = asked_with(names, labels, units, limits)
    found = (
        asked.alternatives([0.5, 0.0], target=labels[1]),
        asked.ranges(cf),
        asked.reasons([0.5, 0.0]),
        clvq.robustness(clvq.Explainer(explainer.model), [[0.5, 0.0]]),
    )
    for item in (cf, none, batch, explainer, explainer.model, *found):
        card = shown(item)
        assert not card.acting()
        assert not harm("".join(card.words))


def test_looks_are_scoped_and_load_nothing() -> None:
    css = looks()
    assert "url(" not in css
    assert "@import" not in css
    for line in css.splitlines():
        if line.endswith("{") and not line.startswith("@") and not line.startswith(" "):
            assert ".clvq" in line, line
