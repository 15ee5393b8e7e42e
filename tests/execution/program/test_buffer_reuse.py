"""Results written into free buffers: equal to those without reuse, and no array of the caller is touched."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from onnxlab.execution.program import buffer_reuse
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.ops.base import registry
from tests.execution.numpy.test_half_precision import model_of
from tests.execution.support.models import graph
from tests.ops.support.single_node import run as run_kernel

WIDTH = 20_000  # elements: 80 kB of float32, enough to be worth it
UNARY = ["Abs", "Neg", "Tanh", "Relu", "Sigmoid", "HardSigmoid", "Softmax", "Erf", "Floor", "Gelu", "Exp"]
VIEWS = ["Identity", "Reshape", "Transpose", "Slice"]


def info(name: str, elem_type: int = 1, shape: list | None = None):
    return helper.make_tensor_value_info(name, elem_type, shape)


def branches(name: str, a: str, b: str) -> dict:
    """Bodies of an If that capture both values."""
    return {f"{which}_branch": helper.make_graph([helper.make_node(op, [a, b], [name + op])], op, [], [info(name + op)])
            for which, op in (("then", "Add"), ("else", "Mul"))}  # fmt: skip


def body(name: str, b: str):
    """The body of a Loop whose state is overwritten, where it may be, and that captures a value."""
    nodes = [("Tanh", [name + "i"], name + "h"), ("Add", [name + "h", b], name + "o"),
             ("Identity", [name + "c"], name + "d")]  # fmt: skip
    inputs = [info(name + "n", 7, []), info(name + "c", 9, []), info(name + "i")]
    return helper.make_graph([helper.make_node(op, ins, [out]) for op, ins, out in nodes], "body", inputs,
                             [info(name + "d", 9, []), info(name + "o")])  # fmt: skip


def made_of(kind: str, a: str, b: str, name: str) -> list:
    """Nodes of one kind that make `name` of two values."""
    chains = {
        "Reshape": [("Reshape", [a, "flat"], name + "f"), ("Reshape", [name + "f", "shape"], name)],
        "Slice": [("Slice", [a, "begin", "end"], name)],
        "Sequence": [("SequenceConstruct", [a, b], name + "s"), ("Tanh", [a], name + "t"),
                     ("SequenceAt", [name + "s", "one"], name + "a"), ("Add", [name + "a", name + "t"], name)],
    }  # fmt: skip
    if kind == "Transpose":
        turned = [("Transpose", [a], name + "t"), ("Neg", [name + "t"], name + "n"), ("Transpose", [name + "n"], name)]
        return [helper.make_node(op, ins, [out]) for op, ins, out in turned]
    if kind == "If":
        return [helper.make_node("If", ["flag"], [name], **branches(name, a, b))]
    if kind == "Loop":
        return [helper.make_node("Loop", ["trips", "flag", a], [name], body=body(name, b))]
    if kind in chains:
        return [helper.make_node(op, ins, [out]) for op, ins, out in chains[kind]]
    return [helper.make_node(kind, [a] if kind in (*UNARY, "Identity") else [a, b], [name])]


@st.composite
def models(draw):
    """Elementwise chains with views, second names, operands used twice, branches that capture, sequences, outputs."""
    nodes, names = [], ["x", "w"]
    for number in range(draw(st.integers(3, 12))):
        a, b = (draw(st.sampled_from(names[-4:])) for _ in range(2))
        kind = draw(st.sampled_from([*UNARY, *VIEWS, "Add", "Sub", "Mul", "Div", "If", "Sequence", "Loop"]))
        nodes += made_of(kind, a, b, f"v{number}")
        names.append(f"v{number}")
    constants = {"flat": np.array([-1]), "shape": np.array([2, -1]), "begin": np.array([0]), "end": np.array([2]),
                 "one": np.array(1), "trips": np.array(3), "flag": np.array(True)}  # fmt: skip
    outputs = {names[-1], *draw(st.lists(st.sampled_from(names[2:]), max_size=3))}
    inputs = [info(name, 1, [2, WIDTH // 2]) for name in ("x", "w")]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph_proto = helper.make_graph(nodes, "g", inputs, [info(name) for name in sorted(outputs)], tensors)
    return helper.make_model(graph_proto, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@settings(max_examples=60, deadline=None)
@given(model=models(), pinned=st.booleans())
@pytest.mark.slow
def test_any_model_makes_the_same_as_without_and_no_array_of_others_is_touched(model, pinned):
    generator = np.random.default_rng(0)
    feeds = {name: generator.standard_normal((2, WIDTH // 2)).astype(np.float32) for name in ("x", "w")}
    before = {name: array.copy() for name, array in feeds.items()}
    run = Runner(ModelGraph(model))
    if pinned:
        run.pin("v1", feeds["x"])
    expected = run.run(feeds, keep=True)  # keeping all values, nothing can be overwritten
    first = run.run(feeds, keep=False)
    copies = {name: array.copy() for name, array in first.items()}
    for _ in range(2):  # the third run leaves out what shapes decide
        results = run.run(feeds, keep=False)
        for name, array in expected.items():
            np.testing.assert_array_equal(results[name], array)
    for name, array in before.items():
        np.testing.assert_array_equal(feeds[name], array)
    for name, array in first.items():
        np.testing.assert_array_equal(array, copies[name])


def test_a_chain_needs_one_buffer():
    nodes = " ".join(f"v{number + 1} = {op} (v{number})" for number, op in enumerate(["Neg", *UNARY] * 2))
    count = 2 * len(UNARY) + 2
    run = Runner(graph(f"g (float[m,n] v0) => (float[m,n] v{count}) {{ {nodes} }}"))
    x = np.linspace(-3, 3, 1 << 20, dtype=np.float32).reshape(1024, 1024)
    run.run({"v0": x[:10, :10].copy()}, keep=False)
    tracemalloc.start()
    try:
        run.run({"v0": x}, keep=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.3 * x.nbytes


def test_a_buffer_is_free_only_where_the_frame_and_the_call_alone_know_it():
    def offered(*others):
        frame = [None, np.zeros(1 << 15)]
        held = [other(frame[1]) for other in others]
        arguments = (frame[1],)
        buffer = buffer_reuse.spare((1,), frame, (1,))
        return buffer is arguments[0], held

    assert offered()[0]
    for other in (lambda a: a, lambda a: a[1:], lambda a: a.T.reshape(-1), lambda a: [a], memoryview):
        assert not offered(other)[0]
    small, view = [None, np.zeros(8)], [None, np.zeros(1 << 16)[1:]]
    for frame in (small, view):
        arguments = (frame[1],)
        assert buffer_reuse.spare((1,), frame, (1,)) is None
        assert buffer_reuse.spare((1,), frame, ()) is None
        assert len(arguments) == 1


IN_PLACE = [(op, entry) for op, entry in registry.in_place_kernels() if not entry.domain]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=str)
@pytest.mark.parametrize(("op_type", "entry"), IN_PLACE, ids=[f"{op}-{entry.since}" for op, entry in IN_PLACE])
def test_every_form_that_overwrites_makes_what_its_kernel_makes(op_type, entry, dtype):
    model = model_of(op_type, np.dtype(np.float16))  # for its further inputs and attributes
    node = next(proto for proto in model.graph.node if proto.op_type == op_type and "y0" in proto.output)
    attributes = {proto.name: helper.get_attribute_value(proto) for proto in node.attribute}
    further = [numpy_helper.to_array(tensor).astype(dtype) for tensor in model.graph.initializer]
    if op_type == "Clip":
        further = [np.array(-1, dtype), np.array(2, dtype)]
    x = (np.random.default_rng(0).standard_normal((1, 4, 6, 6)) * 3).astype(dtype)
    (expected,) = run_kernel(op_type, x, *further, opset=entry.since, **attributes)
    for place in entry.in_place:
        inputs = [x.copy(), *further]
        inputs[0], inputs[place] = inputs[place], inputs[0]
        if place:
            (expected,) = run_kernel(op_type, *inputs, opset=entry.since, **attributes)
        with np.errstate(all="ignore"):
            actual = entry.into(inputs[place], *inputs, **attributes)
        assert actual.dtype == expected.dtype
        # defaults of attributes are float32 in a model
        np.testing.assert_allclose(actual, expected, rtol=1e-6 if dtype == np.float64 else 0)
