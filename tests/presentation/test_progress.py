"""Progress bars on terminals of any kind."""

from __future__ import annotations

import os
import sys

import pytest

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
