"""The one background thread: what is to be done beside runs, one job after the other."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from queue import Queue
from types import ModuleType
from typing import TypeVar

from onnxlab import threads
from onnxlab.forking import fork_safe, in_child
from onnxlab.garbage_collection import count_as_old

T = TypeVar("T")

_jobs: Queue[Callable[[], None]] = Queue()
_lock = fork_safe(threading.Lock())
_thread: threading.Thread | None = None

_SPELL = 1e-3  # seconds after which the background thread may rest again: it needs the interpreter that runs need
# Ratio of rest to work of the background thread beside a run that it has already held up for `_HOLDING_UP`.
_REST = 12.0
_HOLDING_UP = 25e-3  # seconds of background work beside one run after which it rests: until then, both take turns
_LONGEST_REST = 0.2
_STRIDE = 16  # items of a loop between two readings of the clock
# How long each run under way has waited for the processor; those of a few milliseconds are left out.
_runs: set[Callable[[], float]] = set()
_rested = 0.0  # processor time of the background thread when it last rested
_looked = 0.0  # time when it last looked at that, which takes longer than most items of a loop
_beside = 0.0  # seconds that the background thread worked since a run began

# Switch interval of Python's threads, in seconds, while background work is under way (Python's default is 5 ms): NumPy
# has to get the interpreter back after every large operation.
_POLITE = 5e-5


class NotReadyError(Exception):
    """A kernel is not compiled yet, or not any more where the process is about to end: no fault to tell of."""


def do(job: Callable[[], None]) -> None:
    """Have a job done; what it raises is a warning, and NumPy goes on."""
    global _thread
    with _lock:
        _thread = _thread or threads.start(_work, "onnxlab-compile")
    if _thread is None:
        warnings.warn("nothing is compiled, NumPy goes on: no thread can be started", stacklevel=2)
    else:
        _jobs.put(job)


def is_here() -> bool:
    """Whether the caller is in the background thread."""
    return threading.current_thread() is _thread


def rest() -> None:
    """Between two pieces of a job: let a run go on that this, the background thread, has held up for a while."""
    global _rested, _beside, _looked
    if time.perf_counter() - _looked > _SPELL and is_here():
        _looked = time.perf_counter()
        spent = threads.thread_time() - _rested
        _beside += spent
        count_as_old()  # a full garbage collection stops all threads: for 100 ms with 8,000 nodes in memory
        if _runs and min(_beside, *[waited() for waited in tuple(_runs)]) > _HOLDING_UP:
            time.sleep(min(_REST * spent, _LONGEST_REST))
        _rested = threads.thread_time()


@contextmanager
def run() -> Iterator[None]:
    """Let the background thread rest while a foreground call is inside the block."""
    global _beside
    waited, _beside = threads.waiting(), 0.0
    _runs.add(waited)
    try:
        yield
    finally:
        _runs.discard(waited)


def paced(items: Iterable[T]) -> Iterable[T]:
    """The items, for a loop; in the background thread with rests between them."""
    return _resting(items) if is_here() else items


def _resting(items: Iterable[T]) -> Iterator[T]:
    iterator = iter(items)
    while chunk := [*islice(iterator, _STRIDE)]:
        rest()
        yield from chunk


class _BetweenImports:
    """A finder of modules that finds none: the background thread rests before each module that any thread imports.

    The finder stays at its place in `sys.meta_path`, because another thread may be iterating over that list.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        rest()


def _work() -> None:
    global _rested
    if _BetweenImports not in sys.meta_path:
        sys.meta_path.insert(0, _BetweenImports)
    while True:
        job = _jobs.get()
        _rested = threads.thread_time()
        try:
            with suppress(NotReadyError), _polite():
                job()
        except Exception as error:
            warnings.warn(f"compiling in the background failed, NumPy goes on: {error!r}", stacklevel=1)
        finally:
            del job
            _jobs.task_done()


@contextmanager
def _polite() -> Iterator[None]:
    """Let other threads have their turn sooner meanwhile."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _POLITE))
    ours = sys.getswitchinterval()
    try:
        yield
    finally:
        if sys.getswitchinterval() == ours:  # else other code has set it since
            sys.setswitchinterval(before)


def wait(timeout: float | None = None) -> bool:
    """Wait until nothing is left to be done; whether that is so."""
    with _jobs.all_tasks_done:
        return _jobs.all_tasks_done.wait_for(lambda: _jobs.unfinished_tasks == 0, timeout)


@in_child
def _forget() -> None:
    """A forked child has no background thread."""
    global _thread, _jobs
    _thread, _jobs = None, Queue()
    _runs.clear()
