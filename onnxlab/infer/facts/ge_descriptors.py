"""Facts of the nodes of a GE dump: what their attributes say of their outputs."""

from collections.abc import Callable

import onnx

from onnxlab.graph.protos import ge_dump
from onnxlab.shapes import UNKNOWN, Dim, Fact, TensorFact


def output_facts(node: onnx.NodeProto, hole: Callable[[int, int], Dim]) -> list[Fact]:
    """Facts of the outputs that a node lists, by their ports.

    Args:
        node: a node of a GE dump.
        hole: gives the dim that stands for an unknown size, from the output's position and the axis.
    """
    return [_fact(node, position, name, hole) for position, name in enumerate(node.output)]


def _fact(node: onnx.NodeProto, position: int, name: str, hole: Callable[[int, int], Dim]) -> Fact:
    reference = ge_dump.split(name)
    if reference is None or reference.is_control:
        return UNKNOWN
    descriptor = ge_dump.descriptor(node, "output", reference.port)
    if not descriptor.dtype and descriptor.shape is None:
        return UNKNOWN
    shape = descriptor.shape
    dims = None if shape is None else tuple(hole(position, axis) if dim < 0 else dim for axis, dim in enumerate(shape))
    return TensorFact(descriptor.elem_type, dims)
