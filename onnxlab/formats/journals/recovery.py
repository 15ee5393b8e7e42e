"""Recovery: finding the abandoned journals of a file and making their edits again."""

import contextlib
import errno
import hashlib
import os
import stat
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxlab.errors import EditError, JournalWarning, LoadError
from onnxlab.formats.journals import change_codec, journal_steps
from onnxlab.formats.journals.journal import FORMAT, SUFFIX, UNBORN, digest_of, lock, prefix, state_folder
from onnxlab.formats.journals.journal_steps import Contents, JournalStep
from onnxlab.formats.source import Source, Stamp

if TYPE_CHECKING:
    from onnxlab.graph.edit.changes import Change
    from onnxlab.graph.edit.model_graph import ModelGraph

_KEPT_DAYS = 60
_QUIET_DAYS = 7
"""Days for which journals are kept that are not urgent: the session ended normally, and its code has the edits."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """Edits of a file that were made and never saved.

    Attributes:
        path: the path of the journal.
        labels: labels of the edits, in order, without those that were undone.
        time: the time of the last edit, in seconds since 1970.
        urgent: whether these edits may be nowhere else: their process died, or some were made by hand in a view.
            Otherwise a session that ended normally made them in Python.
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

    The order is that of their time, with urgent ones last. Journals whose edits were saved are removed; so are those
    that are not urgent and either old or the beginning of a newer journal. Journals for another content of the file
    stay, in case that content returns. A JournalWarning names a journal that cannot be read to its end; the records
    before the faulty one count.
    """
    if source is None or source.path is None or source.disk is None:
        return ()
    digests: dict[Recovery, list[bytes]] = {}
    for path in _journals(source.path):
        try:
            contents = _contents(path)
            recovery = _judge(path, contents, source) if contents is not None else None
        except Exception as error:  # no fault of a journal must keep the model from opening
            _complain(path, str(error))
            continue
        if contents is not None and contents.oddity:
            _complain(path, contents.oddity)
        if contents is not None and recovery is not None:
            digests[recovery] = [hashlib.sha256(step.timeless()).digest() for step in contents.steps]
    newest_first = sorted(digests, key=lambda recovery: (recovery.urgent, recovery.time), reverse=True)
    left: list[Recovery] = []
    for recovery in newest_first:
        edits = digests[recovery][:-1]  # without the record "ended", the last one of journals that are not urgent
        if not recovery.urgent and any(digests[other][: len(edits)] == edits for other in left):
            discard(recovery)
        else:
            left.append(recovery)
    return tuple(reversed(left))


def _complain(path: Path, why: str) -> None:
    warning = f"the journal {path} cannot be read to its end: {why}; move it away if nothing in it is missed"
    warnings.warn(warning, JournalWarning, stacklevel=5)


def replay(graph: "ModelGraph", recovery: Recovery) -> int:
    """Make the edits of a journal again, each as an undoable step; returns how many steps were made.

    Raises:
        LoadError: the journal is gone, in use or cannot be read.
        EditError: the model is not as it was loaded; or an edit does not fit the model, and the edits before it stay.
    """
    if graph.history.state != 0:
        raise EditError("edits can be recovered only into a model as it was loaded: undo yours first, or load it anew")
    try:
        with _opened(recovery.path) as data:
            if data is None:
                raise LoadError(f"the journal {recovery.path} is gone, or another process has it")
            with _all_kept(graph):
                return _replay(graph, journal_steps.read(data).steps, recovery)
    except OSError as error:
        raise LoadError(f"the journal {recovery.path} cannot be read: {error.strerror or error}") from error


def strings(recovery: Recovery) -> dict[str, bytes]:
    """Stand-ins for strings that are no UTF-8 which the edits of a journal bring, and the bytes that they stand for."""
    try:
        contents = _contents(recovery.path)
    except OSError:  # of which `replay` tells
        contents = None
    steps = contents.steps if contents is not None else ()
    return {stand_in: bytes.fromhex(text) for step in steps for stand_in, text in step.strings.items()}


@contextlib.contextmanager
def _all_kept(graph: "ModelGraph") -> Iterator[None]:
    """Keep every edit in the history meanwhile, since the journal may undo any of them."""
    budget, graph.history.budget = graph.history.budget, sys.maxsize
    try:
        yield
    finally:
        graph.history.budget = budget


def _replay(graph: "ModelGraph", steps: list[JournalStep], origin: Recovery) -> int:
    done = 0
    for step in steps:
        try:
            _make(graph, step, origin)
        except Exception as error:
            label = step.label or step.kind
            raise EditError(f"{done} steps were recovered; {label!r} does not fit the model: {error}") from error
        done += step.kind in journal_steps.MADE
    return done


def discard(recovery: Recovery) -> None:
    """Remove a journal; one that is gone already is fine."""
    _remove(recovery.path)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _make(graph: "ModelGraph", step: JournalStep, origin: Recovery) -> None:
    if step.kind == "undo":
        graph.undo(origin)
    elif step.kind == "redo":
        graph.redo(origin)
    elif step.kind == "edit":
        graph.replay(step.label, _decoded(graph, step.notes), origin)


def _decoded(graph: "ModelGraph", notes: list[change_codec.Note]) -> "Iterator[Change]":
    for note in notes:  # decoded one by one, since each refers to the state after the previous one
        yield change_codec.decode(graph, note)


def _journals(path: Path) -> list[Path]:
    """Journals of a file, by their names; journals of other files are removed once they are old."""
    start, paths, limit = prefix(path), list[Path](), time.time() - _KEPT_DAYS * 86400
    with contextlib.suppress(OSError), os.scandir(state_folder()) as entries:
        for entry in entries:
            if entry.name.startswith(start) and entry.name.endswith(SUFFIX):
                paths.append(Path(entry.path))
            elif entry.name.endswith((SUFFIX, UNBORN)):
                try:
                    if entry.stat().st_mtime < limit:
                        _remove_unused(entry.path)
                except OSError:
                    continue
    return paths


def _remove_unused(path: str) -> None:
    """Remove a journal that is not being written; raises OSError."""
    with _opened(Path(path)) as data:
        if data is not None:
            os.unlink(path)


def _contents(path: Path) -> Contents | None:
    """The content of a journal; None where it is gone or being written. Raises OSError."""
    with _opened(path) as data:
        return journal_steps.read(data) if data is not None else None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[bytes | None]:
    """The content of a journal, locked; None where it is gone or being written.

    Raises:
        OSError: the journal cannot be opened, or is no regular file.
    """
    try:
        # O_NONBLOCK: opening and reading a FIFO must not wait for its writer
        flags = os.O_RDWR | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        yield None
        return
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        with open(descriptor, "r+b", closefd=False) as file:
            yield file.read() if lock(descriptor) else None
    finally:
        os.close(descriptor)


def _judge(path: Path, contents: Contents, source: Source) -> Recovery | None:
    """The recoverable edits of a journal for the file as it is, None for none; removes journals without use."""
    header, steps = contents.header, contents.steps
    if header and header.get("format") != FORMAT:
        return None  # a journal of another version of onnxlab, which may be used again
    saved = {step.sha256 for step in steps if step.kind == "saved"}
    last = max((step.time for step in steps), default=0.0)
    urgent = any(step.by_hand for step in steps) or not steps or steps[-1].kind != "ended"
    forgotten = not urgent and last < time.time() - _QUIET_DAYS * 86400
    if not contents.labels or forgotten or (saved and _digest(source) in saved):
        if not contents.oddity:
            _remove(path)
        return None
    return Recovery(path, tuple(contents.labels), last, urgent) if _is_for(header, source) else None


def _is_for(header: Mapping[str, Any], source: Source) -> bool:
    """Whether the edits begin at the content that the file had when it was read."""
    assert source.disk is not None
    state = (header.get("size"), header.get("mtime_ns"), header.get("inode"), header.get("device"))
    now = source.disk
    if state == (now.size, now.modified_ns, now.inode, now.device):
        return True
    return state[0] == now.size and header.get("sha256") == _digest(source)


def _digest(source: Source) -> str:
    """SHA-256 of the file, "" where the file changed since it was read."""
    assert source.path is not None
    with contextlib.suppress(OSError):
        digest = digest_of(source.path)
        if source.disk is not None and source.disk.same_content(Stamp.of(source.path.stat())):
            return digest
    return ""
