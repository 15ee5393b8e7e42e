"""The differences of two models as a list, read off the pairs that were found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import onnx

from onnxlab.analysis.diff import contents, texts
from onnxlab.analysis.diff.change import Change, Subject
from onnxlab.analysis.diff.matching import Matching
from onnxlab.analysis.diff.node_listing import NodeListing
from onnxlab.analysis.diff.orders import moved
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.named_entries import entry_name
from onnxlab.graph.index.records import Scope, ValueRecord
from onnxlab.graph.index.tables import function_key

_MODEL = ("ir_version", "producer_name", "producer_version", "domain", "model_version")


class Listing:
    """Changes of a pair of models.

    Args:
        tolerance: how far stored tensors may be apart, relative to the largest magnitude, to count as equal.
    """

    def __init__(self, graphs: tuple[ModelGraph, ModelGraph], matching: Matching, tolerance: float) -> None:
        self._a, self._b = graphs
        self._matching, self._tolerance = matching, tolerance
        self._nodes = NodeListing(graphs, matching)

    def changes(self) -> Iterator[Change]:
        """All of them: of the model, then scope by scope."""
        yield from self._model()
        for one, other in self._matching.scopes.items():
            mine, its = self._a.scopes[one], self._b.scopes[other]
            path = self._b.scope_path(its)
            yield from self._scope(mine, its, path)
            yield from self._formals(mine, its, path)
            yield from self._nodes.changes(mine, its, path)
            yield from self._values(mine, its, path)
            if not mine.is_function:
                yield from self._entries(mine, its, path)

    # -- the model --------------------------------------------------------------------------------------------------

    def _model(self) -> Iterator[Change]:
        one, other = self._a.header, self._b.header
        for field in _MODEL:
            yield from _text("model", "model", field, str(getattr(one, field)), str(getattr(other, field)))
        yield from _text("model", "model", "documentation", one.doc_string, other.doc_string)
        yield from _opsets(one.opset_import, other.opset_import, "")
        yield from _metadata("metadata", one.metadata_props, other.metadata_props, "")
        mine = {function_key(proto): proto for proto in one.functions}
        its = {function_key(proto): proto for proto in other.functions}
        for key in mine.keys() - its.keys():
            yield Change("removed", "function", _name(key), "", old=f"{len(mine[key].node)} nodes")
        for key in its.keys() - mine.keys():
            yield Change("added", "function", "", _name(key), new=f"{len(its[key].node)} nodes")
        common = [key for key in its if key in mine]
        for key in moved([*mine], common):
            yield Change("moved", "function", _name(key), _name(key))
        for number in range(len(one.training_info), len(other.training_info)):
            yield Change("added", "model", "", f"training_info[{number}]")
        for number in range(len(other.training_info), len(one.training_info)):
            yield Change("removed", "model", f"training_info[{number}]", "")

    def _scope(self, mine: Scope, its: Scope, path: str) -> Iterator[Change]:
        one, other = mine.proto, its.proto
        subject: Subject = "function" if mine.is_function else "graph"
        if one.name != other.name:
            yield Change("renamed", subject, one.name, other.name, scope=path)
        yield from _text(subject, other.name, "documentation", one.doc_string, other.doc_string, path)
        yield from _metadata("metadata", one.metadata_props, other.metadata_props, path)
        if mine.is_function:
            yield from _opsets(one.opset_import, other.opset_import, path)
            for field in ("attribute", "attribute_proto"):
                ours, theirs = [*map(str, getattr(one, field))], [*map(str, getattr(other, field))]
                if ours != theirs:
                    joined = texts.shortened(" ".join(ours)), texts.shortened(" ".join(theirs))
                    yield Change("changed", subject, one.name, other.name, field, *joined, path)

    def _formals(self, mine: Scope, its: Scope, path: str) -> Iterator[Change]:
        kinds: tuple[tuple[Subject, list[int], list[int]], ...] = (
            ("input", mine.inputs, its.inputs), ("output", mine.outputs, its.outputs),
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
                    yield Change("removed", subject, named[vid].name, "", scope=path, a_id=vid)
            for vid in left:
                yield Change("added", subject, "", called[vid].name, scope=path, b_id=vid)
            inverse = sorted((position, at) for at, position in pairs)
            for at in moved([at for at, _ in pairs], [at for _, at in inverse]):
                name = named[ours[at]].name
                yield Change("moved", subject, name, name, "position", str(at), scope=path, a_id=ours[at])
            if not mine.is_function:
                for at, position in pairs:
                    infos = getattr(mine.proto, subject)[at], getattr(its.proto, subject)[position]
                    yield from self._info(subject, *infos, path, (ours[at], theirs[position]))

    def _info(self, subject: Subject, one: Any, other: Any, path: str, ids: tuple[int, int]) -> Iterator[Change]:
        mine, its = texts.type_text(one), texts.type_text(other)
        if one.type != other.type:
            yield Change("changed", subject, one.name, other.name, "type", mine, its, path, *ids)
        yield from _text(subject, other.name, "documentation", one.doc_string, other.doc_string, path)
        yield from _metadata(f"metadata of {other.name}", one.metadata_props, other.metadata_props, path)

    # -- values -----------------------------------------------------------------------------------------------------

    def _values(self, mine: Scope, its: Scope, path: str) -> Iterator[Change]:
        values, named, called = self._matching.values, self._a.values, self._b.values
        for vid in mine.names.values():
            one = named[vid]
            if vid not in values:
                if one.initializer is not None:
                    text = texts.stored_text(one.initializer)
                    yield Change("removed", "initializer", one.name, "", old=text, scope=path, a_id=vid)
                continue
            other = called[values[vid]]
            if one.name != other.name:
                yield Change("renamed", "value", one.name, other.name, scope=path, a_id=vid, b_id=other.id)
            if one.initializer is not None or other.initializer is not None:
                yield from self._stored(one, other, path)
        matched = set(values.values())
        for vid in its.names.values():
            if vid not in matched and (stored := called[vid].initializer) is not None:
                text = texts.stored_text(stored)
                yield Change("added", "initializer", "", called[vid].name, new=text, scope=path, b_id=vid)

    def _stored(self, one: ValueRecord, other: ValueRecord, path: str) -> Iterator[Change]:
        mine, its = contents.constant_of(self._a, one), contents.constant_of(self._b, other)
        ids = (one.id, other.id)
        if mine is None or its is None:
            kinds = ["no data" if stored is None else texts.stored_text(stored) for stored in (mine, its)]
            yield Change("changed", "initializer", one.name, other.name, "data", kinds[0], kinds[1], path, *ids)
            return
        if (one.initializer is None) != (other.initializer is None):
            kinds = ["a Constant" if record.initializer is None else "an initializer" for record in (one, other)]
            yield Change("changed", "value", one.name, other.name, "storage", kinds[0], kinds[1], path, *ids)
        if contents.content(self._a, mine) == contents.content(self._b, its):
            if type(mine) is type(its) and not _stored_alike(mine, its):
                yield Change("changed", "value", one.name, other.name, "storage", "one field", "another", path, *ids)
            return
        old, new = texts.stored_text(mine), texts.stored_text(its)
        apart = texts.distance(texts.array_of(self._a, mine), texts.array_of(self._b, its))
        if apart > self._tolerance:
            if old == new:
                new += f", {apart:.2g} of the peak apart" if apart < float("inf") else ", other elements"
            yield Change("changed", "initializer", one.name, other.name, "data", old, new, path, *ids)

    def _entries(self, mine: Scope, its: Scope, path: str) -> Iterator[Change]:
        names = {self._a.values[one].name: self._b.values[other].name
                 for one, other in self._matching.values.items() if self._a.values[one].scope == mine.id}  # fmt: skip
        for field in ("value_info", "quantization_annotation"):
            subject: Subject = "declaration" if field == "value_info" else "annotation"
            ours = {names.get(entry_name(field, each), ""): each for each in getattr(mine.proto, field)}
            theirs = {entry_name(field, each): each for each in getattr(its.proto, field)}
            for name, info in theirs.items():
                was = ours.get(name)
                if was is None:
                    yield Change("added", subject, "", name, new=texts.type_text(info), scope=path)
                elif field == "value_info":
                    yield from self._info(subject, was, info, path, (0, 0))
                elif _renamed(was, names) != info:
                    yield Change("changed", subject, was.tensor_name, name, scope=path)
            for each in getattr(mine.proto, field):
                name = entry_name(field, each)
                if names.get(name) not in theirs:
                    yield Change("removed", subject, name, "", old=texts.type_text(each), scope=path)


def _renamed(annotation: onnx.TensorAnnotation, names: dict[str, str]) -> onnx.TensorAnnotation:
    copy = onnx.TensorAnnotation.FromString(annotation.SerializeToString())
    copy.tensor_name = names.get(copy.tensor_name, copy.tensor_name)
    for entry in copy.quant_parameter_tensor_names:
        entry.value = names.get(entry.value, entry.value)
    return copy


def _stored_alike(one: Any, other: Any) -> bool:
    """Whether two stored tensors with equal elements hold them in the same field."""
    if isinstance(one, onnx.TensorProto):
        fields = [{field.name for field, _ in tensor.ListFields()} - {"name"} for tensor in (one, other)]
        return fields[0] == fields[1]
    return True


def _name(key: Sequence[str]) -> str:
    return "::".join(part for part in key if part)


def _text(subject: Subject, name: str, field: str, old: str, new: str, path: str = "") -> Iterator[Change]:
    if old != new:
        yield Change("changed", subject, name, name, field, texts.shortened(old), texts.shortened(new), path)


def _opsets(one: Iterable[Any], other: Iterable[Any], path: str) -> Iterator[Change]:
    mine = {entry.domain or "ai.onnx": str(entry.version) for entry in one}
    its = {entry.domain or "ai.onnx": str(entry.version) for entry in other}
    yield from _keyed("opset", mine, its, path)


def _metadata(name: str, one: Iterable[Any], other: Iterable[Any], path: str) -> Iterator[Change]:
    mine, its = ({entry.key: entry.value for entry in entries} for entries in (one, other))
    for change in _keyed("metadata", mine, its, path):
        of = "" if name == "metadata" else f"{name}: "
        yield replace(change, a=change.a and of + change.a, b=change.b and of + change.b)


def _keyed(subject: Subject, one: dict[str, str], other: dict[str, str], path: str) -> Iterator[Change]:
    for key, value in one.items():
        if key not in other:
            yield Change("removed", subject, key, "", old=texts.shortened(value), scope=path)
        elif other[key] != value:
            old, new = texts.shortened(value), texts.shortened(other[key])
            yield Change("changed", subject, key, key, "", old, new, path)
    for key, value in other.items():
        if key not in one:
            yield Change("added", subject, "", key, new=texts.shortened(value), scope=path)
