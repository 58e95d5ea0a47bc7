"""`counterlvq verify`: check a certificate file, quickly or in exact arithmetic."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EISDIR
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from math import inf

import click

import counterlvq as clvq
from counterlvq.certificates import check_certificate as checker
from counterlvq.cli.conventions import ERROR, debug_option
from counterlvq.cli.outputs import STDOUT, write_whole
from counterlvq.cli.signals import ENDING
from counterlvq.cli.terminal import say

__all__ = ["verify"]

_CHECKER = "check_certificate.py"
# Bytes up to which rational numbers are through before the libraries for floats are loaded.
_SMALL = 1 << 15


def _limit(_: click.Context, __: click.Parameter, seconds: float) -> float:
    if not seconds > 0:
        raise click.BadParameter(f"seconds is {seconds:g}; expected a number above 0.")
    return seconds


@click.command(short_help="Check the proofs of a certificate file.")
@click.argument("file", required=False)
@click.option("--model", metavar="FILE", help="The model, where it is kept apart.")
@click.option("--exact", is_flag=True, help="In rational numbers, by the standalone checker.")
@click.option(
    "--seconds",
    metavar="N",
    type=float,
    default=600.0,
    show_default=True,
    callback=_limit,
    help="The most for one answer.",
)
@click.option(
    "--print-checker", is_flag=True, help="Write the standalone checker to standard output."
)
@debug_option
def verify(
    file: str | None, model: str | None, exact: bool, seconds: float, print_checker: bool
) -> int:
    """Check FILE, which `counterlvq explain --certificates` has written.

    One line for each answer says VERIFIED, with cost, bound and gap, or REFUTED, and why. Numbers
    behind these words count the lines of FILE from 1, its header: row 0 of a table is line 2. Exit
    code 1 says that some are refuted. With --exact the numbers are theorems about those in FILE.
    """
    if print_checker:
        write_whole(STDOUT, _checker().read_bytes())
        return 0
    if file is None:
        raise click.UsageError("FILE is missing; or ask for the checker with --print-checker.")
    size = _size_of([file] if model is None else [file, model])
    if exact:
        with as_file(_checker()) as path, as_file(_ender()) as ender:
            words = [sys.executable, "-I", "-X", "utf8", str(ender), str(os.getpid()), str(path)]
            words += [file, "--seconds", repr(seconds)]
            words += [] if model is None else ["--model", model]
            return _passed_on(words)
    if size <= _SMALL:
        words = [file, "--seconds", repr(seconds)]
        return checker.main(words + ([] if model is None else ["--model", model]), say)
    verdicts = clvq.verify_certificates(file, model, seconds=seconds)
    for verdict in verdicts:
        say(str(verdict))
    return 0 if all(verdict.verified for verdict in verdicts) else ERROR


def _size_of(paths: list[str]) -> float:
    """Bytes of some files; infinite where a pipe or a device is among them.

    What is not there or is a folder raises here: that is no verdict about a file.
    """
    found = [os.stat(path) for path in paths]
    for path, each in zip(paths, found, strict=True):
        if stat.S_ISDIR(each.st_mode):
            expected = "expected a file of `counterlvq explain --certificates`, or of --model-apart"
            raise IsADirectoryError(EISDIR, f"is a folder; {expected}", path)
    return sum(each.st_size if stat.S_ISREG(each.st_mode) else inf for each in found)


def _passed_on(words: list[str]) -> int:
    """Run the checker, and pass on what it says line by line.

    A Ctrl-C at a terminal goes to all processes there. This one answers to it, and ends the
    checker, which is to say nothing about it.
    """
    with _without_interrupts():
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, encoding="utf-8", errors="replace"
        )
    ENDING.helpers.append(process)
    with process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                say(line.removesuffix("\n"))
                sys.stdout.flush()
        except BaseException:
            process.kill()
            raise
        finally:
            ENDING.helpers.remove(process)
    return process.returncode


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach, where systems can do so."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _checker() -> Traversable:
    """Where the standalone checker is."""
    return files("counterlvq.certificates").joinpath(_CHECKER)


def _ender() -> Traversable:
    """Where the program is that ends another one with this process."""
    return files("counterlvq.numeric").joinpath("child_processes.py")
