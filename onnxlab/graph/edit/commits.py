"""What one committed edit did, the immutable message that every follower gets, and who sees an edit before that."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

from onnxlab.graph.state.change import Change
from onnxlab.graph.state.change_tracker import ChangeTracker, Touched

CommitKind = Literal["edit", "undo", "redo"]


class GraphCommit(NamedTuple):
    """One commit of a ModelGraph.

    Attributes:
        version: the graph's version after it; versions count up by one, for undo and redo too.
        changes: the primitives that were applied, in order, as (inverse) changes that would take them back.
        origin: who asked for the edit (a view's session, or None).
    """

    version: int
    label: str
    kind: CommitKind
    inverses: tuple[Change, ...]
    touched: Touched
    origin: Any = None


class Journal(Protocol):
    """Where commits are written down before anybody hears of them; `formats.journal` has the one for files.

    An exception out of `append` takes the edit back, so that nothing is kept that is not in the journal.
    """

    def note(self, change: Change) -> Any:
        """Take down a change that is about to be applied, in the state that it will be applied to."""
        ...

    def knows(self, kind: CommitKind) -> bool:
        """Whether an undo or redo needs no notes, because the journal has the edit."""
        ...

    def append(self, kind: CommitKind, label: str, notes: Sequence[Any], origin: Any) -> None:
        """Write a commit down that has been applied and judged; `origin` says who asked for it, None: Python."""
        ...


class OpenEdit(Protocol):
    """An edit in progress, as those see it who complete it: `transaction.py` has it.

    Attributes:
        inverses: what takes back the changes that were made, in the order in which they were made.
        thread: the one that makes the edit.
        touch: what was touched so far.
    """

    label: str
    inverses: list[Change]
    thread: int
    touch: ChangeTracker

    def apply(self, change: Change, said: str | None = "") -> Any:
        """Make one more change as a part of the edit and return its inverse."""
        ...


class Completer(Protocol):
    """What has to be changed together with an edit; `infer.declaring` lets declarations follow what is inferred."""

    def complete(self, transaction: OpenEdit, touched: Touched) -> None:
        """Apply what an edit that was judged and touches this entails, as a part of it."""
        ...

    def abandon(self) -> None:
        """The edit that was completed last was taken back."""
        ...
