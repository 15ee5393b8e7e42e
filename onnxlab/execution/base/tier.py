"""The one way of having made what takes a while: in the foreground, or in the background while a fallback answers.

Programs and the plans of regions are made at once where the last time was short, or short against a run of their
fallback. Otherwise the background thread makes them after the call that asked for them, so that this call does not
share the processor with a compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import inf
from typing import Any, Generic, TypeVar
from weakref import WeakMethod, WeakSet

from onnxlab.execution.base import background
from onnxlab.execution.base.lru import Lru
from onnxlab.forking import in_child
from onnxlab.threads import thread_time

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

QUICKLY = 20e-3
"""Seconds of the processor that a foreground call may always wait for something to be made."""
_TIMED = 64  # keys for which times of making and of fallback runs are kept


class Tier(Generic[K]):
    """Artifacts by key, made in the foreground or background.

    Args:
        prepare: called in the background before anything is made there; where it fails, nothing is made there.

    Attributes:
        took, instead: {key: seconds of the processor} of the last time of making, and of the fallback's run.
        news: whether anything was made in the background, or given up, since `news` was last set to False.
    """

    def __init__(self, prepare: Callable[[], None] = lambda: None) -> None:
        self.took: Lru[K, float] = Lru("times of making", _TIMED)
        self.instead: Lru[K, float] = Lru("times of fallbacks", _TIMED)
        self.news = False
        self._prepare = prepare
        self._jobs: dict[K, tuple[Callable[[], bool], Callable[[], object]]] = {}
        self._asked = False  # whether they are to be done by the background thread
        self._hopeless = False
        _tiers.add(self)

    def is_quick(self, key: K, otherwise: float = 0.0) -> bool:
        """Whether making the artifact is worth waiting for: it last took at most `QUICKLY`, or at most `otherwise`."""
        return self.took.get(key, inf) <= max(QUICKLY, otherwise)

    def timed(self, key: K, make: Callable[[], T]) -> T:
        """Make it, and note how long that takes."""
        began = thread_time()
        result = make()
        self.took.keep(key, thread_time() - began)
        return result

    @property
    def is_waiting(self) -> bool:
        """Whether something is to be done that has not begun."""
        return bool(self._jobs) and not self._asked

    @property
    def is_compiling(self) -> bool:
        """Whether something is to be done, or under way."""
        return bool(self._jobs)

    def later(self, key: K, job: Callable[[], object], current: Callable[[], bool] = lambda: True) -> None:
        """Have it made in the background, after `begin`; jobs that are not current any more are dropped.

        Args:
            job: makes the artifact and stores it where callers look for it.
            current: whether the artifact is still of use.
        """
        for other, (still, _) in list(self._jobs.items()):
            if not still():
                self._jobs.pop(other, None)
        if not self._hopeless:
            self._jobs.setdefault(key, (current, job))

    def begin(self) -> None:
        """Have done what was asked for."""
        if not self.is_waiting:
            return
        work = WeakMethod(self._work)
        self._asked = True
        try:
            background.do(lambda: (method := work()) and method())
        except BaseException:
            self._asked = False
            raise

    def _work(self) -> None:
        """Make what is wanted, in the background thread."""
        try:
            self._prepared()
            while self._jobs:
                (key, (_, job)), *_ = list(self._jobs.items())  # a copy: other threads add jobs meanwhile
                try:
                    job()
                finally:
                    self._jobs.pop(key, None)
                self.news = True
        finally:
            self._asked = False
        self.begin()  # jobs that were added just now

    def _prepared(self) -> None:
        try:
            self._prepare()
        except BaseException:
            self._hopeless = True
            self._jobs.clear()
            raise

    def forked(self) -> None:
        """In a forked child, which has no background thread: what was under way is to be asked for again."""
        self.news, self._asked = self.news or bool(self._jobs), False


_tiers: WeakSet[Tier[Any]] = WeakSet()


@in_child
def _forked() -> None:
    for tier in list(_tiers):
        tier.forked()
