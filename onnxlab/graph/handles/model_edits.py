"""The edits that a Model offers, by names and handles: each a thin call of `graph.edits`."""

from collections.abc import Callable, Sequence
from typing import Any

import onnx

from onnxlab.errors import EditError
from onnxlab.graph import edits
from onnxlab.graph.edits.connecting import Refusal
from onnxlab.graph.handles.handles import Node, called
from onnxlab.graph.handles.model_lookup import NodeKey, NodeKeys, ValueKey
from onnxlab.graph.handles.model_values import ValueEditing
from onnxlab.graph.handles.model_whole import WholeEditing
from onnxlab.graph.index.records import NodeRecord


class Editing(ValueEditing, WholeEditing):
    """What can be done to a model. Every method is one undo step, or part of the open `edit`.

    Nodes are given as a position in file order, a name, the name of an output, a path into a body, or a handle; values
    as a name, path or handle. All raise EditError, with what to do, where an edit is refused; then nothing changed.
    """

    __slots__ = ()

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
