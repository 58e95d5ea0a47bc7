"""Functions that are compiled when that pays. Importing this module does not import Numba.

A kernel is Python of loops over numbers, so that the interpreter gives the same answer as compiled
code, bit for bit, only later. Compiling takes many seconds after an installation, and finding
compiled code on disk most of a second: longer than the interpreter takes for small questions. These
it answers, until it has spent about a second on them. Only then is anything compiled.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, final

from numpy.typing import NDArray

from counterlvq.numeric.interpreting import (
    Compilations,
    TakesLongError,
    borrowed,
    interpreted,
    is_interpreting,
    keep,
    spend,
    steps_left,
)
from counterlvq.numeric.interrupts import interruptible

__all__ = [
    "Kernel",
    "borrowed",
    "jit",
    "jit_unless_small",
    "part",
]

# Steps that a call of a part is worth; with its loops it takes 2 to 20 microseconds.
_STEPS_OF_CALL = 10.0
# Two threads that ask for the same kernel get the same one.
_making = threading.RLock()


@final
class Kernel:
    """A function of loops over numbers, which is compiled at its first call or later."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        is_part: bool = False,
        steps_of: Callable[..., float] | None = None,
        state_of: Callable[..., Sequence[NDArray[Any]]] | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._is_part = is_part
        self._steps_of = steps_of
        self._state_of = state_of
        self._compiled: Any = None  # once it has been asked for

    def __call__(self, *given: Any) -> Any:
        """Run the function; the answer does not depend on who runs it."""
        if self._compiled is not None and self._steps_of is not None:
            return self._compiled(*given)
        if is_interpreting() and self._steps_of is None:
            spend(_STEPS_OF_CALL)
            return self.py_func(*given)
        if self._is_part:
            # Compiled, it has no entry for the interpreter: calling it would be a crash.
            raise TypeError(
                f"{self.py_func.__qualname__} is a part of other kernels, and no entry to them"
            )
        if self._steps_of is not None:
            left = steps_left() - self._steps_of(*given)
            if left > 0.0:
                return self._tried(left, *given)
        return self.dispatcher(*given)

    def _tried(self, left: float, *given: Any) -> Any:
        """Let the interpreter run the function; compile it where that takes too long.

        Of two numbers of its own, the interpreter refuses quotients by 0 and powers that are too
        large, where compiled code goes on with infinity. So compiled code is asked then, too.

        What a kernel calls, and what a signal has asked in the midst of one, is a run of its own.
        """
        state = () if self._state_of is None else self._state_of(*given)
        before = [array.copy() for array in state]
        try:
            answer, left = interpreted(self.py_func, left, *given)
        except (TakesLongError, ZeroDivisionError, OverflowError):
            keep(0.0)
            for array, values in zip(state, before, strict=True):
                array[...] = values
            return self.dispatcher(*given)
        keep(left)
        return answer

    @property
    def dispatcher(self) -> Any:
        """The function as Numba has it, which compiles it for each kind of arguments."""
        if self._compiled is None:
            # An interrupt would leave half of Numba behind, which nobody can import again.
            with Compilations.timed():
                compiler = interruptible(lambda: import_module("counterlvq.numeric.compiler"))
            with _making:
                if self._compiled is None:
                    self._compiled = compiler.compiled(self.py_func, is_part=self._is_part)
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        """What compiled code takes a kernel for that it calls, by the protocol of Numba."""
        return self.dispatcher._numba_type_


def jit(function: Callable[..., Any]) -> Kernel:
    """Compile without the interpreter, and keep the result on disk where that is possible.

    For functions that the interpreter calls; those that only kernels call are a `part`.

    A function may close over plain values only: another compiled function among them gets a
    new key in each process, is never found again and fills the cache.
    """
    return Kernel(function)


def part(function: Callable[..., Any]) -> Kernel:
    """Compile what only kernels call: the entry for the interpreter is not made.

    Making it took a seventh of the time of a first answer.
    """
    return Kernel(function, is_part=True)


def jit_unless_small(
    steps_of: Callable[..., float],
    state_of: Callable[..., Sequence[NDArray[Any]]] | None = None,
) -> Callable[[Callable[..., Any]], Kernel]:
    """As `jit`, but the interpreter runs the function while questions are small and few.

    `steps_of` takes the arguments of the function and says how many steps its loops will take at
    the least, roughly; calls of parts are counted as they come. A run that is given up is begun
    again, compiled: what a function both reads and writes is what `state_of` lists, and put back.
    """
    return functools.partial(Kernel, steps_of=steps_of, state_of=state_of)
