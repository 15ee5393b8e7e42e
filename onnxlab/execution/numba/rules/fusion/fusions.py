"""The table of fusions: which patterns of nodes become which one step of a plan.

The model is never changed: patterns are looked for among the nodes of a region (see `patterns` for how they are
written), and a step that stands for several nodes takes their place in the list that a plan is made from. Where shapes
or constants do not suit, its nodes are lowered one by one, as if there had been no pattern. Rows are tried in order,
from the last node of a region to its first; the nodes that are left are searched for products of one value.

Elementwise operators, alone or after a product, need no row here: they are fused while lowering (see `region_values`).
Bias, factor, residual and clamp join the product before them, and a chain of elementwise operators is one pass. Folding
of BatchNormalization is in `rules.onnx.conv`, of DequantizeLinear and QuantizeLinear in `rules.onnx.dequantized`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from onnxlab.execution.base.background import paced, rest
from onnxlab.execution.base.lru import Lru
from onnxlab.execution.base.provider import Part
from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.views import Array
from onnxlab.execution.numba.rules.fusion.joined_products import has_one_factor, products
from onnxlab.execution.numba.rules.onnx import attention, rows
from onnxlab.execution.numba.rules.onnx.elementwise import activation
from onnxlab.execution.numba.rules.part_matcher import PartMatch, PartMatcher
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.graph.query.patterns.parser import parse
from onnxlab.graph.query.patterns.syntax_tree import NodePattern


@dataclass(frozen=True, slots=True)
class Fusion:
    """A row of the table.

    Attributes:
        name: name of the operation that the nodes compute together.
        kernel: kernel of the records that they become.
        lower: emits the records; raises UnbindableError before it emits anything where it cannot.
        patterns: different ways of writing the operation.
    """

    name: str
    kernel: str
    lower: Callable[[Binder, PartMatch], None]
    patterns: tuple[str, ...]


_SCORES = ("[Add]([Mul](MatMul(q, k), scale), mask)", "[Add](Div(MatMul(q, k), divisor), mask)")
_CENTERED = "d := Sub(x, ReduceMean(x, *axes))"
_SPREAD = ("ReduceMean(Pow(d, 2), *axes)", "ReduceMean(Mul(d, d), *axes)")
_POWER = ("ReduceMean(Pow(x, 2), *axes)", "ReduceMean(Mul(x, x), *axes)")
_INNER = ("Add(x, Mul(0.044715, Pow(x, 3)))", "Add(x, Mul(0.044715, Mul(x, Mul(x, x))))",
          "Mul(x, Add(1, Mul(0.044715, Mul(x, x))))", "Add(x, Mul(Mul(Mul(0.044715, x), x), x))")  # fmt: skip
_ERF = ("Add(Erf(Div(x, 1.4142135)), 1)", "Add(Erf(Mul(x, 0.70710677)), 1)")
_TANH = tuple(f"Add(Tanh(Mul({inner}, 0.7978846)), 1)" for inner in _INNER)


def _gelu(curve: str) -> tuple[str, ...]:
    return f"Mul(Mul(x, {curve}), 0.5)", f"Mul(Mul(x, 0.5), {curve})", f"Mul(x, Mul({curve}, 0.5))"


FUSIONS = (
    Fusion("attention", "attention", attention.decomposed, tuple(
        pattern for scores in _SCORES for pattern in (
            f"MatMul(Softmax({scores}), v)",
            f"MatMul(Where(IsNaN(p := Softmax({scores})), 0, p), v)",
        )
    )),
    Fusion("layer normalization", "norm", rows.decomposed_layer_norm, tuple(
        pattern for spread in _SPREAD for pattern in (
            f"[Add]([Mul](Div({_CENTERED}, Sqrt(Add({spread}, epsilon))), scale), bias)",
            f"[Add]([Mul](Mul({_CENTERED}, Reciprocal(Sqrt(Add({spread}, epsilon)))), scale), bias)",
        )
    )),
    Fusion("RMS normalization", "norm", rows.decomposed_rms_norm, tuple(
        pattern for power in _POWER for pattern in (
            f"[Mul](Div(x, Sqrt(Add({power}, epsilon))), scale)",
            f"[Mul](Mul(x, Reciprocal(Sqrt(Add({power}, epsilon)))), scale)",
            f"[Mul](Mul(x, Div(1, Sqrt(Add({power}, epsilon)))), scale)",
        )
    )),
    Fusion("Gelu", "elementwise", activation("gelu"), tuple(p for curve in _ERF for p in _gelu(curve))),
    Fusion("Gelu by tanh", "elementwise", activation("gelu_tanh"), tuple(p for curve in _TANH for p in _gelu(curve))),
    Fusion("Silu", "elementwise", activation("silu"), ("Mul(x, Sigmoid(x))",)),
)  # fmt: skip


JOINED = Fusion("products of one value", "gemm", products, (
    "[Mul]([Add](MatMul(x, w:const float32 [k, n]), b:const [n]), scale:const)",
))  # fmt: skip
"""Queries, keys and values: what this describes with one x becomes one product."""


@dataclass(frozen=True, slots=True)
class Fused:
    """Nodes of a part that are one step of its plans."""

    fusion: Fusion
    match: PartMatch

    def lower(self, binder: Binder, lower_node: Callable[[Binder, NodeView], None]) -> None:
        """Emit the fusion's records, or lower the nodes one by one where the fusion cannot be lowered."""
        try:
            if not all(_is_number(binder, name, value) for name, value in self.match.numbers):
                raise UnbindableError("a constant of the pattern is another one")
            self.fusion.lower(binder, self.match)
        except UnbindableError:
            for node in self.match.nodes:
                lower_node(binder, node)


