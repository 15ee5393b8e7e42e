"""Every place of the protos that mentions a value by nothing but its name, and how a new name is written there.

The index knows the nodes that make or read a value. This module handles the other places: value_info, quantization
annotations, the shardings of device configurations and the bindings of training.
"""

from collections.abc import Iterator
from typing import Any

import onnx

from onnxlab.graph.index.named_entries import mentioned_names
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.protos.name_bytes import Name, set_string, set_strings
from onnxlab.graph.state.graph_state import GraphState

Mention = tuple[Any, ...]
"""Steps to a string, from ("scope" or "node", id) or ("training", position): ("scope", 1, "value_info", 3, "name")."""

BINDINGS = {"initialization_binding": "initialization", "update_binding": "algorithm"}
"""Bindings of a TrainingInfoProto, and the graph whose outputs their values name."""
_INITIALIZERS = {"initializer": ("name",), "sparse_initializer": ("values", "name")}
"""The fields of a graph's initializers, and the steps to the name of one."""


def reading_scopes(graph: GraphState, value: ValueRecord) -> list[Scope]:
    """The scope that defines a value and those inside it through which a capture of it goes."""
    scopes = {value.scope: graph.scopes[value.scope]}
    for scope_id in [*{graph.nodes[node].scope for node, _ in value.uses}, *(at for at, _ in value.formal_outputs)]:
        while scope_id and scope_id not in scopes:
            scopes[scope_id] = graph.scopes[scope_id]
            scope_id = graph.scopes[scope_id].parent
    return list(scopes.values())


def mentions_by_name(graph: GraphState, value: ValueRecord) -> tuple[Mention, ...]:
    """Places that mention a value by its name alone.

    Some exporters leave entries with names that no value has. A rename therefore keeps the places that it changed, so
    that its inverse changes only these.
    """
    mentions: list[Mention] = []
    for scope in reading_scopes(graph, value):
        mentions += _in_scope(scope, value.name)
    for node in dict.fromkeys(node for node, _ in (*value.producers, *value.uses)):
        mentions += _in_devices(graph.nodes[node], value.name)
    mentions += _in_training(graph, value)
    return tuple(mentions)


def _in_scope(scope: Scope, name: str) -> Iterator[Mention]:
    if len(scope.proto.value_info):
        for position in scope.places("value_info").positions(name):
            yield "scope", scope.id, "value_info", position, "name"
    if scope.is_function or not len(scope.proto.quantization_annotation):
        return
    for position in scope.places("quantization_annotation").positions(name):
        annotation = scope.proto.quantization_annotation[position]
        if annotation.tensor_name == name:
            yield "scope", scope.id, "quantization_annotation", position, "tensor_name"
        for number, entry in enumerate(annotation.quant_parameter_tensor_names):
            if entry.value == name:
                parameter = ("quant_parameter_tensor_names", number, "value")
                yield "scope", scope.id, "quantization_annotation", position, *parameter


def _in_devices(node: NodeRecord, name: str) -> Iterator[Mention]:
    for at, configuration in enumerate(node.proto.device_configurations):
        for number, spec in enumerate(configuration.sharding_spec):
            if spec.tensor_name == name:
                yield "node", node.id, "device_configurations", at, "sharding_spec", number, "tensor_name"


def _in_training(graph: GraphState, value: ValueRecord) -> Iterator[Mention]:
    for position, training in enumerate(graph.header.training_info):
        for field in BINDINGS:
            for number, entry in enumerate(getattr(training, field)):
                for end in ("key", "value"):
                    named = getattr(entry, end) == value.name
                    if named and bound_value(graph, position, field, entry, end) == value.id:
                        yield "training", position, field, number, end


def bound_value(graph: GraphState, training: int, field: str, entry: onnx.StringStringEntryProto, end: str) -> int:
    """Id of the value that one end of a binding names, 0 if none.

    The value is an output of the initialization or algorithm graph; the key an initializer of the algorithm graph or
    else of the model's (onnx.proto, TrainingInfoProto).
    """
    scopes = graph.index.training[training]
    if end == "value":
        inner = scopes.get(BINDINGS[field])
        return graph.index.lookup(graph.scopes[inner], entry.value) if inner else 0
    algorithm = graph.scopes.get(scopes.get("algorithm", 0))
    vid = algorithm.names.get(entry.key, 0) if algorithm else 0
    if vid and graph.values[vid].initializer is not None:
        return vid
    return graph.main.names.get(entry.key, 0)


