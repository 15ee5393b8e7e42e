"""Gradient of ai.onnx.preview.training: the nodes between `xs` and `y` run forwards, then their rules backwards.

The operator reads the graph it stands in: `xs` and `zs` name values of the graph, the inputs of the node give these
values for the run, and the nodes from there to `y` are differentiated
(https://onnx.ai/onnx/operators/onnx_aionnxpreviewtraining_Gradient.html).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onnxlab.errors import RunError, UnsupportedOperatorError
from onnxlab.execution.base.provider import Step
from onnxlab.execution.program.executor import NodeContext, ProgramBody
from onnxlab.execution.program.program import assemble
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops import find_traits
from onnxlab.ops.base.derivatives import Rule, find_derivative, operators

if TYPE_CHECKING:
    from onnxlab.execution.planning.compiler import ScopeCompiler

DOMAIN = "ai.onnx.preview.training"
Array = np.ndarray[Any, Any]


_Part = tuple[NodeView, Rule, Mapping[str, Any]]  # a node on the way from `xs` to `y`, its derivative, its attributes


def gradient_step(
    node: NodeView,
    scope: ScopeCompiler,
    step_of: Callable[[NodeView], Step],
    attributes_of: Callable[[NodeView], Mapping[str, Any]],
) -> Step:
    """The step of a Gradient node.

    Args:
        step_of: makes the step of a node on the way.
        attributes_of: gives the attributes of a node, defaults filled in.

    Raises:
        RunError: attributes that do not fit the inputs, or name no values.
        UnsupportedOperatorError: an operator on the way has no derivative.
    """
    xs, y = tuple(node.attributes.get("xs", ())), node.attributes.get("y", "")
    sources = (*xs, *node.attributes.get("zs", ()))
    if len(sources) != len(node.inputs) or len(xs) < len(node.outputs):
        raise RunError(f"{node.label} (Gradient): xs and zs name {len(sources)} values, of which {len(xs)} are to be "
                       f"differentiated by; {len(node.inputs)} inputs and {len(node.outputs)} outputs are listed",
                       node.label)  # fmt: skip
    unknown = [name for name in (*sources, y) if name not in scope.ids]
    if unknown:
        raise RunError(f"{node.label} (Gradient): no value is called {unknown[0]!r}", node.label)
    way = scope.cone(sources, [y])
    parts = _parts(node, way, set(xs), attributes_of)
    constants = [name for part in way for name in part.inputs if name in scope.scope.initializers]
    names = tuple(dict.fromkeys([*sources, *constants, *(name for part in way for name in part.outputs if name), y]))

    def forward() -> Any:
        return assemble([step_of(part) for part in way], sources, names, scope.constant, scope.where)

    body = ProgramBody(sources, names, (), (), forward)

    def call(context: NodeContext, *arrays: Any) -> tuple[Array, ...]:
        values = dict(zip(names, context.run(body, arrays), strict=True))
        gradients = _backward(parts, values, y)
        return tuple(gradients[x] if x in gradients else np.zeros_like(values[x]) for x in xs)

    return Step(node.label, f"{DOMAIN}::Gradient", node.id, call, node.inputs, node.outputs, context=True,
                opsets=scope.scope.opsets)  # fmt: skip


def _parts(
    node: NodeView, way: Sequence[NodeView], xs: set[str], attributes_of: Callable[[NodeView], Mapping[str, Any]]
) -> list[_Part]:
    """The nodes that depend on `xs`, with their rules."""
    moving, parts = set(xs), []
    for part in way:
        if moving.isdisjoint(part.inputs) or find_traits(part.domain, part.op_type).zero_gradient:
            continue
        rule = find_derivative(part.domain, part.op_type)
        if rule is None:
            name = f"{part.domain}::{part.op_type}" if part.domain else part.op_type
            raise UnsupportedOperatorError(
                f"{node.label} (Gradient): {part.label} is a {name}, which has no derivative here; "
                f"these have one: {', '.join(operators())}",
                node.label,
            )
        parts.append((part, rule, attributes_of(part)))
        moving.update(name for name in part.outputs if name)
    return parts


def _backward(parts: Sequence[_Part], values: Mapping[str, Any], y: str) -> dict[str, Array]:
    """{name of a value: gradient of the sum of `y` with respect to it}."""
    totals: dict[str, Array] = {y: np.ones_like(values[y])}
    for part, rule, attributes in reversed(parts):
        if not any(name in totals for name in part.outputs):
            continue
        outputs = [values[name] if name else None for name in part.outputs]
        gradients = [
            totals[name] if name in totals else None if array is None else np.zeros_like(array)
            for name, array in zip(part.outputs, outputs, strict=True)
        ]
        inputs: list[Array | None] = [values[name] if name else None for name in part.inputs]
        input_gradients = rule(attributes, inputs, outputs, gradients)
        for name, array, gradient in zip(part.inputs, inputs, input_gradients, strict=False):
            if name and gradient is not None and array is not None and array.dtype.kind != "i":
                gradient = gradient.astype(array.dtype, copy=False)
                totals[name] = totals[name] + gradient if name in totals else gradient
    return totals
