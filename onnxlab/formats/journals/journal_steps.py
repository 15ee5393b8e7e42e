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
"""Upper bound of times, in seconds since 1970: later ones are no times of edits, and calendars may reject them."""


@dataclass(frozen=True, slots=True)
class JournalStep:
    """One record after the header.

    Attributes:
        kind: "edit", "undo" or "redo" of the model; "saved" before a save, "ended" at the end of a session.
        label: the label of an edit.
        time: when the step was made, in seconds since 1970; 0 where the record does not say.
        by_hand: whether the edit was made in a view, or recovered.
        sha256: the digest of the saved file.
        notes: the changes of an edit.
        strings: the bytes, in hexadecimal digits, of stand-ins for strings that are no UTF-8 which an edit brings.
    """

    kind: str
    label: str
    time: float
    by_hand: bool
    sha256: str
    notes: list[change_codec.Note]
    strings: Mapping[str, str] = field(default_factory=dict)

    def timeless(self) -> bytes:
        """The step without its time, for comparison with a step of another run."""
        return change_codec.pack({"kind": self.kind, "label": self.label, "by_hand": self.by_hand}, self.notes)


@dataclass(slots=True)
class Contents:
    """A journal as far as it can be read.

    Attributes:
        header: the file, and the state of it, that the steps begin at; {} where there is none.
        labels: labels of the edits in effect at the end, without those undone.
        oddity: the fault of the record at which reading ended; "" where that was the end of the file, or damage.
    """

    header: Mapping[str, Any] = field(default_factory=dict)
    steps: list[JournalStep] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    oddity: str = ""


def read(data: bytes) -> Contents:
    """The header and the steps of a journal, up to the first record that is damaged or not one of a journal."""
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


def _step(record: bytes) -> JournalStep:
    """Read one record; raises ValueError."""
    head, notes = change_codec.unpack(record)
    kind, label, time, sha256 = head.get("kind"), head.get("label", ""), head.get("time", 0.0), head.get("sha256", "")
    if kind not in _KINDS or not isinstance(label, str) or not isinstance(sha256, str):
        raise ValueError(f"there is no step of kind {kind!r:.80} and label {label!r:.80}")
    if not isinstance(time, int | float) or not math.isfinite(time) or not 0 <= time < _LATEST:
        raise ValueError(f"{time!r:.80} is no time")
    strings = head.get("strings", {})
    if not isinstance(strings, dict) or not all(isinstance(text, str) for text in strings.values()):
        raise ValueError(f"{strings!r:.80} are no strings with what they stand for")
    for text in strings.values():
        bytes.fromhex(text)  # ValueError
    return JournalStep(kind, label, float(time), bool(head.get("by_hand")), sha256, notes, strings)


def _count(step: JournalStep, done: list[str], undone: list[str]) -> None:
    """Move a label between edits done and undone, as a step does; raises ValueError where there is nothing to move."""
    if step.kind == "edit":
        done.append(step.label)
        undone.clear()
    elif step.kind in MADE:
        source, target = (done, undone) if step.kind == "undo" else (undone, done)
        if not source:
            raise ValueError(f"there is nothing to {step.kind}")
        target.append(source.pop())
