"""Edits of what a graph or function takes and gives: inputs, outputs, and the types that they declare."""

from collections.abc import Sequence
from typing import Any, Literal

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertFormal, RemoveFormal, SetFormal
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.records import Scope, ValueRecord
from onnxlab.graph.protos.value_info import elem_type_of, fill_dim, fill_shape, unnamed_dim

Kind = Literal["input", "output"]

_LISTED = 8
"""Names of dims that a refusal lists."""


@recorded
def set_shape(graph: ModelGraph, value: ValueRecord, shape: Sequence[int | str | None]) -> None:
    """Declare the shape of a graph input or output: integers, names of dynamic dims, None for unknown ones.

    Raises:
        EditError: the value declares no tensor type, or a dim is negative or of another type.
    """
    scope, kind, position, info = _declaration(graph, value)
    if not info.type.HasField("tensor_type"):
        raise EditError(f"{value.name!r} declares no tensor type, so it cannot be given a shape")
    fill_shape(info, shape)
    graph.apply(SetFormal(scope.id, kind, position, info))


@recorded
def set_dim(graph: ModelGraph, value: ValueRecord, axis: int, dim: int | str | None) -> None:
    """Change one dimension of a graph input or output: an integer, a name to make it dynamic, None for unknown.

    Raises:
        EditError: no shape is declared, the shape has no such axis, or the dim is negative or of another type.
    """
    scope, kind, position, info = _declaration(graph, value)
    if not info.type.HasField("tensor_type") or not info.type.tensor_type.HasField("shape"):
        raise EditError(f"{value.name!r} declares no shape; give it one with set_shape")
    dims = info.type.tensor_type.shape.dim
    if not -len(dims) <= axis < len(dims):
        raise EditError(f"{value.name!r} has {len(dims)} dims, so there is no axis {axis}")
    fill_dim(dims[axis], dim, axis % len(dims), value.name)
    graph.apply(SetFormal(scope.id, kind, position, info))


@recorded
def set_dtype(graph: ModelGraph, value: ValueRecord, dtype: Any) -> None:
    """Declare the element type of a graph input or output: a name ("float16"), a NumPy dtype or a DataType.

    Raises:
        EditError: the value declares no tensor type, or ONNX has no such element type.
    """
    scope, kind, position, info = _declaration(graph, value)
    if not info.type.HasField("tensor_type"):
        raise EditError(f"{value.name!r} declares no tensor type, so it has no element type")
    info.type.tensor_type.elem_type = elem_type_of(dtype)
    graph.apply(SetFormal(scope.id, kind, position, info))


@recorded
def replace_dim(
    graph: ModelGraph, old: int | str, new: int | str | None, axis: int | None = None,
    values: Sequence[ValueRecord] | None = None,
) -> int:  # fmt: skip
    """Let a dim be another one wherever the main graph declares it; returns how many declarations changed.

    Args:
        old: a name that inputs and outputs declare, "X.0" for axis 0 of X where it has none, or a size that inputs
            declare on `axis`.
        new: a size, a name for a dynamic dim, or None for an unknown one.
        axis: the only axis to change; None for all.
        values: the only inputs and outputs to change; None for all.

    Raises:
        EditError: no input or output declares `old`, a size was given without an axis, or `new` is no dim.
    """
    if isinstance(old, int) and axis is None:
        raise EditError(f"many dims may be {old}: give the axis of the inputs whose dim shall become {new!r}")
    scope, changed = graph.main, 0
    chosen = None if values is None else {value.id for value in values}
    sides: tuple[tuple[Kind, Sequence[int], Any], ...] = (
        ("input", scope.inputs, scope.proto.input),
        ("output", scope.outputs, scope.proto.output),
    )
    with graph.edit() as edit:
        for kind, ids, infos in sides if isinstance(old, str) else sides[:1]:
            for position, vid in enumerate(ids):
                if chosen is not None and vid not in chosen:
                    continue
                info = onnx.ValueInfoProto()
                info.CopyFrom(infos[position])
                if _replace_in(info, old, new, axis):
                    edit.apply(SetFormal(scope.id, kind, position, info))
                    changed += 1
        if not changed:
            where = "" if axis is None else f" on axis {axis}"
            others = f"; there are {', '.join(_dim_names(graph)[:_LISTED])}" if isinstance(old, str) else ""
            sort = " or output" if isinstance(old, str) else ""
            raise EditError(f"no input{sort} declares the dim {old!r}{where}{others}")
    return changed


def _dim_names(graph: ModelGraph) -> list[str]:
    """The names of the inputs' dims, or where they have none."""
    named = (
        dim.dim_param or unnamed_dim(info.name, at)
        for info in graph.main.proto.input
        for at, dim in enumerate(_dims(info))
        if not dim.HasField("dim_value")
    )
    return list(dict.fromkeys(named)) or ["none"]


def _dims(info: onnx.ValueInfoProto) -> Sequence[onnx.TensorShapeProto.Dimension]:
    return info.type.tensor_type.shape.dim


def _replace_in(info: onnx.ValueInfoProto, old: int | str, new: int | str | None, axis: int | None) -> bool:
    """Replace the dims of a declaration that are `old`; whether there were any."""
    replaced = False
    for at, dim in enumerate(_dims(info)):
        if axis not in (None, at):
            continue
        is_size = dim.HasField("dim_value")
        if (dim.dim_value if is_size else dim.dim_param or unnamed_dim(info.name, at)) == old:
            fill_dim(dim, new, at, info.name)
            replaced = True
    return replaced


