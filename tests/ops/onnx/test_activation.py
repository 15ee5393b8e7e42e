import numpy as np
import onnx
import onnx.parser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onnxlab
from tests.ops.support.single_node import agree, floats, run

SIMPLE = ["Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "Elu", "Selu", "LeakyRelu", "HardSigmoid", "HardSwish"]


@pytest.mark.parametrize("op_type", [*SIMPLE, "Erf", "Exp", "Celu", "ThresholdedRelu", "Mish"])
def test_against_onnxruntime(op_type):
    x = np.concatenate([floats(500) * 3, np.float32([0, -0.0, 90, -90, np.inf, -np.inf])])
    agree(op_type, x, opset=20)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate):
    agree("Gelu", floats(3, 20000) * 2, opset=20, approximate=approximate)


def test_erf_in_float64_is_exact():
    (y,) = run("Erf", np.array([0.5, -2.0]), opset=13)
    np.testing.assert_allclose(y, [0.5204998778130465, -0.9953222650189527], rtol=1e-15)


@settings(max_examples=30, deadline=None)
@given(shape=st.lists(st.integers(1, 5), min_size=1, max_size=4), data=st.data(), opset=st.sampled_from([8, 11, 13]))
def test_softmax_flattens_before_13(shape, data, opset):
    x = floats(*shape) * 4
    axis = data.draw(st.integers(0 if opset == 8 else -len(shape), len(shape) - 1))
    for op_type in ("Softmax", "LogSoftmax", "Hardmax"):
        agree(op_type, x, opset=opset, axis=axis)


def test_softmax_of_huge_and_masked_scores():
    agree("Softmax", np.float32([[1e30, 1e30, -np.inf], [0, -np.inf, 1]]), opset=13)


def test_clip_by_attributes_and_by_inputs():
    x = floats(50)
    agree("Clip", x, opset=6, min=-0.5, max=0.5)
    agree("Clip", x, opset=6, max=0.5)
    agree("Clip", x, None, np.float32(0.25), opset=13)
    agree("Clip", x, np.float32(-0.25), opset=13)
    agree("Clip", (x * 100).astype(np.int8), np.int8(-5).reshape(()), np.int8(9).reshape(()), opset=13)


@pytest.mark.parametrize("shape", [(1, 1), (2,), (3,), (2, 3)])
@pytest.mark.parametrize("place", [1, 2])
def test_clip_takes_scalar_bounds_alone(shape, place):
    """onnxruntime refuses them when it runs; they were taken without a word where they broadcast."""
    bounds: list[np.ndarray | None] = [None, None]
    bounds[place - 1] = np.zeros(shape, np.float32)
    for size in (1, 2000):
        with pytest.raises(ValueError, match="expected a scalar"):
            run("Clip", floats(2, 3 * size), *bounds, opset=13)
    text = f"""<ir_version: 8, opset_import: ["" : 13]> g (float[2, 3] x, float[{",".join(map(str, shape))}] b) =>
        (float[2, 3] y) {{ y = Clip ({"x, b" if place == 1 else 'x, "", b'}) }}"""
    model = onnxlab.load(onnx.parser.parse_model(text))
    assert [(problem.code, problem.expected) for problem in model.check()] == [("shape-mismatch", "a scalar")]
    agree("Clip", floats(2, 3), *(None if bound is None else bound.ravel()[:1] for bound in bounds), opset=13)


def test_prelu_slopes():
    agree("PRelu", floats(2, 3, 4), floats(3, 1, seed=1), opset=16)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("size", [20, 6000])
def test_clip_makes_infinities_finite_and_keeps_nan(dtype, size):
    x = (floats(size) * 4).astype(dtype)
    x[:4] = np.inf, -np.inf, np.nan, -0.0
    for bounds in ([0, 6], [-1, 1], [None, 2], [0.5, None], [0, np.inf]):
        agree("Clip", x, *(None if bound is None else dtype(bound) for bound in bounds), opset=13)


@pytest.mark.parametrize("rows", [7, 900])
def test_softmax_of_rows_far_from_one_another(rows):
    agree("Softmax", floats(rows, 40) + np.linspace(-300, 300, rows, dtype=np.float32)[:, None], opset=13)


def test_gelu_far_from_zero_is_the_input_or_nothing():
    (y,) = run("Gelu", np.float32([-40, -7, -5.7, 7, 40]), opset=20)
    np.testing.assert_array_equal(y, np.float32([0, 0, 0, 7, 40]))
