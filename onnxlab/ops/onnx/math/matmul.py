"""Matrix products: MatMul, Gemm, Einsum."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from onnxlab.limits import InferContext
from onnxlab.ops.base.derivatives import Arrays, derivative, unbroadcast
from onnxlab.ops.base.estimates import gemm_flops, matmul_bytes, product_flops
from onnxlab.ops.base.kernel_helpers import Array, is_small_float, legacy_operand, narrow, widen, widened
from onnxlab.ops.base.registry import Attributes, kernel, rule, windowed
from onnxlab.ops.base.rule_helpers import MaybeFact, broadcast_shapes, dims_text, elem_type, must_equal, same
from onnxlab.ops.base.stored_operand import StoredOperand
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.onnx.math.einsum_equation import Equation, Term, read
from onnxlab.shapes import Dim, Fact, FactError, Shape, TensorFact, broadcast

_SINGLE = np.dtype(np.float32)


def for_blas(x: Array) -> Array:
    """Return `x` so that BLAS can read its matrices: NumPy multiplies any other strides in a slow loop."""
    if x.flags.c_contiguous or x.ndim < 2:
        return x if x.ndim != 1 or x.strides[0] >= 0 else x.copy()
    rows, columns = x.strides[-2:]
    item = x.itemsize
    fits = (columns == item and rows >= item * x.shape[-1] and rows % item == 0) or (
        rows == item and columns >= item * x.shape[-2] and columns % item == 0
    )
    return x if fits else np.ascontiguousarray(x)


_LARGE = 1 << 14  # elements of a matrix from which on a copy for two or three rows does not pay


def product(a: Array, b: Array, out: Array | None = None) -> Array:
    """a @ b for float32 and float64, written to `out` where it is given; stacks times one matrix are one product."""
    a, b = for_blas(a), for_blas(b)
    if a.ndim == 2 <= b.ndim and 1 < len(a) < 4 and b.shape[-2] * b.shape[-1] >= _LARGE:
        y = np.empty((*b.shape[:-2], len(a), b.shape[-1]), np.result_type(a, b)) if out is None else out
        np.matmul(a[:, None], b[..., None, :, :], y[..., None, :])  # else OpenBLAS copies all of b first
        return y
    if b.ndim == 2 and a.ndim > 2 and a.size and out is None:
        y = np.empty((*a.shape[:-1], b.shape[-1]), np.result_type(a, b))  # no view: its buffer may be used again
        np.matmul(a.reshape(-1, a.shape[-1]), b, out=y.reshape(-1, b.shape[-1]))
        return y
    return np.matmul(a, b, out)


def product_of_integers(a: Array, b: Array) -> Array:
    """a @ b of integers, in their type; through BLAS where float64 holds every partial sum exactly."""
    if a.size and b.size and b.ndim:
        largest = max(abs(int(a.min())), abs(int(a.max()))) * max(abs(int(b.min())), abs(int(b.max())))
        if largest * a.shape[-1] < 2**53:
            return product(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)
    return np.matmul(a, b)


@kernel("MatMul")
def mat_mul(a: Array, b: Array) -> Array:
    """np.matmul: stacks of matrices broadcast, vectors count as a row or column."""
    if a.dtype == b.dtype == _SINGLE and b.ndim == 2 <= a.ndim and a.flags.c_contiguous and b.flags.c_contiguous:
        width, columns = b.shape  # the most frequent case, in which a microsecond counts
        if a.shape[-1] == width and a.size and columns:
            if a.ndim == 2:
                return np.dot(a, b) if not 1 < len(a) < 4 else product(a, b)
            y = np.empty((*a.shape[:-1], columns), _SINGLE)  # no view of rows: its buffer may be used again
            np.dot(a.reshape(-1, width), b, y.reshape(-1, columns))
            return y
    if a.dtype == b.dtype == _SINGLE and a.ndim > 2 < b.ndim and a.shape[-1] == b.shape[-2]:
        return np.matmul(for_blas(a), for_blas(b))
    if not a.ndim or not b.ndim:
        raise ValueError(f"A has shape {a.shape}, B {b.shape}: expected rank 1 or more")
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise ValueError(f"A has shape {a.shape}, B {b.shape}: the inner sizes {a.shape[-1]} and {inner} differ")
    if is_small_float(a.dtype):
        return narrow(np.asarray(product(widen(a), widen(b))), a.dtype)
    return product(a, b) if a.dtype.kind == "f" else product_of_integers(a, b)


@windowed("MatMul", place=1)
def mat_mul_by_windows(a: Array, b: StoredOperand) -> Array | None:
    """A product with a matrix of a file."""
    if not _is_windowed(a, b) or a.shape[-1] != b.shape[0]:
        return None
    return narrow(_sum_of_windows(a, b), a.dtype)


def _is_windowed(a: Array, b: StoredOperand) -> bool:
    """Whether a product may be computed in parts: integers are multiplied in a type that depends on all of them."""
    is_float = a.dtype.kind == "f" or is_small_float(a.dtype)
    return is_float and a.dtype == b.dtype and len(b.shape) == 2 and 0 not in b.shape and a.ndim > 0


def _sum_of_windows(a: Array, b: StoredOperand) -> Array:
    """a @ b: some rows of b with those columns of a, and the sum of these products; small floats in float32."""
    wide, total = widen(a), None
    for start, rows in b.windows():
        part = np.asarray(product(wide[..., start : start + len(rows)], widen(rows)))
        total = part if total is None else np.add(total, part, out=total)
    assert total is not None  # b has rows
    return total


@kernel("Gemm", since=7)
@widened
def gemm(
    a: Array,
    b: Array,
    c: Array | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803 - the attribute's name
    transB: int = 0,  # noqa: N803
) -> Array:
    """alpha·A·B + beta·C of matrices, A and B transposed where asked; C broadcasts to the result."""
    left, right = (a.T if transA else a), (b.T if transB else b)
    if a.ndim != 2 or b.ndim != 2 or left.shape[1] != right.shape[0]:
        raise ValueError(f"A is {left.shape} and B {right.shape} after transposition: they cannot be multiplied")
    y = mat_mul(left, right)
    if alpha != 1:
        y = np.multiply(y, y.dtype.type(alpha), out=y)
    if c is None or beta == 0:
        return y
    term = c if beta == 1 else (c * beta).astype(c.dtype)
    return np.add(y, term, out=y)


@windowed("Gemm", since=7, place=1)
def gemm_by_windows(
    a: Array,
    b: StoredOperand,
    c: Array | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803 - the attribute's name
    transB: int = 0,  # noqa: N803
) -> Array | None:
    """alpha·A·B + beta·C with B in a file: the result by some columns at a time, or as a sum like MatMul's."""
    left = a.T if transA else a
    if not _is_windowed(a, b) or a.ndim != 2 or left.shape[1] != b.shape[1 if transB else 0]:
        return None
    if transB:
        wide = widen(left)
        y = np.concatenate([product(wide, widen(rows).T) for _, rows in b.windows()], axis=1)
    else:
        y = _sum_of_windows(left, b)
    if alpha != 1:
        y = np.multiply(y, y.dtype.type(alpha), out=y)
    if c is not None and beta != 0:
        term = widen(c)
        y = np.add(y, term if beta == 1 else (term * beta).astype(term.dtype), out=y)
    return narrow(y, a.dtype)


