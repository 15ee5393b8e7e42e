"""Weights stored in fewer bits: 4 bits with a scale for each block, int8 with one for each channel, half precision."""

import math
from collections.abc import Iterator
from typing import Any, Final

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

from onnxlab import dtypes
from onnxlab.errors import LoadError
from onnxlab.graph.edit.changes import InsertNode, RemoveFormal, SetInitializer
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.protos import tensors
from onnxlab.ops import find_traits
from onnxlab.transforms.passes.constant_folding import LARGE
from onnxlab.transforms.quantization import integers
from onnxlab.transforms.receipt import RefusedRewrite
from onnxlab.transforms.rewriting import Array, Rewriting

_LARGEST: Final = 127  # of int8 without -128, so that both signs have the same numbers
_MOST_SCALES: Final = 32  # elements for each scale, at least


FOUR_BITS: Final = frozenset((dtypes.INT4, dtypes.UINT4))
"""Types of which blocks of elements have a scale."""


def run(rewriting: Rewriting, form: str, elem_type: int, block_size: int = 0) -> None:
    """Store the large float32 weights of graphs and bodies in another type, and let a node make them float32 again.

    Args:
        rewriting: the model, in an open edit.
        form: the name under which applications are noted.
        elem_type: of the stored weights.
        block_size: elements that share a scale, of a type of 4 bits.
    """
    for scope in sorted(rewriting.graph.scopes.values(), key=rewriting.graph.scope_path):
        if scope.kind == "training" or rewriting.is_protected_scope(scope):
            continue
        for value, tensor in list(_weights(rewriting, scope)):
            if (elem_type == dtypes.INT8 or elem_type in FOUR_BITS) and len(tensor.dims) < 2:
                continue  # biases and factors of channels: few, and their error goes into every product
            if not rewriting.allows(form, value.name) or _stays(rewriting, value):
                continue
            why = _store(rewriting, scope, value, tensor, form, elem_type, block_size)
            if why:
                rewriting.unfit[form, value.name] = RefusedRewrite(form, value.name, why)


def _weights(rewriting: Rewriting, scope: Scope) -> Iterator[tuple[ValueRecord, onnx.TensorProto]]:
    """Large float32 tensors that nodes read, inputs with defaults included; in an order that no edit changes."""
    for value in [rewriting.graph.values[scope.names[name]] for name in sorted(scope.names)]:
        tensor = value.initializer if value.is_input else rewriting.stored(value)
        if not isinstance(tensor, onnx.TensorProto) or tensor.data_type != dtypes.FLOAT:
            continue
        if value.uses and math.prod(tensor.dims) >= LARGE:
            yield value, tensor


def _stays(rewriting: Rewriting, value: ValueRecord) -> bool:
    """Whether a weight is protected by its name, or by that of a node that reads it."""
    names = rewriting.options.protected
    return bool(names) and (
        value.name in names or any(rewriting.stays(rewriting.graph.nodes[reader]) for reader, _ in value.uses)
    )


def _store(
    rewriting: Rewriting, scope: Scope, value: ValueRecord, tensor: onnx.TensorProto, form: str, elem_type: int,
    block_size: int,
) -> str:  # fmt: skip
    """Store one weight in another type; the reason why it stays as it is, "" where it does not."""
    graph = rewriting.graph
    if scope.is_function or graph.root(scope).is_function:
        return f"it is a constant of the function {graph.root(scope).name}; inline it first"
    if value.formal_outputs:
        return "it is an output of its graph"
    if why := needed(graph, value):
        return why
    if value.is_input and not rewriting.inputs_are_weights:
        return "it is the default of an input; take the input away first (input_to_initializer)"
    try:
        array = tensors.to_array(tensor, graph.base_dir)
    except LoadError as error:
        return f"it cannot be read: {error}"
    if why := unfit(array, elem_type):
        return why
    if elem_type in FOUR_BITS:
        axes = {_summed_axis(graph, *use) for use in value.uses}
        if len(axes) != 1 or (axis := axes.pop()) is None:
            return "it is no matrix of products alone, of which runtimes read blocks"
        parts = integers.in_blocks(array, axis, block_size, elem_type)
        attributes: dict[str, Any] = {"axis": axis, "block_size": block_size}
    else:
        parts, attributes = _int8(array) if elem_type == dtypes.INT8 else _half(array, elem_type)
    put(rewriting, scope, value, parts, attributes, value.name)
    rewriting.note(form, value.name, value.name, _effect(array, parts, attributes))
    return ""


def _summed_axis(graph: ModelGraph, reader: int, slot: int) -> int | None:
    """The axis over which a product sums up a matrix that it reads, None where a node does something else with it."""
    node = graph.nodes[reader]
    traits, fact = find_traits(node.domain, node.op_type), graph.values[node.inputs[slot]].tensor
    if traits.layer != "product" or not traits.int8 or slot != 1 or (fact is not None and len(fact.dims) != 2):
        return None
    return 1 if is_set(node, "transB") else 0


def is_set(node: NodeRecord, name: str) -> bool:
    """Whether a node has an integer attribute other than 0."""
    return any(item.name == name and item.i for item in node.proto.attribute)


def needed(graph: ModelGraph, value: ValueRecord) -> str:
    """The reason why what reads a weight needs it as it is, "" where nothing does."""
    readers = [graph.nodes[reader] for reader, _ in value.uses]
    bound = (entry.key for info in graph.proto.training_info for entry in info.update_binding)
    if value.name in bound or any(graph.scopes[reader.scope].kind == "training" for reader in readers):
        return "training reads or updates it in float32"
    if any(find_traits(reader.domain, reader.op_type).category == "quantization" for reader in readers):
        return "it is quantized by a node already; store the result of that: model.fold()"
    return ""


