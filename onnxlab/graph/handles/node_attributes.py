"""The attributes of a node as a live mapping: reading gives Python values, writing is an edit."""

from collections.abc import Iterator, MutableMapping
from typing import Any, Protocol

import onnx

from onnxlab.errors import MissingKeyError
from onnxlab.graph import edits
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.index import GRAPH_KINDS
from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.protos.attributes import BodyRef, decode
from onnxlab.schemas import Schema
from onnxlab.spelling import Spelled


class NodeHandle(Protocol):
    """The members of a node's handle that attributes use."""

    _graph: ModelGraph

    @property
    def _record(self) -> NodeRecord: ...

    @property
    def label(self) -> str:
        """The node's name, or what stands for it."""

    @property
    def schema(self) -> Schema | None:
        """The operator's schema, None where it is not known."""


class Attributes(Spelled, MutableMapping[str, Any]):
    """The attributes that a node sets, live: `node.attributes["strides"] = [1, 1]` is an edit.

    Iteration and `len` see only what is set; reading what is not gives the operator's default, if it has one.
    """

    __slots__ = ("_node",)

    def __init__(self, node: NodeHandle) -> None:
        self._node = node

    def __getitem__(self, name: str) -> Any:
        record = self._node._record
        for attribute in record.proto.attribute:
            if attribute.name == name:
                if attribute.type in GRAPH_KINDS:
                    refs = [BodyRef(body) for body in record.bodies[name]]
                    return refs[0] if attribute.type == onnx.AttributeProto.GRAPH else refs
                return decode(attribute)
        spec = self._schemas().get(name)
        if spec is None or spec.default is None:
            known = ", ".join([*self, *(other for other in self._schemas() if other not in set(self))]) or "none"
            where = self._node.label
            raise MissingKeyError(f"{where} sets no attribute {name!r} and it has no default; known: {known}")
        return spec.default

    def __setitem__(self, name: str, value: Any) -> None:
        edits.set_attribute(self._node._graph, self._node._record, name, value)

    def __delitem__(self, name: str) -> None:
        if name not in set(self):
            raise MissingKeyError(f"{self._node.label} does not set {name!r}")
        edits.clear_attribute(self._node._graph, self._node._record, name)

    def __iter__(self) -> Iterator[str]:
        return iter([attribute.name for attribute in self._node._record.proto.attribute])

    def __len__(self) -> int:
        return len(self._node._record.proto.attribute)

    def __contains__(self, name: object) -> bool:
        return any(attribute.name == name for attribute in self._node._record.proto.attribute)

    def __repr__(self) -> str:
        return repr({name: self[name] for name in self})

    def _schemas(self) -> Any:
        schema = self._node.schema
        return schema.attributes if schema else {}
