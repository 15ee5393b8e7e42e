"""Helpers of shape rules: axes, broadcasting, elements of small tensors, and errors that name what is wrong.

A rule is `rule(ctx, attributes, *facts) -> fact or tuple of facts`. An absent optional input is None; a value of
which nothing is known is UNKNOWN, whose `shape` is None like that of a tensor of unknown rank, so that most rules
need not tell them apart. Unknown sizes are `ctx.symbol(slot, axis)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, cast

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.shapes import (
    MAX_RANK,
    UNKNOWN,
    Dim,
    Expr,
    Fact,
    FactError,
    KnownValue,
    Shape,
    TensorFact,
    broadcast,
    from_items,
    shown,
)
from onnxlab.shapes.expressions import symbol_atoms
from onnxlab.shapes.values import MAX_ELEMENTS

MaybeFact = Fact | None


def elem_type(fact: MaybeFact) -> int:
    """Element type of a tensor, 0 where it is not known."""
    return fact.elem_type if isinstance(fact, TensorFact) else 0


def like(fact: MaybeFact, shape: Shape | None) -> Fact:
    """A tensor of the same element type with another shape."""
    return TensorFact(elem_type(fact), shape)


def known_of(fact: MaybeFact) -> KnownValue | None:
    """The known elements of a tensor, if any."""
    return fact.known if isinstance(fact, TensorFact) else None


def checked_axis(axis: int, rank: int, label: str = "axis") -> int:
    """A non-negative axis. Raises FactError where it is out of range."""
    if not -rank <= axis < rank:
        raise FactError(
            f"{label} {axis} is out of range for a tensor of rank {rank}",
            code="axis-out-of-range",
            expected=f"{-rank} to {rank - 1}" if rank else "no axis",
            found=str(axis),
            hint=f"set {label} to an axis that the tensor has" if rank else "a scalar has no axes: remove the node",
        )
    return axis % rank if rank else 0


def checked_axes(axes: Iterable[int], rank: int) -> list[int]:
    """Non-negative axes in the given order. Raises FactError where one is out of range or comes twice."""
    checked = [checked_axis(axis, rank) for axis in axes]
    if len(set(checked)) != len(checked):
        raise FactError(
            f"axes {tuple(axes)} name an axis twice",
            code="axis-repeated",
            expected="different axes",
            found=str(checked),
        )
    return checked


def known_integers(fact: MaybeFact) -> list[int] | None:
    """The elements of a tensor of integers when all are known numbers, else None."""
    known = known_of(fact)
    if known is None or not known.complete:
        return None
    return [int(cast("int", item)) for item in known.items]


def items(fact: MaybeFact) -> list[Dim | None] | None:
    """Elements of a small tensor of integers, each known, symbolic or None; None where their number is not known."""
    known = known_of(fact)
    if known is not None:
        return [item if isinstance(item, (int, Expr)) else None for item in known.items]
    if fact is not None and fact.shape is not None and all(isinstance(dim, int) for dim in fact.shape):
        count = prod(cast("tuple[int, ...]", fact.shape))
        return [None] * count if count <= MAX_ELEMENTS else None
    return None


def scalar(fact: MaybeFact) -> Any:
    """The one element of a tensor: a number, an Expr, or None where it is not known."""
    known = known_of(fact)
    return known.items[0] if known is not None and len(known.items) == 1 else None


def is_size(dim: Dim) -> bool:
    """Whether an element can be taken for a dim: a number from 0 on, or an expression of dims alone."""
    if isinstance(dim, int):
        return dim >= 0
    if dim.minimum is not None and dim.minimum >= 0:
        return True
    return all(atom.minimum is not None and atom.minimum >= 0 for atom in symbol_atoms(dim))


def as_dim(ctx: InferContext, element: Dim | None, slot: int, axis: int) -> Dim:
    """An element that gives a size, as a dim; the unknown size of (slot, axis) where it may be none."""
    return element if element is not None and is_size(element) else ctx.symbol(slot, axis)


def unknown_shape(ctx: InferContext, rank: int, slot: int = 0) -> Shape:
    """A shape of which only the rank is known. Raises FactError where no array has that many dims."""
    if rank > MAX_RANK:
        raise too_many_dims(rank, slot)
    return tuple(ctx.symbol(slot, axis) for axis in range(rank))


def too_many_dims(rank: int, slot: int) -> FactError:
    """The problem of an output of a larger rank than arrays have."""
    return FactError(
        f"its output {slot} would have {rank:,} dims; its shape is not followed",
        code="rank-too-large",
        expected=f"at most {MAX_RANK} dims",
        found=f"{rank:,} dims",
        severity="warning",
    )


def dims_text(shape: Shape | None) -> str:
    """A shape for messages: "[batch, 3, 224]"."""
    if shape is None:
        return "[?]"
    more = ", …" if len(shape) > MAX_RANK else ""
    return f"[{', '.join(map(_dim_text, shape[:MAX_RANK]))}{more}]"


def _dim_text(dim: Dim | None) -> str:
    return "None" if dim is None else shown(dim)


def broadcast_shapes(shapes: Sequence[Shape | None]) -> Shape | None:
    """The shape that NumPy broadcasting gives; None where a rank is unknown. Raises FactError where there is none."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or not known:
        return None
    first = known[0]
    if all(shape is first or shape == first for shape in known):
        return first
    rank = max(map(len, known))
    whole = len(first) == rank  # true of most, and the others have fewer dims to compare
    result: list[Dim] = list(first) if whole else [1] * rank
    for shape in known[1:] if whole else known:
        for axis, dim in enumerate(shape, rank - len(shape)):
            size = result[axis]
            if dim == 1 or size == dim:
                continue
            try:
                result[axis] = dim if size == 1 else broadcast(size, dim)
            except ValueError:
                raise FactError(
                    f"shapes {' and '.join(map(dims_text, known))} do not broadcast: {result[axis]} against {dim}",
                    expected=f"{result[axis]} or 1",
                    found=str(dim),
                    hint="dims must be equal or 1, counted from the last",
                ) from None
    return tuple(result)


