"""Graphs of MindSpore's and Ascend's graph engine (GE), written as ONNX messages: `ge_onnx_*.pbtxt`.

These dumps are ModelProtos with another meaning. A reference is "node:port"; the port -1 is a control edge, the
reference "" an unconnected input. A node lists only those of its outputs that are read. Inputs and outputs of the
graph are names of nodes. Types are in attributes of the nodes, and the operators are not ONNX's.
"""

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

import onnx

from onnxlab import dtypes

PREFIX: Final = "ge:"
"""Prefix of the operators of a dump."""

SUBGRAPH: Final = "subgraph"
"""The operator of nodes that hold a graph; other nodes refer to the graph by name."""

CONTROL: Final = -1
"""The port of a control edge: no data flows, one node waits for another."""

_DTYPES: Final = {
    "DT_FLOAT": dtypes.FLOAT, "DT_FLOAT16": dtypes.FLOAT16, "DT_BF16": dtypes.BFLOAT16, "DT_DOUBLE": dtypes.DOUBLE,
    "DT_INT4": dtypes.INT4, "DT_INT8": dtypes.INT8, "DT_INT16": dtypes.INT16, "DT_INT32": dtypes.INT32,
    "DT_INT64": dtypes.INT64, "DT_UINT8": dtypes.UINT8, "DT_UINT16": dtypes.UINT16, "DT_UINT32": dtypes.UINT32,
    "DT_UINT64": dtypes.UINT64, "DT_BOOL": dtypes.BOOL, "DT_STRING": dtypes.STRING,
    "DT_COMPLEX64": dtypes.COMPLEX64, "DT_COMPLEX128": dtypes.COMPLEX128,
}  # fmt: skip
_UNKNOWN_RANK: Final = -2


class Reference(NamedTuple):
    """An output of a node: its name and its port."""

    node: str
    port: int

    @property
    def is_control(self) -> bool:
        """Whether nothing flows there."""
        return self.port == CONTROL


class Descriptor(NamedTuple):
    """A node's description of one of its inputs or outputs.

    Attributes:
        dtype: as the dump writes it: "DT_FLOAT"; "" where not given.
        shape: dims, -1 for unknown ones; None where the rank is unknown or not given.
        layout: "NCHW", "NC1HWC0"; "" where not given.
        origin_shape, origin_layout: the same before the engine chose a layout.
    """

    dtype: str = ""
    shape: tuple[int, ...] | None = None
    layout: str = ""
    origin_shape: tuple[int, ...] | None = None
    origin_layout: str = ""

    @property
    def elem_type(self) -> int:
        """ONNX's element type, 0 for types that it does not have."""
        return _DTYPES.get(self.dtype, dtypes.UNDEFINED)


def is_dump(model: onnx.ModelProto) -> bool:
    """Tell whether a model is a dump of GE: by its operators, or by its producer where no opset is imported."""
    if model.producer_name == "GE" and not model.opset_import:
        return True
    return len(model.graph.node) > 0 and model.graph.node[0].op_type.startswith(PREFIX)


def word_of(attribute: str) -> Literal["declarations", "order"] | None:
    """The kind of a node's attribute in GE: "declarations" are types of ports, "order" its place in the schedule."""
    if attribute.startswith(("input_desc_", "output_desc_")):
        return "declarations"
    return "order" if attribute == "id" else None


def split(reference: str) -> Reference | None:
    """The node and port of a reference, by the last colon; None for an unconnected input and for other text."""
    node, colon, port = reference.rpartition(":")
    digits = port.removeprefix("-")
    if not colon or not digits.isascii() or not digits.isdigit() or len(digits) > 9 or int(port) < CONTROL:
        return None
    return Reference(node, int(port))


def is_control(reference: str) -> bool:
    """Tell whether a reference is one to a control edge."""
    return reference.endswith(":-1")


def inputs(node: onnx.NodeProto) -> list[Reference | None]:
    """The inputs of a node, by slot; None for an unconnected one. Control edges have no slot."""
    return [split(name) for name in node.input if not is_control(name)]


def awaited(node: onnx.NodeProto) -> list[Reference]:
    """The nodes that a node waits for, by control edges."""
    return [reference for reference in map(split, node.input) if reference is not None and reference.is_control]


def descriptor(node: onnx.NodeProto, side: str, port: int) -> Descriptor:
    """The attributes of a node about one of its ports.

    Args:
        node: a node of a dump.
        side: "input" or "output".
        port: from 0 on.
    """
    key_of = {f"{side}_desc_{key}:{port}": key for key in ("dtype", "shape", "layout", "origin_shape", "origin_layout")}
    parts: dict[str, Any] = {}
    for attribute in node.attribute:
        key = key_of.get(attribute.name)
        if key in ("shape", "origin_shape"):
            parts[key] = _shape(attribute)
        elif key is not None:
            parts[key] = attribute.s.decode("utf-8", "replace")
    return Descriptor(**parts)


def _shape(attribute: onnx.AttributeProto) -> tuple[int, ...] | None:
    """Dims by an attribute: none for a scalar, [-2] for an unknown rank."""
    dims = tuple(attribute.ints)
    return None if dims == (_UNKNOWN_RANK,) else dims


def details(node: onnx.NodeProto) -> list[tuple[str, str]]:
    """The attributes of a node besides its operator, for display: (label, text) by port, then streams."""
    rows = []
    for side in ("input", "output"):
        ports = sorted(_ports(node, side))
        rows += [(f"{side} {port}", _told(descriptor(node, side, port))) for port in ports]
    for attribute in node.attribute:
        if attribute.name in ("stream_id", "_stream_label"):
            rows.append((attribute.name, attribute.s.decode("utf-8", "replace") if attribute.s else str(attribute.i)))
        elif attribute.name == "active_stream_list":
            rows.append((attribute.name, ", ".join(map(str, attribute.ints))))
    return rows


def _ports(node: onnx.NodeProto, side: str) -> Iterator[int]:
    start = f"{side}_desc_dtype:"
    for attribute in node.attribute:
        port = attribute.name.removeprefix(start)
        if port != attribute.name and port.isascii() and port.isdigit() and len(port) < 9:
            yield int(port)


def _told(port: Descriptor) -> str:
    current = f"{port.dtype} {_dims(port.shape)} {port.layout}".strip()
    before = f"{_dims(port.origin_shape)} {port.origin_layout}".strip()
    same = (port.origin_shape, port.origin_layout) == (port.shape, port.layout)
    return current if same or not port.origin_layout else f"{current}, from {before}"


def _dims(shape: tuple[int, ...] | None) -> str:
    return "[?]" if shape is None else f"[{','.join('?' if dim < 0 else str(dim) for dim in shape)}]"
