"""Problems of values: declared types that contradict what inference finds, and values that nothing makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from onnxlab.errors import Diagnostic
from onnxlab.graph.modelgraph import ModelGraph
from onnxlab.graph.records import ValueRecord
from onnxlab.infer.checks import contradiction
from onnxlab.infer.sources import Sources
from onnxlab.shapes import UNKNOWN, Fact


class Conflicts:
    """Compares declared with inferred types, as late as somebody asks, and each value once per fact."""

    def __init__(self, graph: ModelGraph, sources: Sources) -> None:
        self._graph = graph
        self._sources = sources
        self._unchecked: set[int] = set()
        self._found: dict[int, Diagnostic] = {}

    def check(self, values: Iterable[int]) -> None:
        """Look again at these values when diagnostics are asked for."""
        self._unchecked.update(values)

    def check_again(self) -> None:
        """Look again at those found: the names of unknown dims in their texts may have changed."""
        self._unchecked.update(self._found)

    def diagnostics(self, facts: Mapping[int, Fact]) -> list[Diagnostic]:
        """Every contradiction, ordered by value id; then who reads what nothing makes."""
        values = self._graph.values
        while self._unchecked:
            vid = self._unchecked.pop()
            value = values.get(vid)
            if value is None or value.info is None:  # most declare nothing, and looking facts up takes time
                found = None
            else:
                found = self._compare(value, facts.get(vid, UNKNOWN))
            if found is None:
                self._found.pop(vid, None)
            else:
                self._found[vid] = found
        return [*(self._found[vid] for vid in sorted(self._found)), *self._unmade()]

    def _unmade(self) -> Iterator[Diagnostic]:
        for value in [self._graph.values[vid] for vid in sorted(self._graph.index.undefined)]:
            for reader in dict.fromkeys(node for node, _ in value.uses):
                node = self._graph.nodes[reader]
                yield Diagnostic(
                    "error",
                    "undefined-value",
                    f"{self._graph.label(node)} ({node.proto.op_type}): it reads {value.name!r}, which nothing makes",
                    node.id,
                    value.id,
                    node.scope,
                    "a value that a node makes, an input or an initializer",
                    value.name,
                    "connect another value",
                )

    def _compare(self, value: ValueRecord, fact: Fact) -> Diagnostic | None:
        if value.info is None or fact is UNKNOWN or (value.is_input and value.initializer is None):
            return None
        declared = self._sources.declared(value)
        what = contradiction(declared, fact)
        if not what:
            return None
        role = "graph output" if value.is_output else "value"
        node = value.producers[0][0] if value.producers else 0
        return Diagnostic(
            "warning",
            f"declared-{what}",
            f"the {role} {value.name!r} is declared as {declared}, but inference finds {fact}",
            node,
            value.id,
            value.scope,
            str(declared),
            str(fact),
            "correct the declared type, or the nodes before it",
        )
