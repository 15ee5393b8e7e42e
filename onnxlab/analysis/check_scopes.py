"""Checks of graphs, functions and their values: names, order, single assignment, declared types."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import onnx

from onnxlab.analysis.check_tensors import check_sparse, check_tensor
from onnxlab.analysis.findings import Findings
from onnxlab.graph.index.records import Scope, ValueRecord

if TYPE_CHECKING:
    from onnxlab.graph.edit.model_graph import ModelGraph

# {field of TypeProto: what it must say}
_TYPE_FIELDS = {
    "tensor_type": ("elem_type", "shape"),
    "sparse_tensor_type": ("elem_type", "shape"),
    "sequence_type": ("elem_type",),
    "optional_type": ("elem_type",),
    "map_type": ("key_type", "value_type"),
    "opaque_type": ("name",),
}
_ELEMENTS = frozenset(onnx.TensorProto.DataType.values()) - {onnx.TensorProto.UNDEFINED}


def check_scope(graph: "ModelGraph", scope: Scope, findings: Findings) -> None:
    """Problems of a graph or function as such: its name, inputs, outputs, initializers."""
    path = graph.scope_path(scope) or "the graph"
    if not scope.proto.name:
        findings.error("graph-name", f"{path} has no name", "give it a name", "a name", "none")
    _check_node_names(path, scope, findings)
    if scope.is_function:
        _check_function(graph, scope, findings)
        return
    for kind, infos in (("input", scope.proto.input), ("output", scope.proto.output)):
        for info in infos:
            _check_formal(info, f"{kind} {info.name!r} of {path}", scope.kind != "subgraph", findings)
    _once(f"input of {path}", (info.name for info in scope.proto.input), "graph-input", findings)
    for position, vid in enumerate(scope.outputs):
        value = graph.values.get(vid)
        if value is not None and (value.scope != scope.id or not value.defined):
            name = scope.proto.output[position].name
            findings.error(
                "graph-output", f"output {name!r} of {path} is made by nothing in it",
                "let a node of the graph make it (Identity, for a value from outside)", f"a maker of {name!r}", "none",
            )  # fmt: skip
    _check_initializers(graph, scope, path, findings)


def _check_node_names(path: str, scope: Scope, findings: Findings) -> None:
    for name, count in Counter(node.name for node in scope.proto.node if node.name).items():
        if count > 1:
            findings.warning(
                "node-name", f"{count} nodes of {path} are called {name!r}; ONNX Runtime refuses such a model",
                "rename all but one of them, or leave their names out", "1", str(count),
            )  # fmt: skip


def _check_function(graph: "ModelGraph", scope: Scope, findings: Findings) -> None:
    function, path = scope.proto, f"function {scope.proto.name!r}"
    if not function.HasField("domain"):
        findings.error("function-domain", f"{path} has no domain", "give it a domain", "a domain", "none")
    for field, names in (("input", function.input), ("output", function.output), ("attribute", function.attribute)):
        _once(f"{field} of {path}", names, f"function-{field}", findings)
    for position, vid in enumerate(scope.outputs):
        if vid in graph.index.undefined:
            findings.error(
                "function-output-unmade", f"output {function.output[position]!r} of {path} is made by nothing in it",
                "let a node of the function make it", "a maker", "none",
            )  # fmt: skip


def _once(subject: str, names: Iterable[str], code: str, findings: Findings) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            findings.error(code, f"{subject} {name!r} is there {count} times", "rename or remove one", "1", str(count))


def _check_formal(info: onnx.ValueInfoProto, subject: str, typed: bool, findings: Findings) -> None:
    if not info.name:
        findings.error("value-name", f"{subject} has no name", "give it a name", "a name", "none")
    kind = info.type.WhichOneof("value") if info.HasField("type") else None
    if not typed and kind is not None:  # bodies get their types from the node around them
        _check_elements(info.type, subject, typed, findings)
    if not typed:
        return
    if kind is None:
        findings.error("value-type", f"{subject} has no type", "declare its type", "a type", "none")
        return
    _check_elements(info.type, subject, typed, findings)
    part = getattr(info.type, kind)
    for field in _TYPE_FIELDS.get(kind, ()):
        if not part.HasField(field) or (field == "name" and not part.name):
            findings.error(
                "value-type", f"the type of {subject} has no {field}",
                f"set the {field} of its {kind}; a shape may have unknown dims", field, "none",
            )  # fmt: skip


def _check_elements(kind: onnx.TypeProto, subject: str, typed: bool, findings: Findings) -> None:
    """The element types that a type names have to exist, those of its elements too.

    A formal of a body needs no type, but onnxruntime reads a type that is there. `typed` is False for formals of
    bodies.
    """
    problem = findings.error if typed else findings.warning
    levels = [kind]
    while levels:
        level = levels.pop()
        field = level.WhichOneof("value")
        if field is None:
            if level is not kind:
                problem(
                    "value-type", f"the type of {subject} does not say what its elements are",
                    "set the type of its elements", "a type", "none",
                )  # fmt: skip
            continue
        part = getattr(level, field)
        if field in ("sequence_type", "optional_type"):
            if level is not kind or not typed or part.HasField("elem_type"):  # else the check of fields reports it
                levels.append(part.elem_type)
        elif field == "map_type":
            levels.append(part.value_type)
        elif field == "opaque_type":
            hint = "give it the type of a tensor, a sequence, an optional or a map"
            findings.warning("value-type-opaque", f"no operator of ONNX takes the opaque type of {subject}", hint)
        number = part.key_type if field == "map_type" else getattr(part, "elem_type", 1)
        if isinstance(number, int) and number not in _ELEMENTS:
            problem(
                "value-type-unknown", f"the type of {subject} names element type {number}, which does not exist",
                "set it to a value of TensorProto.DataType", "1 for float32, 7 for int64, …", str(number),
            )  # fmt: skip


def _check_initializers(graph: "ModelGraph", scope: Scope, path: str, findings: Findings) -> None:
    names = [tensor.name for tensor in scope.proto.initializer]
    names += [sparse.values.name for sparse in scope.proto.sparse_initializer]
    if not all(names):
        findings.error(
            "initializer-name", f"an initializer of {path} has no name", "name it, or remove it", "a name", "none"
        )
    _once(f"initializer of {path}", (name for name in names if name), "initializer-name", findings)
    if graph.proto.ir_version <= 3 and len(scope.proto.initializer):
        inputs = {info.name for info in scope.proto.input}
        for tensor in scope.proto.initializer:
            if tensor.name not in inputs:
                findings.error(
                    "initializer-input",
                    f"initializer {tensor.name!r} of {path} is no graph input, as IR version 3 and below demand",
                    "make it a graph input too, or raise ir_version to 4", "a graph input", "none",
                )  # fmt: skip


def check_value(graph: "ModelGraph", value: ValueRecord, findings: Findings) -> None:
    """Problems of a value: its initializer's data, more than one maker, a name that hides another."""
    if isinstance(value.initializer, onnx.SparseTensorProto):
        check_sparse(value.initializer, graph.base_dir, findings, f"initializer {value.name!r}")
    elif value.initializer is not None:
        check_tensor(value.initializer, graph.base_dir, findings, f"initializer {value.name!r}")
    if not value.producers:
        return
    makers = [graph.label(graph.nodes[node]) for node, _ in value.producers]
    others = [role for role, true in (("a graph input", value.is_input), ("an initializer", value.initializer)) if true]
    if len(makers) + len(others) > 1:
        findings.error(
            "single-assignment", f"{value.name!r} is made by {' and by '.join(makers[:3])}"
            + (f", and is {' and '.join(others)}" if others else ""),
            "give one of them another name", "one maker", str(len(makers) + len(others)),
        )  # fmt: skip
    outer = _hidden(graph, value)
    if outer is not None:
        inside, outside = (graph.scope_path(graph.scopes[scope]) for scope in (value.scope, outer.scope))
        findings.error(
            "hidden-name", f"{value.name!r} of {inside} hides a value of this name of {outside or 'the graph'}",
            "rename one of them", "a name of its own", value.name,
        )  # fmt: skip


