"""Everything that a page may ask: each method with its parameters, its answer, and what is known of it."""

from collections.abc import Mapping

from onnxlab.notebook.protocol import answers
from onnxlab.notebook.protocol.records import Snapshot, TensorPart
from onnxlab.notebook.protocol.schema import FLAG, ID, IDS, TEXT, VERSION, Method, Parameter, optional

_NODE = optional(int, "a node id, or null")
_VALUE = optional(int, "a value id, or null")
_NUMBER = optional(int, "a number from 0")
_AXIS = optional(int, "an axis from 0")

METHODS: Mapping[str, Method] = {
    "hello": Method({}, answers.Hello, repeatable=True, recorded=""),
    "probe": Method({"ok": FLAG}, answers.Nothing, "Whether binary buffers arrive.", repeatable=True),
    "snapshot": Method({}, Snapshot, repeatable=True, recorded=""),
    "inspect": Method({"node": ID}, answers.NodeInfo, repeatable=True, recorded="node"),
    "doc": Method({"node": ID}, answers.Documentation, repeatable=True, recorded="node"),
    "value": Method({"value": ID}, answers.ValueInfo, repeatable=True, recorded="value"),
    "explain": Method(
        {"value": ID, "axis": optional(int, "an axis from 0, or null for all")}, answers.Explanation, repeatable=True
    ),
    "edit": Method(
        {
            "edit": TEXT, "on": TEXT, "subject": Parameter(list[int], "a list of ids"),
            "parameters": Parameter(dict[str, object], "an object"), "version": VERSION,
        },
        answers.Edited, "A row of the table of edits; `Edits` has their parameters.", edits=True,
    ),
    "undo": Method({"version": VERSION}, answers.Edited, edits=True),
    "redo": Method({"version": VERSION}, answers.Edited, edits=True),
    "go_to": Method({"position": ID, "version": VERSION}, answers.Edited, edits=True),
    "history": Method({}, answers.Steps, repeatable=True),
    "overlay": Method(
        {"by": optional(str, "the name of a measure, or null for none")}, answers.Nothing, long=True
    ),
    "operators": Method({}, answers.Operators, repeatable=True),
    "operator_doc": Method({"op": TEXT}, answers.Documentation, repeatable=True),
    "targets": Method({"value": ID, "nodes": IDS}, answers.Targets, repeatable=True),
    "about": Method(
        {"node": _NODE, "value": _VALUE}, answers.About,
        "What a node, a value, or without either the model says about itself.", repeatable=True, recorded="",
    ),
    "elements": Method(
        {"node": _NODE, "name": optional(str, "the name of an attribute"), "value": _VALUE}, answers.Elements,
        "All elements of a small tensor: of an initializer, or of a node's attribute.", repeatable=True,
    ),
    "upload": Method(
        {"file": TEXT, "name": TEXT, "offset": ID, "data": TEXT}, answers.Uploaded,
        "A piece of a file, base64; an edit that takes a file names it by its id.",
    ),
    "copies": Method(
        {"nodes": IDS}, answers.Copies, "The corresponding nodes in every copy of the block.", repeatable=True
    ),
    "extract": Method(
        {"nodes": IDS}, answers.Extracted, "Nodes as a model of their own; its bytes come as a buffer."
    ),
    "unsaved": Method({}, answers.Unsaved, "What saving would change in the file.", repeatable=True),
    "save": Method(
        {"copy": optional(bool, "true or false"), "version": VERSION}, answers.Saved,
        "Replaces the file, or writes a copy beside it, which the model belongs to from then on.",
    ),
    "recover": Method({}, answers.Recovered),
    "discard": Method({}, answers.Nothing),
    "run": Method(
        {
            "nodes": optional(list[int], "a list of node ids, or null for all"),
            "seed": optional(int, "an integer from 0"),
            "inputs": optional(dict[str, answers.GivenInput], "an object that says how each input is made"),
            "sizes": optional(dict[str, int], "an object of sizes by the names of dims"),
            "deadline": optional(int, "seconds, 0 for no end, or null for those of the view"),
        },
        answers.RunResult, long=True,
    ),
    "tensor": Method(
        {
            "value": ID, "rows": _AXIS, "columns": _AXIS, "at": optional(list[int], "a list of indices"),
            "top": _NUMBER, "left": _NUMBER, "height": _NUMBER, "width": _NUMBER, "pixels": _NUMBER,
            "picture": optional(str, "heat or image, or null for none"),
        },
        TensorPart, repeatable=True,
    ),
    "costs": Method({}, answers.Costs, repeatable=True, recorded=""),
    "blocks": Method({}, answers.Blocks, repeatable=True, recorded=""),
    "pin": Method({"value": ID, "on": FLAG}, answers.Pinned, "A value stays what it was in the last run."),
    "stop": Method({"run": ID}, answers.Stopped),
}  # fmt: skip
