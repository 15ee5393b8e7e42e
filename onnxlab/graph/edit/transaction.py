"""A graph with its history, journal and followers, and an edit of it in progress.

The changes of an edit are applied one by one, judged together, and kept or taken back as a whole.
"""

import threading
import warnings
from collections.abc import Callable, Collection
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit import validation
from onnxlab.graph.edit.changes import SetAttribute, SetField, keeps_handles
from onnxlab.graph.edit.commits import CommitKind, CommitLog, Completer, GraphCommit, OpenEdit
from onnxlab.graph.edit.history import History
from onnxlab.graph.edit.ir_versions import INITIALIZERS_SINCE, raise_for_initializers
from onnxlab.graph.edit.orphans import remove_orphans
from onnxlab.graph.edit.reordering import restore_order
from onnxlab.graph.edit.script import Recorded, ScriptStep, script_step, without_copy
from onnxlab.graph.index.deferred_interrupt import UNINTERRUPTED
from onnxlab.graph.protos.name_bytes import unwritable
from onnxlab.graph.state.change import Change
from onnxlab.graph.state.change_tracker import NO_TRANSACTION, ChangeTracker, Touched
from onnxlab.graph.state.graph_state import GraphState

Follower = Callable[[GraphCommit], Any]


class EditableGraph(GraphState):
    """A graph whose edits are recorded and told.

    Attributes:
        transaction: the outermost edit in progress.
        recorded: the edit of the table in progress, None where there is none.
        read_only: the reason why edits are refused, "" where they are accepted.
        uninferred: the reason why types are those of the file and operators not ONNX's, "" where types are inferred.
        followers: called with each final GraphCommit, in order, under the lock. A follower that raises is reported as a
            warning and removed.
        completer: completes every edit before it is final, or None; undo and redo include its changes.
        journal: the log to which every commit is written before it is final, or None.
    """

    def __init__(self, proto: onnx.ModelProto, base_dir: Path | None, shared: bool) -> None:
        super().__init__(proto, base_dir, shared)
        self.history = History(self.lock)
        self.followers: list[Follower] = []
        self.completer: Completer | None = None
        self.journal: CommitLog | None = None
        self.transaction: OpenEdit | None = None
        self.recorded: Recorded | None = None
        self.read_only = ""
        self.uninferred = ""

    def about_to_apply(self, change: Change) -> None:
        """Let the index and the history know before a change of what nodes read, or of what they are called."""
        kind = type(change)
        if kind is SetAttribute and change.keeps_wires(self):  # type: ignore[attr-defined]
            return
        self.index.before_change()
        if not keeps_handles(self, change):
            self.history.write_late()
        if not (self.index.rewired or (kind is SetField and change.target[0] == "node")):  # type: ignore[attr-defined]
            self.index.before_rewiring()

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


