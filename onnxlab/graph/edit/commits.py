"""What one committed edit did: the immutable message that every follower gets."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from onnxlab.errors import EditError
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord

if TYPE_CHECKING:
    from onnxlab.graph.edit.changes import Change, Target
    from onnxlab.graph.edit.model_graph import ModelGraph
    from onnxlab.graph.edit.transaction import Transaction

CommitKind = Literal["edit", "undo", "redo"]

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
        declared: values of which nothing changed but what the model says about them: no fact or array with it, but by
            policies of inference that believe declarations.
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


class GraphCommit(NamedTuple):
    """One commit of a ModelGraph.

    Attributes:
        version: the graph's version after it; versions count up by one, for undo and redo too.
        changes: the primitives that were applied, in order, as (inverse) changes that would take them back.
        origin: who asked for the edit (a view's session, or None).
    """

    version: int
    label: str
    kind: CommitKind
    inverses: "tuple[Change, ...]"
    touched: Touched
    origin: Any = None


class Journal(Protocol):
    """Where commits are written down before anybody hears of them; `formats.journal` has the one for files.

    An exception out of `append` takes the edit back, so that nothing is kept that is not in the journal.
    """

    def note(self, change: "Change") -> Any:
        """Take down a change that is about to be applied, in the state that it will be applied to."""
        ...

    def knows(self, kind: CommitKind) -> bool:
        """Whether an undo or redo needs no notes, because the journal has the edit."""
        ...

    def append(self, kind: CommitKind, label: str, notes: Sequence[Any], origin: Any) -> None:
        """Write a commit down that has been applied and judged; `origin` says who asked for it, None: Python."""
        ...


class Completer(Protocol):
    """What has to be changed together with an edit; `infer.declaring` lets declarations follow what is inferred."""

    def complete(self, transaction: "Transaction", touched: Touched) -> None:
        """Apply what an edit that was judged and touches this entails, as a part of it."""
        ...

    def abandon(self) -> None:
        """The edit that was completed last was taken back."""
        ...


class ChangeTracker:
    """Collects what the primitives of one transaction touch, and drops what the graph has cached of it.

    Attributes:
        suspects: ids of the nodes and values that may break a rule now; who reads a value breaks none of its own.
    """

    opsets = functions = metadata = structure = False

    def __init__(self, graph: "ModelGraph") -> None:
        self._graph = graph
        self._nodes: set[int] = set()
        self._values: set[int] = set()  # and 0, where a slot is empty
        self._declared: set[int] = set()
        self.suspects: set[int] = set()
        self._scopes: set[int] = set()

    def node(self, node: NodeRecord) -> None:
        """A node that came or goes, or in which anything may be another."""
        self.suspects.add(node.id)
        self._graph.forget_name(node)
        self.wires(node)

    def wires(self, node: NodeRecord) -> None:
        """A node that reads or makes other values, or by other names, and as many as before."""
        self._nodes.add(node.id)
        if self._graph.keeps:
            self._graph.forget_node(node)

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
        graph = self._graph
        for vid in values:
            if vid:
                for node, _ in graph.values[vid].uses:
                    self.wires(graph.nodes[node])

    def scopes(self, *scopes: int) -> None:
        self.structure = True
        self._scopes.update(scopes)
        if self._graph.keeps:
            for scope in scopes:
                self._graph.forget_scope(scope)

    def moved(self, node: NodeRecord) -> None:
        """A node at another place, which its label may tell."""
        if self._graph.keeps:
            self._graph.forget_node(node)

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
        for body in node.bodies.get(attribute, ()):
            self.scope(self._graph.scopes[body])

    def scope(self, scope: Scope) -> None:
        """A whole scope: itself, its values and nodes, and their bodies."""
        self.scopes(scope.id)
        self.values(scope.names.values())
        for inner_id in scope.node_ids:
            self.whole(self._graph.nodes[inner_id])

    def removal(self, node: NodeRecord) -> None:
        self.users(node.outputs)
        self.whole(node)

    def formal(self, scope: Scope, value: ValueRecord) -> None:
        self.scopes(scope.id)
        self._values.add(value.id)
        self.suspects.add(value.id)

    def initializer(self, scope: Scope, value: ValueRecord) -> None:
        self.formal(scope, value)
        self._graph.forget_array(value.id)

    def data(self, scope: Scope, value: ValueRecord) -> None:
        """An initializer whose tensor is another one of the same name."""
        self.structure = True
        self._scopes.add(scope.id)
        self._values.add(value.id)
        self.suspects.add(value.id)
        self._graph.forget_data(scope.id, value.id)

    def declared(self, values: Iterable[int]) -> None:
        """Values about which the model says something else."""
        self._declared.update(values)

    def renamed(self, value: ValueRecord) -> None:
        self.scopes(value.scope, *(scope for scope, _ in value.formal_outputs))
        for node, _ in value.producers:
            self.wires(self._graph.nodes[node])

    def function(self, scope: Scope, removed: bool = False) -> None:
        self.functions = True
        self._graph.kept.clear()  # any node may call it, or no more
        self.scope(scope)

    def field(self, target: "Target", field: str) -> None:
        kind, ident = target
        if kind == "node":
            self.node(self._graph.nodes[ident])
            self.structure |= field in _SEMANTIC_NODE_FIELDS
        elif kind == "scope":
            self.scopes(ident)
        elif kind == "tensor":
            self._declared.add(ident)
        else:
            self.metadata = True
        if field in ("opset_import", "ir_version"):  # without the former, the latter tells the opset
            self.opsets = True
            self._graph.forget_all_nodes()

    def freeze(self) -> Touched:
        graph = self._graph
        self._values.discard(0)
        nodes, removed_nodes = _parted(self._nodes, graph.nodes)
        values, removed_values = _parted(self._values, graph.values)
        scopes, removed_scopes = _parted(self._scopes, graph.scopes)
        return Touched(
            nodes, removed_nodes, values, removed_values, scopes, removed_scopes,
            self.opsets, self.functions, self.metadata, self.structure,
            _parted(self._declared - values, graph.values)[0] if self._declared else _NONE,
        )  # fmt: skip


class _Outside(ChangeTracker):
    def __init__(self) -> None:
        """It belongs to no graph."""

    def __getattribute__(self, name: str) -> Any:
        raise EditError("a change was applied outside of a transaction; use `with graph.edit(label)`")


NO_TRANSACTION: ChangeTracker = _Outside()
"""What a graph has where no edit is going on."""


def _parted(touched: AbstractSet[int], records: Mapping[int, Any]) -> tuple[frozenset[int], frozenset[int]]:
    """(those that are there, those that are not) of some ids."""
    if touched <= records.keys():
        return frozenset(touched), _NONE
    there = frozenset(filter(records.__contains__, touched))
    return there, frozenset(touched - there)


_NONE: frozenset[int] = frozenset()
