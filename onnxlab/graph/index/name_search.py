"""Names of nodes looked for in the bytes of a model as it was read: quicker than a table of all for a few lookups."""

from __future__ import annotations

import onnx

from onnxlab.graph.protos import wire_format

_NAME, _OUTPUT = wire_format.tag(onnx.NodeProto, "name"), wire_format.tag(onnx.NodeProto, "output")
_BUDGET = 800
"""Bytes for each node that may be searched through: about a fifth of the time that a table of the names takes."""
_HITS = 8


class NameSearch:
    """The names in a serialized model, for as many searches as are worth it.

    Args:
        data: the model, in which the fields of a node stand in the order of their numbers.
        nodes: how many it has.
    """

    def __init__(self, data: bytes, nodes: int) -> None:
        self._data = data
        self._left = _BUDGET * nodes

    def outputs(self, name: str) -> list[list[str]] | None:
        """For each place where a node may have a name: what the output before it may be called.

        None where too much was searched through, or there are many places.
        """
        data = self._data
        if not data or self._left < len(data):
            self._data = b""
            return None
        self._left -= len(data)
        text = name.encode(errors="replace")
        if len(text) >= wire_format.VARINT:
            return None
        key = bytes((_NAME, len(text))) + text
        found: list[list[str]] = []
        end = len(data)
        while (at := data.rfind(key, 0, end)) >= 0:  # three times as quick as from the front
            found.append(self._before(at))
            if len(found) > _HITS:
                return None
            end = at + len(key) - 1
        return found

    def _before(self, end: int) -> list[str]:
        """Possible contents of a field `output` that ends at `end`: read from its end there may be more than one."""
        data = self._data
        return [
            data[end - size : end].decode(errors="replace")
            for size in range(1, min(wire_format.VARINT, end - 1))
            if data[end - size - 1] == size and data[end - size - 2] == _OUTPUT
        ]
