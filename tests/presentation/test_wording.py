"""Texts for letters: words, separators, templates, and numbers that still hold."""

from __future__ import annotations

import html
import pickle
import re
from datetime import date
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import counterlvq as clvq
from counterlvq.presentation.changes import Change
from counterlvq.presentation.numbers import exact_text
from counterlvq.presentation.rows import feature_values
from counterlvq.presentation.wording import NUMBERS, PLAIN, Wording
from counterlvq.problem.constraint_text import plain_words
from counterlvq.report import report_html

FEATURES = clvq.Features(
    [
        clvq.Feature("inc", unit="EUR", label="net monthly income"),
        clvq.Feature("home", levels=[0, 1, 2], label="housing", level_labels={2: "a home you own"}),
        clvq.Feature("guar", "boolean", true="with a guarantor", false="without a guarantor"),
        clvq.Feature("late", "whole", label="late payments"),
    ]
)
MODEL = clvq.PrototypeModel(
    [[1200, 0, 0, 3], [4200, 2, 1, 1]],
    ["bad", "good"],
    omegas=[0.001, 1, 1, 1],
    feature_names=["inc", "home", "guar", "late"],
)
EXPLAINER = clvq.Explainer(
    MODEL, clvq.Manhattan({"inc": 0.002, "guar": 0.1, "home": 0.2}), features=FEATURES
)
ROW = {"inc": 1200.5, "home": 0, "guar": False, "late": 3}
WORDS = {"subject": "Your application", "outcome": {"good": "accepted", "bad": "declined"}}


@cache
def answer() -> clvq.Counterfactual:
    """Answer once, and not before a test asks: the first answer may have to be compiled."""
    return EXPLAINER.explain(ROW, target="good")


def test_levels_may_speak_in_phrases() -> None:
    """A column of yes and no reads like a boolean, in changes, conditions and conflicts."""
    said = {"no": "without a guarantor", "yes": "with a guarantor"}
    features = clvq.Features(
        ["pay", clvq.Feature("guar", levels=["no", "yes"], level_labels=said, phrases=True)]
    )
    model = clvq.PrototypeModel([[0, 0], [4, 0]], ["bad", "good"], None, ["pay", "guar"])
    change = Change("guar", "no", "yes", is_level=True, described=features["guar"])
    assert change.text() == "it were with a guarantor"
    assert change.brief() == "with a guarantor"
    told = plain_words("if pay >= 5 then guar == 'yes'", features, PLAIN.value)
    assert told == "with pay at 5 or more, it must be with a guarantor"
    told = plain_words("if guar != 'yes' then pay >= 5", features, PLAIN.value)
    assert told == "if it is without a guarantor, pay must be at least 5"
    told = plain_words(clvq.Freeze("guar"), features, PLAIN.value, lambda _: "no")
    assert told == "still without a guarantor"
    assert eval(repr(features["guar"]), {"Feature": clvq.Feature}) == features["guar"]
    assert model.predict([[3, 0]]) == "good"


def test_subjects_begin_sentences_with_a_capital() -> None:
    """A subject that stands within a template may begin sentences elsewhere."""
    said = {"subject": "your loan", "outcome": {"good": "granted", "bad": "refused"}}
    assert answer().text(**said).startswith("Your loan would have been granted if ")
    assert answer().text(**said, template="Today {subject}: {list}").startswith("Today your loan: ")
    right = EXPLAINER.explain({**ROW, "inc": 5000.0, "home": 2, "guar": True}, target="good")
    assert right.text(**said).startswith("Your loan is granted already")
    assert right.text(**{**said, "subject": "iPad 3"}).startswith("iPad 3 is granted already")


