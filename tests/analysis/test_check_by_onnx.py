"""The findings of onnx's checker on whole models: without weights, and not where it would take too long."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import onnxlab
from onnxlab.analysis import check_by_onnx
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from tests.hostile.bases import node_cases
from tests.infer.support.hostile_models import nested_functions, text

WEIGHT = np.zeros((300, 300), np.float32)


def refusals(proto: onnx.ModelProto) -> list[onnxlab.errors.Diagnostic]:
    graph = ModelGraph(proto)
    return check_by_onnx.refusals(graph, Inference(graph).all_facts())


def with_weight(op_type: str, columns: int) -> onnx.ModelProto:
    """`op_type` of a product with a weight of 360 kB; named like the node cases name none."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node(op_type, ["m"], ["y"], name="last", perm=[0, 0]),
    ]
    infos = [helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", [2, 300]), ("y", [columns, 2]))]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], [numpy_helper.from_array(WEIGHT, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize("external", [False, True])
def test_weights_are_left_out_and_the_node_is_named(external: bool, tmp_path: Path) -> None:
    proto = with_weight("Transpose", 300)
    if external:
        tensor = proto.graph.initializer[0]
        (tmp_path / "w.bin").write_bytes(tensor.raw_data)
        onnx.external_data_helper.set_external_data(tensor, "w.bin")
        tensor.ClearField("raw_data")
    assert len(check_by_onnx.outline(proto)) < 1000
    (problem,) = refusals(proto)
    assert (problem.code, problem.severity, problem.node) == ("refused-by-onnx", "warning", 6)
    assert problem.message.startswith("onnx refuses last (Transpose): ")
    proto.graph.node[1].attribute[0].ints[:] = [1, 0]
    assert refusals(proto) == []


def test_small_weights_stay() -> None:
    proto = text("y = Reshape(x, s)", initializers="int64[2] s = {3, -1}")
    proto.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(1, [None, None]))
    assert refusals(proto) == []
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array([-1, -1]), "s"))
    (problem,) = refusals(proto)
    assert "multiple -1 dimensions" in problem.message


def test_what_would_take_onnx_too_long_is_not_asked() -> None:
    assert refusals(nested_functions(40)) == []
    for nodes, dims in (("y = Unsqueeze(x, d)", 2**40), ("y = Reshape(x, d)", 2**40)):
        proto = text(nodes)
        proto.graph.input.append(helper.make_tensor_value_info("d", 7, [dims]))
        (problem,) = refusals(proto)
        assert (problem.code, problem.severity) == ("list-too-long", "warning")
        assert "its input 'd' lists more than 4096 sizes or axes" in problem.message


@pytest.mark.parametrize("equation", [b"ij\x86,jk", b"i.,jk", b"i1,jk", b"ij-jk", b"....,jk", b"->->"])
def test_equations_that_onnx_reads_for_ever(equation: bytes) -> None:
    node = helper.make_node("Einsum", ["x", "x"], ["y"])
    node.attribute.add(name="equation", type=onnx.AttributeProto.STRING).s = equation
    infos = [helper.make_tensor_value_info(name, 1, [3, 3]) for name in "xy"]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    assert onnxlab.check(proto)


def test_long_vectors_that_list_no_axes_are_asked_about() -> None:
    node = helper.make_node("NegativeLogLikelihoodLoss", ["x", "target"], ["y"])
    infos = [helper.make_tensor_value_info("x", 1, [3, 5]), helper.make_tensor_value_info("target", 7, [10_000])]
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", 1, [])])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    (problem,) = onnxlab.check(proto)
    assert "dimension value mismatch" in problem.message


@pytest.mark.slow
def test_valid_cases_are_not_refused() -> None:
    cases = node_cases()
    assert len(cases) > 1000
    assert [case.name for case in cases[::7] if refusals(onnx.ModelProto.FromString(case.data))] == []
