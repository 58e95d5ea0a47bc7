"""How compiled code is made. Importing this module imports Numba, which takes a second."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import cgutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.extending import intrinsic

from counterlvq.interrupts import interruptible

__all__ = ["borrowed", "jit"]


def _digest_of_sources() -> str:
    """Digest this file and every file of the package that imports it."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if path == Path(__file__) or b"from counterlvq.compiling import" in source:
            digest.update(path.relative_to(package).as_posix().encode() + b"\0" + source + b"\0")
    return digest.hexdigest()


_SOURCES = _digest_of_sources()


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
    _impl_class = _StampedImpl


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile without the interpreter, and keep the result on disk where that is possible.

    Numba writes beside the source or, if that cannot be written to, into the user's cache
    folder. Where neither can be, each process compiles for itself.

    A function may close over plain values only: another compiled function among them gets a
    new key in each process, is never found again and fills the cache.
    """
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
        return interruptible(lambda: compile_for(*args, **kws))

    compiled._compile_for_args = compile_beside


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


borrowed: Any = _without_owner
