"""Threads, where there are any. In a browser there are none, and no clock of theirs: work is done at once then.

Code for looking, editing, running and saving starts its threads here, and nowhere else.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache

Work = Callable[[], object]

thread_time: Callable[[], float] = getattr(time, "thread_time", time.process_time)
"""Seconds that the processor spent on this thread; on the process, where threads have no clock."""


def waiting() -> Callable[[], float]:
    """A stopwatch, for any thread, of the seconds that this thread has not had a processor since now.

    Where threads have no clock that others can read, it counts all seconds. It may be asked when this thread has ended.
    """
    began = time.perf_counter()
    try:
        clock = time.pthread_getcpuclockid(threading.get_ident())
        before = time.clock_gettime(clock)
    except (AttributeError, OSError):
        return lambda: time.perf_counter() - began

    def waited() -> float:
        with suppress(OSError):  # the thread has ended
            return time.perf_counter() - began - (time.clock_gettime(clock) - before)
        return 0.0

    return waited


@cache
def are_there() -> bool:
    """Whether threads can be started here at all."""
    return start(lambda: None, "onnxlab-probe") is not None


def start(work: Work, name: str) -> threading.Thread | None:
    """Have a daemon do the work; None where no thread is to be had, now or ever."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


def spawn(work: Work, name: str) -> None:
    """Have a daemon do the work; where no thread is to be had it is done before this returns."""
    if start(work, name) is None:
        work()


def later(seconds: float, work: Work) -> Work:
    """Have work done in a while; returns what cancels it.

    Without threads the event loop does the work; where no event loop runs, the work is done at once.
    """
    timer = threading.Timer(seconds, work)
    timer.daemon = True
    try:
        timer.start()
    except RuntimeError:
        return _by_event_loop(seconds, work)
    return timer.cancel


def _by_event_loop(seconds: float, work: Work) -> Work:
    import asyncio  # which takes as long to import as half of onnxlab

    try:
        return asyncio.get_running_loop().call_later(seconds, work).cancel
    except RuntimeError:
        work()
        return lambda: None
