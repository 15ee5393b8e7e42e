"""Upsample and Resize between versions: where an output element lies in the input, and the inputs it is told by."""

from typing import Any

import numpy as np
import onnx

from onnxlab.graph.edits.opsets.facts import Facts, Rewritten, constant, copied, input_of, with_inputs
from onnxlab.graph.protos.attributes import decode

_NEW = ("coordinate_transformation_mode", "nearest_mode")  # attributes that Resize has since ai.onnx 11


def to_resize_11(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """Upsample-9 or Resize-10 as Resize-11, which by default measures from the centers of the elements.

    Both measured from the first element on. A nearest element was the one before where a dim grows, and the one after
    where it shrinks.
    """
    name = node.output[0]
    attributes = {attribute.name: decode(attribute) for attribute in node.attribute}
    scales = facts.array(node.input[1])
    rounded = ["floor"]
    if attributes.get("mode", "nearest") == "nearest" and node.op_type == "Resize":
        if scales is None:
            return "before ai.onnx 11 its scales decide how Resize rounds, and they are not known; make them a constant"
        rounded = ["ceil"] * bool((scales < 1).any()) + ["floor"] * bool((scales > 1).any()) or ["floor"]
    nodes, read = [constant(f"{name}/roi", [], np.float32)], node.input[0]
    for number, nearest in enumerate(rounded):
        factors, last = node.input[1], number == len(rounded) - 1
        if scales is not None and len(rounded) > 1:
            factors = f"{name}/{nearest}"
            nodes.append(constant(factors, (np.minimum if nearest == "ceil" else np.maximum)(scales, np.float32(1))))
        resize = copied(node, coordinate_transformation_mode="asymmetric", nearest_mode=nearest)
        resize.op_type = "Resize"
        resize.input[:] = [read, f"{name}/roi", factors]
        read = name if last else f"{name}/smaller"
        resize.output[:] = [read]
        nodes.append(resize)
    return nodes


def to_resize_13(node: onnx.NodeProto, _: Facts) -> Rewritten:
    """A Resize without the way to place elements that ai.onnx 13 dropped."""
    attributes = {attribute.name: decode(attribute) for attribute in node.attribute}
    if attributes.get(_NEW[0]) != "tf_half_pixel_for_nn":
        return None
    if attributes.get("mode", "nearest") != "nearest" or attributes.get("nearest_mode") != "floor":
        return "Resize since ai.onnx 13 has no 'tf_half_pixel_for_nn'; choose another coordinate_transformation_mode"
    return [copied(node, coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_ceil")]


def with_all_inputs(node: onnx.NodeProto, _: Facts) -> Rewritten:
    """A Resize that leaves no input out, as before ai.onnx 13: those without elements say nothing."""
    names = {slot: f"{node.output[0]}/{kind}" for slot, kind in ((1, "roi"), (2, "scales")) if not input_of(node, slot)}
    if not names:
        return None
    return [*(constant(name, [], np.float32) for name in names.values()), with_inputs(node, names)]


def with_all_axes(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A Resize that names a scale or a size for each axis, as before ai.onnx 18."""
    attributes = {attribute.name: decode(attribute) for attribute in node.attribute}
    axes = attributes.get("axes")
    if axes is None:
        return None
    dims, slot = facts.dims(node.input[0]), 2 if input_of(node, 2) else 3
    factors = facts.array(input_of(node, slot))
    if dims is None or factors is None or (input_of(node, 1) and attributes.get(_NEW[0]) == "tf_crop_and_resize"):
        return "Resize before ai.onnx 18 has no axes, and what it does along each of all axes is not known"
    filled: list[Any] = [1.0] * len(dims) if slot == 2 else list(dims)
    for axis, factor in zip(axes, factors, strict=False):
        filled[axis] = factor
    if not all(isinstance(factor, int | float | np.number) for factor in filled):
        return "Resize before ai.onnx 18 has no axes, and sizes along the other axes are not known"
    name = f"{node.output[0]}/all"
    return [constant(name, filled, factors.dtype), with_inputs(copied(node, ("axes",)), {slot: name, 1: ""})]


def to_resize_10(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A Resize-11 that does what Resize-10 does: it measures from the first element on, and is given scales."""
    attributes = {attribute.name: decode(attribute) for attribute in node.attribute}
    scales, mode = facts.array(input_of(node, 2)), attributes.get("mode", "nearest")
    if input_of(node, 3) or (scales is not None and not scales.size):
        return "Resize before ai.onnx 11 takes scales, not sizes"
    if mode == "cubic":
        return "Resize before ai.onnx 11 has no mode 'cubic'"
    rounding = attributes.get("nearest_mode", "round_prefer_floor")
    from_first = attributes.get(_NEW[0], "half_pixel") == "asymmetric"
    if scales is not None and (scales == 1).all():
        from_first, rounding = True, ""
    if mode == "nearest" and rounding and from_first:
        smaller = bool((scales < 1).any()) if scales is not None else None
        larger = bool((scales > 1).any()) if scales is not None else None
        whole = scales is not None and not larger and bool((np.log2(scales) % 1 == 0).all())
        from_first = whole or (rounding == "floor" and smaller is False) or (rounding == "ceil" and larger is False)
    if not from_first:
        return "Resize before ai.onnx 11 places elements as 'asymmetric' does, and rounds down where it enlarges"
    resize = copied(node, (*_NEW, "cubic_coeff_a", "exclude_outside", "extrapolation_value"))
    resize.input[:] = [node.input[0], node.input[2]]
    return [resize]


def to_upsample_9(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A Resize-10 that enlarges is an Upsample-9."""
    scales = facts.array(node.input[1])
    if scales is None or (scales < 1).any():
        return "Upsample, which Resize was before ai.onnx 10, only enlarges; that this does is not known"
    upsample = copied(node)
    upsample.op_type = "Upsample"
    return [upsample]


def to_upsample_8(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """An Upsample with constant scales as an attribute, as before ai.onnx 9."""
    if (scales := facts.array(node.input[1])) is None:
        return "Upsample before ai.onnx 9 has its scales as an attribute, and they are not known"
    upsample = copied(node, scales=[float(scale) for scale in scales])
    del upsample.input[1:]
    return [upsample]
