"""Einsum of two operands as products of matrices, in stacks along the axes that both have and the result too."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.copies import contiguous
from onnxlab.execution.numba.plan.views import View, dense
from onnxlab.execution.numba.rules.onnx.matmul import batched
from onnxlab.execution.numba.rules.registry import StaticFacts, floats, rule
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops.onnx.math.einsum_equation import read


def terms(equation: str) -> tuple[str, str, str] | None:
    """Letters of both operands and of the result; None for what is no sum of products of two plain operands."""
    parsed = read(equation)
    if len(parsed.operands) != 2 or any(term.dots for term in parsed.operands) or parsed.output.dots:
        return None
    left, right, result = (term.letters for term in (*parsed.operands, parsed.output))
    if not left.isalpha() or not right.isalpha() or not (result.isalpha() or not result):
        return None
    plain = all(len(set(part)) == len(part) for part in (left, right, result))
    used = set(left) ^ set(right) <= set(result) <= set(left) | set(right)
    return (left, right, result) if plain and used else None


def _accept(node: NodeView, view: StaticFacts) -> str:
    if terms(node.attributes["equation"]) is None:
        return "only two operands without repeated letters, each of which is in both or in the result"
    return floats(node, view)


@rule("Einsum", since=12, accept=_accept, weight=4)
def einsum(binder: Binder, node: NodeView) -> None:
    """Lower an Einsum of two operands to one batched product."""
    parsed = terms(node.attributes["equation"])
    assert parsed is not None
    left, right, result = parsed
    a, b = binder.floats(node.inputs[0]), binder.floats(node.inputs[1])
    if len(a.shape) != len(left) or len(b.shape) != len(right):
        raise UnbindableError(f"{a.shape} and {b.shape} are not of the ranks of {left} and {right}")
    sizes = dict(zip(left, a.shape, strict=True)) | dict(zip(right, b.shape, strict=True))
    if tuple(map(sizes.__getitem__, left)) != a.shape:
        raise UnbindableError(f"{a.shape} and {b.shape} do not go together, or one is to be repeated")
    both = [letter for letter in left if letter in right]
    batch, summed = [x for x in both if x in result], [x for x in both if x not in result]
    rows, columns = [x for x in left if x not in right], [x for x in right if x not in left]
    shape = [[sizes[letter] for letter in letters] for letters in (batch, rows, summed, columns)]
    target = binder.builder.allocate((*shape[0], prod(shape[1]), prod(shape[3])), np.float32)
    product = batched(binder, _matrix(binder, a, left, batch, rows, summed),
                      _matrix(binder, b, right, batch, summed, columns), target)  # fmt: skip
    whole = (*shape[0], *shape[1], *shape[3])
    view = binder.emit(product).at(0, whole, dense(whole, 4))
    order = [*batch, *rows, *columns]
    binder.put(node.outputs[0], view.transposed([order.index(letter) for letter in result]))


def _matrix(
    binder: Binder, view: View, letters: str, batch: Sequence[str], down: Sequence[str], across: Sequence[str]
) -> View:
    """The operand as [batch…, down, across], copied where its axes do not join."""
    turned = view.transposed([letters.index(letter) for letter in (*batch, *down, *across)])
    lead = turned.shape[: len(batch)]
    split = len(batch) + len(down)
    shape = (*lead, prod(turned.shape[len(batch) : split]), prod(turned.shape[split:]))
    matrix = turned.reshaped(shape)
    if matrix is None:
        matrix = contiguous(binder.builder, turned).at(0, shape, dense(shape, 4))
    return matrix
