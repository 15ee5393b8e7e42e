"""Undo and redo: the committed edits, each as the changes that take it back."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from onnxlab.errors import EditError

if TYPE_CHECKING:
    from onnxlab.graph.edit.changes import Change
    from onnxlab.graph.edit.script import ScriptStep


class Step(NamedTuple):
    """One undoable edit.

    Attributes:
        changes: what takes it back, or, once it is undone, makes it again; the last one first.
        token: names the state of the model that it led to.
        deeds: what was done, each change with a Python expression of what it was done to.
    """

    label: str
    changes: "tuple[Change, ...]"
    token: int
    deeds: "tuple[ScriptStep, ...]" = ()


class History:
    """The steps that can be undone and redone, oldest first.

    `history.labels` lists what can be undone, `history.redo_labels` what can be redone, the next one last.
    `history.state` is 0 in the state that was loaded, and otherwise names the state uniquely, so that "is there a net
    edit since then" is a comparison.
    """

    def __init__(self) -> None:
        self._done: list[Step] = []
        self._undone: list[Step] = []
        self._last_token = 0

    def record(self, label: str, inverses: "tuple[Change, ...]", deeds: "tuple[ScriptStep, ...]" = ()) -> None:
        """Add an edit; what had been undone can no longer be redone."""
        self._last_token += 1
        self._done.append(Step(label, inverses, self._last_token, deeds))
        self._undone.clear()

    @property
    def state(self) -> int:
        return self._done[-1].token if self._done else 0

    @property
    def labels(self) -> list[str]:
        return [step.label for step in self._done]

    @property
    def redo_labels(self) -> list[str]:
        return [step.label for step in self._undone]

    @property
    def position(self) -> int:
        """How many edits lie between the loaded state and this one."""
        return len(self._done)

    def since(self, state: int) -> list[str]:
        """What happened since a state: the labels of the edits, and of those taken back "undo …"; all of them where the
        state cannot be come back to.
        """
        done, undone = [0, *(step.token for step in self._done)], [step.token for step in self._undone]
        if state in undone:
            return [f"undo {step.label}" for step in self._undone[undone.index(state) :]]
        return self.labels[done.index(state) if state in done else 0 :]

    def position_of(self, step: int | str) -> int:
        """How many edits lie before a state: a number of edits (negative from now), or the label that led to it last.

        Raises:
            EditError: there is no such state; the message lists the labels.
        """
        labels = [*self.labels, *reversed(self.redo_labels)]
        if isinstance(step, str) and step in labels:
            return len(labels) - labels[::-1].index(step)
        if isinstance(step, int):
            position = step if step >= 0 else self.position + step
            if 0 <= position <= len(labels):
                return position
        shown = ", ".join(map(repr, labels[-20:])) or "none"
        raise EditError(f"the history of {len(labels)} edits has no {step!r}; a number from 0, or one of {shown}")

    def to_python(self) -> str:
        """A Python script that makes the edits again on another copy of the model as it was loaded.

        It holds `replay(model)`; run as a program it takes the paths of the copy and of the result. Tensors are in it.
        """
        from onnxlab.graph.edit.script import to_python

        return to_python(self._done)

    def __len__(self) -> int:
        return len(self._done) + len(self._undone)

    def __iter__(self) -> Iterator[str]:
        yield from self.labels

    def __repr__(self) -> str:
        return f"History({self.labels!r}, redo={self.redo_labels!r})"

    def next_undo(self) -> Step | None:
        return self._done[-1] if self._done else None

    def next_redo(self) -> Step | None:
        return self._undone[-1] if self._undone else None

    def undone(self, inverses: "tuple[Change, ...]") -> None:
        """The last edit was taken back by changes whose inverses are given."""
        step = self._done.pop()
        self._undone.append(Step(step.label, inverses, step.token, step.deeds))

    def redone(self, inverses: "tuple[Change, ...]") -> None:
        step = self._undone.pop()
        self._done.append(Step(step.label, inverses, step.token, step.deeds))
