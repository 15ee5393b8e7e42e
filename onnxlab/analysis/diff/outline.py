"""A model as lines of text that a line-by-line comparison makes sense of: `git diff` with `onnxlab text`.

Every input, output, initializer and node has a line. The line of a tensor shows its type, its shape and a digest of its
elements, so that it differs where they do. With facts, the line of a node shows the types and shapes that it makes, so
that a comparison shows how far a change reaches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import onnx

from onnxlab.analysis.diff import texts
from onnxlab.errors import LoadError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.graph.protos import tensors
from onnxlab.printable import printable_lines

_PLAIN = (
    onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT, onnx.AttributeProto.STRING, onnx.AttributeProto.INTS,
    onnx.AttributeProto.FLOATS, onnx.AttributeProto.STRINGS,
)  # fmt: skip
FactOf = Callable[[int], object]
"""What inference knows of a value, by id."""


def outline(graph: ModelGraph, fact: FactOf | None = None) -> str:
    """The lines of a whole model; with facts also types and shapes of what nodes make."""
    return printable_lines(_model(graph, fact))


def _model(graph: ModelGraph, fact: FactOf | None) -> Iterator[str]:
    header = graph.header
    yield f"ir_version {header.ir_version}"
    for opset in header.opset_import:
        yield f"opset {opset.domain or 'ai.onnx'} {opset.version}"
    if header.producer_name:
        yield f"producer {header.producer_name} {header.producer_version}".rstrip()
    for entry in header.metadata_props:
        yield f"metadata {entry.key} = {texts.shortened(entry.value)}"
    yield from _scope(graph, graph.main, "", fact)
    for ident in graph.index.function_ids:
        scope = graph.scopes[ident]
        names = [", ".join(graph.values[vid].name for vid in formals) for formals in (scope.inputs, scope.outputs)]
        takes = [*scope.proto.attribute, *map(_attribute_of(graph), scope.proto.attribute_proto)]
        listed = f" {{{', '.join(takes)}}}" if takes else ""
        name = "::".join(filter(None, (scope.proto.domain, scope.name, scope.proto.overload)))
        yield f"function {name}({names[0]}) -> {names[1]}{listed}"
        for opset in scope.proto.opset_import:
            yield f"  opset {opset.domain or 'ai.onnx'} {opset.version}"
        yield from _scope(graph, scope, "  ", None)
    yield from _training(graph)


def _training(graph: ModelGraph) -> Iterator[str]:
    for scope in graph.scopes.values():
        if scope.kind == "training":
            yield f"{graph.scope_path(scope)}:"
            yield from _scope(graph, scope, "  ", None)
    for number, info in enumerate(graph.header.training_info):
        for field in ("initialization_binding", "update_binding"):
            for entry in getattr(info, field):
                yield f"{field} of training_info[{number}] {entry.key} = {entry.value}"


def _scope(graph: ModelGraph, scope: Scope, indent: str, fact: FactOf | None) -> Iterator[str]:
    if not scope.is_function:
        for info in scope.proto.input:
            yield f"{indent}input {info.name}: {texts.type_text(info) or 'any type'}"
        for tensor in scope.proto.initializer:
            yield f"{indent}initializer {tensor.name}: {stored(tensor, graph)}"
        for sparse in scope.proto.sparse_initializer:
            summary = f"{texts.stored_text(sparse)} {_digest(sparse.values, graph)} at {_digest(sparse.indices, graph)}"
            yield f"{indent}initializer {sparse.values.name}: {summary}"
    for ident in scope.node_ids:
        node = graph.nodes[ident]
        yield indent + _node(graph, node, fact)
        for name, bodies in node.bodies.items():
            for body in bodies:
                yield f"{indent}  {name}:"
                yield from _scope(graph, graph.scopes[body], indent + "    ", fact)
    if not scope.is_function:
        for info in scope.proto.output:
            yield f"{indent}output {info.name}: {texts.type_text(info) or 'any type'}"


def _node(graph: ModelGraph, node: NodeRecord, fact: FactOf | None) -> str:
    proto = node.proto
    domain = proto.domain if proto.domain != "ai.onnx" else ""
    operator = "::".join(filter(None, (domain, proto.op_type, proto.overload)))
    ordered = sorted(proto.attribute, key=lambda item: item.name)
    attributes = [*map(_attribute_of(graph), (item for item in ordered if item.type not in (item.GRAPH, item.GRAPHS)))]
    listed = f" {{{', '.join(attributes)}}}" if attributes else ""
    name = f"  # {proto.name}" if proto.name else ""
    types = f" -> {', '.join(str(fact(value)) for value in node.outputs if value)}" if fact is not None else ""
    return f"{', '.join(proto.output)} = {operator}({', '.join(proto.input)}){listed}{types}{name}"


def _attribute_of(graph: ModelGraph) -> Callable[[onnx.AttributeProto], str]:
    """A function that writes an attribute, with a digest where its text does not show all of it."""

    def written(item: onnx.AttributeProto) -> str:
        if item.HasField("t"):
            return f"{item.name}={stored(item.t, graph)}"
        text = texts.attribute_text(item)
        whole = item.type in _PLAIN and "…" not in text and not text.endswith(" items")
        digest = "" if item.ref_attr_name or whole else f" {_sha(item.SerializeToString(deterministic=True))}"
        return f"{item.name}={text}{digest}"

    return written


def stored(tensor: Any, graph: ModelGraph) -> str:
    """Type, shape and elements of a small tensor, a digest of a large one."""
    text = texts.stored_text(tensor)
    return (
        text if text.endswith("]") and " [" in text and not text.endswith("…") else f"{text} {_digest(tensor, graph)}"
    )


def _digest(tensor: onnx.TensorProto, graph: ModelGraph) -> str:
    try:
        if tensor.data_type == onnx.TensorProto.STRING:
            data = b"\0".join(tensor.string_data)
        else:
            data = tensors.to_bytes(tensor, graph.base_dir)
    except (LoadError, ValueError):
        return "unreadable"
    return _sha(data)


def _sha(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()[:16]}"
