"""Operators that rearrange: Transpose, Concat, Split, Expand, Tile, DepthToSpace and others."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.derivatives import Arrays, derivative, unary, unbroadcast
from onnxlab.ops.base.kernel_helpers import Array, integers, normal_axis
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import (
    MaybeFact,
    as_dim,
    broadcast_shapes,
    checked_axis,
    dims_text,
    elem_type,
    items,
    known_of,
    like,
    must_equal,
    rank_at_least,
    rearranged,
    same,
    same_as_first,
    unknown_shape,
)
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.shapes import (
    Dim,
    Fact,
    FactError,
    TensorFact,
    ceil_div,
    exact_div,
    floor_div,
    from_items,
    maximum,
    product,
)


@kernel("Identity")
def identity(x: Any) -> Any:
    """The input itself, whatever it is."""
    return x


@kernel("Shape")
def shape(x: Array, start: int = 0, end: int | None = None) -> Array:
    """The dimensions from `start` to `end` (exclusive; negative ones count from the end) as int64."""
    return np.array(x.shape[start:end], np.int64)


@kernel("Size")
def size(x: Array) -> Array:
    """The number of elements as an int64 scalar."""
    return np.array(x.size, np.int64)


@kernel("Transpose")
def transpose(x: Array, perm: Sequence[int] | None = None) -> Array:
    """A view with axes in the order `perm`; reversed by default."""
    return x.transpose(perm)


@kernel("Concat", since=4)
def concat(*inputs: Array, axis: int) -> Array:
    """Join along `axis`; inputs without elements are left out where they do not fit, as in ONNX Runtime."""
    if len(inputs) == 1:
        return inputs[0]
    try:
        return np.concatenate(inputs, axis)
    except ValueError:
        rest = [x for x in inputs if x.size]
        if rest and len(rest) < len(inputs):
            return concat(*rest, axis=axis)
        shapes = ", ".join(str(x.shape) for x in inputs)
        raise ValueError(f"shapes {shapes} differ outside axis {axis} and cannot be joined") from None


@kernel("Concat", since=1)
def concat_1(*inputs: Array, axis: int = 1) -> Array:
    """Concat-4 with a default axis."""
    return concat(*inputs, axis=axis)


def split_at(x: Array, axis: int, lengths: Sequence[int]) -> tuple[Array, ...]:
    """Views of `x` with these lengths along `axis`.

    Raises:
        ValueError: a length is negative, or they do not add up to the dimension.
    """
    if sum(lengths) != x.shape[axis] or min(lengths, default=0) < 0:
        raise ValueError(f"split {list(lengths)} does not add up to the {x.shape[axis]} of axis {axis}")
    lead, start, pieces = (slice(None),) * axis, 0, list[Array]()
    for length in lengths:
        pieces.append(x[(*lead, slice(start, start + length))])
        start += length
    return tuple(pieces)


@kernel("Split", since=13, context=True)
def split_13(
    ctx: RunContext, x: Array, split: Array | None = None, axis: int = 0, num_outputs: int | None = None
) -> tuple[Array, ...]:
    """Cut along `axis` into the lengths given, or into equal parts (since 18 the last may be shorter)."""
    axis = normal_axis(axis, x.ndim)
    if split is not None and split.size:
        return split_at(x, axis, integers(split))
    total, count = x.shape[axis], len(ctx.outputs)
    if num_outputs is not None and num_outputs != count:
        raise ValueError(f"num_outputs is {num_outputs}: expected {count}, as many as the node has outputs")
    if num_outputs is None and total % count:
        raise ValueError(f"axis {axis} has {total} elements, which do not split into {count} equal parts")
    part = -(-total // count)
    lengths = [max(0, min(part, total - start)) for start in range(0, part * count, part or 1)]
    return split_at(x, axis, (lengths + [0] * count)[:count])


@kernel("Split", since=1, context=True)
def split_1(
    ctx: RunContext, x: Array, lengths: Array | None = None, axis: int = 0, split: Sequence[int] | None = None
) -> tuple[Array, ...]:
    """Split-13; the lengths are an attribute, or in opset 1 either."""
    if lengths is None and split is None:
        return split_13(ctx, x, axis=axis)
    return split_at(x, normal_axis(axis, x.ndim), integers(lengths if lengths is not None else split or ()))


@kernel("Expand", since=8, context=True)
def expand(ctx: RunContext, x: Array, shape: Array) -> Array:
    """Broadcast `x` and `shape` against each other.

    The result is a read-only view; memory is reserved all the same, since a later node may copy the elements.
    """
    dims, strides = _broadcast(x.shape, x.strides, tuple(shape.reshape(-1).tolist()))
    ctx.reserve(prod(dims) * x.itemsize, "the expanded tensor")
    if not x.flags.c_contiguous or x.dtype.char not in _PLAIN:
        return np.broadcast_to(x, dims)
    y: Array = np.ndarray(dims, x.dtype, x, 0, strides)  # np.broadcast_to takes five times as long
    y.flags.writeable = False
    return y


_PLAIN = frozenset("?bBhHiIlLqQefd")


@lru_cache(256)
def _broadcast(
    shape: tuple[int, ...], strides: tuple[int, ...], sizes: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:  # fmt: skip
    """Shape and strides of an array that is broadcast against `sizes`. Raises ValueError where they do not fit."""
    dims = np.broadcast_shapes(shape, sizes)
    steps = [0 if dim == 1 else step for dim, step in zip(shape, strides, strict=True)]
    return dims, (*(0,) * (len(dims) - len(shape)), *steps)


@kernel("Tile", since=6, context=True)
def tile(ctx: RunContext, x: Array, repeats: Array) -> Array:
    """Repeat along every axis."""
    times = integers(repeats)
    if len(times) != x.ndim or any(time < 0 for time in times):
        raise ValueError(f"repeats {list(times)}: expected {x.ndim} counts of at least 0, one for each axis")
    ctx.reserve(x.nbytes * prod(times), "the tiled tensor")
    return np.tile(x, times)


@kernel("Tile", since=1, context=True)
def tile_1(ctx: RunContext, x: Array, tiles: Array, axis: Array) -> Array:
    """Repeat along one axis."""
    repeats = np.ones(x.ndim, np.int64)
    repeats[int(axis.reshape(-1)[0])] = int(tiles.reshape(-1)[0])
    return tile(ctx, x, repeats)


@kernel("DepthToSpace")
def depth_to_space(x: Array, blocksize: int, mode: str = "DCR") -> Array:
    """[N, C, H, W] -> [N, C/b², H·b, W·b]; the channels are ordered (b, b, C) for DCR, (C, b, b) for CRD."""
    n, c, h, w = x.shape
    b, depth = blocksize, c // blocksize**2
    if mode == "DCR":
        y = x.reshape(n, b, b, depth, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, depth, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return y.reshape(n, depth, h * b, w * b)


@kernel("SpaceToDepth")
def space_to_depth(x: Array, blocksize: int, mode: str = "DCR") -> Array:
    """[N, C, H, W] -> [N, C·b², H/b, W/b]; the inverse of DepthToSpace."""
    n, c, h, w = x.shape
    b = blocksize
    blocks = x.reshape(n, c, h // b, b, w // b, b)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return blocks.transpose(order).reshape(n, c * b * b, h // b, w // b)


@kernel("Trilu", since=14)
def trilu(x: Array, k: Array | None = None, upper: int = 1) -> Array:
    """The upper or lower triangle of the matrices in the last two axes; the rest is 0."""
    diagonal = 0 if k is None else int(k.reshape(-1)[0])
    return np.triu(x, diagonal) if upper else np.tril(x, diagonal)


@kernel("ReverseSequence", since=10)
def reverse_sequence(x: Array, sequence_lens: Array, batch_axis: int = 1, time_axis: int = 0) -> Array:
    """Reverse the first sequence_lens[b] time steps of every batch entry b."""
    batch, time = normal_axis(batch_axis, x.ndim), normal_axis(time_axis, x.ndim)
    y = x.copy()
    source, target = np.moveaxis(x, (batch, time), (0, 1)), np.moveaxis(y, (batch, time), (0, 1))
    for entry, length in enumerate(integers(sequence_lens)):
        if not 0 <= length <= x.shape[time]:
            raise ValueError(f"sequence_lens[{entry}] is {length}: expected 0 to {x.shape[time]}")
        target[entry, :length] = source[entry, :length][::-1]
    return y


# -- shape rules -------------------------------------------------------------------------------------------------------


rule("Trilu ReverseSequence")(same_as_first)


@rule("Identity")
def identity_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's fact, elements included."""
    return x


