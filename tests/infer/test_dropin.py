"""infer_shapes in the place of onnx's: signature, results, exceptions."""

from pathlib import Path

import onnx
import onnx.shape_inference
import pytest
from onnx import TensorProto, helper

from onnxlab.infer import infer_shapes
from tests.corpus import Corpus
from tests.infer.models import shape_chain


def types(model: onnx.ModelProto) -> dict[str, onnx.TypeProto]:
    return {info.name: info.type for info in [*model.graph.value_info, *model.graph.output]}


@pytest.mark.parametrize("name", ["light_squeezenet", "bert_base", "silero_vad_if", "functions_ts"])
def test_it_knows_what_onnx_knows(name: str, corpus: Corpus) -> None:
    model = onnx.load(corpus[name], load_external_data=False)
    del model.graph.value_info[:]
    theirs = types(onnx.shape_inference.infer_shapes(model, data_prop=True))
    ours = types(infer_shapes(model, data_prop=True))
    for value, declared in theirs.items():
        if declared.HasField("tensor_type"):
            assert ours[value].tensor_type.elem_type == declared.tensor_type.elem_type, value
            if declared.tensor_type.HasField("shape"):
                assert len(ours[value].tensor_type.shape.dim) == len(declared.tensor_type.shape.dim), value
                for mine, dim in zip(ours[value].tensor_type.shape.dim, declared.tensor_type.shape.dim, strict=True):
                    assert not dim.dim_value or mine.dim_value == dim.dim_value, value


def test_bytes_are_taken_and_the_argument_is_left_alone() -> None:
    model = shape_chain().proto
    before = model.SerializeToString()
    inferred = infer_shapes(before, data_prop=True)
    assert model.SerializeToString() == before
    dims = types(inferred)["flat"].tensor_type.shape.dim
    assert [dims[0].dim_param, dims[1].dim_value] == ["batch*seq", 64]
    body = next(node for node in inferred.graph.node if node.op_type == "If").attribute[0].g
    assert body.output[0].type.tensor_type.shape.dim[0].dim_param == "2*batch*seq"


def test_data_prop_decides_whether_computed_sizes_are_followed() -> None:
    dims = types(infer_shapes(shape_chain().proto))["flat"].tensor_type.shape.dim
    assert [dim.dim_param for dim in dims] == ["unk__0", "unk__1"]


@pytest.mark.parametrize("argument", ["model.onnx", Path("model.onnx"), None, 3])
def test_other_arguments_are_refused(argument: object) -> None:
    with pytest.raises(TypeError, match="ModelProto or bytes"):
        infer_shapes(argument)  # type: ignore[arg-type]


def wrong() -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [2]), ("y", [3])))
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "y"], ["z"])], "g", [x, y], [onnx.ValueInfoProto(name="z")]
    )
    return helper.make_model(graph)


def test_strict_mode_raises_and_the_other_does_not() -> None:
    assert types(infer_shapes(wrong()))["z"].tensor_type.elem_type == TensorProto.FLOAT
    with pytest.raises(onnx.shape_inference.InferenceError, match=r"Add#0"):
        infer_shapes(wrong(), strict_mode=True)


def test_check_type_raises_for_a_type_that_does_not_fit() -> None:
    model = wrong()
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_value = 2
    infer_shapes(model)
    with pytest.raises(onnx.shape_inference.InferenceError, match="same type"):
        infer_shapes(model, check_type=True)
