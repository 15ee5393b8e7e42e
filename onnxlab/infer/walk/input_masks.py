"""Facts before and after a rule: which elements it reads, and which of its answers a tensor can have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnxlab.infer.facts.symbols import NAMED_TYPES
from onnxlab.infer.rules import native, operators
from onnxlab.infer.rules.operators import Problem
from onnxlab.ops.base.rule_helpers import too_many_dims
from onnxlab.shapes import MAX_RANK, UNKNOWN, Dim, Fact, Shape, SparseTensorFact, TensorFact, from_items
from onnxlab.shapes.expressions import MAX_WEIGHT, is_grown

Inputs = tuple["Fact | None", ...]

_MAX_DIM = 2**63 - 1


def relevant(inputs: Inputs, reads: operators.Reads) -> Inputs:
    """The inputs without the elements that the operator does not read; the same tuple where there are none."""
    if reads == "some":
        return inputs
    known = 0
    for fact in inputs:
        if type(fact) is TensorFact and fact.known is not None:
            known += 1
    if not known or (reads == "all" and known + inputs.count(None) == len(inputs)):
        return inputs
    return bare(inputs)


def bare(inputs: Inputs) -> Inputs:
    """The inputs without their elements."""
    return tuple([None if fact is None else fact.bare for fact in inputs])


def not_facts(results: Sequence[object]) -> str:
    """The repr of the first result of a custom rule that is no fact; "" where all are facts."""
    return next((repr(result) for result in results if not isinstance(result, Fact)), "")


def incomplete(inputs: Inputs) -> bool:
    """Whether the type of an input is not known: then a refusal by onnx says nothing about the node."""
    return any(fact is UNKNOWN or (isinstance(fact, TensorFact) and not fact.elem_type) for fact in inputs)


def is_plain(fact: Fact) -> bool:
    """Whether a fact is a tensor of dims that are possible and fully known, whose elements no symbol names."""
    if type(fact) is not TensorFact or fact.shape is None or fact.known is not None or fact.elem_type in NAMED_TYPES:
        return False
    if len(fact.shape) > MAX_RANK:
        return False
    for dim in fact.shape:
        if isinstance(dim, int):
            if not 0 <= dim <= _MAX_DIM:
                return False
        elif dim.open or (dim.minimum or 0) > _MAX_DIM:
            return False
    return True


def bounded(fact: Fact, slot: int, problems: list[Problem]) -> Fact:
    """The fact without what no tensor can have, or no rule can follow: too many dims, dims too large, expressions too.

    Such dims are replaced by holes.
    """
    if not isinstance(fact, (TensorFact, SparseTensorFact)) or fact.shape is None:
        return fact
    if len(fact.shape) > MAX_RANK:
        error = too_many_dims(len(fact.shape), slot)
        problems.append(Problem(error.severity, error.code, str(error), error.expected, error.found))
        return type(fact)(fact.elem_type)
    if not all(map(_is_possible, fact.shape)):
        message = f"its output {slot} would have shape {TensorFact(0, fact.shape).label()}"
        problems.append(Problem("error", "dim-out-of-range", message, "dims from 0 to 2^63 - 1"))
        fact = type(fact)(fact.elem_type, _with_holes(fact.shape, slot, _is_possible))
    known = fact.known if isinstance(fact, TensorFact) else None
    if any(map(is_grown, fact.shape or ())) or (known is not None and any(map(is_grown, known.items))):
        return _without_grown(fact, slot, problems)
    return fact


def _without_grown(fact: TensorFact | SparseTensorFact, slot: int, problems: list[Problem]) -> Fact:
    """The fact without expressions that grew too large."""
    message = f"a size in its output {slot} is an expression of more than {MAX_WEIGHT:,} parts; it counts as unknown"
    problems.append(Problem("info", "size-too-complex", message))
    shape = _with_holes(fact.shape or (), slot, lambda dim: not is_grown(dim))
    known = fact.known if isinstance(fact, TensorFact) else None
    if known is None:
        return type(fact)(fact.elem_type, shape)
    items = [None if is_grown(item) else item for item in known.items]
    return TensorFact(fact.elem_type, shape, from_items(known.shape, items, known.kind))


def _with_holes(shape: Shape, slot: int, is_kept: Callable[[Dim], bool]) -> Shape:
    return tuple(dim if is_kept(dim) else native.hole(slot, axis) for axis, dim in enumerate(shape))


def _is_possible(dim: Dim) -> bool:
    """Whether a tensor can have the dim: an int64 from 0 on, or an expression that may be one."""
    if isinstance(dim, int):
        return 0 <= dim <= _MAX_DIM
    return (dim.minimum or 0) <= _MAX_DIM
