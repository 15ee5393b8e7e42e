"""Models that onnxruntime runs are run without alarm; those that it refuses to load are refused by `run` too."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.errors import Diagnostic, RunError

FLOAT = TensorProto.FLOAT
X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
OrtRun = Callable[..., dict[str, Any]]


def info(name: str, shape: Any, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: list[onnx.NodeProto], inputs: Any = None, outputs: Any = None, opset: int = 17, ir: int = 9, **graph: Any
) -> onnx.ModelProto:
    inputs = inputs or [info("x", [2, 3])]
    graph_proto = helper.make_graph(nodes, "g", inputs, outputs or [info("y", None)], **graph)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph_proto, opset_imports=imports if ir >= 3 else [], ir_version=ir)


def own_findings(opened: onnxlab.Model) -> list[Diagnostic]:
    """The problems of a model but for a warning that onnx's own checker, which onnxruntime does not ask, refuses it."""
    return [problem for problem in opened.check() if problem.code != "refused-by-onnx"]


def test_a_sparse_initializer_is_read_as_a_dense_one(ort_run: OrtRun) -> None:
    values, indices = helper.make_tensor("w", FLOAT, [2], [5.0, 7.0]), helper.make_tensor("", 7, [2], [0, 4])
    sparse = helper.make_sparse_tensor(values, indices, [2, 3])
    add = helper.make_node("Add", ["x", "w"], ["y"])
    proto = model([add], outputs=[info("y", [2, 3])], sparse_initializer=[sparse])
    opened = onnxlab.Model(proto)
    assert own_findings(opened) == []
    assert str(opened.fact("y")) == "float32[2,3]"
    np.testing.assert_array_equal(opened.run(X)["y"], ort_run(proto.SerializeToString(), {"x": X})["y"])


