"""Progress, seeds, pins, what-if feeds, watched bodies and profiles: the same whatever provider runs a model."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.execution.base import background

TEXT = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[N, 16] x, int64 n) => (float[N, 16] y, float[N, 16] z) <float[16, 16] w = {%s}, bool yes = {1}> {
    a = MatMul (x, w)
    b = Relu (a)
    c = Softmax (b)
    d = Mul (c, b)
    e = Loop (n, yes, d) <
        body = inner (int64 i, bool go, float[N, 16] v) => (bool on, float[N, 16] next) {
            on = Identity (go)
            t = Tanh (v)
            next = Add (t, v)
        }
    >
    y = Sigmoid (e)
    noise = RandomNormalLike (x)
    z = Add (noise, c)
}
"""
PROVIDERS: list[Any] = [None, ["numpy"], ["numba"], ["onnxruntime", "numpy"], ["numba", "onnxruntime", "numpy"]]


@pytest.fixture(params=PROVIDERS, ids=str)
def run(request: pytest.FixtureRequest) -> Iterator[Any]:
    """`run(…)` as of the model by these providers, compiled before, with the model as `run.model`."""
    proto = onnx.parser.parse_model(TEXT % ", ".join(["0"] * 256))
    weights = np.random.default_rng(0).standard_normal((16, 16), dtype=np.float32)
    (stored,) = [tensor for tensor in proto.graph.initializer if tensor.name == "w"]
    stored.CopyFrom(onnx.numpy_helper.from_array(weights, "w"))
    model = onnxlab.load(proto)

    def by(*arguments: Any, **options: Any) -> dict[str, Any]:
        return model.run(*arguments, providers=request.param, **options)

    for _ in range(4):
        by(FEEDS)
        background.wait()
    by.model, by.providers = model, request.param  # type: ignore[attr-defined]
    yield by
    model.unpin()


FEEDS = {"x": np.linspace(-2, 2, 48, dtype=np.float32).reshape(3, 16), "n": np.array(3)}


def node_by_node(run: Any, *names: str) -> dict[str, Any]:
    """The values that NumPy makes of the model as it is."""
    fresh = onnxlab.load(onnx.ModelProto.FromString(run.model.proto.SerializeToString()))
    return fresh.run(FEEDS, list(names), exact=True)


def test_a_seed_makes_outputs_come_again(run: Any) -> None:
    first, second, other = (run(FEEDS, seed=seed)["z"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_another_seed_makes_other_values_of_the_inputs_of_the_last_run(run: Any) -> None:
    expected = {seed: run(FEEDS, seed=seed)["z"] for seed in (1, 2)}
    for seed in (1, 2):
        np.testing.assert_array_equal(run(seed=seed)["z"], expected[seed])
        np.testing.assert_array_equal(run.model.values["z"], expected[seed])


def test_progress_counts_to_the_end(run: Any) -> None:
    steps: list[tuple[int, int, str]] = []
    run(FEEDS, progress=lambda *now: steps.append(now))
    assert steps[-1][0] == steps[-1][1] > 0
    assert [done for done, *_ in steps] == sorted(done for done, *_ in steps)


def test_a_what_if_leaves_the_last_run_as_it_was(run: Any) -> None:
    run(FEEDS)
    before = run.model.values["b"].copy()
    changed = np.full((3, 16), 0.25, np.float32)
    (y,) = run({"d": changed}, ["y"]).values()
    state = changed
    for _ in range(3):
        state = np.tanh(state) + state
    np.testing.assert_allclose(y, 1 / (1 + np.exp(-state)), atol=1e-5)
    np.testing.assert_array_equal(run.model.values["b"], before)


def test_a_pin_stands_in_until_it_is_let_go(run: Any) -> None:
    free = run(FEEDS)["y"]
    run.model.pin("b", np.ones((3, 16), np.float32))
    np.testing.assert_allclose(run(FEEDS, ["d"])["d"], np.full((3, 16), 1 / 16), atol=1e-6)
    assert not np.allclose(run(FEEDS)["y"], free)
    run.model.unpin()
    np.testing.assert_allclose(run(FEEDS)["y"], free, atol=1e-6)


def test_values_of_bodies_are_those_of_each_iteration(run: Any) -> None:
    graph = run.model.graph
    (value,) = [value for value in graph.values.values() if value.name == "t"]
    inner = f"{graph.scope_path(graph.scopes[value.scope])}/t"
    results = run(FEEDS, ["d", inner])
    state = results["d"]
    assert len(results[inner]) == 3
    for array in results[inner]:
        np.testing.assert_allclose(array, np.tanh(state), atol=1e-5)
        state = np.tanh(state) + state


def test_looks_are_what_node_by_node_gives(run: Any) -> None:
    run(FEEDS)
    names = ("a", "b", "c", "d", "e")
    expected = node_by_node(run, *names)
    for name in names:
        np.testing.assert_allclose(run.model.values[name], expected[name], atol=1e-5)


def test_a_profile_has_every_node_once_or_parts_in_their_place(run: Any) -> None:
    entries = run.model.profile(FEEDS, runs=2, providers=run.providers).entries
    labels = [entry.label for entry in entries if entry.node]
    assert len(labels) == len(set(labels))
    if not any("onnxruntime" in (name or "") for name in run.providers or ()):
        main = [node.id for node in run.model.nodes if node.id in set(run.model.graph.main.order())]
        assert {entry.node for entry in entries} == {*main}
