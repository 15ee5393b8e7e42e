"""The differences of two models as a list, read off the pairs that were found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import onnx

from onnxlab.analysis.diff import contents, texts
from onnxlab.analysis.diff.change import ModelChange, Subject
from onnxlab.analysis.diff.matching import GraphMatching
from onnxlab.analysis.diff.node_listing import NodeListing
from onnxlab.analysis.diff.orders import moved
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.named_entries import entry_name
from onnxlab.graph.index.records import Scope, ValueRecord
from onnxlab.graph.index.tables import function_key

_MODEL = ("ir_version", "producer_name", "producer_version", "domain", "model_version")
_TOLD = frozenset((*_MODEL, "doc_string", "opset_import", "metadata_props", "graph", "functions", "training_info"))
"""Fields of a model that are told one by one."""
_BINDINGS = ("initialization_binding", "update_binding")


class Listing:
    """Changes of a pair of models.

    Args:
        tolerance: how far stored tensors may be apart, relative to the largest magnitude, to count as equal.
    """

    def __init__(self, graphs: tuple[ModelGraph, ModelGraph], matching: GraphMatching, tolerance: float) -> None:
        self._a, self._b = graphs
        self._matching, self._tolerance = matching, tolerance
        self._nodes = NodeListing(graphs, matching)

    def changes(self) -> Iterator[ModelChange]:
        """All of them: of the model, then scope by scope."""
        yield from self._model()
        for ident, other in self._matching.scopes.items():
            before, after = self._a.scopes[ident], self._b.scopes[other]
            path = self._b.scope_path(after)
            yield from self._scope(before, after, path)
            yield from self._formals(before, after, path)
            yield from self._nodes.changes(before, after, path)
            yield from self._values(before, after, path)
            yield from self._entries(before, after, path)

    # -- the model --------------------------------------------------------------------------------------------------

    def _model(self) -> Iterator[ModelChange]:
        header, other = self._a.header, self._b.header
        for field in _MODEL:
            yield from _text("model", "model", field, str(getattr(header, field)), str(getattr(other, field)))
        yield from _text("model", "model", "documentation", header.doc_string, other.doc_string)
        yield from _opsets(header.opset_import, other.opset_import, "")
        yield from _metadata("metadata", header.metadata_props, other.metadata_props, "")
        functions = {function_key(proto): proto for proto in header.functions}
        its = {function_key(proto): proto for proto in other.functions}
        for key in [key for key in functions if key not in its]:
            yield ModelChange("removed", "function", _name(key), "", old=f"{len(functions[key].node)} nodes")
        for key in [key for key in its if key not in functions]:
            yield ModelChange("added", "function", "", _name(key), new=f"{len(its[key].node)} nodes")
        common = [key for key in its if key in functions]
        for key in moved([*functions], common):
            yield ModelChange("moved", "function", _name(key), _name(key))
        for number in range(len(header.training_info), len(other.training_info)):
            yield ModelChange("added", "model", "", f"training_info[{number}]")
        for number in range(len(other.training_info), len(header.training_info)):
            yield ModelChange("removed", "model", f"training_info[{number}]", "")
        yield from self._training()
        for field, old, new in texts.rest(header, other, _TOLD):
            yield ModelChange("changed", "model", "model", "model", field, old, new)

    def _training(self) -> Iterator[ModelChange]:
        """Changes of the training information that both models have: which graphs there are, and their bindings."""
        infos, others = self._a.header.training_info, self._b.header.training_info
        paths, its = (_training_paths(graph) for graph in (self._a, self._b))
        common = min(len(infos), len(others))
        entries = tuple(f"training_info[{number}]." for number in range(common))
        for path in [path for path in paths if path not in its and path.startswith(entries)]:
            yield ModelChange("removed", "graph", path, "")
        for path in [path for path in its if path not in paths and path.startswith(entries)]:
            yield ModelChange("added", "graph", "", path)
        names = self._names({scope.id for scope in self._a.scopes.values() if scope.kind in ("graph", "training")})
        for number, (info, other) in enumerate(zip(infos, others, strict=False)):
            for field in _BINDINGS:
                ours = {names.get(entry.key, entry.key): names.get(entry.value, entry.value)
                        for entry in getattr(info, field)}  # fmt: skip
                theirs = {entry.key: entry.value for entry in getattr(other, field)}
                for change in _keyed("model", ours, theirs, ""):
                    yield replace(change, field=f"{field} of training_info[{number}]")

    def _names(self, scopes: Collection[int]) -> dict[str, str]:
        """{name in the first model: name in the second} of the values of some scopes."""
        values, named, called = self._matching.values, self._a.values, self._b.values
        return {named[vid].name: called[other].name for vid, other in values.items() if named[vid].scope in scopes}

    def _scope(self, before: Scope, after: Scope, path: str) -> Iterator[ModelChange]:
        proto, other = before.proto, after.proto
        subject: Subject = "function" if before.is_function else "graph"
        if proto.name != other.name:
            yield ModelChange("renamed", subject, proto.name, other.name, scope=path)
        yield from _text(subject, other.name, "documentation", proto.doc_string, other.doc_string, path)
        yield from _metadata("metadata", proto.metadata_props, other.metadata_props, path)
        if before.is_function:
            yield from _opsets(proto.opset_import, other.opset_import, path)
            for field in ("attribute", "attribute_proto"):
                ours, theirs = [*map(str, getattr(proto, field))], [*map(str, getattr(other, field))]
                if ours != theirs:
                    joined = texts.shortened(" ".join(ours)), texts.shortened(" ".join(theirs))
                    yield ModelChange("changed", subject, proto.name, other.name, field, *joined, path)

    def _formals(self, before: Scope, after: Scope, path: str) -> Iterator[ModelChange]:
        kinds: tuple[tuple[Subject, list[int], list[int]], ...] = (
            ("input", before.inputs, after.inputs), ("output", before.outputs, after.outputs),
        )  # fmt: skip
        values = self._matching.values
        for subject, ours, theirs in kinds:
            named, called = self._a.values, self._b.values
            left = list(theirs)
            pairs = []
            for position, vid in enumerate(ours):
                if values.get(vid) in left:
                    left.remove(values[vid])
                    pairs.append((position, theirs.index(values[vid])))
                else:
                    yield ModelChange("removed", subject, named[vid].name, "", scope=path, a_id=vid)
            for vid in left:
                yield ModelChange("added", subject, "", called[vid].name, scope=path, b_id=vid)
            inverse = sorted((position, at) for at, position in pairs)
            for at in moved([at for at, _ in pairs], [at for _, at in inverse]):
                name = named[ours[at]].name
                yield ModelChange("moved", subject, name, name, "position", str(at), scope=path, a_id=ours[at])
            if not before.is_function:
                for at, position in pairs:
                    infos = getattr(before.proto, subject)[at], getattr(after.proto, subject)[position]
                    yield from self._info(subject, *infos, path, (ours[at], theirs[position]))

    def _info(self, subject: Subject, info: Any, other: Any, path: str, ids: tuple[int, int]) -> Iterator[ModelChange]:
        old, new = texts.type_text(info), texts.type_text(other)
        if info.type != other.type:
            yield ModelChange("changed", subject, info.name, other.name, "type", old, new, path, *ids)
        yield from _text(subject, other.name, "documentation", info.doc_string, other.doc_string, path)
        yield from _metadata(f"metadata of {other.name}", info.metadata_props, other.metadata_props, path)

    # -- values -----------------------------------------------------------------------------------------------------

    def _values(self, before: Scope, after: Scope, path: str) -> Iterator[ModelChange]:
        values, named, called = self._matching.values, self._a.values, self._b.values
        for vid in before.names.values():
            value = named[vid]
            if vid not in values:
                if value.initializer is not None:
                    text = texts.stored_text(value.initializer)
                    yield ModelChange("removed", "initializer", value.name, "", old=text, scope=path, a_id=vid)
                continue
            other = called[values[vid]]
            if value.name != other.name:
                yield ModelChange("renamed", "value", value.name, other.name, scope=path, a_id=vid, b_id=other.id)
            if value.initializer is not None or other.initializer is not None:
                yield from self._stored(value, other, path)
        matched = set(values.values())
        for vid in after.names.values():
            if vid not in matched and (stored := called[vid].initializer) is not None:
                text = texts.stored_text(stored)
                yield ModelChange("added", "initializer", "", called[vid].name, new=text, scope=path, b_id=vid)

    def _stored(self, value: ValueRecord, other: ValueRecord, path: str) -> Iterator[ModelChange]:
        before, after = contents.constant_of(self._a, value), contents.constant_of(self._b, other)
        ids = (value.id, other.id)
        if isinstance(before, onnx.TensorProto) and isinstance(after, onnx.TensorProto):
            yield from _text("initializer", other.name, "documentation", before.doc_string, after.doc_string, path)
            yield from _metadata(f"metadata of {other.name}", before.metadata_props, after.metadata_props, path)
        if before is None or after is None:
            kinds = ["no data" if stored is None else texts.stored_text(stored) for stored in (before, after)]
            yield ModelChange("changed", "initializer", value.name, other.name, "data", kinds[0], kinds[1], path, *ids)
            return
        if (value.initializer is None) != (other.initializer is None):
            kinds = ["a Constant" if record.initializer is None else "an initializer" for record in (value, other)]
            yield ModelChange("changed", "value", value.name, other.name, "storage", kinds[0], kinds[1], path, *ids)
        if contents.content(self._a, before) == contents.content(self._b, after):
            if type(before) is type(after) and not _stored_alike(before, after):
                yield ModelChange(
                    "changed", "value", value.name, other.name, "storage", "one field", "another", path, *ids
                )
            return
        old, new = texts.stored_text(before), texts.stored_text(after)
        apart = texts.distance(texts.array_of(self._a, before), texts.array_of(self._b, after))
        if apart > self._tolerance:
            if old == new:
                new += f", {apart:.2g} of the peak apart" if apart < float("inf") else ", other elements"
            yield ModelChange("changed", "initializer", value.name, other.name, "data", old, new, path, *ids)

    def _entries(self, before: Scope, after: Scope, path: str) -> Iterator[ModelChange]:
        fields = ("value_info",) if before.is_function else ("value_info", "quantization_annotation")
        names = self._names({before.id}) if any(getattr(before.proto, field) for field in fields) else {}
        for field in fields:
            subject: Subject = "declaration" if field == "value_info" else "annotation"
            names.update(
                (name, name)
                for name in map(partial(entry_name, field), getattr(before.proto, field))
                if name not in before.names
            )  # of no value at all
            ours = {names.get(entry_name(field, entry), ""): entry for entry in getattr(before.proto, field)}
            theirs = {entry_name(field, entry): entry for entry in getattr(after.proto, field)}
            for name, info in theirs.items():
                was = ours.get(name)
                if was is None:
                    yield ModelChange("added", subject, "", name, new=texts.type_text(info), scope=path)
                elif field == "value_info":
                    yield from self._info(subject, was, info, path, (0, 0))
                elif renamed_entry(was, names) != info:
                    yield ModelChange("changed", subject, was.tensor_name, name, scope=path)
            for entry in getattr(before.proto, field):
                name = entry_name(field, entry)
                if names.get(name) not in theirs:
                    yield ModelChange("removed", subject, name, "", old=texts.type_text(entry), scope=path)


def renamed_entry(entry: Any, names: Mapping[str, str]) -> Any:
    """A declaration or quantization annotation with other names of the values that it mentions."""
    copy = type(entry).FromString(entry.SerializeToString())
    if isinstance(copy, onnx.ValueInfoProto):
        copy.name = names.get(copy.name, copy.name)
        return copy
    copy.tensor_name = names.get(copy.tensor_name, copy.tensor_name)
    for entry in copy.quant_parameter_tensor_names:
        entry.value = names.get(entry.value, entry.value)
    return copy


def _stored_alike(stored: Any, other: Any) -> bool:
    """Whether two stored tensors with equal elements hold them in the same field."""
    if isinstance(stored, onnx.TensorProto):
        fields = [{field.name for field, _ in tensor.ListFields()} - {"name"} for tensor in (stored, other)]
        return fields[0] == fields[1]
    if isinstance(stored, onnx.SparseTensorProto):
        first, second = ([(part.data_type, part.dims) for part in (tensor.values, tensor.indices)]
                         for tensor in (stored, other))  # fmt: skip
        return first == second
    return True


def _training_paths(graph: ModelGraph) -> list[str]:
    return [graph.scope_path(scope) for scope in graph.scopes.values() if scope.kind == "training"]


def _name(key: Sequence[str]) -> str:
    return "::".join(part for part in key if part)


def _text(subject: Subject, name: str, field: str, old: str, new: str, path: str = "") -> Iterator[ModelChange]:
    if old != new:
        yield ModelChange("changed", subject, name, name, field, texts.shortened(old), texts.shortened(new), path)


def _opsets(imports: Iterable[Any], other: Iterable[Any], path: str) -> Iterator[ModelChange]:
    before = {entry.domain or "ai.onnx": str(entry.version) for entry in imports}
    after = {entry.domain or "ai.onnx": str(entry.version) for entry in other}
    yield from _keyed("opset", before, after, path)


def _metadata(name: str, props: Iterable[Any], other: Iterable[Any], path: str) -> Iterator[ModelChange]:
    before, after = ({entry.key: entry.value for entry in entries} for entries in (props, other))
    for change in _keyed("metadata", before, after, path):
        of = "" if name == "metadata" else f"{name}: "
        yield replace(change, a=change.a and of + change.a, b=change.b and of + change.b)


def _keyed(subject: Subject, before: dict[str, str], after: dict[str, str], path: str) -> Iterator[ModelChange]:
    for key, value in before.items():
        if key not in after:
            yield ModelChange("removed", subject, key, "", old=texts.shortened(value), scope=path)
        elif after[key] != value:
            old, new = texts.shortened(value), texts.shortened(after[key])
            yield ModelChange("changed", subject, key, key, "", old, new, path)
    for key, value in after.items():
        if key not in before:
            yield ModelChange("added", subject, "", key, new=texts.shortened(value), scope=path)
