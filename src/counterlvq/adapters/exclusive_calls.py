"""Turns at code of others that changes what belongs to the whole process.

scikit-learn sets the filters of warnings within every `predict` and `transform`, and puts them
back afterwards: of two threads that do so side by side, one leaves the other's behind for good.
Nor does every model bear to be asked by two threads at once. So they take turns at it.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from threading import RLock
from typing import final

__all__ = ["in_turn"]


@final
class _Turns:
    """One thread after another; a forked process begins anew, without the threads that wait."""

    def __init__(self) -> None:
        self._begin_anew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        self._turn = RLock()

    def __call__(self) -> AbstractContextManager[object]:
        return self._turn


in_turn = _Turns()
