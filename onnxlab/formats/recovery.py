"""Finding the journals of a file that nobody writes any more, and making their edits again."""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxlab.errors import EditError, LoadError
from onnxlab.formats import change_codec
from onnxlab.formats.journal import FORMAT
from onnxlab.formats.journal_file import SUFFIX, lock, prefix, records, state_folder
from onnxlab.formats.source import Source, Stamp

if TYPE_CHECKING:
    from onnxlab.graph.changes import Change
    from onnxlab.graph.modelgraph import ModelGraph

_KEPT_DAYS = 60
_QUIET_DAYS = 7
"""How long edits are kept that a session left behind which ended by itself, and that its code would make again."""


_STEPS = ("edit", "undo", "redo")


@dataclass(frozen=True, slots=True)
class Recovery:
    """Edits of a file that were made and never saved.

    Attributes:
        path: of the journal.
        labels: what was done, in order, as it stands at the end: edits that were undone are left out.
        time: of the last edit, in seconds since 1970.
        urgent: whether these edits may be nowhere else: their process died, or some were made by hand in a view.
            Else a session that ended by itself made them in Python.
    """

    path: Path
    labels: tuple[str, ...]
    time: float
    urgent: bool = True

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self.labels[-3:]))
        more = "…, " if len(self.labels) > 3 else ""
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.time))
        return f"{len(self.labels)} edit{'s' * (len(self.labels) != 1)} of {when} ({more}{shown})"


def find(source: Source | None) -> tuple[Recovery, ...]:
    """Edits of the file at `source.path`, in the state that it was read in, whose process is gone.

    In order of their time, but those that are urgent last. Journals whose edits were saved are removed, and those that
    are not urgent when they are old or a newer one begins with the same edits. Those of other contents of the file
    stay for when it comes back.
    """
    if source is None or source.path is None or source.disk is None:
        return ()
    found: dict[Recovery, list[bytes]] = {}
    for path in _journals(source.path):
        with _opened(path) as data:
            steps = records(data) if data is not None else []
            recovery = _judge(path, steps, source) if data is not None else None
        if recovery is not None:
            found[recovery] = [_timeless(step) for step in steps[1:]]
    newest_first = sorted(found, key=lambda recovery: (recovery.urgent, recovery.time), reverse=True)
    left: list[Recovery] = []
    for recovery in newest_first:
        edits = found[recovery][:-1]  # without the end, which what is not urgent has
        if not recovery.urgent and any(found[other][: len(edits)] == edits for other in left):
            discard(recovery)
        else:
            left.append(recovery)
    return tuple(reversed(left))


def _timeless(record: bytes) -> bytes:
    """A record without when it was made, to compare it with that of another run."""
    head, notes = change_codec.unpack(record)
    head.pop("time", None)
    return hashlib.sha256(change_codec.pack(head, notes)).digest()


def replay(graph: "ModelGraph", recovery: Recovery) -> int:
    """Make the edits of a journal again, each as an undoable step; returns how many steps were made.

    Raises:
        LoadError: the journal is gone or in use.
        EditError: the model is not as it was loaded; or an edit does not fit, then those before it were made.
    """
    if graph.history.state != 0:
        raise EditError("edits can be recovered only into a model as it was loaded: undo yours first, or load it anew")
    with _opened(recovery.path) as data:
        if data is None:
            raise LoadError(f"the journal {recovery.path} is gone, or another process has it")
        done = 0
        for record in records(data)[1:]:
            head, notes = change_codec.unpack(record)
            try:
                _make(graph, head, notes, recovery)
            except Exception as error:
                label = head.get("label", "the next one")
                raise EditError(f"{done} steps were recovered; {label!r} does not fit the model: {error}") from error
            done += head["kind"] in _STEPS
        return done


def discard(recovery: Recovery) -> None:
    """Remove a journal; one that is gone already is fine."""
    with contextlib.suppress(OSError):
        recovery.path.unlink(missing_ok=True)


def _make(graph: "ModelGraph", head: dict[str, Any], notes: list[change_codec.Note], origin: Recovery) -> None:
    if head["kind"] == "undo":
        graph.undo(origin)
    elif head["kind"] == "redo":
        graph.redo(origin)
    elif head["kind"] == "edit":
        graph.replay(head["label"], _decoded(graph, notes), origin)


def _decoded(graph: "ModelGraph", notes: list[change_codec.Note]) -> "Iterator[Change]":
    for note in notes:  # one by one: each refers to the state that the one before left
        yield change_codec.decode(graph, note)


def _journals(path: Path) -> list[Path]:
    """Journals of a file by their names; those of other files that nobody asked for in a long time are removed."""
    start, found = prefix(path), []
    with contextlib.suppress(OSError), os.scandir(state_folder()) as entries:
        for entry in entries:
            if entry.name.startswith(start) and entry.name.endswith(SUFFIX):
                found.append(Path(entry.path))
            elif entry.stat().st_mtime < time.time() - _KEPT_DAYS * 86400:
                with _opened(Path(entry.path)) as data:
                    if data is not None:
                        os.unlink(entry.path)
    return found


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[bytes | None]:
    """The content of a journal, locked; None where it is gone or somebody writes it."""
    try:
        with open(path, "r+b") as file:
            yield file.read() if lock(file.fileno()) else None
    except FileNotFoundError:
        yield None


def _judge(path: Path, found: list[bytes], source: Source) -> Recovery | None:
    """What can be recovered from a journal for the file as it is, None if nothing; removes what is of no use."""
    header = json.loads(found[0]) if found else {}
    if found and header.get("format") != FORMAT:
        return None  # of another version of onnxlab, which may be used again
    steps = [change_codec.unpack(record)[0] for record in found[1:]]
    labels = _labels(steps)
    saved = {step["sha256"] for step in steps if step["kind"] == "saved"}
    last = max((step.get("time", 0.0) for step in steps), default=0.0)
    urgent = any(step.get("by_hand") for step in steps) or steps[-1:] != [{"kind": "ended"}]
    forgotten = not urgent and last < time.time() - _QUIET_DAYS * 86400
    if not labels or forgotten or (saved and _digest(source) in saved):
        path.unlink(missing_ok=True)
        return None
    return Recovery(path, tuple(labels), last, urgent) if _is_for(header, source) else None


def _labels(steps: list[dict[str, Any]]) -> list[str]:
    done: list[str] = []
    undone: list[str] = []
    for step in steps:
        if step["kind"] == "edit":
            done.append(step["label"])
            undone.clear()
        elif step["kind"] == "undo":
            undone.append(done.pop())
        elif step["kind"] == "redo":
            done.append(undone.pop())
    return done


def _is_for(header: dict[str, Any], source: Source) -> bool:
    """Whether the edits begin at the content that the file had when it was read."""
    assert source.disk is not None
    state = (header.get("size"), header.get("mtime_ns"), header.get("inode"), header.get("device"))
    now = source.disk
    if state == (now.size, now.modified_ns, now.inode, now.device):
        return True
    return state[0] == now.size and header.get("sha256") == _digest(source)


def _digest(source: Source) -> str:
    """SHA-256 of the file, "" where it is not any more what was read."""
    assert source.path is not None
    with contextlib.suppress(OSError):
        data = source.path.read_bytes()
        if source.disk is not None and source.disk.same_content(Stamp.of(source.path.stat())):
            return hashlib.sha256(data).hexdigest()
    return ""
