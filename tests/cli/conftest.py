"""A folder with a table and a model, made once by the command line itself."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from sklearn.datasets import load_iris

from tests.support.shell import called


@pytest.fixture(scope="session")
def iris() -> pd.DataFrame:
    data = load_iris(as_frame=True)
    table = data.data.set_axis(
        ["sepal_length", "sepal_width", "petal_length", "petal_width"], axis=1
    )
    return table.assign(species=data.target_names[data.target])


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory, iris: pd.DataFrame) -> Path:
    folder = tmp_path_factory.mktemp("workshop")
    iris.to_csv(folder / "iris.csv", index=False)
    iris.to_parquet(folder / "iris.parquet", index=False)
    iris.iloc[[0, 60, 120], :4].assign(id=["a", "b", "c"]).to_csv(folder / "rows.csv", index=False)
    done = called("train", "iris.csv", "--label", "species", "-o", "iris.clvq", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "trained.txt").write_bytes(done.stdout)
    return folder
