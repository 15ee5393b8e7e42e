"""Undo and redo: the committed edits, each as the changes that take it back, within a budget of bytes."""

import itertools
import operator
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from onnxlab.argument_types import plain
from onnxlab.errors import EditError, OnnxlabWarning
from onnxlab.graph.edit.changes import SetField
from onnxlab.graph.edit.node_changes import SetAttribute
from onnxlab.graph.edit.script import HistoryStep, LateText, ScriptStep, to_python
from onnxlab.graph.index.deferred_interrupt import UNINTERRUPTED
from onnxlab.graph.protos.long_lists import Items
from onnxlab.graph.state.change import Change
from onnxlab.limits import available_memory, format_bytes
from onnxlab.short_help import ShortHelp
from onnxlab.spelling import Spelled

SHARE_OF_MEMORY = 0.25
"""Default budget, as a share of the memory that is free when the history first holds data."""
LEAST_BUDGET = 256 << 20


class History(Spelled, metaclass=ShortHelp):
    """The steps that can be undone and redone, oldest first.

    `history.labels` lists what can be undone, `history.redo_labels` what can be redone, the next one last.
    `history.state` is 0 in the state that was loaded, and otherwise names the state uniquely, so that "is there a net
    edit since then" is a comparison.

    The history keeps data that edits replaced within a `budget`. An edit that exceeds the budget drops the oldest
    steps, which can no longer be undone; a warning says so once. Only memory that dropping a step frees counts: long
    lists of attributes, and texts. Replaced tensors and other messages do not count, since protobuf keeps their memory
    until the whole model is freed.

    Attributes:
        news: whether a warning is due.
    """

    __slots__ = (
        "_budget",
        "_done",
        "_dropped",
        "_free",
        "_held",
        "_late",
        "_lock",
        "_tokens",
        "_undone",
        "news",
    )

    def __init__(self, lock: Any = None) -> None:
        self._done: list[HistoryStep] = []
        self._undone: list[HistoryStep] = []
        self._dropped: list[HistoryStep] = []  # without their changes and deeds
        self._late: list[LateText] = []
        self._tokens = itertools.count(1)
        self._held = 0
        self._budget: int | None = None
        self._free = LEAST_BUDGET  # bytes that may be used without a query of the machine's memory
        self.news = False
        self._lock = lock or threading.RLock()

    def record(self, label: str, inverses: tuple[Change, ...], deeds: tuple[ScriptStep, ...] = ()) -> None:
        """Add an edit; what had been undone can no longer be redone."""
        if self._undone:
            if held := sum([step.held for step in self._undone]):
                self._held -= held
            self._undone.clear()
        self._push(self._done, label, inverses, next(self._tokens), deeds)
        if self._held > self._free:
            self._keep_within_budget()

    def _push(
        self,
        steps: list[HistoryStep],
        label: str,
        changes: tuple[Change, ...],
        token: int,
        deeds: tuple[ScriptStep, ...],
    ) -> None:
        if held := held_bytes(changes):
            self._held += held
        steps.append(HistoryStep(label, changes, token, deeds, held))

    # -- statements ---------------------------------------------------------------------------------------------------

    def later(self, write: Callable[[], str]) -> LateText:
        """A statement that is written when it is asked for, or before something that it names is called otherwise."""
        late = LateText(write)
        self._late.append(late)
        return late

    def write_late(self) -> None:
        """Write what waits: nodes or values are about to go, to move or to get other names."""
        for late in self._late:
            str(late)
        self._late.clear()

    def drop_late(self, text: str | LateText) -> None:
        """Forget the statement of an edit that was refused."""
        if self._late and self._late[-1] is text:
            self._late.pop()

    # -- the budget ---------------------------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """Bytes of replaced data that the steps hold."""
        return self._held

    @property
    def budget(self) -> int:
        """The most bytes of replaced data that are kept to be undone; set it to change that.

        The default is a quarter of the memory that is free when the budget is first needed, and at least 256 MiB.
        Undone steps are kept until the next edit, whatever their size.

        Raises:
            EditError: the new budget is no number of bytes.
        """
        if self._budget is None:
            self._budget = self._free = max(LEAST_BUDGET, int(SHARE_OF_MEMORY * available_memory()))
        return self._budget

    @budget.setter
    def budget(self, nbytes: int) -> None:
        try:
            limit = operator.index(nbytes)
        except TypeError:
            limit = -1
        if limit < 0:
            raise EditError(f"the budget of the history is a number of bytes from 0 on, got {nbytes!r}")
        with self._lock:
            with UNINTERRUPTED:
                self._budget = self._free = limit
                self._keep_within_budget()
            self.tell()

    @property
    def dropped(self) -> list[str]:
        """The labels of the oldest edits, which the budget dropped: they can be undone no more."""
        return [step.label for step in self._dropped]

    def _keep_within_budget(self) -> None:
        count, first = 0, not self._dropped
        while self._held > self.budget and count < len(self._done):
            step = self._done[count]
            self._held -= step.held
            self._dropped.append(step._replace(changes=(), deeds=(), held=0))
            count += 1
        del self._done[:count]
        self.news |= first and count > 0

    def tell(self) -> None:
        """Warn once that steps were dropped. Apart from dropping, since a warning may be an error."""
        if self.news:
            self.news = False
            warnings.warn(f"{self._what_was_dropped()}; {_RAISE_IT}", OnnxlabWarning, stacklevel=2)

    def _what_was_dropped(self) -> str:
        count = len(self._dropped)
        edits = "the oldest edit" if count == 1 else f"the oldest {count:,} edits"
        return f"{edits} can be undone no more: the history keeps {format_bytes(self.budget)} of replaced data"

    def refuse_dropped(self, position: int) -> None:
        """Raises EditError where a position lies before the oldest state that can be gone back to."""
        if self._dropped and position < len(self._dropped):
            raise EditError(f"{self._what_was_dropped()}; load the file anew to go back further. {_RAISE_IT}")

    # -- where it stands ----------------------------------------------------------------------------------------------

    @property
    def state(self) -> int:
        """The number of the state that the model is in, 0 before the first edit."""
        if self._done:
            return self._done[-1].token
        return self._dropped[-1].token if self._dropped else 0

    @property
    def labels(self) -> list[str]:
        """The labels of the steps that can be undone, oldest first."""
        return [step.label for step in self._done]

    @property
    def all_labels(self) -> list[str]:
        """The labels from the loaded state to the last one, `dropped` and redoable ones included, oldest first."""
        return [*self.dropped, *self.labels, *reversed(self.redo_labels)]

    @property
    def redo_labels(self) -> list[str]:
        """The labels of the steps that can be redone, the next one last."""
        return [step.label for step in self._undone]

    @property
    def position(self) -> int:
        """The number of edits between the loaded state and this one."""
        return len(self._dropped) + len(self._done)

    def since(self, state: int) -> list[str]:
        """The labels of the edits since a state, those taken back as "undo …".

        All labels are returned where neither undo nor redo leads to the state.
        """
        past = [*self._dropped, *self._done]
        done, undone = [0, *(step.token for step in past)], [step.token for step in self._undone]
        if state in undone:
            return [f"undo {step.label}" for step in self._undone[undone.index(state) :]]
        return [step.label for step in past[done.index(state) if state in done else 0 :]]

    def position_of(self, step: int | str) -> int:
        """The number of edits before a state: a number of edits (negative from now), or the label that led to it last.

        Raises:
            EditError: there is no such state (the message lists the labels), or edits since then were dropped.
        """
        labels = self.all_labels
        position, step = -1, plain(step)
        if isinstance(step, str) and step in labels:
            position = len(labels) - labels[::-1].index(step)
        elif isinstance(step, int) and not isinstance(step, bool):
            position = step if step >= 0 else self.position + step
        if not 0 <= position <= len(labels):
            shown = ", ".join(map(repr, labels[-20:])) or "none"
            raise EditError(f"the history of {len(labels)} edits has no {step!r}; a number from 0, or one of {shown}")
        self.refuse_dropped(position)
        return position

    def changes_to(self, position: int) -> list[Change]:
        """The changes that lead from this state to the one with so many edits before it, in order.

        Raises:
            EditError: edits since then were dropped.
        """
        self.refuse_dropped(position)
        back = self._done[max(0, position - len(self._dropped)) :]
        on = self._undone[len(self._undone) - max(0, position - self.position) :]
        return [change for step in reversed([*on, *back]) for change in reversed(step.changes)]

    def statements(self) -> list[str]:
        """Every edit that `all_labels` lists in Python, as it is shown to people; "" for those that were dropped."""
        from onnxlab.graph.edit.script import shown

        return [shown(step) for step in (*self._dropped, *self._done, *reversed(self._undone))]

    def last_statement(self) -> str:
        """The last edit in Python, "" where there is none."""
        from onnxlab.graph.edit.script import shown

        return shown(self._done[-1]) if self._done else ""

    def to_python(self) -> str:
        """A Python script that makes the edits again on another copy of the model as it was loaded.

        The script defines `replay(model)`; run as a program, it takes the paths of the copy and of the result. Tensors
        are written into the script.

        Raises:
            EditError: edits were dropped, so that the script could not start from the model as it was loaded.
        """
        if self._dropped:
            why = f"of {self.position:,} edits the history dropped the data of the first {len(self._dropped):,}"
            raise EditError(f"no script can begin with the model as it was loaded: {why}. {_RAISE_IT}")
        return to_python(self._done)

    def __len__(self) -> int:
        return self.position + len(self._undone)

    def __iter__(self) -> Iterator[str]:
        yield from self.labels

    def __repr__(self) -> str:
        dropped = f", dropped={len(self._dropped)}" if self._dropped else ""
        return f"History({self.labels!r}, redo={self.redo_labels!r}{dropped})"

    def changes_back_to(self, position: int) -> list[Change]:
        """The changes that take back every edit after the first `position` ones, in the order to be made.

        Raises:
            EditError: some of these edits were dropped.
        """
        self.refuse_dropped(position)
        steps = self._done[max(position - len(self._dropped), 0) :]
        return [change for step in reversed(steps) for change in reversed(step.changes)]

    def next_undo(self) -> HistoryStep | None:
        """The step that undo takes back, None in the state that was loaded.

        Raises:
            EditError: the step was dropped.
        """
        if self._done:
            return self._done[-1]
        self.refuse_dropped(self.position - 1)
        return None

    def next_redo(self) -> HistoryStep | None:
        """The step that redo would make again, None where there is none."""
        return self._undone[-1] if self._undone else None

    def undone(self, inverses: tuple[Change, ...]) -> None:
        """The last edit was taken back by changes whose inverses are given."""
        step = self._done.pop()
        if step.held:
            self._held -= step.held
        self._push(self._undone, step.label, inverses, step.token, step.deeds)

    def redone(self, inverses: tuple[Change, ...]) -> None:
        """Move the next step of redo to those that can be undone."""
        step = self._undone.pop()
        if step.held:
            self._held -= step.held
        self._push(self._done, step.label, inverses, step.token, step.deeds)


_RAISE_IT = "model.history.budget = …, in bytes, keeps more from then on"


def held_bytes(changes: tuple[Change, ...]) -> int:
    """Bytes of replaced data in some changes, apart from the messages of the model."""
    total = 0
    for change in changes:
        if type(change) in _REPLACING:
            replaced = change.proto if type(change) is SetAttribute else change.value  # type: ignore[attr-defined]
            if isinstance(replaced, Items):
                total += replaced.nbytes
            elif isinstance(replaced, str | bytes):
                total += len(replaced)
    return total


_REPLACING = frozenset((SetAttribute, SetField))
