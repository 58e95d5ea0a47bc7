"""How compiled code is made. Importing this module imports Numba, which takes a second."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numba import config, njit
from numba.core import cgutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.extending import intrinsic

from counterlvq.numeric.interrupts import interruptible

__all__ = ["borrowed", "jit"]


def _digest_of_sources() -> str:
    """Digest this file, the constants, and every file of the package that imports this one."""
    package = Path(__file__).parents[1]
    own = {Path(__file__), Path(__file__).with_name("tolerances.py")}
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if path in own or b"from counterlvq.numeric.jit import" in source:
            digest.update(path.relative_to(package).as_posix().encode() + b"\0" + source + b"\0")
    return digest.hexdigest()


_SOURCES = _digest_of_sources()
# Seconds of compilation after which a terminal is told.
_PATIENCE = 1.0
_COMPILING = (
    "counterlvq: compiling its kernels. This takes some seconds after an installation; later ones "
    "find them on disk.\n"
)
_IS_OFF: bool = bool(config.DISABLE_JIT)  # type: ignore[attr-defined]


class _StampedImpl(CompileResultCacheImpl):
    """Say of which sources a compiled function is made: of all, not only of its own file.

    A function is stored together with those it calls, and Numba alone would go on using it
    after one of these has changed in another file.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        own = self._locator.get_source_stamp()
        self._locator.get_source_stamp = lambda: (own, _SOURCES)


class _StampedCache(FunctionCache):
    """A cache that is no more than that: where it fails, each process compiles for itself."""

    _impl_class = _StampedImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Find compiled code; None, and room for it again, where the files are damaged."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # noqa: BLE001 - whatever reading a damaged file may raise
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code, unless the disk is full or has become read-only."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile without the interpreter, and keep the result on disk where that is possible.

    Numba writes beside the source or, if that cannot be written to, into the user's cache
    folder. Where neither can be, each process compiles for itself.

    A function may close over plain values only: another compiled function among them gets a
    new key in each process, is never found again and fills the cache.
    """
    if _IS_OFF:
        return _interpreted(function)
    compiled: Any = njit(nogil=True, error_model="numpy", forceinline=True)(function)
    with contextlib.suppress(RuntimeError):  # no folder can be written to
        compiled._cache = _StampedCache(function)
    _compile_beside(compiled)
    return compiled  # type: ignore[no-any-return]


def _compile_beside(compiled: Any) -> None:
    """Compile in a thread of its own: an exception that a signal raises would be lost in LLVM.

    A compilation that nobody waits for any more runs to its end and is found by the next call,
    which waits for the compiler's lock.
    """
    compile_for = compiled._compile_for_args

    def compile_beside(*args: Any, **kws: Any) -> Any:
        with _announced():
            return interruptible(lambda: compile_for(*args, **kws))

    compiled._compile_for_args = compile_beside


@contextlib.contextmanager
def _announced() -> Iterator[None]:
    """Say on a terminal, once, that code is being compiled, if that takes over a second."""
    if not _is_terminal(sys.stderr):
        yield
        return
    timer = threading.Timer(_PATIENCE, _announce)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _is_terminal(stream: Any) -> bool:
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:  # it is closed
        return False


@functools.cache
def _announce() -> None:
    with contextlib.suppress(OSError, ValueError):  # the terminal may be gone
        sys.stderr.write(_COMPILING)
        sys.stderr.flush()


def _interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run as Python, slowly, where compiling is turned off (NUMBA_DISABLE_JIT).

    Compiled code divides by zero and overflows without a word; so does this.
    """

    @functools.wraps(function)
    def quiet(*given: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*given)

    return quiet


@intrinsic
def _without_owner(typingctx, array):
    """Give the same array without an owner: nothing is counted when it is sliced or passed on.

    Counting references took a third to a half of the time of a row. The caller keeps the
    arrays alive for as long as a kernel runs.
    """

    def codegen(context, builder, signature, args):
        kind = signature.args[0]
        new = context.make_array(kind)(context, builder, value=args[0])
        new.meminfo = cgutils.get_null_value(new.meminfo.type)
        new.parent = cgutils.get_null_value(new.parent.type)
        return new._getvalue()

    return array(array), codegen


def _as_it_is(array: Any) -> Any:
    return array


borrowed: Any = _as_it_is if _IS_OFF else _without_owner
