"""Products and convolutions of integers as records: pairs of int16, and how their sums are scaled and written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from onnxlab.execution.numba.lowering.matrix_products import Product, pad_bias, panels, shared, words_of
from onnxlab.execution.numba.machine.host import host
from onnxlab.execution.numba.machine.records import FLOAT, INT, QUAD_ROWS, SHORT
from onnxlab.execution.numba.plan.builder import PlanBuilder, Word
from onnxlab.execution.numba.plan.memory import aligned
from onnxlab.execution.numba.plan.plan import SCRATCH
from onnxlab.execution.numba.plan.views import Array, View, constant_view
from onnxlab.execution.numba.plan.weight_packing import Late, Packed

_KINDS = {np.dtype(np.float32): FLOAT, np.dtype(np.int32): INT, np.dtype(np.int16): SHORT}
_RATE = 60.0  # multiplications a nanosecond, about
_ONE = np.ones(1, np.float32)
# Least elements of a row under one tap, and greatest depth, for which levels are converted to bytes.
_SHORT, _DEEP = 16, 1 << 14


@dataclass(eq=False, slots=True)
class IntegerProduct(Product):
    """A product of quantized values, their zero points taken off, that is not emitted yet.

    `x` and `constant` (or `weights`, packed by `emit_pack`) are int16. The dtype of the target determines how the
    sums are written: int32 as they are; float32 after `scale`, `factor` and `bias`; int16 also rounded and clamped, as
    levels of quantized values without their zero point.

    Attributes:
        whole_bias: [groups, columns] int32 to add to the sums, or None.
        factor: a float32 that is known at run time only, or None.
        depthwise: each column is a channel that is convolved by itself; `constant` is [taps, columns].
    """

    whole_bias: Array | None = None
    factor: View | None = None
    depthwise: bool = False

    @property
    def sums(self) -> bool:
        """Whether it makes the int32 sums themselves."""
        return self.target.dtype == np.int32

    def to_floats(self) -> None:
        """Have the sums written as float32."""
        self.target = replace(self.target, dtype=np.dtype(np.float32))

    def quantize(self, builder: PlanBuilder, scale: float, low: float, high: float) -> None:
        """Divide by a scale, round, and clamp to `low` and `high`: the result is int16."""
        assert self.residual is None
        inverse = np.float32(scale)
        self.scale = (np.ones((self.groups, self.columns), np.float32) if self.scale is None else self.scale) / inverse
        self.bias = None if self.bias is None else self.bias / inverse
        # rounding is monotonic, so that clamping before it equals clamping to rounded bounds after it
        bounds = [float(np.rint(np.float32(bound) / inverse)) for bound in (self.low, self.high)]
        self.low, self.high = max(low, min(bounds[0], high)), min(high, max(bounds[1], low))
        target = self.target
        self.places = self.places // 2
        self.batches = self.batches // np.array([1, 1, 1, 2, 1])
        self.target = builder.allocate(target.shape, np.int16, [stride // 2 for stride in target.strides])


def pack_quads(matrices: Array) -> Array | None:
    """[batches, depth, columns] of levels to [batches, panels, quads, COLUMNS, 4] int8, filled up with zeros.

    Returns None where a level does not fit int8, or the processor has no instruction for quads.
    """
    batches, depth, columns = matrices.shape
    if not host().vnni or not matrices.size or matrices.min() < -128 or matrices.max() > 127:
        return None
    quads, count, width = -(-depth // 4), panels(columns), host().columns
    padded = np.zeros((batches, quads * 4, count * width), np.int8)
    padded[:, :depth, :columns] = matrices
    return _at_a_line(padded.reshape(batches, quads, 4, count, width).transpose(0, 3, 1, 4, 2))


def _at_a_line(array: Array) -> Array:
    """A contiguous copy that begins at a cache line, so that vectors as wide as a line do not straddle two."""
    copy = aligned(array.nbytes).view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def pack_pairs(weights: Array, taps: int) -> Array:
    """[batches, taps * length, columns] to [batches, panels, taps * pairs, COLUMNS, 2], filled up with zeros.

    The result is int8 where that holds all of them, else int16.
    """
    batches, depth, columns = weights.shape
    length, width, count = depth // taps, host().columns, panels(columns)
    narrow = not weights.size or (weights.min() >= -128 and weights.max() <= 127)
    padded = np.zeros((batches, taps, length + length % 2, count * width), np.int8 if narrow else np.int16)
    padded[:, :, :length, :columns] = weights.reshape(batches, taps, length, columns)
    return _at_a_line(padded.reshape(batches, -1, 2, count, width).transpose(0, 3, 1, 4, 2))


def emit_dot(builder: PlanBuilder, product: IntegerProduct, packed: Packed) -> View:
    """Append the record of a product; returns where its result is. `packed` remembers constants."""
    weights, sums = _quads(product, packed) or (product.weights or _packed(product, packed), None)
    columns = {"scale": product.scale, "shift": product.bias, "bias": product.whole_bias}
    values = words_of(builder, product, weights) | {
        "kind": _KINDS[product.target.dtype], "factor": product.factor.where if product.factor else builder.keep(_ONE),
        **({} if sums is None else {"sums": sums.where}),
        **{name: builder.keep(pad_bias(array)) for name, array in columns.items() if array is not None},
    }  # fmt: skip
    units = _share(builder, product, weights, values)
    reads = [product.x, weights, product.residual, product.factor]
    kernel = "quad_dot" if sums is not None else "depthwise_dot" if product.depthwise else "dot"
    builder.emit(kernel, units, values, reads, [product.target], work=product.multiplications / _RATE)
    return product.target


def _share(builder: PlanBuilder, product: IntegerProduct, weights: View, values: dict[str, Word]) -> int:
    """Cut a product into units by words of its record; returns the number of units."""
    taps, rows = product.offsets.shape
    count, width = panels(product.columns), host().columns
    if product.depthwise:
        row_block, zeros = max(1, -(-rows // 16)), np.zeros(count * width + width, np.int16)
        values.update(row_block=row_block, zeros=builder.keep(zeros), length=count)
        return int(-(-rows // row_block))
    # four bytes of a step: a pair of int16, or a quad
    pairs = -(-product.length // 2)
    depth = -(-taps * product.length // 4) if "sums" in values else taps * pairs
    words, units = shared(builder, product, weights, -(-depth // taps), depth)
    values |= words | {"length": pairs, "zeros": builder.keep(np.zeros(2 * pairs, np.int16))}
    if "sums" in values:
        values.update(length=product.length, room=(SCRATCH - QUAD_ROWS * width * 4) // (depth * 4 + 4))
    else:
        values["narrow"] = int(weights.dtype == np.int8)
    return units


def _quads(product: IntegerProduct, packed: Packed) -> tuple[View, View] | None:
    """The constant weights as quads and the sums of their columns, where the processor has an instruction for that."""
    taps, depth = len(product.offsets), len(product.offsets) * product.length
    suits = product.weights is None and not product.depthwise and product.length >= _SHORT and depth <= _DEEP
    if not suits:
        return None
    key = (*product.key, taps)
    weights = packed.get(("quads", *key))
    if weights is None:
        quads = pack_quads(product.constant)
        if quads is None:
            return None
        weights = packed.put(("quads", *key), constant_view(quads))
    return weights, packed.made(("sums", *key), Late(lambda: pad_bias(product.constant.sum(axis=1, dtype=np.int32))))


def _packed(product: IntegerProduct, packed: Packed) -> View:
    """The constant weights, packed once for all shapes."""
    taps, make = len(product.offsets), pack_channels if product.depthwise else pack_pairs
    return packed.made(("pairs", *product.key, taps), Late(partial(make, product.constant, taps)))


def pack_channels(weights: Array, taps: int) -> Array:
    """[taps, channels] to whole panels of int32 whose upper halves are zero."""
    packed = np.zeros((taps, panels(weights.shape[1]) * host().columns, 2), np.int16)
    packed[:, : weights.shape[1], 0] = weights
    return packed
