"""Files that appear whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from counterlvq.files import whole_file

HALF = """
import sys, time
from counterlvq.files import whole_file

with whole_file(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("half", flush=True)
    time.sleep(60)
"""


def test_file_appears_with_all_of_its_content(tmp_path: Path) -> None:
    path = tmp_path / "new.txt"
    with whole_file(path) as file:
        file.write(b"one ")
        file.flush()
        assert not path.exists()
        file.write(b"two")
    assert path.read_bytes() == b"one two"
    assert os.listdir(tmp_path) == ["new.txt"]


def test_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), whole_file(path) as file:
        file.writelines([b"new", "no bytes"])  # type: ignore[list-item]
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["old.txt"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no disk that is always full")
def test_full_disk_is_told_with_the_name_of_the_file() -> None:
    with pytest.raises(OSError, match="/dev/full"), whole_file("/dev/full") as file:
        file.write(b"one")


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed_writer_leaves_the_old_file(tmp_path: Path, sign: signal.Signals) -> None:
    path = tmp_path / "old.txt"
    path.write_bytes(b"old")
    command = [sys.executable, "-c", HALF, str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half\n"
        writer.send_signal(sign)
        assert writer.wait(timeout=60) != 0
    assert path.read_bytes() == b"old"
    assert all(name.startswith(".old.txt.") for name in os.listdir(tmp_path) if name != "old.txt")
    if sign == signal.SIGINT:  # Python gets to clean up
        assert os.listdir(tmp_path) == ["old.txt"]


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "old.txt", tmp_path / "link.txt"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    with whole_file(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").write_bytes(b"")
    with whole_file(tmp_path / "new") as file:
        file.write(b"")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    with whole_file(path) as file:
        file.write(b"through")
    reader.join(timeout=30)
    assert read == [b"through"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_device_behind_a_link_is_written_to() -> None:
    code = (
        "from counterlvq.files import whole_file\n"
        "with whole_file('/dev/stdout') as file:\n"
        "    file.write(b'through')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"through"


def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"), whole_file(tmp_path / "nowhere" / "a"):
        pass


def test_long_names_are_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)
    with whole_file(path) as file:
        file.write(b"content")
    assert path.read_bytes() == b"content"
