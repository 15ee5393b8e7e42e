"""Changes as they touch caches of the protos and the index, and their report in a commit.

`ChangeTracker` collects the ids of touched objects while the changes of one edit are applied, and sums them up for the
commit.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from onnxlab.errors import EditError
from onnxlab.graph.index.index import Index
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.state.names import Names
from onnxlab.operator_schema import Schema

Target = tuple[Literal["model", "scope", "node", "training", "tensor"], int]
"""Owner of a field: ("model", 0), ("scope", scope id), ("node", node id), ("training", position in training_info), or
("tensor", value id) for the tensor of an initializer."""

_DESCRIBING_NODE_FIELDS = frozenset(("name", "doc_string", "metadata_props"))
_SEMANTIC_NODE_FIELDS = frozenset(("op_type", "domain", "overload"))


class Touched(NamedTuple):
    """Ids of what a commit added or changed (still there) and of what it removed.

    Attributes:
        nodes: added, or with other inputs, outputs, attributes or fields.
        values: added, renamed, rewired, with another initializer, declared type or role in a graph.
        scopes: added, or with other inputs, outputs or fields, or nodes in another order.
        opsets: whether an opset import changed, which can change the meaning of every node.
        functions: whether a model-local function came or went.
        metadata: whether a field of the model itself changed.
        structure: whether anything but attributes and plain fields changed.
        declared: values of which only the declaration changed: facts and arrays stay as they are, except under
            policies of inference that believe declarations.
        named: whether a node has another name or other metadata, which give its place in a hierarchy of modules.
        described: whether nothing changed but names, documentation and metadata of nodes, and fields of the model;
            facts then stay as they are.
        adopted: values that took over the name and the declaration of another, whose place as an output they have.
        alike: those of them that hold what the other one held.
    """

    nodes: frozenset[int]
    removed_nodes: frozenset[int]
    values: frozenset[int]
    removed_values: frozenset[int]
    scopes: frozenset[int]
    removed_scopes: frozenset[int]
    opsets: bool
    functions: bool
    metadata: bool
    structure: bool
    declared: frozenset[int] = frozenset()
    named: bool = False
    described: bool = False
    adopted: frozenset[int] = frozenset()
    alike: frozenset[int] = frozenset()


class Views(Protocol):
    """A cache of what snapshots show of nodes and scopes."""

    def forget_node(self, node: NodeRecord) -> None:
        """Drop what is known of a node."""

    def forget_scope(self, scope: int) -> None:
        """Drop what is known of a scope."""

    def forget_data(self, value: int) -> None:
        """Drop what is known of a value's elements."""

    def forget_all(self) -> None:
        """Drop everything."""


class Caches:
    """The caches of one graph; the changes say what they touch, by way of `ChangeTracker`.

    Attributes:
        keeps: whether there is a cache in `by_key`, or a view, that must be notified of changes.
        by_key: caches that inference keeps beside the records, by any key, entered by `keep`; notified of changes by
            `forget_node(id)`, `forget_scope(id)` and `forget_value(id)` (of an initializer), and dropped when the
            meaning of all nodes may change.
        arrays: data of initializers by value id, decoded once.
        opsets: version by domain that each root scope imports, by the scope's id.
        schemas: schemas of operators by (scope id, domain, name), found in the `generation` of the registry.
        views: the cache of snapshots, None before the first snapshot.
    """

    def __init__(self, names: Names) -> None:
        self.keeps = False
        self.by_key: dict[Any, Any] = {}
        self.arrays: dict[int, np.ndarray[Any, Any]] = {}
        self.opsets: dict[int, dict[str, int]] = {}
        self.schemas: dict[tuple[int, str, str], Schema] = {}
        self.generation = -1
        self.views: Views | None = None
        self.forget_name = names.forget

    def keep(self, key: Any, cache: Any) -> None:
        """Put into `by_key` what is to be told of edits from now on."""
        self.by_key[key] = cache
        self.keeps = True

    def forget_node(self, node: NodeRecord) -> None:
        """Drop what is known of a node."""
        if self.views is not None:
            self.views.forget_node(node)
        for cache in self.by_key.values():
            cache.forget_node(node.id)

    def forget_all_nodes(self) -> None:
        """Drop what is known of any node."""
        if self.views is not None:
            self.views.forget_all()
        self.opsets.clear()
        self.schemas.clear()
        self.by_key.clear()

    def forget_scope(self, scope: int) -> None:
        """Drop what is known of a scope."""
        for cache in self.by_key.values():
            cache.forget_scope(scope)
        if self.views is not None:
            self.views.forget_scope(scope)

    def forget_data(self, scope: int, value: int) -> None:
        """Drop what is cached of the data of an initializer of a scope."""
        self.forget_array(value)
        for cache in self.by_key.values():
            cache.forget_scope(scope)
        if self.views is not None:
            self.views.forget_data(value)

    def forget_array(self, value: int) -> None:
        """Drop the array of a value and what was derived from it."""
        self.arrays.pop(value, None)
        for cache in self.by_key.values():
            cache.forget_value(value)


