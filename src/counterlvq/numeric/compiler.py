"""How kernels are compiled. Importing this module imports Numba, which takes a second."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import config, njit, types
from numba.core import cgutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.imputils import lower_builtin, lower_getattr_generic
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import NativeValue, models, register_model, typeof_impl, unbox
from numba.np.arrayobj import populate_array

from counterlvq.numeric.interpreting import Compilations, borrowed, interpreted
from counterlvq.numeric.interrupts import interruptible
from counterlvq.numeric.records import Layout, Record, slots_of

__all__ = ["compiled"]


_OWN = ("compiler.py", "interpreting.py", "jit.py", "records.py", "tolerances.py")


def _digest_of_sources() -> str:
    """Digest this file, the constants, and every file of the package that has kernels."""
    package = Path(__file__).parents[1]
    own = {Path(__file__).with_name(name) for name in _OWN}
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
    "counterlvq: compiling its kernels. This takes up to a minute after an installation; later "
    "processes find them on disk.\n"
)


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


def compiled(function: Callable[..., Any], *, is_part: bool = False) -> Any:
    """Compile a function at its first call, and keep the result on disk where that is possible.

    Numba writes beside the source or, if that cannot be written to, into the user's cache
    folder. Where neither can be, each process compiles for itself. Where compiling is turned off
    (NUMBA_DISABLE_JIT), the interpreter runs the function, slowly.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return lambda *given: interpreted(function, math.inf, *given)[0]
    dispatcher: Any = njit(
        nogil=True,
        error_model="numpy",
        forceinline=True,
        no_cpython_wrapper=is_part,
        no_cfunc_wrapper=True,  # nobody calls kernels from C
    )(function)  # type: ignore[call-overload]
    with contextlib.suppress(RuntimeError):  # no folder can be written to
        dispatcher._cache = _StampedCache(function)
    if is_part:
        # Nobody may find code that has no entry for the interpreter: calling it is a crash.
        dispatcher._insert = lambda *code: None
    _compile_beside(dispatcher)
    _know_records(dispatcher)
    return dispatcher


def _know_records(dispatcher: Any) -> None:
    """Tell the types of records without the detour by which Numba asks about unknown objects.

    It took as long as the kernel itself for a row that is asked for alone.
    """
    type_of = dispatcher.typeof_pyval

    def known(value: Any) -> Any:
        if isinstance(value, Record):
            kind = _RECORD_TYPES.get(id(value.layout))
            if kind is not None:  # and is kept, so that nobody has to hold on to it
                return kind
        return type_of(value)

    dispatcher.typeof_pyval = known


def _compile_beside(dispatcher: Any) -> None:
    """Compile in a thread of its own: an exception that a signal raises would be lost in LLVM.

    A compilation that nobody waits for any more runs to its end and is found by the next call,
    which waits for the compiler's lock.
    """
    compile_for = dispatcher._compile_for_args

    def compile_beside(*args: Any, **kws: Any) -> Any:
        Compilations.count += 1
        with _announced(), Compilations.timed():
            return interruptible(lambda: compile_for(*args, **kws))

    dispatcher._compile_for_args = compile_beside


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


@infer_global(borrowed)
class _BorrowedTemplate(AbstractTemplate):
    def generic(self, args, kws):
        return signature(args[0], *args)


@lower_builtin(borrowed, types.Array)
def _borrow(context, builder, signature, args):
    """Give the same array without an owner: nothing is counted when it is sliced or passed on.

    Counting references took a third to a half of the time of a row. The caller keeps the
    arrays alive for as long as a kernel runs.
    """
    new = context.make_array(signature.args[0])(context, builder, value=args[0])
    new.meminfo = cgutils.get_null_value(new.meminfo.type)
    new.parent = cgutils.get_null_value(new.parent.type)
    return new._getvalue()


class RecordType(types.Type):
    """A `Record`, of which compiled code knows where its table is."""

    def __init__(self, title: str, layout: Layout) -> None:
        self.layout = layout
        self.starts, _ = slots_of(layout)
        self.kinds = {name: _type_of(dtype, dimensions) for name, dtype, dimensions in layout}
        digest = hashlib.sha256(repr(layout).encode()).hexdigest()[:16]
        super().__init__(name=f"{title}[{digest}]")


def _type_of(dtype: str, dimensions: int) -> Any:
    entry = types.boolean if dtype == "bool" else getattr(types, dtype)
    return entry if dimensions < 0 else types.Array(entry, dimensions, "C")


# By the id of a layout, of which there is one object for all records that share it.
_RECORD_TYPES: dict[int, RecordType] = {}


@typeof_impl.register(Record)
def _typeof_record(record: Record, context: Any) -> RecordType:
    layout = record.layout
    kind = _RECORD_TYPES.get(id(layout))
    if kind is None:
        kind = _RECORD_TYPES.setdefault(id(layout), RecordType(type(record).__name__, layout))
    return kind


@register_model(RecordType)
class _RecordModel(models.PrimitiveModel):
    """One pointer to the table."""

    def __init__(self, manager: Any, kind: RecordType) -> None:
        super().__init__(manager, kind, ir.IntType(64).as_pointer())


@unbox(RecordType)
def _unbox_record(kind, record, c):
    address = c.pyapi.object_getattr_string(record, "address")
    number = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    pointer = c.builder.inttoptr(number, ir.IntType(64).as_pointer())
    return NativeValue(pointer, is_error=c.pyapi.c_api_error())


@infer_getattr
class _RecordFields(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, record, name):  # type: ignore[override]
        return record.kinds.get(name)


@lower_getattr_generic(RecordType)
def _read_field(context, builder, kind, table, name):
    """Read a number, or make an array that has no owner: none counts references to it."""

    def read(slot):
        entry = builder.load(builder.gep(table, [ir.Constant(ir.IntType(32), slot)]))
        # Nobody writes to a table while compiled code runs.
        entry.set_metadata("invariant.load", builder.module.add_metadata([]))
        return entry

    start, field = kind.starts[name], kind.kinds[name]
    if not isinstance(field, types.Array):
        number = read(start)
        if field == types.float64:
            return builder.bitcast(number, ir.DoubleType())
        return number if field == types.int64 else cgutils.is_not_null(builder, number)
    array = context.make_array(field)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(field.dtype))
    shape = [read(start + 1 + axis) for axis in range(field.ndim)]
    strides = [context.get_constant(types.intp, size)]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.inttoptr(read(start), array.data.type)
    populate_array(
        array, data=data, shape=shape, strides=strides,
        itemsize=context.get_constant(types.intp, size), meminfo=None,
    )  # fmt: skip
    return array._getvalue()
