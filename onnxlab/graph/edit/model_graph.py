"""The mutable graph model: protos as storage, an index beside them, edits as transactions.

`ModelGraph` is what every other part works on. It owns the live ModelProto; messages are mutated in place and only
through the changes of `changes.py`, so a proto obtained from it may be read freely and must not be written.
"""

import threading
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from onnxlab import schemas
from onnxlab.errors import EditError
from onnxlab.forking import fork_safe
from onnxlab.garbage_collection import no_collection
from onnxlab.graph.edit import names
from onnxlab.graph.edit.changes import Change, Target, keeps_wires
from onnxlab.graph.edit.commits import (
    NO_TRANSACTION,
    ChangeTracker,
    CommitKind,
    Completer,
    GraphCommit,
    Journal,
    Touched,
)
from onnxlab.graph.edit.deferred_nodes import NodeWriteBuffer
from onnxlab.graph.edit.history import History
from onnxlab.graph.edit.script import ScriptStep, script_step
from onnxlab.graph.edit.snapshot import NodeView, Snapshot, Snapshots
from onnxlab.graph.edit.transaction import Transaction
from onnxlab.graph.index.deferred_interrupt import UNINTERRUPTED
from onnxlab.graph.index.index import Index
from onnxlab.graph.index.networkx_view import Networks
from onnxlab.graph.index.readonly_index import GlanceIndex
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.protos import tensors

Follower = Callable[[GraphCommit], Any]

_LEAN = 1024
"""Bytes of a file for each of its nodes up to which serializing it is quicker than asking messages for fields."""


