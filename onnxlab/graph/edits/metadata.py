"""Edits of what a model says about itself: opset imports, metadata, documentation, producer and versions."""

from collections.abc import Mapping
from typing import Any

import onnx

from onnxlab import schemas
from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertEntry, SetField, SetFormal, Target, field_value
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.name_references import BINDINGS, bound_value
from onnxlab.graph.edit.transaction import Transaction
from onnxlab.graph.edit.validation import node_problems
from onnxlab.graph.edits.recording.edit_spec import Parameter, recorded
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.protos.name_bytes import text as text_of
from onnxlab.graph.protos.renaming import canonical

Bearer = "NodeRecord | ValueRecord | Scope | None"
"""Owner of metadata or documentation: a node, a value, a graph or function, or (None) the model."""

_TEXTS = ("producer_name", "producer_version", "domain", "doc_string")
_NUMBERS = ("ir_version", "model_version")


@recorded
def set_doc_string(graph: ModelGraph, bearer: Any, text: str) -> None:
    """Set the doc_string of the model (None), a graph, function, node or value; "" takes it away.

    Raises:
        EditError: `text` is no string, or the value belongs to a function that cannot describe it.
    """
    if not isinstance(text, str):
        raise EditError(f"a doc_string is a string, got {text!r}")
    if isinstance(bearer, ValueRecord) and not _is_tensor(bearer):
        info = _info(bearer)
        if text:
            info.doc_string = text
        else:
            info.ClearField("doc_string")
        _set_info(graph, bearer, info)
        return
    graph.apply(SetField(_target(bearer), "doc_string", text or None))


@recorded
def set_metadata(graph: ModelGraph, bearer: Any, entries: Mapping[str, str | None]) -> None:
    """Set entries of metadata_props of the model (None), a graph, function, node or value; None takes one away.

    Existing entries keep their place, new entries come last.

    Raises:
        EditError: a key or text is no string, or there is no entry to remove.
    """
    for key, text in entries.items():
        if not isinstance(key, str) or not (text is None or isinstance(text, str)):
            raise EditError(f"metadata is text by text, got {key!r}: {text!r}")
    if isinstance(bearer, ValueRecord) and not _is_tensor(bearer):
        info = _info(bearer)
        props = _with(tuple(info.metadata_props), entries, bearer.name)
        del info.metadata_props[:]
        info.metadata_props.extend(props)
        _set_info(graph, bearer, info)
        return
    target = _target(bearer)
    props = _with(field_value(graph.target(target), "metadata_props"), entries, _called(graph, bearer))
    graph.apply(SetField(target, "metadata_props", props))


def _with(
    props: tuple[onnx.StringStringEntryProto, ...], entries: Mapping[str, str | None], whose: str
) -> tuple[onnx.StringStringEntryProto, ...]:
    """The entries with other texts; messages that stay are kept as they are."""
    known = {entry.key for entry in props}
    if missing := [key for key, text in entries.items() if text is None and key not in known]:
        raise EditError(f"{whose} has no metadata {missing[0]!r}; there is {', '.join(sorted(known)) or 'none'}")
    changed = []
    for entry in props:
        if entry.key not in entries:
            changed.append(entry)
        elif (text := entries[entry.key]) is not None:
            copy = onnx.StringStringEntryProto()
            copy.CopyFrom(entry)
            copy.value = text_of(text)
            changed.append(copy)
    added = [
        onnx.StringStringEntryProto(key=text_of(key), value=text_of(text))
        for key, text in entries.items()
        if text is not None and key not in known
    ]
    return (*changed, *added)


def _called(graph: ModelGraph, bearer: Any) -> str:
    if isinstance(bearer, NodeRecord):
        return graph.label(bearer)
    if isinstance(bearer, ValueRecord):
        return bearer.name
    return "the model" if bearer is None else graph.scope_path(bearer) or "the graph"


def _target(bearer: Any) -> Target:
    if bearer is None:
        return ("model", 0)
    if isinstance(bearer, ValueRecord):
        return ("tensor", bearer.id)
    return ("node", bearer.id) if isinstance(bearer, NodeRecord) else ("scope", bearer.id)


