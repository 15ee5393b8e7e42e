"""Other operators whose words or defaults changed: casts, pads, samples, groups, constants, masks."""

import numpy as np
import onnx

from onnxlab.graph.edits.opsets.facts import (
    Facts,
    Nodes,
    Rewritten,
    constant,
    constants_in,
    copied,
    input_of,
    operation,
    with_inputs,
)
from onnxlab.graph.edits.opsets.node_rewrites import as_attributes
from onnxlab.graph.edits.opsets.schema_fit import constant_tensor
from onnxlab.graph.protos.attributes import decode, encode

_MODES = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}


def cast_6(node: onnx.NodeProto, _: Facts) -> Rewritten:
    """A Cast to a number for an element type, which was its name before ai.onnx 6."""
    name = next((attribute.s.decode("utf-8", "replace") for attribute in node.attribute), "").upper()
    if name not in dict(onnx.TensorProto.DataType.items()):
        return f"Cast names no element type: {name[:40]!r}"
    return [copied(node, to=onnx.TensorProto.DataType.Value(name))]


def cast_5(node: onnx.NodeProto, _: Facts) -> Rewritten:
    """A Cast to the name of an element type, as before ai.onnx 6."""
    number = next((attribute.i for attribute in node.attribute if attribute.name == "to"), 0)
    return [copied(node, to=onnx.TensorProto.DataType.Name(number))]


