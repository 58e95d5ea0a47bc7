"""Dask: lazily with meta, on two workers, and into the same folder as one process.

Workers are threads here, and processes, which take seconds to start, where they are killed.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import counterlvq as clvq
from tests.support.shell import called
from tests.support.streams import mixed_batch, mixed_explainer, plain_explainer, plain_table

dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
import counterlvq.dask  # noqa: E402 - behind what it needs

pytestmark = pytest.mark.filterwarnings("default")  # those of a cluster that starts and ends


ROOT = Path(__file__).resolve().parents[2]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@contextmanager
def cluster(folder: Path, processes: bool) -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=processes,
            dashboard_address=None,
            local_directory=str(folder),
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with cluster(tmp_path_factory.mktemp("workers"), processes=False) as client:
        yield client


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    table = plain_table(1200)
    pq.write_table(table.slice(0, 1199), tmp_path / "source" / "a.parquet", row_group_size=50)
    pq.write_table(table.slice(1199), tmp_path / "source" / "b.parquet")
    return tmp_path / "source"


def test_frame_is_answered_lazily_and_as_meta_says(client: Any) -> None:
    frame = pa.Table.from_batches([mixed_batch(12)]).to_pandas().drop(columns=["when", "deep"])
    frame["rate"] = frame["rate"].astype(float)
    lazy = clvq.dask.explain(dd.from_pandas(frame, npartitions=3), mixed_explainer(), "yes")
    told = lazy.compute()
    assert list(told.columns) == list(lazy.columns)
    assert told.dtypes.astype(str).tolist() == lazy.dtypes.astype(str).tolist()
    whole = mixed_explainer().explain_batch(frame, "yes", on_bad_rows="report")
    assert told["cost"].tolist() == whole.cost.tolist()
    assert told["status"].tolist() == whole.status.tolist()
    assert told["id"].tolist() == frame["id"].tolist()


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_bad_row_is_told_with_its_partition(scheduler: str) -> None:
    frame = plain_table(30).to_pandas()
    frame.loc[17, "u"] = None
    given = dd.from_pandas(frame, npartitions=3)
    lazy = clvq.dask.explain(given, plain_explainer(), "c", on_bad_rows="raise")
    words = r"row 7 of partition 1, both counted from 0: column 'u' is missing"
    with pytest.raises(clvq.InvalidInputError, match=words):
        lazy.compute(scheduler=scheduler)


PASSED: dict[str, Any] = {
    "lists": pa.array([[1, 2], None]),
    "structs": pa.array([{"q": 1}] * 2),
    "maps": pa.array([[("a", 1)]] * 2, pa.map_(pa.string(), pa.int64())),
    "bytes": pa.array([b"\xff"] * 2),
    "times": pa.array([dt.time(1)] * 2),
    "dates": pa.array([dt.date(2020, 1, 1)] * 2),
    "decimals": pa.array([Decimal("0.25")] * 2, pa.decimal128(2, 2)),
    "dictionary": pa.array(["x", "y"]).dictionary_encode(),
}


@pytest.mark.parametrize("name", PASSED)
def test_columns_of_parquet_pass_through_as_they_are(tmp_path: Path, name: str) -> None:
    table = plain_table(2).append_column("other", PASSED[name])
    pq.write_table(table, tmp_path / "t.parquet")
    frame = dd.read_parquet(tmp_path / "t.parquet")
    told = clvq.dask.explain(frame, plain_explainer(), "c")
    found = told.compute(scheduler="synchronous")
    whole = plain_explainer().explain_batch(plain_table(2).drop_columns("id"), "c")
    assert found["cost"].tolist() == whole.cost.tolist()
    assert str(found["other"].tolist()) == str(frame.compute(scheduler="sync")["other"].tolist())
    assert told.dtypes["other"] == frame.dtypes["other"]


def test_features_of_parquet_may_be_dictionaries_decimals_and_wishes(tmp_path: Path) -> None:
    batch = mixed_batch(300).append_column(
        "wish", pa.array(["yes", "no"] * 150).dictionary_encode()
    )
    pq.write_table(pa.Table.from_batches([batch]), tmp_path / "t.parquet", row_group_size=100)
    frame = dd.read_parquet(tmp_path / "t.parquet", split_row_groups=True)
    whole = mixed_explainer().map_batches([batch], "wish").read_all()
    assert set(whole["status"].to_pylist()) == {"optimal", "invalid"}
    names = ["status", "cost", "job_after", "rate_after"]
    unknown = frame.assign(job=frame["job"].astype(object).astype("category"))
    for given in (frame, unknown, unknown.categorize(["job"])):
        lazy = clvq.dask.explain(given, mixed_explainer(), "wish")
        told = lazy.compute(scheduler="synchronous")
        assert told.dtypes.astype(str).tolist() == lazy.dtypes.astype(str).tolist()
        for name in names:
            expected = whole[name].to_pandas().astype(object)
            assert told[name].astype(object).fillna("").tolist() == expected.fillna("").tolist()


def test_lists_in_the_place_of_a_feature_are_refused_in_words(tmp_path: Path) -> None:
    table = plain_table(2).set_column(1, "u", pa.array([[1.0], [2.0]]))
    pq.write_table(table, tmp_path / "t.parquet")
    lazy = clvq.dask.explain(dd.read_parquet(tmp_path / "t.parquet"), plain_explainer(), "c")
    with pytest.raises(clvq.InvalidInputError, match=r"column 'u' of a partition, of dtype object"):
        lazy.compute(scheduler="synchronous")


def test_path_is_answered_lazily(client: Any, source: Path) -> None:
    lazy = clvq.dask.explain(source, plain_explainer(), "c", part_rows=500)
    assert lazy.npartitions == 4
    told = lazy[["id", "cost"]].compute().sort_values("id")
    whole = plain_explainer().explain_batch(plain_table(1200).drop_columns("id"), "c")
    assert told["cost"].tolist() == whole.cost.tolist()


def test_folder_is_that_of_one_process(client: Any, source: Path, tmp_path: Path) -> None:
    clvq.explain_dataset(plain_explainer(), source, tmp_path / "one", "c", part_rows=200)
    told = clvq.dask.explain(
        source, plain_explainer(), "c", destination=tmp_path / "many", part_rows=200, client=client
    )
    assert told.rows == 1200
    assert contents(tmp_path / "many") == contents(tmp_path / "one")
    again = clvq.dask.explain(
        source, plain_explainer(), "c", destination=tmp_path / "one", part_rows=200
    )
    assert again.resumed == again.parts


def test_folder_goes_from_the_shell_to_python_to_dask_and_back(
    client: Any, source: Path, tmp_path: Path
) -> None:
    """Each time a part is missing, which the next one writes, byte for byte."""
    clvq.save(plain_explainer().model, tmp_path / "m.clvq")
    explainer, folder = clvq.Explainer(clvq.load(tmp_path / "m.clvq")), tmp_path / "out"

    def shell() -> str:
        words = ("m.clvq", "source", "--target", "c", "--cost", "manhattan", "--output", "out/")
        done = called("explain", *words, "--part-rows", "500", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stderr.decode()

    shell()
    before = contents(folder)
    ways = [
        lambda: str(clvq.explain_dataset(explainer, source, folder, "c")),
        lambda: str(clvq.dask.explain(source, explainer, "c", destination=folder)),
        lambda: str(clvq.dask.explain(source, explainer, ["c"], destination=folder)),
        shell,
    ]
    for way in ways:
        (folder / "part-00000-00000.parquet").unlink()
        assert "3 of them from before" in way()
        assert contents(folder) == before


def test_client_that_is_given_is_the_one_that_is_waited_for(
    client: Any, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one may be current, whose loop does not wake up for its answers."""

    def nobody() -> Any:
        raise AssertionError("the current client was asked for")

    monkeypatch.setattr("distributed.client.default_client", nobody)
    told = clvq.dask.explain(
        source, plain_explainer(), "c", destination=tmp_path / "out", client=client
    )
    assert told.rows == 1200


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Any]:
    with cluster(tmp_path / "workers", processes=True) as client:
        yield client


