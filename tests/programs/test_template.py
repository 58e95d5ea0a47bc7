"""What a template says of its own conditions."""

from __future__ import annotations

import numpy as np
import pytest

import counterlvq as clvq


@pytest.mark.parametrize(
    ("constraints", "can_be_broken"),
    [
        ([], False),
        ([clvq.Freeze("a")], False),
        ([clvq.MaxChange("a", 0.0), clvq.Increase("b"), clvq.Decrease("c")], False),
        (["a - b <= original(a) - original(b)"], False),
        (["a + b == original(a) + original(b)"], False),
        (["a + b == original(a) + original(b) + 1"], True),
        (["a >= original(a) + 1"], True),
        ([clvq.Bounds("a", 0.0, 1.0)], True),
        (["a <= b"], True),
        (["a <= 1.5 * original(a)"], True),
        ([clvq.Freeze("a"), "a == 3"], True),
        ([clvq.Quadratic(np.eye(3), 4.0)], True),
        ([clvq.OneOf("a", [0.0, 1.0])], True),
    ],
    ids=repr,
)
def test_inputs_keep_what_is_said_of_changes_alone(
    constraints: list[object], can_be_broken: bool
) -> None:
    model = clvq.PrototypeModel(
        [[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]], ["no", "yes"], feature_names=["a", "b", "c"]
    )
    explainer = clvq.Explainer(model, constraints=constraints)
    view = explainer.prepared_for()
    assert view.rules.template.holds_unchanged == (not can_be_broken)
    rows = np.random.default_rng(0).normal(size=(50, 3)) * 5
    broken = explainer.explain_batch(rows, "yes").breaks_rules
    assert broken.any() == can_be_broken
