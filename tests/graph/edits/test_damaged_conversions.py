"""Conversions of damaged nodes, and from versions that there are not."""

import numpy as np
import onnx
import onnx.parser
import pytest

from onnxlab.errors import EditError
from onnxlab.model import Model

WHOLE = onnx.TensorProto(data_type=onnx.TensorProto.INT64, dims=[1], raw_data=(1).to_bytes(8, "little"))
TOO_MANY = onnx.TensorProto(data_type=onnx.TensorProto.INT64, dims=[3], raw_data=bytes(24))
TOO_SHORT = onnx.TensorProto(data_type=onnx.TensorProto.INT64, dims=[2], raw_data=bytes(8))
ELSEWHERE = onnx.TensorProto(data_type=onnx.TensorProto.INT64, dims=[1], data_location=onnx.TensorProto.EXTERNAL)


@pytest.mark.parametrize(
    ("operator", "second", "ways", "says"),
    [
        ("Squeeze", TOO_SHORT, (13, 11), "Squeeze"),  # an initializer of another size than it says
        ("Squeeze", ELSEWHERE, (13, 1), "cannot be read"),  # as a Constant, without a file
        ("TopK", TOO_MANY, (10, 9), "TopK"),  # three numbers for one
        ("SequenceMap", WHOLE, (17, 13), "SequenceMap"),  # without a body
    ],
)
def test_a_conversion_of_damaged_nodes_is_refused(
    operator: str, second: onnx.TensorProto, ways: tuple[int, int], says: str
) -> None:
    old, new = ways
    model = onnx.ModelProto(ir_version=8, opset_import=[onnx.OperatorSetIdProto(version=old)])
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 2, 1])
    model.graph.input.append(x)
    if second is ELSEWHERE:
        constant = model.graph.node.add(op_type="Constant", output=["k"])
        constant.attribute.add(name="value", type="TENSOR").t.CopyFrom(second)
    else:
        model.graph.initializer.add(name="k").MergeFrom(second)
    model.graph.node.add(op_type=operator, input=["x", "k"], output=["y"], name="node")
    edited = Model(model)
    before = edited.to_bytes()
    with pytest.raises(EditError, match=says):
        edited.convert_opset(new)
    assert edited.to_bytes() == before


@pytest.mark.parametrize("old", [99, 2**31 - 1, 2**62])
@pytest.mark.parametrize("new", [7, 18, onnx.defs.onnx_opset_version()])
def test_a_version_that_no_schema_is_of_is_left_at_once(old: int, new: int) -> None:
    """Found by a hostile trial: the way down went through all of 2^31 versions."""
    text = f'<ir_version: 8, opset_import: ["" : {old}]> g (float[2, 3] x) => (float[2] y) {{ %s }}'
    equal = onnx.parser.parse_model(text % "y = ReduceMax <keepdims = 0> (x, axes)")
    equal.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1]), "axes"))
    model = Model(equal)
    model.convert_opset(new)
    assert model.opsets == {"": new}
    onnx.checker.check_model(model.proto, full_check=True)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(model.run({"x": x})["y"], [2, 5])


@pytest.mark.parametrize(
    ("old", "new", "node"),
    [(18, 17, "Split <num_outputs = 2> (x)"), (18, 13, "CenterCropPad (x, k)"), (17, 18, "ReduceMean <axes = [1]> (x)"),
     (20, 13, "AffineGrid (x, k)")],
)  # fmt: skip
def test_a_node_without_outputs_is_refused_where_its_operator_changed(old: int, new: int, node: str) -> None:
    text = f'<ir_version: 8, opset_import: ["" : {old}]> g (float[2, 3] x, int64[2] k) => (float[2, 3] y) {{ %s }}'
    model = onnx.parser.parse_model(text % f"z = {node} y = Relu (x)")
    del model.graph.node[0].output[:]
    edited = Model(model)
    before = edited.to_bytes()
    with pytest.raises(EditError, match="it has no output; remove it first"):
        edited.convert_opset(new)
    assert edited.to_bytes() == before
    edited.remove(edited.nodes[0])
    edited.convert_opset(new)
    assert edited.opsets == {"": new}
