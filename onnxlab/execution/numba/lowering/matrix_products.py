"""Products and convolutions as records: packing, tables of offsets, blocks, and what is done to results on the way."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import inf, prod
from typing import Any

import numpy as np

from onnxlab.execution.numba.machine.host import host
from onnxlab.execution.numba.plan.builder import PlanBuilder, Word
from onnxlab.execution.numba.plan.copies import emit_clear, emit_copy
from onnxlab.execution.numba.plan.memory import aligned
from onnxlab.execution.numba.plan.views import Array, View, constant_view, dense
from onnxlab.execution.numba.plan.weight_packing import Key, Late, Packed, late
from onnxlab.ops.base.window_geometry import Window

_CACHE = 1 << 19  # bytes of the second-level cache
_UNIT = 4e6  # multiplications from which a unit of its own is worthwhile
_RATE = 40.0  # multiplications a nanosecond, about
# Bytes of weights that one row is multiplied by as they are stored. Packing smaller ones takes next to nothing, larger
# ones are read faster from the large pages that packed weights are in.
_UNPACKED = range(1 << 22, 1 << 25)
_BLOCK, _READING = 1 << 18, 0.05  # bytes of stored weights that a unit reads, and nanoseconds of each
_AT_ONCE = 1 << 16  # elements of weights that are packed at once, however they lie
# Rows of weights that are gathered at once, and elements of padding between two gathered columns.
_GATHERED, _BETWEEN = 1024, 16


@dataclass(eq=False, slots=True)
class Product:
    """A product that is not emitted yet, so that later nodes may be fused into it.

    Attributes:
        x: the view that rows are read from; offsets are relative to its first element.
        offsets: [taps, rows] bytes, negative for a row of zeros.
        length: elements of a row under one tap.
        weights: packed weights, where the second factor is known at run time only.
        constant: constant weights otherwise, [groups, taps * length, columns], with the key of their packed form.
        stored: the constant weights as they are in memory, where columns are rows there: [columns, length].
        columns: of the result of one group or batch.
        target: where the result goes; rows in the order of `offsets`, columns contiguous along `axis`.
        places: [rows] bytes from the target's first element.
        batches: [batches, 5] bytes to add to x, weights, bias, y and residual.
        groups: number of biases and scales.
        scale, bias: [groups, columns] or None; scale multiplies the constant.
        residual: view of the target's shape that is added to the result.
        low, high: bounds to which the result is clamped.
        window: window of a convolution that Winograd's algorithm suits.
    """

    x: View
    offsets: Array
    length: int
    columns: int
    target: View
    axis: int
    places: Array
    batches: Array
    weights: View | None = None
    constant: Any = None
    key: tuple[object, ...] = ()
    stored: Late | None = None
    groups: int = 1
    scale: Array | None = None
    bias: Array | None = None
    residual: View | None = None
    low: float = -inf
    high: float = inf
    window: Window | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the product."""
        return self.target.shape

    @property
    def open(self) -> bool:
        """Whether a bias or residual may still be added."""
        return self.low == -inf and self.high == inf

    def column_values(self, array: Array) -> Array | None:
        """An array that broadcasts along all axes but that of the columns, as [groups, columns], else None."""
        rank, total = len(self.shape), self.groups * self.columns
        shape = (1,) * (rank - array.ndim) + array.shape
        if len(shape) != rank or any(size != 1 for axis, size in enumerate(shape) if axis != self.axis):
            return None
        fits, columns = shape[self.axis] in (1, total), (self.groups, self.columns)
        return np.broadcast_to(array.reshape(-1), (total,)).reshape(columns).astype(np.float32) if fits else None

    @property
    def multiplications(self) -> int:
        """The number of multiplications of all batches."""
        return self.offsets.size * self.length * self.columns * len(self.batches)

    @property
    def movable(self) -> bool:
        """Whether the result may be written elsewhere: all rows are in `places`."""
        return len(self.places) * self.columns * self.groups == self.target.size

    def move(self, target: View) -> None:
        """Write the result to another view of the same shape, with contiguous columns."""
        lead = [axis for axis in range(len(target.shape)) if axis != self.axis]
        self.target, self.places = target, target.transposed([*lead, self.axis]).offsets(len(lead))

    def add_columns(self, values: Array) -> None:
        """Add one number per column to the product."""
        self.bias = values if self.bias is None else self.bias + values

    def scale_columns(self, values: Array) -> None:
        """Multiply the scale and bias so far; only with constant weights and before a residual."""
        self.scale = values if self.scale is None else self.scale * values
        if self.bias is not None:
            self.bias = self.bias * values


