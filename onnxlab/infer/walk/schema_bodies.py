"""Inference of an operator by the function body of its schema: the body is walked in a graph of its own.

The facts of the node's inputs go in as they are, so that symbols and known elements pass through; unknown dims that
the body makes come out as holes of the node.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import onnx

from onnxlab import schemas
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.rules.operators import Operator, Problem
from onnxlab.infer.walk.body_walker import BodyWalker
from onnxlab.infer.walk.function_calls import as_seen_outside
from onnxlab.shapes import UNKNOWN, Fact, FactError
from onnxlab.shapes.expressions import Atom

if TYPE_CHECKING:
    from onnxlab.infer.walk.input_masks import Inputs

DOMAIN = "onnxlab.schema"
"""Domain of the function that the body of a schema becomes: no node in the body refers to it."""

_active = threading.local()


def infer(
    operator: Operator, inputs: Inputs, default_opset: int, problems: list[Problem], walk: BodyWalker
) -> Sequence[Fact]:
    """Facts of the outputs of a node whose custom schema has a function body.

    Args:
        default_opset: version of ai.onnx, for a body that uses this domain without importing it.
        walk: the walker of the node's graph, whose `of` gives that of the body.

    Raises:
        FactError: the body leads back to the operator itself.
    """
    name = (operator.domain, operator.op_type)
    running: set[tuple[str, str]] = _active.__dict__.setdefault("names", set())
    if name in running:
        message = f"the body of {operator.domain}::{operator.op_type} leads back to itself, which ONNX forbids"
        raise FactError(message, code="recursive-function")
    graph = ModelGraph(_model(operator, inputs, default_opset))
    walker, frame = walk.of(graph), FactFrame()
    for slot, fact in enumerate(inputs):
        if fact is not None:
            frame.set(graph.main.names[f"x{slot}"], fact)
    running.add(name)
    try:
        walker.walk_scope(frame, graph.main)
    finally:
        running.discard(name)
    for problem in walker.all_diagnostics(frame):
        message = f"in its body, {problem.message}"
        problems.append(Problem(problem.severity, problem.code, message, problem.expected, problem.found, problem.hint))
    facts = [frame.facts.get(vid, UNKNOWN) if vid else UNKNOWN for vid in _outputs(graph)]
    return [as_seen_outside(fact, slot, partial(_own_part, walker.token)) for slot, fact in enumerate(facts)]


def _own_part(token: int, atom: Atom) -> Hashable | None:
    """The identity of an unknown dim among the body's others; None for symbols from outside."""
    key = atom.key
    return key[2:] if type(key) is tuple and key[0] == "unknown" and key[1] == token else None


def _outputs(graph: ModelGraph) -> Sequence[int]:
    (call,) = graph.main.node_ids
    return graph.nodes[call].outputs


def standalone(function: onnx.FunctionProto, default_opset: int) -> onnx.FunctionProto:
    """A copy of a schema's body as a function of the domain `DOMAIN`.

    Args:
        function: the body.
        default_opset: version of ai.onnx, for a body that uses this domain without importing it; 0 for the newest.
    """
    body = onnx.FunctionProto()
    body.CopyFrom(function)
    body.domain, body.overload = DOMAIN, ""
    if all(entry.domain not in ("", "ai.onnx") for entry in body.opset_import):
        body.opset_import.add(domain="", version=default_opset or schemas.latest_opset(""))
    return body


def _model(operator: Operator, inputs: Inputs, default_opset: int) -> onnx.ModelProto:
    """A model that calls the body once."""
    assert operator.schema is not None
    body = standalone(operator.schema.function, default_opset)
    model = onnx.ModelProto(ir_version=onnx.IR_VERSION, functions=[body], opset_import=body.opset_import)
    model.opset_import.add(domain=DOMAIN, version=1)
    model.graph.name = "body"
    model.graph.input.extend(
        onnx.ValueInfoProto(name=f"x{slot}") for slot, fact in enumerate(inputs) if fact is not None
    )
    node = model.graph.node.add()
    node.CopyFrom(operator.proto)
    node.op_type, node.domain, node.overload = body.name, DOMAIN, ""
    set_names = {attribute.name for attribute in node.attribute}
    for name, spec in operator.schema.attributes.items():
        if spec.default is not None and name not in set_names and (name in body.attribute or _is_formal(body, name)):
            node.attribute.append(onnx.helper.make_attribute(name, spec.default))
    return model


def _is_formal(body: onnx.FunctionProto, name: str) -> bool:
    return any(attribute.name == name for attribute in body.attribute_proto)
