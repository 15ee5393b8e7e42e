"""A graph with its history, journal and followers: what a transaction needs to commit an edit."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx

from onnxlab.graph.edit.changes import keeps_wires
from onnxlab.graph.edit.commits import CommitKind, Completer, GraphCommit, Journal, OpenEdit
from onnxlab.graph.edit.history import History
from onnxlab.graph.edit.script import Recorded, ScriptStep
from onnxlab.graph.state.change import Change
from onnxlab.graph.state.change_tracker import Touched
from onnxlab.graph.state.graph_state import GraphState

Follower = Callable[[GraphCommit], Any]


class EditableGraph(GraphState):
    """A graph whose edits are recorded and told.

    Attributes:
        transaction: the outermost edit that is in progress.
        recorded: the edit of the table that is being made, None where none is.
        read_only: why no edit is taken, "" where they are.
        followers: called with each GraphCommit, in order, under the lock, after it is final. One that raises is
            reported as a warning and cut off.
        completer: what completes every edit before it is final, None where nothing does; undo and redo have it all.
        journal: where every commit is written down before it is final, None where nothing is.
    """

    def __init__(self, proto: onnx.ModelProto, base_dir: Path | None, shared: bool) -> None:
        super().__init__(proto, base_dir, shared)
        self.history = History(self.lock)
        self.followers: list[Follower] = []
        self.completer: Completer | None = None
        self.journal: Journal | None = None
        self.transaction: OpenEdit | None = None
        self.recorded: Recorded | None = None
        self.read_only = ""

    def about_to_apply(self, change: Change) -> None:
        """Let the index know before a change that may change uses of values."""
        if not keeps_wires(self, change):
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
