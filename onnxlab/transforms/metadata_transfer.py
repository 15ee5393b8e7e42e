"""Documentation and metadata of a model: carried over to what replaces a node, or listed as lost."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import onnx

from onnxlab.graph.edit.changes import SetField
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.protos import glow_dialect
from onnxlab.printable import printable

Statements: TypeAlias = dict[tuple[str, str], str]
"""{(key, text): label of the first element with that text}; the key of documentation is ""."""

MOST_DOCUMENTATION: Final = 1 << 16
"""Characters that the documentation of a node or tensor may grow to."""


@dataclass(frozen=True, slots=True)
class MetadataLoss:
    """Documentation or metadata that a model had before a rewrite and has no more.

    Attributes:
        of: label of the node, value, graph or function that had it.
        key: the key of the metadata, "" for a line of documentation.
        text: the metadata's value, or the line.
    """

    of: str
    key: str
    text: str

    def __str__(self) -> str:
        shown = self.text if len(self.text) <= 60 else f"{self.text[:57]}..."
        return printable(f"{self.of}: {self.key or 'documentation'} {shown!r}")


def statements(graph: ModelGraph) -> Statements:
    """Documentation and metadata of all nodes, values, stored tensors, graphs and functions of a model."""
    known: Statements = {}
    for node in graph.nodes.values():
        message = node.proto
        if message.doc_string or message.metadata_props or message.device_configurations:
            _add(known, graph.label(node), message)
    for value in graph.values.values():
        for proto in (value.info, value.initializer):
            if proto is not None and _says(proto):
                _add(known, value.name, proto)
    for scope in graph.scopes.values():
        if _says(scope.proto):
            _add(known, graph.scope_path(scope) or scope.name, scope.proto)
        for note in getattr(scope.proto, "quantization_annotation", ()):
            text = ", ".join(f"{entry.key}={entry.value}" for entry in note.quant_parameter_tensor_names)
            known.setdefault((f"quantization of {note.tensor_name}", text), note.tensor_name)
    return known


def lost(before: Statements, now: Statements) -> tuple[MetadataLoss, ...]:
    """The statements of before that the model has nowhere now."""
    return tuple(MetadataLoss(of, key, text) for (key, text), of in before.items() if (key, text) not in now)


def carry_over(graph: ModelGraph, removed: onnx.NodeProto, heir: NodeRecord | ValueRecord | None) -> None:
    """Give a node's documentation and metadata to what takes its place, whose own entries of the same key stay.

    Args:
        graph: the model, inside of an edit.
        removed: the node.
        heir: the node or stored value that takes its place; None and values that are not stored get nothing.
    """
    target: Any
    if isinstance(heir, ValueRecord):
        target, proto = ("tensor", heir.id), heir.initializer
        if not isinstance(proto, onnx.TensorProto) or glow_dialect.is_dialect(graph.header):
            return
    elif heir is not None:
        target, proto = ("node", heir.id), heir.proto
    if heir is None or not (removed.doc_string or removed.metadata_props):
        return
    doc = joined(proto.doc_string, removed.doc_string)
    if doc != proto.doc_string:
        graph.apply(SetField(target, "doc_string", doc))
    known = {entry.key for entry in proto.metadata_props}
    more = tuple(entry for entry in removed.metadata_props if entry.key not in known)
    if more:
        graph.apply(SetField(target, "metadata_props", (*proto.metadata_props, *more)))


def spoken(proto: onnx.NodeProto) -> onnx.NodeProto:
    """A node's documentation and metadata alone, for `carry_over` after the node is removed."""
    return onnx.NodeProto(doc_string=proto.doc_string, metadata_props=proto.metadata_props)


def joined(first: str, second: str) -> str:
    """Two texts of documentation as one, no line twice; the first alone where both are too long."""
    lines = first.splitlines()
    known = set(lines)
    more = [line for line in second.splitlines() if line not in known]
    if not more or len(first) + len(second) > MOST_DOCUMENTATION:
        return first
    return "\n".join([*lines, *more])


def _says(proto: Any) -> bool:
    return bool(getattr(proto, "doc_string", "") or getattr(proto, "metadata_props", ()))


def _add(known: Statements, label: str, proto: Any) -> None:
    for key, text in _said(proto):
        known.setdefault((key, text), label)


def _said(proto: Any) -> Iterator[tuple[str, str]]:
    for line in proto.doc_string.splitlines():
        yield "", line
    for entry in getattr(proto, "metadata_props", ()):
        yield entry.key, entry.value
    for entry in getattr(proto, "device_configurations", ()):
        yield "device configuration", str(entry)
