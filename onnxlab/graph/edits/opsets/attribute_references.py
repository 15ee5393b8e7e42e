"""Nodes of functions that take attributes from the call, with some that a call could give in their place."""

from typing import Any

import onnx

from onnxlab.graph.protos.attributes import encode, kind_of

SAMPLES = 4
"""Number of different calls that are tried."""

_VALUES: dict[str, tuple[Any, ...]] = {
    "int": (0, 1, -1, 2), "float": (0.5, 3.0), "ints": ([0], [0, 1], [2, 2]), "floats": ([0.5], [1.0, 2.0]),
}  # fmt: skip


def refers(node: onnx.NodeProto) -> bool:
    """Whether a node takes attributes from the call of the function that it stands in."""
    return any(attribute.ref_attr_name for attribute in node.attribute)


def sample(node: onnx.NodeProto, number: int) -> onnx.NodeProto:
    """A copy with the attributes that a call could give, as far as there are samples of their kind."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for attribute in copy.attribute:
        if attribute.ref_attr_name and (values := _VALUES.get(kind_of(attribute))):
            attribute.CopyFrom(encode(attribute.name, values[number % len(values)]))
    return copy
