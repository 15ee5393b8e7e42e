"""com.microsoft operators on gates, integers and images against ONNX Runtime, or NumPy where its CPU has none."""

import numpy as np
import onnx
import pytest

from onnxlab.errors import UnsupportedOperatorError
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from tests.ops.support.single_node import agree, floats, i64, ints, run

MS = {"opset": 1, "domain": "com.microsoft"}
U8, I8 = np.uint8, np.int8


def test_gates():
    x, gate = floats(2, 3, 8), floats(2, 3, 8, seed=1)
    agree("ScaledSiLU", x, alpha=1.5, **MS)
    agree("GatedAdd", x, gate, floats(2, 3, 1, seed=2), **MS)
    agree("GatedRMSNorm", x, floats(4, seed=3), gate, **MS)
    agree("GatedRMSNorm", x, floats(8, seed=3), gate, activation="sigmoid", **MS)
    agree("BranchwiseRMSNorm", x, floats(8, seed=3), num_branches=2, **MS)
    agree("BranchwiseRMSNorm", x, floats(8, seed=3), **MS)


@pytest.mark.parametrize("update_rule", ["linear", "gated_delta"])
def test_recurrent_forms_of_ai_onnx(update_rule):
    query, key, value = (floats(1, 4, 16, seed=seed) for seed in range(3))
    gates = [-np.abs(floats(1, 4, 2, seed=3)), np.abs(floats(1, 4, 2, seed=4))] if "delta" in update_rule else []
    agree("LinearAttention", query, key, value, None, *gates, q_num_heads=2, kv_num_heads=2, update_rule=update_rule,
          outputs=2, rtol=1e-4, **MS)  # fmt: skip
    x, weight, past = floats(2, 3, 5), floats(3, 1, 4), floats(2, 3, 3, seed=1)
    agree("CausalConvWithState", x, weight, floats(3), past, activation="silu", outputs=2, rtol=1e-4, **MS)
    with pytest.raises(NotImplementedError, match="with dilation 2 has no kernel here"):
        run("CausalConvWithState", x, weight, outputs=2, dilation=2, **MS)


def test_integers():
    agree("MatMulInteger16", ints(2, 3, dtype=np.int16), ints(3, 4, seed=1, dtype=np.int16), **MS)
    a, b = ints(2, 3, low=0, high=255, dtype=U8), ints(3, low=0, high=255, seed=1, dtype=U8)
    np.testing.assert_array_equal(
        run("MulInteger", a, U8(5), b, U8(7), **MS)[0], (a.astype(np.int32) - 5) * (b.astype(np.int32) - 7)
    )
    np.testing.assert_array_equal(run("ReduceSumInteger", a, axes=[1], keepdims=0, **MS)[0], a.sum(1))
    agree("UnfoldTensor", floats(2, 9), dim=1, size=3, step=2, **MS)
    np.testing.assert_array_equal(run("TorchEmbedding", floats(5, 2), i64(4, 0), **MS)[0], floats(5, 2)[[4, 0]])


@pytest.mark.parametrize("positive", [0, 1])
def test_hashes(positive):
    agree("MurmurHash3", ints(2, 3, dtype=np.int32), positive=positive, seed=3, **MS)
    agree("MurmurHash3", ints(2, 3, dtype=np.int64), positive=positive, **MS)
    agree("MurmurHash3", floats(4, dtype=np.float64), positive=positive, **MS)
    agree("MurmurHash3", np.array(["", "a", "abcd", "abcdefg"], object), positive=positive, **MS)


def test_repeated_n_grams():
    ids = np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4]])
    agree("NGramRepeatBlock", ids, floats(2, 6), ngram_size=3, **MS)
    agree("NGramRepeatBlock", ids, floats(2, 6), ngram_size=7, **MS)


@pytest.mark.parametrize("quant_type", [0, 1])
def test_four_bits_of_bitsandbytes(quant_type):
    b, absmax = ints(6 * 32 // 2, low=0, high=255, dtype=U8), np.abs(floats(6 * 32 // 16))
    agree("MatMulBnb4", floats(3, 32), b, absmax, K=32, N=6, block_size=16, quant_type=quant_type, rtol=1e-4, **MS)


def test_quantized_embeddings():
    tables = [ints(n, 8, low=0, high=255, seed=n, dtype=U8) for n in (10, 6, 2)]
    vectors = [ints(8, low=0, high=255, seed=n, dtype=U8) for n in (1, 2)]
    ids, kinds = ints(2, 4, low=0, high=10, dtype=np.int32), ints(2, 4, low=0, high=2, dtype=np.int32)
    numbers = [*[np.float32(0.02)] * 5, *[U8(100)] * 5]
    mask = np.ones((2, 4), np.int32)
    agree("QEmbedLayerNormalization", ids, kinds, *tables, *vectors, mask, *numbers, outputs=2, rtol=1e-4, **MS)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_crops(mode):
    boxes = np.array([[0, 0, 1, 1], [0.1, 0.6, 0.8, -0.2]], np.float32)
    for size in ([4, 5], [1, 3]):
        agree("CropAndResize", floats(2, 3, 8, 7), boxes, np.array([1, 0], np.int32), np.array(size, np.int32),
              mode=mode, extrapolation_value=0.5, rtol=1e-4, **MS)  # fmt: skip


def test_transposed_convolution_with_pads_as_an_input():
    agree("ConvTransposeWithDynamicPads", floats(1, 4, 5, 5), floats(4, 2, 3, 3), i64(0, 1, 0, 1), strides=[2, 2],
          rtol=1e-4, **MS)  # fmt: skip


def test_fourier_transforms_and_complex_products():
    x = floats(2, 8)
    (pairs,) = run("Rfft", x, signal_ndim=1, **MS)
    np.testing.assert_allclose(pairs[..., 0] + 1j * pairs[..., 1], np.fft.rfft(x), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(run("Irfft", pairs, signal_ndim=1, **MS)[0], x, rtol=1e-4, atol=1e-5)
    a, b = floats(3, 2), floats(3, 2, seed=1)
    product = (a[:, 0] + 1j * a[:, 1]) * (b[:, 0] - 1j * b[:, 1])
    np.testing.assert_allclose(run("ComplexMulConj", a, b, **MS)[0][:, 1], product.imag, rtol=1e-5)


def test_what_has_no_kernel_is_refused_by_name():
    header = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>'
    nodes = "y = com.microsoft.GreedySearch <eos_token_id = 1, pad_token_id = 0, decoder = d (a) => (a) {}> (ids, most)"
    proto = onnx.parser.parse_model(f"{header} g (int32[1, 4] ids, int32[1] most) => (y) {{ {nodes} }}")
    with pytest.raises(UnsupportedOperatorError, match=r"no provider implements com\.microsoft::GreedySearch"):
        Runner(ModelGraph(proto)).run({"ids": np.ones((1, 4), np.int32), "most": np.ones(1, np.int32)})
