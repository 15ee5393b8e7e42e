"""Operators that give the same elements another shape: Reshape, Flatten, Squeeze, Unsqueeze."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from onnxlab.limits import InferContext
from onnxlab.ops.base.derivatives import derivative, unary
from onnxlab.ops.base.kernel_helpers import Array, normal_axes, normal_axis
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import (
    MaybeFact,
    checked_axes,
    dims_text,
    is_size,
    items,
    known_integers,
    like,
    rearranged,
    unknown_shape,
)
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.shapes import Dim, Expr, Fact, FactError, Shape, exact_div, floor_div, product


@kernel("Reshape", since=5)
def reshape(data: Array, shape: Array, allowzero: int = 0) -> Array:
    """`data` in another shape: one dim may be −1, and a 0 keeps the input's dim unless allowzero is set."""
    if shape.ndim != 1:
        raise ValueError(f"shape has {shape.ndim} axes: expected a vector")
    dims = shape.tolist()
    if 0 in dims and not allowzero:
        try:
            dims = [dim or data.shape[axis] for axis, dim in enumerate(dims)]
        except IndexError:
            raise ValueError(f"shape {dims} copies a dimension that data of shape {data.shape} has not got") from None
    if dims and min(dims) < -1:  # NumPy takes any number below 0 for −1
        raise ValueError(f"shape {dims} holds {min(dims)}: expected sizes of 0 and more, and one −1 at most")
    if not data.size and -1 in dims:
        known = prod(dim for dim in dims if dim != -1)
        dims = [0 if dim == -1 and known else dim for dim in dims]
    try:
        return data.reshape(dims)
    except ValueError:
        raise ValueError(f"data of shape {data.shape} ({data.size:,} elements) does not fit shape {dims}") from None


@kernel("Reshape", since=1)
def reshape_1(data: Array, shape: Sequence[int], consumed_inputs: Sequence[int] | None = None) -> Array:
    """Reshape-5, the shape as an attribute."""
    return reshape(data, np.asarray(shape, np.int64))


@kernel("Flatten")
def flatten(x: Array, axis: int = 1) -> Array:
    """A matrix: the axes before `axis` are its rows, the others its columns."""
    axis = axis if axis == x.ndim else normal_axis(axis, x.ndim) if x.ndim else 0
    return x.reshape(prod(x.shape[:axis]), prod(x.shape[axis:]))


@kernel("Squeeze", since=13)
def squeeze(x: Array, axes: Array | None = None) -> Array:
    """Drop axes of size 1: those named, or all where none is."""
    if axes is None or not axes.size:
        return x.squeeze()
    dropped = normal_axes(axes.reshape(-1).tolist(), x.ndim)
    for axis in dropped:
        if x.shape[axis] != 1:
            raise ValueError(f"data has shape {x.shape}: axis {axis} is not 1 and cannot be squeezed")
    return x.reshape([dim for axis, dim in enumerate(x.shape) if axis not in dropped])


@kernel("Squeeze", since=1)
def squeeze_1(x: Array, axes: Sequence[int] | None = None) -> Array:
    """Squeeze-13, the axes as an attribute."""
    return squeeze(x, None if axes is None else np.asarray(axes, np.int64))


@kernel("Unsqueeze", since=13)
def unsqueeze(x: Array, axes: Array) -> Array:
    """Insert axes of size 1 at these places of the output."""
    inserted = axes.reshape(-1).tolist()
    rank = x.ndim + len(inserted)
    if len(inserted) == 1 and -rank <= (place := inserted[0]) < rank:  # the usual case, hundreds of times in a model
        return x.reshape((*x.shape[: place % rank], 1, *x.shape[place % rank :]))
    places = normal_axes(inserted, rank)
    if len(set(places)) != len(places):
        raise ValueError(f"axes {inserted} name an axis of the output of rank {rank} twice")
    dims = iter(x.shape)
    return x.reshape([1 if axis in places else next(dims) for axis in range(rank)])


@kernel("Unsqueeze", since=1)
def unsqueeze_1(x: Array, axes: Sequence[int]) -> Array:
    """Unsqueeze-13, the axes as an attribute."""
    return unsqueeze(x, np.asarray(axes, np.int64))


# -- shape rules -------------------------------------------------------------------------------------------------------


