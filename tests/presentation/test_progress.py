"""Progress bars on terminals of any kind."""

from __future__ import annotations

import os
import sys

import pytest

from counterlvq.presentation.progress import progress_bar

SHOWN = """
from counterlvq.presentation.progress import progress_bar
with progress_bar(100_000, True, 20_000) as count:
    count(80_000)
"""


@pytest.mark.skipif(os.name != "posix", reason="there are no such terminals")
@pytest.mark.parametrize("columns", [0, 100])
def test_terminal_without_a_size_shows_a_bar(columns: int) -> None:
    import fcntl
    import pty
    import struct
    import subprocess
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", columns and 24, columns, 0, 0))
    done = subprocess.run([sys.executable, "-c", SHOWN], stderr=theirs, check=False)
    os.close(theirs)
    told = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert done.returncode == 0, told
    assert "20%" in told
    assert "100k/100k" in told
    assert "row/s" in told


def test_speed_is_the_average_of_the_run() -> None:
    """Blocks of rows come at once: by the speed of the last one, the time left would jump."""
    with progress_bar(1_000, True) as count:
        bar = count.__self__  # type: ignore[attr-defined]
        for seconds, rows in [(100.0, 100), *[(0.5, 20)] * 10]:
            bar.start_t, bar.last_print_t = bar._time() - 100.0, bar._time() - seconds
            count(rows)
        shown = bar.format_dict
    speed = shown["rate"] or shown["n"] / shown["elapsed"]
    assert 2.9 < speed < 3.1  # 300 rows in 100 seconds, and not 40 a second
