"""The edits that a Model offers, by names and handles: each a thin call of `graph.edits`."""

from collections.abc import Callable, Sequence
from typing import Any

import onnx

from onnxlab.argument_types import expect, several
from onnxlab.errors import EditError
from onnxlab.graph import edits
from onnxlab.graph.edits.connecting import Refusal
from onnxlab.graph.handles.groups import GroupEditing
from onnxlab.graph.handles.handles import Node, as_list, called
from onnxlab.graph.handles.model_lookup import NodeKey, NodeKeys, ValueKey
from onnxlab.graph.handles.model_values import ValueEditing
from onnxlab.graph.handles.model_whole import WholeEditing
from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.protos.name_bytes import text


class Editing(ValueEditing, WholeEditing, GroupEditing):
    """Edits of a model. Every method is one undo step, or part of the open `edit`.

    Nodes are given as a position in file order, a name, the name of an output, a path into a body, or a handle; values
    as a name, path or handle. All raise EditError, with what to do, where an edit is refused; then nothing changed.
    """

    __slots__ = ()

    # -- nodes and wires --------------------------------------------------------------------------------------------

    def add_node(
        self,
        op_type: str,
        inputs: Sequence[ValueKey | None] | ValueKey,
        outputs: Sequence[str] | str | None = None,
        name: str = "",
        domain: str = "",
        *,
        scope: str = "",
        position: int | None = None,
        **attributes: Any,
    ) -> Node:
        """Add a node, by default behind what makes its inputs.

        Args:
            op_type: the operator.
            inputs: values by slot, as names or handles, or a single one; None leaves an optional one out.
            outputs: names of the values that it makes, or a single one; None: fresh ones for the outputs that the
                operator must have.
            name: name of the node.
            domain: domain of the operator, "" for ai.onnx.
            scope: path of the body or function to add it to; "" is the main graph.
            position: in the file order; None: behind what makes its inputs.
            attributes: attributes by name, typed by the operator's schema.

        Returns:
            Node: the new node.

        Raises:
            EditError: there is no such operator or value, or inputs and attributes do not fit it.

        Examples:
            >>> model.add_node("Clip", ["logits", None, None], ["clipped"], name="clip")
            <Node 'clip': Clip>
            >>> print(model.fact("clipped"))
            float32[batch,10]
        """
        where = self._scope_record(scope)
        proto = edits.make_node(self.graph, op_type, domain, **attributes)
        proto.input.extend(text(called(value)) for value in as_list(inputs))
        if name:
            proto.name = text(name)
        if outputs is None:
            outputs = edits.output_names(self.graph, proto, where)
        proto.output.extend(text(output) for output in several(outputs, str, "outputs", "names of new values"))
        with self.graph.lock:
            edits.check_operator(self.graph, proto, where)
            return Node(self.graph, edits.add_node(self.graph, proto, where, position).id)

    def insert_node(self, proto: onnx.NodeProto, position: int, *, scope: str = "") -> Node:
        """Put a node at a position just as it is; inside an `edit` what it reads may follow later.

        Args:
            proto: copied as it is.
            position: in the file order.
            scope: path of the body or function; "" is the main graph.

        Returns:
            Node: the new node.

        Raises:
            EditError: the model would not be valid with it.

        Examples:
            >>> proto = onnx.helper.make_node("Relu", ["image"], ["positive"])
            >>> model.insert_node(proto, 0).position
            0
        """
        expect(proto, onnx.NodeProto, "proto", "a NodeProto, as of onnx.helper.make_node")
        position = expect(position, int, "position", "a place in the file order")
        where = self._scope_record(scope)
        return Node(self.graph, edits.insert_node(self.graph, proto, where, position).id)

    def remove(self, nodes: NodeKeys, bypass: bool = False) -> None:
        """Remove nodes, as one step.

        Args:
            nodes: one or several, as positions, names or handles.
            bypass: let the readers of each node's output read its first input instead.

        Raises:
            EditError: something still reads what they make.

        Examples:
            >>> model.remove(model.find("BatchNormalization"), bypass=True)
            >>> len(model.nodes)
            19
        """
        edits.remove_nodes(self.graph, self._node_records(nodes), bypass)

    def duplicate(self, nodes: NodeKeys) -> list[Node]:
        """Copy nodes, bodies and all; copies read each other where the nodes do, and make new values.

        Args:
            nodes: one or several, as positions, names or handles.

        Returns:
            list[Node]: the copies, in the order of the nodes.

        Examples:
            >>> model.duplicate(["/stem/conv/Conv", "/stem/relu/Relu"])[0].inputs[0]
            <Value 'image'>
        """
        copies = edits.duplicate_nodes(self.graph, self._node_records(nodes))
        return [Node(self.graph, node.id) for node in copies]

    def can_connect(self, value: ValueKey, node: NodeKey, slot: int) -> str | None:
        """Tell why a node must not read a value in an input slot.

        Cycles, visibility, the number of inputs and the types that the operator takes are checked.

        Args:
            value: name or handle.
            node: position, name or handle.
            slot: position among the inputs.

        Returns:
            str | None: a sentence; None where the node may read it.

        Examples:
            >>> print(model.can_connect("logits", "/stem/relu/Relu", 0))
            /stem/relu/Relu would depend on itself: ...
            >>> model.can_connect("stem/conv_out", "/stem/relu/Relu", 0) is None
            True
        """
        types: Refusal = self._type_refusal
        slot = expect(slot, int, "slot", "the number of an input")
        return edits.can_connect(self.graph, self._value_record(value), self._node_record(node), slot, types)

    def connect(self, value: ValueKey, node: NodeKey, slot: int) -> None:
        """Let a node read a value in an input slot, where `can_connect` has nothing against it.

        Args:
            value: name or handle.
            node: position, name or handle.
            slot: position among the inputs.

        Raises:
            EditError: what `can_connect` says.

        Examples:
            >>> model.connect("stem/conv_out", "/stem/relu/Relu", 0)
            >>> model.diagnostics
            []
        """
        if refused := self.can_connect(value, node, slot):
            raise EditError(f"{refused}. The wire stays as it was.")
        edits.set_input(self.graph, self._node_record(node), slot, self._value_record(value).name)

    # -- functions and blocks ---------------------------------------------------------------------------------------

    def make_function(self, nodes: NodeKeys, name: str, domain: str = "local", *, copies: bool = False) -> list[Node]:
        """Move nodes into a new function and call it in their place.

        Args:
            nodes: one or several, as positions, names or handles.
            name: name of the function.
            domain: domain of the function.
            copies: also in the place of each block that is like the nodes.

        Returns:
            list[Node]: the calls.

        Raises:
            EditError: there is such an operator already, or a path between two of the nodes leaves them.

        Examples:
            >>> model.make_function(["/stem/bn/BatchNormalization", "/stem/relu/Relu"], "BnRelu", copies=True)
            [<Node 'BnRelu': local::BnRelu>, <Node 'BnRelu_1': local::BnRelu>]
        """
        records = self._node_records(nodes)
        return [Node(self.graph, call.id) for call in edits.make_function(self.graph, records, name, domain, copies)]

    def inline(self, call: NodeKey | None = None, *, function: str = "", nested: bool = False) -> int:
        """Replace calls of functions by their nodes: one call, all of a function, or all there are.

        Args:
            call: one call, as a position, name or handle.
            function: path of a function ("local::Block"), of which all calls are replaced.
            nested: with `call`, whether calls among the new nodes are replaced too.

        Returns:
            int: number of calls replaced, not counting nested ones.

        Raises:
            EditError: the node calls no function of the model, or a function calls itself.

        Examples:
            >>> model.make_function(["/stem/bn/BatchNormalization", "/stem/relu/Relu"], "BnRelu")
            [<Node 'BnRelu': local::BnRelu>]
            >>> model.inline(function="local::BnRelu")
            1
        """
        if call is not None:
            edits.inline_call(self.graph, self._node_record(call), nested)
            return 1
        if function:
            return edits.inline_function(self.graph, self._scope_record(function))
        return edits.inline_functions(self.graph)

    def for_each_copy(self, nodes: NodeKeys, edit: Callable[..., Any], label: str = "") -> int:
        """Make the same edit to a block of nodes and to every copy of it, as one step.

        Args:
            nodes: the block, as positions, names or handles.
            edit: called with a handle for each node of the block, and for those of each copy in the same order.
            label: label of the step in the history.

        Returns:
            int: number of blocks edited.

        Raises:
            EditError: the edit is refused in one of them; then none is changed.

        Examples:
            >>> def leaky(relu):
            ...     relu.op_type = "LeakyRelu"
            >>> model.for_each_copy(["/stem/relu/Relu"], leaky)
            5
        """

        def with_handles(*records: NodeRecord) -> None:
            edit(*(Node(self.graph, node.id) for node in records))

        expect(edit, Callable, "edit", "a function of the handles of a copy's nodes")  # type: ignore[arg-type]
        records = self._node_records(nodes)
        return len(edits.for_each_copy(self.graph, records, with_handles, label))
