"""Shape rules of sequences and optionals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import MaybeFact, elem_type, integers, like, normal_axis, scalar
from onnxlab.ops.onnx.control.control_rules import ELEMENT, added, element_of, merged
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

Attributes = Mapping[str, Any]


@rule("SequenceEmpty", since=11)
def sequence_empty(ctx: InferContext, attributes: Attributes) -> Fact:
    """A sequence without elements, for tensors of `dtype`."""
    return SequenceFact(TensorFact(attributes.get("dtype") or dtypes.FLOAT), 0)


@rule("SequenceConstruct", since=11)
def sequence_construct(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> Fact:
    """What is true of every input; as many elements as there are inputs."""
    element = added(ctx, inputs[0])
    for fact in inputs[1:]:
        element = merged(ctx, element, added(ctx, fact), ELEMENT, "the inputs")
    return SequenceFact(element, len(inputs))


@rule("SequenceInsert", since=11)
def sequence_insert(
    ctx: InferContext, attributes: Attributes, sequence: Fact, tensor: Fact, position: MaybeFact = None
) -> Fact:
    """What is true of the elements and of the new one."""
    if not isinstance(sequence, SequenceFact):
        return UNKNOWN
    if sequence.length == 0 and elem_type(sequence.elem) == elem_type(tensor):
        return SequenceFact(added(ctx, tensor), 1)
    length = None if sequence.length is None else sequence.length + 1
    return SequenceFact(merged(ctx, sequence.elem, added(ctx, tensor), ELEMENT, "the elements and the new one"), length)


@rule("SequenceErase", since=11)
def sequence_erase(ctx: InferContext, attributes: Attributes, sequence: Fact, position: MaybeFact = None) -> Fact:
    """The same elements, one less."""
    if not isinstance(sequence, SequenceFact) or sequence.length is None:
        return sequence
    if sequence.length == 0:
        raise FactError("there is no element to erase", expected="at least 1 element", found="0")
    return SequenceFact(sequence.elem, sequence.length - 1)


@rule("SequenceAt", since=11)
def sequence_at(ctx: InferContext, attributes: Attributes, sequence: Fact, position: Fact) -> Fact:
    """An element."""
    return element_of(ctx, sequence)


@rule("SequenceLength", since=11)
def sequence_length(ctx: InferContext, attributes: Attributes, sequence: Fact) -> Fact:
    """A scalar, whose value is the length where that is known."""
    length = sequence.length if isinstance(sequence, SequenceFact) else None
    return TensorFact(dtypes.INT64, (), from_items((), [length]))


@rule("ConcatFromSequence", since=11)
def concat_from_sequence(ctx: InferContext, attributes: Attributes, sequence: Fact) -> Fact:
    """The elements joined along `axis`, or stacked along a new one."""
    element = element_of(ctx, sequence)
    length = sequence.length if isinstance(sequence, SequenceFact) else None
    if element.shape is None:
        return like(element, None)
    new = attributes.get("new_axis", 0)
    axis = normal_axis(attributes["axis"], len(element.shape) + new)
    rest = element.shape[axis:] if new else element.shape[axis + 1 :]
    size = ctx.symbol(0, axis) if length is None else length
    if not new and length is not None:
        each = sequence.elem.shape[axis] if isinstance(sequence, SequenceFact) and sequence.elem.shape else VARIES
        size = ctx.symbol(0, axis) if each is VARIES else each * length
    return like(element, (*element.shape[:axis], size, *rest))


@rule("SplitToSequence", since=11)
def split_to_sequence(ctx: InferContext, attributes: Attributes, x: Fact, split: MaybeFact = None) -> Fact:
    """Pieces along `axis`: of one element each without `split`, whose axis goes without keepdims."""
    if x.shape is None:
        return SequenceFact(like(x, None))
    axis = normal_axis(attributes.get("axis", 0), len(x.shape))
    length = _pieces(split, x.shape[axis])
    keep = attributes.get("keepdims", 1) or split is not None
    piece: Dim = 1 if split is None else _piece(split, x.shape[axis])
    middle: Shape = (piece,) if keep else ()
    return SequenceFact(TensorFact(elem_type(x), (*x.shape[:axis], *middle, *x.shape[axis + 1 :])), length)


def _pieces(split: MaybeFact, dim: Dim) -> Dim | None:
    """How many pieces there are: one for each element, for each size given, or as often as the one size fits."""
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


@rule("StringNormalizer", since=10)
def string_normalizer(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The strings of a vector, or of a row, without the stop words: as many where there are none of these."""
    if not attributes.get("stopwords"):
        return x.bare
    rank = len(x.shape) if x.shape is not None else None
    return TensorFact(dtypes.STRING, None if rank is None else (1,) * (rank - 1) + (ctx.symbol(0, rank - 1),))
