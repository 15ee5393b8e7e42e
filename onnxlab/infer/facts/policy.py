"""The policy of inference about declared types and known elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import onnx

from onnxlab.infer.facts.type_protos import fact_of_type
from onnxlab.shapes import (
    UNKNOWN,
    VARIES,
    Dim,
    Expr,
    Fact,
    OptionalFact,
    SequenceFact,
    Shape,
    SparseTensorFact,
    TensorFact,
)
from onnxlab.shapes.arithmetic import sole_atom

Prefer = Literal["inferred", "refine", "declared"]


@dataclass(frozen=True, slots=True)
class Policy:
    """Options of an inference.

    Attributes:
        data_prop: whether elements computed by nodes are followed, not only those of initializers and constants.
        prefer: the source of the fact of a node's output: "inferred" uses inference from the node's inputs alone;
            "refine" fills in from the declared type what inference leaves open, as onnx does; "declared" uses the
            declared type first.
        as_onnx: whether onnx's rule fills in what onnxlab's leaves open, and serves where the number of inputs is
            wrong.
        cross_check: whether onnx's rule is called for every node, too, so that its refusals are reported.

    Raises:
        ValueError: `prefer` is none of these.
    """

    data_prop: bool = True
    prefer: Prefer = "inferred"
    as_onnx: bool = False
    cross_check: bool = False

    def __post_init__(self) -> None:
        if self.prefer not in get_args(Prefer):
            raise ValueError(f"prefer={self.prefer!r}: it is one of {', '.join(map(repr, get_args(Prefer)))}")

    @property
    def is_default(self) -> bool:
        """Whether every choice is the default."""
        return self.data_prop and self.prefer == "inferred"

    def applied(self, inferred: Fact, declared: Fact) -> Fact:
        """The fact of a value by this policy."""
        fact = inferred if self.data_prop else inferred.bare
        if self.prefer == "inferred" or declared is UNKNOWN:
            return fact
        return refined(fact, declared) if self.prefer == "refine" else refined(declared, fact)


DEFAULT_POLICY = Policy()


def refined(fact: Fact, other: Fact) -> Fact:
    """`fact` with what it leaves open taken from `other`; where they contradict, `fact` stays."""
    if fact is UNKNOWN:
        return other
    match fact, other:
        case (TensorFact(), TensorFact()):
            shape = _refined_shape(fact.shape, other.shape)
            known = fact.known or (other.known if shape == other.shape else None)
            return TensorFact(fact.elem_type or other.elem_type, shape, known)
        case (SparseTensorFact(), SparseTensorFact()):
            return SparseTensorFact(fact.elem_type or other.elem_type, _refined_shape(fact.shape, other.shape))
        case (SequenceFact(), SequenceFact()):
            return SequenceFact(refined(fact.elem, other.elem), other.length if fact.length is None else fact.length)
        case (OptionalFact(), OptionalFact()):
            return OptionalFact(refined(fact.elem, other.elem))
    return fact


def refined_by_type(fact: Fact, declared: bytes) -> Fact:
    """`fact` with what it leaves open taken from a serialized type."""
    return refined(fact, fact_of_type(onnx.TypeProto.FromString(declared), lambda _: VARIES))


def _refined_shape(shape: Shape | None, other: Shape | None) -> Shape | None:
    if shape is None or other is None or len(shape) != len(other):
        return other if shape is None else shape
    return tuple(_refined_dim(a, b) for a, b in zip(shape, other, strict=True))


def _refined_dim(dim: Dim, other: Dim) -> Dim:
    """An int before a symbol, a named symbol before an unknown one."""
    if isinstance(dim, Expr) and (isinstance(other, int) or (is_unknown(dim) and not is_unknown(other))):
        return other
    return dim


def is_unknown(dim: Dim) -> bool:
    """Whether a dim is nothing but the symbol of an unknown size."""
    atom = sole_atom(dim)
    return atom is not None and isinstance(atom.key, tuple) and atom.key[0] in ("unknown", "hole")
