"""Commits: immutable descriptions of committed edits for their followers, and protocols to take part before that."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

from onnxlab.graph.state.change import Change
from onnxlab.graph.state.change_tracker import ChangeTracker, Touched

CommitKind = Literal["edit", "undo", "redo"]


class GraphCommit(NamedTuple):
    """One commit of a ModelGraph.

    Attributes:
        version: the graph's version after the commit; every commit, undo and redo included, adds one.
        changes: the inverses of the applied primitive changes, in the order of application.
        origin: the source of the edit (a view's session, or None).
    """

    version: int
    label: str
    kind: CommitKind
    inverses: tuple[Change, ...]
    touched: Touched
    origin: Any = None


class CommitLog(Protocol):
    """A log in which commits are written before followers are told; `formats.journals.journal` has the one for files.

    An exception from `append` takes the edit back, so that every commit is in the journal.
    """

    def note(self, change: Change) -> Any:
        """Take down a change that is about to be applied, in the state that it will be applied to."""
        ...

    def knows(self, kind: CommitKind) -> bool:
        """Whether an undo or redo needs no notes, because the journal has the edit."""
        ...

    def append(self, kind: CommitKind, label: str, notes: Sequence[Any], origin: Any) -> None:
        """Write down a commit that has been applied and judged; `origin` is the source of the edit, None: Python."""
        ...


class OpenEdit(Protocol):
    """An edit in progress, as completers see it: `transaction.py` has it.

    Attributes:
        inverses: inverses of the changes made so far, in the order of the changes.
        thread: the thread that makes the edit.
        touch: the tracker of the objects touched so far.
    """

    label: str
    inverses: list[Change]
    thread: int
    touch: ChangeTracker

    def apply(self, change: Change, statement: str | None = "") -> Any:
        """Make one more change as a part of the edit and return its inverse."""
        ...


class Completer(Protocol):
    """Adds changes that an edit entails; `infer.declaring` lets declarations follow what is inferred."""

    def complete(self, transaction: OpenEdit, touched: Touched) -> None:
        """Apply what an edit that was judged and touches this entails, as a part of it."""
        ...

    def abandon(self) -> None:
        """The edit that was completed last was taken back."""
        ...
