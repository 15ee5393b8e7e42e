"""The inspector's view of a node or a value: typed attributes, both ends of every wire, documentation.

Everything is plain JSON and every text of the model is text, never markup.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from onnxlab.analysis.statistics import Statistics, statistics
from onnxlab.errors import Diagnostic, LoadError, NameLookupError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.protos.attributes import AttributeRef, decode, kind_of
from onnxlab.graph.protos.lazy_tensor import LazyTensor
from onnxlab.graph.protos.long_lists import LongList
from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.notebook.panels.json_values import MAX_ITEMS, on_wire, preview, statistics_on_wire
from onnxlab.notebook.panels.operator_docs import documentation, first_sentence
from onnxlab.notebook.panels.scene import op_name
from onnxlab.notebook.protocol import messages
from onnxlab.notebook.protocol.messages import JSON
from onnxlab.schemas import AttributeSchema, FormalParameter, Schema
from onnxlab.shapes.facts import Fact

EDITABLE = frozenset(("int", "float", "string", "ints", "floats", "strings"))
MAX_SUMMARIZED = 1 << 22
"""Elements of the largest initializer whose statistics are computed when it is inspected."""

NotesOf = Callable[[Any], Mapping[str, str]]


def _no_notes(message: Any) -> Mapping[str, str]:
    return {}


class Inspector:
    """Answers questions about the nodes and values of one model.

    Args:
        fact_of: a function that returns the fact of a value, by id.
        hierarchy: the groups, for the path to a node.
        notes_of: a function that returns notes of the file's format on a node or initializer.
    """

    def __init__(
        self, graph: ModelGraph, fact_of: Callable[[int], Fact], hierarchy: Hierarchy, notes_of: NotesOf = _no_notes
    ) -> None:
        self._notes_of = notes_of
        self._graph = graph
        self._fact_of = fact_of
        self._hierarchy = hierarchy

    def node(self, ident: int, diagnostics: Sequence[Diagnostic]) -> JSON:
        """Everything about a node. Raises NameLookupError where no node has this id."""
        node = self._record(ident)
        schema = self._schema(node)
        function = self._function(node)
        doc = schema.doc if schema else function.proto.doc_string if function else ""
        return {
            "id": node.id,
            "name": node.name,
            "label": self._graph.label(node),
            "op_type": node.op_type,
            "domain": node.domain,
            "since_version": schema.since_version if schema else None,
            "path": self._path(node),
            "summary": first_sentence(doc),
            "attributes": self._attributes(node, schema, function),
            "inputs": [self._input(node, slot, schema, function) for slot in range(len(node.inputs))],
            "outputs": [self._output(node, slot, schema, function) for slot in range(len(node.outputs))],
            "bodies": [{"attribute": name, "scope": body} for name, bodies in node.bodies.items() for body in bodies],
            "metadata": {entry.key: entry.value for entry in node.proto.metadata_props},
            "doc_string": node.proto.doc_string,
            "notes": dict(self._notes_of(node.proto)),
            "diagnostics": messages.diagnostics([item for item in diagnostics if item.node == ident]),
        }

    def documentation(self, ident: int) -> JSON:
        """The operator's documentation as text. Raises NameLookupError where there is no such node."""
        node = self._record(ident)
        schema = self._schema(node)
        function = self._function(node)
        if schema:
            text = documentation(schema)
        elif function:
            text = function.proto.doc_string or f"A function of this model with {len(function.node_ids)} nodes."
        else:
            text = f"No documentation: {op_name(node)} is known neither to ONNX nor to this model."
        return {
            "title": op_name(node),
            "text": text,
            "since_version": schema.since_version if schema else None,
            "deprecated": bool(schema and schema.deprecated),
        }

    def value(self, ident: int, summary: Statistics | None = None, read: bool = True) -> JSON:
        """Everything about a value. Raises NameLookupError where no value has this id.

        Args:
            summary: statistics of the array that the value last had, where they are known.
            read: whether the data of an initializer may be read for a preview and statistics.
        """
        value = self._graph.values.get(ident)
        if value is None:
            raise NameLookupError(f"value {ident} is not in the model any more")
        array = self._stored(value) if read else None
        if summary is None and isinstance(array, np.ndarray):
            summary = statistics(array)
        producer = value.producer
        return {
            "id": value.id,
            "name": value.name,
            "label": self._fact(ident),
            "kind": self._kind(value),
            "producer": {**self._endpoint(producer[0]), "slot": producer[1]} if producer else None,
            "uses": self._uses(value),
            "notes": {
                title: text for message in (value.info, value.tensor) if message for title, text in self._notes(message)
            },
            "initializer": None if array is None else preview(array),
            "statistics": statistics_on_wire(value, summary) if summary else None,
        }

    def _notes(self, message: Any) -> list[tuple[str, str]]:
        return list(self._notes_of(message).items())

    def _stored(self, value: ValueRecord) -> "np.ndarray[Any, Any] | LazyTensor | None":
        """The data of an initializer: an array where it is small enough for statistics, else a LazyTensor."""
        stored = value.initializer
        if isinstance(stored, onnx.TensorProto):
            lazy = LazyTensor(stored, self._graph.base_dir)
            if lazy.size > MAX_SUMMARIZED:
                return lazy
        return self._graph.array(value.id)

    # -- records ------------------------------------------------------------------------------------------

    def _record(self, ident: int) -> NodeRecord:
        node = self._graph.nodes.get(ident)
        if node is None:
            raise NameLookupError(f"node {ident} is not in the model any more")
        return node

    def _function(self, node: NodeRecord) -> Scope | None:
        scope = self._graph.index.functions.get(function_key(node.proto))
        return self._graph.scopes[scope] if scope else None

    def _schema(self, node: NodeRecord) -> Schema | None:
        return None if self._function(node) else self._graph.schema(node)

    def _path(self, node: NodeRecord) -> str:
        group = self._hierarchy.group_of.get(node.id, 0)
        parts = [self._graph.scope_path(self._graph.scopes[node.scope]), self._hierarchy.path(group)]
        return "/".join(part for part in parts if part)

    def _fact(self, value: int) -> str:
        return str(self._fact_of(value))

    def _endpoint(self, ident: int) -> JSON:
        node = self._graph.nodes[ident]
        return {"id": ident, "label": self._graph.label(node), "op": op_name(node)}

    def _uses(self, value: ValueRecord) -> list[JSON]:
        nodes = self._graph.nodes
        uses = sorted(value.uses, key=lambda use: (nodes[use[0]].scope, nodes[use[0]].label, use[1]))
        return [{**self._endpoint(node), "slot": slot} for node, slot in uses]

    def _kind(self, value: ValueRecord) -> str:
        if value.initializer is not None:
            return "initializer"
        if value.is_input:
            return "input" if value.scope == self._graph.main.id else "formal input"
        if not value.producers:
            return "undefined"
        return "output" if value.is_output else "intermediate"

    # -- wires --------------------------------------------------------------------------------------------

    def _input(self, node: NodeRecord, slot: int, schema: Schema | None, function: Scope | None) -> JSON:
        value = self._graph.values.get(node.inputs[slot])
        row: JSON = {
            "slot": slot,
            "formal": _formal_name(schema.input(slot) if schema else None, function and function.inputs, self, slot),
            "value": 0,
            "name": "",
            "label": "",
            "initializer": False,
            "producer": None,
        }
        if value is not None:
            producer = value.producer
            row.update(
                value=value.id,
                name=value.name,
                label=self._fact(value.id),
                initializer=value.initializer is not None,
                producer=self._endpoint(producer[0]) if producer else None,
            )
        return row

    def _output(self, node: NodeRecord, slot: int, schema: Schema | None, function: Scope | None) -> JSON:
        value = self._graph.values.get(node.outputs[slot])
        row: JSON = {
            "slot": slot,
            "formal": _formal_name(schema.output(slot) if schema else None, function and function.outputs, self, slot),
            "value": 0,
            "name": "",
            "label": "",
            "uses": [],
        }
        if value is not None:
            row.update(value=value.id, name=value.name, label=self._fact(value.id), uses=self._uses(value))
        return row

    # -- attributes ---------------------------------------------------------------------------------------

    def _attributes(self, node: NodeRecord, schema: Schema | None, function: Scope | None) -> list[JSON]:
        """The attributes of the schema in its order, set or not, then other attributes that the node sets."""
        present = {attribute.name: attribute for attribute in node.proto.attribute}
        known: dict[str, AttributeSchema] = dict(schema.attributes) if schema else {}
        if function:
            known = _function_attributes(function.proto, present)
        names = [*known, *(name for name in present if name not in known)]
        return [attribute_on_wire(name, present.get(name), known.get(name)) for name in names]


