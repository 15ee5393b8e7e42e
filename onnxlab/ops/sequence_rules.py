"""Shape rules of sequences and optionals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.control_rules import ELEMENT, element_of, merged
from onnxlab.ops.facts import MaybeFact, elem_type, integers, like, normal_axis
from onnxlab.ops.registry import rule
from onnxlab.shapes import UNKNOWN, VARIES, Dim, Fact, OptionalFact, SequenceFact, Shape, TensorFact, exact_div

Attributes = Mapping[str, Any]


@rule("SequenceEmpty", since=11)
def sequence_empty(ctx: InferContext, attributes: Attributes) -> Fact:
    """A sequence of tensors of `dtype`; of their shape nothing is known."""
    return SequenceFact(TensorFact(attributes.get("dtype") or dtypes.FLOAT))


@rule("SequenceConstruct", since=11)
def sequence_construct(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> Fact:
    """What is true of every input."""
    element = inputs[0].bare
    for fact in inputs[1:]:
        element = merged(ctx, element, fact.bare, ELEMENT, "the inputs")
    return SequenceFact(element)


@rule("SequenceInsert", since=11)
def sequence_insert(
    ctx: InferContext, attributes: Attributes, sequence: Fact, tensor: Fact, position: MaybeFact = None
) -> Fact:
    """What is true of the elements and of the new one."""
    if not isinstance(sequence, SequenceFact):
        return UNKNOWN
    return SequenceFact(merged(ctx, sequence.elem, tensor.bare, ELEMENT, "the elements and the new one"))


@rule("SequenceErase", since=11)
def sequence_erase(ctx: InferContext, attributes: Attributes, sequence: Fact, position: MaybeFact = None) -> Fact:
    """The same sequence type."""
    return sequence


@rule("SequenceAt", since=11)
def sequence_at(ctx: InferContext, attributes: Attributes, sequence: Fact, position: Fact) -> Fact:
    """An element."""
    return element_of(ctx, sequence)


@rule("SequenceLength", since=11)
def sequence_length(ctx: InferContext, attributes: Attributes, sequence: Fact) -> Fact:
    """A scalar."""
    return TensorFact(dtypes.INT64, ())


@rule("ConcatFromSequence", since=11)
def concat_from_sequence(ctx: InferContext, attributes: Attributes, sequence: Fact) -> Fact:
    """The elements joined along `axis`, or stacked along a new one."""
    element = element_of(ctx, sequence)
    if element.shape is None:
        return like(element, None)
    new = attributes.get("new_axis", 0)
    axis = normal_axis(attributes["axis"], len(element.shape) + new)
    rest = element.shape[axis:] if new else element.shape[axis + 1 :]
    return like(element, (*element.shape[:axis], ctx.symbol(0, axis), *rest))


@rule("SplitToSequence", since=11)
def split_to_sequence(ctx: InferContext, attributes: Attributes, x: Fact, split: MaybeFact = None) -> Fact:
    """Pieces along `axis`: of one element each without `split`, whose axis goes without keepdims."""
    if x.shape is None:
        return SequenceFact(like(x, None))
    axis = normal_axis(attributes.get("axis", 0), len(x.shape))
    keep = attributes.get("keepdims", 1) or split is not None
    piece: Dim = 1 if split is None else _piece(split, x.shape[axis])
    middle: Shape = (piece,) if keep else ()
    return SequenceFact(TensorFact(elem_type(x), (*x.shape[:axis], *middle, *x.shape[axis + 1 :])))


def _piece(split: Fact, dim: Dim) -> Dim:
    """Size of every piece, where all are equal: the same number each time, or one number that divides the dim."""
    sizes = integers(split)
    if sizes and split.shape == () and sizes[0] > 0 and exact_div(dim, sizes[0]) is not None:
        return sizes[0]
    if sizes and split.shape != () and len(set(sizes)) == 1:
        return sizes[0]
    return VARIES


@rule("Optional", since=15)
def optional(ctx: InferContext, attributes: Attributes, x: MaybeFact = None) -> Fact | None:
    """An optional of the input; without one, of the attribute's type."""
    if x is None:
        raise NotImplementedError("onnx reads the attribute `type`")
    return OptionalFact(x.bare)


@rule("OptionalGetElement", since=15)
def optional_get_element(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The element."""
    return x.elem if isinstance(x, OptionalFact) else x


@rule("OptionalHasElement", since=15)
def optional_has_element(ctx: InferContext, attributes: Attributes, x: MaybeFact = None) -> Fact:
    """A boolean."""
    return TensorFact(dtypes.BOOL, ())
