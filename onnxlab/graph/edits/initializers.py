"""Edits of stored tensors: replace their data, add and remove them, make inputs of them and back."""

from typing import Any

import numpy as np
import onnx

from onnxlab import dtypes
from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertFormal, RemoveFormal, SetInitializer
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.records import Scope, ValueRecord
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.name_bytes import text
from onnxlab.graph.protos.tensors import RawTensor
from onnxlab.graph.protos.value_info import declare, describe


def expect_initializer(graph: ModelGraph, value: ValueRecord) -> None:
    """Refuse a value that stores nothing.

    Raises:
        EditError: the value is no initializer.
    """
    if value.initializer is not None:
        return
    maker = graph.nodes[value.producer[0]] if value.producer else None
    constant = maker is not None and (maker.op_type, maker.domain) == ("Constant", "")
    how = "; `producer.to_initializer()` makes one of this value of a Constant" if constant else ""
    raise EditError(f"{value.name!r} is no initializer; only initializers hold data{how}")


@recorded
def set_initializer(graph: ModelGraph, value: ValueRecord, array: Any) -> None:
    """Replace the data of an initializer; its documentation and metadata stay.

    Numbers and lists get the dtype of the initializer. An array or TensorProto may have another dtype and shape, unless
    the value is also a graph input with another declaration. External data is replaced by data in the model.

    Raises:
        EditError: the value is no initializer, or `array` is no array, or contradicts the declared input.
    """
    expect_initializer(graph, value)
    sparse = isinstance(value.initializer, onnx.SparseTensorProto)
    old = value.initializer.values if sparse else value.initializer
    tensor = _raw_tensor(array, value.name, old.data_type)
    message = tensor.message if isinstance(tensor, RawTensor) else tensor
    if not isinstance(array, onnx.TensorProto):
        if old.HasField("doc_string"):
            message.doc_string = old.doc_string
        message.metadata_props.extend(old.metadata_props)
    _check_input(value, message)
    with graph.edit() as edit:
        if sparse:
            edit.apply(SetInitializer(value.scope, value.name, None, sparse=True))
        edit.apply(SetInitializer(value.scope, value.name, tensor))
        if not sparse and isinstance(tensor, RawTensor) and tensor.array is not None:
            graph.caches.arrays[value.id] = tensor.array


def tensor_of(array: Any, name: str, data_type: int = 0) -> onnx.TensorProto:
    """A TensorProto called `name` of an array, number, list or TensorProto; `data_type` is for numbers and lists.

    Raises:
        EditError: `array` is none of these, or does not fit the type.
    """
    tensor = _raw_tensor(array, name, data_type)
    return tensor.whole() if isinstance(tensor, RawTensor) else tensor


_ARRAYS = (np.ndarray, np.generic)
_DATA = (*_ARRAYS, bool, int, float, str, list, tuple)


def _raw_tensor(array: Any, name: str, data_type: int) -> RawTensor | onnx.TensorProto:
    """The same, with the elements beside the message where the model stores raw bytes. Raises as `tensor_of`."""
    if isinstance(array, onnx.TensorProto):
        tensor = onnx.TensorProto()
        tensor.CopyFrom(array)
        tensor.name = name
        return tensor
    if not isinstance(array, _DATA):
        raise EditError(f"an initializer takes a NumPy array or TensorProto, got {type(array).__name__}")
    try:
        if isinstance(array, _ARRAYS) or not data_type:
            typed = np.asarray(array)
        elif data_type == dtypes.STRING:
            typed = np.asarray(array, object)
        else:
            typed = _exactly(np.asarray(array), dtypes.to_numpy(data_type), name)
        return tensors.raw_tensor(typed, name)
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(error, EditError):
            raise
        raise EditError(f"{name!r} cannot hold {str(array)[:60]}: {error}. The old value stays.") from None


def _exactly(numbers: "np.ndarray[Any, Any]", dtype: "np.dtype[Any]", name: str) -> "np.ndarray[Any, Any]":
    """Numbers without a type of their own as the dtype of the initializer, where that says the same."""
    if numbers.dtype.kind not in "biuf":
        raise EditError(f"{name!r} holds {dtype}, got {str(numbers.tolist())[:60]}; give numbers or an array")
    cast = numbers.astype(dtype)
    if dtype.kind in "iub" and not np.array_equal(cast, numbers):
        shown = str(numbers.tolist())[:60]
        raise EditError(f"{name!r} holds {dtype}, which cannot say {shown}; give an array of another dtype")
    return cast


