"""Facts of serialized Constants, against those of their messages."""

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import onnxlab
from onnxlab import dtypes
from onnxlab.graph.protos import tensors, wire_format
from onnxlab.infer.facts.stored_constants import fact_of_constant
from onnxlab.infer.facts.type_protos import fact_of_tensor
from onnxlab.shapes import Fact

shapes = st.lists(st.integers(0, 5) | st.sampled_from([127, 128, 300, 2**62]), max_size=3)
fields = st.sampled_from(["raw_data", "float_data", "int32_data", "int64_data", "double_data", "name", "doc_string"])


def found(tensor: onnx.TensorProto) -> Fact | None:
    node = helper.make_node("Constant", [], ["y"], value=tensor)
    data = onnx.GraphProto(node=[node], name="g").SerializeToString()
    (block,) = wire_format.heads(data, 0, len(data), wire_format.tag(onnx.GraphProto, "node"))
    constant = wire_format.constant(data, *block.signatures, *block.ends)
    return None if constant is None else fact_of_constant(constant)


@given(shapes, st.sampled_from([*dtypes.ELEM_TYPES, 0, 1000, -1]), st.lists(fields, max_size=3), st.integers(0, 9))
def test_what_is_found_is_what_the_message_says(shape: list[int], kind: int, filled: list[str], count: int) -> None:
    tensor = onnx.TensorProto(dims=shape, data_type=kind)
    for field in filled:
        value: Any = {"raw_data": b"\x80\x3f" * 2 * count, "name": "n" * 30 * count, "doc_string": "d"}.get(field)
        tensor.MergeFrom(onnx.TensorProto(**{field: range(count) if value is None else value}))
    fact = found(tensor)
    assert fact is None or fact is fact_of_tensor(tensor, tensors.to_array)


@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (300,), (2, 150)])
@pytest.mark.parametrize("dtype", ["f4", "i8"])
@pytest.mark.parametrize("raw", [True, False])
def test_usual_tensors_need_no_message(shape: tuple[int, ...], dtype: str, raw: bool) -> None:
    array = np.random.default_rng(0).integers(-(2**60), 2**60, shape).astype(dtype)
    array.flat[0] = -1
    elem_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    tensor = helper.make_tensor("t", elem_type, shape, array) if not raw else numpy_helper.from_array(array, "t" * 200)
    fact = found(tensor)
    assert fact is not None
    assert fact is fact_of_tensor(tensor, tensors.to_array)
    assert fact.shape == shape
    assert fact.value is None or fact.value.tobytes() == array.tobytes()
    assert (fact.value is None) == (array.size > (16 if dtype == "f4" else 256))


@pytest.mark.parametrize("dims", [[3, -1], [-1, -1], [-1], [0, -1]])
def test_negative_dims_are_no_shape(dims: list[int]) -> None:
    tensor = onnx.TensorProto(name="w", dims=dims, data_type=onnx.TensorProto.INT64, int64_data=[0, 0, 1])
    nodes = [onnx.helper.make_node("Constant", [], ["c"], value=tensor)]
    model = onnxlab.load(onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [], [], [tensor])))
    assert {model.fact(value).shape for value in model.graph.values} == {None}
    read = found(tensor)
    assert read is None or read.shape is None
    assert "tensor-shape" in {problem.code for problem in model.check()}
