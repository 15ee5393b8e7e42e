"""Traits: one row per operator with what the rest of the package asks of it, beside its kernel and shape rule.

    traits("Conv", OpTraits(category="convolution", shape="shapes", flops=convolution_flops, half="rounded"))

Color, cost, constant and shape folding, half precision, budgets of memory and made-up inputs are queries on these rows;
no other file lists operators by name. The defaults of a row are safe for any operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from onnxlab import schemas

CATEGORIES: Final = (
    "convolution", "matrix", "recurrent", "normalization", "activation", "pooling", "reduction", "shape", "constant",
    "quantization", "control", "sequence", "text", "tree", "signal", "elementwise", "custom",
)  # fmt: skip
"""Families of operators, by which pictures are colored."""

Flops: TypeAlias = Callable[[Mapping[str, Any], Sequence[Any], Sequence[Any]], Any]
"""Operations of one call, from the attributes and the arrays of its inputs and outputs."""

OutBytes: TypeAlias = Callable[..., int]
"""`estimate(attributes, *inputs)`: bytes of the outputs, asked before the kernel is called."""

ShapeFrom: TypeAlias = Literal["shapes", "sizes", "elements", "data", "other"]
_SHAPES: Final = get_args(ShapeFrom)
Elements: TypeAlias = Literal["none", "some", "all"]
Half: TypeAlias = Literal["", "exact", "rounded"]
Layer: TypeAlias = Literal[
    "", "convolution", "product", "recurrent", "attention", "model", "transform", "lookup", "comparison"
]
Masks: TypeAlias = Literal["", "passed", "read"]
Int8: TypeAlias = Literal["", "product", "pointwise", "moved", "clipped"]
SizeRole: TypeAlias = Literal["one", "zero", "few", "shape"]


_NONE: Final[Mapping[Any, Any]] = MappingProxyType({})


class OpTraits(NamedTuple):
    """Properties of an operator, apart from what it computes.

    Attributes:
        category: one of CATEGORIES.
        shape: what the outputs' shapes follow from: the "shapes" of the inputs and attributes; "sizes", the shape of
            the first input and the elements of the others; the "elements" of inputs; "data" that is counted while the
            operator runs; or "other" things: bodies, sequences, maps.
        flops: passes over the elements of the larger of first input and first output, 0 for what only moves data; or
            a function of attributes and arrays.
        elements: which elements of the inputs the facts of the outputs depend on: "none"; "all", each element of an
            output being computed from elements alone; or "some".
        shape_only: whether it reads only the shapes of its inputs.
        half: how small floats come out when computed in float32: "exact", as elements of the inputs up to their sign
            or no small floats at all; or "rounded" once, at the end. "" where neither is sure.
        random: whether every run gives other results.
        out_bytes: bytes of outputs that can dwarf the inputs; None where they cannot.
        out_bytes_since: version before which inputs mean something else, and nothing is estimated.
        quiet: whether it only moves, compares or names elements, so that NumPy has no floating-point state to warn of.
        fresh: whether its results are new, shared with nothing, and of a size that the shapes of its inputs decide, or
            data where `shape` is "data".
        size_arithmetic: whether it is cheap and exporters compute sizes with it: known inputs make known outputs.
        blockwise: whether it does the same to a value with channels in blocks, as long as nothing is broadcast.
        forwards: whether elements of the first input reappear in the output.
        indexes: how its second input indexes the first one: along one "axis" or several "axes"; "" if it does not.
        sizes: {input: what a made-up array of it holds}, for inputs that are sizes, positions or a shape.
        float_sizes: whether floating-point elements decide sizes too.
        iterates: whether it runs its body repeatedly, and can collect what the body makes.
        first_result: which output of its body is its first output; None without a body.
        reshapes: whether it gives the elements of its first input, in their order, another shape.
        zero_signs: positions of inputs in which the sign of a zero matters.
        commutative: whether its inputs may be exchanged.
        saturates: the least and the greatest number that it makes, reached where inputs are large; None without bounds.
        layer: the kind of network layer that is named after it; "" where it only completes a layer.
        masks: what becomes of numbers far beyond the others, which mask elements: "passed" on to the results, or
            "read" as the mask of a softmax; "" where they end.
        int8: how runtimes compute it between DequantizeLinear and QuantizeLinear: as a "product" with a bias of int32;
            "pointwise", each input and output with a scale of its own; "moved", with one scale; or "clipped" by the
            QuantizeLinear itself. "" where they compute it in floats.
        zero_gradient: whether it makes integers or booleans, which small changes of the inputs leave as they are.
        signature: the axes of its inputs, see shape_signatures.py.
        same_since: version from which on later ones differ in nothing but types and attributes; 0 if not stated.
        was_attribute: {version since which they are inputs: {slot: (attribute before, its kind)}}.
        neutral_input: {slot: the elements with which an input that did not exist before changes nothing}.
        value_versions: {attribute: {value: (first version that has it, last one or None)}}, where not all have it.
        flattened_before: version before which all axes from its `axis` on were flattened; 0 for none.
    """

    category: str
    shape: ShapeFrom
    flops: int | Flops
    elements: Elements = "some"
    shape_only: bool = False
    half: Half = ""
    random: bool = False
    out_bytes: OutBytes | None = None
    out_bytes_since: int = 1
    quiet: bool = False
    fresh: bool = False
    size_arithmetic: bool = False
    blockwise: bool = False
    forwards: bool = False
    indexes: Literal["", "axis", "axes"] = ""
    sizes: Mapping[int, SizeRole] = _NONE
    float_sizes: bool = False
    iterates: bool = False
    first_result: int | None = None
    reshapes: bool = False
    zero_signs: tuple[int, ...] = ()
    commutative: bool = False
    saturates: tuple[float, float] | None = None
    layer: Layer = ""
    masks: Masks = ""
    int8: Int8 = ""
    zero_gradient: bool = False
    signature: str = ""
    same_since: int = 0
    was_attribute: Mapping[int, Mapping[int, tuple[str, str]]] = _NONE
    neutral_input: Mapping[int, int] = _NONE
    value_versions: Mapping[str, Mapping[str, tuple[int, int | None]]] = _NONE
    flattened_before: int = 0

    @property
    def moves_only(self) -> bool:
        """Whether the operator computes nothing."""
        return self.flops == 0


UNKNOWN: Final = OpTraits(category="custom", shape="other", flops=1)
"""What holds for an operator without a row."""

_rows: Final[dict[tuple[str, str], OpTraits]] = {}
_custom: Final[dict[tuple[str, str], dict[int, OpTraits]]] = {}


def _checked(row: OpTraits) -> OpTraits:
    """The row. Raises ValueError where its category or its source of shapes is unknown."""
    if row.category not in CATEGORIES:
        raise ValueError(f"category is {row.category!r}; expected one of {', '.join(CATEGORIES)}")
    if row.shape not in _SHAPES:
        raise ValueError(f"shape is {row.shape!r}; expected one of {', '.join(_SHAPES)}")
    return row


def traits(op_types: str, row: OpTraits, domain: str = "") -> None:
    """Enter a row for operators of a domain.

    Args:
        op_types: names, separated by spaces.

    Raises:
        ValueError: an operator has a row already, or the row's category or source of shapes is unknown.
    """
    _checked(row)
    for op_type in op_types.split():
        if (domain, op_type) in _rows:
            raise ValueError(f"{domain or 'ai.onnx'}::{op_type} has a row of traits already")
        _rows[domain, op_type] = row


def add_custom(domain: str, op_type: str, since: int, row: OpTraits) -> None:
    """Enter the row of a version of a custom operator, which hides another one."""
    _custom.setdefault((domain, op_type), {})[since] = _checked(row)


def remove_custom(domain: str, op_type: str, since: int | None) -> None:
    """Take out the row of a version of a custom operator, or all."""
    versions = _custom.pop((domain, op_type), {})
    left = {version: row for version, row in versions.items() if since is not None and version != since}
    if left:
        _custom[domain, op_type] = left


def find(domain: str, op_type: str) -> OpTraits | None:
    """The row of an operator, of a custom one that of the newest version; the families must have been imported."""
    key = (schemas.canonical_domain(domain), op_type)
    versions = _custom.get(key)
    return versions[max(versions)] if versions else _rows.get(key)


def rows() -> Mapping[tuple[str, str], OpTraits]:
    """The rows by (domain, operator), custom operators left out."""
    return _rows
