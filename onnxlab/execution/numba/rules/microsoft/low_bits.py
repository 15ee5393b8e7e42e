"""MatMulNBits: weights of 2, 4 or 8 bits with scales by blocks."""

from __future__ import annotations

from functools import partial

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.matrix_products import pad_bias, panels, table
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.machine.host import host
from onnxlab.execution.numba.plan.builder import Word
from onnxlab.execution.numba.plan.views import Array, View
from onnxlab.execution.numba.plan.weight_packing import Late
from onnxlab.execution.numba.rules.onnx.matmul import with_inner_runs
from onnxlab.execution.numba.rules.onnx.quantization import DOMAIN, fixed, given, parameters
from onnxlab.execution.numba.rules.registry import FLOATS, StaticFacts, dtype_reason, rule
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops.microsoft.quantized import unpacked


def _accept(node: NodeView, view: StaticFacts) -> str:
    if node.attributes.get("bits", 4) not in (2, 4, 8) or node.attributes.get("weight_prepacked", 0):
        return "only 2, 4 and 8 bits as the operator defines them"
    if given(node, 4):
        return "g_idx"
    reason = dtype_reason(node.inputs[0], view, lambda dtype: dtype in FLOATS)
    return reason or parameters(node, view, 1, 2, 3, 5)


@rule("MatMulNBits", domain=DOMAIN, accept=_accept, weight=6)
def matmul_bits(binder: Binder, node: NodeView) -> None:
    """Lower MatMulNBits to a product with packed low-bit weights."""
    attributes = node.attributes
    depth, columns, block = attributes["K"], attributes["N"], attributes.get("block_size", 32)
    blocks = -(-depth // block)
    x = with_inner_runs(binder, binder.floats(node.inputs[0]))
    if x.shape[-1] != depth or len(x.shape) < 2 or block % 2:
        raise UnbindableError(f"A has shape {x.shape}, K is {depth} in blocks of {block}")
    views = _tables(binder, node, depth, columns, block)
    rows = x.size // depth
    y = binder.allocate(node.outputs[0], (*x.shape[:-1], columns), np.float32)
    lead = len(x.shape) - 1
    count = panels(columns)
    share = max(1, min(count, -(-count // 16), round(4e6 / (rows * depth * host().columns)) or 1))
    share = -(-share // 4) * 4
    bias = fixed(binder, node.inputs[5]) if given(node, 5) else None
    builder = binder.builder
    values: dict[str, Word] = {
        "x": x.where, "offsets": builder.keep(table(x.offsets(lead)[None])), "y": y.where,
        "places": builder.keep(table(y.offsets(lead)[None])), "rows": rows, "columns": columns, "depth": depth,
        "weights": views[0].where, "scales": views[1].where, "zeros": views[2].where, "block": block,
        "blocks": blocks, "nibbles": int(attributes.get("bits", 4) < 8), "unit_panels": share,
        "bias": 0 if bias is None else builder.keep(pad_bias(bias.astype(np.float32)[None])),
    }  # fmt: skip
    work = columns * depth * (rows / 40 + 0.1)
    builder.emit("low_bits", -(-count // share), values, [x, *views], [y], work=work)
    binder.put(node.outputs[0], y)


def _tables(binder: Binder, node: NodeView, depth: int, columns: int, block: int) -> list[View]:
    """Weights, scales and zero points in the kernel's layout, remembered."""
    bits, blocks = node.attributes.get("bits", 4), -(-depth // block)
    keys = [binder.key_of(name) for name in node.inputs[1:4] if name]
    return [
        binder.packed.made(("bits", number, bits, block, depth, columns, *keys),
                           Late(partial(make, binder, node, blocks, columns, depth)))
        for number, make in enumerate((_levels, _scales, _zeros))
    ]  # fmt: skip


def _by_panel(array: Array, columns: int) -> Array:
    """[columns, lines] to [panels, lines, COLUMNS], filled up with zeros."""
    count, width = panels(columns), host().columns
    padded = np.zeros((count * width, array.shape[1]), array.dtype)
    padded[:columns] = array
    return np.ascontiguousarray(padded.reshape(count, width, -1).transpose(0, 2, 1))


def _levels(binder: Binder, node: NodeView, blocks: int, columns: int, depth: int) -> Array:
    b = fixed(binder, node.inputs[1])
    assert b is not None
    bits, block = node.attributes.get("bits", 4), node.attributes.get("block_size", 32)
    levels = unpacked(b.reshape(columns, blocks, -1), bits)[:, :, :block].reshape(columns, -1)[:, :depth]
    if bits == 8:
        return _by_panel(levels, columns)
    even = np.zeros((columns, depth + depth % 2), np.uint8)
    even[:, :depth] = levels
    return _by_panel(even[:, ::2] | (even[:, 1::2] << 4), columns)


def _scales(binder: Binder, node: NodeView, blocks: int, columns: int, depth: int) -> Array:
    scales = fixed(binder, node.inputs[2])
    assert scales is not None
    return _by_panel(scales.astype(np.float32).reshape(columns, blocks), columns)


def _zeros(binder: Binder, node: NodeView, blocks: int, columns: int, depth: int) -> Array:
    bits = node.attributes.get("bits", 4)
    zeros = fixed(binder, node.inputs[3]) if given(node, 3) else None
    if zeros is None:
        zero_points = np.full((columns, blocks), 1 << (bits - 1), np.float32)
    elif zeros.dtype.kind == "u":
        zero_points = unpacked(zeros.reshape(columns, -1), bits)[:, :blocks].astype(np.float32)
    else:
        zero_points = zeros.astype(np.float32).reshape(columns, -1)[:, :blocks]
    return _by_panel(zero_points, columns)