def test_rows_without_changes_have_a_text_of_their_own() -> None:
    letter, other = "If {changes}.", "Dear Ann,\n{text}\n({subject}, {now})"
    said = {**WORDS, "template": letter, "otherwise": other}
    assert answer().text(**said).startswith("If ")
    right = EXPLAINER.explain({**ROW, "inc": 5000.0, "home": 2, "guar": True}, target="good")
    assert right.text(**said) == (
        "Dear Ann,\nYour application is accepted already; nothing needs to change.\n"
        "(Your application, accepted)"
    )
    held = clvq.Explainer(
        MODEL, constraints=[clvq.Freeze("inc"), clvq.Freeze("home", "guar"), clvq.Freeze("late")],
        features=FEATURES,
    ).explain(ROW, target="good")  # fmt: skip
    assert held.text(**said) == (
        'Dear Ann,\nYour application would not have been accepted by any change: "no change of net '
        'monthly income and late payments" leaves no room for it.\n(Your application, declined)'
    )
    own = held.text(**WORDS, rules={clvq.Freeze("late"): "the past is past"})
    assert '"the past is past"' in own
    for wrong in ("{changes}", "{text", 3):
        with pytest.raises(clvq.InvalidInputError, match=r"text for other rows \(otherwise\)"):
            answer().text(otherwise=wrong)  # type: ignore[arg-type]


def test_labels_are_read_and_names_are_kept() -> None:
    text = answer().text(**WORDS)
    assert text.startswith("Your application would have been accepted if ")
    assert "housing were a home you own instead of 0" in text
    assert "it were with a guarantor" in text
    assert not any(name in text for name in ("inc ", "guar ", "The answer"))
    assert {change.feature for change in answer().changes} <= {"inc", "home", "guar", "late"}
    assert "housing" in str(answer())


@pytest.mark.parametrize("sample", NUMBERS)
def test_numbers_hold_when_they_are_typed_in(sample: str) -> None:
    far = clvq.Explainer(
        MODEL, constraints=[clvq.Freeze("home", "guar", "late")], features=FEATURES
    )
    cf = far.explain(ROW, target="good")
    (change,) = cf.shown_changes
    text = cf.text(numbers=sample)
    thousands, decimal = NUMBERS[sample]
    written = text.partition("(")[2].partition(" instead")[0]
    digits = written.replace(thousands, "") if thousands else written
    value = float(digits.replace(decimal, "."))
    assert value == cf.shown.values[0] > 1000
    assert not thousands or thousands in written
    assert MODEL.predict([[value, 0, 0, 3]])[0] == "good"
    assert change.brief().startswith("net monthly income ")


def test_the_weightiest_changes_come_first_and_none_is_lost() -> None:
    assert len(answer().shown_changes) > 2
    text = answer().text(most=1, **WORDS)
    first, _, rest = text.partition(". It also takes ")
    assert rest.startswith(f"{len(answer().shown_changes) - 1} other changes: ")
    weights = {"inc": 0.002, "home": 0.2, "guar": 0.1, "late": 1.0}
    sizes = {
        change.feature: weights[change.feature] * abs(change.difference or 1.0)
        for change in answer().shown_changes
    }
    heaviest = max(sizes, key=lambda name: sizes[name])
    change = next(change for change in answer().shown_changes if change.feature == heaviest)
    assert first.endswith(change.text())
    for other in answer().shown_changes:
        assert other is change or other.brief() in rest or other.feature == heaviest
    assert answer().text(most=9) == answer().text()
    assert pickle.loads(pickle.dumps(answer())).text(most=9) == answer().text()


def test_templates_have_named_places_and_nothing_else() -> None:
    said = answer().text(template="{{{now}}} to {outcome}: {changes}", **WORDS)
    assert said.startswith("{declined} to accepted: ")
    assert "it were with a guarantor" in said
    parts = answer().text(template="{changes}|{others}|{cost}", most=1).split("|")
    assert parts[1].startswith("It also takes ")
    assert parts[2].split()[0] == f"{answer().shown.cost:.6g}"
    for template in ("{x}", "{changes.__class__}", "{0}", "{cost:f}", "{cost!r}", "{", "{}"):
        with pytest.raises(clvq.InvalidInputError, match="template"):
            answer().text(template=template)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"subject": ""}, "subject is ''"),
        ({"outcome": ["accepted"]}, "expected a mapping from label to text"),
        ({"most": 0}, "most is 0"),
        ({"numbers": "1;2"}, "expected one of: '1,234.5'"),
        ({"template": 3}, "template is 3"),
    ],
)
def test_unusable_words_are_refused(said, words) -> None:
    with pytest.raises(clvq.InvalidInputError, match=words):
        answer().text(**said)


