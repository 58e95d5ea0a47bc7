"""The recipes of the page about clusters, run on the engines themselves and compared bit by bit.

Everything stays on this machine: engines listen on the loopback alone, and end with the tests.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import counterlvq as clvq
from tests.support.streams import mixed_batch, mixed_explainer

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "howto" / "clusters.md"
LOOPBACK = "127.0.0.1"

# A first start of an engine on a busy machine takes minutes. What engines warn about, such as
# sockets that are open at their end or newer libraries beside them, is no fault of ours.
pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("default")]


def recipe(heading: str, language: str = "python") -> list[str]:
    """The blocks below a heading that only this test runs."""
    text = PAGE.read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    found = re.findall(rf"^```{{code-block}} {language}\n(.*?)^```$", section, re.M | re.S)
    assert found, f"the page has no recipe for {heading}"
    return found


def beginning() -> dict[str, Any]:
    """Run what the page begins with: a model, an explainer and three files."""
    text = PAGE.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {}
    exec(text.partition("```python\n")[2].partition("\n```")[0], namespace)
    return namespace


@pytest.fixture
def plain() -> tuple[dict[str, Any], str]:
    """The table of the page."""
    return beginning(), "accepted"


@pytest.fixture
def mixed(tmp_path: Path) -> tuple[dict[str, Any], str]:
    """Columns of all kinds, rows that cannot be read, a file of one row and one of none."""
    (tmp_path / "customers").mkdir()
    table = pa.Table.from_batches([mixed_batch(41)])
    for k, (start, rows) in enumerate([(0, 40), (40, 1), (0, 0)]):
        pq.write_table(
            table.slice(start, rows), tmp_path / "customers" / f"{k}.parquet", row_group_size=9
        )
    return {"explainer": mixed_explainer(), "folder": tmp_path}, "yes"


@pytest.fixture(params=["plain", "mixed"])
def case(request: pytest.FixtureRequest) -> tuple[dict[str, Any], str]:
    return request.getfixturevalue(request.param)


def run(heading: str, namespace: dict[str, Any], target: str) -> None:
    for block in recipe(heading):
        exec(compile(block.replace("accepted", target), heading, "exec"), namespace)


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Rows in the order of their names, which stand in the first column."""
    return sorted(table.to_pylist(), key=lambda row: str(next(iter(row.values()))))


def numbers(rows: list[dict[str, Any]], name: str) -> bytes:
    return np.array([row[name] for row in rows], dtype=float).tobytes()


def confirm(found: pa.Table, namespace: dict[str, Any], target: Any) -> None:
    """Compare with `explain_batch` and with the rows that were given, to the last bit."""
    explainer: clvq.Explainer = namespace["explainer"]
    given = pq.read_table(namespace["folder"] / "customers")
    given = given.sort_by(given.column_names[0])
    whole = explainer.explain_batch(given, target, on_bad_rows="report")
    rows, asked = rows_of(found), rows_of(given)
    assert [{name: row[name] for name in given.column_names} for row in rows] == asked
    for name in ("cost", "lower_bound", "gap"):
        assert numbers(rows, name) == getattr(whole, name).tobytes(), name
    assert [row["status"] for row in rows] == whole.status.tolist()
    for name in explainer.features.names:
        after = [row[f"{name}_after"] for row in rows]
        after = [float(v) if isinstance(v, Decimal) else v for v in after]
        assert list(map(repr, after)) == list(map(repr, whole.X[name].to_pylist())), name
    bad = [row["status"] == "invalid" for row in rows]
    assert [row["reason"] is not None for row in rows] == bad
    here = explainer.map_batches(given.combine_chunks().to_batches(), target).read_all()
    for name in ("prediction", "original_prediction", "prototype", "changed", "reason"):
        assert [row[name] for row in rows] == [row[name] for row in rows_of(here)], name


