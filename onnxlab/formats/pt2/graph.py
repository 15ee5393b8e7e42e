"""The graph of a torch.export archive as a GraphProto: one node for each call, dims and dtypes as declared types.

Operators keep their names: `torch.ops.aten.conv2d.default` is the operator conv2d of the domain aten, overload default.
Tensors among the arguments are inputs, all others are attributes; `pt2.inputs` in a node's metadata names its inputs.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import onnx
from onnx import helper

from onnxlab import dtypes
from onnxlab.errors import LoadError
from onnxlab.formats.pt2.symbols import dim_of

DTYPES: Final = {
    1: dtypes.UINT8,
    2: dtypes.INT8,
    3: dtypes.INT16,
    4: dtypes.INT32,
    5: dtypes.INT64,
    6: dtypes.FLOAT16,
    7: dtypes.FLOAT,
    8: dtypes.DOUBLE,
    10: dtypes.COMPLEX64,
    11: dtypes.COMPLEX128,
    12: dtypes.BOOL,
    13: dtypes.BFLOAT16,
    28: dtypes.UINT16,
    29: dtypes.FLOAT8E4M3FN,
    30: dtypes.FLOAT8E5M2,
    31: dtypes.FLOAT8E4M3FNUZ,
    32: dtypes.FLOAT8E5M2FNUZ,
}
"""Element types by torch's numbers."""

_DEEPEST = 20
_SCALARS = {"as_sym_int", "as_sym_float", "as_sym_bool"}
_VALUES = {"as_tensor", "as_custom_obj", *_SCALARS}
_LISTS = {"as_tensors", "as_optional_tensors", "as_sym_ints", "as_sym_floats", "as_sym_bools", "as_nested_tensors"}
_INT64 = range(-(1 << 63), 1 << 63)


def graph_of(spec: Mapping[str, Any], weights: Mapping[str, onnx.TensorProto], depth: int = 0) -> onnx.GraphProto:
    """A graph of an archive.

    Args:
        spec: the JSON of a graph: inputs, outputs, nodes, tensor_values.
        weights: tensors for inputs of the graph that are weights, by name in the graph.
        depth: how many graphs are around this one.

    Raises:
        LoadError: the JSON is no such graph; the message says where.
    """
    if depth > _DEEPEST:
        raise LoadError(f"it has more than {_DEEPEST} graphs inside of each other")
    graph = onnx.GraphProto(name=str(spec.get("name") or "exported_program"))
    types = {name: _type(meta) for name, meta in _mapping(spec, "tensor_values").items()}
    produced: set[str] = set()
    for number, call in enumerate(_list(spec, "nodes")):
        if not isinstance(call, dict):
            raise LoadError(f"its node {number} is no object")
        node = graph.node.add()
        _fill(node, call, number, depth)
        produced.update(node.output)
    inputs = [name for item in _list(spec, "inputs") for name in _names(item)]
    for name in inputs:
        if name in weights:
            graph.initializer.append(weights[name])
        else:
            graph.input.append(_declared(name, types))
    outputs = [name for item in _list(spec, "outputs") for name in _names(item)]
    graph.output.extend(_declared(name, types) for name in dict.fromkeys(outputs))
    known = {*inputs, *outputs}
    graph.value_info.extend(_declared(name, types) for name in types if name in produced and name not in known)
    return graph


def _fill(node: onnx.NodeProto, call: Mapping[str, Any], number: int, depth: int) -> None:
    """Fill a node from a call."""
    target = call.get("target")
    if not isinstance(target, str):
        raise LoadError(f"its node {number} has no target")
    node.domain, node.op_type, node.overload = _operator(target)
    names: list[str] = []
    for argument in _list(call, "inputs"):
        if not isinstance(argument, dict) or not isinstance(argument.get("arg"), dict):
            raise LoadError(f"an argument of its node {number} is no object")
        label = str(argument.get("name") or f"arg{len(names)}")
        if values := _names(argument["arg"]):
            node.input.extend(values)
            names += [label if len(values) == 1 else f"{label}[{at}]" for at in range(len(values))]
        else:
            _add_attribute(node, label, argument["arg"], depth)
    node.output.extend(name for item in _list(call, "outputs") for name in _names(item))
    call_name = call.get("name") or (node.output[0] if node.output else f"{node.op_type}_{number}")
    path = _module_path(call)
    node.name = f"{path}/{call_name}" if path else str(call_name)
    if names:
        node.metadata_props.add(key="pt2.inputs", value=",".join(names))


def _operator(target: str) -> tuple[str, str, str]:
    """(domain, operator, overload) of a target."""
    parts = target.removeprefix("torch.ops.").split(".")
    if target.startswith("torch.ops.") and len(parts) == 3:
        return parts[0], parts[1], parts[2]
    return ".".join(parts[:-1]) or "torch", parts[-1], ""


def _module_path(call: Mapping[str, Any]) -> str:
    """The path of the module that makes a call: "encoder/0/attn", "" for the outermost."""
    metadata = call.get("metadata")
    stack = metadata.get("nn_module_stack") if isinstance(metadata, dict) else None
    if not isinstance(stack, str) or not stack:
        return ""
    fields = stack.split(";")[-1].split(",")
    return fields[1].replace(".", "/") if len(fields) > 1 else ""


