"""Convolutions of float tensors: Conv, ConvTranspose.

A convolution is a matrix product of the weights with patches of the input. Patches are gathered for a few groups or
output rows at a time into one bounded buffer, in runs as long as the window allows; 1×1 kernels multiply the input
itself.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.derivatives import Arrays, derivative
from onnxlab.ops.base.estimates import conv_bytes, convolution_flops, transposed_flops
from onnxlab.ops.base.kernel_helpers import Array, at, narrow, scratch, widen
from onnxlab.ops.base.prepared_constants import prepared
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, dims_text, elem_type, like, rank_at_least, unknown_shape
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.base.window_geometry import Window, window, window_over
from onnxlab.ops.onnx.nn.window_dims import checked, windows
from onnxlab.shapes import Dim, Fact, FactError, Shape, TensorFact

_SINGLE = np.dtype(np.float32)

PATCHES = 1 << 20
"""Elements of the buffer that holds patches: large enough for BLAS, small enough to stay near the cache."""

_IN_VAIN = 2
"""Unused outputs, for each element of a patch, that cost as much as copying it in lines rather than in runs."""

_FEW = 256
"""Outputs of an image below which several images are multiplied at once."""

_LITTLE = 1 << 13
"""Elements of the patches of an image up to which they are gathered by an index."""

_FEWEST = 32
"""Outputs of an image from which on `_shifted` multiplies each image alone, since it gathers patches quickly."""


Way = Callable[[RunContext, Array, Array, "Array | None", Window, int], Array]
"""`way(ctx, x, w, b, shape, group)` convolves float arrays."""
_KEPT = 4
"""Shapes of inputs for which a node keeps its window, and the way that suits it."""


@kernel("Conv", context=True, bound=True)
def bound_conv(
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Callable[..., Array]:
    """Correlation of X [N, C, D1, …] with W [M, C/group, k1, …], plus the bias B [M]."""

    @lru_cache(_KEPT)
    def suited(x: tuple[int, ...], w: tuple[int, ...]) -> tuple[Window, Way]:
        if len(x) < 3 or len(w) != len(x):
            raise ValueError(f"X has shape {x}, W {w}: expected equal ranks of at least 3")
        _check_kernel_shape(w, kernel_shape)
        if w[1] * group != x[1] or w[0] % group:
            raise ValueError(f"X has {x[1]} channels; W of shape {w} in {group} groups takes {w[1] * group}")
        shape = window_over(x[2:], w[2:], strides, pads, dilations, auto_pad)
        return shape, _way(x, w, shape, group)

    def run(ctx: RunContext, x: Array, w: Array, b: Array | None = None) -> Array:
        shape, way = suited(x.shape, w.shape)
        if x.dtype == w.dtype == _SINGLE:  # the most frequent case, in which a microsecond counts
            return way(ctx, x, w, b, shape, group)
        y = convolve(ctx, widen(x), widen(w), None if b is None else widen(b), shape, group)
        return narrow(y, x.dtype)

    return run


def conv(ctx: RunContext, x: Array, w: Array, b: Array | None = None, **attributes: Any) -> Array:
    """Conv of these attributes."""
    return bound_conv(**attributes)(ctx, x, w, b)


def check_kernel(w: Array, kernel_shape: Sequence[int] | None) -> None:
    """Raises ValueError where the attribute says otherwise than W [M, C, k1, …]."""
    _check_kernel_shape(w.shape, kernel_shape)


def _check_kernel_shape(w: tuple[int, ...], kernel_shape: Sequence[int] | None) -> None:
    if kernel_shape and tuple(kernel_shape) != w[2:]:
        raise ValueError(f"kernel_shape is {list(kernel_shape)}: W has shape {w}")


def convolve(ctx: RunContext, x: Array, w: Array, b: Array | None, shape: Window, group: int) -> Array:
    """Convolve float arrays, by the way that suits the kernel's shape."""
    if x.dtype != w.dtype:
        x, w = (array.astype(np.result_type(x, w), copy=False) for array in (x, w))
    return _way(x.shape, w.shape, shape, group)(ctx, x, w, b, shape, group)


