"""Dimensions with symbolic arithmetic, known values, and facts about values: the vocabulary of inference.

expressions.py  Dim = int | Expr: canonical, interned expressions with + - *
arithmetic.py   division, floor, ceil, min, max, and what can be proved about order
notation.py     dims as text, parsed from text, evaluated with the symbols bound
values.py       KnownValue: small tensors, each element known, symbolic or unknown
facts.py        TensorFact, SparseTensorFact, SequenceFact, OptionalFact, MapFact, UNKNOWN
"""

from onnxlab.shapes.arithmetic import (
    at_least,
    ceil_div,
    exact_div,
    floor_div,
    maximum,
    minimum,
    product,
)
from onnxlab.shapes.expressions import Dim, Expr, symbol
from onnxlab.shapes.facts import (
    UNKNOWN,
    Fact,
    MapFact,
    OptionalFact,
    SequenceFact,
    Shape,
    SparseTensorFact,
    TensorFact,
    elements,
    tensor,
)
from onnxlab.shapes.notation import evaluate, parse, substitute, text
from onnxlab.shapes.values import Element, KnownValue, from_items, known

__all__ = [
    "UNKNOWN",
    "Dim",
    "Element",
    "Expr",
    "Fact",
    "KnownValue",
    "MapFact",
    "OptionalFact",
    "SequenceFact",
    "Shape",
    "SparseTensorFact",
    "TensorFact",
    "at_least",
    "ceil_div",
    "elements",
    "evaluate",
    "exact_div",
    "floor_div",
    "from_items",
    "known",
    "maximum",
    "minimum",
    "parse",
    "product",
    "substitute",
    "symbol",
    "tensor",
    "text",
]
