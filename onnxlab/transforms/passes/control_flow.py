"""Control flow: an If with a known condition becomes its branch, and loop invariants move out of the body."""

import onnx

from onnxlab.execution.planning.inlining import truth
from onnxlab.execution.planning.loop_carried import invariant_inputs
from onnxlab.graph.edit.changes import InsertNode, RemoveNode, SetInitializer
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.protos.renaming import Renaming
from onnxlab.ops import find_traits
from onnxlab.transforms.metadata_transfer import carry_over, spoken
from onnxlab.transforms.rewriting import Rewriting

DECIDED = "decided branch"
INVARIANT = "loop invariant"
NAMES = (DECIDED, INVARIANT)

_SAFE = ("elementwise", "activation", "matrix", "normalization", "convolution", "constant")
"""Families of operators that may run even where the loop has no iteration: they fail for wrong shapes alone."""


def run(rewriting: Rewriting) -> None:
    """Replace Ifs by the branch that is always taken, then move loop invariants out of loops."""
    for node in rewriting.nodes("If"):
        if node.id in rewriting.graph.nodes:
            _decide(rewriting, node)
    loops = list(rewriting.nodes("Loop", "Scan"))
    for node in reversed(loops):  # inner ones before those around them
        if node.id in rewriting.graph.nodes:
            _read_invariant_values(rewriting, node)
            _take_out(rewriting, node)


# -- Ifs -------------------------------------------------------------------------------------------------------------


def _decide(rewriting: Rewriting, node: NodeRecord) -> None:
    graph, condition = rewriting.graph, rewriting.input(node, 0)
    known = truth(rewriting.fact(condition.id)) if condition is not None else None
    if known is None and condition is not None:
        array = rewriting.constant(condition)
        known = bool(array.reshape(())) if array is not None and array.size == 1 else None
    bodies = node.bodies.get("then_branch" if known else "else_branch")
    label, place = graph.label(node), rewriting.place(node)
    if known is None or not bodies or not rewriting.allows(DECIDED, place):
        return
    body = graph.scopes[bodies[0]]
    if any(rewriting.stays(graph.nodes[ident]) for scopes in node.bodies.values() for at in scopes
           for ident in graph.scopes[at].node_ids):  # fmt: skip
        return
    if (graph.root(body).is_function and body.proto.initializer) or body.proto.sparse_initializer:
        return
    names, extra = _outer_names(rewriting, node, body)
    facts = {new: rewriting.fact(body.names[old]) for old, new in names.items() if old in body.names}
    renaming = Renaming(names, rewriting.fresh)
    protos = [renaming.node(graph.nodes[ident].proto) for ident in graph.index.topological(body)]
    stored = [(names[tensor.name], tensor) for tensor in body.proto.initializer]
    scope = graph.scopes[node.scope]
    position = scope.position(node)
    removed, result = spoken(node.proto), next((name for name in node.proto.output if name), "")
    rewriting.remove(node)
    for name, tensor in stored:
        copy = onnx.TensorProto()
        copy.CopyFrom(tensor)
        copy.name = name
        graph.apply(SetInitializer(scope.id, name, copy))
    for number, proto in enumerate([*protos, *extra]):
        graph.apply(InsertNode(scope.id, position + number, proto))
    for name, fact in facts.items():
        if name in scope.names:
            rewriting.say(scope.names[name], fact)
    if result in scope.names:
        carry_over(graph, removed, rewriting.heir(graph.values[scope.names[result]]))
    rewriting.note(DECIDED, place, label, f"its condition is always {str(known).lower()}")


def _outer_names(rewriting: Rewriting, node: NodeRecord, body: Scope) -> tuple[dict[str, str], list[onnx.NodeProto]]:
    """The outer names of the values of a branch, and Identity nodes for outputs that have another name too."""
    graph = rewriting.graph
    produced = {name for ident in body.node_ids for name in graph.nodes[ident].proto.output if name}
    names: dict[str, str] = {}
    extra = []
    for slot, vid in enumerate(body.outputs):
        value = graph.values[vid]
        outer = node.proto.output[slot] if slot < len(node.proto.output) else ""
        if value.name in produced and value.scope == body.id and value.name not in names and outer:
            names[value.name] = outer
        elif outer:
            extra.append((value.name, outer))
    for name in [*produced, *(tensor.name for tensor in body.proto.initializer)]:
        if name not in names:
            names[name] = rewriting.fresh(name)
    copies = [onnx.NodeProto(op_type="Identity", input=[names.get(old, old)], output=[new]) for old, new in extra]
    return names, copies


