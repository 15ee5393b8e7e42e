"""Tools that look: the models, their nodes, values and problems, a picture, differences."""

import fnmatch
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onnxlab.errors import Diagnostic
from onnxlab.graph.handles.handles import Node, Value
from onnxlab.mcp.answers import JSON, LONG_TEXT, PICTURE, RefusedCall, cut, page
from onnxlab.mcp.call import Tool, ToolCall, ToolParameter, held
from onnxlab.model import diff
from onnxlab.render import svg, text

if TYPE_CHECKING:
    from onnxlab.model import Model

OPERATORS = 40
"""Operators that a summary counts one by one."""
PAGING = {
    "offset": ToolParameter("integer", "the first row that is told, from 0"),
    "limit": ToolParameter("integer", "rows that are told, at most 100"),
}


def _models(call: ToolCall) -> JSON:
    rows = [
        {"model": name, "nodes": len(model.graph.nodes), "version": model.version, "unsaved": model.dirty}
        for name, model in call.models.items()
    ]
    return {**page(rows, 0), "allowed": sorted(call.rights)}


def _summary(call: ToolCall) -> JSON:
    model = call.model
    with held(model):
        counts = Counter(node.proto.op_type for node in model.graph.nodes.values())
        return {
            "headline": cut(text.headline(model)),
            "inputs": [_told(model, value) for value in model.inputs[:OPERATORS]],
            "outputs": [_told(model, value) for value in model.outputs[:OPERATORS]],
            "opsets": {cut(domain or "ai.onnx"): version for domain, version in list(model.opsets.items())[:OPERATORS]},
            "operators": {cut(name): count for name, count in counts.most_common(OPERATORS)},
            "problems": len(model.diagnostics),
            "edits": len(model.history),
            "unsaved": model.dirty,
        }


def _find(call: ToolCall) -> JSON:
    model, pattern = call.model, call["pattern"] or "*"
    with held(model):
        nodes = [
            node
            for node in model.graph.nodes.values()
            if any(fnmatch.fnmatchcase(name, pattern) for name in (node.proto.name, node.proto.op_type))
        ]
        matches = page(nodes, call.number("offset"), call.number("limit", 100))
        return {**matches, "rows": [_row(model, Node(model.graph, node.id)) for node in matches["rows"]]}


def _node(call: ToolCall) -> JSON:
    model = call.model
    with held(model):
        node = model.node(call["node"])
        return {
            **_row(model, node),
            "domain": cut(node.domain),
            "scope": cut(node.scope),
            "attributes": {cut(name): cut(value) for name, value in list(node.attributes.items())[:OPERATORS]},
            "inputs": [_told(model, value) for value in node.inputs[:OPERATORS]],
            "outputs": [_told(model, value) for value in node.outputs[:OPERATORS]],
            "doc_string": cut(node.doc_string, LONG_TEXT),
            "problems": [_problem(item) for item in model.diagnostics if item.node == node.id][:OPERATORS],
        }


def _value(call: ToolCall) -> JSON:
    model = call.model
    with held(model):
        value = model.value(call["value"])
        producer = value.producer
        readers = [_row(model, node) for node, _ in value.uses[:OPERATORS]]
        return {
            **(_told(model, value) or {}),
            "made_by": _row(model, producer) if producer is not None else None,
            "read_by": readers,
            "readers": len(value.uses),
            "initializer": value.initializer is not None,
        }


def _explain(call: ToolCall) -> JSON:
    model = call.model
    with held(model):
        return {"text": cut(model.explain(model.value(call["value"]), call["axis"]), LONG_TEXT)}


def _problems(call: ToolCall) -> JSON:
    with held(call.model):
        items = [_problem(item) for item in call.model.diagnostics]
    return page(items, call.number("offset"), call.number("limit", 100))


def _history(call: ToolCall) -> JSON:
    history = call.model.history
    with held(call.model):
        steps = zip(history.all_labels, history.statements(), strict=True)
        rows = [{"step": cut(label), "python": cut(python)} for label, python in steps]
        return {**page(rows, call.number("offset"), call.number("limit", 100)), "position": history.position}


def _picture(call: ToolCall) -> JSON:
    with held(call.model):
        drawn = svg.render(call.model, 48)
    return {"svg": drawn}


def _diff(call: ToolCall) -> JSON:
    other = call["other"]
    if other is None:
        with held(call.model):
            rows = [cut(change) for change in call.model.files.save_report()]
        return page(rows, call.number("offset"), call.number("limit", 100))
    if other not in call.models:
        raise RefusedCall(f"no served model is called {cut(other)!r}; there are {', '.join(map(cut, call.models))}")
    lines = str(diff(call.model, call.models[other])).splitlines()
    return page([cut(line) for line in lines], call.number("offset"), call.number("limit", 100))


def _row(model: "Model", node: Any) -> JSON:
    return {"id": node.id, "name": cut(node.name), "op_type": cut(node.op_type)}


def _told(model: "Model", value: Value | None) -> JSON | None:
    if value is None:
        return None
    return {"id": value.id, "name": cut(value.name), "fact": cut(model.fact(value.id))}


def _problem(item: Diagnostic) -> JSON:
    problem: JSON = {"severity": item.severity, "code": item.code, "message": cut(item.message, LONG_TEXT)}
    return {**problem, "node": item.node, "hint": cut(item.hint)}


TOOLS: Sequence[Tool] = (
    Tool("models", "List the models that are served, and what you are allowed to do.", _models, about_model=False),
    Tool("summary", "Inputs, outputs, operators, opsets and number of problems of a model.", _summary),
    Tool(
        "find",
        "List nodes whose name or operator matches a pattern with * and ?, e.g. 'Conv*'; without one, all nodes.",
        _find, {"pattern": ToolParameter("string"), **PAGING},
    ),
    Tool("node", "Tell all about a node: attributes, inputs and outputs with their types and shapes, problems.", _node,
         {"node": ToolParameter("node", required=True)}),
    Tool("value", "Tell the type and shape of a value, what makes it and what reads it.", _value,
         {"value": ToolParameter("value", required=True)}),
    Tool("explain", "Explain why a value has the shape that it has, or why it is not known.", _explain,
         {"value": ToolParameter("value", required=True), "axis": ToolParameter("integer", "one dim of it")}),
    Tool("check", "List what is wrong with a model: shapes that do not fit, unknown operators, missing inputs.",
         _problems, PAGING),
    Tool("history", "List the edits, yours and the user's, each with the Python that makes it.", _history, PAGING),
    Tool("picture", "Draw the model as SVG.", _picture, most=PICTURE),
    Tool("diff", "List what differs from the file, or from another served model.", _diff,
         {"other": ToolParameter("string", "name of another served model"), **PAGING}),
)  # fmt: skip
