"""Operators that take elements by index: Gather, Pad, Resize and Upsample, GatherBlockQuantized."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.gather import emit_resample
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.copies import emit_clear, emit_copy
from onnxlab.execution.numba.plan.views import Array, View, constant_view
from onnxlab.execution.numba.plan.weight_packing import Late
from onnxlab.execution.numba.rules.attribute_checks import axis_of
from onnxlab.execution.numba.rules.onnx.quantization import DOMAIN, fixed, given, parameters
from onnxlab.execution.numba.rules.onnx.rotary import gathered
from onnxlab.execution.numba.rules.registry import FLOATS, StaticFacts, dtype_reason, moves, numbers, rule
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops.microsoft.quantized import unpacked
from onnxlab.ops.onnx.nn.quantization import integer_values
from onnxlab.ops.onnx.tensor import resize

_INTEGERS = (np.dtype(np.int32), np.dtype(np.int64))


def _gather_accept(node: NodeView, view: StaticFacts) -> str:
    reason = dtype_reason(node.inputs[1], view, lambda dtype: dtype in _INTEGERS)
    return reason or numbers(node, view)


@rule("Gather", accept=_gather_accept, reads=(0, 1))
def gather(binder: Binder, node: NodeView) -> None:
    """One index that is known is a view; others are looked up when they are there."""
    x = binder.view(node.inputs[0])
    axis = axis_of(node, len(x.shape))
    indices = fixed(binder, node.inputs[1])
    if indices is None or indices.size != 1:
        slices = gathered(binder, x, axis, binder.view(node.inputs[1]), node.outputs[0])
        binder.put(node.outputs[0], slices)
        return
    index = int(indices.reshape(()))
    index += x.shape[axis] if index < 0 else 0
    if not 0 <= index < x.shape[axis]:
        raise UnbindableError("an index beyond the axis")
    shape = [*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]]
    strides = [*x.strides[:axis], *[0] * indices.ndim, *x.strides[axis + 1 :]]
    binder.put(node.outputs[0], x.at(index * x.strides[axis], shape, strides))


# -- Pad -------------------------------------------------------------------------------------------------------------

_MODES = {"edge": "edge", "reflect": "reflect", "wrap": "wrap"}


@rule("Pad", since=2, accept=numbers)
def pad(binder: Binder, node: NodeView) -> None:
    """Lower Pad with amounts that are known."""
    x = binder.view(node.inputs[0])
    rank = len(x.shape)
    by_inputs = node.since_version >= 11
    amounts = binder.integers(node.inputs[1]) if by_inputs else [*node.attributes.get("pads", ())]
    axes = binder.integers(node.inputs[3]) if given(node, 3) else list(range(rank))
    if len(amounts) != 2 * len(axes):
        raise UnbindableError(f"{len(amounts)} amounts for {len(axes)} axes")
    width = [(0, 0)] * rank
    for axis, begin, end in zip(axes, amounts[: len(axes)], amounts[len(axes) :], strict=True):
        width[axis + rank if axis < 0 else axis] = (begin, end)
    x = _cut(x, width)
    width = [(max(0, begin), max(0, end)) for begin, end in width]
    mode = node.attributes.get("mode", "constant")
    if mode == "constant":
        value = binder.known(node.inputs[2]) if given(node, 2) else np.full(1, node.attributes.get("value", 0.0))
        if value is None or value.size > 1:
            raise UnbindableError("a value that is known only when it has been computed")
        _fill_around(binder, node.outputs[0], x, width, value if value.size else np.zeros(1))
        return
    indices = {axis: np.pad(np.arange(x.shape[axis]), pair, mode=_MODES[mode])  # type: ignore[call-overload]
               for axis, pair in enumerate(width) if any(pair)}  # fmt: skip
    binder.put(node.outputs[0], _taken(binder, x, indices))


def _cut(x: View, width: Sequence[tuple[int, int]]) -> View:
    """The view that negative amounts leave."""
    offset, shape = 0, []
    for size, stride, (begin, end) in zip(x.shape, x.strides, width, strict=True):
        first, last = max(0, -begin), size - max(0, -end)
        if last <= first:
            raise UnbindableError("padding that leaves nothing")
        offset += first * stride
        shape.append(last - first)
    return x.at(offset, shape, x.strides)


def _ordered(x: View, shape: Sequence[int]) -> list[int]:
    """Strides of another shape in the order of x's memory."""
    strides, step = [0] * len(shape), x.dtype.itemsize
    for axis in sorted(range(len(shape)), key=lambda axis: x.strides[axis]):
        strides[axis] = step
        step *= shape[axis]
    return strides


