"""Calls in threads of their own: one, so that Ctrl-C and Stop are answered while NumPy is busy, or several at once.

A kernel of NumPy cannot be interrupted, but it can be abandoned: the caller goes on, and the result of the kernel is
dropped. Threads are daemons and are reused, because starting a thread takes longer than a small run; each belongs to
one run at a time, so that concurrent runs do not wait for each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from onnxlab import threads
from onnxlab.errors import LimitError, RunStopped
from onnxlab.forking import in_child
from onnxlab.limits import Limits

T = TypeVar("T")

POLL = 0.1
"""Seconds between looks at the stop flag while a call is under way."""

PATIENCE = 0.4
"""Seconds that a call gets to stop by itself before it is abandoned."""

_idle: list[_Worker] = []  # append and pop are atomic
in_child(_idle.clear)  # threads do not survive a fork


class _Worker:
    """A thread that makes one call after the other; where there are no threads it has none."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[tuple[Callable[[], Any], SimpleQueue[Any]]] = SimpleQueue()
        self.thread = threads.start(self._work, "onnxlab-run")

    def _work(self) -> None:
        while True:
            function, reply = self.calls.get()
            try:
                outcome: tuple[Any, BaseException | None] = (function(), None)
            except BaseException as error:  # every exception is raised in the caller's thread
                outcome = (None, error)
            del function  # and with it the arrays of the run
            _idle.append(self)
            reply.put(outcome)
            del reply, outcome


def _taken() -> _Worker:
    """An idle worker, or a new one."""
    try:
        return _idle.pop()
    except IndexError:
        return _Worker()


def call(function: Callable[[], T], limits: Limits, tick: Callable[[], None] | None = None) -> T:
    """Return `function()`, called in another thread; where there are no threads, in this one.

    Args:
        function: gets no argument, and looks at `limits` itself now and then.
        limits: the running budget of the call.
        tick: called in this thread about every POLL seconds while the call is under way.

    Raises:
        KeyboardInterrupt: in the main thread, at once; the call is told to stop and its result dropped.
        RunStopped, LimitError: the stop flag or the deadline, and the call did not end by itself soon enough.
        BaseException: whatever the function raises.
    """
    worker = _taken()
    if worker.thread is None:
        return function()
    reply: SimpleQueue[tuple[T, BaseException | None]] = SimpleQueue()
    try:
        worker.calls.put((function, reply))
        result, error = _wait(reply, limits, tick)
    except BaseException:
        limits.interrupted = True
        limits.end()
        raise
    if error is not None:
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame: the cycle would keep the run's arrays
    return result


def _wait(
    reply: SimpleQueue[tuple[T, BaseException | None]], limits: Limits, tick: Callable[[], None] | None
) -> tuple[T, BaseException | None]:
    """Wait for the reply, and PATIENCE longer once the run has to end."""
    ending: float | None = None
    while True:
        try:
            return reply.get(timeout=POLL)
        except Empty:
            if tick is not None:
                tick()
            try:
                limits.check()
            except (RunStopped, LimitError):
                now = time.monotonic()
                if ending is None:
                    ending = now
                    limits.end()
                if now - ending > PATIENCE:
                    raise


def together(job: Callable[[int], object], count: int, halt: Callable[[], None]) -> None:
    """Call `job(0)` here and `job(1)` … in other threads, all at once; raise what they raise when all are done.

    A job that has not begun when `job(0)` returns, since its thread got no processor, is not called: each job goes on
    until no work is left. The call never returns before the jobs that have begun are done, because they work in the
    caller's memory. Where this thread is interrupted, `halt` is called, which has to end the jobs.
    """
    done: SimpleQueue[tuple[object, BaseException | None]] = SimpleQueue()
    failures: list[BaseException] = []
    numbers = iter(range(1, count))  # of the jobs that have not begun: a thread that finds none does nothing
    for _ in range(1, count):
        worker = _taken()
        if worker.thread is None:
            raise RuntimeError("no thread can be started")
        worker.calls.put((partial(next, map(job, numbers), None), done))
    try:
        job(0)
    except BaseException as error:
        halt()
        failures.append(error)
    left = count - 1 - len([*numbers])
    while left:
        try:
            failures += filter(None, done.get()[1:])
            left -= 1
        except BaseException as error:  # Ctrl-C
            halt()
            failures.append(error)
    try:
        if failures:
            raise failures[0]
    finally:
        failures.clear()  # tracebacks refer to this frame: the cycle would keep the caller's arrays
