"""The crash journal: every committed edit of a model from a file, written down before followers are told.

A journal is a file in the user's state folder: a header with the file, and the state of it, that the edits belong to,
and one record for each edit, undo and redo, framed by length and CRC-32. Records are written with plain `write` calls:
committed edits survive the end of the process, by whatever signal; after a power cut or a crash of the system the last
seconds may be missing, since a sync for each edit would make editing a hundred times slower.

A failing journal does not affect the model: where the disk is full the edit stays, a JournalWarning says so, and the
records are kept in memory and written with the next edit. An interrupt while a record is written takes the edit back.
Edits that are saved or discarded need no journal, so its file is removed. A process holds a lock on its journals, and
every model has a journal of its own, so that two models can edit one file. ONNXLAB_JOURNAL=off turns journals off: they
hold everything that was edited, weights too.

An interactive session that ends normally leaves its journal with a last record of kind "ended"; a program that ends
normally leaves none, since its code makes the edits again. Edits made by hand in a view, or recovered, are in no code:
a journal with such edits stays in any case, and `recovery` reports it as urgent, like a journal without a last record.
"""

import builtins
import contextlib
import errno
import hashlib
import json
import os
import secrets
import sys
import time
import warnings
import weakref
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxlab.errors import JournalWarning
from onnxlab.formats.atomic import write_all
from onnxlab.formats.journals import change_codec
from onnxlab.formats.source import Source, Stamp

if TYPE_CHECKING:
    from onnxlab.graph.edit.changes import Change
    from onnxlab.graph.edit.commits import CommitKind
    from onnxlab.graph.edit.model_graph import ModelGraph

FORMAT = 1
_WAITING = 256 << 20
"""The most bytes of records that are kept in memory while they cannot be written."""


SUFFIX = ".journal"
UNBORN = ".new"
"""Suffix of a journal that is not locked yet."""
_MAGIC = b"onnxlab journal\n"
_PIECE = 1 << 20


