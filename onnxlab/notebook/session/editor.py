"""The edits of one view: each checked against the version that the view showed, done, and put into Python."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onnxlab import dtypes
from onnxlab.errors import EditError, NameLookupError
from onnxlab.graph.edit.script import Recorded
from onnxlab.graph.edit.statements import value_handle
from onnxlab.graph.handles.handles import Node, Value
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.notebook.edits import cut_preview, edit_requests
from onnxlab.notebook.panels import rewrites
from onnxlab.notebook.protocol import messages
from onnxlab.notebook.protocol.messages import JSON, ProtocolError, graph_version, wire_version
from onnxlab.notebook.protocol.uploads import Uploads
from onnxlab.notebook.session import file_offers
from onnxlab.notebook.session.hub import Hub

if TYPE_CHECKING:
    from onnxlab.model import Model

MODEL_FIELDS = ("ir_version", "producer_name", "producer_version", "domain", "model_version")

EXACT = {dtypes.parse(name) for name in ("bool", "string", "complex64", "complex128")} | {
    dtypes.parse(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
}
"""Element types whose elements `item()` returns exactly."""

MOST_TYPED = 4096
"""Elements of the largest tensor that is edited in a grid."""

LARGEST = 1 << 28
"""Bytes of the largest part of a model that is sent to the page as a file."""


class Editor:
    """Makes the edits that a view requests.

    Args:
        origin: the id of the view, as the origin of its edits.
        uploads: the files that the page sent.
    """

    def __init__(self, model: "Model", hub: Hub, origin: str, uploads: Uploads | None = None) -> None:
        self._model = model
        self._graph = model.graph
        self._hub = hub
        self._origin = origin
        self.uploads = Uploads() if uploads is None else uploads

    # -- edits ------------------------------------------------------------------------------------------------

    def edit(self, edit: str, on: str, subject: list[int], parameters: Mapping[str, Any], version: int | None) -> JSON:
        """Make an edit of the table."""
        request = edit_requests.parse(edit, on, subject, parameters)
        with self._editing(version, subject):
            before = self._model.version
            edit_requests.perform(self._model, request, self.uploads, self._origin)
            return self._edited(self._model.history.last_statement() if self._model.version != before else "")

    def upload(self, file: str, name: str, offset: int, data: str) -> JSON:
        """Receive a piece of a file that a later edit uses."""
        return {"bytes": self.uploads.receive(file, name, offset, data)}

    def file(self, file: str) -> JSON:
        """The kind of a file that was sent, and the ways to use it."""
        upload = self.uploads.get(file)
        with self._graph.lock:
            return file_offers.offer(self._model, upload)

    def apply_weights(self, file: str, version: int | None) -> JSON:
        """Replace initializers by the tensors of a file that have their names, as one step."""
        upload = self.uploads.get(file)
        label = f"load weights from {upload.name}"
        with self._editing(version, None), self._graph.edit(label, self._origin) as edit:
            report = file_offers.matched(self._model, upload, dry_run=False)
            if not report.replaced:
                raise EditError(f"no initializer of this model has the name of a tensor of {upload.name}")
            line = file_offers.statement(upload, report)
            edit.sum_up(Recorded("", line))
        return self._edited(line)

    def rewrite(
        self, level: str, rules: list[str], microsoft: bool, at: int | None, protect: list[str] | None,
        at_most: int | None, version: int | None,
    ) -> JSON:  # fmt: skip
        """Optimize to a level, quantize to a form, or apply rules alone, at a node or all; names are protected."""
        with self._editing(version, None if at is None else [at]):
            names, words = protect or (), f", protect={protect!r}" if protect else ""
            form = rewrites.form_of(level, rules)
            if at is not None and (form is not None or not rules):
                raise ProtocolError("invalid", "Only rules are applied at one node.", "Leave the node out.")
            if form is not None:
                inputs = rewrites.calibration(self._model, form)
                share = None if at_most is None else at_most / 1000
                receipt = self._model.quantize(form, calibrate=inputs, at_most=share, protect=names)
                measured = "" if inputs is None else ", calibrate=[model.runner.last_inputs()]"
                measured += "" if share is None else f", at_most={share!r}"
                call = f"quantize({form!r}{measured}{words})"
            elif rules:
                nodes = None if at is None else [Node(self._graph, self._node(at).id)]
                call = f"rewrite({rules!r}{'' if nodes is None else f', nodes=[{nodes[0].label!r}]'}{words})"
                receipt = self._model.rewrite(rewrites.asked_rules(rules), nodes=nodes, protect=names)
            else:
                receipt = self._model.optimize(rewrites.level_of(level), microsoft=microsoft, protect=names)
                call = f"optimize({level!r}{', microsoft=True' if microsoft else ''}{words})"
            edited = self._edited(f"model.{call}" if receipt.applied else "")
            return {**edited, **rewrites.on_wire(receipt)}

    # -- steps --------------------------------------------------------------------------------------------------

    def undo(self, version: int | None) -> JSON:
        """Undo the last step."""
        with self._editing(version, None):
            if self._graph.undo(origin=self._origin) is None:
                raise ProtocolError("nothing", "There is nothing to undo.")
            return self._edited("model.undo()")

    def redo(self, version: int | None) -> JSON:
        """Redo the step undone last."""
        with self._editing(version, None):
            if self._graph.redo(origin=self._origin) is None:
                raise ProtocolError("nothing", "There is nothing to redo.")
            return self._edited("model.redo()")

    def go_to(self, position: int, version: int | None) -> JSON:
        """Undo or redo step by step until the history stands at a position."""
        history = self._model.history
        with self._editing(version, None):
            if position > len(history):
                raise ProtocolError("malformed", f"go_to: the history has {len(history)} steps, got {position}")
            self._graph.travel(position, origin=self._origin)
            return self._edited("")

    # -- documentation and elements, for forms --------------------------------------------------------------------

    def about(self, node: int | None, value: int | None) -> JSON:
        """Documentation string and metadata of a node or a value; of the model, and its fields, without either."""
        with self._graph.lock:
            if node is not None:
                bearer: Any = Node(self._graph, self._node(node).id)
            else:
                bearer = self._model if value is None else Value(self._graph, self._value(value).id)
            payload: JSON = {"doc_string": bearer.doc_string, "metadata": dict(bearer.metadata)}
            if bearer is self._model:
                proto = self._graph.proto
                payload["graph_doc_string"] = self._model.graph_doc_string
                payload["fields"] = {name: getattr(proto, name) for name in MODEL_FIELDS}
            return payload

    def elements(self, node: int | None, name: str | None, value: int | None) -> JSON:
        """All elements of a small tensor: of an initializer, or of an attribute of a node."""
        with self._graph.lock:
            if node is not None:
                array = Node(self._graph, self._node(node).id).attributes.get(name or "")
            else:
                array = self._graph.array(self._value(value or 0).id)
            if not isinstance(array, np.ndarray):
                raise EditError("this value stores no tensor: choose an initializer or a Constant node")
            if array.size > MOST_TYPED:
                hint = "Assign an array in a cell, or load it from a file."
                raise ProtocolError("too_large", f"{array.size:,} elements are more than can be typed by hand", hint)
            return {
                "dtype": dtypes.name(dtypes.from_numpy(array.dtype)),
                "shape": list(array.shape),
                "numbers": [_element(item) for item in array.reshape(-1)],
            }

    # -- parts of the model ---------------------------------------------------------------------------------------

    def copies(self, nodes: list[int]) -> JSON:
        """The corresponding nodes in each verified copy of a block; the block of a single node is a group around it."""
        with self._graph.lock:
            chosen = self._some(nodes, "copies")
            block = self._block(chosen) if len(chosen) == 1 else chosen
            blocks = self._model.structure.copies([Node(self._graph, node) for node in block])
            return {"copies": [[copy[block.index(node)].id for node in chosen] for copy in blocks]}

    def _block(self, nodes: list[int]) -> list[int]:
        """The innermost group around a node that has copies; the node alone where no group has any."""
        hierarchy = self._hub.scene.hierarchy
        for group in _chain(hierarchy, hierarchy.group_of.get(nodes[0], 0)):
            block = [node for node, around in hierarchy.group_of.items() if group in _chain(hierarchy, around)]
            if 1 < len(block) < len(self._graph.nodes):
                try:
                    if self._model.structure.copies([Node(self._graph, node) for node in block]):
                        return block
                except EditError:
                    pass  # nodes that are not connected cannot be a block with copies
        return nodes

    def extract(self, nodes: list[int]) -> tuple[JSON, list[bytes]]:
        """Nodes as a model of their own, as a file for the page to download; without nodes, the whole model."""
        with self._graph.lock:
            stem = Path(self._model.name or "model").stem
            if not nodes:
                return _handed_out(self._model, f"{stem}.onnx", "model")
            outputs, inputs = cut_preview.borders(self._graph, self._some(nodes, "extract"))
            part = self._model.extract(outputs, inputs)
            lines = [
                ", ".join(value_handle(self._graph.names, self._value(value.id)) for value in side)
                for side in (outputs, inputs)
            ]
        return _handed_out(
            part, f"{self._model.name or 'model'}_part.onnx", f"model.extract([{lines[0]}], [{lines[1]}])"
        )

    def part(self, nodes: list[int]) -> "Model":
        """Nodes as a model of their own."""
        with self._graph.lock:
            return self._model.extract(*cut_preview.borders(self._graph, self._some(nodes, "open")))

    # -- shared ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _editing(self, version: int | None, targets: list[int] | None) -> Iterator[None]:
        """Hold the model's lock; refuse an edit whose targets were changed elsewhere since the view's version."""
        with self._graph.lock:
            self._hub.refuse_conflict(graph_version(version), targets, self._origin)
            yield

    def _some(self, nodes: list[int], method: str) -> list[int]:
        """Ids of existing nodes, each once. Raises ProtocolError for an empty list."""
        if not nodes:
            raise ProtocolError("malformed", f"{method}: the list of nodes is empty; name one at least")
        return list(dict.fromkeys(self._node(node).id for node in nodes))

    def _node(self, ident: int) -> NodeRecord:
        record = self._graph.nodes.get(ident)
        if record is None:
            raise NameLookupError(f"node {ident} is not in the model any more")
        return record

    def _value(self, ident: int) -> ValueRecord:
        record = self._graph.values.get(ident)
        if record is None:
            raise NameLookupError(f"value {ident} is not in the model any more")
        return record

    def _edited(self, line: str) -> JSON:
        return {"version": wire_version(self._model.version), "python": line}


def _handed_out(model: "Model", name: str, code: str) -> tuple[JSON, list[bytes]]:
    """A model as a file, and the Python for it; raises ProtocolError for a file that is too large for a page."""
    data = model.to_bytes()
    if len(data) > LARGEST:
        raise ProtocolError(
            "too_large", f"the file has {len(data) >> 20} MB", f"Save it in a cell: {code}.save({name!r})"
        )
    return {"name": name, "python": f"{code}.save({name!r})"}, [data]


def _element(item: Any) -> Any:
    """An element in JSON's form, with the digits of its type, as `typed_elements.element` reads it."""
    if isinstance(item, np.generic) and dtypes.from_numpy(item.dtype) not in EXACT:
        return messages.number(float(str(item)))
    item = item.item() if isinstance(item, np.generic) else item
    if isinstance(item, bytes):
        return item.decode("utf-8", "backslashreplace")
    if isinstance(item, bool | int | float | str):
        return messages.number(item)
    return str(item) if isinstance(item, complex) else messages.number(float(item))


def _chain(hierarchy: Hierarchy, group: int) -> list[int]:
    """A group and those around it, innermost first."""
    groups = []
    while group:
        groups.append(group)
        group = hierarchy.groups[group].parent
    return groups
