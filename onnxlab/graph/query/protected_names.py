"""Names of nodes, values and graphs that edits are to leave as they are."""

from collections.abc import Collection

from onnxlab.argument_types import several
from onnxlab.errors import NameLookupError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.spelling import suggestion


def protected_names(graph: ModelGraph, names: Collection[str] | str) -> frozenset[str]:
    """Names that are to stay, of which one alone may be a string.

    Raises:
        TypeError: something is no name.
        NameLookupError: a name or prefix is of nothing in the model, so that nothing would stay by it.
    """
    protected = frozenset(several(names, str, "protect", "names of nodes, values, graphs or functions"))
    if not protected:
        return protected
    with graph.lock:
        nodes = {node.name for node in graph.nodes.values()}
        known = nodes.union(value.name for value in graph.values.values())
        known = known.union(*({scope.name, graph.scope_path(scope)} for scope in graph.scopes.values())) - {""}
    for name in sorted(protected - known):
        prefix = name.rstrip("*").rstrip("/") + "/"
        is_prefix = any(node.startswith(prefix) for node in nodes)
        if name != prefix or not is_prefix:
            close = suggestion(name.rstrip("/"), known) if name else ""
            hint = f", and no name of a node begins with {prefix!r}.{close}"
            if is_prefix:
                hint = f"; write {prefix!r} for all nodes whose names begin with it"
            raise NameLookupError(f"protect has {name!r}: no node, value, graph or function is called so{hint}")
    return protected


def of_operators(graph: ModelGraph, op_types: Collection[str] | str) -> frozenset[str]:
    """Names of values that nodes of some operators make, of which one alone may be a string.

    Raises:
        TypeError: something is no name.
        NameLookupError: the model has no node of an operator.
    """
    chosen = frozenset(several(op_types, str, "leave", "operators, such as Conv"))
    if not chosen:
        return chosen
    with graph.lock:
        nodes = [*graph.nodes.values()]
    for op_type in sorted(chosen - (known := {node.op_type for node in nodes})):
        raise NameLookupError(f"leave has {op_type!r}: no node has this operator.{suggestion(op_type, known)}")
    results = (next(iter(filter(None, node.proto.output)), "") for node in nodes if node.op_type in chosen)
    return frozenset(filter(None, results))
