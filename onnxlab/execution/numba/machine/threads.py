"""Threads that run a plan together: the caller's own and helpers that wait for work.

Helpers are daemons, used again, and belong to one run at a time, so that concurrent runs do not wait for each other.
Compiled code holds no lock of Python's; in a forked child, which has no helpers, new ones are made.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

_idle: list[_Helper] = []  # append and pop are atomic
Job = Callable[[int], object]


class _Helper(threading.Thread):
    """A thread that does one job after the other."""

    def __init__(self) -> None:
        super().__init__(name="onnxlab-kernels", daemon=True)
        self.jobs: SimpleQueue[tuple[Job, int, SimpleQueue[BaseException | None]]] = SimpleQueue()
        self.start()

    def run(self) -> None:
        while True:
            job, number, done = self.jobs.get()
            failure: BaseException | None = None
            try:
                job(number)
            except BaseException as error:  # whatever it is, it belongs to the caller
                failure = error
            _idle.append(self)
            done.put(failure)
            del job, done, failure


def together(job: Job, threads: int, halt: Callable[[], None]) -> None:
    """Call `job(0)` here and `job(1)` … in helpers, all at once; returns when all are done, and raises what one did.

    It does not return before, whatever happens, because helpers work in the caller's memory: where this thread is
    interrupted, `halt` is called, which has to end the others.
    """
    done: SimpleQueue[BaseException | None] = SimpleQueue()
    failures: list[BaseException | None] = []
    for number in range(1, threads):
        try:
            helper = _idle.pop()
        except IndexError:
            helper = _Helper()
        helper.jobs.put((job, number, done))
    try:
        job(0)
    except BaseException as error:
        halt()
        failures.append(error)
    left = threads - 1
    while left:
        try:
            failures.append(done.get())
            left -= 1
        except BaseException as error:  # Ctrl-C
            halt()
            failures.append(error)
    try:
        for failure in failures:
            if failure is not None:
                raise failure
    finally:
        failures.clear()  # tracebacks have this frame: a circle that would keep the caller's arrays
        failure = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)
