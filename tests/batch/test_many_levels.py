"""What rows with different levels share in a batch: models, templates, judgements."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pytest

import counterlvq as clvq
from counterlvq.batch.ways import BatchWay
from counterlvq.certificates.acceptance import Acceptance
from counterlvq.pipelines.restated import restated
from counterlvq.prepared import Prepared
from counterlvq.row_models import RowModels
from counterlvq.search.strategies import BranchAndBound
from tests.search.test_compiled_boxes import shop

SHARED = ["age >= original(age)"]
RULES: list[Any] = [
    *SHARED, "if job == 'nurse' then income >= 2", clvq.OneOf("job", ["nurse", "smith"]),
]  # fmt: skip


def explainer(rules: list[Any], **more: Any) -> clvq.Explainer:
    model, table = shop()
    price = clvq.Manhattan(clvq.mad_weights(table), **more)
    return clvq.Explainer(model, price, rules, features=table)


def each_level(table: pd.DataFrame) -> pd.DataFrame:
    """One row of each combination of levels, within all ranges."""
    return table.groupby(["job", "home"]).head(1).assign(age=40, income=2.5)


def test_models_of_rows_are_the_models() -> None:
    asked, rows = explainer(SHARED), each_level(shop()[1])
    X = asked._source.read(asked._source.seen(rows)).values
    views = [asked.prepared_for(row) for row in X]
    x = np.array([view.inner(row) for view, row in zip(views, X, strict=True)])
    stacked = RowModels.of([view.model for view in views], np.arange(len(X)))
    assert stacked.blur is not None
    reach = np.full(x.shape, 0.5)
    for i, view in enumerate(views):
        one, own = x[i : i + 1], view.model.blur
        assert own is not None
        assert stacked.distances_of_checked(x)[i] == pytest.approx(
            view.model.distances(one)[0], rel=1e-13
        )
        assert stacked.blur.of_scores(x)[i].tolist() == own.of_scores(one)[0].tolist()
        wide = stacked.blur.over_boxes(x - reach, x + reach)[i]
        assert wide.tolist() == own.over_box(x[i] - reach[i], x[i] + reach[i]).tolist()


def test_prototypes_are_carried_over_from_one_level_to_another() -> None:
    """Distances are those of the user's own pipeline, within the blur that is claimed."""
    asked, (model, table) = explainer(SHARED), shop()
    rows = each_level(table)
    X = asked._source.read(asked._source.seen(rows)).values
    last = model[-1]
    images = np.asarray(model[:-1].transform(rows)) @ last.omegas_.T
    meant = ((images[:, None, :] - last.prototypes_ @ last.omegas_.T) ** 2).sum(axis=-1)
    for row, scores in zip(X, meant, strict=True):
        view = asked.prepared_for(row)
        there = view.inner(row)[None]
        blur = view.model.blur
        assert blur is not None
        assert (blur.of_scores(there) < 1e-11).all()
        assert view.model.distances(there)[0] == pytest.approx(scores, rel=1e-10)


def test_templates_are_shared_where_they_say_the_same() -> None:
    rows = each_level(shop()[1])

    def templates(asked: clvq.Explainer) -> int:
        X = asked._source.read(asked._source.seen(rows)).values
        return len({id(asked.prepared_for(row).template) for row in X})

    assert templates(explainer(SHARED)) == 1
    assert templates(explainer(RULES)) == rows.job.nunique() < len(rows)  # no rule is about homes
    pairs = {"job": {("clerk", "nurse"): 3.0}}
    assert 1 < templates(explainer(SHARED, switches=pairs, default=1.0)) < len(rows)


SKEWED = clvq.Mahalanobis(np.array([[0.01, 0.005], [0.005, 1.0]]))


def assert_same(one: Any, other: Any, names: list[str]) -> None:
    """To the last bit."""
    for name in names:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


