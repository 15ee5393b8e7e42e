"""Places where the sign of a zero matters: divisors, Sign and the like, unknown operators, and all before them."""

from typing import Final

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.index.topology import reachable
from onnxlab.ops import find_traits

_NEARBY: Final = 200
"""Nodes that a walk visits at most; beyond, the answer is computed once for the whole graph."""


class ZeroSigns:
    """The nodes of a main graph for whose zeros the sign matters, as of the first question."""

    def __init__(self, graph: ModelGraph) -> None:
        self._graph = graph
        self._before: set[int] | None = None

    def matter(self, node: NodeRecord) -> bool:
        """Whether the sign of a zero that a node makes may matter to what depends on it."""
        if node.scope != self._graph.main.id:
            return True
        if self._before is None:
            nearby = self._nearby(node)
            if nearby is not None:
                return nearby
            self._before = self._all()
        return node.id in self._before

    def _nearby(self, node: NodeRecord) -> bool | None:
        """The answer by a walk over the node's readers; None where it is not decided within `_NEARBY` nodes."""
        graph, seen, level = self._graph, {node.id}, [node]
        while level:
            readers = [use for at in level for vid in at.outputs if vid for use in graph.values[vid].uses]
            level = []
            for ident, slot in readers:
                reader = graph.nodes[ident]
                traits = find_traits(reader.domain, reader.op_type)
                unknown = reader.scope != graph.main.id or reader.bodies or traits.category == "custom"
                if unknown or slot in traits.zero_signs:
                    return True
                if ident not in seen:
                    seen.add(ident)
                    level.append(reader)
            if len(seen) > _NEARBY:
                return None
        return False

    def _all(self) -> set[int]:
        """Ids of all nodes of the main graph for whose zeros the sign matters."""
        graph = self._graph
        values = [vid for ident in graph.main.node_ids for vid in self._read(graph.nodes[ident])]
        starts = [producer[0] for vid in values if (producer := graph.values[vid].producer) is not None]
        return {*starts, *reachable(starts, lambda at: graph.index.producers(graph.nodes[at]), lambda at: True)}

    def _read(self, node: NodeRecord) -> list[int]:
        """The inputs of a node for which the sign of a zero matters; where that is unknown all, bodies included."""
        traits = find_traits(node.domain, node.op_type)
        if node.bodies or traits.category == "custom":
            return [vid for vid in (*node.inputs, *self._graph.index.captures(node)) if vid]
        return [node.inputs[slot] for slot in traits.zero_signs if slot < len(node.inputs) and node.inputs[slot]]
