"""The replacement of a match: nodes and constants are made, checked, and put there."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper

from onnxlab import dtypes, schemas
from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertNode, RemoveNode
from onnxlab.graph.edit.merging import adopt_opsets
from onnxlab.graph.edits.opsets import needs_one_shape
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.query.patterns.syntax_tree import Argument, Literal, Name, NodeOutput, NodePattern, Number, Rest
from onnxlab.schemas import Schema
from onnxlab.shapes import Fact
from onnxlab.transforms.metadata_transfer import joined
from onnxlab.transforms.patterns.rule_match import Match
from onnxlab.transforms.rewriting import Array, Rewriting


def put(
    rewriting: Rewriting, match: Match, replacement: NodePattern | Name, computed: Mapping[str, Any]
) -> tuple[list[NodeRecord], str]:
    """Put a replacement in the place of a match; nothing is changed where that cannot be.

    Returns:
        The nodes that were inserted or read other values now; and why nothing was changed, "" where it was.
    """
    if isinstance(replacement, Name):
        return _bypass(rewriting, match, replacement)
    why = _unavailable(rewriting, match, replacement)
    if why:
        return [], why
    before = rewriting.fact(match.root.outputs[0])
    try:
        with rewriting.graph.edit():
            nodes = _Builder(rewriting, match, computed).put(replacement)
            why = next(filter(None, (_broadcast_problem(rewriting, node) for node in nodes)), "")
            why = why or _differs(before, rewriting.inferred(nodes[-1]))
            if why:
                raise EditError(why)
    except EditError as error:
        return [], str(error)
    return nodes, ""


def _bypass(rewriting: Rewriting, match: Match, name: Name) -> tuple[list[NodeRecord], str]:
    source, graph = match.values.get(name.name), rewriting.graph
    if not isinstance(source, ValueRecord):
        return [], f"{name.name} is absent"
    output = graph.values[match.root.outputs[0]]
    readers = list(dict.fromkeys(node for node, _ in output.uses))
    if not rewriting.bypass(match.root, source):
        return [], f"an output of the graph cannot be {source.name}"
    calls = zip(match.nodes[1:], match.pattern.calls()[1:], strict=True)
    for node in [node for node, call in calls if not call.stays]:
        rewriting.remove(node, rewriting.heir(source))
    return [graph.nodes[ident] for ident in readers if ident in graph.nodes], ""


def _unavailable(rewriting: Rewriting, match: Match, replacement: NodePattern) -> str:
    """The reason why the model cannot have the operators of a replacement, "" where it can."""
    graph = rewriting.graph
    scope = graph.scopes[match.root.scope]
    for call in replacement.calls():
        version = graph.opset_version(call.domain, scope)
        allowed = {"", *rewriting.options.domains, *(node.domain for node in match.nodes)}
        if call.domain not in allowed:
            return f"operators of {call.domain} were not asked for"
        version = version or (1 if call.domain else 0)
        schema = schemas.find(call.domain, call.op_type, version or 0)
        if not call.domain and (schema is None or schema.deprecated or _is_foreign(rewriting, schema, scope)):
            return f"opset {version} has no {call.op_type}; convert the model to a newer one"
        if schema is not None and (
            sum(not isinstance(argument, Rest) for argument in call.inputs) > schema.max_input
            or any(name not in schema.attributes for name, _ in call.attributes)
        ):
            return f"{call.op_type} of opset {version} has other inputs and attributes"
    return ""


def _is_foreign(rewriting: Rewriting, schema: Schema, scope: Scope) -> bool:
    """Whether ONNX's domain has an operator in ONNX Runtime alone, as LayerNormalization before opset 17.

    A replacement may have such an operator where operators of ONNX Runtime are allowed, but not in a function, where
    ONNX Runtime crashes.
    """
    if not schema.runtime:
        return False
    return "com.microsoft" not in rewriting.options.domains or rewriting.graph.root(scope).is_function


def _broadcast_problem(rewriting: Rewriting, node: NodeRecord) -> str:
    """The reason why a new node cannot stand in an opset in which its operator does not broadcast, "" where it can."""
    version = rewriting.graph.opset_version("", rewriting.graph.scopes[node.scope]) or 0
    if node.domain or not needs_one_shape(node.proto, version):
        return ""
    shapes = [rewriting.shape(vid) for vid in node.inputs if vid]
    if len(shapes) == 1 or (shapes[0] is not None and None not in shapes[0] and len(set(shapes)) == 1):
        return ""
    known = ", ".join("unknown" if shape is None else f"[{', '.join(map(str, shape))}]" for shape in shapes)
    return f"{node.op_type} of opset {version} does not broadcast {known}; convert the model to opset 8 or newer"


def _differs(before: Fact, after: Fact | None) -> str:
    """The difference in type or shape between the replacement's value and the former one, "" where there is none."""
    if after is None:
        return ""
    now_type, now = getattr(after, "elem_type", 0), after.shape
    elem_type, shape = getattr(before, "elem_type", 0), before.shape
    if elem_type and now_type and elem_type != now_type:
        return f"it would make {dtypes.name(now_type)}, not {dtypes.name(elem_type)}"
    if (
        shape is not None
        and now is not None
        and (
            len(shape) != len(now)
            or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(shape, now, strict=True))
        )
    ):
        return f"it would have the shape [{', '.join(map(str, now))}], not [{', '.join(map(str, shape))}]"
    return ""


