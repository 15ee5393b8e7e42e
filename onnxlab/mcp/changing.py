"""Tools that change, run and save a model; each change is one step of its history, which the user can undo."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from onnxlab.analysis.statistics import statistics
from onnxlab.graph.edits import EDITS
from onnxlab.limits import Limits
from onnxlab.mcp.answers import JSON, LONG_TEXT, RefusedCall, cut, page
from onnxlab.mcp.call import Tool, ToolCall, ToolParameter, held
from onnxlab.mcp.looking import PAGING
from onnxlab.notebook.edits import edit_requests
from onnxlab.notebook.edits.kinds import KINDS
from onnxlab.notebook.protocol.messages import number
from onnxlab.notebook.protocol.uploads import Uploads

if TYPE_CHECKING:
    from onnxlab.model import Commit, Model

ORIGIN = "assistant"
"""Signs the edits."""
DEADLINE = 60.0
"""Seconds that a run may take."""
FILES = {"insert_model"}
"""Edits that need a file, which an assistant has no way to give."""
REDUNDANT = edit_requests.NOT_BY_HAND | FILES


def _edits(call: ToolCall) -> JSON:
    rows = [
        {
            "edit": name,
            "what": spec.summary,
            "on": list(spec.subjects),
            "parameters": {
                key: KINDS[parameter.kind].words + ("" if parameter.required else " (optional)")
                for key, parameter in spec.parameters.items()
            },
        }
        for name, spec in EDITS.items()
        if name not in REDUNDANT
    ]
    return page(rows, call.number("offset"), call.number("limit", 100))


def _change(call: ToolCall) -> JSON:
    name, on, subject = call["edit"], call["on"], call["subject"] or []
    if name in FILES:
        raise RefusedCall(f"{name} needs a file, which only the user can give")
    model = call.model
    with held(model):
        ids = [_ident(model, on, key) for key in subject]
        request = edit_requests.parse(name, on, ids, _by_id(model, name, call["parameters"] or {}))

        def make() -> None:
            with model.graph.edit("", ORIGIN) as step:
                edit_requests.perform(model, request, Uploads(), ORIGIN)
                step.label = f"{step.label} (assistant)"

        return _made(model, make)


def _ident(model: "Model", on: str, key: Any) -> int:
    """The id of a node or value that is named by its name or its id."""
    if not isinstance(key, str | int) or isinstance(key, bool):
        raise RefusedCall(f"a subject is named by its name or id, got {cut(repr(key), 60)}")
    if on == "value":
        return model.value(key).id
    return model.node(cast(Any, key)).id  # by its id or its name


def _by_id(model: "Model", name: str, parameters: JSON) -> JSON:
    """Parameters with ids in the place of names, where they are of nodes and values."""
    spec = EDITS.get(name)
    if spec is None:
        return parameters
    changed = dict(parameters)
    for key, payload in parameters.items():
        kind = spec.parameters[key].kind if key in spec.parameters else ""
        if kind in ("value", "value?") and isinstance(payload, str):
            changed[key] = model.value(payload).id
        elif kind in ("values", "nodes") and isinstance(payload, list):
            of = "value" if kind == "values" else "node"
            changed[key] = [_ident(model, of, entry) if isinstance(entry, str) else entry for entry in payload]
    return changed


def _undo(call: ToolCall) -> JSON:
    with held(call.model):
        return _made(call.model, lambda: call.model.graph.undo(origin=ORIGIN), "there is nothing to undo")


def _redo(call: ToolCall) -> JSON:
    with held(call.model):
        return _made(call.model, lambda: call.model.graph.redo(origin=ORIGIN), "there is nothing to redo")


def _made(model: "Model", make: Callable[[], object], nothing: str = "that changes nothing") -> JSON:
    """Make a change, and tell what it did to types and shapes."""
    commits: list[Commit] = []
    unsubscribe = model.subscribe(commits.append)
    try:
        make()
    finally:
        unsubscribe()
    if not commits:
        raise RefusedCall(nothing)
    commit = commits[-1]
    facts = [
        {"value": cut(name), "before": cut(before), "after": cut(after)}
        for name, (before, after) in list(commit.facts.items())[:1000]
    ]
    refusal = commit.first_error
    return {
        **page(facts, 0),
        "step": cut(commit.label),
        "python": cut(model.history.last_statement()) if commit.kind == "edit" else f"model.{commit.kind}()",
        "facts_changed": len(commit.facts),
        "refused_by": cut(refusal.message, LONG_TEXT) if refusal else None,
        "problems": len(model.diagnostics),
    }


def _run(call: ToolCall) -> JSON:
    """Run on random inputs; nothing but statistics leaves the process."""
    model, names = call.model, call["outputs"] or []
    if not all(isinstance(name, str) for name in names):
        raise RefusedCall(f"outputs is a list of names of values, got {cut(repr(names), 60)}")
    feeds = model.sample_inputs(seed=call.number("seed"))
    arrays = model.run(feeds, names[:100] or None, limits=Limits(deadline=DEADLINE))
    return page([_summarized(name, array) for name, array in arrays.items()], call.number("offset"))


def _summarized(name: str, array: Any) -> JSON:
    summary = statistics(array)
    return {
        "value": cut(name), "dtype": summary.dtype, "shape": list(summary.shape), "min": number(summary.minimum),
        "max": number(summary.maximum), "mean": number(summary.mean), "std": number(summary.std), "nan": summary.nan,
        "inf": summary.inf, "zeros": summary.zeros,
    }  # fmt: skip


def _save(call: ToolCall) -> JSON:
    """Save to the file that the model came from, and nowhere else."""
    model = call.model
    if model.path is None:
        raise RefusedCall("this model came from no file; the user can save it: model.save('model.onnx')")
    with held(model):
        model.save()
    return {"saved": cut(model.path.name)}


TOOLS: Sequence[Tool] = (
    Tool("edits", "List the edits that `change` makes, with their parameters.", _edits, PAGING, about_model=False),
    Tool(
        "change",
        "Make one edit of the list that `edits` gives, as one step that the user sees at once and can undo. "
        "Nodes and values are named by name or id. Tells what it does to types and shapes.",
        _change,
        {
            "edit": ToolParameter("string", "its name, e.g. set_attribute", required=True),
            "on": ToolParameter("string", "what it is made to: model, graph, node, nodes or value", required=True),
            "subject": ToolParameter("array", "names or ids of these; none for model and graph"),
            "parameters": ToolParameter("object", 'of the edit, e.g. {"name": "strides", "value": [2, 2]}'),
        },
        "edit",
    ),
    Tool("undo", "Undo the last step, yours or the user's.", _undo, right="edit"),
    Tool("redo", "Redo the step undone last.", _redo, right="edit"),
    Tool(
        "run",
        "Run the model on random inputs, and give statistics of outputs or of any values.",
        _run,
        {
            "outputs": ToolParameter("array", "names of values; default: the model's outputs"),
            "seed": ToolParameter("integer", "of the random inputs"),
            "offset": PAGING["offset"],
        },
    ),
    Tool("save", "Save the model to the file that it came from.", _save, right="save"),
)
