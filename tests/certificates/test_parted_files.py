"""Certificate files of answers with a confidence, and of plausible ones: the exact checker judges.

The checker shares no code with the search. What is tampered with has to be refuted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import counterlvq as clvq
from counterlvq.certificates import check_certificate as exactly

MODEL = clvq.PrototypeModel(
    [[0, 0], [4, 1], [1, 5], [5, 5]], ["a", "b", "c", "b"], [[1.0, 0.2], [0.0, 0.7]]
)
COSTS = {"l1": clvq.Manhattan(), "l2": clvq.Euclidean(), "largest": clvq.Chebyshev([1.0, 0.5])}
RULES = {
    "noise l1": clvq.Noise(0.4, "l1"),
    "noise l2": clvq.Noise(0.4, "l2", [1.0, 2.0]),
    "noise linf": clvq.Noise(0.4, "linf"),
    "similarity": clvq.RelativeSimilarity(0.4),
    "drift": clvq.Drift(0.2),
}


def said(path: Path) -> list[str]:
    out: list[str] = []
    exactly.main([str(path)], out.append)
    return out


def filed(explainer: clvq.Explainer, cf: clvq.Counterfactual, path: Path) -> list[Any]:
    clvq.save_certificate(cf, path, explainer)
    assert said(path)[0].startswith("VERIFIED"), said(path)
    assert clvq.verify_certificates(path)[0].verified
    return [json.loads(line) for line in path.read_text().splitlines()]


def changed(path: Path, values: list[Any], change: Callable[[list[Any]], None]) -> str:
    """What the checker says of a file in which something was changed, hashes and all."""
    copied = json.loads(json.dumps(values))
    change(copied)
    model, question = (exactly.parsed(json.dumps(copied[0][key])) for key in ("model", "question"))
    copied[1]["hashes"] = {
        "model": exactly.fingerprint(model),
        "question": exactly.fingerprint(question),
    }
    path.write_text("\n".join(map(json.dumps, copied)))
    return said(path)[0]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("cost", COSTS)
def test_the_exact_checker_accepts_a_confidence(rule: str, cost: str, tmp_path: Path) -> None:
    explainer = clvq.Explainer(MODEL, COSTS[cost], confidence=RULES[rule])
    cf = explainer.explain([1.0, 1.0], target="b")
    path = tmp_path / "sure.jsonl"
    header, line = filed(explainer, cf, path)
    assert line["answer"]["status"] == "optimal"
    assert cf.cost == pytest.approx(line["answer"]["lower_bound"], rel=1e-6)

    def claim_more(values: list[Any]) -> None:
        values[1]["answer"]["lower_bound"] *= 1.0001

    def ask_for_more(values: list[Any]) -> None:
        asked = values[0]["question"]["confidence"]
        key = "theta" if "theta" in asked else "radius"
        asked[key] *= 1.01

    def leave_out_a_prototype(values: list[Any]) -> None:
        del values[1]["proof"]["parts"][0]

    def ask_for_nothing(values: list[Any]) -> None:
        del values[0]["question"]["confidence"]

    for lie, words in (
        (claim_more, "does not follow"),
        (ask_for_more, "does not have the confidence"),
        (leave_out_a_prototype, "does not follow"),
        (ask_for_nothing, "in parts"),
    ):
        assert words in changed(path, [header, line], lie), lie.__name__


@pytest.mark.parametrize("cost", ["l1", "largest"])
def test_a_probability_is_a_lead(cost: str, tmp_path: Path) -> None:
    X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.5], [3.0, 0.5]])
    fitted = LogisticRegression().fit(X, ["no", "no", "yes", "yes"])
    explainer = clvq.Explainer(fitted, COSTS[cost], confidence=clvq.Probability(0.9))
    cf = explainer.explain([0.0, 1.0], target="yes")
    header, line = filed(explainer, cf, tmp_path / "a.jsonl")
    assert header["question"]["confidence"]["kind"] == "lead"
    assert line["answer"]["status"] == "optimal"


def test_few_changes_levels_and_local_metrics(tmp_path: Path) -> None:
    few = clvq.Explainer(MODEL, clvq.Euclidean(), [clvq.AtMost(1)], confidence=RULES["similarity"])
    local = clvq.PrototypeModel(
        [[0, 0], [4, 1]], ["a", "b"], [np.eye(2), np.array([[2.0, 0.5], [0.0, 1.0]])]
    )
    similar = clvq.Explainer(local, confidence=clvq.RelativeSimilarity(0.3))
    largest = [
        clvq.Explainer(model, COSTS["largest"], [clvq.AtMost(1)], confidence=RULES["similarity"])
        for model in (MODEL, local)
    ]
    for n, explainer in enumerate((few, similar, *largest)):
        cf = explainer.explain([1.0, 1.0], target="b")
        _, line = filed(explainer, cf, tmp_path / f"{n}.jsonl")
        assert line["answer"]["status"] == "optimal"


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_a_column_that_stays_gains_nothing_where_the_input_breaks_its_bound(
    norm: str, tmp_path: Path
) -> None:
    points = [[2, 4, -2], [0, -3, 1], [0, -3, -4], [1, -3, 3], [1, -4, -4]]
    model = clvq.PrototypeModel(points, ["a", "b", "b", "b", "a"], None, ["x", "y", "z"])
    price = clvq.Manhattan(increase=[2, 3, 2], decrease=[5, 2, 1])
    # Below its bound y alone leads to the far "a"; the near one is above.
    rules = [clvq.Bounds("y", upper=-3), clvq.AtMost(1)]
    explainer = clvq.Explainer(model, price, rules, confidence=clvq.Noise(0.5, norm))
    cf = explainer.explain([1.0, -2.75, 2.75], target="a")
    path = tmp_path / "stays.jsonl"
    header, line = filed(explainer, cf, path)
    assert line["answer"]["status"] == "optimal"
    assert line["answer"]["lower_bound"] == pytest.approx(cf.cost, rel=1e-6)
    parts = [node for part in line["proof"]["parts"] for node in part["proof"]["counted"]]
    assert any(cell["kind"] == "single" for part in parts for cell in part.get("cells", ()))

    def allow_two_changes(values: list[Any]) -> None:
        values[0]["question"]["constraints"][-1]["count"] = 2

    assert "does not follow" in changed(path, [header, line], allow_two_changes)


@pytest.mark.parametrize("cost", ["l1", "largest"])
@pytest.mark.parametrize("rule", ["noise l2", "similarity", "drift"])
def test_no_answer_is_proved(rule: str, cost: str, tmp_path: Path) -> None:
    box = [clvq.Bounds(0, -1, 1.5), clvq.Bounds(1, -1, 1)]
    explainer = clvq.Explainer(MODEL, COSTS[cost], box, confidence=RULES[rule])
    cf = explainer.explain([1.0, 1.0], target="b")
    assert cf.status == "infeasible"
    header, line = filed(explainer, cf, tmp_path / "none.jsonl")

    def widen(values: list[Any]) -> None:
        for item in values[0]["question"]["constraints"]:
            item["value"] = 9.0

    told = changed(tmp_path / "none.jsonl", [header, line], widen)
    assert "does not show" in told


def test_a_drift_over_the_prototype_needs_no_proof(tmp_path: Path) -> None:
    explainer = clvq.Explainer(MODEL, confidence=clvq.Drift(9.0))
    cf = explainer.explain([1.0, 1.0], target="b")
    assert cf.status == "infeasible"
    filed(explainer, cf, tmp_path / "none.jsonl")


@pytest.mark.parametrize("theta", [1e-9, 0.5])
@pytest.mark.parametrize("omega", [None, [[1.0, 0.2], [0.0, 0.7]], [[1.0, 0.0]]])
def test_a_rival_on_the_prototype_leaves_no_similarity(
    theta: float, omega: list[list[float]] | None, tmp_path: Path
) -> None:
    """By the definition: both distances agree everywhere, and their difference is 0 of their sum.

    The metric of one row sees nothing of the second column, in which the two may differ.
    """
    other = [4.0, 3.0] if omega is not None and len(omega) == 1 else [4.0, 0.0]
    model = clvq.PrototypeModel([[4.0, 0.0], other, [0.0, 0.0]], ["b", "c", "a"], omega)
    path = tmp_path / "none.jsonl"
    for target in ("b", "c", ["b", "c"]):
        explainer = clvq.Explainer(model, confidence=clvq.RelativeSimilarity(theta))
        cf = explainer.explain([0.0, 1.0], target=target)
        assert cf.status == "infeasible"
        assert explainer.verify(cf) == cf.lower_bound == np.inf
        header, line = filed(explainer, cf, path)

        def move(values: list[Any]) -> None:
            values[0]["model"]["prototypes"][1] = [4.5, 0.0]

        if target == "b":
            assert "does not show" in changed(path, [header, line], move)
    at_both = clvq.Explainer(model, confidence=clvq.RelativeSimilarity(theta))
    assert at_both.explain([4.0, 0.0], target="b").status == "infeasible"
    surely = clvq.Explainer(model, confidence=clvq.RelativeSimilarity(0.0))
    assert surely.explain([4.0, 0.0], target="b").cost == 0.0


def test_an_answer_on_two_prototypes_is_refused(tmp_path: Path) -> None:
    model = clvq.PrototypeModel([[4.0, 0.0], [5.0, 0.0], [0.0, 0.0]], ["b", "c", "a"])
    explainer = clvq.Explainer(model, confidence=clvq.RelativeSimilarity(0.5))
    path = tmp_path / "both.jsonl"
    header, line = filed(explainer, explainer.explain([4.0, 0.0], target="b"), path)

    def put_the_rival_there(values: list[Any]) -> None:
        values[0]["model"]["prototypes"][1] = [4.0, 0.0]

    told = changed(path, [header, line], put_the_rival_there)
    assert "does not have the confidence" in told


@pytest.mark.parametrize("cost", COSTS)
def test_the_exact_checker_accepts_plausible_answers(cost: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(40, 2)) * 0.4 + at for at in MODEL.prototypes])
    likely = clvq.Plausible.fit(rows, np.repeat(MODEL.labels, 40), share=0.8)
    explainer = clvq.Explainer(MODEL, COSTS[cost], [likely])
    cf = explainer.explain([1.0, 1.0], target=["b", "c"])
    header, line = filed(explainer, cf, tmp_path / "a.jsonl")
    assert line["answer"]["status"] == "optimal"

    def shrink(values: list[Any]) -> None:
        for each in values[0]["question"]["constraints"][0]["ellipsoids"]:
            each["value"] *= 0.9

    def leave_out_an_ellipsoid(values: list[Any]) -> None:
        del values[1]["proof"]["parts"][-1]

    def swap(values: list[Any]) -> None:
        for each in values[0]["question"]["constraints"][0]["ellipsoids"]:
            each["class"] = 0

    for lie, words in (
        (shrink, "no ellipsoid of its label"),
        (leave_out_an_ellipsoid, "does not follow"),
        (swap, "no ellipsoid of its label"),
    ):
        assert words in changed(tmp_path / "a.jsonl", [header, line], lie), lie.__name__


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("seed", [0, 2, 5])
def test_no_room_for_plausible_answers_is_proved(seed: int, cost: str, tmp_path: Path) -> None:
    """A row runs along the border of the cell, but for rounding that ellipsoids make up for."""
    rng = np.random.default_rng(seed)
    centers = 2.0 * rng.normal(size=(2, 2))
    y = np.repeat(["no", "yes"], 60)
    X = np.repeat(centers, 60, axis=0) + rng.normal(size=(120, 2))
    likely = clvq.Plausible.fit(X, y, share=0.9)
    model = clvq.PrototypeModel(centers, ["no", "yes"])
    way = centers[1] - centers[0]
    most = float(way @ (centers[0] + 0.3 * way))
    row = clvq.Linear(dict(enumerate(way)), "<=", most)
    explainer = clvq.Explainer(model, COSTS[cost], [likely, row])
    cf = explainer.explain(X[0], target="yes")
    assert cf.status == "infeasible"
    without = clvq.Explainer(model, COSTS[cost], [likely]).explain(X[0], target="yes")
    assert without.status == "optimal"
    filed(explainer, cf, tmp_path / "none.jsonl")


@pytest.mark.parametrize("cost", COSTS)
def test_no_plausible_answer_by_one_change_is_proved(cost: str) -> None:
    """Seen along either axis the ball of the class is out of sight."""
    rng = np.random.default_rng(7)
    ring = rng.normal(size=(60, 2))
    X = np.concatenate([ring, ring + 12.0])
    likely = clvq.Plausible.fit(X, np.repeat(["no", "yes"], 60), share=0.9, components=1)
    model = clvq.PrototypeModel([[0.0, 0.0], [12.0, 12.0]], ["no", "yes"])
    explainer = clvq.Explainer(model, COSTS[cost], [likely, clvq.AtMost(1)])
    cf = explainer.explain([0.1, -0.2], target="yes")
    assert cf.status == "infeasible"
    assert explainer.verify(cf) == np.inf


def test_vipr_has_no_words_for_them(tmp_path: Path) -> None:
    for rule in (clvq.Noise(0.1), clvq.Drift(0.1)):
        explainer = clvq.Explainer(MODEL, confidence=rule)
        batch = explainer.explain_batch([[1.0, 1.0]], target="b")
        with pytest.raises(clvq.NotSupportedError, match="asks for a confidence"):
            batch.save_vipr(tmp_path / "folder")


def test_rules_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    explainer = clvq.Explainer(MODEL, confidence=clvq.RelativeSimilarity(0.2))
    values = filed(explainer, explainer.explain([1.0, 1.0], target="b"), tmp_path / "a.jsonl")

    def told(**rule: Any) -> str:
        def change(item: list[Any]) -> None:
            item[0]["question"]["confidence"] = rule

        return changed(tmp_path / "b.jsonl", values, change)

    assert "1 or more" in told(kind="similarity", theta=1.0)
    assert "not known" in told(kind="hope")
    assert "not all positive" in told(kind="noise", radius=1.0, norm="l2", weights=[1.0, 0.0])
    assert "tangents" in told(kind="lead", value=0.0)