@rule("Shape")
def shape_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """A vector with the dims from `start` to `end`, which are its elements."""
    if x.shape is None:
        return TensorFact(dtypes.INT64, (ctx.symbol(0, 0),))
    start, end = attributes.get("start", 0), attributes.get("end")
    dims = x.shape[start:end]
    return TensorFact(dtypes.INT64, (len(dims),), from_items((len(dims),), dims))


@rule("Size")
def size_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The number of elements."""
    if x.shape is None:
        return TensorFact(dtypes.INT64, ())
    return TensorFact(dtypes.INT64, (), from_items((), [product(x.shape)]))


@rule("Transpose")
def transpose_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Dims in the order `perm`, by default reversed."""
    if x.shape is None:
        perm = attributes.get("perm")
        return like(x, unknown_shape(ctx, len(perm)) if perm else None)
    perm = attributes.get("perm", tuple(reversed(range(len(x.shape)))))
    if sorted(axis % len(x.shape) if x.shape else axis for axis in perm) != list(range(len(x.shape))):
        raise FactError(
            f"perm {list(perm)} does not permute the axes of {dims_text(x.shape)}",
            code="bad-attribute",
            expected=f"a permutation of 0 to {len(x.shape) - 1}",
            found=str(list(perm)),
            hint=f"list each of the {len(x.shape)} axes once",
        )
    result = like(x, tuple(x.shape[axis] for axis in perm))
    return rearranged(result, x, lambda array: array.transpose(perm))


