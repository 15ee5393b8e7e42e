"""An index read in one pass from the bytes of a model: what only edits and people ask for is made when asked for.

The model is serialized once, and the index is read from these bytes (`wire_format.py`). The bytes of a node without
its names (`signatures`) show whether the node may have bodies, and serve inference. The inputs of nodes and hashes of
their names are noted in columns; the readers of a value are searched for in the columns when first asked for.
"""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Collection, Iterator
from itertools import repeat
from operator import gt
from typing import Any

import numpy as np
import onnx

from onnxlab.graph.index.columns import Columns, Notes, Search
from onnxlab.graph.index.file_order import FileOrder
from onnxlab.graph.index.index import Index
from onnxlab.graph.index.order_labels import spread
from onnxlab.graph.index.records import GRAPH_KINDS, NO_BODIES, NodeRecord, Scope, ScopeImage, ValueRecord
from onnxlab.graph.index.rows import Numbers, Rows
from onnxlab.graph.protos import wire_format
from onnxlab.graph.protos.wire_format import Heads

MAX_SIGNATURE = 4096
"""Most bytes of a signature that is kept."""

_GRAPH = wire_format.tag(onnx.ModelProto, "graph")
_METADATA = wire_format.tag(onnx.NodeProto, "metadata_props")
_NODES = {False: wire_format.tag(onnx.GraphProto, "node"), True: wire_format.tag(onnx.FunctionProto, "node")}
"""Tag of the field of nodes, by whether a function has them."""


