"""Maps read from fitted pipelines, against the `transform` that they were read from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, IncrementalPCA, KernelPCA, TruncatedSVD
from sklearn.feature_selection import (
    RFE,
    SelectFromModel,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
)
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

import counterlvq as clvq
from counterlvq.pipelines import LevelsPart, NumericPart, read_pipeline, read_transformer
from counterlvq.problem.coordinates import Coordinates

ROWS = 60
NUMBERS = ["age", "income", "debt", "height"]
LEVELS = {"job": ["clerk", "nurse", "pilot"], "student": ["no", "yes"], "rank": [10, 20, 40]}


def numbers(seed: int = 0, rows: int = ROWS) -> np.ndarray:
    """Correlated columns of very different size, far from the origin."""
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(rows, 4)) @ rng.normal(size=(4, 4))
    return mixed * [10.0, 3e4, 1e-3, 1.0] + [40.0, 2e5, 0.0, -7.0]


def labels(rows: int = ROWS) -> np.ndarray:
    return np.array(["good", "bad", "ugly"])[np.arange(rows) % 3]


def people(seed: int = 0, rows: int = ROWS) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(numbers(seed, rows), columns=NUMBERS)
    for name, levels in LEVELS.items():
        table[name] = [levels[k] for k in rng.integers(0, len(levels), rows)]
    table["member"] = rng.integers(0, 2, rows).astype(bool)
    table["id"] = [f"p{i}" for i in range(rows)]
    return table


def dense(z: Any) -> np.ndarray:
    return np.asarray(z.toarray() if hasattr(z, "toarray") else z, dtype=float)


def close(said: np.ndarray, told: np.ndarray, tolerance: float = 1e-8) -> bool:
    return said.shape == told.shape and bool(
        (np.abs(said - told) <= tolerance * (1 + np.abs(told).max())).all()
    )


# --- numbers ------------------------------------------------------------------------------------

NUMERIC: dict[str, Callable[[], Any]] = {
    "standard": StandardScaler,
    "standard without mean": lambda: StandardScaler(with_mean=False),
    "standard without spread": lambda: StandardScaler(with_std=False),
    "standard without either": lambda: StandardScaler(with_mean=False, with_std=False),
    "min max": MinMaxScaler,
    "min max elsewhere": lambda: MinMaxScaler(feature_range=(-3, 8)),
    "max abs": MaxAbsScaler,
    "robust": RobustScaler,
    "robust without middle": lambda: RobustScaler(with_centering=False, unit_variance=True),
    "robust without spread": lambda: RobustScaler(with_scaling=False),
    "pca": PCA,
    "pca of two": lambda: make_pipeline(StandardScaler(), PCA(2)),
    "whitened pca": lambda: make_pipeline(StandardScaler(), PCA(3, whiten=True)),
    "incremental pca": lambda: IncrementalPCA(2),
    "svd": lambda: make_pipeline(RobustScaler(), TruncatedSVD(2, random_state=0)),
    "imputer": SimpleImputer,
    "median imputer with indicator": lambda: SimpleImputer(strategy="median", add_indicator=True),
    "constant imputer": lambda: SimpleImputer(strategy="constant", fill_value=-1),
    "identity": FunctionTransformer,
    "variance threshold": lambda: VarianceThreshold(0.01),
    "k best": lambda: SelectKBest(k=2),
    "percentile": lambda: SelectPercentile(percentile=50),
    "from model": lambda: SelectFromModel(LogisticRegression(max_iter=50), threshold="median"),
    "rfe": lambda: make_pipeline(
        StandardScaler(), RFE(LogisticRegression(), n_features_to_select=1)
    ),
    "union": lambda: FeatureUnion([("scaled", StandardScaler()), ("pca", PCA(2))]),
    "weighted union": lambda: FeatureUnion(
        [("scaled", StandardScaler()), ("same", "passthrough"), ("gone", "drop")],
        transformer_weights={"scaled": 2.5, "same": 0.1},
    ),
    "nested": lambda: Pipeline(
        [
            ("impute", SimpleImputer()),
            ("skipped", "passthrough"),
            ("none", None),
            (
                "inner",
                make_pipeline(StandardScaler(), FeatureUnion([("pca", PCA(2)), ("all", PCA())])),
            ),
            ("last", MinMaxScaler()),
        ]
    ),
    "passthrough first": lambda: Pipeline(
        [("skipped", "passthrough"), ("scale", StandardScaler())]
    ),
    "by position": lambda: ColumnTransformer(
        [("a", StandardScaler(), [2, 0]), ("b", PCA(1), [1, 3])]
    ),
    "by negative position": lambda: ColumnTransformer([("a", StandardScaler(), [-1, -3])]),
    "by slice": lambda: ColumnTransformer([("a", RobustScaler(), slice(1, 3))]),
    "by mask": lambda: ColumnTransformer(
        [("a", MinMaxScaler(), [True, False, False, True])], remainder="passthrough"
    ),
    "remainder scaled": lambda: ColumnTransformer(
        [("a", "passthrough", [3])], remainder=StandardScaler()
    ),
    "overlapping": lambda: ColumnTransformer(
        [("a", StandardScaler(), [0, 1]), ("b", MinMaxScaler(), [1, 2]), ("c", "drop", [3])],
        transformer_weights={"b": 3.0},
    ),
    "empty selection": lambda: ColumnTransformer(
        [("a", StandardScaler(), []), ("b", MaxAbsScaler(), [0])]
    ),
}


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.filterwarnings("ignore:lbfgs")
@pytest.mark.parametrize("named", [False, True])
def test_numeric_map_is_transform(name: str, named: bool) -> None:
    X = pd.DataFrame(numbers(), columns=NUMBERS) if named else numbers()
    step = NUMERIC[name]().fit(X, labels())
    table_map = read_transformer(step, probe=X)
    new = pd.DataFrame(numbers(5), columns=NUMBERS) if named else numbers(5)
    assert close(table_map.transform(new), dense(step.transform(new)))
    assert table_map.columns == (tuple(NUMBERS) if named else ("x0", "x1", "x2", "x3"))
    assert all(isinstance(part, NumericPart) for part in table_map.parts)


def models_behind(width: int) -> dict[str, clvq.PrototypeModel]:
    rng = np.random.default_rng(width)
    points, kinds = rng.normal(size=(5, width)), ["a", "b", "c", "a", "b"]
    return {
        "plain": clvq.PrototypeModel(points, kinds),
        "shared": clvq.PrototypeModel(points, kinds, rng.normal(size=(2, width))),
        "local": clvq.PrototypeModel(points, kinds, list(rng.normal(size=(5, 3, width)))),
    }


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.filterwarnings("ignore:lbfgs")
def test_model_in_the_space_of_the_table_has_the_same_distances(name: str) -> None:
    X = numbers()
    step = NUMERIC[name]().fit(X, labels())
    table_map = read_transformer(step)
    seen = [table_map.columns.index(part.column) for part in table_map.parts]
    z = dense(step.transform(X))
    for model in models_behind(z.shape[1]).values():
        pulled = table_map.pulled_back(model)
        told, said = model.distances(z), pulled.distances(X[:, seen])
        assert np.allclose(said, told, rtol=1e-6, atol=1e-9 * told.max())
        assert pulled.features.names == table_map.features.names
        near = X[:, seen].mean(axis=0)
        assert np.allclose(
            table_map.pulled_back(model, near).distances(X[:, seen]),
            told,
            rtol=1e-6,
            atol=1e-9 * told.max(),
        )


def test_full_rank_needs_no_offsets_and_duplicates_do() -> None:
    X = numbers()
    model = models_behind(4)["plain"]
    scaler = read_transformer(StandardScaler().fit(X))
    assert scaler.pulled_back(model).offsets is None
    doubled = FeatureUnion([("a", StandardScaler()), ("b", StandardScaler())]).fit(X)
    points = np.random.default_rng(0).normal(size=(3, 8))
    pulled = read_transformer(doubled).pulled_back(clvq.PrototypeModel(points, [0, 1, 2]))
    assert pulled.offsets is not None
    # What is out of reach: half the squared difference of the two halves of a prototype.
    expected = ((points[:, :4] - points[:, 4:]) ** 2).sum(axis=1) / 2
    assert np.allclose(pulled.offsets, expected)


def test_prototypes_come_back_next_to_the_point_that_is_named() -> None:
    X = numbers()
    pca = make_pipeline(StandardScaler(), PCA(2)).fit(X)
    table_map = read_transformer(pca)
    centre = X.mean(axis=0)
    model = clvq.PrototypeModel([[0.0, 0.0], [1.0, -2.0]], ["no", "yes"])
    lifted = StandardScaler().fit(X).inverse_transform(pca[-1].inverse_transform(model.prototypes))
    found = table_map.pulled_back(model, near=centre)
    assert np.allclose(found.prototypes[0], centre)
    assert np.allclose(pca.transform(found.prototypes), model.prototypes)
    assert np.allclose(pca.transform(lifted), model.prototypes)


@pytest.mark.parametrize("name", ["standard", "pca of two", "union", "weighted union"])
@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()])
def test_explained_in_the_units_of_the_table(name: str, cost: clvq.Cost) -> None:
    """Offsets and all: answers of the pulled-back model flip the model behind the pipeline."""
    X = numbers() / [10.0, 3e4, 1e-3, 1.0]
    step = NUMERIC[name]().fit(X, labels())
    table_map = read_transformer(step)
    z = dense(step.transform(X))
    points = z[[3, 11, 20, 31]] + 0.1
    model = clvq.PrototypeModel(points, ["a", "b", "c", "b"])
    pulled = table_map.pulled_back(model)
    batch = clvq.Explainer(pulled, cost=cost).explain_batch(X, target="b")
    assert (batch.status == "optimal").all()
    assert (model.predict(step.transform(batch.X)) == "b").all()
    one = clvq.Explainer(pulled, cost=cost).explain(X[0], target="b")
    assert one.cost == pytest.approx(batch.cost[0])


def test_final_step_is_handed_back() -> None:
    X, y = numbers(), labels()
    pipeline = make_pipeline(StandardScaler(), PCA(2), KNeighborsClassifier(1)).fit(X, y)
    table_map, last = read_pipeline(pipeline, probe=X)
    assert last is pipeline[-1]
    pulled = table_map.pulled_back(clvq.as_prototype_model(last))
    assert (pulled.predict(X) == pipeline.predict(X)).all()


def test_final_step_may_be_in_a_pipeline_within() -> None:
    X, y = numbers(), labels()
    inner = make_pipeline(PCA(2), NearestCentroid())
    table_map, last = read_pipeline(make_pipeline(StandardScaler(), inner).fit(X, y), probe=X)
    assert isinstance(last, NearestCentroid)
    assert table_map.offset.shape == (2,)


def test_model_alone_in_a_pipeline() -> None:
    pipeline = Pipeline([("model", NearestCentroid())]).fit(numbers(), labels())
    table_map, _ = read_pipeline(pipeline)
    assert close(table_map.transform(numbers(1)), numbers(1))


@pytest.mark.filterwarnings("ignore:GMLVQ stopped")
def test_estimators_of_this_package_may_come_last() -> None:
    X, y = numbers(), labels()
    pipeline = make_pipeline(StandardScaler(), clvq.GMLVQ(max_iter=5)).fit(X, y)
    table_map, last = read_pipeline(pipeline)
    pulled = table_map.pulled_back(clvq.as_prototype_model(last))
    assert (pulled.predict(X) == pipeline.predict(X)).all()


def test_columns_without_any_value_are_dropped() -> None:
    X = numbers()
    X[:, 1] = np.nan
    imputer = SimpleImputer().fit(X)
    table_map = read_transformer(imputer)
    assert table_map.unseen == ("x1",)
    assert close(table_map.transform(numbers(2)), numbers(2)[:, [0, 2, 3]])


def test_indicators_are_zero_on_complete_rows() -> None:
    X = numbers()
    X[3, 2] = np.nan
    imputer = SimpleImputer(add_indicator=True).fit(X)
    z = read_transformer(imputer).transform(numbers(2))
    assert close(z, np.hstack([numbers(2), np.zeros((ROWS, 1))]))


# --- categories ---------------------------------------------------------------------------------

CODED = ["job", "student", "rank", "member"]
ENCODERS: dict[str, Callable[[], Any]] = {
    "one hot": OneHotEncoder,
    "dense": lambda: OneHotEncoder(sparse_output=False),
    "drop first": lambda: OneHotEncoder(drop="first"),
    "drop if binary": lambda: OneHotEncoder(drop="if_binary"),
    "drop listed": lambda: OneHotEncoder(drop=["pilot", "no", 20, True]),
    "ignore unknown": lambda: OneHotEncoder(handle_unknown="ignore"),
    "rare ones together": lambda: OneHotEncoder(min_frequency=20),
    "at most two": lambda: OneHotEncoder(max_categories=2, handle_unknown="infrequent_if_exist"),
    "at most two, drop first": lambda: OneHotEncoder(max_categories=2, drop="first"),
    "categories given": lambda: OneHotEncoder(
        categories=[
            ["pilot", "nurse", "clerk", "judge"],
            ["yes", "no"],
            [10, 20, 40],
            [False, True],
        ],
        sparse_output=False,
    ),
    "ordinal": OrdinalEncoder,
    "ordinal with unknown": lambda: OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1
    ),
    "ordinal of few": lambda: OrdinalEncoder(max_categories=2),
    "ordinal then scaled": lambda: make_pipeline(OrdinalEncoder(), StandardScaler()),
    "one hot then pca": lambda: make_pipeline(OneHotEncoder(sparse_output=False), PCA(3)),
    "one hot then svd": lambda: make_pipeline(OneHotEncoder(), TruncatedSVD(3, random_state=0)),
    "one hot then selected": lambda: make_pipeline(OneHotEncoder(), SelectKBest(k=3)),
    "imputed before": lambda: make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder()
    ),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_level_map_is_transform(name: str) -> None:
    table = people()
    step = ENCODERS[name]().fit(table[CODED], labels())
    table_map = read_transformer(step, probe=table[CODED])
    new = people(7)[CODED]
    assert close(table_map.transform(new), dense(step.transform(new)))


@pytest.mark.parametrize("name", ENCODERS)
def test_level_map_without_names_is_transform(name: str) -> None:
    table = people()[CODED].to_numpy(dtype=object)
    step = ENCODERS[name]().fit(table, labels())
    new = people(7)[CODED].to_numpy(dtype=object)
    assert close(read_transformer(step).transform(new), dense(step.transform(new)))


def mixed(**options: Any) -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["income", "age"]),
            ("levels", OneHotEncoder(drop="if_binary"), ["student", "job"]),
            ("flag", "passthrough", ["member"]),
        ],
        **options,
    )


def test_mixed_table() -> None:
    table = people()
    step = mixed().fit(table)
    table_map = read_transformer(step, probe=table)
    assert close(table_map.transform(people(3)), dense(step.transform(people(3))))
    assert table_map.unseen == ("debt", "height", "rank", "id")
    assert table_map.features.names == ("age", "income", "job", "student", "member")
    assert table_map.features["job"].levels == ("clerk", "nurse", "pilot")
    kinds = [type(part).__name__ for part in table_map.parts]
    assert kinds == ["NumericPart", "NumericPart", "LevelsPart", "LevelsPart", "NumericPart"]


def test_reordered_and_additional_columns_are_no_matter() -> None:
    table = people()
    table_map = read_transformer(mixed().fit(table))
    shuffled = table[sorted(table.columns, reverse=True)].assign(more=1)
    assert close(table_map.transform(shuffled), table_map.transform(table))


def test_polars_in() -> None:
    table = pl.DataFrame(people().to_dict("list"))
    try:
        step = mixed().fit(table)
    except AttributeError as error:
        # scikit-learn 1.6 and 1.7 ask a frame of polars for its `size`, beside a sparse part.
        if "'size'" not in str(error):
            raise
        pytest.skip(f"this scikit-learn cannot fit mixed columns of polars: {error}")
    table_map = read_transformer(step, probe=table)
    assert close(table_map.transform(table), dense(step.transform(table)))


@pytest.mark.parametrize("container", ["default", "pandas", "polars"])
def test_names_on_the_way(container: str) -> None:
    """Steps that hand over frames name their columns, and later ones select by these names."""
    table = people()
    first = ColumnTransformer(
        [
            ("num", StandardScaler(), slice("age", "debt")),
            ("cat", OneHotEncoder(sparse_output=False), ["job"]),
        ],
        verbose_feature_names_out=False,
    )
    keys: Any = [0, 3] if container == "default" else ["age", "job_clerk"]
    step = make_pipeline(first, ColumnTransformer([("pca", PCA(2), keys)]))
    if container != "default":
        step.set_output(transform=container)
    step.fit(table)
    table_map = read_transformer(step, probe=table)
    assert close(table_map.transform(people(1)), dense(step.transform(people(1))))
    assert table_map.features.names == ("age", "job")


def test_columns_chosen_by_a_function() -> None:
    table = people().drop(columns="id")
    step = ColumnTransformer(
        [
            ("num", RobustScaler(), make_column_selector(dtype_include=float)),
            ("cat", OrdinalEncoder(), lambda frame: ["job", "student"]),
        ],
        remainder="passthrough",
    ).fit(table)
    new = people(1).drop(columns="id")
    assert close(read_transformer(step, table).transform(new), dense(step.transform(new)))


def test_remainder_by_name() -> None:
    table = people().drop(columns="id")
    levels = ("levels", OneHotEncoder(), ["job", "student"])
    step = ColumnTransformer([levels], remainder=StandardScaler()).fit(table)
    new = people(1).drop(columns="id")
    assert close(read_transformer(step).transform(new), dense(step.transform(new)))


def test_number_and_category_at_once() -> None:
    table = people()[["rank", "age"]]
    step = ColumnTransformer(
        [("n", StandardScaler(), ["rank", "age"]), ("c", OneHotEncoder(), ["rank"])]
    ).fit(table)
    table_map = read_transformer(step)
    part = table_map.parts[0]
    assert isinstance(part, LevelsPart)
    assert part.levels == (10, 20, 40)
    assert close(table_map.transform(table), dense(step.transform(table)))


def test_two_encoders_of_one_column_know_what_both_know() -> None:
    table = people()[["job"]]
    both = FeatureUnion(
        [
            ("a", OneHotEncoder(categories=[["clerk", "nurse", "pilot"]])),
            ("b", OrdinalEncoder(categories=[["judge", "pilot", "nurse", "clerk"]])),
        ]
    ).fit(table)
    table_map = read_transformer(both)
    assert table_map.features["job"].levels == ("clerk", "nurse", "pilot")
    assert close(table_map.transform(table), dense(both.transform(table)))


def test_a_category_that_comes_to_nothing_is_unseen() -> None:
    table = people()[["job", "age"]]
    levels = ColumnTransformer([("c", OneHotEncoder(), ["job"]), ("n", "passthrough", ["age"])])
    step = make_pipeline(levels, ColumnTransformer([("last", "passthrough", [3])])).fit(table)
    assert read_transformer(step).unseen == ("job",)


def test_missing_categories_are_no_levels() -> None:
    table = pd.DataFrame({"job": ["clerk", None, "nurse"], "rank": [1.0, np.nan, 3.0]})
    step = OneHotEncoder().fit(table)
    features = read_transformer(step).features
    assert [feature.levels for feature in features] == [("clerk", "nurse"), (1.0, 3.0)]


def test_booleans_that_are_encoded_stay_boolean() -> None:
    table = people()[["member"]]
    assert read_transformer(OneHotEncoder().fit(table)).features["member"].kind == "boolean"


# --- refusals -----------------------------------------------------------------------------------

UNREADABLE: dict[str, tuple[Any, str]] = {
    "polynomial": (PolynomialFeatures(2), "PolynomialFeatures (from sklearn.preprocessing"),
    "bins": (KBinsDiscretizer(2), "Instead of KBinsDiscretizer, cut the column into categories"),
    "rows": (Normalizer(), "Instead of Normalizer, scale columns instead of rows"),
    "quantiles": (
        QuantileTransformer(n_quantiles=10),
        "use RobustScaler, which is as robust and affine",
    ),
    "splines": (SplineTransformer(), "use a model with local metrics"),
    "cut": (Binarizer(), "Instead of Binarizer, use the number itself"),
    "neighbours": (KNNImputer(), "KNNImputer, which fills a gap by what other columns say, use"),
    "kernel": (KernelPCA(2), "Instead of KernelPCA, use PCA"),
    "clipped": (MinMaxScaler(clip=True), "MinMaxScaler has clip=True, which cuts values off"),
    "a function": (FunctionTransformer(np.abs), "FunctionTransformer applies 'absolute'"),
    "zeros replaced": (
        SimpleImputer(missing_values=0),
        "SimpleImputer has missing_values=0, so that it replaces a value that a row may have",
    ),
    "encoded late": (
        make_pipeline(MaxAbsScaler(), OneHotEncoder()),
        "OneHotEncoder encodes a column that an earlier step has changed",
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.filterwarnings("ignore")
def test_unreadable_step_is_refused_by_name(name: str) -> None:
    step, message = UNREADABLE[name]
    pipeline = make_pipeline(StandardScaler() if name != "encoded late" else "passthrough", step)
    with pytest.raises(clvq.NotSupportedError) as raised:
        read_transformer(pipeline.fit(numbers(), labels()))
    assert message in str(raised.value)


def test_unreadable_step_is_told_what_can_be_read() -> None:
    with pytest.raises(clvq.NotSupportedError) as raised:
        read_transformer(TargetEncoder().fit(people()[["job"]], np.arange(ROWS) % 2))
    assert "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, PCA" in str(raised.value)
    assert "use OneHotEncoder or OrdinalEncoder" in str(raised.value)


class Doubling(TransformerMixin, BaseEstimator):
    def fit(self, X: Any, y: Any = None) -> Doubling:
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        return 2 * X


class LoudScaler(StandardScaler):
    def transform(self, X: Any, copy: Any = None) -> Any:
        z = super().transform(X)
        return z + np.where(z > 1, 0.01, 0.0)


class WideScaler(StandardScaler):
    def transform(self, X: Any, copy: Any = None) -> Any:
        return np.hstack([super().transform(X)] * 2)


class OwnScaler(StandardScaler):
    """Nothing of its own."""


def test_step_of_the_users_own_is_refused_by_name() -> None:
    with pytest.raises(clvq.NotSupportedError, match=r"with Doubling \(from .*\) cannot be read"):
        read_transformer(Doubling().fit(numbers()))


def test_step_that_does_not_do_what_its_class_says_is_caught() -> None:
    with pytest.raises(clvq.NotSupportedError, match=r"disagree on \d+ of 32 probe row"):
        read_transformer(LoudScaler().fit(numbers()))
    with pytest.raises(clvq.NotSupportedError, match=r"shape \(32, 8\); expected \(32, 4\)"):
        read_transformer(WideScaler().fit(numbers()))


def test_attributes_changed_by_hand_are_caught_by_rows_of_the_user() -> None:
    scaler = StandardScaler().fit(numbers())

    class Steps(OwnScaler):
        def transform(self, X: Any, copy: Any = None) -> Any:
            z = scaler.transform(X)
            return np.where(np.isin(X[:, [0]], numbers()[:, [0]]), z + 1, z)

    odd = Steps().fit(numbers())
    read_transformer(odd)
    with pytest.raises(clvq.NotSupportedError, match="disagree on 60 of 60 probe row"):
        read_transformer(odd, probe=numbers())


def test_class_of_the_users_own_is_read_like_the_one_it_extends() -> None:
    step = OwnScaler().fit(numbers())
    assert close(read_transformer(step).transform(numbers(1)), step.transform(numbers(1)))


NO_PIPELINES: dict[str, tuple[Callable[[], Any], str]] = {
    "a model": (NearestCentroid, "a NearestCentroid (from sklearn.neighbors._nearest_centroid) is"),
    "a search": (
        lambda: GridSearchCV(
            make_pipeline(StandardScaler(), KNeighborsClassifier(1)),
            {"kneighborsclassifier__p": [2]},
        ).fit(numbers(), labels()),
        "a GridSearchCV is no pipeline; expected its `best_estimator_`.",
    ),
    "no model": (
        lambda: Pipeline([("scale", StandardScaler()), ("end", "passthrough")]).fit(numbers()),
        "the last step 'end' of the pipeline is 'passthrough'; expected a model.",
    ),
    "a class inside": (
        lambda: Pipeline(
            [("scale", StandardScaler), ("end", NearestCentroid().fit(numbers(), labels()))]
        ),
        "StandardScaler is a class; expected a fitted instance of it.",
    ),
}


@pytest.mark.parametrize("name", NO_PIPELINES)
def test_what_is_no_pipeline_is_refused_in_words(name: str) -> None:
    make, message = NO_PIPELINES[name]
    with pytest.raises(clvq.NotSupportedError) as raised:
        read_pipeline(make())
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        PCA(),
        OneHotEncoder(),
        MinMaxScaler(),
        SimpleImputer(),
        ColumnTransformer([]),
    ],
    ids=lambda step: type(step).__name__,
)
def test_unfitted_pipeline_is_told_to_fit(step: Any) -> None:
    with pytest.raises(clvq.InvalidInputError, match="not fitted yet; call its `fit` first"):
        read_pipeline(make_pipeline(step, NearestCentroid()))


def test_half_fitted_pipeline_is_told_to_fit() -> None:
    model = NearestCentroid().fit(numbers(), labels())
    with pytest.raises(clvq.InvalidInputError, match="this StandardScaler has no"):
        read_pipeline(Pipeline([("scale", StandardScaler()), ("model", model)]))


def test_steps_that_do_not_fit_together_are_refused() -> None:
    first = PCA(2).fit(numbers())
    second = StandardScaler().fit(numbers())
    model = NearestCentroid().fit(numbers(), labels())
    with pytest.raises(clvq.InvalidInputError, match=r"fitted on 4 column\(s\) and is handed 2"):
        read_pipeline(Pipeline([("a", first), ("b", second), ("model", model)]))


def test_levels_are_pulled_back_to_one_column_each() -> None:
    table_map = read_transformer(OneHotEncoder().fit(people()[["job"]]))
    model = clvq.PrototypeModel(np.eye(3) + 0.5, [0, 1, 2])
    pulled_back = table_map.pulled_back(model)
    levels = table_map.parts[0].levels
    assert pulled_back.features.names == tuple(f"job == {level!r}" for level in levels[1:])
    others = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # of the first level, second, third
    np.testing.assert_allclose(pulled_back.distances(others), model.distances(np.eye(3)))
    seen = Coordinates(table_map.features, (1.0,))
    pulled_back = table_map.pulled_back(model, seen=seen)
    np.testing.assert_allclose(pulled_back.distances(others), model.distances(np.eye(3)[[1, 0, 2]]))


def test_model_of_other_width_cannot_be_pulled_back() -> None:
    table_map = read_transformer(PCA(2).fit(numbers()))
    with pytest.raises(clvq.InvalidInputError, match="model has 3 columns and the steps"):
        table_map.pulled_back(clvq.PrototypeModel(np.eye(3), [0, 1, 2]))


def test_pipeline_that_drops_everything_cannot_be_pulled_back() -> None:
    step = make_pipeline(StandardScaler(), FunctionTransformer()).fit(np.ones((4, 1)))
    table_map = read_transformer(ColumnTransformer([("a", "drop", [0])]).fit(np.ones((4, 1))))
    assert read_transformer(step).unseen == ()
    assert table_map.unseen == ("x0",)
    with pytest.raises(clvq.InvalidInputError, match="drops every column"):
        table_map.pulled_back(clvq.PrototypeModel([[0.0], [1.0]], [0, 1]))


def test_unknown_level_and_missing_value_are_named() -> None:
    table = people()
    table_map = read_transformer(mixed().fit(table))
    table.loc[4, "job"] = "judge"
    with pytest.raises(clvq.InvalidInputError, match="column 'job', row 4 is 'judge'"):
        table_map.transform(table)
    table = people()
    table.loc[9, "income"] = np.nan
    filled = table.fillna({"income": people()["income"].mean()})  # as the imputer was fitted
    assert np.array_equal(table_map.transform(table), table_map.transform(filled))
    table = people().astype({"member": object})
    table.loc[9, "member"] = None
    with pytest.raises(clvq.InvalidInputError, match="column 'member', row 9 is missing"):
        table_map.transform(table)
    with pytest.raises(clvq.InvalidInputError, match=r"lacks the column\(s\) 'job'"):
        table_map.transform(people().drop(columns="job"))
