"""Reverse-mode rules: from the gradients of an operator's outputs to those of its inputs.

    rule(attributes, inputs, outputs, gradients) -> gradients of the inputs, None where there is none

Arrays as in kernels, None for absent inputs; `gradients` are arrays, zeros for outputs that nothing depends on. Rules
are for floats, and for the versions in use: attributes that became inputs are read from wherever they are.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from onnxlab.ops.base.kernel_helpers import Array, at, normal_axes, normal_axis
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.base.window_geometry import window
from onnxlab.ops.onnx.math.unary import erf

Attributes = Mapping[str, Any]
Arrays = Sequence[Any]
Rule = Callable[[Attributes, Arrays, Arrays, Arrays], Arrays]

_RULES: dict[str, Rule] = {}


def derivative(*op_types: str) -> Callable[[Rule], Rule]:
    """Register the decorated rule for operators of ai.onnx."""

    def add(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(op_types, rule))
        return rule

    return add


def find_derivative(domain: str, op_type: str) -> Rule | None:
    """The rule of an operator, None where there is none."""
    return None if domain else _RULES.get(op_type)


def operators() -> list[str]:
    """Names of the operators that have a rule."""
    return sorted(_RULES)


def unbroadcast(gradient: Array, shape: Sequence[int]) -> Array:
    """Sum a gradient over the axes along which an input of `shape` was stretched."""
    lead = gradient.ndim - len(shape)
    axes = [*range(lead), *(lead + axis for axis, dim in enumerate(shape) if dim == 1 != gradient.shape[lead + axis])]
    return gradient.sum(axis=tuple(axes)).reshape(shape) if axes or lead else gradient


def _binary(left: Callable[..., Array], right: Callable[..., Array]) -> Rule:
    """A rule from both partial derivatives: each takes (a, b, y, gradient of y)."""

    def rule(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
        (a, b), (y, *_), (g, *_) = inputs[:2], outputs, gradients
        return [unbroadcast(left(a, b, y, g), a.shape), unbroadcast(right(a, b, y, g), b.shape)]

    return rule


def _unary(function: Callable[..., Array]) -> Rule:
    """A rule from the derivative: it takes (x, y, gradient of y, attributes)."""

    def rule(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
        return [function(inputs[0], outputs[0], gradients[0], attributes), *[None] * (len(inputs) - 1)]

    return rule


_RULES.update(
    {
        "Add": _binary(lambda a, b, y, g: g, lambda a, b, y, g: g),
        "Sub": _binary(lambda a, b, y, g: g, lambda a, b, y, g: -g),
        "Mul": _binary(lambda a, b, y, g: g * b, lambda a, b, y, g: g * a),
        "Div": _binary(lambda a, b, y, g: g / b, lambda a, b, y, g: -g * y / b),
        "Pow": _binary(
            lambda a, b, y, g: g * b * np.power(a, b - 1),
            lambda a, b, y, g: g * y * np.log(np.where(a > 0, a, 1)),
        ),
        "PRelu": _binary(lambda a, b, y, g: np.where(a < 0, g * b, g), lambda a, b, y, g: np.where(a < 0, g * a, 0)),
        "Identity": _unary(lambda x, y, g, a: g),
        "Neg": _unary(lambda x, y, g, a: -g),
        "Abs": _unary(lambda x, y, g, a: g * np.sign(x)),
        "Sqrt": _unary(lambda x, y, g, a: g / (2 * y)),
        "Exp": _unary(lambda x, y, g, a: g * y),
        "Log": _unary(lambda x, y, g, a: g / x),
        "Reciprocal": _unary(lambda x, y, g, a: -g * y * y),
        "Sin": _unary(lambda x, y, g, a: g * np.cos(x)),
        "Cos": _unary(lambda x, y, g, a: -g * np.sin(x)),
        "Tan": _unary(lambda x, y, g, a: g * (1 + y * y)),
        "Asin": _unary(lambda x, y, g, a: g / np.sqrt(1 - x * x)),
        "Acos": _unary(lambda x, y, g, a: -g / np.sqrt(1 - x * x)),
        "Atan": _unary(lambda x, y, g, a: g / (1 + x * x)),
        "Sinh": _unary(lambda x, y, g, a: g * np.cosh(x)),
        "Cosh": _unary(lambda x, y, g, a: g * np.sinh(x)),
        "Tanh": _unary(lambda x, y, g, a: g * (1 - y * y)),
        "Sigmoid": _unary(lambda x, y, g, a: g * y * (1 - y)),
        "Softplus": _unary(lambda x, y, g, a: g / (1 + np.exp(-x))),
        "Softsign": _unary(lambda x, y, g, a: g / np.square(1 + np.abs(x))),
        "Relu": _unary(lambda x, y, g, a: np.where(x > 0, g, 0)),
        "LeakyRelu": _unary(lambda x, y, g, a: np.where(x < 0, g * a["alpha"], g)),
        "Elu": _unary(lambda x, y, g, a: np.where(x > 0, g, g * (y + a["alpha"]))),
        "Erf": _unary(lambda x, y, g, a: g * (2 / np.sqrt(np.pi)) * np.exp(-x * x)),
        "Floor": _unary(lambda x, y, g, a: np.zeros_like(x)),
        "Ceil": _unary(lambda x, y, g, a: np.zeros_like(x)),
        "Round": _unary(lambda x, y, g, a: np.zeros_like(x)),
        "Sign": _unary(lambda x, y, g, a: np.zeros_like(x)),
        "Clip": _unary(lambda x, y, g, a: np.where(x == y, g, 0)),
        "Cast": _unary(lambda x, y, g, a: g),
        "Dropout": _unary(lambda x, y, g, a: g),
        "Reshape": _unary(lambda x, y, g, a: g.reshape(x.shape)),
        "Flatten": _unary(lambda x, y, g, a: g.reshape(x.shape)),
        "Squeeze": _unary(lambda x, y, g, a: g.reshape(x.shape)),
        "Unsqueeze": _unary(lambda x, y, g, a: g.reshape(x.shape)),
        "Expand": _unary(lambda x, y, g, a: unbroadcast(g, x.shape)),
    }
)


@derivative("Gelu")
def _gelu(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    (x,), (g,) = inputs, gradients
    if attributes.get("approximate") == "tanh":
        slope = np.sqrt(2 / np.pi)
        t = np.tanh(slope * (x + 0.044715 * x**3))
        return [g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope * (1 + 3 * 0.044715 * x * x))]
    density = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    return [(g * (0.5 * (1 + erf(x * np.sqrt(x.dtype.type(0.5)))) + x * density)).astype(x.dtype)]


@derivative("Sum")
def _sum(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    return [unbroadcast(gradients[0], x.shape) for x in inputs]


@derivative("Mean")
def _mean(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    return [unbroadcast(gradients[0] / len(inputs), x.shape) for x in inputs]


@derivative("Max", "Min")
def _extreme(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    """To the inputs that are the extreme, in equal parts."""
    hits = [np.broadcast_to(x == outputs[0], outputs[0].shape) for x in inputs]
    share = gradients[0] / np.maximum(1, np.sum(hits, axis=0))
    return [unbroadcast(np.where(hit, share, 0), x.shape) for x, hit in zip(inputs, hits, strict=True)]


@derivative("Where")
def _where(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    (condition, x, y), (g,) = inputs, gradients
    return [None, unbroadcast(np.where(condition, g, 0), x.shape), unbroadcast(np.where(condition, 0, g), y.shape)]


@derivative("MatMul")
def _matmul(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    (a, b), (g,) = inputs, gradients
    left, right = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    if a.ndim == 1:
        g = np.expand_dims(g, -1 if b.ndim == 1 else -2)
    if b.ndim == 1:
        g = np.expand_dims(g, -1)
    of_a = unbroadcast(g @ right.swapaxes(-1, -2), left.shape).reshape(a.shape)
    return [of_a, unbroadcast(left.swapaxes(-1, -2) @ g, right.shape).reshape(b.shape)]


@derivative("Gemm")
def _gemm(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    (a, b, *rest), (g,) = inputs, gradients
    left, right = (a.T if attributes["transA"] else a), (b.T if attributes["transB"] else b)
    scaled = g * g.dtype.type(attributes["alpha"])
    of_a, of_b = scaled @ right.T, left.T @ scaled
    found = [of_a.T if attributes["transA"] else of_a, of_b.T if attributes["transB"] else of_b]
    return [*found, *(None if c is None else unbroadcast(g * g.dtype.type(attributes["beta"]), c.shape) for c in rest)]


def _axes(attributes: Attributes, inputs: Arrays) -> Sequence[int] | None:
    """Axes as the second input, or as the attribute of older versions."""
    return inputs[1].tolist() if len(inputs) > 1 and inputs[1] is not None else attributes.get("axes")


def _reduction(function: Callable[..., Array]) -> Rule:
    """A rule from a function of (x, y, gradient, number of elements), all with the reduced axes kept."""

    def rule(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
        x, given = inputs[0], _axes(attributes, inputs)
        if not given and attributes.get("noop_with_empty_axes"):
            return [gradients[0], *[None] * (len(inputs) - 1)]
        axes = normal_axes(given or None, x.ndim)
        kept = tuple(1 if axis in axes else dim for axis, dim in enumerate(x.shape))
        found = function(x, outputs[0].reshape(kept), gradients[0].reshape(kept), prod(x.shape[axis] for axis in axes))
        return [np.array(np.broadcast_to(found, x.shape)), *[None] * (len(inputs) - 1)]

    return rule


def _of_extreme(x: Array, y: Array, g: Array, count: int) -> Array:
    axes = tuple(axis for axis in range(x.ndim) if y.shape[axis] != x.shape[axis])
    hit = x == y
    return np.where(hit, g / hit.sum(axis=axes, keepdims=True), 0)


_RULES.update(
    {
        "ReduceSum": _reduction(lambda x, y, g, count: g),
        "ReduceMean": _reduction(lambda x, y, g, count: g / count),
        "ReduceMax": _reduction(_of_extreme),
        "ReduceMin": _reduction(_of_extreme),
        "ReduceSumSquare": _reduction(lambda x, y, g, count: 2 * x * g),
        "ReduceL2": _reduction(lambda x, y, g, count: g * x / np.where(y == 0, 1, y)),
        "ReduceLogSumExp": _reduction(lambda x, y, g, count: g * np.exp(x - y)),
        "GlobalAveragePool": _unary(lambda x, y, g, a: np.broadcast_to(g / prod(x.shape[2:]), x.shape)),
    }
)


@derivative("Softmax")
def _softmax(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    (y,), (g,), axis = outputs, gradients, attributes["axis"]
    return [y * (g - (g * y).sum(axis=axis, keepdims=True))]


@derivative("LogSoftmax")
def _log_softmax(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    (y,), (g,), axis = outputs, gradients, attributes["axis"]
    return [g - np.exp(y) * g.sum(axis=axis, keepdims=True)]


@derivative("Transpose")
def _transpose(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    perm = attributes.get("perm")
    return [gradients[0].T if perm is None else gradients[0].transpose(np.argsort(perm))]


@derivative("Concat")
def _concat(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    axis = attributes["axis"]
    return np.split(gradients[0], np.cumsum([x.shape[axis] for x in inputs])[:-1], axis)


@derivative("Split")
def _split(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    return [np.concatenate(gradients, attributes["axis"]), *[None] * (len(inputs) - 1)]


@derivative("Gather")
def _gather(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    (x, indices), (g,) = inputs, gradients
    axis = normal_axis(attributes["axis"], x.ndim)
    found = np.zeros_like(x)
    front = np.moveaxis(found, axis, 0)
    rows = g.reshape(*x.shape[:axis], indices.size, *x.shape[axis + 1 :])
    np.add.at(front, indices.reshape(-1), np.moveaxis(rows, axis, 0))
    return [found, None]


@derivative("Slice")
def _slice(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    x = inputs[0]
    given: list[Any] = [None if part is None else part.tolist() for part in inputs[1:]]
    if not given:  # opsets 1 to 9
        given = [attributes["starts"], attributes["ends"], attributes.get("axes")]
    (starts, ends), (axes, steps) = given[:2], (*given[2:], None, None)[:2]
    where: list[slice] = [slice(None)] * x.ndim
    for number, axis in enumerate(axes or range(len(starts))):
        step = steps[number] if steps else 1
        end = ends[number]
        where[axis] = slice(starts[number], None if step < 0 and end < -x.shape[axis] else end, step)
    found = np.zeros_like(x)
    found[tuple(where)] = gradients[0]
    return [found, *[None] * (len(inputs) - 1)]


@derivative("Conv")
def _conv(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    x, w, *rest = inputs
    group, g = attributes["group"], gradients[0]
    shape = window(
        x, w.shape[2:], attributes.get("strides"), attributes.get("pads"), attributes.get("dilations"),
        attributes["auto_pad"],
    )  # fmt: skip
    grouped = x.reshape(len(x), group, -1, *x.shape[2:])
    weights = w.reshape(group, len(w) // group, *w.shape[1:])
    above = g.reshape(len(x), group, len(w) // group, *g.shape[2:])
    of_x, of_w = np.zeros_like(grouped), np.zeros_like(weights)
    for position, served, read in shape.taps():
        part, seen = above[at(..., *served)], at(..., *read)
        of_x[seen] += np.einsum("ngm...,gmc->ngc...", part, weights[at(..., *position)])
        flat = part.reshape(*part.shape[:3], -1), grouped[seen].reshape(*grouped.shape[:3], -1)
        of_w[at(..., *position)] = np.einsum("ngmi,ngci->gmc", *flat)
    bias = [None if b is None else g.sum(axis=(0, *range(2, g.ndim))) for b in rest]
    return [of_x.reshape(x.shape), of_w.reshape(w.shape), *bias]


traits("Gradient", OpTraits(category="custom", shape="other", flops=1), "ai.onnx.preview.training")