def description(value: ValueRecord) -> Any:
    """The message that documents a value: its declaration, else the tensor of an initializer; None without either."""
    return value.info if value.info is not None else value.tensor


def _is_tensor(value: ValueRecord) -> bool:
    """Whether a value is documented by its tensor: an initializer that nothing declares, which needs no value_info."""
    return value.info is None and value.initializer is not None


def _info(value: ValueRecord) -> onnx.ValueInfoProto:
    """A copy of the declaration of a value, or one that only names it."""
    info = onnx.ValueInfoProto(name=value.name)
    if value.info is not None:
        info.CopyFrom(value.info)
    return info


def _set_info(graph: ModelGraph, value: ValueRecord, info: onnx.ValueInfoProto) -> None:
    """Put a declaration in the place of the one that the value has, or add it to value_info."""
    scope = graph.scopes[value.scope]
    if not scope.is_function:
        if value.is_input:
            graph.apply(SetFormal(scope.id, "input", scope.inputs.index(value.id), info))
            return
        at = next((position for where, position in value.formal_outputs if where == scope.id), None)
        if at is not None:
            graph.apply(SetFormal(scope.id, "output", at, info))
            return
    positions = scope.places("value_info").positions(value.name)
    if positions:
        graph.apply(SetFormal(scope.id, "value_info", positions[0], info))
    else:
        graph.apply(InsertEntry(scope.id, "value_info", len(scope.proto.value_info), info))


@recorded
def set_model_field(graph: ModelGraph, field: str, value: Any) -> None:
    """Set ir_version, producer_name, producer_version, domain, model_version or doc_string of the model.

    Raises:
        EditError: there is no such field, or the value does not fit it.
    """
    if field not in (*_TEXTS, *_NUMBERS):
        raise EditError(f"a model has no plain field {field!r}; there are {', '.join((*_TEXTS, *_NUMBERS))}")
    kind = str if field in _TEXTS else int
    if not isinstance(value, kind) or isinstance(value, bool):
        raise EditError(f"{field} takes {'a string' if kind is str else 'an integer'}, got {value!r}")
    if isinstance(value, int) and not (1 if field == "ir_version" else -(2**63)) <= value < 2**63:
        raise EditError(f"{field} is {value}: expected an integer below 2^63, of ir_version a positive one")
    graph.apply(SetField(("model", 0), field, value))


@recorded
def set_opset(graph: ModelGraph, domain: str, version: int | None, function: Scope | None = None) -> None:
    """Import another version of an operator domain (None: no longer), in the model or in a function of it.

    Nothing is converted: the nodes stay as they are and must fit the operators of that version too.

    Raises:
        EditError: the version is no positive integer, newer than the installed onnx knows, or nodes do not fit it; the
            message lists the nodes.
    """
    if not isinstance(domain, str):
        raise EditError(f"a domain of operators is a string, as 'com.microsoft', got {domain!r:.80}")
    root = function or graph.main
    shown = domain or "ai.onnx"
    if version is not None and not 1 <= version < 2**63:
        raise EditError(f"an opset version is an integer from 1 to 2^63 - 1, got {version!r}")
    newest = schemas.newest_official(domain)
    if version is not None and newest is not None and version > newest:
        raise EditError(
            f"the installed onnx package knows {shown} up to version {newest}, so what operators mean in {version} is "
            f"not known: give a version up to {newest}, or install a newer onnx package"
        )
    imports = (root.proto if root.is_function else graph.proto).opset_import
    known = any(canonical(entry.domain) == canonical(domain) for entry in imports)
    if version is None and not known:
        raise EditError(f"{shown} is not imported, so it cannot be taken away")
    nodes = list(graph.index.of_domain(domain, root))
    if version is None and nodes:
        raise EditError(f"{len(nodes)} nodes use {shown} ({graph.label(nodes[0])} first); remove or change them before")
    before = {node.id: set(node_problems(graph, node)) for node in nodes}
    with graph.edit() as edit:
        import_opset(graph, edit, domain, version, root)
        _refuse_misfits(graph, nodes, before, f"{shown} {version}")


