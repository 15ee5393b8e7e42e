"""Copies as records: any strided view into any other, dims merged and put into the order that suits the memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from onnxlab.execution.numba.machine.host import host
from onnxlab.execution.numba.machine.records import COPY_DIMS as DIMS
from onnxlab.execution.numba.plan.builder import PlanBuilder, Word
from onnxlab.execution.numba.plan.views import View, merged

_CLEARED = 65536
_RUN = 1024  # bytes of a line of a copy that are not cut further


def emit_copy(builder: PlanBuilder, source: View, target: View) -> None:
    """Copy one view into another of the same shape and item size.

    Raises:
        OverflowError: the shapes differ.
    """
    if source.shape != target.shape:
        raise OverflowError(f"a copy of {source.shape} into {target.shape}")
    order = sorted(range(len(target.shape)), key=lambda axis: -target.strides[axis])
    shape = [target.shape[axis] for axis in order]
    sizes, (reads, writes) = merged(shape, [[view.strides[axis] for axis in order] for view in (source, target)])
    dims = list(zip(sizes, reads, writes, strict=True))
    if len(dims) > DIMS:
        size, read, write = dims[0]
        axis = next(a for a in order if target.shape[a] > 1)
        for index in range(size):
            sub = [1 if a == axis else n for a, n in enumerate(target.shape)]
            emit_copy(
                builder,
                source.at(index * source.strides[axis], sub, source.strides),
                target.at(index * target.strides[axis], sub, target.strides),
            )
        return
    item = target.dtype.itemsize
    if len(dims) > 1 and dims[-1][1] != item:  # let the dim along which the source runs be the one before the last
        near = min(range(len(dims) - 1), key=lambda number: abs(dims[number][1]))
        dims.insert(-1, dims.pop(near))
    dims = [(1, 0, 0)] * max(0, 2 - len(dims)) + dims
    outer, inner = dims[:-2], dims[-2:]
    if not outer:
        outer, inner = _split(inner, item)
    outer += [(1, 0, 0)] * (DIMS - 2 - len(outer))
    values: dict[str, Word] = {"source": source.where, "target": target.where, "item": item}
    for number, (size, read, write) in enumerate((*outer, *inner)):
        values |= {f"size{number}": size, f"from{number}": read, f"to{number}": write}
    builder.emit("copy", outer[0][0] * outer[1][0], values, [source], [target], work=prod(sizes) * 0.5)


Dim = tuple[int, int, int]


def _split(inner: list[Dim], item: int) -> tuple[list[Dim], list[Dim]]:
    """Cut a copy of two dims into units that threads can share.

    Runs of memory stay long. A transpose works on square tiles of as many elements as a vector has, so units are cut
    such that most tiles are whole.
    """
    elements = prod(dim[0] for dim in inner)
    turned = item == 4 and inner[0][1] == 4 and inner[1][2] == 4
    square, remaining, best = host().lanes, inner, 0
    units: list[Dim] = []
    for place, least in ((0, 1), (1, 1 if turned else _RUN // item)):
        size, read, write = inner[place]
        for parts in range(min(32, size // least), 1, -1):
            left = size // parts
            whole = parts * (left // square) * (inner[1 - place][0] // square) if turned else 1
            if size % parts == 0 and elements // parts >= 2048 and (not units or whole > best):
                best, remaining = whole, list(inner)
                remaining[place] = (left, read, write)
                units = [(parts, read * left, write * left)]
    return units, remaining


def emit_clear(builder: PlanBuilder, target: View, nbytes: int) -> None:
    """Zero the bytes of a contiguous view."""
    values: dict[str, Word] = {"target": target.where, "item": nbytes}
    builder.emit("clear", -(-nbytes // _CLEARED), values, (), [target], work=nbytes * 0.05)


def contiguous(builder: PlanBuilder, view: View, strides: Sequence[int] | None = None) -> View:
    """The view itself if it is laid out so (default: contiguous), else a copy that is."""
    if view.is_laid_out(strides) if strides is not None else view.contiguous:
        return view
    copy = builder.allocate(view.shape, view.dtype, strides)
    emit_copy(builder, view, copy)
    return copy