@kernel("Gemm", since=1)
def gemm_1(
    a: Array,
    b: Array,
    c: Array,
    broadcast: int = 0,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803
    transB: int = 0,  # noqa: N803
) -> Array:
    """Gemm-7; C broadcasts only where the attribute says so."""
    rows, columns = a.shape[1 if transA else 0], b.shape[0 if transB else 1]
    term = legacy_operand(np.empty((rows, columns), bool), c, broadcast, None)
    return gemm(a, b, term, alpha=alpha, beta=beta, transA=transA, transB=transB)


@kernel("Einsum", since=12)
@widened
def einsum(*inputs: Array, equation: str) -> Array:
    """Einstein's summation, with ellipses; pairs go through BLAS where they can."""
    equation = equation.replace(" ", "")
    if len(inputs) == 2 and inputs[0].dtype == inputs[1].dtype and inputs[0].dtype.char in "fd":
        y = _product_of_letters(equation, *inputs)
        if y is not None:
            return y
    optimize = len(inputs) > 1 and prod(inputs[0].shape) > 64
    return np.asarray(np.einsum(equation, *inputs, optimize=optimize))


def _product_of_letters(equation: str, a: Array, b: Array) -> Array | None:
    """The sum of two operands by BLAS, where it is a product of stacks of matrices, else None."""
    plan = _plan(equation)
    if plan is None or a.ndim != len(plan.left) or b.ndim != len(plan.right):
        return None
    left, right = a.transpose(plan.left), b.transpose(plan.right)
    stacks, inner = plan.stacks, plan.inner
    if left.shape[:stacks] != right.shape[:stacks] or left.shape[-inner:] != right.shape[stacks : stacks + inner]:
        return None
    rows, columns = left.shape[stacks:-inner], right.shape[stacks + inner :]
    y = np.empty((*left.shape[:stacks], *rows, *columns), a.dtype)
    if not a.size or not b.size:
        y[...] = 0
        return y.transpose(plan.output)
    lead, depth = prod(left.shape[:stacks]), prod(left.shape[-inner:])
    factor, other = for_blas(left.reshape(lead, -1, depth)), for_blas(right.reshape(lead, depth, -1))
    np.matmul(factor, other, out=y.reshape(lead, prod(rows), prod(columns)))
    return y.transpose(plan.output)


