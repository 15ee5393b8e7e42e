"""Nodes that break the rules of their operators: providers refuse them, and the run names the node."""

import warnings

import numpy as np
import pytest
from onnx import AttributeProto, TensorProto, helper

import onnxlab
from onnxlab import OnnxlabError
from onnxlab.errors import ProviderError, RunError
from onnxlab.execution.base.provider import Provider, SubgraphClaim
from onnxlab.execution.numba.provider import NumbaProvider
from onnxlab.execution.planning.loop_carried import invariant_inputs

X = [("x", TensorProto.FLOAT, [2, 3])]


def body(*names):
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("vo", *names)]
    nodes = [helper.make_node("Identity", ["v"], ["vo"])]
    return helper.make_graph(nodes, "b", [helper.make_tensor_value_info("v", TensorProto.FLOAT, [3])], outputs)


def model(*nodes, inputs=X, initializers=()):
    infos = [helper.make_tensor_value_info(*arguments) for arguments in inputs]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(list(nodes), "g", infos, [output], list(initializers))
    return onnxlab.load(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
    )


def node(op_type, inputs=("x",), outputs=("y",), **attributes):
    return helper.make_node(op_type, list(inputs), list(outputs), name="faulty", **attributes)


def odd(node_proto, kind):
    node_proto.attribute[0].type = kind
    return node_proto


FAULTY = {
    "Conv without a weight": (node("Conv"), [("x", TensorProto.FLOAT, [1, 1, 4, 4])]),
    "Gather without indices": (node("Gather"), X),
    "Shape without an input": (node("Shape", ()), X),
    "If without a condition": (node("If", (), then_branch=body(), else_branch=body()), X),
    "If whose branches are numbers": (node("If", then_branch=1, else_branch=2), [("x", TensorProto.BOOL, [1])]),
    "Einsum without an equation": (node("Einsum"), X),
    "Einsum whose equation is bytes of its own": (node("Einsum", equation=["ij->i"]), X),
    "Scan without num_scan_inputs": (node("Scan", body=body()), X),
    "MaxPool with a kernel of another type": (
        odd(node("MaxPool", kernel_shape=[2, 2]), AttributeProto.TYPE_PROTO), [("x", TensorProto.FLOAT, [1, 1, 4, 4])]
    ),
    "Castlike alone": (node("CastLike"), X),
    "LSTM alone": (node("LSTM", hidden_size=3), [("x", TensorProto.FLOAT, [1, 1, 4])]),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTY)
def test_nodes_with_faults_are_refused_by_name(name):
    faulty, inputs = FAULTY[name]
    loaded = model(faulty, inputs=inputs)
    for providers in (["numba", "numpy"], ["onnxruntime", "numpy"]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            partition = loaded.partition(providers)
        assert [part.provider for part in partition.parts] == ["numpy"]
        assert [(refusal.label, refusal.provider) for refusal in partition.refusals] == [("faulty", providers[0])]
    feeds = loaded.sample_inputs()
    for providers in (None, [NumbaProvider(background=False, least=0), "numpy"]):
        with pytest.raises(OnnxlabError, match="faulty"):
            loaded.run(feeds, providers=providers)


def test_a_node_without_outputs_is_no_obstacle():
    loaded = model(node("Shape", ("x",), ()), helper.make_node("Relu", ["x"], ["y"]))
    assert "Relu" in str(loaded.partition(["numba", "numpy"]))
    assert loaded.run(loaded.sample_inputs(), providers=[NumbaProvider(background=False, least=0), "numpy"])


def test_a_provider_that_fails_gets_nothing_and_is_named():
    class Broken(Provider):
        name = "broken"

        def get_capability(self, view):
            raise ZeroDivisionError("by nought")

        def compile(self, part, view):
            raise AssertionError("it has nothing")

    loaded = model(helper.make_node("Relu", ["x"], ["y"], name="relu"))
    with pytest.warns(UserWarning, match="broken failed when it was asked"):
        partition = loaded.partition([Broken(), "numpy"])
    assert [part.provider for part in partition.parts] == ["numpy"]
    reason = "broken failed when it was asked for its nodes (ZeroDivisionError: by nought)"
    assert f"broken left relu: {reason}" in str(partition)


CLAIMS = [[5], [None], 5, None, [SubgraphClaim(3)], [SubgraphClaim(("relu",))], [SubgraphClaim(([],))], [[1, 2]], "no"]


@pytest.mark.parametrize("claims", CLAIMS, ids=str)
def test_a_provider_that_claims_nonsense_gets_nothing_and_is_named(claims):
    class Odd(Provider):
        name = "odd"

        def get_capability(self, view):
            return claims

        def compile(self, part, view):
            raise AssertionError("it has nothing")

    loaded = model(helper.make_node("Relu", ["x"], ["y"], name="relu"))
    with pytest.warns(UserWarning, match="odd failed when it was asked for its nodes"):
        partition = loaded.partition([Odd(), "numpy"])
    assert "odd left relu: odd failed" in str(partition)
    with pytest.warns(UserWarning, match="odd failed"):
        assert loaded.run(loaded.sample_inputs(), providers=[Odd()])


@pytest.mark.parametrize(
    "providers",
    [["unknown"], "unknown", 5, [5], [None], [["numpy"]], [NumbaProvider], [object()], [{}]],
    ids=["unknown", "text", "number", "number in list", "none", "nested", "class", "object", "dict"],
)
def test_what_is_no_provider_is_refused_by_name(providers):
    loaded = model(helper.make_node("Relu", ["x"], ["y"], name="relu"))
    calls = [
        lambda: loaded.partition(providers),
        lambda: loaded.run(loaded.sample_inputs(), providers=providers),
        lambda: loaded.check(providers=providers),
        lambda: onnxlab.check(loaded.proto, providers=providers),
    ]
    for call in calls:
        with pytest.raises(ProviderError, match="numpy"):
            call()


def test_an_absent_last_input_reaches_onnxruntime_as_none():
    scale = helper.make_tensor("s", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0])
    loaded = model(node("LayerNormalization", ("x", "s", ""), axis=-1), initializers=[scale])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert [part.provider for part in loaded.partition(["onnxruntime", "numpy"]).parts] == ["onnxruntime"]
    expected = loaded.run({"x": x})["y"]
    assert np.allclose(loaded.run({"x": x}, providers=["onnxruntime", "numpy"])["y"], expected, atol=1e-5)


