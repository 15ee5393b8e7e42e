"""Fields and attributes of a node, read and set, and the edits that concern no other handle."""

from collections.abc import Iterator, MutableMapping
from typing import Any

import onnx

from onnxlab import schemas
from onnxlab.errors import MissingKeyError, NameLookupError
from onnxlab.graph import edits
from onnxlab.graph.handles.handle_base import Handle
from onnxlab.graph.handles.properties import Metadata
from onnxlab.graph.index.records import GRAPH_KINDS, NodeRecord
from onnxlab.graph.protos.attributes import BodyRef, decode
from onnxlab.spelling import Spelled


class Attributes(Spelled, MutableMapping[str, Any]):
    """The attributes that a node sets, live: `node.attributes["strides"] = [1, 1]` is an edit.

    Iteration and `len` include only attributes that are set; reading another one gives the operator's default, if any.
    """

    __slots__ = ("_node",)

    _node: "NodeFields"

    def __init__(self, node: "NodeFields") -> None:
        _set_node(self, node)

    def __getitem__(self, name: str) -> Any:
        record = self._node._record
        for attribute in record.proto.attribute:
            if attribute.name == name:
                if attribute.type in GRAPH_KINDS and (bodies := record.bodies.get(name)):
                    refs = [BodyRef(body) for body in bodies]
                    return refs[0] if attribute.type == onnx.AttributeProto.GRAPH else refs
                return decode(attribute)
        spec = self._schemas().get(name)
        if spec is None or spec.default is None:
            known = ", ".join([*self, *(other for other in self._schemas() if other not in set(self))]) or "none"
            where = self._node.label
            raise MissingKeyError(f"{where} sets no attribute {name!r} and it has no default; known: {known}")
        return spec.default

    def __setitem__(self, name: str, value: Any) -> None:
        edits.set_attribute(self._node._graph, self._node._record, name, value)

    def __delitem__(self, name: str) -> None:
        if name not in set(self):
            raise MissingKeyError(f"{self._node.label} does not set {name!r}")
        edits.clear_attribute(self._node._graph, self._node._record, name)

    def __iter__(self) -> Iterator[str]:
        return iter([attribute.name for attribute in self._node._record.proto.attribute])

    def __len__(self) -> int:
        return len(self._node._record.proto.attribute)

    def __contains__(self, name: object) -> bool:
        return any(attribute.name == name for attribute in self._node._record.proto.attribute)

    def __repr__(self) -> str:
        return repr({name: self[name] for name in self})

    def _schemas(self) -> Any:
        schema = self._node.schema
        return schema.attributes if schema else {}


_set_node = vars(Attributes)["_node"].__set__
"""Bypasses the check of names in `Spelled`."""


