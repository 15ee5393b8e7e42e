"""Bytes of a node's outputs, computed from the real inputs before the kernel is called.

Only operators whose outputs can be far larger than their inputs have an estimate among their traits: by broadcasting,
by a product, or because an input or attribute is a size. The outputs of all others are at most a few times as large as
their inputs, and are counted after the call.

An estimate may be asked about malformed inputs, which the kernel has to refuse: it then raises one of `UNFIT`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from onnxlab.ops import find_traits
from onnxlab.ops.base.estimates import SMALL, broadcast
from onnxlab.shapes import Fact

Estimate: TypeAlias = Callable[..., int]

UNFIT: Final = (ValueError, IndexError, TypeError, AttributeError, KeyError, ZeroDivisionError, OverflowError)


def is_harmless(inputs: Sequence[Fact], outputs: Sequence[Fact]) -> bool:
    """Whether inference knows that each output is small, or has the shape of an input."""
    shapes = {fact.shape for fact in inputs if fact.shape is not None}
    return all(fact.shape in shapes or is_small(fact) for fact in outputs)


def is_small(fact: Fact) -> bool:
    """Whether inference knows that a value takes at most SMALL bytes."""
    nbytes = fact.nbytes()
    return isinstance(nbytes, int) and nbytes <= SMALL


def find(domain: str, op_type: str, since_version: int, attributes: Mapping[str, Any]) -> Estimate | None:
    """The estimate for an operator with these attributes: `estimate(*inputs)` -> bytes; None where none is needed."""
    row = find_traits(domain, op_type)
    if row.out_bytes is None or since_version < row.out_bytes_since:
        return None
    return broadcast if row.out_bytes is broadcast else partial(row.out_bytes, attributes)