def test_rows_without_changes_are_worded_too() -> None:
    there = EXPLAINER.explain([9000, 2, True, 0], target="good")
    assert there.text(**WORDS) == "Your application is accepted already; nothing needs to change."
    stuck = clvq.Explainer(MODEL, constraints=[clvq.Freeze(*FEATURES.names)], features=FEATURES)
    none = stuck.explain(ROW, "good")
    assert none.text(**WORDS).startswith("Your application would not have been accepted by any ")
    assert none.text().startswith("There is no counterfactual for good: ")


def test_pages_use_the_same_words() -> None:
    page = report_html(EXPLAINER, answer(), pictures=False, text={**WORDS, "numbers": "1.234,5"})
    assert answer().text(**WORDS, numbers="1.234,5") in page
    assert "a home you own" in page
    assert "net monthly income" in page
    assert np.isfinite(answer().cost)


# --- years, dates, levels that are numbers, constraints ------------------------------------------


def explained(*features: clvq.Feature, target: float, **settings: Any) -> clvq.Counterfactual:
    """Move the first feature to beyond the middle between 0 and twice the target."""
    names = [feature.name for feature in features]
    places = np.zeros((2, len(names)))
    places[1, 0] = 2 * target
    model = clvq.PrototypeModel(places, ["bad", "good"], feature_names=names)
    explainer = clvq.Explainer(model, features=clvq.Features(features), **settings)
    return explainer.explain(np.zeros(len(names)), target="good")


@pytest.mark.parametrize(
    ("feature", "shown"),
    [
        (clvq.Feature("year_built", "whole"), "year_built were 1974 instead of 0"),
        (clvq.Feature("YrSold", "whole"), "YrSold were 1974 instead of 0"),
        (clvq.Feature("b", "whole", label="year of the car"), "year of the car were 1974 instead"),
        (clvq.Feature("b", "whole", thousands=False), "b were 1974 instead of 0"),
        (clvq.Feature("year", "whole", thousands=True), "year were 1,974 instead of 0"),
        (clvq.Feature("pay_per_year", "whole", unit="EUR"), "(1,974 instead of 0 EUR)"),
        (clvq.Feature("yearly", "whole"), "yearly were 1,974 instead of 0"),
    ],
)
def test_years_have_no_separators(feature: clvq.Feature, shown: str) -> None:
    cf = explained(feature, target=1973.5)
    assert shown in cf.text()
    assert shown.replace(",", "") in cf.text(numbers="1234.5")


def test_levels_that_are_numbers_have_units_and_separators() -> None:
    limits = [0, 500, 2500, 5000]
    feature = clvq.Feature("limit", levels=limits, unit="EUR", label="the limit")
    cf = explained(feature, target=1000)
    assert "the limit were 2,500 instead of 0 EUR." in cf.text()
    assert "the limit were 2.500 instead of 0 EUR." in cf.text(numbers="1.234,5")
    assert cf.changes[0].cells() == ("the limit (EUR)", "0", "2,500", "")


@pytest.mark.parametrize(
    ("sample", "shown"),
    [
        ("2024-05-31", "1970-01-08"),
        ("31.05.2024", "08.01.1970"),
        ("31/05/2024", "08/01/1970"),
        ("05/31/2024", "01/08/1970"),
        ("31 May 2024", "8 January 1970"),
        ("May 31, 2024", "January 8, 1970"),
    ],
)
def test_dates_are_written_as_asked(sample: str, shown: str) -> None:
    cf = explained(clvq.Feature("paid", "date"), target=6.5)
    assert f"paid were 7 days later ({shown} instead of " in cf.text(dates=sample)
    assert "1 day later" in explained(clvq.Feature("paid", "date"), target=0.5).text()


