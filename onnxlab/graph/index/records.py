"""Records of nodes, values and scopes. Only the index and the primitive changes write here.

Records hold the live protobuf messages. They are looked up by an integer id, which no other record of the model ever
gets.
An id of 0 stands for "none" (an absent optional input, a scope without owner).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import onnx

from onnxlab.graph.index.file_order import FileOrder
from onnxlab.graph.index.named_entries import Entries

ScopeKind = Literal["graph", "subgraph", "function", "training"]

GRAPH_KINDS = frozenset((onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS))

DEFAULT_DOMAINS = ("", "ai.onnx")
"""The names of ONNX's own domain."""

NO_BODIES: Mapping[str, list[int]] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class NodeRecord:
    """A node: its live proto and, by slot, the ids of the values it reads and makes.

    Attributes:
        label: orders the nodes of a scope as the file does; with gaps, so that a node fits between two others.
        bodies: ids of the scopes in each GRAPH or GRAPHS attribute.
    """

    id: int
    scope: int
    proto: onnx.NodeProto
    label: int = 0
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    bodies: Mapping[str, list[int]] = field(default_factory=lambda: NO_BODIES)

    @property
    def name(self) -> str:
        """The name in the proto."""
        return self.proto.name

    @property
    def op_type(self) -> str:
        """The operator's name."""
        return self.proto.op_type

    @property
    def domain(self) -> str:
        """The operator's domain, "" for ai.onnx."""
        domain = self.proto.domain
        return "" if domain == "ai.onnx" else domain


@dataclass(slots=True, eq=False)
class ValueRecord:
    """A value with its producers and readers.

    Attributes:
        producers: (node id, output slot); more than one only in an invalid file.
        uses: (node id, input slot) of every reader, those in inner scopes included.
        formal_outputs: (scope id, position) of every graph or function output with this value.
        is_input: whether the value is an input of the scope that defines it.
        initializer: the value's TensorProto or SparseTensorProto, if any.
        info: the ValueInfoProto that declares the value's type, if any.
    """

    id: int
    name: str
    scope: int
    producers: list[tuple[int, int]] = field(default_factory=list)
    uses: dict[tuple[int, int], None] = field(default_factory=dict)
    formal_outputs: tuple[tuple[int, int], ...] = ()
    is_input: bool = False
    initializer: Any = None
    info: onnx.ValueInfoProto | None = None

    @property
    def producer(self) -> tuple[int, int] | None:
        """(node id, output slot) of the first node that makes it, or None."""
        return self.producers[0] if self.producers else None

    @property
    def tensor(self) -> onnx.TensorProto | None:
        """The TensorProto that bears the value's name: the initializer, or the values of a sparse one."""
        stored = self.initializer
        return stored.values if isinstance(stored, onnx.SparseTensorProto) else stored

    @property
    def is_output(self) -> bool:
        """Whether the scope that defines it, or an inner one, returns it."""
        return bool(self.formal_outputs)

    @property
    def defined(self) -> bool:
        """Whether something defines the value: a node, an input or an initializer."""
        return bool(self.producers) or self.is_input or self.initializer is not None


@dataclass(slots=True, eq=False)
class Scope:
    """A main graph, subgraph, function body or training graph: a space of names and an order of nodes.

    Attributes:
        owner: id of the If, Loop, Scan, … node that holds the subgraph, 0 for others.
        attribute: the owner's attribute that holds the subgraph ("then_branch"); of a training graph, its field
            ("training_info[0].algorithm").
        parent: id of the scope whose names are visible inside, 0 for a main graph or function.
        names: value ids of the names that the scope defines (and, in a root scope, of the undefined ones).
        node_ids: the nodes in file order.
        backward: (producer, consumer) node ids of edges that run against the file order; empty when it is sorted.
        entries: positions of initializers, value_info and quantization annotations, by field.
        ranks: topological positions while `backward` is not empty, None when they must be computed.
        is_function: whether the scope is the body of a function.
    """

    id: int
    kind: ScopeKind
    proto: Any
    owner: int = 0
    attribute: str = ""
    parent: int = 0
    names: dict[str, int] = field(default_factory=dict)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    node_ids: FileOrder = field(default_factory=FileOrder)
    backward: set[tuple[int, int]] = field(default_factory=set)
    entries: dict[str, Entries] = field(default_factory=dict)
    ranks: dict[int, int] | None = None
    is_function: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_function = self.kind == "function"

    @property
    def name(self) -> str:
        """The graph's or function's own name."""
        return str(self.proto.name)

    def position(self, node: NodeRecord) -> int:
        """Index of a node in the file, by bisection of the order labels."""
        return self.node_ids.position(node.label)

    def order(self) -> list[int]:
        """Ids of the nodes in file order."""
        return list(self.node_ids)

    def places(self, field: str) -> Entries:
        """The positions of the messages of a repeated field; collected when first asked for."""
        entries = self.entries.get(field)
        if entries is None:
            entries = self.entries[field] = Entries(field, getattr(self.proto, field, ()))
        return entries


@dataclass(slots=True)
class NodeImage:
    """A node taken out of the model, with the ids that it and everything in it had."""

    proto: onnx.NodeProto
    id: int
    values: dict[str, int]
    bodies: dict[str, list["ScopeImage"]] = field(default_factory=dict)


@dataclass(slots=True)
class ScopeImage:
    """Ids of a scope taken out of the model: of itself, its values by name and its nodes in file order."""

    id: int
    values: dict[str, int]
    nodes: list[NodeImage]