@rule("Reshape", since=5)
def reshape_rule(ctx: InferContext, attributes: Attributes, data: Fact, target: Fact) -> Fact:
    """Dims as the second input says: -1 is what is left, 0 the input's own dim unless allowzero is set."""
    target_items = items(target)
    if target_items is None or (target.shape is not None and len(target.shape) != 1):
        return like(data, None)
    return _reshaped(ctx, data, target_items, bool(attributes.get("allowzero")))


@rule("Reshape", since=1)
def reshape_by_attribute(ctx: InferContext, attributes: Attributes, data: Fact) -> Fact:
    """Reshape-5 with the target in an attribute."""
    return _reshaped(ctx, data, list(attributes.get("shape", ())), False)


def _reshaped(ctx: InferContext, data: Fact, target: Sequence[Dim | None], allow_zero: bool) -> Fact:
    dims: list[Dim | None] = [_wanted_dim(data.shape, axis, dim, allow_zero) for axis, dim in enumerate(target)]
    rest = [axis for axis, dim in enumerate(dims) if dim is None or dim == -1]
    if sum(1 for dim in target if dim == -1) > 1:
        raise FactError("the target shape has more than one -1", found=dims_text(tuple(target)))  # type: ignore[arg-type]
    known = product(dim for axis, dim in enumerate(dims) if axis not in rest and dim is not None)
    total = None if data.shape is None else product(data.shape)
    if total is not None and not rest and isinstance(total, int) and isinstance(known, int) and total != known:
        raise FactError(
            f"{dims_text(data.shape)} has {total:,} elements, the target shape {dims_text(tuple(dims))} {known:,}",  # type: ignore[arg-type]
            code="element-count",
            expected=f"{total:,} elements",
            found=f"{known:,} elements",
            hint="make the product of the target's dims equal to the number of elements, or use one -1",
        )
    for axis in rest:
        dims[axis] = ctx.symbol(0, axis)
    if len(rest) == 1 and total is not None:
        dims[rest[0]] = _what_is_left(ctx, total, known, target[rest[0]] == -1, rest[0], data.shape)
    result = like(data, tuple(dim for dim in dims if dim is not None))
    if all(isinstance(dim, int) for dim in dims):
        return rearranged(result, data, lambda array: array.reshape(dims))
    return result


def _wanted_dim(source: Shape | None, axis: int, dim: Dim | None, allow_zero: bool) -> Dim | None:
    """One dim of the target: None where it is not known."""
    if isinstance(dim, int):
        if dim < -1:
            raise FactError(f"the target shape holds {dim}", expected="-1, 0 or a size", found=str(dim))
        if dim == 0 and not allow_zero:
            if source is None:
                return None
            if axis >= len(source):
                raise FactError(
                    f"the target shape copies dim {axis} of an input of rank {len(source)}",
                    expected=f"a 0 only at positions below {len(source)}",
                    found=f"0 at position {axis}",
                )
            return source[axis]
        return dim
    return dim if isinstance(dim, Expr) and is_size(dim) else None


def _what_is_left(ctx: InferContext, total: Dim, known: Dim, inferred: bool, axis: int, source: Shape | None) -> Dim:
    """The dim that makes the element counts equal; `inferred` whether the target says -1."""
    if known == 0:
        return 0 if inferred else ctx.symbol(0, axis)
    exact = exact_div(total, known)
    if exact is not None:
        return exact
    if isinstance(total, int) and isinstance(known, int):
        raise FactError(
            f"{dims_text(source)} has {total:,} elements, which {known:,} does not divide",
            code="element-count",
            expected=f"a multiple of {known:,} elements",
            found=f"{total:,} elements",
            hint="change the other dims of the target shape",
        )
    return floor_div(total, known)


@rule("Flatten")
def flatten_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """A matrix: the dims before `axis`, and those from it on."""
    if x.shape is None:
        return like(x, unknown_shape(ctx, 2))
    axis = attributes.get("axis", 1)
    rank = len(x.shape)
    if not -rank <= axis <= rank:
        raise FactError(f"axis {axis} is out of range for rank {rank}", expected=f"{-rank} to {rank}", found=str(axis))
    axis = axis + rank if axis < 0 else axis
    return like(x, (product(x.shape[:axis]), product(x.shape[axis:])))


