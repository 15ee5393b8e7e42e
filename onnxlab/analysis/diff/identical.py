"""Whether two models are equal to the byte, found out without matching anything, and the fields that are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import Message

from onnxlab.analysis.diff.change import ModelChange
from onnxlab.analysis.diff.matching import GraphMatching
from onnxlab.analysis.diff.texts import shortened
from onnxlab.errors import LoadError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.protos import external_data
from onnxlab.graph.protos.lazy_tensor import LazyTensor

_BLOCK = 1 << 22
"""Elements that are compared at a time."""

_MOST = 20
"""Fields that are listed."""


def identical(a: ModelGraph, b: ModelGraph) -> bool:
    """Whether all messages are equal, and what lies in data files too."""
    if a is b:
        return True
    model, other = a.proto, b.proto
    return model == other and _same_data(model, other, a.base_dir, b.base_dir)


def _same_data(model: onnx.ModelProto, other: onnx.ModelProto, base_dir: Path | None, other_dir: Path | None) -> bool:
    if same_folder(base_dir, other_dir):
        return True
    pairs = zip(external_data.all_tensors(model), external_data.all_tensors(other), strict=True)
    return all(same_elements(first, base_dir, other_dir) for first, _ in pairs if external_data.is_external(first))


def same_folder(base_dir: Path | None, other_dir: Path | None) -> bool:
    """Whether data files of two models are found in one folder."""
    return base_dir == other_dir or bool(base_dir and other_dir and base_dir.resolve() == other_dir.resolve())


def same_elements(tensor: onnx.TensorProto, base_dir: Path | None, other_dir: Path | None) -> bool:
    """Whether a tensor that lies in a data file has the same elements in two folders; False where one is unreadable."""
    try:
        ours, theirs = LazyTensor(tensor, base_dir), LazyTensor(tensor, other_dir)
        return all(
            ours.elements(start, min(_BLOCK, ours.size - start)).tobytes()
            == theirs.elements(start, min(_BLOCK, ours.size - start)).tobytes()
            for start in range(0, ours.size, _BLOCK)
        )
    except LoadError:
        return False


def same_places(a: ModelGraph, b: ModelGraph) -> GraphMatching:
    """The pairs of two models that are equal: everything by its place."""
    matching = GraphMatching()
    for ident, other in zip(_scopes(a), _scopes(b), strict=True):
        scope, its = a.scopes[ident], b.scopes[other]
        matching.scopes[ident] = other
        matching.nodes.update(zip(scope.node_ids, its.node_ids, strict=True))
        matching.values.update({vid: its.names[name] for name, vid in scope.names.items() if name in its.names})
    return matching


def _scopes(graph: ModelGraph) -> list[int]:
    """Scopes in an order that depends on the file alone."""
    pending = [graph.main.id, *graph.index.function_ids]
    pending += [ident for ident, scope in sorted(graph.scopes.items()) if scope.kind == "training"]
    idents = []
    while pending:
        scope = graph.scopes[pending.pop(0)]
        idents.append(scope.id)
        for ident in scope.node_ids:
            for bodies in graph.nodes[ident].bodies.values():
                pending.extend(bodies)
    return idents


def field_changes(message: Message, other: Message) -> Iterator[ModelChange]:
    """The first fields in which two messages of one kind differ, as changes of the model.

    Fields that no schema has, and those that are absent in one message and empty in the other, say the same.
    """
    pending: list[tuple[str, Any, Any]] = [("", message, other)]
    count = 0
    while pending and count < _MOST:
        path, ours, theirs = pending.pop()
        if not isinstance(ours, Message):
            count += 1
            yield ModelChange("changed", "model", "model", "model", path, shortened(ours), shortened(theirs))
        elif ours != theirs:
            pending += reversed([*_differing(path, ours, theirs)])


def _differing(path: str, message: Message, other: Message) -> Iterator[tuple[str, Any, Any]]:
    """(path, value, value) of each field that differs: messages to look into, else texts."""
    for field in message.DESCRIPTOR.fields:
        name = f"{path}.{field.name}" if path else field.name
        ours, theirs = getattr(message, field.name), getattr(other, field.name)
        if field.is_repeated:
            if len(ours) != len(theirs):
                yield name, f"{len(ours):,} entries", f"{len(theirs):,} entries"
            elif field.message_type is not None:
                yield from (
                    (f"{name}[{at}]", ours[at], theirs[at]) for at in range(len(ours)) if ours[at] != theirs[at]
                )
            elif ours != theirs:
                yield name, f"{len(ours):,} entries", "others"
        elif field.message_type and message.HasField(field.name) != other.HasField(field.name):
            old, new = ("present" if side.HasField(field.name) else "absent" for side in (message, other))
            yield name, old, new
        elif ours != theirs:
            yield (name, ours, theirs) if field.message_type is not None else (name, _text(ours), _text(theirs))


def _text(value: Any) -> str:
    return f"{len(value):,} bytes" if isinstance(value, bytes) else str(value)