class ChangeTracker:
    """Collects what the primitives of one transaction touch, and drops what is cached of it.

    Attributes:
        suspects: ids of the nodes and values that may break a rule now, without mere readers of a touched value.
    """

    opsets = functions = metadata = structure = named = False

    def __init__(self, index: Index, caches: Caches) -> None:
        self._index = index
        self._caches = caches
        self._nodes: set[int] = set()
        self._values: set[int] = set()  # includes 0 where a slot is empty
        self._declared: set[int] = set()
        self.suspects: set[int] = set()
        self._scopes: set[int] = set()
        self._adopted: set[int] = set()
        self._alike: set[int] = set()
        self._meaning = False

    def node(self, node: NodeRecord) -> None:
        """A node that came or goes, or in which anything may be another."""
        self._caches.forget_name(node)
        self.content(node)

    def content(self, node: NodeRecord) -> None:
        """A node in which anything but its name may be another."""
        self.suspects.add(node.id)
        self.wires(node)

    def description(self, node: NodeRecord) -> None:
        """A node of which nothing but its name, documentation or metadata is another."""
        self._nodes.add(node.id)
        self._caches.forget_name(node)
        if self._caches.views is not None:
            self._caches.views.forget_node(node)

    def wires(self, node: NodeRecord) -> None:
        """A node that reads or makes other values, or by other names, and as many as before."""
        self._nodes.add(node.id)
        self._meaning = True
        if self._caches.keeps:
            self._caches.forget_node(node)

    def values(self, values: Iterable[int]) -> None:
        """Values that came or go, or are made by others."""
        self.read(values)
        self.suspects.update(values)

    def read(self, *values: Iterable[int]) -> None:
        """Values that others read now."""
        self.structure = True
        self._values.update(*values)

    def users(self, values: Iterable[int]) -> None:
        """The nodes that read these values."""
        index = self._index
        for vid in values:
            if vid:
                for node, _ in index.values[vid].uses:
                    self.wires(index.nodes[node])

    def scopes(self, *scopes: int) -> None:
        """Note that the nodes of these scopes changed in number, order or wiring."""
        self.structure = True
        self._scopes.update(scopes)
        if self._caches.keeps:
            for scope in scopes:
                self._caches.forget_scope(scope)

    def moved(self, node: NodeRecord) -> None:
        """A node at another place, which its label may tell."""
        if self._caches.keeps:
            self._caches.forget_node(node)

    def whole(self, node: NodeRecord) -> None:
        """A node that came or is about to go, with what it reads, what it makes and everything in its bodies."""
        self.node(node)
        self._values.update(node.inputs, node.outputs)
        self.suspects.update(node.outputs)
        self.scopes(node.scope)
        if node.bodies:
            for name in node.bodies:
                self.bodies(node, name)

    def bodies(self, node: NodeRecord, attribute: str) -> None:
        """Note the bodies under an attribute of a node."""
        for body in node.bodies.get(attribute, ()):
            self.scope(self._index.scopes[body])

    def scope(self, scope: Scope) -> None:
        """A whole scope: itself, its values and nodes, and their bodies."""
        self.scopes(scope.id)
        self.values(scope.names.values())
        for inner_id in scope.node_ids:
            self.whole(self._index.nodes[inner_id])

    def removal(self, node: NodeRecord) -> None:
        """Note a node that is removed, with its bodies and readers."""
        self.users(node.outputs)
        self.whole(node)

    def formal(self, scope: Scope, value: ValueRecord) -> None:
        """Note an input or output of a scope."""
        self.scopes(scope.id)
        self._values.add(value.id)
        self.suspects.add(value.id)

    def initializer(self, scope: Scope, value: ValueRecord) -> None:
        """Note that a value's array was set, replaced or removed."""
        self.formal(scope, value)
        self._caches.forget_array(value.id)

    def data(self, scope: Scope, value: ValueRecord) -> None:
        """An initializer whose tensor is another one of the same name."""
        self.structure = True
        self._scopes.add(scope.id)
        self._values.add(value.id)
        self.suspects.add(value.id)
        self._caches.forget_data(scope.id, value.id)

    def declared(self, values: Iterable[int]) -> None:
        """Values about which the model says something else."""
        self._declared.update(values)

    def adopted(self, value: ValueRecord, alike: bool) -> None:
        """A value that takes over the declaration of an output, and perhaps holds the same as that."""
        self._adopted.add(value.id)
        (self._alike.add if alike else self._alike.discard)(value.id)

    def renamed(self, value: ValueRecord) -> None:
        """Note a value that got another name."""
        self.scopes(value.scope, *(scope for scope, _ in value.formal_outputs))
        for node, _ in value.producers:
            self.wires(self._index.nodes[node])

    def function(self, scope: Scope, removed: bool = False) -> None:
        """Note a function that was added, changed or removed."""
        self.functions = True
        self._caches.by_key.clear()  # any node may call the function, or no longer
        self.scope(scope)

    def field(self, target: Target, field: str) -> None:
        """Note a field that SetField set."""
        kind, ident = target
        if kind == "node":
            self.named |= field in ("name", "metadata_props")
            if field in _DESCRIBING_NODE_FIELDS:
                self.description(self._index.nodes[ident])
            else:
                self.content(self._index.nodes[ident])
                self.structure |= field in _SEMANTIC_NODE_FIELDS
        elif kind == "scope":
            self.scopes(ident)
        elif kind == "tensor":
            self._declared.add(ident)
        else:
            self.metadata = True
        if field in ("opset_import", "ir_version"):  # without imports, the IR version decides the opset
            self.opsets = True
            self._caches.forget_all_nodes()

    def freeze(self) -> Touched:
        """The changes noted so far, as commits show them."""
        index = self._index
        self._values.discard(0)
        nodes, removed_nodes = _parted(self._nodes, index.nodes)
        values, removed_values = _parted(self._values, index.values)
        scopes, removed_scopes = _parted(self._scopes, index.scopes)
        return Touched(
            nodes, removed_nodes, values, removed_values, scopes, removed_scopes,
            self.opsets, self.functions, self.metadata, self.structure,
            _parted(self._declared - values, index.values)[0] if self._declared else _NONE, self.named,
            not (self._meaning or self._values or self._scopes or self._declared or self.opsets or self.functions),
            _parted(self._adopted, index.values)[0], frozenset(self._alike),
        )  # fmt: skip


class _Outside(ChangeTracker):
    def __init__(self) -> None:
        """Begin without a graph."""

    def __getattribute__(self, name: str) -> Any:
        raise EditError("a change was applied outside of a transaction; use `with graph.edit(label)`")


NO_TRANSACTION: ChangeTracker = _Outside()
"""The tracker of a graph while no edit is in progress."""


def _parted(touched: AbstractSet[int], records: Mapping[int, Any]) -> tuple[frozenset[int], frozenset[int]]:
    """(those that are there, those that are not) of some ids."""
    if touched <= records.keys():
        return frozenset(touched), _NONE
    present = frozenset(filter(records.__contains__, touched))
    return present, frozenset(touched - present)


_NONE: frozenset[int] = frozenset()
