"""Functions and bodies: one walk for each distinct call, whatever the order; bodies agree with onnxruntime."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from onnxlab.graph import edits
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from tests.infer.support.models import fact, parsed

LAYERS = """
    agraph (float[n, 8] x, float[n, 4] z) => (a, b, c, d)
    { a = local.outer (x)  b = local.outer (a)  c = local.outer (z)  d = local.inner <alpha: float = 0.5> (x) }
    <opset_import: ["" : 20, "local" : 1], domain: "local">
    outer (v) => (w) { u = local.inner (v)  w = local.inner (u) }
    <opset_import: ["" : 20], domain: "local">
    inner <alpha: float = 0.1> (v) => (w) { w = Elu <alpha: float = @alpha> (v) }
"""


class Walks:
    """Counts walks of functions, by name."""

    def __init__(self, graph: ModelGraph, monkeypatch: pytest.MonkeyPatch) -> None:
        from onnxlab.infer.walk.function_calls import Calls

        self.counts: dict[str, int] = {}
        original = Calls._walk

        def walk(calls: Calls, scope: Any, *args: Any) -> Any:
            self.counts[scope.name] = self.counts.get(scope.name, 0) + 1
            return original(calls, scope, *args)

        monkeypatch.setattr(Calls, "_walk", walk)
        self.inference = Inference(graph)
        graph.followers.append(self.inference.follow)

    def taken(self) -> dict[str, int]:
        """The counts since the last time."""
        counts, self.counts = self.counts, {}
        return counts


def test_each_distinct_call_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    walks = Walks(graph := parsed(LAYERS), monkeypatch)
    # outer and inner with float[n,8] and float[n,4]; inner with another alpha
    assert walks.taken() == {"outer": 2, "inner": 3}
    assert [str(fact(graph, name, walks.inference)) for name in "abcd"] == [
        "float32[n,8]", "float32[n,8]", "float32[n,4]", "float32[n,8]",
    ]  # fmt: skip


def test_an_edit_walks_the_calls_whose_inputs_it_changes_and_undo_none(monkeypatch: pytest.MonkeyPatch) -> None:
    walks = Walks(graph := parsed(LAYERS), monkeypatch)
    walks.taken()
    edits.set_shape(graph, graph.values[graph.resolve_value("z")], ["n", 5])
    assert walks.taken() == {"outer": 1, "inner": 1}
    graph.undo()
    assert walks.taken() == {}
    assert dict(walks.inference.facts) == dict(Inference(graph).facts)


def test_an_edit_inside_a_function_walks_what_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    walks = Walks(graph := parsed(LAYERS), monkeypatch)
    walks.taken()
    node = next(node for node in graph.nodes.values() if node.op_type == "Elu")
    edits.set_operator(graph, node, "Shape")
    assert walks.taken()["outer"] >= 1
    assert str(fact(graph, "d", walks.inference)) == "int64[2]"


def _linear(weights: int, rows: int) -> onnx.ModelProto:
    """Layers that pass their weights, [rows, 32], as an attribute."""
    name = "weight"
    reference = onnx.AttributeProto(name="value", ref_attr_name=name, type=onnx.AttributeProto.TENSOR)
    constant = helper.make_node("Constant", [], ["w"])
    constant.attribute.append(reference)
    body = [constant, helper.make_node("MatMul", ["v", "w"], ["y"])]
    function = helper.make_function("local", "Linear", ["v"], ["y"], body, [helper.make_opsetid("", 20)], [name])
    nodes, value = [], "x"
    for layer in range(weights):
        array = np.full((rows, 32), layer, np.float32)
        tensor = onnx.numpy_helper.from_array(array)
        nodes.append(helper.make_node("Linear", [value], [f"h{layer}"], domain="local", weight=tensor))
        value = f"h{layer}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", rows])
    y = helper.make_tensor_value_info(value, TensorProto.FLOAT, None)
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    graph = helper.make_graph(nodes, "g", [x], [y])
    return helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=9)


def test_calls_that_differ_in_large_weights_alone_are_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    walks = Walks(graph := ModelGraph(_linear(12, 32)), monkeypatch)
    assert walks.taken() == {"Linear": 1}
    assert str(fact(graph, "h11", walks.inference)) == "float32[n,32]"


def test_small_weights_count_by_their_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    walks = Walks(ModelGraph(_linear(2, 1)), monkeypatch)
    assert walks.taken() == {"Linear": 2}


def test_a_weight_of_another_size_is_another_call() -> None:
    model = _linear(2, 32)
    call = model.graph.node[1]
    call.attribute[0].t.CopyFrom(onnx.numpy_helper.from_array(np.ones((32, 40), np.float32)))
    assert str(fact(ModelGraph(model), "h1")) == "float32[n,40]"


def test_functions_may_come_in_any_order() -> None:
    model = parsed(LAYERS).proto
    functions = list(model.functions)
    del model.functions[:]
    model.functions.extend(reversed(functions))
    assert str(fact(ModelGraph(model), "c")) == "float32[n,4]"


BODIES = {
    "if": """
        agraph (float[n, 4] x, bool p) => (y)
        { y = If (p) <then_branch = t () => (float[n, 4] a) { a = Relu(x) },
                      else_branch = e () => (float[n, 4] b) { b = Neg(x) }> }
    """,
    "loop": """
        agraph (float[n, 4] x, bool p) => (y, scans) <int64 trips = {3}>
        { y, scans = Loop (trips, p, x) <
            body = b (int64 i, bool c, float[n, 4] s) => (bool d, float[n, 4] t, float[4, n] o)
            { d = Identity(c)  t = Add(s, x)  o = Transpose(s) }> }
    """,
    "scan": """
        agraph (float[n, 4] x, float[2] z) => (y, rows)
        { y, rows = Scan (z, x) <num_scan_inputs = 1, scan_output_axes = [1],
            body = b (float[2] s, float[4] row) => (float[2] t, float[8] o)
            { t = Neg(s)  o = Concat <axis = 0> (row, row) }> }
    """,
    "sequence": """
        agraph (float[n, 4] x) => (y)
        { q = SplitToSequence <axis = 0> (x)
          m = SequenceMap (q) <body = b (float[k, 4] e) => (float[k, 8] o) { o = Concat <axis = 1> (e, e) }>
          y = ConcatFromSequence <axis = 0> (m) }
    """,
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_agree_with_onnxruntime(name: str) -> None:
    graph = parsed(BODIES[name])
    session = onnxruntime.InferenceSession(graph.proto.SerializeToString(), providers=["CPUExecutionProvider"])
    inference = Inference(graph)
    known = 0
    for size in (1, 3):
        every = {"x": np.ones((size, 4), np.float32), "z": np.ones(2, np.float32), "p": np.array(True)}
        feeds = {info.name: every[info.name] for info in session.get_inputs()}
        for out, array in zip(session.get_outputs(), session.run(None, feeds), strict=True):
            shape = inference.fact(graph.resolve_value(out.name)).shape
            assert shape is not None
            for dim, length in zip(shape, array.shape, strict=True):
                sized = {"n": size}.get(str(dim), dim)
                known += isinstance(sized, int)
                assert sized == length or not isinstance(sized, int)
    assert known >= 2
    assert not [problem for problem in inference.diagnostics if problem.severity == "error"]
