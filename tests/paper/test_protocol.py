"""The pieces of the protocol: folds, wishes, compared rows, the paper's house."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from counterlvq.datasets import load_ames
from counterlvq_paper.protocol import (
    DATA_SETS,
    FOLDS,
    FROZEN,
    FULL,
    HOUSE,
    MODELS,
    QUICK,
    Case,
    case_of,
    fit,
    fold_of,
    fold_of_house,
)
from counterlvq_paper.published import TABLE_1, TABLE_2, TABLE_2_COLUMNS
from counterlvq_paper.runner import plan

SIZES = {"cancer": (569, 5), "digits": (1797, 10), "Ames": (2930, 9)}


def case(data: str, name: str = "GLVQ", number: int = 0, settings=FULL) -> Case:
    fold = fold_of(data, number)
    return case_of(fold, name, fit(fold, name), settings)


@pytest.mark.parametrize("data", DATA_SETS)
def test_folds_are_disjoint_and_cover_the_data(data: str) -> None:
    rows, width = SIZES[data]
    ids = [fold_of(data, number).ids for number in range(FOLDS)]
    assert sorted(np.concatenate(ids).tolist()) == list(range(rows))
    for number in range(FOLDS):
        fold = fold_of(data, number)
        assert fold.train.shape == (rows - len(fold.ids), width)
        assert fold.test.shape == (len(fold.ids), width)


def test_houses_are_standardised_by_the_training_rows_alone() -> None:
    fold, X = fold_of("Ames", 2), load_ames().X
    train = np.delete(X, fold.ids, axis=0)
    expected = (X[fold.ids] - train.mean(axis=0)) / train.std(axis=0)
    np.testing.assert_allclose(fold.test, expected, atol=1e-12)
    assert fold.frozen == FROZEN
    assert load_ames().feature_names[4:] == FROZEN


@pytest.mark.parametrize(
    ("data", "load"), [("cancer", load_breast_cancer), ("digits", load_digits)]
)
def test_components_are_those_of_the_training_rows_alone(data: str, load) -> None:
    fold, X = fold_of(data, 1), load(return_X_y=True)[0]
    train = np.delete(X, fold.ids, axis=0)
    scale = np.where(train.std(axis=0) > 0, train.std(axis=0), 1.0)
    scaled, test = (train - train.mean(axis=0)) / scale, (X[fold.ids] - train.mean(axis=0)) / scale
    directions = np.linalg.svd(scaled, full_matrices=False)[2][: fold.test.shape[1]]
    np.testing.assert_allclose(np.abs(fold.test), np.abs(test @ directions.T), atol=1e-6)


@pytest.mark.parametrize("data", DATA_SETS)
def test_every_row_has_a_wish_that_it_does_not_have(data: str) -> None:
    asked = case(data)
    assert sorted(asked.ids.tolist()) == sorted(asked.fold.ids.tolist())
    assert not (asked.model.predict(asked.rows) == asked.targets).any()
    assert set(asked.targets.tolist()) == set(asked.model.classes.tolist())
    again = case(data)
    assert np.array_equal(asked.targets, again.targets)


def test_wishes_of_the_digits_are_drawn_evenly() -> None:
    asked = case("digits")
    steps = (asked.targets - asked.model.predict(asked.rows)) % 10
    counts = np.bincount(steps, minlength=10)
    assert counts[0] == 0
    assert counts[1:].min() > 0.5 * len(steps) / 9


def test_compared_rows_are_the_same_for_all_models_and_enough() -> None:
    for data in DATA_SETS:
        compared = [case(data, name).ids[: FULL.compared].tolist() for name in MODELS]
        assert compared[0] == compared[1] == compared[2]
    assert FULL.compared * FOLDS >= 100
    assert FULL.rows is None  # every test row
    quick = case("digits", settings=QUICK)
    assert set(quick.ids[: quick.n_compared]) <= set(compared_ids("digits"))


def compared_ids(data: str) -> list[int]:
    return case(data).ids[: FULL.compared].tolist()


def test_plan_asks_every_row_of_the_exact_methods_once() -> None:
    blocks = plan(FULL)
    assert len({block.name for block in blocks}) == len(blocks)
    for data in DATA_SETS:
        for model in MODELS:
            for method in ("Nelder-Mead", "CMA-ES", "ccp", "auto", "global"):
                mine = [b for b in blocks if (b.data, b.model, b.method) == (data, model, method)]
                every = method in ("ccp", "auto") or (method == "global" and model != "LGMLVQ")
                wanted = SIZES[data][0] if every else FULL.compared * FOLDS
                assert sum(b.stop - b.start for b in mine) == wanted
                asked = [(b.fold, row) for b in mine for row in range(b.start, b.stop)]
                assert len(set(asked)) == wanted


def test_house_is_the_one_that_the_paper_shows() -> None:
    houses = load_ames()
    columns = [houses.feature_names.index(name) for name in TABLE_2_COLUMNS]
    assert tuple(houses.X[HOUSE, columns]) == TABLE_2["original"]
    same = (houses.X[:, columns] == houses.X[HOUSE, columns]).all(axis=1)
    assert same.sum() == 1
    assert HOUSE in fold_of_house().ids


def test_printed_figures_are_complete() -> None:
    assert set(TABLE_1) == {(data, model) for data in DATA_SETS for model in MODELS}
    # In the paper, "ours" is the smallest of each row of three.
    assert all(ours == min(ds, cma, ours) for ds, cma, ours in TABLE_1.values())