def rename_mentions(graph: GraphState, value: ValueRecord, name: Name, mentions: tuple[Mention, ...]) -> None:
    """Write a value's new name where the index says it is mentioned, and at `mentions`.

    The index lists the nodes that make or read the value, its inputs and outputs of scopes, and its initializers.
    """
    for node_id, slot in value.producers:
        _set_item(graph.nodes[node_id].proto, "output", slot, name)
    for node_id, slot in value.uses:
        _set_item(graph.nodes[node_id].proto, "input", slot, name)
    for scope_id, position in value.formal_outputs:
        _rename_formal(graph.scopes[scope_id], "output", position, name)
    scope = graph.scopes[value.scope]
    if value.is_input:
        for position, vid in enumerate(scope.inputs):
            if vid == value.id:
                _rename_formal(scope, "input", position, name)
    if value.initializer is not None:
        _rename_initializers(scope, value.name, name)
    for mention in mentions:
        _rename_mention(graph, mention, name)


def unset_names(graph: GraphState, value: ValueRecord, mentions: tuple[Mention, ...]) -> tuple[Mention, ...]:
    """The places where a field is absent, not empty, among those that mention a value without a name."""
    places = [*mentions, *(("scope", scope, "output", position, "name") for scope, position in value.formal_outputs)]
    scope = graph.scopes[value.scope]
    places += [("scope", scope.id, "input", at, "name") for at, vid in enumerate(scope.inputs) if vid == value.id]
    for field, steps in _INITIALIZERS.items() if value.initializer is not None else ():
        places += [("scope", scope.id, field, at, *steps) for at in scope.places(field).positions(value.name)]
    return tuple(filter(None, (_unset(graph, place) for place in places)))


def _unset(graph: GraphState, mention: Mention) -> Mention:
    """A place up to its first absent field, empty where none is absent."""
    if mention[0] == "scope" and graph.scopes[mention[1]].is_function and mention[2] != "value_info":
        return ()  # a plain name in a list
    outer = _unset(graph, mention[:-1]) if isinstance(mention[-2], str) else ()
    return outer or (() if _mentioning(graph, mention).HasField(mention[-1]) else mention)


def clear_names(graph: GraphState, places: tuple[Mention, ...]) -> None:
    """Let places have no name, after it became empty."""
    for place in places:
        _mentioning(graph, place).ClearField(place[-1])


def _mentioning(graph: GraphState, mention: Mention) -> Any:
    """The message whose field mentions a value."""
    kind, ident, *path, _ = mention
    target = graph.target((kind, ident))
    for step in path:
        target = target[step] if isinstance(step, int) else getattr(target, step)
    return target


def _rename_formal(scope: Scope, field: str, position: int, name: Name) -> None:
    """Inputs and outputs are messages in a graph and plain names in a function."""
    if scope.is_function:
        _set_item(scope.proto, field, position, name)
    else:
        set_string(getattr(scope.proto, field)[position], "name", name)


def _set_item(proto: Any, field: str, position: int, name: Name) -> None:
    names = getattr(proto, field)
    if isinstance(name, str):
        names[position] = name
    else:
        set_strings(proto, field, [*names[:position], name, *names[position + 1 :]])


def _rename_initializers(scope: Scope, old: str, name: Name) -> None:
    for field, (*inner, last) in _INITIALIZERS.items():
        places = scope.places(field)
        for position in places.positions(old):
            message = getattr(scope.proto, field)[position]
            set_string(message.values if inner else message, last, name)
            places.renamed(position, (old,), message)


def _rename_mention(graph: GraphState, mention: Mention, name: Name) -> None:
    kind, ident, *path, last = mention
    entry = None
    if kind == "scope":
        places = graph.scopes[ident].places(path[0])  # collected before the name changes
        entry = getattr(graph.target((kind, ident)), path[0])[path[1]]
        names_before = tuple(mentioned_names(path[0], entry))
    set_string(_mentioning(graph, mention), last, name)
    if entry is not None:
        places.renamed(path[1], names_before, entry)
