"""Changes as bytes and back, for the journal: what they refer to is said by place, not by id.

A change is encoded in the state that it is about to be applied to, and decoded in the same state of another ModelGraph.
Ids differ from one load to the next, so a node is written as its position, a value as its name, a scope as the path to
it. Ids that a change gives back to restored nodes and values are left out: a replay makes new ones.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import onnx
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from onnxlab.errors import LoadError
from onnxlab.graph.edit import changes
from onnxlab.graph.edit.changes import Change
from onnxlab.graph.index.records import Scope
from onnxlab.graph.protos.long_lists import LONG, Items, serialized
from onnxlab.graph.protos.tensors import RawTensor

if TYPE_CHECKING:
    from onnxlab.graph.edit.model_graph import ModelGraph

Note = tuple[str, list[Any], list[bytes]]
"""An encoded change: its type, its fields as JSON values, the messages among them as bytes."""


class Encoder:
    """Turns the fields of one change into JSON values; messages and bytes are collected in `blobs`."""

    def __init__(self, graph: "ModelGraph") -> None:
        self.graph = graph
        self.blobs: list[bytes] = []

    def scope(self, ident: int) -> Any:
        """A scope as its place, and back."""
        return _scope_place(self.graph, self.graph.scopes[ident])

    def node(self, ident: int) -> Any:
        """A node as its place, and back."""
        node = self.graph.nodes[ident]
        scope = self.graph.scopes[node.scope]
        return [_scope_place(self.graph, scope), scope.node_ids.position(node.label)]

    def value(self, ident: int) -> Any:
        """A value as its scope and name, and back."""
        value = self.graph.values[ident]
        return [self.scope(value.scope), value.name]

    def plain(self, value: Any) -> Any:
        """A scalar, a message, or a tuple of these."""
        if isinstance(value, Items):
            value = value.message()
        if isinstance(value, RawTensor):
            value = value.whole()
        if isinstance(value, Message):
            if isinstance(value, onnx.AttributeProto) and len(value.floats) > LONG:
                self.blobs.append(serialized(value))
            else:
                self.blobs.append(value.SerializePartialToString())
            return {"message": value.DESCRIPTOR.full_name}
        if isinstance(value, bytes):
            self.blobs.append(value)
            return {"bytes": True}
        if isinstance(value, tuple | list):
            return [self.plain(item) for item in value]
        if value is None or isinstance(value, bool | int | float | str):
            return value
        raise TypeError(f"the journal has no form for {type(value).__name__}")

    def target(self, target: changes.Target) -> Any:
        """The target of a SetField: its kind, and the place of the scope, node or tensor."""
        kind, ident = target
        place = {"scope": self.scope, "node": self.node, "tensor": self.value}.get(kind)
        return [kind, place(ident) if place else ident]

    def mentions(self, mentions: Any) -> Any:
        """References by name as places, and back."""
        if mentions is None:
            return None
        return [[self.target((kind, ident)), *steps] for kind, ident, *steps in mentions]


class Decoder:
    """The inverse of `Encoder`, on the graph that the change is about to be applied to."""

    def __init__(self, graph: "ModelGraph", blobs: list[bytes]) -> None:
        self.graph = graph
        self._blobs = iter(blobs)

    def scope(self, place: Any) -> int:
        """A scope as its place, and back."""
        return _scope_at(self.graph, place).id

    def node(self, place: Any) -> int:
        """A node as its place, and back."""
        scope, position = place
        return int(_scope_at(self.graph, scope).node_ids[position])

    def value(self, place: Any) -> int:
        """A value as its scope and name, and back."""
        scope, name = place
        return int(_scope_at(self.graph, scope).names[name])

    def plain(self, value: Any) -> Any:
        """Turn what JSON holds back into tuples, bytes and messages."""
        if isinstance(value, dict):
            blob = next(self._blobs)
            return blob if "bytes" in value else _message(value["message"], blob)
        return tuple(self.plain(item) for item in value) if isinstance(value, list) else value

    def target(self, place: Any) -> Any:
        """The target of a SetField from its place."""
        kind, ident = place
        find = {"scope": self.scope, "node": self.node, "tensor": self.value}.get(kind)
        return kind, find(ident) if find else ident

    def mentions(self, places: Any) -> Any:
        """References by name as places, and back."""
        if places is None:
            return None
        return tuple((*self.target(target), *steps) for target, *steps in places)


# {type of change: {field: method of the encoder, None for ids that are left out}}; a test compares it with `changes`
FIELDS: dict[type[Any], dict[str, str | None]] = {
    changes.InsertNode: {"scope": "scope", "position": "plain", "proto": "plain", "image": None},
    changes.RemoveNode: {"node": "node"},
    changes.MoveNode: {"node": "node", "position": "plain"},
    changes.SetInputs: {"node": "node", "names": "plain", "ids": None},
    changes.SetOutputs: {"node": "node", "names": "plain", "ids": None},
    changes.SetAttribute: {"node": "node", "name": "plain", "proto": "plain", "position": "plain", "images": None},
    changes.SetField: {"target": "target", "field": "plain", "value": "plain"},
    changes.InsertFormal: {"scope": "scope", "kind": "plain", "position": "plain", "info": "plain", "ids": None},
    changes.RemoveFormal: {"scope": "scope", "kind": "plain", "position": "plain"},
    changes.SetFormal: {"scope": "scope", "kind": "plain", "position": "plain", "info": "plain"},
    changes.SetTypes: {"scope": "scope", "kind": "plain", "places": "plain", "types": "plain"},
    changes.InsertEntry: {"scope": "scope", "field": "plain", "position": "plain", "proto": "plain", "ids": None},
    changes.RemoveEntry: {"scope": "scope", "field": "plain", "position": "plain"},
    changes.ReplaceEntry: {"scope": "scope", "field": "plain", "position": "plain", "proto": "plain"},
    changes.SetInitializer: {
        "scope": "scope", "name": "plain", "tensor": "plain", "position": "plain", "sparse": "plain", "ids": None,
    },
    changes.RenameValue: {"value": "value", "name": "plain", "mentions": "mentions", "unset": "mentions"},
    changes.InsertFunction: {"position": "plain", "proto": "plain", "image": None},
    changes.RemoveFunction: {"scope": "scope"},
}  # fmt: skip
_JSON = json.JSONEncoder(separators=(",", ":"))
_BY_NAME = {kind.__name__: kind for kind in FIELDS}


def encode(graph: "ModelGraph", change: Change) -> Note:
    """Encode a change that is about to be applied to `graph`.

    Raises:
        TypeError: the journal has no form for this type of change, or for a value in it.
    """
    fields = FIELDS.get(type(change))
    if fields is None:
        raise TypeError(f"the journal has no form for the change {type(change).__name__}")
    encoder = Encoder(graph)
    written = [getattr(encoder, how)(getattr(change, name)) for name, how in fields.items() if how]
    return type(change).__name__, written, encoder.blobs


def decode(graph: "ModelGraph", note: Note) -> Change:
    """The change that `note` means in the state that `graph` is in.

    Raises:
        LoadError: the graph has no such node, value or scope, or the type of change is unknown.
    """
    name, written, blobs = note
    try:
        kind = _BY_NAME[name]
        names = [(field, how) for field, how in FIELDS[kind].items() if how]
        decoder = Decoder(graph, blobs)
        if len(written) > len(names):
            raise ValueError(f"it has {len(written)} fields, not {len(names)}")
        pairs = zip(names, written, strict=False)  # an older version may have written less
        change: Change = kind(**{field: getattr(decoder, how)(value) for (field, how), value in pairs})
    except (LookupError, ValueError, TypeError, StopIteration) as error:
        raise LoadError(f"the journal's change {name} does not fit the model: {error!r}") from error
    return change


def pack(head: dict[str, Any], notes: list[Note]) -> bytes:
    """A record: its head and the changes in it."""
    return b"".join(parts(head, notes))


def parts(head: dict[str, Any], notes: list[Note]) -> tuple[bytes, ...]:
    """The consecutive parts of a record, which may be large."""
    blobs = [blob for _, _, data in notes for blob in data]
    content = {**head, "changes": [[name, written, [*map(len, data)]] for name, written, data in notes]}
    text = _JSON.encode(content).encode("ascii")
    return len(text).to_bytes(4, "little"), text, *blobs


def unpack(record: bytes) -> tuple[dict[str, Any], list[Note]]:
    """The inverse of `pack`.

    Raises:
        ValueError: the bytes are no record, or fewer than the record says.
    """
    start = 4 + int.from_bytes(record[:4], "little")
    head = json.loads(record[4:start])
    if not isinstance(head, dict):
        raise ValueError("its head is no object")
    notes: list[Note] = []
    for entry in _listed(head.pop("changes", None), list):
        if len(entry) != 3 or not isinstance(entry[0], str):
            raise ValueError(f"{entry!r:.80} is no change")
        blobs = []
        for size in _listed(entry[2], int):
            if not 0 <= size <= len(record) - start:
                raise ValueError(f"it has no {size!r:.80} bytes for a change")
            blobs.append(record[start : start + size])
            start += size
        notes.append((entry[0], _listed(entry[1], object), blobs))
    return head, notes


def _listed(value: Any, kind: type) -> list[Any]:
    if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
        raise ValueError(f"{value!r:.80} stands where a list belongs")
    return value


def _scope_place(graph: "ModelGraph", scope: Scope) -> Any:
    """The path to a scope: [] for the main graph."""
    if scope.kind == "graph":
        return []
    if scope.kind == "function":
        return ["function", graph.index.function_ids.index(scope.id)]
    if scope.kind == "training":
        for number, graphs in enumerate(graph.index.training):
            for field, ident in graphs.items():
                if ident == scope.id:
                    return ["training", number, field]
    owner = graph.nodes[scope.owner]
    outer = graph.scopes[owner.scope]
    number = owner.bodies[scope.attribute].index(scope.id)
    return ["body", _scope_place(graph, outer), outer.position(owner), scope.attribute, number]


def _scope_at(graph: "ModelGraph", place: Any) -> Scope:
    if not place:
        return graph.main
    kind, *way = place
    find: dict[str, Callable[..., int]] = {
        "function": lambda number: graph.index.function_ids[number],
        "training": lambda number, field: graph.index.training[number][field],
        "body": lambda outer, position, attribute, number: graph.nodes[
            _scope_at(graph, outer).node_ids[position]
        ].bodies[attribute][number],
    }
    return graph.scopes[find[kind](*way)]


def _message(full_name: str, data: bytes) -> Message:
    descriptor: Any = onnx.ModelProto.DESCRIPTOR.file.pool.FindMessageTypeByName(full_name)
    kind: Any = GetMessageClass(descriptor)
    message: Message = kind()
    message.ParseFromString(data)
    return message