def _names(argument: Any) -> list[str]:
    """Names of the values in an argument, "" for a tensor that is None; an empty list for a constant."""
    if not isinstance(argument, dict):
        return []
    for kind, held in argument.items():
        if kind in _VALUES and isinstance(held, dict):
            name = held.get("as_name", held.get("name"))
            return [name] if isinstance(name, str) else []
        if kind in _LISTS and isinstance(held, list):
            every = [_name_in(item) for item in held]
            return [name or "" for name in every] if any(every) else []
        if kind == "as_optional_tensor" and isinstance(held, dict):
            return _names(held)
    return []


def _name_in(item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    inner = item.get("as_tensor", item)
    name = inner.get("as_name", inner.get("name")) if isinstance(inner, dict) else None
    return name if isinstance(name, str) else None


def _add_attribute(node: onnx.NodeProto, label: str, argument: Mapping[str, Any], depth: int) -> None:
    """Add a constant argument as an attribute of its type, or as JSON where ONNX has no such type."""
    kind, held = next(iter(argument.items()), ("as_none", None))
    if kind == "as_none":
        return
    if kind == "as_graph" and isinstance(held, dict) and isinstance(held.get("graph"), dict):
        inner = graph_of(held["graph"], {}, depth + 1)
        inner.name = str(held.get("name") or label)
        node.attribute.append(onnx.AttributeProto(name=label, type=onnx.AttributeProto.GRAPH, g=inner))
        return
    if kind in _SCALARS and isinstance(held, dict):
        held = next(iter(held.values()), None)
    elif isinstance(held, list) and all(isinstance(item, dict) and "as_int" in item for item in held):
        held = [item["as_int"] for item in held]
    node.attribute.append(_constant(label, held))


def _constant(label: str, held: Any) -> onnx.AttributeProto:
    if _is_number(held) or isinstance(held, str):
        return helper.make_attribute(label, int(held) if isinstance(held, bool) else held)
    if isinstance(held, list) and held and all(map(_is_number, held)):
        floats = any(isinstance(item, float) for item in held)
        return helper.make_attribute(label, [float(item) if floats else int(item) for item in held])
    if isinstance(held, list) and held and all(isinstance(item, str) for item in held):
        return helper.make_attribute(label, held)
    if held == []:
        return onnx.AttributeProto(name=label, type=onnx.AttributeProto.INTS)
    return helper.make_attribute(label, json.dumps(held))


def _is_number(held: Any) -> bool:
    return isinstance(held, float) or (isinstance(held, int) and held in _INT64)


def _type(meta: Any) -> onnx.TypeProto:
    """The type of a tensor by its meta data; unknown dims and an unknown dtype are left out."""
    result = onnx.TypeProto()
    result.tensor_type.SetInParent()
    if not isinstance(meta, dict):
        return result
    number = meta.get("dtype")
    result.tensor_type.elem_type = DTYPES.get(number, 0) if isinstance(number, int) else 0
    sizes = meta.get("sizes")
    if isinstance(sizes, list):
        result.tensor_type.shape.SetInParent()
        for size in sizes:
            entry, dim = result.tensor_type.shape.dim.add(), dim_of(size)
            if isinstance(dim, int) and 0 <= dim < 1 << 63:
                entry.dim_value = dim
            elif isinstance(dim, str):
                entry.dim_param = dim
    return result


def _declared(name: str, types: Mapping[str, onnx.TypeProto]) -> onnx.ValueInfoProto:
    return onnx.ValueInfoProto(name=name, type=types.get(name))


def shape_of(meta: Mapping[str, Any]) -> tuple[int, tuple[int, ...], tuple[int, ...], int]:
    """(element type, shape, strides, offset in elements) of a stored tensor by its meta data.

    Raises:
        LoadError: a size is not a number from 0 on, or ONNX has no such type.
    """
    numbers = [[dim_of(size) for size in _list(meta, key)] for key in ("sizes", "strides")]
    offset = dim_of(meta.get("storage_offset", {"as_int": 0}))
    flat: Iterable[Any] = [*numbers[0], *numbers[1], offset]
    if not all(isinstance(number, int) and 0 <= number < 1 << 62 for number in flat) or len(numbers[0]) > 64:
        raise LoadError("it has a weight whose sizes are no numbers")
    dtype = meta.get("dtype")
    if not isinstance(dtype, int) or dtype not in DTYPES:
        raise LoadError(f"it has a weight of torch's type {dtype!s:.40}, which ONNX has no type for")
    return DTYPES[dtype], tuple(numbers[0]), tuple(numbers[1]), offset  # type: ignore[arg-type,return-value]


def is_row_major(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements lie one after the other in row-major order."""
    expected = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return 0 in shape or all(
        size == 1 or stride == step for size, stride, step in zip(shape, strides, expected, strict=True)
    )


def _list(spec: Mapping[str, Any], key: str) -> list[Any]:
    held = spec.get(key, [])
    if not isinstance(held, list):
        raise LoadError(f"{key!r} in it is no list")
    return held


def _mapping(spec: Mapping[str, Any], key: str) -> dict[str, Any]:
    held = spec.get(key, {})
    if not isinstance(held, dict):
        raise LoadError(f"{key!r} in it is no object")
    return held
