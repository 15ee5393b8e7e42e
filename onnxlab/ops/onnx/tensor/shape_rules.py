"""Shape rules of operators that give shapes or rearrange: Shape, Reshape, Transpose, Squeeze, Concat and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import (
    MaybeFact,
    as_dim,
    broadcast_shapes,
    dims_text,
    elem_type,
    integers,
    items,
    known_of,
    like,
    must_equal,
    normal_axes,
    normal_axis,
    rank_at_least,
    rearranged,
    same,
    unknown_shape,
)
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

Attributes = Mapping[str, Any]


@rule("Shape")
def shape(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """A vector with the dims from `start` to `end`, which are its elements."""
    if x.shape is None:
        return TensorFact(dtypes.INT64, (ctx.symbol(0, 0),))
    start, end = attributes.get("start", 0), attributes.get("end")
    dims = x.shape[start:end]
    return TensorFact(dtypes.INT64, (len(dims),), from_items((len(dims),), dims))


@rule("Size")
def size(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The number of elements."""
    if x.shape is None:
        return TensorFact(dtypes.INT64, ())
    return TensorFact(dtypes.INT64, (), from_items((), [product(x.shape)]))


# -- Transpose, Concat, Split -------------------------------------------------------------------------------------


@rule("Transpose")
def transpose(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
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
def concat(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> Fact:
    """Sizes add up along `axis`; the other dims must be equal."""
    elem = next((elem_type(fact) for fact in inputs if elem_type(fact)), 0)
    shapes = [fact.shape for fact in inputs]
    first = next((s for s in shapes if s is not None), None)
    if first is None:
        return TensorFact(elem, None)
    axis = normal_axis(attributes.get("axis", 1), len(first))
    dims: list[Dim] = list(first)
    total: Dim | None = 0
    for number, each in enumerate(shapes):
        if each is None:
            total = None
            continue
        if len(each) != len(first):
            raise FactError(
                f"{dims_text(first)} and {dims_text(each)} have different ranks",
                code="rank-mismatch",
                expected=f"rank {len(first)}",
                found=f"rank {len(each)}",
            )
        for other, dim in enumerate(each):
            if other != axis and dims[other] != dim:
                hint = f"only axis {axis} may differ"
                must_equal(dims[other], dim, "input {} differs in axis {}", number, other, hint=hint)
                dims[other] = same(dims[other], dim)
        total = None if total is None else total + each[axis]
    dims[axis] = ctx.symbol(0, axis) if total is None else total
    result = TensorFact(elem, tuple(dims))
    return result if len(dims) > 1 and None in map(known_of, inputs) else _joined(result, inputs, axis)


def _joined(result: TensorFact, inputs: Sequence[Fact], axis: int) -> Fact:
    """Elements of the inputs in a row, those that are not known left out one by one."""
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
    """The same with the sizes in an attribute."""
    given = attributes.get("split")
    return _split(ctx, attributes, x, None if given is None else list(given), given is not None)


def _split(
    ctx: InferContext, attributes: Attributes, x: Fact, sizes: Sequence[Dim | None] | None, given: bool
) -> tuple[Fact, ...]:
    count = len(ctx.outputs)
    if x.shape is None:
        return (like(x, None),) * count
    axis = normal_axis(attributes.get("axis", 0), len(x.shape))
    dim = x.shape[axis]
    if given:
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
    """Sizes of so many pieces of equal size, the last of which is smaller: of those that have an output."""
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


# -- Expand, Tile, Pad, DepthToSpace ------------------------------------------------------------------------------


@rule("Expand", since=8)
def expand(ctx: InferContext, attributes: Attributes, x: Fact, target: Fact) -> Fact:
    """The input broadcast with the target shape."""
    wanted = items(target)
    if wanted is None or x.shape is None:
        return like(x, None)
    rank = max(len(wanted), len(x.shape))
    dims = tuple(as_dim(ctx, dim, 0, rank - len(wanted) + axis) for axis, dim in enumerate(wanted))
    result = broadcast_shapes([x.shape, dims])
    fact = like(x, result)
    if result is not None and all(isinstance(dim, int) for dim in result) and product(result) <= 512:  # type: ignore[operator]
        return rearranged(fact, x, lambda array: np.broadcast_to(array, result))  # type: ignore[arg-type]
    return fact


@rule("Tile", since=6)
def tile(ctx: InferContext, attributes: Attributes, x: Fact, repeats: Fact) -> Fact:
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


@rule("Pad", since=11)
def pad(
    ctx: InferContext, attributes: Attributes, x: Fact, pads: Fact, value: MaybeFact = None, axes: MaybeFact = None
) -> Fact:
    """Each dim plus what is added before and after it."""
    if x.shape is None:
        return like(x, None)
    rank = len(x.shape)
    chosen = list(range(rank)) if axes is None else integers(axes)
    amounts = items(pads)
    if chosen is None or amounts is None:
        return like(x, unknown_shape(ctx, rank))
    return _padded(ctx, x, amounts, normal_axes(chosen, rank))


@rule("Pad", since=2)
@rule("Pad", since=1)
def pad_by_attribute(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The same with the amounts in an attribute."""
    if x.shape is None:
        return like(x, None)
    amounts = list(attributes.get("pads") or attributes.get("paddings") or ())
    return _padded(ctx, x, amounts, list(range(len(x.shape))))


def _padded(ctx: InferContext, x: Fact, amounts: Sequence[Dim | None], axes: Sequence[int]) -> Fact:
    shape = x.shape or ()
    if len(amounts) != 2 * len(axes):
        raise FactError(
            f"it has {len(amounts)} pads for {len(axes)} axes of {dims_text(shape)}",
            expected=f"{2 * len(axes)} pads",
            found=f"{len(amounts)} pads",
            hint="give all amounts before, then all amounts after",
        )
    dims: list[Dim] = list(shape)
    for position, axis in enumerate(axes):
        before, after = amounts[position], amounts[position + len(axes)]
        dims[axis] = ctx.symbol(0, axis) if before is None or after is None else dims[axis] + before + after
    return like(x, tuple(dims))


@rule("DepthToSpace")
def depth_to_space(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Channels become blocks of pixels."""
    if x.shape is None:
        return like(x, unknown_shape(ctx, 4))
    rank_at_least(x, 4, "the input")
    n, c, *space = x.shape
    block = attributes["blocksize"]
    return like(x, (n, floor_div(c, block ** len(space)), *(dim * block for dim in space)))


@rule("SpaceToDepth")
def space_to_depth(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Blocks of pixels become channels."""
    if x.shape is None:
        return like(x, unknown_shape(ctx, 4))
    rank_at_least(x, 4, "the input")
    n, c, *space = x.shape
    block = attributes["blocksize"]
    return like(x, (n, c * block ** len(space), *(floor_div(dim, block) for dim in space)))
