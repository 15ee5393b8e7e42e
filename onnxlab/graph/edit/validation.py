"""Rules of ONNX's IR that an edit must not break, checked where the edit touched the graph.

Faults that a file already had do not matter to an edit; new faults make it fail.
"""

from collections.abc import Callable, Collection

from onnxlab import schemas
from onnxlab.graph.index.named_entries import EntryField
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.protos.attributes import TYPE_NAMES, attribute_type_name
from onnxlab.graph.state.graph_state import GraphState

Faults = dict[str, tuple[int, str]]
"""Faults by kind: (severity, a sentence that describes the fault)."""

Found = dict[tuple[str, int], Faults]
"""The faults of values and nodes that have any, by ("value", id) and ("node", id)."""


class Problems:
    """Problems of a graph before a transaction, as far as the rest of it does not show them afterwards."""

    def __init__(self, graph: GraphState) -> None:
        self._graph = graph
        index = graph.index
        self._undefined = frozenset(index.undefined)
        self.backward: dict[int, frozenset[tuple[int, int]]] = {}
        if index.unsorted:
            self.backward = {scope: frozenset(graph.scopes[scope].backward) for scope in index.unsorted}

    def introduced(self, suspects: Collection[int], before: Callable[[], Found]) -> list[str]:
        """Sentences on every fault of these nodes and values that was not there before.

        `before()` returns the faults in the state before the edit. Since it takes a fifth of an edit's time, it is
        called only where there is a fault now, which is rare.
        """
        graph = self._graph
        new, sentences = graph.index.undefined - self._undefined, []
        if new:
            sentences = [undefined_problem(graph, graph.values[vid]) for vid in sorted(new)]
        if faults_now := faults(graph, suspects):
            known = before()
            for subject, kinds in faults_now.items():
                sizes = {kind: size for kind, (size, _) in known.get(subject, {}).items()}
                sentences += [sentence for kind, (size, sentence) in kinds.items() if size > sizes.get(kind, 0)]
        return sentences


def faults(graph: GraphState, suspects: Collection[int]) -> Found:
    """The faults of those values, then nodes, of these ids that the graph has now."""
    kinds_of: Found = {}
    ordered = sorted(suspects)
    for vid in ordered:
        if (value := graph.values.get(vid)) is not None and (kinds := value_faults(graph, value)):
            kinds_of["value", vid] = kinds
    for ident in ordered:
        if (node := graph.nodes.get(ident)) is not None and (kinds := node_faults(graph, node)):
            kinds_of["node", ident] = kinds
    return kinds_of


def undefined_problem(graph: GraphState, value: ValueRecord) -> str:
    """The message for a value that is read and never computed."""
    readers = [graph.label(graph.nodes[node]) for node, _ in value.uses][:3] or ["an output of the graph"]
    return (
        f"{value.name!r} is read by {', '.join(readers)} but nothing makes it: "
        "rewire the readers first, or remove the node with bypass=True."
    )


def value_faults(graph: GraphState, value: ValueRecord) -> Faults:
    """Faults of single assignment and scope of one value."""
    problems: Faults = {}
    name, scope, producers = value.name, graph.scopes[value.scope], value.producers
    stored = value.initializer is not None
    if len(producers) > 1:
        makers = " and ".join(graph.label(graph.nodes[node]) for node, _ in producers[:3])
        sentence = f"{name!r} is made by {makers}; every value has one producer, so give one of them a new name."
        problems["producers"] = len(producers), sentence
    if producers and (value.is_input or stored):
        role = "a graph input" if value.is_input else "an initializer"
        maker = graph.label(graph.nodes[producers[0][0]])
        problems["made"] = 1, f"{name!r} is {role} and made by {maker}; give the node's output another name."
    if value.is_input and (count := scope.inputs.count(value.id)) > 1:
        problems["inputs"] = count, f"{name!r} is an input twice; remove one of them or rename it."
    if stored:
        fields: tuple[EntryField, ...] = ("initializer", "sparse_initializer")
        if (count := sum(len(scope.places(field).positions(name)) for field in fields)) > 1:
            problems["initializers"] = count, f"{name!r} has two initializers; remove one of them."
    if scope.kind == "subgraph" and (producers or value.is_input or stored):
        parent = graph.scopes.get(scope.parent)
        if parent is not None and graph.index.lookup(parent, name):
            where = graph.scope_path(scope)
            problems["hides"] = 1, f"{name!r} in {where} hides a value of the same name outside; rename one of them."
    return problems


def node_problems(graph: GraphState, node: NodeRecord) -> list[str]:
    """A sentence on each fault of a node against its operator's schema."""
    return [sentence for _, sentence in node_faults(graph, node).values()]


def node_faults(graph: GraphState, node: NodeRecord) -> Faults:
    """Faults of a node against its operator's schema: arity, unknown or missing attributes, their types."""
    proto = node.proto
    op_type, functions = proto.op_type, graph.index.functions
    if functions and (node.domain, op_type, proto.overload) in functions:
        return {}
    schema = graph.schema(node)
    if schema is None:
        return {}
    sentences = []
    if not schema.min_input <= len(node.inputs) <= schema.max_input:
        sentences.append(_arity("inputs", len(node.inputs), schema.min_input, schema.max_input))
    if not schema.min_output <= len(node.outputs) <= schema.max_output:
        sentences.append(_arity("outputs", len(node.outputs), schema.min_output, schema.max_output))
    if schema.attributes or len(proto.attribute):
        present = set()
        for attribute in proto.attribute:
            present.add(attribute.name)
            if problem := attribute_problem(schema, attribute):
                sentences.append(f": {problem}")
        for name, spec in schema.attributes.items():
            if spec.required and name not in present:
                sentences.append(f" lacks the required attribute {name!r}.")
    # the key is without the label, which changes when the node is renamed or moved
    return {f"{op_type}{fault}": (1, f"{graph.label(node)} ({op_type}){fault}") for fault in sentences}


def _arity(side: str, count: int, low: int, high: int) -> str:
    expected = str(low) if low == high else f"at least {low}" if count < low else f"at most {high}"
    return f" has {count} {side}, its operator takes {expected}."


def attribute_problem(schema: schemas.Schema, attribute: object) -> str:
    """The fault of an AttributeProto by the schema, "" for none."""
    name, kind = attribute.name, attribute.type  # type: ignore[attr-defined]
    spec = schema.attributes.get(name)
    if spec is None:
        known = ", ".join(schema.attributes) or "none"
        return f"it has no attribute {name!r}; it takes {known}."
    if attribute.ref_attr_name:  # type: ignore[attr-defined]
        return ""
    if TYPE_NAMES.get(kind) != spec.type:
        return f"attribute {name!r} is {attribute_type_name(kind)}, expected {spec.type}."
    return ""
