"""Operations by facts against those of real runs."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.analysis.flops import flops_by_node
from tests.support.corpus import path


@pytest.mark.parametrize("name", ["light_squeezenet", "surfaces_mlp"])
def test_facts_count_what_a_run_of_one_counts(name: str) -> None:
    model = onnxlab.load(path(name))
    feeds = model.runner.sample_inputs(sizes={})
    first = {key: array[:1] for key, array in feeds.items()}
    ran: dict[int, int] = {}
    for entry in model.profile(first, runs=1).entries:
        ran[entry.node] = ran.get(entry.node, 0) + entry.flops
    counts = flops_by_node(model.graph, model.fact)
    assert {node: count for node, count in ran.items() if count} == {node: counts[node] for node in ran if ran[node]}


def test_free_dims_count_once_and_unknown_ranks_nothing() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"], name="product"),
        helper.make_node("Relu", ["y"], ["z"], name="relu"),
        helper.make_node("Mystery", ["z"], ["u"], name="mystery", domain="unknown"),
        helper.make_node("Neg", ["u"], ["v"], name="neg"),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [value("x", TensorProto.FLOAT, ["n", 2 * 8])], [value("v", TensorProto.FLOAT, None)],
        [helper.make_tensor("w", TensorProto.FLOAT, [16, 4], np.ones(64, np.float32))],
    )  # fmt: skip
    model = onnxlab.load(helper.make_model(graph))
    counts = {model.node(node).name: count for node, count in flops_by_node(model.graph, model.fact).items()}
    assert counts == {"product": 2 * 4 * 16, "relu": 4}
