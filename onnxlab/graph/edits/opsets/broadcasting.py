"""Operators between versions that broadcast otherwise: before ai.onnx 7 by attributes, before 8 not at all."""

import onnx

from onnxlab.graph.edits.opsets.facts import (
    Dim,
    Facts,
    Nodes,
    Rewritten,
    constant,
    copied,
    input_of,
    operation,
    with_inputs,
)
from onnxlab.graph.protos.attributes import decode

BROADCASTING = ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less")
"""Operators of two inputs that broadcast as NumPy does since ai.onnx 7."""

VARIADIC = ("Max", "Mean", "Min", "Sum")
"""Operators of any number of inputs that broadcast since ai.onnx 8."""

_COMMUTATIVE = ("Add", "Mul", "And", "Or", "Xor", "Equal")


def needs_one_shape(node: onnx.NodeProto, version: int) -> bool:
    """Whether the inputs of a node have to have one shape in a version, in which others broadcast."""
    if node.op_type in BROADCASTING and version < 7:
        return not any(attribute.name == "broadcast" and attribute.i for attribute in node.attribute)
    return node.op_type in VARIADIC and version < 8


def without_broadcast(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A node that broadcasts by its attributes: the second input gets the dims that align it as NumPy does."""
    attributes = {attribute.name: decode(attribute) for attribute in node.attribute}
    plain = copied(node, ("broadcast", "axis"))
    if not attributes.get("broadcast") or attributes.get("axis") is None:
        return [plain]
    rank, other = facts.rank(node.input[0]), facts.rank(node.input[1])
    if rank is None or other is None:
        return f"{node.op_type} broadcasts from an axis on, and the ranks of its inputs are not known"
    axis = attributes["axis"] + (rank if attributes["axis"] < 0 else 0)
    if (trailing := rank - axis - other) <= 0:
        return [plain]
    return _second_reshaped(plain, "Unsqueeze", list(range(other, other + trailing)))


def with_broadcast(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A node whose inputs broadcast, by the attributes of ai.onnx 6: the second to consecutive dims of the first."""
    dims, other = (facts.dims(name) for name in node.input)
    if dims is not None and dims == other and None not in dims:
        return None
    if dims is None or other is None:
        return f"{node.op_type} before ai.onnx 7 broadcasts by attributes, and the shapes of its inputs are not known"
    refusal = f"{node.op_type} before ai.onnx 7 broadcasts its second input to consecutive dims of the first only"
    if (place := _place(dims, other)) is None:
        if node.op_type not in _COMMUTATIVE or (place := _place(other, dims)) is None:
            return refusal
        node, dims, other = with_inputs(node, {0: node.input[1], 1: node.input[0]}), other, dims
    axis, removed = place
    length = len(other) - len(removed)
    node = copied(node, broadcast=1, axis=None if axis + length == len(dims) else axis)
    return _second_reshaped(node, "Squeeze", removed) if removed else [node]


def _place(dims: list[Dim], other: list[Dim]) -> tuple[int, list[int]] | None:
    """(axis from which on a shape is part of another, dims of size 1 that it loses for it); None: it is no part."""
    first = len(dims) - len(other)
    if first < 0:
        return None
    beyond = [slot for slot, dim in enumerate(other) if dim != 1]
    if not beyond:
        return len(dims), list(range(len(other)))
    low, high = beyond[0], beyond[-1] + 1
    if any(other[slot] is None or other[slot] != dims[first + slot] for slot in range(low, high)):
        return None
    return first + low, [*range(low), *range(high, len(other))]


def _second_reshaped(node: onnx.NodeProto, op_type: str, axes: list[int]) -> Nodes:
    name = f"{node.output[0]}/aligned"
    return [operation(op_type, [node.input[1]], name, axes=axes), with_inputs(node, {1: name})]


def gemm_7(node: onnx.NodeProto, _: Facts) -> Rewritten:
    """A Gemm without the attribute that says whether its third input broadcasts."""
    return [copied(node, ("broadcast",))]


def gemm_6(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A Gemm that says whether its third input broadcasts, as before ai.onnx 7."""
    dims, result = facts.dims(node.input[2]), facts.dims(node.output[0])
    if dims is not None and len(dims) == 2 and dims == result and None not in dims:
        return None
    if dims is None or (len(dims) == 2 and dims[0] != 1) or len(dims) > 2:
        return "Gemm before ai.onnx 7 adds a matrix of its own shape, a row or a number, and what C is is not known"
    node = copied(node, broadcast=1)
    if len(dims) < 2:
        return [node]
    name = f"{node.output[0]}/row"
    axes = [0, 1] if dims[1] == 1 else [0]
    return [operation("Squeeze", [node.input[2]], name, axes=axes), with_inputs(node, {2: name})]


def prelu_7(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A PRelu with a slope per channel, which since ai.onnx 7 needs a dim for each axis after that of the channels."""
    rank, slope = facts.rank(node.input[0]), facts.dims(node.input[1])
    if slope == [1] or rank == 2:
        return [copied(node)]
    if slope is not None and len(slope) != 1:
        return "PRelu before ai.onnx 7 has a number per channel as its slope"
    if rank is None:
        return "its slope is per channel before ai.onnx 7, and the rank of its input is not known"
    return _second_reshaped(node, "Unsqueeze", list(range(1, rank - 1))) if rank > 2 else [copied(node)]


def prelu_6(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A PRelu with a slope of one dim, a number per channel, as before ai.onnx 7."""
    dims, slope = facts.dims(node.input[0]), facts.dims(node.input[1])
    refusal = "PRelu before ai.onnx 7 has one number per channel as its slope"
    if slope is None:
        return f"{refusal}, and the shape of this one is not known"
    if all(dim == 1 for dim in slope):
        if len(slope) == 1:
            return None
        op_type, axes = ("Squeeze", list(range(1, len(slope)))) if slope else ("Unsqueeze", [0])
        return _second_reshaped(node, op_type, axes)
    if dims is None or len(dims) < 2 or (place := _place(dims, slope)) is None or place[0] != 1:
        return refusal
    if len(slope) - len(place[1]) != 1:
        return refusal
    return _second_reshaped(node, "Squeeze", place[1]) if place[1] else None


def of_one_shape(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """An operator of any number of inputs, which before ai.onnx 8 have one shape."""
    shapes = [facts.dims(name) for name in node.input]
    first = shapes[0]
    if len(shapes) == 1 or (first is not None and None not in first and all(shape == first for shape in shapes)):
        return None
    if len(set(node.input)) == 1:
        return None
    return f"{node.op_type} before ai.onnx 8 does not broadcast, and its inputs are not known to have one shape"


def gemm_10(node: onnx.NodeProto, facts: Facts) -> Rewritten:
    """A Gemm without C gets one that changes nothing, which ai.onnx 10 asks for."""
    if input_of(node, 2):
        return None
    if (dtype := facts.dtype(node.input[0])) is None:
        return "Gemm before ai.onnx 11 needs a third input, and the element type of the others is not known"
    name = f"{node.output[0]}/zero"
    return [constant(name, [0], dtype), with_inputs(node, {2: name})]