INCOME = clvq.Feature("inc", unit="EUR", label="net income", lower=0)
LATE = clvq.Feature("late", "whole", label="late payments")
HOME = clvq.Feature(
    "home", levels=["own", "rent"], label="housing", level_labels={"own": "a house"}
)
GUARANTOR = clvq.Feature("guar", "boolean", true="with a guarantor")
YEAR = clvq.Feature("year", "whole", label="year of the car")
PAID = clvq.Feature("paid", "date", label="day of payment")
PLAIN_ONE = clvq.Feature("age")


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (clvq.Freeze("inc", "age"), "no change of net income and age"),
        (clvq.Increase("inc"), "no decrease of net income"),
        (clvq.Decrease("late"), "no increase of late payments"),
        (clvq.Bounds("inc", lower=1500), "net income of at least 1,500 EUR"),
        (clvq.Bounds("inc", 1500, 2500.5), "net income from 1,500 to 2,500.5 EUR"),
        (clvq.Bounds("year", upper=1999), "year of the car of at most 1999"),
        (clvq.Bounds("paid", lower=date(2024, 5, 31)), "day of payment no earlier than 2024-05-31"),
        (clvq.MaxChange("inc", 1300), "a change of net income by at most 1,300 EUR"),
        (clvq.MinChange("paid", 14), "a change of day of payment by at least 14 days, or none"),
        (clvq.OneOf("home", ["rent", "own"]), "housing as rent or a house"),
        (clvq.OneOf("late", [0, 2000]), "late payments as 0 or 2,000"),
        ("inc <= 3500", "net income of at most 3,500 EUR"),
        ("-2 * inc <= -3000", "net income of at least 1,500 EUR"),
        ("home != 'own'", "housing other than a house"),
        ("guar == True", "with a guarantor"),
        ("inc <= 2 * original(inc) + age", "net income <= 2 * original(net income) + age"),
        (
            "if inc changes then by at least 50",
            "a change of net income by at least 50 EUR, or none",
        ),
        (
            "if inc > 2000 then guar == True",
            "with net income above 2,000 EUR, it must be with a guarantor",
        ),
        (
            clvq.If(clvq.OneOf("home", ["own"]), then="late <= 2"),
            "with housing as a house, late payments must be at most 2",
        ),
        (
            clvq.If("paid < '2024-05-31'", then=clvq.Freeze("late")),
            "with day of payment before 2024-05-31, no change of late payments",
        ),
        ("age <= 3", "age <= 3"),
        (clvq.Freeze("age"), "no change of age"),
        (clvq.Linear({"inc": 1, "age": -2.5}, "<=", 3000), "net income - 2.5 * age <= 3,000"),
        (
            clvq.MinChange("inc", 50, is_default=True),
            "changes of net income by less than 50 EUR left out",
        ),
    ],
)
def test_constraints_are_said_by_labels(constraint: clvq.Constraint | str, words: str) -> None:
    features = clvq.Features([INCOME, LATE, HOME, GUARANTOR, YEAR, PAID, PLAIN_ONE])

    def write(feature: clvq.Feature, value: Any) -> str:
        if isinstance(value, date):
            return value.isoformat()
        return PLAIN.number(exact_text(value, feature), grouped=feature.groups(value))

    assert plain_words(constraint, features, write) == words


def test_a_boolean_that_stays_is_named_by_what_it_is_now() -> None:
    cf = clvq.Explainer(
        MODEL, None, [clvq.Freeze("guar", "inc", "home", "late")], features=FEATURES
    )
    assert cf.explain(ROW, target="good").text() == (
        'There is no counterfactual for good: "no change of net monthly income, housing and late '
        'payments, still without a guarantor" leaves no room for it.'
    )


def test_tables_of_pages_have_units_behind_levels_that_are_numbers() -> None:
    features = clvq.Features(
        [
            clvq.Feature("term", levels=[12, 1200], unit="months"),
            clvq.Feature("fee", levels=[0, 1500], unit="EUR"),
            clvq.Feature("grade", levels=[1, 2], unit="points", level_labels={1: "A", 2: "B"}),
        ]
    )
    model = clvq.PrototypeModel(
        [[12, 1500, 1], [1200, 1500, 1]], ["no", "yes"], None, ["term", "fee", "grade"]
    )
    cf = clvq.Explainer(model, features=features).explain([12, 1500, 1], target="yes")
    assert [row.before for row in feature_values(cf, {"term": 1.0})] == [
        "12 months", "1,500 EUR", "A",
    ]  # fmt: skip
    assert feature_values(cf, {"term": 1.0})[0].after == "1,200 months"


