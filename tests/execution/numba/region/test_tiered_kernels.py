"""Runs that keep every value call compiled kernels where NumPy's took long; what they make is the same."""

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from onnx import numpy_helper, parser

import onnxlab
from onnxlab.errors import LimitError
from onnxlab.execution.base import background
from onnxlab.execution.numba import tiered_kernels
from onnxlab.execution.numba.region import single_node
from onnxlab.execution.numba.tiered_kernels import TieredKernel, TieredNumpyProvider
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.run.runner import Runner
from onnxlab.graph import edits
from onnxlab.graph.edits import bypassing
from tests.execution.support.internals import incremental_plans_of

MODEL = """
<ir_version: 8, opset_import: ["" : 15]>
net (float[N, 24, H, W] x) => (float[N, M, P, Q] y)
{
    a = Conv <pads = [1, 1, 1, 1]> (x, w0, b0)
    b = Relu (a)
    c = Conv <strides = [2, 2]> (b, w1)
    d = Conv <group = 4, dilations = [1, 2], auto_pad = "SAME_UPPER"> (c, w2, b2)
    e = Add (c, d)
    y = Conv (e, w3)
}
"""
SHAPES = {
    "w0": (40, 24, 3, 3), "b0": (40,), "w1": (32, 40, 1, 1), "w2": (32, 8, 3, 3), "b2": (32,), "w3": (7, 32, 1, 1),
}  # fmt: skip
VALUES = ["a", "b", "c", "d", "e", "y"]


@pytest.fixture(autouse=True)
def nothing_is_too_short(monkeypatch):
    """Nor is any kernel too slow."""
    monkeypatch.setattr(tiered_kernels, "_LONG", -1.0)
    monkeypatch.setattr(tiered_kernels, "_TRIED", 0)


@pytest.fixture
def model():
    return made()


def made():
    rng = np.random.default_rng(0)
    proto = parser.parse_model(MODEL)
    for name, shape in SHAPES.items():
        proto.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape, np.float32), name))
    return onnxlab.load(proto)


def pictures(seed=0, *shape):
    return {"x": np.random.default_rng(seed).standard_normal(shape or (1, 24, 13, 18), np.float32)}


def scale(model, name, factor):
    value = model.graph.values[model.graph.main.names[name]]
    edits.set_initializer(model.graph, value, model.graph.array(value.id) * np.float32(factor))


def compiled(model):
    """Names of what compiled kernels make."""
    plan = next(reversed(incremental_plans_of(model.runner).values()))
    calls = [
        instruction.call for instruction in plan.program.instructions if isinstance(instruction.call, TieredKernel)
    ]
    return [call._node.outputs[0] for call in calls if call._case.call is not None]


def hasten(model, feeds=pictures()):  # noqa: B008 - it is not written to
    """Run until there is nothing more to compile."""
    for seed in (7, 8):
        model.run({"x": feeds["x"] + np.float32(seed)}, exact=True)
    background.wait()


def assert_right(model, feeds, results):
    expected = Runner(model.graph, None, [NumpyProvider()]).run(feeds, list(results))
    for name, array in results.items():
        assert array.shape == expected[name].shape
        tolerance = 1e-6 * np.abs(expected[name]).max(initial=0, where=np.isfinite(expected[name]))
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=tolerance, err_msg=name)


def test_what_runs_again_is_compiled_and_the_same(model):
    feeds = pictures()
    model.run(feeds, exact=True)
    assert compiled(model) == []
    hasten(model)
    assert compiled(model) == ["a", "c", "d", "y"]
    assert_right(model, feeds, model.run(feeds, VALUES, exact=True))


def test_edited_constants_are_seen_at_once(model):
    hasten(model)
    feeds = pictures(1)
    model.run(feeds, exact=True)
    for name in ("w0", "b2", "w3", "w0", "w2"):
        scale(model, name, 1.5)
        assert_right(model, feeds, model.run(feeds, VALUES, exact=True))
        background.wait()
    model.undo()
    assert_right(model, feeds, model.run(feeds, VALUES, exact=True))


def test_other_attributes_shapes_and_structures(model):
    hasten(model)
    model.node(next(node.id for node in model.nodes if node.outputs[0].name == "c")).attributes["strides"] = [1, 3]
    assert_right(model, pictures(2), model.run(pictures(2), VALUES, exact=True))
    for shape in ((2, 24, 9, 9), (1, 24, 1, 1), (0, 24, 5, 5), (2, 24, 9, 9)):
        for seed in (3, 4, 5):
            feeds = pictures(seed, *shape)
            assert_right(model, feeds, model.run(feeds, VALUES, exact=True))
            background.wait()