def _hidden(graph: "ModelGraph", value: ValueRecord) -> ValueRecord | None:
    """The value of an outer scope that is there already where `value` is made, under the same name."""
    scope: Scope | None = graph.scopes[value.scope]
    owner = scope.owner if scope else 0
    while owner and scope is not None and (scope := graph.scopes.get(scope.parent)) is not None:
        outer = graph.values.get(scope.names.get(value.name, 0))
        if outer is not None:
            if outer.is_input or outer.initializer is not None:
                return outer
            around = graph.nodes[owner]
            if any(graph.nodes[node].label < around.label for node, _ in outer.producers):
                return outer
        owner = scope.owner
    return None


def order_problems(graph: "ModelGraph") -> Iterator[tuple[int, int, str, str]]:
    """(node id, value id, code, message) of every read of a value that nothing makes, or that is made only later.

    Where no order of the nodes would help, the code is "cycle".
    """
    for vid in graph.index.undefined:
        value = graph.values[vid]
        for node_id in dict.fromkeys(node for node, _ in value.uses):
            label = graph.label(graph.nodes[node_id])
            yield node_id, vid, "undefined-value", f"{label} reads {value.name!r}, which nothing makes"
    for scope in graph.scopes.values():
        for maker_id, reader_id in scope.backward:
            maker, reader = graph.nodes[maker_id], graph.label(graph.nodes[reader_id])
            name = next((graph.values[vid].name for vid in maker.outputs if vid), "")
            ranks = graph.index.ranks(scope)
            circle = ranks[maker_id] >= ranks[reader_id]
            where = "and depends on a cycle, this one or another" if circle else "which stands below it"
            code = "cycle" if circle else "order"
            yield reader_id, 0, code, f"{reader} reads what {graph.label(maker)} makes ({name!r}), {where}"
