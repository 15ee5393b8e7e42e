"""com.microsoft mixtures of experts: MoE, and QMoE with weights of 2, 4 or 8 bits.

Sources: docs/ContribOperators.md and the schemas of ONNX Runtime.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from onnxlab.limits import RunContext
from onnxlab.ops.base.estimates import experts_flops
from onnxlab.ops.base.kernel_helpers import Array, narrow, widen
from onnxlab.ops.base.one_line_rules import law
from onnxlab.ops.base.registry import kernel
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.microsoft.fused import DOMAIN
from onnxlab.ops.microsoft.quantized import unpacked
from onnxlab.ops.onnx.nn.activation import gelu_tanh, sigmoid, softmax, swish

_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": gelu_tanh,
    "silu": swish,
    "identity": lambda x: x,
}

Weights = Callable[[int], Array]
"""expert -> its matrix [outputs, inputs] as float32."""


@dataclass(frozen=True, slots=True)
class ExpertLayer:
    """One of the two or three linear layers of all experts: weights, and a bias [experts, outputs]."""

    weights: Weights
    bias: Array | None

    def __call__(self, expert: int, rows: Array) -> Array:
        """Apply the layer of one expert to its rows."""
        y = rows @ self.weights(expert).T
        return y if self.bias is None else y + widen(self.bias[expert])


@dataclass(frozen=True, slots=True)
class Gate:
    """The activation between the layers of an expert.

    Attributes:
        fusion: for swiglu, 1 where the first layer makes gates and values in turn, 2 where it makes all gates and
            then all values, 0 where another layer makes the values.
        limit: bound of the gates and values of swiglu.
    """

    activation: str
    alpha: float
    beta: float
    fusion: int
    limit: float

    def __call__(self, expert: int, rows: Array, first: ExpertLayer, third: ExpertLayer | None) -> Array:
        """Apply the first layer of one expert and the activation to its rows."""
        inner = first(expert, rows)
        if self.activation != "swiglu":
            activated = _ACTIVATIONS[self.activation](inner)
            return activated if third is None else activated * third(expert, rows)
        if self.fusion == 1:
            gate, value = inner[:, 0::2], inner[:, 1::2]
        elif self.fusion == 2:
            gate, value = np.split(inner, 2, axis=1)
        elif third is not None:
            gate, value = inner, third(expert, rows)
        else:
            raise ValueError("swiglu_fusion is 0 and there is no third layer: expected 1 or 2, or fc3_experts_weights")
        gate, value = np.minimum(gate, self.limit), np.clip(value, -self.limit, self.limit)
        return gate * sigmoid(gate * np.float32(self.alpha)) * (value + np.float32(self.beta))


def mix(
    ctx: RunContext,
    x: Array,
    router: tuple[Array, Array | None],
    layers: tuple[ExpertLayer, ExpertLayer, ExpertLayer | None],
    gate: Gate,
    k: int,
    normalize: bool | int,
) -> Array:
    """Each row of X through its k likeliest experts, weighted.

    Args:
        router: scores [rows, experts], and the experts' weights where these are not the softmax of the scores.

    Raises:
        ValueError: the activation is unknown.
    """
    if gate.activation not in (*_ACTIVATIONS, "swiglu"):
        raise ValueError(f"activation_type is {gate.activation!r}: expected {', '.join(_ACTIVATIONS)} or swiglu")
    first, second, third = layers
    rows, scores = np.ascontiguousarray(widen(x)).reshape(-1, x.shape[-1]), widen(router[0])
    shares = softmax(scores) if router[1] is None else widen(router[1])
    chosen = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    weights = np.take_along_axis(shares, chosen, 1)
    if normalize:
        weights = weights / weights.sum(axis=1, keepdims=True)
    y: Array | None = None
    for expert in np.unique(chosen).tolist():
        ctx.check()
        at, rank = np.nonzero(chosen == expert)
        output = second(expert, gate(expert, rows[at], first, third))
        y = np.zeros((len(rows), output.shape[1]), rows.dtype) if y is None else y
        y[at] += output * weights[at, rank][:, None]
    return narrow(np.zeros(x.shape, rows.dtype) if y is None else y.reshape(*x.shape[:-1], -1), x.dtype)


def _refuse_mixer(use_sparse_mixer: int) -> None:
    if use_sparse_mixer:
        raise NotImplementedError("use_sparse_mixer has no kernel here: it is for training; expected 0")


@kernel("MoE", domain=DOMAIN, context=True)
def mixture_of_experts(
    ctx: RunContext,
    x: Array,
    router_probs: Array,
    fc1: Array,
    fc1_bias: Array | None,
    fc2: Array,
    fc2_bias: Array | None = None,
    fc3: Array | None = None,
    fc3_bias: Array | None = None,
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    activation_type: str = "relu",
    k: int = 1,
    normalize_routing_weights: int = 0,
    swiglu_fusion: int = 0,
    swiglu_limit: float = np.inf,
    use_sparse_mixer: int = 0,
) -> Array:
    """Each row of X through its k likeliest experts: fc2 [E, D, I] · activation(fc1 [E, I, D] · row).

    Raises:
        NotImplementedError: the sparse mixer is asked for.
    """
    _refuse_mixer(use_sparse_mixer)
    layers = [
        None if weights is None else ExpertLayer(lambda expert, weights=weights: widen(weights[expert]), bias)  # type: ignore[misc]
        for weights, bias in ((fc1, fc1_bias), (fc2, fc2_bias), (fc3, fc3_bias))
    ]
    gate = Gate(activation_type, activation_alpha, activation_beta, swiglu_fusion, swiglu_limit)
    assert layers[0] is not None
    assert layers[1] is not None
    return mix(ctx, x, (router_probs, None), (layers[0], layers[1], layers[2]), gate, k, normalize_routing_weights)


def _dequantized(
    packed: Array, scales: Array, zero_points: Array | None, bits: int, block_size: int, expert: int
) -> Array:
    """The weights [outputs, inputs] of an expert: low bits first, a scale for each row, or block of one."""
    levels = unpacked(packed[expert], bits).astype(np.float32)
    rows, width = levels.shape
    factors = widen(scales[expert]).reshape(rows, -1)
    count = factors.shape[1]
    if zero_points is None:
        zero: Array = np.full((1, 1), 1 << (bits - 1), np.float32)
    else:
        zero = unpacked(zero_points[expert], bits).astype(np.float32)
        zero = zero.reshape(rows, -1)[:, :count] if zero_points.ndim == 3 else zero[:rows, None]
    step = block_size if block_size > 0 else width
    blocks = levels.reshape(rows, count, step) - zero[:, :, None]
    return (blocks * factors[:, :, None]).reshape(rows, width)


@kernel("QMoE", domain=DOMAIN, context=True)
def quantized_mixture_of_experts(
    ctx: RunContext,
    x: Array,
    router_probs: Array,
    *inputs: Array | None,
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    activation_type: str = "relu",
    block_size: int = -1,
    expert_weight_bits: int = 4,
    fc1_expert_weight_bits: int | None = None,
    fc2_expert_weight_bits: int | None = None,
    fc3_expert_weight_bits: int | None = None,
    k: int = 1,
    normalize_routing_weights: int = 0,
    quant_type: str = "int",
    swiglu_fusion: int = 0,
    swiglu_limit: float = np.inf,
    use_sparse_mixer: int = 0,
    weights_prepacked: int = -1,
    accuracy_level: int = 0,
) -> Array:
    """MoE with integer weights (weights, scales and bias of each layer, then the zero points, then mixing weights).

    As in ONNX Runtime on a CPU, weights are normalized among the chosen experts even if normalize_routing_weights is 0;
    only mixing weights that come as an input then stay as they are.

    Raises:
        NotImplementedError: weights of small floats, or prepacked ones, or the sparse mixer.
    """
    _refuse_mixer(use_sparse_mixer)
    if quant_type != "int" or weights_prepacked == 1:
        unsupported = f"quant_type {quant_type!r}" if quant_type != "int" else "prepacked weights"
        raise NotImplementedError(
            f"QMoE with {unsupported} has no kernel here: expected quant_type 'int', not prepacked"
        )
    padded = [*inputs, *[None] * (13 - len(inputs))]
    widths = (fc1_expert_weight_bits, fc2_expert_weight_bits, fc3_expert_weight_bits)
    layers = [_quantized_layer(padded, number, bits or expert_weight_bits, block_size)
              for number, bits in enumerate(widths)]  # fmt: skip
    first, second, third = layers
    if first is None or second is None:
        raise ValueError("weights or scales of the first or second layer are absent: both layers need both")
    gate = Gate(activation_type, activation_alpha, activation_beta, swiglu_fusion, swiglu_limit)
    normalize = normalize_routing_weights or padded[12] is None
    return mix(ctx, x, (router_probs, padded[12]), (first, second, third), gate, k, normalize)


def _quantized_layer(arrays: Sequence[Array | None], number: int, bits: int, block_size: int) -> ExpertLayer | None:
    """The layer whose weights, scales and bias are the `number`th three inputs behind the router's scores."""
    weights, scales, bias = arrays[3 * number : 3 * number + 3]
    if weights is None or scales is None:
        return None
    return ExpertLayer(partial(_dequantized, weights, scales, arrays[9 + number], bits, block_size), bias)


# -- shape rules -------------------------------------------------------------------------------------------------------


law("MoE", "-> 0")
law("QMoE", "-> 0")


# -- traits ------------------------------------------------------------------------------------------------------------


traits("MoE QMoE", OpTraits(category="matrix", shape="shapes", flops=experts_flops), DOMAIN)
