"""Changes that the tables of a graph do not allow: refused as edits are, and nothing is changed."""

import onnx
import pytest

import onnxlab
from onnxlab.errors import EditError
from onnxlab.graph.edit.graph_changes import ReplaceEntry, SetFormal

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }"""


@pytest.mark.parametrize("old", ["w", ""])
def test_an_entry_keeps_its_name(old: str) -> None:
    proto = onnx.parser.parse_model(TEXT)
    proto.graph.initializer[0].name = old
    model = onnxlab.load(proto)
    before = model.to_bytes()
    other = onnx.TensorProto(name="other", data_type=onnx.TensorProto.FLOAT, dims=[0])
    with pytest.raises(EditError, match="use RenameValue to make it 'other'"):
        model.graph.apply(ReplaceEntry(model.graph.main.id, "initializer", 0, other))
    assert model.to_bytes() == before


def test_a_formal_keeps_its_name() -> None:
    model = onnxlab.load(onnx.parser.parse_model(TEXT))
    before = model.to_bytes()
    with pytest.raises(EditError, match="use RenameValue to make it 'z'"):
        model.graph.apply(SetFormal(model.graph.main.id, "input", 0, onnx.ValueInfoProto(name="z")))
    assert model.to_bytes() == before
