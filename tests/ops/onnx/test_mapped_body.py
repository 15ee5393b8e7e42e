"""Scans whose iterations are independent run all at once, and give what they give one by one."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.errors import LimitError
from onnxlab.execution.program import loop_body
from onnxlab.ops.onnx.control.mapped_body import MappedBody
from tests.ops.support.single_node import floats
from tests.support.oracle import new_session

ELEM = {np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE, np.float16: TensorProto.FLOAT16}


def scan(nodes, *, states=("s",), rows=("r",), outputs=("y",), dtype=np.float32, **attributes):
    """A model: a Scan of rows, over a body that gives its states back and some values; the matrix c is captured."""
    elem = ELEM[dtype]
    info = lambda name: helper.make_tensor_value_info(name, elem, None)  # noqa: E731
    states_out = [helper.make_node("Identity", [name], [f"{name}_out"]) for name in states]
    body = helper.make_graph(
        [*states_out, *nodes], "body", [info(name) for name in (*states, *rows)],
        [*(info(f"{name}_out") for name in states), *map(info, outputs)],
    )  # fmt: skip
    fed = [f"{name}_all" for name in (*states, *rows)]
    results = [f"{name}_last" for name in states] + [f"{name}_all" for name in outputs]
    node = helper.make_node("Scan", fed, results, body=body, num_scan_inputs=len(rows), **attributes)
    graph = helper.make_graph([node], "graph", [*map(info, fed), info("c")], [*map(info, results)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def node(op_type, inputs, output, **attributes):
    """A node with one output."""
    return helper.make_node(op_type, inputs.split(), [output], **attributes)


@pytest.fixture
def at_once(monkeypatch):
    """The numbers of iterations that ran at once."""
    counts, run = [], MappedBody.run

    def counted(self, context, most, feeds, captured):
        results = run(self, context, most, feeds, captured)
        counts.append(None if results is None else results[0])
        return results

    monkeypatch.setattr(MappedBody, "run", counted)
    return counts


def agrees(model, feeds, monkeypatch, rtol=1e-5):
    """Assert that runs give what onnxruntime gives, and exact runs what iterations give one by one."""
    opened, apart = onnxlab.load(model), onnxlab.load(onnx.ModelProto.FromString(model.SerializeToString()))
    expected = oracle(model, opened.run(feeds)).run(None, feeds)
    for _ in range(4):
        for y, reference_output in zip(opened.run(feeds).values(), expected, strict=True):
            np.testing.assert_allclose(y, reference_output, rtol=rtol, atol=rtol)
    exact = [opened.run(feeds, exact=True) for _ in range(4)][-1]
    with monkeypatch.context() as patch:
        patch.setattr(loop_body, "mapped_body", lambda *arguments: None)
        alone = [apart.run(feeds, exact=True) for _ in range(4)][-1]
    for name, y in exact.items():
        assert y.dtype == alone[name].dtype
        np.testing.assert_array_equal(y, alone[name])


def oracle(model, results):
    """A session of onnxruntime, which needs the ranks of what a body makes."""
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    states = len(copy.graph.output) - len(results) + sum(name.endswith("_last") for name in results)
    for place, (info, y) in enumerate(zip(copy.graph.node[0].attribute[0].g.output, results.values(), strict=True)):
        for _ in range(y.ndim - (place >= states)):
            info.type.tensor_type.shape.dim.add()
        info.type.tensor_type.shape.SetInParent()
    return new_session(copy.SerializeToString(), None)


DISTANCES = [node("Sub", "s r", "d"), node("ReduceSumSquare", "d", "q", axes=[1], keepdims=0),
             node("Identity", "q", "y")]  # fmt: skip
BODIES = {
    "distances": DISTANCES,
    "roots": [*DISTANCES[:2], node("Sqrt", "q", "t"), node("Neg", "t", "y")],
    "negative axes": [node("Mul", "s r", "d"), node("ReduceMax", "d", "y", axes=[-1], keepdims=1)],
    "the other axis": [node("Mul", "r s", "d"), node("ReduceL1", "d", "y", axes=[0], keepdims=0)],
    "captured": [node("Add", "r c", "d"), node("Sub", "d s", "e"), node("ReduceMean", "e", "y", axes=[0, 1])],
    "of states alone": [node("Mul", "s c", "d"), node("Add", "d r", "e"), node("Tanh", "e", "y")],
    "of a row alone": [node("ReduceL2", "r", "d", axes=[0]), node("Div", "r d", "y")],
}


@pytest.mark.parametrize("dtype", list(ELEM))
@pytest.mark.parametrize("length", [1, 3, 40])
@pytest.mark.parametrize("name", list(BODIES))
def test_iterations_run_at_once(name, length, dtype, monkeypatch, at_once):
    feeds = {"s_all": floats(4, 5), "r_all": floats(length, 5, seed=1), "c": floats(4, 5, seed=2)}
    model = scan(BODIES[name], dtype=dtype)
    agrees(model, {key: array.astype(dtype) for key, array in feeds.items()}, monkeypatch,
           2e-2 if dtype == np.float16 else 1e-5)  # fmt: skip
    assert dtype == np.float16 or length in at_once  # those of 16 bits are computed in float32, node by node


@pytest.mark.parametrize("directions", [(0, 0), (1, 0), (1, 1)])
def test_several_inputs_along_axes_and_backwards(directions, monkeypatch, at_once):
    nodes = [node("Add", "a b", "d"), node("Mul", "d a", "y"), node("ReduceSumSquare", "d", "z", axes=[0])]
    model = scan(nodes, states=(), rows=("a", "b"), outputs=("y", "z"), scan_input_axes=[1, 0],
                 scan_input_directions=directions, scan_output_axes=[1, 0], scan_output_directions=[1, 0])  # fmt: skip
    agrees(model, {"a_all": floats(5, 7), "b_all": floats(7, 3, 5), "c": floats(1)}, monkeypatch)
    assert 7 in at_once


def test_ranks_differ_between_iterations_values(monkeypatch, at_once):
    nodes = [node("Mul", "s r", "d"), node("Add", "d a", "y")]  # [2, 4, 5], [5] and a scalar for each iteration
    model = scan(nodes, rows=("r", "a"))
    agrees(model, {"s_all": floats(2, 4, 5), "r_all": floats(6, 5), "a_all": floats(6), "c": floats(1)}, monkeypatch)
    assert 6 in at_once


@pytest.mark.parametrize("nodes", [
    [node("Softmax", "r", "y")],
    [node("Sub", "s r", "d"), node("ReduceSum", "d", "y")],  # of all axes
    [node("Identity", "s", "y")],
])  # fmt: skip
def test_other_bodies_run_one_by_one(nodes, monkeypatch, at_once):
    agrees(scan(nodes), {"s_all": floats(5), "r_all": floats(6, 5), "c": floats(1)}, monkeypatch)
    assert set(at_once) <= {None}


def test_states_that_change_run_one_by_one(monkeypatch, at_once):
    model = scan([node("Add", "s r", "y")])
    model.graph.node[0].attribute[0].g.node[0].CopyFrom(node("Add", "s r", "s_out"))
    agrees(model, {"s_all": floats(5), "r_all": floats(6, 5), "c": floats(1)}, monkeypatch)
    assert not at_once


def test_what_is_no_number_and_nothing_at_all(monkeypatch, at_once):
    s, r = floats(4, 5), floats(6, 5)
    s[1, 2], r[3, 1], r[4, 4] = np.nan, np.inf, -np.inf
    agrees(scan(DISTANCES), {"s_all": s, "r_all": r, "c": floats(1)}, monkeypatch)
    agrees(scan(DISTANCES), {"s_all": floats(0, 5), "r_all": r, "c": floats(1)}, monkeypatch)
    opened = onnxlab.load(scan(DISTANCES))
    for length in (0, 3, 0, 2, 2, 0):
        results = opened.run({"s_all": s, "r_all": r[:length], "c": floats(1)})
        assert results["y_all"].shape[0] == length


def test_many_iterations_in_pieces_and_within_limits(monkeypatch, at_once):
    feeds = {"s_all": floats(40, 30), "r_all": floats(2000, 30, seed=1), "c": floats(1)}
    agrees(scan(DISTANCES), feeds, monkeypatch, 1e-4)
    assert 2000 in at_once
    opened = onnxlab.load(scan(DISTANCES))
    for _ in range(3):
        with pytest.raises(LimitError, match="more than 100 iterations"):
            opened.run(feeds, limits=onnxlab.Limits(iterations=100))
        opened.run(feeds)
    with pytest.raises(LimitError, match="stacked scan outputs"):
        opened.run(feeds, limits=onnxlab.Limits(bytes=200_000))


def test_shapes_that_do_not_fit_are_told_of_the_node(at_once):
    opened = onnxlab.load(scan(DISTANCES))
    good = {"s_all": floats(4, 5), "r_all": floats(6, 5), "c": floats(1)}
    for _ in range(3):
        opened.run(good)
        with pytest.raises(onnxlab.errors.RunError, match="Sub"):
            opened.run(good | {"r_all": floats(6, 4)})