def test_steps_of_change_are_added_in_decimals() -> None:
    model = clvq.PrototypeModel([[20.0], [2.0]], ["no", "yes"], feature_names=["rate"])
    rate = clvq.Feature("rate", "real", step=2, steps="of change")
    explainer = clvq.Explainer(model, features=clvq.Features([rate]))
    for row in (19.9, 13.9, 13.3, 11.1, 12.7):
        cf = explainer.explain([row], target="yes")
        after = cf.text().partition("(")[2].split()[0]
        assert len(after) <= 4, cf.text()  # 11.9, not 11.899999999999999
        assert model.predict([[float(after)]]).tolist() == ["yes"]
        assert (round(10 * row) - round(10 * float(after))) % 20 == 0


def test_amounts_of_rules_are_written_as_asked() -> None:
    sums = clvq.Linear({"inc": 1, "age": 1000.5}, "<=", 3500.25)
    rules = [clvq.MaxChange("inc", 1200.5), clvq.MinChange("inc", 20000), sums]
    features, write = clvq.Features([INCOME, PLAIN_ONE]), Wording(numbers="1.234,5").value
    assert [plain_words(rule, features, write) for rule in rules] == [
        "a change of net income by at most 1.200,5 EUR",
        "a change of net income by at least 20.000 EUR, or none",
        "net income + 1.000,5 * age <= 3.500,25",
    ]


@pytest.mark.parametrize(
    ("rules", "is_said"),
    [
        (["pay in [3010, 3060]"], True),
        ([clvq.Bounds("pay", 3010, 3040)], True),
        (["pay == 3010"], True),
        (["pay <= 3040", "pay >= 3010"], True),
        (["pay <= 1000"], False),
        (["pay in [50, 3060]"], False),
    ],
    ids=str,
)
def test_conflicts_of_a_step_name_it(rules: list[Any], is_said: bool) -> None:
    pay = clvq.Feature("pay", unit="EUR", label="your pay", step=50)
    model = clvq.PrototypeModel([[1000.0], [3000.0]], ["bad", "good"], feature_names=["pay"])
    explainer = clvq.Explainer(model, constraints=rules, features=clvq.Features([pay]))
    cf = explainer.explain([1549.0], target="good")
    assert cf.status == "infeasible"
    assert ("your pay changes in steps of 50, and none ends there" in cf.text()) == is_said


@pytest.mark.parametrize(
    ("row", "rules", "steps"),
    [
        # From 3,600 on, it is good: there is a number, and no multiple of 500.
        ([1100.0, 0], ["pay <= 3700"], ("pay",)),
        ([1100.0, 0], ["pay <= 3500"], ()),
        ([1100.0, 0], [clvq.MaxChange("pay", 2600)], ("pay",)),
        ([1100.0, 0], [clvq.MaxChange("pay", 2450)], ()),
        # 5 years would do, and 4 without steps; a pay of 3,700 is as good as either.
        ([3400.0, 0], ["pay <= 3499.5", "age <= 4"], ("age",)),
        ([3400.0, 0], [clvq.Freeze("pay"), "age <= 4"], ("age",)),
        ([3400.0, 0], [clvq.Freeze("pay"), "age <= 1"], ()),
    ],
    ids=str,
)
def test_steps_that_are_part_of_a_conflict_are_named(
    row: list[float], rules: list[Any], steps: tuple[str, ...]
) -> None:
    model = clvq.PrototypeModel(
        [[3500.0, -1.0], [3700.0, 1.0]], ["bad", "good"], [[1, 0], [0, 100]], ["pay", "age"]
    )
    grid = [clvq.Feature("pay", "real", step=500, unit="EUR"), clvq.Feature("age", step=5)]
    if len(rules) == 1:
        rules = [*rules, clvq.Freeze("age")]
    explainer = clvq.Explainer(model, None, rules, features=clvq.Features(grid))
    cf = explainer.explain(row, target="good")
    assert (cf.status, cf.conflict_steps) == ("infeasible", steps)
    free = clvq.Features(["pay", clvq.Feature("age", "whole")])
    there = clvq.Explainer(model, None, rules, features=free).explain(row, target="good")
    assert there.status.has_answer == bool(steps)
    step = {"pay": "500 EUR (pay)", "age": "5 (age)"}.get("".join(steps))
    assert cf.text().endswith(f"; without the steps of {step} there would be some.") == bool(steps)
    assert cf.to_dict()["conflict_steps"] == [*steps]
    batch = explainer.explain_batch([row, row], target="good")
    assert [one.conflict_steps for one in batch] == [steps, steps]


