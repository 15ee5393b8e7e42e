"""Changes of declarations and stored tensors as the statements that people write for them.

A change holds a whole message, although the edit may have set one dim, or an array. Candidate statements are tried on
the present message, and one is used only if it gives the message of the change, byte by byte.
"""

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
import onnx

from onnxlab import dtypes
from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertFormal, RemoveFormal, SetField, SetFormal, SetInitializer
from onnxlab.graph.index.named_entries import formal_name
from onnxlab.graph.index.records import Scope, ValueRecord
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.renaming import canonical
from onnxlab.graph.protos.value_info import declare, elem_type_of, fill_dim, fill_shape
from onnxlab.graph.state.graph_state import GraphState
from onnxlab.graph.state.names import Names

LARGEST = 64
"""Elements up to which an array is written out."""

WRITTEN_DTYPES = frozenset((
    "bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
))  # fmt: skip


Statement = Callable[[GraphState, Any], str]
"""(graph, change) -> the statement of a change that is about to be applied; "" where no statement makes it."""


def value_handle(names: Names, value: ValueRecord) -> str:
    """The expression that finds a value on another copy."""
    path = names.scope_path(names.index.scopes[value.scope], telling=True)
    if path:
        return f"model.value_at({path!r}, {value.name!r})"
    return f"model.value({value.name!r})" if value.name else _nameless(names, value)


def _nameless(names: Names, value: ValueRecord) -> str:
    """The expression of an input or output of the model without a name, which an invalid file may have."""
    main, values = names.index.main, names.index.values
    inputs = [vid for vid in main.inputs if values[vid].initializer is None]
    for field, places in (("inputs", inputs), ("outputs", main.outputs)):
        if value.id in places:
            return f"model.{field}[{places.index(value.id)}]"
    return "model.value_at('', '')"


def _declaration(graph: GraphState, change: SetFormal) -> str:
    scope = graph.scopes[change.scope]
    if scope.is_function or change.kind == "value_info":
        return ""
    value = graph.values[(scope.inputs if change.kind == "input" else scope.outputs)[change.position]]
    if value.scope != scope.id:
        return ""
    # the declaration that a handle's methods change: see `edits.formals`
    place = ("input", scope.inputs.index(value.id)) if value.is_input else ("output", _first_output(value, scope.id))
    if place != (change.kind, change.position):
        return ""
    old = getattr(scope.proto, change.kind)[change.position]
    for call, info in _sayings(old, change.info):
        if info.SerializePartialToString() == change.info.SerializePartialToString():
            return f"{value_handle(graph.names, value)}.{call}"
    return ""


def _first_output(value: ValueRecord, scope: int) -> int:
    return next((position for where, position in value.formal_outputs if where == scope), -1)


def _sayings(old: onnx.ValueInfoProto, new: onnx.ValueInfoProto) -> Iterator[tuple[str, onnx.ValueInfoProto]]:
    """Statements that may turn one declaration into another, with what they make of it, the shortest first."""
    if not (old.type.HasField("tensor_type") and new.type.HasField("tensor_type")):
        return
    now, then = new.type.tensor_type, old.type.tensor_type
    if now.elem_type != then.elem_type and now.elem_type in dtypes.ELEM_TYPES:
        declared = _copy(old)
        declared.type.tensor_type.elem_type = elem_type_of(dtypes.name(now.elem_type))
        yield f"set_dtype({dtypes.name(now.elem_type)!r})", declared
    dims = [getattr(dim, dim.WhichOneof("value") or "", None) for dim in now.shape.dim]
    try:
        for axis, (dim, before) in enumerate(zip(now.shape.dim, then.shape.dim, strict=False)):
            if dim == before:
                continue
            declared = _copy(old)
            fill_dim(declared.type.tensor_type.shape.dim[axis], dims[axis], axis, old.name)
            yield f"set_dim({axis}, {dims[axis]!r})", declared
        declared = _copy(old)
        fill_shape(declared, dims)
        yield f"set_shape({dims!r})", declared
    except EditError:
        return  # a negative dim, which no statement can set


def _formal(graph: GraphState, change: InsertFormal) -> str:
    """A new input of a graph or function, or a value that becomes an output of one."""
    scope, name = graph.scopes[change.scope], formal_name(change.info)
    arguments = {} if scope.is_function else declared_arguments(change.info)
    keywords = None if arguments is None else "".join(f", {key}={value!r}" for key, value in arguments.items())
    end = len(scope.inputs if change.kind == "input" else scope.outputs)
    if keywords is None or not name or not isinstance(name, str) or (scope.is_function and change.position != end):
        return ""
    vid = graph.index.lookup(scope, name)
    position = f", position={change.position}" if change.position != end else ""
    if change.kind == "input":
        if vid and vid not in graph.index.undefined:
            return ""
        return f"model.add_input({name!r}{keywords}{position}{_where(graph, scope)})"
    value = graph.values.get(vid)
    if value is None or _first_output(value, scope.id) >= 0:
        return ""
    if not scope.is_function and not change.info.type.HasField("tensor_type"):
        return ""  # without a type, the declaration depends on the inferred fact of the value
    subject = repr(name) if scope is graph.main else value_handle(graph.names, value)
    return f"model.add_output({subject}{keywords}{position}{_where(graph, scope)})"


