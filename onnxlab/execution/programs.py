"""The compiler of a graph as it is now, and the programs that it has made."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnxlab.execution.branches import Branches
from onnxlab.execution.compiler import Compiler, FactOf, StepCache
from onnxlab.execution.folding import Folder
from onnxlab.execution.keeping import same_names
from onnxlab.execution.program import Program
from onnxlab.execution.provider import Provider
from onnxlab.graph.modelgraph import ModelGraph
from onnxlab.ops import registry

_PROGRAMS = 16  # kept per version of the model
_BRANCHES = "branches"  # note of a compiler

Made = OrderedDict[Any, Program]
"""{(names of feeds, names of outputs): program} of one compiler."""


class Programs:
    """Programs of one graph, made when they are asked for and forgotten when the graph changes.

    Args:
        graph: the model.
        providers: in order of preference; those that are not `prepared` are left out until they are.
        fact: what inference knows of a value id.
        check: may refuse a program from these feeds to these outputs.
        doubt: called where kept plans no longer hold; with True where kept values do not either.

    Attributes:
        steps: of nodes, for all versions of the graph.
        folder: what constants made in all versions.
        compiled: the newest compiler and its programs.
    """

    def __init__(
        self,
        graph: ModelGraph,
        providers: Sequence[Provider],
        fact: FactOf,
        check: Callable[[Compiler, tuple[str, ...], tuple[str, ...]], None],
        doubt: Callable[[bool], None],
    ) -> None:
        self.graph = graph
        self.providers = tuple(providers)
        self.steps = StepCache()
        self.folder = Folder()
        self.compiled: tuple[Compiler, Made] | None = None
        self._fact = fact
        self._check = check
        self._doubt = doubt
        self._generation = registry.generation()
        self._prepared = False

    def current(self) -> tuple[Compiler, Made]:
        """The compiler of the model as it is now, and the programs that it has made."""
        with self.graph.lock:
            snapshot = self.graph.snapshot()
            if self._generation != registry.generation():  # custom operators came or went
                self._generation = registry.generation()
                self.steps.clear()
                self.compiled = None
                self._doubt(True)
            providers = self.providers if self._prepared else self._at_hand()
            before = self.compiled
            if before is not None and before[0].snapshot is snapshot and before[0].providers == providers:
                return before
            compiler = Compiler(snapshot, providers, self._fact, self.steps, self.folder)
            if before is not None:
                self.folder.turn()
                if before[0].providers != providers:
                    self._doubt(False)
                if same_names(before[0].snapshot, snapshot):
                    compiler.main.ids = before[0].main.ids
            self.compiled = compiler, OrderedDict()
            return self.compiled

    def _at_hand(self) -> tuple[Provider, ...]:
        """The providers that can be used now."""
        found = tuple([each for each in self.providers if getattr(each, "prepared", True)])
        self._prepared = found == self.providers
        return found

    def prepare(self) -> None:
        """After a run: have those providers made ready that it had to do without."""
        for provider in self.providers:
            if not getattr(provider, "prepared", True):
                provider.prepare()  # type: ignore[attr-defined]

    def for_shapes(self, compiler: Compiler, made: Made, arrays: Mapping[str, Any]) -> tuple[Compiler, Made]:
        """The compiler and programs for feeds of these shapes: others than those given where shapes decide Ifs."""
        return self._branches(compiler).specific(arrays) or (compiler, made)

    def settled(self, compiler: Compiler, arrays: Mapping[str, Any]) -> bool:
        """Whether the next run of feeds of these shapes will be by the same program."""
        return not self._branches(compiler).waits(arrays)

    def _branches(self, compiler: Compiler) -> Branches:
        found: Branches | None = compiler.notes.get(_BRANCHES)
        if found is None:
            found = compiler.notes[_BRANCHES] = Branches(self.graph, compiler)
        return found

    def program(self, compiler: Compiler, made: Made, feeds: tuple[str, ...], outputs: tuple[str, ...]) -> Program:
        """The program of a compiler from `feeds` to `outputs`; `made` holds those that it has made."""
        program = made.get((feeds, outputs))
        if program is None:
            self._check(compiler, feeds, outputs)
            program = made[feeds, outputs] = compiler.program(feeds, outputs)
            while len(made) > _PROGRAMS:
                made.popitem(last=False)
        return program
