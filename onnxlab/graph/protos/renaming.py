"""Copies of nodes under other names: what it takes to put them into another graph. Works on messages alone.

A body reads outer names, so a renamed value is renamed in bodies too, unless a body defines the same name, which then
hides the outer one. Names that a body defines stay unless `inner` renames them.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import onnx

_GRAPH = onnx.AttributeProto.GRAPH
_GRAPHS = onnx.AttributeProto.GRAPHS


class Renaming:
    """New names for values, operators and attribute references.

    Args:
        values: the new name of each value that gets one; "" leaves an input out.
        inner: returns the new name of a name that a body defines; None keeps those names.
        operators: new (domain, op_type, overload) of calls, by the triple that they have.
        attributes: attributes that replace references, by the name of the function's attribute; references to other
            names are removed. None leaves references alone.
        prefix: put before the names of nodes, those of inner nodes included.
    """

    def __init__(
        self,
        values: Mapping[str, str],
        inner: Callable[[str], str] | None = None,
        operators: Mapping[tuple[str, str, str], tuple[str, str, str]] | None = None,
        attributes: Mapping[str, onnx.AttributeProto] | None = None,
        prefix: str = "",
    ) -> None:
        self.values = values
        self._inner = inner
        self._operators = operators or {}
        self._attributes = attributes
        self._prefix = prefix

    def node(self, proto: onnx.NodeProto) -> onnx.NodeProto:
        """A copy of a node under its new names, bodies included."""
        copy = onnx.NodeProto()
        copy.CopyFrom(proto)
        self._rename(copy, self.values)
        return copy

    def info(self, proto: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
        """A copy of a declaration under the value's new name."""
        copy = onnx.ValueInfoProto()
        copy.CopyFrom(proto)
        copy.name = self.values.get(copy.name, copy.name)
        return copy

    def annotation(self, proto: onnx.TensorAnnotation) -> onnx.TensorAnnotation:
        """A copy of a quantization annotation under the new names of its tensors."""
        copy = onnx.TensorAnnotation()
        copy.CopyFrom(proto)
        _rename_annotation(copy, self.values)
        return copy

    def _rename(self, node: onnx.NodeProto, values: Mapping[str, str]) -> None:
        _rename_list(node.input, values)
        _rename_list(node.output, values)
        if node.name and self._prefix:
            node.name = self._prefix + node.name
        called = self._operators.get((canonical(node.domain), node.op_type, node.overload))
        if called:
            node.domain, node.op_type = called[:2]
            if called[2] or node.overload:
                node.overload = called[2]
        if self._attributes is not None:
            _resolve(node, self._attributes)
        for attribute in node.attribute:
            for body in graphs_of(attribute):
                self._rename_body(body, values)

    def _rename_body(self, body: onnx.GraphProto, outer: Mapping[str, str]) -> None:
        defined = names_defined(body)
        values = {old: new for old, new in outer.items() if old not in defined}
        if self._inner:
            values.update((name, self._inner(name)) for name in defined)
        for infos in (body.input, body.output, body.value_info):
            for info in infos:
                info.name = values.get(info.name, info.name)
        for tensor in body.initializer:
            tensor.name = values.get(tensor.name, tensor.name)
        for sparse in body.sparse_initializer:
            sparse.values.name = values.get(sparse.values.name, sparse.values.name)
        for annotation in body.quantization_annotation:
            _rename_annotation(annotation, values)
        for node in body.node:
            self._rename(node, values)


def _resolve(node: onnx.NodeProto, actuals: Mapping[str, onnx.AttributeProto]) -> None:
    """Put what a call gives in the place of references to attributes of the function."""
    for position in reversed(range(len(node.attribute))):
        attribute = node.attribute[position]
        if not attribute.ref_attr_name:
            continue
        name, doc, actual = attribute.name, attribute.doc_string, actuals.get(attribute.ref_attr_name)
        del node.attribute[position]
        if actual is not None:
            node.attribute.insert(position, actual)
            node.attribute[position].name = name
            if doc:
                node.attribute[position].doc_string = doc


def canonical(domain: str) -> str:
    """The domain as protos have it: "" for ai.onnx, any other as it is."""
    return "" if domain == "ai.onnx" else domain


def graphs_of(attribute: onnx.AttributeProto) -> list[onnx.GraphProto]:
    """The bodies in an attribute: none where the graph is absent, as in a reference to a function's attribute."""
    if attribute.type == _GRAPH:
        return [attribute.g] if attribute.HasField("g") else []
    return list(attribute.graphs) if attribute.type == _GRAPHS else []


def names_defined(graph: onnx.GraphProto) -> dict[str, None]:
    """Names of the values that a graph defines itself, in order."""
    names = dict.fromkeys(info.name for info in graph.input)
    names.update(dict.fromkeys(tensor.name for tensor in graph.initializer))
    names.update(dict.fromkeys(sparse.values.name for sparse in graph.sparse_initializer))
    names.update(dict.fromkeys(name for node in graph.node for name in node.output if name))
    return names


def nodes_inside(nodes: Iterable[onnx.NodeProto]) -> Iterable[onnx.NodeProto]:
    """Nodes, each followed by those in its bodies, without recursion."""
    stack = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        yield node
        stack += [inner for attribute in node.attribute for body in graphs_of(attribute) for inner in body.node][::-1]


def _rename_list(names: Any, values: Mapping[str, str]) -> None:
    for slot, name in enumerate(names):
        if name in values:
            names[slot] = values[name]


def _rename_annotation(annotation: onnx.TensorAnnotation, values: Mapping[str, str]) -> None:
    annotation.tensor_name = values.get(annotation.tensor_name, annotation.tensor_name)
    for entry in annotation.quant_parameter_tensor_names:
        entry.value = values.get(entry.value, entry.value)
