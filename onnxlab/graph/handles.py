"""What users hold of a node or value: a name for (ModelGraph, id) that looks everything up when asked.

A handle stays valid over edits, undo and redo for as long as its node exists; two handles of one node are equal.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx

from onnxlab import schemas
from onnxlab.errors import NameLookupError
from onnxlab.graph import edits
from onnxlab.graph.attributes import BodyRef, decode
from onnxlab.graph.index import GRAPH_KINDS
from onnxlab.graph.records import NodeRecord, ValueRecord

if TYPE_CHECKING:
    import numpy as np

    from onnxlab.graph.modelgraph import ModelGraph


class _Handle:
    """(graph, id); equal and hashable by both."""

    __slots__ = ("_graph", "id")

    def __init__(self, graph: "ModelGraph", ident: int) -> None:
        self._graph = graph
        self.id = ident

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Handle) and (type(other), other._graph, other.id) == (
            type(self),
            self._graph,
            self.id,
        )

    def __hash__(self) -> int:
        return hash((id(self._graph), self.id))


class Node(_Handle):
    """A node of a model."""

    __slots__ = ()

    @property
    def _record(self) -> NodeRecord:
        try:
            return self._graph.nodes[self.id]
        except KeyError:
            raise NameLookupError(
                f"node {self.id} is not in the model any more (removed, or its creation undone)"
            ) from None

    @property
    def name(self) -> str:
        """The node's name, often "". Setting it renames the node."""
        return self._record.name

    @name.setter
    def name(self, name: str) -> None:
        edits.rename_node(self._graph, self._record, name)

    @property
    def label(self) -> str:
        """The name, or operator and position ("Conv#12") for a node without one."""
        return self._graph.label(self._record)

    @property
    def op_type(self) -> str:
        """The operator. Setting it keeps wires, and those attributes that the new operator knows."""
        return self._record.op_type

    @op_type.setter
    def op_type(self, op_type: str) -> None:
        edits.set_operator(self._graph, self._record, op_type)

    @property
    def domain(self) -> str:
        """The operator's domain, "" for ai.onnx."""
        return self._record.domain

    @property
    def proto(self) -> onnx.NodeProto:
        """The live NodeProto: read it freely, change it through the model."""
        return self._record.proto

    @property
    def position(self) -> int:
        """Index in the file order of its graph."""
        return self._graph.scopes[self._record.scope].position(self._record)

    @property
    def scope(self) -> str:
        """Path of the scope it is in, "" for the main graph."""
        return self._graph.scope_path(self._graph.scopes[self._record.scope])

    @property
    def schema(self) -> schemas.Schema | None:
        """The operator's schema at the imported opset version, None for an unknown operator."""
        return self._graph.schema(self._record)

    @property
    def doc(self) -> str:
        """The operator's documentation, "" for an unknown operator."""
        schema = self.schema
        return schema.doc if schema else ""

    @property
    def attributes(self) -> "Attributes":
        return Attributes(self)

    @property
    def inputs(self) -> tuple["Value | None", ...]:
        """Values read, by slot; None where an optional input is left out."""
        return tuple(Value(self._graph, vid) if vid else None for vid in self._record.inputs)

    @property
    def outputs(self) -> tuple["Value | None", ...]:
        """Values made, by slot; None where an optional output is left out."""
        return tuple(Value(self._graph, vid) if vid else None for vid in self._record.outputs)

    def set_input(self, slot: int, value: "Value | str | None") -> None:
        """Let an input slot read another value (a handle or name); None leaves it out."""
        name = value.name if isinstance(value, Value) else value or ""
        edits.set_input(self._graph, self._record, slot, name)

    def remove(self, bypass: bool = False) -> None:
        """Remove the node; with `bypass` the readers of its output read its first input instead."""
        edits.remove_nodes(self._graph, [self._record], bypass)

    def __repr__(self) -> str:
        if self.id not in self._graph.nodes:
            return f"<Node {self.id} (removed)>"
        domain = f"{self.domain}::" if self.domain else ""
        return f"<Node {self.label!r}: {domain}{self.op_type}>"


