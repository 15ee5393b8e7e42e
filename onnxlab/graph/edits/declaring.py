"""Edits of what a model says about its values: declarations brought up to date, written for all, or dropped."""

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertEntry, RemoveEntry, SetTypes
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.transaction import Transaction
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.records import Scope, ValueRecord
from onnxlab.graph.state.graph_state import DeclarationKind

Action = Literal["refresh", "store", "drop"]

TypeOf = Callable[[int, onnx.TypeProto], onnx.TypeProto]
"""(value id, declared type) -> the type to declare; both are empty where nothing is declared or known."""


class Redeclared(NamedTuple):
    """A declaration that an edit changed: the value with its path, the types before and after, None for none."""

    value: str
    old: onnx.TypeProto | None
    new: onnx.TypeProto | None


@recorded
def set_declarations(
    graph: ModelGraph, action: Action, type_of: TypeOf, needed: Callable[[int], bool] = lambda node: False
) -> list[Redeclared]:
    """Bring the declared types of values up to date, in bodies and functions too; inputs of the model stay.

    Args:
        action: "refresh" changes existing declarations; "store" also declares every other value that a node makes;
            "drop" removes declared types of values that are no outputs, but keeps their documentation.
        type_of: returns the type to declare.
        needed: whether the outputs of a node, by its id, have known types only by declarations, which are then kept.

    Returns:
        The changed declarations.

    Raises:
        EditError: there is no such action.
    """
    if action not in get_args(Action):
        raise EditError(f"declarations are {', '.join(map(repr, get_args(Action)))}, got {action!r}")
    done: list[Redeclared] = []
    with graph.edit() as edit:
        for scope in list(graph.scopes.values()):
            if action == "drop":
                _drop(graph, edit, scope, needed, done)
            else:
                _refresh(graph, edit, scope, type_of, done)
            if action == "store":
                _store(graph, edit, scope, type_of, done)
    return done


def _refresh(graph: ModelGraph, edit: Transaction, scope: Scope, type_of: TypeOf, done: list[Redeclared]) -> None:
    types_at: dict[tuple[int, DeclarationKind], tuple[list[int | str], list[bytes]]] = {}
    for vid in scope.names.values():
        value = graph.values[vid]
        if value.info is None and not value.formal_outputs:
            continue
        for place in graph.declared_at(value):
            new = type_of(vid, place.info.type)
            if new == place.info.type or new.WhichOneof("value") is None:
                continue
            at, types = types_at.setdefault((place.scope, place.kind), ([], []))
            at.append(place.at)
            types.append(new.SerializePartialToString())
            done.append(Redeclared(_path(graph, value), _copied(place.info), new))
    for (ident, kind), (at, types) in types_at.items():
        edit.apply(SetTypes(ident, kind, tuple(at), tuple(types)))


def _store(graph: ModelGraph, edit: Transaction, scope: Scope, type_of: TypeOf, done: list[Redeclared]) -> None:
    # in the order of the file: the order of `scope.names` depends on edits that were undone
    for vid in [vid for node in scope.order() for vid in graph.nodes[node].outputs]:
        value = graph.values.get(vid)
        if value is None or value.info is not None:
            continue
        known = type_of(vid, onnx.TypeProto())
        if known.WhichOneof("value") is not None:
            info = onnx.ValueInfoProto(name=value.name, type=known)
            edit.apply(InsertEntry(scope.id, "value_info", len(scope.proto.value_info), info))
            done.append(Redeclared(_path(graph, value), None, known))


def _drop(
    graph: ModelGraph, edit: Transaction, scope: Scope, needed: Callable[[int], bool], done: list[Redeclared]
) -> None:
    for position in reversed(range(len(scope.proto.value_info))):
        info = scope.proto.value_info[position]
        value = graph.values.get(scope.names.get(info.name, 0))
        if value is None or not value.producers or needed(value.producers[0][0]):
            continue
        if not info.HasField("type") and not _is_bare(info):
            continue
        done.append(Redeclared(_path(graph, value), _copied(info), None))
        if _is_bare(info):
            edit.apply(RemoveEntry(scope.id, "value_info", position))
        else:
            edit.apply(SetTypes(scope.id, "value_info", (position,), (None,)))


def _is_bare(info: onnx.ValueInfoProto) -> bool:
    """Whether a declaration says nothing but the type."""
    return not info.doc_string and not info.metadata_props


def _copied(info: onnx.ValueInfoProto) -> onnx.TypeProto | None:
    if not info.HasField("type"):
        return None
    copy = onnx.TypeProto()
    copy.CopyFrom(info.type)
    return copy


def _path(graph: ModelGraph, value: ValueRecord) -> str:
    path = graph.scope_path(graph.scopes[value.scope])
    return f"{path}/{value.name}" if path else value.name