def panels(columns: int) -> int:
    """The number of panels of weights that so many columns take."""
    return -(-columns // host().columns)


def pack(weights: Array) -> Array:
    """[batches, depth, columns] to [batches, panels, depth, COLUMNS], filled up with zeros; at a line of the cache."""
    batches, depth, columns = weights.shape
    count, width = panels(columns), host().columns
    packed = aligned(batches * count * depth * width * 4).view(np.float32).reshape(batches, count, depth, width)
    whole, rest = divmod(columns, width)
    if weights.strides[1] < weights.strides[2] and depth * columns > _AT_ONCE:
        _pack_turned(weights, packed[:, :whole])
    else:
        packed[:, :whole] = weights[:, :, : whole * width].reshape(batches, depth, whole, width).transpose(0, 2, 1, 3)
    if rest:
        packed[:, whole] = 0.0
        packed[:, whole, :, :rest] = weights[:, :, whole * width :]
    return packed


def _pack_turned(weights: Array, packed: Array) -> None:
    """Whole panels of weights whose columns are far apart in memory.

    The distance is often a power of two, so that all columns of a panel map to the same few cache lines. They are
    gathered first, with padding between them.
    """
    _, panel_count, depth, width = packed.shape
    gathered = np.empty((width, _GATHERED + _BETWEEN), np.float32)
    for batch, panel, at in product(range(len(packed)), range(panel_count), range(0, depth, _GATHERED)):
        part = weights[batch, at : at + _GATHERED, panel * width : (panel + 1) * width]
        turned = gathered[:, : len(part)]
        turned[...] = part.T
        packed[batch, panel, at : at + _GATHERED] = turned.T


def pad_bias(bias: Array) -> Array:
    """[batches, columns] of float32 or int32 to whole panels each."""
    dtype = np.int32 if bias.dtype == np.int32 else np.float32
    padded = np.zeros((len(bias), panels(bias.shape[1]) * host().columns), dtype)
    padded[:, : bias.shape[1]] = bias
    return padded


def emit_pack(builder: PlanBuilder, matrix: View, group: int = 1) -> View:
    """Pack a matrix [lead…, depth, columns] that is known at run time only: [matrices, panels, groups, COLUMNS, group].

    Args:
        group: elements of a column that lie together in four bytes: 1 float32, or 2 int16.
    """
    *lead, depth, columns = matrix.shape
    *steps, down, step = matrix.strides
    width, count = host().columns, panels(columns)
    whole, rest = divmod(columns, width)
    packed = builder.allocate((*lead, count, -(-depth // group), width, group), matrix.dtype)
    outer, (panel, line, *_) = packed.strides[: len(lead)], packed.strides[len(lead) :]
    even = depth - depth % group
    if even < depth:  # what follows the last element is multiplied with whatever comes behind a row
        emit_clear(builder, packed, packed.nbytes)
    for first, number, wide in ((0, whole, width), (whole, 1, rest)):
        for at, lines, half in ((0, even // group, group), (even, 1, depth - even)):
            if number and wide and lines and half:
                shape, strides = (*lead, number, lines, half, wide), (*steps, width * step, group * down, down, step)
                source = matrix.at(first * width * step + at * down, shape, strides)
                strides = (*outer, panel, line, 4 // group, 4)
                emit_copy(builder, source, packed.at(first * panel + at // group * line, shape, strides))
    if rest and group == 1:
        _emit_margin(builder, packed.at(whole * panel, (*lead, depth, width), (*outer, line, 4)), rest)
    inner = packed.strides[len(lead) :]
    return packed.at(0, (prod(lead), *packed.shape[len(lead) :]), (count * panel, *inner))


def _emit_margin(builder: PlanBuilder, panel: View, columns: int) -> None:
    """Zeros from the last columns of a panel to the end of their vector.

    The kernel multiplies these elements, though it never writes the results. Without zeros, they may be subnormal
    numbers, for which processors take a hundred times as long.
    """
    margin = -columns % host().lanes
    if margin:
        shape = (*panel.shape[:-1], margin)
        zeros = constant_view(np.zeros(margin, np.float32)).broadcast(shape)
        emit_copy(builder, zeros, panel.at(columns * 4, shape, panel.strides))


def matrices(packed: View, lead: tuple[int, ...]) -> View:
    """The packed matrices of a stack with these leading dims, by their first elements."""
    return View(packed.buffer, 0, lead, dense(lead, packed.strides[0]), packed.dtype)


def emit_product(builder: PlanBuilder, product: Product, packed: Packed) -> View:
    """Append the records of a product; returns where its result is. `packed` remembers constants."""
    stored, nbytes = product.stored, product.length * product.columns * 4
    if stored is not None and product.scale is None and product.offsets.size == 1 and nbytes in _UNPACKED:
        emit_one_row(builder, product, packed.made(("stored", *product.key), stored))
    else:
        _emit_rows(builder, product, packed)
    return product.target


def emit_one_row(builder: PlanBuilder, product: Product, weights: View) -> None:
    """One row times stored weights, of which each is read once: packing them would take longer than the product."""
    length, y, residual = product.length, product.target, product.residual
    block = max(1, _BLOCK // (length * 4))
    x = product.x.at(int(product.offsets[0, 0]), (length,), (4,))
    values: dict[str, Word] = {
        "x": x.where, "weights": weights.where, "y": (y.buffer, y.offset + int(product.places[0])),
        "bias": 0 if product.bias is None else builder.keep(pad_bias(product.bias)),
        "low": bits(product.low), "high": bits(product.high),
        "residual": 0 if residual is None else (residual.buffer, residual.offset + int(sources(product)[0])),
        "length": length, "columns": product.columns, "block": block,
    }  # fmt: skip
    work = weights.nbytes * _READING
    builder.emit("gemv", -(-product.columns // block), values, [x, weights, residual], [y], work=work)


def _emit_rows(builder: PlanBuilder, product: Product, packed: Packed) -> None:
    weights, length = product.weights, product.length
    if weights is None:
        weights = packed.made(weights_key(product), scaled_weights(product).then(pack))
    words, units = shared(builder, product, weights, length, length * len(product.offsets))
    values = words_of(builder, product, weights) | words | {
        "length": length, "zeros": builder.keep(np.zeros(length, np.float32)),
        "bias": 0 if product.bias is None else builder.keep(pad_bias(product.bias)),
    }  # fmt: skip
    reads = [product.x, weights, product.residual]
    batches = np.asarray(product.batches)
    aligned_batches = bool((batches[:, 3] == batches[:, 4]).all())
    over = replaceable(product.residual, product.target, product.x, weights) if aligned_batches else None
    builder.emit("gemm", units, values, reads, [product.target], product.multiplications / _RATE, over)


def replaceable(residual: View | None, target: View, *operands: View) -> View | None:
    """The residual where the result may be written over it: it is in the same places, and no operand."""
    if residual is None or residual.offset != target.offset or not residual.is_laid_out(target.strides):
        return None
    return residual if all(view.buffer is not residual.buffer for view in operands) else None


def words_of(builder: PlanBuilder, product: Product, weights: View) -> dict[str, Word]:
    """The words that the records of all products have."""
    offsets, (taps, rows), residual = table(product.offsets), product.offsets.shape, product.residual
    return {
        "x": product.x.where, "offsets": builder.keep(offsets), "tap_bytes": offsets.shape[1] * 4, "taps": taps,
        "weights": weights.where, "y": product.target.where, "places": builder.keep(table(product.places[None])),
        "low": bits(product.low), "high": bits(product.high), "rows": rows, "columns": product.columns,
        "residual": 0 if residual is None else residual.where,
        "sources": 0 if residual is None else builder.keep(table(sources(product)[None])),
    }  # fmt: skip


def shared(
    builder: PlanBuilder, product: Product, weights: View, length: int, depth: int
) -> tuple[dict[str, Word], int]:
    """The words that cut a product into units, and the number of units.

    Args:
        length, depth: of a row under one tap, and in all, in steps of four bytes.
    """
    batches, count = np.array(product.batches, np.int64), panels(product.columns)
    if product.groups > 1:
        batches[:, 1] = np.arange(product.groups) * (weights.nbytes // product.groups)
        batches[:, 2] = np.arange(product.groups) * (count * host().columns * 4)
    rows, row_blocks, columns, panel_blocks = _blocks(product.offsets.shape[1], length, depth, count, len(batches))
    return {"row_block": rows, "row_blocks": row_blocks, "panel_block": columns, "panel_blocks": panel_blocks,
            "batches": builder.keep(batches)}, row_blocks * panel_blocks * len(batches)  # fmt: skip


def _blocks(rows: int, length: int, depth: int, count: int, batches: int) -> tuple[int, int, int, int]:
    """(rows of a unit, number of such blocks, panels of a unit, number of such blocks).

    Where all weights fit into the second-level cache, a unit takes few rows and all panels, so that results are written
    in order; else it takes as many rows as the cache holds, so that the weights are read as few times as possible.
    """
    tile, width = host().rows, host().columns
    small = depth * count * width * 4 <= _CACHE // 2
    limit = tile * 8 if small else max(tile, _CACHE // max(1, length * 4) // tile * tile)
    row_blocks = -(-rows // limit)
    row_block = (rows + row_blocks * tile - 1) // (row_blocks * tile) * tile
    row_blocks = -(-rows // row_block)
    cost = rows * depth * count * width
    column_blocks = 1 if small else max(1, min(count, round(cost / _UNIT / row_blocks)))
    if row_blocks * batches * column_blocks < 4:
        column_blocks = min(count, max(column_blocks, round(cost * batches / _UNIT)) or 1)
    panel_block = -(-count // column_blocks)
    return row_block, row_blocks, panel_block, -(-count // panel_block)


def weights_key(product: Product) -> Key:
    """The key of the constant weights, scaled: packed once for all shapes."""
    return *product.key, None if product.scale is None else product.scale.tobytes()


def scaled_weights(product: Product) -> Late:
    """The constant weights, scaled, of float32."""
    scale = None if product.scale is None else product.scale.astype(np.float32)[:, None, :]
    return late(product.constant).then(lambda weights: weights if scale is None else weights * scale)


def sources(product: Product) -> Array:
    """The places of the residual's rows, in the order of the target's rows."""
    residual, target = product.residual, product.target
    assert residual is not None
    if residual.is_laid_out(target.strides):
        return product.places
    lead = [axis for axis in range(len(target.shape)) if axis != product.axis]
    theirs, ours = (view.transposed([*lead, product.axis]).offsets(len(lead)).tolist() for view in (residual, target))
    by_place = dict(zip(ours, theirs, strict=True))
    return np.array([by_place[place] for place in product.places.tolist()])


def table(offsets: Array) -> Array:
    """Offsets as int32, with the last row repeated so that tiles are whole.

    Raises:
        OverflowError: an offset is beyond 2 GiB.
    """
    if offsets.size and int(offsets.max()) >= 1 << 31:
        raise OverflowError("an array of more than 2 GiB")
    rows, tile = offsets.shape[1], host().rows
    padded = np.empty((len(offsets), -(-rows // tile) * tile + tile + 4), np.int32)
    padded[:, :rows] = offsets
    padded[:, rows:] = offsets[:, -1:]
    return padded


def bits(value: float) -> int:
    """A float32 as a word of a record."""
    return int(np.float32(value).view(np.int32))
