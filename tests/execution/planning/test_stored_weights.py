"""Models larger than what a run may use: weights stay in their file, results are those of a run that has them all."""

import threading
import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from bench.models import transformer_blocks
from onnxlab.errors import RunError, RunStopped
from onnxlab.execution.base import background
from onnxlab.execution.numpy import stored_inputs
from onnxlab.execution.planning import stored_weights
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.lazy_tensor import LazyTensor

BUDGET = 3 << 20
"""Bytes, a quarter of the weights of `transformer_blocks(4, 256)`."""


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    """Windows of a few rows, and weights of 4 kB that count as large."""
    monkeypatch.setattr(stored_inputs, "WINDOW", 1 << 13)
    monkeypatch.setattr(stored_weights, "LARGE", 1 << 12)


def saved(folder: Path, nodes, weights, inputs, outputs, opset=17) -> Path:
    """A model whose weights lie in external data."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(name, elem_type, None) for name, elem_type in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    path = folder / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=1024)
    return path


def both(path: Path, feeds, outputs=None, providers=None):
    """(outputs of a run that has all weights, of one that has no room for them)."""
    held = onnxlab.load(path).run(feeds, outputs)
    model = onnxlab.load(path)
    nbytes = int(1.8 * sum(file.stat().st_size for file in path.parent.glob("*.bin")))
    stored = model.run(feeds, outputs, limits=onnxlab.Limits(bytes=nbytes), providers=providers)
    assert model.graph.caches.arrays.keys().isdisjoint(large(model)), "a weight was read to be held"
    return held, stored


def large(model) -> set[int]:
    snapshot = model.graph.snapshot()
    ids = snapshot.main.initializers.values()
    return {value for value in ids if tensors.nbytes(snapshot.tensor(value)) >= stored_weights.LARGE}


def alike(held, stored) -> None:
    assert held.keys() == stored.keys()
    for name, array in held.items():
        assert stored[name].dtype == array.dtype
        assert stored[name].shape == array.shape
        tolerance = 2e-3 if array.dtype.itemsize == 2 else 1e-5
        wide = array.astype(np.float64)
        assert np.abs(stored[name] - wide).max() <= tolerance * max(np.abs(wide).max(), 1e-9), name


@pytest.mark.parametrize("providers", [None, ["numba"]])
def test_blocks_of_a_transformer_take_little_memory(providers):
    path = transformer_blocks(4, 256, 8, "random")
    x = np.random.default_rng(1).standard_normal((1, 6, 256)).astype(np.float32)
    held = onnxlab.load(path).run(x)
    model = onnxlab.load(path)
    limits = onnxlab.Limits(bytes=BUDGET)
    onnxlab.load(path).run(x, limits=limits, providers=providers)  # modules and kernels that the run loads
    assert background.wait(60)  # the compiling process takes memory of its own
    tracemalloc.start()
    stored = model.run(x, limits=limits, providers=providers)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    alike(held, stored)
    assert peak < BUDGET < path.with_name("model.onnx.data").stat().st_size // 3


def test_one_block_and_the_values_on_the_way():
    path = transformer_blocks(4, 256, 8, "random")
    x = np.random.default_rng(2).standard_normal((1, 6, 256)).astype(np.float32)
    model, limits = onnxlab.load(path), onnxlab.Limits(bytes=BUDGET)
    whole = onnxlab.load(path)
    whole.run(x)
    (first,) = model.run(x, ["block_0_out"], limits=limits).values()
    np.testing.assert_allclose(first, whole.values["block_0_out"], rtol=1e-4, atol=1e-5)
    model.run(x, limits=limits)
    np.testing.assert_allclose(model.values["block_2_wide"], whole.values["block_2_wide"], rtol=1e-4, atol=1e-5)


GEMMS = [{}, {"transB": 1}, {"transA": 1}, {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}, {"beta": 0.0}]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("attributes", GEMMS, ids=str)
def test_gemm(tmp_path, attributes, dtype):
    rng, elem_type = np.random.default_rng(0), helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    b = rng.standard_normal((96, 160) if attributes.get("transB") else (160, 96)).astype(dtype)
    node = helper.make_node("Gemm", ["a", "b", "c"], ["y"], **attributes)
    shape = (160, 5) if attributes.get("transA") else (5, 160)
    weights = {"b": b, "c": rng.standard_normal(96).astype(dtype)}
    path = saved(tmp_path, [node], weights, [("a", elem_type, shape)], [("y", elem_type)])
    alike(*both(path, {"a": rng.standard_normal(shape).astype(dtype)}))


@pytest.mark.parametrize("shape", [(160,), (5, 160), (2, 3, 160), (0, 160)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_mat_mul(tmp_path, shape, dtype):
    rng, elem_type = np.random.default_rng(0), helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    b = (rng.standard_normal((160, 96)) * 4).astype(dtype)
    path = saved(tmp_path, [helper.make_node("MatMul", ["a", "b"], ["y"])], {"b": b}, [("a", elem_type, shape)],
                 [("y", elem_type)])  # fmt: skip
    held, stored = both(path, {"a": (rng.standard_normal(shape) * 4).astype(dtype)})
    if held["y"].size:
        alike(held, stored)
    assert held["y"].shape == stored["y"].shape


@pytest.mark.parametrize("indices", [[3], [-1, 0, 5, 4, 3, 3], [[0, 1], [2, -300]], []], ids=str)
def test_gather_reads_rows(tmp_path, indices, monkeypatch):
    table = np.random.default_rng(0).standard_normal((300, 32)).astype(np.float32)
    path = saved(tmp_path, [helper.make_node("Gather", ["table", "i"], ["y"])], {"table": table},
                 [("i", TensorProto.INT64, np.shape(indices))], [("y", TensorProto.FLOAT)])  # fmt: skip
    held, stored = both(path, {"i": np.array(indices, np.int64)})
    np.testing.assert_array_equal(held["y"], stored["y"])


def test_gather_beyond_the_table_is_refused(tmp_path):
    table = np.ones((300, 32), np.float32)
    path = saved(tmp_path, [helper.make_node("Gather", ["table", "i"], ["y"])], {"table": table},
                 [("i", TensorProto.INT64, [1])], [("y", TensorProto.FLOAT)])  # fmt: skip
    with pytest.raises(RunError, match="axis 0 has 300 elements"):
        onnxlab.load(path).run({"i": np.array([300])}, limits=onnxlab.Limits(bytes=1 << 16))


def test_other_operators_read_their_weights_whole(tmp_path):
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((16, 8, 5, 5)).astype(np.float32), "m": np.ones((4, 40, 40), np.float32)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["y"]),
        helper.make_node("Transpose", ["m"], ["t"], perm=[0, 2, 1]),
        helper.make_node("ReduceMax", ["t"], ["z"], keepdims=0),
        helper.make_node("Mul", ["y", "z"], ["out"]),
    ]
    path = saved(tmp_path, nodes, weights, [("x", TensorProto.FLOAT, [1, 8, 9, 9])], [("out", TensorProto.FLOAT)])
    alike(*both(path, {"x": rng.standard_normal((1, 8, 9, 9)).astype(np.float32)}))


def test_weights_of_bodies_are_held(tmp_path):
    rng = np.random.default_rng(0)
    product = helper.make_node("MatMul", ["x", "w"], ["inner"])
    branch = helper.make_graph([product], "b", [], [helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["n"])], "o", [],
                              [helper.make_tensor_value_info("n", TensorProto.FLOAT, None)])  # fmt: skip
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=other),
             helper.make_node("MatMul", ["y", "v"], ["z"])]  # fmt: skip
    weights = {name: rng.standard_normal((64, 64)).astype(np.float32) for name in "wv"}
    inputs = [("x", TensorProto.FLOAT, [2, 64]), ("c", TensorProto.BOOL, [])]
    path = saved(tmp_path, nodes, weights, inputs, [("z", TensorProto.FLOAT)])
    feeds = {"x": rng.standard_normal((2, 64)).astype(np.float32), "c": np.array(True)}
    held = onnxlab.load(path).run(feeds)
    alike(held, onnxlab.load(path).run(feeds, limits=onnxlab.Limits(bytes=32 << 10)))


@pytest.fixture
def product(tmp_path):
    """(model of one product with 40 kB of weights, its input, the weights)."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((100, 100)).astype(np.float32)
    path = saved(tmp_path, [helper.make_node("MatMul", ["x", "w"], ["y"], "product")], {"w": w},
                 [("x", TensorProto.FLOAT, [2, 100])], [("y", TensorProto.FLOAT)])  # fmt: skip
    return onnxlab.load(path), rng.standard_normal((2, 100)).astype(np.float32), w


