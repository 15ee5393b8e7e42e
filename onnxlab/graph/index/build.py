"""A graph or function read into the index at once: the loops over 100,000 nodes that opening a model consists of.

While the names of a new scope are declared, no node reads any of them yet: a name is one dictionary entry, and the
updates of readers in `bindings.py` are not needed. Repeated fields are copied by slices, since iterating over such a
field takes three times as long.
"""

from typing import Any

from onnxlab.graph.index.bindings import Bindings
from onnxlab.graph.index.file_order import FileOrder
from onnxlab.graph.index.order_labels import spread
from onnxlab.graph.index.records import (
    GRAPH_KINDS,
    NO_BODIES,
    NodeImage,
    NodeRecord,
    Scope,
    ScopeImage,
    ScopeKind,
    ValueRecord,
)
from onnxlab.graph.protos.renaming import graphs_of


class Builder(Bindings):
    """Adds whole scopes, bodies included."""

    def add_scope(
        self, kind: ScopeKind, proto: Any, owner: int = 0, attribute: str = "", parent: int = 0,
        image: ScopeImage | None = None,
    ) -> Scope:  # fmt: skip
        """Index a graph or function and all that is in it, with the ids it had before if there is an image of it."""
        scope = Scope(image.id if image else self.new_id(), kind, proto, owner, attribute, parent)
        self.scopes[scope.id] = scope
        ids = image.values if image else {}
        self._declare_inputs(scope, ids)
        self._declare_initializers(scope, ids)
        nodes = self._declare_nodes(scope, image, ids)
        self._declare_types(scope)
        self._bind_nodes(scope, nodes, ids, image)
        self._bind_outputs(scope, ids)
        return scope

    def _declared(self, scope: Scope, name: str, ids: dict[str, int]) -> ValueRecord:
        vid = scope.names.get(name)
        return self.values[vid] if vid else self._new_value(scope, name, ids.get(name, 0))

    def _declare_inputs(self, scope: Scope, ids: dict[str, int]) -> None:
        for info in scope.proto.input[:]:
            value = self._declared(scope, info if scope.is_function else info.name, ids)
            value.is_input = True
            if value.info is None and not scope.is_function:
                value.info = info
            scope.inputs.append(value.id)

    def _declare_initializers(self, scope: Scope, ids: dict[str, int]) -> None:
        if scope.is_function:
            return
        values, names, scope_id, record, unread = self.values, scope.names, scope.id, self.value_type, self._unread
        for tensor in scope.proto.initializer[:]:
            name = tensor.name
            if vid := names.get(name, 0):
                values[vid].initializer = tensor
            elif ids:
                self._declared(scope, name, ids).initializer = tensor
            else:
                self._last_id = vid = self._last_id + 1
                values[vid] = record(vid, name, scope_id, [], unread(), (), False, tensor)
                names[name] = vid
        for sparse in scope.proto.sparse_initializer[:]:
            self._declared(scope, sparse.values.name, ids).initializer = sparse

    def _declare_nodes(self, scope: Scope, image: ScopeImage | None, ids: dict[str, int]) -> list[NodeRecord]:
        """First pass: every node and the names it makes, so that the second can resolve names in any order."""
        protos = scope.proto.node[:]
        labels = spread(len(protos))
        records, record, unread = [], self.value_type, self._unread
        values, names, scope_id = self.values, scope.names, scope.id
        for number, proto in enumerate(protos):
            outputs: list[int] = []
            ident = image.nodes[number].id if image else self.new_id()
            records.append(NodeRecord(ident, scope_id, proto, labels[number], [], outputs, NO_BODIES))
            for slot, name in enumerate(proto.output[:]):
                if not name:
                    outputs.append(0)
                elif name in names or ids:
                    value = self._declared(scope, name, ids)
                    value.producers.append((ident, slot))
                    outputs.append(value.id)
                else:
                    self._last_id = vid = self._last_id + 1
                    values[vid] = record(vid, name, scope_id, [(ident, slot)], unread(), ())
                    names[name] = vid
                    outputs.append(vid)
        idents = [record.id for record in records]
        scope.node_ids = FileOrder(idents, labels)
        self.nodes.update(zip(idents, records, strict=True))
        return records

    def _declare_types(self, scope: Scope) -> None:
        """Types of graph outputs, then of value_info; the first of several declarations counts."""
        proto, names, values = scope.proto, scope.names, self.values
        for info in proto.value_info[:] if scope.is_function else [*proto.output, *proto.value_info]:
            vid = names.get(info.name)
            if vid and (value := values[vid]).info is None:
                value.info = info

    def _bind_nodes(self, scope: Scope, nodes: list[NodeRecord], ids: dict[str, int], image: ScopeImage | None) -> None:
        """Second pass: what each node reads, in its bodies too."""
        values, names, records = self.values, scope.names, self.nodes
        for number, node in enumerate(nodes):
            ident, proto, inputs = node.id, node.proto, node.inputs
            for slot, name in enumerate(proto.input[:]):
                if not name:
                    inputs.append(0)
                elif vid := names.get(name):
                    value = values[vid]
                    value.uses[ident, slot] = None
                    inputs.append(vid)
                    if (image or vid > ident) and value.producers:  # without an image, ids show which node comes later
                        self._note_edge(records[value.producers[0][0]], node)
                else:
                    value = self.value_for_reading(scope, name, ids)
                    inputs.append(value.id)
                    self._connect(value, ident, slot)
            if proto.attribute:
                self._bind_bodies(node, image.nodes[number] if image else None)

    def _bind_bodies(self, node: NodeRecord, image: NodeImage | None) -> None:
        for attribute in node.proto.attribute[:]:
            if attribute.type in GRAPH_KINDS:
                self.add_bodies(node, attribute, image.bodies.get(attribute.name) if image else None)

    def add_bodies(
        self, node: NodeRecord, attribute: Any, images: list[ScopeImage] | None = None, start: int | None = None
    ) -> None:
        """Index the graphs of a GRAPH or GRAPHS attribute that the node now has.

        `start` is the position of the new graphs among the node's, where several attributes have this name.
        """
        bodies = [
            self.add_scope("subgraph", graph, node.id, attribute.name, node.scope, images[at] if images else None).id
            for at, graph in enumerate(graphs_of(attribute))
        ]
        if not bodies:
            return
        before = list(node.bodies.get(attribute.name, ()))
        cut = len(before) if start is None else start
        node.bodies = {**node.bodies, attribute.name: [*before[:cut], *bodies, *before[cut:]]}

    def _bind_outputs(self, scope: Scope, ids: dict[str, int]) -> None:
        returned: dict[int, list[int]] = {}
        for position, info in enumerate(scope.proto.output[:]):
            value = self.value_for_reading(scope, info if scope.is_function else info.name, ids)
            scope.outputs.append(value.id)
            returned.setdefault(value.id, []).append(position)
        for vid, positions in returned.items():
            self._returned(self.values[vid], scope.id, tuple(positions))
