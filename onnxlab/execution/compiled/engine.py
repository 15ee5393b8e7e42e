"""Kernels by name, made ready in one background thread, and the call into the interpreter.

A kernel is object code: read from the cache, or made by a process that compiles (`compiler_process`), and loaded, which
takes a millisecond. So neither this process nor anybody in it waits for Numba, which is not even imported here. A plan
waits for the kernels that it names, not for all.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from onnxlab.execution.compiled import cache, compiling, loading
from onnxlab.execution.compiled.compiler_process import CompilerProcess, NoCompilerError
from onnxlab.execution.compiled.plan import Frame
from onnxlab.execution.compiled.records import INTERPRETER, MODULES
from onnxlab.execution.compiled.threads import together

_making = threading.RLock()
_addresses: dict[str, int] = {}
_process: CompilerProcess | None = None
_interpret: Any = None
_jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
_pending = 0
_settled = threading.Condition()
_thread: threading.Thread | None = None

_POLITE = 2e-4
"""Seconds after which the background thread gives way to one that wants to go on, where Python's own wait is 5 ms:
NumPy asks for its turn after every large operation."""


class NotReadyError(Exception):
    """A kernel is not compiled yet."""


def is_ready() -> bool:
    """Whether the interpreter is; kernels may still be missing."""
    return _interpret is not None


def load(told: Callable[[str], None] | None = None) -> None:
    """Make all kernels ready, in this thread: some milliseconds from the cache, many seconds without it.

    Args:
        told: called with the name of each kernel, before it is made.
    """
    start()
    for name in MODULES:
        if told is not None:
            told(name)
        address_of(name)


def start() -> None:
    """Make the interpreter ready; kernels are made when their addresses are asked for."""
    global _interpret
    if _interpret is None:
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)  # gives up the GIL
        _interpret = kind(address_of(INTERPRETER))


def address_of(name: str) -> int:
    """The code of a kernel, made or read from the cache where that has not been done.

    Raises:
        RuntimeError: it cannot be compiled.
    """
    found = _addresses.get(name)
    if found is None:
        with _making:
            found = _addresses.get(name)
            if found is None:
                found = _addresses[name] = _loaded(name)
    return found


def ready_address(name: str) -> int:
    """The code of a kernel that is ready.

    Raises:
        NotReadyError: it is not, or not even the interpreter.
    """
    found = _addresses.get(name)
    if found is None or _interpret is None:
        raise NotReadyError(name)
    return found


def _loaded(name: str) -> int:
    kept = cache.read(name)
    if kept is not None:
        try:
            return loading.load(name, kept)
        except RuntimeError as error:
            warnings.warn(f"{cache.folder()}: {name} is compiled anew, because of {error}", stacklevel=2)
    code = _compiled(name)
    cache.write(name, code)
    return loading.load(name, code)


def _compiled(name: str) -> bytes:
    """Object code from the process that compiles; from here where there can be none."""
    global _process
    for _ in range(2):  # one that was idle has ended
        try:
            if _process is None:
                _process = CompilerProcess(polite=threading.current_thread() is _thread)
            return _process.compile(name)
        except NoCompilerError as error:
            _process = None
            reason = error
    warnings.warn(f"kernels are compiled in this process, which may hold it up for seconds: {reason}", stacklevel=2)
    return compiling.compile_kernel(name)


def interpret(frame: Frame, first: int, last: int, threads: int) -> None:
    """Run some records of a plan's frame with this many threads."""
    calls = frame.calls(threads)
    if threads == 1:
        _interpret(calls[0], first, last)
        return
    frame.shared[:] = 0
    together(lambda number: _interpret(calls[number], first, last), threads)


def in_background(job: Callable[[], None]) -> None:
    """Do a job in the one thread that sees to kernels; what it raises is a warning, and NumPy goes on."""
    global _pending, _thread
    with _settled:
        _pending += 1
        if _thread is None:
            _thread = threading.Thread(target=_work, name="onnxlab-compile", daemon=True)
            _thread.start()
    _jobs.put(job)


def _work() -> None:
    global _pending
    while True:
        job = _jobs.get()
        try:
            with _polite():
                start()
                job()
        except Exception as error:
            warnings.warn(f"compiling in the background failed, NumPy goes on: {error!r}", stacklevel=1)
        finally:
            del job
            with _settled:
                _pending -= 1
                _settled.notify_all()


@contextmanager
def _polite() -> Iterator[None]:
    """Let other threads have their turn sooner meanwhile."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _POLITE))
    ours = sys.getswitchinterval()
    try:
        yield
    finally:
        if sys.getswitchinterval() == ours:  # else somebody has set it since
            sys.setswitchinterval(before)


def wait(timeout: float | None = None) -> bool:
    """Wait until nothing is left to be compiled; whether that is so."""
    with _settled:
        return _settled.wait_for(lambda: _pending == 0, timeout)


def _forget() -> None:
    """A forked child has no background thread; the process that compiles is its parent's."""
    global _thread, _pending, _jobs, _making, _settled, _process
    _thread, _process, _pending = None, None, 0
    _jobs, _making, _settled = SimpleQueue(), threading.RLock(), threading.Condition()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