@rule("Concat")
def concat_rule(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> Fact:
    """Sizes add up along `axis`; the other dims must be equal."""
    elem = next((elem_type(fact) for fact in inputs if elem_type(fact)), 0)
    shapes = [fact.shape for fact in inputs]
    first = next((s for s in shapes if s is not None), None)
    if first is None:
        return TensorFact(elem, None)
    axis = checked_axis(attributes.get("axis", 1), len(first))
    dims: list[Dim] = list(first)
    total: Dim | None = 0
    for number, input_shape in enumerate(shapes):
        if input_shape is None:
            total = None
            continue
        if len(input_shape) != len(first):
            raise FactError(
                f"{dims_text(first)} and {dims_text(input_shape)} have different ranks",
                code="rank-mismatch",
                expected=f"rank {len(first)}",
                found=f"rank {len(input_shape)}",
            )
        for other, dim in enumerate(input_shape):
            if other != axis and dims[other] != dim:
                hint = f"only axis {axis} may differ"
                must_equal(dims[other], dim, "input {} differs in axis {}", number, other, hint=hint)
                dims[other] = same(dims[other], dim)
        total = None if total is None else total + input_shape[axis]
    dims[axis] = ctx.symbol(0, axis) if total is None else total
    result = TensorFact(elem, tuple(dims))
    return result if len(dims) > 1 and None in map(known_of, inputs) else _joined(result, inputs, axis)


def _joined(result: TensorFact, inputs: Sequence[Fact], axis: int) -> Fact:
    """Elements of the inputs in a row; each one that is not known stays unknown."""
    pieces = []
    for fact in inputs:
        known = known_of(fact)
        if known is not None:
            pieces.append(known.objects())
            continue
        elements = items(fact)
        if elements is None or fact.shape is None or len(fact.shape) != 1:
            return result
        pieces.append(np.array(elements, dtype=object))
    if sum(piece.size for piece in pieces) > 512 or all(known_of(fact) is None for fact in inputs):
        return result
    source = next(known for known in map(known_of, inputs) if known is not None)
    joined = np.concatenate(pieces, axis=axis)
    return TensorFact(result.elem_type, result.shape, from_items(joined.shape, joined.ravel().tolist(), source.kind))


@rule("Split", since=13)
def split(ctx: InferContext, attributes: Attributes, x: Fact, sizes: MaybeFact = None) -> tuple[Fact, ...]:
    """Pieces of the given sizes, or `num_outputs` of equal size, the last one smaller."""
    return _split(ctx, attributes, x, None if sizes is None else items(sizes), sizes is not None)


@rule("Split", since=2)
def split_by_attribute(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, ...]:
    """Split-13 with the sizes in an attribute."""
    sizes = attributes.get("split")
    return _split(ctx, attributes, x, None if sizes is None else list(sizes), sizes is not None)


def _split(
    ctx: InferContext, attributes: Attributes, x: Fact, sizes: Sequence[Dim | None] | None, has_sizes: bool
) -> tuple[Fact, ...]:
    count = len(ctx.outputs)
    if x.shape is None:
        return (like(x, None),) * count
    axis = checked_axis(attributes.get("axis", 0), len(x.shape))
    dim = x.shape[axis]
    if has_sizes:
        pieces = _given_pieces(ctx, sizes, count, axis, dim)
    else:
        pieces = _equal_pieces(ctx, dim, attributes.get("num_outputs", count))
    facts, start = [], 0
    for piece in pieces:
        fact = like(x, (*x.shape[:axis], piece, *x.shape[axis + 1 :]))
        if isinstance(piece, int) and isinstance(start, int):
            cut = (slice(None),) * axis + (slice(start, start + piece),)
            fact = rearranged(fact, x, lambda array, cut=cut: array[cut])  # type: ignore[misc]
        start = start + piece
        facts.append(fact)
    return tuple(facts)


def _equal_pieces(ctx: InferContext, dim: Dim, pieces: int) -> list[Dim]:
    """Sizes of the pieces that have an output, of `pieces` equal ones, the last of which may be smaller."""
    outputs = len(ctx.outputs)
    message, hint = f"num_outputs is {pieces}, and it has {outputs} outputs", f"set num_outputs to {outputs}"
    if pieces < outputs:
        raise FactError(message, code="bad-attribute", expected=str(outputs), found=str(pieces), hint=hint)
    if pieces > outputs:
        ctx.warn(message, code="bad-attribute", expected=str(outputs), found=str(pieces), hint=hint)
    chunk = ceil_div(dim, pieces)
    sizes = [chunk] * outputs
    if pieces == outputs and exact_div(dim, pieces) is None:
        last = dim - chunk * (pieces - 1)
        sizes[-1] = last if isinstance(dim, int) else maximum(last, 0)
    return sizes


def _given_pieces(ctx: InferContext, sizes: Sequence[Dim | None] | None, count: int, axis: int, dim: Dim) -> list[Dim]:
    if sizes is None:
        return [ctx.symbol(slot, axis) for slot in range(count)]
    if len(sizes) != count:
        raise FactError(
            f"it lists {len(sizes)} sizes for {count} outputs", expected=f"{count} sizes", found=f"{len(sizes)} sizes"
        )
    pieces = [as_dim(ctx, piece, slot, axis) for slot, piece in enumerate(sizes)]
    if None not in sizes:
        must_equal(dim, sum(pieces), "the sizes do not add up to the dim that is split", hint="change the sizes")
    return pieces


@rule("Expand", since=8)
def expand_rule(ctx: InferContext, attributes: Attributes, x: Fact, target: Fact) -> Fact:
    """The input broadcast with the target shape."""
    sizes = items(target)
    if sizes is None or x.shape is None:
        return like(x, None)
    rank = max(len(sizes), len(x.shape))
    dims = tuple(as_dim(ctx, dim, 0, rank - len(sizes) + axis) for axis, dim in enumerate(sizes))
    result = broadcast_shapes([x.shape, dims])
    fact = like(x, result)
    if result is not None and all(isinstance(dim, int) for dim in result) and product(result) <= 512:  # type: ignore[operator]
        return rearranged(fact, x, lambda array: np.broadcast_to(array, result))  # type: ignore[arg-type]
    return fact


@rule("Tile", since=6)
def tile_rule(ctx: InferContext, attributes: Attributes, x: Fact, repeats: Fact) -> Fact:
    """Each dim times its number of repeats."""
    if x.shape is None:
        return like(x, None)
    times = items(repeats)
    if times is None:
        return like(x, unknown_shape(ctx, len(x.shape)))
    if len(times) != len(x.shape):
        raise FactError(
            f"it repeats {len(times)} axes of {dims_text(x.shape)}",
            expected=f"{len(x.shape)} repeats",
            found=f"{len(times)} repeats",
        )
    if (least := min((n for n in times if isinstance(n, int)), default=0)) < 0:
        raise FactError(f"it repeats an axis {least} times", expected="numbers from 0 on", found=str(least))
    dims = [
        ctx.symbol(0, axis) if n is None or as_dim(ctx, n, 0, axis) is not n else dim * n
        for axis, (dim, n) in enumerate(zip(x.shape, times, strict=True))
    ]
    fact = like(x, tuple(dims))
    if known_of(x) is not None and all(isinstance(dim, int) for dim in dims) and product(dims) <= 512:  # type: ignore[operator]
        return rearranged(fact, x, lambda array: np.tile(array, times))  # type: ignore[arg-type]
    return fact


@rule("DepthToSpace")
def depth_to_space_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Channels become blocks of pixels."""
    if x.shape is None:
        return like(x, unknown_shape(ctx, 4))
    rank_at_least(x, 4, "the input")
    n, c, *space = x.shape
    block = attributes["blocksize"]
    return like(x, (n, floor_div(c, block ** len(space)), *(dim * block for dim in space)))


@rule("SpaceToDepth")
def space_to_depth_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Blocks of pixels become channels."""
    if x.shape is None:
        return like(x, unknown_shape(ctx, 4))
    rank_at_least(x, 4, "the input")
    n, c, *space = x.shape
    block = attributes["blocksize"]
    return like(x, (n, c * block ** len(space), *(floor_div(dim, block) for dim in space)))


# -- gradients ---------------------------------------------------------------------------------------------------------


derivative("Identity")(unary(lambda x, y, g, a: g))
derivative("Expand")(unary(lambda x, y, g, a: unbroadcast(g, x.shape)))


@derivative("Transpose")
def _transpose_gradient(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    perm = attributes.get("perm")
    return [gradients[0].T if perm is None else gradients[0].transpose(np.argsort(perm))]


@derivative("Concat")
def _concat_gradient(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    axis = attributes["axis"]
    return np.split(gradients[0], np.cumsum([x.shape[axis] for x in inputs])[:-1], axis)


@derivative("Split")
def _split_gradient(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    return [np.concatenate(gradients, attributes["axis"]), *[None] * (len(inputs) - 1)]


# -- traits ------------------------------------------------------------------------------------------------------------


def _concat_bytes(attributes: Mapping[str, Any], *inputs: Any) -> int:
    """Bytes of all inputs together: the same one may come a thousand times."""
    return sum([int(array.nbytes) for array in inputs])


def _expand_bytes(attributes: Mapping[str, Any], array: Any, shape: Any) -> int:
    return int(prod(np.broadcast_shapes(array.shape, tuple(map(int, shape)))) * int(array.itemsize))


def _tile_bytes(attributes: Mapping[str, Any], array: Any, repeats: Any, *rest: Any) -> int:
    return int(prod(map(int, repeats)) * int(array.nbytes))


_MOVES = OpTraits(
    category="shape", shape="shapes", flops=0, half="exact", quiet=True, size_arithmetic=True, forwards=True
)
traits("Concat", _MOVES._replace(out_bytes=_concat_bytes, int8="pointwise"))
traits("Transpose", _MOVES._replace(int8="moved"))
traits(
    "DepthToSpace SpaceToDepth",
    OpTraits(
        category="shape", shape="shapes", flops=0, elements="none", half="exact", signature="N C H W", int8="moved"
    ),
)
traits(
    "Expand",
    OpTraits(
        category="shape",
        shape="sizes",
        flops=0,
        half="exact",
        out_bytes=_expand_bytes,
        quiet=True,
        size_arithmetic=True,
        forwards=True,
        sizes={1: "one"},
    ),
)
traits(
    "Identity",
    OpTraits(
        category="elementwise",
        shape="shapes",
        flops=0,
        half="exact",
        quiet=True,
        size_arithmetic=True,
        blockwise=True,
        forwards=True,
        same_since=1,
    ),
)
traits("ReverseSequence", OpTraits(category="shape", shape="shapes", flops=1, elements="none", signature="? ? ...|?"))
traits(
    "Shape Size",
    OpTraits(
        category="shape",
        shape="shapes",
        flops=0,
        elements="none",
        shape_only=True,
        half="exact",
        quiet=True,
        zero_gradient=True,
    ),
)
traits(
    "Split",
    OpTraits(
        category="shape",
        shape="sizes",
        flops=0,
        half="exact",
        quiet=True,
        size_arithmetic=True,
        int8="moved",
    ),
)
traits(
    "Tile",
    OpTraits(
        category="shape",
        shape="sizes",
        flops=0,
        half="exact",
        out_bytes=_tile_bytes,
        out_bytes_since=6,
        size_arithmetic=True,
        forwards=True,
        sizes={1: "one"},
    ),
)
traits(
    "Trilu",
    OpTraits(category="shape", shape="shapes", flops=1, elements="none", size_arithmetic=True, layer="comparison"),
)
