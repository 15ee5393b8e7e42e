"""A cast to a narrower type rounds, compiled too, whatever is cast back and computed afterwards."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.execution.numba.provider import NumbaProvider
from tests.execution.support.regions import Recipe, check

NARROW = {
    "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16, "float8e4m3fn": TensorProto.FLOAT8E4M3FN,
    "float8e5m2": TensorProto.FLOAT8E5M2, "double": TensorProto.DOUBLE, "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8, "int32": TensorProto.INT32, "int16": TensorProto.INT16,
}  # fmt: skip
ODD = np.float32([1e5, -1e5, 65519, 65520, 1e-9, 6e-8, np.nan, np.inf, -np.inf, 1.0009765, 2049, -0.0, 3.4e38, 3.14159])


def there_and_back(target, values, after):
    node, vi = helper.make_node, helper.make_tensor_value_info
    nodes = [node("Mul", ["x", "x"], ["s"]), node("Cast", ["s"], ["h"], to=target), node("Cast", ["h"], ["f"], to=1)]
    nodes.append(node(after, ["f", "x"] if after == "Mul" else ["f"], ["y"]))
    graph = helper.make_graph(nodes, "g", [vi("x", 1, values.shape)], [vi("y", 1, values.shape)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


@pytest.mark.parametrize("after", ["Identity", "Mul", "Relu"])
@pytest.mark.parametrize("name", NARROW)
def test_there_and_back(name, after):
    values = np.tile(np.sqrt(np.abs(ODD)), (3, 1))
    if "int" in name:
        values = np.nan_to_num(values).clip(0, 11)
    model = onnxlab.load(there_and_back(NARROW[name], values, after).SerializeToString())
    plain = model.run({"x": values}, providers=["numpy"])["y"]
    compiled = model.run({"x": values}, providers=[NumbaProvider(background=False, least=0), "numpy"])["y"]
    np.testing.assert_array_equal(compiled, plain)


@pytest.mark.parametrize("target", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_every_vector_of_a_chain_is_rounded(target):
    """Values of every size, at every place of a vector, to even; through one record with what is around."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((7, 37)) * 2.0 ** rng.integers(-30, 20, (7, 37))).astype(np.float32)
    recipe = Recipe()
    y = recipe.node("Cast", recipe.node("Cast", recipe.node("Neg", recipe.input("x", x)), to=target), to=1)
    results = check(recipe.model(recipe.node("Neg", y)), {"x": x}, 0)
    narrow = np.float16 if target == TensorProto.FLOAT16 else ml_dtypes.bfloat16
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(next(iter(results.values())), x.astype(narrow).astype(np.float32))


def test_no_fusion_passes_over_a_cast_that_rounds():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((5, 40)).astype(np.float32)
    recipe = Recipe()
    name = recipe.input("x", x)
    gate = recipe.node("Cast", recipe.node("Cast", recipe.node("Sigmoid", name), to=TensorProto.FLOAT16), to=1)
    check(recipe.model(recipe.node("Mul", name, gate)), {"x": x}, 1e-6)