class JournalFile:
    """One journal on disk: locked while it is written, cut back to whole records when a write fails."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        """Create the file, locked and with its header; raises OSError."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        # the file gets its name once it is locked and has its header, so that no process takes it for abandoned
        birth = path if os.name == "nt" else path.with_suffix(UNBORN)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(birth, flags, 0o600)
        self._size = 0
        self._owner = os.getpid()
        try:
            lock(self._descriptor)
            self.append(_MAGIC, framed(json.dumps(header).encode()))
            if birth != path:
                os.rename(birth, path)
        except BaseException:
            os.close(self._descriptor)
            with contextlib.suppress(OSError):
                birth.unlink(missing_ok=True)
            raise

    @property
    def is_own(self) -> bool:
        """Whether this process made the file; a forked process must not write or remove it."""
        return self._owner == os.getpid()

    def append(self, *parts: bytes) -> None:
        """Write whole records, which may come in parts, or nothing; raises OSError."""
        try:
            if sum(map(len, parts)) < _PIECE:
                parts = (b"".join(parts),)
            for part in parts:  # large parts are not copied
                if (done := os.write(self._descriptor, part)) < len(part):
                    write_all(self._descriptor, memoryview(part)[done:])
        except BaseException:
            os.ftruncate(self._descriptor, self._size)
            os.lseek(self._descriptor, self._size, os.SEEK_SET)
            raise
        self._size += sum(map(len, parts))

    def finish(self, keep: bool) -> None:
        """Close the file, and remove it unless `keep` is set."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        if self.is_own and not keep:
            # removed while locked, so that no process takes it for abandoned; where open files cannot be removed, below
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            os.close(descriptor)
        if self.is_own and not keep:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)


class _Holder:
    """The open file of a journal, apart from the model, so that it can be closed when the model is gone.

    Attributes:
        waiting: records that could not be written yet.
        by_hand: whether an edit in the journal was made in a view or recovered, so that no code makes it again.
    """

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.file: JournalFile | None = None
        self.waiting: list[bytes] = []
        self.by_hand = False

    def end(self, keep: bool) -> None:
        if self.file is not None:
            self.file.finish(keep)
        self._forget()

    def at_end(self) -> None:
        """End the journal, when the model is no longer used or the process ends."""
        interactive = hasattr(builtins, "__IPYTHON__") or hasattr(sys, "ps1")
        failed = not interactive and hasattr(sys, "last_value")
        if self.file is not None and self.file.is_own and not failed:
            last = frame(*change_codec.parts({"kind": "ended"}, []))
            with contextlib.suppress(OSError):
                self.file.append(*self.waiting, *last)
        self.end(keep=interactive or failed or self.by_hand)


class Journal:
    """The journal of one ModelGraph: begun with the first edit, begun anew after each save.

    Args:
        graph: the graph whose edits are recorded.
        source: the file that the graph equals now; without a path nothing is written.
    """

    def __init__(self, graph: "ModelGraph", source: Source | None) -> None:
        self._graph = weakref.ref(graph)
        self._holder = _Holder()
        self._pid = os.getpid()
        self._strings: Mapping[str, bytes] = {}
        weakref.finalize(graph, self._holder.at_end)
        self.begin(source)

    def begin(self, source: Source | None) -> None:
        """Remove the journal so far and begin anew: the model equals its file, because it was saved or loaded."""
        self._holder.end(keep=False)
        enabled = os.environ.get("ONNXLAB_JOURNAL", "on").lower() not in ("off", "0")
        self._source = source if enabled and source is not None and source.path is not None else None
        self._given_up = False
        # how many steps a replay of the records can undo and redo at this point
        self._undoable = self._redoable = 0

    @property
    def path(self) -> Path | None:
        """The file, None before the first edit."""
        return self._holder.file.path if self._holder.file else None

    @property
    def is_whole(self) -> bool:
        """Whether every edit since the model was loaded or saved is on the disk."""
        return self._active and not self._holder.waiting

    @contextlib.contextmanager
    def bringing(self, strings: Mapping[str, bytes]) -> Iterator[None]:
        """Note with the edits made meanwhile what the stand-ins that they bring stand for; see `foreign`."""
        self._strings = strings
        try:
            yield
        finally:
            self._strings = {}

    # -- what ModelGraph calls ----------------------------------------------------------------------------------------

    def note(self, change: "Change") -> change_codec.Note | None:
        """Encode a change that is about to be applied, None where nothing is recorded."""
        graph = self._graph()
        if not self._active or graph is None:
            return None
        try:
            return change_codec.encode(graph, change)
        except Exception as error:  # a failing journal must not prevent the edit
            self._give_up(f"this change cannot be written down: {error}")
            return None

    def knows(self, kind: "CommitKind") -> bool:
        """Whether the records so far hold the edit that is undone or redone."""
        return not self._active or (kind == "undo" and self._undoable > 0) or (kind == "redo" and self._redoable > 0)

    def append(self, kind: "CommitKind", label: str, notes: Sequence[Any], origin: Any = None) -> None:
        """Write a commit. Raises nothing but interrupts, which leave the journal as it was."""
        if not self._active:
            return
        marker = kind != "edit" and self.knows(kind)
        if kind != "edit" and not marker:
            label = f"{kind} {label!r}"  # the edit is from before this journal: its undo or redo is recorded as an edit
        head = {"kind": kind if marker else "edit", "label": label, "time": time.time()}
        if origin is not None:
            head["by_hand"] = self._holder.by_hand = True
        if self._strings:
            head["strings"] = {stand_in: text.hex() for stand_in, text in self._strings.items()}
        self._write(frame(*change_codec.parts(head, [] if marker else list(notes))))
        if not marker:
            self._undoable, self._redoable = (self._undoable + 1 if kind == "edit" else 0), 0
        elif kind == "undo":
            self._undoable, self._redoable = self._undoable - 1, self._redoable + 1
        else:
            self._undoable, self._redoable = self._undoable + 1, self._redoable - 1

    # -- what saving calls --------------------------------------------------------------------------------------------

    def announce(self, data: bytes) -> None:
        """Record that the model is about to be saved as `data`, after which the edits are in the file."""
        if self._active and self._holder.file is not None:
            head = {"kind": "saved", "sha256": hashlib.sha256(data).hexdigest()}
            self._write(frame(*change_codec.parts(head, [])))

    # -- writing ------------------------------------------------------------------------------------------------------

    @property
    def _active(self) -> bool:
        # a forked process has the file of its parent, and writes nothing
        return self._source is not None and not self._given_up and self._pid == os.getpid()

    def _write(self, record: Sequence[bytes]) -> None:
        """Append a record after those that wait; records that cannot be written wait for the next call."""
        waiting = [*self._holder.waiting, *record]
        try:
            if self._holder.file is None:
                header = self._header()
                if header is None:
                    return
                self._holder.file = _create(self._source, header)
            self._holder.file.append(*waiting)
        except OSError as error:
            if sum(map(len, waiting)) > _WAITING:
                self._give_up(f"{error.strerror or error}, and memory for it is used up")
                return
            if not self._holder.waiting:
                self._warn(f"{error.strerror or error}; the journal tries again with the next edit")
            self._holder.waiting = waiting
            return
        self._holder.waiting = []

    def _header(self) -> dict[str, Any] | None:
        """The identity of the file that the edits are for; None where the model was loaded from another state of it."""
        source = self._source
        assert source is not None
        assert source.path is not None
        digest = source.digest or digest_of(source.path)
        state = Stamp.of(source.path.stat())
        if source.disk is None or not source.disk.same_content(state):
            self._give_up(f"{source.path.name} was changed on disk since it was loaded")
            return None
        return {
            "format": FORMAT,
            "path": str(source.path.resolve()),
            "size": state.size,
            "mtime_ns": state.modified_ns,
            "inode": state.inode,
            "device": state.device,
            "sha256": digest,
            "pid": os.getpid(),
            "started": time.time(),
        }

    def _give_up(self, why: str) -> None:
        self._given_up = True
        self._warn(f"{why}; edits are not protected until the model is saved")

    def _warn(self, why: str) -> None:
        name = self._source.path.name if self._source and self._source.path else "the model"
        warnings.warn(f"edits of {name} cannot be written to the crash journal: {why}", JournalWarning, stacklevel=2)


def _create(source: Source | None, header: dict[str, Any]) -> JournalFile:
    assert source is not None
    assert source.path is not None
    name = f"{prefix(source.path)}{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}"
    return JournalFile(state_folder() / name, header)


# -- on disk: where journals lie, how they are framed and locked -------------------------------------------------------


def state_folder() -> Path:
    """The folder of journals: in $ONNXLAB_STATE_HOME, else in the platform's folder for the state of programs.

    Raises:
        OSError: the user has no such folder.
    """
    configured = os.environ.get("ONNXLAB_STATE_HOME")
    if configured:
        return Path(configured) / "journals"
    if sys.platform == "darwin":
        base = _home() / "Library" / "Application Support"
    elif os.name == "nt":
        base = Path(os.environ.get("LOCALAPPDATA") or _home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_STATE_HOME") or _home() / ".local" / "state")
    return base / "onnxlab" / "journals"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a user without a name, in a container
        raise OSError(errno.ENOENT, "this user has no home folder; ONNXLAB_STATE_HOME says where to write") from None


def prefix(path: Path) -> str:
    """The prefix of the names of a file's journals."""
    return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:24] + "-"


