"""A model in words."""

import onnx.parser
import pytest

import onnxlab
from onnxlab.render.text import headline, parameters

CONSTANTS = """<ir_version: 9, opset_import: ["" : 18]> g (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}>
    { c = Constant <value = float[4] {1,2,3,4}> () i = Constant <value_ints = [1, 2, 3]> ()
      a = Add(x, w) y = Add(a, c) }"""


def test_parameters_are_those_of_initializers_and_of_constants() -> None:
    model = onnxlab.load(onnx.parser.parse_model(CONSTANTS))
    assert parameters(model) == (4 + 4 + 3, 16 + 16 + 24)
    assert "11 parameters (56 B)" in headline(model)
    model.nodes[1].remove()
    assert parameters(model) == (4 + 4, 16 + 16)


@pytest.mark.parametrize("attribute", ["value_string", "value"])
def test_constants_without_a_size_do_not_disturb(attribute: str) -> None:
    node = onnx.helper.make_node("Constant", [], ["c"])
    node.attribute.append(onnx.AttributeProto(name=attribute, type=onnx.AttributeProto.STRING, s=b"text"))
    graph = onnx.helper.make_graph([node], "g", [], [onnx.ValueInfoProto(name="c")])
    assert parameters(onnxlab.load(onnx.helper.make_model(graph)))[1] == 0
