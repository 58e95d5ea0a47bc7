"""What is computed when it is first asked for, without a lock that a forked child would inherit.

Python 3.11 guards each `functools.cached_property` with one lock for all instances of a class. A
thread that holds it while another one forks leaves the child waiting for ever, and threads that
compute different instances wait for each other. Python 3.12 has dropped that lock; this is the
same for both.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, Self, TypeVar, overload

__all__ = ["cached_property", "imported_later"]

Value = TypeVar("Value")


class _Module:
    """A module that is imported when something of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        found = getattr(importlib.import_module(self._name), attribute)
        self.__dict__[attribute] = found
        return found


def imported_later(name: str) -> Any:
    """Stand for a module that takes long to import and is seldom needed.

    Examples
    --------
    >>> special = imported_later("math")
    >>> special.gcd(12, 18)
    6
    """
    return _Module(name)


class cached_property(functools.cached_property[Value]):  # noqa: N801 - it stands for the other
    """A property that is computed once and then kept in the instance.

    Threads that ask at the same time may both compute it; all of them get the same object.

    Examples
    --------
    >>> class Square:
    ...     side = 3
    ...
    ...     @cached_property
    ...     def area(self):
    ...         print("computed")
    ...         return self.side**2
    >>> square = Square()
    >>> square.area + square.area
    computed
    18
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Value: ...

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | Value:
        if instance is None:
            return self
        assert self.attrname is not None  # the class statement has named it
        # Python comes here only while the instance has nothing under that name.
        value: Value = instance.__dict__.setdefault(self.attrname, self.func(instance))
        return value