def _formal_name(formal: FormalParameter | None, values: Any, inspector: Inspector, slot: int) -> str:
    if formal is not None:
        return formal.name
    if values and slot < len(values):
        return inspector._graph.values[values[slot]].name
    return ""


def _function_attributes(
    proto: onnx.FunctionProto, present: Mapping[str, onnx.AttributeProto]
) -> dict[str, AttributeSchema]:
    """The attributes that a function takes; only those with a default or set by the call have a type."""
    known = {}
    for name in proto.attribute:
        kind = kind_of(present[name]) if name in present else "undefined"
        known[name] = AttributeSchema(name, kind, required=True)
    for attribute in proto.attribute_proto:
        known[attribute.name] = AttributeSchema(attribute.name, kind_of(attribute), default=decode(attribute))
    return known


def attribute_on_wire(name: str, proto: onnx.AttributeProto | None, spec: AttributeSchema | None) -> JSON:
    """One attribute: the value that the node sets, and the schema's default and documentation."""
    kind = kind_of(proto) if proto is not None else spec.type if spec else "undefined"
    value = _decode(proto) if proto is not None else spec.default if spec else None
    reference = value.name if isinstance(value, AttributeRef) else None
    shown = None if reference else on_wire(value)
    is_whole = not (isinstance(value, bytes) or _is_long(value))
    return {
        "name": name,
        "type": kind,
        "value": shown,
        "set": proto is not None,
        "required": bool(spec and spec.required),
        "default": on_wire(spec.default) if spec else None,
        "doc": spec.doc if spec else "",
        "choices": list(spec.choices) if spec and spec.choices else None,
        "editable": kind in EDITABLE and reference is None and is_whole,
        "reference": reference,
    }


def _decode(attribute: onnx.AttributeProto) -> Any:
    """The value of an attribute; a broken tensor as its message."""
    try:
        return decode(attribute)
    except LoadError:
        return attribute.t if attribute.HasField("t") else list(attribute.tensors)


def _is_long(value: Any) -> bool:
    if isinstance(value, LongList):
        return True
    if isinstance(value, list):
        return len(value) > MAX_ITEMS or any(isinstance(item, bytes) for item in value)
    return False