class _Builder:
    """The nodes of one replacement."""

    def __init__(self, rewriting: Rewriting, match: Match, computed: Mapping[str, Any]) -> None:
        self._rewriting = rewriting
        self._graph = rewriting.graph
        self._match = match
        self._computed = computed
        self._label = rewriting.place(match.root)
        self._protos: list[onnx.NodeProto] = []
        self._constants: dict[str, str] = {}
        self._named: dict[str, str] = {}

    def put(self, replacement: NodePattern) -> list[NodeRecord]:
        """Insert the nodes of the replacement, and remove those that they replace."""
        match, graph = self._match, self._graph
        root = match.root
        scope = graph.scopes[root.scope]
        outputs = list(root.proto.output)
        while len(outputs) > 1 and not self._is_read(root, len(outputs) - 1):
            outputs.pop()
        last = self._node(replacement, outputs)
        _adopt(last, match)
        domains = {call.domain for call in replacement.calls() if call.domain}
        imports = [helper.make_opsetid(domain, 1) for domain in domains]
        adopt_opsets(graph, imports, self._protos, scope, "the replacement")
        position = scope.position(root)
        graph.apply(RemoveNode(root.id))
        inserted = []
        for number, proto in enumerate(self._protos):
            graph.apply(InsertNode(scope.id, position + number, proto))
            inserted.append(graph.nodes[scope.node_ids[position + number]])
        calls = zip(match.nodes[1:], match.pattern.calls()[1:], strict=True)
        for node in [node for node, call in calls if not call.stays]:
            graph.apply(RemoveNode(node.id))
        return inserted

    def _is_read(self, node: NodeRecord, slot: int) -> bool:
        vid = node.outputs[slot] if slot < len(node.outputs) else 0
        return bool(vid) and bool(self._graph.values[vid].uses or self._graph.values[vid].formal_outputs)

    def _node(self, call: NodePattern, outputs: list[str]) -> onnx.NodeProto:
        node = onnx.NodeProto(op_type=call.op_type, domain=call.domain, output=outputs)
        for argument in call.inputs:
            node.input.extend(self._input(argument))
        while node.input and not node.input[-1]:
            del node.input[-1]
        specified = {name for name, _ in call.attributes}
        for old in self._match.nodes:
            if old.op_type == call.op_type and old.domain == call.domain:
                node.attribute.extend(attribute for attribute in old.proto.attribute if attribute.name not in specified)
                break
        for name, setting in call.attributes:
            value = setting.value if isinstance(setting, Literal) else self._attribute(setting.name)
            if value is not None:
                node.attribute.append(helper.make_attribute(name, value))
        self._protos.append(node)
        return node

    def _attribute(self, name: str) -> Any:
        if name in self._computed:
            return self._computed[name]
        if name in self._match.attributes:
            return self._match.attributes[name]
        known = self._match.array(name) if name in self._match.values else None
        if known is None:
            raise EditError(f"nothing is called {name}, which the replacement has as an attribute")
        return known.reshape(-1).tolist() if known.ndim else known.item()

    def _input(self, argument: Argument) -> list[str]:
        if isinstance(argument, NodePattern):
            if argument.name and argument.name in self._named:
                return [self._named[argument.name]]
            name = self._rewriting.fresh(f"{self._label}_{argument.name or argument.op_type}")
            self._node(argument, [""] * argument.output + [name])
            if argument.name:
                self._named[argument.name] = name
            return [name]
        if isinstance(argument, Rest):
            return [value.name if value is not None else "" for value in self._match.values[argument.name]]
        if isinstance(argument, Number):
            return [self._number(argument)]
        if isinstance(argument, NodeOutput):
            return [self._output(argument)]
        return [self._value(argument.name)]

    def _output(self, output: NodeOutput) -> str:
        """Another output of a node that stays, given by the pattern's name for one of its outputs."""
        value = self._match.values.get(output.name)
        if not isinstance(value, ValueRecord) or value.producer is None:
            raise EditError(f"no node of the pattern makes {output.name}, of which the replacement reads an output")
        outputs = self._graph.nodes[value.producer[0]].proto.output
        return outputs[output.output] if output.output < len(outputs) else ""

    def _value(self, name: str) -> str:
        if name in self._named:
            return self._named[name]
        if name in self._computed:
            if name not in self._constants:
                self._constants[name] = self._stored(name, np.asarray(self._computed[name]))
            return self._constants[name]
        if name == "_" or name not in self._match.values:
            if name == "_":
                return ""
            raise EditError(f"nothing is called {name}, which the replacement reads")
        value = self._match.values[name]
        return value.name if value is not None else ""

    def _number(self, number: Number) -> str:
        """Store a number in the result's type, or a list as int64; returns the name of the constant."""
        key = str(number)
        if key not in self._constants:
            dtype = np.dtype(np.int64)
            if not isinstance(number.value, list):
                elem_type = self._match.elem_type("result")
                if not elem_type:
                    raise EditError("the type of the result is not known, so that no number can be made for it")
                dtype = dtypes.to_numpy(elem_type)
            self._constants[key] = self._stored("constant", np.asarray(number.value).astype(dtype))
        return self._constants[key]

    def _stored(self, name: str, array: Array) -> str:
        scope = self._graph.scopes[self._match.root.scope]
        return self._rewriting.store(self._rewriting.fresh(f"{self._label}_{name}"), array, scope).name


def _adopt(new_node: onnx.NodeProto, match: Match) -> None:
    """Give a node the name of the node that it replaces, and documentation and metadata of all that are removed."""
    new_node.name = match.root.proto.name
    held: dict[str, str] = {}
    for node, call in zip(match.nodes, match.pattern.calls(), strict=True):
        if call.stays:
            continue
        proto: onnx.NodeProto = node.proto
        new_node.doc_string = joined(new_node.doc_string, proto.doc_string)
        for entry in proto.metadata_props:
            held.setdefault(entry.key, entry.value)
        new_node.device_configurations.extend(entry for entry in proto.device_configurations
                                              if entry not in new_node.device_configurations)  # fmt: skip
    for key, text in held.items():
        new_node.metadata_props.add(key=key, value=text)
