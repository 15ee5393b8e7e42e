"""Operators that move elements: mostly other views of the same memory, else copies."""

from __future__ import annotations

from math import prod
from operator import mul

import numpy as np

from onnxlab import dtypes
from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.copies import contiguous, emit_copy
from onnxlab.execution.numba.plan.views import View, channels_last
from onnxlab.execution.numba.rules.attribute_checks import axis_of
from onnxlab.execution.numba.rules.onnx.integers import integer_cast, is_integer, lower_cast
from onnxlab.execution.numba.rules.registry import FLOATS, StaticFacts, numbers, rule
from onnxlab.graph.edit.snapshot import NodeView


@rule("Identity", weight=0, accept=numbers, reads=(0,))
def identity(binder: Binder, node: NodeView) -> None:
    """Lower Identity to another name."""
    binder.put(node.outputs[0], binder.value(node.inputs[0]))


def _inference_dropout(node: NodeView, view: StaticFacts) -> str:
    if len(node.inputs) > 2 and node.inputs[2]:
        return "training"
    if len(node.outputs) > 1 and view.read(node.outputs[1]):
        return "its mask is read"
    return numbers(node, view)


@rule("Dropout", since=7, weight=0, accept=_inference_dropout)
def dropout(binder: Binder, node: NodeView) -> None:
    """Lower Dropout of inference to another name."""
    binder.put(node.outputs[0], binder.value(node.inputs[0]))


@rule("Transpose", accept=numbers, reads=(0,))
def transpose(binder: Binder, node: NodeView) -> None:
    """Lower Transpose to a view."""
    x = binder.view(node.inputs[0])
    axes = list(range(len(x.shape)))
    perm = node.attributes.get("perm", axes[::-1])
    if sorted(perm) != axes:
        raise UnbindableError(f"perm is {perm} for {len(axes)} axes")
    binder.put(node.outputs[0], x.transposed(perm))


def reshape_to(binder: Binder, name: str, x: View, shape: list[int]) -> None:
    """Name `x` in another shape, copied if that must be."""
    view = x.reshaped(shape)
    if view is None:
        view = contiguous(binder.builder, x).reshaped(shape)
        assert view is not None
    binder.put(name, view)


@rule("Reshape", since=5, weight=0, accept=numbers, reads=(0,))
def reshape(binder: Binder, node: NodeView) -> None:
    """Lower Reshape to a view where the layout permits."""
    x = binder.view(node.inputs[0])
    target_shape = binder.integers(node.inputs[1])
    if not node.attributes.get("allowzero", 0):
        target_shape = [x.shape[axis] if size == 0 else size for axis, size in enumerate(target_shape)]
    if -1 in target_shape:
        rest = prod(size for size in target_shape if size != -1)
        if not rest or x.size % rest:
            raise UnbindableError(f"{x.shape} does not reshape to {target_shape}")
        target_shape[target_shape.index(-1)] = x.size // rest
    if prod(target_shape) != x.size:
        raise UnbindableError(f"{x.shape} does not reshape to {target_shape}")
    reshape_to(binder, node.outputs[0], x, target_shape)


@rule("Flatten", weight=0, accept=numbers, reads=(0,))
def flatten(binder: Binder, node: NodeView) -> None:
    """Lower Flatten to a view where the layout permits."""
    x = binder.view(node.inputs[0])
    axis = axis_of(node, len(x.shape), 1, after=1)
    reshape_to(binder, node.outputs[0], x, [prod(x.shape[:axis]), prod(x.shape[axis:])])


def _axes(binder: Binder, node: NodeView, rank: int) -> list[int] | None:
    """Axes by attribute or second input, from the front; None where none are given."""
    axes = node.attributes.get("axes")
    if axes is None and len(node.inputs) > 1 and node.inputs[1]:
        axes = binder.integers(node.inputs[1])
    return None if axes is None else [axis + rank if axis < 0 else axis for axis in axes]


@rule("Squeeze", weight=0, accept=numbers, reads=(0,))
def squeeze(binder: Binder, node: NodeView) -> None:
    """Lower Squeeze to a view."""
    x = binder.view(node.inputs[0])
    axes = _axes(binder, node, len(x.shape))
    gone = {axis for axis, size in enumerate(x.shape) if size == 1} if axes is None else set(axes)
    if any(x.shape[axis] != 1 for axis in gone):
        raise UnbindableError("an axis of more than one element is squeezed")
    remaining = [axis for axis in range(len(x.shape)) if axis not in gone]
    binder.put(node.outputs[0], x.transposed(remaining))


