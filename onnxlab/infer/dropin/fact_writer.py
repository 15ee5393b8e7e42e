"""Facts written into the messages of a model: value_info for every value that a node makes, types of graph outputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import onnx

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import Scope
from onnxlab.infer.facts.type_encoding import encode, field
from onnxlab.infer.live.live_inference import Inference
from onnxlab.shapes import UNKNOWN, Expr, Fact
from onnxlab.shapes.expressions import Atom
from onnxlab.shapes.notation import Notation

_VALUE_INFO = onnx.GraphProto.DESCRIPTOR.fields_by_name["value_info"].number
_SHORT = [bytes((_VALUE_INFO << 3 | 2, size)) for size in range(128)]
_NAMES = [bytes((1 << 3 | 2, size)) for size in range(128)]
"""Tag and length of a value_info, and of the name in it, by length."""


class Writer:
    """Writes facts into the protos of scopes; unknown dims are numbered in the order of writing."""

    def __init__(self, graph: ModelGraph, inference: Inference) -> None:
        self._graph = graph
        self._facts = dict(inference.facts)  # a lookup in the live view takes longer
        self._texts: dict[Expr, str] = {}
        self._notation = Notation(_namer())
        self._types: dict[Fact, bytes] = {}

    def write_scope(self, scope: Scope) -> None:
        """Types of all values that nodes of this scope make, subgraphs included."""
        nodes, values, facts, types = self._graph.nodes, self._graph.values, self._facts, self._types
        declared = {info.name: info for info in scope.proto.value_info[:]}
        outputs = {info.name: info for info in scope.proto.output[:]}
        named = {**declared, **outputs}
        new: list[bytes] = []
        for node_id in scope.node_ids:
            node = nodes[node_id]
            if node.bodies:
                for body in itertools.chain.from_iterable(node.bodies.values()):
                    self.write_scope(self._graph.scopes[body])
            for vid in node.outputs:
                fact = facts.get(vid, UNKNOWN)
                if fact is UNKNOWN:
                    continue
                encoded = types.get(fact) or self._encoded(fact)
                name: str | bytes = values[vid].name  # bytes where the name is not UTF-8
                written = name if isinstance(name, bytes) else name.encode()
                if name in named:
                    self._refine(name, field(1, written) + encoded, declared, outputs)
                    continue
                size = len(written)
                whole = size + len(encoded) + 2
                if whole < 128:  # as of most values
                    new += _SHORT[whole], _NAMES[size], written, encoded
                else:
                    new.append(field(_VALUE_INFO, field(1, written) + encoded))
        scope.proto.MergeFromString(b"".join(new))

    def _encoded(self, fact: Fact) -> bytes:
        """The field `type` of a ValueInfoProto, serialized."""
        encoded = self._types[fact] = field(2, encode(fact, self._text))
        return encoded

    def _text(self, dim: Expr) -> str:
        text = self._texts.get(dim)
        if text is None:
            text = self._texts[dim] = self._notation.dim(dim)
        return text

    def _refine(self, name: Any, encoded: bytes, declared: dict[str, Any], outputs: dict[str, Any]) -> None:
        info = outputs.get(name) or declared[name]
        if info.SerializeToString() != encoded:  # else the declaration says all of it already
            self._merge(info.type, onnx.ValueInfoProto.FromString(encoded).type)
        if name in outputs and name in declared:
            self._merge(declared[name].type, info.type)

    def _merge(self, target: onnx.TypeProto, inferred: onnx.TypeProto) -> None:
        """Fill in what `target` leaves open; what it states stays, but a symbol gives way to a number."""
        if target == inferred:
            return
        kind = inferred.WhichOneof("value")
        if target.WhichOneof("value") != kind:
            if target.WhichOneof("value") is None:
                target.MergeFrom(inferred)
            return
        if kind in ("sequence_type", "optional_type"):
            self._merge(getattr(target, str(kind)).elem_type, getattr(inferred, str(kind)).elem_type)
        elif kind in ("tensor_type", "sparse_tensor_type"):
            _merge_tensor(getattr(target, str(kind)), getattr(inferred, str(kind)))


def _namer() -> Callable[[Atom], str]:
    """Names of symbols: their own, or numbers for unknown dims. The function holds no Writer: that is freed at once."""
    unknown: dict[Atom, str] = {}

    def named(atom: Atom) -> str:
        if isinstance(atom.key, str) or atom.definition is not None:
            return atom.name
        return unknown.setdefault(atom, f"unk__{len(unknown)}")

    return named


def _merge_tensor(target: Any, inferred: Any) -> None:
    if not target.elem_type:
        target.elem_type = inferred.elem_type
    if not inferred.HasField("shape"):
        return
    if not target.HasField("shape"):
        target.shape.CopyFrom(inferred.shape)
    elif len(target.shape.dim) == len(inferred.shape.dim):
        for old, new in zip(target.shape.dim, inferred.shape.dim, strict=True):
            if new.HasField("dim_value") and not old.HasField("dim_value"):
                old.dim_value = new.dim_value
            elif new.HasField("dim_param") and old.WhichOneof("value") is None:
                old.dim_param = new.dim_param
