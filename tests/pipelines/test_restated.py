"""Models pulled back through pipelines, judged by exact arithmetic of what the steps say."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import VarianceThreshold
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

import counterlvq as clvq
from counterlvq.pipelines import TableMap, read_transformer
from counterlvq.problem.coordinates import Coordinates
from tests.support.exact_steps import Row, exact, scores, transformed
from tests.support.quick import some

Draw = np.random.Generator

STEPS: dict[str, Callable[[int], Any]] = {
    "standard": lambda k: StandardScaler(),
    "standard, pca": lambda k: make_pipeline(StandardScaler(), PCA(k)),
    "standard, whitened": lambda k: make_pipeline(StandardScaler(), PCA(k, whiten=True)),
    "pca": PCA,
    "min-max, pca": lambda k: make_pipeline(MinMaxScaler(), PCA(k)),
    "robust, svd": lambda k: make_pipeline(RobustScaler(), TruncatedSVD(k)),
    "svd": TruncatedSVD,
    "threshold, standard": lambda k: make_pipeline(VarianceThreshold(), StandardScaler()),
    "three scalers": lambda k: make_pipeline(MaxAbsScaler(), StandardScaler(), MinMaxScaler()),
    "beside": lambda k: FeatureUnion([("a", StandardScaler()), ("b", PCA(k))]),
    "beside, standard": lambda k: make_pipeline(
        FeatureUnion([("a", StandardScaler()), ("b", RobustScaler())]), StandardScaler()
    ),
    "some, pca": lambda k: make_pipeline(
        ColumnTransformer([("a", StandardScaler(), [0])], remainder="passthrough"), PCA(k)
    ),
    "two of one": lambda k: ColumnTransformer(
        [("a", MinMaxScaler(), [0, 1]), ("b", StandardScaler(), [0])], remainder="passthrough"
    ),
    "nothing": lambda k: FunctionTransformer(),
}


def ugly_table(draw: Draw) -> np.ndarray:
    """Rows with constant and copied columns, units 24 orders apart, far from zero."""
    n, d = int(draw.integers(4, 20)), int(draw.integers(2, 7))
    X = draw.normal(size=(n, d))
    for j in range(d):
        kind = draw.random()
        if kind < 0.15:
            X[:, j] = draw.choice([0.0, 1.0, 7.3])
        elif kind < 0.3 and j:
            X[:, j] = X[:, j - 1] * draw.choice([1.0, -2.5])
    if draw.random() < 0.5:
        X *= 10.0 ** draw.integers(-12, 13, size=d)
    if draw.random() < 0.4:
        X += draw.choice([1e3, 1e6, 1e9])
    return X


def model_behind(draw: Draw, z: np.ndarray) -> clvq.PrototypeModel:
    """Rows of the table and points next to them, under any metric, with offsets now and then."""
    p, k = int(draw.integers(2, 6)), z.shape[1]
    jitter = draw.choice([0.0, 0.0, 1e-3, 1.0]) * np.abs(z).max(axis=0)
    points = z[draw.integers(len(z), size=p)] + jitter * draw.normal(size=(p, k))
    rank = int(draw.integers(1, k + 2))
    omegas = [None, None, draw.normal(size=(rank, k)), list(draw.normal(size=(p, rank, k)))]
    offsets = draw.random(p) if draw.random() < 0.2 else None
    omega = omegas[draw.integers(4)]
    if omega is None and draw.random() < 0.5:
        omega = draw.normal(size=k)
    return clvq.PrototypeModel(points, np.arange(p) % 2, omega, offsets=offsets)


class Case:
    """A fitted step, a model behind it, and the model as it is stated in front of it."""

    def __init__(self, name: str, seed: int) -> None:
        self.draw = draw = np.random.default_rng([seed, *name.encode()])
        self.X = ugly_table(draw)
        if name == "threshold, standard":
            self.X[:, 0] = draw.normal(size=len(self.X))
        width = min(self.X.shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of variances that are not there
            self.step = STEPS[name](int(draw.integers(1, width + 1))).fit(self.X)
            self.model = model_behind(draw, np.asarray(self.step.transform(self.X)))
        self.table_map: TableMap = read_transformer(self.step)
        self.stated = self.table_map.pulled_back(self.model)
        self.seen = [self.table_map.columns.index(part.column) for part in self.table_map.parts]

    def rows(self) -> list[np.ndarray]:
        """One of the table, one beside it and one far off."""
        X, draw = self.X, self.draw
        beside = X[1] + X.std(axis=0) * draw.normal(size=X.shape[1])
        return [X[0], beside, X[0] * (1 + 1e3 * draw.normal())]

    def meant(self, x: np.ndarray) -> Row:
        return scores(self.model, transformed(self.step, exact(x)))

    def said(self, x: np.ndarray) -> Row:
        return scores(self.stated, exact(x[self.seen]))


some_seeds = pytest.mark.parametrize("seeds", some([range(4), range(4, 12)], quick=1), ids=str)


@some_seeds
@pytest.mark.parametrize("name", STEPS)
def test_the_blur_covers_what_is_wrong_with_every_score(name: str, seeds: range) -> None:
    for seed in seeds:
        case = Case(name, seed)
        blur = case.stated.blur
        assert blur is not None
        for x in case.rows():
            row = x[case.seen]
            meant, said, bounds = case.meant(x), case.said(x), blur.of_scores(row[None, :])[0]
            wide = blur.over_box(row - np.abs(row), row + np.abs(row))
            for one, other, bound, over in zip(meant, said, bounds, wide, strict=True):
                assert abs(one - other) <= Fraction(float(bound))
                assert bound <= over * (1 + 1e-9)


@some_seeds
@pytest.mark.parametrize("name", STEPS)
def test_the_blur_covers_differences_and_their_slopes(name: str, seeds: range) -> None:
    """Where metrics are shared: the slope along each column by a second row, exactly."""
    for seed in seeds:
        case = Case(name, 100 + seed)
        blur = case.stated.blur
        if case.stated.is_local or blur is None:
            continue
        rivals = np.arange(1, case.model.n_prototypes)
        x = case.rows()[1]
        meant, said = case.meant(x), case.said(x)
        leads, slopes = blur.of_leads(x[case.seen], 0, rivals), blur.of_normals(0, rivals)
        for k in rivals:
            error = (meant[k] - meant[0]) - (said[k] - said[0])
            assert abs(error) <= Fraction(float(leads[k - 1]))
        for column, j in enumerate(case.seen):
            moved = x.copy()
            moved[j] = x[j] + max(abs(x[j]), 1.0)
            step = Fraction(float(moved[j])) - Fraction(float(x[j]))
            far, told = case.meant(moved), case.said(moved)
            for k in rivals:
                here = (meant[0] - meant[k]) - (said[0] - said[k])
                there = (far[0] - far[k]) - (told[0] - told[k])
                assert abs((there - here) / step) <= Fraction(float(slopes[k - 1, column]))


def test_the_blur_is_no_more_than_rounding_on_a_table_like_any() -> None:
    draw = np.random.default_rng(0)
    for offset in (0.0, 1e6):
        X = draw.normal(size=(40, 6)) + offset
        for name in ("standard", "standard, pca", "pca", "min-max, pca", "threshold, standard"):
            step = STEPS[name](3).fit(X)
            z = step.transform(X)
            stated = read_transformer(step).pulled_back(clvq.PrototypeModel(z[:4], [0, 1, 0, 1]))
            assert stated.blur is not None
            bounds, sizes = stated.blur.of_scores(X[4:8]), stated.distances(X[4:8])
            # x itself is rounded to 2^-53 of the offset.
            assert (bounds <= 1e-14 * max(offset, 1.0) * np.maximum(sizes, 1.0) * 10).all()


def test_the_identity_is_restated_as_it_is() -> None:
    case = clvq.PrototypeModel([[0.1, 1e9], [3.0, 1e-9]], ["no", "yes"])
    stated = TableMap.identity(("a", "b")).pulled_back(case)
    assert (stated.prototypes == case.prototypes).all()
    assert stated.blur is not None
    # Nothing is rounded, but the sum that finds so is only known to twice the precision.
    assert (stated.blur.of_scores([[7.0, 1e6]]) <= 1e-27 * stated.distances([[7.0, 1e6]])).all()


def test_the_blur_covers_levels_seen_from_anywhere() -> None:
    """A column of levels beside numbers, mixed and scaled; every level in turn is the own one."""
    for seed in range(20):
        draw = np.random.default_rng(seed)
        numbers = ugly_table(draw)
        codes = np.concatenate([[0, 1, 2], draw.integers(3, size=len(numbers) - 3)])
        X = np.column_stack([codes, numbers])
        encoded = ColumnTransformer(
            [("levels", OneHotEncoder(), [0]), ("numbers", RobustScaler(), slice(1, None))],
            sparse_threshold=0,
        )
        step = make_pipeline(encoded, StandardScaler(), PCA(int(draw.integers(1, 4)))).fit(X)
        model, table_map = model_behind(draw, step.transform(X)), read_transformer(step)
        seen = [table_map.columns.index(part.column) for part in table_map.parts]
        for row in X[:3]:
            coordinates = Coordinates(table_map.features).seen_from(row[seen])
            stated = table_map.pulled_back(model, seen=coordinates)
            assert stated.blur is not None
            for x in X[:5]:
                shown = [Fraction(int(x[0] == level)) for level in range(3)]
                z = shown + transformed(encoded.named_transformers_["numbers"], exact(x[1:]))
                meant = scores(model, transformed(step[1:], z))
                y = coordinates.inner(x[None, seen])
                said, bounds = scores(stated, exact(y)), stated.blur.of_scores(y)[0]
                for one, other, bound in zip(meant, said, bounds, strict=True):
                    assert abs(one - other) <= Fraction(float(bound))


def test_small_offsets_that_differ_are_kept() -> None:
    """Differences of 1e-14 beside scores of 1 decide between prototypes that are alike."""
    step = FeatureUnion([("a", FunctionTransformer()), ("b", FunctionTransformer())])
    step.fit([[0.0], [1.0]])
    points = [[1.0, 1.0], [1.0 + 2.0**-23, 1.0 - 2.0**-23]]
    stated = read_transformer(step).pulled_back(clvq.PrototypeModel(points, ["no", "yes"]))
    assert stated.offsets is not None
    assert stated.offsets[0] <= 2.0**-100
    assert stated.offsets[1] == pytest.approx(2 * 2.0**-46, rel=1e-6)


def test_equal_prototypes_stay_equal() -> None:
    for seed in range(20):
        case = Case("standard, pca", seed)
        points = np.repeat(case.model.prototypes, 3, axis=0)
        stated = case.table_map.pulled_back(
            clvq.PrototypeModel(points, np.arange(len(points)) % 2, case.model.shared_factor)
            if not case.model.is_local
            else clvq.PrototypeModel(points, np.arange(len(points)) % 2)
        )
        assert (stated.prototypes[::3] == stated.prototypes[2::3]).all()


# --- digits: constant pixels ----------------------------------------------------------------------

DIGITS: dict[str, Callable[[], Any]] = {
    "centroids": lambda: make_pipeline(StandardScaler(), PCA(20), NearestCentroid()),
    "neighbour": lambda: make_pipeline(StandardScaler(), PCA(30), KNeighborsClassifier(1)),
    "gmlvq": lambda: make_pipeline(StandardScaler(), PCA(20), clvq.GMLVQ(max_iter=5)),
    "whitened": lambda: make_pipeline(StandardScaler(), PCA(64, whiten=True), NearestCentroid()),
    "min-max": lambda: make_pipeline(MinMaxScaler(), PCA(10), NearestCentroid()),
    "svd": lambda: make_pipeline(TruncatedSVD(15), NearestCentroid()),
    "threshold": lambda: make_pipeline(VarianceThreshold(), StandardScaler(), NearestCentroid()),
    "few rows": lambda: make_pipeline(StandardScaler(), PCA(), KNeighborsClassifier(1)),
}


@pytest.mark.parametrize("name", some(DIGITS, quick=DIGITS.keys() - {"min-max", "svd", "gmlvq"}))
@pytest.mark.filterwarnings("ignore:GMLVQ stopped")
def test_digits_behind_a_pipeline_have_an_honest_gap(name: str) -> None:
    X, y = load_digits(return_X_y=True)
    rows = slice(0, 40) if name == "few rows" else slice(0, 600)
    pipeline = DIGITS[name]().fit(X[rows], y[rows])
    explainer = clvq.Explainer(pipeline)
    # Prototypes lie among the rows, and the constant pixels do not carry them away.
    assert np.abs(explainer.model.prototypes).max() < 100
    assert explainer.model.offsets is None
    if name == "whitened":
        # Pixels that never vary are scaled up by 1e15: changes of 1e-15 decide, or rounding does.
        return
    for i in (700, 701, 702):
        cf = explainer.explain(X[i], target=(int(pipeline.predict(X[[i]])[0]) + 1) % 10)
        assert cf.status == "optimal"
        assert (cf.cost - cf.lower_bound) / cf.cost <= 1e-6
        assert cf.gap == pytest.approx((cf.cost - cf.lower_bound) / cf.cost, abs=1e-9)
        changed = np.asarray(cf.as_given)
        assert pipeline.predict(changed[None, :])[0] == cf.prediction
        # The cost in all of the user's columns; those that the model does not see stay.
        assert np.abs(changed - X[i]).sum() == pytest.approx(cf.cost, rel=1e-9)


def test_a_saved_pipeline_has_the_same_model_in_front(tmp_path: Any) -> None:
    X, y = load_digits(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), PCA(20), NearestCentroid()).fit(X, y)
    model = clvq.TableModel.from_pipeline(pipeline)
    clvq.save(model, tmp_path / "digits.clvq")
    again = clvq.Explainer(clvq.load(tmp_path / "digits.clvq")).model
    assert (again.prototypes == clvq.Explainer(model).model.prototypes).all()
    assert np.abs(again.prototypes).max() < 100


# --- costs and constraints in all of the user's columns -------------------------------------------


def with_unseen(draw: Draw) -> tuple[np.ndarray, np.ndarray, Any, list[int]]:
    X = draw.normal(size=(30, 6))
    unseen = draw.choice(6, size=2, replace=False)
    X[:, unseen] = draw.normal(size=2)
    y = np.where(X @ draw.normal(size=6) > 0, "yes", "no")
    y[:2] = "no", "yes"
    pipeline = make_pipeline(VarianceThreshold(), StandardScaler(), NearestCentroid()).fit(X, y)
    return X, y, pipeline, sorted(set(range(6)) - set(unseen.tolist()))


def boundary(pipeline: Any, x: np.ndarray) -> tuple[np.ndarray, float]:
    """Slope and value of "yes": every change with slope @ change >= value is a counterfactual."""
    selector, scaler, centroids = (step for _, step in pipeline.steps)
    no, yes = centroids.centroids_
    slope = np.zeros(x.size)
    slope[selector.get_support()] = 2 * (yes - no) / scaler.scale_
    z = pipeline[:-1].transform(x[None, :])[0]
    return slope, float(((z - yes) ** 2).sum() - ((z - no) ** 2).sum())


@pytest.mark.parametrize("as_table", [np.asarray, lambda X: pd.DataFrame(X).add_prefix("f")])
def test_columns_that_a_cost_ties_to_others_change_with_them(as_table: Any) -> None:
    """A column that the model ignores can make the change of the others cheaper."""
    draw = np.random.default_rng(3)
    for _ in range(10):
        X, y, pipeline, seen = with_unseen(draw)
        pipeline = pipeline.fit(as_table(X), y)
        root = draw.normal(size=(6, 6))
        matrix = root @ root.T
        i = int((pipeline.predict(as_table(X)) == "no").argmax())
        slope, value = boundary(pipeline.fit(X, y), X[i])
        pipeline = pipeline.fit(as_table(X), y)
        explainer = clvq.Explainer(pipeline, cost=clvq.Mahalanobis(matrix))
        cf = explainer.explain(as_table(X[[i]]) if as_table is not np.asarray else X[i], "yes")
        best = value**2 / (slope @ np.linalg.solve(matrix, slope))
        assert cf.status == "optimal"
        assert cf.cost == pytest.approx(best, rel=1e-6)
        change = np.asarray(cf.as_given, dtype=float).ravel() - X[i]
        assert change @ matrix @ change == pytest.approx(cf.cost, rel=1e-6)
        assert np.count_nonzero(change) == 6 > len(seen)


def test_weights_and_plain_costs_are_for_all_columns() -> None:
    draw = np.random.default_rng(4)
    for _ in range(10):
        X, y, pipeline, seen = with_unseen(draw)
        weights = draw.uniform(1, 3, size=6)
        i = int((pipeline.predict(X) == "no").argmax())
        slope, value = boundary(pipeline, X[i])
        cf = clvq.Explainer(pipeline, cost=clvq.Manhattan(weights)).explain(X[i], target="yes")
        assert cf.cost == pytest.approx(value / (np.abs(slope) / weights).max(), rel=1e-6)
        named = pd.DataFrame(X).add_prefix("f")
        pipeline.fit(named, y)
        for given in (weights, weights[seen]):
            asked = clvq.Explainer(pipeline, cost=clvq.Manhattan(given))
            assert asked.explain(named.iloc[i], target="yes").cost == pytest.approx(cf.cost)
        squared = clvq.Explainer(pipeline, cost=clvq.Euclidean()).explain(named.iloc[i], "yes")
        assert squared.cost == pytest.approx(value**2 / (slope @ slope), rel=1e-6)


def test_rows_of_arrays_come_back_as_wide_as_they_were() -> None:
    X, _, pipeline, _ = with_unseen(np.random.default_rng(8))
    i = int((pipeline.predict(X) == "no").argmax())
    cf = clvq.Explainer(pipeline).explain(X[i], target="yes")
    assert pipeline.predict([cf.x]) == ["yes"]
    batch = clvq.Explainer(pipeline).explain_batch(X, target="yes")
    assert (pipeline.predict(batch.X) == "yes").all()


def test_a_matrix_of_neither_width_is_refused() -> None:
    X, y, pipeline, _ = with_unseen(np.random.default_rng(5))
    with pytest.raises(clvq.InvalidInputError, match=r"expected \(6, 6\)"):
        clvq.Explainer(pipeline, cost=clvq.Mahalanobis(np.eye(5)))
    pipeline.fit(pd.DataFrame(X).add_prefix("f"), y)
    with pytest.raises(clvq.InvalidInputError, match=r"expected \(4, 4\).*all 6 columns"):
        clvq.Explainer(pipeline, cost=clvq.Mahalanobis(np.eye(5)))


def test_positions_are_those_of_the_table() -> None:
    """Column 3 of the table is column 3, however many before it the pipeline drops."""
    draw = np.random.default_rng(6)
    for _ in range(4):
        X, _, pipeline, seen = with_unseen(draw)
        i = int((pipeline.predict(X) == "no").argmax())
        for j in seen:
            cf = clvq.Explainer(pipeline, constraints=[clvq.Freeze(j)]).explain(X[i], target="yes")
            named = clvq.Explainer(pipeline, constraints=[clvq.Freeze(f"x{j}")])
            assert cf.cost == named.explain(X[i], target="yes").cost
            assert np.asarray(cf.as_given)[j] == X[i, j]


def test_columns_that_the_model_does_not_see_stay_and_may_be_said_to() -> None:
    X, _, pipeline, seen = with_unseen(np.random.default_rng(7))
    unseen = min(set(range(6)) - set(seen))
    i = int((pipeline.predict(X) == "no").argmax())
    free = clvq.Explainer(pipeline).explain(X[i], target="yes")
    for kept in (clvq.Freeze(unseen), clvq.Increase(f"x{unseen}"), clvq.MaxChange(unseen, by=0)):
        held = clvq.Explainer(pipeline, constraints=[kept]).explain(X[i], target="yes")
        assert held.cost == free.cost
    for about in (clvq.Bounds(unseen, 50, 60), f"x{unseen} >= 50"):
        moved = clvq.Explainer(pipeline, constraints=[about]).explain(X[i], target="yes")
        assert moved.cost == pytest.approx(free.cost + 50 - X[i, unseen])


def test_nothing_is_said_of_named_columns_that_the_model_does_not_see() -> None:
    """They may hold text: whether they do, a pipeline that drops them does not say."""
    X, y, pipeline, seen = with_unseen(np.random.default_rng(7))
    unseen = min(set(range(6)) - set(seen))
    pipeline.fit(pd.DataFrame(X).add_prefix("f"), y)
    for about in (clvq.Bounds(unseen, 0, 1), f"f{unseen} <= 3"):
        with pytest.raises(clvq.UnknownFeatureError, match="does not see"):
            clvq.Explainer(pipeline, constraints=[about])