def test_conflicts_and_broken_constraints_are_named_by_labels_or_own_words() -> None:
    pay = clvq.Feature("pay", unit="EUR", label="your pay")
    clash = [clvq.Freeze("pay"), "age <= 5"]
    cf = explained(pay, clvq.Feature("age"), target=3, constraints=clash)
    assert cf.text() == (
        'There is no counterfactual for good: "no change of your pay" leaves no room for it.'
    )
    assert cf.to_dict()["conflict"] == ["Freeze('pay')"]
    said = {"subject": "Your loan", "outcome": {"good": "granted"}}
    assert cf.text(**said, rules={clvq.Freeze("pay"): "pay is what it is"}) == (
        'Your loan would not have been granted by any change: "pay is what it is" leaves no room '
        "for it."
    )
    cf = explained(pay, clvq.Feature("age"), target=3, constraints=["pay >= 1"])
    assert cf.text(**said).startswith('Your loan breaks "your pay of at least 1 EUR" as it is')
    assert " It would have been granted if your pay were " in cf.text(**said)
    own = cf.text(**said, template="Dear you, {changes}. {broken}")
    assert own.startswith("Dear you, your pay were")
    assert "; it would not if your pay were " in own.partition("Your loan breaks")[2]
    with pytest.raises(clvq.InvalidInputError, match="rules is 'x'"):
        cf.text(rules="x")  # type: ignore[arg-type]


@pytest.mark.parametrize("constraints", [["pay >= 1"], [clvq.AtMost(1), "pay >= 1"]])
def test_rules_are_named_as_written_or_said_and_others_are_refused(constraints: list[Any]) -> None:
    features = clvq.Features(
        [
            clvq.Feature("pay", unit="EUR", label="your pay", upper=3500),
            clvq.Feature("owns", "boolean", true="with a flat", false="without a flat"),
        ]
    )
    model = clvq.PrototypeModel(
        [[1400, 0], [2600, 0]], ["bad", "good"], feature_names=["pay", "owns"]
    )
    explainer = clvq.Explainer(model, features=features, constraints=constraints)
    rows = [
        {"pay": 1200, "owns": True},  # changes
        {"pay": 3600, "owns": True},  # breaks the range of a feature
        {"pay": 2700, "owns": False},  # is good already
        {"pay": 1000, "owns": "?"},  # cannot be read
    ]
    batch = explainer.explain_batch(rows, target="good", on_bad_rows="report")
    answers = [*batch, *map(batch.sketch, range(4)), *map(explainer.explain, rows[:3])]
    for cf in answers:
        with pytest.raises(clvq.InvalidInputError) as caught:
            cf.text(rules={"pay >= 11": "anything"})
        told = str(caught.value)
        assert told.startswith("rules has words for 'pay >= 11', which is no rule of this question")
        assert "your pay of at least 1 EUR; your pay of at most 3,500 EUR." in told
    said = "we insure up to 3.500 EUR"
    bounds = clvq.Bounds("pay", upper=3500.0)
    words = ("your pay of at most 3,500 EUR", "your pay of at most 3.500 EUR")
    for name in (*words, bounds, str(answers[1].broken[0])):
        text = answers[1].text(rules={name: said}, numbers="1.234,5")
        assert text.startswith(f'This row breaks "{said}" as it is.'), name
    assert answers[0].text(rules={"pay >= 1": "pay"}) == answers[0].text()
    assert pickle.loads(pickle.dumps(answers[0])).text(rules={"pay >= 1": "x"})
    none = clvq.Explainer(model).explain([1200, 0])
    with pytest.raises(clvq.InvalidInputError, match="expected none, because it has none"):
        none.text(rules={"pay >= 1": "x"})