@rule("Unsqueeze", weight=0, accept=numbers, reads=(0,))
def unsqueeze(binder: Binder, node: NodeView) -> None:
    """Lower Unsqueeze to a view."""
    x = binder.view(node.inputs[0])
    count = len(node.attributes.get("axes") or binder.integers(node.inputs[1]))
    axes = _axes(binder, node, len(x.shape) + count) or []
    shape, strides = list(x.shape), list(x.strides)
    for axis in sorted(axes):
        shape.insert(axis, 1)
        strides.insert(axis, 0)
    binder.put(node.outputs[0], x.at(0, shape, strides))


@rule("Expand", accept=numbers, reads=(0,))
def expand(binder: Binder, node: NodeView) -> None:
    """Lower Expand to a view with strides of 0."""
    x = binder.view(node.inputs[0])
    shape = np.broadcast_shapes(x.shape, tuple(binder.integers(node.inputs[1])))
    binder.put(node.outputs[0], x.broadcast(shape))


@rule("Tile", since=6, accept=numbers)
def tile(binder: Binder, node: NodeView) -> None:
    """Each axis behind one along which nothing moves."""
    x = binder.view(node.inputs[0])
    repeats = binder.integers(node.inputs[1])
    if len(repeats) != len(x.shape) or any(count < 1 for count in repeats):
        raise UnbindableError(f"{x.shape} is not repeated {repeats} times")
    shape = [size for pair in zip(repeats, x.shape, strict=True) for size in pair]
    strides = [step for stride in x.strides for step in (0, stride)]
    reshape_to(binder, node.outputs[0], x.at(0, shape, strides), list(map(mul, x.shape, repeats)))


