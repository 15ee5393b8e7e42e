"""An immutable picture of a model, undisturbed by edits: for a run, a partition, an export.

Views of nodes are made once and kept until their node is touched, so that taking a snapshot after a small edit costs
little. Attributes are decoded when they are first read; the messages that they are read from are never overwritten.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import proxy, ref

import numpy as np
import onnx

from onnxlab.graph.index.index import FunctionKey, function_key
from onnxlab.graph.index.records import NodeRecord, Scope, ScopeKind
from onnxlab.graph.protos import glow_dialect, tensors
from onnxlab.graph.protos.attributes import AttributeRef, BodyRef, decode
from onnxlab.graph.protos.long_lists import LISTS, LongList, long_list
from onnxlab.graph.state.graph_state import GraphState


class SnapshotAttributes(Mapping[str, Any]):
    """The attributes that a node sets, decoded on first access; graphs are BodyRef or a list of these.

    Bytes that are no UTF-8 are surrogates in a string, as those of string tensors.
    `bodies` lists all BodyRefs without decoding anything. `implied` has attributes that the node leaves out: in Glow's
    dialect, the scale and offset of quantized inputs. `implied` is None for most nodes.
    """

    __slots__ = ("_protos", "_values", "bodies", "implied")

    def __init__(self, node: NodeRecord, implied: Mapping[str, Any] | None = None) -> None:
        self.implied = implied
        self._protos = {attribute.name: attribute for attribute in node.proto.attribute}
        self._values: dict[str, Any] = {}
        for name, bodies in node.bodies.items():
            refs = [BodyRef(body) for body in bodies]
            self._values[name] = refs[0] if self._protos[name].type == onnx.AttributeProto.GRAPH else refs
        if node.domain:  # edits overwrite lists in place there: a LongList keeps its items
            for name, attribute in self._protos.items():
                if attribute.type in LISTS and (items := long_list(attribute)) is not None:
                    self._values[name] = items
        self.bodies = tuple(BodyRef(body) for bodies in node.bodies.values() for body in bodies)

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            implied = self.implied is not None and name in self.implied
            self._values[name] = self.implied[name] if implied else _decoded(self._protos[name])  # type: ignore[index]
        return self._values[name]

    def proto(self, name: str) -> onnx.AttributeProto:
        """The message itself, to be read only."""
        value = self._values.get(name)
        return value.items.message() if isinstance(value, LongList) else self._protos[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._protos if self.implied is None else [*self._protos, *self.implied])

    def __len__(self) -> int:
        return len(self._protos) + len(self.implied or ())

    def __repr__(self) -> str:
        return repr(dict(self))


def _decoded(attribute: onnx.AttributeProto) -> Any:
    value = decode(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if attribute.type == onnx.AttributeProto.STRINGS and isinstance(value, list) and bytes in map(type, value):
        return [item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else item for item in value]
    return value


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class NodeView:
    """A node as it was when the snapshot was taken.

    Attributes:
        label: the node's name, or operator and position where it has none; for messages.
        since_version: since_version of the operator's schema, 0 where there is none.
        input_ids, output_ids: value ids, parallel to `inputs` and `outputs`; 0 where those are "" (absent).
        stamp: differs from the stamp of every other state of this node.
    """

    id: int
    name: str
    label: str
    op_type: str
    domain: str
    overload: str
    since_version: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    attributes: SnapshotAttributes
    stamp: int


@dataclass(frozen=True, slots=True, eq=False)
class ScopeView:
    """A graph or function: nodes in topological order, names of its inputs, outputs and initializers.

    Attributes:
        input_ids, output_ids: ids of the values, parallel to `inputs` and `outputs`.
        initializers: value id by name.
        captures: (name, value id) of values read inside, bodies included, but defined outside.
        opsets: opset version by domain ("" is ai.onnx) that nodes inside use.
        attribute_defaults: formal attributes of a function that have a default value.
        attribute_names: formal attributes of a function without default.
        output_types: serialized types of the outputs as a node's body declares them; empty for other scopes.
    """

    id: int
    kind: ScopeKind
    name: str
    path: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    initializers: Mapping[str, int]
    nodes: tuple[NodeView, ...]
    captures: tuple[tuple[str, int], ...]
    opsets: Mapping[str, int]
    attribute_defaults: Mapping[str, Any] = field(default_factory=dict)
    attribute_names: tuple[str, ...] = ()
    output_types: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """All scopes of a model at one version."""

    version: int
    main: ScopeView
    scopes: Mapping[int, ScopeView]
    functions: Mapping[FunctionKey, ScopeView]
    _tensors: Mapping[int, Any]
    _arrays: dict[int, "np.ndarray[Any, Any]"]
    _base_dir: Any
    _token: object = field(default_factory=object)
    _since: object = None  # token of an earlier snapshot that differs in no more than `_replaced`
    _replaced: tuple[int, ...] = ()  # value ids of tensors

    def array(self, value: int) -> "np.ndarray[Any, Any]":
        """Data of an initializer by value id: read-only, decoded once and shared with later snapshots.

        Raises:
            KeyError: the value is no initializer.
            LoadError: external data is missing, too short or outside of the model's folder.
        """
        array = self._arrays.get(value)
        if array is None:
            array = self._arrays[value] = tensors.to_array(self._tensors[value], self._base_dir)
        return array

    def other_tensors(self, before: "Snapshot") -> list[int]:
        """Value ids of the initializers that are not the same messages as in an earlier snapshot."""
        known = before._tensors
        if before._token is self._since:
            return [value for value in self._replaced if known.get(value) is not self._tensors[value]]
        return [value for value, tensor in self._tensors.items() if known.get(value) is not tensor]

    @property
    def base_dir(self) -> Any:
        """The folder that external data must be in, None for a model without one."""
        return self._base_dir

    def is_read(self, value: int) -> bool:
        """Whether the data of an initializer is in memory already."""
        return value in self._arrays

    def tensor(self, value: int) -> Any:
        """The TensorProto or SparseTensorProto of an initializer by value id."""
        return self._tensors[value]


class Snapshots:
    """Makes snapshots of one graph and keeps what did not change between them."""

    def __init__(self, graph: GraphState) -> None:
        self._graph: GraphState = proxy(graph)  # a proxy: the graph refers to this object
        self._whole = ref(graph)
        self._nodes: dict[int, NodeView] = {}
        self._scopes: dict[int, ScopeView] = {}
        self._last: Snapshot | None = None
        self._like: Snapshot | None = None  # a snapshot that differs only in the data of initializers
        self._replaced: set[int] = set()  # value ids of these initializers
        self._stamp = 0

    def forget_node(self, node: NodeRecord) -> None:
        """Drop the view of a node and of its scope."""
        self._nodes.pop(node.id, None)
        self.forget_scope(node.scope)

    def forget_scope(self, scope: int) -> None:
        """Drop a scope's view, and those around it, which list captures."""
        self._last = self._like = None
        while scope and self._scopes.pop(scope, None) is not None:
            scope = self._graph.scopes[scope].parent if scope in self._graph.scopes else 0

    def forget_data(self, value: int) -> None:
        """Drop the tensor of an initializer; every view stays as it is."""
        self._last = None
        self._replaced.add(value)

    def forget_all(self) -> None:
        """Drop all views."""
        self._last = self._like = None
        self._nodes.clear()
        self._scopes.clear()

    def take(self, inside_edit: bool) -> Snapshot:
        """The model as it is now; `inside_edit` it is not kept for others, since the version stays as it is."""
        graph = self._graph
        if self._last is not None and self._last.version == graph.version and not inside_edit:
            return self._last
        if glow_dialect.is_dialect(graph.header):  # doc strings of the dialect affect the results
            self._like = None
            self._scopes.clear()
        like = self._like
        if like is not None:
            scopes, functions, initializers = like.scopes, like.functions, dict(like._tensors)
            initializers.update((vid, graph.values[vid].initializer) for vid in self._replaced)
        else:
            scopes = {scope.id: self._scopes.get(scope.id) or self._view(scope) for scope in graph.scopes.values()}
            functions = {key: scopes[scope] for key, scope in graph.index.functions.items()}
            ids = [vid for scope in scopes.values() for vid in scope.initializers.values()]
            initializers = {vid: graph.values[vid].initializer for vid in ids}
        arrays = graph.caches.arrays
        if not arrays.keys() <= initializers.keys():
            arrays = {vid: array for vid, array in arrays.items() if vid in initializers}
        snapshot = Snapshot(
            graph.version, scopes[graph.main.id], scopes, functions, initializers,
            _Shared(arrays, self._whole, initializers), graph.base_dir,
            _since=like and like._token, _replaced=tuple(self._replaced) if like is not None else (),
        )  # fmt: skip
        self._last = None if inside_edit else snapshot
        self._like = snapshot
        self._replaced.clear()
        return snapshot

    def _view(self, scope: Scope) -> ScopeView:
        graph = self._graph
        values = graph.values
        opset = {"": 1} if not scope.is_function else {}
        root = graph.root(scope)
        for entry in (root.proto if root.is_function else graph.header).opset_import:
            opset["" if entry.domain == "ai.onnx" else entry.domain] = entry.version
        defaults: dict[str, Any] = {}
        names: tuple[str, ...] = ()
        if scope.is_function:
            defaults = {attribute.name: decode(attribute) for attribute in scope.proto.attribute_proto}
            names = tuple(scope.proto.attribute)
        order = graph.index.topological(scope)
        implied = self._implied(scope, order)
        nodes: tuple[Any, ...] = tuple(map(self._nodes.get, order))
        if implied is not None:
            nodes = tuple(
                view if view is not None and view.attributes.implied == implied.get(view.id) else None for view in nodes
            )
        if None in nodes:  # an edit of data alone leaves all views as they were
            nodes = tuple(view or self._node(scope, node, implied) for view, node in zip(nodes, order, strict=True))
        view = ScopeView(
            scope.id, scope.kind, scope.name, graph.scope_path(scope),
            tuple(values[vid].name for vid in scope.inputs), tuple(values[vid].name for vid in scope.outputs),
            tuple(scope.inputs), tuple(scope.outputs),
            {values[vid].name: vid for vid in self._initializer_ids(scope)}, nodes, self._captures(scope), opset,
            defaults, names, _output_types(scope),
        )  # fmt: skip
        self._scopes[scope.id] = view
        return view

    def _implied(self, scope: Scope, order: Iterable[int]) -> dict[int, dict[str, Any]] | None:
        """The quantization of what nodes read, by node, for a graph in Glow's dialect."""
        if scope.is_function or not glow_dialect.is_dialect(self._graph.header):
            return None
        described = (*scope.proto.input, *scope.proto.initializer)
        return glow_dialect.input_quantization([(node, self._graph.nodes[node].proto) for node in order], described)

    def _initializer_ids(self, scope: Scope) -> list[int]:
        if scope.is_function:
            return []
        names = [tensor.name for tensor in scope.proto.initializer]
        names += [sparse.values.name for sparse in scope.proto.sparse_initializer]
        return [scope.names[name] for name in names]

    def _captures(self, scope: Scope) -> tuple[tuple[str, int], ...]:
        if not scope.parent:
            return ()
        graph = self._graph
        reads: dict[int, None] = {}
        for node_id in scope.node_ids:
            node = graph.nodes[node_id]
            reads.update((vid, None) for vid in [*node.inputs, *graph.index.captures(node)] if vid)
        reads.update((vid, None) for vid in scope.outputs)
        outside = [vid for vid in reads if not graph.index.is_inside(graph.values[vid].scope, scope.id)]
        return tuple((graph.values[vid].name, vid) for vid in outside)

    def _node(self, scope: Scope, node_id: int, implied: Mapping[int, Any] | None = None) -> NodeView:
        graph = self._graph
        node = graph.nodes[node_id]
        proto = node.proto
        schema = None if function_key(proto) in graph.index.functions else graph.schema(node)
        self._stamp += 1
        view = NodeView(
            node_id, proto.name, graph.label(node), proto.op_type, node.domain, proto.overload,
            schema.since_version if schema else 0, tuple(proto.input), tuple(proto.output),
            tuple(node.inputs), tuple(node.outputs),
            SnapshotAttributes(node, (implied or {}).get(node_id)), self._stamp,
        )  # fmt: skip
        self._nodes[node_id] = view
        return view


class _Shared(dict[int, "np.ndarray[Any, Any]"]):
    """Arrays of a snapshot; one decoded here is kept by the graph too while the initializer is still the same."""

    def __init__(
        self, arrays: "dict[int, np.ndarray[Any, Any]]", graph: "ref[GraphState]", protos: Mapping[int, Any]
    ) -> None:
        super().__init__(arrays)
        self._graph = graph  # the graph refers to the last snapshot
        self._protos = protos

    def __setitem__(self, value: int, array: "np.ndarray[Any, Any]") -> None:
        super().__setitem__(value, array)
        graph = self._graph()
        record = graph.values.get(value) if graph is not None else None
        if graph is not None and record is not None and record.initializer is self._protos[value]:
            graph.caches.arrays[value] = array


__all__ = ["AttributeRef", "BodyRef", "NodeView", "ScopeView", "Snapshot", "SnapshotAttributes", "Snapshots"]


def _output_types(scope: Scope) -> tuple[bytes, ...]:
    if not scope.parent:
        return (b"",) * len(scope.outputs)
    return tuple(info.type.SerializeToString() for info in scope.proto.output)
