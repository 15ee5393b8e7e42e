"""Facts written into the messages of a model: value_info for every value that a node makes, types of graph outputs."""

from __future__ import annotations

from typing import Any

import onnx

from onnxlab.graph.modelgraph import ModelGraph
from onnxlab.graph.records import Scope
from onnxlab.infer.engine import Inference
from onnxlab.infer.types import type_of_fact
from onnxlab.shapes import UNKNOWN, Dim, Expr, Fact, replace_symbols, symbol, text
from onnxlab.shapes.expressions import Atom


class Writer:
    """Writes facts into the protos of scopes; unknown dims are numbered in the order of writing."""

    def __init__(self, graph: ModelGraph, inference: Inference) -> None:
        self._graph = graph
        self._facts = inference.facts
        self._unknown: dict[Atom, Dim] = {}
        self._types: dict[Fact, onnx.TypeProto] = {}
        self._fields: dict[Fact, bytes] = {}

    def write_scope(self, scope: Scope) -> None:
        """Types of all values that nodes of this scope make, subgraphs included."""
        declared = {info.name: info for info in scope.proto.value_info}
        outputs = {info.name: info for info in scope.proto.output}
        new: list[bytes] = []
        for node_id in scope.node_ids:
            node = self._graph.nodes[node_id]
            for bodies in node.bodies.values():
                for body in bodies:
                    self.write_scope(self._graph.scopes[body])
            for vid in node.outputs:
                if vid and (fact := self._facts.get(vid, UNKNOWN)) is not UNKNOWN:
                    self._write_value(self._graph.values[vid].name, fact, declared, outputs, new)
        scope.proto.MergeFromString(b"".join(new))

    def _write_value(
        self, name: str, fact: Fact, declared: dict[str, Any], outputs: dict[str, Any], new: list[bytes]
    ) -> None:
        """Refine what is declared of a value; for one of which nothing is, add the bytes of a value_info to `new`."""
        info = outputs.get(name) or declared.get(name)
        if info is None:
            new.append(self._value_info(name, fact))
            return
        self._merge(info.type, self._type(fact))
        if name in outputs and name in declared:
            self._merge(declared[name].type, info.type)

    def _type(self, fact: Fact) -> onnx.TypeProto:
        found = self._types.get(fact)
        if found is None:
            found = self._types[fact] = type_of_fact(fact, self._text)
        return found

    def _value_info(self, name: str, fact: Fact) -> bytes:
        """The field `value_info` of a GraphProto, serialised: half the time of adding a message."""
        field = self._fields.get(fact)
        if field is None:
            field = self._fields[fact] = onnx.ValueInfoProto(type=self._type(fact)).SerializeToString()
        encoded = name.encode()
        size = len(encoded)
        if size < 64 and size + len(field) < 126:
            return b"\x6a%c\x0a%c%b%b" % (size + 2 + len(field), size, encoded, field)
        return onnx.GraphProto(value_info=[onnx.ValueInfoProto(name=name, type=self._type(fact))]).SerializeToString()

    def _text(self, dim: Expr) -> str:
        return text(replace_symbols(dim, self._named))

    def _named(self, atom: Atom) -> Dim | None:
        if isinstance(atom.key, str):
            return None
        if atom not in self._unknown:
            self._unknown[atom] = symbol(f"unk__{len(self._unknown)}")
        return self._unknown[atom]

    def _merge(self, target: onnx.TypeProto, found: onnx.TypeProto) -> None:
        """Fill in what `target` leaves open; what it states stays, but a symbol gives way to a number."""
        if target == found:
            return
        kind = found.WhichOneof("value")
        if target.WhichOneof("value") != kind:
            if target.WhichOneof("value") is None:
                target.MergeFrom(found)
            return
        if kind in ("sequence_type", "optional_type"):
            self._merge(getattr(target, str(kind)).elem_type, getattr(found, str(kind)).elem_type)
        elif kind in ("tensor_type", "sparse_tensor_type"):
            _merge_tensor(getattr(target, str(kind)), getattr(found, str(kind)))


def _merge_tensor(target: Any, found: Any) -> None:
    if not target.elem_type:
        target.elem_type = found.elem_type
    if not found.HasField("shape"):
        return
    if not target.HasField("shape"):
        target.shape.CopyFrom(found.shape)
    elif len(target.shape.dim) == len(found.shape.dim):
        for old, new in zip(target.shape.dim, found.shape.dim, strict=True):
            if new.HasField("dim_value") and not old.HasField("dim_value"):
                old.dim_value = new.dim_value
            elif new.HasField("dim_param") and old.WhichOneof("value") is None:
                old.dim_param = new.dim_param
