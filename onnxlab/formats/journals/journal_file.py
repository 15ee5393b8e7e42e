"""Journals on disk: where they lie, how they are framed and locked."""

import contextlib
import errno
import hashlib
import json
import os
import sys
import zlib
from pathlib import Path
from typing import Any

from onnxlab.formats.atomic import write_all

SUFFIX = ".journal"
UNBORN = ".new"
"""Suffix of one that is not locked yet."""
_MAGIC = b"onnxlab journal\n"
_PIECE = 1 << 20


def state_folder() -> Path:
    """The folder of journals: in $ONNXLAB_STATE_HOME, else in the platform's folder for the state of programs.

    Raises:
        OSError: the user has no such folder.
    """
    given = os.environ.get("ONNXLAB_STATE_HOME")
    if given:
        return Path(given) / "journals"
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
    except RuntimeError:  # a user of no name in a container
        raise OSError(errno.ENOENT, "this user has no home folder; ONNXLAB_STATE_HOME says where to write") from None


def prefix(path: Path) -> str:
    """The prefix of the names of a file's journals."""
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:24] + "-"


class JournalFile:
    """One journal on disk: locked while it is written, cut back to whole records when a write fails."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        """Create it; raises OSError."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        # it gets its name when it is locked and has its header, so that it is not taken for an abandoned one
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
        """Whether this process made it: a fork must leave it alone."""
        return self._owner == os.getpid()

    def append(self, *parts: bytes) -> None:
        """Write whole records, which may come in parts, or nothing; raises OSError."""
        try:
            if sum(map(len, parts)) < _PIECE:
                parts = (b"".join(parts),)
            for part in parts:  # what is large is not copied once more
                write_all(self._descriptor, part)
        except BaseException:
            os.ftruncate(self._descriptor, self._size)
            os.lseek(self._descriptor, self._size, os.SEEK_SET)
            raise
        self._size += sum(map(len, parts))

    def finish(self, keep: bool) -> None:
        """Close it, and remove it unless it is to be kept."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        if self.is_own and not keep:
            # while it is locked it is not taken for an abandoned one; where open files cannot go, it goes after
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            os.close(descriptor)
        if self.is_own and not keep:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)


def framed(payload: bytes) -> bytes:
    """A record on disk: length, CRC-32, content."""
    return b"".join(frame(payload))


def frame(*parts: bytes) -> tuple[bytes, ...]:
    """The same of a content that comes in parts, without a copy of them."""
    check = 0
    for part in parts:
        check = zlib.crc32(part, check)
    return sum(map(len, parts)).to_bytes(8, "little"), check.to_bytes(4, "little"), *parts


def digest_of(path: Path) -> str:
    """SHA-256 of what is in a file, of which no more than a piece is in memory at a time; raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def records(data: bytes) -> list[bytes]:
    """The whole records of a journal from its beginning, header first; what follows damage is left out."""
    found = []
    position = len(_MAGIC)
    if data[:position] != _MAGIC:
        return []
    while position + 12 <= len(data):
        size = int.from_bytes(data[position : position + 8], "little")
        check = int.from_bytes(data[position + 8 : position + 12], "little")
        payload = data[position + 12 : position + 12 + size]
        if len(payload) != size or zlib.crc32(payload) != check:
            break
        found.append(payload)
        position += 12 + size
    return found


def lock(descriptor: int) -> bool:
    """Take the lock of an open journal; False where another process or model has it."""
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(descriptor, 1 << 40, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
            os.lseek(descriptor, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
