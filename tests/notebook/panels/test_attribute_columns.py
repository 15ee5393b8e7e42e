"""Attributes as columns: what nodes set, what their operators take by default, and what follows from a weight."""

import onnx.parser

import onnxlab
from onnxlab.notebook.panels import attribute_columns

TEXT = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,2,9,9] x) => (float[1,4,3,3] y)
<float[2,2,3,3] v = {VS}, float[4,2,1,1] w = {WS}> {
    a = Conv<strides = [2, 2]>(x, v)
    b = MaxPool<kernel_shape = [2, 2]>(a)
    y = Conv<kernel_shape = [1, 1], pads = [1, 1, 0, 0]>(b, w)
}"""


def column(name: str) -> list[str]:
    """The text of each node in order, "" for none."""
    zeros = {"VS": f"{{{','.join(['0'] * 36)}}}", "WS": f"{{{','.join(['0'] * 8)}}}"}
    text = TEXT.replace("{VS}", zeros["VS"]).replace("{WS}", zeros["WS"])
    proto = onnx.parser.parse_model(text)
    model = onnxlab.load(proto)
    answer = attribute_columns.column(model.graph, name)
    held = {node: answer["texts"][place] for node, place in zip(answer["nodes"], answer["places"], strict=True)}
    return [held.get(node.id, "") for node in model.nodes]


def test_windows_are_searched_by_what_follows_from_the_weight() -> None:
    assert column("kernel_shape") == ["3,3", "2,2", "1,1"]
    assert column("strides") == ["2,2", "1,1", "1,1"]
    assert column("pads") == ["0,0,0,0", "0,0,0,0", "1,1,0,0"]


def test_defaults_are_searched_where_the_operator_has_one() -> None:
    assert column("auto_pad") == ["NOTSET"] * 3
    assert column("ceil_mode") == ["", "0", ""]
    assert column("axis") == ["", "", ""]
