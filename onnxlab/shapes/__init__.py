"""Dimensions with symbolic arithmetic, known values, and facts about values: the vocabulary of inference.

expressions.py  Dim = int | Expr: canonical, interned expressions with + - *
arithmetic.py   division, floor, ceil, min, max, and what can be proved about order
notation.py     dims as text, parsed from text
binding.py      dims with their symbols replaced, or evaluated
values.py       KnownValue: small tensors, each element known, symbolic or unknown
facts.py        TensorFact, SparseTensorFact, SequenceFact, OptionalFact, MapFact, UNKNOWN
problems.py     FactError: why a shape rule cannot accept its inputs

Files:
    arithmetic   Products, division, minimum and maximum of dims, and what can be proved about their order.
    binding      Dims with their symbols replaced: by numbers (`evaluate`), by dims (`substitute`), or atom by atom.
    expressions  Dimensions: integers, or canonical symbolic expressions over named symbols.
    facts        Facts: what is known about a value without running the model.
    interning    Tables of objects that exist once for each key, for as long as they are referenced.
    notation     Dimensions as text and back.
    problems     The exception of shape rules whose inputs or attributes cannot be right.
    values       Known values: small tensors whose elements are known, symbolic, or unknown one by one.
"""

from onnxlab.shapes.arithmetic import (
    at_least,
    broadcast,
    ceil_div,
    exact_div,
    floor_div,
    maximum,
    minimum,
    product,
)
from onnxlab.shapes.binding import evaluate, replace_symbols, substitute
from onnxlab.shapes.expressions import Dim, Expr, symbol
from onnxlab.shapes.facts import (
    MAX_RANK,
    UNKNOWN,
    VARIES,
    Fact,
    MapFact,
    OptionalFact,
    SequenceFact,
    Shape,
    SparseTensorFact,
    TensorFact,
    elements,
    map_dims,
    tensor,
)
from onnxlab.shapes.notation import parse, shown, text
from onnxlab.shapes.problems import FactError
from onnxlab.shapes.values import Element, KnownValue, from_items, known

__all__ = [
    "MAX_RANK",
    "UNKNOWN",
    "VARIES",
    "Dim",
    "Element",
    "Expr",
    "Fact",
    "FactError",
    "KnownValue",
    "MapFact",
    "OptionalFact",
    "SequenceFact",
    "Shape",
    "SparseTensorFact",
    "TensorFact",
    "at_least",
    "broadcast",
    "ceil_div",
    "elements",
    "evaluate",
    "exact_div",
    "floor_div",
    "from_items",
    "known",
    "map_dims",
    "maximum",
    "minimum",
    "parse",
    "product",
    "replace_symbols",
    "shown",
    "substitute",
    "symbol",
    "tensor",
    "text",
]