@pytest.mark.parametrize(
    ("activation", "parameters"),
    [
        ("Elu", (0.5,)), ("Softplus", ()), ("Softsign", ()), ("ThresholdedRelu", (0.5,)), ("Celu", (0.5,)),
        ("Selu", (1.6, 0.0, 1.05)), ("ParametricSoftplus", (0.5, 2.0)), ("ScaledTanh", (0.5, 2.0)),
        ("LeakyRelu", (0.2,)), ("HardSigmoid", (0.3, 0.4)), ("Relu", ()), ("Tanh", ()), ("Sigmoid", ()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("providers", [None, ["numba", "numpy"]])
def test_a_fused_gemm_ends_with_any_activation_of_onnxruntime(
    activation: str, parameters: tuple[float, ...], providers: list[str] | None, ort_run: OrtRun
) -> None:
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    attributes: dict[str, Any] = {"activation": activation, **dict(zip(names, parameters, strict=False))}
    weight = onnx.numpy_helper.from_array(np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2), "w")
    node = helper.make_node("FusedGemm", ["x", "w"], ["y"], domain="com.microsoft", **attributes)
    proto = model([node], initializer=[weight])
    ours = onnxlab.Model(proto).run(X, providers=providers)["y"]
    np.testing.assert_allclose(ours, ort_run(proto.SerializeToString(), {"x": X})["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("pads", [0, 1])
@pytest.mark.parametrize("shapes", [((1, 0, 4, 4), (2, 0, 3, 3)), ((0, 2, 4, 4), (2, 2, 3, 3)), ((1, 0, 8), (2, 0, 3))])
@pytest.mark.parametrize("providers", [None, ["numba", "numpy"]])
def test_a_convolution_of_nothing_is_its_bias(shapes: Any, pads: int, providers: list[str] | None) -> None:
    x, w = (np.zeros(shape, np.float32) for shape in shapes)  # onnxruntime hangs in some of these
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], pads=[pads] * 2 * (x.ndim - 2))
    proto = model([node], [info("x", x.shape), info("w", w.shape), info("b", [2])])
    ours = onnxlab.Model(proto).run({"x": x, "w": w, "b": np.array([3, 4], np.float32)}, providers=providers)["y"]
    assert ours.shape == (len(x), 2, *(size - 2 + 2 * pads for size in x.shape[2:]))
    np.testing.assert_array_equal(ours, np.broadcast_to([[3], [4]], (*ours.shape[:2], 1)).reshape(
        len(x), 2, *(1,) * (x.ndim - 2)) + 0 * ours)  # fmt: skip


@pytest.mark.parametrize("ir", [1, 2])
def test_a_model_of_before_opsets_is_inferred_and_checked_as_opset_1(ir: int) -> None:
    add = helper.make_node("Add", ["x", "b"], ["s"], broadcast=1, axis=0)
    proto = model([add, helper.make_node("Reshape", ["s"], ["y"], shape=[3, 2])], [info("x", [2, 3]), info("b", [2])],
                  [info("y", [3, 2])], ir=ir)  # fmt: skip
    opened = onnxlab.Model(proto)
    assert own_findings(opened) == []
    assert str(opened.fact("y")) == "float32[3,2]"
    assert opened.run({"x": X, "b": np.ones(2, np.float32)})["y"].shape == (3, 2)


def test_an_axis_of_a_scalar_is_refused_as_by_onnxruntime_and_said_so(ort_run: OrtRun) -> None:
    proto = model([helper.make_node("Squeeze", ["x"], ["y"], axes=[0])], [info("x", [])], opset=11)
    opened = onnxlab.Model(proto)
    assert "a scalar has no axes" in str(opened.diagnostics[0])
    with pytest.raises(RunError, match="a scalar has no axes"):
        opened.run(np.float32(1))
    with pytest.raises(Exception, match="Squeeze"):
        ort_run(proto.SerializeToString(), {"x": np.array(1, np.float32)})


ADD = helper.make_node("Add", ["x", "b"], ["y"])
RELU = helper.make_node("Relu", ["x"], ["y"])
REFUSED = {
    "two element types": lambda: model([ADD], [info("x", [2, 3]), info("b", [2, 3], TensorProto.INT64)]),
    "unknown attribute": lambda: model([helper.make_node("Relu", ["x"], ["y"], alpha=1.0)]),
    "attribute given twice": lambda: _twice(model([helper.make_node("Elu", ["x"], ["y"], alpha=1.0)])),
    "attribute of another type": lambda: model([helper.make_node("Elu", ["x"], ["y"], alpha=1)]),
    "attribute missing": lambda: model([helper.make_node("Concat", ["x", "x"], ["y"])]),
    "too many inputs": lambda: model([helper.make_node("Relu", ["x", "x"], ["y"])]),
    "two writers": lambda: model([RELU, helper.make_node("Neg", ["x"], ["y"])]),
    "a type that came later": lambda: model([RELU], [info("x", [2, 3], TensorProto.INT32)], opset=6),
    "a deprecated operator": lambda: model([helper.make_node("Upsample", ["x", "s"], ["y"])], opset=10, initializer=[
        onnx.numpy_helper.from_array(np.ones(2, np.float32), "s")]),
    "an output of another type": lambda: model([RELU], outputs=[info("y", [2, 3], TensorProto.INT64)]),
    "an output that is no sequence": lambda: model(
        [RELU], outputs=[helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)]),
    "opset 99": lambda: model([RELU], opset=99),
    "opset 2**31 - 1": lambda: model([RELU], opset=2**31 - 1),
    "ai.onnx.ml 99": lambda: _with_import(model([RELU]), "ai.onnx.ml", 99),
    "IR version 99": lambda: model([RELU], ir=99),
}  # fmt: skip


def _twice(proto: onnx.ModelProto) -> onnx.ModelProto:
    node = proto.graph.node[0]
    node.attribute.add().CopyFrom(node.attribute[0])
    return proto


def _with_import(proto: onnx.ModelProto, domain: str, version: int) -> onnx.ModelProto:
    proto.opset_import.add(domain=domain, version=version)
    return proto


def fed(proto: onnx.ModelProto) -> dict[str, Any]:
    types = {formal.name: formal.type.tensor_type.elem_type for formal in proto.graph.input}
    return {name: X.astype(helper.tensor_dtype_to_np_dtype(elem)) for name, elem in types.items()}


@pytest.mark.parametrize("fault", REFUSED)
@pytest.mark.parametrize("providers", [None, ["numpy"]])
def test_a_run_refuses_what_onnxruntime_does_not_load(fault: str, providers: Any, ort_run: OrtRun) -> None:
    proto = REFUSED[fault]()
    with pytest.raises(Exception, match=r"."):
        ort_run(proto.SerializeToString(), fed(proto))
    opened = onnxlab.Model(proto)
    assert any(problem.severity == "error" or problem.code == "declared-type" for problem in opened.check())
    with pytest.raises(RunError, match="onnxruntime refuses such a model too: strict=False runs it all the same"):
        opened.run(fed(proto), providers=providers)
    if fault not in ("too many inputs", "attribute missing", "a deprecated operator", "two writers"):
        assert opened.run(fed(proto), providers=providers, strict=False)["y"].shape == (2, 3)
        with pytest.raises(RunError, match="strict=False"):
            opened.run(fed(proto), providers=providers)


@pytest.mark.parametrize("node", [
    helper.make_node("Constant", [], ["y"], value_floats=[1.0]), helper.make_node("Neg", ["x"], ["z"]),
])  # fmt: skip
def test_an_output_whose_declared_type_onnxruntime_does_not_compare_is_no_reason(node: Any, ort_run: OrtRun) -> None:
    declared = ("y", [1]) if node.op_type == "Constant" else ("x", [2, 3])
    proto = model([node], outputs=[info(*declared, TensorProto.INT64)])
    assert [problem.code for problem in own_findings(onnxlab.Model(proto))] == ["declared-type"]
    ort_run(proto.SerializeToString(), {"x": X})
    assert len(onnxlab.Model(proto).run(X)) == 1


def test_an_edit_that_changes_the_type_of_an_output_changes_its_declaration_and_runs() -> None:
    opened = onnxlab.Model(model([RELU]))
    opened.nodes[0].op_type = "IsNaN"
    assert opened.run(X)["y"].dtype == bool
    wrong = onnxlab.Model(model([RELU], outputs=[info("y", [2, 3], TensorProto.INT64)]))
    with pytest.raises(RunError, match="'y' is declared as int64"):
        wrong.run(X)
    wrong.declarations("refresh")
    assert wrong.run(X)["y"].dtype == np.float32


def test_what_the_outputs_do_not_need_is_not_refused_and_an_edit_mends_it() -> None:
    wrong = helper.make_node("Neg", ["y"], ["z"], name="wrong", foo=1)
    opened = onnxlab.Model(model([RELU, wrong], outputs=[info("y", [2, 3]), info("z", [2, 3])]))
    np.testing.assert_array_equal(opened.run(X, ["y"])["y"], np.maximum(X, 0))
    with pytest.raises(RunError, match="no attribute 'foo'") as caught:
        opened.run(X)
    assert caught.value.node == "wrong"
    with pytest.raises(RunError, match="no attribute 'foo'"):
        opened.subgraph(["wrong"]).run()
    np.testing.assert_array_equal(opened.run({"x": X, "z": X})["z"], X)  # fed: nothing makes it
    del opened.nodes["wrong"].attributes["foo"]
    np.testing.assert_array_equal(opened.run(X)["z"], -np.maximum(X, 0))
    opened.undo()
    with pytest.raises(RunError, match="no attribute 'foo'"):
        opened.run(X)


def test_bodies_and_functions_that_the_outputs_need_are_judged_too() -> None:
    text = """<ir_version: 9, opset_import: ["" : 17, "local" : 1]>
        g (float[2, 3] x, bool c) => (float[2, 3] y, float[2, 3] z) {
            y = If (c) <then_branch = t () => (float[2, 3] a) { a = Neg <foo = 1> (x) },
                        else_branch = e () => (float[2, 3] b) { b = Abs (x) }>
            z = local.f (x)
        }
        <opset_import: ["" : 17], domain: "local"> f (p) => (q) { q = Relu <foo = 1> (p) }"""
    opened = onnxlab.Model(onnx.parser.parse_model(text))
    for name in "yz":
        with pytest.raises(RunError, match="no attribute 'foo'"):
            opened.run({"x": X, "c": False}, [name])
    assert opened.run({"x": X, "c": False}, strict=False)["z"].shape == (2, 3)


def test_versions_that_a_runtime_does_not_read_are_told() -> None:
    newest, ir = onnx.defs.onnx_opset_version(), onnx.IR_VERSION
    assert onnxlab.Model(model([RELU], outputs=[info("y", [2, 3])], opset=newest, ir=ir)).check() == []
    opened = onnxlab.Model(model([RELU], outputs=[info("y", [2, 3])]))
    assert opened.check(providers=["onnxruntime", "numpy"]) == []
    assert onnxlab.check(opened.proto, providers=["onnxruntime", "numpy"]) == []
    opened = onnxlab.Model(model([RELU], outputs=[info("y", [2, 3])], opset=99, ir=ir + 1))
    codes = [problem.code for problem in opened.check(providers=["onnxruntime"])]
    assert codes == ["ir-version", "opset-newer", "runtime-ir-version", "runtime-opset"]
    assert [problem.code for problem in onnxlab.check(opened.proto, providers=["onnxruntime"])] == codes
    assert [problem.code for problem in onnxlab.check(opened, providers=["onnxruntime"])] == codes
    message = str(opened.check(providers=["onnxruntime"])[-1])
    assert "onnxruntime reads version" in message
    assert "convert_opset" in message
