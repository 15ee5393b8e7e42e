"""Whether a value's type fits an input slot: what inference has to say of a wire before it is drawn."""

from __future__ import annotations

from collections.abc import Callable

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.infer.rules.schema_checks import type_problems
from onnxlab.shapes import Fact


def wire_problem(
    graph: ModelGraph, fact_of: Callable[[int], Fact], value: ValueRecord, node: NodeRecord, slot: int
) -> str | None:
    """The reason why the schema's types forbid a node to read a value in a slot, as a sentence; None for none.

    Problems that the node has already do not count, nor does the input that the slot reads now.
    """
    schema = graph.schema(node)
    if schema is None or function_key(node.proto) in graph.index.functions:
        return None
    facts = [fact_of(vid) if vid else None for vid in node.inputs]
    facts += [None] * (slot + 1 - len(facts))
    facts[slot] = None
    before = {problem.message for problem in type_problems(schema, facts)}
    facts[slot] = fact_of(value.id)
    for problem in type_problems(schema, facts):
        if problem.message not in before:
            types = f"expected {problem.expected}, found {problem.found}"
            hint = f"; {problem.hint}" if problem.hint else ""
            return f"{graph.label(node)} cannot read {value.name!r} there: {problem.message} ({types}{hint})"
    return None
