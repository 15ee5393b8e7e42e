"""Sequences and optionals. A sequence is a Python list of arrays, an optional its value or None."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.kernel_helpers import Array, integers, normal_axis
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, checked_axis, elem_type, known_integers, like, scalar
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.onnx.control.control import ELEMENT, added, element_of, merged
from onnxlab.ops.onnx.tensor.shape import split_at
from onnxlab.shapes import (
    UNKNOWN,
    VARIES,
    Dim,
    Fact,
    FactError,
    OptionalFact,
    SequenceFact,
    Shape,
    TensorFact,
    ceil_div,
    exact_div,
    from_items,
)


class Sequence(list[Any]):
    """A sequence made from another; in a loop that appends to it, each iteration counts its memory.

    Attributes:
        buffers: {id: bytes} of the memory behind the items, None until it is counted.
    """

    __slots__ = ("buffers",)

    def __init__(self, items: Iterable[Any]) -> None:
        super().__init__(items)
        self.buffers: dict[int, int] | None = None


def root(array: Array) -> Array:
    """The array whose memory a view shows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


@kernel("SequenceEmpty", since=11)
def sequence_empty(dtype: int = 1) -> list[Array]:
    """No elements; the element type matters to the type checker only."""
    return []


@kernel("SequenceConstruct", since=11)
def sequence_construct(*inputs: Array) -> list[Array]:
    """A sequence of the inputs."""
    return list(inputs)


@kernel("SequenceLength", since=11)
def sequence_length(sequence: list[Any]) -> Array:
    """The number of elements as an int64 scalar."""
    return np.array(len(sequence), np.int64)


def _place(sequence: list[Any], position: Array | None, most: int) -> int:
    """A position, which may be negative, as an index from 0 to `most`."""
    place = int(position.reshape(())) if position is not None else most
    size = len(sequence)
    if not -size <= place <= most:
        raise IndexError(f"position is {place}: the sequence has {size} elements ({-size} to {most})")
    return place + size if place < 0 else place


@kernel("SequenceAt", since=11)
def sequence_at(sequence: list[Any], position: Array) -> Any:
    """The element at a position."""
    return sequence[_place(sequence, position, len(sequence) - 1)]


@kernel("SequenceInsert", since=11)
def sequence_insert(sequence: list[Any], tensor: Any, position: Array | None = None) -> list[Any]:
    """A copy with an element more, in front of the position; at the end by default."""
    place = _place(sequence, position, len(sequence))
    longer = Sequence(sequence)
    longer.insert(place, tensor)
    known = sequence.buffers if type(sequence) is Sequence else None
    if known is not None and isinstance(tensor, np.ndarray):
        behind = root(tensor)
        longer.buffers = {**known, id(behind): behind.nbytes}
    return longer


@kernel("SequenceErase", since=11)
def sequence_erase(sequence: list[Any], position: Array | None = None) -> list[Any]:
    """A copy without the element at a position; the last by default."""
    last = len(sequence) - 1
    place = _place(sequence, position if position is not None else np.array(last), last)
    return [*sequence[:place], *sequence[place + 1 :]]


@kernel("ConcatFromSequence", since=11, context=True)
def concat_from_sequence(ctx: RunContext, sequence: list[Array], axis: int, new_axis: int = 0) -> Array:
    """The elements joined along an axis of theirs, or along a new one."""
    if not sequence:
        raise ValueError("the sequence is empty: there is nothing to join")
    ctx.reserve(sum(item.nbytes for item in sequence), "the joined tensor")
    return np.stack(sequence, axis) if new_axis else np.concatenate(sequence, axis)


@kernel("SplitToSequence", since=11)
def split_to_sequence(x: Array, split: Array | None = None, axis: int = 0, keepdims: int = 1) -> list[Array]:
    """Cut along `axis`: into single slices, pieces of a size (the last may be shorter), or lengths."""
    axis = normal_axis(axis, x.ndim)
    total = x.shape[axis]
    if split is None:
        parts = split_at(x, axis, [1] * total)
        return list(parts) if keepdims else [part.squeeze(axis) for part in parts]
    if split.ndim:
        return list(split_at(x, axis, integers(split)))
    size = int(split)
    if size < 1:
        raise ValueError(f"split is {size}: expected at least 1")
    return list(split_at(x, axis, [min(size, total - start) for start in range(0, total, size)]))


@kernel("Optional", since=15)
def optional(value: Any = None, type: Any = None) -> Any:
    """An optional that holds the input, or nothing."""
    return value


@kernel("OptionalHasElement", since=15)
def optional_has_element(value: Any = None) -> Array:
    """Whether there is a value."""
    return np.array(value is not None)


@kernel("OptionalGetElement", since=15)
def optional_get_element(value: Any) -> Any:
    """The value of an optional; anything else is passed through."""
    if value is None:
        raise ValueError("the optional is empty: it has no element to get")
    return value


# -- shape rules -------------------------------------------------------------------------------------------------------


@rule("SequenceEmpty", since=11)
def sequence_empty_rule(ctx: InferContext, attributes: Attributes) -> Fact:
    """A sequence without elements, for tensors of `dtype`."""
    return SequenceFact(TensorFact(attributes.get("dtype") or dtypes.FLOAT), 0)


