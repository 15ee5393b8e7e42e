"""The state that changes act on: the protos, the index over them, names, and what is cached of these."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import onnx

from onnxlab import schemas
from onnxlab.forking import fork_safe
from onnxlab.garbage_collection import no_collection
from onnxlab.graph.index.index import Index
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.protos import ge_dump, tensors
from onnxlab.graph.state.change_tracker import NO_TRANSACTION, Caches, Target
from onnxlab.graph.state.deferred_nodes import NodeWriteBuffer
from onnxlab.graph.state.names import Names

DeclarationKind = Literal["input", "output", "value_info"]


class DeclarationPlace(NamedTuple):
    """The place of a value's declaration, as `SetTypes` takes it, and its message."""

    scope: int
    kind: DeclarationKind
    at: int | str
    info: onnx.ValueInfoProto


class GraphState:
    """One model as it is now.

    Args:
        proto: the model; kept and mutated, not copied.
        base_dir: folder in which external data is looked for; None refuses to read any.
        shared: whether other code may read `proto` at any time, so that every edit must be written to it at once.

    Attributes:
        header: the ModelProto, for access to all but the nodes of its graph, which may be deferred; see `proto`.
        is_ge_dump: whether the model was read as a dump of GE, whose nodes onnx does not know.
        lock: held during every edit; to be held while several reads must be consistent.
        version: counts commits, undo and redo included.
        nodes, values, scopes: records by id; only the changes write to them.
        names: look-up of nodes, values and scopes by name.
        caches: derived data, which changes drop.
        touch: the tracker in which changes note what they touch; NO_TRANSACTION, which refuses, outside of an edit.
    """

    index_type: Callable[[onnx.ModelProto], Index] = Index

    def __init__(self, proto: onnx.ModelProto, base_dir: Path | None, shared: bool) -> None:
        self.header = proto
        self.is_ge_dump = ge_dump.is_dump(proto)
        self.base_dir = base_dir
        self.lock = fork_safe(threading.RLock())
        self.version = 0
        with no_collection():
            self.index = self.index_type(proto)
        self.nodes: dict[int, NodeRecord] = self.index.nodes
        self.values: dict[int, ValueRecord] = self.index.values
        self.scopes: dict[int, Scope] = self.index.scopes
        self.names = Names(self.index, self.lock)
        self.caches = Caches(self.names)
        self.touch = NO_TRANSACTION
        self.filing = NodeWriteBuffer(self.index, self.lock, at_once=shared)

    @property
    def proto(self) -> onnx.ModelProto:
        """The ModelProto with every edit in it. To keep it over edits, ask for `share()`."""
        self.filing.settle()
        return self.header

    def share(self) -> onnx.ModelProto:
        """The ModelProto, live: from now on every edit reaches it at once."""
        self.filing.settle(at_once=True)
        return self.header

    @property
    def main(self) -> Scope:
        """The scope of the model's graph."""
        return self.index.main

    # -- names ------------------------------------------------------------------------------------------------------

    def resolve_node(self, key: int | str) -> int:
        """Id of the node that a key means: see `Names`."""
        return self.names.resolve_node(key)

    def resolve_value(self, key: str) -> int:
        """Id of the value that a name means, in the main graph or, as in "if_3/then/x", in a scope."""
        return self.names.resolve_value(key)

    def label(self, node: NodeRecord) -> str:
        """A node's name in messages: its own, or operator and position ("Conv#12") where it has none."""
        return node.name or self.names.label_by_place(node)

    def scope_path(self, scope: Scope) -> str:
        """Names of the owners and attributes that lead to a scope: "if_3/then_branch", "" for the main graph."""
        return self.names.scope_path(scope)

    # -- operators --------------------------------------------------------------------------------------------------

    def root(self, scope: Scope) -> Scope:
        """The main graph or function that a scope is in."""
        while scope.parent:
            scope = self.scopes[scope.parent]
        return scope

    def opset_version(self, domain: str, scope: Scope | None = None) -> int | None:
        """Version of a domain that the model (or the function around `scope`) imports, None if it does not.

        A model older than opsets, with IR version 1 or 2 and without imports, has version 1 of ai.onnx.
        """
        root = self.root(scope) if scope else self.main
        imports = self.caches.opsets.get(root.id)
        if imports is None:
            source = root.proto if root.is_function else self.header
            imports = {
                ("" if entry.domain == "ai.onnx" else entry.domain): entry.version for entry in source.opset_import
            }
            if not (imports or root.is_function) and 0 < self.header.ir_version < 3:
                imports = {"": 1}
            self.caches.opsets[root.id] = imports
        return imports.get("" if domain == "ai.onnx" else domain)

    def schema(self, node: NodeRecord) -> schemas.Schema | None:
        """Schema of a node's operator at the opset version that its scope imports, None if there is none."""
        caches, domain, op_type = self.caches, node.proto.domain, node.proto.op_type
        if caches.generation != schemas.registry.generation:
            caches.schemas.clear()
            caches.generation = schemas.registry.generation
        schema = caches.schemas.get((node.scope, domain, op_type))
        if schema is None:
            version = self.opset_version(domain, self.scopes[node.scope])
            schema = None if version is None else schemas.find(domain, op_type, version)
            if schema is not None:  # not cached where None: a schema may be registered later
                caches.schemas[node.scope, domain, op_type] = schema
        return schema

    # -- messages and data ------------------------------------------------------------------------------------------

    def target(self, target: Target) -> Any:
        """The message that a `SetField` changes."""
        kind, ident = target
        if kind == "model":
            return self.header
        if kind == "training":
            return self.header.training_info[ident]
        if kind == "tensor":
            return self.values[ident].tensor
        return self.nodes[ident].proto if kind == "node" else self.scopes[ident].proto

    def declared_at(self, value: ValueRecord) -> Iterator[DeclarationPlace]:
        """All places where a value is declared, but for an input of the model."""
        scope = self.scopes[value.scope]
        if value.is_input and scope.kind == "subgraph":
            position = scope.inputs.index(value.id)
            yield DeclarationPlace(scope.id, "input", position, scope.proto.input[position])
        elsewhere = value.is_input and not scope.is_function
        for ident, position in value.formal_outputs:
            where = self.scopes[ident]
            if not where.is_function:
                elsewhere |= ident == scope.id
                yield DeclarationPlace(ident, "output", position, where.proto.output[position])
        if not elsewhere:
            if value.info is not None:
                yield DeclarationPlace(scope.id, "value_info", value.name, value.info)
        elif len(scope.proto.value_info) and not value.is_input:
            for position in scope.places("value_info").positions(value.name):
                yield DeclarationPlace(scope.id, "value_info", position, scope.proto.value_info[position])

    def array(self, value: int) -> "np.ndarray[Any, Any] | None":
        """The data of an initializer as a read-only array (dense also for a sparse one), decoded once; None for others.

        Raises:
            LoadError: external data is missing, too short or outside of the model's folder.
        """
        array = self.caches.arrays.get(value)
        if array is None:
            tensor = self.values[value].initializer
            if tensor is None:
                return None
            with self.lock:
                array = self.caches.arrays[value] = tensors.to_array(tensor, self.base_dir)
        return array