def test_a_page_writes_all_its_numbers_alike() -> None:
    model = clvq.PrototypeModel([[0.25, 1.5], [4.75, 2.25]], ["no", "yes"], None, ["pay", "age"])
    explainer = clvq.Explainer(model, constraints=["pay <= 3.5", clvq.MaxChange("age", 0.5)])
    rows = explainer.explain_batch([[0.5, 0.75], [0.1, 1.5], [3.75, 2.5]], target="yes")
    page = report_html(
        explainer, rows, text={"numbers": "1234,5"}, pictures=False, certificates=False
    )
    said = re.sub(r"<[^>]+>", " ", re.sub(r"(?s)<(script|style)\b.*?</\1>", "", page))
    said = html.unescape(said).replace("pay <= 3.5", "")  # as it was written
    assert re.findall(r"[^ ]*\d\.\d[^ ]*", said) == []
    assert len(re.findall(r"\d,\d", said)) > 20
    with pytest.raises(clvq.InvalidInputError, match="rules has words for 'pay <= 3'"):
        report_html(explainer, rows, text={"rules": {"pay <= 3": "x"}}, pictures=False)


def test_what_is_said_of_a_frozen_state_names_its_rule() -> None:
    features = clvq.Features(
        [clvq.Feature("owns", "boolean", true="with a flat", false="without a flat")]
    )
    model = clvq.PrototypeModel([[0], [1]], ["bad", "good"], feature_names=["owns"])
    freeze = clvq.Freeze("owns")
    cf = clvq.Explainer(model, features=features, constraints=[freeze]).explain({"owns": False})
    assert '"still without a flat" leaves no room' in cf.text()
    for name in ("still without a flat", "with a flat or without a flat, as it is", freeze):
        assert '"it is rented" leaves no room' in cf.text(rules={name: "it is rented"})


def test_decimals_are_shown_as_declared_and_otherwise_as_needed() -> None:
    table = pd.DataFrame({"fee": [20.5 + k for k in range(30)] + [3.1416]})
    model = clvq.PrototypeModel([[1.25], [21.25]], ["no", "yes"], feature_names=["fee"])
    seen = clvq.Features.from_frame(table, decimals="seen", ranges=None)
    assert seen["fee"] == clvq.Feature("fee", decimals=4, zeros=False)
    declared = seen.refined(decimals={"fee": 4})
    assert declared["fee"] == clvq.Feature("fee", decimals=4)
    assert seen.refined(units={"fee": "EUR"})["fee"].zeros is False
    assert clvq.Reference.of(table).with_digits(clvq.Features(["fee"]))["fee"].zeros is False
    texts = [
        clvq.Explainer(model, features=features).explain({"fee": 10.5}, target="yes").text()
        for features in (seen, declared, declared.refined(zeros={"fee": False}))
    ]
    needed = "fee were 0.7501 higher (11.2501 instead of 10.5)"
    assert [needed in text for text in texts] == [True, False, True]
    assert "fee were 0.7501 higher (11.2501 instead of 10.5000)" in texts[1]
    rule = plain_words(clvq.Bounds("fee", upper=20.5), declared, PLAIN.value)
    assert rule == "fee of at most 20.5000"
    assert plain_words(clvq.Bounds("fee", upper=20.5), seen, PLAIN.value) == "fee of at most 20.5"
    assert eval(repr(seen["fee"]), {"Feature": clvq.Feature}) == seen["fee"]
    with pytest.raises(clvq.InvalidInputError, match=r"zeros='no'; expected True or False"):
        clvq.Feature("fee", zeros="no")  # type: ignore[arg-type]


@pytest.mark.parametrize("place", ["{changes:>3}", "{changes!r}", "{Changes}", "{0}"])
def test_places_that_cannot_be_filled_are_named_as_they_are_written(place: str) -> None:
    with pytest.raises(clvq.InvalidInputError) as caught:
        answer().text(template=f"Dear you, {place}")
    assert f"the template has the place {place!r}; expected one of: " in str(caught.value)


