"""Reasons why a dim is unknown: in words, and with the inputs that lack something."""

from __future__ import annotations

from typing import Any

from onnxlab import dtypes
from onnxlab.graph.index.records import NodeRecord
from onnxlab.infer.questions.provenance import FactPart, Place
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.rules.operators import Operator
from onnxlab.infer.walk.walker import Walker
from onnxlab.ops import OpTraits, find_traits
from onnxlab.shapes import UNKNOWN, Expr, Fact, TensorFact


def loss(
    walker: Walker, frame: FactFrame, node: NodeRecord, operator: Operator, slot: int, part: FactPart
) -> tuple[str, list[Place]]:
    """The reason why a part of an output is unknown, and the parts of inputs that would have been needed."""
    for problem in frame.problems.get(node.id, ()):
        if problem.code == "unknown-operator":
            return f"the operator {operator.op_type!r} is unknown: {problem.hint}", []
        if problem.severity == "error":
            return f"the node is refused: {problem.message}", []
    facts = [frame.facts.get(vid, UNKNOWN) if vid else None for vid in node.inputs]
    names = [walker.graph.values[vid].name if vid else "" for vid in node.inputs]
    row = find_traits(operator.domain, operator.op_type)
    if row.shape == "data":
        return f"{operator.op_type} counts its output while it runs: the size depends on the data", []
    for at, fact in enumerate(facts):
        if fact is not None and (fact is UNKNOWN or (isinstance(fact, TensorFact) and fact.shape is None)):
            return f"the rank of its input {names[at]!r} is unknown", [(at, FactPart("rank"))]
    for at, fact in enumerate(facts):
        if fact is not None and (missing := _missing_element(row, fact, part)) is not None:
            return f"the elements of its input {names[at]!r} are only known when the model runs", [(at, missing)]
    schema = operator.schema
    if operator.rule is None and schema is not None and schema.function is None and not _infers(schema.onnx):
        return f"{operator.op_type} was registered without a shape rule: give ops.register one, infer=", []
    return f"the rule of {operator.op_type} cannot tell: the size depends on the data, or is not followed", []


def _infers(schema: Any) -> bool:
    """Whether a schema of onnx.defs brings a rule, or a body to walk."""
    return schema is not None and bool(schema.has_type_and_shape_inference_function or schema.has_function)


def _missing_element(row: OpTraits, fact: Fact, part: FactPart) -> FactPart | None:
    """The element of a list of sizes that is not known, the one at the part's place first."""
    if not isinstance(fact, TensorFact) or (fact.elem_type not in (dtypes.INT64, dtypes.INT32) and not row.float_sizes):
        return None
    if fact.shape is None or len(fact.shape) > 1:
        return None
    if fact.known is None:
        return FactPart("rank")
    missing = [i for i, item in enumerate(fact.known.items) if item is None or isinstance(item, Expr)]
    if not missing:
        return None
    return FactPart("element", part.index if part.index in missing else missing[0])
