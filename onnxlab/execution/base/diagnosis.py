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

from onnxlab import dtypes, schemas
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
    model = onnx.ModelProto(ir_version=10, graph=onnx.GraphProto(name="node"))
    for domain, version in opsets.items():
        model.opset_import.add(domain=domain, version=version)
    proto = model.graph.node.add(op_type=node.op_type, domain=node.domain, input=node.inputs, output=node.outputs)
    proto.attribute.extend(node.attributes.proto(name) for name in node.attributes)
    feeds = {name: value for name, value in zip(node.inputs, arrays, strict=False) if name}
    for name, value in feeds.items():
        type_proto = _type_of(value)
        if type_proto is not None:
            model.graph.input.add(name=name).type.CopyFrom(type_proto)
        if isinstance(value, np.ndarray) and value.size <= _KNOWN:
            model.graph.initializer.append(tensors.from_array(value, name))
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.outputs if name)
    return model


def _type_of(value: Any) -> onnx.TypeProto | None:
    """The type of an array, or of a sequence by its first element; None for what has none."""
    type_proto = onnx.TypeProto()
    if isinstance(value, np.ndarray):
        type_proto.tensor_type.elem_type = dtypes.from_numpy(value.dtype)
        type_proto.tensor_type.shape.SetInParent()
        for size in value.shape:
            type_proto.tensor_type.shape.dim.add(dim_value=size)
    elif isinstance(value, list) and value and isinstance(value[0], np.ndarray):
        type_proto.sequence_type.elem_type.tensor_type.elem_type = dtypes.from_numpy(value[0].dtype)
    else:
        return None
    return type_proto
