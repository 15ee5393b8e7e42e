"""Which branches are taken, where the shapes of the feeds decide it: then they are compiled as if they stood outside.

Exporters write Ifs about ranks and sizes ("squeeze it if the axis has one element"). Nothing behind such an If has a
known rank, so that providers leave it alone. When feeds of the same shapes come the second time, the graph is inferred
with these numbers; where that decides an If, such feeds get a compiler of their own, which knows all shapes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxlab.execution.compiler import Compiler, FactOf
from onnxlab.execution.inlining import truth
from onnxlab.execution.program import Program
from onnxlab.graph.modelgraph import ModelGraph
from onnxlab.infer.frame import Frame
from onnxlab.infer.walk import Walker
from onnxlab.shapes import UNKNOWN, Fact, TensorFact

_KEPT = 4  # sets of shapes with a compiler
_SEEN = 64  # sets of shapes remembered that came once

Signature = tuple[tuple[str, tuple[int, ...]], ...]
Specific = tuple[Compiler, "OrderedDict[Any, Program]"]


class Branches:
    """Compilers of one version of a graph for feeds of certain shapes.

    Args:
        graph: the model.
        general: its compiler for feeds of any shapes.
    """

    def __init__(self, graph: ModelGraph, general: Compiler) -> None:
        self._graph = graph
        self._general = general
        scopes = general.snapshot.scopes.values()
        found = [node.input_ids[0] for scope in scopes for node in scope.nodes if node.op_type == "If" and node.inputs]
        self._open = [value for value in found if truth(general.fact(value)) is None] if general.inlines else []
        self._seen: OrderedDict[Signature, None] = OrderedDict()
        self._known: OrderedDict[Signature, Specific] = OrderedDict()

    def specific(self, arrays: Mapping[str, Any]) -> Specific | None:
        """The compiler for such feeds, and its programs; None where they decide nothing, or come for the first time."""
        if not self._open or (signature := self._signature(arrays)) is None:
            return None
        found = self._known.get(signature)
        if found is None and signature in self._seen:
            del self._seen[signature]
            found = self._made(arrays)
            if found is not None:
                self._known[signature] = found
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        elif found is None:
            self._seen[signature] = None
            while len(self._seen) > _SEEN:
                self._seen.popitem(last=False)
        return found

    def waits(self, arrays: Mapping[str, Any]) -> bool:
        """Whether the next run of such feeds may get a compiler of its own, that of this one was none."""
        return bool(self._open) and self._signature(arrays) in self._seen

    def _signature(self, arrays: Mapping[str, Any]) -> Signature | None:
        """The shapes, None where something else than inputs is fed, or a feed is no array."""
        if not self._general.snapshot.main.initializers.keys().isdisjoint(arrays):
            return None
        inputs = self._general.snapshot.main.inputs
        if not all(type(array) is np.ndarray and name in inputs for name, array in arrays.items()):
            return None
        return tuple([(name, array.shape) for name, array in arrays.items()])

    def _made(self, arrays: Mapping[str, Any]) -> Specific | None:
        general = self._general
        with self._graph.lock:
            if self._graph.snapshot() is not general.snapshot:
                return None
            fact = _facts(self._graph, general, arrays)
        if all(truth(fact(value)) is None for value in self._open):
            self._open = []  # it is for the elements to decide
            return None
        return Compiler(general.snapshot, general.providers, fact, general.steps, general.folder), OrderedDict()


def _facts(graph: ModelGraph, general: Compiler, arrays: Mapping[str, Any]) -> FactOf:
    """What inference finds for inputs of these shapes, and of values inside functions what holds for any."""
    walker, frame, main = Walker(graph), Frame(), graph.main
    for value in main.inputs:
        record = graph.values[value]
        fact = walker.sources.fact(record)
        array = arrays.get(record.name)
        if array is not None and isinstance(fact, TensorFact):
            fact = TensorFact(fact.elem_type, array.shape)
        frame.set(value, fact)
    walker.walk_scope(frame, main)
    found = frame.facts

    def of(value: int) -> Fact:
        fact = found.get(value, UNKNOWN)
        return general.fact(value) if fact is UNKNOWN else fact

    return of
