"""What takes the place of a match: nodes and constants are made, checked, and put there."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper

from onnxlab import dtypes, schemas
from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertNode, RemoveNode
from onnxlab.graph.edit.merging import adopt_opsets
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.shapes import Fact
from onnxlab.transforms.patterns.matcher import Match
from onnxlab.transforms.patterns.pattern import Argument, Call, Literal, Name, Number, Output, Rest
from onnxlab.transforms.rewriting import Array, Rewriting


def put(
    rewriting: Rewriting, found: Match, replacement: Call | Name, computed: Mapping[str, Any]
) -> tuple[list[NodeRecord], str]:
    """Put a replacement in the place of a match; nothing is changed where that cannot be.

    Returns:
        The nodes that came, or read other values now; and why it was not done, "" where it was.
    """
    if isinstance(replacement, Name):
        return _bypass(rewriting, found, replacement)
    why = _unavailable(rewriting, found, replacement)
    if why:
        return [], why
    before = rewriting.fact(found.root.outputs[0])
    try:
        with rewriting.graph.edit():
            made = _Builder(rewriting, found, computed).put(replacement)
            why = _differs(before, rewriting.inferred(made[-1]))
            if why:
                raise EditError(why)
    except EditError as error:
        return [], str(error)
    return made, ""


def _bypass(rewriting: Rewriting, found: Match, name: Name) -> tuple[list[NodeRecord], str]:
    source, graph = found.values.get(name.name), rewriting.graph
    if not isinstance(source, ValueRecord):
        return [], f"{name.name} is absent"
    output = graph.values[found.root.outputs[0]]
    readers = list(dict.fromkeys(node for node, _ in output.uses))
    if not rewriting.bypass(found.root, source):
        return [], f"an output of the graph cannot be {source.name}"
    calls = zip(found.nodes[1:], found.pattern.calls()[1:], strict=True)
    for node in [node for node, call in calls if not call.stays]:
        rewriting.remove(node)
    return [graph.nodes[ident] for ident in readers if ident in graph.nodes], ""


def _unavailable(rewriting: Rewriting, found: Match, replacement: Call) -> str:
    """Why the model cannot have the operators of a replacement, "" where it can."""
    graph = rewriting.graph
    scope = graph.scopes[found.root.scope]
    for call in replacement.calls():
        version = graph.opset_version(call.domain, scope)
        wanted = {"", *rewriting.options.domains, *(node.domain for node in found.nodes)}
        if call.domain not in wanted:
            return f"operators of {call.domain} were not asked for"
        version = version or (1 if call.domain else 0)
        schema = schemas.find(call.domain, call.op_type, version or 0)
        if (schema is None or schema.deprecated) and not call.domain:
            return f"opset {version} has no {call.op_type}; convert the model to a newer one"
        if schema is not None and (
            sum(not isinstance(each, Rest) for each in call.inputs) > schema.max_input
            or any(name not in schema.attributes for name, _ in call.attributes)
        ):
            return f"{call.op_type} of opset {version} has other inputs and attributes"
    return ""


def _differs(before: Fact, made: Fact | None) -> str:
    """Why what was made has another type or shape than what was there, "" where it has the same."""
    if made is None:
        return ""
    now_type, now = getattr(made, "elem_type", 0), made.shape
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

    def __init__(self, rewriting: Rewriting, found: Match, computed: Mapping[str, Any]) -> None:
        self._rewriting = rewriting
        self._graph = rewriting.graph
        self._found = found
        self._computed = computed
        self._label = rewriting.place(found.root)
        self._protos: list[onnx.NodeProto] = []
        self._constants: dict[str, str] = {}
        self._named: dict[str, str] = {}

    def put(self, replacement: Call) -> list[NodeRecord]:
        """Make the nodes, and take out those whose place they take."""
        found, graph = self._found, self._graph
        root = found.root
        scope = graph.scopes[root.scope]
        outputs = list(root.proto.output)
        while len(outputs) > 1 and not self._is_read(root, len(outputs) - 1):
            outputs.pop()
        last = self._node(replacement, outputs)
        if _adopt(last, found):
            self._rewriting.lost.append(graph.label(root))
        domains = {each.domain for each in replacement.calls() if each.domain}
        imports = [helper.make_opsetid(domain, 1) for domain in domains]
        adopt_opsets(graph, imports, self._protos, scope, "the replacement")
        position = scope.position(root)
        graph.apply(RemoveNode(root.id))
        made = []
        for number, proto in enumerate(self._protos):
            graph.apply(InsertNode(scope.id, position + number, proto))
            made.append(graph.nodes[scope.node_ids[position + number]])
        calls = zip(found.nodes[1:], found.pattern.calls()[1:], strict=True)
        for node in [node for node, call in calls if not call.stays]:
            graph.apply(RemoveNode(node.id))
        return made

    def _is_read(self, node: NodeRecord, slot: int) -> bool:
        vid = node.outputs[slot] if slot < len(node.outputs) else 0
        return bool(vid) and bool(self._graph.values[vid].uses or self._graph.values[vid].formal_outputs)

    def _node(self, call: Call, outputs: list[str]) -> onnx.NodeProto:
        node = onnx.NodeProto(op_type=call.op_type, domain=call.domain, output=outputs)
        for wanted in call.inputs:
            node.input.extend(self._input(wanted))
        while node.input and not node.input[-1]:
            del node.input[-1]
        given = {name for name, _ in call.attributes}
        for old in self._found.nodes:
            if old.op_type == call.op_type and old.domain == call.domain:
                node.attribute.extend(each for each in old.proto.attribute if each.name not in given)
                break
        for name, told in call.attributes:
            value = told.value if isinstance(told, Literal) else self._attribute(told.name)
            if value is not None:
                node.attribute.append(helper.make_attribute(name, value))
        self._protos.append(node)
        return node

    def _attribute(self, name: str) -> Any:
        if name in self._computed:
            return self._computed[name]
        if name in self._found.attributes:
            return self._found.attributes[name]
        known = self._found.array(name) if name in self._found.values else None
        if known is None:
            raise EditError(f"nothing is called {name}, which the replacement has as an attribute")
        return known.reshape(-1).tolist() if known.ndim else known.item()

    def _input(self, wanted: Argument) -> list[str]:
        if isinstance(wanted, Call):
            if wanted.name and wanted.name in self._named:
                return [self._named[wanted.name]]
            name = self._rewriting.fresh(f"{self._label}_{wanted.name or wanted.op_type}")
            self._node(wanted, [""] * wanted.output + [name])
            if wanted.name:
                self._named[wanted.name] = name
            return [name]
        if isinstance(wanted, Rest):
            return [value.name if value is not None else "" for value in self._found.values[wanted.name]]
        if isinstance(wanted, Number):
            return [self._number(wanted)]
        if isinstance(wanted, Output):
            return [self._output(wanted)]
        return [self._value(wanted.name)]

    def _output(self, wanted: Output) -> str:
        """Another output of a node that stays, by the name of one of them."""
        value = self._found.values.get(wanted.name)
        if not isinstance(value, ValueRecord) or value.producer is None:
            raise EditError(f"no node of the pattern makes {wanted.name}, of which the replacement reads an output")
        outputs = self._graph.nodes[value.producer[0]].proto.output
        return outputs[wanted.output] if wanted.output < len(outputs) else ""

    def _value(self, name: str) -> str:
        if name in self._named:
            return self._named[name]
        if name in self._computed:
            if name not in self._constants:
                self._constants[name] = self._stored(name, np.asarray(self._computed[name]))
            return self._constants[name]
        if name == "_" or name not in self._found.values:
            if name == "_":
                return ""
            raise EditError(f"nothing is called {name}, which the replacement reads")
        value = self._found.values[name]
        return value.name if value is not None else ""

    def _number(self, wanted: Number) -> str:
        """A constant: of the result's type where it is one number, of int64 where it is a list."""
        key = str(wanted)
        if key not in self._constants:
            dtype = np.dtype(np.int64)
            if not isinstance(wanted.value, list):
                elem_type = self._found.elem_type("result")
                if not elem_type:
                    raise EditError("the type of the result is not known, so that no number can be made for it")
                dtype = dtypes.to_numpy(elem_type)
            self._constants[key] = self._stored("constant", np.asarray(wanted.value).astype(dtype))
        return self._constants[key]

    def _stored(self, name: str, array: Array) -> str:
        scope = self._graph.scopes[self._found.root.scope]
        return self._rewriting.store(self._rewriting.fresh(f"{self._label}_{name}"), array, scope).name


def _adopt(made: onnx.NodeProto, found: Match) -> bool:
    """Give a node the name, documentation and metadata of those whose place it takes.

    Returns:
        Whether some of it is lost, as two nodes say different things under one key.
    """
    root: Any = found.root.proto
    made.name = root.name
    made.doc_string = "\n".join(dict.fromkeys(node.proto.doc_string for node in found.nodes if node.proto.doc_string))
    held: dict[str, str] = {}
    for node in found.nodes:
        for entry in node.proto.metadata_props:
            held.setdefault(entry.key, entry.value)
    for key, text in held.items():
        made.metadata_props.add(key=key, value=text)
    return any(held[entry.key] != entry.value for node in found.nodes for entry in node.proto.metadata_props)
