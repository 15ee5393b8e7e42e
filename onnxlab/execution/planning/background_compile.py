"""Background compilation: programs that others stand in for, until a thread has compiled them.

A provider whose `background` is true takes a while to claim and compile. A program that uses it is asked for like any
other; the program of the other providers, its stand-in, runs until the background thread has made it (see `base.tier`).
A program that becomes ready after the model has changed is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from onnxlab.execution.base import background
from onnxlab.execution.base.provider import Provider
from onnxlab.execution.base.tier import Tier
from onnxlab.execution.planning.compiler import Compiler, Key
from onnxlab.execution.program.call import PACE
from onnxlab.execution.program.program import Program
from onnxlab.garbage_collection import no_collection

_NOTE = "stand-in"  # of a compiler: that of its stand-ins; of a program: whether it is a stand-in
_LITTLE = 0.25  # share of the time of its stand-in's run that compiling a program may take in a foreground call
_SHORT = 1e-3  # seconds up to which a first run causes no compilation, where the caller named no providers


def make_ready(program: Program, feeds: Mapping[str, Any]) -> None:
    """Have the parts of a program make what its next run takes, in the background."""
    for step in [instruction.step for instruction in program.instructions]:
        if step.part is not None and step.part.ready is not None:
            step.part.ready([feeds.get(name) for name in step.inputs])


class FallbackPrograms:
    """Programs of one graph that are to be made in the background.

    Args:
        providers: in order of preference.
        patient: begin only when a run was long, or was not the first: most tiny models run once.

    Attributes:
        slow: the providers that are not waited for.
        tier: of programs, by providers and key.
    """

    def __init__(self, providers: Sequence[Provider], patient: bool = False) -> None:
        self._others = tuple([provider for provider in providers if not provider.capabilities.background])
        self.slow = frozenset(providers).difference(self._others) if self._others else frozenset()
        self._patient = patient
        slow = self.slow

        def prepare() -> None:
            for provider in slow:
                provider.prepare()

        self.tier: Tier[Any] = Tier(prepare)

    def compiler(self, compiler: Compiler) -> Compiler:
        """The compiler of the same model by the providers that compile at once."""
        if not self.slow:
            return compiler
        fallback = compiler.others.get(_NOTE)
        if fallback is None:
            fallback = Compiler(compiler.snapshot, self._others, compiler.fact, compiler.steps,
                                stored=compiler.stored)  # fmt: skip
            fallback.ids, fallback.facts = compiler.ids, compiler.facts
            compiler.others[_NOTE] = fallback
        return fallback

    def program(self, compiler: Compiler, key: Key, current: Callable[[], bool], feeds: Mapping[str, Any]) -> Program:
        """A program of a compiler, or its stand-in until the program is ready.

        Args:
            current: whether the model is still the one that the compiler is for.
            feeds: {name: array} of the run that asks; None for an array that is not known.

        Raises:
            as `Compiler.program`.
        """
        instead = max(self.tier.took.get((self._others, key), 0.0), _LITTLE * self.tier.instead.get((None, key), 0.0))
        slow = not self.slow.isdisjoint(compiler.providers)
        if (program := compiler.carried(key)) is not None:
            return program
        if not slow or self.tier.is_quick((compiler.providers, key), instead):
            return self._timed(compiler, key)
        fallback = self.compiler(compiler)
        program = fallback.carried(key) or self._timed(fallback, key)

        def make() -> None:
            if current():
                compiled = self._timed(compiler, key)
                try:
                    make_ready(compiled, feeds)
                finally:
                    if current() and key in compiler.programs:  # else it may be made from facts of a later model
                        compiler.programs[key] = compiled
                        compiler.steps.drop((*key, fallback.providers))

        program.notes[_NOTE] = True
        compiler.programs[key] = program  # before the job, which replaces it
        self.tier.later((compiler, key), make, current)
        return program

    def ran(self, key: Key, program: Program) -> None:
        """Note how long a program ran, if it stood in for another."""
        if _NOTE in program.notes and PACE in program.notes:
            self.tier.instead.keep((None, key), program.notes[PACE][1])

    def begin(self, seconds: float = inf) -> None:
        """Have the programs made that stand-ins ran for, after a run of `seconds`."""
        if self.tier.is_waiting and self._patient and seconds < _SHORT:
            self._patient = False
        else:
            self.tier.begin()

    def _timed(self, compiler: Compiler, key: Key) -> Program:
        with no_collection(before=not background.is_here()):  # a full collection stops all threads for 100 ms and more
            return self.tier.timed((compiler.providers, key), lambda: compiler.program(*key))