class _Plan(NamedTuple):
    """A product of stacks of matrices that an equation asks for.

    Attributes:
        left: axes of the first operand: those of the stack, of rows, of what is summed.
        right: axes of the second one: those of the stack, of what is summed, of columns.
        output: places of the output's axes among those of the stack, of rows, of columns.
        stacks: number of axes of the stack.
        inner: number of axes that are summed.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    output: tuple[int, ...]
    stacks: int
    inner: int


@lru_cache(256)
def _plan(equation: str) -> _Plan | None:
    terms = read(equation)
    if len(terms.operands) != 2 or any(term.dots for term in (*terms.operands, terms.output)):
        return None
    first, second, output = (term.letters for term in (*terms.operands, terms.output))
    if any(len(set(letters)) < len(letters) for letters in (first, second, output)):
        return None
    shared = [letter for letter in first if letter in second]
    stack, inner = ([x for x in shared if (x in output) == is_stack] for is_stack in (True, False))
    rows, columns = [x for x in first if x not in second], [x for x in second if x not in first]
    if not inner or sorted(output) != sorted(stack + rows + columns):
        return None
    places = stack + rows + columns
    return _Plan(
        tuple(map(first.index, stack + rows + inner)), tuple(map(second.index, stack + inner + columns)),
        tuple(map(places.index, output)), len(stack), len(inner),
    )  # fmt: skip


# -- shape rules -------------------------------------------------------------------------------------------------------


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


@rule("Gemm")
def gemm_rule(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact, c: MaybeFact = None) -> Fact:
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


@rule("Einsum", since=12)
def einsum_rule(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> Fact:
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


# -- gradients ---------------------------------------------------------------------------------------------------------


@derivative("MatMul")
def _matmul_gradient(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    (a, b), (g,) = inputs, gradients
    left, right = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    if a.ndim == 1:
        g = np.expand_dims(g, -1 if b.ndim == 1 else -2)
    if b.ndim == 1:
        g = np.expand_dims(g, -1)
    of_a = unbroadcast(g @ right.swapaxes(-1, -2), left.shape).reshape(a.shape)
    return [of_a, unbroadcast(left.swapaxes(-1, -2) @ g, right.shape).reshape(b.shape)]


@derivative("Gemm")
def _gemm_gradient(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    (a, b, *rest), (g,) = inputs, gradients
    left, right = (a.T if attributes["transA"] else a), (b.T if attributes["transB"] else b)
    scaled = g * g.dtype.type(attributes["alpha"])
    of_a, of_b = scaled @ right.T, left.T @ scaled
    products = [of_a.T if attributes["transA"] else of_a, of_b.T if attributes["transB"] else of_b]
    return [
        *products,
        *(None if c is None else unbroadcast(g * g.dtype.type(attributes["beta"]), c.shape) for c in rest),
    ]


# -- traits ------------------------------------------------------------------------------------------------------------


def _einsum_bytes(attributes: Mapping[str, Any], *inputs: Any) -> int:
    """Bytes by the output's letters, explicit or implied; an ellipsis counts as in the input where it covers most."""
    equation, sizes, covered = _einsum_sizes(attributes, inputs)
    count = prod(sizes[letter] for letter in equation.output.letters)
    return int(count * (covered if equation.output.dots else 1) * max(int(array.itemsize) for array in inputs))


def _einsum_flops(attributes: Mapping[str, Any], inputs: Arrays, outputs: Arrays) -> int:
    """A product of all inputs for each combination of letters, and its sum."""
    _, sizes, covered = _einsum_sizes(attributes, inputs)
    return len(inputs) * covered * prod(sizes.values())


def _einsum_sizes(attributes: Mapping[str, Any], inputs: Arrays) -> tuple[Equation, dict[str, int], int]:
    """The equation, the size of each letter, and what an ellipsis covers."""
    equation = read(attributes["equation"])
    sizes: dict[str, int] = {}
    covered = 1
    for term, array in zip(equation.operands, inputs, strict=True):
        start = len(term.head)
        hidden = array.ndim - len(term.letters)
        covered = max(covered, prod(array.shape[start : start + hidden]))
        shape = array.shape[:start] + array.shape[start + hidden :]
        for letter, size in zip(term.letters, shape, strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    return equation, sizes, covered


def _gemm_bytes(attributes: Mapping[str, Any], a: Any, b: Any, *rest: Any) -> int:
    rows = a.shape[1 if attributes.get("transA") else 0]
    columns = b.shape[0 if attributes.get("transB") else 1]
    return int(rows * columns * a.itemsize)


traits(
    "Einsum",
    OpTraits(
        category="matrix",
        shape="shapes",
        flops=_einsum_flops,
        elements="none",
        out_bytes=_einsum_bytes,
        layer="product",
    ),
)
traits(
    "Gemm",
    OpTraits(
        category="matrix",
        shape="shapes",
        flops=gemm_flops,
        elements="none",
        half="rounded",
        out_bytes=_gemm_bytes,
        out_bytes_since=7,
        layer="product",
        int8="product",
    ),
)
traits(
    "MatMul",
    OpTraits(
        category="matrix",
        shape="shapes",
        flops=product_flops,
        elements="none",
        half="rounded",
        out_bytes=matmul_bytes,
        layer="product",
        int8="product",
    ),
)
