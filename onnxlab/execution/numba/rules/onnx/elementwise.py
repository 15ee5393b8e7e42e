"""Elementwise operators as operations of the vector machine, and what of them products take in."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.matrix_products import Product
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.copies import contiguous
from onnxlab.execution.numba.plan.elementwise_chains import Chain, Operand
from onnxlab.execution.numba.plan.views import View
from onnxlab.execution.numba.rules.onnx.integers import is_integer, lower_integers, or_integers
from onnxlab.execution.numba.rules.part_matcher import PartMatch
from onnxlab.execution.numba.rules.registry import StaticFacts, bools, floats, rule
from onnxlab.graph.edit.snapshot import NodeView

_BINARY = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "PRelu": "prelu"}
_COMPARING = {"Less": "less", "LessOrEqual": "less_equal", "Greater": "greater", "GreaterOrEqual": "greater_equal",
              "Equal": "equal", "And": "and", "Or": "or", "Xor": "not_equal"}  # fmt: skip
_UNARY = {"Neg": "neg", "Abs": "abs", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Reciprocal": "reciprocal",
          "Tanh": "tanh", "Sigmoid": "sigmoid", "Erf": "erf", "Floor": "floor", "Ceil": "ceil", "Round": "round",
          "Softplus": "softplus", "Sign": "sign", "HardSwish": "hardswish"}  # fmt: skip


@rule("Add", "Sub", "Mul", "Div", since=7, accept=or_integers(floats), reads=(0, 1))
def binary(binder: Binder, node: NodeView) -> None:
    """Lower arithmetic of two operands, into a product before it where possible."""
    a, b = node.inputs
    if is_integer(binder, a):
        lower_integers(binder, node)
    elif not _joined(binder, node.op_type, a, b, node.outputs[0]):
        binder.combine(node.outputs[0], _BINARY[node.op_type], [binder.operand(a), binder.operand(b)])


@rule("PRelu", since=7)
def prelu(binder: Binder, node: NodeView) -> None:
    """Lower PRelu."""
    x, slope = map(binder.operand, node.inputs)
    binder.combine(node.outputs[0], "prelu", [x, slope])


def _joined(binder: Binder, op_type: str, a: str, b: str, output: str) -> bool:
    """Let a product that waits take a bias, a factor or a residual."""
    for name, other in ((a, b), (b, a)):
        product = binder.value(name)
        if not isinstance(product, Product) or not product.open or (op_type in ("Sub", "Div") and name is b):
            continue
        value = binder.value(other)
        columns = product.column_values(value) if isinstance(value, np.ndarray) else None
        if columns is not None:
            if op_type in ("Add", "Sub"):
                product.add_columns(columns if op_type == "Add" else -columns)
            elif product.constant is not None and product.residual is None:
                product.scale_columns(columns if op_type == "Mul" else np.float32(1) / columns)
            else:
                continue
            binder.put(output, product)
            return True
        if op_type == "Add" and product.residual is None and tuple(value.shape) == product.shape:
            residual = binder.floats(other)
            is_apart = residual.strides[product.axis] != 4 and residual.shape[product.axis] > 1
            if is_apart or len(product.batches) > 1:  # the matrices of several lie in both as in the target
                residual = contiguous(binder.builder, residual, product.target.strides)
            product.residual = residual
            binder.put(output, product)
            return True
    return False


@rule("Sum", since=8)
def total(binder: Binder, node: NodeView) -> None:
    """Lower Sum to a chain of additions."""
    if len(node.inputs) == 2 and _joined(binder, "Add", *node.inputs, node.outputs[0]):
        return
    _fold(binder, node, "add")


@rule("Max", "Min", since=8)
def extreme(binder: Binder, node: NodeView) -> None:
    """Lower Max and Min to a chain."""
    _fold(binder, node, node.op_type.lower())


def _fold(binder: Binder, node: NodeView, operation: str) -> None:
    first, *others = [binder.operand(name) for name in node.inputs]
    for operand in others:
        if isinstance(first, float) and isinstance(operand, float):
            raise UnbindableError("only constants")
        first = binder.chain(operation, [first, operand])
    if not isinstance(first, Chain):
        first = binder.chain("copy", [first])
    binder.put(node.outputs[0], first)


@rule(*_UNARY, since=6)
def unary(binder: Binder, node: NodeView) -> None:
    """Lower functions of one operand."""
    binder.combine(node.outputs[0], _UNARY[node.op_type], [binder.operand(node.inputs[0])])


@rule("Erf", "Softplus", "HardSwish", "Sign")
def unary_of_any_version(binder: Binder, node: NodeView) -> None:
    """Lower functions whose first version is supported too."""
    unary(binder, node)


@rule(*_COMPARING, since=7, accept=or_integers(bools), reads=(0, 1))
def comparison(binder: Binder, node: NodeView) -> None:
    """Lower comparisons and Boolean functions of two operands."""
    if is_integer(binder, node.inputs[0]):
        lower_integers(binder, node)
        return
    operands = [binder.operand(name) for name in node.inputs]
    binder.combine(node.outputs[0], _COMPARING[node.op_type], operands, truth=True)


@rule("Not", accept=bools)
def negation(binder: Binder, node: NodeView) -> None:
    """Lower Not."""
    binder.combine(node.outputs[0], "not", [binder.operand(node.inputs[0])], truth=True)


@rule("IsNaN", since=9)
def is_nan(binder: Binder, node: NodeView) -> None:
    """Lower IsNaN."""
    binder.combine(node.outputs[0], "isnan", [binder.operand(node.inputs[0])], truth=True)


@rule("Where", since=9, accept=or_integers(bools), reads=(1, 2))
def where(binder: Binder, node: NodeView) -> None:
    """Lower Where, except between Booleans."""
    if is_integer(binder, node.inputs[1]):
        lower_integers(binder, node)
        return
    condition, x, y = (binder.operand(name) for name in node.inputs)
    if any(_is_truth(operand) for operand in (x, y)):
        raise UnbindableError("a choice between booleans")
    binder.combine(node.outputs[0], "where", [condition, x, y])


def _is_truth(operand: Operand) -> bool:
    if isinstance(operand, Chain):
        return operand.truth
    return isinstance(operand, View) and operand.dtype != np.float32


@rule("Relu", since=6)
def relu(binder: Binder, node: NodeView) -> None:
    """Lower Relu as a clamp."""
    _clamped(binder, node, 0.0, inf, "relu")


_LOWEST = float(np.finfo(np.float32).min)
"""The value of an absent lower bound; with finite bounds, infinities become finite."""


@rule("Clip", since=6)
def clip(binder: Binder, node: NodeView) -> None:
    """Lower Clip with constant bounds, attributes or inputs."""
    if node.since_version < 11:
        low, high = node.attributes.get("min", _LOWEST), node.attributes.get("max", -_LOWEST)
    else:
        bounds = [binder.known(name) if name else None for name in (*node.inputs[1:], "", "")[:2]]
        for bound, name in zip(bounds, node.inputs[1:], strict=False):
            if name and bound is None:
                raise UnbindableError(f"the bound {name!r} is known only when it has been computed")
            if bound is not None and bound.shape not in ((), (1,)):
                raise UnbindableError(f"the bound {name!r} has shape {bound.shape}: expected a scalar")
        low = _LOWEST if bounds[0] is None else float(bounds[0].reshape(()))
        high = -_LOWEST if bounds[1] is None else float(bounds[1].reshape(()))
    _clamped(binder, node, low, high, "")


def _clamped(binder: Binder, node: NodeView, low: float, high: float, operation: str) -> None:
    value = binder.value(node.inputs[0])
    if isinstance(value, Product) and value.open and low <= high:
        value.low, value.high = low, high
        binder.put(node.outputs[0], value)
        return
    x = binder.operand(node.inputs[0])
    if operation:
        binder.combine(node.outputs[0], operation, [x])
    elif low > high:
        binder.combine(node.outputs[0], "min", [binder.chain("max", [x, low]), high])
    else:
        binder.combine(node.outputs[0], "clip", [x, low, high])


# -- activations with parameters ---------------------------------------------------------------------------------------


def _parameter(node: NodeView, name: str, default: float) -> float:
    return float(node.attributes.get(name, default))


@rule("LeakyRelu", since=6)
def leaky_relu(binder: Binder, node: NodeView) -> None:
    """Lower LeakyRelu."""
    x = binder.operand(node.inputs[0])
    binder.combine(node.outputs[0], "prelu", [x, _parameter(node, "alpha", 0.01)])


@rule("HardSigmoid", since=6)
def hard_sigmoid(binder: Binder, node: NodeView) -> None:
    """Lower HardSigmoid."""
    x = binder.operand(node.inputs[0])
    line = binder.chain("fma", [x, _parameter(node, "alpha", 0.2), _parameter(node, "beta", 0.5)])
    binder.combine(node.outputs[0], "clip", [line, 0.0, 1.0])


@rule("Elu", since=6)
def elu(binder: Binder, node: NodeView) -> None:
    """Lower Elu."""
    x = binder.view(node.inputs[0])
    curve = binder.chain("expm1", [binder.chain("min", [x, 0.0])])
    below = binder.chain("mul", [curve, _parameter(node, "alpha", 1.0)])
    binder.combine(node.outputs[0], "where", [binder.chain("less", [x, 0.0]), below, x])


@rule("Celu", since=12)
def celu(binder: Binder, node: NodeView) -> None:
    """Lower Celu."""
    x, alpha = binder.view(node.inputs[0]), _parameter(node, "alpha", 1.0)
    if not alpha:
        raise UnbindableError("an alpha of 0")
    curve = binder.chain("expm1", [binder.chain("div", [binder.chain("min", [x, 0.0]), alpha])])
    below = binder.chain("mul", [curve, alpha])
    binder.combine(node.outputs[0], "where", [binder.chain("less", [x, 0.0]), below, x])


@rule("ThresholdedRelu", since=10)
def thresholded_relu(binder: Binder, node: NodeView) -> None:
    """Lower ThresholdedRelu."""
    x = binder.view(node.inputs[0])
    above = binder.chain("greater", [x, _parameter(node, "alpha", 1.0)])
    binder.combine(node.outputs[0], "where", [above, x, 0.0])


@rule("Selu", since=6)
def selu(binder: Binder, node: NodeView) -> None:
    """Lower Selu."""
    alpha, gamma = _parameter(node, "alpha", 1.6732632423543772), _parameter(node, "gamma", 1.0507009873554805)
    x = binder.view(node.inputs[0])
    below = binder.chain("mul", [binder.chain("expm1", [binder.chain("min", [x, 0.0])]), alpha])
    chosen = binder.chain("where", [binder.chain("less", [x, 0.0]), below, x])
    binder.combine(node.outputs[0], "mul", [chosen, gamma])


@rule("Softsign")
def softsign(binder: Binder, node: NodeView) -> None:
    """Lower Softsign."""
    x = binder.view(node.inputs[0])
    binder.combine(node.outputs[0], "div", [x, binder.chain("add", [binder.chain("abs", [x]), 1.0])])


@rule("Mish", since=18)
def mish(binder: Binder, node: NodeView) -> None:
    """Lower Mish."""
    x = binder.view(node.inputs[0])
    binder.combine(node.outputs[0], "mul", [x, binder.chain("tanh", [binder.chain("softplus", [x])])])


@rule("Swish", since=24)
def swish(binder: Binder, node: NodeView) -> None:
    """Lower Swish."""
    x = binder.view(node.inputs[0])
    alpha = _parameter(node, "alpha", 1.0)
    if alpha == 1.0:
        binder.combine(node.outputs[0], "silu", [x])
    else:
        binder.combine(node.outputs[0], "mul", [x, binder.chain("sigmoid", [binder.chain("mul", [x, alpha])])])


@rule("Gelu", since=20)
def gelu(binder: Binder, node: NodeView) -> None:
    """Lower Gelu, exact or by tanh."""
    tanh = node.attributes.get("approximate", "none") == "tanh"
    binder.combine(node.outputs[0], "gelu_tanh" if tanh else "gelu", [binder.operand(node.inputs[0])])


rule("Gelu", domain="com.microsoft")(gelu)


def activation(operation: str) -> Callable[[Binder, PartMatch], None]:
    """A function that lowers a pattern of one value x to one operation."""

    def lower(binder: Binder, match: PartMatch) -> None:
        binder.combine(match.output, operation, [binder.operand(match.values["x"])])

    return lower


def _power_accept(node: NodeView, view: StaticFacts) -> str:
    exponent = view.constant(node.inputs[1])
    if exponent is not None and (exponent.size != 1 or float(exponent.reshape(())) not in _POWERS):
        return "only the powers " + ", ".join(f"{power:g}" for power in _POWERS)
    return floats(node, view) if exponent is None or exponent.dtype == np.float32 else ""


_POWERS: dict[float, Callable[[Binder, Operand], Operand]] = {
    2.0: lambda binder, x: binder.chain("square", [x]),
    3.0: lambda binder, x: binder.chain("mul", [x, binder.chain("square", [x])]),
    0.5: lambda binder, x: binder.chain("sqrt", [x]),
    1.0: lambda binder, x: x,
    -1.0: lambda binder, x: binder.chain("reciprocal", [x]),
}


@rule("Pow", since=7, accept=_power_accept)
def power(binder: Binder, node: NodeView) -> None:
    """Lower Pow with one of the exponents of the table."""
    exponent = binder.known(node.inputs[1])
    if exponent is None or exponent.size != 1 or float(exponent.reshape(())) not in _POWERS:
        raise UnbindableError("a power that is no constant of the table")
    x = binder.view(node.inputs[0])
    value = _POWERS[float(exponent.reshape(()))](binder, x)
    binder.put(node.outputs[0], value if not isinstance(value, float) else x)
