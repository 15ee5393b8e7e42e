"""What an edit must not introduce: the rules of ONNX's IR that a graph has to keep, checked where the edit touched it.

Faults that a file already had do not stand in the way of an edit; new ones refuse it.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from onnxlab import schemas
from onnxlab.graph.attributes import attribute_type_name
from onnxlab.graph.changes import (
    Change,
    InsertEntry,
    InsertFormal,
    InsertNode,
    RemoveEntry,
    RemoveFormal,
    RenameValue,
    ReplaceEntry,
    SetField,
    SetFormal,
    SetInitializer,
)
from onnxlab.graph.commits import Touched
from onnxlab.graph.entries import EntryField, entry_name, formal_name
from onnxlab.graph.records import NodeRecord, ValueRecord

if TYPE_CHECKING:
    from onnxlab.graph.modelgraph import ModelGraph


class Problems:
    """Compares the faults of what a transaction touches before and after it."""

    def __init__(self, graph: "ModelGraph") -> None:
        self._graph = graph
        self._undefined = frozenset(graph.index.undefined)
        self._newest = graph.index.newest_id
        self.backward = {scope: frozenset(graph.scopes[scope].backward) for scope in graph.index.unsorted}
        self._nodes: dict[int, set[str]] = {}
        self._values: dict[int, dict[str, int]] = {}

    def before(self, change: Change) -> None:
        """Note the faults of what a change is about to touch; a node that came with the edit had none."""
        graph = self._graph
        node_id = getattr(change, "node", 0)
        if isinstance(change, SetField) and change.target[0] == "node":
            node_id = change.target[1]
        if 0 < node_id <= self._newest and node_id not in self._nodes:
            node = graph.nodes[node_id]
            self._nodes[node_id] = self._of_node(node)
        for vid in _values_of(graph, change, graph.nodes.get(node_id)):
            if 0 < vid <= self._newest and vid not in self._values:
                faults = value_faults(graph, graph.values[vid])
                self._values[vid] = {kind: size for kind, (size, _) in faults.items()}

    def _of_node(self, node: NodeRecord) -> set[str]:
        """Its faults without the label, which is another when the node was renamed or moved."""
        problems = node_problems(self._graph, node)
        if not problems:
            return set()
        label = self._graph.label(node)
        return {problem.removeprefix(label) for problem in problems}

    def introduced(self, touched: Touched) -> list[str]:
        """Sentences on every fault of what was touched that was not there before."""
        graph = self._graph
        new = sorted(graph.index.undefined - self._undefined)
        found = [undefined_problem(graph, graph.values[vid]) for vid in new]
        for vid in sorted(touched.values):
            known_faults = self._values.get(vid, {})
            faults = value_faults(graph, graph.values[vid])
            found += [sentence for kind, (size, sentence) in faults.items() if size > known_faults.get(kind, 0)]
        for node_id in sorted(touched.nodes):
            if problems := node_problems(graph, graph.nodes[node_id]):
                known, label = self._nodes.get(node_id, set()), graph.label(graph.nodes[node_id])
                found += [problem for problem in problems if problem.removeprefix(label) not in known]
        return found


def _values_of(graph: "ModelGraph", change: Change, node: NodeRecord | None) -> Iterator[int]:
    """Ids of the values that a change adds to, takes from or renames, as far as they are there before it."""
    if node is not None:
        yield from node.inputs
        yield from node.outputs
        if node.bodies:
            yield from graph.index.captures(node)
    scope = graph.scopes.get(getattr(change, "scope", node.scope if node else 0))
    names: Iterable[str] = getattr(change, "names", ())
    match change:
        case RenameValue():
            yield change.value
        case InsertNode():
            names = (*change.proto.input, *change.proto.output)
        case InsertFormal():
            names = (formal_name(change.info),)
        case InsertEntry() | ReplaceEntry():
            names = (entry_name(change.field, change.proto),)
        case SetInitializer():
            names = (change.name,)
        case RemoveFormal() | SetFormal() | RemoveEntry() if scope is not None:
            field = change.field if isinstance(change, RemoveEntry) else change.kind
            message = getattr(scope.proto, field)[change.position]
            names = (entry_name(field, message) if isinstance(change, RemoveEntry) else formal_name(message),)
    for name in names:
        yield graph.index.lookup(scope, name) if name else 0


def undefined_problem(graph: "ModelGraph", value: ValueRecord) -> str:
    readers = [graph.label(graph.nodes[node]) for node, _ in value.uses][:3] or ["an output of the graph"]
    return (
        f"{value.name!r} is read by {', '.join(readers)} but nothing makes it: "
        "rewire the readers first, or remove the node with bypass=True."
    )


Faults = dict[str, tuple[int, str]]
"""Kind of a fault: (how bad it is, a sentence on it)."""


def value_faults(graph: "ModelGraph", value: ValueRecord) -> Faults:
    """Faults of single assignment and scope of one value."""
    found: Faults = {}
    name, scope, parent = value.name, graph.scopes[value.scope], graph.scopes.get(graph.scopes[value.scope].parent)
    if len(value.producers) > 1:
        makers = " and ".join(graph.label(graph.nodes[node]) for node, _ in value.producers[:3])
        sentence = f"{name!r} is made by {makers}; every value has one producer, so give one of them a new name."
        found["producers"] = len(value.producers), sentence
    if value.producers and (value.is_input or value.initializer is not None):
        role = "a graph input" if value.is_input else "an initializer"
        maker = graph.label(graph.nodes[value.producers[0][0]])
        found["made"] = 1, f"{name!r} is {role} and made by {maker}; give the node's output another name."
    if value.is_input and (count := scope.inputs.count(value.id)) > 1:
        found["inputs"] = count, f"{name!r} is an input twice; remove one of them or rename it."
    if value.initializer is not None:
        fields: tuple[EntryField, ...] = ("initializer", "sparse_initializer")
        if (count := sum(len(scope.places(field).positions(name)) for field in fields)) > 1:
            found["initializers"] = count, f"{name!r} has two initializers; remove one of them."
    if value.defined and parent is not None and scope.kind == "subgraph" and graph.index.lookup(parent, name):
        where = graph.scope_path(scope)
        found["hides"] = 1, f"{name!r} in {where} hides a value of the same name outside; rename one of them."
    return found


def node_problems(graph: "ModelGraph", node: NodeRecord) -> list[str]:
    """Faults of a node against its operator's schema: arity, unknown or missing attributes, their types."""
    if (node.domain, node.op_type, node.proto.overload) in graph.index.functions:
        return []
    schema = graph.schema(node)
    if schema is None:
        return []
    found = []
    for what, count, low, high in (
        ("inputs", len(node.inputs), schema.min_input, schema.max_input),
        ("outputs", len(node.outputs), schema.min_output, schema.max_output),
    ):
        if not low <= count <= high:
            wanted = str(low) if low == high else f"at least {low}" if count < low else f"at most {high}"
            found.append(f" has {count} {what}, its operator takes {wanted}.")
    present = set()
    for attribute in node.proto.attribute:
        present.add(attribute.name)
        if problem := attribute_problem(schema, attribute):
            found.append(f": {problem}")
    for name, spec in schema.attributes.items():
        if spec.required and name not in present:
            found.append(f" lacks the required attribute {name!r}.")
    return [f"{graph.label(node)} ({node.op_type}){fault}" for fault in found]


def attribute_problem(schema: schemas.Schema, attribute: object) -> str:
    """What is wrong with an AttributeProto by the schema, "" if nothing is."""
    name, kind = attribute.name, attribute.type  # type: ignore[attr-defined]
    spec = schema.attributes.get(name)
    if spec is None:
        known = ", ".join(schema.attributes) or "none"
        return f"it has no attribute {name!r}; it takes {known}."
    if attribute.ref_attr_name:  # type: ignore[attr-defined]
        return ""
    if attribute_type_name(kind) != spec.type:
        return f"attribute {name!r} is {attribute_type_name(kind)}, expected {spec.type}."
    return ""