def _effect(array: Array, parts: list[Array], attributes: dict[str, Any]) -> str:
    """The sizes of an array before and now, and its error, in words."""
    axis, block, scales = attributes.get("axis", 0), attributes.get("block_size", 0), ""
    nbytes = sum(-(-part.size // 2) if part.dtype.name.endswith("int4") else part.nbytes for part in parts)
    if len(parts) > 1:
        scales = f" and {parts[1].size:,} scales along axis {axis}"
    sizes = f"{array.nbytes:,} bytes become {nbytes:,}"
    off = _off(array, parts, axis, block)
    return f"{sizes}: {parts[0].dtype}{scales}{f', off by {off:.2g} %' if math.isfinite(off) else ''}"


def unfit(array: Array, elem_type: int) -> str:
    """The reason why an array of float32 cannot be stored in a type, "" where it can."""
    peak, is_finite = _peak(array)
    if elem_type == dtypes.INT8 or elem_type in FOUR_BITS:  # scales take any range
        return "" if is_finite else f"it has NaN or infinities, which {dtypes.name(elem_type)} does not"
    if abs(peak) > end_of(elem_type):
        return f"it reaches {peak:.3g}, and {dtypes.name(elem_type)} ends at {end_of(elem_type):.5g}"
    if peak and not np.float32(peak).astype(dtypes.to_numpy(elem_type)):
        return f"it reaches {peak:.3g}, which is 0 in {dtypes.name(elem_type)}"
    return ""


def is_beyond(array: Array, elem_type: int) -> bool:
    """Whether a finite element is too large for a type of floats."""
    return abs(_peak(array)[0]) > end_of(elem_type)


def end_of(elem_type: int) -> float:
    """The largest finite number of a type of floats."""
    return float(ml_dtypes.finfo(dtypes.to_numpy(elem_type)).max)  # type: ignore[no-untyped-call]


def _peak(array: Array) -> tuple[float, bool]:
    """The finite element that is largest without its sign, 0 for none; whether all are finite."""
    least, largest = float(array.min(initial=0.0)), float(array.max(initial=0.0))
    is_finite = math.isfinite(least) and math.isfinite(largest)
    if not is_finite:
        finite = array[np.isfinite(array)]
        least, largest = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
    return (least if -least > largest else largest), is_finite


def _half(array: Array, elem_type: int) -> tuple[list[Array], dict[str, Any]]:
    return [array.astype(dtypes.to_numpy(elem_type))], {"to": int(dtypes.FLOAT)}


def _int8(array: Array) -> tuple[list[Array], dict[str, Any]]:
    """The elements as int8, and the factors of an axis; the axis is the one that loses least."""
    size = np.abs(array)
    peaks = {
        axis: size.max(axis=tuple(other for other in range(array.ndim) if other != axis), keepdims=True)
        for axis, dim in enumerate(array.shape)
        if dim * _MOST_SCALES <= array.size
    }
    axis = min(peaks, key=lambda number: float(np.mean(np.square(peaks[number], dtype=np.float64))))
    most = np.nextafter(np.finfo(np.float32).max / np.float32(_LARGEST), np.float32(0))  # its product is finite
    scales = np.clip(peaks[axis] / np.float32(_LARGEST), np.finfo(np.float32).tiny, most)
    zeros = np.zeros(scales.size, np.int8)  # may be left out by ONNX; onnxruntime's x64quantprecision fails without
    return [np.rint(array / scales).astype(np.int8), scales.reshape(-1), zeros], {"axis": axis}


def _off(array: Array, parts: list[Array], axis: int, block: int) -> float:
    """The error of the stored elements as percent of them, both as the root of the mean square; NaN for some."""
    back = parts[0].astype(np.float32)
    if block:
        back -= integers.spread(parts[2].astype(np.float32), array, axis, block)
        back *= integers.spread(parts[1], array, axis, block)
    elif len(parts) > 1:
        back *= parts[1].reshape([-1 if number == axis else 1 for number in range(array.ndim)])
    with np.errstate(all="ignore"):  # NaN, infinities, and squares of large numbers
        back -= array
        size = float(np.linalg.norm(array))
        return 100 * float(np.linalg.norm(back)) / size if size else 0.0


def put(
    rewriting: Rewriting, scope: Scope, value: ValueRecord, parts: list[Array], attributes: dict[str, Any], name: str
) -> None:
    """Let a node make the value of stored parts; under another name than the value's, the value stays as it is."""
    if name == value.name:
        remove_constant(rewriting, value)
    op_type, suffixes = "Cast", ["half"]
    if len(parts) > 1:
        op_type, suffixes = "DequantizeLinear", [parts[0].dtype.name, "scale", "zero_point"]
    names = [rewriting.fresh(f"{name}_{suffix}") for suffix in suffixes]
    for part, array in zip(names, parts, strict=True):
        rewriting.store(part, array, scope)
    node = helper.make_node(op_type, names, [name], rewriting.fresh(f"{name}/{op_type}", node=True), **attributes)
    rewriting.graph.apply(InsertNode(scope.id, 0, node))


def remove_constant(rewriting: Rewriting, value: ValueRecord) -> None:
    """Remove the node that makes a constant, or an initializer, as an input of its graph too."""
    graph, maker = rewriting.graph, rewriting.maker(value)
    if maker is not None:
        rewriting.remove(maker)
        return
    take_from_inputs(graph, graph.scopes[value.scope], value)
    graph.apply(SetInitializer(value.scope, value.name, None))


def take_from_inputs(graph: ModelGraph, scope: Scope, value: ValueRecord) -> None:
    """Take a weight from the inputs of its graph, where all had to be before IR version 4."""
    if value.is_input:
        graph.apply(RemoveFormal(scope.id, "input", scope.inputs.index(value.id)))