def grid_sample_16(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A GridSample of images, whose modes had other names before ai.onnx 20."""
    mode = next((decode(attribute) for attribute in node.attribute if attribute.name == "mode"), "linear")
    if (rank := facts.rank(node.input[0])) != 4:
        return "GridSample before ai.onnx 20 samples images, " + (
            "and the rank of its input is not known" if rank is None else f"and its input has {rank} dims"
        )
    spelled = {new: old for old, new in _MODES.items()}.get(mode)
    return f"GridSample has no mode {mode!r}" if spelled is None else [copied(node, mode=spelled)]


def roi_align_16(node: onnx.NodeProto, _: Facts) -> Rewritten:
    """A RoiAlign that says how it places regions: before ai.onnx 16 it did not shift them by half an element."""
    return [copied(node, coordinate_transformation_mode="output_half_pixel")]


def roi_align_10(node: onnx.NodeProto, _: Facts) -> Rewritten:
    """A RoiAlign that does not shift regions, as before ai.onnx 16."""
    name = "coordinate_transformation_mode"
    mode = next((decode(attribute) for attribute in node.attribute if attribute.name == name), "half_pixel")
    if mode != "output_half_pixel":
        return f"RoiAlign before ai.onnx 16 does not shift regions by half an element, as {mode!r} does"
    return [copied(node, (name,))]


def group_normalization_21(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A GroupNormalization with a scale and a bias per channel, where they were per group."""
    groups = next((attribute.i for attribute in node.attribute if attribute.name == "num_groups"), 0)
    dims = facts.dims(node.input[0])
    if groups < 1 or dims is None or len(dims) < 2 or not isinstance(channels := dims[1], int) or channels % groups:
        return "its scale and bias are per group before ai.onnx 21, and the number of its channels is not known"
    if channels == groups:
        return [copied(node)]
    stem = node.output[0]
    nodes: Nodes = [
        constant(f"{stem}/column", [groups, 1], np.int64),
        constant(f"{stem}/sizes", [groups, channels // groups], np.int64),
        constant(f"{stem}/flat", [-1], np.int64),
    ]
    for slot, kind in ((1, "scale"), (2, "bias")):
        column, spread, flat = (f"{stem}/{kind}{step}" for step in (1, 2, 3))
        nodes += [
            operation("Reshape", [node.input[slot], f"{stem}/column"], column),
            operation("Expand", [column, f"{stem}/sizes"], spread),
            operation("Reshape", [spread, f"{stem}/flat"], flat),
        ]
    return [*nodes, with_inputs(node, {1: f"{stem}/scale3", 2: f"{stem}/bias3"})]


def group_normalization_18(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A GroupNormalization whose scale and bias are the same for all channels of a group, as before ai.onnx 21."""
    groups = next((attribute.i for attribute in node.attribute if attribute.name == "num_groups"), 0)
    stash = next((attribute.i for attribute in node.attribute if attribute.name == "stash_type"), 1)
    dims, arrays = facts.dims(node.input[0]), [facts.array(name) for name in node.input[1:3]]
    if stash != 1:
        return "GroupNormalization before ai.onnx 21 has no stash_type"
    if dims is not None and len(dims) > 1 and dims[1] == groups:
        return [copied(node, ("stash_type",))]
    refusal = "GroupNormalization before ai.onnx 21 has one scale and bias per group"
    nodes: Nodes = []
    for array, kind in zip(arrays, ("scale", "bias"), strict=True):
        if array is None or groups < 1 or array.size % groups:
            return refusal
        rows = array.reshape(groups, -1)
        if (rows != rows[:, :1]).any():
            return refusal
        nodes.append(constant(f"{node.output[0]}/{kind}", rows[:, 0]))
    inputs = {slot: part.output[0] for slot, part in enumerate(nodes, 1)}
    return [*nodes, with_inputs(copied(node, ("stash_type",)), inputs)]


def pad_13(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A Pad that says for all axes how much it adds, as before ai.onnx 18."""
    if not input_of(node, 3):
        return None
    rank, pads, axes = facts.rank(node.input[0]), facts.array(node.input[1]), facts.array(node.input[3])
    if rank is None or pads is None or axes is None:
        return "Pad before ai.onnx 18 has no axes, and what it adds along each of all axes is not known"
    filled = np.zeros((2, rank), np.int64)
    filled[:, axes] = pads.reshape(2, -1)
    name = f"{node.output[0]}/pads"
    padded = with_inputs(node, {1: name})
    del padded.input[3:]
    return [constant(name, filled.ravel()), padded]


def reshape_13(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A Reshape whose target has no 0, or one where the input has the same size: so it is as before ai.onnx 14."""
    if not any(attribute.name == "allowzero" and attribute.i for attribute in node.attribute):
        return None
    target, before, after = facts.array(node.input[1]), facts.dims(node.input[0]), facts.dims(node.output[0])
    if target is not None:
        sure = bool(target.all())
    else:
        aligned = [*(before or ()), *[None] * len(after or ())]
        sure = after is not None and all(
            dim not in (0, None) and (isinstance(dim, int) or dim == same)
            for dim, same in zip(after, aligned, strict=False)
        )
    if not sure:
        return "Reshape before ai.onnx 14 keeps the input's size where its target has a 0, and this one may have one"
    return [copied(node, ("allowzero",))]


def constant_11(node: onnx.NodeProto, _: Facts) -> Rewritten:
    """A Constant whose value is a tensor, as before ai.onnx 12."""
    kind = next((attribute.name for attribute in node.attribute), "")
    if not kind.startswith("value_"):
        return None
    if any(attribute.ref_attr_name for attribute in node.attribute):
        return "a Constant before ai.onnx 12 takes no numbers from the call of its function; inline the function first"
    if "string" in kind:
        return [constant(node.output[0], np.asarray(decode(node.attribute[0]), object))]
    if (tensor := constant_tensor(node)) is None:
        return None
    return [copied(node, (kind,), value=tensor)]


def constant_8(node: onnx.NodeProto, _: Facts) -> Rewritten:
    """A Constant of integers as a Cast of real numbers, before ai.onnx 9."""
    return constants_in([node], 8)


def without_idle_mask(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A Dropout without a mask that nothing reads: ai.onnx 10 gave masks another element type."""
    if len(node.output) < 2 or node.output[1] not in facts.unread:
        return None
    bare = copied(node)
    del bare.output[1:]
    return [bare]


def dropout_12(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A Dropout whose mask nothing reads: onnxruntime's is false before ai.onnx 12, and true since."""
    if len(node.output) < 2 or not node.output[1] or node.output[1] in facts.unread:
        return None
    return "the mask of Dropout is not defined for inference before ai.onnx 12; remove what reads it"


def dropout_10(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A Dropout whose mask, if something reads it, is written out: all of it is kept in inference."""
    if len(node.output) < 2 or not node.output[1] or node.output[1] in facts.unread:
        return None
    bare, mask = copied(node), node.output[1]
    del bare.output[1:]
    if not (dropout := as_attributes(bare, 12, facts.types, facts.constants)):
        return "Dropout before ai.onnx 12 has a constant ratio, and does not train"
    shape = operation("Shape", [node.input[0]], f"{mask}/shape")
    ones = operation("ConstantOfShape", [shape.output[0]], mask)
    ones.attribute.append(encode("value", np.array([True]), "tensor"))
    return [*dropout, shape, ones]
