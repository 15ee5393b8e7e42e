"""The primitive changes: everything that can happen to a model is a list of these.

Each change updates the protos and the index together and returns its exact inverse, so that undo restores the same
bytes and ids. A change checks only its own preconditions; `transaction.py` judges the result of a whole edit. Changes
of nodes are in `node_changes.py`, changes of graphs and functions in `graph_changes.py`; import all of them from here.

A message that is replaced is deleted and inserted anew, never overwritten: the content of the old message stays the
same for its holders (a snapshot of a run, the inverse).
"""

from dataclasses import dataclass
from typing import Any

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.graph_changes import (
    FormalKind,
    InsertEntry,
    InsertFormal,
    InsertFunction,
    RemoveEntry,
    RemoveFormal,
    RemoveFunction,
    ReplaceEntry,
    SetFormal,
    SetInitializer,
    SetTypes,
)
from onnxlab.graph.edit.name_references import (
    Mention,
    clear_names,
    mentions_by_name,
    reading_scopes,
    rename_mentions,
    unset_names,
)
from onnxlab.graph.edit.node_changes import InsertNode, MoveNode, RemoveNode, SetAttribute, SetInputs, SetOutputs
from onnxlab.graph.index.named_entries import EntryField
from onnxlab.graph.protos import glow_dialect
from onnxlab.graph.protos.name_bytes import set_string
from onnxlab.graph.state.change import Change
from onnxlab.graph.state.change_tracker import Target
from onnxlab.graph.state.graph_state import GraphState

_INDEXED = {
    "model": {"graph", "functions", "training_info"},
    "scope": {
        "node", "input", "output", "initializer", "sparse_initializer", "value_info", "quantization_annotation",
    },
    "node": {"input", "output", "attribute"},
    "training": {"initialization", "algorithm"},
    "tensor": {field.name for field in onnx.TensorProto.DESCRIPTOR.fields} - {"doc_string", "metadata_props"},
}  # fmt: skip
"""Fields that the index mirrors; other changes than SetField set them."""


@dataclass(frozen=True, slots=True)
class SetField:
    """Set a plain field: a scalar (None for absent), or a repeated field (a tuple of messages or strings)."""

    target: Target
    field: str
    value: Any

    def apply(self, graph: GraphState) -> "SetField":
        """Make the change and return its inverse."""
        if self.field in _INDEXED[self.target[0]]:
            raise EditError(f"{self.field!r} of a {self.target[0]} has changes of its own; SetField sets others")
        proto = graph.target(self.target)
        inverse = SetField(self.target, self.field, field_value(proto, self.field))
        if isinstance(self.value, tuple):
            repeated = getattr(proto, self.field)
            getattr(type(proto)(), self.field).extend(self.value)  # raises for a wrong type before the field is cleared
            del repeated[:]
            repeated.extend(self.value)
        elif self.value is None:
            proto.ClearField(self.field)
        elif isinstance(self.value, bytes):
            set_string(proto, self.field, self.value)
        else:
            setattr(proto, self.field, self.value)
        graph.touch.field(self.target, self.field)
        if self.target[0] == "tensor" and glow_dialect.is_dialect(graph.header):
            graph.touch.users([self.target[1]])  # readers compute by the scale and offset in its doc string
        return inverse


_KEEPING = (SetInputs, SetTypes, ReplaceEntry)


def keeps_handles(graph: GraphState, change: Change) -> bool:
    """Whether every node and value is found by the same expression as before: by its name, path or position."""
    if isinstance(change, SetField):
        kind, ident = change.target
        if kind == "node":  # paths into a node's bodies may hold the node's operator
            return change.field != "name" and not graph.nodes[ident].bodies
        return kind != "scope"
    if isinstance(change, SetInitializer):  # a new initializer may be a new value
        field: EntryField = "sparse_initializer" if change.sparse else "initializer"
        return change.tensor is not None and bool(graph.scopes[change.scope].places(field).positions(change.name))
    return isinstance(change, _KEEPING)


def field_value(proto: Any, field: str) -> Any:
    """The value that `SetField` would need to restore a field: None where it is absent, a tuple for repeated fields."""
    descriptor = proto.DESCRIPTOR.fields_by_name[field]
    if descriptor.is_repeated:
        return tuple(getattr(proto, field))
    return getattr(proto, field) if proto.HasField(field) else None


@dataclass(frozen=True, slots=True)
class RenameValue:
    """Give a value another name, everywhere it is mentioned; it stays the same value.

    Args:
        value: id of the value.
        name: the new name.
        mentions: places that mention it by its name alone; None finds them.
        unset: places that had no name, not even an empty one, before the rename that this takes back.

    Raises:
        EditError: the new name already means another value in a scope that reads this one.
    """

    value: int
    name: str
    mentions: tuple[Mention, ...] | None = None
    unset: tuple[Mention, ...] = ()

    def apply(self, graph: GraphState) -> "RenameValue":
        """Make the change and return its inverse."""
        value = graph.values[self.value]
        old = value.name
        set_string(onnx.ValueInfoProto(), "name", self.name)  # raises for an invalid name before anything is changed
        mentions = self.mentions
        if mentions is None:
            self._refuse_another_meaning(graph)
            mentions = mentions_by_name(graph, value)
        unset = () if old else unset_names(graph, value, mentions)
        rename_mentions(graph, value, self.name, mentions)
        clear_names(graph, self.unset)
        names = graph.scopes[value.scope].names
        del names[old]
        names[self.name] = value.id
        value.name = self.name
        graph.index.refresh_info(value)
        graph.touch.values([value.id])
        graph.touch.users([value.id])
        graph.touch.renamed(value)
        return RenameValue(value.id, old, mentions, unset)

    def _refuse_another_meaning(self, graph: GraphState) -> None:
        """Of an edit only: what takes one back restores a file as it was, whatever its names meant."""
        value = graph.values[self.value]
        for scope in reading_scopes(graph, value):
            if graph.index.lookup(scope, self.name) not in (0, value.id):
                raise EditError(
                    f"{value.name!r} cannot be called {self.name!r}: where it is read in "
                    f"{graph.scope_path(scope) or 'the graph'}, that is another value; choose a name that is not in use"
                )


__all__ = [
    "Change",
    "FormalKind",
    "InsertEntry",
    "InsertFormal",
    "InsertFunction",
    "InsertNode",
    "MoveNode",
    "RemoveEntry",
    "RemoveFormal",
    "RemoveFunction",
    "RemoveNode",
    "RenameValue",
    "ReplaceEntry",
    "SetAttribute",
    "SetField",
    "SetFormal",
    "SetInitializer",
    "SetInputs",
    "SetOutputs",
    "SetTypes",
    "Target",
    "field_value",
]
