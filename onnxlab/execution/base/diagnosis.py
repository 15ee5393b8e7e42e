"""Diagnosis of a failed kernel's inputs: signatures and shape rules are asked about them.

Kernels check only what would give a wrong result; all other faults raise NumPy's errors, which speak of NumPy.
Signatures and rules of inference know what each operator takes and say so in ONNX's terms. They are asked after a
failure only, so that runs without failures pay nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.helper import make_sequence_type_proto, make_tensor_type_proto

from onnxlab import dtypes, schemas
from onnxlab.execution.base.node_models import model_of, node_proto
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.snapshot import AttributeRef, NodeView
from onnxlab.graph.protos import tensors
from onnxlab.infer.live.live_inference import Inference
from onnxlab.ops import find_traits
from onnxlab.ops.base.shape_signatures import misfit

_KNOWN = 256  # elements of an input up to which rules may look at them: sizes, axes, scales


def broken_rule(node: NodeView, opsets: Mapping[str, int], arrays: Sequence[Any], fully: bool = True) -> str:
    """The rule of its operator that a node breaks on these inputs, in words; "" where none can be named.

    Without `fully`, only the operator's signature is asked, which knows ranks and equal sizes.
    """
    rule = _of_signature(node, opsets, arrays)
    return rule or (_of_inference(node, opsets, arrays) if fully else "")


def _of_signature(node: NodeView, opsets: Mapping[str, int], arrays: Sequence[Any]) -> str:
    schema = schemas.find(node.domain, node.op_type, opsets.get(node.domain, 1))
    if node.domain not in ("", "ai.onnx.preview") or schema is None:
        return ""
    formals = [schema.input(slot) for slot in range(len(arrays))]
    names = [f"{slot} ({formal.name})" if formal else str(slot) for slot, formal in enumerate(formals)]
    return misfit(find_traits(node.domain, node.op_type).signature, names, arrays)


def _of_inference(node: NodeView, opsets: Mapping[str, int], arrays: Sequence[Any]) -> str:
    """The first error that inference finds in the node alone."""
    if node.attributes.bodies or any(isinstance(value, AttributeRef) for value in node.attributes.values()):
        return ""
    with contextlib.suppress(Exception):  # too malformed for inference: the kernel's own message stays
        graph = ModelGraph(_alone(node, opsets, arrays))
        for diagnostic in Inference(graph).problems:
            if diagnostic.severity == "error":
                sides = (
                    f": expected {diagnostic.expected}, found {diagnostic.found}"
                    if diagnostic.expected and diagnostic.found
                    else ""
                )
                return f"{diagnostic.message.removeprefix(_prefix(graph, diagnostic.node))}{sides}"
    return ""


def _prefix(graph: ModelGraph, node: int) -> str:
    """The node that a diagnostic is about, as messages begin."""
    if not node:
        return ""
    record = graph.nodes[node]
    operator = f"{record.domain}::{record.op_type}" if record.domain else record.op_type
    return f"{graph.label(record)} ({operator}): "


def _alone(node: NodeView, opsets: Mapping[str, int], arrays: Sequence[Any]) -> onnx.ModelProto:
    """A model of this node: its inputs have the types of the arrays, and small arrays are known elements."""
    feeds = {name: value for name, value in zip(node.inputs, arrays, strict=False) if name}
    known = {name: value for name, value in feeds.items() if isinstance(value, np.ndarray) and value.size <= _KNOWN}
    types = {name: _type_of(value) for name, value in feeds.items()}
    return model_of(onnx.GraphProto(
        name="node", node=[node_proto(node)],
        input=[onnx.ValueInfoProto(name=name, type=kind) for name, kind in types.items() if kind is not None],
        initializer=[tensors.from_array(value, name) for name, value in known.items()],
        output=[onnx.ValueInfoProto(name=name) for name in node.outputs if name],
    ), opsets)  # fmt: skip


def _type_of(value: Any) -> onnx.TypeProto | None:
    """The type of an array, or of a sequence by its first element; None for what has none."""
    if isinstance(value, np.ndarray):
        return make_tensor_type_proto(dtypes.from_numpy(value.dtype), value.shape)
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first, np.ndarray):
        return make_sequence_type_proto(make_tensor_type_proto(dtypes.from_numpy(first.dtype), None))
    return None