# -- loops -----------------------------------------------------------------------------------------------------------


def _read_invariant_values(rewriting: Rewriting, node: NodeRecord) -> None:
    """Let a body read a loop-invariant input as the outer value that the loop gets for it."""
    graph = rewriting.graph
    snapshot = graph.snapshot()
    view = next((candidate for candidate in snapshot.scopes[node.scope].nodes if candidate.id == node.id), None)
    body = graph.scopes[node.bodies["body"][0]] if node.bodies.get("body") else None
    if view is None or body is None or rewriting.is_protected_scope(body):
        return
    for inner, outer in invariant_inputs(view, snapshot.scopes[body.id]):
        passed, value = (
            graph.values[body.names[inner]],
            graph.values[graph.index.lookup(graph.scopes[node.scope], outer)],
        )
        place = f"{rewriting.place(node)}/{inner}"
        if passed.uses and not _only_passed_on(rewriting, passed) and rewriting.allows(INVARIANT, place):
            label = graph.label(node)
            if rewriting.redirect(passed, value):
                rewriting.note(INVARIANT, place, label, f"{inner} is {outer} in every iteration")


def _only_passed_on(rewriting: Rewriting, value: ValueRecord) -> bool:
    """Whether nothing but Identity nodes to an output of the body read a value."""
    nodes = [rewriting.graph.nodes[reader] for reader, _ in value.uses]
    return all(node.op_type == "Identity" and not node.domain and node.scope == value.scope for node in nodes)


def _take_out(rewriting: Rewriting, node: NodeRecord) -> None:
    graph = rewriting.graph
    body = graph.scopes[node.bodies["body"][0]] if node.bodies.get("body") else None
    if body is None or graph.root(body).is_function or rewriting.is_protected_scope(body):
        return
    runs = _runs_for_sure(rewriting, node)
    for ident in list(graph.index.topological(body)):
        inner = graph.nodes[ident]
        traits = find_traits(inner.domain, inner.op_type)
        if inner.bodies or traits.random or traits.category in ("custom", "control", "sequence"):
            continue
        if not (runs or traits.category in _SAFE) or rewriting.is_protected(inner) or not inner.inputs:
            continue
        values = [graph.values[vid] for vid in (*inner.inputs, *inner.outputs) if vid]
        reads = values[: sum(map(bool, inner.inputs))]
        if any(value.scope == body.id for value in reads):
            continue
        if any(value.formal_outputs for value in values[len(reads) :]):
            continue
        place, label = rewriting.place(inner), graph.label(inner)
        if rewriting.allows(INVARIANT, place):
            _move_out(rewriting, inner, node)
            rewriting.note(INVARIANT, place, label, f"is computed once, before {graph.label(node)}")


def _runs_for_sure(rewriting: Rewriting, node: NodeRecord) -> bool:
    """Whether a loop has an iteration at least."""
    if node.op_type != "Loop":
        return False
    count, condition = rewriting.constant(rewriting.input(node, 0)), rewriting.input(node, 1)
    known = rewriting.constant(condition)
    return (count is not None and int(count.reshape(())) > 0) and (
        condition is None or (known is not None and bool(known.reshape(())))
    )


def _move_out(rewriting: Rewriting, inner: NodeRecord, loop: NodeRecord) -> None:
    """Put a node of a body in front of the node that the body belongs to."""
    graph, scope = rewriting.graph, rewriting.graph.scopes[loop.scope]
    facts = [rewriting.fact(vid) for vid in inner.outputs if vid]
    names = [graph.values[vid].name for vid in inner.outputs if vid]
    proto = onnx.NodeProto()
    proto.CopyFrom(inner.proto)
    graph.apply(RemoveNode(inner.id), InsertNode(scope.id, scope.position(loop), proto))
    for name, fact in zip(names, facts, strict=True):
        if name in scope.names:
            rewriting.say(scope.names[name], fact)
