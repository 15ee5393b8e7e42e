"""Nodes that are refused before a run begins: those for which onnxruntime would refuse the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from onnxlab.errors import Diagnostic, RunError
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.run.requests import Requests
from onnxlab.graph.edit.model_graph import ModelGraph

_NOTE = "refused"  # of a compiler


class Refuse(Protocol):
    """A source of reasons that keep nodes from running."""

    def sentence(self, problem: Diagnostic) -> str:
        """The reason for refusing a run, and what to do."""
        ...

    def refusals(self) -> Sequence[Diagnostic]:
        """The errors of the graph as it is now for which a run is refused."""

    def needed(self, problem: Diagnostic, nodes: set[int]) -> bool:
        """Whether an error keeps these nodes of the main graph from running."""


class RefusedNodes:
    """Checks of runs against refusals, which are asked for once per version of the graph; None refuses nothing."""

    def __init__(self, graph: ModelGraph, requests: Requests, refuse: Refuse | None) -> None:
        self._graph = graph
        self._requests = requests
        self._refuse = refuse

    def check(self, compiler: Compiler, fed: Iterable[str], outputs: tuple[str, ...]) -> None:
        """Raise RunError for the first node that the outputs need and that is refused; mostly there is none."""
        problems: Sequence[Diagnostic] | None = compiler.notes.get(_NOTE)
        if problems is None:
            problems = compiler.notes[_NOTE] = () if self._refuse is None else self._refuse.refusals()
        if not problems or self._refuse is None:
            return
        nodes = {
            node.id for node in compiler.main.cone(self._requests.with_pins(compiler, dict.fromkeys(fed)), outputs)
        }
        for problem in problems:
            if self._refuse.needed(problem, nodes):
                record = self._graph.nodes.get(problem.node)
                raise RunError(self._refuse.sentence(problem), None if record is None else self._graph.label(record))
