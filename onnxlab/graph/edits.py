"""What people ask to have done, as lists of primitive changes. Each is one undo step, or part of the open one."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from onnxlab.errors import EditError
from onnxlab.graph import tensors
from onnxlab.graph.attributes import encode
from onnxlab.graph.changes import (
    InsertFormal,
    InsertNode,
    RemoveFormal,
    RemoveNode,
    RenameValue,
    SetAttribute,
    SetField,
    SetFormal,
    SetInitializer,
    SetInputs,
)
from onnxlab.graph.names import suggestion
from onnxlab.graph.records import NodeRecord, Scope, ValueRecord

if TYPE_CHECKING:
    from onnxlab.graph.modelgraph import ModelGraph


def set_attribute(graph: "ModelGraph", node: NodeRecord, name: str, value: Any, origin: Any = None) -> None:
    """Give an attribute a value of the type that the operator's schema says.

    Raises:
        EditError: the operator has no such attribute, or the value does not fit it; nothing changed.
    """
    kind = _attribute_kind(graph, node, name)
    proto = encode(name, value, kind, node.op_type)
    _check_choices(graph, node, proto)
    graph.apply(SetAttribute(node.id, name, proto), label=f"set {name} of {graph.label(node)}", origin=origin)


def clear_attribute(graph: "ModelGraph", node: NodeRecord, name: str, origin: Any = None) -> None:
    """Take an attribute away, so that its default holds.

    Raises:
        EditError: it is not set, or the operator requires it.
    """
    if all(attribute.name != name for attribute in node.proto.attribute):
        raise EditError(f"{graph.label(node)} does not set {name!r}")
    graph.apply(SetAttribute(node.id, name, None), label=f"clear {name} of {graph.label(node)}", origin=origin)


def _attribute_kind(graph: "ModelGraph", node: NodeRecord, name: str) -> str | None:
    schema = graph.schema(node)
    if schema is None or (node.domain, node.op_type, node.proto.overload) in graph.index.functions:
        return None
    spec = schema.attributes.get(name)
    if spec is None:
        known = ", ".join(schema.attributes) or "none"
        raise EditError(
            f"{node.op_type} has no attribute {name!r} (it takes {known})."
            f"{suggestion(name, schema.attributes)} The node stays as it was."
        )
    return spec.type


def _check_choices(graph: "ModelGraph", node: NodeRecord, proto: onnx.AttributeProto) -> None:
    schema = graph.schema(node)
    spec = schema.attributes.get(proto.name) if schema else None
    if spec is None or not spec.choices or proto.ref_attr_name:
        return
    given = [proto.s] if spec.type == "string" else list(proto.strings)
    for item in given:
        if item.decode(errors="replace") not in spec.choices:
            raise EditError(
                f"attribute {proto.name!r} of {node.op_type} is one of {', '.join(spec.choices)}; "
                f"got {item.decode(errors='replace')!r}. The old value stays."
            )


def rename_node(graph: "ModelGraph", node: NodeRecord, name: str, origin: Any = None) -> None:
    """Give a node another name. ONNX Runtime wants node names to be unique, so a name in use is refused."""
    if not isinstance(name, str):
        raise EditError(f"a node's name is a string, got {name!r}")
    scope = graph.scopes[node.scope]
    if name and name != node.name and graph.nodes_called(scope, name):
        raise EditError(f"another node is called {name!r} already; choose a name that is not in use")
    graph.apply(SetField(("node", node.id), "name", name), label=f"rename {graph.label(node)} to {name}", origin=origin)


def rename_value(graph: "ModelGraph", value: ValueRecord, name: str, origin: Any = None) -> None:
    """Give a value another name wherever the model mentions it, captures in bodies included.

    Raises:
        EditError: the name is empty or in use in its scope, outside of it or in a body inside it.
    """
    if not isinstance(name, str) or not name:
        raise EditError(f"a value's name is a string that is not empty, got {name!r}")
    if name == value.name:
        return
    scope = graph.scopes[value.scope]
    taken = graph.index.lookup(scope, name) or any(
        name in inner.names for inner in graph.scopes.values() if graph.index.is_inside(inner.id, scope.id)
    )
    if taken:
        raise EditError(f"another value is called {name!r} already; choose a name that is not in use")
    graph.apply(RenameValue(value.id, name), label=f"rename {value.name} to {name}", origin=origin)


def set_operator(graph: "ModelGraph", node: NodeRecord, op_type: str, domain: str | None = None) -> None:
    """Make a node another operator with the same inputs and outputs; attributes that it does not know are dropped."""
    with graph.edit(f"make {graph.label(node)} a {op_type}") as edit:
        edit.apply(SetField(("node", node.id), "op_type", op_type))
        if domain is not None:
            edit.apply(SetField(("node", node.id), "domain", domain or None))
        schema = graph.schema(node)
        if schema is not None:
            for attribute in list(node.proto.attribute):
                if attribute.name not in schema.attributes:
                    edit.apply(SetAttribute(node.id, attribute.name, None))


def set_input(graph: "ModelGraph", node: NodeRecord, slot: int, name: str, origin: Any = None) -> None:
    """Let an input slot of a node read the value called `name`; "" leaves an optional input out.

    Raises:
        EditError: no such value is visible from the node, or the edge would close a cycle.
    """
    scope = graph.scopes[node.scope]
    if name and not graph.index.lookup(scope, name):
        raise EditError(f"no value is called {name!r} where {graph.label(node)} stands.{suggestion(name, scope.names)}")
    names = list(node.proto.input)
    names += [""] * (slot + 1 - len(names))
    names[slot] = name
    while names and not names[-1]:
        names.pop()
    label = f"rewire input {slot} of {graph.label(node)}"
    graph.apply(SetInputs(node.id, tuple(names)), label=label, origin=origin)


def remove_nodes(graph: "ModelGraph", nodes: Sequence[NodeRecord], bypass: bool = False, origin: Any = None) -> None:
    """Remove nodes. With `bypass` the readers of a node's first output read its first input instead.

    Raises:
        EditError: something outside still reads what a node makes and there is no bypass; nothing changed.
    """
    count = len(nodes)
    what = graph.label(nodes[0]) if count == 1 else f"{count} nodes"
    with graph.edit(f"{'bypass' if bypass else 'remove'} {what}", origin):
        for node in sorted(nodes, key=lambda node: (node.scope, -graph.index.rank(node))):
            if node.id not in graph.nodes:
                continue  # it went with the body of a node that was removed before
            if bypass:
                _bypass(graph, node)
            else:
                graph.apply(RemoveNode(node.id))


def _bypass(graph: "ModelGraph", node: NodeRecord) -> None:
    """Remove a node and join its first input to the readers of its first output."""
    label = graph.label(node)
    read = [graph.values[vid] for vid in node.outputs if vid and _is_read(graph.values[vid])]
    if not read:
        graph.apply(RemoveNode(node.id))
        return
    output = read[0]
    if len(read) > 1 or output.id != node.outputs[0]:
        others = ", ".join(repr(value.name) for value in read if value.id != node.outputs[0])
        raise EditError(f"{label} cannot be bypassed: {others} would lose its producer; rewire its readers first")
    source = _data_input(graph, node)
    if source is None:
        raise EditError(f"{label} cannot be bypassed: it has no input to put in the place of {output.name!r}")
    if output.formal_outputs:
        _bypass_to_output(graph, node, source, output)
        return
    graph.apply(*_read_instead(graph, output, source.name), RemoveNode(node.id))


def _is_read(value: ValueRecord) -> bool:
    return bool(value.uses or value.formal_outputs)


def _data_input(graph: "ModelGraph", node: NodeRecord) -> ValueRecord | None:
    """The input that a bypass keeps: the first that is not an initializer, else the first."""
    inputs = [graph.values[vid] for vid in node.inputs if vid]
    return next((value for value in inputs if value.initializer is None), inputs[0] if inputs else None)


def _read_instead(graph: "ModelGraph", old: ValueRecord, name: str) -> Iterable[SetInputs]:
    """Let every reader of a value read another one."""
    for reader in dict.fromkeys(node for node, _ in old.uses):
        proto = graph.nodes[reader].proto
        yield SetInputs(reader, tuple(name if given == old.name else given for given in proto.input))


def _bypass_to_output(graph: "ModelGraph", node: NodeRecord, source: ValueRecord, output: ValueRecord) -> None:
    """Bypass a node that makes an output of the graph, whose name has to stay.

    What makes the input takes over the name where it can; a graph input, an initializer, a value of an outer scope or
    another output cannot be renamed, so there an Identity node carries the value on.
    """
    if source.producers and source.scope == node.scope and not source.formal_outputs:
        name = output.name
        readers = list(_read_instead(graph, output, source.name))
        position = graph.scopes[node.scope].position(node)
        graph.apply(*readers, RemoveNode(node.id))
        _adopt_name(graph, source, name, position)
        return
    identity = onnx.NodeProto(op_type="Identity", name=node.name, input=[source.name], output=[output.name])
    position = graph.scopes[node.scope].position(node)
    graph.apply(RemoveNode(node.id), InsertNode(node.scope, position, identity))


def _adopt_name(graph: "ModelGraph", value: ValueRecord, name: str, position: int) -> None:
    """Rename a value to that of a graph output which nothing makes any more, and make it that output."""
    scope = graph.scopes[value.scope]
    outputs = scope.proto.output
    formals = [index for index in range(len(outputs)) if _formal_name(outputs[index]) == name]
    if not formals:
        raise EditError(f"{name!r} is read by the body of a node; rewire it there first")
    infos = [outputs[index] for index in formals]
    for index in reversed(formals):
        graph.apply(RemoveFormal(scope.id, "output", index))
    graph.apply(RenameValue(value.id, name))
    for index, info in zip(formals, infos, strict=True):
        graph.apply(InsertFormal(scope.id, "output", index, info, {name: value.id}))


def _formal_name(info: Any) -> str:
    return info if isinstance(info, str) else str(info.name)


def add_node(
    graph: "ModelGraph", proto: onnx.NodeProto, scope: Scope | None = None, position: int | None = None
) -> NodeRecord:
    """Put a node into a scope: where `position` says, else right behind the last node that makes one of its inputs.

    Raises:
        EditError: an input is unknown, an output name is taken, or the node does not fit its operator's schema.
    """
    scope = scope or graph.main
    for name in proto.input:
        if name and not graph.index.lookup(scope, name):
            raise EditError(f"no value is called {name!r}.{suggestion(name, scope.names)}")
    if position is None:
        position = 0
        for name in proto.input:
            value = graph.values.get(graph.index.lookup(scope, name)) if name else None
            if value and value.producer and value.scope == scope.id:
                position = max(position, scope.position(graph.nodes[value.producer[0]]) + 1)
    with graph.edit(f"add {proto.name or proto.op_type}") as edit:
        removal = edit.apply(InsertNode(scope.id, position, proto))
    return graph.nodes[removal.node]


def set_shape(graph: "ModelGraph", value: ValueRecord, shape: Sequence[int | str | None], origin: Any = None) -> None:
    """Declare the shape of a graph input or output: integers, names of dynamic dims, None for unknown ones.

    Raises:
        EditError: the value declares no tensor type, or a dim is negative or of another type.
    """
    scope = graph.scopes[value.scope]
    kind, position = _formal_of(graph, scope, value)
    info = onnx.ValueInfoProto()
    info.CopyFrom(getattr(scope.proto, kind)[position])
    if not info.type.HasField("tensor_type"):
        raise EditError(f"{value.name!r} declares no tensor type, so it cannot be given a shape")
    dims = info.type.tensor_type.shape
    del dims.dim[:]
    dims.SetInParent()
    for axis, dim in enumerate(shape):
        entry = dims.dim.add()
        if isinstance(dim, str) and dim:
            entry.dim_param = dim
        elif isinstance(dim, int | np.integer) and not isinstance(dim, bool) and dim >= 0:
            entry.dim_value = int(dim)
        elif dim is not None:
            raise EditError(f"dim {axis} of {value.name!r} is an integer ≥ 0, a name or None; got {dim!r}")
    graph.apply(SetFormal(scope.id, kind, position, info), label=f"set shape of {value.name}", origin=origin)


def _formal_of(graph: "ModelGraph", scope: Scope, value: ValueRecord) -> tuple[Any, int]:
    if not scope.is_function:
        if value.id in scope.inputs:
            return "input", scope.inputs.index(value.id)
        if (formal := next((out for out in value.formal_outputs if out[0] == scope.id), None)) is not None:
            return "output", formal[1]
    raise EditError(f"{value.name!r} is no input or output of a graph; only those declare a shape of their own")


def add_output(graph: "ModelGraph", value: ValueRecord, info: onnx.ValueInfoProto | None = None) -> None:
    """Make a value of the main graph an output of it. `info` declares its type; else what is known of it is copied.

    Raises:
        EditError: it is an output already, or belongs to another scope.
    """
    scope = graph.main
    if value.scope != scope.id:
        raise EditError(f"{value.name!r} belongs to an inner scope; only values of the main graph can become outputs")
    if any(out[0] == scope.id for out in value.formal_outputs):
        raise EditError(f"{value.name!r} is an output already")
    declared = onnx.ValueInfoProto()
    declared.CopyFrom(info or value.info or onnx.ValueInfoProto())
    declared.name = value.name
    change = InsertFormal(scope.id, "output", len(scope.outputs), declared)
    graph.apply(change, label=f"make {value.name} an output")


def remove_output(graph: "ModelGraph", value: ValueRecord) -> None:
    """Take a value out of the main graph's outputs; the nodes that make it stay."""
    formal = next((out for out in value.formal_outputs if out[0] == graph.main.id), None)
    if formal is None:
        raise EditError(f"{value.name!r} is no output of the graph")
    graph.apply(RemoveFormal(graph.main.id, "output", formal[1]), label=f"remove output {value.name}")


def set_initializer(graph: "ModelGraph", value: ValueRecord, array: "np.ndarray[Any, Any] | onnx.TensorProto") -> None:
    """Replace the data of an initializer; dtype and shape may change.

    Raises:
        EditError: the value is no initializer, or `array` is no array.
    """
    if value.initializer is None:
        raise EditError(f"{value.name!r} is no initializer; only initializers hold data")
    if isinstance(array, onnx.TensorProto):
        tensor = onnx.TensorProto()
        tensor.CopyFrom(array)
    elif isinstance(array, np.ndarray | np.generic | int | float | list):
        tensor = tensors.from_array(np.asarray(array))
    else:
        raise EditError(f"an initializer takes a NumPy array or TensorProto, got {type(array).__name__}")
    tensor.name = value.name
    sparse = isinstance(value.initializer, onnx.SparseTensorProto)
    with graph.edit(f"replace {value.name}") as edit:
        if sparse:
            edit.apply(SetInitializer(value.scope, value.name, None, sparse=True))
        edit.apply(SetInitializer(value.scope, value.name, tensor))
