"""Branches that the shapes of the feeds decide: they are compiled as if they stood outside.

Exporters write Ifs about ranks and sizes ("squeeze if the axis has one element"). No value behind such an If has a
known rank, so that providers do not claim the nodes there. When feeds have the same shapes for the second time,
inference runs with these shapes; where that decides an If, such feeds get a compiler of their own, which knows all
shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from onnxlab.execution.base.lru import Lru
from onnxlab.execution.planning.background_compile import make_ready
from onnxlab.execution.planning.compiler import Compiler, FactOf, Key
from onnxlab.execution.planning.inlining import truth
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.walk.walker import Walker
from onnxlab.shapes import UNKNOWN, TensorFact

_SEEN = 64  # sets of shapes that were fed once and are remembered

Signature = tuple[tuple[str, tuple[int, ...]], ...]


class Branches:
    """Compilers of one version of a graph for feeds of certain shapes.

    Args:
        graph: the model.
        general: the graph's compiler for feeds of any shapes.
    """

    def __init__(self, graph: ModelGraph, general: Compiler) -> None:
        self._graph = graph
        self._general = general
        scopes = general.snapshot.scopes.values()
        nodes = (node for scope in scopes for node in scope.nodes) if any(s.kind == "subgraph" for s in scopes) else ()
        conditions = [node.input_ids[0] for node in nodes if node.op_type == "If" and node.inputs]
        self._open = [value for value in conditions if truth(general.fact(value)) is None] if general.inlines else []
        self._seen: Lru[Signature, None] = Lru("shapes that came once", _SEEN)

    def specific(
        self, arrays: Mapping[str, Any], later: Callable[[Signature, Callable[[], None]], None] | None
    ) -> Compiler | None:
        """The compiler for such feeds; None where they decide nothing, or come for the first time.

        Args:
            later: puts a job into the background; None to do the job at once.
        """
        if not self._open or (signature := self._signature(arrays)) is None:
            return None
        others = self._general.others
        match = others.get(signature)
        if match is None and signature in self._seen:
            del self._seen[signature]
            if later is None:
                self._make(signature, (), arrays)
            else:
                later(signature, partial(self._make, signature, self._general.programs, arrays))
            match = others.get(signature)
        elif match is None:
            self._seen.keep(signature, None)
        return match

    def waits(self, arrays: Mapping[str, Any]) -> bool:
        """Whether the next run of such feeds may get a compiler of its own where this run has none."""
        signature = self._signature(arrays) if self._open else None
        return signature in self._seen

    def _signature(self, arrays: Mapping[str, Any]) -> Signature | None:
        """The shapes, None where other values than inputs are fed, or a feed is not an array."""
        if not self._general.snapshot.main.initializers.keys().isdisjoint(arrays):
            return None
        inputs = self._general.snapshot.main.inputs
        plain = all(type(array) is np.ndarray and name in inputs for name, array in arrays.items())
        return tuple([(name, array.shape) for name, array in arrays.items()]) if plain else None

    def _make(self, signature: Signature, programs: Iterable[Key], arrays: Mapping[str, Any]) -> None:
        """Make the compiler for feeds of these shapes, and in the background the programs that were asked for."""
        general, shapes = self._general, dict(signature)
        with self._graph.lock:
            if self._graph.snapshot() is not general.snapshot:
                return
            fact = _facts(self._graph, general, shapes)
        if all(truth(fact(value)) is None for value in self._open):
            self._open = []  # not shapes but elements decide
            return
        compiler = Compiler(general.snapshot, general.providers, fact, general.steps,
                            stored=general.stored)  # fmt: skip
        compiler.ids, compiler.notes, compiler.checked = general.ids, general.notes, general.checked
        for key in [key for key in list(programs) if set(key[0]) == shapes.keys()]:
            compiler.programs[key] = program = compiler.program(*key)
            make_ready(program, arrays)
        general.others.keep(signature, compiler)


def _facts(graph: ModelGraph, general: Compiler, shapes: Mapping[str, tuple[int, ...]]) -> FactOf:
    """The inferred facts for inputs of these shapes; for values inside functions, those that hold for any shapes."""
    walker, frame, main = Walker(graph), FactFrame(), graph.main
    for value in main.inputs:
        record = graph.values[value]
        fact = walker.sources.fact(record)
        shape = shapes.get(record.name)
        if shape is not None and isinstance(fact, TensorFact):
            fact = TensorFact(fact.elem_type, shape)
        frame.set(value, fact)
    walker.walk_scope(frame, main)
    facts = frame.facts
    return lambda value: general.fact(value) if (fact := facts.get(value, UNKNOWN)) is UNKNOWN else fact