@rule("SequenceConstruct", since=11)
def sequence_construct_rule(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> Fact:
    """The fact that holds for every input; as many elements as there are inputs."""
    element = added(ctx, inputs[0])
    for fact in inputs[1:]:
        element = merged(ctx, element, added(ctx, fact), ELEMENT, "the inputs")
    return SequenceFact(element, len(inputs))


@rule("SequenceInsert", since=11)
def sequence_insert_rule(
    ctx: InferContext, attributes: Attributes, sequence: Fact, tensor: Fact, position: MaybeFact = None
) -> Fact:
    """The fact that holds for the elements and for the new one."""
    if not isinstance(sequence, SequenceFact):
        return UNKNOWN
    if sequence.length == 0 and elem_type(sequence.elem) == elem_type(tensor):
        return SequenceFact(added(ctx, tensor), 1)
    length = None if sequence.length is None else sequence.length + 1
    return SequenceFact(merged(ctx, sequence.elem, added(ctx, tensor), ELEMENT, "the elements and the new one"), length)


@rule("SequenceErase", since=11)
def sequence_erase_rule(ctx: InferContext, attributes: Attributes, sequence: Fact, position: MaybeFact = None) -> Fact:
    """The sequence with one element less."""
    if not isinstance(sequence, SequenceFact) or sequence.length is None:
        return sequence
    if sequence.length == 0:
        raise FactError("there is no element to erase", expected="at least 1 element", found="0")
    return SequenceFact(sequence.elem, sequence.length - 1)


@rule("SequenceAt", since=11)
def sequence_at_rule(ctx: InferContext, attributes: Attributes, sequence: Fact, position: Fact) -> Fact:
    """An element."""
    return element_of(ctx, sequence)


@rule("SequenceLength", since=11)
def sequence_length_rule(ctx: InferContext, attributes: Attributes, sequence: Fact) -> Fact:
    """A scalar, whose value is the length where that is known."""
    length = sequence.length if isinstance(sequence, SequenceFact) else None
    return TensorFact(dtypes.INT64, (), from_items((), [length]))


@rule("ConcatFromSequence", since=11)
def concat_from_sequence_rule(ctx: InferContext, attributes: Attributes, sequence: Fact) -> Fact:
    """The elements joined along `axis`, or stacked along a new one."""
    element = element_of(ctx, sequence)
    length = sequence.length if isinstance(sequence, SequenceFact) else None
    if element.shape is None:
        return like(element, None)
    new = attributes.get("new_axis", 0)
    axis = checked_axis(attributes["axis"], len(element.shape) + new)
    rest = element.shape[axis:] if new else element.shape[axis + 1 :]
    size = ctx.symbol(0, axis) if length is None else length
    if not new and length is not None:
        element_size = (
            sequence.elem.shape[axis] if isinstance(sequence, SequenceFact) and sequence.elem.shape else VARIES
        )
        size = ctx.symbol(0, axis) if element_size is VARIES else element_size * length
    return like(element, (*element.shape[:axis], size, *rest))


@rule("SplitToSequence", since=11)
def split_to_sequence_rule(ctx: InferContext, attributes: Attributes, x: Fact, split: MaybeFact = None) -> Fact:
    """Pieces along `axis`: of one element each without `split`, whose axis goes without keepdims."""
    if x.shape is None:
        return SequenceFact(like(x, None))
    axis = checked_axis(attributes.get("axis", 0), len(x.shape))
    length = _pieces(split, x.shape[axis])
    keep = attributes.get("keepdims", 1) or split is not None
    piece: Dim = 1 if split is None else _piece(split, x.shape[axis])
    middle: Shape = (piece,) if keep else ()
    return SequenceFact(TensorFact(elem_type(x), (*x.shape[:axis], *middle, *x.shape[axis + 1 :])), length)


def _pieces(split: MaybeFact, dim: Dim) -> Dim | None:
    """The number of pieces: one for each element, for each size given, or as often as the one size fits."""
    if split is None:
        return dim
    if split.shape is None:
        return None
    if split.shape:
        return split.shape[0]
    size = scalar(split)
    return ceil_div(dim, size) if isinstance(size, int) and size > 0 else None


def _piece(split: Fact, dim: Dim) -> Dim:
    """Size of every piece, where all are equal: the same number each time, or one number that divides the dim."""
    sizes = known_integers(split)
    if sizes and split.shape == () and sizes[0] > 0 and exact_div(dim, sizes[0]) is not None:
        return sizes[0]
    if sizes and split.shape != () and len(set(sizes)) == 1:
        return sizes[0]
    return VARIES


@rule("Optional", since=15)
def optional_rule(ctx: InferContext, attributes: Attributes, x: MaybeFact = None) -> Fact | None:
    """An optional of the input; without one, of the attribute's type."""
    if x is None:
        raise NotImplementedError("onnx reads the attribute `type`")
    return OptionalFact(x.bare)


@rule("OptionalGetElement", since=15)
def optional_get_element_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The element."""
    return x.elem if isinstance(x, OptionalFact) else x


@rule("OptionalHasElement", since=15)
def optional_has_element_rule(ctx: InferContext, attributes: Attributes, x: MaybeFact = None) -> Fact:
    """A boolean."""
    return TensorFact(dtypes.BOOL, ())


# -- traits ------------------------------------------------------------------------------------------------------------


traits("ConcatFromSequence SplitToSequence", OpTraits(category="sequence", shape="other", flops=1))
traits("Optional OptionalGetElement OptionalHasElement", OpTraits(category="control", shape="other", flops=1))
traits(
    "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength",
    OpTraits(category="sequence", shape="other", flops=1, quiet=True),
)
