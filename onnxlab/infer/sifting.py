"""Facts before and after a rule: which elements it reads, and which of its answers a tensor can have."""

from __future__ import annotations

from collections.abc import Sequence

from onnxlab.infer import native, operators
from onnxlab.infer.operators import Problem
from onnxlab.infer.symbols import NAMED_TYPES
from onnxlab.shapes import UNKNOWN, Dim, Fact, TensorFact

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


def not_facts(found: Sequence[object]) -> str:
    """The first thing that a custom rule returned for a fact and is none; "" where all are facts."""
    return next((repr(each) for each in found if not isinstance(each, Fact)), "")


def incomplete(inputs: Inputs) -> bool:
    """Whether the type of an input is not known: then a refusal by onnx says nothing about the node."""
    return any(fact is UNKNOWN or (isinstance(fact, TensorFact) and not fact.elem_type) for fact in inputs)


def is_plain(fact: Fact) -> bool:
    """Whether it is a tensor of dims that are possible and known as far as can be, whose elements nobody names."""
    if type(fact) is not TensorFact or fact.shape is None or fact.known is not None or fact.elem_type in NAMED_TYPES:
        return False
    for dim in fact.shape:
        if isinstance(dim, int):
            if not 0 <= dim <= _MAX_DIM:
                return False
        elif dim.open or (dim.minimum or 0) > _MAX_DIM:
            return False
    return True


def bounded(fact: Fact, slot: int, problems: list[Problem]) -> Fact:
    """The fact with dims that no tensor can have replaced by holes."""
    if not isinstance(fact, TensorFact) or fact.shape is None:
        return fact
    for dim in fact.shape:
        if not _is_possible(dim):
            break
    else:
        return fact
    message = f"its output {slot} would have shape {TensorFact(0, fact.shape).label()}"
    problems.append(Problem("error", "dim-out-of-range", message, "dims from 0 to 2^63 - 1"))
    dims = tuple(dim if _is_possible(dim) else native.hole(slot, axis) for axis, dim in enumerate(fact.shape))
    return TensorFact(fact.elem_type, dims)


def _is_possible(dim: Dim) -> bool:
    """Whether a tensor can have the dim: an int64 from 0 on, or an expression that may be one."""
    if isinstance(dim, int):
        return 0 <= dim <= _MAX_DIM
    return (dim.minimum or 0) <= _MAX_DIM