def _fill_around(binder: Binder, name: str, x: View, width: Sequence[tuple[int, int]], value: Array) -> None:
    """Name x with a constant around it."""
    shape = [begin + size + end for size, (begin, end) in zip(x.shape, width, strict=True)]
    strides = _ordered(x, shape)
    target = binder.allocate(name, shape, x.dtype, strides)
    if value.any():
        whole = constant_view(value.reshape(()).astype(x.dtype)).broadcast(shape)
        emit_copy(binder.builder, whole, target)
    else:
        emit_clear(binder.builder, target, target.nbytes)
    offset = sum(begin * stride for (begin, _), stride in zip(width, target.strides, strict=True))
    emit_copy(binder.builder, x, target.at(offset, x.shape, target.strides))
    binder.put(name, target)


def _taken(binder: Binder, x: View, indices: dict[int, Array]) -> View:
    """x with other elements along some axes, in the order of its memory."""
    order = sorted(range(len(x.shape)), key=lambda axis: -x.strides[axis])
    view = x.transposed(order)
    for axis, chosen in indices.items():
        view = gathered(binder, view, order.index(axis), constant_view(chosen.astype(np.int64)))
    return view.transposed([order.index(axis) for axis in range(len(order))])


# -- Resize ----------------------------------------------------------------------------------------------------------


def _resize_accept(node: NodeView, view: StaticFacts) -> str:
    if node.attributes.get("mode", "nearest") == "nearest":
        reason = dtype_reason(node.inputs[0], view, moves)
    else:
        reason = dtype_reason(node.inputs[0], view, lambda dtype: dtype in FLOATS)
    return reason or parameters(node, view, 1, 2, 3)


@rule("Resize", since=11, accept=_resize_accept, weight=2)
def resize_(binder: Binder, node: NodeView) -> None:
    """Lower Resize to gathered and weighed neighbors."""
    attributes, x = node.attributes, binder.view(node.inputs[0])
    roi, scales, sizes = (binder.known(name) if name else None for name in (*node.inputs[1:], "", "", "")[:3])
    scales, sizes = (None if array is None or not array.size else array for array in (scales, sizes))
    rank = len(x.shape)
    places = [axis + rank if axis < 0 else axis for axis in attributes.get("axes", range(rank))]
    if len(set(places)) < len(places) or any(
        len(array) != len(places) for array in (scales, sizes) if array is not None
    ):
        raise UnbindableError(f"axes {places} for the scales or sizes of others")
    policy = attributes.get("keep_aspect_ratio_policy", "stretch")
    axes = resize.geometry(x.shape, places, scales, sizes, roi, policy)
    coordinates = attributes.get("coordinate_transformation_mode", "half_pixel")
    if coordinates == "tf_crop_and_resize" and any(resize.outside(axis).any() for axis in axes):
        raise UnbindableError("a crop beyond the image")
    nearest = resize.NEAREST[attributes.get("nearest_mode", "round_prefer_floor")]
    cubic = attributes.get("cubic_coeff_a", -0.75)
    exclude, antialias = bool(attributes.get("exclude_outside", 0)), bool(attributes.get("antialias", 0))
    mode = attributes.get("mode", "nearest")
    chosen = {
        axis.place: resize.selection(axis, mode, coordinates, nearest, cubic, exclude, antialias)
        for axis in axes
        if not resize.is_same(axis, coordinates)
    }
    binder.put(node.outputs[0], _resampled(binder, x, chosen))


def _upsample_accept(node: NodeView, view: StaticFacts) -> str:
    if node.attributes.get("mode", "nearest") != "nearest" and (
        reason := dtype_reason(node.inputs[0], view, lambda dtype: dtype in FLOATS)
    ):  # fmt: skip
        return reason
    return dtype_reason(node.inputs[0], view, moves) or parameters(node, view, 1)


