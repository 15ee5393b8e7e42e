"""Elements by index as records: Gather along an axis, and weighted sums along an axis."""

from __future__ import annotations

from math import prod

import numpy as np

from onnxlab.execution.numba.plan.builder import FAULT, PlanBuilder, Word
from onnxlab.execution.numba.plan.copies import contiguous
from onnxlab.execution.numba.plan.views import Array, View, dense

_UNIT = 1 << 15  # bytes from which a unit of its own is worthwhile


def _sliced(builder: PlanBuilder, x: View, axis: int) -> tuple[View, int, int]:
    """x as [outer, axis, inner] with contiguous inner elements: (view, bytes between outers, bytes along the axis)."""
    item = x.dtype.itemsize
    outer, inner = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    sliced = x.reshaped([outer, x.shape[axis], inner])
    if sliced is None or (inner > 1 and sliced.strides[2] != item):
        x = contiguous(builder, x)
        sliced = x.at(0, (outer, x.shape[axis], inner), dense((outer, x.shape[axis], inner), item))
    return x, sliced.strides[0], sliced.strides[1]


def emit_gather(builder: PlanBuilder, x: View, axis: int, indices: View, target: View) -> None:
    """target [x.shape[:axis], indices.shape, x.shape[axis + 1:]] = the elements of x at these places, contiguous.

    Indices are int32 or int64 and may be negative; where one is beyond the axis, the plan's run fails.
    """
    indices = contiguous(builder, indices)
    x, source_outer, step = _sliced(builder, x, axis)
    inner = prod(x.shape[axis + 1 :]) * x.dtype.itemsize
    outer, count = prod(x.shape[:axis]), indices.size
    unit = max(1, _UNIT // max(1, inner))
    values: dict[str, Word] = {
        "source": x.where, "target": target.where, "outer": outer, "count": count, "source_outer": source_outer,
        "target_outer": count * inner, "source_step": step, "target_step": inner, "size": x.shape[axis],
        "indices": indices.where, "wide": int(indices.dtype.itemsize == 8), "inner": inner, "fault": FAULT.where,
        "unit": unit,
    }  # fmt: skip
    work = outer * count * (2.0 + inner * 0.05)
    builder.emit("gather", -(-outer * count // unit), values, [x, indices, FAULT], [target, FAULT], work=work)


def emit_resample(builder: PlanBuilder, x: View, axis: int, places: Array, weights: Array) -> View:
    """Weighted sums of a few elements along an axis.

    Args:
        x: float32.
        places: [count, taps] of elements of the axis.
        weights: [count, taps].

    Returns:
        As x, with `count` elements along the axis.
    """
    x, source_outer, step = _sliced(builder, x, axis)
    outer, columns = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    count, taps = places.shape
    target = builder.allocate((*x.shape[:axis], count, *x.shape[axis + 1 :]), np.float32)
    unit = max(1, _UNIT // (columns * 4))
    values: dict[str, Word] = {
        "source": x.where, "target": target.where, "outer": outer, "count": count, "source_outer": source_outer,
        "target_outer": count * columns * 4, "target_step": columns * 4, "taps": taps,
        "offsets": builder.keep(np.ascontiguousarray(places * step, np.int32)),
        "weights": builder.keep(np.ascontiguousarray(weights, np.float32)), "columns": columns, "unit": unit,
    }  # fmt: skip
    builder.emit("resample", -(-outer * count // unit), values, [x], [target], work=target.size * taps * 0.2)
    return target
