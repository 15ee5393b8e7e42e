"""A model as one HTML page that needs neither kernel nor network: it folds, searches and inspects.

The page holds the widget's own bundle and, compressed, the answers that a kernel would give. No text of the model is
markup in the page; its content security policy forbids requests to other addresses.
"""

import base64
import gzip
import json
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from onnxlab.errors import LoadError
from onnxlab.formats import kinds, output
from onnxlab.graph.protos.tensors import nbytes
from onnxlab.notebook.panels import attribute_columns
from onnxlab.notebook.protocol.messages import JSON, PROTOCOL, diagnostics, wire_version
from onnxlab.notebook.session.editor import Editor
from onnxlab.notebook.session.hub import MOST_CHECKED, Hub, hub_of
from onnxlab.notebook.widgets.bundle import page_parts
from onnxlab.render import svg

if TYPE_CHECKING:
    from onnxlab.model import Model

INSPECTED = 20_000
"""Nodes of the largest model whose nodes can be inspected in the page; larger ones are only drawn and searched."""
SUMMARIZED, SUMMARIES = 1 << 26, 5_000
"""Bytes and number of initializers that are read for their statistics; further ones are listed without."""
STATIC_BOXES = 120
"""Boxes of the picture that the page shows before its script has run, or where scripts are forbidden."""

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' blob:; worker-src blob:; "
    "style-src 'unsafe-inline'; img-src data: blob:"
)
_STYLE = """
html, body { height: 100%; margin: 0; }
body { font: 14px/1.5 system-ui, sans-serif; background: #fff; color: #15191e; }
figure { margin: 1rem; overflow: auto; }
@media (prefers-color-scheme: dark) { body { background: #16191d; color: #f3f5f7; } }
"""
_START = """
const text = (id) => document.getElementById(id).textContent;
const bytes = Uint8Array.from(atob(text("model")), (letter) => letter.charCodeAt(0));
const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
const address = URL.createObjectURL(new Blob([JSON.parse(text("widget"))], { type: "text/javascript" }));
const [model, widget] = await Promise.all([new Response(plain).json(), import(address)]);
URL.revokeObjectURL(address);
document.querySelector("figure").remove();
widget.default.FUNCTION(document.body, model);
"""


NO_ATTRIBUTES: JSON = {"names": [], "counts": []}


def page(model: "Model", script: str, style: str) -> str:
    """The page.

    Args:
        script, style: the widget's bundle.
    """
    with model.graph.lock:
        recorded = record(hub_of(model))
    return assembled(model.name, svg.render(model, STATIC_BOXES), recorded, (script, style), "offline")


def assembled(title: str, figure: str, recorded: JSON, bundle: tuple[str, str], function: str) -> str:
    """A page that shows recorded answers.

    Args:
        figure: markup that is shown before the script has run.
        bundle: script and style of the widget.
        function: the function of the bundle that gets the page's body and the recorded answers.
    """
    data = json.dumps(recorded, separators=(",", ":")).encode()
    packed = base64.b64encode(gzip.compress(data, 6, mtime=0)).decode("ascii")
    script, style = bundle
    return "\n".join(
        [
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{escape(title)}</title><style>{_STYLE}{style}</style></head><body>",
            f"<figure>{figure}</figure>",
            f'<script type="application/json" id="widget">{_inert(script)}</script>',
            f'<script type="text/plain" id="model">{packed}</script>',
            f'<script type="module">{_START.replace("FUNCTION", function)}</script></body></html>',
        ]
    )


def write(model: "Model", path: "str | PathLike[str]") -> Path:
    """Write the page, with the widget's bundle in it; returns its path. Raises SaveError."""
    output.check(path, kinds.PAGE, [model.path])  # before the page is made, which may take long
    return output.write(path, page(model, *page_parts()).encode(), kinds.PAGE, [model.path])


def record(hub: Hub) -> JSON:
    """Record a kernel's answers, by method: see widgets/src/kernel/offline.ts."""
    model, inspector = hub.model, hub.inspector
    content, buffer = hub.scene.snapshot()
    if len(model.graph.nodes) <= MOST_CHECKED:
        hub.check()
    problems = hub.problems()
    state = {"diagnostics": diagnostics(problems), "version": wire_version(model.version), "seq": 0}
    snapshot = {**content, **state, **hub.state(), "title": model.name, "path": None}
    hello = {"protocol": PROTOCOL, "session": "", "can": {"edit": False, "run": False, "save": False}}
    history = {"undo": None, "redo": None, "length": 0, "position": 0}
    attributes = attribute_columns.names(model.graph) if len(model.graph.nodes) <= INSPECTED else NO_ATTRIBUTES
    inspected = model.graph.nodes if len(model.graph.nodes) <= INSPECTED else {}
    answers: dict[str, JSON] = {
        "hello": {"": hello},
        "snapshot": {"": {**snapshot, "history": history, "dirty": False}},
        "inspect": {str(ident): inspector.node(ident, problems) for ident in inspected},
        "doc": _documents(hub) if inspected else {},
        "value": _values(hub) if inspected else {},
        "about": {"": Editor(model, hub, "").about(None, None)},
        "format": {"": hub.format()},
        "costs": {"": hub.costs()},
        "blocks": {"": hub.blocks()},
        "attribute_names": {"": attributes},
        "attribute_column": {name: attribute_columns.column(model.graph, name) for name in attributes["names"]},
    }
    return {"answers": answers, "buffer": base64.b64encode(buffer).decode("ascii")}


def _documents(hub: Hub) -> JSON:
    """The documentation of every node's operator; for a repeated operator, the id of the node with its answer."""
    first: dict[tuple[str, str], str] = {}
    answers: JSON = {}
    for ident, node in hub.model.graph.nodes.items():
        same = first.setdefault((node.proto.domain, node.proto.op_type), str(ident))
        answers[str(ident)] = same if same != str(ident) else hub.inspector.documentation(ident)
    return answers


def _values(hub: Hub) -> JSON:
    """Answers about all values, with data of initializers up to SUMMARIZED bytes and SUMMARIES initializers."""
    left, count = SUMMARIZED, SUMMARIES
    answers: JSON = {}
    for ident, value in hub.model.graph.values.items():
        size = _size(value.initializer)
        read = 0 <= size <= left and (count > 0 or not size)
        try:
            answers[str(ident)] = hub.inspector.value(ident, read=read)
        except LoadError:  # external data is missing
            answers[str(ident)] = hub.inspector.value(ident, read=False)
        if read and size:
            left, count = left - size, count - 1
    return answers


def _size(stored: object) -> int:
    """Bytes of an initializer, 0 where there is none, -1 where type and shape are not valid."""
    try:
        return nbytes(stored) if isinstance(stored, onnx.TensorProto) else 0
    except LoadError:
        return -1


def _inert(script: str) -> str:
    """A script as a JSON text in which an HTML parser finds no markup."""
    return json.dumps(script).replace("<", "\\u003c")