@rule("Upsample", since=7, accept=_upsample_accept, weight=2)
def upsample(binder: Binder, node: NodeView) -> None:
    """Lower Upsample as Resize-10: asymmetric coordinates, and nearest rounds up on axes that shrink."""
    x = binder.view(node.inputs[0])
    scales = binder.known(node.inputs[1]) if given(node, 1) else np.asarray(node.attributes["scales"], np.float32)
    assert scales is not None
    mode = "nearest" if node.attributes.get("mode", "nearest") == "nearest" else "linear"
    chosen = {}
    for axis in resize.geometry(x.shape, range(len(x.shape)), scales, None):
        nearest: Callable[[Array], Array] = np.ceil if axis.scale < 1 else np.floor
        if not resize.is_same(axis, "asymmetric"):
            chosen[axis.place] = resize.selection(axis, mode, "asymmetric", nearest)
    binder.put(node.outputs[0], _resampled(binder, x, chosen))


def _resampled(binder: Binder, x: View, chosen: dict[int, tuple[Array, Array | None]]) -> View:
    """x with the elements of some axes chosen or mixed."""
    if any(not len(index) for index, _ in chosen.values()):
        raise UnbindableError("an axis without elements")
    order = sorted(range(len(x.shape)), key=lambda axis: -x.strides[axis])
    view = x.transposed(order)
    for axis, (index, weight) in chosen.items():
        place = order.index(axis)
        if weight is None:
            view = gathered(binder, view, place, constant_view(index[:, 0].astype(np.int64)))
        else:
            view = emit_resample(binder.builder, view, place, *_shortened(index, weight))
    return view.transposed([order.index(axis) for axis in range(len(order))])


def _shortened(index: Array, weight: Array) -> tuple[Array, Array]:
    """Without taps that no element needs: what is not read cannot be NaN times 0."""
    needed = weight.any(axis=0)
    return index[:, needed], weight[:, needed]


# -- GatherBlockQuantized --------------------------------------------------------------------------------------------


def _blocks_accept(node: NodeView, view: StaticFacts) -> str:
    if reason := parameters(node, view, 0, 2, 3):
        return reason
    return dtype_reason(node.inputs[1], view, lambda dtype: dtype in _INTEGERS)


@rule("GatherBlockQuantized", domain=DOMAIN, accept=_blocks_accept, weight=2, reads=(1,))
def gather_block_quantized(binder: Binder, node: NodeView) -> None:
    """Slices of levels, scales and zero points by index, and then what they stand for, block by block."""
    attributes = node.attributes
    bits, block = attributes.get("bits", 4), attributes.get("block_size", 128)
    levels, scales = _levels(binder, node, 0, bits), _table(binder, node, 2, lambda array: array.astype(np.float32))
    rank = len(levels.shape)
    axis, last = axis_of(node, rank, name="gather_axis"), axis_of(node, rank, 1, name="quantize_axis")
    if last != rank - 1 or axis == last or levels.shape[-1] != scales.shape[-1] * block:
        raise UnbindableError("blocks that are not whole, or not along the last axis")
    indices = binder.view(node.inputs[1])
    values, factors = (gathered(binder, view, axis, indices) for view in (levels, scales))
    packed = fixed(binder, node.inputs[0]).dtype == np.uint8  # type: ignore[union-attr]
    zero: Any = float(1 << (bits - 1)) if packed else 0.0
    if given(node, 3):
        points = _levels(binder, node, 3, bits)
        points = points.at(0, (*points.shape[:-1], scales.shape[-1]), points.strides)
        zero = _column(gathered(binder, points, axis, indices))
    split = values.reshaped([*values.shape[:-1], scales.shape[-1], block])
    assert split is not None
    dequantized = binder.chain("mul", [binder.chain("sub", [split, zero]), _column(factors)])
    flat = binder.emit(dequantized).reshaped(values.shape)
    assert flat is not None
    binder.put(node.outputs[0], flat)


def _column(view: View) -> View:
    return view.at(0, (*view.shape, 1), (*view.strides, 0))


def _levels(binder: Binder, node: NodeView, slot: int, bits: int) -> View:
    """A constant of small integers, one to a byte, remembered."""

    def one_to_a_byte(array: Array) -> Array:
        if array.dtype == np.uint8:
            return unpacked(array, bits) if bits < 8 else array
        return integer_values(array)

    return _table(binder, node, slot, one_to_a_byte)


def _table(binder: Binder, node: NodeView, slot: int, make: Callable[[Array], Array]) -> View:
    name = node.inputs[slot]
    array = fixed(binder, name)
    assert array is not None
    key = ("table", slot, node.attributes.get("bits", 4), *binder.key_of(name))
    return binder.packed.made(key, Late(partial(make, array)))