@pytest.mark.parametrize("cost", [clvq.Manhattan(), SKEWED], ids=["absolute", "squared"])
def test_what_is_prepared_at_once_is_what_each_prepares_alone(cost: clvq.Cost) -> None:
    (model, table), mask = shop(), np.array([False, False, True, True])
    rows = each_level(table)
    together, alone = (clvq.Explainer(model, cost, SHARED, features=table) for _ in range(2))
    X = together._source.read(together._source.seen(rows)).values
    views = together.prepared_for_each(X)
    BranchAndBound.prepare_each([strategy(view) for view in views], mask)
    for row, view in zip(X, views, strict=True):
        own = alone.prepared_for(row)
        names = ["prototypes", "omegas", "center", "anchors", "anchor_errors", "column_lengths"]
        assert_same(view.model, own.model, names)
        assert view.model.blur is not None
        assert own.model.blur is not None
        names = [part.name for part in fields(own.model.blur)]
        assert_same(view.model.blur, own.model.blur, names)
        there, here = (strategy(each).prepared(mask).kernel for each in (view, own))
        assert there is not None
        assert here is not None
        assert_same(there.family, here.family, [part.name for part in fields(here.family)])
        stated = here.flat.stated
        assert_same(there.flat.stated, stated, [part.name for part in fields(stated)])
        assert_same(there.flat, here.flat, ["extent"])


def strategy(view: Prepared) -> BranchAndBound:
    answers = view.answers
    assert isinstance(answers, BranchAndBound)
    return answers


def test_no_combination_of_levels_is_prepared_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, asked = each_level(shop()[1]), explainer(RULES)
    assert asked.batch_way is BatchWay.LATTICE  # by the levels that come first
    spied = {
        path: MagicMock(side_effect=getattr(import_module(path.rpartition(".")[0]), name))
        for path, name in (
            ("counterlvq.search.prepared_cells.family_of", "family_of"),
            ("counterlvq.certificates.packed_boxes.proof_data_of", "proof_data_of"),
            ("counterlvq.pipelines.table_map.restated", "restated"),
        )
    }
    for path, spy in spied.items():
        monkeypatch.setattr(path, spy)
    batch = asked.explain_batch(rows)
    assert not batch.second_engine.any()
    # One row tells how large blocks may be.
    assert [spy.call_count for spy in spied.values()] == [0, 0, 1]


def test_more_combinations_than_are_kept_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes the place of others in a second batch is not made one by one."""
    monkeypatch.setattr("counterlvq.explainer.asked._MOST_VIEWS", 4)
    rows, asked = each_level(shop()[1]), explainer(SHARED)
    assert len(rows) > 4
    first = asked.explain_batch(rows)
    spy = MagicMock(side_effect=restated)
    monkeypatch.setattr("counterlvq.pipelines.table_map.restated", spy)
    again = asked.explain_batch(rows)
    assert spy.call_count <= 1  # one row tells how large blocks may be
    assert again.values.tolist() == first.values.tolist()
    assert again.lower_bound.tolist() == first.lower_bound.tolist()


def test_rows_of_one_template_are_judged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However the combinations of levels follow each other in the table."""
    rows = each_level(shop()[1]).sort_values(["home", "job"])
    asked, calls, keeps = explainer(RULES), list[int](), Acceptance.keeps

    def counted(rules: Acceptance, X: Any) -> Any:
        calls.append(id(rules.template))
        return keeps(rules, X)

    monkeypatch.setattr(Acceptance, "keeps", counted)
    monkeypatch.setattr(
        "counterlvq.prepared.Prepared.breaks", lambda view, X: np.zeros(len(X), bool)
    )
    batch = asked.explain_batch(rows)
    assert not batch.second_engine.any()
    assert len(calls) == rows.job.nunique()


@pytest.mark.parametrize("rules", [SHARED, RULES], ids=["shared", "about levels"])
def test_rows_of_many_levels_are_answered_as_if_alone(rules: list[Any]) -> None:
    """With prices of pairs and rules about levels, by an explainer that knows no other row."""
    rows = each_level(shop()[1])
    switches = {"job": {("clerk", "nurse"): 0.5, ("smith", "clerk"): 2.0}}
    batch = explainer(rules, switches=switches, default=1.0).explain_batch(rows)
    for i in range(len(rows)):
        cf = explainer(rules, switches=switches, default=1.0).explain(rows.iloc[i])
        assert (cf.cost, cf.lower_bound, str(cf.status)) == (
            batch.cost[i], batch.lower_bound[i], batch.status[i],
        )  # fmt: skip
        assert cf.values.tolist() == batch.values[i].tolist()
