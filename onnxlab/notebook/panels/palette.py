"""The palette: operators of the domains that a model imports, and the slots that a value may be wired to."""

from functools import partial
from typing import TYPE_CHECKING

from onnxlab import schemas
from onnxlab.errors import NameLookupError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.connecting import Targets
from onnxlab.infer.questions.wire_types import wire_problem
from onnxlab.infer.rules.schema_checks import type_problems
from onnxlab.notebook.panels.operator_docs import documentation, first_sentence
from onnxlab.notebook.protocol.messages import JSON
from onnxlab.render.categories import category
from onnxlab.runtime_schemas import documented
from onnxlab.shapes import Fact

if TYPE_CHECKING:
    from onnxlab.model import Model


def operators(graph: ModelGraph, read: Fact | None = None) -> JSON:
    """Operators by domain and name, and the functions of the model, each with the first sentence about it.

    Args:
        read: the fact of the value for the first input; operators that do not take its type are left out.
    """
    rows = []
    for domain in sorted({schemas.canonical_domain(item.domain) for item in graph.proto.opset_import}):
        version = graph.opset_version(domain)
        for op_type in schemas.operators(domain, version) if version else ():
            schema = schemas.find(domain, op_type, version or 0)
            if schema is not None and not schema.deprecated and not (read and type_problems(schema, [read])):
                named = _named(domain, op_type)
                rows.append(
                    {"op": named, "summary": first_sentence(documented(schema).doc), **_arity(schema, domain, op_type)}
                )
    for (domain, name, _), scope in graph.index.functions.items():
        function = graph.scopes[scope]
        summary = first_sentence(function.proto.doc_string) or "A function of this model."
        ends = {"inputs": [len(function.inputs)] * 2, "category": "function"}
        rows.append({"op": _named(domain, name), "summary": summary, **ends})
    return {"operators": rows}


def _named(domain: str, op_type: str) -> str:
    return f"{domain}::{op_type}" if domain else op_type


def _arity(schema: schemas.Schema, domain: str, op_type: str) -> JSON:
    """The least and largest number of inputs of an operator, and the color of its box."""
    return {"inputs": [schema.min_input, min(schema.max_input, 1 << 20)], "category": category(domain, op_type, False)}


def documentation_of(graph: ModelGraph, op: str) -> JSON:
    """The documentation of an operator in the model's opset. Raises NameLookupError for an unknown operator."""
    domain, _, op_type = op.rpartition("::")
    version = graph.opset_version(domain)
    schema = schemas.find(domain, op_type, version) if version else None
    if schema is None:
        raise NameLookupError(f"no operator {op!r} is known at the model's opset; functions have no documentation here")
    shown = {"title": op, "text": documentation(schema)}
    return {**shown, "since_version": schema.since_version, "deprecated": schema.deprecated}


def targets(model: "Model", value: int, nodes: list[int]) -> JSON:
    """The input slots of some nodes that may read a value: the free ones by node, and reasons for the others.

    Raises:
        NameLookupError: the value is not in the model any more.
    """
    if value not in model.graph.values:
        raise NameLookupError(f"value {value} is not in the model any more")
    allowed: dict[str, list[int]] = {}
    refused: dict[str, str] = {}
    candidates = Targets(
        model.graph, model.graph.values[value], partial(wire_problem, model.graph, model.inference.fact)
    )
    for ident in nodes:
        record = model.graph.nodes.get(ident)
        if record is None:
            continue
        schema = model.graph.schema(record)
        slots = len(record.inputs) + (schema is not None and len(record.inputs) < schema.max_input)
        reasons = [candidates.refusal(record, slot) for slot in range(slots)]
        if free := [slot for slot, reason in enumerate(reasons) if reason is None]:
            allowed[str(ident)] = free
        else:
            refused[str(ident)] = next(iter(reasons), None) or "It takes no inputs."
    return {"allowed": allowed, "refused": refused}
