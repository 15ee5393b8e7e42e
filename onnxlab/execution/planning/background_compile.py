"""Background compilation: programs that others stand in for, until a thread has compiled them.

A provider whose `background` is true takes a while to claim and compile. A program with it is asked for like any other;
the program of the other providers runs in its place until it is there. What the model was changed under is thrown away.
After an edit a program is made at once that was made quickly the last time, or not slower than its stand-in, or in
little of the time that its stand-in ran.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from math import inf

from onnxlab.execution.base import background
from onnxlab.execution.base.lru import Lru
from onnxlab.execution.base.provider import Provider
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.program.call import PACE
from onnxlab.execution.program.program import Program
from onnxlab.garbage_collection import no_collection
from onnxlab.threads import thread_time

Key = tuple[tuple[str, ...], tuple[str, ...], bool]
"""(names of feeds, names of outputs, whether every value stays readable)."""

Made = Lru[Key, Program]
"""The programs of one compiler, stand-ins among them."""

_NOTE = "stand-in"  # of a compiler: the one whose programs stand in for its own; of a program: that it does
_QUICKLY = 20e-3
"""Seconds of the processor that compiling a program may always take in a foreground call."""
_LITTLE = 0.25
"""Part of its stand-in's run that compiling a program may take in a foreground call."""
_SHORT = 1e-3
"""Seconds of a first run after which nothing is compiled yet, where the providers are not those that were asked for."""
_TIMES = 64  # programs whose making was timed
_PROGRAMS = 16  # kept per version of the model


def no_programs() -> Made:
    """The programs of a new compiler."""
    return Lru("programs", _PROGRAMS)


class FallbackPrograms:
    """Programs of one graph that are to be made in the background.

    Args:
        providers: in order of preference.
        patient: begin only when a run was long, or was not the first: most tiny models run once.

    Attributes:
        news: whether programs were compiled since this was last set to False.
    """

    def __init__(self, providers: Sequence[Provider], patient: bool = False) -> None:
        self._others = tuple([provider for provider in providers if not provider.capabilities.background])
        self._slow = frozenset(providers).difference(self._others) if self._others else frozenset()
        self.news = False
        self._jobs: deque[tuple[Callable[[], bool], Callable[[], None]]] = deque()
        self._asked = 0  # the process in which they are to be done; a forked child has no background thread
        self._hopeless = False
        self._patient = patient
        self._times: Lru[tuple[tuple[Provider, ...], Key], float] = Lru("times of making programs", _TIMES)
        self._runs: Lru[Key, float] = Lru("times of stand-ins", _TIMES)

    @property
    def wanted(self) -> bool:
        """Whether some of the providers are not waited for."""
        return bool(self._slow)

    def compiler(self, compiler: Compiler) -> Compiler:
        """The compiler of the same model by the providers that compile at once."""
        if not self._slow:
            return compiler
        fallback: Compiler | None = compiler.notes.get(_NOTE)
        if fallback is None:
            fallback = Compiler(compiler.snapshot, self._others, compiler.fact, compiler.steps, compiler.folder,
                                stored=compiler.stored)  # fmt: skip
            fallback.ids = compiler.ids
            compiler.notes[_NOTE] = fallback
        return fallback

    def program(self, compiler: Compiler, programs: Made, key: Key, current: Callable[[], bool]) -> Program:
        """A program of a compiler, or its stand-in; then the program will be put into `programs` when it is ready.

        Args:
            current: whether the model is still the one that the compiler is for.

        Raises:
            as `Compiler.program`.
        """
        if self._at_once(compiler, key):
            return self._timed(compiler, key)
        program = self._timed(self.compiler(compiler), key)

        def make() -> None:
            if current():
                compiled = self._timed(compiler, key)
                if current() and key in programs:  # facts that it asked for may be of a later model
                    programs[key] = compiled

        program.notes[_NOTE] = True
        programs[key] = program  # before the job, which replaces it
        self.later(make, current)
        return program

    def _at_once(self, compiler: Compiler, key: Key) -> bool:
        """Whether compiling in the foreground is within the latency budget, as the last time showed."""
        if self._slow.isdisjoint(compiler.providers):
            return True
        instead = max(self._times.get((self._others, key), 0.0), _LITTLE * self._runs.get(key, 0.0))
        return self._times.get((compiler.providers, key), inf) <= max(_QUICKLY, instead)

    def ran(self, key: Key, program: Program) -> None:
        """Note how long a program ran, if it stood in for another."""
        if _NOTE in program.notes and PACE in program.notes:
            self._runs.keep(key, program.notes[PACE][1])

    def later(self, job: Callable[[], None], current: Callable[[], bool]) -> None:
        """Have something done in the background, after the run; jobs for earlier states of the model are dropped.

        Args:
            job: what is to be done.
            current: whether the model is still the one that it is for.
        """
        for _ in range(len(self._jobs)):
            with contextlib.suppress(IndexError):  # the background thread takes from it too
                entry = self._jobs.popleft()
                if entry[0]():
                    self._jobs.append(entry)
        if not self._hopeless:
            self._jobs.append((current, job))

    @property
    def is_waiting(self) -> bool:
        """Whether something is to be done that has not begun."""
        return bool(self._jobs) and self._asked != os.getpid()

    @property
    def is_compiling(self) -> bool:
        """Whether something is to be done, or under way."""
        return bool(self._jobs) or self._asked == os.getpid()

    def begin(self, seconds: float = inf) -> None:
        """After a run of so many seconds: have done what was asked for.

        The first run is not to share its processor with a compiler.
        """
        if not self.is_waiting:
            return
        if self._patient and seconds < _SHORT:
            self._patient = False
            return
        this = weakref.ref(self)

        def job() -> None:
            fallbacks = this()
            if fallbacks is not None:
                fallbacks._work()

        self._asked = os.getpid()
        try:
            background.do(job)
        except BaseException:
            self._asked = 0
            raise

    def _work(self) -> None:
        """Make what is wanted, in the background thread."""
        self._asked = 0  # requests from now on count anew
        try:
            for provider in self._slow:
                provider.prepare()
        except BaseException:
            self._hopeless = True
            self._jobs.clear()
            raise
        while self._jobs:
            _, job = self._jobs.popleft()
            job()
            self.news = True

    def _timed(self, compiler: Compiler, key: Key) -> Program:
        began = thread_time()
        with no_collection(before=not background.is_here()):  # for a whole one, which takes 100 ms and more, all wait
            program = compiler.program(*key)
        if self._slow:
            self._times.keep((compiler.providers, key), thread_time() - began)
        return program
