"""com.microsoft operators of training on a device: gradients, accumulation, and steps of optimizers.

ONNX Runtime changes buffers in place and returns a flag. The kernels here write to no input: the new state is in the
outputs behind the flag, which a graph need not name.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxlab.ops.base.kernel_helpers import Array, widened
from onnxlab.ops.base.one_line_rules import law
from onnxlab.ops.base.registry import kernel
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.microsoft.fused import DOMAIN

Arrays = Sequence[Array]


@kernel("ReluGrad", domain=DOMAIN)
@widened
def relu_grad(dy: Array, x: Array) -> Array:
    """dY where x is positive, else 0."""
    return np.where(x > 0, dy, np.zeros((), dy.dtype))


@kernel("Scale", domain=DOMAIN)
def scale(x: Array, factor: Array, scale_down: int = 0) -> Array:
    """x times a factor, or divided by it."""
    by = factor.reshape(()).astype(x.dtype)
    return x / by if scale_down else x * by


@kernel("InPlaceAccumulatorV2", domain=DOMAIN)
def in_place_accumulator_v2(buffer: Array, value: Array, overwrite: Array | None = None) -> tuple[Array, Array]:
    """A flag, and the buffer with a gradient added, or the gradient alone where it is to be overwritten."""
    alone = overwrite is not None and bool(overwrite.reshape(-1)[0])
    return np.ones(1, np.bool_), value.astype(buffer.dtype) if alone else buffer + value.astype(buffer.dtype)


@kernel("SGDOptimizerV2", domain=DOMAIN)
def sgd_optimizer_v2(
    rate: Array, weights: Arrays, gradients: Arrays, update: Array | None = None
) -> tuple[Array, list[Array]]:
    """A flag, and the weights after a step of stochastic gradient descent."""
    if not _updates(update):
        return np.zeros(1, np.bool_), list(weights)
    lr = rate.reshape(())
    pairs = zip(weights, gradients, strict=True)
    return np.ones(1, np.bool_), [weight - lr.astype(weight.dtype) * grad for weight, grad in pairs]


@kernel("AdamWOptimizer", domain=DOMAIN)
def adamw_optimizer(
    rate: Array,
    step: Array,
    weights: Arrays,
    gradients: Arrays,
    moments_1: Arrays,
    moments_2: Arrays,
    update: Array | None = None,
    adam_mode: int = 0,
    alpha: float = 0.9,
    beta: float = 0.999,
    correct_bias: int = 1,
    epsilon: float = 1e-8,
    weight_decay: float = 1e-2,
) -> tuple[Array, list[Array], list[Array], list[Array]]:
    """A flag, the weights after a step of AdamW, and both moments; mode 0 is PyTorch's, 1 that of transformers."""
    if not _updates(update):
        return np.zeros(1, np.bool_), list(weights), list(moments_1), list(moments_2)
    lr, count = np.float32(rate.reshape(())), int(step.reshape(()))
    first_bias = 1 - alpha**count if correct_bias else 1.0
    second_bias = 1 - beta**count if correct_bias else 1.0
    updated: tuple[list[Array], list[Array], list[Array]] = ([], [], [])
    for weight, gradient, old_1, old_2 in zip(weights, gradients, moments_1, moments_2, strict=True):
        dtype = weight.dtype.type
        first = dtype(alpha) * old_1 + dtype(1 - alpha) * gradient
        second = dtype(beta) * old_2 + dtype(1 - beta) * gradient * gradient
        if adam_mode == 0:
            decayed = weight - weight * dtype(lr * weight_decay)
            denominator = np.sqrt(second) / dtype(np.sqrt(second_bias)) + dtype(epsilon)
            new = decayed - dtype(lr / first_bias) * first / denominator
        else:
            rate_now = dtype(lr * np.sqrt(second_bias) / first_bias)
            stepped = weight - rate_now * first / (np.sqrt(second) + dtype(epsilon))
            new = stepped - stepped * dtype(lr * weight_decay)
        for results, result in zip(updated, (new, first, second), strict=True):
            results.append(result.astype(weight.dtype))
    return np.ones(1, np.bool_), *updated


def _updates(signal: Array | None) -> bool:
    return signal is None or bool(signal.reshape(-1)[0])


traits("ReluGrad Scale InPlaceAccumulatorV2", OpTraits(category="elementwise", shape="shapes", flops=1), DOMAIN)
traits("SGDOptimizerV2 AdamWOptimizer", OpTraits(category="custom", shape="shapes", flops=1), DOMAIN)
law("ReluGrad", "-> 0")
law("Scale", "-> 0")
law("InPlaceAccumulatorV2", "-> bool: 1 | 0")
law("AdamWOptimizer", "-> bool: 1 | 2 | 4 | 5")
law("SGDOptimizerV2", "-> bool: 1 | 1")