class Value(_Handle):
    """A value (tensor, sequence, …) of a model."""

    __slots__ = ()

    @property
    def _record(self) -> ValueRecord:
        try:
            return self._graph.values[self.id]
        except KeyError:
            raise NameLookupError(f"value {self.id} is not in the model any more") from None

    @property
    def name(self) -> str:
        """The value's name. Setting it renames the value everywhere."""
        return self._record.name

    @name.setter
    def name(self, name: str) -> None:
        edits.rename_value(self._graph, self._record, name)

    @property
    def path(self) -> str:
        """The name with the path of its scope in front of it: unique in the model."""
        path = self._graph.scope_path(self._graph.scopes[self._record.scope])
        return f"{path}/{self.name}" if path else self.name

    @property
    def producer(self) -> Node | None:
        """The node that makes it, None for an input or initializer."""
        made = self._record.producer
        return Node(self._graph, made[0]) if made else None

    @property
    def uses(self) -> tuple[tuple[Node, int], ...]:
        """(node, input slot) of every reader, in file order."""
        nodes = self._graph.nodes
        ordered = sorted(self._record.uses, key=lambda use: (nodes[use[0]].scope, nodes[use[0]].label, use[1]))
        return tuple((Node(self._graph, node), slot) for node, slot in ordered)

    @property
    def is_input(self) -> bool:
        return self._record.is_input

    @property
    def is_output(self) -> bool:
        return self._record.is_output

    @property
    def initializer(self) -> "onnx.TensorProto | onnx.SparseTensorProto | None":
        """The live proto of an initializer; `array` has its data."""
        return self._record.initializer  # type: ignore[no-any-return]

    @property
    def array(self) -> "np.ndarray[Any, Any] | None":
        """Data of an initializer, read-only. Setting it replaces the data."""
        return self._graph.array(self.id)

    @array.setter
    def array(self, array: Any) -> None:
        edits.set_initializer(self._graph, self._record, array)

    @property
    def info(self) -> onnx.ValueInfoProto | None:
        """The live declaration of its type, if the model has one."""
        return self._record.info

    def set_shape(self, shape: Sequence[int | str | None]) -> None:
        """Declare the shape of a graph input or output: integers, names for dynamic dims, None for unknown."""
        edits.set_shape(self._graph, self._record, shape)

    def __repr__(self) -> str:
        return f"<Value {self.path!r}>" if self.id in self._graph.values else f"<Value {self.id} (removed)>"


class Attributes(MutableMapping[str, Any]):
    """The attributes that a node sets, live: `node.attributes["strides"] = [1, 1]` is an edit.

    Iteration and `len` see only what is set; reading what is not gives the operator's default, if it has one.
    """

    def __init__(self, node: Node) -> None:
        self._node = node

    def __getitem__(self, name: str) -> Any:
        record = self._node._record
        for attribute in record.proto.attribute:
            if attribute.name == name:
                if attribute.type in GRAPH_KINDS:
                    refs = [BodyRef(body) for body in record.bodies[name]]
                    return refs[0] if attribute.type == onnx.AttributeProto.GRAPH else refs
                return decode(attribute)
        spec = self._schemas().get(name)
        if spec is None or spec.default is None:
            known = ", ".join([*self, *(other for other in self._schemas() if other not in set(self))]) or "none"
            raise KeyError(f"{self._node.label} sets no attribute {name!r} and it has no default; known: {known}")
        return spec.default

    def __setitem__(self, name: str, value: Any) -> None:
        edits.set_attribute(self._node._graph, self._node._record, name, value)

    def __delitem__(self, name: str) -> None:
        if name not in set(self):
            raise KeyError(f"{self._node.label} does not set {name!r}")
        edits.clear_attribute(self._node._graph, self._node._record, name)

    def __iter__(self) -> Iterator[str]:
        return iter([attribute.name for attribute in self._node._record.proto.attribute])

    def __len__(self) -> int:
        return len(self._node._record.proto.attribute)

    def __contains__(self, name: object) -> bool:
        return any(attribute.name == name for attribute in self._node._record.proto.attribute)

    def __repr__(self) -> str:
        return repr({name: self[name] for name in self})

    def _schemas(self) -> Any:
        schema = self._node.schema
        return schema.attributes if schema else {}


class Nodes(Sequence[Node]):
    """The nodes of the main graph in file order; also looked up by name or output: `model.nodes["conv1"]`."""

    def __init__(self, graph: "ModelGraph") -> None:
        self._graph = graph

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return [Node(self._graph, node) for node in self._graph.main.node_ids[key]]
        return Node(self._graph, self._graph.resolve_node(key))

    def __len__(self) -> int:
        return len(self._graph.main.node_ids)

    def __iter__(self) -> Iterator[Node]:
        """Goes over the nodes that there are now, whatever happens to the model meanwhile."""
        return iter([Node(self._graph, node) for node in self._graph.main.node_ids])

    def __contains__(self, key: object) -> bool:
        if isinstance(key, Node):
            return key._graph is self._graph and key.id in self._graph.nodes
        try:
            return bool(self._graph.resolve_node(key))  # type: ignore[arg-type]
        except NameLookupError:
            return False

    def __repr__(self) -> str:
        return f"<{len(self)} nodes>"
