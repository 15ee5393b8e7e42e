"""Random edits of people: every edit of a Model on things picked by drawn numbers.

An edit that has nothing to work on does nothing; one that the model refuses raises EditError.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxlab.graph import edits
from onnxlab.graph.handles.handles import Node, Value
from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.query import cones
from onnxlab.model import Model
from tests.graph.support.models import branches, chain


@dataclass
class Pick:
    """Things of a model by drawn numbers: the same numbers pick the same things."""

    model: Model
    numbers: tuple[int, int, int]
    count: int

    @property
    def node(self) -> Node:
        nodes = list(self.model.graph.nodes)
        return Node(self.model.graph, nodes[self.numbers[0] % len(nodes)])

    @property
    def value(self) -> Value:
        values = list(self.model.graph.values)
        return Value(self.model.graph, values[self.numbers[1] % len(values)])

    @property
    def initializer(self) -> Value:
        """An initializer where there is one."""
        initializers = self.model.find_values(kind="initializer") or [self.value]
        return initializers[self.numbers[1] % len(initializers)]

    @property
    def formal(self) -> Value:
        formals = [*self.model.inputs, *self.model.outputs]
        return formals[self.numbers[1] % len(formals)] if formals else self.value

    @property
    def several(self) -> list[NodeRecord]:
        """Nodes that stand together in one scope."""
        graph, node = self.model.graph, self.node
        order = graph.scopes[graph.nodes[node.id].scope].node_ids
        at = order.index(node.id)
        return [graph.nodes[ident] for ident in order[at : at + 1 + self.numbers[2] % 3]]

    @property
    def name(self) -> str:
        return f"new_{self.count}"

    @property
    def slot(self) -> int:
        return self.numbers[2] % 3

    @property
    def bearer(self) -> Any:
        return [self.model, self.node, self.value][self.numbers[2] % 3]


def connect(pick: Pick) -> None:
    refused = pick.model.can_connect(pick.value, pick.node, pick.slot)
    if refused is None and pick.slot <= len(pick.node.inputs):
        pick.model.connect(pick.value, pick.node, pick.slot)


def duplicate(pick: Pick) -> None:
    edits.duplicate_nodes(pick.model.graph, pick.several)


def make_function(pick: Pick) -> None:
    edits.make_function(pick.model.graph, pick.several, pick.name, copies=bool(pick.numbers[1] % 2))


def group(pick: Pick) -> None:
    edits.group_nodes(pick.model.graph, pick.several, pick.name)


def ungroup(pick: Pick) -> None:
    groups = list(pick.model.groups.values())
    if not pick.slot:
        pick.model.clear_groups()
    elif groups:
        groups[pick.numbers[0] % len(groups)].dissolve()


def for_each_copy(pick: Pick) -> None:
    graph = pick.model.graph
    edits.for_each_copy(graph, pick.several, lambda *nodes: edits.remove_nodes(graph, nodes, bypass=True))


def inline(pick: Pick) -> None:
    calls = [node for node in pick.model.find() if node.domain and node.schema is None]
    if calls and pick.numbers[2] % 2:
        pick.model.inline(calls[pick.numbers[0] % len(calls)], nested=bool(pick.numbers[1] % 2))
    else:
        pick.model.inline()


def insert_model(pick: Pick) -> None:
    if len(pick.model.graph.nodes) < 60:  # the model would double in size otherwise
        other = (chain, branches)[pick.numbers[0] % 2]()
        wires = {"x": pick.value} if pick.numbers[2] % 2 else {}
        pick.model.insert(other, wires, prefix=("", "p_")[pick.numbers[1] % 2])


def insert_in_front(pick: Pick) -> None:
    if len(pick.model.graph.nodes) < 60:
        wires = {"x": pick.value} if pick.numbers[0] % 2 else {}
        pick.model.insert(branches(), wires, feed={pick.formal: "y"}, add_outputs=("chosen",)[: pick.slot])


def inline_function(pick: Pick) -> None:
    functions = pick.model.graph.index.function_ids
    if functions:
        scope = pick.model.graph.scopes[functions[pick.numbers[0] % len(functions)]]
        pick.model.inline(function=pick.model.graph.scope_path(scope))


def call_instead(pick: Pick) -> None:
    functions = pick.model.graph.index.function_ids
    if functions:
        proto = pick.model.graph.scopes[functions[pick.numbers[1] % len(functions)]].proto
        pick.node.replace(proto.name, proto.domain)


def in_an_inner_scope(pick: Pick) -> None:
    """Parameters and stored values of a body or function."""
    scopes = list(pick.model.graph.scopes.values())
    path = pick.model.graph.scope_path(scopes[pick.numbers[0] % len(scopes)])
    if pick.slot:
        pick.model.add_input(pick.name, scope=path)
    else:
        pick.model.add_initializer(pick.name, np.zeros(pick.slot, np.int8), scope=path)


def returned_by_an_inner_scope(pick: Pick) -> None:
    """Results of a body or function, and imports of a function."""
    graph, scopes = pick.model.graph, list(pick.model.graph.scopes.values())
    scope = scopes[pick.numbers[0] % len(scopes)]
    path = graph.scope_path(scope)
    if pick.slot == 2 and scope.is_function:
        pick.model.opsets_of(path)[("", "other")[pick.numbers[1] % 2]] = 18 + pick.numbers[1] % 4
    elif pick.slot:
        values = [*scope.names.values(), pick.value.id]
        declared = {"dtype": "float32", "shape": [1, None]} if pick.numbers[2] % 2 else {}
        pick.model.add_output(Value(graph, values[pick.numbers[1] % len(values)]), scope=path, **declared)
    elif scope.outputs:
        pick.model.remove_output(Value(graph, scope.outputs[pick.numbers[1] % len(scope.outputs)]), scope=path)


def redirect(pick: Pick) -> None:
    values = list(pick.model.graph.values)
    pick.value.replace_uses(Value(pick.model.graph, values[pick.numbers[2] % len(values)]))


def extract_changes_nothing(pick: Pick) -> None:
    before = pick.model.to_bytes()
    part = pick.model.extract([pick.value])
    assert pick.model.to_bytes() == before
    assert not part.graph.index.undefined
    part.graph.snapshot()


def boundary_is_consistent(pick: Pick) -> None:
    graph, chosen = pick.model.graph, [node.id for node in pick.several]
    boundary = cones.boundary(graph, chosen)
    outputs = {vid for node in chosen for vid in graph.nodes[node].outputs if vid}
    assert outputs == {*boundary.outputs, *boundary.internal, *boundary.unused}
    assert not outputs & {*boundary.inputs, *boundary.initializers}


def to_initializer(pick: Pick) -> None:
    pick.formal.to_initializer(None if pick.slot else np.zeros((1, 3, 8, 8), np.float32))


def constant_to_initializer(pick: Pick) -> None:
    if constants := pick.model.find("Constant"):
        constants[pick.numbers[0] % len(constants)].to_initializer()


COMPOSITE: dict[str, Callable[[Pick], Any]] = {
    function.__name__: function
    for function in (
        connect, duplicate, make_function, group, ungroup, for_each_copy, inline, insert_model, redirect,
        extract_changes_nothing, boundary_is_consistent, to_initializer, constant_to_initializer, insert_in_front,
        inline_function, call_instead, in_an_inner_scope, returned_by_an_inner_scope,
    )
} | {
    "add_node": lambda pick: pick.model.add_node("Neg", [pick.value.name], [pick.name], position=pick.slot or None),
    "remove": lambda pick: pick.node.remove(bypass=bool(pick.numbers[1] % 2)),
    "set_inputs": lambda pick: pick.node.set_inputs([pick.value] * (1 + pick.slot)),
    "set_outputs": lambda pick: pick.node.set_outputs([pick.name]),
    "insert_before": lambda pick: pick.node.insert_before(pick.slot, "Identity"),
    "insert_after": lambda pick: pick.value.insert_after("Identity"),
    "replace": lambda pick: pick.node.replace(("Abs", "LeakyRelu", "Sigmoid")[pick.slot]),
    "move": lambda pick: pick.node.move(pick.numbers[1] % 7),
    "rename_node": lambda pick: setattr(pick.node, "name", pick.name),
    "rename_value": lambda pick: setattr(pick.value, "name", pick.name),
    "set_attribute": lambda pick: pick.node.attributes.update(alpha=0.1 * pick.count),
    "clear_attributes": lambda pick: pick.node.attributes.clear(),
    "defaults": lambda pick: edits.default_attributes(
        pick.model.graph, pick.model.graph.nodes[pick.node.id], bool(pick.numbers[1] % 2)
    ),
    "set_dim": lambda pick: pick.formal.set_dim(0, [None, "n", 3][pick.slot]),
    "set_shape": lambda pick: pick.formal.set_shape([pick.slot, None, "m"]),
    "set_dtype": lambda pick: pick.formal.set_dtype(("float16", "int64", "string")[pick.slot]),
    "add_input": lambda pick: pick.model.add_input(pick.name, "float32", [1, "k"], position=0),
    "remove_input": lambda pick: pick.model.remove_input(pick.formal),
    "add_output": lambda pick: pick.model.add_output(pick.value, 0),
    "remove_output": lambda pick: pick.model.remove_output(pick.formal),
    "add_initializer": lambda pick: pick.model.add_initializer(pick.name, np.full(pick.slot, pick.count, np.float16)),
    "remove_initializer": lambda pick: pick.model.remove_initializer(pick.initializer),
    "set_initializer": lambda pick: setattr(pick.initializer, "array", np.arange(pick.slot)),
    "to_input": lambda pick: pick.initializer.to_input(keep_default=bool(pick.slot)),
    "to_constant": lambda pick: pick.initializer.to_constant(),
    "doc_string": lambda pick: setattr(pick.bearer, "doc_string", ("", "said", "ü")[pick.numbers[1] % 3]),
    "metadata": lambda pick: pick.bearer.metadata.update({"key": str(pick.count), "k": ""}),
    "clear_metadata": lambda pick: pick.bearer.metadata.clear(),
    "set_field": lambda pick: pick.model.set_field("model_version", pick.count),
    "opset": lambda pick: pick.model.opsets.update({("", "local", "other")[pick.slot]: 18 + pick.numbers[0] % 4}),
    "convert_opset": lambda pick: pick.model.convert_opset(13 + pick.numbers[0] % 9),
    "drop_opset": lambda pick: pick.model.opsets.pop(("", "local", "other")[pick.slot], None),
    "declarations": lambda pick: pick.model.declarations(("refresh", "store", "drop")[pick.slot]),
    "sort": lambda pick: pick.model.sort_nodes(),
    "drop_dead_nodes": lambda pick: pick.model.drop_dead_nodes(),
    "cut": lambda pick: pick.model.cut(outputs=[pick.value], siblings=bool(pick.slot)),
    "remove_behind": lambda pick: pick.model.remove_behind(pick.value),
    "replace_dim": lambda pick: pick.model.replace_dim((1, 2, 3)[pick.slot], "batch", axis=pick.numbers[0] % 2),
    "bind": lambda pick: pick.model.bind("float_raw", (None, "stepped")[pick.slot % 2]),
    "drop_unused": lambda pick: (pick.model.drop_unused_initializers(), pick.model.drop_unused_functions()),
}  # fmt: skip
