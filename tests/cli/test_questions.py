"""Confidence, ways, reasons and ranges at the shell: words for what is wrong, and closing lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.shell import called


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["similarity="], ["'similarity=' has no number", "expected", "similarity=0.3"]),
        (["drift"], ["'drift' has no number", "drift=0.1"]),
        (["probability=90%"], ["'90%' where a number belongs", "Write 0.9 for 90%."]),
        (["noise=far:l1"], ["'far' where a number belongs", "noise=0.1:linf"]),
        (["noise=1:l7"], ["norm is 'l7'", "'linf'"]),
        (["chance=0.9"], ["is no confidence", "probability=0.9"]),
        (["probability=0.9", "drift=0.1"], ["it came 2 times", "expected one", "Leave out"]),
    ],
)
def test_shell_says_what_is_no_confidence(
    tmp_path: Path, given: list[str], said: list[str]
) -> None:
    words = [word for text in given for word in ("--confidence", text)]
    done = called("explain", "m.clvq", "rows.csv", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert all(part in done.stderr.decode() for part in said), done.stderr
    assert b"could not convert" not in done.stderr
