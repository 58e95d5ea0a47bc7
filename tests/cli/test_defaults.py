"""What commands take from the summary of the training table, and what lifts it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import counterlvq as clvq
from tests.support.shell import called

ASK = ["explain", "iris.clvq", "rows.csv", "--target", "virginica"]
NUMBERS = ["sepal_length", "sepal_width", "petal_length", "petal_width"]


def seen(table: pd.DataFrame, name: str) -> tuple[float, float]:
    """The tenth value from either end."""
    ordered = sorted(table[name])
    return ordered[9], ordered[-10]


def test_answers_stay_in_what_was_seen_and_cost_typical_deviations(
    workshop: Path, iris: pd.DataFrame
) -> None:
    done = called(*ASK, "--format", "json", cwd=workshop)
    aside = [line.removeprefix("counterlvq: ") for line in done.stderr.decode().splitlines()]
    rows = pd.read_csv(workshop / "rows.csv")
    for cf, row in zip(json.loads(done.stdout), rows.to_dict("records"), strict=True):
        assert cf["status"] == "optimal"
        total = 0.0
        for name in NUMBERS:
            low, high = seen(iris, name)
            assert min(low, row[name]) <= cf["x"][name] <= max(high, row[name])
            spread = (iris[name] - iris[name].median()).abs().median()
            total += abs(cf["x"][name] - row[name]) / spread
        assert cf["cost"] == pytest.approx(total)
    words = called(*ASK, cwd=workshop).stdout.decode().splitlines()
    assert any(line.startswith("costs are in typical deviations") for line in words)
    assert len(aside) == 3
    assert set(aside) <= set(words)
    for kind in ("text", "csv"):
        assert called(*ASK, "--format", kind, cwd=workshop).stderr == done.stderr
    told = [line for line in words if line.endswith(" lifts that")]
    assert told[0] == "numbers stay in the usual ranges of the data; --anywhere lifts that"
    # Values of other tables may lie between the steps of this one, which has one decimal.
    assert told[1].startswith("changes of less than 0.05 (sepal_length), 0.02 (sepal_width), 0.1 ")
    assert len(told) == 2


def test_trifles_are_left_out_unless_somebody_says_otherwise(
    workshop: Path, iris: pd.DataFrame
) -> None:
    least = {}
    for name in NUMBERS:
        spread = (iris[name] - iris[name].median()).abs().median()
        least[name] = max(size for size in (0.1, 0.2, 0.5, 1.0, 2.0) if size <= spread)
    asked = (*ASK, "--least", "1")
    told = json.loads(called(*asked, "--format", "json", cwd=workshop).stdout)
    changes = [change for cf in told for change in cf["changes"]]
    assert changes
    for change in changes:
        assert abs(change["difference"]) >= least[change["feature"]] - 1e-9
    listed = ", ".join(f"{least[name]:g} ({name})" for name in NUMBERS[:3])
    words = called(*asked, cwd=workshop).stdout.decode()
    assert f"changes of less than {listed} and 1 more are left out; --least 0 lifts that" in words
    rule = f"if {NUMBERS[0]} changes then by at least 3"
    words = called(*asked, "--constraint", rule, cwd=workshop).stdout.decode()
    assert f"({NUMBERS[0]})" not in words


def test_rules_have_words_of_their_own_at_the_shell(workshop: Path) -> None:
    frozen = [word for name in NUMBERS for word in ("--freeze", name)]
    words = ["--rule", "no change of petal_width", "petals stay as they are"]
    done = called(*ASK, *frozen, *words, "--format", "text", cwd=workshop).stdout.decode()
    assert '"petals stay as they are"' in done
    assert "Freeze(" not in done
    wrong = called(*ASK, "--rule", "age <= 3", "x", "--format", "text", cwd=workshop)
    assert wrong.returncode == 2
    assert "no rule of this question" in wrong.stderr.decode()


def test_a_margin_is_asked_for_at_the_shell(workshop: Path) -> None:
    costs = [
        [
            cf["cost"]
            for cf in json.loads(called(*ASK, *more, "--format", "json", cwd=workshop).stdout)
        ]
        for more in (("--anywhere",), ("--anywhere", "--confidence", "margin=1"))
    ]
    assert all(far >= near for near, far in zip(*costs, strict=True))
    assert sum(costs[1]) > sum(costs[0])


def test_both_are_lifted(workshop: Path) -> None:
    done = called(*ASK, "--cost", "manhattan", "--anywhere", "--format", "json", cwd=workshop)
    batch = clvq.Explainer(clvq.load(workshop / "iris.clvq")).explain_batch(
        pd.read_csv(workshop / "rows.csv"), "virginica"
    )
    assert [cf["cost"] for cf in json.loads(done.stdout)] == pytest.approx(batch.cost.tolist())
    told = called(*ASK, "--cost", "manhattan", "--anywhere", cwd=workshop).stdout.decode()
    assert "typical" not in told
    assert "as seen" not in told


def test_a_stated_end_takes_the_place_of_the_one_that_was_seen(
    workshop: Path, iris: pd.DataFrame
) -> None:
    frozen = [word for name in NUMBERS[:3] for word in ("--freeze", name)]
    done = called(*ASK, *frozen, cwd=workshop)
    assert done.returncode == 3
    low, high = seen(iris, "petal_width")
    assert f"petal_width from {low:g} to {high:g} as usual in the data" in done.stdout.decode()
    wide = called(*ASK, *frozen, "--bounds", "petal_width=:40", "--format", "csv", cwd=workshop)
    assert wide.returncode == 0


def test_ranges_are_spoken_of_where_one_is_in_force(workshop: Path, tmp_path: Path) -> None:
    line = "numbers stay in the usual ranges of the data"
    stated = [word for name in NUMBERS for word in ("--bounds", f"{name}=0:40")]
    assert line in called(*ASK, *stated[2:], cwd=workshop).stdout.decode()
    assert line not in called(*ASK, *stated, cwd=workshop).stdout.decode()
    columns = tmp_path / "columns.toml"
    columns.write_text("[petal_width]\nrange = [0, inf]\n")
    asked = (*ASK, "--columns", str(columns))
    assert line in called(*asked, cwd=workshop).stdout.decode()
    assert line not in called(*asked, "--anywhere", cwd=workshop).stdout.decode()


def test_a_file_without_a_summary_works_and_says_what_is_missing(
    workshop: Path, tmp_path: Path
) -> None:
    words = ["train", "iris.csv", "--label", "species", "--no-summary"]
    path = str(tmp_path / "bare.clvq")
    assert called(*words, "-o", path, cwd=workshop).returncode == 0
    assert clvq.load(path).reference is None
    ask = ["explain", path, *ASK[2:], "--format", "csv"]
    done = called(*ask, cwd=workshop)
    assert b"has no summary of its training table" in done.stderr
    plain = called(*ASK, "--cost", "manhattan", "--anywhere", "--format", "csv", cwd=workshop)
    assert done.stdout == plain.stdout
    assert called(*ask, "--cost", "manhattan", cwd=workshop).stderr == b""
    measured = called(*ask, "--cost", "mad", cwd=workshop).stderr
    assert b"deviations are those of the rows that are explained, and numbers may go" in measured
    ranged = called(*ask, "--reference", "iris.csv", "--within", "iris.csv", cwd=workshop).stderr
    assert b"summary" not in ranged
    assert b"summary     none" in called("inspect", path, cwd=workshop).stdout


def test_a_page_says_it_too(workshop: Path) -> None:
    words = ["report", "iris.clvq", "rows.csv", "--target", "virginica", "--no-pictures"]
    page = called(*words, cwd=workshop).stdout.decode()
    assert "sum of all changes, in typical deviations" in page
    assert "cost, in typical deviations" in page
    assert "4 numbers stay in the range of their columns as usual in the data" in page


def test_inspect_shows_the_summary(workshop: Path, iris: pd.DataFrame) -> None:
    told = json.loads(called("inspect", "iris.clvq", "--json", cwd=workshop).stdout)
    for feature in told["features"]:
        values = iris[feature["name"]]
        assert feature["summary"]["median"] == values.median()
        assert feature["summary"]["deviation"] == pytest.approx(float(np.std(values)))
    assert "seen" in called("inspect", "iris.clvq", cwd=workshop).stdout.decode()


def test_values_off_a_stated_step_change_by_half_of_it_at_least(tmp_path: Path) -> None:
    """Whoever counts in fives reads 116 as 115 already."""
    pressure = np.arange(90.0, 150.0)
    table = pd.DataFrame({"pressure": pressure, "age": np.arange(20.0, 80.0)})
    model = clvq.PrototypeModel(
        [[132.0, 50.0], [99.0, 50.0]], ["ill", "well"], feature_names=["pressure", "age"]
    )
    clvq.save(model, tmp_path / "ward.clvq", reference=table)
    pd.DataFrame({"pressure": [116.0, 117.0, 121.0], "age": [50.0] * 3}).to_csv(
        tmp_path / "rows.csv", index=False
    )
    (tmp_path / "columns.toml").write_text('[pressure]\nkind = "whole"\nstep = 5\n')
    ask = ("explain", "ward.clvq", "rows.csv", "--target", "well", "--columns", "columns.toml")
    ask = (*ask, "--format", "json", "--freeze", "age")
    found = {}
    for more in ((), ("--least", "0")):
        told = json.loads(called(*ask, *more, cwd=tmp_path).stdout)
        found[more] = [cf["x"]["pressure"] for cf in told]
    # Well is below 115.5.
    assert found == {(): [110.0, 110.0, 115.0], ("--least", "0"): [115.0, 115.0, 115.0]}
