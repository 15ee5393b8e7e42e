"""Header and steps of a journal, each checked, since a right checksum says nothing of the content."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onnxlab.formats.journals import change_codec
from onnxlab.formats.journals.journal import records

MADE = ("edit", "undo", "redo")
_KINDS = (*MADE, "saved", "ended")
_LATEST = 1 << 37
"""Seconds since 1970 that every calendar can say."""


@dataclass(frozen=True, slots=True)
class Step:
    """One record behind the header.

    Attributes:
        kind: "edit", "undo" or "redo" of the model; "saved" before a save, "ended" at the end of a session.
        label: of an edit.
        time: when it was made, in seconds since 1970; 0 where it does not say.
        by_hand: whether it was made in a view, or recovered.
        sha256: of what was saved.
        notes: the changes of an edit.
    """

    kind: str
    label: str
    time: float
    by_hand: bool
    sha256: str
    notes: list[change_codec.Note]

    def timeless(self) -> bytes:
        """The step without its time, to compare it with that of another run."""
        return change_codec.pack({"kind": self.kind, "label": self.label, "by_hand": self.by_hand}, self.notes)


@dataclass(slots=True)
class Contents:
    """A journal as far as it can be read.

    Attributes:
        header: which file in which state the steps begin at; {} where there is none.
        labels: the edits that stand at the end: those that were undone are left out.
        oddity: what is wrong with the record at which reading ended; "" where that was the end, or damage.
    """

    header: Mapping[str, Any] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    oddity: str = ""


def read(data: bytes) -> Contents:
    """The header and the steps of a journal up to the first that is damaged or none."""
    contents, undone = Contents(), list[str]()
    for number, record in enumerate(records(data)):
        try:
            if number == 0:
                contents.header = _header(record)
                continue
            step = _step(record)
            _count(step, contents.labels, undone)
        except (ValueError, RecursionError) as error:
            contents.oddity = f"record {number} is none that onnxlab writes ({str(error)[:200]})"
            break
        contents.steps.append(step)
    return contents


def _header(record: bytes) -> dict[str, Any]:
    header = json.loads(record)
    if not isinstance(header, dict):
        raise ValueError("the header is no object")
    return header


def _step(record: bytes) -> Step:
    """Read one record; raises ValueError."""
    head, notes = change_codec.unpack(record)
    kind, label, time, sha256 = head.get("kind"), head.get("label", ""), head.get("time", 0.0), head.get("sha256", "")
    if kind not in _KINDS or not isinstance(label, str) or not isinstance(sha256, str):
        raise ValueError(f"there is no step of kind {kind!r:.80} and label {label!r:.80}")
    if not isinstance(time, int | float) or not math.isfinite(time) or not 0 <= time < _LATEST:
        raise ValueError(f"{time!r:.80} is no time")
    return Step(kind, label, float(time), bool(head.get("by_hand")), sha256, notes)


def _count(step: Step, done: list[str], undone: list[str]) -> None:
    """Move the label of a step between what is done and what is undone; raises ValueError where there is none."""
    if step.kind == "edit":
        done.append(step.label)
        undone.clear()
    elif step.kind in MADE:
        source, target = (done, undone) if step.kind == "undo" else (undone, done)
        if not source:
            raise ValueError(f"there is nothing to {step.kind}")
        target.append(source.pop())
