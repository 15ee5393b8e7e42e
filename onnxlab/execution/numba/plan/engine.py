"""Kernels by name, made ready when they are asked for, and the call into the interpreter.

A kernel is object code that is read from the cache, or made by a process that compiles (`compiler_process`), and then
loaded, which takes a millisecond. So no thread of this process runs Numba, which is not imported here. A plan waits for
the kernels that it names, not for all.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from onnxlab.execution.base import background
from onnxlab.execution.base.worker import together
from onnxlab.execution.numba.machine import compilation, compiler_process, object_cache, object_loading
from onnxlab.execution.numba.machine.compiler_process import POLITE, CompilerProcess, NoCompilerError
from onnxlab.execution.numba.machine.records import INTERPRETER, MODULES
from onnxlab.execution.numba.plan.plan import PlanFrame
from onnxlab.forking import in_child

_making = threading.RLock()
_addresses: dict[str, int] = {}
_process: CompilerProcess | None = None
_under_way = ""
_interpret: Any = None
_at_once: Any = None


def is_ready() -> bool:
    """Whether the interpreter is loaded; kernels may still be missing."""
    return _interpret is not None


def load(report: Callable[[str], None] | None = None) -> None:
    """Make all kernels ready, in this thread: some milliseconds from the cache, many seconds without it.

    Args:
        report: called with the name of each kernel, before it is made.
    """
    start()
    for name in MODULES:
        if report is not None:
            report(name)
        address_of(name)


def start() -> None:
    """Make the interpreter ready; kernels are made when their addresses are asked for."""
    global _at_once, _interpret
    if _interpret is None:
        object_loading.open_library()
        words = [ctypes.c_int64] * 4
        address = address_of(INTERPRETER)
        _at_once = ctypes.PYFUNCTYPE(*words)(address)
        _interpret = ctypes.CFUNCTYPE(*words)(address)  # gives up the GIL


def address_of(name: str) -> int:
    """The code of a kernel, made or read from the cache where that has not been done.

    Raises:
        RuntimeError: it cannot be compiled.
    """
    if name not in _addresses:
        with _making:
            if name not in _addresses:
                _addresses[name] = _loaded(name)
    return _addresses[name]


def ready_address(name: str) -> int:
    """The code of a kernel that is ready.

    Raises:
        NotReadyError: the kernel or the interpreter is not compiled yet.
    """
    address = _addresses.get(name)
    if address is None or _interpret is None:
        raise background.NotReadyError(name)
    return address


def _loaded(name: str) -> int:
    code = object_cache.read(name)
    if code is None:
        try:
            code = _compiled(name)
        except NoCompilerError as reason:
            if compiler_process.is_ending():
                raise background.NotReadyError(name) from reason
            warnings.warn(f"kernels are compiled in this process, which may hold it up: {reason}", stacklevel=2)
            code = compilation.compile_kernel(name)
        object_cache.write(name, code)
    return object_loading.load(name, code)


def compiling() -> str:
    """The name of the kernel that is being compiled, "" where none is."""
    return _under_way


def _compiled(name: str) -> bytes:
    """Object code from the process that compiles.

    Raises:
        NoCompilerError: there is none.
        RuntimeError: the kernel cannot be compiled.
    """
    global _process, _under_way
    _under_way = name
    try:
        if _process is not None:
            with contextlib.suppress(NoCompilerError):  # one that was idle has ended
                return _process.compile(name)
        _process = CompilerProcess(POLITE if background.is_here() else 0)
        return _process.compile(name)
    finally:
        _under_way = ""


def interpret(frame: PlanFrame, first: int, last: int, threads: int) -> None:
    """Run some records of a plan's frame with this many threads."""
    calls = frame.calls(threads)
    if threads == 1:
        _interpret(calls[0], first, last)
        return
    frame.shared[:] = 0
    together(lambda number: _interpret(calls[number], first, last), threads, frame.halt)


def caller(frame: PlanFrame, records: int, polite: bool = False) -> Callable[[], object]:
    """A call that runs the first `records` records of a frame in one thread and keeps the GIL, unless it is polite.

    It is meant for some microseconds of work, which releasing the GIL would double. The frame has to live as long.
    """
    return partial(_interpret if polite else _at_once, *map(ctypes.c_int64, (frame.calls(1)[0], 0, records)))


@in_child
def _forget() -> None:
    """The process that compiles is the parent's, not its forked child's."""
    global _making, _process
    _making, _process = threading.RLock(), None
