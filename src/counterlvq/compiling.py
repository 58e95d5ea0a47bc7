"""How compiled code is made. Importing this module imports Numba, which takes a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["borrowed", "jit"]


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile without the interpreter, and keep the result on disk where that is possible.

    Numba writes beside the source or, if that cannot be written to, into the user's cache
    folder. Where neither can be, each process compiles for itself.
    """
    try:
        return njit(nogil=True, cache=True, error_model="numpy", forceinline=True)(function)
    except RuntimeError:
        return njit(nogil=True, error_model="numpy", forceinline=True)(function)


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
