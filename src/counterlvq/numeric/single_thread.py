"""One thread for products of small matrices, however many threads ask for them.

Between two such products the threads of BLAS wait by spinning. Where other programs need the
processors as well, that takes ten times as long as the products.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, final

__all__ = ["one_blas_thread"]


@final
class _Limit:
    """A limit for the whole process: set by the first that asks, lifted by the last that leaves.

    Each of two threads that set and restored it for itself could leave the other's limit behind.
    """

    def __init__(self) -> None:
        self._begin_anew()
        if hasattr(os, "register_at_fork"):  # a forked child has none of the threads that hold it
            os.register_at_fork(after_in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        self._turn, self._inside = Lock(), 0
        self._limit: Any = None
        self._libraries: Any = None
        self._modules = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._turn:
            if not self._inside:
                self._limit = self._found().limit(limits=1, user_api="blas")
            self._inside += 1
        try:
            yield
        finally:
            with self._turn:
                self._inside -= 1
                if not self._inside:
                    self._limit.restore_original_limits()

    def _found(self) -> Any:
        """Libraries to limit: looked for again, which takes 10 ms, where modules have come."""
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

        if self._libraries is None or self._modules != len(sys.modules):
            self._libraries, self._modules = ThreadpoolController(), len(sys.modules)
        return self._libraries


one_blas_thread = _Limit()
