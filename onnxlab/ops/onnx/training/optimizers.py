"""Optimizer steps of ai.onnx.preview.training: Adagrad, Adam, Momentum. Gradient: execution/numpy/gradient.py."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onnxlab.ops.base.kernel_helpers import Array
from onnxlab.ops.base.registry import kernel
from onnxlab.ops.base.traits import OpTraits, traits

DOMAIN = "ai.onnx.preview.training"


def _each(count: int, tensors: tuple[Array, ...], step: Callable[..., tuple[Array, ...]]) -> tuple[Array, ...]:
    """Apply a step to every tuple (value, gradient, states…); inputs and outputs are grouped by role."""
    size = len(tensors) // count
    results = [step(*tensors[number::size]) for number in range(size)]
    return tuple(result[role] for role in range(len(results[0])) for result in results)


@kernel("Adagrad", domain=DOMAIN)
def adagrad(
    r: Array,
    t: Array,
    *tensors: Array,
    decay_factor: float = 0.0,
    epsilon: float = 0.0,
    norm_coefficient: float = 0.0,
) -> tuple[Array, ...]:
    """(X…, H…) from X…, gradients…, H…: X − r/(1 + t·decay) · G / (√H + ε), H the sum of squares."""
    rate = float(r) / (1 + int(t) * decay_factor)

    def step(x: Array, gradient: Array, history: Array) -> tuple[Array, Array]:
        whole = norm_coefficient * x + gradient
        total = history + whole * whole
        return (x - rate * whole / (np.sqrt(total) + epsilon)).astype(x.dtype), total.astype(x.dtype)

    return _each(3, tensors, step)


@kernel("Adam", domain=DOMAIN)
def adam(
    r: Array,
    t: Array,
    *tensors: Array,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 0.0,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[Array, ...]:
    """(X…, V…, H…) from X…, gradients…, V…, H…: running averages of gradients and of their squares."""
    count = int(t)
    rate = float(r) * np.sqrt(1 - beta**count) / (1 - alpha**count) if count > 0 else float(r)

    def step(x: Array, gradient: Array, v: Array, h: Array) -> tuple[Array, ...]:
        whole = norm_coefficient * x + gradient
        v_new, h_new = alpha * v + (1 - alpha) * whole, beta * h + (1 - beta) * whole * whole
        x_new = (1 - norm_coefficient_post) * (x - rate * v_new / (np.sqrt(h_new) + epsilon))
        return tuple(part.astype(x.dtype) for part in (x_new, v_new, h_new))

    return _each(4, tensors, step)


@kernel("Momentum", domain=DOMAIN)
def momentum(
    r: Array, t: Array, *tensors: Array, alpha: float, beta: float, mode: str, norm_coefficient: float
) -> tuple[Array, ...]:
    """(X…, V…) from X…, gradients…, V…: standard or Nesterov's momentum."""
    if mode not in ("standard", "nesterov"):
        raise ValueError(f"mode is {mode!r}: expected standard or nesterov")
    factor = beta if int(t) > 0 else 1

    def step(x: Array, gradient: Array, v: Array) -> tuple[Array, Array]:
        whole = norm_coefficient * x + gradient
        v_new = alpha * v + factor * whole
        move = v_new if mode == "standard" else whole + alpha * v_new
        return (x - r * move).astype(x.dtype), v_new.astype(x.dtype)

    return _each(3, tensors, step)


# -- traits ------------------------------------------------------------------------------------------------------------


traits("Adagrad Adam Momentum", OpTraits(category="custom", shape="shapes", flops=1), "ai.onnx.preview.training")
traits("Gradient", OpTraits(category="custom", shape="other", flops=1), "ai.onnx.preview.training")
