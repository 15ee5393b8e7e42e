"""Edits of names, and names that are not in use yet."""

from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import RenameValue, SetField
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.metadata import set_doc_string
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.protos import ge_dump, glow_dialect


@recorded
def rename_node(graph: ModelGraph, node: NodeRecord, name: str) -> None:
    """Give a node another name. ONNX Runtime wants node names to be unique, so a name in use is refused."""
    if not isinstance(name, str):
        raise EditError(f"a node's name is a string, got {name!r}")
    scope = graph.scopes[node.scope]
    with graph.lock:
        if name and name != node.name and graph.names.nodes_called(scope, name):
            raise EditError(f"another node is called {name!r} already; choose a name that is not in use")
        with graph.edit() as edit:
            if graph.is_ge_dump:
                _rename_references(graph, node, name, scope)
            _rename_save(graph, node, name)
            edit.apply(SetField(("node", node.id), "name", name))


def _rename_references(graph: ModelGraph, node: NodeRecord, name: str, scope: Scope) -> None:
    """Rename what a dump of GE calls by its node: "node:port", and inputs and outputs of the graph."""
    for ident in node.outputs:
        value = graph.values.get(ident)
        reference = ge_dump.split(value.name) if value is not None else None
        if value is not None and reference is not None and reference.node == node.name:
            rename_value(graph, value, f"{name}:{reference.port}")
    for ident in [*scope.inputs, *scope.outputs]:
        if graph.values[ident].name == node.name:
            rename_value(graph, graph.values[ident], name)


def _rename_save(graph: ModelGraph, node: NodeRecord, name: str) -> None:
    """Let the output that a node of Glow saves go on naming it."""
    for ident in node.outputs:
        value = graph.values.get(ident)
        if value is not None and value.info is not None and glow_dialect.is_save_node(node.proto, value.info):
            notes = glow_dialect.parse_doc(value.info.doc_string) or {}
            try:
                doc = glow_dialect.print_doc({**notes, "saveName": name})
            except ValueError as error:
                raise EditError(str(error)) from None
            set_doc_string(graph, value, doc)


@recorded
def rename_value(graph: ModelGraph, value: ValueRecord, name: str) -> None:
    """Give a value another name wherever the model mentions it, captures in bodies included.

    Raises:
        EditError: the name is empty, or in use in the value's scope, around it or in a body inside it.
    """
    if not isinstance(name, str) or not name:
        raise EditError(f"a value's name is a string that is not empty, got {name!r}")
    if name == value.name:
        return
    if not value.name:
        raise EditError("this value has no name, so nothing can read it: take it out, and add one that has a name")
    scope = graph.scopes[value.scope]
    in_use = graph.index.lookup(scope, name) or any(
        name in inner.names for inner in graph.scopes.values() if graph.index.is_inside(inner.id, scope.id)
    )
    if in_use:
        raise EditError(f"another value is called {name!r} already; choose a name that is not in use")
    graph.apply(RenameValue(value.id, name))


class FreshNames:
    """Names for new values and nodes: the wanted one where it is free, else with "_1", "_2", … behind it.

    An object serves one edit: names that it returned count as taken, so that names may be chosen before their nodes are
    made. A value's name is free when no scope of the model uses it, so that a new value never hides another one.
    """

    def __init__(self, graph: ModelGraph, scope: Scope | None = None) -> None:
        self._graph = graph
        self._scope = scope or graph.main
        self._given: dict[bool, set[str]] = {True: set(), False: set()}
        self._next: dict[tuple[bool, str], int] = {}

    def value(self, stem: str) -> str:
        """A name for a value."""
        return self._free(stem or "value", True)

    def node(self, stem: str) -> str:
        """A name for a node of the scope; "" stays nameless."""
        return self._free(stem, False) if stem else ""

    def take(self, name: str) -> None:
        """Count a value's name as taken."""
        self._given[True].add(name)

    def _free(self, stem: str, value: bool) -> str:
        name, number = stem, self._next.get((value, stem), 0)
        while name in self._given[value] or self._is_used(name, value):
            number += 1
            name = f"{stem}_{number}"
        self._next[value, stem] = number
        self._given[value].add(name)
        return name

    def _is_used(self, name: str, value: bool) -> bool:
        if not value:
            return bool(self._graph.names.nodes_called(self._scope, name))
        return any(name in scope.names for scope in self._graph.scopes.values())