class ModelGraph:
    """One model being looked at and edited.

    Args:
        proto: the model; it is kept and mutated, not copied.
        base_dir: folder in which external data is looked for; None refuses to read any.
        shared: whether somebody else may look at `proto` at any time, so that every edit has to reach it at once.
        size: bytes of the file that it was read from, where that is known: of a lean one the index is read in one pass.

    Attributes:
        header: the ModelProto for all that is in it but the nodes of its graph, which may wait; see `proto`.
        lock: held during every edit; take it to read several things that must belong together.
        version: counts commits, undo and redo included.
        nodes, values, scopes: records by id; read-only for everybody but the changes.
        kept: what inference keeps of nodes beside the records, by whatever tells one from another, put there by
            `keep`; told with `forget_node(id)`, `forget_scope(id)` and `forget_value(id)` (of an initializer) what
            changes, and dropped when the meaning of all nodes may.
        keeps: whether anything was kept or pictured yet that has to be told.
        followers: called with each GraphCommit, in order, under the lock, after it is final. One that raises is
            reported as a warning and cut off.
        networks: the graph as networkx sees it, scope by scope.
        touch: where a change that is being applied notes what it touches; NO_TRANSACTION of an edit it refuses that.
        completer: what completes every edit before it is final, None where nothing does; undo and redo have it all.
        journal: where every commit is written down before it is final, None where nothing is.
    """

    index_type: Callable[[onnx.ModelProto], Index] = Index

    def __init__(
        self, proto: onnx.ModelProto, base_dir: Path | None = None, *, shared: bool = True, size: int | None = None
    ) -> None:
        if size is not None and size <= _LEAN * (1000 + len(proto.graph.node)):
            self.index_type = GlanceIndex
        self.header = proto
        self.base_dir = base_dir
        self.lock = fork_safe(threading.RLock())
        self.version = 0
        with no_collection():
            self.index = self.index_type(proto)
        self.nodes: dict[int, NodeRecord] = self.index.nodes
        self.values: dict[int, ValueRecord] = self.index.values
        self.scopes: dict[int, Scope] = self.index.scopes
        self.history = History(self.lock)
        self.followers: list[Follower] = []
        self.kept: dict[Any, Any] = {}
        self.keeps = False
        self.completer: Completer | None = None
        self.journal: Journal | None = None
        self.transaction: Transaction | None = None
        self.touch = NO_TRANSACTION
        self.networks = Networks(self.index)
        self.filing = NodeWriteBuffer(self, at_once=shared)
        self._snapshots = Snapshots(self)
        self._names = names.NodeNames(self)
        self.forget_name = self._names.forget
        self.name_tells = self._names.tells
        self._arrays: dict[int, np.ndarray[Any, Any]] = {}
        self._opsets: dict[int, dict[str, int]] = {}

    @property
    def proto(self) -> onnx.ModelProto:
        """The ModelProto with every edit in it. Whoever keeps it over edits asks for `share()`."""
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

    # -- editing ----------------------------------------------------------------------------------------------------

    def edit(self, label: str, origin: Any = None) -> Transaction:
        """Open a transaction: `with graph.edit("swap activation"): …` is one undo step, all or nothing."""
        self.index.forget_signatures()
        return Transaction(self, label, origin)

    def about_to_apply(self, change: Change) -> None:
        """Let the index note who reads what, before a change that may change that."""
        if not keeps_wires(self, change):
            self.index.note_uses()

    def apply(self, *changes: Change, label: str = "edit", origin: Any = None) -> None:
        """Make changes as one edit, or as a part of the transaction that this thread has open."""
        active = self.transaction
        if active is not None and active.thread == threading.get_ident() and len(changes) == 1:
            active.apply(changes[0])  # all or nothing by itself
            return
        with self.edit(label, origin) as transaction:
            for change in changes:
                transaction.apply(change)

    def undo(self, origin: Any = None) -> GraphCommit | None:
        """Take back the last edit; None where there is none.

        Raises:
            EditError: inside an edit, or where the history had to drop it.
        """
        with self.lock:
            self._refuse_inside_edit("undo")
            step = self.history.next_undo()
            return self._replay("undo", step.label, reversed(step.changes), origin) if step else None

    def redo(self, origin: Any = None) -> GraphCommit | None:
        """Make the edit again that was undone last; None where there is none."""
        with self.lock:
            self._refuse_inside_edit("redo")
            step = self.history.next_redo()
            return self._replay("redo", step.label, reversed(step.changes), origin) if step else None

    def travel(self, position: int, origin: Any = None) -> None:
        """Undo or redo step by step until `position` edits lie between the loaded state and this one.

        Raises:
            EditError: inside an edit, or where the history had to drop some of them; nothing is done then.
        """
        with self.lock:
            self.history.refuse_dropped(position)
            while self.history.position > position and self.undo(origin):
                pass
            while self.history.position < position and self.redo(origin):
                pass

    def _refuse_inside_edit(self, what: str) -> None:
        if self.transaction is not None:
            raise EditError(f"cannot {what} inside the edit {self.transaction.label!r}; end it first")

    def replay(self, label: str, changes: Iterable[Change], origin: Any = None) -> GraphCommit:
        """Make an edit that was judged before; each change is asked for when those before it were applied."""
        with self.lock:
            self._refuse_inside_edit("replay an edit")
            return self._replay("edit", label, changes, origin)

    def _replay(self, kind: CommitKind, label: str, changes: Iterable[Change], origin: Any) -> GraphCommit:
        self.index.forget_signatures()
        with UNINTERRUPTED:
            self.touch = touch = ChangeTracker(self)
            self.index.gone.clear()
            journal = self.journal
            written = journal is not None and not journal.knows(kind)
            inverses: list[Change] = []
            notes: list[Any] = []
            deeds: list[ScriptStep] = []
            try:
                for change in changes:
                    if kind == "edit":
                        deeds.append(script_step(self, change))
                    if journal is not None and written:
                        notes.append(journal.note(change))
                    self.about_to_apply(change)
                    inverses.append(change.apply(self))
                if journal is not None:
                    journal.append(kind, label, notes, origin)
            except BaseException:
                for inverse in reversed(inverses):
                    inverse.apply(self)
                raise
            finally:
                self.touch = NO_TRANSACTION
            return self.commit(kind, label, tuple(inverses), touch.freeze(), origin, tuple(deeds))

    def commit(
        self, kind: CommitKind, label: str, inverses: tuple[Change, ...], touched: Touched, origin: Any,
        deeds: tuple[ScriptStep, ...] = (),
    ) -> GraphCommit:  # fmt: skip
        """Record an edit that was made and tell the followers. Only transactions and undo call this."""
        if kind == "edit":
            self.history.record(label, inverses, deeds)
        elif kind == "undo":
            self.history.undone(inverses)
        else:
            self.history.redone(inverses)
        self.version += 1
        done = GraphCommit(self.version, label, kind, inverses, touched, origin)
        if self.followers:
            self._tell(done)
        if self.history.news:
            self.history.tell()
        return done

    def _tell(self, done: GraphCommit) -> None:
        for follower in list(self.followers):
            try:
                follower(done)
            except Exception as error:
                self.followers.remove(follower)
                name = getattr(follower, "__qualname__", repr(follower))
                warnings.warn(f"{name} failed to follow {done.label!r} and was cut off: {error!r}", stacklevel=3)

    # -- looking up -------------------------------------------------------------------------------------------------

    def resolve_node(self, key: int | str) -> int:
        """Id of the node that a key means: see `names.NodeNames`."""
        return self._names.resolve(key)

    def resolve_value(self, key: str) -> int:
        """Id of the value that a name means, in the main graph or, as in "if_3/then/x", in a scope."""
        return names.resolve_value(self, key)

    def nodes_called(self, scope: Scope, name: str) -> list[int]:
        """Ids of the nodes of a scope that have a name, in file order."""
        return self._names.nodes_called(scope, name)

    def label(self, node: NodeRecord) -> str:
        """How messages call a node: its name, or operator and position ("Conv#12") where it has none."""
        return node.name or self.label_by_place(node)

    def label_by_place(self, node: NodeRecord) -> str:
        """Operator and position of a node: "Conv#12"."""
        return f"{node.op_type}#{self.scopes[node.scope].position(node)}"

    def scope_path(self, scope: Scope) -> str:
        """Names of the owners and attributes that lead to a scope: "if_3/then_branch", "" for the main graph."""
        return names.scope_path(self, scope)

    def root(self, scope: Scope) -> Scope:
        """The main graph or function that a scope is in."""
        return self.index.root_of(scope)

    def opset_version(self, domain: str, scope: Scope | None = None) -> int | None:
        """Version of a domain that the model (or the function around `scope`) imports, None if it does not.

        A model of before opsets, of IR version 1 or 2 and without imports, has version 1 of ai.onnx.
        """
        root = self.index.root_of(scope) if scope else self.main
        imports = self._opsets.get(root.id)
        if imports is None:
            source = root.proto if root.is_function else self.header
            imports = {
                ("" if entry.domain == "ai.onnx" else entry.domain): entry.version for entry in source.opset_import
            }
            if not (imports or root.is_function) and 0 < self.header.ir_version < 3:
                imports = {"": 1}
            self._opsets[root.id] = imports
        return imports.get("" if domain == "ai.onnx" else domain)

    def schema(self, node: NodeRecord) -> schemas.Schema | None:
        """Schema of a node's operator at the opset version that its scope imports, None if there is none."""
        domain, op_type = node.domain, node.proto.op_type
        version = self.opset_version(domain, self.scopes[node.scope])
        return None if version is None else schemas.find(domain, op_type, version)

    def array(self, value: int) -> "np.ndarray[Any, Any] | None":
        """The data of an initializer as a read-only array (dense also for a sparse one), decoded once; None for others.

        Raises:
            LoadError: external data is missing, too short or outside of the model's folder.
        """
        array = self._arrays.get(value)
        if array is None:
            tensor = self.values[value].initializer
            if tensor is None:
                return None
            with self.lock:
                array = self._arrays[value] = tensors.to_array(tensor, self.base_dir)
        return array

    def snapshot(self) -> Snapshot:
        """An immutable picture of the model as it is now, for a run; cheap after a small edit."""
        with self.lock:
            self.keeps = True
            return self._snapshots.take()

    def nx(self, scope: Scope | None = None) -> Any:
        """The live, read-only networkx.MultiDiGraph of a scope (default: the main graph)."""
        with self.lock:
            return self.networks.view(scope or self.main)

    # -- what the changes need --------------------------------------------------------------------------------------

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

    # -- dropping what is cached ------------------------------------------------------------------------------------

    def keep(self, key: Any, thing: Any) -> None:
        """Put into `kept` what is to be told of edits from now on."""
        self.kept[key] = thing
        self.keeps = True

    def forget_node(self, node: NodeRecord) -> None:
        self._snapshots.forget_node(node)
        for kept in self.kept.values():
            kept.forget_node(node.id)

    def forget_all_nodes(self) -> None:
        self._snapshots.forget_all()
        self._opsets.clear()
        self.kept.clear()

    def forget_scope(self, scope: int) -> None:
        for kept in self.kept.values():
            kept.forget_scope(scope)
        self._snapshots.forget_scope(scope)

    def keep_array(self, value: int, array: "np.ndarray[Any, Any]") -> None:
        """Know already what the tensor of an initializer holds, which nobody writes to."""
        self._arrays[value] = array

    def forget_data(self, scope: int, value: int) -> None:
        """Drop what is cached of the data of an initializer of a scope."""
        self.forget_array(value)
        for kept in self.kept.values():
            kept.forget_scope(scope)
        self._snapshots.forget_data(value)

    def forget_array(self, value: int) -> None:
        self._arrays.pop(value, None)
        for kept in self.kept.values():
            kept.forget_value(value)


__all__ = ["Follower", "ModelGraph", "NodeView"]
