"""Conversions that onnx's adapters lack: ways down, operators with another meaning, axes counted from the end."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import numpy_helper

from onnxlab.graph.edits.opsets.schema_fit import Types, misfit
from onnxlab.graph.protos.attributes import decode, encode
from onnxlab.ops import find_traits

Nodes = list[onnx.NodeProto]

_LAST = np.iinfo(np.int64).max


def _shape(node: onnx.NodeProto, _: Types) -> Nodes:
    """Shape(x, start, end) = Shape(x)[start:end]; both clamp as Python does."""
    attributes = {attribute.name: decode(attribute) for attribute in node.attribute}
    whole, starts, ends = (f"{node.output[0]}/{name}" for name in ("whole", "starts", "ends"))
    return [
        onnx.NodeProto(op_type="Shape", input=node.input, output=[whole]),
        _constant(starts, [attributes.get("start", 0)]),
        _constant(ends, [attributes.get("end", _LAST)]),
        onnx.NodeProto(op_type="Slice", input=[whole, starts, ends], output=node.output),
    ]


def _split(node: onnx.NodeProto, types: Types) -> Nodes:
    """Split into a number of parts = Split into parts of their sizes, of which the last may be smaller."""
    if (counts := _parts(node, types)) is None or (length := counts[0]) is None:
        return []
    count, sizes = counts[1], f"{node.output[0]}/sizes"
    size = -(-length // count)
    if (last := length - size * (count - 1)) < 0:
        return []
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    copy.attribute.extend(attribute for attribute in node.attribute if attribute.name != "num_outputs")
    copy.input[:] = [node.input[0], sizes]
    return [_constant(sizes, [size] * (count - 1) + [last]), copy]


def _parts(node: onnx.NodeProto, types: Types) -> tuple[int | None, int] | None:
    """(elements along the axis, None where they are not known; parts) of a Split that says only how many parts."""
    attributes = {attribute.name: decode(attribute) for attribute in node.attribute}
    if "num_outputs" not in attributes or any(node.input[1:]):
        return None
    axis, rank = attributes.get("axis", 0), _rank(node, types)
    length = None
    if rank is not None and -rank <= axis < rank:
        dim = types[node.input[0]].tensor_type.shape.dim[axis]
        length = dim.dim_value if dim.HasField("dim_value") else None
    return length, max(attributes["num_outputs"], 1)


def _constant(name: str, numbers: list[int]) -> onnx.NodeProto:
    node = onnx.NodeProto(op_type="Constant", output=[name])
    node.attribute.append(encode("value", np.array(numbers, np.int64), "tensor"))
    return node


REWRITTEN: dict[tuple[str, int], Callable[[onnx.NodeProto, Types], Nodes]] = {
    ("Shape", 15): _shape, ("Split", 18): _split,
}  # fmt: skip
"""(operator, version since which it is too new): function that writes it in the version before, [] where unknown."""


def as_attributes(node: onnx.NodeProto, version: int, types: Types, constants: Mapping[str, onnx.TensorProto]) -> Nodes:
    """A node with attributes for inputs that are constants, as in the version before; [] where it cannot be said."""
    row = find_traits("", node.op_type)
    if (names := row.was_attribute.get(version)) is None:
        return []
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = node.input[:1]
    for slot, name in enumerate(node.input):
        if not slot or not name:
            continue
        if (tensor := constants.get(name)) is None:
            return []
        array = numpy_helper.to_array(tensor)
        if slot not in names:
            if (nothing := row.neutral_input.get(slot)) is None or (array != nothing).any():
                return []
            continue
        attribute, kind = names[slot]
        if kind != "ints" and array.size != 1:
            return []
        if kind == "float" and array.size and float(np.float32(array.item())) != array.item():
            return []
        copy.attribute.append(encode(attribute, array.tolist() if kind == "ints" else array.item(), kind))
    copy = non_negative(copy, types)
    return [] if misfit(copy, version - 1, types) else [copy]


def crossing_problem(node: onnx.NodeProto, old: int, new: int, types: Types) -> str:
    """The problem of an operator that means something else there, which onnx's adapters leave as it is."""
    if node.op_type == "Split" and new < 18 <= old and (counts := _parts(node, types)) is not None:
        length, count = counts
        if length is None or length % count:
            size = "a size that is not known does" if length is None else f"{length} elements do"
            return f"Split of ai.onnx {new} makes equal parts, and {size} not split into {count}; set its sizes"
    if (
        node.op_type == "Unsqueeze"
        and new < 11 <= old
        and any(axis < 0 for item in node.attribute for axis in item.ints)
    ):
        return f"Unsqueeze of ai.onnx {new} counts its axes from the front, and the rank of its input is not known"
    if node.op_type != "Hardmax" or (old < 13) == (new < 13):
        return ""
    if any(attribute.name == "axis" and attribute.i == -1 for attribute in node.attribute):
        return ""
    return "Hardmax flattens all dims from its axis on before ai.onnx 13; it stays the same only along the last one"


def with_last_axis(node: onnx.NodeProto, types: Types, default: int) -> onnx.NodeProto:
    """A Softmax or its like with -1 for its axis where that is the last: what means the same before and since 13."""
    rank = _rank(node, types)
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), default)
    if not find_traits("", node.op_type).flattened_before or axis not in (-1, (rank or 0) - 1):
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    copy.attribute.append(encode("axis", -1, "int"))
    return copy


def _rank(node: onnx.NodeProto, types: Types) -> int | None:
    kind = types.get(next(iter(node.input), ""))
    return len(kind.tensor_type.shape.dim) if kind is not None and kind.tensor_type.HasField("shape") else None


def non_negative(node: onnx.NodeProto, types: Types) -> onnx.NodeProto:
    """A node with its axes counted from the front, as before ai.onnx 11, where the rank is known."""
    if (rank := _rank(node, types)) is None:
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for attribute in copy.attribute:
        if attribute.name == "axis" and attribute.i < 0:
            attribute.i += rank + (node.op_type == "OneHot")  # the axis of OneHot is one of its output
        elif attribute.name == "axes":
            of_output = len(attribute.ints) if node.op_type == "Unsqueeze" else 0
            attribute.ints[:] = [axis + rank + of_output if axis < 0 else axis for axis in attribute.ints]
    return copy