def test_copies_in_a_circle_end():
    class Copy:
        op_type, domain = "Identity", ""

        def __init__(self, inputs, outputs):
            self.inputs, self.outputs = inputs, outputs

    class Body:
        nodes = (Copy(("a",), ("b",)), Copy(("b",), ("a",)), Copy((), ("c",)), Copy(("d",), ()))
        inputs, outputs = ("i", "c", "v"), ("go", "a")

    class Loop:
        op_type, domain, inputs = "Loop", "", ("m", "g", "w")

    assert list(invariant_inputs(Loop, Body)) == []


def test_values_of_training_graphs_are_refused_by_name():
    loaded = model(helper.make_node("Relu", ["x"], ["y"]))
    info = loaded.proto.training_info.add()
    info.algorithm.CopyFrom(body())
    trained = onnxlab.load(loaded.proto.SerializeToString())
    path = next(trained.value(vid).path for vid, value in trained.graph.values.items() if value.name == "vo")
    with pytest.raises(OnnxlabError, match="a graph of training: no run of the model runs it"):
        trained.run(trained.sample_inputs(), outputs=[path])


def test_inputs_are_made_up_for_nodes_with_faults():
    of_shape = [("x", TensorProto.FLOAT, [2, 3]), ("s", TensorProto.UINT16, [2])]
    assert model(node("Reshape", ("x", "s")), inputs=of_shape).sample_inputs()["s"].min() >= 0
    indices = [("x", TensorProto.FLOAT, [2, 3]), ("i", TensorProto.INT64, [2])]
    loaded = model(odd(node("Gather", ("x", "i"), axis=1), AttributeProto.FLOATS), inputs=indices)
    assert loaded.sample_inputs()["i"].shape == (2,)


@pytest.mark.parametrize(
    "attributes",
    [{}, {"value": 3}, {"value": [1.0]}, {"sparse_value": 1.5}, {"value_int": "a"}, {"value_strings": 3}],
    ids=str,
)
@pytest.mark.parametrize("output", ["v", "y"])
@pytest.mark.parametrize("providers", [["numpy"], [NumbaProvider(background=False), "numpy"]], ids=["numpy", "numba"])
def test_a_constant_of_a_wrong_attribute_is_refused(attributes, output, providers):
    lab = model(node("Constant", [], ["v"], **attributes), node("Neg", ["v"]), inputs=[])
    with pytest.raises(RunError, match=r"Constant.*(expected|invalid)"):
        lab.run({}, [output], providers=providers, strict=False)
