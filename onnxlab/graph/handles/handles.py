"""Handles of nodes and values: names for (ModelGraph, id) that look everything up when asked.

A handle stays valid over edits, undo and redo for as long as its node exists; two handles of one node are equal.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from onnxlab.argument_types import listed
from onnxlab.errors import EditError, NameLookupError
from onnxlab.graph import edits
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.handles.glow_properties import GlowProperties
from onnxlab.graph.handles.node_fields import NodeFields
from onnxlab.graph.handles.value_fields import ValueFields
from onnxlab.printable import printable
from onnxlab.spelling import Spelled

if TYPE_CHECKING:
    pass


class Node(NodeFields):
    """A node of a model: `model.nodes["conv1"]`; it stays valid over edits for as long as the node exists.

    What it is: name, label, op_type, domain, doc_string, metadata, schema, doc, proto, id
    Where it is: scope, position
    What it reads, makes and sets: inputs, outputs, attributes
    Edits: set_input, set_inputs, set_outputs, replace, default_attributes, insert_before, duplicate, move,
        to_initializer, remove; name, op_type, doc_string can be set, attributes and metadata written into.

    Every edit is one undo step, or a part of the open `model.edit`. EditError says why one is refused; then nothing
    changed. `help(Node.replace)` shows a single member.

    Examples:
        >>> node = model.nodes["/block2/conv1/Conv"]
        >>> node.attributes["strides"] = [1, 1]
        >>> print(model.fact(node.outputs[0]))
        float32[batch,16,8,8]
    """

    __slots__ = ()

    @property
    def inputs(self) -> tuple["Value | None", ...]:
        """Values read, by slot; None where an optional input is left out.

        Examples:
            >>> node.inputs
            (<Value 'stem/bn_out'>,)
        """
        return tuple(Value(self._graph, vid) if vid else None for vid in self._record.inputs)

    @property
    def outputs(self) -> tuple["Value | None", ...]:
        """Values made, by slot; None where an optional output is left out.

        Examples:
            >>> node.outputs
            (<Value 'stem/relu_out'>,)
        """
        return tuple(Value(self._graph, vid) if vid else None for vid in self._record.outputs)

    def set_input(self, slot: int, value: "Value | str | None") -> None:
        """Let an input slot read another value.

        Args:
            slot: position among the inputs.
            value: handle or name; None leaves the input out.

        Raises:
            EditError: a cycle would close, the value is not visible there, or the operator needs the input.

        Examples:
            >>> node.set_input(0, "stem/conv_out")
            >>> node.inputs
            (<Value 'stem/conv_out'>,)
        """
        edits.set_input(self._graph, self._record, slot, called(value))

    def set_inputs(self, values: "Sequence[Value | str | None] | Value | str") -> None:
        """Let the node read other values, all at once.

        Args:
            values: handles or names by slot, or a single one; None leaves an optional input out.

        Raises:
            EditError: as `set_input`.

        Examples:
            >>> model.nodes["/block2/Add"].set_inputs(["block2/bn2_out", "block2/bn2_out"])
        """
        edits.set_inputs(self._graph, self._record, [called(value) for value in as_list(values)])

    def set_outputs(self, names: "Sequence[str | None] | str") -> None:
        """Let the node make values of other names; a new name is a new value.

        Args:
            names: names by slot, or a single one; None leaves an optional output out.

        Raises:
            EditError: a value that is still read would have no producer.

        Examples:
            >>> extra = model.add_node("Relu", ["image"], ["a"])
            >>> extra.set_outputs(["b"])
            >>> extra.outputs
            (<Value 'b'>,)
        """
        edits.set_outputs(
            self._graph, self._record, [name or "" for name in ([names] if isinstance(names, str) else names)]
        )

    def insert_before(self, slot: int, op_type: str, *others: "Value | str | None", **attributes: Any) -> "Node":
        """Put a new node on the wire into an input slot.

        Args:
            slot: position among the inputs.
            op_type: the operator of the new node.
            others: inputs of the new node behind the wire's value.
            attributes: attributes of the new node, by name.

        Returns:
            Node: the new node.

        Raises:
            EditError: the slot is empty, or the operator does not fit.

        Examples:
            >>> node.insert_before(0, "Identity")
            <Node 'Identity#2': Identity>
        """
        proto = edits.make_node(self._graph, op_type, **attributes)
        proto.input.extend(["", *map(called, others)])
        return Node(self._graph, edits.insert_on_edge(self._graph, self._record, slot, proto).id)

    def duplicate(self) -> "Node":
        """Copy the node; the copy reads what it reads and makes new values.

        Returns:
            Node: the copy.

        Examples:
            >>> node.duplicate().inputs
            (<Value 'stem/bn_out'>,)
        """
        return Node(self._graph, edits.duplicate_nodes(self._graph, [self._record])[0].id)

    def to_initializer(self) -> "Value":
        """Replace a Constant node by an initializer.

        Returns:
            Value: the value that it made, now stored.

        Raises:
            EditError: the node is no Constant, or makes no tensor.

        Examples:
            >>> constant = model.value("head.minus_one").to_constant()
            >>> constant.to_initializer()
            <Value 'head.minus_one'>
        """
        return Value(self._graph, edits.constant_to_initializer(self._graph, self._record).id)

    def __repr__(self) -> str:
        if self.id not in self._graph.nodes:
            return f"<Node {self.id} (removed)>"
        domain = f"{self.domain}::" if self.domain else ""
        return printable(f"<Node {self.label!r}: {domain}{self.op_type}>")


class Value(ValueFields):
    """A value (tensor, sequence, …) of a model: `model.value("relu1_out")`; it stays valid over edits.

    What it is: name, path, doc_string, metadata, info, initializer, array, id
    Where it is: producer, uses, is_input, is_output
    Edits: set_shape, set_dim, set_dtype, replace_uses, insert_after, to_input, to_initializer, to_constant;
        name, array, doc_string can be set.

    `model.fact(value)` is what inference knows of it, `model.values[name]` its array in the last run. Every edit is one
    undo step, or a part of the open `model.edit`. EditError says why one is refused; then nothing changed.

    Examples:
        >>> value = model.value("stem/relu_out")
        >>> value.producer, len(value.uses)
        (<Node '/stem/relu/Relu': Relu>, 2)
    """

    __slots__ = ()

    @property
    def producer(self) -> Node | None:
        """The node that makes it, None for an input or initializer.

        Examples:
            >>> value.producer
            <Node '/stem/relu/Relu': Relu>
        """
        producer = self._record.producer
        return Node(self._graph, producer[0]) if producer else None

    @property
    def uses(self) -> tuple[tuple[Node, int], ...]:
        """Every reader with its input slot, in file order.

        Examples:
            >>> value.uses
            ((<Node '/block1/conv1/Conv': Conv>, 0), (<Node '/block1/Add': Add>, 1))
        """
        nodes = self._graph.nodes
        ordered = sorted(self._record.uses, key=lambda use: (nodes[use[0]].scope, nodes[use[0]].label, use[1]))
        return tuple((Node(self._graph, node), slot) for node, slot in ordered)

    @property
    def glow(self) -> GlowProperties:
        """Properties that Glow's dialect keeps in the doc string, live: writing into them is an edit.

        Examples:
            >>> value.glow["layout"] = "NHWC"
            >>> value.glow
            {'layout': 'NHWC'}
        """

        def write(doc: str) -> None:
            self.doc_string = doc

        return GlowProperties(lambda: self.doc_string, write)

    def replace_uses(self, other: "Value | str", readers: "Sequence[Node] | None" = None) -> None:
        """Let the nodes that read this value read another one.

        Args:
            other: handle or name of the value to read instead.
            readers: the nodes to change; None: all.

        Raises:
            EditError: a cycle would close, or the value is not visible to a reader.

        Examples:
            >>> value.replace_uses("stem/bn_out")
            >>> value.uses
            ()
        """
        graph = self._graph
        replacement = other.id if isinstance(other, Value) else graph.resolve_value(other)
        chosen = None if readers is None else [node._record for node in readers]
        edits.redirect(graph, self._record, graph.values[replacement], chosen)

    def insert_after(self, op_type: str, *others: "Value | str | None", **attributes: Any) -> Node:
        """Put a new node behind this value: all that read it read the node's output.

        An output of the graph keeps its name, and this value gets a new one.

        Args:
            op_type: the operator of the new node.
            others: its inputs behind this value.
            attributes: attributes of the new node, by name.

        Returns:
            Node: the new node.

        Raises:
            EditError: the operator does not fit.

        Examples:
            >>> value.insert_after("Clip", None, None).inputs[0]
            <Value 'stem/relu_out'>
        """
        proto = edits.make_node(self._graph, op_type, **attributes)
        proto.input.extend(["", *map(called, others)])
        return Node(self._graph, edits.insert_after(self._graph, self._record, proto).id)

    def to_constant(self) -> Node:
        """Replace an initializer by a Constant node.

        Returns:
            Node: the Constant.

        Raises:
            EditError: the value is no initializer.

        Examples:
            >>> model.value("head.minus_one").to_constant().op_type
            'Constant'
        """
        return Node(self._graph, edits.initializer_to_constant(self._graph, self._record).id)

    def __repr__(self) -> str:
        return f"<Value {self.path!r}>" if self.id in self._graph.values else f"<Value {self.id} (removed)>"


def called(value: "Value | str | None") -> str:
    """The name of a value that is given as a handle or name; "" for None.

    Raises:
        EditError: `value` is neither.
    """
    if isinstance(value, Value):
        return value.name
    if value is not None and not isinstance(value, str):
        raise EditError(f"values are given as names or handles, got {value!r}")
    return value or ""


def as_list(items: "Iterable[Value | str | None] | Value | str") -> "list[Value | str | None]":
    """Values, or a single one, in a list."""
    return [items] if isinstance(items, str | Value) else listed(items, "inputs", "names or handles of values")


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