def test_places_that_stay_empty_leave_no_room_behind() -> None:
    cf = explained(clvq.Feature("pay"), target=3)
    assert cf.text(template="A {missing} b.{others}\n{missing}\n\nYours").endswith("A b.\n\nYours")


def test_words_for_what_a_model_never_says_are_refused() -> None:
    cf = explained(clvq.Feature("pay"), target=3)
    with pytest.raises(clvq.UnknownLabelError, match=r"'goood'.*Did you mean 'good'\?"):
        cf.text(outcome={"goood": "accepted"})
    assert "accepted" in cf.text(outcome={"good": "accepted", "bad": "declined"})


def test_a_list_of_changes_stands_by_itself_and_booleans_are_said_in_words() -> None:
    cf = explained(clvq.Feature("pay", unit="EUR"), target=3)
    assert cf.text(template="To be {outcome}: {list}.").startswith("To be good: pay ")
    assert Change("guarantor", False, True, is_level=True).text() == (
        "guarantor were yes instead of no"
    )


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("inc >= original(inc)", "no decrease of your income"),
        ("inc <= 1.5 * original(inc)", "your income of at most 1.5 times as much as now"),
        ("original(inc) + 200 >= inc", "an increase of your income by at most 200 EUR"),
        ("inc >= original(inc) - 200", "a decrease of your income by at most 200 EUR"),
        ("-inc >= -3500", "your income of at most 3,500 EUR"),
        ("inc + late <= 3", "your income + late payments <= 3"),
        (
            "if inc >= 5000 then months >= 24",
            "with your income at 5,000 EUR or more, the term must be at least 24 months",
        ),
        (
            "if inc < 900 then guar == True",
            "with your income below 900 EUR, it must be with a bond",
        ),
        (
            "if guar == False then inc <= 900",
            "if it is without a bond, your income must be at most 900 EUR",
        ),
        ("if late > 2 then stu == False", "with late payments above 2, student must be no"),
        (
            "if home != 'own' then months in [12, 24]",
            "with your housing other than a home of your own, the term must be 12 or 24 months",
        ),
        (
            "if late < original(late) then home != 'own'",
            "with a decrease of late payments, your housing must not be a home of your own",
        ),
        (
            "if day >= 2026-01-05 then day <= 2026-02-01",
            "with the day from 2026-01-05 on, the day must be no later than 2026-02-01",
        ),
        ("day in ['2026-01-02', '2026-01-03']", "the day as 2026-01-02 or 2026-01-03"),
        ("day >= original(day) + 7", "the day at least 7 days later"),
        (clvq.Bounds("day", upper=date(2026, 3, 1)), "the day no later than 2026-03-01"),
        (clvq.Increase("day", "inc"), "no decrease of your income, the day not earlier"),
        (clvq.OneOf("months", [12, 24]), "the term as 12 or 24 months"),
        (clvq.OneOf("guar", [True]), "with a bond"),
        (clvq.Freeze("guar"), "with a bond or without a bond, as it is"),
        (
            clvq.If(clvq.Bounds("inc", lower=5), clvq.OneOf("guar", [True])),
            "with your income at 5 EUR or more, it must be with a bond",
        ),
        (
            clvq.If(clvq.OneOf("home", ["rent"]), clvq.Freeze("inc")),
            "with your housing as rent, no change of your income",
        ),
    ],
    ids=str,
)
def test_rules_are_said_to_people_who_have_not_written_them(rule: Any, words: str) -> None:
    features = clvq.Features(
        [
            clvq.Feature("inc", unit="EUR", label="your income"),
            clvq.Feature("late", "whole", label="late payments"),
            clvq.Feature("months", levels=[12, 24, 60], unit="months", label="the term"),
            clvq.Feature(
                "home",
                levels=["own", "rent"],
                label="your housing",
                level_labels={"own": "a home of your own"},
            ),
            clvq.Feature("guar", "boolean", true="with a bond", false="without a bond"),
            clvq.Feature("stu", "boolean", label="student"),
            clvq.Feature("day", "date", label="the day"),
        ]
    )
    assert plain_words(rule, features, PLAIN.value) == words
