"""Replacing files as a whole or not at all: write beside the target, sync, rename, and take it back where one fails."""

import contextlib
import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from onnxlab.errors import SaveError
from onnxlab.formats.paths import PathProblem, followed

_SUFFIX = ".onnxlab-tmp"
_ABANDONED = 3600  # seconds after which a temporary file is taken for an abandoned one
# errors of file systems that have no hard links or cannot sync folders, as opposed to errors of a failing one
_UNABLE = {errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV, errno.EINVAL,
           errno.EBADF}  # fmt: skip


class Replacement:
    """Files that are put in their places together, once all of them are completely on disk.

    `with Replacement() as files: files.write(path, data); files.copy(source, path)`. Everything lies in temporary
    files beside the targets until the block ends without an exception; then each is renamed, in the order in which
    it was given, so the file that names the others goes last. An exception, at whatever point, leaves the old files
    and nothing else. A process that is killed leaves either all of the old content under the name of the last file
    or all of the new; its temporary files go with a later save to the same target.
    """

    def __init__(self) -> None:
        self._pending: list[tuple[Path, Path]] = []  # (temporary file, target)
        self._folders: list[Path] = []

    def folder(self, path: Path) -> None:
        """Make a folder and those above it, which go again if the block fails; raises OSError."""
        missing = [parent for parent in (path, *path.parents) if not parent.exists()]
        for parent in reversed(missing):
            parent.mkdir(exist_ok=True)
            self._folders.append(parent)

    def write(self, target: Path, data: bytes) -> None:
        """Write `data` to the temporary file of `target`; raises OSError."""
        with self.open(target) as descriptor:
            write_all(descriptor, data)

    def copy(self, source: int, target: Path) -> None:
        """Copy from the open file `source` to `target`, and its times with it; raises OSError."""
        with self.open(target) as descriptor, open(source, "rb", closefd=False) as reader:
            while chunk := reader.read(1 << 20):
                write_all(descriptor, chunk)
            status = os.fstat(source)
            os.utime(descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))

    @contextlib.contextmanager
    def open(self, target: Path) -> Iterator[int]:
        """A descriptor of a new file beside `target` with its mode, synced at the end."""
        _sweep(target)
        temporary = _beside(target)
        # 0o666 is narrowed by the umask, as for any new file
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        self._pending.append((temporary, target))
        descriptor = os.open(temporary, flags, 0o666)
        try:
            _keep_mode_and_owner(target, descriptor)
            yield descriptor
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def __enter__(self) -> "Replacement":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        complete = False
        try:
            if kind is None:
                self._commit()
                complete = True
        finally:
            for temporary, _target in self._pending:
                _remove(temporary)
            if not complete:
                for folder in reversed(self._folders):
                    with contextlib.suppress(OSError):
                        folder.rmdir()

    def _commit(self) -> None:
        """Rename all files into place; restores the former files when a later step fails."""
        undo: list[Callable[[], object]] = []
        backups: list[Path] = []
        try:
            for temporary, target in self._pending:
                backup = _backup(target, backups)
                undo.append(_restoring(target, backup))
                os.replace(temporary, target)
            for folder in {target.parent for _temporary, target in self._pending}:
                _sync_folder(folder)
        except BaseException:
            for step in reversed(undo):
                with contextlib.suppress(OSError):
                    step()
            raise
        finally:
            for backup in backups:
                _remove(backup)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of `data`, however many calls that takes; raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def real_target(path: Path) -> Path:
    """The file that writing to `path` replaces: the end of its symbolic links, which stay.

    Raises:
        SaveError: the path is a folder or device, is read-only, has links in a circle, or its folder does not exist.
        OSError: the file system does not give the status of the path.
    """
    try:
        target = followed(path)
    except PathProblem as problem:
        raise SaveError(f"cannot save to {path}: {problem}") from None
    if not target.parent.is_dir():
        raise SaveError(f"cannot save to {path}: the folder {target.parent} does not exist")
    if target.exists():
        mode = target.stat().st_mode
        if stat.S_ISDIR(mode):
            raise SaveError(f"cannot save to {path}: it is a folder; give the name of a file in it")
        if not stat.S_ISREG(mode):
            raise SaveError(f"cannot save to {path}: it is no regular file")
        # a rename would succeed all the same, against the will of the file's owner
        if not os.access(target, os.W_OK):
            raise SaveError(f"cannot save to {path}: it is read-only")
    return target


def other_names(target: Path) -> int:
    """The number of hard links of a file besides this name, 0 without a file; a replacement leaves them behind."""
    try:
        return max(target.stat().st_nlink - 1, 0)
    except FileNotFoundError:
        return 0


def left_behind(name: str, links: int) -> str:
    """The sentence for a file with `links` other names that is replaced."""
    others = (
        "another name (a hard link), which keeps" if links == 1 else f"{links} other names (hard links), which keep"
    )
    return f"{name} has {others} the old content: a file is replaced as a whole, not written over"


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}{_SUFFIX}")


def _backup(target: Path, backups: list[Path]) -> Path | None:
    """A second name of the file at `target`, None where there is none or the file system has no hard links."""
    if not hasattr(os, "link"):  # as in a browser
        return None
    backup = _beside(target)
    backups.append(backup)
    try:
        os.link(target, backup)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
        return None
    return backup


def _restoring(target: Path, backup: Path | None) -> Callable[[], object]:
    """A function that takes the renaming of `target` back, as far as that is possible."""
    if backup is not None:
        return lambda: os.replace(backup, target)
    if target.exists():  # without hard links the old file cannot be restored: the new one stays
        return lambda: None
    return lambda: target.unlink(missing_ok=True)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _sweep(target: Path) -> None:
    """Remove temporary files that killed saves to `target` left behind."""
    start = f".{target.name[:50]}."
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if entry.name.startswith(start) and entry.name.endswith(_SUFFIX):
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_ctime < time.time() - _ABANDONED:
                        os.unlink(entry.path)


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
    """Make the renames in a folder survive a power cut, where the file system can; raises OSError where it fails."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # some network and FUSE file systems refuse to sync a folder; the files themselves are synced
        if error.errno not in _UNABLE:
            raise
    finally:
        os.close(descriptor)
