"""`explain --certificates` and `verify`: proofs that leave the command, and come back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest
from sklearn.linear_model import LogisticRegression

import counterlvq as clvq
from counterlvq.certificates import check_certificate
from counterlvq.cli.app import run
from tests.support.shell import is_running, started


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A model file and a table."""
    model, table = tmp_path / "model.clvq", tmp_path / "rows.csv"
    clvq.save(
        clvq.PrototypeModel(
            [[0.0, 0.0], [4.0, 2.0]], ["no", "yes"], feature_names=["income", "age"]
        ),
        model,
    )
    table.write_text("income,age\n0.5,0\n1,1\n")
    return str(model), str(table)


def explain(files: tuple[str, str], *words: str) -> int:
    out = str(Path(files[0]).with_name("out.csv"))
    return run(["explain", *files, "--target", "yes", "--output", out, *words])


def test_files_of_scores_do_not_speak_of_training_rows(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    card, table = tmp_path / "card.clvq", tmp_path / "rows.csv"
    fitted = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    clvq.save(fitted, card)
    table.write_text("x0\n0.5\n1\n")
    proofs = str(tmp_path / "proofs.jsonl")
    assert explain((str(card), str(table)), "--certificates", proofs) == 0
    told = capfd.readouterr().err
    assert "proofs.jsonl holds the model." in told.replace("\n", "")
    assert "training rows" not in told


def test_certificates_are_written_and_verified(
    files: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "proofs.jsonl")
    assert explain(files, "--certificates", path, "--constraint", "age <= 3") == 0
    assert capfd.readouterr().err.count("training rows") == 1
    for more in ([], ["--exact"]):
        assert run(["verify", path, *more]) == 0
        lines = capfd.readouterr().out.splitlines()
        assert [line.split()[:2] for line in lines] == [["VERIFIED", "2"], ["VERIFIED", "3"]]
    text = Path(path).read_text()
    Path(path).write_text(text.replace('"optimal"', '"infeasible"'))
    for more in ([], ["--exact"]):
        assert run(["verify", path, *more]) == 1
        assert capfd.readouterr().out.startswith("REFUTED 2 ")


def test_folders_and_missing_files_are_errors_and_no_verdicts(
    files: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, folder = str(tmp_path / "proofs.jsonl"), str(tmp_path)
    assert explain(files, "--certificates", path) == 0
    capfd.readouterr()
    missing = str(tmp_path / "nowhere.jsonl")
    for more in ([], ["--exact"]):
        for words in ([folder], [path, "--model", folder]):
            assert run(["verify", *words, *more]) == 1
            said = capfd.readouterr()
            told = " ".join(said.err.split())
            assert f"{folder}: is a folder; expected a file of `counterlvq explain" in told
            assert said.out == ""
        for words in ([missing], [path, "--model", missing]):
            assert run(["verify", *words, *more]) == 1
            said = capfd.readouterr()
            assert f"{missing}: No such file" in said.err
            assert said.out == ""


def test_time_for_one_answer_is_limited(
    files: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "proofs.jsonl")
    assert explain(files, "--certificates", path) == 0
    capfd.readouterr()
    for more in ([], ["--exact"]):
        assert run(["verify", path, "--seconds", "1e-9", *more]) == 1
        assert "takes more than 1e-09 seconds; see --seconds" in capfd.readouterr().out


@pytest.mark.parametrize("seconds", ["nan", "0", "-1"])
def test_time_is_a_number_above_zero(
    files: tuple[str, str], tmp_path: Path, seconds: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path, words = tmp_path / "proofs.jsonl", f"seconds is {seconds}; expected a number above 0."
    assert explain(files, "--certificates", str(path)) == 0
    with pytest.raises(SystemExit) as end:
        check_certificate.main([str(path), "--seconds", seconds])
    assert end.value.code == 2
    assert words in capfd.readouterr().err
    for more in ([], ["--exact"]):
        assert run(["verify", str(path), "--seconds", seconds, *more]) == 2
        assert words in capfd.readouterr().err
    path.write_text(path.read_text() + "\n" * 50_000)
    assert run(["verify", str(path), "--seconds", seconds]) == 2
    assert words in capfd.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_what_comes_through_a_pipe_is_printed_alike(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Costs are rounded up, bounds down, and the gap is the one between the two."""
    model = clvq.PrototypeModel([[0.0, 0.1], [4.0, 2.3]], ["no", "yes"], [[1.0, 0.3], [0.0, 0.7]])
    explainer, path, pipe = clvq.Explainer(model), tmp_path / "proofs.jsonl", tmp_path / "pipe"
    explainer.explain_batch([[0.5, 0.0], [1.0, 0.0], [0.3, 0.9]]).save_certificates(path)
    os.mkfifo(pipe)
    printed = list[list[list[str]]]()
    for name, more in ((path, []), (path, ["--exact"]), (pipe, [])):
        writer = threading.Thread(target=lambda: pipe.write_bytes(path.read_bytes()))
        if name == pipe:
            writer.start()
        assert run(["verify", str(name), *more]) == 0
        if name == pipe:
            writer.join()
        printed.append([line.split() for line in capfd.readouterr().out.splitlines()])
    assert printed[0] == printed[1]
    for alone, piped in zip(printed[0], printed[2], strict=True):
        assert piped[:4] == alone[:4]
        cost, bound, gap = (Fraction(piped[n]) for n in (3, 5, 7))
        assert bound <= Fraction(alone[5])
        assert max(Fraction(0), (cost - bound) / cost) <= gap


def test_model_can_be_kept_apart(
    files: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, model = str(tmp_path / "proofs.jsonl"), str(tmp_path / "model.json")
    assert explain(files, "--certificates", path, "--model-apart", model) == 0
    assert "prototypes" not in Path(path).read_text()
    for more in ([], ["--exact"]):
        assert run(["verify", path, "--model", model, *more]) == 0
        assert run(["verify", path, *more]) == 1
    assert "kept apart" in capfd.readouterr().out


def test_checker_is_handed_out_and_runs(
    files: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", "--print-checker"]) == 0
    text = capfd.readouterr().out
    assert text == Path(check_certificate.__file__).read_text(encoding="utf-8")
    alone, path = tmp_path / "alone.py", str(tmp_path / "proofs.jsonl")
    alone.write_text(text)
    assert explain(files, "--certificates", path) == 0
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(alone), path], capture_output=True, check=False
    )
    assert done.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="a stopped process ends so on Linux only")
def test_checker_ends_with_the_command_that_is_killed(tmp_path: Path) -> None:
    """Even one that is stopped, and so can look at nothing."""
    path = tmp_path / "proofs.jsonl"
    os.mkfifo(path)  # the checker waits here for somebody who writes
    # Both ends are open as soon as the checker reads, which knows its parent by then.
    with started("verify", "--exact", str(path), cwd=tmp_path) as command, open(path, "wb"):
        place = Path(f"/proc/{command.pid}/task/{command.pid}/children")
        (checker,) = map(int, place.read_text(encoding="utf-8").split())
        os.kill(checker, signal.SIGSTOP)
        command.kill()
        until = time.monotonic() + 20
        while is_running(checker) and time.monotonic() < until:
            time.sleep(0.01)
        try:
            assert not is_running(checker)
        finally:
            with suppress(ProcessLookupError):
                os.kill(checker, signal.SIGKILL)


def test_proofs_for_vipr_are_written(files: tuple[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "vipr"
    assert explain(files, "--vipr", str(folder)) == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["index.jsonl", "row0_prototype1.vipr", "row1_prototype1.vipr"]
    assert explain(files, "--vipr", str(folder)) == 1  # it is there already


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--model-apart", "model.json"], "--model-apart goes with --certificates"),
        (["--certificates", "-"], "certificates need a file"),
    ],
)
def test_what_cannot_be_written_is_refused_at_once(
    files: tuple[str, str], words: list[str], why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert explain(files, *words) == 2
    assert why in capfd.readouterr().err
    assert not Path(files[0]).with_name("out.csv").exists()


def test_verify_wants_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["verify"]) == 2
    assert run(["verify", str(tmp_path / "missing")]) == 1
    assert "missing" in capfd.readouterr().err


def test_small_files_wait_for_no_floats(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rational numbers are through before what floats need is loaded; not with large files."""
    path, asked = tmp_path / "proofs.jsonl", list[str]()
    assert explain(files, "--certificates", str(path)) == 0

    def verdicts(file: str, *_: object, **__: object) -> list[clvq.LineVerdict]:
        asked.append(file)
        return []

    monkeypatch.setattr(clvq, "verify_certificates", verdicts)
    assert run(["verify", str(path)]) == 0
    assert asked == []
    path.write_text(path.read_text() + "\n" * 50_000)
    assert run(["verify", str(path)]) == 0
    assert asked == [str(path)]
