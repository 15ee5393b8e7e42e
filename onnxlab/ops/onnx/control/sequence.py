"""Sequences and optionals. A sequence is a Python list of arrays, an optional its value or None."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from onnxlab.limits import RunContext
from onnxlab.ops.base.kernel_helpers import Array, integers, normal_axis
from onnxlab.ops.base.registry import kernel
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.onnx.tensor.shape import split_at


class Sequence(list[Any]):
    """What another sequence became; a loop that makes one longer has it counted in each iteration.

    Attributes:
        buffers: {id: bytes} of the memory behind the items, None until somebody counts them.
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


traits(
    "ConcatFromSequence SequenceEmpty SequenceErase SequenceInsert SplitToSequence",
    OpTraits(category="sequence", shape="other", flops=1),
)
traits("Optional OptionalGetElement OptionalHasElement", OpTraits(category="control", shape="other", flops=1))
traits("SequenceAt SequenceConstruct SequenceLength", OpTraits(category="sequence", shape="other", flops=1, quiet=True))