def test_workers_may_have_another_working_directory(
    processes: Any, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(source.parent)
    lazy = clvq.dask.explain("source", plain_explainer(), "c")
    assert len(lazy[["cost"]].compute()) == 1200
    told = clvq.dask.explain("source", plain_explainer(), "c", destination="out", client=processes)
    assert told.rows == 1200
    clvq.explain_dataset(plain_explainer(), "source", "one", "c")
    assert contents(Path("out")) == contents(Path("one"))


@pytest.mark.slow
def test_folder_is_that_of_one_process_if_a_worker_is_killed(
    processes: Any, source: Path, tmp_path: Path
) -> None:
    client = processes
    clvq.explain_dataset(plain_explainer(), source, tmp_path / "one", "c", part_rows=50)

    pids = list(client.run(os.getpid).values())

    def kill() -> None:
        """Wait for the first part, of twenty-five."""
        while not any((tmp_path / "many").glob("part-*")):
            time.sleep(0.001)
        os.kill(pids[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    told = clvq.dask.explain(
        source, plain_explainer(), "c", destination=tmp_path / "many", part_rows=50, client=client
    )
    killer.join()
    assert told.rows == 1200
    assert contents(tmp_path / "many") == contents(tmp_path / "one")
    again = clvq.dask.explain(
        source, plain_explainer(), "c", destination=tmp_path / "one", part_rows=50
    )
    assert again.resumed == again.parts


def kill(kills: int, seed: int, rows: int) -> dict[str, int]:
    script = ROOT / "tests" / "support" / "dask_killing.py"
    done = subprocess.run(
        [sys.executable, str(script), str(kills), str(seed), str(rows)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="processes are forked")
def test_a_hundred_killed_workers_leave_no_trace() -> None:
    assert kill(100, seed=1, rows=4500)["kills"] >= 100


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    frame = dd.from_pandas(plain_table(4).to_pandas(), npartitions=1)
    with pytest.raises(clvq.InvalidInputError, match=r"expected a path as source"):
        clvq.dask.explain(frame, plain_explainer(), "c", destination=tmp_path / "out")
    with pytest.raises(clvq.InvalidInputError, match=r"expected a Dask DataFrame or a path"):
        clvq.dask.explain([1], plain_explainer(), "c")


def test_argument_that_is_no_client_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    words = r"client is 'tcp://here:1' of type str; expected a distributed\.Client"
    with pytest.raises(clvq.InvalidInputError, match=words):
        clvq.dask.explain(
            tmp_path / "none",
            plain_explainer(),
            destination=tmp_path / "out",
            client="tcp://here:1",
        )
    assert not (tmp_path / "out").exists()


def test_column_of_wishes_may_be_called_like_a_label(client: Any, tmp_path: Path) -> None:
    wishes = ["a", "b", "c", None] * 5
    table = plain_table(20).append_column("c", pa.array(wishes))
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=5)
    whole = plain_explainer().explain_batch(plain_table(20).drop_columns("id"), wishes)
    frame = dd.from_pandas(table.to_pandas(), npartitions=3)
    for source in (tmp_path / "t.parquet", frame):
        lazy = clvq.dask.explain(source, plain_explainer(), target_column="c")
        told = lazy.compute(scheduler="synchronous").sort_values("id")
        assert told["cost"].tolist() == whole.cost.tolist()
        assert told["prediction"].tolist() == whole.prediction.tolist()
        with pytest.raises(clvq.InvalidInputError, match=r"expected one of both\."):
            clvq.dask.explain(source, plain_explainer(), "a", target_column="c")
        with pytest.raises(clvq.InvalidInputError, match=r"names the column 'd', which the table"):
            clvq.dask.explain(source, plain_explainer(), target_column="d")
    given: dict[str, Any] = {"target_column": "c", "part_rows": 5}
    path = tmp_path / "t.parquet"
    clvq.explain_dataset(plain_explainer(), path, tmp_path / "one", **given)
    clvq.dask.explain(
        path, plain_explainer(), destination=tmp_path / "many", client=client, **given
    )
    assert contents(tmp_path / "many") == contents(tmp_path / "one")


LONG = "a text that does not fit into a view itself"
VIEWS: dict[str, Any] = {
    "text": pa.array([LONG, None], pa.string_view()),
    "bytes": pa.array([b"\xff", LONG.encode()], pa.binary_view()),
    "lists": pa.array([[LONG, None], None], pa.list_(pa.string_view())),
    "large lists": pa.array([[LONG, None], None], pa.large_list(pa.string_view())),
    "pairs": pa.array([[LONG, "b"], None], pa.list_(pa.string_view(), 2)),
    "structs": pa.array([{"q": [LONG]}, None], pa.struct([("q", pa.list_(pa.string_view()))])),
    "maps": pa.array([[("a", LONG)], None], pa.map_(pa.string_view(), pa.string_view())),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_a_path_come_in_types_that_rows_can_be_taken_of(tmp_path: Path, name: str) -> None:
    table = plain_table(2).append_column("other", VIEWS[name])
    try:
        pq.write_table(table, tmp_path / "t.parquet")
    except pa.ArrowNotImplementedError:
        pytest.skip("this pyarrow writes no views")
    lazy = clvq.dask.explain(tmp_path / "t.parquet", plain_explainer(), "c")
    told = lazy.compute(scheduler="synchronous")
    assert told.dtypes.astype(str).tolist() == lazy.dtypes.astype(str).tolist()
    assert pa.array(told["other"], from_pandas=True).to_pylist() == VIEWS[name].to_pylist()
    assert told.take([1])["id"].tolist() == [1]
