"""How the tests reach the command line: as a process of its own, or called in this one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

from counterlvq.cli.app import run

COMMAND = [sys.executable, "-m", "counterlvq"]
ENVIRONMENT = {**os.environ, "COLUMNS": "80"}


def counterlvq(
    *words: str, cwd: Path, stdin: bytes | None = None, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Run one command line in a process of its own."""
    return subprocess.run(
        [*COMMAND, *words],
        cwd=cwd,
        input=b"" if stdin is None else stdin,
        capture_output=True,
        env={**ENVIRONMENT, "PYTHONWARNINGS": "error", **environment},
        check=False,
        timeout=120,
    )


def called(
    *words: str, cwd: Path, stdin: bytes = b"", encoding: str = "utf-8"
) -> subprocess.CompletedProcess[bytes]:
    """Run one command line in this process, with files in the place of its three streams.

    Whatever a library prints by itself is caught too. It takes a tenth of the time of a process,
    and is enough where a pipe, a signal or the start of the interpreter are not the point.
    """
    with ExitStack() as files:
        given, out, err = (files.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        given.write(stdin)
        given.seek(0)
        with (
            chdir(cwd),
            patch.dict(os.environ, COLUMNS=ENVIRONMENT["COLUMNS"]),
            _leading_to(given, 0, "stdin", encoding),
            _leading_to(out, 1, "stdout", encoding),
            _leading_to(err, 2, "stderr", encoding),
        ):
            code = run(words)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(list(words), code, out.read(), err.read())


@contextmanager
def _leading_to(file: IO[bytes], number: int, name: str, encoding: str) -> Iterator[None]:
    """Let a stream, and the descriptor under it, lead to a file."""
    before, kept = getattr(sys, name), os.dup(number)
    os.dup2(file.fileno(), number)
    try:
        mode = "w" if number else "r"
        with open(number, mode, encoding=encoding, closefd=False) as stream:
            setattr(sys, name, stream)
            yield
    finally:
        setattr(sys, name, before)
        os.dup2(kept, number)
        os.close(kept)


def started(*words: str, cwd: Path, **options: Any) -> subprocess.Popen[bytes]:
    """Start a command line without waiting for it."""
    return subprocess.Popen(
        [*COMMAND, *words],
        cwd=cwd,
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=options.pop("stderr", subprocess.PIPE),
        env=ENVIRONMENT,
        **options,
    )


def is_running(pid: int) -> bool:
    """Whether a process has not ended; it may be stopped."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return told.rpartition(")")[2].split()[0] != "Z"


def one_line(output: bytes | str) -> str:
    """The single line of an error, and nothing else."""
    text = output if isinstance(output, str) else output.decode()
    assert text.endswith("\n")
    assert text.count("\n") == 1, text
    assert text.startswith("counterlvq: ")
    return text.rstrip("\n")
