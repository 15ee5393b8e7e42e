"""The mutable graph model: protos as storage, an index beside them, edits as transactions.

Every other part of onnxlab works on a `ModelGraph`, which owns the live ModelProto. Messages are mutated in place, and
only by the changes of `changes.py`: a proto obtained from the graph may be read freely and must not be written.
"""

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.commits import CommitKind, GraphCommit
from onnxlab.graph.edit.script import ScriptStep, script_step
from onnxlab.graph.edit.snapshot import Snapshot, Snapshots
from onnxlab.graph.edit.transaction import EditableGraph, Transaction
from onnxlab.graph.index.deferred_interrupt import UNINTERRUPTED
from onnxlab.graph.index.networkx_view import Networks
from onnxlab.graph.index.readonly_index import GlanceIndex
from onnxlab.graph.index.records import Scope
from onnxlab.graph.state.change import Change
from onnxlab.graph.state.change_tracker import NO_TRANSACTION, ChangeTracker

_LEAN = 1024
"""Bytes of a file per node up to which serializing the model is faster than reading fields of its messages."""

_MANY = 200
"""Nodes from which on reading an index in one pass is faster: its setup takes 80 µs."""


class ModelGraph(EditableGraph):
    """One model being looked at and edited.

    Args:
        proto: the model; kept and mutated, not copied.
        base_dir: folder in which external data is looked for; None refuses to read any.
        shared: whether other code may read `proto` at any time, so that every edit must be written to it at once.
        size: bytes of the model's file, where known: the index of many nodes in few bytes is read in one pass.

    Attributes:
        networks: the graph as networkx sees it, scope by scope.
    """

    def __init__(
        self, proto: onnx.ModelProto, base_dir: Path | None = None, *, shared: bool = True, size: int | None = None
    ) -> None:
        count = len(proto.graph.node)
        if size is not None and count >= _MANY and size <= _LEAN * (1000 + count):
            self.index_type = GlanceIndex
        super().__init__(proto, base_dir, shared)
        self.networks = Networks(self.index, self.is_ge_dump)
        self._snapshots = Snapshots(self)
        self._edited = False

    # -- editing ----------------------------------------------------------------------------------------------------

    def edit(self, label: str = "", origin: Any = None) -> Transaction:
        """Open a transaction: `with graph.edit("swap activation"): …` is one undo step, all or nothing.

        Without a label, the transaction gets the label that the table of edits has for the edit in progress. A call of
        the transaction's `take_back` makes it a trial: all of its changes are taken back at the end.
        """
        if not isinstance(label, str):  # no journal with another label could be read
            raise EditError(f"the label of an edit is a string, got {label!r:.80}")
        if not self._edited:
            self._begin_editing()
        return Transaction(self, label, origin)

    def apply(self, *changes: Change, label: str = "", origin: Any = None) -> None:
        """Make changes as one edit, or as a part of the transaction that this thread has open."""
        active = self.transaction
        if active is not None and active.thread == threading.get_ident() and len(changes) == 1:
            active.apply(changes[0])  # all or nothing by itself
            return
        with self.edit(label, origin) as transaction:
            for change in changes:
                transaction.apply(change)

    def _begin_editing(self) -> None:
        self._edited = True
        self.index.forget_signatures()

    def undo(self, origin: Any = None) -> GraphCommit | None:
        """Take back the last edit; None where there is none.

        Raises:
            EditError: inside an edit, or where the history dropped the edit.
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
            EditError: inside an edit, or where the history dropped some of the edits; nothing is changed then.
        """
        with self.lock:
            self.history.refuse_dropped(position)
            while self.history.position > position and self.undo(origin):
                pass
            while self.history.position < position and self.redo(origin):
                pass

    def _refuse_inside_edit(self, action: str) -> None:
        if self.transaction is not None:
            raise EditError(f"cannot {action} inside the edit {self.transaction.label!r}; end it first")

    def replay(self, label: str, changes: Iterable[Change], origin: Any = None) -> GraphCommit:
        """Make an edit that was judged before; each change is asked for when those before it were applied."""
        with self.lock:
            self._refuse_inside_edit("replay an edit")
            return self._replay("edit", label, changes, origin)

    def _replay(self, kind: CommitKind, label: str, changes: Iterable[Change], origin: Any) -> GraphCommit:
        self._begin_editing()
        with UNINTERRUPTED:
            self.touch = touch = ChangeTracker(self.index, self.caches)
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

    # -- views ------------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """An immutable picture of the model as it is now, for a run; cheap after a small edit."""
        with self.lock:
            self.caches.keeps, self.caches.views = True, self._snapshots
            return self._snapshots.take(inside_edit=self.transaction is not None)

    def nx(self, scope: Scope | None = None) -> Any:
        """The live, read-only networkx.MultiDiGraph of a scope (default: the main graph)."""
        with self.lock:
            return self.networks.view(scope or self.main)
