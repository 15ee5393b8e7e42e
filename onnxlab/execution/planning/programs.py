"""The compiler of a graph as it is now, and the programs that it has made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from onnxlab.execution.base.lru import Lru
from onnxlab.execution.base.provider import Provider
from onnxlab.execution.planning.background_compile import FallbackPrograms
from onnxlab.execution.planning.cached_partition import StepCache
from onnxlab.execution.planning.carry import difference
from onnxlab.execution.planning.compiler import Compiler, FactOf
from onnxlab.execution.planning.decided_branches import Branches
from onnxlab.execution.planning.stored_weights import StoredWeights
from onnxlab.execution.program.program import Program
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.limits import Limits
from onnxlab.ops.base import registry

_SPECIALIZED = 64  # specialized programs that are kept
_CHECKS = 16  # sets of feeds and outputs that were checked, per version of the model
_BRANCHES = "branches"  # note of a compiler


class Programs:
    """Programs of one graph, made when they are asked for and forgotten when the graph changes.

    Args:
        graph: the model.
        providers: in order of preference.
        threads: of BLAS; one where a provider has threads of its own, which BLAS's would slow down.
        fact: what inference knows of a value id.
        check: called as `check(compiler, feeds, outputs)`; raises to refuse a program.
        doubt: gives a function to call when kept values are out of date; None when nothing is kept.
        patient: compile in the background only programs that run long or more than once.
        facts: gives what differs wherever a fact does.

    Attributes:
        steps: of nodes, for all versions of the graph.
        fallbacks: stand-ins for programs that take a while to be made.
        compiled: the newest compiler.
        specialized: programs of that compiler for runs of one key (see `run.specialization`).
        ran: the program of the last run of that compiler.
    """

    def __init__(
        self,
        graph: ModelGraph,
        providers: Sequence[Provider],
        threads: int,
        fact: FactOf,
        check: Callable[[Compiler, tuple[str, ...], tuple[str, ...]], None],
        doubt: Callable[[], Callable[[], None] | None],
        patient: bool = False,
        facts: Callable[[], object] | None = None,
    ) -> None:
        self.graph = graph
        self.providers = tuple(providers)
        own_threads = any(provider.capabilities.own_threads for provider in self.providers)
        self.threads = min(threads, 1) if own_threads else threads
        self.steps = StepCache()
        self.fallbacks = FallbackPrograms(self.providers, patient)
        self.compiled: Compiler | None = None
        self.specialized: Lru[Any, Any] = Lru("specialized programs", _SPECIALIZED)
        self.ran: Program | None = None
        self._fact, self._facts = fact, facts
        self._check = check
        self._doubt = doubt
        self._generation = registry.generation()
        self._weights = StoredWeights()
        self._is_steady = False  # whether `compiled` holds as long as the graph's version

    def __del__(self) -> None:
        self.steps.forget()
        if self.compiled is not None:
            self.compiled.forget()

    def within(self, limits: Limits | None) -> Compiler:
        """The compiler for a run with these limits: weights for which there is no room are left in their file."""
        self._weights.budget = limits.bytes if limits is not None else None
        return self.current()

    def current(self) -> Compiler:
        """The compiler of the model as it is now."""
        before = self.compiled
        if (
            before is not None and self._is_steady and before.version == self.graph.version
            and self._generation == registry.generation() and not self.fallbacks.tier.news
            and self.graph.transaction is None
        ):  # fmt: skip  # of most runs: no lock is taken
            return before
        with self.graph.lock:
            snapshot = self.graph.snapshot()
            if self._generation != registry.generation():  # custom operators were registered or removed
                self._generation = registry.generation()
                self.forget_steps()
                self.compiled = None
                doubt = self._doubt()
                if doubt is not None:
                    doubt()
            before = self.compiled
            if self.fallbacks.tier.news:
                self.fallbacks.tier.news = False
                self.specialized.clear()
            stored = self._weights.of(snapshot)
            if before is not None and before.snapshot is snapshot and before.stored.keys() == stored.keys():
                return before
            if before is not None and (stored or before.stored):  # steps that read files are not carried over
                self.forget_steps()
            compiler = Compiler(snapshot, self.providers, self._fact, self.steps, None, stored, self.graph.version)
            compiler.facts = None if self._facts is None else self._facts()
            if before is not None:
                if difference(before.snapshot, snapshot) is not None:  # names have the same meaning
                    compiler.ids, compiler.names, compiler.checked = before.ids, before.names, before.checked
                else:
                    self.steps.forget()
                before.forget()
            self.specialized.clear()
            self.compiled, self.ran = compiler, None
            self._is_steady = self.graph.transaction is None and not self._weights.large
            return compiler

    def forget_steps(self) -> None:
        """Forget all steps; a program that is being made adds none to the new ones."""
        self.steps.forget()
        self.steps = StepCache()

    def last(self) -> Program | None:
        """The program of the last run, as long as it is the model's."""
        programs = self.current().programs
        return next(reversed(programs.values()), None) if self.ran is None else self.ran

    def watching(self, compiler: Compiler, watched: Mapping[int, tuple[tuple[str, int], ...]]) -> Compiler:
        """A compiler of the same model for one run, whose bodies show these values (see `Compiler`)."""
        providers = self.fallbacks.compiler(compiler).providers
        return Compiler(compiler.snapshot, providers, self._fact, watched=watched, stored=compiler.stored)

    def for_shapes(self, compiler: Compiler, arrays: Mapping[str, Any]) -> Compiler:
        """The compiler for feeds of these shapes: the one that is given, unless shapes decide Ifs."""
        tier = self.fallbacks.tier if self.fallbacks.slow else None
        later = None if tier is None else partial(tier.later, current=self._is_current(compiler))
        return self._branches(compiler).specific(arrays, later) or compiler

    def _is_current(self, compiler: Compiler) -> Callable[[], bool]:
        """A function that tells whether the model is still the one of the compiler; it holds the compiler weakly."""
        version, graph = compiler.version, self.graph
        return lambda: graph.version == version

    def decided(self, compiler: Compiler, arrays: Mapping[str, Any]) -> bool:
        """Whether the next run of feeds of these shapes will be by the same program."""
        return not self._branches(compiler).waits(arrays)

    def _branches(self, compiler: Compiler) -> Branches:
        branches: Branches = compiler.notes.get(_BRANCHES) or Branches(self.graph, compiler)
        compiler.notes[_BRANCHES] = branches
        return branches

    def check(self, compiler: Compiler, feeds: tuple[str, ...], outputs: tuple[str, ...]) -> None:
        """Raise where a program from these feeds to these outputs is refused."""
        if (feeds, outputs) not in compiler.checked:
            self._check(compiler, feeds, outputs)
            known = compiler.checked if len(compiler.checked) < _CHECKS else frozenset()
            compiler.checked = known | {(feeds, outputs)}

    def program(self, compiler: Compiler, arrays: Mapping[str, Any], outputs: tuple[str, ...]) -> Program:
        """The program of a compiler from feeds to `outputs`, or the one that stands in for it.

        The `arrays` are those that are fed, by name, None where they are not known.
        """
        feeds, programs = tuple(arrays), compiler.programs
        key = feeds, outputs
        program = programs.get(key)
        if program is None:
            self.check(compiler, feeds, outputs)
            program = self.fallbacks.program(compiler, key, self._is_current(compiler), arrays)
            programs.keep(key, programs.get(key, program))  # a concurrent run may have made it meanwhile
        return program
