"""Two kinds of scores, told apart in the model and in its file."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.types import Meaning, Response, Scores

SCORE = Response("score", 1, threshold=640.0, slope=20.0)
CHANCE = Response("probability", 0, threshold=0.08, is_probability=True)
MEANINGS = [
    Meaning("cluster"),
    Meaning("class", Scores.SHIFTED),
    Meaning("class", Scores.SHIFTED, SCORE),
    Meaning("class", Scores.SHIFTED, CHANCE),
    Meaning("component", Scores.SHIFTED, odds=0.5),
    Meaning(unit=2.0**-24),
]


def model(meaning: Meaning | None = None) -> clvq.PrototypeModel:
    points = [[0.0, 0.5], [4.0, -1.0]]
    return clvq.PrototypeModel(
        points, ["no", "yes"], np.eye(2), offsets=[0.0, 0.25], meaning=meaning
    )


def saved(given: clvq.PrototypeModel) -> tuple[bytes, dict[str, Any]]:
    file = io.BytesIO()
    clvq.save(given, file)
    whole = file.getvalue()
    header = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])
    return whole, json.loads(header["__metadata__"]["counterlvq"])


@pytest.mark.parametrize("meaning", MEANINGS)
def test_meaning_comes_back(meaning: Meaning) -> None:
    whole, document = saved(model(meaning))
    assert document["version"] == 4
    assert clvq.load(io.BytesIO(whole)).meaning == meaning


def test_plain_prototypes_stay_readable_for_older_releases() -> None:
    whole, document = saved(model())
    assert document["version"] == 1
    assert "meaning" not in document["model"]
    assert clvq.load(io.BytesIO(whole)).meaning == Meaning()


def test_a_restated_model_means_the_same() -> None:
    table_map = clvq.pipelines.TableMap.identity(("a", "b"))
    assert table_map.pulled_back(model(MEANINGS[2])).meaning == MEANINGS[2]


def changed(meaning: Any) -> bytes:
    """The file of a model with something else where its meaning was."""
    whole, document = saved(model(MEANINGS[2]))
    document["model"]["meaning"] = meaning
    start = 8 + int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8:start])
    header["__metadata__"]["counterlvq"] = json.dumps(document)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + whole[start:]


RESPONSE = {"name": "score", "label": 1, "threshold": 1.0, "slope": 1.0, "is_probability": False}


@pytest.mark.parametrize(
    ("meaning", "words"),
    [
        ({"part": "class", "scores": "odd"}, "expected 'distance' or 'shifted' or 'angle'"),
        ({"part": "", "scores": "shifted"}, "0 letters; expected 1 to 80"),
        ({"part": "x" * 81, "scores": "shifted"}, "81 letters"),
        ({"part": "class", "scores": "shifted", "more": 1}, "which this format does not have"),
        ({"part": 1, "scores": "shifted"}, "is a whole number; expected text"),
        ({"part": "class", "scores": "shifted", "odds": 0.0}, "odds is 0; expected"),
        ({"part": "class", "scores": "shifted", "odds": "1"}, "expected a number"),
        ({"part": "class", "scores": "shifted", "unit": 0.0}, "unit is 0; expected a number from"),
        ({"part": "class", "scores": "shifted", "unit": 0.5}, "unit is 0.5; expected"),
        ("class", "expected an object"),
        ({"part": "class", "scores": "shifted", "response": RESPONSE | {"slope": 0.0}}, "slope"),
        ({"part": "class", "scores": "shifted", "response": RESPONSE | {"label": 2}}, "0 or 1"),
        (
            {
                "part": "class",
                "scores": "shifted",
                "response": RESPONSE | {"is_probability": True},
            },
            "a probability between 0 and 1",
        ),
    ],
)
def test_meanings_of_strangers_are_refused_in_words(meaning: Any, words: str) -> None:
    with pytest.raises(clvq.ModelFileError, match=words):
        clvq.load(io.BytesIO(changed(meaning)))


def test_the_way_to_change_a_file_is_sound() -> None:
    read = clvq.load(io.BytesIO(changed({"part": "cluster", "scores": "shifted"})))
    assert read.meaning == Meaning("cluster", Scores.SHIFTED)


@pytest.mark.parametrize("unit", [0.0, -1.0, 1.0, np.nan])
def test_units_are_those_of_floats(unit: float) -> None:
    with pytest.raises(clvq.InvalidInputError, match="unit of rounding"):
        model(Meaning(unit=unit))


@pytest.mark.parametrize("odds", [0.0, -1.0, np.inf, np.nan])
def test_odds_are_above_0(odds: float) -> None:
    with pytest.raises(clvq.InvalidInputError, match="expected a finite number above 0"):
        model(Meaning("class", Scores.SHIFTED, odds=odds))


def test_a_response_needs_two_classes() -> None:
    with pytest.raises(clvq.InvalidInputError, match="two classes"):
        clvq.PrototypeModel([[0.0], [1.0], [2.0]], ["a", "b", "c"], meaning=Meaning(response=SCORE))


def test_what_needs_distances_is_refused() -> None:
    model().require_distances("Drift")
    with pytest.raises(clvq.NotSupportedError, match="Drift needs squared distances"):
        model(MEANINGS[1]).require_distances("Drift")
    with pytest.raises(clvq.InvalidInputError, match="expected a Meaning"):
        model("class")  # type: ignore[arg-type]


@pytest.mark.parametrize("lead", [-800.0, -3.0, 0.0, 2.5, 800.0])
def test_a_response_is_what_its_link_says(lead: float) -> None:
    assert SCORE.at(lead) == 640.0 + 20.0 * lead
    odds = np.log(0.08 / 0.92) + lead
    assert CHANCE.at(lead) == pytest.approx(np.exp(-np.logaddexp(0.0, -odds)), rel=1e-12, abs=0)
