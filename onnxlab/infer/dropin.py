"""`infer_shapes` with the signature, results and exceptions of onnx.shape_inference.infer_shapes.

It works on a copy and writes what it found: value_info for every value that a node makes, in the graph and its
subgraphs, and the types of graph outputs. Declared types are refined, as onnx does. Symbolic dims are written as
expressions of the model's own symbols ("2*seq + 1"), others as "unk__0", "unk__1", …
"""

from __future__ import annotations

import os
from typing import Any

import onnx
import onnx.shape_inference

from onnxlab.errors import Diagnostic
from onnxlab.graph.modelgraph import ModelGraph
from onnxlab.graph.records import Scope, ValueRecord
from onnxlab.infer.engine import Inference
from onnxlab.infer.policy import Policy
from onnxlab.infer.types import type_of_fact
from onnxlab.shapes import UNKNOWN, Dim, Expr, replace_symbols, symbol, text
from onnxlab.shapes.expressions import Atom


def infer_shapes(
    model: onnx.ModelProto | bytes, check_type: bool = False, strict_mode: bool = False, data_prop: bool = False
) -> onnx.ModelProto:
    """Return a copy of `model` with the types and shapes that inference finds.

    Args:
        model: ModelProto or its bytes.
        check_type: raise where an input's type is not one that its operator takes.
        strict_mode: raise for every error, where onnx raises; else infer what can be inferred.
        data_prop: follow the elements of small tensors through operators that compute shapes.

    Raises:
        TypeError: `model` is neither.
        onnx.shape_inference.InferenceError: the model is wrong, in strict mode or with check_type.
    """
    if isinstance(model, (str, os.PathLike)):
        raise TypeError(
            "infer_shapes takes a ModelProto or bytes. For Model paths (str or os.PathLike), use infer_shapes_path(). "
            "Or read the file first: onnx.load(path)"
        )
    if not isinstance(model, (onnx.ModelProto, bytes)):
        raise TypeError(f"infer_shapes takes a ModelProto or bytes, not {type(model).__name__}")
    copy = onnx.ModelProto()
    copy.ParseFromString(model if isinstance(model, bytes) else model.SerializeToString())
    graph = ModelGraph(copy)
    inference = Inference(graph, Policy(data_prop, "refine", strict_mode))
    for diagnostic in inference.diagnostics:
        if _raises(diagnostic, check_type, strict_mode):
            raise onnx.shape_inference.InferenceError(f"[ShapeInferenceError] {diagnostic}")
    writer = _Writer(graph, inference)
    writer.write_scope(graph.main)
    return copy


def _raises(diagnostic: Diagnostic, check_type: bool, strict: bool) -> bool:
    if diagnostic.code in ("type-mismatch", "arity"):
        return check_type
    return strict and (diagnostic.severity == "error" or diagnostic.code.startswith("declared-"))


class _Writer:
    """Writes facts into the protos of scopes; unknown dims are numbered in the order of writing."""

    def __init__(self, graph: ModelGraph, inference: Inference) -> None:
        self._graph = graph
        self._facts = inference.facts
        self._unknown: dict[Atom, Dim] = {}

    def write_scope(self, scope: Scope) -> None:
        """Types of all values that nodes of this scope make, subgraphs included."""
        declared = {info.name: info for info in scope.proto.value_info}
        outputs = {info.name: info for info in scope.proto.output}
        for node_id in scope.node_ids:
            node = self._graph.nodes[node_id]
            for bodies in node.bodies.values():
                for body in bodies:
                    self.write_scope(self._graph.scopes[body])
            for vid in node.outputs:
                if vid:
                    self._write_value(scope, self._graph.values[vid], declared, outputs)

    def _write_value(self, scope: Scope, value: ValueRecord, declared: dict[str, Any], outputs: dict[str, Any]) -> None:
        fact = self._facts.get(value.id, UNKNOWN)
        if fact is UNKNOWN:
            return
        info = outputs.get(value.name) or declared.get(value.name)
        if info is None:
            info = scope.proto.value_info.add(name=value.name)
        self._merge(info.type, type_of_fact(fact, self._text))
        if value.name in outputs and value.name in declared:
            self._merge(declared[value.name].type, info.type)

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
