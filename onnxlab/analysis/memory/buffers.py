"""Values that share a buffer: views of others, and results that are written over an input that is needed no more.

ONNX Runtime's planner does both, and so does a run of onnxlab: Reshape, Squeeze, Unsqueeze, Flatten and Identity make a
view; an activation may write over its input, where that is of the same size and not read again. The planner also gives
a free buffer to the next value of the same shape, however late that comes, and holds the buffer until then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from onnxlab.graph.index.records import NodeRecord
from onnxlab.ops import find_traits

Nbytes = Callable[[int], int]
Shape = Callable[[int], Any]
Share = Literal["none", "live", "onnxruntime"]
"""How values share memory: each has its own; views and results in place; or as ONNX Runtime plans it."""


@dataclass(slots=True)
class MemoryBuffer:
    """Memory that one value or several take in turn.

    Attributes:
        nbytes: its size.
        values: ids of the values in it.
        first: position of the node that makes it, -1 for an input of the graph.
        last: position of the last node that reads one of its values.
    """

    nbytes: int
    values: list[int]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ValueSizes:
    """The facts on values that a plan needs.

    Attributes:
        nbytes: bytes of a value.
        shape: its element type and dims, None where it may not take the buffer of another.
        last_read: by value, the position of its last reader; values that stay to the end have the last position.
        inputs, outputs: ids of the graph's inputs and outputs.
        held: ids of values that are no result: initializers and constants. A view of them takes nothing.
    """

    nbytes: Nbytes
    shape: Shape
    last_read: Mapping[int, int]
    inputs: Sequence[int]
    outputs: frozenset[int]
    held: frozenset[int]


def plan(order: Sequence[NodeRecord], values: ValueSizes, share: Share) -> list[MemoryBuffer]:
    """The buffers of a run of nodes in their order, those that hold constants left out."""
    buffers = {vid: MemoryBuffer(values.nbytes(vid), [vid], -1, len(order) - 1) for vid in values.inputs}
    distinct = list(buffers.values())
    free = _Free(values.shape)
    for position, node in enumerate(order):
        for vid in filter(None, node.outputs):
            last = max(values.last_read.get(vid, position), position)
            host = None
            if share != "none":
                if _is_view(node) and node.inputs and node.inputs[0] in values.held:
                    continue
                if share == "live" or vid not in values.outputs:
                    host = _shared(node, position, vid, values.nbytes, buffers)
                if host is None and share == "onnxruntime" and vid not in values.outputs:
                    host = free.taken(vid, position)
            if host is None:
                host = MemoryBuffer(values.nbytes(vid), [], position, last)
                distinct.append(host)
                free.add(vid, host)
            host.values.append(vid)
            host.last = max(host.last, last)
            buffers[vid] = host
    return distinct


class _Free:
    """Buffers by the type and shape of their first value, to find one that was let go."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._buffers: dict[Any, list[MemoryBuffer]] = {}

    def add(self, vid: int, buffer: MemoryBuffer) -> None:
        """Enter the buffer that was made for a value."""
        if shape := self._shape(vid):
            self._buffers.setdefault(shape, []).append(buffer)

    def taken(self, vid: int, position: int) -> MemoryBuffer | None:
        """The buffer of a value of the same type and shape that was let go last, None where none was."""
        free = [buffer for buffer in self._buffers.get(self._shape(vid), ()) if buffer.last < position]
        return max(free, key=lambda buffer: buffer.last, default=None)


def _is_view(node: NodeRecord) -> bool:
    return node.op_type == "Identity" or find_traits(node.domain, node.op_type).reshapes


def _shared(
    node: NodeRecord, position: int, vid: int, nbytes: Nbytes, buffers: Mapping[int, MemoryBuffer]
) -> MemoryBuffer | None:  # fmt: skip
    """The buffer of an input in which a result may stand, None where it needs one of its own."""
    if vid != node.outputs[0]:
        return None
    if _is_view(node):
        return buffers.get(node.inputs[0]) if node.inputs else None
    row = find_traits(node.domain, node.op_type)
    host = buffers.get(node.inputs[0]) if row.category == "activation" and node.inputs else None
    if host is None or host.first < 0 or host.last != position or host.nbytes != nbytes(vid):
        return None
    return host