def import_opset(graph: ModelGraph, edit: Transaction, domain: str, version: int | None, root: Scope) -> None:
    """Import another version of a domain in a function, or for the model; part of an edit that sees to the nodes."""
    target: Target = ("scope", root.id) if root.is_function else ("model", 0)
    imports = field_value(graph.target(target), "opset_import")
    edit.apply(SetField(target, "opset_import", _imports(imports, domain, version)))


def _imports(
    imports: tuple[onnx.OperatorSetIdProto, ...], domain: str, version: int | None
) -> tuple[onnx.OperatorSetIdProto, ...]:
    entries = []
    replaced = False
    for entry in imports:
        if canonical(entry.domain) != canonical(domain):
            entries.append(entry)
        elif version is not None and not replaced:
            entries.append(onnx.OperatorSetIdProto(domain=entry.domain, version=version))
            replaced = True
    if version is not None and not replaced:
        entries.append(onnx.OperatorSetIdProto(domain=domain, version=version))
    return tuple(entries)


def _refuse_misfits(graph: ModelGraph, nodes: list[NodeRecord], before: Mapping[int, set[str]], version: str) -> None:
    problems = []
    for node in nodes:
        schema = graph.schema(node)
        called = function_key(node.proto) in graph.index.functions
        gone = schema is None or schema.removed or (schema.runtime and node.domain in schemas.OFFICIAL)
        if not called and gone and schemas.versions(node.domain, node.op_type):
            problems.append(f"{graph.label(node)}: there is no {node.op_type} in it.")
        problems += [problem for problem in node_problems(graph, node) if problem not in before[node.id]]
    if problems:
        more = f" … and {len(problems) - 5} more." if len(problems) > 5 else ""
        raise EditError(
            f"{len(problems)} nodes do not fit {version}: {' '.join(problems[:5])}{more} Or convert: convert_opset."
        )


BINDING = {
    "variable": Parameter("name", "Variable", "An initializer of the algorithm or of the model."),
    "output": Parameter("text?", "Output", "It is assigned to the variable. Empty takes the binding away."),
    "initialization": Parameter("bool", "Of the initialization, before the first step", default=False),
    "training": Parameter("int", default=0),
}
"""Parameters of a binding."""


@recorded
def set_binding(
    graph: ModelGraph, variable: str, output: str | None, initialization: bool = False, training: int = 0
) -> None:
    """Assign an output of the algorithm to an initializer after each step, or one of the initialization before them.

    Args:
        graph: the graph of a model with training information.
        variable: an initializer of the algorithm, or else of the model.
        output: an output of the algorithm or the initialization; None removes the binding.
        initialization: whether `output` is an output of the initialization.
        training: position in training_info.

    Raises:
        EditError: there is no such initializer or output.
    """
    count = len(graph.header.training_info)
    if not 0 <= training < count:
        raise EditError(f"the model has {count} entries of training_info, and none at place {training}")
    field = "initialization_binding" if initialization else "update_binding"
    bindings = field_value(graph.target(("training", training)), field)
    remaining = tuple(entry for entry in bindings if entry.key != variable)
    if output is None:
        if len(remaining) == len(bindings):
            raise EditError(f"{variable!r} is bound to nothing, so no binding can be removed")
        graph.apply(SetField(("training", training), field, remaining))
        return
    entry = onnx.StringStringEntryProto(key=variable, value=output)
    bound = graph.values.get(bound_value(graph, training, field, entry, "key"))
    if bound is None or bound.initializer is None:
        raise EditError(f"{variable!r} is no initializer of the model or of the algorithm")
    if not (value := graph.values.get(bound_value(graph, training, field, entry, "value"))) or not value.is_output:
        raise EditError(f"{output!r} is no output of the {BINDINGS[field]}")
    graph.apply(SetField(("training", training), field, (*remaining, entry)))
