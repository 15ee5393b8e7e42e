"""Nodes that each application takes out of a graph and brings, read from the changes of the edit it is part of."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from onnxlab.graph.edit.changes import InsertNode, RemoveNode, SetAttribute, SetInputs
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.handles.handles import Node
from onnxlab.graph.index.records import NodeImage, NodeRecord
from onnxlab.transforms.receipt import Application


@dataclass(frozen=True, slots=True)
class RewriteTrace:
    """Ids of the nodes of one application.

    Attributes:
        removed: ids of removed nodes, the outermost first.
        inserted: ids of inserted nodes.
        changed: ids of nodes that read other values, or have another attribute.
    """

    removed: tuple[int, ...]
    inserted: tuple[int, ...]
    changed: tuple[int, ...]


def _inside(image: NodeImage) -> Iterator[int]:
    """A node that was taken out, and those in its bodies."""
    yield image.id
    for scopes in image.bodies.values():
        for scope in scopes:
            for node in scope.nodes:
                yield from _inside(node)


class Traces:
    """The traces of the applications of one rewrite, in their order.

    Args:
        graph: the model, in an open edit; its nodes at this time are those of before the rewrite.
    """

    def __init__(self, graph: ModelGraph) -> None:
        self._graph = graph
        self._newest = graph.index.newest_id
        self._traces: list[RewriteTrace] = []
        self._read = len(self._inverses())

    def _inverses(self) -> Sequence[object]:
        return self._graph.transaction.inverses if self._graph.transaction is not None else ()

    def note(self) -> None:
        """Record the changes since the previous application as the trace of this one."""
        inverses = self._inverses()
        news, self._read = inverses[self._read :], len(inverses)
        images = [undo.image for undo in news if isinstance(undo, InsertNode) and undo.image is not None]
        removed = [ident for image in images for ident in _inside(image)]
        inserted = [undo.node for undo in news if isinstance(undo, RemoveNode)]
        changed = [undo.node for undo in news if isinstance(undo, SetInputs | SetAttribute)]
        self._traces.append(RewriteTrace(tuple(removed), tuple(inserted), tuple(dict.fromkeys(changed))))

    def _makes(self, node: int, value: str) -> bool:
        return node in self._graph.nodes and value in self._graph.nodes[node].proto.output

    def _around(self, name: str) -> list[int]:
        """The node that makes a value of the main graph, and those that read it."""
        value = self._graph.values.get(self._graph.main.names.get(name, 0))
        return [] if value is None else [ident for ident, _ in (*value.producers, *value.uses)]

    def _with_bodies(self, node: NodeRecord) -> Iterator[NodeRecord]:
        yield node
        for scopes in node.bodies.values():
            for scope in scopes:
                for ident in self._graph.scopes[scope].node_ids:
                    yield from self._with_bodies(self._graph.nodes[ident])

    def told(self, applied: Sequence[Application]) -> list[Application]:
        """The applications with their nodes, at the end of the rewrite, without nodes that came and went again."""
        nodes = self._graph.nodes
        places: dict[int, int] = {}  # by inserted node: the node of before that it replaces
        applications = []
        for application, trace in zip(applied, self._traces, strict=True):
            removed = [ident for ident in trace.removed if ident <= self._newest]
            changed = sorted(trace.changed, key=lambda ident: not self._makes(ident, application.value))
            candidates = [places.get(ident, ident) for ident in (*removed, *trace.removed, *changed)]
            candidates += self._around(application.value)
            place = next((ident for ident in candidates if ident <= self._newest), 0)
            places.update(dict.fromkeys(trace.inserted, place or self._newest + 1))
            came = [node for ident in trace.inserted if ident in nodes for node in self._with_bodies(nodes[ident])]
            applications.append(
                replace(
                    application,
                    taken=tuple(Node(self._graph, ident) for ident in removed),
                    given=tuple(node.op_type for node in came),
                    at=Node(self._graph, place) if place else None,
                )
            )
        return applications