def _is_number(binder: Binder, name: str, expected: Any) -> bool:
    """Whether a value is a constant with the element, or the list of them, that a pattern has in its place."""
    array, numbers = binder.known(name), np.asarray(expected, np.float64)
    if array is None or (array.shape != numbers.shape if numbers.ndim else array.size != 1):
        return False
    return bool(np.all(np.abs(array.astype(np.float64) - numbers) <= 1e-3 * np.abs(numbers)))


@cache
def _table() -> dict[str, list[tuple[Fusion, NodePattern]]]:
    """The rows by the operator of the last node, the patterns of each with most nodes first."""
    table: dict[str, list[tuple[Fusion, NodePattern]]] = {}
    for fusion in FUSIONS:
        rest()
        terms = [term for text in fusion.patterns for term in parse(text)]
        for term in sorted(terms, key=lambda term: -len(term.calls())):
            table.setdefault(term.op_type, []).append((fusion, term))
    return table


_known: Lru[object, tuple[Part, list[NodeView | Fused]]] = Lru("fusions of parts", 8)


def fused(part: Part, constants: Mapping[str, Array]) -> list[NodeView | Fused]:
    """The nodes of a part, with each set of fused nodes replaced by one step at the position of one of them.

    The result is remembered for parts of the same operators on the same names, since an edit of weights or attributes
    does not change it.
    """
    shapes = tuple((name, array.shape, array.dtype) for name, array in constants.items())
    wires = tuple((node.op_type, node.domain, node.inputs, node.outputs) for node in paced(part.nodes))
    key = wires, part.outputs, shapes
    cached = _known.get(key)
    if cached is None:
        steps = _fused(part, constants)
    elif cached[0].nodes == part.nodes:
        steps = cached[1]
    else:
        others = {old: new for old, new in zip(cached[0].nodes, part.nodes, strict=True) if old is not new}
        steps = [_of_others(step, others) for step in cached[1]]
    _known.keep(key, (part, steps))
    return steps


def _of_others(step: NodeView | Fused, others: Mapping[NodeView, NodeView]) -> NodeView | Fused:
    """A step with other nodes in the place of some."""
    if isinstance(step, NodeView):
        return others.get(step, step)
    return step if others.keys().isdisjoint(step.match.nodes) else Fused(step.fusion, _match_of(step.match, others))


def _match_of(match: PartMatch, others: Mapping[NodeView, NodeView]) -> PartMatch:
    nodes = tuple(others.get(node, node) for node in match.nodes)
    return replace(match, nodes=nodes, members=tuple(_match_of(member, others) for member in match.members))


def _fused(part: Part, constants: Mapping[str, Array]) -> list[NodeView | Fused]:
    matcher = PartMatcher(part, constants)
    steps: dict[int, Fused] = {}  # by the node whose place they take
    gone: set[int] = set()
    for node in paced(reversed(part.nodes)):
        for fusion, term in _table().get(node.op_type, ()) if not node.domain and node.id not in gone else ():
            match = matcher.find(term, node)
            if match is not None and gone.isdisjoint(member.id for member in match.nodes):
                gone.update(member.id for member in match.nodes)
                steps[node.id] = Fused(fusion, match)
                break
    for match in _joined(part, matcher, constants, gone):
        gone.update(member.id for member in match.nodes)
        steps[match.members[0].nodes[-1].id] = Fused(JOINED, match)
    return [steps.get(node.id, node) for node in paced(part.nodes) if node.id in steps or node.id not in gone]


def _joined(part: Part, matcher: PartMatcher, constants: Mapping[str, Array], gone: set[int]) -> list[PartMatch]:
    """Products of one value with several constants, at the position of the first: they need no other value."""
    alike: dict[str, list[NodeView]] = {}
    for node in paced(part.nodes):
        if node.op_type == "MatMul" and not node.domain and node.inputs[1] in constants and node.id not in gone:
            alike.setdefault(node.inputs[0], []).append(node)
    matches = []
    for nodes in paced(alike.values()):
        if len(nodes) < 2:
            continue
        group = [match for node in nodes if (match := _largest(matcher, node, constants, gone)) is not None]
        if len(group) > 1:
            matches.append(PartMatch(tuple(node for member in group for node in member.nodes), members=tuple(group)))
    return matches


def _largest(matcher: PartMatcher, node: NodeView, constants: Mapping[str, Array], gone: set[int]) -> PartMatch | None:
    """The largest match of a product with the nodes after it."""
    roots = [node]
    while (reader := matcher.only_reader(roots[-1])) is not None and len(roots) < 3:
        roots.append(reader)
    for root in reversed(roots):
        for term in _joined_terms():
            match = matcher.find(term, root)
            if match is not None and match.nodes[0] is node and has_one_factor(match, constants):
                return match if gone.isdisjoint(member.id for member in match.nodes) else None
    return None


@cache
def _joined_terms() -> tuple[NodePattern, ...]:
    return tuple(term for text in JOINED.patterns for term in parse(text))