def must_equal(a: Dim, b: Dim, message: str, *shown: object, hint: str = "") -> None:
    """Raise FactError where two dims are certainly different; `shown`, shapes or texts, fills the braces."""
    if a != b and isinstance(a, int) and isinstance(b, int):
        text = message.format(*[dims_text(dim) if isinstance(dim, tuple) else dim for dim in shown])
        raise FactError(f"{text}: {a} against {b}", expected=str(a), found=str(b), hint=hint)


def same(a: Dim, b: Dim) -> Dim:
    """Of two dims that must be equal, the one that says more: an int, else the first."""
    return b if isinstance(b, int) else a


def rank_at_least(fact: Fact, rank: int, label: str) -> None:
    """Raise FactError where a tensor has certainly fewer dims than `rank`."""
    if fact.shape is not None and len(fact.shape) < rank:
        raise FactError(
            f"{label} has shape {dims_text(fact.shape)}",
            code="rank-mismatch",
            expected=f"at least {rank} dims",
            found=f"{len(fact.shape)} dims",
        )


def computed(
    fact: Fact, inputs: Sequence[MaybeFact], function: Callable[..., Any], ctx: InferContext | None = None
) -> Fact:
    """`fact` with elements computed from those of all inputs, broadcast, where every input is known and small.

    `function` takes one element of each input, none of which is None. An element is unknown where `function` raises,
    or where the type cannot hold an integer, for which `ctx` gets a warning.
    """
    knowns = [known_of(operand) for operand in inputs]
    if None in knowns or not isinstance(fact, TensorFact) or fact.shape is None:
        return fact
    if not all(isinstance(dim, int) for dim in fact.shape):
        return fact
    shape = cast("tuple[int, ...]", fact.shape)
    if prod(shape) > MAX_ELEMENTS:
        return fact
    kind = kind_of(fact.elem_type)
    if not kind:
        return fact
    columns = [_spread(known, shape) for known in knowns if known is not None]
    exact = _elements(function, columns)
    elements = _all_fit(exact, fact.elem_type)
    if ctx is not None and kind == "i" and elements is not exact:
        _tell_overflow(ctx, fact.elem_type, exact, elements)
    return TensorFact(fact.elem_type, shape, from_items(shape, elements, kind))


def _spread(known: KnownValue, shape: tuple[int, ...]) -> Sequence[Any]:
    """The elements broadcast to a shape, in row-major order."""
    count = prod(shape)
    if len(known.items) == count:  # then the shapes differ in dims of 1 at most
        return known.items
    if len(known.items) == 1:
        return known.items * count
    return np.broadcast_to(known.objects(), shape).ravel().tolist()


_NUMBERS = {int, float, bool}


def _elements(function: Callable[..., Any], columns: Sequence[Sequence[Any]]) -> list[Any]:
    """`function` of each row; of numbers alone, in one pass by its form for numbers, `on_numbers`."""
    if all(_NUMBERS.issuperset(map(type, column)) for column in columns):
        try:
            return list(map(getattr(function, "on_numbers", function), *columns))
        except (ArithmeticError, ValueError, TypeError):  # one row failed: each is tried alone
            pass
    return [_element(function, row) for row in zip(*columns, strict=True)]