def _way(x: tuple[int, ...], w: tuple[int, ...], shape: Window, group: int) -> Way:
    """The way that suits the shapes of X and W."""
    spots = prod(shape.output)
    if not (prod(x) and prod(w)):
        return _of_nothing
    if prod(shape.kernel) == 1 and not shape.padded:
        return _pointwise
    if x[0] == 1 and x[1] * prod(shape.kernel) * spots <= _LITTLE:
        return partial(_gathered, _places(x[1], shape))
    if shape.keeps_size and spots >= _FEWEST:
        return _shifted
    if x[0] > 1 and spots < _FEW:
        return _batched
    return _in_runs if _suit_runs(shape, w[0] // group, prod(w[1:])) else _by_columns


def _of_nothing(ctx: RunContext, x: Array, w: Array, b: Array | None, shape: Window, group: int) -> Array:
    """Sums of nothing, or of padding."""
    bias = x.dtype.type(0) if b is None else b.reshape(-1, *(1,) * len(shape.output))
    return np.broadcast_to(bias, (len(x), len(w), *shape.output)).copy()


def _by_columns(ctx: RunContext, x: Array, w: Array, b: Array | None, shape: Window, group: int) -> Array:
    """Patches are gathered for a part of the output at a time."""
    y = np.empty((len(x), len(w), *shape.output), x.dtype)
    weights = w.reshape(group, len(w) // group, -1)
    for image, result in zip(x, y, strict=True):
        for part, columns in _columns(ctx, image, shape):
            _multiply(weights, columns.reshape(group, weights.shape[2], -1), result[(slice(None), *part)], b)
    return y


def _gathered(
    places: Array, ctx: RunContext, x: Array, w: Array, b: Array | None, shape: Window, group: int
) -> Array:  # fmt: skip
    """A small image, whose patches are gathered by one index: other ways take longer in Python than in BLAS."""
    y, flat = np.empty((1, len(w), *shape.output), x.dtype), x.reshape(-1)
    if shape.padded:
        flat = np.empty(x.size + 1, x.dtype)
        flat[:-1], flat[-1] = x.reshape(-1), 0
    columns = flat.take(places)
    result = y.reshape(len(w), columns.shape[1])
    if group == 1:
        np.dot(w.reshape(len(w), -1), columns, result)
    else:
        np.matmul(w.reshape(group, len(w) // group, -1), columns.reshape(group, -1, columns.shape[1]),
                  result.reshape(group, -1, columns.shape[1]))  # fmt: skip
    if b is not None:
        np.add(result, b.reshape(len(w), 1), result)
    return y


@lru_cache(64)
def _places(channels: int, shape: Window) -> Array:
    """[C·k1·…, o1·…]: the element of an image that each one of its patches is, −1 for those of the padding."""
    numbers = np.arange(1, channels * prod(shape.size) + 1).reshape(1, channels, *shape.size)
    return shape.view(shape.pad(numbers)).reshape(channels * prod(shape.kernel), -1) - 1


def _columns(ctx: RunContext, image: Array, shape: Window) -> Iterator[tuple[tuple[slice, ...], Array]]:
    """(part of the output, patches [C, k1, …, o1, …] that it needs) of an image [C, D1, …]."""
    patches = shape.view(shape.pad(image[None]))[0]
    for part in _parts(shape.output, len(image) * prod(shape.kernel)):
        ctx.check()
        dims = [piece.stop - piece.start for piece in part]
        columns = scratch((len(image), *shape.kernel, *dims), image.dtype)
        np.copyto(columns, patches[(*(slice(None),) * (1 + len(shape.kernel)), *part)])
        yield part, columns


def _batched(ctx: RunContext, x: Array, w: Array, b: Array | None, shape: Window, group: int) -> Array:
    """Images with few outputs each: the patches of several are multiplied at once."""
    y = np.empty((len(x), len(w), *shape.output), x.dtype)
    weights = w.reshape(group, len(w) // group, -1)
    spots, depth, rank = prod(shape.output), x.shape[1] * prod(shape.kernel), len(shape.kernel)
    step = max(1, PATCHES // max(1, depth * spots))
    patches = shape.view(shape.pad(x))
    for start in range(0, len(x), step):
        ctx.check()
        chosen = patches[start : start + step]
        count = len(chosen)
        columns = scratch((*chosen.shape[1 : 2 + rank], count, *shape.output), x.dtype)
        np.copyto(columns, np.moveaxis(chosen, 0, 1 + rank))
        product = np.matmul(weights, columns.reshape(group, weights.shape[2], -1)).reshape(len(w), count, spots)
        out = y[start : start + count].reshape(count, len(w), spots)
        if b is None:
            np.copyto(out, product.swapaxes(0, 1))
        else:
            np.add(product.swapaxes(0, 1), b[:, None], out=out)
    return y


def _multiply(weights: Array, columns: Array, out: Array, b: Array | None) -> None:
    """out [M, o1, …] = weights [g, M/g, K] @ columns [g, K, o1·…] + b."""
    if out.flags.c_contiguous:
        flat = out.reshape(len(weights), -1, columns.shape[2])
        np.matmul(weights, columns, out=flat)
    else:
        flat = np.matmul(weights, columns)
    if b is not None:
        flat += b.reshape(len(weights), -1, 1)
    if not out.flags.c_contiguous:
        out[...] = flat.reshape(out.shape)


def _parts(output: Sequence[int], rows: int) -> Iterator[tuple[slice, ...]]:
    """Cut the output's spatial axes so that the patches of each part, `rows` per element, fit the buffer."""
    inner = rows * prod(output[1:])
    if len(output) > 1 and inner > PATCHES:
        for line in range(output[0]):
            for rest in _parts(output[1:], rows):
                yield (slice(line, line + 1), *rest)
        return
    step = max(1, PATCHES // max(1, inner))
    count = max(1, -(-output[0] // step))
    step = max(1, -(-output[0] // count))  # equal parts rather than a small last one
    for start in range(0, output[0], step):
        yield (slice(start, min(output[0], start + step)), *(slice(0, dim) for dim in output[1:]))


def _pointwise(ctx: RunContext, x: Array, w: Array, b: Array | None, shape: Window, group: int) -> Array:
    """A kernel of one element: a matrix product with the input, thinned out first where the stride is above 1."""
    if max(shape.strides) > 1:
        thinned = (slice(0, dim * step, step) for dim, step in zip(shape.output, shape.strides, strict=True))
        x = x[at(..., *thinned)]
    y = np.empty((len(x), len(w), *shape.output), x.dtype)  # no view of a product: its buffer may be used again
    if group == len(x) == 1:
        columns = x.reshape(x.shape[1], -1)
        result = y.reshape(len(w), columns.shape[1])
        np.dot(w.reshape(w.shape[:2]), columns, result)
        if b is not None:
            np.add(result, b.reshape(len(w), 1), result)
        return y
    images = np.ascontiguousarray(x).reshape(len(x), group, w.shape[1], prod(shape.output))
    results = y.reshape(len(x), group, len(w) // group, images.shape[3])
    np.matmul(w.reshape(group, -1, w.shape[1]), images, results)
    if b is not None:
        np.add(results, b.reshape(group, -1, 1), results)
    return y


def _shifted(ctx: RunContext, x: Array, w: Array, b: Array | None, shape: Window, group: int) -> Array:
    """Windows that give as many elements as they take: what a tap reads is the image itself, some elements further.

    Patches are therefore copied in runs of whole images or many lines; what a run takes from the line before or after
    is overwritten with zeros.
    """
    y = np.empty((len(x), len(w), *shape.output), x.dtype)
    weights = w.reshape(group, -1, prod(w.shape[1:]))
    filters, line, spots = weights.shape[1], prod(shape.output[1:]), prod(shape.output)
    before, after = shape.margins
    padded = np.empty((x.shape[1], before + spots + after), x.dtype)
    padded[:, :before] = padded[:, before + spots :] = 0
    taps = shape.taps_of(padded).reshape(group, w.shape[1], *shape.kernel, spots)
    for image, result in zip(
        x.reshape(len(x), x.shape[1], spots), y.reshape(len(x), group, filters, spots), strict=True
    ):
        padded[:, before : before + spots] = image
        for chosen, part in _blocks(group, shape.output[0], weights.shape[2] * line):
            ctx.check()
            run = slice(part.start * line, part.stop * line)
            columns = scratch((*taps[chosen].shape[:-1], run.stop - run.start), x.dtype)
            np.copyto(columns, taps[chosen][..., run])
            shape.clear_ends(columns)
            out = result[chosen, :, run]
            np.matmul(weights[chosen], columns.reshape(len(out), weights.shape[2], -1), out=out)
            if b is not None:
                np.add(out, b.reshape(group, filters, 1)[chosen], out=out)
    return y


def _suit_runs(shape: Window, filters: int, rows: int) -> bool:
    """Whether runs are worth their unused outputs; a group has `filters` outputs, its patches have `rows`."""
    lines = prod(shape.padded_size[1:])
    in_vain = lines / max(1, prod(shape.output[1:])) - 1
    return max(shape.strides) == 1 and filters * in_vain <= _IN_VAIN and lines * rows <= PATCHES


def _in_runs(ctx: RunContext, x: Array, w: Array, b: Array | None, shape: Window, group: int) -> Array:
    """Patches copied in long runs: without strides, what a tap reads for all outputs lies in one, line ends and all.

    Outputs that come of line ends are dropped after the product.
    """
    y = np.empty((len(x), len(w), *shape.output), x.dtype)
    weights = w.reshape(group, -1, prod(w.shape[1:]))
    filters, lines, ones = weights.shape[1], shape.padded_size[1:], (1,) * len(shape.output)
    for image, result in zip(x, y, strict=True):
        runs = shape.runs(np.ascontiguousarray(shape.pad(image[None])[0])).reshape(group, w.shape[1], *shape.kernel, -1)
        for chosen, part in _blocks(group, shape.output[0], weights.shape[2] * prod(lines)):
            ctx.check()
            count, height = chosen.stop - chosen.start, part.stop - part.start
            start, size = part.start * prod(lines), shape.run(height)
            columns = scratch((*runs[chosen].shape[:-1], size), x.dtype)
            np.copyto(columns, runs[chosen][..., start : start + size])
            product = np.empty((count, filters, height * prod(lines)), x.dtype)
            np.matmul(weights[chosen], columns.reshape(count, -1, size), out=product[:, :, :size])
            convolved = product.reshape(count * filters, height, *lines)[at(..., *map(slice, shape.output[1:]))]
            channels = slice(chosen.start * filters, chosen.stop * filters)
            if b is None:
                np.copyto(result[channels, part], convolved)
            else:
                np.add(convolved, b[channels].reshape(-1, *ones), out=result[channels, part])
    return y


def _blocks(groups: int, lines: int, width: int) -> Iterator[tuple[slice, slice]]:
    """Cut groups, or the lines of each, so that the patches of a block fit the buffer; `width` is that of a line."""
    together = max(1, PATCHES // max(1, width * lines))
    step = lines if width * lines <= PATCHES else max(1, PATCHES // width)
    for group in range(0, groups, together):
        for line in range(0, lines, step):
            yield slice(group, min(groups, group + together)), slice(line, min(lines, line + step))


@kernel("ConvTranspose", context=True)
def conv_transpose(
    ctx: RunContext,
    x: Array,
    w: Array,
    b: Array | None = None,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """The transpose of a convolution: X [N, C, D1, …], W [C, M/group, k1, …], bias B [M]."""
    check_kernel(w, kernel_shape)
    if w.shape[0] != x.shape[1] or x.shape[1] % group:
        raise ValueError(f"X has {x.shape[1]} channels, W of shape {w.shape} in {group} groups takes {w.shape[0]}")
    rank = x.ndim - 2
    steps, spread = tuple(strides or (1,) * rank), tuple(dilations or (1,) * rank)
    extra = tuple(output_padding or (0,) * rank)
    if min(*steps, *spread) < 1:
        raise ValueError(f"strides are {list(steps)}, dilations {list(spread)}: expected 1 at least")
    full = tuple(
        max(0, (dim - 1) * step + (k - 1) * dilation + 1 + more)
        for dim, step, k, dilation, more in zip(x.shape[2:], steps, w.shape[2:], spread, extra, strict=True)
    )
    begin, output = transposed_output(x.shape[2:], full, steps, pads, auto_pad, output_shape)
    full = tuple(max(dim, start + want) for dim, start, want in zip(full, begin, output, strict=True))
    ctx.reserve(
        2 * x.itemsize * len(x) * w.shape[1] * group * prod(full), "the output, and what is added to it at a time"
    )
    y = _spread(ctx, widen(x), widen(w), full, steps, spread, group)
    y = y[at(..., *(slice(start, start + dim) for start, dim in zip(begin, output, strict=True)))]
    if b is not None:
        y = y + widen(b).reshape(-1, *(1,) * rank)
    return narrow(np.ascontiguousarray(y), x.dtype)


def transposed_output(
    size: Sequence[int],
    full: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int] | None,
    auto_pad: str,
    output_shape: Sequence[int] | None,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The part that is cut off before each spatial axis, and the dims that remain."""
    rank = len(full)
    if not output_shape and auto_pad in ("NOTSET", "", "VALID"):
        amounts = tuple(pads or (0,) * (2 * rank))
        output = (dim - a - b for dim, a, b in zip(full, amounts[:rank], amounts[rank:], strict=True))
        return amounts[:rank], tuple(output)
    if output_shape:
        remaining = tuple(output_shape[-rank:])
    else:
        remaining = tuple(dim * step for dim, step in zip(size, strides, strict=True))
    total = [max(0, dim - want) for dim, want in zip(full, remaining, strict=True)]
    # an odd element is cut at the beginning, unless SAME_UPPER puts the padding at the end
    begin = tuple(t // 2 if auto_pad == "SAME_UPPER" else t - t // 2 for t in total)
    return begin, remaining


def _spread(
    ctx: RunContext,
    x: Array,
    w: Array,
    full: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    group: int,
) -> Array:
    """Add what kernel positions make of X to their places in the whole, uncut output.

    As many positions as a stride has steps are multiplied at once, since no two of them reach the same place.
    """
    for dim, step, k, dilation, size in zip(x.shape[2:], strides, w.shape[2:], dilations, full, strict=True):
        if (dim - 1) * step + (k - 1) * dilation >= size:  # `as_strided` does not look
            raise ValueError(f"kernels reach beyond the output, of {list(full)} with output_padding")
    batch, rank, y = len(x), len(full), np.zeros((len(x), group * w.shape[1], *full), x.dtype)
    columns = np.ascontiguousarray(x).reshape(batch, group, x.shape[1] // group, prod(x.shape[2:]))
    blocks = [step if dilation == 1 else 1 for step, dilation in zip(strides, dilations, strict=True)]
    order = (0, 1, *_alternating(range(2 + rank, 2 + 2 * rank), range(2, 2 + rank)))
    for block in np.ndindex(*(-(-k // size) for k, size in zip(w.shape[2:], blocks, strict=True))):
        ctx.check()
        matrix = prepared(("taps", block, *blocks), partial(_taps, block, blocks), w)
        rows = matrix.reshape(group, columns.shape[2], prod(matrix.shape[1:])).swapaxes(1, 2)
        part = np.matmul(rows, columns).reshape(*y.shape[:2], *matrix.shape[2:], *x.shape[2:])
        first = (slice(n * size * d, None) for n, size, d in zip(block, blocks, dilations, strict=True))
        steps = (step * size for step, size in zip(strides, y.strides[2:], strict=True))
        places = as_strided(
            y[at(..., *first)],
            (*y.shape[:2], *_alternating(x.shape[2:], matrix.shape[2:])),
            (*y.strides[:2], *_alternating(steps, y.strides[2:])),
        )
        moved = part.transpose(order)
        if matrix.shape[-1] >= min(_ALONG, x.shape[-1]):
            places += moved
        else:
            for tap in range(matrix.shape[-1]):  # NumPy's inner loop is the last axis, or else that of few positions
                places[..., tap] += moved[..., tap]
    return y


_ALONG = 16
"""Positions of the last axis from which on they are added along."""


def _taps(block: Sequence[int], blocks: Sequence[int], w: Array) -> Array:
    """Positions of the kernel that are multiplied at once, in one piece of memory."""
    taps = (slice(number * size, number * size + size) for number, size in zip(block, blocks, strict=True))
    return w[at(..., *taps)].copy()


def _alternating(first: Iterable[int], second: Iterable[int]) -> Iterator[int]:
    """Elements of both by turns."""
    return chain.from_iterable(zip(first, second, strict=True))


# -- shape rules -------------------------------------------------------------------------------------------------------


def conv_shape(ctx: InferContext, attributes: Attributes, x: Fact, w: Fact) -> Shape | None:
    """The output's shape, from the image and the filters."""
    kernel_shape = attributes.get("kernel_shape")
    if x.shape is None and w.shape is None:
        return unknown_shape(ctx, 2 + len(kernel_shape)) if kernel_shape else None
    rank = len(x.shape if x.shape is not None else w.shape or ())
    if rank < 3:
        shown = dims_text(x.shape if x.shape is not None else w.shape)
        raise FactError(
            f"it convolves {shown}", code="rank-mismatch", expected="[N, C, one or more spatial dims]", found=shown
        )
    if x.shape is not None and w.shape is not None:
        _check_channels(x.shape, w.shape, attributes.get("group", 1))
    kernel: Sequence[Dim] | None = w.shape[2:] if w.shape is not None else None
    if kernel_shape:
        _check_kernel(kernel_shape, kernel, rank - 2)
        kernel = kernel_shape
    batch = x.shape[0] if x.shape is not None else ctx.symbol(0, 0)
    channels = w.shape[0] if w.shape is not None else ctx.symbol(0, 1)
    if x.shape is None or kernel is None:
        return (batch, channels, *unknown_shape(ctx, rank)[2:])
    return (batch, channels, *windows(ctx, attributes, x.shape[2:], kernel))


def _check_channels(x: Shape, w: Shape, group: int) -> None:
    """Raise FactError where the input's channels are not the weight's times the number of groups."""
    if len(x) != len(w):
        raise FactError(
            f"the input {dims_text(x)} and the weight {dims_text(w)} have different ranks",
            code="rank-mismatch",
            expected=f"rank {len(x)}",
            found=f"rank {len(w)}",
        )
    expected = w[1] * group
    if isinstance(x[1], int) and isinstance(expected, int) and x[1] != expected:
        raise FactError(
            f"the input {dims_text(x)} has {x[1]} channels, the weight {dims_text(w)} with group={group} "
            f"takes {expected}",
            code="channel-mismatch",
            expected=f"{expected} channels",
            found=f"{x[1]} channels",
            hint="change the weight, the attribute group, or what makes the input",
        )
    if isinstance(w[0], int) and group > 0 and w[0] % group:
        raise FactError(
            f"group={group} does not divide the {w[0]} output channels of the weight",
            code="channel-mismatch",
            expected=f"a multiple of {group}",
            found=str(w[0]),
        )


def _check_kernel(sizes: Sequence[int], kernel: Sequence[Dim] | None, count: int) -> None:
    if len(sizes) != count:
        raise FactError(
            f"attribute kernel_shape={list(sizes)} has {len(sizes)} values",
            code="bad-attribute",
            expected=f"{count} values",
            found=f"{len(sizes)} values",
        )
    if sizes == kernel:
        return
    for axis, (attribute, stored) in enumerate(zip(sizes, kernel or sizes, strict=True)):
        if isinstance(stored, int) and attribute != stored:
            raise FactError(
                f"attribute kernel_shape={list(sizes)} contradicts the weight, whose spatial axis {axis} has {stored}",
                code="bad-attribute",
                expected=str(stored),
                found=str(attribute),
                hint="leave kernel_shape out: it follows from the weight",
            )


@rule("Conv")
def conv_rule(ctx: InferContext, attributes: Attributes, x: Fact, w: Fact, bias: MaybeFact = None) -> Fact:
    """[N, M, …]: a filter's channels, and the windows that fit each spatial dim."""
    shape = conv_shape(ctx, attributes, x, w)
    if bias is not None and bias.shape is not None and w.shape is not None and bias.shape != w.shape[:1]:
        ints = all(isinstance(dim, int) for dim in (*bias.shape, w.shape[0]))
        if len(bias.shape) != 1 or ints:
            raise FactError(
                f"the bias has shape {dims_text(bias.shape)} for {w.shape[0]} output channels",
                expected=f"[{w.shape[0]}]",
                found=dims_text(bias.shape),
            )
    return TensorFact(elem_type(x) or elem_type(w), shape)


@rule("ConvTranspose")
def conv_transpose_rule(ctx: InferContext, attributes: Attributes, x: Fact, w: Fact, bias: MaybeFact = None) -> Fact:
    """[N, M * group, …]: each spatial dim spread by the stride, or what `output_shape` says."""
    if x.shape is None or w.shape is None:
        return like(x, None if x.shape is None else unknown_shape(ctx, len(x.shape)))
    rank_at_least(x, 3, "the input")
    count = len(x.shape) - 2
    group = attributes.get("group", 1)
    if isinstance(x.shape[1], int) and isinstance(w.shape[0], int) and x.shape[1] != w.shape[0]:
        raise FactError(
            f"the input {dims_text(x.shape)} has {x.shape[1]} channels, the weight {dims_text(w.shape)} "
            f"takes {w.shape[0]}",
            code="channel-mismatch",
            expected=f"{w.shape[0]} channels",
            found=f"{x.shape[1]} channels",
        )
    kernel = attributes.get("kernel_shape") or w.shape[2:]
    strides = checked("strides", attributes.get("strides"), count, 1)
    dilations = checked("dilations", attributes.get("dilations"), count, 1)
    pads = checked("pads", attributes.get("pads"), 2 * count, 0)
    extra = checked("output_padding", attributes.get("output_padding"), count, 0)
    output_shape = attributes.get("output_shape")
    auto = attributes.get("auto_pad", "NOTSET")
    dims: list[Dim] = []
    for axis, dim in enumerate(x.shape[2:]):
        if output_shape:
            dims.append(output_shape[axis - count])
        elif auto in ("SAME_UPPER", "SAME_LOWER"):
            dims.append(dim * strides[axis])
        else:
            cut = 0 if auto == "VALID" else pads[axis] + pads[axis + count]
            reach = (kernel[axis] - 1) * dilations[axis] + 1
            dims.append((dim - 1) * strides[axis] + extra[axis] + reach - cut)
    return like(x, (x.shape[0], w.shape[1] * group, *dims))


# -- gradients ---------------------------------------------------------------------------------------------------------


@derivative("Conv")
def _conv_gradient(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    x, w, *rest = inputs
    group, g = attributes["group"], gradients[0]
    shape = window(
        x, w.shape[2:], attributes.get("strides"), attributes.get("pads"), attributes.get("dilations"),
        attributes["auto_pad"],
    )  # fmt: skip
    grouped = x.reshape(len(x), group, -1, *x.shape[2:])
    weights = w.reshape(group, len(w) // group, *w.shape[1:])
    above = g.reshape(len(x), group, len(w) // group, *g.shape[2:])
    of_x, of_w = np.zeros_like(grouped), np.zeros_like(weights)
    for position, served, read in shape.taps():
        part, seen = above[at(..., *served)], at(..., *read)
        of_x[seen] += np.einsum("ngm...,gmc->ngc...", part, weights[at(..., *position)])
        flat = part.reshape(*part.shape[:3], -1), grouped[seen].reshape(*grouped.shape[:3], -1)
        of_w[at(..., *position)] = np.einsum("ngmi,ngci->gmc", *flat)
    bias = [None if b is None else g.sum(axis=(0, *range(2, g.ndim))) for b in rest]
    return [of_x.reshape(x.shape), of_w.reshape(w.shape), *bias]


# -- traits ------------------------------------------------------------------------------------------------------------


def _conv_transpose_bytes(attributes: Mapping[str, Any], array: Any, weight: Any, *rest: Any) -> int:
    output_shape = attributes.get("output_shape")
    strides = attributes.get("strides") or [1] * (array.ndim - 2)
    dilations = attributes.get("dilations") or [1] * (array.ndim - 2)
    extra = attributes.get("output_padding") or [0] * (array.ndim - 2)
    spatial = list(output_shape)[-(array.ndim - 2) :] if output_shape else [
        strides[axis] * (size - 1) + extra[axis] + (weight.shape[2 + axis] - 1) * dilations[axis] + 1
        for axis, size in enumerate(array.shape[2:])
    ]  # fmt: skip
    channels = weight.shape[1] * attributes.get("group", 1)
    return int(array.shape[0] * channels * prod(spatial) * array.itemsize)


traits(
    "Conv",
    OpTraits(
        category="convolution",
        shape="shapes",
        flops=convolution_flops,
        elements="none",
        half="rounded",
        out_bytes=conv_bytes,
        signature="N ? ...|M ? ...|M",
        layer="convolution",
        int8="product",
    ),
)
traits(
    "ConvTranspose",
    OpTraits(
        category="convolution",
        shape="shapes",
        flops=transposed_flops,
        elements="none",
        half="rounded",
        out_bytes=_conv_transpose_bytes,
        signature="N C ...|C ? ...|?",
        layer="convolution",
    ),
)