def _declaration(graph: ModelGraph, value: ValueRecord) -> tuple[Scope, Kind, int, onnx.ValueInfoProto]:
    """The place of a value's declaration as input or output, and a copy of the declaration."""
    scope = graph.scopes[value.scope]
    kind: Kind | None = None
    position = 0
    if scope.is_function:
        pass
    elif value.is_input:
        kind, position = "input", scope.inputs.index(value.id)
    elif (formal := next((out for out in value.formal_outputs if out[0] == scope.id), None)) is not None:
        kind, position = "output", formal[1]
    if kind is None:
        raise EditError(f"{value.name!r} is no input or output of a graph; only those declare a shape of their own")
    info = onnx.ValueInfoProto()
    info.CopyFrom(getattr(scope.proto, kind)[position])
    return scope, kind, position, info


@recorded
def add_input(
    graph: ModelGraph, info: onnx.ValueInfoProto | str, scope: Scope | None = None, position: int | None = None
) -> ValueRecord:
    """Give a graph (default: the main graph) another input; a function takes just a name.

    Raises:
        EditError: the name is empty or in use, or the new input would shift the inputs of a function's calls.
    """
    scope = scope or graph.main
    name = info if isinstance(info, str) else info.name
    if not name:
        raise EditError("the name of the new input is empty; give it one")
    known = graph.index.lookup(scope, name)
    if known and known not in graph.index.undefined:
        raise EditError(f"a value is called {name!r} already; choose a name that is not in use")
    at = _place(scope.inputs, position, "inputs")
    if scope.is_function and at < len(scope.inputs):
        raise EditError("the calls of a function pass inputs by position; add the new one at the end")
    formal = name if scope.is_function else onnx.ValueInfoProto(name=name) if isinstance(info, str) else info
    graph.apply(InsertFormal(scope.id, "input", at, formal))
    return graph.values[scope.inputs[at]]


@recorded
def remove_input(graph: ModelGraph, value: ValueRecord) -> None:
    """Take an input away from its graph. One that has an initializer becomes a plain initializer.

    Raises:
        EditError: the value is no input, or is still read.
    """
    scope = graph.scopes[value.scope]
    if value.id not in scope.inputs:
        raise EditError(f"{value.name!r} is no input of a graph; model.inputs lists them")
    position = scope.inputs.index(value.id)
    caller = next((node for node in graph.index.calls(scope) if len(node.inputs) > position), None)
    if caller is not None:
        raise EditError(f"{graph.label(caller)} passes {value.name!r} to the function; change the calls first")
    graph.apply(RemoveFormal(scope.id, "input", position))


def declare_output(
    graph: ModelGraph, value: ValueRecord, info: onnx.ValueInfoProto | None = None, position: int | None = None,
    scope: Scope | None = None,
) -> None:  # fmt: skip
    """Let a graph (default: the main graph), body or function return a value that is visible in it.

    `info` declares the type; without it, the value's present declaration is copied. A function declares no types.

    Raises:
        EditError: the value is an output already or belongs to another scope, or would shift the outputs of calls.
    """
    scope = scope or graph.main
    if graph.index.lookup(scope, value.name) != value.id:
        where = graph.scope_path(scope)
        raise EditError(
            f"{value.name!r} is not visible in {where}, so that cannot return it" if where else
            f"{value.name!r} belongs to an inner scope; only values of the main graph can become outputs"
        )  # fmt: skip
    if any(out[0] == scope.id for out in value.formal_outputs):
        raise EditError(f"{value.name!r} is an output already; an output is listed once")
    at = _place(scope.outputs, position, "outputs")
    if scope.is_function and at < len(scope.outputs):
        raise EditError("the calls of a function take outputs by position; add the new one at the end")
    declared = onnx.ValueInfoProto()
    declared.CopyFrom(info or value.info or onnx.ValueInfoProto())
    declared.name = value.name
    formal = value.name if scope.is_function else declared
    graph.apply(InsertFormal(scope.id, "output", at, formal), label=f"make {value.name} an output")


@recorded
def remove_output(graph: ModelGraph, value: ValueRecord, scope: Scope | None = None) -> None:
    """Take a value out of the outputs of a graph (default: the main graph), body or function; its maker stays.

    Raises:
        EditError: the value is no output, or a call of the function uses this output or a later one.
    """
    scope = scope or graph.main
    position = next((at for where, at in value.formal_outputs if where == scope.id), None)
    if position is None:
        raise EditError(f"{value.name!r} is no output of {graph.scope_path(scope) or 'the graph'}")
    caller = next((node for node in graph.index.calls(scope) if len(node.outputs) > position), None)
    if caller is not None:
        raise EditError(f"{graph.label(caller)} takes {value.name!r} from the function; change the calls first")
    graph.apply(RemoveFormal(scope.id, "output", position))


def _place(formals: Sequence[int], position: int | None, plural: str) -> int:
    if position is None:
        return len(formals)
    if not 0 <= position <= len(formals):
        raise EditError(f"position {position} is not between 0 and {len(formals)}, the number of {plural}")
    return position