class Transaction:
    """The context manager that `ModelGraph.edit` returns.

    Leaving the block commits one undo step; an exception, KeyboardInterrupt included, takes back every change made in
    the block. A transaction inside another one of the same thread can fail alone, but is committed with the outer one.
    """

    def __init__(self, graph: EditableGraph, label: str = "", origin: Any = None) -> None:
        self._graph = graph
        self.label = label
        self.origin = origin
        self.inverses: list[Change] = []
        self._notes: list[Any] = []  # the journal's notes on each change, parallel to `inverses`
        self._deeds: list[ScriptStep] = []  # the changes as the script of the history needs them
        self.thread = 0
        self._is_tried = False
        self._outer: Transaction | None = None
        self._savepoint = self._deeds_before = 0
        self.touch: ChangeTracker
        self.problems: validation.Problems
        self._completed_by: Completer | None = None

    def __enter__(self) -> "Transaction":
        if self._graph.read_only:
            raise EditError(self._graph.read_only)
        held = False
        try:
            UNINTERRUPTED.hold()
            try:
                self._graph.lock.acquire()
                held = True
                UNINTERRUPTED.arm()
                self.thread = threading.get_ident()
                self._begin()
            finally:
                UNINTERRUPTED.release()
        except KeyboardInterrupt:  # SIGINT was held back until here; __exit__ is not called for a block not entered
            if held:  # else the interrupt came before `hold`
                if self._outer is None:
                    self._close()
                self._graph.lock.release()
                with UNINTERRUPTED:
                    UNINTERRUPTED.disarm()
            raise
        return self

    def _begin(self) -> None:
        """Note where it begins. Without a label it is called what the table calls the edit that is being made."""
        graph = self._graph
        outer = self._outer = cast("Transaction | None", graph.transaction)
        if graph.recorded is not None:
            self.label = self.label or graph.recorded.label
            if outer is not None:  # the first of several edits gives the label
                outer.label = outer.label or graph.recorded.label
        if outer is not None:
            self.touch, self._savepoint, self._deeds_before = outer.touch, len(outer.inverses), len(outer._deeds)
            return
        self.problems = validation.Problems(graph)
        graph.index.new_edges.clear()
        graph.index.gone.clear()
        self.touch = graph.touch = ChangeTracker(graph.index, graph.caches)
        graph.transaction = self

    def apply(self, change: Change, statement: str | None = "") -> Any:
        """Make one change now and return its inverse; the edit is judged when the transaction ends.

        `statement` is the script's statement for the change, where the change alone does not determine it; None where
        the rest of the edit entails the change.
        """
        active = self._outer or self
        graph = self._graph
        UNINTERRUPTED.hold()
        try:
            note = done = None
            if not active._is_tried:
                note = graph.journal.note(change) if graph.journal else None
                is_recorded = statement is None or (graph.recorded is not None and graph.recorded.exact)
                done = None if is_recorded else script_step(graph, change, statement or "")
            graph.about_to_apply(change)
            inverse = change.apply(graph)
            active.inverses.append(inverse)
            active._notes.append(note)
            if done is not None:
                active._deeds.append(without_copy(graph, done))
        except UnicodeEncodeError as error:
            raise unwritable(error) from None
        finally:
            UNINTERRUPTED.release()
        return inverse

    def take_back(self) -> None:
        """Let the edit only be tried: when it is left, nothing of it stays, and from now on nothing is written down."""
        self._is_tried = True

    def sum_up(self, recorded: Recorded) -> None:
        """Give the history one statement for all that was done since this transaction was entered."""
        active = self._outer or self
        deeds, first = active._deeds, self._deeds_before
        if not recorded.text or len(active.inverses) == self._savepoint:
            return
        if recorded.exact:
            deeds[first:] = [ScriptStep(None, "", True, recorded.text, recorded.shown)]
        else:
            for number in range(first, len(deeds)):
                deeds[number] = deeds[number]._replace(shown=recorded.text if number == first else None)

    def _single(self) -> Recorded | None:
        """The one statement that was made in this transaction, None where there were others, or changes."""
        if not self._deeds:
            return None
        first, *rest = self._deeds
        if first.change is None:
            return None if rest else Recorded("", first.said or "", True, first.shown or "")
        whole = first.shown and all(deed.shown is None for deed in rest)
        return Recorded("", first.shown or "") if whole else None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        UNINTERRUPTED.hold()
        try:
            if self._outer is not None:
                if kind is not None or self._is_tried:
                    self._roll_back(self._outer.inverses, self._savepoint)
                    del self._outer._notes[self._savepoint :]
                    del self._outer._deeds[self._deeds_before :]
            elif kind is not None or self._is_tried:
                self._abandon()
            else:
                self._commit()
        finally:
            self._graph.lock.release()
            UNINTERRUPTED.disarm()
            UNINTERRUPTED.release()

    def _commit(self) -> None:
        try:
            if self.inverses:
                recorded = self._graph.recorded or self._single()
                index = self._graph.index
                if index.unsorted:
                    restore_order(self._graph, self, self.problems.backward)
                if index.gone:
                    remove_orphans(self._graph, self)
                if 0 < self._graph.header.ir_version < INITIALIZERS_SINCE:
                    raise_for_initializers(self._graph, self)
                touched = self.touch.freeze()
                suspects = self.touch.suspects
                if problems := self.problems.introduced(suspects, lambda: self._faults_before(touched, suspects)):
                    raise EditError(f"{self.label or 'edit'}: refused. " + " ".join(problems))
                if recorded is not None:
                    self.sum_up(recorded)  # the changes that the edit entails are a part of it
                if self._graph.completer is not None:
                    touched = self._completed(self._graph.completer, touched)
                if self._graph.journal is not None:
                    self._graph.journal.append("edit", self.label or "edit", self._notes, self.origin)
        except BaseException:
            self._abandon()
            raise
        self._close()
        if self.inverses:
            label, deeds = self.label or "edit", tuple(self._deeds)
            self._graph.commit("edit", label, tuple(self.inverses), touched, self.origin, deeds)

    def _completed(self, completer: Completer, touched: Touched) -> Touched:
        """The parts that the edit touches, completers' included. A completer that fails is reported and cut off."""
        done, deeds = len(self.inverses), len(self._deeds)
        self._completed_by = completer
        try:
            completer.complete(self, touched)
        except Exception as error:
            self._roll_back(self.inverses, done)
            del self._notes[done:], self._deeds[deeds:]
            self._graph.completer = None
            warnings.warn(f"{self.label!r} could not be completed by {completer!r}: {error!r}", stacklevel=2)
        return touched if len(self.inverses) == done else self.touch.freeze()

    def _faults_before(self, touched: Touched, suspects: Collection[int]) -> validation.Found:
        """The faults of the suspects in the state before the edit, which is taken back for it and made again."""
        graph = self._graph
        tables: tuple[tuple[dict[int, Any], frozenset[int]], ...] = (
            (graph.nodes, touched.nodes), (graph.values, touched.values), (graph.scopes, touched.scopes),
        )  # fmt: skip
        held = [{ident: table[ident] for ident in idents} for table, idents in tables]
        again = [change.apply(graph) for change in reversed(self.inverses)]
        faults = validation.faults(graph, suspects)
        self.inverses[:] = [change.apply(graph) for change in reversed(again)]
        for (table, _), records in zip(tables, held, strict=True):
            for ident, record in records.items():  # the caller of the edit may hold the old record
                if (fresh := table[ident]) is not record:
                    for field in fields(record):
                        setattr(record, field.name, getattr(fresh, field.name))
                    table[ident] = record
        return faults

    def _abandon(self) -> None:
        try:
            self._roll_back(self.inverses, 0)
            if self._completed_by is not None:
                self._completed_by.abandon()
        finally:
            self._close()

    def _close(self) -> None:
        self._graph.transaction, self._graph.touch = None, NO_TRANSACTION

    def _roll_back(self, inverses: list[Change], savepoint: int) -> None:
        if len(inverses) > savepoint:
            self._graph.history.write_late()
        while len(inverses) > savepoint:
            inverses.pop().apply(self._graph)
