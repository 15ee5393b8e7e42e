"""Kernels by name, made ready in one background thread, and the call into the interpreter.

Nothing here imports Numba until kernels are asked for. A plan waits for the kernels that it names, not for all.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from onnxlab.execution.compiled.plan import Frame
from onnxlab.execution.compiled.records import MODULES, WORDS
from onnxlab.execution.compiled.threads import together

_lock = threading.Lock()
_jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
_pending = 0
_settled = threading.Condition()
_thread: threading.Thread | None = None
_interpret: Any = None

_POLITE = 2e-4
"""Seconds after which the background thread gives way to one that wants to go on, where Python's own wait is 5 ms:
NumPy asks for its turn after every large operation."""


class NotReadyError(Exception):
    """A kernel is not compiled yet."""


def is_ready() -> bool:
    """Whether the interpreter is; kernels may still be missing."""
    return _interpret is not None


def load(told: Callable[[str], None] | None = None) -> None:
    """Make all kernels ready, in this thread: under half a second from the cache, many seconds without it.

    Args:
        told: called with the name of each kernel, before it is made.
    """
    start()
    for name in MODULES:
        if told is not None:
            told(name)
        address_of(name)


def start() -> None:
    """Make the interpreter ready; kernels are compiled when their addresses are asked for."""
    global _interpret
    with _lock:
        if _interpret is None:
            found = importlib.import_module("onnxlab.execution.compiled.kernels.interpreter").interpret
            found(0, WORDS, 0, 0, 1, 0, 0, 0)
            _interpret = found


def _kernel(name: str) -> Any:
    module = importlib.import_module(f"onnxlab.execution.compiled.kernels.{MODULES[name]}")
    return getattr(module, name)


def address_of(name: str) -> int:
    """The code of a kernel, compiled or read from the cache where that has not been done."""
    found: int = _kernel(name).address
    return found


def ready_address(name: str) -> int:
    """The code of a kernel that is ready.

    Raises:
        NotReadyError: it is not, or not even the interpreter.
    """
    if _interpret is None or not _kernel(name).ready:
        raise NotReadyError(name)
    return address_of(name)


def interpret(frame: Frame, first: int, last: int, threads: int) -> None:
    """Run some records of a plan's frame with this many threads."""
    shared, scratch, stop = frame.shared_address, frame.scratch, frame.stop_address
    if threads == 1:
        _interpret(frame.address, WORDS, first, last, 1, shared, scratch[0], stop)
        return
    frame.shared[:] = 0
    together(lambda n: _interpret(frame.address, WORDS, first, last, threads, shared, scratch[n], stop), threads)


def in_background(job: Callable[[], None]) -> None:
    """Do a job in the one thread that compiles; what it raises is a warning, and NumPy goes on."""
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
    """A forked child has no background thread."""
    global _thread, _pending, _jobs, _lock, _settled
    _thread, _pending = None, 0
    _jobs, _lock, _settled = SimpleQueue(), threading.Lock(), threading.Condition()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
