"""What an edit must not introduce: the rules of ONNX's IR that a graph has to keep, checked where the edit touched it.

Faults that a file already had do not stand in the way of an edit; new ones refuse it.
"""

from typing import TYPE_CHECKING

from onnxlab import schemas
from onnxlab.graph.attributes import attribute_type_name
from onnxlab.graph.changes import Change, SetField
from onnxlab.graph.entries import EntryField
from onnxlab.graph.records import NodeRecord, Scope, ValueRecord

if TYPE_CHECKING:
    from onnxlab.graph.modelgraph import ModelGraph


class Problems:
    """Compares the faults of what a transaction touches before and after it."""

    def __init__(self, graph: "ModelGraph") -> None:
        self._graph = graph
        self._undefined = frozenset(graph.index.undefined)
        self._newest = graph.index.newest_id
        self.backward = {scope.id: frozenset(scope.backward) for scope in graph.scopes.values() if scope.backward}
        self._nodes: dict[int, set[str]] = {}
        self._values: dict[int, set[str]] = {}

    def before(self, change: Change) -> None:
        """Note the faults of the node that a change is about to touch; one that came with the edit had none."""
        node_id = getattr(change, "node", 0)
        if isinstance(change, SetField) and change.target[0] == "node":
            node_id = change.target[1]
        if 0 < node_id <= self._newest and node_id not in self._nodes:
            node = self._graph.nodes[node_id]
            self._nodes[node_id] = set(node_problems(self._graph, node))
            for vid in {*node.outputs} - {0}:
                self._values.setdefault(vid, set(value_problems(self._graph, self._graph.values[vid])))

    def introduced(self) -> list[str]:
        """Sentences on every fault that was not there before."""
        graph = self._graph
        transaction = graph.transaction
        assert transaction is not None
        touched = transaction.touch.freeze()
        new = sorted(graph.index.undefined - self._undefined)
        found = [undefined_problem(graph, graph.values[vid]) for vid in new]
        for vid in sorted(touched.values):
            known = self._values.get(vid, set())
            found += [problem for problem in value_problems(graph, graph.values[vid]) if problem not in known]
        for node_id in sorted(touched.nodes):
            known = self._nodes.get(node_id, set())
            found += [problem for problem in node_problems(graph, graph.nodes[node_id]) if problem not in known]
        return found


def undefined_problem(graph: "ModelGraph", value: ValueRecord) -> str:
    readers = [graph.label(graph.nodes[node]) for node, _ in value.uses][:3] or ["an output of the graph"]
    return (
        f"{value.name!r} is read by {', '.join(readers)} but nothing makes it: "
        "rewire the readers first, or remove the node with bypass=True."
    )


def value_problems(graph: "ModelGraph", value: ValueRecord) -> list[str]:
    """Faults of single assignment and scope of one value."""
    found = []
    if len(value.producers) > 1:
        makers = " and ".join(graph.label(graph.nodes[node]) for node, _ in value.producers[:3])
        found.append(
            f"{value.name!r} is made by {makers}; every value has one producer, so give one of them a new name."
        )
    if value.producers and (value.is_input or value.initializer is not None):
        role = "a graph input" if value.is_input else "an initializer"
        maker = graph.label(graph.nodes[value.producers[0][0]])
        found.append(f"{value.name!r} is {role} and made by {maker}; give the node's output another name.")
    scope = graph.scopes[value.scope]
    found += _given_twice(scope, value)
    parent = graph.scopes.get(scope.parent)
    if value.defined and parent is not None and scope.kind == "subgraph" and graph.index.lookup(parent, value.name):
        found.append(
            f"{value.name!r} in {graph.scope_path(scope)} hides a value of the same name outside; rename one of them."
        )
    return found


def _given_twice(scope: Scope, value: ValueRecord) -> list[str]:
    """Inputs and initializers of one name: a graph has one of each at most."""
    found = []
    if value.is_input and scope.inputs.count(value.id) > 1:
        found.append(f"{value.name!r} is an input twice; remove one of them or rename it.")
    if value.initializer is not None:
        fields: tuple[EntryField, ...] = ("initializer", "sparse_initializer")
        if sum(len(scope.places(field).positions(value.name)) for field in fields) > 1:
            found.append(f"{value.name!r} has two initializers; remove one of them.")
    return found


def node_problems(graph: "ModelGraph", node: NodeRecord) -> list[str]:
    """Faults of a node against its operator's schema: arity, unknown or missing attributes, their types."""
    if (node.domain, node.op_type, node.proto.overload) in graph.index.functions:
        return []
    schema = graph.schema(node)
    if schema is None:
        return []
    label = graph.label(node)
    found = []
    for what, count, low, high in (
        ("inputs", len(node.inputs), schema.min_input, schema.max_input),
        ("outputs", len(node.outputs), schema.min_output, schema.max_output),
    ):
        if not low <= count <= high:
            wanted = str(low) if low == high else f"at least {low}" if count < low else f"at most {high}"
            found.append(f"{label} ({node.op_type}) has {count} {what}, its operator takes {wanted}.")
    present = set()
    for attribute in node.proto.attribute:
        present.add(attribute.name)
        if problem := attribute_problem(schema, attribute):
            found.append(f"{label} ({node.op_type}): {problem}")
    for name, spec in schema.attributes.items():
        if spec.required and name not in present:
            found.append(f"{label} ({node.op_type}) lacks the required attribute {name!r}.")
    return found


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
