import numpy as np
import pytest

from tests.ops.support.single_node import agree, floats, ints

MS = {"opset": 1, "domain": "com.microsoft"}
U8, I8 = np.uint8, np.int8


@pytest.mark.parametrize("op_type", ["Gelu", "QuickGelu"])
def test_activations(op_type):
    agree(op_type, floats(3, 40), **MS)


def test_activations_with_a_bias():
    x, bias = floats(2, 3, 8), floats(8, seed=1)
    agree("BiasGelu", x, bias, **MS)
    agree("FastGelu", x, bias, **MS)
    agree("FastGelu", x, **MS)


@pytest.mark.parametrize("activation", ["Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"])
def test_fused_convolution(activation):
    parameters = {"LeakyRelu": [0.2], "Clip": [-0.5, 0.5], "HardSigmoid": [0.3, 0.4]}.get(activation)
    attributes = {"activation_params": parameters} if parameters else {}
    agree("FusedConv", floats(1, 3, 6, 6), floats(4, 3, 3, 3), floats(4), activation=activation, **attributes, **MS)


def test_fused_products():
    a, b = floats(2, 3, 4), floats(2, 4, 5, seed=1)
    agree("FusedMatMul", a, b, alpha=0.5, **MS)
    agree("FusedMatMul", a.swapaxes(1, 2).copy(), b.swapaxes(1, 2).copy(), transA=1, transB=1, **MS)
    agree("FusedGemm", a[0], b[0], floats(5), activation="Relu", **MS)


def test_skip_normalizations():
    x, skip, gamma, beta, bias = (
        floats(2, 3, 8),
        floats(2, 3, 8, seed=1),
        floats(8, seed=2),
        floats(8),
        floats(8, seed=4),
    )
    agree("SkipLayerNormalization", x, skip, gamma, beta, bias, epsilon=1e-5, **MS)
    agree("SkipSimplifiedLayerNormalization", x, skip, gamma, bias, epsilon=1e-5, **MS)


def test_embeddings():
    words, places, segments = floats(10, 8), floats(6, 8, seed=1), floats(2, 8, seed=2)
    ids, kinds = ints(2, 4, low=0, high=10, dtype=np.int32), ints(2, 4, low=0, high=2, dtype=np.int32)
    mask = np.ones((2, 4), np.int32)
    agree("EmbedLayerNormalization", ids, kinds, words, places, segments, floats(8), floats(8, seed=5), mask,
          outputs=2, **MS)  # fmt: skip


@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul"])
def test_quantized_arithmetic(op_type):
    a, b = ints(3, 4, low=0, high=255, dtype=U8), ints(4, low=0, high=255, seed=1, dtype=U8)
    scales = [np.float32(value) for value in (0.1, 0.2, 0.9)]
    off = agree(op_type, a, scales[0], U8(5), b, scales[1], U8(9), scales[2], U8(3), rtol=1 / 255, **MS)
    assert off[0].dtype == U8


def test_quantized_activations_and_pools():
    x = ints(1, 2, 4, 4, low=0, high=255, dtype=U8)
    scale, small = np.float32(0.05), np.float32(0.004)
    agree("QLinearSigmoid", x, scale, U8(120), small, U8(0), rtol=1 / 200, **MS)
    agree("QLinearLeakyRelu", x, scale, U8(120), scale, U8(100), rtol=1 / 200, **MS)
    agree("QLinearGlobalAveragePool", x, scale, U8(120), scale, U8(100), rtol=1 / 100, **MS)
    agree("QLinearAveragePool", x, scale, U8(120), scale, U8(100), kernel_shape=[2, 2], rtol=1 / 100, **MS)
    agree("QLinearConcat", scale, U8(100), x, scale, U8(120), x, np.float32(0.1), U8(7), axis=1, rtol=1 / 200, **MS)


def test_dynamically_quantized_products():
    a, b = floats(3, 20), ints(20, 6, low=-60, high=60, dtype=I8)
    agree("DynamicQuantizeMatMul", a, b, np.float32(0.02), I8(0), floats(6), rtol=1e-4, **MS)
    levels = ints(3, 20, low=0, high=60, dtype=U8)
    agree(
        "MatMulIntegerToFloat", levels, b, np.float32(0.1), np.float32(0.02), U8(3), I8(2), floats(6), rtol=1e-4, **MS
    )
    agree("QGemm", levels, np.float32(0.1), U8(3), b, np.float32(0.02), I8(0), rtol=1e-4, **MS)


@pytest.mark.parametrize("zero_points", [False, True])
def test_four_bit_weights(zero_points):
    k, n, block = 64, 6, 32
    weights = ints(n, k // block, block // 2, low=0, high=255, dtype=U8)
    zero = [ints(n * (k // block) // 2, low=0, high=255, seed=2, dtype=U8)] if zero_points else []
    scales = np.abs(floats(n * (k // block), seed=1))
    agree("MatMulNBits", floats(3, k), weights, scales, *zero, K=k, N=n, bits=4, block_size=block, rtol=1e-4, **MS)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_dynamically_quantized_lstm(direction):
    d, width, hidden = (2 if direction == "bidirectional" else 1), 6, 5
    w, r = (
        ints(d, width, 4 * hidden, low=-50, high=50, dtype=I8),
        ints(d, hidden, 4 * hidden, low=-50, high=50, dtype=I8),
    )
    scale, zero = np.full(d, 0.02, np.float32), np.zeros(d, I8)
    agree("DynamicQuantizeLSTM", floats(4, 1, width), w, r, floats(d, 8 * hidden) * 0.1, None, None, None, None, scale,
          zero, scale, zero, outputs=3, rtol=2e-3, direction=direction, hidden_size=hidden, **MS)  # fmt: skip


def test_odds_and_ends():
    agree("ExpandDims", floats(2, 3), np.array(1, np.int32), **MS)
    agree("Inverse", floats(2, 3, 3), rtol=1e-3, **MS)
    agree("CDist", floats(3, 4), floats(5, 4, seed=1), metric="euclidean", rtol=1e-4, **MS)