class UnreadValue(ValueRecord):
    """A value whose producers and uses are written down when they are first asked for.

    Args:
        producers: those of `ValueRecord`, or the id alone of the node that computes the value as its first output.
    """

    __slots__ = ("_index", "_maker")

    def __init__(
        self, ident: int, name: str, scope: int, producers: list[tuple[int, int]] | int, index: GlanceIndex,
        formal_outputs: tuple[tuple[int, int], ...] = (), is_input: bool = False, initializer: Any = None,
    ) -> None:  # fmt: skip
        self.id = ident
        self.name = name
        self.scope = scope
        self._index = index
        if producers.__class__ is int:
            self._maker = producers
        else:
            self.producers = producers  # type: ignore[assignment]
        self.formal_outputs = formal_outputs
        self.is_input = is_input
        self.initializer = initializer
        self.info = None

    def __getattr__(self, name: str) -> Any:  # Python calls this only for attributes not set yet
        if name not in ("producers", "uses"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._index.write_down(self, name)
        return getattr(self, name)


class GlanceIndex(Index):
    """An index that looks for the uses of a value when they are first asked for.

    Args:
        data: the model as protobuf writes it, where the caller has that already.

    Attributes:
        size: bytes of the serialized model.
        signatures: by node id, for nodes with inputs; large signatures are left out.
        constants: by node id, for Constants with nothing but a tensor: the match of `wire_format.constant`.
        attributes: by node id, for the other nodes without inputs; like the two above, in the order of reading.
        columns: inputs and outputs of all nodes and hashes of their names, as they were read.
    """

    value_type: type[ValueRecord] = UnreadValue

    def __init__(self, proto: onnx.ModelProto, data: bytes | None = None) -> None:
        self._model = proto.SerializeToString() if data is None else data
        self.size = len(self._model)
        self.signatures: dict[int, bytes] = {}
        self.constants: dict[int, re.Match[bytes]] = {}
        self.attributes: dict[int, list[onnx.AttributeProto]] = {}
        self._bodiless: dict[bytes, bytes] = {}
        self._bodies: dict[int, Iterator[tuple[bytes, int, int]]] = {}
        self._left: list[tuple[NodeRecord, bool, int]] = []
        self._writing = threading.RLock()
        self._notes = Notes()
        self.rewired = False
        self.may_say_paths = False
        super().__init__(proto)
        self.columns = Columns.of(self._notes)
        self._search = Search(self.columns)
        self._notes = Notes()
        self._model = b""
        self._bodies.clear()

    def before_change(self) -> None:
        """Drop the names that nodes had when they were read."""
        self.may_say_paths = True

    def before_rewiring(self) -> None:
        """Keep uses of values up to date from now on."""
        self.rewired = True
        self.value_type = ValueRecord
        self.forget_signatures()

    def nodes_called(self, scope: Scope, name: str) -> list[int] | None:
        """Return the ids of nodes that may have had a name when they were read, None after many questions."""
        return self._search.called(scope.id, name)

    def rows(self, scope: Scope) -> Rows:
        """The inputs and outputs of the nodes of a scope; as they were read, until wires change."""
        return super().rows(scope) if self.rewired else self.columns.of_scope(scope.id)

    def arities(self) -> Numbers:
        """Numbers that tell scope and counts of inputs and outputs apart, of the nodes with signatures in their order.

        A number is below 0 where a slot may be empty, or where a node has too many slots.
        """
        nodes = np.fromiter(self.signatures, np.int64, len(self.signatures))
        return self.columns.arities()[self.columns.nodes.searchsorted(nodes)]

    def forget_signatures(self) -> None:
        """Let go of what only a first inference asks for."""
        for table in (self.signatures, self.constants, self.attributes):
            table.clear()

    def write_down(self, value: UnreadValue, field: str) -> None:
        """Give a value its `producers` or `uses`: those that it had when the model was read. Once."""
        with self._writing:
            try:
                object.__getattribute__(value, field)  # another thread set the field first, and may have changed it
            except AttributeError:
                setattr(value, field, [(value._maker, 0)] if field == "producers" else self._uses_of(value.id))

    def _uses_of(self, value: int) -> dict[tuple[int, int], None]:
        uses = self._search.readers(value)
        if len(self.scopes) > 1:  # a scope is read before the bodies in it
            uses.sort(key=lambda use: self._path(self.nodes[use[0]]))
        return dict.fromkeys(uses)

    def _path(self, node: NodeRecord) -> tuple[int, ...]:
        """Ids from the main graph or function down to a node: in the order of the file, as they were given."""
        path, scope = [node.id], self.scopes[node.scope]
        while scope.owner:
            path += [scope.id, scope.owner]
            scope = self.scopes[self.nodes[scope.owner].scope]
        return (scope.id, *reversed(path))

    def _connect(self, value: ValueRecord, node_id: int, slot: int) -> None:
        if self.rewired:
            value.uses[node_id, slot] = None
        if value.producers:
            self._edge_added(value, node_id, slot)

    def _unread(self) -> Any:
        return {} if self.rewired else self

    def _declare_nodes(self, scope: Scope, image: ScopeImage | None, ids: dict[str, int]) -> list[NodeRecord]:
        """Everything in one pass, while a message is at hand, but what has to wait for others: `_left`."""
        if self.rewired or image:
            return super()._declare_nodes(scope, image, ids)
        protos, nodes = scope.proto.node[:], list[NodeRecord]()
        labels = spread(len(protos))
        extent = self._serialized(scope)
        for heads in wire_format.heads(*extent):
            block = slice(len(nodes), len(nodes) + len(heads.ends))
            nodes += self._declare_block(scope, protos[block], labels[block], heads, extent[0])
        idents = [node.id for node in nodes]
        self._notes.enter(scope.id, idents, self._last_id)
        scope.node_ids = FileOrder(idents, labels)
        return nodes

    def _declare_block(
        self, scope: Scope, protos: list[onnx.NodeProto], labels: list[int], heads: Heads, data: bytes
    ) -> list[NodeRecord]:
        """Nodes that follow each other, by loops of C where they are as most: each makes new values."""
        notes, noted = self._notes, len(self._notes.reads)
        idents, results = self._number(scope, heads) or self._number_singly(scope, heads)
        reads = self._values_read(scope, heads, idents)
        inputs, outputs = _cut(reads, heads.reads), _cut(results, heads.makes)
        nodes = list(map(NodeRecord, idents, repeat(scope.id), protos, labels, inputs, outputs, repeat(NO_BODIES)))
        self.nodes.update(zip(idents, nodes, strict=True))
        notes.reads.extend(reads)
        notes.ends.extend([noted + end for end in heads.reads])
        self._note_names(heads, data)
        owners = self._read_signatures(nodes, heads, data)
        if owners or not all(reads):
            for node, end in zip(nodes, heads.reads, strict=True):
                if node.id in owners or 0 in node.inputs:
                    self._left.append((node, node.id in owners, noted + end))
        return nodes

    def _number(self, scope: Scope, heads: Heads) -> tuple[list[int], list[int]] | None:
        """Ids of new nodes and of all their outputs, which are declared; None where an output is absent or known."""
        names, distinct = scope.names, set(heads.outputs)
        if len(distinct) < len(heads.outputs) or "" in distinct or not names.keys().isdisjoint(distinct):
            return None
        first, count = self._last_id + 1, len(heads.makes)
        self._last_id += count + len(heads.outputs)
        if heads.makes == list(range(1, count + 1)):  # one output each, as of most nodes
            makers: list[Any] = list(range(first, self._last_id, 2))
            idents, results = makers, list(range(first + 1, self._last_id + 1, 2))
        else:
            idents, results, makers = [], [], []
            for start, end in zip([0, *heads.makes], heads.makes, strict=False):
                idents.append(ident := first + len(idents) + start)
                results += range(ident + 1, ident + 1 + end - start)
                makers += [[(ident, slot)] if slot else ident for slot in range(end - start)]
        names.update(zip(heads.outputs, results, strict=True))
        values = map(UnreadValue, results, heads.outputs, repeat(scope.id), makers, repeat(self))
        self.values.update(zip(results, values, strict=True))
        return idents, results

    def _number_singly(self, scope: Scope, heads: Heads) -> tuple[list[int], list[int]]:
        """The same for any nodes; an absent output has the id 0."""
        values, declare, last = self.values, scope.names.setdefault, self._last_id
        idents, results = list[int](), list[int]()
        for start, end in zip([0, *heads.makes], heads.makes, strict=False):
            last = ident = last + 1
            idents.append(ident)
            for slot, name in enumerate(heads.outputs[start:end]):
                vid = declare(name, last + 1) if name else 0
                if vid > last:
                    last = vid
                    values[vid] = UnreadValue(vid, name, scope.id, [(ident, slot)] if slot else ident, self)
                elif vid:
                    values[vid].producers.append((ident, slot))
                results.append(vid)
            if last - ident != end - start:
                self._notes.odd[ident] = results[start:end]
        self._last_id = last
        return idents, results

    def _values_read(self, scope: Scope, heads: Heads, idents: list[int]) -> list[int]:
        """Ids of all inputs of nodes; 0 for those absent, captured, or computed later."""
        names, ends = scope.names, heads.reads
        if "" in names:
            reads = [names.get(name, 0) if name else 0 for name in heads.inputs]
        else:
            reads = list(map(names.get, heads.inputs, repeat(0)))
        readers = idents
        if ends != list(range(1, len(ends) + 1)):
            counts = zip(idents, [0, *ends], ends, strict=False)
            readers = [ident for ident, start, end in counts for _ in range(end - start)]
        if any(map(gt, reads, readers)):
            reads = [vid if vid < reader else 0 for vid, reader in zip(reads, readers, strict=True)]
        return reads

    def _note_names(self, heads: Heads, data: bytes) -> None:
        names = [data[start:end] for start, end in zip(heads.names, heads.signatures, strict=True)]
        self._notes.names.extend(map(hash, names))
        if not self.may_say_paths and data.find(b"/", heads.names[0], heads.ends[-1]) >= 0:
            self.may_say_paths = any(b"/" in name for name in names)

    def _read_signatures(self, nodes: list[NodeRecord], heads: Heads, data: bytes) -> Collection[int]:
        """Read what new nodes do; returns the ids of those that may have bodies."""
        places = zip(nodes, heads.signatures, heads.ends, strict=True)
        texts = [data[at:end] if node.inputs and end - at <= MAX_SIGNATURE else b"" for node, at, end in places]
        met = list(map(self._bodiless.get, texts))
        if all(met):
            self.signatures.update(zip([node.id for node in nodes], met, strict=True))  # type: ignore[arg-type]
            return ()
        owners = set()
        for node, text, at, end in zip(nodes, texts, heads.signatures, heads.ends, strict=True):
            if (known := self._bodiless.get(text)) is not None:
                self.signatures[node.id] = known
            elif self._read(node, data, at, end, text):
                types = [attribute.type for attribute in node.proto.attribute[:]]
                self._bodies[node.id] = wire_format.bodies(data, at, end, types)
                owners.add(node.id)
        return owners

    def _serialized(self, scope: Scope) -> tuple[bytes, int, int, int]:
        """Bytes with the nodes of a scope, where the first one begins, where the scope ends, and the nodes' tag."""
        tag = _NODES[scope.is_function]
        if scope.kind == "subgraph":
            data, start, end = next(self._bodies[scope.owner])  # in the order of the attributes
        else:
            data = self._model if scope.kind == "graph" else scope.proto.SerializeToString()
            start, end = 0, len(data)
        if scope.kind == "graph" and (at := wire_format.find(data, 0, end, _GRAPH)) < end:
            start, end = wire_format.extent(data, at)
        return data, wire_format.find(data, start, end, tag), end, tag

    def _read(self, node: NodeRecord, data: bytes, at: int, end: int, signature: bytes) -> bool:
        """Read what a new node does, from its signature, empty for a large one; True where it may have bodies."""
        if not self.may_say_paths:
            self.may_say_paths = wire_format.find(data, at, end, _METADATA) < end
        if not node.inputs:
            if (constant := wire_format.constant(data, at, end)) is not None:
                self.constants[node.id] = constant
                return False
            attributes = self.attributes[node.id] = node.proto.attribute[:]
            return not _have_no_graphs(attributes)
        if not _have_no_graphs(node.proto.attribute[:]):
            return True
        if signature:
            self.signatures[node.id] = self._bodiless[signature] = signature  # one object for equal signatures
        return False

    def _bind_nodes(self, scope: Scope, nodes: list[NodeRecord], ids: dict[str, int], image: ScopeImage | None) -> None:
        if self.rewired or image:
            super()._bind_nodes(scope, nodes, ids, image)
            return
        left, self._left = self._left, []
        for node, may_have_bodies, noted in left:
            if 0 in (inputs := node.inputs):
                self._bind_inputs(scope, node, ids)
                self._notes.reads[noted - len(inputs) : noted] = array("q", inputs)
            if may_have_bodies:
                self._bind_bodies(node, None)

    def _bind_inputs(self, scope: Scope, node: NodeRecord, ids: dict[str, int]) -> None:
        inputs = node.inputs
        for slot, name in enumerate(node.proto.input[:]):
            value = self.value_for_reading(scope, name, ids) if name else None
            inputs[slot] = value.id if value else 0
            if value and (value.id > node.id or value.scope != scope.id):
                self._connect(value, node.id, slot)


def _cut(flat: list[int], ends: list[int]) -> list[list[int]]:
    """The list of each node, from those of all nodes one after the other."""
    if ends == list(range(1, len(ends) + 1)):
        return [[ident] for ident in flat]
    return [flat[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _have_no_graphs(attributes: list[onnx.AttributeProto]) -> bool:
    if len(attributes) == 1:  # as of nearly all Constants
        return attributes[0].type not in GRAPH_KINDS
    return GRAPH_KINDS.isdisjoint([attribute.type for attribute in attributes])