# --- Spark ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", LOOPBACK)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
        patch.setenv("TZ", "UTC")
        settings = {
            "spark.driver.host": LOOPBACK,
            "spark.driver.memory": "1g",
            "spark.ui.enabled": "false",
            "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        }
        builder = sql.SparkSession.builder.master("local[2]")
        session = builder.config(map=settings).getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        try:
            yield session
        finally:
            session.stop()


def test_spark_answers_as_a_batch_does(spark: Any, case: tuple[dict[str, Any], str]) -> None:
    namespace, target = case
    run("Spark", namespace, target)
    confirm(pq.read_table(namespace["folder"] / "answers-spark"), namespace, target)


def test_spark_may_have_partitions_without_rows_and_a_wish_for_each_row(
    spark: Any, plain: tuple[dict[str, Any], str]
) -> None:
    namespace, _ = plain
    explainer = namespace["explainer"]
    table = pq.read_table(namespace["folder"] / "customers")
    wishes = ["accepted", "rejected", None] * 10
    asked = spark.createDataFrame(table.append_column("wish", pa.array(wishes))).repartition(2)
    few = asked.where("customer = 'c00'")
    told = explainer.output_schema(asked.limit(0).toArrow().schema, "wish", columns=["customer"])
    schema = spark.createDataFrame(told.empty_table()).schema

    def answer(batches: Any) -> Any:
        return explainer.map_batches(batches, "wish", columns=["customer"])

    found = rows_of(asked.mapInArrow(answer, schema).toArrow())
    whole = explainer.explain_batch(table, wishes)
    assert numbers(found, "cost") == whole.cost.tobytes()
    assert rows_of(few.mapInArrow(answer, schema).toArrow()) == found[:1]
    assert few.where("cards < 0").mapInArrow(answer, schema).toArrow().num_rows == 0


def test_bad_row_ends_a_job_of_spark_if_it_is_to(
    spark: Any, mixed: tuple[dict[str, Any], str]
) -> None:
    namespace, target = mixed
    strict = 'batches, "accepted", on_bad_rows="raise"'
    (block,) = recipe("Spark")
    code = block.replace('batches, "accepted"', strict).replace("accepted", target)
    errors = pytest.importorskip("pyspark.errors")
    with pytest.raises(errors.PySparkException, match=r"row \d+ of all batches.*: column"):
        exec(code, namespace)


# --- Ray ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
        engine = pytest.importorskip("ray")
        engine.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=100 << 20,
            _node_ip_address=LOOPBACK,
        )
        try:
            yield engine
        finally:
            engine.shutdown()


def test_ray_answers_as_a_batch_does(ray: Any, case: tuple[dict[str, Any], str]) -> None:
    namespace, target = case
    run("Ray", namespace, target)
    confirm(pq.read_table(namespace["folder"] / "answers-ray"), namespace, target)


# --- Dask -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cluster of three processes, which the recipe finds by its address."""
    import dask
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=3,
            threads_per_worker=1,
            dashboard_address=None,
            host=LOOPBACK,
            local_directory=str(tmp_path_factory.mktemp("workers")),
        ) as cluster,
        dask.config.set({"scheduler-address": cluster.scheduler_address}),
    ):
        yield


def test_dask_answers_as_a_batch_does(dask: None, case: tuple[dict[str, Any], str]) -> None:
    namespace, target = case
    namespace["__name__"] = "__main__"  # as in a script
    run("Dask", namespace, target)
    folder = namespace["folder"]
    confirm(pq.read_table(folder / "answers-dask"), namespace, target)
    clvq.explain_dataset(namespace["explainer"], folder / "customers", folder / "one", target)
    contents = [
        {path.name: path.read_bytes() for path in (folder / name).iterdir()}
        for name in ("one", "answers-dask")
    ]
    assert contents[0] == contents[1]


# --- a shell --------------------------------------------------------------------------------------


def at_the_shell(code: str, folder: Path, **more: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src"), **more}
    done = subprocess.run(
        ["sh", "-c", code], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_jobs_of_a_shell_answer_as_a_batch_does(plain: tuple[dict[str, Any], str]) -> None:
    namespace, target = plain
    folder = namespace["folder"]
    by_xargs, by_array = recipe("SLURM and xargs", "sh")
    at_the_shell(by_xargs, folder)
    confirm(pq.read_table(folder / "answers-xargs"), namespace, target)
    for job in range(3):
        at_the_shell(by_array, folder, SLURM_ARRAY_TASK_ID=str(job))
    confirm(pq.read_table(folder / "answers-slurm"), namespace, target)
    before = {path: path.read_bytes() for path in (folder / "answers-slurm").rglob("*.*")}
    at_the_shell(by_array, folder, SLURM_ARRAY_TASK_ID="1")
    assert before == {path: path.read_bytes() for path in (folder / "answers-slurm").rglob("*.*")}


def test_jobs_of_a_shell_keep_files_of_one_name_apart(plain: tuple[dict[str, Any], str]) -> None:
    """And the values in their paths, though no job knows them."""
    namespace, target = plain
    customers = namespace["folder"] / "customers"
    for old, new in zip("012", ("country=DE/0", "country=FR/0", "country=FR/a b"), strict=True):
        (customers / new).parent.mkdir(exist_ok=True)
        (customers / f"{old}.parquet").rename(customers / f"{new}.parquet")
    by_xargs, by_array = recipe("SLURM and xargs", "sh")
    at_the_shell(by_xargs, namespace["folder"])
    for job in range(3):
        at_the_shell(by_array, namespace["folder"], SLURM_ARRAY_TASK_ID=str(job))
    for name in ("answers-xargs", "answers-slurm"):
        found = pq.read_table(namespace["folder"] / name)
        assert sorted(found["country"].to_pylist()) == ["DE"] * 10 + ["FR"] * 20
        confirm(found, namespace, target)
