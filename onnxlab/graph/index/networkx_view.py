"""The graph as networkx sees it, kept in step with the index from the first time it is asked for.

Nodes of the MultiDiGraph are node ids. Every pair of an output slot and an input slot is an edge of its own, with the
key (output slot, input slot): Add(x, x) has two. A value that a body of an If, Loop or Scan node captures is an edge
to that node, `kind="capture"`. The second part of its key is (inner node id, input slot), or (scope id, position)
where the body returns the value.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from onnxlab import dtypes
from onnxlab.garbage_collection import no_collection
from onnxlab.graph.index.edges import Slot
from onnxlab.graph.index.index import Index
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.protos import ge_dump
from onnxlab.shapes import UNKNOWN, Fact, TensorFact


class _Data(Mapping[str, Any]):
    """The attributes of a node or edge, looked up in its record when asked for; copies are plain dicts.

    With a dict each, 100,000 nodes would take another second and 60 MB.
    """

    __slots__ = ("_record",)
    _fields: Mapping[str, Callable[[Any], Any]] = {}

    def __init__(self, record: Any) -> None:
        self._record = record

    def __getitem__(self, key: str) -> Any:
        return self._fields[key](self._record)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return repr(self.copy())

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return dict(self)  # records are not to be copied


class NodeData(_Data):
    """`op_type`, `domain` and `name` of a node."""

    __slots__ = ()
    _fields: Mapping[str, Callable[[NodeRecord], Any]] = {
        "op_type": lambda node: node.op_type,
        "domain": lambda node: node.domain,
        "name": lambda node: node.name,
    }


class EdgeData(_Data):
    """`value` (its id), `name` of the value and `kind` of an edge: "data", "capture" by a body, "control" in a GE dump.

    Further attributes come from inference: `dtype` ("float32", "" where it is unknown), `shape` ("batch,64,56,56", "?"
    where the rank is unknown) and `bytes`, where symbolic dims count as 1; 0 where nothing is known.
    """

    __slots__ = ("_networks",)
    _fields: Mapping[str, Callable[[ValueRecord], Any]] = {
        "value": lambda value: value.id,
        "name": lambda value: value.name,
        "kind": lambda _: "data",
    }
    _facts: Mapping[str, Callable[[Fact], Any]] = {
        "dtype": lambda fact: dtypes.name(fact.elem_type) if isinstance(fact, TensorFact) and fact.elem_type else "",
        "shape": lambda fact: "?" if fact.shape is None else ",".join(map(str, fact.shape)),
        "bytes": lambda fact: _bytes(fact),
    }

    def __init__(self, record: ValueRecord, networks: "Networks") -> None:
        self._record = record
        self._networks = networks

    def __getitem__(self, key: str) -> Any:
        if (look := self._facts.get(key)) is not None:
            return look(self._networks.fact_of(self._record.id))
        if key == "kind" and self._networks.has_control_edges and ge_dump.is_control(self._record.name):
            return "control"
        return self._fields[key](self._record)

    def __iter__(self) -> Iterator[str]:
        return iter([*self._fields, *self._facts])

    def __len__(self) -> int:
        return len(self._fields) + len(self._facts)


def _bytes(fact: Fact) -> int:
    if not isinstance(fact, TensorFact) or fact.shape is None or not fact.elem_type:
        return 0
    elements = math.prod(dim if isinstance(dim, int) else 1 for dim in fact.shape)
    return -(-elements * dtypes.bits(fact.elem_type) // 8)


class CaptureData(EdgeData):
    """The attributes of an edge into a body: those of its value, of kind "capture"."""

    __slots__ = ()
    _fields: Mapping[str, Callable[[ValueRecord], Any]] = {**EdgeData._fields, "kind": lambda _: "capture"}


class Networks:
    """A MultiDiGraph per scope. networkx is imported at the first request (it costs about 100 ms).

    Attributes:
        fact_of: the fact of a value id, for the attributes of edges; no facts unless a caller sets it.
        has_control_edges: whether names of values mark control edges, as in dumps of GE.
    """

    def __init__(self, index: "Index", has_control_edges: bool = False) -> None:
        self.has_control_edges = has_control_edges
        self.fact_of: Callable[[int], Fact] = lambda _: UNKNOWN
        self._index = index
        self._graphs: dict[int, Any] = {}

    def view(self, scope: Scope) -> Any:
        """A frozen view that follows later edits."""
        import networkx as nx

        graph = self._graphs.get(scope.id)
        if graph is None:
            with no_collection():
                graph = self._graphs[scope.id] = self._build(scope)
            if self not in self._index.watchers:
                self._index.watchers.append(self)
        return nx.graphviews.generic_graph_view(graph)

    def _build(self, scope: Scope) -> Any:
        """Fill the dictionaries of a MultiDiGraph; its own methods would take four times as long."""
        import networkx as nx

        index = self._index
        graph = nx.MultiDiGraph()
        for node in scope.node_ids:
            graph._node[node] = NodeData(index.nodes[node])
            graph._succ[node], graph._pred[node] = {}, {}
        nodes, values, successors, predecessors = index.nodes, index.values, graph._succ, graph._pred
        for maker in scope.node_ids:
            after = successors[maker]
            for out_slot, vid in enumerate(nodes[maker].outputs):
                if not vid:
                    continue
                value = values[vid]
                if value.producers[0] != (maker, out_slot):
                    continue
                data = EdgeData(value, self)
                for user, in_slot in index.readers(value) if value.formal_outputs else value.uses:
                    if user in predecessors and user not in after and isinstance(in_slot, int):
                        after[user] = predecessors[user][maker] = {(out_slot, in_slot): data}
                    else:
                        self._link(graph, scope.id, value, user, in_slot)
        return graph

    def _link(self, graph: Any, scope: int, value: ValueRecord, user: int, slot: "Slot") -> None:
        maker, out_slot = value.producers[0]
        consumer, key = self._end(scope, out_slot, user, slot)
        if consumer:
            data = (EdgeData if isinstance(key[1], int) else CaptureData)(value, self)
            edges = graph._succ[maker].setdefault(consumer, {})
            graph._pred[consumer][maker] = edges
            edges[key] = data

    def _end(self, scope: int, out_slot: int, user: int, slot: "Slot") -> tuple[int, tuple[int, Any]]:
        """(consumer, key) of one use, a consumer of 0 where the reader is not below the producer's scope."""
        node = self._index.nodes[user]
        if node.scope == scope:
            return user, (out_slot, slot)
        return self._index.owner_in(node, scope), (out_slot, (user, slot) if isinstance(slot, int) else slot)

    # -- what the index reports -------------------------------------------------------------------------------------

    def node_added(self, node: NodeRecord) -> None:
        """Add the node to its scope's graph, where that was made."""
        if (graph := self._graphs.get(node.scope)) is not None:
            graph._node[node.id] = NodeData(node)
            graph._succ[node.id], graph._pred[node.id] = {}, {}

    def node_removed(self, node: NodeRecord) -> None:
        """Remove the node from its scope's graph, where that was made."""
        if (graph := self._graphs.get(node.scope)) is not None:
            graph.remove_node(node.id)

    def scope_removed(self, scope: int) -> None:
        """Drop the graph of a scope."""
        self._graphs.pop(scope, None)

    def edge_added(self, value: ValueRecord, producer: tuple[int, int], user: int, slot: "Slot") -> None:
        """Add the edge, where its scope's graph was made."""
        scope = self._index.nodes[producer[0]].scope
        if scope in self._graphs:
            self._link(self._graphs[scope], scope, value, user, slot)

    def edge_removed(self, value: ValueRecord, producer: tuple[int, int], user: int, slot: "Slot") -> None:
        """Remove the edge, where its scope's graph was made."""
        scope = self._index.nodes[producer[0]].scope
        if (graph := self._graphs.get(scope)) is not None:
            consumer, key = self._end(scope, producer[1], user, slot)
            if consumer:
                edges = graph._succ[producer[0]][consumer]
                del edges[key]
                if not edges:
                    del graph._succ[producer[0]][consumer], graph._pred[consumer][producer[0]]
