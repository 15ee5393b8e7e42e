"""Agreement of two models before nodes of one may stand in the other: opset versions and functions."""

from collections.abc import Iterable

import onnx

from onnxlab import schemas
from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertFunction, SetField, field_value
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.index import FunctionKey, function_key
from onnxlab.graph.index.records import Scope
from onnxlab.graph.protos.renaming import Renaming, canonical, nodes_inside
from onnxlab.graph.state.change_tracker import Target


def adopt_opsets(
    graph: ModelGraph,
    imports: Iterable[onnx.OperatorSetIdProto],
    nodes: Iterable[onnx.NodeProto],
    scope: Scope,
    source: str,
) -> None:
    """Import what `nodes` need where `scope` is; part of the open edit.

    A domain that is imported at another version is accepted where every operator means the same in both versions.

    Raises:
        EditError: operators differ between the two versions; the message names them.
    """
    root = graph.root(scope)
    target: Target = ("scope", root.id) if root.is_function else ("model", 0)
    ours = field_value(graph.target(target), "opset_import")
    our_versions = {canonical(entry.domain): entry.version for entry in ours}
    their_versions = {canonical(entry.domain): entry.version for entry in imports}
    used = {(canonical(node.domain), node.op_type) for node in nodes}
    missing = []
    for domain in sorted({domain for domain, _ in used}):
        version = their_versions.get(domain)
        if version is None:
            continue  # a call of a function needs no import that the source did not have
        if domain not in our_versions:
            missing.append(onnx.OperatorSetIdProto(domain=domain, version=version))
        elif our_versions[domain] != version:
            _refuse_different(
                domain, our_versions[domain], version, [op for where, op in used if where == domain], source
            )
    for entry in missing:
        ours = (*ours, entry)
        graph.apply(SetField(target, "opset_import", ours))


def _refuse_different(domain: str, our_version: int, their_version: int, operators: list[str], source: str) -> None:
    differ = []
    for op_type in sorted(operators):
        ours, theirs = schemas.find(domain, op_type, our_version), schemas.find(domain, op_type, their_version)
        if ours is not theirs and (ours is None or theirs is None or ours.since_version != theirs.since_version):
            differ.append(op_type)
    if differ:
        raise EditError(
            f"{source} uses {domain or 'ai.onnx'} {their_version}, the model {our_version}, and "
            f"{', '.join(differ[:8])} differ between the two; convert one of them first, as in "
            f"model.convert_opset({max(our_version, their_version)})"
        )


def adopt_functions(
    graph: ModelGraph, functions: Iterable[onnx.FunctionProto], nodes: Iterable[onnx.NodeProto], source: str
) -> dict[FunctionKey, FunctionKey]:
    """Add functions to the model, part of the open edit; return the new key of each that had to be renamed.

    Where the model has an equal function, that one is used. A function gets a new name where the model has another
    function or an operator of its name, or where it calls one that got a new name.

    Args:
        nodes: the nodes besides those of the functions that come with them.

    Raises:
        EditError: an operator among the nodes is a function of this model, or operators in a function differ between
            the opset versions.
    """
    added = {function_key(function): function for function in functions}
    inside = {key: all_nodes(function.node) for key, function in added.items()}
    calls = {key: {function_key(node) for node in inner} for key, inner in inside.items()}
    present = {key: graph.scopes[ident].proto for key, ident in graph.index.functions.items()}
    if shadowed := ({*map(function_key, nodes)}.union(*calls.values()) & present.keys()) - added.keys():
        path = "::".join(filter(None, min(shadowed)))
        raise EditError(
            f"{source} has an operator {path}, which is a function of this model; replace its calls first, as in "
            f"model.inline(function={path!r})"
        )
    used = {function_key(node.proto) for node in graph.nodes.values()} if added else set()
    operators, in_use = used - present.keys(), {*present, *added, *used}
    renamed: dict[FunctionKey, FunctionKey] = {}
    while differing := [
        key for key, function in added.items()
        if key not in renamed
        and (key in operators or present.get(key, function) != function or calls[key] & renamed.keys())
    ]:  # fmt: skip
        for key in differing:
            renamed[key] = _free(key, in_use)
    for key, function in added.items():
        if key in renamed or key not in present:
            adopt_opsets(graph, function.opset_import, inside[key], graph.main, f"the function {'::'.join(key[:2])}")
            graph.apply(InsertFunction(len(graph.index.function_ids), _renamed(function, renamed)))
    return renamed


def _free(key: FunctionKey, in_use: set[FunctionKey]) -> FunctionKey:
    """A key that no function or operator has, which is in use from then on."""
    domain, name, overload = key
    number = 1
    while (free := (domain, f"{name}_{number}", overload)) in in_use:
        number += 1
    in_use.add(free)
    return free


def _renamed(function: onnx.FunctionProto, renamed: dict[FunctionKey, FunctionKey]) -> onnx.FunctionProto:
    """A copy under its new name, with calls under theirs."""
    copy = onnx.FunctionProto()
    copy.CopyFrom(function)
    copy.name = renamed.get(function_key(function), function_key(function))[1]
    if renamed:
        nodes = [Renaming({}, operators=renamed).node(node) for node in copy.node]
        del copy.node[:]
        copy.node.extend(nodes)
    return copy


def adopt_configurations(graph: ModelGraph, configurations: Iterable[onnx.DeviceConfigurationProto]) -> dict[str, str]:
    """Add device configurations to the model, part of the open edit; return the new names of those renamed.

    Where the model has an equal configuration, that one is used.
    """
    ours = list(field_value(graph.header, "configuration"))
    names = {configuration_of_ours.name: configuration_of_ours for configuration_of_ours in ours}
    renamed: dict[str, str] = {}
    added = []
    for configuration in configurations:
        known = names.get(configuration.name)
        if known == configuration:
            continue
        copy = onnx.DeviceConfigurationProto()
        copy.CopyFrom(configuration)
        number = 1
        while copy.name in names:
            copy.name, number = f"{configuration.name}_{number}", number + 1
        if known is not None:
            renamed[configuration.name] = copy.name
        names[copy.name] = copy
        added.append(copy)
    if added:
        graph.apply(SetField(("model", 0), "configuration", (*ours, *added)))
    return renamed


def raise_ir_version(graph: ModelGraph, least: int) -> None:
    """Let the model say that it needs an IR version at least; part of the open edit."""
    if graph.proto.ir_version < least:
        graph.apply(SetField(("model", 0), "ir_version", least))


def all_nodes(nodes: Iterable[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Nodes and all nodes in their bodies."""
    return list(nodes_inside(nodes))