def _where(graph: GraphState, scope: Scope) -> str:
    path = graph.names.scope_path(scope, telling=True)
    return f", scope={path!r}" if path else ""


def declared_arguments(info: onnx.ValueInfoProto) -> dict[str, Any] | None:
    """The dtype and shape of a declaration as arguments; None where they would not make the same bytes."""
    kind = info.type.tensor_type
    try:
        dtype = dtypes.name(kind.elem_type) if info.HasField("type") else None
        dims = [getattr(dim, dim.WhichOneof("value") or "", None) for dim in kind.shape.dim]
        shape = dims if kind.HasField("shape") else None
        declared = declare(info.name, dtype, shape)
    except (EditError, ValueError, KeyError):
        return None
    if declared.SerializePartialToString() != info.SerializePartialToString():
        return None
    return {key: value for key, value in (("dtype", dtype), ("shape", shape)) if value is not None}


def _formal_gone(graph: GraphState, change: RemoveFormal) -> str:
    scope, at = graph.scopes[change.scope], change.position
    if change.kind == "input":
        value = graph.values[scope.inputs[at]]
        called = any(len(node.inputs) > at for node in graph.index.calls(scope))
        if called or scope.inputs.index(value.id) != at:
            return ""
        return f"model.remove_input({value_handle(graph.names, value)})"
    value = graph.values[scope.outputs[at]]
    called = any(len(node.outputs) > at for node in graph.index.calls(scope))
    if called or _first_output(value, scope.id) != at:
        return ""
    return f"model.remove_output({value_handle(graph.names, value)}{_where(graph, scope)})"


def _imports(graph: GraphState, change: SetField) -> str:
    """A domain that is imported before anything is of it; other versions are said by `set_opset`."""
    kind, ident = change.target
    if change.field != "opset_import" or not isinstance(change.value, tuple):
        return ""
    root = graph.scopes[ident] if kind == "scope" else graph.main
    before = tuple((root.proto if root.is_function else graph.header).opset_import)
    *rest, last = change.value or (None,)
    if last is None or tuple(rest) != before or last.version < 1:
        return ""
    entry = onnx.OperatorSetIdProto(domain=last.domain, version=last.version)
    if last.SerializePartialToString() != entry.SerializePartialToString():
        return ""
    known = {canonical(entry.domain) for entry in before}
    if canonical(last.domain) in known or any(graph.index.of_domain(last.domain, root)):
        return ""
    return f"{imports_handle(graph, root)}[{last.domain!r}] = {last.version}"


def imports_handle(graph: GraphState, root: Scope) -> str:
    """The expression of the opset imports that hold in a main graph or function."""
    return f"model.opsets_of({graph.names.scope_path(root)!r})" if root.is_function else "model.opsets"


def _copy(info: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(info)
    return copy


def _array(graph: GraphState, change: SetInitializer) -> str:
    """An array that replaces the data of an initializer, or comes under a new name."""
    scope, tensor = graph.scopes[change.scope], change.tensor
    if isinstance(tensor, tensors.RawTensor):
        tensor = tensor.whole() if prod(tensor.message.dims) <= LARGEST else tensor.message
    if change.sparse or not isinstance(tensor, onnx.TensorProto):
        return ""
    value = graph.values.get(scope.names.get(change.name, 0))
    old = value.initializer if value is not None else None
    if value is not None and (value.is_input or not isinstance(old, onnx.TensorProto)):
        return ""
    if not (written := _written(tensor)):
        return ""
    text, array = written
    tensor_of_text = tensors.from_array(array, change.name)
    if old is not None:
        if old.HasField("doc_string"):
            tensor_of_text.doc_string = old.doc_string
        tensor_of_text.metadata_props.extend(old.metadata_props)
    if tensor_of_text.SerializePartialToString() != tensor.SerializePartialToString():
        return ""
    if value is not None:
        return f"{value_handle(graph.names, value)}.array = {text}"
    if graph.index.lookup(scope, change.name) or change.position >= 0 or scope.id != graph.main.id:
        return ""
    return f"model.add_initializer({change.name!r}, {text})"


def _written(tensor: onnx.TensorProto) -> tuple[str, "np.ndarray[Any, Any]"] | None:
    """(an expression, its value) of a small tensor of numbers."""
    if tensor.data_type not in dtypes.ELEM_TYPES or dtypes.name(tensor.data_type) not in WRITTEN_DTYPES:
        return None
    if tensor.data_location == onnx.TensorProto.EXTERNAL or prod(tensor.dims) > LARGEST:
        return None
    array = tensors.to_array(tensor)
    if array.size == 0 or not np.isfinite(array).all():
        return None
    return f"np.array({array.tolist()!r}, {str(array.dtype)!r})", array


SAYINGS: dict[type[Any], Statement] = {
    InsertFormal: _formal,
    RemoveFormal: _formal_gone,
    SetField: _imports,
    SetFormal: _declaration,
    SetInitializer: _array,
}
