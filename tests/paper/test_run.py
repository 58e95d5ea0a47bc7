"""The command itself: killed in the middle, taken up again, and fed a doctored journal."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from counterlvq_paper import main, results
from counterlvq_paper.journal import Journal
from counterlvq_paper.protocol import DATA_SETS, MODELS, QUICK
from counterlvq_paper.published import TABLE_1
from counterlvq_paper.report import markdown
from counterlvq_paper.results import results_of_plain
from counterlvq_paper.runner import case_at, plan

pytestmark = [pytest.mark.docs, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
BLOCKS_BEFORE_THE_END = 8
TIMES = {"seconds", "seconds_batch", "faster_ccp", "faster_auto"}


def command(folder: Path, *more: str) -> list[str]:
    """The quick run, as `make reproduce` starts it."""
    places = ["--output", str(folder / "tables"), "--cache", str(folder / "cache")]
    return [sys.executable, "-m", "experiments.paper", "--quick", *places, *more]


def start(folder: Path, *more: str) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command(folder, *more), cwd=ROOT, text=True, **pipes)


def blocks_in(folder: Path) -> dict[str, str]:
    files = (folder / "cache").glob("quick-*/blocks/*.json")
    return {path.name: path.read_text("utf-8") for path in files if path.name[0] != "."}


def children_of(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in listed.read_text().split()] if listed.exists() else []


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] == "Z")


def wait_until(what, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """A run in two processes that is killed by force, then interrupted, and then let be."""
    folder = tmp_path_factory.mktemp("killed")
    first = start(folder)
    wait_until(lambda: len(blocks_in(folder)) >= BLOCKS_BEFORE_THE_END or first.poll() is not None)
    assert first.poll() is None, first.communicate()
    workers = children_of(first.pid)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    wait_until(lambda: not any(is_running(pid) for pid in workers), 60.0)
    before = blocks_in(folder)
    second = start(folder)
    wait_until(lambda: len(blocks_in(folder)) > len(before) + 2 or second.poll() is not None)
    second.send_signal(signal.SIGINT)
    stopped = (*second.communicate(timeout=60), second.returncode)
    assert not (folder / "tables").exists()
    third = start(folder)
    told, progress = third.communicate()
    return {
        "folder": folder, "before": before, "stopped": stopped, "code": third.returncode,
        "told": told, "progress": progress,
    }  # fmt: skip


def read_table(folder: Path) -> list[dict[str, str]]:
    with (folder / "tables" / "table1.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_killed_run_goes_on_where_it_was(killed: dict) -> None:
    assert killed["code"] == 0, killed["told"] + killed["progress"]
    after = blocks_in(killed["folder"])
    assert BLOCKS_BEFORE_THE_END <= len(killed["before"]) < len(after)
    # What was finished was not done again: it has the same times in it.
    assert {name: after[name] for name in killed["before"]} == killed["before"]
    assert "Going on from" in killed["progress"]


def test_interrupt_stops_at_once_and_says_how_to_go_on(killed: dict) -> None:
    told, progress, code = killed["stopped"]
    assert code == 130
    assert told == ""
    assert progress.endswith("The same command goes on from the last finished block.\n")
    assert "Traceback" not in progress


def test_killed_run_has_the_tables_of_one_that_was_not(killed: dict, tmp_path: Path) -> None:
    """And one process gives what two give."""
    whole = start(tmp_path, "--jobs", "1")
    told, progress = whole.communicate()
    assert whole.returncode == 0, told + progress
    ours, theirs = read_table(killed["folder"]), read_table(tmp_path)
    assert len(ours) == len(theirs) == len(DATA_SETS) * len(MODELS) * 5
    for one, other in zip(ours, theirs, strict=True):
        assert {k: v for k, v in one.items() if k not in TIMES} == {
            k: v for k, v in other.items() if k not in TIMES
        }
    houses = [folder / "tables" / "table2.csv" for folder in (killed["folder"], tmp_path)]
    assert houses[0].read_text() == houses[1].read_text()


def test_tables_show_the_printed_figures_and_what_they_were_made_with(killed: dict) -> None:
    tables = killed["folder"] / "tables"
    names = {path.name for path in tables.iterdir()}
    assert names == {"reproduction.json", "reproduction.md", "reproduction.png", "table1.csv",
                     "table2.csv"}  # fmt: skip
    text = (tables / "reproduction.md").read_text("utf-8")
    for ds, cma, ours in TABLE_1.values():
        assert all(f"({figure:.2f})" in text for figure in (ds, cma, ours))
    results = json.loads((tables / "reproduction.json").read_text("utf-8"))
    assert {"python", "counterlvq", "numpy", "scipy", "cma"} <= set(results["versions"])
    assert results["seed"] == 0
    assert text == markdown(results_of_plain(results))
    assert (tables / "reproduction.png").read_bytes()[:4] == b"\x89PNG"
    assert "FAILS" not in killed["told"]
    assert killed["told"].count("holds") == len(results["verdicts"])


def test_costs_are_those_of_plain_programs(killed: dict) -> None:
    """Every compared row of the shared metrics, by linear programs written from `predict`."""
    (folder,) = (killed["folder"] / "cache").glob("quick-*")
    table = {
        (row["data"], row["model"], row["method"]): row for row in read_table(killed["folder"])
    }
    for data in DATA_SETS:
        for model in ("GLVQ", "GMLVQ"):
            case = case_at(Journal(folder), data, model, 0, QUICK)
            optima = [
                least_cost(case, case.rows[i], case.targets[i]) for i in range(case.n_compared)
            ]
            shown = float(table[data, model, "auto"]["mean_common"])
            assert shown == pytest.approx(np.mean(optima), rel=1e-6)


def least_cost(case, x, target) -> float:
    fitted = case.fitted
    omega = np.eye(len(x)) if fitted.omegas is None else fitted.omegas
    M = omega.T @ omega
    free, best = np.flatnonzero(case.free), np.inf
    for w in fitted.prototypes[fitted.labels == target]:
        rivals = fitted.prototypes[fitted.labels != target]
        # (y - w)' M (y - w) <= (y - v)' M (y - v) for y = x + up - down.
        left = 2 * (rivals - w) @ M
        right = np.einsum("ij,jk,ik->i", rivals - x, M, rivals - x) - (w - x) @ M @ (w - x)
        A = np.hstack([left[:, free], -left[:, free]])
        found = linprog(np.ones(2 * len(free)), A_ub=A, b_ub=right)
        best = min(best, found.fun if found.status == 0 else np.inf)
    return best


def doctored(killed: dict, folder: Path, method: str, change) -> int:
    """Change the first point of Ames GLVQ in a copy of the journal, and ask for the tables."""
    shutil.copytree(killed["folder"] / "cache", folder / "cache")
    (place,) = (folder / "cache").glob("quick-*")
    journal = Journal(place)
    block = next(b for b in plan(QUICK) if (b.data, b.model, b.method) == ("Ames", "GLVQ", method))
    case = case_at(journal, "Ames", "GLVQ", 0, QUICK)
    content = journal.read(block.name)
    change(case, content)
    journal.keep(block.name, content)
    arguments = ["--output", str(folder / "tables"), "--cache", str(folder / "cache")]
    return main(["--quick", "--jobs", "1", *arguments])


def failures(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAILS")]


def test_answer_without_the_target_is_noticed(killed: dict, tmp_path: Path, capsys) -> None:
    def stay(case, content) -> None:
        content["points"][0] = case.rows[0].tolist()

    assert doctored(killed, tmp_path, "auto", stay) == 1
    assert "every answer of ccp, auto and global is valid" in failures(capsys)[0]
    report = (tmp_path / "tables" / "reproduction.md").read_text("utf-8")
    assert "**fails**" in report


def test_answer_that_moves_a_frozen_feature_is_noticed(
    killed: dict, tmp_path: Path, capsys
) -> None:
    def move(case, content) -> None:
        content["points"][0][-1] += 1e-9

    assert doctored(killed, tmp_path, "ccp", move) == 1
    assert "every answer of ccp, auto and global is valid" in failures(capsys)[0]


def test_answer_that_is_too_far_is_noticed(killed: dict, tmp_path: Path, capsys) -> None:
    def overshoot(case, content) -> None:
        x, y = case.rows[0], np.array(content["points"][0])
        for factor in (3.0, 5.0, 8.0, 12.0):  # far along the same way, as long as it is valid
            further = x + factor * (y - x)
            if case.valid(np.array([0]), further[None, :])[0]:
                content["points"][0] = further.tolist()

    assert doctored(killed, tmp_path, "auto", overshoot) == 1
    claims = failures(capsys)
    assert any("auto <= Nelder-Mead" in claim for claim in claims)
    assert any("auto <= ccp" in claim for claim in claims)


def test_bound_that_is_too_high_is_noticed(killed: dict, tmp_path: Path, capsys) -> None:
    def raise_bound(case, content) -> None:
        content["lower_bound"][0] *= 1.01

    assert doctored(killed, tmp_path, "global", raise_bound) == 1
    assert "below a certified lower bound" in failures(capsys)[0]


def test_unproved_answer_is_noticed(killed: dict, tmp_path: Path, capsys) -> None:
    def doubt(case, content) -> None:
        content["status"][0] = "feasible"

    assert doctored(killed, tmp_path, "auto", doubt) == 1
    assert "certified optimal" in failures(capsys)[0]


def test_mistakes_in_the_call_are_told_in_one_line(tmp_path: Path, capsys) -> None:
    assert main(["--quick", "--jobs", "0", "--output", str(tmp_path / "tables")]) == 2
    told = capsys.readouterr().err
    assert told == "--jobs is 0; expected a positive number of processes.\n"
    assert not (tmp_path / "tables").exists()


def test_missing_package_is_named_before_anything_is_run(
    tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name == "matplotlib":
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(results, "version", version)
    assert main(["--quick", "--output", str(tmp_path), "--cache", str(tmp_path / "cache")]) == 2
    assert "pip install matplotlib" in capsys.readouterr().err
    assert not (tmp_path / "cache").exists()
