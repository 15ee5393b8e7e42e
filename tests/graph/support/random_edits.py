"""Edits to be made at random: a table of functions, each of which picks what it changes by drawn numbers.

An edit that has nothing to work on does nothing; one that the model refuses raises EditError. To have another edit
tried by `test_state_machine.py`, add it to `EDITS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import TensorProto, helper

from onnxlab.errors import EditError
from onnxlab.graph import edits
from onnxlab.graph.edit.changes import (
    InsertEntry,
    InsertFormal,
    InsertFunction,
    InsertNode,
    MoveNode,
    RemoveEntry,
    RemoveFormal,
    RemoveFunction,
    RemoveNode,
    RenameValue,
    ReplaceEntry,
    SetAttribute,
    SetField,
    SetFormal,
    SetInitializer,
    SetInputs,
    SetOutputs,
    SetTypes,
)
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord


@dataclass
class Draw:
    """Things of a model by drawn numbers: the same numbers pick the same things."""

    graph: ModelGraph
    numbers: tuple[int, int, int]
    count: int

    @property
    def node(self) -> NodeRecord:
        nodes = list(self.graph.nodes.values())
        if not nodes:
            raise EditError("an edit before this one removed the last node")
        return nodes[self.numbers[0] % len(nodes)]

    @property
    def value(self) -> ValueRecord:
        values = list(self.graph.values.values())
        return values[self.numbers[1] % len(values)]

    @property
    def scope(self) -> Scope:
        scopes = list(self.graph.scopes.values())
        return scopes[self.numbers[2] % len(scopes)]

    @property
    def plain_scope(self) -> Scope:
        """A scope that is no function."""
        return self.scope if not self.scope.is_function else self.graph.main

    @property
    def name(self) -> str:
        """A name that is in use one time in three."""
        return f"new_{self.count}" if self.numbers[2] % 3 else self.value.name

    def position(self, count: int) -> int:
        """One of `count` positions."""
        return self.numbers[2] % max(count, 1)

    def info(self, name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [self.numbers[0] % 4 or None, "N"])


def insert_node(draw: Draw) -> None:
    proto = onnx.NodeProto(op_type="Neg", input=[draw.value.name], output=[draw.name], name="added")
    draw.graph.apply(InsertNode(draw.scope.id, draw.position(len(draw.scope.node_ids) + 1), proto))


def insert_node_with_body(draw: Draw) -> None:
    captured = draw.value.name
    body = helper.make_graph(
        [helper.make_node("Neg", [captured], [f"inner_{draw.count}"])], "b", [], [draw.info(f"inner_{draw.count}")]
    )
    proto = helper.make_node("Loop", ["", "flag"], [draw.name], body=body)
    draw.graph.apply(InsertNode(draw.graph.scopes[draw.value.scope].id, 0, proto))


def set_inputs(draw: Draw) -> None:
    names = [draw.graph.values[vid].name if vid else "" for vid in draw.node.inputs] or [""]
    names[draw.position(len(names))] = draw.value.name if draw.numbers[2] % 5 else ""
    draw.graph.apply(SetInputs(draw.node.id, tuple(names)))


def set_outputs(draw: Draw) -> None:
    names = [draw.graph.values[vid].name if vid else "" for vid in draw.node.outputs] or [""]
    names[draw.position(len(names))] = draw.name
    draw.graph.apply(SetOutputs(draw.node.id, tuple(names)))


def set_attribute(draw: Draw) -> None:
    proto = helper.make_attribute(["axis", "own", "alpha"][draw.numbers[2] % 3], draw.numbers[1])
    draw.graph.apply(SetAttribute(draw.node.id, proto.name, proto))


def clear_attribute(draw: Draw) -> None:
    names = [attribute.name for attribute in draw.node.proto.attribute]
    if names:
        draw.graph.apply(SetAttribute(draw.node.id, names[draw.position(len(names))], None))


def set_body(draw: Draw) -> None:
    """Another body in the place of one: what it captured and made goes, what the new one does comes."""
    attributes = [attribute for attribute in draw.node.proto.attribute if attribute.type == attribute.GRAPH]
    if not attributes:
        return
    attribute = onnx.AttributeProto()
    attribute.CopyFrom(attributes[draw.position(len(attributes))])
    output = attribute.g.output[0].name if attribute.g.output else f"inner_{draw.count}"
    attribute.g.ClearField("node")
    attribute.g.node.append(helper.make_node("Identity", [draw.value.name], [output]))
    draw.graph.apply(SetAttribute(draw.node.id, attribute.name, attribute))


def set_node_field(draw: Draw) -> None:
    entry = onnx.StringStringEntryProto(key="key", value=str(draw.count))
    field, value = [
        ("name", draw.name), ("doc_string", ""), ("doc_string", None), ("metadata_props", (entry, entry)),
        ("op_type", "Abs"), ("overload", "second"),
    ][draw.numbers[2] % 6]  # fmt: skip
    draw.graph.apply(SetField(("node", draw.node.id), field, value))


def set_scope_field(draw: Draw) -> None:
    draw.graph.apply(SetField(("scope", draw.scope.id), "doc_string", f"edit {draw.count}"))


def set_tensor_field(draw: Draw) -> None:
    if stored := [value.id for value in draw.graph.values.values() if value.initializer is not None]:
        target = ("tensor", stored[draw.position(len(stored))])
        draw.graph.apply(SetField(target, "doc_string", f"edit {draw.count}" if draw.numbers[0] % 3 else None))


def set_model_field(draw: Draw) -> None:
    draw.graph.apply(SetField(("model", 0), "model_version", draw.numbers[0] if draw.numbers[1] % 2 else None))


def insert_formal(draw: Draw) -> None:
    scope, kind = draw.scope, ("input", "output")[draw.numbers[0] % 2]
    name = draw.name if kind == "input" else draw.value.name
    position = draw.position(len(scope.inputs if kind == "input" else scope.outputs) + 1)
    draw.graph.apply(InsertFormal(scope.id, kind, position, name if scope.is_function else draw.info(name)))


def remove_formal(draw: Draw) -> None:
    scope, kind = draw.scope, ("input", "output")[draw.numbers[0] % 2]
    count = len(scope.inputs if kind == "input" else scope.outputs)
    if count:
        draw.graph.apply(RemoveFormal(scope.id, kind, draw.position(count)))


def set_formal(draw: Draw) -> None:
    scope, kind = draw.plain_scope, ("input", "output", "value_info")[draw.numbers[0] % 3]
    infos = getattr(scope.proto, kind)
    if len(infos):
        position = draw.position(len(infos))
        draw.graph.apply(SetFormal(scope.id, kind, position, draw.info(infos[position].name)))


ENTRIES = ("initializer", "sparse_initializer", "value_info", "quantization_annotation")


def entry(draw: Draw, field: str, name: str) -> Any:
    match field:
        case "initializer":
            return helper.make_tensor(name, TensorProto.FLOAT, [1], [draw.count])
        case "sparse_initializer":
            values = helper.make_tensor(name, TensorProto.FLOAT, [1], [1.0])
            return helper.make_sparse_tensor(values, helper.make_tensor("", TensorProto.INT64, [1], [0]), [4])
        case "value_info":
            return draw.info(name)
    annotation = onnx.TensorAnnotation(tensor_name=name)
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=draw.value.name)
    return annotation


def insert_entry(draw: Draw) -> None:
    scope, field = draw.plain_scope, ENTRIES[draw.numbers[0] % 4]
    position = draw.position(len(getattr(scope.proto, field)) + 1)
    name = draw.value.name if field in ENTRIES[2:] else draw.name
    draw.graph.apply(InsertEntry(scope.id, field, position, entry(draw, field, name)))


def set_types(draw: Draw) -> None:
    scope, kind = draw.plain_scope, ("input", "output", "value_info")[draw.numbers[0] % 3]
    infos = getattr(scope.proto, kind)
    if len(infos):
        place = draw.position(len(infos))
        encoded = None if draw.numbers[1] % 3 == 0 else draw.info("any").type.SerializeToString()
        draw.graph.apply(SetTypes(scope.id, kind, (place,), (encoded,)))


def remove_entry(draw: Draw) -> None:
    scope, field = draw.plain_scope, ENTRIES[draw.numbers[0] % 4]
    if count := len(getattr(scope.proto, field)):
        draw.graph.apply(RemoveEntry(scope.id, field, draw.position(count)))


def replace_entry(draw: Draw) -> None:
    scope, field = draw.plain_scope, ENTRIES[draw.numbers[0] % 4]
    messages = getattr(scope.proto, field)
    if len(messages):
        position = draw.position(len(messages))
        old = messages[position]
        name = old.values.name if field == "sparse_initializer" else getattr(old, "name", "") or draw.name
        draw.graph.apply(ReplaceEntry(scope.id, field, position, entry(draw, field, name)))


def set_initializer(draw: Draw) -> None:
    tensor = helper.make_tensor(draw.name, TensorProto.FLOAT, [1], [draw.count])
    draw.graph.apply(SetInitializer(draw.plain_scope.id, draw.name, tensor if draw.numbers[0] % 4 else None))


def rename_value(draw: Draw) -> None:
    draw.graph.apply(RenameValue(draw.value.id, draw.name))


def insert_function(draw: Draw) -> None:
    body = [helper.make_node("Abs", ["a"], ["b"]), helper.make_node("Neg", ["b"], ["c"])]
    proto = helper.make_function("local", f"F{draw.count}", ["a"], ["c"], body, [helper.make_opsetid("", 20)])
    draw.graph.apply(InsertFunction(draw.position(len(draw.graph.proto.functions) + 1), proto))


def remove_function(draw: Draw) -> None:
    if draw.graph.index.function_ids:
        draw.graph.apply(RemoveFunction(draw.graph.index.function_ids[draw.position(len(draw.graph.proto.functions))]))


def move_node(draw: Draw) -> None:
    draw.graph.apply(MoveNode(draw.node.id, draw.position(len(draw.graph.scopes[draw.node.scope].node_ids))))


def several(draw: Draw) -> None:
    """Many changes of which the last may be refused: all of them or none."""
    with draw.graph.edit("several"):
        rename_value(draw)
        insert_entry(draw)
        move_node(draw)
        edits.remove_nodes(draw.graph, [draw.node], bypass=True)


Edit = Callable[[Draw], None]

EDITS: dict[str, Edit] = {
    function.__name__: function
    for function in (
        insert_node, insert_node_with_body, set_inputs, set_outputs, set_attribute, clear_attribute, set_body,
        set_node_field, set_scope_field, set_model_field, insert_formal, remove_formal, set_formal, insert_entry,
        remove_entry, replace_entry, set_initializer, rename_value, insert_function, remove_function, move_node,
        set_tensor_field, set_types, several,
    )
}  # fmt: skip
EDITS |= {
    "remove_node": lambda draw: draw.graph.apply(RemoveNode(draw.node.id)),
    "bypass_node": lambda draw: edits.remove_nodes(draw.graph, [draw.node], bypass=True),
    "rename_value_everywhere": lambda draw: edits.rename_value(draw.graph, draw.value, draw.name),
    "rename_node": lambda draw: edits.rename_node(draw.graph, draw.node, draw.name),
    "rewire": lambda draw: edits.set_input(draw.graph, draw.node, 0, draw.value.name),
}
