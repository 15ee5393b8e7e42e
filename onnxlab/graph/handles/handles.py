"""Handles of nodes and values: names for (ModelGraph, id) that look everything up when asked.

A handle stays valid over edits, undo and redo for as long as its node exists; two handles of one node are equal.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import onnx

from onnxlab import schemas
from onnxlab.errors import EditError, NameLookupError, OnnxlabError
from onnxlab.graph import edits
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.metadata import description
from onnxlab.graph.handles.glow_properties import GlowProperties
from onnxlab.graph.handles.node_attributes import Attributes
from onnxlab.graph.handles.properties import Metadata
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.printable import printable
from onnxlab.short_help import ShortHelp
from onnxlab.spelling import Spelled

if TYPE_CHECKING:
    import numpy as np


class _Handle(Spelled, metaclass=ShortHelp):
    """(graph, id); equal and hashable by both."""

    __slots__ = ("_graph", "id")

    _graph: ModelGraph
    id: int

    def __init__(self, graph: ModelGraph, ident: int) -> None:
        _set_graph(self, graph)
        _set_id(self, ident)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Handle) and (type(other), other._graph, other.id) == (
            type(self),
            self._graph,
            self.id,
        )

    def __hash__(self) -> int:
        return hash((id(self._graph), self.id))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # it says where something is, as a path does

    def __reduce__(self) -> Any:
        raise OnnxlabError(
            f"a {type(self).__name__} cannot be pickled: it is a place in its model; pickle the Model, or its `proto`"
        )


# without the look at the name that `Spelled` takes: a handle is made for each node that is gone over
_set_graph = vars(_Handle)["_graph"].__set__
_set_id = vars(_Handle)["id"].__set__


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
    def attributes(self) -> Attributes:
        """The attributes that the node sets, live: `node.attributes["strides"] = [1, 1]` is an edit."""
        return Attributes(self)

    @property
    def inputs(self) -> tuple["Value | None", ...]:
        """Values read, by slot; None where an optional input is left out."""
        return tuple(Value(self._graph, vid) if vid else None for vid in self._record.inputs)

    @property
    def outputs(self) -> tuple["Value | None", ...]:
        """Values made, by slot; None where an optional output is left out."""
        return tuple(Value(self._graph, vid) if vid else None for vid in self._record.outputs)

    @property
    def doc_string(self) -> str:
        """The model's text about this node (its operator's documentation is `doc`). Setting it is an edit."""
        return str(self._record.proto.doc_string)

    @doc_string.setter
    def doc_string(self, text: str) -> None:
        edits.set_doc_string(self._graph, self._record, text)

    @property
    def metadata(self) -> Metadata:
        """metadata_props, live."""
        return Metadata(self._graph, lambda: self._record)

    def default_attributes(self, explicit: bool = False) -> None:
        """Take away every attribute that says what its default says; with `explicit` write the defaults out instead."""
        edits.default_attributes(self._graph, self._record, explicit)

    def set_input(self, slot: int, value: "Value | str | None") -> None:
        """Let an input slot read another value (a handle or name); None leaves it out."""
        edits.set_input(self._graph, self._record, slot, called(value))

    def set_inputs(self, values: "Sequence[Value | str | None]") -> None:
        """Let the node read these values, by slot; None leaves an optional input out."""
        edits.set_inputs(self._graph, self._record, [called(value) for value in values])

    def set_outputs(self, names: "Sequence[str | None]") -> None:
        """Let the node make values of these names, by slot; a new name is a new value."""
        edits.set_outputs(self._graph, self._record, [name or "" for name in names])

    def replace(self, op_type: str, domain: str | None = None, **attributes: Any) -> None:
        """Make the node another operator with the same wires; attributes that it knows too survive."""
        edits.set_operator(self._graph, self._record, op_type, domain, attributes)

    def insert_before(self, slot: int, op_type: str, *others: "Value | str | None", **attributes: Any) -> "Node":
        """Put a new node on the wire into an input slot; `others` are its inputs behind the wire's value."""
        proto = edits.make_node(self._graph, op_type, **attributes)
        proto.input.extend(["", *map(called, others)])
        return Node(self._graph, edits.insert_on_edge(self._graph, self._record, slot, proto).id)

    def duplicate(self) -> "Node":
        """Copy the node; the copy reads what it reads and makes new values."""
        return Node(self._graph, edits.duplicate_nodes(self._graph, [self._record])[0].id)

    def move(self, position: int) -> None:
        """Put the node at another place of the file order."""
        edits.move_node(self._graph, self._record, position)

    def to_initializer(self) -> "Value":
        """Replace a Constant node by an initializer."""
        return Value(self._graph, edits.constant_to_initializer(self._graph, self._record).id)

    def remove(self, bypass: bool = False) -> None:
        """Remove the node; with `bypass` the readers of its output read its first input instead."""
        edits.remove_nodes(self._graph, [self._record], bypass)

    def __repr__(self) -> str:
        if self.id not in self._graph.nodes:
            return f"<Node {self.id} (removed)>"
        domain = f"{self.domain}::" if self.domain else ""
        return printable(f"<Node {self.label!r}: {domain}{self.op_type}>")


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
        """Whether the value is an input of its graph."""
        return self._record.is_input

    @property
    def is_output(self) -> bool:
        """Whether the value is an output of its graph."""
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

    @property
    def doc_string(self) -> str:
        """The model's text about this value. Setting it is an edit."""
        described = description(self._record)
        return str(described.doc_string) if described is not None else ""

    @doc_string.setter
    def doc_string(self, text: str) -> None:
        edits.set_doc_string(self._graph, self._record, text)

    @property
    def metadata(self) -> Metadata:
        """metadata_props of the value's declaration, or of an initializer's tensor where nothing declares it; live."""
        return Metadata(self._graph, lambda: self._record)

    @property
    def glow(self) -> GlowProperties:
        """What Glow's dialect says in the doc string: `value.glow["layout"] = "NHWC"` is an edit; live."""

        def write(doc: str) -> None:
            self.doc_string = doc

        return GlowProperties(lambda: self.doc_string, write)

    def set_shape(self, shape: Sequence[int | str | None]) -> None:
        """Declare the shape of a graph input or output: integers, names for dynamic dims, None for unknown."""
        edits.set_shape(self._graph, self._record, shape)

    def set_dim(self, axis: int, dim: int | str | None) -> None:
        """Change one declared dim of a graph input or output; a name makes it dynamic."""
        edits.set_dim(self._graph, self._record, axis, dim)

    def set_dtype(self, dtype: Any) -> None:
        """Declare the element type of a graph input or output: "float16", a NumPy dtype or a DataType."""
        edits.set_dtype(self._graph, self._record, dtype)

    def replace_uses(self, other: "Value | str", readers: "Sequence[Node] | None" = None) -> None:
        """Let all nodes that read this value, or only those given, read another one."""
        graph = self._graph
        found = other.id if isinstance(other, Value) else graph.resolve_value(other)
        chosen = None if readers is None else [node._record for node in readers]
        edits.redirect(graph, self._record, graph.values[found], chosen)

    def insert_after(self, op_type: str, *others: "Value | str | None", **attributes: Any) -> Node:
        """Put a new node behind this value: all that read it read the node's output; `others` are its further inputs.

        An output of the graph keeps its name, and this value gets a new one.
        """
        proto = edits.make_node(self._graph, op_type, **attributes)
        proto.input.extend(["", *map(called, others)])
        return Node(self._graph, edits.insert_after(self._graph, self._record, proto).id)

    def to_input(self, keep_default: bool = False) -> None:
        """Make an initializer a graph input; with `keep_default` its data stays as the default."""
        edits.initializer_to_input(self._graph, self._record, keep_default)

    def to_initializer(self, array: Any = None) -> None:
        """Store an array in the place of a graph input; None takes the default that it has."""
        edits.input_to_initializer(self._graph, self._record, array)

    def to_constant(self) -> Node:
        """Replace an initializer by a Constant node."""
        return Node(self._graph, edits.initializer_to_constant(self._graph, self._record).id)

    def __repr__(self) -> str:
        return f"<Value {self.path!r}>" if self.id in self._graph.values else f"<Value {self.id} (removed)>"


def called(value: "Value | str | None") -> str:
    """The name of a value that is given as a handle or name; "" for None.

    Raises:
        EditError: it is neither.
    """
    if isinstance(value, Value):
        return value.name
    if value is not None and not isinstance(value, str):
        raise EditError(f"values are given as names or handles, got {value!r}")
    return value or ""


class Nodes(Spelled, Sequence[Node]):
    """The nodes of the main graph in file order; also looked up by name or output: `model.nodes["conv1"]`."""

    __slots__ = ("_graph",)

    def __init__(self, graph: ModelGraph) -> None:
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