@rule("Squeeze", since=13)
def squeeze_rule(ctx: InferContext, attributes: Attributes, x: Fact, axes: MaybeFact = None) -> Fact:
    """The dims without those of the axes; without every 1 where no axes are given, or none listed (ONNX Runtime)."""
    named = None if axes is None else known_integers(axes)
    return _squeezed(ctx, x, named, axes is None or (named is not None and not len(named)))


@rule("Squeeze", since=1)
def squeeze_by_attribute(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Squeeze-13 with the axes in an attribute."""
    return _squeezed(ctx, x, attributes.get("axes"), "axes" not in attributes)


def _squeezed(ctx: InferContext, x: Fact, axes: Sequence[int] | None, every: bool) -> Fact:
    if x.shape is None:
        return like(x, None)
    if every:
        if not all(isinstance(dim, int) for dim in x.shape):
            return like(x, None)
        gone = [axis for axis, dim in enumerate(x.shape) if dim == 1]
    elif axes is None:
        return like(x, None)
    else:
        gone = checked_axes(axes, len(x.shape))
        for axis in gone:
            if isinstance(x.shape[axis], int) and x.shape[axis] != 1:
                raise FactError(
                    f"axis {axis} of {dims_text(x.shape)} cannot be squeezed",
                    expected="1",
                    found=str(x.shape[axis]),
                    hint="only dims of size 1 can be removed",
                )
    result = like(x, tuple(dim for axis, dim in enumerate(x.shape) if axis not in gone))
    return rearranged(result, x, lambda array: array.reshape(result.shape))


@rule("Unsqueeze", since=13)
def unsqueeze_rule(ctx: InferContext, attributes: Attributes, x: Fact, axes: Fact) -> Fact:
    """The dims with a 1 at each of the axes, which are those of the result."""
    return _unsqueezed(ctx, x, known_integers(axes), axes)


@rule("Unsqueeze", since=1)
def unsqueeze_by_attribute(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Unsqueeze-13 with the axes in an attribute."""
    return _unsqueezed(ctx, x, attributes["axes"], None)


def _unsqueezed(ctx: InferContext, x: Fact, axes: Sequence[int] | None, axes_fact: MaybeFact) -> Fact:
    if x.shape is None:
        return like(x, None)
    if axes is None:
        count = axes_fact.shape[0] if axes_fact is not None and axes_fact.shape else None
        return like(x, unknown_shape(ctx, len(x.shape) + count) if isinstance(count, int) else None)
    rank = len(x.shape) + len(axes)
    added = set(checked_axes(axes, rank))
    rest = iter(x.shape)
    result = like(x, tuple(1 if axis in added else next(rest) for axis in range(rank)))
    return rearranged(result, x, lambda array: array.reshape(result.shape))


# -- gradients ---------------------------------------------------------------------------------------------------------


derivative("Reshape")(unary(lambda x, y, g, a: g.reshape(x.shape)))
derivative("Flatten")(unary(lambda x, y, g, a: g.reshape(x.shape)))
derivative("Squeeze")(unary(lambda x, y, g, a: g.reshape(x.shape)))
derivative("Unsqueeze")(unary(lambda x, y, g, a: g.reshape(x.shape)))


# -- traits ------------------------------------------------------------------------------------------------------------


traits(
    "Flatten",
    OpTraits(
        int8="moved",
        category="shape",
        reshapes=True,
        shape="shapes",
        flops=0,
        half="exact",
        quiet=True,
        size_arithmetic=True,
        forwards=True,
    ),
)
traits(
    "Reshape",
    OpTraits(
        int8="moved",
        was_attribute={5: {1: ("shape", "ints")}},
        category="shape",
        reshapes=True,
        shape="sizes",
        flops=0,
        half="exact",
        quiet=True,
        size_arithmetic=True,
        forwards=True,
        sizes={1: "shape"},
    ),
)
traits(
    "Squeeze Unsqueeze",
    OpTraits(
        int8="moved",
        category="shape",
        reshapes=True,
        shape="sizes",
        flops=0,
        half="exact",
        quiet=True,
        size_arithmetic=True,
        forwards=True,
        sizes={1: "zero"},
    ),
)