def framed(payload: bytes) -> bytes:
    """A record on disk: length, CRC-32, content."""
    return b"".join(frame(payload))


def frame(*parts: bytes) -> tuple[bytes, ...]:
    """A record on disk whose content comes in parts, which are not copied."""
    check = 0
    for part in parts:
        check = zlib.crc32(part, check)
    return sum(map(len, parts)).to_bytes(8, "little"), check.to_bytes(4, "little"), *parts


def digest_of(path: Path) -> str:
    """SHA-256 of a file, read piece by piece to save memory; raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def records(data: bytes) -> list[bytes]:
    """The complete records of a journal, header first, up to the first damaged one."""
    payloads = []
    position = len(_MAGIC)
    if data[:position] != _MAGIC:
        return []
    while position + 12 <= len(data):
        size = int.from_bytes(data[position : position + 8], "little")
        check = int.from_bytes(data[position + 8 : position + 12], "little")
        payload = data[position + 12 : position + 12 + size]
        if len(payload) != size or zlib.crc32(payload) != check:
            break
        payloads.append(payload)
        position += 12 + size
    return payloads


def lock(descriptor: int) -> bool:
    """Take the lock of an open journal; False where another process or model has it.

    Returns True where files have no locks, as in a browser: there is no other process.
    """
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(descriptor, 1 << 40, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
            os.lseek(descriptor, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return True
    except OSError:
        return False
    return True
