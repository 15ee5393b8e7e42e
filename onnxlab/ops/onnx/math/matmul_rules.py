"""Shape rules of matrix products: MatMul and its quantized forms, Gemm, Einsum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import MaybeFact, broadcast_shapes, dims_text, elem_type, must_equal, same
from onnxlab.ops.onnx.math.einsum_equation import Term, read
from onnxlab.shapes import Dim, Fact, FactError, Shape, TensorFact, broadcast

Attributes = Mapping[str, Any]


def product_shape(a: Shape | None, b: Shape | None) -> Shape | None:
    """Shape of a @ b by NumPy's rules. Raises FactError where the inner dims differ."""
    if a is None or b is None:
        return None
    if not a or not b:
        raise FactError(
            f"{dims_text(a)} and {dims_text(b)} cannot be multiplied",
            code="rank-mismatch",
            expected="at least a vector on each side",
            found="a scalar",
        )
    left, right = (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b
    must_equal(
        left[-1],
        right[-2],
        "the inner dims of {} and {} differ",
        a,
        b,
        hint="the last dim of the first input must be the second to last of the second",
    )
    batch = broadcast_shapes([left[:-2], right[:-2]]) or ()
    rows: Shape = () if len(a) == 1 else (left[-2],)
    columns: Shape = () if len(b) == 1 else (right[-1],)
    return (*batch, *rows, *columns)


@rule("MatMul")
def matmul(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact) -> Fact:
    """NumPy's matrix product."""
    return TensorFact(elem_type(a) or elem_type(b), product_shape(a.shape, b.shape))


@rule("MatMulInteger", since=10)
def matmul_integer(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact, *_zero_points: MaybeFact) -> Fact:
    """The product in int32."""
    return TensorFact(dtypes.INT32, product_shape(a.shape, b.shape))


@rule("QLinearMatMul", since=10)
def qlinear_matmul(
    ctx: InferContext,
    attributes: Attributes,
    a: Fact,
    a_scale: Fact,
    a_zero_point: Fact,
    b: Fact,
    b_scale: Fact,
    b_zero_point: Fact,
    y_scale: Fact,
    y_zero_point: Fact,
) -> Fact:
    """The product in the type of the output's zero point."""
    return TensorFact(elem_type(y_zero_point) or elem_type(a), product_shape(a.shape, b.shape))


@rule("Gemm")
def gemm(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact, c: MaybeFact = None) -> Fact:
    """[M, N] of a matrix product; the third input must broadcast to it."""
    elem = elem_type(a) or elem_type(b)
    for name, fact in (("A", a), ("B", b)):
        if fact.shape is not None and len(fact.shape) != 2:
            raise FactError(
                f"input {name} has shape {dims_text(fact.shape)}",
                code="rank-mismatch",
                expected="a matrix",
                found=f"rank {len(fact.shape)}",
                hint="put a Flatten or Reshape before it",
            )
    rows: Dim = ctx.symbol(0, 0)
    columns: Dim = ctx.symbol(0, 1)
    if a.shape is not None:
        rows, inner = reversed(a.shape) if attributes.get("transA") else a.shape
    if b.shape is not None:
        other, columns = reversed(b.shape) if attributes.get("transB") else b.shape
    if a.shape is not None and b.shape is not None:
        must_equal(inner, other, "the inner dims of {} and {} differ", a.shape, b.shape)
    if c is not None and c.shape is not None:
        broadcast_shapes([(rows, columns), c.shape])
    return TensorFact(elem, (rows, columns))


# -- Einsum -------------------------------------------------------------------------------------------------------


@rule("Einsum", since=12)
def einsum(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> Fact:
    """Dims by the letters of the equation; an ellipsis stands for what broadcasts."""
    elem = next((elem_type(fact) for fact in inputs if elem_type(fact)), 0)
    equation = read(attributes["equation"])
    if len(equation.operands) != len(inputs):
        raise FactError(
            f"the equation has {len(equation.operands)} terms for {len(inputs)} inputs",
            code="bad-attribute",
            expected=f"{len(inputs)} terms",
            found=f"{len(equation.operands)} terms",
        )
    sizes: dict[str, Dim] = {}
    ellipses: list[Shape] = []
    for term, fact in zip(equation.operands, inputs, strict=True):
        if fact.shape is None:
            return TensorFact(elem, None)
        _bind(term, fact.shape, sizes, ellipses)
    middle = broadcast_shapes(ellipses) if ellipses else ()
    output = equation.output
    missing = [letter for letter in output.letters if letter not in sizes]
    if missing:
        raise FactError(f"the output letter {missing[0]!r} is in no input", code="bad-attribute", found=str(output))
    dims = [sizes[letter] for letter in output.head] + list((middle or ()) if output.dots else ())
    return TensorFact(elem, tuple(dims + [sizes[letter] for letter in output.tail]))


def _bind(term: Term, shape: Shape, sizes: dict[str, Dim], ellipses: list[Shape]) -> None:
    if not term.fits(len(shape)):
        raise FactError(
            f"the term '{term}' does not fit {dims_text(shape)}",
            code="rank-mismatch",
            expected=f"rank {len(term.letters)}",
            found=f"rank {len(shape)}",
        )
    if term.dots:
        ellipses.append(shape[len(term.head) : len(shape) - len(term.tail)])
    pairs = [*zip(term.head, shape, strict=False), *zip(reversed(term.tail), reversed(shape), strict=False)]
    for letter, dim in pairs:
        old = sizes.get(letter)
        if old is None:
            sizes[letter] = dim
            continue
        try:
            sizes[letter] = same(broadcast(old, dim), old if dim == 1 else dim)
        except ValueError:
            raise FactError(f"{letter!r} is {old} and {dim}", expected=str(old), found=str(dim)) from None