def test_kernels_outlive_edits_of_the_structure_but_not_their_nodes(model):
    hasten(model)
    bypassing.bypass_node(model.graph, next(node for node in model.graph.nodes.values() if node.op_type == "Relu"))
    assert_right(model, pictures(), model.run(pictures(), VALUES[2:], exact=True))
    model.run(pictures(1), exact=True)
    assert {"a", "d", "y"}.issubset(compiled(model))
    background.wait()
    assert compiled(model) == ["a", "c", "d", "y"]  # c reads another value, so it is another node
    node = next(node for node in model.nodes if node.outputs[0].name == "c")
    for stride in (1, 3, 1, 3):
        node.attributes["strides"] = [1, stride]
        model.run(pictures(stride), exact=True)
    gc.collect()
    assert len(model.runner.providers[0]._hastened) <= 5  # that of before the last edit too


def test_infinities_and_nan_are_where_numpy_has_them(model):
    hasten(model)
    feeds = pictures(6)
    feeds["x"][0, 3, 2, 2], feeds["x"][0, 5, 12, 17], feeds["x"][0, 0, 0, 0] = np.inf, np.nan, -np.inf
    assert_right(model, feeds, model.run(feeds, VALUES, exact=True))


def test_values_that_somebody_holds_stay_what_they_are(model):
    hasten(model)
    model.run(pictures(1), exact=True)
    held = [model.runner.store.get(model.graph.main.names[name]) for name in VALUES]
    before = [array.copy() for array in held]
    for seed in (2, 3):
        scale(model, "w0", 2)
        model.run(pictures(seed), exact=True)
    for array, copy in zip(held, before, strict=True):
        assert not array.flags.writeable
        np.testing.assert_array_equal(array, copy)


def test_the_memory_that_kernels_share_goes_with_the_last_model(monkeypatch):
    monkeypatch.setattr(single_node, "_memory", None)  # models of other tests may have some
    loaded = made()
    hasten(loaded)
    loaded.run(pictures(3), exact=True)
    assert single_node._memory() is not None
    del loaded
    gc.collect()
    assert single_node._memory() is None


def test_runs_of_many_threads(model):
    hasten(model)
    samples = [pictures(seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda feeds: [model.run(feeds, VALUES, exact=True) for _ in range(5)][-1], samples))
    for feeds, values in zip(samples, results, strict=True):
        assert_right(model, feeds, values)


def test_a_kernel_that_is_slower_than_numpy_is_given_up(model, monkeypatch):
    monkeypatch.setattr(tiered_kernels, "_TRIED", 2)
    hasten(model)
    (plan,) = incremental_plans_of(model.runner).values()
    call = next(
        instruction.call for instruction in plan.program.instructions if isinstance(instruction.call, TieredKernel)
    )
    call._case.seconds, call._case.tried[:] = 0.0, []
    for seed in range(2):
        assert "a" in compiled(model)
        model.run(pictures(seed), exact=True)
    assert "a" not in compiled(model)
    assert_right(model, pictures(3), model.run(pictures(3), VALUES, exact=True))


def test_what_a_budget_does_not_allow_is_left_to_numpy(model):
    hasten(model)
    plan = next(reversed(incremental_plans_of(model.runner).values()))
    call = next(
        instruction.call for instruction in plan.program.instructions if isinstance(instruction.call, TieredKernel)
    )
    reserved = []

    class Tight:
        @staticmethod
        def reserve(nbytes):
            reserved.append(nbytes)
            raise LimitError("no more")

    assert call._case.call(Tight, pictures()["x"]) is None
    assert reserved


def test_numpy_alone_and_short_nodes_stay_numpys(model, monkeypatch):
    plain = Runner(model.graph, model.inference.fact, [NumpyProvider()])
    plain.run(pictures())
    (plan,) = incremental_plans_of(plain).values()
    assert not any(isinstance(instruction.call, TieredKernel) for instruction in plan.program.instructions)
    assert isinstance(model.runner.providers[0], TieredNumpyProvider)
    monkeypatch.setattr(tiered_kernels, "_LONG", 60.0)
    hasten(model)
    assert compiled(model) == []


def test_without_a_compiler_nothing_changes(model, monkeypatch):
    monkeypatch.setattr("onnxlab.execution.numba.machine.availability.missing", lambda: "numba is not installed")
    hasten(model)
    (plan,) = incremental_plans_of(model.runner).values()
    assert not any(isinstance(instruction.call, TieredKernel) for instruction in plan.program.instructions)