LIMITS = onnxlab.Limits(bytes=70_000)


def test_a_weight_may_be_fed_and_asked_for(product):
    model, x, w = product
    np.testing.assert_allclose(model.run({"x": x, "w": 2 * w}, limits=LIMITS)["y"], x @ (2 * w), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(model.run({"x": x}, ["w"], limits=LIMITS)["w"], w)


def test_edited_weights_are_those_that_run(product):
    model, x, w = product
    np.testing.assert_allclose(model.run(x, limits=LIMITS)["y"], x @ w, rtol=1e-4, atol=1e-4)
    model.value("w").array = 3 * w
    np.testing.assert_allclose(model.run(x, limits=LIMITS)["y"], x @ (3 * w), rtol=1e-4, atol=1e-4)
    model.undo()
    np.testing.assert_allclose(model.run(x, limits=LIMITS)["y"], x @ w, rtol=1e-4, atol=1e-4)


def test_limits_may_change_from_run_to_run(product):
    model, x, w = product
    for limits in (LIMITS, None, LIMITS, None):
        np.testing.assert_allclose(model.run(x + 1, limits=limits)["y"], (x + 1) @ w, rtol=1e-4, atol=1e-4)
        x = x + 1


def test_a_file_that_is_cut_off_is_an_error_of_the_node(product):
    model, x, _ = product
    file = Path(model.path).with_name("weights.bin")
    model.run(x, limits=LIMITS)
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(RunError, match=r"product.*cut off"):
        model.run(x + 1, limits=LIMITS)


def test_wrong_shapes_are_said_as_ever(product):
    model, _, _ = product
    with pytest.raises(onnxlab.OnnxlabError, match="100"):
        model.run({"x": np.ones((2, 99), np.float32)}, limits=LIMITS)


def test_a_run_can_be_stopped_between_windows(product, monkeypatch):
    model, x, _ = product
    monkeypatch.setattr(stored_inputs, "WINDOW", 400)
    limits, read = onnxlab.Limits(bytes=70_000, stop=threading.Event()), []
    whole = LazyTensor.__getitem__

    def stopping(tensor, index):
        read.append(index)
        limits.stop.set()
        return whole(tensor, index)

    monkeypatch.setattr(LazyTensor, "__getitem__", stopping)
    with pytest.raises(RunStopped):
        model.run(x, limits=limits)
    assert len(read) < 100


def test_who_runs_what_is_said():
    model = onnxlab.load(transformer_blocks(4, 256, 8, "random"))
    x = np.random.default_rng(1).standard_normal((1, 64, 256)).astype(np.float32)
    model.run(x, limits=onnxlab.Limits(bytes=BUDGET), providers=["numba"])
    assert "larger than memory" in str(model.runner.partition(by=model.runner.by(["numba"])))
