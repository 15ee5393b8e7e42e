"""The signature of a node, read off its bytes: equal for equal operators and attributes, whatever the names."""

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from onnxlab.infer.walk.operator_catalogue import signature

names = st.lists(st.text(max_size=300), max_size=3)
texts = st.text(max_size=200)


@given(names, names, texts, texts, texts, st.integers(-(2**40), 2**40))
@pytest.mark.slow
def test_names_and_notes_make_no_difference(
    inputs: list[str], outputs: list[str], name: str, doc: str, domain: str, number: int
) -> None:
    bare = onnx.NodeProto(op_type="Conv", domain=domain, overload="o")
    bare.attribute.append(helper.make_attribute("group", number))
    bare.attribute.append(helper.make_attribute('"\x04Conv', b"*\x12\x32" * 60))
    node = onnx.NodeProto(input=inputs, output=outputs, name=name, doc_string=doc)
    node.MergeFrom(bare)
    node.metadata_props.add(key="k", value=doc)
    node.device_configurations.add(configuration_id="d")
    assert signature(node.SerializeToString(), annotated=True) == bare.SerializeToString()
    node.ClearField("doc_string")
    del node.metadata_props[:], node.device_configurations[:]
    assert signature(node.SerializeToString(), annotated=False) == bare.SerializeToString()


def test_a_node_without_an_operator_has_a_signature_too() -> None:
    assert signature(onnx.NodeProto(input=["x"]).SerializeToString(), annotated=True) == b""
    assert signature(b"", annotated=False) == b""
