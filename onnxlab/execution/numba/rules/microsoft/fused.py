"""Operators that ONNX Runtime's optimizer fuses: lowered as those they were fused from, which wait and join again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.copies import contiguous
from onnxlab.execution.numba.plan.views import View
from onnxlab.execution.numba.rules.onnx.conv import convolution_reason
from onnxlab.execution.numba.rules.onnx.matmul import batched, by_constant, check_depths
from onnxlab.execution.numba.rules.registry import RULES, StaticFacts, floats, rule
from onnxlab.graph.edit.snapshot import NodeView, SnapshotAttributes

DOMAIN = "com.microsoft"


@dataclass(frozen=True, slots=True)
class FusedOperator:
    """An operator of ai.onnx whose first input is what the stage before it makes; `inputs` are the others."""

    op_type: str
    inputs: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    version: int = 22


def in_stages(binder: Binder, node: NodeView, first: str, stages: Sequence[FusedOperator]) -> None:
    """Lower a node as one stage after the other, from its input `first` on."""
    for number, stage in enumerate(stages):
        last = number == len(stages) - 1
        output = node.outputs[0] if last else cast("str", (node.outputs[0], number))  # no value of a model is called so
        alone = replace(
            node, op_type=stage.op_type, domain="", since_version=stage.version, inputs=(first, *stage.inputs),
            outputs=(output,), attributes=cast("SnapshotAttributes", stage.attributes),
        )  # fmt: skip
        RULES["", stage.op_type].lower(binder, alone)
        first = output


_ACTIVATIONS: dict[str, Callable[[Sequence[float]], tuple[FusedOperator, ...]]] = {
    "": lambda _: (),
    "Relu": lambda _: (FusedOperator("Relu"),),
    "Tanh": lambda _: (FusedOperator("Tanh"),),
    "Sigmoid": lambda _: (FusedOperator("Sigmoid"),),
    "LeakyRelu": lambda parameters: (FusedOperator("LeakyRelu", (), _named(parameters, "alpha")),),
    "HardSwish": lambda _: (FusedOperator("HardSwish"),),
    "HardSigmoid": lambda parameters: (FusedOperator("HardSigmoid", (), _named(parameters, "alpha", "beta")),),
    "Clip": lambda parameters: (FusedOperator("Clip", (), _named(parameters, "min", "max"), version=6),),
}


def _named(parameters: Sequence[float], *names: str) -> dict[str, float]:
    return dict(zip(names, parameters, strict=False))


def _without(node: NodeView, *gone: str) -> dict[str, Any]:
    """The attributes but for some."""
    return {name: node.attributes[name] for name in node.attributes if name not in gone}


def _activated(node: NodeView, parameters: Sequence[float]) -> tuple[FusedOperator, ...]:
    """The activation at the end of a fused operator; its parameters are by position."""
    return _ACTIVATIONS[node.attributes.get("activation", "")](parameters)


def _activation_reason(node: NodeView) -> str:
    activation = node.attributes.get("activation", "")
    return "" if activation in _ACTIVATIONS else f"the activation {activation!r}"


def _conv_accept(node: NodeView, view: StaticFacts) -> str:
    return _activation_reason(node) or convolution_reason(node, view)


@rule("FusedConv", domain=DOMAIN, accept=_conv_accept, weight=4)
def fused_conv(binder: Binder, node: NodeView) -> None:
    """activation(Conv(X, W, B) + Z)."""
    x, *others = node.inputs
    stages = [FusedOperator("Conv", tuple(others[:2]), _without(node, "activation", "activation_params"))]
    if len(others) > 2 and others[2]:
        stages.append(FusedOperator("Add", (others[2],)))
    in_stages(binder, node, x, [*stages, *_activated(node, node.attributes.get("activation_params", ()))])


_PARAMETERS = {"activation_alpha": 0.01, "activation_beta": 0.0, "activation_gamma": 0.0}


def _gemm_accept(node: NodeView, view: StaticFacts) -> str:
    return _activation_reason(node) or floats(node, view)


@rule("FusedGemm", domain=DOMAIN, accept=_gemm_accept, weight=4)
def fused_gemm(binder: Binder, node: NodeView) -> None:
    """activation(Gemm(A, B, C))."""
    parameters = [node.attributes.get(name, default) for name, default in _PARAMETERS.items()]
    first = FusedOperator("Gemm", node.inputs[1:], _without(node, "activation", *_PARAMETERS))
    in_stages(binder, node, node.inputs[0], [first, *_activated(node, parameters)])


@rule("BiasGelu", domain=DOMAIN)
def bias_gelu(binder: Binder, node: NodeView) -> None:
    """gelu(A + B)."""
    in_stages(binder, node, node.inputs[0], [FusedOperator("Add", node.inputs[1:2]), FusedOperator("Gelu")])


@rule("FastGelu", domain=DOMAIN)
def fast_gelu(binder: Binder, node: NodeView) -> None:
    """The approximation of gelu(X + bias) by tanh."""
    added = [FusedOperator("Add", (name,)) for name in node.inputs[1:2] if name]
    in_stages(binder, node, node.inputs[0], [*added, FusedOperator("Gelu", (), {"approximate": "tanh"})])


@rule("QuickGelu", domain=DOMAIN)
def quick_gelu(binder: Binder, node: NodeView) -> None:
    """x · sigmoid(alpha·x)."""
    alpha = node.attributes.get("alpha", 1.702)
    in_stages(binder, node, node.inputs[0], [FusedOperator("Swish", (), {"alpha": alpha}, version=24)])


@rule("FusedMatMul", "TransposeMatMul", domain=DOMAIN, weight=4)
def fused_matmul(binder: Binder, node: NodeView) -> None:
    """alpha · A @ B, both transposed where asked."""
    alpha = float(node.attributes.get("alpha", 1.0))
    a = _turned(binder.floats(node.inputs[0]), node, "A")
    weights, key = binder.weights(node.inputs[1])
    if weights is not None and len(weights.shape) == 2 and not node.attributes.get("transBatchB", 0):
        turned = bool(node.attributes.get("transB", 0))
        if turned:
            weights = weights.then(np.transpose, weights.shape[::-1])
        target = binder.builder.allocate((*a.shape[:-1], weights.shape[1]), np.float32)
        check_depths(a.shape, weights.shape)
        product = by_constant(binder, a, weights, target, ("fused matmul", *key, turned))
        if alpha != 1.0:
            product.scale_columns(np.full((1, weights.shape[1]), alpha, np.float32))
    else:
        b = _turned(binder.floats(node.inputs[1]), node, "B")
        check_depths(a.shape, b.shape)
        if alpha != 1.0:  # of what is smaller, as a rule, than the product
            a = contiguous(binder.builder, binder.emit(binder.chain("mul", [a, alpha])))
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        product = batched(binder, a, b, binder.builder.allocate(shape, np.float32))
    binder.put(node.outputs[0], product)


def _turned(x: View, node: NodeView, which: str) -> View:
    """A matrix with its last two axes swapped where that is asked for, the leading one before the last."""
    axes = list(range(len(x.shape)))
    if len(axes) < 2:
        raise UnbindableError("a vector in a product")
    if node.attributes.get(f"transBatch{which}", 0) and len(axes) > 2:
        axes.insert(-1, axes.pop(0))
    if node.attributes.get(f"trans{which}", 0):
        axes[-2:] = axes[:-3:-1]
    return x.transposed(axes)
