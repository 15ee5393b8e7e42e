"""Mixtures of experts against ONNX Runtime."""

import numpy as np
import pytest

from tests.ops.support.single_node import agree, floats, run

MS = {"opset": 1, "domain": "com.microsoft"}


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "identity"])
@pytest.mark.parametrize("k", [1, 2])
def test_mixture_of_experts(activation, k):
    x, router = floats(5, 8), floats(5, 3, seed=1)
    layers = [floats(3, 16, 8, seed=2), floats(3, 16, seed=3), floats(3, 8, 16, seed=4), floats(3, 8, seed=5)]
    agree("MoE", x, router, *layers, activation_type=activation, k=k, normalize_routing_weights=k - 1, rtol=1e-4, **MS)


@pytest.mark.parametrize("options", [{}, {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 0.7}])
def test_swiglu(options):
    x, router = floats(2, 3, 8), floats(6, 3, seed=1)
    layers = [floats(3, 32, 8, seed=2), floats(3, 32, seed=3), floats(3, 8, 16, seed=4), floats(3, 8, seed=5)]
    agree("MoE", x, router, *layers, activation_type="swiglu", swiglu_fusion=1, k=2, rtol=1e-4, **options, **MS)


def test_the_two_forms_of_a_fused_first_layer_hold_the_same_rows():
    x, router, first, second = floats(4, 8), floats(4, 3, seed=1), floats(3, 32, 8, seed=2), floats(3, 8, 16, seed=4)
    apart = np.concatenate([first[:, 0::2], first[:, 1::2]], axis=1)
    (expected,) = run("MoE", x, router, first, None, second, activation_type="swiglu", swiglu_fusion=1, **MS)
    (result,) = run("MoE", x, router, apart, None, second, activation_type="swiglu", swiglu_fusion=2, **MS)
    gate, value = first[:, 0::2].copy(), first[:, 1::2].copy()
    (third,) = run("MoE", x, router, gate, None, second, None, value, activation_type="swiglu", **MS)
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    np.testing.assert_allclose(third, expected, rtol=1e-5)


def packed(bits: int, *shape: int, seed: int = 0) -> np.ndarray:
    """Random integers of so many bits in bytes; `shape` counts integers."""
    dims = (*shape[:-1], shape[-1] * bits // 8)
    return np.random.default_rng(seed).integers(0, 256, dims).astype(np.uint8)


@pytest.mark.parametrize(("bits", "block"), [(4, 0), (8, 0), (4, 16), (4, 32)])
@pytest.mark.parametrize("swiglu", [True, False])
def test_quantized_experts(bits, block, swiglu):
    experts, width, inner = 3, 32, 64
    x, router = floats(5, width), floats(5, experts, seed=1)
    rows = inner * (2 if swiglu else 1)
    dims = lambda outputs, inputs: (experts, outputs, inputs // block) if block else (experts, outputs)  # noqa: E731
    scales = [np.abs(floats(*dims(*sizes), seed=2)) / 2**bits for sizes in ((rows, width), (width, inner))]
    layers = [packed(bits, experts, rows, width), scales[0], None, packed(bits, experts, width, inner), scales[1]]
    options = {"activation_type": "swiglu", "swiglu_fusion": 1} if swiglu else {"activation_type": "silu"}
    options |= {"block_size": block} if block else {}
    agree("QMoE", x, router, *layers, k=2, expert_weight_bits=bits, rtol=2e-3, **options, **MS)


def test_quantized_experts_with_zero_points():
    x, router = floats(5, 32), floats(5, 3, seed=1)
    layers = [packed(4, 3, 64, 32), np.abs(floats(3, 64, 2, seed=2)) / 16, None, packed(4, 3, 32, 64, seed=3),
              np.abs(floats(3, 32, 4, seed=4)) / 16]  # fmt: skip
    zeros = [packed(4, 3, 64, 2, seed=5), packed(4, 3, 32, 4, seed=6)]
    agree("QMoE", x, router, *layers, *[None] * 4, *zeros, k=1, block_size=16, activation_type="relu", rtol=2e-3, **MS)


@pytest.mark.parametrize("normalize", [0, 1])
def test_mixing_weights_that_are_given(normalize):
    x, router, weights = floats(5, 32), floats(5, 3, seed=1), np.abs(floats(5, 3, seed=2))
    layers = [packed(8, 3, 64, 32), np.abs(floats(3, 64, seed=2)) / 256, None, packed(8, 3, 32, 64, seed=3),
              np.abs(floats(3, 32, seed=4)) / 256]  # fmt: skip
    agree("QMoE", x, router, *layers, *[None] * 7, weights, k=2, expert_weight_bits=8, rtol=2e-3,
          normalize_routing_weights=normalize, **MS)  # fmt: skip


def test_what_is_refused_is_named():
    x, router, layer = floats(2, 8), floats(2, 2), floats(2, 8, 8)
    with pytest.raises(NotImplementedError, match="use_sparse_mixer has no kernel here"):
        run("MoE", x, router, layer, None, layer, use_sparse_mixer=1, **MS)
    with pytest.raises(ValueError, match="swiglu_fusion is 0 and there is no third layer"):
        run("MoE", x, router, layer, None, layer, activation_type="swiglu", **MS)
    with pytest.raises(ValueError, match="activation_type is 'tanh': expected relu, gelu, silu, identity or swiglu"):
        run("MoE", x, router, layer, None, layer, activation_type="tanh", **MS)
