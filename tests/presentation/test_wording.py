"""Texts for letters: words, separators, templates, and numbers that still hold."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.presentation.wording import NUMBERS
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
CF = EXPLAINER.explain(ROW, target="good")
WORDS = {"subject": "Your application", "outcome": {"good": "accepted", "bad": "declined"}}


def test_labels_are_read_and_names_are_kept() -> None:
    text = CF.text(**WORDS)
    assert text.startswith("Your application would have been accepted if ")
    assert "housing were a home you own instead of 0" in text
    assert "it were with a guarantor" in text
    assert not any(name in text for name in ("inc ", "guar ", "The answer"))
    assert {change.feature for change in CF.changes} <= {"inc", "home", "guar", "late"}
    assert "housing" in str(CF)


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
    assert len(CF.shown_changes) > 2
    text = CF.text(most=1, **WORDS)
    first, _, rest = text.partition(". It also takes ")
    assert rest.startswith(f"{len(CF.shown_changes) - 1} other changes: ")
    weights = {"inc": 0.002, "home": 0.2, "guar": 0.1, "late": 1.0}
    sizes = {
        change.feature: weights[change.feature] * abs(change.difference or 1.0)
        for change in CF.shown_changes
    }
    heaviest = max(sizes, key=lambda name: sizes[name])
    change = next(change for change in CF.shown_changes if change.feature == heaviest)
    assert first.endswith(change.text())
    for other in CF.shown_changes:
        assert other is change or other.brief() in rest or other.feature == heaviest
    assert CF.text(most=9) == CF.text()
    assert pickle.loads(pickle.dumps(CF)).text(most=9) == CF.text()


def test_templates_have_named_places_and_nothing_else() -> None:
    said = CF.text(template="{{{now}}} to {outcome}: {changes}", **WORDS)
    assert said.startswith("{declined} to accepted: ")
    assert "it were with a guarantor" in said
    parts = CF.text(template="{changes}|{others}|{cost}", most=1).split("|")
    assert parts[1].startswith("It also takes ")
    assert parts[2].split()[0] == f"{CF.shown.cost:.6g}"
    for template in ("{x}", "{changes.__class__}", "{0}", "{cost:f}", "{cost!r}", "{", "{}"):
        with pytest.raises(clvq.InvalidInputError, match="template"):
            CF.text(template=template)


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
        CF.text(**said)


def test_rows_without_changes_are_worded_too() -> None:
    there = EXPLAINER.explain([9000, 2, True, 0], target="good")
    assert there.text(**WORDS) == "Your application is accepted already; nothing needs to change."
    stuck = clvq.Explainer(MODEL, constraints=[clvq.Freeze(*FEATURES.names)], features=FEATURES)
    assert "no counterfactual for accepted" in stuck.explain(ROW, "good").text(**WORDS)


def test_pages_use_the_same_words() -> None:
    page = report_html(EXPLAINER, CF, pictures=False, text={**WORDS, "numbers": "1.234,5"})
    assert CF.text(**WORDS, numbers="1.234,5") in page
    assert "a home you own" in page
    assert "net monthly income" in page
    assert np.isfinite(CF.cost)
