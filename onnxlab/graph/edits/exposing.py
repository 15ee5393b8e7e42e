"""Make values outputs of the model, those inside bodies and functions too: carried out scope by scope."""

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertFormal, InsertNode, SetAttribute, SetOutputs
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.extraction import Declaration
from onnxlab.graph.edits.formals import declare_output
from onnxlab.graph.edits.naming import FreshNames
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.ops import find_traits

_BY_SCAN_OUTPUT = ("scan_output_axes", "scan_output_directions")


@recorded
def add_output(
    graph: ModelGraph, value: ValueRecord, declaration: Declaration | None = None, position: int | None = None
) -> list[ValueRecord]:
    """Make a value an output of the main graph; returns the outputs.

    A value of a function becomes an output of the function and of each call. A value in the body of a Loop or Scan is
    collected over the iterations, with their number as its first dim; in the body of a SequenceMap, into a sequence.

    Args:
        declaration: returns the inferred declaration of a value id, for new outputs.
        position: position of the first new output among the outputs; default: the end.

    Raises:
        EditError: the value is an output already, is made in only one branch of an If, or is in a function that is
            never called.
    """
    known = (declaration or (lambda vid: graph.values[vid].info))(value.id)
    if value.scope == graph.main.id:
        declare_output(graph, value, known, position)
        return [value]
    kind = onnx.TypeProto()
    if known is not None:
        kind.CopyFrom(known.type)
    with graph.edit():
        outers = _carried_out(graph, value, kind)
        if not outers:
            raise EditError(f"no node calls the function that makes {value.name!r}, so there is nothing to return")
        for number, (outer, outer_kind) in enumerate(outers):
            info = onnx.ValueInfoProto(name=outer.name, type=outer_kind)
            if not any(scope == graph.main.id for scope, _ in outer.formal_outputs):
                declare_output(graph, outer, info, None if position is None else position + number)
    return [outer for outer, _ in outers]


def _carried_out(
    graph: ModelGraph, value: ValueRecord, kind: onnx.TypeProto
) -> list[tuple[ValueRecord, onnx.TypeProto]]:
    """Values of the main graph that hold what a value was, with their types."""
    waiting: list[tuple[ValueRecord, onnx.TypeProto, frozenset[int]]] = [(value, kind, frozenset())]
    carried = []
    while waiting:
        inner, inner_kind, left = waiting.pop()
        scope = graph.scopes[inner.scope]
        if scope.id == graph.main.id:
            carried.append((inner, inner_kind))
        elif scope.id in left:
            raise EditError(
                f"{graph.scope_path(scope)} calls itself, so what it makes cannot be returned; break the circle"
            )
        elif scope.is_function:
            waiting += [(outer, inner_kind, left | {scope.id}) for outer in _returned(graph, inner, scope)]
        else:
            waiting.append((*_collected(graph, inner, inner_kind, scope), left))
    return carried[::-1]


def _returned(graph: ModelGraph, value: ValueRecord, scope: Scope) -> list[ValueRecord]:
    """The outputs of a function's calls for a value of it, which becomes an output of the function if it is none."""
    slot = next((at for where, at in value.formal_outputs if where == scope.id), -1)
    if slot < 0:
        slot = len(scope.outputs)
        graph.apply(InsertFormal(scope.id, "output", slot, _own(graph, value, scope).name))
    return [_output(graph, call, slot, value.name) for call in list(graph.index.calls(scope))]


def _collected(
    graph: ModelGraph, value: ValueRecord, kind: onnx.TypeProto, scope: Scope
) -> tuple[ValueRecord, onnx.TypeProto]:
    """The output of a node for a value of its body, which becomes a further output of the body."""
    if not scope.owner:
        raise EditError(f"{value.name!r} belongs to the graph of a training step, which gives nothing to the model")
    owner = graph.nodes[scope.owner]
    label = graph.label(owner)
    if not find_traits(owner.domain, owner.op_type).iterates:
        raise EditError(
            f"{value.name!r} is made in one branch of {label} ({owner.op_type}) alone, so the model cannot return it; "
            f"run(outputs=[{graph.scope_path(scope) + '/' + value.name!r}]) shows what it was"
        )
    if kind.WhichOneof("value") not in (None, "tensor_type"):
        raise EditError(f"{value.name!r} is no tensor, so {label} ({owner.op_type}) cannot collect it")
    slot = len(scope.outputs)
    inner = _own(graph, value, scope)
    graph.apply(InsertFormal(scope.id, "output", slot, onnx.ValueInfoProto(name=inner.name, type=kind)))
    if owner.op_type == "Scan":
        _add_scan_output(graph, owner)
    output = _output(graph, owner, slot - (owner.op_type == "Loop"), value.name)
    return output, _stacked(kind, owner.op_type == "SequenceMap")


def _own(graph: ModelGraph, value: ValueRecord, scope: Scope) -> ValueRecord:
    """A value that a node computes and that is no output yet: itself, or a copy of an input, initializer or output."""
    if value.producer and not value.formal_outputs:
        return value
    name = FreshNames(graph, scope).value(f"{value.name}_copy")
    identity = onnx.NodeProto(op_type="Identity", input=[value.name], output=[name])
    graph.apply(InsertNode(scope.id, len(scope.node_ids), identity))
    return graph.values[scope.names[name]]


def _output(graph: ModelGraph, node: NodeRecord, slot: int, name: str) -> ValueRecord:
    """The value that a node makes in an output slot, under a fresh name where it makes none yet."""
    names = list(node.proto.output)
    names += [""] * (slot + 1 - len(names))
    if not names[slot]:
        scope = graph.scopes[node.scope]
        names[slot] = FreshNames(graph, scope).value(f"{graph.label(node)}/{name}")
        graph.apply(SetOutputs(node.id, tuple(names)))
    return graph.values[node.outputs[slot]]


def _add_scan_output(graph: ModelGraph, node: NodeRecord) -> None:
    """One more axis and direction, where a Scan lists them."""
    for attribute in list(node.proto.attribute):
        if attribute.name in _BY_SCAN_OUTPUT:
            longer = onnx.AttributeProto()
            longer.CopyFrom(attribute)
            longer.ints.append(0)
            graph.apply(SetAttribute(node.id, attribute.name, longer))


def _stacked(kind: onnx.TypeProto, sequence: bool) -> onnx.TypeProto:
    """The type of a tensor collected over iterations: one more dim in front, or a sequence of it."""
    outer = onnx.TypeProto()
    if sequence:
        outer.sequence_type.elem_type.CopyFrom(kind)
        return outer
    outer.CopyFrom(kind)
    if kind.tensor_type.HasField("shape"):
        dims = outer.tensor_type.shape.dim
        del dims[:]
        dims.add()
        dims.extend(kind.tensor_type.shape.dim)
    return outer