class NodeFields(Handle):
    """The fields of a node; see `Node`."""

    __slots__ = ()

    @property
    def _record(self) -> NodeRecord:
        try:
            return self._graph.nodes[self.id]
        except KeyError:
            raise NameLookupError(
                f"node {self.id} is not in the model any more (removed, or its creation undone)"
            ) from None

    @property
    def name(self) -> str:
        """The node's name, often "". Setting it renames the node.

        Examples:
            >>> model.nodes[0].name = "first"
            >>> model.nodes["first"].position
            0
        """
        return self._record.name

    @name.setter
    def name(self, name: str) -> None:
        edits.rename_node(self._graph, self._record, name)

    @property
    def label(self) -> str:
        """The name, or operator and position ("Conv#12") for a node without one.

        Examples:
            >>> model.nodes[0].name = ""
            >>> model.nodes[0].label
            'Conv#0'
        """
        return self._graph.label(self._record)

    @property
    def op_type(self) -> str:
        """The operator. Setting it keeps wires, and those attributes that the new operator knows.

        Examples:
            >>> node.op_type = "Sigmoid"
            >>> node.op_type
            'Sigmoid'
        """
        return self._record.op_type

    @op_type.setter
    def op_type(self, op_type: str) -> None:
        edits.set_operator(self._graph, self._record, op_type)

    @property
    def domain(self) -> str:
        """The operator's domain, "" for ai.onnx.

        Examples:
            >>> node.domain
            ''
        """
        return self._record.domain

    @property
    def proto(self) -> onnx.NodeProto:
        """The live NodeProto: read it freely, change it through the model.

        Examples:
            >>> list(node.proto.input)
            ['stem/bn_out']
        """
        return self._record.proto

    @property
    def position(self) -> int:
        """Index in the file order of its graph.

        Examples:
            >>> node.position
            2
        """
        return self._graph.scopes[self._record.scope].position(self._record)

    @property
    def scope(self) -> str:
        """Path of the scope it is in, "" for the main graph.

        Examples:
            >>> node.scope
            ''
        """
        return self._graph.scope_path(self._graph.scopes[self._record.scope])

    @property
    def schema(self) -> schemas.Schema | None:
        """The operator's schema at the imported opset version, None for an unknown operator.

        Examples:
            >>> node.schema.since_version
            14
        """
        return self._graph.schema(self._record)

    @property
    def doc(self) -> str:
        """The operator's documentation, "" for an unknown operator.

        Examples:
            >>> "rectified linear" in node.doc
            True
        """
        schema = self.schema
        return schema.doc if schema else ""

    @property
    def attributes(self) -> Attributes:
        """The attributes that the node sets, live: writing into them is an edit.

        Examples:
            >>> conv = model.nodes["/stem/conv/Conv"]
            >>> conv.attributes["group"]  # not set: the default of the operator
            1
            >>> conv.attributes["strides"] = [2, 2]
            >>> list(conv.attributes)
            ['kernel_shape', 'pads', 'strides']
        """
        return Attributes(self)

    @property
    def doc_string(self) -> str:
        """Documentation of this node in the model (that of its operator is `doc`). Setting it is an edit.

        Examples:
            >>> node.doc_string = "after the first convolution"
        """
        return str(self._record.proto.doc_string)

    @doc_string.setter
    def doc_string(self, text: str) -> None:
        edits.set_doc_string(self._graph, self._record, text)

    @property
    def metadata(self) -> Metadata:
        """The node's metadata_props, live: writing into them is an edit.

        Examples:
            >>> node.metadata["owner"] = "vision"
            >>> node.metadata
            {'owner': 'vision'}
        """
        return Metadata(self._graph, lambda: self._record)

    def default_attributes(self, explicit: bool = False) -> None:
        """Take away every attribute that says what its default says, or write the defaults out.

        Args:
            explicit: write the defaults out instead.

        Examples:
            >>> pool = model.nodes["/head/pool/MaxPool"]
            >>> pool.default_attributes(explicit=True)
            >>> pool.attributes["ceil_mode"]
            0
        """
        edits.default_attributes(self._graph, self._record, explicit)

    def replace(self, op_type: str, domain: str | None = None, **attributes: Any) -> None:
        """Make the node another operator with the same wires; attributes that it knows too survive.

        Args:
            op_type: the new operator.
            domain: domain of the new operator; None keeps the present one.
            attributes: attributes to set, by name.

        Raises:
            EditError: there is no such operator in the opset, or the wires or attributes do not fit it.
            TypeError: `op_type` or `domain` is no text.

        Examples:
            >>> node.replace("LeakyRelu", alpha=0.1)
            >>> round(node.attributes["alpha"], 3)
            0.1
        """
        edits.set_operator(self._graph, self._record, op_type, domain, attributes)

    def move(self, position: int) -> None:
        """Put the node at another place of the file order.

        Args:
            position: index in its graph, counted without the node.

        Raises:
            EditError: the node would be before a producer of its inputs, or behind a reader of its outputs.

        Examples:
            >>> added = model.add_node("Relu", ["image"], ["early"])
            >>> added.move(0)
            >>> added.position
            0
        """
        edits.move_node(self._graph, self._record, position)

    def remove(self, bypass: bool = False) -> None:
        """Remove the node.

        Args:
            bypass: let the readers of its output read its first input instead.

        Raises:
            EditError: a node or output still reads one of its values.

        Examples:
            >>> node.remove(bypass=True)
            >>> model.nodes["/block1/conv1/Conv"].inputs[0]
            <Value 'stem/bn_out'>
        """
        edits.remove_nodes(self._graph, [self._record], bypass)