@rule("DepthToSpace", "SpaceToDepth", accept=numbers)
def blocks(binder: Binder, node: NodeView) -> None:
    """Between [N, C·b², H, W] and [N, C, H·b, W·b]: a copy between two views of [N, C, H, b, W, b]."""
    x = binder.view(node.inputs[0])
    size, deep = int(node.attributes["blocksize"]), node.op_type == "DepthToSpace"
    n, c, h, w = x.shape
    whole = c % (size * size) == 0 if deep else h % size == w % size == 0
    if size < 1 or not whole:
        raise UnbindableError(f"{x.shape} has no whole blocks of {size}")
    shape = (n, c // size**2, h * size, w * size) if deep else (n, c * size**2, h // size, w // size)
    target = binder.builder.allocate(shape, x.dtype, channels_last(shape, x.dtype.itemsize))
    by_column = node.attributes.get("mode", "DCR") == "DCR"
    if deep:
        emit_copy(binder.builder, _apart(x, size, by_column), _together(target, size))
    else:
        emit_copy(binder.builder, _together(x, size), _apart(target, size, by_column))
    binder.put(node.outputs[0], target)


def _apart(x: View, size: int, by_column: bool) -> View:
    """[N, C, H, b, W, b] of channels that hold blocks, which come before the depth (DCR) or after it."""
    n, c, h, w = x.shape
    depth = c // size**2
    split = x.reshaped([n, size, size, depth, h, w] if by_column else [n, depth, size, size, h, w])
    assert split is not None  # no axes are joined
    return split.transposed([0, 3, 4, 1, 5, 2] if by_column else [0, 1, 4, 2, 5, 3])


def _together(x: View, size: int) -> View:
    """[N, C, H, b, W, b] of an image."""
    n, c, h, w = x.shape
    split = x.reshaped([n, c, h // size, size, w // size, size])
    assert split is not None
    return split


_SLICE_BY_INPUTS = 10
"""Version of Slice from which on its bounds are inputs."""


@rule("Slice", accept=numbers)
def slice_(binder: Binder, node: NodeView) -> None:
    """Lower Slice to a view."""
    x = binder.view(node.inputs[0])
    if node.since_version < _SLICE_BY_INPUTS:
        starts, ends = (list(node.attributes[name]) for name in ("starts", "ends"))
        axes, steps = node.attributes.get("axes"), None
    else:
        starts, ends = map(binder.integers, node.inputs[1:3])
        axes, steps = (binder.integers(name) if name else None for name in (*node.inputs[3:], "", "")[:2])
    axes = list(range(len(starts))) if axes is None else axes
    offset, shape, strides = 0, list(x.shape), list(x.strides)
    for axis, start, end, step in zip(axes, starts, ends, steps or [1] * len(starts), strict=True):
        axis += len(shape) if axis < 0 else 0
        if step < 1:
            raise UnbindableError("a slice runs backwards")
        chosen = range(x.shape[axis])[slice(start, end, step)]
        if not chosen:
            raise UnbindableError("an empty slice")
        offset += chosen.start * x.strides[axis]
        shape[axis], strides[axis] = len(chosen), x.strides[axis] * step
    binder.put(node.outputs[0], x.at(offset, shape, strides))


@rule("Split", accept=numbers, since=2)
def split(binder: Binder, node: NodeView) -> None:
    """Lower Split to views."""
    x = binder.view(node.inputs[0])
    axis = axis_of(node, len(x.shape))
    sizes = node.attributes.get("split")
    if sizes is None and len(node.inputs) > 1 and node.inputs[1]:
        sizes = binder.integers(node.inputs[1])
    if sizes is None:
        part = -(-x.shape[axis] // len(node.outputs))
        sizes = [min(part, x.shape[axis] - part * number) for number in range(len(node.outputs))]
    if sum(sizes) != x.shape[axis]:
        raise UnbindableError(f"parts of {list(sizes)} do not add up to the {x.shape[axis]} of the axis")
    at = 0
    for name, size in zip(node.outputs, sizes, strict=True):
        if size <= 0:
            raise UnbindableError("an empty part of a split")
        shape = [*x.shape[:axis], size, *x.shape[axis + 1 :]]
        binder.put(name, x.at(at * x.strides[axis], shape, x.strides))
        at += size


@rule("Concat", accept=numbers, since=4)
def concat(binder: Binder, node: NodeView) -> None:
    """One place for all, in the order of the first in memory; what waits is made there."""
    names = [name for name in node.inputs if prod(binder.shape(name))]
    shapes = [binder.shape(name) for name in names]
    axis = axis_of(node, len(shapes[0]))
    shape = list(shapes[0])
    shape[axis] = sum(part[axis] for part in shapes)
    if any((*part[:axis], *part[axis + 1 :]) != (*shape[:axis], *shape[axis + 1 :]) for part in shapes):
        raise UnbindableError(f"shapes {shapes} that differ along other axes than the one they are joined on")
    dtype, like = binder.layout(names[0])
    strides = [0] * len(shape)
    step = dtype.itemsize
    for a in sorted(range(len(shape)), key=lambda a: (like[a], -a)):
        strides[a] = step
        step *= shape[a]
    target = binder.allocate(node.outputs[0], shape, dtype, strides)
    at = 0
    for name, part in zip(names, shapes, strict=True):
        binder.write(name, target.at(at * target.strides[axis], part, target.strides))
        at += part[axis]
    binder.put(node.outputs[0], target)


FLOAT_TYPES = (dtypes.FLOAT, dtypes.FLOAT16, dtypes.BFLOAT16)


def _cast_accept(node: NodeView, view: StaticFacts) -> str:
    source = view.fact(node.inputs[0])
    if not integer_cast(node, view):
        return ""
    if getattr(source, "dtype", None) not in (*FLOATS, np.bool_) or node.attributes.get("to") not in FLOAT_TYPES:
        return "only casts of bool and floats to float32, float16 and bfloat16"
    return numbers(node, view)


@rule("Cast", since=6, accept=_cast_accept, reads=(0,))
def cast(binder: Binder, node: NodeView) -> None:
    """Lower Cast to float32, rounded where the node asks for float16 or bfloat16."""
    target = node.attributes.get("to")
    if target not in FLOAT_TYPES or is_integer(binder, node.inputs[0]):
        lower_cast(binder, node)
        return
    operand = binder.operand(node.inputs[0])
    dtype = getattr(operand, "dtype", None)
    if target != dtypes.FLOAT and dtype not in (np.bool_, dtypes.to_numpy(target)):
        binder.combine(node.outputs[0], "half" if target == dtypes.FLOAT16 else "brain", [operand])
    elif dtype == np.float32:
        binder.put(node.outputs[0], binder.value(node.inputs[0]))
    else:
        binder.combine(node.outputs[0], "copy", [operand])
