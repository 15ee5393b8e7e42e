"""What one committed edit did: the immutable message that every follower gets."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from onnxlab.graph.records import NodeRecord, Scope, ValueRecord

if TYPE_CHECKING:
    from onnxlab.graph.changes import Change, Target
    from onnxlab.graph.modelgraph import ModelGraph

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


class Touch:
    """Collects what the primitives of one transaction touch, and drops what the graph has cached of it.

    Attributes:
        suspects: ids of the nodes and values that may break a rule now; who reads a value breaks none of its own.
    """

    __slots__ = ("_graph", "_nodes", "_scopes", "_values", "functions", "metadata", "opsets", "structure", "suspects")

    def __init__(self, graph: "ModelGraph") -> None:
        self._graph = graph
        self._nodes: set[int] = set()
        self._values: dict[int, ValueRecord | None] = {}
        self.suspects: set[int] = set()
        self._scopes: set[int] = set()
        self.opsets = False
        self.functions = False
        self.metadata = False
        self.structure = False

    def node(self, node: int) -> None:
        """A node that came or goes, or in which anything may be another."""
        self.wires(node)
        self.suspects.add(node)
        self._graph.forget_name(node)

    def wires(self, node: int) -> None:
        """A node that reads or makes other values, or by other names, and as many as before."""
        self._nodes.add(node)
        self._graph.forget_node(node)

    def values(self, values: Iterable[int]) -> None:
        """Values that came or go, or are made by others."""
        self.read(values)
        self.suspects.update(values)

    def read(self, values: Iterable[int]) -> None:
        """Values that others read now."""
        self.structure = True
        touched, records = self._values, self._graph.values
        for value in values:
            if value and (value in records or value not in touched):
                touched[value] = records.get(value)

    def users(self, values: Iterable[int]) -> None:
        """The nodes that read these values."""
        for vid in values:
            if vid:
                for node, _ in self._graph.values[vid].uses:
                    self.wires(node)

    def scopes(self, *scopes: int) -> None:
        self.structure = True
        self._scopes.update(scopes)
        for scope in scopes:
            self._graph.forget_scope(scope)

    def moved(self, node: int) -> None:
        self._graph.forget_node(node)

    def tree(self, node: NodeRecord) -> None:
        """Everything in the bodies of a node."""
        self.scopes(node.scope)
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
            inner = self._graph.nodes[inner_id]
            self.node(inner_id)
            self.read(inner.inputs)
            self.tree(inner)

    def removal(self, node: NodeRecord) -> None:
        self.node(node.id)
        self.read(node.inputs)
        self.values(node.outputs)
        self.users(node.outputs)
        self.tree(node)

    def formal(self, scope: Scope, value: ValueRecord) -> None:
        self.scopes(scope.id)
        self._values[value.id] = value
        self.suspects.add(value.id)

    def initializer(self, scope: Scope, value: ValueRecord) -> None:
        self.formal(scope, value)
        self._graph.forget_array(value.id)

    def renamed(self, value: ValueRecord) -> None:
        self.scopes(value.scope, *(scope for scope, _ in value.formal_outputs))
        for node, _ in value.producers:
            self.wires(node)

    def function(self, scope: Scope, removed: bool = False) -> None:
        self.functions = True
        self._graph.kept.clear()  # any node may call it, or no more
        self.scope(scope)

    def field(self, target: "Target", field: str) -> None:
        kind, ident = target
        if kind == "node":
            self.node(ident)
            self.structure |= field in _SEMANTIC_NODE_FIELDS
        elif kind == "scope":
            self.scopes(ident)
        else:
            self.metadata = True
        if field == "opset_import":
            self.opsets = True
            self._graph.forget_all_nodes()

    def gone(self) -> list[ValueRecord]:
        """The last records of values that were touched and are not in the model any more."""
        records = self._graph.values
        return [record for vid, record in self._values.items() if record is not None and vid not in records]

    def freeze(self) -> Touched:
        graph = self._graph
        return Touched(
            *_parted(self._nodes, graph.nodes), *_parted(self._values, graph.values),
            *_parted(self._scopes, graph.scopes), self.opsets, self.functions, self.metadata, self.structure,
        )  # fmt: skip


def _parted(touched: Collection[int], records: Mapping[int, Any]) -> tuple[frozenset[int], frozenset[int]]:
    """(those that are there, those that are not) of some ids."""
    if not touched:
        return _NONE, _NONE
    there = frozenset(filter(records.__contains__, touched))
    return there, _NONE if len(there) == len(touched) else frozenset(touched) - there


_NONE: frozenset[int] = frozenset()
