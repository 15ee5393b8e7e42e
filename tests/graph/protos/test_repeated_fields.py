"""Messages put into repeated fields: copies, whatever they hold."""

import onnx
import pytest

from onnxlab.graph.protos.repeated_fields import insert_message


def test_a_copy_has_all_bytes_unknown_fields_and_names_that_are_not_utf8() -> None:
    odd = onnx.NodeProto.FromString(b"\x0a\x02\xff\xfe" + b"\xfa\x3e\x03new")  # an input, and field 1007
    graph = onnx.GraphProto(node=[onnx.NodeProto(name="a"), onnx.NodeProto(name="b")])
    copy = insert_message(graph.node, 1, odd)
    assert copy.SerializeToString() == odd.SerializeToString()
    assert [node.name for node in graph.node] == ["a", "", "b"]
    copy.name = "mine"
    assert graph.node[1].name == "mine"
    assert odd.name == ""


def test_another_type_is_refused_without_a_trace() -> None:
    graph = onnx.GraphProto(node=[onnx.NodeProto(name="a")])
    with pytest.raises(TypeError):
        insert_message(graph.node, 0, onnx.TensorProto())
    assert [node.name for node in graph.node] == ["a"]