def _all_fit(items: list[Any], elem: int) -> list[Any]:
    """`fits` of each element, in one pass where all are alike."""
    kinds = set(map(type, items))
    if kinds <= {int, float} and elem == dtypes.FLOAT and len(items) > 4:
        try:
            with np.errstate(over="ignore"):
                return cast("list[Any]", np.array(items, np.float64).astype(np.float32).tolist())
        except OverflowError:  # an integer beyond float64
            pass
    if kinds == {int} and elem in _RANGES and _RANGES[elem][0] <= min(items) and max(items) <= _RANGES[elem][1]:
        return items
    return [fits(item, elem) for item in items]


def _element(function: Callable[..., Any], row: tuple[Any, ...]) -> Any:
    if None in row:
        return None
    try:
        return function(*row)
    except (ArithmeticError, ValueError, TypeError):
        return None


def _tell_overflow(ctx: InferContext, elem: int, exact: Sequence[Any], stored: Sequence[Any]) -> None:
    for item, held in zip(exact, stored, strict=True):
        if held is None and isinstance(item, (int, float)):
            low, high = _RANGES[elem]
            ctx.warn(
                f"an element would be {item}, which {dtypes.name(elem)} cannot hold",
                code="overflow",
                expected=f"{low} to {high}",
                found=str(item),
            )
            return


_RANGES = {
    dtypes.INT64: (-(2**63), 2**63 - 1), dtypes.INT32: (-(2**31), 2**31 - 1), dtypes.INT16: (-(2**15), 2**15 - 1),
    dtypes.INT8: (-128, 127), dtypes.UINT8: (0, 255), dtypes.UINT16: (0, 2**16 - 1), dtypes.UINT32: (0, 2**32 - 1),
    dtypes.UINT64: (0, 2**64 - 1),
}  # fmt: skip


def kind_of(elem: int) -> str:
    """Kind of the known values of an element type; "" for types whose arithmetic is not followed (float16, …)."""
    if elem in _RANGES:
        return "i"
    return "b" if elem == dtypes.BOOL else "f" if elem in (dtypes.FLOAT, dtypes.DOUBLE) else ""


def fits(item: Any, elem: int) -> Any:
    """An element as its type holds it: None where an integer overflows, floats rounded to float32."""
    if item is None or isinstance(item, Expr):
        return item
    try:
        if elem in _RANGES:
            low, high = _RANGES[elem]
            return int(item) if low <= item <= high else None
        if elem == dtypes.BOOL:
            return bool(item)
        return float(np.float32(float(item))) if elem == dtypes.FLOAT else float(item)
    except (ArithmeticError, ValueError, TypeError):
        return None


def rearranged(fact: Fact, data: MaybeFact, rearrange: Callable[[np.ndarray[Any, Any]], Any]) -> Fact:
    """`fact` with the elements of `data` moved by a function of object arrays (reshape, index, slice)."""
    known = known_of(data)
    if known is None or not isinstance(fact, TensorFact):
        return fact
    try:
        moved = np.asarray(rearrange(known.objects()), dtype=object)
    except (IndexError, ValueError, TypeError):
        return fact
    return TensorFact(fact.elem_type, moved.shape, from_items(moved.shape, moved.ravel().tolist(), known.kind))


__all__ = [
    "UNKNOWN",
    "MaybeFact",
    "as_dim",
    "broadcast_shapes",
    "checked_axes",
    "checked_axis",
    "computed",
    "dims_text",
    "elem_type",
    "fits",
    "is_size",
    "items",
    "kind_of",
    "known_integers",
    "known_of",
    "like",
    "must_equal",
    "rank_at_least",
    "rearranged",
    "same",
    "scalar",
    "too_many_dims",
    "unknown_shape",
]  # fmt: skip


def same_as_first(ctx: InferContext, attributes: Mapping[str, Any], x: Fact, *_others: MaybeFact) -> Fact:
    """The type and shape of the first input."""
    return TensorFact(x.elem_type, x.shape) if isinstance(x, TensorFact) else x.bare


def along_axis(ctx: InferContext, attributes: Mapping[str, Any], x: Fact) -> Fact:
    """The type and shape of the input, which must have the axis."""
    if x.shape and "axis" in attributes:
        checked_axis(attributes["axis"], len(x.shape))
    return x.bare
