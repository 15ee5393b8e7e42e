"""Serialized models read where they stand, against the messages that protobuf makes of them."""

from typing import Any

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import onnxlab
from onnxlab.graph.protos import wire_format
from onnxlab.graph.protos.renaming import graphs_of
from onnxlab.infer.walk.operator_catalogue import signature

NODES = wire_format.tag(onnx.GraphProto, "node")
names = st.lists(st.text(max_size=8) | st.text("é", min_size=60, max_size=90), max_size=4)
values = st.sampled_from([None, 3, [1.5] * 40, "t" * 130, helper.make_tensor("v", 1, [3], [1, 2, 3])])
nodes = st.builds(
    lambda op_type, inputs, outputs, value, domain: helper.make_node(
        op_type, inputs, outputs, name="n" * len(outputs) * 50, domain=domain, value=value
    ),
    st.sampled_from(["Constant", "Relu", ""]), names, names, values, st.sampled_from([None, "other"]),
)  # fmt: skip


Head = tuple[list[Any], list[Any], int, int, int]


def heads(graph: onnx.GraphProto | onnx.FunctionProto, field: int, most: int = 3) -> list[Head]:
    """(inputs, outputs, where the name begins, where the signature does, where the node ends) of each node."""
    data = graph.SerializeToString()
    rows: list[Head] = []
    for block in wire_format.heads(data, wire_format.find(data, 0, len(data), field), len(data), field, most):
        assert len(block.ends) <= most
        columns = zip([0, *block.reads], block.reads, [0, *block.makes], block.makes, *block[4:], strict=False)
        rows += [(block.inputs[a:b], block.outputs[c:d], *places) for a, b, c, d, *places in columns]  # type: ignore[misc]
    return rows


@given(st.lists(nodes, max_size=4), st.booleans())
def test_nodes_are_what_protobuf_reads(protos: list[onnx.NodeProto], noted: bool) -> None:
    graph = onnx.GraphProto(node=protos, name="g", input=[onnx.ValueInfoProto(name="x")])
    for node in graph.node if noted else ():
        node.doc_string = "d"
        node.MergeFromString(b"\xc8\x3e\x07")  # a field of a newer onnx
    data = graph.SerializeToString()
    for node, (inputs, outputs, start, at, end) in zip(graph.node, heads(graph, NODES), strict=True):
        assert (inputs, outputs) == (node.input[:], node.output[:])
        assert data[start:at] == wire_format.node_name(node.name)
        assert data[at:end] == signature(node.SerializeToString(), False)
        match = wire_format.constant(data, at, end)
        plain = node.op_type == "Constant" and not node.domain and len(node.attribute) == 1 and not noted
        assert (match is not None) == (plain and node.attribute[0].type == onnx.AttributeProto.TENSOR)
        assert match is None or (match[2], match[3], match.endpos) == (b"\x08\x03", b"\x01", end)
        assert match is None or node.attribute[0].t.SerializeToString() == data[match.start(2) : end - 3]


def test_names_need_not_be_utf_8() -> None:
    graph = onnx.GraphProto()
    graph.node.add().MergeFromString(b"\x0a\x02\xffa\x12\x01y")
    assert heads(graph, NODES)[0][:2] == ([b"\xffa"], ["y"]) == (graph.node[0].input[:], graph.node[0].output[:])


def test_the_graph_is_found_behind_fields_of_every_kind() -> None:
    model = onnx.ModelProto(ir_version=2**40, producer_name="p" * 200, model_version=-1, doc_string="")
    function = onnx.FunctionProto(name="f", input=["x"] * 9, node=[onnx.NodeProto(op_type="Neg", input=["x"])])
    assert [head[0] for head in heads(function, wire_format.tag(onnx.FunctionProto, "node"))] == [["x"]]
    field = wire_format.tag(onnx.ModelProto, "graph")
    data = model.SerializeToString()
    assert wire_format.find(data, 0, len(data), field) == len(data)
    model.graph.name = "g"
    ahead = b"\xfd\x7f1234\xf9\x7f12345678" + model.SerializeToString()  # fixed 32 and 64 bits, of large numbers
    start, end = wire_format.extent(ahead, wire_format.find(ahead, 0, len(ahead), field))
    assert ahead[start:end] == model.graph.SerializeToString()


def test_an_attribute_with_more_than_a_tensor_is_left_to_its_message() -> None:
    node = helper.make_node("Constant", [], ["y"], value=helper.make_tensor("v", 1, [1], [1.0]))
    node.attribute[0].g.name = "hidden"
    graph = onnx.GraphProto(node=[node])
    assert wire_format.constant(graph.SerializeToString(), *heads(graph, NODES)[0][3:]) is None


def test_bodies_are_found_where_they_stand() -> None:
    body = onnx.GraphProto(name="b", node=[onnx.NodeProto(op_type="Neg")])
    node = helper.make_node("If", ["c"], ["y"], then_branch=body, n=3, several=[body, onnx.GraphProto(), body])
    node.attribute.add(name="absent", type=onnx.AttributeProto.GRAPH)
    node.attribute.add(name="empty", type=onnx.AttributeProto.GRAPH).g.SetInParent()
    node.attribute.add(name="else_branch", type=onnx.AttributeProto.GRAPH, graphs=[body]).g.name = "e" * 200
    node.attribute.add(name="no graph", type=onnx.AttributeProto.INT).g.CopyFrom(body)
    data = onnx.GraphProto(node=[node]).SerializeToString()
    types = [attribute.type for attribute in node.attribute]
    at, end = heads(onnx.GraphProto(node=[node]), NODES)[0][3:]
    bodies = [data[start:stop] for _, start, stop in wire_format.bodies(data, at, end, types)]
    expected = [graph.SerializeToString() for attribute in node.attribute for graph in graphs_of(attribute)]
    assert bodies == expected
    assert len(bodies) == 6


def test_a_field_of_an_unknown_wire_type_is_no_output() -> None:
    """A node with a varint where its output belongs: protobuf keeps that as an unknown field behind the known ones."""
    node = onnx.NodeProto.FromString(b"\x0a\x01x\x10\x01")
    model = onnx.ModelProto(ir_version=8)
    model.graph.node.append(node)
    (record,) = onnxlab.Model(model).graph.nodes.values()
    assert (len(record.inputs), record.outputs) == (1, [])


@pytest.mark.parametrize(
    "inner", [b"", b"\x3a\x03abc", b"\x0b\x3a\x00\x0c", b"\x08\x07\x15\x00\x00\x00\x00\x19" + bytes(8)]
)
def test_what_stands_in_an_unknown_group_is_no_field(inner: bytes) -> None:
    """Groups end with a tag of their own, and hold fields with any number."""
    field = wire_format.tag(onnx.ModelProto, "graph")
    model = onnx.ModelProto(producer_name="p", graph=onnx.GraphProto(name="g"))
    group = b"\xa3\x06" + inner + b"\xa4\x06"  # field 100
    behind, ahead = model.SerializeToString() + group, group + model.SerializeToString()
    assert onnx.ModelProto.FromString(ahead).graph.name == "g"
    for data in (behind, ahead):
        start, end = wire_format.extent(data, wire_format.find(data, 0, len(data), field))
        assert onnx.GraphProto.FromString(data[start:end]).name == "g"
    absent = onnx.ModelProto(producer_name="p").SerializeToString() + group
    assert wire_format.find(absent, 0, len(absent), field) == len(absent)
