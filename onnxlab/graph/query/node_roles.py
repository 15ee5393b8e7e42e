"""Roles of the nodes of a scope in its picture: the trunk that carries data, or arithmetic beside it.

A node is heavy when it has learned parameters of its own. Nodes before the first heavy node on every path (masks,
positions, windows) and nodes that compute with shapes (`Shape`, then `Gather`, `Mul`, `Concat`) are beside the trunk.
"""

from collections.abc import Mapping, Sequence

import onnx

from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.ops import find_traits, layer_operators

MAX_STEPS = 4
"""Most nodes between a parameter and its reader that are followed to find the parameter's shape."""

TRUNK, BESIDE, SOURCE = 0, 1, 2


def heavy_operators() -> frozenset[str]:
    """Operators that do what a layer is named after."""
    return layer_operators("convolution", "product", "recurrent", "attention", "model", "transform") | {"Embedding"}


def roles(
    nodes: Sequence[NodeRecord], values: Mapping[int, ValueRecord], sources: Sequence[int]
) -> tuple[list[int], list[bool]]:
    """Return the role of each node, and whether it is heavy.

    Args:
        nodes: the nodes of one scope, in topological order.
        sources: whether a node reads nothing but weights, by position.
    """
    beside: dict[int, bool] = {}  # by value: whether no heavy node precedes it, or it is computed from shapes
    measured: dict[int, bool] = {}
    fixed: set[int] = set()
    roles_by_place: list[int] = []
    heavy: list[bool] = []
    for place, node in enumerate(nodes):
        if sources[place]:
            fixed.update(node.outputs)
            roles_by_place.append(SOURCE)
            heavy.append(False)
            continue
        read = [value for value in node.inputs if value and value not in fixed and not _is_stored(values[value])]
        weighs = _is_heavy(node, values, fixed)
        is_measure = find_traits(node.domain, node.op_type).shape_only or (
            bool(read) and all(measured.get(value, False) for value in read)
        )
        is_beside = is_measure or (not weighs and not node.bodies and all(beside.get(value, True) for value in read))
        for value in node.outputs:
            measured[value] = is_measure
            beside[value] = is_beside
        roles_by_place.append(BESIDE if is_beside else TRUNK)
        heavy.append(weighs)
    return roles_by_place, heavy


def _is_stored(value: ValueRecord) -> bool:
    return value.initializer is not None


def _is_heavy(node: NodeRecord, values: Mapping[int, ValueRecord], fixed: set[int]) -> bool:
    layer = find_traits(node.domain, node.op_type).layer
    if layer not in ("", "lookup", "comparison") or node.op_type == "Embedding":
        return True
    if layer == "lookup" and node.inputs and node.inputs[0]:
        return node.inputs[0] in fixed or _is_stored(values[node.inputs[0]])
    return False


def parameter_dims(
    value: int, nodes: Mapping[int, NodeRecord], values: Mapping[int, ValueRecord], steps: int = MAX_STEPS
) -> tuple[int, ...]:
    """The dims of a parameter, through Constant, DequantizeLinear and the like; () where they are not plain to see."""
    record = values.get(value)
    if record is None:
        return ()
    stored = record.initializer
    if stored is not None:
        return tuple(getattr(stored, "dims", ()))
    if record.producer is None or not steps:
        return ()
    node = nodes[record.producer[0]]
    if node.op_type == "Constant":
        for attribute in node.proto.attribute:
            if attribute.name == "value":
                return tuple(attribute.t.dims)
        return ()
    if node.op_type == "ConstantOfShape" and node.inputs:
        shape = getattr(values[node.inputs[0]], "initializer", None)
        return _elements(shape)
    if node.inputs and node.inputs[0]:
        return parameter_dims(node.inputs[0], nodes, values, steps - 1)
    return ()


def _elements(stored: object) -> tuple[int, ...]:
    """The few integers that a small tensor holds."""
    if not isinstance(stored, onnx.TensorProto) or stored.data_type != onnx.TensorProto.INT64:
        return ()
    if stored.data_location == onnx.TensorProto.EXTERNAL or len(stored.dims) != 1 or stored.dims[0] > 8:
        return ()
    return tuple(onnx.numpy_helper.to_array(stored).tolist())