def _check_input(value: ValueRecord, tensor: onnx.TensorProto) -> None:
    """Refuse a default value that is not what the input of the same name declares."""
    if not value.is_input or value.info is None or not value.info.type.HasField("tensor_type"):
        return
    declared = value.info.type.tensor_type
    if declared.elem_type and declared.elem_type != tensor.data_type:
        raise EditError(
            f"the input {value.name!r} is declared {dtypes.name(declared.elem_type)}, "
            f"the tensor is {dtypes.name(tensor.data_type)}; change the declaration first (set_dtype)"
        )
    dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in declared.shape.dim]
    fits = len(dims) == len(tensor.dims) and all(a in (None, b) for a, b in zip(dims, tensor.dims, strict=True))
    if declared.HasField("shape") and not fits:
        raise EditError(
            f"the input {value.name!r} is declared with the shape {dims}, the tensor has {list(tensor.dims)}; "
            "change the declaration first (set_shape)"
        )


@recorded
def add_initializer(graph: ModelGraph, name: str, array: Any, scope: Scope | None = None) -> ValueRecord:
    """Store a tensor under a new name, in the main graph or in a body.

    Raises:
        EditError: the name is taken, the scope is a function (which has no initializers), or `array` is no array.
    """
    scope = scope or graph.main
    refuse_function(scope, text(name))
    known = graph.index.lookup(scope, name)
    if not name or (known and known not in graph.index.undefined):
        raise EditError(f"a value is called {name!r} already; choose a name that is not in use")
    tensor = tensor_of(array, name)
    graph.apply(SetInitializer(scope.id, name, tensor))
    return graph.values[scope.names[name]]


@recorded
def remove_initializer(graph: ModelGraph, value: ValueRecord) -> None:
    """Take a stored tensor away. One that is also a graph input becomes a required input.

    Raises:
        EditError: the value is no initializer, or is still read.
    """
    expect_initializer(graph, value)
    change = SetInitializer(value.scope, value.name, None, sparse=isinstance(value.initializer, onnx.SparseTensorProto))
    graph.apply(change)


@recorded
def initializer_to_input(graph: ModelGraph, value: ValueRecord, keep_default: bool = False) -> None:
    """Make a stored tensor a graph input of its type and shape; with `keep_default` the data stays as default.

    Raises:
        EditError: the value is no initializer, or is an input already.
    """
    expect_initializer(graph, value)
    if value.is_input and keep_default:
        raise EditError(f"{value.name!r} is an input with a default already; change its array instead")
    scope = graph.scopes[value.scope]
    sparse = isinstance(value.initializer, onnx.SparseTensorProto)
    with graph.edit() as edit:
        if not value.is_input:
            edit.apply(InsertFormal(scope.id, "input", len(scope.inputs), _declared(value)))
        if not keep_default:
            edit.apply(SetInitializer(scope.id, value.name, None, sparse=sparse))


def _declared(value: ValueRecord) -> onnx.ValueInfoProto:
    """Type and shape of a stored tensor, with what value_info says of it besides."""
    stored = value.initializer
    sparse = isinstance(stored, onnx.SparseTensorProto)
    info = declare(value.name, (stored.values if sparse else stored).data_type, list(stored.dims))
    describe(info, value.info if value.info is not None else value.tensor)
    return info


@recorded
def input_to_initializer(graph: ModelGraph, value: ValueRecord, array: Any = None) -> None:
    """Store a tensor in the place of a graph input; None takes the default that the input has.

    Raises:
        EditError: the value is no graph input, has no default where no array is given, or declares another type.
    """
    scope = graph.scopes[value.scope]
    if not value.is_input or scope.is_function:
        raise EditError(f"{value.name!r} is no input of a graph")
    if array is None and value.initializer is None:
        raise EditError(f"the input {value.name!r} has no default; give the array that shall be stored")
    with graph.edit() as edit:
        if array is not None:
            declared = value.info.type.tensor_type.elem_type if value.info is not None else 0
            tensor = tensor_of(array, value.name, declared)
            _check_input(value, tensor)
            describe(tensor, value.info)
            if isinstance(value.initializer, onnx.SparseTensorProto):
                edit.apply(SetInitializer(scope.id, value.name, None, sparse=True))
            edit.apply(SetInitializer(scope.id, value.name, tensor))
        edit.apply(RemoveFormal(scope.id, "input", scope.inputs.index(value.id)))


def refuse_function(scope: Scope, name: str) -> None:
    """Refuse to store a tensor in a function."""
    if scope.is_function:
        raise EditError(
            f"the function {scope.name} cannot store {name!r}: functions have no initializers; use a Constant node"
        )
