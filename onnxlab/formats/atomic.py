"""Replacing files as a whole or not at all: write beside the target, sync, rename."""

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from onnxlab.errors import SaveError


class Replacement:
    """Files that are put in their places together, once all of them are completely on disk.

    `with Replacement() as files: files.write(path, data); files.copy(source, path)`. Everything lies in temporary
    files beside the targets until the block ends without an exception; then each is renamed, in the order in which
    it was given, so the file that names the others goes last. An exception leaves the old files and nothing else.
    """

    def __init__(self) -> None:
        self._pending: list[tuple[Path, Path]] = []  # (temporary file, target)

    def write(self, target: Path, data: bytes) -> None:
        """Take down `data` for `target`; raises OSError."""
        with self._temporary(target) as descriptor:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]

    def copy(self, source: int, target: Path) -> None:
        """Copy from the open file `source` to `target`, and its times with it; raises OSError."""
        with self._temporary(target) as descriptor, open(source, "rb", closefd=False) as reader:
            with open(descriptor, "wb", closefd=False) as writer:
                shutil.copyfileobj(reader, writer, 1 << 20)
            status = os.fstat(source)
            os.utime(descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))

    @contextlib.contextmanager
    def _temporary(self, target: Path) -> Iterator[int]:
        """A descriptor of a new file beside `target` with its mode, synced at the end."""
        temporary = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}.tmp")
        # 0o666 is narrowed by the umask, as for any new file
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(temporary, flags, 0o666)
        self._pending.append((temporary, target))
        try:
            _keep_mode_and_owner(target, descriptor)
            yield descriptor
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def __enter__(self) -> "Replacement":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._commit()
        finally:
            for temporary, _target in self._pending:
                temporary.unlink(missing_ok=True)

    def _commit(self) -> None:
        """Rename everything into place; takes new files away again when a later rename fails."""
        new: list[Path] = []
        try:
            for temporary, target in self._pending:
                exists = target.exists()
                os.replace(temporary, target)
                if not exists:
                    new.append(target)
        except BaseException:
            for target in new:
                target.unlink(missing_ok=True)
            raise
        for folder in {target.parent for _temporary, target in self._pending}:
            _sync_folder(folder)


def real_target(path: Path) -> Path:
    """The file that writing to `path` replaces: the end of its symbolic links, which stay.

    Raises:
        SaveError: it is a folder or device, is read-only, or its folder does not exist.
    """
    target = path.resolve()
    if not target.parent.is_dir():
        raise SaveError(f"cannot save to {path}: the folder {target.parent} does not exist")
    if target.exists():
        mode = target.stat().st_mode
        if stat.S_ISDIR(mode):
            raise SaveError(f"cannot save to {path}: it is a folder; give the name of a file in it")
        if not stat.S_ISREG(mode):
            raise SaveError(f"cannot save to {path}: it is no regular file")
        # the rename would succeed all the same, but not as its owner wants
        if not os.access(target, os.W_OK):
            raise SaveError(f"cannot save to {path}: it is read-only")
    return target


def _keep_mode_and_owner(target: Path, descriptor: int) -> None:
    """Give the new file the permissions, and where allowed the owner, of the file that it replaces."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return
    if hasattr(os, "fchown"):
        # only root may give files away; an own file of another group is fine
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, status.st_uid, status.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _sync_folder(folder: Path) -> None:
    """Make the renames in a folder survive a power cut, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        # some network and FUSE file systems refuse to sync a folder; the files themselves are synced
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
