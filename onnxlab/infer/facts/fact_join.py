"""The join of two facts: what is true of a value that is described by either."""

from __future__ import annotations

from onnxlab.infer.facts.symbols import unknown_dim
from onnxlab.shapes import (
    UNKNOWN,
    VARIES,
    Dim,
    Fact,
    KnownValue,
    MapFact,
    OptionalFact,
    SequenceFact,
    Shape,
    SparseTensorFact,
    TensorFact,
)


def join(a: Fact, b: Fact, value: int, token: int) -> Fact:
    """The most precise fact that both are instances of; dims that differ become symbols of the value (0: VARIES)."""
    if a is b:
        return a
    match a, b:
        case (TensorFact(), TensorFact()) if a.elem_type == b.elem_type:
            shape = _shape(a.shape, b.shape, value, token)
            return TensorFact(a.elem_type, shape, _known(a, b) if shape is not None else None)
        case (SparseTensorFact(), SparseTensorFact()) if a.elem_type == b.elem_type:
            return SparseTensorFact(a.elem_type, _shape(a.shape, b.shape, value, token))
        case (SequenceFact(), SequenceFact()):
            if 0 in (a.length, b.length):  # an empty sequence says nothing of its elements
                return SequenceFact(a.elem if b.length == 0 else b.elem, a.length if a.length == b.length else None)
            return SequenceFact(join(a.elem, b.elem, 0, token), a.length if a.length == b.length else None)
        case (OptionalFact(), OptionalFact()):
            return OptionalFact(join(a.elem, b.elem, value, token))
        case (MapFact(), MapFact()) if a.key_type == b.key_type:
            return MapFact(a.key_type, join(a.elem, b.elem, value, token))
    return UNKNOWN


def _shape(a: Shape | None, b: Shape | None, value: int, token: int) -> Shape | None:
    if a is None or b is None or len(a) != len(b):
        return None

    def dim(axis: int, left: Dim, right: Dim) -> Dim:
        if left == right or not value:
            return left if left == right else VARIES
        return unknown_dim(token, "join", value, 0, axis, f"any{value}")

    return tuple(dim(axis, left, right) for axis, (left, right) in enumerate(zip(a, b, strict=True)))


def _known(a: TensorFact, b: TensorFact) -> KnownValue | None:
    if a.known is None or b.known is None or a.known.shape != b.known.shape:
        return None
    items = [
        x if x is y or (type(x) is type(y) and x == y) else None
        for x, y in zip(a.known.items, b.known.items, strict=True)
    ]
    return KnownValue(a.known.kind, a.known.shape, tuple(items)) if any(item is not None for item in items) else None
