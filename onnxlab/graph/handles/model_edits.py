"""The edits that a Model offers, by names and handles: each a thin call of `graph.edits`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import onnx

from onnxlab.errors import EditError, NameLookupError
from onnxlab.graph import edits
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.connecting import Refusal
from onnxlab.graph.handles.handles import Node, Value, called
from onnxlab.graph.handles.properties import Metadata, Opsets
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.protos.value_info import declare
from onnxlab.graph.query.queries import FactOf
from onnxlab.shapes import UNKNOWN
from onnxlab.spelling import Spelled

NodeKey = int | str | Node
"""Position, name, output or path of a node, or its handle."""

NodeKeys = NodeKey | Iterable[NodeKey]
"""One node or several."""

ValueKey = str | Value
"""Name or path of a value, or its handle."""

ValueKeys = ValueKey | Iterable[ValueKey]
"""One value or several."""

Handle = TypeVar("Handle", Node, Value)


class Editing(Spelled):
    """What can be done to a model. Every method is one undo step, or part of the open `edit`.

    Nodes are given as a position in file order, a name, the name of an output, a path into a body, or a handle; values
    as a name, path or handle. All raise EditError, with what to do, where an edit is refused; then nothing changed.
    """

    __slots__ = ()

    graph: ModelGraph

    def _node_record(self, key: NodeKey | Value) -> NodeRecord:
        """The record of what a user calls a node; NameLookupError for a value, or what is not in the model."""
        if isinstance(key, Node):
            return self._own(key)._record
        if isinstance(key, Value):
            raise NameLookupError(f"{key!r} is a value, not a node; its producer and uses are nodes")
        return self.graph.nodes[self.graph.resolve_node(key)]

    def _node_records(self, keys: NodeKeys) -> list[NodeRecord]:
        """The records of several nodes, or of one."""
        several = [keys] if isinstance(keys, int | str | Node) else keys
        return [self._node_record(key) for key in several]

    def _value_record(self, key: ValueKey | Node) -> ValueRecord:
        """The record of what a user calls a value; NameLookupError for a node, or what is not in the model."""
        if isinstance(key, Value):
            return self._own(key)._record
        if isinstance(key, Node):
            raise NameLookupError(f"{key!r} is a node, not a value; its inputs and outputs are values")
        return self.graph.values[self.graph.resolve_value(key)]

    def _value_records(self, keys: ValueKeys) -> list[ValueRecord]:
        """The records of several values, or of one."""
        several = [keys] if isinstance(keys, str | Value) else keys
        return [self._value_record(key) for key in several]

    def _own(self, handle: Handle) -> Handle:
        """A handle, if it is one of this model."""
        if handle._graph is not self.graph:
            raise NameLookupError(f"{handle!r} belongs to another model; look it up by name in this one")
        return handle

    def _scope_record(self, path: str) -> Scope:
        """The scope at a path: "" for the main graph, "if_3/then_branch", "domain::name" of a function.

        Where several nodes have a name, "If#3/then_branch" tells which, by its position.

        Raises:
            NameLookupError: there is none; the message lists what there is.
        """
        return self.graph.names.find_scope(path)

    def node_at(self, scope: str, position: int) -> Node:
        """The node at a position of the scope at a path, whatever it is called."""
        return Node(self.graph, self._scope_record(scope).node_ids[position])

    def value_at(self, scope: str, name: str) -> Value:
        """The value of a name that the scope at a path defines."""
        return Value(self.graph, self._scope_record(scope).names[name])

    def _type_refusal(self, value: ValueRecord, node: NodeRecord, slot: int) -> str | None:
        """Why types forbid a wire; a Model asks its inference."""
        return None

    # -- nodes and wires --------------------------------------------------------------------------------------------

    def add_node(
        self,
        op_type: str,
        inputs: Sequence[ValueKey | None],
        outputs: Sequence[str] | None = None,
        name: str = "",
        domain: str = "",
        *,
        scope: str = "",
        position: int | None = None,
        **attributes: Any,
    ) -> Node:
        """Add a node to the main graph or the scope at a path, behind what makes its inputs or at a position.

        Args:
            inputs: values by slot, as names or handles; None leaves an optional one out.
            outputs: names of the values that it makes; None: fresh ones for the outputs that the operator must have.
            attributes: typed by the operator's schema.
        """
        where = self._scope_record(scope)
        proto = edits.make_node(self.graph, op_type, domain, **attributes)
        proto.input.extend(called(value) for value in inputs)
        if name:
            proto.name = name
        proto.output.extend(edits.output_names(self.graph, proto, where) if outputs is None else outputs)
        with self.graph.lock:
            edits.check_operator(self.graph, proto, where)
            return Node(self.graph, edits.add_node(self.graph, proto, where, position).id)

    def insert_node(self, proto: onnx.NodeProto, position: int, *, scope: str = "") -> Node:
        """Put a node at a position just as it is; inside an `edit` what it reads may follow later."""
        where = self._scope_record(scope)
        return Node(self.graph, edits.insert_node(self.graph, proto, where, position).id)

    def remove(self, nodes: NodeKeys, bypass: bool = False) -> None:
        """Remove nodes as one step; with `bypass` the readers of each node's output read its first input instead."""
        edits.remove_nodes(self.graph, self._node_records(nodes), bypass)

    def duplicate(self, nodes: NodeKeys) -> list[Node]:
        """Copy nodes, bodies and all; copies read each other where the nodes do, and make new values."""
        copies = edits.duplicate_nodes(self.graph, self._node_records(nodes))
        return [Node(self.graph, node.id) for node in copies]

    def can_connect(self, value: ValueKey, node: NodeKey, slot: int) -> str | None:
        """The reason why a node must not read a value in an input slot, as a sentence; None where it may.

        Cycles, visibility, the number of inputs and the types that the operator takes are checked.
        """
        types: Refusal = self._type_refusal
        return edits.can_connect(self.graph, self._value_record(value), self._node_record(node), slot, types)

    def connect(self, value: ValueKey, node: NodeKey, slot: int) -> None:
        """Let a node read a value in an input slot, where `can_connect` has nothing against it."""
        if refused := self.can_connect(value, node, slot):
            raise EditError(f"{refused}. The wire stays as it was.")
        edits.set_input(self.graph, self._node_record(node), slot, self._value_record(value).name)

    # -- inputs, outputs, initializers ------------------------------------------------------------------------------

    def add_input(
        self,
        name: str,
        dtype: Any = None,
        shape: Sequence[int | str | None] | None = None,
        *,
        position: int | None = None,
        scope: str = "",
    ) -> Value:
        """Give the graph (or the scope at a path) another input of a dtype ("float32") and shape."""
        where = self._scope_record(scope)
        info = name if where.is_function else declare(name, dtype, shape)
        return Value(self.graph, edits.add_input(self.graph, info, where, position).id)

    def remove_input(self, value: ValueKey) -> None:
        """Take an input away that nobody reads; one with a default becomes an initializer."""
        edits.remove_input(self.graph, self._value_record(value))

    def _declaration(self, value: int) -> onnx.ValueInfoProto | None:
        """What an output declares of a value id; a Model asks its inference."""
        return self.graph.values[value].info

    def add_output(
        self,
        value: ValueKey,
        position: int | None = None,
        *,
        dtype: Any = None,
        shape: Sequence[int | str | None] | None = None,
        scope: str | None = None,
    ) -> tuple[Value, ...]:
        """Make a value an output of the model, declared with the type that inference knows; returns the outputs.

        Args:
            dtype: element type to declare instead of the inferred one ("float32").
            shape: dims to declare instead of the inferred ones (["batch", 3, None]).
            scope: path of the body or function that is to return it, and no more than that: what the node that has the
                body, or a call, makes of it is left to `set_outputs`. Default: it is carried out to the model.

        A value of a function ("local::Block/h") is returned by each call of it; one in the body of a Loop or Scan is
        collected over the iterations, with their number as its first dim.

        Raises:
            EditError: it is an output already, or made in one branch of an If alone.
        """
        record = self._value_record(value)
        given = None if dtype is None and shape is None else declare(record.name, dtype, shape)
        known = self._declaration if given is None else lambda _: given
        if scope is not None:
            edits.declare_output(self.graph, record, known(record.id), position, self._scope_record(scope))
            return (Value(self.graph, record.id),)
        made = edits.add_output(self.graph, record, known, position)
        return tuple(Value(self.graph, each.id) for each in made)

    def remove_output(self, value: ValueKey, *, scope: str = "") -> None:
        """Take a value out of the outputs of the graph, or of the body or function at a path; what makes it stays."""
        edits.remove_output(self.graph, self._value_record(value), self._scope_record(scope))

    def add_initializer(self, name: str, array: Any, *, scope: str = "") -> Value:
        """Store an array under a new name."""
        return Value(self.graph, edits.add_initializer(self.graph, name, array, self._scope_record(scope)).id)

    def remove_initializer(self, value: ValueKey) -> None:
        """Take a stored array away that nobody reads; one that is also an input becomes a required input."""
        edits.remove_initializer(self.graph, self._value_record(value))

    # -- functions and blocks ---------------------------------------------------------------------------------------

    def make_function(self, nodes: NodeKeys, name: str, domain: str = "local", *, copies: bool = False) -> list[Node]:
        """Move nodes into a new function and call it in their place; with `copies` in that of each like block too."""
        records = self._node_records(nodes)
        return [Node(self.graph, call.id) for call in edits.make_function(self.graph, records, name, domain, copies)]

    def inline(self, call: NodeKey | None = None, *, function: str = "", nested: bool = False) -> int:
        """Replace a call of a function by its nodes, all calls of the function at a path ("local::Block"), or all.

        Args:
            nested: of one call: whether calls among the new nodes are replaced too.

        Returns:
            How many calls were replaced, those inside not counted.
        """
        if call is not None:
            edits.inline_call(self.graph, self._node_record(call), nested)
            return 1
        if function:
            return edits.inline_function(self.graph, self._scope_record(function))
        return edits.inline_functions(self.graph)

    def for_each_copy(self, nodes: NodeKeys, edit: Callable[..., Any], label: str = "") -> int:
        """Call `edit(*nodes)` for a block of nodes and for every copy of it, as one step; returns for how many."""

        def with_handles(*records: NodeRecord) -> None:
            edit(*(Node(self.graph, node.id) for node in records))

        records = self._node_records(nodes)
        return len(edits.for_each_copy(self.graph, records, with_handles, label))

    # -- the model as a whole ---------------------------------------------------------------------------------------

    @property
    def opsets(self) -> Opsets:
        """Opset versions by operator domain, live; setting one converts nothing."""
        return Opsets(self.graph)

    def opsets_of(self, function: str) -> Opsets:
        """The same of what a function ("local::Block") imports; graphs and bodies go by the model's."""
        return Opsets(self.graph, self._scope_record(function))

    @property
    def metadata(self) -> Metadata:
        """metadata_props of the model, live; those of its graph are `graph_metadata`."""
        return Metadata(self.graph, lambda: None)

    @property
    def graph_metadata(self) -> Metadata:
        """metadata_props of the main graph, live."""
        return Metadata(self.graph, lambda: self.graph.main)

    @property
    def doc_string(self) -> str:
        """The model's text about itself. Setting it is an edit."""
        return str(self.graph.proto.doc_string)

    @doc_string.setter
    def doc_string(self, text: str) -> None:
        edits.set_doc_string(self.graph, None, text)

    @property
    def graph_doc_string(self) -> str:
        """The main graph's text about itself. Setting it is an edit."""
        return str(self.graph.proto.graph.doc_string)

    @graph_doc_string.setter
    def graph_doc_string(self, text: str) -> None:
        edits.set_doc_string(self.graph, self.graph.main, text)

    def set_field(self, field: str, value: Any) -> None:
        """Set ir_version, producer_name, producer_version, domain or model_version."""
        edits.set_model_field(self.graph, field, value)

    @property
    def _fact_of(self) -> FactOf:
        """What is known of a value id; a Model asks its inference."""
        return lambda _: UNKNOWN

    def convert_opset(self, version: int) -> int:
        """Convert the model, bodies and functions included, to another version of ai.onnx, up or down.

        Only nodes whose operators changed between the two versions are touched, by onnx's own adapters or, where the
        older version has no such operator, by what its schema says it stands for. Returns how many nodes changed.

        Raises:
            EditError: there is no such version, or nodes cannot be said in it; the message lists them with reasons.
        """
        return edits.convert_opset(self.graph, version, self._declaration, lambda vid: self._fact_of(vid).value)

    def sort_nodes(self) -> int:
        """Put producers before consumers everywhere; returns how many nodes were moved."""
        return edits.sort_nodes(self.graph)

    def drop_dead_nodes(self) -> int:
        """Remove the nodes that no output depends on; returns how many."""
        return edits.drop_dead_nodes(self.graph)

    def drop_unused_initializers(self) -> int:
        """Remove the stored tensors without readers; returns how many."""
        return edits.drop_unused_initializers(self.graph)

    def drop_unused_functions(self) -> int:
        """Remove the functions that are never called; returns how many."""
        return edits.drop_unused_functions(self.graph)
