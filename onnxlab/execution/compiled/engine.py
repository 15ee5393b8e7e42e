"""Kernels by name, made ready in one background thread, and the call into the interpreter.

Nothing here imports Numba until kernels are asked for.
"""

from __future__ import annotations

import importlib
import os
import threading
import warnings
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from onnxlab.execution.compiled.plan import Frame
from onnxlab.execution.compiled.records import MODULES, WORDS
from onnxlab.execution.compiled.threads import together

_lock = threading.Lock()
_ready = threading.Event()
_jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
_pending = 0
_settled = threading.Condition()
_thread: threading.Thread | None = None
_interpret: Any = None


def is_ready() -> bool:
    """Whether all kernels are compiled, or read from the cache, in this process."""
    return _ready.is_set()


def load() -> None:
    """Make all kernels ready, in this thread: under half a second from the cache, many seconds without it."""
    start()
    for name in MODULES:
        address_of(name)
    _ready.set()


def start() -> None:
    """Make the interpreter ready; kernels are compiled when their addresses are asked for."""
    global _interpret
    with _lock:
        if _interpret is None:
            found = importlib.import_module("onnxlab.execution.compiled.kernels.interpreter").interpret
            found(0, WORDS, 0, 0, 1, 0, 0)
            _interpret = found


def _kernel(name: str) -> Any:
    module = importlib.import_module(f"onnxlab.execution.compiled.kernels.{MODULES[name]}")
    return getattr(module, name)


def address_of(name: str) -> int:
    """The code of a kernel."""
    found: int = _kernel(name).address
    return found


def interpret(frame: Frame, first: int, last: int, threads: int) -> None:
    """Run some records of a plan's frame with this many threads."""
    shared, scratch = frame.shared_address, frame.scratch
    if threads == 1:
        _interpret(frame.address, WORDS, first, last, 1, shared, scratch[0])
        return
    frame.shared[:] = 0
    together(lambda n: _interpret(frame.address, WORDS, first, last, threads, shared, scratch[n]), threads)


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
            load()
            job()
        except Exception as error:
            warnings.warn(f"compiling in the background failed, NumPy goes on: {error!r}", stacklevel=1)
        finally:
            del job
            with _settled:
                _pending -= 1
                _settled.notify_all()


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
